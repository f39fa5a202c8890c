"""The tree is what ARCHITECTURE.md says, and stays one that a person can take in."""

import re
from pathlib import Path

import pytest

import mirrorlda

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "mirrorlda"
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
FOLDERS = [PACKAGE, *(path for path in PACKAGE.rglob("*") if path.is_dir() and path.name != "__pycache__")]


def entries(folder):
    return [path for path in folder.iterdir() if path.name != "__pycache__" and path.suffix not in (".so", ".pyd")]


def test_every_file_that_the_page_names_is_there():
    named = {name for name in re.findall(r"`([\w./-]+)`", PAGE) if "/" in name}
    assert len(named) > 40
    assert [name for name in sorted(named) if not any((place / name).exists() for place in (ROOT, PACKAGE))] == []


def test_every_name_in_parentheses_is_in_its_file():
    found = re.findall(r"`([\w./-]+\.py)` \(((?:`\w+`(?:, )?)+)\)", PAGE)
    assert len(found) >= 4
    for file, names in found:
        text = next(place / file for place in (ROOT, PACKAGE) if (place / file).exists()).read_text(encoding="utf-8")
        assert [
            name
            for name in re.findall(r"`(\w+)`", names)
            if not re.search(rf"^(class|def) {name}\b|^    def {name}\b", text, re.M)
        ] == []


def test_short_names_of_modules_have_types():
    """A type checker does not run `mirrorlda/__init__.py`: it reads the stubs beside the package."""
    stubs = {path.stem: path.read_text(encoding="utf-8") for path in (PACKAGE.parent / "mirrorlda-stubs").glob("*.pyi")}
    assert stubs == {short: f"from mirrorlda.{module} import *\n" for short, module in mirrorlda._MODULES.items()}
    assert (PACKAGE.parent / "mirrorlda-stubs" / "py.typed").read_text() == "partial\n"


def test_every_package_is_in_the_picture():
    picture = PAGE.split("```text")[1].split("```")[0]
    assert [path.name for path in entries(PACKAGE) if path.is_dir() and path.name not in picture] == []


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.relative_to(PACKAGE).as_posix())
def test_a_folder_can_be_taken_in_at_a_glance(folder):
    assert len(entries(folder)) <= (14 if folder == PACKAGE else 12)
