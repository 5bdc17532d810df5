"""Geom-GCNs of one shape trained on one graph: weights drawn, trained side by side, measured."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch_geometric.data import Data

from geomgcn.nn import GeomGCN
from geomgcn.splits import Split
from geomgcn.training._checks import check_outputs
from geomgcn.training._config import Precision, TrainConfig
from geomgcn.training._result import Fit, OnEpoch, diverged, measure
from geomgcn.training._side_by_side import Inputs, OnEpochOfRun, Outcome, SideBySide, train_side_by_side

OnResult = Callable[[int, Fit | RuntimeError], None]
"""Called when a run has ended, with its place and its result, or what went wrong."""


def prepare_inputs(
    model: GeomGCN, data: Data, device: torch.device, precision: Precision = "float32"
) -> Inputs:
    """Return what all runs on a graph share, on the device.

    Args:
        precision: ``"bfloat16"`` rounds the features to it, and with them all that is computed from them.

    Example:
        >>> data = Data(x=torch.ones(2, 3), edge_index=torch.tensor([[1], [0]]), y=torch.tensor([0, 1]))
        >>> data.edge_type = torch.tensor([0])
        >>> prepare_inputs(GeomGCN(3, 4, 2, 9), data, torch.device("cpu")).adjacency
        Adjacency(num_nodes=2, num_virtual_nodes=9, num_edges=1)
    """
    x = data.x.to(device, torch.bfloat16 if precision == "bfloat16" else data.x.dtype)
    weight = None if data.get("edge_weight") is None else data.edge_weight.to(device)
    x, adjacency = model.prepare(x, data.edge_index.to(device), data.edge_type.to(device), weight)
    return Inputs(x, adjacency, data.y.to(device))


def fit_prepared(
    models: Sequence[GeomGCN],
    inputs: Inputs,
    splits: Sequence[Split],
    configs: Sequence[TrainConfig],
    on_epoch: OnEpochOfRun | None = None,
    on_result: OnResult | None = None,
) -> list[Fit | RuntimeError]:
    """Train models of one shape, one on each split, and return the result of each, or what went wrong.

    The first weights of a run and its dropout depend on its seed alone, so a run comes to the same alone
    and among others: on the CPU to the same bytes.

    Example:
        >>> data = Data(x=torch.ones(3, 3), edge_index=torch.tensor([[1], [0]]), y=torch.tensor([0, 1, 0]))
        >>> data.edge_type = torch.tensor([0])
        >>> model, nodes = GeomGCN(3, 4, 2, 9), torch.arange(3)
        >>> inputs = prepare_inputs(model, data, torch.device("cpu"))
        >>> split = Split(nodes == 0, nodes == 1, nodes == 2)
        >>> fit_prepared([model], inputs, [split], [TrainConfig(max_epochs=2)])[0].epochs
        2
    """
    y, device = inputs.y, inputs.y.device
    generators = []
    for model, config in zip(models, configs, strict=True):
        check_outputs(model.layers[-1].out_channels, y)
        # Seeding reaches the generators of all devices, so all of them are put back.
        with torch.random.fork_rng(devices=list(range(torch.cuda.device_count()))):
            torch.manual_seed(config.seed)
            model.to("cpu").reset_parameters()  # drawn alike for every device
            generators.append(torch.Generator())
            generators[-1].set_state(torch.get_rng_state())
    results: dict[int, Fit | RuntimeError] = {}
    exact = next(models[0].parameters()).dtype
    ready = [inputs.x.to(device, exact), inputs.adjacency]  # measured as the models themselves compute

    def end(place: int, outcome: Outcome) -> None:
        model = models[place].to(device)
        with torch.no_grad():
            for parameter, weight in zip(model.parameters(), outcome.weights, strict=True):
                parameter.copy_(weight)
        if outcome.failed is not None:
            epoch = len(outcome.history) + 1
            results[place] = diverged(f"the training loss is {outcome.failed} in epoch {epoch}")
        else:
            try:
                results[place] = measure(model, ready, y, splits[place], outcome.history, outcome.best_epoch)
            except RuntimeError as error:
                results[place] = error
        if on_result is not None:
            on_result(place, results[place])

    with matmul_precision(configs[0].precision):
        train_side_by_side(SideBySide(models, inputs, splits, configs, generators), on_epoch, end)
    return [results[place] for place in range(len(models))]


def fit_alone(
    model: GeomGCN, inputs: Inputs, split: Split, config: TrainConfig, on_epoch: OnEpoch | None = None
) -> Fit:
    """Train one model on one split, and raise what went wrong.

    Example:
        >>> data = Data(x=torch.ones(3, 3), edge_index=torch.tensor([[1], [0]]), y=torch.tensor([0, 1, 0]))
        >>> data.edge_type = torch.tensor([0])
        >>> model, nodes = GeomGCN(3, 4, 2, 9), torch.arange(3)
        >>> inputs = prepare_inputs(model, data, torch.device("cpu"))
        >>> split = Split(nodes == 0, nodes == 1, nodes == 2)
        >>> fit_alone(model, inputs, split, TrainConfig(max_epochs=2)).epochs
        2
    """
    told = None if on_epoch is None else lambda _, epoch, accuracy: on_epoch(epoch, accuracy)
    result = fit_prepared([model], inputs, [split], [config], told)[0]
    if isinstance(result, RuntimeError):
        raise result
    return result


@contextmanager
def matmul_precision(precision: Precision) -> Iterator[None]:
    """Let dense products on a GPU use tensor cores with 10 bits of fraction, for ``"tf32"``.

    Example:
        >>> with matmul_precision("tf32"):
        ...     torch.get_float32_matmul_precision()
        'high'
    """
    before = torch.get_float32_matmul_precision()
    if precision == "tf32":
        torch.set_float32_matmul_precision("high")
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before)
