"""The same hop distances and sums as in compiled loops, in tensor operations, for a GPU."""

import threading
import warnings

import numpy as np
import torch

from geomgcn.embeddings._kernels import HOP_TYPES
from geomgcn.embeddings._scaling import NEGLIGIBLE

COLUMNS_AT_ONCE = 64
"""Sources of a search; of a million nodes they take three quarters of a gigabyte."""

NODES_AT_ONCE = 1 << 18
"""Placed together; their squares take half a gigabyte."""


class DeviceHops:
    """Shortest paths by their number of edges, searched on a device.

    A level of the search is a product of the adjacency with the nodes of the level before, one column a
    source. It is a :class:`~geomgcn.embeddings._products.Paths`, as the compiled one is.

    Example:
        >>> triangle_with_tail = np.array([0, 2, 4, 7, 8]), np.array([1, 2, 0, 2, 0, 1, 3, 2])
        >>> DeviceHops(*triangle_with_tail, torch.device("cpu")).block(np.array([0]), first=2)[0].tolist()
        [[1], [2]]
    """

    unit = 1.0
    negligible = NEGLIGIBLE

    def __init__(self, indptr: np.ndarray, indices: np.ndarray, device: torch.device) -> None:
        self.num_nodes = len(indptr) - 1
        self.device = device
        rows, columns = (torch.from_numpy(part.astype(np.int64)) for part in (indptr, indices))
        size = (self.num_nodes, self.num_nodes)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Sparse CSR tensor support is in beta")
            self._adjacency = torch.sparse_csr_tensor(
                rows, columns, torch.ones(len(indices)), size, device=device, check_invariants=True
            )

    def block(
        self, sources: np.ndarray, first: int, stopped: threading.Event | None = None
    ) -> tuple[np.ndarray, int]:
        """Return hop distances of the nodes from ``first`` on, as rows, and the largest of all nodes."""
        parts = [
            self._search(sources[i : i + COLUMNS_AT_ONCE], stopped)
            for i in range(0, len(sources), COLUMNS_AT_ONCE)
        ]
        largest = max(part[1] for part in parts)
        dtype = next(kind for kind in HOP_TYPES if largest < np.iinfo(kind).max)
        out = np.empty((self.num_nodes - first, len(sources)), dtype)
        for i, (hops, _) in enumerate(parts):
            found = hops[first:].cpu().numpy()
            columns = slice(i * COLUMNS_AT_ONCE, i * COLUMNS_AT_ONCE + found.shape[1])
            out[:, columns] = np.where(found < 0, np.iinfo(dtype).max, found)
        return out, largest

    def _search(self, sources: np.ndarray, stopped: threading.Event | None) -> tuple[torch.Tensor, int]:
        """Return hops from some nodes, -1 where no path leads, and the largest."""
        chosen = torch.from_numpy(sources).to(self.device)
        number = torch.arange(len(sources), device=self.device)
        frontier = torch.zeros(self.num_nodes, len(sources), device=self.device)
        frontier[chosen, number] = 1.0
        hops = torch.full(frontier.shape, -1, dtype=torch.int32, device=self.device)
        hops[chosen, number] = 0
        level = 0
        while stopped is None or not stopped.is_set():
            reached = (self._adjacency @ frontier > 0) & (hops < 0)
            if not bool(reached.any()):
                break
            level += 1
            hops.masked_fill_(reached, level)
            frontier = reached.float()
        return hops, level

    def place(self, blocks: list[np.ndarray], weights: np.ndarray) -> np.ndarray:
        """Return the weighted sums of the squared distances of all nodes from the landmarks."""
        pos = np.empty((len(weights), self.num_nodes))
        shares = torch.from_numpy(weights).to(self.device)
        for start in range(0, self.num_nodes, NODES_AT_ONCE):
            nodes = slice(start, start + NODES_AT_ONCE)
            total, column = torch.zeros((), dtype=torch.float64, device=self.device), 0
            for block in blocks:
                squares = torch.from_numpy(block[nodes].astype(np.int32)).to(self.device).double().square()
                total = total + shares[:, column : column + block.shape[1]] @ squares.T
                column += block.shape[1]
            pos[:, nodes] = total.cpu().numpy()
        return pos
