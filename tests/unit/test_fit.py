import math
import random
import warnings

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.data import Data

from geomgcn.neighborhoods import StructuralNeighborhood
from geomgcn.nn import GAT, GCN, MLP, GeomGCN
from geomgcn.splits import Split
from geomgcn.training import TrainConfig, _fit, fit, resolve_device
from graphs import classified, mask, unchecked

QUICK = TrainConfig(max_epochs=6, device="cpu")


def structured(seed=0):
    data, split = classified(seed=seed)
    data.pos = torch.rand(30, 2, generator=torch.Generator().manual_seed(seed)).double()
    return StructuralNeighborhood()(data), split


def weights_of(model):
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(one, other):
    return one.keys() == other.keys() and all(torch.equal(one[name], other[name]) for name in one)


MODELS = {
    "geom-gcn": lambda: GeomGCN(6, 4, 3, num_virtual_nodes=9),
    "gcn": lambda: GCN(6, 4, 3),
    "gat": lambda: GAT(6, 4, 3),
    "mlp": lambda: MLP(6, 4, 3),
}


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_same_seed_gives_the_same_bytes(make):
    data, split = structured()
    results = []
    for seed in (7, 7, 8):
        torch.rand(seed)  # where the global generator stands does not matter
        model = make()
        result = fit(model, data, split, TrainConfig(max_epochs=15, seed=seed, device="cpu"))
        results.append((weights_of(model), result))
    assert same(results[0][0], results[1][0])
    assert torch.equal(results[0][1].probabilities, results[1][1].probabilities)
    assert torch.equal(results[0][1].history, results[1][1].history)
    assert not same(results[0][0], results[2][0])


def test_a_used_model_starts_afresh():
    data, split = classified()
    model, fresh = MODELS["gcn"](), MODELS["gcn"]()
    fit(model, data, split, TrainConfig(max_epochs=9, seed=4, device="cpu"))
    fit(model, data, split, QUICK)
    fit(fresh, data, split, QUICK)
    assert same(weights_of(model), weights_of(fresh))


def test_global_generators_are_left_alone():
    model, (data, split) = MODELS["geom-gcn"](), structured()
    before = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()  # noqa: NPY002
    with unchecked():  # beartype itself draws from Python's generator
        fit(model, data, split, QUICK)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1:] == (np.random.get_state()[1].tolist(), random.getstate())  # noqa: NPY002


def test_data_is_left_alone():
    data, split = structured()
    before = {key: value.clone() for key, value in data.to_dict().items() if isinstance(value, torch.Tensor)}
    fit(MODELS["geom-gcn"](), data, split, QUICK)
    assert same(before, {key: data[key] for key in before})


@pytest.mark.parametrize("checkpoint", ["best", "last"])
def test_weights_are_those_of_the_checkpoint(checkpoint):
    """A model that overfits: its best validation point is not its last."""
    data, split = classified(num_nodes=60, seed=1)
    model, seen = MLP(6, 32, 3, dropout=0.0), []
    config = TrainConfig(max_epochs=80, checkpoint=checkpoint, device="cpu")
    result = fit(model, data, split, config, on_epoch=lambda *_: seen.append(weights_of(model)))
    points = [(accuracy, -loss) for _, loss, accuracy in result.history.tolist()]
    best = points.index(max(points))
    assert best + 1 < len(points), "this test needs a model that gets worse"
    assert points[best] > points[-1]
    assert result.best_epoch == best + 1
    assert result.epochs == len(seen) == 80
    tested = best if checkpoint == "best" else -1
    assert same(weights_of(model), seen[tested])
    assert result.val_accuracy == pytest.approx(points[tested][0])


def test_figures_are_counted_right():
    data, split = classified()
    model = MODELS["gcn"]()
    result = fit(model, data, split, QUICK)
    model.eval()
    with torch.no_grad():
        logits = model(data.x, data.edge_index)
    torch.testing.assert_close(result.probabilities, logits.softmax(1))
    guesses = logits.argmax(1).tolist()
    for part, share in zip(
        (split.train, split.val, split.test),
        (result.train_accuracy, result.val_accuracy, result.test_accuracy),
        strict=True,
    ):
        nodes = part.nonzero().view(-1).tolist()
        assert share == pytest.approx(sum(guesses[v] == int(data.y[v]) for v in nodes) / len(nodes))
    assert result.predictions.tolist() == guesses
    assert result.history.shape == (6, 3)


