"""`pate aggregate`: votes in, private labels and a public report out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.view import QUIET, View
from pate_cli.cli.votes import opened
from pate_cli.core.errors import UsageError
from pate_cli.core.words import LabelFormat
from pate_cli.files.addresses import public_name
from pate_cli.files.beside import has_no_name, report_beside, stem_of
from pate_cli.files.inputs import note
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.parameters.kinds import FileName

if TYPE_CHECKING:
    from pate_cli.disclosure.record_place import RecordPlace
    from pate_cli.disclosure.report import Report
    from pate_cli.run.publication import Destination, Publication
    from pate_cli.votes.vote_file import VoteFile


@command(verbs.aggregate, QUIET)
def aggregate(
    asked: dict[str, Any],
    view: View,
    *,
    out: FileName | None = None,
    report: FileName | None = None,
    label_format: LabelFormat | str | None = None,
    ledger: FileName | None = None,
    dry_run: bool = False,
    force: bool = False,
) -> None:
    """Turn teacher votes into differentially private labels and a report that may be published.

    Options and public rules fix the run before the first vote is read. Publish the labels and the
    report; keep the votes and the ledger.

      pate aggregate votes.parquet --target-epsilon 1.5 -o labels.csv
      pate aggregate votes.parquet --target-epsilon 1.5 --dry-run
    """
    from pate_cli.run.publication import Destination

    votes = asked["votes"]
    if out is None and not dry_run and has_no_name(votes):
        raise UsageError(
            "votes from a pipe have no name that labels could be called after: give -o FILE, or "
            "-o - with --report FILE"
        )
    labels = out or f"{stem_of(votes)}.labels.parquet"
    beside = report if labels == "-" else report or report_beside(labels, votes)
    to = Destination(labels, report=beside, ledger=ledger, label_format=label_format, force=force)
    run = _CommandLine(votes, to, view, told=report)
    asked["keep_ledger"] = ledger is not None
    if dry_run:
        run.price(asked)
    else:
        run.label(asked)


@dataclass(frozen=True)
class _CommandLine:
    """One command line: where its outputs go, and what is said of them.

    Attributes:
        votes: their name.
        to: the files of labels, report and ledger.
        view: how much is said.
        told: the name of the report, where one was given.
    """

    votes: str
    to: Destination
    view: View
    told: str | None

    @property
    def copies(self) -> bool:
        """Whether a pipe gets a copy of the report, which lies beside the labels."""
        return self.told is None and self.to.labels != "-" and not terminal.read_by_person()

    @property
    def summed_up(self) -> bool:
        """Whether a person reads a summary on standard output."""
        return terminal.read_by_person() and self.told != "-" and self.to.labels != "-"

    def price(self, asked: dict[str, Any]) -> None:
        """Look whether it could be done, and say what it would cost for all votes."""
        from pate_cli.disclosure.summary import of_quote

        if "checkpoint" in asked:
            raise UsageError("`checkpoint` does not go with `dry_run`, which draws nothing")
        place = "-" if self.copies else self.told
        with self._promised(asked, keeps_report=False, place=place) as (out, file, _):
            with self.view.progress("pricing", file.rows_for("max_queries", None)) as advance:
                quote = verbs.quote(**asked, progress=advance)
            if place is not None:
                out.write(place, quote.to_json().encode())
            if self.summed_up:
                terminal.print_words([of_quote(quote)])
            else:
                self.view.note("dry run: the votes are in order, nothing was drawn or spent")
            for warning in quote.warnings:
                self.view.note(f"warning: {warning}")

    def label(self, asked: dict[str, Any]) -> None:
        """Draw the labels and publish them."""
        from pate_cli.disclosure.report import RefusedError

        place = "-" if self.copies else None
        refused = None
        with self._promised(asked, place=place) as (out, file, publication):
            available, record = file.queries, asked["record"]
            try:
                rows = file.rows_for("max_queries", asked.get("max_queries"))
                with self.view.progress("aggregating", rows) as advance:
                    done = verbs.aggregate(**asked, into=publication, progress=advance)
                report = done.report
            except RefusedError as error:
                refused, report = error, error.report
            if place is not None:
                out.write(place, report.to_json().encode())
        self._tell(report, available, record, refused=refused is not None)
        if refused is not None:
            raise refused

    @contextlib.contextmanager
    def _promised(
        self, asked: dict[str, Any], *, place: str | None, keeps_report: bool = True
    ) -> Iterator[tuple[Any, VoteFile, Publication]]:
        """Promise all outputs and open the votes; a dry run minds no output that is there."""
        from pate_cli.disclosure.record_place import RecordPlace
        from pate_cli.files.existing import REPORT
        from pate_cli.run.checkpoint import reached

        row = reached(asked.get("checkpoint"))
        if row is not None:
            kept = public_name(asked["checkpoint"])
            self.view.note(f"goes on with the run in {kept}, which had come to row {row}")
        asked["record"] = record = RecordPlace.of(
            self.votes,
            record=asked.get("record"),
            ensemble=asked.pop("ensemble", None),
            seeded="seed" in asked,
            accept_lost=asked.pop("accept_lost_record", False),
        )
        if record.joined is not None:
            self.view.note(record.joined)
        note("the record of what was spent", *record.paths)
        resumed = row is not None or not keeps_report
        with terminal.outputs(force=self.to.force) as out:
            if place is not None:
                out.reserve(place, replaces=REPORT)
            publication = self.to.reserve(out, keeps_report=keeps_report, resumed=resumed)
            with opened(asked, self.view) as file:
                publication.check(file)
                yield out, file, publication

    def _tell(self, report: Report, available: int, record: RecordPlace, *, refused: bool) -> None:
        """Tell what was released of so many rows: a table to a person, else some lines."""
        from pate_cli.disclosure.summary import of_report

        if self.summed_up:
            names = [str(self.to.report)] if refused else [str(self.to.labels), str(self.to.report)]
            written = [public_name(name) for name in names if name != os.devnull]
            secret = ["the votes" if self.votes == "-" else public_name(self.votes)]
            secret += [] if self.to.ledger is None else [public_name(self.to.ledger)]
            paths = [os.fspath(file.path) for file in record.files]
            records = [public_name(min(os.path.relpath(path), path, key=len)) for path in paths]
            check = written[::-1] if len(written) == 2 else ()
            told = of_report(
                report,
                publish=written,
                secret=secret,
                check=check,
                records=records,
                rows=available,
            )
            terminal.print_words([told])
        elif not refused:
            self._note_answers(report, available)
        for line in _notes(report, None if self.summed_up else record):
            self.view.note(line)

    def _note_answers(self, report: Report, available: int) -> None:
        from pate_cli.disclosure.figures import pair
        from pate_cli.disclosure.summary import not_asked

        labels = str(self.to.labels)
        place = "standard output" if labels == "-" else public_name(labels)
        self.view.note(
            f"answered {report.answers} of {report.queries} {report.rows}, labels in {place}; "
            f"{pair(report.epsilon, report.delta)}"
        )
        left = not_asked(report, available)
        if left is not None:
            self.view.note(f"asked {left}")


def _notes(report: Report, record: RecordPlace | None) -> Iterator[str]:
    """Yield what all runs cost, unless a summary says so, and whatever a reader must beware of."""
    from pate_cli.disclosure.figures import pair

    spent = report.spent
    if spent is not None and spent.count > 1 and record is not None and record.file is not None:
        total = pair(spent.epsilon, spent.delta)
        yield f"{spent.count} runs in {record.file.name} cost {total} together"
    if spent is None and report.private:
        yield "earlier runs: not tracked; --ensemble NAME keeps a record of these votes"
    yield from (f"warning: {warning}" for warning in report.warnings)
    if not report.private:
        yield "drawn from a fixed seed: NOT private, for tests and papers only"
