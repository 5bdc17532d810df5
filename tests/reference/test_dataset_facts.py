"""The data sets against the facts that were checked on the published files, and against PyG's reader."""

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.io import read_planetoid_data
from torch_geometric.utils import coalesce

from geomgcn import datasets
from geomgcn.datasets import SOURCES, DataError
from geomgcn.graphs import canonical_edges, components
from geomgcn.splits import published_splits

pytestmark = pytest.mark.reference

# nodes, edges as the raw file counts them, features, classes, homophily, components, isolated, PyG edges,
# undirected edges, train / val / test of the first published split
FACTS = {
    "cora": (2708, 5429, 1433, 7, 0.825, 78, 0, 10556, 5278, (1192, 796, 497)),
    "citeseer": (3327, 4732, 3703, 6, 0.706, 438, 48, 9104, 4552, (1596, 1065, 666)),
    "pubmed": (19717, 44338, 500, 3, 0.792, 1, 0, 88648, 44324, (9463, 6310, 3944)),
    "chameleon": (2277, 36101, 2325, 5, 0.247, 1, 0, 36101, 31371, (1092, 729, 456)),
    "squirrel": (5201, 217073, 2089, 5, 0.217, 1, 0, 217073, 198353, (2496, 1664, 1041)),
    "actor": (7600, 33391, 932, 5, 0.220, 1, 0, 30019, 26659, (3648, 2432, 1520)),
    "cornell": (183, 298, 1703, 5, 0.111, 1, 0, 298, 277, (87, 59, 37)),
    "texas": (183, 325, 1703, 5, 0.057, 1, 0, 325, 279, (87, 59, 37)),
    "wisconsin": (251, 515, 1703, 5, 0.155, 1, 0, 515, 450, (120, 80, 51)),
}
KEYS = ("nodes", "edges", "features", "classes", "homophily", "components", "isolated")


@pytest.fixture(autouse=True)
def mirror() -> Path:
    folder = os.environ.get("GEOMGCN_MIRROR")
    if not folder:
        pytest.skip("needs GEOMGCN_MIRROR, a folder with the published files")
    return Path(folder)


@pytest.mark.parametrize("name", FACTS)
def test_statistics_of_the_nine(name):
    row = datasets.statistics(name)
    assert tuple(row[key] for key in KEYS) == FACTS[name][:7]


@pytest.mark.parametrize("name", FACTS)
def test_edges_and_splits_of_the_nine(name):
    data = datasets.load(name)
    edge_index, report = canonical_edges(data.edge_index, data.num_nodes)
    assert (data.num_edges, edge_index.shape[1] // 2) == FACTS[name][7:9]
    assert report.num_nodes == data.num_nodes
    splits = published_splits(data)
    assert len(splits) == 10
    assert tuple(int(mask.sum()) for mask in splits[0].parts().values()) == FACTS[name][9]
    assert data.x.dtype == torch.float32
    assert data.x.isfinite().all()


@pytest.mark.parametrize("name", [name for name in SOURCES if name not in FACTS])
def test_the_others_load(name):
    data = datasets.load(name)
    assert data.name == name
    if "train_mask" in data:
        assert len(published_splits(data)) == 10


@pytest.mark.parametrize("name", ["cora", "citeseer", "pubmed"])
def test_citation_graphs_equal_pyg(name, mirror):
    theirs = read_planetoid_data(str(mirror / "github.com/kimiyoung/planetoid/raw/master/data"), name)
    ours = datasets.load(name)
    assert torch.equal(ours.x, theirs.x)
    assert torch.equal(ours.y, theirs.y)
    assert torch.equal(ours.edge_index, coalesce(theirs.edge_index))  # PyG sorts these by target


@pytest.mark.parametrize("name", ["actor", "cornell", "wisconsin", "texas", "chameleon", "squirrel"])
def test_text_files_equal_the_second_publication(name, mirror):
    folder = mirror / "github.com/yandex-research/heterophilous-graphs/raw/main/data"
    ours = datasets.load(name)
    edge_index, _ = canonical_edges(ours.edge_index, ours.num_nodes)
    with np.load(folder / f"{name}.npz") as theirs:
        np.testing.assert_array_equal(ours.x.numpy(), theirs["node_features"])
        np.testing.assert_array_equal(ours.y.numpy(), theirs["node_labels"])
        pairs = torch.from_numpy(theirs["edges"]).t()
        np.testing.assert_array_equal(ours.train_mask.numpy().T, theirs["train_masks"])
    assert torch.equal(edge_index, canonical_edges(pairs, ours.num_nodes)[0])


def test_cora_splits_cover_the_largest_component():
    data = datasets.load("cora")
    ids = components(data.edge_index, data.num_nodes)
    largest = ids == torch.bincount(ids).argmax()
    for split in published_splits(data):
        assert torch.equal(split.train | split.val | split.test, largest)


def test_superseded_cornell_has_the_features_of_texas():
    old, texas, new = (datasets.load(name) for name in ("cornell-superseded", "texas", "cornell"))
    assert torch.equal(old.x, texas.x)
    assert torch.equal(old.y, texas.y)
    assert torch.equal(old.train_mask, new.train_mask)
    assert not torch.equal(old.x, new.x)


def test_airport_labels_are_joined_by_id(mirror):
    data = datasets.load("usa-airports")
    path = mirror / "raw.githubusercontent.com/leoribeiro/struc2vec/master/graph/labels-usa-airports.txt"
    labels = dict(map(int, line.split()) for line in path.read_text().splitlines()[1:])
    assert dict(zip(data.node_id.tolist(), data.y.tolist(), strict=True)) == labels
    assert data.node_id.max() > data.num_nodes


def test_altered_byte_in_the_mirror_is_noticed(mirror, tmp_path, monkeypatch):
    part = "raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn/master/new_data/texas"
    shutil.copytree(mirror / part, tmp_path / part)
    path = tmp_path / part / "out1_graph_edges.txt"
    contents = bytearray(path.read_bytes())
    contents[-2] ^= 1
    path.write_bytes(contents)
    monkeypatch.setenv("GEOMGCN_MIRROR", str(tmp_path))
    with pytest.raises(DataError, match=r"out1_graph_edges\.txt.*sha256"):
        datasets.load("texas")
