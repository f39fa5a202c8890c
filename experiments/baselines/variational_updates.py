"""The loop over words of variational EM, compiled by numba."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# No number is NaN. Sums may be taken in any order but where a sum rounds.
FIXED = {"contract", "nsz", "nnan"}
FASTMATH = FIXED | {"reassoc"}

# Products of the exponentials of smaller numbers would be subnormal, which takes a hundred times as long.
LEAST = -100.0
# exp(x) = 2^n 2^r with x log2(e) = n + r and |r| <= 1/2; 2^r by its Taylor series. Added to ROUND, a number loses its fraction,
# and its last bits are the whole number.
LOG2_E, ROUND = np.log2(np.e), 1.5 * 2.0**52
C1, C2, C3, C4, C5, C6, C7, C8, C9, C10, C11, C12 = np.log(2) ** np.arange(1, 13) / np.cumprod(np.arange(1.0, 13))
MANTISSA, BIAS = np.int64(52), np.int64(1023)


@njit(cache=True, fastmath=FIXED)
def exp_below_zero(x: Any) -> Any:
    """exp(max(x, -100)) of x <= 0, to 1e-13 of itself. Without a call, so that a loop of it becomes vector instructions."""
    scaled = max(x, LEAST) * LOG2_E
    shifted = scaled + ROUND
    r = scaled - (shifted - ROUND)
    upper = C7 + r * (C8 + r * (C9 + r * (C10 + r * (C11 + r * C12))))
    power = 1.0 + r * (C1 + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * (C6 + r * upper))))))
    return power * np.int64((np.float64(shifted).view(np.int64) + BIAS) << MANTISSA).view(np.float64)


@njit(cache=True, fastmath=FASTMATH)
def update(
    bounds: Any,
    columns: Any,
    counts: Any,
    phi: Any,
    log_phi: Any,
    log_topics: Any,
    by_document: Any,
    U: Any,
    own: Any,
    damping: Any,
    sums: Any,
) -> None:
    """New phi and log phi of all words, in place, and the expected number of words by topic in `sums` (n_docs, n_topics).

    Equivalent, for the words of a document, to

        log_phi = log_topics[columns] + by_document + (phi @ U.T * own) @ U + damping * log_phi
        log_phi = log_softmax(log_phi / (1 + damping), axis=1); phi = exp(log_phi); sums = counts @ phi

    where without outputs the old phi is not read.
    """
    n_outputs, n_topics = U.shape
    logits, pull = np.empty(n_topics), np.empty(n_topics)
    for d in range(len(bounds) - 1):
        sums[d] = 0.0
        scale = 1.0 / (1.0 + damping[d])
        for n in range(bounds[d], bounds[d + 1]):
            topics, of_word, log_of_word = log_topics[columns[n]], phi[n], log_phi[n]
            for k in range(n_topics):
                logits[k] = topics[k] + by_document[d, k]
            if n_outputs > 0:
                pull[:] = 0.0
                for o in range(n_outputs):
                    mean = 0.0
                    for k in range(n_topics):
                        mean += of_word[k] * U[o, k]
                    mean *= own[d, o]
                    for k in range(n_topics):
                        pull[k] += mean * U[o, k]
                for k in range(n_topics):
                    logits[k] = (logits[k] + pull[k] + damping[d] * log_of_word[k]) * scale
            largest = -np.inf
            for k in range(n_topics):
                largest = max(largest, logits[k])
            total = 0.0
            for k in range(n_topics):
                of_word[k] = exp_below_zero(logits[k] - largest)
                total += of_word[k]
            share, log_total = 1.0 / total, largest + np.log(total)
            for k in range(n_topics):
                log_of_word[k] = logits[k] - log_total
                of_word[k] *= share
                sums[d, k] += counts[n] * of_word[k]
