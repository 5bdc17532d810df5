"""The layer on a prepared neighbourhood against the layer on edges, values and gradients."""

import pytest
import torch
from torch.autograd import gradcheck

from geomgcn.nn import Adjacency, GeomConv, GeomGCN, SparseFeatures, _ops, _plain, _prepared
from geomgcn.nn._dropout import Dropout
from geomgcn.nn._plain import Finish
from graphs import unchecked

LOW = ["sum", "mean", "max", "energy"]
COUNT = 4
GRAPHS = {
    "random": lambda g: (30, torch.randint(30, (2, 200), generator=g)),
    "hub": lambda g: (30, torch.stack([torch.randint(30, (300,), generator=g), torch.zeros(300).long()])),
    "no pairs": lambda g: (5, torch.zeros(2, 0).long()),
    "one node": lambda g: (1, torch.zeros(2, 2).long()),
}


def problem(kind="random", channels=6, dtype=torch.float64):
    seed = torch.seed() % 2**32
    print(f"seed {seed}")
    generator = torch.Generator().manual_seed(seed)
    num_nodes, edge_index = GRAPHS[kind](generator)
    edge_type = torch.randint(COUNT, (edge_index.size(1),), generator=generator)
    weight = torch.randn(edge_index.size(1), generator=generator, dtype=dtype)
    x = torch.randn(num_nodes, channels, generator=generator, dtype=dtype)
    return x, edge_index, edge_type, weight


def both_ways(conv, x, straight, prepared):
    """Outputs and gradients, of the edges and of the prepared neighbourhood."""
    results = []
    for inputs in (straight, prepared):
        leaf = x.clone().requires_grad_()
        out = conv(leaf, *inputs[0], **inputs[1])
        parameters = [leaf, *conv.parameters(), *(w for w in inputs[1].values() if w.requires_grad)]
        slope = torch.linspace(-1, 2, out.numel(), dtype=out.dtype).view_as(out)
        results.append([out, *torch.autograd.grad((out * slope).sum(), parameters)])
    return zip(*results, strict=True)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("width", [3, 9])  # narrower than the input, and wider
@pytest.mark.parametrize("high", ["cat", "mean"])
@pytest.mark.parametrize("low", LOW)
def test_the_layer_equals_the_straight_form(low, high, width, kind, dtype):
    x, edge_index, edge_type, weight = problem(kind, dtype=dtype)
    conv = GeomConv(6, width, COUNT, low, high, bias=True).to(dtype)
    torch.nn.init.normal_(conv.bias)
    adjacency = Adjacency.of(edge_index, edge_type, len(x), COUNT, weight)
    loose = 1e-5 if dtype == torch.float32 else 1e-12
    for straight, prepared in both_ways(
        conv, x, ((edge_index, edge_type), {"edge_weight": weight}), ((adjacency,), {})
    ):
        scale = max(1.0, float(straight.detach().abs().max())) if straight.numel() else 1.0
        torch.testing.assert_close(prepared, straight, atol=loose * scale, rtol=loose)


@pytest.mark.parametrize("width", [3, 9])
@pytest.mark.parametrize("high", ["cat", "mean"])
def test_weights_of_pairs_can_be_learned(high, width):
    x, edge_index, edge_type, weight = problem()
    conv = GeomConv(6, width, COUNT, "sum", high).double()
    adjacency = Adjacency.of(edge_index, edge_type, len(x), COUNT)
    learned = weight.requires_grad_()
    for straight, prepared in both_ways(
        conv,
        x,
        ((edge_index, edge_type), {"edge_weight": learned}),
        ((adjacency,), {"edge_weight": learned}),
    ):
        torch.testing.assert_close(prepared, straight, atol=1e-12, rtol=1e-12)


def test_without_weights_in_degrees_count():
    x, edge_index, edge_type, _ = problem()
    conv = GeomConv(6, 3, COUNT).double()
    adjacency = Adjacency.of(edge_index, edge_type, len(x), COUNT)
    torch.testing.assert_close(conv(x, adjacency), conv(x, edge_index, edge_type), atol=1e-6, rtol=1e-6)


