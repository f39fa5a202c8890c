"""What `train` learns from: documents, those that are held out, and what is to be learned of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mirrorlda.cli.data import held_out_part, is_corpus, n_threads_there, named, readable_twice, taken
from mirrorlda.cli.terminal import say
from mirrorlda.cli.words import words_taken

if TYPE_CHECKING:
    from mirrorlda.data.corpus.corpus import Corpus

# Kinds of targets of the tasks that have one.
TARGET_KINDS = {"auto": "auto", "regression": "numbers", "classification": "classes", "multilabel": "labels"}
# Words need so many documents, unless the user chooses.
_MIN_DOCS = 2
# Fewer classes are no list of labels.
_FEW_CLASSES = 10


@dataclass(frozen=True)
class Parts:
    """Documents to learn from, and those that are held out."""

    train: Corpus
    test: Corpus | None


def parts_of(files: tuple[str, ...], work: Path, options: dict[str, Any], cluster: Any = None) -> Parts:
    """The documents of files or of a corpus; what is made on the way is in `work`."""
    from mirrorlda.data.corpus.corpus import Corpus
    from mirrorlda.data.corpus.prepare import prepare

    task, targets = options["task"], list(options["target"]) if options["task"] != "topics" else []
    min_docs = options["min_docs"] or (_MIN_DOCS if options["text"] is not None else 1)
    options = dict(options)
    reading, words = taken(options), words_taken(options)
    columns: dict[str, Any] = {"text": options["text"], "target": targets or None}
    n_threads = n_threads_there(options["n_jobs"], cluster)
    how: dict[str, Any] = {"n_threads": n_threads, "cluster": cluster, "verbose": not options["quiet"], **reading}
    if is_corpus(files):
        corpus = Corpus(files[0])
    elif (work / "corpus" / "corpus.json").exists():
        corpus = Corpus(work / "corpus")
    else:
        corpus = prepare(
            named(readable_twice(files, work)),
            work / "corpus",
            **columns,
            target_kind=None if not targets else "numbers" if len(targets) > 1 else TARGET_KINDS[task],
            split=options["split"],
            test_fraction=0.0 if options["split"] or options["test"] else options["test_fraction"],
            seed=options["random_state"] or 0,
            **{**words, "min_docs": min_docs},
            **how,
        )
    parts = _split(corpus)
    if not options["test"]:
        return parts
    if not (work / "test" / "corpus.json").exists():
        kind = corpus.target.kind if corpus.target is not None and targets else None
        if "zero_based" in reading:
            how.setdefault("n_words", corpus.n_words)
        prepare(list(options["test"]), work / "test", **columns, target_kind=kind, vocabulary=corpus.vocabulary, **how)
    return Parts(parts.train, Corpus(work / "test"))


def _split(corpus: Corpus) -> Parts:
    """Parts of a corpus, by the names of its splits."""
    if not corpus.splits:
        return Parts(corpus, None)
    if "train" not in corpus.splits:
        raise ValueError(f"no document is for learning: the splits are {list(corpus.splits)}, expected one named 'train'")
    held_out = held_out_part(corpus.splits)
    ignored = [name for name in corpus.splits if name not in ("train", held_out)]
    if ignored:
        say(f"documents of the splits {', '.join(ignored)} are left out")
    return Parts(corpus.select(split="train"), None if held_out is None else corpus.select(split=held_out))


def task_of(corpus: Corpus, wanted: str) -> tuple[str, str]:
    """What is to be learned, and why."""
    import numpy as np

    target = corpus.target
    if target is None or wanted == "topics":
        return "topics", "what the texts are about, without a target"
    name, labelled = ", ".join(target.names), corpus.select(labelled=True)
    if not labelled.n_docs:
        raise ValueError(f"no document to learn from has a value of {name}")
    if target.kind == "classes" and len(target.values) > max(2, corpus.n_docs // 2):
        raise ValueError(f"{name} has {len(target.values):,} different values in {corpus.n_docs:,} documents: is it a class?")
    if wanted != "auto":
        return wanted, f"{name}, as asked for"
    if target.kind == "labels":
        return "multilabel", f"{name} holds lists, of {len(target.values)} different labels"
    if target.kind == "classes":
        return "classification", f"{name} has {len(target.values)} classes{_hint(target.values)}"
    some = labelled.targets(np.arange(min(labelled.n_docs, 100_000)))[0]
    if (some == some[0]).all():
        raise ValueError(f"{name} is {some[0]} in all documents: there is nothing to learn")
    if len(target.names) > 1 and np.isin(some, (0, 1)).all():
        return "multilabel", f"{name} hold 0 and 1"
    if len(target.names) == 1 and len(np.unique(some)) == 2:
        return "classification", f"{name} has two values"
    return "regression", f"{name} {'has' if len(target.names) == 1 else 'have'} numbers from {some.min():g} to {some.max():g}"


def _hint(classes: tuple[Any, ...]) -> str:
    """What classes look like that may be something else."""
    texts = [value for value in classes if isinstance(value, str)]
    for separator in (";", "|", ","):
        if len(texts) > _FEW_CLASSES and sum(separator in text for text in texts) > len(texts) / 2:
            return f" such as {texts[0]!r}; if these are several labels: --label-separator '{separator}'"
    if texts and all(text[:1].isdigit() for text in texts) and not all(text.isdigit() for text in texts):
        return f" such as {texts[0]!r}; for a regression the column must hold numbers alone"
    return ""


def known(corpus: Corpus) -> Corpus:
    """Documents that have a target; where there are none to have, all."""
    return corpus if corpus.target is None else corpus.select(labelled=True)
