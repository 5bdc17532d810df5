import numpy as np
import pytest
import torch

from geomgcn.datasets import load
from geomgcn.distances import Geodesic
from geomgcn.embeddings import (
    Poincare,
    _poincare,
    _poincare_batched,
    _poincare_kernels,
    embed_cached,
    reconstruction,
)
from geomgcn.graphs import canonical_edges
from graphs import connected_random, no_edges, path, star, unchecked, undirected


def binary_tree(depth):
    return undirected(*((child, (child - 1) // 2) for child in range(1, 2 ** (depth + 1) - 1)))


def rows_of(edges, num_nodes):
    """Compressed rows of canonical edges, and the node of each entry."""
    source, target = edges.numpy()
    indptr = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=num_nodes))])
    return indptr, target.astype(np.int32), source.astype(np.int32)


def random_places(num_nodes, dim, seed, reach=0.97):
    direction = np.random.default_rng(seed).standard_normal((num_nodes, dim))
    direction /= np.linalg.norm(direction, axis=1, keepdims=True)
    return direction * reach * np.random.default_rng(seed + 1).random((num_nodes, 1)) ** 0.5


class Drawn:
    """The kernel's generator, in Python's integers."""

    def __init__(self, state):
        self.state = int(state)

    def below(self, bound):
        mask = 2**64 - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        z ^= z >> 31
        return ((z >> 32) * bound) >> 32


def stepped(pos, edges, order, rate, negatives, state):
    """Do what ``descend`` does with autograd on the loss as it is written, and return positions and loss.

    None where a node is drawn twice for a pair: ``descend`` then steps twice, one after the other.
    """
    pos, num_nodes = torch.from_numpy(pos.copy()), len(pos)
    linked = set(map(tuple, edges.t().tolist()))
    drawn, total = Drawn(state), 0.0
    for entry in order:
        u, v = edges[:, entry].tolist()
        others = []
        for _ in range(negatives):
            for _ in range(_poincare_kernels.TRIES):
                w = drawn.below(num_nodes)
                if w != u and (u, w) not in linked:
                    others.append(w)
                    break
        nodes = [u, v, *others]
        if len(set(nodes)) < len(nodes):
            return None
        places = pos[nodes].clone().requires_grad_()
        distance = Geodesic()(places[1:], places[:1].expand(len(nodes) - 1, -1))
        loss = distance[0] + torch.logsumexp(-distance, 0)
        loss.backward()
        scale = ((1 - places.detach().square().sum(1, keepdim=True)) ** 2) / 4
        for row, node in enumerate(nodes):
            pos[node] = projected(places[row].detach() - rate * scale[row] * places.grad[row])
        total += float(loss.detach())
    return pos.numpy(), total


def projected(place):
    norm = float(place.norm())
    return place * min(1.0, (1 - _poincare_kernels.RIM) / norm)


@pytest.mark.parametrize("dim", [1, 2, 5])
@pytest.mark.parametrize("rate", [0.01, 0.5])
def test_steps_are_those_of_autograd_on_the_loss(dim, rate):
    edges = connected_random(40, 25, seed=dim)
    indptr, indices, source = rows_of(edges, 40)
    compared = 0
    for seed in range(60):
        pos = random_places(40, dim, seed)
        order = np.random.default_rng(seed).permutation(len(indices))[:3].astype(np.int32)
        expected = stepped(pos, edges, order, rate, negatives=3, state=seed)
        if expected is None:
            continue
        state = np.array([seed], np.uint64)
        ours = pos.copy()
        our_loss = _poincare_kernels.descend(ours, indptr, indices, source, order, rate, 3, state)
        np.testing.assert_allclose(ours, expected[0], rtol=1e-9, atol=1e-12)
        assert our_loss == pytest.approx(expected[1], rel=1e-9)
        assert np.abs(ours - pos).max() > 1e-6
        compared += 1
    assert compared > 20


@pytest.mark.parametrize("gap", [0.0, 1e-300, 1e-15, 1e-8])
@pytest.mark.parametrize("norm", [0.0, 0.5, 1 - 1e-5])
def test_steps_stay_finite_at_equal_places_and_at_the_rim(gap, norm):
    pos = np.array([[norm, 0.0], [norm, gap], [0.0, -norm], [-norm, gap]])
    indptr, indices, source = rows_of(path(4), 4)
    order = np.arange(len(indices), dtype=np.int32)
    for rate in (0.1, 10.0):
        _poincare_kernels.descend(pos, indptr, indices, source, order, rate, 2, np.array([0], np.uint64))
        assert np.isfinite(pos).all()
        assert np.linalg.norm(pos, axis=1).max() <= 1 - _poincare_kernels.RIM + 1e-12


