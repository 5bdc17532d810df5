"""Many runs on one graph: one after another, or side by side in one program, whichever is faster."""

import itertools
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Literal, get_args

import torch
from torch import nn
from torch_geometric.data import Data

from geomgcn.nn import GeomGCN, SparseFeatures
from geomgcn.splits import Split, check_split
from geomgcn.training._checks import check_input, resolve_device
from geomgcn.training._config import LARGEST_SEED, TrainConfig
from geomgcn.training._fit import fit
from geomgcn.training._result import Fit, OnEpoch
from geomgcn.training._runs import OnRun, Runs
from geomgcn.training._side_by_side import Inputs, stackable
from geomgcn.training._together import fit_alone, fit_prepared, prepare_inputs

Way = Literal["auto", "one by one", "side by side"]

LITTLE_WORK = 400_000
"""Numbers moved in an epoch of one run on the CPU, below which starting operations takes longer than doing
them: runs side by side share that time."""


def fit_many(
    models: Sequence[nn.Module],
    data: Data,
    splits: Sequence[Split],
    configs: TrainConfig | Sequence[TrainConfig],
    *,
    way: Way = "auto",
    on_run: OnRun | None = None,
    on_epoch: OnEpoch | None = None,
) -> Runs:
    """Train each model on its split with its settings, as :func:`fit` does, and return all results.

    Geom-GCNs of one shape can be trained side by side in one program: each with its own weights, split,
    dropout, learning rate and early stopping, those that have ended leaving the others. A run comes to the
    same numbers either way, on the CPU to the same bytes.

    Args:
        models: One for each split, or one shape many times over; their dropout may differ.
        configs: One for all runs, or one for each; devices must agree.
        way: ``"auto"`` takes the faster one. Other models than Geom-GCN always go one by one.
        on_epoch: Called after each epoch, of the first of the runs that go on where several do.

    Example:
        >>> from geomgcn.splits import random_splits
        >>> data = Data(x=torch.eye(6), y=torch.tensor([0, 1] * 3), edge_index=torch.zeros(2, 0).long())
        >>> data.edge_type = torch.zeros(0).long()
        >>> splits = random_splits(data.y, (0.4, 0.3, 0.3), seed=0, num_splits=2)
        >>> configs = [TrainConfig(learning_rate=rate, max_epochs=3) for rate in (0.1, 0.01)]
        >>> models = [GeomGCN(6, 8, 2, num_virtual_nodes=9) for _ in splits]
        >>> [result.epochs for result in fit_many(models, data, splits, configs).fits]
        [3, 3]
    """
    if way not in get_args(Way):
        raise ValueError(f"way is one of {', '.join(map(repr, get_args(Way)))}, got {way!r}.")
    configs = [configs] * len(splits) if isinstance(configs, TrainConfig) else list(configs)
    if not len(models) == len(splits) == len(configs):
        raise ValueError(
            f"fit_many needs one model and one config for each of {len(splits)} splits, got {len(models)} "
            f"models and {len(configs)} configs. Repeat those that several runs share."
        )
    for name in ("device", "precision"):
        if len({getattr(config, name) for config in configs}) > 1:
            raise ValueError(
                f"fit_many has one {name} for all runs, got configs with several. Give all the same."
            )
    if not splits:
        return Runs(())
    if way == "side by side" and not stackable(models, resolve_device(configs[0].device)):
        raise ValueError(
            "Only Geom-GCNs of one shape can be trained side by side, on a CPU or with CUDA, got models that "
            "differ, or others. Pass way='one by one', or call fit_many for each shape."
        )
    together = way == "side by side" or (way == "auto" and _is_faster_together(models, data, configs[0]))
    if together:
        return _side_by_side(models, data, splits, configs, on_run, on_epoch)
    return _one_by_one(models, data, splits, configs, on_run, on_epoch)


def fit_splits(
    make_model: Callable[[], nn.Module],
    data: Data,
    splits: Sequence[Split],
    config: TrainConfig | None = None,
    on_run: OnRun | None = None,
    on_epoch: OnEpoch | None = None,
) -> Runs:
    """Train a fresh model on each split; Ctrl-C and a run that fails keep those that are done.

    Args:
        make_model: Returns a new model; run ``i`` draws its weights from ``config.seed + i``.

    Example:
        >>> from geomgcn.nn import MLP
        >>> from geomgcn.splits import random_splits
        >>> data = Data(x=torch.eye(6), y=torch.tensor([0, 1] * 3), edge_index=torch.zeros(2, 0).long())
        >>> splits = random_splits(data.y, (0.4, 0.3, 0.3), seed=0, num_splits=2)
        >>> fit_splits(lambda: MLP(6, 8, 2), data, splits, TrainConfig(max_epochs=3)).test_accuracy.runs
        2
    """
    config = config or TrainConfig()
    if config.seed + len(splits) - 1 > LARGEST_SEED:
        raise ValueError(
            f"{len(splits)} runs need as many seeds from seed={config.seed} on, and the largest is "
            f"{LARGEST_SEED}. Take a smaller seed."
        )
    configs = [replace(config, seed=config.seed + i) for i in range(len(splits))]
    models = _fresh(make_model, len(splits))
    try:
        first = list(itertools.islice(models, 1))
        if first and len(splits) > 1 and _is_faster_together(first, data, config):
            first += list(models)
            if stackable(first):
                return fit_many(
                    first, data, splits, configs, way="side by side", on_run=on_run, on_epoch=on_epoch
                )
    except KeyboardInterrupt:
        return Runs((), interrupted=True)
    return _one_by_one(itertools.chain(first, models), data, splits, configs, on_run, on_epoch)


