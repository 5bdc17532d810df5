"""A graph of the user's own, from one file of plain arrays."""

from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data

from geomgcn.datasets._download import DataError
from geomgcn.datasets._npz import read_npz
from geomgcn.graphs import check_edges, check_features

PICKLED = (".pt", ".pth", ".pkl", ".pickle", ".npy")
_ALIASES = {
    "edge_index": ("edge_index", "edges"),
    "x": ("x", "node_features", "features"),
    "y": ("y", "node_labels", "labels"),
    "pos": ("pos",),
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


def read_graph(path: str | Path) -> Data:
    """Read a graph from an ``.npz`` file of plain arrays.

    Arrays: ``edge_index`` (2, m) or ``edges`` (m, 2), source before target; ``x`` or ``node_features``
    (n, channels), without which each node is its own feature; ``y`` or ``node_labels`` (n), -1 where
    unknown; if there are any, ``pos`` (n, 2) and ``train_mask``, ``val_mask``, ``test_mask``, one column
    or row a split. Pickled files are refused: reading one can run any command.

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
    for key in ("edge_index", "y"):
        if key not in found:
            raise DataError(
                f"{path.name} needs an array named {' or '.join(map(repr, _ALIASES[key]))}, "
                f"got {sorted(arrays)}. Add it."
            )
    return _assemble(found, path.name, transposed="edge_index" not in arrays)


def _first(arrays: dict[str, np.ndarray], names: tuple[str, ...]) -> np.ndarray | None:
    return next((arrays[name] for name in names if name in arrays), None)


def _assemble(found: dict[str, np.ndarray], source: str, transposed: bool) -> Data:
    y = found["y"]
    if y.ndim != 1 or y.dtype.kind not in "iu":
        raise DataError(f"{source} needs labels as one integer a node, got {y.dtype} of shape {y.shape}.")
    num_nodes = len(y)
    edges = found["edge_index"].T if transposed else found["edge_index"]
    if edges.dtype.kind not in "iu" or edges.ndim != 2 or edges.shape[0] != 2:
        raise DataError(
            f"{source} needs 'edge_index' of shape (2, m) or 'edges' of shape (m, 2) with integers, "
            f"got {edges.dtype} of shape {found['edge_index'].shape}."
        )
    edge_index = torch.from_numpy(np.ascontiguousarray(edges, dtype=np.int64))
    check_edges(edge_index, num_nodes)
    data = Data(edge_index=edge_index, y=torch.from_numpy(y.astype(np.int64)), num_nodes=num_nodes)
    data.x = torch.from_numpy(found["x"].astype(np.float32)) if "x" in found else torch.eye(num_nodes)
    check_features(data.x)
    if "pos" in found:
        data.pos = torch.from_numpy(found["pos"].astype(np.float64))
    for key in ("x", "pos"):
        if key in found and (found[key].ndim != 2 or len(found[key]) != num_nodes):
            raise DataError(
                f"{source} needs {key!r} with {num_nodes} rows, one a label, got {found[key].shape}."
            )
    for key in ("train_mask", "val_mask", "test_mask"):
        if key in found:
            data[key] = _mask(found[key], num_nodes, f"{source}: {key!r}")
    return data


def _mask(mask: np.ndarray, num_nodes: int, what: str) -> torch.Tensor:
    columns = mask.reshape(num_nodes, 1) if mask.shape == (num_nodes,) else mask
    if columns.ndim == 2 and columns.shape[0] != num_nodes and columns.shape[1] == num_nodes:
        columns = columns.T
    if columns.ndim != 2 or columns.shape[0] != num_nodes:
        raise DataError(
            f"{what} needs one value a node and split ({num_nodes} nodes), got shape {mask.shape}."
        )
    return torch.from_numpy(np.ascontiguousarray(columns.astype(np.bool_)))
