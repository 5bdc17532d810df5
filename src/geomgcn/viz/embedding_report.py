"""The report of one embedding: its numbers and pictures, no labels needed."""

import json
import os
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path

import torch

from geomgcn import __version__, _store
from geomgcn._types import EdgeIndex, Label, Position
from geomgcn.embeddings import Embedding
from geomgcn.graphs import canonical_edges
from geomgcn.latent import latent_neighborhood
from geomgcn.neighborhoods import Space, SpaceNeighborhoods, relate
from geomgcn.quality import Quality
from geomgcn.viz._canvas import png
from geomgcn.viz._neighborhood_map import neighborhood_map, view_of
from geomgcn.viz._page import Picture, html_document, html_figure, inline
from geomgcn.viz._quality_charts import distance_chart, hop_chart, size_chart
from geomgcn.viz._quality_table import NO_LABELS, html_table, summary_of
from geomgcn.viz._space_map import space_map
from geomgcn.viz.report import check_ready

CANDIDATES = 200
"""Nodes of typical neighborhoods, of which the one with the clearest picture is drawn."""


def write_embedding_report(
    folder: str | os.PathLike[str],
    *,
    graph_name: str,
    edge_index: EdgeIndex,
    pos: Position,
    embedding: Embedding,
    quality: Quality,
    y: Label | None = None,
    class_names: Sequence[str] | None = None,
    node: int | None = None,
) -> Path:
    """Write the report of an embedding and return the path of its page.

    Writes ``index.html``, which holds its pictures; these as PNG files; and ``quality.json``. Of graphs with
    more than 50,000 nodes a sample is drawn.

    Args:
        folder: Made if it does not exist.
        embedding: The one that gave ``pos``, for its settings.
        quality: What :func:`~geomgcn.quality.quality` says of ``pos``.
        y: Classes, for one more picture; nothing else looks at them.
        node: Whose neighborhoods are drawn; one of typical neighborhoods by default.

    Example:
        >>> import tempfile
        >>> from geomgcn.embeddings import Isomap
        >>> from geomgcn.quality import quality
        >>> edges = torch.tensor([[0, 1, 2], [1, 2, 3]])
        >>> pos = Isomap().embed(edges, 4)
        >>> facts = dict(graph_name="path", edge_index=edges, pos=pos, embedding=Isomap())
        >>> write_embedding_report(tempfile.mkdtemp(), quality=quality(pos, edges), **facts).name
        'index.html'
    """
    folder = Path(folder)
    _check(pos, quality, y, node)
    check_ready(folder)
    pos = pos.detach().cpu().double()
    edges, facts = canonical_edges(edge_index.cpu(), pos.size(0))
    maps = _maps(pos, edges, quality, y, class_names, node)
    charts = _charts(quality)
    for picture in (*maps, *charts):
        _write(folder / picture.file, picture.contents)
    graph = {
        "nodes": facts.num_nodes,
        "edges": facts.num_edges // 2,
        "connected components": facts.num_components,
        "isolated nodes": facts.num_isolated,
    }
    settings = embedding.settings()
    content = {"graph": graph_name, **graph, "settings": settings, "quality": quality.as_dict()}
    _write(
        folder / "quality.json",
        (json.dumps(content, indent=2, allow_nan=False, default=repr) + "\n").encode(),
    )
    title = f"{type(embedding).__name__} of {graph_name}"
    described = {**graph, **settings, "geometry": quality.geometry, "geomgcn": __version__}
    _write(folder / "index.html", _html(title, quality, maps, charts, described).encode())
    return folder / "index.html"


def _check(pos: Position, quality: Quality, y: torch.Tensor | None, node: int | None) -> None:
    """Refuse what does not belong together, before any work is done."""
    if quality.num_nodes != pos.size(0):
        raise ValueError(
            f"The report needs the quality of these {pos.size(0)} positions, got that of "
            f"{quality.num_nodes} nodes. Pass quality(pos, edge_index, geometry)."
        )
    if y is not None and y.shape != (pos.size(0),):
        raise ValueError(
            f"The report needs one label for each of {pos.size(0)} positions, got shape {list(y.shape)}. "
            f"Use -1 for unknown ones, or leave y out."
        )
    if node is not None and not 0 <= node < pos.size(0):
        raise ValueError(
            f"node needs to be from 0 to {pos.size(0) - 1}, got {node}. Pass one of the graph's nodes."
        )


def _html(
    title: str,
    quality: Quality,
    maps: Sequence[Picture],
    charts: Sequence[Picture],
    described: Mapping[str, object],
) -> str:
    parts = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="summary">{inline(summary_of(quality))}</p>',
        '<div class="maps">',
        *(html_figure(picture, "map") for picture in maps),
        "</div>",
        "<h2>In numbers</h2>",
        f'<p class="quiet">{inline(NO_LABELS)}</p>',
        *html_table(quality),
        '<div class="maps">',
        *(html_figure(picture, "chart") for picture in charts),
        "</div>",
        "<h2>Graph and settings</h2>",
        "<dl>",
        *(f"<dt>{escape(str(name))}</dt><dd>{escape(str(value))}</dd>" for name, value in described.items()),
        "</dl>",
    ]
    return html_document(title, parts)


