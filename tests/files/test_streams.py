"""Outputs that are links, devices, pipes, descriptors or standard output."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from pathlib import Path

import pytest

from pate_cli.files.transaction import Outputs
from refusals import unreserved


def names(folder):
    return sorted(path.name for path in folder.iterdir())


needs_dev_full = pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
needs_fd_folder = pytest.mark.skipif(not Path("/dev/fd").exists(), reason="no /dev/fd")


# ---------------------------------------------------------------- links and special files


def test_a_link_stays_and_its_target_is_replaced(tmp_path, fails):
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "a", tmp_path / "link"
    target.write_bytes(b"old")
    link.symlink_to(Path("real") / "a")
    assert unreserved(fails, link) == f"{link} exists already; use `force` to replace it"
    with Outputs(force=True) as out:
        out.reserve(link)
        out.write(link, b"new")
    assert link.is_symlink()
    assert target.read_bytes() == b"new"
    assert not target.is_symlink()


def test_a_dangling_link_gets_its_target(tmp_path):
    (tmp_path / "link").symlink_to("a")
    with Outputs() as out:
        out.reserve(tmp_path / "link")
        out.write(tmp_path / "link", b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "a").read_bytes() == b"x"


def test_a_link_into_a_missing_folder_is_refused(tmp_path, fails):
    (tmp_path / "link").symlink_to(tmp_path / "missing" / "a")
    assert unreserved(fails, tmp_path / "link").endswith(
        f"there is no folder {tmp_path / 'missing'}"
    )


def test_a_loop_of_links_is_refused(tmp_path, fails):
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    path = tmp_path / "a"
    assert unreserved(fails, path) == f"cannot write {path}: {os.strerror(errno.ELOOP)}"


@pytest.mark.parametrize("force", [False, True])
def test_the_null_device_is_written_not_replaced(tmp_path, force):
    link = tmp_path / "null"
    link.symlink_to(os.devnull)
    before = Path(os.devnull).stat()
    for path in (os.devnull, link):
        with Outputs(force=force) as out:
            out.reserve(path)
            out.write(path, b"gone")
    after = Path(os.devnull).stat()
    assert (before.st_ino, before.st_mode) == (after.st_ino, after.st_mode)
    assert names(Path(os.devnull).parent).count("null") == 1
    assert not [name for name in names(Path(os.devnull).parent) if name.startswith(".pate-")]


def test_a_named_pipe_gets_the_data_only_at_the_end(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    got = []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    with Outputs() as out:
        out.reserve(pipe)
        out.reserve(tmp_path / "a")
        out.write(pipe, b"x" * 200_000)
        out.write(tmp_path / "a", b"y")
        reader.start()
        assert not got
    reader.join(timeout=10)
    assert got == [b"x" * 200_000]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert names(tmp_path) == ["a", "pipe"]


@pytest.fixture
def spool_folder(tmp_path, monkeypatch):
    folder = tmp_path / "spool"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_what_is_held_back_is_held_on_disk_and_nameless(tmp_path, spool_folder):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    piece, got = bytes(range(256)) * 4096, []
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    tracemalloc.start()
    with Outputs() as out:
        out.reserve(pipe)
        with out.open(pipe) as file:
            for _ in range(8):
                file.write(piece)
        assert tracemalloc.get_traced_memory()[1] < 4 * len(piece)
        assert names(spool_folder) == []
        reader.start()
    tracemalloc.stop()
    reader.join(timeout=10)
    assert got == [piece * 8]


@pytest.mark.parametrize("size", [10, 1 << 21])
def test_a_disk_without_room_to_hold_back(tmp_path, run_child, size):
    child = run_child(
        [
            "import resource",
            "resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))",
            "out.reserve('-')",
            "out.reserve('a')",
            "out.write('a', b'x')",
            f"out.write('-', bytes({size}))",
        ],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
    )
    if size == 10:  # held in memory
        assert (child.stderr, names(tmp_path)) == ("", ["a"])
    else:
        reason = os.strerror(errno.EFBIG)
        assert child.stderr == f"False cannot write -: {reason}; nothing was released\n"
        assert names(tmp_path) == []


def test_a_pipe_nobody_is_told_of_an_error(tmp_path, fails):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def body(out):
        out.reserve(pipe)
        out.write(pipe, b"x")
        _ = 1 // 0  # would hang, without a reader, if the pipe were opened before the end

    _, out = fails(ZeroDivisionError, body)
    assert out.released is False


def test_a_socket_is_refused(tmp_path, monkeypatch, fails):
    socket = pytest.importorskip("socket")
    monkeypatch.chdir(tmp_path)  # socket addresses are short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("s")
        assert unreserved(fails, "s", force=True) == (
            "cannot write s: it is neither a file, a pipe nor a terminal"
        )


@needs_fd_folder
def test_an_open_descriptor_is_written_where_it_stands(tmp_path):
    path = tmp_path / "a"
    with path.open("wb", buffering=0) as file:
        file.write(b"before ")
        name = f"/dev/fd/{file.fileno()}"
        with Outputs() as out:
            out.reserve(name)
            out.write(name, b"after")
    assert path.read_bytes() == b"before after"


@needs_fd_folder
def test_a_closed_descriptor_is_refused(fails):
    assert unreserved(fails, "/dev/fd/987654") == (
        f"cannot write /dev/fd/987654: {os.strerror(errno.EBADF)}"
    )


# ---------------------------------------------------------------- standard output


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_standard_output_comes_after_the_files(tmp_path, capfdbinary, name):
    path = tmp_path / "a"
    sys.stdout.write("printed before\n")
    with Outputs() as out:
        out.reserve(name)
        out.reserve(path)
        out.write(name, b"\x00report\n")
        out.write(path, b"x")
        sys.stdout.flush()
        assert capfdbinary.readouterr().out == b"printed before\n"
    assert capfdbinary.readouterr().out == b"\x00report\n"


def test_standard_output_in_memory(capsysbinary):
    with Outputs() as out:
        out.reserve("-")
        out.write("-", b"report\n")
    assert capsysbinary.readouterr().out == b"report\n"
    assert out.released is True


def test_standard_output_is_silent_after_an_error(capsysbinary, fails):
    def body(out):
        out.reserve("-")
        out.write("-", b"report\n")
        raise KeyboardInterrupt

    _, out = fails(KeyboardInterrupt, body)
    assert capsysbinary.readouterr().out == b""
    assert out.released is False


def test_redirected_standard_output_is_not_an_existing_file(tmp_path, run_child):
    with (tmp_path / "report").open("wb") as file:
        child = run_child(
            ["out.reserve('/dev/stdout')", "out.write('/dev/stdout', b'x')"], stdout=file
        )
    assert child.stderr == ""
    assert (tmp_path / "report").read_bytes() == b"x"


def test_a_closed_standard_output_is_refused_at_reservation(run_child):
    child = run_child(["out.reserve('-')"], preexec_fn=lambda: os.close(1))
    assert child.stderr == "False cannot write standard output: it is closed\n"


@needs_dev_full
def test_a_full_standard_output_says_what_was_written(tmp_path, run_child):
    body = ["out.reserve('-')", "out.write('-', b'x')"]
    more = ["out.reserve('a')", "out.write('a', b'x')"]
    with Path("/dev/full").open("wb") as full:
        child = run_child(body, stdout=full, cwd=tmp_path)
        both = run_child(body + more, stdout=full, cwd=tmp_path)
    prefix = "cannot write standard output: No space left on device; "
    # and nothing else: the interpreter has no second try at the buffer when it exits
    assert child.stderr == f"False {prefix}nothing was released\n"
    assert both.stderr == f"True {prefix}what went to a stays\n"
    assert names(tmp_path) == ["a"]


def test_a_reader_that_left_is_a_broken_pipe_for_the_caller(tmp_path, run_child):
    read, write = os.pipe()
    os.close(read)
    body = ["out.reserve('-')", "out.write('-', b'x')", "out.reserve('a')", "out.write('a', b'x')"]
    try:
        child = run_child(body, stdout=write, cwd=tmp_path)
    finally:
        os.close(write)
    assert child.stderr == "True broken pipe\n"
    assert names(tmp_path) == ["a"]
