"""How far each of several runs has come, without waiting for the device: early stopping, learning rate."""

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from geomgcn.training._config import TrainConfig

LEAST_GAIN = 1e-4
"""By how much of itself the validation loss must fall to count as falling, as in ``ReduceLROnPlateau``."""

LEAST_CHANGE = 1e-8
"""Of the learning rate; smaller ones are left out, as there."""


@dataclass(frozen=True, eq=False)
class Course:
    """The state of early stopping, for each run; updated in place.

    A run ends when, for ``patience`` epochs, neither the accuracy nor the loss on validation has been at
    least equalled. The best point is that of the highest accuracy, and of the lower loss among equals.

    Attributes:
        active: Whether a run goes on.
        failed: Whether its training loss ceased to be a number.
        rate: Learning rate, which falls where the validation loss stands still.
    """

    active: Bool[Tensor, " num_runs"]
    failed: Bool[Tensor, " num_runs"]
    rate: Float[Tensor, " num_runs"]
    epochs: Int[Tensor, " num_runs"]
    best_epoch: Int[Tensor, " num_runs"]
    best_accuracy: Float[Tensor, " num_runs"]
    loss_of_best: Float[Tensor, " num_runs"]
    highest_accuracy: Float[Tensor, " num_runs"]
    lowest_loss: Float[Tensor, " num_runs"]
    waited: Int[Tensor, " num_runs"]
    plateau_loss: Float[Tensor, " num_runs"]
    plateau_waited: Int[Tensor, " num_runs"]
    # what was asked for
    patience: Int[Tensor, " num_runs"]
    max_epochs: Int[Tensor, " num_runs"]
    decay_factor: Float[Tensor, " num_runs"]
    decay_patience: Int[Tensor, " num_runs"]
    weight_decay: Float[Tensor, " num_runs"]
    validated: Bool[Tensor, " num_runs"]

    @classmethod
    def of(cls, configs: Sequence[TrainConfig], validated: Sequence[bool], device: torch.device) -> "Course":
        """Start all runs.

        Args:
            validated: Whether a run has nodes for validation; without, nothing stops it early.

        Example:
            >>> Course.of([TrainConfig(max_epochs=3)], [True], torch.device("cpu")).max_epochs
            tensor([3])
        """

        def per_run(values: Sequence[Any], dtype: torch.dtype = torch.float64) -> Tensor:
            return torch.tensor(list(values), dtype=dtype, device=device)

        def all_runs(value: Any, dtype: torch.dtype = torch.float64) -> Tensor:
            return per_run([value] * len(configs), dtype)

        return cls(
            active=all_runs(True, torch.bool),
            failed=all_runs(False, torch.bool),
            rate=per_run([config.learning_rate for config in configs]),
            epochs=all_runs(0, torch.long),
            best_epoch=all_runs(0, torch.long),
            best_accuracy=all_runs(-1.0),
            loss_of_best=all_runs(float("inf")),
            highest_accuracy=all_runs(0.0),
            lowest_loss=all_runs(float("inf")),
            waited=all_runs(0, torch.long),
            plateau_loss=all_runs(float("inf")),
            plateau_waited=all_runs(0, torch.long),
            patience=per_run([config.patience for config in configs], torch.long),
            max_epochs=per_run([config.max_epochs for config in configs], torch.long),
            decay_factor=per_run([config.decay_factor for config in configs]),
            decay_patience=per_run([config.decay_patience for config in configs], torch.long),
            weight_decay=per_run([config.weight_decay for config in configs]),
            validated=per_run(validated, torch.bool),
        )

    def take(self, runs: Int[Tensor, " num_kept"]) -> "Course":
        """Return the state of some runs, as tensors of their own."""
        return replace(self, **{field.name: getattr(self, field.name)[runs] for field in fields(self)})

    def update(
        self,
        train_loss: Float[Tensor, " num_runs"],
        loss: Float[Tensor, " num_runs"],
        accuracy: Float[Tensor, " num_runs"],
    ) -> Bool[Tensor, " num_runs"]:
        """Take in one epoch and return which runs are at their best.

        Args:
            loss, accuracy: Of the nodes for validation.
        """
        self._set(self.failed, ~train_loss.isfinite())
        self.active.logical_and_(~self.failed)
        self.epochs.add_(self.active)
        watching = self.validated & self.active
        ahead = (accuracy > self.best_accuracy) | (
            (accuracy == self.best_accuracy) & (loss < self.loss_of_best)
        )
        improved = watching & ahead
        self._set(self.best_accuracy, accuracy, improved)
        self._set(self.loss_of_best, loss, improved)
        self._set(self.best_epoch, self.epochs, improved)
        held_up = (accuracy >= self.highest_accuracy) | (loss <= self.lowest_loss)
        self._set(self.highest_accuracy, torch.maximum(accuracy, self.highest_accuracy), watching)
        self._set(self.lowest_loss, torch.where(loss < self.lowest_loss, loss, self.lowest_loss), watching)
        self._set(self.waited, torch.where(held_up, 0, self.waited + 1), watching)
        self._slow_down(loss, watching & (self.decay_factor < 1))
        self.active.logical_and_(~(watching & (self.waited >= self.patience)))
        self.active.logical_and_(self.epochs < self.max_epochs)
        return improved

    def _slow_down(self, loss: Tensor, watching: Tensor) -> None:
        """Lower the learning rate where the loss stands still."""
        better = loss < self.plateau_loss * (1 - LEAST_GAIN)
        self._set(self.plateau_loss, torch.where(better, loss, self.plateau_loss), watching)
        waited = torch.where(better, 0, self.plateau_waited + 1)
        slower = waited > self.decay_patience
        self._set(self.plateau_waited, torch.where(slower, 0, waited), watching)
        lower = self.rate * self.decay_factor
        self._set(self.rate, lower, watching & slower & (self.rate - lower > LEAST_CHANGE))

    def _set(self, state: Tensor, value: Tensor, where: Tensor | None = None) -> None:
        """Overwrite a state of active runs."""
        state.copy_(torch.where(self.active if where is None else where, value, state))
