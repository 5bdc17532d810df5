"""Runs side by side against the same runs alone."""

from dataclasses import replace

import pytest
import torch
from scipy import stats

from geomgcn.neighborhoods import StructuralNeighborhood
from geomgcn.nn import GCN, GeomConv, GeomGCN
from geomgcn.splits import Split, random_splits
from geomgcn.training import Runs, TrainConfig, _fit, _many, fit, fit_many, fit_splits
from geomgcn.training._fit import _train
from geomgcn.training._side_by_side import stackable
from graphs import classified, mask, unchecked

CPU = TrainConfig(max_epochs=60, patience=8, decay_patience=4, device="cpu")


def problem(num_splits=5, sparse=False):
    data, _ = classified(num_nodes=60)
    if sparse:
        data.x = data.x * (torch.rand(data.x.shape, generator=torch.Generator().manual_seed(1)) < 0.25)
    data.pos = torch.rand(60, 2, generator=torch.Generator().manual_seed(0)).double()
    return StructuralNeighborhood()(data), random_splits(data.y, num_splits=num_splits)


def models(count=5, **more):
    return [GeomGCN(6, 4, 3, num_virtual_nodes=9, **more) for _ in range(count)]


def equal(one, other):
    assert (one.epochs, one.best_epoch) == (other.epochs, other.best_epoch)
    assert torch.equal(one.history, other.history)
    assert torch.equal(one.probabilities, other.probabilities)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("checkpoint", ["best", "last"])
@pytest.mark.parametrize(
    "shape",
    [{}, {"num_layers": 3, "bias": True}, {"low_level": "energy"}, {"low_level": "max", "bias": True}],
    ids=str,
)
def test_side_by_side_each_run_comes_to_the_same_bytes(shape, checkpoint, sparse):
    data, splits = problem(sparse=sparse)
    configs = [
        replace(CPU, seed=i, learning_rate=0.02 * (i + 1), weight_decay=1e-4 * i, checkpoint=checkpoint)
        for i in range(5)
    ]
    many = models(**shape)
    for i, model in enumerate(many):
        model.dropout = 0.1 * i
    runs = fit_many(many, data, splits, configs, way="side by side")
    assert runs.places == (0, 1, 2, 3, 4)
    assert len({result.epochs for result in runs.fits}) > 1, "some must leave before others"
    for i, (split, config) in enumerate(zip(splits, configs, strict=True)):
        alone = models(1, **shape)[0]
        alone.dropout = 0.1 * i
        equal(fit(alone, data, split, config), runs.fits[i])
        for own, other in zip(alone.parameters(), many[i].parameters(), strict=True):
            assert torch.equal(own, other)


def test_both_ways_and_fit_splits_agree():
    data, splits = problem()
    configs = [replace(CPU, seed=7 + i) for i in range(5)]
    together = fit_many(models(), data, splits, configs, way="side by side")
    apart = fit_many(models(), data, splits, configs, way="one by one")
    by_splits = fit_splits(lambda: models(1)[0], data, splits, replace(CPU, seed=7))
    for one, two, three in zip(together.fits, apart.fits, by_splits.fits, strict=True):
        equal(one, two)
        equal(one, three)


