import hashlib
import os
import subprocess
import sys

import networkx as nx
import numpy as np
import pytest
import threadpoolctl
import torch

from geomgcn import _progress
from geomgcn._progress import Progress
from geomgcn.embeddings import Spectral, _spectral_axes, _spectral_kernels, embed_cached
from graphs import connected_random, no_edges, path, star


def edges(graph):
    graph = nx.convert_node_labels_to_integers(graph)
    return torch.tensor(list(graph.edges), dtype=torch.int64).reshape(-1, 2).t(), len(graph)


def embed(graph, dim=2):
    return Spectral(dim=dim).embed(*edges(graph)).numpy()


def dense(edge_index, num_nodes, dim):
    """Return eigenvalues and positions by a full decomposition of the symmetric Laplacian, for no twins."""
    adjacency = np.zeros((num_nodes, num_nodes))
    adjacency[tuple(edge_index.numpy())] = 1
    adjacency = np.maximum(adjacency, adjacency.T)
    degree = adjacency.sum(axis=0)
    laplacian = np.eye(num_nodes) - adjacency / np.sqrt(np.outer(degree, degree))
    values, vectors = np.linalg.eigh(laplacian)
    functions = vectors[:, 1:] * np.sqrt(degree.sum() / degree)[:, None]
    return values[1:], (functions / np.sqrt(values[1:]))[:, :dim]


def twin_pairs(graph):
    near = {u: set(graph[u]) for u in graph}
    return [(u, v) for u in graph for v in graph if u < v and near[u] - {v} == near[v] - {u} and near[u]]


def without_twins(num_nodes, num_more, seed):
    """Return a random graph in which every node has a tail of its own length, so that no two are alike."""
    graph = nx.Graph(connected_random(num_nodes, num_more, seed).t().tolist())
    for u, _ in twin_pairs(graph):
        if len(graph[u]) and not any(v >= num_nodes for v in graph[u]):
            graph.add_edges_from([(u, len(graph)), (len(graph), len(graph) + 1)])
    assert not twin_pairs(graph)
    return edges(nx.Graph(sorted(graph.edges)))


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("dim", [1, 2, 3, 9])
def test_equals_a_dense_eigen_decomposition_up_to_sign(seed, dim):
    size = (24, 30, 60, 100, 140, 200, 260, 400)[seed]  # both sides of what is solved directly
    edge_index, num_nodes = without_twins(size, size // 2 + seed * size // 4, seed)
    values, expected = dense(edge_index, num_nodes, dim)
    assert (np.diff(values[: dim + 1]) > 1e-5).all()  # the axes are unique
    found = Spectral(dim=dim).embed(edge_index, num_nodes).numpy()
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-7 * np.abs(expected).max())


def test_each_node_is_the_mean_of_its_neighbors_divided_by_the_eigenvalue():
    edge_index = connected_random(300, 200, seed=3)
    graph = nx.Graph(edge_index.t().tolist())
    found = Spectral(dim=3).embed(edge_index, 300).numpy()
    means = np.array([found[list(graph[v])].mean(axis=0) for v in range(300)])
    ratio = (means * found).sum(axis=0) / (found**2).sum(axis=0)
    assert (np.diff(ratio) < 0).all()
    np.testing.assert_allclose(means, ratio * found, atol=1e-6 * np.abs(found).max())
    degree = np.array([graph.degree(v) for v in range(300)])
    np.testing.assert_allclose(degree @ found, 0, atol=1e-4)
    np.testing.assert_allclose(degree @ found**2 / degree.sum(), 1 / (1 - ratio), rtol=1e-6)


def test_with_all_axes_squared_distances_are_commute_times():
    edge_index, num_nodes = without_twins(20, 15, seed=1)
    pos = Spectral(dim=num_nodes - 1).embed(edge_index, num_nodes)
    laplacian = nx.laplacian_matrix(nx.Graph(edge_index.t().tolist()), range(num_nodes)).toarray()
    inverse = np.linalg.pinv(laplacian.astype(float))
    resistance = np.diag(inverse)[:, None] + np.diag(inverse) - 2 * inverse
    num_pairs = np.trace(laplacian)
    np.testing.assert_allclose(torch.cdist(pos, pos).numpy() ** 2, num_pairs * resistance, atol=1e-4)