def _write(path: Path, contents: bytes) -> None:
    _store.write_atomic(path, lambda file: file.write(contents))


def _maps(
    pos: Position,
    edges: EdgeIndex,
    quality: Quality,
    y: Label | None,
    class_names: Sequence[str] | None,
    node: int | None,
) -> list[Picture]:
    """Return the pictures of the space."""
    rim = " The circle is the rim of the Poincaré disc." if quality.geometry == "poincare" else ""
    figure, remarks = space_map(pos, edges, geometry=quality.geometry)
    maps = [
        Picture(
            "latent_space.png",
            "Nodes at their latent positions over thin lines for edges; color tells the degree.",
            f"The latent space, colored by degree.{rim} {remarks}".strip(),
            png(figure),
        )
    ]
    if y is not None:
        figure, _ = space_map(pos, edges, geometry=quality.geometry, y=y, class_names=class_names)
        maps.append(
            Picture(
                "classes.png",
                "The same nodes, colored by class.",
                "The same, colored by class. The embedding has not seen the classes.",
                png(figure),
            )
        )
    if pos.size(1) == 2 and edges.size(1):
        maps.append(_node_map(Space(pos, quality.geometry), edges, y, class_names, node))
    return maps


def _node_map(
    space: Space, edges: EdgeIndex, y: Label | None, class_names: Sequence[str] | None, node: int | None
) -> Picture:
    near = latent_neighborhood(space.pos, edges.size(1), space.resolved_distance)
    candidates = _typical(edges, near.edge_index, len(space.pos)) if node is None else torch.tensor([node])
    chosen = torch.zeros(len(space.pos), dtype=torch.bool)
    chosen[candidates] = True
    parts = [
        relate(pairs[:, chosen[pairs[1]]], space.pos, space.resolved_relation, name)
        for name, pairs in (("graph", edges), ("latent", near.edge_index))
    ]
    found = SpaceNeighborhoods(parts[0], parts[1], near.radius, near.max_coincident)
    if node is None:
        node = max(candidates.tolist(), key=lambda v: _clearance(space, found, v))
    sizes = [int((part.edge_index[1] == node).sum()) for part in parts]
    polar = " Upper is nearer to the origin, right is clockwise." if space.geometry == "poincare" else ""
    return Picture(
        "neighborhoods.png",
        f"Node {node} amid its four sectors, with its graph neighbors, its latent neighbors and the radius.",
        f"Node {node}: {sizes[0]} neighbors in the graph, {sizes[1]} in the latent space, inside the dashed "
        f"circle of radius {near.radius:.3g}; and the sectors that tell its relations.{polar}",
        png(neighborhood_map(space, found, node, y=y, class_names=class_names)),
    )


def _clearance(space: Space, found: SpaceNeighborhoods, node: int) -> float:
    """Return the smallest distance between two symbols of a node's picture, in widths of the picture."""
    sources = [part.edge_index[0, part.edge_index[1] == node] for part in (found.graph, found.latent)]
    members = torch.cat([torch.tensor([node]), *sources]).unique()
    apart = torch.nn.functional.pdist(space.pos[members])
    return float(apart.min()) / view_of(space, found, node) if len(apart) else 0.0


def _typical(edges: torch.Tensor, latent: torch.Tensor, num_nodes: int) -> torch.Tensor:
    """Return nodes whose two neighborhoods are about as large as the median, the nearest to it first."""
    distance = torch.zeros(num_nodes)
    for pairs in (edges, latent):
        size = torch.bincount(pairs[1], minlength=num_nodes).float()
        some = size[size > 0]
        median = float(some.median()) if len(some) else 1.0
        # A node without neighbors of one kind is drawn only if there is no other.
        distance += (size - median).abs() / median + 1e6 * (size == 0)
    order = distance.argsort(stable=True)
    return order[distance[order] <= max(float(distance.min()), 0.5)][:CANDIDATES]


def _charts(quality: Quality) -> list[Picture]:
    """Return the pictures of the numbers."""
    return [
        Picture(
            "hops.png",
            "Bars of shares of pairs by hops in the graph, for the latent neighborhood and for random pairs.",
            "How far apart in the graph the two nodes of a pair of N_s are, in percent of the pairs, beside "
            "random pairs.",
            png(hop_chart(quality)),
        ),
        Picture(
            "sizes.png",
            "Histogram of the sizes of both neighborhoods.",
            "How many neighbors nodes have, in the graph and in the latent space. Means are alike by the "
            "radius rule, distributions need not be.",
            png(size_chart(quality)),
        ),
        Picture(
            "distances.png",
            "Latent distances by hops: medians with the middle 50 and 80 percent.",
            f"Latent distances of nodes by their hops in the graph, over {quality.distances.pairs} pairs "
            f"of the same component. A straight line would be an embedding without loss.",
            png(distance_chart(quality)),
        ),
    ]
