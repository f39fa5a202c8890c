"""Themes to start from: what documents are about, found without their targets."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linear_sum_assignment

from mirrorlda import _core
from mirrorlda.data.documents import Documents
from mirrorlda.data.parts import chunks
from mirrorlda.method.gradients import gradients
from mirrorlda.method.inference import check_layers, new_engine
from mirrorlda.method.responses import Words
from mirrorlda.training import mirror_descent
from mirrorlda.training.mirror_descent import Guide
from mirrorlda.training.schedule import of_many_words

# Of that many documents axes are taken and a short BP-LDA is fitted, the axes from so many of the most frequent words; more
# change little.
_MOST_DOCS, _MOST_WORDS = 20_000, 20_000
# Steps towards the axes, axes beyond those that are wanted, and documents and steps that turn them.
_N_POWERS, _N_EXTRA, _TURNED_DOCS, _N_TURNS = 4, 8, 2_500, 50
# An axis along which documents differ so much less than along the first is rounding.
_LEAST_AXIS = 1e-6
# What else a topic has, beside the words of an axis: a tenth of the mean of all documents, and a little of every word.
_COMMON, _EVERYWHERE = 0.1, 1e-6
# The BP-LDA: its prior, layers, learning rate and batches.
_ALPHA, _N_LAYERS, _RATE, _BATCH = 1.02, 3, 0.5, 1000
# Fraction by which its first steps move a guided theme towards its seed words.
_GUIDED = 0.02
# From this correlation of their words on two themes are one.
_ALIKE = 0.88
# Epochs, or as many as make so many steps.
_N_EPOCHS, _N_STEPS = 3, 40


def first_themes(documents: Documents, weights: np.ndarray, n_topics: int, guide: Guide | None, n_threads: int) -> np.ndarray:
    """Themes (n_words, n_topics), the same for every seed; where no document has words, all alike.

    A short BP-LDA that starts from the axes along which the documents differ most. From random topics it finds as good ones, but
    others for each seed and each part of the data. A theme with seed words starts from the documents that have them.
    """
    usable = np.flatnonzero((weights > 0) & (documents.totals() > 0))
    if not len(usable):
        return np.full((documents.n_words, n_topics), 1 / documents.n_words, documents.counts.dtype)
    if len(usable) > _MOST_DOCS:
        usable = usable[np.linspace(0, len(usable) - 1, _MOST_DOCS).astype(np.int64)]
    documents, weights = documents.take(usable), weights[usable]
    rng = np.random.default_rng(0)
    is_guided = np.zeros(n_topics, bool) if guide is None else guide.towards.any(axis=0)
    phi = np.empty((documents.n_words, n_topics), documents.counts.dtype)
    phi[:, ~is_guided] = _along_axes(documents, weights, int((~is_guided).sum()), rng)
    if guide is not None:
        phi[:, is_guided] = _around_seeds(documents, weights, Guide(guide.rows, guide.towards[:, is_guided]))
    return _settled(phi, guide, documents, weights, rng, n_threads)


def most_alike(topics: np.ndarray, themes: np.ndarray) -> np.ndarray:
    """For each of the topics (n_words, n_topics) the number of one of as many themes, so that they are alike in their words."""
    lifts = [np.log(np.maximum(each, _EVERYWHERE * each.mean()) / each.mean(axis=1, keepdims=True)) for each in (topics, themes)]
    weights = themes.mean(axis=1, keepdims=True)
    first, second = (lift - (weights * lift).sum(axis=0) for lift in lifts)
    products = first.T @ (weights * second)
    sizes = [np.sqrt(np.maximum((weights * lift**2).sum(axis=0), np.finfo(np.float32).tiny)) for lift in (first, second)]
    numbers: np.ndarray = linear_sum_assignment(-products / sizes[0][:, None] / sizes[1])[1]
    return numbers


def distinct(themes: np.ndarray, fewest: int) -> np.ndarray:
    """The themes without duplicates: those whose words are the same become one, as long as there are more than `fewest`.

    Themes are compared by the correlation of their words' logarithms of lift. In data with fewer themes than that it is above 0.9
    for those that share one; in reviews, news and newsgroups the most alike of 20 have 0.8.
    """
    dtype, themes = themes.dtype, themes.astype(np.float64)
    while themes.shape[1] > max(fewest, 2):
        weights = themes.mean(axis=1)
        lift = np.log(np.maximum(themes, np.finfo(np.float64).tiny) / weights[:, None])
        lift -= weights @ lift
        products = lift.T @ (lift * weights[:, None])
        sizes = np.sqrt(np.maximum(np.diag(products), np.finfo(np.float64).tiny))
        alike = np.tril(products / sizes / sizes[:, None], -1)
        first, second = np.unravel_index(alike.argmax(), alike.shape)
        if alike[first, second] < _ALIKE:
            break
        low, high = sorted((int(first), int(second)))
        themes[:, low] = (themes[:, low] + themes[:, high]) / 2
        themes = np.delete(themes, high, axis=1)
    return np.ascontiguousarray(themes, dtype)


def _settled(
    phi: np.ndarray,
    guide: Guide | None,
    documents: Documents,
    weights: np.ndarray,
    rng: np.random.Generator,
    n_threads: int,
) -> np.ndarray:
    """Topics after a few epochs of BP-LDA on the documents."""
    n_docs, n_topics = documents.n_docs, phi.shape[1]
    layers, engine = check_layers(_ALPHA, _N_LAYERS, "l1", 0.0, phi, 0), new_engine(phi.dtype)
    state = mirror_descent.begin(phi, np.zeros((0, n_topics), phi.dtype), guide=guide)
    n_batches = -(-n_docs // _BATCH)
    n_epochs = max(_N_EPOCHS, -(-_N_STEPS // n_batches))
    rate = of_many_words(_RATE, documents.n_words)
    total, y, response = float(weights.sum()), documents.totals(), Words()
    for epoch in range(n_epochs):
        order = rng.permutation(n_docs)
        for number, places in enumerate(chunks(n_docs, _BATCH)):
            batch, left = order[places], 1 - (epoch * n_batches + number) / (n_epochs * n_batches)
            found = gradients(
                engine,
                state.phi,
                state.U,
                documents,
                batch,
                y[batch],
                weights[batch],
                response,
                layers,
                rows=documents.words_of(batch, n_threads),
                frame=mirror_descent.scale_and_shift(state),
                n_threads=n_threads,
            )
            average, guided = float(left <= 0.5), _GUIDED * left
            rates = mirror_descent.Rates(phi=rate * left, U=0.0, prior=1e-4 / total, average=average, guide=guided)
            mirror_descent.learn(state, found, total / n_docs * len(batch), rates, n_threads)
    return mirror_descent.parameters(state, n_threads).phi


def _around_seeds(documents: Documents, weights: np.ndarray, guide: Guide) -> np.ndarray:
    """Topics (n_words, n_guided) of seed words and of what goes with them.

    Half of a topic are its seeds, half are the words that documents have more often the more of the seeds they have.
    """
    shape = (documents.n_docs, documents.n_words)
    counts = sp.csr_array((documents.counts, documents.indices, documents.indptr), shape=shape)
    has_seeds = (counts[:, guide.rows] > 0).astype(counts.dtype) @ (guide.towards > 0).astype(counts.dtype)
    frequencies = counts.T @ weights.astype(counts.dtype)
    expected = frequencies[:, None] / frequencies.sum()
    found = counts.T @ (has_seeds**2 * weights[:, None].astype(counts.dtype))
    sums = found.sum(axis=0)
    found = found / np.where(sums > 0, sums, 1)
    topics: np.ndarray = np.maximum(found - expected, 0).astype(np.float64)
    sums = topics.sum(axis=0)
    topics /= np.where(sums > 0, sums, 1)
    topics[guide.rows] += guide.towards
    topics += _COMMON * expected + _EVERYWHERE / len(topics)
    topics /= topics.sum(axis=0)
    return topics


def _along_axes(documents: Documents, weights: np.ndarray, n_topics: int, rng: np.random.Generator) -> np.ndarray:
    """Topics (n_words, n_topics), each of the documents that lie far out on one side of an axis.

    The axes are the left singular vectors of the counts, divided by the roots of lengths and frequencies, without what chance
    explains (correspondence analysis), turned so that each is of few documents (varimax).
    """
    n_docs, n_words = documents.n_docs, documents.n_words
    dtype = documents.counts.dtype
    counts = sp.csr_array((documents.counts, documents.indices, documents.indptr), shape=(n_docs, n_words))
    # A document of weight 2 is two documents.
    roots = np.sqrt(weights / weights.mean()).astype(dtype)
    all_frequencies = counts.T @ roots**2
    chosen = np.sort(np.argsort(-all_frequencies, kind="stable")[:_MOST_WORDS])
    counts, frequencies = counts[:, chosen], all_frequencies[chosen]
    lengths = counts.sum(axis=1)
    of_docs = roots / np.sqrt(lengths + np.average(lengths, weights=weights).astype(dtype))
    of_words = 1 / np.sqrt(frequencies + frequencies[frequencies > 0].mean())
    total = np.sqrt(frequencies.sum())
    expected_docs, expected_words = lengths * of_docs / total, frequencies * of_words / total

    def times(right: np.ndarray) -> np.ndarray:
        product: np.ndarray = of_docs[:, None] * (counts @ (of_words[:, None] * right))
        product -= np.outer(expected_docs, expected_words @ right)
        return product

    def transposed_times(left: np.ndarray) -> np.ndarray:
        product: np.ndarray = of_words[:, None] * (counts.T @ (of_docs[:, None] * left))
        product -= np.outer(expected_words, expected_docs @ left)
        return product

    if not n_topics:
        return np.empty((n_words, 0), dtype)
    left = times(rng.standard_normal((len(chosen), n_topics + _N_EXTRA)).astype(dtype))
    for _ in range(_N_POWERS):
        left = times(transposed_times(_orthonormal(left)))
    left = _orthonormal(left)
    values, vectors = np.linalg.eigh(_products(projected := transposed_times(left), projected))
    n_axes = min(n_topics, int((values > _LEAST_AXIS * values.max(initial=0)).sum()))
    axes = _times(left, vectors[:, ::-1][:, :n_axes]) / roots[:, None]
    axes = _times(axes, _turn(axes, roots))
    axes *= np.sign((roots[:, None] ** 2 * axes**3).sum(axis=0))
    found = np.zeros((len(chosen), n_topics), dtype)
    found[:, :n_axes] = counts.T @ (roots[:, None] ** 2 * np.maximum(axes, 0))
    # Where documents differ along few axes, other topics are any mixture.
    found[:, n_axes:] = frequencies[:, None] * rng.random((len(chosen), n_topics - n_axes))
    sums = found.sum(axis=0)
    topics = np.empty((n_words, n_topics), dtype)
    topics[:] = (_COMMON * all_frequencies / all_frequencies.sum() + _EVERYWHERE / n_words)[:, None]
    topics[chosen] += found / np.where(sums > 0, sums, 1)
    topics /= topics.sum(axis=0, dtype=np.float64).astype(dtype)
    return topics


def _orthonormal(columns: np.ndarray) -> np.ndarray:
    """An orthonormal basis of the columns; by their products, which takes a tenth of the time of a QR decomposition."""
    values, vectors = np.linalg.eigh(_products(columns, columns))
    info: Any = np.finfo(columns.dtype)
    kept = values > max(info.eps * values.max(initial=0), info.tiny)
    return _times(columns, vectors[:, kept] / np.sqrt(values[kept]))


# The core's products have the same bits however many threads BLAS has, and do not wait for these on a machine that is busy.


def _products(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Of the columns of two matrices, in double."""
    return _core.outer(left, right, 1)


def _times(columns: np.ndarray, small: np.ndarray) -> np.ndarray:
    return _core.scores(columns, np.ascontiguousarray(small.T, columns.dtype), 1)


def _turn(axes: np.ndarray, roots: np.ndarray) -> np.ndarray:
    """Varimax: the rotation after which each axis is large in few of the documents, which weigh the squares of `roots`."""
    n_docs, n_axes = axes.shape
    some = slice(None, None, max(1, n_docs // max(_TURNED_DOCS, 25 * n_axes)))
    axes, weights = np.ascontiguousarray(axes[some]), (roots[some] ** 2)[:, None]
    turn = np.eye(n_axes)
    for _ in range(_N_TURNS):
        now = _times(axes, turn)
        squares = now**2
        now *= squares - (weights * squares).sum(axis=0) / weights.sum()
        left, _, right = np.linalg.svd(_products(axes, now * weights))
        turn = left @ right
    return turn
