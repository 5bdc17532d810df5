import pickle

import numpy as np
import pytest
import torch

from geomgcn.datasets import DataError
from geomgcn.datasets._own import is_graph_file, read_graph
from geomgcn.splits import published_splits

EDGES = np.array([[0, 1, 2], [1, 2, 3]])
LABELS = np.array([0, 1, -1, 1])


@pytest.fixture
def save(tmp_path):
    def write(**arrays):
        path = tmp_path / "mine.npz"
        np.savez(path, **arrays)
        return path

    return write


def test_plain_arrays_become_data(save):
    x, pos = np.arange(8.0).reshape(4, 2), np.arange(8).reshape(4, 2) / 3
    data = read_graph(save(edge_index=EDGES, x=x, y=LABELS, pos=pos))
    assert data.edge_index.tolist() == EDGES.tolist()
    assert data.y.tolist() == LABELS.tolist()
    assert (data.x.dtype, data.pos.dtype, data.y.dtype) == (torch.float32, torch.float64, torch.int64)
    assert data.x.tolist() == x.tolist()
    assert data.pos.tolist() == pos.tolist()
    assert data.num_nodes == 4


@pytest.mark.parametrize("integer", [np.int8, np.uint16, np.int32, np.uint64])
def test_lists_of_pairs_and_other_names_do_too(save, integer):
    edges = np.ascontiguousarray(EDGES.T).astype(integer)
    data = read_graph(save(edges=edges, node_features=np.eye(4, dtype=int), node_labels=LABELS))
    assert data.edge_index.tolist() == EDGES.tolist()
    assert data.edge_index.is_contiguous()
    assert data.x.tolist() == np.eye(4).tolist()


def test_two_edges_are_read_by_their_name(save):
    """With two edges both shapes are [2, 2]: only the name tells rows from columns."""
    square = np.array([[0, 1], [2, 3]])
    assert read_graph(save(edge_index=square, y=LABELS)).edge_index.tolist() == [[0, 1], [2, 3]]
    assert read_graph(save(edges=square, y=LABELS)).edge_index.tolist() == [[0, 2], [1, 3]]


def test_without_features_each_node_is_its_own(save):
    assert torch.equal(read_graph(save(edge_index=EDGES, y=LABELS)).x, torch.eye(4))


def test_isolated_nodes_and_no_edges(save):
    data = read_graph(save(edge_index=np.zeros((2, 0), dtype=int), y=LABELS))
    assert data.num_nodes == 4
    assert data.edge_index.shape == (2, 0)


@pytest.mark.parametrize("form", ["vector", "columns", "rows", "numbers"])
def test_masks_in_any_layout(save, form):
    columns = np.eye(4, 3, dtype=bool)
    shown = {"vector": columns[:, 0], "columns": columns, "rows": columns.T, "numbers": columns.astype(int)}
    masks = {
        f"{name}_mask": np.roll(shown[form], i, 1 if form == "rows" else 0)
        for i, name in enumerate(("train", "val", "test"))
    }
    data = read_graph(save(edge_index=EDGES, y=LABELS, **masks))
    splits = published_splits(data)
    assert len(splits) == (1 if form == "vector" else 3)
    assert splits[0].train.tolist() == [True, False, False, False]
    assert splits[0].val.tolist() == [False, True, False, False]
    assert splits[-1].train.tolist() == columns[:, len(splits) - 1].tolist()


@pytest.mark.parametrize("suffix", [".pt", ".pth", ".pkl", ".pickle", ".npy", ".PKL"])
def test_pickles_are_refused_unread(tmp_path, suffix):
    class Hostile:
        def __reduce__(self):
            return (open, (str(tmp_path / "executed"), "w"))

    path = tmp_path / f"mine{suffix}"
    path.write_bytes(pickle.dumps(Hostile()))
    message = rf"mine{suffix} is refused: reading a pickled file .*numpy\.savez\('mine\.npz', edge_index"
    with pytest.raises(DataError, match=message):
        read_graph(path)
    assert not (tmp_path / "executed").exists()


def test_arrays_of_objects_inside_are_refused(save):
    path = save(edge_index=EDGES, y=np.array([{}, 1, 2, 3], dtype=object))
    with pytest.raises(DataError, match=r"dtype object in 'y\.npy'.* save plain numbers"):
        read_graph(path)


