"""A checkpoint is of one run, its owner's alone, and gone in the end; damaged rows are done again.

What happens to runs that are killed is tried in `tests/kills`.
"""

import contextlib
import errno
import json
import os
import pickle
import stat
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import pate_cli as pate
from kills.runs import A_RANGE, CLASSES, CONFIDENT, ROWS, in_place, votes_in, words
from pate_cli.cli.app import app
from pate_cli.core.errors import OutputError
from pate_cli.run import fold
from pate_cli.run.checkpoint import Checkpoint
from refusals import refusal
from slices import some

DEEP = '{"schema_version": ' + "[" * 10**5


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    return votes_in(tmp_path_factory.mktemp("votes"))


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to run in, with ranges of a few rows."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(fold, "_ENTRIES", A_RANGE * CLASSES)
    monkeypatch.setenv("PATE_HOME", os.devnull)  # every folder is on its own
    return tmp_path / "here"


def run(line, code=0):
    done = CliRunner().invoke(app, line)
    assert done.exit_code == code, done.output
    return done


def interrupted(*_):
    raise KeyboardInterrupt


@pytest.fixture
def unended(monkeypatch):
    """A block in which a run that comes to its end keeps its checkpoint."""

    @contextlib.contextmanager
    def block():
        with monkeypatch.context() as patch:
            patch.setattr(Checkpoint, "end", lambda self: None)
            yield

    return block


@pytest.fixture
def cut(here, votes, unended):
    """Run to the end of the work but keep the checkpoint, and what is in place; then forget it."""

    def cut_short(kind="plain", *more):
        with unended():
            run(words(votes, kind, *more))
        found = in_place(here)
        for name in found:
            (here / name).unlink()
        return found

    return cut_short


def state(folder):
    return {path.name: (path.stat().st_mode, path.read_bytes()) for path in folder.iterdir()}


def same_answer(votes, here, found, kind="plain"):
    run(words(votes, kind))
    assert in_place(here) == found
    assert not (here / "kept").exists()


OTHERS = [
    ["--threshold", "41"],
    ["--sigma2", "7"],
    ["--max-queries", "119"],
    ["--max-answers", "119"],
    ["--delta", "1e-6"],
    ["--release", "upper"],
    ["--release", "upper", "--order", "4"],
    ["--analysis", "paper"],
    ["--ledger", "ledger.json"],
    ["--teachers-per-record", "2"],
    ["--target-epsilon", "25"],
    ["--spend", "other.json"],
    ["--seed", "1"],
    ["--mechanism", "gnmax", "--sigma2", "6"],
]


@pytest.mark.parametrize("flags", some(OTHERS, 4), ids="".join)
def test_other_flags_are_refused_and_nothing_is_touched(flags, votes, here, cut):
    found = cut()
    before, line = state(here / "kept"), words(votes, "plain")
    if "gnmax" in flags:
        line = [word for word in line if word not in CONFIDENT]
    if "--spend" in flags:
        line = [word for word in line if word not in ("--spend", "spent.json")]
    done = run([*line, *flags], 2)
    assert "other flags or other votes" in done.stderr
    assert state(here / "kept") == before
    assert in_place(here) == {}
    same_answer(votes, here, found)


@pytest.mark.parametrize("row", [0, 57, ROWS - 1])
def test_other_votes_are_refused(row, here, tmp_path, cut, votes):
    cut()
    before, counts = state(here / "kept"), np.load(votes)
    changed = counts.copy()
    changed[row] = np.roll(changed[row], 1)
    assert np.any(changed != counts)
    np.save(tmp_path / "other.npy", changed)
    run(words(tmp_path / "other.npy", "plain"), 2)
    assert state(here / "kept") == before


def test_only_a_folder_of_its_own(votes, here):
    (here / "kept").mkdir(mode=0o700)
    (here / "kept" / "notes.txt").write_text("mine")
    done = run(words(votes, "plain"), 6)
    assert "is not empty, and it is not a checkpoint" in done.stderr
    assert [path.name for path in (here / "kept").iterdir()] == ["notes.txt"]
    assert in_place(here) == {}


@pytest.mark.parametrize("made", [True, False])
@pytest.mark.parametrize("mode", [0o755, 0o710, 0o701])
def test_nobody_else_may_look_into_it(mode, made, votes, here, cut):
    if made:
        cut()
    else:
        (here / "kept").mkdir()
    (here / "kept").chmod(mode)
    done = run(words(votes, "plain"), 6)
    assert "chmod 700" in done.stderr
    assert in_place(here) == {}


def test_it_is_its_owners_alone_and_goes_in_the_end(votes, here, cut):
    mask = os.umask(0)
    try:
        found = cut()
    finally:
        os.umask(mask)
    assert stat.S_IMODE((here / "kept").stat().st_mode) == 0o700
    names = {path.name for path in (here / "kept").iterdir()}
    assert names == {"run.json", *(f"piece-{row}.bin" for row in range(0, ROWS, A_RANGE))}
    assert {stat.S_IMODE(path.stat().st_mode) for path in (here / "kept").iterdir()} == {0o600}
    (here / "kept" / "piece-0.0123456789abcdef.tmp").touch()  # of a process that was killed
    same_answer(votes, here, found)


def flipped(data, at, bit=0):
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def test_a_run_file_of_which_a_bit_flipped_is_refused(tmp_path):
    """With another key the run would go on to other labels than may be out already."""
    kept = tmp_path / "kept"
    Checkpoint.of(kept, "a run", seed=None)
    whole = (kept / "run.json").read_bytes()
    for at in range(len(whole)):
        (kept / "run.json").write_bytes(flipped(whole, at, at % 8))
        message = refusal(OutputError, Checkpoint.of, kept, "a run", seed=None)
        assert message.startswith(f"{kept} has no checkpoint that this version of pate can read")


