"""Skip-gram with negative sampling (Mikolov et al. 2013): words that occur alike get vectors alike."""

from typing import no_type_check

import numpy as np

from geomgcn._compiled import compiled
from geomgcn.embeddings._random_bits import STRIDE, mixed

POWER = 0.75
"""Negatives are drawn by the frequency of words to this power."""

LIMIT = np.float32(8.0)
"""Beyond this the sigmoid is taken as that of the limit, 0.9997 or 0.0003."""

CELLS = np.float32(2048.0)
SIGMOID = (1.0 / (1.0 + np.exp(-np.linspace(-LIMIT, LIMIT, int(CELLS) + 1)))).astype(np.float32)
"""Interpolated between its entries, this is off by less than 2e-6."""

LOWER = np.uint64(0xFFFFFFFF)


def drawing_table(frequency: np.ndarray) -> np.ndarray:
    """Return a table to draw words from, with probabilities in proportion to frequency^(3/4).

    A word is drawn by a random place in the table and a random number below 2^32: it is the place itself
    where the number is below the lower half of the entry, and the upper half otherwise (Walker 1977).

    Example:
        >>> [int(entry) >> 32 for entry in drawing_table(np.array([1, 0]))]
        [0, 0]
    """
    chance = frequency.astype(np.float64) ** POWER
    chance *= len(chance) / chance.sum()
    alias = np.arange(len(chance), dtype=np.uint64)
    _fill(chance, alias)
    threshold = np.minimum(chance * 2.0**32, 2.0**32 - 1).astype(np.uint64)
    return (alias << np.uint64(32)) | threshold


@no_type_check
@compiled()
def _fill(chance, alias):
    """Let the words with more than an equal share fill the places of those with less."""
    small, large = np.empty(len(chance), np.int64), np.empty(len(chance), np.int64)
    num_small, num_large = 0, 0
    for k in range(len(chance)):
        if chance[k] < 1.0:
            small[num_small] = k
            num_small += 1
        else:
            large[num_large] = k
            num_large += 1
    while num_small > 0 and num_large > 0:
        k, other = small[num_small - 1], large[num_large - 1]
        alias[k] = other
        chance[other] -= 1.0 - chance[k]
        num_small -= 1
        if chance[other] < 1.0:
            num_large -= 1
            small[num_small] = other
            num_small += 1
    chance[small[:num_small]] = 1.0  # by rounding only
    chance[large[:num_large]] = 1.0


@no_type_check
@compiled()
def _sigmoid(x):
    """Interpolate in the table."""
    scaled = (min(max(x, -LIMIT), LIMIT) + LIMIT) * (CELLS / (LIMIT + LIMIT))
    cell = min(np.int32(scaled), np.int32(CELLS) - np.int32(1))
    low = SIGMOID[cell]
    return low + (scaled - np.float32(cell)) * (SIGMOID[cell + 1] - low)


@no_type_check
@compiled(inline="always")
def _move_in_plane(vectors, own, contexts, others, number, rate):
    """Do what :func:`_move` does in two dimensions, in registers: three times as fast."""
    x, y = vectors[own, 0], vectors[own, 1]
    step_x, step_y, label = np.float32(0.0), np.float32(0.0), np.float32(1.0)
    for k in range(number):
        other = others[k]
        u, v = contexts[other, 0], contexts[other, 1]
        pull = (label - _sigmoid(x * u + y * v)) * rate
        label = np.float32(0.0)
        step_x += pull * u
        step_y += pull * v
        contexts[other, 0] = u + pull * x
        contexts[other, 1] = v + pull * y
    vectors[own, 0] = x + step_x
    vectors[own, 1] = y + step_y


@no_type_check
@compiled(fastmath={"reassoc", "contract", "nsz"})  # sums may be vectorised; still the same every time
def _move(vectors, own, contexts, others, number, rate, word, step):
    """Step up the gradient of one pair: nearer to the first of ``others``, away from the rest."""
    dim = len(word)
    mine = vectors[own]
    word[:] = mine
    step[:] = np.float32(0.0)
    label = np.float32(1.0)
    for k in range(number):
        theirs = contexts[others[k]]
        product = np.float32(0.0)
        for axis in range(dim):
            product += word[axis] * theirs[axis]
        pull = (label - _sigmoid(product)) * rate
        label = np.float32(0.0)
        for axis in range(dim):
            step[axis] += pull * theirs[axis]
        for axis in range(dim):
            theirs[axis] += pull * word[axis]
    for axis in range(dim):
        mine[axis] += step[axis]


@no_type_check
@compiled()
def train(vectors, contexts, walks, window, negatives, table, rates, state):
    """Go through walks once, pair by pair, and move the vectors of words and contexts.

    At each place of a walk a reach is drawn from 1 to ``window``, and words r are drawn from the table. For
    each neighbor w within reach, a step goes up the gradient of log s(w.c) + sum over r of log s(-w.r), where
    c is the word at the place and s is the sigmoid. The r serve all neighbors; those that are c are left out.

    Args:
        rates: Learning rate at the first walk and after the last one, and a straight line between them.
        state: Of the random numbers, advanced.
    """
    num_words, dim = np.uint64(len(vectors)), vectors.shape[1]
    num_walks, length = walks.shape
    word, step = np.empty(dim, np.float32), np.empty(dim, np.float32)
    others = np.empty(negatives + 1, np.int64)
    bits, half = state[0], np.uint64(32)
    for walk in range(num_walks):
        rate = np.float32(rates[0] + (rates[1] - rates[0]) * walk / num_walks)
        for place in range(length):
            others[0] = walks[walk, place]
            number = 1
            bits += STRIDE
            reach = 1 + np.int64(((mixed(bits) >> half) * np.uint64(window)) >> half)
            for _ in range(negatives):
                bits += STRIDE
                drawn = mixed(bits)
                other = ((drawn >> half) * num_words) >> half
                entry = table[other]
                # No branch: which way it goes cannot be foretold.
                other = np.int64(entry >> half if (drawn & LOWER) >= (entry & LOWER) else other)
                others[number] = other
                number += other != others[0]
            for near in range(max(0, place - reach), min(length, place + reach + 1)):
                own = np.int64(walks[walk, near])
                if near == place:
                    continue
                if dim == 2:
                    _move_in_plane(vectors, own, contexts, others, number, rate)
                else:
                    _move(vectors, own, contexts, others, number, rate, word, step)
    state[0] = bits
