"""All embeddings beside their peers: CPU seconds, peak memory and quality, one thread, one run.

    pip install '.[bench]'
    python benchmarks/embeddings.py                    # all sections, about an hour
    python benchmarks/embeddings.py poincare isomap    # some of them
    python benchmarks/embeddings.py --print            # tables and plot of what has been measured

Each measurement is a process of its own that is given edges only, in the canonical form. Seconds are CPU
time after imports and compilation; memory is the peak of the whole process, and what it had taken before
(imports and edges). Measurements are lines of ``results/embeddings.jsonl``; the tables and the plot beside
it are made of them.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

from _measure import in_a_process, machine, peak_mb

RESULTS = Path(__file__).parent / "results"
RECORDS, TABLES, PLOT = (RESULTS / f"embeddings.{ending}" for ending in ("jsonl", "md", "png"))
PACKAGES = ("numpy", "scipy", "numba", "torch", "gensim", "igraph", "networkit", "scikit-learn", "fastdtw")

OURS = ("isomap", "poincare", "struc2vec", "spectral")
GENERATED = {
    "generated-1e5": (10**5, 10**6),
    "generated-1e6": (10**6, 10**7),
}  # nodes, undirected edges drawn
DRAWN_PAIRS = {"generated-1e6-half": (10**6, 5 * 10**6)}  # 10^7 ordered pairs
SMALL = ("cora", "chameleon", "squirrel")
SEEDS = (0, 1, 2)
WARPED_PAIRS = 300


def sections():
    """Return what is measured: for each section, rows of (graph, method, settings)."""
    large = ("generated-1e5", "generated-1e6")
    exact = [(graph, "isomap", {}) for graph in (*SMALL, "pubmed")]
    exact += [(graph, "scipy isomap", {}) for graph in SMALL]
    exact += [(graph, "igraph isomap", {}) for graph in SMALL]
    landmarks = [("generated-1e5", "isomap", {"landmarks": 100})]
    landmarks += [("generated-1e5", "networkit pivot mds", {"landmarks": 100})]
    landmarks += [(graph, "isomap", {"landmarks": 200}) for graph in ("generated-1e6-half", "generated-1e6")]
    poincare = [
        (graph, method, {"epochs": epochs, "negatives": 10, "seed": seed})
        for graph, epochs in (("cora", 60), ("chameleon", 15))
        for method in ("poincare", "gensim poincare")
        for seed in SEEDS
    ]
    poincare += [("squirrel", "poincare", {"epochs": 5, "negatives": 10})]
    poincare += [
        ("pubmed", method, {"epochs": 15, "negatives": 10}) for method in ("poincare", "gensim poincare")
    ]
    poincare += [
        (graph, "poincare", {"epochs": 2, "negatives": 10}) for graph in (*large, "generated-1e6-half")
    ]
    struc2vec = [(graph, "struc2vec", {}) for graph in (*SMALL, "pubmed", "generated-1e5")]
    spectral = [(graph, "spectral", {}) for graph in (*SMALL, "pubmed", *large)]
    spectral += [(graph, "scikit-learn spectral", {}) for graph in (*SMALL, "pubmed")]
    return {
        "isomap": exact,
        "landmarks": landmarks,
        "poincare": poincare,
        "struc2vec": struc2vec,
        "spectral": spectral,
        "parts": [(graph, "parts", {}) for graph in ("cora", "chameleon")],
    }


def edges_of(name):
    """Return canonical edges and the number of nodes of a data set or of a generated graph."""
    import torch

    from geomgcn import datasets
    from geomgcn.graphs import canonical_edges

    if name in {**GENERATED, **DRAWN_PAIRS}:
        num_nodes, num_drawn = {**GENERATED, **DRAWN_PAIRS}[name]
        generator = torch.Generator().manual_seed(0)
        # Skewed degrees: one end of each edge falls off with the square root of its number.
        skewed = (num_nodes * torch.rand(num_drawn, generator=generator).square()).long()
        edges = torch.stack([skewed, torch.randint(num_nodes, (num_drawn,), generator=generator)])
    else:
        data = datasets.load(name)
        num_nodes, edges = data.num_nodes, data.edge_index
    return canonical_edges(edges, num_nodes)[0].numpy(), num_nodes


def embed(method, edges, num_nodes, settings):
    """Run one method; returns positions, the space that they are in, and CPU seconds."""
    import _peers

    if method in OURS:
        import torch

        from geomgcn import embeddings

        torch.set_num_threads(1)
        ours = embeddings.by_name(method)(**settings)
        edge_index = torch.from_numpy(edges)
        warm = {**settings, **({"landmarks": 8} if "landmarks" in settings else {})}
        small = torch.stack([torch.arange(300), torch.arange(300) ** 2 % 301])  # connected, and isolated ones
        embeddings.by_name(method)(**warm).embed(small, 310)
        start = time.process_time()
        pos = ours.embed(edge_index, num_nodes)
        return pos.numpy(), ours.geometry, time.process_time() - start
    peer = {
        "scipy isomap": _peers.scipy_isomap,
        "igraph isomap": _peers.igraph_isomap,
        "networkit pivot mds": _peers.networkit_landmarks,
        "gensim poincare": _peers.gensim_poincare,
        "scikit-learn spectral": _peers.sklearn_spectral,
    }[method]
    pos, seconds = peer(edges, num_nodes, **settings)
    return pos, "poincare" if "poincare" in method else "euclidean", seconds


def measure(path, method, settings, out):
    """Run one method in this process, and print what was measured."""
    import numpy as np

    with np.load(path) as arrays:
        edges, num_nodes = arrays["edges"], int(arrays["num_nodes"])
    if method in OURS:
        import geomgcn.embeddings  # noqa: F401 - counts as loaded before
    before = peak_mb()
    pos, geometry, seconds = embed(method, edges, num_nodes, json.loads(settings))
    peak = peak_mb()
    np.save(out, pos)
    print(json.dumps({"seconds": seconds, "peak_mb": peak, "loaded_mb": before, "geometry": geometry}))


def quality(path, out, geometry):
    """Measure positions in a process of its own, so that its memory is nobody's."""
    import numpy as np
    import torch

    from geomgcn.embeddings import reconstruction

    with np.load(path) as arrays:
        edges = torch.from_numpy(arrays["edges"])
    pos = torch.from_numpy(np.load(out))
    if not pos.isfinite().all():  # a peer that knows the largest component only
        print(json.dumps({}))
        return
    found = reconstruction(pos.double(), edges, geometry, max_nodes=2000)
    print(json.dumps({"rank": found.mean_rank, "precision": found.mean_average_precision}))


