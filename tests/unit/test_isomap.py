import hashlib
import os
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
import threadpoolctl
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse.csgraph import shortest_path
from torch_geometric.data import Data

from geomgcn.embeddings import Isomap, _memory, embed_cached, hop_distances
from geomgcn.embeddings._scaling import leading_axes
from graphs import path


def edges(graph):
    pairs = torch.tensor(list(graph.edges), dtype=torch.int64).reshape(-1, 2).t()
    return pairs, graph.number_of_nodes()


def embed(graph, dim=2):
    return Isomap(dim=dim).embed(*edges(graph)).numpy()


def connected(num_nodes, num_more, seed):
    """Return a random recursive tree with some more edges."""
    random = np.random.default_rng(seed)
    graph = nx.empty_graph(num_nodes)
    graph.add_edges_from((v, int(random.integers(v))) for v in range(1, num_nodes))
    graph.add_edges_from(random.integers(0, num_nodes, (num_more, 2)).tolist())
    graph.remove_edges_from(nx.selfloop_edges(graph))
    return graph


def dense_axes(graph, dim):
    """Return the coordinates that a full eigen-decomposition gives, and one eigenvalue more."""
    squares = shortest_path(nx.to_scipy_sparse_array(graph, nodelist=range(len(graph))), unweighted=True) ** 2
    matrix = -0.5 * (squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean())
    values, vectors = np.linalg.eigh(matrix)
    return vectors[:, ::-1][:, :dim] * np.sqrt(values[::-1][:dim]), values[::-1][: dim + 1]


def twins(graph):
    return [(u, v) for u, v in nx.non_edges(graph) if graph.degree(u) and set(graph[u]) == set(graph[v])]


def test_eigenvalues_of_small_graphs_equal_a_dense_decomposition():
    """The Krylov space of a small graph is soon complete, and what rounding leaves must not enter it."""
    for seed in [9464, *range(400)]:
        random = np.random.default_rng(seed)
        graph = (
            connected(10, 34, seed) if seed == 9464 else connected(*random.integers((3, 0), (16, 60)), seed)
        )
        _, expected = dense_axes(graph, 2)
        squares = hop_distances(*edges(graph)).astype(float) ** 2
        found, _ = leading_axes(lambda rows, squares=squares: rows @ squares, len(graph), 2)
        np.testing.assert_allclose(found, expected[: len(found)], atol=1e-9)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("dim", [2, 3])
def test_equals_a_dense_eigen_decomposition_up_to_sign(seed, dim):
    num_nodes = 30 + 25 * seed
    graph = connected(num_nodes, num_more=num_nodes * (seed % 4) // 2, seed=seed)
    expected, values = dense_axes(graph, dim)
    assert values[dim - 1] > 2.001  # twins lie together by themselves
    assert (np.diff(values) < -1e-3).all()  # the axes are unique
    found = embed(graph, dim)
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-6 * np.abs(expected).max())


def test_a_path_lies_on_a_line():
    assert embed(nx.path_graph(6)).tolist() == [[2.5 - i, 0.0] for i in range(6)]


def test_a_ring_is_a_circle():
    radii = np.linalg.norm(embed(nx.cycle_graph(24)), axis=1)
    np.testing.assert_allclose(radii, radii[0], rtol=1e-6)


def test_axes_without_a_positive_eigenvalue_are_zero():
    found = embed(nx.path_graph(5), dim=4)
    assert found.shape == (5, 4)
    assert np.ptp(found[:, 0]) == 4
    assert not found[:, 1:].any()


@pytest.mark.parametrize(
    ("graph", "expected"),
    [
        (nx.empty_graph(1), [[0.0, 0.0]]),
        (nx.path_graph(2), [[0.5, 0.0], [-0.5, 0.0]]),
    ],
)
def test_smallest_graphs(graph, expected):
    assert embed(graph).tolist() == expected


