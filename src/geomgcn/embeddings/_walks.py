"""Random walks through the layers of a context graph."""

from collections.abc import Callable
from typing import no_type_check

import numpy as np

from geomgcn._compiled import compiled
from geomgcn.embeddings._context_graph import ContextGraph
from geomgcn.embeddings._kernels import over_pieces
from geomgcn.embeddings._random_bits import STRIDE, fraction, mixed

STAY = np.float32(0.3)
"""Probability of a step within the layer, against a change of layers: q of the original."""

WALKS_PER_PIECE = 1024


def walk_all(
    graph: ContextGraph,
    random: np.random.Generator,
    per_node: int,
    length: int,
    on_done: Callable[[int], None] | None = None,
) -> np.ndarray:
    """Return the roles on ``per_node`` walks from each node, ``[walks, length]``, in random order."""
    num_nodes = len(graph.role)
    starts = np.concatenate([random.permutation(num_nodes).astype(np.int32) for _ in range(per_node)])
    pieces = range(0, len(starts), WALKS_PER_PIECE)
    states = random.integers(2**64, size=len(pieces), dtype=np.uint64)
    out = np.empty((len(starts), length), np.int32)

    def work(first: int) -> None:
        part = slice(first, first + WALKS_PER_PIECE)
        wander(
            starts[part], graph.role, graph.member, graph.up, graph.first, graph.size,
            graph.indptr, graph.indices, graph.reach, states[first // WALKS_PER_PIECE], out[part],
        )  # fmt: skip

    over_pieces(work, pieces, on_done)
    return out


@no_type_check
@compiled()
def wander(starts, role, member, up, first, size, indptr, indices, reach, state, out):
    """Write one walk from each of ``starts`` in layer 0 to a row of ``out``, without its changes of layers.

    Args:
        role, member, up, first, size, indptr, indices, reach: Of the :class:`ContextGraph`.
        state: Of the random numbers.
    """
    num_walks, length = out.shape
    for walk in range(num_walks):
        node, layer = np.int64(starts[walk]), 0
        own = role[node]
        out[walk, 0] = own
        for step in range(1, length):
            state += STRIDE
            while fraction(mixed(state)) >= STAY:
                state += STRIDE
                if fraction(mixed(state)) < up[layer, own]:
                    layer += 1
                elif layer > 0:
                    layer -= 1
                else:
                    break  # there is no other layer to change to
                state += STRIDE
            here = member[layer, own]
            state += STRIDE
            chance = fraction(mixed(state))
            low, high = indptr[here], indptr[here + 1] - 1
            while low < high:
                middle = (low + high) >> 1
                if reach[middle] > chance:
                    high = middle
                else:
                    low = middle + 1
            there = indices[low]
            state += STRIDE
            others = np.uint64(size[there] - (here == there))
            other = first[there] + np.int64(((mixed(state) >> np.uint64(32)) * others) >> np.uint64(32))
            if here == there and other >= node:
                other += 1  # to any node of the class but itself
            node = other
            own = role[node]
            out[walk, step] = own
