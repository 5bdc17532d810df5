"""Accuracies of published neighbourhood files, and of our own spaces with their control.

    python benchmarks/accuracy.py released --jobs 2          # the published files, released program's rules
    python benchmarks/accuracy.py scratch --jobs 2           # own Isomap, sound rules, random 60/20/20 splits
    python benchmarks/accuracy.py released --print           # print the table of what is done so far

Each finished cell is one line of ``benchmarks/results/accuracy-<table>.jsonl`` and is not run again.
Every line is what ``geomgcn train ... --json`` prints for that cell, with the settings that name it.
"""

import argparse
import json
import math
import multiprocessing
import time
from dataclasses import asdict
from pathlib import Path

import torch

from geomgcn.experiments import Cell, run_cell
from geomgcn.training import TrainConfig, summarize

RESULTS = Path(__file__).parent / "results"

# Data set, row, the paper's accuracy, and the last-weights accuracy of an independent re-implementation
# of the released program on the same files.
PUBLISHED = [
    ("texas", "GCN", 52.16, 51.89),
    ("texas", "I", 57.58, 57.57),
    ("texas", "P", 67.57, 67.57),
    ("texas", "S", 59.73, 60.27),
    ("texas", "P-s", 73.51, 73.51),
    ("wisconsin", "GCN", 45.88, 45.88),
    ("wisconsin", "I", 58.24, 58.24),
    ("wisconsin", "P", 64.12, 64.90),
    ("wisconsin", "S", 56.67, 56.67),
    ("wisconsin", "P-s", 80.39, 80.78),
    ("cora", "GCN", 85.77, 85.65),
    ("cora", "I", 85.19, 85.57),
    ("cora", "P", 84.93, 85.09),
    ("cora", "S", 85.27, 85.17),
    ("cora", "S-g", 87.00, 87.06),
    ("chameleon", "GCN", 28.18, 31.54),
    ("chameleon", "I", 60.31, 60.26),
    ("chameleon", "P", 60.90, 61.07),
    ("chameleon", "S", 59.96, 60.20),
    ("chameleon", "I-g", 68.00, 67.89),
    ("citeseer", "GCN", 73.68, 73.57),
    ("citeseer", "P", 75.14, 75.23),
    ("citeseer", "S", 74.71, 74.85),
    ("citeseer", "I", 77.99, 78.04),
    ("actor", "GCN", 26.86, 26.78),
    ("actor", "I", 29.09, 28.93),
    ("actor", "P", 31.63, 31.68),
    ("actor", "S", 30.30, 29.99),
    ("actor", "P-s", 34.59, 34.62),
    ("squirrel", "GCN", 23.96, 24.52),
    ("pubmed", "GCN", 88.13, 88.18),
    ("pubmed", "P", 88.09, 88.08),
    ("pubmed", "I", 90.05, 89.99),
]
SPACES = {"I": "isomap", "P": "poincare", "S": "struc2vec"}
NINE = ("texas", "wisconsin", "cornell", "cora", "citeseer", "chameleon", "actor", "squirrel", "pubmed")


def released_cells(device: str) -> list[Cell]:
    cells = []
    for dataset, row, _, _ in PUBLISHED:
        train = TrainConfig(device=device)
        common = {"preset": "released", "splits": "published", "train": train}
        if row == "GCN":
            cells.append(Cell(dataset, "gcn", **common))
            continue
        use = {"": "both", "g": "graph", "s": "latent"}[row.partition("-")[2]]
        cells.append(Cell(dataset, neighborhood=f"released:{SPACES[row[0]]}", use=use, **common))
    return cells


GEOM_GCN, CONTROL = 3, 4  # their places among the rows of a data set


def scratch_cells(device: str) -> list[Cell]:
    train = TrainConfig(device=device)
    rows = [{"model": "mlp"}, {"model": "gcn"}, {"model": "gat"}, {}, {"control": True}, {"use": "graph"}]
    return [Cell(dataset, splits="random", train=train, **row) for dataset in NINE for row in rows]


