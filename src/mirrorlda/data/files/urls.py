"""Files behind a URL (s3://, gs://, https:// and whatever else fsspec knows), kept on this machine once they were asked for."""

from __future__ import annotations

import glob
import os
import shutil
from pathlib import Path
from typing import IO, Any

from mirrorlda.data.files.atomic import replaced


def is_url(path: Any) -> bool:
    """Whether a name is that of something behind a URL.

    Examples
    --------
    >>> from mirrorlda.data.files.urls import is_url
    >>> is_url("s3://bucket/reviews.corpus"), is_url("reviews.corpus")
    (True, False)
    """
    return isinstance(path, str) and "://" in path


def cache_directory() -> Path:
    """Where files are kept: the directory that MIRRORLDA_CACHE names, or one in the user's own cache."""
    own = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return Path(os.environ.get("MIRRORLDA_CACHE") or os.path.join(own, "mirrorlda"))


def read(url: str) -> bytes:
    """What is behind a URL.

    Raises
    ------
    FileNotFoundError
    """
    with opened(url) as file:
        return file.read()


def matching(url: str) -> list[str]:
    """URLs of the files that a URL, which may be a pattern, stands for, in their order."""
    system, path = _fsspec(url).core.url_to_fs(url)
    found = system.glob(path) if glob.has_magic(path) else [path] if system.exists(path) else []
    return sorted(map(system.unstrip_protocol, found))


def fetched(url: str, name: str, n_bytes: int) -> Path:
    """The file behind a URL, which has so many bytes, in the cache under `name`; it is copied if it is not there.

    Raises
    ------
    OSError
        If it is not behind the URL, or not of its size.
    """
    path = cache_directory() / name
    if path.is_file() and path.stat().st_size == n_bytes:
        return path
    path.parent.mkdir(parents=True, exist_ok=True)
    with opened(url) as source, replaced(path) as file:
        shutil.copyfileobj(source, file, 1 << 20)
        if file.tell() != n_bytes:
            raise OSError(f"{url} has {file.tell()} bytes where {n_bytes} were written")
    return path


def opened(url: str) -> IO[bytes]:
    """The file behind a URL, which can seek."""
    file: IO[bytes] = _fsspec(url).open(url, "rb").open()
    return file


def _fsspec(url: str) -> Any:
    try:
        import fsspec
    except ImportError:
        raise ImportError(f"{url} is read with fsspec: pip install fsspec") from None
    return fsspec
