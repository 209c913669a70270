"""`pate aggregate --checkpoint`, killed at any moment and started again on its checkpoint."""

import json
import os
import random
import shutil
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from ended import ended, forked
from kills.promises import BrokenError, events_in
from pate_cli.cli.app import app
from pate_cli.core.noise import RunKey
from pate_cli.planning.synthetic import SyntheticEnsemble
from pate_cli.run import fold

ROWS, TEACHERS, CLASSES, A_RANGE = 120, 60, 3, 10
CONFIDENT: Final = ["--threshold", "40", "--sigma1", "12", "--sigma2", "6"]
TARGET: Final = ["--target-epsilon", "7", "--max-queries", str(ROWS), "--bound", "two-tail"]
IN_ORDER: Final = ["--mechanism", "sparse-vector", "--query-epsilon", "2", "--query-delta", "1e-3"]
KINDS: Final = {
    "plain": CONFIDENT,
    "ledger": [*CONFIDENT, "--release", "upper", "--ledger", "ledger.json"],
    "target": [*CONFIDENT, *TARGET],
    "capped": [*CONFIDENT, "--max-answers", "15"],
    "in-order": [*IN_ORDER, "--refusals", "10", "--delta", "0.2"],
}


def votes_in(folder: Path) -> Path:
    """A file of votes on which a target is met, but for once in a great while."""
    made = SyntheticEnsemble(teachers=TEACHERS, classes=CLASSES, queries=ROWS, agreement=0.75)
    np.save(folder / "votes.npy", made.draw(5)[0])
    return folder / "votes.npy"


def words(votes: Path, kind: str, *more: str, kept: str | None = "kept") -> list[str]:
    """The line of a run of a kind, with a checkpoint or without."""
    line = ["aggregate", str(votes), "-o", "labels.npy", "--report", "report.json"]
    line += ["--workers", "1", "--max-epsilon", "1000", "--spend", "spent.json"]
    return [*line, *KINDS[kind], *([] if kept is None else ["--checkpoint", kept]), *more]


def started(folder: Path, line: Sequence[str], key: RunKey) -> int:
    """The process of a run, with ranges of a few rows, in which `key` is the next fresh one."""

    def run() -> None:
        os.chdir(folder)
        os.environ["PATE_HOME"] = os.devnull  # every folder is on its own
        os.environ["SOURCE_DATE_EPOCH"] = "1700000000"  # a report tells when its run began
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, 1)
        os.dup2(nowhere, 2)
        sys.stdout = sys.stderr = os.fdopen(nowhere, "w")
        RunKey.of = classmethod(lambda _, seed: key)  # type: ignore[assignment,method-assign]
        fold._ENTRIES = A_RANGE * CLASSES  # type: ignore[misc]
        app(line, prog_name="pate")

    return forked(run)


def in_place(folder: Path) -> dict[str, bytes]:
    """All that was published or noted, by name."""
    return {
        path.name: path.read_bytes()
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith(".")
    }


def kept_key(folder: Path) -> bytes | None:
    """The key in the checkpoint, if there is one."""
    run = folder / "kept" / "run.json"
    return bytes.fromhex(json.loads(run.read_text())["secret"]) if run.exists() else None


def runs_killed(folder: Path, kind: str, kills: int, seed: int) -> int:
    """So many kills; how many runs there were. BrokenError where one gave a second answer.

    Every run is started again until it ends, so that each is killed some times or never.
    """
    chance = random.Random(f"{kind} {seed}")  # noqa: S311 - of a test
    votes = votes_in(folder)
    line, undisturbed = words(votes, kind, "--force"), words(votes, kind, kept=None)
    length = _length(folder, line, chance)
    left, runs = kills, 0
    while left > 0:
        runs += 1
        place, scratch = folder / f"run{runs}", folder / f"other{runs}"
        place.mkdir()
        secret, killed = _ended_at_last(place, line, left, length, chance)
        left -= killed
        scratch.mkdir()
        if ended(started(scratch, undisturbed, RunKey(secret))) != 0:
            raise BrokenError("a run that nobody disturbed failed")
        _check_one_answer(in_place(place), in_place(scratch))
        if any(
            secret in data or secret.hex().encode() in data for data in in_place(place).values()
        ):
            raise BrokenError("the key of a run lies beside its labels")
        # Killed between the removal of the key and that of its folder, a run leaves that empty.
        if (place / "kept").exists() and any((place / "kept").iterdir()):
            raise BrokenError("something is left of the checkpoint of a run that has ended")
        shutil.rmtree(place)
        shutil.rmtree(scratch)
    return runs


def _length(folder: Path, line: list[str], chance: random.Random) -> float:
    """Seconds that a run takes which nobody kills."""
    place = folder / "length"
    for turn in range(2):  # whatever is loaded at the first is there for the second
        place.mkdir()
        began = time.monotonic()
        if ended(started(place, line, RunKey(chance.randbytes(32)))) != 0:
            raise BrokenError(f"{line} failed in turn {turn}")
        shutil.rmtree(place)
    return time.monotonic() - began


def _ended_at_last(
    place: Path, line: list[str], kills: int, length: float, chance: random.Random
) -> tuple[bytes, int]:
    """The key of a run that was started until it ended, and how often it was killed."""
    secret, killed, seen = None, 0, dict[str, bytes]()
    while True:
        key = RunKey(chance.randbytes(32))
        process = started(place, line, key)
        if killed < kills:
            time.sleep(chance.uniform(0.0, length))
            os.kill(process, signal.SIGKILL)
        code = ended(process)
        if code not in (0, -signal.SIGKILL):
            raise BrokenError(f"a run ended with {code}")
        if code == 0 and (place / "kept").exists():
            raise BrokenError("the checkpoint of a run that came to its end is there")
        killed += code != 0
        found, known = in_place(place), kept_key(place)
        published = {"report.json", "labels.npy"} <= set(found)
        if secret is None:
            secret = known or (key.secret if published else None)
        if known not in (None, secret):
            raise BrokenError("a run went on under another key")
        for name in {"labels.npy", "report.json"} & set(found):
            if seen.setdefault(name, found[name]) != found[name]:
                raise BrokenError(f"a run gave another {name}")
        if published and known is None and secret is not None:
            return secret, killed
        if code == 0:
            raise BrokenError("a run ended, and is not there or not forgotten")


def _check_one_answer(found: dict[str, bytes], wanted: dict[str, bytes]) -> None:
    """BrokenError unless it is what a run under this key gives that nobody disturbed."""
    if _nowhere(found) != _nowhere(wanted):
        raise BrokenError("a run that was killed gave something else than one that was not")
    events = events_in(found["spent.json"])
    if [next(iter(event)) for event in events] != ["enter", "settle"]:
        raise BrokenError(f"the record tells of {events}, and not of one run that was labelled")


def _nowhere(found: dict[str, bytes]) -> dict[str, Any]:
    """The same, with a ledger that does not say where its record lies."""
    if "ledger.json" not in found:
        return dict(found)
    ledger = json.loads(found["ledger.json"])
    del ledger["records"], ledger["checksum"]
    return {**found, "ledger.json": ledger}
