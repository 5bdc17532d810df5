import numpy as np
import pytest
import torch

from geomgcn._progress import Progress
from geomgcn.datasets import load
from geomgcn.embeddings import Struc2Vec, _struc2vec, embed_cached
from graphs import connected_random, no_edges, path, star, unchecked, undirected

QUICK = {"walks": 2, "length": 20, "epochs": 2}


def spread(pos):
    """Mean distance over all pairs."""
    return float(torch.pdist(pos).mean())


def test_nodes_that_are_alike_coincide_wherever_they_are():
    """Two copies of a graph without any path between them, and two isolated nodes."""
    one = connected_random(30, 10, seed=0)
    pos = Struc2Vec(**QUICK).embed(torch.cat([one, one + 30], dim=1), 62)
    assert torch.equal(pos[:30], pos[30:60])
    assert torch.equal(pos[60], pos[61])
    assert spread(pos) > 0.1


def test_positions_follow_the_surroundings():
    """Two stars joined by a ring: leaves are near to leaves, whichever hub they have."""
    ring = [(i, (i + 1) % 12) for i in range(12)]
    hubs = [(12, i) for i in range(14, 22)] + [(13, i) for i in range(22, 31)]
    edges = undirected(*ring, *hubs, (0, 12), (6, 13))
    for seed in range(3):
        pos = Struc2Vec(seed=seed).embed(edges, 31)
        leaves = pos[14:31]
        assert torch.pdist(leaves).mean() < 0.3 * torch.cdist(leaves, pos[:12]).mean()


def test_the_seed_and_nothing_else_decides():
    edges = connected_random(300, 200, seed=0)
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(Struc2Vec(**QUICK).embed(edges, 300))
    finally:
        torch.set_num_threads(threads)
    assert torch.equal(*found)
    assert torch.equal(Struc2Vec(**QUICK).embed(edges.flip(0).flip(1), 300), found[0])  # the order of edges
    assert not torch.equal(Struc2Vec(**QUICK, seed=1).embed(edges, 300), found[0])


class Stopped(Exception):
    pass


@pytest.mark.parametrize("stage", ["rings", "distances", "walks", "skip-gram"])
def test_a_run_that_was_stopped_goes_on_to_the_same_bytes(stage, tmp_path, monkeypatch):
    monkeypatch.setattr(_struc2vec, "SECONDS_BETWEEN_COPIES", 0.0)
    monkeypatch.setattr(_struc2vec, "PAIRS_PER_PIECE", 50)
    edges = connected_random(700, 200, seed=0)
    embedding = Struc2Vec(walks=3, length=20, epochs=2)
    expected = embedding.embed(edges, 700)

    def stop(name, done, total):
        if name == stage and 2 * done > total:
            raise Stopped

    with pytest.raises(Stopped):
        embed_cached(embedding, edges, 700, tmp_path, on_step=stop)
    seen = []
    found = embed_cached(embedding, edges, 700, tmp_path, on_step=lambda *step: seen.append(step))
    assert torch.equal(found, expected)
    if stage in ("distances", "skip-gram"):
        first = next(done for name, done, _ in seen if name == stage)
        total = next(total for name, _, total in seen if name == stage)
        assert 2 * first > total  # nothing was done twice
    if stage == "skip-gram":
        assert not any(name == "distances" for name, _, _ in seen)


def test_stages_are_reported_to_their_end():
    seen = {}
    Struc2Vec(**QUICK).embed(
        connected_random(300, 50, seed=0), 300, Progress(lambda name, *step: seen.update({name: step}))
    )
    assert list(seen) == ["rings", "distances", "walks", "skip-gram"]
    assert all(done == total for done, total in seen.values())


def test_hogwild_is_as_good():
    data = load("karate")
    leaf, hub = [14, 15, 18, 20, 22], [0, 33]
    for mode in ("deterministic", "hogwild"):
        pos = Struc2Vec(mode=mode).embed(data.edge_index, 34)
        assert pos.isfinite().all()
        assert float(torch.pdist(pos[leaf]).max()) == 0  # they have the same two neighbors
        assert float(torch.cdist(pos[leaf], pos[hub]).min()) > 0.3 * spread(pos)


def test_more_axes():
    edges = connected_random(60, 40, seed=0)
    pos = Struc2Vec(dim=16).embed(edges, 60)
    assert pos.shape == (60, 16)
    singular = np.linalg.svd(pos - pos.mean(0), compute_uv=False)
    assert singular[5] > 0.05 * singular[0]  # and they are used


@pytest.mark.parametrize(
    ("edges", "num_nodes"),
    [
        (no_edges(), 1),
        (no_edges(), 1000),
        (path(2), 2),
        (path(500), 500),
        (star(20_000), 20_001),
        (torch.combinations(torch.arange(200)).t(), 200),
        (torch.cat([path(9), path(9) + 9], dim=1), 20),
        (torch.tensor([[0, 0, 1, 1], [0, 1, 0, 1]]), 3),
    ],
    ids=["one node", "isolated", "edge", "path", "star", "complete", "two components", "loops"],
)
@pytest.mark.parametrize(
    "settings", [{}, {"layers": None, "candidates": 10**6}, {"layers": 0, "candidates": 1}]
)
def test_graphs_to_survive(edges, num_nodes, settings):
    pos = Struc2Vec(**{**QUICK, "walks": 1}, **settings).embed(edges, num_nodes)
    assert pos.shape == (num_nodes, 2)
    assert pos.dtype == torch.float64
    assert pos.isfinite().all()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"walks": 0}, r"walks to be a whole number from 1, got 0\. The default is walks=10\."),
        ({"length": 1}, r"length to be a whole number from 2, got 1\. The default is length=80\."),
        ({"window": 1.5}, r"window to be a whole number from 1, got 1\.5\."),
        ({"negatives": True}, r"negatives to be a whole number from 1, got True\."),
        ({"epochs": 0}, r"epochs to be a whole number from 1, got 0\."),
        ({"layers": -1}, r"layers to be a whole number from 0, got -1\. The default is layers=6\."),
        (
            {"candidates": 0},
            r"candidates to be a whole number from 1, got 0\. .* candidates=None\.",
        ),
        ({"seed": -1}, r"seed to be a whole number from 0, got -1\."),
        ({"mode": "fast"}, r"mode is 'deterministic' or 'hogwild', got 'fast'"),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings, message):
    with unchecked(), pytest.raises(ValueError, match=message):
        Struc2Vec(**settings)
