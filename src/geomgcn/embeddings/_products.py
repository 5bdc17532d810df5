"""Products with all squared distances of a graph, in as much memory as there is for them."""

import threading
from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np

from geomgcn.embeddings._kernels import (
    COLUMNS,
    HOP_TYPES,
    SOURCES_PER_SWEEP,
    add_products,
    each_piece,
    hops_from,
)
from geomgcn.embeddings._scaling import NEGLIGIBLE

OnBlock = Callable[[int, int], None]
"""Told how many blocks of how many are done."""


@runtime_checkable
class Paths(Protocol):
    """Shortest paths of a connected graph, as whole numbers of ``unit``."""

    num_nodes: int
    unit: float
    negligible: float  # eigenvalues below this, relative to the largest, come from rounding

    def block(
        self, sources: np.ndarray, first: int, stopped: threading.Event | None = None
    ) -> tuple[np.ndarray, int]:
        """Return distances of the nodes from ``first`` on, as rows, and the largest of all nodes."""


class Hops:
    """Shortest paths by their number of edges.

    Example:
        >>> triangle_with_tail = np.array([0, 2, 4, 7, 8]), np.array([1, 2, 0, 2, 0, 1, 3, 2])
        >>> Hops(*triangle_with_tail).block(np.array([0]), first=2)[0].tolist()
        [[1], [2]]
    """

    unit = 1.0
    negligible = NEGLIGIBLE

    def __init__(self, indptr: np.ndarray, indices: np.ndarray) -> None:
        self.indptr, self.indices = indptr, indices
        self.num_nodes = len(indptr) - 1
        self._width = 0  # of numbers, in HOP_TYPES; the first long path widens it for all blocks to come

    def block(
        self, sources: np.ndarray, first: int, stopped: threading.Event | None = None
    ) -> tuple[np.ndarray, int]:
        """Return hop distances in the smallest type that holds them, or that others before needed."""
        largest = -1
        for width in range(self._width, len(HOP_TYPES)):
            out, largest = hops_from(self.indptr, self.indices, sources, first, HOP_TYPES[width], stopped)
            if largest >= 0:
                self._width = max(self._width, width)
                break
        return out, largest


class SquaredDistances:
    """The matrix of squared distances between all nodes, half of it in memory or none.

    Distances are symmetric, so of those from 256 nodes only the ones to the nodes that follow are used,
    in both directions. They are kept as long as there is room, and computed again for the next
    product where there is not: that changes the time that a product takes, and no bit of the result.

    Args:
        keep: Bytes that may be kept.
        name: The node that each node of ``paths`` is in the vectors to multiply.

    Example:
        >>> path = Hops(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]))
        >>> SquaredDistances(path, keep=0).times(np.array([[1.0, 0.0, 0.0]])).tolist()
        [[0.0, 1.0, 4.0]]
    """

    def __init__(self, paths: Paths, keep: int, name: np.ndarray | None = None) -> None:
        self.paths = paths
        self.diameter = 0  # in units of the paths; known after the first product
        self._room = keep
        self._kept: dict[int, np.ndarray] = {}
        self._name = np.arange(paths.num_nodes) if name is None else name

    @property
    def num_blocks(self) -> int:
        """How many blocks of 256 sources there are."""
        return -(-self.paths.num_nodes // SOURCES_PER_SWEEP)

    def times(self, vectors: np.ndarray, on_block: OnBlock | None = None) -> np.ndarray:
        """Return the matrix times each row of ``vectors``."""
        padded = -(-len(vectors) // COLUMNS) * COLUMNS
        columns = np.zeros((padded, self.paths.num_nodes))
        columns[: len(vectors)] = vectors[:, self._name]
        total = np.zeros_like(columns)
        stopped = threading.Event()

        def work(number: int) -> tuple[np.ndarray, int, np.ndarray]:
            first = number * SOURCES_PER_SWEEP
            block, largest = self._kept.get(number), 0
            if block is None:
                sources = np.arange(first, min(first + SOURCES_PER_SWEEP, self.paths.num_nodes))
                block, largest = self.paths.block(sources, first, stopped)
            return block, largest, block_times(block, first, columns)

        for number, (block, largest, part) in enumerate(each_piece(work, range(self.num_blocks), stopped)):
            total[:, -part.shape[1] :] += part  # in the order of blocks, whoever was first
            self.diameter = max(self.diameter, largest)
            if number not in self._kept and block.nbytes <= self._room:
                self._room -= block.nbytes
                self._kept[number] = block
            if on_block is not None:
                on_block(number + 1, self.num_blocks)
        out = np.empty_like(vectors)
        out[:, self._name] = total[: len(vectors)]
        return out

    @property
    def is_kept(self) -> bool:
        """Whether the next product computes no distances."""
        return len(self._kept) == self.num_blocks


def block_times(block: np.ndarray, first: int, columns: np.ndarray) -> np.ndarray:
    """Return what distances of the nodes from ``first`` on to the up to 256 first of them add to a product.

    Args:
        columns: The vectors at all nodes, a multiple of four of them.
    """
    size, height = block.shape
    out = np.zeros((len(columns), size))
    for c in range(0, len(columns), COLUMNS):
        four, sums = columns[c : c + COLUMNS], out[c : c + COLUMNS]
        shares = _padded(four[:, first : first + height])
        totals = np.zeros(COLUMNS * SOURCES_PER_SWEEP)
        add_products(block, 0, height, shares, sums, first, four, totals, False)
        add_products(block, height, size, shares, sums, first, four, totals, True)
        sums[:, :height] += totals.reshape(COLUMNS, -1)[:, :height]
    return out


def sums_over_sources(block: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return squared distances times each row of ``weights``, summed over the sources of a block."""
    padded = -(-len(weights) // COLUMNS) * COLUMNS
    columns = np.zeros((padded, block.shape[1]))
    columns[: len(weights)] = weights
    out = np.zeros((padded, len(block)))
    unused: Any = np.zeros(COLUMNS * SOURCES_PER_SWEEP)
    for c in range(0, padded, COLUMNS):
        four, sums = columns[c : c + COLUMNS], out[c : c + COLUMNS]
        add_products(block, 0, len(block), _padded(four), sums, 0, four, unused, False)
    return out[: len(weights)]


def _padded(columns: np.ndarray) -> np.ndarray:
    """Return four vectors at up to 256 sources as one row, 256 places for each."""
    shares = np.zeros((COLUMNS, SOURCES_PER_SWEEP))
    shares[:, : columns.shape[1]] = columns
    return shares.reshape(-1)
