"""`python -m kills`: many processes that are killed."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

from kills.processes import killed_again_and_again
from kills.promises import BrokenError
from kills.runs import KINDS, runs_killed


def main() -> None:
    """Kill so many, and say what is found."""
    parser = argparse.ArgumentParser(prog="kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=1000, help="of processes")
    parser.add_argument("--first", type=int, default=0, help="what is asked follows from it")
    asked = parser.parse_args()
    start = time.monotonic()
    of_sessions, each = asked.kills // 2, asked.kills // 2 // len(KINDS)
    with tempfile.TemporaryDirectory(prefix="pate-kills-") as folder:
        try:
            answers = killed_again_and_again(Path(folder), of_sessions, asked.first)
            runs = 0
            for kind in KINDS:
                place = Path(folder) / kind
                place.mkdir()
                runs += runs_killed(place, kind, each, asked.first)
        except BrokenError as error:
            raise SystemExit(f"of killed processes: {error}") from None
    took = time.monotonic() - start
    killed = of_sessions + each * len(KINDS)
    sys.stdout.write(
        f"{killed} processes killed, {answers} answers kept, {runs} runs ended, {took:.0f} s\n"
    )


if __name__ == "__main__":
    main()