@pytest.mark.parametrize("num_nodes", [4, 5, 40, 500])
def test_a_path_is_a_cosine(num_nodes):
    found = Spectral(dim=2).embed(path(num_nodes), num_nodes).numpy()
    angle = np.pi * np.arange(num_nodes) / (num_nodes - 1)
    for k in (1, 2):
        value = 1 - np.cos(np.pi * k / (num_nodes - 1))
        expected = np.sqrt(2 / value) * np.cos(k * angle)
        np.testing.assert_allclose(np.abs(found[:, k - 1]), np.abs(expected), atol=1e-4 * num_nodes**0.5)
    assert found[0, 0] == pytest.approx(np.sqrt(2) / np.sqrt(1 - np.cos(np.pi / (num_nodes - 1))), rel=1e-6)


@pytest.mark.parametrize("num_nodes", [5, 30, 300])
def test_a_ring_is_a_circle(num_nodes):
    found = embed(nx.cycle_graph(num_nodes))
    radius = np.sqrt(2 / (1 - np.cos(2 * np.pi / num_nodes)))
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), radius, rtol=1e-6)
    steps = np.linalg.norm(found - np.roll(found, 1, axis=0), axis=1)
    np.testing.assert_allclose(steps, 2 * radius * np.sin(np.pi / num_nodes), rtol=1e-5)


def test_a_square_grid_keeps_its_symmetry():
    side = 15
    found = embed(nx.grid_2d_graph(side, side)).reshape(side, side, 2)
    for other in (np.rot90(found), found.transpose(1, 0, 2), found[::-1]):
        turn, *_ = np.linalg.lstsq(found.reshape(-1, 2), other.reshape(-1, 2), rcond=None)
        np.testing.assert_allclose(found.reshape(-1, 2) @ turn, other.reshape(-1, 2), atol=1e-6)
        np.testing.assert_allclose(turn.T @ turn, np.eye(2), atol=1e-6)


@pytest.mark.parametrize("dim", [2, 12])
def test_an_eigenvalue_of_higher_multiplicity_than_the_block_has_vectors(dim):
    graph = nx.hypercube_graph(9)  # 512 nodes, the eigenvalue 1 - 2/9 nine times
    found = embed(graph, dim)[:, : min(dim, 9)]
    assert found.std(axis=0) == pytest.approx(np.sqrt(9 / 2), rel=1e-6)
    centered = found - found.mean(axis=0)
    np.testing.assert_allclose(centered.T @ centered / 512, np.eye(found.shape[1]) * 9 / 2, atol=1e-5)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [10, 60, 300])
def test_twins_coincide_exactly_and_nobody_else_by_chance(seed, size):
    graph = nx.Graph(connected_random(size, size, seed).t().tolist())
    for k, u in enumerate(range(0, size, 5)):  # a second one of every fifth node, linked to it or not
        graph.add_edges_from([(len(graph), v) for v in list(graph[u])] + [(u, len(graph))] * (k % 2))
    edge_index, num_nodes = edges(nx.Graph(sorted(graph.edges)))
    found = Spectral().embed(edge_index, num_nodes)
    graph = nx.Graph(edge_index.t().tolist())
    pairs = twin_pairs(graph)
    assert len(pairs) > size // 8
    for u, v in pairs:
        assert torch.equal(found[u], found[v])


def test_a_large_star_has_two_places():
    found = Spectral().embed(star(20_000), 20_001)
    assert len(found.unique(dim=0)) == 2
    assert (found[1:] == found[1]).all()
    assert float((found[0] - found[1]).norm()) == pytest.approx(np.sqrt(2))


@pytest.mark.parametrize("num_nodes", [1, 2, 3, 50])
def test_a_complete_graph_is_one_place(num_nodes):
    assert embed(nx.complete_graph(num_nodes)).tolist() == [[0.0, 0.0]] * num_nodes


