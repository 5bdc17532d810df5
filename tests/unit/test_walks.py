import numpy as np
import torch

from geomgcn.embeddings._context_graph import ISOLATED
from geomgcn.embeddings._walks import walk_all
from graphs import connected_random, no_edges, undirected
from struc2vec_plain import graph_of_walks, plain_distances


def test_steps_are_as_frequent_as_their_weights():
    """With layer 0 alone each step goes to another node in proportion to exp(-f_0)."""
    edges, num_nodes = connected_random(12, 3, seed=1), 14
    found, graph = graph_of_walks(edges, num_nodes, 0, num_nodes)
    walks = walk_all(graph, np.random.default_rng(0), per_node=400, length=60)
    assert walks.shape == (400 * num_nodes, 60)
    assert np.array_equal(np.bincount(walks[:, 0]), 400 * np.bincount(found.role))
    weight = np.exp(-plain_distances(edges, num_nodes, 0, ISOLATED)[0])
    np.fill_diagonal(weight, 0.0)
    chance = weight / weight.sum(axis=1, keepdims=True)
    num_roles = len(found.rings)
    expected = np.zeros((num_roles, num_roles))
    np.add.at(expected, (found.role[:, None], found.role[None]), chance)
    expected /= expected.sum(axis=1, keepdims=True)
    seen = np.zeros((num_roles, num_roles))
    np.add.at(seen, (walks[:, :-1].reshape(-1), walks[:, 1:].reshape(-1)), 1)
    number = seen.sum(axis=1, keepdims=True)
    error = np.sqrt(expected * (1 - expected) / number)
    assert (np.abs(seen / number - expected) <= 5 * error + 1e-5).all()


def test_layers_are_visited_as_the_chain_says():
    """The joint law of node and layer, against powers of the chain's matrix."""
    edges, num_nodes = connected_random(10, 3, seed=2), 10
    _, graph = graph_of_walks(edges, num_nodes, None, num_nodes)
    num_layers, num_roles = graph.up.shape
    assert num_roles == num_nodes  # so roles are nodes
    size = num_layers * num_nodes
    move, step = np.zeros((size, size)), np.zeros((size, size))
    for k in range(num_layers):
        for u in range(num_nodes):
            here = k * num_nodes + u
            up = float(graph.up[k, u])
            move[here, here + num_nodes if k + 1 < num_layers else here] += up
            move[here, here - num_nodes if k else here] += 1 - up
            own = graph.member[k, u]
            row = slice(graph.indptr[own], graph.indptr[own + 1])
            for there, part in zip(graph.indices[row], np.diff(graph.reach[row], prepend=0.0), strict=True):
                block = np.arange(graph.first[there], graph.first[there] + graph.size[there])
                block = block[block != u]
                step[here, k * num_nodes + block] = part / len(block)
    present = step.sum(axis=1) > 0
    move[~present] = 0.0
    whole = np.linalg.inv(np.eye(size) - 0.7 * move) @ (0.3 * step)  # any number of moves, then a step
    state = np.zeros(size)
    state[:num_nodes] = 1 / num_nodes
    walks = walk_all(graph, np.random.default_rng(1), per_node=20_000, length=6)
    for place in range(6):
        expected = state.reshape(num_layers, num_nodes).sum(axis=0)
        seen = np.bincount(walks[:, place], minlength=num_nodes) / len(walks)
        np.testing.assert_allclose(seen, expected, atol=5 * np.sqrt(0.25 / len(walks)))
        state = state @ whole


def test_threads_do_not_matter():
    edges, num_nodes = connected_random(200, 80, seed=2), 210
    _, graph = graph_of_walks(edges, num_nodes, 3, 10)
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(walk_all(graph, np.random.default_rng(5), per_node=20, length=30))
    finally:
        torch.set_num_threads(threads)
    assert np.array_equal(*found)
    assert not np.array_equal(found[0], walk_all(graph, np.random.default_rng(6), 20, 30))


def test_nodes_that_are_all_alike():
    for edges, num_nodes in ((no_edges(), 3), (undirected((0, 1), (1, 2), (2, 0)), 3)):
        _, graph = graph_of_walks(edges, num_nodes, None, 5)
        assert (walk_all(graph, np.random.default_rng(0), per_node=4, length=9) == 0).all()
