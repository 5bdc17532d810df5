import io
import os
import pickle
import zipfile

import numpy as np
import pytest
from scipy.sparse import csr_matrix, random_array

from geomgcn.datasets import DataError
from geomgcn.datasets._npz import read_npz
from geomgcn.datasets._pickles import read_lists, read_matrix
from geomgcn.datasets._text import number_nodes, read_nodes, read_pairs


def archive(**arrays) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **arrays)
    return file.getvalue()


class Command:
    """Runs a shell command when a trusting reader unpickles it."""

    def __init__(self, command):
        self.command = command

    def __reduce__(self):
        return os.system, (self.command,)


@pytest.fixture
def hostile(tmp_path):
    trace = tmp_path / "executed"
    pickled = pickle.dumps(Command(f"touch {trace}"), protocol=2)
    pickle.loads(pickled)  # the trap works ...
    assert trace.exists()
    trace.unlink()
    yield pickled
    assert not trace.exists()  # ... and our readers do not step into it


@pytest.mark.parametrize("reader", [read_matrix, read_lists])
def test_hostile_pickle_is_refused_and_not_executed(reader, hostile):
    with pytest.raises(
        DataError, match=r"a\.pkl needs to be a pickle of arrays.*system.*Nothing in it was executed"
    ):
        reader(hostile, "a.pkl")


@pytest.mark.parametrize(
    "name",
    ["builtins eval", "builtins getattr", "numpy load", "numpy.testing runstring", "collections namedtuple"],
)
def test_names_beyond_the_admitted_ones_are_refused(name):
    module, attribute = name.split()
    contents = f"c{module}\n{attribute}\n.".encode()
    with pytest.raises(DataError, match=f"{module}.{attribute}, which no data file needs"):
        read_matrix(contents, "a.pkl")


def test_pickle_cannot_take_memory_by_naming_a_shape():
    direct = b"cnumpy\nndarray\n((I1000000000000\nttR."
    rebuilt = b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I1000000000000\ntS'b'\ntR."
    for contents in (direct, rebuilt):
        with pytest.raises(DataError, match="needs to be a pickle of arrays"):
            read_matrix(contents, "a.pkl")


@pytest.mark.parametrize("old_names", [False, True])
def test_matrices_come_back(old_names):
    dense = np.arange(6.0).reshape(2, 3)
    sparse = csr_matrix(random_array((5, 4), density=0.5, rng=np.random.default_rng(0)))
    for matrix, expected in ((dense, dense), (sparse, sparse.toarray())):
        contents = pickle.dumps(matrix, protocol=3)
        if old_names:  # as numpy 1 and scipy before 1.8 wrote them
            contents = contents.replace(b"numpy._core.", b"numpy.core.").replace(
                b"sparse._csr", b"sparse.csr"
            )
        np.testing.assert_array_equal(read_matrix(contents, "a.x"), expected)


def test_sparse_matrix_with_an_index_outside_is_refused():
    matrix = csr_matrix(np.eye(3))
    matrix.indices[1] = 1000
    with pytest.raises(DataError, match=r"a\.x needs a sound CSR matrix.*Fetch the file again"):
        read_matrix(pickle.dumps(matrix, protocol=3), "a.x")


def test_torn_pickle_is_refused():
    with pytest.raises(DataError, match=r"a\.x needs to be a pickle"):
        read_matrix(pickle.dumps(np.eye(3), protocol=3)[:-20], "a.x")


@pytest.mark.parametrize("found", [{0: "1"}, {0: [1.5]}, {"0": [1]}, [[1]]])
def test_graph_of_another_kind_is_refused(found):
    with pytest.raises(DataError, match="needs lists of neighbors by node"):
        read_lists(pickle.dumps(found), "a.graph")


def test_archive_comes_back():
    arrays = read_npz(archive(edges=np.array([[0, 1]]), mask=np.array([True, False])), "a.npz")
    assert arrays["edges"].tolist() == [[0, 1]]
    assert arrays["mask"].dtype == np.bool_


def test_archive_of_objects_is_refused_and_not_executed(tmp_path):
    trace = tmp_path / "executed"
    contents = archive(x=np.array([Command(f"touch {trace}")], dtype=object))
    with pytest.raises(DataError, match=r"dtype object in 'x\.npy'.*never read"):
        read_npz(contents, "a.npz")
    assert not trace.exists()


def test_absurd_header_is_refused_before_memory_is_taken():
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("x.npy", header.getvalue())
    with pytest.raises(DataError, match="headers that promise 8000000000000"):
        read_npz(file.getvalue(), "a.npz")


def test_archive_bomb_is_refused():
    contents = archive(**{f"x{i}": np.zeros(10**5) for i in range(3)})
    assert len(contents) < 10**4
    with pytest.raises(DataError, match=r"at most 1000000 bytes of arrays.*Nothing of it was read"):
        read_npz(contents, "a.npz", max_bytes=10**6)


