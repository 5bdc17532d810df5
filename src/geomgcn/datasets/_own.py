"""A graph of the user's own, from one file of plain arrays."""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from geomgcn.datasets._download import DataError
from geomgcn.datasets._npz import read_npz
from geomgcn.graphs import canonical_lengths, check_edges, check_features, check_positions

PICKLED = (".pt", ".pth", ".pkl", ".pickle", ".npy")
MASKS = ("train_mask", "val_mask", "test_mask")
MOST_NODES_PER_ENTRY, MOST_UNSEEN = 100, 1_000_000
"""Nodes without an edge that ids may leave, before they count as no numbers of nodes."""

MOST_IDENTITY_FEATURES = 20_000  # their square is 1.6 GB of float32
_ALIASES = {
    "edge_index": ("edge_index", "edges"),
    "x": ("x", "node_features", "features"),
    "y": ("y", "node_labels", "labels"),
    "pos": ("pos",),
    "edge_length": ("edge_length", "edge_lengths"),
    "num_nodes": ("num_nodes",),
    "train_mask": ("train_mask", "train_masks"),
    "val_mask": ("val_mask", "val_masks"),
    "test_mask": ("test_mask", "test_masks"),
}


def is_graph_file(name: str) -> bool:
    """Return whether a name is meant as a file and not as the name of a data set.

    Example:
        >>> is_graph_file("mine.npz"), is_graph_file("cora")
        (True, False)
    """
    return Path(name).suffix.lower() in (".npz", *PICKLED)


def read_graph(path: str | Path, labels: bool = True) -> Data:
    """Read a graph from an ``.npz`` file of plain arrays.

    Arrays: ``edge_index`` (2, m) or ``edges`` (m, 2), source before target; ``x`` or ``node_features``
    (n, channels), without which each node is its own feature; ``y`` or ``node_labels`` (n), -1 where
    unknown; if there are any, ``pos`` (n, 2), ``edge_length`` (m) and ``train_mask``, ``val_mask``,
    ``test_mask``, one column a split, or one row where there are not as many splits as nodes. Pickled files
    are refused: reading one can run any command.

    Args:
        labels: Refuse a file without labels. Where they are not needed the number of nodes is that of the
            rows of any array of nodes, or ``num_nodes``, or else the largest id and one; and no node is
            given features.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "mine.npz"
        >>> np.savez(path, edges=np.array([[0, 1], [1, 2]]), x=np.eye(3), y=np.array([0, 1, 0]))
        >>> read_graph(path).num_nodes
        3
    """
    path = Path(path)
    if path.suffix.lower() in PICKLED:
        raise DataError(
            f"{path.name} is refused: reading a pickled file can run any command that its author put there. "
            f"Save the arrays with numpy.savez({path.stem + '.npz'!r}, edge_index=..., x=..., y=...)."
        )
    try:
        contents = path.read_bytes()
    except OSError as error:
        raise DataError(f"Cannot read {str(path)!r}: {error.strerror}. Check the path.") from None
    arrays = read_npz(contents, path.name)
    found = {key: array for key, names in _ALIASES.items() if (array := _first(arrays, names)) is not None}
    for key in ("edge_index", "y") if labels else ("edge_index",):
        if key not in found:
            raise DataError(
                f"{path.name} needs an array named {' or '.join(map(repr, _ALIASES[key]))}, "
                f"got {sorted(arrays)}. Add it."
            )
    return _assemble(found, path.name, labels, transposed="edge_index" not in arrays)


def _first(arrays: dict[str, np.ndarray], names: tuple[str, ...]) -> np.ndarray | None:
    return next((arrays[name] for name in names if name in arrays), None)


def _assemble(found: dict[str, np.ndarray], source: str, labels: bool, transposed: bool) -> Data:
    edges = found["edge_index"].T if transposed else found["edge_index"]
    if edges.dtype.kind not in "iu" or edges.ndim != 2 or edges.shape[0] != 2:
        raise DataError(
            f"{source} needs 'edge_index' of shape (2, m) or 'edges' of shape (m, 2) with integers, "
            f"got {edges.dtype} of shape {found['edge_index'].shape}. Transpose it, or number the nodes."
        )
    y = _labels(found["y"], source) if "y" in found else None
    num_nodes = _num_nodes(found, edges, source) if y is None or "num_nodes" in found else len(y)
    if y is not None and len(y) != num_nodes:
        raise DataError(
            f"{source} needs {num_nodes} labels, as 'num_nodes' says, got {len(y)}. Mend one of them."
        )
    for key in ("x", "pos"):
        if key in found and (found[key].ndim != 2 or len(found[key]) != num_nodes):
            raise DataError(
                f"{source} needs {key!r} with {num_nodes} rows, one a node, got {found[key].shape}. "
                f"Give every node a row."
            )
    if edges.size and edges.max() > np.iinfo(np.int64).max:
        raise DataError(
            f"{source} needs ids from 0 to {num_nodes - 1}, got {edges.max()}. Renumber the nodes."
        )
    edge_index = torch.from_numpy(np.ascontiguousarray(edges, dtype=np.int64))
    check_edges(edge_index, num_nodes)
    data = Data(edge_index=edge_index, num_nodes=num_nodes)
    if y is not None:
        data.y = torch.from_numpy(y)
    if labels or "x" in found:
        data.x = _features(found.get("x"), num_nodes, source)
    if "pos" in found:
        data.pos = torch.from_numpy(found["pos"].astype(np.float64))
        check_positions(data.pos)
    if "edge_length" in found:
        data.edge_length = torch.from_numpy(found["edge_length"].astype(np.float64))
        canonical_lengths(edge_index, data.edge_length, num_nodes)
    return _with_masks(data, found, source)