TABLES = {"released": released_cells, "scratch": scratch_cells}


def key_of(cell: Cell) -> str:
    """Settings that differ from the defaults, so that a new setting does not disown old results."""
    plain = asdict(cell)
    del plain["train"]["device"]
    default = asdict(Cell(cell.dataset))
    settings = {name: value for name, value in plain.items() if name == "dataset" or value != default[name]}
    train = {name: value for name, value in plain["train"].items() if value != default["train"][name]}
    settings.pop("train", None)
    return json.dumps({**settings, **({"train": train} if train else {})}, sort_keys=True)


def run(cell: Cell) -> dict:
    torch.set_num_threads(1)
    begin = time.perf_counter()
    result = run_cell(cell).as_dict()
    seconds = round(time.perf_counter() - begin, 1)
    return {**result, "cell": json.loads(key_of(cell)), "seconds": seconds, "torch": torch.__version__}


def finished(path: Path) -> dict[str, dict]:
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {json.dumps(row["cell"], sort_keys=True): row for row in rows}


def percent(row: dict | None) -> str:
    if row is None:
        return "not run"
    accuracy = row["test_accuracy"]
    return f"{100 * accuracy['mean']:.2f} ± {100 * (accuracy['ci95'] or math.nan):.2f}"


def released_table(done: dict[str, dict]) -> str:
    lines = ["| | paper | re-implementation | ours | difference to paper |", "|---|---|---|---|---|"]
    for (dataset, row, paper, other), cell in zip(PUBLISHED, released_cells("auto"), strict=True):
        ours = done.get(key_of(cell))
        gap = "" if ours is None else f"{100 * ours['test_accuracy']['mean'] - paper:+.2f}"
        leak = " (leak)" if ours and any("labels" in note for note in ours["notes"]) else ""
        lines.append(f"| {dataset} {row}{leak} | {paper:.2f} | {other:.2f} | {percent(ours)} | {gap} |")
    return "\n".join(lines)


def difference(row: dict | None, other: dict | None) -> str:
    """Mean difference of two cells with the same splits, and its interval, split by split."""
    if row is None or other is None:
        return "not run"
    gap = summarize([a - b for a, b in zip(row["per_run"], other["per_run"], strict=True)])
    return f"{100 * gap.mean:+.1f} ± {100 * gap.ci95:.1f}"


def scratch_table(done: dict[str, dict]) -> str:
    cells = scratch_cells("auto")
    titles = list(dict.fromkeys(cell.title for cell in cells))
    lines = [f"| | {' | '.join(titles)} | gain over random N_s |", "|---" * (len(titles) + 2) + "|"]
    for dataset in NINE:
        rows = [done.get(key_of(cell)) for cell in cells if cell.dataset == dataset]
        gain = difference(rows[GEOM_GCN], rows[CONTROL])
        lines.append(f"| {dataset} | {' | '.join(map(percent, rows))} | {gain} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--jobs", type=int, default=1, help="processes side by side, one thread each")
    parser.add_argument("--only", nargs="*", help="data sets")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--print", dest="show", action="store_true")
    options = parser.parse_args()
    path = options.results / f"accuracy-{options.table}.jsonl"
    done = finished(path)
    if not options.show:
        cells = [cell for cell in TABLES[options.table](options.device) if key_of(cell) not in done]
        cells = [cell for cell in cells if not options.only or cell.dataset in options.only]
        cells.reverse()  # the largest graphs first, so that no long cell is left alone at the end
        context = multiprocessing.get_context("spawn")
        with context.Pool(options.jobs) as pool, open(path, "a") as file:
            for row in pool.imap_unordered(run, cells):
                print(f"{row['dataset']:10} {row['title']:32} {percent(row)}  {row['seconds']} s", flush=True)
                file.write(json.dumps(row) + "\n")
                file.flush()
        done = finished(path)
    print(released_table(done) if options.table == "released" else scratch_table(done))


if __name__ == "__main__":
    main()
