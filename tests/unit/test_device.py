"""The same checks on every device that there is."""

import pytest
import torch
from torch_geometric.data import Data

from geomgcn.distances import Geodesic
from geomgcn.embeddings import Isomap, Poincare, reconstruction
from geomgcn.embeddings._device_hops import DeviceHops
from geomgcn.embeddings._landmarks import landmark_axes
from geomgcn.embeddings._products import Hops
from geomgcn.graphs import adjacency
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


def grid(width):
    """A square grid and a tail of 300 nodes, so that distances need two bytes."""
    number = torch.arange(width * width).view(width, width)
    right = torch.stack([number[:, :-1].reshape(-1), number[:, 1:].reshape(-1)])
    up = torch.stack([number[:-1].reshape(-1), number[1:].reshape(-1)])
    tail = torch.arange(width * width - 1, width * width + 299)
    return torch.cat([right, up, torch.stack([tail[:-1], tail[1:]])], dim=1), width * width + 299


@pytest.mark.parametrize("device", DEVICES)
def test_landmarks_are_the_same_on_every_device(device):
    edge_index, num_nodes = grid(15)
    rows = adjacency(edge_index, num_nodes)
    compiled, tensors = (
        Hops(rows.indptr, rows.indices),
        DeviceHops(rows.indptr, rows.indices, torch.device(device)),
    )
    sources = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(0))[:100].numpy()
    for first in (0, 200):
        (ours, far), (theirs, also_far) = (paths.block(sources, first) for paths in (compiled, tensors))
        assert (ours == theirs).all()
        assert ours.dtype == theirs.dtype
        assert far == also_far
    ours, theirs = (landmark_axes(paths, 2, 50, [0])[0] for paths in (compiled, tensors))
    torch.testing.assert_close(torch.from_numpy(theirs), torch.from_numpy(ours), rtol=1e-9, atol=1e-9)
    pos = Isomap(landmarks=50)
    found = pos.embed(edge_index.to(device), num_nodes)
    assert found.device.type == device
    torch.testing.assert_close(found.cpu(), pos.embed(edge_index, num_nodes), rtol=0, atol=1e-4)


@pytest.mark.parametrize("device", DEVICES)
def test_two_components_are_searched_apart(device):
    rows = adjacency(torch.tensor([[0, 1, 3], [1, 2, 4]]), 5)
    hops, far = DeviceHops(rows.indptr, rows.indices, torch.device(device)).block(
        torch.tensor([0]).numpy(), 0
    )
    assert hops.ravel().tolist() == [0, 1, 2, 255, 255]
    assert far == 2


@pytest.mark.parametrize("device", DEVICES)
def test_batches_of_poincare_are_as_good_on_every_device(device):
    edge_index = torch.tensor([[child, (child - 1) // 2] for child in range(1, 255)]).t()
    pos = Poincare(epochs=200, mode="batched").embed(edge_index.to(device), 255)
    assert pos.device.type == device
    assert reconstruction(pos.cpu(), edge_index, "poincare").mean_average_precision > 0.7
    away = Geodesic()(pos[:1].expand(255, -1), pos)
    assert away[1:3].mean() < away[127:].mean()
