"""`python -m kills`: many histories and many kills, or one history again."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from kills.histories import fault_of
from kills.processes import killed_again_and_again
from kills.promises import BrokenError


def say(text: str) -> None:
    """On stdout, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(rounds: int, kills: int, first: int) -> bool:
    """Print what is found; whether that is nothing."""
    start, faults = time.monotonic(), 0
    for seed in range(first, first + rounds):
        fault = fault_of(seed)
        if fault is not None:
            faults += 1
            say(f"  seed {seed}: {fault}")
    say(f"{rounds} histories, {faults} broken, {time.monotonic() - start:.0f} s")
    start = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="pate-kills-") as folder:
        try:
            answers = killed_again_and_again(Path(folder), kills, first)
        except BrokenError as error:
            say(f"  of killed processes: {error}")
            return False
    say(f"{kills} processes killed, {answers} answers kept, {time.monotonic() - start:.0f} s")
    return not faults


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="kills", description=__doc__)
    todo = parser.add_subparsers(dest="todo", required=True)
    words = todo.add_parser("run", help="many of both; exit 1 where a promise is broken")
    words.add_argument("--rounds", type=int, default=10_000, help="histories, a seed each")
    words.add_argument("--kills", type=int, default=1000, help="of processes")
    words.add_argument("--first", type=int, default=0, help="the first seed")
    words = todo.add_parser("one", help="one history again")
    words.add_argument("seed", type=int)
    asked = parser.parse_args()
    if asked.todo == "run":
        raise SystemExit(0 if run(asked.rounds, asked.kills, asked.first) else 1)
    fault = fault_of(asked.seed)
    say("is kept" if fault is None else fault)
    raise SystemExit(0 if fault is None else 1)


if __name__ == "__main__":
    main()
