"""The program `python -m pate_cli.paper table1|table2|votes`, which the make targets call."""

from __future__ import annotations

import argparse
import io
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from pate_cli.core.errors import PateError
from pate_cli.paper.rows import SAMPLE_NOTE, printed_tables, sample_rows
from pate_cli.paper.tables import ResultTable, in_flags, table1, table2
from pate_cli.paper.votes import VoteFolder, fetch_votes

_PROGRAM = "pate-paper"
_INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `python -m pate_cli.paper` with these arguments, and return its exit code."""
    options = _options(arguments)
    try:
        if options.target == "votes":
            printed, into = printed_tables(), options.votes or Path("votes")
            fetch_votes(options.url or printed.archive, into, printed.sha256)
            text, code = f"verified in {into}: {', '.join(printed.sha256)}\n", 0
        else:
            table = _table(options)
            text, code = getattr(table, options.form)(), table.exit_code
    except PateError as error:
        sys.stderr.write(f"{_PROGRAM}: {in_flags(error)}\n")
        return error.exit_code
    except KeyboardInterrupt:
        sys.stderr.write(f"{_PROGRAM}: interrupted\n")
        return _INTERRUPTED
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # not every encoding has ±
    sys.stdout.write(text)
    return code


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Compute Tables 1 and 2 of 'Scalable Private Learning with PATE' again, or "
        "download and verify the authors' votes.",
        epilog="Exit codes: 0 at least one row ran, 2 usage, 3 no row ran or bad votes, "
        "4 a validity condition fails, 6 a file cannot be written.",
    )
    option = parser.add_argument
    option("target", choices=("table1", "table2", "votes"))
    option("--votes", type=Path, metavar="DIR", help="Folder of the authors' vote files.")
    option("--samples", type=Path, metavar="DIR", help="Without --votes: folder of other votes.")
    option("--form", choices=("text", "csv", "json"), default="text", help="json: unrounded.")
    option("--url", help="Address of the archive, if not the authors'.")
    parser.set_defaults(samples=Path("sample_votes"))
    return parser.parse_args(arguments)


def _table(options: argparse.Namespace) -> ResultTable:
    if options.votes is not None:
        printed = printed_tables()
        folder = VoteFolder(options.votes, printed.sha256)
        rows1, rows2 = printed.table1, printed.table2
        notes = [f"The authors' votes: {printed.archive}"]
    else:
        folder = VoteFolder(options.samples, {})
        rows1, rows2 = sample_rows(folder.names())
        notes = [SAMPLE_NOTE]
    if options.target == "table1":
        return table1(rows1, folder, notes)
    return table2(rows2, folder, notes)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)  # a reader such as `head` may stop early
    sys.exit(main())
