"""Check a graph, bring it into the one form that the rest works on, and measure it.

The canonical graph of an ``edge_index`` has every edge in both directions, no self-loops and no
duplicates, and its pairs are sorted by source, then target. Embeddings, neighborhoods and
statistics work on it, whatever the file looked like.
"""

from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float, Int
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import connected_components
from torch import Tensor
from torch_geometric.data import Data

from geomgcn._types import EdgeIndex, Label


@dataclass(frozen=True)
class GraphReport:
    """What :func:`canonical_edges` found and removed.

    Args:
        num_edges: Ordered pairs of the canonical graph, twice its undirected edges.
        self_loops: Entries whose source is their target; removed.
        duplicates: Entries that repeat an earlier one in the same direction (self-loops are not
            counted here); removed.
        one_way: Distinct pairs whose reverse was absent and has been added.
        num_components: Connected components, isolated nodes included.
        num_isolated: Nodes without a neighbor other than themselves.
    """

    num_nodes: int
    num_edges: int
    self_loops: int
    duplicates: int
    one_way: int
    num_components: int
    num_isolated: int


def check_data(data: Data, owner: str) -> None:
    """Refuse what is not the ``Data`` of one graph, or has its structural neighborhood for edges already.

    Args:
        owner: Who needs it, for errors.

    Example:
        >>> check_data(Data(x=torch.eye(2)), "Isomap")
        Traceback (most recent call last):
        ValueError: Isomap needs data.edge_index, got none. Set it to an empty [2, 0] tensor ...
    """
    if not isinstance(data, Data):
        raise TypeError(
            f"{owner} needs the Data of one kind of nodes, got {type(data).__name__}. "
            f"Turn HeteroData into it with to_homogeneous()."
        )
    if data.edge_index is None:
        raise ValueError(
            f"{owner} needs data.edge_index, got none. "
            f"Set it to an empty [2, 0] tensor of dtype torch.int64 for a graph without edges."
        )
    if "num_virtual_nodes" in data:
        raise ValueError(
            f"{owner} needs the edges of a graph, got a structural neighborhood already. "
            f"Embed the data first, and apply StructuralNeighborhood once."
        )


def check_edges(edge_index: Tensor, num_nodes: int) -> None:
    """Refuse an ``edge_index`` that a compiled kernel could not survive.

    An id out of range crashes the process in numba, scipy and torch's sparse kernels, so this
    runs before any of them.

    Example:
        >>> check_edges(torch.tensor([[0, 1], [1, 7]]), num_nodes=3)
        Traceback (most recent call last):
        ValueError: edge_index needs ids from 0 to 2, got 1 -> 7 at position 1 (1 bad ...
    """
    if num_nodes < 1:
        raise ValueError(
            f"A graph needs at least one node, got num_nodes={num_nodes}. Pass the number of rows of x."
        )
    if edge_index.dtype != torch.int64:
        raise ValueError(
            f"edge_index needs dtype torch.int64, got {edge_index.dtype}. Convert it with edge_index.long()."
        )
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise ValueError(
            f"edge_index needs shape [2, num_edges] (sources above targets), got {list(edge_index.shape)}. "
            f"Transpose a list of pairs with edge_index.t()."
        )
    bad = ((edge_index < 0) | (edge_index >= num_nodes)).any(dim=0)
    if bad.any():
        first = int(bad.nonzero()[0])
        source, target = edge_index[:, first].tolist()
        raise ValueError(
            f"edge_index needs ids from 0 to {num_nodes - 1}, got {source} -> {target} at position {first} "
            f"({int(bad.sum())} bad edges in all). Renumber the nodes, or pass the right num_nodes."
        )


def check_features(x: Tensor) -> None:
    """Refuse features or positions with NaN or infinity, which layers spread silently.

    Example:
        >>> check_features(torch.tensor([[0.0], [float("nan")]]))
        Traceback (most recent call last):
        ValueError: x needs finite values, got 1 NaN and 0 infinite ones, first at node 1. ...
    """
    if x.dim() != 2 or not x.is_floating_point():
        raise ValueError(
            f"x needs floats of shape [num_nodes, channels], got {x.dtype} of shape {list(x.shape)}. "
            f"Convert it with x.float(), and reshape one column with x.view(-1, 1)."
        )
    if x.size(1) == 0:
        raise ValueError(
            f"x needs at least one channel, got shape {list(x.shape)}. "
            f"Give each node features, such as its degree or a row of an identity matrix."
        )
    bad = ~x.isfinite()
    if bad.any():
        num_nan = int(x.isnan().sum())
        raise ValueError(
            f"x needs finite values, got {num_nan} NaN and {int(bad.sum()) - num_nan} infinite ones, "
            f"first at node {int(bad.any(dim=1).nonzero()[0])}. Fill or drop them before."
        )


LARGEST_COORDINATE, SMALLEST_EXTENT = 1e150, 1e-150
"""The square of a larger one is no number any more, and that of a smaller one is zero."""


