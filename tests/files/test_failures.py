"""Outputs: what is left when the disk, the user or another program interferes."""

from __future__ import annotations

import errno
import os
import re
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from pate_cli.core.errors import OutputError
from pate_cli.files.transaction import Outputs


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


needs_dev_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")

# ---------------------------------------------------------------- when things go wrong


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, SystemExit])
@pytest.mark.parametrize("force", [False, True])
def test_an_error_in_the_block_leaves_nothing(tmp_path, error, force, fails):
    if force:
        (tmp_path / "a").write_bytes(b"old")
    before = names(tmp_path)

    def body(out):
        for name in ("a", "b"):
            out.reserve(tmp_path / name)
            out.write(tmp_path / name, b"new")
        assert len(names(tmp_path)) == len(before) + 2
        raise error

    _, out = fails(error, body, force=force)
    assert names(tmp_path) == before
    assert out.released is False
    if force:
        assert (tmp_path / "a").read_bytes() == b"old"


@needs_dev_full
def test_a_full_device_releases_nothing(tmp_path, fails):
    def body(out):
        out.reserve(tmp_path / "a")
        out.reserve("/dev/full")
        out.write(tmp_path / "a", b"x")
        out.write("/dev/full", b"x")

    error, out = fails(OutputError, body)
    assert str(error) == "cannot write /dev/full: No space left on device; nothing was released"
    assert error.exit_code == 6
    assert names(tmp_path) == []
    assert out.released is False


@pytest.mark.parametrize("call", ["write", "fsync"])
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EIO])
def test_a_disk_that_fails_releases_nothing(tmp_path, monkeypatch, call, number, fails):
    real, calls = getattr(os, call), []

    def fail(descriptor, *rest):
        calls.append(descriptor)
        if len(calls) == 2:  # the first file is staged already
            raise OSError(number, os.strerror(number))
        return real(descriptor, *rest)

    monkeypatch.setattr(os, call, fail)
    second = tmp_path / "b"

    def body(out):
        out.reserve(tmp_path / "a")
        out.reserve(second)
        out.write(tmp_path / "a", b"x")
        out.write(second, b"x")

    error, _ = fails(OutputError, body)
    assert str(error) == f"cannot write {second}: {os.strerror(number)}; nothing was released"
    assert names(tmp_path) == []


def test_nothing_is_released_even_if_the_failure_is_swallowed(tmp_path, monkeypatch):
    with Outputs() as out:
        out.reserve(tmp_path / "a")
        out.reserve(tmp_path / "b")
        out.write(tmp_path / "a", b"x")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.EIO, "bad")))
            with pytest.raises(OutputError, match="bad; nothing was released"):
                out.write(tmp_path / "b", b"x")
    assert names(tmp_path) == []
    assert out.released is False


def full_after(size):
    """A stand-in for os.write on a disk with room for `size` bytes."""
    real, room = os.write, [size]

    def write(descriptor, data):
        if not room[0]:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        count = real(descriptor, data[: room[0]])
        room[0] -= count
        return count

    return write


@pytest.mark.parametrize("told", ["as it is", "as another error", "not at all"])
def test_a_disk_that_fills_while_it_is_written(tmp_path, monkeypatch, told, fails):
    path = tmp_path / "b"

    def body(out):
        out.reserve(tmp_path / "a")
        out.reserve(path)
        out.write(tmp_path / "a", b"x")
        monkeypatch.setattr(os, "write", full_after(5))
        with out.open(path) as file:
            assert file.write(b"123") == 3
            try:
                file.write(b"456")
            except OSError as error:
                if told == "as it is":
                    raise
                if told == "as another error":
                    raise RuntimeError from error

    error, out = fails(OutputError, body)
    assert str(error) == f"cannot write {path}: No space left on device; nothing was released"
    assert names(tmp_path) == []
    assert out.released is False


@pytest.mark.parametrize("error", [OSError("of the votes"), RuntimeError(), KeyboardInterrupt()])
def test_an_error_of_the_block_is_not_one_of_the_disk(tmp_path, error, fails):
    def body(out):
        out.reserve(tmp_path / "a")
        with out.open(tmp_path / "a") as file:
            file.write(b"x")
            raise error

    found, _ = fails(type(error), body)
    assert found is error
    assert names(tmp_path) == []


