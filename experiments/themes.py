"""Whether people can read the topics: measures on the documents of the test part, beside those of prediction."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from mirrorlda.metrics import cv_coherence, npmi_coherence, topic_diversity
from mirrorlda.topics import relevant_words
from scipy.optimize import linear_sum_assignment
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import get_scorer

from baselines.search import labelled
from documents import Part, read_parts
from rows import Data, Row
from running import Job

# Words of a topic that people are shown: the most relevant ones.
N_SHOWN = 10
# A topic is used if its share of the documents is at least this part of an equal share.
LEAST_USED = 0.3
ASPECTS = ["service", "cleanliness", "value", "rooms", "location", "sleep"]
STABILITY = "stability"
# The measures, as tables call them.
MEASURES = {
    "linear": "proportions alone",
    "npmi": "NPMI",
    "npmi by probability": "NPMI by probability",
    "c_v": "C_V",
    "diversity": "diversity",
    "used": "used",
    "n_effective": "effective topics",
    STABILITY: "stability",
    "aspects": "hidden aspects",
}


def measured(topics: Any, row: Row, data: Data) -> tuple[dict[str, float], np.ndarray]:
    """Measures of the topics of a fitted estimator, and the proportions of all documents of the test part."""
    train, test, vectorizer = read_parts(row.path, row.text, row.n_words, row.n_docs)
    theta = np.asarray(topics.transform(test.X), np.float64)
    shares = theta.mean(axis=0)
    words = relevant_words(topics.components_, shares, vectorizer.get_feature_names_out(), n_words=N_SHOWN)
    tokens = vectorizer.build_analyzer()
    found = of_words(words, test.X, vectorizer.get_feature_names_out(), [tokens(line[row.text]) for line in test.lines])
    found |= of_shares(shares)
    if row.target is None:
        found["npmi by probability"] = float(npmi_coherence(topics.components_, test.X, n_words=N_SHOWN).mean())
    else:
        found["linear"] = linear(topics, row.measure, data)
    if has_aspects(train) and has_aspects(test):
        found["aspects"] = alignment(theta, unexplained(train, test))
    return found, theta


def of_words(words: Sequence[Sequence[str]], X: sp.csr_matrix, names: Any, texts: Sequence[list[str]]) -> dict[str, float]:
    """Coherence of the shown words in the documents X and in windows of their texts, and the part of the words that differ."""
    return {
        "npmi": float(npmi_coherence(words, X, names, n_words=N_SHOWN).mean()),
        "c_v": float(cv_coherence(words, texts, names, n_words=N_SHOWN).mean()),
        "diversity": topic_diversity(words, n_words=N_SHOWN),
    }


def of_shares(shares: np.ndarray) -> dict[str, float]:
    """The part of the topics that are used, and the number of equal topics whose shares have as large an entropy."""
    shares = shares / shares.sum()
    some = shares[shares > 0]
    return {
        "used": float((shares > LEAST_USED / len(shares)).mean()),
        "n_effective": float(np.exp(-(some * np.log(some)).sum())),
    }


def linear(topics: Any, measure: str, data: Data) -> float:
    """The score of a linear model of the proportions alone: whether these topics carry the prediction."""
    known = labelled(data.y)
    theta, y = topics.transform(data.X[known]), np.array(np.asarray(data.y)[known].tolist())
    # The proportions are few and the documents many: a penalty has next to nothing to do.
    model = Ridge(1e-3) if measure == "r2" else LogisticRegression(C=100, max_iter=2000)
    model.fit(np.asarray(theta, np.float64), y)
    return float(get_scorer(measure)(model, np.asarray(topics.transform(data.X_test), np.float64), data.y_test))


def correlations(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Of each column of the first array with each of the second; 0 where a column is constant."""
    first, second = first - first.mean(axis=0), second - second.mean(axis=0)
    lengths = np.outer(np.linalg.norm(first, axis=0), np.linalg.norm(second, axis=0))
    return np.divide(first.T @ second, lengths, out=np.zeros_like(lengths), where=lengths > 0)


def matched(first: np.ndarray, second: np.ndarray) -> float:
    """Mean correlation of the columns of two arrays of proportions, matched so that it is largest."""
    found = correlations(first, second)
    return float(found[linear_sum_assignment(-found)].mean())


def stability(proportions: Sequence[np.ndarray]) -> list[float]:
    """For each seed the mean of its pairs with the others, so that the mean over seeds is that over all pairs."""
    found: list[list[float]] = [[] for _ in proportions]
    for first, second in combinations(range(len(proportions)), 2):
        agreement = matched(proportions[first], proportions[second])
        found[first].append(agreement)
        found[second].append(agreement)
    return [float(np.mean(pairs)) for pairs in found]


def has_aspects(part: Part) -> bool:
    return all(line.get(name) is not None for line in part.lines for name in ["stars", *ASPECTS])


def unexplained(train: Part, test: Part) -> np.ndarray:
    """What stars do not say of the aspects' ratings (n_docs, n_aspects): less the training part's mean at as many stars."""
    stars, known = np.array(test.values("stars")), np.array(train.values("stars"))
    ratings, examples = (np.array([part.values(name) for name in ASPECTS], float).T for part in (test, train))
    for level in np.intersect1d(stars, known):
        ratings[stars == level] -= examples[known == level].mean(axis=0)
    return ratings


def alignment(theta: np.ndarray, left: np.ndarray) -> float:
    """Mean over aspects of the correlation of one topic: half of the documents chooses the topic, the others measure it."""
    choosing = np.abs(correlations(theta[::2], left[::2])).argmax(axis=0)
    measuring = np.abs(correlations(theta[1::2], left[1::2]))
    return float(measuring[choosing, np.arange(left.shape[1])].mean())


def proportions_file(folder: Path, job: Job) -> Path:
    """Where the proportions of a run are kept: stability takes those of several."""
    what = [job.row.name, job.row.fingerprint, job.system, job.n_topics or "default", job.repeat]
    return folder / f"{'-'.join(map(str, what))}.npy"