def test_it_learns():
    data, split = classified(num_nodes=90)
    result = fit(MLP(6, 16, 3), data, split, TrainConfig(max_epochs=150, device="cpu"))
    assert result.train_accuracy > 0.7
    assert result.test_accuracy > 0.5
    assert result.history[-10:, 0].mean() < 0.9 * result.history[0, 0]


def test_test_labels_never_reach_training():
    data, split = structured()
    other = data.clone()
    other.y[split.test] = (data.y[split.test] + 1) % 3
    results = []
    for version in (data, other):
        model = MODELS["geom-gcn"]()
        result = fit(model, version, split, TrainConfig(max_epochs=30, device="cpu"))
        results.append((weights_of(model), result))
    (weights, one), (other_weights, two) = results
    assert same(weights, other_weights)
    assert torch.equal(one.probabilities, two.probabilities)
    assert torch.equal(one.history, two.history)
    assert one.test_accuracy != two.test_accuracy


def scripted(monkeypatch, points, checkpoint="best", **settings):
    """Run fit with given validation losses and accuracies; return the result, the model and all weights."""
    script = iter(points)
    monkeypatch.setattr(_fit, "_evaluate", lambda *_: next(script))
    data, split = classified()
    model, seen = MLP(6, 4, 3), []
    config = TrainConfig(max_epochs=len(points), checkpoint=checkpoint, device="cpu", **settings)
    result = fit(model, data, split, config, on_epoch=lambda *_: seen.append(weights_of(model)))
    return result, model, seen


def epochs_by_hand(points, patience):
    """Stop once neither accuracy nor loss has been at least equalled for ``patience`` epochs."""
    waited = 0
    for epoch, (loss, accuracy) in enumerate(points):
        before = points[:epoch]
        if accuracy >= max((a for _, a in before), default=0) or loss <= min(
            (x for x, _ in before), default=float("inf")
        ):
            waited = 0
        else:
            waited += 1
        if waited == patience:
            return epoch + 1
    return len(points)


@pytest.mark.parametrize("patience", [1, 2, 5])
def test_early_stopping_by_hand(monkeypatch, patience):
    rng = random.Random(patience)
    lengths = set()
    for _ in range(25):
        points = [(rng.choice([0.5, 0.6, 0.7, 0.9]) + 0.01 * t, rng.randrange(6) / 5) for t in range(20)]
        result, model, seen = scripted(monkeypatch, points, patience=patience)
        wanted = epochs_by_hand(points, patience)
        assert result.epochs == len(seen) == wanted
        ranked = [(accuracy, -loss) for loss, accuracy in points[:wanted]]
        assert result.best_epoch == ranked.index(max(ranked)) + 1
        assert same(weights_of(model), seen[result.best_epoch - 1])
        lengths.add(wanted)
    assert len(lengths) > 1


def test_equalling_either_record_holds_up(monkeypatch):
    equal_loss = [(0.5, 0.9), (0.5, 0.1), (0.5, 0.1), (0.5, 0.1)]
    equal_accuracy = [(0.5, 0.9), (0.9, 0.9), (0.9, 0.9), (0.9, 0.9)]
    for points in (equal_loss, equal_accuracy):
        assert scripted(monkeypatch, points, patience=1)[0].epochs == 4
    assert scripted(monkeypatch, [(0.5, 0.9), (0.6, 0.8), (0.6, 0.8)], patience=1)[0].epochs == 2


def test_among_equal_accuracies_the_lower_loss_is_best_and_the_first_of_equals(monkeypatch):
    points = [(0.9, 0.5), (0.5, 0.8), (0.4, 0.8), (0.4, 0.8), (0.1, 0.7)]
    assert scripted(monkeypatch, points)[0].best_epoch == 3


def rates_by_hand(losses, rate, factor, patience):
    """ReduceLROnPlateau with its default relative threshold of 1e-4."""
    best, waited, rates = float("inf"), 0, []
    for loss in losses:
        if loss < best * (1 - 1e-4):
            best, waited = loss, 0
        else:
            waited += 1
        if waited > patience:
            rate, waited = rate * factor, 0
        rates.append(rate)
    return rates


