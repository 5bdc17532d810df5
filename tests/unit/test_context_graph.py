"""The steps of a walk against the formulas of the original, written for nodes and all pairs of them."""

import numpy as np
import pytest

from geomgcn.embeddings._context_graph import ISOLATED
from graphs import connected_random, star, undirected
from struc2vec_plain import graph_of_walks, plain_distances

GRAPHS = {
    "random": (connected_random(24, 6, seed=3), 24),
    "with isolated nodes": (connected_random(12, 3, seed=1), 15),
    "two components": (undirected((0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 6)), 7),
    "star": (star(6), 7),
}


@pytest.mark.parametrize("layers", [0, 2, None])
@pytest.mark.parametrize("name", GRAPHS)
def test_steps_of_all_pairs_follow_the_formulas(name, layers):
    edges, num_nodes = GRAPHS[name]
    found, graph = graph_of_walks(edges, num_nodes, layers, candidates=num_nodes)
    f = plain_distances(edges, num_nodes, layers, ISOLATED)
    nodes = np.argsort(found.role, kind="stable")  # ours are numbered by role
    f = f[:, nodes][:, :, nodes]
    weight = np.exp(-f)
    for k in range(len(f)):
        np.fill_diagonal(weight[k], 0.0)
    exists = np.isfinite(f) & ~np.eye(num_nodes, dtype=bool)
    for k in range(len(f)):
        average = weight[k][exists[k]].mean() if exists[k].any() else 0.0
        for u in range(num_nodes):
            own = graph.member[k, graph.role[u]]
            row = slice(graph.indptr[own], graph.indptr[own + 1])
            if not exists[k, u].any():
                assert row.start == row.stop
                continue
            share = np.diff(graph.reach[row], prepend=0.0)
            chance = np.zeros(num_nodes)
            for there, part in zip(graph.indices[row], share, strict=True):
                block = np.arange(graph.first[there], graph.first[there] + graph.size[there])
                block = block[block != u]
                chance[block] += part / len(block)
            np.testing.assert_allclose(chance, weight[k, u] / weight[k, u].sum(), atol=2e-6)
            above = k + 1 < len(f) and exists[k + 1, u].any()
            odds = np.log((weight[k, u][exists[k, u]] > average * (1 + 1e-12)).sum() + np.e)
            expected = (odds / (odds + 1) if k else 1.0) if above else 0.0
            assert graph.up[k, graph.role[u]] == pytest.approx(expected, abs=1e-6)


def test_weights_too_small_for_floats_still_have_shares():
    """A hub of 3000 and one of 2000 are e^-1000 and less from everyone else."""
    edges = undirected(*((0, i) for i in range(2, 3002)), *((1, i) for i in range(3002, 5002)))
    _, graph = graph_of_walks(edges, 5002, layers=2, candidates=5002)
    assert np.isfinite(graph.reach).all()
    assert (graph.reach[graph.indptr[1:][np.diff(graph.indptr) > 0] - 1] == 1).all()


def test_candidates_are_few_and_near():
    edges = connected_random(400, 300, seed=0)
    found, graph = graph_of_walks(edges, 400, layers=2, candidates=5)
    degree = found.degree[found.kinds[found.indptr[found.rings[:, 0]]]]
    last = graph.member[-1]
    pairs = [
        (degree[c], degree[graph.indices[e] - last[0]])
        for c in range(len(last))
        for e in range(graph.indptr[last[c]], graph.indptr[last[c] + 1])
    ]
    assert 5 * len(last) <= len(pairs) <= 10 * len(last) + (np.bincount(found.role) > 1).sum()
    apart = np.abs(np.log(np.array(pairs)[:, 0] / np.array(pairs)[:, 1])).mean()
    assert apart < 0.4 * np.abs(np.log(degree[:, None] / degree[None])).mean()