def test_axes_that_do_not_exist_are_zero():
    found = Spectral(dim=9).embed(path(4), 4)
    assert (found[:, 3:] == 0).all()
    assert (found[:, :3].abs().amax(dim=0) > 0.5).all()


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("num_nodes", "more"), [(20, 10), (100, 80), (500, 700)])
def test_renumbering_the_nodes_renumbers_the_positions(seed, num_nodes, more):
    edge_index = connected_random(num_nodes, more, seed)
    order = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(seed))
    expected = Spectral().embed(edge_index, num_nodes)
    found = Spectral().embed(order[edge_index], num_nodes)
    scale = float(expected.abs().max())
    torch.testing.assert_close(found[order], expected, rtol=0, atol=1e-6 * scale)


def test_the_longer_tail_points_up():
    found = Spectral(dim=3).embed(connected_random(200, 150, seed=5), 200)
    assert ((found**3).sum(dim=0) > 0).all()


def test_components_keep_their_shape_and_lie_apart():
    one, two = connected_random(40, 30, seed=1), connected_random(25, 10, seed=2)
    together = torch.cat([two + 3, one + 30, path(4) + 75], dim=1)
    found = Spectral().embed(together, 80)
    alone = Spectral().embed(one, 40), Spectral().embed(two, 25)
    torch.testing.assert_close(found[30:70], alone[0], rtol=0, atol=1e-7)
    moved = found[3:28] - found[3]
    torch.testing.assert_close(moved, alone[1] - alone[1][0], rtol=0, atol=1e-6)
    parts = [found[30:70], found[3:28], found[75:79], *(found[[v]] for v in (0, 1, 2, 70, 74, 79))]
    longest = max(float(torch.cdist(part, part).max()) for part in parts)
    for i, left in enumerate(parts):
        for right in parts[:i]:
            assert float(torch.cdist(left, right).min()) > longest


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_no_edges(dim):
    found = Spectral(dim=dim).embed(no_edges(), 30)
    assert len(found.unique(dim=0)) == 30


def test_equal_small_components_are_embedded_once(monkeypatch):
    calls = []
    solve = _spectral_axes._solve
    monkeypatch.setattr(_spectral_axes, "_solve", lambda walk: calls.append(1) or solve(walk))
    pieces = [path(5) + 5 * k for k in range(300)] + [star(3) + 1500 + 4 * k for k in range(300)]
    found = Spectral().embed(torch.cat(pieces, dim=1), 2700)
    assert len(calls) == 2
    shape = found[:1500].view(300, 5, 2) - found[:1500:5, None]
    assert (shape == shape[0]).all()


def test_small_components_that_differ_in_their_twins_only_are_told_apart():
    lopsided = torch.tensor([[0, 0, 0, 1, 1], [1, 2, 3, 4, 5]])  # two and two leaves
    other = torch.tensor([[0, 0, 0, 0, 1], [1, 2, 3, 4, 5]]) + 6  # three leaves and one
    found = Spectral().embed(torch.cat([lopsided, other], dim=1), 12)
    for nodes, edge_index in ((range(6), lopsided), (range(6, 12), other - 6)):
        alone = Spectral().embed(edge_index, 6)
        part = found[list(nodes)]
        torch.testing.assert_close(part - part[0], alone - alone[0], rtol=0, atol=1e-6)


def test_sums_do_not_depend_on_the_number_of_pieces_at_work():
    random = np.random.default_rng(0)
    left, right = random.standard_normal((2, 2, 40_000, 8))
    weight = random.random(40_000)
    expected = np.einsum("anb,n,cnd->abcd", left, weight, right).reshape(16, 16)
    np.testing.assert_allclose(_spectral_kernels.inner(left, right, weight), expected, atol=1e-9)
    turn = random.standard_normal((16, 16))
    turned = left.copy()
    _spectral_kernels.turn_vectors(turned, turn)
    expected = left.transpose(1, 0, 2).reshape(-1, 16) @ turn
    np.testing.assert_allclose(turned.transpose(1, 0, 2).reshape(-1, 16), expected, atol=1e-12)


def several():
    # More than one piece of rows, so that threads have something to share.
    return torch.cat([connected_random(20_000, 60_000, seed=0), connected_random(300, 100, 1) + 20_000], 1)


