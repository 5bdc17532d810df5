"""The leading eigenvectors of a random walk: filtered subspace iteration, and directly where it is small.

A block of random vectors is multiplied by a Chebyshev polynomial of the matrix that is large where the
wanted eigenvalues are and small elsewhere, until the block spans their vectors (Zhou, Saad, Tiago and
Chelikowsky 2006). It needs three blocks of memory, and no sum depends on the number of threads.
"""

import warnings
from dataclasses import dataclass

import numpy as np

from geomgcn._progress import Progress
from geomgcn.embeddings._eigen import symmetric_eigen
from geomgcn.embeddings._kernels import near_together
from geomgcn.embeddings._spectral_kernels import COLUMNS, inner, leave_out, multiply, turn_vectors

SMALL = 128
"""Walks of up to as many places are solved directly."""

SPARE = 4
"""Vectors in the block beyond those that are asked for, at least: they let the others settle faster."""

GAIN = 1e4
"""How much one filter strengthens the strongest against the weakest. More would make all vectors alike."""

MARGIN, LEAST_MARGIN = 0.05, 1e-3
"""The filter ends this far beyond the last vector of the block, relative to the width of the block, and at
least so far relative to its distance from 1: the whole block may be one multiple eigenvalue."""

PRODUCTS_PER_CLEANING = 8
"""Products after which what rounding has left of the constant, which grows most, is taken out again."""

TIE, LEAST_SCALE = 1e-9, 1e-3
"""Eigenvalues this near each other, relative to their distance from 1, count as one."""

ANGLE, FLOOR = 1e-11, 1e-14
"""Error left in an axis, as an angle; residuals below the floor are rounding and shrink no more."""

MUCH_WORK, ANGLE_AFTER = 2e9, 1e-3
"""Entries times products, after which an axis may have this error instead; also where it shrinks no more."""

MOST_WORK = 2e10
"""Entries times products, after which axes that have not settled are taken as they are."""

ROUGH = 1e-2
"""An angle left in an axis that is worth a warning."""


@dataclass(frozen=True, eq=False)
class Walk:
    """A random walk between places, each of which stands for nodes that have the same neighbors.

    Attributes:
        indptr, indices: Other places that a place is linked to, as compressed rows.
        size: How many nodes a place stands for.
        degree: Neighbors of each of its nodes.
        loop: Share of the steps that end at the same place.
    """

    indptr: np.ndarray
    indices: np.ndarray
    size: np.ndarray
    degree: np.ndarray
    loop: np.ndarray