def run(section, rows, folder):
    """Measure the rows of a section and keep each at once."""
    import numpy as np

    ours = {}
    for graph, method, settings in rows:
        record = {"section": section, "graph": graph, "method": method, "settings": settings}
        path = folder / f"{graph}.npz"
        if not path.exists():
            in_a_process(__file__, "edges", graph, path)
        if method == "parts":
            keep({**record, **in_a_process(__file__, "parts", path)})
            continue
        out = folder / f"{section}-{graph}-{method}.npy"
        found = in_a_process(__file__, "embed", path, method, json.dumps(settings), out)
        found |= in_a_process(__file__, "quality", path, out, found["geometry"])
        if method == "isomap" and not settings:
            ours[graph] = np.load(out)
        elif method == "scipy isomap":
            found["difference"] = difference(ours[graph], np.load(out))
        with np.load(path) as arrays:
            found |= {"nodes": int(arrays["num_nodes"]), "pairs": arrays["edges"].shape[1]}
        keep({**record, **found})


def keep(record):
    """Write a record in place of an older one of the same measurement."""
    print(json.dumps(record), flush=True)

    def what(record):
        return [record[key] for key in ("section", "graph", "method", "settings")]

    old = [json.loads(line) for line in RECORDS.read_text().splitlines()] if RECORDS.exists() else []
    kept = [other for other in old if what(other) != what(record)]
    lines = [json.dumps(other) for other in [*kept, {"machine": machine(*PACKAGES), **record}]]
    RECORDS.write_text("\n".join(lines) + "\n")


def difference(ours, theirs):
    """Return the largest difference of coordinates up to sign, relative to the largest coordinate."""
    import numpy as np

    kept = ~np.isnan(theirs[:, 0])
    a, b = ours[kept] - ours[kept].mean(axis=0), theirs[kept] - theirs[kept].mean(axis=0)
    signs = np.sign((a * b).sum(axis=0))
    return float(np.abs(a - b * signs).max() / np.abs(b).max())


