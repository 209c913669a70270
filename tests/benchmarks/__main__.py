"""`python -m benchmarks`: measure, compare two tables, write the pages."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from benchmarks.cases import measure_all, sizes_to
from benchmarks.comparison import compare
from benchmarks.pages import every_line, past_one_machine, summary
from benchmarks.results import Line, Results
from readme_blocks import DOCS, fill

HERE = Path(__file__).resolve().parent
SAVED = HERE / "speed.json"
PAGE = HERE / "README.md"


def blocks(results: Results) -> dict[Path, dict[str, str]]:
    """What the pages hold of a table: by page, by name."""
    return {
        DOCS / "evidence.md": {"speed": summary(results)},
        PAGE: {"lines": every_line(results), "past": past_one_machine(results)},
    }


def write_pages() -> None:
    """Fill the pages from the table that is kept here."""
    for page, filled in blocks(Results.load(SAVED)).items():
        page.write_text(fill(page.read_text(encoding="utf-8"), filled), encoding="utf-8")


def say(text: str) -> None:
    """On stdout, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def show(line: Line) -> None:
    """A line as it comes."""
    memory = "" if line.memory_mb is None else f"{line.memory_mb:>9,.0f} MB"
    rate = f"{line.rows / line.seconds:>14,.0f} rows/s" if line.rows else " " * 21
    say(f"{line.name:<72}{line.seconds:>9.2f} s{memory}{rate}")


def slower(old: Path, new: Path, factor: float) -> bool:
    """Print both tables side by side; whether some line has become slower."""
    changes = list(compare(Results.load(old), Results.load(new)))
    if not changes:
        raise SystemExit(f"{old} and {new} have no line in common")
    for change in changes:
        say(change.text(factor))
    return any(change.ratio > factor for change in changes)


def main() -> None:
    """Read the command line."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    parser = argparse.ArgumentParser(prog="benchmarks", description=__doc__)
    todo = parser.add_subparsers(dest="todo", required=True)
    measuring = todo.add_parser("measure", help="measure, print and save")
    measuring.add_argument("--rows", type=float, default=1e7, help="of the largest file")
    measuring.add_argument("--save", type=Path, required=True, help="table as JSON")
    measuring.add_argument("--votes", type=Path, default=cache / "pate-bench", help="files' folder")
    comparing = todo.add_parser("compare", help="exit 1 where a line has become slower")
    comparing.add_argument("old", type=Path)
    comparing.add_argument("new", type=Path)
    comparing.add_argument("--factor", type=float, default=1.25, help="slower by more than this")
    todo.add_parser("pages", help="write the tables of pate_cli/docs and of this folder's page")
    asked = parser.parse_args()
    if asked.todo == "measure":
        results = measure_all(sizes_to(asked.rows), asked.votes, show)
        results.save(asked.save)
        say(f"\n{summary(results)}\nSaved in {asked.save}")
    elif asked.todo == "compare":
        raise SystemExit(int(slower(asked.old, asked.new, asked.factor)))
    else:
        write_pages()


if __name__ == "__main__":
    main()
