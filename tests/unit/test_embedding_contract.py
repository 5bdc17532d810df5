"""Every embedding, ours or a user's, that can be made without arguments keeps these promises."""

import dataclasses
import importlib.util
import json
import math
import sys
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, HeteroData

from geomgcn import _store
from geomgcn.embeddings import Embedding, by_name, embed_cached, known
from graphs import connected_random, unchecked

RING_WITH_TAIL = torch.tensor([[0, 1, 2, 3, 4, 5, 6, 4], [1, 2, 3, 0, 0, 4, 5, 7]])
GRAPHS = {
    "connected": (RING_WITH_TAIL, 8),
    "two components": (torch.cat([RING_WITH_TAIL, RING_WITH_TAIL[:, :6] + 8], dim=1), 15),
    "isolated nodes": (RING_WITH_TAIL, 12),
    "one edge": (torch.tensor([[0], [1]]), 2),
    "one node": (torch.empty(2, 0, dtype=torch.int64), 1),
    "no edges": (torch.empty(2, 0, dtype=torch.int64), 7),
    "star": (torch.stack([torch.zeros(9, dtype=torch.int64), torch.arange(1, 10)]), 10),
    "loops and double edges": (torch.tensor([[0, 0, 1, 1, 2], [0, 1, 0, 2, 1]]), 3),
}


def can_be_made(kind):
    return all(
        not field.init
        or field.default is not dataclasses.MISSING
        or field.default_factory is not dataclasses.MISSING
        for field in dataclasses.fields(kind)
    )


KINDS = [kind for kind in known().values() if can_be_made(kind)]


def test_some_are_enrolled():
    assert {"isomap", "poincare", "struc2vec", "spectral"} <= {kind.__name__.lower() for kind in KINDS}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", GRAPHS)
def test_finite_float64_of_the_right_shape(kind, name):
    edge_index, num_nodes = GRAPHS[name]
    embedding = kind()
    data = embedding(Data(edge_index=edge_index, num_nodes=num_nodes))
    assert data.pos.shape == (num_nodes, embedding.dim)
    assert data.pos.dtype == torch.float64
    assert data.pos.isfinite().all()
    assert data.geometry == kind.geometry
    if kind.geometry == "poincare":
        assert (data.pos.norm(dim=1) < 1).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", GRAPHS)
def test_same_settings_same_bytes(kind, name):
    edge_index, num_nodes = GRAPHS[name]
    before = edge_index.clone()
    first, second = (kind()(Data(edge_index=edge_index, num_nodes=num_nodes)).pos for _ in range(2))
    assert first.numpy().tobytes() == second.numpy().tobytes()
    assert torch.equal(edge_index, before)


@pytest.mark.parametrize("kind", KINDS)
def test_threads_change_no_byte(kind):
    edge_index = connected_random(700, 500, seed=1)
    threads = torch.get_num_threads()
    try:
        found = []
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(kind().embed(edge_index, 705).numpy().tobytes())
    finally:
        torch.set_num_threads(threads)
    assert found[0] == found[1]


class Stopped(Exception):
    pass


@pytest.mark.parametrize("kind", KINDS)
def test_wherever_a_run_is_stopped_it_goes_on_to_the_same_bytes(kind, tmp_path):
    edge_index, num_nodes = connected_random(300, 200, seed=2), 303
    whole = kind().embed(edge_index, num_nodes)
    seen = []

    def stop(*step):
        seen.append(step)
        if len(seen) in stops:
            raise Stopped

    stops = ()
    embed_cached(kind(), edge_index, num_nodes, tmp_path / "whole", on_step=stop)
    assert seen, f"{kind.__name__} reports no steps"
    assert all(0 <= done <= total for _, done, total in seen)
    stops = {1, len(seen) // 2, len(seen) - 1}
    seen.clear()
    for _ in range(10):
        try:
            found = embed_cached(kind(), edge_index, num_nodes, tmp_path, on_step=stop)
            break
        except Stopped:
            continue
    assert torch.equal(found, whole)
    assert not list(tmp_path.rglob("*.stopped.safetensors"))


@pytest.mark.parametrize("kind", KINDS)
def test_the_global_random_state_is_neither_used_nor_changed(kind):
    edge_index, num_nodes = GRAPHS["two components"]
    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = kind().embed(edge_index, num_nodes)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(kind().embed(edge_index, num_nodes), first)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind.equivariant])
