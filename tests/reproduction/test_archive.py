"""Fetching the archive: all expected files, verified, or nothing at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pate_cli.core.errors import OutputError, UsageError, VoteError
from pate_cli.reproduction.archive import fetch_votes

FILES = {"one.npy": b"first" * 1000, "two.npy": b"second" * 900, "three.npy": os.urandom(5000)}
EXPECTED = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
TWO = {name: FILES[name] for name in ("one.npy", "two.npy")}
MIB = 1 << 20


def tarred(files, *, folder="data/", extra=()):
    """A tar of files after `extra` members, given as names or TarInfos without content."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:") as tar:
        for member in extra:
            tar.addfile(member)
        for name, data in files.items():
            info = tarfile.TarInfo(folder + name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def zipped(files):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.mkdir("data")
        for name, data in files.items():
            archive.writestr(f"data/{name}", data)
    return buffer.getvalue()


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type, info.linkname = kind, target
    return info


@pytest.fixture
def target(tmp_path):
    return tmp_path / "votes"


@pytest.fixture
def fetch(tmp_path, target):
    """Fetch an archive given as bytes from a file:// address."""

    def call(data, *, into=target, **limits):
        source = tmp_path / "votes.gz"
        source.write_bytes(data)
        return fetch_votes(source.as_uri(), into, expected=EXPECTED, **limits)

    return call


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


OTHERS = {"README": b"hello", "._one.npy": b"resource fork"}
SPECIAL = [
    special("data", tarfile.DIRTYPE),
    special("data/three.npy", tarfile.SYMTYPE, "/etc/passwd"),
    special("two.npy", tarfile.LNKTYPE, "data/one.npy"),
    special("one.npy", tarfile.CHRTYPE),
    special("x/two.npy", tarfile.FIFOTYPE),
]


@pytest.mark.parametrize(
    "data",
    [
        gzip.compress(tarred(FILES)),
        tarred(FILES, folder=""),
        zipped(FILES),
        gzip.compress(zipped(FILES)),
        tarred(FILES | OTHERS),
        tarred(FILES, extra=SPECIAL),
        tarred(FILES, folder="../../"),
        tarred(FILES, folder="/tmp/"),  # noqa: S108  a name only
    ],
    ids=["tar.gz", "flat", "zip", "zip.gz", "with others", "with links", "climbing", "absolute"],
)
def test_expected_files_are_taken_by_name_and_nothing_else_is(fetch, tmp_path, target, data):
    assert fetch(data) == tuple(FILES)
    assert contents(target) == FILES
    assert not any(file.is_symlink() for file in target.iterdir())
    assert {file.name for file in tmp_path.iterdir()} == {"votes.gz", "votes"}


GOOD = tarred(FILES)
LINKED = tarred(TWO, extra=[special("data/three.npy", tarfile.SYMTYPE, "data/one.npy")])
BAD = {
    "tampered": (tarred(FILES | {"two.npy": b"sEcond" * 900}), "two.npy in the archive has anoth"),
    "missing": (tarred({"one.npy": FILES["one.npy"]}), "the archive lacks two.npy, three.npy"),
    "a link instead": (LINKED, "the archive lacks three.npy"),
    "another before": (tarred(FILES, extra=[tarfile.TarInfo("one.npy")]), "has another sha256"),
    "truncated gzip": (gzip.compress(GOOD)[:-1500], "damaged, cut short"),
    "truncated tar": (gzip.compress(GOOD[: len(GOOD) // 2]), "damaged, cut short"),
    "damaged gzip": (gzip.compress(GOOD)[:40] + b"\0" * 900, "damaged, cut short"),
    "truncated zip": (zipped(FILES)[:-40], "damaged, cut short"),
    "lone file": (gzip.compress(FILES["one.npy"]), "no tar or zip"),
    "no archive": (b"<html>Not Found</html>", "no tar or zip"),
    "empty": (b"", "no tar or zip"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_a_bad_archive_leaves_nothing_behind(fetch, tmp_path, case):
    data, reason = BAD[case]
    with pytest.raises(VoteError) as caught:
        fetch(data, into=tmp_path / "a" / "b")
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3
    assert [file.name for file in tmp_path.iterdir()] == ["votes.gz"]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (gzip.compress(tarred({"one.npy": bytes(40 * MIB)})), "unpacks to more bytes than"),
        (zipped({"one.npy": bytes(40 * MIB)}), "unpacks to more bytes than"),
        (zipped({name: bytes(MIB) for name in FILES}), "unpacks to more bytes than"),
        (os.urandom(3 * MIB), "larger than 2 MiB; refused"),
    ],
    ids=["tar.gz", "zip", "in total", "download"],
)
def test_bombs_are_refused(fetch, target, data, reason):
    with pytest.raises(VoteError, match=reason):
        fetch(data, most=2 * MIB)
    assert not target.exists()


def test_what_is_there_already_is_left_alone(fetch, target):
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    (target / "one.npy").write_bytes(FILES["one.npy"])
    before = (target / "one.npy").stat().st_ino
    fetch(GOOD)
    assert (target / "one.npy").stat().st_ino == before
    assert contents(target) == FILES | {"mine.txt": b"mine"}
    # All there: nothing is fetched, so what the address holds does not matter.
    assert fetch(b"no archive") == tuple(FILES)


def test_another_file_of_an_expected_name_is_not_replaced(fetch, target):
    target.mkdir()
    (target / "two.npy").write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"two.npy exists and is not the authors' file"):
        fetch(GOOD)
    assert contents(target) == {"two.npy": b"mine"}


def test_a_failing_disk_leaves_nothing_behind(fetch, target, monkeypatch):
    synced, fsync = [], os.fsync

    def failing(descriptor):
        synced.append(descriptor)
        if len(synced) == 3:
            raise OSError(28, "No space left on device")
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OutputError, match="No space left"):
        fetch(GOOD)
    assert not target.exists()


def test_an_unwritable_target_is_an_output_error(fetch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written: Not a directory") as caught:
        fetch(GOOD, into=tmp_path / "file" / "votes")
    assert caught.value.exit_code == 6
    with pytest.raises(OutputError, match="cannot be written: File exists"):
        fetch(GOOD, into=tmp_path / "file")
    assert (tmp_path / "file").read_text() == "in the way"


# Over HTTP, from this machine.


class Server(BaseHTTPRequestHandler):
    """/votes.gz is the archive, /short breaks off, /stalls falls silent, /drips never ends."""

    def do_GET(self):
        data = gzip.compress(GOOD)
        self.send_response(200 if self.path in self.answers else 404)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.answers.get(self.path, lambda *_: None)(self, data)

    def stall(self, _data):
        self.wfile.write(b"x" * 10)
        self.wfile.flush()
        self.server.done.wait(10)

    def drip(self, data):
        for byte in data[:500]:
            self.wfile.write(bytes([byte]))
            self.wfile.flush()
            if self.server.done.wait(0.01):
                return

    def log_message(self, *_arguments):
        pass

    answers = {  # noqa: RUF012  read only
        "/votes.gz": lambda self, data: self.wfile.write(data),
        "/short": lambda self, data: self.wfile.write(data[: len(data) // 2]),
        "/stalls": stall,
        "/drips": drip,
    }


@contextmanager
def serving():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    server.done = threading.Event()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.done.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def no_proxy(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_proxy")
def test_over_http(target):
    said = []

    def told(kib, _of=None, /, *, what=None):
        said.append((kib, what))

    with serving() as address:
        fetch_votes(f"{address}/votes.gz", target, expected=EXPECTED, progress=told)
    assert contents(target) == FILES
    assert said[-1] == (0, "unpacking and verifying")
    assert all(kib >= 0 and what is None for kib, what in said[:-1])


@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize(
    ("path", "limits", "reason"),
    [
        ("/other", {}, "/other: the server answers 404 "),
        ("/short", {}, "damaged, cut short"),
        ("/stalls", {"silence": 0.2}, "cannot be fetched: .*timed out"),
        ("/drips", {"seconds": 0.2}, "not there after 0.2 seconds; given up"),
    ],
)
def test_downloads_that_fail_break_off_or_never_end(target, path, limits, reason):
    with serving() as address, pytest.raises(VoteError, match=reason) as caught:
        fetch_votes(address + path, target, expected=EXPECTED, **limits)
    assert "\n" not in str(caught.value)
    assert not target.exists()


@pytest.mark.parametrize("url", ["ftp://example.org/votes.gz", "votes.gz", "data:,x"])
def test_other_addresses_are_usage_errors(target, url):
    with pytest.raises(UsageError, match="must be an http, https or file address"):
        fetch_votes(url, target, expected=EXPECTED)


def test_the_command(tmp_path, run, authors):
    """With the authors' MNIST file and no other, the archive lacks two."""
    mnist = (authors / "mnist_250_teachers.npy").read_bytes()
    (tmp_path / "votes.gz").write_bytes(tarred({"mnist_250_teachers.npy": mnist}))
    url = (tmp_path / "votes.gz").as_uri()
    code, out, err = run("votes", "--into", tmp_path / "votes", "--url", url)
    assert (code, out) == (3, "")
    assert err == (
        "pate-reproduction: the archive lacks svhn_250_teachers.npy, adult_250_teachers.npy; "
        "nothing was kept\n"
    )
    assert not (tmp_path / "votes").exists()


def test_the_command_reports_an_address_that_is_not_there(tmp_path, run):
    url = (tmp_path / "none.gz").as_uri()
    code, out, err = run("votes", "--into", tmp_path / "votes", "--url", url)
    assert (code, out) == (3, "")
    assert err == f"pate-reproduction: {url}: cannot be fetched: No such file or directory\n"