def check_positions(pos: Tensor) -> None:
    """Refuse positions that have no distances.

    Example:
        >>> check_positions(torch.tensor([[0.0], [float("inf")]]))
        Traceback (most recent call last):
        ValueError: Positions must be finite, got NaN or infinity at 1 node(s), the first is node 1. ...
    """
    if pos.dim() != 2 or not pos.is_floating_point():
        raise ValueError(
            f"Positions need floats of shape [num_nodes, dim], got {pos.dtype} of shape {list(pos.shape)}. "
            f"Convert them with pos.double(), and reshape one column with pos.view(-1, 1)."
        )
    bad = ~pos.isfinite().all(dim=1)
    if bad.any():
        raise ValueError(
            f"Positions must be finite, got NaN or infinity at {int(bad.sum())} node(s), the first is node "
            f"{int(bad.nonzero()[0])}. Give every node a place, or leave those nodes out."
        )
    largest = float(pos.abs().max()) if pos.numel() else 0.0
    if largest > LARGEST_COORDINATE:
        raise ValueError(
            f"Positions must not exceed {LARGEST_COORDINATE:g}, whose square is the largest number, got "
            f"{largest!r}. Scale them: only their proportions count."
        )
    if 0 < largest < SMALLEST_EXTENT:
        raise ValueError(
            f"Positions must not all be within {SMALLEST_EXTENT:g} of zero, where squares vanish, "
            f"got at most {largest!r}. Scale them: only their proportions count."
        )


def canonical_edges(edge_index: Tensor, num_nodes: int) -> tuple[EdgeIndex, GraphReport]:
    """Return the canonical graph and a report of what was changed.

    Takes time linear in nodes and entries, up to a logarithm of the degrees.

    Example:
        >>> edge_index, report = canonical_edges(torch.tensor([[0, 0, 2], [1, 1, 2]]), num_nodes=3)
        >>> edge_index.tolist()
        [[0, 1], [1, 0]]
        >>> report.duplicates, report.self_loops, report.one_way, report.num_isolated
        (1, 1, 1, 1)
    """
    check_edges(edge_index, num_nodes)
    rows, num_loops, num_distinct = _canonical_rows(edge_index, num_nodes)
    degree = np.diff(rows.indptr)
    canonical = np.empty((2, rows.nnz), np.int64)
    canonical[0] = np.repeat(np.arange(num_nodes), degree)
    canonical[1] = rows.indices
    # Strong components of a symmetric graph are its components, and need no second, transposed copy.
    num_components, _ = connected_components(rows, directed=True, connection="strong")
    report = GraphReport(
        num_nodes=num_nodes,
        num_edges=rows.nnz,
        self_loops=num_loops,
        duplicates=edge_index.size(1) - num_loops - num_distinct,
        one_way=rows.nnz - num_distinct,
        num_components=int(num_components),
        num_isolated=int((degree == 0).sum()),
    )
    return torch.from_numpy(canonical).to(edge_index.device), report


def adjacency(edge_index: Tensor, num_nodes: int) -> csr_array:
    """Return the canonical graph as compressed rows, sorted; compiled loops work on it.

    Takes a third of the time of :func:`canonical_edges` where the graph is canonical already.

    Example:
        >>> adjacency(torch.tensor([[0, 2], [1, 1]]), num_nodes=3).indices.tolist()
        [1, 0, 2, 1]
    """
    check_edges(edge_index, num_nodes)
    return _canonical_rows(edge_index, num_nodes)[0]


def _canonical_rows(edge_index: Tensor, num_nodes: int) -> tuple[csr_array, int, int]:
    """Return the canonical graph as rows, and how many self-loops and distinct other pairs it had."""
    known = _rows_of_canonical(edge_index, num_nodes)
    if known is not None:
        return known, 0, known.nnz
    source, target = edge_index.cpu().numpy()
    other = source != target
    kind = np.int32 if max(num_nodes, 2 * len(source)) < 2**31 else np.int64
    ends = source[other].astype(kind), target[other].astype(kind)
    ones = np.ones(len(ends[0]), np.int8)
    directed = coo_array((ones, ends), shape=(num_nodes, num_nodes)).tocsr()
    directed.data[:] = 1  # a pair that came 256 times has the sum 0, and zeros would be dropped
    both = (directed + directed.T.tocsr()).tocsr()
    both.sort_indices()
    return both, int(len(source) - len(ends[0])), int(directed.nnz)


