"""What each command of the command line does; see :mod:`geomgcn._arguments` for what it takes."""

import importlib.metadata
import os
import platform
import sys
import time
from pathlib import Path
from typing import Any

import torch
from tqdm import tqdm

from geomgcn import _arguments, _store, embeddings, experiments
from geomgcn import datasets as data_sets
from geomgcn._embed import embed
from geomgcn._output import check_out, describe_graph, graph_and_edges, print_json, write_table
from geomgcn.experiments import Cell, CellResult
from geomgcn.training import Fit, Runs, TrainConfig


def run(command: _arguments.Command) -> int:
    """Run a command and return the exit code."""
    match command:
        case _arguments.Train():
            return train(command)
        case _arguments.Embed():
            return embed(command)
        case _arguments.Neighborhood():
            return neighborhood(command)
        case _arguments.Datasets():
            return datasets(command)
        case _arguments.Demo():
            return demo(command)
        case _arguments.Doctor():
            return doctor(command)


def train(command: _arguments.Train) -> int:
    """Run one cell and print its accuracy."""
    cell = cell_of(command)
    result = run_with_progress(cell, quiet=command.json)
    if command.json:
        print_json(result.as_dict())
    else:
        print(format_result(result))
    return 130 if result.runs.interrupted else 0 if result.runs.failure is None else 1


def cell_of(command: _arguments.Train) -> Cell:
    """Return the cell that a command line describes."""
    config = TrainConfig(
        learning_rate=command.learning_rate,
        max_epochs=command.max_epochs,
        patience=command.patience,
        device=command.device,
    )
    same = (
        "model neighborhood use control relation preset splits num_splits seed hidden dropout "
        "weight_decay checkpoint overlap norm baseline_edges direction self_loops decay"
    )
    return Cell(command.graph, train=config, **{name: getattr(command, name) for name in same.split()})


def run_with_progress(cell: Cell, quiet: bool) -> CellResult:
    """Run a cell under a progress bar on standard error, where that is a terminal."""
    hidden = quiet or not sys.stderr.isatty()
    with tqdm(desc=cell.title, unit=" runs", disable=hidden, leave=False) as bar:

        def on_run(_: int, fit: Fit) -> None:
            bar.update()

        def on_epoch(epoch: int, val_accuracy: float) -> None:
            bar.set_postfix_str(
                f"epoch {epoch}, validation {100 * val_accuracy:.1f} %", refresh=epoch % 20 == 0
            )

        return experiments.run_cell(cell, on_run, on_epoch, on_start=bar.reset)


def format_result(result: CellResult) -> str:
    """Return the lines that a person reads."""
    summary = result.runs.test_accuracy
    config = result.cell.config
    lines = [f"{result.cell.dataset}: {result.cell.title}, preset {result.cell.preset}"]
    for i, fit in enumerate(result.runs.fits):
        lines.append(
            f"  split {i}: test {100 * fit.test_accuracy:6.2f} %, "
            f"validation {100 * fit.val_accuracy:6.2f} %, {fit.epochs} epochs"
        )
    if summary.runs:
        lines.append(
            f"  test accuracy {100 * summary.mean:.2f} %"
            + (
                f", standard deviation {100 * summary.std:.2f}, 95 % interval ± {100 * summary.ci95:.2f}, "
                f"{summary.runs} runs"
                if summary.runs > 1
                else ", one run"
            )
        )
    lines.append(
        f"  learning rate {config.learning_rate:g}, weight decay {config.weight_decay:g}, "
        f"hidden width {result.cell.width}, tested weights: {config.checkpoint}"
    )
    lines += [f"  Note: {note}" for note in result.notes]
    if result.runs.interrupted:
        lines.append(f"  Interrupted: {summary.runs} runs are done, the others are missing.")
    if result.runs.failure is not None:
        lines.append(f"  {result.runs.failure}")
    return "\n".join(lines)


def neighborhood(command: _arguments.Neighborhood) -> int:
    """Describe and write a structural neighbourhood."""
    cell = Cell(command.graph, neighborhood=command.neighborhood, relation=command.relation)
    experiments.check_spaces(cell)
    check_out(command.out, command.graph)
    graph, edges, report = graph_and_edges(command.graph)
    notes: list[str] = []
    parts = experiments.structure_parts(cell, graph, edges, notes)
    if command.out is not None:
        source, target = torch.cat([part.edge_index for part in parts], dim=1)
        which = torch.cat([torch.full((p.edge_index.size(1),), i) for i, p in enumerate(parts)])
        relation = torch.cat([part.relation for part in parts])
        table = {"source": source, "target": target, "neighborhood": which, "relation": relation}
        write_table(command.out, table, table)
    if command.json:
        listed = [
            {
                "name": part.name,
                "pairs": part.edge_index.size(1),
                "by_relation": torch.bincount(part.relation, minlength=part.num_relations).tolist(),
            }
            for part in parts
        ]
        print_json(
            {"dataset": command.graph, "nodes": report.num_nodes, "neighborhoods": listed, "notes": notes}
        )
        return 0
    print(f"{command.graph}: {describe_graph(report)}")
    for line in [*experiments.describe_parts(parts, report.num_nodes), *(f"Note: {note}" for note in notes)]:
        print(f"  {line}")
    if command.out is not None:
        print(f"Pairs written to {command.out}")
    return 0


