import json
import math

import networkx as nx
import numpy as np
import pytest
import torch

from geomgcn import graphs
from geomgcn.distances import Euclidean, Geodesic, Tangent
from geomgcn.embeddings import Isomap, reconstruction
from geomgcn.latent import latent_neighborhood
from geomgcn.quality import Quality, distances_by_hop, hop_shares, quality
from geomgcn.quality import _hops as hops_module
from geomgcn.quality import _report as report_module
from geomgcn.quality._hops import random_pairs
from geomgcn.quality._sizes import Sizes, size_bins
from graphs import connected_random, no_edges, path, star, undirected


def two_components(seed, num_nodes=40):
    edges = torch.cat(
        [connected_random(num_nodes, num_nodes // 3, seed), connected_random(9, 2, seed) + num_nodes], dim=1
    )
    return edges, num_nodes + 12  # three are isolated


def places(num_nodes, seed, dim=2):
    return 1.3 * torch.rand(num_nodes, dim, generator=torch.Generator().manual_seed(seed)).double() - 0.65


def all_hops(edges, num_nodes):
    graph = nx.empty_graph(num_nodes)
    graph.add_edges_from(edges.t().tolist())
    return {u: dict(found) for u, found in nx.all_pairs_shortest_path_length(graph)}


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("geometry", "distance"), [("euclidean", Euclidean()), ("poincare", Geodesic())])
def test_residual_variance_is_one_minus_the_squared_correlation(seed, geometry, distance):
    edges, num_nodes = two_components(seed)
    pos = places(num_nodes, seed)
    near = all_hops(edges, num_nodes)
    pairs = [(u, v) for u in near for v in near[u] if u != v]
    hops = np.array([near[u][v] for u, v in pairs])
    away = np.array([float(distance(pos[[u]], pos[[v]])) for u, v in pairs])
    found = distances_by_hop(pos, edges, geometry)
    assert found.pairs == len(pairs)
    assert found.residual_variance == pytest.approx(1 - np.corrcoef(hops, away)[0, 1] ** 2)
    for row in found.rows:
        assert row.pairs == (hops == row.hops).sum()
        expected = np.quantile(away[hops == row.hops], [0.1, 0.25, 0.5, 0.75, 0.9])
        np.testing.assert_allclose([row.low, row.lower, row.median, row.upper, row.high], expected)


def test_a_large_graph_is_sampled_and_the_sample_is_near_the_whole(monkeypatch):
    edges = connected_random(1500, 1500, seed=1)
    pos = Isomap().embed(edges, 1500)
    whole = distances_by_hop(pos, edges)
    monkeypatch.setattr(hops_module, "ALL_PAIRS", 100)
    monkeypatch.setattr(hops_module, "TARGETS", 700)
    part = distances_by_hop(pos, edges, seed=3)
    assert 256 * 698 <= part.pairs <= 256 * 700
    assert part.residual_variance == pytest.approx(whole.residual_variance, rel=0.1)
    assert part == distances_by_hop(pos, edges, seed=3)
    assert part != distances_by_hop(pos, edges, seed=4)


@pytest.mark.parametrize("num_nodes", [300, 700])
def test_a_long_path_has_few_rows_and_no_residual(num_nodes):
    found = distances_by_hop(torch.arange(float(num_nodes)).view(-1, 1), path(num_nodes))
    assert found.residual_variance == pytest.approx(0, abs=1e-12)
    assert len(found.rows) <= 24
    assert all(row.low == row.high == row.hops for row in found.rows)
    assert found.pairs == num_nodes * (num_nodes - 1)


@pytest.mark.parametrize("seed", range(6))
def test_hop_shares_equal_a_search(seed):
    edges, num_nodes = two_components(seed, num_nodes=25)
    near = all_hops(edges, num_nodes)
    pairs = torch.randint(num_nodes, (2, 400), generator=torch.Generator().manual_seed(seed))
    pairs = pairs[:, pairs[0] != pairs[1]]
    expected = [near[u].get(v, math.inf) for u, v in pairs.t().tolist()]
    found = hop_shares(pairs, edges, num_nodes)
    count = len(expected)
    assert found.pairs == count
    assert found.one == pytest.approx(expected.count(1) / count)
    assert found.two == pytest.approx(expected.count(2) / count)
    assert found.three == pytest.approx(expected.count(3) / count)
    assert found.unreachable == pytest.approx(expected.count(math.inf) / count)
    assert found.more == pytest.approx(sum(3 < h < math.inf for h in expected) / count, abs=1e-12)


def test_hop_shares_of_a_sample_of_targets(monkeypatch):
    edges = connected_random(2000, 1500, seed=2)
    pairs = random_pairs(2000, seed=0)
    whole = hop_shares(pairs, edges, 2000)
    monkeypatch.setattr(hops_module, "MOST_VISITS", 100_000)
    part = hop_shares(pairs, edges, 2000, seed=1)
    assert part.pairs < whole.pairs / 2
    for name in ("two", "three", "more"):
        assert getattr(part, name) == pytest.approx(getattr(whole, name), abs=0.05)
    assert part == hop_shares(pairs, edges, 2000, seed=1)


@pytest.mark.parametrize("geometry", ["euclidean", "poincare"])
def test_quality_puts_the_parts_together(geometry):
    edges, num_nodes = two_components(3)
    pos = places(num_nodes, 5)
    pos[:4] = pos[0]
    found = quality(pos, edges, geometry)
    distance = Tangent() if geometry == "poincare" else Euclidean()
    near = latent_neighborhood(pos, edges.size(1), distance)
    ranks = reconstruction(pos, edges, geometry)
    assert (found.num_nodes, found.num_pairs, found.geometry) == (num_nodes, edges.size(1), geometry)
    assert (found.radius, found.latent_pairs) == (near.radius, near.edge_index.size(1))
    assert (found.mean_rank, found.mean_average_precision) == (ranks.mean_rank, ranks.mean_average_precision)
    assert (found.places, found.coincident_nodes) == (num_nodes - 3, 4)
    both = set(map(tuple, edges.t().tolist())) & set(map(tuple, near.edge_index.t().tolist()))
    assert found.overlap == pytest.approx(len(both) / near.edge_index.size(1)) == found.hops.one
    assert found.chance_overlap == edges.size(1) / (num_nodes * (num_nodes - 1))
    assert found.chance_hops.one == pytest.approx(found.chance_overlap, rel=0.1)
    sizes = torch.bincount(near.edge_index[1], minlength=num_nodes)
    assert found.latent_sizes == Sizes.of(sizes.numpy())
    assert found.graph_sizes.none == 3
    assert (
        sum(row.graph for row in found.size_bins) == sum(row.latent for row in found.size_bins) == num_nodes
    )
    # Edges in any form, and any number of times.
    assert quality(pos, edges[:, edges[0] < edges[1]].repeat(1, 2), geometry) == found


def test_chance_is_what_random_positions_give_on_average():
    edges, num_nodes = two_components(1)
    found = [quality(places(num_nodes, seed, dim=3), edges) for seed in range(60)]
    for name, chance in (("mean_rank", "chance_rank"), ("mean_average_precision", "chance_precision")):
        mean = np.mean([getattr(one, name) for one in found])
        assert mean == pytest.approx(getattr(found[0], chance), rel=0.06)
    assert np.mean([one.overlap for one in found]) == pytest.approx(found[0].chance_overlap, rel=0.15)
    assert np.mean([one.hops.two for one in found]) == pytest.approx(found[0].chance_hops.two, rel=0.15)


def test_precision_by_chance_equals_all_orders():
    """Four others, of whom one, two, three or all are neighbors."""
    import itertools

    for d in (1, 2, 3, 4):
        averages = []
        for order in itertools.permutations([True] * d + [False] * (4 - d)):
            ranks = [i + 1 for i, linked in enumerate(order) if linked]
            averages.append(np.mean([(k + 1) / rank for k, rank in enumerate(ranks)]))
        assert report_module._by_chance(np.array([d]), 5)[1] == pytest.approx(np.mean(averages))


def test_isomap_is_better_than_chance():
    edges = connected_random(300, 150, seed=0)
    found = quality(Isomap().embed(edges, 300), edges)
    assert found.distances.residual_variance < 0.8
    assert found.mean_rank < found.chance_rank / 3
    assert found.mean_average_precision > 4 * found.chance_precision
    assert found.overlap > 4 * found.chance_overlap


def test_size_bins_hold_every_node_once():
    random = np.random.default_rng(0)
    graph, latent = random.integers(0, 100, 500), random.integers(0, 7, 500)
    rows = size_bins(graph, latent)
    assert [row.low for row in rows] == [0, 1, 2, 3, 5, 9, 17, 33, 65]
    for row in rows:
        assert row.graph == ((graph >= row.low) & (graph <= row.high)).sum()
        assert row.latent == ((latent >= row.low) & (latent <= row.high)).sum()


SMALLEST = {
    "one node": (torch.zeros(1, 2), no_edges()),
    "two nodes, no edges": (torch.zeros(2, 2), no_edges()),
    "an edge": (torch.tensor([[0.0], [1.0]]), path(2)),
    "no edges": (torch.rand(7, 3), no_edges()),
    "all in one place": (torch.zeros(30, 2), star(29)),
    "complete": (torch.rand(6, 2), undirected(*((i, j) for i in range(6) for j in range(i)))),
}


@pytest.mark.parametrize("name", SMALLEST)
def test_smallest_graphs_have_a_report_without_nan(name):
    pos, edges = SMALLEST[name]
    found = quality(pos, edges)
    assert isinstance(found, Quality)
    json.dumps(found.as_dict(), allow_nan=False)
    text = "\n".join(found.lines())
    assert "nan" not in text
    assert len(found.lines()) == 9


def test_lines_say_the_numbers():
    edges = path(100)
    lines = quality(torch.arange(100.0).view(-1, 1), edges).lines()
    assert lines[1].startswith("neighbors: mean rank 1.0 (by chance 49.5), mean average precision 1.000 (")
    assert lines[3] == "N_s: 198 pairs (N_g: 198), euclidean radius 2"
    assert lines[6].startswith("hops between the nodes of a pair of N_s: 1: 100.0 %, 2: 0.0 %")
    assert lines[8] == "overlap: 100.0 % of N_s are edges (by chance 2.0 %)"


def test_steps_are_told():
    told = []
    quality(torch.rand(5, 2), path(5), on_step=lambda *step: told.append(step))
    assert [done for _, done, _ in told] == [0, 1, 2, 3, 4]


def test_same_bytes_with_two_threads():
    edges = graphs.canonical_edges(connected_random(3000, 6000, seed=0), 3000)[0]
    pos = places(3000, 0)
    before = torch.get_num_threads()
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(quality(pos, edges))
    torch.set_num_threads(before)
    assert found[0] == found[1]


def test_bad_input():
    with pytest.raises(ValueError, match=r"geometry is 'euclidean' or 'poincare', got 'flat'"):
        quality(torch.zeros(3, 2), path(3), "flat")
    with pytest.raises(ValueError, match="NaN or infinity"):
        quality(torch.tensor([[math.nan], [0.0]]), path(2))
    with pytest.raises(ValueError, match=r"ids from 0 to 1, got 1 -> 2"):
        quality(torch.zeros(2, 2), path(3))


def test_long_and_short_components_are_told_apart():
    """The first 256 nodes see distances of one byte, the others of two: unreachable is the same to both."""
    edges = torch.cat([star(255), path(700) + 256], dim=1)
    found = distances_by_hop(torch.arange(956.0).view(-1, 1), edges)
    assert found.pairs == 256 * 255 + 700 * 699