def test_renumbering(kind):
    # Every node of this graph is different from every other: no symmetry leaves a choice.
    edge_index, num_nodes = RING_WITH_TAIL, 8
    edge_index = torch.cat([edge_index, torch.tensor([[1], [6]])], dim=1)
    order = torch.randperm(num_nodes, generator=torch.Generator().manual_seed(0))
    found = kind()(Data(edge_index=order[edge_index], num_nodes=num_nodes)).pos
    expected = kind()(Data(edge_index=edge_index, num_nodes=num_nodes)).pos
    torch.testing.assert_close(found[order], expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_settings_are_plain_and_complete(kind):
    settings = kind().settings()
    assert json.loads(json.dumps(settings)) == settings
    assert settings["embedding"] == kind.__name__.lower()
    assert set(settings) >= {"version", *(field.name for field in dataclasses.fields(kind))}


@pytest.mark.parametrize("kind", KINDS)
def test_the_cache_gives_the_same_bytes(kind, tmp_path):
    edge_index, num_nodes = GRAPHS["isolated nodes"]
    first, second = (embed_cached(kind(), edge_index, num_nodes, tmp_path) for _ in range(2))
    assert torch.equal(first, second)
    assert len(list(tmp_path.rglob("*.safetensors"))) == 1


@pytest.mark.parametrize("kind", KINDS)
def test_found_by_name(kind):
    assert by_name(kind.__name__.upper()) is kind


def test_unknown_name():
    with pytest.raises(ValueError, match=r"Unknown embedding '../../x'.* Known: .*isomap"):
        by_name("../../x")
    with pytest.raises(ValueError, match=r"Did you mean 'isomap'\?"):
        by_name("isomop")


def test_a_graph_without_edge_index():
    with pytest.raises(ValueError, match=r"Isomap needs data.edge_index, got none. Set it to an empty"):
        by_name("isomap")()(Data(x=torch.zeros(3, 1)))


def test_a_class_of_the_users_own_is_found_at_once():
    @dataclass(frozen=True)
    class ByDegreeOnly(Embedding):
        dim: int = 1

        def embed(self, edge_index, num_nodes):
            return torch.bincount(edge_index[1], minlength=num_nodes).double().view(-1, 1)

    assert by_name("ByDegreeOnly") is ByDegreeOnly
    # It gets the canonical graph, whatever form the edges had.
    data = ByDegreeOnly()(Data(edge_index=torch.tensor([[0, 0, 1], [1, 1, 1]]), num_nodes=2))
    assert data.pos.tolist() == [[1.0], [1.0]]


def test_an_embedding_that_is_not_finished_cannot_be_made():
    with pytest.raises(TypeError, match="abstract"):
        Embedding()


def embedding_class(rows, **members):
    """A class of the user's own, that returns these rows."""

    def embed(self, edge_index, num_nodes):
        return rows

    return dataclass(frozen=True)(
        type("Mine", (Embedding,), {"__module__": "mine", "embed": embed, **members})
    )


def test_positions_of_an_edited_class_are_not_stale(tmp_path):
    edge = torch.tensor([[0], [1]])
    for rows in (torch.zeros(2, 2), torch.ones(2, 2)):
        assert torch.equal(embed_cached(embedding_class(rows)(), edge, 2, tmp_path), rows)
    assert not list(tmp_path.rglob("*.safetensors"))


def test_positions_of_a_class_that_states_its_version_are_kept(tmp_path):
    edge = torch.tensor([[0], [1]])
    zeros, ones = torch.zeros(2, 2), torch.ones(2, 2)
    assert torch.equal(embed_cached(embedding_class(zeros, version=1)(), edge, 2, tmp_path), zeros)
    assert torch.equal(embed_cached(embedding_class(ones, version=1)(), edge, 2, tmp_path), zeros)
    assert torch.equal(embed_cached(embedding_class(ones, version=2)(), edge, 2, tmp_path), ones)
    # A subclass that states none inherits the answers of nobody.
    heir = type("Heir", (embedding_class(zeros, version=1),), {"embed": lambda *_: ones})
    assert torch.equal(embed_cached(heir(), edge, 2, tmp_path), ones)


def test_settings_of_an_own_init_count(tmp_path):
    class Scaled(Embedding):
        version = 1

        def __init__(self, scale):
            object.__setattr__(self, "scale", scale)

        def embed(self, edge_index, num_nodes):
            return torch.full((num_nodes, 2), float(self.scale))

    edge = torch.tensor([[0], [1]])
    found = [embed_cached(Scaled(scale), edge, 2, tmp_path)[0, 0] for scale in (1, 9)]
    assert found == [1.0, 9.0]


@pytest.mark.parametrize(
    ("rows", "error", "message"),
    [
        (
            torch.zeros(3, 2),
            ValueError,
            r"Mine\.embed needs to return one row for each of 2 nodes, got shape \[3, 2",
        ),
        (
            torch.zeros(2),
            ValueError,
            r"Mine\.embed needs to return one row for each of 2 nodes, got shape \[2\]",
        ),
        (
            torch.tensor([[0.0], [math.nan]]),
            ValueError,
            r"Mine\.embed returned .* NaN .* node 1\. Give every",
        ),
        (
            torch.zeros(2, 2).long(),
            ValueError,
            r"Mine\.embed returned .*int64 .* Convert them with pos\.double",
        ),
        ([[0.0], [1.0]], TypeError, r"Mine\.embed needs to return a tensor, got list\. Use torch\.as_tensor"),
    ],
)
def test_positions_that_a_class_must_not_return(rows, error, message, tmp_path):
    edge = torch.tensor([[0], [1]])
    mine = embedding_class(rows, version=1)()
    with unchecked(), pytest.raises(error, match=message):
        embed_cached(mine, edge, 2, tmp_path)
    with unchecked(), pytest.raises(error, match=message):
        mine(Data(edge_index=edge, num_nodes=2))
    assert not list(tmp_path.rglob("*.safetensors"))


def stoppable(kind=KeyboardInterrupt, rows=None):
    """A class that keeps a state and then raises, or returns ``rows``."""

    def embed(self, edge_index, num_nodes, progress):
        self.seen.append(progress.kept())
        progress.keep(done=np.ones(1))
        if rows is None:
            raise kind("stopped")
        return rows

    return embedding_class(None, version=1, embed=embed, seen=[])


@pytest.mark.parametrize(
    ("kind", "is_kept"),
    [
        (KeyboardInterrupt, True),
        (MemoryError, True),
        (OSError, True),
        (ValueError, False),
        (RuntimeError, False),
    ],
)
def test_only_a_run_that_could_go_on_leaves_its_state(kind, is_kept, tmp_path):
    mine, edge = stoppable(kind), torch.tensor([[0], [1]])
    with pytest.raises(kind) as stop:
        embed_cached(mine(), edge, 2, tmp_path)
    assert len(list(tmp_path.rglob("*.stopped.safetensors"))) == is_kept
    assert bool(getattr(stop.value, "__notes__", [])) == is_kept
    with pytest.raises(kind):
        embed_cached(mine(), edge, 2, tmp_path)
    assert [kept is not None for kept in mine.seen] == [False, is_kept]


def test_positions_that_are_refused_leave_no_state(tmp_path):
    mine = stoppable(rows=torch.full((2, 2), math.nan))
    for _ in range(2):
        with pytest.raises(ValueError, match="NaN"):
            embed_cached(mine(), torch.tensor([[0], [1]]), 2, tmp_path)
    assert mine.seen == [None, None]


def test_the_state_stays_until_the_result_is_stored(tmp_path, monkeypatch):
    mine, edge = stoppable(rows=torch.zeros(2, 2)), torch.tensor([[0], [1]])
    save = _store.save_arrays

    def stop_at_the_entry(path, *rest):
        if ".stopped" not in str(path):
            raise KeyboardInterrupt
        save(path, *rest)

    monkeypatch.setattr(_store, "save_arrays", stop_at_the_entry)
    with pytest.raises(KeyboardInterrupt):
        embed_cached(mine(), edge, 2, tmp_path)
    assert len(list(tmp_path.rglob("*.stopped.safetensors"))) == 1
    monkeypatch.setattr(_store, "save_arrays", save)
    embed_cached(mine(), edge, 2, tmp_path)
    assert not list(tmp_path.rglob("*.stopped.safetensors"))


def test_a_cache_that_cannot_be_used_loses_no_result(tmp_path):
    (tmp_path / "positions").write_text("a file where a folder should be")
    with pytest.warns(UserWarning, match="complete but was not cached"):
        found = embed_cached(stoppable(rows=torch.ones(2, 2))(), torch.tensor([[0], [1]]), 2, tmp_path)
    assert found.tolist() == [[1.0, 1.0], [1.0, 1.0]]


def test_classes_of_one_name_in_two_files_are_two(tmp_path):
    edge, found = torch.tensor([[0], [1]]), []
    for value in (1, 2):
        path = tmp_path / f"folder{value}" / "twins_of_name.py"
        path.parent.mkdir()
        path.write_text(
            "import torch\n"
            "from geomgcn import Embedding\n"
            "class Mine(Embedding):\n"
            "    version = 1\n"
            "    def embed(self, edge_index, num_nodes):\n"
            f"        return torch.full((num_nodes, 2), {value}.0)\n"
        )
        spec = importlib.util.spec_from_file_location("twins_of_name", path)
        module = sys.modules["twins_of_name"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found.append(float(embed_cached(module.Mine(), edge, 2, tmp_path / "cache")[0, 0]))
    del sys.modules["twins_of_name"]
    assert found == [1.0, 2.0]


def test_gradients_stay_inside(tmp_path):
    rows = torch.zeros(2, 2, requires_grad=True)
    assert not embed_cached(embedding_class(rows)(), torch.tensor([[0], [1]]), 2, tmp_path).requires_grad


def test_other_kinds_of_data_are_refused():
    with (
        unchecked(),
        pytest.raises(TypeError, match=r"Isomap needs the Data of one kind .* to_homogeneous\(\)"),
    ):
        by_name("isomap")().forward(HeteroData())


def test_a_class_is_imported_by_reference(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "spaces_of_mine.py").write_text(
        "import torch\n"
        "from geomgcn import Embedding\n"
        "class Flat(Embedding):\n"
        "    def embed(self, edge_index, num_nodes):\n"
        "        return torch.zeros(num_nodes, 2)\n"
        "number = 3\n"
    )
    assert by_name("spaces_of_mine:Flat")().embed(RING_WITH_TAIL, 8).shape == (8, 2)
    for name, message in {
        "spaces_of_yours:Flat": r"No module named 'spaces_of_yours'\. Run where its file lies, or install",
        "spaces_of_mine:flat": r"module 'spaces_of_mine' has no such class\. Mind upper and lower case",
        "spaces_of_mine:number": r"has no such class",
        "fractions:Fraction": r"is no embedding\. Derive it from geomgcn\.embeddings\._base\.Embedding",
    }.items():
        with pytest.raises(ValueError, match=message):
            by_name(name)
