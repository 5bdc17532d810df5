"""A training step of Geom-GCN beside those of other layers: milliseconds and memory, side by side in one run.

    python benchmarks/training.py                            # all sections, on two threads of the CPU
    python benchmarks/training.py datasets --graphs texas cora
    python benchmarks/training.py --quick                    # whether it runs; results only printed
    python benchmarks/training.py --print                    # tables and plots of what has been measured
    python benchmarks/training.py --device cuda              # on a GPU, with graphs of its size

A step is zero_grad, forward with dropout 0.5 on the input of both layers, cross-entropy on the training
nodes of the first published split, backward, and fused Adam, for models of two layers. Each graph is a
process of its own, in which the methods take turns. Before a data set is measured, Geom-GCN's fast path, its
straight form and a port of the released program's layer are asserted to have the same outputs and gradients
on it; generated graphs stand on such a check of a smaller one.

Where data sets cannot be downloaded, ``training.py prepare --tasks FOLDER`` elsewhere writes what
``--tasks FOLDER`` reads. Measurements are lines of ``results/training-cpu.jsonl`` (``-h200`` on a GPU); the
tables and plots beside it are made of them.
"""

import argparse
import json
import os
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from _measure import in_a_process, machine

RESULTS = Path(__file__).parent / "results"
PACKAGES = ("torch", "torch_geometric", "numpy", "numba")
SECTIONS = ("datasets", "generated", "sweeps", "epochs", "many")
NAMES = {"cpu": "training-cpu", "cuda": "training-h200"}

ARXIV = {"n": 169_000, "E": 2_300_000, "R": 9, "m": 32, "features": 128, "classes": 40}
PRODUCTS = {"n": 2_400_000, "E": 124_000_000, "R": 9, "m": 16, "features": 100, "classes": 47}
MIDDLE = {
    "cpu": {"n": 10**4, "E": 10**5, "R": 9, "m": 16, "features": 128, "classes": 8},
    "cuda": {"n": 10**6, "E": 10**7, "R": 9, "m": 16, "features": 128, "classes": 8},
}
FACTORS = {"n": (0.1, 0.3, 3, 10), "E": (0.1, 0.3, 3, 10)}
VALUES = {"R": (3, 5, 17, 33), "m": (4, 8, 32, 64)}
QUICK_GRAPHS = ("texas", "cora")
FULL_EPOCHS = 500  # as in the paper's figure
MANY_EPOCHS = 100


@dataclass(frozen=True)
class Plan:
    """How measurements are made."""

    device: str = "cpu"
    threads: int = 2
    quick: bool = False
    limit: float = 300.0
    results: Path = RESULTS
    tasks: Path | None = None
    load: float = 0.0

    @property
    def path(self):
        return self.results / f"{NAMES[self.device]}.jsonl"

    def job(self, what, graph, size, methods):
        """Return what a process is asked to do."""
        epochs = MANY_EPOCHS if what == "many" else FULL_EPOCHS
        return {
            "what": what,
            "graph": graph,
            "size": size,
            "methods": methods,
            "device": self.device,
            "path": str(self.tasks / f"{graph}.pt"),
            "budget": 0.3 if self.quick else 2.0,
            "epochs": 5 if self.quick else epochs,
            "limit": self.limit,
        }


