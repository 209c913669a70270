"""Outputs on a disk: all of them or none, nothing half-written, and nothing of others replaced."""

import contextlib
import errno
import os
import signal
import stat
from pathlib import Path

import pytest

from ended import killed
from pate_cli.core.errors import OutputError, UsageError
from pate_cli.files.outputs import Outputs
from pate_cli.files.protected import beginning, note, watched
from refusals import refusal, unreserved

OLD = beginning(b"old")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def put(out, folder, *wanted, content=b"new", **more):
    """Reserve outputs and write them, the last one first."""
    for name in wanted:
        out.reserve(folder / name, replaces=OLD, **more)
    for name in wanted[::-1]:
        out.write(folder / name, content)


def write(folder, *wanted, force=False, **more):
    with Outputs(force=force) as out:
        put(out, folder, *wanted, **more)


def test_files_appear_whole_and_only_on_leaving_the_block(tmp_path, drafts):
    with Outputs() as out:
        out.reserve(tmp_path / "a")
        out.reserve(str(tmp_path / "b"))
        with out.open(str(tmp_path / "a")) as file:
            for piece in (b"one ", bytearray(b"two "), memoryview(b"three")):
                assert file.write(piece) == len(piece)
        out.write(tmp_path / "b", b"")
        seen = names(tmp_path)
        assert out.released is False
    assert seen == [] if drafts == "nameless" else not {"a", "b"} & set(seen)
    assert out.released is True
    assert [(tmp_path / name).read_bytes() for name in names(tmp_path)] == [b"one two three", b""]
    assert (tmp_path / "a").stat().st_nlink == 1


def test_they_appear_in_the_order_in_which_they_were_reserved_each_on_disk(tmp_path, monkeypatch):
    """The report is reserved first and written last: a loss of power never leaves labels alone."""
    synced, real = [], os.fsync

    def fsync(descriptor):
        found = os.fstat(descriptor)
        synced.append(("folder" if stat.S_ISDIR(found.st_mode) else "file", names(tmp_path)))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    write(tmp_path, "report", "labels")
    assert synced == [
        ("file", []),
        ("file", []),
        ("folder", ["report"]),
        ("folder", ["labels", "report"]),
    ]


@pytest.mark.parametrize("other", ["a", "./a", "sub/../a", "absolute", "link", "uri"])
def test_two_outputs_never_go_to_one_place(tmp_path, monkeypatch, fails, other):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sub").mkdir()
    (tmp_path / "link").symlink_to("a")
    other = {"absolute": str(tmp_path / "a"), "uri": (tmp_path / "a").as_uri()}.get(other, other)

    def body(out):
        out.reserve("a")
        out.reserve(other)

    text, _ = fails(UsageError, body)
    place = f"two outputs would be written to the same place, {other}"
    assert text == f"{place}; give each output its own name"


def test_a_link_stays_and_what_it_names_is_made_or_replaced(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(Path("real") / "a")
    write(tmp_path, "link", content=b"old")
    write(tmp_path, "link", force=True)
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "a").read_bytes() == b"new"


@pytest.mark.parametrize("force", [False, True])
@pytest.mark.parametrize(("mask", "mode"), [(0o027, 0o644), (0, 0o600)])
def test_permissions_are_the_wish_less_the_umask(tmp_path, drafts, umask, mask, mode, force):
    umask(mask)
    path = tmp_path / "a"
    if force:
        path.write_bytes(b"old")
        path.chmod(0o644)
    write(tmp_path, "a", force=force, mode=mode)
    assert stat.S_IMODE(path.stat().st_mode) == mode & ~mask


def test_places_that_take_no_file_are_refused(tmp_path, fails):
    (tmp_path / "file").write_bytes(b"")
    (tmp_path / "loop").symlink_to("loop")
    inside, gone = tmp_path / "file" / "a", tmp_path / "missing" / "a"
    long = tmp_path / ("n" * 300)
    for path, why in (
        (tmp_path, "it is a folder; name a file in it"),
        (f"{tmp_path}/new/", "it is a folder; name a file in it"),
        (gone, f"there is no folder {gone.parent}; create it or name another one"),
        (inside, f"there is no folder {inside.parent}; create it or name another one"),
        (tmp_path / "loop", os.strerror(errno.ELOOP)),
        (long, os.strerror(errno.ENAMETOOLONG)),
    ):
        assert unreserved(fails, path, force=True) == f"cannot write {path}: {why}"
    assert names(tmp_path) == ["file", "loop"]


