"""What users give to an estimator, checked where it enters: documents, weights, a corpus, a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, validate_data

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.documents import Documents, as_documents
from mirrorlda.estimators.given_targets import LARGEST_WEIGHT
from mirrorlda.estimators.parameters import is_logarithmic
from mirrorlda.training.sources import Examples, StoredExamples


def check_cluster(cluster: Any, X: Any) -> None:
    """That a cluster, if there is one, is one, and that its workers can read the documents themselves."""
    if cluster is None:
        return
    if not hasattr(cluster, "steps"):
        raise TypeError(f"cluster must be a mirrorlda.distributed.Cluster, got {cluster!r}")
    if not isinstance(X, Corpus):
        raise ValueError(f"the workers of a cluster read documents themselves: expected X to be a Corpus, got {type(X).__name__}")


@contextmanager
def unchanged_on_failure(estimator: BaseEstimator) -> Iterator[None]:
    """Whatever ends the block early, an error or Ctrl-C, leaves the estimator as it was before."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        estimator.__dict__ = before
        raise


def checked_documents(estimator: Any, X: Any) -> Documents:
    """Counts of the words that the estimator was fitted to, as inference sees them."""
    return _scaled(estimator, validate_data(estimator, X, **_accepted(X), reset=False))


def checked_examples(
    estimator: Any, X: Any, y: Any, sample_weight: Any, labelled: np.ndarray | None = None, *, reset: bool, **y_checks: Any
) -> Examples:
    """Documents of a fit with targets as they are given; those without weight are left out."""
    if isinstance(X, Corpus):
        raise ValueError("partial_fit takes a matrix: give it corpus.matrix(numbers), or the whole corpus to fit")
    if reset:
        vars(estimator).pop("vocabulary_", None)
    if not estimator.has_targets:
        X = validate_data(estimator, X, **_accepted(X), reset=reset)
    else:
        X, y = validate_data(estimator, X, y, **_accepted(X), reset=reset, **y_checks)
    weights = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    labelled = np.ones(len(weights), bool) if labelled is None else labelled
    if not weights.any():
        raise ValueError("sample_weight is zero for all documents")
    if not 1 / LARGEST_WEIGHT <= weights.max() <= LARGEST_WEIGHT:
        expected = f"expected it between {1 / LARGEST_WEIGHT:g} and {LARGEST_WEIGHT:g}"
        raise ValueError(f"the largest sample_weight is {weights.max():g}, {expected}")
    if not weights[labelled].any():
        raise ValueError("sample_weight is zero for all documents that have a target")
    if not weights.all():
        kept = np.flatnonzero(weights)
        X, y, weights, labelled = X[kept], y if y is None else y[kept], weights[kept], labelled[kept]
    documents = _scaled(estimator, X)
    if y is None:
        return Examples(documents, documents.totals(), weights)
    if not labelled.all():
        # A placeholder must be a target of these documents.
        y = y.copy()
        y[~labelled] = y[np.argmax(labelled)]
    return Examples(documents, y, weights, None if labelled.all() else labelled)


def stored_examples(estimator: Any, corpus: Corpus, y: Any, sample_weight: Any, *, has_targets: bool) -> StoredExamples:
    """The documents of a corpus that a fit is to learn from, whose words are the estimator's from now on."""
    if y is not None or sample_weight is not None:
        raise ValueError("a corpus holds its targets: fit takes neither y nor sample_weight with it")
    if not corpus.n_docs:
        raise ValueError(f"{corpus!r} has no documents")
    estimator.n_features_in_ = corpus.n_words
    for name in ("feature_names_in_", "vocabulary_"):
        vars(estimator).pop(name, None)
    if corpus.vocabulary is not None:
        estimator.vocabulary_ = corpus.vocabulary
    return StoredExamples.of(corpus, logarithmic=is_logarithmic(estimator), has_targets=has_targets)


def _accepted(X: Any) -> dict[str, Any]:
    """How scikit-learn checks counts: float32 and float64 stay, integers become float32. `as_documents` checks their signs."""
    if isinstance(X, str | os.PathLike):
        raise TypeError(
            f"X is a path, {os.fspath(X)!r}: open it with mirrorlda.Corpus, or make a corpus of the file with prepare"
        )
    is_row = isinstance(X, list | tuple) or (len(getattr(X, "shape", ())) == 1 and not hasattr(X, "tocsr"))
    if is_row and any(isinstance(value, str) for value in X[:10]):
        raise ValueError(
            "X holds text: count its words with TextVectorizer, or use predict_text where the model has a vocabulary_"
        )
    dtypes: Any = getattr(X, "dtypes", getattr(X, "dtype", None))
    integers = all(getattr(dtype, "kind", "f") in "iub" for dtype in np.atleast_1d(dtypes))
    return {"accept_sparse": "csr", "dtype": np.float32 if integers else [np.float64, np.float32]}


def _scaled(estimator: Any, X: Any) -> Documents:
    documents = as_documents(X)
    return documents.logarithmic() if is_logarithmic(estimator) else documents
