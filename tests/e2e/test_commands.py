"""What each command prints and writes, and how it ends."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from commandline import QUICK, Answer, assert_refused, process, save_graph
from geomgcn import __version__, embeddings, training
from geomgcn import datasets as data_sets

# What the commands print


def test_train_prints_a_table_entry(geomgcn):
    answer = geomgcn("train", "karate", *QUICK, "--json")
    row = answer.json
    assert answer.out.count("\n") == 1
    assert (row["dataset"], row["model"], row["preset"]) == ("karate", "geom-gcn", "paper")
    assert row["title"] == "Geom-GCN isomap"
    assert row["settings"]["splits"] == "random"
    assert (row["settings"]["seed"], row["settings"]["weight_decay"]) == (0, 5e-6)
    accuracy = row["test_accuracy"]
    assert accuracy["runs"] == len(row["per_run"]) == 2
    assert accuracy["mean"] == pytest.approx(np.mean(row["per_run"]))
    assert accuracy["std"] == pytest.approx(np.std(row["per_run"], ddof=1))
    assert accuracy["ci95"] == pytest.approx(12.7062 * accuracy["std"] / 2**0.5, rel=1e-4)
    assert all(0 <= value <= 1 for value in row["per_run"])
    assert row["epochs"] == [5, 5]
    assert row["interrupted"] is False
    assert geomgcn("train", "karate", *QUICK, "--json").json == row  # the same seed gives the same numbers


def test_train_tells_a_person_the_same(geomgcn):
    row = geomgcn("train", "karate", *QUICK, "--json").json
    out = geomgcn("train", "karate", *QUICK).out
    assert f"test accuracy {100 * row['test_accuracy']['mean']:.2f} %" in out
    assert "2 runs" in out


def test_one_run_has_no_interval(geomgcn):
    assert (
        geomgcn("train", "karate", "--num-splits", 1, "--max-epochs", 2, "--json").json["test_accuracy"][
            "ci95"
        ]
        is None
    )


def test_embed_writes_positions(geomgcn):
    assert "34 nodes, 78 edges" in geomgcn("embed", "karate", "--out", "pos.csv").out
    head, *rows = Path("pos.csv").read_text().splitlines()
    assert head == "node,x0,x1"
    table = np.array([[float(cell) for cell in row.split(",")] for row in rows])
    assert table[:, 0].tolist() == list(range(34))
    summary = geomgcn("embed", "karate", "--out", "pos.npz", "--json").json
    pos = np.load("pos.npz")["pos"]
    assert np.array_equal(pos, table[:, 1:].astype(pos.dtype))
    assert summary["low"] == pos.min(0).tolist()
    assert (summary["nodes"], summary["dim"]) == (34, 2)


def test_embed_writes_parquet(geomgcn, monkeypatch):
    parquet = pytest.importorskip("pyarrow.parquet")
    geomgcn("embed", "karate", "--out", "pos.npz")
    geomgcn("embed", "karate", "--out", "pos.parquet")
    table = parquet.read_table("pos.parquet")
    assert table.column_names == ["node", "x0", "x1"]
    assert table["node"].to_pylist() == list(range(34))
    found = np.stack([table["x0"].to_numpy(), table["x1"].to_numpy()], axis=1)
    assert np.array_equal(found, np.load("pos.npz")["pos"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert_refused(geomgcn("embed", "karate", "--out", "new.parquet"), "pip install 'geomgcn[parquet]'")
    assert not Path("new.parquet").exists()


def test_embeddings_take_settings(geomgcn):
    def positions(*arguments):
        geomgcn("embed", "karate", "--out", "pos.npz", *arguments)
        return np.load("pos.npz")["pos"]

    text = "poincare(epochs=3, seed=5)"
    answer = geomgcn("embed", "karate", "--embedding", text)
    assert "Poincare(dim=2, epochs=3, negatives=10, learning_rate=0.14, seed=5" in answer.out
    first = positions("--embedding", text)
    assert np.array_equal(first, positions("--embedding", "poincare(epochs=3)", "--seed", "5"))
    assert not np.array_equal(first, positions("--embedding", "poincare(epochs=3)"))
    assert positions("--embedding", text, "--dim", "4").shape == (34, 4)
    answer = geomgcn(
        "neighborhood", "karate", "--neighborhood", "poincare(epochs=3, seed=5)+isomap", "--json"
    )
    assert [part["name"] for part in answer.json["neighborhoods"]] == ["graph", "latent"]


@pytest.mark.parametrize("embedding", ["isomap", "poincare(epochs=3)", "struc2vec(epochs=1)", "spectral"])
def test_embed_measures_and_draws(geomgcn, embedding):
    command = ["embed", "karate", "--embedding", embedding]
    told = geomgcn(*command, "--report").out
    assert "residual variance" in told
    assert "mean average precision" in told
    found = geomgcn(*command, "--pictures", "page", "--node", "5", "--out", "pos.csv", "--json").json
    assert found["quality"]["num_pairs"] == 156
    assert 0 < found["quality"]["mean_average_precision"] <= 1
    page = Path("page/index.html").read_text()
    assert page.count("<img") >= 5
    assert "Node 5:" in page
    assert "://" not in page  # nothing is fetched
    assert_refused(geomgcn(*command, "--pictures", "page", "--node", "34"), "--node is from 0 to 33, got 34")
    assert_refused(geomgcn(*command, "--node", "3"), "Name a folder with --pictures")
    assert_refused(geomgcn(*command, "--pictures", "pos.csv"), "pos.csv")


def test_a_graph_without_labels_can_be_embedded_but_not_trained_on(geomgcn):
    np.savez("bare.npz", edges=np.array([[0, 1], [1, 2], [2, 5]]))
    assert geomgcn("embed", "bare.npz", "--json").json["nodes"] == 6
    np.savez("bare.npz", edges=np.array([[0, 1], [1, 2], [2, 5]]), num_nodes=9)
    assert geomgcn("embed", "bare.npz", "--json").json["nodes"] == 9
    assert "9 nodes, 3 edges" in geomgcn("neighborhood", "bare.npz").out
    assert_refused(geomgcn("train", "bare.npz"), "bare.npz needs an array named 'y'")
    np.savez("bare.npz", edges=np.array([[0, 1], [1, 2], [2, 5]]), num_nodes=4)
    assert_refused(geomgcn("embed", "bare.npz"), "ids from 0 to 3, got 2 -> 5")
    np.savez("bare.npz", edges=np.array([[0, 2_000_000_000]]))
    assert_refused(geomgcn("embed", "bare.npz"), "ids without large gaps, got 2000000000 in 1 edges")
    np.savez("bare.npz", edges=np.array([[0, 1]]), num_nodes=9, x=np.eye(4))
    assert_refused(geomgcn("embed", "bare.npz"), "'x' with 9 rows")
    np.savez("bare.npz", edges=np.array([[0, 1]]), num_nodes=9, y=np.zeros(4, int))
    assert_refused(geomgcn("embed", "bare.npz"), "9 labels")
    for wrong in (0, -1, 2.5, [3, 4]):
        np.savez("bare.npz", edges=np.array([[0, 1]]), num_nodes=wrong)
        assert_refused(geomgcn("embed", "bare.npz"), "'num_nodes' as one whole number")


def test_neighborhood_writes_pairs(geomgcn):
    listed = geomgcn("neighborhood", "karate", "--out", "pairs.csv", "--json").json["neighborhoods"]
    assert [(part["name"], part["pairs"]) for part in listed] == [("graph", 156), ("latent", 156)]
    table = np.loadtxt("pairs.csv", delimiter=",", skiprows=1, dtype=int)
    assert Path("pairs.csv").read_text().startswith("source,target,neighborhood,relation\n")
    for i, part in enumerate(listed):
        relation = table[table[:, 2] == i, 3]
        assert np.bincount(relation, minlength=4).tolist() == part["by_relation"]


@pytest.mark.parametrize("command", ["embed", "neighborhood"])
def test_the_graph_itself_is_never_written_over(geomgcn, command):
    save_graph()
    before = Path("mine.npz").read_bytes()
    Path("link.npz").symlink_to("mine.npz")
    for out in ("mine.npz", "./mine.npz", "link.npz"):
        answer = geomgcn(command, "mine.npz", "--out", out)
        assert_refused(
            answer, f"--out {str(Path(out))!r} is the file of the graph itself. Name another file."
        )
    assert Path("mine.npz").read_bytes() == before


def test_a_home_of_nobody_is_refused(geomgcn, monkeypatch):
    monkeypatch.setenv("GEOMGCN_MIRROR", "~no-such-user/mirror")
    assert_refused(
        geomgcn("datasets", "texas"), "GEOMGCN_MIRROR names '~no-such-user/mirror'", "Write the whole"
    )


def test_positions_of_a_graph_have_the_dimensions_they_have(geomgcn):
    path = save_graph(pos=np.eye(8, 2))
    assert geomgcn("embed", path, "--embedding", "coordinates", "--json").json["dim"] == 2
    refused = geomgcn("embed", path, "--embedding", "coordinates", "--dim", "5")
    assert_refused(refused, "brings positions in 2 dimensions, got dim=5. Leave it out")


def test_a_folder_is_no_place_for_a_table(geomgcn):
    Path("there.csv").mkdir()
    assert_refused(
        geomgcn("embed", "karate", "--out", "there.csv"), "'there.csv' is a folder. Name a file in it"
    )


OWN_CLASSES = """
import torch
from geomgcn import Embedding, RelationOperator

