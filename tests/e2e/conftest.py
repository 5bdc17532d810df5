"""The command line, run in this process."""

import pytest

from commandline import Answer
from geomgcn import cli


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
