import dataclasses

import pytest
import torch
from torch_geometric.data import Data

from geomgcn.experiments import Cell, _prepare, prepare
from geomgcn.graphs import canonical_edges
from geomgcn.neighborhoods import RelatedPairs, graph_norm, union_norm
from geomgcn.nn import GeomGCN
from geomgcn.training import (
    PRESETS,
    TrainConfig,
    gat_out_heads,
    hidden_channels,
    preset_by_name,
    row_normalize,
    weight_decay,
)

WEBKB = ("cornell", "cornell-superseded", "texas", "wisconsin")
OTHERS = ("cora", "citeseer", "pubmed", "chameleon", "squirrel", "actor", "minesweeper", "karate")


def test_the_two_presets_differ_in_the_quirks_and_in_nothing_else():
    paper, released = (dataclasses.asdict(PRESETS[name]) for name in ("paper", "released"))
    assert paper == {
        "name": "paper",
        "checkpoint": "best",
        "overlap": "both",
        "norm": "graph",
        "baseline_edges": "symmetric",
        "direction": "gather",
        "self_loops": "on",
        "decay": "run",
    }
    assert released == {
        "name": "released",
        "checkpoint": "last",
        "overlap": "latent",
        "norm": "union",
        "baseline_edges": "stored",
        "direction": "filed",
        "self_loops": "on",
        "decay": "run",
    }


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("decay", ["run", "printed"])
@pytest.mark.parametrize("dataset", [*WEBKB, *OTHERS])
def test_weight_decays_of_paper_and_program_are_exchanged(preset, decay, dataset):
    small = (dataset in WEBKB) == (decay == "printed")
    config = dataclasses.replace(PRESETS[preset], decay=decay).train_config(
        dataset, TrainConfig(patience=7, seed=5)
    )
    assert config.weight_decay == weight_decay(dataset, decay) == (5e-6 if small else 5e-5)
    assert (config.patience, config.seed) == (7, 5)
    assert config.checkpoint == PRESETS[preset].checkpoint


def test_widths_are_the_papers():
    """Section 4.2 and its appendix."""
    wanted = {
        "cora": (16, 8),
        "citeseer": (16, 8),
        "pubmed": (64, 8),
        "chameleon": (48, 48),
        "squirrel": (48, 48),
        "actor": (32, 32),
        "cornell": (32, 32),
        "texas": (32, 32),
        "wisconsin": (32, 32),
        "karate": (16, 8),
    }
    for dataset, (width, per_head) in wanted.items():
        assert hidden_channels(dataset, "geom-gcn") == hidden_channels(dataset, "gcn") == width
        assert hidden_channels(dataset.upper(), "GAT") == per_head
        assert gat_out_heads(dataset) == (8 if dataset == "pubmed" else 1)


def test_rows_are_normalized_and_empty_ones_stay():
    x = torch.tensor([[1.0, 3.0], [0.0, 0.0], [-2.0, 2.0]])
    assert row_normalize(x).tolist() == [[0.25, 0.75], [0.0, 0.0], [-0.5, 0.5]]


def test_presets_by_name():
    assert preset_by_name("Paper") is PRESETS["paper"]
    with pytest.raises(
        ValueError, match=r"Unknown preset 'release'\. Did you mean 'released'\? Known: paper"
    ):
        preset_by_name("release")


@pytest.fixture
def one_way_graph(monkeypatch):
    """A directed graph with 'published' neighborhoods that share a pair; their direction is noted."""
    edge_index = torch.tensor([[0, 1, 2, 3, 4], [1, 2, 3, 4, 5]])
    x = torch.arange(12.0).view(6, 2)
    data = Data(x=x, y=torch.tensor([0, 1] * 3), edge_index=edge_index, num_nodes=6)
    graph_edges, _ = canonical_edges(edge_index, 6)
    graph = RelatedPairs(graph_edges, torch.arange(10) % 4, 4, "graph")
    latent = RelatedPairs(torch.tensor([[0, 5], [1, 0]]), torch.tensor([3, 2]), 4, "latent")
    directions = []

    def published(dataset, space, direction):
        directions.append(direction)
        return graph, latent

    monkeypatch.setattr(_prepare, "graph_of", lambda name: data.clone())
    monkeypatch.setattr(_prepare, "released_pairs", published)
    monkeypatch.setattr(_prepare, "released_file", lambda *_: "")
    return data, graph_edges, directions


