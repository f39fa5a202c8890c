"""`mirrorlda topics`: what the topics of a model are about, and what they do to the prediction."""

from __future__ import annotations

from typing import Any

import click

from mirrorlda.cli.data import model_argument
from mirrorlda.cli.terminal import as_json, print_json, show, signed, table


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
    from mirrorlda.inspect.parts import parts_of
    from mirrorlda.inspect.topics import effects, ordered, relevant_words

    parts = parts_of(model)
    estimator = parts.estimator
    names, values = effects(estimator)
    words = relevant_words(estimator.components_, estimator.topic_shares_, parts.names, n_words=n_words, relevance=relevance)
    return [
        {
            "topic": int(topic),
            "share": float(estimator.topic_shares_[topic]),
            "effects": {name: float(row[topic]) for name, row in zip(names, values, strict=True)},
            "words": words[topic],
        }
        for topic in ordered(estimator)
    ]


def as_table(model: Any, n_words: int, relevance: float, *, least_share: float = 0.0) -> Any:
    """The topics as a table: with several targets or classes, the one that a topic moves most."""
    from mirrorlda.inspect.parts import parts_of

    everything = listed(model, n_words, relevance)
    rows, names = [row for row in everything if row["share"] >= least_share], list(everything[0]["effects"])
    largest = max((abs(value) for row in rows for value in row["effects"].values()), default=0.0)
    titles, cells = ["topic", "share"], [[row["topic"], f"{row['share']:.1%}"] for row in rows]
    if len(names) == 1:
        estimator = parts_of(model).estimator
        titles.append(f"for {names[0]}" if hasattr(estimator, "classes_") else f"effect on {names[0]}")
        for row, line in zip(rows, cells, strict=True):
            line.append(signed(row["effects"][names[0]], largest))
    elif names:
        titles += ["most for", "effect"]
        for row, line in zip(rows, cells, strict=True):
            name = max(names, key=lambda name, row=row: row["effects"][name])  # type: ignore[misc]
            line += [name, signed(row["effects"][name], largest)]
    for row, line in zip(rows, cells, strict=True):
        line.append(" ".join(row["words"]))
    return table([*titles, "words"], cells, left=("most for", "words"))
