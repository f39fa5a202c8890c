"""Whatever a page names is there: files, targets of the Makefile, verbs, options, and the commands of the experiments."""

import importlib
import re
import shlex
import sys
import warnings
from pathlib import Path

import click
import pytest

from mirrorlda.cli import main

ROOT = Path(__file__).parents[2]
PAGES = [
    *ROOT.glob("*.md"),
    ROOT / "benchmarks" / "README.md",
    ROOT / "experiments" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
# In backticks, in blocks, and behind four spaces.
CODE = re.compile(r"`([^`\n]+)`|^(?:\$| {4}) ?(.+)$", re.MULTILINE)
FILE = re.compile(r"(?<![\w./-])(?:benchmarks|core|docs|experiments|src|tests)/(?!s\b)[\w./-]*\w")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
# What a measurement that no test can repeat says of itself.
DAY = re.compile(r"\b\d{1,2} [A-Z][a-z]+ 20\d\d")


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def code_of(page):
    return [one or other for one, other in CODE.findall(page.read_text(encoding="utf-8"))]


def commands(page, start):
    """Commands that begin so, without patterns such as NAME=VALUE."""
    found = [code for code in code_of(page) if code.startswith(f"{start} ")]
    return [shlex.split(code, comments=True) for code in found if "..." not in code and "VERB" not in code]


EXPERIMENTS = sorted(
    {shlex.join(command) for page in PAGES for command in commands(page, "python") if "experiments/" in command[1]}
)


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_files_that_a_page_names_are_there(page):
    assert [path for path in FILE.findall(page.read_text(encoding="utf-8")) if not (ROOT / path).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_targets_that_a_page_names_are_there(page):
    targets = set(re.findall(r"^([a-z][\w-]*):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {command[1] for command in commands(page, "make")} <= targets


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_verbs_and_options_that_a_page_names_are_there(page):
    for _, verb, *arguments in commands(page, "mirrorlda"):
        if verb.startswith("-"):
            continue
        command = main.get_command(click.Context(main), verb)
        assert command is not None, verb
        known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}
        assert {argument for argument in arguments if re.match(r"--?[a-z]", argument)} <= known, verb


def test_options_by_themselves_are_those_of_some_command():
    known = set(OPTION.findall((ROOT / "Makefile").read_text(encoding="utf-8")))
    for verb in main.list_commands(click.Context(main)):
        for parameter in main.get_command(click.Context(main), verb).params:
            known |= {*parameter.opts, *parameter.secondary_opts}
    known |= {option for parameter in main.params for option in parameter.opts} | {"--help"}
    for script in [*ROOT.glob("benchmarks/*.py"), *ROOT.glob("experiments/*.py")]:
        known |= set(re.findall(r'"(--[a-z-]+)"', script.read_text(encoding="utf-8")))
    named = {option for page in PAGES for code in code_of(page) if code.startswith("-") for option in OPTION.findall(code)}
    assert named - known - {"--no-resume"} == set()


def last_words(run):
    """What a command ends with, if it does not go on to its end."""
    try:
        run()
    except SystemExit as ended:
        return ended.code
    return None


@pytest.mark.parametrize("command", [command for command in EXPERIMENTS if "rounds.py" not in command])
def test_commands_of_experiments_are_understood(command, tmp_path, monkeypatch, capsys):
    """They end where their files are not there, after all options have been read."""
    _, script, *arguments = shlex.split(command)
    arguments = [str(tmp_path) if argument == "DATA_DIR" else argument for argument in arguments]
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(ROOT / "experiments"))
    monkeypatch.setattr(sys, "argv", [script, *arguments])
    with warnings.catch_warnings():
        # tomotopy's types lack a module, of which Python warns when they are first imported.
        warnings.filterwarnings("ignore", "builtin type .* has no __module__ attribute", DeprecationWarning)
        module = importlib.import_module(Path(script).stem)
    said = last_words(module.main) or capsys.readouterr().err
    assert re.search(r"not found|[Nn]o such file|left out: its files are not all in", str(said))


MEASUREMENTS = ["README.md", "docs/cluster.md", "docs/few-labels.md", "docs/large-data.md", "docs/method.md", "docs/text.md"]


@pytest.mark.parametrize("name", MEASUREMENTS)
def test_what_takes_too_long_to_repeat_says_when_it_was_measured(name):
    """And how: the tables of docs/results are compared with their runs in tests/experiments/test_results.py."""
    page = ROOT / name
    assert DAY.search(page.read_text(encoding="utf-8"))
    assert commands(page, "python") or commands(page, "make")
