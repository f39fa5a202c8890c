"""What people see: tables that fit the terminal, colour where there is one, JSON for programs."""

from __future__ import annotations

import json
import math
import os
import re
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from rich.console import Console

# Control characters but tabs and line ends, and those of the direction of writing.
_COMMANDS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
# Between two columns; and what is left of the last in the narrowest terminal.
_GAP, _LEAST_CUT = 2, 12
# Nothing is cut or wrapped where nobody looks.
_UNBOUNDED = 10_000

as_json = click.option("--json", "as_json", is_flag=True, help="The result as JSON.")


def console() -> Console:
    """Standard output, as wide as the terminal; unbounded where it is a file or a pipe."""
    from rich.console import Console

    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _UNBOUNDED
    return Console(highlight=False, width=width)


def has_colour() -> bool:
    """Whether words can be told apart by colour."""
    out = console()
    # With fewer colours, those for more and for less come out the same.
    return out.color_system in ("256", "truecolor") and not out.no_color


def show(*parts: Any) -> None:
    """Print texts and tables, an empty line between two of them."""
    from rich.text import Text

    out = console()
    with out.capture() as captured:
        for number, part in enumerate(parts):
            if number:
                out.print()
            out.print(Text(clean(part)) if isinstance(part, str) else part)
    click.echo("\n".join(line.rstrip() for line in captured.get().splitlines()), color=True)


def say(text: str, quiet: bool = False) -> None:
    """A word about the work, not about its result: to standard error."""
    if not quiet:
        click.echo(text, err=True)


def clean(text: str) -> str:
    """Text of the user's data, without what would command the terminal or turn the line round."""
    return _COMMANDS.sub("", text)


def warn(message: str) -> None:
    """What people should know, and may go on in spite of: to standard error."""
    click.echo(f"{click.style('warning:', fg='yellow', bold=True)} {message}", err=True)


def print_json(value: Any) -> None:
    """A value as JSON, for programs."""
    click.echo(json.dumps(plain(value), ensure_ascii=False, indent=2, allow_nan=False))


def plain(value: Any) -> Any:
    """As JSON has it: NumPy's numbers as Python's, and null for what is no number."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    return None if isinstance(value, float) and not math.isfinite(value) else value


def table(titles: Sequence[str], rows: Iterable[Sequence[Any]], *, left: Sequence[str] = ()) -> Any:
    """A table; columns named in `left` are text, the others numbers.

    Where the terminal is narrow, titles take several lines, and the last column, if it is text, is cut.
    """
    from rich.table import Table
    from rich.text import Text

    cells = [[cell if isinstance(cell, Text) else Text(clean(str(cell))) for cell in row] for row in rows]
    titles, left = [clean(title) for title in titles], [clean(title) for title in left]
    bodies = [max((row[place].cell_len for row in cells), default=0) for place in range(len(titles))]
    cuts_last, room = titles[-1] in left, console().width
    widths = [max(body, Text(title).cell_len) for title, body in zip(titles, bodies, strict=True)]
    before = widths[:-1] if cuts_last else widths
    if sum(before) + _GAP * len(before) + (_LEAST_CUT if cuts_last else 0) > room:
        words = [max(Text(word).cell_len for word in title.split()) for title in titles]
        widths[: len(before)] = [max(body, word) for body, word in zip(bodies, words, strict=True)][: len(before)]
    if cuts_last:
        widths[-1] = min(widths[-1], max(_LEAST_CUT, room - sum(widths[:-1]) - _GAP * len(widths)))
    made = Table(box=None, pad_edge=False, header_style="bold", padding=(0, _GAP, 0, 0))
    for title, width in zip(titles, widths, strict=True):
        is_cut = cuts_last and title == titles[-1]
        made.add_column(
            Text(title),
            justify="left" if title in left else "right",
            width=width,
            no_wrap=is_cut,
            overflow="ellipsis" if is_cut else "fold",
            vertical="bottom",
        )
    for row in cells:
        made.add_row(*row)
    return made


def signed(value: float, largest: float) -> Any:
    """A number with its sign, blue where it adds and red where it takes; three digits of the largest."""
    from rich.text import Text

    from mirrorlda.inspect.topics import signed_number

    decimals = max(0, 2 - math.floor(math.log10(largest))) if largest > 0 else 2
    return Text(signed_number(value, decimals), style="blue" if value > 0 else "red" if value < 0 else "")
