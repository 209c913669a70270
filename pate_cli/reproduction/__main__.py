"""`python -m pate_cli.reproduction table1|table2|answers|votes`, which the make targets call."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from pate_cli.core.errors import PateError
from pate_cli.core.progress import Advance, by_the_minute, progress
from pate_cli.reproduction.answers import VotesOf, answers
from pate_cli.reproduction.archive import fetch_votes
from pate_cli.reproduction.flags import in_flags
from pate_cli.reproduction.rows import (
    MOST_SAMPLE_ROWS,
    SAMPLE_NOTE,
    printed_tables,
    sample_rows,
)
from pate_cli.reproduction.table import ResultTable, encodable
from pate_cli.reproduction.table1 import table1
from pate_cli.reproduction.table2 import table2
from pate_cli.reproduction.vote_folder import VoteFolder

_PROGRAM = "pate-reproduction"
_INTERRUPTED = 130
_BROKEN_PIPE = 141


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one target; returns the exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except PateError as error:
        _say(in_flags(error))
        return error.exit_code
    except KeyboardInterrupt:
        _say("interrupted")
        return _INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=_PROGRAM,
        description="Compute Tables 1 and 2 of 'Scalable Private Learning with PATE' again.",
        epilog="Exit codes: 0 at least one row ran, 2 usage, 3 no row ran or bad votes, "
        "4 a validity condition fails, 6 a file cannot be written.",
    )
    commands = parser.add_subparsers(required=True, metavar="table1|table2|answers|votes")
    for name, summary in (
        ("table1", "What the runs cost, beside the printed figures."),
        (
            "table2",
            "What is released about it: as published, charged correctly, and what pate offers.",
        ),
    ):
        command = commands.add_parser(name, help=summary, description=summary)
        source = command.add_mutually_exclusive_group()
        source.add_argument(
            "--votes", type=Path, metavar="DIR", help="Folder with the authors' vote files."
        )
        source.add_argument(
            "--samples",
            type=Path,
            metavar="DIR",
            default=Path("sample_votes"),
            help="Without --votes: folder whose vote files are all used. Default: sample_votes.",
        )
        _add_forms(command)
        if name == "table2":
            command.add_argument(
                "--quick", action="store_true", help="Leave out the conditional bound."
            )
        command.set_defaults(run=_table, table=name)
    summary = "How many answers an epsilon buys, by each way to an epsilon; takes minutes."
    command = commands.add_parser("answers", help=summary, description=summary)
    command.add_argument(
        "--samples",
        type=Path,
        metavar="DIR",
        default=Path("sample_votes"),
        help="Folder whose vote files are all used. Default: sample_votes.",
    )
    command.add_argument(
        "--votes", type=Path, metavar="DIR", help="Another one, for example of the authors' files."
    )
    _add_forms(command)
    command.set_defaults(run=_table, table="answers")
    summary = "Download and verify the authors' vote files."
    votes = commands.add_parser("votes", help=summary, description=summary)
    votes.add_argument(
        "--into",
        type=Path,
        metavar="DIR",
        default=Path("votes"),
        help="Folder they go to. Default: votes.",
    )
    votes.add_argument("--url", help="Address of the archive. Default: the authors'.")
    votes.set_defaults(run=_votes)
    return parser


def _add_forms(command: argparse.ArgumentParser) -> None:
    """The forms a table goes out in; plain text without one of them."""
    forms = command.add_mutually_exclusive_group()
    for form, words, *others in (
        ("json", "JSON: unrounded, with notes and the reason where a row has no figures."),
        ("csv", "CSV: the cells as printed, without notes."),
        ("latex", "a LaTeX tabular (booktabs), with the notes below it.", "tex"),
    ):
        for name, told in (
            (form, f"Print {words}"),
            *((other, argparse.SUPPRESS) for other in others),
        ):
            forms.add_argument(
                f"--{name}", dest="form", action="store_const", const=form, help=told
            )


def _table(options: argparse.Namespace) -> int:
    with by_the_minute(_PROGRAM), progress(options.table, None, clock=True) as advance:
        table = _computed(options, advance)
    if options.form is None:
        table.print(sys.stdout)
    else:
        sys.stdout.write(encodable(getattr(table, options.form)(), sys.stdout.encoding))
    sys.stdout.flush()
    return table.exit_code


def _computed(options: argparse.Namespace, advance: Advance) -> ResultTable:
    if options.table == "answers":
        files, notes = _vote_files(options)
        return answers(files, progress=advance, notes=notes)
    if options.votes is not None:
        printed = printed_tables()
        rows1, rows2 = printed.table1, printed.table2
        folder = VoteFolder(options.votes, printed.sha256)
        notes = [f"The authors' votes: {printed.archive}"]
    else:
        folder = VoteFolder(options.samples, {}, infer=True, most_rows=MOST_SAMPLE_ROWS)
        names, passed_over = folder.votes()
        rows1, rows2 = sample_rows(names)
        notes = [*passed_over, SAMPLE_NOTE]
    if options.table == "table1":
        return table1(rows1, folder, progress=advance, notes=notes)
    return table2(rows2, folder, progress=advance, notes=notes, quick=options.quick)


def _vote_files(options: argparse.Namespace) -> tuple[list[VotesOf], list[str]]:
    """Those of the samples, then the others; and notes on what is no vote file."""
    samples = VoteFolder(options.samples, {}, infer=True, most_rows=MOST_SAMPLE_ROWS)
    folders = [samples]
    if options.votes is not None:
        digests = printed_tables().sha256
        folders.append(VoteFolder(options.votes, digests, most_rows=MOST_SAMPLE_ROWS))
    files: list[VotesOf] = []
    notes: list[str] = []
    for folder in folders:
        names, passed_over = folder.votes()
        files += [VotesOf(folder, name) for name in names]
        notes += passed_over
    return files, notes


def _votes(options: argparse.Namespace) -> int:
    printed = printed_tables()
    with by_the_minute(_PROGRAM), progress("downloading, KiB", None, clock=True) as advance:
        names = fetch_votes(
            options.url or printed.archive,
            options.into,
            expected=printed.sha256,
            progress=advance,
        )
    _say(f"verified in {options.into}: {', '.join(names)}")
    return 0


def _say(message: str) -> None:
    sys.stderr.write(f"{_PROGRAM}: {message}\n")


if __name__ == "__main__":
    sys.exit(main())
