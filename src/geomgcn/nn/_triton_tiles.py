"""How much one program of a kernel takes on, and the grid of programs."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

ELEMENTS = 2048
"""Numbers in a tile of two warps: eight loads of 16 bytes under way in each thread."""

MANY = 2048
"""Programs that fill a GPU; with fewer, smaller tiles are faster than full ones."""


@dataclass(frozen=True)
class Tile:
    """A tile of a kernel over rows; all sizes are powers of two."""

    rows: int
    neighbors: int
    channels: int
    warps: int = 2

    def grid(self, num_rows: int, channels: int, num_runs: int) -> tuple[int, int, int]:
        """Return how many programs cover the rows, the channels and the runs."""
        return -(-num_rows // self.rows), -(-channels // self.channels), num_runs


def power_of_two(number: int) -> int:
    """Return the smallest power of two that is not smaller.

    Example:
        >>> [power_of_two(n) for n in (1, 5, 16)]
        [1, 8, 16]
    """
    return 1 << max(number - 1, 0).bit_length()


def tile_for(num_rows: int, num_pairs: int, values: Tensor, elements: int = ELEMENTS) -> Tile:
    """Return a tile for rows of about ``num_pairs / num_rows`` pairs.

    Example:
        >>> tile_for(10**6, 10**7, torch.zeros(1, 1, 16))
        Tile(rows=16, neighbors=8, channels=16, warps=2)
    """
    elements //= 2 if values.dtype == torch.float64 else 1
    channels = min(power_of_two(values.size(2)), 64)
    average = num_pairs // max(num_rows, 1)
    neighbors = 8 if average <= 16 else 16 if average <= 64 else 32
    rows = max(elements // (neighbors * channels), 1)
    programs = num_rows * values.size(0) * -(-values.size(2) // channels)
    while rows > 1 and programs < MANY * rows:
        rows //= 2
    return Tile(rows, neighbors, channels)


def tile_for_pieces(values: Tensor, elements: int = ELEMENTS) -> Tile:
    """Return a tile for one row of many pairs.

    Example:
        >>> tile_for_pieces(torch.zeros(1, 1, 16))
        Tile(rows=1, neighbors=128, channels=16, warps=2)
    """
    elements //= 2 if values.dtype == torch.float64 else 1
    channels = min(power_of_two(values.size(2)), 64)
    return Tile(1, elements // channels if channels > 8 else 128, channels)


def accumulated(dtype: torch.dtype) -> torch.dtype:
    """Return the precision of sums.

    Example:
        >>> accumulated(torch.bfloat16)
        torch.float32
    """
    return torch.float64 if dtype == torch.float64 else torch.float32


def contiguous(values: Tensor) -> Tensor:
    """Return ``values`` with all rows of a run in one block; runs may lie anywhere.

    Example:
        >>> contiguous(torch.zeros(1, 2, 3).expand(4, 2, 3)).stride()
        (0, 3, 1)
    """
    return values if values[:1].is_contiguous() else values.contiguous()


def triton_type(values: Tensor) -> Any:
    """Return the precision of sums, in the words of Triton."""
    from geomgcn.nn._triton_language import tl

    return tl.float64 if accumulated(values.dtype) == torch.float64 else tl.float32
