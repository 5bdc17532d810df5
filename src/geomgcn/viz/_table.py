import math
from collections.abc import Sequence
from dataclasses import replace

from geomgcn.experiments import CellResult
from geomgcn.training import Summary, summarize
from geomgcn.viz._accuracy_chart import row_name

_NOTHING = "\N{EN DASH}"


def best_baseline(results: Sequence[CellResult]) -> CellResult | None:
    """Return the model other than Geom-GCN with the highest mean, if any has run.

    Example:
        >>> best_baseline([]) is None
        True
    """
    baselines = [result for result in results if not is_geom_gcn(result) and result.runs.fits]
    return max(baselines, key=lambda result: result.runs.test_accuracy.mean, default=None)


def is_geom_gcn(result: CellResult) -> bool:
    """Return whether a result is one of Geom-GCN, its controls included.

    Example:
        >>> from geomgcn.experiments import Cell
        >>> from geomgcn.training import Runs
        >>> is_geom_gcn(CellResult(Cell("karate", model="gcn"), Runs(())))
        False
    """
    return result.cell.title.startswith("Geom-GCN")


def control_of(result: CellResult, results: Sequence[CellResult]) -> CellResult | None:
    """Return the run of the same cell with a random latent neighbourhood, if there is one.

    Example:
        >>> from geomgcn.experiments import Cell
        >>> from geomgcn.training import Runs
        >>> real, control = (CellResult(Cell("karate", control=flag), Runs(())) for flag in (False, True))
        >>> control_of(real, [real, control]) is control
        True
    """
    controls = (other for other in results if other.cell.control and other is not result)
    return next((other for other in controls if replace(other.cell, control=False) == result.cell), None)


def paired_gap(one: CellResult, other: CellResult) -> Summary:
    """Return the summary of ``one - other``, split by split, over the splits that both have run.

    Pairing takes out what makes a split easy or hard for both.

    Example:
        >>> from geomgcn.experiments import Cell
        >>> from geomgcn.training import Runs
        >>> none = CellResult(Cell("karate"), Runs(()))
        >>> paired_gap(none, none).runs
        0
    """
    mine, theirs = (dict(zip(runs.places, runs.fits, strict=True)) for runs in (one.runs, other.runs))
    both = [place for place in mine if place in theirs]  # of interrupted ones, some are missing
    return summarize([mine[place].test_accuracy - theirs[place].test_accuracy for place in both])


def in_points(gap: Summary) -> str:
    """Return a gap in points with its interval.

    Example:
        >>> in_points(summarize([0.04, 0.06]))
        '+5.0 ± 12.7'
    """
    if not gap.runs:
        return _NOTHING
    mean = f"{100 * gap.mean:+.1f}".replace("-", "\N{MINUS SIGN}")
    return mean + ("" if math.isnan(gap.ci95) else f" ± {100 * gap.ci95:.1f}")


def table_rows(results: Sequence[CellResult]) -> list[list[str]]:
    """Return the cells of the table of results, the heading first; accuracies in percent, gaps in points.

    Example:
        >>> table_rows([])
        [['model', 'mean', 'std', '95 %', 'runs', 'gap to the best baseline']]
    """
    best = best_baseline(results)
    name = "the best baseline" if best is None else best.cell.title
    rows = [["model", "mean", "std", "95 %", "runs", f"gap to {name}"]]
    for result in results:
        summary = result.runs.test_accuracy
        std = summary.std if summary.runs > 1 else math.nan
        numbers = [f"{100 * summary.mean:.1f}", f"{100 * std:.1f}", f"± {100 * summary.ci95:.1f}"]
        shown = [_NOTHING if "nan" in number else number for number in numbers]
        gap = "" if best is None or result is best else in_points(paired_gap(result, best))
        rows.append([row_name(result), *shown, str(summary.runs), gap])
    return rows


def gap_lines(results: Sequence[CellResult]) -> list[str]:
    """Return a sentence for each Geom-GCN that was run with its control.

    Example:
        >>> gap_lines([])
        []
    """
    lines = []
    for result in results:
        control = control_of(result, results)
        if control is None or not (gap := paired_gap(result, control)).runs:
            continue
        lines.append(
            f"{result.cell.title} over its random-N_s control: {in_points(gap)} points, "
            f"paired by split ({gap.runs} splits)."
        )
    return lines


def partial_line(results: Sequence[CellResult]) -> str | None:
    """Return a sentence that says that runs are missing, if some are.

    Example:
        >>> partial_line([]) is None
        True
    """
    if not any(result.runs.interrupted for result in results):
        return None
    return (
        "Partial: the series was interrupted, and runs or models are missing. "
        "Compare these numbers with care."
    )


def format_table(results: Sequence[CellResult]) -> str:
    """Return the table of results as aligned plain text, and below it what the controls say.

    Accuracies are in percent, with the sample standard deviation and the half-width of the 95 % interval
    of the mean. Gaps are in points, paired by split.

    Example:
        >>> print(format_table([]))
        model  mean  std  95 %  runs  gap to the best baseline
    """
    rows = table_rows(results)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
    remarks = [*gap_lines(results), *filter(None, [partial_line(results)])]
    return "\n".join([*(line.rstrip() for line in lines), *remarks])
