"""The kernels for a GPU against plain tensor operations in double precision.

On a GPU they run as compiled; elsewhere in Triton's interpreter, where Triton is and TRITON_INTERPRET=1.
"""

import os
from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch

from geomgcn.nn import Adjacency, GeomGCN, SparseFeatures, _ops, _plain, _triton
from geomgcn.nn._dropout import Dropout
from geomgcn.nn._long_rows import LongRows
from geomgcn.nn._plain import Finish
from geomgcn.nn._prepared import forward_runs
from geomgcn.nn._triton import Launch
from geomgcn.nn._triton_adam import Adam, Decay, adam, plain_adam
from geomgcn.nn._triton_sparse import num_shares
from geomgcn.nn._triton_tiles import Tile

INTERPRETED = find_spec("triton") is not None and os.environ.get("TRITON_INTERPRET") == "1"
DEVICE = "cuda" if _triton.available() else "cpu"
if not (_triton.available() or INTERPRETED):
    pytest.skip("needs Triton, and a GPU or TRITON_INTERPRET=1", allow_module_level=True)

TOLERANCE = {torch.float32: 2e-5, torch.float64: 1e-12, torch.bfloat16: 2e-2, torch.float16: 4e-3}
SMALL = Launch(Tile(4, 4, 8), Tile(1, 8, 4, 1))
GRAPHS = ["hub", "cut", "one node", "no pairs", "wide ids", "one virtual node"]


def prepared(name):
    """Return pairs in both directions; ``cut`` has rows that a low limit makes long."""
    num_nodes, count, num_pairs = {
        "hub": (9, 3, 350),
        "one node": (1, 4, 5),
        "no pairs": (5, 3, 0),
        "one virtual node": (11, 1, 40),
    }.get(name, (9, 3, 70))
    edge_index = torch.randint(num_nodes, (2, num_pairs))
    edge_type = torch.randint(count, (num_pairs,))
    if name == "hub":
        edge_index[1, :300], edge_type[:300] = 4, 1
        edge_index[0, 20:310] = 2
    edge_index[:, edge_index[1] == 7] = 6  # node 7 stays empty
    adjacency = Adjacency.of(edge_index, edge_type, num_nodes, count, torch.randn(num_pairs)).to(DEVICE)
    if name == "wide ids":
        adjacency = Adjacency(*(widened(pairs) for pairs in (adjacency.gather, adjacency.spread)))
    if name == "cut":
        for pairs in (adjacency.gather, adjacency.spread):
            for of_nodes, step in ((False, 1), (True, count)):
                pairs.found[of_nodes] = LongRows.of(pairs.start[::step], limit=3, piece=2)
    return adjacency


def widened(pairs):
    return replace(pairs, start=pairs.start.long(), other=pairs.other.long())


def random_values(num_runs, num_rows, channels, dtype=torch.float32):
    return torch.randn(num_runs, num_rows, channels, device=DEVICE, dtype=torch.float64).to(dtype)


def dropout_of(num_runs):
    seed = torch.randint(-(2**62), 2**62, (num_runs,), device=DEVICE)
    return Dropout.of(seed, [0.5, 0.0, 1.0, 0.3][:num_runs])


def doubled(given):
    if isinstance(given, torch.Tensor) and given.is_floating_point():
        return given.double()
    if isinstance(given, Finish):
        return replace(given, bias=None if given.bias is None else given.bias.double())
    if hasattr(given, "weight") and given.weight is not None:
        return replace(given, weight=given.weight.double())
    return given


def assert_as_plain(name, *given, dtype=None, launch=None, **options):
    """Compare with the plain function in double precision, on the same rounded input."""
    found = getattr(_triton, name)(*given, **options, **({} if launch is None else {"launch": launch}))
    expected = getattr(_plain, name)(
        *map(doubled, given), **{key: doubled(option) for key, option in options.items()}
    )
    dtype = dtype or torch.float32
    for one, other in zip(
        found if isinstance(found, tuple) else (found,),
        expected if isinstance(expected, tuple) else (expected,),
        strict=True,
    ):
        assert one.dtype == dtype
        assert one.is_contiguous()
        bound = TOLERANCE[dtype] * max(1.0, float(other.nan_to_num().abs().max()) if other.numel() else 1.0)
        torch.testing.assert_close(
            one.double(), other, atol=bound, rtol=TOLERANCE[dtype], equal_nan=True, check_stride=False
        )


