"""Which words and topics moved a prediction."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict, dataclass, replace
from itertools import groupby, pairwise
from typing import Any
from unicodedata import normalize

import numpy as np
import scipy.sparse as sp

from mirrorlda.data.corpus.corpus import Corpus
from mirrorlda.data.documents import Documents, as_documents
from mirrorlda.data.parts import chunks
from mirrorlda.data.text import TextDefinition
from mirrorlda.inspect.notebook import explanation_page
from mirrorlda.inspect.text_table import in_lines, text_table
from mirrorlda.inspect.topics import relevant_words, signed
from mirrorlda.method import effects as of_topics
from mirrorlda.method.fitted_model import FittedModel, model_of
from mirrorlda.method.inference import forward, new_engine
from mirrorlda.method.targets.record import Output

# Entries of documents that lack one word each, inferred at a time.
_ENTRIES = 2**20
_SHOWN_WORDS, _SHOWN_TOPICS = 15, 8


@dataclass(frozen=True)
class WordEffect:
    """What one word of a document does to the value.

    Attributes
    ----------
    word : str
        Its name, or its number where the model knows no names.
    count : float
        As the estimator takes it: in a pipeline, after the steps before it.
    effect : float
        Gradient of the value with respect to the scaled and weighted count, times that count.
    left_out : float, or None
        The value minus that of the document without the word.
    topic : int
        The topic that most probably gave this document the word.
    """

    word: str
    count: float
    effect: float
    left_out: float | None
    topic: int


@dataclass(frozen=True)
class TopicEffect:
    """What one topic of a document does to the value.

    Attributes
    ----------
    topic : int
    share : float
        Its part of the document.
    effect : float
        The value minus that of the document without the topic: with each count reduced by the part of it that is the topic's.
    words : tuple of str
        Its most relevant words.
    """

    topic: int
    share: float
    effect: float
    words: tuple[str, ...]


@dataclass(frozen=True)
class Token:
    """A piece of the text: a word, or what is between two words.

    Attributes
    ----------
    text : str
    effect : float, or None
        Of a word, its effect divided by its occurrences; the two words of a bigram have half of its effect each. None for what
        the model does not know.
    """

    text: str
    effect: float | None


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Why a model says what it says of a document.

    Attributes
    ----------
    output : str
        The target, class or label whose value is explained.
    unit : {"prediction", "log odds", "score"}
        In the unit of y; ln(p / (1 - p)); of a classifier with a response of your own, the score.
    value : float
    empty : float
        The value of a document without words.
    average : float
        The value at the average topic proportions, `topic_shares_`.
    prediction : dict
        Everything that the model predicts for the document, as `predict_files` names it.
    theta : ndarray of float64, shape (n_topics,)
    words : tuple of WordEffect
        The largest effects first, whatever their sign.
    topics : tuple of TopicEffect
        All topics, the largest effects first.
    overlap : float
        What the topics do together and none of them alone: with it their effects add up to ``value - empty``.
    tokens : tuple of Token, or None
        The text in pieces that join to it, in Unicode's normalisation form C. None where counts were given, or where the words
        are not counted by this package.
    """

    output: str
    unit: str
    value: float
    empty: float
    average: float
    prediction: dict[str, Any]
    theta: np.ndarray
    words: tuple[WordEffect, ...]
    topics: tuple[TopicEffect, ...]
    overlap: float
    tokens: tuple[Token, ...] | None

    def as_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {
            **{name: getattr(self, name) for name in ("output", "unit", "value", "empty", "average", "overlap", "prediction")},
            "theta": self.theta.tolist(),
            "words": [asdict(word) for word in self.words],
            "topics": [{**asdict(topic), "words": list(topic.words)} for topic in self.topics],
            "tokens": None if self.tokens is None else [asdict(token) for token in self.tokens],
        }

    def __repr__(self) -> str:
        return f"<Explanation of {self.output!r}: {self.unit} {self.value:.4g}, {len(self.words)} words>"

    def _repr_html_(self) -> str:
        return explanation_page(self)

    def __str__(self) -> str:
        head = [
            f"{self.unit} {self.value:.4g}" if self.output == self.unit else f"{self.output}: {self.unit} {self.value:.4g}",
            f"without words {self.empty:.4g}, average document {self.average:.4g}",
        ]
        words, topics = self.words[:_SHOWN_WORDS], self.topics[:_SHOWN_TOPICS]
        columns = [
            ("word", [word.word for word in words]),
            ("count", [f"{word.count:g}" for word in words]),
            ("effect", signed([word.effect for word in words])),
            ("left out", signed([word.left_out for word in words if word.left_out is not None])),
            ("topic", [str(word.topic) for word in words]),
        ]
        lines = [*head, "", *text_table([column for column in columns if len(column[1]) == len(words)])]
        if len(self.words) > len(words):
            lines.append(f"and {len(self.words) - len(words)} more words")
        lines += ["", *text_table(_topic_columns(topics))]
        if len(self.topics) > len(topics):
            lines.append(f"and {len(self.topics) - len(topics)} more topics")
        lines.append(f"overlap of topics {self.overlap:+.3g}")
        return "\n".join(lines)


