import copy
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch_geometric.data import Data

from geomgcn.nn import GeomGCN
from geomgcn.splits import Split, check_split
from geomgcn.training._checks import check_input, check_outputs, resolve_device
from geomgcn.training._config import TrainConfig
from geomgcn.training._result import Fit, OnEpoch, diverged, measure
from geomgcn.training._side_by_side import stackable
from geomgcn.training._together import fit_alone, prepare_inputs


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
    check_input(model, data, split)
    check_split(split, data.y, config.absent_class)
    if not hasattr(model, "reset_parameters"):
        raise TypeError(
            f"fit needs a model with reset_parameters(), which draws its weights anew, got "
            f"{type(model).__name__}. Write that method, as PyG's models have it."
        )
    device = resolve_device(config.device)
    if isinstance(model, GeomGCN) and stackable([model], device):
        inputs = prepare_inputs(model, data, device, config.precision)
        return fit_alone(model, inputs, split, config, on_epoch)
    # Seeding reaches the generators of all devices, so all of them are put back.
    devices = list(range(torch.cuda.device_count()))
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(config.seed)
        model.to("cpu").reset_parameters()  # type: ignore[operator]  # drawn alike for every device
        return _train(model.to(device), data, split, config, device, on_epoch)


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
    optimizer = torch.optim.Adam(
        model.parameters(),
        config.learning_rate,
        weight_decay=config.weight_decay,
        fused=device.type in ("cpu", "cuda"),
    )
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
            check_outputs(logits.size(1), y)
        loss = F.cross_entropy(logits[train], y[train])
        if not bool(loss.isfinite()):
            raise diverged(f"the training loss is {float(loss.detach())} in epoch {epoch}")
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
    return measure(
        model, inputs, data.y, split, torch.tensor(history, dtype=torch.float64), stopper.best_epoch or epoch
    )


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
