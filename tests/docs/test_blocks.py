"""Every code block of README and docs runs.

Python blocks of a page run in order, in one namespace. Console blocks run line by line: ``geomgcn`` commands
in process, those that train cut short; ``make`` commands are looked up in the Makefile, since they run these
tests. A comment ``<!-- needs: data -->`` before a block marks it as a reference test.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from geomgcn import cli

ROOT = Path(__file__).parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
BLOCK = re.compile(r"(?P<note><!--[^\n]*-->\n)?^```(?P<language>\w*)\n(?P<body>.*?)^```$", re.M | re.S)
QUICK = ["--max-epochs", "3", "--num-splits", "1"]


class Block(NamedTuple):
    language: str
    body: str
    needs_data: bool
    line: int


def blocks(page: Path) -> list[Block]:
    text = page.read_text()
    found = []
    for match in BLOCK.finditer(text):
        note = match["note"] or ""
        found.append(
            Block(
                match["language"], match["body"], "needs: data" in note, text[: match.start()].count("\n") + 1
            )
        )
    return found


def test_every_block_is_of_a_kind_that_runs():
    for page in PAGES:
        for block in blocks(page):
            assert block.language in ("python", "console", "bibtex"), f"{page.name}:{block.line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_blocks_run(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.language == "python" and not block.needs_data:
            # A file of its own, as users have: dataclasses and inspect look their source up.
            exec(compile("\n" * block.line + block.body, str(page), "exec"), namespace)


def commands(needs_data: bool) -> list[object]:
    found = []
    for page in PAGES:
        for block in blocks(page):
            if block.language == "console" and block.needs_data == needs_data:
                for line in block.body.splitlines():
                    assert line.startswith("$ "), f"{page.name}:{block.line}: {line}"
                    found.append(pytest.param(line[2:].split("  #")[0], id=f"{page.stem}:{line[2:50]}"))
    return found


@pytest.fixture
def own_graph(tmp_path, monkeypatch):
    """The folder in which the guide has just saved its graph, and the user the classes of `extend`."""
    monkeypatch.chdir(tmp_path)
    for block in blocks(ROOT / "docs" / "guide.md"):
        if "my_graph.npz" in block.body and block.language == "python":
            exec(block.body, {})
    classes = [block.body for block in blocks(ROOT / "docs" / "extend.md") if "\nclass " in block.body]
    Path("my_spaces.py").write_text("\n".join(["from geomgcn import datasets", *classes[:2]]))
    monkeypatch.syspath_prepend(tmp_path)
    yield
    sys.modules.pop("my_spaces", None)


def run_line(line: str) -> None:
    program, *arguments = shlex.split(line)
    if program == "make":
        subprocess.run(["make", "-n", *arguments], cwd=ROOT, check=True, stdout=subprocess.PIPE)
        return
    if program == "pip":
        assert "constraints.txt" in line
        return
    if program == "git" or program == "cd":
        return
    if program == "python":
        subprocess.run([sys.executable, ROOT / arguments[0], "--help"], check=True, stdout=subprocess.PIPE)
        return
    assert program == "geomgcn", line
    if arguments[0] == "demo":
        pytest.skip("the demo has a test of its own, and 'make demo' runs it")
    if arguments[0] == "train":
        arguments += QUICK
    with pytest.raises(SystemExit) as stop:
        cli.main(arguments)
    assert stop.value.code == 0, line


@pytest.mark.filterwarnings("ignore:The split has no")
@pytest.mark.usefixtures("own_graph")
@pytest.mark.parametrize("line", commands(needs_data=False))
def test_console_lines_run(line):
    run_line(line)


@pytest.mark.reference
@pytest.mark.filterwarnings("ignore:The split has no")
@pytest.mark.usefixtures("own_graph")
@pytest.mark.parametrize("line", commands(needs_data=True))
def test_console_lines_that_need_data_run(line):
    run_line(line)


def test_links_between_pages_lead_somewhere():
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_no_page_holds_an_empty_place():
    for page in PAGES:
        notes = set(re.findall(r"<!--.*?-->", page.read_text(), re.S))
        assert notes <= {"<!-- needs: data -->"}, f"{page.name}: {notes}"
