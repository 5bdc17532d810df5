import math
import random

import pytest
import torch

from geomgcn.graphs import (
    adjacency,
    canonical_edges,
    canonical_lengths,
    check_edges,
    check_features,
    check_positions,
    components,
    homophily,
)


def random_edges(seed: int) -> tuple[list[tuple[int, int]], int]:
    rng = random.Random(seed)
    num_nodes = rng.randint(1, 12)
    return [
        (rng.randrange(num_nodes), rng.randrange(num_nodes)) for _ in range(rng.randint(0, 20))
    ], num_nodes


def as_tensor(pairs: list[tuple[int, int]]) -> torch.Tensor:
    return torch.tensor(pairs, dtype=torch.int64).view(-1, 2).t()


def slow_components(pairs: list[tuple[int, int]], num_nodes: int) -> list[int]:
    """Flood fill from the smallest node that has no id yet."""
    neighbors: list[set[int]] = [set() for _ in range(num_nodes)]
    for source, target in pairs:
        neighbors[source].add(target)
        neighbors[target].add(source)
    ids = [-1] * num_nodes
    for start in range(num_nodes):
        if ids[start] == -1:
            ids[start] = number = max(ids) + 1
            stack = [start]
            while stack:
                for node in neighbors[stack.pop()]:
                    if ids[node] == -1:
                        ids[node] = number
                        stack.append(node)
    return ids


@pytest.mark.parametrize("seed", range(30))
def test_canonical_edges_equal_sets_of_pairs(seed):
    pairs, num_nodes = random_edges(seed)
    edge_index, report = canonical_edges(as_tensor(pairs), num_nodes)
    distinct = {(s, t) for s, t in pairs if s != t}
    expected = sorted(distinct | {(t, s) for s, t in distinct})
    assert [tuple(pair) for pair in edge_index.t().tolist()] == expected
    assert report.num_nodes == num_nodes
    assert report.num_edges == len(expected)
    assert report.self_loops == sum(s == t for s, t in pairs)
    assert report.duplicates == len(pairs) - report.self_loops - len(distinct)
    assert report.one_way == sum((t, s) not in distinct for s, t in distinct)
    assert report.num_isolated == num_nodes - len({node for pair in distinct for node in pair})
    assert report.num_components == max(slow_components(pairs, num_nodes)) + 1


@pytest.mark.parametrize("seed", range(30))
def test_rows_are_the_canonical_graph(seed):
    pairs, num_nodes = random_edges(seed)
    edge_index, _ = canonical_edges(as_tensor(pairs), num_nodes)
    for given in (as_tensor(pairs), edge_index):
        rows = adjacency(given, num_nodes)
        assert rows.shape == (num_nodes, num_nodes)
        assert rows.indices.tolist() == edge_index[1].tolist()
        assert rows.tocoo().row.tolist() == edge_index[0].tolist()


@pytest.mark.parametrize("times", [2, 128, 256, 512])
def test_a_pair_that_comes_very_often(times):
    edge_index, report = canonical_edges(torch.tensor([[0] * times, [1] * times]), num_nodes=3)
    assert edge_index.tolist() == [[0, 1], [1, 0]]
    assert (report.duplicates, report.one_way) == (times - 1, 1)


def test_sorted_pairs_that_are_not_canonical():
    for pairs in (
        [(0, 1), (1, 2)],
        [(0, 1), (1, 0), (1, 2)],
        [(0, 0)],
        [(0, 1), (0, 1), (1, 0)],
        [(1, 0), (0, 1)],
    ):
        edge_index, _ = canonical_edges(as_tensor(pairs), 3)
        expected = sorted({(s, t) for s, t in pairs if s != t} | {(t, s) for s, t in pairs if s != t})
        assert [tuple(pair) for pair in edge_index.t().tolist()] == expected


def test_the_canonical_graph_is_a_copy():
    edge_index = as_tensor([(0, 1), (1, 0)])
    length = torch.ones(2, dtype=torch.float64)
    canonical_edges(edge_index, 2)[0].zero_()
    for result in canonical_lengths(edge_index, length, 2):
        result.zero_()
    assert edge_index.tolist() == [[0, 1], [1, 0]]
    assert length.tolist() == [1, 1]


