import copy
import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Data

from geomgcn.graphs import check_edges, check_features
from geomgcn.splits import Split, check_split
from geomgcn.training._config import TrainConfig

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


def fit(
    model: nn.Module,
    data: Data,
    split: Split,
    config: TrainConfig | None = None,
    on_epoch: OnEpoch | None = None,
) -> Fit:
    """Train ``model`` on one split, stop early on validation, and measure it.

    The model starts from fresh weights drawn from ``config.seed`` and ends with the weights that were
    measured. On the CPU the same seed gives the same bytes. Test nodes are looked at once, at the end.

    Args:
        data: With ``x``, ``y`` and ``edge_index``, and ``edge_type`` and ``edge_weight`` where the model
            wants them.
        split: Its three parts are disjoint by construction.

    Example:
        >>> from geomgcn.nn import MLP
        >>> data = Data(x=torch.eye(6), y=torch.tensor([0, 1] * 3), edge_index=torch.zeros(2, 0).long())
        >>> third = torch.arange(6) // 2
        >>> split = Split(third == 0, third == 1, third == 2)
        >>> result = fit(MLP(6, 8, 2), data, split, TrainConfig(max_epochs=5))
        >>> result.epochs
        5
    """
    config = config or TrainConfig()
    _check_input(model, data, split)
    check_split(split, data.y, config.absent_class)
    if not hasattr(model, "reset_parameters"):
        raise TypeError(
            f"fit needs a model with reset_parameters(), which draws its weights anew, got "
            f"{type(model).__name__}. Write that method, as PyG's models have it."
        )
    device = resolve_device(config.device)
    # Seeding reaches the generators of all devices, so all of them are put back.
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(config.seed)
        model.to("cpu").reset_parameters()  # type: ignore[operator]  # drawn alike for every device
        return _train(model.to(device), data, split, config, device, on_epoch)


