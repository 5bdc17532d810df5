"""Small components go a compiled way of their own, which gives what the straight one does."""

import networkx as nx
import numpy as np
import pytest

from geomgcn._progress import Progress
from geomgcn.embeddings._components import Components
from geomgcn.embeddings._connected import Graph, Watch, exact
from geomgcn.embeddings._small import SMALL, small_parts


def rows(graph):
    adjacency = nx.to_scipy_sparse_array(graph, nodelist=range(len(graph)), format="csr", dtype=float)
    adjacency.sort_indices()
    return adjacency.indptr, adjacency.indices, adjacency.data


def both_ways(graph, dim, lengths=False):
    indptr, indices, data = rows(graph)
    data = data if lengths else None
    straight, diameter = exact(Graph(indptr, indices, data), dim, Watch(Progress()))
    _, found, diameters = small_parts(Components.of(indptr, indices), indptr, indices, data, dim)
    assert diameters[0] == pytest.approx(diameter, rel=1e-9)
    return found, straight


NAMED = {
    "pair": nx.path_graph(2),
    "path of three": nx.path_graph(3),
    "path": nx.path_graph(17),
    "square": nx.cycle_graph(4),
    "ring": nx.cycle_graph(15),
    "triangle": nx.complete_graph(3),
    "complete": nx.complete_graph(SMALL),
    "star of three": nx.star_graph(3),
    "star": nx.star_graph(SMALL - 1),
    "two classes": nx.complete_bipartite_graph(3, 4),
    "cube": nx.convert_node_labels_to_integers(nx.hypercube_graph(3)),
    "tree": nx.balanced_tree(2, 3),
    "clique with a tail": nx.lollipop_graph(6, 5),
    "fork": nx.Graph([(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 6), (5, 7)]),
    "Petersen": nx.petersen_graph(),
}


@pytest.mark.parametrize("name", NAMED)
@pytest.mark.parametrize("dim", [1, 2, 3, 5])
def test_named_graphs(name, dim):
    found, straight = both_ways(NAMED[name], dim)
    np.testing.assert_allclose(found, straight, atol=1e-7)


@pytest.mark.parametrize("dim", [1, 2, 4])
@pytest.mark.parametrize("lengths", [False, True])
def test_random_graphs(dim, lengths):
    for seed in range(60):
        random = np.random.default_rng(seed)
        size = int(random.integers(2, SMALL + 1))
        graph = nx.empty_graph(size)
        graph.add_edges_from((v, int(random.integers(v))) for v in range(1, size))
        graph.add_edges_from(random.integers(0, size, (int(random.integers(size)), 2)).tolist())
        graph.remove_edges_from(nx.selfloop_edges(graph))
        for _, _, data in graph.edges(data=True):
            data["weight"] = random.uniform(0.1, 1.0) if lengths else 1.0
        found, straight = both_ways(graph, dim, lengths)
        # Two numbers that nearly are zero have any sign, so one axis may be turned.
        signs = np.where((found * straight).sum(axis=0) < 0, -1, 1)
        np.testing.assert_allclose(found, straight * signs, atol=1e-5, err_msg=str(seed))


def test_only_small_components_go_this_way():
    sizes = (SMALL + 1, SMALL, 5, 1, 1)
    indptr, indices, _ = rows(nx.disjoint_union_all([nx.path_graph(size) for size in sizes]))
    first, pos, diameter = small_parts(Components.of(indptr, indices), indptr, indices, None, dim=2)
    assert first == 1
    assert pos.shape == (SMALL + 7, 2)
    assert diameter.tolist() == [SMALL - 1, 4, 0, 0]
    assert not pos[-2:].any()
