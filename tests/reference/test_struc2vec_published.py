"""Struc2Vec with its default settings on the graphs of the original's Section 4.1."""

import networkx as nx
import numpy as np
import pytest
import torch

from geomgcn.datasets import load
from geomgcn.embeddings import Struc2Vec

pytestmark = pytest.mark.reference

SEEDS = range(4)


def graph_of(name: str) -> tuple[torch.Tensor, nx.Graph]:
    data = load(name)
    return data.edge_index, nx.Graph(data.edge_index.t().tolist())


def mirror_images() -> np.ndarray:
    """The 34 pairs of nodes that trade places when the two copies of the karate club do."""
    _, graph = graph_of("karate-mirrored")
    (bridge,) = (
        edge
        for edge in nx.bridges(graph)
        if {len(c) for c in nx.connected_components(nx.restricted_view(graph, [], [edge]))} == {34}
    )
    nx.set_node_attributes(graph, {node: node in bridge for node in graph}, "end")
    apart = nx.restricted_view(graph, [], [bridge])
    one, other = (apart.subgraph(nodes) for nodes in nx.connected_components(apart))
    matcher = nx.isomorphism.GraphMatcher(one, other, lambda a, b: a["end"] == b["end"])
    return np.array(sorted(next(matcher.isomorphisms_iter()).items()))


def relative(pos: torch.Tensor, pairs: np.ndarray) -> float:
    """Mean distance of some pairs, as a share of that of all pairs."""
    return float((pos[pairs[:, 0]] - pos[pairs[:, 1]]).norm(dim=1).mean() / torch.pdist(pos).mean())


@pytest.mark.parametrize("seed", SEEDS)
def test_mirror_images_of_the_karate_club_coincide(seed):
    edges, _ = graph_of("karate-mirrored")
    pairs = mirror_images()
    assert pairs.shape == (34, 2)
    assert relative(Struc2Vec(seed=seed).embed(edges, 68), pairs) <= 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_mirror_images_are_near_where_one_edge_is_missing(seed):
    """Without an edge between two hubs of one copy, images have other rings, and no position in common."""
    edges, graph = graph_of("karate-mirrored")
    pairs = mirror_images()
    copy = graph.subgraph(pairs[:, 0])
    cut = set(max(copy.edges, key=lambda edge: graph.degree[edge[0]] * graph.degree[edge[1]]))
    kept = torch.tensor([set(edge) != cut for edge in edges.t().tolist()])
    pos = Struc2Vec(seed=seed).embed(edges[:, kept], 68)
    assert len(torch.unique(pos, dim=0)) > 50
    assert relative(pos, pairs) <= 0.05


@pytest.mark.parametrize("seed", SEEDS)
def test_equal_roles_of_the_barbell_coincide(seed):
    """Two cliques of 10 with a path of 10 between them; ids run from one end to the other."""
    edges, _ = graph_of("barbell")
    pos = Struc2Vec(seed=seed).embed(edges, 30)
    role = np.minimum(np.arange(30), 29 - np.arange(30))
    role[role < 9] = 0  # all of a clique but the node on the path
    pairs = np.array([(u, v) for u in range(30) for v in range(u) if role[u] == role[v]])
    assert relative(pos, pairs) <= 0.05
    others = np.array([(u, v) for u in range(30) for v in range(u) if role[u] != role[v]])
    assert relative(pos, others) > 1
    assert min(float((pos[u] - pos[v]).norm()) for u, v in others) > 0
