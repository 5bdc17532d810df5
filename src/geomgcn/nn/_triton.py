"""The products of :mod:`geomgcn.nn._plain` on a GPU, in one pass each: same names, same results.

Values are summed in single precision (double where they are double), whatever their own is. No call waits for
the device, so all can be captured in a CUDA graph once each has run: the first run compiles.
"""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from geomgcn.nn._adjacency import Pairs
from geomgcn.nn._plain import Finish, Values
from geomgcn.nn._triton_adam import adam as adam
from geomgcn.nn._triton_sparse import drop as drop
from geomgcn.nn._triton_sparse import dropped
from geomgcn.nn._triton_sparse import sparse_product as sparse_product
from geomgcn.nn._triton_tiles import (
    ELEMENTS,
    Tile,
    accumulated,
    contiguous,
    tile_for,
    tile_for_pieces,
    triton_type,
)

ALL = 2**31 - 1
"""No row is too long."""

OLDEST = (7, 0)
"""Compute capability that Triton asks for."""


def available() -> bool:
    """Return whether there is a GPU, and Triton to compile for it.

    Example:
        >>> available() in (True, False)
        True
    """
    if not torch.cuda.is_available() or find_spec("triton") is None:
        return False
    return torch.version.hip is not None or torch.cuda.get_device_capability() >= OLDEST


@dataclass(frozen=True)
class _Rows:
    """Rows for a kernel, as it takes them."""

    begin: Tensor
    end: Tensor
    num_rows: int
    num_pairs: int
    step: int = 1
    limit: int = ALL
    own: Tensor | None = None
    into: Tensor | None = None

    def named(self) -> dict[str, Any]:
        """Return the arguments that all kernels take."""
        names = ("begin", "end", "num_rows", "step", "limit")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True)
class Launch:
    """How rows are shared among programs; by default, by rules of thumb.

    Attributes:
        rows: Tile for rows that are not long.
        pieces: Tile for the pieces of long rows.
    """

    rows: Tile | None = None
    pieces: Tile | None = None


class _Plan:
    """Up to three launches a product: rows that are not long, pieces of long ones, sums over the pieces."""

    def __init__(
        self, pairs: Pairs, to_slots: bool, values: Tensor, elements: int, launch: Launch | None
    ) -> None:
        launch = launch or Launch()
        step = 1 if to_slots else pairs.num_virtual_nodes
        num_rows = (len(pairs.start) - 1) // step
        self.long = long = pairs.long_rows(of_nodes=not to_slots)
        start, num_pairs = pairs.start, len(pairs.other)
        self.rows = _Rows(start, start[step:], num_rows, num_pairs, step, long.limit)
        self.tile = launch.rows or tile_for(num_rows, num_pairs, values, elements)
        self.num_pieces, self.num_long = len(long.owner), len(long.row)
        self.pieces = _Rows(long.begin, long.end, self.num_pieces, num_pairs, own=long.owner)
        self.piece_tile = launch.pieces or tile_for_pieces(values, elements)
        self.joins = _Rows(long.first, long.first[1:], self.num_long, self.num_pieces, into=long.row)
        self.join_tile = tile_for(max(self.num_long, 1), self.num_pieces, values, elements)


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
    launch: Launch | None = None,
) -> Values:
    """Return, for each row, the weighted sum of what its pairs read, as ``_plain.gather`` does.

    Args:
        scale: Compiled into the kernel, so it should take few values.
    """
    values = contiguous(values)
    if gate is not None and gate.stride() != values.stride():
        values, gate = values.contiguous(), gate.contiguous()
    count = pairs.num_virtual_nodes
    out = values.new_empty(values.size(0), pairs.num_nodes * (count if to_slots else 1), values.size(2))
    reading = {"other": pairs.other, "weight": pairs.weight, "gate": gate}
    divisor = {"DIVISOR": 1 if from_slots else count}
    plan = _Plan(pairs, to_slots, values, ELEMENTS, launch)
    writing = _writing(finish, count if to_slots else 1, scale)
    if factor is not None:
        assert finish is None, "the kernel has one factor a run, which is that of dropout here"
        writing["factor"] = factor.contiguous()
    _sums(plan, out, values, reading | divisor, writing)
    return out


def from_largest(
    pairs: Pairs, values: Values, top: Values, share: Values, launch: Launch | None = None
) -> Values:
    """Return the gradient of ``values`` in :func:`largest`, as ``_plain.from_largest`` does."""
    values, top, share = contiguous(values), top.contiguous(), share.contiguous()
    out = torch.empty_like(values, memory_format=torch.contiguous_format)
    plan = _Plan(pairs, False, values, ELEMENTS, launch)
    reading = {"other": pairs.other, "gate": top, "equal": values, "equal_run": values.stride(0)}
    _sums(plan, out, share, reading, _writing(None, 1, 1.0))
    return out


