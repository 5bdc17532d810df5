"""The random bits of :mod:`geomgcn.nn._dropout`, bit by bit, for kernels: 32-bit numbers that wrap around."""

from typing import no_type_check

from geomgcn.nn._triton_language import tl, triton


@triton.jit
@no_type_check
def mixed(number):
    """Return 32 well-mixed bits for each uint32."""
    number = number ^ (number >> 16)
    number = number * 0x7FEB352D
    number = number ^ (number >> 15)
    number = number * 0x846CA68B
    return number ^ (number >> 16)


@triton.jit
@no_type_check
def first_bits(seed, row):
    """Return what a row contributes, once for all its columns, before :func:`second_bits`."""
    return mixed(row.to(tl.uint32) ^ seed.to(tl.uint32))


@triton.jit
@no_type_check
def second_bits(seed, first):
    """Return the other number that a row contributes."""
    return mixed(first + (seed >> 32).to(tl.uint32))


@triton.jit
@no_type_check
def last_bits(first, second, column):
    """Return the bits of a place."""
    return mixed((column.to(tl.uint32) * 0x9E3779B9) ^ second) + first


@triton.jit
@no_type_check
def kept(seed, below, row, column):
    """Return whether entries stay, where rows and columns broadcast."""
    first = first_bits(seed, row)
    return last_bits(first, second_bits(seed, first), column) >= below.to(tl.uint32)
