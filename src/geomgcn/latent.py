r"""The latent neighbourhood: the radius rule and the search for its pairs (Section 3.1).

The paper raises the radius :math:`\rho` from zero until the latent neighbourhoods are, on average,
as large as those in the graph. With ties (structurally equal nodes coincide) no radius may give that
size exactly, so the rule is stated here in full:

1. Pairs at equal distance enter together, so that the result never depends on node numbers.
2. Of the sizes that some radius gives, the one nearest to the target is taken, and the smaller of two
   equally near. At most twice the target is ever taken.
3. If the coincident pairs alone (distance zero) exceed twice the target, no radius gives a usable size.
   Then only coincident nodes are neighbours, and each keeps the ``max_coincident`` that follow and
   precede it in its group, in the order of node numbers: the one place where that order matters. Where
   fewer pairs than nodes are wanted, even one neighbor on either side can exceed twice the target.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from scipy.sparse import coo_array
from scipy.spatial import cKDTree

from geomgcn._types import Distance, EdgeIndex, Position
from geomgcn.distances import BallDistance, Euclidean
from geomgcn.graphs import check_positions

_EUCLIDEAN = Euclidean()
_SAMPLE_SIZE = 1024
_BLOCK_PAIRS = 1 << 20
_MOST_SAMPLED_PAIRS = 1 << 24
# The k-d tree rounds distances its own way, and near the rim of the disc rounding weighs more: ask for a
# little more (float64, up to 1e-9 from the rim), keep what is surely complete.
_SLACK = 1e-6


@dataclass(frozen=True, eq=False)
class LatentNeighborhood:
    r"""Pairs of nodes nearer than ``radius`` in the latent space.

    Attributes:
        edge_index: Ordered pairs, source -> target, sorted by target and then source; no self-loops.
        radius: Every pair is strictly nearer; infinite if all pairs are in.
        max_coincident: How many of its coincident nodes each node keeps at most, where rule 3 of this
            module applied, else None.
    """

    edge_index: EdgeIndex
    radius: float
    max_coincident: int | None = None


@dataclass(frozen=True, eq=False)
class _Places:
    """Distinct positions, and which nodes are at each."""

    pos: np.ndarray  # num_places, dim
    size: np.ndarray  # num_places: how many nodes are there
    start: np.ndarray  # num_places: where they begin in `member`
    member: np.ndarray  # num_nodes, grouped by place, ascending inside

    @classmethod
    def of(cls, pos: np.ndarray) -> "_Places":
        # + 0.0 turns -0.0 into 0.0, which are the same place.
        distinct, place, size = np.unique(pos + 0.0, axis=0, return_inverse=True, return_counts=True)
        member = np.argsort(place.reshape(-1), kind="stable")
        return cls(distinct, size, np.cumsum(size) - size, member)

    @property
    def num_coincident_pairs(self) -> int:
        """Ordered pairs of nodes at the same place."""
        return int((self.size * (self.size - 1)).sum())


@dataclass(frozen=True, eq=False)
class _Pairs:
    """Ordered pairs of places with their distances; unordered (i < j) ones where ``mirrored``."""

    source: np.ndarray
    target: np.ndarray
    distance: np.ndarray
    mirrored: bool

    def take(self, index: np.ndarray) -> "_Pairs":
        return _Pairs(self.source[index], self.target[index], self.distance[index], self.mirrored)

    def num_node_pairs(self, size: np.ndarray) -> np.ndarray:
        return size[self.source] * size[self.target] * (2 if self.mirrored else 1)


def _pair_distance(
    distance: Distance, pos: torch.Tensor, source: np.ndarray, target: np.ndarray
) -> np.ndarray:
    result = np.empty(len(source))
    for begin in range(0, len(source), _BLOCK_PAIRS):
        part = slice(begin, begin + _BLOCK_PAIRS)
        ends = pos[torch.from_numpy(source[part])], pos[torch.from_numpy(target[part])]
        result[part] = distance(*ends).numpy()
    if np.isnan(result).any():
        first = int(np.flatnonzero(np.isnan(result))[0])
        raise ValueError(
            f"The radius rule needs distances that are numbers, got NaN from {distance.name!r} between "
            f"{pos[source[first]].tolist()} and {pos[target[first]].tolist()}. Mend that distance."
        )
    return result


class _TreeSearch:
    """Pairs of places within a radius, where balls are Euclidean balls."""

    def __init__(self, places: _Places, distance: BallDistance) -> None:
        self.places, self.distance = places, distance
        self.pos = torch.from_numpy(places.pos)
        self.tree = cKDTree(places.pos)

    def pairs(self, radius: float) -> _Pairs:
        """Return all pairs at distance <= radius."""
        outer = radius * (1 + _SLACK)
        if isinstance(self.distance, Euclidean):
            both = self.tree.query_pairs(outer, output_type="ndarray")
            source, target = both[:, 0].copy(), both[:, 1].copy()
        else:
            blocks = list(self._ball_blocks(outer))
            source = np.concatenate([block[0] for block in blocks])
            target = np.concatenate([block[1] for block in blocks])
            if self.distance.symmetric:
                keep = source < target
                source, target = source[keep], target[keep]
        distance = _pair_distance(self.distance, self.pos, source, target)
        found = _Pairs(source, target, distance, self.distance.symmetric)
        return found.take(np.flatnonzero(distance <= radius))

    def _ball_blocks(self, radius: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        num_places = len(self.places.pos)
        for begin in range(0, num_places, 1 << 14):
            index = np.arange(begin, min(begin + (1 << 14), num_places))
            centre, reach = self.distance.balls(self.pos[torch.from_numpy(index)], radius)
            lists = self.tree.query_ball_point(
                centre.numpy(), reach.numpy() * (1 + _SLACK), return_sorted=True
            )
            target = np.repeat(index, [len(found) for found in lists])
            source = np.fromiter((s for found in lists for s in found), np.int64, len(target))
            other = source != target
            yield source[other], target[other]

    def count(self, sample: np.ndarray, radius: float) -> int:
        """Return how many places lie within the radius of the sampled ones, themselves included."""
        centre, reach = self.distance.balls(self.pos[torch.from_numpy(sample)], radius)
        return int(self.tree.query_ball_point(centre.numpy(), reach.numpy(), return_length=True).sum())


class _BlockSearch:
    """Pairs of places within a radius for any distance, by looking at all pairs, block by block."""

    def __init__(self, places: _Places, distance: Distance) -> None:
        self.places, self.distance = places, distance
        self.pos = torch.from_numpy(places.pos)

    def _near(self, targets: np.ndarray, radius: float) -> Iterator[_Pairs]:
        num_places = len(self.places.pos)
        step = max(1, _BLOCK_PAIRS // num_places)
        everyone = np.arange(num_places)
        for begin in range(0, len(targets), step):
            block = targets[begin : begin + step]
            source, target = np.tile(everyone, len(block)), np.repeat(block, num_places)
            distance = _pair_distance(self.distance, self.pos, source, target)
            keep = np.flatnonzero((distance <= radius) & (source != target))
            yield _Pairs(source[keep], target[keep], distance[keep], False)

    def pairs(self, radius: float) -> _Pairs:
        """Return all pairs at distance <= radius."""
        blocks = list(self._near(np.arange(len(self.places.pos)), radius))
        return _Pairs(
            np.concatenate([block.source for block in blocks]),
            np.concatenate([block.target for block in blocks]),
            np.concatenate([block.distance for block in blocks]),
            mirrored=False,
        )

    def radius_of(self, sample: np.ndarray, num_pairs: float) -> float:
        """Return a radius that holds ``num_pairs`` of the ordered pairs towards the sampled places."""
        few = sample[: max(1, _MOST_SAMPLED_PAIRS // len(self.places.pos))]
        distance = np.concatenate([block.distance for block in self._near(few, math.inf)])
        rank = min(math.ceil(num_pairs * len(few) / len(sample)), len(distance) - 1)
        return float(np.partition(distance, rank)[rank])


_Search = _TreeSearch | _BlockSearch


def _search(places: _Places, distance: Distance) -> _Search:
    if isinstance(distance, BallDistance):
        return _TreeSearch(places, distance)
    return _BlockSearch(places, distance)


def _sampled_radius(search: _Search, num_pairs: float, distance: Distance) -> float:
    """Guess a radius with somewhat more than ``num_pairs`` ordered pairs of places.

    A guess only: it bounds the work, never the result.
    """
    num_places = len(search.places.pos)
    sample = np.random.default_rng(0).permutation(num_places)[:_SAMPLE_SIZE]
    wanted = len(sample) * 1.2 * num_pairs / num_places
    smallest = np.finfo(float).tiny
    if isinstance(search, _BlockSearch):
        return max(search.radius_of(sample, wanted), smallest)
    goal, everything = len(sample) + wanted, len(sample) * num_places
    turned = np.roll(sample, 1)
    upper = float(np.median(_pair_distance(distance, search.pos, sample, turned)))
    upper = max(upper, smallest)
    while search.count(sample, upper) < min(goal, everything):
        upper *= 2
    lower = 0.0
    for _ in range(48):
        middle = (lower + upper) / 2
        found = search.count(sample, middle)
        lower, upper = (middle, upper) if found < goal else (lower, middle)
        if goal <= found <= 1.3 * goal:
            break
    return upper


def _nearest_size(pairs: _Pairs, places: _Places, num_pairs: int) -> tuple[_Pairs, float] | None:
    """Return the pairs that the rule takes and the radius, or None if ``pairs`` end too early to tell."""
    pairs = pairs.take(np.argsort(pairs.distance, kind="stable"))
    last_of_tie = np.flatnonzero(np.append(np.diff(pairs.distance) > 0, len(pairs.distance) > 0))
    sizes = places.num_coincident_pairs + np.append(
        0, np.cumsum(pairs.num_node_pairs(places.size))[last_of_tie]
    )
    all_pairs = len(places.member) * (len(places.member) - 1)
    if sizes[-1] < all_pairs and sizes[-1] <= num_pairs:
        return None
    best = int(np.argmin(np.abs(sizes - num_pairs)))  # the first, hence the smaller, of equally near
    if best == len(sizes) - 1 and sizes[-1] < all_pairs:
        return None  # the radius is the next distance, which is not among the pairs
    taken = 0 if best == 0 else int(last_of_tie[best - 1]) + 1
    radius = float(pairs.distance[taken]) if taken < len(pairs.distance) else math.inf
    return pairs.take(np.arange(taken)), radius


def _choose(pos: Position, num_pairs: int, distance: Distance) -> tuple[_Places, _Pairs, float]:
    """Apply rules 1 and 2 of the module."""
    places = _Places.of(_checked(pos, num_pairs))
    search = _search(places, distance)
    nothing = np.zeros(0, dtype=np.int64)
    if len(places.pos) == 1:
        return places, _Pairs(nothing, nothing, np.zeros(0), False), math.inf
    wanted = max(1, num_pairs - places.num_coincident_pairs)
    mean_weight = (len(places.member) / len(places.pos)) ** 2
    radius = _sampled_radius(search, wanted / mean_weight, distance)
    while True:
        chosen = _nearest_size(search.pairs(radius), places, num_pairs)
        if chosen is not None:
            return places, *chosen
        radius *= 1.5


def _checked(pos: Position, num_pairs: int) -> np.ndarray:
    if num_pairs < 0:
        raise ValueError(
            f"The number of latent pairs cannot be negative, got num_pairs={num_pairs!r}. "
            f"Pass the number of edges of the graph."
        )
    check_positions(pos)
    return pos.detach().cpu().numpy().astype(np.float64)


def matching_radius(pos: Position, num_pairs: int, distance: Distance = _EUCLIDEAN) -> float:
    r"""Return the radius at which the latent graph has ``num_pairs`` ordered pairs (Section 3.1).

    Pairs exactly at the radius are excluded. Ties are broken by the rules of this module, which also
    say what happens when coincident nodes alone exceed the target. Takes about
    :math:`O((n + m) \log n)` time and :math:`O(n + m)` memory for :math:`m` pairs.

    Args:
        num_pairs: Usually the number of edges of the graph, both directions, self-loops not counted.

    Example:
        >>> matching_radius(torch.tensor([[0.0], [1.0], [3.0]]), num_pairs=2)
        2.0
    """
    return _choose(pos, num_pairs, distance)[2]


def latent_neighborhood(pos: Position, num_pairs: int, distance: Distance = _EUCLIDEAN) -> LatentNeighborhood:
    r"""Return the latent neighbourhood :math:`N_s` with about ``num_pairs`` ordered pairs.

    Args:
        num_pairs: Usually the number of edges of the graph, both directions, self-loops not counted.

    Example:
        >>> found = latent_neighborhood(torch.tensor([[0.0], [1.0], [3.0]]), num_pairs=2)
        >>> found.edge_index
        tensor([[1, 0],
                [0, 1]])
    """
    if num_pairs == 0 or pos.size(0) < 2:
        _checked(pos, num_pairs)
        return LatentNeighborhood(torch.zeros(2, 0, dtype=torch.long, device=pos.device), 0.0)
    places, pairs, radius = _choose(pos, num_pairs, distance)
    coincident = places.num_coincident_pairs
    if coincident > 2 * num_pairs:
        ring = _ring_width(places.size, num_pairs)
        source, target = _coincident_pairs(places, ring)
        nearest = _nearest_other_place(places, distance)
        return LatentNeighborhood(_sorted(source, target, pos.size(0)).to(pos.device), nearest, 2 * ring)
    source, target = _expand(pairs, places)
    if coincident:
        twins = _coincident_pairs(places, int(places.size.max()))
        source, target = np.concatenate([source, twins[0]]), np.concatenate([target, twins[1]])
    return LatentNeighborhood(_sorted(source, target, pos.size(0)).to(pos.device), radius)


def _nearest_other_place(places: _Places, distance: Distance) -> float:
    """Return the smallest positive distance: every coincident pair is strictly nearer."""
    if len(places.pos) == 1:
        return math.inf
    search = _search(places, distance)
    radius = _sampled_radius(search, 1.0, distance)
    while not len((found := search.pairs(radius)).distance):
        radius *= 2
    return float(found.distance.min())


def _ring_width(size: np.ndarray, num_pairs: int) -> int:
    """Return the k for which k nodes either way give the number of pairs nearest to the target."""

    def total(k: int) -> int:
        return int((size * np.minimum(size - 1, 2 * k)).sum())

    low, high = 1, max(1, int(size.max()))
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if total(middle) >= num_pairs else (middle + 1, high)
    return low - 1 if low > 1 and num_pairs - total(low - 1) <= total(low) - num_pairs else low


def _coincident_pairs(places: _Places, ring: int) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs at the same place, at most ``ring`` steps apart around their group."""
    place = np.repeat(np.arange(len(places.size)), places.size)
    rank = np.arange(len(place)) - places.start[place]
    size = places.size[place]
    reach = np.minimum(size - 1, 2 * ring)
    row = np.repeat(np.arange(len(place)), reach)
    step = np.arange(len(row)) - np.repeat(np.cumsum(reach) - reach, reach)  # 0, 1, ..., reach - 1
    # Steps +1, -1, +2, -2, ... so that a cut ring stays symmetric.
    offset = np.where(step % 2 == 0, step // 2 + 1, -(step // 2 + 1))
    other = places.start[place[row]] + (rank[row] + offset) % size[row]
    return places.member[other], places.member[row]


def _expand(pairs: _Pairs, places: _Places) -> tuple[np.ndarray, np.ndarray]:
    """Return pairs of nodes for pairs of places."""
    of_source, of_target = places.size[pairs.source], places.size[pairs.target]
    count = of_source * of_target
    row = np.repeat(np.arange(len(count)), count)
    step = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    source = places.member[places.start[pairs.source][row] + step % of_source[row]]
    target = places.member[places.start[pairs.target][row] + step // of_source[row]]
    if pairs.mirrored:
        return np.concatenate([source, target]), np.concatenate([target, source])
    return source, target


def _sorted(source: np.ndarray, target: np.ndarray, num_nodes: int) -> EdgeIndex:
    # Counting sort, by way of CSR: several times faster than a comparison sort of so many pairs.
    table = coo_array((np.ones(len(source), dtype=np.bool_), (target, source)), shape=(num_nodes, num_nodes))
    rows = table.tocsr()
    rows.sort_indices()
    target = np.repeat(np.arange(num_nodes), np.diff(rows.indptr))
    return torch.from_numpy(np.stack([rows.indices.astype(np.int64), target]))