def test_the_engine_agrees_with_a_plain_loop_of_torch():
    """Without dropout nothing is random: the same losses from autograd, ``torch.optim.Adam`` and edges."""
    data, splits = problem()
    config = replace(CPU, max_epochs=25, patience=25)
    for split in splits[:2]:
        ours = fit(models(1, dropout=0.0)[0], data, split, config)
        torch.manual_seed(config.seed)
        model = models(1, dropout=0.0)[0]
        torch.manual_seed(config.seed)
        model.reset_parameters()
        plain = _train(model, data, split, config, torch.device("cpu"), None)
        torch.testing.assert_close(ours.history, plain.history, atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(ours.probabilities, plain.probabilities, atol=1e-3, rtol=1e-3)


@pytest.mark.slow
def test_accuracies_have_the_distribution_of_the_plain_loop():
    """Dropout draws from other generators there: thirty seeds each, compared by their distributions."""
    data, splits = problem(1)
    found = {"ours": [], "plain": []}
    for seed in range(30):
        config = replace(CPU, seed=seed, max_epochs=100, patience=100)
        found["ours"].append(fit(models(1)[0], data, splits[0], config))
        torch.manual_seed(1000 + seed)
        found["plain"].append(_train(models(1)[0], data, splits[0], config, torch.device("cpu"), None))
    for figure in (
        lambda result: result.test_accuracy,
        lambda result: float(result.history[-1, 0]),
        lambda result: float(result.history[:, 1].min()),
    ):
        ours, plain = ([figure(result) for result in found[way]] for way in ("ours", "plain"))
        assert stats.ks_2samp(ours, plain).pvalue > 1e-3


def test_results_come_as_runs_end_and_progress_of_the_first_that_goes_on():
    data, splits = problem()
    configs = [replace(CPU, max_epochs=epochs, patience=100) for epochs in (4, 2, 6, 2, 5)]
    ended, epochs = [], []
    runs = fit_many(
        models(),
        data,
        splits,
        configs,
        way="side by side",
        on_run=lambda place, result: ended.append((place, result.epochs)),
        on_epoch=lambda epoch, _: epochs.append(epoch),
    )
    assert ended == [(1, 2), (3, 2), (0, 4), (4, 5), (2, 6)]
    assert epochs == [1, 2, 3, 4, 5, 6]
    assert [result.epochs for result in runs.fits] == [4, 2, 6, 2, 5]


def test_ctrl_c_keeps_the_runs_that_have_ended():
    data, splits = problem()
    configs = [replace(CPU, max_epochs=epochs, patience=100) for epochs in (9, 2, 9, 3, 9)]

    def stop(epoch, _):
        if epoch == 5:
            raise KeyboardInterrupt

    runs = fit_many(models(), data, splits, configs, way="side by side", on_epoch=stop)
    assert runs.interrupted
    assert runs.places == (1, 3)
    equal(runs.fits[0], fit(models(1)[0], data, splits[1], configs[1]))


def test_a_run_that_diverges_leaves_the_others_alone():
    data, splits = problem()
    configs = [replace(CPU, learning_rate=1e30 if i == 2 else 0.05) for i in range(5)]
    with pytest.warns(UserWarning, match=r"Run 2 failed: Training diverged.*The 4 others .* are kept"):
        runs = fit_many(models(), data, splits, configs, way="side by side")
    assert runs.places == (0, 1, 3, 4)
    assert runs.failure.startswith("Run 2 failed: Training diverged")
    for place, result in zip(runs.places, runs.fits, strict=True):
        equal(result, fit(models(1)[0], data, splits[place], configs[place]))
    with pytest.raises(RuntimeError, match=r"Training diverged: .* Lower the learning rate"):
        fit_many(models(1), data, splits[:1], replace(CPU, learning_rate=1e30), way="side by side")


def test_parts_of_a_split_may_be_empty_in_some_runs():
    data, splits = problem(3)
    first = splits[1]
    splits[1] = Split(first.train, torch.zeros_like(first.val), first.test)
    with pytest.warns(UserWarning, match="no val nodes"):
        runs = fit_many(models(3), data, splits, CPU, way="side by side")
    assert runs.fits[1].epochs == CPU.max_epochs
    assert runs.fits[1].history[:, 1:].isnan().all()
    assert not runs.fits[0].history.isnan().any()


def test_other_models_go_one_by_one():
    data, splits = problem(2)
    runs = fit_many([GCN(6, 4, 3), GCN(6, 5, 3)], data, splits, CPU)
    assert len(runs.fits) == 2
    equal(runs.fits[1], fit(GCN(6, 5, 3), data, splits[1], CPU))


def test_what_can_be_stacked():
    class Own(GeomGCN):
        def forward(self, *inputs):
            return super().forward(*inputs)

    class Renamed(GeomGCN):
        pass

    class OwnConv(GeomConv):
        pass

    assert stackable(models(2))
    assert stackable([Renamed(6, 4, 3, 9)])
    assert not stackable([Own(6, 4, 3, 9)])
    assert not stackable([*models(1), GCN(6, 4, 3)])
    assert not stackable([*models(1), *models(1, bias=True)])
    assert not stackable([*models(1), *models(1, low_level="mean")])
    assert not stackable([])
    frozen, other, more = models(3)
    frozen.convs[0].weight.requires_grad_(False)
    assert not stackable([frozen])
    other.convs[1] = OwnConv(36, 3, 9, high_level="mean")
    assert not stackable([other])
    more.extra = torch.nn.Parameter(torch.zeros(1))
    assert not stackable([more])
    assert not stackable(models(2), torch.device("meta"))


def test_own_forward_passes_are_trained_by_autograd():
    data, splits = problem(1)

    class Own(GeomGCN):
        def forward(self, *inputs):
            return 2 * super().forward(*inputs)

    result = fit(Own(6, 4, 3, 9), data, splits[0], CPU)
    assert result.epochs > 1


@pytest.mark.parametrize("way", ["one by one", "side by side"])
def test_the_inputs_are_prepared_once(way, monkeypatch):
    data, splits = problem()
    prepared, plain = [], GeomGCN.prepare
    monkeypatch.setattr(GeomGCN, "prepare", lambda *inputs: prepared.append(1) or plain(*inputs))
    fit_many(models(), data, splits, replace(CPU, max_epochs=2), way=way)
    assert len(prepared) == 1


def test_small_graphs_go_side_by_side_and_large_ones_do_not(monkeypatch):
    data, splits = problem(2)
    taken = []
    monkeypatch.setattr(_many, "_side_by_side", lambda *_: taken.append("side by side") or Runs(()))
    monkeypatch.setattr(_many, "_one_by_one", lambda *_: taken.append("one by one") or Runs(()))
    fit_many(models(2), data, splits, CPU)
    monkeypatch.setattr(_many, "LITTLE_WORK", 10)
    fit_many(models(2), data, splits, CPU)
    assert taken == ["side by side", "one by one"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda d, s: fit_many(models(1), d, s, CPU), r"for each of 2 splits, got 1 models and 2 configs"),
        (lambda d, s: fit_many(models(2), d, s, [CPU]), r"got 2 models and 1 configs\. Repeat those"),
        (lambda d, s: fit_many(models(2), d, s, CPU, way="fast"), r"way is one of 'auto', .*got 'fast'"),
        (
            lambda d, s: fit_many([*models(1), GCN(6, 4, 3)], d, s, CPU, way="side by side"),
            r"Geom-GCNs of one shape.*Pass way='one by one'",
        ),
        (
            lambda d, s: fit_many(models(2), d, s, [CPU, replace(CPU, device="auto")]),
            r"one device for all runs, got configs with several\. Give all the same",
        ),
        (
            lambda d, s: fit_many(models(2), d, [s[0], Split(*[mask(9, [i]) for i in range(3)])], CPU),
            r"split covers 9 nodes, but the graph has 60",
        ),
    ],
)
def test_what_does_not_fit_is_refused(call, message, monkeypatch):
    monkeypatch.setattr(_fit, "_train", lambda *_: pytest.fail("trained"))
    data, splits = problem(2)
    with unchecked(), pytest.raises(ValueError, match=message):
        call(data, splits)