def measure_parts(path):
    """Measure warping and skip-gram alone, ours and a peer's on the same sequences and walks."""
    import _peers
    import numpy as np

    from geomgcn.embeddings._degree_rings import degree_rings
    from geomgcn.embeddings._dtw import warp_all

    with np.load(path) as arrays:
        edges, num_nodes = arrays["edges"], int(arrays["num_nodes"])
    indptr = np.concatenate([[0], np.cumsum(np.bincount(edges[0], minlength=num_nodes))])
    found = degree_rings(indptr, edges[1].astype(np.int32), layers=4)
    random = np.random.default_rng(0)
    degrees, counts = found.degree[found.kinds].astype(float), found.counts.astype(float)
    pairs = []
    while len(pairs) < WARPED_PAIRS:
        layer = random.integers(1, found.rings.shape[1])
        one, other = found.rings[random.integers(len(found.rings), size=2), layer]
        if one >= 0 and other >= 0 and one != other:
            pairs.append((one, other))
    ones, others = np.array(pairs, np.int64).T
    warp_all(found.indptr, degrees, counts, ones[:2], others[:2], np.empty(2))  # compile
    exact, many = np.empty(WARPED_PAIRS), 20
    _, ours = _peers.timed(
        lambda: [warp_all(found.indptr, degrees, counts, ones, others, exact) for _ in range(many)]
    )

    def sequence(number):
        part = slice(found.indptr[number], found.indptr[number + 1])
        return np.stack([degrees[part], counts[part]], axis=1)

    costs, theirs = _peers.fastdtw_costs([(sequence(a), sequence(b)) for a, b in pairs])
    facts = {"pairs": WARPED_PAIRS, "ours_ms": 1e3 * ours / many / WARPED_PAIRS}
    facts |= {"fastdtw_ms": 1e3 * theirs / WARPED_PAIRS, "excess": float(costs.sum() / exact.sum() - 1)}
    assert (costs >= exact - 1e-9 * exact).all(), "the approximation is cheaper than the exact cost"
    print(json.dumps({**facts, **skip_gram_seconds(indptr, edges[1], num_nodes)}))


def skip_gram_seconds(indptr, indices, num_nodes, window=10, negatives=5, epochs=1):
    """Time skip-gram on ten walks of 80 nodes from each node."""
    import _peers
    import numpy as np

    from geomgcn.embeddings._skip_gram import drawing_table, train

    random = np.random.default_rng(0)
    place = np.tile(np.arange(num_nodes), 10)
    walks = np.empty((len(place), 80), np.int32)
    for step in range(80):
        walks[:, step] = place
        width = indptr[place + 1] - indptr[place]
        place = indices[indptr[place] + (random.random(len(place)) * width).astype(np.int64)]
    table = drawing_table(np.bincount(walks.reshape(-1), minlength=num_nodes))
    vectors = random.random((num_nodes, 2), np.float32) - np.float32(0.5)
    rates, state = np.array([0.025, 0.0]), np.array([1], np.uint64)

    def run(part):
        train(vectors, np.zeros_like(vectors), part, window, negatives, table, rates, state)

    run(walks[:1])  # compile
    _, ours = _peers.timed(lambda: run(walks))
    theirs = _peers.gensim_skip_gram(walks, window, negatives, epochs)
    return {"skip_gram": ours, "gensim": theirs}


