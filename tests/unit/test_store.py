import json
import os
import signal
import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from geomgcn import _store

ARRAYS = {
    "pos": np.arange(6.0).reshape(3, 2),
    "ids": np.array([1, 2, 3], np.uint16),
    "none": np.empty((0, 2), np.int64),
    "scalar": np.array(True),
}


def files(folder):
    return sorted(path.name for path in folder.iterdir())


def test_cache_folder_follows_the_environment(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOMGCN_HOME", str(tmp_path / "a" / "b"))
    assert _store.cache_folder() == tmp_path / "a" / "b"
    assert (tmp_path / "a" / "b").is_dir()


def test_cache_folder_that_cannot_be_made(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GEOMGCN_HOME", str(tmp_path / "file" / "x"))
    with pytest.raises(
        OSError, match=r"cannot be made: .*Set GEOMGCN_HOME to a folder that you can write to"
    ):
        _store.cache_folder()


def test_cache_folder_that_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.setenv("GEOMGCN_HOME", str(tmp_path))
    monkeypatch.setattr(os, "access", lambda *_: False)  # chmod does not stop root
    with pytest.raises(OSError, match=r"can be written to, got .*Set GEOMGCN_HOME"):
        _store.cache_folder()


def test_write_atomic_replaces(tmp_path):
    path = tmp_path / "deep" / "file"
    _store.write_atomic(path, lambda file: file.write(b"old"))
    _store.write_atomic(str(path), lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"
    assert files(path.parent) == ["file"]


@pytest.mark.parametrize("fault", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_writer_that_fails_leaves_the_old_file(tmp_path, fault):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def writer(file):
        file.write(b"half of the ne")
        raise fault

    with pytest.raises(type(fault)):
        _store.write_atomic(path, writer)
    assert path.read_bytes() == b"old"
    assert files(tmp_path) == ["file"]


def test_kill_in_the_middle_leaves_the_old_file(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    program = (
        "import sys, time; from geomgcn import _store\n"
        "def writer(file):\n"
        "    file.write(b'half'); file.flush(); print('writing', flush=True); time.sleep(60)\n"
        f"_store.write_atomic({str(path)!r}, writer)"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"writing\n"
        process.send_signal(signal.SIGKILL)
    assert path.read_bytes() == b"old"
    _store.write_atomic(path, lambda file: file.write(b"new"))
    assert path.read_bytes() == b"new"


def test_digest_sees_names_types_shapes_values_and_settings():
    x = np.arange(4)
    digests = {
        _store.digest({"x": x}, {}),
        _store.digest({"y": x}, {}),
        _store.digest({"x": x.astype(np.int32)}, {}),
        _store.digest({"x": x.reshape(2, 2)}, {}),
        _store.digest({"x": x[::-1]}, {}),
        _store.digest({"x": x}, {"dim": 2}),
    }
    assert len(digests) == 6
    a, b = {"x": x, "y": x}, {"y": x, "x": x}
    assert _store.digest(a, {"k": 1, "l": 2}) == _store.digest(b, {"l": 2, "k": 1})
    assert _store.digest({"x": np.arange(8)[::2]}, {}) == _store.digest({"x": np.arange(0, 8, 2)}, {})


def test_save_and_load(tmp_path):
    path = tmp_path / "a.safetensors"
    _store.save_arrays(path, ARRAYS | {"turned": ARRAYS["pos"].T}, {"dim": 2, "names": ["a", None]})
    arrays, metadata = _store.load_arrays(path)
    assert metadata == {"dim": 2, "names": ["a", None]}
    assert arrays["turned"].tolist() == ARRAYS["pos"].T.tolist()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        assert arrays[name].shape == array.shape
        np.testing.assert_array_equal(arrays[name], array)


def test_every_flipped_byte_is_noticed(tmp_path):
    path = tmp_path / "a.safetensors"
    _store.save_arrays(path, {"x": np.arange(4.0)}, {"dim": 2})
    sound = path.read_bytes()
    for place in range(len(sound)):
        path.write_bytes(sound[:place] + bytes([sound[place] ^ 1]) + sound[place + 1 :])
        try:
            arrays, metadata = _store.load_arrays(path)
        except ValueError:
            continue
        # What remains is white space with which the header is padded.
        assert sound[place] == ord(" ")
        assert (arrays["x"].tolist(), metadata) == ([0.0, 1.0, 2.0, 3.0], {"dim": 2})


@pytest.mark.parametrize("contents", [b"", b"\xff" * 8, b"{}", json.dumps({}).encode() * 100])
def test_other_files_are_refused(tmp_path, contents):
    path = tmp_path / "a.safetensors"
    path.write_bytes(contents)
    with pytest.raises(ValueError, match=r"is damaged or was not written by geomgcn. Delete it"):
        _store.load_arrays(path)


def test_the_same_contents_are_the_same_bytes(tmp_path):
    found = set()
    for i in range(20):
        path = tmp_path / f"{i}.safetensors"
        _store.save_arrays(path, {"x": np.eye(2), "y": np.ones(3)}, {"seed": 0, "dim": 2})
        found.add(path.read_bytes())
    assert len(found) == 1


def test_a_missing_file_is_not_a_damaged_one(tmp_path):
    with pytest.raises(FileNotFoundError):
        _store.load_arrays(tmp_path / "none")


class Counter:
    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return {"y": np.full(3, 7.0)}


def test_cache_hit_and_miss(tmp_path):
    compute = Counter()
    for settings, graph in [({"v": 1}, [0]), ({"v": 1}, [0]), ({"v": 2}, [0]), ({"v": 1}, [1])]:
        found = _store.cached_arrays("kind", settings, {"edges": np.array(graph)}, compute, tmp_path)
        assert found["y"].tolist() == [7.0, 7.0, 7.0]
    assert compute.calls == 3


def test_damaged_entry_is_rebuilt(tmp_path):
    compute = Counter()
    _store.cached_arrays("kind", {}, {}, compute, tmp_path)
    (entry,) = (tmp_path / "kind").glob("*.safetensors")
    sound = entry.read_bytes()
    entry.write_bytes(sound[:-1] + bytes([sound[-1] ^ 64]))
    with pytest.warns(UserWarning, match=r"cannot be used .* computed again and replaced"):
        found = _store.cached_arrays("kind", {}, {}, compute, tmp_path)
    assert found["y"].tolist() == [7.0, 7.0, 7.0]
    assert entry.read_bytes() == sound
    assert compute.calls == 2


def test_an_entry_under_another_name_is_not_used(tmp_path):
    for version in (1, 2):
        _store.cached_arrays("kind", {"v": version}, {}, lambda v=version: {"y": np.full(3, v)}, tmp_path)
    one, two = (tmp_path / "kind").glob("*.safetensors")
    one.write_bytes(two.read_bytes())
    found = []

    def embed_both():
        for version in (1, 2):
            fresh = {"y": np.full(3, version)}
            entry = _store.cached_arrays("kind", {"v": version}, {}, lambda y=fresh: y, tmp_path)
            found.append(entry["y"][0])

    with pytest.warns(UserWarning, match=r"damaged, misplaced or unreadable\); it is computed again"):
        embed_both()
    assert found == [1, 2]


def test_folder_that_cannot_be_made_loses_nothing(tmp_path):
    (tmp_path / "file").touch()
    with pytest.warns(UserWarning, match=r"complete but was not cached.*Set GEOMGCN_HOME"):
        found = _store.cached_arrays("kind", {}, {}, Counter(), tmp_path / "file")
    assert found["y"].tolist() == [7.0, 7.0, 7.0]


def test_full_disk_loses_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.warns(UserWarning, match=r"not cached.*No space left on device"):
        found = _store.cached_arrays("kind", {}, {}, Counter(), tmp_path)
    assert found["y"].tolist() == [7.0, 7.0, 7.0]
    assert not list((tmp_path / "kind").glob("*safetensors*tmp"))


def test_an_error_of_the_computation_is_passed_on(tmp_path):
    def compute():
        raise OSError("from the computation")

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(OSError, match="from the computation"):
            _store.cached_arrays("kind", {}, {}, compute, tmp_path)
    # The lock is free again.
    assert _store.cached_arrays("kind", {}, {}, Counter(), tmp_path)["y"].tolist() == [7.0, 7.0, 7.0]


def test_two_threads_compute_once(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        time.sleep(0.2)
        return {"y": np.ones(1)}

    threads = [
        threading.Thread(target=_store.cached_arrays, args=("kind", {}, {}, compute, tmp_path))
        for _ in range(3)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(calls) == 1


FILL = """
import sys, time
import numpy as np
from geomgcn import _store
def compute():
    print("computing", flush=True)
    time.sleep(float(sys.argv[2]))
    return {"y": np.arange(1000.0)}
print(_store.cached_arrays("kind", {}, {}, compute, sys.argv[1])["y"].sum(), flush=True)
"""


def fill(folder, seconds):
    command = [sys.executable, "-c", FILL, str(folder), str(seconds)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def test_processes_fill_one_entry_once(tmp_path):
    processes = [fill(tmp_path, 0.3) for _ in range(3)]
    output = "".join(process.communicate()[0] for process in processes)
    assert output.count("computing") == 1
    assert output.count("499500.0") == 3


def test_a_killed_process_blocks_nobody(tmp_path):
    with fill(tmp_path, 60) as process:
        assert process.stdout.readline() == "computing\n"
        process.send_signal(signal.SIGKILL)
    assert _store.cached_arrays("kind", {}, {}, Counter(), tmp_path)["y"].tolist() == [7.0, 7.0, 7.0]
