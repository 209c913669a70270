"""What goes wrong from outside: full disks, interruptions, defects. Nothing is left half-written,
and what is said about it is true."""

import errno
import fcntl
import os
import re
import signal
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import pytest

from pate_cli.mechanisms.confident import ConfidentGNMax
from slices import some


def _finish(process):
    out, err = process.communicate(timeout=60)
    return process.returncode, out, err.decode()


def _unread(pipe):
    """Bytes that wait in a pipe."""
    waiting = bytearray(4)
    fcntl.ioctl(pipe, termios.FIONREAD, waiting)
    return int.from_bytes(waiting, sys.byteorder)


def _wait_until(holds):
    deadline = time.monotonic() + 50
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def counted(line):
    """The line up to where it says that the run, which is paid for, stays in the record."""
    line, counts = line.rstrip().rsplit("; ", 1)
    assert re.fullmatch(r"the run at epsilon [0-9.]+ stays in \S+, and its cost counts", counts)
    return line


def test_a_disk_without_room_for_labels_is_known_before_anything_is_paid(
    patched, tmp_path, folder, leftovers
):
    """The kernel refuses files of more than 100,000 bytes: the record fits, the labels do not."""
    votes = tmp_path / "many.npy"
    np.save(votes, np.tile(np.array([30, 10], np.int16), (20_000, 1)))
    limit = "import resource\nresource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))\n"
    words = ["--layout", "counts", "--mechanism", "gnmax", "--sigma2", 4, "--max-epsilon", 1e9]
    words += ["-o", "-", "--format", "csv", "--report", "r.json", "--spend", "s.json"]
    code, written, said = _finish(patched(limit, "aggregate", votes, *words, cwd=folder))
    assert (code, written) == (6, b"")
    assert said.splitlines()[-1] == "pate: cannot write standard output: File too large"
    assert leftovers() == []


@pytest.mark.parametrize(
    ("closed", "words", "code"),
    [
        (">&-", [], 6),
        ("2>&-", ["-o", "/dev/stderr", "--format", "csv"], 6),
        # No file takes the place of a closed stream.
        ("<&- >&- 2>&-", ["-o", "labels.csv", "--report", "report.json"], 0),
    ],
)
def test_a_closed_stream(closed, words, code, command, votes, leftovers):
    line = ["sh", "-c", f'exec "$@" {closed}', "sh", *command("aggregate", votes, *words)]
    result = subprocess.run(line, check=False, capture_output=True)
    assert result.returncode == code
    if not words:  # noticed before anything is spent
        said = b"pate: cannot write standard output: it is closed; connect a pipe or a file\n"
        assert result.stderr == said
    assert leftovers() == ([] if code else ["labels.csv", "report.json"])


def test_an_interruption_while_votes_are_counted(pate, votes, leftovers, monkeypatch):
    monkeypatch.setattr(ConfidentGNMax, "label", lambda *_: os.kill(os.getpid(), signal.SIGINT))
    done = pate("aggregate", votes, "--report", "r.json", "--ledger", "l.json")
    assert (done.exit_code, done.stdout) == (130, "")
    said = done.stderr.splitlines()[-1]
    assert counted(said) == "pate: interrupted; nothing was released"
    assert said.endswith(f"stays in {votes}.spent.json, and its cost counts")
    assert leftovers() == []


