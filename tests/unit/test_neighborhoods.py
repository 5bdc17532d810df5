import copy
import random
from collections import Counter

import pytest
import torch
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.transforms import Compose

from geomgcn.distances import Euclidean, Geodesic
from geomgcn.embeddings import Isomap
from geomgcn.latent import latent_neighborhood
from geomgcn.neighborhoods import (
    RelatedPairs,
    Space,
    StructuralNeighborhood,
    graph_norm,
    neighborhoods_of,
    relate,
    shuffled,
    structural_edges,
    union_norm,
    write_structure,
)
from geomgcn.relations import Grid, PolarQuadrants, Quadrants, Sectors
from graphs import connected_random, no_edges, path, star, unchecked


def random_part(rng, num_nodes, num_relations, name):
    pairs = [p for p in ((u, v) for u in range(num_nodes) for v in range(num_nodes)) if p[0] != p[1]]
    chosen = rng.sample(pairs, rng.randrange(len(pairs) + 1))
    relation = [rng.randrange(num_relations) for _ in chosen]
    index = torch.tensor(chosen, dtype=torch.long).view(-1, 2).t()
    return RelatedPairs(index, torch.tensor(relation).long(), num_relations, name)


def entries(edge_index, edge_type):
    return [(*pair, k) for pair, k in zip(edge_index.t().tolist(), edge_type.tolist(), strict=True)]


def merged_slowly(parts, num_nodes, overlap, self_loops):
    """A dictionary of pairs, written line by line, as the released program reads its file."""
    found, first_id = {}, 0
    for part in parts:
        for u, v, relation in entries(part.edge_index, part.relation):
            kept = found.setdefault((u, v), [])
            if overlap == "latent":
                kept.clear()
            if overlap != "graph" or not kept:
                kept.append(first_id + relation)
        first_id += part.num_relations
    result = [(u, v, k) for (u, v), kept in found.items() for k in kept]
    if self_loops:
        result += [(v, v, first_id) for v in range(num_nodes)]
    return Counter(result), first_id + self_loops


@pytest.mark.parametrize("overlap", ["both", "graph", "latent"])
@pytest.mark.parametrize("self_loops", [True, False])
@pytest.mark.parametrize("relations", [(4,), (4, 4), (2, 9, 3), ()])
def test_merging_equals_a_dictionary(overlap, self_loops, relations):
    rng = random.Random(str((overlap, relations)))
    for _ in range(10):
        num_nodes = rng.randrange(1, 7)
        parts = [random_part(rng, num_nodes, k, f"part{i}") for i, k in enumerate(relations)]
        edges = structural_edges(parts, num_nodes, overlap=overlap, self_loops=self_loops)
        wanted, count = merged_slowly(parts, num_nodes, overlap, self_loops)
        assert Counter(entries(edges.edge_index, edges.edge_type)) == wanted
        assert edges.num_virtual_nodes == len(edges.names) == count
        assert edges.edge_type.dtype == edges.edge_index.dtype == torch.int64


def test_a_virtual_node_says_what_it_is():
    part = RelatedPairs(no_edges(), torch.zeros(0).long(), 2, "latent")
    assert structural_edges([part], 3).names == ("latent 0", "latent 1", "self")


def test_relations_of_a_large_graph_are_those_of_its_pairs():
    """More pairs than are computed at once."""
    pos = torch.rand(1500, 2)
    pairs = torch.cartesian_prod(torch.arange(1500), torch.arange(1500)).t()
    relation = relate(pairs, pos, Quadrants()).relation
    sample = torch.randint(pairs.size(1), (2000,))
    for (u, v), found in zip(pairs[:, sample].t().tolist(), relation[sample].tolist(), strict=True):
        assert found == int(pos[v, 0] <= pos[u, 0]) + 2 * int(pos[v, 1] > pos[u, 1])


def slow_norm(pairs, degree):
    return torch.tensor([degree[u] ** -0.5 * degree[v] ** -0.5 if degree[u] else 0.0 for u, v in pairs])


@pytest.mark.parametrize("seed", range(5))
def test_weights_of_pairs(seed):
    rng = random.Random(seed)
    num_nodes = 8
    graph = connected_random(6, 4, seed)  # nodes 6 and 7 have no neighbors
    part = random_part(rng, num_nodes, 4, "latent")
    pairs = part.edge_index.t().tolist()
    in_graph = Counter(graph[1].tolist())
    by_graph = slow_norm(pairs, [in_graph[v] + 1 for v in range(num_nodes)])
    torch.testing.assert_close(graph_norm(part.edge_index, graph, num_nodes), by_graph)
    in_union = Counter(part.edge_index[1].tolist())
    by_union = slow_norm(pairs, [in_union[v] for v in range(num_nodes)])
    torch.testing.assert_close(union_norm(part.edge_index, num_nodes), by_union)


