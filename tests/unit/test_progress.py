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
    with pytest.warns(
        UserWarning, match=r"misplaced or unreadable\); the run starts again from its beginning"
    ):
        assert progress.kept() is None


def test_the_state_of_another_run_is_not_used(tmp_path):
    path = tmp_path / "state.safetensors"
    other = Progress(path=path, key="one")
    other.keep(pos=np.ones(5))
    other.flush()
    with pytest.warns(UserWarning, match="damaged, misplaced or unreadable"):
        assert Progress(path=path, key="two").kept() is None
    assert Progress(path=path, key="one").kept()["pos"].tolist() == [1.0] * 5


def test_what_an_earlier_run_kept_stays_the_same(tmp_path):
    path = tmp_path / "state.safetensors"
    earlier = Progress(path=path)
    earlier.keep(pos=np.ones(5))
    earlier.flush()
    later = Progress(path=path)
    assert later.flush()  # there is something to go on from, though this run has kept nothing yet
    first = later.kept()
    later.keep(pos=np.zeros(5))
    later.flush()
    assert later.kept() is first


def test_a_folder_that_cannot_be_written(tmp_path):
    (tmp_path / "file").write_text("")
    progress = Progress(path=tmp_path / "file" / "state.safetensors")
    progress.keep(pos=np.ones(5))
    with pytest.warns(UserWarning, match="state of the run could not be kept"):
        assert not progress.flush()
    progress.forget()
