"""Several runs of one shape in one program: one graph, and weights, masks and dropout for each run.

The weights of all runs are one tensor with a leading axis, so an epoch takes as many operations as one run's.
Nothing in an epoch waits for the device; what has happened is looked at every few epochs.
"""

import logging
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor
from torch.nn import functional as F

from geomgcn.nn import Adjacency, GeomConv, GeomGCN
from geomgcn.nn._dropout import Dropout, draw_seeds
from geomgcn.nn._features import AnyFeatures
from geomgcn.nn._prepared import Maps, forward_runs
from geomgcn.splits import Split
from geomgcn.training._adam import Moments, adam
from geomgcn.training._config import TrainConfig
from geomgcn.training._course import Course

LOGGER = logging.getLogger(__name__)

OnEpochOfRun = Callable[[int, int, float], None]
"""Called after each epoch of a run with the place of the run, the epoch, and the validation accuracy."""

EPOCHS_UNSEEN = 20
"""Epochs that a device trains before anybody looks: those of a run that has ended in between are wasted."""

WARM_UP = 2
"""Epochs before one is captured: libraries make their handles in the first, kernels are compiled in it."""


@dataclass(frozen=True, eq=False)
class Inputs:
    """What all runs share, on the device."""

    x: AnyFeatures
    adjacency: Adjacency
    y: Tensor


@dataclass(frozen=True, eq=False)
class Outcome:
    """How a run ended.

    Attributes:
        history: For each epoch the training loss, the validation loss and the validation accuracy.
        weights: Those to measure, in the order of the model's parameters.
        failed: The training loss that was no finite number and ended the run, if one was.
    """

    history: Tensor
    best_epoch: int
    weights: list[Tensor]
    failed: float | None


DEVICES = ("cpu", "cuda")
"""Types of devices that know numbers of 64 bits, which the course of a run is kept in."""


def stackable(models: Sequence[object], device: torch.device | None = None) -> bool:
    """Return whether models are Geom-GCNs of one shape, which can be trained side by side.

    Args:
        device: Where they are to be trained, if that is known.

    Example:
        >>> stackable([GeomGCN(3, 4, 2, 9), GeomGCN(3, 4, 2, 9, dropout=0.1)])
        True
        >>> stackable([GeomGCN(3, 4, 2, 9), GeomGCN(3, 5, 2, 9)])
        False
    """
    if device is not None and device.type not in DEVICES:
        return False
    if not all(isinstance(model, GeomGCN) and _is_plain(model) for model in models):
        return False
    shapes = {_shape_of(model) for model in models if isinstance(model, GeomGCN)}
    return len(shapes) == 1


def _is_plain(model: GeomGCN) -> bool:
    """Return whether a model is nothing but its layers, all of them to be learned."""
    learned = [conv.weight for conv in model.layers] + [conv.bias for conv in model.layers]
    return (
        type(model).forward is GeomGCN.forward
        and all(type(conv) is GeomConv for conv in model.convs)
        and sum(part is not None for part in learned) == len(list(model.parameters()))
        and all(parameter.requires_grad for parameter in model.parameters())
    )


def _shape_of(model: GeomGCN) -> tuple[object, ...]:
    """Return what runs must agree in to be trained side by side."""
    return tuple(
        (tuple(conv.weight.shape), conv.bias is None, conv.low_level, conv.high_level, conv.weight.dtype)
        for conv in model.layers
    )