def _rows_of_canonical(
    edge_index: Tensor, num_nodes: int, length: np.ndarray | None = None
) -> csr_array | None:
    """Return a graph as rows where it is canonical already, which takes no sorting, else None.

    Args:
        length: Of each entry; both directions need to be equally long then.
    """
    source, target = edge_index.cpu().numpy()
    later = (source[1:] > source[:-1]) | ((source[1:] == source[:-1]) & (target[1:] > target[:-1]))
    if not later.all() or (source == target).any():
        return None
    kind = np.int32 if max(num_nodes, len(source)) < 2**31 else np.int64
    indptr = np.zeros(num_nodes + 1, kind)
    np.cumsum(np.bincount(source, minlength=num_nodes), out=indptr[1:])
    weight = np.ones(len(source), np.int8) if length is None else length
    rows = csr_array((weight, target.astype(kind), indptr), shape=(num_nodes, num_nodes))
    columns = rows.tocsc()  # of a symmetric matrix: the same three arrays
    same = [(columns.indptr, rows.indptr), (columns.indices, rows.indices), (columns.data, rows.data)]
    return rows if all(np.array_equal(*pair) for pair in same) else None


def canonical_lengths(
    edge_index: Tensor, edge_length: Tensor, num_nodes: int
) -> tuple[EdgeIndex, Float[Tensor, " num_edges"]]:
    """Return the canonical graph and the length of each of its pairs, in float64.

    A pair has the length of the shortest entry between its two nodes, whatever its direction; so both
    directions are equally long.

    Args:
        edge_length: How far the ends of each entry are apart, above zero. Strengths are no lengths:
            pass ``1 / strength``, for example.

    Example:
        >>> edges = torch.tensor([[0, 1, 1], [1, 0, 2]])
        >>> canonical_lengths(edges, torch.tensor([2.0, 1.5, 4.0]), num_nodes=3)[1].tolist()
        [1.5, 1.5, 4.0, 4.0]
    """
    check_edges(edge_index, num_nodes)
    if edge_length.shape != (edge_index.size(1),):
        raise ValueError(
            f"edge_length needs one number for each of {edge_index.size(1)} edges, got shape "
            f"{list(edge_length.shape)}. Reshape one column with edge_length.view(-1)."
        )
    length = edge_length.double()
    bad = ~((length > 0) & length.isfinite())
    if bad.any():
        first = int(bad.nonzero()[0])
        raise ValueError(
            f"edge_length needs finite lengths above zero, got {float(length[first])!r} at position {first} "
            f"({int(bad.sum())} bad ones in all). Leave those edges out, or give them a length."
        )
    if _rows_of_canonical(edge_index, num_nodes, length.cpu().numpy()) is not None:
        return edge_index.clone(), length.clone()
    source, target = edge_index
    other = source != target
    key = torch.cat([source[other] * num_nodes + target[other], target[other] * num_nodes + source[other]])
    both, place = torch.unique(key, return_inverse=True)
    shortest = length.new_full((both.numel(),), torch.inf)
    shortest = shortest.scatter_reduce(0, place, length[other].repeat(2), "amin")
    return torch.stack([both // num_nodes, both % num_nodes]), shortest


def homophily(edge_index: Tensor, y: Label, num_nodes: int) -> float:
    r"""Return the homophily of a labelled graph (Section 4.1).

    .. math:: \beta = \frac{1}{|V|} \sum_{v \in V} \frac{|\{u \in N(v) : y_u = y_v\}|}{|N(v)|}

    on the canonical graph; a node without neighbors counts as 0. Nodes whose label is unknown
    (-1) are left out, as nodes and as neighbors; without any label the result is NaN.

    Example:
        >>> path = torch.tensor([[0, 1], [1, 2]])
        >>> homophily(path, torch.tensor([0, 0, 1]), num_nodes=3)
        0.5
    """
    if y.shape != (num_nodes,):
        raise ValueError(
            f"y needs one label for each of {num_nodes} nodes, got shape {list(y.shape)}. "
            f"Use -1 for unknown ones."
        )
    (source, target), _ = canonical_edges(edge_index, num_nodes)
    labelled = y >= 0
    if not labelled.any():
        return float("nan")
    known = labelled[source] & labelled[target]
    source, target = source[known], target[known]
    neighbors = torch.bincount(target, minlength=num_nodes).double()
    alike = torch.bincount(target[y[source] == y[target]], minlength=num_nodes).double()
    return float((alike / neighbors.clamp(min=1))[labelled].mean())


def components(edge_index: Tensor, num_nodes: int) -> Int[Tensor, " num_nodes"]:
    """Return each node's component id; components are numbered by their smallest node.

    The direction of edges does not matter.

    Example:
        >>> components(torch.tensor([[3], [1]]), num_nodes=4).tolist()
        [0, 1, 2, 1]
    """
    check_edges(edge_index, num_nodes)
    return _component_ids(edge_index, num_nodes)


def _component_ids(edge_index: Tensor, num_nodes: int) -> Tensor:
    """Return component ids of edges that have been checked."""
    source, target = edge_index.cpu().numpy()
    matrix = coo_array((np.ones(source.size, dtype=np.int8), (source, target)), shape=(num_nodes, num_nodes))
    _, found = connected_components(matrix, directed=False)
    # scipy does not promise an order: renumber by the first node, so that ids are stable.
    _, first, inverse = np.unique(found, return_index=True, return_inverse=True)
    ids = np.argsort(np.argsort(first))[inverse]
    return torch.from_numpy(ids).long().to(edge_index.device)
