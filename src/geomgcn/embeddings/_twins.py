"""Nodes with the same neighbors: whatever is computed from paths cannot tell them apart."""

from dataclasses import dataclass
from typing import no_type_check

import numpy as np

from geomgcn._compiled import compiled


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
    # Sets are compared by the sums of two 64-bit random numbers a node, times an odd one of the length, and
    # then one by one where these agree: that is linear in edges and right whatever the numbers are.
    codes = np.random.default_rng(1).integers(0, 2**64, size=(num_nodes, 2), dtype=np.uint64)
    factors = np.ones(0, np.uint64) if lengths is None else _factors(lengths)
    lengths = np.ones(0) if lengths is None else lengths
    sums, least = _sums(indptr, indices, lengths, factors, codes)
    order = np.lexsort((sums[:, 1], sums[:, 0]))
    same = (sums[order[1:]] == sums[order[:-1]]).all(axis=1) & (np.diff(indptr)[order[1:]] > 0)
    _confirm(indptr, indices, lengths, order, same)
    label = np.empty(num_nodes, np.int64)
    start = np.arange(num_nodes)
    start[1:][same] = 0
    label[order] = order[np.maximum.accumulate(start)]  # sorting is stable, so that is the first node
    paired = np.zeros(num_nodes, bool)
    paired[order[1:][same]] = paired[order[:-1][same]] = True
    return (
        Twins(label, np.where(paired, 2 * least, 0.0)),
        Twins(*_linked(indptr, indices, lengths, factors, codes, sums, least)),
    )


def _factors(lengths: np.ndarray) -> np.ndarray:
    """Return an odd number for each length, whose bits all depend on all bits of the length.

    Multiples of the lengths themselves would not do: those of 1 and 3 differ by a high power of two, so
    that sums of products with them often agree. The mixer is the one of splitmix64 (Steele et al. 2014).
    """
    bits = np.ascontiguousarray(lengths, np.float64).view(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return (bits ^ (bits >> np.uint64(31))) | np.uint64(1)


@no_type_check
@compiled()
def _sums(indptr, indices, lengths, factors, codes):
    """Return for each node the sums of its neighbors' codes, and the length of its shortest edge."""
    num_nodes = len(indptr) - 1
    sums, least = np.zeros((num_nodes, 2), np.uint64), np.ones(num_nodes)
    for node in range(num_nodes):
        one = two = np.uint64(0)
        for e in range(indptr[node], indptr[node + 1]):
            factor = factors[e] if len(factors) else np.uint64(1)
            one += codes[indices[e], 0] * factor
            two += codes[indices[e], 1] * factor
            if len(lengths):
                least[node] = min(least[node], lengths[e])
        sums[node, 0], sums[node, 1] = one, two
    return sums, least


@no_type_check
@compiled()
def _equal_rows(indptr, indices, lengths, one, other):
    """Say whether two sorted rows are equal, but for the entries of the two nodes themselves."""
    a, b = indptr[one], indptr[other]
    while True:
        a += a < indptr[one + 1] and indices[a] == other
        b += b < indptr[other + 1] and indices[b] == one
        if a == indptr[one + 1] or b == indptr[other + 1]:
            return a == indptr[one + 1] and b == indptr[other + 1]
        if indices[a] != indices[b] or (len(lengths) and lengths[a] != lengths[b]):
            return False
        a += 1
        b += 1


@no_type_check
@compiled()
def _confirm(indptr, indices, lengths, order, same):
    """Clear the marks of nodes that have other neighbors than the node before them, in place."""
    for k in range(len(same)):
        same[k] = same[k] and _equal_rows(indptr, indices, lengths, order[k], order[k + 1])


@no_type_check
@compiled()
def _linked(indptr, indices, lengths, factors, codes, sums, least):
    """Return label and distance of linked twins: of two of them, the sums without each other are equal."""
    num_nodes = len(indptr) - 1
    label, apart = np.arange(num_nodes), np.zeros(num_nodes)
    for node in range(num_nodes):
        for e in range(indptr[node], indptr[node + 1]):
            near = indices[e]
            if near > node or indptr[near + 1] - indptr[near] != indptr[node + 1] - indptr[node]:
                continue
            factor = factors[e] if len(factors) else np.uint64(1)
            if (
                sums[node, 0] - codes[near, 0] * factor == sums[near, 0] - codes[node, 0] * factor
                and sums[node, 1] - codes[near, 1] * factor == sums[near, 1] - codes[node, 1] * factor
                and _equal_rows(indptr, indices, lengths, node, near)
            ):
                # All of a class are linked, so the first of a sorted row is the first of the class.
                length = lengths[e] if len(lengths) else 1.0
                apart[node] = apart[near] = min(length, 2 * least[node])
                label[node] = near
                break
    return label, apart