class SideBySide:
    """The state of runs that go on, and the epoch that all of them take together.

    Args:
        generators: Of the seeds of dropout, one a run, on the CPU.
    """

    def __init__(
        self,
        models: Sequence[GeomGCN],
        inputs: Inputs,
        splits: Sequence[Split],
        configs: Sequence[TrainConfig],
        generators: Sequence[torch.Generator],
    ) -> None:
        device = inputs.y.device
        self.inputs = inputs
        self.layers = [conv.maps() for conv in models[0].layers]
        named = zip(*(model.parameters() for model in models), strict=True)
        self.weights = [torch.stack([one.detach().to(device) for one in same]) for same in named]
        self.moments = [Moments.of(weight) for weight in self.weights]
        self.keeps_best = [config.checkpoint == "best" for config in configs]
        self.best = [weight.clone() for weight in self.weights] if any(self.keeps_best) else []
        self.trained = torch.stack([split.train.to(device) for split in splits])
        self.validated = torch.stack([split.val.to(device) for split in splits])
        validated = [bool(split.val.any()) for split in splits]
        self.course = Course.of(configs, validated, device)
        rates = [model.dropout for model in models]
        self.dropout = Dropout.of(torch.zeros(len(models), dtype=torch.long, device=device), rates)
        self.rates = rates
        self.generators = list(generators)
        self.epoch_number = torch.zeros((), dtype=torch.long, device=device)
        self.unseen = 1 if device.type == "cpu" else EPOCHS_UNSEEN
        self.position = torch.zeros(1, dtype=torch.long, device=device)
        self._make_room()

    def _make_room(self) -> None:
        """Make what an epoch reads its seeds from and writes its history to; without a graph of it yet."""
        runs, device = len(self.generators), self.inputs.y.device
        self.block = torch.zeros(self.unseen, len(self.layers), runs, dtype=torch.long, device=device)
        self.history = torch.zeros(self.unseen, runs, 3, dtype=torch.float64, device=device)
        self.graph: torch.cuda.CUDAGraph | None = None
        self.warm = 0

    def maps(self, weights: Sequence[Tensor]) -> list[Maps]:
        """Return the layers of all runs."""
        rest = iter(weights)
        return [
            replace(one, weight=next(rest), bias=None if one.bias is None else next(rest))
            for one in self.layers
        ]

    def advance(self) -> Tensor:
        """Train all runs for some epochs, and return the three numbers of each epoch and run, on the CPU."""
        self.block.copy_(torch.stack([self.draw() for _ in range(self.unseen)]))
        self.position.zero_()
        for _ in range(self.unseen):
            if self.graph is None and self.warm >= WARM_UP:
                self._capture()
            if self.graph is None:
                self._step()
                self.warm += 1
            else:
                self.graph.replay()
        return self.history.to("cpu", copy=True)

    def draw(self) -> Tensor:
        """Return the seeds of dropout of the next epoch, one for each layer and run."""
        return torch.stack([draw_seeds(len(self.layers), one) for one in self.generators], dim=1)

    def _step(self) -> None:
        """Train one epoch, with the seeds that are next."""
        seeds = self.block.index_select(0, self.position)[0]
        self.history.index_copy_(0, self.position, self.epoch(seeds).unsqueeze(0))
        self.position += 1

    def _capture(self) -> None:
        """Record an epoch, so that starting its operations takes one call; go on without where that fails."""
        if self.inputs.y.device.type != "cuda":
            return
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._step()
        except RuntimeError as error:  # an operation that waits for the device, or no memory for two copies
            LOGGER.info("Epochs are not captured: %s", error)
            self.warm = -sys.maxsize
            return
        self.graph = graph

    def train(self, seeds: Tensor) -> Tensor:
        """Take a step with all runs and return the training loss that each had before it."""
        x, adjacency = self.inputs.x, self.inputs.adjacency
        self.epoch_number += 1
        weights = [weight.requires_grad_() for weight in self.weights]
        rounded = [weight.to(x.dtype) for weight in weights]  # to bfloat16, if asked for
        drops = [replace(self.dropout, seed=seed) for seed in seeds] if any(self.rates) else None
        logits = forward_runs(x, adjacency, self.maps(rounded), drops).to(weights[0].dtype)
        loss = _mean(_losses(logits, self.inputs.y), self.trained)
        grads = torch.autograd.grad(loss.sum(), weights)
        loss, course = loss.detach(), self.course
        moving = course.active & loss.isfinite()
        adam(weights, grads, self.moments, self.epoch_number, course.rate, course.weight_decay, moving)
        return loss

    @torch.no_grad()
    def validate(self) -> tuple[Tensor, Tensor]:
        """Return the loss and the accuracy of each run on its nodes for validation."""
        x, adjacency, y = self.inputs.x, self.inputs.adjacency, self.inputs.y
        rounded = [weight.to(x.dtype) for weight in self.weights]
        logits = forward_runs(x, adjacency, self.maps(rounded), None).to(self.weights[0].dtype)
        return _mean(_losses(logits, y), self.validated), _mean(logits.argmax(2) == y, self.validated)

    def epoch(self, seeds: Tensor) -> Tensor:
        """Train all runs for one epoch and return training loss, validation loss and accuracy of each."""
        train_loss = self.train(seeds)
        loss, accuracy = self.validate()
        self._keep(self.course.update(train_loss, loss, accuracy))
        return torch.stack([train_loss, loss, accuracy], dim=1)

    @torch.no_grad()
    def _keep(self, improved: Tensor) -> None:
        """Copy the weights of runs that are at their best."""
        if not any(self.keeps_best):
            return
        if improved.device.type == "cpu":
            for run in improved.nonzero().view(-1).tolist():
                for best, weight in zip(self.best, self.weights, strict=True):
                    best[run] = weight[run]
        else:
            for best, weight in zip(self.best, self.weights, strict=True):
                best.copy_(torch.where(improved.view(-1, *[1] * (weight.dim() - 1)), weight, best))

    def outcome(self, run: int, history: Tensor, last_loss: float) -> Outcome:
        """Return how a run ended."""
        best_epoch = int(self.course.best_epoch[run])
        chosen = self.best if self.keeps_best[run] and best_epoch else self.weights
        weights = [weight[run].detach().clone() for weight in chosen]
        return Outcome(
            history, best_epoch or len(history), weights, last_loss if bool(self.course.failed[run]) else None
        )

    def take(self, runs: list[int]) -> None:
        """Go on with some of the runs only."""
        index = torch.tensor(runs, dtype=torch.long, device=self.inputs.y.device)
        self.weights = [weight.detach()[index] for weight in self.weights]
        self.best = [weight[index] for weight in self.best]
        self.moments = [Moments(one.mean[index], one.square[index]) for one in self.moments]
        self.trained, self.validated = self.trained[index], self.validated[index]
        self.course = self.course.take(index)
        self.generators = [self.generators[run] for run in runs]
        self.keeps_best = [self.keeps_best[run] for run in runs]
        self.rates = [self.rates[run] for run in runs]
        self.dropout = Dropout.of(torch.zeros_like(index), self.rates)
        self._make_room()


