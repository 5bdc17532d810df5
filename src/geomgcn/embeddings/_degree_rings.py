"""Degrees in the rings around each node, and which nodes have the same ones.

The ring k of a node holds the nodes at k hops. Its degrees, in order, are kept as pairs of a kind (a degree
that occurs in the graph, by rank) and how often it occurs. Equal sequences are kept by one number.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import no_type_check

import numpy as np

from geomgcn._compiled import compiled
from geomgcn.embeddings._kernels import (
    SOURCES_PER_SWEEP,
    WORDS,
    lowest_bit,
    near_together,
    over_pieces,
    visit,
)
from geomgcn.embeddings._random_bits import mixed


@dataclass(frozen=True)
class DegreeRings:
    """The distinct sequences of degrees in a graph, and which of them the rings of each role have.

    Attributes:
        degree: Of each kind, ascending.
        indptr: Where each distinct sequence begins in ``kinds`` and ``counts``; one more for the end.
        kinds, counts: The pairs of all sequences.
        rings: Number of the sequence of each role's rings, -1 for a ring without nodes; ``[roles, layers]``.
            Rows ascend, so roles whose first rings are equal lie together.
        role: Of each node. Two nodes have the same one where all their rings have the same degrees.
    """

    degree: np.ndarray
    indptr: np.ndarray
    kinds: np.ndarray
    counts: np.ndarray
    rings: np.ndarray
    role: np.ndarray


def degree_rings(
    indptr: np.ndarray,
    indices: np.ndarray,
    layers: int | None,
    on_done: Callable[[int, int], None] | None = None,
) -> DegreeRings:
    """Return the degrees in the rings 0 to ``layers`` of all nodes, or in all rings.

    Takes :math:`O(nm/64 + n^2)` time, as hop distances do, and memory for the sequences alone.

    Args:
        indptr, indices: The graph as compressed rows: symmetric, no loops, no duplicates.
        on_done: Is told how many of how many pieces are done.

    Example:
        >>> path = degree_rings(np.array([0, 1, 3, 4]), np.array([1, 0, 2, 1]), layers=None)
        >>> path.role.tolist(), path.degree.tolist()
        ([0, 1, 0], [1, 2])
        >>> path.rings.tolist()
        [[0, 1, 0], [1, 2, -1]]
    """
    num_nodes = len(indptr) - 1
    near_indptr, near_indices, _, name = near_together(indptr, indices)
    degree, kind = np.unique(np.diff(near_indptr), return_inverse=True)
    kind = kind.reshape(-1).astype(np.int32)
    last = num_nodes if layers is None else layers
    starts = range(0, num_nodes, SOURCES_PER_SWEEP)

    def work(first: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        stop = min(first + SOURCES_PER_SWEEP, num_nodes)
        kinds, counts, lengths = _sweep_rings(near_indptr, near_indices, kind, len(degree), first, stop, last)
        return kinds, counts, lengths.reshape(-1, stop - first)

    def tell(done: int) -> None:
        if on_done is not None:
            on_done(done, len(starts))

    pieces = over_pieces(work, starts, tell)
    kinds = np.concatenate([piece[0] for piece in pieces])
    counts = np.concatenate([piece[1] for piece in pieces])
    depth = max(len(piece[2]) for piece in pieces)
    length = np.zeros((num_nodes, depth), np.int64)
    start = np.zeros((num_nodes, depth), np.int64)
    offset = 0
    for first, piece in zip(starts, pieces, strict=True):
        lengths = piece[2]
        nodes = name[first : first + lengths.shape[1]]
        ends = offset + np.cumsum(lengths).reshape(lengths.shape)
        length[nodes, : len(lengths)] = lengths.T
        start[nodes, : len(lengths)] = (ends - lengths).T
        offset += int(lengths.sum())
    del pieces
    return _interned(degree, kinds, counts, start, length)


def _interned(
    degree: np.ndarray, kinds: np.ndarray, counts: np.ndarray, start: np.ndarray, length: np.ndarray
) -> DegreeRings:
    """Number the distinct sequences in the order of nodes, and the distinct rows of such numbers."""
    ids, first = _intern(start.reshape(-1), length.reshape(-1), kinds, counts)
    keep_length = length.reshape(-1)[first]
    indptr = np.concatenate([[0], np.cumsum(keep_length)])
    entries = np.arange(indptr[-1]) + np.repeat(start.reshape(-1)[first] - indptr[:-1], keep_length)
    rings, role = np.unique(ids.reshape(start.shape), axis=0, return_inverse=True)
    return DegreeRings(degree, indptr, kinds[entries], counts[entries], rings, role.reshape(-1))


@no_type_check
@compiled()
def _grown(array, needed):
    """Return the array, or a longer one with the same beginning."""
    if needed <= len(array):
        return array
    longer = np.empty(max(needed, 2 * len(array)), array.dtype)
    longer[: len(array)] = array
    return longer


@no_type_check
@compiled()
def _sweep_rings(indptr, indices, kind, num_kinds, first, stop, layers):
    """Return the kinds and counts in the rings around the nodes ``first`` to ``stop``, and their lengths.

    The search is that of :func:`geomgcn.embeddings._kernels.sweep`, from up to 256 sources at once. Where
    that one writes a distance, a count goes up here. Sequences are in the order of rings, then of sources.
    """
    num_nodes, num_sources = len(indptr) - 1, stop - first
    one, zero = np.uint64(1), np.uint64(0)
    state = np.zeros((num_nodes, 2 * WORDS), np.uint64)
    frontier = np.zeros((num_nodes, WORDS), np.uint64)
    active = np.empty(num_nodes, np.int64)
    touched = np.empty(num_nodes, np.int64)
    tally = np.zeros((num_sources, num_kinds), np.int32)
    kinds, counts = np.empty(1024, np.int32), np.empty(1024, np.int32)
    lengths = np.empty(16 * num_sources, np.int64)
    size, level, num_active = 0, 0, num_sources
    for source in range(num_sources):
        node = first + source
        bit = one << np.uint64(source & 63)
        frontier[node, source >> 6] = state[node, source >> 6] = bit
        active[source] = node
        tally[source, kind[node]] = 1
    while num_active > 0:
        kinds, counts = _grown(kinds, size + tally.size), _grown(counts, size + tally.size)
        lengths = _grown(lengths, (level + 1) * num_sources)
        for source in range(num_sources):
            before = size
            for k in range(num_kinds):
                if tally[source, k] > 0:
                    kinds[size], counts[size] = k, tally[source, k]
                    tally[source, k] = 0
                    size += 1
            lengths[level * num_sources + source] = size - before
        level += 1
        if level > layers:
            break
        num_touched = 0
        for a in range(num_active):
            num_touched = visit(indptr, indices, state, frontier, active[a], touched, num_touched)
        for t in range(num_touched):
            node = touched[t]
            for word in range(WORDS):
                new = state[node, WORDS + word]
                state[node, WORDS + word] = zero
                state[node, word] |= new
                frontier[node, word] = new
                while new:
                    tally[64 * word + np.int64(lowest_bit(new)), kind[node]] += 1
                    new &= new - one
        active, touched = touched, active
        num_active = num_touched
    return kinds[:size].copy(), counts[:size].copy(), lengths[: level * num_sources].copy()


@no_type_check
@compiled()
def _intern(start, length, kinds, counts):
    """Return a number for each sequence, -1 for empty ones, and the first sequence of each number."""
    slots = 16
    while slots < 2 * len(start):
        slots *= 2
    table = np.full(slots, -1, np.int64)
    ids = np.empty(len(start), np.int64)
    first = np.empty(len(start), np.int64)
    found = 0
    for s in range(len(start)):
        ids[s] = -1
        if length[s] == 0:
            continue
        digest = np.uint64(length[s])
        for e in range(start[s], start[s] + length[s]):
            digest = mixed(digest ^ ((np.uint64(kinds[e]) << np.uint64(32)) | np.uint64(counts[e])))
        slot = np.int64(digest & np.uint64(slots - 1))
        while ids[s] < 0:
            known = table[slot]
            if known < 0:
                table[slot] = ids[s] = found
                first[found] = s
                found += 1
            else:
                other = first[known]
                same = length[other] == length[s]
                k = 0
                while same and k < length[s]:
                    i, j = start[s] + k, start[other] + k
                    same = kinds[i] == kinds[j] and counts[i] == counts[j]
                    k += 1
                if same:
                    ids[s] = known
                slot = (slot + 1) & (slots - 1)
    return ids, first[:found].copy()
