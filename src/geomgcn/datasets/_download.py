"""Raw files with known hashes: from the cache, a mirror, or the network."""

import hashlib
import io
import logging
import os
import warnings
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib import resources
from pathlib import Path

import pooch
from filelock import FileLock

from geomgcn._store import cache_folder, folder_of, write_atomic

MIRROR_VARIABLE = "GEOMGCN_MIRROR"
TIMEOUT = 30  # seconds without an answer
EXCESS = 2**20  # bytes beyond the known size after which a download is cut off

logger = logging.getLogger(__name__)


class DataError(ValueError):
    """A data file is absent, altered, or not what its source promises."""

    __module__ = "geomgcn.datasets"  # the name that users see in a traceback and import


@dataclass(frozen=True)
class RemoteFile:
    """A file at a URL whose contents are known by their hash.

    Branches move; the hash is what pins the contents.

    Example:
        >>> RemoteFile("https://example.org/data/a.txt", num_bytes=0, sha256="e3b0...").path
        'example.org/data/a.txt'
    """

    url: str
    num_bytes: int
    sha256: str

    @property
    def path(self) -> str:
        """Where the file lies under the cache and under a mirror: the URL without its scheme."""
        return self.url.split("://", 1)[1]


def fetch(url: str, root: str | os.PathLike[str] | None = None) -> bytes:
    """Return the verified contents of a raw file.

    The file is looked for as ``<host>/<path>`` in the cache. When it is absent or altered there,
    it is taken from the folder that the environment variable ``GEOMGCN_MIRROR`` names, or else
    downloaded. With a mirror and no ``root``, the cache is not consulted, and the network never.

    Args:
        url: One of the URLs listed in ``hashes.tsv`` beside this module.
        root: Folder of raw files instead of the cache.

    Example:
        >>> fetch("https://example.org/unknown.txt")
        Traceback (most recent call last):
        geomgcn.datasets.DataError: No hash is known for 'https://example.org/unknown.txt'. ...
    """
    files = known_files()
    if url not in files:
        raise DataError(
            f"No hash is known for {url!r}. Only files listed in geomgcn/datasets/hashes.tsv are fetched."
        )
    return fetch_file(files[url], root)


def fetch_file(file: RemoteFile, root: str | os.PathLike[str] | None = None) -> bytes:
    """Return the verified contents of a file that is not in the list; see :func:`fetch`.

    Example:
        >>> import tempfile
        >>> root = Path(tempfile.mkdtemp())
        >>> (root / "example.org").write_bytes(b"42")
        2
        >>> fetch_file(RemoteFile("https://example.org", 2, hashlib.sha256(b"42").hexdigest()), root)
        b'42'
    """
    mirror = folder_of(MIRROR_VARIABLE)
    if root is None and mirror is not None:
        return _from_mirror(file, mirror)
    folder = cache_folder() / "raw" if root is None else Path(root)
    contents = _from_cache(folder / file.path, file)
    if contents is not None:
        return contents
    if mirror is not None:
        return _from_mirror(file, mirror)
    with _lock(folder):
        contents = _from_cache(folder / file.path, file)  # another process may have been first
        if contents is None:
            contents = _download(file)
            _keep(contents, folder / file.path)
    return contents


@cache
def known_files() -> dict[str, RemoteFile]:
    """Return every file with a known hash, by URL.

    Example:
        >>> sum(url.endswith("ind.cora.x") for url in known_files())
        1
    """
    lines = resources.files("geomgcn.datasets").joinpath("hashes.tsv").read_text("utf-8").splitlines()[1:]
    rows = (line.split("\t") for line in lines)
    return {
        f"https://{path}": RemoteFile(f"https://{path}", int(size), sha256) for path, size, sha256 in rows
    }


def _from_cache(path: Path, file: RemoteFile) -> bytes | None:
    """Return the contents of a cached file, or None when it is absent or altered."""
    if not path.is_file():
        return None
    contents = path.read_bytes()
    if hashlib.sha256(contents).hexdigest() == file.sha256:
        return contents
    logger.warning("%s was altered since it was fetched; it is fetched again from %s", path, file.url)
    return None


def _from_mirror(file: RemoteFile, mirror: Path) -> bytes:
    """Return the contents of a file in the mirror."""
    path = mirror / file.path
    if not path.is_file():
        raise DataError(
            f"{file.url} needs to be in the mirror, and {str(path)!r} is no file. "
            f"Put it there, or unset {MIRROR_VARIABLE} to download it."
        )
    contents = path.read_bytes()
    _verify(contents, file, f"The mirror's {str(path)!r}")
    return contents


class _Bounded(io.BytesIO):
    """A buffer that refuses more than a file can have, before memory is taken."""

    def __init__(self, file: RemoteFile) -> None:
        super().__init__()
        self._file = file

    def write(self, chunk: bytes) -> int:  # type: ignore[override]
        if self.tell() + len(chunk) > self._file.num_bytes + EXCESS:
            raise DataError(
                f"{self._file.url} needs {self._file.num_bytes} bytes, and the server sends far more. "
                f"Use a mirror ({MIRROR_VARIABLE}) if the original has moved."
            )
        return super().write(chunk)


def _download(file: RemoteFile) -> bytes:
    """Return the contents of a file from the network."""
    buffer = _Bounded(file)
    try:
        pooch.HTTPDownloader(timeout=TIMEOUT)(file.url, buffer, None)
    except OSError as error:  # all of requests' errors are OSErrors
        raise DataError(
            f"{file.url} could not be downloaded: {error}. Without network, set {MIRROR_VARIABLE} "
            f"to a folder that holds it as {file.path}."
        ) from error
    contents = buffer.getvalue()
    _verify(contents, file, "The download")
    return contents


def _verify(contents: bytes, file: RemoteFile, which: str) -> None:
    """Refuse contents with another hash."""
    actual = hashlib.sha256(contents).hexdigest()
    if actual != file.sha256:
        raise DataError(
            f"{which} of {file.url} is damaged or another version: it needs sha256 {file.sha256} "
            f"({file.num_bytes} bytes), got {actual} ({len(contents)} bytes). "
            f"Try again, or set {MIRROR_VARIABLE} to a folder with the right file as {file.path}."
        )


def _lock(folder: Path) -> AbstractContextManager[object]:
    """Return the lock of a folder of raw files; the system frees it when a process dies."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return nullcontext()  # nothing can be kept there, so there is nothing to guard
    return FileLock(folder / ".lock") if os.access(folder, os.W_OK) else nullcontext()


def _keep(contents: bytes, path: Path) -> None:
    """Write a downloaded file; a full or read-only disk must not lose it for this run."""
    try:
        write_atomic(path, lambda file: file.write(contents))
    except OSError as error:
        warnings.warn(
            f"{str(path)!r} could not be written ({error}): every run will download it again. "
            f"Free the disk, or set GEOMGCN_HOME to another folder.",
            UserWarning,
            stacklevel=2,
        )
