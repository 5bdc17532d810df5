"""One loader for each family of files: from verified raw files to PyG ``Data``."""

from collections.abc import Callable, Iterable
from os import PathLike

import numpy as np
import torch
from jaxtyping import Int64, Shaped
from torch import Tensor
from torch_geometric.data import Data

from geomgcn.datasets._download import DataError, fetch
from geomgcn.datasets._karate import KARATE_CLASSES, KARATE_EDGES
from geomgcn.datasets._npz import read_npz
from geomgcn.datasets._pickles import read_lists, read_matrix
from geomgcn.datasets._text import Pairs, number_nodes, read_nodes, read_pairs

Root = str | PathLike[str] | None
Loader = Callable[[Root], Data]

PLANETOID = "https://github.com/kimiyoung/planetoid/raw/master/data"
GEOM_GCN = "https://raw.githubusercontent.com/graphdml-uiuc-jlu/geom-gcn"
BEFORE_2022 = "f1fc0d14b3b019c562737240d06ec83b07d16a8f"
YANDEX = "https://github.com/yandex-research/heterophilous-graphs/raw/main/data"
STRUC2VEC = "https://raw.githubusercontent.com/leoribeiro/struc2vec/master/graph"
NUM_SPLITS = 10
PARTS = ("train", "val", "test")


def planetoid(name: str) -> Loader:
    """Return the loader of a citation graph: Planetoid's pickles and Geom-GCN's splits.

    Every edge is there in both directions, and self-loops are left out, as in PyG.

    Example:
        >>> load = planetoid("cora")
    """

    def load(root: Root) -> Data:
        files = {
            part: (fetch(f"{PLANETOID}/ind.{name}.{part}", root), f"ind.{name}.{part}")
            for part in ("allx", "tx", "ally", "ty", "graph", "test.index")
        }
        test_id = np.array(files["test.index"][0].split(), dtype=np.int64)
        x, one_hot = (
            _with_test_rows(read_matrix(*files[f"all{part}"]), read_matrix(*files[f"t{part}"]), test_id)
            for part in ("x", "y")
        )
        neighbors = read_lists(*files["graph"])
        lines = np.array(
            [(node, other) for node, around in neighbors.items() for other in around], dtype=np.int64
        )
        data = _assemble(x, one_hot.argmax(axis=1), lines[lines[:, 0] != lines[:, 1]])
        # An edge of an undirected graph is in the lists of both of its ends.
        data.num_file_edges = len(lines) // 2
        return _with_masks(data, _split_files("master", name, root))

    return load


def geom_gcn(name: str, revision: str = "master", splits: str = "master", indexed: bool = False) -> Loader:
    """Return the loader of one of the text files that the authors released, with their splits.

    Edges keep their direction and self-loops; repeated ones are left out, as in PyG.

    Args:
        name: As in the file names.
        revision: Branch or commit of the files.
        splits: Branch or commit of the splits.
        indexed: Whether the features are lists of columns.

    Example:
        >>> load = geom_gcn("film", indexed=True)
    """

    def load(root: Root) -> Data:
        folder = f"{GEOM_GCN}/{revision}/new_data/{name}"
        nodes, edges = f"{folder}/out1_node_feature_label.txt", f"{folder}/out1_graph_edges.txt"
        x, y = read_nodes(fetch(nodes, root), nodes, indexed=indexed)
        data = _assemble(x, y, read_pairs(fetch(edges, root), edges, header=True))
        return _with_masks(data, _split_files(splits, name, root))

    return load


def heterophilous(name: str, directed: bool) -> Loader:
    """Return the loader of an archive of the heterophilous-graphs collection.

    Args:
        name: As in the file name.
        directed: Whether the file's pairs are directed; otherwise each stands for both directions.

    Example:
        >>> load = heterophilous("minesweeper", directed=False)
    """

    def load(root: Root) -> Data:
        url = f"{YANDEX}/{name}.npz"
        arrays = read_npz(fetch(url, root), url)
        data = _assemble(arrays["node_features"], arrays["node_labels"], arrays["edges"], directed)
        return _with_masks(data, {part: arrays[f"{part}_masks"] for part in PARTS})

    return load


