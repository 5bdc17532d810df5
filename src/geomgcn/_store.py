"""The only writer of computed arrays: atomic, hashed, locked.

A file is written beside its place and moved there in one step, so a reader finds the old file or
the new one and never a torn one. Array files carry a sha256 of what they hold, since a flipped bit
would otherwise load silently. This module imports no torch, so that a command line that only looks
for files starts fast.
"""

import hashlib
import json
import os
import uuid
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, BinaryIO

import filelock
import numpy as np
import pooch
import safetensors
import safetensors.numpy

HOME_VARIABLE = "GEOMGCN_HOME"
SUFFIX = ".safetensors"

Arrays = Mapping[str, np.ndarray]


def cache_folder() -> Path:
    """Return the folder for downloads and computed arrays, made when it is missing.

    It is what the environment variable ``GEOMGCN_HOME`` says, or else the user's cache folder.

    Raises:
        OSError: When the folder cannot be made or written to.

    Example:
        >>> cache_folder().is_dir()
        True
    """
    folder = folder_of(HOME_VARIABLE) or Path(pooch.os_cache("geomgcn"))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OSError(
            f"The cache needs a folder, and {str(folder)!r} cannot be made: {error.strerror}. "
            f"Set {HOME_VARIABLE} to a folder that you can write to."
        ) from error
    if not os.access(folder, os.W_OK | os.X_OK):
        raise OSError(
            f"The cache needs a folder that can be written to, got {str(folder)!r}. "
            f"Set {HOME_VARIABLE} to a folder that you can write to."
        )
    return folder


def folder_of(variable: str) -> Path | None:
    """Return the folder that an environment variable names, None where it is not set.

    Example:
        >>> folder_of("NO_SUCH_VARIABLE") is None
        True
    """
    chosen = os.environ.get(variable)
    try:
        return Path(chosen).expanduser() if chosen else None
    except RuntimeError as error:
        raise OSError(
            f"{variable} names {chosen!r}, and there is no such user. Write the whole path."
        ) from error


def write_atomic(path: str | os.PathLike[str], writer: Callable[[BinaryIO], Any]) -> None:
    """Write a file so that readers see the old contents or the new ones, and nothing between.

    The folder is made when it is missing. When ``writer`` raises, the old file stays and nothing
    is left beside it; after a kill a ``.tmp`` file may be left, which no reader looks at.

    Args:
        path: Where the file shall be.
        writer: Called with a binary file to write to.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "answer.txt"
        >>> write_atomic(path, lambda file: file.write(b"42"))
        >>> path.read_text()
        '42'
    """
    target = Path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside the target, since a move is atomic only within one file system.
    temporary = target.with_name(f".{target.name}.{os.getpid()}-{uuid.uuid4().hex}.tmp")
    # Not tempfile.mkstemp, whose mode 0600 would shut others out of a shared cache.
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            writer(file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, target)
    except BaseException:  # Ctrl-C must not leave the temporary file behind either
        temporary.unlink(missing_ok=True)
        raise
    _sync_folder(target.parent)


