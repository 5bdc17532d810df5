"""Hops in the graph against distances in the latent space."""

from dataclasses import dataclass
from typing import no_type_check

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from geomgcn import graphs
from geomgcn._compiled import compiled
from geomgcn._types import EdgeIndex, Position
from geomgcn.distances import Euclidean, Geodesic
from geomgcn.embeddings._kernels import HOP_TYPES, SOURCES_PER_SWEEP, hops_from, over_pieces

ALL_PAIRS = 2000
"""Graphs of up to as many nodes are looked at as a whole."""

TARGETS = 8192
"""Of larger graphs, as many nodes are looked at from each of 256."""

MOST_ROWS = 24
"""Of a graph with a larger diameter, distances are given at every other hop, or every third, ..."""

MOST_VISITS = 1_000_000_000
"""Nodes visited two hops from the targets of latent pairs, before only a sample of targets is looked at."""

PIECES = 64
CHANCE_TARGETS, CHANCE_SOURCES = 2000, 50


@dataclass(frozen=True)
class DistanceAtHop:
    """Latent distances of nodes that are so many hops apart: a median, and the middle 50 and 80 percent."""

    hops: int
    pairs: int
    low: float
    lower: float
    median: float
    upper: float
    high: float


@dataclass(frozen=True)
class DistancesByHop:
    r"""How far pairs of one component are apart in the latent space, by their distance in the graph.

    Attributes:
        residual_variance: :math:`1 - R^2` of the two distances (Tenenbaum et al. 2000): 0 where one is a
            linear function of the other, 1 where neither tells of the other; NaN where one does not vary.
        pairs: How many were looked at.
    """

    residual_variance: float
    pairs: int
    rows: tuple[DistanceAtHop, ...]


@dataclass(frozen=True)
class HopShares:
    """How far apart in the graph the nodes of pairs are, as shares of all pairs; NaN where there are none.

    Attributes:
        pairs: How many were looked at.
    """

    one: float
    two: float
    three: float
    more: float
    unreachable: float
    pairs: int


def distances_by_hop(
    pos: Position, edge_index: EdgeIndex, geometry: str = "euclidean", seed: int = 0
) -> DistancesByHop:
    """Compare the distances of pairs in the latent space with their hops in the graph.

    All pairs count in graphs of up to 2000 nodes, and those between 256 and 8192 random nodes in larger ones,
    which takes 256 bytes a node (twice as many from a diameter of 255 on). In the Poincaré ball distances are
    hyperbolic.

    Args:
        edge_index: The graph in canonical form.

    Example:
        >>> line = torch.tensor([[0.0], [1.0], [2.0]])
        >>> found = distances_by_hop(line, torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> round(found.residual_variance, 6), found.pairs, found.rows[1].median
        (0.0, 6, 2.0)
    """
    num_nodes = pos.size(0)
    rows = graphs.adjacency(edge_index, num_nodes)
    everyone = np.arange(num_nodes)
    if num_nodes <= ALL_PAIRS:
        sources = targets = everyone
    else:
        random = np.random.default_rng(seed)
        sources = np.sort(random.permutation(num_nodes)[:SOURCES_PER_SWEEP])
        targets = np.sort(random.permutation(num_nodes)[:TARGETS])
    hops = np.concatenate(
        [
            _hops(rows.indptr, rows.indices, sources[i : i + SOURCES_PER_SWEEP], targets)
            for i in range(0, len(sources), SOURCES_PER_SWEEP)
        ]
    )
    places = pos.detach().cpu().double()
    distance = Geodesic() if geometry == "poincare" else Euclidean()
    ends = places[torch.from_numpy(targets)]
    away = np.stack([distance(places[s].expand_as(ends), ends).numpy() for s in sources.tolist()])
    is_counted = hops > 0
    hops, away = hops[is_counted], away[is_counted]
    return DistancesByHop(_residual_variance(hops, away), len(hops), _distance_rows(hops, away))


def _hops(indptr: np.ndarray, indices: np.ndarray, sources: np.ndarray, targets: np.ndarray) -> np.ndarray:
    """Return hops from up to 256 nodes to others, -1 where no path leads."""
    for dtype in HOP_TYPES:
        out, largest = hops_from(indptr, indices, sources, 0, dtype)
        if largest >= 0:
            found = out[targets].T.astype(np.int64)
            found[found == np.iinfo(dtype).max] = -1
            return found
    raise AssertionError("a diameter of 2^32 needs more nodes than memory can hold")


def _residual_variance(hops: np.ndarray, away: np.ndarray) -> float:
    if not len(hops):
        return float("nan")
    one, other = hops - hops.mean(), away - away.mean()
    scale = (one**2).sum() * (other**2).sum()
    return float(1 - (one * other).sum() ** 2 / scale) if scale > 0 else float("nan")


