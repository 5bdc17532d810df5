import pytest
import torch
from torch_geometric.data import Data

from geomgcn.embeddings import Coordinates, embed_cached

PLACES = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]])
EDGES = torch.tensor([[0, 1], [1, 2]])


def test_positions_come_back_as_float64():
    embedding = Coordinates(PLACES)
    assert str(embedding) == "Coordinates(num_nodes=3, dim=2)"
    data = embedding(Data(edge_index=EDGES, num_nodes=3))
    assert data.pos.dtype == torch.float64
    assert data.pos.tolist() == PLACES.tolist()
    assert data.geometry == "euclidean"


def test_nothing_is_shared_with_the_caller():
    places = PLACES.double()
    embedding = Coordinates(places)
    places[0] = 9.0
    embedding.embed(EDGES, 3)[1] = 9.0
    assert embedding.embed(EDGES, 3).tolist() == PLACES.tolist()


def test_equal_positions_are_equal_settings():
    assert Coordinates(PLACES) == Coordinates(PLACES.double())
    assert hash(Coordinates(PLACES)) == hash(Coordinates(PLACES.double()))
    assert Coordinates(PLACES) != Coordinates(PLACES + 1)
    assert Coordinates(PLACES).settings() != Coordinates(PLACES + 1).settings()


def test_wrong_shape():
    with pytest.raises(ValueError, match=r"got \[3\]. Reshape one axis with pos.view\(-1, 1\)"):
        Coordinates(torch.zeros(3))


def test_positions_that_are_not_finite():
    places = PLACES.clone()
    places[1, 0], places[2, 1] = float("nan"), float("inf")
    with pytest.raises(ValueError, match=r"got 2 nodes with NaN or infinity, first at node 1. Fill them"):
        Coordinates(places)


def test_wrong_number_of_rows():
    with pytest.raises(ValueError, match=r"one row for each of 4 nodes, got 3 rows. Pass positions in"):
        Coordinates(PLACES).embed(EDGES, 4)


def test_nothing_is_kept_in_the_cache(tmp_path):
    assert embed_cached(Coordinates(PLACES), EDGES, 3, tmp_path).tolist() == PLACES.tolist()
    assert not list(tmp_path.iterdir())
