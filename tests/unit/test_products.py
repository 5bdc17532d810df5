import numpy as np
import pytest
import torch
from scipy.sparse.csgraph import dijkstra, shortest_path
from test_kernels import from_pairs, path, random_graph

from geomgcn.embeddings._lengths import Lengths, nearest_first
from geomgcn.embeddings._products import Hops, SquaredDistances, block_times, sums_over_sources


def connected(num_nodes, num_more, seed):
    random = np.random.default_rng(seed)
    tree = np.array([[random.integers(v) for v in range(1, num_nodes)], range(1, num_nodes)])
    return from_pairs(np.concatenate([tree, random.integers(0, num_nodes, (2, num_more))], axis=1), num_nodes)


def with_lengths(graph, seed):
    """The same graph, with random lengths of very different sizes, at most 1."""
    random = np.random.default_rng(seed)
    weights = np.triu(random.random(graph.shape) ** 6 + 1e-9)
    return graph.multiply(weights + weights.T).tocsr() / 2


@pytest.mark.parametrize("dtype", [np.uint8, np.uint16, np.uint32])
@pytest.mark.parametrize(("height", "size"), [(1, 1), (1, 2), (7, 300), (256, 256), (256, 1031), (255, 601)])
@pytest.mark.parametrize("num_vectors", [4, 8])
def test_products_of_a_block(dtype, height, size, num_vectors):
    random = np.random.default_rng(0)
    block = random.integers(0, 255, (size, height)).astype(dtype)
    block[:height] = np.maximum(block[:height], block[:height].T)
    first = 5
    columns = random.standard_normal((num_vectors, first + size))
    squares = block.astype(float) ** 2
    expected = columns[:, first : first + height] @ squares.T
    expected[:, :height] += columns[:, first + height :] @ squares[height:]
    found = block_times(block, first, columns)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-11 * np.abs(expected).max())
    weights = random.standard_normal((num_vectors - 1, height))
    np.testing.assert_allclose(sums_over_sources(block, weights), weights @ squares.T, rtol=1e-9, atol=1e-6)


def test_squares_of_large_distances_do_not_overflow():
    for largest, dtype in ((65534, np.uint16), (2**31 - 1, np.uint32)):
        block = np.array([[0, largest], [largest, 0]], dtype)
        assert block_times(block, 0, np.ones((4, 2))).tolist() == [[float(largest) ** 2] * 2] * 4


@pytest.mark.parametrize("num_nodes", [2, 3, 255, 256, 257, 700])
@pytest.mark.parametrize("keep", [0, 100_000, 10**9])
@pytest.mark.parametrize("num_vectors", [1, 4, 6])
def test_squared_hop_distances(num_nodes, keep, num_vectors):
    graph = connected(num_nodes, num_nodes // 3, seed=num_nodes)
    distances = shortest_path(graph, unweighted=True)
    vectors = np.random.default_rng(0).standard_normal((num_vectors, num_nodes))
    order = np.random.default_rng(1).permutation(num_nodes)
    found = SquaredDistances(Hops(graph.indptr, graph.indices), keep, order)
    expected = np.empty_like(vectors)
    expected[:, order] = vectors[:, order] @ distances**2
    for _ in range(3):  # the second time some blocks are kept
        np.testing.assert_allclose(found.times(vectors), expected, rtol=1e-10, atol=1e-9)
    assert found.diameter == distances.max()
    assert found.is_kept == (keep > num_nodes**2)


def test_a_path_needs_wider_numbers_from_its_second_block_on():
    graph = path(600)
    distances = shortest_path(graph, unweighted=True)
    vectors = np.random.default_rng(0).standard_normal((2, 600))
    found = SquaredDistances(Hops(graph.indptr, graph.indices), keep=10**9)
    np.testing.assert_allclose(found.times(vectors), vectors @ distances**2, rtol=1e-10)
    assert found.diameter == 599


@pytest.mark.parametrize("kind", ["hops", "lengths"])
def test_products_do_not_depend_on_threads_or_memory(kind):
    graph = with_lengths(connected(900, 2000, seed=3), seed=3)
    vectors = np.random.default_rng(0).standard_normal((4, 900))
    arrays = (graph.indptr, graph.indices) if kind == "hops" else (graph.indptr, graph.indices, graph.data)
    paths = {"hops": Hops, "lengths": Lengths}[kind](*arrays)
    before = torch.get_num_threads()
    results = set()
    try:
        for threads in (1, 2, 3):
            for keep in (0, 600_000, 10**9):
                torch.set_num_threads(threads)
                distances = SquaredDistances(paths, keep)
                results |= {distances.times(vectors).tobytes() for _ in range(2)}
    finally:
        torch.set_num_threads(before)
    assert len(results) == 1


@pytest.mark.parametrize("seed", range(6))
def test_lengths_of_shortest_paths_equal_scipy(seed):
    graph = with_lengths(connected(5 + 60 * seed, 40 * seed, seed), seed)
    expected = dijkstra(graph, directed=False)
    paths = Lengths(graph.indptr, graph.indices, graph.data)
    sources = np.arange(min(graph.shape[0], 256))
    found, largest = paths.block(sources, first=2)
    np.testing.assert_allclose(found * paths.unit, expected[2:, sources], atol=2e-9 * expected.max())
    assert largest * paths.unit == pytest.approx(expected[:, sources].max())
    one = nearest_first(graph.indptr, graph.indices, graph.data, 3)
    np.testing.assert_allclose(one, expected[3], rtol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_lengths_of_paths_are_the_same_in_both_directions(seed):
    graph = with_lengths(connected(250, 100, seed), seed)
    found, _ = Lengths(graph.indptr, graph.indices, graph.data).block(np.arange(250), first=0)
    np.testing.assert_array_equal(found, found.T)


def test_an_edge_longer_than_any_path_costs_no_digits():
    graph = from_pairs(np.array([[0, 1, 0], [1, 2, 2]]), 3).astype(float)
    graph.data[:] = [1e-200, 1.0, 1e-200, 3e-200, 1.0, 3e-200]
    paths = Lengths(graph.indptr, graph.indices, graph.data)
    found, _ = paths.block(np.arange(3), first=0)
    np.testing.assert_allclose(
        found * paths.unit, [[0, 1e-200, 4e-200], [1e-200, 0, 3e-200], [4e-200, 3e-200, 0]]
    )


def test_no_path():
    graph = random_graph(5, 0, seed=0)
    assert np.isinf(nearest_first(graph.indptr, graph.indices, graph.data, 4)[:4]).any()
