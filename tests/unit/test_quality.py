import math

import pytest
import torch

from geomgcn.distances import Euclidean, Geodesic
from geomgcn.embeddings import reconstruction
from graphs import connected_random, no_edges, path


def by_hand(pos, edges, distance):
    """Mean rank and mean average precision, word by word."""
    num_nodes = len(pos)
    ranks, averages = [], []
    for u in range(num_nodes):
        linked = set(edges[1][edges[0] == u].tolist())
        away = distance(pos, pos[u].expand(num_nodes, -1)).tolist()
        strangers = [v for v in range(num_nodes) if v != u and v not in linked]
        precisions = []
        for v in linked:
            before = sum(away[w] <= away[v] for w in strangers)
            ranks.append(before + 1)
            found = sum(away[w] <= away[v] for w in linked)
            precisions.append(found / (found + before))
        if precisions:
            averages.append(sum(precisions) / len(precisions))
    return sum(ranks) / len(ranks), sum(averages) / len(averages), len(averages)


@pytest.mark.parametrize(("geometry", "distance"), [("euclidean", Euclidean()), ("poincare", Geodesic())])
@pytest.mark.parametrize("seed", range(5))
def test_as_counted_by_hand(geometry, distance, seed):
    edges = connected_random(25, 15, seed)
    generator = torch.Generator().manual_seed(seed)
    pos = 0.69 * (2 * torch.rand(28, 2, generator=generator, dtype=torch.float64) - 1)  # three are isolated
    found = reconstruction(pos, edges, geometry)
    rank, precision, count = by_hand(pos, edges, distance)
    assert found.mean_rank == pytest.approx(rank)
    assert found.mean_average_precision == pytest.approx(precision)
    assert found.num_nodes == count == 25


def test_nothing_is_gained_by_one_place_for_all():
    found = reconstruction(torch.zeros(50, 2), path(50))
    assert found.mean_rank > 45
    assert found.mean_average_precision < 0.05


def test_a_sample_of_the_nodes():
    edges = connected_random(400, 300, seed=0)
    pos = torch.rand(400, 2, generator=torch.Generator().manual_seed(1)).double()
    whole, part = reconstruction(pos, edges), reconstruction(pos, edges, max_nodes=200, seed=2)
    assert (whole.num_nodes, part.num_nodes) == (400, 200)
    assert part.mean_rank == pytest.approx(whole.mean_rank, rel=0.15)
    assert part == reconstruction(pos, edges, max_nodes=200, seed=2)


def test_without_edges_there_is_nothing_to_give_back():
    found = reconstruction(torch.zeros(3, 2), no_edges())
    assert math.isnan(found.mean_rank)
    assert found.num_nodes == 0


def test_bad_input():
    with pytest.raises(ValueError, match=r"geometry is 'euclidean' or 'poincare', got 'flat'"):
        reconstruction(torch.zeros(3, 2), path(3), "flat")
    with pytest.raises(ValueError, match="NaN or infinity"):
        reconstruction(torch.tensor([[math.nan], [0.0]]), path(2))