def resolve_device(name: str) -> torch.device:
    """Return the device for a name; ``"auto"`` is CUDA where there is one, else the CPU.

    Example:
        >>> resolve_device("cpu")
        device(type='cpu')
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ValueError(f"Unknown device {name!r}. Use 'auto', 'cpu', 'cuda' or 'cuda:0'.") from None
    available: dict[str, Callable[[], bool]] = {
        "cpu": lambda: True,
        "cuda": torch.cuda.is_available,
        "mps": torch.backends.mps.is_available,
        "xpu": torch.xpu.is_available,
    }
    if device.type not in available:
        raise ValueError(f"Training does not run on device {name!r}. Use 'auto', 'cpu', 'cuda' or 'cuda:0'.")
    if not available[device.type]():
        what = device.type.upper()
        raise ValueError(f"device={name!r} needs a {what} device, and none is visible. Use device='cpu'.")
    return device


def _check_input(model: nn.Module, data: Data, split: Split) -> None:
    for name, what in (("x", "features"), ("y", "labels"), ("edge_index", "edges")):
        if data.get(name) is None:
            raise ValueError(f"Training needs {what} in data.{name}, got none. Set data.{name} first.")
    num_nodes = data.x.size(0)
    if split.train.numel() != num_nodes:
        raise ValueError(
            f"The split covers {split.train.numel()} nodes, but the graph has {num_nodes}. "
            f"Make the split from this graph's labels."
        )
    check_features(data.x)
    check_edges(data.edge_index, num_nodes)
    _check_types(model, data)


def _check_types(model: nn.Module, data: Data) -> None:
    """Refuse what torch would refuse in words of its own, in the middle of a layer."""
    if data.y.dtype != torch.int64:
        raise ValueError(
            f"Training needs class ids of dtype torch.int64 in data.y, got {data.y.dtype}. Use data.y.long()."
        )
    weight = next((parameter for parameter in model.parameters()), None)
    if weight is not None and weight.dtype != data.x.dtype:
        raise ValueError(
            f"Training needs features of the model's type, {weight.dtype}, got {data.x.dtype}. "
            f"Use data.x.to({weight.dtype})."
        )
    wanted = inspect.signature(model.forward).parameters.get("edge_type")
    if data.get("edge_type") is None and wanted is not None and wanted.default is wanted.empty:
        raise ValueError(
            f"{type(model).__name__} needs edge_type, got data without it. "
            f"Apply StructuralNeighborhood() to data with positions first."
        )
    num_edges = data.edge_index.size(1)
    for name in ("edge_type", "edge_weight"):
        if data.get(name) is not None and data[name].shape != (num_edges,):
            raise ValueError(
                f"Training needs one entry of data.{name} for each of {num_edges} edges, got shape "
                f"{list(data[name].shape)}. Apply StructuralNeighborhood() to write all three alike."
            )
    weights = data.get("edge_weight")
    if weights is not None and not bool(weights.isfinite().all()):
        raise ValueError(
            f"Training needs finite weights in data.edge_weight, got {int((~weights.isfinite()).sum())} that "
            f"are not, first at edge {int((~weights.isfinite()).nonzero()[0])}. Leave those edges out."
        )


def _train(
    model: nn.Module,
    data: Data,
    split: Split,
    config: TrainConfig,
    device: torch.device,
    on_epoch: OnEpoch | None,
) -> Fit:
    names = ("x", "edge_index", "edge_type", "edge_weight")
    inputs = [None if data.get(name) is None else data[name].to(device) for name in names]
    y = data.y.to(device)
    train, val = (mask.nonzero().view(-1).to(device) for mask in (split.train, split.val))
    optimizer = torch.optim.Adam(model.parameters(), config.learning_rate, weight_decay=config.weight_decay)
    scheduler = (
        torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=config.decay_factor, patience=config.decay_patience
        )
        if config.decay_factor < 1
        else None
    )
    stopper = _EarlyStopping(config.patience)
    history: list[tuple[float, float, float]] = []
    for epoch in range(1, config.max_epochs + 1):
        model.train()
        logits = model(*inputs)
        if epoch == 1:
            _check_outputs(logits, y)
        loss = F.cross_entropy(logits[train], y[train])
        if not bool(loss.isfinite()):
            raise _diverged(f"the training loss is {float(loss.detach())} in epoch {epoch}")
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        val_loss, val_accuracy = _evaluate(model, inputs, y, val)
        history.append((float(loss.detach()), val_loss, val_accuracy))
        if scheduler is not None and len(val):
            scheduler.step(val_loss)
        if on_epoch is not None:
            on_epoch(epoch, val_accuracy)
        if len(val) and stopper.update(epoch, val_loss, val_accuracy, model):
            break
    if config.checkpoint == "best" and stopper.best_weights is not None:
        model.load_state_dict(stopper.best_weights)
    return _measure(model, inputs, data.y, split, history, stopper.best_epoch or epoch)


def _check_outputs(logits: Tensor, y: Tensor) -> None:
    wanted = int(y.max()) + 1
    if logits.size(1) < wanted:
        raise ValueError(
            f"Labels go up to {wanted - 1}, so the model needs {wanted} outputs, got {logits.size(1)}. "
            f"Build it with out_channels={wanted}."
        )


def _diverged(what: str) -> RuntimeError:
    return RuntimeError(f"Training diverged: {what}. Lower the learning rate, or scale the features.")


@torch.no_grad()
def _evaluate(model: nn.Module, inputs: list[Tensor | None], y: Tensor, nodes: Tensor) -> tuple[float, float]:
    if not len(nodes):
        return float("nan"), float("nan")
    model.eval()
    logits = model(*inputs)[nodes]
    wanted = y[nodes]
    loss = F.cross_entropy(logits, wanted)
    accuracy = (logits.argmax(1) == wanted).double().mean()
    return float(loss), float(accuracy)


class _EarlyStopping:
    """The best validation point so far, and how long ago something last held up.

    The run ends when, for ``patience`` epochs, neither the accuracy nor the loss on validation has been
    at least equalled. The best point is that of the highest accuracy, and of the lower loss among equals.
    """

    def __init__(self, patience: int) -> None:
        self.patience = patience
        self.highest_accuracy, self.lowest_loss = 0.0, float("inf")
        self.best_point = (-1.0, float("-inf"))
        self.best_epoch, self.waited = 0, 0
        self.best_weights: dict[str, Any] | None = None

    def update(self, epoch: int, loss: float, accuracy: float, model: nn.Module) -> bool:
        """Take in one epoch and return whether to stop."""
        if (accuracy, -loss) > self.best_point:
            self.best_point, self.best_epoch = (accuracy, -loss), epoch
            # A state_dict refers to the live weights: without the copy, these would be the last ones.
            self.best_weights = copy.deepcopy(model.state_dict())
        held_up = accuracy >= self.highest_accuracy or loss <= self.lowest_loss
        self.highest_accuracy = max(accuracy, self.highest_accuracy)
        self.lowest_loss = min(loss, self.lowest_loss)
        self.waited = 0 if held_up else self.waited + 1
        return self.waited >= self.patience


@torch.no_grad()
def _measure(
    model: nn.Module,
    inputs: list[Tensor | None],
    y: Tensor,
    split: Split,
    history: list[tuple[float, float, float]],
    best_epoch: int,
) -> Fit:
    model.eval()
    probabilities, y = model(*inputs).softmax(1).cpu(), y.cpu()
    if not bool(probabilities.isfinite().all()):
        raise _diverged(f"the outputs are not finite after {len(history)} epochs")
    correct = (probabilities.argmax(1) == y).double()
    shares = {name: float(correct[mask.cpu()].mean()) for name, mask in split.parts().items()}
    return Fit(
        epochs=len(history),
        best_epoch=best_epoch,
        train_accuracy=shares["train"],
        val_accuracy=shares["val"],
        test_accuracy=shares["test"],
        history=torch.tensor(history, dtype=torch.float64),
        probabilities=probabilities,
    )