def test_a_file_is_replaced_under_force_alone(tmp_path, fails, drafts):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    assert unreserved(fails, path) == f"{path} exists already; give the output another name"
    assert "a exists already; use `force` to replace it" in refusal(
        OutputError, write, tmp_path, "a"
    )
    write(tmp_path, "a", force=True)
    assert path.read_bytes() == b"new"
    assert names(tmp_path) == ["a"]


KEPT = {
    "of another kind": b"1,2,3\n",
    "a ledger": b'{\n "kind": "pate-ledger",\n',
    "a record": b'{\n "kind": "pate-spend-record",\n',
    "a line of a record": b'{"kind": "pate-record", "version": 1}\n',
    "a checkpoint": b'{"kind": "pate-checkpoint"}',
}


@pytest.mark.parametrize("content", KEPT.values(), ids=KEPT)
def test_nobodys_file_is_replaced_whatever_is_forced(tmp_path, fails, content):
    path = tmp_path / "a"
    path.write_bytes(content)
    like = beginning(rb'\{\s*"kind"')
    text, _ = fails(UsageError, lambda out: out.reserve(path, replaces=like), force=True)
    assert "so not even `force` replaces it" in text
    assert path.read_bytes() == content


def test_votes_with_a_record_are_not_replaced_however_they_begin(tmp_path, fails):
    for name in ("a", "a.spent.json"):
        (tmp_path / name).write_bytes(b"old")
    (tmp_path / "link").symlink_to("a")
    for name in ("a", "link"):
        text = refusal(UsageError, write, tmp_path, name, force=True)
        assert "is votes that have a record" in text


@pytest.mark.parametrize("first", ["read", "reserved"])
def test_what_is_read_is_no_output(tmp_path, fails, first):
    (tmp_path / "a").write_bytes(b"old")
    (tmp_path / "hard").hardlink_to(tmp_path / "a")

    def body(out):
        if first == "read":
            note("the record of what was spent", tmp_path / "a")
        out.reserve(tmp_path / "hard", replaces=OLD)
        note("the record of what was spent", tmp_path / "a")

    with watched():
        text, _ = fails(UsageError, body, force=True)
    assert text.endswith("hard is the record of what was spent; give the output another name")


@pytest.mark.parametrize("force", [False, True])
def test_what_appears_during_the_run_stays_if_it_is_not_ours(tmp_path, fails, drafts, force):
    def body(out):
        put(out, tmp_path, "a", "b")
        (tmp_path / "b").write_bytes(b"theirs")

    text, out = fails(UsageError if force else OutputError, body, force=force)
    assert text.endswith(f"; what was written to {tmp_path / 'a'} stays")
    assert out.released is True
    assert names(tmp_path) == ["a", "b"]
    assert (tmp_path / "b").read_bytes() == b"theirs"


def test_a_resumed_run_finds_what_it_put_there_before(tmp_path, drafts):
    """A kill between two names leaves the report there and no labels; the run is paid for."""
    report, labels = tmp_path / "r", tmp_path / "l"

    def publish(told, given):
        with Outputs() as out:
            for path, content in ((report, told), (labels, given)):
                out.reserve(path, resumed=True)
                out.write(path, content)

    report.write_bytes(b"report")
    for _ in range(2):
        publish(b"report", b"labels")
    assert "r exists already; " in refusal(OutputError, publish, b"another", b"labels")
    assert "l exists already; " in refusal(OutputError, publish, b"report", b"others")
    assert labels.read_bytes() == b"labels"
    assert names(tmp_path) == ["l", "r"]


