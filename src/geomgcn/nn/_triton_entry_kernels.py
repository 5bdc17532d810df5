"""Kernels over numbers rather than pairs: dropout, a sparse matrix with dropout on its entries, Adam."""

from typing import no_type_check

from geomgcn.nn._triton_bits import kept
from geomgcn.nn._triton_language import tl, triton


@triton.jit
@no_type_check
def drop_rows(
    out,
    x,
    seed,
    below,
    factor,
    x_run,
    out_run,
    num_rows,
    TYPE: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Multiply the entries of a tile by zero or by what makes up for it."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    run = tl.program_id(2).to(tl.int64)
    mask = (row < num_rows)[:, None] & (channel < CHANNELS)[None, :]
    places = (row * CHANNELS)[:, None] + channel[None, :]
    value = tl.load(x + run * x_run + places, mask=mask, other=0.0).to(TYPE)
    stays = kept(tl.load(seed + run), tl.load(below + run), row[:, None], channel[None, :])
    value = value * stays.to(TYPE) * tl.load(factor + run).to(TYPE)
    tl.store(out + run * out_run + places, value, mask=mask)


@triton.jit
@no_type_check
def sparse_rows(
    out,
    values,
    start,
    other,
    entries,
    seed,
    below,
    factor,
    out_run,
    values_run,
    num_rows,
    SHARES: tl.constexpr,
    TRANSPOSED: tl.constexpr,
    TYPE: tl.constexpr,
    CHANNELS: tl.constexpr,
    ROWS: tl.constexpr,
    NEIGHBORS: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Add up one of ``SHARES`` equal shares of each row of a tile."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)
    channel = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    share, run = tl.program_id(2) % SHARES, (tl.program_id(2) // SHARES).to(tl.int64)
    inside = row < num_rows
    first = tl.load(start + row, mask=inside, other=0).to(tl.int64)
    size = tl.load(start + row + 1, mask=inside, other=0).to(tl.int64) - first
    begin, end = size * share // SHARES, size * (share + 1) // SHARES
    length = (end - begin).to(tl.int32)
    values += run * values_run
    total = tl.zeros((ROWS, NEIGHBORS, BLOCK), dtype=TYPE)
    for position in range(0, tl.max(length, axis=0), NEIGHBORS):
        neighbor = position + tl.arange(0, NEIGHBORS)
        used = neighbor[None, :] < length[:, None]
        place = (first + begin)[:, None] + neighbor[None, :]
        column = tl.load(other + place, mask=used, other=0).to(tl.int64)
        weight = tl.load(entries + place, mask=used, other=0.0).to(TYPE)
        if seed is not None:
            if TRANSPOSED:
                stays = kept(tl.load(seed + run), tl.load(below + run), column, row[:, None])
            else:
                stays = kept(tl.load(seed + run), tl.load(below + run), row[:, None], column)
            weight = weight * stays.to(TYPE) * tl.load(factor + run).to(TYPE)
        places = (column * CHANNELS)[:, :, None] + channel[None, None, :]
        mask = used[:, :, None] & (channel < CHANNELS)[None, None, :]
        total += tl.load(values + places, mask=mask, other=0.0).to(TYPE) * weight[:, :, None]
    mask = inside[:, None] & (channel < CHANNELS)[None, :]
    places = ((row * SHARES + share) * CHANNELS)[:, None] + channel[None, :]
    tl.store(out + run * out_run + places, tl.sum(total, axis=1), mask=mask)


@triton.jit
@no_type_check
def adam_step(
    parameters,
    gradients,
    first,
    second,
    step,
    rate,
    decay,
    active,
    num_parameters,
    FIRST: tl.constexpr,
    SECOND: tl.constexpr,
    LOG_FIRST: tl.constexpr,
    LOG_SECOND: tl.constexpr,
    FLOOR: tl.constexpr,
    TYPE: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Take the step for a block of parameters of one run."""
    run = tl.program_id(1).to(tl.int64)
    place = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = place < tl.where(tl.load(active + run) != 0, num_parameters, 0)
    place += run * num_parameters
    # In double precision: one minus a power that is nearly one.
    number = tl.load(step).to(tl.float64)
    first_left, second_left = 1.0 - tl.exp(number * LOG_FIRST), 1.0 - tl.exp(number * LOG_SECOND)
    pace = (tl.load(rate + run).to(tl.float64) / first_left).to(TYPE)
    root = tl.sqrt(second_left).to(TYPE)
    old = tl.load(parameters + place, mask=mask, other=0.0).to(TYPE)
    slope = tl.load(gradients + place, mask=mask, other=0.0).to(TYPE) + tl.load(decay + run).to(TYPE) * old
    mean = tl.load(first + place, mask=mask, other=0.0).to(TYPE)
    square = tl.load(second + place, mask=mask, other=0.0).to(TYPE)
    mean += (slope - mean) * (1.0 - FIRST)
    square = square * SECOND + slope * slope * (1.0 - SECOND)
    tl.store(first + place, mean, mask=mask)
    tl.store(second + place, square, mask=mask)
    tl.store(parameters + place, old - pace * mean / (tl.sqrt(square) / root + FLOOR), mask=mask)
