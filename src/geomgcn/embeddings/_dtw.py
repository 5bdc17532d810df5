"""Dynamic time warping of degree sequences: exact, but most of its table is never looked at.

A path from (0, 0) to the ends of two sequences of (degree, count) pairs steps one further in one of them or
in both, and costs the sum of what its cells cost:

    cost(i, j) = (larger degree / smaller degree - 1) * larger count

Some path is found at once by always stepping to the cheapest next cell. Each cell beyond which even the
cheapest partner of every pair that is left costs more than that path cannot be on the best one, and since
degrees ascend, that leaves a narrow band.
"""

from typing import no_type_check

import numpy as np

from geomgcn._compiled import compiled

SLACK = 1e-9
"""Relative margin of the bound, so that no rounding can cut off the best path."""


@no_type_check
@compiled()
def _cost(degree_a, count_a, degree_b, count_b):
    """Return what it costs to match two pairs (Section 3.1 and Section 3.5, OPT1, of Ribeiro et al. 2017)."""
    return (max(degree_a, degree_b) / min(degree_a, degree_b) - 1.0) * max(count_a, count_b)


@no_type_check
@compiled()
def _some_path(da, ca, db, cb):
    """Return the cost of the path that always steps to the cheapest next cell."""
    i, j = 0, 0
    total = _cost(da[0], ca[0], db[0], cb[0])
    while i < len(da) - 1 or j < len(db) - 1:
        best, step = np.inf, 0
        if i < len(da) - 1 and j < len(db) - 1:
            best = _cost(da[i + 1], ca[i + 1], db[j + 1], cb[j + 1])
        if i < len(da) - 1:
            cost = _cost(da[i + 1], ca[i + 1], db[j], cb[j])
            if cost < best:
                best, step = cost, 1
        if j < len(db) - 1:
            cost = _cost(da[i], ca[i], db[j + 1], cb[j + 1])
            if cost < best:
                best, step = cost, 2
        total += best
        i += step != 2
        j += step != 1
    return total


@no_type_check
@compiled()
def _left_over(da, ca, db, out):
    """Write to ``out[i]`` what the pairs after i cost at least, each with the nearest degree of the other."""
    j = len(db) - 1
    total = 0.0
    for i in range(len(da) - 1, -1, -1):
        out[i] = total
        while j > 0 and db[j] > da[i]:
            j -= 1
        # db[j] is the largest degree up to da[i], if there is one, and db[j + 1] the next.
        nearest = max(da[i], db[j]) / min(da[i], db[j])
        if j + 1 < len(db):
            nearest = min(nearest, db[j + 1] / da[i]) if db[j + 1] >= da[i] else nearest
        total += (nearest - 1.0) * ca[i]


@no_type_check
@compiled()
def warped(da, ca, db, cb, row, left_a, left_b):
    """Return the cost of the best path through two sequences of ascending degrees with their counts.

    Args:
        row, left_a, left_b: Room for as many numbers as the longer sequence has, and one more.
    """
    num_a, num_b = len(da), len(db)
    _left_over(da, ca, db, left_a)
    _left_over(db, cb, da, left_b)
    bound = _some_path(da, ca, db, cb) * (1.0 + SLACK)
    # row[j] is the best cost up to (i - 1, j); cells from low to high - 1 may be on the best path.
    low, high = 0, 0
    for i in range(num_a):
        corner = np.inf if i else 0.0  # of (i - 1, j - 1)
        left = np.inf
        new_low, new_high = num_b, 0
        j = low
        if i and low > 0:
            corner = np.inf
        while j < num_b:
            above = row[j] if i and j < high else np.inf
            best = min(above, corner, left)
            if best == np.inf and j >= high:
                break
            left = best + _cost(da[i], ca[i], db[j], cb[j])
            corner = above
            if left + max(left_a[i], left_b[j]) > bound:
                left = np.inf
            else:
                if new_low == num_b:
                    new_low = j
                new_high = j + 1
            row[j] = left
            j += 1
        low, high = new_low, new_high
    return row[num_b - 1]


@no_type_check
@compiled()
def warp_all(indptr, degrees, counts, ones, others, out):
    """Write the cost of warping sequence ``ones[t]`` onto ``others[t]`` to ``out[t]``."""
    longest = 1
    for t in range(len(ones)):
        a, b = ones[t], others[t]
        longest = max(longest, indptr[a + 1] - indptr[a], indptr[b + 1] - indptr[b])
    row, left_a, left_b = np.empty(longest), np.empty(longest), np.empty(longest)
    for t in range(len(ones)):
        if ones[t] == others[t]:
            out[t] = 0.0
            continue
        a, b = slice(indptr[ones[t]], indptr[ones[t] + 1]), slice(indptr[others[t]], indptr[others[t] + 1])
        out[t] = warped(degrees[a], counts[a], degrees[b], counts[b], row, left_a, left_b)
