"""Drafts that killed runs have left: what is swept, and what stays because it may be somebody's."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import stat
from pathlib import Path

import pytest

from ended import killed
from pate_cli.core.errors import OutputError
from pate_cli.files import unfinished
from pate_cli.files.transaction import Outputs
from pate_cli.files.unfinished import Claim, sweep


def hidden(folder):
    return sorted(path.name for path in folder.iterdir() if path.name.startswith("."))


def staged(folder, name="a", *, force=False):
    out = Outputs(force=force)
    out.reserve(folder / name)
    out.write(folder / name, b"new")
    return out


def test_a_dead_run_s_draft_is_swept_by_the_next(tmp_path):
    killed(lambda: staged(tmp_path))
    (name,) = hidden(tmp_path)
    assert name.startswith(".pate-unfinished-")
    assert name.endswith(".tmp")
    with staged(tmp_path, "b"):
        pass
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b"]


def test_a_living_run_s_draft_stays(tmp_path):
    with staged(tmp_path, "a"):
        (name,) = hidden(tmp_path)
        killed(lambda: sweep(tmp_path))
        assert hidden(tmp_path) == [name]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a"]


def test_where_in_doubt_a_draft_stays(tmp_path, monkeypatch):
    killed(lambda: staged(tmp_path))
    (name,) = hidden(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(unfinished, "_system", lambda: "0123abcd")  # another host
        sweep(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(unfinished, "_system", lambda: unfinished._NOWHERE)
        sweep(tmp_path)

    def none(*_):
        raise OSError(95, "no locks")

    with monkeypatch.context() as patch:
        patch.setattr(fcntl, "flock", none)
        sweep(tmp_path)
        with staged(tmp_path, "b"):  # works all the same
            pass
    assert hidden(tmp_path) == [name]
    others = [".pate-0123456789abcdef.tmp", ".pate-unfinished-x.tmp", f"{name}.txt"]
    for other in others:
        (tmp_path / other).touch()
    sweep(tmp_path)
    assert hidden(tmp_path) == sorted(others)


def test_a_draft_swept_before_it_was_held_is_made_again(tmp_path, monkeypatch):
    lock, swept = unfinished._lock, []

    def late(descriptor, *, wait):
        if not swept:
            swept.append(True)
            claim.temporary.unlink()
        return lock(descriptor, wait=wait)

    claim = Claim(tmp_path / "a", 0o600)
    monkeypatch.setattr(unfinished, "_lock", late)
    descriptor = claim.create()
    assert os.path.samestat(os.fstat(descriptor), claim.temporary.stat())
    os.close(descriptor)
    claim.clean()
    assert hidden(tmp_path) == []


@pytest.mark.parametrize("when", ["before", "after"])
def test_what_was_to_be_replaced_is_never_lost(tmp_path, monkeypatch, when):
    (tmp_path / "a").write_bytes(b"old")
    replace = Path.replace

    def die(self, target):
        if when == "after":
            replace(self, target)
        os.kill(os.getpid(), signal.SIGKILL)

    monkeypatch.setattr(Path, "replace", die)

    def step():
        with staged(tmp_path, force=True):
            pass

    killed(step)
    monkeypatch.undo()
    sweep(tmp_path)
    if when == "before":
        assert hidden(tmp_path) == []
        assert (tmp_path / "a").read_bytes() == b"old"
    else:
        (name,) = hidden(tmp_path)
        assert name.startswith(".pate-replaced-")
        assert (tmp_path / name).read_bytes() == b"old"
        assert (tmp_path / "a").read_bytes() == b"new"


def test_the_last_name_of_an_old_file_stays_with_its_draft(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"old")
    monkeypatch.setattr(Path, "replace", lambda *_: os.kill(os.getpid(), signal.SIGKILL))

    def step():
        with staged(tmp_path, force=True):
            pass

    killed(step)
    monkeypatch.undo()
    (tmp_path / "a").unlink()  # somebody removed it
    before = hidden(tmp_path)
    sweep(tmp_path)
    assert hidden(tmp_path) == before
    assert len(before) == 2


@pytest.mark.parametrize("again", [False, True])
def test_a_draft_that_a_failing_disk_keeps_is_nobody_s_output(tmp_path, monkeypatch, again):
    """What was made to see whether it can be stays; nothing appeared under the name itself."""

    def fail(self, *, missing_ok=False):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fail)
        out = Outputs()
        out.reserve(tmp_path / "a")
        assert len(hidden(tmp_path)) == 1
        if again:
            with pytest.raises(OutputError) as refused:
                out.write(tmp_path / "a", b"new")
    if again:
        shown = f"cannot write {tmp_path / 'a'}: {os.strerror(errno.EIO)}; nothing was released"
        assert str(refused.value) == shown
        return
    with out:
        out.write(tmp_path / "a", b"new")
        (name,) = hidden(tmp_path)
        assert stat.S_IMODE((tmp_path / name).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
