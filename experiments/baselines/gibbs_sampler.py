"""The loops of collapsed Gibbs sampling, compiled by numba.

Tables of counts are float32, which is exact up to 2^24, and their rows have a multiple of WIDTH topics: loops over topics become
vector instructions, without a rest. The topics beyond n_topics have the weight zero.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

# Four vectors of eight numbers, which LLVM makes one step of a loop of; topics of a block that the draw looks at in one go.
WIDTH, BLOCK = 32, 8
# Sums may be taken in any order, and no number is NaN.
FASTMATH = {"reassoc", "contract", "nsz", "nnan"}

# exp(x) = 2^n 2^r with x log2(e) = n + r and |r| <= 1/2; 2^r by its Taylor series, to 4e-6 of itself.
LOG2_E, HALF, LEAST = np.float32(np.log2(np.e)), np.float32(0.5), np.float32(-87.0)
C0, C1, C2, C3, C4, C5, C6 = (np.float32(c) for c in (1, *(np.log(2) ** np.arange(1, 7) / [1, 2, 6, 24, 120, 720])))
MANTISSA, BIAS = np.int32(23), np.int32(127)


@njit(cache=True, fastmath=FASTMATH)
def exp_below_zero(x: Any) -> Any:
    """exp(max(x, -87)) of a float32 x <= 0. Without a call, so that a loop of it becomes vector instructions."""
    scaled = max(x, LEAST) * LOG2_E
    # Truncation is towards zero: below zero it rounds to the nearest number, as half is subtracted.
    n = np.int32(scaled - HALF)
    r = scaled - np.float32(n)
    power = C0 + r * (C1 + r * (C2 + r * (C3 + r * (C4 + r * (C5 + r * C6)))))
    return power * np.int32((n + BIAS) << MANTISSA).view(np.float32)


@njit(cache=True, fastmath=FASTMATH)
def chosen(weights: Any, n_topics: Any, uniform: Any) -> Any:
    """The topic where the cumulative weights pass `uniform` times their sum."""
    total = np.float32(0)
    for k in range(len(weights)):
        total += weights[k]
    left = uniform * total
    # By rounding nothing may be left for the last topic: the block that holds it is not passed by.
    start = 0
    while start + BLOCK < n_topics:
        of_block = np.float32(0)
        for k in range(start, start + BLOCK):
            of_block += weights[k]
        if left < of_block:
            break
        left -= of_block
        start += BLOCK
    new = start
    while new < n_topics - 1:
        left -= weights[new]
        if left < 0:
            break
        new += 1
    return new


@njit(cache=True, fastmath=FASTMATH)
def sweep(
    words: Any,
    bounds: Any,
    topics: Any,
    doc_topics: Any,
    word_topics: Any,
    totals: Any,
    alpha: Any,
    beta: Any,
    a: Any,
    b: Any,
    eta: Any,
    rng: Any,
) -> None:
    """Draw the topic of each word given those of all others; changes `topics` and the three tables of counts.

    p(k) ~ (doc_topics + alpha) (word_topics + beta) / (totals + n_words beta) exp(sum_c a_c f_c - b_c f_c^2 / 2), where the
    counts are of the other words and f_c has this one in topic k. Up to a constant the exponent is minus a distance,
    sum_c b_c (f_c - a_c / b_c)^2 / 2; where b_c is zero, so is a_c.
    """
    n_topics, width, n_outputs = len(totals), doc_topics.shape[1], len(eta)
    alpha, beta, smooth = np.float32(alpha), np.float32(beta), beta * len(word_topics)
    weights, distances, inverse = np.empty(width, np.float32), np.empty(width, np.float32), np.zeros(width, np.float32)
    # Numbers from zero on are in the order of their bits, and LLVM makes vector instructions of the minimum of integers.
    bits = distances.view(np.int32)
    for k in range(n_topics):
        inverse[k] = 1 / (totals[k] + smooth)
    # The topics beyond the last repeat it: they have no weight, and are no nearer.
    steps, f = np.empty((n_outputs, width), np.float32), np.empty(n_outputs)
    for d in range(len(bounds) - 1):
        if bounds[d] == bounds[d + 1]:
            continue
        responds = False
        for c in range(n_outputs):
            responds |= b[d, c] > 0
        if responds:
            share = 1.0 / (bounds[d + 1] - bounds[d])
            for c in range(n_outputs):
                f[c] = 0
                for k in range(n_topics):
                    f[c] += share * eta[c, k] * doc_topics[d, k]
                    steps[c, k] = share * eta[c, k]
                steps[c, n_topics:] = steps[c, n_topics - 1]
        for n in range(bounds[d], bounds[d + 1]):
            word, old = words[n], topics[n]
            doc_topics[d, old] -= 1
            word_topics[word, old] -= 1
            totals[old] -= 1
            inverse[old] = 1 / (totals[old] + smooth)
            for k in range(width):
                weights[k] = (doc_topics[d, k] + alpha) * (word_topics[word, k] + beta) * inverse[k]
            if responds:
                distances[:] = 0
                for c in range(n_outputs):
                    f[c] -= steps[c, old]
                    if b[d, c] > 0:
                        offset, half = np.float32(f[c] - a[d, c] / b[d, c]), np.float32(b[d, c] / 2)
                        for k in range(width):
                            distances[k] += half * (offset + steps[c, k]) ** 2
                least = bits[0]
                for k in range(width):
                    least = min(least, bits[k])
                nearest = np.int32(least).view(np.float32)
                for k in range(width):
                    weights[k] *= exp_below_zero(nearest - distances[k])
            new = chosen(weights, n_topics, rng.random())
            topics[n] = new
            doc_topics[d, new] += 1
            word_topics[word, new] += 1
            totals[new] += 1
            inverse[new] = 1 / (totals[new] + smooth)
            if responds:
                for c in range(n_outputs):
                    f[c] += steps[c, new]


@njit(cache=True, fastmath=FASTMATH)
def infer(words: Any, bounds: Any, phi: Any, n_topics: Any, alpha: Any, burn_in: Any, kept: Any, rng: Any) -> Any:
    """Mean shares of topics among the words of each document, where the topics `phi` (n_words, width) are known."""
    width, alpha = phi.shape[1], np.float32(alpha)
    shares = np.zeros((len(bounds) - 1, n_topics))
    counts, weights = np.empty(width, np.float32), np.empty(width, np.float32)
    for d in range(len(bounds) - 1):
        length = bounds[d + 1] - bounds[d]
        topics = np.empty(length, np.int32)
        counts[:] = 0
        for number in range(burn_in + kept + 1):
            for n in range(length):
                word = words[bounds[d] + n]
                # The first sweep deals with the words one by one, as they come.
                if number > 0:
                    counts[topics[n]] -= 1
                for k in range(width):
                    weights[k] = (counts[k] + alpha) * phi[word, k]
                new = chosen(weights, n_topics, rng.random())
                topics[n] = new
                counts[new] += 1
            if number > burn_in and length > 0:
                for k in range(n_topics):
                    shares[d, k] += counts[k] / (length * kept)
    return shares
