"""A page about a trained model, one HTML file that needs nothing else: what it learned, how good it is, and the model itself."""

from __future__ import annotations

import html
import json
import os
import re
from collections.abc import Iterable, Mapping
from importlib import resources
from typing import Any, BinaryIO

from mirrorlda.data.files.atomic import AnyPath, replaced
from mirrorlda.report.content import content

__all__ = ["report"]

# Two that give names to the others, and those of the page, which share one scope.
_SCRIPTS = ("model.js", "charts.js")
_PAGE = ("pieces.js", "try.js", "topics.js", "quality.js", "page.js")
# What would end a script or a line of one, and halves of characters, which UTF-8 has no bytes for.
_UNSAFE = re.compile("[<>&\u2028\u2029\ud800-\udfff]")


def report(
    model: Any,
    path: AnyPath | BinaryIO,
    *,
    evaluation: Any = None,
    documents: Iterable[str] | None = None,
    truths: Any = None,
    title: str | None = None,
    configuration: Mapping[str, Any] | None = None,
    max_words: int | None = None,
) -> None:
    """Write a page about a model: its topics, what they say of the target, how good it is, and the model, to try on a text.

    The page is one file that loads nothing and sends nothing. It holds the topics, of the most frequent words, so who has the
    page has the model; of documents it holds only what `documents` gives it.

    Parameters
    ----------
    model : fitted TopicModel, TopicClassifier or TopicRegressor, or Pipeline that ends with one
        Texts can be tried where the model counts words itself: one that was fitted on a corpus made from text, or a pipeline of
        a `TextVectorizer` and an estimator.
    path : str, path or binary file object
        The file; one that is named is there in full or not at all.
    evaluation : Evaluation, optional
        How good the model is, from `mirrorlda.evaluation.evaluate`.
    documents : iterable of str, optional
        Texts to show, at most three with each topic: those that have most of it.
    truths : sequence, optional
        Their targets.
    title : str, optional
    configuration : mapping from str to numbers, strings or lists of them, optional
        How the model came about, beside the parameters of the estimator, which the page has anyway. `n_docs` is the number of
        documents that it learned from, `seconds` how long that took. What is in a mapping among the values is shown on demand.
    max_words : int, optional
        Words that the page knows, the most frequent; by default as many as keep it below some 4 MB.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from mirrorlda import TopicClassifier
    >>> from mirrorlda.datasets import make_topics
    >>> from mirrorlda.report import report
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_classes=2, random_state=0)
    >>> path = Path(mkdtemp()) / "model.html"
    >>> report(TopicClassifier(n_topics=3, random_state=0).fit(data.X, data.y), path, title="Three topics")
    >>> "<title>Three topics</title>" in path.read_text(encoding="utf-8")
    True
    """
    data = content(
        model,
        evaluation=evaluation,
        documents=documents,
        truths=truths,
        title=title,
        configuration=configuration,
        max_words=max_words,
    )
    page = assembled(data).encode("utf-8")
    if isinstance(path, str | bytes | os.PathLike):
        with replaced(path) as file:
            file.write(page)
    else:
        path.write(page)


def assembled(data: Mapping[str, Any]) -> str:
    """The page of this data, as `content` gives it."""
    pieces = {
        "title": html.escape(str(data["title"]).encode("utf-8", "replace").decode("utf-8")),
        "style": _read("page.css"),
        "data": as_script(data),
        "script": "\n".join([*map(_read, _SCRIPTS), "(() => {", *map(_read, _PAGE), "})();"]),
    }
    return re.sub(r"\{\{(title|style|data|script)\}\}", lambda place: pieces[place[1]], _read("page.html"))


def as_script(data: Any) -> str:
    """JSON that can stand in a script of a page."""
    text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return _UNSAFE.sub(lambda c: f"\\u{ord(c[0]):04x}", text)


def _read(name: str) -> str:
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")
