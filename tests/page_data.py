"""What the data of a page hold, read as its script reads them."""

import base64

import numpy as np

FLOOR = 1e-12


def numbers_of(encoded, low):
    numbers = np.frombuffer(base64.b64decode(encoded), "<u2")
    return np.maximum(np.exp(low * (1 - numbers / 65535)), FLOOR)


def decoded_phi(data):
    """What infers, (n_words, n_topics), rounded as it is there."""
    encoded = data["model"]
    return numbers_of(encoded["phi"], encoded["phi_low"]).reshape(-1, encoded["n_topics"])


def decoded_themes(data):
    """What people read, (n_words, n_topics), rounded as it is there."""
    encoded = data["model"]["themes"]
    if encoded is None:
        return decoded_phi(data)
    depth = np.frombuffer(base64.b64decode(encoded["depth"]), np.uint8).reshape(-1, data["model"]["n_topics"])
    largest = numbers_of(encoded["largest"], encoded["low"])[:, None]
    return np.maximum(largest * np.exp(-encoded["deepest"] * (depth / 255) ** 2), FLOOR)
