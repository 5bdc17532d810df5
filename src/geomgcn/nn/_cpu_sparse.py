"""Sparse features times weights, and dropout, compiled: arrays in, arrays out, no ids checked."""

from typing import no_type_check

import numba
import numpy as np

from geomgcn._compiled import compiled
from geomgcn.nn._adjacency import PARTS
from geomgcn.nn._cpu import FUSED, bits, row_keys


@no_type_check
@compiled()
def keep_entries(begin, end, start, other, entries, drop, transposed, kept_end, kept_other, kept_entries):
    """Copy what is not dropped to the front of each row, and say where it ends."""
    _, near, far, below, factor = drop
    for row in range(begin, end):
        place = start[row]
        first, second = row_keys(near, far, row)
        for e in range(start[row], start[row + 1]):
            if transposed:
                first, second = row_keys(near, far, other[e])
            if bits(first, second, row if transposed else other[e]) >= below:
                kept_other[place] = other[e]
                kept_entries[place] = entries[e] * factor
                place += 1
        kept_end[row] = place


@no_type_check
@compiled(fastmath=FUSED)
def multiply_rows(begin, end, start, stop, other, entries, dense, out):
    """Write some rows of the product, four entries at a time."""
    for row in range(begin, end):
        into = out[row]
        e, last = start[row], stop[row]
        if e == last:
            into[:] = 0
            continue
        a, one = entries[e], dense[other[e]]
        for j in range(len(into)):
            into[j] = a * one[j]
        e += 1
        while e + 4 <= last:
            a, b, c, d = entries[e], entries[e + 1], entries[e + 2], entries[e + 3]
            one, two, three, four = (
                dense[other[e]],
                dense[other[e + 1]],
                dense[other[e + 2]],
                dense[other[e + 3]],
            )
            for j in range(len(into)):
                into[j] += (a * one[j] + b * two[j]) + (c * three[j] + d * four[j])
            e += 4
        while e < last:
            a, one = entries[e], dense[other[e]]
            for j in range(len(into)):
                into[j] += a * one[j]
            e += 1


@no_type_check
@compiled()
def product_rows(begin, end, start, other, entries, drop, transposed, kept, dense, out):
    """Write some rows of the product, of what is left of the sparse matrix after dropout."""
    stop = start[1:]
    if drop[0]:
        kept_end, kept_other, kept_entries = kept
        keep_entries(begin, end, start, other, entries, drop, transposed, kept_end, kept_other, kept_entries)
        stop, other, entries = kept_end, kept_other, kept_entries
    multiply_rows(begin, end, start, stop, other, entries, dense, out)


@no_type_check
@compiled()
def row_of_part(start, part):
    """Return the row at which a piece begins, so that all have about as many entries."""
    if part == PARTS:
        return len(start) - 1
    return 0 if part == 0 else np.searchsorted(start, start[-1] * part // PARTS)


@no_type_check
@compiled(parallel=True)
def product_parts(start, other, entries, drop, transposed, kept, dense, out):
    """Write all rows of the product, pieces on several threads."""
    for part in numba.prange(PARTS):
        begin, end = row_of_part(start, part), row_of_part(start, part + 1)
        product_rows(begin, end, start, other, entries, drop, transposed, kept, dense, out)


@no_type_check
@compiled()
def drop_rows(begin, end, x, drop, out):
    """Write some rows of ``x`` with entries dropped."""
    _, near, far, below, factor = drop
    for row in range(begin, end):
        first, second = row_keys(near, far, row)
        for j in range(x.shape[1]):
            out[row, j] = x[row, j] * factor if bits(first, second, j) >= below else x.dtype.type(0)


@no_type_check
@compiled(parallel=True)
def drop_parts(bounds, x, drop, out):
    """Write all rows of ``x`` with entries dropped."""
    for part in numba.prange(len(bounds) - 1):
        drop_rows(bounds[part], bounds[part + 1], x, drop, out)