def explain(model: Any, document: Any, *, output: Any = None, leave_one_out: bool = True) -> Explanation:
    """Which words and topics of a document moved the prediction, and how far.

    The value that is explained is the predicted number; of classes, the log odds of one against all others; of labels, the log
    odds of one. The effect of a word is the gradient of the value with respect to the word's count, as inference sees it, times
    that count: exact for a small change of the count, with the step sizes of inference held. `left_out` is what happens when the
    word is not there at all, and the line search free to take other steps; effects of topics are of this kind too. All is
    computed in double.

    Parameters
    ----------
    model : fitted TopicClassifier, TopicRegressor, or Pipeline that ends with one
    document : str, or one row of counts
        A text needs a model with a vocabulary: one fitted on a corpus made from text, or a pipeline. Counts go through the steps
        of a pipeline that are between its vectorizer and its estimator; where its first step takes counts, through all of them.
    output : str, optional
        The name of a target, class or label. By default the first target; the predicted class, of two the second; the most
        probable label.
    leave_one_out : bool
        Whether inference is run anew without each word. It takes as long as a prediction for as many documents as there are
        distinct words.

    Returns
    -------
    Explanation

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from mirrorlda import TextVectorizer, TopicClassifier
    >>> from mirrorlda.explain import explain
    >>> texts, y = ["A clean, quiet room.", "A dirty, noisy room!"] * 50, ["good", "bad"] * 50
    >>> model = make_pipeline(TextVectorizer(), TopicClassifier(n_topics=2, random_state=0)).fit(texts, y)
    >>> found = explain(model, "Quiet room, but dirty")
    >>> found.output, found.unit
    ('good', 'log odds')
    >>> sorted((word.word, word.effect > 0) for word in found.words[:2])
    [('dirty', False), ('quiet', True)]
    >>> [token.text for token in found.tokens if token.effect is None]
    [' ', ', ', 'but', ' ']
    """
    read = model_of(model)
    if not read.is_supervised:
        raise ValueError(
            f"a {read.kind} predicts nothing that could be explained: "
            "give a TopicClassifier or TopicRegressor; transform gives a document's topics"
        )
    is_text = isinstance(document, str)
    X = read.count([document]) if is_text else _row(document)
    X = (X if read.scale is None else read.scale(X)).astype(np.float64)
    counts = as_documents(X if sp.issparse(X) else np.asarray(X), np.float64).counts
    seen = read.check(X)
    present = seen.counts > 0
    counts = counts[present]
    seen = replace(seen, indptr=np.array([0, len(counts)]), indices=seen.indices[present], counts=seen.counts[present])

    theta, chosen, effects = _effects(read, seen, output)
    themes = np.ascontiguousarray(np.asarray(read.components, np.float64).T)
    parts = of_topics.parts_of(seen, themes, theta[None])
    by_topic = of_topics.left_out(
        read.encoder, read.components, lambda theta: _values(read, chosen, theta)[:, None], seen, theta[None]
    )
    shares = read.shares / read.shares.sum()
    value, average = float(by_topic.values[0, 0]), float(_values(read, chosen, shares[None])[0])
    topic_effects = by_topic.effects[0, 0]
    names = read.names
    words = [str(word) if names is None else names[word] for word in seen.indices]
    without = value - _without_each(read, seen, chosen) if leave_one_out else [None] * len(words)
    described = zip(words, counts.tolist(), effects.tolist(), map(_plain, without), parts.argmax(axis=1).tolist(), strict=True)
    relevant = relevant_words(read.components, shares, names, n_words=5)
    return Explanation(
        output=chosen.name,
        unit=chosen.unit,
        value=value,
        empty=float(by_topic.empty[0]),
        average=average,
        prediction={name: column[:1].tolist()[0] for name, column in read.columns(theta[None]).items()},
        theta=theta,
        words=tuple(sorted((WordEffect(*word) for word in described), key=lambda word: -abs(word.effect))),
        topics=tuple(
            TopicEffect(k, float(theta[k]), float(topic_effects[k]), tuple(relevant[k]))
            for k in np.argsort(-np.abs(topic_effects), kind="stable").tolist()
        ),
        overlap=float(by_topic.overlap[0, 0]),
        tokens=_tokens(document, read.vocabulary.definition, dict(zip(words, effects.tolist(), strict=True)), set(names or ()))
        if is_text and read.vocabulary is not None
        else None,
    )


