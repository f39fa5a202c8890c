"""`mirrorlda explain`: which words and topics moved the prediction of one document, as coloured text."""

from __future__ import annotations

import os
import sys
from typing import Any

import click

from mirrorlda.cli.data import model_argument
from mirrorlda.cli.terminal import as_json, clean, has_colour, print_json, say, show, signed, table

# Of the topics of a document, those that are worth a line.
_LEAST_SHARE, _N_TOPICS = 0.02, 8
_PROBABILITY, _N_PROBABILITIES = "probability_", 3


@click.command()
@model_argument
@click.argument("text", metavar="TEXT|-")
@click.option(
    "--output", "--of", "output", metavar="NAME", help="The target, class or label to explain; the predicted one by default."
)
@click.option("--n-words", metavar="N", type=click.IntRange(1), default=15, show_default=True, help="Words listed.")
@as_json
def command(model: str, text: str, output: str | None, n_words: int, as_json: bool) -> None:
    """Say which words and topics moved the prediction of a text.

    The effect of a word is the gradient of the prediction through the inference of topics, times the word's count;
    beside it stands what the prediction loses when the word is left out. For classes and labels, effects are in log odds.

    \b
    mirrorlda explain model/ "The room was clean but the staff was rude."
    mirrorlda explain model/ - < letter.txt
    mirrorlda explain model/ "..." --of complaint --json
    """
    from mirrorlda.inspect.explain import explain
    from mirrorlda.inspect.text_table import in_lines
    from mirrorlda.method.fitted_model import model_of
    from mirrorlda.saving.save_load import load

    if os.path.isfile(text):
        say(f"{text} is taken for the text itself; what is in the file: mirrorlda explain {model} - < {text}")
    loaded, text = load(model), sys.stdin.read() if text == "-" else text
    if not model_of(loaded).is_supervised:
        topics = _topics_of(loaded, text)
        if as_json:
            print_json({"topics": [{"topic": topic, "share": share, "words": words} for share, topic, words in topics]})
        else:
            lines = in_lines(words for *_, words in topics[:_N_TOPICS])
            rows = [[f"{share:.0%}", topic, words] for (share, topic, _), words in zip(topics, lines, strict=False)]
            show(table(["share", "topic", "words"], rows, left=("words",)))
        return
    explanation = explain(loaded, text, output=output)
    if as_json:
        print_json(explanation.as_json())
        return
    show(*_shown(explanation, n_words, has_colour=has_colour()))


def _shown(explanation: Any, n_words: int, *, has_colour: bool) -> list[Any]:
    from rich.text import Text

    from mirrorlda.inspect.text_table import in_lines

    largest = max((abs(word.effect) for word in explanation.words), default=0.0)
    parts: list[Any] = [Text(clean(_predicted(explanation.prediction)), style="bold")]
    if explanation.tokens is not None:
        parts.append(_coloured(explanation.tokens, has_colour))
    if not explanation.words:
        return [*parts, Text("no word of it is one that the model knows")]
    what = explanation.output if explanation.unit == "prediction" else f"{explanation.unit} of {explanation.output}"
    parts.append(Text(clean(f"{what}: {explanation.value:.4g}; of the average document {explanation.average:.4g}"), style="dim"))
    rows = [
        [signed(word.effect, largest), signed(word.left_out, largest) if word.left_out is not None else "", word.topic, word.word]
        for word in explanation.words[:n_words]
    ]
    parts.append(table(["effect", "left out", "topic", "word"], rows, left=("word",)))
    topics = [topic for topic in explanation.topics if topic.share >= _LEAST_SHARE][:_N_TOPICS]
    widest = max((abs(topic.effect) for topic in topics), default=0.0)
    lines = in_lines(topic.words for topic in topics)
    rows = [
        [signed(topic.effect, widest), f"{topic.share:.0%}", topic.topic, words]
        for topic, words in zip(topics, lines, strict=True)
    ]
    rows.append([signed(explanation.overlap, max(widest, abs(explanation.overlap))), "", "", "overlap of topics"])
    return [*parts, table(["effect", "share", "topic", "words"], rows, left=("words",))]


def _predicted(prediction: dict[str, Any]) -> str:
    """The prediction, and the largest of the probabilities."""
    probabilities = {name.removeprefix(_PROBABILITY): p for name, p in prediction.items() if name.startswith(_PROBABILITY)}
    others = [
        f"{name.removeprefix('prediction_')} {_value(p)}" for name, p in prediction.items() if not name.startswith(_PROBABILITY)
    ]
    most = sorted(probabilities, key=lambda name: -probabilities[name])[:_N_PROBABILITIES]
    if len(others) > 1 and probabilities:
        # Labels: there or not says less than how probable they are.
        others = []
    shown = [*others[:_N_TOPICS], *(f"{name} {probabilities[name]:.1%}" for name in most)]
    left = len(probabilities) - len(most)
    return "  ".join(shown) + (f"  and {left} more" if left else "")


def _topics_of(model: Any, text: str) -> list[tuple[float, int, list[str]]]:
    """Share, number and words of the topics of a text, the largest share first."""
    from mirrorlda.inspect.topics import relevant_words
    from mirrorlda.method.fitted_model import model_of

    read = model_of(model)
    theta = read.proportions(read.count([text]))[0]
    words = relevant_words(read.components, read.shares, read.names, n_words=5)
    return sorted(((float(share), topic, words[topic]) for topic, share in enumerate(theta)), reverse=True)


def _coloured(tokens: Any, has_colour: bool) -> Any:
    """The text, words on blue where they add and on red where they take; where there is no colour, in signed brackets."""
    from rich.text import Text

    largest = max((abs(token.effect) for token in tokens if token.effect is not None), default=0.0)
    text = Text()
    for token in tokens:
        strength = 0.0 if not token.effect or not largest else abs(token.effect) / largest
        if strength < 0.1:
            text.append(clean(token.text))
        elif not has_colour:
            text.append(f"[{'+' if token.effect > 0 else '-'}{clean(token.text)}]")
        else:
            text.append(clean(token.text), style=_style(token.effect > 0, strength))
    return text


def _style(adds: bool, strength: float) -> str:
    """A background that is the stronger the more the word counts, with text that can be read on it."""
    step = 0 if strength < 0.3 else 1 if strength < 0.6 else 2
    shades = ("#cfe3f7", "#8dbfea", "#2f7fc4") if adds else ("#f9d9d3", "#eea394", "#c8452c")
    return f"{'#ffffff' if step == 2 else '#1a1a1a'} on {shades[step]}"


def _value(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
