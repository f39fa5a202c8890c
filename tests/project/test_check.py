"""`make check`: which tests belong to what has changed, and how changed files come into the installed package."""

import check
import pytest


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (["src/mirrorlda/training/loop.py"], ["mirrorlda.training.loop", "tests/training"]),
        (["src/mirrorlda/data/corpus/prepare.py"], ["mirrorlda.data.corpus.prepare", "tests/data"]),
        (["src/mirrorlda/report/__init__.py", "src/mirrorlda/report/page.js"], ["mirrorlda.report", "tests/report"]),
        (["src/mirrorlda/training/was_there.py"], ["tests/training"]),
        (["src/mirrorlda/__init__.py"], ["tests/project/test_contracts.py"]),
        (["tests/data/test_text.py"], ["tests/data/test_text.py"]),
        (["tests/data/test_text.py", "src/mirrorlda/data/text.py"], ["mirrorlda.data.text", "tests/data"]),
        (["tests/data/test_that_was_there.py"], []),
        (["core/text/tokenize.cpp"], ["tests/data"]),
        (["core/method/kernels/simd.hpp"], ["tests/method", "tests/training"]),
        (["core/parallel/thread_pool.cpp"], ["tests/data", "tests/evaluation", "tests/method", "tests/training"]),
        (["experiments/baselines/network.py"], ["tests/experiments"]),
        (["docs/guide.md", "README.md"], ["tests/project/test_docs.py"]),
        (["LICENSE", "CHANGELOG.md"], []),
    ],
    ids=str,
)
def test_tests_of_changed_files(changed, expected):
    assert check.selected(changed) == expected


def test_what_tests_share_runs_those_that_import_it():
    chosen = check.selected(["tests/oracle_jax.py"])
    users = ["tests/inspect/test_explain.py", "tests/method/test_autodiff.py", "tests/method/test_themes.py"]
    assert chosen == [*users, "tests/oracle_jax.py"]


def test_every_package_has_a_folder_of_tests():
    packages = [path.name for path in (check.ROOT / check.SOURCE).iterdir() if (path / "__init__.py").exists()]
    assert len(packages) > 5
    assert [name for name in packages if not (check.ROOT / "tests" / name).is_dir()] == []


def test_every_rule_leads_to_tests_and_from_files_that_are_there():
    for beginning, chosen in check.TESTS_OF.items():
        assert (check.ROOT / beginning).exists(), beginning
        assert all((check.ROOT / test).exists() for test in chosen), beginning


def test_uncommitted_files_come_first_then_the_last_commit(tmp_path, monkeypatch):
    monkeypatch.setattr(check, "ROOT", tmp_path)
    check.git("init", "--quiet")
    as_someone = ["-c", "user.name=someone", "-c", "user.email=someone@example.org", "-c", "commit.gpgsign=false"]

    def commit(*names):
        for name in names:
            (tmp_path / name).write_text(name)
        check.git("add", "--all")
        check.git(*as_someone, "commit", "--quiet", "--message", "more")

    commit("a", "b")
    commit("c")
    assert check.changed(None) == ["c"]
    commit("d", "e")
    assert check.changed(None) == ["d", "e"]
    assert check.changed("HEAD~2") == ["c", "d", "e"]
    (tmp_path / "b").unlink()
    (tmp_path / "new").write_text("")
    assert check.changed(None) == ["b", "new"]
    assert check.changed("HEAD~1") == ["b", "d", "e", "new"]
    with pytest.raises(SystemExit, match="nowhere"):
        check.changed("nowhere")


def test_an_installed_package_has_the_files_of_its_source_and_its_own_core(tmp_path):
    source, installed = tmp_path / "source", tmp_path / "installed"
    for folder, files in {
        source: {"__init__.py": "new", "_core.pyi": "new", "report/page.js": "new", "__pycache__/x.pyc": "source"},
        installed: {"__init__.py": "old", "_core.pyi": "old", "gone/away.py": "old", "_core.abi3.so": "compiled"},
    }.items():
        for name, text in files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(text)
    check.copy_package(source, installed)
    found = {path.relative_to(installed).as_posix(): path.read_text() for path in installed.rglob("*") if path.is_file()}
    assert found == {"__init__.py": "new", "_core.pyi": "new", "report/page.js": "new", "_core.abi3.so": "compiled"}
