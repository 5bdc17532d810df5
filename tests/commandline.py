"""What several tests of the command line share."""

import json
import re
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest

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
