"""`python -m audit`: all cases, all planted bugs, or one case as JSON."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

import pate_cli
from audit.bounds import LEVEL
from audit.cases import Finding
from audit.planted import PLANTED, find_planted
from audit.table import CASES, HEAD, line


def say(text: str) -> None:
    """On stdout, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def chosen(names: Iterable[str], word: str) -> list[str]:
    """Those that hold the word; SystemExit if there are none."""
    found = [name for name in names if word in name]
    if not found:
        raise SystemExit(f"nothing is called {word!r}")
    return found


def audit_all(word: str, share: float) -> bool:
    """Print the table; whether no claim is refuted."""
    say(HEAD)
    findings: list[Finding] = []
    for name in chosen(CASES, word):
        findings.append(CASES[name].find(share))
        say(line(name, findings[-1], "REFUTED" if findings[-1].broken else "holds"))
    alarm = LEVEL * sum(found.intervals for found in findings)
    refuted = sum(found.broken for found in findings)
    say(
        f"\n{len(findings)} claims, {refuted} refuted. All bounds hold but with probability "
        f"{alarm:.1g}."
    )
    return not refuted


def audit_planted(word: str, share: float) -> bool:
    """Print the table; whether every bug is caught."""
    say(HEAD)
    missed = 0
    for name in chosen(PLANTED, word):
        found = find_planted(PLANTED[name], share)
        missed += not found.broken
        say(line(name, found, "caught" if found.broken else "MISSED"))
    say(f"\n{len(chosen(PLANTED, word))} bugs, {missed} missed.")
    return not missed


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="audit", description=__doc__)
    todo = parser.add_subparsers(dest="todo", required=True)
    for name, told in (
        ("claims", "draw and compare; exit 1 where a claim is refuted"),
        ("planted", "the same with bugs; exit 1 where one is missed"),
        ("case", "one case as JSON"),
    ):
        words = todo.add_parser(name, help=told)
        words.add_argument("name", nargs="?" if name != "case" else None, default="")
        words.add_argument("--share", type=float, default=1.0, help="of the draws")
    asked = parser.parse_args()
    if asked.todo == "case":
        found = asdict(CASES[asked.name].find(asked.share))
        package = str(Path(pate_cli.__file__).resolve().parent)
        say(json.dumps({"package": package, **found}))
        return
    look = audit_all if asked.todo == "claims" else audit_planted
    raise SystemExit(0 if look(asked.name, asked.share) else 1)


if __name__ == "__main__":
    main()
