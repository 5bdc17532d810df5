"""Compiled loops of the embeddings: arrays in, arrays out, no ids checked.

All take a graph as compressed sparse rows (``indptr``, ``indices``) with symmetric, loop-free, unique
entries; callers check the ids, since one out of range would crash the process here. Work is cut into
pieces that do not depend on the number of threads, so neither does any result.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, no_type_check

import numba
import numpy as np
import torch
from numba.extending import intrinsic
from scipy.sparse import csr_array
from scipy.sparse.csgraph import reverse_cuthill_mckee

from geomgcn.embeddings._memory import check_memory

WORDS = 4
"""64-bit words a node: a sweep runs from 256 sources at once."""

SOURCES_PER_SWEEP = 64 * WORDS
COLUMNS = 4
"""Vectors multiplied together: enough to hide the conversion of distances to floats."""

ROWS_PER_PIECE = 2048
"""Rows multiplied by one thread; fewer would take less time than it takes to start a thread."""

TILE = 1024
"""Columns of a tile: its share of the vectors (32 kB) stays in the first cache."""


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Compile with numba, releasing the interpreter lock, and keep the code on disk where possible."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        try:
            return numba.njit(nogil=True, cache=True, **options)(function)
        except RuntimeError:  # no folder to keep it in: neither the package's nor the user's is writable
            return numba.njit(nogil=True, **options)(function)

    return decorate


def over_pieces(
    work: Callable[[int], Any], starts: range, on_done: Callable[[int], None] | None = None
) -> list[Any]:
    """Call ``work`` with every start, on as many threads as torch uses, and keep the order.

    Args:
        on_done: Is told, in order, how many pieces are done.
    """
    found: list[Any] = []
    for result in _each_piece(work, starts):
        found.append(result)
        if on_done is not None:
            on_done(len(found))
    return found


def _each_piece(work: Callable[[int], Any], starts: range) -> Iterator[Any]:
    threads = min(torch.get_num_threads(), len(starts))
    if threads <= 1:
        yield from map(work, starts)
        return
    pool = ThreadPoolExecutor(threads)
    try:
        yield from pool.map(work, starts)
    finally:  # after Ctrl-C the pieces that have begun end, and no others begin
        pool.shutdown(wait=True, cancel_futures=True)


# `no_type_check` keeps the shape checks of the tests out of compiled code, which cannot hold them.
@no_type_check
@intrinsic
def _lowest_bit(_context, word):
    """Return the place of the lowest bit set, one machine instruction."""

    def generate(context, builder, _signature, arguments):
        return builder.cttz(arguments[0], context.get_constant(numba.types.boolean, True))

    return numba.types.uint64(numba.types.uint64), generate


@no_type_check
@compiled()
def sweep(indptr, indices, name, first, stop, out):
    """Write hop distances from the nodes ``first`` to ``stop`` into rows of ``out``.

    Breadth-first search from up to 256 sources at once: bit ``b`` of a node says whether source
    ``first + b`` has reached it, so one step along an edge serves all sources. Node ``v`` owns row and
    column ``name[v]`` of ``out``. Rows are sources, not nodes, because the writes of a sweep then
    stay within few pages.

    Returns:
        The largest distance, or -1 when one is too large for the type of ``out``, whose largest value
        stands for "unreachable".
    """
    num_nodes = len(indptr) - 1
    one, zero = np.uint64(1), np.uint64(0)
    largest = np.int64(np.iinfo(out.dtype).max) - 1
    # What a visit to a neighbor reads and writes lies together: words seen, then words newly reached.
    state = np.zeros((num_nodes, 2 * WORDS), np.uint64)
    frontier = np.zeros((num_nodes, WORDS), np.uint64)
    active = np.empty(num_nodes, np.int64)
    touched = np.empty(num_nodes, np.int64)
    num_active = stop - first
    for source in range(first, stop):
        word, bit = (source - first) >> 6, one << np.uint64((source - first) & 63)
        frontier[source, word] = bit
        state[source, word] = bit
        active[source - first] = source
        out[name[source], name[source]] = 0
    level = 0
    while num_active > 0:
        level += 1
        num_touched = 0
        for a in range(num_active):
            node = active[a]
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
        if num_touched > 0 and level > largest:
            return -1
        for t in range(num_touched):
            node = touched[t]
            column = name[node]
            for word in range(WORDS):
                new = state[node, WORDS + word]
                state[node, WORDS + word] = zero
                state[node, word] |= new
                frontier[node, word] = new
                while new:
                    source = first + 64 * word + np.int64(_lowest_bit(new))
                    out[name[source], column] = level
                    new &= new - one
        active, touched = touched, active
        num_active = num_touched
    return level - 1


@no_type_check
@compiled(fastmath={"reassoc", "contract", "nsz"})  # sums may be vectorised; still the same every time
def add_squared_product(distances, vectors, out, start, stop):
    """Add rows ``start`` to ``stop`` of (squared distances times four ``vectors``) to ``out``.

    Squares are made on the fly, two rows at a time, so no matrix of floats ever exists.
    """
    for left in range(0, distances.shape[1], TILE):
        right = min(left + TILE, distances.shape[1])
        x0, x1, x2, x3 = (
            vectors[0, left:right],
            vectors[1, left:right],
            vectors[2, left:right],
            vectors[3, left:right],
        )
        for i in range(start, stop, 2):
            k = min(i + 1, stop - 1)  # an odd last row is computed twice and added once
            row_i, row_k = distances[i, left:right], distances[k, left:right]
            i0 = i1 = i2 = i3 = 0.0
            k0 = k1 = k2 = k3 = 0.0
            for j in range(len(row_i)):
                a, b = np.float64(np.int32(row_i[j])), np.float64(np.int32(row_k[j]))
                a, b = a * a, b * b
                y0, y1, y2, y3 = x0[j], x1[j], x2[j], x3[j]
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


def all_hop_distances(indptr: np.ndarray, indices: np.ndarray) -> np.ndarray:
    """Return all hop distances in the smallest unsigned type that holds the diameter.

    The largest value of the type stands for "unreachable".

    Raises:
        ValueError: When they do not fit into the memory that is free.
    """
    num_nodes = len(indptr) - 1
    indptr, indices, name = _near_together(indptr, indices)
    starts = range(0, num_nodes, SOURCES_PER_SWEEP)
    for dtype in (np.uint8, np.uint16, np.uint32):
        check_memory(num_nodes**2 * np.dtype(dtype).itemsize, num_nodes)
        out = np.full((num_nodes, num_nodes), np.iinfo(dtype).max, dtype)

        def work(first: int, out: np.ndarray = out) -> int:
            return sweep(indptr, indices, name, first, min(first + SOURCES_PER_SWEEP, num_nodes), out)

        # A long path shows at the first sweep, before the others are run for nothing.
        if num_nodes == 0 or (work(0) >= 0 and min(over_pieces(work, starts[1:]), default=0) >= 0):
            return out
        del out, work
    raise AssertionError("a diameter of 2^32 needs more nodes than memory can hold")


def _near_together(indptr: np.ndarray, indices: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Renumber so that neighbors lie together in memory; twice as fast on 20,000 shuffled nodes.

    Returns:
        The graph in new numbers, and the old number of each new one.
    """
    num_nodes = len(indptr) - 1
    graph = csr_array((np.ones(len(indices), np.int8), indices, indptr), shape=(num_nodes, num_nodes))
    name = reverse_cuthill_mckee(graph, symmetric_mode=True).astype(np.int64) if num_nodes else indices[:0]
    graph = graph[name][:, name]
    return graph.indptr.astype(np.int64), graph.indices.astype(np.int32), name


def squared_product(distances: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    """Return (squared distances) times each row of ``vectors``, as rows."""
    num_nodes = len(distances)
    num_vectors = len(vectors)
    padded = -(-num_vectors // COLUMNS) * COLUMNS
    columns = np.zeros((padded, num_nodes))
    columns[:num_vectors] = vectors
    out = np.zeros((padded, num_nodes))

    def work(start: int) -> None:
        stop = min(start + ROWS_PER_PIECE, num_nodes)
        for c in range(0, padded, COLUMNS):
            add_squared_product(distances, columns[c : c + COLUMNS], out[c : c + COLUMNS], start, stop)

    over_pieces(work, range(0, num_nodes, ROWS_PER_PIECE))
    return out[:num_vectors]
