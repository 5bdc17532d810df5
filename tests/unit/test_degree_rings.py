import pytest

from geomgcn.embeddings._degree_rings import degree_rings
from graphs import connected_random, no_edges, path, star
from struc2vec_plain import plain_rings, rows_of


def found_sequences(edges, num_nodes, layers):
    """Of each node: its rings as lists of (degree, count)."""
    found = degree_rings(*rows_of(edges, num_nodes), layers)
    sequences = [
        [(int(found.degree[found.kinds[e]]), int(found.counts[e])) for e in range(*found.indptr[s : s + 2])]
        for s in range(len(found.indptr) - 1)
    ]
    assert len({tuple(s) for s in sequences}) == len(sequences)  # each is there once
    return [[sequences[s] for s in found.rings[r] if s >= 0] for r in found.role], found


@pytest.mark.parametrize("layers", [0, 1, 3, None])
@pytest.mark.parametrize("seed", range(3))
def test_rings_are_those_of_a_plain_search(layers, seed):
    num_nodes = 300 + 17 * seed  # more than one sweep
    edges = connected_random(num_nodes - 10, 100, seed)  # ten nodes are isolated
    found, parts = found_sequences(edges, num_nodes, layers)
    assert found == plain_rings(edges, num_nodes, layers)
    # Two nodes have the same role exactly where their rings are equal.
    assert len(parts.rings) == len({str(rings) for rings in found})
    rows = parts.rings.tolist()
    assert rows == sorted(rows)


def test_long_paths_and_large_hubs():
    found, parts = found_sequences(path(500), 500, None)
    assert parts.rings.shape == (250, 500)
    assert found[0] == [[(1, 1)], *[[(2, 1)]] * 498, [(1, 1)]]
    _, parts = found_sequences(path(500), 500, 6)
    assert len(parts.rings) == 8  # the middle is all the same
    found, parts = found_sequences(star(20_000), 20_001, 6)
    assert len(parts.rings) == 2
    assert found[1] == [[(1, 1)], [(20_000, 1)], [(1, 19_999)]]


def test_without_edges():
    found, parts = found_sequences(no_edges(), 3, 6)
    assert found == [[[(0, 1)]]] * 3
    assert parts.rings.tolist() == [[0]]


def test_progress_is_told():
    seen = []
    degree_rings(*rows_of(path(600), 600), 2, lambda done, total: seen.append((done, total)))
    assert seen == [(1, 3), (2, 3), (3, 3)]
