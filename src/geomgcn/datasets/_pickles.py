"""Planetoid's pickles, read without trusting them.

A pickle may call anything that it can name. This reader knows six names, and replaces those that
could be misused by stand-ins: arrays come into being empty and are then filled, sparse matrices
are plain records until their indices have been checked.
"""

import io
import pickle
from collections import defaultdict
from typing import Any

import numpy as np
from jaxtyping import Shaped
from scipy.sparse import csr_matrix

from geomgcn.datasets._download import DataError


class _Array:
    """Stands for ``numpy.ndarray``, which would allocate any size it is told."""


class _Csr:
    """Receives the attributes of a pickled ``csr_matrix``."""


def _reconstruct(kind: object, shape: object, _: object) -> Shaped[np.ndarray, "0"]:
    """Return an empty array for the pickle to fill, as ``numpy.core.multiarray._reconstruct``."""
    if kind is not _Array or shape != (0,):
        raise pickle.UnpicklingError(f"an array that starts as {kind!r} of shape {shape!r}")
    return np.empty(0, dtype=np.int8)


# Python 2 wrote these files: numpy and scipy have moved the names since.
ADMITTED: dict[tuple[str, str], Any] = {
    ("__builtin__", "list"): list,
    ("builtins", "list"): list,
    ("collections", "defaultdict"): defaultdict,
    ("numpy", "dtype"): np.dtype,
    ("numpy", "ndarray"): _Array,
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("scipy.sparse.csr", "csr_matrix"): _Csr,
    ("scipy.sparse._csr", "csr_matrix"): _Csr,
}


class _Unpickler(pickle.Unpickler):
    """An unpickler that knows the admitted names only."""

    def find_class(self, module: str, name: str) -> Any:
        """Return what an admitted name stands for."""
        if (module, name) not in ADMITTED:
            raise pickle.UnpicklingError(f"the name {module}.{name}, which no data file needs")
        return ADMITTED[module, name]


def _load(contents: bytes, source: str) -> Any:
    """Return the object in a pickle, made of admitted parts only."""
    try:
        return _Unpickler(io.BytesIO(contents), encoding="latin1").load()
    except Exception as error:  # a hostile or torn pickle can raise anything, MemoryError included
        raise DataError(
            f"{source} needs to be a pickle of arrays, sparse matrices and lists, got {error}. "
            f"Nothing in it was executed; fetch the file again."
        ) from error


def read_matrix(contents: bytes, source: str) -> Shaped[np.ndarray, "rows columns"]:
    """Return a pickled matrix, dense or CSR, as a dense array.

    Args:
        source: Named in errors.

    Example:
        >>> read_matrix(pickle.dumps(print), "a.pkl")
        Traceback (most recent call last):
        geomgcn.datasets.DataError: a.pkl needs to be a pickle of arrays, ...
    """
    found = _load(contents, source)
    if isinstance(found, _Csr):
        found = _dense(vars(found), source)
    if not isinstance(found, np.ndarray) or found.ndim != 2 or found.dtype.kind not in "biuf":
        raise DataError(f"{source} needs a numeric matrix, got {type(found).__name__}. Fetch the file again.")
    return found


def read_lists(contents: bytes, source: str) -> dict[int, list[int]]:
    """Return a pickled graph: the neighbors of each node.

    Args:
        source: Named in errors.

    Example:
        >>> read_lists(pickle.dumps({0: [1], 1: [0]}), "a.graph")
        {0: [1], 1: [0]}
    """
    found = _load(contents, source)
    if not isinstance(found, dict) or not all(
        type(node) is int and isinstance(around, list) and all(type(other) is int for other in around)
        for node, around in found.items()
    ):
        raise DataError(
            f"{source} needs lists of neighbors by node, got {type(found).__name__}. Fetch the file again."
        )
    return dict(found)


def _dense(parts: dict[str, Any], source: str) -> Shaped[np.ndarray, "rows columns"]:
    """Return a CSR matrix as an array, after checking that its indices lie inside."""
    try:
        matrix = csr_matrix((parts["data"], parts["indices"], parts["indptr"]), shape=parts["_shape"])
        matrix.check_format(full_check=True)
        return np.asarray(matrix.toarray())
    except (KeyError, TypeError, ValueError) as error:
        raise DataError(f"{source} needs a sound CSR matrix, got {error}. Fetch the file again.") from error
