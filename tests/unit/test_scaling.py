import itertools

import networkx as nx
import numpy as np
import pytest

from geomgcn.embeddings import _kernels, _scaling


def hops(graph):
    adjacency = nx.to_scipy_sparse_array(graph, format="csr")
    return _kernels.all_hop_distances(adjacency.indptr, adjacency.indices)


def times(distances):
    """Return the product that is asked for, from the whole matrix."""
    return lambda rows: rows @ distances.astype(float) ** 2


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
    distances = hops(GRAPHS[name])
    values, axes = _scaling.leading_axes(times(distances), len(distances), dim)
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-12 * expected[0])
    np.testing.assert_allclose(axes @ axes.T, np.eye(len(values)), atol=1e-12)
    np.testing.assert_allclose(axes @ matrix, values[:, None] * axes, atol=1e-11 * expected[0])


def test_restarts_do_not_change_the_axes(monkeypatch):
    distances = hops(GRAPHS["scale-free"])
    values, axes = _scaling.leading_axes(times(distances), 200, 2)
    monkeypatch.setattr(_scaling, "BASIS_BLOCKS", 5)
    sizes = []
    again, others = _scaling.leading_axes(
        times(distances), 200, 2, on_product=lambda search: sizes.append(search.size)
    )
    assert len(sizes) > 5
    assert max(sizes) <= 20
    np.testing.assert_allclose(again, values, rtol=1e-12)
    np.testing.assert_allclose(np.abs((axes * others).sum(axis=1)), 1.0, atol=1e-12)


@pytest.mark.parametrize("width", [4, 8, 16])
def test_a_wider_block_finds_the_same_axes_in_fewer_products(width):
    distances = hops(GRAPHS["scale-free"])
    expected, straight = _scaling.leading_axes(times(distances), 200, 2)
    products = []
    values, axes = _scaling.leading_axes(
        times(distances), 200, 2, width=width, on_product=lambda search: products.append(search.products)
    )
    np.testing.assert_allclose(values, expected, rtol=1e-12)
    np.testing.assert_allclose(np.abs((axes * straight).sum(axis=1)), 1.0, atol=1e-12)
    assert len(products) <= {4: 20, 8: 14, 16: 11}[width]


@pytest.mark.parametrize("stop", [1, 3, 6])
def test_a_search_goes_on_from_its_state_to_the_same_bytes(stop):
    distances = hops(GRAPHS["scale-free"])
    states = []
    expected = _scaling.leading_axes(
        times(distances),
        200,
        2,
        on_product=lambda s: states.append({k: v.copy() for k, v in s.state().items()}),
    )
    found = _scaling.leading_axes(times(distances), 200, 2, kept=states[stop - 1])
    assert [a.tobytes() for a in found] == [a.tobytes() for a in expected]


def test_improved_axes_come_nearer_with_every_product():
    distances = hops(GRAPHS["scale-free"])
    _, exact = _scaling.leading_axes(times(distances), 200, 2)
    start = _scaling.random_start(8, 200)
    errors = []
    for products in range(1, 8):
        values, axes = _scaling.improved_axes(times(distances), start, 2, products)
        np.testing.assert_allclose(axes @ axes.T, np.eye(2), atol=1e-12)
        errors.append(np.linalg.norm(axes - (axes @ exact.T) @ exact))
        assert (np.diff(values) <= 0).all()
    assert all(later < 0.7 * sooner for sooner, later in itertools.pairwise(errors))


def test_axes_that_do_not_settle(monkeypatch):
    monkeypatch.setattr(_scaling, "MAX_PRODUCTS", 2)
    with pytest.raises(RuntimeError, match=r"200 nodes did not settle in 2 steps.*Choose another dim"):
        _scaling.leading_axes(times(hops(GRAPHS["scale-free"])), 200, 2)


@pytest.mark.parametrize("num_nodes", [0, 1])
def test_too_few_nodes_for_an_axis(num_nodes):
    values, axes = _scaling.leading_axes(times(np.zeros((num_nodes, num_nodes))), num_nodes, 2)
    assert (values.shape, axes.shape) == ((0,), (0, num_nodes))


def test_tied_axes_are_chosen_by_the_anchors_not_by_rounding():
    distances = hops(GRAPHS["ring"])
    _, axes = _scaling.leading_axes(times(distances), 30, 2)
    nodes = 2 * np.pi * np.arange(30) / 30
    plane = np.stack([np.cos(nodes), np.sin(nodes)]) / np.sqrt(15)
    first = _scaling.random_start(4, 30)[0]
    shadow = (plane @ first) @ plane
    np.testing.assert_allclose(axes[0], shadow / np.linalg.norm(shadow), atol=1e-12)
