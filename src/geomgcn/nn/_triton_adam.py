"""A step of Adam for many runs at once: one pass over parameters, gradients and both moments."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geomgcn.nn._triton_tiles import triton_type

BLOCK = 1024
"""Parameters of a program of four warps: two loads of 16 bytes of each array in each thread."""

Flat = Float[Tensor, "num_runs num_parameters"]
PerRun = Float[Tensor, " num_runs"]


@dataclass(frozen=True)
class Decay:
    """What is the same for all runs (Kingma and Ba 2015).

    Attributes:
        first: Share of the mean of gradients that stays.
        second: Share of the mean of squared gradients that stays.
        floor: Added to the root of that mean.
    """

    first: float = 0.9
    second: float = 0.999
    floor: float = 1e-8


@dataclass(frozen=True, eq=False)
class Adam:
    """Parameters of many runs with what a step of Adam reads and writes, all on one device.

    Attributes:
        first: Mean of the gradients, from zero.
        second: Mean of their squares, from zero.
        step: Number of the step to take, from 1; the caller counts, in place.
        rate: Learning rate of each run.
        decay: Factor of the parameters in their gradients, for each run: the ``weight_decay`` of ``torch``.
        active: Runs that are to move; all else stays as it is, whatever the gradients are.
    """

    parameters: Flat
    first: Flat
    second: Flat
    step: Int[Tensor, ""]
    rate: PerRun
    decay: PerRun
    active: Bool[Tensor, " num_runs"]


def adam(state: Adam, gradients: Flat, decay: Decay = Decay()) -> None:
    """Take one step, in place; waits for nothing, so a CUDA graph can capture it."""
    from geomgcn.nn._triton_entry_kernels import adam_step

    num_runs, num_parameters = state.parameters.shape
    if not gradients.numel():
        return
    arrays = (state.parameters, gradients.contiguous(), state.first, state.second)
    assert all(array.is_contiguous() for array in arrays)
    with torch.cuda.device_of(gradients):
        adam_step[(-(-num_parameters // BLOCK), num_runs)](
            *arrays,
            state.step,
            state.rate.contiguous(),
            state.decay.contiguous(),
            state.active.contiguous().view(torch.uint8),
            num_parameters,
            FIRST=decay.first,
            SECOND=decay.second,
            LOG_FIRST=_log(decay.first),
            LOG_SECOND=_log(decay.second),
            FLOOR=decay.floor,
            TYPE=triton_type(gradients),
            BLOCK=BLOCK,
            num_warps=4,
        )


def _log(share: float) -> float:
    # So low that its power is zero.
    return math.log(share) if share > 0 else -1e4


def plain_adam(state: Adam, gradients: Flat, decay: Decay = Decay()) -> None:
    """Take one step, in place, in tensor operations on any device.

    Example:
        >>> start, zero = torch.ones(1, 2), torch.zeros(1, 2)
        >>> rate, still, on = torch.tensor([0.1]), torch.tensor([0.0]), torch.tensor([True])
        >>> state = Adam(start, zero, zero.clone(), torch.tensor(1), rate, still, on)
        >>> plain_adam(state, torch.tensor([[3.0, -5.0]]))
        >>> state.parameters
        tensor([[0.9000, 1.1000]])
    """
    number = state.step.double()
    slope = gradients + state.decay.unsqueeze(1) * state.parameters
    mean = state.first + (slope - state.first) * (1.0 - decay.first)
    square = state.second * decay.second + slope * slope * (1.0 - decay.second)
    pace = (state.rate.double() / (1.0 - decay.first**number)).to(slope.dtype).unsqueeze(1)
    root = (1.0 - decay.second**number).sqrt().to(slope.dtype)
    moved = state.parameters - pace * mean / (square.sqrt() / root + decay.floor)
    moving = state.active.unsqueeze(1)
    for array, new in ((state.first, mean), (state.second, square), (state.parameters, moved)):
        array.copy_(torch.where(moving, new, array))
