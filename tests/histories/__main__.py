"""`python -m histories`: many of them, one again with every step, or what is planted."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time

from histories import planted
from histories.history import fault_of


def say(text: str) -> None:
    """On stdout, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(histories: int) -> bool:
    """Try so many, and print what is found; whether that is nothing."""
    start, broken = time.monotonic(), 0
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for done, (seed, fault) in enumerate(pool.imap_unordered(_tried, range(histories), 50), 1):
            if fault is not None:
                broken += 1
                say(f"  make histories SEED={seed}: {fault}")
            if done % 10_000 == 0:
                say(f"  {done} of {histories}, {time.monotonic() - start:.0f} s")
    say(f"{histories} histories, {broken} broken, {time.monotonic() - start:.0f} s")
    return not broken


def _tried(seed: int) -> tuple[int, str | None]:
    return seed, fault_of(seed)


def find() -> bool:
    """Print after how many histories each planted bug is found; whether all are."""
    known = {}
    for name in planted.BUGS:
        with planted.bug(name):
            tried = map(_tried, range(planted.MOST))
            seed, fault = next(((at, found) for at, found in tried if found), (None, None))
        say(f"{name:40} {'not found' if seed is None else f'{seed + 1:>6}  {fault}'}")
        if seed is None:
            return False
        known[name] = seed
    planted.KNOWN.write_text(json.dumps(known, indent=1) + "\n")
    return True


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="histories", description=__doc__)
    parser.add_argument("--histories", type=int, default=100_000, help="exit 1 where one is broken")
    parser.add_argument("--seed", type=int, help="one again, step by step")
    parser.add_argument("--planted", action="store_true", help="when each planted bug is found")
    asked = parser.parse_args()
    if asked.seed is not None:
        say(fault_of(asked.seed, say) or "is kept")
    else:
        raise SystemExit(not (find() if asked.planted else run(asked.histories)))


if __name__ == "__main__":
    main()
