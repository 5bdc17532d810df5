import json
import math

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from geomgcn.experiments import Cell, CellResult, _prepare, parse_neighborhood, prepare, run_cell
from geomgcn.experiments._prepare import describe_parts, graph_of, space_of, splits_of, structure_parts
from geomgcn.experiments._spec import cell_fields
from geomgcn.graphs import canonical_edges
from geomgcn.neighborhoods import RelatedPairs
from geomgcn.nn import GAT, GCN, MLP, GeomGCN
from geomgcn.relations import PolarQuadrants, Quadrants, Sectors
from geomgcn.splits import random_splits
from geomgcn.training import Fit, Runs, TrainConfig
from graphs import classified, connected_random, unchecked

QUICK = TrainConfig(max_epochs=3, device="cpu")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOMGCN_HOME", str(tmp_path / "cache"))


@pytest.fixture
def saved(tmp_path):
    """A graph of the user's own, and its path."""

    def write(**more):
        data, _ = classified()
        path = tmp_path / "mine.npz"
        arrays = {"edge_index": data.edge_index, "x": data.x, "y": data.y, "pos": torch.rand(30, 2), **more}
        np.savez(path, **{key: np.asarray(value) for key, value in arrays.items() if value is not None})
        return str(path)

    return write


@pytest.mark.parametrize(
    ("model", "kind"),
    [("geom-gcn", GeomGCN), ("GCN", GCN), ("gat", GAT), ("mlp", MLP), ("Geom_GCN", GeomGCN)],
)
def test_a_cell_runs_from_a_name_to_a_table_entry(model, kind):
    cell = Cell("karate", model=model, num_splits=2, seed=4, train=QUICK)
    assert isinstance(prepare(cell).make_model(), kind)
    started, done = [], []
    result = run_cell(cell, on_run=lambda i, _: done.append(i), on_start=started.append)
    assert (started, done) == ([2], [0, 1])
    shown = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert shown["dataset"] == "karate"
    assert shown["preset"] == "paper"
    assert shown["test_accuracy"]["runs"] == 2
    assert shown["per_run"] == shown["test_accuracy"]["per_run"]
    assert shown["test_accuracy"]["mean"] == pytest.approx(sum(shown["per_run"]) / 2)
    again = run_cell(cell)
    for one, other in zip(result.runs.fits, again.runs.fits, strict=True):
        assert torch.equal(one.probabilities, other.probabilities)


def test_a_graph_of_ones_own_with_its_positions(saved):
    cell = Cell(saved(), neighborhood="coordinates", relation="sectors:3", num_splits=1, train=QUICK)
    ready = prepare(cell)
    assert ready.data.num_virtual_nodes == 2 * 3 + 1
    assert len(run_cell(cell).runs.fits) == 1


def test_figures_that_are_none_are_null_in_json():
    history, probabilities = torch.zeros(1, 3), torch.ones(1, 2)
    fit = Fit(1, 1, 0.5, math.nan, math.nan, history, probabilities)
    result = CellResult(Cell("karate"), Runs((fit,), interrupted=True), ("a note",))
    shown = json.loads(json.dumps(result.as_dict(), allow_nan=False))
    assert shown["test_accuracy"] == {"mean": None, "std": 0.0, "ci95": None, "runs": 1, "per_run": [None]}
    assert shown["interrupted"] is True
    assert shown["notes"] == ["a note"]


def test_the_control_differs_in_the_latent_pairs_only():
    settings = {"dataset": "karate", "num_splits": 1}
    plain, control = (prepare(Cell(**settings, control=on)).data for on in (False, True))
    graph = plain.edge_type < 4
    assert torch.equal(plain.edge_index[:, graph], control.edge_index[:, control.edge_type < 4])
    assert torch.equal(plain.edge_type, control.edge_type)
    assert not torch.equal(plain.edge_index, control.edge_index)
    again = prepare(Cell(**settings, control=True)).data
    other = prepare(Cell(**settings, control=True, seed=1)).data
    assert torch.equal(control.edge_index, again.edge_index)
    assert not torch.equal(control.edge_index, other.edge_index)


