"""Messages that name parameters, so that they can be shown to people who do not call Python."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

_PARAMETER = re.compile(r"<(\w+)(?:=([^>]*))?>")


class Message(str):
    """What an error or a warning says. It is a string in the words of Python, and knows where it names parameters.

    Parameters
    ----------
    template : str
        The message, where parameters that the caller can set are in angle brackets, as they are written in Python:
        `<n_words>`, `<format=>`, `<bad_rows='skip'>`. This is always a constant: what comes from data belongs in `values`.
    *values
        What takes the places of `{}` in the template, as in `str.format`. No text in them is taken for a parameter, but a value
        that is a `Message` keeps its own.

    Examples
    --------
    >>> from mirrorlda.data.messages import Message
    >>> message = Message("{}: the name does not tell the format; give <format=>", "<format>.txt")
    >>> raise ValueError(message)
    Traceback (most recent call last):
    ValueError: <format>.txt: the name does not tell the format; give format=
    >>> message.naming(lambda name, value: f"--{name}")
    '<format>.txt: the name does not tell the format; give --format'
    """

    template: str
    values: tuple[Any, ...]

    def __new__(cls, template: str, *values: Any) -> Message:
        message = super().__new__(cls, _PARAMETER.sub(lambda found: found[0][1:-1], template).format(*values))
        message.template, message.values = template, values
        return message

    def __getnewargs__(self) -> tuple[Any, ...]:
        return self.template, *self.values

    def naming(self, name_of: Callable[[str, str | None], str]) -> str:
        """The message with other words for its parameters.

        Parameters
        ----------
        name_of : callable
            Takes the name of a parameter and what is after its equals sign, None if there is no such sign; returns the words.
        """
        template = _PARAMETER.sub(lambda found: name_of(found[1], found[2]), self.template)
        return template.format(*(value.naming(name_of) if isinstance(value, Message) else value for value in self.values))


def message_of(error: BaseException) -> str:
    """What an error or a warning says: its `Message`, if it has one."""
    return error.args[0] if error.args and isinstance(error.args[0], Message) else str(error)
