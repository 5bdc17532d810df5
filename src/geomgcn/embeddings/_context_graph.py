"""The multilayer graph on which struc2vec walks: who is compared with whom, and how likely each step is.

Nodes whose rings 0 to k are equal are one class of layer k: their distance there is 0, and their distances to
all others are the same. So it is classes that are compared, and a step to a class goes to any of its nodes.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import no_type_check

import numpy as np
from scipy.spatial import cKDTree

from geomgcn._compiled import compiled
from geomgcn.embeddings._degree_rings import DegreeRings

ISOLATED = 0.5
"""What a degree of 0 counts as, since the cost is a ratio: as far from 1 as 2 is."""


@dataclass(frozen=True)
class Layer:
    """Classes of one layer, and which of them are compared.

    Attributes:
        role: The first role of each class, ascending.
        present: Which classes have nodes in this layer's ring.
        pairs: Of classes, each pair once; ``[2, pairs]``.
    """

    role: np.ndarray
    present: np.ndarray
    pairs: np.ndarray


@dataclass(frozen=True)
class ContextGraph:
    """All steps of a walk. Nodes are numbered by role, and the classes of all layers one after another.

    Attributes:
        role: Of each node.
        member: Class of each role in each layer; ``[layers, roles]``.
        up: Probability that a change of layers goes up; ``[layers, roles]``.
        first, size: Where the nodes of each class begin, and how many there are.
        indptr, indices: Classes that a step may go to, as compressed rows.
        reach: Probability of a step to a class or one before it in the row.
    """

    role: np.ndarray
    member: np.ndarray
    up: np.ndarray
    first: np.ndarray
    size: np.ndarray
    indptr: np.ndarray
    indices: np.ndarray
    reach: np.ndarray


def layers_of(found: DegreeRings, candidates: int) -> list[Layer]:
    """Return the classes of each layer and their candidates: those with the nearest sums of log degrees.

    The cost of warping is a ratio less one, so two rings are at least about as far apart as the sums of the
    logarithms of their degrees are; and what counts in layer k is the sum over the rings 0 to k.
    """
    logs = np.log(np.maximum(found.degree, ISOLATED))
    sums = np.add.reduceat(logs[found.kinds] * found.counts, found.indptr[:-1])
    place = np.where(found.rings >= 0, sums[found.rings], 0.0)
    is_first = np.zeros(len(place), np.bool_)
    is_first[0] = True
    layers = []
    for k in range(place.shape[1]):
        is_first[1:] |= found.rings[1:, k] != found.rings[:-1, k]
        role = np.flatnonzero(is_first)
        present = found.rings[role, k] >= 0
        living = np.flatnonzero(present)
        layers.append(Layer(role, present, living[_nearest(place[role[living], : k + 1], candidates)]))
    return layers


def _nearest(points: np.ndarray, candidates: int) -> np.ndarray:
    """Return all pairs of a point and one of its nearest, each pair once."""
    number = len(points)
    if candidates >= number - 1:
        return np.stack(np.triu_indices(number, 1))
    near = cKDTree(points).query(points, k=candidates + 1, p=1)[1]
    source = np.repeat(np.arange(number), candidates + 1)
    target = near.reshape(-1)
    both = _distinct(np.minimum(source, target) * number + np.maximum(source, target))
    first, second = both // number, both % number
    other = first != second
    return np.stack([first[other], second[other]])


def _distinct(values: np.ndarray) -> np.ndarray:
    """Return the distinct values, ascending; for millions of them eight times as fast as ``np.unique``."""
    values = np.sort(values)
    return values[np.append(True, values[1:] != values[:-1])[: len(values)]]


class Comparisons:
    """The pairs of distinct sequences that must be warped, and the distances that come of it.

    Attributes:
        ones, others: Sequences to warp, each pair once.
    """

    def __init__(self, found: DegreeRings, layers: list[Layer]) -> None:
        self._rings, self._base = found.rings, len(found.indptr)
        num_roles = len(found.rings)
        keys = [layer.role[layer.pairs[0]] * num_roles + layer.role[layer.pairs[1]] for layer in layers]
        pairs = _distinct(np.concatenate(keys))
        self._pairs = pairs // num_roles, pairs % num_roles
        self._places = [np.searchsorted(pairs, key) for key in keys]  # of each layer's pairs among all
        self._last = np.zeros(len(pairs), np.int32)  # layer that asks for a pair
        for k, places in enumerate(self._places):
            self._last[places] = k
        self._known = _distinct(np.concatenate([_distinct(self._keys(k)[1]) for k in range(len(layers))]))
        self.ones, self.others = self._known // self._base, self._known % self._base

    def _keys(self, ring: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs whose rings of this number are compared, and one number for both sequences."""
        asked = np.flatnonzero(self._last >= ring)
        one, other = (self._rings[roles[asked], ring] for roles in self._pairs)
        return asked, np.minimum(one, other) * self._base + np.maximum(one, other)

    def distances(self, cost: np.ndarray) -> Iterator[np.ndarray]:
        """Yield f_k of the pairs of each layer k, from the cost of warping each pair of sequences."""
        total = np.zeros(len(self._last))
        for k, places in enumerate(self._places):
            asked, key = self._keys(k)
            total[asked] += cost[np.searchsorted(self._known, key)]
            yield total[places]


