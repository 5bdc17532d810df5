"""Compiled loops of the embeddings: arrays in, arrays out, no ids checked.

All take a graph as compressed sparse rows (``indptr``, ``indices``) with symmetric, loop-free, unique
entries; callers check the ids, since one out of range would crash the process here. Work is cut into
pieces that do not depend on the number of threads, so neither does any result.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, no_type_check

import numba
import numpy as np
import torch
from numba.extending import intrinsic
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from geomgcn._compiled import compiled
from geomgcn.embeddings._memory import check_memory

WORDS = 4
"""64-bit words a node: a sweep runs from 256 sources at once."""

SOURCES_PER_SWEEP = 64 * WORDS
COLUMNS = 4
"""Vectors multiplied together: enough to hide the conversion of distances to floats."""

HOP_TYPES = (np.uint8, np.uint16, np.uint32)

BUDGET = 1 << 22
"""Visits to neighbors between two looks at whether to stop; at most half a second."""


def over_pieces(
    work: Callable[[int], Any], starts: range, on_done: Callable[[int], None] | None = None
) -> list[Any]:
    """Call ``work`` with every start, on as many threads as torch uses, and keep the order.

    Args:
        on_done: Is told, in order, how many pieces are done.
    """
    found: list[Any] = []
    for result in each_piece(work, starts):
        found.append(result)
        if on_done is not None:
            on_done(len(found))
    return found


def each_piece(
    work: Callable[[int], Any], starts: range, stopped: threading.Event | None = None
) -> Iterator[Any]:
    """Yield ``work`` of every start, in order, computed on as many threads as torch uses.

    Args:
        stopped: Is set when nobody waits for results any more, after Ctrl-C for example.
    """
    threads = min(torch.get_num_threads(), len(starts))
    if threads <= 1:
        yield from map(work, starts)
        return
    pool = ThreadPoolExecutor(threads)
    ahead = deque[Any]()  # few, or results that wait would fill the memory
    try:
        for start in starts:
            ahead.append(pool.submit(work, start))
            if len(ahead) > 2 * threads:
                yield ahead.popleft().result()
        while ahead:
            yield ahead.popleft().result()
    finally:  # after Ctrl-C the pieces that have begun end, and no others begin
        if stopped is not None:
            stopped.set()
        pool.shutdown(wait=True, cancel_futures=True)


# `no_type_check` keeps the shape checks of the tests out of compiled code, which cannot hold them.
@no_type_check
@intrinsic
def lowest_bit(_context, word):
    """Return the place of the lowest bit set, one machine instruction."""

    def generate(context, builder, _signature, arguments):
        return builder.cttz(arguments[0], context.get_constant(numba.types.boolean, True))

    return numba.types.uint64(numba.types.uint64), generate


@no_type_check
@compiled(inline="always")
def visit(indptr, indices, state, frontier, node, touched, num_touched):
    """Send the bits of a node to its neighbors; those that get new ones are added to ``touched``.

    Returns:
        How many nodes are in ``touched``.
    """
    zero = np.uint64(0)
    f0, f1, f2, f3 = frontier[node, 0], frontier[node, 1], frontier[node, 2], frontier[node, 3]
    frontier[node, 0] = frontier[node, 1] = frontier[node, 2] = frontier[node, 3] = zero
    for e in range(indptr[node], indptr[node + 1]):
        near = indices[e]
        n0, n1 = f0 & ~state[near, 0], f1 & ~state[near, 1]
        n2, n3 = f2 & ~state[near, 2], f3 & ~state[near, 3]
        if n0 | n1 | n2 | n3:
            r0, r1, r2, r3 = state[near, 4], state[near, 5], state[near, 6], state[near, 7]
            if not (r0 | r1 | r2 | r3):
                touched[num_touched] = near
                num_touched += 1
            state[near, 4], state[near, 5] = r0 | n0, r1 | n1
            state[near, 6], state[near, 7] = r2 | n2, r3 | n3
    return num_touched


@no_type_check
@compiled()
def sweep(indptr, indices, state, frontier, lists, cursor, first, out, budget):
    """Go on with a breadth-first search from up to 256 sources at once, and write hop distances.

    Bit ``b`` of a node says whether source ``b`` has reached it, so one step along an edge serves all
    sources. ``out[v - first, b]`` is the distance of node ``v`` from source ``b``; nodes before ``first`` are
    searched, not written. Rows are nodes, because what a search writes at a time then lies together.

    Args:
        state: Of each node: words seen, then words newly reached; what a visit to a neighbor reads and
            writes lies together.
        frontier: Words that were reached in the last level.
        lists: Nodes with a frontier, and nodes newly reached; they change places with every level.
        cursor: Level, which of two phases, place in its list, length of the list of nodes with a frontier
            and of the other, and which of the lists comes first. The level is -1 after a distance too large
            for the type of ``out``, whose largest value stands for "unreachable".
        budget: About how many visits to make before returning, so that somebody can stop the search.

    Returns:
        Whether the search is over.
    """
    one, zero = np.uint64(1), np.uint64(0)
    largest = np.int64(np.iinfo(out.dtype).max) - 1
    level, phase, place, num_active, num_touched, turn = cursor
    work = 0
    while num_active > 0:
        active, touched = lists[turn], lists[1 - turn]
        if phase == 0:
            while place < num_active and work < budget:
                node = active[place]
                place += 1
                work += 1 + indptr[node + 1] - indptr[node]
                num_touched = visit(indptr, indices, state, frontier, node, touched, num_touched)
            if place < num_active:
                break
            level, phase, place = level + 1, 1, 0
            if num_touched > 0 and level > largest:
                cursor[0] = -1
                return True
        while place < num_touched and work < budget:
            node = touched[place]
            place += 1
            work += 8
            for word in range(WORDS):
                new = state[node, WORDS + word]
                state[node, WORDS + word] = zero
                state[node, word] |= new
                frontier[node, word] = new
                if node < first:
                    continue
                while new:
                    out[node - first, 64 * word + np.int64(lowest_bit(new))] = level
                    new &= new - one
        if place < num_touched:
            break
        phase, place, num_active, num_touched, turn = 0, 0, num_touched, 0, 1 - turn
    cursor[0], cursor[1], cursor[2] = level, phase, place
    cursor[3], cursor[4], cursor[5] = num_active, num_touched, turn
    return num_active == 0


def hops_from(
    indptr: np.ndarray,
    indices: np.ndarray,
    sources: np.ndarray,
    first: int,
    dtype: type[np.unsignedinteger[Any]],
    stopped: threading.Event | None = None,
) -> tuple[np.ndarray, int]:
    """Return hop distances of the nodes from ``first`` on, as rows, from up to 256 distinct sources.

    Returns:
        The distances, and the largest one of all nodes; -1 when it is too large for ``dtype``, whose largest
        value stands for "unreachable".
    """
    num_nodes = len(indptr) - 1
    out = np.full((num_nodes - first, len(sources)), np.iinfo(dtype).max, dtype)
    state = np.zeros((num_nodes, 2 * WORDS), np.uint64)
    frontier = np.zeros((num_nodes, WORDS), np.uint64)
    lists = np.empty((2, num_nodes), np.int32)
    number = np.arange(len(sources))
    lists[0, : len(sources)] = sources
    frontier[sources, number >> 6] = np.uint64(1) << (number & 63).astype(np.uint64)
    state[sources, number >> 6] = frontier[sources, number >> 6]
    written = sources >= first
    out[sources[written] - first, number[written]] = 0
    cursor = np.array([0, 0, 0, len(sources), 0, 0])
    while not sweep(indptr, indices, state, frontier, lists, cursor, first, out, BUDGET):
        if stopped is not None and stopped.is_set():
            break
    return out, int(cursor[0]) - int(cursor[0] > 0)  # the last level finds nobody


@no_type_check
@compiled(fastmath={"reassoc", "contract", "nsz"})  # sums may be vectorised; still the same every time
def add_products(block, start, stop, shares, out, first, vectors, totals, mirrored):
    """Add the products of squared distances and four vectors, of the rows ``start`` to ``stop`` of a block.

    Row ``j`` of the block is node ``first + j``. Sums over sources go to ``out``; where ``mirrored``, sums
    over these nodes, which are the distances the other way, go to ``totals``. Squares are made on the fly,
    two rows at a time, so no matrix of floats ever exists.

    Args:
        shares: The vectors at the sources, one after the other, each in a row of 256.
        vectors: The vectors at all nodes, ``[4, num_nodes]``.
        totals: One row of 256 for each vector, one after the other.
    """
    # One flat array each, with rows of a length known here: else the compiler cannot tell that writes to
    # `totals` leave the rest alone, and computes one number at a time.
    one, two, three = SOURCES_PER_SWEEP, 2 * SOURCES_PER_SWEEP, 3 * SOURCES_PER_SWEEP
    for i in range(start, stop, 2):
        k = min(i + 1, stop - 1)  # an odd last row is computed twice and added once
        row_i, row_k = block[i], block[k]
        i0 = i1 = i2 = i3 = 0.0
        k0 = k1 = k2 = k3 = 0.0
        if mirrored:
            u, v = first + i, first + k
            twice = 0.0 if k == i else 1.0
            p0, p1, p2, p3 = vectors[0, u], vectors[1, u], vectors[2, u], vectors[3, u]
            q0, q1, q2, q3 = vectors[0, v], vectors[1, v], vectors[2, v], vectors[3, v]
            q0, q1, q2, q3 = twice * q0, twice * q1, twice * q2, twice * q3
            for j in range(len(row_i)):
                a, b = np.float64(np.int32(row_i[j])), np.float64(np.int32(row_k[j]))
                a, b = a * a, b * b
                y0, y1, y2, y3 = shares[j], shares[one + j], shares[two + j], shares[three + j]
                i0, i1, i2, i3 = i0 + a * y0, i1 + a * y1, i2 + a * y2, i3 + a * y3
                k0, k1, k2, k3 = k0 + b * y0, k1 + b * y1, k2 + b * y2, k3 + b * y3
                totals[j] += a * p0 + b * q0
                totals[one + j] += a * p1 + b * q1
                totals[two + j] += a * p2 + b * q2
                totals[three + j] += a * p3 + b * q3
        else:
            for j in range(len(row_i)):
                a, b = np.float64(np.int32(row_i[j])), np.float64(np.int32(row_k[j]))
                a, b = a * a, b * b
                y0, y1, y2, y3 = shares[j], shares[one + j], shares[two + j], shares[three + j]
                i0, i1, i2, i3 = i0 + a * y0, i1 + a * y1, i2 + a * y2, i3 + a * y3
                k0, k1, k2, k3 = k0 + b * y0, k1 + b * y1, k2 + b * y2, k3 + b * y3
        out[0, i] += i0
        out[1, i] += i1
        out[2, i] += i2
        out[3, i] += i3
        if k > i:
            out[0, k] += k0
            out[1, k] += k1
            out[2, k] += k2
            out[3, k] += k3


@no_type_check
@compiled()
def _scatter(block, first, name, out):
    """Write a block of distances and its mirror image into rows and columns ``name`` of ``out``."""
    for top in range(0, block.shape[0], 64):  # so many rows of the block stay in the first cache
        for b in range(block.shape[1]):
            source = name[first + b]
            for j in range(top, min(top + 64, block.shape[0])):
                out[source, name[first + j]] = block[j, b]
    for j in range(block.shape[0]):
        node = name[first + j]
        for b in range(block.shape[1]):
            out[node, name[first + b]] = block[j, b]


def all_hop_distances(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return all hop distances in the smallest unsigned type that holds the diameter.

    The largest value of the type stands for "unreachable".

    Raises:
        ValueError: When they do not fit into the memory that is free.
    """
    num_nodes = len(indptr) - 1
    indptr, indices, _, name = near_together(indptr, indices)
    starts = range(0, num_nodes, SOURCES_PER_SWEEP)
    for dtype in HOP_TYPES:
        check_memory(num_nodes**2 * np.dtype(dtype).itemsize, num_nodes)
        out = np.full((num_nodes, num_nodes), np.iinfo(dtype).max, dtype)

        def work(first: int, out: np.ndarray = out, dtype: Any = dtype) -> int:
            sources = np.arange(first, min(first + SOURCES_PER_SWEEP, num_nodes))
            block, largest = hops_from(indptr, indices, sources, first, dtype)
            _scatter(block, first, name, out)
            return largest

        # A long path shows at the first sweep, before the others are run for nothing.
        if num_nodes == 0 or (work(0) >= 0 and min(over_pieces(work, starts[1:]), default=0) >= 0):
            return out
        del out, work
    raise AssertionError("a diameter of 2^32 needs more nodes than memory can hold")


def near_together(
    indptr: np.ndarray, indices: np.ndarray, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Renumber so that neighbors lie together in memory; twice as fast on 20,000 shuffled nodes.

    Args:
        weights: Of the entries, where they have any; they are returned in the new order.

    Returns:
        The graph in new numbers with its weights, and the old number of each new one.
    """
    num_nodes = len(indptr) - 1
    entries = np.ones(len(indices), np.int8) if weights is None else weights
    graph = csr_array((entries, indices, indptr), shape=(num_nodes, num_nodes))
    name = reverse_cuthill_mckee(graph, symmetric_mode=True).astype(np.int64) if num_nodes else indices[:0]
    graph = graph[name][:, name]
    return graph.indptr.astype(np.int64), graph.indices.astype(np.int32), graph.data, name