def test_negatives_are_no_neighbors():
    """Node 0 is linked to 1 .. 8 and can draw only 9: it alone is pushed away."""
    edges = star(8)
    indptr, indices, source = rows_of(edges, 10)
    pos = random_places(10, 2, seed=3)
    before = pos.copy()
    entry = np.flatnonzero((source == 0) & (indices == 4)).astype(np.int32)
    _poincare_kernels.descend(
        pos, indptr, indices, source, np.repeat(entry, 50), 1e-3, 5, np.array([7], np.uint64)
    )
    moved = set(np.flatnonzero((pos != before).any(axis=1)).tolist())
    assert moved == {0, 4, 9}


def test_a_tree_is_reconstructed_and_its_root_is_in_the_middle():
    edges = binary_tree(6)
    depth = torch.tensor([(i + 1).bit_length() - 1 for i in range(127)])
    for seed in range(3):
        pos = Poincare(epochs=300, seed=seed).embed(edges, 127)
        assert reconstruction(pos, edges, "poincare").mean_average_precision > 0.75
        norm = pos.norm(dim=1)
        assert norm[depth <= 1].mean() < norm[depth == 6].min()  # hierarchy = distance to the origin


def test_more_axes_say_more():
    edges = load("karate").edge_index
    scores = {
        dim: [
            reconstruction(Poincare(dim=dim, seed=seed).embed(edges, 34), edges, "poincare")
            for seed in range(4)
        ]
        for dim in (2, 5)
    }
    assert min(score.mean_average_precision for score in scores[2]) > 0.8
    assert sum(score.mean_rank for score in scores[5]) < sum(score.mean_rank for score in scores[2])
    random = reconstruction(torch.from_numpy(random_places(34, 2, 0)), edges, "poincare")
    assert random.mean_average_precision < 0.4


def test_the_seed_and_nothing_else_decides():
    edges = connected_random(300, 200, seed=0)
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(Poincare(epochs=5).embed(edges, 300))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*found)
    assert torch.equal(Poincare(epochs=5).embed(edges.flip(0).flip(1), 300), found[0])  # the order of edges
    assert not torch.equal(Poincare(epochs=5, seed=1).embed(edges, 300), found[0])


def test_the_other_modes_are_as_good():
    edges = binary_tree(7)
    scores = {}
    for mode in ("deterministic", "hogwild", "batched"):
        pos = Poincare(epochs=200, mode=mode).embed(edges, 255)
        assert (pos.norm(dim=1) < 1).all()
        scores[mode] = reconstruction(pos, edges, "poincare").mean_average_precision
    assert min(scores.values()) > scores["deterministic"] - 0.1


def test_a_node_that_another_thread_has_out_of_the_ball_does_no_harm():
    pos = np.array([[1.2, 0.0], [0.0, -1.0 - 1e-12], [0.3, 0.0], [0.0, 0.9]])
    indptr, indices, source = rows_of(path(4), 4)
    order = np.arange(len(indices), dtype=np.int32)
    _poincare_kernels.descend(pos, indptr, indices, source, order, 3.0, 5, np.array([0], np.uint64))
    assert np.isfinite(pos).all()
    assert np.linalg.norm(pos, axis=1).max() < 1


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_gradients_of_a_batch_are_those_of_autograd_on_the_loss(dim):
    own = torch.from_numpy(random_places(20, dim, seed=dim))
    others = torch.from_numpy(random_places(80, dim, seed=dim + 2)).view(20, 4, dim)
    left_out = torch.rand(20, 4, generator=torch.Generator().manual_seed(dim)) < 0.3
    left_out[:, 0] = False
    ours = _poincare_batched.riemannian_gradients(own, others, left_out)
    places = own.clone().requires_grad_(), others.clone().requires_grad_()
    source, target = places[1].view(-1, dim), places[0].unsqueeze(1).expand(-1, 4, -1).reshape(-1, dim)
    distance = Geodesic()(source, target).view(20, 4)
    nearness = (-distance).masked_fill(left_out, -torch.inf)
    (distance[:, 0] + torch.logsumexp(nearness, 1)).sum().backward()
    for mine, place in zip(ours, places, strict=True):
        scale = ((1 - place.detach().square().sum(-1, keepdim=True)) ** 2) / 4
        torch.testing.assert_close(mine, scale * place.grad, rtol=1e-9, atol=1e-12)


