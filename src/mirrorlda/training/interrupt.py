"""Ctrl-C while something long runs: asked for once, it ends at the next good moment; asked for twice, at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


class InterruptedWarning(UserWarning):
    """Training was ended by Ctrl-C: the model is what was learned so far."""


@contextmanager
def interruptible() -> Iterator[Callable[[], bool]]:
    """Gives a function that says whether Ctrl-C was pressed within the block; the second time raises KeyboardInterrupt.

    Only Python's own handling is replaced, and that can be done on the main thread alone; elsewhere the answer stays False.
    """
    pressed = False

    def note(number: int, frame: FrameType | None) -> None:
        nonlocal pressed
        if pressed:
            raise KeyboardInterrupt
        pressed = True

    own = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if own:
        signal.signal(signal.SIGINT, note)
    try:
        yield lambda: pressed
    finally:
        if own:
            signal.signal(signal.SIGINT, signal.default_int_handler)
