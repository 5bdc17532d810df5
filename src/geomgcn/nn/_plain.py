"""The products of a layer in tensor operations: on any device, in any precision, several passes each.

Compiled kernels do the same in one pass. All have a leading axis of runs, which share the pairs.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from geomgcn.nn._adjacency import Pairs
from geomgcn.nn._dropout import Dropout

Values = Float[Tensor, "num_runs _ channels"]


@dataclass(frozen=True, eq=False)
class Finish:
    """What comes between two layers: add the bias, cut off below zero, drop.

    Attributes:
        bias: For each run and column of a node.
        dropout: Looks at nodes as rows, and at all virtual nodes of a node as columns of one row.
    """

    bias: Float[Tensor, "num_runs columns"] | None = None
    dropout: Dropout | None = None


def row_of_each(start: Int[Tensor, " num_rows_and_one"]) -> Int[Tensor, " num_entries"]:
    """Return the row of each entry of compressed rows.

    Example:
        >>> row_of_each(torch.tensor([0, 2, 2, 3]))
        tensor([0, 0, 2])
    """
    sizes = start.diff()
    return torch.arange(len(sizes), device=start.device).repeat_interleave(sizes)


def gather(
    pairs: Pairs,
    values: Values,
    *,
    from_slots: bool,
    to_slots: bool,
    gate: Values | None = None,
    scale: float = 1.0,
    factor: Float[Tensor, " num_runs"] | None = None,
    finish: Finish | None = None,
) -> Values:
    """Return, for each row, the weighted sum of what its pairs read, times ``scale``.

    Args:
        from_slots: Whether ``values`` has a row for each virtual node of a node, or one for each node.
        to_slots: Whether the result has.
        gate: Of the shape of ``values``; entries count where it is positive.
        factor: What the result of each run is multiplied by besides.

    Example:
        >>> from geomgcn.nn import Adjacency
        >>> pairs = Adjacency.of(torch.tensor([[1], [0]]), torch.tensor([1]), 2, 2).plain.gather
        >>> gather(pairs, torch.tensor([[[1.0], [5.0]]]), from_slots=False, to_slots=True)
        tensor([[[0.],
                 [5.],
                 [0.],
                 [0.]]])
    """
    count = pairs.num_virtual_nodes
    row, other = row_of_each(pairs.start), pairs.other.long()
    read = other if from_slots else other // count
    moved = values[:, read]
    if gate is not None:
        moved = moved * (gate[:, read] > 0)
    if pairs.weight is not None:
        moved = moved * pairs.weight.to(values.dtype).unsqueeze(-1)
    num_rows = pairs.num_nodes * (count if to_slots else 1)
    out = values.new_zeros(values.size(0), num_rows, values.size(2))
    out.index_add_(1, row if to_slots else row // count, moved)
    out *= scale
    if factor is not None:
        out *= factor.to(out.dtype).view(-1, 1, 1)
    return out if finish is None else finished(out, pairs.num_nodes, finish)


def finished(out: Values, num_nodes: int, finish: Finish) -> Values:
    """Add the bias, cut off below zero and drop.

    Example:
        >>> finished(torch.tensor([[[-1.0, 2.0]]]), 1, Finish())
        tensor([[[0., 2.]]])
    """
    whole = out.view(out.size(0), num_nodes, -1)
    whole = whole if finish.bias is None else whole + finish.bias.unsqueeze(1)
    whole = whole.relu()
    whole = whole if finish.dropout is None else drop(whole, finish.dropout)
    return whole.view(out.shape)


def pair_products(
    pairs: Pairs, values: Values, grad: Values, *, from_slots: bool, to_slots: bool, scale: float = 1.0
) -> Float[Tensor, " num_edges"]:
    """Return, for each pair, the product of what it read with the gradient where it went: that of its weight.

    Example:
        >>> from geomgcn.nn import Adjacency
        >>> pairs = Adjacency.of(torch.tensor([[1], [0]]), torch.tensor([0]), 2, 1).gather
        >>> pair_products(pairs, torch.ones(1, 2, 3), torch.ones(1, 2, 3), from_slots=False, to_slots=False)
        tensor([3.])
    """
    count = pairs.num_virtual_nodes
    row, other = row_of_each(pairs.start), pairs.other.long()
    read, written = other if from_slots else other // count, row if to_slots else row // count
    return (values[:, read] * grad[:, written]).sum((0, 2)) * scale


def largest(pairs: Pairs, values: Values) -> tuple[Values, Values]:
    """Return, for each virtual node, the largest value that its pairs read, and how many pairs tie for it.

    Args:
        values: A row for each node. Empty virtual nodes are zero, and nothing ties for them.

    Example:
        >>> from geomgcn.nn import Adjacency
        >>> pairs = Adjacency.of(torch.tensor([[0, 1], [0, 0]]), torch.tensor([0, 0]), 2, 1).gather
        >>> largest(pairs, torch.tensor([[[-1.0], [-1.0]]]))
        (tensor([[[-1.],
                 [ 0.]]]), tensor([[[2.],
                 [0.]]]))
    """
    row, read = row_of_each(pairs.start), pairs.other.long() // pairs.num_virtual_nodes
    moved = values[:, read]
    out = values.new_zeros(values.size(0), len(pairs.start) - 1, values.size(2))
    index = row.view(1, -1, 1).expand_as(moved)
    out = out.scatter_reduce(1, index, moved, "amax", include_self=False)
    ties = torch.zeros_like(out).index_add_(1, row, (moved == out[:, row]).to(out.dtype))
    return out, ties


def from_largest(pairs: Pairs, values: Values, top: Values, share: Values) -> Values:
    """Return the gradient of ``values`` in :func:`largest`: the shares of the ties that each node is in.

    Args:
        pairs: Those of the other direction, rows being sources.
        share: Gradient of each largest value, divided by the number of ties.

    Example:
        >>> from geomgcn.nn import Adjacency
        >>> pairs = Adjacency.of(torch.tensor([[0, 1], [0, 0]]), torch.tensor([0, 0]), 2, 1).spread
        >>> values, top = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[2.0], [0.0]]])
        >>> from_largest(pairs, values, top, torch.ones(1, 2, 1))
        tensor([[[0.],
                 [1.]]])
    """
    node, other = row_of_each(pairs.start) // pairs.num_virtual_nodes, pairs.other.long()
    won = (values[:, node] == top[:, other]) * share[:, other]
    return torch.zeros_like(values).index_add_(1, node, won)


def drop(x: Values, dropout: Dropout) -> Values:
    """Return ``x`` with entries dropped, for each run by its own seed; rows are nodes.

    Example:
        >>> drop(torch.ones(1, 1, 2), Dropout.of(torch.tensor([0]), [0.0]))
        tensor([[[1., 1.]]])
    """
    rows = torch.arange(x.size(1), device=x.device).unsqueeze(1)
    columns = torch.arange(x.size(2), device=x.device)
    kept = [dropout.kept(run, rows, columns) for run in range(len(dropout.seed))]
    return x * torch.stack(kept) * dropout.factor.to(x.dtype).view(-1, 1, 1)


def sparse_product(
    start: Int[Tensor, " num_rows_and_one"],
    other: Int[Tensor, " num_entries"],
    entries: Float[Tensor, " num_entries"],
    dense: Values,
    dropout: Dropout | None,
    *,
    transposed: bool = False,
) -> Values:
    """Return a sparse matrix times ``dense``, with entries of the matrix dropped for each run apart.

    Args:
        transposed: Whether the rows are columns of the matrix that dropout looks at.

    Example:
        >>> start, other, entries = torch.tensor([0, 1, 2]), torch.tensor([1, 0]), torch.tensor([2.0, 3.0])
        >>> sparse_product(start, other, entries, torch.tensor([[[1.0], [5.0]]]), None)
        tensor([[[10.],
                 [ 3.]]])
    """
    row, column = row_of_each(start), other.long()
    weight = entries.to(dense.dtype).expand(dense.size(0), -1)
    if dropout is not None:
        place = (column, row) if transposed else (row, column)
        kept = torch.stack([dropout.kept(run, *place) for run in range(len(dropout.seed))])
        weight = weight * kept * dropout.factor.to(dense.dtype).unsqueeze(1)
    out = dense.new_zeros(dense.size(0), len(start) - 1, dense.size(2))
    return out.index_add_(1, row, dense[:, column] * weight.unsqueeze(-1))