def test_steps_of_a_batch_stay_inside_and_finite():
    rim = 1 - _poincare_kernels.RIM
    own = torch.tensor([[rim, 0.0], [0.0, 0.0], [0.0, rim]], dtype=torch.float64)
    others = torch.stack([own, own.roll(1, 0)], dim=1)  # the first of each is at the same place
    ours, theirs = _poincare_batched.riemannian_gradients(own, others, torch.zeros(3, 2, dtype=torch.bool))
    assert ours.isfinite().all()
    assert theirs.isfinite().all()
    far = _poincare_batched.moved(own, torch.full_like(own, 1e9))
    assert far.norm(dim=1).max() <= rim + 1e-12
    one = _poincare_batched.moved(own[1:2], torch.tensor([[1e9, 0.0]], dtype=torch.float64))
    assert float(one.norm()) == pytest.approx(_poincare_batched.LONGEST_STEP / 2)


def test_a_batch_draws_no_neighbors():
    edges = star(8)
    steps = _poincare_batched.BatchedSteps(random_places(10, 2, 0), edges, negatives=5, seed=0)
    u = torch.zeros(200, dtype=torch.long)
    w, linked = steps._strangers(u, torch.Generator().manual_seed(0))
    assert (w[~linked] == 9).all()
    assert (w[linked] != 9).all()
    # The leaves may draw every node but themselves and the middle.
    w, linked = steps._strangers(torch.full((2000,), 3), torch.Generator().manual_seed(0))
    assert set(w[~linked].tolist()) == {1, 2, 4, 5, 6, 7, 8, 9}


class Stopped(Exception):
    pass


@pytest.mark.parametrize("mode", ["deterministic", "batched"])
def test_a_run_that_is_stopped_goes_on_to_the_same_bytes(mode, tmp_path, monkeypatch):
    monkeypatch.setattr(_poincare, "PIECE", 100)
    edges, embedding = connected_random(100, 80, seed=0), Poincare(epochs=6, mode=mode)
    whole = embedding.embed(edges, 100)
    seen = []

    def stop(stage, done, total):
        seen.append(done)
        if len(seen) in (7, 12):
            raise Stopped

    for _ in range(2):
        with pytest.raises(Stopped):
            embed_cached(embedding, edges, 100, tmp_path, on_step=stop)
        assert [path.name.endswith(".stopped.safetensors") for path in tmp_path.rglob("*.safetensors")] == [
            True
        ]
    assert torch.equal(embed_cached(embedding, edges, 100, tmp_path, on_step=stop), whole)
    assert seen == list(range(1, len(seen) + 1))  # no piece was run twice
    assert [path.name.endswith(".stopped.safetensors") for path in tmp_path.rglob("*.safetensors")] == [False]


@pytest.mark.parametrize(
    ("edges", "num_nodes"),
    [
        (no_edges(), 1),
        (no_edges(), 1000),
        (path(2), 2),
        (path(500), 500),
        (star(20_000), 20_001),
        (torch.combinations(torch.arange(200)).t(), 200),  # no negatives to be found
        (torch.cat([path(9), path(9) + 9], dim=1), 20),
        (torch.tensor([[0, 0, 1, 1], [0, 1, 0, 1]]), 3),
    ],
    ids=["one node", "isolated", "edge", "path", "star", "complete", "two components", "loops"],
)
def test_graphs_to_survive(edges, num_nodes):
    for mode in ("deterministic", "hogwild", "batched"):
        pos = Poincare(epochs=3, mode=mode).embed(edges, num_nodes)
        assert pos.shape == (num_nodes, 2)
        assert pos.isfinite().all()
        assert (pos.norm(dim=1) < 1).all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, r"epochs to be a whole number from 1, got 0\. The default is epochs=100"),
        ({"negatives": 1.5}, r"negatives to be a whole number from 1, got 1\.5\."),
        ({"seed": -1}, r"seed to be a whole number from 0, got -1\."),
        ({"learning_rate": 0.0}, r"learning_rate above 0 and at most 10, got 0\.0\."),
        ({"learning_rate": float("nan")}, r"learning_rate above 0 and at most 10, got nan\."),
        ({"learning_rate": "x"}, r"learning_rate above 0 and at most 10, got 'x'\."),
        ({"epochs": 10**20}, r"epochs to be a whole number up to 2147483647, got 10{20}\."),
        ({"mode": "fast"}, r"mode is 'deterministic', 'hogwild' or 'batched', got 'fast'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with unchecked(), pytest.raises(ValueError, match=message):
        Poincare(**settings)


def test_the_embedded_graph_gets_polar_relations():
    from geomgcn.neighborhoods import StructuralNeighborhood

    data = load("karate")
    edges, _ = canonical_edges(data.edge_index, 34)
    found = StructuralNeighborhood()(Poincare(epochs=20)(data))
    assert found.geometry == "poincare"
    assert found.num_virtual_nodes == 9
    latent = (found.edge_type >= 4) & (found.edge_type < 8)
    assert abs(int(latent.sum()) - edges.size(1)) <= 2
