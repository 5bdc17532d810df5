"""Adam for runs side by side: one pass over the weights, each run with its own rate and decay."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import no_type_check

import numba
import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geomgcn._compiled import compiled, threads_of_torch
from geomgcn.nn import _triton
from geomgcn.nn._triton_adam import Adam, Decay, plain_adam

DECAY = Decay()
"""As in torch."""

KEEP_MEAN, KEEP_SQUARE, FLOOR = DECAY.first, DECAY.second, DECAY.floor  # numbers for compiled loops

PIECE = 2**14


@dataclass(frozen=True, eq=False)
class Moments:
    """Running means of the gradients of a tensor of weights and of their squares; the first axis is runs.

    Example:
        >>> Moments.of(torch.ones(2, 3)).mean.shape
        torch.Size([2, 3])
    """

    mean: Tensor
    square: Tensor

    @classmethod
    def of(cls, weight: Tensor) -> "Moments":
        """Start at zero."""
        return cls(torch.zeros_like(weight), torch.zeros_like(weight))


@torch.no_grad()
def adam(
    weights: Sequence[Tensor],
    grads: Sequence[Tensor],
    moments: Sequence[Moments],
    epoch: Int[Tensor, ""],
    rate: Float[Tensor, " num_runs"],
    decay: Float[Tensor, " num_runs"],
    active: Bool[Tensor, " num_runs"],
) -> None:
    """Move weights by one step, in place; runs that are not active stay where they are.

    Args:
        epoch: How many steps this one makes, from 1.
        decay: L2 penalty, added to the gradient.

    Example:
        >>> weight, one = torch.ones(1, 2), torch.ones(1)
        >>> first = torch.tensor(1)
        >>> adam([weight], [torch.ones(1, 2)], [Moments.of(weight)], first, one / 10, one * 0, one > 0)
        >>> weight
        tensor([[0.9000, 0.9000]])
    """
    for weight, grad, moment in zip(weights, grads, moments, strict=True):
        move = _on_cpu if weight.device.type == "cpu" else _elsewhere
        move(weight, grad, moment, epoch, rate, decay, active)


def _elsewhere(
    weight: Tensor,
    grad: Tensor,
    moment: Moments,
    epoch: Tensor,
    rate: Tensor,
    decay: Tensor,
    active: Tensor,
) -> None:
    """Do the same without waiting for the device, in one kernel where there is one."""
    flat, mean, square = (part.view(len(weight), -1) for part in (weight, moment.mean, moment.square))
    state = Adam(flat, mean, square, epoch, rate.to(weight.dtype), decay.to(weight.dtype), active)
    step = _triton.adam if weight.is_cuda and _triton.available() else plain_adam
    step(state, grad.reshape(len(weight), -1))


def _on_cpu(
    weight: Tensor,
    grad: Tensor,
    moment: Moments,
    epoch: Tensor,
    rate: Tensor,
    decay: Tensor,
    active: Tensor,
) -> None:
    first, second = (1 - share ** int(epoch) for share in (KEEP_MEAN, KEEP_SQUARE))
    step, by_root = rate / first, second**-0.5
    with threads_of_torch() as threads:
        for run in active.nonzero().view(-1).tolist():
            parts = (weight[run], grad[run].contiguous(), moment.mean[run], moment.square[run])
            arrays = [part.view(-1).numpy() for part in parts]
            real = arrays[0].dtype.type
            numbers = [real(float(number)) for number in (step[run], by_root, decay[run])]
            if threads == 1 or weight[run].numel() <= PIECE:
                _adam_piece(0, len(arrays[0]), *arrays, *numbers)
            else:
                _adam_pieces(*arrays, *numbers)


@no_type_check
@compiled(fastmath={"contract"}, error_model="numpy")
def _adam_piece(begin, end, weight, grad, mean, square, step, by_root, decay):
    real = weight.dtype.type
    keep_mean, keep_square, eps = real(KEEP_MEAN), real(KEEP_SQUARE), real(FLOOR)
    new_mean, new_square = real(1 - KEEP_MEAN), real(1 - KEEP_SQUARE)
    # Slices, so that places count from zero: then none can be negative, and the loop takes many at once.
    weight, grad, mean, square = weight[begin:end], grad[begin:end], mean[begin:end], square[begin:end]
    for i in range(len(weight)):
        g = grad[i] + decay * weight[i]
        mean[i] = keep_mean * mean[i] + new_mean * g
        square[i] = keep_square * square[i] + new_square * g * g
        weight[i] -= step * mean[i] / (np.sqrt(square[i]) * by_root + eps)


@no_type_check
@compiled(parallel=True)
def _adam_pieces(weight, grad, mean, square, step, by_root, decay):
    for piece in numba.prange((len(weight) + PIECE - 1) // PIECE):
        begin = piece * PIECE
        end = min(begin + PIECE, len(weight))
        _adam_piece(begin, end, weight, grad, mean, square, step, by_root, decay)
