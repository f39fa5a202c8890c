"""What the data of a page hold, read as its script reads them."""

import base64

import numpy as np


def decoded_phi(data):
    """(n_words, n_topics), rounded as it is there."""
    encoded = data["model"]
    numbers = np.frombuffer(base64.b64decode(encoded["phi"]), "<u2").reshape(-1, encoded["n_topics"])
    return np.exp(encoded["phi_low"] * (1 - numbers / 65535))