@pytest.mark.parametrize("error", [RuntimeError, OSError, KeyboardInterrupt, SystemExit])
def test_an_error_in_the_block_leaves_nothing(tmp_path, error, fails, drafts):
    def body(out):
        put(out, tmp_path, "a")
        out.reserve(tmp_path / "b")
        with out.open(tmp_path / "b") as file:
            file.write(b"new")
            raise error("mine")

    text, out = fails(error, body)
    assert text == "mine"  # and not of the disk
    assert names(tmp_path) == []
    assert out.released is False


def test_a_disk_that_fails_releases_nothing(tmp_path, monkeypatch, fails, drafts):
    failing_at_the_second("fsync", monkeypatch)  # the first file is whole already
    text, _ = fails(OutputError, lambda out: put(out, tmp_path, "a", "b"))
    assert text == f"cannot write {tmp_path / 'a'}: bad disk; nothing was released"
    assert names(tmp_path) == []


def failing_at_the_second(step, monkeypatch):
    """Have the second call of a step of the system fail."""
    real, calls = getattr(os, step), []

    def fail(*given, **more):
        calls.append(given)
        if len(calls) == 2:
            raise OSError(errno.EIO, "bad disk")
        return real(*given, **more)

    monkeypatch.setattr(os, step, fail)


@pytest.mark.parametrize("step", ["link", "fsync"])
def test_a_last_step_that_fails_says_what_stays(tmp_path, monkeypatch, fails, step):
    (tmp_path / "b").write_bytes(b"old")

    def body(out):
        put(out, tmp_path, "a", "b")
        failing_at_the_second(step, monkeypatch)

    text, out = fails(OutputError, body, force=True)
    monkeypatch.undo()
    both = f"{tmp_path / 'a'}, {tmp_path / 'b'}" if step == "fsync" else str(tmp_path / "a")
    assert text == f"cannot write {tmp_path / 'b'}: bad disk; what was written to {both} stays"
    assert out.released is True
    assert (tmp_path / "b").read_bytes() == (b"new" if step == "fsync" else b"old")
    assert names(tmp_path) == ["a", "b"]


CALLS = ("open", "write", "fsync", "link", "replace", "unlink", "close")


def ending_at(when, end, patch):
    """Have `end` called just before or just behind one of the calls to the system."""
    counter = iter(range(1000))
    for name in CALLS:
        real = getattr(os, name)

        def step(*args, real=real, **rest):
            if next(counter) == when:
                end()
            result = real(*args, **rest)
            if next(counter) == when:
                end()
            return result

        patch(os, name, step)


@pytest.mark.parametrize("force", [False, True])
def test_a_kill_at_any_call_leaves_whole_files_in_order(tmp_path, drafts, force):
    seen = set()
    for when in range(0, 60, 1 + force):
        folder = tmp_path / str(when)
        folder.mkdir()
        for name in "ab" if force else "":
            (folder / name).write_bytes(b"old")

        def run(folder=folder, when=when):
            ending_at(when, lambda: os.kill(os.getpid(), signal.SIGKILL), setattr)
            write(folder, "a", "b", force=force)

        killed(run)
        found = {path.name: path.read_bytes() for path in folder.iterdir()}
        there = tuple(found.get(name) for name in "ab")
        if drafts == "nameless" and not force:
            assert set(found) <= {"a", "b"}
            assert b"" not in there
        old = b"old" if force else None
        assert there in {(old, old), (b"new", old), (b"new", b"new")}
        seen.add(there)
    assert len(seen) >= 3


def test_an_interruption_at_any_call_leaves_no_draft_and_is_told(tmp_path, monkeypatch, drafts):
    complete = 0
    for when in range(60):
        folder = tmp_path / str(when)
        folder.mkdir()
        out = Outputs()
        with monkeypatch.context() as patch:
            ending_at(when, lambda: signal.raise_signal(signal.SIGINT), patch.setattr)
            with contextlib.suppress(KeyboardInterrupt):
                with out:
                    put(out, folder, "a", "b")
                complete += 1
        out.discard()  # as the command line does, should it come while drafts are removed
        left = {path.name: path.read_bytes() for path in folder.iterdir()}
        if drafts == "nameless":
            assert left in ({}, {"a": b"new"}, {"a": b"new", "b": b"new"})
        assert not [name for name in left if name.startswith(".")]
        assert out.released or not left
    assert complete > 5
