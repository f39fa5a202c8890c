"""The command `mirrorlda`: a verb for each thing that people do with a model.

Verbs are imported when they are called, and the package's heavy parts only once there is work for them, so that help and
completion answer at once.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from difflib import get_close_matches
from functools import partial
from importlib import import_module
from typing import Any

import click

import mirrorlda
from mirrorlda.cli.messages import message_for
from mirrorlda.cli.terminal import warn

# What each verb is for, in the order in which people need them.
_VERBS = {
    "train": "Learn a model from a file of texts, measure it, keep it.",
    "predict": "Add predictions to a file.",
    "evaluate": "Measure a model on a file, with intervals.",
    "topics": "List the topics of a model.",
    "explain": "Say which words and topics moved a prediction.",
    "report": "Write a page that shows what a model learned.",
    "prepare": "Write large files as a corpus, to train on many times.",
    "demo": "Do all of it on film reviews.",
}
# Errors that say what is wrong with what the user gave; others are faults of this package, and show where they happened.
# What diverges is an ArithmeticError.
_EXPECTED = (ValueError, OSError, MemoryError, ArithmeticError)


class Failure(click.ClickException):
    """The work could not be done: exit code 1. Wrong usage has 2, an interrupt 130."""

    def show(self, file: Any = None) -> None:
        click.echo(f"{click.style('error:', fg='red', bold=True)} {self.format_message()}", file=file or sys.stderr)


class _Verbs(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(_VERBS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in _VERBS:
            return None
        command: click.Command = import_module(f"mirrorlda.cli.commands.{name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            formatter.write_dl(list(_VERBS.items()))

    def invoke(self, ctx: click.Context) -> Any:
        warnings.showwarning = partial(self._show_warning, ctx)
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            # Whoever read the output has seen enough. Nothing more may be written to it, not even at exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            ctx.exit(141)
        except KeyboardInterrupt:
            click.echo("interrupted", err=True)
            ctx.exit(130)
        except _EXPECTED as error:
            if os.environ.get("MIRRORLDA_TRACEBACK"):
                traceback.print_exc()
            raise Failure(message_for(self._invoked(ctx), error)) from error

    def _invoked(self, ctx: click.Context) -> click.Command | None:
        return self.get_command(ctx, ctx.invoked_subcommand or "")

    def _show_warning(self, ctx: click.Context, message: Warning, *_: Any, **__: Any) -> None:
        warn(message_for(self._invoked(ctx), message))

    def resolve_command(self, ctx: click.Context, args: list[str]) -> tuple[str | None, click.Command | None, list[str]]:
        if args[0] not in _VERBS and (near := get_close_matches(args[0], _VERBS, n=1)):
            ctx.fail(f"No such verb {args[0]!r}; did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)


def _show_completion(ctx: click.Context, _: click.Parameter, shell: str | None) -> None:
    if shell is None:
        return
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    click.echo(kind(main, {}, "mirrorlda", "_MIRRORLDA_COMPLETE").source())
    ctx.exit()


@click.group(
    cls=_Verbs,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, 1 the work could not be done, 2 wrong usage, 130 interrupted, 141 nobody read the output.",
)
@click.version_option(mirrorlda.__version__, prog_name="mirrorlda")
@click.option(
    "--completion",
    type=click.Choice(["bash", "zsh", "fish"]),
    is_eager=True,
    expose_value=False,
    callback=_show_completion,
    help='Print the completion script of a shell: eval "$(mirrorlda --completion bash)".',
)
def main() -> None:
    """Topics that predict: from texts with ratings, classes or labels to a model, its measure, and a page about it.

    \b
    mirrorlda train reviews.csv --text review --target stars -o model/
    mirrorlda topics model/
    mirrorlda explain model/ "The room was clean but the staff was rude."
    mirrorlda predict model/ new.csv -o predictions.csv
    mirrorlda report model/ -o report.html

    Results go to standard output (--json for programs), progress to standard error.
    """
