"""Kernels over rows of pairs: a program takes a tile of rows x neighbors x channels.

Rows are ``begin[row * step]`` to ``end[row * step]``, so that one kernel serves the rows of virtual nodes,
those of nodes (``step`` virtual nodes each), the pieces of long rows, and the sums over those pieces. Rows of
more than ``limit`` pairs are left out, and not written. A sum is kept for each place of the tile and the
places of a row are added up once, at the end: always in the same order, without atomics.

Positions within a row are compared in place of positions among all pairs, which could overflow 32 bits.
"""

from typing import no_type_check

from geomgcn.nn._triton_bits import kept
from geomgcn.nn._triton_language import tl, triton


@triton.jit
@no_type_check
def rows_of_tile(begin, end, num_rows, step, limit, ROWS: tl.constexpr):
    """Return the rows of a program, where each begins, its length, and whether it is to be done."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    inside = row < num_rows
    first = tl.load(begin + row * step, mask=inside, other=0)
    last = tl.load(end + row * step, mask=inside, other=0)
    length = (last - first).to(tl.int32)
    done = inside & (length <= limit)
    return row, first, tl.where(done, length, 0), done


@triton.jit
@no_type_check
def with_channels(used, channel, CHANNELS: tl.constexpr, BLOCK: tl.constexpr):
    """Return which places of a tile there are, given which pairs there are."""
    if CHANNELS % BLOCK == 0:
        mask = used[:, :, None]
    else:
        mask = used[:, :, None] & (channel < CHANNELS)[None, None, :]
    return mask


@triton.jit
@no_type_check
def place_read(other, place, used, DIVISOR: tl.constexpr):
    """Return the row of the values that each pair reads; without ``other``, its own place."""
    if other is None:
        read = place
    else:
        read = tl.load(other + place, mask=used, other=0)
        if DIVISOR != 1:
            read = read // DIVISOR
    return read.to(tl.int64)


@triton.jit
@no_type_check
def listed(numbers, row, done):
    """Return ``numbers[row]``, or without numbers the row itself."""
    if numbers is None:  # noqa: SIM108  (a branch that is not compiled)
        found = row
    else:
        found = tl.load(numbers + row, mask=done, other=0).to(tl.int64)
    return found


@triton.jit
@no_type_check
def let_through(moved, gate, wanted, places, mask):
    """Return what ``gate`` lets pass: where it is positive or, if something is wanted, equal to that."""
    if gate is not None:
        opened = tl.load(gate + places, mask=mask, other=0.0).to(moved.dtype)
        if wanted is not None:
            moved = moved * (opened == wanted).to(moved.dtype)
        else:
            moved = moved * (opened > 0).to(moved.dtype)
    return moved


@triton.jit
@no_type_check
def finished(result, run, target, channel, mask, bias, seed, below, factor, COUNT: tl.constexpr, CHANNELS):
    """Do what comes between two layers, where node ``n`` owns rows ``n * COUNT`` to ``(n + 1) * COUNT``."""
    node, column = target // COUNT, ((target % COUNT) * CHANNELS)[:, None] + channel[None, :]
    if bias is not None:
        result += tl.load(bias + run * (COUNT * CHANNELS) + column, mask=mask, other=0.0).to(result.dtype)
    result = tl.where(result < 0, 0.0, result)  # in this form NaN stays
    if seed is not None:
        stays = kept(tl.load(seed + run), tl.load(below + run), node[:, None], column)
        result = result * stays.to(result.dtype) * tl.load(factor + run).to(result.dtype)
    return result


@triton.jit
@no_type_check
def sum_rows(
    out,
    values,
    begin,
    end,
    other,
    weight,
    gate,
    equal,
    own,
    into,
    bias,
    seed,
    below,
    factor,
    out_run,
    values_run,
    equal_run,
    num_rows,
    step,
    limit,
    DIVISOR: tl.constexpr,
    COUNT: tl.constexpr,
    SCALE: tl.constexpr,
    FINISH: tl.constexpr,
    TYPE: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    NEIGHBORS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Add up, for each row, what its pairs read, times their weight, where ``gate`` lets it pass.

    ``gate`` lies as ``values`` do, and passes where it is positive, or, given ``equal``, where it equals that
    in row ``own``. Results go to row ``into``, after what comes between layers.
    """
    row, first, length, done = rows_of_tile(begin, end, num_rows, step, limit, ROWS)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    run = tl.program_id(2).to(tl.int64)
    written = done[:, None] & (channel < CHANNELS)[None, :]
    if equal is not None:
        mine = (listed(own, row, done) * CHANNELS)[:, None] + channel[None, :]
        wanted = tl.load(equal + run * equal_run + mine, mask=written, other=0.0).to(TYPE)[:, None, :]
    else:
        wanted = None
    total = tl.zeros((ROWS, NEIGHBORS, BLOCK), dtype=TYPE)
    for position in range(0, tl.max(length, axis=0), NEIGHBORS):
        neighbor = position + tl.arange(0, NEIGHBORS)
        used = neighbor[None, :] < length[:, None]
        place = first[:, None] + neighbor[None, :]
        line = place_read(other, place, used, DIVISOR) * CHANNELS + run * values_run
        places = line[:, :, None] + channel[None, None, :]
        mask = with_channels(used, channel, CHANNELS, BLOCK)
        moved = tl.load(values + places, mask=mask, other=0.0).to(TYPE)
        if weight is not None:
            moved = moved * tl.load(weight + place, mask=used, other=0.0).to(TYPE)[:, :, None]
        total += let_through(moved, gate, wanted, places, mask)
    result = tl.sum(total, axis=1) * SCALE
    target = listed(into, row, done)
    if FINISH:
        result = finished(result, run, target, channel, written, bias, seed, below, factor, COUNT, CHANNELS)
    elif factor is not None:
        result = result * tl.load(factor + run).to(result.dtype)
    tl.store(out + run * out_run + (target * CHANNELS)[:, None] + channel[None, :], result, mask=written)


