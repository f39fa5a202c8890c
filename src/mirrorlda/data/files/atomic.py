"""Files and directories that are there in full or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

AnyPath = str | bytes | os.PathLike[str] | os.PathLike[bytes]


@contextmanager
def replaced(path: AnyPath) -> Iterator[BinaryIO]:
    """A file to write to that takes the place of `path`, on the disk, when the block ends without an error.

    Until then it has no name where the system allows that (Linux), so that even a killed process leaves nothing behind.
    It has the permissions of the file that it replaces; where there is none, those that the umask gives. A link stays, and what
    it leads to is replaced.

    Raises
    ------
    OSError
        Before anything is written, if `path` is a directory or a device, or cannot be written to.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from mirrorlda.data.files.atomic import replaced
    >>> path = Path(mkdtemp()) / "notes.txt"
    >>> _ = path.write_text("before")
    >>> with replaced(path) as file:
    ...     _ = file.write(b"after")
    ...     print(path.read_text())
    before
    >>> path.read_text()
    'after'
    """
    name = os.fsdecode(path)
    target = Path(os.path.realpath(name))
    permissions = _permissions(name, target)
    temporary = target.with_name(f".mirrorlda-{secrets.token_hex(8)}")
    descriptor = _open_unnamed(target.parent)
    has_name = descriptor is None
    if descriptor is None:
        descriptor = os.open(temporary, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            # Windows has no permissions to keep.
            if permissions is not None and os.name == "posix":
                os.fchmod(descriptor, permissions)
            yield file
            sync(file)
            if not has_name:
                # With a directory given, Python follows the link in /proc to the file itself.
                os.link(f"/proc/self/fd/{descriptor}", temporary, src_dir_fd=descriptor, follow_symlinks=True)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


@contextmanager
def replaced_directory(path: AnyPath, is_replaceable: Callable[[Path], bool]) -> Iterator[Path]:
    """A new directory to write to, beside `path`, whose name it gets when the block ends without an error.

    What is there may be an empty directory, or one that `is_replaceable`, which goes away then.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import mkdtemp
    >>> from mirrorlda.data.files.atomic import replaced_directory
    >>> path = Path(mkdtemp()) / "parts"
    >>> with replaced_directory(path, lambda there: False) as directory:
    ...     _ = (directory / "part-0").write_text("all of it")
    ...     print(path.exists())
    False
    >>> [found.name for found in path.iterdir()]
    ['part-0']
    """
    target = Path(os.path.realpath(os.fsdecode(path)))
    if target.exists() and not target.is_dir():
        raise FileExistsError(f"{target} is a file, expected the name of a directory, which is written anew")
    if target.exists() and any(target.iterdir()) and not is_replaceable(target):
        raise FileExistsError(f"{target} is a directory with other files in it: write to another place")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"no such directory: {target.parent}")
    new, old = (target.with_name(f".mirrorlda-{secrets.token_hex(8)}") for _ in range(2))
    new.mkdir()
    try:
        yield new
        sync_directory(new)
        try:
            if target.exists():
                target.rename(old)
            new.rename(target)
        except BaseException:
            if old.exists() and not target.exists():
                old.rename(target)
            raise
        finally:
            if target.exists():
                sync_directory(target.parent)
                shutil.rmtree(old, ignore_errors=True)
    except BaseException:
        shutil.rmtree(new, ignore_errors=True)
        raise


def check_directory(path: Path) -> None:
    """That a directory that one machine has made is there on this one too."""
    if not path.is_dir():
        raise FileNotFoundError(f"found no directory {path}, expected one that all machines share")


def sync(file: BinaryIO) -> None:
    """What was written is on the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_directory(directory: Path) -> None:
    """The names of new files are on the disk too. Windows has nothing for it."""
    if os.name == "posix":
        descriptor = os.open(directory, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def _permissions(name: str, target: Path) -> int | None:
    """Those of the file that will be replaced; None if there is none."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if stat.S_ISDIR(mode):
        raise IsADirectoryError(errno.EISDIR, "cannot write a file in place of a directory", name)
    if not stat.S_ISREG(mode):
        raise OSError(errno.EINVAL, "cannot write a file in place of a device or a pipe", name)
    return mode & 0o777


def _open_unnamed(directory: Path) -> int | None:
    """A file in this directory that has no name; None where the system has no such files."""
    if not hasattr(os, "O_TMPFILE") or not os.path.isdir("/proc/self/fd"):
        return None
    try:
        return os.open(directory, os.O_TMPFILE | os.O_RDWR, 0o666)
    except OSError as error:
        if error.errno in (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL):
            return None
        raise