def test_a_source_that_receives_nothing_weighs_nothing_in_the_union():
    assert union_norm(torch.tensor([[0], [1]]), 2).tolist() == [0.0]


@pytest.mark.parametrize("seed", range(5))
def test_control_keeps_size_degrees_and_relations(seed):
    num_nodes = 30
    part = random_part(random.Random(seed), num_nodes, 4, "latent")
    control = shuffled(part, num_nodes, seed)
    assert torch.equal(control.relation, part.relation)
    assert (control.num_relations, control.name) == (part.num_relations, part.name)
    assert not torch.equal(control.edge_index, part.edge_index)
    for ends in (0, 1):
        before, after = (sorted(Counter(p.edge_index[ends].tolist()).values()) for p in (part, control))
        assert before == after
    assert len(set(map(tuple, control.edge_index.t().tolist()))) == part.edge_index.size(1)
    assert (control.edge_index[0] != control.edge_index[1]).all()
    assert torch.equal(control.edge_index, shuffled(part, num_nodes, seed).edge_index)
    assert not torch.equal(control.edge_index, shuffled(part, num_nodes, seed + 1).edge_index)


def test_control_leaves_the_global_generator_alone():
    before = torch.get_rng_state()
    shuffled(random_part(random.Random(0), 9, 4, "latent"), 9)
    assert torch.equal(before, torch.get_rng_state())


def placed(num_nodes=12, seed=0, **more):
    torch.manual_seed(seed)
    pos = torch.rand(num_nodes, 2, dtype=torch.float64) - 0.5
    return Data(x=torch.randn(num_nodes, 3), pos=pos, edge_index=connected_random(num_nodes, 8, seed), **more)


def test_transform_is_its_parts_put_together():
    data = placed()
    out = StructuralNeighborhood(self_loops=False)(data)
    graph = set(map(tuple, data.edge_index.t().tolist()))
    near = latent_neighborhood(data.pos, len(graph))
    wanted = Counter()
    for first_id, pairs in ((0, graph), (4, set(map(tuple, near.edge_index.t().tolist())))):
        for u, v in pairs:
            z_u, z_v = data.pos[u], data.pos[v]
            wanted[u, v, first_id + int(z_v[0] <= z_u[0]) + 2 * int(z_v[1] > z_u[1])] += 1
    assert Counter(entries(out.edge_index, out.edge_type)) == wanted
    assert out.num_virtual_nodes == 8
    assert out.radius == near.radius
    torch.testing.assert_close(out.edge_weight, graph_norm(out.edge_index, data.edge_index, 12))


def test_transform_leaves_its_input_as_it_is():
    data = placed()
    before = copy.deepcopy(data)
    out = StructuralNeighborhood()(data)
    assert data.keys() == before.keys()
    assert all(torch.equal(data[key], before[key]) for key in before.keys())  # noqa: SIM118 - PyG's keys
    assert out.x is data.x


@pytest.mark.parametrize(("use", "ids"), [(("graph",), {0, 1, 2, 3}), (("latent",), {0, 1, 2, 3})])
def test_one_neighborhood_only(use, ids):
    data = placed()
    out = StructuralNeighborhood(use=use)(data)
    assert out.num_virtual_nodes == 5
    pairs = set(map(tuple, out.edge_index[:, out.edge_type != 4].t().tolist()))
    assert set(out.edge_type.tolist()) - {4} <= ids
    assert (pairs == set(map(tuple, data.edge_index.t().tolist()))) == (use == ("graph",))


@pytest.mark.parametrize("overlap", ["graph", "latent"])
def test_transform_passes_its_rules_on(overlap):
    data = placed(20)
    both = StructuralNeighborhood()(data)
    out = StructuralNeighborhood(overlap=overlap, norm="union")(data)
    assert out.edge_index.size(1) < both.edge_index.size(1)
    torch.testing.assert_close(out.edge_weight, union_norm(out.edge_index, 20))
    shared = Counter(map(tuple, both.edge_index.t().tolist()))
    for u, v, k in entries(out.edge_index, out.edge_type):
        if shared[u, v] == 2:
            assert (k < 4) == (overlap == "graph")


