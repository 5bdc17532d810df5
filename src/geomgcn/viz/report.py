"""The demo: its cells, its table, and its report with pictures."""

import json
import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path

from geomgcn import __version__, _store
from geomgcn.embeddings import Isomap, embed_cached
from geomgcn.experiments import Cell, CellResult, graph_of
from geomgcn.graphs import canonical_edges
from geomgcn.neighborhoods import Space, neighborhoods_of
from geomgcn.training import TrainConfig
from geomgcn.viz._accuracy_chart import accuracy_chart
from geomgcn.viz._canvas import check_matplotlib, png
from geomgcn.viz._findings import findings, in_words, protocol, summary
from geomgcn.viz._latent_map import latent_map
from geomgcn.viz._neighborhood_map import neighborhood_map, typical_node
from geomgcn.viz._page import Page, Picture, to_html, to_markdown
from geomgcn.viz._table import format_table, gap_lines, partial_line, table_rows

__all__ = ["check_ready", "demo_cells", "format_table", "write_demo_report"]

DATASET = "embedded"
# The paper's settings (Section 4.2), with an end early enough for a laptop.
_TRAINING = TrainConfig(max_epochs=200, patience=60)
_WEIGHT_DECAY = 5e-5
# Channels of one virtual node of Geom-GCN, of which it has 9 with itself. The others get as many in all.
_PER_VIRTUAL_NODE, _VIRTUAL_NODES, _HEADS = 16, 9, 8
_WIDTH = _PER_VIRTUAL_NODE * _VIRTUAL_NODES


def demo_cells(num_splits: int, seed: int) -> list[Cell]:
    """Return the cells of the demo, all with the same training settings and splits.

    Hidden layers are equally wide, so that no model wins by its size; only Geom-GCN-g is narrower, since
    it has fewer virtual nodes.

    Example:
        >>> [cell.title for cell in demo_cells(10, 0)][:4]
        ['MLP', 'GCN', 'GAT', 'Geom-GCN isomap']
    """

    def cell(model: str, hidden: int) -> Cell:
        return Cell(
            DATASET,
            model,
            splits="random",
            num_splits=num_splits,
            seed=seed,
            hidden=hidden,
            weight_decay=_WEIGHT_DECAY,
            train=_TRAINING,
        )

    geom = cell("geom-gcn", _PER_VIRTUAL_NODE)
    return [
        cell("mlp", _WIDTH),
        cell("gcn", _WIDTH),
        cell("gat", _WIDTH // _HEADS),
        geom,
        replace(geom, use="graph"),
        replace(geom, control=True),
    ]


def check_ready(folder: Path) -> None:
    """Make the folder of the report, and refuse to start what could not be reported.

    Example:
        >>> import tempfile
        >>> check_ready(Path(tempfile.mkdtemp()) / "report")
    """
    check_matplotlib()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"The report needs a folder, and {str(folder)!r} cannot be one ({error.strerror}). "
            f"Choose another place for it."
        ) from error


def write_demo_report(results: Sequence[CellResult], folder: Path, seed: int) -> Path:
    """Write the report of the demo and return the path of its page.

    Writes ``index.html``, which holds its pictures; ``report.md`` with the pictures as PNG files; and
    ``results.json``. Reports of an interrupted series say so.

    Args:
        results: Of :func:`demo_cells`, in their order; the last ones may be missing.
        seed: The one the cells were made with.

    Example:
        >>> import tempfile
        >>> from geomgcn.experiments import run_cell
        >>> from geomgcn.training import Runs
        >>> nothing = CellResult(demo_cells(2, 0)[0], Runs((), interrupted=True))
        >>> write_demo_report([nothing], Path(tempfile.mkdtemp()), seed=0).name
        'index.html'
    """
    check_ready(folder)
    page = _page(results, seed)
    for picture in (page.chart, *page.maps):
        _write(folder / picture.file, picture.contents)
    _write(folder / "report.md", to_markdown(page).encode())
    _write(folder / "results.json", _as_json(results, page, seed).encode())
    _write(folder / "index.html", to_html(page).encode())
    return folder / "index.html"


def _write(path: Path, contents: bytes) -> None:
    _store.write_atomic(path, lambda file: file.write(contents))


def _as_json(results: Sequence[CellResult], page: Page, seed: int) -> str:
    content = {
        "dataset": DATASET,
        "seed": seed,
        "partial": page.warning is not None,
        "results": [result.as_dict() for result in results],
        "protocol": list(page.protocol),
        "versions": dict(page.versions),
    }
    return json.dumps(content, indent=2, allow_nan=False) + "\n"


def _page(results: Sequence[CellResult], seed: int) -> Page:
    data = graph_of(DATASET)
    edges, _ = canonical_edges(data.edge_index, data.num_nodes)
    space = Space(embed_cached(Isomap(), edges, data.num_nodes))
    found = neighborhoods_of(edges, space)
    node = typical_node(space.pos, found)
    names = data.class_names
    alike = data.y[found.latent.edge_index[0]] == data.y[found.latent.edge_index[1]]
    map_of_all = latent_map(space.pos, data.y, edges, class_names=names)
    map_of_one = neighborhood_map(space, found, node, y=data.y, class_names=names)
    return Page(
        title="Geom-GCN on a graph whose likes are far apart",
        summary=summary(results),
        warning=partial_line(results),
        table=table_rows(results),
        remarks=gap_lines(results),
        findings=findings(results, float(alike.double().mean())),
        chart=Picture(
            "accuracy.png",
            f"Bars of mean test accuracy. {in_words(results)}",
            "Test accuracies: mean, 95 % interval, and one dot for each split. A hatched bar is a control.",
            png(accuracy_chart(results)),
        ),
        maps=[
            Picture(
                "latent_map.png",
                "A sheet of nodes in stripes: growers, makers and traders follow each other from one side to "
                "the other, and assistants stand out at the edge and between.",
                "The latent map: Isomap's positions of all nodes, colored by class, with the edges of the "
                "graph. The tiers come out as stripes, although no class was shown to Isomap.",
                png(map_of_all),
            ),
            Picture(
                "neighborhoods.png",
                f"Node {node} in the middle of four quadrants, with its graph neighbors, its latent "
                f"neighbors and a circle of radius {found.radius:.2f}.",
                f"Node {node}, of about average neighborhoods: its four sectors, and the radius "
                f"{found.radius:.2f}, at which N_s is as large as N_g on average. Edges lead to other "
                f"classes, left and right; what is near is mostly alike.",
                png(map_of_one),
            ),
        ],
        protocol=protocol(results, seed),
        versions=_versions(),
    )


def _versions() -> dict[str, str]:
    packages = ("torch", "torch_geometric", "numpy", "scipy")
    return {
        "geomgcn": __version__,
        "python": platform.python_version(),
        **{name: metadata.version(name) for name in packages},
    }