@pytest.mark.parametrize(("precision", "loose"), [("tf32", 1e-6), ("bfloat16", 0.02)])
def test_less_precise_products_give_nearly_the_same(precision, loose):
    """On the CPU tf32 changes nothing; bfloat16 keeps 8 bits, and a few epochs add some of its errors up."""
    data, splits = problem(1)
    config = replace(CPU, max_epochs=5)
    exact = fit(models(1)[0], data, splits[0], config)
    rough = fit(models(1)[0], data, splits[0], replace(config, precision=precision))
    torch.testing.assert_close(rough.history[:, :2], exact.history[:, :2], atol=loose, rtol=0)
    assert (precision == "tf32") == torch.equal(rough.history, exact.history)
    assert torch.get_float32_matmul_precision() == "highest"


def test_runs_that_do_not_fit_into_memory_at_once_go_in_groups(monkeypatch):
    data, splits = problem()
    configs = [replace(CPU, seed=i) for i in range(5)]
    whole = fit_many(models(), data, splits, configs, way="side by side")
    monkeypatch.setattr(_many, "runs_at_once", lambda *_: 2)
    seen = []
    groups = fit_many(
        models(), data, splits, configs, way="side by side", on_run=lambda place, _: seen.append(place)
    )
    assert sorted(seen) == [0, 1, 2, 3, 4]
    assert set(seen[:2]) == {0, 1}
    for one, other in zip(whole.fits, groups.fits, strict=True):
        equal(one, other)


def test_no_splits_are_no_runs():
    data, _ = problem(1)
    assert fit_many([], data, [], CPU).fits == ()
