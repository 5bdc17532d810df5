"""Every embedding, ours or a user's, that can be made without arguments keeps these promises."""

import dataclasses
import json
from dataclasses import dataclass

import pytest
import torch
from torch_geometric.data import Data

from geomgcn.embeddings import Embedding, by_name, embed_cached, known

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
    assert {"isomap"} <= {kind.__name__.lower() for kind in KINDS}


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
