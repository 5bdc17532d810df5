import pytest

from geomgcn import released
from geomgcn.datasets import DataError
from geomgcn.released import parse_rows, released_pairs

HEADING = "node1,node2\tspace\trelation_type\n"
TOY = HEADING + "0,1\tgraph\t2\n1,0\tgraph\t1\n2,0\tlatent_space\t3\n"


@pytest.fixture
def fetched(monkeypatch):
    """Serve a toy file for every address, and note the addresses."""
    urls = []
    monkeypatch.setattr(released, "fetch", lambda url: urls.append(url) or TOY.encode())
    return urls


def test_rows_become_numbers():
    assert parse_rows(TOY, "toy.txt").tolist() == [[0, 1, 0, 2], [1, 0, 0, 1], [2, 0, 1, 3]]
    assert parse_rows(TOY.replace("\n", "\r\n"), "toy.txt").tolist() == parse_rows(TOY, "toy.txt").tolist()
    assert parse_rows(HEADING, "toy.txt").shape == (0, 4)


def test_the_first_node_gathers_or_sends(fetched):
    graph, latent = released_pairs("texas", "isomap")
    assert graph.edge_index.tolist() == [[1, 0], [0, 1]]
    assert latent.edge_index.tolist() == [[0], [2]]
    graph, latent = released_pairs("texas", "isomap", direction="filed")
    assert graph.edge_index.tolist() == [[0, 1], [1, 0]]
    assert latent.edge_index.tolist() == [[2], [0]]
    assert graph.relation.tolist() == [2, 1]
    assert latent.relation.tolist() == [3]
    assert (graph.name, latent.name, graph.num_relations) == ("graph", "latent", 4)


@pytest.mark.parametrize(
    ("dataset", "space", "end"),
    [
        ("texas", "isomap", "/master/structural_neighborhood/outf_nodes_space_relation_texas_MDS.txt"),
        ("Actor", "poincare", "outf_nodes_space_relation_film_poincare.txt"),
        (
            "cornell-superseded",
            "struc2vec",
            "/f1fc0d14b3b019c562737240d06ec83b07d16a8f/structural_neighborhood/"
            "outf_nodes_space_relation_cornell_struc2vec.txt",
        ),
    ],
)
def test_names_there_are_not_ours(fetched, dataset, space, end):
    released_pairs(dataset, space)
    assert fetched[0].endswith(end)


@pytest.mark.parametrize(
    "row",
    ["3,4 graph 1", "3\tgraph\t1", "3,4\tgraf\t1", "3,4\tgraph\tone", "3,4\tgraph", "", "3,4,5\tgraph\t1"],
)
def test_malformed_rows_name_their_line(row):
    message = r"toy\.txt, line 3: expected 'node1,node2<tab>.*', got .*\. Fetch it again\."
    with pytest.raises(DataError, match=message):
        parse_rows(f"{HEADING}0,1\tgraph\t0\n{row}\n0,2\tgraph\t0\n", "toy.txt")


@pytest.mark.parametrize("text", ["", "<html>not found</html>\n", "0,1\tgraph\t2\n"])
def test_another_heading_is_refused(text):
    with pytest.raises(DataError, match=r"toy\.txt needs the heading 'node1,node2.*got .*Fetch it again\."):
        parse_rows(text, "toy.txt")


@pytest.mark.parametrize("name", ["squirrel", "Squirrel", "squirrel-filtered"])
def test_squirrel_has_no_file(name):
    message = r"published no neighborhood file for Squirrel\. Use --neighborhood isomap, or another space"
    with pytest.raises(ValueError, match=message):
        released_pairs(name, "isomap")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("texs", "isomap"), r"Unknown data set with published neighborhoods 'texs'\. Did you mean 'texas'"),
        (("texas", "mds"), r"Unknown space of the published neighborhoods 'mds'\..*Known: isomap, poincare"),
        (("texas", "isomap", "up"), r"direction is 'gather' or 'filed', got 'up'"),
    ],
)
def test_unknown_names_are_answered(arguments, message):
    with pytest.raises(ValueError, match=message):
        released_pairs(*arguments)
