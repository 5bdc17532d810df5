"""Nodes with the same neighbors: whatever is computed from paths cannot tell them apart."""

from dataclasses import dataclass
from typing import no_type_check

import numpy as np

from geomgcn.embeddings._kernels import compiled


@dataclass(frozen=True, eq=False)
class Twins:
    """Classes of nodes with the same neighbors, at the same lengths.

    Attributes:
        label: A number for each class, that of its first node.
        apart: Of each node that has twins, its distance to them; 0 for others.
    """

    label: np.ndarray
    apart: np.ndarray

    @property
    def any(self) -> bool:
        """Whether there are two of them."""
        return bool(self.apart.any())

    def sums(self, rows: np.ndarray) -> np.ndarray:
        """Return for each row and node the sum over the node's class."""
        size = len(self.label)
        return np.stack([np.bincount(self.label, weights=row, minlength=size)[self.label] for row in rows])

    def joined(self, rows: np.ndarray, which: np.ndarray) -> np.ndarray:
        """Give the chosen ones the mean of their class; they should differ by rounding only."""
        chosen = which & (self.apart > 0)
        if not chosen.any():
            return rows
        counts = np.bincount(self.label, minlength=len(self.label))[self.label]
        return np.where(chosen, self.sums(rows) / counts, rows)


def find_twins(
    indptr: np.ndarray, indices: np.ndarray, lengths: np.ndarray | None = None
) -> tuple[Twins, Twins]:
    """Return the twins that are not linked and those that are.

    Args:
        lengths: Of each entry; all 1 unless given.

    Example:
        >>> star_of_two = np.array([0, 2, 3, 4]), np.array([1, 2, 0, 0])
        >>> [twins.apart.tolist() for twins in find_twins(*star_of_two)]
        [[0.0, 2.0, 2.0], [0.0, 0.0, 0.0]]
    """
    num_nodes = len(indptr) - 1
    # Sets are compared by the sums of two 64-bit random numbers a node: equal ones by chance in one
    # graph of 2^64 nodes or so.
    codes = np.random.default_rng(1).integers(0, 2**64, size=(num_nodes, 2), dtype=np.uint64)
    lengths = np.ones(0) if lengths is None else lengths
    sums, least = _sums(indptr, indices, lengths, codes)
    order = np.lexsort((sums[:, 1], sums[:, 0]))
    same = (sums[order[1:]] == sums[order[:-1]]).all(axis=1) & (np.diff(indptr)[order[1:]] > 0)
    label = np.empty(num_nodes, np.int64)
    start = np.arange(num_nodes)
    start[1:][same] = 0
    label[order] = order[np.maximum.accumulate(start)]  # sorting is stable, so that is the first node
    paired = np.zeros(num_nodes, bool)
    paired[order[1:][same]] = paired[order[:-1][same]] = True
    return (
        Twins(label, np.where(paired, 2 * least, 0.0)),
        Twins(*_linked(indptr, indices, lengths, codes, sums, least)),
    )


@no_type_check
@compiled()
def _factor(lengths, entry):
    """Return an odd number for the length of an entry."""
    if len(lengths) == 0:
        return np.uint64(1)
    # The integer nearest to the length in units of 2^-60 of the largest one, which is at most 1.
    return np.uint64(np.int64(lengths[entry] * 1152921504606846976.0)) * np.uint64(2) + np.uint64(1)


@no_type_check
@compiled()
def _sums(indptr, indices, lengths, codes):
    """Return for each node the sums of its neighbors' codes, and the length of its shortest edge."""
    num_nodes = len(indptr) - 1
    sums, least = np.zeros((num_nodes, 2), np.uint64), np.ones(num_nodes)
    for node in range(num_nodes):
        one = two = np.uint64(0)
        for e in range(indptr[node], indptr[node + 1]):
            factor = _factor(lengths, e)
            one += codes[indices[e], 0] * factor
            two += codes[indices[e], 1] * factor
            if len(lengths):
                least[node] = min(least[node], lengths[e])
        sums[node, 0], sums[node, 1] = one, two
    return sums, least


@no_type_check
@compiled()
def _linked(indptr, indices, lengths, codes, sums, least):
    """Return label and distance of linked twins: of two of them, the sums without each other are equal."""
    num_nodes = len(indptr) - 1
    label, apart = np.arange(num_nodes), np.zeros(num_nodes)
    for node in range(num_nodes):
        for e in range(indptr[node], indptr[node + 1]):
            near = indices[e]
            if near > node or indptr[near + 1] - indptr[near] != indptr[node + 1] - indptr[node]:
                continue
            factor = _factor(lengths, e)
            if (
                sums[node, 0] - codes[near, 0] * factor == sums[near, 0] - codes[node, 0] * factor
                and sums[node, 1] - codes[near, 1] * factor == sums[near, 1] - codes[node, 1] * factor
            ):
                # All of a class are linked, so the first of a sorted row is the first of the class.
                length = lengths[e] if len(lengths) else 1.0
                apart[node] = apart[near] = min(length, 2 * least[node])
                label[node] = near
                break
    return label, apart