def test_short_writes_are_continued(tmp_path, monkeypatch):
    real = os.write
    monkeypatch.setattr(os, "write", lambda descriptor, data: real(descriptor, data[:3]))
    with Outputs() as out:
        out.reserve(tmp_path / "a")
        out.write(tmp_path / "a", b"0123456789")
    assert (tmp_path / "a").read_bytes() == b"0123456789"


def test_a_real_limit_on_file_size(tmp_path, run_child):
    # The kernel, not a stand-in, stops the write half-way.
    child = run_child(
        [
            "import resource",
            "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))",
            "out.reserve('a')",
            "out.reserve('b')",
            "out.write('a', bytes(4000))",
            "out.write('b', bytes(6000))",
        ],
        cwd=tmp_path,
    )
    assert (
        child.stderr == f"False cannot write b: {os.strerror(errno.EFBIG)}; nothing was released\n"
    )
    assert names(tmp_path) == []


def test_a_real_full_disk(tmp_path):
    unshare = shutil.which("unshare")
    shell = shutil.which("sh")
    if unshare is None or shell is None:
        pytest.skip("no unshare")
    mount = 'mount -t tmpfs -o size=64k none "$1" && shift && cd "$1" && shift && '
    enter = [unshare, "`user`", "`map_root_user`", "`mount`", shell, "-c"]
    probe = subprocess.run(
        [*enter, mount + "true", "sh", str(tmp_path), str(tmp_path)],
        check=False,
        capture_output=True,
    )
    if probe.returncode:
        pytest.skip("no tmpfs can be mounted")
    program = (
        "import os, sys\n"
        "from pate_cli.core.errors import PateError\n"
        "from pate_cli.files.transaction import Outputs\n"
        "try:\n"
        "    with Outputs() as out:\n"
        "        for name in 'ab':\n"
        "            out.reserve(name)\n"
        "            out.write(name, bytes(40_000))\n"
        "except PateError as error:\n"
        "    print(error, os.listdir('.'))\n"
    )
    run = [mount + 'exec "$@"', "sh", str(tmp_path), str(tmp_path), sys.executable, "-c", program]
    child = subprocess.run([*enter, *run], check=False, capture_output=True, text=True)
    expected = "cannot write b: No space left on device; nothing was released []\n"
    assert (child.stdout, child.stderr) == (expected, "")


# ---------------------------------------------------------------- failures while putting in place


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_meanwhile_is_left_alone(tmp_path, links, request, fails):
    if not links:
        request.getfixturevalue("no_links")
    first, second = tmp_path / "a", tmp_path / "b"

    def body(out):
        out.reserve(first)
        out.reserve(second)
        out.write(first, b"x")
        out.write(second, b"x")
        second.write_bytes(b"theirs")

    error, out = fails(OutputError, body)
    assert str(error) == (
        f"cannot write {second}: it appeared during the run; use `force` to replace it;"
        " nothing was released"
    )
    assert names(tmp_path) == ["b"]
    assert second.read_bytes() == b"theirs"
    assert out.released is False


def test_force_replaces_what_appears_meanwhile(tmp_path):
    with Outputs(force=True) as out:
        out.reserve(tmp_path / "a")
        out.write(tmp_path / "a", b"ours")
        (tmp_path / "a").write_bytes(b"theirs")
    assert (tmp_path / "a").read_bytes() == b"ours"
    assert names(tmp_path) == ["a"]


@pytest.mark.usefixtures("no_links")
@pytest.mark.parametrize("force", [False, True])
def test_a_file_system_without_links(tmp_path, umask, force):
    if force:
        (tmp_path / "a").write_bytes(b"old")
    with Outputs(force=force) as out:
        out.reserve(tmp_path / "a", mode=0o600)
        out.write(tmp_path / "a", b"x")
    assert (tmp_path / "a").read_bytes() == b"x"
    assert mode_of(tmp_path / "a") == 0o600
    assert names(tmp_path) == ["a"]


@pytest.mark.usefixtures("no_links")
def test_a_name_claimed_in_vain_is_given_back(tmp_path, monkeypatch, fails):
    def refuse(self, target):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(Path, "replace", refuse)

    def body(out):
        out.reserve(tmp_path / "a")
        out.write(tmp_path / "a", b"x")

    error, _ = fails(OutputError, body)
    assert re.search("Input/output error; nothing was released", str(error))
    assert names(tmp_path) == []


def failing_replace(target, error):
    real = Path.replace

    def replace(self, destination):
        if Path(destination) == target:
            raise error
        return real(self, destination)

    return replace


