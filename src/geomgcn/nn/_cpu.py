"""The products of a layer in one pass each, compiled: arrays in, arrays out, no ids checked.

What each does is said by the function of the same name in ``_plain``. A run has arrays of its own; pieces
of rows go to threads, each written by one thread alone, so no result depends on how many there are.
"""

from typing import no_type_check

import numba
import numpy as np

from geomgcn._compiled import compiled
from geomgcn.nn._dropout import COLUMN, FIRST, SECOND

U32 = np.uint32
_FIRST, _SECOND, _COLUMN = U32(FIRST), U32(SECOND), U32(COLUMN)
_S15, _S16 = U32(15), U32(16)
FUSED = {"contract"}  # a product and a sum in one instruction, and nothing else out of order


# `no_type_check` keeps the shape checks of the tests out of compiled code, which cannot hold them.
@no_type_check
@compiled()
def mixed(number):
    """Return 32 well-mixed bits."""
    number = U32(number ^ (number >> _S16))
    number = U32(number * _FIRST)
    number = U32(number ^ (number >> _S15))
    number = U32(number * _SECOND)
    return U32(number ^ (number >> _S16))


@no_type_check
@compiled()
def row_keys(near, far, row):
    """Return what the bits of all columns of a row share."""
    first = mixed(U32(U32(row) ^ near))
    return first, mixed(U32(first + far))


@no_type_check
@compiled()
def bits(first, second, column):
    """Return the 32 random bits of a place."""
    return U32(mixed(U32(U32(U32(column) * _COLUMN) ^ second)) + first)


@no_type_check
@compiled(fastmath=FUSED)
def gather_rows(
    begin, end, start, other, weight, values, gate, out, count, from_slots, to_slots, scale, bias, drop
):
    """Write the rows of nodes from ``begin`` to before ``end``.

    Empty ``weight``, ``gate`` and ``bias`` stand for none. ``drop`` is how to finish: whether at all, two
    halves of a seed, the bits below which an entry is dropped, and the factor of those that stay.
    """
    width = values.shape[1]
    weighted, gated = len(weight) > 0, len(gate) > 0
    finish, near, far, below, factor = drop
    columns = count * width if to_slots else width
    for node in range(begin, end):
        base = node * count
        row = base if to_slots else node
        out[row : row + (count if to_slots else 1)] = 0
        for slot in range(count):
            into = out[base + slot] if to_slots else out[node]
            for e in range(start[base + slot], start[base + slot + 1]):
                read = np.int64(other[e]) if from_slots else np.int64(other[e] // count)
                w = scale * weight[e] if weighted else scale
                line = values[read]
                if gated:
                    open_ = gate[read]
                    for j in range(width):
                        into[j] += w * line[j] if open_[j] > 0 else values.dtype.type(0)
                else:
                    for j in range(width):
                        into[j] += w * line[j]
        if finish:
            first, second = row_keys(near, far, node)
            done = out[row : row + (count if to_slots else 1)].reshape(-1)
            if len(bias):
                for j in range(columns):
                    done[j] += bias[j]
            if below == 0:
                for j in range(columns):
                    done[j] = max(done[j], values.dtype.type(0))
            else:
                for j in range(columns):
                    kept = done[j] > 0 and bits(first, second, j) >= below
                    done[j] = done[j] * factor if kept else values.dtype.type(0)


@no_type_check
@compiled(parallel=True)
def gather_parts(
    bounds, start, other, weight, values, gate, out, count, from_slots, to_slots, scale, bias, drop
):
    """Write all rows, pieces on several threads."""
    for part in numba.prange(len(bounds) - 1):
        gather_rows(
            bounds[part],
            bounds[part + 1],
            start,
            other,
            weight,
            values,
            gate,
            out,
            count,
            from_slots,
            to_slots,
            scale,
            bias,
            drop,
        )


@no_type_check
@compiled(parallel=True)
def multiply_pairs(bounds, start, other, values, grad, out, count, from_slots, to_slots, scale):
    """Write, for each pair, what it read times the gradient where it went."""
    for part in numba.prange(len(bounds) - 1):
        for row in range(bounds[part] * count, bounds[part + 1] * count):
            for e in range(start[row], start[row + 1]):
                read = values[np.int64(other[e] if from_slots else other[e] // count)]
                written = grad[row if to_slots else row // count]
                total = values.dtype.type(0)
                for j in range(values.shape[1]):
                    total += read[j] * written[j]
                out[e] = total * scale


@no_type_check
@compiled(parallel=True)
def largest_parts(bounds, start, other, values, count, out, ties):
    """Write the largest value of each virtual node, and how many pairs tie for it."""
    for part in numba.prange(len(bounds) - 1):
        for row in range(bounds[part] * count, bounds[part + 1] * count):
            top, equal = out[row], ties[row]
            top[:] = 0
            equal[:] = 0
            for e in range(start[row], start[row + 1]):
                line = values[other[e] // count]
                for j in range(values.shape[1]):
                    if e == start[row] or line[j] > top[j]:
                        top[j] = line[j]
                        equal[j] = 1
                    elif line[j] == top[j]:
                        equal[j] += 1


@no_type_check
@compiled(parallel=True)
def from_largest_parts(bounds, start, other, values, top, share, count, out):
    """Write the gradient of the largest values: to each node the shares of the ties that it is in."""
    for part in numba.prange(len(bounds) - 1):
        for node in range(bounds[part], bounds[part + 1]):
            line, into = values[node], out[node]
            into[:] = 0
            for e in range(start[node * count], start[(node + 1) * count]):
                best, part_of = top[other[e]], share[other[e]]
                for j in range(values.shape[1]):
                    into[j] += part_of[j] if line[j] == best[j] else values.dtype.type(0)
