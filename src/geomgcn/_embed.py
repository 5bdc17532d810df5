"""The command that maps a graph to a latent space; see :mod:`geomgcn._arguments` for what it takes."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch_geometric.data import Data
from tqdm import tqdm

from geomgcn import _arguments, embeddings, experiments
from geomgcn._output import check_out, describe_graph, graph_and_edges, print_json, write_table
from geomgcn._progress import OnStep
from geomgcn.embeddings import Embedding
from geomgcn.training import resolve_device


def embed(command: _arguments.Embed) -> int:
    """Embed a graph, write the positions, and say what came out."""
    settings = {key: value for key in ("dim", "seed") if (value := getattr(command, key)) is not None}
    kind, _ = embeddings.split_settings(command.embedding)
    if embeddings.by_name(kind) is not embeddings.Coordinates:
        embeddings.from_text(command.embedding, **settings)  # mistakes are answered before anything is loaded
    check_out(command.out, command.graph)
    device = resolve_device(command.device)
    graph, _, report = graph_and_edges(command.graph)
    embedding = experiments.embedding_of(command.embedding, graph, **settings)
    begin = time.process_time()
    with progress_bar(hidden=command.json) as on_step:
        pos = _positions(embedding, graph, device, on_step)
    seconds = time.process_time() - begin
    if command.out is not None:
        columns = {f"x{i}": column for i, column in enumerate(pos.unbind(1))}
        write_table(command.out, {"node": torch.arange(report.num_nodes), **columns}, {"pos": pos})
    if command.json:
        summary = {"dataset": command.graph, "embedding": repr(embedding), "nodes": report.num_nodes}
        low, high = pos.amin(0).tolist(), pos.amax(0).tolist()
        print_json({**summary, "dim": pos.size(1), "low": low, "high": high, "cpu_seconds": seconds})
        return 0
    print(f"{command.graph}: {describe_graph(report)}")
    places = len(pos.unique(dim=0))
    print(f"{embedding!r}: {places} distinct places in {pos.size(1)} dimensions, {seconds:.2f} CPU seconds")
    if command.out is not None:
        print(f"Positions written to {command.out}")
    return 0


def _positions(embedding: Embedding, graph: Data, device: torch.device, on_step: OnStep) -> Tensor:
    """Return positions on the CPU; a run that is stopped says whether it can go on."""
    length = graph.get("edge_length")
    pos = embeddings.embed_cached(
        embedding,
        graph.edge_index.to(device),
        int(graph.num_nodes or 0),
        edge_length=None if length is None else length.to(device),
        on_step=on_step,
    )
    return pos.cpu()


@contextmanager
def progress_bar(hidden: bool) -> Iterator[OnStep]:
    """Show the stages of a long computation with the time left, on standard error where that is a terminal.

    Example:
        >>> with progress_bar(hidden=True) as on_step:
        ...     on_step("epochs", 1, 10)
    """
    bars: dict[str, tqdm] = {}
    hidden = hidden or not sys.stderr.isatty()

    def on_step(stage: str, done: int, total: int) -> None:
        if stage not in bars:
            for bar in bars.values():
                bar.close()
            # A run that goes on starts where it was, so that the time left is right.
            bars[stage] = tqdm(desc=stage, total=total, initial=done, disable=hidden, leave=False)
            return
        bars[stage].update(done - bars[stage].n)

    try:
        yield on_step
    finally:
        for bar in bars.values():
            bar.close()
