import io
import pickle
from collections import defaultdict
from dataclasses import asdict

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import KarateClub

from geomgcn import datasets
from geomgcn.datasets import SOURCES, DataError, Facts, Source, _loaders


def archive(**arrays) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)
    return file.getvalue()


def test_karate_is_the_one_of_pyg():
    ours, theirs = datasets.load("karate"), KarateClub()[0]
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.edge_index, theirs.edge_index)
    assert torch.equal(ours.y, theirs.y)
    assert ours.name == "karate"


def test_names_forgive_case_and_underscores():
    assert datasets.load(" KARATE").name == "karate"


@pytest.mark.parametrize("name", ["../../x", "/etc/passwd", "cora/../texas", "", "karote"])
def test_other_names_are_unknown(name):
    with pytest.raises(ValueError, match=r"Unknown dataset .*Known: cora, "):
        datasets.load(name)


def test_unknown_name_suggests_the_nearest():
    with pytest.raises(ValueError, match=r"Unknown dataset '../texas'\. Did you mean 'texas'"):
        datasets.load("../texas")


@pytest.mark.parametrize(
    "fact",
    [
        {"num_nodes": 35},
        {"num_edges": 154},
        {"num_file_edges": 77},
        {"num_features": 33},
        {"num_classes": 2},
        {"homophily": 0.9},
        {"num_components": 2},
        {"num_isolated": 1},
    ],
)
def test_graph_that_does_not_meet_a_fact_is_refused(fact, monkeypatch):
    monkeypatch.setitem(SOURCES, "wrong", Source(_loaders.karate, Facts(**fact)))
    ((key, value),) = fact.items()
    with pytest.raises(
        DataError, match=rf"'wrong' needs {key}={value}, got {key}=.*correct the facts in SOURCES"
    ):
        datasets.load("wrong")


def test_one_line_adds_a_data_set(monkeypatch):
    data = Data(x=torch.ones(3, 1), edge_index=torch.tensor([[0], [1]]), y=torch.tensor([0, 0, -1]))
    monkeypatch.setitem(SOURCES, "mine", Source(lambda root: data, Facts(num_nodes=3, num_isolated=1)))
    row = datasets.statistics("mine")
    assert (row["name"], row["edges"], row["classes"], row["homophily"]) == ("mine", 1, 1, 1.0)


def test_graph_without_features_is_refused(monkeypatch):
    monkeypatch.setitem(SOURCES, "bare", Source(lambda root: Data(edge_index=torch.zeros(2, 0).long())))
    with pytest.raises(DataError, match=r"needs x, edge_index and y\. Let its loader set all three"):
        datasets.load("bare")


def test_every_source_states_facts_license_and_citation():
    for name, source in SOURCES.items():
        assert source.license, name
        assert source.citation, name
        expected = {key for key, value in asdict(source.facts).items() if value is None}
        unlabelled = {"homophily"} if name in ("barbell", "karate-mirrored") else set()
        assert expected == unlabelled, name


@pytest.fixture
def files(monkeypatch):
    """Raw files by the end of their URL."""
    files = {}

    def fetch(url, root):
        return next(contents for end, contents in files.items() if url.endswith(end))

    monkeypatch.setattr(_loaders, "fetch", fetch)
    for i in range(10):
        masks = np.eye(3, dtype=np.uint8)[:, np.roll(np.arange(3), i)]
        files[f"_{i}.npz"] = archive(train_mask=masks[0], val_mask=masks[1], test_mask=masks[2])
    return files


def test_geom_gcn_files_keep_direction_and_loops_but_no_copies(files):
    files["edges.txt"] = b"node_id\tnode_id\n2\t0\n0\t1\n1\t1\n2\t0\n"
    files["label.txt"] = b"node_id\tfeature\tlabel\n2\t0,1\t2\n0\t1,0\t0\n1\t1,1\t1\n"
    data = _loaders.geom_gcn("toy")(None)
    assert data.edge_index.tolist() == [[0, 1, 2], [1, 1, 0]]
    assert data.num_file_edges == 4
    assert data.x.tolist() == [[1.0, 0.0], [1.0, 1.0], [0.0, 1.0]]
    assert data.y.tolist() == [0, 1, 2]
    assert data.train_mask.dtype == torch.bool
    assert data.train_mask.shape == (3, 10)
    assert data.train_mask[:, 1].tolist() == [False, True, False]
    assert data.test_mask[:, 0].tolist() == [False, False, True]


def test_edges_beyond_the_nodes_are_refused(files):
    files["edges.txt"] = b"node_id\tnode_id\n0\t7\n"
    files["label.txt"] = b"node_id\tfeature\tlabel\n0\t0\t2\n"
    with pytest.raises(DataError, match="ids from 0 to 0, got 0 to 7"):
        _loaders.geom_gcn("toy")(None)


