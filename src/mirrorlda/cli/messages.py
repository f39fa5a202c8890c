"""What errors and warnings say on the command line: there, parameters have the names of options."""

from __future__ import annotations

import click

from mirrorlda.data.messages import Message, message_of

# Parameters that have options of other names.
_OPTIONS = {"target_kind": ("task",), "definition": ("bigrams", "stop_words", "keep_case")}


def message_for(command: click.Command | None, error: BaseException) -> str:
    """What an error says to the user of a command. A parameter that is none of its options keeps its name."""
    message = message_of(error) or type(error).__name__
    options = {} if command is None else {str(option.name): option for option in command.params}

    def name_of(name: str, value: str | None) -> str:
        named = [options[other] for other in (name, *_OPTIONS.get(name, ())) if other in options]
        if not named:
            return name if value is None else f"{name}={value}"
        flags = "/".join(flag for option in named for flag in (max(option.opts, key=len), *option.secondary_opts))
        return f"{flags} {_value_of(named[0], value)}" if value else flags

    return message.naming(name_of) if isinstance(message, Message) else message


def _value_of(option: click.Parameter, value: str) -> str:
    """What a person types after an option: `...` stands for any value."""
    from mirrorlda.cli.sources import TARGET_KINDS

    if value == "...":
        return str(option.metavar)
    value = value.strip("'")
    tasks = {kind: task for task, kind in TARGET_KINDS.items()}
    return tasks.get(value, value) if option.name == "task" else value