@pytest.mark.parametrize(
    ("text", "spaces"),
    [
        ("isomap", [("isomap", "isomap")]),
        ("isomap + coordinates", [("isomap", "coordinates")]),
        ("a+b,c", [("a", "b"), ("c", "c")]),
        ("released:isomap+released:poincare", [("released:isomap", "released:poincare")]),
    ],
)
def test_neighborhoods_are_parsed(text, spaces):
    assert parse_neighborhood(text) == spaces


@pytest.mark.parametrize("text", ["", "a+", "a++b", "a+b+c", "a,,b"])
def test_neighborhoods_that_cannot_be_parsed(text):
    with pytest.raises(
        ValueError, match=r"Cannot read the neighborhood '.*'\. Write a space, 'space\+space'"
    ):
        parse_neighborhood(text)


@pytest.mark.parametrize(
    ("use", "names"),
    [("both", ["graph", "latent"] * 2), ("graph", ["graph"] * 2), ("latent", ["latent"] * 2)],
)
def test_spaces_side_by_side(saved, use, names):
    cell = Cell(saved(), neighborhood="isomap,coordinates", use=use)
    data = graph_of(cell.dataset)
    edges, _ = canonical_edges(data.edge_index, 30)
    assert [part.name for part in structure_parts(cell, data, edges, [])] == names
    assert prepare(Cell(cell.dataset, neighborhood=cell.neighborhood, use=use)).data.num_virtual_nodes == (
        4 * len(names) + 1
    )


def test_one_space_for_each_neighborhood(saved):
    path = saved()
    data = graph_of(path)
    edges, _ = canonical_edges(data.edge_index, 30)
    (graph, latent), (first, _), (_, second) = (
        structure_parts(Cell(path, neighborhood=name), data, edges, [])
        for name in ("isomap+coordinates", "isomap", "coordinates")
    )
    assert torch.equal(graph.relation, first.relation)
    assert torch.equal(latent.edge_index, second.edge_index)
    assert torch.equal(latent.relation, second.relation)


def test_a_space_has_the_operator_asked_for():
    data = graph_of("karate")
    edges, _ = canonical_edges(data.edge_index, 34)
    assert space_of("Isomap", data, edges).resolved_relation == Quadrants()
    assert space_of("isomap", data, edges, "sectors:5").resolved_relation == Sectors(5)
    assert space_of("isomap", data, edges, "polarquadrants").resolved_relation == PolarQuadrants()


def test_splits_of_every_kind(saved):
    masks = {
        f"{name}_mask": np.eye(30, 4, -4 * i, dtype=bool) for i, name in enumerate(("train", "val", "test"))
    }
    published, plain = graph_of(saved(**masks)), graph_of(saved())
    assert len(splits_of(published, Cell("mine"))) == 4
    assert len(splits_of(published, Cell("mine", num_splits=2))) == 2
    assert len(splits_of(published, Cell("mine", splits="random"))) == 10
    assert len(splits_of(plain, Cell("mine"))) == 10
    first = splits_of(published, Cell("mine", splits="published"))[1]
    assert first.train.nonzero().tolist() == [[1]]
    assert first.test.nonzero().tolist() == [[9]]
    drawn, wanted = splits_of(plain, Cell("mine", seed=6))[9], random_splits(plain.y, seed=6)[9]
    assert torch.equal(drawn.train, wanted.train)
    with pytest.raises(ValueError, match=r"has 4 published splits, got num_splits=5\. Use --splits random"):
        splits_of(published, Cell("mine", num_splits=5))
    with pytest.raises(ValueError, match=r"mine has no published splits\. Use --splits random"):
        splits_of(plain, Cell("mine", splits="published"))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "geomgcn"}, r"Unknown model 'geomgcn'\. Did you mean 'geom-gcn'"),
        ({"preset": "papers"}, r"Unknown preset 'papers'\. Did you mean 'paper'"),
        ({"use": "graphs"}, r"use is one of 'both', 'graph', 'latent', got 'graphs'"),
        ({"splits": "publishd"}, r"splits is one of 'auto', 'published', 'random', got 'publishd'"),
        ({"checkpoint": "first"}, r"checkpoint is one of 'best', 'last', got 'first'"),
        ({"overlap": "none"}, r"overlap is one of 'both', 'graph', 'latent', got 'none'"),
        ({"norm": "no"}, r"norm is one of 'graph', 'union', got 'no'"),
        ({"baseline_edges": "raw"}, r"baseline_edges is one of 'symmetric', 'stored', got 'raw'"),
        ({"direction": "up"}, r"direction is one of 'gather', 'filed', got 'up'"),
        ({"num_splits": 0}, r"num_splits must be a whole number from 1 to 4294967295, got 0\. Leave it out"),
        ({"hidden": 0}, r"hidden must be a whole number from 1 to 65536, got 0\. Leave it out"),
        (
            {"hidden": 10**12},
            r"hidden must be a whole number from 1 to 65536, got 1000000000000\. Leave it out",
        ),
        ({"hidden": 1.5}, r"hidden must be a whole number from 1 to 65536, got 1\.5\. Leave it out"),
        ({"control": True, "use": "graph"}, r"use='graph' leaves N_s out\. Take use='both' or use='latent'"),
        ({"dropout": 1.0}, r"dropout must be at least 0 and below 1, got 1\.0\. Leave it out"),
    ],
)
def test_cells_that_make_no_sense_are_refused(settings, message):
    with unchecked(), pytest.raises(ValueError, match=message):
        Cell("karate", **settings)


