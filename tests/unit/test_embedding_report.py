"""The report of an embedding draws what it is given, whatever its size and shape."""

import json
import re
import time

import numpy as np
import pytest
import torch

from geomgcn.embeddings import Isomap, Poincare, Spectral
from geomgcn.graphs import canonical_edges
from geomgcn.neighborhoods import Space, neighborhoods_of
from geomgcn.quality import quality
from geomgcn.relations import PolarQuadrants
from geomgcn.viz import _quality_charts, _space_map, neighborhood_map, space_map, write_embedding_report
from geomgcn.viz.embedding_report import _typical
from graphs import connected_random, no_edges, path, star, unchecked

EDGES = connected_random(60, 50, seed=0)


def places(num_nodes, dim=2, geometry="euclidean", seed=0):
    pos = torch.randn(num_nodes, dim, generator=torch.Generator().manual_seed(seed)).double()
    return pos / (1 + pos.norm(dim=1, keepdim=True)) if geometry == "poincare" else pos


def write(folder, pos, edges, embedding=None, geometry="euclidean", **more):
    measured = quality(pos, edges, geometry)
    return write_embedding_report(
        folder,
        graph_name="<mine>",
        edge_index=edges,
        pos=pos,
        embedding=embedding or Isomap(dim=pos.size(1)),
        quality=measured,
        **more,
    )


def test_report_is_whole_and_refers_to_nothing_outside(tmp_path):
    y = torch.arange(60) % 3
    page = write(
        tmp_path / "new" / "report", Isomap().embed(EDGES, 60), EDGES, y=y, class_names=("a", "b", "c")
    )
    pictures = ["classes", "distances", "hops", "latent_space", "neighborhoods", "sizes"]
    names = sorted([f"{name}.png" for name in pictures] + ["index.html", "quality.json"])
    assert sorted(path.name for path in page.parent.iterdir()) == names
    html = page.read_text("utf-8")
    assert html.count('src="data:image/png;base64,') == html.count("<img") == 6
    assert len(re.findall(r'alt="[^"]+"', html)) == 6
    assert not re.search(r"https?://", html)
    assert str(tmp_path) not in html
    assert "<mine>" not in html
    assert "Isomap of &lt;mine&gt;" in html
    content = json.loads((page.parent / "quality.json").read_text())
    assert content["settings"]["embedding"] == "isomap"
    assert content["quality"]["num_nodes"] == content["nodes"] == 60


def test_same_report_again_and_nothing_of_the_classes_without_them(tmp_path):
    pos = Isomap().embed(EDGES, 60)
    first, second = (write(tmp_path / name, pos, EDGES) for name in ("one", "two"))
    assert first.read_bytes() == second.read_bytes()
    assert "classes.png" not in [path.name for path in first.parent.iterdir()]
    assert "class 0" not in first.read_text("utf-8")


@pytest.mark.parametrize(
    ("edges", "num_nodes"), [(no_edges(), 1), (no_edges(), 9), (path(2), 2), (star(30), 31), (path(2), 12)]
)
@pytest.mark.parametrize("embedding", [Isomap(), Isomap(dim=1), Poincare(epochs=2), Spectral(dim=5)])
def test_any_graph_and_any_space_has_a_report(tmp_path, edges, num_nodes, embedding):
    pos = embedding.embed(edges, num_nodes)
    page = write(tmp_path, pos, edges, embedding, embedding.geometry)
    html = page.read_text("utf-8")
    assert "nan" not in re.sub(r"base64,[^\"]*", "", html)
    if embedding.dim == 5:
        assert "Of 5 axes the first two are drawn" in html
    if embedding.dim == 1:
        assert "spread at random" in html
    assert (tmp_path / "neighborhoods.png").exists() == (embedding.dim == 2 and edges.size(1) > 0)


def test_the_space_is_drawn_whole_over_its_edges():
    pos = places(60)
    figure, remarks = space_map(pos, EDGES)
    assert remarks == ""
    lines, dots = figure.axes[0].collections
    assert len(lines.get_segments()) == EDGES.size(1) // 2
    drawn = dots.get_offsets()
    assert {tuple(row) for row in drawn.tolist()} == {tuple(row) for row in pos.tolist()}
    degree = torch.bincount(EDGES[1], minlength=60)
    by_place = {tuple(row): value for row, value in zip(pos.tolist(), degree.tolist(), strict=True)}
    assert [by_place[tuple(row)] for row in drawn.tolist()] == dots.get_array().tolist()
    assert lines.get_zorder() < dots.get_zorder()


def test_the_rim_of_the_disc_is_drawn_and_seen():
    figure, _ = space_map(places(60, geometry="poincare"), EDGES, geometry="poincare")
    ax = figure.axes[0]
    assert [(patch.center, patch.radius) for patch in ax.patches] == [((0, 0), 1)]
    assert ax.get_xlim()[0] < -1
    assert ax.get_xlim()[1] > 1


