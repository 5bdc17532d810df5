import pytest
import torch

from geomgcn.nn import SparseFeatures, prepare_features
from graphs import unchecked


def test_rows_and_columns_hold_the_same_entries():
    x = torch.tensor([[0.0, 1.0, 0.0], [2.0, 0.0, 3.0], [0.0, 0.0, 0.0]])
    features = SparseFeatures.of(x)
    assert features.shape == (3, 3)
    assert features.by_node.start.tolist() == [0, 1, 3, 3]
    assert features.by_node.column.tolist() == [1, 0, 2]
    assert features.by_channel.start.tolist() == [0, 1, 2, 3]
    assert features.by_channel.column.tolist() == [1, 0, 1]
    assert features.by_channel.value.tolist() == [2.0, 1.0, 3.0]
    assert torch.equal(features.to_dense(), x)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
def test_sparse_tensors_are_taken_too(layout):
    x = torch.eye(4).to_sparse(layout=layout)
    assert torch.equal(SparseFeatures.of(x).to_dense(), torch.eye(4))
    assert isinstance(prepare_features(x), SparseFeatures)


def test_density_decides():
    dense = torch.ones(10, 10)
    assert prepare_features(dense) is dense
    dense[:, 3:] = 0
    assert isinstance(prepare_features(dense), SparseFeatures)
    features = SparseFeatures.of(dense)
    assert prepare_features(features) is features


def test_features_that_learn_stay_dense():
    x = torch.zeros(3, 3, requires_grad=True)
    assert prepare_features(x) is x
    with unchecked(), pytest.raises(ValueError, match=r"require a gradient\. Pass the features themselves"):
        SparseFeatures.of(x)


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1)])
def test_nothing_is_something(shape):
    features = SparseFeatures.of(torch.zeros(shape))
    assert features.shape == shape
    assert torch.equal(features.to_dense(), torch.zeros(shape))
