"""Archives of arrays, read without pickle and with a look at their sizes first."""

import io
import lzma
import math
import tokenize
import zipfile
import zlib

import numpy as np
from jaxtyping import Shaped

from geomgcn.datasets._download import DataError

# All that the readers of archives, compressed members and headers raise on altered bytes.
_DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    tokenize.TokenError,
    SyntaxError,
    ValueError,
    OverflowError,
    EOFError,
    OSError,
    NotImplementedError,
    RuntimeError,
    TypeError,
    KeyError,
)
MAX_BYTES = 2**30  # the largest file of the data sets holds 44 MB of arrays


def read_npz(
    contents: bytes, source: str, max_bytes: int = MAX_BYTES
) -> dict[str, Shaped[np.ndarray, "..."]]:
    """Return the arrays of an ``.npz`` archive.

    Arrays of Python objects are refused, and so is an archive whose headers promise more than
    ``max_bytes``, before memory is taken for any of them.

    Args:
        source: Named in errors.

    Example:
        >>> file = io.BytesIO()
        >>> np.savez(file, edges=np.array([[0, 1]]))
        >>> read_npz(file.getvalue(), "a.npz")["edges"].tolist()
        [[0, 1]]
    """
    try:
        with zipfile.ZipFile(io.BytesIO(contents)) as archive:
            promised = sum(_promised(archive, member, source) for member in archive.infolist())
    except _DAMAGE as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{source} needs to be an archive of arrays, got {error}. Fetch it again.") from error
    if promised > max_bytes:
        raise DataError(
            f"{source} needs at most {max_bytes} bytes of arrays, got headers that promise {promised}. "
            f"Nothing of it was read; fetch it again from where it came."
        )
    try:
        with np.load(io.BytesIO(contents), allow_pickle=False) as arrays:
            return {name: arrays[name] for name in arrays.files}
    except _DAMAGE as error:
        raise DataError(f"{source} needs sound arrays, got {error}. Fetch it again.") from error


def _promised(archive: zipfile.ZipFile, member: zipfile.ZipInfo, source: str) -> int:
    """Return how many bytes reading a member would take, by its two headers."""
    with archive.open(member) as file:
        version = np.lib.format.read_magic(file)
        # Later versions exist for names beyond Latin-1 in structured arrays, which no data set has.
        readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
        if version not in readers:
            raise DataError(f"{source} needs arrays of format 1 or 2, got {version} in {member.filename!r}.")
        shape, _, dtype = readers[version](file)
    if dtype.kind not in "biuf":
        raise DataError(
            f"{source} needs arrays of numbers, got dtype {dtype} in {member.filename!r}. "
            f"Arrays of Python objects are pickles and are never read; save plain numbers."
        )
    return max(member.file_size, math.prod(shape) * dtype.itemsize)
