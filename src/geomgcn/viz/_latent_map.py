from collections.abc import Mapping, Sequence
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from geomgcn._types import EdgeIndex, Position
from geomgcn.graphs import check_edges
from geomgcn.viz._canvas import FAINT, MUTED, Axes, Figure, class_style, new_axes

# Points in square points of print: few nodes are large, many are small, and none vanish.
_INK_OF_ALL_NODES, _SMALLEST, _LARGEST = 14000.0, 3.0, 60.0
_LEGEND_COLUMNS = 5
_WIDTH, _MARGINS = 6.4, 1.2  # inches; the margins hold axis labels and legend


def latent_map(
    pos: Position,
    y: Int[Tensor, " num_labels"],
    edge_index: EdgeIndex | None = None,
    *,
    class_names: Sequence[str] | None = None,
    max_edges: int = 4000,
    ax: Axes | None = None,
) -> Figure:
    """Draw all nodes at their latent positions, colored by class, and return the figure.

    Args:
        y: Class of each node; -1 is drawn as unknown.
        edge_index: Edges to draw thin below the nodes; none if left out.
        max_edges: Of a graph with more of them, an even sample of this size is drawn.
        ax: Axes to draw on, instead of a new figure.

    Example:
        >>> figure = latent_map(torch.rand(5, 2), torch.tensor([0, 1, 0, 1, -1]))
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['class 0', 'class 1', 'unknown']
    """
    check_plane("latent_map", pos)
    if y.shape != (len(pos),):
        raise ValueError(
            f"latent_map needs one label for each of {len(pos)} positions, got shape {list(y.shape)}. "
            f"Use -1 for unknown ones."
        )
    ax = new_axes(_WIDTH, _height_for(pos)) if ax is None else ax
    if edge_index is not None:
        check_edges(edge_index, len(pos))
        draw_edges(ax, pos, _sample(edge_index, max_edges))
    size = max(_SMALLEST, min(_LARGEST, _INK_OF_ALL_NODES / max(len(pos), 1)))
    # In the order of nodes within a class, and class by class: the last class would lie on top of all,
    # so the largest come first.
    labels, count = y.unique(return_counts=True)
    for label in labels[count.argsort(descending=True, stable=True)].tolist():
        x0, x1 = pos[y == label].T.cpu().numpy()
        ax.scatter(
            x0, x1, s=size, linewidths=0, alpha=0.9, label=name_of(label, class_names), **class_style(label)
        )
    _finish(ax, labels.tolist(), class_names)
    return ax.figure


def _height_for(pos: Tensor) -> float:
    """Return a height at which a map of equal scales fills its figure, within reason."""
    if not len(pos):
        return _WIDTH
    across, up = (pos.amax(0) - pos.amin(0)).tolist()
    return _MARGINS + _WIDTH * min(max(up / across if across else 1.0, 0.3), 1.2)


def check_plane(owner: str, pos: Tensor) -> None:
    """Refuse positions that cannot be drawn as they are.

    Example:
        >>> check_plane("latent_map", torch.zeros(3, 2))
    """
    if pos.dim() != 2 or pos.size(1) != 2:
        raise ValueError(
            f"{owner} needs positions in 2 dimensions, got shape {list(pos.shape)}. "
            f"Embed with dim=2, or pass two of the columns, pos[:, :2]."
        )


def name_of(label: int, class_names: Sequence[str] | None) -> str:
    """Return the name of a class in a legend.

    Example:
        >>> name_of(1, ("red", "green")), name_of(1, None), name_of(-1, None)
        ('green', 'class 1', 'unknown')
    """
    if label < 0:
        return "unknown"
    return class_names[label] if class_names is not None and label < len(class_names) else f"class {label}"


def draw_edges(ax: Axes, pos: Tensor, edge_index: Tensor) -> None:
    """Draw edges thin and below everything else.

    Example:
        >>> ax = new_axes(1.0, 1.0)
        >>> draw_edges(ax, torch.rand(3, 2), torch.tensor([[0, 1], [1, 2]]))
        >>> len(ax.collections[0].get_segments())
        2
    """
    from matplotlib.collections import LineCollection

    ends = pos[edge_index.T].cpu().numpy()  # num_edges, 2 ends, 2 axes
    ax.add_collection(LineCollection(list(ends), colors=FAINT, linewidths=0.4, zorder=0))


def _sample(edge_index: Tensor, max_edges: int) -> Tensor:
    """Return each undirected edge once, or an even sample of them."""
    once = edge_index[:, edge_index[0] < edge_index[1]]
    if once.size(1) <= max_edges:
        return once
    return once[:, torch.linspace(0, once.size(1) - 1, max_edges).long()]


def _finish(ax: Axes, labels: list[int], class_names: Sequence[str] | None) -> None:
    known = [label for label in labels if label >= 0] + [label for label in labels if label < 0]
    by_name = dict(zip(*reversed(ax.get_legend_handles_labels()), strict=True))
    names = [name_of(label, class_names) for label in known]
    handles = {name: by_name[name] for name in names}
    legend_below(ax, handles, 38.0, ncols=_LEGEND_COLUMNS, markerscale=2.0, handletextpad=0.2)
    style_axes(ax)


def legend_below(ax: Axes, handles: Mapping[str, Any], points: float, ncols: int, **style: float) -> Any:
    """Add a legend below the axes, where it covers nothing, and return it.

    Args:
        points: Distance of its upper edge from the axes.

    Example:
        >>> ax = new_axes(2.0, 2.0)
        >>> legend = legend_below(ax, {"a line": ax.plot([0, 1])[0]}, 30.0, ncols=1)
        >>> [text.get_text() for text in legend.get_texts()]
        ['a line']
    """
    from matplotlib.transforms import ScaledTranslation

    down = ScaledTranslation(0, -points / 72, ax.figure.dpi_scale_trans)
    return ax.legend(
        list(handles.values()),
        list(handles),
        ncols=max(1, min(ncols, len(handles))),
        loc="upper center",
        bbox_to_anchor=(0.5, 0),
        bbox_transform=ax.transAxes + down,
        borderaxespad=0,
        frameon=False,
        columnspacing=1.2,
        **style,
    )


def style_axes(ax: Axes) -> None:
    """Give a map equal scales and quiet axes.

    Example:
        >>> ax = new_axes(1.0, 1.0)
        >>> style_axes(ax)
        >>> ax.get_aspect()
        1.0
    """
    ax.set_aspect("equal")
    ax.set_xlabel("first latent axis", color=MUTED)
    ax.set_ylabel("second latent axis", color=MUTED)
    ax.tick_params(colors=MUTED, length=3, labelsize="small")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(FAINT)
