"""Isomap from landmarks, with lengths of edges, and what a long run says and keeps."""

import hashlib
import warnings

import networkx as nx
import numpy as np
import pytest
import torch
from scipy.sparse import csr_array
from scipy.sparse.csgraph import dijkstra

from geomgcn._progress import Progress
from geomgcn.embeddings import Isomap, _connected, _isomap, embed_cached
from geomgcn.embeddings._landmarks import landmark_axes
from geomgcn.embeddings._lengths import Lengths
from geomgcn.embeddings._products import Hops
from geomgcn.embeddings._twins import find_twins
from geomgcn.graphs import adjacency
from graphs import connected_random, path, star, unchecked


def aligned(found, expected):
    """Return the Procrustes correlation: 1 for positions that are equal up to a motion and a scale."""
    a, b = found - found.mean(0), expected - expected.mean(0)
    return np.linalg.svd(a.T @ b, compute_uv=False).sum() / np.linalg.norm(a) / np.linalg.norm(b)


def rows(edge_index, num_nodes):
    matrix = adjacency(edge_index, num_nodes)
    return matrix.indptr, matrix.indices


def distances_of(edge_index, num_nodes, length):
    entries = (np.asarray(length), tuple(edge_index.numpy()))
    return dijkstra(csr_array(entries, shape=(num_nodes, num_nodes)), directed=False)


def dense(distances, dim):
    squares = distances**2
    matrix = -0.5 * (squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean())
    values, vectors = np.linalg.eigh(matrix)
    return vectors[:, ::-1][:, :dim] * np.sqrt(np.maximum(values[::-1][:dim], 0)), values[::-1]


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("landmarks", [12, 60, 300])
def test_landmarks_on_a_path_are_exact(dim, landmarks):
    found = Isomap(dim=dim, landmarks=landmarks).embed(path(500), 500).numpy()
    np.testing.assert_allclose(found[:, 0], 249.5 - np.arange(500), atol=1e-4)
    assert np.abs(found[:, 1:]).max(initial=0) < 1e-4


def test_landmarks_on_a_line_with_lengths_are_exact():
    length = np.random.default_rng(0).uniform(0.1, 3, 399)
    line = np.stack([np.arange(399), np.arange(1, 400)])
    found = Isomap(dim=1, landmarks=20).embed(torch.from_numpy(line), 400, torch.from_numpy(length))
    places = np.concatenate([[0], np.cumsum(length)])
    assert np.abs(np.abs(np.diff(found.numpy()[:, 0])) - length).max() < 1e-4 * places[-1]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("dim", [2, 3])
def test_all_nodes_as_landmarks_are_exact(seed, dim):
    """The formula too, not only the rule that sends such graphs the exact way."""
    num_nodes = 150
    edges = connected_random(num_nodes, 100, seed)
    expected = Isomap(dim=dim).embed(edges, num_nodes)
    assert torch.equal(Isomap(dim=dim, landmarks=num_nodes).embed(edges, num_nodes), expected)
    found, reach = landmark_axes(Hops(*rows(edges, num_nodes)), dim, num_nodes, [seed])
    found = found[:dim].T
    signs = np.sign((found * expected.numpy()).sum(axis=0))
    np.testing.assert_allclose(found * signs, expected, atol=2e-3 * np.abs(expected.numpy()).max())
    diameter = dijkstra(adjacency(edges, num_nodes), unweighted=True).max()
    assert diameter <= reach <= 2 * diameter


@pytest.mark.parametrize("lengths", [False, True])
def test_refinements_come_to_the_exact_positions(lengths):
    num_nodes = 600
    edges = connected_random(num_nodes, 500, seed=1)
    length = None
    if lengths:
        length = (edges[0] * edges[1]) % 7 + 1.0  # equal in both directions
    expected = Isomap().embed(edges, num_nodes, length).numpy()
    errors = []
    for refinements in (0, 1, 2, 4, 12):
        found = Isomap(landmarks=80, refinements=refinements).embed(edges, num_nodes, length).numpy()
        errors.append(np.abs(found - expected * np.sign((found * expected).sum(0))).max() / np.ptp(expected))
    assert errors[0] < 0.5
    assert errors[1] < 0.25
    assert errors[3] < 1e-3
    assert errors[4] < 1e-6
    assert errors == sorted(errors, reverse=True)


