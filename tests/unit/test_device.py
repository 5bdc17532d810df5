"""The same checks on every device that there is."""

import pytest
import torch
from torch_geometric.data import Data

from geomgcn.embeddings import Isomap
from geomgcn.neighborhoods import StructuralNeighborhood
from geomgcn.nn import GeomConv, GeomGCN
from geomgcn.splits import Split
from geomgcn.training import TrainConfig, fit

DEVICES = ["cpu", pytest.param("cuda", marks=pytest.mark.gpu)]


def random_pairs(num_nodes=40, num_pairs=300, num_types=5):
    generator = torch.Generator().manual_seed(3)
    edge_index = torch.randint(num_nodes, (2, num_pairs), generator=generator)
    edge_type = torch.randint(num_types, (num_pairs,), generator=generator)
    return torch.randn(num_nodes, 6, generator=generator), edge_index, edge_type


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("low_level", ["sum", "mean", "max", "energy"])
@pytest.mark.parametrize("high_level", ["cat", "mean"])
def test_the_layer_equals_itself_in_double_precision(device, low_level, high_level):
    x, edge_index, edge_type = random_pairs()
    conv = GeomConv(6, 3, 5, low_level, high_level)
    reference = conv.double()(x.double(), edge_index, edge_type)
    conv = conv.float().to(device)
    found = conv(x.to(device), edge_index.to(device), edge_type.to(device))
    assert found.device.type == device
    torch.testing.assert_close(found.double().cpu(), reference, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("device", DEVICES)
def test_training_learns_on_every_device(device):
    x, edge_index, edge_type = random_pairs()
    y = (x[:, 0] > 0).long()
    loops = torch.arange(40).expand(2, -1)
    data = Data(
        x=x,
        y=y,
        edge_index=torch.cat([edge_index, loops], 1),
        edge_type=torch.cat([edge_type, torch.full((40,), 5)]),
    )
    nodes = torch.arange(40)
    split = Split(nodes < 24, (nodes >= 24) & (nodes < 32), nodes >= 32)
    config = TrainConfig(max_epochs=300, patience=300, checkpoint="last", device=device)
    result = fit(GeomGCN(6, 8, 2, 6, dropout=0.0), data, split, config)
    assert result.train_accuracy > 0.9
    assert result.probabilities.device.type == "cpu"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("overlap", ["both", "graph", "latent"])
def test_the_neighborhood_stays_on_the_device_of_the_graph(device, overlap):
    x, edge_index, _ = random_pairs()
    data = Data(x=x, edge_index=edge_index)
    wanted = StructuralNeighborhood(overlap=overlap)(Isomap()(data))
    found = StructuralNeighborhood(overlap=overlap)(Isomap()(data.clone().to(device)))
    for name in ("pos", "edge_index", "edge_type", "edge_weight"):
        assert found[name].device.type == device
        torch.testing.assert_close(found[name].cpu(), wanted[name])