class Line(Embedding):
    def embed(self, edge_index, num_nodes):
        return torch.arange(2 * num_nodes).double().view(-1, 2)

class LeftRight(RelationOperator):
    num_relations = 2
    def __call__(self, source, target):
        return (source[:, 0] > target[:, 0]).long()
"""


def test_classes_of_a_file_beside_are_taken_by_reference(geomgcn, monkeypatch):
    Path("things_of_mine.py").write_text(OWN_CLASSES)
    monkeypatch.setattr(sys, "path", list(sys.path))
    answer = geomgcn("embed", "karate", "--embedding", "things_of_mine:Line", "--json")
    assert answer.json["high"] == [66.0, 67.0], answer
    of_both = ("--neighborhood", "things_of_mine:Line", "--relation", "things_of_mine:LeftRight")
    parts = geomgcn("neighborhood", "karate", *of_both, "--json").json["neighborhoods"]
    assert [len(part["by_relation"]) for part in parts] == [2, 2]
    assert geomgcn("train", "karate", *of_both, *QUICK).code == 0
    refused = geomgcn("neighborhood", "karate", "--neighborhood", "things_of_mine:Lime")
    assert_refused(refused, "Unknown embedding 'things_of_mine:Lime'", "Mind upper and lower case")


def test_datasets_prints_objects(geomgcn):
    (row,) = geomgcn("datasets", "karate", "--json").json
    keys = {"name", "nodes", "edges", "features", "classes", "homophily", "components"}
    assert keys <= set(row)
    assert (row["name"], row["nodes"], row["edges"], row["classes"], row["components"]) == (
        "karate",
        34,
        78,
        4,
        1,
    )
    assert "karate" in geomgcn("datasets", "karate").out


@pytest.mark.reference
def test_datasets_prints_the_papers_nine_beside_the_paper(geomgcn):
    rows = geomgcn("datasets", "--json").json
    assert [row["name"] for row in rows] == list(data_sets.PUBLISHED)
    out = geomgcn("datasets").out
    assert "26659" in out.replace(",", "")  # what the actor file holds
    assert "33544" in out.replace(",", "")  # what the paper prints


@pytest.mark.reference
def test_a_note_says_that_a_number_leaks(geomgcn):
    arguments = [
        "--neighborhood",
        "released:isomap",
        "--preset",
        "released",
        "--num-splits",
        1,
        "--max-epochs",
        1,
    ]
    row = geomgcn("train", "citeseer", *arguments, "--json").json
    assert any("carry labels" in note for note in row["notes"])


def test_doctor(geomgcn, monkeypatch):
    answer = geomgcn("doctor", "--json")
    assert answer.code == 0
    assert answer.json["ok"] is True
    monkeypatch.setenv(data_sets.MIRROR_VARIABLE, "no/such/folder")
    answer = geomgcn("doctor")
    assert answer.code == 1
    assert "Failed: data." in answer.out
    monkeypatch.setattr(embeddings.Isomap, "embed", lambda *_: (_ for _ in ()).throw(SystemError("broken")))
    assert geomgcn("doctor", "--json").json["compiled kernels"] == "failed: broken"


def test_demo_writes_its_report(geomgcn, monkeypatch):
    from dataclasses import replace

    from geomgcn.viz import report

    cells = report.demo_cells(2, 0)
    short = [replace(cell, train=replace(cell.train, max_epochs=2)) for cell in cells]
    monkeypatch.setattr(report, "demo_cells", lambda num_splits, seed: short)
    answer = geomgcn("demo", "--out", "there/report", "--num-splits", 2)
    assert answer.code == 0, answer.err
    for cell in cells:
        assert cell.title in answer.out
    written = {path.name for path in Path("there/report").iterdir()}
    assert {"index.html", "report.md"} <= written, written
    shown = geomgcn("demo", "--out", "there/report", "--num-splits", 2, "--json").json
    assert [result["title"] for result in shown["results"]] == [cell.title for cell in cells]
    assert Path(shown["report"]).is_file()


def test_demo_does_not_start_what_it_could_not_write(geomgcn):
    Path("report").write_text("mine")
    assert_refused(geomgcn("demo", "--out", "report"), "report")
    assert Path("report").read_text() == "mine"


# Processes


def test_ctrl_c_keeps_the_runs_that_are_done(geomgcn, monkeypatch):
    done = []

    def fit_until_ctrl_c(*arguments, **options):
        if len(done) == 2:
            signal.raise_signal(signal.SIGINT)
        done.append(fit(*arguments, **options))
        return done[-1]

    fit = training.fit
    monkeypatch.setattr("geomgcn.training._many.fit", fit_until_ctrl_c)
    answer = geomgcn("train", "karate", "--model", "mlp", "--max-epochs", 3, "--json")
    assert answer.code == 130
    assert answer.json["interrupted"] is True
    assert answer.json["per_run"] == [run.test_accuracy for run in done]
    done.clear()
    answer = geomgcn("train", "karate", "--model", "mlp", "--max-epochs", 3)
    assert answer.code == 130
    assert "Interrupted: 2 runs are done" in answer.out


def test_ctrl_c_before_there_is_anything_to_keep(geomgcn, monkeypatch):
    monkeypatch.setattr("geomgcn.experiments._cell.prepare", lambda _: signal.raise_signal(signal.SIGINT))
    assert geomgcn("train", "karate") == Answer(130, "", "Interrupted.\n")


def test_a_reader_that_leaves_is_no_mistake():
    running = process("datasets", "karate")
    running.stdout.close()
    assert running.wait(timeout=120) == 0
    assert running.stderr.read() == ""


def test_python_m_is_the_same_program():
    out, err = process("--version").communicate(timeout=60)
    assert (out, err) == (f"geomgcn {__version__}\n", "")


STOPPER = """
import os, signal, sys
from geomgcn import cli
from geomgcn._progress import Progress

