from collections.abc import Sequence

import torch
from torch import Tensor

from geomgcn._types import Label, Position
from geomgcn.distances import BallDistance
from geomgcn.neighborhoods import RelatedPairs, Space, SpaceNeighborhoods
from geomgcn.relations import PolarQuadrants, Quadrants
from geomgcn.viz._canvas import FAINT, INK, MUTED, Axes, Figure, class_style, new_axes
from geomgcn.viz._latent_map import check_plane, draw_edges, legend_below, name_of, style_axes

_WIDTH, _HEIGHT = 5.6, 6.2
_VIEW_MARGIN = 1.3  # room around the farthest neighbor and the circle, for the names of the sectors
_MOST_CANDIDATES = 1000  # of the typical nodes, in whose pictures the distances are compared
_TINTS = ("#EAF1F8", "#FFFFFF", "#FFFFFF", "#EAF1F8")  # of the quadrants, by id
_PIXELS = 240  # across a view of polar sectors
_NAMES_AT = 0.7  # where their names stand, as a share of half the view
_CORNERS = ((0.02, 0.98), (0.98, 0.98), (0.02, 0.02), (0.98, 0.02))  # of their names, as shares of the axes


def typical_node(pos: Position, found: SpaceNeighborhoods) -> int:
    """Return a node that has both neighbourhoods, of sizes as near the mean as there are.

    Among equals it is the one whose neighbours fill most virtual nodes, then the one whose picture is
    least crowded.

    Example:
        >>> pairs = RelatedPairs(torch.tensor([[0, 2], [1, 1]]), torch.tensor([0, 1]), 4)
        >>> typical_node(torch.rand(3, 2), SpaceNeighborhoods(pairs, pairs, 1.0, None))
        1
    """
    num_nodes = len(pos)
    distance, filled = torch.zeros(num_nodes), torch.zeros(num_nodes)
    for part in (found.graph, found.latent):
        size = torch.bincount(part.edge_index[1], minlength=num_nodes)
        mean = max(part.edge_index.size(1) / max(num_nodes, 1), 1.0)
        distance += (size - mean).abs() / mean
        distance[size == 0] = torch.inf
        slots = (part.edge_index[1] * part.num_relations + part.relation).unique()
        filled += torch.bincount(slots // part.num_relations, minlength=num_nodes)
    if not bool(distance.isfinite().any()):
        raise ValueError("No node has both a graph and a latent neighborhood. Choose one with node=...")
    filled[distance > distance.min()] = -1
    equals = (filled == filled.max()).nonzero().view(-1)[:_MOST_CANDIDATES].tolist()
    return max(equals, key=lambda node: _clearance(pos, found, node))


def _clearance(pos: Position, found: SpaceNeighborhoods, node: int) -> float:
    """Return the smallest distance between two symbols of a node's picture, in widths of the picture."""
    members = torch.cat(
        [torch.tensor([node]), *(_sources(part, node) for part in (found.graph, found.latent))]
    )
    apart = torch.nn.functional.pdist(pos[members.unique()])
    return float(apart.min() / apart.max().clamp(min=1e-12)) if len(apart) else 0.0


def neighborhood_map(
    space: Space,
    found: SpaceNeighborhoods,
    node: int | None = None,
    *,
    y: Label | None = None,
    class_names: Sequence[str] | None = None,
    ax: Axes | None = None,
) -> Figure:
    """Draw one node's two neighbourhoods, its four sectors and the radius, and return the figure.

    In the Poincaré disc the sectors are polar, and the ball around the node is a Euclidean circle too.
    Squares are N_g, tied to the node by lines; disks are N_s, which lie inside the circle; a disk in a square
    is in both. Each sector says how many of each it holds, coincident ones counted singly.

    Args:
        space: Positions, with quadrants or polar quadrants as their relation operator.
        found: What :func:`~geomgcn.neighborhoods.neighborhoods_of` returns for it.
        node: The one in the middle; by default :func:`typical_node`.
        y: Classes for the colors.
        ax: Axes to draw on, instead of a new figure.

    Example:
        >>> from geomgcn.neighborhoods import neighborhoods_of
        >>> space = Space(torch.tensor([[0.0, 0.0], [1.0, 0.0], [3.0, 1.0]]))
        >>> found = neighborhoods_of(torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]), space)
        >>> figure = neighborhood_map(space, found, node=1)
        >>> round(figure.axes[0].patches[0].radius / found.radius, 6)
        1.0
    """
    pos = space.pos
    check_plane("neighborhood_map", pos)
    if not isinstance(space.resolved_relation, Quadrants | PolarQuadrants):
        raise ValueError(
            f"neighborhood_map draws the sectors of Quadrants() and of PolarQuadrants(), got "
            f"{space.resolved_relation!r}. Pass a Space whose relation is Quadrants()."
        )
    node = typical_node(pos, found) if node is None else node
    if not 0 <= node < len(pos):
        raise ValueError(
            f"node needs to be from 0 to {len(pos) - 1}, got {node}. Pass one of the graph's nodes."
        )
    ax = new_axes(_WIDTH, _HEIGHT) if ax is None else ax
    members = [_sources(part, node) for part in (found.graph, found.latent)]
    circle = _circle(space, node, found.radius)
    half = view_of(space, found, node)
    if isinstance(space.resolved_relation, Quadrants):
        _draw_sectors(ax, pos[node], half, circle, found, node)
    else:
        _draw_polar_sectors(ax, pos[node], half, circle, found, node)
    labels = torch.zeros(len(pos), dtype=torch.long) if y is None else y
    _draw_nodes(ax, pos, labels, node, *members)
    _add_legends(ax, found.radius, None if y is None else _labels_in_view(pos, y, node, half), class_names)
    x0, x1 = pos[node].tolist()
    style_axes(ax)
    ax.set_xlim(x0 - half, x0 + half)
    ax.set_ylim(x1 - half, x1 + half)
    return ax.figure


def _sources(part: RelatedPairs, node: int) -> Tensor:
    return part.edge_index[0, part.edge_index[1] == node]


def _circle(space: Space, node: int, radius: float) -> tuple[float, float, float] | None:
    """Return center and radius of the circle that N_s lies in, if there is one."""
    if radius == float("inf") or not isinstance(space.resolved_distance, BallDistance):
        return None
    center, reach = space.resolved_distance.balls(space.pos[[node]], radius)
    return float(center[0, 0]), float(center[0, 1]), float(reach[0])


def view_of(space: Space, found: SpaceNeighborhoods, node: int) -> float:
    """Return half the width of a square view that holds all neighbours of a node and the circle.

    Example:
        >>> nothing = RelatedPairs(torch.zeros(2, 0, dtype=torch.long), torch.zeros(0, dtype=torch.long), 4)
        >>> round(view_of(Space(torch.zeros(1, 2)), SpaceNeighborhoods(nothing, nothing, 2.0, None), 0), 6)
        2.6
    """
    pos = space.pos
    members = torch.cat([_sources(part, node) for part in (found.graph, found.latent)])
    reach = (pos[members] - pos[node]).abs().max().item() if len(members) else 0.0
    circle = _circle(space, node, found.radius)
    if circle is not None:
        x0, x1 = pos[node].tolist()
        reach = max(reach, max(abs(circle[0] - x0), abs(circle[1] - x1)) + circle[2])
    return _VIEW_MARGIN * (reach or 1.0)


def _labels_in_view(pos: Tensor, y: Tensor, node: int, half: float) -> list[int]:
    seen = ((pos - pos[node]).abs() <= half).all(1)
    return y[seen].unique().tolist()


def _draw_circle(ax: Axes, circle: tuple[float, float, float] | None) -> None:
    from matplotlib.patches import Circle

    if circle is not None:
        line = {"edgecolor": INK, "linestyle": (0, (5, 3)), "linewidth": 1.2}
        ax.add_patch(Circle(circle[:2], circle[2], fill=False, **line))


def _sector_texts(found: SpaceNeighborhoods, node: int) -> list[str]:
    """Return the name of each sector with the number of neighbours in it."""
    counts = [
        torch.bincount(part.relation[part.edge_index[1] == node], minlength=part.num_relations).tolist()
        for part in (found.graph, found.latent)
    ]
    return [
        f"{name}\n{graph} in $N_g$, {latent} in $N_s$"
        for name, graph, latent in zip(Quadrants.names, *counts, strict=True)
    ]


def _draw_sectors(
    ax: Axes,
    center: Tensor,
    half: float,
    circle: tuple[float, float, float] | None,
    found: SpaceNeighborhoods,
    node: int,
) -> None:
    """Draw the circle, the four sectors and their names with the number of neighbours in each."""
    from matplotlib.patches import Rectangle

    x0, x1 = map(float, center)
    _draw_circle(ax, circle)
    for (right, top), tint in zip(((0, 1), (1, 1), (0, 0), (1, 0)), _TINTS, strict=True):
        corner = (x0 - half * (1 - right), x1 - half * (1 - top))
        ax.add_patch(Rectangle(corner, half, half, facecolor=tint, edgecolor="none", zorder=-2))
    ax.axvline(x0, color=MUTED, linewidth=0.8, zorder=-1)
    ax.axhline(x1, color=MUTED, linewidth=0.8, zorder=-1)
    for text, (across, up) in zip(_sector_texts(found, node), _CORNERS, strict=True):
        ax.text(
            across,
            up,
            text,
            transform=ax.transAxes,
            ha="left" if across < 0.5 else "right",
            va="top" if up > 0.5 else "bottom",
            color=INK,
            linespacing=1.4,
            zorder=6,
        )


def _draw_polar_sectors(
    ax: Axes,
    center: Tensor,
    half: float,
    circle: tuple[float, float, float] | None,
    found: SpaceNeighborhoods,
    node: int,
) -> None:
    """Draw the same for polar sectors, whose borders are a circle and a line through the origin."""
    from matplotlib.colors import to_rgb
    from matplotlib.patches import Circle

    x0, x1 = map(float, center)
    _draw_circle(ax, circle)
    ax.add_patch(Circle((0, 0), 1, fill=False, edgecolor=INK, linewidth=1.2, zorder=0))
    steps = torch.linspace(-half, half, _PIXELS, dtype=center.dtype)
    across, up = torch.meshgrid(x0 + steps, x1 + steps, indexing="xy")
    points = torch.stack([across.reshape(-1), up.reshape(-1)], dim=1)
    relation = PolarQuadrants()(points, center.expand_as(points))
    inside = points.square().sum(1) < 1
    tints = torch.tensor([to_rgb(tint) for tint in _TINTS])
    colors = torch.where(inside[:, None], tints[relation], torch.ones(3)).view(_PIXELS, _PIXELS, 3)
    view = (x0 - half, x0 + half, x1 - half, x1 + half)
    ax.imshow(colors.numpy(), extent=view, origin="lower", zorder=-2, interpolation="nearest")
    ax.add_patch(Circle((0, 0), float(center.norm()), fill=False, edgecolor=MUTED, linewidth=0.8, zorder=-1))
    if float(center.norm()) > 0:
        ax.axline((0, 0), (x0, x1), color=MUTED, linewidth=0.8, zorder=-1)
    box = {"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.75}
    for place, text in zip(_sector_middles(center, half), _sector_texts(found, node), strict=True):
        ax.text(*place, text, ha="center", va="center", color=INK, linespacing=1.4, zorder=6, bbox=box)


def _sector_middles(center: Tensor, half: float) -> list[list[float]]:
    """Return a place in the middle of each polar sector, near the edge of the view and within the disc."""
    outward = center / center.norm() if float(center.norm()) > 0 else center.new_tensor([1.0, 0.0])
    clockwise = torch.stack([outward[1], -outward[0]])
    places = []
    for down, right in ((-1, -1), (-1, 1), (1, -1), (1, 1)):
        along = down * outward + right * clockwise
        step = _NAMES_AT * half * along / along.abs().max()
        while float((center + step).norm()) > 1 and float(step.norm()) > 0.3 * half:
            step = 0.9 * step
        places.append((center + step).tolist())
    return places


def _draw_nodes(ax: Axes, pos: Tensor, labels: Tensor, node: int, graph: Tensor, latent: Tensor) -> None:
    """Draw the node, its neighbours of both kinds, and what else lies around them."""
    others = torch.ones(len(pos), dtype=torch.bool)
    others[torch.cat([graph, latent, torch.tensor([node])])] = False
    x0, x1 = pos[others].T.cpu().numpy()
    ax.scatter(x0, x1, s=16, color=FAINT, linewidths=0, zorder=1, label="other nodes")
    draw_edges(ax, pos, torch.stack([graph, torch.full_like(graph, node)]))
    lines = ax.collections[-1]
    lines.set(color=INK, linewidth=1.0, zorder=2)
    for members, marker, size, name in ((graph, "s", 130, "$N_g$"), (latent, "o", 48, "$N_s$")):
        x0, x1 = pos[members].T.cpu().numpy()
        colors = [class_style(label)["color"] for label in labels[members].tolist()]
        zorder = 3 if marker == "s" else 4
        ax.scatter(
            x0,
            x1,
            s=size,
            c=colors,
            marker=marker,
            edgecolors="white",
            linewidths=1.0,
            zorder=zorder,
            label=name,
        )
    color = class_style(int(labels[node]))["color"]
    x0, x1 = pos[node].tolist()
    ax.scatter(
        [x0], [x1], s=240, color=color, marker="*", edgecolors=INK, linewidths=1.0, zorder=5, label="node"
    )


def _add_legends(
    ax: Axes, radius: float, labels: list[int] | None, class_names: Sequence[str] | None
) -> None:
    """Add one legend for shapes, and one for the colors of classes, both below the axes."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    def mark(marker: str, size: int, color: str = MUTED) -> Line2D:
        return Line2D(
            [], [], linestyle="none", marker=marker, markersize=size, color=color, markeredgewidth=0
        )

    shapes = {
        "the node": mark("*", 14),
        "graph neighborhood $N_g$": mark("s", 10),
        "latent neighborhood $N_s$": mark("o", 7),
        f"radius {radius:.2f}": Line2D([], [], color=INK, linestyle=(0, (5, 3)), linewidth=1.2),
    }
    first = legend_below(ax, shapes, 38.0, ncols=2, handletextpad=0.4)
    if labels is None:
        return
    # A second legend would replace the first, and clipped artists get no room of their own.
    ax.add_artist(first).set_clip_on(False)
    names = {name_of(label, class_names): Patch(color=class_style(label)["color"]) for label in labels}
    legend_below(ax, names, 76.0, ncols=4, handletextpad=0.4, handlelength=1.0)
