"""What the demo's results say in words; every number is taken from them."""

import math
from collections.abc import Sequence
from dataclasses import replace

from geomgcn.experiments import CellResult
from geomgcn.relations import Quadrants
from geomgcn.training import Summary
from geomgcn.viz._table import best_baseline, control_of, in_points, is_geom_gcn, paired_gap


def summary(results: Sequence[CellResult]) -> str:
    """Return the main result in a sentence.

    Example:
        >>> summary([])
        'Not enough runs are done to compare the models.'
    """
    geom, best = _geom_gcn(results), best_baseline(results)
    if geom is None or best is None:
        return "Not enough runs are done to compare the models."
    return (
        f"Geom-GCN labels {_percent(geom)} of the test nodes right; the best of the models without geometry, "
        f"{best.cell.title}, {_percent(best)}."
    )


def in_words(results: Sequence[CellResult]) -> str:
    """Return the mean accuracy of each model, for those who do not see the chart.

    Example:
        >>> in_words([])
        'No run is done.'
    """
    done = [f"{result.cell.title} {_percent(result)}" for result in results if result.runs.fits]
    return "; ".join(done) + "." if done else "No run is done."


def findings(results: Sequence[CellResult], alike: float) -> list[str]:
    """Return a paragraph for each of the two weaknesses that the graph was made to show.

    Args:
        alike: Share of latent pairs within a class.

    Example:
        >>> len(findings([], alike=0.7))
        2
    """
    return [_bag_of_neighbors(results), _likes_out_of_reach(results, alike)]


def _bag_of_neighbors(results: Sequence[CellResult]) -> str:
    by_model = {
        result.cell.model: result for result in results if not is_geom_gcn(result) and result.runs.fits
    }
    parts = [
        "No edge of this graph joins two nodes of a class, and a node's own words say little about its role."
    ]
    if "mlp" in by_model:
        parts.append(f"MLP, which sees the words alone, is right for {_percent(by_model['mlp'])}.")
    bags = [
        f"{by_model[name].cell.title} {_percent(by_model[name])}"
        for name in ("gcn", "gat")
        if name in by_model
    ]
    if bags:
        parts.append(
            f"GCN adds up the words of all neighbors and GAT weighs them, but neither is told who was above "
            f"and who below: {' and '.join(bags)}."
        )
    geom = _geom_gcn(results)
    on_graph = geom and _find(results, replace(geom.cell, use="graph"))
    if on_graph is not None:
        parts.append(
            f"Geom-GCN-g has the same neighbors, but keeps the four quadrants of the latent space apart, "
            f"and reaches {_percent(on_graph)}."
        )
    return " ".join(parts)


def _likes_out_of_reach(results: Sequence[CellResult], alike: float) -> str:
    parts = [
        "Two layers reach two steps, and most nodes of a role are farther apart than that.",
        f"In the latent space they are near: {100 * alike:.0f} % of the latent pairs join nodes of a class.",
    ]
    geom = _geom_gcn(results)
    if geom is None:
        return " ".join(parts)
    on_graph = _find(results, replace(geom.cell, use="graph"))
    if on_graph is not None:
        gap = paired_gap(geom, on_graph)
        parts.append(f"With these neighbors as well, Geom-GCN gains {in_points(gap)} points over Geom-GCN-g.")
    control = control_of(geom, results)
    if control is not None and control.runs.fits:
        gap = paired_gap(geom, control)
        parts.append(
            f"The control has as many latent neighbors of no meaning, since their nodes are renamed at "
            f"random: Geom-GCN is {in_points(gap)} points above it, {_verdict(gap)}."
        )
    return " ".join(parts)


def _verdict(gap: Summary) -> str:
    if math.isnan(gap.ci95) or abs(gap.mean) <= gap.ci95:
        return "which these runs do not tell apart from zero"
    if gap.mean > 0:
        return "so it is the place of the neighbors that counts, not their number"
    return "so the place of the neighbors does harm here"


def protocol(results: Sequence[CellResult], seed: int) -> list[str]:
    """Return how the numbers came about, point by point.

    Example:
        >>> protocol([], seed=0)
        ['No model has run.']
    """
    if not results:
        return ["No model has run."]
    cell = results[0].cell
    config = cell.config
    return [
        f"Graph: {cell.dataset}, generated inside the package, always the same.",
        f"Splits: {cell.num_splits} random ones, 60 / 20 / 20 % of each class for training, validation and "
        f"test, drawn from seed {seed}; the same for every model.",
        f"Training: Adam, learning rate {config.learning_rate:g}, weight decay {config.weight_decay:g}, "
        f"dropout {cell.dropout:g}, at most {config.max_epochs} epochs, stopped after {config.patience} "
        f"without an equal or better validation point; the weights of the best one are tested, once.",
        "Size: two layers. " + "; ".join(_width(result) for result in results) + ".",
        "Intervals: Student's t over splits. Splits of one graph share nodes, so the intervals are those of "
        "this protocol, not of new graphs.",
        f"Again: geomgcn demo --num-splits {cell.num_splits} --seed {seed}",
    ]


def _width(result: CellResult) -> str:
    each = {"geom-gcn": f" for each of {_virtual_nodes(result)} virtual nodes", "gat": " for each of 8 heads"}
    return f"{result.cell.title} {result.cell.width} channels{each.get(result.cell.model, '')}"


def _virtual_nodes(result: CellResult) -> int:
    neighborhoods = 2 if result.cell.use == "both" else 1
    return neighborhoods * Quadrants.num_relations + 1  # the last one is the node itself


def _geom_gcn(results: Sequence[CellResult]) -> CellResult | None:
    """Return Geom-GCN with both neighbourhoods, if it has run."""
    whole = (
        r for r in results if is_geom_gcn(r) and r.cell.use == "both" and not r.cell.control and r.runs.fits
    )
    return next(whole, None)


def _find(results: Sequence[CellResult], cell: object) -> CellResult | None:
    return next((result for result in results if result.cell == cell and result.runs.fits), None)


def _percent(result: CellResult) -> str:
    return f"{100 * result.runs.test_accuracy.mean:.1f} %"