@pytest.fixture(autouse=True)
def fresh():
    torch.manual_seed(torch.seed() % 2**31)
    print("seed", torch.initial_seed())


@pytest.mark.parametrize(("from_slots", "to_slots"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("graph", GRAPHS)
def test_gather(graph, from_slots, to_slots):
    pairs = prepared(graph).gather
    count = pairs.num_virtual_nodes
    values = random_values(2, pairs.num_nodes * (count if from_slots else 1), 5)
    way = {"from_slots": from_slots, "to_slots": to_slots}
    finish = Finish(random_values(1, 2, 5 * (count if to_slots else 1))[0], dropout_of(2))
    factor = torch.rand(2, device=DEVICE, dtype=torch.float64)
    back = {"gate": torch.randn_like(values), "scale": 0.3, "factor": factor}
    assert_as_plain("gather", pairs, values, **way, **back, launch=SMALL)
    assert_as_plain("gather", replace(pairs, weight=None), values, **way, finish=finish)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("channels", [1, 7, 16, 40, 47, 100])
def test_gather_of_any_width_and_precision(channels, dtype):
    pairs = prepared("cut").gather
    values = random_values(3, pairs.num_nodes * 3, channels, dtype)
    finish = Finish(random_values(1, 3, channels * 3, dtype)[0], dropout_of(3))
    way = {"from_slots": True, "to_slots": True, "scale": 1 / 3}
    assert_as_plain(
        "gather", pairs, values, **way, finish=finish, dtype=dtype, launch=Launch(Tile(16, 8, 16))
    )


@pytest.mark.parametrize("finish", [Finish(), None])
def test_gather_of_runs_that_share_values(finish):
    pairs = prepared("hub").gather
    values = random_values(1, pairs.num_nodes, 8).expand(3, -1, -1)
    way = {"from_slots": False, "to_slots": True}
    assert_as_plain("gather", pairs, values, **way, finish=finish)
    assert_as_plain("gather", pairs, values, **way, gate=torch.randn(values.shape, device=DEVICE))


@pytest.mark.parametrize("num_runs", [0, 1])
def test_nothing_is_gathered_from_nothing(num_runs):
    pairs = prepared("one node").gather
    for channels in (0, 3):
        values = random_values(num_runs, 4, channels)
        assert_as_plain("gather", pairs, values, from_slots=True, to_slots=True)


@pytest.mark.parametrize(("from_slots", "to_slots"), [(True, True), (True, False), (False, True)])
@pytest.mark.parametrize("graph", GRAPHS)
def test_pair_products(graph, from_slots, to_slots):
    pairs = prepared(graph).gather
    count = pairs.num_virtual_nodes
    values = random_values(2, pairs.num_nodes * (count if from_slots else 1), 11)
    grad = random_values(2, pairs.num_nodes * (count if to_slots else 1), 11)
    way = {"from_slots": from_slots, "to_slots": to_slots}
    assert_as_plain("pair_products", pairs, values, grad, **way, scale=0.7)
    assert_as_plain("pair_products", pairs, values, grad, **way, launch=SMALL)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("graph", GRAPHS)
def test_largest_and_back(graph, dtype):
    adjacency = prepared(graph)
    # Few values, so that many tie.
    values = (random_values(2, adjacency.num_nodes, 9, dtype) * 1.5).round()
    assert_as_plain("largest", adjacency.gather, values, dtype=dtype, launch=SMALL)
    assert_as_plain("largest", adjacency.gather, values, dtype=dtype)
    top, ties = _triton.largest(adjacency.gather, values)
    share = random_values(2, top.size(1), 9, dtype) / ties.clamp(min=1)
    assert_as_plain("from_largest", adjacency.spread, values, top, share, dtype=dtype)
    assert_as_plain("from_largest", adjacency.spread, values, top, share, dtype=dtype, launch=SMALL)


@pytest.mark.parametrize("graph", ["hub", "cut"])
def test_the_largest_may_be_infinite_or_no_number(graph):
    pairs = prepared(graph).gather
    values = random_values(3, pairs.num_nodes, 4)
    values[0, 4], values[1, :], values[2, ::2] = float("nan"), float("-inf"), float("inf")
    assert_as_plain("largest", pairs, values, launch=SMALL)


@pytest.mark.parametrize("dtype", TOLERANCE)
def test_drop(dtype):
    for shape in ((4, 37, 45), (1, 3, 700), (2, 0, 4)):
        assert_as_plain("drop", random_values(*shape, dtype), dropout_of(shape[0]), dtype=dtype)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("transposed", [False, True])
def test_sparse_product(transposed, dtype):
    matrix = torch.randn(23, 61) * (torch.rand(23, 61) < 0.3)
    matrix[5], matrix[6] = 1.0, 0.0
    matrix = (matrix.t() if transposed else matrix).to_sparse_csr()
    start, other = matrix.crow_indices().to(DEVICE), matrix.col_indices().int().to(DEVICE)
    dense = random_values(3, matrix.size(1), 19, dtype)
    entries = matrix.values().to(DEVICE)
    assert_as_plain("sparse_product", start, other, entries, dense, None, dtype=dtype)
    kept = dropout_of(3)
    assert_as_plain("sparse_product", start, other, entries, dense, kept, transposed=transposed, dtype=dtype)


def test_a_sparse_product_of_few_long_rows_is_shared():
    matrix = torch.randn(3, 1500).to_sparse_csr()
    start, other = matrix.crow_indices().int().to(DEVICE), matrix.col_indices().to(DEVICE)
    assert num_shares(3, 1500, 4500, (3, 1, 1)) > 2
    dense = random_values(2, 1500, 4)
    assert_as_plain("sparse_product", start, other, matrix.values().to(DEVICE), dense, dropout_of(2))


def adam_of(num_runs, num_parameters, dtype=torch.float32):
    parameters = random_values(1, num_runs, num_parameters, dtype)[0]
    moments = (torch.zeros_like(parameters), torch.zeros_like(parameters))
    step = torch.zeros((), dtype=torch.long, device=DEVICE)
    rate, decay = (torch.rand(num_runs, device=DEVICE) / scale for scale in (10, 2))
    return Adam(parameters, *moments, step, rate, decay, torch.ones(num_runs, device=DEVICE).bool())


@pytest.mark.parametrize("step", [adam, plain_adam])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_adam_is_that_of_torch(step, dtype):
    state, decay = adam_of(3, 2051, dtype), Decay(0.85, 0.995, 1e-6)
    theirs = [torch.nn.Parameter(row.clone()) for row in state.parameters]
    groups = [
        {"params": [row], "lr": float(rate), "weight_decay": float(weight)}
        for row, rate, weight in zip(theirs, state.rate, state.decay, strict=True)
    ]
    optimizer = torch.optim.Adam(groups, betas=(0.85, 0.995), eps=1e-6)
    for number in range(6):
        gradients = random_values(1, 3, 2051, dtype)[0] * 10.0 ** (number - 3)
        for row, gradient in zip(theirs, gradients, strict=True):
            row.grad = gradient.clone()
        state.step.add_(1)
        step(state, gradients, decay)
        optimizer.step()
        bound = 1e-6 if dtype == torch.float32 else 1e-9
        torch.testing.assert_close(state.parameters, torch.stack(theirs).detach(), atol=bound, rtol=bound)


@pytest.mark.parametrize("step", [adam, plain_adam])
def test_adam_leaves_runs_alone_that_are_over(step):
    state = adam_of(3, 70)
    state.step.fill_(4)
    state.active[1] = False
    before = [array.clone() for array in (state.parameters, state.first, state.second)]
    gradients = random_values(1, 3, 70)[0]
    gradients[1] = float("nan")
    step(state, gradients)
    for array, old in zip((state.parameters, state.first, state.second), before, strict=True):
        assert torch.equal(array[1], old[1])
        assert (array[[0, 2]] != old[[0, 2]]).all()
        assert array.isfinite().all()


@pytest.mark.gpu
def test_all_can_be_captured_in_a_graph():
    adjacency = prepared("hub")
    values, state = random_values(2, 27, 16), adam_of(2, 64)
    nodes, dropout = random_values(2, 9, 16), dropout_of(2)
    start, other = adjacency.gather.start, adjacency.gather.other

    def step():
        state.step.add_(1)
        adam(state, values.view(2, -1)[:, :64].contiguous())
        gathered = _triton.gather(
            adjacency.gather.weighted(None), values, from_slots=True, to_slots=False, finish=Finish()
        )
        top, ties = _triton.largest(adjacency.gather, nodes)
        back = _triton.from_largest(adjacency.spread, nodes, top, top / ties.clamp(min=1))
        weights = _triton.pair_products(adjacency.gather, values, values, from_slots=True, to_slots=True)
        product = _triton.sparse_product(start, other, weights, values, dropout)
        return gathered, back, product, _triton.drop(nodes, dropout), state.parameters.clone()

    step()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        captured = step()
    values.normal_()
    nodes.normal_()
    before = [array.clone() for array in (state.parameters, state.first, state.second, state.step)]
    graph.replay()
    replayed = [array.clone() for array in captured]
    for array, old in zip((state.parameters, state.first, state.second, state.step), before, strict=True):
        array.copy_(old)
    for one, again in zip(replayed, step(), strict=True):
        assert torch.equal(one, again)


@pytest.mark.gpu
def test_places_beyond_32_bits():
    if torch.cuda.get_device_properties(0).total_memory < 2**35:
        pytest.skip("needs a GPU with 32 GB")
    num_nodes, count, num_runs = 3_000_000, 16, 3
    edge_index = torch.randint(num_nodes - 100, num_nodes, (2, 1000), device=DEVICE)
    edge_type = torch.randint(count, (1000,), device=DEVICE)
    pairs = Adjacency.of(edge_index, edge_type, num_nodes, count).plain.gather
    values = torch.randn(num_runs, num_nodes * count, 16, device=DEVICE, dtype=torch.bfloat16)
    assert values.numel() > 2**31
    found = _triton.gather(pairs, values, from_slots=True, to_slots=True)
    row = _plain.row_of_each(pairs.start)
    for run in range(num_runs):
        expected = torch.zeros(100 * count, 16, device=DEVICE)
        expected.index_add_(0, row - (num_nodes - 100) * count, values[run, pairs.other.long()].float())
        torch.testing.assert_close(found[run, -100 * count :].float(), expected, atol=0.1, rtol=0.02)
        assert not found[run, : -100 * count].any()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("low_level", ["sum", "mean", "max", "energy"])
def test_a_model_trains_as_in_tensor_operations(low_level, sparse, monkeypatch):
    """All kernels as the layers call them, forward and back, for two runs with dropout of their own."""
    adjacency = prepared("hub")
    x = torch.randn(9, 6, device=DEVICE) * (torch.rand(9, 6, device=DEVICE) < 0.4)
    x = SparseFeatures.of(x) if sparse else x
    model = GeomGCN(6, 5, 4, 3, low_level=low_level, bias=True).to(DEVICE)
    learned = [torch.stack([part.detach()] * 2).requires_grad_() for part in model.parameters()]
    found = []
    for products in (_triton, _plain):
        monkeypatch.setattr(_ops, "products_for", lambda _, products=products: products)
        parts = iter(learned)
        maps = [replace(one.maps(), weight=next(parts), bias=next(parts)) for one in model.layers]
        seeds = torch.tensor([[1, 2], [3, 4]], device=DEVICE)
        out = forward_runs(x, adjacency, maps, [Dropout.of(seed, [0.5, 0.2]) for seed in seeds])
        slope = torch.linspace(-1, 1, out.numel(), device=DEVICE).view_as(out)
        found.append([out, *torch.autograd.grad((out * slope).sum(), learned)])
    for kernel, plain in zip(*found, strict=True):
        torch.testing.assert_close(kernel, plain, atol=1e-4, rtol=1e-4)
