"""Regular expressions from files, which read users' texts: those whose time is bounded by a power of a text's length.

Python's matcher goes back and tries again. It can do so in exponentially many ways where what is repeated is itself a repeat or a
choice, and in the n-th power of a text's length where n repeats stand one after another. So the patterns taken are those of a
small grammar that has no such things; whatever is not in the grammar is refused, rather than what is known to be slow.
"""

from __future__ import annotations

import re
import warnings

RULE = (
    "a pattern that compiles, with at most one group that captures and 3 repeats one after another, few choices, and without "
    "repeated groups, references back, comments and the verbose flag"
)

_MOST_REPEATS = 3
# Ways through what is optional and through alternatives.
_MOST_WAYS = 64
_LONGEST = 500
_FLAGS = re.compile(r"(?:\(\?[aimsu]+\))*")
_ITEM = re.compile(
    r"(?P<open>\((?:\?(?:[aimsu]*:|<?[=!]|P<\w+>)|(?!\?)))"
    r"|(?P<close>\))"
    r"|(?P<alternative>\|)"
    # A class, an escape (those of digits may refer back), or any character that stands for itself or for one.
    r"|(?P<single>\[\^?\]?(?:\\.|[^\]\\])*\]|\\(?:[AbBdDsSwWZfnrtv\W]|x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4})|[^\\()\[{|*+?])",
    re.DOTALL,
)
_REPEAT = re.compile(r"(?:(?P<optional>\?)|[*+]|\{(?:[0-9]+(?:,[0-9]*)?|,[0-9]*)\})[?+]?")


def is_bounded(pattern: str) -> bool:
    r"""Whether a pattern's time on a text grows at most with the fourth power of the text's length.

    Examples
    --------
    >>> from mirrorlda.saving.regexes import is_bounded
    >>> is_bounded(r"(?u)\b\w\w+\b"), is_bounded(r"[a-z]+(?:'[a-z]+)?"), is_bounded(r"(?:\w+)*x")
    (True, True, False)
    """
    if len(pattern) > _LONGEST or not _is_of_the_grammar(pattern):
        return False
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return re.compile(pattern).groups <= 1
    except (re.error, OverflowError):
        return False


def _is_of_the_grammar(pattern: str) -> bool:
    flags = _FLAGS.match(pattern)
    assert flags is not None
    position = flags.end()
    # Of each group that is open, and of each of its alternatives: repeats one after another, and ways through it.
    levels = [[(0, 1)]]
    while position < len(pattern):
        item = _ITEM.match(pattern, position)
        if item is None or (item.lastgroup == "close" and len(levels) == 1):
            return False
        position = item.end()
        if item.lastgroup == "open":
            levels.append([(0, 1)])
        elif item.lastgroup == "alternative":
            levels[-1].append((0, 1))
        else:
            n_repeats, n_ways = _joined(levels.pop()) if item.lastgroup == "close" else (0, 1)
            if repeat := _REPEAT.match(pattern, position):
                position = repeat.end()
                if repeat["optional"]:
                    n_ways += 1
                elif item.lastgroup == "single":
                    n_repeats += 1
                else:
                    return False
            before = levels[-1][-1]
            levels[-1][-1] = before[0] + n_repeats, before[1] * n_ways
    n_repeats, n_ways = _joined(levels[0])
    return len(levels) == 1 and n_repeats <= _MOST_REPEATS and n_ways <= _MOST_WAYS


def _joined(alternatives: list[tuple[int, int]]) -> tuple[int, int]:
    return max(n_repeats for n_repeats, _ in alternatives), sum(n_ways for _, n_ways in alternatives)
