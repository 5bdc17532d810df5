"""Classical scaling: the leading axes of a doubly centered squared-distance matrix.

Block Lanczos with full reorthogonalization. A block, since one vector cannot see that an eigenvalue
is double, as it is on rings and grids. Sums over nodes go through ``einsum``, which runs in one
thread: BLAS would add in another order with another number of threads.
"""

import numpy as np

from geomgcn.embeddings._eigen import symmetric_eigen
from geomgcn.embeddings._kernels import COLUMNS, squared_product

BASIS_BLOCKS = 40
"""Blocks in memory before a restart; 160 vectors are 25 MB on 20,000 nodes."""

MAX_PRODUCTS = 2000

TIE = 1e-9
"""Eigenvalues nearer than this, relative to the largest, count as one eigenvalue of higher multiplicity."""

ANGLE = 1e-11
"""Error left in an axis, as an angle: far below the grid that coordinates are snapped to."""

FLOOR = 1e-14
"""Residuals below this, relative to the largest eigenvalue, are rounding and shrink no more."""

NEGLIGIBLE = 1e-12
"""Eigenvalues and new directions below this, relative to the largest eigenvalue, are rounding."""


def leading_axes(distances: np.ndarray, dim: int) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the largest positive eigenvalues and their vectors of :math:`-\frac12 J D^2 J`.

    D^2 holds the squared distances and J subtracts the mean. No n x n matrix of floats is made: a
    product with D^2 squares the integer distances as it goes. The vectors of a multiple eigenvalue
    are the projections of fixed random vectors on its eigenspace, orthogonalized in order, so the
    same matrix gives the same axes.

    Args:
        distances: Finite integer distances, symmetric.
        dim: How many axes; fewer come back when fewer eigenvalues are positive.

    Returns:
        Eigenvalues, descending, and unit vectors as rows.
    """
    num_nodes = len(distances)
    if num_nodes < 2:
        return np.empty(0), np.empty((0, num_nodes))
    anchors = _anchors(-(-dim // COLUMNS) * COLUMNS, num_nodes)
    basis = np.empty((BASIS_BLOCKS * len(anchors), num_nodes))
    projected = np.zeros((len(basis), len(basis)))  # the matrix, seen from the basis
    block, size, scale = _orthonormal(anchors, basis[:0], NEGLIGIBLE), 0, 0.0
    for _ in range(MAX_PRODUCTS):
        if len(block) == 0:  # the basis spans all that the anchors can reach: nothing is left over
            break
        if size + len(block) > len(basis):
            size = _restart(basis, projected, size, 2 * len(anchors))
        new = slice(size, size + len(block))
        size += len(block)
        basis[new] = block
        image = _centered_product(distances, block)
        coupling = _inner(basis[:size], image)
        projected[:size, new] = coupling
        projected[new, :size] = coupling.T
        values, ritz = symmetric_eigen(projected[:size, :size])
        scale = max(scale, float(np.abs(values).max()))
        block = image - _combine(coupling.T, basis[:size])
        last = ritz[new]
        residuals = np.sqrt(np.maximum(np.einsum("ki,kl,li->i", last, _inner(block, block), last), 0.0))
        if _is_settled(values, residuals, dim, scale):
            break
        block = _orthonormal(block, basis[:size], NEGLIGIBLE * scale)
    else:
        raise RuntimeError(
            f"The axes of {num_nodes} nodes did not settle in {MAX_PRODUCTS} steps: the largest eigenvalues "
            f"are nearly equal, so positions in {dim} dimensions are arbitrary. Choose another dim."
        )
    return _axes(values, ritz, basis[:size], anchors, dim, scale)


def _anchors(width: int, num_nodes: int) -> np.ndarray:
    """Return the fixed random start, the same for every graph of ``num_nodes``."""
    anchors = np.random.default_rng(0).standard_normal((num_nodes, width)).T
    return anchors - anchors.mean(axis=1, keepdims=True)


def _centered_product(distances: np.ndarray, block: np.ndarray) -> np.ndarray:
    """Return the centered matrix times the rows of ``block``, which are centered already."""
    image = squared_product(distances, block)
    return -0.5 * (image - image.mean(axis=1, keepdims=True))


def _inner(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the scalar products of rows with rows."""
    return np.einsum("in,jn->ij", left, right)


