"""Classical scaling: the leading axes of a doubly centered squared-distance matrix.

Block Lanczos with full reorthogonalization. A block, since one vector cannot see that an eigenvalue
is double, as it is on rings and grids. Sums over nodes go through ``einsum``, which runs in one
thread: BLAS would add in another order with another number of threads.
"""

from collections.abc import Callable, Mapping
from typing import no_type_check

import numpy as np

from geomgcn._compiled import compiled
from geomgcn.embeddings._eigen import symmetric_eigen
from geomgcn.embeddings._kernels import COLUMNS

Product = Callable[[np.ndarray], np.ndarray]
"""Takes vectors as rows, and returns the matrix of squared distances times each of them."""

State = Mapping[str, np.ndarray]

BASIS_BLOCKS = 40
"""Blocks in memory before a restart; 160 vectors are 25 MB on 20,000 nodes."""

MAX_PRODUCTS = 2000

TIE = 1e-9
"""Eigenvalues nearer than this, relative to the largest, count as one eigenvalue of higher multiplicity."""

ANGLE = 1e-11
"""Error left in an axis, as an angle: far below the grid that coordinates are snapped to."""

FLOOR = 1e-14
"""Residuals below this, relative to the largest eigenvalue, are rounding and shrink no more."""

SYMMETRIC = 1e-6
"""Skewness below which an axis has no longer side, so that its sign needs another rule."""

NEGLIGIBLE = 1e-12
"""Eigenvalues and new directions below this, relative to the largest eigenvalue, are rounding."""


