"""The kernels of a layer on a GPU, beside cuSPARSE and a plain copy of the same run.

    python benchmarks/kernels_device.py --out kernels.jsonl            # 2.4 million nodes, 248 million pairs
    TRITON_INTERPRET=1 python benchmarks/kernels_device.py --quick     # whether it runs, on any machine

Half of the pairs are edges of a graph with skewed degrees, its hubs anywhere among the nodes; half join
nodes at most 1000 apart. Milliseconds are the median of runs timed by device events, after warm-up.
Bytes are what all pairs read (values, the number of the other end, their weight), and what is read
and written once a row: reads that hit a cache count too, so a share of the copy may exceed one. Settings
of tiles are tried one by one; the first line of each kernel has those that the library chooses.
"""

import argparse
import json
import statistics
import time

import torch

from geomgcn.nn import Adjacency, _triton
from geomgcn.nn._dropout import Dropout
from geomgcn.nn._long_rows import LongRows
from geomgcn.nn._plain import Finish
from geomgcn.nn._triton import Launch
from geomgcn.nn._triton_adam import Adam
from geomgcn.nn._triton_tiles import Tile

COUNT = 8
WAYS = {
    "slots to slots": {"from_slots": True, "to_slots": True},
    "slots to nodes": {"from_slots": True, "to_slots": False},
    "nodes to slots": {"from_slots": False, "to_slots": True},
}
SHAPES = [
    (16, 8, 2),
    (16, 8, 4),
    (16, 8, 1),
    (8, 8, 1),
    (8, 8, 2),
    (32, 8, 4),
    (16, 4, 2),
    (32, 4, 2),
    (8, 16, 2),
    (4, 32, 2),
    (4, 16, 1),
    (2, 32, 1),
    (1, 32, 1),
]
"""Rows, neighbors and warps of a tile."""

LIMITS = [128, 256, 512, 1024, 2048, 2**31 - 1]
PIECES = [(512, 128, 2), (1024, 64, 2), (2048, 128, 2), (4096, 128, 4)]
"""Pairs of a piece, then neighbors and warps of its tile."""


class Bench:
    """Times calls, prints them beside the copy, and writes them down."""

    def __init__(self, options, device):
        self.options, self.device, self.rate = options, device, None
        self.begin = time.perf_counter()

    def late(self):
        return time.perf_counter() - self.begin > self.options.seconds

    def milliseconds(self, call):
        repeat = 1 if self.options.quick else 7
        for _ in range(0 if self.options.quick else 2):
            call()
        taken = []
        for _ in range(repeat):
            if self.device.type == "cuda":
                ends = [torch.cuda.Event(enable_timing=True) for _ in range(2)]
                ends[0].record()
                call()
                ends[1].record()
                torch.cuda.synchronize()
                taken.append(ends[0].elapsed_time(ends[1]))
            else:
                start = time.perf_counter()
                call()
                taken.append(1000 * (time.perf_counter() - start))
        return statistics.median(taken)

    def line(self, what, call, num_bytes, **settings):
        """Time a call; one that fails is a line too, since the others are worth having."""
        if self.late():
            return
        try:
            taken = self.milliseconds(call)
        except Exception as error:
            print(f"{what:40} {settings}: {error!r:.200}", flush=True)
            self.write({"what": what, "error": repr(error)[:500], **settings})
            return
        rate = num_bytes / taken / 1e9
        self.rate = self.rate or rate
        found = {"what": what, "ms": taken, "TB/s": rate, "of copy": rate / self.rate, **settings}
        shown = " ".join(f"{key}={value}" for key, value in settings.items())
        print(f"{what:40} {taken:9.3f} ms {rate:7.3f} TB/s {rate / self.rate:6.1%}  {shown}", flush=True)
        self.write(found)

    def write(self, found):
        if self.options.out:
            with open(self.options.out, "a") as out:
                print(json.dumps(found), file=out)


