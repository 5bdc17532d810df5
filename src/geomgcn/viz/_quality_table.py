"""The numbers of an embedding report, in words."""

import math

from geomgcn.quality import Quality
from geomgcn.viz._page import inline

NO_LABELS = (
    "None of these looks at classes. By chance means: for positions at random. N_g are a node's neighbors "
    "in the graph, N_s those nearer than the radius in the latent space."
)


def _percent(share: float) -> str:
    if math.isnan(share):
        return "\N{EN DASH}"
    return f"{100 * share:.1f} %" if share == 0 or share >= 0.001 else f"{100 * share:.1g} %"


def _number(value: float) -> str:
    return "\N{EN DASH}" if math.isnan(value) else f"{value:.3f}" if value < 10 else f"{value:.1f}"


def summary_of(quality: Quality) -> str:
    """Return in a sentence what the latent neighborhood adds.

    Example:
        >>> import torch
        >>> from geomgcn.quality import quality
        >>> summary_of(quality(torch.rand(3, 2), torch.zeros(2, 0, dtype=torch.long)))
        'The graph has no edges, so there is no latent neighborhood.'
    """
    if not quality.num_pairs:
        return "The graph has no edges, so there is no latent neighborhood."
    if not quality.latent_pairs:
        return (
            "No radius gives about as many latent neighbors as the graph has: too many pairs are equally far."
        )
    hops = quality.hops
    return (
        f"Of the pairs of N_s, {_percent(hops.one)} are edges of the graph. {_percent(hops.two)} are two "
        f"hops apart, {_percent(hops.three)} three, {_percent(hops.more)} four or more, and "
        f"{_percent(hops.unreachable)} are not connected: that is what N_s adds."
    )


def _fidelity(quality: Quality) -> list[tuple[str, str, str, str]]:
    """Return what compares with chance."""
    hops, chance = quality.hops, quality.chance_hops
    return [
        (
            "Residual variance",
            _number(quality.distances.residual_variance),
            "1",
            "How little hops say of latent distances: 0 if one is a multiple of the other.",
        ),
        (
            "Mean rank",
            _number(quality.mean_rank),
            _number(quality.chance_rank),
            "How many nodes are nearer than a neighbor, and one: 1 is best.",
        ),
        (
            "Mean average precision",
            _number(quality.mean_average_precision),
            _number(quality.chance_precision),
            "How far the nearest nodes are the neighbors: 1 is best.",
        ),
        (
            "Overlap",
            _percent(quality.overlap),
            _percent(quality.chance_overlap),
            "Share of the pairs of N_s that are edges too.",
        ),
        (
            "Far pairs",
            _percent(hops.more + hops.unreachable),
            _percent(chance.more + chance.unreachable),
            "Share of the pairs of N_s that are four or more hops apart, or not connected.",
        ),
    ]


def _neighborhood(quality: Quality) -> list[tuple[str, str, str, str]]:
    """Return what describes N_s."""
    latent, graph, most = quality.latent_sizes, quality.graph_sizes, quality.max_coincident
    nothing = ""
    return [
        (
            "Radius",
            f"{quality.radius:.4g}",
            nothing,
            f"In the {quality.distance} distance: N_s gets {quality.latent_pairs} pairs, N_g has "
            f"{quality.num_pairs}."
            + ("" if most is None else f" Of coincident nodes each keeps {most}, since there are too many."),
        ),
        (
            "Size of N_s",
            f"{latent.median:g} ({latent.min} to {latent.max})",
            nothing,
            f"Median over nodes, smallest and largest; 90 % have up to {latent.most}. In the graph: "
            f"{graph.median:g} ({graph.min} to {graph.max}), 90 % up to {graph.most}.",
        ),
        (
            "Nodes without N_s",
            str(latent.none),
            nothing,
            f"They gather from the graph alone; {graph.none} have no neighbor there.",
        ),
        (
            "Distinct places",
            str(quality.places),
            nothing,
            f"Of {quality.num_nodes} nodes, {quality.coincident_nodes} share their place with others.",
        ),
    ]


def html_table(quality: Quality) -> list[str]:
    """Return the numbers as a table, each with what chance gives and what it means.

    Example:
        >>> import torch
        >>> from geomgcn.quality import quality
        >>> rows = html_table(quality(torch.rand(3, 2), torch.tensor([[0], [1]])))
        >>> sum(row.startswith('<tr><th scope="row">') for row in rows)
        9
    """
    head = "".join(f'<th scope="col">{name}</th>' for name in ("measure", "value", "by chance", "meaning"))
    body = [
        f'<tr><th scope="row">{inline(name)}</th>'
        + "".join(f"<td>{inline(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in _fidelity(quality) + _neighborhood(quality)
    ]
    return [
        '<div class="scroll" role="region" aria-label="Numbers" tabindex="0">',
        f'<table class="words"><thead><tr>{head}</tr></thead><tbody>',
        *body,
        "</tbody></table></div>",
    ]