def test_a_cell_is_a_value_with_a_title():
    cell = Cell("texas", neighborhood="released:poincare", use="latent", control=True)
    assert cell.title == "Geom-GCN released:poincare-s, random N_s"
    assert Cell("texas", model="gcn").title == "GCN"
    assert len({cell, Cell("texas", neighborhood="released:poincare", use="latent", control=True)}) == 1
    assert (cell.width, Cell("texas", hidden=7).width) == (32, 7)
    assert Cell("cora", model="gat").width == 8
    assert cell_fields()[0] == "dataset"
    assert Cell("texas", seed=9).config.seed == 9


@pytest.mark.parametrize(
    ("more", "settings", "message"),
    [
        ({"y": np.zeros(30, dtype=int)}, {}, r"at least two classes, and .* has 1\. Label nodes of a second"),
        ({"y": -np.ones(30, dtype=int)}, {}, r"labelled nodes, got none among 30\. Pass y with class ids"),
        (
            {"pos": None},
            {"neighborhood": "coordinates"},
            r"'coordinates' needs positions in the graph, got none\. Store them as 'pos'",
        ),
        (
            {},
            {"neighborhood": "isomap+released:isomap"},
            r"Cannot mix 'isomap' and 'released:isomap'.*Take both spaces from the published files, or none",
        ),
        (
            {},
            {"neighborhood": "released:isomap", "relation": "grid"},
            r"--relation grid needs positions.*Leave it out, or use a space of our own",
        ),
        ({}, {"neighborhood": "isomop"}, r"Unknown space 'isomop'\. Did you mean 'isomap'"),
        ({}, {"relation": "sector"}, r"Unknown relation operator 'sector'\. Did you mean 'sectors'"),
        (
            {"pos": np.full((30, 2), np.nan)},
            {"neighborhood": "coordinates"},
            r"NaN or infinity at 30 node\(s\), the first is node 0\. Give every node a place",
        ),
    ],
)
def test_what_cannot_be_prepared_says_why(saved, more, settings, message):
    with pytest.raises(ValueError, match=message):
        prepare(Cell(saved(**more), **settings))


def test_features_are_needed(monkeypatch):
    data = Data(y=torch.tensor([0, 1]), edge_index=torch.tensor([[0], [1]]), num_nodes=2)
    monkeypatch.setattr(_prepare, "graph_of", lambda name: data)
    with pytest.raises(ValueError, match=r"needs features, and toy has none\. Set x to an identity matrix"):
        prepare(Cell("toy"))


def test_published_pairs_must_fit_the_graph(monkeypatch, saved):
    edges = connected_random(30, 3, 5)
    pairs = RelatedPairs(edges, torch.zeros(edges.size(1)).long(), 4)
    monkeypatch.setattr(_prepare, "released_pairs", lambda *_: (pairs, pairs))
    monkeypatch.setattr(_prepare, "released_file", lambda *_: "")
    message = r"does not fit its graph: the graph pairs differ\. Use the files that belong to this version"
    with pytest.raises(ValueError, match=message):
        prepare(Cell(saved(), neighborhood="released:isomap"))


