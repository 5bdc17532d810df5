"""Isomap: positions whose straight-line distances are near the distances in the graph."""

import warnings
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Float, UInt
from torch import Tensor

from geomgcn import graphs
from geomgcn._progress import Progress
from geomgcn._types import EdgeIndex, Position
from geomgcn.embeddings._base import Embedding
from geomgcn.embeddings._components import Components, side_by_side
from geomgcn.embeddings._connected import Graph, Watch, exact, from_landmarks
from geomgcn.embeddings._kernels import all_hop_distances
from geomgcn.embeddings._landmarks import LANDMARKS_PER_AXIS
from geomgcn.embeddings._settings import check_whole
from geomgcn.embeddings._small import small_parts

GRID_BITS = 23
"""Steps of the grid in a diameter, as a power of two. Differences within a component are then whole
numbers of steps, about 2^25 at most, and the sum of their squares is exact in float64."""

EXACT_NODES, LANDMARKS = 50_000, 1000
"""Components up to this size are exact where no landmarks are asked for; in larger ones there are so many."""

LARGEST_SCALE = 460
"""Binary exponent of the longest edge beyond which squares of positions would overflow or vanish."""


@dataclass(frozen=True)
class Isomap(Embedding):
    r"""Isomap: classical scaling of the lengths of shortest paths (Tenenbaum et al. 2000; Section 3.1).

    .. math:: B = -\tfrac12 J D^2 J = U \Lambda U^\top, \qquad z_v = (\sqrt{\lambda_k}\, u_{vk})_k

    for the largest eigenvalues; axes without a positive eigenvalue are zero. D counts edges, or adds up their
    lengths where ``data.edge_length`` has some; an edge links both ways. The same graph and settings give
    the same bytes, whatever the number of threads or the memory. What the formula leaves open:

    * **Size.** Components of up to 50,000 nodes are exact; larger ones get 1000 landmarks, and a warning says
      so. Exact takes :math:`O(nm/64 + n^2)` time. Half of the distances, :math:`n^2/2` bytes (twice as many
      from a diameter of 255 on, four times with lengths), are kept where half of the free memory
      and 8 GiB hold them. The others are computed again for each of about 15 products; without any, memory
      is linear in nodes and edges. With lengths it takes a run of Dijkstra's algorithm from each node.
    * **Landmarks** (de Silva and Tenenbaum 2003). Random nodes are scaled by the distances between them,
      in 16 dimensions, and place all others by their distances to them; then the longest ``dim`` axes of
      all nodes stay. Takes time linear in edges for each 256 landmarks, and one byte a node for each (four
      with lengths). Positions are near to the exact ones, latent neighborhoods less so.
    * **Refinements.** Each is a product with all distances, computed from all nodes and not kept beyond what
      memory allows: :math:`O(nm/64 + n^2)` time. They bring landmarks to the exact positions: of the latent
      pairs of Squirrel, 500 landmarks share .37 with the exact ones, .81 after one, .96 after two and .997
      after three; of those of Cora .68, .97, .998 and 1.
    * **Sign.** The longer tail of an axis (its skewness) points up; where both tails are equal, the
      first node that is not at 0 does. Order: by eigenvalue. A multiple eigenvalue (ring, square grid)
      has no axes of its own; fixed random vectors choose them.
    * **Grid.** Coordinates are rounded to multiples of 2^-23 of the largest diameter (rounded up to
      a power of two; of a bound on it, up to twice as large, where there are landmarks), so that nodes
      that coincide do so exactly and equal distances are equal.
    * **Twins.** Unlinked nodes of a component with the same neighbors get the same position, bit by bit,
      as soon as the axes have better to do than to tell them apart, which is so in all but tiny
      graphs. In those an axis may be for twins (a path of three nodes, a square), and they stand apart
      as the formula says; where there are more such axes than ``dim`` has room for (a star of four or
      more leaves), any choice among them would be arbitrary, and the distance between twins counts as 0.
      Landmarks never tell twins apart.
    * **Components.** Each connected component is embedded by itself and keeps its distances. They are laid
      on shelves, the largest at the origin and the others by size and first node, an isolated node
      being a box of size 0. Between any two boxes is a gap of at least the longest distance in the graph and
      the longest diagonal of a component, so that nodes of one component are nearer to each other than to
      any other node.
    * **Lengths** of very different sizes lose what is below 2^-31 of the diameter. Where the longest edge is
      beyond 1e138 or below 1e-138, positions are in units of a power of two near it, since their squares
      would overflow or vanish.

    Args:
        dim: Axes of the latent space.
        landmarks: How many for each component, at least four an axis; fewer would leave axes of noise.
            Components no larger are exact, so as many as nodes make any graph so. None leaves it to the size.
        refinements: How often positions from landmarks are made better.
        seed: Of the choice of landmarks.

    Example:
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> Isomap(dim=2).embed(path, num_nodes=4).tolist()
        [[1.5, 0.0], [0.5, 0.0], [-0.5, 0.0], [-1.5, 0.0]]
        >>> Isomap(dim=1).embed(path, 4, edge_length=torch.tensor([2.0, 1.0, 1.0])).view(-1).tolist()
        [2.25, 0.25, -0.75, -1.75]
    """

    dim: int = 2
    landmarks: int | None = None
    refinements: int = 0
    seed: int = 0

    version: ClassVar[int | None] = 3
    equivariant: ClassVar[bool] = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(self, refinements=0, seed=0)
        if self.landmarks is not None:
            check_whole(self, landmarks=1)
        enough = LANDMARKS_PER_AXIS * self.dim
        if self.landmarks is not None and self.landmarks < enough:
            raise ValueError(
                f"Isomap needs {LANDMARKS_PER_AXIS} landmarks an axis, which is {enough} for dim={self.dim}, "
                f"got landmarks={self.landmarks}: some axes would be noise. Pass landmarks={enough} or more, "
                f"or None."
            )

    def embed(
        self,
        edge_index: EdgeIndex,
        num_nodes: int,
        edge_length: Float[Tensor, " num_edges"] | None = None,
        progress: Progress | None = None,
    ) -> Position:
        """Return the positions of all nodes; the canonical graph of ``edge_index`` counts.

        Args:
            edge_length: Of each entry; the shortest of a pair counts, in both directions.
        """
        graph, exponent = _graph(edge_index.cpu(), num_nodes, edge_length)
        graph = replace(graph, device=edge_index.device)
        parts = Components.of(graph.indptr, graph.indices)
        pos, reach = self._each_part(graph, parts, Watch(progress or Progress()))
        diameter = float(reach.max())
        step = np.ldexp(_power_above(diameter), -GRID_BITS)
        pos = np.round(pos / step) * step + 0.0  # + 0.0: no negative zeros
        boxes = np.stack([ends.reduceat(pos, parts.starts[:-1]) for ends in (np.minimum, np.maximum)], axis=1)
        longest = float(np.sqrt(((boxes[:, 1] - boxes[:, 0]) ** 2).sum(axis=1).max()))
        one = _one(graph, diameter)
        gap = (np.ceil(max(longest, diameter, one) / one) + 1.0) * one
        pos += np.repeat(side_by_side(boxes, gap), parts.sizes, axis=0)
        out = np.empty_like(pos)
        out[parts.nodes] = np.ldexp(pos, exponent) if exponent else pos
        return torch.from_numpy(out).to(edge_index.device)

    def _each_part(self, graph: Graph, parts: Components, watch: Watch) -> tuple[np.ndarray, np.ndarray]:
        """Return the positions of all nodes, component by component, and the extent of each component."""
        first, small, reaches = small_parts(parts, graph.indptr, graph.indices, graph.lengths, self.dim)
        pos, reach = np.empty((len(parts.nodes), self.dim)), np.empty(len(parts))
        pos[parts.starts[first] :], reach[first:] = small, reaches
        for number in range(first):
            indptr, indices, entries = parts.rows(number, graph.indptr, graph.indices)
            lengths = None if graph.lengths is None else graph.lengths[entries]
            own = Graph(indptr, indices, lengths, graph.device)
            where = slice(parts.starts[number], parts.starts[number + 1])
            found = watch.known() or self._part(own, number, watch)
            watch.done(*found)
            pos[where], reach[number] = found
        return pos, reach

    def _part(self, graph: Graph, number: int, watch: Watch) -> tuple[np.ndarray, float]:
        """Return the positions and the extent of one component."""
        landmarks = self.landmarks
        if landmarks is None and graph.num_nodes > EXACT_NODES:
            landmarks = max(LANDMARKS, LANDMARKS_PER_AXIS * self.dim)
            warnings.warn(
                f"Isomap of a component of {graph.num_nodes} nodes takes {landmarks} landmarks, so its "
                f"latent neighborhoods are not those of the exact solution. Pass landmarks={landmarks} to "
                f"agree, refinements=2 too to be nearer to it, or landmarks={graph.num_nodes} to be exact.",
                stacklevel=4,
            )
        if landmarks is None or landmarks >= graph.num_nodes:
            return exact(graph, self.dim, watch)
        return from_landmarks(graph, self.dim, landmarks, self.refinements, [self.seed, number], watch)


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
    rows = graphs.adjacency(edge_index, num_nodes)
    return all_hop_distances(rows.indptr, rows.indices)


def _graph(edge_index: EdgeIndex, num_nodes: int, edge_length: Tensor | None) -> tuple[Graph, int]:
    """Return the canonical graph, and by which power of two its lengths have been divided."""
    if edge_length is None:
        rows = graphs.adjacency(edge_index, num_nodes)
        return Graph(rows.indptr, rows.indices), 0
    canonical, length = graphs.canonical_lengths(edge_index, edge_length.cpu(), num_nodes)
    rows = graphs.adjacency(canonical, num_nodes)  # in the same order
    _, exponent = np.frexp(float(length.max()) if len(length) else 0.5)
    lengths = np.ldexp(length.numpy(), -int(exponent))
    return Graph(rows.indptr, rows.indices, lengths), int(exponent) if abs(exponent) < LARGEST_SCALE else 0


def _power_above(number: float) -> float:
    """Return the least power of two that is not below a number; 1 for 0."""
    fraction, exponent = np.frexp(number)
    return float(np.ldexp(1.0, int(exponent) - (fraction == 0.5)))


def _one(graph: Graph, diameter: float) -> float:
    """Return what gaps are whole multiples of: 1 without lengths, and where they are all 1."""
    if graph.lengths is None or diameter == 0:
        return 1.0
    return min(0.5, _power_above(diameter))
