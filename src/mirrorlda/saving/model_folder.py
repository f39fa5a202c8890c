"""What training leaves in a folder: the model, how it was made, and how good it is.

model.mirrorlda      the model, as `mirrorlda.save` writes it
about.json           task, columns, measures on held-out documents, configuration
config.toml          the configuration as the command line takes it
training/            what a training that was interrupted goes on from
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import mirrorlda
from mirrorlda.data.files.atomic import replaced
from mirrorlda.data.files.tensors import FileFormatError
from mirrorlda.evaluation import TASKS, Evaluation
from mirrorlda.saving import save_load

_VERSION = 1


@dataclass(frozen=True)
class About:
    """How a model was made, and how good it is.

    Attributes
    ----------
    task : {"regression", "classification", "multilabel", "topics"}
    text : str or None
        Column of the text in the files that it was trained on.
    targets : tuple of str
        Columns of the target.
    n_docs : int
        Documents that it learned from.
    seconds : float
        That learning took.
    finished : bool
        False if training was interrupted.
    evaluation : Evaluation or None
        On held-out documents.
    configuration : dict
        From options to their values.
    """

    task: str
    text: str | None
    targets: tuple[str, ...]
    n_docs: int
    seconds: float
    finished: bool = True
    evaluation: Evaluation | None = None
    configuration: Mapping[str, Any] = field(default_factory=dict)


def write(folder: str | os.PathLike[str], model: Any, about: About, configuration: str) -> None:
    """Put a model and what is known of it into a folder; what was there before is replaced, the model first."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    save_load.save(model, folder / "model.mirrorlda")
    describe(folder, about, configuration)


def describe(folder: str | os.PathLike[str], about: About, configuration: str) -> None:
    """Say what is known of the model in a folder, in place of what was said before."""
    folder = Path(folder)
    described = {
        "version": _VERSION,
        "package": mirrorlda.__version__,
        "model": _digest(folder / "model.mirrorlda"),
        "task": about.task,
        "text": about.text,
        "targets": list(about.targets),
        "n_docs": about.n_docs,
        "seconds": about.seconds,
        "finished": about.finished,
        "evaluation": None if about.evaluation is None else about.evaluation.as_json(),
        "configuration": dict(about.configuration),
    }
    for name, text in (("about.json", json.dumps(described, ensure_ascii=False, indent=1)), ("config.toml", configuration)):
        with replaced(folder / name) as file:
            file.write(text.encode())


def read(path: str | os.PathLike[str]) -> tuple[Any, About | None]:
    """A model, and what is known of it: of a folder that `write` made, or of a file of a model alone."""
    path = Path(path)
    model = save_load.load(path)
    if not path.is_dir() or not (path / "about.json").is_file():
        return model, None
    try:
        found = json.loads((path / "about.json").read_bytes())
        if not isinstance(found, dict) or type(found.get("version")) is not int:
            raise ValueError("expected an object with a version")
        if found["version"] > _VERSION:
            raise ValueError(f"version {found['version']} is of a later release: upgrade mirrorlda")
        if found.get("model") != _digest(path / "model.mirrorlda"):
            return model, None
        return model, _about(found)
    except (ValueError, RecursionError) as error:
        raise FileFormatError(f"{path / 'about.json'}: {error}") from None


def _about(found: dict[str, Any]) -> About:
    kinds: dict[str, Any] = {
        "task": str,
        "text": str | None,
        "targets": list,
        "n_docs": int,
        "seconds": float | int,
        "finished": bool,
        "configuration": dict,
    }
    for name, kind in kinds.items():
        if name not in found or not isinstance(found[name], kind):
            raise ValueError(f"{name!r} is missing or not of its kind")
    if found["task"] not in TASKS or not all(isinstance(target, str) for target in found["targets"]):
        raise ValueError("the task or a target is not of its kind")
    evaluation = None if found.get("evaluation") is None else Evaluation.from_json(found["evaluation"])
    values = {name: found[name] for name in kinds} | {"targets": tuple(found["targets"])}
    return About(**values, evaluation=evaluation)


def _digest(path: Path) -> str:
    digest = blake2b(digest_size=16)
    with open(path, "rb") as file:
        while part := file.read(1 << 20):
            digest.update(part)
    return digest.hexdigest()
