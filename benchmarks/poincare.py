"""Poincaré embeddings beside gensim: CPU seconds and quality, one thread, one run.

    pip install gensim
    python benchmarks/poincare.py            # writes benchmarks/results/poincare.md
    python benchmarks/poincare.py --no-write

Both embed the same pairs (each edge in both directions) into two dimensions, with equal epochs and ten
negatives, three seeds each; gensim has its own learning rates. Quality is measured by one function for both.
Each measurement is a process of its own; seconds are CPU time after imports and compilation. Last comes a
generated graph of 10^6 nodes and 10^7 ordered pairs, for which there is no peer.
"""

import json
import sys
import time
from pathlib import Path

from _measure import in_a_process, machine, peak_mb

RESULT = Path(__file__).parent / "results" / "poincare.md"
TASKS = (("cora", 60), ("chameleon", 15))
SEEDS = (0, 1, 2)
NEGATIVES = 10
LARGE = (10**6, 10**7, 2)  # nodes, ordered pairs, epochs


def geomgcn_poincare(edges, num_nodes, epochs, seed):
    import torch

    from geomgcn.embeddings import Poincare

    Poincare(epochs=1).embed(torch.tensor([[0, 1], [1, 2]]), 3)  # compile
    start = time.process_time()
    pos = Poincare(epochs=epochs, negatives=NEGATIVES, seed=seed).embed(edges, num_nodes)
    return pos, time.process_time() - start


def gensim_poincare(edges, num_nodes, epochs, seed):
    import numpy as np
    import torch
    from gensim.models.poincare import PoincareModel

    pairs = [(str(u), str(v)) for u, v in edges.t().tolist()]
    start = time.process_time()
    model = PoincareModel(pairs, size=2, negative=NEGATIVES, seed=seed)
    model.train(epochs)
    seconds = time.process_time() - start
    return torch.from_numpy(np.stack([model.kv.get_vector(str(v)) for v in range(num_nodes)])), seconds


METHODS = {"geomgcn": geomgcn_poincare, "gensim": gensim_poincare}


def measure(method, name, epochs, seed):
    """Run one method in this process and print what was measured."""
    import torch

    from geomgcn import datasets
    from geomgcn.embeddings import reconstruction
    from geomgcn.graphs import canonical_edges

    torch.set_num_threads(1)
    data = datasets.load(name)
    edges, report = canonical_edges(data.edge_index, data.num_nodes)
    if report.num_isolated:
        sys.exit("gensim knows linked nodes only: take a graph without isolated ones")
    pos, seconds = METHODS[method](edges, data.num_nodes, int(epochs), int(seed))
    peak = peak_mb()
    found = reconstruction(pos, edges, "poincare")
    quality = {"rank": found.mean_rank, "precision": found.mean_average_precision}
    print(json.dumps({**quality, "seconds": seconds, "peak_mb": peak, "nodes": data.num_nodes}))


def measure_large():
    """Embed a generated graph with skewed degrees, and print seconds an epoch."""
    import torch

    torch.set_num_threads(1)
    num_nodes, num_pairs, epochs = LARGE
    generator = torch.Generator().manual_seed(0)
    skewed = (num_nodes * torch.rand(num_pairs // 2, generator=generator).square()).long()
    edges = torch.stack([skewed, torch.randint(num_nodes, (num_pairs // 2,), generator=generator)])
    before = peak_mb()
    _, seconds = geomgcn_poincare(edges, num_nodes, epochs, 0)
    print(json.dumps({"seconds": seconds / epochs, "peak_mb": peak_mb(), "loaded_mb": before}))


def mean(rows, key):
    return sum(row[key] for row in rows) / len(rows)


def main(write):
    lines = [
        "# Poincaré, dim=2, ten negatives",
        "",
        f"Machine: {machine('numpy', 'numba', 'torch', 'gensim')}. Command: `python benchmarks/poincare.py`.",
        "",
        f"CPU seconds of one embedding, imports and compilation apart; means over seeds {SEEDS}. MAP: mean",
        "average precision of the graph's reconstruction, higher is better; rank: mean rank, lower is",
        "better. Geomgcn first, gensim second.",
        "",
        "| graph | epochs | seconds | | ratio | MAP | | rank | |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for name, epochs in TASKS:
        ours, theirs = (
            [in_a_process(__file__, method, name, epochs, seed) for seed in SEEDS] for method in METHODS
        )
        row = f"| {name} | {epochs} | {mean(ours, 'seconds'):.2f} | {mean(theirs, 'seconds'):.1f} |"
        row += f" {mean(theirs, 'seconds') / mean(ours, 'seconds'):.0f} |"
        row += f" {mean(ours, 'precision'):.3f} | {mean(theirs, 'precision'):.3f} |"
        row += f" {mean(ours, 'rank'):.1f} | {mean(theirs, 'rank'):.1f} |"
        print(row, flush=True)
        lines.append(row)
    large = in_a_process(__file__, "large")
    lines += [
        "",
        f"Generated graph, {LARGE[0]:,} nodes, about {LARGE[1]:,} ordered pairs, skewed degrees: "
        f"{large['seconds']:.1f} CPU seconds an epoch, peak memory {large['peak_mb']:.0f} MB "
        f"({large['loaded_mb']:.0f} of them before, for imports and the graph).",
    ]
    print(lines[-1])
    if write:
        RESULT.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    if sys.argv[1:3] == ["--measure", "large"]:
        measure_large()
    elif sys.argv[1:2] == ["--measure"]:
        measure(*sys.argv[2:])
    else:
        main(write="--no-write" not in sys.argv)