@pytest.mark.parametrize("contents", [b"", b"PK\3\4", b"<html>", archive(x=np.eye(9))[:-40]])
def test_torn_archive_is_refused(contents):
    with pytest.raises(DataError, match=r"a\.npz needs .*[Ff]etch it again"):
        read_npz(contents, "a.npz")


def test_damaged_member_is_refused():
    file = io.BytesIO()
    np.savez(file, x=np.arange(100.0))
    contents = bytearray(file.getvalue())
    contents[contents.index(np.float64(50.0).tobytes())] ^= 1
    with pytest.raises(DataError, match=r"a\.npz needs .*CRC"):
        read_npz(bytes(contents), "a.npz")


HEADING = "node_id\tfeature\tlabel"


def test_rows_are_joined_by_id_whatever_their_order():
    rng = np.random.default_rng(0)
    x, y = rng.integers(0, 2, (20, 6)), rng.integers(0, 3, 20)
    lines = [f"{i}\t{','.join(map(str, x[i]))}\t{y[i]}" for i in range(20)]
    for seed in range(5):
        shuffled = [lines[i] for i in np.random.default_rng(seed).permutation(20)]
        for end, mark in (("\n", ""), ("\r\n", "\ufeff")):
            found_x, found_y = read_nodes((mark + end.join([HEADING, *shuffled])).encode(), "a.txt")
            np.testing.assert_array_equal(found_x, x)
            np.testing.assert_array_equal(found_y, y)


def test_values_other_than_digits():
    x, _ = read_nodes(f"{HEADING}\n0\t0.5,-1\t0\n1\t10,2\t0\n".encode(), "a.txt")
    assert x.tolist() == [[0.5, -1.0], [10.0, 2.0]]


def test_lists_of_columns():
    x, y = read_nodes(f"{HEADING}\n1\t0,12\t1\n0\t3,3\t0\n".encode(), "a.txt", indexed=True)
    assert x.shape == (2, 13)
    assert x.nonzero()[0].tolist() == [0, 1, 1]
    assert x.nonzero()[1].tolist() == [3, 0, 12]
    assert y.tolist() == [0, 1]


@pytest.mark.parametrize(
    ("rows", "indexed", "message"),
    [
        ("0\t1\t0\n2\t1\t0", False, "each id from 0 to 1 once"),
        ("0\t1\t0\n0\t1\t0", False, "each id from 0 to 1 once"),
        ("0\t1\t0\n1\t1", False, "2 columns in line 3"),
        ("0\t1,0\t0\n1\t1\t0", False, r"as many features in each line, got \[1, 2\]"),
        ("0\t1,x\t0", False, "numbers, got"),
        ("0\t1\tstudent", False, "numbers, got"),
        ("0\t1,-3\t0", True, "feature columns from 0, got -3"),
        ("", False, "as many features"),
    ],
)
def test_bad_nodes_are_refused(rows, indexed, message):
    with pytest.raises(DataError, match=rf"a\.txt needs .*{message}.*"):
        read_nodes(f"{HEADING}\n{rows}".encode(), "a.txt", indexed=indexed)


@pytest.mark.parametrize("lines", ["0 1\n2", "0 1 2\n3 4 5", "0 b", "\xff".encode("latin1").decode("latin1")])
def test_bad_pairs_are_refused(lines):
    with pytest.raises(DataError, match=r"a\.txt needs two integers in each line.*Fetch it again"):
        read_pairs(lines.encode(), "a.txt", header=False)


def test_no_pairs():
    assert read_pairs(b"node_id\tnode_id\n", "a.txt", header=True).shape == (0, 2)


def test_gappy_ids_are_numbered_and_labels_joined_by_id():
    pairs = np.array([[500, 7], [7, 10_000]])
    labels = {7: 2, 500: 0, 10_000: 1}
    for order in ([7, 500, 10_000], [10_000, 7, 500]):
        edges, y, node_id = number_nodes(pairs, np.array([(i, labels[i]) for i in order]), "a.txt")
        assert node_id[edges].tolist() == pairs.tolist()
        assert dict(zip(node_id.tolist(), y.tolist(), strict=True)) == labels


def test_nodes_without_label_or_edge():
    edges, y, node_id = number_nodes(np.array([[3, 5]]), np.array([[9, 1], [3, 0]]), "a.txt")
    assert (edges.tolist(), y.tolist(), node_id.tolist()) == ([[0, 1]], [0, -1, 1], [3, 5, 9])


def test_two_labels_for_a_node_are_refused():
    with pytest.raises(DataError, match="one label for a node, got several for id 3"):
        number_nodes(np.array([[3, 5]]), np.array([[3, 0], [3, 1]]), "a.txt")