def leading_axes(
    times: Product,
    num_nodes: int,
    dim: int,
    *,
    width: int = COLUMNS,
    negligible: float = NEGLIGIBLE,
    kept: State | None = None,
    on_product: Callable[["Krylov"], None] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the largest positive eigenvalues and their vectors of :math:`-\frac12 J D^2 J`.

    D^2 holds the squared distances and J subtracts the mean. No n x n matrix of floats is made: only
    products with D^2 are asked for. The vectors of a multiple eigenvalue are the projections of fixed
    random vectors on its eigenspace, orthogonalized in order, so the same matrix gives the same axes.

    Args:
        dim: How many axes; fewer come back when fewer eigenvalues are positive.
        width: Vectors multiplied together, at least ``dim`` of them. More mean fewer products.
        negligible: Eigenvalues below this, relative to the largest, come from rounding of the distances.
        kept: The state of a search to go on from.
        on_product: Is shown the search after each product that is not the last.

    Returns:
        Eigenvalues, descending, and unit vectors as rows.
    """
    if num_nodes < 2:
        return np.empty(0), np.empty((0, num_nodes))
    anchors = random_start(max(width, -(-dim // COLUMNS) * COLUMNS), num_nodes)
    search = Krylov(anchors, kept)
    while len(search.block):  # else the basis spans all that the anchors can reach: nothing is left over
        if search.products == MAX_PRODUCTS:
            raise RuntimeError(
                f"The axes of {num_nodes} nodes did not settle in {MAX_PRODUCTS} steps: the largest "
                f"eigenvalues are nearly equal, so positions in {dim} dimensions are arbitrary. "
                f"Choose another dim."
            )
        residuals = search.advance(times)
        if _is_settled(search.values, residuals, dim, search.scale):
            break
        if on_product is not None and len(search.block):
            on_product(search)
    count = min(dim, int((search.values > negligible * search.scale).sum()))
    return _axes(search.values, search.ritz, search.basis[: search.size], anchors, count, search.scale)


def improved_axes(
    times: Product,
    start: np.ndarray,
    dim: int,
    products: int,
    *,
    negligible: float = NEGLIGIBLE,
    kept: State | None = None,
    on_product: Callable[["Krylov"], None] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Return what :func:`leading_axes` does, nearly: what so many products make of the rows of ``start``."""
    search = Krylov(start, kept)
    while len(search.block):
        residuals = search.advance(times)
        if search.products == products or _is_settled(search.values, residuals, dim, search.scale):
            break
        if on_product is not None and len(search.block):
            on_product(search)
    count = min(dim, int((search.values > negligible * search.scale).sum()))
    if count == 0:
        return np.empty(0), np.empty((0, start.shape[1]))
    return search.values[:count].copy(), _orthonormal_in_order(search.powers(count))


class Krylov:
    """A growing basis of block Lanczos, and the matrix as seen from it.

    Attributes:
        basis: Unit vectors as rows; the first ``size`` of them count.
        block: What the next product extends the basis by.
        products: How many have been made.
        scale: The largest absolute eigenvalue seen.
        values: Eigenvalues of the matrix as seen from the basis, descending.
        ritz: Their vectors as columns, in coordinates of the basis.
    """

    def __init__(self, start: np.ndarray, kept: State | None = None) -> None:
        self.width, num_nodes = start.shape
        self.basis = np.empty((BASIS_BLOCKS * self.width, num_nodes))
        self.projected = np.zeros((len(self.basis), len(self.basis)))
        self.size, self.products, self.scale = 0, 0, 0.0
        self.values, self.ritz = np.empty(0), np.empty((0, 0))
        if kept is None:
            self.block = _orthonormal(start, self.basis[:0], NEGLIGIBLE)
            return
        self.block = kept["block"]
        self.size, self.products, self.scale = len(kept["basis"]), int(kept["products"]), float(kept["scale"])
        self.basis[: self.size] = kept["basis"]
        self.projected[: self.size, : self.size] = kept["projected"]

    def state(self) -> State:
        """Return the arrays to go on from."""
        seen = self.projected[: self.size, : self.size]
        numbers = {"products": np.array(self.products), "scale": np.array(self.scale)}
        return {"basis": self.basis[: self.size], "projected": seen, "block": self.block, **numbers}

    def advance(self, times: Product) -> np.ndarray:
        """Extend the basis by ``block``, with one product, and return how wrong each eigenvector is."""
        if self.size + len(self.block) > len(self.basis):
            self.size = _restart(self.basis, self.projected, self.size, 2 * self.width)
        new = slice(self.size, self.size + len(self.block))
        self.size += len(self.block)
        basis = self.basis[: self.size]
        basis[new] = self.block
        image = _centered_product(times, self.block)
        coupling = _inner(basis, image)
        self.projected[: self.size, new] = coupling
        self.projected[new, : self.size] = coupling.T
        self.values, self.ritz = symmetric_eigen(self.projected[: self.size, : self.size])
        self.scale = max(self.scale, float(np.abs(self.values).max()))
        self.rest = image - _combine(coupling.T, basis)
        self.last = self.ritz[new]
        self.block = _orthonormal(self.rest, basis, NEGLIGIBLE * self.scale)
        self.products += 1
        inner = _inner(self.rest, self.rest)
        return np.sqrt(np.maximum(np.einsum("ki,kl,li->i", self.last, inner, self.last), 0.0))

    def powers(self, count: int) -> np.ndarray:
        """Return the matrix times the first eigenvectors: one step nearer than these, for no product."""
        seen = self.projected[: self.size, : self.size] @ self.ritz[:, :count]
        return _combine(seen.T, self.basis[: self.size]) + _combine(self.last[:, :count].T, self.rest)


def random_start(width: int, num_nodes: int) -> np.ndarray:
    """Return the fixed random start, the same for every graph of ``num_nodes``."""
    anchors = np.random.default_rng(0).standard_normal((num_nodes, width)).T
    return anchors - anchors.mean(axis=1, keepdims=True)


def _centered_product(times: Product, block: np.ndarray) -> np.ndarray:
    """Return the centered matrix times the rows of ``block``, which are centered already."""
    image = times(block)
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


@no_type_check
@compiled()
def tied_end(values, start, scale):
    """Return the end of the run of eigenvalues that equal ``values[start]``."""
    end = start + 1
    while end < len(values) and values[end - 1] - values[end] <= TIE * scale:
        end += 1
    return end


def _is_settled(values: np.ndarray, residuals: np.ndarray, dim: int, scale: float) -> bool:
    """Say whether the first ``dim`` axes, and all that tie with them, are exact up to ``ANGLE``."""
    start = 0
    while start < min(dim, len(values)):
        end = tied_end(values, start, scale)
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
    values: np.ndarray, ritz: np.ndarray, basis: np.ndarray, anchors: np.ndarray, count: int, scale: float
) -> tuple[np.ndarray, np.ndarray]:
    """Return the first ``count`` eigenvalues and their vectors, ties resolved."""
    vectors: list[np.ndarray] = []
    while len(vectors) < count:
        start = len(vectors)
        end = tied_end(values, start, scale)
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


def oriented(axis: np.ndarray) -> np.ndarray:
    """Return the axis or its opposite, so that its longer tail points up."""
    cubes = axis**3
    total = np.abs(cubes).sum()
    skewness = cubes.sum() / total if total > 0 else 0.0
    if abs(skewness) <= SYMMETRIC:
        skewness = axis[np.argmax(np.abs(axis) > SYMMETRIC * np.abs(axis).max())]
    return -axis if skewness < 0 else axis