def test_a_triangle_keeps_its_sides():
    found = embed(nx.complete_graph(3))
    sides = [np.linalg.norm(found[i] - found[j]) for i, j in [(0, 1), (0, 2), (1, 2)]]
    np.testing.assert_allclose(sides, 1.0, atol=1e-6)


def test_a_complete_graph_is_finite():
    assert np.isfinite(embed(nx.complete_graph(300))).all()


@pytest.mark.parametrize("seed", range(5))
def test_twins_coincide_exactly(seed):
    graph = connected(80, num_more=40, seed=seed)
    for copy in range(80, 100):
        graph.add_edges_from([(copy, near) for near in list(graph[copy - 80])])
    pairs = twins(graph)
    assert len(pairs) >= 20
    found = embed(graph)
    for u, v in pairs:
        assert found[u].tobytes() == found[v].tobytes()


def test_linked_twins_of_a_large_graph_coincide_exactly():
    graph = connected(100, num_more=50, seed=1)
    graph.add_edges_from([(100, near) for near in [*graph[7], 7]])
    found = embed(graph)
    assert found[100].tobytes() == found[7].tobytes()


@pytest.mark.parametrize("graph", [nx.path_graph(3), nx.cycle_graph(4), nx.star_graph(3)])
def test_twins_of_a_tiny_graph_stand_apart_where_there_is_room(graph):
    found = embed(graph)
    expected, values = dense_axes(graph, 2)
    between = [np.linalg.norm(pos[:, None] - pos[None], axis=2) for pos in (found, expected)]
    assert values[1] > -1e-9
    np.testing.assert_allclose(*between, atol=1e-6)
    assert between[0].max() == pytest.approx(2.0, abs=1e-6)


def test_a_fork_keeps_its_prongs_apart():
    fork = nx.path_graph(7)
    fork.add_edge(5, 7)  # 6 and 7 are twins, and no other axis is as long as theirs
    found = embed(fork)
    assert np.linalg.norm(found[6] - found[7]) == pytest.approx(2.0, abs=1e-6)


@pytest.mark.parametrize("graph", [nx.star_graph(9), nx.complete_bipartite_graph(3, 4), nx.star_graph(4)])
def test_two_classes_of_twins_are_two_points_at_distance_one(graph):
    found = embed(graph)
    for u, v in nx.non_edges(graph):
        assert found[u].tobytes() == found[v].tobytes()
    for u, v in graph.edges:
        np.testing.assert_allclose(np.linalg.norm(found[u] - found[v]), 1.0, atol=1e-6)


def test_coordinates_lie_on_the_documented_grid():
    graph = connected(200, num_more=20, seed=3)
    diameter = nx.diameter(graph)
    steps = embed(graph) / 2.0 ** (np.ceil(np.log2(diameter)) - 23)
    assert (steps == np.round(steps)).all()
    assert np.abs(steps).max() < 2**25


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10**6), num_nodes=st.integers(8, 60), more=st.integers(0, 60))
def test_renumbering_the_nodes_renumbers_the_positions(seed, num_nodes, more):
    graph = connected(num_nodes, more, seed)
    positions, values = dense_axes(graph, 2)
    skewness = (positions**3).sum(axis=0) / np.abs(positions**3).sum(axis=0)
    if np.diff(values).max() > -1e-3 or np.abs(skewness).min() < 1e-3 or abs(values[1] - 2) < 1e-3:
        return  # axes that the graph does not determine
    order = np.random.default_rng(seed).permutation(num_nodes)
    step = 2.0 ** (np.ceil(np.log2(nx.diameter(graph))) - 23)
    found = embed(nx.relabel_nodes(graph, dict(enumerate(order.tolist()))))
    assert np.abs(found[order] - embed(graph)).max() <= step


def test_the_order_and_form_of_edges_do_not_matter():
    pairs, num_nodes = edges(connected(50, num_more=30, seed=0))
    expected = Isomap().embed(pairs, num_nodes)
    loops = torch.arange(5).expand(2, 5)
    messy = torch.cat([pairs.flip(0), loops, pairs[:, :10]], dim=1)
    assert torch.equal(Isomap().embed(messy.flip(1), num_nodes), expected)