def cell(preset, **rules):
    return Cell("toy", neighborhood="released:isomap", preset=preset, num_splits=1, **rules)


@pytest.mark.parametrize(
    ("preset", "rules", "kinds"),
    [
        ("paper", {}, [0, 7]),
        ("released", {}, [7]),
        ("paper", {"overlap": "latent"}, [7]),
        ("released", {"overlap": "both"}, [0, 7]),
        ("released", {"overlap": "graph"}, [0]),
    ],
)
def test_a_pair_in_both_neighborhoods(one_way_graph, preset, rules, kinds):
    data = prepare(cell(preset, **rules)).data
    shared = (data.edge_index == torch.tensor([[0], [1]])).all(0)
    assert data.edge_type[shared].tolist() == kinds
    assert data.num_virtual_nodes == 9
    assert data.edge_index[:, data.edge_type == 8].tolist() == [list(range(6))] * 2


@pytest.mark.parametrize(
    ("preset", "rules", "norm"),
    [
        ("paper", {}, "graph"),
        ("released", {}, "union"),
        ("paper", {"norm": "union"}, "union"),
        ("released", {"norm": "graph"}, "graph"),
    ],
)
def test_degrees_behind_the_weights(one_way_graph, preset, rules, norm):
    data = prepare(cell(preset, **rules)).data
    by_graph, by_union = graph_norm(data.edge_index, one_way_graph[1], 6), union_norm(data.edge_index, 6)
    assert not torch.allclose(by_graph, by_union)
    torch.testing.assert_close(data.edge_weight, by_graph if norm == "graph" else by_union)


@pytest.mark.parametrize("model", ["gcn", "gat"])
@pytest.mark.parametrize(
    ("preset", "rules", "stored"),
    [
        ("paper", {}, False),
        ("released", {}, True),
        ("paper", {"baseline_edges": "stored"}, True),
        ("released", {"baseline_edges": "symmetric"}, False),
    ],
)
def test_edges_of_the_baselines(one_way_graph, preset, rules, stored, model):
    data = prepare(cell(preset, model=model, **rules)).data
    assert torch.equal(data.edge_index, one_way_graph[0].edge_index if stored else one_way_graph[1])


@pytest.mark.parametrize(
    ("preset", "rules", "direction"),
    [
        ("paper", {}, "gather"),
        ("released", {}, "filed"),
        ("paper", {"direction": "filed"}, "filed"),
    ],
)
def test_direction_of_published_rows(one_way_graph, preset, rules, direction):
    prepare(cell(preset, **rules))
    assert set(one_way_graph[2]) == {direction}


@pytest.mark.parametrize("preset", PRESETS)
def test_what_both_share(one_way_graph, preset):
    """Rows normalised, dropout 0.5 on the input of both layers, no bias, the scheduler, the patience."""
    ready = prepare(cell(preset))
    torch.testing.assert_close(ready.data.x, row_normalize(one_way_graph[0].x))
    model = ready.make_model()
    assert isinstance(model, GeomGCN)
    assert model.dropout == 0.5
    assert [conv.bias for conv in model.convs] == [None, None]
    config = cell(preset).config
    assert (config.decay_factor, config.decay_patience, config.patience) == (0.8, 50, 100)
    assert config.max_epochs == 5000
    assert config.learning_rate == 0.05


def test_each_rule_of_a_preset_can_be_overridden():
    own = cell("released", checkpoint="best", weight_decay=0.1)
    assert own.config.checkpoint == "best"
    assert own.config.weight_decay == 0.1
    assert own.rules.overlap == "latent"


@pytest.mark.parametrize(
    "x", [torch.full((1, 3), 3e38), torch.full((1, 3), 1e-38), torch.tensor([[0.0, 1.0, -3.0]])]
)
def test_rows_are_normalized_whatever_their_size(x):
    expected = (x.double() / x.double().abs().sum()).float()
    torch.testing.assert_close(row_normalize(x), expected)