def test_two_spaces_at_once():
    data = placed(poincare_pos=(torch.rand(12, 2) - 0.5).double(), poincare_geometry="poincare")
    out = StructuralNeighborhood(latent_pos="poincare_pos", self_loops=False)(data)
    found = neighborhoods_of(data.edge_index, Space(data.pos), Space(data.poincare_pos, "poincare"))
    assert torch.equal(out.edge_type, torch.cat([found.graph.relation, found.latent.relation + 4]))
    assert torch.equal(found.graph.relation, relate(data.edge_index, data.pos, Quadrants()).relation)
    polar = relate(found.latent.edge_index, data.poincare_pos, PolarQuadrants()).relation
    assert torch.equal(found.latent.relation, polar)


def test_geometry_chooses_operator_and_distance_unless_told():
    data = placed(geometry="poincare")
    default, told = StructuralNeighborhood(), StructuralNeighborhood(Sectors(3), Geodesic())
    assert default(data).num_virtual_nodes == 9
    assert told(data).num_virtual_nodes == 7
    assert told(data).radius == latent_neighborhood(data.pos, data.edge_index.size(1), Geodesic()).radius
    assert default(data).radius != StructuralNeighborhood(distance=Euclidean())(data).radius


def test_the_latent_neighborhood_is_as_large_as_the_graphs():
    data = Isomap()(Data(edge_index=connected_random(60, 60, 3), num_nodes=60))
    found = neighborhoods_of(data.edge_index, Space(data.pos))
    size = data.edge_index.size(1)
    assert found.latent.edge_index.size(1) == pytest.approx(size, rel=0.2)


def test_directed_input_with_loops_is_made_canonical_first():
    data = Data(pos=torch.rand(4, 2), edge_index=torch.tensor([[0, 1, 2, 0, 3], [1, 2, 3, 1, 3]]))
    out = StructuralNeighborhood(use=("graph",), self_loops=False)(data)
    assert sorted(map(tuple, out.edge_index.t().tolist())) == [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2)]


def test_graphs_at_the_edge():
    """One node; no edges; a node without neighbors, whose N_s may be empty too."""
    for num_nodes in (1, 4):
        out = StructuralNeighborhood()(Data(pos=torch.rand(num_nodes, 2), edge_index=no_edges()))
        assert out.edge_type.tolist() == [8] * num_nodes
        assert out.edge_weight.tolist() == [1.0] * num_nodes
    pos = torch.tensor([[0.0, 0.0], [0.1, 0.0], [50.0, 0.0]])
    out = StructuralNeighborhood(self_loops=False)(Data(pos=pos, edge_index=path(2)))
    assert 2 not in out.edge_index


def test_a_transform_among_others():
    steps = Compose([Isomap(), StructuralNeighborhood(Grid(0.5))])
    out = steps(Data(edge_index=star(5), num_nodes=6))
    assert out.num_virtual_nodes == 19
    shown = "relation=Grid(cell=0.5), use=('graph', 'latent'), overlap='both', norm='graph'"
    assert repr(StructuralNeighborhood(Grid(0.5))) == f"StructuralNeighborhood({shown})"


def test_positions_are_needed():
    message = r"needs positions in data\.pos, got none\. Embed the graph first, for example with Isomap"
    with pytest.raises(ValueError, match=message):
        StructuralNeighborhood()(Data(edge_index=path(3), num_nodes=3))
    with pytest.raises(ValueError, match=r"needs positions in data\.other_pos, got none"):
        StructuralNeighborhood(latent_pos="other_pos")(placed())


@pytest.mark.parametrize("rows", [2, 4])
def test_every_node_needs_a_position(rows):
    message = rf"one row of data\.pos for each of 3 nodes, got shape \[{rows}, 2\]\. Embed this very graph"
    with pytest.raises(ValueError, match=message):
        StructuralNeighborhood()(Data(x=torch.ones(3, 1), pos=torch.rand(rows, 2), edge_index=path(2)))


def test_edges_are_needed():
    with pytest.raises(ValueError, match=r"needs data\.edge_index, got none\. Set it to an empty"):
        StructuralNeighborhood()(Data(pos=torch.rand(3, 2)))


def test_a_structural_neighborhood_is_no_graph():
    structured = StructuralNeighborhood()(placed())
    with pytest.raises(
        ValueError, match=r"got a structural neighborhood already\. Embed the data first, and apply"
    ):
        StructuralNeighborhood()(structured)
    with pytest.raises(ValueError, match=r"Isomap needs the edges of a graph, got a structural neighborhood"):
        Isomap()(structured)


