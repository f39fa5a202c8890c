"""Checkpoints: a training run on disk, so that it ends with the same bits whether or not it was interrupted."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from mirrorlda.data.files import tensors
from mirrorlda.data.files.generators import generator_as_json, generator_from_json
from mirrorlda.method.inference import Layers
from mirrorlda.method.prior import TopicUsage
from mirrorlda.training import mirror_descent
from mirrorlda.training.loop import Best, Run, Tally
from mirrorlda.training.mirror_descent import Parameters

_KIND = "checkpoint"


class Checkpoint:
    """Where, and how often, a fit saves how far it has come: at the end of every epoch, and after so many minutes.

    If the file is there, the fit goes on from it, and ends as it would have without an interruption. A fit of other documents or
    with other parameters is refused. The file stays when the fit has ended: the same fit then returns at once.

    Parameters
    ----------
    path : path of a file
    minutes : float, default=10.0

    Examples
    --------
    >>> import tempfile
    >>> from mirrorlda import Checkpoint, TopicRegressor
    >>> from mirrorlda.datasets import make_topics
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_outputs=1, random_state=0)
    >>> checkpoint = Checkpoint(tempfile.mkdtemp() + "/run.checkpoint", minutes=5)
    >>> model = TopicRegressor(random_state=0).fit(data.X, data.y, checkpoint=checkpoint)
    """

    def __init__(self, path: str | os.PathLike[str], minutes: float = 10.0) -> None:
        if not minutes >= 0:
            raise ValueError(f"minutes must be at least 0, got {minutes!r}")
        self.path, self.minutes = Path(path), minutes


@dataclass(frozen=True)
class Fitted:
    """What an earlier stage of a fit has learned."""

    parameters: Parameters
    alpha: np.ndarray


class Keeper:
    """The checkpoint of one fit, which may have several stages; without a checkpoint it keeps nothing."""

    def __init__(self, checkpoint: Checkpoint | str | os.PathLike[str] | None, *described: Any) -> None:
        """`described` is all that the fit depends on: another fit's checkpoint is refused."""
        self.stage = 0
        self.before: Fitted | None = None
        self._found: tuple[dict[str, np.ndarray], dict[str, Any]] | None = None
        self._saved_at = time.monotonic()
        self._checkpoint: Checkpoint | None = None
        if checkpoint is None:
            return
        if not isinstance(checkpoint, Checkpoint):
            checkpoint = Checkpoint(checkpoint)
        self._checkpoint, self._fingerprint = checkpoint, _fingerprint(described)
        directory = checkpoint.path.absolute().parent
        if not directory.is_dir() or not os.access(directory, os.W_OK):
            raise FileNotFoundError(f"the checkpoint cannot be written: {directory} is no directory that can be written to")
        if checkpoint.path.exists():
            self._find(checkpoint.path)

    def _find(self, path: Path) -> None:
        arrays, meta = tensors.read(path, _KIND)
        with tensors.explained(path):
            if _value(meta, "fingerprint", str) != self._fingerprint:
                raise ValueError(
                    "the checkpoint is of a fit with other parameters or other documents; "
                    "remove it, or give another path, to begin anew"
                )
            self.stage = _value(meta, "stage", int)
            self.before = _fitted(arrays, "before")
            self._found = arrays, meta

    def run(self, stage: int, layers: Layers) -> Run | None:
        """The run as it was saved, if it was in this stage; `layers` says all but the alpha."""
        if self._found is None or stage != self.stage:
            return None
        assert self._checkpoint is not None
        with tensors.explained(self._checkpoint.path):
            run = _run_from(*self._found, layers)
        self._found = None
        return run

    def save(self, run: Run, *, stage: int, before: Fitted | None, now: bool) -> None:
        """Write the run, if it is time or `now`. Training goes on where that fails, with a warning."""
        if self._checkpoint is None or not (now or time.monotonic() - self._saved_at >= 60 * self._checkpoint.minutes):
            return
        arrays, meta = _as_arrays(run)
        if before is not None:
            arrays |= _fitted_arrays("before", before.parameters, before.alpha)
        try:
            tensors.write(self._checkpoint.path, arrays, {**meta, "stage": stage, "fingerprint": self._fingerprint}, _KIND)
        except OSError as error:
            warnings.warn(
                f"{self._checkpoint.path}: the checkpoint could not be written ({error}); training goes on", stacklevel=2
            )
        self._saved_at = time.monotonic()


def _fingerprint(value: Any) -> str:
    """Of plain values, arrays, and objects by what they hold."""
    digest = sha256()

    def add(value: Any) -> None:
        if isinstance(value, np.ndarray):
            digest.update(f"{value.dtype}{value.shape}".encode() + np.ascontiguousarray(value).tobytes())
        elif isinstance(value, np.random.RandomState):
            add(value.get_state(legacy=False))
        elif isinstance(value, dict):
            for key in sorted(value, key=repr):
                add((key, value[key]))
        elif isinstance(value, list | tuple):
            digest.update(f"{len(value)} of".encode())
            for item in value:
                add(item)
        elif value is None or isinstance(value, str | int | float | bool | np.generic):
            digest.update(f"{type(value).__name__} {value!r};".encode())
        else:
            digest.update(type(value).__qualname__.encode())
            add(vars(value) if hasattr(value, "__dict__") else repr(value))

    add(value)
    return digest.hexdigest()


