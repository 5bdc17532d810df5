import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.nn import RGCNConv
from torch_geometric.testing import assert_module

from geomgcn.neighborhoods import StructuralNeighborhood
from geomgcn.nn import GeomConv
from graphs import connected_random, no_edges, star, unchecked

LOW = ["sum", "mean", "max", "energy"]


def typed_graph(num_types=3):
    edge_index = connected_random(8, 8, seed=4)
    generator = torch.Generator().manual_seed(0)
    return edge_index, torch.randint(num_types, (edge_index.size(1),), generator=generator)


@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize(("high", "width"), [("cat", 12), ("mean", 4)])
def test_module_as_pyg_checks_it(low, high, width):
    edge_index, edge_type = typed_graph()
    conv = GeomConv(5, 4, num_virtual_nodes=3, low_level=low, high_level=high)
    assert str(conv) == f"GeomConv(5, 4, num_virtual_nodes=3, low_level={low!r}, high_level={high!r})"
    assert_module(
        conv,
        torch.randn(8, 5),
        edge_index,
        edge_type=edge_type,
        edge_weight=torch.rand(edge_index.size(1)),
        expected_size=(8, width),
        test_sparse_layouts=[],
        atol=1e-6,
    )


@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize("high", ["cat", "mean"])
def test_gradients_are_those_of_finite_differences(low, high):
    torch.manual_seed(0)
    edge_index, edge_type = typed_graph()
    conv = GeomConv(2, 2, 3, low, high, bias=True).double()
    x = torch.randn(8, 2, dtype=torch.float64, requires_grad=True)
    weight = torch.rand(edge_index.size(1), dtype=torch.float64, requires_grad=low == "sum")

    def layer(x, weight, *parameters):
        named = dict(zip(dict(conv.named_parameters()), parameters, strict=True))
        return torch.func.functional_call(conv, named, (x, edge_index, edge_type, weight))

    assert torch.autograd.gradcheck(layer, (x, weight, *conv.parameters()))


@pytest.mark.parametrize("value", [0.0, 1e-30, 1e-15, 1e-6, 1e-3, 1.0])
def test_energy_has_finite_gradients_down_to_zero(value):
    conv = GeomConv(2, 2, 2, "energy")
    x = torch.full((3, 2), value, requires_grad=True)
    conv(x, torch.tensor([[0, 1], [2, 2]]), torch.tensor([0, 0])).sum().backward()
    assert x.grad.isfinite().all()
    assert conv.weight.grad.isfinite().all()
    if value >= 1e-3:
        assert x.grad[:2].abs().min() > 0


@pytest.mark.parametrize("value", [1e-6, 1e-12, 1e-18, 1e18])
def test_energy_of_small_and_large_features_is_their_size(value):
    conv = GeomConv(1, 1, 1, "energy")
    out = conv(torch.tensor([[value], [0.0]]), torch.tensor([[0], [1]]), torch.tensor([0]))
    torch.testing.assert_close(out[1], value * conv.weight[0, 0], rtol=1e-5, atol=0.0)


def test_energy_of_one_neighbor_is_its_size():
    conv = GeomConv(1, 1, 1, "energy")
    torch.nn.init.ones_(conv.weight)
    out = conv(
        torch.tensor([[-3.0], [4.0], [0.0]]), torch.tensor([[0, 0, 1], [1, 2, 2]]), torch.zeros(3).long()
    )
    assert out.view(-1).tolist() == [0.0, 3.0, 5.0]


@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize("num_nodes", [1, 4])
def test_without_pairs_all_is_zero(low, num_nodes):
    out = GeomConv(3, 2, 5, low)(torch.randn(num_nodes, 3), no_edges(), torch.zeros(0).long())
    assert out.shape == (num_nodes, 10)
    assert not out.any()


def test_empty_virtual_nodes_are_zero_beside_negative_ones():
    conv = GeomConv(1, 1, 2, "max")
    torch.nn.init.ones_(conv.weight)
    out = conv(-torch.ones(2, 1), torch.tensor([[0], [1]]), torch.tensor([1]))
    assert out.tolist() == [[0.0, 0.0], [0.0, -1.0]]


