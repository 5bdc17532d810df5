"""Skip-gram with negative sampling: vectors that tell which words occur near each other (Mikolov et al. 2013)."""

from typing import no_type_check

import numba
import numpy as np

from geomgcn.embeddings._kernels import compiled
from geomgcn.embeddings._random_bits import STRIDE, mixed

POWER = 0.75
"""Negatives are drawn by the frequency of words to this power."""

LIMIT = 8.0
"""Beyond this the sigmoid is taken as that of the limit, 0.9997 or 0.0003."""

CELLS = 2048
SIGMOID = (1.0 / (1.0 + np.exp(-np.linspace(-LIMIT, LIMIT, CELLS + 1)))).astype(np.float32)
"""Interpolated between its entries, this is off by less than 2e-6."""


def drawing_table(frequency: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the alias table to draw words with a probability that is proportional to frequency^(3/4).

    A word is drawn by a place in the table and a number from 0 to 2^32: it is the place itself where the number
    is below the threshold, and the alias otherwise (Walker 1977; Vose 1991).

    Example:
        >>> threshold, alias = drawing_table(np.array([1, 0]))
        >>> alias.tolist()
        [0, 0]
    """
    chance = frequency.astype(np.float64) ** POWER
    chance *= len(chance) / chance.sum()
    alias = np.arange(len(chance), dtype=np.int32)
    _fill(chance, alias)
    return np.minimum(chance * 2.0**32, 2.0**32 - 1).astype(np.uint32), alias


@no_type_check
@compiled()
def _fill(chance, alias):
    small = [k for k in range(len(chance)) if chance[k] < 1.0]
    large = [k for k in range(len(chance)) if chance[k] >= 1.0]
    while len(small) > 0 and len(large) > 0:
        k, other = small.pop(), large[-1]
        alias[k] = other
        chance[other] -= 1.0 - chance[k]
        if chance[other] < 1.0:
            small.append(large.pop())
    for k in small:
        chance[k] = 1.0
    for k in large:
        chance[k] = 1.0


@no_type_check
@compiled()
def _sigmoid(x):
    scaled = (min(max(x, np.float32(-LIMIT)), np.float32(LIMIT)) + np.float32(LIMIT)) * np.float32(
        CELLS / (2 * LIMIT)
    )
    cell = min(np.int32(scaled), np.int32(CELLS - 1))
    low = SIGMOID[cell]
    return low + (scaled - np.float32(cell)) * (SIGMOID[cell + 1] - low)


@no_type_check
@compiled(fastmath={"reassoc", "contract", "nsz"})
def train(vectors, contexts, walks, window, negatives, threshold, alias, rates, state, dim):
    """Go through walks once, pair by pair, and move the vectors of words and contexts.

    For a word w with a neighbor c at most b places away (b is drawn from 1 to ``window`` for each c) and random
    words r, a step up the gradient of log s(w.c) + sum over r of log s(-w.r) is taken; s is the sigmoid.

    Args:
        rates: Learning rate at the first walk and after the last one; between them it goes in a straight line.
        state: Of the random numbers, advanced.
        dim: Axes, for which this is compiled.
    """
    numba.literally(dim)
    num_words, (num_walks, length) = np.uint64(len(vectors)), walks.shape
    word, step = np.empty(dim, np.float32), np.empty(dim, np.float32)
    seed, lower = state[0], np.uint64(0xFFFFFFFF)
    for walk in range(num_walks):
        rate = np.float32(rates[0] + (rates[1] - rates[0]) * walk / num_walks)
        for place in range(length):
            center = walks[walk, place]
            seed += STRIDE
            reach = 1 + np.int64(((mixed(seed) >> np.uint64(32)) * np.uint64(window)) >> np.uint64(32))
            for near in range(max(0, place - reach), min(length, place + reach + 1)):
                if near == place:
                    continue
                own = walks[walk, near]
                for axis in range(dim):
                    word[axis] = vectors[own, axis]
                    step[axis] = np.float32(0.0)
                for draw in range(negatives + 1):
                    other, label = np.int64(center), np.float32(1.0)
                    if draw > 0:
                        seed += STRIDE
                        bits = mixed(seed)
                        other = np.int64(((bits >> np.uint64(32)) * num_words) >> np.uint64(32))
                        if (bits & lower) >= threshold[other]:
                            other = np.int64(alias[other])
                        if other == center:
                            continue
                        label = np.float32(0.0)
                    product = np.float32(0.0)
                    for axis in range(dim):
                        product += word[axis] * contexts[other, axis]
                    pull = (label - _sigmoid(product)) * rate
                    for axis in range(dim):
                        step[axis] += pull * contexts[other, axis]
                        contexts[other, axis] += pull * word[axis]
                for axis in range(dim):
                    vectors[own, axis] += step[axis]
    state[0] = seed
