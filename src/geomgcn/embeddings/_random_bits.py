"""Random numbers for compiled loops that keep the state of their generator in a variable."""

from typing import no_type_check

import numpy as np

from geomgcn._compiled import compiled

STRIDE = np.uint64(0x9E3779B97F4A7C15)
"""What a generator adds to its state for each number (SplitMix64; Steele et al. 2014)."""


@no_type_check
@compiled()
def mixed(state):
    """Return the 64 random bits that belong to a state."""
    z = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return z ^ (z >> np.uint64(31))


@no_type_check
@compiled()
def fraction(bits):
    """Return a number from 0 to below 1 that float32 holds exactly, of the upper 24 of 64 bits."""
    return np.float32(bits >> np.uint64(40)) * np.float32(2.0**-24)
