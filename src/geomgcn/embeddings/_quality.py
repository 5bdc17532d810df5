"""How well positions give the graph back; no labels are looked at."""

from dataclasses import dataclass
from typing import no_type_check

import numpy as np

from geomgcn import graphs
from geomgcn._compiled import compiled
from geomgcn._types import EdgeIndex, Position
from geomgcn.embeddings._kernels import over_pieces

NODES_PER_PIECE = 64


@dataclass(frozen=True)
class Reconstruction:
    """How well the nearest nodes are the neighbors (Nickel and Kiela 2017, Section 4).

    Attributes:
        mean_rank: Mean over linked pairs (u, v) of one more than the number of nodes that are no neighbors of
            u and at most as far from u as v is; 1 is best.
        mean_average_precision: Mean over nodes u of the average, over its neighbors v, of the share of
            neighbors of u among the nodes up to the distance of v; 1 is best.
        num_nodes: How many nodes u were looked at: those with neighbors, or a sample of them.
    """

    mean_rank: float
    mean_average_precision: float
    num_nodes: int


def reconstruction(
    pos: Position, edge_index: EdgeIndex, geometry: str = "euclidean", max_nodes: int = 20_000, seed: int = 0
) -> Reconstruction:
    """Return mean rank and mean average precision of the graph's reconstruction from positions.

    A node that is no neighbor and exactly as far as a neighbor counts as nearer, so that nothing is gained
    by putting all nodes in one place. Takes time quadratic in the number of nodes, up to ``max_nodes``.

    Args:
        geometry: ``"euclidean"``, or ``"poincare"`` for the hyperbolic distance.
        max_nodes: A random sample of nodes is looked at where more have neighbors.

    Example:
        >>> import torch
        >>> line = torch.tensor([[0.0], [1.0], [2.0], [9.0]])
        >>> reconstruction(line, torch.tensor([[0, 1], [1, 2]]))
        Reconstruction(mean_rank=1.0, mean_average_precision=1.0, num_nodes=3)
    """
    if geometry not in ("euclidean", "poincare"):
        raise ValueError(f"geometry is 'euclidean' or 'poincare', got {geometry!r}.")
    graphs.check_positions(pos)
    num_nodes = pos.size(0)
    canonical, _ = graphs.canonical_edges(edge_index.cpu(), num_nodes)
    source, target = canonical.numpy()
    degree = np.bincount(source, minlength=num_nodes)
    indptr = np.concatenate([[0], np.cumsum(degree)])
    nodes = np.flatnonzero(degree)
    if len(nodes) > max_nodes:
        nodes = np.sort(np.random.default_rng(seed).permutation(nodes)[:max_nodes])
    if not len(nodes):
        return Reconstruction(float("nan"), float("nan"), 0)
    places = pos.detach().cpu().double().numpy()
    # Seen from one node, the hyperbolic distance grows with |u - v|^2 / (1 - |v|^2).
    radius = np.sqrt((places**2).sum(axis=1))
    room = (1 - radius) * (1 + radius) if geometry == "poincare" else np.ones(num_nodes)
    ranks, precisions = np.zeros(len(nodes)), np.zeros(len(nodes))

    def work(start: int) -> None:
        part = slice(start, start + NODES_PER_PIECE)
        _rank(places, room, indptr, target, nodes[part], ranks[part], precisions[part])

    over_pieces(work, range(0, len(nodes), NODES_PER_PIECE))
    return Reconstruction(
        float(ranks.sum() / degree[nodes].sum()), float(precisions.mean()), num_nodes=len(nodes)
    )


@no_type_check
@compiled()
def _rank(pos, room, indptr, indices, nodes, ranks, precisions):
    """Write the sum of the ranks of a node's neighbors, and the average precision, of each of ``nodes``."""
    num_nodes, dim = pos.shape
    linked = np.zeros(num_nodes, np.bool_)
    away = np.empty(num_nodes)
    for i in range(len(nodes)):
        u = nodes[i]
        row = indices[indptr[u] : indptr[u + 1]]
        for v in range(num_nodes):
            square = 0.0
            for axis in range(dim):
                square += (pos[u, axis] - pos[v, axis]) ** 2
            away[v] = square / room[v]
        near = np.sort(away[row])
        linked[row] = True
        # How many strangers are nearer than or as near as the first, second, ... neighbor.
        before = np.zeros(len(row) + 1, np.int64)
        for v in range(num_nodes):
            if not linked[v] and v != u:
                before[np.searchsorted(near, away[v])] += 1
        strangers = 0
        for k in range(len(row)):
            strangers += before[k]
            ranks[i] += strangers + 1
            precisions[i] += (k + 1) / (strangers + k + 1)
        precisions[i] /= len(row)
        linked[row] = False
