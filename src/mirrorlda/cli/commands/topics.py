"""`mirrorlda topics`: what the topics of a model are about, and what they do to the prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mirrorlda.cli.data import TABLES, as_trained, is_corpus, model_argument, named
from mirrorlda.cli.terminal import as_json, console, print_json, show, signed, table

if TYPE_CHECKING:
    from mirrorlda.inspect.topics import TopicTable

# Documents among which those are looked for that show a topic best.
_READ_DOCS = 20_000
# Of a document as much as fits into the line, but no less than this.
_LEAST_WIDTH = 60


@click.command()
@model_argument
@click.option("--n-words", metavar="N", type=click.IntRange(1), default=6, show_default=True, help="Words of each topic.")
@click.option(
    "--relevance",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="From 0, lift alone, to 1, probability alone.",
)
@click.option(
    "--data",
    multiple=True,
    metavar="FILE",
    help="For each topic also documents that show it best, among the first 20,000.",
)
@click.option("--n-docs", metavar="N", type=click.IntRange(1), default=3, show_default=True, help="Documents of each topic.")
@click.option("--text", metavar="NAME", help="Column of the text in --data; that of the training files by default.")
@click.option("--format", type=click.Choice(TABLES), help="Of --data, where the names of the files do not tell it.")
@click.option("--bad-rows", type=click.Choice(["error", "skip"]), help="Stop at a bad row of --data (default), or go on without.")
@as_json
def command(model: str, n_words: int, relevance: float, data: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """List the topics of a model: share of the documents, effect on the prediction, most relevant words.

    The effect is what the prediction of a document loses, on average, when the topic's part of its words goes; beside it is where
    it lies for all but the lowest and the highest tenth of the documents. After the words come those of the topic that raise the
    prediction most, and those that lower it.

    \b
    mirrorlda topics model/
    mirrorlda topics model/ --n-words 20 --relevance 0.3
    mirrorlda topics model/ --data new.csv --n-docs 2
    mirrorlda topics model/ --json | jq '.[0].words'
    """
    from mirrorlda.inspect.text_table import in_lines
    from mirrorlda.saving import model_folder

    loaded, about = model_folder.read(model)
    found = listed(loaded, n_words, relevance)
    if data:
        documents = _typical(loaded, about, data, options)
        found = [{**topic, "documents": documents[topic["topic"]]} for topic in found]
    if as_json:
        print_json(found)
        return
    show(as_table(loaded, n_words, relevance))
    for topic, words in zip(found, in_lines(topic["words"] for topic in found), strict=True) if data else ():
        lines = [f"{document['share']:4.0%}  {' '.join(document['text'].split())}" for document in topic["documents"]]
        width = max(_LEAST_WIDTH, console().width)
        cut = [line if len(line) <= width else line[: width - 1] + "…" for line in lines]
        show("", "\n".join([f"topic {topic['topic']}: {words}", *cut]))


def _typical(model: Any, about: Any, data: tuple[str, ...], options: dict[str, Any]) -> list[list[dict[str, Any]]]:
    """For each topic the documents that show it best, among the first of these files."""
    from mirrorlda.data.readers import read
    from mirrorlda.inspect.topics import best_documents, lengths_of
    from mirrorlda.method.fitted_model import model_of

    if is_corpus(data):
        raise click.UsageError("a corpus holds no texts to show: give --data the files that it was made of")
    fitted, n_docs = model_of(model), options.pop("n_docs")
    reading = as_trained(about, fitted, data, options)
    reading.pop("label_separator", None)
    text = options["text"] or (about.text if about is not None else None)
    texts: list[str] = []
    for rows in read(named(data), text=text, **reading):
        texts += rows.texts or []
        if len(texts) >= _READ_DOCS:
            break
    if not texts:
        raise click.UsageError(f"{data[0]} has no texts to show")
    counts = fitted.count(texts[:_READ_DOCS])
    theta = fitted.proportions(counts)
    return [
        [{"number": int(number), "share": float(theta[number, topic]), "text": texts[number]} for number in numbers]
        for topic, numbers in enumerate(best_documents(theta, lengths_of(counts), n_docs))
    ]


def listed(model: Any, n_words: int, relevance: float) -> list[dict[str, Any]]:
    """The topics as plain values, in the order in which people read them."""
    found = _table_of(model, n_words, relevance)
    effects = [dict(zip(found.effect_names, column, strict=True)) for column in found.effects.T.tolist()]
    rows = zip(found.topics, found.shares.tolist(), effects, found.words, strict=True)
    topics = [dict(zip(("topic", "share", "effects", "words"), row, strict=True)) for row in rows]
    for place, topic in enumerate(topics):
        if found.ranges is not None:
            ends = found.ranges[:, :, place].T.tolist()
            topic["ranges"] = dict(zip(found.effect_names, ends, strict=True))
        if found.effect_names:
            topic["raise"], topic["lower"] = found.raising[place], found.lowering[place]
    return topics


def as_table(model: Any, n_words: int, relevance: float, *, least_share: float = 0.0) -> Any:
    """The topics as a table; those with a smaller share are left out."""
    from mirrorlda.inspect.text_table import in_lines

    found = _table_of(model, n_words, relevance)
    shown = [row for row, share in enumerate(found.shares) if share >= least_share]
    largest = float(abs(found.effects[:, shown]).max(initial=0))
    columns: dict[str, list[Any]] = {
        "topic": [found.topics[row] for row in shown],
        "share": [f"{found.shares[row]:.1%}" for row in shown],
    }
    for title, cells in found.effect_columns():
        columns[title] = [cells[row] if isinstance(cells, list) else signed(cells[row], largest) for row in shown]
    title, sides = "words", [cells for _, cells in found.moving_columns()]
    columns["words"] = in_lines(found.words[row] for row in shown)
    if sides:
        title, marks = "words; + raise; - lower", ("+", "-")
        told = [
            [f"{mark} {words[row]}" for mark, words in zip(marks, map(in_lines, sides), strict=True) if words[row]]
            for row in shown
        ]
        columns[title] = ["; ".join([words, *more]) for words, more in zip(columns.pop("words"), told, strict=True)]
    return table(list(columns), zip(*columns.values(), strict=True), left=("for", title))


def _table_of(model: Any, n_words: int, relevance: float) -> TopicTable:
    from mirrorlda.inspect.topics import topic_table
    from mirrorlda.method.fitted_model import model_of

    return topic_table(model_of(model), n_words=n_words, relevance=relevance)