def _writing(finish: Finish | None, count: int, scale: float) -> dict[str, Any]:
    """Return what the kernel of sums does with them."""
    writing: dict[str, Any] = {"COUNT": count, "SCALE": float(scale), "FINISH": finish is not None}
    if finish is not None and finish.bias is not None:
        writing["bias"] = finish.bias.contiguous()
    return writing | dropped(None if finish is None else finish.dropout)


UNUSED = dict.fromkeys(("other", "weight", "gate", "equal", "bias"))


def _sums(plan: _Plan, out: Tensor, values: Tensor, reading: dict[str, Any], writing: dict[str, Any]) -> None:
    """Launch the kernel of sums."""
    _sum(plan.rows, plan.tile, out, values, reading | writing)
    if plan.num_long:
        wide = accumulated(values.dtype)
        parts = values.new_empty(values.size(0), plan.num_pieces, values.size(2), dtype=wide)
        _sum(plan.pieces, plan.piece_tile, parts, values, reading | _writing(None, 1, 1.0))
        _sum(plan.joins, plan.join_tile, out, parts, {"DIVISOR": 1} | writing)


def _sum(rows: _Rows, tile: Tile, out: Tensor, values: Tensor, options: dict[str, Any]) -> None:
    from geomgcn.nn._triton_kernels import sum_rows

    options = UNUSED | {"equal_run": 0, "DIVISOR": 1} | options
    _launch(sum_rows, rows, tile, out, values, own=rows.own, into=rows.into, **options)


def largest(pairs: Pairs, values: Values, launch: Launch | None = None) -> tuple[Values, Values]:
    """Return the largest value of each virtual node and how many tie for it, as ``_plain.largest`` does."""
    from geomgcn.nn._triton_kernels import largest_rows

    values = contiguous(values)
    shape = (values.size(0), len(pairs.start) - 1, values.size(2))
    top, ties = values.new_empty(shape), values.new_empty(shape)
    plan = _Plan(pairs, True, values, ELEMENTS // 2, launch)
    read = {"other": pairs.other, "counts": None, "DIVISOR": pairs.num_virtual_nodes}
    _launch(largest_rows, plan.rows, plan.tile, top, values, ties=ties, into=None, **read)
    if plan.num_long:
        tops = values.new_empty(shape[0], plan.num_pieces, shape[2], dtype=accumulated(values.dtype))
        numbers = torch.empty_like(tops)
        _launch(largest_rows, plan.pieces, plan.piece_tile, tops, values, ties=numbers, into=None, **read)
        read = {"other": None, "counts": numbers, "DIVISOR": 1}
        _launch(largest_rows, plan.joins, plan.join_tile, top, tops, ties=ties, into=plan.joins.into, **read)
    return top, ties


def pair_products(
    pairs: Pairs,
    values: Values,
    grad: Values,
    *,
    from_slots: bool,
    to_slots: bool,
    scale: float = 1.0,
    launch: Launch | None = None,
) -> Float[Tensor, " num_edges"]:
    """Return, for each pair, the gradient of its weight, as ``_plain.pair_products`` does.

    Args:
        scale: Compiled into the kernel, so it should take few values.
    """
    from geomgcn.nn._triton_kernels import product_rows

    values, grad = contiguous(values), contiguous(grad)
    out = values.new_zeros(len(pairs.other)) if values.numel() == 0 else values.new_empty(len(pairs.other))
    plan = _Plan(pairs, to_slots, values, ELEMENTS // 2, launch)
    divisor = 1 if from_slots else pairs.num_virtual_nodes
    options = {"grad": grad, "grad_run": grad.stride(0), "num_runs": values.size(0)}
    options |= {"other": pairs.other, "DIVISOR": divisor, "SCALE": float(scale)}
    for rows, tile in ((plan.rows, plan.tile), (plan.pieces, plan.piece_tile)):
        _launch(product_rows, rows, tile, out, values, own=rows.own, **options)
    return out


def _launch(kernel: Any, rows: _Rows, tile: Tile, out: Tensor, values: Tensor, **options: Any) -> None:
    """Launch a kernel over rows, on the device of the values."""
    num_runs, _, channels = values.shape
    runs = options.get("num_runs")
    grid = tile.grid(rows.num_rows, 1 if runs else channels, 1 if runs else num_runs)
    if 0 in grid or 0 in values.shape[::2]:
        return
    options |= rows.named() | {"values_run": values.stride(0)}
    if out.dim() == 3:
        options["out_run"] = out.stride(0)
    with torch.cuda.device_of(values):
        kernel[grid](
            out,
            values=values,
            TYPE=triton_type(values),
            CHANNELS=channels,
            ROWS=tile.rows,
            NEIGHBORS=tile.neighbors,
            BLOCK=tile.channels,
            num_warps=tile.warps,
            **options,
        )