def _combine(weights: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """Return sums of ``rows``, one for each row of ``weights``."""
    return np.stack([np.einsum("i,in->n", weight, rows) for weight in weights])


def _orthonormal(block: np.ndarray, basis: np.ndarray, negligible: float) -> np.ndarray:
    """Return unit rows that span ``block`` beside ``basis``; directions that are rounding are left out.

    The constant direction is left out too: :func:`_centered_product` relies on it, and what rounding
    leaves when the basis is nearly complete may point that way.
    """
    for _ in range(2):  # twice is enough (Giraud et al. 2005)
        block = block - block.mean(axis=1, keepdims=True)
        if len(basis):
            block = block - _combine(_inner(block, basis), basis)
        values, vectors = symmetric_eigen(_inner(block, block))
        kept = values > max(negligible**2, 1e-30 * values[0], 0.0)
        if not kept.any():
            return block[:0]
        block = _combine((vectors[:, kept] / np.sqrt(values[kept])).T, block)
        negligible = 0.5  # rows are of length one now, unless they were rounding
    return block


def _restart(basis: np.ndarray, projected: np.ndarray, size: int, keep: int) -> int:
    """Replace the basis by its best ``keep`` directions, in place, and return their number."""
    values, ritz = symmetric_eigen(projected[:size, :size])
    basis[:keep] = _combine(ritz[:, :keep].T, basis[:size])
    projected[:] = 0.0
    projected[range(keep), range(keep)] = values[:keep]
    return keep


def _tied_end(values: np.ndarray, start: int, scale: float) -> int:
    """Return the end of the run of eigenvalues that equal ``values[start]``."""
    end = start + 1
    while end < len(values) and values[end - 1] - values[end] <= TIE * scale:
        end += 1
    return end


def _is_settled(values: np.ndarray, residuals: np.ndarray, dim: int, scale: float) -> bool:
    """Say whether the first ``dim`` axes, and all that tie with them, are exact up to ``ANGLE``."""
    start = 0
    while start < min(dim, len(values)):
        end = _tied_end(values, start, scale)
        gap = min(
            values[start - 1] - values[start] if start else np.inf,
            values[end - 1] - values[end] if end < len(values) else np.inf,
        )
        allowed = max(ANGLE * min(gap, scale), FLOOR * scale)
        if residuals[start:end].max() > allowed:
            return False
        start = end
    return len(values) > dim


def _axes(
    values: np.ndarray, ritz: np.ndarray, basis: np.ndarray, anchors: np.ndarray, dim: int, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the positive ones of the first ``dim`` eigenvalues and their vectors, ties resolved."""
    vectors: list[np.ndarray] = []
    count = min(dim, int((values > NEGLIGIBLE * scale).sum()))
    while len(vectors) < count:
        start = len(vectors)
        end = _tied_end(values, start, scale)
        found = _combine(ritz[:, start:end].T, basis)
        if len(found) > 1:
            # Any rotation of tied axes is as good; rounding would choose, so the anchors do.
            found = _orthonormal_in_order(_combine(_inner(anchors, found), found))
        vectors.extend(found[: count - start])
    return values[:count].copy(), np.array(vectors).reshape(count, basis.shape[1])


def _orthonormal_in_order(rows: np.ndarray) -> np.ndarray:
    """Return Gram-Schmidt of ``rows``, the first one first; dependent ones are left out."""
    done: list[np.ndarray] = []
    for row in rows:
        rest = row
        for _ in range(2):
            for axis in done:
                rest = rest - np.einsum("n,n->", rest, axis) * axis
        length = np.sqrt(np.einsum("n,n->", rest, rest))
        if length > 1e-6 * np.sqrt(np.einsum("n,n->", row, row)):
            done.append(rest / length)
    return np.stack(done)
