"""Runs that are killed or interrupted anywhere, and releases of one ledger at one moment."""

from __future__ import annotations

import contextlib
import contextvars
import itertools
import json
import os
import re
import signal
import sys
import tempfile
import time
import warnings

import numpy as np

import record_files
from pate_cli import __main__ as program
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.runs import Outcome, RunKind
from pate_cli.run import fold

# A slice of the three hundred, and of the two hundred races, that have been tried.
KILLS = int(os.environ.get("PATE_KILLS", "3"))
SEED = int(os.environ.get("PATE_KILLS_SEED", "2"))
RACES = int(os.environ.get("PATE_RACES", "3"))
SIGNALS = [signal.SIGKILL, signal.SIGTERM, signal.SIGINT]
RELEASE = ["--order", 5, "--beta", 0.05, "--sigma-release", 20]
GNMAX = ["--mechanism", "gnmax", "--sigma2", "4", "--release", "none", "--max-epsilon", 500]
GNMAX += ["--workers", 1, "--quiet"]
NAMES = ["ledger.json", "report.json", "labels.npy"]
OLD = {"report.json": b'{\n  "schema_version": 0}'}


def started(line, folder, *, until=None):
    """A run in a process of its own, from when it can be told to stop, or sees the file `until`."""
    ready, tell = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of this process are idle
        process = os.fork()
    if process:
        os.close(tell)
        os.read(ready, 1)
        os.close(ready)
        return process
    code = 70
    try:
        os.chdir(folder)
        said = os.open(folder.parent / "said", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(said, 1)
        os.dup2(said, 2)
        sys.stdout = sys.stderr = os.fdopen(said, "w")
        signal.signal(signal.SIGINT, signal.default_int_handler)

        def begun():
            os.write(tell, b"x")
            os.close(tell)
            while until is not None and not until.exists():
                pass

        program.escape_unprintable = begun  # the first that is called once signals are taken
        sys.argv = ["pate", *map(str, line)]
        contextvars.Context().run(program.main)  # nothing is known of earlier runs
    except SystemExit as done:
        code = done.code
    finally:
        with contextlib.suppress(BaseException):
            sys.stderr.flush()
        os._exit(code)


def ended(process):
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def stopped(line, folder, number, wait, *, first=None):
    """The exit code of a run that is sent a signal after so many seconds, and what it said.

    With `first`, a file, the seconds begin when that is put in place.
    """
    before = identity(first) if first else None
    process = started(line, folder)
    while first and identity(first) == before and not zombie(process):
        pass
    time.sleep(wait)
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)
    return ended(process), (folder.parent / "said").read_text()


def identity(path):
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_ino
    return None