def test_components_keep_their_distances_and_lie_apart():
    parts = [
        nx.path_graph(9),
        connected(40, 20, seed=1),
        nx.cycle_graph(7),
        nx.empty_graph(30),
        nx.path_graph(2),
    ]
    found = embed(nx.disjoint_union_all(parts))
    assert np.isfinite(found).all()
    assert len(np.unique(found[-32:], axis=0)) == 32  # isolated nodes have places of their own
    start, boxes = 0, []
    for part in parts[:3]:
        inside = found[start : start + len(part)]
        np.testing.assert_allclose(inside - inside[0], embed(part) - embed(part)[0], atol=1e-5)
        boxes.append(inside)
        start += len(part)
    boxes.extend(found[start : start + 30, None])
    boxes.append(found[start + 30 :])
    diameter = max(nx.diameter(part) for part in parts[:3])
    for i, a in enumerate(boxes):
        for b in boxes[:i]:
            apart = np.maximum(a.min(0) - b.max(0), b.min(0) - a.max(0)).max()
            assert apart >= diameter
    np.testing.assert_allclose(boxes[1].mean(axis=0), 0.0, atol=1e-5)  # the largest is at the origin


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_no_edges(dim):
    found = Isomap(dim=dim).embed(torch.empty(2, 0, dtype=torch.int64), 10)
    assert found.shape == (10, dim)
    assert len(torch.unique(found, dim=0)) == 10


def random_and_ring():
    """Return a graph with several components, and one with double eigenvalues."""
    random = torch.randint(0, 1500, (2, 2500), generator=torch.Generator().manual_seed(0))
    ring = torch.stack([torch.arange(600), (torch.arange(600) + 1) % 600])
    return (random, 1500), (ring, 600)


def sha256_of_positions():
    positions = [Isomap().embed(*graph).numpy().tobytes() for graph in random_and_ring()]
    return hashlib.sha256(b"".join(positions)).hexdigest()


def test_same_bytes_with_any_number_of_threads():
    before = torch.get_num_threads()
    found = set()
    try:
        for threads in (1, 2, 2, 3):
            torch.set_num_threads(threads)
            with threadpoolctl.threadpool_limits(threads):
                found.add(sha256_of_positions())
    finally:
        torch.set_num_threads(before)
    assert len(found) == 1


@pytest.mark.slow
def test_same_bytes_in_every_process():
    program = "from test_isomap import sha256_of_positions; print(sha256_of_positions())"
    outputs = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "OMP_NUM_THREADS": seed}
        environment["PYTHONPATH"] = os.pathsep.join(os.path.abspath(folder) for folder in sys.path)
        command = [sys.executable, "-c", program]
        done = subprocess.run(
            command, env=environment, cwd=os.path.dirname(__file__), capture_output=True, check=True
        )
        outputs.add(done.stdout.decode().strip())
    assert outputs == {sha256_of_positions()}


def test_transform_writes_positions_and_leaves_its_input():
    pairs, num_nodes = edges(connected(20, 5, seed=0))
    data = Data(edge_index=pairs, num_nodes=num_nodes)
    out = Isomap(dim=3)(data)
    assert "pos" not in data
    assert out.geometry == "euclidean"
    assert torch.equal(out.pos, Isomap(dim=3).embed(pairs, num_nodes))
    assert torch.equal(out.edge_index, pairs)


def test_hop_distances_of_a_path_and_an_isolated_node():
    found = hop_distances(torch.tensor([[0, 1], [1, 2]]), num_nodes=4)
    assert found.dtype == np.uint8
    assert found.tolist() == [[0, 1, 2, 255], [1, 0, 1, 255], [2, 1, 0, 255], [255, 255, 255, 0]]


def test_ids_out_of_range_are_refused_before_any_kernel():
    bad = torch.tensor([[0, 1], [1, 9]])
    for call in (hop_distances, Isomap().embed):
        with pytest.raises(ValueError, match=r"ids from 0 to 2, got 1 -> 9"):
            call(bad, 3)


