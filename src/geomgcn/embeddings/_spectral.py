"""Spectral: positions from the low end of the Laplacian's spectrum, cheap for a million nodes."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from geomgcn import graphs
from geomgcn._progress import Progress
from geomgcn._types import EdgeIndex, Position
from geomgcn.embeddings._base import Embedding
from geomgcn.embeddings._components import members_by_size, side_by_side
from geomgcn.embeddings._scaling import oriented
from geomgcn.embeddings._spectral_axes import Walk, leading_axes

GRID_BITS = 30
"""Steps of the grid in the longest side of a component, as a power of two: coarse enough that what is equal
by a symmetry of the graph comes out equal, fine enough for what an outlier presses together."""

MEMOIZED_PLACES = 32
"""Components up to this size are kept and used again for equal ones; thousands of pairs are common."""


@dataclass(frozen=True)
class Spectral(Embedding):
    r"""Laplacian eigenmap, scaled by commute times (Belkin and Niyogi 2003; Qiu and Hancock 2007).

    .. math:: L = I - D^{-1} A, \qquad L f_k = \lambda_k f_k, \qquad
        z_v = \bigl(f_k(v) / \sqrt{\lambda_k}\bigr)_{k = 2, \ldots, dim + 1}

    for the smallest eigenvalues above zero, where the square of each f has mean 1 over all ends of edges.
    Each node lies near the mean of its neighbors. With all axes the squared distance of two nodes would
    be the number of steps that a random walk takes from one to the other and back; so a long component
    is long, a chain a little longer than it has hops. The same graph gives the same bytes, whatever the
    number of threads. What the formula leaves open:

    * **Twins.** Nodes with the same neighbors, linked to each other or not, get the same position, bit by
      bit: axes that only tell twins apart are left out. So a star has two places, a complete graph one.
    * **Sign.** The longer tail of an axis (its skewness) points up; where both tails are equal, the first
      node that is not at 0 does. A multiple eigenvalue (ring, square grid) has no axes of its own; fixed
      random vectors choose them. Axes that do not exist are zero.
    * **Components.** Each connected component is embedded by itself. They are laid on shelves, the largest at
      the origin and the others by size and first node, further apart than any component is long.
    * **Nearly equal eigenvalues.** Those of a large random graph take long to tell apart. After a fixed
      amount of work the axes are taken as they are, and a warning says so.

    Takes time linear in pairs for each product with the matrix, of which there are more, the slower a random
    walk mixes: a few hundred for most graphs. Memory is linear in nodes and edges.

    Args:
        dim: Axes of the latent space.

    Example:
        >>> path = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> Spectral(dim=1).embed(path, num_nodes=4).view(-1).round(decimals=3).tolist()
        [2.0, 1.0, -1.0, -2.0]
    """

    dim: int = 2

    version: ClassVar[int | None] = 1
    equivariant: ClassVar[bool] = True

    def embed(self, edge_index: EdgeIndex, num_nodes: int, progress: Progress | None = None) -> Position:
        """Return the positions of all nodes; the canonical graph of ``edge_index`` counts."""
        canonical, _ = graphs.canonical_edges(edge_index.cpu(), num_nodes)
        components = members_by_size(canonical, num_nodes)
        raw = self._embed_each(canonical, num_nodes, components, progress)
        boxes = np.stack([np.stack([pos.min(axis=0), pos.max(axis=0)]) for pos in raw])
        step = _step((boxes[:, 1] - boxes[:, 0]).max())
        boxes = np.round(boxes / step) * step + 0.0  # + 0.0: no negative zeros
        longest = np.sqrt(((boxes[:, 1] - boxes[:, 0]) ** 2).sum(axis=1).max())
        moves = side_by_side(boxes, gap=float(np.ceil(max(longest, 1.0))) + 1.0)
        out = np.empty((num_nodes, self.dim))
        for nodes, pos, move in zip(components, raw, moves, strict=True):
            out[nodes] = np.round(pos / step) * step + move + 0.0
        return torch.from_numpy(out).to(edge_index.device)

    def _embed_each(
        self,
        canonical: EdgeIndex,
        num_nodes: int,
        components: list[np.ndarray],
        progress: Progress | None,
    ) -> list[np.ndarray]:
        """Return positions of every component, not yet on the grid, equal small ones computed once."""
        source, target = canonical.numpy()
        twin, walk = _places(source, target, num_nodes)
        known: dict[tuple[bytes, ...], np.ndarray] = {}
        results: list[np.ndarray] = []
        alone = np.zeros((1, self.dim))
        number = np.empty(num_nodes, np.int64)  # of a place within its component
        for nodes in components:
            if len(nodes) == 1:
                results.append(alone)
                continue
            places = nodes[twin[nodes] == nodes]
            number[places] = np.arange(len(places))
            part = _part(walk, places, number)
            members = number[twin[nodes]]
            if len(places) > MEMOIZED_PLACES:
                results.append(_embed_connected(part, members, self.dim, progress, len(results)))
                continue
            key = tuple(array.tobytes() for array in (part.indptr, part.indices, part.size, members))
            if key not in known:
                known[key] = _embed_connected(part, members, self.dim)
            results.append(known[key])
        return results


def _step(longest: float) -> float:
    """Return the step of the grid, a power of two."""
    return 2.0 ** (int(np.frexp(max(longest, 1.0))[1]) - GRID_BITS)


def _places(source: np.ndarray, target: np.ndarray, num_nodes: int) -> tuple[np.ndarray, Walk]:
    """Return the first twin of each node, and the walk between first twins, in the numbers of nodes."""
    degree = np.bincount(source, minlength=num_nodes)
    indptr = np.concatenate([[0], np.cumsum(degree)])
    unlinked = _first_alike(indptr, target, with_self=False)
    linked = _first_alike(indptr, target, with_self=True)
    # No node has twins of both kinds. Nodes without neighbors are no twins: each is a component.
    twin = np.where(degree == 0, np.arange(num_nodes), np.minimum(unlinked, linked))
    size = np.bincount(twin, minlength=num_nodes)
    is_kept = (twin[source] == source) & (twin[target] == target)
    loop = np.zeros(num_nodes)
    has_linked = (linked == np.arange(num_nodes)) & (np.bincount(linked, minlength=num_nodes) > 1)
    loop[has_linked] = (size[has_linked] - 1) / degree[has_linked]
    if not is_kept.all():
        kept_rows = np.bincount(source[is_kept], minlength=num_nodes)
        indptr, target = np.concatenate([[0], np.cumsum(kept_rows)]), target[is_kept]
    return twin, Walk(indptr, target, size.astype(float), degree.astype(float), loop)


def _first_alike(indptr: np.ndarray, indices: np.ndarray, with_self: bool) -> np.ndarray:
    """Return for each node the first one that has the same neighbors."""
    num_nodes = len(indptr) - 1
    # Sets are compared by the sums of two 64-bit random numbers a node: equal ones by chance in one
    # graph of 2^64 nodes or so.
    codes = np.random.default_rng(1).integers(0, 2**64, size=(2, num_nodes), dtype=np.uint64)
    signature = codes.copy() if with_self else np.zeros_like(codes)
    for code, sums in zip(codes, signature, strict=True):
        total = np.zeros(len(indices) + 1, np.uint64)
        np.cumsum(code[indices], out=total[1:])
        sums += total[indptr[1:]] - total[indptr[:-1]]  # modulo 2^64, as the sums are
    order = np.lexsort((np.arange(num_nodes), signature[1], signature[0]))
    ordered = signature[:, order]
    is_new = np.append(True, (np.diff(ordered, axis=1) != 0).any(axis=0))
    first = np.empty(num_nodes, np.int64)
    first[order] = order[is_new][np.cumsum(is_new) - 1]
    return first


def _part(walk: Walk, places: np.ndarray, number: np.ndarray) -> Walk:
    """Return the walk on some places, in numbers of their own."""
    if len(places) == len(walk.size):
        return Walk(walk.indptr, walk.indices.astype(np.int32), walk.size, walk.degree, walk.loop)
    starts, ends = walk.indptr[places], walk.indptr[places + 1]
    indptr = np.concatenate([[0], np.cumsum(ends - starts)])
    # For each entry: where its row starts in the whole graph, plus its place within the row.
    entries = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], ends - starts)
    indices = number[walk.indices[entries]].astype(np.int32)
    return Walk(indptr, indices, walk.size[places], walk.degree[places], walk.loop[places])


def _embed_connected(
    walk: Walk, members: np.ndarray, dim: int, progress: Progress | None = None, part: int = 0
) -> np.ndarray:
    """Return positions of the nodes of a connected graph, given the place of each."""
    values, functions = leading_axes(walk, dim, progress, part)
    pos = np.zeros((len(members), dim))
    for k, (value, function) in enumerate(zip(values, functions, strict=True)):
        pos[:, k] = oriented(function[members]) / np.sqrt(1 - value)
    return pos
