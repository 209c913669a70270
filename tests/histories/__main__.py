"""`python -m histories`: many of them, one again with every step, or what is planted."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from collections.abc import Iterator

from histories import planted
from histories.history import fault_of

_AT_ONCE = 50


def say(text: str) -> None:
    """On stdout, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def run(histories: int, first: int) -> bool:
    """Try so many, and print what is found; whether that is nothing."""
    start, broken = time.monotonic(), 0
    seeds = range(first, first + histories)
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for done, (seed, fault) in enumerate(pool.imap_unordered(_tried, seeds, _AT_ONCE), 1):
            if fault is not None:
                broken += 1
                say(f"  make histories SEED={seed}: {fault}")
            if done % 10_000 == 0:
                say(f"  {done} of {histories}, {time.monotonic() - start:.0f} s")
    say(f"{histories} histories, {broken} broken, {time.monotonic() - start:.0f} s")
    return not broken


def find(most: int) -> bool:
    """Print after how many histories each planted bug is found; whether all are."""
    known: dict[str, int] = {}
    with multiprocessing.Pool(os.cpu_count()) as pool:
        for name, seed, fault in pool.imap(_found, ((name, most) for name in planted.BUGS)):
            if seed is not None:
                known[name] = seed
            say(f"{name:40} {'not found' if seed is None else f'{seed + 1:>6}  {fault}'}")
    if len(known) < len(planted.BUGS):
        return False
    planted.KNOWN.write_text(json.dumps(known, indent=1) + "\n")
    return True


def _tried(seed: int) -> tuple[int, str | None]:
    return seed, fault_of(seed)


def _found(asked: tuple[str, int]) -> tuple[str, int | None, str | None]:
    name, most = asked
    with planted.bug(name):
        return next(_faults(name, most), (name, None, None))


def _faults(name: str, most: int) -> Iterator[tuple[str, int, str]]:
    for seed in range(most):
        fault = fault_of(seed)
        if fault is not None:
            yield name, seed, fault


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="histories", description=__doc__)
    todo = parser.add_subparsers(dest="todo", required=True)
    words = todo.add_parser("run", help="many; exit 1 where a promise is broken")
    words.add_argument("--histories", type=int, default=100_000, help="a seed each")
    words.add_argument("--first", type=int, default=0, help="the first seed")
    words = todo.add_parser("one", help="one again, step by step")
    words.add_argument("seed", type=int)
    words.add_argument("--planted", choices=planted.BUGS, help="with this bug")
    words = todo.add_parser("planted", help="when each planted bug is found; exit 1 if one is not")
    words.add_argument("--most", type=int, default=planted.MOST, help="histories for each")
    asked = parser.parse_args()
    if asked.todo == "run":
        raise SystemExit(0 if run(asked.histories, asked.first) else 1)
    if asked.todo == "planted":
        raise SystemExit(0 if find(asked.most) else 1)
    if asked.planted is None:
        fault = fault_of(asked.seed, say)
    else:
        with planted.bug(asked.planted):
            fault = fault_of(asked.seed, say)
    say("is kept" if fault is None else fault)
    raise SystemExit(0 if fault is None else 1)


if __name__ == "__main__":
    main()
