"""The command line as a user meets it: help, mistakes, and files that cannot be used."""

import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from commandline import QUICK, Answer, assert_refused, save_graph
from geomgcn import __version__, _arguments, training

ROOT = Path(__file__).parent.parent.parent
COMMANDS = _arguments.COMMANDS


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
        (["embed", "karate", "--embedding", "poincare(epoch=3)"], ["'epoch'", "Did you mean 'epochs'"]),
        (["embed", "karate", "--embedding", "poincare(epochs)"], ["Cannot read the setting 'epochs'"]),
        (["embed", "karate", "--embedding", "poincare(epochs=3"], ["Write name(setting=value"]),
        (["embed", "karate", "--embedding", "poincare(epochs=0)"], ["epochs", "from 1, got 0"]),
        (["embed", "karate", "--embedding", "poincare", "--seed", "-1"], ["seed", "-1"]),
        (["embed", "karate", "--embedding", "poincare", "--device", "tpu"], ["Unknown device 'tpu'"]),
        (["train", "karate", "--neighborhood", "poincare(seeds=1)"], ["Did you mean 'seed'"]),
        (["neighborhood", "karate", "--neighborhood", "poincare(learning_rate=1e+9)"], ["at most 10"]),
        (["embed", "karate", "--embedding", "struc2vec(window=99999999999999999999)"], ["window", "up to"]),
        (["embed", "karate", "--embedding", "isomap(DIM=0)"], ["at least one axis, got dim=0"]),
        (["embed", "karate", "--embedding", "coordinates(dim=2)"], ["have no settings"]),
        (["embed", "karate", "--embedding", "coordinates()"], ["have no settings"]),
        (["embed", "karate", "--embedding", "spectral", "--seed", "0"], ["Nothing in spectral is random"]),
        (["embed", "karate", "--out", "pos.txt"], [".csv, .npz or .parquet", "'pos.txt'"]),
        (["embed", "karate", "--out", "no/such/pos.csv"], ["folder does not exist"]),
        (["neighborhood", "karate", "--out", "pairs.pt"], [".csv, .npz or .parquet"]),
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

    monkeypatch.setattr("geomgcn.training._many.fit", fit_or_fail)
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
