import math
import random
import tracemalloc
from collections import Counter
from dataclasses import dataclass

import pytest
import torch

from geomgcn.distances import Euclidean, Geodesic, Tangent
from geomgcn.latent import _Places, _search, latent_neighborhood, matching_radius
from memory import in_a_process


def euclidean(u, v):
    return math.sqrt((u[0] - v[0]) ** 2 + (u[1] - v[1]) ** 2)


def geodesic(u, v):
    scale = (1 - u[0] ** 2 - u[1] ** 2) * (1 - v[0] ** 2 - v[1] ** 2)
    return math.acosh(1 + 2 * euclidean(u, v) ** 2 / scale)


def tangent(u, v):
    return 2 * euclidean(u, v) / (1 - v[0] ** 2 - v[1] ** 2)


def by_brute_force(points, num_pairs, distance):
    """Return all pairs within the radius of the rule, and that radius, by trying all of them."""
    nodes = range(len(points))
    apart = {(u, v): distance(points[u], points[v]) for u in nodes for v in nodes if u != v}
    best, best_size = None, None
    for radius in [*sorted(set(apart.values())), math.inf]:
        size = sum(d < radius for d in apart.values())
        if best is None or abs(size - num_pairs) < abs(best_size - num_pairs):
            best, best_size = radius, size
    return {pair for pair, d in apart.items() if d < best}, best


def pairs_of(found):
    pairs = [tuple(pair) for pair in found.edge_index.t().tolist()]
    assert len(pairs) == len(set(pairs)), "a pair came twice"
    assert all(u != v for u, v in pairs), "a node is its own neighbor"
    assert pairs == sorted(pairs, key=lambda pair: pair[::-1]), "not sorted by target, then source"
    return set(pairs)


def disc(rng, rim=1e-3):
    radius, angle = (1 - rim) * rng.random() ** 0.3, rng.uniform(0, 2 * math.pi)
    return radius * math.cos(angle), radius * math.sin(angle)


MAKERS = {
    "scattered": lambda rng: (rng.gauss(0, 1), rng.gauss(0, 1)),
    "lattice": lambda rng: (float(rng.randrange(6)), float(rng.randrange(6))),
    "twins": lambda rng: (float(rng.randrange(9)), 0.0),
}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("kind", MAKERS)
def test_radius_rule_by_brute_force(kind, seed):
    rng = random.Random(seed)
    points = [MAKERS[kind](rng) for _ in range(rng.randrange(2, 30))]
    num_pairs = rng.randrange(1, 1 + min(len(points) * (len(points) - 1), 6 * len(points)))
    coincident = sum(n * (n - 1) for n in Counter(points).values())
    pos = torch.tensor(points, dtype=torch.float64)
    found = latent_neighborhood(pos, num_pairs)
    wanted, radius = by_brute_force(points, num_pairs, euclidean)
    if coincident > 2 * num_pairs:
        assert found.max_coincident is not None
        return
    assert found.max_coincident is None
    assert pairs_of(found) == wanted
    assert len(wanted) <= 2 * num_pairs
    assert found.radius == matching_radius(pos, num_pairs) == pytest.approx(radius, rel=1e-14)


@pytest.mark.parametrize(("distance", "slow"), [(Geodesic(), geodesic), (Tangent(), tangent)])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("rim", [1e-2, 1e-5])
def test_hyperbolic_radius_rule_by_brute_force(distance, slow, seed, rim):
    rng = random.Random(seed)
    points = [disc(rng, rim) for _ in range(25)]
    num_pairs = rng.randrange(1, 300)
    found = latent_neighborhood(torch.tensor(points, dtype=torch.float64), num_pairs, distance)
    wanted, radius = by_brute_force(points, num_pairs, slow)
    assert pairs_of(found) == wanted
    assert found.radius == pytest.approx(radius, rel=1e-4)


@pytest.mark.parametrize("distance", [Euclidean(), Geodesic(), Tangent()])
@pytest.mark.parametrize("gap", [1e-7, 1e-9])
def test_nothing_is_lost_near_the_rim(distance, gap):
    """The tree is only a filter: it must not lose pairs where rounding weighs most."""
    rng = random.Random(3)
    for _ in range(5):
        rows = [(1 - gap * rng.uniform(1, 9), rng.gauss(0, 1)) for _ in range(30)]
        pos = torch.tensor([[r * math.cos(a), r * math.sin(a)] for r, a in rows], dtype=torch.float64)
        index = torch.cartesian_prod(torch.arange(30), torch.arange(30)).t()
        source, target = index[:, index[0] != index[1]]
        apart = distance(pos[source], pos[target])
        for num_pairs in (20, 200):
            found = latent_neighborhood(pos, num_pairs, distance)
            near = apart < found.radius
            assert pairs_of(found) == set(zip(source[near].tolist(), target[near].tolist(), strict=True))
            # One-sided distances have no ties here, the others come in twos.
            assert abs(int(near.sum()) - num_pairs) <= 1


