"""Who may import whom, how long a module may be, and that every module is listed."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "geomgcn"

# Level of each module or package; an import may go to a lower level, or within the same package,
# or to the names listed in SAME_LEVEL.
LEVELS = {
    "_types": 0,
    "_names": 0,
    "_store": 0,
    "_compiled": 0,
    "_progress": 1,
    "relations": 1,
    "distances": 1,
    "graphs": 1,
    "splits": 2,
    "datasets": 2,
    "embeddings": 2,
    "nn": 2,
    "latent": 2,
    "neighborhoods": 3,
    "quality": 4,
    "released": 4,
    "training": 4,
    "experiments": 5,
    "viz": 6,
    "_arguments": 7,
    "_output": 7,
    "_embed": 8,
    "_commands": 9,
    "cli": 10,
    "__main__": 11,
}
LONGEST_MODULE = 400
LONGEST_FUNCTION = 60


def modules() -> list[Path]:
    return sorted(PACKAGE.rglob("*.py"))


def unit(path: Path) -> str:
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    return parts[0]


def imported_units(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[1] for alias in node.names if alias.name.startswith("geomgcn.")}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            head, _, rest = node.module.partition(".")
            if head == "geomgcn":
                found |= {rest.split(".")[0]} if rest else {alias.name for alias in node.names}
    return found - {"__version__"}


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_arrows_point_down(path):
    own = unit(path)
    if own == "__init__":
        return
    assert own in LEVELS, f"list {own} in LEVELS"
    for other in imported_units(path) - {own}:
        assert LEVELS[other] < LEVELS[own], f"{own} must not import {other}"


def test_three_arrows_never_appear():
    for path in modules():
        others = imported_units(path)
        if unit(path) in ("nn", "embeddings"):
            assert "neighborhoods" not in others
        if unit(path) != "__main__":
            assert "cli" not in others


@pytest.mark.parametrize("path", modules(), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_and_functions_are_short(path):
    assert path.read_text().count("\n") <= LONGEST_MODULE
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0]
            docstring = first.end_lineno - first.lineno + 1 if ast.get_docstring(node) else 0
            assert node.end_lineno - node.lineno + 1 - docstring <= LONGEST_FUNCTION, node.name


def test_imports_are_absolute():
    for path in modules():
        for node in ast.walk(ast.parse(path.read_text())):
            assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path.name}: line {node.lineno}"


def test_the_front_door_leads_somewhere():
    import geomgcn

    assert set(geomgcn.__all__) == set(geomgcn._HOME) | set(geomgcn._MODULES)
    for name in geomgcn.__all__:
        assert getattr(geomgcn, name) is not None