def _as_arrays(run: Run) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Only reads the run."""
    state, state_meta = mirror_descent.as_arrays(run.state)
    arrays = {f"state.{name}": array for name, array in state.items()}
    arrays["alpha"] = run.layers.alpha
    for name, column in zip(("scores", "losses", "y", "weights"), zip(*run.tally.latest, strict=True), strict=False):
        arrays[f"tally.{name}"] = np.concatenate(column)
    meta: dict[str, Any] = {
        "state": state_meta,
        "rng": generator_as_json(run.rng),
        "held_out": run.held_out,
        "epoch": run.epoch,
        "batch": run.batch,
        "n_steps": run.n_steps,
        "order": run.order,
        "history": {name: [_plain(value) for value in values] for name, values in run.history.items()},
        "tally": {"loss": _plain(run.tally.loss), "weight": run.tally.weight, "sizes": [len(p[1]) for p in run.tally.latest]},
        "best": None,
        "usage": None,
    }
    if run.best is not None:
        arrays |= _fitted_arrays("best", run.best.parameters, run.best.alpha)
        meta["best"] = {"score": _plain(run.best.score), "epoch": run.best.epoch}
    if run.usage is not None:
        if run.usage.counts:
            arrays["usage"] = np.concatenate(run.usage.counts)
        meta["usage"] = {"wanted": run.usage.wanted, "sizes": [len(counts) for counts in run.usage.counts]}
    return arrays, meta


def _run_from(arrays: dict[str, np.ndarray], meta: dict[str, Any], layers: Layers) -> Run:
    state_arrays = {name.removeprefix("state."): array for name, array in arrays.items() if name.startswith("state.")}
    state = mirror_descent.from_arrays(state_arrays, _value(meta, "state", dict))
    if (alpha := _array(arrays, "alpha")).shape != layers.alpha.shape or not (alpha > 0).all():
        raise ValueError(f"alpha has the shape {alpha.shape}, expected {layers.alpha.shape} of positive numbers")
    tally = _value(meta, "tally", dict)
    sizes = _sizes(tally.get("sizes"))
    columns = [_array(arrays, f"tally.{name}") for name in ("scores", "losses", "y", "weights")] if sizes else []
    history = _value(meta, "history", dict)
    run = Run(
        state=state,
        layers=replace(layers, alpha=alpha.astype(layers.alpha.dtype)),
        rng=generator_from_json(meta.get("rng")),
        held_out=_value(meta, "held_out", int),
        epoch=_value(meta, "epoch", int),
        batch=_value(meta, "batch", int),
        n_steps=_value(meta, "n_steps", int),
        order=_value(meta, "order", int),
        tally=Tally(
            _number(tally.get("loss")), _number(tally.get("weight")), list(zip(*(_cut(c, sizes) for c in columns), strict=True))
        ),
        history={name: [_number(value) for value in values] for name, values in history.items() if isinstance(values, list)},
    )
    if (best := meta.get("best")) is not None:
        fitted = _fitted(arrays, "best")
        if fitted is None or not isinstance(best, dict):
            raise ValueError("the best parameters are missing")
        run.best = Best(fitted.parameters, fitted.alpha, _number(best.get("score")), _value(best, "epoch", int))
    if meta.get("usage") is not None:
        usage = _value(meta, "usage", dict)
        run.usage = TopicUsage(_value(usage, "wanted", int))
        sizes = _sizes(usage.get("sizes"))
        run.usage.counts = _cut(_array(arrays, "usage"), sizes) if sizes else []
    return run


def _fitted_arrays(prefix: str, parameters: Parameters, alpha: np.ndarray) -> dict[str, np.ndarray]:
    arrays = {f"{prefix}.phi": parameters.phi, f"{prefix}.U": parameters.U, f"{prefix}.alpha": alpha}
    if parameters.word_weights is not None:
        arrays[f"{prefix}.word_weights"] = parameters.word_weights
    if parameters.themes is not None:
        arrays[f"{prefix}.themes"] = parameters.themes
    return arrays


def _fitted(arrays: dict[str, np.ndarray], prefix: str) -> Fitted | None:
    if f"{prefix}.phi" not in arrays:
        return None
    phi, U = _array(arrays, f"{prefix}.phi"), _array(arrays, f"{prefix}.U")
    parameters = Parameters(phi, U, arrays.get(f"{prefix}.word_weights"), arrays.get(f"{prefix}.themes"))
    return Fitted(parameters, _array(arrays, f"{prefix}.alpha"))


def _plain(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else float(value)


def _number(value: Any) -> float:
    if value is not None and type(value) not in (int, float):
        raise ValueError(f"found {type(value).__name__} where a number was expected")
    return math.nan if value is None else float(value)


def _value(meta: dict[str, Any], name: str, kind: type) -> Any:
    if type(meta.get(name)) is not kind or (kind is int and not 0 <= meta[name] < 2**63):
        raise ValueError(f"{name!r} is missing or not of the kind {kind.__name__}")
    return meta[name]


def _array(arrays: dict[str, np.ndarray], name: str) -> np.ndarray:
    if name not in arrays:
        raise ValueError(f"the array {name!r} is missing")
    return arrays[name]


def _sizes(value: Any) -> Sequence[int]:
    if not isinstance(value, list) or not all(type(size) is int and size > 0 for size in value):
        raise ValueError("found no list of sizes where one was expected")
    return value


def _cut(array: np.ndarray, sizes: Iterable[int]) -> list[np.ndarray]:
    ends = np.cumsum(list(sizes))
    if not len(ends) or ends[-1] != len(array):
        raise ValueError(f"found {len(array)} documents in parts that have {ends[-1] if len(ends) else 0}")
    return np.split(array, ends[:-1])