def test_landmarks_are_near_the_exact_positions():
    grid = nx.convert_node_labels_to_integers(nx.grid_2d_graph(40, 20))
    edges = torch.tensor(list(grid.edges)).t()
    expected = Isomap().embed(edges, 800).numpy()
    several = [Isomap(landmarks=40, seed=seed).embed(edges, 800).numpy() for seed in (0, 0, 1)]
    assert several[0].tobytes() == several[1].tobytes()
    assert not np.array_equal(several[0], several[2])
    assert min(aligned(found, expected) for found in several) > 0.998


@pytest.mark.parametrize("dim", [2, 3, 16])
def test_fewest_landmarks_make_no_axis_much_wider_or_narrower(dim):
    for seed in range(5):
        edges = torch.tensor(list(nx.gnm_random_graph(300, 1500, seed=seed).edges)).t()
        expected = np.ptp(Isomap(dim).embed(edges, 300).numpy(), axis=0)
        for choice in range(3):
            found = Isomap(dim, landmarks=4 * dim, seed=choice).embed(edges, 300).numpy()
            assert (np.abs(np.log2(np.ptp(found, axis=0) / expected)) < 1).all()


def test_a_large_component_gets_enough_landmarks_for_all_axes(monkeypatch):
    edges = connected_random(300, 100, seed=6)
    monkeypatch.setattr(_isomap, "EXACT_NODES", 200)
    monkeypatch.setattr(_isomap, "LANDMARKS", 40)
    with pytest.warns(UserWarning, match=r"takes 64 landmarks.*landmarks=64 to agree"):
        found = Isomap(16).embed(edges, 300)
    assert torch.equal(Isomap(16, landmarks=64).embed(edges, 300), found)


def test_each_component_has_its_landmarks_and_small_ones_are_exact():
    parts = [connected_random(400, 100, seed=3), connected_random(150, 50, seed=4), path(40), path(5)]
    starts = np.cumsum([0, 400, 150, 40])
    edges = torch.cat([part + int(start) for part, start in zip(parts, starts, strict=True)], dim=1)
    found = Isomap(landmarks=50).embed(edges, 600).numpy()
    straight = Isomap().embed(edges, 600).numpy()
    for start, stop, least in ((0, 400, 0.95), (400, 550, 0.95), (550, 590, 1 - 1e-9), (590, 595, 1 - 1e-9)):
        assert aligned(found[start:stop], straight[start:stop]) > least
    ends = [(0, 400), (400, 550), (550, 590), (590, 595), *((i, i + 1) for i in range(595, 600))]
    boxes = [(found[a:b].min(0), found[a:b].max(0)) for a, b in ends]
    for i, (low, high) in enumerate(boxes):
        for other, another in boxes[:i]:
            assert np.maximum(low - another, other - high).max() >= 39


def test_twins_coincide_whatever_the_landmarks():
    edges = connected_random(200, 100, seed=5)
    near = edges[1, edges[0] == 17]
    twin = torch.stack([torch.full_like(near, 200), near])
    for more in (twin, torch.cat([twin, torch.tensor([[200], [17]])], dim=1)):
        for seed in range(8):
            found = Isomap(landmarks=80, seed=seed).embed(torch.cat([edges, more], dim=1), 201).numpy()
            assert found[200].tobytes() == found[17].tobytes()


@pytest.mark.parametrize("isomap", [Isomap(), Isomap(landmarks=100), Isomap(landmarks=100, refinements=2)])
def test_a_star_with_many_leaves(isomap):
    found = isomap.embed(star(20_000), 20_001)
    assert found.isfinite().all()
    assert len(torch.unique(found[1:], dim=0)) == 1