def struc2vec(name: str, labels: bool = False) -> Loader:
    """Return the loader of an undirected edge list of the struc2vec repository.

    The files have no features: ``x`` is the identity, as in PyG. Nodes are numbered in the order
    of their ids, which are kept in ``data.node_id``. Without a label file labels are unknown (-1).

    Example:
        >>> load = struc2vec("usa-airports", labels=True)
    """

    def load(root: Root) -> Data:
        url = f"{STRUC2VEC}/{name}.edgelist"
        label_url = f"{STRUC2VEC}/labels-{name}.txt"
        lines = read_pairs(fetch(url, root), url, header=False)
        known = read_pairs(fetch(label_url, root), label_url, header=True) if labels else None
        edges, y, node_id = number_nodes(lines, known, url)
        data = _assemble(np.eye(len(y)), y, edges, directed=False)
        data.node_id = torch.from_numpy(node_id)
        return data

    return load


def karate(root: Root) -> Data:
    """Return Zachary's karate club; it is inside the package and reads no file.

    Example:
        >>> karate(None)
        Data(x=[34, 34], edge_index=[2, 156], y=[34], num_file_edges=78)
    """
    return _assemble(np.eye(34), np.array(KARATE_CLASSES), np.array(KARATE_EDGES), directed=False)


def embedded(root: Root) -> Data:
    """Return the generated graph that is inside the package.

    Example:
        >>> embedded(None).num_file_edges > 0
        True
    """
    from geomgcn.datasets._embedded import embedded_graph

    data = embedded_graph()
    data.num_file_edges = data.num_edges // 2
    return data


def _assemble(
    x: Shaped[np.ndarray, "num_nodes channels"],
    y: Int64[np.ndarray, " num_nodes"],
    lines: Pairs,
    directed: bool = True,
) -> Data:
    """Return the graph with sorted, distinct edges."""
    if lines.size and not 0 <= lines.min() <= lines.max() < len(x):
        raise DataError(f"The edges need ids from 0 to {len(x) - 1}, got {lines.min()} to {lines.max()}.")
    pairs = lines if directed else np.concatenate([lines, lines[:, ::-1]])
    # torch's unique sorts; numpy's hashes, which takes 30 times as long on a million pairs.
    pair = torch.unique(torch.from_numpy(pairs[:, 0] * len(x) + pairs[:, 1]))
    return Data(
        x=torch.from_numpy(np.asarray(x, dtype=np.float32)),
        edge_index=torch.stack([pair // len(x), pair % len(x)]),
        y=torch.from_numpy(y),
        num_file_edges=len(lines),
    )


def _with_test_rows(
    known: Shaped[np.ndarray, "num_known channels"],
    test: Shaped[np.ndarray, "num_test channels"],
    test_id: Int64[np.ndarray, " num_test"],
) -> Shaped[np.ndarray, "num_nodes channels"]:
    """Return all rows of a citation graph, those of test nodes at their ids.

    Citeseer's list of test nodes has 15 gaps: papers without text or label. Their features are 0
    and, since PyG and the released program take the largest entry of a row of zeros, their label
    is 0 too.
    """
    if len(test) != len(test_id) or len(np.unique(test_id)) != len(test_id) or test_id.min() < len(known):
        raise DataError(
            f"A citation graph needs one row for each test id above {len(known) - 1}, got {len(test)} rows "
            f"for {len(test_id)} ids from {test_id.min()}. Fetch its files again."
        )
    rows = np.zeros((int(test_id.max()) + 1, known.shape[1]), dtype=known.dtype)
    rows[: len(known)] = known
    rows[test_id] = test
    return rows


def _split_files(revision: str, name: str, root: Root) -> dict[str, Iterable[np.ndarray]]:
    """Return the masks of the ten files of splits that the authors released."""
    urls = [f"{GEOM_GCN}/{revision}/splits/{name}_split_0.6_0.2_{i}.npz" for i in range(NUM_SPLITS)]
    files = [read_npz(fetch(url, root), url) for url in urls]
    return {part: [file[f"{part}_mask"] for file in files] for part in PARTS}


def _with_masks(data: Data, masks: dict[str, Iterable[np.ndarray]]) -> Data:
    """Return the graph with one column of each mask for each split."""
    for part in PARTS:
        # Stored as bool in some files and as uint8 in others.
        data[f"{part}_mask"] = _columns(np.stack(list(masks[part])))
    return data


def _columns(rows: Shaped[np.ndarray, "num_splits num_nodes"]) -> Tensor:
    """Return one column for each split."""
    return torch.from_numpy(rows.astype(np.bool_).T.copy())