def context_graph(
    layers: list[Layer], distances: Iterator[np.ndarray], size_of_role: np.ndarray
) -> ContextGraph:
    """Return the probabilities of all steps, from the distances of the pairs of each layer.

    A class is in a layer where it has a neighbor there: another class, or a second node of its own.
    """
    num_roles = len(size_of_role)
    start_of_role = np.concatenate([[0], np.cumsum(size_of_role)])
    shape = (len(layers), num_roles)
    member, up, inside = np.empty(shape, np.int32), np.empty(shape, np.float32), np.empty(shape, np.bool_)
    firsts, sizes, lengths, targets, reaches = [], [], [], [], []
    before = 0
    for k, (layer, apart) in enumerate(zip(layers, distances, strict=True)):
        first = start_of_role[layer.role]
        size = np.diff(np.append(first, start_of_role[-1]))
        indptr, target, apart, others = _rows(layer, apart, size)
        reach = np.empty(len(target), np.float32)
        odds = np.empty(len(size), np.float32)
        _weigh(indptr, apart, others, size, reach, odds)
        local = np.repeat(np.arange(len(size)), np.diff(np.append(layer.role, num_roles)))
        member[k], up[k], inside[k] = local + before, odds[local], (np.diff(indptr) > 0)[local]
        firsts.append(first)
        sizes.append(size)
        lengths.append(np.diff(indptr))
        targets.append((target + before).astype(np.int32))
        reaches.append(reach)
        before += len(size)
    up[0] = 1.0  # there is nothing below
    up[:-1] *= inside[1:]
    up[-1] = 0.0
    indptr = np.concatenate([[0], np.cumsum(np.concatenate(lengths))])
    first, size = np.concatenate(firsts), np.concatenate(sizes)
    role = np.repeat(np.arange(num_roles, dtype=np.int32), size_of_role)
    return ContextGraph(
        role, member, up, first, size, indptr, np.concatenate(targets), np.concatenate(reaches)
    )


def _rows(
    layer: Layer, apart: np.ndarray, size: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return both directions of all pairs as compressed rows, with a class itself where it has several nodes.

    Returns:
        Where the row of each class begins, the target of each entry, its distance, and how many nodes it
        offers.
    """
    own = np.flatnonzero((size > 1) & layer.present)
    source = np.concatenate([layer.pairs[0], layer.pairs[1], own])
    target = np.concatenate([layer.pairs[1], layer.pairs[0], own])
    apart = np.concatenate([apart, apart, np.zeros(len(own))])
    order = np.lexsort((target, source))
    source, target = source[order], target[order]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(source, minlength=len(size)))])
    return indptr, target, apart[order], (size[target] - (source == target)).astype(np.float64)


@no_type_check
@compiled()
def _weigh(indptr, apart, others, size, reach, up):
    """Write one layer's steps, and the probability of going up where there is a layer above and one below.

    Weights are exp(-apart). The least distance in the row, or in the layer, is taken off before: it changes
    neither the shares nor who is above the average, and not all weights become zero.
    """
    least = np.inf
    for e in range(len(apart)):
        least = min(least, apart[e])
    weight, number = 0.0, 0.0
    for c in range(len(size)):
        for e in range(indptr[c], indptr[c + 1]):
            weight += size[c] * others[e] * np.exp(least - apart[e])
            number += size[c] * others[e]
    average = weight / number if number > 0.0 else 0.0
    for c in range(len(size)):
        nearest, total, similar = np.inf, 0.0, 0.0
        for e in range(indptr[c], indptr[c + 1]):
            nearest = min(nearest, apart[e])
        for e in range(indptr[c], indptr[c + 1]):
            total += others[e] * np.exp(nearest - apart[e])
            if np.exp(least - apart[e]) > average:
                similar += others[e]
        odds = np.log(similar + np.e)
        up[c] = odds / (odds + 1.0)
        share = 0.0
        for e in range(indptr[c], indptr[c + 1]):
            share += others[e] * np.exp(nearest - apart[e])
            reach[e] = share / total
