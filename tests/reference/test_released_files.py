"""The published neighborhood files, read again here in another way, and the findings about them."""

import os
from collections import Counter
from pathlib import Path

import pytest
import torch

from geomgcn.datasets import load
from geomgcn.experiments import Cell, prepare
from geomgcn.graphs import canonical_edges
from geomgcn.neighborhoods import union_norm
from geomgcn.released import DATASETS, LEAKING, SPACES, released_pairs

MIRROR = os.environ.get("GEOMGCN_MIRROR")

pytestmark = [
    pytest.mark.reference,
    pytest.mark.skipif(not MIRROR, reason="GEOMGCN_MIRROR names no mirror of the data"),
]

LARGE = {"pubmed", "actor", "chameleon"}
FILES = [
    pytest.param(dataset, space, marks=[pytest.mark.slow] if dataset in LARGE else [])
    for dataset in DATASETS
    for space in SPACES
]


def lines_of(dataset, space):
    revision, name = DATASETS[dataset]
    folder = Path(MIRROR) / "raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn" / revision
    file = f"outf_nodes_space_relation_{name}_{SPACES[space]}.txt"
    text = (folder / "structural_neighborhood" / file).read_text()
    return [line.replace(",", "\t").split("\t") for line in text.splitlines()[1:]]


@pytest.mark.parametrize(("dataset", "space"), FILES)
def test_every_row_arrives(dataset, space):
    lines = lines_of(dataset, space)
    parts = dict(zip(("graph", "latent_space"), released_pairs(dataset, space, "filed"), strict=True))
    for name, part in parts.items():
        wanted = [(int(u), int(v), int(r)) for u, v, kind, r in lines if kind == name]
        ours = torch.cat([part.edge_index, part.relation.view(1, -1)]).t().tolist()
        assert list(map(tuple, ours)) == wanted
    assert sum(part.edge_index.size(1) for part in parts.values()) == len(lines)
    gathered = released_pairs(dataset, space)[1]
    assert torch.equal(gathered.edge_index.flip(0), parts["latent_space"].edge_index)


@pytest.mark.parametrize(("dataset", "space"), FILES)
def test_relations_mirror_but_for_the_files_that_leak(dataset, space):
    """0 and 3 are opposite, and so are 1 and 2."""
    graph, _ = released_pairs(dataset, space)
    relation = dict(zip(map(tuple, graph.edge_index.t().tolist()), graph.relation.tolist(), strict=True))
    broken = sum(relation[v, u] != 3 - r for (u, v), r in relation.items())
    assert (broken > 0) == ((dataset, space) in LEAKING)


def test_the_leak_is_the_one_that_was_found():
    """P(same label | relation) on Citeseer's graph pairs, as in the notes on the published files."""
    graph, _ = released_pairs("citeseer", "isomap")
    y = load("citeseer").y
    alike = (y[graph.edge_index[0]] == y[graph.edge_index[1]]).double()
    shares = [round(float(alike[graph.relation == r].mean()), 2) for r in range(4)]
    assert shares == [0.72, 0.75, 0.96, 0.23]


@pytest.mark.parametrize(
    ("dataset", "space", "ratio"),
    [("cora", "isomap", 0.92), ("cora", "struc2vec", 0.55)],
)
def test_sizes_break_the_radius_rule_as_noted(dataset, space, ratio):
    graph, latent = released_pairs(dataset, space)
    assert latent.edge_index.size(1) / graph.edge_index.size(1) == pytest.approx(ratio, abs=0.006)


def test_nearly_no_node_of_wisconsin_receives_a_latent_message():
    _, latent = released_pairs("wisconsin", "poincare", "filed")
    assert 251 - len(latent.edge_index[1].unique()) == 239
    assert len(released_pairs("wisconsin", "poincare")[1].edge_index[1].unique()) > 100


@pytest.mark.parametrize("space", SPACES)
def test_both_presets_on_texas(space):
    """The quirks of the released program, switched by the preset (overlap, norm, direction, self-loops)."""
    settings = {"neighborhood": f"released:{space}", "num_splits": 1}
    graph_edges, _ = canonical_edges(load("texas").edge_index, 183)
    for preset in ("paper", "released"):
        data = prepare(Cell("texas", preset=preset, **settings)).data
        assert data.num_virtual_nodes == 9
        loops = data.edge_index[:, data.edge_type == 8]
        assert loops.tolist() == [list(range(183))] * 2
        pairs = Counter(map(tuple, data.edge_index.t().tolist()))
        graph, latent = released_pairs("texas", space, "filed" if preset == "released" else "gather")
        either = [set(map(tuple, part.edge_index.t().tolist())) for part in (graph, latent)]
        in_both = either[0] & either[1]
        assert set(pairs) - {(v, v) for v in range(183)} == either[0] | either[1]
        assert either[0] == set(map(tuple, graph_edges.t().tolist()))
        assert all(pairs[pair] == (2 if preset == "paper" else 1) for pair in in_both)
        if preset == "released":
            kinds = dict(zip(map(tuple, data.edge_index.t().tolist()), data.edge_type.tolist(), strict=True))
            assert all(4 <= kinds[pair] < 8 for pair in in_both)
            torch.testing.assert_close(data.edge_weight, union_norm(data.edge_index, 183))
