"""Connected components: who belongs to them, and a place for every one of them."""

from dataclasses import dataclass
from typing import no_type_check

import numpy as np

from geomgcn import graphs
from geomgcn._compiled import compiled
from geomgcn._types import EdgeIndex


@dataclass(frozen=True, eq=False)
class Components:
    """The components of a graph, large ones first, then by first node.

    Attributes:
        nodes: All nodes, component by component, ascending within each.
        starts: Where each component begins in ``nodes``, and the end of the last.
        place: Of each node, its number within its component.

    Example:
        >>> one_edge_of_four_nodes = np.array([0, 0, 1, 1, 2]), np.array([3, 1])
        >>> found = Components.of(*one_edge_of_four_nodes)
        >>> found.nodes.tolist(), found.starts.tolist()
        ([1, 3, 0, 2], [0, 2, 3, 4])
    """

    nodes: np.ndarray
    starts: np.ndarray
    place: np.ndarray

    @classmethod
    def of(cls, indptr: np.ndarray, indices: np.ndarray) -> "Components":
        """Find the components of a graph given as compressed rows."""
        label, sizes = _labels(indptr, indices)
        by_size = np.argsort(-sizes, kind="stable")  # labels are in the order of first nodes
        starts = np.zeros(len(sizes) + 1, np.int64)
        np.cumsum(sizes[by_size], out=starts[1:])
        begin = np.empty_like(sizes)
        begin[by_size] = starts[:-1]
        nodes, place = _grouped(label, begin)
        return cls(nodes, starts, place)

    @property
    def sizes(self) -> np.ndarray:
        """How many nodes each has."""
        return np.diff(self.starts)

    def __len__(self) -> int:
        return len(self.starts) - 1

    def __getitem__(self, number: int) -> np.ndarray:
        """Return the nodes of a component."""
        return self.nodes[self.starts[number] : self.starts[number + 1]]

    def rows(
        self, number: int, indptr: np.ndarray, indices: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return a component as a graph of its own, and where its entries were."""
        nodes = self[number]
        starts, ends = indptr[nodes], indptr[nodes + 1]
        own = np.zeros(len(nodes) + 1, np.int64)
        np.cumsum(ends - starts, out=own[1:])
        if own[-1] == len(indices):  # nothing else has edges
            return own, self.place[indices], np.arange(len(indices))
        # For each entry: where its row starts in the whole graph, plus its place within the row.
        entries = np.arange(own[-1]) + np.repeat(starts - own[:-1], ends - starts)
        return own, self.place[indices[entries]], entries


@no_type_check
@compiled()
def _labels(indptr, indices):
    """Return the number of each node's component, by first nodes, and the sizes."""
    num_nodes = len(indptr) - 1
    label, sizes = np.full(num_nodes, -1, np.int32), np.zeros(num_nodes, np.int64)
    stack = np.empty(num_nodes, np.int32)
    count = 0
    for start in range(num_nodes):
        if label[start] >= 0:
            continue
        label[start], stack[0], waiting = count, start, 1
        while waiting > 0:
            waiting -= 1
            node = stack[waiting]
            sizes[count] += 1
            for e in range(indptr[node], indptr[node + 1]):
                near = indices[e]
                if label[near] < 0:
                    label[near], stack[waiting] = count, near
                    waiting += 1
        count += 1
    return label, sizes[:count].copy()


@no_type_check
@compiled()
def _grouped(label, begin):
    """Return the nodes of each component from its place in ``begin`` on, and their numbers within."""
    nodes, place = np.empty(len(label), np.int64), np.empty(len(label), np.int32)
    size = np.zeros(len(begin), np.int64)
    for node in range(len(label)):
        own = label[node]
        nodes[begin[own] + size[own]] = node
        place[node] = size[own]
        size[own] += 1
    return nodes, place


def members_by_size(edge_index: EdgeIndex, num_nodes: int) -> list[np.ndarray]:
    """Return the nodes of each component, ascending; large components first, then by first node."""
    rows = graphs.adjacency(edge_index, num_nodes)
    found = Components.of(rows.indptr, rows.indices)
    return np.split(found.nodes, found.starts[1:-1])


def side_by_side(boxes: np.ndarray, gap: float) -> np.ndarray:
    """Return how far to move each component so that their bounding boxes are ``gap`` apart.

    Boxes go on shelves in the order given, from left to right, and the next shelf lies above. Shelves
    are about as wide as all of them are high. The first box stays where it is. All moves are
    sums and differences of coordinates and of ``gap``, hence exact when these lie on one grid. Only
    the first two axes are used; with one axis there is one shelf.

    Args:
        boxes: Lowest and highest corner of each component, ``[num_components, 2, dim]``.

    Example:
        >>> side_by_side(np.array([[[0.0, 0.0], [4.0, 2.0]], [[0.0, 0.0], [0.0, 0.0]]]), gap=3.0).tolist()
        [[0.0, 0.0], [0.0, 5.0]]
    """
    num_components, _, dim = boxes.shape
    extents = boxes[:, 1] - boxes[:, 0]
    footprints = extents[:, :2] + gap
    width = np.inf if dim == 1 else max(np.sqrt(footprints.prod(axis=1).sum()), footprints[0, 0])
    corners = np.zeros((num_components, dim))
    _shelve(footprints, width, corners)
    moves = corners - boxes[:, 0]
    moves[:, 2:] = 0.0
    return moves - moves[0]


@no_type_check
@compiled()
def _shelve(footprints, width, corners):
    """Write the corner of each box."""
    x = y = height = 0.0
    for k in range(len(footprints)):
        if x > 0 and x + footprints[k, 0] > width:
            x, y, height = 0.0, y + height, 0.0
        corners[k, 0] = x
        x += footprints[k, 0]
        if footprints.shape[1] > 1:
            corners[k, 1] = y
            height = max(height, footprints[k, 1])
