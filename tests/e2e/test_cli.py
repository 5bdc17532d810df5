"""The command line as a user meets it: what is printed, where, and with which exit code."""

import json
import os
import pickle
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from geomgcn import __version__, _arguments, cli, embeddings, training
from geomgcn import datasets as data_sets

ROOT = Path(__file__).parent.parent.parent
COMMANDS = _arguments.COMMANDS
QUICK = ("--num-splits", "2", "--max-epochs", "5")


class Answer(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(
            self.out.splitlines()[-1], parse_constant=lambda name: pytest.fail(f"{name} in JSON")
        )


@pytest.fixture
def geomgcn(capsys, tmp_path, monkeypatch):
    """Run the command line in this process, in an empty folder."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments):
        with pytest.raises(SystemExit) as stop:
            cli.main([str(argument) for argument in arguments])
        code = stop.value.code or 0
        return Answer(code, *capsys.readouterr())

    return run


def process(*arguments, **options):
    """Start the command line as a process of its own."""
    command = [sys.executable, "-m", "geomgcn", *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)


def assert_refused(answer, *parts):
    """Check for one line on standard error, exit code 1, and nothing else."""
    assert answer.code == 1, answer
    assert answer.out == ""
    assert re.fullmatch(r"Error: [^\n]+\n", answer.err), answer.err
    for part in parts:
        assert part in answer.err


def save_graph(path="mine.npz", **more):
    source = np.array([0, 1, 2, 3, 4, 5, 0, 3])
    target = np.array([1, 2, 0, 4, 5, 3, 3, 1])
    arrays = {"edge_index": np.stack([source, target]), "x": np.eye(8), "y": np.array([0, 0, 1, 1] * 2)}
    np.savez(path, **{**arrays, **more})
    return path


# Help and usage


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_help_needs_neither_torch_nor_pyg(command):
    code = (
        "import sys; from geomgcn import cli\n"
        f"try: cli.main({[*([command] if command else []), '--help']!r})\n"
        "except SystemExit as stop: assert stop.code == 0\n"
        "heavy = {'torch', 'torch_geometric', 'numpy', 'scipy', 'numba'} & set(sys.modules)\n"
        "assert not heavy, heavy\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stderr
    assert "usage: geomgcn" in found.stdout


def test_help_lists_every_command_with_a_line(geomgcn):
    out = geomgcn("--help").out
    for command in COMMANDS:
        assert re.search(rf"\b{command}\b +\w+", out), command


def test_every_option_is_documented():
    page = (ROOT / "docs" / "cli.md").read_text()
    for command in _arguments.Command.__args__:
        kind = command.__args__[0] if hasattr(command, "__args__") else command.__origin__
        for name in kind.__dataclass_fields__:
            if name not in ("graph", "names"):
                assert f"`--{name.replace('_', '-')}`" in page, f"{kind.__name__}: {name}"


def test_version(geomgcn):
    assert geomgcn("--version") == Answer(0, f"geomgcn {__version__}\n", "")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Expected one of"),
        (["trian"], "Did you mean 'train'?"),
        (["train"], "GRAPH"),
        (["train", "karate", "--splitz", "random"], "--splits"),
        (["train", "karate", "--use", "everything"], "both"),
        (["train", "karate", "--max-epochs", "many"], "many"),
    ],
)
def test_wrong_usage_exits_with_2(geomgcn, arguments, message):
    answer = geomgcn(*arguments)
    assert answer.code == 2
    assert answer.out == ""
    assert message in answer.err
    assert "Traceback" not in answer.err


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (["train", "cornel"], ["'cornel'", "Did you mean 'cornell'"]),
        (["train", "../../x"], ["Unknown dataset '../../x'", "Known: cora"]),
        (["train", "../../cora"], ["Did you mean 'cora'"]),
        (["datasets", "karat"], ["Did you mean 'karate'"]),
        (["train", "karate", "--model", "gnc"], ["Did you mean 'gcn'"]),
        (["train", "karate", "--preset", "papper"], ["Did you mean 'paper'"]),
        (["train", "karate", "--neighborhood", "isomapp"], ["Did you mean 'isomap'"]),
        (["train", "karate", "--neighborhood", "isomap+"], ["Cannot read", "'space+space'"]),
        (["train", "texas", "--neighborhood", "released:mds"], ["'mds'", "isomap"]),
        (["train", "karate", "--relation", "quadrant"], ["Did you mean 'quadrants'"]),
        (["embed", "karate", "--embedding", "isomop"], ["Did you mean 'isomap'"]),
        (["embed", "karate", "--dim", "0"], ["dim", "0"]),
        (["embed", "karate", "--out", "pos.txt"], [".csv or .npz", "'pos.txt'"]),
        (["embed", "karate", "--out", "no/such/pos.csv"], ["folder does not exist"]),
        (["neighborhood", "karate", "--out", "pairs.pt"], [".csv or .npz"]),
        (["train", "karate", "--splits", "published"], ["--splits random"]),
        (["train", "karate", "--num-splits", "0"], ["num_splits"]),
        (["train", "karate", "--dropout", "1"], ["dropout"]),
        (["train", "karate", "--learning-rate", "nan"], ["learning_rate", "nan"]),
        (["train", "karate", "--patience", "0"], ["patience"]),
        (["train", "karate", "--device", "tpu"], ["Unknown device 'tpu'", "'cpu'"]),
        (["train", "karate", "--seed", "-1"], ["seed", "-1"]),
        (["train", "karate", "--seed", str(2**70)], ["seed"]),
        (["demo", "--seed", "-1"], ["seed"]),
        (["demo", "--num-splits", "0"], ["num_splits"]),
        (["train", "karate", "--model", "mlp", "--neighborhood", "nonsense"], ["Unknown space 'nonsense'"]),
        (["train", "karate", "--neighborhood", "poincar"], ["'released:poincare'"]),
        (["train", "karate", "--seed", str(2**32 - 1), "--num-splits", "2"], ["Take a smaller seed"]),
        (["embed", "karate", "--embedding", "coordinates"], ["Store them as 'pos'"]),
        (["train", "absent.npz"], ["absent.npz"]),
        (["embed", "absent.npz", "--out", "pos.npz"], ["absent.npz"]),
        (["train", "karate", "--device", "xpu"], ["needs a XPU device", "Use device='cpu'"]),
        (["train", "karate", "--device", "mps"], ["needs a MPS device", "Use device='cpu'"]),
        (["train", "karate", "--hidden", str(10**23)], ["hidden must be a whole number from 1 to 65536"]),
        (["train", "karate", "--learning-rate", "1e300"], ["learning_rate", "1e+300"]),
        (["train", "karate", "--relation", f"sectors:{10**12}"], ["from 1 to 360"]),
        (["train", "karate", "--use", "graph", "--control"], ["leaves N_s out"]),
        (
            ["neighborhood", "texas", "--neighborhood", "Released:Isomapp"],
            ["'isomapp'", "Did you mean 'isomap'"],
        ),
        (["train", "mine.pt"], ["mine.pt", "refused", "numpy.savez"]),
    ],
)
def test_mistakes_are_answered_in_one_line(geomgcn, arguments, parts):
    assert_refused(geomgcn(*arguments), *parts)
    assert not list(Path().iterdir())


def test_no_dataset_is_reached_by_a_path(geomgcn, tmp_path):
    (tmp_path / "x").mkdir()
    assert_refused(geomgcn("train", "./x"), "Unknown dataset './x'")


# Files of the user's own


def test_hostile_files_are_refused_and_not_run(geomgcn, tmp_path):
    class Bomb:
        def __reduce__(self):
            return os.mkdir, (str(tmp_path / "owned"),)

    for name in ("a.pt", "b.pkl"):
        Path(name).write_bytes(pickle.dumps(Bomb()))
        assert_refused(geomgcn("train", name), name, "refused")
    save_graph("c.npz", x=np.array([Bomb()] * 8, dtype=object))
    assert_refused(geomgcn("train", "c.npz"), "c.npz")
    assert not (tmp_path / "owned").exists()


@pytest.mark.parametrize(
    ("arrays", "parts"),
    [
        ({"edge_index": np.array([[0, 9], [1, 0]])}, ["ids from 0 to 7, got 9 -> 0"]),
        ({"edge_index": np.array([[0, -1], [1, 0]])}, ["-1"]),
        ({"x": np.full((8, 2), np.nan)}, ["16", "node 0"]),
        ({"y": np.zeros(8, dtype=int)}, ["two classes"]),
        ({"y": np.full(8, -1)}, ["label"]),
    ],
    ids=["id too large", "negative id", "NaN", "one class", "no labels"],
)
def test_graphs_that_cannot_be_trained_on(geomgcn, arrays, parts):
    assert_refused(geomgcn("train", save_graph(**arrays), *QUICK), *parts)


def test_positions_must_be_finite(geomgcn):
    pos = np.zeros((8, 2))
    pos[5, 1] = np.inf
    assert_refused(
        geomgcn("train", save_graph(pos=pos), "--neighborhood", "coordinates", *QUICK), "1", "node 5"
    )


def masks(train):
    nodes = np.arange(8)
    return {"train_mask": np.isin(nodes, train), "val_mask": nodes == 6, "test_mask": nodes == 7}


def test_a_class_that_is_never_trained_is_refused(geomgcn):
    assert_refused(geomgcn("train", save_graph(**masks([0, 1])), *QUICK[2:]), "no train nodes of class 1")


def test_overlapping_parts_are_refused(geomgcn):
    assert_refused(
        geomgcn("train", save_graph(**masks([0, 2, 7])), *QUICK[2:]), "both train and test", "first node 7"
    )


def test_warnings_are_one_line_each(geomgcn):
    answer = geomgcn("train", save_graph(**masks([0, 2, 3])), "--model", "gcn", *QUICK[2:])
    assert answer.code == 0
    lines = answer.err.splitlines()
    assert len(lines) == 2, answer.err
    assert all(
        re.fullmatch(r"Warning: The split has no (val|test) nodes of class 0: .*\.", line) for line in lines
    )


@pytest.mark.parametrize("nodes", [1, 5])
def test_a_graph_without_edges_can_be_described(geomgcn, nodes):
    save_graph(edge_index=np.zeros((2, 0), dtype=int), x=np.eye(nodes), y=np.zeros(nodes, dtype=int))
    assert geomgcn("embed", "mine.npz", "--json").json["nodes"] == nodes
    assert [
        part["pairs"] for part in geomgcn("neighborhood", "mine.npz", "--json").json["neighborhoods"]
    ] == [0, 0]


def test_an_altered_archive_is_refused(geomgcn):
    path = Path(save_graph())
    sound = path.read_bytes()
    generator = np.random.default_rng(0)
    for _ in range(300):
        altered = bytearray(sound)
        for place in generator.integers(len(sound), size=3):
            altered[place] = generator.integers(256)
        path.write_bytes(altered)
        answer = geomgcn("neighborhood", path)
        if answer.code:
            assert_refused(answer)


def test_a_run_that_fails_keeps_those_before_it(geomgcn, monkeypatch):
    fit, done = training.fit, []

    def fit_or_fail(*arguments, **options):
        if len(done) == 2:
            raise RuntimeError("Training diverged.")
        done.append(fit(*arguments, **options))
        return done[-1]

    monkeypatch.setattr("geomgcn.training._runs.fit", fit_or_fail)
    answer = geomgcn("train", "karate", "--model", "gat", "--max-epochs", 3, "--json")
    assert answer.code == 1
    assert answer.err == "Warning: Run 2 failed: Training diverged. The 2 runs before it are kept.\n"
    assert answer.json["per_run"] == [run.test_accuracy for run in done]
    assert answer.json["failure"] == "Run 2 failed: Training diverged."


def test_options_without_effect_are_noted(geomgcn):
    notes = geomgcn("train", "karate", "--model", "gcn", "--control", *QUICK, "--json").json["notes"]
    assert notes == ["GCN has no structural neighborhood: control had no effect."]


def test_positions_in_a_file_can_be_embedded(geomgcn):
    pos = np.random.default_rng(0).normal(size=(8, 3))
    answer = geomgcn("embed", save_graph(pos=pos), "--embedding", "coordinates", "--out", "out.npz", "--json")
    assert answer.json["dim"] == 3
    assert np.array_equal(np.load("out.npz")["pos"], pos)


def test_an_own_graph_from_file_to_accuracy(geomgcn):
    save_graph(pos=np.random.default_rng(0).normal(size=(8, 2)))
    row = geomgcn("train", "mine.npz", "--neighborhood", "coordinates", *QUICK, "--json").json
    assert row["test_accuracy"]["runs"] == 2


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
    monkeypatch.setattr("geomgcn.training._runs.fit", fit_until_ctrl_c)
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
