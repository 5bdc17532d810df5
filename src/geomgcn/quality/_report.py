"""All that can be said of an embedding without labels, in one value."""

import math
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from torch import Tensor

from geomgcn import graphs
from geomgcn._progress import OnStep
from geomgcn._types import EdgeIndex, Position
from geomgcn.embeddings import reconstruction
from geomgcn.latent import latent_neighborhood
from geomgcn.neighborhoods import Space
from geomgcn.quality._hops import DistancesByHop, HopShares, distances_by_hop, hop_shares, random_pairs
from geomgcn.quality._sizes import SizeBin, Sizes, size_bins

MOST_COMPARISONS = 1_000_000_000
"""Pairs of nodes whose distance is looked at for mean rank and precision."""

MOST_RANKED = 20_000


@dataclass(frozen=True)
class Quality:
    """How good an embedding is, as far as can be told without labels; what chance would give beside it.

    Attributes:
        distances: Latent distances against hops, with the residual variance.
        mean_rank, mean_average_precision: See :class:`~geomgcn.embeddings.Reconstruction`.
        chance_rank, chance_precision: What positions at random would have on average.
        ranked_nodes: How many nodes these two were measured on.
        latent_pairs: Ordered pairs of N_s; the radius rule makes them about as many as those of N_g.
        distance: Name of the distance that the radius rule used.
        radius, max_coincident: See :class:`~geomgcn.latent.LatentNeighborhood`.
        graph_sizes, latent_sizes: Of N_g and N_s, over nodes.
        size_bins: The same as a histogram.
        places: Distinct positions.
        coincident_nodes: Nodes that share their place with another.
        hops: How far apart in the graph the pairs of N_s are.
        chance_hops: The same for random pairs.
        overlap: Share of the pairs of N_s that are edges; NaN without pairs.
        chance_overlap: The same for random pairs.
    """

    num_nodes: int
    num_pairs: int
    geometry: str
    distances: DistancesByHop
    mean_rank: float
    chance_rank: float
    mean_average_precision: float
    chance_precision: float
    ranked_nodes: int
    latent_pairs: int
    distance: str
    radius: float
    max_coincident: int | None
    graph_sizes: Sizes
    latent_sizes: Sizes
    size_bins: tuple[SizeBin, ...]
    places: int
    coincident_nodes: int
    hops: HopShares
    chance_hops: HopShares
    overlap: float
    chance_overlap: float

    def as_dict(self) -> dict[str, Any]:
        """Return all of it as JSON can hold it: None for what is no number or infinite.

        Example:
            >>> import torch
            >>> alone = quality(torch.zeros(1, 2), torch.zeros(2, 0, dtype=torch.long))
            >>> alone.as_dict()["mean_rank"] is None
            True
        """
        return {name: _plain(value) for name, value in asdict(self).items()}

    def lines(self) -> list[str]:
        """Return what a person reads.

        Example:
            >>> import torch
            >>> edges = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]])
            >>> print(quality(torch.tensor([[0.0], [1.0], [2.0]]), edges).lines()[0])
            distances: residual variance 0.000 over 6 pairs (0: as far apart as in the graph; 1: no relation)
        """
        graph, latent, hops, chance = self.graph_sizes, self.latent_sizes, self.hops, self.chance_hops
        kept = (
            "" if self.max_coincident is None else f"; of coincident nodes each keeps {self.max_coincident}"
        )
        return [
            f"distances: residual variance {_number(self.distances.residual_variance)} over "
            f"{self.distances.pairs} pairs (0: as far apart as in the graph; 1: no relation)",
            f"neighbors: mean rank {_number(self.mean_rank, 1)} (by chance {_number(self.chance_rank, 1)}), "
            f"mean average precision {_number(self.mean_average_precision)} "
            f"(by chance {_number(self.chance_precision)}), over {self.ranked_nodes} nodes",
            f"places: {self.places} of {self.num_nodes} nodes, {self.coincident_nodes} nodes share theirs",
            f"N_s: {self.latent_pairs} pairs (N_g: {self.num_pairs}), {self.distance} radius "
            f"{self.radius:.4g}{kept}",
            f"size of N_s: {latent.min} to {latent.max}, median {latent.median:g}, mean {latent.mean:.2f}, "
            f"90 % up to {latent.most}; {latent.none} nodes have none",
            f"size of N_g: {graph.min} to {graph.max}, median {graph.median:g}, mean {graph.mean:.2f}, "
            f"90 % up to {graph.most}; {graph.none} nodes have none",
            f"hops between the nodes of a pair of N_s: {_shares(hops)}",
            f"hops between random nodes: {_shares(chance)}",
            f"overlap: {_percent(self.overlap)} of N_s are edges (by chance {_percent(self.chance_overlap)})",
        ]


