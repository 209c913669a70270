"""Runs that are cut short: whenever they are killed, there is one answer, charged once."""

from __future__ import annotations

import errno
import json
import os
import pickle
import signal
import stat
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import pate_cli as pate
from pate_cli.cli.app import app
from pate_cli.core.errors import OutputError, UsageError
from pate_cli.core.noise import RunKey
from pate_cli.mechanisms.synthetic import SyntheticEnsemble
from pate_cli.run import passes
from pate_cli.run.checkpoint import Checkpoint, reached
from refusals import refusal
from slices import some

ROWS, TEACHERS, CLASSES, A_RANGE = 120, 60, 3, 10
COUNTS = SyntheticEnsemble(teachers=TEACHERS, classes=CLASSES, queries=ROWS, agreement=0.75).draw(
    5
)[0]
CONFIDENT = ["--threshold", "40", "--sigma1", "12", "--sigma2", "6"]
TARGET = ["--target-epsilon", "7", "--spend", "spent.json", "--max-queries", str(ROWS)]
TARGET += ["--bound", "two-tail"]
KINDS = {
    "plain": CONFIDENT,
    "ledger": [*CONFIDENT, "--release", "upper", "--ledger", "ledger.json"],
    "target": [*CONFIDENT, *TARGET],
    "capped": [*CONFIDENT, "--max-answers", "15"],
    "in-order": ["--mechanism", "sparse-vector", "--query-epsilon", "2", "--query-delta", "1e-3"],
}
KINDS["in-order"] += ["--refusals", "10", "--delta", "0.2"]
# Most of them where a run is short.
KILLS = {"plain": 6, "ledger": 4, "target": 3, "capped": 6, "in-order": 6}


@pytest.fixture(scope="module")
def votes(tmp_path_factory):
    path = tmp_path_factory.mktemp("votes") / "votes.npy"
    np.save(path, COUNTS)
    return path


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder to run in, with ranges of a few rows."""
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    monkeypatch.setattr(passes, "_ENTRIES", A_RANGE * CLASSES)
    return tmp_path / "here"


def words(votes, kind, *more, kept="kept"):
    always = ["aggregate", str(votes), "-o", "labels.npy", "--report", "report.json"]
    always += ["--workers", "1", "--max-epsilon", "1000"]
    checkpoint = [] if kept is None else ["--checkpoint", kept]
    given = [*always, *checkpoint, *KINDS[kind], *more]
    return given if "--spend" in given else [*given, "--spend", "spent.json"]


def started(folder, line, key):
    """The process of a run in which `key` is the next fresh one."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of this process are idle
        process = os.fork()
    if process:
        return process
    code = 70
    try:
        os.chdir(folder)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.stdout = sys.stderr = os.fdopen(nowhere, "w")
        RunKey.fresh = classmethod(lambda _: key)
        passes._ENTRIES = A_RANGE * CLASSES
        app(line, prog_name="pate")
    except SystemExit as done:
        code = done.code
    finally:
        os._exit(code)


def ended(process):
    """The exit code of a process, once it has ended; negative for a signal."""
    return os.waitstatus_to_exitcode(os.waitpid(process, 0)[1])


