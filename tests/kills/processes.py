"""`pate session` in processes of its own, killed at any moment and started again on its record."""

import contextlib
import contextvars
import importlib
import json
import os
import random
import select
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from ended import ended, forked
from kills.promises import BrokenError, Left, check_record
from pate_cli import __main__ as program

TEACHERS: Final = 8
_LINES: Final = 40
_LONG: Final = 5.0
# Few of the second kind are answered, and more asked than in any case.
KINDS: Final = (
    ["--mechanism", "gnmax", "--sigma2", "9", "--max-queries", "400"],
    ["--threshold", "6", "--sigma1", "20", "--sigma2", "20", "--target-epsilon", "3"],
)


def killed_again_and_again(folder: Path, kills: int, seed: int) -> int:
    """So many kills on records in a folder; how many answers left. BrokenError where one is lost.

    What is asked follows from the seed; the moment, to the microsecond, from the machine.
    """
    chance = random.Random(seed)  # noqa: S311 - of a test
    for name in ("cli.session", "verbs.session"):
        importlib.import_module(f"pate_cli.{name}")  # once, and not in every child
    answered = 0
    for first in range(0, kills, 25):
        path = folder / f"{first}.spent.json"
        line = ["session", "--teachers", str(TEACHERS), "--classes", "2", "--delta", "0.01"]
        line += ["--spend", str(path), "--quiet", *chance.choice(KINDS)]
        left = Left()
        _sitting(line, left, _queries(chance, 1), None, chance)
        for _ in range(min(25, kills - first)):
            queries = _queries(chance, _LINES)
            _sitting(line, left, queries, chance.randrange(len(queries)), chance)
            check_record(path, left)
        # Whoever asks all of it again gets what left, and nothing is spent.
        before = path.read_bytes()
        again = [{"id": name, "counts": [4, 4]} for name in left.named]
        _sitting(line, left, again, None, chance)
        if path.read_bytes() != before:
            raise BrokenError("what was asked again was paid for again")
        answered += len(left)
    return answered


def _queries(chance: random.Random, lines: int) -> list[dict[str, Any]]:
    found = []
    for _ in range(lines):
        first = chance.randint(0, TEACHERS)
        named = {} if chance.random() < 0.2 else {"id": chance.randint(0, 150)}
        found.append({**named, "counts": [first, chance.randint(0, TEACHERS - first)]})
    return found


def _sitting(
    line: Sequence[str],
    left: Left,
    queries: Sequence[dict[str, Any]],
    last: int | None,
    chance: random.Random,
) -> None:
    """One process, killed about when it has read `last` of the queries; at its end for None."""
    process, asking, answers = _started(line)
    told = [f"{json.dumps(query)}\n".encode() for query in queries]
    first = chance.random() < 0.9 and last is not None
    with contextlib.suppress(BrokenPipeError):
        for place, text in enumerate(told):
            if place == last:
                break
            os.write(asking, text)
            if first:  # or it would be killed while it starts
                first = not select.select([answers], [], [], _LONG)[0]
            if chance.random() < 0.3:
                time.sleep(chance.uniform(0.0, 1e-3))
    if last is not None:
        time.sleep(chance.choice([0.0, chance.uniform(0.0, 1e-3), chance.uniform(0.0, 0.02)]))
        os.kill(process, signal.SIGKILL)
    os.close(asking)
    with os.fdopen(answers, "rb") as source:
        said = source.read()
    code = ended(process)
    if code not in (0, 5, -signal.SIGKILL):
        raise BrokenError(f"the session ended with {code}")
    *whole, _torn = said.split(b"\n")
    # In order, one answer a query.
    for query, answer in zip(queries, map(json.loads, whole), strict=False):
        if answer.get("id") != query.get("id"):
            raise BrokenError(f"{query} was answered by {answer}")
        left.add(answer.get("id"), answer["label"])


def _started(line: Sequence[str]) -> tuple[int, int, int]:
    """A process, where to write what is asked, and where to read the answers."""
    question, asking = os.pipe()
    answers, answer = os.pipe()

    def run() -> None:
        os.close(asking)
        os.close(answers)
        os.dup2(question, 0)
        os.dup2(answer, 1)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w")
        sys.argv = ["pate", *line]
        contextvars.Context().run(program.main)

    process = forked(run)
    os.close(question)
    os.close(answer)
    return process, asking, answers