def _num_nodes(found: dict[str, np.ndarray], edges: np.ndarray, source: str) -> int:
    """Return the number of nodes of a graph without labels."""
    if "num_nodes" not in found:
        for key in ("x", "pos"):
            if key in found and found[key].ndim == 2:
                return len(found[key])
    if "num_nodes" not in found:
        inferred = int(edges.max()) + 1 if edges.size else 0
        if inferred > MOST_NODES_PER_ENTRY * edges.size + MOST_UNSEEN:
            raise DataError(
                f"{source} needs ids without large gaps, got {inferred - 1} in {edges.shape[1]} edges. "
                f"Renumber the nodes, or say how many there are in an array 'num_nodes'."
            )
        return inferred
    given = found["num_nodes"]
    if given.size != 1 or given.dtype.kind not in "iu" or not 0 < int(given.item()) < 2**31:
        raise DataError(
            f"{source} needs 'num_nodes' as one whole number from 1, got {given!r}. Leave it out."
        )
    return int(given.item())


def _labels(y: np.ndarray, source: str) -> np.ndarray:
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise DataError(
            f"{source} needs labels as one integer a node, got {y.dtype} of shape {y.shape}. "
            f"Number the classes from 0."
        )
    if len(y) and (y.min() < -1 or y.max() >= len(y)):
        raise DataError(
            f"{source} needs labels from 0 to the number of classes less one, -1 where unknown, "
            f"got labels from {y.min()} to {y.max()} for {len(y)} nodes. Number the classes from 0."
        )
    return y.astype(np.int64)


def _features(x: np.ndarray | None, num_nodes: int, source: str) -> torch.Tensor:
    if x is None and num_nodes > MOST_IDENTITY_FEATURES:
        raise DataError(
            f"{source} has no features, and {num_nodes} nodes are too many to give each one of its own "
            f"(at most {MOST_IDENTITY_FEATURES}). Add an array 'x', of degrees for example."
        )
    features = torch.eye(num_nodes) if x is None else torch.from_numpy(x.astype(np.float32))
    check_features(features)
    return features


def _with_masks(data: Data, found: dict[str, np.ndarray], source: str) -> Data:
    given = [key for key in MASKS if key in found]
    if not given:
        return data
    if len(given) < len(MASKS):
        raise DataError(
            f"{source} needs all of {', '.join(MASKS)} or none, got {', '.join(given)}. Add the others."
        )
    masks = {key: _mask(found[key], int(data.num_nodes), f"{source}: {key!r}") for key in MASKS}
    counts = {key: mask.size(1) for key, mask in masks.items()}
    if len(set(counts.values())) > 1:
        raise DataError(f"{source} needs masks for equally many splits, got {counts}. Add what is missing.")
    for key, mask in masks.items():
        data[key] = mask
    return data


def _mask(mask: np.ndarray, num_nodes: int, what: str) -> torch.Tensor:
    columns = mask.reshape(num_nodes, 1) if mask.shape == (num_nodes,) else mask
    if mask.dtype.kind not in "biuf" or not np.isin(mask, (0, 1)).all():
        raise DataError(
            f"{what} needs booleans, or zeros and ones, got other values of {mask.dtype}. Convert it."
        )
    if columns.ndim == 2 and columns.shape[0] != num_nodes and columns.shape[1] == num_nodes:
        columns = columns.T
    if columns.ndim != 2 or columns.shape[0] != num_nodes or columns.shape[1] == 0:
        raise DataError(
            f"{what} needs one value a node and split ({num_nodes} nodes), got shape {mask.shape}. "
            f"Give each split a column."
        )
    return torch.from_numpy(np.ascontiguousarray(columns.astype(np.bool_)))
