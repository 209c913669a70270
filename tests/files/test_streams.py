"""Outputs that are devices, pipes, descriptors or standard output: whole, after the files."""

import errno
import os
import stat
import sys
import tempfile
import threading
from pathlib import Path

import pytest

from pate_cli.core.errors import OutputError, UsageError
from pate_cli.files.outputs import Outputs
from refusals import unreserved

FULL = Path("/dev/full")
needs_full = pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def put(out, *outputs, content=b"x"):
    for path in outputs:
        out.reserve(path)
        out.write(path, content)


def write(*outputs, force=False, **more):
    with Outputs(force=force) as out:
        put(out, *outputs, **more)


@pytest.mark.parametrize("force", [False, True])
def test_the_null_device_is_written_and_may_be_named_twice(tmp_path, force):
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    before = Path(os.devnull).stat()
    write(os.devnull, os.devnull, link, force=force)
    after = Path(os.devnull).stat()
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)


def test_a_pipe_gets_all_of_it_once_the_files_are_in_place(tmp_path, monkeypatch):
    """It may be more than a pipe holds, and lies in no folder meanwhile."""
    spool, pipe, got = tmp_path / "spool", tmp_path / "pipe", []
    spool.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spool))
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append((pipe.read_bytes(), names(tmp_path))))
    with Outputs() as out:
        put(out, pipe, tmp_path / "a", content=b"x" * 2_000_000)
        assert names(spool) == []
        reader.start()
        assert not got
    reader.join(timeout=10)
    assert got == [(b"x" * 2_000_000, ["a", "pipe", "spool"])]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_a_pipe_without_a_reader_is_not_opened_after_an_error(tmp_path, fails):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def body(out):
        put(out, pipe)
        _ = 1 // 0  # would hang if the pipe were opened

    _, out = fails(ZeroDivisionError, body)
    assert out.released is False


def test_a_socket_is_refused(tmp_path, monkeypatch, fails):
    socket = pytest.importorskip("socket")
    monkeypatch.chdir(tmp_path)  # socket addresses are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        said = unreserved(fails, "s", force=True)
    assert said.startswith("cannot write s: it is neither a file, a pipe nor a terminal; give")


@pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no /dev/fd")
def test_a_descriptor_of_a_pipe_is_written_and_one_of_a_file_is_that_file(tmp_path, fails):
    """As of a process substitution. What a shell opened is there, and not replaced."""
    read, there = os.pipe()
    write(f"/dev/fd/{there}", content=b"after")
    os.close(there)
    assert os.read(read, 100) == b"after"
    os.close(read)
    with (tmp_path / "a").open("wb", buffering=0) as file:
        file.write(b"before")
        assert "exists already" in unreserved(fails, f"/dev/fd/{file.fileno()}")
    assert (tmp_path / "a").read_bytes() == b"before"


@needs_full
def test_a_full_device_says_which_files_stay(tmp_path, fails):
    text, out = fails(OutputError, lambda out: put(out, tmp_path / "a", FULL))
    full = f"cannot write {FULL}: {os.strerror(errno.ENOSPC)}"
    assert text == f"{full}; what was written to {tmp_path / 'a'} stays"
    assert out.released is True


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_standard_output_comes_last(tmp_path, capfdbinary, name):
    sys.stdout.write("printed before\n")
    with Outputs() as out:
        put(out, name, tmp_path / "a", content=b"\x00report\n")
        sys.stdout.flush()
        assert capfdbinary.readouterr().out == b"printed before\n"
    assert capfdbinary.readouterr().out == b"\x00report\n"


@pytest.mark.parametrize("other", ["-", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_takes_one_output(other, fails):
    text, _ = fails(UsageError, lambda out: [out.reserve(name) for name in ("-", other)])
    assert text.startswith("two outputs would be written to the same place")


@needs_full
def test_a_full_standard_output_says_what_was_written(tmp_path, run_child):
    with FULL.open("wb") as full:
        child = run_child("-", stdout=full, cwd=tmp_path)
        both = run_child("-", "a", stdout=full, cwd=tmp_path)
    prefix = "cannot write standard output: No space left on device; "
    # and nothing else: the interpreter has no second try at the buffer when it exits
    assert child.stderr == f"False {prefix}nothing was released\n"
    assert both.stderr == f"True {prefix}what was written to a stays\n"


def test_a_reader_that_left_is_a_broken_pipe_and_the_files_stay(tmp_path, run_child):
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "wb") as left:
        child = run_child("-", "a", stdout=left, cwd=tmp_path)
    assert child.stderr == "True broken pipe\n"
    assert names(tmp_path) == ["a"]
