"""Draw the picture of the README: python docs/figures/make.py [embedded.png]."""

import sys
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.patches import ConnectionPatch, Rectangle
from PIL import Image

from geomgcn import datasets, viz
from geomgcn.embeddings import Isomap
from geomgcn.graphs import canonical_edges
from geomgcn.neighborhoods import Space, neighborhoods_of

COLORS = 96  # of the file: enough for smooth edges, a third of the size


def draw() -> Figure:
    """Return the latent map of the embedded graph, and one node's neighborhoods beside it."""
    data = Isomap()(datasets.load("embedded"))
    edges, _ = canonical_edges(data.edge_index, data.num_nodes)
    space = Space(data.pos)
    found = neighborhoods_of(edges, space)

    figure = Figure(figsize=(11.5, 4.9), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    left, right = figure.subplots(1, 2, width_ratios=(1.75, 1))
    viz.latent_map(data.pos, data.y, edges, class_names=data.class_names, ax=left)
    viz.neighborhood_map(space, found, y=data.y, class_names=data.class_names, ax=right)
    left.set_title("Latent map of a graph in which no edge joins likes", fontsize="medium", loc="left")
    right.set_title("One node: neighborhoods and sectors", fontsize="medium", loc="left")
    right.set(xticks=[], yticks=[], xlabel="", ylabel="")  # the lines from the left lead here
    right.get_legend().remove()  # the classes are named on the left

    (x0, x1), (y0, y1) = right.get_xlim(), right.get_ylim()
    left.add_patch(Rectangle((x0, y0), x1 - x0, y1 - y0, fill=False, linewidth=1.2, zorder=5))
    for here, there in (((x1, y1), (0, 1)), ((x1, y0), (0, 0))):
        figure.add_artist(
            ConnectionPatch(here, there, left.transData, right.transAxes, linewidth=0.6, color="#6B6B6B")
        )
    return figure


def main(path: Path) -> None:
    """Write the picture with few colors, since it is loaded with every view of the README."""
    viz.save(draw(), path)
    Image.open(path).convert("RGB").quantize(COLORS, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).with_name("embedded.png"))
