import itertools

import numpy as np
import pytest
import torch

from geomgcn.embeddings._components import members_by_size, side_by_side


def test_members_are_sorted_by_size_then_by_first_node():
    edge_index = torch.tensor([[5, 0, 3, 7], [6, 2, 4, 3]])
    found = [nodes.tolist() for nodes in members_by_size(edge_index, num_nodes=8)]
    assert found == [[3, 4, 7], [0, 2], [5, 6], [1]]


@pytest.mark.parametrize("dim", [1, 2, 3])
def test_boxes_are_a_gap_apart(dim):
    corners = np.random.default_rng(0).integers(-9, 9, (40, 2, dim)).astype(float)
    boxes = np.sort(corners, axis=1)
    boxes[20:, 1] = boxes[20:, 0]  # isolated nodes
    moves = side_by_side(boxes, gap=5.0)
    assert moves[0].tolist() == [0.0] * dim
    assert (moves == np.round(moves)).all()  # no move leaves the grid
    moved = boxes + moves[:, None]
    for a, b in itertools.combinations(moved, 2):
        apart = np.maximum(a[0] - b[1], b[0] - a[1])[:2]
        assert apart.max() >= 5.0


def test_shelves_are_about_as_wide_as_high():
    moves = side_by_side(np.zeros((100, 2, 2)), gap=1.0)
    assert moves.max(axis=0).tolist() == [9.0, 9.0]
