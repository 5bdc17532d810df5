"""All eigenvalues and vectors of a small symmetric matrix, compiled.

LAPACK would do, but it runs in as many threads as BLAS likes: with two of them on a busy machine a 100 x
100 matrix took 100 times longer, and other numbers of threads gave other last bits.
"""

from typing import no_type_check

import numpy as np

from geomgcn._compiled import compiled

EPSILON = 2.0**-52
"""Spacing of float64 at 1."""


def symmetric_eigen(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return eigenvalues, descending, and their vectors as columns.

    Householder's reduction to three diagonals, then implicit QL steps; O(n^3).

    Example:
        >>> symmetric_eigen(np.diag([1.0, 3.0]))[0].tolist()
        [3.0, 1.0]
    """
    rest = np.ascontiguousarray(matrix, np.float64).copy()
    rows = np.eye(len(rest))
    diagonal = np.empty(len(rest))
    decompose(rest, diagonal, rows)
    order = np.argsort(-diagonal, kind="stable")
    return diagonal[order], rows[order].T


# Plain loops: expressions of whole arrays would take several seconds to compile.
@no_type_check
@compiled()
def _three_diagonals(rest, rows):
    """Return the diagonal and what lies beside it; turns the unit matrix ``rows``, destroys ``rest``."""
    size = len(rest)
    diagonal, beside = np.zeros(size), np.zeros(size)
    mirror, product = np.empty(size), np.empty(size)
    for k in range(size - 1):
        below = 0.0
        for i in range(k + 2, size):
            below += rest[i, k] ** 2
        first = rest[k + 1, k]
        beside[k] = first
        if below <= EPSILON**2 * first**2:
            continue
        beside[k] = -np.copysign(np.sqrt(first**2 + below), first)
        mirror[k + 1] = first - beside[k]
        length = np.sqrt(mirror[k + 1] ** 2 + below)
        mirror[k + 1] /= length
        for i in range(k + 2, size):
            mirror[i] = rest[i, k] / length
        along = 0.0
        for i in range(k + 1, size):
            product[i] = 0.0
            for j in range(k + 1, size):
                product[i] += rest[i, j] * mirror[j]
            along += product[i] * mirror[i]
        for i in range(k + 1, size):
            product[i] -= along * mirror[i]
        for i in range(k + 1, size):
            for j in range(k + 1, size):
                rest[i, j] -= 2 * (mirror[i] * product[j] + product[i] * mirror[j])
        product[:] = 0.0
        for i in range(k + 1, size):
            for j in range(size):
                product[j] += mirror[i] * rows[i, j]
        for i in range(k + 1, size):
            for j in range(size):
                rows[i, j] -= 2 * mirror[i] * product[j]
    for k in range(size):
        diagonal[k] = rest[k, k]
    return diagonal, beside


@no_type_check
@compiled()
def _diagonalize(diagonal, beside, rows):
    """Turn a matrix of three diagonals into one, in place, and the rows of ``rows`` with it."""
    size = len(diagonal)
    norm = 0.0
    for k in range(size):
        norm = max(norm, np.abs(diagonal[k]) + np.abs(beside[k]))
    for low in range(size):
        for _ in range(60):  # two or three steps are usual
            high = low
            while high < size - 1:
                near = np.abs(diagonal[high]) + np.abs(diagonal[high + 1])
                if np.abs(beside[high]) <= EPSILON * max(near, 1e-3 * norm):
                    break
                high += 1
            if high == low:
                break
            shift = (diagonal[low + 1] - diagonal[low]) / (2 * beside[low])
            shift += np.copysign(np.hypot(shift, 1.0), shift)
            g = diagonal[high] - diagonal[low] + beside[low] / shift
            sine, cosine, p = 1.0, 1.0, 0.0
            for i in range(high - 1, low - 1, -1):
                f, b = sine * beside[i], cosine * beside[i]
                r = np.hypot(f, g)
                beside[i + 1] = r
                if r == 0.0:
                    diagonal[i + 1] -= p
                    beside[high] = 0.0
                    break
                sine, cosine = f / r, g / r
                g = diagonal[i + 1] - p
                r = (diagonal[i] - g) * sine + 2 * cosine * b
                p = sine * r
                diagonal[i + 1] = g + p
                g = cosine * r - b
                for j in range(size):
                    a, c = rows[i, j], rows[i + 1, j]
                    rows[i, j] = cosine * a - sine * c
                    rows[i + 1, j] = sine * a + cosine * c
            else:
                diagonal[low] -= p
                beside[low] = g
                beside[high] = 0.0


@no_type_check
@compiled()
def decompose(rest, values, rows):
    """Write eigenvalues, in no order, and turn the unit matrix ``rows`` into their vectors."""
    diagonal, beside = _three_diagonals(rest, rows)
    _diagonalize(diagonal, beside, rows)
    values[:] = diagonal
