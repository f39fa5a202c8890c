"""Files that are there in full or not at all: links, permissions, errors, and what cannot be replaced."""

import os
import stat
from pathlib import Path

import pytest

from mirrorlda.data.files import atomic
from mirrorlda.data.files.atomic import replaced, replaced_directory


@pytest.fixture(params=["unnamed", "named"], autouse=True)
def kind_of_file(request, monkeypatch):
    """As on Linux, and as on systems where each file has a name."""
    if request.param == "named":
        monkeypatch.setattr(atomic, "_open_unnamed", lambda directory: None)


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    return path


def write(path, content=b"new"):
    with replaced(path) as file:
        file.write(content)


def permissions(path):
    return stat.S_IMODE(path.stat().st_mode)


def test_the_old_file_is_there_until_the_new_one_is(path):
    with replaced(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"
    assert list(path.parent.iterdir()) == [path]


def test_an_error_while_writing_leaves_the_old_file_and_nothing_else(path, monkeypatch):
    def interrupted():
        with replaced(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    monkeypatch.setattr(os, "fsync", lambda descriptor: (_ for _ in ()).throw(OSError(28, "disk full")))
    with pytest.raises(OSError, match="disk full"):
        write(path)
    assert path.read_bytes() == b"old"
    assert list(path.parent.iterdir()) == [path]


def test_a_link_stays_and_what_it_leads_to_is_replaced(path, tmp_path):
    link = tmp_path / "link"
    link.symlink_to(path)
    write(link)
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert {entry.name for entry in tmp_path.iterdir()} == {"file", "link"}


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_file_that_is_replaced_keeps_its_permissions(path, mode):
    path.chmod(mode)
    with replaced(path) as file:
        # From the first byte on: what is private is so while it is written.
        assert stat.S_IMODE(os.fstat(file.fileno()).st_mode) == mode
    assert permissions(path) == mode


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_a_new_file_follows_the_umask(tmp_path, umask):
    before = os.umask(umask)
    try:
        write(tmp_path / "new")
    finally:
        os.umask(before)
    assert permissions(tmp_path / "new") == 0o666 & ~umask


def test_what_is_no_file_is_refused_before_anything_is_written(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    with pytest.raises(IsADirectoryError, match=r"in place of a directory: .*folder"):
        replaced(tmp_path / "folder").__enter__()
    with pytest.raises(OSError, match=r"in place of a device or a pipe: .*pipe"):
        replaced(tmp_path / "pipe").__enter__()
    with pytest.raises(FileNotFoundError):
        replaced(tmp_path / "missing" / "file").__enter__()
    assert {entry.name for entry in tmp_path.iterdir()} == {"pipe", "folder"}


def test_a_name_may_be_bytes(path):
    write(os.fsencode(path))
    assert path.read_bytes() == b"new"
    with pytest.raises(TypeError, match=r"expected str, bytes or os\.PathLike object, not int"):
        write(3)


# Directories


def files_in(folder):
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize("interrupted", [1, 2, 3])
@pytest.mark.parametrize("done", [False, True])
def test_an_interruption_between_two_names_leaves_the_old_directory_or_the_new_one(tmp_path, monkeypatch, interrupted, done):
    """Ctrl-C before or after a directory has another name."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part-0").write_text("old")
    rename, n_calls = Path.rename, 0

    def renamed(path, target):
        nonlocal n_calls
        n_calls += 1
        if n_calls == interrupted and not done:
            raise KeyboardInterrupt
        result = rename(path, target)
        if n_calls == interrupted:
            raise KeyboardInterrupt
        return result

    monkeypatch.setattr(Path, "rename", renamed)
    try:
        with replaced_directory(tmp_path / "parts", lambda _: True) as directory:
            (directory / "part-0").write_text("new")
    except KeyboardInterrupt:
        assert interrupted < 3
    is_new = interrupted == 3 or (interrupted == 2 and done)
    assert files_in(tmp_path) == {"parts/part-0": "new" if is_new else "old"}


def test_what_cannot_be_named_leaves_the_old_directory(tmp_path, monkeypatch):
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "part-0").write_text("old")
    monkeypatch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError("no")))
    with pytest.raises(OSError, match="no"), replaced_directory(tmp_path / "parts", lambda _: True) as directory:
        (directory / "part-0").write_text("new")
    assert files_in(tmp_path) == {"parts/part-0": "old"}
