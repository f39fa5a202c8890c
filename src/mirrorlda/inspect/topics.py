"""Reading a model's topics: their most relevant words, and a table of them for people."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from mirrorlda.inspect.text_table import in_lines, text_table
from mirrorlda.method.fitted_model import FittedModel, estimator_of, model_of

# Documents of a corpus that are read at a time.
_READ_DOCS = 16_384
# So many words are looked at for each one that is shown: many overlap with one that is shown already.
_CANDIDATES = 8
# A document of so many words shows a topic half as well as a long one with the same share.
_FEW_WORDS = 20


def relevant_words(
    components: Any, shares: Any, names: Any = None, *, n_words: int = 10, relevance: float = 0.5
) -> list[list[str]]:
    """Most relevant words of each topic, the most relevant first.

    The relevance of a word w to a topic t is ``p(w|t)**relevance * ln(p(w|t) / p(w))``, with p(w) the mean of all topics,
    weighted by their shares of the corpus. From a relevance of 0.5 to 1 the power of the logarithm falls from 1 to 0. The most
    probable words of a supervised topic are stop words, those with the largest lift are rare; in between are those that people
    read a topic by. A phrase, its words, and phrases that overlap with it are not shown together: the most relevant stays.

    Parameters
    ----------
    components : array of shape (n_topics, n_words)
        Topics as rows, as in `components_`.
    shares : array of shape (n_topics,)
        How much of the corpus each topic has, as in `topic_shares_`.
    names : sequence of n_words strings or Vocabulary, optional
        What the words are called; by default their numbers.
    n_words : int
        Words of each topic, fewer where there are fewer.
    relevance : float
        Between 0 (lift alone) and 1 (probability alone).

    Returns
    -------
    list of lists of str

    Examples
    --------
    >>> from mirrorlda.topics import relevant_words
    >>> components = [[0.6, 0.3, 0.1], [0.6, 0.1, 0.3]]
    >>> relevant_words(components, [0.5, 0.5], ["the", "good", "bad"], n_words=2)
    [['good', 'the'], ['bad', 'the']]
    """
    components, shares = np.asarray(components, np.float64), np.asarray(shares, np.float64)
    if components.ndim != 2:
        raise ValueError(f"components must have shape (n_topics, n_words), got {components.shape}")
    n_topics, size = components.shape
    if shares.shape != (n_topics,):
        raise ValueError(f"shares must have shape ({n_topics},), one for each topic of components, got {shares.shape}")
    if not ((shares >= 0).all() and 0 < shares.sum() < np.inf):
        raise ValueError("shares must be non-negative and finite, and not all zero")
    names = getattr(names, "words", names)
    if names is not None and len(names) != size:
        raise ValueError(f"names has {len(names)} entries, but components has {size} words")
    if n_words < 1:
        raise ValueError(f"n_words must be at least 1, got {n_words}")
    if not 0 <= relevance <= 1:
        raise ValueError(f"relevance must be between 0 and 1, got {relevance}")

    known = _known(names)
    tiny, power = np.finfo(np.float64).tiny, min(1.0, 2 - 2 * relevance)
    mean = np.maximum(shares @ components / shares.sum(), tiny)
    found = []
    for topic in components:
        p = np.maximum(topic, tiny)
        relevances = p**relevance
        if power:
            lift = np.log(p / mean)
            relevances *= np.where(lift > 0, np.abs(lift) ** power, lift)
        found.append(_apart(relevances, names, known, n_words))
    return found


def _known(names: Any) -> set[str]:
    """All names, to tell words from phrases; empty if no name has a space. A name such as "word 7" has no word that is a name."""
    return set(names) if names is not None and any(" " in str(name) for name in names) else set()


def _apart(values: np.ndarray, names: Any, known: set[str], n: int, least: float = -np.inf) -> list[str]:
    """Names of the n largest values above `least`, the largest first, without those that share a word with an earlier one.

    A phrase then stands neither beside its own words nor beside a phrase that overlaps with it.
    """
    found, seen = list[str](), set[str]()
    for word in _largest(values, min(_CANDIDATES * n, len(values))):
        name = str(word if names is None else names[word])
        words = {name, *known.intersection(name.split(" "))}
        if values[word] > least and seen.isdisjoint(words):
            found.append(name)
            seen.update(words)
        if len(found) == n:
            break
    return found


def describe(model: Any, names: Any = None, *, n_words: int = 8, relevance: float = 0.5) -> str:
    """A table of a fitted model's topics, a line each, ordered by what they stand for.

    Each topic comes with its share of the documents, the mean of its `effects`, their quantiles of 10 % and 90 % over documents,
    its words, and those of its words that raise or lower the prediction most. Topics of numbers are ordered by the effect on the
    first target, those of two classes by the effect for the second, the largest first. With more classes, and with labels, a
    topic is with the one that it speaks for most, again the largest effect first. Topics of a `TopicModel` have no effect and are
    ordered by their share.

    Parameters
    ----------
    model : TopicModel, TopicClassifier, TopicRegressor, or Pipeline that ends with one
    names, n_words, relevance
        As for `relevant_words`; names are by default those of the corpus or data frame that the model was fitted to, or of the
        pipeline's vectorizer.

    Returns
    -------
    str

    Examples
    --------
    >>> from mirrorlda import TopicRegressor
    >>> from mirrorlda.datasets import make_topics
    >>> from mirrorlda.topics import describe
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_outputs=1, random_state=0)
    >>> model = TopicRegressor(n_topics=3, random_state=0).fit(data.X, data.y)
    >>> table = describe(model, n_words=4)
    >>> table.splitlines()[0].split("  ")[:3]
    ['topic', 'share', 'effect']
    >>> len(table.splitlines())
    4
    """
    found = topic_table(_read(model), names, n_words=n_words, relevance=relevance)
    columns = [("topic", [str(topic) for topic in found.topics]), ("share", [f"{share:.1%}" for share in found.shares])]
    columns += [(title, signed(cells) if isinstance(cells, np.ndarray) else cells) for title, cells in found.effect_columns()]
    columns += [("words", in_lines(found.words))]
    columns += [(title, in_lines(cells)) for title, cells in found.moving_columns()]
    return "\n".join(text_table(columns, left=("for", "words", "raise", "lower", RANGE)))


# What the column of quantiles is called.
RANGE = "10 % to 90 %"


@dataclass(frozen=True)
class TopicTable:
    """What people read of a model's topics, in the order of what these stand for: made once, shown in several ways.

    Attributes
    ----------
    topics : list of int
    shares : ndarray of shape (n_topics,)
    words : list of lists of str
        The most relevant ones.
    effect_names : list of str
        What the effects are on: targets, classes or labels.
    effects : ndarray of shape (len(effect_names), n_topics)
        Of the mean document.
    ranges : ndarray of shape (2, len(effect_names), n_topics), or None
        Quantiles of 10 % and 90 % of the effects over documents.
    are_classes : bool
        Whether the names are classes or labels, each topic with one that it speaks for most.
    raising, lowering : lists of lists of str
        Words of each topic that raise the first target, or what the topic speaks for most, and those that lower it.
    """

    topics: list[int]
    shares: np.ndarray
    words: list[list[str]]
    effect_names: list[str]
    effects: np.ndarray
    ranges: np.ndarray | None
    are_classes: bool
    raising: list[list[str]]
    lowering: list[list[str]]

    @property
    def is_for_one(self) -> bool:
        """Whether each topic is shown with one of several classes or labels, that which it speaks for most."""
        return len(self.effect_names) > 1 and self.are_classes

    def effect_columns(self) -> list[tuple[str, np.ndarray | list[str]]]:
        """Titled columns of the effects: one of each target, or the class or label that a topic speaks for most."""
        names, values = self.effect_names, self.effects
        if self.is_for_one:
            rows, each = values.argmax(axis=0), np.arange(values.shape[1])
            found: list[tuple[str, np.ndarray | list[str]]] = [
                ("for", [names[row] for row in rows]),
                ("effect", values[rows, each]),
            ]
            return found if self.ranges is None else [*found, (RANGE, _ranges(self.ranges[:, rows, each]))]
        titles = [f"for {name}" if self.are_classes else f"effect on {name}" for name in names]
        if names == ["prediction"]:
            titles = ["effect"]
        columns: list[tuple[str, np.ndarray | list[str]]] = list(zip(titles, values, strict=True))
        return columns if self.ranges is None or len(names) != 1 else [*columns, (RANGE, _ranges(self.ranges[:, 0]))]

    def moving_columns(self) -> list[tuple[str, list[list[str]]]]:
        """Titled columns of the words that raise and lower the prediction."""
        return [("raise", self.raising), ("lower", self.lowering)] if self.effect_names else []


def topic_table(model: FittedModel, names: Any = None, *, n_words: int = 8, relevance: float = 0.5) -> TopicTable:
    """The table of a model's topics; `names` are by default those of the model."""
    order, (effect_names, values) = model.order(), model.effects()
    names = model.names if names is None else getattr(names, "words", names)
    words = relevant_words(model.components, model.shares, names, n_words=n_words, relevance=relevance)
    ranges = model.effect_ranges()
    raising, lowering = _moving_words(model, values, names, max(1, n_words // 2))
    return TopicTable(
        topics=order,
        shares=model.shares[order],
        words=[words[topic] for topic in order],
        effect_names=effect_names,
        effects=values[:, order],
        ranges=None if ranges is None else ranges[:, :, order],
        are_classes=model.targets.task in ("classification", "multilabel"),
        raising=[raising[topic] for topic in order],
        lowering=[lowering[topic] for topic in order],
    )


def _moving_words(model: FittedModel, effects: np.ndarray, names: Any, n_words: int) -> tuple[list[list[str]], list[list[str]]]:
    """Words of each topic that raise, and that lower, the value that it has most effect for: as often as they are the topic's.

    They are among those that the topic has more often than all topics have.
    """
    if not len(effects):
        return [[] for _ in range(model.n_topics)], [[] for _ in range(model.n_topics)]
    by_word = model.word_effects()
    rows = effects.argmax(axis=0) if len(effects) > 1 and model.targets.task != "regression" else np.zeros(model.n_topics, int)
    components = np.asarray(model.components, np.float64)
    mean = np.maximum(model.shares @ components / model.shares.sum(), np.finfo(np.float64).tiny)
    known = _known(names)
    found: tuple[list[list[str]], list[list[str]]] = [], []
    for topic, row in zip(components, rows, strict=True):
        moved = np.where(topic > mean, topic * (topic / mean) * by_word[row], 0.0)
        for side, words in zip((moved, -moved), found, strict=True):
            # What is a twentieth of the strongest is nothing to speak of.
            words.append(_apart(side, names, known, n_words, 0.05 * np.abs(moved).max()))
    return found


def _ranges(ends: np.ndarray) -> list[str]:
    """From the lower to the upper, in as many decimals as the largest of them needs."""
    low, high = signed(ends.ravel())[: ends.shape[1]], signed(ends.ravel())[ends.shape[1] :]
    return [f"{a} to {b}" for a, b in zip(low, high, strict=True)]


def effects(model: Any) -> tuple[list[str], np.ndarray]:
    """What each topic does to the prediction: what is lost, on average, when its part of the words of a document goes.

    The effect on a document is its prediction less that of the document with each count reduced by the part of it that is the
    topic's; these are means over (at most 1,000) training documents. Of numbers the effect is in their unit; of two classes it is
    in log odds of the second; of more classes in the logarithm of a class's probability over the mean of all classes; of labels
    in log odds of each. Of a model from a file of an earlier version it is how far a document of the topic alone is from the
    average document.

    Parameters
    ----------
    model : fitted TopicModel, TopicClassifier or TopicRegressor

    Returns
    -------
    names : list of n_rows strings
        The targets, classes or labels that the rows are of; of two classes the second; none for a `TopicModel`.
    effects : ndarray of shape (n_rows, n_topics)

    Examples
    --------
    >>> from mirrorlda import TopicRegressor
    >>> from mirrorlda.datasets import make_topics
    >>> from mirrorlda.topics import effects
    >>> data = make_topics(n_docs=600, n_words=60, n_topics=3, n_outputs=1, random_state=0)
    >>> names, values = effects(TopicRegressor(n_topics=3, random_state=0).fit(data.X, data.y))
    >>> names, values.shape
    (['prediction'], (1, 3))
    """
    return _read(model).effects()


def typical_documents(model: Any, X: Any, *, n_docs: int = 3) -> np.ndarray:
    """For each topic the numbers of the documents that show it best, (n_topics, n_docs), the best first.

    These are documents with much of the topic, and long enough to say so: the share counts n / (n + 20) in a document of n words.

    Parameters
    ----------
    model : fitted TopicModel, TopicClassifier or TopicRegressor, or Pipeline that ends with one
    X : sparse matrix or array of shape (n_docs, n_words), Corpus, or texts for a model that counts words
    n_docs : int
        Fewer where X has no more.

    Examples
    --------
    >>> from mirrorlda import TopicModel
    >>> from mirrorlda.datasets import make_topics
    >>> from mirrorlda.topics import typical_documents
    >>> X = make_topics(n_docs=100, n_words=30, n_topics=3, random_state=0).X
    >>> typical_documents(TopicModel(n_topics=3, n_epochs=5, random_state=0).fit(X), X, n_docs=2).shape
    (3, 2)
    """
    if not (isinstance(n_docs, int) and n_docs >= 1):
        raise ValueError(f"n_docs must be a whole number of at least 1, got {n_docs!r}")
    read = _read(model)
    counts = read.counted(X)
    theta = np.asarray(read.proportions(counts), np.float64)
    return best_documents(theta, lengths_of(counts), n_docs)


def best_documents(theta: np.ndarray, lengths: np.ndarray, n_docs: int) -> np.ndarray:
    """As `typical_documents`, of documents with these proportions and numbers of words."""
    shown = theta * (lengths / (lengths + _FEW_WORDS))[:, None]
    best: np.ndarray = np.argsort(-shown, axis=0, kind="stable")[:n_docs].T
    return best


def ordered(model: Any) -> list[int]:
    """The numbers of a fitted model's topics in the order of `describe`: by what they stand for."""
    return _read(model).order()


def to_pyldavis(model: Any, X: Any, names: Any = None) -> dict[str, Any]:
    """What ``pyLDAvis.prepare`` takes, for the topics of a model and some documents.

    Topics keep their order, but pyLDAvis counts them from 1: its topic 1 is topic 0 of the model. Documents without words have a
    length of 0, and so no part in the topics' sizes.

    Parameters
    ----------
    model : fitted TopicModel, TopicClassifier or TopicRegressor, or Pipeline that ends with one
    X : sparse matrix or array of shape (n_docs, n_words), or Corpus
        Counts; for a pipeline, what its first step takes.
    names : sequence of n_words strings or Vocabulary, optional
        By default those of the corpus or data frame that the model was fitted to, or of the pipeline's vectorizer.

    Returns
    -------
    dict
        Arguments by their names.

    Examples
    --------
    >>> from mirrorlda import TopicModel
    >>> from mirrorlda.datasets import make_topics
    >>> from mirrorlda.topics import to_pyldavis
    >>> X = make_topics(n_docs=100, n_words=30, n_topics=3, random_state=0).X
    >>> arguments = to_pyldavis(TopicModel(n_topics=3, n_epochs=5, random_state=0).fit(X), X)
    >>> arguments["doc_topic_dists"].shape, arguments["sort_topics"]
    ((100, 3), False)

    In a notebook: ``pyLDAvis.enable_notebook()``, then ``pyLDAvis.prepare(**arguments)``.
    """
    names = _read(model).names if names is None else getattr(names, "words", names)
    if hasattr(model, "steps"):
        X, model = model[:-1].transform(X), model[-1]
    theta = np.asarray(model.transform(X), np.float64)
    lengths, frequency = _totals(X)
    if not frequency.any():
        raise ValueError("X holds no words, so there is nothing to show")
    vocab = [str(number) for number in range(len(frequency))] if names is None else [str(name) for name in names]
    if len(vocab) != len(frequency):
        raise ValueError(f"names has {len(vocab)} entries, but X has {len(frequency)} words")
    components = np.asarray(model.components_, np.float64)
    return {
        "topic_term_dists": components / components.sum(axis=1, keepdims=True),
        "doc_topic_dists": theta / theta.sum(axis=1, keepdims=True),
        "doc_lengths": lengths,
        "vocab": vocab,
        "term_frequency": frequency,
        # start_index=0 would give the numbers of the model, but then the page takes topic 0 for none.
        "sort_topics": False,
    }


def lengths_of(X: Any) -> np.ndarray:
    """Words of each document of a matrix or a corpus."""
    return _totals(X)[0]


def _totals(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Words of each document, and occurrences of each word, of a matrix or a corpus."""
    if not hasattr(X, "matrix"):
        counts = X if hasattr(X, "tocsr") else np.asarray(X)
        return np.ravel(counts.sum(axis=1)).astype(np.float64), np.ravel(counts.sum(axis=0)).astype(np.float64)
    lengths, frequency = np.zeros(X.n_docs), np.zeros(X.n_words)
    for first in range(0, X.n_docs, _READ_DOCS):
        numbers = np.arange(first, min(first + _READ_DOCS, X.n_docs))
        lengths[numbers], here = _totals(X.matrix(numbers))
        frequency += here
    return lengths, frequency


def _read(model: Any) -> FittedModel:
    """A model whose fit is complete."""
    estimator = estimator_of(model)
    if not hasattr(estimator, "topic_shares_"):
        expected = "a fitted TopicModel, TopicClassifier or TopicRegressor, or a Pipeline that ends with one"
        raise ValueError(f"model must be {expected}, got {type(estimator).__name__}")
    return model_of(model)


def _largest(values: np.ndarray, n: int) -> np.ndarray:
    """Where the n largest are, the largest first, equal ones in their order; sorting all of a large vocabulary takes seconds."""
    least = np.partition(values, -n)[-n] if n < len(values) else values.min()
    candidates = np.flatnonzero(values >= least)
    return candidates[np.argsort(-values[candidates], kind="stable")[:n]]


def signed(weights: Sequence[float] | np.ndarray) -> list[str]:
    """Three digits of the largest; the same number of decimals for all."""
    largest = np.abs(weights).max(initial=0)
    decimals = max(0, 2 - int(np.floor(np.log10(largest)))) if largest > 0 else 2
    return [signed_number(weight, decimals) for weight in weights]


def signed_number(value: float, decimals: int) -> str:
    """With its sign; what is zero in so many decimals has none."""
    text = f"{value:+.{decimals}f}"
    return text if float(text) else text[1:]
