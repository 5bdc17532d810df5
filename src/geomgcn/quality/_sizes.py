"""How large neighborhoods are, node by node."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class SizeBin:
    """How many nodes have ``low`` to ``high`` neighbors, in the graph and in the latent space."""

    low: int
    high: int
    graph: int
    latent: int


@dataclass(frozen=True)
class Sizes:
    """The distribution of neighborhood sizes over nodes.

    Attributes:
        most: The largest but for the upper tenth of the nodes (the 90 % quantile).
        none: How many nodes have no neighbor.

    Example:
        >>> Sizes.of(np.array([0, 1, 3, 4]))
        Sizes(min=0, median=2.0, mean=2.0, most=4, max=4, none=1)
    """

    min: int
    median: float
    mean: float
    most: int
    max: int
    none: int

    @classmethod
    def of(cls, sizes: np.ndarray) -> "Sizes":
        """Return the distribution of some sizes."""
        return cls(
            min=int(sizes.min()),
            median=float(np.median(sizes)),
            mean=float(sizes.mean()),
            most=int(np.quantile(sizes, 0.9, method="higher")),
            max=int(sizes.max()),
            none=int((sizes == 0).sum()),
        )


def size_bins(graph: np.ndarray, latent: np.ndarray) -> tuple[SizeBin, ...]:
    """Return a histogram of two kinds of sizes; bins are 0, 1, 2, 3 to 4, 5 to 8, and so on.

    Example:
        >>> size_bins(np.array([0, 1]), np.array([4, 4]))[2:]
        (SizeBin(low=2, high=2, graph=0, latent=0), SizeBin(low=3, high=4, graph=0, latent=2))
    """
    largest = max(int(graph.max()), int(latent.max()))
    highs = [0, 1]
    while highs[-1] < largest:
        highs.append(2 * highs[-1])
    lows = [0, *(high + 1 for high in highs[:-1])]
    edges = np.array([*lows, highs[-1] + 1])
    counts = [np.histogram(sizes, edges)[0].tolist() for sizes in (graph, latent)]
    return tuple(SizeBin(*row) for row in zip(lows, highs, *counts, strict=True))
