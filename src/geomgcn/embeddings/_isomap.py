"""Isomap: positions whose straight-line distances are near the distances in the graph."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import UInt
from scipy.sparse import coo_array, csr_array

from geomgcn import graphs
from geomgcn._types import EdgeIndex, Position
from geomgcn.embeddings._base import Embedding
from geomgcn.embeddings._components import members_by_size, side_by_side
from geomgcn.embeddings._kernels import all_hop_distances
from geomgcn.embeddings._scaling import TIE, leading_axes

GRID_BITS = 23
"""Steps of the grid in a diameter, as a power of two. Differences within a component are then whole
numbers of steps, about 2^25 at most, and the sum of their squares is exact in float64."""

FALSE_TWINS, TRUE_TWINS = 2.0, 0.5
"""Eigenvalues of the axes that tell twins apart: half the squared distance of two nodes with the same
neighbors, which is 2 when they are not linked and 1 when they are."""

SYMMETRIC = 1e-6
"""Skewness below which an axis has no longer side, so that its sign needs another rule."""

MEMOIZED_NODES = 32
"""Components up to this size are kept and used again for equal ones; thousands of pairs are common."""


@dataclass(frozen=True)
class Isomap(Embedding):
    r"""Exact Isomap: classical scaling of all hop distances (Tenenbaum et al. 2000; Section 3.1).

    .. math:: B = -\tfrac12 J D^2 J = U \Lambda U^\top, \qquad z_v = (\sqrt{\lambda_k}\, u_{vk})_k

    for the largest eigenvalues; axes without a positive eigenvalue are zero. The same graph gives the
    same bytes, whatever the number of threads. What the formula leaves open:

    * **Sign.** The longer tail of an axis (its skewness) points up; where both tails are equal, the
      first node that is not at 0 does. Order: by eigenvalue. A multiple eigenvalue (ring, square grid)
      has no axes of its own; fixed random vectors choose them.
    * **Grid.** Coordinates are rounded to multiples of 2^-23 of the largest hop diameter (rounded up to
      a power of two), so that nodes that coincide do so exactly and equal distances are equal.
    * **Twins.** Unlinked nodes of a component with the same neighbors get the same position, bit by bit,
      as soon as the axes have better to do than to tell them apart, which is so in all but tiny
      graphs. In those an axis may be for twins (a path of three nodes, a square), and they stand apart
      as the formula says; where there are more such axes than ``dim`` has room for (a star of four or
      more leaves), any choice among them would be arbitrary, and the distance between twins counts as 0.
    * **Components.** Each connected component is embedded by itself and keeps its distances. They are laid
      on shelves, the largest at the origin and the others by size and first node, an isolated node
      being a box of size 0. Between any two boxes is a gap of at least the longest hop distance and the
      longest diagonal of a component, so that nodes of one component are nearer to each other than to
      any other node.

    Takes :math:`O(nm/64 + n^2)` time and n^2 bytes (twice as many from a diameter of 255 on) for the
    largest component; where these are not free, a ``ValueError`` says so before they are taken.

    Args:
        dim: Axes of the latent space.

    Example:
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> Isomap(dim=2).embed(path, num_nodes=4).tolist()
        [[1.5, 0.0], [0.5, 0.0], [-0.5, 0.0], [-1.5, 0.0]]
    """

    dim: int = 2

    version: ClassVar[int | None] = 1
    equivariant: ClassVar[bool] = True

    def embed(self, edge_index: EdgeIndex, num_nodes: int) -> Position:
        """Return the positions of all nodes; the canonical graph of ``edge_index`` counts."""
        canonical, _ = graphs.canonical_edges(edge_index.cpu(), num_nodes)
        adjacency = _adjacency(canonical, num_nodes)
        components = members_by_size(canonical, num_nodes)
        raw, diameters = self._embed_each(adjacency, components)
        diameter = max(diameters)
        step = 2.0 ** (max(diameter - 1, 0).bit_length() - GRID_BITS)  # 2^ceil(log2(diameter)), exactly
        snapped = [np.round(pos / step) * step + 0.0 for pos in raw]  # + 0.0: no negative zeros
        boxes = np.stack([np.stack([pos.min(axis=0), pos.max(axis=0)]) for pos in snapped])
        longest = np.sqrt(((boxes[:, 1] - boxes[:, 0]) ** 2).sum(axis=1).max())
        moves = side_by_side(boxes, gap=float(np.ceil(max(longest, diameter, 1.0))) + 1.0)
        out = np.empty((num_nodes, self.dim))
        for nodes, pos, move in zip(components, snapped, moves, strict=True):
            out[nodes] = pos + move
        return torch.from_numpy(out).to(edge_index.device)

    def _embed_each(
        self, adjacency: csr_array, components: list[np.ndarray]
    ) -> tuple[list[np.ndarray], list[int]]:
        """Return positions and hop diameter of every component, equal small ones computed once."""
        known: dict[tuple[bytes, bytes], tuple[np.ndarray, int]] = {}
        results: list[tuple[np.ndarray, int]] = []
        place = np.empty(adjacency.shape[0], np.int64)  # number of a node within its component
        for nodes in components:
            if len(nodes) == 1:
                results.append((np.zeros((1, self.dim)), 0))
                continue
            place[nodes] = np.arange(len(nodes))
            indptr, indices = _rows(adjacency, nodes)
            indices = place[indices]
            if len(nodes) > MEMOIZED_NODES:
                results.append(_embed_connected(indptr, indices, self.dim))
                continue
            key = (indptr.tobytes(), indices.tobytes())
            if key not in known:
                known[key] = _embed_connected(indptr, indices, self.dim)
            results.append(known[key])
        return [pos for pos, _ in results], [diameter for _, diameter in results]


def hop_distances(edge_index: EdgeIndex, num_nodes: int) -> UInt[np.ndarray, "num_nodes num_nodes"]:
    """Return the number of edges on a shortest path between any two nodes, of the canonical graph.

    The type is the smallest of uint8, uint16 and uint32 that holds the diameter, and its largest value
    stands for "unreachable" (``np.iinfo(result.dtype).max``). A NumPy array, since torch computes
    little with unsigned types. A diameter of 254 still fits into n^2 bytes.

    Example:
        >>> hop_distances(torch.tensor([[0, 1], [1, 2]]), num_nodes=4)
        array([[  0,   1,   2, 255],
               [  1,   0,   1, 255],
               [  2,   1,   0, 255],
               [255, 255, 255,   0]], dtype=uint8)
    """
    canonical, _ = graphs.canonical_edges(edge_index.cpu(), num_nodes)
    adjacency = _adjacency(canonical, num_nodes)
    return all_hop_distances(adjacency.indptr, adjacency.indices)


def _adjacency(canonical: EdgeIndex, num_nodes: int) -> csr_array:
    """Return the canonical graph as sorted compressed rows."""
    source, target = canonical.numpy()
    ones = np.ones(len(source), np.int8)
    return coo_array((ones, (source, target)), shape=(num_nodes, num_nodes)).tocsr()


def _rows(adjacency: csr_array, nodes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return ``indptr`` and ``indices`` of some rows; columns keep their numbers."""
    starts, ends = adjacency.indptr[nodes], adjacency.indptr[nodes + 1]
    indptr = np.concatenate([[0], np.cumsum(ends - starts)])
    # For each entry: where its row starts in the whole graph, plus its place within the row.
    entries = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], ends - starts)
    return indptr, adjacency.indices[entries]


