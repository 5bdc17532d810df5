"""Load a data set by name, and refuse it when it is not what its source says."""

import math
from dataclasses import asdict
from os import PathLike

from torch_geometric.data import Data

from geomgcn._names import lookup
from geomgcn.datasets._download import DataError
from geomgcn.datasets._sources import SOURCES, Facts
from geomgcn.graphs import canonical_edges, homophily


def load(name: str, *, root: str | PathLike[str] | None = None) -> Data:
    """Return a data set as PyG ``Data``, downloaded when needed and checked.

    ``x`` are the raw features (float32, not normalized), ``edge_index`` the edges as published:
    directed where the files are, sorted, without repeated ones, self-loops kept (citation graphs:
    both directions and no self-loops, as in PyG). ``y`` are class ids, -1 where unknown.
    ``train_mask``, ``val_mask`` and ``test_mask`` have one column for each of the ten published
    splits, where there are any. ``node_id`` keeps the ids of edge lists, which may have gaps.
    ``num_file_edges`` counts edges as the file does.

    Every raw file is verified by its hash at each load, and the graph by the facts in :data:`SOURCES`.

    Args:
        name: Case and underscores do not matter.
        root: Folder of raw files (laid out as ``<host>/<path>``) instead of the cache.

    Example:
        >>> load("karate").num_nodes
        34
        >>> load("karote")
        Traceback (most recent call last):
        ValueError: Unknown dataset 'karote'. Did you mean 'karate'? Known: cora, ...
    """
    key = lookup("dataset", name, {known: known for known in SOURCES})
    source = SOURCES[key]
    data = source.read(root)
    check_facts(key, measure(data), source.facts)
    data.name = key
    return data


def measure(data: Data) -> Facts:
    """Return the facts of a graph.

    Example:
        >>> measure(load("karate")).num_components
        1
    """
    if data.x is None or data.edge_index is None or data.y is None:
        raise DataError("A data set needs x, edge_index and y. Let its loader set all three.")
    num_nodes = int(data.x.shape[0])
    _, report = canonical_edges(data.edge_index, num_nodes)
    beta = homophily(data.edge_index, data.y, num_nodes)
    return Facts(
        num_nodes=num_nodes,
        num_edges=int(data.edge_index.shape[1]),
        num_file_edges=int(data.get("num_file_edges", report.num_edges // 2)),
        num_features=int(data.x.shape[1]),
        num_classes=int(data.y[data.y >= 0].unique().numel()),
        homophily=None if math.isnan(beta) else round(beta, 3),
        num_components=report.num_components,
        num_isolated=report.num_isolated,
    )


def check_facts(name: str, measured: Facts, expected: Facts) -> None:
    """Refuse a graph that does not meet the facts of its source.

    Example:
        >>> check_facts("mine", Facts(num_nodes=3), Facts(num_nodes=4))
        Traceback (most recent call last):
        geomgcn.datasets.DataError: Dataset 'mine' needs num_nodes=4, got num_nodes=3. ...
    """
    found = asdict(measured)
    wrong = [key for key, value in asdict(expected).items() if value is not None and found[key] != value]
    if wrong:
        raise DataError(
            f"Dataset {name!r} needs {', '.join(f'{key}={getattr(expected, key)}' for key in wrong)}, "
            f"got {', '.join(f'{key}={found[key]}' for key in wrong)}. Its files or its loader are not what "
            f"they were; correct the facts in SOURCES[{name!r}] only if the files changed on purpose."
        )
