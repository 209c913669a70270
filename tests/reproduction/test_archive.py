"""Fetching the archive: all expected files, verified, or nothing at all."""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import stat
import tarfile
import threading
import zipfile
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

from pate_cli.errors import OutputError, UsageError, VoteError
from pate_cli.reproduction.archive import fetch_votes
from pate_cli.reproduction.unpack import Limits

FILES = {"one.npy": b"first" * 1000, "two.npy": b"second" * 900, "three.npy": os.urandom(5000)}
EXPECTED = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}


def tarred(files, *, folder="data/", extra=(), compress=True):
    """A tar of files, and of `extra` members given as (TarInfo, data)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz" if compress else "w:") as tar:
        if folder:
            top = tarfile.TarInfo(folder.rstrip("/"))
            top.type = tarfile.DIRTYPE
            tar.addfile(top)
        for name, data in files.items():
            info = tarfile.TarInfo(folder + name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for info, data in extra:
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def zipped(files, extra=()):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(f"data/{name}", data)
        for info, data in extra:
            archive.writestr(info, data)
    return buffer.getvalue()


def special(name, kind, target=""):
    info = tarfile.TarInfo(name)
    info.type = kind
    info.linkname = target
    return info


@pytest.fixture
def target(tmp_path):
    return tmp_path / "votes"


@pytest.fixture
def fetch(tmp_path, target):
    """Fetch an archive given as bytes from a file:// address."""

    def call(data, *, expected=EXPECTED, limits=None, into=target):
        source = tmp_path / "votes.gz"
        source.write_bytes(data)
        return fetch_votes(
            source.as_uri(), into, expected=expected, progress=lambda _: None, limits=limits
        )

    return call


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.mark.parametrize(
    "data",
    [
        tarred(FILES),
        tarred(FILES, folder=""),
        tarred(FILES, compress=False),
        zipped(FILES),
        gzip.compress(zipped(FILES)),
        tarred(FILES | {"README": b"hello", "._one.npy": b"resource fork"}),
    ],
    ids=["tar.gz", "flat tar.gz", "tar", "zip", "zip.gz", "with others"],
)
def test_a_good_archive(fetch, target, data):
    assert fetch(data) == tuple(FILES)
    assert contents(target) == FILES


def test_a_lone_gzipped_file_is_known_by_its_digest(fetch, target):
    name = "two.npy"
    fetch(gzip.compress(FILES[name]), expected={name: EXPECTED[name]})
    assert contents(target) == {name: FILES[name]}


