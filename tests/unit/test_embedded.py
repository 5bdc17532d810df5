"""The generated graph is what its module says."""

import numpy as np
import pytest
import torch
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path

from geomgcn import datasets
from geomgcn.datasets import _embedded
from geomgcn.datasets._embedded import ASSISTANT, embedded_graph
from geomgcn.embeddings import Isomap
from geomgcn.graphs import canonical_edges, components


@pytest.fixture(scope="module")
def data():
    return embedded_graph()


def test_same_seed_gives_the_same_bytes_and_another_seed_another_graph(data):
    again, other = embedded_graph(0), embedded_graph(1)
    for name in ("x", "y", "edge_index"):
        assert data[name].numpy().tobytes() == again[name].numpy().tobytes(), name
        assert not torch.equal(data[name], other[name]), name


def test_edges_run_both_ways_without_loops_or_copies(data):
    canonical, report = canonical_edges(data.edge_index, data.num_nodes)
    assert torch.equal(data.edge_index, canonical)
    assert (report.self_loops, report.duplicates, report.one_way) == (0, 0, 0)


@pytest.mark.parametrize("seed", range(5))
def test_no_edge_joins_likes_and_the_graph_is_in_one_piece(seed):
    graph = embedded_graph(seed)
    source, target = graph.edge_index
    assert not (graph.y[source] == graph.y[target]).any()
    assert components(graph.edge_index, graph.num_nodes).max() == 0
    assert torch.bincount(graph.y).tolist() == [300, 300, 300, 315]


def test_roles_follow_each_other_down_the_tiers(data):
    places = data.y != ASSISTANT
    source, target = data.edge_index[:, places[data.edge_index].all(0)]
    # Growers deal with makers below and traders above, and so on: the roles differ, in both directions.
    assert set(((data.y[source] - data.y[target]) % 3).tolist()) == {1, 2}


def test_assistants_know_their_host_only_and_are_twins(data):
    source, target = data.edge_index
    assistant = data.y == ASSISTANT
    assert torch.bincount(target, minlength=data.num_nodes)[assistant].unique().tolist() == [1]
    host = source[assistant[target]]
    assert not assistant[host].any()
    assert host.unique(return_counts=True)[1].tolist() == [_embedded.ASSISTANTS] * _embedded.HOSTS
    pos = Isomap().embed(data.edge_index, data.num_nodes)
    for who in host.unique()[:5]:
        twins = source[(target == who) & assistant[source]]
        assert len(pos[twins].unique(dim=0)) == 1


def test_most_likes_are_out_of_reach_of_two_layers(data):
    size = (data.num_nodes, data.num_nodes)
    ones = np.ones(data.num_edges)
    hops = shortest_path(coo_array((ones, data.edge_index.numpy()), shape=size).tocsr(), unweighted=True)
    y = data.y.numpy()
    alike = (y[:, None] == y) & ~np.eye(len(y), dtype=bool)
    assert hops[alike].min() == 2
    assert (hops[alike] > 2).mean() > 0.95


def test_words_of_the_own_role_are_more_frequent_but_do_not_tell(data):
    share = torch.stack([data.x[data.y == c].view(-1, 4, 8).mean((0, 2)) for c in range(4)])
    assert torch.equal(share.argmax(1), torch.arange(4))
    assert share.diagonal().numpy() == pytest.approx(np.full(4, _embedded.FREQUENT), abs=0.02)


def test_loading_checks_the_facts(data):
    loaded = datasets.load("embedded")
    assert torch.equal(loaded.x, data.x)
    assert loaded.class_names[ASSISTANT] == "assistant"
    assert loaded.num_file_edges == data.num_edges // 2