def test_the_scheduler_is_the_released_programs(monkeypatch):
    made = []
    plain = torch.optim.lr_scheduler.ReduceLROnPlateau

    class Noted(plain):
        def __init__(self, optimizer, **settings):
            super().__init__(optimizer, **settings)
            self.rates = []
            made.append(self)

        def step(self, loss):
            super().step(loss)
            self.rates.append(self.optimizer.param_groups[0]["lr"])

    monkeypatch.setattr(torch.optim.lr_scheduler, "ReduceLROnPlateau", Noted)
    losses = [0.9, 0.8, 0.8, 0.85, 0.8, 0.79999, 0.7, 0.7, 0.7, 0.7, 0.7, 0.7]
    points = [(loss, 0.5) for loss in losses]
    scripted(monkeypatch, points, learning_rate=0.1, decay_patience=2)
    assert made[0].rates == pytest.approx(rates_by_hand(losses, 0.1, 0.8, 2))
    assert made[0].rates[-1] == pytest.approx(0.1 * 0.8**2)
    scripted(monkeypatch, points, decay_factor=1.0)
    assert len(made) == 1


def test_weight_decay_is_the_penalty_inside_adam(monkeypatch):
    settings = []
    plain = torch.optim.Adam

    def noted(parameters, rate, **more):
        settings.append((rate, more))
        return plain(parameters, rate, **more)

    monkeypatch.setattr(torch.optim, "Adam", noted)
    data, split = classified()
    fit(MLP(6, 4, 3), data, split, TrainConfig(0.02, 5e-6, max_epochs=1, device="cpu"))
    assert settings == [(0.02, {"weight_decay": 5e-6, "fused": True})]


def test_without_validation_nodes_all_epochs_run_and_the_last_weights_count():
    data, split = classified()
    none = torch.zeros(30, dtype=torch.bool)
    model, seen = MLP(6, 4, 3), []
    with pytest.warns(UserWarning, match="no val nodes: early stopping and the choice of the best weights"):
        result = fit(
            model,
            data,
            Split(split.train, none, split.test),
            TrainConfig(max_epochs=12, patience=1, device="cpu"),
            on_epoch=lambda *_: seen.append(weights_of(model)),
        )
    assert (result.epochs, result.best_epoch) == (12, 12)
    assert same(weights_of(model), seen[-1])
    assert np.isnan(result.val_accuracy)
    assert not np.isnan(result.test_accuracy)


def test_without_test_nodes_there_is_no_figure():
    data, split = classified()
    none = torch.zeros(30, dtype=torch.bool)
    with pytest.warns(UserWarning, match="no test nodes: there will be no test accuracy"):
        result = fit(MLP(6, 4, 3), data, Split(split.train, split.val, none), QUICK)
    assert np.isnan(result.test_accuracy)


def test_a_class_that_validation_lacks_is_reported():
    data, split = classified()
    with pytest.warns(UserWarning, match="no val nodes of class 2: early stopping does not see it"):
        fit(MLP(6, 4, 3), data, Split(split.train, split.val & (data.y != 2), split.test), QUICK)


def test_a_good_split_is_trained_on_in_silence():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(MLP(6, 4, 3), *classified(), QUICK)


def changed(key, value):
    data, split = classified()
    data[key] = value(data.get(key))
    return data, split


def with_nan(x):
    x = x.clone()
    x[4, 1] = float("nan")
    return x


@pytest.mark.parametrize(
    ("problem", "message"),
    [
        (lambda: changed("x", with_nan), r"got 1 NaN and 0 infinite ones, first at node 4\. Fill or drop"),
        (lambda: changed("x", lambda x: x / 0), r"got .* infinite ones, first at node 0\. Fill or drop"),
        (lambda: changed("x", lambda _: None), r"needs features in data\.x, got none\. Set data\.x first"),
        (lambda: changed("y", lambda _: None), r"needs labels in data\.y, got none\. Set data\.y first"),
        (lambda: changed("edge_index", lambda _: None), r"needs edges in data\.edge_index, got none\. Set"),
        (lambda: changed("edge_index", lambda e: e + 1), r"ids from 0 to 29, got .*Renumber the nodes"),
        (lambda: changed("edge_index", lambda e: e - 1), r"ids from 0 to 29, got .*-1.*Renumber the nodes"),
        (
            lambda: changed("y", lambda y: y.float()),
            r"dtype torch\.int64 in data\.y, got .*Use data\.y\.long",
        ),
        (
            lambda: changed("x", lambda x: x.double()),
            r"model's type, torch\.float32, got torch\.float64\. Use",
        ),
        (
            lambda: changed("edge_type", lambda _: torch.zeros(3)),
            r"data\.edge_type for each of .*\[3\]\. Apply",
        ),
        (
            lambda: changed("edge_weight", lambda _: torch.full((classified()[0].num_edges,), math.nan)),
            r"finite weights in data\.edge_weight, got .* first at edge 0",
        ),
        (lambda: changed("x", lambda x: x[:20]), r"covers 30 nodes, but the graph has 20\. Make the split"),
        (lambda: changed("y", lambda y: y + 1), r"up to 3, so .* 4 outputs, got 3\. .*out_channels=4"),
        (lambda: changed("y", lambda y: y - 1), r"without a label in train, first node 0\. Remove nodes"),
        (
            lambda: (classified()[0], Split(*(mask(30, part) for part in ([], [1], [2])))),
            r"needs labelled training nodes, got none\. Raise the training share, or label some nodes",
        ),
    ],
)
def test_what_cannot_be_trained_is_refused_with_a_reason(problem, message):
    data, split = problem()
    with pytest.raises(ValueError, match=message):
        fit(MLP(6, 4, 3), data, split, QUICK)


