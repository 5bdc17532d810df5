"""Dropout of dense rows, and products of a sparse matrix with dropout on its entries, in one pass each."""

from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from geomgcn.nn._dropout import Dropout
from geomgcn.nn._plain import Values
from geomgcn.nn._triton_tiles import MANY, Tile, accumulated, contiguous, power_of_two, tile_for, triton_type

SHARE = 512
"""Entries of a row that a program takes; where rows fill a GPU, up to eight times as many."""


def drop(x: Values, dropout: Dropout) -> Values:
    """Return ``x`` with entries dropped, as ``_plain.drop`` does."""
    from geomgcn.nn._triton_entry_kernels import drop_rows

    x = contiguous(x)
    out = torch.empty_like(x, memory_format=torch.contiguous_format)
    if not out.numel():
        return out
    num_runs, num_rows, channels = x.shape
    block = min(power_of_two(channels), 256)
    rows = 2048 // block
    with torch.cuda.device_of(x):
        drop_rows[Tile(rows, 1, block).grid(num_rows, channels, num_runs)](
            out,
            x,
            **dropped(dropout),
            x_run=x.stride(0),
            out_run=out.stride(0),
            num_rows=num_rows,
            TYPE=triton_type(x),
            CHANNELS=channels,
            ROWS=rows,
            BLOCK=block,
            num_warps=4,
        )
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
    """Return a sparse matrix times ``dense``, as ``_plain.sparse_product`` does."""
    dense = contiguous(dense)
    num_runs, num_columns, channels = dense.shape
    num_rows = len(start) - 1
    tile = tile_for(num_rows, len(other), dense)
    shares = num_shares(num_rows, num_columns, len(other), tile.grid(num_rows, channels, num_runs))
    wide = accumulated(dense.dtype) if shares > 1 else dense.dtype
    out = dense.new_empty(num_runs, num_rows, shares, channels, dtype=wide)
    if out.numel():
        _launch_sparse(out, dense, (start, other, entries), dropout, tile, transposed)
    return out.squeeze(2) if shares == 1 else out.sum(2).to(dense.dtype)


def _launch_sparse(
    out: Tensor,
    dense: Tensor,
    matrix: tuple[Tensor, Tensor, Tensor],
    dropout: Dropout | None,
    tile: Tile,
    transposed: bool,
) -> None:
    from geomgcn.nn._triton_entry_kernels import sparse_rows

    num_runs, num_rows, shares, channels = out.shape
    with torch.cuda.device_of(dense):
        sparse_rows[tile.grid(num_rows, channels, num_runs * shares)](
            out,
            dense,
            *matrix,
            **dropped(dropout),
            out_run=out.stride(0),
            values_run=dense.stride(0),
            num_rows=num_rows,
            SHARES=shares,
            TRANSPOSED=transposed,
            TYPE=triton_type(dense),
            CHANNELS=channels,
            ROWS=tile.rows,
            NEIGHBORS=tile.neighbors,
            BLOCK=tile.channels,
            num_warps=tile.warps,
        )


def num_shares(num_rows: int, num_columns: int, num_entries: int, grid: tuple[int, int, int]) -> int:
    """Return into how many shares all rows are cut, where some may be as long as there are columns.

    A power of two, since it is compiled into the kernel. Shares have to be worth their place in memory, so
    on average a row has two entries for each.

    Example:
        >>> num_shares(500, 20000, 10**6, (500, 1, 1)), num_shares(20000, 500, 10**6, (1250, 1, 1))
        (16, 1)
    """
    longest = min(num_columns, num_entries)
    wanted = max(
        -(-longest // (8 * SHARE)), min(-(-longest // SHARE), -(-2 * MANY // max(grid[0] * grid[2], 1)))
    )
    return power_of_two(max(1, min(wanted, num_entries // max(2 * num_rows, 1))))


def dropped(dropout: Dropout | None) -> dict[str, Any]:
    """Return the arguments of a kernel that drops.

    Example:
        >>> dropped(None)
        {'seed': None, 'below': None, 'factor': None}
    """
    names = ("seed", "below", "factor")
    return {name: None if dropout is None else getattr(dropout, name).contiguous() for name in names}
