"""Settings that every test needs: no user's cache, a mirror of the data where there is one, no noise."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NEIGHBORING_MIRROR = ROOT.parent / "shared" / "data" / "mirror"
MIRROR_VARIABLE = "GEOMGCN_MIRROR"

if MIRROR_VARIABLE not in os.environ and NEIGHBORING_MIRROR.is_dir():
    os.environ[MIRROR_VARIABLE] = str(NEIGHBORING_MIRROR)


@pytest.fixture(autouse=True, scope="session")
def _own_cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Keep computed arrays and downloads of the tests away from the user's."""
    os.environ["GEOMGCN_HOME"] = str(tmp_path_factory.mktemp("geomgcn-home"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip what needs published files or a GPU where there is none, and say so."""
    import torch

    no_mirror = pytest.mark.skip(reason=f"needs a mirror of the data, see {MIRROR_VARIABLE}")
    no_gpu = pytest.mark.skip(reason="needs a CUDA device")
    for item in items:
        if item.get_closest_marker("reference") and MIRROR_VARIABLE not in os.environ:
            item.add_marker(no_mirror)
        if item.get_closest_marker("gpu") and not torch.cuda.is_available():
            item.add_marker(no_gpu)
