"""Bytes in: files by name and pattern, streams, gzip and zstd by their first bytes, lines."""

from __future__ import annotations

import contextlib
import copy
import glob
import io
import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable
from typing import IO, Any, TypeVar, cast

from mirrorlda.data.files.urls import is_url, matching, opened
from mirrorlda.data.readers.rows import LONGEST_ROW, BadFileError, Tally

Files = str | os.PathLike[str] | IO[bytes]
BUFFER = 1 << 20
CODECS = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
T = TypeVar("T")


class Source:
    """One input: a regular file, which can be opened again and again, or a stream, which can be read once unless it can seek."""

    def __init__(self, file: Files) -> None:
        self.path: str | None = None
        self.stream: IO[bytes] | None = None
        if isinstance(file, str | os.PathLike) and os.fspath(file) != "-":
            self.path = self.name = os.fspath(file)
            self.is_folder = os.path.isdir(self.path)
            self.can_reopen = self.is_folder or is_url(self.path) or stat.S_ISREG(os.stat(self.path).st_mode)
        else:
            if isinstance(file, str | os.PathLike):
                self.name, self.stream = "standard input", sys.stdin.buffer
            else:
                self.name, self.stream = str(getattr(file, "name", "stream")), file
            self.is_folder = False
            self.can_reopen = self.stream.seekable()
            self.start = self.stream.tell() if self.can_reopen else 0
        self.was_opened = False

    def anywhere(self) -> Source:
        """The same file for another process, whose directory may be another; errors call it what it is called here."""
        assert self.path is not None
        other = copy.copy(self)
        other.path = self.path if is_url(self.path) else os.path.abspath(self.path)
        return other

    def _opened(self) -> IO[bytes]:
        if self.was_opened and not self.can_reopen:
            raise BadFileError(self.name, "a stream can be read once only, and a second pass was begun: save it to a file first")
        self.was_opened = True
        if self.path is not None:
            return opened(self.path) if is_url(self.path) else open(self.path, "rb", buffering=0)
        assert self.stream is not None
        if self.can_reopen:
            self.stream.seek(self.start)
        return self.stream

    def open(self) -> io.BufferedReader:
        """The bytes, decompressed."""
        raw = _Raw(self._opened(), self.name, is_owned=self.stream is None)
        codec = next((name for magic, name in CODECS.items() if raw.head.startswith(magic)), None)
        if codec is None:
            return io.BufferedReader(raw, BUFFER)
        import pyarrow as pa

        inner = pa.PythonFile(io.BufferedReader(raw, BUFFER), mode="r")
        # What is in the buffer when the data turns out to be damaged is lost: a small one.
        return io.BufferedReader(cast(io.RawIOBase, pa.CompressedInputStream(inner, codec)), 1 << 16)

    def open_seekable(self, tally: Tally) -> IO[bytes]:
        """The bytes as a file that can seek: what is compressed or streamed goes to a temporary file first."""
        with self.open() as stream:
            if isinstance(stream.raw, _Raw) and self.path is not None and self.can_reopen:
                return opened(self.path) if is_url(self.path) else open(self.path, "rb")
            with contextlib.ExitStack() as until_copied:
                copy = until_copied.enter_context(tempfile.TemporaryFile())
                whole(self.name, tally, lambda: shutil.copyfileobj(stream, copy, BUFFER))
                until_copied.pop_all()
        copy.seek(0)
        return copy