def test_a_hub_sums_all_its_neighbors_once():
    num_leaves = 5000
    conv = GeomConv(1, 1, 1)
    torch.nn.init.ones_(conv.weight)
    edges = star(num_leaves)
    out = conv(
        torch.ones(num_leaves + 1, 1), edges, torch.zeros(edges.size(1)).long(), torch.ones(edges.size(1))
    )
    assert out[0].item() == num_leaves
    assert (out[1:] == 1).all()


@pytest.mark.parametrize("bad", [[0, 3], [-1, 0]])
def test_edge_types_out_of_range_are_refused(bad):
    conv = GeomConv(2, 2, num_virtual_nodes=3)
    wanted = (
        rf"num_virtual_nodes=3, got edge types from {min(bad)} to {max(bad)}\. "
        r"Pass the num_virtual_nodes of the structural neighborhood\."
    )
    with pytest.raises(ValueError, match=wanted):
        conv(torch.randn(2, 2), torch.tensor([[0, 1], [1, 0]]), torch.tensor(bad))


@pytest.mark.parametrize("low", LOW)
@pytest.mark.parametrize("pair", [[0, 9], [9, 0], [0, -1], [-1, 0]])
def test_node_ids_out_of_range_never_pass(low, pair):
    with pytest.raises((ValueError, IndexError, RuntimeError)):
        GeomConv(2, 2, 2, low)(torch.randn(3, 2), torch.tensor([pair]).t(), torch.tensor([0]))


@pytest.mark.parametrize(
    ("setting", "choices"),
    [("low_level", "'sum', 'mean', 'max', 'energy'"), ("high_level", "'cat', 'mean'")],
)
def test_unknown_levels_are_refused(setting, choices):
    with unchecked(), pytest.raises(ValueError, match=f"{setting} is one of {choices}, got 'median'"):
        GeomConv(2, 2, 1, **{setting: "median"})


def test_new_weights_follow_the_seed_and_glorot():
    conv = GeomConv(30, 20, 4, bias=True)
    torch.nn.init.ones_(conv.bias)
    torch.manual_seed(5)
    conv.reset_parameters()
    first = conv.weight.clone()
    assert not conv.bias.any()
    bound = (6 / (30 + 20)) ** 0.5
    assert 0.9 * bound < first.abs().max() <= bound
    torch.manual_seed(5)
    conv.reset_parameters()
    assert torch.equal(first, conv.weight)


def test_mean_over_mean_is_pygs_relational_layer():
    """RGCNConv runs on a structural neighborhood as it is, and adds up what GeomConv averages."""
    data = Data(
        x=torch.randn(9, 4), pos=torch.randn(9, 2).double(), edge_index=connected_random(9, 6, seed=1)
    )
    data = StructuralNeighborhood()(data)
    reference = RGCNConv(4, 3, num_relations=data.num_virtual_nodes, root_weight=False, bias=False)
    conv = GeomConv(4, 3, data.num_virtual_nodes, "mean", "mean")
    conv.load_state_dict({"weight": reference.weight.transpose(0, 1)})
    expected = reference(data.x, data.edge_index, data.edge_type)
    ours = conv(data.x, data.edge_index, data.edge_type)
    torch.testing.assert_close(ours * data.num_virtual_nodes, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", ["edge_type", "edge_weight"])
def test_one_entry_is_not_taken_for_all_pairs(name):
    edge_index, edge_type = typed_graph()
    given = {"edge_type": edge_type, "edge_weight": torch.ones(edge_index.size(1))}
    given[name] = given[name][:1]
    message = rf"one entry of {name} for each of {edge_index.size(1)} pairs, got shape \[1\]\. Pass all"
    with unchecked(), pytest.raises(ValueError, match=message):
        GeomConv(5, 4, 3)(torch.randn(8, 5), edge_index, **given)
