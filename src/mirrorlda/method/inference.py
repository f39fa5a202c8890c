"""MAP inference: the topic proportions of documents, by unrolled mirror descent."""

from __future__ import annotations

import os
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from mirrorlda import _core
from mirrorlda.data.documents import LARGEST_COUNT, Documents, as_documents

FLOOR: float = _core.FLOOR

# The members of the core's StepRule.
_RULES = {"l1": 0, "kl": 1}
_GIVEN = 2


@dataclass(frozen=True)
class Layers:
    """How inference is unrolled: the prior, the number of layers, the rule for their steps, and where they end."""

    alpha: np.ndarray
    n_layers: int
    step_size: str | float | np.ndarray
    tol: float

    def steps(self, n_docs: int) -> tuple[int, np.ndarray | None]:
        """The core's rule and, where the steps are given, one for each document and layer."""
        if isinstance(self.step_size, str):
            return _RULES[self.step_size], None
        return _GIVEN, np.ascontiguousarray(np.broadcast_to(np.float64(self.step_size), (n_docs, self.n_layers)))


@dataclass(frozen=True)
class Trace:
    """What inference did, layer by layer.

    Attributes
    ----------
    theta : ndarray, shape (n_docs, n_topics)
        Topic proportions after the last layer.
    thetas : ndarray, shape (n_docs, n_layers + 1, n_topics)
        Those of every layer, from 1 / n_topics on.
    step_sizes : ndarray of float64, shape (n_docs, n_layers)
        Zero where a layer is the identity: no step was accepted, or the document took no further layer (`tol`).
    objective : ndarray of float64, shape (n_docs, n_layers + 1)
        Minus the log posterior, up to a constant.
    n_trials : ndarray of int32, shape (n_docs, n_layers)
        Steps computed in each layer, the last of them taken; those that the line search passes over are not counted.
        1 where the steps are given, 0 where `tol` left the layer out.
    """

    theta: np.ndarray
    thetas: np.ndarray
    step_sizes: np.ndarray
    objective: np.ndarray
    n_trials: np.ndarray


def infer(
    phi: Any,
    X: Any,
    *,
    alpha: Any = 1.001,
    n_layers: int = 10,
    step_size: Any = "l1",
    tol: float = 0.0,
    n_jobs: int | None = None,
) -> Trace:
    """Infer topic proportions by mirror descent (section 3 and Algorithm 1 of the paper).

    Parameters
    ----------
    phi : array of shape (n_words, n_topics)
        Topics as columns on the simplex. float64 is computed in float64, all else in float32. Entries below the
        floor of 1e-12 count as the floor.
    X : sparse matrix or array of shape (n_docs, n_words)
        Non-negative counts or weights.
    alpha : float or array of shape (n_topics,)
        Parameter of the Dirichlet prior of the topic proportions.
    n_layers : int
    step_size : {"l1", "kl"}, float or array of shape (n_docs, n_layers)
        Line search with the squared 1-norm or the Kullback-Leibler rule, a constant, or recorded steps to replay.
    tol : float
        A document takes no further layer once the last two lowered the objective by no more than this part of what all its
        layers so far lowered it by. 0 takes all of them, as do steps that are given.
    n_jobs : int, optional
        Threads; -1 for all cores.

    Examples
    --------
    >>> import numpy as np
    >>> import mirrorlda
    >>> phi = np.array([[0.8, 0.1], [0.1, 0.8], [0.1, 0.1]])
    >>> trace = mirrorlda.infer(phi, np.array([[9, 1, 0], [0, 0, 0]]))
    >>> trace.theta.round(2)
    array([[0.98, 0.02],
           [0.5 , 0.5 ]])
    """
    phi = check_phi(phi)
    documents = as_documents(X, phi.dtype)
    check_same_words(phi, documents)
    layers = check_layers(alpha, n_layers, step_size, tol, phi, documents.n_docs)
    engine = new_engine(phi.dtype)
    everything = np.arange(documents.n_docs)
    theta = forward(engine, phi, documents, everything, layers, keep=True, objective=True, n_threads=n_threads_of(n_jobs))
    return Trace(theta, *engine.trace())


def new_engine(dtype: np.dtype[Any]) -> _core.Engine32 | _core.Engine64:
    """Working memory for batches of one precision."""
    return _core.Engine64() if dtype == np.float64 else _core.Engine32()