@pytest.mark.parametrize("seed", range(20))
def test_lengths_are_those_of_the_shortest_entries(seed):
    pairs, num_nodes = random_edges(seed)
    random_length = random.Random(seed)
    length = [random_length.choice([0.5, 1.0, 3.0]) for _ in pairs]
    expected = {}
    for (s, t), value in zip(pairs, length, strict=True):
        if s != t:
            for pair in ((s, t), (t, s)):
                expected[pair] = min(value, expected.get(pair, math.inf))
    edge_index, found = canonical_lengths(as_tensor(pairs), torch.tensor(length).double(), num_nodes)
    assert [tuple(pair) for pair in edge_index.t().tolist()] == sorted(expected)
    assert found.tolist() == [expected[pair] for pair in sorted(expected)]
    again, same = canonical_lengths(edge_index, found, num_nodes)
    assert torch.equal(again, edge_index)
    assert torch.equal(same, found)


def test_canonical_edges_with_lengths_that_differ_by_direction():
    edges = as_tensor([(0, 1), (1, 0)])
    _, found = canonical_lengths(edges, torch.tensor([2.0, 1.0]).double(), 2)
    assert found.tolist() == [1, 1]


def test_canonical_edges_are_a_fixed_point_and_ignore_order():
    pairs, num_nodes = random_edges(7)
    edge_index, _ = canonical_edges(as_tensor(pairs), num_nodes)
    again, report = canonical_edges(edge_index, num_nodes)
    backwards, _ = canonical_edges(as_tensor([(t, s) for s, t in reversed(pairs)]), num_nodes)
    assert torch.equal(again, edge_index)
    assert torch.equal(backwards, edge_index)
    assert (report.self_loops, report.duplicates, report.one_way) == (0, 0, 0)


def test_one_node_without_edges():
    edge_index, report = canonical_edges(torch.empty(2, 0, dtype=torch.int64), num_nodes=1)
    assert edge_index.shape == (2, 0)
    assert (report.num_components, report.num_isolated) == (1, 1)
    assert homophily(edge_index, torch.tensor([0]), num_nodes=1) == 0.0


def test_ids_beyond_int32_do_not_overflow():
    num_nodes = 3_000_000  # pairs are numbered up to num_nodes**2 = 9 * 10^12
    edge_index, _ = canonical_edges(torch.tensor([[0], [num_nodes - 1]]), num_nodes)
    assert edge_index.tolist() == [[0, num_nodes - 1], [num_nodes - 1, 0]]


@pytest.mark.parametrize("seed", range(30))
def test_components_equal_flood_fill(seed):
    pairs, num_nodes = random_edges(seed)
    assert components(as_tensor(pairs), num_nodes).tolist() == slow_components(pairs, num_nodes)


@pytest.mark.parametrize("seed", range(30))
def test_homophily_equals_the_double_loop(seed):
    pairs, num_nodes = random_edges(seed)
    y = [random.Random(seed + 1).randrange(3) for _ in range(num_nodes)]
    total = 0.0
    for node in range(num_nodes):
        around = {t for s, t in pairs if s == node} | {s for s, t in pairs if t == node}
        around -= {node}
        total += sum(y[other] == y[node] for other in around) / len(around) if around else 0.0
    assert homophily(as_tensor(pairs), torch.tensor(y), num_nodes) == pytest.approx(
        total / num_nodes, abs=1e-12
    )


def test_homophily_leaves_unknown_labels_out():
    star = torch.tensor([[0, 0, 0], [1, 2, 3]])
    # Node 0 has one known neighbor of its label and one of another; node 3 is unknown.
    assert homophily(star, torch.tensor([0, 0, 1, -1]), num_nodes=4) == pytest.approx((0.5 + 1 + 0) / 3)
    assert math.isnan(homophily(star, torch.full((4,), -1), num_nodes=4))


