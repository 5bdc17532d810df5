import numpy as np
import pytest

from geomgcn.embeddings import _skip_gram


class Drawn:
    """The kernel's generator, in Python's integers."""

    def __init__(self, state):
        self.state = state

    def bits(self):
        mask = 2**64 - 1
        self.state = (self.state + 0x9E3779B97F4A7C15) & mask
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)


def trained(vectors, contexts, walks, window, negatives, table, rates, state):
    """Do what ``train`` does, in Python with the exact sigmoid."""
    vectors, contexts, drawn = vectors.astype(float), contexts.astype(float), Drawn(state)
    for number, walk in enumerate(walks.tolist()):
        rate = rates[0] + (rates[1] - rates[0]) * number / len(walks)
        for place, center in enumerate(walk):
            reach = 1 + ((drawn.bits() >> 32) * window >> 32)
            labels = [(center, 1.0)]
            for _ in range(negatives):
                bits = drawn.bits()
                other = (bits >> 32) * len(vectors) >> 32
                if bits & 0xFFFFFFFF >= int(table[other]) & 0xFFFFFFFF:
                    other = int(table[other]) >> 32
                if other != center:
                    labels.append((other, 0.0))
            for near in range(max(0, place - reach), min(len(walk), place + reach + 1)):
                if near == place:
                    continue
                before, step = vectors[walk[near]].copy(), 0.0
                for other, label in labels:
                    pull = rate * (label - 1 / (1 + np.exp(-before @ contexts[other])))
                    step = step + pull * contexts[other]
                    contexts[other] += pull * before
                vectors[walk[near]] += step
    return vectors, contexts


@pytest.mark.parametrize("dim", [1, 2, 3, 20])
def test_steps_are_those_of_a_plain_loop(dim):
    random = np.random.default_rng()
    walks = random.integers(12, size=(30, 15)).astype(np.int32)
    vectors, contexts = random.standard_normal((2, 12, dim)).astype(np.float32)
    table = _skip_gram.drawing_table(np.bincount(walks.reshape(-1), minlength=12))
    rates, state = np.array([0.05, 0.01]), int(random.integers(2**63))
    expected = trained(vectors, contexts, walks, 4, 3, table, rates, state)
    _skip_gram.train(vectors, contexts, walks, 4, 3, table, rates, np.array([state], np.uint64))
    np.testing.assert_allclose(vectors, expected[0], rtol=0, atol=2e-4)
    np.testing.assert_allclose(contexts, expected[1], rtol=0, atol=2e-4)


@pytest.mark.parametrize("number", [1, 2, 7, 5000])
def test_the_table_holds_the_chances_to_eight_digits(number):
    frequency = np.random.default_rng().integers(0, 10_000, number)
    frequency[0] += 1
    table = _skip_gram.drawing_table(frequency)
    own = (table & np.uint64(0xFFFFFFFF)).astype(float) / 2**32
    chance = own.copy()
    np.add.at(chance, (table >> np.uint64(32)).astype(np.int64), 1 - own)
    expected = frequency**0.75 / (frequency**0.75).sum()
    np.testing.assert_allclose(chance / number, expected, rtol=0, atol=1e-8)


def test_the_sigmoid():
    x = np.linspace(-8, 8, 5001).astype(np.float32)
    found = np.array([_skip_gram._sigmoid(value) for value in x])
    np.testing.assert_allclose(found, 1 / (1 + np.exp(-x.astype(float))), rtol=0, atol=2e-6)
    for far in (8.5, 1e30, np.inf):
        assert _skip_gram._sigmoid(np.float32(far)) == _skip_gram._sigmoid(np.float32(8))
        assert _skip_gram._sigmoid(np.float32(-far)) == _skip_gram._sigmoid(np.float32(-8))