def test_a_large_component_takes_landmarks_and_says_so(monkeypatch):
    edges = connected_random(300, 100, seed=6)
    monkeypatch.setattr(_isomap, "EXACT_NODES", 200)
    monkeypatch.setattr(_isomap, "LANDMARKS", 40)
    with pytest.warns(UserWarning, match=r"of 300 nodes takes 40 landmarks.*landmarks=300 to be exact"):
        found = Isomap().embed(edges, 300)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert torch.equal(Isomap(landmarks=40).embed(edges, 300), found)
        monkeypatch.setattr(_isomap, "EXACT_NODES", 300)
        assert torch.equal(Isomap(landmarks=10**6).embed(edges, 300), Isomap().embed(edges, 300))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"landmarks": 0}, r"landmarks to be a whole number from 1, got 0. The default is landmarks=None"),
        ({"landmarks": 7}, r"4 landmarks an axis, which is 8 for dim=2, got landmarks=7.*Pass landmarks=8"),
        (
            {"landmarks": 17, "dim": 16},
            r"64 for dim=16, got landmarks=17.*Pass landmarks=64 or more, or None",
        ),
        ({"landmarks": 10.0}, r"landmarks to be a whole number from 1, got 10.0"),
        ({"refinements": -1}, r"refinements to be a whole number from 0, got -1"),
        ({"seed": True}, r"seed to be a whole number from 0, got True"),
    ],
)
def test_wrong_settings(settings, message):
    with unchecked(), pytest.raises(ValueError, match=message):
        Isomap(**settings)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("dim", [1, 2, 3])