class _Raw(io.RawIOBase):
    """A stream whose first bytes have been looked at; one that was given to us is not closed by us."""

    def __init__(self, stream: IO[bytes], name: str, is_owned: bool) -> None:
        self.stream = stream
        self.is_owned = is_owned
        self.head = b""
        while len(self.head) < 4 and (more := stream.read(4 - len(self.head))):
            if not isinstance(more, bytes):
                raise TypeError(f"{name}: found a stream of text, expected one of bytes: open it in binary mode")
            self.head += more
        self.unread = self.head

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        data = self.unread or self.stream.read(len(buffer)) or b""
        data, self.unread = data[: len(buffer)], data[len(buffer) :]
        buffer[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if self.is_owned:
            self.stream.close()
        super().close()


def whole(name: str, tally: Tally, action: Callable[[], T]) -> T:
    """Read: compressed data that is cut short or damaged is an error that says how many rows came before it."""
    try:
        return action()
    except OSError as error:
        raise _damaged(name, tally, error) from None


def _damaged(name: str, tally: Tally, error: OSError) -> Exception:
    # What the operating system reports has a number; what the decompression reports has none.
    if error.errno is not None:
        return error
    return BadFileError(name, f"compressed data cut short or damaged after {tally.n_rows} rows: {error}")


class Lines:
    """The lines of a source, one `read` at a time, without a byte order mark."""

    def __init__(self, source: Source, tally: Tally) -> None:
        self.name = source.name
        self.tally = tally
        self.stream = source.open()
        self.number = 0
        self.offset = 0
        self.next_offset = 0

    def __enter__(self) -> Lines:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()

    def read(self) -> bytes:
        """The next line with its end, nothing at the end of the file; one byte too many of a line that is too long."""
        line = self._read_line()
        if not line:
            return line
        self.number += 1
        self.offset = self.next_offset - len(line)
        if self.number == 1:
            line = self._without_mark(line)
        return line

    def read_block(self, size: int) -> bytes:
        """Whole lines, about `size` bytes; `number` is that of the first of them, and `pass_block` goes past them.

        It is longer than `LONGEST_ROW` if a line of it may be.
        """
        block = self.read()
        if block and len(block) <= LONGEST_ROW:
            more = whole(self.name, self.tally, lambda: self.stream.read(size))
            self.next_offset += len(more)
            block += more + (b"" if more.endswith(b"\n") else self._read_line())
        return block

    def read_block_of_short_lines(self, size: int) -> bytes:
        block = self.read_block(size)
        if len(block) > LONGEST_ROW:
            raise BadFileError(self.name, f"found a line of more than {LONGEST_ROW - size} bytes after line {self.number}")
        return block

    def _read_line(self) -> bytes:
        line = self._read(LONGEST_ROW + 1)
        self.next_offset += len(line)
        rest = line
        while len(line) > LONGEST_ROW and rest and not rest.endswith(b"\n"):
            rest = self._read(BUFFER)
            self.next_offset += len(rest)
        return line

    def pass_block(self, n_lines: int) -> None:
        self.number += n_lines - 1

    def _read(self, size: int) -> bytes:
        # Not by way of `whole`: a call less for each line.
        try:
            return self.stream.readline(size)
        except OSError as error:
            raise _damaged(self.name, self.tally, error) from None

    def _without_mark(self, line: bytes) -> bytes:
        if line.startswith((b"\xff\xfe", b"\xfe\xff")):
            raise BadFileError(
                self.name, f"the file begins with a byte order mark of UTF-16, expected UTF-8: {_advice('utf-16')}"
            )
        if line.startswith(b"\xef\xbb\xbf"):
            self.offset += 3
            return line[3:]
        return line

    def fault(self, line: bytes, offset: int | None = None) -> tuple[int | None, str] | None:
        """Column and reason if a line, by default the one read last, holds what no format of text may hold."""
        offset = self.offset if offset is None else offset
        if len(line) > LONGEST_ROW:
            return None, f"found a row of more than {LONGEST_ROW} bytes, expected at most so many"
        if b"\0" in line:
            position = line.index(b"\0")
            return self._column(line, position), f"found a NUL byte (byte {offset + position} of the file), expected text"
        try:
            line.decode()
        except UnicodeDecodeError as error:
            byte = f"0x{line[error.start]:02x} (byte {offset + error.start} of the file)"
            reason = f"found {byte}, which is not UTF-8: {error.reason}; {_advice('cp1252')}"
            return self._column(line, error.start), reason
        return None

    def _column(self, line: bytes, position: int) -> int:
        return len(line[:position].decode(errors="replace")) + 1


def _advice(encoding: str) -> str:
    return f"save the file as UTF-8, for example: iconv -f {encoding} -t utf-8"


def expand(files: Files | Iterable[Files]) -> list[Source]:
    """Inputs in the order given, the matches of a pattern sorted, each file once.

    Raises
    ------
    FileNotFoundError
        If a name is not there, or a pattern matches nothing.
    """
    if hasattr(files, "columns"):
        what = f"files must be names, patterns or binary file objects, got a {type(files).__name__}"
        raise TypeError(f"{what}: write it to a file, or count its texts with TextVectorizer and fit a model to the counts")
    is_one = isinstance(files, str | os.PathLike) or hasattr(files, "read")
    given = [cast(Files, files)] if is_one else list(cast(Iterable[Files], files))
    sources: dict[object, Source] = {}
    for file in given:
        if not isinstance(file, str | os.PathLike):
            if not hasattr(file, "read"):
                raise TypeError(f"files must be names, patterns or binary file objects, got {file!r}")
            sources[id(file)] = Source(file)
            continue
        name = os.fspath(file)
        if is_url(name):
            names = matching(name)
        else:
            names = [name] if name == "-" or os.path.lexists(name) else sorted(glob.glob(name, recursive=True))
        if not names:
            what = "no file matches the pattern" if glob.has_magic(name) else "no such file"
            raise FileNotFoundError(f"{what}: {name!r}")
        for found in names:
            sources.setdefault(found if found == "-" or is_url(found) else os.path.abspath(found), Source(found))
    if not sources:
        raise ValueError("files is empty, expected at least one name, pattern or binary file object")
    return list(sources.values())
