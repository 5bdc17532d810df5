"""Pictures show what they are given, and reports say what the results say."""

import ast
import json
import re
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from geomgcn import viz
from geomgcn.experiments import CellResult
from geomgcn.neighborhoods import Space, neighborhoods_of
from geomgcn.relations import Sectors
from geomgcn.training import Fit, Runs
from geomgcn.viz import _canvas, _findings, _page, _table, report

PLACES = torch.tensor([[0.0, 0.0], [1.0, 1.0], [-1.0, 1.2], [0.4, -0.3], [0.2, 0.3], [9.0, 9.0], [9.0, 9.1]])
EDGES = torch.tensor([[1, 0, 2, 0, 5, 6], [0, 1, 0, 2, 6, 5]])
LABELS = torch.tensor([0, 1, 1, 0, 0, 2, -1])


@pytest.fixture(scope="module")
def space():
    return Space(PLACES.double())


@pytest.fixture(scope="module")
def found(space):
    return neighborhoods_of(EDGES, space)


def results(means, runs=10, last_runs=None):
    """Return results of the demo's first cells, with accuracies that differ from split to split."""
    noise = np.random.Generator(np.random.PCG64(0))
    made = []
    for i, (cell, mean) in enumerate(zip(report.demo_cells(runs, 0), means, strict=False)):
        count = runs if last_runs is None or i < len(means) - 1 else last_runs
        accuracies = mean + 0.01 * noise.standard_normal(count)
        fits = tuple(Fit(9, 5, 1.0, 1.0, float(a), torch.zeros(9, 3), torch.zeros(1, 4)) for a in accuracies)
        made.append(CellResult(cell, Runs(fits, interrupted=count < runs)))
    return made


DONE = (0.42, 0.40, 0.43, 0.97, 0.94, 0.92)


def size_of_png(contents):
    assert contents.startswith(b"\x89PNG")
    return int.from_bytes(contents[16:20]), int.from_bytes(contents[20:24])


def legend_names(figure):
    return [text.get_text() for text in figure.axes[0].get_legend().get_texts()]


def test_latent_map_draws_every_node_once_and_each_edge_once():
    figure = viz.latent_map(PLACES, LABELS, EDGES, class_names=("red", "green"))
    ax = figure.axes[0]
    lines, *points = ax.collections
    assert len(lines.get_segments()) == 3
    drawn = np.concatenate([collection.get_offsets() for collection in points])
    assert sorted(map(tuple, drawn)) == sorted(map(tuple, PLACES.numpy()))
    assert legend_names(figure) == ["red", "green", "class 2", "unknown"]
    assert ax.get_aspect() == 1
    width, height = size_of_png(_canvas.png(figure))
    assert width > 500
    assert height > 300


def test_latent_map_thins_out_the_edges_of_a_large_graph():
    ring = torch.stack([torch.arange(99), torch.arange(1, 100)])
    figure = viz.latent_map(torch.rand(100, 2), torch.zeros(100).long(), ring, max_edges=10)
    assert len(figure.axes[0].collections[0].get_segments()) == 10


def test_many_classes_have_a_look_of_their_own():
    looks = {tuple(_canvas.class_style(label).values()) for label in range(56)}
    assert len(looks) == 56
    figure = viz.latent_map(torch.rand(20, 2), torch.arange(20))
    assert len(legend_names(figure)) == 20


def test_legend_lies_below_the_data():
    figure = viz.latent_map(PLACES, LABELS)
    _canvas.png(figure)  # lays the figure out
    ax = figure.axes[0]
    assert ax.get_legend().get_window_extent().y1 < ax.get_window_extent().y0


@pytest.mark.parametrize("dim", [1, 3])
def test_maps_need_two_dimensions(dim):
    with pytest.raises(
        ValueError, match=rf"2 dimensions, got shape \[4, {dim}\]\. Embed with dim=2, or pass"
    ):
        viz.latent_map(torch.zeros(4, dim), torch.zeros(4).long())


def test_latent_map_needs_a_label_for_each_node():
    with pytest.raises(ValueError, match=r"each of 7 positions, got shape \[3\]\. Use -1 for unknown ones"):
        viz.latent_map(PLACES, LABELS[:3])