TAR = tarred(FILES, compress=False)
BAD = {
    "tampered": (tarred(FILES | {"two.npy": b"sEcond" * 900}), "two.npy in the archive has anoth"),
    "missing": (tarred({"one.npy": FILES["one.npy"]}), "the archive lacks two.npy, three.npy"),
    "truncated gzip": (tarred(FILES)[:-1500], "damaged or truncated"),
    "truncated tar": (gzip.compress(TAR[: len(TAR) // 2]), "damaged or truncated"),
    "damaged gzip": (tarred(FILES)[:40] + b"\0" * 900, "damaged or truncated"),
    "truncated zip": (zipped(FILES)[:-40], "damaged or truncated"),
    "lone stranger": (gzip.compress(b"hello"), "holds one file, and it is none of those"),
    "no archive": (b"<html>Not Found</html>", "neither tar, zip nor gzip"),
    "empty": (b"", "neither tar, zip nor gzip"),
    "traversal": (
        tarred(FILES, extra=[(tarfile.TarInfo("../../evil.npy"), b"x")]),
        "path that leads out of it ('../../evil.npy')",
    ),
    "absolute": (
        tarred(FILES, extra=[(tarfile.TarInfo("/tmp/evil.npy"), b"x")]),  # noqa: S108  a name only
        "path that leads out of it",
    ),
    "zip traversal": (zipped(FILES, [("../evil.npy", b"x")]), "path that leads out of it"),
    "backslash": (
        tarred(FILES, extra=[(tarfile.TarInfo("..\\evil.npy"), b"x")]),
        "path that leads out of it",
    ),
    "symlink": (
        tarred(
            {name: FILES[name] for name in ("one.npy", "two.npy")},
            extra=[(special("data/three.npy", tarfile.SYMTYPE, "/etc/passwd"), b"")],
        ),
        "holds a link or device ('three.npy')",
    ),
    "hard link": (
        tarred(FILES, extra=[(special("data/x", tarfile.LNKTYPE, "data/one.npy"), b"")]),
        "holds a link or device ('x')",
    ),
    "device": (tarred(FILES, extra=[(special("x", tarfile.CHRTYPE), b"")]), "a link or device"),
    "pipe": (tarred(FILES, extra=[(special("x", tarfile.FIFOTYPE), b"")]), "a link or device"),
    "twice": (
        tarred(FILES, extra=[(tarfile.TarInfo("other/one.npy"), b"x")]),
        "the archive holds one.npy twice",
    ),
}


@pytest.mark.parametrize("case", list(BAD))
def test_a_bad_archive_leaves_nothing_behind(fetch, tmp_path, target, case):
    data, reason = BAD[case]
    with pytest.raises(VoteError) as caught:
        fetch(data)
    assert reason in str(caught.value)
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3
    assert not target.exists()
    assert [file.name for file in tmp_path.iterdir()] == ["votes.gz"]


def test_a_symlink_in_a_zip_is_refused(fetch, target):
    link = zipfile.ZipInfo("data/three.npy")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    two = {name: FILES[name] for name in ("one.npy", "two.npy")}
    with pytest.raises(VoteError, match="link or device"):
        fetch(zipped(two, [(link, "/etc/passwd")]))
    assert not target.exists()


def test_bombs_are_refused(fetch, target):
    zeros = {"one.npy": bytes(40 << 20)}
    small = Limits(unpacked=2 << 20)
    for data in (tarred(zeros), zipped(zeros), gzip.compress(bytes(40 << 20))):
        assert len(data) < 100_000
        with pytest.raises(VoteError, match="more than 2 MiB; refused"):
            fetch(data, limits=small)
    crowd = {f"file{number}": b"" for number in range(200)}
    for data in (tarred(crowd), zipped(crowd)):
        with pytest.raises(VoteError, match="more than 100 entries; refused"):
            fetch(data, limits=Limits(members=100))
    with pytest.raises(VoteError, match="larger than 1 MiB; refused"):
        fetch(os.urandom(3 << 20), limits=Limits(download=1 << 20))
    assert not target.exists()


def test_what_is_there_already_is_left_alone(fetch, target):
    target.mkdir()
    (target / "mine.txt").write_text("mine")
    (target / "one.npy").write_bytes(FILES["one.npy"])
    before = (target / "one.npy").stat().st_ino
    fetch(tarred(FILES))
    assert (target / "one.npy").stat().st_ino == before
    assert contents(target) == FILES | {"mine.txt": b"mine"}
    # All there: nothing is fetched, so what the address holds does not matter.
    assert fetch(b"no archive") == tuple(FILES)


def test_another_file_of_an_expected_name_is_not_replaced(fetch, target):
    target.mkdir()
    (target / "two.npy").write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"two.npy exists and is not the authors' file"):
        fetch(tarred(FILES))
    assert contents(target) == {"two.npy": b"mine"}


def test_a_failing_rename_takes_the_others_back(fetch, target, monkeypatch):
    from pathlib import Path

    target.mkdir()
    rename = Path.replace

    def failing(self, other):
        if self.name == "three.npy":
            raise OSError(28, "No space left on device")
        return rename(self, other)

    monkeypatch.setattr(Path, "replace", failing)
    with pytest.raises(OutputError, match="cannot be written: No space left"):
        fetch(tarred(FILES))
    assert contents(target) == {}


def test_an_unwritable_target_is_an_output_error(fetch, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(OutputError, match="cannot be written: Not a directory") as caught:
        fetch(tarred(FILES), into=tmp_path / "file" / "votes")
    assert caught.value.exit_code == 6
    with pytest.raises(OutputError, match="cannot be written: File exists"):
        fetch(tarred(FILES), into=tmp_path / "file")
    assert (tmp_path / "file").read_text() == "in the way"


def test_new_folders_go_away_again(fetch, tmp_path):
    with pytest.raises(VoteError):
        fetch(b"no archive", into=tmp_path / "a" / "b" / "c")
    assert not (tmp_path / "a").exists()


# Over HTTP, from this machine.


@contextmanager
def serving(handler):
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_arguments):
        pass


@pytest.fixture
def no_proxy(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.usefixtures("no_proxy")
def test_over_http(tmp_path, target):
    (tmp_path / "served").mkdir()
    (tmp_path / "served" / "votes.gz").write_bytes(tarred(FILES))
    said = []
    with serving(partial(Quiet, directory=tmp_path / "served")) as address:
        with pytest.raises(VoteError, match=r"/other.gz: the server answers 404 ") as caught:
            fetch_votes(f"{address}/other.gz", target, expected=EXPECTED, progress=lambda _: None)
        assert "\n" not in str(caught.value)
        assert not target.exists()
        fetch_votes(f"{address}/votes.gz", target, expected=EXPECTED, progress=said.append)
    assert contents(target) == FILES
    assert said[-1] == "unpacking and verifying"


class BreaksOff(BaseHTTPRequestHandler):
    def do_GET(self):
        data = tarred(FILES)
        self.send_response(200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data[: len(data) // 2])

    def log_message(self, *_arguments):
        pass


class Stalls(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "1000")
        self.end_headers()
        self.wfile.write(b"x" * 10)
        self.wfile.flush()
        self.server.stalled.wait(10)

    def log_message(self, *_arguments):
        pass


class Announces(BreaksOff):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", str(1 << 40))
        self.end_headers()


@pytest.mark.usefixtures("no_proxy")
@pytest.mark.parametrize(
    ("handler", "reason"),
    [(BreaksOff, "try again"), (Announces, "larger than 128 MiB; refused")],
)
def test_downloads_that_break_off_or_never_end(target, handler, reason):
    with serving(handler) as address, pytest.raises(VoteError, match=reason):
        fetch_votes(address, target, expected=EXPECTED, progress=lambda _: None)
    assert not target.exists()


@pytest.mark.usefixtures("no_proxy")
def test_a_silent_server_is_given_up(target, monkeypatch):
    done = threading.Event()
    monkeypatch.setattr(ThreadingHTTPServer, "stalled", done, raising=False)
    with serving(Stalls) as address:
        with pytest.raises(VoteError, match=r"cannot be fetched: .*timed out"):
            fetch_votes(
                address,
                target,
                expected=EXPECTED,
                progress=lambda _: None,
                limits=Limits(silence=0.2),
            )
        done.set()
    assert not target.exists()


@pytest.mark.usefixtures("no_proxy")
def test_nobody_there(target):
    with serving(Quiet) as address:
        pass
    with pytest.raises(VoteError, match="cannot be fetched: Connection refused"):
        fetch_votes(address, target, expected=EXPECTED, progress=lambda _: None)


@pytest.mark.parametrize("url", ["ftp://example.org/votes.gz", "votes.gz", "data:,x"])
def test_other_addresses_are_usage_errors(target, url):
    with pytest.raises(UsageError, match="must be an http, https or file address"):
        fetch_votes(url, target, expected=EXPECTED, progress=lambda _: None)


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