def table_of_parts(records):
    """Return the lines of the table of struc2vec's parts."""
    lines = [
        "Exact warping beside the approximation of the original (fastdtw, radius 1), on the same pairs of",
        "rings, and one epoch of skip-gram beside gensim's word2vec, on the same walks.",
        "",
        "| graph | ms | fastdtw ms | ratio | cost above the least | skip-gram s | gensim s | ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in records:
        warping = f"{row['ours_ms']:.4f} | {row['fastdtw_ms']:.2f} | {row['fastdtw_ms'] / row['ours_ms']:.0f}"
        training = f"{row['skip_gram']:.2f} | {row['gensim']:.1f} | {row['gensim'] / row['skip_gram']:.1f}"
        lines.append(f"| {row['graph']} | {warping} | {100 * row['excess']:.1f} % | {training} |")
    return lines


def write_edges(name, path):
    import numpy as np

    edges, num_nodes = edges_of(name)
    np.savez(path, edges=edges, num_nodes=num_nodes)
    print(json.dumps({}))


def merged(records):
    """Return one record for each graph, method and settings but the seed, with means over seeds."""
    groups = {}
    for record in records:
        settings = {key: value for key, value in record["settings"].items() if key != "seed"}
        groups.setdefault((record["graph"], record["method"], json.dumps(settings)), []).append(record)
    result = []
    for (graph, method, settings), group in groups.items():
        row = {
            **group[-1],
            "graph": graph,
            "method": method,
            "settings": json.loads(settings),
            "runs": len(group),
        }
        for key in ("seconds", "peak_mb", "rank", "precision"):
            if key in row:
                row[key] = sum(record[key] for record in group) / len(group)
        result.append(row)
    return result


def table(records):
    """Return the lines of a section's table; ratios are to our method on the same graph and settings."""
    rows = merged(records)
    ours = {(row["graph"], len(row["settings"])): row for row in rows if row["method"] in OURS}
    head = "graph | nodes | edges | method | settings | runs | CPU s | ours is faster by | peak MB (before)"
    head += " | MAP | rank"
    lines = [f"| {head} |", "|" + "---|" * (head.count("|") + 1)]
    for row in rows:
        settings = ", ".join(f"{key}={value}" for key, value in row["settings"].items())
        own = ours.get((row["graph"], len(row["settings"])))
        ratio = "" if row["method"] in OURS or own is None else f"{row['seconds'] / own['seconds']:.1f}"
        per_epoch = row["settings"].get("epochs", 1) if row["nodes"] >= 10**5 else 1
        seconds = f"{row['seconds'] / per_epoch:.2f}" + (" an epoch" if per_epoch > 1 else "")
        scores = f"{row['precision']:.3f} | {row['rank']:.1f}" if "rank" in row else " | "
        difference = f" (positions differ by {row['difference']:.0e})" if "difference" in row else ""
        size = f"{row['graph']} | {row['nodes']} | {row['pairs'] // 2}"
        memory = f"{row['peak_mb']:.0f} ({row['loaded_mb']:.0f})"
        lines.append(
            f"| {size} | {row['method']}{difference} | {settings} | {row['runs']} | {seconds} | {ratio} "
            f"| {memory} | {scores} |"
        )
    return lines


TITLES = {
    "isomap": "Exact Isomap",
    "landmarks": "Isomap by landmarks",
    "poincare": "Poincaré",
    "struc2vec": "struc2vec",
    "spectral": "Spectral",
    "parts": "Parts of struc2vec",
}


def write_tables():
    """Write the tables of all that has been measured."""
    records = [json.loads(line) for line in RECORDS.read_text().splitlines()]
    machines = sorted({record["machine"] for record in records})
    lines = [
        "# Embeddings beside their peers",
        "",
        f"Command: `python benchmarks/embeddings.py`. Machine: {'; '.join(machines)}.",
        "",
        "CPU seconds of one embedding into two dimensions, on one thread, imports and compilation apart;",
        "peak memory of the whole process, and in brackets what it had taken before (imports and edges).",
        "MAP and rank: mean average precision (higher is better) and mean rank (lower is better) of the",
        "graph's reconstruction from positions, over all nodes or 2000 of them. With several runs (seeds)",
        "all figures are means. Settings are the defaults where none are named. Edges are undirected ones.",
    ]
    for section, title in TITLES.items():
        chosen = [record for record in records if record["section"] == section]
        if chosen:
            lines += [
                "",
                f"## {title}",
                "",
                *(table_of_parts(chosen) if section == "parts" else table(chosen)),
            ]
    lines += ["", "![CPU seconds against the number of edges, log-log, ours and peers](embeddings.png)"]
    TABLES.write_text("\n".join(lines) + "\n")
    plot([record for record in records if record["section"] != "parts"])


def plot(records):
    """Draw cost against size: ours in color, peers in gray."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(12, 5), constrained_layout=True)
    rows = [{**row, "line": line_of(row), "peer": row["method"] not in OURS} for row in merged(records)]
    for row in rows:
        row["seconds"] /= row["settings"].get("epochs", 1)
    markers = dict(zip(dict.fromkeys(row["line"] for row in rows), "osDp^vP*Xh<>", strict=False))
    for axis, key, label in zip(
        axes, ("seconds", "peak_mb"), ("CPU seconds", "peak memory, MB"), strict=True
    ):
        for method, marker in markers.items():
            chosen = sorted((row for row in rows if row["line"] == method), key=lambda row: row["pairs"])
            style = {"color": "0.55", "linestyle": ":"} if chosen[0]["peer"] else {"linewidth": 1.5}
            axis.loglog(
                [row["pairs"] / 2 for row in chosen],
                [row[key] for row in chosen],
                marker=marker,
                label=method,
                **style,
            )
        axis.set_xlabel("edges")
        axis.set_ylabel(label)
        axis.grid(alpha=0.3)
        axis.spines[["top", "right"]].set_visible(False)
    axes[0].legend(fontsize=8, frameon=False)
    figure.savefig(PLOT, dpi=130)


def line_of(row):
    """Return the name of a row's line: what is measured alike."""
    if "landmarks" in row["settings"] and row["method"] in OURS:
        return f"{row['method']}, landmarks"
    return row["method"] + (", an epoch" if "epochs" in row["settings"] else "")


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sections", nargs="*", choices=[*TITLES, []], help="default: all")
    parser.add_argument("--print", action="store_true", help="tables and plot of what has been measured")
    options = parser.parse_args()
    for section in [] if options.print else options.sections or TITLES:
        with tempfile.TemporaryDirectory() as folder:
            run(section, sections()[section], Path(folder))
    write_tables()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        steps = {"edges": write_edges, "embed": measure, "quality": quality, "parts": measure_parts}
        steps[sys.argv[2]](*sys.argv[3:])
    else:
        main()