def in_place(folder):
    """All that was published or noted, by name."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not any(part.startswith(".") for part in path.relative_to(folder).parts)
        and path.relative_to(folder).parts[0] != "kept"
    }


def published(found):
    """Whether labels and report are both there."""
    return {"report.json", "labels.npy"} <= set(found)


def kept_key(folder):
    """The key in the checkpoint, if there is one."""
    run = folder / "kept" / "run.json"
    return bytes.fromhex(json.loads(run.read_text())["secret"]) if run.exists() else None


def nowhere(found):
    """The same, with a ledger that does not say where its record lies."""
    if "ledger.json" not in found:
        return found
    ledger = json.loads(found["ledger.json"])
    del ledger["records"], ledger["checksum"]
    return found | {"ledger.json": ledger}


def check_one_answer(folder, line, secret, scratch):
    """What is in place is what a run under this key gives that nobody disturbed."""
    scratch.mkdir()
    assert ended(started(scratch, line, RunKey(secret))) == 0
    found = in_place(folder)
    assert nowhere(found) == nowhere(in_place(scratch))
    if "spent.json" in found:
        (run,) = json.loads(found["spent.json"])["runs"]
        assert run["outcome"] == "labelled"
        assert len(json.loads(found["report.json"])["spent"]["runs"]) == 1
    if "ledger.json" in found:
        (done,) = json.loads(found["ledger.json"])["rounds"]
        assert done["queries"] == ROWS
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert secret not in data
            assert secret.hex().encode() not in data


@pytest.mark.parametrize("kind", some(list(KINDS), 3))
def test_however_often_a_run_is_killed_it_gives_one_answer(kind, votes, here):
    chance = np.random.default_rng(list(kind.encode()))
    line, undisturbed = words(votes, kind, "--force"), words(votes, kind, kept=None)
    # Once in this process, so that those that are forked from it have nothing left to load.
    assert CliRunner().invoke(app, words(votes, kind, kept=None)).exit_code == 0
    keys = (RunKey(chance.bytes(32)) for _ in range(1000))
    folder = here / "undisturbed"
    folder.mkdir()
    began = time.monotonic()
    assert ended(started(folder, line, next(keys))) == 0
    length = time.monotonic() - began
    kills = runs = 0
    while kills < KILLS[kind]:
        runs += 1
        folder = here / f"run{runs}"
        folder.mkdir()
        secret, seen = None, {}
        while True:
            key = next(keys)
            process = started(folder, line, key)
            if kills < KILLS[kind]:
                time.sleep(chance.uniform(0.0, length))
                os.kill(process, signal.SIGKILL)
            code = ended(process)
            assert code in (0, -signal.SIGKILL)
            kills += code != 0
            found = in_place(folder)
            known = kept_key(folder)
            if secret is None:
                secret = known or (key.secret if published(found) else None)
            assert known in (None, secret)
            for name in {"labels.npy", "report.json"} & set(found):
                assert seen.setdefault(name, found[name]) == found[name]
            if published(found) and known is None:
                break
            assert code != 0
        assert not (folder / "kept" / "run.json").exists()
        check_one_answer(folder, undisturbed, secret, here / f"other{runs}")


# ---------------------------------------------------------------- what does not belong to the run


@pytest.fixture
def cut(here, votes, monkeypatch):
    """Run to the end of the work but keep the checkpoint, and what is in place; then forget it."""

    def run(kind="plain"):
        with monkeypatch.context() as patch:
            patch.setattr(Checkpoint, "end", lambda self: None)
            done = CliRunner().invoke(app, words(votes, kind))
        assert done.exit_code == 0, done.output
        found = in_place(here)
        for name in found:
            (here / name).unlink()
        return found

    return run


def state(folder):
    return {
        path.name: (path.stat().st_mode, path.stat().st_mtime_ns, path.read_bytes())
        for path in folder.iterdir()
    }


def same_answer(votes, here, found, kind="plain"):
    done = CliRunner().invoke(app, words(votes, kind))
    assert done.exit_code == 0, done.output
    assert in_place(here) == found
    assert not (here / "kept").exists()


OTHER_FLAGS = [
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
    ["--seed", "1"],
    ["--mechanism", "gnmax", "--sigma2", "6"],
]


@pytest.mark.parametrize("flags", some(OTHER_FLAGS, 3), ids="".join)
def test_other_flags_are_refused_and_nothing_is_touched(flags, votes, here, cut):
    found = cut()
    before = state(here / "kept")
    base = words(votes, "plain")
    if "gnmax" in flags:
        base = [word for word in base if word not in CONFIDENT]
    done = CliRunner().invoke(app, [*base, *flags])
    assert done.exit_code == 2, done.output
    assert "other flags or other votes" in done.stderr
    assert state(here / "kept") == before
    assert in_place(here) == {}
    same_answer(votes, here, found)


def test_another_seed_is_refused(votes, here):
    for seed in (3, 4):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Checkpoint, "end", lambda self: None)
            done = CliRunner().invoke(app, words(votes, "plain", "--seed", str(seed), "--force"))
        assert done.exit_code == (0 if seed == 3 else 2)


@pytest.mark.parametrize("row", [0, 57, ROWS - 1])
def test_other_votes_are_refused(row, here, tmp_path, cut, votes):
    cut()
    before = state(here / "kept")
    changed = COUNTS.copy()
    changed[row] = np.roll(changed[row], 1)
    assert np.any(changed != COUNTS)
    np.save(tmp_path / "other.npy", changed)
    done = CliRunner().invoke(app, words(tmp_path / "other.npy", "plain"))
    assert done.exit_code == 2
    assert state(here / "kept") == before


@pytest.mark.parametrize("option", [{"record": "other.json"}, {"refusal_epsilon": 3.0}])
def test_a_target_with_another_record_or_refusal_is_refused(option, votes, here):
    asked = {
        "bound": "two-tail",
        "target_epsilon": 7.0,
        "record": "spent.json",
        "threshold": 40.0,
        "sigma1": 12.0,
    }
    asked |= {"sigma2": 6.0, "checkpoint": "kept", "max_queries": ROWS}
    pate.aggregate(votes, **asked)
    assert "other flags" in refusal(UsageError, pate.aggregate, votes, **(asked | option))


# ---------------------------------------------------------------- a folder that is not as it was


def test_only_a_folder_of_its_own(votes, here):
    (here / "kept").mkdir(mode=0o700)
    (here / "kept" / "notes.txt").write_text("mine")
    done = CliRunner().invoke(app, words(votes, "plain"))
    assert done.exit_code == 6
    assert "is not empty and no checkpoint" in done.stderr
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
    done = CliRunner().invoke(app, words(votes, "plain"))
    assert done.exit_code == 6
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
    assert names == {"run.json", *(f"piece-1-{row}.bin" for row in range(0, ROWS, A_RANGE))}
    for path in (here / "kept").iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    same_answer(votes, here, found)


@pytest.mark.parametrize(
    "content", [b"", b"{", b"[]", b"\xff\xfe", b"null", b'{"kind": "pate-checkpoint"}', "secret"]
)
def test_a_damaged_run_is_refused(content, votes, here, cut):
    cut()
    run = here / "kept" / "run.json"
    if content == "secret":
        data = json.loads(run.read_text())
        content = json.dumps(data | {"secret": data["secret"][:-2]}).encode()
    run.write_bytes(content)
    before = state(here / "kept")
    done = CliRunner().invoke(app, words(votes, "plain"))
    assert done.exit_code == 6
    assert "holds no checkpoint that this version of pate reads" in done.stderr
    assert state(here / "kept") == before
    assert in_place(here) == {}


def flipped(data, at, bit=0):
    return data[:at] + bytes([data[at] ^ 1 << bit]) + data[at + 1 :]


def test_a_run_file_of_which_a_bit_flipped_is_refused(tmp_path):
    """With another key the run would go on to other labels than may be out already."""
    kept = tmp_path / "kept"
    Checkpoint.of(kept, "a run", seed=None)
    run = kept / "run.json"
    whole = run.read_bytes()
    for at in range(len(whole)):
        for bit in range(8):
            run.write_bytes(flipped(whole, at, bit))
            message = refusal(OutputError, Checkpoint.of, kept, "a run", seed=None)
            assert message.startswith(f"{kept} holds no checkpoint that this version of pate reads")
            assert message.endswith("; give another folder")


def test_a_run_file_without_its_checksum_is_refused(tmp_path):
    kept = tmp_path / "kept"
    Checkpoint.of(kept, "a run", seed=None)
    run = kept / "run.json"
    data = json.loads(run.read_text())
    del data["checksum"]
    for version in (1, 2):
        run.write_text(json.dumps(data | {"schema_version": version}))
        refusal(OutputError, Checkpoint.of, kept, "a run", seed=None)


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_piece_that_cannot_be_kept_leaves_no_draft(error, tmp_path, monkeypatch):
    kept = Checkpoint.of(tmp_path / "kept", "a run", seed=None)
    before = set(kept.folder.iterdir())

    def fails(self, target):
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", fails)
        for _ in range(3):
            with pytest.raises((OutputError, KeyboardInterrupt)):
                kept.pieces(1).keep(0, [1])
    assert set(kept.folder.iterdir()) == before


def test_drafts_of_a_run_that_was_killed_go_with_its_checkpoint(tmp_path):
    kept = Checkpoint.of(tmp_path / "kept", "a run", seed=None)
    (kept.folder / "piece-1-0.0123456789abcdef.tmp").write_bytes(b"")
    Checkpoint.of(tmp_path / "kept", "a run", seed=None).end()
    assert not kept.folder.exists()


DAMAGES = {
    "gone": None,
    "empty": lambda data: b"",
    "short": lambda data: data[:-1],
    "long": lambda data: data + b"\0",
    "seal": lambda data: flipped(data, 0),
    "content": lambda data: flipped(data, len(data) // 2),
    "seal only": lambda data: data[:32],
}


@pytest.mark.parametrize(
    ("kind", "damage"),
    some(
        [
            *(("plain", damage) for damage in DAMAGES),
            ("target", "short"),
            ("capped", "short"),
        ],
        2,
    ),
)
def test_a_damaged_piece_is_done_again(kind, damage, votes, here, cut):
    found = cut(kind)
    pieces = sorted((here / "kept").glob("piece-*.bin"))
    for path in pieces[::3]:
        if damage == "gone":
            path.unlink()
        else:
            path.write_bytes(DAMAGES[damage](path.read_bytes()))
    same_answer(votes, here, found, kind)


class Planted:
    """Whoever unpickles it leaves a trace."""

    def __reduce__(self):
        return os.mkdir, ("trace",)


def test_a_piece_that_is_not_ours_is_never_unpickled(votes, here, cut):
    found = cut()
    path = here / "kept" / "piece-1-0.bin"
    path.write_bytes(bytes(32) + pickle.dumps(Planted()))
    same_answer(votes, here, found)
    assert not (here / "trace").exists()


@pytest.mark.parametrize(("of", "to"), [("1-10", "1-20"), ("2-10", "1-10")])
def test_a_piece_counts_only_in_its_place(of, to, votes, here, cut):
    found = cut("target")
    there = here / "kept"
    (there / f"piece-{to}.bin").write_bytes((there / f"piece-{of}.bin").read_bytes())
    same_answer(votes, here, found, "target")


def test_a_piece_of_another_run_does_not_count(votes, here, cut):
    found = cut()
    other = (here / "kept" / "piece-1-0.bin").read_bytes()
    for path in (here / "kept").iterdir():
        path.unlink()
    found = cut()
    (here / "kept" / "piece-1-0.bin").write_bytes(other)
    same_answer(votes, here, found)


# ---------------------------------------------------------------- the end


def test_an_end_that_fails_half_way_publishes_nothing_else(votes, here, monkeypatch):
    unlink = Path.unlink

    def fail(self, missing_ok=False):
        if self.name == f"piece-1-{ROWS // 2}.bin":
            raise PermissionError(13, "Permission denied")
        unlink(self, missing_ok=missing_ok)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", fail)
        done = CliRunner().invoke(app, words(votes, "plain"))
    assert done.exit_code == 6
    assert "its labels stand" in done.stderr
    found = in_place(here)
    assert published(found)
    assert (here / "kept" / "run.json").exists()
    # The same command finds its labels there, and ends the checkpoint.
    assert CliRunner().invoke(app, words(votes, "plain")).exit_code == 0
    assert in_place(here) == found
    assert not (here / "kept").exists()


def refused(votes):
    line = [*words(votes, "plain"), "--target-epsilon", "2", "--max-queries", str(ROWS)]
    line += ["--bound", "two-tail"]
    return CliRunner().invoke(app, [*line, "--spend", "spent.json"])


def test_a_refusal_ends_it(votes, here):
    done = refused(votes)
    assert done.exit_code == 8, done.output
    assert not (here / "kept").exists()
    assert set(in_place(here)) == {"report.json", "spent.json"}


def test_a_refusal_is_told_though_its_end_fails(votes, here, monkeypatch):
    def fail(self):
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rmdir", fail)
        done = refused(votes)
    assert done.exit_code == 8, done.output
    assert "none are released" in done.stderr
    assert "the run has ended and its labels are refused, so remove what is left" in done.stderr
    assert set(in_place(here)) == {"report.json", "spent.json"}


def test_what_ended_before_stays_charged_when_its_run_is_taken_up_and_fails(
    votes, here, cut, monkeypatch
):
    """Its labels may be out already; a second start must not strike out what they cost."""
    found = cut("target")
    (here / "spent.json").write_bytes(found["spent.json"])
    for path in (here / "kept").glob("piece-*.bin"):
        path.unlink()

    def interrupted(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("pate_cli.run.accounts.VoteProfile.add_tally", interrupted)
        assert CliRunner().invoke(app, words(votes, "target")).exit_code == 130
    assert in_place(here) == {"spent.json": found["spent.json"]}
    same_answer(votes, here, found, "target")


def test_with_a_seed_too_an_attempt_is_one_attempt(votes, here, cut, monkeypatch):
    seeded = words(votes, "target", "--seed", "5")
    with monkeypatch.context() as patch:
        patch.setattr(Checkpoint, "end", lambda self: None)
        assert CliRunner().invoke(app, seeded).exit_code == 0
    assert CliRunner().invoke(app, [*seeded, "--force"]).exit_code == 0
    assert len(json.loads((here / "spent.json").read_text())["runs"]) == 1


# ---------------------------------------------------------------- two at once


@pytest.mark.parametrize("kind", ["plain", "target"])
def test_two_processes_never_give_two_answers(kind, votes, here):
    """Whichever comes second goes on under the same key, or ends without an answer."""
    chance = np.random.default_rng(7)
    for turn in range(4):
        folder = here / f"turn{turn}"
        other = folder / "other"
        other.mkdir(parents=True)
        # The first is held up in its work while another goes on with its checkpoint.
        first = started(folder, words(votes, kind), RunKey(chance.bytes(32)))
        deadline = time.monotonic() + 30.0
        while not (folder / "kept" / "run.json").exists():
            assert time.monotonic() < deadline
        time.sleep(0.01 * turn)
        os.kill(first, signal.SIGSTOP)
        held = kept_key(folder)
        second = started(other, words(votes, kind, kept="../kept"), RunKey(chance.bytes(32)))
        code = ended(second)
        os.kill(first, signal.SIGCONT)
        codes = [ended(first), code]
        if held is None:
            continue  # it had ended before it could be held
        assert codes in ([0, 0], [6, 0])
        given = [(place / "labels.npy", place / "report.json") for place in (folder, other)]
        if codes[0] == 0:
            for one, two in zip(*given, strict=True):
                assert one.read_bytes() == two.read_bytes()
        else:
            assert not any(path.exists() for path in given[0])
        if codes == [6, 0]:
            break
    else:
        pytest.fail("the first was never in the middle of its work")


def test_two_processes_that_go_on_with_one_run(votes, here):
    """What the other keeps meanwhile is no matter of which rows come next."""
    asked = {"threshold": 40.0, "sigma1": 12.0, "sigma2": 6.0, "layout": "counts"}
    asked |= {"checkpoint": here / "kept", "record": here / "spent.json", "max_epsilon": 99.0}
    under_way = []

    def cut_short(rows, of=None):
        under_way.append(rows)
        if len(under_way) == 4:
            raise KeyboardInterrupt

    def other(rows, of=None):
        if not under_way:
            with pytest.raises(KeyboardInterrupt):
                pate.aggregate(votes, into="other.csv", progress=cut_short, **asked)

    done = pate.aggregate(votes, into="labels.csv", progress=other, **asked)
    assert len(under_way) == 4
    (run,) = pate.SpendRecord.read(here / "spent.json").runs
    assert (run.id, run.outcome) == (done.report.run, "labelled")
    lines = (here / "labels.csv").read_text().splitlines()[1:]
    assert [int(line.split(",")[0]) for line in lines] == list(range(ROWS))


def test_how_far_a_run_had_come(tmp_path):
    assert reached(tmp_path / "none") is None
    assert reached(tmp_path) is None
    kept = Checkpoint.of(tmp_path / "kept", "a run", seed=1)
    assert reached(kept.folder) == "which had come to row 0"
    for number, start in ((1, 0), (1, 100), (1, 20)):
        kept.pieces(number).keep(start, None)
    assert reached(kept.folder) == "which had come to row 100"
    kept.pieces(2).keep(40, None)
    assert reached(kept.folder) == "which had come to row 40 of pass 2 over the votes"