def test_neighborhood_map_shows_both_neighborhoods_the_circle_and_the_sectors(space, found):
    figure = viz.neighborhood_map(space, found, node=0, y=LABELS)
    ax = figure.axes[0]
    circle = ax.patches[0]
    assert circle.radius == found.radius
    assert circle.center == (0.0, 0.0)
    drawn = {c.get_label(): c.get_offsets().tolist() for c in ax.collections if len(c.get_offsets())}
    latent = found.latent.edge_index[0, found.latent.edge_index[1] == 0]
    assert drawn["$N_g$"] == space.pos[[1, 2]].tolist()
    assert drawn["$N_s$"] == space.pos[latent].tolist()
    assert len(latent) > 0
    assert len(drawn["other nodes"]) == len({*range(7)} - {0, 1, 2, *latent.tolist()})
    texts = {text.get_text().split("\n")[0]: text.get_text() for text in ax.texts}
    assert list(texts) == ["upper left", "upper right", "lower left", "lower right"]
    assert "1 in $N_g$" in texts["upper left"]
    assert "1 in $N_g$" in texts["upper right"]
    assert "0 in $N_g$" in texts["lower right"]
    assert size_of_png(_canvas.png(figure))[0] > 500


def test_neighborhood_map_holds_the_circle_and_all_neighbors_in_view(space, found):
    ax = viz.neighborhood_map(space, found, node=0).axes[0]
    half = ax.get_xlim()[1]
    assert half > max(found.radius, 1.2)
    assert ax.get_xlim() == ax.get_ylim() == (-half, half)
    assert half < 5  # and not the far ones


def test_typical_node_has_both_neighborhoods_near_the_mean(space, found):
    node = viz.typical_node(space.pos, found)
    sizes = torch.stack([torch.bincount(p.edge_index[1], minlength=7) for p in (found.graph, found.latent)])
    assert sizes[:, node].min() > 0
    away = (sizes - 6 / 7).abs().sum(0)
    assert away[node] == away[sizes.min(0).values > 0].min()


def test_typical_node_says_when_there_is_none(space):
    found = neighborhoods_of(torch.zeros(2, 0).long(), space)
    with pytest.raises(ValueError, match=r"No node has both.*Choose one with node="):
        viz.typical_node(space.pos, found)
    # A node without neighbors can be drawn all the same.
    assert size_of_png(_canvas.png(viz.neighborhood_map(space, found, node=3)))[0] > 500


@pytest.mark.parametrize("node", [-1, 7])
def test_neighborhood_map_refuses_unknown_nodes(space, found, node):
    with pytest.raises(ValueError, match=rf"from 0 to 6, got {node}\. Pass one of the graph's nodes"):
        viz.neighborhood_map(space, found, node)


def test_neighborhood_map_refuses_other_sectors_than_it_draws(found):
    space = Space(PLACES.double(), relation=Sectors(8))
    with pytest.raises(ValueError, match=r"Quadrants\(\), got Sectors.*Pass a Space whose relation is"):
        viz.neighborhood_map(space, found, 0)


def test_chart_has_a_bar_an_interval_and_the_dots_of_each_result():
    figure = viz.accuracy_chart(results(DONE))
    ax = figure.axes[0]
    bars = ax.patches
    assert [bar.get_width() for bar in bars] == pytest.approx([100 * mean for mean in DONE], abs=1)
    assert [bool(bar.get_hatch()) for bar in bars] == [False] * 5 + [True]
    dots = [c.get_offsets() for c in ax.collections if len(c.get_offsets()) == 10]
    assert len(dots) == 6
    assert len(ax.containers) == 12  # a bar and an interval each
    assert "(control)" in ax.get_yticklabels()[5].get_text()
    assert size_of_png(_canvas.png(figure))[0] > 500


def test_chart_of_an_interrupted_series_says_so():
    labels = viz.accuracy_chart(results(DONE[:3], last_runs=0)).axes[0].get_yticklabels()
    assert labels[2].get_text() == "GAT (partial: 0 runs)"


def test_gap_is_paired_by_split():
    mine, control = results(DONE)[3], results(DONE)[5]
    differences = [
        a.test_accuracy - b.test_accuracy for a, b in zip(mine.runs.fits, control.runs.fits, strict=True)
    ]
    gap = _table.paired_gap(mine, control)
    assert gap.mean == pytest.approx(np.mean(differences))
    assert gap.std == pytest.approx(np.std(differences, ddof=1))


def test_table_is_aligned_and_compares_with_baseline_and_control():
    head, *lines = viz.format_table(results(DONE)).splitlines()
    assert head.split() == ["model", "mean", "std", "95", "%", "runs", "gap", "to", "GAT"]
    assert lines[3].startswith("Geom-GCN isomap ")
    assert re.search(r"10 +\+\d\d\.\d ± \d\.\d$", lines[3])
    assert len({line.index(" ± ") for line in lines[:6]}) == 1
    assert re.match(
        r"Geom-GCN isomap over its random-N_s control: \+\d\.\d ± \d\.\d points, paired", lines[6]
    )
    assert len(lines) == 7