def _fresh(make_model: Callable[[], nn.Module], count: int) -> Iterator[nn.Module]:
    for _ in range(count):
        # A module draws its first weights from the global generator, which is the caller's.
        with torch.random.fork_rng(devices=[]):
            model = make_model()
        yield model


def _is_faster_together(models: Sequence[nn.Module], data: Data, config: TrainConfig) -> bool:
    """Return whether runs share more by going side by side than they lose: as measured, see benchmarks."""
    device = resolve_device(config.device)
    if not stackable(models, device) or data.get("edge_type") is None or data.get("x") is None:
        return False
    if device.type != "cpu":
        return True
    layers = [layer for model in models[:1] if isinstance(model, GeomGCN) for layer in model.layers]
    widths = sum(layer.out_channels * layer.num_virtual_nodes for layer in layers)
    moved = data.edge_type.numel() * sum(layer.out_channels for layer in layers)
    return widths * data.x.size(0) + moved < LITTLE_WORK


def _one_by_one(
    models: Iterable[nn.Module],
    data: Data,
    splits: Sequence[Split],
    configs: Sequence[TrainConfig],
    on_run: OnRun | None,
    on_epoch: OnEpoch | None,
) -> Runs:
    done: list[Fit] = []
    inputs: Inputs | None = None
    try:
        for model, split, config in zip(models, splits, configs, strict=True):
            if isinstance(model, GeomGCN) and stackable([model], resolve_device(config.device)):
                inputs = _checked(model, data, split, config, inputs)
                result = fit_alone(model, inputs, split, config, on_epoch)
            else:
                result = fit(model, data, split, config, on_epoch)
            done.append(result)
            if on_run is not None:
                on_run(len(done) - 1, result)
    except KeyboardInterrupt:
        return Runs(tuple(done), interrupted=True)
    except RuntimeError as error:  # diverged, or out of memory
        if not done:
            raise
        failure = f"Run {len(done)} failed: {error}"
        warnings.warn(f"{failure.rstrip('.')}. The {len(done)} runs before it are kept.", stacklevel=3)
        return Runs(tuple(done), failure=failure)
    return Runs(tuple(done))


def runs_at_once(model: GeomGCN, inputs: Inputs) -> int:
    """Return for how many runs side by side half of the free memory of a GPU is enough.

    A run has hidden features and their gradients, three of each at a time, dense features after dropout,
    and its weights with what Adam, the gradient and the best ones take.

    Example:
        >>> data = Data(x=torch.ones(2, 3), edge_index=torch.tensor([[1], [0]]), y=torch.tensor([0, 1]))
        >>> data.edge_type = torch.tensor([0])
        >>> model = GeomGCN(3, 4, 2, 9)
        >>> runs_at_once(model, prepare_inputs(model, data, torch.device("cpu"))) > 10
        True
    """
    if inputs.y.device.type != "cuda":
        return sys.maxsize
    width = sum(layer.out_channels * layer.num_virtual_nodes for layer in model.layers)
    dense = 0 if isinstance(inputs.x, SparseFeatures) else inputs.x.size(1)
    learned = sum(parameter.numel() for parameter in model.parameters())
    needed = 4 * (inputs.x.size(0) * (6 * width + 2 * dense) + 6 * learned)
    free, _ = torch.cuda.mem_get_info(inputs.y.device)
    return max(1, free // 2 // needed)


def _shifted(callback: Callable[..., None], first: int) -> Callable[..., None]:
    """Return a callback that is told places from ``first`` on."""
    return lambda place, *more: callback(first + place, *more)


def _checked(model: GeomGCN, data: Data, split: Split, config: TrainConfig, inputs: Inputs | None) -> Inputs:
    """Check what a run is about to be trained on, and prepare it unless a run before has done so."""
    check_input(model, data, split)
    check_split(split, data.y, config.absent_class)
    return inputs or prepare_inputs(model, data, resolve_device(config.device), config.precision)


def _side_by_side(
    models: Sequence[nn.Module],
    data: Data,
    splits: Sequence[Split],
    configs: Sequence[TrainConfig],
    on_run: OnRun | None,
    on_epoch: OnEpoch | None,
) -> Runs:
    stack = [model for model in models if isinstance(model, GeomGCN)]
    inputs: Inputs | None = None
    for model, split, config in zip(stack, splits, configs, strict=True):
        inputs = _checked(model, data, split, config, inputs)
    assert inputs is not None
    done: dict[int, Fit] = {}
    failures: dict[int, RuntimeError] = {}

    def end(place: int, result: Fit | RuntimeError) -> None:
        if isinstance(result, RuntimeError):
            failures[place] = result
            return
        done[place] = result
        if on_run is not None:
            on_run(place, result)

    def told(place: int, epoch: int, accuracy: float) -> None:
        if on_epoch is not None and place == min(set(range(len(stack))) - set(done) - set(failures)):
            on_epoch(epoch, accuracy)

    interrupted = False
    room = runs_at_once(stack[0], inputs)
    try:
        for first in range(0, len(stack), room):
            some = slice(first, first + room)
            callbacks = (_shifted(told, first), _shifted(end, first))
            fit_prepared(stack[some], inputs, splits[some], configs[some], *callbacks)
    except KeyboardInterrupt:
        interrupted = True
    places = tuple(sorted(done))
    failure = None
    if failures:
        first = min(failures)
        if not done and not interrupted:
            raise failures[first]
        failure = f"Run {first} failed: {failures[first]}"
        warnings.warn(f"{failure.rstrip('.')}. The {len(done)} others that ended are kept.", stacklevel=3)
    return Runs(tuple(done[place] for place in places), interrupted, failure, places)