def generated(num_nodes, num_pairs, device):
    """Return pairs of both halves with their virtual nodes."""
    half = num_pairs // 4
    order = torch.randperm(num_nodes, device=device)
    skewed = order[(num_nodes * torch.rand(half, device=device).square()).long().clamp(max=num_nodes - 1)]
    even = torch.randint(num_nodes, (half,), device=device)
    graph = torch.stack([torch.cat([skewed, even]), torch.cat([even, skewed])])
    near = torch.randint(num_nodes, (2 * half,), device=device)
    far = (near + torch.randint(-1000, 1001, (2 * half,), device=device)).clamp(0, num_nodes - 1)
    edge_type = torch.randint(COUNT // 2, (4 * half,), device=device)
    edge_type[2 * half :] += COUNT // 2
    return torch.cat([graph, torch.stack([near, far])], 1), edge_type


def bytes_of(pairs, values, out, arrays=1, index=8):
    """Return what all pairs read of ``arrays`` arrays and beside them, and what is written."""
    row = values.size(2) * values.element_size()
    return len(pairs.other) * (arrays * row + index) + pairs.start.nbytes + out.nbytes


def gathers(bench, pairs, channels):
    """Time the three forms, with all settings, in both precisions."""
    for what, way in WAYS.items():
        rows = pairs.num_nodes * (COUNT if way["from_slots"] else 1)
        values = torch.randn(1, rows, channels, device=bench.device)
        out = _triton.gather(pairs, values, **way)
        size = bytes_of(pairs, values, out)
        del out
        bench.line(f"gather {what}", lambda v=values, w=way: _triton.gather(pairs, v, **w), size)
        low = values.bfloat16()
        bench.line(
            f"gather {what}, bfloat16",
            lambda v=low, w=way: _triton.gather(pairs, v, **w),
            size - (len(pairs.other) + pairs.num_nodes) * channels * 2,
        )
        sweep(bench, f"gather {what}", pairs, way["to_slots"], channels, size, values, way)


def sweep(bench, what, pairs, to_slots, channels, size, values, way):
    """Time a form of gather with one setting changed at a time."""

    def call(launch=None):
        return _triton.gather(pairs, values, **way, launch=launch)

    for rows, neighbors, warps in bench.options.shapes:
        tile = Launch(Tile(rows, neighbors, min(channels, 64), warps))
        shape = f"{rows}x{neighbors}"
        bench.line(what, lambda t=tile: call(t), size, tile=shape, warps=warps)
    chosen = pairs.long_rows(not to_slots)
    start = pairs.start[:: 1 if to_slots else COUNT]
    for limit in bench.options.limits:
        pairs.found[not to_slots] = long = LongRows.of(start, limit)
        bench.line(what, call, size, limit=limit, long=len(long.row), pieces=len(long.owner))
    for piece, neighbors, warps in bench.options.pieces:
        pairs.found[not to_slots] = LongRows.of(start, chosen.limit, piece)
        launch = Launch(pieces=Tile(1, neighbors, min(channels, 64), warps))
        shape = {"piece": piece, "neighbors": neighbors, "warps": warps}
        bench.line(what, lambda t=launch: call(t), size, limit=chosen.limit, **shape)
    pairs.found[not to_slots] = chosen


def peers(bench, pairs, channels):
    """Time cuSPARSE, and say how far its result is from ours."""
    rows = pairs.num_nodes * COUNT
    values = torch.randn(1, rows, channels, device=bench.device)
    matrix = torch.sparse_csr_tensor(pairs.start, pairs.other, pairs.weight, (rows, rows))
    theirs = matrix @ values[0]
    ours = _triton.gather(pairs, values, from_slots=True, to_slots=True)[0]
    error = float((ours - theirs).norm() / theirs.norm())
    size = bytes_of(pairs, values, ours)
    bench.line("cuSPARSE slots to slots", lambda: matrix @ values[0], size, difference=error)


def others(bench, adjacency, channels):
    """Time everything else, with settings as the library chooses them."""
    gather, spread, device = adjacency.gather, adjacency.spread, bench.device
    num_nodes = gather.num_nodes
    slots = torch.randn(1, num_nodes * COUNT, channels, device=device)
    nodes = torch.randn(1, num_nodes, channels, device=device)
    seed = torch.tensor([5], device=device)
    dropout = Dropout.of(seed, [0.5])
    finish = Finish(torch.randn(1, COUNT * channels, device=device), dropout)
    way, size = WAYS["slots to slots"], bytes_of(gather, slots, slots)
    what = "gather, bias, relu, dropout"
    bench.line(what, lambda: _triton.gather(gather, slots, **way, finish=finish), size)
    gate, twice = torch.randn_like(slots), bytes_of(gather, slots, slots, arrays=2)
    bench.line("gather, gate", lambda: _triton.gather(spread, slots, **way, gate=gate), twice)
    for name, given in WAYS.items():
        values, grad = slots if given["from_slots"] else nodes, slots if given["to_slots"] else nodes
        bench.line(
            f"pair_products {name}",
            lambda v=values, g=grad, w=given: _triton.pair_products(gather, v, g, **w),
            bytes_of(gather, values, grad),
        )
    top, ties = _triton.largest(gather, nodes)
    size = bytes_of(gather, nodes, top, 1, 4) + top.nbytes
    bench.line("largest", lambda: _triton.largest(gather, nodes), size)
    share = top / ties.clamp(min=1)
    bench.line(
        "from_largest",
        lambda: _triton.from_largest(spread, nodes, top, share),
        bytes_of(spread, top, nodes, 2, 4),
    )
    whole = slots.view(1, num_nodes, -1)
    bench.line("drop", lambda: _triton.drop(whole, dropout), 2 * whole.nbytes)
    flat = slots.view(1, -1)
    state = Adam(
        *(flat.clone() if array else torch.zeros_like(flat) for array in (1, 0, 0)),
        torch.ones((), dtype=torch.long, device=device),
        torch.tensor([0.01], device=device),
        torch.tensor([5e-4], device=device),
        torch.tensor([True], device=device),
    )
    bench.line("adam", lambda: _triton.adam(state, flat), 7 * flat.nbytes)


def features(bench, num_nodes, words, runs):
    """Time products with bag-of-words features, of Pubmed's size by default, for several runs at once."""
    mask = torch.rand(num_nodes, words, device=bench.device) < 0.1
    matrix = (torch.rand(num_nodes, words, device=bench.device) * mask).to_sparse_csr()
    back = matrix.to_dense().t().to_sparse_csr()
    dropout = Dropout.of(torch.arange(runs, device=bench.device), [0.5] * runs)
    for transposed, given in ((False, matrix), (True, back)):
        dense = torch.randn(runs, given.size(1), 64, device=bench.device)
        parts = (given.crow_indices().int(), given.col_indices().int(), given.values())
        size = given.values().numel() * runs * (64 * 4 + 8)
        settings = {"runs": runs, "transposed": transposed}

        def ours(parts=parts, dense=dense, transposed=transposed):
            return _triton.sparse_product(*parts, dense, dropout, transposed=transposed)

        bench.line("sparse_product", ours, size, **settings)
        bench.line("cuSPARSE, no dropout", lambda g=given, d=dense: [g @ one for one in d], size, **settings)


def copies(bench):
    """Time a copy within the device; all else is measured against it."""
    source = torch.randn(10**4 if bench.options.quick else 2**30, device=bench.device)
    target = torch.empty_like(source)
    bench.line("copy", lambda: target.copy_(source), 2 * source.nbytes)


def parsed():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=2_400_000)
    parser.add_argument("--pairs", type=int, default=248_000_000)
    parser.add_argument("--channels", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=210, help="start no new measurement after that")
    parser.add_argument("--quick", action="store_true", help="tiny sizes and one setting of each")
    parser.add_argument("--out", help="where to append a line of JSON for each measurement")
    options = parser.parse_args()
    options.shapes, options.limits, options.pieces = SHAPES, LIMITS, PIECES
    if options.quick:
        options.nodes, options.pairs = 60, 1200
        options.shapes, options.limits, options.pieces = SHAPES[:1], [8], PIECES[:1]
    return options


def main():
    options = parsed()
    device = torch.device("cuda" if _triton.available() else "cpu")
    torch.manual_seed(0)
    bench = Bench(options, device)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else "interpreter"
    print(f"{name}, torch {torch.__version__}")
    bench.write({"device": name, "torch": torch.__version__})
    copies(bench)
    features(bench, *((40, 30, 2) if options.quick else (19717, 500, 10)))
    adjacency = Adjacency.of(*generated(options.nodes, options.pairs, device), options.nodes, COUNT)
    longest = int(adjacency.gather.sizes.max())
    print(f"{adjacency}, longest row {longest}, {time.perf_counter() - bench.begin:.0f} s", flush=True)
    peers(bench, adjacency.gather, options.channels)
    others(bench, adjacency, options.channels)
    gathers(bench, adjacency.gather, options.channels)
    print(f"{time.perf_counter() - bench.begin:.0f} s")


if __name__ == "__main__":
    main()
