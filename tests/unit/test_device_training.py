"""The same checks of training on every device that there is."""

from dataclasses import replace

import pytest
import torch
from torch_geometric.data import Data

from geomgcn.neighborhoods import StructuralNeighborhood
from geomgcn.nn import Adjacency, GeomConv, GeomGCN, SparseFeatures
from geomgcn.splits import random_splits
from geomgcn.training import TrainConfig, fit, fit_many
from geomgcn.training._side_by_side import WARM_UP, SideBySide
from geomgcn.training._together import prepare_inputs
from graphs import classified

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def random_pairs(num_nodes=40, num_pairs=300, num_types=5):
    generator = torch.Generator().manual_seed(3)
    edge_index = torch.randint(num_nodes, (2, num_pairs), generator=generator)
    edge_index[1, :150] = 7  # a hub
    edge_type = torch.randint(num_types, (num_pairs,), generator=generator)
    weight = torch.randn(num_pairs, generator=generator)
    return torch.randn(num_nodes, 6, generator=generator), edge_index, edge_type, weight


def problem(num_splits=4):
    data, _ = classified(num_nodes=60)
    data.pos = torch.rand(60, 2, generator=torch.Generator().manual_seed(0)).double()
    return StructuralNeighborhood()(data), random_splits(data.y, num_splits=num_splits)


def models(count, **more):
    return [GeomGCN(6, 4, 3, num_virtual_nodes=9, **more) for _ in range(count)]


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("width", [3, 9])
@pytest.mark.parametrize("low_level", ["sum", "mean", "max", "energy"])
@pytest.mark.parametrize("high_level", ["cat", "mean"])
def test_the_prepared_layer_equals_the_straight_one_in_double_precision(device, low_level, high_level, width):
    x, edge_index, edge_type, weight = random_pairs()
    conv = GeomConv(6, width, 5, low_level, high_level, bias=True)
    torch.nn.init.normal_(conv.bias)
    leaf = x.double().requires_grad_()
    wanted = conv.double()(leaf, edge_index, edge_type, weight.double())
    slope = torch.linspace(-1, 1, wanted.numel()).view_as(wanted)
    expected = torch.autograd.grad((wanted * slope).sum(), [leaf, *conv.parameters()])
    conv = conv.float().to(device)
    adjacency = Adjacency.of(edge_index, edge_type, 40, 5, weight).to(device)
    leaf = x.to(device).requires_grad_()
    out = conv(leaf, adjacency)
    assert out.device.type == device
    found = torch.autograd.grad((out * slope.to(device)).sum(), [leaf, *conv.parameters()])
    for ours, exact in zip([out, *found], [wanted, *expected], strict=True):
        scale = max(1.0, float(exact.detach().abs().max()))
        torch.testing.assert_close(ours.double().cpu(), exact, atol=1e-5 * scale, rtol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("sparse", [False, True])
def test_the_same_entries_are_dropped_on_every_device(device, sparse):
    x, edge_index, edge_type, weight = random_pairs()
    x = x * (torch.rand(x.shape, generator=torch.Generator().manual_seed(0)) < 0.25)
    features = SparseFeatures.of(x) if sparse else x
    model = GeomGCN(6, 5, 3, 5)
    adjacency = Adjacency.of(edge_index, edge_type, 40, 5, weight)
    torch.manual_seed(1)
    wanted = model(features, adjacency)
    torch.manual_seed(1)
    found = model.to(device)(features.to(device), adjacency.to(device))
    torch.testing.assert_close(found.cpu(), wanted, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_the_first_epochs_are_those_of_the_cpu(device):
    data, splits = problem(1)
    config = TrainConfig(max_epochs=30, patience=100, device="cpu")
    wanted = fit(models(1)[0], data, splits[0], config)
    found = fit(models(1)[0], data, splits[0], replace(config, device=device))
    assert found.epochs == 30
    torch.testing.assert_close(found.history[:5], wanted.history[:5], atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(found.history[:, 0], wanted.history[:, 0], atol=0.1, rtol=0)


@pytest.mark.parametrize("device", DEVICES)
def test_runs_side_by_side_are_those_alone(device):
    data, splits = problem()
    configs = [
        TrainConfig(max_epochs=45 + i, patience=100, seed=i, learning_rate=0.01 * (i + 1), device=device)
        for i in range(4)
    ]
    many = fit_many(models(4), data, splits, configs, way="side by side")
    assert [result.epochs for result in many.fits] == [45, 46, 47, 48]
    for result, split, config in zip(many.fits, splits, configs, strict=True):
        alone = fit(models(1)[0], data, split, config)
        torch.testing.assert_close(result.history[:10], alone.history[:10], atol=1e-4, rtol=1e-4)
        torch.testing.assert_close(result.history[:, 0], alone.history[:, 0], atol=0.05, rtol=0)


@pytest.mark.parametrize("device", DEVICES)
def test_epochs_are_captured_where_they_can_be_and_train_on(device):
    data, splits = problem(2)
    many = models(2)
    inputs = prepare_inputs(many[0], data, torch.device(device))
    configs = [TrainConfig(max_epochs=10_000, patience=10_000, device=device)] * 2
    generators = [torch.Generator().manual_seed(i) for i in range(2)]
    runs = SideBySide(many, inputs, splits, configs, generators)
    losses = torch.cat([runs.advance()[:, 0, 0] for _ in range(40)])
    assert (runs.graph is not None) == (device == "cuda")
    assert runs.course.epochs.tolist() == [len(losses)] * 2
    assert len(losses.unique()) == len(losses), "each epoch drops other entries"
    if device == "cuda":
        assert runs.warm == WARM_UP
        assert losses[-50:].mean() < losses[:20].mean()


@pytest.mark.gpu
@pytest.mark.parametrize(("precision", "loose"), [("tf32", 5e-3), ("bfloat16", 5e-2)])
def test_less_precise_products_give_nearly_the_same(precision, loose):
    data, splits = problem(1)
    config = TrainConfig(max_epochs=5, device="cuda")
    exact = fit(models(1)[0], data, splits[0], config)
    rough = fit(models(1)[0], data, splits[0], replace(config, precision=precision))
    torch.testing.assert_close(rough.history[:, :2], exact.history[:, :2], atol=loose, rtol=0)


@pytest.mark.gpu
def test_a_graph_on_the_device_stays_there():
    x, edge_index, edge_type, weight = random_pairs()
    data = Data(x=x, edge_index=edge_index, edge_type=edge_type, edge_weight=weight, y=(x[:, 0] > 0).long())
    split = random_splits(data.y, num_splits=1)[0]
    result = fit(GeomGCN(6, 8, 2, 5), data.to("cuda"), split, TrainConfig(max_epochs=5, device="cuda"))
    assert result.probabilities.device.type == "cpu"
