"""Dropout from random bits that depend on a seed and a place alone, so that nobody has to keep a mask.

Forward and backward pass, dense and sparse features, one run and many, CPU and GPU all ask for the bits of
(seed, row, column) and get the same ones.
"""

from dataclasses import dataclass
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor

MASK = 0xFFFFFFFF
FIRST, SECOND = 0x7FEB352D, 0x846CA68B
"""Factors of a hash of low bias (C. Wellons, "Prospecting for hash functions", 2018)."""

COLUMN = 0x9E3779B9
"""2^32 over the golden ratio: neighbouring columns get distant numbers."""


def mixed(number: Tensor) -> Tensor:
    """Return 32 well-mixed bits for each 32-bit number, as int64.

    Example:
        >>> mixed(torch.tensor([0, 1]))
        tensor([         0, 1753845952])
    """
    number = number ^ (number >> 16)
    number = (number * FIRST) & MASK
    number = number ^ (number >> 15)
    number = (number * SECOND) & MASK
    return number ^ (number >> 16)


def random_bits(
    seed: Int[Tensor, "..."], row: Int[Tensor, "..."], column: Int[Tensor, "..."]
) -> Int[Tensor, "..."]:
    """Return 32 random bits for a place, of seeds, rows and columns that broadcast.

    Example:
        >>> random_bits(torch.tensor(1), torch.tensor(2), torch.tensor([3, 4])).shape
        torch.Size([2])
    """
    near, far = seed & MASK, (seed >> 32) & MASK
    first = mixed((row & MASK) ^ near)
    second = mixed((first + far) & MASK)
    return (mixed(((column * COLUMN) & MASK) ^ second) + first) & MASK


def draw_seeds(num_layers: int, generator: torch.Generator | None = None) -> Int[Tensor, " num_layers"]:
    """Return a seed of dropout for each layer, of torch's own generator or of one given.

    Example:
        >>> draw_seeds(2).shape
        torch.Size([2])
    """
    return torch.randint(-(2**63), 2**63 - 1, (num_layers,), generator=generator)


@dataclass(frozen=True, eq=False)
class Dropout:
    """What to drop: one seed and one probability for each run.

    Attributes:
        seed: 64 bits for each run.
        below: Bits below this drop an entry.
        factor: What entries that stay are multiplied by.

    Example:
        >>> Dropout.of(torch.tensor([1]), [0.5]).factor
        tensor([2.], dtype=torch.float64)
    """

    seed: Int[Tensor, " num_runs"]
    below: Int[Tensor, " num_runs"]
    factor: Float[Tensor, " num_runs"]

    @classmethod
    def of(cls, seed: Int[Tensor, " num_runs"], rate: list[float]) -> "Dropout":
        """Make it from seeds and probabilities, each rounded to a multiple of 2^-32."""
        below = [min(round(p * 2**32), MASK) for p in rate]
        factor = [0.0 if steps == MASK else 2**32 / (2**32 - steps) for steps in below]
        return cls(
            seed,
            torch.tensor(below, dtype=torch.long, device=seed.device),
            torch.tensor(factor, dtype=torch.float64, device=seed.device),
        )

    @cached_property
    def numbers(self) -> list[tuple[int, int, int, float]]:
        """Of each run: the lower and the upper half of its seed, and the other two; waits for the device."""
        columns = (self.seed.tolist(), self.below.tolist(), self.factor.tolist())
        return [
            (seed & MASK, seed >> 32 & MASK, below, factor)
            for seed, below, factor in zip(*columns, strict=True)
        ]

    def kept(self, run: int, row: Tensor, column: Tensor) -> Tensor:
        """Return whether entries stay, for one run.

        Example:
            >>> Dropout.of(torch.tensor([1]), [0.0]).kept(0, torch.tensor(0), torch.arange(3))
            tensor([True, True, True])
        """
        return random_bits(self.seed[run], row, column) >= self.below[run]