def sha256_of_positions():
    return hashlib.sha256(Spectral().embed(several(), 20_400).numpy().tobytes()).hexdigest()


def test_same_bytes_with_any_number_of_threads_and_in_every_process():
    before = torch.get_num_threads()
    found = set()
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        with threadpoolctl.threadpool_limits(threads):
            found.add(sha256_of_positions())
    torch.set_num_threads(before)
    here = os.path.dirname(__file__)
    code = f"import sys; sys.path[:0] = [{here!r}, {os.path.dirname(here)!r}]\n"
    code += "import test_spectral; print(test_spectral.sha256_of_positions())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found.add(done.stdout.strip())
    assert len(found) == 1


class Stop(Exception):
    pass


def test_a_stopped_run_goes_on_to_the_same_bytes(tmp_path):
    edge_index = torch.cat([path(700), path(500) + 700], dim=1)
    expected = embed_cached(Spectral(), edge_index, 1200, tmp_path / "other")
    steps = []

    def stop_after(count):
        def on_step(stage, done, total):
            assert (stage, total) == ("axes", 100)
            assert 0 <= done <= 100
            steps.append(done)
            if len(steps) == count:
                raise Stop

        return on_step

    with pytest.raises(Stop):
        embed_cached(Spectral(), edge_index, 1200, tmp_path, on_step=stop_after(4))
    so_far = len(steps)
    assert torch.equal(embed_cached(Spectral(), edge_index, 1200, tmp_path, on_step=stop_after(0)), expected)
    whole = len(steps) - so_far
    steps.clear()
    Spectral().embed(edge_index, 1200, Progress(stop_after(0)))
    assert whole < len(steps)  # it did not begin again


def test_axes_that_do_not_settle_are_taken_with_a_warning(monkeypatch):
    monkeypatch.setattr(_spectral_axes, "MOST_WORK", 0)
    with pytest.warns(UserWarning, match=r"axes of 3000 nodes have not settled.*The same graph"):
        found = Spectral().embed(connected_random(3000, 9000, seed=0), 3000)
    assert found.isfinite().all()


def test_wrong_dim():
    with pytest.raises(ValueError, match=r"Spectral needs at least one axis, got dim=0"):
        Spectral(dim=0)


def test_ids_out_of_range_are_refused_before_any_kernel():
    with pytest.raises(ValueError, match=r"ids from 0 to 2, got 1 -> 7"):
        Spectral().embed(torch.tensor([[0, 1], [1, 7]]), 3)


@pytest.mark.slow
def test_a_hundred_thousand_small_components_take_seconds():
    import time

    random = np.random.default_rng(0)
    base = 5 * np.arange(100_000)
    pieces = [np.stack([base + k, base + random.integers(0, k, len(base))]) for k in range(1, 5)]
    begin = time.process_time()
    found = Spectral().embed(torch.from_numpy(np.concatenate(pieces, axis=1)), 500_000)
    assert time.process_time() - begin < 30
    assert found.isfinite().all()


def test_a_stop_in_the_second_component_does_not_start_it_again(tmp_path, monkeypatch):
    monkeypatch.setattr(_progress, "SAVE_EVERY", 0.0)
    both = torch.cat([connected_random(600, 100, seed=0), connected_random(500, 100, seed=1) + 600], dim=1)
    steps, limit = [], [0]

    def on_step(stage, done, total):
        steps.append(done)
        if len(steps) == limit[0]:
            raise KeyboardInterrupt

    whole = embed_cached(Spectral(), both, 1100, tmp_path / "whole", on_step=on_step)
    first, total = steps.index(100) + 1, len(steps)
    assert total - first > 3
    limit[0] = total - 1  # late in the second component
    steps.clear()
    with pytest.raises(KeyboardInterrupt):
        embed_cached(Spectral(), both, 1100, tmp_path, on_step=on_step)
    limit[0] = 0
    steps.clear()
    assert torch.equal(embed_cached(Spectral(), both, 1100, tmp_path, on_step=on_step), whole)
    assert len(steps) <= first + 3
