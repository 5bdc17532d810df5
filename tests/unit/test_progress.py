import numpy as np
import pytest

from geomgcn import _progress
from geomgcn._progress import Progress


def test_without_a_path_nothing_is_kept():
    progress = Progress()
    progress.step("epochs", 1, 2)
    progress.keep(pos=np.ones(3))
    assert progress.kept() is None
    assert not progress.flush()
    progress.forget()


def test_what_was_kept_last_is_there_after_a_flush(tmp_path):
    path = tmp_path / "state.safetensors"
    progress, array = Progress(path=path), np.zeros(3)
    for value in (1.0, 2.0):
        array[:] = value
        progress.keep(pos=array, done=np.array(4))
    array[:] = 9.0  # what comes after the last `keep` does not count
    assert not path.exists()
    assert progress.flush()
    kept = Progress(path=path).kept()
    assert kept["pos"].tolist() == [2.0, 2.0, 2.0]
    assert int(kept["done"]) == 4
    progress.forget()
    assert Progress(path=path).kept() is None
    progress.forget()


def test_now_and_then_the_state_is_written(tmp_path, monkeypatch):
    path = tmp_path / "state.safetensors"
    progress = Progress(path=path)
    monkeypatch.setattr(_progress, "SAVE_EVERY", 0.0)
    progress.keep(pos=np.ones(1))
    assert path.exists()


def test_damaged_state_is_said_and_left_alone(tmp_path):
    path = tmp_path / "state.safetensors"
    progress = Progress(path=path)
    progress.keep(pos=np.ones(5))
    progress.flush()
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.warns(UserWarning, match=r"damaged or unreadable\); the run starts again from its beginning"):
        assert progress.kept() is None


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    progress = Progress(path=tmp_path / "file" / "state.safetensors")
    progress.keep(pos=np.ones(5))
    with pytest.warns(UserWarning, match="state of the run could not be kept"):
        assert not progress.flush()
