"""How text becomes words: options that several verbs have."""

from __future__ import annotations

from typing import Any

import click

from mirrorlda.cli.sections import option as section_option


def text_options(command: Any) -> Any:
    """How text becomes words."""
    option = section_option("How text becomes words")
    for added in reversed(
        [
            option(
                "--max-words",
                metavar="N",
                type=click.IntRange(0),
                default=None,
                help="Keep the N most frequent words: 100,000 by default, 0 for all.",
            ),
            option("--min-docs", metavar="N", type=click.IntRange(1), help="Only words of so many documents."),
            option(
                "--max-docs-fraction",
                metavar="NUMBER",
                type=float,
                default=1.0,
                help="Only words of at most this fraction of them.",
            ),
            option(
                "--bigrams/--no-bigrams", default=True, help="Whether phrases of two words count as words; by default they do."
            ),
            option(
                "--min-phrase-docs",
                metavar="N",
                type=click.IntRange(1),
                help="Keep phrases that at least N documents have, 10 by default.",
            ),
            option("--stop-words", metavar="english|FILE", help="Words to leave out: English ones, or a file of them."),
            option("--keep-case", is_flag=True, help="Do not take upper case for lower case."),
        ]
    ):
        command = added(command)
    return command


def words_taken(options: dict[str, Any]) -> dict[str, Any]:
    """What `mirrorlda.prepare` wants to know of words, out of a verb's options; the others stay."""
    from mirrorlda.data.text import ENGLISH_STOP_WORDS, MAX_WORDS, MIN_PHRASE_DOCS, USUAL, TextDefinition

    stop_words = options.pop("stop_words")
    chosen: tuple[str, ...] = ()
    if stop_words == "english":
        chosen = ENGLISH_STOP_WORDS
    elif stop_words:
        with open(stop_words, encoding="utf-8") as file:
            chosen = tuple(file.read().split())
    definition = TextDefinition(not options.pop("keep_case"), options.pop("bigrams"), chosen)
    max_words = options.pop("max_words")
    return {
        "max_words": MAX_WORDS if max_words is None else max_words or None,
        "min_docs": options.pop("min_docs") or 1,
        "max_docs_fraction": options.pop("max_docs_fraction"),
        "min_phrase_docs": options.pop("min_phrase_docs") or MIN_PHRASE_DOCS,
        "definition": None if definition == USUAL else definition,
    }
