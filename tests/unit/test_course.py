"""Early stopping and the learning rate against the same rules for one run in plain Python and in torch."""

import math
import random

import pytest
import torch

from geomgcn.nn import MLP
from geomgcn.training import TrainConfig
from geomgcn.training._course import Course
from geomgcn.training._fit import _EarlyStopping

CPU = torch.device("cpu")


def random_walk(rng, epochs):
    """Losses and accuracies with plateaus, ties and steps back."""
    loss, points = 2.0, []
    for _ in range(epochs):
        loss = max(loss + rng.choice([-0.2, -0.05, 0.0, 0.0, 0.05, 0.3]), 0.1)
        points.append((loss, rng.choice([0.2, 0.4, 0.4, 0.5, 0.6])))
    return points


def plainly(points, config):
    """The end, the best epoch and the learning rates of one run."""
    stopper = _EarlyStopping(config.patience)
    weight = torch.nn.Parameter(torch.zeros(1))
    optimizer = torch.optim.SGD([weight], config.learning_rate)
    factor, patience = config.decay_factor, config.decay_patience
    scheduler = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=min(factor, 0.9), patience=patience
    )
    model, rates = MLP(2, 2, 2), []
    for epoch, (loss, accuracy) in enumerate(points[: config.max_epochs], 1):
        if config.decay_factor < 1:
            scheduler.step(loss)
        rates.append(optimizer.param_groups[0]["lr"])
        if stopper.update(epoch, loss, accuracy, model):
            break
    return epoch, stopper.best_epoch, rates


@pytest.mark.parametrize("seed", range(10))
def test_runs_side_by_side_follow_the_rules_of_one(seed):
    rng = random.Random(seed)
    configs = [
        TrainConfig(
            learning_rate=rng.choice([0.05, 1e-7]),
            patience=rng.choice([1, 3, 7, 100]),
            max_epochs=rng.choice([1, 30, 60]),
            decay_factor=rng.choice([0.5, 0.9, 1.0]),
            decay_patience=rng.choice([1, 2, 5]),
        )
        for _ in range(6)
    ]
    walks = [random_walk(rng, 60) for _ in configs]
    course = Course.of(configs, [True] * 6, CPU)
    rates, improved_in = [[] for _ in configs], [[] for _ in configs]
    for epoch in range(60):
        before = course.active.clone()
        loss, accuracy = torch.tensor([walk[epoch] for walk in walks], dtype=torch.float64).t()
        improved = course.update(torch.ones(6), loss, accuracy)
        assert not (improved & ~before).any()
        for run in range(6):
            if before[run]:
                rates[run].append(float(course.rate[run]))
            if improved[run]:
                improved_in[run].append(epoch + 1)
    for run, (config, walk) in enumerate(zip(configs, walks, strict=True)):
        end, best, expected = plainly(walk, config)
        assert int(course.epochs[run]) == end
        assert int(course.best_epoch[run]) == best == improved_in[run][-1]
        assert rates[run] == pytest.approx(expected, rel=1e-12)
    assert not course.active.any()


def test_without_validation_only_the_last_epoch_ends_a_run():
    course = Course.of([TrainConfig(max_epochs=5, patience=1)], [False], CPU)
    nan = torch.tensor([math.nan])
    for epoch in range(5):
        assert bool(course.active[0]) == (epoch < 5)
        assert not course.update(torch.ones(1), nan, nan).any()
    assert not course.active.any()
    assert (int(course.epochs[0]), int(course.best_epoch[0])) == (5, 0)
    assert float(course.rate[0]) == 0.05


@pytest.mark.parametrize("loss", [math.nan, math.inf])
def test_a_loss_that_is_no_number_ends_its_run_alone(loss):
    course = Course.of([TrainConfig()] * 2, [True] * 2, CPU)
    one = torch.ones(2)
    course.update(torch.tensor([loss, 1.0]), one, one)
    assert course.failed.tolist() == [True, False]
    assert course.active.tolist() == [False, True]
    assert course.epochs.tolist() == [0, 1]


def test_some_runs_can_be_taken_out():
    course = Course.of([TrainConfig(learning_rate=rate) for rate in (0.1, 0.2, 0.3)], [True] * 3, CPU)
    taken = course.take(torch.tensor([2, 0]))
    assert taken.rate.tolist() == [0.3, 0.1]
    taken.rate.fill_(7)
    assert course.rate.tolist() == [0.1, 0.2, 0.3]
