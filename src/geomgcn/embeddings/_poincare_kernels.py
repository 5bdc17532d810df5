"""Compiled loops of the Poincaré embedding: arrays in, arrays out, no ids checked.

With g = cosh(d) for a distance d, exp(-d) = 1 / (g + sqrt(g^2 - 1)): the softmax over distances needs square
roots and no other function. Gradients are those of Nickel and Kiela (2017, Section 3.1), written with u - v
where the original subtracts large numbers.
"""

from typing import no_type_check

import numpy as np

from geomgcn._compiled import compiled
from geomgcn.embeddings._random_bits import STRIDE, mixed

RIM = 1e-5
"""How near to the rim of the ball a node may come, as in the original (its Section 3.1)."""

TRIES = 8
"""Draws of a negative before it is left out: where nearly all are neighbors, there may be none."""


@no_type_check
@compiled()
def _next(state):
    """Advance a generator and return 64 random bits."""
    state[0] += STRIDE
    return mixed(state[0])


@no_type_check
@compiled()
def _below(state, bound):
    """Return a random number from 0 to ``bound - 1``, for bounds below 2^32."""
    return np.int64(((_next(state) >> np.uint64(32)) * np.uint64(bound)) >> np.uint64(32))


@no_type_check
@compiled()
def _is_neighbor(indptr, indices, node, other):
    """Search the sorted row of ``node``."""
    low, high = indptr[node], indptr[node + 1]
    while low < high:
        middle = (low + high) >> 1
        if indices[middle] < other:
            low = middle + 1
        else:
            high = middle
    return low < indptr[node + 1] and indices[low] == other


@no_type_check
@compiled()
def shuffle(order, state):
    """Bring the entries of ``order`` into a random order (Fisher and Yates)."""
    for i in range(len(order) - 1, 0, -1):
        j = _below(state, i + 1)
        order[i], order[j] = order[j], order[i]


@no_type_check
@compiled()
def _project(pos, node):
    """Bring a node that has left the ball back to its rim."""
    square = 0.0
    for axis in range(pos.shape[1]):
        square += pos[node, axis] * pos[node, axis]
    if square > (1.0 - RIM) * (1.0 - RIM):
        shrink = (1.0 - RIM) / np.sqrt(square)
        for axis in range(pos.shape[1]):
            pos[node, axis] *= shrink


@no_type_check
@compiled()
def descend(pos, indptr, indices, source, order, rate, negatives, state):
    """Take one step for each pair in ``order``, and return the sum of the losses before the steps.

    Args:
        pos: Positions, changed in place; ``[num_nodes, dim]``.
        indptr, indices: The graph as sorted compressed rows.
        source: Node of the row of each entry of ``indices``.
        order: Which entries, in which order.
        negatives: How many nodes that are no neighbors are drawn for each pair.
        state: Of the random numbers.
    """
    num_nodes, dim = pos.shape
    node = np.empty(negatives + 1, np.int64)
    square = np.empty(negatives + 1)  # of the straight distance
    room = np.empty(negatives + 1)  # 1 - |node|^2
    slope = np.empty(negatives + 1)  # sqrt(gamma^2 - 1)
    nearness = np.empty(negatives + 1)  # exp(-distance)
    step = np.empty(dim)
    loss = 0.0
    for entry in order:
        u = source[entry]
        node[0] = indices[entry]
        count = 1
        for _ in range(negatives):
            for _ in range(TRIES):
                other = _below(state, num_nodes)
                if other != u and not _is_neighbor(indptr, indices, u, other):
                    node[count] = other
                    count += 1
                    break
        own = 1.0
        for axis in range(dim):
            own -= pos[u, axis] * pos[u, axis]
            step[axis] = 0.0
        own = max(own, RIM)  # another thread may have stepped out of the ball, and is about to come back
        total = 0.0
        for k in range(count):
            apart, free = 0.0, 1.0
            for axis in range(dim):
                x = pos[node[k], axis]
                apart += (pos[u, axis] - x) * (pos[u, axis] - x)
                free -= x * x
            free = max(free, RIM)
            excess = 2.0 * apart / (own * free)  # gamma - 1, without the loss of digits
            square[k], room[k] = apart, free
            slope[k] = np.sqrt(excess * (excess + 2.0))
            nearness[k] = 1.0 / (1.0 + excess + slope[k])
            total += nearness[k]
        loss += np.log(total / nearness[0])
        for k in range(count):
            if slope[k] == 0.0:
                continue  # at the same place no direction is better than another
            pull = -nearness[k] / total
            if k == 0:
                pull += 1.0
            ours = pull / (room[k] * slope[k])
            theirs = rate * pull / (own * slope[k])
            other = node[k]
            for axis in range(dim):
                x, y = pos[u, axis], pos[other, axis]
                step[axis] += ours * (own * (x - y) + square[k] * x)
                pos[other, axis] = y - theirs * (room[k] * (y - x) + square[k] * y)
            _project(pos, other)
        for axis in range(dim):
            pos[u, axis] -= rate * step[axis]
        _project(pos, u)
    return loss