DAMAGES = {
    "gone": None,
    "empty": lambda data: b"",
    "short": lambda data: data[:-1],
    "long": lambda data: data + b"\0",
    "seal": lambda data: flipped(data, 0),
    "content": lambda data: flipped(data, len(data) // 2),
    "seal only": lambda data: data[:32],
}


@pytest.mark.parametrize("kind", some(["plain", "target", "capped"], 2))
@pytest.mark.parametrize("damage", some(list(DAMAGES), 3))
def test_a_damaged_piece_is_done_again(kind, damage, votes, here, cut):
    found = cut(kind)
    for path in sorted((here / "kept").glob("piece-*.bin"))[::3]:
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(DAMAGES[damage](path.read_bytes()))
    same_answer(votes, here, found, kind)


class Planted:
    """Whoever unpickles it leaves a trace."""

    def __reduce__(self):
        return os.mkdir, ("trace",)


def test_a_piece_of_another_place_run_or_hand_does_not_count(votes, here, cut):
    cut()
    other = (here / "kept" / "piece-0.bin").read_bytes()
    for path in (here / "kept").iterdir():
        path.unlink()
    found, kept = cut(), here / "kept"
    (kept / "piece-0.bin").write_bytes(other)
    (kept / "piece-20.bin").write_bytes((kept / "piece-10.bin").read_bytes())
    (kept / "piece-30.bin").write_bytes(bytes(32) + pickle.dumps(Planted()))
    same_answer(votes, here, found)
    assert not (here / "trace").exists()


def test_an_end_that_fails_half_way_gives_no_second_answer(votes, here, monkeypatch):
    unlink = Path.unlink

    def fail(self, missing_ok=False):
        if self.name == f"piece-{ROWS // 2}.bin":
            raise PermissionError(13, "Permission denied")
        unlink(self, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fail)
        done = run(words(votes, "plain"), 6)
    assert "the run has ended, so remove the rest of this secret folder yourself" in done.stderr
    found = in_place(here)
    assert {"report.json", "labels.npy"} <= set(found)
    # The key went last, so that the same command gives the same labels again.
    assert (here / "kept" / "run.json").exists()
    run(words(votes, "plain", "--force"))
    assert in_place(here) == found
    assert not (here / "kept").exists()


def test_a_test_that_fails_is_told_though_its_end_fails(votes, here, monkeypatch):
    def fail(self):
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rmdir", fail)
        target = ["--target-epsilon", "2", "--max-queries", str(ROWS), "--bound", "two-tail"]
        done = run([*words(votes, "plain"), *target, "--min-pass", "0"], 8)
    assert "none are released" in done.stderr
    assert "the run has ended, so remove the rest" in done.stderr
    assert set(in_place(here)) == {"report.json", "spent.json"}


@pytest.mark.parametrize(
    "where", ["pate_cli.run.labelling.TallySum.add", "pate_cli.run.labelling.Drawn.until"]
)
def test_what_ended_before_stays_charged_when_its_run_is_taken_up_and_fails(
    where, votes, here, cut, monkeypatch
):
    """Its labels may be out already; a second start must not strike out what they cost."""
    found = cut("target")
    (here / "spent.json").write_bytes(found["spent.json"])
    for path in (here / "kept").glob("piece-*.bin"):
        path.unlink()

    with monkeypatch.context() as patch:
        patch.setattr(where, interrupted)
        run(words(votes, "target"), 130)
    assert in_place(here) == {"spent.json": found["spent.json"]}
    same_answer(votes, here, found, "target")


@pytest.mark.parametrize("recorded", [False, True])
def test_a_resumed_run_replaces_the_report_that_it_wrote_before(
    recorded, here, votes, monkeypatch, unended
):
    """The time of the run, or a later run in the record, once made the report another file."""
    line, other = words(votes, "plain"), words(votes, "plain", kept=None)
    if not recorded:
        at = line.index("--spend")
        line[at : at + 2] = ["--no-record"]
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    with unended():
        run(line)
    labels = Path("labels.npy").read_bytes()
    Path("labels.npy").unlink()
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700007200")
    other[other.index("-o") + 1], other[other.index("--report") + 1] = "other.npy", "other.json"
    run(other)
    run(line)
    assert Path("labels.npy").read_bytes() == labels
    # A report of another run stays, and whatever else names this run.
    quoted = f'"run": "{json.loads(Path("report.json").read_text())["run"]}"'
    other = Path("other.json").read_text()
    for text in (other, quoted, f'{{"schema_version": 1, {quoted}}}', DEEP):
        Path("labels.npy").unlink()
        Path("report.json").unlink()
        with unended():
            run(line)
        Path("labels.npy").unlink()
        Path("report.json").write_text(text)
        run(line, 6)
        assert Path("report.json").read_text() == text
        Path("labels.npy").write_bytes(labels)


@pytest.mark.parametrize("kind", some(["plain", "target"], 2))
def test_the_report_of_a_run_that_was_resumed_later_verifies(kind, votes, here, monkeypatch):
    """It is of the time at which the run was entered, as the record has it."""

    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    with monkeypatch.context() as patch:
        patch.setattr("pate_cli.run.labelling.Drawn.until", interrupted)
        run(words(votes, kind), 130)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700007200")
    run(words(votes, kind))
    assert pate.verify("report.json").holds
    assert pate.spent("spent.json", reports=["report.json"]).holds
