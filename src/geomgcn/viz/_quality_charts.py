"""The charts of an embedding report, drawn from its numbers alone."""

import math

from geomgcn.quality import Quality
from geomgcn.viz._canvas import COLORS, FAINT, INK, MUTED, Axes, Figure, new_axes

_GRAPH, _LATENT = COLORS[1], COLORS[0]
_WIDTH, _HEIGHT = 6.4, 3.6


def size_chart(quality: Quality) -> Figure:
    """Draw how many nodes have neighborhoods of which size, in the graph and in the latent space.

    Example:
        >>> import torch
        >>> from geomgcn.quality import quality
        >>> figure = size_chart(quality(torch.rand(5, 2), torch.tensor([[0, 1], [1, 2]])))
        >>> [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
        ['$N_g$, graph', '$N_s$, latent']
    """
    rows = quality.size_bins
    names = [str(row.low) if row.low == row.high else f"{row.low}\N{EN DASH}{row.high}" for row in rows]
    ax = _bars(
        names,
        {
            "$N_g$, graph": ([row.graph / quality.num_nodes for row in rows], _GRAPH),
            "$N_s$, latent": ([row.latent / quality.num_nodes for row in rows], _LATENT),
        },
    )
    ax.set_xlabel("neighbors of a node", color=MUTED)
    ax.set_ylabel("% of nodes", color=MUTED)
    if len(names) > 9:
        ax.tick_params(axis="x", labelrotation=45)
    return ax.figure


def hop_chart(quality: Quality) -> Figure:
    """Draw how far apart in the graph the pairs of N_s are, beside random pairs.

    Example:
        >>> import torch
        >>> from geomgcn.quality import quality
        >>> figure = hop_chart(quality(torch.rand(5, 2), torch.tensor([[0, 1], [1, 2]])))
        >>> [label.get_text() for label in figure.axes[0].get_xticklabels()][:3]
        ['1', '2', '3']
    """
    shares = [
        [0.0 if math.isnan(share) else share for share in (h.one, h.two, h.three, h.more, h.unreachable)]
        for h in (quality.hops, quality.chance_hops)
    ]
    ax = _bars(
        ["1", "2", "3", "4 or more", "not connected"],
        {"pairs of $N_s$": (shares[0], _LATENT), "random pairs": (shares[1], FAINT)},
        numbers=True,
    )
    ax.set_xlabel("hops in the graph", color=MUTED)
    ax.set_ylabel("% of pairs", color=MUTED)
    return ax.figure


def _bars(names: list[str], groups: dict[str, tuple[list[float], str]], numbers: bool = False) -> Axes:
    """Draw groups of bars side by side; shares become percent."""
    ax = new_axes(_WIDTH, _HEIGHT)
    width = 0.8 / len(groups)
    for i, (label, (shares, color)) in enumerate(groups.items()):
        places = [k + (i - (len(groups) - 1) / 2) * width for k in range(len(names))]
        bars = ax.bar(places, [100 * share for share in shares], width * 0.94, color=color, label=label)
        if numbers:
            texts = [f"{100 * share:.0f}" if share == 0 or share >= 0.01 else "<1" for share in shares]
            ax.bar_label(bars, texts, color=INK, fontsize="small", padding=2)
    ax.set_xticks(range(len(names)), names)
    ax.legend(frameon=False)
    _quiet(ax)
    return ax


def distance_chart(quality: Quality) -> Figure:
    """Draw latent distances by hops: the median, the middle 50 % and the middle 80 % of pairs.

    Example:
        >>> import torch
        >>> from geomgcn.quality import quality
        >>> figure = distance_chart(quality(torch.rand(5, 2), torch.tensor([[0, 1], [1, 2]])))
        >>> figure.axes[0].get_xlabel()
        'hops in the graph'
    """
    ax = new_axes(_WIDTH, _HEIGHT)
    rows = quality.distances.rows
    hops = [row.hops for row in rows]
    outer, inner = (
        ([row.low for row in rows], [row.high for row in rows]),
        (
            [row.lower for row in rows],
            [row.upper for row in rows],
        ),
    )
    ax.vlines(hops, *outer, color=_LATENT, alpha=0.35, linewidth=4, label="middle 80 %")
    ax.vlines(hops, *inner, color=_LATENT, linewidth=9, label="middle 50 %")
    ax.scatter(
        hops, [row.median for row in rows], s=26, color="white", edgecolors=INK, zorder=3, label="median"
    )
    ax.set_xlabel("hops in the graph", color=MUTED)
    kind = "hyperbolic distance" if quality.geometry == "poincare" else "distance in the latent space"
    ax.set_ylabel(kind, color=MUTED)
    if rows:
        ax.set_ylim(bottom=0)
        ax.legend(frameon=False, loc="upper left", markerscale=0.8)
        ax.locator_params(axis="x", integer=True)
    else:
        ax.text(0.5, 0.5, "no two nodes are connected", transform=ax.transAxes, ha="center", color=MUTED)
    _quiet(ax)
    return ax.figure


def _quiet(ax: Axes) -> None:
    ax.set_axisbelow(True)
    ax.grid(axis="y", color=FAINT, linewidth=0.6)
    ax.tick_params(colors=MUTED, length=3, labelsize="small")
    for side in ("top", "right"):
        ax.spines[side].set_visible(False)
    for side in ("left", "bottom"):
        ax.spines[side].set_color(FAINT)