def zombie(process):
    return os.waitid(os.P_PID, process, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None


def moment(chance, length, run, first):
    """When to send a signal: anywhere, and every other time while outputs are put in place."""
    if run % 2:
        return {"wait": chance.uniform(0.0, 1.1 * length)}
    return {"wait": chance.uniform(0.0, 2e-3), "first": first}


def timed(line, folder):
    began = time.monotonic()
    assert ended(started(line, folder)) == 0
    return time.monotonic() - began


def draws_in(record):
    """The draws that it tells of; those that never ended, too."""
    return [run for run in SpendRecord.read(record).runs if run.kind == RunKind.RELEASE]


def hidden(folder):
    return [path.name for path in folder.iterdir() if path.name.startswith(".")]


def check_whole(folder, rows):
    """Names of what is new, each of which is whole."""
    new = [
        name
        for name in NAMES
        if (folder / name).exists() and (folder / name).read_bytes() != OLD.get(name)
    ]
    if "ledger.json" in new:
        assert Ledger.read(folder / "ledger.json").rounds
    if "labels.npy" in new:
        assert len(np.load(folder / "labels.npy")) == rows
    if "report.json" in new:
        assert json.loads((folder / "report.json").read_text())["queries"] == rows
    return new


def check_said(code, number, said, new):
    """One line on how it ended, which is true; none where a signal came after the end."""
    if code in (0, -number):
        assert said == ""
        assert new != []
        return
    left = (
        "some outputs were released already: count this run as spent"
        if new
        else "nothing was released"
    )
    counts = r"; the run at epsilon [0-9.]+ stays in \S+ and counts"  # once it was entered
    assert code == 128 + number
    assert re.fullmatch(f"pate: interrupted; {left}({counts})?\n", said)


def test_labels_never_appear_without_what_records_them(votes, tmp_path, pate):
    rows = len(np.load(votes))
    line = ["aggregate", votes, "-o", "labels.npy", "--report", "report.json"]
    line += ["--ledger", "ledger.json", *GNMAX, "--force"]
    assert pate(*line).exit_code == 0  # with everything loaded that a fork needs
    (tmp_path / "timed").mkdir()
    length = timed(line, tmp_path / "timed")
    chance = np.random.default_rng(SEED)
    for run, number in zip(range(KILLS), itertools.cycle(SIGNALS), strict=False):
        folder = tmp_path / f"run{run}"
        folder.mkdir()
        old = OLD if run % 4 in (0, 3) else {}
        for name in old:
            (folder / name).write_bytes(old[name])
        code, said = stopped(line, folder, number, **moment(chance, length, run, folder / NAMES[0]))
        new = check_whole(folder, rows)
        assert new == NAMES[: len(new)]
        assert all((folder / name).exists() for name in old)
        if number != signal.SIGKILL:
            check_said(code, number, said, new)
            assert hidden(folder) == []
        else:
            # In the instant before it takes the place of another file it has a name of its own.
            assert len(hidden(folder)) <= len(old)
        if run % 5:
            continue
        (folder / "ledger.json").unlink(missing_ok=True)  # which no run replaces
        assert ended(started(line, folder)) == 0
        assert check_whole(folder, rows) == NAMES


def test_a_record_never_forgets_a_draw(votes, tmp_path, folder, pate):
    made = ["-o", "labels.npy", "--report", "r.json", "--ledger", "a.json", *RELEASE]
    assert pate("aggregate", votes, *made, *GNMAX).exit_code == 0
    line = ["release", "a.json", *RELEASE]
    line += ["--report", "report.json", "--quiet", "--again", "--force"]
    assert pate(*line).exit_code == 0
    length = timed(line, folder)
    chance = np.random.default_rng(SEED)
    record, report = votes.with_name("votes.npy.spent.json"), folder / "report.json"
    for run, number in zip(range(KILLS), itertools.cycle(SIGNALS), strict=False):
        before, published = len(draws_in(record)), identity(report)
        left = set(hidden(folder))  # by those that were killed
        code, said = stopped(line, folder, number, **moment(chance, length, run, record))
        after = len(draws_in(record))
        json.loads(report.read_text())
        assert after in (before, before + 1)
        left_it = identity(report) != published
        # Entered before it is drawn: it counts, whether or not anybody has seen it.
        if left_it:
            assert after == before + 1
            assert draws_in(record)[-1].outcome is Outcome.RELEASED
        said, counts, where = said.partition("; the run at epsilon ")
        if counts:
            assert after == before + 1
            assert where.endswith(f" stays in {record} and counts\n")
            said += "\n"
        said, drawn, _ = said.partition("; what was drawn stays in the record and counts")
        if drawn:
            assert after == before + 1
            said += "\n"
        if number != signal.SIGKILL:
            check_said(code, number, said, ["report"] * left_it)
            assert set(hidden(folder)) <= left
    assert ended(started(line, folder)) == 0


def test_a_run_goes_on_and_nothing_is_left(counts, tmp_path, pate, monkeypatch):
    """Temporary copies of votes that are text, and perhaps a checkpoint."""
    spool = tmp_path / "tmp"
    monkeypatch.setattr(tempfile, "tempdir", str(spool))
    monkeypatch.setattr(fold, "_ENTRIES", 10 * counts.shape[1])
    votes = tmp_path / "votes.csv"
    header = ",".join(f"class_{j}" for j in range(counts.shape[1]))
    np.savetxt(votes, counts, "%d", ",", header=header, comments="")
    line = ["aggregate", votes, "-o", "labels.npy", "--report", "report.json"]
    line += ["--ledger", "ledger.json", "--seed", 3, *GNMAX]
    assert pate(*line).exit_code == 0
    (tmp_path / "timed").mkdir()
    length = timed(line, tmp_path / "timed")
    wanted = (tmp_path / "timed" / "labels.npy").read_bytes()
    chance = np.random.default_rng(SEED)
    for run, number in zip(range(KILLS), itertools.cycle(SIGNALS), strict=False):
        folder = tmp_path / f"run{run}"
        folder.mkdir()
        kept = ["--checkpoint", "kept"] * (run % 3 > 0)
        when = moment(chance, length, run, folder / NAMES[0])
        code, said = stopped([*line, *kept], folder, number, **when)
        new = check_whole(folder, len(counts))
        assert "labels.npy" not in new or (folder / "labels.npy").read_bytes() == wanted
        if number != signal.SIGKILL:
            check_said(code, number, said, new)
            assert kept or hidden(folder) == []
            assert list(spool.iterdir()) == []
        copies = set(spool.iterdir())  # which only a process that is killed may leave
        assert all(not path.stat().st_mode & 0o077 for path in copies)
        # What is resumed finds what it put there before; one that lost its key had ended.
        if not (folder / "kept" / "run.json").exists():
            for name in NAMES:
                (folder / name).unlink(missing_ok=True)
        assert ended(started([*line, *kept], folder)) == 0
        assert (folder / "labels.npy").read_bytes() == wanted
        assert sorted(path.name for path in folder.iterdir()) == sorted(NAMES)
        assert set(spool.iterdir()) == copies
        for path in copies:
            path.unlink()


def test_releases_of_one_ledger_at_one_moment_draw_once(votes, tmp_path, folder, pate):
    made = ["-o", "labels.npy", "--report", "r.json", "--ledger", "a.json", *RELEASE]
    assert pate("aggregate", votes, *made, *GNMAX).exit_code == 0
    line = ["release", "a.json", *RELEASE, "--quiet"]
    assert pate(*line, "--no-record").exit_code == 0
    record = votes.with_name("votes.npy.spent.json")
    nothing_drawn = record.read_bytes()
    for race in range(RACES):
        record.write_bytes(nothing_drawn)
        record_files.forget()
        go = tmp_path / f"go{race}"
        names = [f"r{race}.{runner}.json" for runner in range(3)]
        runs = [started([*line, "--report", name], folder, until=go) for name in names]
        go.touch()
        assert sorted(map(ended, runs)) == [0, 7, 7]
        assert len([name for name in names if (folder / name).exists()]) == 1
        (drawn,) = draws_in(record)
        assert drawn.outcome is Outcome.RELEASED
