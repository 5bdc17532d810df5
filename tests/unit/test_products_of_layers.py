"""Compiled products against tensor operations, on fresh random inputs."""

import numba
import pytest
import torch

from geomgcn.nn import Adjacency, SparseFeatures, _cpu_products, _plain
from geomgcn.nn._dropout import Dropout
from geomgcn.nn._plain import Finish

FORMS = [(True, True), (True, False), (False, True), (False, False)]
GRAPHS = {
    "random": lambda g: (40, torch.randint(40, (2, 300), generator=g)),
    "hub": lambda g: (40, torch.stack([torch.randint(40, (500,), generator=g), torch.zeros(500).long()])),
    "no pairs": lambda g: (7, torch.zeros(2, 0).long()),
    "one node": lambda g: (1, torch.zeros(2, 3).long()),
    "large": lambda g: (3000, torch.randint(3000, (2, 20_000), generator=g)),
}
COUNT = 5


@pytest.fixture(autouse=True)
def two_threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def generator(request):
    """Fresh random numbers every time; the seed stands in the report of a failure."""
    seed = torch.seed() % 2**32
    print(f"seed {seed}")
    return torch.Generator().manual_seed(seed)


def problem(kind, generator, dtype=torch.float64, width=7, runs=2):
    num_nodes, edge_index = GRAPHS[kind](generator)
    size = edge_index.size(1)
    edge_type = torch.randint(COUNT, (size,), generator=generator)
    weight = torch.randn(size, generator=generator, dtype=dtype)
    adjacency = Adjacency.of(edge_index, edge_type, num_nodes, COUNT, weight)

    def values(slots):
        rows = num_nodes * (COUNT if slots else 1)
        return torch.randn(runs, rows, width, generator=generator, dtype=dtype)

    return adjacency, values


def dropout(generator, runs=2):
    return Dropout.of(torch.randint(-(2**62), 2**62, (runs,), generator=generator), [0.5, 0.2][:runs])


def close(found, expected):
    loose = 1e-5 if found.dtype == torch.float32 else 1e-12
    torch.testing.assert_close(found, expected, atol=loose, rtol=loose)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize(("from_slots", "to_slots"), FORMS)
def test_gathering(kind, from_slots, to_slots, dtype, generator):
    adjacency, values = problem(kind, generator, dtype)
    read, form = values(from_slots), {"from_slots": from_slots, "to_slots": to_slots}
    columns = 7 * (COUNT if to_slots else 1)
    bias = torch.randn(2, columns, generator=generator, dtype=dtype)
    for pairs in (adjacency.gather, adjacency.spread, adjacency.plain.gather):
        for more in (
            {},
            {"gate": values(from_slots), "scale": 0.3, "factor": torch.tensor([2.0, 3.0])},
            {"finish": Finish()},
            {"finish": Finish(bias), "scale": -2.0},
            {"finish": Finish(bias, dropout(generator))},
        ):
            found = _cpu_products.gather(pairs, read, **form, **more)
            close(found, _plain.gather(pairs, read, **form, **more))


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize(("from_slots", "to_slots"), FORMS)
def test_products_of_pairs(kind, from_slots, to_slots, generator):
    adjacency, values = problem(kind, generator)
    arguments = (adjacency.gather, values(from_slots), values(to_slots))
    form = {"from_slots": from_slots, "to_slots": to_slots, "scale": 0.7}
    close(_cpu_products.pair_products(*arguments, **form), _plain.pair_products(*arguments, **form))


@pytest.mark.parametrize("kind", GRAPHS)
def test_largest_and_back(kind, generator):
    adjacency, values = problem(kind, generator)
    read = values(False).mul(2).round()  # many ties
    top, ties = _cpu_products.largest(adjacency.gather, read)
    wanted = _plain.largest(adjacency.gather, read)
    close(top, wanted[0])
    close(ties, wanted[1])
    share = values(True)
    found = _cpu_products.from_largest(adjacency.spread, read, top, share)
    close(found, _plain.from_largest(adjacency.spread, read, top, share))


@pytest.mark.parametrize("kept", [False, True])
@pytest.mark.parametrize(("rows", "columns"), [(300, 200), (5, 1000), (1, 1), (4, 0), (0, 3)])
def test_sparse_products(rows, columns, kept, generator):
    x = torch.randn(rows, columns, generator=generator, dtype=torch.float64)
    x = x * (torch.rand(rows, columns, generator=generator) < 0.2)
    features = SparseFeatures.of(x)
    close(features.to_dense(), x)
    what = dropout(generator) if kept else None
    dense = torch.randn(2, columns, 33, generator=generator, dtype=torch.float64)
    left = x.expand(2, -1, -1) if what is None else _plain.drop(x.expand(2, -1, -1), what)
    entries = features.by_node
    found = _cpu_products.sparse_product(entries.start, entries.column, entries.value, dense, what)
    close(found, left @ dense)
    close(_plain.sparse_product(entries.start, entries.column, entries.value, dense, what), left @ dense)
    dense = torch.randn(2, rows, 33, generator=generator, dtype=torch.float64)
    entries = features.by_channel
    arguments = (entries.start, entries.column, entries.value, dense, what)
    close(_cpu_products.sparse_product(*arguments, transposed=True), left.transpose(1, 2) @ dense)
    close(_plain.sparse_product(*arguments, transposed=True), left.transpose(1, 2) @ dense)


def test_dropping(generator):
    x = torch.randn(2, 50, 30, generator=generator)
    what = dropout(generator)
    close(_cpu_products.drop(x, what), _plain.drop(x, what))
    assert not torch.equal(_plain.drop(x, what)[0] == 0, _plain.drop(x, what)[1] == 0)


def test_threads_change_no_byte(generator):
    adjacency, values = problem("large", generator, torch.float32, width=16)
    read = values(True)
    features = SparseFeatures.of((torch.rand(500, 300, generator=generator) - 0.8).relu()).by_node
    dense = torch.randn(1, 300, 40, generator=generator)
    found = []
    for threads in (1, 2):
        torch.set_num_threads(threads)
        found.append(
            (
                _cpu_products.gather(adjacency.gather, read, from_slots=True, to_slots=False),
                _cpu_products.sparse_product(features.start, features.column, features.value, dense, None),
            )
        )
    assert all(torch.equal(a, b) for a, b in zip(*found, strict=True))


@pytest.mark.parametrize("threads", [1, 2])
def test_the_threads_of_torch_and_of_numba_stay_as_they_are(threads, generator):
    """Both may share one OpenMP, and the number of one is then that of the other."""
    torch.set_num_threads(threads)
    of_numba = numba.get_num_threads()
    adjacency, values = problem("large", generator, torch.float32, width=16)
    _cpu_products.gather(adjacency.gather, values(True), from_slots=True, to_slots=True)
    assert torch.get_num_threads() == threads
    assert numba.get_num_threads() == of_numba