def graphs_of(section, plan, chosen):
    """Return the graphs of a section: name and size, which is None for a data set."""
    from _graphs import NINE

    if section in ("datasets", "epochs", "many"):
        names = QUICK_GRAPHS if plan.quick else NINE
        return [(name, None) for name in names if not chosen or name in chosen]
    if section == "generated":
        graphs = [("arxiv size", ARXIV)]
        graphs += [("products size", PRODUCTS)] if plan.device == "cuda" else []
        if plan.quick:
            graphs = [(name, {**size, "n": size["n"] // 50, "E": size["E"] // 50}) for name, size in graphs]
        return graphs
    middle = MIDDLE[plan.device]
    points = [("middle", middle)]
    for key in ("n", "E", "R", "m"):
        values = VALUES.get(key) or [int(factor * middle[key]) for factor in FACTORS[key]]
        values = values[:1] if plan.quick else values
        points += [(f"{key}={value}", {**middle, key: value}) for value in values]
    return points


def methods_of(section, device):
    from _layers import EPOCHS, GRAPHED, OURS, STEPS

    if section == "many":
        return [OURS]
    if section == "epochs":
        return list(EPOCHS)
    return [*STEPS, *([GRAPHED] if device == "cuda" else [])]


def run(section, plan, chosen, rounds):
    """Measure a section round by round, and keep each result at once."""
    methods = methods_of(section, plan.device)
    what = section if section in ("epochs", "many") else "steps"
    # Steps in one process: how fast one is depends on where its memory happens to lie, for all methods alike.
    groups = [methods] if plan.device == "cuda" or what == "steps" else [[method] for method in methods]
    graphs = graphs_of(section, plan, chosen)
    for graph, size in graphs:
        write_task(graph, size, plan)
        ask(plan, plan.job("checks", graph, size, []))
    for number in range(rounds):
        for graph, size in graphs:
            for group in groups:
                for found in ask(plan, plan.job(what, graph, size, group)):
                    keep({"section": section, "graph": graph, "round": number, **found}, plan)


def ask(plan, job):
    return in_a_process(__file__, json.dumps(job), threads=plan.threads)


def write_task(graph, size, plan):
    """Write a data set with its structural neighborhood for all processes, unless that is done."""
    job = plan.job("prepare", graph, size, [])
    if size is None and not Path(job["path"]).exists():
        plan.tasks.mkdir(parents=True, exist_ok=True)
        ask(plan, job)


def keep(record, plan):
    """Write a record in place of an older one of the same measurement."""
    print(json.dumps(record), flush=True)

    def what(record):
        return [record[key] for key in ("section", "graph", "round", "method")]

    old = [json.loads(line) for line in plan.path.read_text().splitlines()] if plan.path.exists() else []
    kept = [other for other in old if what(other) != what(record)]
    told = {"machine": machine_name(plan), "load": plan.load, **record}
    plan.path.parent.mkdir(parents=True, exist_ok=True)
    plan.path.write_text("\n".join(json.dumps(other) for other in [*kept, told]) + "\n")


def machine_name(plan):
    name = machine(*PACKAGES, threads=plan.threads)
    if plan.device == "cpu":
        return name
    import torch

    return f"{torch.cuda.get_device_name()}, {name}"


def measure(text):
    """Do what a job asks, in this process, and print what was found."""
    import _graphs
    import _steps
    import torch

    job = json.loads(text)
    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    steps = {
        "checks": _steps.measure_checks,
        "steps": _steps.measure_steps,
        "epochs": _steps.measure_epochs,
        "many": _steps.measure_many,
    }
    if job["what"] == "prepare":
        _graphs.save(_graphs.of_dataset(job["graph"]), job["path"])
        found = []
    else:
        found = steps[job["what"]](job)
    print(json.dumps(found))


def busy():
    """Return how busy the machine is, which goes into each record, and warn of it."""
    load = os.getloadavg()[0]
    if load > 0.5:
        print(f"The machine is busy (load {load:.1f}): numbers will be too large.", file=sys.stderr)
    return load


def parsed():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, "prepare", []], help="default: all")
    parser.add_argument("--graphs", nargs="*", help="data sets; default: all nine")
    parser.add_argument("--device", choices=NAMES, default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1, help="passes over all measurements; tables: medians")
    parser.add_argument("--limit", type=float, default=300.0, help="seconds for the epochs of one model")
    parser.add_argument("--tasks", type=Path, help="where prepared data sets are kept and read")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--quick", action="store_true", help="texas and cora, few repeats; only prints")
    parser.add_argument("--print", dest="show", action="store_true")
    return parser.parse_args()


def main():
    from _training_report import write

    options = parsed()
    plan = Plan(options.device, options.threads, options.quick, options.limit, options.results, options.tasks)
    with tempfile.TemporaryDirectory() as folder:
        plan = plan if plan.tasks else replace(plan, tasks=Path(folder))
        if plan.quick and plan.results == RESULTS:  # hasty numbers must not stand beside real ones
            plan = replace(plan, results=Path(folder) / "results")
        if options.sections == ["prepare"]:
            for graph, size in graphs_of("datasets", plan, options.graphs):
                write_task(graph, size, plan)
            return
        if not options.show:
            plan = replace(plan, load=busy())
            for section in options.sections or SECTIONS:
                run(section, plan, options.graphs, options.rounds)
        text = write(plan.path, plan.device)
        if plan.quick or options.show:
            print(text)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(sys.argv[2])
    else:
        main()
