import numpy as np
import pytest
import torch

from geomgcn.nn import _cpu
from geomgcn.nn._dropout import MASK, Dropout, random_bits


def table(seed, rows=800, columns=600):
    return random_bits(torch.tensor(seed), torch.arange(rows).unsqueeze(1), torch.arange(columns))


@pytest.mark.parametrize("seed", [0, 1, -1, 2**40 + 3, -(2**63)])
def test_compiled_bits_are_those_of_tensor_operations(seed):
    rows, columns = [0, 1, 77, 2**31 - 1], [0, 3, 2**20, 2**31 - 1]
    expected = random_bits(torch.tensor(seed), torch.tensor(rows).unsqueeze(1), torch.tensor(columns))
    near, far = np.uint32(seed & MASK), np.uint32(seed >> 32 & MASK)
    for row, wanted in zip(rows, expected.tolist(), strict=True):
        keys = _cpu.row_keys(near, far, np.int64(row))
        assert [int(_cpu.bits(*map(np.uint32, keys), np.int64(c))) for c in columns] == wanted


@pytest.mark.parametrize("seed", [0, 5, 2**33])
def test_bits_are_uniform_and_independent_of_neighbours(seed):
    """Within five standard errors, of each of the highest and lowest bits and between places."""
    bits = table(seed)
    for shift in (31, 30, 16, 1, 0):
        sign = ((bits >> shift) & 1).double() * 2 - 1
        error = 5 / sign.numel() ** 0.5
        assert abs(sign.mean()) < error
        assert abs((sign[1:] * sign[:-1]).mean()) < error
        assert abs((sign[:, 1:] * sign[:, :-1]).mean()) < error
        assert sign.mean(0).abs().max() < 5 / 800**0.5
        assert sign.mean(1).abs().max() < 5 / 600**0.5
    counts = torch.bincount((bits >> 24).view(-1), minlength=256).double()
    assert float(((counts - counts.mean()) ** 2 / counts.mean()).sum()) < 255 + 5 * (2 * 255) ** 0.5


def test_seeds_that_differ_by_one_have_nothing_in_common():
    one, other = (table(seed).double() / 2**32 - 0.5 for seed in (7, 8))
    assert abs((one * other).mean() * 12) < 5 / one.numel() ** 0.5
    far = table(7 + 2**32).double() / 2**32 - 0.5
    assert abs((one * far).mean() * 12) < 5 / one.numel() ** 0.5


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_the_share_that_stays_is_right_and_so_is_the_mean(rate):
    dropout = Dropout.of(torch.tensor([3]), [rate])
    kept = dropout.kept(0, torch.arange(500).unsqueeze(1), torch.arange(800)).double()
    error = 5 * (rate * (1 - rate) / kept.numel()) ** 0.5
    assert abs(kept.mean() - (1 - rate)) <= error
    assert float(dropout.factor[0]) == pytest.approx(1 / (1 - rate), rel=1e-8)


def test_a_rate_of_one_keeps_nothing_finite():
    dropout = Dropout.of(torch.tensor([3]), [1.0])
    assert float(dropout.factor[0]) == 0
