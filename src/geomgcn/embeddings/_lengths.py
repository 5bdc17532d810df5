"""Shortest paths by the lengths of edges, in whole numbers, so that both directions are equally long."""

import threading
from typing import no_type_check

import numpy as np

from geomgcn._compiled import compiled
from geomgcn.embeddings._kernels import BUDGET

FINE, COARSE = 51, 31
"""Bits of a distance while it is summed, and when it is kept. Whole numbers have the same sum in any order,
which floats have not; 2^-51 of the largest distance is less than a float would lose."""


class Lengths:
    """Shortest paths by lengths of edges, found by Dijkstra's algorithm.

    Example:
        >>> ends = np.array([0, 1, 2]), np.array([1, 0])
        >>> paths = Lengths(*ends, np.array([0.75, 0.75]))
        >>> (paths.block(np.array([0]), first=1)[0] * paths.unit).tolist()
        [[0.75]]
    """

    negligible = 1e-9

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, lengths: np.ndarray) -> None:
        self.indptr, self.indices = indptr, indices
        self.num_nodes = len(indptr) - 1
        # No distance is more than twice the largest one from any node. Edges longer than that are on no
        # shortest path, and are cut so that they fit.
        reach = float(nearest_first(indptr, indices, np.minimum(lengths, 1.0), 0).max())
        _, exponent = np.frexp(2 * reach)
        exponent = int(exponent)
        self.unit = float(np.ldexp(1.0, exponent - COARSE))
        cut = np.minimum(lengths, np.ldexp(1.0, min(exponent + 1, 1000)))
        self.steps = np.rint(np.ldexp(cut, FINE - exponent))  # whole numbers, as floats
        self.lengths = lengths

    def block(
        self, sources: np.ndarray, first: int, stopped: threading.Event | None = None
    ) -> tuple[np.ndarray, int]:
        """Return distances of the nodes from ``first`` on, as rows, and the largest of all nodes."""
        out = np.empty((self.num_nodes - first, len(sources)), np.uint32)
        largest = 0
        for number, source in enumerate(sources):
            distance = nearest_first(self.indptr, self.indices, self.steps, int(source), stopped)
            if stopped is not None and stopped.is_set():
                break
            rounded = np.rint(distance * 2.0 ** (COARSE - FINE))
            out[:, number] = rounded[first:]
            largest = max(largest, int(rounded.max()))
        return out, largest


def nearest_first(
    indptr: np.ndarray,
    indices: np.ndarray,
    lengths: np.ndarray,
    source: int,
    stopped: threading.Event | None = None,
) -> np.ndarray:
    """Return the lengths of shortest paths from a node; infinite where there is none.

    Example:
        >>> nearest_first(np.array([0, 1, 2]), np.array([1, 0]), np.array([0.5, 0.5]), source=1).tolist()
        [0.5, 0.0]
    """
    num_nodes = len(indptr) - 1
    distance = np.full(num_nodes, np.inf)
    heap, key, place = np.empty(num_nodes, np.int32), np.empty(num_nodes), np.full(num_nodes, -1, np.int32)
    distance[source], heap[0], key[0], place[source] = 0.0, source, 0.0, 0
    size = 1
    while size:
        size = _settle(indptr, indices, lengths, distance, heap, key, place, size, BUDGET // 16)
        if stopped is not None and stopped.is_set():
            break
    return distance


@no_type_check
@compiled()
def _settle(indptr, indices, lengths, distance, heap, key, place, size, budget):
    """Go on with Dijkstra's algorithm, and return how many nodes wait in the heap.

    Args:
        heap: Each node has up to four below it, a heap only half as deep as with two.
        key: Distances of the nodes in the heap, beside each other where they are compared.
        place: Of each node in the heap; -1 before it was there.
        budget: About how many edges to look at before returning.
    """
    while size > 0 and budget > 0:
        node, reached = heap[0], key[0]
        size -= 1
        last, late = heap[size], key[size]
        hole = 0
        while 4 * hole + 1 < size:
            first = 4 * hole + 1
            child = first
            for other in range(first + 1, min(first + 4, size)):
                if key[other] < key[child]:
                    child = other
            if key[child] >= late:
                break
            heap[hole], key[hole] = heap[child], key[child]
            place[heap[hole]] = hole
            hole = child
        heap[hole], key[hole] = last, late
        place[last] = hole
        budget -= 1 + indptr[node + 1] - indptr[node]
        for e in range(indptr[node], indptr[node + 1]):
            near, length = indices[e], reached + lengths[e]
            if length >= distance[near]:
                continue
            distance[near] = length
            hole = place[near]
            if hole < 0:
                hole = size
                size += 1
            while hole > 0 and key[(hole - 1) >> 2] > length:
                above = (hole - 1) >> 2
                heap[hole], key[hole] = heap[above], key[above]
                place[heap[hole]] = hole
                hole = above
            heap[hole], key[hole] = near, length
            place[near] = hole
    return size
