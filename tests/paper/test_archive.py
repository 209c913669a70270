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
from refusals import refusal

NOISE = np.random.default_rng(1).bytes(5000)
FILES = {"one.npy": b"first" * 1000, "two.npy": b"second" * 900, "three.npy": NOISE}
EXPECTED = {name: hashlib.sha256(data).hexdigest() for name, data in FILES.items()}
TWO = {name: FILES[name] for name in ("one.npy", "two.npy")}
MIB = 1 << 20


def member(name, kind=tarfile.REGTYPE, *, link="", size=0):
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, link, size
    return info


def tarred(files, *, folder="data/", extra=()):
    """A tar of files after `extra` members without content."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:") as tar:
        for each in extra:
            tar.addfile(each)
        for name, data in files.items():
            tar.addfile(member(folder + name, size=len(data)), io.BytesIO(data))
    return buffer.getvalue()


@pytest.fixture
def target(tmp_path):
    return tmp_path / "a" / "votes"


@pytest.fixture
def fetch(tmp_path, target):
    """Fetch an archive given as bytes from a file:// address."""

    def call(data, **limits):
        source = tmp_path / "votes.gz"
        source.write_bytes(data)
        fetch_votes(source.as_uri(), target, EXPECTED, **limits)

    return call


def contents(folder):
    return {file.name: file.read_bytes() for file in folder.iterdir()}


OTHERS = {"README": b"hello", "._one.npy": b"resource fork"}
SPECIAL = [
    member("data", tarfile.DIRTYPE),
    member("data/three.npy", tarfile.SYMTYPE, link="/etc/passwd"),
    member("two.npy", tarfile.LNKTYPE, link="data/one.npy"),
    member("one.npy", tarfile.CHRTYPE),
    member("x/two.npy", tarfile.FIFOTYPE),
]


GOOD = {
    "tar.gz": gzip.compress(tarred(FILES)),
    "flat": tarred(FILES, folder=""),
    "with others": tarred(FILES | OTHERS),
    "with links": tarred(FILES, extra=SPECIAL),
    "climbing": tarred(FILES, folder="../../"),
    "absolute": tarred(FILES, folder="/tmp/"),  # noqa: S108  a name only
}


@pytest.mark.parametrize("case", GOOD)
def test_expected_files_are_taken_by_name_and_nothing_else_is(fetch, tmp_path, target, case):
    fetch(GOOD[case])
    assert contents(target) == FILES
    assert not any(file.is_symlink() for file in target.iterdir())
    assert {file.name for file in tmp_path.rglob("*")} == {"votes.gz", "a", "votes", *FILES}


LINKED = tarred(TWO, extra=[member("data/three.npy", tarfile.SYMTYPE, link="data/one.npy")])
BAD = {
    "tampered": (tarred(FILES | {"two.npy": b"sEcond" * 900}), "two.npy in the archive has anoth"),
    "missing": (tarred({"one.npy": FILES["one.npy"]}), "the archive lacks two.npy, three.npy"),
    "a link instead": (LINKED, "the archive lacks three.npy"),
    "another before": (tarred(FILES, extra=[member("one.npy")]), "has another sha256"),
    "truncated gzip": (GOOD["tar.gz"][:-1500], "damaged, cut short"),
    "damaged gzip": (GOOD["tar.gz"][:40] + b"\0" * 900, "damaged, cut short"),
    "no archive": (b"<html>Not Found</html>", "not a tar file"),
}


@pytest.mark.parametrize("case", list(BAD))
def test_a_bad_archive_leaves_nothing_behind(fetch, tmp_path, case):
    data, reason = BAD[case]
    assert reason in refusal(VoteError, fetch, data)
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
    assert reason in refusal(VoteError, fetch, data, most=2 * MIB)
    assert not target.exists()


def test_what_is_there_already_is_left_alone(fetch, target):
    target.mkdir(parents=True)
    (target / "mine.txt").write_text("mine")
    (target / "one.npy").write_bytes(FILES["one.npy"])
    before = (target / "one.npy").stat().st_ino
    fetch(GOOD["flat"])
    assert (target / "one.npy").stat().st_ino == before
    assert contents(target) == FILES | {"mine.txt": b"mine"}
    # All there: nothing is fetched, so what the address holds does not matter.
    fetch(b"no archive")


def test_another_file_of_an_expected_name_is_not_replaced(fetch, target):
    target.mkdir(parents=True)
    (target / "two.npy").write_bytes(b"mine")
    assert "two.npy is not the authors' file" in refusal(OutputError, fetch, GOOD["flat"])
    assert contents(target) == {"two.npy": b"mine"}


def test_the_command(tmp_path, run):
    (tmp_path / "votes.gz").write_bytes(GOOD["tar.gz"])
    url = (tmp_path / "votes.gz").as_uri()
    code, out, err = run("votes", "--votes", tmp_path / "votes", "--url", url)
    assert (code, out) == (3, "")
    assert err.startswith("pate-paper: the archive lacks mnist_250_teachers.npy, ")
    assert not (tmp_path / "votes").exists()