def quality(
    pos: Position,
    edge_index: EdgeIndex,
    geometry: str = "euclidean",
    seed: int = 0,
    on_step: OnStep | None = None,
) -> Quality:
    """Measure an embedding without labels.

    Takes memory linear in nodes and edges, and about a minute for a million nodes: larger graphs are
    sampled, by ``seed``.

    Args:
        edge_index: Any form of the graph; the canonical one counts.
        geometry: ``"euclidean"`` or ``"poincare"``.
        on_step: Is told the name of a stage, how many are done, and how many there are.

    Example:
        >>> import torch
        >>> line = torch.arange(10.0).view(-1, 1)
        >>> path = torch.stack([torch.arange(9), torch.arange(1, 10)])
        >>> found = quality(line, path)
        >>> round(found.distances.residual_variance, 6), found.mean_rank, found.overlap
        (0.0, 1.0, 1.0)
    """
    told = on_step or (lambda stage, done, total: None)
    space = Space(pos, geometry)  # checks the geometry
    graphs.check_positions(pos)
    num_nodes = pos.size(0)
    canonical, _ = graphs.canonical_edges(edge_index.cpu(), num_nodes)
    pos = pos.detach().cpu()
    told("hop distances", 0, 4)
    distances = distances_by_hop(pos, canonical, geometry, seed)
    told("ranks", 1, 4)
    most = min(MOST_RANKED, max(100, MOST_COMPARISONS // num_nodes))
    ranks = reconstruction(pos, canonical, geometry, most, seed)
    told("latent pairs", 2, 4)
    found = latent_neighborhood(pos, canonical.size(1), space.resolved_distance)
    told("hops of pairs", 3, 4)
    degree, latent = (
        np.bincount(pairs[1].numpy(), minlength=num_nodes) for pairs in (canonical, found.edge_index)
    )
    chance_rank, chance_precision = _by_chance(degree, num_nodes)
    places, coincident = _places(pos.double().numpy())
    result = Quality(
        num_nodes=num_nodes,
        num_pairs=canonical.size(1),
        geometry=geometry,
        distances=distances,
        mean_rank=ranks.mean_rank,
        chance_rank=chance_rank,
        mean_average_precision=ranks.mean_average_precision,
        chance_precision=chance_precision,
        ranked_nodes=ranks.num_nodes,
        latent_pairs=found.edge_index.size(1),
        distance=space.resolved_distance.name,
        radius=found.radius,
        max_coincident=found.max_coincident,
        graph_sizes=Sizes.of(degree),
        latent_sizes=Sizes.of(latent),
        size_bins=size_bins(degree, latent),
        places=places,
        coincident_nodes=coincident,
        hops=hop_shares(found.edge_index, canonical, num_nodes, seed),
        chance_hops=hop_shares(random_pairs(num_nodes, seed), canonical, num_nodes, seed),
        overlap=_overlap(canonical, found.edge_index, num_nodes),
        chance_overlap=canonical.size(1) / (num_nodes * (num_nodes - 1)) if num_nodes > 1 else math.nan,
    )
    told("hops of pairs", 4, 4)
    return result


def _by_chance(degree: np.ndarray, num_nodes: int) -> tuple[float, float]:
    """Return mean rank and mean average precision of a random order of the other nodes, in expectation."""
    linked = degree[degree > 0].astype(float)
    if not len(linked):
        return math.nan, math.nan
    others = num_nodes - 1
    rank = 1 + (linked * (others - linked)).sum() / (2 * linked.sum())
    # Each place in the order holds a neighbor with chance d / others; of the places before it, as many as the
    # other neighbors are likely to hold.
    harmonic = (1 / np.arange(1, others + 1)).sum()
    beside = (linked - 1) / max(others - 1, 1) * (others - harmonic)
    return float(rank), float(((harmonic + beside) / others).mean())


def _places(pos: np.ndarray) -> tuple[int, int]:
    """Return the number of distinct rows, and of rows that equal another."""
    ordered = pos[np.lexsort(pos.T)]
    is_new = np.append(True, (np.diff(ordered, axis=0) != 0).any(axis=1))
    size = np.diff(np.append(np.flatnonzero(is_new), len(pos)))
    return len(size), int(size[size > 1].sum())


def _overlap(edges: Tensor, pairs: Tensor, num_nodes: int) -> float:
    if not pairs.size(1):
        return math.nan
    # Edges are sorted by source, and the graph is symmetric.
    keys = (edges[0] * num_nodes + edges[1]).numpy()
    wanted = (pairs[1] * num_nodes + pairs[0]).numpy()
    if not len(keys):
        return 0.0
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return float((keys[place] == wanted).mean())


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _plain(item) for name, item in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _number(value: float, digits: int = 3) -> str:
    return "not defined" if math.isnan(value) else f"{value:.{digits}f}"


def _percent(value: float) -> str:
    if math.isnan(value):
        return "none"
    return f"{100 * value:.1f} %" if value == 0 or value >= 5e-4 else f"{100 * value:.1g} %"


def _shares(hops: HopShares) -> str:
    if not hops.pairs:
        return "there are no pairs"
    named = {"1": hops.one, "2": hops.two, "3": hops.three, "4 or more": hops.more}
    listed = ", ".join(f"{name}: {_percent(share)}" for name, share in named.items())
    return f"{listed}, not connected: {_percent(hops.unreachable)} (of {hops.pairs} pairs)"