def _distance_rows(hops: np.ndarray, away: np.ndarray) -> tuple[DistanceAtHop, ...]:
    order = np.argsort(hops, kind="stable")
    counts = np.bincount(hops)
    parts = np.split(away[order], np.cumsum(counts)[:-1])
    step = -(-(len(counts) - 1) // MOST_ROWS) if len(counts) > 1 else 1
    return tuple(
        DistanceAtHop(h, len(parts[h]), *np.quantile(parts[h], (0.1, 0.25, 0.5, 0.75, 0.9)).tolist())
        for h in range(1, len(counts), step)
        if len(parts[h])
    )


@no_type_check
@compiled()
def _near(indptr, indices, sources, starts, targets, first, stop, out):
    """Write 1, 2, 3 for pairs so many hops apart, and 0 for others.

    The sources of target ``targets[i]`` are those from ``starts[i]`` to ``starts[i + 1]``.
    """
    mark = np.full(len(indptr) - 1, -1, np.int64)  # 2i: a neighbor of target i; 2i + 1: two hops away
    for i in range(first, stop):
        target = targets[i]
        for e in range(indptr[target], indptr[target + 1]):
            mark[indices[e]] = 2 * i
        for e in range(indptr[target], indptr[target + 1]):
            between = indices[e]
            for f in range(indptr[between], indptr[between + 1]):
                if mark[indices[f]] < 2 * i:
                    mark[indices[f]] = 2 * i + 1
        for k in range(starts[i], starts[i + 1]):
            source = sources[k]
            if mark[source] >= 2 * i:
                out[k] = mark[source] - 2 * i + 1
                continue
            for e in range(indptr[source], indptr[source + 1]):
                if mark[indices[e]] == 2 * i + 1:
                    out[k] = 3
                    break


def hop_shares(
    pairs: Int[Tensor, "2 num_pairs"], edge_index: EdgeIndex, num_nodes: int, seed: int = 0
) -> HopShares:
    """Return how far apart in the graph the two nodes of pairs are.

    Exact where few nodes lie within two hops; else all pairs of a random sample of targets are looked at.

    Args:
        pairs: Source -> target, no self-loops.
        edge_index: The graph in canonical form.

    Example:
        >>> path = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
        >>> hop_shares(torch.tensor([[0, 0], [1, 2]]), path, num_nodes=4)
        HopShares(one=0.5, two=0.5, three=0.0, more=0.0, unreachable=0.0, pairs=2)
    """
    graphs.check_edges(pairs, num_nodes)
    rows = graphs.adjacency(edge_index, num_nodes)
    indptr, indices = rows.indptr, rows.indices
    source, target = pairs.cpu().numpy()
    order = np.argsort(target, kind="stable")
    source, target = source[order], target[order]
    targets, counts = np.unique(target, return_counts=True)
    degree = np.diff(indptr)
    total = np.concatenate([[0], np.cumsum(degree[indices])])
    visits = (total[indptr[1:]] - total[indptr[:-1]])[targets].sum() + degree[source].sum()
    if visits > MOST_VISITS:
        few = max(1, int(len(targets) * MOST_VISITS / visits))
        is_chosen = np.zeros(len(targets), bool)
        is_chosen[np.random.default_rng(seed).permutation(len(targets))[:few]] = True
        kept = np.repeat(is_chosen, counts)
        source, target = source[kept], target[kept]
        targets, counts = targets[is_chosen], counts[is_chosen]
    if not len(source):
        nothing = float("nan")
        return HopShares(nothing, nothing, nothing, nothing, nothing, pairs=0)
    starts = np.concatenate([[0], np.cumsum(counts)])
    hops = np.zeros(len(source), np.int8)
    piece = -(-len(targets) // PIECES)

    def work(first: int) -> None:
        stop = min(first + piece, len(targets))
        _near(indptr, indices, source, starts, targets, first, stop, hops)

    over_pieces(work, range(0, len(targets), piece))
    component = graphs.components(edge_index.cpu(), num_nodes).numpy()
    apart = float((component[source] != component[target]).mean())
    one, two, three = ((hops == h).mean() for h in (1, 2, 3))
    far = float((hops == 0).mean())
    return HopShares(float(one), float(two), float(three), max(far - apart, 0.0), apart, len(source))


def random_pairs(num_nodes: int, seed: int) -> Int[Tensor, "2 num_pairs"]:
    """Return random ordered pairs of different nodes, many with the same target.

    Example:
        >>> random_pairs(2, seed=0).unique(dim=1).tolist()
        [[0, 1], [1, 0]]
    """
    if num_nodes < 2:
        return torch.zeros(2, 0, dtype=torch.long)
    random = np.random.default_rng(seed)
    targets = np.repeat(random.integers(num_nodes, size=CHANCE_TARGETS), CHANCE_SOURCES)
    other = random.integers(num_nodes - 1, size=len(targets))
    return torch.from_numpy(np.stack([other + (other >= targets), targets]))
