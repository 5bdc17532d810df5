import pytest
import torch

from geomgcn.nn import Adjacency
from graphs import unchecked


def random_pairs(num_nodes=30, num_pairs=200, count=5, seed=0):
    generator = torch.Generator().manual_seed(seed)
    edge_index = torch.randint(num_nodes, (2, num_pairs), generator=generator)
    edge_type = torch.randint(count, (num_pairs,), generator=generator)
    return edge_index, edge_type, torch.rand(num_pairs, generator=generator)


def triples(pairs, row_is_target):
    """(source, target, virtual node, weight) of every pair, read back from the rows."""
    row = torch.arange(len(pairs.start) - 1).repeat_interleave(pairs.start.diff())
    count = pairs.num_virtual_nodes
    assert torch.equal(row % count, pairs.other.long() % count)
    here, there = (row // count).tolist(), (pairs.other.long() // count).tolist()
    ends = zip(there, here, strict=True) if row_is_target else zip(here, there, strict=True)
    return sorted(zip(ends, (row % count).tolist(), pairs.weight.tolist(), strict=True))


def test_both_directions_hold_every_pair_with_its_weight():
    edge_index, edge_type, weight = random_pairs()
    adjacency = Adjacency.of(edge_index, edge_type, 30, 5, weight)
    given = sorted(zip(map(tuple, edge_index.t().tolist()), edge_type.tolist(), weight.tolist(), strict=True))
    assert triples(adjacency.gather, row_is_target=True) == given
    assert triples(adjacency.spread, row_is_target=False) == given


def test_the_order_of_pairs_does_not_matter():
    edge_index, edge_type, weight = random_pairs()
    key = (edge_index[0] * 30 + edge_index[1]) * 5 + edge_type
    first = torch.unique(key, return_inverse=True)[1]
    only = torch.tensor([int((first == i).nonzero()[0]) for i in range(int(first.max()) + 1)])
    edge_index, edge_type, weight = edge_index[:, only], edge_type[only], weight[only]
    turned = torch.randperm(len(only), generator=torch.Generator().manual_seed(1))
    one = Adjacency.of(edge_index, edge_type, 30, 5, weight)
    other = Adjacency.of(edge_index[:, turned], edge_type[turned], 30, 5, weight[turned])
    for a, b in ((one.gather, other.gather), (one.spread, other.spread)):
        assert torch.equal(a.start, b.start)
        assert torch.equal(a.other, b.other)
        assert torch.equal(a.weight, b.weight)


def test_order_leads_back_to_the_pairs_given():
    edge_index, edge_type, weight = random_pairs()
    adjacency = Adjacency.of(edge_index, edge_type, 30, 5)
    again = adjacency.weighted(weight)
    made = Adjacency.of(edge_index, edge_type, 30, 5, weight)
    assert torch.equal(again.gather.weight, made.gather.weight)
    assert torch.equal(again.spread.weight, made.spread.weight)


@pytest.mark.parametrize(("num_nodes", "num_pairs"), [(1, 0), (1, 3), (3, 0), (1000, 5), (200, 5000)])
def test_bounds_cover_every_node_once(num_nodes, num_pairs):
    edge_index, edge_type, _ = random_pairs(num_nodes, num_pairs)
    bounds = Adjacency.of(edge_index, edge_type, num_nodes, 5).gather.bounds
    assert bounds[0] == 0
    assert bounds[-1] == num_nodes
    assert (bounds.diff() >= 0).all()


def test_pieces_have_about_equal_work():
    edge_index, edge_type, _ = random_pairs(5000, 200_000)
    pairs = Adjacency.of(edge_index, edge_type, 5000, 5).gather
    work = pairs.start[pairs.bounds * 5].diff()
    assert work.max() < 1.2 * work.float().mean()


def test_averaging_weighs_the_members_of_a_virtual_node_alike():
    edge_index, edge_type, _ = random_pairs()
    averaging = Adjacency.of(edge_index, edge_type, 30, 5).averaging
    row = torch.arange(150).repeat_interleave(averaging.gather.sizes)
    sums = torch.zeros(150).index_add_(0, row, averaging.gather.weight)
    torch.testing.assert_close(sums, (averaging.gather.sizes > 0).float())
    assert triples(averaging.gather, row_is_target=True) == triples(averaging.spread, row_is_target=False)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda i, t, w: (i, t + 1, w), r"num_virtual_nodes=5, got edge types from 1 to 5\. Pass the num"),
        (lambda i, t, w: (i, t - 1, w), r"got edge types from -1 to 3\. Pass the num"),
        (lambda i, t, w: (i + 1, t, w), r"30 nodes, got pairs of nodes from 1 to 30\. Pass the features"),
        (lambda i, t, w: (i - 1, t, w), r"got pairs of nodes from -1 to 28\. Pass the features"),
        (lambda i, t, w: (i, t[1:], w), r"edge_type for each of 200 pairs, got shape \[199\]\. Pass all"),
        (lambda i, t, w: (i, t, w[:1]), r"edge_weight for each of 200 pairs, got shape \[1\]\. Pass all"),
        (lambda i, t, w: (i, t, w.requires_grad_()), r"requires a gradient\. Pass edge_weight to the layer"),
    ],
)
def test_what_would_land_elsewhere_is_refused(change, message):
    edge_index, edge_type, weight = change(*random_pairs())
    with unchecked(), pytest.raises(ValueError, match=message):
        Adjacency.of(edge_index, edge_type, 30, 5, weight)