def train_side_by_side(
    runs: SideBySide, on_epoch: OnEpochOfRun | None, on_end: Callable[[int, Outcome], None]
) -> None:
    """Train until all runs have ended; those that end leave the others.

    Args:
        on_end: Called as soon as a run has ended, with its place.
    """
    places = list(range(len(runs.generators)))
    histories: list[list[Tensor]] = [[] for _ in places]
    while True:
        before = runs.course.epochs.tolist()
        found = runs.advance()
        after, still = runs.course.epochs.tolist(), runs.course.active.tolist()
        for run, place in enumerate(places):
            rows = found[: after[run] - before[run], run]
            histories[place].append(rows)
            if on_epoch is not None:
                for number, accuracy in enumerate(rows[:, 2].tolist(), before[run] + 1):
                    on_epoch(place, number, accuracy)
        for run, place in enumerate(places):
            if not still[run]:
                last = float(found[min(after[run] - before[run], runs.unseen - 1), run, 0])
                on_end(place, runs.outcome(run, torch.cat(histories[place]), last))
        if not any(still):
            return
        if not all(still):
            places = [place for place, goes_on in zip(places, still, strict=True) if goes_on]
            runs.take([run for run, goes_on in enumerate(still) if goes_on])


def _mean(values: Tensor, masks: Tensor) -> Tensor:
    """Return the mean of each run over the nodes of its mask, exact to the last bit for whole numbers."""
    chosen = torch.where(masks, values, 0).double()
    return chosen.sum(1) / masks.sum(1)


def _losses(logits: Tensor, y: Tensor) -> Tensor:
    """Return the cross-entropy of each node in each run; those without a label count as of class 0."""
    scores = F.log_softmax(logits, dim=2)
    return -scores.gather(2, y.clamp(min=0).view(1, -1, 1).expand(len(logits), -1, 1)).squeeze(2)