def datasets(command: _arguments.Datasets) -> int:
    """Print the statistics of data sets."""
    rows = data_sets.table(command.names) if command.names else data_sets.table()
    if command.json:
        print_json(rows)
    else:
        print(data_sets.format_table(rows))
        if not command.names:
            others = [name for name in data_sets.SOURCES if name not in data_sets.PUBLISHED]
            print(f"Others: {', '.join(others)}.")
    return 0


def demo(command: _arguments.Demo) -> int:
    """Train all models on the embedded graph and write the report."""
    from geomgcn.viz import report

    cells = report.demo_cells(command.num_splits, command.seed)
    report.check_ready(command.out)
    results: list[CellResult] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # so small a graph is no faster with two, and sums come out alike everywhere
    try:
        for cell in cells:
            results.append(_run_of_demo(cell, quiet=command.json))
            if results[-1].runs.interrupted:
                break
    finally:
        torch.set_num_threads(threads)
    # Before the report: a full disk must not lose the numbers.
    if command.json:
        print_json(
            {"results": [result.as_dict() for result in results], "report": str(command.out / "index.html")}
        )
    else:
        print(report.format_table(results), flush=True)
    page = report.write_demo_report(results, command.out, command.seed)
    if not command.json:
        print(f"Report with pictures: {page}")
    return 130 if results[-1].runs.interrupted else 0


def _run_of_demo(cell: Cell, quiet: bool) -> CellResult:
    begin = time.perf_counter()
    try:
        result = run_with_progress(cell, quiet)
    except KeyboardInterrupt:  # while the graph was prepared: the models before this one still count
        return CellResult(cell, Runs((), interrupted=True))
    if not quiet and result.runs.fits:
        mean, seconds = 100 * result.runs.test_accuracy.mean, time.perf_counter() - begin
        print(f"{cell.title:32} {mean:6.2f} %  ({seconds:.0f} s)", file=sys.stderr, flush=True)
    return result


_PACKAGES = ("torch", "torch_geometric", "numpy", "scipy", "numba", "pooch", "safetensors", "tyro")
_EXTRAS = {"plot": "matplotlib", "tune": "optuna", "parquet": "pyarrow"}


def doctor(command: _arguments.Doctor) -> int:
    """Check the installation; the exit code is 1 if something does not work."""
    findings = {
        "geomgcn": importlib.metadata.version("geomgcn"),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in _PACKAGES},
        **{f"extra {extra}": _version_or_hint(extra, name) for extra, name in _EXTRAS.items()},
        "threads": str(torch.get_num_threads()),
        "CUDA": torch.cuda.get_device_name()
        if torch.cuda.is_available()
        else "none, training runs on the CPU",
        "cache folder": _try(lambda: str(_store.cache_folder())),
        "compiled kernels": _try(_check_kernels),
        "data": _try(_check_data),
    }
    failed = [name for name, value in findings.items() if value.startswith("failed")]
    if command.json:
        print_json({"ok": not failed, **findings})
    else:
        width = max(map(len, findings))
        print("\n".join(f"{name:{width}}  {value}" for name, value in findings.items()))
        print(f"Failed: {', '.join(failed)}." if failed else "All is well.")
    return 1 if failed else 0


def _version_or_hint(extra: str, name: str) -> str:
    try:
        return f"{name} {importlib.metadata.version(name)}"
    except importlib.metadata.PackageNotFoundError:
        return f"absent; pip install 'geomgcn[{extra}]'"


def _try(check: Any) -> str:
    try:
        return str(check())
    except Exception as error:  # a broken installation may fail in any way, and saying how is the point
        return f"failed: {' '.join(str(error).split())}"


def _check_kernels() -> str:
    begin = time.perf_counter()
    path = torch.tensor([[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]])
    pos = embeddings.Isomap().embed(path, 4)
    length = float((pos[0] - pos[3]).norm())
    if abs(length - 3) > 1e-6:
        raise RuntimeError(f"Isomap of a path of three edges has length {length!r}, not 3")
    return f"work ({time.perf_counter() - begin:.1f} s)"


def _check_data() -> str:
    mirror = os.environ.get(data_sets.MIRROR_VARIABLE)
    if mirror and not Path(mirror).is_dir():
        raise ValueError(f"{data_sets.MIRROR_VARIABLE} names {mirror!r}, which is no folder")
    return f"mirror {mirror}" if mirror else "downloaded when first used; GEOMGCN_MIRROR is not set"