@pytest.mark.parametrize("distance", [Euclidean(), Geodesic(), Tangent()])
def test_the_search_keeps_pairs_exactly_at_its_radius(distance):
    """The tree rounds in its own way, and must not drop the pair that the radius came from."""
    rng = random.Random(4)
    pos = torch.tensor([disc(rng) for _ in range(40)], dtype=torch.float64)
    search = _search(_Places.of(pos.numpy()), distance)
    everything = search.pairs(1e4)
    assert len(everything.distance) == 40 * 39 // (1 + distance.symmetric)
    for radius in everything.distance:
        assert len(search.pairs(float(radius)).distance) == (everything.distance <= radius).sum()


@dataclass(frozen=True)
class Manhattan:
    """A user's distance: a name and a call."""

    name: str = "manhattan"

    def __call__(self, source, target):
        return (source - target).abs().sum(-1)


@dataclass(frozen=True)
class Climb(Manhattan):
    """Not symmetric: the way up counts twice."""

    name: str = "climb"

    def __call__(self, source, target):
        rise = (target - source)[:, 1]
        return (source - target)[:, 0].abs() + torch.where(rise > 0, 2 * rise, -rise)


@pytest.mark.parametrize("seed", range(6))
def test_a_users_distance_needs_no_balls(seed):
    rng = random.Random(seed)
    points = [(float(rng.randrange(8)), float(rng.randrange(8))) for _ in range(20)]
    num_pairs = rng.randrange(40, 150)
    for distance, slow in (
        (Manhattan(), lambda u, v: abs(u[0] - v[0]) + abs(u[1] - v[1])),
        (Climb(), lambda u, v: abs(u[0] - v[0]) + max(2 * (v[1] - u[1]), u[1] - v[1])),
    ):
        found = latent_neighborhood(torch.tensor(points, dtype=torch.float64), num_pairs, distance)
        wanted, radius = by_brute_force(points, num_pairs, slow)
        assert pairs_of(found) == wanted
        assert found.radius == radius


@dataclass(frozen=True)
class Broken(Manhattan):
    name: str = "broken"

    def __call__(self, source, target):
        return (source - target).abs().sum(-1).log().log()


def test_a_distance_of_nan_is_refused_instead_of_searched_for():
    with pytest.raises(ValueError, match=r"got NaN from 'broken' between \[.*\] and \[.*\]\. Mend that"):
        latent_neighborhood(torch.tensor([[0.0], [0.5], [0.9]], dtype=torch.float64), 2, Broken())


def test_ties_enter_together_and_the_smaller_of_equally_near_wins():
    square = torch.tensor([[0.0, 0.0], [0.0, 1.0], [1.0, 0.0], [1.0, 1.0]])
    sides, everything = 8, 12
    assert len(pairs_of(latent_neighborhood(square, 7))) == sides
    assert len(pairs_of(latent_neighborhood(square, 10))) == sides
    assert len(pairs_of(latent_neighborhood(square, 4))) == 0
    assert len(pairs_of(latent_neighborhood(square, 11))) == everything


def test_radius_is_infinite_when_all_pairs_are_in():
    pos = torch.tensor([[0.0], [1.0], [3.0]])
    for num_pairs in (6, 7, 1000):
        found = latent_neighborhood(pos, num_pairs)
        assert found.radius == math.inf
        assert len(pairs_of(found)) == 6


def test_pairs_at_the_radius_are_out():
    found = latent_neighborhood(torch.tensor([[0.0], [1.0], [3.0]]), 4)
    assert pairs_of(found) == {(0, 1), (1, 0), (1, 2), (2, 1)}
    assert found.radius == 3.0


@pytest.mark.parametrize("num_nodes", [1, 5])
def test_nothing_asked_nothing_given(num_nodes):
    found = latent_neighborhood(torch.rand(num_nodes, 2), 0 if num_nodes > 1 else 3)
    assert found.edge_index.shape == (2, 0)


@pytest.mark.parametrize("num_pairs", [0, 3])
@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_positions_that_are_no_numbers_are_refused(value, num_pairs):
    pos = torch.rand(6, 2)
    pos[2, 1] = pos[4, 0] = value
    message = r"got NaN or infinity at 2 node\(s\), the first is node 2\. Give every node a place"
    for function in (latent_neighborhood, matching_radius):
        with pytest.raises(ValueError, match=message):
            function(pos, num_pairs)


def test_a_negative_number_of_pairs_is_refused():
    for function in (latent_neighborhood, matching_radius):
        with pytest.raises(ValueError, match=r"negative, got num_pairs=-1\. Pass the number of edges"):
            function(torch.rand(3, 2), -1)


