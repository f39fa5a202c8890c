"""Patterns from files: what is taken cannot take exponential time, as Python's own parser sees it."""

import re
import warnings
from re import _parser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mirrorlda.saving.regexes import is_bounded


@pytest.mark.parametrize(
    "pattern",
    [
        r"(?u)\b\w\w+\b",
        r"\w+",
        r"[a-z]+",
        r"(?u)\b\w+\b",
        r"[^\s]+",
        r"\b[a-zA-Z]{3,}\b",
        r"[a-z]+(?:'[a-z]+)?",
        r"(?i)(\w{2,20})",
        r"#\w+|@\w+|[^\w\s]",
        r"\$?\d+(?:\.\d+)?%?|\w+",
        r"(?<!\S)\w+(?!\S)",
        r"[]x\]]+",
        r"\d{4}-\d{2}-\d{2}",
        r"[\w.]+@[\w-]+\.[a-z]+",
        r"(?P<word>\w+)",
        r"\w+?\b",
        r"[\u00e4\x41]+",
        "",
    ],
)
def test_common_patterns_are_taken(pattern):
    assert is_bounded(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        # Comments and the verbose flag hide what the rest is.
        r"(?#[)(?:\w+)*x(?#])",
        "(?x)#[\n(?:\\w+)*x#]",
        "(?x)(?:\\w+)#c\n*x",
        r"(?ix)\w+",
        r"(?u)(?x)\w+",
        r"(?x:\w+ )",
        r"\w+(?#comment)",
        # Repeated groups.
        r"(\w+)+x",
        r"(?:\w+)*x",
        r"(?:\w+){2,}x",
        r"(?:\w|a){9}x",
        r"(?i:\w+)*x",
        r"(?:(?:\w+)?)*x",
        r"(?>\w+)*x",
        # References back.
        r"(a)\1",
        r"(?P<a>\w+)(?P=a)",
        r"(a)?(?(1)b|c)",
        # Many repeats one after another, and many choices.
        r"\w*" * 12 + "!",
        r"\w*" * 4 + "!",
        r"\w{0,99}" * 4 + "!",
        r"(?:\w*\w*)\w*\w*!",
        r"\w?" * 30 + "!",
        r"(?:\w|a)" * 30 + "!",
        r"(?:\w?)?" * 30 + "!",
        # No patterns, or none that scikit-learn takes.
        "(",
        ")",
        "a)",
        "[a",
        "a**",
        "*",
        r"a{99999999999}",
        r"(a)(b)",
        "a" * 501,
    ],
)
def test_other_patterns_are_refused(pattern):
    assert not is_bounded(pattern)


PARTS = ["a", " ", "\n", "#", r"\w", r"\b", r"\1", ".", "^", "|", "*", "+", "?", "{2}", "{2,}", "{,3}", "{", "}", "(?#", "(?i)"]
PARTS += ["(", "(?:", "(?x)", "(?x:", "(?i:", "(?=", "(?<!", "(?>", "(?P<n>", "(?P=n)", "(?(1)", ")", "[", "[^", "]", "\\]", "\\"]


def cost(tree):
    """The repeats one after another of a pattern as Python parses it; an error for a repeat of more than a character."""
    n_repeats = 0
    for operation, content in tree:
        name = str(operation)
        if name in ("MAX_REPEAT", "MIN_REPEAT", "POSSESSIVE_REPEAT"):
            _, most, body = content
            if most == 1:
                n_repeats += cost(body)
            else:
                assert [str(inner) for inner, _ in body] in (["IN"], ["ANY"], ["LITERAL"], ["NOT_LITERAL"])
                n_repeats += 1
        elif name == "BRANCH":
            n_repeats += max(cost(branch) for branch in content[1])
        elif name == "SUBPATTERN":
            n_repeats += cost(content[-1])
        elif name in ("ASSERT", "ASSERT_NOT"):
            n_repeats += cost(content[1])
        else:
            assert name in ("IN", "ANY", "LITERAL", "NOT_LITERAL", "AT")
    return n_repeats


@settings(max_examples=1000)
@given(st.lists(st.sampled_from(PARTS), max_size=12).map("".join))
def test_what_is_taken_is_bounded_as_python_parses_it(pattern):
    if not is_bounded(pattern):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        tree = _parser.parse(pattern)
    assert cost(tree) <= 3
    assert not tree.state.flags & re.VERBOSE