@pytest.mark.parametrize("high", ["cat", "mean"])
def test_either_order_of_map_and_sum_gives_the_same(high, monkeypatch):
    x, edge_index, edge_type, weight = problem()
    conv = GeomConv(6, 6, COUNT, "sum", high, bias=True).double()
    adjacency = Adjacency.of(edge_index, edge_type, len(x), COUNT, weight)
    found = []
    for first in (True, False):
        monkeypatch.setattr(_prepared, "map_comes_first", lambda *_, first=first: first)
        found.append(conv(x, adjacency))
    assert not torch.equal(*found)  # the two ways round differently
    torch.testing.assert_close(*found, atol=1e-12, rtol=1e-12)


def test_the_order_that_moves_less_is_taken():
    _, edge_index, edge_type, weight = problem()
    adjacency = Adjacency.of(edge_index, edge_type, 30, COUNT, weight)

    def first(in_channels, out_channels, constant):
        x = torch.ones(1, 30, in_channels, requires_grad=not constant)
        maps = GeomConv(in_channels, out_channels, COUNT).maps()
        return _prepared.map_comes_first(x, adjacency, maps)

    assert first(10, 10, constant=False)
    assert not first(9, 10, constant=False)
    assert not first(19, 10, constant=True)  # no way back to constant features
    assert first(20, 10, constant=True)


@pytest.mark.parametrize("rate", [None, 0.3])
@pytest.mark.parametrize(("from_slots", "to_slots"), [(True, True), (True, False), (False, True)])
def test_gradients_are_those_of_finite_differences(from_slots, to_slots, rate):
    _, edge_index, edge_type, weight = problem(channels=2)
    adjacency = Adjacency.of(edge_index[:, :40], edge_type[:40], 30, COUNT)
    values = torch.randn(2, 30 * (COUNT if from_slots else 1), 2, dtype=torch.float64, requires_grad=True)
    bias = torch.randn(2, 2 * (COUNT if to_slots else 1), dtype=torch.float64, requires_grad=True)
    dropout = None if rate is None else Dropout.of(torch.tensor([1, 2]), [rate, 0.6])

    def product(values, weight, bias):
        form = {"from_slots": from_slots, "to_slots": to_slots, "scale": 0.5}
        finish = Finish(bias, dropout)
        return _ops.aggregate(values, adjacency, **form, edge_weight=weight, finish=finish)

    assert gradcheck(product, (values, weight[:40].requires_grad_(), bias))


def test_gradients_of_sparse_features_and_dropout():
    features = SparseFeatures.of((torch.rand(9, 7, dtype=torch.float64) - 0.6).relu())
    dropout = Dropout.of(torch.tensor([1, 2]), [0.5, 0.2])
    weight = torch.randn(2, 7, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda weight: _ops.multiply(features, weight, dropout), (weight,))
    x = torch.randn(2, 9, 7, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda x: _ops.drop(x, dropout), (x,))


def test_plain_operations_stand_in_where_nothing_is_compiled(monkeypatch):
    """As on a device without kernels of its own."""
    x, edge_index, edge_type, weight = problem()
    model = GeomGCN(6, 5, 3, COUNT, bias=True).double()
    inputs = model.prepare(x, edge_index, edge_type, weight)
    found = []
    for products in (None, _plain):
        if products is not None:
            monkeypatch.setattr(_ops, "products_for", lambda _, products=products: products)
        torch.manual_seed(0)
        out = model(*inputs)
        found.append([out, *torch.autograd.grad(out.square().sum(), list(model.parameters()))])
    for compiled, plain in zip(*found, strict=True):
        torch.testing.assert_close(compiled, plain, atol=1e-10, rtol=1e-10)


@pytest.mark.parametrize("num_layers", [1, 2, 3])
@pytest.mark.parametrize("low", LOW)
def test_the_model_equals_itself_on_edges(low, num_layers):
    x, edge_index, edge_type, weight = problem()
    x = x * (torch.rand_like(x) < 0.2)
    model = GeomGCN(6, 5, 3, COUNT, num_layers, low_level=low, bias=True).double().eval()
    inputs = model.prepare(x, edge_index, edge_type, weight)
    assert isinstance(inputs[0], SparseFeatures) == (low in ("sum", "mean"))
    straight = model(x, edge_index, edge_type, weight)
    torch.testing.assert_close(model(*inputs), straight, atol=1e-10, rtol=1e-10)
    sparse = model(SparseFeatures.of(x), inputs[1])
    torch.testing.assert_close(sparse, straight, atol=1e-10, rtol=1e-10)
    torch.testing.assert_close(
        model(SparseFeatures.of(x), edge_index, edge_type, weight), straight, atol=0, rtol=0
    )


