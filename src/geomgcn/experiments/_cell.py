import math
from collections.abc import Callable
from dataclasses import asdict, dataclass

from geomgcn._names import canonical
from geomgcn.experiments._prepare import prepare
from geomgcn.experiments._spec import Cell
from geomgcn.training import OnEpoch, OnRun, Runs, fit_splits


@dataclass(frozen=True, eq=False)
class CellResult:
    """A cell with its runs.

    Attributes:
        notes: What a reader of the number must know.
        splits: ``"published"`` or ``"random"``, whichever ``"auto"`` came to be.
    """

    cell: Cell
    runs: Runs
    notes: tuple[str, ...] = ()
    splits: str = "random"

    def as_dict(self) -> dict[str, object]:
        """Return the result in the form that ``--json`` prints, accuracies as fractions."""
        summary = self.runs.test_accuracy
        per_run = [_finite(fit.test_accuracy) for fit in self.runs.fits]
        return {
            "dataset": self.cell.dataset,
            "model": canonical(self.cell.model),
            "title": self.cell.title,
            "preset": self.cell.preset,
            "test_accuracy": {
                "mean": _finite(summary.mean),
                "std": _finite(summary.std),
                "ci95": _finite(summary.ci95),
                "runs": summary.runs,
                "per_run": per_run,
            },
            "per_run": per_run,
            "epochs": [fit.epochs for fit in self.runs.fits],
            "interrupted": self.runs.interrupted,
            "failure": self.runs.failure,
            "settings": self.settings(),
            "notes": list(self.notes),
        }

    def settings(self) -> dict[str, object]:
        """Return all that the runs depend on, with the preset's and the paper's values filled in."""
        cell = asdict(self.cell)
        of_model = {name: cell[name] for name in ("neighborhood", "use", "control", "relation", "dropout")}
        rules, train = asdict(self.cell.rules), asdict(self.cell.config)
        shared = {name: rules[name] for name in rules if name not in ("name", "checkpoint", "decay")}
        return {"splits": self.splits, "hidden": self.cell.width, **of_model, **shared, **train}


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None  # JSON has no NaN


def run_cell(
    cell: Cell,
    on_run: OnRun | None = None,
    on_epoch: OnEpoch | None = None,
    on_start: Callable[[int], None] | None = None,
) -> CellResult:
    """Run a table entry over its splits; Ctrl-C keeps the runs that are done.

    Args:
        on_run: Called after each run with its place and its result.
        on_epoch: Called after each epoch of each run.
        on_start: Called once before the first run, with the number of runs.

    Example:
        >>> from geomgcn.training import TrainConfig
        >>> cell = Cell("karate", model="mlp", num_splits=2, train=TrainConfig(max_epochs=2))
        >>> run_cell(cell).runs.test_accuracy.runs
        2
    """
    ready = prepare(cell)
    if on_start is not None:
        on_start(len(ready.splits))
    runs = fit_splits(ready.make_model, ready.data, ready.splits, cell.config, on_run, on_epoch)
    return CellResult(cell, runs, ready.notes, ready.kind_of_splits)
