"""Fetching the archive: all expected files, verified, or nothing at all."""

import gzip
import hashlib
import io
import os
import tarfile

import numpy as np
import pytest

from pate_cli.core.errors import OutputError, VoteError
from pate_cli.paper.votes import fetch_votes

NOISE = np.random.default_rng(1).bytes(5000)
FILES = {"one.npy": b"first" * 1000, "two.npy": b"second" * 900, "three.npy": NOISE}
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
        return fetch_votes(source.as_uri(), into, EXPECTED, **limits)

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
        tarred(FILES | OTHERS),
        tarred(FILES, extra=SPECIAL),
        tarred(FILES, folder="../../"),
        tarred(FILES, folder="/tmp/"),  # noqa: S108  a name only
    ],
    ids=["tar.gz", "flat", "with others", "with links", "climbing", "absolute"],
)
def test_expected_files_are_taken_by_name_and_nothing_else_is(fetch, tmp_path, target, data):
    fetch(data)
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
    "damaged gzip": (gzip.compress(GOOD, mtime=0)[:40] + b"\0" * 900, "damaged, cut short"),
    "no archive": (b"<html>Not Found</html>", "not a tar file"),
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
        (gzip.compress(tarred({name: bytes(MIB) for name in FILES})), "unpacks to more bytes"),
        (os.urandom(3 * MIB), "larger than 2 MiB; refused"),
    ],
    ids=["tar.gz", "in total", "download"],
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
    fetch(b"no archive")


def test_another_file_of_an_expected_name_is_not_replaced(fetch, target):
    target.mkdir()
    (target / "two.npy").write_bytes(b"mine")
    with pytest.raises(OutputError, match=r"two.npy is not the authors' file"):
        fetch(GOOD)
    assert contents(target) == {"two.npy": b"mine"}


def test_the_command(tmp_path, run):
    (tmp_path / "votes.gz").write_bytes(GOOD)
    url = (tmp_path / "votes.gz").as_uri()
    code, out, err = run("votes", "--votes", tmp_path / "votes", "--url", url)
    assert (code, out) == (3, "")
    assert err.startswith("pate-paper: the archive lacks mnist_250_teachers.npy, ")
    assert not (tmp_path / "votes").exists()
