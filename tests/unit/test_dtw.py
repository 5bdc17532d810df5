import numpy as np
import pytest

from geomgcn.embeddings import _dtw
from struc2vec_plain import plain_warping


def ours(one, other):
    (da, ca), (db, cb) = (np.array(pairs, float).T.copy() for pairs in (one, other))
    room = [np.full(max(len(da), len(db)), np.nan) for _ in range(3)]
    return _dtw.warped(da, ca, db, cb, *room)


def random_pairs(random, most_degree, most_count, most_pairs):
    number = random.integers(1, most_pairs + 1)
    degree = np.sort(random.choice(np.arange(1, most_degree + 1), number, replace=False))
    return list(zip(degree.tolist(), random.integers(1, most_count + 1, number).tolist(), strict=True))


@pytest.mark.parametrize(
    ("most_degree", "most_count", "most_pairs"),
    [(5, 1, 5), (40, 3, 30), (40, 1000, 40), (3000, 2, 30), (3000, 1000, 60)],
)
def test_equal_to_the_whole_table(most_degree, most_count, most_pairs):
    random = np.random.default_rng()
    for _ in range(150):
        one, other = (random_pairs(random, most_degree, most_count, most_pairs) for _ in range(2))
        assert ours(one, other) == plain_warping(one, other), (one, other)


def test_sequences_that_nearly_agree():
    random = np.random.default_rng()
    for _ in range(100):
        one = random_pairs(random, 300, 50, 100)
        other = [(a, n + int(random.random() < 0.2)) for a, n in one if random.random() < 0.9] or one
        assert ours(one, other) == plain_warping(one, other), (one, other)


def test_properties():
    random = np.random.default_rng()
    for _ in range(50):
        one, other = (random_pairs(random, 60, 9, 20) for _ in range(2))
        assert ours(one, other) == ours(other, one)
        assert ours(one, other) >= 0
        assert ours(one, one) == 0
    assert ours([(1, 1)], [(2, 1)]) == 1
    assert ours([(1, 3)], [(4, 5)]) == 3 * 5
    assert ours([(2, 7)], [(2, 1)]) == 0  # counts only weigh what degrees cost


def test_many_at_once():
    random = np.random.default_rng()
    sequences = [random_pairs(random, 60, 9, 20) for _ in range(20)]
    indptr = np.concatenate([[0], np.cumsum([len(s) for s in sequences])])
    degrees, counts = np.array([pair for s in sequences for pair in s], float).T.copy()
    ones, others = random.integers(20, size=(2, 200))
    out = np.full(200, np.nan)
    _dtw.warp_all(indptr, degrees, counts, ones, others, out)
    assert out.tolist() == [
        plain_warping(sequences[a], sequences[b]) for a, b in zip(ones, others, strict=True)
    ]
