"""Files that are there in full or not at all."""

from __future__ import annotations

import errno
import os
import secrets
import stat
from collections.abc import Iterator
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
    >>> from mirrorlda.durable import replaced
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
            file.flush()
            os.fsync(descriptor)
            if not has_name:
                # With a directory given, Python follows the link in /proc to the file itself.
                os.link(f"/proc/self/fd/{descriptor}", temporary, src_dir_fd=descriptor, follow_symlinks=True)
        os.replace(temporary, target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


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
