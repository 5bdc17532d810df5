"""Tables and plots of the training benchmark."""

import json
from statistics import median

from _layers import CSR_GCN, EPOCHS, GCN, GRAPHED, OURS, PORT, STEPS, WIDE_CSR_GCN, WIDE_GCN

FULL_EPOCHS = 500
AGAINST = (GCN, WIDE_GCN, PORT, CSR_GCN, WIDE_CSR_GCN)
"""What ratios are taken to."""


def write(path, device):
    """Write the tables and plots of all that has been measured beside it, and return the tables."""
    records = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    if not records:
        raise SystemExit(f"Nothing has been measured: {path} has no records.")
    sections = {record["section"]: [] for record in records}
    for record in records:
        sections[record["section"]].append(record)
    methods = [method for method in (GRAPHED, *STEPS) if any(row["method"] == method for row in records)]
    rows = {name: merged(sections.get(name, [])) for name in ("datasets", "generated", "sweeps")}
    lines = head(records, device)
    for name, title in (
        ("datasets", "The nine data sets"),
        ("generated", "Generated graphs"),
        ("sweeps", "Sweeps around a middle point"),
    ):
        if rows[name]:
            lines += ["", f"## {title}", "", *SAID[name], "", *steps_table(rows[name], methods)]
            lines += ["", "Peak memory, MB (before):", "", *memory_table(rows[name], methods)]
    lines += shares(rows["generated"], rows["sweeps"])
    epochs = merged(sections.get("epochs", []))
    if epochs:
        lines += ["", "## 500 epochs", "", *SAID["epochs"], "", *epochs_table(epochs)]
    if "many" in sections:
        lines += ["", "## Ten splits", "", *SAID["many"], "", *many_table(sections["many"])]
    lines += plots(path, rows, epochs, methods)
    text = "\n".join(lines) + "\n"
    path.with_suffix(".md").write_text(text)
    return text


SAID = {
    "datasets": [
        "Row-normalized features; Isomap neighborhoods with a virtual node for oneself; m as in the paper.",
        "Features are mostly zero (bags of words), and Geom-GCN keeps what is not: part of its lead here is",
        "that, which the generated graphs below, with dense features, leave out.",
    ],
    "generated": ["Skewed degrees, as many latent pairs as edges, dense random features."],
    "sweeps": [
        "Generated graphs; one size differs from the middle point in each row. GCNConv(8m) is as wide as all",
        "virtual nodes but the node itself, (R - 1) m, so in the sweep over R its width changes too.",
    ],
    "epochs": [
        "Seconds of 500 epochs, each a training step and an evaluation on the validation nodes, without",
        "early stopping, with the paper's widths: GCN m (normalization cached), GAT 8 heads (also with",
        "dropout of attention, as in its paper), Geom-GCN m a virtual node. The port is Geom-GCN with the",
        "layers of the released program: a Linear and an index_add a relation.",
    ],
    "many": ["Seconds of training on the ten published splits for as many epochs each, no early stopping."],
}


def head(records, device):
    machines = sorted({record["machine"] for record in records})
    flag = "" if device == "cpu" else f" --device {device}"
    spread = [
        (record["high"] - record["low"]) / record["ms"] for record in records if record.get("ms", 0) > 0
    ]
    lines = [
        "# A training step beside other layers",
        "",
        f"Command: `python benchmarks/training.py{flag}`. Machine: {'; '.join(machines)}.",
        "",
        "Milliseconds of one training step of two layers: zero_grad, forward with dropout 0.5 on the input",
        "of both layers, cross-entropy on the training nodes, backward, fused Adam. Medians after warm-up;",
        "what is prepared once (sorting pairs, sparse features, cached normalizations) is left out, for all",
        "methods alike. PyG's layers run on dense features; GCNConv and GATConv on the symmetrized graph,",
        "RGCNConv (m wide, no root weight) and the port on the typed pairs; no layer has a bias. CSR: the",
        "same layer given a sparse matrix in place of edges. The port is a Linear and an index_add a",
        f"relation, as in the released program. The last columns say how many times faster {OURS} is.",
        "n nodes, E directed edges, R virtual nodes, m channels of each.",
        "Memory is the peak of the process while a method prepares and trains, and in brackets what it had"
        if device == "cpu"
        else "Memory is the peak of what torch has allocated on the device, and in brackets what it had",
        "taken before (imports, the graph with its pairs and features).",
    ]
    if spread:
        typical, worst = 100 * median(spread), 100 * max(spread)
        lines += [
            "",
            f"The middle half of the steps of a measurement spans {typical:.0f} % of their median in",
        ]
        lines += [f"the typical case and {worst:.0f} % in the worst."]
    load = max(record.get("load", 0.0) for record in records)
    if load > 0.5:
        lines += ["", f"**The machine was busy when this began (load {load:.1f}): numbers are too large.**"]
    if any(record.get("fast_path") is False for record in records):
        lines += ["", "**This version of GeomGCN has no `prepare`: Geom-GCN stands for its raw edges.**"]
    return lines


def merged(records):
    """Return one record for each graph and method: medians over rounds of what was measured."""
    groups = {}
    for record in records:
        groups.setdefault((record["graph"], record["method"]), []).append(record)
    result = []
    for group in groups.values():
        row = dict(group[-1])
        for key in ("ms", "peak_mb", "before_mb", "prepare_ms", "share"):
            if all(key in record for record in group):
                row[key] = median(record[key] for record in group)
        if "seconds" in row:
            row["ms"] = 1e3 * median(record["seconds"] / record["epochs"] for record in group)
            row["epochs"] = min(record["epochs"] for record in group)
        result.append(row)
    return result


