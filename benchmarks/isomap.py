"""Exact Isomap beside scipy: CPU seconds, peak memory and agreement, one thread, one run.

    python benchmarks/isomap.py                  # four graphs; writes benchmarks/results/isomap.md
    python benchmarks/isomap.py cora --no-write

Data come from where ``geomgcn.datasets.load`` finds them (GEOMGCN_MIRROR names a folder). Each
measurement is a process of its own, so its peak memory is its own, imports and data included.
Seconds are CPU time of the embedding after compilation and imports. The peer is what one would
write with scipy: ``shortest_path``, double centering, ``eigsh`` on the dense matrix; it is run up to
6000 nodes.
"""

import json
import sys
import time
from pathlib import Path

from _measure import in_a_process, machine, peak_mb

DEFAULT = ("cora", "chameleon", "squirrel", "pubmed")
PACKAGES = ("numpy", "scipy", "numba", "torch")
PEER_LIMIT = 6000
RESULT = Path(__file__).parent / "results" / "isomap.md"


def geomgcn_isomap(edge_index, num_nodes):
    import torch

    from geomgcn.embeddings import Isomap

    compile_start = time.perf_counter()
    Isomap().embed(torch.tensor([[0, 1, 1], [1, 2, 3]]), 4)
    compiled = time.perf_counter() - compile_start
    start = time.process_time()
    pos = Isomap().embed(edge_index, num_nodes).numpy()
    return pos, time.process_time() - start, compiled


def scipy_isomap(edge_index, num_nodes):
    import numpy as np
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components, shortest_path
    from scipy.sparse.linalg import eigsh

    start = time.process_time()
    source, target = edge_index.numpy()
    graph = coo_array((np.ones(len(source)), (source, target)), shape=(num_nodes, num_nodes)).tocsr()
    labels = connected_components(graph)[1]
    largest = np.flatnonzero(labels == np.bincount(labels).argmax())
    squares = shortest_path(graph[largest][:, largest], unweighted=True, directed=False) ** 2
    squares -= squares.mean(axis=0)
    squares -= squares.mean(axis=1, keepdims=True)
    values, vectors = eigsh(
        -0.5 * squares, k=2, which="LA", v0=np.ones(len(squares)) + np.arange(len(squares))
    )
    pos = np.full((num_nodes, 2), np.nan)
    pos[largest] = vectors[:, ::-1] * np.sqrt(values[::-1])
    return pos, time.process_time() - start, 0.0


METHODS = {"geomgcn": geomgcn_isomap, "scipy": scipy_isomap}


def measure(name, method, out):
    """Run one method in this process and write what was measured, and the positions."""
    import numpy as np
    import torch

    from geomgcn import datasets, graphs

    torch.set_num_threads(1)
    data = datasets.load(name)
    edge_index, report = graphs.canonical_edges(data.edge_index, data.num_nodes)
    before = peak_mb()
    pos, seconds, compiled = METHODS[method](edge_index, data.num_nodes)
    peak = peak_mb()
    np.save(out, pos)
    facts = {
        "nodes": data.num_nodes,
        "edges": report.num_edges // 2,
        "seconds": seconds,
        "compiled": compiled,
        "loaded_mb": before,
        "peak_mb": peak,
    }
    print(json.dumps(facts))


def difference(ours, theirs):
    """Return the largest difference of coordinates up to sign, relative to the largest coordinate."""
    import numpy as np

    a, b = np.load(ours), np.load(theirs)
    kept = np.isfinite(b).all(axis=1)
    signs = np.sign((a[kept] * b[kept]).sum(axis=0))
    return float(np.abs(a[kept] - b[kept] * signs).max() / np.abs(b[kept]).max())


def main(names, write):
    import tempfile

    lines = [
        "# Exact Isomap, dim=2",
        "",
        f"Machine: {machine(*PACKAGES)}. Command: `python benchmarks/isomap.py {' '.join(names)}`.",
        "",
        "CPU seconds of one embedding, imports and compilation apart; peak memory of the whole process, and",
        "in brackets what it had taken before (imports and data). Difference: the largest one of coordinates",
        "in the largest component, up to sign, relative to the largest coordinate (the grid is 1e-7 of a",
        "diameter).",
        "",
        "| graph | nodes | edges | geomgcn s | geomgcn MB | scipy s | scipy MB | ratio | difference |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            ours, theirs = Path(folder) / "ours.npy", Path(folder) / "theirs.npy"
            a = in_a_process(__file__, name, "geomgcn", ours)
            row = f"| {name} | {a['nodes']} | {a['edges']} | {a['seconds']:.2f} |"
            row += f" {a['peak_mb']:.0f} ({a['loaded_mb']:.0f}) |"
            if a["nodes"] <= PEER_LIMIT:
                b = in_a_process(__file__, name, "scipy", theirs)
                row += f" {b['seconds']:.2f} | {b['peak_mb']:.0f} | {b['seconds'] / a['seconds']:.1f} |"
                row += f" {difference(ours, theirs):.1e} |"
            else:
                row += " not run | | | |"
            lines.append(row)
            print(row, flush=True)
    if write:
        RESULT.parent.mkdir(parents=True, exist_ok=True)
        RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:5])
    else:
        wanted = tuple(argument for argument in sys.argv[1:] if not argument.startswith("--")) or DEFAULT
        main(wanted, write="--no-write" not in sys.argv)