@pytest.mark.parametrize("number", some([signal.SIGHUP, signal.SIGINT, signal.SIGTERM], 3))
def test_an_interruption_while_votes_are_read(command, votes, folder, leftovers, number):
    pipe = folder.parent / "pipe"
    os.mkfifo(pipe)
    process = subprocess.Popen(
        command("aggregate", pipe, "-o", "l.csv", "--ledger", "l.json"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    with process, pipe.open("wb") as writing:  # opens when the program has opened its end
        writing.write(votes.read_bytes()[:100])
        writing.flush()
        _wait_until(lambda: _unread(writing) == 0)
        time.sleep(0.3)  # on its way from the first read into the next one, which blocks
        process.send_signal(number)
        code, out, err = _finish(process)
    assert (code, out) == (128 + number, b"")
    assert err == "pate: interrupted; nothing was released\n"
    # Not even the copy of what had come through the pipe is left.
    assert leftovers() == []


def test_an_interruption_after_part_of_the_labels_left_is_not_called_harmless(command, many):
    words = ["-o", "-", "--format", "jsonl", "--report", os.devnull, "-q", "--max-epsilon", 1000]
    with subprocess.Popen(
        command("aggregate", many, *words), stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        _wait_until(lambda: _unread(process.stdout) >= 4096)
        process.send_signal(signal.SIGINT)
        code, out, err = _finish(process)
    assert code == 130
    assert out.startswith(b'{"query_id')
    assert (
        counted(err) == "pate: interrupted; some outputs were released already: "
        "count the cost of this run as spent"
    )


def _defect(monkeypatch, kind):
    """Break the mechanism: the votes are in the message, the arguments and the locals."""

    def label(self, counts, noise):
        raise kind(f"bad votes {counts[0].tolist()}")

    monkeypatch.setattr(ConfidentGNMax, "label", label)


def _defect_words(kind):
    return (
        f"internal failure ({kind}); nothing was released. "
        "Set PATE_DEBUG=1 for a traceback, and make sure that it has no votes before you share it"
    )


@pytest.mark.parametrize(
    ("kind", "code", "message"),
    [
        (RuntimeError, 1, _defect_words("RuntimeError")),
        (UnicodeError, 1, _defect_words("UnicodeError")),
        (MemoryError, 1, "out of memory; nothing was released. Fewer --workers need less memory"),
        (
            lambda _: ImportError("libarrow.so: failed to map segment from shared object"),
            1,
            "cannot load a library: libarrow.so: failed to map segment from shared object; "
            "nothing was released",
        ),
        # What the system refuses is no defect, wherever it comes up.
        (
            lambda _: PermissionError(13, "Permission denied", "odd\nname\x1b[31m"),
            6,
            r"odd\nname\x1b[31m: Permission denied; nothing was released",
        ),
        (
            lambda _: OSError(24, "Too many open files"),
            6,
            "Too many open files; nothing was released",
        ),
    ],
)
def test_what_goes_wrong_deep_inside_is_one_line_without_votes(
    pate, refused, votes, leftovers, monkeypatch, kind, code, message
):
    _defect(monkeypatch, kind)
    refused(pate("aggregate", votes, "-q", "--no-record"), code, message)
    assert leftovers() == []


# The votes are in the arguments, a secret in the local variables.
DEFECT = """
import os
from pate_cli.mechanisms.confident import ConfidentGNMax
os.environ["PATE_DEBUG"] = "1"
def label(self, counts, noise):
    secret = 31415926
    raise RuntimeError("defect")
ConfidentGNMax.label = label
"""


def test_a_defect_with_a_traceback_shows_no_locals(patched, votes, counts, leftovers):
    code, out, err = _finish(patched(DEFECT, "aggregate", votes, "-q"))
    assert (code, out) == (1, b"")
    assert "Traceback" in err
    assert "RuntimeError: defect" in err
    assert "31415926" not in err
    assert np.array2string(counts[0]) not in err
    assert leftovers() == []


def _no_room(*_words):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_report_without_room_ends_a_session_or_a_release_before_it_begins(
    pate, refused, folder, monkeypatch
):
    """No record is begun, and that of the draw, beside the ledger, is as it was."""
    np.save(folder / "v.npy", np.tile([240, 6, 4], (50, 1)))
    words = ("--layout", "counts", "-o", "l.csv", "--ledger", "l.json")
    pate("aggregate", "v.npy", *words, code=0)
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    # A store would be tried there as well, by a put and a delete.
    monkeypatch.setattr("pate_cli.files.outputs.Output.try_room", _no_room)
    words = ("--teachers", 250, "--classes", 3, "--target-epsilon", 2, "--spend", "year.json")
    for line in (("session", *words), ("release", "l.json")):
        found = pate(*line, "--report", "r.json", input='{"votes": [240, 6, 4]}\n')
        assert refused(found, 6) == f"pate: cannot write r.json: {os.strerror(errno.ENOSPC)}"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


@pytest.mark.parametrize("ledger", ["-", "/dev/stdout", "/dev/fd/1"])
def test_a_secret_goes_to_no_stream(pate, votes, leftovers, ledger):
    """A ledger in a pipe once became a file that everybody could read."""
    for name in (ledger, f"file://{ledger}") if ledger != "-" else (ledger,):
        done = pate("aggregate", votes, "-o", "l.csv", "--report", "r.json", "--ledger", name)
        assert (done.exit_code, done.stdout) == (2, "")
        assert f"{name} is no file, but only its owner may read this output" in done.stderr
        assert leftovers() == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
def test_a_full_device_releases_no_labels(command, votes, leftovers):
    words = ["-o", "/dev/full", "--format", "csv", "--report", "r.json", "--ledger", "l.json"]
    result = subprocess.run(command("aggregate", votes, *words), capture_output=True, timeout=60)
    assert (result.returncode, result.stdout) == (6, b"")
    assert counted(result.stderr.decode().splitlines()[-1]) == (
        "pate: cannot write /dev/full: No space left on device; what was written "
        "to l.json, r.json stays"
    )
    assert leftovers() == ["l.json", "r.json"]
