import numpy as np
import pytest

from geomgcn.embeddings._eigen import symmetric_eigen

RANDOM = np.random.default_rng(0)


def of_kind(kind, size):
    matrix = RANDOM.standard_normal((size, size))
    matrix = matrix + matrix.T
    if kind == "two of many":
        few = RANDOM.standard_normal((size, 2))
        return few @ few.T
    if kind == "multiple":
        turn = np.linalg.qr(matrix)[0]
        return turn * RANDOM.integers(0, 3, size) @ turn.T
    if kind == "graded":
        scale = 10.0 ** -np.linspace(0, 12, size)
        return matrix * scale * scale[:, None]
    return {"random": matrix, "diagonal": np.diag(np.diag(matrix)), "zero": np.zeros((size, size))}[kind]


@pytest.mark.parametrize("kind", ["random", "two of many", "multiple", "graded", "diagonal", "zero"])
@pytest.mark.parametrize("size", [0, 1, 2, 3, 10, 60])
def test_equals_lapack(kind, size):
    matrix = of_kind(kind, size)
    norm = max(np.abs(matrix).max(), 1.0) if size else 1.0
    values, vectors = symmetric_eigen(matrix)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(matrix)[::-1], rtol=0, atol=1e-13 * norm)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(size), atol=1e-13)
    np.testing.assert_allclose(matrix @ vectors, vectors * values, rtol=0, atol=1e-13 * norm)
