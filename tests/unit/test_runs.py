import math
import random

import numpy as np
import pytest
import torch
from scipy import stats

from geomgcn.nn import GCN
from geomgcn.splits import random_splits
from geomgcn.training import TrainConfig, fit, fit_splits, summarize
from graphs import classified

QUICK = TrainConfig(max_epochs=4, seed=3, device="cpu")


def problem(num_splits=4):
    data, _ = classified()
    return data, random_splits(data.y, num_splits=num_splits)


@pytest.mark.parametrize("count", [2, 3, 10, 50])
def test_summary_by_scipy(count):
    values = [random.Random(count + i).random() for i in range(count)]
    found = summarize(values)
    low, high = stats.t.interval(0.95, count - 1, loc=np.mean(values), scale=stats.sem(values))
    assert found.mean == pytest.approx(sum(values) / count)
    assert found.std == pytest.approx(math.sqrt(sum((v - found.mean) ** 2 for v in values) / (count - 1)))
    assert (found.mean - found.ci95, found.mean + found.ci95) == (pytest.approx(low), pytest.approx(high))
    assert found.runs == count
    assert all(math.isfinite(value) for value in (found.mean, found.std, found.ci95))


def test_summary_of_one_and_of_none():
    one = summarize([0.25])
    assert (one.mean, one.std, one.runs) == (0.25, 0.0, 1)
    assert math.isnan(one.ci95)
    none = summarize([])
    assert none.runs == 0
    assert math.isnan(none.mean)


def test_run_i_is_split_i_with_its_own_seed():
    data, splits = problem()
    seen = []
    runs = fit_splits(lambda: GCN(6, 4, 3), data, splits, QUICK, on_run=lambda i, fit: seen.append((i, fit)))
    assert [i for i, _ in seen] == [0, 1, 2, 3]
    assert not runs.interrupted
    for i, split in enumerate(splits):
        alone = fit(GCN(6, 4, 3), data, split, TrainConfig(max_epochs=4, seed=3 + i, device="cpu"))
        assert torch.equal(alone.probabilities, runs.fits[i].probabilities)
        assert seen[i][1] is runs.fits[i]
    accuracies = [result.test_accuracy for result in runs.fits]
    assert runs.test_accuracy == summarize(accuracies)


def test_making_models_leaves_the_global_generator_alone():
    data, splits = problem(2)
    before = torch.get_rng_state()
    fit_splits(lambda: GCN(6, 4, 3), data, splits, QUICK)
    assert torch.equal(before, torch.get_rng_state())


@pytest.mark.parametrize("where", ["model", "epoch", "callback"])
def test_ctrl_c_keeps_what_is_done(where, monkeypatch):
    data, splits = problem()
    models = []

    class Interrupted(GCN):
        def forward(self, *inputs):
            if where == "epoch" and len(models) == 3:
                raise KeyboardInterrupt
            return super().forward(*inputs)

    def make():
        models.append(1)
        if where == "model" and len(models) == 3:
            raise KeyboardInterrupt
        return Interrupted(6, 4, 3)

    def on_run(i, result):
        if where == "callback" and i == 1:
            raise KeyboardInterrupt

    before = torch.get_rng_state()
    runs = fit_splits(make, data, splits, QUICK, on_run)
    assert runs.interrupted
    assert runs.test_accuracy.runs == 2
    assert torch.equal(before, torch.get_rng_state())
    undisturbed = fit_splits(lambda: GCN(6, 4, 3), data, splits[:2], QUICK)
    for one, other in zip(runs.fits, undisturbed.fits, strict=True):
        assert torch.equal(one.probabilities, other.probabilities)


def test_a_run_that_fails_keeps_what_is_done():
    data, splits = problem()
    made = []

    class Failing(GCN):
        def forward(self, *inputs):
            if len(made) == 3:
                raise RuntimeError("out of memory")
            return super().forward(*inputs)

    def make():
        made.append(1)
        return Failing(6, 4, 3)

    with pytest.warns(UserWarning, match=r"Run 2 failed: out of memory\. The 2 runs before it are kept"):
        runs = fit_splits(make, data, splits, QUICK)
    assert (len(runs.fits), runs.failure, runs.interrupted) == (2, "Run 2 failed: out of memory", False)
    with pytest.raises(RuntimeError, match="out of memory"):
        fit_splits(lambda: made[-1:] and Failing(6, 4, 3), data, splits, QUICK)


def test_seeds_of_all_runs_are_checked_before_the_first():
    with pytest.raises(
        ValueError, match=r"4 runs need as many seeds from seed=4294967294 on.*Take a smaller"
    ):
        fit_splits(lambda: pytest.fail("trained"), *problem(), TrainConfig(seed=2**32 - 2))


def test_ctrl_c_before_the_first_run_is_done():
    def make():
        raise KeyboardInterrupt

    runs = fit_splits(make, *problem(), QUICK)
    assert (runs.fits, runs.interrupted, runs.test_accuracy.runs) == ((), True, 0)
