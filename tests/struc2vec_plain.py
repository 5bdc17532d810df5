"""Rings, warping and distances of struc2vec as the original describes them, slow and plain."""

from collections import Counter

import networkx as nx
import numpy as np
from torch import Tensor

from geomgcn.embeddings._context_graph import ISOLATED, Comparisons, ContextGraph, context_graph, layers_of
from geomgcn.embeddings._degree_rings import DegreeRings, degree_rings
from geomgcn.embeddings._dtw import warp_all

Pairs = list[tuple[float, int]]


def rows_of(edges: Tensor, num_nodes: int) -> tuple[np.ndarray, np.ndarray]:
    """Compressed rows of canonical edges."""
    source, target = edges.numpy()
    return np.concatenate([[0], np.cumsum(np.bincount(source, minlength=num_nodes))]), target


def plain_rings(edges: Tensor, num_nodes: int, layers: int | None) -> list[list[Pairs]]:
    """Of each node, the (degree, count) pairs of each ring."""
    graph = nx.Graph(edges.t().tolist())
    graph.add_nodes_from(range(num_nodes))
    result = []
    for node in range(num_nodes):
        rings: dict[int, Counter] = {}
        for other, hops in nx.single_source_shortest_path_length(graph, node, cutoff=layers).items():
            rings.setdefault(hops, Counter())[graph.degree(other)] += 1
        result.append([sorted(rings[k].items()) for k in sorted(rings)])
    return result


def plain_warping(one: Pairs, other: Pairs) -> float:
    """The textbook's table, all of it."""
    table = np.full((len(one) + 1, len(other) + 1), np.inf)
    table[0, 0] = 0
    for i, (a, n) in enumerate(one):
        for j, (b, m) in enumerate(other):
            cost = (max(a, b) / min(a, b) - 1) * max(n, m)
            table[i + 1, j + 1] = cost + min(table[i, j], table[i, j + 1], table[i + 1, j])
    return table[-1, -1]


def plain_distances(edges: Tensor, num_nodes: int, layers: int | None, isolated: float) -> np.ndarray:
    """f_k of all pairs of nodes, infinite where a ring is empty; ``[layers, nodes, nodes]``."""
    rings = [
        [[(max(a, isolated), n) for a, n in ring] for ring in each]
        for each in plain_rings(edges, num_nodes, layers)
    ]
    f = np.full((max(map(len, rings)), num_nodes, num_nodes), np.inf)
    for u in range(num_nodes):
        for v in range(num_nodes):
            total = 0.0
            for k in range(min(len(rings[u]), len(rings[v]))):
                total += plain_warping(rings[u][k], rings[v][k])
                f[k, u, v] = total
    return f


def graph_of_walks(
    edges: Tensor, num_nodes: int, layers: int | None, candidates: int
) -> tuple[DegreeRings, ContextGraph]:
    """Ours: all stages before the walks."""
    found = degree_rings(*rows_of(edges, num_nodes), layers)
    classes = layers_of(found, candidates)
    comparisons = Comparisons(found, classes)
    cost = np.full(len(comparisons.ones), np.nan)
    degrees = np.maximum(found.degree, ISOLATED)[found.kinds]
    warp_all(found.indptr, degrees, found.counts.astype(float), comparisons.ones, comparisons.others, cost)
    return found, context_graph(classes, comparisons.distances(cost), np.bincount(found.role))