def forward(
    engine: _core.Engine32 | _core.Engine64,
    phi: np.ndarray,
    documents: Documents,
    batch: np.ndarray,
    layers: Layers,
    *,
    keep: bool,
    objective: bool = False,
    frame: np.ndarray | None = None,
    n_threads: int,
) -> np.ndarray:
    """theta (n_docs, n_topics) of the documents whose numbers are in `batch`, under the topics phi, or frame[0] * phi + frame[1].

    `keep` leaves a trace in the engine, with `objective` also the exact objective of every layer, which takes more time.
    """
    rule, steps = layers.steps(len(batch))
    theta: np.ndarray = engine.forward(
        phi,
        documents.indptr,
        documents.indices,
        documents.counts,
        batch,
        layers.alpha,
        layers.n_layers,
        rule,
        layers.tol,
        steps,
        frame,
        keep,
        objective,
        n_threads,
    )
    return theta


def check_phi(phi: Any) -> np.ndarray:
    """Columns on the simplex, raised to the floor, in the precision of the computation."""
    phi = np.asarray(phi)
    if phi.ndim != 2 or phi.size == 0:
        raise ValueError(f"phi must have shape (n_words, n_topics) and not be empty, got {phi.shape}")
    phi = np.ascontiguousarray(phi, np.float64 if phi.dtype == np.float64 else np.float32)
    lowest = phi.min()
    if not lowest >= 0:
        raise ValueError(f"phi must be non-negative and not NaN; its smallest entry is {lowest}")
    sums = phi.sum(axis=0, dtype=np.float64)
    worst = int(np.argmax(np.abs(sums - 1)))
    if not abs(sums[worst] - 1) <= 1e-3:
        raise ValueError(f"columns of phi must add up to 1; column {worst} adds up to {sums[worst]}")
    floored: np.ndarray = phi if lowest >= FLOOR else np.maximum(phi, phi.dtype.type(FLOOR))
    return floored


def check_whole(name: str, value: Any) -> None:
    """A whole number of at least 1."""
    if not (isinstance(value, int | np.integer) and not isinstance(value, bool) and value >= 1):
        raise ValueError(f"{name} must be a whole number of at least 1, got {value!r}")


def check_same_words(phi: np.ndarray, documents: Documents) -> None:
    if documents.n_words != len(phi):
        raise ValueError(f"X has {documents.n_words} words, but phi has {len(phi)}")


def check_alpha(alpha: Any, n_topics: int) -> np.ndarray:
    """Dirichlet parameters (n_topics,), in double."""
    alpha = np.asarray(alpha, np.float64)
    if alpha.shape not in ((), (n_topics,)):
        raise ValueError(f"alpha must be a number or have shape ({n_topics},), got shape {alpha.shape}")
    if not ((alpha > 0).all() and (alpha <= LARGEST_COUNT).all()):
        raise ValueError(f"alpha must be positive and at most {LARGEST_COUNT:g}, got {alpha}")
    return np.ascontiguousarray(np.broadcast_to(alpha, n_topics))


def check_layers(alpha: Any, n_layers: int, step_size: Any, tol: Any, phi: np.ndarray, n_docs: int) -> Layers:
    """`Layers` for topics of phi's number and precision."""
    n_topics = phi.shape[1]
    alpha = check_alpha(alpha, n_topics)
    check_whole("n_layers", n_layers)
    if isinstance(step_size, str):
        if step_size not in _RULES:
            raise ValueError(f"step_size must be 'l1', 'kl', a number or an array, got {step_size!r}")
    else:
        step_size = np.asarray(step_size, np.float64)
        if step_size.shape not in ((), (n_docs, n_layers)):
            raise ValueError(f"step_size must have shape ({n_docs}, {n_layers}), got {step_size.shape}")
        if not (np.isfinite(step_size).all() and (step_size >= 0).all()):
            raise ValueError("step_size must be non-negative and finite")
    if not (isinstance(tol, Real) and 0 <= float(tol) < 1):
        raise ValueError(f"tol must be a number of at least 0 and below 1, got {tol!r}")
    return Layers(alpha.astype(phi.dtype), int(n_layers), step_size, float(tol))


def n_threads_of(n_jobs: int | None) -> int:
    """Threads for scikit-learn's `n_jobs`: None is 1, -1 all cores, -2 all but one."""
    if n_jobs is None:
        return 1
    if n_jobs == 0:
        raise ValueError("n_jobs must not be 0: use None or 1 for one thread, -1 for all cores")
    if n_jobs > 0:
        return n_jobs
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores + 1 + n_jobs)