def test_all_hop_distances_too_large_for_memory(monkeypatch):
    monkeypatch.setattr(_memory, "free_memory", lambda: 2**30)
    star = torch.stack([torch.zeros(40000, dtype=torch.int64), torch.arange(1, 40001)])
    with pytest.raises(ValueError, match=r"40001 nodes take 1.5 GiB, and 1.0 GiB are free. Take a part"):
        hop_distances(star, 40001)


def test_distances_that_need_two_bytes_too_large_for_memory(monkeypatch):
    monkeypatch.setattr(_memory, "free_memory", lambda: 400_000)
    assert hop_distances(path(255), 255).max() == 254  # fits into one byte
    with pytest.raises(ValueError, match=r"600 nodes take .* GiB, and .* GiB are free\. Take a part"):
        hop_distances(path(600), 600)  # 600^2 bytes are free, twice as many are not


@pytest.mark.parametrize("free", [0, 10**5, 3 * 10**5, None])
def test_less_memory_gives_the_same_bytes(monkeypatch, free):
    graph = edges(connected(900, 300, seed=2))
    expected = Isomap().embed(*graph)
    monkeypatch.setattr(_memory, "free_memory", lambda: free)
    assert Isomap().embed(*graph).numpy().tobytes() == expected.numpy().tobytes()


def test_free_memory_is_known_on_linux():
    if not sys.platform.startswith("linux"):
        pytest.skip("read from /proc")
    assert 2**20 < _memory.free_memory() < 2**50


def test_wrong_dim():
    with pytest.raises(ValueError, match=r"Isomap needs at least one axis, got dim=0. Pass dim=2"):
        Isomap(dim=0)
    with pytest.raises(TypeError, match=r"needs an integer dim, got dim=True"):
        Isomap(dim=True)


def test_cache_key_is_settings_and_canonical_graph(tmp_path, monkeypatch):
    calls = []
    straight = Isomap.embed
    monkeypatch.setattr(Isomap, "embed", lambda *a: calls.append(1) or straight(*a))
    pairs = torch.tensor([[0, 1], [1, 2]])
    first = embed_cached(Isomap(), pairs, 4, tmp_path)
    assert torch.equal(embed_cached(Isomap(), pairs.flip(0), 4, tmp_path), first)
    assert len(calls) == 1
    embed_cached(Isomap(dim=3), pairs, 4, tmp_path)
    embed_cached(Isomap(), pairs, 5, tmp_path)
    embed_cached(Isomap(), pairs[:, :1], 4, tmp_path)
    assert len(calls) == 4


@pytest.mark.parametrize("backwards", [False, True])
def test_a_long_way_that_only_a_later_sweep_meets(backwards):
    """A clique, whose own sweep sees short ways only, beside a path of 300 nodes."""
    clique = torch.combinations(torch.arange(300)).t()
    edges = torch.cat([clique, path(300) + 300], dim=1)
    found = hop_distances(599 - edges if backwards else edges, 600)
    assert found.dtype == np.uint16
    assert found[found < np.iinfo(np.uint16).max].max() == 299


def test_small_components_with_rows_of_equal_length_are_told_apart():
    """0-1-2-3 and 4-6-5-7: the same degrees in the same order, other neighbors."""
    edges = torch.tensor([[0, 1, 2, 4, 6, 5], [1, 2, 3, 6, 5, 7]])
    pos = Isomap(dim=1).embed(edges, 8)
    one, other = pos[[0, 1, 2, 3]], pos[[4, 6, 5, 7]]
    torch.testing.assert_close(other - other.mean(), one - one.mean())


@pytest.mark.parametrize("num_nodes", [2, 3, 4, 7, 16, 29])
@pytest.mark.parametrize("dim", [1, 2])
def test_the_first_end_of_a_path_points_up(num_nodes, dim):
    assert Isomap(dim=dim).embed(path(num_nodes), num_nodes)[0, 0] > 0  # both tails are equally long
