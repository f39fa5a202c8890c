"""What was true and what was predicted, document by document, and the measures of the two.

Every measure is a function of sums over documents. That is what makes resampling them cheap: see `bootstrap`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
import scipy.sparse as sp

from mirrorlda.evaluation.metrics.prediction import share_below

N_BINS = 10
# No probability is nearer to 0 or 1 in the log loss.
_LEAST = float(np.finfo(np.float64).eps)
# A target that varies less than this part of its size is constant.
_CONSTANT = 1e-12

AUC, ACCURACY, F1, F1_MACRO = "AUC", "accuracy", "F1", "F1 macro"
LOG_LOSS, CALIBRATION = "log loss", "calibration error"
LIKELIHOOD, PERPLEXITY = "log-likelihood per word", "perplexity"
LOWER_IS_BETTER = {"RMSE", "MAE", LOG_LOSS, CALIBRATION, PERPLEXITY}


class Outcome(Protocol):
    """Truth and prediction of some documents."""

    task: str

    @property
    def main(self) -> str:
        """The measure that matters first."""
        ...

    @property
    def n_docs(self) -> int: ...

    def columns(self) -> sp.csr_array:
        """What is summed over the documents, a row each: (n_sums, n_docs)."""
        ...

    def measures(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        """Measures (n,) of the sums (n_sums, n) of n samples; NaN where one has no value."""
        ...

    def gaps(self, sums: np.ndarray) -> np.ndarray | None:
        """How far probabilities are above what came true, bin by bin (N_BINS, n); their sizes add up to the calibration error."""
        return None


@dataclass(frozen=True)
class NumberOutcome(Outcome):
    """Predicted numbers; truth and predicted are (n_docs, n_targets) in double."""

    names: list[str]
    truth: np.ndarray
    predicted: np.ndarray
    task = "regression"
    main = "R2"

    @property
    def n_docs(self) -> int:
        return len(self.truth)

    def columns(self) -> sp.csr_array:
        centred, errors = self.truth - self.truth.mean(axis=0), self.truth - self.predicted
        return sp.csr_array(
            np.vstack([np.ones(self.n_docs), *(part.T for part in (centred, centred**2, errors**2, abs(errors)))])
        )

    def measures(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        n = sums[0]
        total, squares, squared, absolute = np.split(sums[1:], 4)
        spread = squares / n - (total / n) ** 2
        least = (_CONSTANT * np.abs(self.truth).max(axis=0, initial=0)) ** 2
        r2 = 1 - _ratio(squared / n, np.where(spread > least[:, None], spread, 0))
        measures = {"R2": _mean(r2), "RMSE": np.sqrt(squared / n).mean(axis=0), "MAE": (absolute / n).mean(axis=0)}
        if len(self.names) > 1:
            measures |= {f"R2 {name}": values for name, values in zip(self.names, r2, strict=True)}
        return measures


@dataclass(frozen=True)
class ClassOutcome(Outcome):
    """Predicted classes, by number; those from `n_known` on are classes that the model does not know.

    `probabilities` (n_docs, n_known) are there unless the model has none. Measures of them are of documents whose class is known.
    """

    names: list[str]
    n_known: int
    truth: np.ndarray
    predicted: np.ndarray
    probabilities: np.ndarray | None
    task = "classification"

    @property
    def main(self) -> str:
        return AUC if self.n_known == 2 else ACCURACY

    @property
    def n_docs(self) -> int:
        return len(self.truth)

    @property
    def is_known(self) -> np.ndarray:
        return self.truth < self.n_known

    @cached_property
    def _f1(self) -> np.ndarray:
        """Of each class."""
        right, true, predicted = (
            np.bincount(numbers, minlength=len(self.names))
            for numbers in (self.truth[self.truth == self.predicted], self.truth, self.predicted)
        )
        return _ratio(2.0 * right, true + predicted)

    def confidence(self) -> tuple[np.ndarray, np.ndarray]:
        """Of documents of a known class: the probability that is judged by what comes true, and whether it did.

        With two classes it is that of the second, with more that of the most probable one.
        """
        assert self.probabilities is not None
        p, truth = self.probabilities[self.is_known], self.truth[self.is_known]
        if self.n_known == 2:
            return p[:, 1], truth == 1
        best = p.argmax(axis=1)
        return p[np.arange(len(p)), best], truth == best

    def columns(self) -> sp.csr_array:
        n, hits = self.n_docs, self.truth == self.predicted
        every = np.arange(n)
        rows = [
            sp.csr_array(np.vstack([np.ones(n), hits])),
            _indicators(self.truth[hits], every[hits], len(self.names), n),
            _indicators(self.truth, every, len(self.names), n),
            _indicators(self.predicted, every, len(self.names), n),
        ]
        if self.probabilities is not None:
            known = np.flatnonzero(self.is_known)
            p, truth = self.probabilities[known], self.truth[known]
            likelihood = np.clip(p[np.arange(len(p)), truth], _LEAST, 1)
            scores = p[:, 1:] if self.n_known == 2 else p
            classes = range(1, 2) if self.n_known == 2 else range(self.n_known)
            auc = _mean_auc((truth == c for c in classes), scores)
            dense = np.vstack([np.ones(len(p)), -np.log(likelihood), auc])
            among = sp.csr_array((np.ones(len(known)), (np.arange(len(known)), known)), shape=(len(known), n))
            rows += [sp.csr_array(dense) @ among, binned(*self.confidence()) @ among]
        return sp.vstack(rows, format="csr")

    def measures(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        n, hits = sums[:2]
        ends = 2 + len(self.names) * np.arange(1, 4)
        right, true, predicted = sums[2 : ends[0]], sums[ends[0] : ends[1]], sums[ends[1] : ends[2]]
        f1 = _ratio(2 * right, true + predicted)
        judged = {ACCURACY: hits / n, F1: f1[1] if self.n_known == 2 else _mean(f1, self._f1)}
        if self.probabilities is None:
            return judged
        known, loss, auc = sums[ends[2] : ends[2] + 3]
        gaps = self.gaps(sums)
        assert gaps is not None
        return {
            AUC: np.clip(_ratio(auc, known), 0, 1),
            **judged,
            LOG_LOSS: _ratio(loss, known),
            CALIBRATION: abs(gaps).sum(axis=0),
        }

    def gaps(self, sums: np.ndarray) -> np.ndarray | None:
        return None if self.probabilities is None else _ratio(sums[-N_BINS:], sums[-N_BINS - 3])


@dataclass(frozen=True)
class LabelOutcome(Outcome):
    """Predicted labels: truth and predicted are (n_docs, n_labels) of 0 and 1, those from `n_known` on unknown to the model.

    `probabilities` (n_docs, n_known) are there unless the model has none.
    """

    names: list[str]
    n_known: int
    truth: np.ndarray
    predicted: np.ndarray
    probabilities: np.ndarray | None
    task = "multilabel"
    main = F1

    @property
    def n_docs(self) -> int:
        return len(self.truth)

    @cached_property
    def _f1(self) -> np.ndarray:
        """Of each label."""
        truth, predicted = self.truth != 0, self.predicted != 0
        return _ratio(2.0 * (truth & predicted).sum(axis=0), truth.sum(axis=0) + predicted.sum(axis=0))

    def columns(self) -> sp.csr_array:
        truth, predicted = self.truth != 0, self.predicted != 0
        rows = [sp.csr_array(np.vstack([np.ones(self.n_docs), (truth == predicted).all(axis=1)]))]
        rows += [sp.csr_array(part.T.astype(np.float64)) for part in (truth & predicted, truth, predicted)]
        if self.probabilities is not None:
            truth, p = truth[:, : self.n_known], self.probabilities
            likelihood = np.clip(np.where(truth, p, 1 - p), _LEAST, 1)
            rows.append(sp.csr_array(np.vstack([-np.log(likelihood).mean(axis=1), _mean_auc(truth.T, p)])))
            pairs = binned(p.ravel(), truth.ravel())
            document = np.repeat(np.arange(self.n_docs), self.n_known)
            rows.append(pairs @ _indicators(document, np.arange(len(document)), self.n_docs, len(document)).T / self.n_known)
        return sp.vstack(rows, format="csr")

    def measures(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        n, exact = sums[:2]
        ends = 2 + len(self.names) * np.arange(1, 4)
        right, true, predicted = sums[2 : ends[0]], sums[ends[0] : ends[1]], sums[ends[1] : ends[2]]
        counted = {
            F1: _ratio(2 * right.sum(axis=0), (true + predicted).sum(axis=0)),
            F1_MACRO: _mean(_ratio(2 * right, true + predicted), self._f1),
        }
        if self.probabilities is None:
            return {**counted, ACCURACY: exact / n}
        loss, auc = sums[ends[2] : ends[2] + 2]
        gaps = self.gaps(sums)
        assert gaps is not None
        return {
            **counted,
            AUC: np.clip(auc / n, 0, 1),
            ACCURACY: exact / n,
            LOG_LOSS: loss / n,
            CALIBRATION: abs(gaps).sum(axis=0),
        }

    def gaps(self, sums: np.ndarray) -> np.ndarray | None:
        return None if self.probabilities is None else _ratio(sums[-N_BINS:], sums[0])


@dataclass(frozen=True)
class WordLikelihood(Outcome):
    """Log-likelihood of the words of each document, and their number, both (n_docs,)."""

    log_likelihoods: np.ndarray
    lengths: np.ndarray
    task = "topics"
    main = LIKELIHOOD

    @property
    def n_docs(self) -> int:
        return len(self.lengths)

    def columns(self) -> sp.csr_array:
        return sp.csr_array(np.vstack([self.log_likelihoods, self.lengths]))

    def measures(self, sums: np.ndarray) -> dict[str, np.ndarray]:
        per_word = _ratio(sums[0], sums[1])
        return {LIKELIHOOD: per_word, PERPLEXITY: np.exp(-per_word)}


def bins_of(p: np.ndarray) -> np.ndarray:
    """Which of ten bins with about as many documents each a probability falls into; equal ones share a bin."""
    edges = np.quantile(p, np.arange(1, N_BINS) / N_BINS) if len(p) else np.zeros(N_BINS - 1)
    return np.searchsorted(edges, p)


def binned(p: np.ndarray, came_true: np.ndarray) -> sp.csr_array:
    """Probability minus what came true, in the row of its bin: (N_BINS, n). The calibration error sums their absolute sums."""
    return sp.csr_array((p - came_true, (bins_of(p), np.arange(len(p)))), shape=(N_BINS, len(p)))


def auc_of(positive: np.ndarray, scores: np.ndarray) -> tuple[float, np.ndarray]:
    """Area under the ROC curve, and how far each document's weight moves it (n,); NaN with documents of one kind only.

    That is DeLong's: of a positive document, the share of the negative ones that it is above, less the area, over the share
    of positive documents; of a negative one likewise.
    """
    above, below = scores[positive], scores[~positive]
    if not (len(above) and len(below)):
        return np.nan, np.full(len(scores), np.nan)
    beats, is_beaten = share_below(above, below), 1 - share_below(below, above)
    area = float(beats.mean())
    moves = np.empty(len(scores))
    moves[positive] = (beats - area) * (len(scores) / len(above))
    moves[~positive] = (is_beaten - area) * (len(scores) / len(below))
    return area, moves


def _mean_auc(positives: Iterable[np.ndarray], scores: np.ndarray) -> np.ndarray:
    """What sums to the mean area of all columns that have documents of both kinds, to first order in the documents' weights."""
    total, n_columns = np.zeros(len(scores)), 0
    for positive, column in zip(positives, scores.T, strict=True):
        area, moves = auc_of(positive, column)
        if not np.isnan(area):
            total, n_columns = total + area + moves, n_columns + 1
    return total / n_columns if n_columns else np.full(len(scores), np.nan)


def _indicators(rows: np.ndarray, columns: np.ndarray, n_rows: int, n_columns: int) -> sp.csr_array:
    return sp.csr_array((np.ones(len(rows)), (rows, columns)), shape=(n_rows, n_columns))


def _ratio(above: np.ndarray, below: np.ndarray) -> np.ndarray:
    """NaN where there is nothing to divide by."""
    ratio: np.ndarray = np.divide(
        above, below, out=np.full(np.shape(above), np.nan), where=np.broadcast_to(below > 0, above.shape)
    )
    return ratio


def _mean(rows: np.ndarray, whole: np.ndarray | None = None) -> np.ndarray:
    """Of those that have a value; those that a sample gives none have that of the whole, so that no mean is of fewer."""
    if whole is not None:
        rows = np.where(np.isnan(rows), whole[:, None], rows)
    has_value = ~np.isnan(rows)
    return _ratio(np.where(has_value, rows, 0).sum(axis=0), has_value.sum(axis=0))