def by_graph(rows):
    """Return the rows of each graph by method."""
    found = {}
    for row in rows:
        found.setdefault(row["graph"], {})[row["method"]] = row
    return found


def line(cells):
    return "| " + " | ".join(map(str, cells)) + " |"


def table_of(header, body):
    return [line(header), "|" + "---|" * len(header), *(line(row) for row in body)]


def sized(number):
    """Return a number with three significant digits, and no exponent."""
    if number is None:
        return ""
    return f"{number:.0f}" if number >= 100 else f"{number:.1f}" if number >= 10 else f"{number:.2f}"


def milliseconds(row):
    return "-" if row is None else row.get("failed") or sized(row["ms"])


def ratio(row, own):
    known = row is not None and own is not None and "ms" in row and "ms" in own
    return sized(row["ms"] / own["ms"]) if known else ""


def size_of(row):
    return [row["graph"], row["n"], row["E"], row["pairs"], row["features"], f"{row['R']}, {row['m']}"]


SIZES = ["graph", "n", "E", "all pairs", "features", "R, m"]


def steps_table(rows, methods):
    """Return milliseconds of all methods, and how many times faster ours is."""
    body = []
    for found in by_graph(rows).values():
        own = found.get(OURS)
        cells = [milliseconds(found.get(method)) for method in methods]
        # Bold: what this library is for.
        cells = [
            f"**{cell}**" if method == OURS else cell for method, cell in zip(methods, cells, strict=True)
        ]
        ratios = [ratio(found.get(method), own) for method in AGAINST]
        prepared = sized(own["prepare_ms"]) if own and "prepare_ms" in own else ""
        body.append([*size_of(next(iter(found.values()))), *cells, prepared, *ratios])
    header = [*SIZES, *methods, "prepare once", *(f"{method} / ours" for method in AGAINST)]
    return table_of(header, body)


def memory_table(rows, methods):
    """Return peak memory of all methods."""

    def cell(row):
        if row is None or "peak_mb" not in row:
            return "-" if row is None else row["failed"]
        return f"{row['peak_mb']:.0f} ({row['before_mb']:.0f})"

    found = by_graph(rows)
    return table_of(
        ["graph", *methods],
        [[graph, *(cell(row.get(method)) for method in methods)] for graph, row in found.items()],
    )


def shares(*groups):
    """Return the table of how near ours comes to the bandwidth of a copy."""
    rows = [row for group in groups for row in group if "share" in row]
    if not rows:
        return []
    body = [
        [
            row["graph"],
            row["method"],
            sized(row["moved_gb"]),
            sized(row["copy_gb_s"]),
            f"{100 * row['share']:.0f} %",
        ]
        for row in rows
    ]
    return [
        "",
        "## Share of the bandwidth of a copy",
        "",
        "What a step moves if each product reads and writes its arrays once and each pair reads its row once",
        "a layer and direction, over its time, against copying one large array in the same process. Caches",
        "can bring it above 100 %.",
        "",
        *table_of(["graph", "method", "GB a step", "copy, GB/s", "share"], body),
    ]


def epochs_table(rows):
    """Return seconds of 500 epochs and ratios to GCN and GAT."""
    body = []
    for graph, found in by_graph(rows).items():
        cells = []
        for method in EPOCHS:
            row = found.get(method)
            note = "" if row is None or row["epochs"] >= FULL_EPOCHS else f" (from {row['epochs']} epochs)"
            cells.append("-" if row is None else sized(1e-3 * FULL_EPOCHS * row["ms"]) + note)
        own = found.get(OURS)
        ratios = [ratio(own, found.get(method)) for method in ("GCN", "GAT", PORT)]
        body.append([graph, *cells, *ratios])
    return table_of(["graph", *EPOCHS, "Geom-GCN / GCN", "Geom-GCN / GAT", "Geom-GCN / port"], body)


def many_table(records):
    """Return seconds of ten runs in one program and one after another."""
    body = []
    for row in records:
        together = sized(row.get("many_s")) or "fit_many is not there yet"
        gain = sized(row["single_s"] / row["many_s"]) if "many_s" in row else ""
        accuracies = [row.get(f"{name}_accuracy") for name in ("single", "many")]
        shown = " / ".join("-" if value is None else f"{100 * value:.1f} %" for value in accuracies)
        body.append([row["graph"], row["runs"], row["epochs"], sized(row["single_s"]), together, gain, shown])
    header = ["graph", "runs", "epochs each", "fit, s", "fit_many, s", "ratio", "mean test accuracy"]
    return table_of(header, body)


def plots(path, rows, epochs, methods):
    """Draw what there is, where matplotlib is, and return the lines that show it."""
    try:
        import _training_plots
    except ImportError:
        return ["", "No plots: matplotlib is not installed."]
    lines = []
    for name, alternative, draw, drawn in (
        (
            "datasets",
            "Milliseconds of a training step on each data set",
            _training_plots.steps,
            rows["datasets"],
        ),
        ("sweeps", "Milliseconds of a step against n, E, R and m", _training_plots.sweeps, rows["sweeps"]),
        ("epochs", "Seconds of 500 epochs on each data set", _training_plots.epochs, epochs),
    ):
        if drawn:
            file = path.with_name(f"{path.stem}-{name}.png")
            draw(by_graph(drawn), list(EPOCHS) if name == "epochs" else methods, file)
            lines += ["", f"![{alternative}, logarithmic]({file.name})"]
    return lines
