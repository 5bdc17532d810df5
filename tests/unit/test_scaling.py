import networkx as nx
import numpy as np
import pytest

from geomgcn.embeddings import _kernels, _scaling


def hops(graph):
    adjacency = nx.to_scipy_sparse_array(graph, format="csr")
    return _kernels.all_hop_distances(adjacency.indptr, adjacency.indices)


def centered(distances):
    squares = distances.astype(float) ** 2
    return -0.5 * (squares - squares.mean(0) - squares.mean(1)[:, None] + squares.mean())


GRAPHS = {
    "pair": nx.path_graph(2),
    "path": nx.path_graph(40),
    "ring": nx.cycle_graph(30),
    "even ring of 4": nx.cycle_graph(4),
    "grid": nx.grid_2d_graph(7, 7),
    "complete": nx.complete_graph(20),
    "star": nx.star_graph(20),
    "tree": nx.balanced_tree(3, 4),
    "scale-free": nx.barabasi_albert_graph(200, 2, seed=1),
    "small world": nx.connected_watts_strogatz_graph(150, 6, 0.1, seed=1),
    "dense": nx.gnp_random_graph(300, 0.2, seed=1),
    "clique with a tail": nx.lollipop_graph(10, 5),
}


@pytest.mark.parametrize("name", GRAPHS)
@pytest.mark.parametrize("dim", [1, 2, 3, 6])
def test_axes_are_the_leading_eigenvectors(name, dim):
    matrix = centered(hops(GRAPHS[name]))
    expected = np.linalg.eigvalsh(matrix)[::-1][:dim]
    expected = expected[expected > 1e-9 * expected[0]]
    values, axes = _scaling.leading_axes(hops(GRAPHS[name]), dim)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12 * expected[0])
    np.testing.assert_allclose(axes @ axes.T, np.eye(len(values)), atol=1e-12)
    np.testing.assert_allclose(axes @ matrix, values[:, None] * axes, atol=1e-11 * expected[0])


def test_restarts_do_not_change_the_axes(monkeypatch):
    distances = hops(GRAPHS["scale-free"])
    values, axes = _scaling.leading_axes(distances, 2)
    products = []
    multiply = _scaling.squared_product
    monkeypatch.setattr(_scaling, "BASIS_BLOCKS", 5)
    monkeypatch.setattr(_scaling, "squared_product", lambda *a: products.append(1) or multiply(*a))
    again, others = _scaling.leading_axes(distances, 2)
    assert len(products) > 5
    np.testing.assert_allclose(again, values, rtol=1e-12)
    np.testing.assert_allclose(np.abs((axes * others).sum(axis=1)), 1.0, atol=1e-12)


def test_axes_that_do_not_settle(monkeypatch):
    monkeypatch.setattr(_scaling, "MAX_PRODUCTS", 2)
    with pytest.raises(RuntimeError, match=r"200 nodes did not settle in 2 steps.*Choose another dim"):
        _scaling.leading_axes(hops(GRAPHS["scale-free"]), 2)


@pytest.mark.parametrize("num_nodes", [0, 1])
def test_too_few_nodes_for_an_axis(num_nodes):
    values, axes = _scaling.leading_axes(np.zeros((num_nodes, num_nodes), np.uint8), 2)
    assert (values.shape, axes.shape) == ((0,), (0, num_nodes))


def test_tied_axes_are_chosen_by_the_anchors_not_by_rounding():
    distances = hops(GRAPHS["ring"])
    _, axes = _scaling.leading_axes(distances, 2)
    nodes = 2 * np.pi * np.arange(30) / 30
    plane = np.stack([np.cos(nodes), np.sin(nodes)]) / np.sqrt(15)
    first = _scaling._anchors(4, 30)[0]
    shadow = (plane @ first) @ plane
    np.testing.assert_allclose(axes[0], shadow / np.linalg.norm(shadow), atol=1e-12)