def test_samples_are_named(monkeypatch):
    monkeypatch.setattr(_space_map, "MOST_NODES", 20)
    monkeypatch.setattr(_space_map, "MOST_EDGES", 30)
    figure, remarks = space_map(places(60), EDGES)
    lines, dots = figure.axes[0].collections
    assert (len(lines.get_segments()), len(dots.get_offsets())) == (30, 20)
    assert (
        remarks
        == f"Of 60 nodes, 20 at random are drawn. Of {EDGES.size(1) // 2} edges, 30 at random are drawn."
    )


def test_an_outlier_does_not_press_the_others_into_a_dot():
    pos = places(1000)
    pos[7] = 1e6
    figure, remarks = space_map(pos, path(1000))
    assert figure.axes[0].get_xlim()[1] < 100
    assert int(re.match(r"(\d+) nodes lie outside the picture", remarks)[1]) < 30


def test_many_classes_and_unknown_ones():
    y = torch.arange(60) - 1
    figure, _ = space_map(places(60), EDGES, y=y)
    names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert names == [f"class {k}" for k in range(24)] + ["unknown"]


def test_polar_sectors_hold_what_the_operator_says():
    pos = places(60, geometry="poincare")
    space = Space(pos, "poincare")
    found = neighborhoods_of(canonical_edges(EDGES, 60)[0], space)
    node = int(_typical(EDGES, found.latent.edge_index, 60)[0])
    ax = neighborhood_map(space, found, node).axes[0]
    circle, rim, *_ = ax.patches
    assert (rim.center, rim.radius) == ((0, 0), 1)
    center = torch.tensor(circle.center)
    inside = (pos - center).norm(dim=1) < circle.radius
    inside[node] = False
    latent = found.latent.edge_index[0, found.latent.edge_index[1] == node]
    assert inside.nonzero().view(-1).tolist() == sorted(latent.tolist())
    texts = [text.get_text() for text in ax.texts]
    for part, name in ((found.graph, "N_g"), (found.latent, "N_s")):
        own = part.edge_index[:, part.edge_index[1] == node]
        relation = PolarQuadrants()(pos[own[0]], pos[own[1]])
        for r, sector in enumerate(PolarQuadrants.names):
            count = int((relation == r).sum())
            shown = [text for text in texts if text.startswith(sector)]
            assert not shown or f"{count} in ${name}$" in shown[0]
            assert shown or count == 0


def test_the_node_can_be_chosen(tmp_path):
    html = write(tmp_path, places(60), EDGES, node=17).read_text("utf-8")
    degree = int((EDGES[1] == 17).sum())
    assert f"Node 17: {degree} neighbors in the graph" in html


def test_a_typical_node_has_both_neighborhoods():
    near = torch.tensor([[0, 1, 5], [1, 0, 6]])
    edges = canonical_edges(torch.tensor([[0, 0, 0, 1, 1, 3], [2, 3, 4, 2, 3, 4]]), 8)[0]
    assert _typical(edges, near, 8).tolist() == [1, 0]


def test_charts_show_the_numbers():
    measured = quality(Isomap().embed(EDGES, 60), EDGES)
    bars = _quality_charts.hop_chart(measured).axes[0].patches
    hops, chance = measured.hops, measured.chance_hops
    expected = [100 * getattr(h, name) for h in (hops, chance) for name in ("one", "two", "three", "more")]
    heights = [bar.get_height() for bar in bars]
    assert [*heights[:4], *heights[5:9]] == pytest.approx(expected)
    bars = _quality_charts.size_chart(measured).axes[0].patches
    assert sum(bar.get_height() for bar in bars) == pytest.approx(200)
    dots = _quality_charts.distance_chart(measured).axes[0].collections[-1].get_offsets()
    assert np.allclose(dots, [(row.hops, row.median) for row in measured.distances.rows])


def test_what_does_not_belong_together_is_refused(tmp_path):
    pos, measured = places(60), quality(places(60), EDGES)
    facts = {"graph_name": "g", "edge_index": EDGES, "embedding": Isomap(), "quality": measured}
    for more, message in (
        (
            {"pos": pos[:50]},
            r"the quality of these 50 positions, got that of 60 nodes\. Pass",
        ),
        (
            {"pos": pos, "y": torch.zeros(3).long()},
            r"one label for each of 60 positions, got shape \[3\]\.",
        ),
        ({"pos": pos, "node": 60}, r"node needs to be from 0 to 59, got 60\. Pass one"),
    ):
        with unchecked(), pytest.raises(ValueError, match=message):
            write_embedding_report(tmp_path / "none", **facts, **more)
    assert not (tmp_path / "none").exists()


@pytest.mark.slow
def test_a_hundred_thousand_nodes_take_seconds(tmp_path):
    edges = connected_random(100_000, 400_000, seed=0)
    pos = places(100_000)
    measured = quality(pos, edges)
    begin = time.process_time()
    write_embedding_report(
        tmp_path, graph_name="large", edge_index=edges, pos=pos, embedding=Isomap(), quality=measured
    )
    assert time.process_time() - begin < 20