def _embed_connected(indptr: np.ndarray, indices: np.ndarray, dim: int) -> tuple[np.ndarray, int]:
    """Return centered positions of a connected graph, not yet on the grid, and its hop diameter."""
    distances = all_hop_distances(indptr, indices)
    diameter = int(distances.max())
    false_twins = _classes(indptr, indices, with_self=False)
    true_twins = _classes(indptr, indices, with_self=True)
    values, axes = leading_axes(distances, dim)
    least = values[dim - 1] if len(values) == dim else 0.0
    twins_apart = least <= FALSE_TWINS * (1 + TIE)
    if twins_apart and false_twins.max() + 1 < len(false_twins) and _cuts_twin_axes(distances, dim):
        _merge(distances, false_twins)
        values, axes = leading_axes(distances, dim)
        least = values[dim - 1] if len(values) == dim else 0.0
        twins_apart = False
    pos = np.zeros((len(distances), dim))
    for k in range(len(values)):
        pos[:, k] = _oriented(axes[k]) * np.sqrt(values[k])
    if not twins_apart:
        pos = _class_means(pos, false_twins)
    if least > TRUE_TWINS * (1 + TIE):  # otherwise linked twins rightly stand apart, as in a triangle
        pos = _class_means(pos, true_twins)
    return pos, diameter


def _cuts_twin_axes(distances: np.ndarray, dim: int) -> bool:
    """Say whether the axes that tell twins apart are more than ``dim`` has room for."""
    values, _ = leading_axes(distances, dim + 1)
    tied = np.abs(values - FALSE_TWINS) <= TIE * max(values.max(initial=0.0), 1.0)
    return len(values) > dim and bool(tied[dim - 1] and tied[dim])


def _classes(indptr: np.ndarray, indices: np.ndarray, with_self: bool) -> np.ndarray:
    """Return a class for each node; nodes of one class have the same neighbors."""
    num_nodes = len(indptr) - 1
    # Sets are compared by the sums of two 64-bit random numbers a node: equal ones by chance in one
    # graph of 2^64 nodes or so.
    codes = np.random.default_rng(1).integers(0, 2**64, size=(2, num_nodes), dtype=np.uint64)
    sums = np.zeros((2, len(indices) + 1), np.uint64)
    np.cumsum(codes[:, indices], axis=1, out=sums[:, 1:])
    signature = sums[:, indptr[1:]] - sums[:, indptr[:-1]]  # modulo 2^64, as the sums are
    if with_self:
        signature += codes
    return np.unique(signature, axis=1, return_inverse=True)[1].reshape(-1)


def _merge(distances: np.ndarray, classes: np.ndarray) -> None:
    """Set the distances within each class to 0, in place."""
    order = np.argsort(classes, kind="stable")
    for members in np.split(order, np.flatnonzero(np.diff(classes[order])) + 1):
        if len(members) > 1:
            distances[np.ix_(members, members)] = 0


def _class_means(pos: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Give all nodes of a class the mean of their positions, which differ by rounding only."""
    sizes = np.bincount(classes)
    if len(sizes) == len(pos):
        return pos
    means = np.stack([np.bincount(classes, weights=axis) for axis in pos.T], axis=1) / sizes[:, None]
    return np.where((sizes > 1)[classes, None], means[classes], pos)


def _oriented(axis: np.ndarray) -> np.ndarray:
    """Return the axis or its opposite, so that its longer tail points up."""
    cubes = axis**3
    skewness = cubes.sum() / np.abs(cubes).sum()
    if abs(skewness) <= SYMMETRIC:
        skewness = axis[np.argmax(np.abs(axis) > SYMMETRIC * np.abs(axis).max())]
    return -axis if skewness < 0 else axis