def test_lengths_equal_dijkstra_and_a_dense_decomposition(seed, dim):
    num_nodes = 40 + 60 * seed
    random = np.random.default_rng(seed)
    edges = connected_random(num_nodes, num_nodes // 2, seed)
    edges = edges[:, edges[0] < edges[1]]
    length = random.uniform(0.2, 5, edges.size(1))
    expected, values = dense(distances_of(edges, num_nodes, length), dim)
    assert (np.diff(values[: dim + 1]) < -1e-6 * values[0]).all()
    found = Isomap(dim=dim).embed(edges, num_nodes, torch.from_numpy(length)).numpy()
    signs = np.sign((found * expected).sum(axis=0))
    np.testing.assert_allclose(found, expected * signs, atol=1e-6 * np.ptp(expected))


@pytest.mark.parametrize("scale", [1.0, 4.0, 2.0**-70])
def test_equal_lengths_give_the_positions_of_hops(scale):
    edges = torch.cat([connected_random(300, 150, seed=7), connected_random(20, 9, seed=8) + 300], dim=1)
    straight = Isomap().embed(edges, 330)
    found = Isomap().embed(edges, 330, torch.full((edges.size(1),), scale, dtype=torch.float64)) / scale
    assert (found - straight).abs().max() <= 2.0**-18
    by_landmarks = [
        Isomap(landmarks=50).embed(edges, 330, length) for length in (None, torch.ones(edges.size(1)))
    ]
    assert (by_landmarks[0] - by_landmarks[1]).abs().max() <= 2.0**-17


@pytest.mark.parametrize("factor", [1e-200, 1e-100, 1e100, 1e200])
def test_very_small_and_very_large_lengths(factor):
    edges = connected_random(60, 30, seed=9)
    length = ((edges[0] + edges[1]) % 5 + 1.0).double()
    straight = Isomap().embed(edges, 60, length).numpy()
    found = Isomap().embed(edges, 60, length * factor).numpy()
    assert np.isfinite(found).all()
    assert aligned(found / np.abs(found).max(), straight) > 1 - 1e-9
    if 1e-138 < factor < 1e138:
        np.testing.assert_allclose(found / factor, straight, atol=1e-5)


def test_a_long_edge_beside_short_paths_does_not_matter():
    edges = connected_random(60, 30, seed=10)
    length = torch.ones(edges.size(1), dtype=torch.float64)
    straight = Isomap().embed(edges, 60, length)
    far = torch.cat([edges, torch.tensor([[0, 59], [59, 0]])], dim=1)
    found = Isomap().embed(far, 60, torch.cat([length, torch.full((2,), 1e30, dtype=torch.float64)]))
    assert (found - straight).abs().max() < 1e-5


def test_twins_with_lengths_coincide_only_where_these_are_equal():
    edges = connected_random(100, 80, seed=11)
    edges = edges[:, edges[0] < edges[1]]
    length = np.random.default_rng(0).uniform(0.5, 2, edges.size(1))
    at_17 = (edges == 17).any(dim=0)
    near = edges[:, at_17].sum(dim=0) - 17
    pairs = torch.cat([edges, torch.stack([near, torch.full_like(near, 100)])], dim=1)
    same = torch.from_numpy(np.concatenate([length, length[at_17.numpy()]]))
    found = Isomap().embed(pairs, 101, same).numpy()
    assert found[100].tobytes() == found[17].tobytes()
    same[-1] *= 1.3
    found = Isomap().embed(pairs, 101, same).numpy()
    assert found[100].tobytes() != found[17].tobytes()


def path_with_two_leaves_a_node(num_nodes):
    """Return edges of length 2, and at each node a leaf at 1 and one at 3."""
    inner = torch.arange(num_nodes)
    leaves = [torch.stack([inner, num_nodes + 2 * inner + k]) for k in (0, 1)]
    edges = torch.cat([torch.stack([inner[:-1], inner[1:]]), *leaves], dim=1)
    lengths = torch.tensor([2.0, 1.0, 3.0]).repeat_interleave(
        torch.tensor([num_nodes - 1, num_nodes, num_nodes])
    )
    return edges, lengths


def test_leaves_at_lengths_one_and_three_are_told_apart():
    edges, lengths = path_with_two_leaves_a_node(1000)
    found = Isomap().embed(edges, 3000, edge_length=lengths)
    assert not (found[1000::2] == found[1001::2]).all(dim=1).any()


def twin_classes(edges, num_nodes, length):
    """Return, by comparing all pairs, of each node the first that is its twin: unlinked, then linked ones."""
    matrix = np.zeros((num_nodes, num_nodes))
    matrix[tuple(edges)] = matrix[tuple(edges[::-1])] = length
    first = np.arange(num_nodes), np.arange(num_nodes)
    for b in range(num_nodes):
        for a in range(b):
            others = np.delete(np.arange(num_nodes), [a, b])
            if matrix[a].any() and np.array_equal(matrix[a, others], matrix[b, others]):
                linked = int(matrix[a, b] > 0)
                first[linked][b] = min(first[linked][b], a)
    return first


@pytest.mark.parametrize("seed", range(8))
def test_twins_are_those_of_a_comparison_of_all_pairs(seed):
    random = np.random.default_rng(seed)
    parent = np.array([random.integers(max(1, v // 4)) for v in range(1, 270)])
    edges = np.concatenate([[parent, np.arange(1, 270)], random.integers(250, size=(2, 30))], axis=1)
    edges = np.unique(np.sort(edges[:, edges[0] != edges[1]], axis=0), axis=1)
    length = random.integers(1, 4, edges.shape[1]).astype(float)
    for copy in range(270, 300):  # of any node, linked to it or not, at the same lengths or one other
        node = random.integers(270)
        at = (edges == node).any(axis=0)
        more, lengths = np.stack([edges[:, at].sum(axis=0) - node, np.full(at.sum(), copy)]), length[at]
        lengths[0] += random.integers(2)
        if random.integers(2):
            more = np.concatenate([more, [[node], [copy]]], axis=1)
            lengths = np.append(lengths, 2.0)
        edges, length = np.concatenate([edges, more], axis=1), np.append(length, lengths)
    matrix = csr_array((np.tile(length, 2), np.concatenate([edges, edges[::-1]], axis=1)), shape=(300, 300))
    matrix.sort_indices()
    found = find_twins(matrix.indptr, matrix.indices, matrix.data / 4)
    expected = twin_classes(edges, 300, length)
    for twins, classes in zip(found, expected, strict=True):
        np.testing.assert_array_equal(twins.label, classes)
        sizes = np.bincount(classes, minlength=300)[classes]
        assert sizes.max() > 1
        np.testing.assert_array_equal(twins.apart > 0, sizes > 1)


def digest(threads):
    before = torch.get_num_threads()
    edges = connected_random(1200, 900, seed=12)
    length = ((edges[0] + edges[1]) % 11 + 1.0).double() / 7
    try:
        torch.set_num_threads(threads)
        found = [
            isomap.embed(edges, 1200, given).numpy().tobytes()
            for isomap in (Isomap(), Isomap(landmarks=300), Isomap(landmarks=300, refinements=1))
            for given in (None, length)
        ]
    finally:
        torch.set_num_threads(before)
    return hashlib.sha256(b"".join(found)).hexdigest()


def test_same_bytes_with_any_number_of_threads():
    assert len({digest(threads) for threads in (1, 2, 3)}) == 1


class Stop(Exception):
    pass


@pytest.mark.parametrize("stop", [1, 4, 9])
@pytest.mark.parametrize(
    "isomap", [Isomap(), Isomap(landmarks=30, refinements=12)], ids=["exact", "refinements"]
)
@pytest.mark.parametrize("lengths", [False, True])
def test_a_run_that_was_stopped_goes_on_to_the_same_bytes(tmp_path, monkeypatch, stop, isomap, lengths):
    monkeypatch.setattr(_connected, "KEEP_EVERY", 0.0)
    edges = torch.cat([connected_random(400, 200, seed=13), connected_random(90, 40, seed=14) + 400], dim=1)
    length = ((edges[0] + edges[1]) % 3 + 1.0).double() if lengths else None
    expected = isomap.embed(edges, 500, length)
    products = []

    def on_step(stage, done, total):
        if stage == "axes":
            products.append(done)
            if len(products) == stop:
                raise Stop

    with pytest.raises(Stop):
        embed_cached(isomap, edges, 500, tmp_path, edge_length=length, on_step=on_step)
    before = len(products)
    found = embed_cached(isomap, edges, 500, tmp_path, edge_length=length, on_step=on_step)
    assert found.numpy().tobytes() == expected.numpy().tobytes()
    if stop == 4:
        fresh = []
        isomap.embed(edges, 500, length, Progress(lambda stage, *_: fresh.append(stage)))
        assert len(products) - before < fresh.count("axes")  # it did not start again


def test_stages():
    edges = connected_random(600, 300, seed=15)
    seen = []
    Isomap().embed(edges, 600, progress=Progress(lambda *step: seen.append(step)))
    assert [step for step in seen if step[0] == "distances"] == [("distances", k, 3) for k in (1, 2, 3)]
    assert {stage for stage, _, _ in seen} == {"distances", "axes"}
    seen.clear()
    Isomap(landmarks=300).embed(edges, 600, progress=Progress(lambda *step: seen.append(step)))
    assert seen == [("distances", 1, 2), ("distances", 2, 2), ("triangulation", 1, 1)]


def test_landmarks_of_a_graph_with_lengths():
    edges = connected_random(200, 100, seed=16)
    length = ((edges[0] + edges[1]) % 5 + 1.0).numpy() / 8
    paths = Lengths(*rows(edges, 200), length)
    found, _ = landmark_axes(paths, 2, 200, [0])
    expected, _ = dense(distances_of(edges, 200, length), 2)
    assert aligned(found[:2].T, expected) > 0.9999


@pytest.mark.slow
def test_a_million_nodes():
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(10**6, (2, 10**7), generator=generator)
    found = Isomap(landmarks=200).embed(edges, 10**6)
    assert found.isfinite().all()
    assert found.std(dim=0).min() > 0
