"""The loss of a batch and its gradients: a sum over documents of what inference, response and back-propagation give."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from mirrorlda import _core
from mirrorlda.data.documents import Documents, as_documents
from mirrorlda.method import themes
from mirrorlda.method.inference import Layers, check_layers, check_phi, check_same_words, forward, n_threads_of, new_engine
from mirrorlda.method.responses import Response
from mirrorlda.method.themes import Decoded, Decoder


@dataclass(frozen=True)
class Gradients:
    """Loss of a batch and its gradients, all sums over documents of weight times the document's own.

    Attributes
    ----------
    loss : float
    rows : ndarray of int32, shape (n_rows,)
        Words that occur in the batch; all other rows of Phi's gradient are zero.
    grad_phi : ndarray, shape (n_rows, n_topics)
    grad_U : ndarray, shape (n_outputs, n_topics)
    grad_counts : ndarray of shape (nnz,), or None
        In the order of the entries of the batch.
    grad_word_weights : ndarray of shape (n_rows,), or None
        With respect to the logarithms of the words' weights, and without the words' own likelihood.
    scores : ndarray, shape (n_docs, n_outputs)
    losses : ndarray of float64, shape (n_docs,)
        Of each document, without its weight.
    theta : ndarray, shape (n_docs, n_topics)
    decoded : Decoded, or None
        What the themes say of the documents, where there are any.
    moments : ndarray of float64, shape (n_topics, n_topics), or None
        Sum over documents of weight times theta theta', where it was asked for: the curvature of a squared loss.
    """

    loss: float
    rows: np.ndarray
    grad_phi: np.ndarray
    grad_U: np.ndarray
    grad_counts: np.ndarray | None
    scores: np.ndarray
    losses: np.ndarray
    theta: np.ndarray
    grad_word_weights: np.ndarray | None = None
    decoded: Decoded | None = None
    moments: np.ndarray | None = None


def value_and_grad(
    phi: Any,
    U: Any,
    X: Any,
    y: Any,
    response: Response,
    *,
    alpha: Any = 1.001,
    n_layers: int = 10,
    step_size: Any = "l1",
    tol: float = 0.0,
    sample_weight: Any = None,
    n_jobs: int | None = None,
) -> Gradients:
    """Loss of documents and its exact gradients, given the step sizes (Algorithm 4 of the paper).

    Parameters
    ----------
    phi, X, alpha, n_layers, step_size, tol, n_jobs
        As for `infer`.
    U : array of shape (n_outputs, n_topics), or None for a response without outputs
    y : array, or None for `Words`
        What the response takes: numbers (n_docs, n_outputs) for `SquaredError`, class numbers (n_docs,) for `Softmax`.
    response : Response
    sample_weight : array of shape (n_docs,), optional

    Examples
    --------
    >>> import numpy as np
    >>> import mirrorlda
    >>> from mirrorlda.responses import SquaredError
    >>> phi = np.array([[0.8, 0.1], [0.1, 0.8], [0.1, 0.1]])
    >>> U = np.array([[1.0, -1.0]])
    >>> X, y = np.array([[3, 1, 0]]), np.array([[0.5]])
    >>> result = mirrorlda.value_and_grad(phi, U, X, y, SquaredError())
    >>> result.rows, result.grad_phi.shape
    (array([0, 1], dtype=int32), (2, 2))
    """
    phi = check_phi(phi)
    documents = as_documents(X, phi.dtype)
    check_same_words(phi, documents)
    layers = check_layers(alpha, n_layers, step_size, tol, phi, documents.n_docs)
    U = np.zeros((0, phi.shape[1]), phi.dtype) if U is None else np.ascontiguousarray(U, phi.dtype)
    if U.ndim != 2 or U.shape[1] != phi.shape[1]:
        raise ValueError(f"U must have shape (n_outputs, {phi.shape[1]}), got {U.shape}")
    y = np.zeros((documents.n_docs, 0)) if y is None else response.checked(y)
    weights = np.ones(documents.n_docs) if sample_weight is None else np.asarray(sample_weight, np.float64)
    for name, array in (("y", y), ("sample_weight", weights)):
        if len(array) != documents.n_docs:
            raise ValueError(f"{name} has {len(array)} entries, but X has {documents.n_docs} documents")
    if not (np.isfinite(weights).all() and (weights >= 0).all()):
        raise ValueError("sample_weight must be non-negative and finite")
    engine = new_engine(phi.dtype)
    everything = np.arange(documents.n_docs)
    result = gradients(
        engine,
        phi,
        U,
        documents,
        everything,
        y,
        weights,
        response,
        layers,
        rows=documents.words_of(everything),
        want_counts=True,
        n_threads=n_threads_of(n_jobs),
    )
    return replace(result, grad_phi=result.grad_phi.copy(), grad_U=result.grad_U.astype(phi.dtype))


def gradients(
    engine: _core.Engine32 | _core.Engine64,
    phi: np.ndarray,
    U: np.ndarray,
    documents: Documents,
    batch: np.ndarray,
    y: np.ndarray,
    weights: np.ndarray,
    response: Response,
    layers: Layers,
    *,
    rows: np.ndarray,
    want_counts: bool = False,
    want_word_weights: bool = False,
    want_moments: bool = False,
    frame: np.ndarray | None = None,
    decoder: Decoder | None = None,
    block_docs: int = 0,
    n_threads: int = 1,
) -> Gradients:
    """Gradients of the documents in `batch`, whose distinct words are among `rows`, with their y and weights.

    `want_word_weights` needs a batch of all the documents. `frame` is that of `forward`. With a `decoder` the likelihood of its
    themes is part of the gradients, but not of the loss. Sums go by blocks of `block_docs` documents; 0 is the number for a batch
    of all these documents. `grad_phi` is a view into the engine.
    """
    dtype = phi.dtype
    has_words = bool(response.word_weight)
    theta = forward(engine, phi, documents, batch, layers, keep=True, objective=has_words, frame=frame, n_threads=n_threads)
    scores = _core.scores(theta, U, n_threads)
    # What overflows here is found, and told, by the learning step.
    with np.errstate(over="ignore", invalid="ignore"):
        losses, grad_scores = response.loss(scores, y)
    if np.shape(losses) != (len(batch),):
        raise ValueError(f"the response's losses have shape {np.shape(losses)}, expected one for each document, ({len(batch)},)")
    if grad_scores.shape != scores.shape:
        raise ValueError(
            f"the gradient of the scores has shape {grad_scores.shape}, expected {scores.shape}: check the shape of y"
        )
    losses = losses.astype(np.float64)
    word_weights = None
    if has_words:
        losses += response.word_weight * word_losses(engine, theta, layers)
        word_weights = (response.word_weight * weights).astype(dtype)
    grad_scores = np.ascontiguousarray(grad_scores * weights[:, None], dtype)
    grad_theta = _core.back_scores(grad_scores, U, n_threads) if len(U) else None
    decoded: Decoded | None = None
    if decoder is not None:
        decoded = decoder.decoded(engine, theta, weights, block_docs, n_threads)
        if grad_theta is not None:
            grad_theta += decoded.grad_theta * weights[:, None].astype(dtype)
    grad_word_weights: np.ndarray | None = None
    grad_counts: np.ndarray | None
    if want_word_weights:
        # Words that count for nothing would have the best likelihood, so it has no part in their weights.
        grad_phi, grad_counts = engine.reverse(grad_theta, None, rows, True, n_threads, block_docs)
        assert grad_counts is not None
        grad_word_weights = _core.row_sums(
            rows, documents.indptr, documents.indices, grad_counts, documents.counts, documents.n_words, block_docs
        )
    if word_weights is not None or want_counts or not want_word_weights:
        grad_phi, grad_counts = engine.reverse(grad_theta, word_weights, rows, want_counts, n_threads, block_docs)
    grad_U = _core.outer(grad_scores, theta, n_threads, block_docs)
    moments: np.ndarray | None = None
    if want_moments:
        moments = _core.outer(theta * weights[:, None].astype(dtype), theta, n_threads, block_docs)
    loss = float((losses * weights).sum())
    return Gradients(loss, rows, grad_phi, grad_U, grad_counts, scores, losses, theta, grad_word_weights, decoded, moments)


def merged(left: Gradients, right: Gradients) -> Gradients:
    """Of two neighbouring parts of a batch, both whole subtrees of its blocks: their sums, what is of documents in a row."""
    rows = np.union1d(left.rows, right.rows)
    grad_phi = np.zeros((len(rows), left.grad_phi.shape[1]), left.grad_phi.dtype)
    words = None if left.grad_word_weights is None or right.grad_word_weights is None else np.zeros(len(rows))
    for part in (left, right):
        places = np.searchsorted(rows, part.rows)
        grad_phi[places] += part.grad_phi
        if words is not None and part.grad_word_weights is not None:
            words[places] += part.grad_word_weights
    return Gradients(
        loss=left.loss + right.loss,
        rows=rows,
        grad_phi=grad_phi,
        grad_U=left.grad_U + right.grad_U,
        grad_counts=None,
        scores=np.concatenate([left.scores, right.scores]),
        losses=np.concatenate([left.losses, right.losses]),
        theta=np.concatenate([left.theta, right.theta]),
        grad_word_weights=words,
        decoded=themes.merged(left.decoded, right.decoded),
        moments=None if left.moments is None or right.moments is None else left.moments + right.moments,
    )


def word_losses(engine: _core.Engine32 | _core.Engine64, theta: np.ndarray, layers: Layers) -> np.ndarray:
    """-ln p(x | theta_L, Phi) of the documents whose trace the engine keeps."""
    log_prior = np.log(theta, dtype=np.float64) * (layers.alpha.astype(np.float64) - 1)
    losses: np.ndarray = engine.objective() + log_prior.sum(axis=1)
    return losses
