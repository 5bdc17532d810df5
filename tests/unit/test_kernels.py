import numpy as np
import pytest
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import shortest_path

from geomgcn.embeddings import _kernels


def random_graph(num_nodes, num_edges, seed):
    """Random edges, with a hub that a third of the nodes are linked to."""
    random = np.random.default_rng(seed)
    pairs = random.integers(0, num_nodes, (2, num_edges))
    hub = np.stack([np.zeros(num_nodes // 3, int), np.arange(num_nodes // 3)])
    return from_pairs(np.concatenate([pairs, hub], axis=1), num_nodes)


def from_pairs(pairs, num_nodes):
    graph = sp.coo_array((np.ones(pairs.shape[1]), tuple(pairs)), shape=(num_nodes, num_nodes)).tocsr()
    graph = ((graph + graph.T) > 0).astype(float).tolil()
    graph.setdiag(0)
    graph = graph.tocsr()
    graph.eliminate_zeros()
    return graph


def path(num_nodes, seed=0):
    order = np.random.default_rng(seed).permutation(num_nodes)
    return from_pairs(np.stack([order[:-1], order[1:]]), num_nodes)


def distances(graph):
    out = _kernels.all_hop_distances(graph.indptr, graph.indices)
    assert out.dtype.kind == "u"
    result = out.astype(float)
    result[out == np.iinfo(out.dtype).max] = np.inf
    return out.dtype, result


@pytest.mark.parametrize("num_nodes", [1, 2, 3, 63, 64, 65, 255, 256, 257, 300, 600])
@pytest.mark.parametrize("degree", [0, 0.5, 1, 2, 10])
def test_hop_distances_equal_scipy(num_nodes, degree):
    graph = random_graph(num_nodes, int(degree * num_nodes), seed=num_nodes)
    dtype, result = distances(graph)
    assert dtype == np.uint8
    np.testing.assert_array_equal(result, shortest_path(graph, unweighted=True))


@pytest.mark.parametrize(("num_nodes", "dtype"), [(255, np.uint8), (256, np.uint16), (700, np.uint16)])
def test_the_type_is_the_smallest_that_holds_the_diameter(num_nodes, dtype):
    graph = path(num_nodes)
    found, result = distances(graph)
    assert result.max() == num_nodes - 1
    assert found == dtype
    np.testing.assert_array_equal(result, shortest_path(graph, unweighted=True))


def test_a_long_path_among_other_components():
    # The first sweep need not meet the component with the long path.
    graph = sp.block_diag([random_graph(400, 800, seed=1), path(300), sp.csr_array((5, 5))]).tocsr()
    dtype, result = distances(graph)
    assert dtype == np.uint16
    np.testing.assert_array_equal(result, shortest_path(graph, unweighted=True))


def test_no_nodes():
    empty = np.zeros(1, np.int64)
    assert _kernels.all_hop_distances(empty, empty[:0]).shape == (0, 0)


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize("num_nodes", [1, 2, 511, 513, 1030])
@pytest.mark.parametrize("num_vectors", [1, 4, 6])
def test_squared_product(dtype, num_nodes, num_vectors):
    random = np.random.default_rng(0)
    matrix = random.integers(0, 255, (num_nodes, num_nodes)).astype(dtype)
    vectors = random.standard_normal((num_vectors, num_nodes))
    expected = vectors @ (matrix.astype(float) ** 2).T
    found = _kernels.squared_product(matrix, vectors)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


def test_squares_of_large_distances_do_not_overflow():
    matrix = np.array([[65534, 65534]] * 2, np.uint16)
    assert _kernels.squared_product(matrix, np.ones((1, 2))).tolist() == [[2 * 65534.0**2] * 2]


def test_results_do_not_depend_on_threads():
    graph = random_graph(1500, 3000, seed=3)
    vectors = np.random.default_rng(0).standard_normal((4, 1500))
    results = []
    before = torch.get_num_threads()
    try:
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            hops = _kernels.all_hop_distances(graph.indptr, graph.indices)
            results.append((hops.tobytes(), _kernels.squared_product(hops, vectors).tobytes()))
    finally:
        torch.set_num_threads(before)
    assert results[0] == results[1] == results[2]


def test_code_that_cannot_be_kept_on_disk_is_compiled_all_the_same(monkeypatch):
    import numba

    real = numba.njit

    def njit(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real(**options)

    monkeypatch.setattr(numba, "njit", njit)
    assert _kernels.compiled()(lambda x: x + 1)(1) == 2