def masks(*num_splits):
    names = ("train_mask", "val_mask", "test_mask")
    return {name: np.zeros((len(LABELS), count)) for name, count in zip(names, num_splits, strict=True)}


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        ({"y": LABELS}, DataError, r"needs an array named 'edge_index' or 'edges', got \['y'\]\. Add it"),
        ({"edges": EDGES.T}, DataError, r"an array named 'y' or 'node_labels' or 'labels', got \['edges'\]"),
        ({"edge_index": EDGES, "y": LABELS[:, None]}, DataError, r"one integer a node, got .*\(4, 1\)"),
        ({"edge_index": EDGES, "y": LABELS / 2}, DataError, r"one integer a node, got float64 of shape"),
        ({"edge_index": EDGES / 2, "y": LABELS}, DataError, r"\(2, m\) or 'edges' .*got float64 of shape"),
        ({"edge_index": EDGES.T, "y": LABELS}, DataError, r"\(2, m\) or 'edges' .*got int64 of .*\(3, 2\)"),
        ({"edges": EDGES, "y": LABELS}, DataError, r"'edges' of shape \(m, 2\) .*got int64 of .*\(2, 3\)"),
        ({"edge_index": EDGES + 1, "y": LABELS}, ValueError, r"from 0 to 3, got 3 -> 4 .*Renumber"),
        ({"edge_index": EDGES - 1, "y": LABELS}, ValueError, r"from 0 to 3, got -1 -> 0 .*Renumber"),
        ({"edge_index": EDGES, "y": LABELS, "x": np.eye(5)}, DataError, r"'x' with 4 rows.*\(5, 5\)"),
        (
            {"edge_index": EDGES, "y": LABELS, "x": np.ones(4)},
            DataError,
            r"'x' with 4 rows.*Give every node a row",
        ),
        ({"edge_index": EDGES, "y": LABELS * 10**6}, DataError, r"labels from 0 .*Number the classes from 0"),
        ({"edge_index": EDGES, "y": LABELS - 3}, DataError, r"labels from -4 to .*Number the classes from 0"),
        (
            {"edge_index": EDGES, "y": np.zeros(20_001, dtype=np.int64)},
            DataError,
            r"20001 nodes are too many .*Add an array 'x'",
        ),
        (
            {"edge_index": EDGES, "y": LABELS, "train_mask": np.ones(4)},
            DataError,
            r"all of train_mask, val_mask, test_mask or none, got train_mask\. Add the others",
        ),
        (
            {"edge_index": EDGES, "y": LABELS, **masks(1, 1, 2)},
            DataError,
            r"equally many splits, got \{'train_mask': 1, .*Add what is missing",
        ),
        (
            {"edge_index": EDGES, "y": LABELS, "x": np.full((4, 1), np.inf)},
            ValueError,
            r"finite.*Fill or drop them",
        ),
        ({"edge_index": EDGES, "y": LABELS, "pos": np.eye(3)}, DataError, r"'pos' with 4 rows.*\(3, 3\)"),
        ({"edge_index": EDGES, "y": LABELS[:0]}, ValueError, r"at least one node, got num_nodes=0\. Pass"),
        (
            {"edge_index": EDGES, "y": LABELS, **masks(1, 1, 1), "train_mask": np.ones(3)},
            DataError,
            r"'train_mask' needs one value a node and split \(4 nodes\), got shape \(3,\)\. Give",
        ),
        (
            {"edge_index": EDGES, "y": LABELS, **masks(1, 1, 1), "val_mask": np.array([1.0, 0, 0, np.nan])},
            DataError,
            r"'val_mask' needs booleans, or zeros and ones, got other values of float64",
        ),
        (
            {"edge_index": EDGES, "y": LABELS, **masks(1, 1, 1), "val_mask": np.array([0, 1, 2, -1])},
            DataError,
            r"'val_mask' needs booleans, or zeros and ones, got other values of int64",
        ),
        (
            {"edge_index": EDGES, "y": LABELS, **masks(0, 0, 0)},
            DataError,
            r"needs one value a node and split \(4 nodes\), got shape \(4, 0\)",
        ),
        (
            {"edge_index": EDGES.astype(np.uint64) + np.uint64(2**63), "y": LABELS},
            DataError,
            r"ids from 0 to 3, got 9223372036854775811\. Renumber",
        ),
        (
            {"edge_index": EDGES, "y": LABELS, "x": np.ones((4, 0))},
            ValueError,
            r"x needs at least one channel, got shape \[4, 0\]\. Give each node features",
        ),
        (
            {"edge_index": EDGES, "y": LABELS, "pos": np.full((4, 2), np.nan)},
            ValueError,
            r"NaN or infinity at 4 node\(s\), the first is node 0",
        ),
        (
            {"edge_index": EDGES, "y": LABELS, **masks(1, 1, 1), "val_mask": np.ones((3, 3))},
            DataError,
            r"'val_mask' needs one value a node and split",
        ),
    ],
)
def test_files_that_hold_no_graph_are_refused(save, arrays, error, message):
    with pytest.raises(error, match=message):
        read_graph(save(**arrays))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(DataError, match=r"Cannot read '.*none\.npz': No such file.*\. Check the path"):
        read_graph(tmp_path / "none.npz")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(DataError, match=r"Cannot read '.*folder\.npz': Is a directory\. Check the path"):
        read_graph(tmp_path / "folder.npz")
    (tmp_path / "text.npz").write_text("0 1\n1 2\n")
    with pytest.raises(DataError, match=r"text\.npz needs to be an archive of arrays"):
        read_graph(tmp_path / "text.npz")


def test_names_of_files_and_of_data_sets():
    assert [is_graph_file(name) for name in ("a.npz", "b/c.PT", "x.npy")] == [True] * 3
    assert not any(map(is_graph_file, ("cora", "chameleon-filtered", "a.csv", "../../x")))
