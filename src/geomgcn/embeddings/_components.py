"""A place for every connected component: shelves, the largest component at the origin."""

import numpy as np

from geomgcn import graphs
from geomgcn._types import EdgeIndex


def members_by_size(edge_index: EdgeIndex, num_nodes: int) -> list[np.ndarray]:
    """Return the nodes of each component, ascending; large components first, then by first node."""
    label = graphs.components(edge_index, num_nodes).numpy()
    order = np.argsort(label, kind="stable")
    ends = np.flatnonzero(np.diff(label[order])) + 1
    members = np.split(order, ends)
    return sorted(members, key=lambda nodes: (-len(nodes), nodes[0]))


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
    x = y = height = 0.0
    for k in range(num_components):
        if x > 0 and x + footprints[k, 0] > width:
            x, y, height = 0.0, y + height, 0.0
        corners[k, 0] = x
        x += footprints[k, 0]
        if dim > 1:
            corners[k, 1] = y
            height = max(height, footprints[k, 1])
    moves = corners - boxes[:, 0]
    moves[:, 2:] = 0.0
    return moves - moves[0]
