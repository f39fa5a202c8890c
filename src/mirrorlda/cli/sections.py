"""Help whose options stand in sections."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click


class _Option(click.Option):
    def __init__(self, *args: Any, section: str, **attributes: Any) -> None:
        super().__init__(*args, **attributes)
        self.section = section


class Sectioned(click.Command):
    """A command that shows the options of `option` below the name of their section, after the others."""

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        sections: dict[str, list[tuple[str, str]]] = {"Options": []}
        for parameter in self.get_params(ctx):
            record = parameter.get_help_record(ctx)
            if record is not None and isinstance(parameter, click.Option):
                sections.setdefault(getattr(parameter, "section", "Options"), []).append(record)
        for name, records in sections.items():
            with formatter.section(name):
                formatter.write_dl(records)


def option(section: str) -> Callable[..., Callable[[Any], Any]]:
    """`click.option` for a section."""

    def decorator(*args: Any, **attributes: Any) -> Callable[[Any], Any]:
        return click.option(*args, cls=_Option, section=section, **attributes)

    return decorator
