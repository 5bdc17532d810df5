"""The command that maps a graph to a latent space; see :mod:`geomgcn._arguments` for what it takes."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from tqdm import tqdm

from geomgcn import _arguments, embeddings, experiments
from geomgcn._output import check_out, describe_graph, graph_and_edges, print_json, write_table
from geomgcn._progress import OnStep
from geomgcn.embeddings import Embedding
from geomgcn.quality import quality
from geomgcn.training import resolve_device


def embed(command: _arguments.Embed) -> int:
    """Embed a graph, write the positions, and say what came out."""
    settings = {key: value for key in ("dim", "seed") if (value := getattr(command, key)) is not None}
    _check(command, settings)
    device = resolve_device(command.device)
    graph, edges, report = graph_and_edges(command.graph)
    if command.node is not None and not 0 <= command.node < report.num_nodes:
        raise ValueError(
            f"--node is from 0 to {report.num_nodes - 1}, got {command.node}. Name one of these."
        )
    embedding = experiments.embedding_of(command.embedding, graph, **settings)
    if command.node is not None and embedding.dim != 2:
        raise ValueError(
            f"--node needs two dimensions to be drawn in, got dim={embedding.dim}. Leave one of them out."
        )
    begin = time.process_time()
    with progress_bar(hidden=command.json) as on_step:
        pos = _positions(embedding, graph, device, on_step)
        seconds = time.process_time() - begin
        if command.out is not None:  # at once: what comes after may take long, or fail
            columns = {f"x{i}": column for i, column in enumerate(pos.unbind(1))}
            write_table(command.out, {"node": torch.arange(report.num_nodes), **columns}, {"pos": pos})
        found = None
        if command.report or command.pictures is not None:
            found = quality(pos, edges, embedding.geometry, on_step=on_step)
    page = None
    if found is not None and command.pictures is not None:
        from geomgcn.viz.embedding_report import write_embedding_report

        page = write_embedding_report(
            command.pictures,
            graph_name=command.graph,
            edge_index=edges,
            pos=pos,
            embedding=embedding,
            quality=found,
            y=graph.get("y"),
            class_names=graph.get("class_names"),
            node=command.node,
        )
    if command.json:
        summary: dict[str, Any] = {"dataset": command.graph, "embedding": repr(embedding)}
        low, high = pos.amin(0).tolist(), pos.amax(0).tolist()
        summary |= {"nodes": report.num_nodes, "dim": pos.size(1), "low": low, "high": high}
        summary |= {"cpu_seconds": seconds}
        print_json(summary if found is None else {**summary, "quality": found.as_dict()})
        return 0
    print(f"{command.graph}: {describe_graph(report)}")
    places = len(pos.unique(dim=0))
    print(f"{embedding!r}: {places} distinct places in {pos.size(1)} dimensions, {seconds:.2f} CPU seconds")
    for line in [] if found is None else found.lines():
        print(f"  {line}")
    if command.out is not None:
        print(f"Positions written to {command.out}")
    if page is not None:
        print(f"Report with pictures: {page}")
    return 0


def _check(command: _arguments.Embed, settings: dict[str, int]) -> None:
    """Answer mistakes before anything is loaded."""
    if command.embedding.strip().lower() != "coordinates":
        embeddings.from_text(command.embedding, **settings)
    check_out(command.out, command.graph)
    if command.pictures is not None:
        from geomgcn.viz.report import check_ready

        check_ready(command.pictures)
    elif command.node is not None:
        raise ValueError("--node chooses whose neighborhoods are drawn. Name a folder with --pictures.")


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
    hidden = hidden or not sys.stderr.isatty()
    bar, shown, last = tqdm(disable=True), "", 0

    def on_step(stage: str, done: int, total: int) -> None:
        nonlocal bar, shown, last
        if stage != shown or done < last:  # the next stage, or the same one of the next component
            bar.close()
            # A run that goes on starts where it was, so that the time left is right.
            bar = tqdm(desc=stage, total=total, initial=done, disable=hidden, leave=False)
        else:
            bar.update(done - last)
        shown, last = stage, done

    try:
        yield on_step
    finally:
        bar.close()
