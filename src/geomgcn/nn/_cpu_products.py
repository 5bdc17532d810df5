"""What ``_plain`` does in several passes, done in one by compiled loops, on tensors of the CPU."""

from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from geomgcn._compiled import threads_of_torch
from geomgcn.nn import _cpu, _cpu_sparse
from geomgcn.nn._adjacency import PARTS, Pairs
from geomgcn.nn._dropout import Dropout
from geomgcn.nn._plain import Finish, Values

SMALL = 2**17
"""Numbers moved, below which one thread is done before others have begun."""


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
    """Return, for each row, the weighted sum of what its pairs read, times ``scale``; see ``_plain``.

    Example:
        >>> from geomgcn.nn import Adjacency
        >>> pairs = Adjacency.of(torch.tensor([[1], [0]]), torch.tensor([0]), 2, 1).plain.gather
        >>> gather(pairs, torch.tensor([[[1.0], [5.0]]]), from_slots=False, to_slots=False)
        tensor([[[5.],
                 [0.]]])
    """
    values = values.contiguous()
    read = values.numpy()
    real = read.dtype.type
    runs, _, channels = values.shape
    num_rows = pairs.num_nodes * (pairs.num_virtual_nodes if to_slots else 1)
    out = values.new_empty(runs, num_rows, channels)
    written = out.numpy()
    opened = np.empty((runs, 0, 0), real) if gate is None else gate.contiguous().numpy()
    bias = None if finish is None else finish.bias
    added = np.empty((runs, 0), real) if bias is None else bias.contiguous().numpy()
    factors = [1.0] * runs if factor is None else factor.tolist()
    bounds, start, other = pairs.arrays
    weight = pairs.weight_array.astype(real, copy=False)
    alone = (len(other) + num_rows) * channels < SMALL
    for run in range(runs):
        arguments = (
            start,
            other,
            weight,
            read[run],
            opened[run],
            written[run],
            pairs.num_virtual_nodes,
            from_slots,
            to_slots,
            real(scale * factors[run]),
            added[run],
            _how_to_drop(finish is not None, None if finish is None else finish.dropout, run, real),
        )
        if alone or torch.get_num_threads() == 1:
            _cpu.gather_rows(0, pairs.num_nodes, *arguments)
        else:
            with threads_of_torch():
                _cpu.gather_parts(bounds, *arguments)
    return out


def pair_products(
    pairs: Pairs, values: Values, grad: Values, *, from_slots: bool, to_slots: bool, scale: float = 1.0
) -> Float[Tensor, " num_edges"]:
    """Return, for each pair, the product of what it read with the gradient where it went; see ``_plain``.

    Example:
        >>> from geomgcn.nn import Adjacency
        >>> pairs = Adjacency.of(torch.tensor([[1], [0]]), torch.tensor([0]), 2, 1).gather
        >>> pair_products(pairs, torch.ones(1, 2, 3), torch.ones(1, 2, 3), from_slots=False, to_slots=False)
        tensor([3.])
    """
    total = values.new_zeros(len(pairs.other))
    out = torch.empty_like(total)
    with threads_of_torch():
        for run in range(values.size(0)):
            _cpu.multiply_pairs(
                *pairs.arrays,
                values[run].contiguous().numpy(),
                grad[run].contiguous().numpy(),
                out.numpy(),
                pairs.num_virtual_nodes,
                from_slots,
                to_slots,
                values.numpy().dtype.type(scale),
            )
            total += out
    return total


def largest(pairs: Pairs, values: Values) -> tuple[Values, Values]:
    """Return the largest value that the pairs of each virtual node read, and how many tie; see ``_plain``.

    Example:
        >>> from geomgcn.nn import Adjacency
        >>> pairs = Adjacency.of(torch.tensor([[1], [0]]), torch.tensor([0]), 2, 1).gather
        >>> largest(pairs, torch.tensor([[[1.0], [5.0]]]))[0]
        tensor([[[5.],
                 [0.]]])
    """
    out = values.new_empty(values.size(0), len(pairs.start) - 1, values.size(2))
    ties = torch.empty_like(out)
    with threads_of_torch():
        for run in range(values.size(0)):
            read = values[run].contiguous().numpy()
            _cpu.largest_parts(
                *pairs.arrays, read, pairs.num_virtual_nodes, out[run].numpy(), ties[run].numpy()
            )
    return out, ties


