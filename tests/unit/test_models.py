import pytest
import torch
from torch.nn import functional as F

from geomgcn.nn import GAT, GCN, MLP, GeomGCN
from graphs import connected_random, no_edges

MODELS = {
    "GeomGCN": lambda **more: GeomGCN(5, 4, 3, num_virtual_nodes=2, **more),
    "GCN": lambda **more: GCN(5, 4, 3, **more),
    "GAT": lambda **more: GAT(5, 4, 3, **more),
    "MLP": lambda **more: MLP(5, 4, 3, **more),
}

each_model = pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)


def problem(seed=0):
    generator = torch.Generator().manual_seed(seed)
    edge_index = connected_random(9, 7, seed)
    edge_type = torch.randint(2, (edge_index.size(1),), generator=generator)
    weight = torch.rand(edge_index.size(1), generator=generator)
    return torch.randn(9, 5, generator=generator), edge_index, edge_type, weight


@each_model
@pytest.mark.parametrize("num_layers", [1, 2, 4])
def test_called_alike_and_trainable(make, num_layers):
    model = make(num_layers=num_layers)
    out = model(*problem())
    assert out.shape == (9, 3)
    out.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in model.parameters())


@each_model
def test_a_model_needs_a_layer(make):
    with pytest.raises(ValueError, match=r"at least one layer, got num_layers=0\. Pass num_layers=2"):
        make(num_layers=0)


@each_model
def test_dropout_acts_in_training_only(make):
    model, inputs = make(dropout=0.5), problem()
    assert not torch.equal(model(*inputs), model(*inputs))
    model.eval()
    assert torch.equal(model(*inputs), model(*inputs))


@each_model
def test_weights_come_from_the_seed_alone(make):
    model = make()
    states = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        model.reset_parameters()
        states.append(torch.cat([p.detach().flatten() for p in model.parameters()]))
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


@each_model
def test_a_graph_without_edges(make):
    x = problem()[0]
    out = make()(x, no_edges(), torch.zeros(0).long(), torch.zeros(0))
    assert out.shape == (9, 3)
    assert out.isfinite().all()


def test_sizes_are_the_papers():
    """Section 4.2: hidden width of one virtual node; concatenation inside, the mean at the end."""
    model = GeomGCN(100, 48, 5, num_virtual_nodes=9)
    shapes = [tuple(conv.weight.shape) for conv in model.convs]
    assert shapes == [(100, 9, 48), (9 * 48, 9, 5)]
    assert [conv.high_level for conv in model.convs] == ["cat", "mean"]
    assert [conv.bias for conv in model.convs] == [None, None]
    gat = GAT(100, 8, 5, out_heads=8)
    assert [conv.heads for conv in gat.convs] == [8, 8]
    assert [conv.concat for conv in gat.convs] == [True, False]
    assert [conv.bias for conv in GCN(100, 16, 5).convs] == [None, None]


def test_geom_gcn_is_two_layers_with_relu_between():
    model, (x, edge_index, edge_type, weight) = MODELS["GeomGCN"]().eval(), problem()
    hidden = model.convs[0](x, edge_index, edge_type, weight).clamp(min=0)
    wanted = model.convs[1](hidden, edge_index, edge_type, weight)
    torch.testing.assert_close(model(x, edge_index, edge_type, weight), wanted)
    assert not torch.allclose(model(x, edge_index, edge_type), wanted)


@each_model
def test_dropout_acts_on_the_input_of_every_layer(make):
    """Section 4.2; a model whose features are never dropped overfits, and nothing else tells."""
    torch.manual_seed(0)
    model, (_, edge_index, edge_type, weight) = make(dropout=0.5), problem()
    for parameter in model.parameters():
        torch.nn.init.ones_(parameter)  # so that zeros come from dropout alone
    layers = model.layers if hasattr(model, "layers") else model.convs
    seen = []
    for layer in layers:
        layer.register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    x = torch.full((9, 5), 3.0)
    model.train()(x, edge_index, edge_type, weight)
    assert set(seen[0].unique().tolist()) == {0.0, 6.0}
    assert len(seen) == 2
    model.eval()(x, edge_index, edge_type, weight)
    assert torch.equal(seen[2], x)
    alive = seen[3] > 0
    assert 0.2 < float((seen[1][alive] == 0).double().mean()) < 0.8


def test_gcn_is_its_formula_on_directed_edges():
    """Messages run along the edges as given, normalised by in-degrees with self-loops on both sides."""
    x = problem()[0]
    edges = torch.tensor([[0, 1, 2, 3, 0, 5], [1, 2, 0, 1, 3, 6]])
    table = torch.eye(9)
    for u, v in edges.t().tolist():
        table[v, u] += 1
    degree = table.sum(1)
    table = table / (degree[:, None] * degree[None, :]).sqrt()
    model = MODELS["GCN"]().eval()
    first, second = (conv.lin.weight.t() for conv in model.convs)
    torch.testing.assert_close(model(x, edges), table @ (table @ x @ first).relu() @ second)


def test_gat_uses_elu_and_mlp_relu():
    x, edge_index, *_ = problem()
    gat = MODELS["GAT"]().eval()
    torch.testing.assert_close(
        gat(x, edge_index), gat.convs[1](F.elu(gat.convs[0](x, edge_index)), edge_index)
    )
    mlp = MODELS["MLP"]().eval()
    torch.testing.assert_close(mlp(x), mlp.layers[1](mlp.layers[0](x).clamp(min=0)))


@pytest.mark.parametrize("name", ["GCN", "GAT", "MLP"])
def test_baselines_do_not_see_relations_or_weights(name):
    model, (x, edge_index, edge_type, weight) = MODELS[name]().eval(), problem()
    assert torch.equal(model(x, edge_index, edge_type, weight), model(x, edge_index))
    if name == "MLP":
        assert torch.equal(model(x), model(x, edge_index))
