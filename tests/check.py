"""`make check`: the quick tests of what has changed, on the Python files as they are.

    python -P tests/check.py [BASE]

What has changed is what is not committed or, where all is, the last commit; with BASE, what has changed since that commit.
"""

import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = Path("src/mirrorlda")
# Tests of what is not a package of Python: by the beginning of a path, the first that fits.
TESTS_OF = {
    "core/bindings/bind_text.cpp": ["tests/data"],
    "core/bindings/bind_shards.cpp": ["tests/data"],
    "core/text/": ["tests/data"],
    "core/corpus/": ["tests/data"],
    "core/likelihood/": ["tests/evaluation"],
    "core/method/": ["tests/method", "tests/training"],
    "core/": ["tests/data", "tests/evaluation", "tests/method", "tests/training"],
    "CMakeLists.txt": ["tests/method/test_core.py"],
    "ARCHITECTURE.md": ["tests/project/test_architecture.py"],
    "Makefile": ["tests/project/test_scripts.py"],
    "benchmarks/": ["tests/project/test_scripts.py"],
    "README.md": ["tests/project/test_docs.py"],
    "docs/": ["tests/project/test_docs.py"],
    "experiments/": ["tests/experiments"],
    "tests/golden/same_bits.json": ["tests/project/test_same_bits.py"],
    "tests/golden/corpus1": ["tests/data/test_corpus.py"],
    "tests/golden/": ["tests/saving"],
    # The grid of parameters is there for these.
    "tests/conftest.py": ["tests/method"],
    "tests/check.py": ["tests/project/test_check.py"],
    "src/mirrorlda/": ["tests/project/test_contracts.py"],
}


def git(*arguments: str) -> list[str]:
    """The lines that git prints."""
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(done.stderr.strip())
    return done.stdout.splitlines()


def changed(base: str | None) -> list[str]:
    """Paths of files that differ from `base`, the untracked among them."""
    untracked = git("ls-files", "--others", "--exclude-standard")
    paths = git("diff", "--name-only", "--no-renames", base or "HEAD", "--") + untracked
    if not paths and base is None:
        paths = git("diff", "--name-only", "--no-renames", "HEAD~1", "--")
    return sorted(set(paths))


def tests_importing(module: str) -> list[str]:
    """Test files that import what they share."""
    imports = re.compile(rf"^\s*(?:from|import) {module}\b", re.MULTILINE)
    found = [path for path in (ROOT / "tests").rglob("test_*.py") if imports.search(path.read_text(encoding="utf-8"))]
    return [path.relative_to(ROOT).as_posix() for path in found]


def tests_of(path: str) -> list[str]:
    """What to run after a change of one file: folders and files of tests, and modules whose docstrings have examples."""
    parts = Path(path).parts
    if parts[0] == "tests" and parts[-1].startswith("test_") and path.endswith(".py"):
        return [path] if (ROOT / path).exists() else []
    if path.startswith(f"{SOURCE}/") and len(parts) > len(SOURCE.parts) + 1:
        chosen = [f"tests/{parts[len(SOURCE.parts)]}"]
        if path.endswith(".py") and (ROOT / path).exists():
            chosen.append(".".join(Path(path).relative_to("src").with_suffix("").parts).removesuffix(".__init__"))
        return chosen
    for beginning, chosen in TESTS_OF.items():
        if path.startswith(beginning):
            return chosen
    if parts[0] == "tests" and path.endswith(".py"):
        return [path, *tests_importing(Path(path).stem)]
    return []


def selected(paths: list[str]) -> list[str]:
    """What to run after a change of several files, each once: no file of tests whose folder is run."""
    chosen = sorted({test for path in paths for test in tests_of(path)})
    return [test for test in chosen if not any(test.startswith(f"{folder}/") for folder in chosen)]


def files_of(package: Path) -> dict[Path, Path]:
    """All files of a package but those that are compiled, by their places in it."""
    found = {path.relative_to(package): path for path in package.rglob("*") if path.is_file() and "__pycache__" not in path.parts}
    return {place: path for place, path in found.items() if not place.name.startswith("_core.") or place.suffix == ".pyi"}


def copy_package(source: Path, installed: Path) -> None:
    """Make the files of an installed package those of its source; the compiled core stays."""
    new, old = files_of(source), files_of(installed)
    for place in old.keys() - new.keys():
        old[place].unlink()
    for place, path in new.items():
        if place not in old or old[place].read_bytes() != path.read_bytes():
            (installed / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, installed / place)


def main(base: str | None = None) -> int:
    copy_package(ROOT / SOURCE, Path(sysconfig.get_path("platlib"), "mirrorlda"))
    chosen = selected(changed(base))
    print("checking", " ".join(chosen) or "nothing: no test belongs to what has changed", flush=True)
    if not chosen:
        return 0
    options = ["--quiet", "--numprocesses", "2", "--dist", "loadgroup", "--doctest-modules", "-m", "not slow", "--pyargs"]
    status = subprocess.run([sys.executable, "-P", "-m", "pytest", *options, *chosen], cwd=ROOT).returncode
    # Status 5: the tests that were chosen are all slow.
    return 0 if status == 5 else status


if __name__ == "__main__":
    raise SystemExit(main(*sys.argv[1:]))
