"""Text files of nodes and edges, joined by id and never by the order of lines."""

import numpy as np
from jaxtyping import Float32, Int64, Shaped

from geomgcn.datasets._download import DataError

Pairs = Int64[np.ndarray, "num_lines 2"]
LabelLines = Int64[np.ndarray, "num_labelled 2"]


def read_pairs(contents: bytes, source: str, header: bool) -> Pairs:
    """Return the two integers of each line.

    Args:
        source: Named in errors.
        header: Whether the first line is a heading.

    Example:
        >>> read_pairs(b"node label\\n7 0\\n3 1\\n", "labels.txt", header=True).tolist()
        [[7, 0], [3, 1]]
    """
    lines = _lines(contents, source)[int(header) :]
    if not lines:
        return np.empty((0, 2), dtype=np.int64)
    try:
        pairs = np.loadtxt(lines, dtype=np.int64, ndmin=2, comments=None)
        if pairs.shape[1] != 2:
            raise ValueError(f"{pairs.shape[1]} columns")
    except ValueError as error:
        raise DataError(f"{source} needs two integers in each line, got {error}. Fetch it again.") from error
    return pairs


def read_nodes(
    contents: bytes, source: str, indexed: bool = False
) -> tuple[Float32[np.ndarray, "num_nodes channels"], Int64[np.ndarray, " num_nodes"]]:
    """Return features and labels of a file ``node_id <tab> features <tab> label``, in order of id.

    The ids have to be 0 to n - 1, each once, in any order.

    Args:
        source: Named in errors.
        indexed: Whether a line lists the columns that are 1, instead of every value.

    Example:
        >>> x, y = read_nodes(b"node_id\\tfeature\\tlabel\\n1\\t0,1\\t4\\n0\\t1,1\\t2\\n", "nodes.txt")
        >>> x.tolist(), y.tolist()
        ([[1.0, 1.0], [0.0, 1.0]], [2, 4])
    """
    rows = [line.split("\t") for line in _lines(contents, source)[1:]]
    uneven = [number for number, row in enumerate(rows, start=2) if len(row) != 3]
    if uneven:
        raise DataError(
            f"{source} needs an id, features and a label in each line, got {len(rows[uneven[0] - 2])} "
            f"columns in line {uneven[0]}. Fetch it again."
        )
    try:
        node_id = np.array([row[0] for row in rows], dtype=np.str_).astype(np.int64)
        label = np.array([row[2] for row in rows], dtype=np.str_).astype(np.int64)
        kind = np.int64 if indexed else np.float32
        features = [_values(row[1]).astype(kind) for row in rows]
    except ValueError as error:
        raise DataError(f"{source} needs numbers, got {error}. Fetch it again.") from error
    order = np.argsort(node_id, kind="stable")
    if not np.array_equal(node_id[order], np.arange(len(rows))):
        raise DataError(f"{source} needs each id from 0 to {len(rows) - 1} once. Fetch it again.")
    x = _from_columns(features, source) if indexed else _stacked(features, source)
    return x[order], label[order]


def number_nodes(
    pairs: Pairs, labels: LabelLines | None, source: str
) -> tuple[Pairs, Int64[np.ndarray, " num_nodes"], Int64[np.ndarray, " num_nodes"]]:
    """Return edges between the numbers 0 to n - 1, labels, and the id of each number.

    Numbers follow the order of ids. A node without a line in ``labels`` has the label -1.

    Args:
        pairs: Edges by id; ids may have gaps.
        labels: Lines of id and label, in any order.
        source: Named in errors.

    Example:
        >>> edges, y, node_id = number_nodes(np.array([[30, 10]]), np.array([[30, 1], [10, 0]]), "a.txt")
        >>> edges.tolist(), y.tolist(), node_id.tolist()
        ([[1, 0]], [0, 1], [10, 30])
    """
    labels = np.empty((0, 2), dtype=np.int64) if labels is None else labels
    ids, count = np.unique(labels[:, 0], return_counts=True)
    if (count > 1).any():
        raise DataError(f"{source} needs one label for a node, got several for id {ids[count > 1][0]}.")
    node_id = np.union1d(ids, pairs)
    y = np.full(len(node_id), -1, dtype=np.int64)
    y[np.searchsorted(node_id, labels[:, 0])] = labels[:, 1]
    return np.searchsorted(node_id, pairs), y, node_id


def _lines(contents: bytes, source: str) -> list[str]:
    """Return the lines that are not empty, without a byte order mark."""
    try:
        text = contents.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{source} needs to be text in UTF-8, got {error}. Fetch it again.") from error
    return [line for line in text.splitlines() if line.strip()]


def _values(text: str) -> Shaped[np.ndarray, " num_values"]:
    """Return numbers that are separated by commas."""
    raw = np.frombuffer(text.encode(), dtype=np.uint8)
    digits = raw[::2] - ord("0")
    if raw.size % 2 and (digits <= 9).all() and (raw[1::2] == ord(",")).all():
        return digits  # bags of words: 20 times as fast as parsing them
    return np.array(text.split(","), dtype=np.str_).astype(np.float64)


def _stacked(features: list[np.ndarray], source: str) -> Float32[np.ndarray, "num_nodes channels"]:
    """Return rows of equal length as a matrix."""
    lengths = {row.size for row in features}
    if len(lengths) != 1:
        raise DataError(
            f"{source} needs as many features in each line, got {sorted(lengths)[:5]}. Fetch it again."
        )
    return np.stack(features)


def _from_columns(columns: list[np.ndarray], source: str) -> Float32[np.ndarray, "num_nodes channels"]:
    """Return the 0/1 matrix whose rows list their columns."""
    listed = np.concatenate(columns) if columns else np.empty(0, dtype=np.int64)
    if (listed < 0).any():
        raise DataError(f"{source} needs feature columns from 0, got {listed.min()}. Fetch it again.")
    x = np.zeros((len(columns), int(listed.max(initial=-1)) + 1), dtype=np.float32)
    x[np.repeat(np.arange(len(columns)), [row.size for row in columns]), listed] = 1.0
    return x