def _sync_folder(folder: Path) -> None:
    """Make the move survive a power failure, where the system can."""
    if os.name != "posix":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def digest(arrays: Arrays, settings: Mapping[str, Any]) -> str:
    """Return a sha256 of named arrays and settings, as 64 hexadecimal digits.

    Names, types, shapes and values count; the order of the names does not.

    Args:
        settings: Anything that JSON can hold.

    Example:
        >>> digest({"x": np.zeros(2)}, {"dim": 2})[:8]
        'cf3f8059'
        >>> digest({"x": np.zeros(2)}, {"dim": 2}) == digest({"x": np.zeros(2)}, {"dim": 3})
        False
    """
    state = hashlib.sha256(json.dumps(dict(settings), sort_keys=True, allow_nan=False).encode())
    for name in sorted(arrays):
        array = np.asarray(arrays[name], order="C")
        header = json.dumps([name, array.dtype.str, array.shape])
        state.update(f"\n{header}\n".encode())
        state.update(array.reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def save_arrays(path: str | os.PathLike[str], arrays: Arrays, metadata: Mapping[str, Any]) -> None:
    """Write arrays and metadata to one safetensors file, atomically, with a sha256 of both.

    Args:
        metadata: Anything that JSON can hold.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "pos.safetensors"
        >>> save_arrays(path, {"pos": np.eye(2)}, {"dim": 2})
        >>> arrays, metadata = load_arrays(path)
        >>> arrays["pos"].tolist(), metadata
        ([[1.0, 0.0], [0.0, 1.0]], {'dim': 2})
    """
    contents = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    # The format holds text only, and orders several entries at random: one JSON string is the same each time.
    described = {"sha256": digest(contents, metadata), "metadata": dict(metadata)}
    encoded = safetensors.numpy.save(
        contents, {"geomgcn": json.dumps(described, sort_keys=True, allow_nan=False)}
    )
    write_atomic(path, lambda file: file.write(encoded))


def load_arrays(path: str | os.PathLike[str]) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Read what :func:`save_arrays` wrote, and check it against its sha256.

    Returns:
        The arrays by name, and the metadata.

    Raises:
        ValueError: When the file is cut, altered, or of another kind.
        OSError: When it cannot be read.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "pos.safetensors"
        >>> save_arrays(path, {"pos": np.ones(3)}, {})
        >>> _ = path.write_bytes(path.read_bytes()[:-1])  # cut off
        >>> load_arrays(path)
        Traceback (most recent call last):
        ValueError: ...
    """
    Path(path).stat()  # a missing file is an OSError that says so
    damaged = f"{str(path)!r} is damaged or was not written by geomgcn. Delete it and compute it again."
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            described = json.loads((file.metadata() or {})["geomgcn"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
        metadata, expected = described["metadata"], described["sha256"]
        actual = digest(arrays, metadata)
    except (safetensors.SafetensorError, KeyError, TypeError, ValueError) as error:
        raise ValueError(damaged) from error
    if actual != expected:
        raise ValueError(f"{damaged} Expected sha256 {expected}, got {actual}.")
    return arrays, metadata


def cached_arrays(
    kind: str,
    settings: Mapping[str, Any],
    arrays_for_key: Arrays,
    compute: Callable[[], Arrays],
    folder: str | os.PathLike[str] | None = None,
) -> dict[str, np.ndarray]:
    """Return ``compute()``, from the cache where it holds the answer already.

    Entries are found by a digest of ``settings`` and ``arrays_for_key``. Of several processes that
    want one entry, one computes it and the others wait; a process that dies frees the entry. A
    damaged entry is computed again. When the cache cannot be written the result is returned all
    the same, with a warning.

    Args:
        kind: What is kept, e.g. ``"positions"``; a subfolder of the cache.
        settings: All that the result depends on beside the arrays, with the algorithm's version.
        arrays_for_key: The arrays that the result depends on.
        folder: The cache's folder; :func:`cache_folder` unless given.

    Example:
        >>> import tempfile
        >>> folder = tempfile.mkdtemp()
        >>> graph = {"edge_index": np.array([[0, 1], [1, 0]])}
        >>> cached_arrays("demo", {"v": 1}, graph, lambda: {"y": np.ones(2)}, folder)["y"].tolist()
        [1.0, 1.0]
        >>> cached_arrays("demo", {"v": 1}, graph, lambda: {}, folder)["y"].tolist()  # from the cache
        [1.0, 1.0]
    """
    key = digest(arrays_for_key, settings)
    try:
        path = (cache_folder() if folder is None else Path(folder)) / kind / f"{key}{SUFFIX}"
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        return _keep_uncached(dict(compute()), error)
    found = _load_or_none(path, key)  # files never change in place, so a reader needs no lock
    if found is not None:
        return found
    lock = filelock.FileLock(f"{path}.lock")
    try:
        lock.acquire()
    except OSError as error:
        return _keep_uncached(dict(compute()), error)
    try:
        found = _load_or_none(path, key)  # another process may have filled it while this one waited
        return (
            _fill(path, {"kind": kind, "key": key, "settings": dict(settings)}, compute)
            if found is None
            else found
        )
    finally:
        lock.release()


def state_path(
    kind: str,
    settings: Mapping[str, Any],
    arrays_for_key: Arrays,
    folder: str | os.PathLike[str] | None = None,
) -> Path | None:
    """Return where a computation of :func:`cached_arrays` leaves its state when it is stopped.

    None where the cache cannot be written.

    Example:
        >>> state_path("demo", {"v": 1}, {}, "cache").parts[:2]
        ('cache', 'demo')
    """
    try:
        home = cache_folder() if folder is None else Path(folder)
    except OSError:
        return None
    return home / kind / f"{digest(arrays_for_key, settings)}.stopped{SUFFIX}"


def _fill(path: Path, metadata: Mapping[str, Any], compute: Callable[[], Arrays]) -> dict[str, np.ndarray]:
    """Compute an entry and store it, if the disk allows."""
    result = dict(compute())
    try:
        save_arrays(path, result, metadata)
    except OSError as error:
        return _keep_uncached(result, error)
    return result


def _load_or_none(path: Path, key: str) -> dict[str, np.ndarray] | None:
    """Return the arrays of a sound entry, or None when it has to be computed."""
    try:
        arrays, metadata = load_arrays(path)
        if metadata.get("key") != key:
            raise ValueError(f"{str(path)!r} is an entry of another name.")
        return arrays
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        warnings.warn(
            f"The cache entry {str(path)!r} cannot be used ({type(error).__name__}: damaged, misplaced or "
            f"unreadable); it is computed again and replaced.",
            stacklevel=3,
        )
        return None


def _keep_uncached(result: dict[str, np.ndarray], error: OSError) -> dict[str, np.ndarray]:
    """Return ``result`` and say that it was not stored."""
    warnings.warn(
        f"The result is complete but was not cached, so it will be computed again next time: {error} "
        f"Set {HOME_VARIABLE} to a folder with space that you can write to.",
        stacklevel=3,
    )
    return result