@pytest.mark.parametrize(
    "error", [OSError(errno.EIO, os.strerror(errno.EIO)), KeyboardInterrupt()], ids=["EIO", "^C"]
)
def test_a_second_rename_that_fails_undoes_the_first(tmp_path, monkeypatch, error, fails):
    new, old, bad = (tmp_path / name for name in ("new", "old", "bad"))
    old.write_bytes(b"before")
    inode = old.stat().st_ino
    monkeypatch.setattr(Path, "replace", failing_replace(bad, error))
    kind = OutputError if isinstance(error, OSError) else KeyboardInterrupt

    def body(out):
        for path in (new, old, bad):
            out.reserve(path)
            out.write(path, b"after")

    error, out = fails(kind, body, force=True)
    if kind is OutputError:
        assert str(error) == f"cannot write {bad}: Input/output error; nothing was released"
    assert names(tmp_path) == ["old"]
    assert old.read_bytes() == b"before"
    assert old.stat().st_ino == inode
    assert out.released is False


@pytest.mark.usefixtures("no_links")
def test_what_cannot_be_undone_is_told(tmp_path, monkeypatch, fails):
    new, old, bad = (tmp_path / name for name in ("new", "old", "bad"))
    old.write_bytes(b"before")
    monkeypatch.setattr(Path, "replace", failing_replace(bad, OSError(errno.EIO, "bad disk")))

    def body(out):
        for path in (new, old, bad):
            out.reserve(path)
            out.write(path, b"after")

    error, out = fails(OutputError, body, force=True)
    assert str(error) == f"cannot write {bad}: bad disk; what went to {old} stays"
    assert names(tmp_path) == ["old"]
    assert old.read_bytes() == b"after"
    assert out.released is True


def test_a_target_that_became_a_folder(tmp_path, fails):
    bad = tmp_path / "b"

    def body(out):
        for name in ("a", "b"):
            out.reserve(tmp_path / name)
            out.write(tmp_path / name, b"x")
        bad.mkdir()

    error, _ = fails(OutputError, body, force=True)
    assert re.search("; nothing was released", str(error))
    assert names(tmp_path) == ["b"]
    assert names(bad) == []


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_that_cannot_be_synced_undoes_everything(tmp_path, monkeypatch, force, fails):
    if force:
        (tmp_path / "a").write_bytes(b"old")
    real = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)

    def body(out):
        out.reserve(tmp_path / "a")
        out.write(tmp_path / "a", b"x")

    error, _ = fails(OutputError, body, force=force)
    assert str(error) == f"cannot write {tmp_path}: Input/output error; nothing was released"
    assert names(tmp_path) == (["a"] if force else [])
    if force:
        assert (tmp_path / "a").read_bytes() == b"old"


def test_a_folder_whose_system_has_no_sync_is_fine(tmp_path, monkeypatch):
    real = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    with Outputs() as out:
        out.reserve(tmp_path / "a")
        out.write(tmp_path / "a", b"x")
    assert names(tmp_path) == ["a"]


@pytest.mark.parametrize("force", [False, True])
def test_an_interruption_at_any_system_call_leaves_all_or_nothing(tmp_path, monkeypatch, force):
    """Ctrl-C just before or just after each step of writing two files and naming them."""
    steps = [(Path, "hardlink_to"), (Path, "replace"), (Path, "unlink")]
    steps += [(os, "open"), (os, "write"), (os, "fsync")]
    complete = 0
    for when in range(100):
        folder = tmp_path / str(when)
        folder.mkdir()
        if force:
            (folder / "a").write_bytes(b"old")
        counter = iter(range(1000))
        out = Outputs(force=force)
        with monkeypatch.context() as patch:
            for owner, name in steps:
                real = getattr(owner, name)

                def step(*args, real=real, counter=counter, when=when, **rest):
                    if next(counter) == when:
                        signal.raise_signal(signal.SIGINT)
                    result = real(*args, **rest)
                    if next(counter) == when:
                        signal.raise_signal(signal.SIGINT)
                    return result

                patch.setattr(owner, name, step)
            try:
                with out:
                    for name in ("a", "b"):
                        out.reserve(folder / name)
                        out.write(folder / name, b"new")
            except KeyboardInterrupt:
                pass
            else:
                complete += 1
        final = {path.name: path.read_bytes() for path in folder.iterdir()}
        if out.released:
            assert final == {"a": b"new", "b": b"new"}
        else:
            assert final == ({"a": b"old"} if force else {})
    assert 10 < complete < 90
