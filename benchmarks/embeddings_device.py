"""Embeddings on a GPU beside one core of the same machine, in one run.

    python benchmarks/embeddings_device.py                            # 10^6 nodes, 10^7 edges, on CUDA
    python benchmarks/embeddings_device.py --device cpu --nodes 1000  # whether it runs

Poincaré: seconds of an epoch in batches on the device, and of one in order on one core; then mean rank and
mean average precision of both on a tree with as many epochs. Isomap by 200 landmarks: seconds, and the
largest difference of coordinates. Seconds are of the wall clock, after a first, smaller run; the result is
one JSON object on the last line.
"""

import argparse
import json
import time

import torch

from geomgcn.embeddings import Isomap, Poincare, reconstruction
from geomgcn.graphs import canonical_edges


def generated(num_nodes, num_edges):
    """Return a graph with skewed degrees, as ``embeddings.py`` has it."""
    generator = torch.Generator().manual_seed(0)
    skewed = (num_nodes * torch.rand(num_edges, generator=generator).square()).long()
    edges = torch.stack([skewed, torch.randint(num_nodes, (num_edges,), generator=generator)])
    return canonical_edges(edges, num_nodes)[0]


def seconds_of(embedding, edges, num_nodes):
    if edges.is_cuda:
        torch.cuda.synchronize()
    start = time.perf_counter()
    pos = embedding.embed(edges, num_nodes)
    if edges.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - start, pos.cpu()


def an_epoch(mode, edges, num_nodes):
    """Return the seconds that one more epoch takes, so that what comes before the first is left out."""
    one, _ = seconds_of(Poincare(epochs=1, mode=mode), edges, num_nodes)
    three, _ = seconds_of(Poincare(epochs=3, mode=mode), edges, num_nodes)
    return (three - one) / 2


def quality(mode, device):
    """Return rank and precision of a tree of 4095 nodes after 100 epochs."""
    edges = torch.tensor([[child, (child - 1) // 2] for child in range(1, 4095)]).t()
    pos = Poincare(mode=mode).embed(edges.to(device), 4095).cpu()
    found = reconstruction(pos, edges, "poincare")
    return {"rank": found.mean_rank, "precision": found.mean_average_precision}


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--nodes", type=int, default=10**6)
    options = parser.parse_args()
    torch.set_num_threads(1)
    device, size = torch.device(options.device), options.nodes
    warm = generated(500, 2000)
    for settings in (Poincare(epochs=1), Isomap(landmarks=20)):
        settings.embed(warm, 500)
    Poincare(epochs=1, mode="batched").embed(warm.to(device), 500)
    Isomap(landmarks=20).embed(warm.to(device), 500)
    edges = generated(size, 10 * size)
    there = edges.to(device)
    found = {"nodes": size, "pairs": edges.size(1), "torch": torch.__version__}
    if device.type == "cuda":
        found["device"] = torch.cuda.get_device_name(device)
    found["poincare epoch, device"] = an_epoch("batched", there, size)
    found["poincare epoch, one core"] = an_epoch("deterministic", edges, size)
    found["tree, device"], found["tree, one core"] = (
        quality("batched", device),
        quality("deterministic", "cpu"),
    )
    landmarks = Isomap(landmarks=200)
    found["isomap, device"], ours = seconds_of(landmarks, there, size)
    found["isomap, one core"], theirs = seconds_of(landmarks, edges, size)
    found["isomap, difference"] = float((ours - theirs).abs().max() / theirs.abs().max())
    if device.type == "cuda":
        found["peak MB on the device"] = torch.cuda.max_memory_allocated(device) / 2**20
    print(json.dumps(found))


if __name__ == "__main__":
    main()