def leading_axes(
    walk: Walk, dim: int, progress: Progress | None = None, part: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    r"""Return the largest eigenvalues of a connected walk but the first, which is 1, and their functions.

    A function f has as value at each place the mean of its neighbors, divided by the eigenvalue. Its mean
    over all ends of edges is 0, and that of its square is 1. The functions of a multiple eigenvalue are the
    projections of fixed random ones, orthogonalized in order.

    Args:
        dim: How many; fewer come back where there are fewer.
        part: Number of the component, to tell whose state an earlier run has kept.

    Returns:
        Eigenvalues, descending, and functions as rows.
    """
    num_places = len(walk.size)
    width = COLUMNS * -(-(dim + SPARE) // COLUMNS)
    anchors = np.random.default_rng(0).standard_normal((num_places, width))  # the same for as many places
    is_rough = False
    if num_places <= max(SMALL, 3 * width):
        values, vectors = _solve(walk)
    else:
        near, name = _near_together(walk)
        values, found, is_rough = _Filtered(near, dim, anchors[name]).run(progress or Progress(), part)
        vectors = np.empty_like(found)
        vectors[name] = found
    if is_rough:
        warnings.warn(
            f"The spectral axes of {int(walk.size.sum())} nodes have not settled: eigenvalues are nearly "
            f"equal. The same graph gives the same positions, renumbered nodes may give others.",
            stacklevel=2,
        )
    count = min(dim, num_places - 1)
    axes = _resolved(values, vectors, anchors, count)
    weight = walk.size * walk.degree
    return values[:count], (axes * np.sqrt(weight.sum() / weight)[:, None]).T


def _near_together(walk: Walk) -> tuple[Walk, np.ndarray]:
    """Renumber so that neighbors lie together in memory; return the old number of each new one too.

    Six times as fast where a million nodes in the plane came in any order.
    """
    indptr, indices, _, name = near_together(walk.indptr, walk.indices)
    return Walk(indptr, indices, walk.size[name], walk.degree[name], walk.loop[name]), name


def _solve(walk: Walk) -> tuple[np.ndarray, np.ndarray]:
    """Return all eigenvalues of the symmetric matrix but the first, and their vectors as columns."""
    num_places = len(walk.size)
    matrix = np.zeros((num_places, num_places))
    row = np.repeat(np.arange(num_places), np.diff(walk.indptr))
    share = walk.size / walk.degree
    matrix[row, walk.indices] = np.sqrt(share[row] * share[walk.indices])
    matrix[range(num_places), range(num_places)] = walk.loop
    values, vectors = symmetric_eigen(matrix)
    return values[1:], vectors[:, 1:]


class _Filtered:
    """A block of vectors on its way to the leading eigenvectors.

    Vectors are kept as :math:`t = x \\sqrt{s / d}` for eigenvectors x of the symmetric matrix, with s the
    size of a place and d its degree: then a product needs no weight an entry, and scalar products weigh
    each place by d / s.
    """

    def __init__(self, walk: Walk, dim: int, anchors: np.ndarray) -> None:
        self.walk, self.dim = walk, dim
        self.share = walk.size / walk.degree
        self.weight = walk.degree / walk.size
        # The function that is 1 everywhere has the eigenvalue 1, and is wanted by nobody.
        self.constant = walk.size / np.sqrt((walk.size * walk.degree).sum())
        start = anchors * np.sqrt(self.share)[:, None]
        self.x = np.ascontiguousarray(start.reshape(len(start), -1, COLUMNS).transpose(1, 0, 2))
        self.image, self.spare = np.empty_like(self.x), np.empty_like(self.x)
        self.products = 0

    def run(self, progress: Progress, part: int) -> tuple[np.ndarray, np.ndarray, bool]:
        """Return eigenvalues, unit vectors of the symmetric matrix as columns, and whether they are rough."""
        kept = progress.kept() or {}
        if kept and int(kept["part"]) != part:
            kept = {}
        if kept:
            self.x, self.products = kept["block"].copy(), int(kept["products"])
        entries = (len(self.walk.indices) + len(self.share)) * len(self.x)
        angles = [np.inf, np.inf, *kept.get("angles", ())]
        while True:
            values, residuals = self._rayleigh_ritz()
            angle, is_settled = _error(values, residuals, self.dim)
            work = self.products * entries
            # A filter of thousands of products leaves more rounding than the floor.
            is_enough = work > MUCH_WORK or angle > angles[-2] / 4
            is_settled = is_settled or (is_enough and angle < ANGLE_AFTER)
            digits = int(min(99, max(0.0, -100 * np.log10(max(angle, 1e-99)) / 12)))
            progress.step("axes", 100 if is_settled else digits, 100)
            if is_settled or work > MOST_WORK:
                break
            angles.append(angle)
            self._filter(_cut(values), min(1.0, values[0] + 2 * residuals[0]))
            progress.keep(
                block=self.x,
                products=np.array(self.products),
                part=np.array(part),
                angles=np.array(angles[2:]),
            )
        columns = self.x.transpose(1, 0, 2).reshape(len(self.share), -1)
        return values, columns * np.sqrt(self.weight)[:, None], not is_settled and angle > ROUGH

    def _apply(self, x: np.ndarray, factors: tuple[float, float, float], out: np.ndarray) -> None:
        walk = self.walk
        multiply(walk.indptr, walk.indices, self.share, walk.loop, x, out, factors, out)
        self.products += 1

    def _filter(self, upper: float, top: float) -> None:
        """Damp what lies between -1 and ``upper``, against what lies at ``top``."""
        half, center = (upper + 1) / 2, (upper - 1) / 2
        degree = max(2, int(np.ceil(np.arccosh(GAIN) / np.arccosh((top - center) / half))))
        first = sigma = half / (top - center)  # scaled so that the top stays as it is: nothing overflows
        before, now = self.x, self.spare
        now[:] = 0.0
        self._apply(before, (first / half, -center * first / half, 0.0), now)
        for k in range(1, degree):
            following = 1 / (2 / first - sigma)
            scale = 2 * following / half
            self._apply(now, (scale, -center * scale, -sigma * following), before)
            before, now, sigma = now, before, following
            if k % PRODUCTS_PER_CLEANING == 0:
                self._leave_out_constant(before)
                self._leave_out_constant(now)
        self.x, self.spare = now, before

    def _rayleigh_ritz(self) -> tuple[np.ndarray, np.ndarray]:
        """Turn the block into the best approximate eigenvectors in its span; return values and residuals."""
        for _ in range(2):  # twice is enough (Giraud et al. 2005)
            self._leave_out_constant(self.x)
            values, vectors = symmetric_eigen(inner(self.x, self.x, self.weight))
            turn_vectors(self.x, vectors / np.sqrt(np.maximum(values, 1e-16 * values[0])))
        self.image[:] = 0.0
        self._apply(self.x, (1.0, 0.0, 0.0), self.image)
        values, turn = symmetric_eigen(inner(self.x, self.image, self.weight))
        turn_vectors(self.x, turn)
        turn_vectors(self.image, turn)
        by_block = values.reshape(-1, 1, COLUMNS)
        for block in range(len(self.x)):
            np.multiply(self.x[block], -by_block[block], out=self.spare[block])
            self.spare[block] += self.image[block]
        squares = np.diag(inner(self.spare, self.spare, self.weight))
        return values, np.sqrt(np.maximum(squares, 0.0))

    def _leave_out_constant(self, x: np.ndarray) -> None:
        leave_out(x, self.constant, self.weight)


def _cut(values: np.ndarray) -> float:
    """Return where the filter begins, a little below the last Ritz value."""
    margin = max(MARGIN * (values[0] - values[-1]), LEAST_MARGIN * (1 - values[-1]))
    return float(values[-1] - margin)


def _tied_end(values: np.ndarray, start: int) -> int:
    """Return the end of the run of eigenvalues that equal ``values[start]``."""
    end = start + 1
    while end < len(values):
        if values[end - 1] - values[end] > TIE * max(1 - values[end], LEAST_SCALE):
            break
        end += 1
    return end


def _error(values: np.ndarray, residuals: np.ndarray, dim: int) -> tuple[float, bool]:
    """Return the largest angle left in ``dim`` axes, ties counted as one, and whether all settled."""
    start, worst, is_settled = 0, 0.0, True
    while start < dim:
        end = _tied_end(values, start)
        below = values[end] if end < len(values) else _cut(values)
        gap = min(values[start - 1] - values[start] if start else np.inf, values[end - 1] - below)
        residual = float(residuals[start:end].max())
        worst = max(worst, residual / float(gap))
        is_settled = is_settled and residual <= max(ANGLE * gap, FLOOR)
        start = end
    return worst, bool(is_settled)


def _resolved(values: np.ndarray, vectors: np.ndarray, anchors: np.ndarray, count: int) -> np.ndarray:
    """Return the first ``count`` vectors, those of a multiple eigenvalue chosen by the anchors."""
    found = vectors[:, :count].copy()
    start = 0
    while start < count:
        end = _tied_end(values, start)
        if end - start > 1:
            # Any rotation of tied axes is as good; rounding would choose, so the anchors do.
            span = vectors[:, start:end]
            shadows = np.einsum("nk,na->ka", span, anchors)
            wanted = min(end, count) - start
            found[:, start : start + wanted] = np.einsum(
                "nk,kj->nj", span, _orthonormal_in_order(shadows, wanted)
            )
        start = end
    return found


def _orthonormal_in_order(columns: np.ndarray, count: int) -> np.ndarray:
    """Return ``count`` unit vectors: Gram-Schmidt of the columns, the first one first.

    Where the columns span less, axes of coordinates follow them.
    """
    done: list[np.ndarray] = []
    for column in np.concatenate([columns, np.eye(len(columns))], axis=1).T:
        rest = column
        for _ in range(2):
            for axis in done:
                rest = rest - (rest * axis).sum() * axis
        length = np.sqrt((rest**2).sum())
        if length > 1e-6 * np.sqrt((column**2).sum()):
            done.append(rest / length)
        if len(done) == count:
            break
    return np.stack(done, axis=1)
