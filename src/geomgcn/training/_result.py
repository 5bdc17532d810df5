"""What a finished run is, and how it is measured."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from geomgcn.splits import Split

OnEpoch = Callable[[int, float], None]
"""Called after each epoch with its number, from 1, and the validation accuracy."""


@dataclass(frozen=True, eq=False)
class Fit:
    """One finished run.

    Attributes:
        epochs: Epochs trained.
        best_epoch: Epoch of the best validation point, from 1.
        train_accuracy, val_accuracy, test_accuracy: Shares, of the weights that were kept; NaN for a part
            without nodes.
        history: For each epoch the training loss, the validation loss and the validation accuracy.
        predictions: Class of each node.
        probabilities: Softmax of the logits.
    """

    epochs: int
    best_epoch: int
    train_accuracy: float
    val_accuracy: float
    test_accuracy: float
    history: Tensor  # epochs, 3
    probabilities: Tensor  # num_nodes, num_classes

    @property
    def predictions(self) -> Tensor:
        """Class of each node."""
        return self.probabilities.argmax(1)


def diverged(what: str) -> RuntimeError:
    """Return the error of a run whose numbers have left the numbers.

    Example:
        >>> diverged("the training loss is nan in epoch 3")
        RuntimeError('Training diverged: the training loss is nan in epoch 3. Lower the learning rate, ...
    """
    return RuntimeError(f"Training diverged: {what}. Lower the learning rate, or scale the features.")


@torch.no_grad()
def measure(
    model: nn.Module,
    inputs: list[Any],
    y: Tensor,
    split: Split,
    history: Tensor,
    best_epoch: int,
) -> Fit:
    """Return the result of a run whose model has the weights to measure.

    Args:
        inputs: What the model is called with.
        history: Three numbers for each epoch, see :class:`Fit`.
    """
    model.eval()
    probabilities, y = model(*inputs).softmax(1).cpu(), y.cpu()
    if not bool(probabilities.isfinite().all()):
        raise diverged(f"the outputs are not finite after {len(history)} epochs")
    correct = (probabilities.argmax(1) == y).double()
    shares = {name: float(correct[mask.cpu()].mean()) for name, mask in split.parts().items()}
    return Fit(
        epochs=len(history),
        best_epoch=best_epoch,
        train_accuracy=shares["train"],
        val_accuracy=shares["val"],
        test_accuracy=shares["test"],
        history=history,
        probabilities=probabilities,
    )