def test_a_model_must_be_able_to_start_afresh():
    message = r"needs a model with reset_parameters\(\).* got Sequential\. Write that method"
    with pytest.raises(TypeError, match=message):
        fit(nn.Sequential(nn.Linear(6, 3)), *classified(), QUICK)


@pytest.mark.parametrize("checkpoint", ["best", "last"])
def test_divergence_is_told_at_once(checkpoint):
    epochs = []
    config = TrainConfig(learning_rate=1e30, max_epochs=500, checkpoint=checkpoint, device="cpu")
    message = r"Training diverged: .*epoch.*\. Lower the learning rate, or scale the features"
    with pytest.raises(RuntimeError, match=message):
        fit(MLP(6, 4, 3), *classified(), config, on_epoch=lambda epoch, _: epochs.append(epoch))
    assert len(epochs) < 5


def test_divergence_in_the_very_last_step_is_told_too():
    config = TrainConfig(learning_rate=1e30, max_epochs=1, checkpoint="last", device="cpu")
    with pytest.raises(RuntimeError, match=r"outputs are not finite after 1 epochs\. Lower the learning"):
        fit(MLP(6, 4, 3), *classified(), config)


def test_devices():
    assert resolve_device("cpu") == torch.device("cpu")
    with pytest.raises(ValueError, match=r"Unknown device 'gpu'\. Use 'auto', 'cpu', 'cuda' or 'cuda:0'"):
        resolve_device("gpu")
    if not torch.cuda.is_available():
        assert resolve_device("auto") == torch.device("cpu")
        with pytest.raises(ValueError, match=r"'cuda:0' needs a CUDA device.* Use device='cpu'"):
            resolve_device("cuda:0")


def test_a_model_of_pyg_trains_unchanged():
    """Anything with x and edge_index and reset_parameters, here on untyped data."""
    from torch_geometric.nn.models import GraphSAGE

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = GraphSAGE(6, 4, 2, 3)

        def reset_parameters(self):
            self.net.reset_parameters()

        def forward(self, x, edge_index, edge_type=None, edge_weight=None):
            return self.net(x, edge_index)

    with unchecked():
        assert fit(Plain(), *classified(), QUICK).epochs == 6


def test_one_class_and_one_node_are_clear():
    one = Data(x=torch.ones(1, 2), y=torch.tensor([0]), edge_index=torch.zeros(2, 0).long())
    split = Split(mask(1, [0]), mask(1, []), mask(1, []))
    with pytest.warns(UserWarning, match="no test nodes"), pytest.warns(UserWarning, match="no val nodes"):
        result = fit(MLP(2, 4, 2), one, split, QUICK)
    assert result.probabilities.shape == (1, 2)


def test_a_graph_without_relations_says_what_to_do():
    with pytest.raises(
        ValueError, match=r"GeomGCN needs edge_type.*Apply StructuralNeighborhood\(\) to data"
    ):
        fit(GeomGCN(6, 4, 3, 9), *classified(), QUICK)


def test_devices_without_values_are_refused():
    with pytest.raises(ValueError, match=r"does not run on device 'meta'\. Use 'auto'"):
        resolve_device("meta")


def test_dropout_is_on_in_every_epoch_and_off_when_measured():
    class Watched(MLP):
        def forward(self, *inputs):
            modes.append(self.training)
            return super().forward(*inputs)

    modes = []
    data, split = classified()
    fit(Watched(6, 4, 3), data, split, TrainConfig(max_epochs=3, device="cpu"))
    assert modes == [True, False] * 3 + [False]
