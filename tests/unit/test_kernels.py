import threading

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


@pytest.mark.parametrize("first", [0, 1, 100, 256, 299])
@pytest.mark.parametrize("budget", [1, 50, 10**9])
def test_a_search_that_pauses_finds_the_same_distances(monkeypatch, first, budget):
    monkeypatch.setattr(_kernels, "BUDGET", budget)
    graph = random_graph(300, 400, seed=1)
    sources = np.random.default_rng(0).choice(300, 70, replace=False)
    found, largest = _kernels.hops_from(graph.indptr, graph.indices, sources, first, np.uint8)
    expected = shortest_path(graph, unweighted=True)[:, sources]
    np.testing.assert_array_equal(np.where(found == 255, np.inf, found), expected[first:])
    assert largest == expected[np.isfinite(expected)].max()


def test_a_search_stops_when_nobody_waits_for_it(monkeypatch):
    monkeypatch.setattr(_kernels, "BUDGET", 1)
    stopped = threading.Event()
    stopped.set()
    graph = path(200)
    found, _ = _kernels.hops_from(graph.indptr, graph.indices, np.array([0]), 0, np.uint8, stopped)
    assert (found == 255).sum() > 150


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_pieces_come_in_order_and_the_rest_is_called_off(threads):
    before = torch.get_num_threads()
    stopped = threading.Event()
    begun = []
    try:
        torch.set_num_threads(threads)
        assert list(_kernels.each_piece(lambda i: i * i, range(50))) == [i * i for i in range(50)]
        for result in _kernels.each_piece(lambda i: begun.append(i) or i, range(1000), stopped):
            if result == 5:
                break
    finally:
        torch.set_num_threads(before)
    assert len(begun) < 50
    assert stopped.is_set() == (threads > 1)


def test_hop_distances_do_not_depend_on_threads():
    graph = random_graph(1500, 3000, seed=3)
    before = torch.get_num_threads()
    try:
        found = set()
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            found.add(_kernels.all_hop_distances(graph.indptr, graph.indices).tobytes())
    finally:
        torch.set_num_threads(before)
    assert len(found) == 1


def test_code_that_cannot_be_kept_on_disk_is_compiled_all_the_same(monkeypatch):
    import numba

    real = numba.njit

    def njit(**options):
        if options.get("cache"):
            raise RuntimeError("cannot cache function: no locator available")
        return real(**options)

    monkeypatch.setattr(numba, "njit", njit)
    assert _kernels.compiled()(lambda x: x + 1)(1) == 2