@triton.jit
@no_type_check
def largest_rows(
    out,
    ties,
    values,
    counts,
    begin,
    end,
    other,
    into,
    out_run,
    values_run,
    num_rows,
    step,
    limit,
    DIVISOR: tl.constexpr,
    TYPE: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    NEIGHBORS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Find, for each row, the largest value that its pairs read, and add up ``counts`` of those that tie."""
    row, first, length, done = rows_of_tile(begin, end, num_rows, step, limit, ROWS)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    run = tl.program_id(2).to(tl.int64)
    most = tl.full((ROWS, NEIGHBORS, BLOCK), float("-inf"), dtype=TYPE)
    tied = tl.zeros((ROWS, NEIGHBORS, BLOCK), dtype=TYPE)
    for position in range(0, tl.max(length, axis=0), NEIGHBORS):
        neighbor = position + tl.arange(0, NEIGHBORS)
        used = neighbor[None, :] < length[:, None]
        place = first[:, None] + neighbor[None, :]
        line = place_read(other, place, used, DIVISOR) * CHANNELS + run * values_run
        places = line[:, :, None] + channel[None, None, :]
        mask = with_channels(used, channel, CHANNELS, BLOCK)
        moved = tl.load(values + places, mask=mask, other=float("-inf")).to(TYPE)
        if counts is not None:
            weight = tl.load(counts + places, mask=mask, other=0.0).to(TYPE)
        else:
            weight = tl.zeros((ROWS, NEIGHBORS, BLOCK), dtype=TYPE) + mask.to(TYPE)
        # NaN is kept once seen, and nothing ties with it.
        above = (moved > most) | (moved != moved)
        tied = tl.where(above, weight, tied + tl.where(moved == most, weight, 0.0))
        most = tl.where(above, moved, most)
    wrong = tl.sum((most != most).to(tl.int32), axis=1) > 0
    top = tl.max(tl.where(most != most, float("-inf"), most), axis=1)
    number = tl.sum(tl.where(most == top[:, None, :], tied, 0.0), axis=1)
    top = tl.where(wrong, float("nan"), tl.where((length > 0)[:, None], top, 0.0))
    number = tl.where(wrong, 0.0, number)
    places = run * out_run + (listed(into, row, done) * CHANNELS)[:, None] + channel[None, :]
    written = done[:, None] & (channel < CHANNELS)[None, :]
    tl.store(out + places, top, mask=written)
    tl.store(ties + places, number, mask=written)


@triton.jit
@no_type_check
def product_rows(
    out,
    values,
    grad,
    begin,
    end,
    other,
    own,
    values_run,
    grad_run,
    num_runs,
    num_rows,
    step,
    limit,
    DIVISOR: tl.constexpr,
    SCALE: tl.constexpr,
    TYPE: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    NEIGHBORS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Multiply what each pair reads with the gradient of its row, over all channels and runs."""
    row, first, length, done = rows_of_tile(begin, end, num_rows, step, limit, ROWS)
    mine = listed(own, row, done)
    for position in range(0, tl.max(length, axis=0), NEIGHBORS):
        neighbor = position + tl.arange(0, NEIGHBORS)
        used = neighbor[None, :] < length[:, None]
        place = first[:, None] + neighbor[None, :]
        line = place_read(other, place, used, DIVISOR) * CHANNELS
        total = tl.zeros((ROWS, NEIGHBORS, BLOCK), dtype=TYPE)
        # Pointers move on by a run: the number of a run times its size could overflow 32 bits.
        read, met = values, grad
        for _ in range(num_runs):
            for block in range(0, CHANNELS, BLOCK):
                channel = block + tl.arange(0, BLOCK)
                mask = with_channels(used, channel, CHANNELS, BLOCK)
                moved = tl.load(read + line[:, :, None] + channel[None, None, :], mask=mask, other=0.0)
                there = done[:, None] & (channel < CHANNELS)[None, :]
                places = (mine * CHANNELS)[:, None] + channel[None, :]
                slope = tl.load(met + places, mask=there, other=0.0)
                total += moved.to(TYPE) * slope.to(TYPE)[:, None, :]
            read += values_run
            met += grad_run
        tl.store(out + place, tl.sum(total, axis=2) * SCALE, mask=used)