step, stop = Progress.step, int(sys.argv.pop(1))


def step_until_stopped(self, stage, done, total):
    step(self, stage, done, total)
    if done == 20:
        os.kill(os.getpid(), stop)


Progress.step = step_until_stopped
cli.main()
"""


@pytest.mark.parametrize(("stop", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_embedding_that_is_stopped_goes_on_from_there(geomgcn, monkeypatch, stop, code):
    home = Path("home").absolute()
    monkeypatch.setenv("GEOMGCN_HOME", str(home))
    command = ["embed", "karate", "--embedding", "poincare(epochs=40)", "--out", "pos.npz"]
    running = subprocess.run(
        [sys.executable, "-c", STOPPER, str(int(stop)), *command], capture_output=True, text=True
    )
    assert (running.returncode, running.stdout) == (code, "")
    assert running.stderr == "Interrupted. What is done is kept: the same call goes on from there.\n"
    assert not Path("pos.npz").exists()
    assert len(list(home.rglob("*.stopped.safetensors"))) == 1
    geomgcn(*command)
    assert not list(home.rglob("*.stopped.safetensors"))
    stopped = np.load("pos.npz")["pos"]
    monkeypatch.setenv("GEOMGCN_HOME", str(home / "other"))
    geomgcn(*command)
    assert stopped.tobytes() == np.load("pos.npz")["pos"].tobytes()
