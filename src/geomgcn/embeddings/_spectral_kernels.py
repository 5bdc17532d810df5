"""Compiled loops of the spectral embedding: arrays in, arrays out, no ids checked.

Vectors lie side by side, eight to a block ``[num_blocks, num_nodes, 8]``: what one node holds is one line of
the cache. Rows are cut into pieces that do not depend on the number of threads, and sums over nodes are
added in the order of the pieces, so no result depends on it either.
"""

from functools import partial
from typing import no_type_check

import numpy as np

from geomgcn._compiled import compiled
from geomgcn.embeddings._kernels import over_pieces

COLUMNS = 8
ROWS_PER_PIECE = 1 << 14


@no_type_check
@compiled(fastmath={"contract"})
def _multiply_rows(indptr, indices, share, loop, x, before, factors, out, start):
    """Write ``a * (matrix times x) + b * x + c * before`` for a piece of the rows.

    ``out`` may be ``before``.
    """
    a, b, c = factors
    for row in range(start, min(start + ROWS_PER_PIECE, len(share))):
        s0 = s1 = s2 = s3 = s4 = s5 = s6 = s7 = 0.0
        for entry in range(indptr[row], indptr[row + 1]):
            near = x[indices[entry]]
            s0 += near[0]
            s1 += near[1]
            s2 += near[2]
            s3 += near[3]
            s4 += near[4]
            s5 += near[5]
            s6 += near[6]
            s7 += near[7]
        own, last, new = x[row], before[row], out[row]
        scale, here = a * share[row], a * loop[row] + b
        new[0] = scale * s0 + here * own[0] + c * last[0]
        new[1] = scale * s1 + here * own[1] + c * last[1]
        new[2] = scale * s2 + here * own[2] + c * last[2]
        new[3] = scale * s3 + here * own[3] + c * last[3]
        new[4] = scale * s4 + here * own[4] + c * last[4]
        new[5] = scale * s5 + here * own[5] + c * last[5]
        new[6] = scale * s6 + here * own[6] + c * last[6]
        new[7] = scale * s7 + here * own[7] + c * last[7]


@no_type_check
@compiled()
def _inner_rows(left, right, weight, out, start, stop):
    """Add the weighted scalar products of the columns of two blocks to ``out``, over some rows."""
    for row in range(start, stop):
        for i in range(COLUMNS):
            weighted = weight[row] * left[row, i]
            for j in range(COLUMNS):
                out[i, j] += weighted * right[row, j]


@no_type_check
@compiled()
def _along_rows(vectors, direction, weight, out, start, stop):
    """Add the weighted scalar products of all vectors with one direction to ``out``."""
    for block in range(len(vectors)):
        for row in range(start, stop):
            weighted = weight[row] * direction[row]
            for j in range(COLUMNS):
                out[block, j] += weighted * vectors[block, row, j]


@no_type_check
@compiled()
def _subtract_rows(vectors, direction, along, start, stop):
    """Subtract multiples of one direction from all vectors, in place."""
    for block in range(len(vectors)):
        for row in range(start, stop):
            for j in range(COLUMNS):
                vectors[block, row, j] -= along[block, j] * direction[row]


@no_type_check
@compiled()
def _turn_rows(vectors, turn, start, stop):
    """Multiply some rows of all blocks by a square matrix, in place."""
    num_blocks = len(vectors)
    width = num_blocks * COLUMNS
    old = np.empty(width)
    for row in range(start, stop):
        for k in range(width):
            old[k] = vectors[k // COLUMNS, row, k % COLUMNS]
        for block in range(num_blocks):
            new = vectors[block, row]
            new[:] = 0.0
            for k in range(width):
                for j in range(COLUMNS):
                    new[j] += old[k] * turn[k, block * COLUMNS + j]


def multiply(
    indptr: np.ndarray,
    indices: np.ndarray,
    share: np.ndarray,
    loop: np.ndarray,
    x: np.ndarray,
    before: np.ndarray,
    factors: tuple[float, float, float],
    out: np.ndarray,
) -> None:
    """Write ``a * (matrix times x) + b * x + c * before`` into ``out``, which may be ``before``.

    The matrix has ``share[row]`` at each entry of a row, and ``loop[row]`` on the diagonal.
    """
    num_rows = len(share)
    for i in range(len(x)):
        # No function of its own: the checks of the tests would wrap it anew in each of thousands of calls.
        work = partial(_multiply_rows, indptr, indices, share, loop, x[i], before[i], factors, out[i])
        over_pieces(work, range(0, num_rows, ROWS_PER_PIECE))


def inner(left: np.ndarray, right: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return the weighted scalar products of all vectors on the left with all on the right."""
    starts = range(0, len(weight), ROWS_PER_PIECE)
    total = np.zeros((len(left), len(right), COLUMNS, COLUMNS))
    for part in over_pieces(lambda start: _inner_piece(left, right, weight, start), starts):
        total += part
    return total.transpose(0, 2, 1, 3).reshape(COLUMNS * len(left), COLUMNS * len(right))


def _inner_piece(left: np.ndarray, right: np.ndarray, weight: np.ndarray, start: int) -> np.ndarray:
    stop = min(start + ROWS_PER_PIECE, len(weight))
    out = np.zeros((len(left), len(right), COLUMNS, COLUMNS))
    for i in range(len(left)):
        for j in range(len(right)):
            _inner_rows(left[i], right[j], weight, out[i, j], start, stop)
    return out


def turn_vectors(vectors: np.ndarray, turn: np.ndarray) -> None:
    """Replace the vectors by the combinations that the columns of ``turn`` name, in place."""
    num_rows = vectors.shape[1]
    over_pieces(
        lambda start: _turn_rows(vectors, turn, start, min(start + ROWS_PER_PIECE, num_rows)),
        range(0, num_rows, ROWS_PER_PIECE),
    )


def leave_out(vectors: np.ndarray, direction: np.ndarray, weight: np.ndarray) -> None:
    """Make all vectors orthogonal to a unit vector, in place."""
    num_rows = len(direction)
    starts = range(0, num_rows, ROWS_PER_PIECE)
    parts = over_pieces(lambda start: _along_piece(vectors, direction, weight, start), starts)
    along = np.zeros((len(vectors), COLUMNS))
    for part in parts:
        along += part
    over_pieces(
        lambda start: _subtract_rows(vectors, direction, along, start, min(start + ROWS_PER_PIECE, num_rows)),
        starts,
    )


def _along_piece(vectors: np.ndarray, direction: np.ndarray, weight: np.ndarray, start: int) -> np.ndarray:
    out = np.zeros((len(vectors), COLUMNS))
    _along_rows(vectors, direction, weight, out, start, min(start + ROWS_PER_PIECE, len(direction)))
    return out