def from_largest(pairs: Pairs, values: Values, top: Values, share: Values) -> Values:
    """Return the gradient of ``values`` in :func:`largest`; see ``_plain``.

    Example:
        >>> from geomgcn.nn import Adjacency
        >>> pairs = Adjacency.of(torch.tensor([[0, 1], [0, 0]]), torch.tensor([0, 0]), 2, 1).spread
        >>> values, top = torch.tensor([[[1.0], [2.0]]]), torch.tensor([[[2.0], [0.0]]])
        >>> from_largest(pairs, values, top, torch.ones(1, 2, 1))
        tensor([[[0.],
                 [1.]]])
    """
    out = torch.empty_like(values, memory_format=torch.contiguous_format)
    with threads_of_torch():
        for run in range(values.size(0)):
            read = [part[run].contiguous().numpy() for part in (values, top, share)]
            _cpu.from_largest_parts(*pairs.arrays, *read, pairs.num_virtual_nodes, out[run].numpy())
    return out


def drop(x: Values, dropout: Dropout) -> Values:
    """Return ``x`` with entries dropped, for each run by its own seed; see ``_plain``.

    Example:
        >>> drop(torch.ones(1, 1, 2), Dropout.of(torch.tensor([0]), [0.0]))
        tensor([[[1., 1.]]])
    """
    x = x.contiguous()
    real = x.numpy().dtype.type
    out = torch.empty_like(x)
    bounds = np.arange(PARTS + 1) * x.size(1) // PARTS
    with threads_of_torch():
        for run in range(x.size(0)):
            how = _how_to_drop(True, dropout, run, real)
            _cpu_sparse.drop_parts(bounds, x[run].numpy(), how, out[run].numpy())
    return out


def sparse_product(
    start: Int[Tensor, " num_rows_and_one"],
    other: Int[Tensor, " num_entries"],
    entries: Float[Tensor, " num_entries"],
    dense: Values,
    dropout: Dropout | None,
    *,
    transposed: bool = False,
) -> Values:
    """Return a sparse matrix times ``dense``, entries dropped for each run apart; see ``_plain``.

    Example:
        >>> start, other, entries = torch.tensor([0, 1, 2]), torch.tensor([1, 0]), torch.tensor([2.0, 3.0])
        >>> sparse_product(start, other, entries, torch.tensor([[[1.0], [5.0]]]), None)
        tensor([[[10.],
                 [ 3.]]])
    """
    dense = dense.contiguous()
    right = dense.numpy()
    real = right.dtype.type
    out = dense.new_empty(dense.size(0), len(start) - 1, dense.size(2))
    written = out.numpy()
    first, columns, numbers = start.numpy(), other.numpy(), entries.numpy().astype(real, copy=False)
    room = len(columns) if dropout is not None else 0
    kept = np.empty(len(first) - 1, first.dtype), np.empty(room, columns.dtype), np.empty(room, real)
    alone = len(columns) * dense.size(2) < SMALL or torch.get_num_threads() == 1
    for run in range(dense.size(0)):
        how = _how_to_drop(dropout is not None, dropout, run, real)
        arguments = (first, columns, numbers, how, transposed, kept, right[run], written[run])
        if alone:
            _cpu_sparse.product_rows(0, len(first) - 1, *arguments)
        else:
            with threads_of_torch():
                _cpu_sparse.product_parts(*arguments)
    return out


def _how_to_drop(whether: bool, dropout: Dropout | None, run: int, real: Any) -> tuple[Any, ...]:
    """Return what the compiled loops read a dropout from; without one nothing is dropped."""
    if dropout is None:
        return whether, np.uint32(0), np.uint32(0), np.uint32(0), real(1)
    near, far, below, factor = dropout.numbers[run]
    return whether, np.uint32(near), np.uint32(far), np.uint32(below), real(factor)