def test_sparse_and_dense_features_are_dropped_alike():
    x, edge_index, edge_type, weight = problem()
    x = x * (torch.rand_like(x) < 0.3)
    model = GeomGCN(6, 5, 3, COUNT).double()
    adjacency = Adjacency.of(edge_index, edge_type, len(x), COUNT, weight)
    found = []
    for features in (x, SparseFeatures.of(x)):
        torch.manual_seed(0)
        found.append(model(features, adjacency))
    torch.testing.assert_close(*found, atol=1e-10, rtol=1e-10)


def test_dropout_follows_the_seed_of_torch_and_stops_in_evaluation():
    x, edge_index, edge_type, weight = problem()
    model = GeomGCN(6, 50, 3, COUNT).double()
    inputs = model.prepare(x, edge_index, edge_type, weight)
    torch.manual_seed(1)
    one, two = model(*inputs), model(*inputs)
    torch.manual_seed(1)
    assert torch.equal(model(*inputs), one)
    assert not torch.equal(one, two)
    model.eval()
    assert torch.equal(model(*inputs), model(*inputs))


def test_dropout_has_the_distribution_of_the_straight_form():
    """One linear layer: mean and variance of the outputs over many masks, both ways."""
    x, edge_index, edge_type, weight = problem()
    model = GeomGCN(6, 4, 3, COUNT, num_layers=1, dropout=0.4).double()
    prepared = model.prepare(x, edge_index, edge_type, weight)
    draws = 4000
    with torch.no_grad():
        ours = torch.stack([model(*prepared) for _ in range(draws)])
        straight = torch.stack([model(x, edge_index, edge_type, weight) for _ in range(draws)])
        exact = model.eval()(*prepared)
    spread = straight.std(0).clamp(min=1e-12)
    assert ((ours.mean(0) - exact).abs() <= 6 * spread / draws**0.5 + 1e-12).all()
    assert ((ours.std(0) / spread - 1).abs()[spread > 1e-9] < 0.15).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda c, x, a, t: c(x, a, t), r"no edge_type beside an Adjacency.*Leave edge_type out"),
        (lambda c, x, a, t: c(x[1:], a), r"features of 30 nodes with 6 channels.*got shape \[29, 6\]\. Pass"),
        (lambda c, x, a, t: c(x[:, 1:], a), r"got shape \[30, 5\]\. Pass the features"),
        (
            lambda c, x, a, t: c(x, a, edge_weight=torch.ones(3)),
            r"edge_weight for each of 200 pairs, got shape \[3\]\. Keep the order",
        ),
        (lambda c, x, a, t: GeomConv(6, 3, 9)(x, a), r"num_virtual_nodes=9, got an Adjacency with 4\. Build"),
        (lambda c, x, a, t: c(x, torch.zeros(2, 1).long()), r"needs edge_type beside edge_index, got none\."),
        (lambda c, x, a, t: GeomGCN(6, 3, 2, 9)(x, a), r"num_virtual_nodes=9, got an Adjacency with 4\."),
    ],
)
def test_what_does_not_belong_together_is_refused(call, message):
    x, edge_index, edge_type, weight = problem()
    adjacency = Adjacency.of(edge_index, edge_type, 30, COUNT, weight)
    with unchecked(), pytest.raises(ValueError, match=message):
        call(GeomConv(6, 3, COUNT).double(), x, adjacency, edge_type)


def test_nothing_but_weights_is_kept_in_a_layer():
    x, edge_index, edge_type, weight = problem()
    conv = GeomConv(6, 3, COUNT).double()
    before = set(vars(conv))
    conv(x, Adjacency.of(edge_index, edge_type, 30, COUNT, weight)).sum().backward()
    assert set(vars(conv)) == before