def _row(document: Any) -> Any:
    """Counts with one row."""
    if isinstance(document, list | tuple) and document and isinstance(document[0], str):
        raise ValueError(
            f"document must be one text or one row of counts, got {len(document)} texts in a {type(document).__name__}"
        )
    if isinstance(document, Corpus):
        raise ValueError("document must be one text or one row of counts, got a corpus: give corpus.matrix([number])")
    if hasattr(document, "to_frame"):
        document = document.to_frame().T
    elif not hasattr(document, "shape"):
        document = np.asarray(document)
    if len(document.shape) == 1:
        document = document.reshape(1, -1)
    if len(document.shape) != 2 or document.shape[0] != 1:
        raise ValueError(f"document must be one text or one row of counts, got an array of shape {document.shape}")
    return document


def _effects(read: FittedModel, seen: Documents, output: Any) -> tuple[np.ndarray, Output, np.ndarray]:
    """theta of one document, the output that is explained, and the effect of each word."""
    encoder = read.encoder
    weighted = encoder.weighted(seen)
    phi, engine = encoder.phi(np.float64), new_engine(np.dtype(np.float64))
    theta = forward(engine, phi, weighted, np.arange(1), encoder.layers, keep=True, n_threads=1)
    chosen = read.output(output, theta[0])
    gradient = _gradient(read, chosen, theta[0])
    # theta stays on the simplex, where what all topics have in common has no effect, but would cost digits.
    centred = np.ascontiguousarray(gradient - gradient.mean())[None]
    grad_counts = engine.reverse(centred, None, weighted.words_of(np.arange(1)), True, 1)[1]
    return theta[0], chosen, grad_counts * weighted.counts


def _values(read: FittedModel, chosen: Output, theta: np.ndarray) -> np.ndarray:
    """Of documents with these topic proportions, (n_docs,)."""
    return chosen.of_scores(theta @ np.asarray(read.U, np.float64).T)


def _gradient(read: FittedModel, chosen: Output, theta: np.ndarray) -> np.ndarray:
    """Of one document's value with respect to theta, (n_topics,)."""
    U = np.asarray(read.U, np.float64)
    gradient: np.ndarray = chosen.slopes(U @ theta) @ U
    return gradient


def _without_each(read: FittedModel, seen: Documents, chosen: Output) -> np.ndarray:
    """Values of the document without its first word, without its second, ..."""
    n_words = len(seen.indices)
    values = np.empty(n_words)
    for numbers in chunks(n_words, max(1, _ENTRIES // max(1, n_words))):
        stays = np.arange(n_words) != numbers[:, None]
        entries = np.broadcast_to(np.arange(n_words), stays.shape)[stays]
        indptr = np.arange(len(numbers) + 1, dtype=np.int64) * (n_words - 1)
        without = Documents(indptr, seen.indices[entries], seen.counts[entries], seen.n_words)
        values[numbers] = _values(read, chosen, read.encoder.theta(without))
    return values


def _plain(value: Any) -> float | None:
    return None if value is None else float(value)


def _tokens(text: str, definition: TextDefinition, effects: dict[str, float], names: set[str]) -> tuple[Token, ...]:
    """The pieces of the text, with the effects of words that are among `names`; those without an entry have the effect 0."""
    text, cased = normalize("NFC", text), TextDefinition(lowercase=False)
    is_word = {character: bool(cased.words(character)) for character in set(text)}
    pieces = [(word, "".join(characters)) for word, characters in groupby(text, is_word.__getitem__)]

    # Lower case depends on what stands around a word, so the words are those of the whole text.
    single = TextDefinition(definition.lowercase)
    stop_words = {word for entry in definition.stop_words for word in single.words(entry)}
    counted = [[word] if word not in stop_words else [] for word in single.words(text)]
    if definition.bigrams:
        kept = [found for found in counted if found]
        for first, second in pairwise([(found, found[0]) for found in kept]):
            bigram = f"{first[1]} {second[1]}"
            first[0].append(bigram)
            second[0].append(bigram)
    n_places = Counter(word for found in counted for word in found)
    remaining = iter(counted)
    tokens = []
    for word, piece in pieces:
        known = [effects.get(name, 0.0) / n_places[name] for name in next(remaining) if name in names] if word else []
        tokens.append(Token(piece, sum(known) if known else None))
    return tuple(tokens)


def _topic_columns(topics: tuple[TopicEffect, ...]) -> list[tuple[str, list[str]]]:
    return [
        ("topic", [str(topic.topic) for topic in topics]),
        ("share", [f"{topic.share:.1%}" for topic in topics]),
        ("effect", signed([topic.effect for topic in topics])),
        ("words", in_lines(topic.words for topic in topics)),
    ]