@pytest.mark.parametrize("seed", range(10))
def test_cap_on_coincident_nodes(seed):
    """Rule 3: a ring inside each group, as wide as comes nearest to the target."""
    rng = random.Random(seed)
    sizes = [rng.randrange(1, 25) for _ in range(6)]
    place = [i for i, size in enumerate(sizes) for _ in range(size)]
    rng.shuffle(place)
    coincident = sum(size * (size - 1) for size in sizes)
    num_pairs = max(len(place), coincident // rng.randrange(3, 6))
    if coincident <= 2 * num_pairs:
        return
    found = latent_neighborhood(torch.tensor(place).double().view(-1, 1) * 3, num_pairs)
    pairs = pairs_of(found)
    gaps = [abs(a - b) * 3.0 for a in set(place) for b in set(place) if a != b]
    assert found.radius == min(gaps)
    assert all((v, u) in pairs for u, v in pairs)
    members = {i: [node for node, where in enumerate(place) if where == i] for i in set(place)}

    def ring(k):
        return {
            (group[(i + step) % len(group)], node)
            for group in members.values()
            for i, node in enumerate(group)
            for step in range(-k, k + 1)
            if (i + step) % len(group) != i
        }

    assert pairs == ring(found.max_coincident // 2)
    in_degree = Counter(v for _, v in pairs)
    assert max(in_degree.values()) <= found.max_coincident
    error = [abs(len(ring(k)) - num_pairs) for k in range(1, max(sizes))]
    assert abs(len(pairs) - num_pairs) == min(error)


def test_twins_below_the_cap_are_neighbors_of_each_other_and_of_all_that_one_sees():
    pos = torch.tensor([[0.0], [0.0], [1.0], [5.0]])
    found = latent_neighborhood(pos, 6)
    assert found.max_coincident is None
    assert pairs_of(found) == {(u, v) for u in range(3) for v in range(3) if u != v}


def test_negative_zero_is_the_same_place():
    found = latent_neighborhood(torch.tensor([[0.0, -0.0], [-0.0, 0.0], [9.0, 9.0], [-4.0, 7.0]]), 2)
    assert pairs_of(found) == {(0, 1), (1, 0)}


def test_twenty_thousand_coincident_nodes_stay_small():
    pos = torch.zeros(20_000, 2)
    pos[:100] = torch.rand(100, 2)
    tracemalloc.start()
    found = latent_neighborhood(pos, 60_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 100e6, "an array with an entry a pair of nodes has 4e8 of them"
    assert found.max_coincident in (2, 4)
    assert abs(found.edge_index.size(1) - 60_000) <= 20_000


@pytest.mark.parametrize("distance", [Euclidean(), Tangent(), Manhattan()])
def test_names_of_nodes_do_not_matter(distance):
    rng = random.Random(0)
    pos = torch.tensor([disc(rng) for _ in range(60)], dtype=torch.float64)
    pos = torch.cat([pos, pos[:15]])
    new_name = torch.randperm(75, generator=torch.Generator().manual_seed(1))
    renamed = torch.empty_like(pos)
    renamed[new_name] = pos
    plain, other = latent_neighborhood(pos, 300, distance), latent_neighborhood(renamed, 300, distance)
    assert plain.radius == other.radius
    assert {tuple(new_name[list(pair)].tolist()) for pair in pairs_of(plain)} == pairs_of(other)


def test_a_thousand_points_come_out_as_one_by_one():
    """Larger than the sample and the blocks of the search."""
    pos = torch.randn(2500, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(2))
    found = latent_neighborhood(pos, 25_000)
    apart = torch.cdist(pos, pos, compute_mode="donot_use_mm_for_euclid_dist").fill_diagonal_(math.inf)
    assert found.edge_index.size(1) == 25_000
    assert apart.flatten().sort().values[25_000] == pytest.approx(found.radius, rel=1e-12)
    near = (apart < found.radius * (1 - 1e-12)).t().nonzero()
    assert torch.equal(found.edge_index[1], near[:, 0])
    assert torch.equal(found.edge_index[0], near[:, 1])


MILLION = """
import torch
from geomgcn.latent import latent_neighborhood
pos = torch.rand(10**6, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
found = latent_neighborhood(pos, 10**7)
print(found.edge_index.size(1), peak())
"""


@pytest.mark.slow
def test_a_million_points_in_two_gigabytes():
    count, peak = in_a_process(MILLION)
    assert count == 10**7
    assert peak < 2e9


def test_coincident_pairs_of_exactly_twice_the_target_are_kept():
    pos = torch.tensor([[0.0, 0.0]] * 4 + [[1.0, 0.0]])
    found = latent_neighborhood(pos, num_pairs=6)
    assert found.edge_index.size(1) == 12
    assert found.max_coincident is None


def test_of_two_rings_equally_near_the_narrower_is_taken():
    """Ten nodes in one place: rings of 1, 2, ... either side have 20, 40, ... pairs; 30 lies between."""
    found = latent_neighborhood(torch.zeros(10, 2), num_pairs=30)
    assert found.max_coincident == 2
    assert found.edge_index.size(1) == 20


def test_any_distance_is_evaluated_little_more_often_than_once_a_pair():
    class Counted:
        name = "counted"
        evaluations = 0

        def __call__(self, source, target):
            self.evaluations += len(source)
            return (source - target).abs().sum(-1)

    distance = Counted()
    pos = torch.rand(1500, 2, generator=torch.Generator().manual_seed(0)).double()
    latent_neighborhood(pos, 6000, distance)
    assert distance.evaluations <= 2 * 1500**2