def planetoid_files(neighbors, test_id):
    """Return the files of a citation graph with one known node, and test nodes at ``test_id``."""
    rows = {
        "allx": np.ones((1, 2)),
        "tx": np.arange(2.0 * len(test_id)).reshape(-1, 2),
        "ally": np.array([[0, 1]]),
        "ty": np.array([[1, 0]] * len(test_id)),
        "graph": defaultdict(list, neighbors),
    }
    files = {f".{part}": pickle.dumps(value, protocol=3) for part, value in rows.items()}
    return files | {"test.index": "\n".join(map(str, test_id)).encode()}


def test_planetoid_rows_are_joined_by_test_id(files):
    files.update(planetoid_files({0: [1, 1, 2], 1: [0, 0], 2: [0, 2]}, test_id=[2, 1]))
    data = _loaders.planetoid("toy")(None)
    assert data.x.tolist() == [[1.0, 1.0], [2.0, 3.0], [0.0, 1.0]]
    assert data.y.tolist() == [1, 0, 0]
    assert data.edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert data.num_file_edges == 3  # 7 entries


def test_planetoid_gap_has_no_features(files):
    for i in range(10):
        files[f"_{i}.npz"] = archive(**{f"{part}_mask": np.zeros(4) for part in ("train", "val", "test")})
    files.update(planetoid_files({0: [3], 3: [0]}, test_id=[3, 1]))
    data = _loaders.planetoid("toy")(None)
    assert data.x.tolist() == [[1.0, 1.0], [2.0, 3.0], [0.0, 0.0], [0.0, 1.0]]
    assert data.y.tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize("test_id", [[0, 1], [1, 1]])
def test_planetoid_test_ids_that_overlap_are_refused(files, test_id):
    files.update(planetoid_files({0: [1]}, test_id))
    with pytest.raises(DataError, match="one row for each test id above 0"):
        _loaders.planetoid("toy")(None)


@pytest.mark.parametrize("directed", [True, False])
def test_archive_stands_for_one_or_both_directions(files, directed):
    masks = {f"{part}_masks": np.zeros((10, 2), dtype=bool) for part in ("train", "val", "test")}
    arrays = {"node_features": np.ones((2, 1)), "node_labels": np.array([0, 1]), "edges": np.array([[1, 0]])}
    files["toy.npz"] = archive(**arrays, **masks)
    data = _loaders.heterophilous("toy", directed)(None)
    assert data.edge_index.tolist() == ([[1], [0]] if directed else [[0, 1], [1, 0]])
    assert data.num_file_edges == 1
    assert data.val_mask.shape == (2, 10)


def test_edge_list_keeps_ids(files):
    files["toy.edgelist"] = b"30 10\n10 20\n"
    files["labels-toy.txt"] = b"node label\n20 2\n30 3\n10 1\n"
    data = _loaders.struc2vec("toy", labels=True)(None)
    assert data.node_id.tolist() == [10, 20, 30]
    assert data.y.tolist() == [1, 2, 3]
    assert data.edge_index.tolist() == [[0, 0, 1, 2], [1, 2, 0, 0]]
    assert torch.equal(data.x, torch.eye(3))
    assert _loaders.struc2vec("toy")(None).y.tolist() == [-1, -1, -1]


def test_table_shows_the_paper_where_it_differs():
    row = {"name": "a", "nodes": 7600, "edges": 9, "features": 932, "classes": 5, "homophily": 0.22}
    paper = {"nodes": 7600, "edges": 8, "features": 931, "classes": 5, "homophily": 0.24}
    agreed = {"homophily": 0.825, "published": paper | {"edges": 9, "features": 932, "homophily": 0.83}}
    rest = {"components": 1, "isolated": 0, "published": paper, "note": "Why."}
    text = datasets.format_table([row | rest, row | rest | agreed | {"note": ""}])
    assert text.splitlines()[1].split() == [
        "a",
        "7600",
        "9",
        "(8)",
        "932",
        "(931)",
        "5",
        ".220",
        "(.24)",
        "1",
        "0",
    ]
    assert text.splitlines()[2].split() == ["a", "7600", "9", "932", "5", ".825", "1", "0"]
    assert text.endswith("a: Why.")


def test_table_of_a_graph_without_labels():
    row = {"name": "a", "nodes": 2, "edges": 1, "features": 2, "classes": 0, "homophily": None}
    text = datasets.format_table([row | {"components": 1, "isolated": 0, "published": None, "note": ""}])
    assert text.splitlines()[1].split() == ["a", "2", "1", "2", "0", "-", "1", "0"]