@pytest.mark.parametrize(
    ("dataset", "space", "use", "noted"),
    [
        ("citeseer", "isomap", "both", True),
        ("Pubmed", "Isomap", "graph", True),
        ("citeseer", "isomap", "latent", False),
        ("citeseer", "poincare", "both", False),
        ("cora", "isomap", "both", False),
    ],
)
def test_leaking_relations_are_noted(monkeypatch, dataset, space, use, noted):
    edges = connected_random(30, 9, 0)
    relation = torch.zeros(edges.size(1)).long()
    parts = (RelatedPairs(edges, relation, 4, "graph"), RelatedPairs(edges, relation, 4, "latent"))
    monkeypatch.setattr(_prepare, "released_pairs", lambda *_: parts)
    notes = []
    cell = Cell(dataset, neighborhood=f"released:{space}", use=use)
    structure_parts(cell, classified()[0], edges, notes)
    assert [("carry labels, those of test nodes too" in note) for note in notes] == [True] * noted


def test_a_cap_on_coincident_nodes_is_noted(saved):
    notes = []
    path = saved(pos=np.zeros((30, 2)))
    data = graph_of(path)
    edges, _ = canonical_edges(data.edge_index, 30)
    structure_parts(Cell(path, neighborhood="coordinates"), data, edges, notes)
    assert notes == ["Coincident nodes exceed the size of N_g: each keeps 4 of them in N_s."]


def test_parts_are_described():
    part = RelatedPairs(torch.tensor([[1, 2, 0], [0, 0, 1]]), torch.tensor([1, 1, 3]), 4, "latent")
    assert describe_parts([part], 4) == ["latent: 3 pairs, 0.75 a node, by relation 0, 2, 0, 1"]


def test_the_loaded_graph_is_not_changed_by_a_cell(monkeypatch):
    data, _ = classified()
    before = data.clone()
    monkeypatch.setattr(_prepare, "graph_of", lambda name: data.clone())
    for model in ("geom-gcn", "gcn"):
        prepare(Cell("toy", model=model))
    assert torch.equal(data.x, before.x)
    assert torch.equal(data.edge_index, before.edge_index)


def test_two_published_spaces_give_one_neighborhood_each(monkeypatch):
    edges = connected_random(30, 9, 0)
    asked = []

    def pairs_of(dataset, space, direction):
        asked.append((dataset, space, direction))
        relation = torch.full((edges.size(1),), ["isomap", "poincare"].index(space))
        return RelatedPairs(edges, relation, 4, "graph"), RelatedPairs(edges, relation, 4, "latent")

    monkeypatch.setattr(_prepare, "released_pairs", pairs_of)
    cell = Cell("texas", neighborhood="released:isomap+released:poincare", preset="released")
    graph, latent = structure_parts(cell, classified()[0], edges, [])
    assert asked == [("texas", "isomap", "filed"), ("texas", "poincare", "filed")]
    assert graph.relation.unique().tolist() == [0]
    assert latent.relation.unique().tolist() == [1]


@pytest.mark.parametrize(("name", "value"), [("seed", 5), ("weight_decay", 0.1), ("checkpoint", "last")])
def test_settings_of_the_cell_are_not_taken_from_elsewhere(name, value):
    with pytest.raises(
        ValueError, match=rf"A cell has a {name} of its own.*Pass Cell\(\.\.\., {name}={value!r}\)"
    ):
        Cell("karate", train=TrainConfig(**{name: value}))


def test_settings_of_a_result_are_filled_in():
    result = run_cell(
        Cell("karate", "gcn", num_splits=1, train=TrainConfig(max_epochs=2, learning_rate=0.01))
    )
    settings = result.settings()
    assert (settings["splits"], settings["hidden"], settings["overlap"]) == ("random", 16, "both")
    assert (settings["learning_rate"], settings["weight_decay"], settings["checkpoint"]) == (
        0.01,
        5e-6,
        "best",
    )
