import hashlib
import http.server
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from geomgcn.datasets import DataError, RemoteFile, _download, fetch, fetch_file, known_files

CONTENTS = b"node_id\tnode_id\n0\t1\n"
SHA256 = hashlib.sha256(CONTENTS).hexdigest()


class Server:
    """A local publisher whose answer can be spoiled; it counts requests."""

    def __init__(self):
        self.answer, self.status, self.announced, self.requests = CONTENTS, 200, None, 0
        owner = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                owner.requests += 1
                self.send_response(owner.status)
                self.send_header("Content-Length", str(owner.announced or len(owner.answer)))
                self.end_headers()
                self.wfile.write(owner.answer)

            def log_message(self, *_):
                """Keep the test output clean."""

        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.http.serve_forever, args=(0.01,), daemon=True).start()
        host = f"127.0.0.1:{self.http.server_port}"
        self.file = RemoteFile(f"http://{host}/data/edges.txt", len(CONTENTS), SHA256)


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.delenv("GEOMGCN_MIRROR", raising=False)
    server = Server()
    yield server
    server.http.shutdown()
    server.http.server_close()


def files_under(folder):
    return sorted(path.name for path in folder.rglob("*") if path.is_file() and path.name != ".lock")


def test_download_is_kept_and_not_repeated(server, tmp_path):
    assert fetch_file(server.file, tmp_path) == CONTENTS
    assert (tmp_path / server.file.path).read_bytes() == CONTENTS
    assert fetch_file(server.file, tmp_path) == CONTENTS
    assert server.requests == 1


def test_cache_folder_is_the_default(server, tmp_path, monkeypatch):
    monkeypatch.setenv("GEOMGCN_HOME", str(tmp_path))
    fetch_file(server.file)
    assert (tmp_path / "raw" / server.file.path).read_bytes() == CONTENTS


@pytest.mark.parametrize("altered", [CONTENTS[:-1], CONTENTS.replace(b"1", b"2"), b""])
def test_altered_cached_file_is_noticed_and_fetched_again(server, tmp_path, caplog, altered):
    path = tmp_path / server.file.path
    path.parent.mkdir(parents=True)
    path.write_bytes(altered)
    assert fetch_file(server.file, tmp_path) == CONTENTS
    assert path.read_bytes() == CONTENTS
    assert "was altered since it was fetched" in caplog.text


def test_altered_cached_file_stays_refused_offline(server, tmp_path):
    path = tmp_path / server.file.path
    path.parent.mkdir(parents=True)
    path.write_bytes(b"altered")
    server.status = 503
    with pytest.raises(DataError, match="could not be downloaded"):
        fetch_file(server.file, tmp_path)


@pytest.mark.parametrize("wrong", [b"<html>moved</html>", CONTENTS[:-1], CONTENTS + b"2\t3\n", b""])
def test_wrong_download_names_both_hashes_and_leaves_nothing(server, tmp_path, wrong):
    server.answer = wrong
    actual = hashlib.sha256(wrong).hexdigest()
    message = f"{server.file.url} is damaged.*{SHA256} .*got {actual} .*Try again, or set GEOMGCN_MIRROR"
    with pytest.raises(DataError, match=message):
        fetch_file(server.file, tmp_path)
    assert files_under(tmp_path) == []


def test_truncated_download_leaves_nothing(server, tmp_path):
    server.answer, server.announced = CONTENTS[:5], len(CONTENTS)
    with pytest.raises(DataError, match=f"{server.file.url} .*GEOMGCN_MIRROR"):
        fetch_file(server.file, tmp_path)
    assert files_under(tmp_path) == []


def test_endless_download_is_cut_off(server, tmp_path, monkeypatch):
    monkeypatch.setattr(_download, "EXCESS", 10)
    server.answer = CONTENTS * 100
    with pytest.raises(
        DataError, match=f"needs {len(CONTENTS)} bytes, and the server sends far more.*mirror"
    ):
        fetch_file(server.file, tmp_path)
    assert files_under(tmp_path) == []


def test_missing_file_names_the_url(server, tmp_path):
    server.status = 404
    with pytest.raises(DataError, match=f"{server.file.url} could not be downloaded: 404"):
        fetch_file(server.file, tmp_path)


def test_offline_says_how_to_use_a_mirror(server, tmp_path):
    server.http.shutdown()
    server.http.server_close()
    message = f"could not be downloaded.*set GEOMGCN_MIRROR to a folder that holds it as {server.file.path}"
    with pytest.raises(DataError, match=message):
        fetch_file(server.file, tmp_path)
    assert files_under(tmp_path) == []


def test_many_at_once_download_once(server, tmp_path):
    (tmp_path / ".lock").touch()  # left by a process that died
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda _: fetch_file(server.file, tmp_path), range(8)))
    assert found == [CONTENTS] * 8
    assert server.requests == 1


def test_full_disk_does_not_lose_the_download(server, tmp_path, monkeypatch):
    def full(path, writer):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(_download, "write_atomic", full)
    with pytest.warns(UserWarning, match="No space left on device.*every run will download it again"):
        assert fetch_file(server.file, tmp_path) == CONTENTS


def test_root_that_cannot_be_made_does_not_lose_the_download(server, tmp_path):
    (tmp_path / "occupied").write_text("a file, not a folder")
    with pytest.warns(UserWarning, match="could not be written"):
        assert fetch_file(server.file, tmp_path / "occupied") == CONTENTS


@pytest.fixture
def mirror(server, tmp_path, monkeypatch):
    folder = tmp_path / "mirror"
    monkeypatch.setenv("GEOMGCN_MIRROR", str(folder))
    path = folder / server.file.path
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENTS)
    return path


def test_mirror_replaces_the_network(server, mirror, tmp_path):
    assert fetch_file(server.file) == CONTENTS
    assert fetch_file(server.file, tmp_path / "empty root") == CONTENTS
    assert server.requests == 0


def test_altered_mirror_names_file_and_hashes(server, mirror):
    mirror.write_bytes(b"altered")
    actual = hashlib.sha256(b"altered").hexdigest()
    with pytest.raises(DataError, match=f"mirror's '{mirror}' of {server.file.url}.*{SHA256}.*{actual}"):
        fetch_file(server.file)


def test_file_that_the_mirror_lacks_names_url_and_mirror(server, mirror):
    mirror.unlink()
    with pytest.raises(
        DataError, match=f"{server.file.url} needs to be in the mirror, and '{mirror}' is no file"
    ):
        fetch_file(server.file)
    assert server.requests == 0


def test_root_goes_before_the_mirror(server, mirror, tmp_path):
    mirror.unlink()
    path = tmp_path / "root" / server.file.path
    path.parent.mkdir(parents=True)
    path.write_bytes(CONTENTS)
    assert fetch_file(server.file, tmp_path / "root") == CONTENTS


def test_only_files_with_a_known_hash_are_fetched():
    with pytest.raises(DataError, match=r"No hash is known for 'https://example.org/a'\. Only files listed"):
        fetch("https://example.org/a")


def test_known_files_are_pinned_by_whole_hashes():
    assert all(len(file.sha256) == 64 and file.num_bytes > 0 for file in known_files().values())
    assert all(url.startswith("https://") and ".." not in url for url in known_files())
