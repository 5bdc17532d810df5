import math
from collections.abc import Sequence

from geomgcn.experiments import CellResult
from geomgcn.training import Summary
from geomgcn.viz._canvas import FAINT, INK, MUTED, Axes, Figure, new_axes

_WIDTH, _BAR, _MARGINS = 6.8, 0.55, 1.1  # inches; of the figure, of one row, of what surrounds the rows
_BASELINE, _GEOM_GCN, _CONTROL = "#B8B8B8", "#56B4E9", "#FFFFFF"
_INTERVAL, _DOTS = -0.12, 0.18  # where in a row they lie, so that neither hides the other


def accuracy_chart(results: Sequence[CellResult], *, ax: Axes | None = None) -> Figure:
    """Draw the mean test accuracies as bars, with 95 % intervals and a dot for each split.

    Controls are hatched. Intervals are cut at 0 and 100 %; a single run has none.

    Args:
        ax: Axes to draw on, instead of a new figure.

    Example:
        >>> from geomgcn.experiments import Cell, run_cell
        >>> from geomgcn.training import TrainConfig
        >>> cell = Cell("karate", model="mlp", num_splits=2, train=TrainConfig(max_epochs=2))
        >>> figure = accuracy_chart([run_cell(cell)])
        >>> figure.axes[0].get_yticklabels()[0].get_text()
        'MLP'
    """
    ax = new_axes(_WIDTH, _MARGINS + _BAR * max(len(results), 1)) if ax is None else ax
    for row, result in enumerate(results):
        _draw_row(ax, row, result)
    ax.set_yticks(range(len(results)), [_label(result) for result in results])
    ax.set_ylim(len(results) - 0.4, -0.6)  # the first on top
    ax.set_xlim(0, 115)  # room for the numbers
    ax.set_xticks(range(0, 101, 20))
    ax.set_xlabel(
        "test accuracy, %: mean, 95 % interval, and one dot for each split", color=MUTED, loc="left"
    )
    ax.tick_params(axis="x", colors=MUTED, length=3)
    ax.tick_params(axis="y", length=0)
    ax.set_axisbelow(True)
    ax.grid(axis="x", color=FAINT, linewidth=0.6)
    for side in ("top", "right", "bottom"):
        ax.spines[side].set_visible(False)
    ax.spines["left"].set_color(MUTED)
    return ax.figure


def row_name(result: CellResult) -> str:
    """Return the name of a result, and how far it came if it was interrupted.

    Example:
        >>> from geomgcn.experiments import Cell
        >>> from geomgcn.training import Runs
        >>> row_name(CellResult(Cell("karate", model="gcn"), Runs((), interrupted=True)))
        'GCN (partial: 0 runs)'
    """
    name = result.cell.title
    if not result.runs.interrupted:
        return name
    runs = len(result.runs.fits)
    return f"{name} (partial: {runs} run{'' if runs == 1 else 's'})"


def _label(result: CellResult) -> str:
    name = row_name(result)
    return name.replace("N_s", "$N_s$") + ("\n(control)" if result.cell.control else "")


def _draw_row(ax: Axes, row: int, result: CellResult) -> None:
    values = [100 * fit.test_accuracy for fit in result.runs.fits]
    if not values:
        return
    control = result.cell.control
    color = _CONTROL if control else _GEOM_GCN if result.cell.title.startswith("Geom-GCN") else _BASELINE
    summary = result.runs.test_accuracy
    mean = 100 * summary.mean
    ax.barh(
        row,
        mean,
        height=0.66,
        color=color,
        edgecolor=_GEOM_GCN if control else "none",
        hatch="////" if control else None,
        linewidth=1.0,
    )
    ax.scatter(values, [row + _DOTS] * len(values), s=18, color=INK, alpha=0.45, linewidths=0, zorder=3)
    low, high = _interval(summary)
    sides = [[mean - low], [high - mean]]
    ax.errorbar(mean, row + _INTERVAL, xerr=sides, color=INK, capsize=4, linewidth=1.4, zorder=4)
    ax.text(max(high, *values, mean) + 1.5, row, f"{mean:.1f}", va="center", color=INK, fontweight="bold")


def _interval(summary: Summary) -> tuple[float, float]:
    half = 0.0 if math.isnan(summary.ci95) else summary.ci95
    return max(0.0, 100 * (summary.mean - half)), min(100.0, 100 * (summary.mean + half))
