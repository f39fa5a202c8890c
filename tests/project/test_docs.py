"""The Python blocks of README.md and docs/ run as they stand, those of a file one after another in one namespace."""

import re
import warnings
from pathlib import Path

import pytest

import mirrorlda
from mirrorlda.cli import main

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TOCTREE = re.compile(r"^```\{toctree\}\n(.*?)^```$", re.MULTILINE | re.DOTALL)
DOCUMENTED = re.compile(r"^\.\. auto(?:class|function|exception):: (\S+)$", re.MULTILINE)


def name_of(page):
    return page.relative_to(ROOT).as_posix()


def blocks(page):
    """Each block with as many empty lines before it as it takes for tracebacks to show the page's own line numbers."""
    text = page.read_text(encoding="utf-8")
    return ["\n" * text.count("\n", 0, found.start(1)) + found[1] for found in BLOCK.finditer(text)]


def import_tomotopy():
    """Its types lack a module, of which Python warns when they are first imported."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "builtin type .* has no __module__ attribute", DeprecationWarning)
        import tomotopy  # noqa: F401


# A page that is about a cluster uses that of the other tests.
ON_A_CLUSTER = [DOCS / "cluster.md"]


@pytest.mark.slow
@pytest.mark.xdist_group("ray")
@pytest.mark.parametrize("page", ON_A_CLUSTER, ids=name_of)
def test_code_blocks_run_on_a_cluster(page, connected, tmp_path, monkeypatch):
    test_code_blocks_run(page, tmp_path, monkeypatch)


@pytest.mark.parametrize("page", [page for page in PAGES if blocks(page) and page not in ON_A_CLUSTER], ids=name_of)
def test_code_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    if page.name == "from-tomotopy.md":
        import_tomotopy()
    namespace = {"__name__": "__main__"}
    for block in blocks(page):
        exec(compile(block, page, "exec"), namespace)


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