def test_homophily_refuses_labels_of_another_graph():
    with pytest.raises(ValueError, match=r"y needs one label for each of 3 nodes, got shape \[2\].*Use -1"):
        homophily(torch.tensor([[0], [1]]), torch.tensor([0, 0]), num_nodes=3)


@pytest.mark.parametrize(
    ("edge_index", "num_nodes", "message"),
    [
        (
            torch.tensor([[0, 1, 5], [1, 0, 0]]),
            3,
            r"ids from 0 to 2, got 5 -> 0 at position 2 \(1 bad.*Renumber",
        ),
        (torch.tensor([[0, -1], [1, 0]]), 3, r"ids from 0 to 2, got -1 -> 0 at position 1 \(1 bad.*Renumber"),
        (torch.tensor([[0.0], [1.0]]), 3, r"dtype torch.int64, got torch.float32.*edge_index.long\(\)"),
        (torch.tensor([[0], [1]], dtype=torch.int32), 3, r"got torch.int32.*edge_index.long\(\)"),
        (torch.zeros(5, 2, dtype=torch.int64), 3, r"shape \[2, num_edges\].*got \[5, 2\].*edge_index.t\(\)"),
        (torch.zeros(2, dtype=torch.int64), 3, r"shape \[2, num_edges\].*got \[2\]"),
        (torch.zeros(2, 0, dtype=torch.int64), 0, r"at least one node, got num_nodes=0.*rows of x"),
    ],
)
@pytest.mark.parametrize("function", [check_edges, canonical_edges, components])
def test_bad_edges_are_refused_before_any_kernel(function, edge_index, num_nodes, message):
    with pytest.raises(ValueError, match=message):
        function(edge_index, num_nodes)


def test_bad_features_are_counted():
    x = torch.zeros(5, 2)
    check_features(x)
    x[3, 0] = float("nan")
    x[2, 1] = x[4, 0] = -float("inf")
    with pytest.raises(ValueError, match=r"got 1 NaN and 2 infinite ones, first at node 2\. Fill or drop"):
        check_features(x)


@pytest.mark.parametrize("x", [torch.zeros(3), torch.zeros(3, 2, dtype=torch.int64)])
def test_features_of_another_kind_are_refused(x):
    with pytest.raises(ValueError, match=r"x needs floats of shape \[num_nodes, channels\].*x.float\(\)"):
        check_features(x)


def test_positions_whose_squares_vanish_are_refused():
    with pytest.raises(ValueError, match=r"within 1e-150 of zero, .* got at most 1e-170\. Scale them"):
        check_positions(torch.tensor([[0.0], [1e-170]], dtype=torch.float64))
    check_positions(torch.zeros(3, 2))
    check_positions(torch.tensor([[0.0], [1e-170], [1.0]], dtype=torch.float64))


def test_lengths_of_the_canonical_graph_are_the_shortest():
    generator = torch.Generator().manual_seed(0)
    edges = torch.randint(12, (2, 200), generator=generator)
    length = torch.rand(200, generator=generator, dtype=torch.float64) + 0.1
    canonical, found = canonical_lengths(edges, length, 12)
    assert torch.equal(canonical, canonical_edges(edges, 12)[0])
    for (u, v), value in zip(canonical.t().tolist(), found.tolist(), strict=True):
        between = [float(length[i]) for i, pair in enumerate(edges.t().tolist()) if set(pair) == {u, v}]
        assert value == min(between)


@pytest.mark.parametrize(
    ("length", "message"),
    [
        (torch.ones(2), r"one number for each of 3 edges, got shape \[2\]\. Reshape"),
        (torch.tensor([1.0, 0.0, -1.0]), r"above zero, got 0\.0 at position 1 \(2 bad ones in all\)\. Leave"),
        (torch.tensor([1.0, 2.0, float("nan")]), r"got nan at position 2"),
        (torch.tensor([1.0, 2.0, float("inf")]), r"got inf at position 2"),
    ],
)
def test_lengths_that_are_none(length, message):
    with pytest.raises(ValueError, match=message):
        canonical_lengths(torch.tensor([[0, 1, 2], [1, 2, 0]]), length, 3)
