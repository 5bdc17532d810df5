"""What several commands share: reading a graph, describing it, and writing tables and JSON."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from geomgcn import _store, experiments
from geomgcn.graphs import GraphReport, canonical_edges

ENDINGS = (".csv", ".npz", ".parquet")


def print_json(value: object) -> None:
    """Print one object on one line; NaN is a mistake.

    Example:
        >>> print_json({"nodes": 34})
        {"nodes": 34}
    """
    print(json.dumps(value, allow_nan=False))


def graph_and_edges(name: str) -> tuple[Any, Tensor, GraphReport]:
    """Return a graph, labelled or not, its canonical edges, and what was changed in it.

    Example:
        >>> graph_and_edges("karate")[2].num_nodes
        34
    """
    graph = experiments.graph_of(name, labels=False)
    edges, report = canonical_edges(graph.edge_index, graph.num_nodes)
    return graph, edges, report


def describe_graph(report: GraphReport) -> str:
    """Return one line about a graph and what was changed in it.

    Example:
        >>> describe_graph(graph_and_edges("karate")[2])[:20]
        '34 nodes, 78 edges, '
    """
    return (
        f"{report.num_nodes} nodes, {report.num_edges // 2} edges, {report.num_components} components, "
        f"{report.num_isolated} isolated; left out {report.self_loops} self-loops and {report.duplicates} "
        f"duplicates, added the other direction of {report.one_way}"
    )


def check_out(path: Path | None, graph: str) -> None:
    """Refuse a place for the output before any work is done, the file of the graph above all.

    Example:
        >>> check_out(Path("pos.txt"), "karate")
        Traceback (most recent call last):
        ValueError: --out takes a .csv, .npz or .parquet file, got 'pos.txt'. Change the ending.
    """
    if path is None:
        return
    if path.suffix not in ENDINGS:
        raise ValueError(
            f"--out takes a {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]} file, got {str(path)!r}. "
            f"Change the ending."
        )
    if path.suffix == ".parquet":
        _parquet()
    if not path.absolute().parent.is_dir():
        raise ValueError(f"--out {str(path)!r}: the folder does not exist. Make it first.")
    if path.is_dir():
        raise ValueError(f"--out needs a file, and {str(path)!r} is a folder. Name a file in it.")
    if path.exists() and Path(graph).exists() and path.samefile(graph):
        raise ValueError(f"--out {str(path)!r} is the file of the graph itself. Name another file.")


def _parquet() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError(
            "Parquet files need pyarrow, which is not installed. Run: pip install 'geomgcn[parquet]', "
            "or name a .csv or .npz file."
        ) from error
    return pyarrow


def write_table(path: Path, columns: dict[str, Tensor], arrays: dict[str, Tensor]) -> None:
    """Write columns as CSV or Parquet, or arrays as npz, by the ending of the path.

    Whoever reads the file finds the old one or the new one.

    Example:
        >>> import tempfile, torch
        >>> path = Path(tempfile.mkdtemp()) / "pos.csv"
        >>> write_table(path, {"node": torch.arange(2), "x0": torch.tensor([0.5, 1.0])}, {})
        >>> path.read_text().split()
        ['node,x0', '0,0.5', '1,1.0']
    """
    if path.suffix == ".npz":
        named: dict[str, Any] = {name: value.cpu().numpy() for name, value in arrays.items()}
        _store.write_atomic(path, lambda file: np.savez(file, **named))
        return
    if path.suffix == ".parquet":
        arrow = _parquet()
        table = arrow.table({name: column.cpu().numpy() for name, column in columns.items()})
        _store.write_atomic(path, lambda file: arrow.parquet.write_table(table, file))
        return
    rows: Iterable[Sequence[float]] = zip(*(column.tolist() for column in columns.values()), strict=True)
    text = ",".join(columns) + "\n" + "".join(",".join(map(repr, row)) + "\n" for row in rows)
    _store.write_atomic(path, lambda file: file.write(text.encode()))
