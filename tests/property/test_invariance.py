"""Names of nodes and the order of edges do not matter (Theorem 1), and geometry does (Section 2.1)."""

import random

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.linalg import eigh
from scipy.sparse import coo_array
from scipy.sparse.csgraph import shortest_path
from torch_geometric.data import Data
from torch_geometric.nn import SimpleConv

from geomgcn.embeddings import Isomap
from geomgcn.graphs import canonical_edges
from geomgcn.neighborhoods import StructuralNeighborhood
from geomgcn.nn import GeomConv, GeomGCN
from geomgcn.relations import Grid, Quadrants, Sectors
from graphs import connected_random, star

OPERATORS = [Quadrants(), Sectors(5), Grid(1.0)]
LOW = ["sum", "mean", "max", "energy"]


def has_no_symmetry(edge_index, num_nodes):
    """Whether the two axes of Isomap are determined: simple eigenvalues, and one tail longer."""
    table = coo_array((torch.ones(edge_index.size(1)), tuple(edge_index)), shape=(num_nodes, num_nodes))
    squared = torch.from_numpy(shortest_path(table.tocsr(), unweighted=True)).square()
    centred = squared - squared.mean(0) - squared.mean(1, keepdim=True) + squared.mean()
    values, vectors = eigh(-centred.numpy() / 2)
    skewness = abs((vectors[:, -2:] ** 3).sum(0))
    return np.diff(values[-3:]).min() > 0.05 and skewness.min() > 1e-3


def flow(edge_index, x, operator, low, num_nodes):
    """From edges to logits, with weights that depend on nothing."""
    data = Data(x=x, edge_index=edge_index, num_nodes=num_nodes)
    data = StructuralNeighborhood(operator)(Isomap()(data))
    torch.manual_seed(0)
    model = GeomGCN(x.size(1), 4, 3, data.num_virtual_nodes, low_level=low).double().eval()
    weight = data.edge_weight.double() if low == "sum" else None
    return data, model(data.x, data.edge_index, data.edge_type, weight).detach()


@pytest.mark.parametrize("low", LOW)
@settings(max_examples=8, deadline=None)
@given(seed=st.integers(0, 10**6), num_nodes=st.integers(6, 25), operator=st.sampled_from(OPERATORS))
def test_renaming_nodes_renames_the_outputs(low, seed, num_nodes, operator):
    edge_index = connected_random(num_nodes, num_nodes // 2, seed)
    assume(has_no_symmetry(edge_index, num_nodes))
    x = torch.randn(num_nodes, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))
    new_name = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(seed + 1))
    renamed_x = torch.empty_like(x)
    renamed_x[new_name] = x
    data, out = flow(edge_index, x, operator, low, num_nodes)
    renamed, renamed_out = flow(new_name[edge_index], renamed_x, operator, low, num_nodes)
    assert renamed.radius == pytest.approx(data.radius, rel=1e-6)
    torch.testing.assert_close(renamed_out[new_name], out, rtol=1e-5, atol=1e-5)
    assert out.std(0).min() > 1e-4  # and the outputs are not all alike


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10**6), num_nodes=st.integers(2, 15))
def test_order_direction_and_repetition_of_edges_change_no_bit(seed, num_nodes):
    edge_index = connected_random(num_nodes, num_nodes, seed)
    x = torch.randn(num_nodes, 3, dtype=torch.float64)
    rng = random.Random(seed)
    once = [
        pair if rng.random() < 0.5 else pair[::-1] for pair in edge_index.t().tolist() if pair[0] < pair[1]
    ]
    messy = once + rng.choices(once, k=3) + [[0, 0]]
    rng.shuffle(messy)
    data, out = flow(edge_index, x, Quadrants(), "sum", num_nodes)
    shuffled, shuffled_out = flow(torch.tensor(messy).t(), x, Quadrants(), "sum", num_nodes)
    assert torch.equal(data.pos, shuffled.pos)
    assert torch.equal(data.edge_index, shuffled.edge_index)
    assert torch.equal(data.edge_type, shuffled.edge_type)
    assert torch.equal(out, shuffled_out)


def case_study(leaves):
    """A star whose middle is at the origin, all features equal."""
    pos = torch.tensor([[0.0, 0.0], *leaves])
    return Data(x=torch.ones(len(pos), 2), pos=pos.double(), edge_index=star(len(leaves)))


class TestCaseStudy:
    """Section 2.1: relations of the central node's neighbors {2, 8} and {2, 7, 9}, counted from 1."""

    first = case_study([[0.0, 2.0], [0.0, -2.0]])
    second = case_study([[0.0, 2.0], [-2.0, -2.0], [2.0, -2.0]])

    def structure(self, data):
        return StructuralNeighborhood(Grid(1.0), use=("graph",), self_loops=False)(data)

    @pytest.mark.parametrize(("graph", "wanted"), [("first", {2, 8}), ("second", {2, 7, 9})])
    def test_relations_are_the_papers(self, graph, wanted):
        data = self.structure(getattr(self, graph))
        assert {r + 1 for r in data.edge_type[data.edge_index[1] == 0].tolist()} == wanted

    @pytest.mark.parametrize("aggregation", ["mean", "max"])
    def test_plain_aggregation_cannot_tell_them_apart(self, aggregation):
        simple = SimpleConv(aggregation)
        one = GeomConv(2, 3, num_virtual_nodes=1, low_level=aggregation)
        outputs = []
        for data in (self.first, self.second):
            no_types = torch.zeros(data.edge_index.size(1), dtype=torch.long)
            plain = simple(data.x, data.edge_index)
            ours = one(data.x, data.edge_index, no_types)
            outputs.append(torch.cat([plain, ours], dim=1))
        # Not one node of either graph differs from any other, however often the layer is stacked.
        torch.testing.assert_close(outputs[0], outputs[0][:1].expand(3, -1))
        torch.testing.assert_close(outputs[1], outputs[0][:1].expand(4, -1))

    @pytest.mark.parametrize("high", ["cat", "mean"])
    @pytest.mark.parametrize("aggregation", ["mean", "max"])
    def test_the_structural_neighborhood_tells_them_apart(self, aggregation, high):
        torch.manual_seed(0)
        conv = GeomConv(2, 3, num_virtual_nodes=9, low_level=aggregation, high_level=high)
        first, second = (
            conv(data.x, data.edge_index, data.edge_type)[0]
            for data in map(self.structure, (self.first, self.second))
        )
        assert (first - second).abs().max() > 1e-2

    def test_they_are_not_isomorphic(self):
        sizes = [canonical_edges(data.edge_index, data.num_nodes)[1] for data in (self.first, self.second)]
        assert [(report.num_nodes, report.num_edges) for report in sizes] == [(3, 4), (4, 6)]