def test_table_of_an_interrupted_series_marks_it():
    text = viz.format_table(results(DONE[:4], last_runs=1))
    assert "Geom-GCN isomap (partial: 1 run)" in text
    assert "nan" not in text
    assert text.splitlines()[-1].startswith("Partial: the series was interrupted")


def test_findings_follow_the_numbers():
    better = " ".join(_findings.findings(results(DONE), 0.67))
    assert "67 % of the latent pairs" in better
    assert "the place of the neighbors that counts" in better
    equal = " ".join(_findings.findings(results((*DONE[:5], 0.97)), 0.67))
    assert "do not tell apart from zero" in equal
    assert _findings.summary(results(DONE[:3])) == "Not enough runs are done to compare the models."


def test_report_is_whole_and_refers_to_nothing_outside(tmp_path):
    page = viz.write_demo_report(results(DONE), tmp_path / "new" / "report", seed=0)
    assert sorted(path.name for path in page.parent.iterdir()) == [
        "accuracy.png",
        "index.html",
        "latent_map.png",
        "neighborhoods.png",
        "report.md",
        "results.json",
    ]
    html, markdown = page.read_text("utf-8"), (page.parent / "report.md").read_text("utf-8")
    assert html.count('src="data:image/png;base64,') == html.count("<img") == 3
    assert len(re.findall(r'alt="[^"]+"', html)) == 3
    for text in (html, markdown):
        assert not re.search(r"https?://", text)
        assert str(tmp_path) not in text
        assert "artial" not in text
        assert "geomgcn demo --num-splits 10 --seed 0" in text
    assert re.findall(r"\]\((.+?)\)", markdown) == ["accuracy.png", "latent_map.png", "neighborhoods.png"]
    content = json.loads((page.parent / "results.json").read_text())
    assert content["partial"] is False
    assert len(content["results"][3]["per_run"]) == 10


def test_report_of_an_interrupted_series_says_so_everywhere(tmp_path):
    page = viz.write_demo_report(results(DONE[:2], last_runs=0), tmp_path, seed=0)
    assert 'class="warning"' in page.read_text("utf-8")
    assert "**Partial:" in (tmp_path / "report.md").read_text("utf-8")
    content = json.loads((tmp_path / "results.json").read_text())
    assert content["partial"] is True
    assert content["results"][1]["test_accuracy"]["mean"] is None


def test_page_escapes_what_it_is_given():
    dot = _page.Picture("dot.png", '"<b>', "<i>", b"")
    page = _page.Page(
        "<t>", "<s>", "<w>", [["<h>"], ["<c>"]], ["<r>"], ["<f>"], dot, [dot], ["<p>"], {"<n>": "<v>"}
    )
    text = _page.to_html(page)
    assert "<b>" not in text
    for letter in "tswhcrfpnv":
        assert f"&lt;{letter}&gt;" in text, letter


def test_report_refuses_a_place_that_is_a_file(tmp_path):
    path = tmp_path / "taken"
    path.write_text("mine")
    with pytest.raises(ValueError, match=r"needs a folder, and .*taken.*Choose another place"):
        report.check_ready(path)
    assert path.read_text() == "mine"


def test_pictures_name_the_extra_when_matplotlib_is_missing(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for draw in (
        lambda: viz.latent_map(PLACES, LABELS),
        lambda: viz.accuracy_chart(results(DONE)),
        lambda: report.check_ready(tmp_path / "none"),
    ):
        with pytest.raises(ImportError, match=r'Run: pip install "geomgcn\[plot\]"'):
            draw()
    assert not (tmp_path / "none").exists()


def test_matplotlib_is_imported_inside_functions_only():
    for path in Path(viz.__file__).parent.glob("*.py"):
        names = [ast.unparse(node) for node in ast.parse(path.read_text("utf-8")).body]
        assert not any(name.startswith(("import matplotlib", "from matplotlib")) for name in names), path


def test_demo_compares_equal_settings():
    cells = report.demo_cells(7, 3)
    assert {(c.config, c.splits, c.num_splits, c.seed, c.dropout, c.dataset) for c in cells} == {
        (cells[0].config, "random", 7, 3, 0.5, "embedded")
    }
    assert [c.width * {"gat": 8, "geom-gcn": 9}.get(c.model, 1) for c in cells] == [144] * 6
