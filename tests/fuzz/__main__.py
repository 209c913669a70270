"""`python -m fuzz`: many seeds of every case, or one seed with its traceback."""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
import time
import warnings

from fuzz import batch
from fuzz.cases import CASES, seeded


def say(text: str) -> None:
    """On stdout, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(word: str, rounds: int, first: int) -> bool:
    """Print a line for each case, and for each fault the command that repeats it."""
    chosen = [name for name in CASES if word in name]
    if not chosen:
        raise SystemExit(f"nothing is called {word!r}")
    say(f"seeds {first} to {first + rounds - 1}")
    say(f"{'case':32} {'trials':>7} {'refused':>7} {'faults':>7} {'seconds':>8}")
    faults = 0
    for name in chosen:
        start = time.monotonic()
        found = batch.run(name, first, first + rounds)
        faults += len(found.faults)
        say(
            f"{name:32} {found.trials:7} {found.refused:7} {len(found.faults):7} "
            f"{time.monotonic() - start:8.0f}"
        )
        # One of a kind is enough to begin with.
        kinds: dict[str, int] = {}
        for seed, fault in found.faults.items():
            kinds.setdefault(fault[:60], seed)
        for seed in list(kinds.values())[:20]:
            say(f"  seed {seed}: {found.faults[seed]}")
    say(f"\n{len(chosen)} cases, {faults} faults. `python -m fuzz one CASE SEED` repeats one.")
    return not faults


def one(case: str, seed: int) -> None:
    """Raise what it raises."""
    with (
        tempfile.TemporaryDirectory(prefix="pate-fuzz-") as folder,
        contextlib.chdir(folder),
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("error")
        CASES[case].try_on("v", seeded(case, seed))
    say("is read")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="fuzz", description=__doc__)
    todo = parser.add_subparsers(dest="todo", required=True)
    words = todo.add_parser("run", help="many seeds; exit 1 where one shows a fault")
    words.add_argument("case", nargs="?", default="", help="a word that its name holds")
    words.add_argument("--rounds", type=int, default=2000, help="seeds a case")
    words.add_argument("--first", type=int, default=0, help="the first seed")
    words = todo.add_parser("one", help="one seed, with its traceback")
    words.add_argument("case")
    words.add_argument("seed", type=int)
    words = todo.add_parser("batch", help="seeds from START to STOP in this process")
    words.add_argument("case")
    words.add_argument("start", type=int)
    words.add_argument("stop", type=int)
    asked = parser.parse_args()
    if asked.todo == "run":
        raise SystemExit(0 if run(asked.case, asked.rounds, asked.first) else 1)
    if asked.todo == "one":
        one(asked.case, asked.seed)
    else:
        batch.trials(asked.case, asked.start, asked.stop)


if __name__ == "__main__":
    main()
