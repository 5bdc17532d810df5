"""A map of the whole latent space: any number of axes, any number of nodes, no labels needed."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from geomgcn._types import EdgeIndex, Label, Position
from geomgcn.viz._canvas import INK, MUTED, Axes, Figure, class_style, new_axes
from geomgcn.viz._latent_map import draw_edges, legend_below, name_of, style_axes

MOST_NODES, MOST_EDGES = 50_000, 20_000
MOST_NAMED = 24
"""Classes that a legend names; more would hide the picture."""

_WIDTH = 6.8
_INK, _SMALLEST, _LARGEST = 9000.0, 0.6, 45.0
_CROWDED = 400.0
"""The whole is shown unless it is so many times larger than what holds 98 % of the nodes along each axis."""


def plane_of(pos: Position) -> tuple[Tensor, str]:
    """Return two axes to draw, and a sentence about those that are not what they seem.

    Example:
        >>> plane_of(torch.zeros(3, 5))[1]
        'Of 5 axes the first two are drawn.'
    """
    pos = pos.detach().cpu().double()
    if pos.size(1) == 1:
        spread = torch.from_numpy(np.random.default_rng(0).random((len(pos), 1)))
        extent = float(pos.max() - pos.min()) or 1.0
        return torch.cat(
            [pos, 0.3 * extent * spread], dim=1
        ), "There is one axis; upwards, nodes are spread at random."
    if pos.size(1) == 2:
        return pos, ""
    return pos[:, :2], f"Of {pos.size(1)} axes the first two are drawn."


def space_map(
    pos: Position,
    edge_index: EdgeIndex,
    *,
    geometry: str = "euclidean",
    y: Label | None = None,
    class_names: Sequence[str] | None = None,
    seed: int = 0,
) -> tuple[Figure, str]:
    """Draw all nodes over their edges, colored by degree or by class; return the figure and remarks on it.

    Of large graphs a random sample of nodes and of edges is drawn.

    Args:
        edge_index: The graph in canonical form.
        y: Classes; degrees give the colors without.

    Example:
        >>> figure, remarks = space_map(torch.rand(3, 2), torch.tensor([[0, 1], [1, 0]]))
        >>> remarks
        ''
    """
    plane, remark = plane_of(pos)
    remarks = [remark] if remark else []
    random = np.random.default_rng(seed)
    nodes = np.arange(len(plane))
    if len(nodes) > MOST_NODES:
        nodes = np.sort(random.permutation(len(nodes))[:MOST_NODES])
        remarks.append(f"Of {len(plane)} nodes, {MOST_NODES} at random are drawn.")
    once = edge_index[:, edge_index[0] < edge_index[1]].cpu()
    if once.size(1) > MOST_EDGES:
        remarks.append(f"Of {once.size(1)} edges, {MOST_EDGES} at random are drawn.")
        once = once[:, torch.from_numpy(np.sort(random.integers(once.size(1), size=MOST_EDGES)))]
    view, outside = _view(plane, geometry)
    if outside:
        remarks.append(f"{outside} nodes lie outside the picture.")
    across, up = (view[1] - view[0]).tolist()
    height = _WIDTH * min(max(up / across, 0.35), 1.1)
    ax = new_axes(_WIDTH + 0.6, height + 0.6)
    draw_edges(ax, plane, once)
    ax.collections[-1].set(alpha=min(0.6, max(0.08, 2000 / max(once.size(1), 1))), linewidth=0.5)
    size = max(_SMALLEST, min(_LARGEST, _INK / max(len(nodes), 1)))
    if y is None:
        degree = torch.bincount(edge_index[1].cpu(), minlength=len(plane)).numpy()
        _draw_by_degree(ax, plane.numpy(), degree, nodes, size)
    else:
        _draw_by_class(ax, plane, y.cpu(), nodes, size, class_names)
    style_axes(ax)
    if geometry == "poincare":
        _draw_rim(ax)
    if pos.size(1) == 1:
        ax.set_ylabel("")
        ax.set_yticks([])
    ax.set_xlim(float(view[0, 0]), float(view[1, 0]))
    ax.set_ylim(float(view[0, 1]), float(view[1, 1]))
    return ax.figure, " ".join(remarks)


def _view(plane: Tensor, geometry: str) -> tuple[Tensor, int]:
    """Return lower and upper corner of what is shown, and how many nodes it leaves out."""
    if geometry == "poincare":
        return torch.tensor([[-1.03, -1.03], [1.03, 1.03]]), 0
    low, high = plane.amin(0), plane.amax(0)
    places = plane.numpy()
    core = torch.from_numpy(np.quantile(places, [0.01, 0.99], axis=0))
    whole, middle = (high - low).prod(), (core[1] - core[0]).prod()
    if middle > 0 and whole > _CROWDED * middle:
        half = (core[1] - core[0]) * 0.75
        low, high = torch.maximum(low, core.mean(0) - half), torch.minimum(high, core.mean(0) + half)
    outside = int(((plane < low) | (plane > high)).any(1).sum())
    room = (high - low).max() * 0.04 + (0.0 if bool((high > low).any()) else 1.0)
    return torch.stack([low - room, high + room]), outside


def _draw_by_degree(ax: Axes, plane: np.ndarray, degree: np.ndarray, nodes: np.ndarray, size: float) -> None:
    from matplotlib.colors import LogNorm

    # Hubs last, on top: they are few, and all seek them.
    nodes = nodes[np.argsort(degree[nodes], kind="stable")]
    highest = max(int(degree.max()), 2)
    dots = ax.scatter(
        *plane[nodes].T,
        s=size,
        c=np.maximum(degree[nodes], 1),
        cmap="viridis_r",
        norm=LogNorm(1, highest),
        linewidths=0,
        alpha=0.9,
        zorder=2,
    )
    bar = ax.figure.colorbar(dots, ax=ax, shrink=0.7, pad=0.02)
    bar.set_label("degree", color=MUTED)
    ticks = [10**k for k in range(10) if 10**k <= highest]
    ticks = (
        ticks if len(ticks) > 1 and highest >= 30 else sorted({1, 2, 5, highest} & set(range(highest + 1)))
    )
    bar.set_ticks(ticks, labels=[str(tick) for tick in ticks])
    bar.ax.minorticks_off()
    bar.ax.tick_params(colors=MUTED, labelsize="small")
    bar.outline.set_visible(False)


def _draw_by_class(
    ax: Axes,
    plane: Tensor,
    y: Tensor,
    nodes: np.ndarray,
    size: float,
    class_names: Sequence[str] | None,
) -> None:
    labels, count = y.unique(return_counts=True)
    own = y.numpy()[nodes]
    shown = {}
    # The last class would lie on top of all, so the largest come first.
    for label in labels[count.argsort(descending=True, stable=True)].tolist():
        x0, x1 = plane.numpy()[nodes[own == label]].T
        dots = ax.scatter(x0, x1, s=size, linewidths=0, alpha=0.85, zorder=2, **class_style(label))
        if label < MOST_NAMED:
            shown[label] = (name_of(label, class_names), dots)
    handles = dict(shown[label] for label in sorted(shown, key=lambda label: (label < 0, label)))
    legend = legend_below(ax, handles, 38.0, ncols=5, handletextpad=0.2)
    for handle in legend.legend_handles:
        handle.set_sizes([40.0])


def _draw_rim(ax: Axes) -> None:
    from matplotlib.patches import Circle

    ax.add_patch(Circle((0, 0), 1, fill=False, edgecolor=INK, linewidth=1.0, zorder=3))
