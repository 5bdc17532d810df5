"""Rows with more pairs than one program of a GPU should walk through alone: hubs, cut into pieces."""

from dataclasses import dataclass

import torch
from jaxtyping import Int
from torch import Tensor

SHORTEST = 256
"""Rows of up to so many pairs are never long: cutting them costs more than it saves."""

TIMES_AVERAGE = 4
"""Rows of up to so many times the average are not long either: those beside them take about as much."""

PIECE = 1024
"""Pairs of one piece."""


@dataclass(frozen=True, eq=False)
class LongRows:
    """Which rows are long, and their pieces in order; the sums of the pieces are added up in that order.

    Attributes:
        limit: Most pairs of a row that is not long.
        row: The long rows.
        first: Where the pieces of each long row begin among all pieces.
        begin: First pair of each piece.
        end: First pair after each piece.
        owner: The row that each piece belongs to.

    Example:
        >>> rows = LongRows.of(torch.tensor([0, 2, 7, 8]), limit=3, piece=2)
        >>> rows.row, rows.first, rows.begin, rows.end
        (tensor([1]), tensor([0, 3]), tensor([2, 4, 6]), tensor([4, 6, 7]))
    """

    limit: int
    row: Int[Tensor, " num_long"]
    first: Int[Tensor, " num_long_and_one"]
    begin: Int[Tensor, " num_pieces"]
    end: Int[Tensor, " num_pieces"]
    owner: Int[Tensor, " num_pieces"]

    @classmethod
    def of(
        cls, start: Int[Tensor, " num_rows_and_one"], limit: int | None = None, piece: int = PIECE
    ) -> "LongRows":
        """Find the long rows and cut them; waits for the device, so it has no place in a training step."""
        start = start.long()
        sizes = start.diff()
        if limit is None:
            average = int(start[-1]) // max(len(sizes), 1)
            limit = max(SHORTEST, TIMES_AVERAGE * average)
        row = (sizes > limit).nonzero().squeeze(1)
        counts = (sizes[row] + piece - 1) // piece
        first = torch.zeros(len(row) + 1, dtype=torch.long, device=start.device)
        torch.cumsum(counts, 0, out=first[1:])
        owner = row.repeat_interleave(counts)
        within = torch.arange(len(owner), device=start.device) - first[:-1].repeat_interleave(counts)
        begin = start[owner] + within * piece
        return cls(limit, row, first, begin, torch.minimum(begin + piece, start[owner + 1]), owner)
