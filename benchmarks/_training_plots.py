"""The plots of the training benchmark; colors are told apart by all kinds of sight, markers help."""

import matplotlib
from _layers import CSR_GCN, GCN, GRAPHED, OURS, PORT, STRAIGHT, WIDE_CSR_GCN, WIDE_GCN

matplotlib.use("Agg")
from matplotlib import pyplot

# Okabe and Ito, "Color universal design" (2008).
BLUE, SKY, ORANGE, VERMILION, GREEN, PURPLE, BLACK = (
    "#0072B2",
    "#56B4E9",
    "#E69F00",
    "#D55E00",
    "#009E73",
    "#CC79A7",
    "#000000",
)
STYLES = {
    GRAPHED: (SKY, "*"),
    OURS: (BLUE, "o"),
    STRAIGHT: (SKY, "o"),
    GCN: (ORANGE, "s"),
    CSR_GCN: (ORANGE, "x"),
    WIDE_GCN: (VERMILION, "D"),
    WIDE_CSR_GCN: (VERMILION, "+"),
    "GATConv(8 x m)": (GREEN, "^"),
    "RGCNConv(m)": (PURPLE, "v"),
    PORT: (BLACK, "P"),
    "GCN": (ORANGE, "s"),
    "GAT": (GREEN, "^"),
}
SWEPT = {
    "n": "nodes n",
    "E": "directed edges E",
    "R": "virtual nodes R",
    "m": "channels m of a virtual node",
}
FULL_EPOCHS = 500


def steps(graphs, methods, file):
    """Draw a line of marks for each graph: milliseconds of each method."""
    figure, axes = pyplot.subplots(figsize=(9, 1.6 + 0.5 * len(graphs)), constrained_layout=True)
    for height, found in enumerate(graphs.values()):
        times = [row["ms"] for row in found.values() if "ms" in row]
        axes.plot([min(times), max(times)], [height, height], color="0.85", zorder=0)
    for method in methods:
        places = [(found.get(method, {}).get("ms"), i) for i, found in enumerate(graphs.values())]
        places = [place for place in places if place[0] is not None]
        if places:
            color, marker = STYLES[method]
            axes.plot(*zip(*places, strict=True), color=color, marker=marker, ls="", ms=8, label=method)
    axes.set_xscale("log")
    axes.set_yticks(range(len(graphs)), list(graphs))
    axes.invert_yaxis()
    axes.set_xlabel("one training step, milliseconds (logarithmic)")
    axes.grid(axis="x", alpha=0.3)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.legend(fontsize=8, frameon=False, loc="upper left", bbox_to_anchor=(1, 1))
    save(figure, file)


def sweeps(graphs, methods, file):
    """Draw milliseconds against each size, with the middle point in each panel."""
    figure, panels = pyplot.subplots(2, 2, figsize=(10, 7), constrained_layout=True, sharey=True)
    for axes, (key, label) in zip(panels.flat, SWEPT.items(), strict=True):
        chosen = [
            found for graph, found in graphs.items() if graph == "middle" or graph.startswith(f"{key}=")
        ]
        for method in methods:
            rows = [found[method] for found in chosen if "ms" in found.get(method, {})]
            rows.sort(key=lambda row: row[key])
            color, marker = STYLES[method]
            dashed = "--" if marker in "x+" else "-"
            values = [row[key] for row in rows], [row["ms"] for row in rows]
            axes.plot(*values, dashed, color=color, marker=marker, ms=5, lw=1.2, label=method)
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel(label)
        if key in ("R", "m"):
            ticks = sorted({row[key] for found in chosen for row in found.values()})
            axes.set_xticks(ticks, [str(tick) for tick in ticks])
            axes.set_xticks([], minor=True)
        axes.grid(alpha=0.3)
        axes.spines[["top", "right"]].set_visible(False)
    for axes in panels[:, 0]:
        axes.set_ylabel("one training step, milliseconds")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8, frameon=False)
    save(figure, file)


def epochs(graphs, methods, file):
    """Draw the paper's figure: seconds of 500 epochs as bars, with their ratios to GCN above ours."""
    figure, axes = pyplot.subplots(figsize=(max(7, 1.3 * len(graphs)), 4.2), constrained_layout=True)
    width = 0.8 / len(methods)
    for place, method in enumerate(methods):
        offset = (place - (len(methods) - 1) / 2) * width
        drawn = [(i, found[method]) for i, found in enumerate(graphs.values()) if method in found]
        seconds = [1e-3 * FULL_EPOCHS * row["ms"] for _, row in drawn]
        places = [i + offset for i, _ in drawn]
        # A bar for what was not run to the end is hatched.
        hatches = ["" if row["epochs"] >= FULL_EPOCHS else "///" for _, row in drawn]
        color = STYLES[method][0]
        label = "Geom-GCN, port of the released layer" if method == PORT else method
        axes.bar(places, seconds, width * 0.95, color=color, hatch=hatches, edgecolor="white", label=label)
    axes.set_yscale("log")
    axes.set_xticks(range(len(graphs)), list(graphs))
    axes.set_ylabel("seconds of 500 epochs (logarithmic)")
    axes.set_title(message(graphs), fontsize=9, loc="left")
    axes.grid(axis="y", alpha=0.3)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)
    save(figure, file)


def message(graphs):
    """Return what the bars say: the range of ratios of Geom-GCN to the others."""
    said = []
    for other in ("GCN", "GAT", PORT):
        ratios = [
            found[OURS]["ms"] / found[other]["ms"] for found in graphs.values() if {OURS, other} <= set(found)
        ]
        if ratios:
            said.append(
                f"{min(ratios):.2g} to {max(ratios):.2g} times {'the port' if other == PORT else other}"
            )
    text = "Geom-GCN takes " + ", ".join(said)
    cut = any(row["epochs"] < FULL_EPOCHS for found in graphs.values() for row in found.values())
    return text + ("\n(hatched: extrapolated from fewer epochs)" if cut else "")


def save(figure, file):
    figure.savefig(file, dpi=130)
    pyplot.close(figure)