def test_one_neighborhood_is_named_in_a_sequence():
    with (
        unchecked(),
        pytest.raises(TypeError, match=r"use is a sequence of names, got 'graph'\. Pass use=\('g"),
    ):
        StructuralNeighborhood(use="graph")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 1e200])
def test_relations_need_positions_with_distances(bad):
    pos = torch.zeros(3, 2, dtype=torch.float64)
    pos[1, 0] = bad
    with pytest.raises(ValueError, match=r"Positions must (be finite, got .* node 1\.|not exceed 1e\+150)"):
        relate(torch.tensor([[0], [1]]), pos, Quadrants())


def test_positions_that_are_no_numbers_are_refused_even_without_edges():
    pos = torch.tensor([[0.0, 0.0], [float("nan"), 0.0]])
    for edge_index in (path(2), no_edges()):
        with pytest.raises(ValueError, match=r"NaN or infinity at 1 node\(s\), the first is node 1\. Give"):
            StructuralNeighborhood()(Data(pos=pos, edge_index=edge_index))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: StructuralNeighborhood(use=("graf",)), "use is one of 'graph', 'latent', got 'graf'"),
        (lambda: StructuralNeighborhood(overlap="none"), "overlap is one of 'both', 'graph', 'latent', got"),
        (lambda: StructuralNeighborhood(norm="degree"), "norm is one of 'graph', 'union', got 'degree'"),
        (lambda: structural_edges([], 2, overlap="all"), "overlap is one of 'both', 'graph', 'latent'"),
        (lambda: write_structure(Data(num_nodes=1), [], no_edges(), norm="no"), "norm is one of 'graph', "),
        (lambda: Space(torch.zeros(1, 2), "spherical"), "'euclidean' or 'poincare', got 'spherical'"),
    ],
)
def test_unknown_choices_are_refused(call, message):
    with unchecked(), pytest.raises(ValueError, match=message):
        call()


def test_pairs_out_of_range_are_refused():
    beyond = RelatedPairs(torch.tensor([[0], [7]]), torch.tensor([0]), 4)
    with pytest.raises(ValueError, match=r"ids from 0 to 2, got 0 -> 7 at position 0"):
        structural_edges([beyond], 3)
    with pytest.raises(ValueError, match=r"ids from 0 to 2, got 0 -> 7 at position 0"):
        relate(beyond.edge_index, torch.zeros(3, 2), Quadrants())
    wrong = RelatedPairs(torch.tensor([[0], [1]]), torch.tensor([4]), 4, "latent")
    message = r"The latent neighborhood needs relations from 0 to 3, got 4 at pair 0\. Return ids below"
    with pytest.raises(ValueError, match=message):
        structural_edges([wrong], 3)


def test_attributes_of_the_old_edges_are_left_out():
    data = Data(x=torch.rand(5, 2), edge_index=path(5), edge_attr=torch.rand(8, 3), pos=torch.rand(5, 2))
    found = StructuralNeighborhood()(data)
    assert "edge_attr" not in found
    assert found.validate()
    assert found.coalesce().num_edges <= found.edge_type.numel()
    assert data.edge_attr.shape == (8, 3)  # the input is left as it is


def test_a_batch_is_refused():
    graph = Data(edge_index=path(3), pos=torch.rand(3, 2), num_nodes=3)
    batch = Batch.from_data_list([graph, graph])
    with pytest.raises(ValueError, match=r"needs one graph, got a batch.*Apply it to each graph before"):
        StructuralNeighborhood()(batch)
    each = Batch.from_data_list([StructuralNeighborhood()(graph)] * 2)
    assert (each.batch[each.edge_index[0]] == each.batch[each.edge_index[1]]).all()


def test_other_kinds_of_data_are_refused():
    with (
        unchecked(),
        pytest.raises(TypeError, match=r"StructuralNeighborhood needs the Data of one kind of nodes"),
    ):
        StructuralNeighborhood().forward(HeteroData())


def test_the_space_of_the_latent_neighborhood_brings_its_own_distance():
    edges = path(4)
    disc = Space(torch.tensor([[0.0, 0.0], [0.9, 0.0], [0.95, 0.0], [0.2, 0.0]]).double(), "poincare")
    alone = neighborhoods_of(edges, disc)
    both = neighborhoods_of(edges, Space(torch.rand(4, 2).double()), disc)
    assert both.radius == alone.radius
    assert torch.equal(both.latent.edge_index, alone.latent.edge_index)
    assert torch.equal(both.latent.relation, alone.latent.relation)
    straight = neighborhoods_of(edges, Space(disc.pos))  # the same places, another distance
    assert not torch.equal(straight.latent.edge_index, alone.latent.edge_index)
