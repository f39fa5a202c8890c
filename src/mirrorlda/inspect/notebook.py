"""How models and explanations show themselves in notebooks: one compact table each, without scripts, on light and dark."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

import numpy as np

from mirrorlda.inspect.text_table import in_lines
from mirrorlda.inspect.topics import RANGE, signed, topic_table

_MOST_TOPICS = 20
_MOST_WORDS = 12
# Colours are those of the page around, but for the bars, which are readable on white and on black.
_UP, _DOWN, _SHARE = "70,140,220", "225,125,45", "140,140,140"
_STYLE = f"""<style>
.mirrorlda {{font-size: 13px; line-height: 1.5; max-width: 60em}}
.mirrorlda p {{margin: 0 0 .4em}}
.mirrorlda table {{border-collapse: collapse; border: 0; margin: 0 0 .4em; font-size: inherit; color: inherit}}
.mirrorlda tr, .mirrorlda tr:hover {{background: none !important}}
.mirrorlda th, .mirrorlda td {{padding: 1px 10px 1px 0; text-align: left; vertical-align: baseline; border: 0;
  background: none; color: inherit; font-variant-numeric: tabular-nums}}
.mirrorlda th {{font-weight: normal; opacity: .65}}
.mirrorlda td.number {{text-align: right; white-space: nowrap; padding-right: 5px}}
.mirrorlda td.range {{white-space: nowrap}}
.mirrorlda .bar {{display: inline-block; position: relative; width: 80px; height: .8em}}
.mirrorlda .bar i {{position: absolute; top: 0; bottom: 0; min-width: 1px}}
.mirrorlda .up {{background: rgba({_UP},.85)}}
.mirrorlda .down {{background: rgba({_DOWN},.85)}}
.mirrorlda .share {{background: rgba({_SHARE},.7)}}
.mirrorlda summary {{cursor: pointer; opacity: .65}}
.mirrorlda pre {{margin: .2em 0; white-space: pre-wrap; background: none; color: inherit}}
.mirrorlda .text {{white-space: pre-wrap; max-height: 16em; overflow-y: auto}}
.mirrorlda .text span {{border-radius: 2px}}
</style>"""


def model_page(model: Any) -> str:
    """A fitted estimator as HTML: its topics with shares, effects and words, the strongest effects first to be shown."""
    read = model.fitted_model()
    found = topic_table(read, n_words=8)
    words = in_lines(found.words)
    if read.names is None:
        words = [", ".join(f"word {number}" for number in topic) for topic in found.words]
    title = f"<b>{escape(read.kind)}</b>: {read.n_topics:,} topics, {read.n_words:,} words"
    kind = "validation" if "validation_score" in read.history else "training"
    if scores := read.history.get("validation_score", read.history.get("score")):
        title += f", {kind} score {scores[-1]:.3f} after {len(scores)} epoch{'s' if len(scores) > 1 else ''}"

    columns = {"topic": _numbers(map(str, found.topics)), "share": _share_bars(found.shares)}
    names, values = found.effect_names, found.effects
    order = np.argsort(-found.shares, kind="stable")
    if names:
        # Numbers may be in different units, each of which has its own scale; log odds have one for all.
        sizes = np.full(len(names), np.abs(values).max()) if found.are_classes else np.abs(values).max(axis=1)
        relative = values / np.where(sizes > 0, sizes, 1)[:, None]
        strongest, each = np.abs(relative).argmax(axis=0), np.arange(read.n_topics)
        effect, relative = values[strongest, each], relative[strongest, each]
        shown = np.argsort(-np.abs(relative), kind="stable")[:_MOST_TOPICS]
        order = shown[np.lexsort((-relative[shown], strongest[shown]))]
        if len(names) > 1:
            columns["strongest on"] = [f"<td>{escape(names[row])}</td>" for row in strongest]
        columns[f"effect on {names[0]}" if len(names) == 1 and names != ["prediction"] else "effect"] = _effect_bars(
            effect, relative
        )
        if found.ranges is not None:
            ends = signed(found.ranges[:, strongest, each].ravel())
            pairs = zip(ends[: len(each)], ends[len(each) :], strict=True)
            columns[RANGE] = [f'<td class="range">{low} to {high}</td>' for low, high in pairs]
    columns["words"] = _cells(words)
    if read.names is not None:
        columns |= {title: _cells(map(" ".join, cells)) for title, cells in found.moving_columns()}
    more = f"<p>and {read.n_topics - _MOST_TOPICS:,} more topics</p>" if read.n_topics > _MOST_TOPICS else ""
    parameters = f"<details><summary>parameters</summary><pre>{escape(repr(model))}</pre></details>"
    return _page(f"<p>{title}</p>", _table(columns, order[:_MOST_TOPICS]), more, parameters)


def explanation_page(explanation: Any) -> str:
    """An `Explanation` as HTML: the text with its words shaded by their effects, then words and topics."""
    e = explanation
    what = e.unit if e.output == e.unit else f"{e.output}: {e.unit}"
    title = f"<b>{escape(what)} {e.value:.4g}</b>; without words {e.empty:.4g}, average document {e.average:.4g}"
    text = ""
    if e.tokens is not None:
        largest = max((abs(token.effect) for token in e.tokens if token.effect), default=1.0)
        text = f'<p class="text">{"".join(_shaded(token, largest) for token in e.tokens)}</p>'
    words, topics = e.words[:_MOST_WORDS], [topic for topic in e.topics if topic.effect][:_MOST_WORDS]
    by_word = {
        "word": _cells(word.word for word in words),
        "count": _numbers(f"{word.count:g}" for word in words),
        "effect": _effect_bars(*_relative([word.effect for word in words])),
    }
    if words and words[0].left_out is not None:
        by_word["left out"] = _effect_bars(*_relative([word.left_out for word in words]))
    by_topic = {
        "topic": _numbers(str(topic.topic) for topic in topics),
        "share": _share_bars(np.array([topic.share for topic in topics])),
        "effect": _effect_bars(*_relative([topic.effect for topic in topics])),
        "words": _cells(in_lines(topic.words for topic in topics)),
    }
    overlap = f"<p>overlap of topics {e.overlap:+.3g}</p>" if topics else ""
    return _page(f"<p>{title}</p>", text, _table(by_word, range(len(words))), _table(by_topic, range(len(topics))), overlap)


def _page(*parts: str) -> str:
    return "\n".join(['<div class="mirrorlda">', _STYLE, *(part for part in parts if part), "</div>"])


def _table(columns: dict[str, list[str]], rows: Iterable[int]) -> str:
    """`columns` have the cells of all rows, a bar and its number each in one; `rows` are those shown, in their order."""
    head = "".join(f'<th colspan="{cells[0].count("<td")}">{escape(title)}</th>' for title, cells in columns.items() if cells)
    lines = [f"<tr>{''.join(cells[row] for cells in columns.values())}</tr>" for row in rows]
    return "\n".join(["<table>", f"<tr>{head}</tr>", *lines, "</table>"]) if lines else ""


def _cells(texts: Iterable[str]) -> list[str]:
    return [f"<td>{escape(text)}</td>" for text in texts]


def _numbers(texts: Iterable[str]) -> list[str]:
    return [f'<td class="number">{escape(text)}</td>' for text in texts]


def _share_bars(shares: np.ndarray) -> list[str]:
    largest = max(shares.max(initial=0), np.finfo(np.float64).tiny)
    return [
        f'<td class="number">{share:.1%}</td>'
        f'<td><span class="bar"><i class="share" style="left:0;width:{100 * share / largest:.0f}%"></i></span></td>'
        for share in shares
    ]


def _relative(effects: Sequence[float]) -> tuple[np.ndarray, np.ndarray]:
    values = np.array(effects, np.float64)
    return values, values / max(np.abs(values).max(initial=0), np.finfo(np.float64).tiny)


def _effect_bars(effects: np.ndarray, relative: np.ndarray) -> list[str]:
    """Numbers with their signs, and bars to both sides of the middle; `relative` is between -1 and 1."""
    bars = []
    for number, part in zip(signed(effects), relative.tolist(), strict=True):
        half = 50 * abs(part)
        side, left = ("up", 50.0) if part >= 0 else ("down", 50 - half)
        bar = f'<span class="bar"><i class="{side}" style="left:{left:.0f}%;width:{half:.0f}%"></i></span>'
        bars.append(f'<td class="number">{number}</td><td>{bar}</td>')
    return bars


def _shaded(token: Any, largest: float) -> str:
    if not token.effect or abs(token.effect) < 0.02 * largest:
        return escape(token.text)
    colour = f"rgba({_UP if token.effect > 0 else _DOWN},{0.08 + 0.6 * abs(token.effect) / largest:.2f})"
    return f'<span style="background:{colour}" title="{token.effect:+.3g}">{escape(token.text)}</span>'
