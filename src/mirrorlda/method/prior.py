"""The prior of the topic proportions, estimated from the documents (the paper's future work (iii))."""

from __future__ import annotations

import numpy as np
from scipy.special import digamma

# Documents that the estimate is made from, the latest ones, and how often its fixed-point step is taken.
_SAMPLE = 5_000
_N_STEPS = 20
# alpha - 1 of a topic that nothing uses, and the most that is believed.
_SMALLEST, _LARGEST = 1e-3, 10.0


class TopicUsage:
    """How often the latest documents use the topics, and the alpha that explains it best."""

    def __init__(self, n_docs: int) -> None:
        self.counts: list[np.ndarray] = []
        self.wanted = min(n_docs, _SAMPLE)

    def add(self, theta: np.ndarray, lengths: np.ndarray, alpha: np.ndarray, rng: np.random.Generator) -> None:
        """Documents with these lengths and topic proportions, which were inferred with `alpha`.

        At the maximum theta is in proportion to the topics' expected counts plus alpha - 1; what the prior put there is taken
        off again, or a large alpha would confirm itself. Counts are drawn: as many small fractions, they would say that every
        document uses every topic.
        """
        extra = alpha.astype(np.float64) - 1
        expected = np.maximum(theta * (lengths[:, None] + extra.sum()) - extra, 0)
        self.counts.append(rng.poisson(expected).astype(np.float64))
        while sum(map(len, self.counts[1:])) >= self.wanted:
            del self.counts[0]

    def alpha(self, alpha: np.ndarray, *, keep_total: bool = False) -> np.ndarray:
        """A new estimate, starting from the last; `keep_total` leaves the sum of alpha - 1 as it is."""
        before = alpha.astype(np.float64) - 1
        estimate = estimate_concentration(np.concatenate(self.counts), before)
        if keep_total:
            estimate *= before.sum() / estimate.sum()
        return (1 + estimate).astype(alpha.dtype)


def estimate_concentration(counts: np.ndarray, concentration: np.ndarray, n_steps: int = _N_STEPS) -> np.ndarray:
    """Parameters (n_topics,) of the Dirichlet-multinomial distribution that explain `counts` (n_docs, n_topics) best.

    Minka's fixed point. The MAP estimate of theta with the
    parameter alpha has the mode that posterior means have with alpha - 1 (Asuncion et al., 2009), so alpha is one more.

    Examples
    --------
    >>> import numpy as np
    >>> from mirrorlda.method.prior import estimate_concentration
    >>> rng = np.random.default_rng(0)
    >>> counts = np.array([rng.multinomial(200, rng.dirichlet([0.2, 0.6])) for _ in range(4000)])
    >>> estimate_concentration(counts, np.ones(2), n_steps=200).round(1)
    array([0.2, 0.6])
    """
    a: np.ndarray = np.clip(concentration, _SMALLEST, _LARGEST)
    lengths = counts.sum(axis=1)
    for _ in range(n_steps):
        total = a.sum()
        above = (digamma(counts + a) - digamma(a)).sum(axis=0)
        below = (digamma(lengths + total) - digamma(total)).sum()
        if not below > 0:
            break
        a = np.clip(a * above / below, _SMALLEST, _LARGEST)
    return a
