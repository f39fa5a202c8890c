"""`mirrorlda topics`: what the topics of a model are about, and what they do to the prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from mirrorlda.cli.data import model_argument
from mirrorlda.cli.terminal import as_json, print_json, show, signed, table

if TYPE_CHECKING:
    from mirrorlda.inspect.topics import TopicTable


@click.command()
@model_argument
@click.option("--n-words", metavar="N", type=click.IntRange(1), default=10, show_default=True, help="Words of each topic.")
@click.option(
    "--relevance",
    type=click.FloatRange(0, 1),
    default=0.5,
    show_default=True,
    help="From 0, lift alone, to 1, probability alone.",
)
@as_json
def command(model: str, n_words: int, relevance: float, as_json: bool) -> None:
    """List the topics of a model: share of the documents, effect on the prediction, most relevant words.

    \b
    mirrorlda topics model/
    mirrorlda topics model/ --n-words 20 --relevance 0.3
    mirrorlda topics model/ --json | jq '.[0].words'
    """
    from mirrorlda.saving.save_load import load

    loaded = load(model)
    if as_json:
        print_json(listed(loaded, n_words, relevance))
    else:
        show(as_table(loaded, n_words, relevance))


def listed(model: Any, n_words: int, relevance: float) -> list[dict[str, Any]]:
    """The topics as plain values, in the order in which people read them."""
    found = _table_of(model, n_words, relevance)
    effects = [dict(zip(found.effect_names, column, strict=True)) for column in found.effects.T.tolist()]
    rows = zip(found.topics, found.shares.tolist(), effects, found.words, strict=True)
    return [dict(zip(("topic", "share", "effects", "words"), row, strict=True)) for row in rows]


def as_table(model: Any, n_words: int, relevance: float, *, least_share: float = 0.0) -> Any:
    """The topics as a table; those with a smaller share are left out."""
    found = _table_of(model, n_words, relevance)
    shown = [row for row, share in enumerate(found.shares) if share >= least_share]
    largest = float(abs(found.effects[:, shown]).max(initial=0))
    columns: dict[str, list[Any]] = {
        "topic": [found.topics[row] for row in shown],
        "share": [f"{found.shares[row]:.1%}" for row in shown],
    }
    for title, cells in found.effect_columns():
        columns[title] = [cells[row] if isinstance(cells, list) else signed(cells[row], largest) for row in shown]
    columns["words"] = [" ".join(found.words[row]) for row in shown]
    return table(list(columns), zip(*columns.values(), strict=True), left=("for", "words"))


def _table_of(model: Any, n_words: int, relevance: float) -> TopicTable:
    from mirrorlda.inspect.topics import topic_table
    from mirrorlda.method.fitted_model import model_of

    return topic_table(model_of(model), n_words=n_words, relevance=relevance)
