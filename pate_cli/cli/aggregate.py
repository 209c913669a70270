"""`pate aggregate`: votes in, private labels and a public report out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pate_cli.cli import terminal
from pate_cli.cli.help import EPSILON, SPECIAL
from pate_cli.cli.options import (
    AccountOptions,
    EngineOptions,
    MechanismOptions,
    OutputOptions,
    PriorOptions,
    RecordOptions,
    ReleaseOptions,
    ReportOptions,
    RunTargetOptions,
    VoteOptions,
    Votes,
    in_panel,
    spread,
)
from pate_cli.cli.summary import Handling, not_asked, print_quote, print_report
from pate_cli.core.errors import CeilingError, UsageError
from pate_cli.core.words import CEILING, LabelFormat, LabelsAs
from pate_cli.files.addresses import public_name
from pate_cli.files.beside import has_no_name, report_beside, stem_of
from pate_cli.files.inputs import note

if TYPE_CHECKING:
    from pate_cli.disclosure.report import Report
    from pate_cli.files.outputs import Outputs
    from pate_cli.mechanisms import MechanismChoice
    from pate_cli.run.publication import Destination, Publication
    from pate_cli.verbs.aggregate import Aggregation
    from pate_cli.votes.vote_file import VoteFile


@dataclass(frozen=True)
class LabelOptions:
    """Options on the file of labels: its name, and how it is written."""

    labels_path: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Labels: a path or an address (s3://...); - is stdout. Default: "
            "<stem>.labels.parquet, if votes are no pipe.",
        ),
    ] = None
    label_format: Annotated[
        LabelFormat | None,
        typer.Option("--format", help="Format of the labels. Default: by the output's suffix."),
    ] = None
    labels_as: Annotated[
        LabelsAs | None,
        in_panel(SPECIAL)(
            "--labels-as",
            help="Where a query has several labels: lists of them, or pairs of a query and a "
            "label, one a row. Default: lists; pairs in CSV.",
            show_default=False,
        ),
    ] = None
    escape_formulas: Annotated[
        bool,
        in_panel(SPECIAL)(
            "--escape-formulas",
            help="In CSV, put ' before ids and names of classes that a spreadsheet would take for "
            "formulas: those that begin with =, +, -, @, a tab or a carriage return.",
        ),
    ] = False


@spread
def aggregate(
    votes: Votes,
    *,
    labels: LabelOptions,
    report: ReportOptions,
    ledger: Annotated[
        Path | None,
        in_panel(EPSILON)(
            "--ledger",
            help="Also keep the ledger here (mode 0600). Secret: needed to compose several rounds.",
        ),
    ] = None,
    described: MechanismOptions,
    prior: PriorOptions,
    reading: VoteOptions,
    account: AccountOptions,
    release: ReleaseOptions,
    target: RunTargetOptions,
    kept: RecordOptions,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check votes and outputs, print the data-independent price, spend nothing.",
        ),
    ] = False,
    engine: EngineOptions,
    output: OutputOptions,
) -> None:
    """Label queries by the teachers' noisy vote and report a publishable (epsilon, delta).

    Publish the labels and the report; keep the votes and the ledger. Everything that shapes the
    run is fixed by flags or public rules before the first vote is read. With --target-epsilon the
    whole is (E, delta)-differentially private whatever the votes.

    \b
    Which mechanism?
      confident      the default: best labels for the price, where some queries may go without
      interactive    a second round: asks only where the teachers correct your student
      gnmax          every query must get a label
      lnmax          the 2017 paper's: as gnmax, when few queries and pure epsilon matter
      stability, sparse-vector   few queries, almost unanimous teachers, the exact plurality
    """
    import pate_cli as pate
    from pate_cli.run.publication import refuse_ledger
    from pate_cli.verbs.request import check_numbers

    if labels.labels_path is None and not dry_run and has_no_name(votes):
        raise UsageError(
            "votes from a pipe have no name that labels could be called after: give -o FILE, or "
            "-o - with --report FILE"
        )
    labels_path = labels.labels_path or f"{stem_of(votes)}.labels.parquet"
    beside = report_beside(labels_path, votes)
    to = pate.Destination(
        labels_path,
        report=report.report if labels_path == "-" else report.report or beside,
        ledger=ledger,
        label_format=labels.label_format,
        labels_as=labels.labels_as,
        escape_formulas=labels.escape_formulas,
        force=output.force,
    )
    if dry_run and engine.checkpoint is not None:
        raise UsageError("--checkpoint does not go with --dry-run, which draws nothing")
    tested = target.target_epsilon is not None
    asked = {
        **account.keywords,
        **release.keywords,
        **reading.caps,
        **target.keywords,
        **prior.keywords,
        **kept.keywords,
    }
    check_numbers({**asked, **engine.keywords, "seed": report.seed})
    choice = described.choice()
    if ledger is not None:
        refuse_ledger(composed=choice.name if choice.composed else None, tested=tested)
    report.refuse_curve(composed=choice.name if choice.composed else None, tested=tested)
    asked["keep_ledger"] = ledger is not None
    asked["record"] = kept.places(votes, seed=report.seed)
    run = _CommandLine(votes, to, report, reading, target, output, choice, asked)
    if dry_run:
        run.price()
    else:
        run.label(engine)


@dataclass(frozen=True)
class _CommandLine:
    """One command line, checked as far as it can be before a file is touched."""

    votes: str
    to: Destination
    report: ReportOptions
    reading: VoteOptions
    target: RunTargetOptions
    output: OutputOptions
    choice: MechanismChoice
    asked: dict[str, Any]

    @property
    def delta(self) -> float:
        """Return δ of the guarantee."""
        return float(self.asked["delta"])

    @property
    def by_rule(self) -> bool:
        """Whether a target settled rows and settings, so that the rule has no others."""
        from pate_cli.mechanisms import RULED

        asked = self.target.target_epsilon is not None and self.reading.max_queries is None
        return asked and set(self.choice.left_open) == set(RULED.get(self.choice.name, ("",)))

    @property
    def report_path(self) -> str:
        """Return the name of the public report."""
        return str(self.to.report)

    @property
    def _copy(self) -> str | None:
        """Standard output, where a report goes that lies beside the labels, unless it is shown."""
        piped = self.report.piped and self.report.report is None and self.to.labels != "-"
        return "-" if piped else None

    @property
    def summed_up(self) -> bool:
        """Whether a person reads a summary on standard output."""
        return self.report.summed_up and self.to.labels != "-"

    def price(self) -> None:
        """Look whether it could be done, and say what it would cost for all votes."""
        import pate_cli as pate

        output, report = self.output, self.report
        place = self.report_path if report.report is not None else self._copy
        with output.outputs() as out, self._opened(out, to_look=True, resumed=True) as opened:
            file, rows, _ = opened
            with output.progress("pricing", rows) as advance:
                quote = pate.quote(file, self.choice, progress=advance, **self.asked)
            report.write(out, place, quote)
            if self.summed_up:
                print_quote(quote)
            else:
                output.note("dry run: the votes are in order, nothing was drawn or spent")
            for warning in quote.warnings:
                output.note(f"warning: {warning}")

    def label(self, engine: EngineOptions) -> None:
        """Draw the labels and publish them."""
        import pate_cli as pate
        from pate_cli.run.checkpoint import reached

        output, refused = self.output, None
        joined = self.asked["record"].joined
        if joined is not None:
            output.note(joined)
        row = reached(engine.checkpoint)
        with (
            output.outputs() as out,
            self._opened(out, resumed=row is not None) as opened,
        ):
            file, rows, place = opened
            twin = self.asked["record"].twin(file.teachers, flag="--ensemble NAME")
            if twin is not None:
                output.note(twin)
            if engine.checkpoint is not None and row is not None:
                kept = public_name(engine.checkpoint)
                output.note(f"goes on with the run in {kept}, which had come to row {row}")
            available = file.queries
            self.report.refuse_unclaimed(file.facts.read_off)

            def aggregated(**named: float) -> Aggregation:
                with output.progress("aggregating", rows) as advance:
                    return pate.aggregate(
                        file,
                        self.choice,
                        into=place,
                        seed=self.report.seed,
                        progress=advance,
                        checkpoint=engine.checkpoint,
                        **(self.asked | named),
                        **engine.keywords,
                    )

            try:
                try:
                    done = aggregated()
                except CeilingError as error:
                    if not self._agreed(error.epsilon):
                        raise
                    done = aggregated(max_epsilon=error.epsilon)
            except pate.RefusedError as error:
                refused = error
                if self._copy is not None:
                    out.write(self._copy, error.report.to_json().encode())
            else:
                self.report.write(out, self._copy, done.report)
        if refused is not None:
            if self.summed_up:
                print_report(
                    refused.report,
                    Handling([public_name(self.report_path)], self._secret, (), self._records),
                    rows=available,
                )
            self._note_account(refused.report)
            raise refused
        self._tell(done.report, available)
        if self.summed_up and done.report.private and done.report.sound and not self.by_rule:
            self._tell_of_others(done.report, available)

    def _agreed(self, epsilon: float) -> bool:
        """Whether a person, asked at a terminal, types the epsilon that a run would cost."""
        from pate_cli.disclosure.figures import shown

        if self.votes == "-" or not terminal.person_at_hand():
            return False
        price = shown(epsilon)
        answer = terminal.answer_to(
            f"this run would cost epsilon {price} at delta {shown(self.delta)}, whatever the "
            f"votes: practically nothing is promised above {CEILING:g}. To have it all the same, "
            f"type {price}; anything else leaves it"
        )
        return answer in (price, f"yes, epsilon {price}")

    @contextlib.contextmanager
    def _opened(
        self,
        out: Outputs,
        *,
        to_look: bool = False,
        resumed: bool = False,
    ) -> Iterator[tuple[VoteFile, int | None, Publication]]:
        """The votes, how many of their rows are asked if that is known, and promised outputs."""
        output, reading = self.output, self.reading
        for record in self.asked["record"].paths:
            note("the record of what was spent", record)
        # A dry run looks whether there could be such files, and minds none that are there.
        self.report.reserve(out, self._copy)
        asked = self.report.report is not None
        publication = self.to.reserve(out, keeps_report=asked or not to_look, resumed=resumed)
        with reading.open(self.votes, output, any_name=not self.choice.listed) as file:
            publication.check(file)
            rows = reading.rows(file)
            output.note_votes(file, rows)
            if self.target.target_epsilon is None:
                known: int | None = rows
            else:
                # How many rows a target asks is known later where it is left to the rule, and
                # they are read several times to test it.
                known = None
                if reading.max_queries is not None:
                    patience = self.target.patience(file, self.choice, rows)
                    if patience is not None:
                        output.note(patience)
            yield file, known, publication

    @property
    def _secret(self) -> list[str]:
        """Return the names of the files that are to be kept secret."""
        votes = "the votes" if self.votes == "-" else public_name(self.votes)
        return [votes, *([] if self.to.ledger is None else [public_name(self.to.ledger)])]

    @property
    def _records(self) -> list[str]:
        """Return the names of the record files, as short as they can be from here."""
        paths = [os.fspath(file.path) for file in self.asked["record"].files]
        return [public_name(min(os.path.relpath(path), path, key=len)) for path in paths]

    def _note_account(self, report: Report) -> None:
        """Note what all runs of the record cost, if there are others, or that there is none."""
        from pate_cli.disclosure.figures import pair

        record, spent, output = self.asked["record"], report.spent, self.output
        if spent is not None and spent.count > 1 and not self.summed_up:
            total = pair(spent.epsilon, spent.delta)
            output.note(f"{spent.count} runs in {record.file.name} cost {total} together")
        if spent is None and report.private:
            output.note("earlier runs: not tracked; --ensemble NAME keeps a record of these votes")

    def _tell_of_others(self, public: Report, available: int) -> None:
        """Note other settings that are expected to give much more for the same cost."""
        from pate_cli.verbs.plan import elsewhere

        found = elsewhere(public, available)
        if found is not None:
            command, least = found
            self.output.note(
                f"other settings are expected to give {least:.0f} answers or more at this epsilon, "
                f"stated in advance as a target: {command}"
            )

    def _tell(self, public: Report, available: int) -> None:
        """Tell what was released of so many rows of votes: a table to a person, else a line."""
        from pate_cli.disclosure.figures import pair

        labels, output = str(self.to.labels), self.output
        if self.summed_up:
            named = [public_name(name) for name in (labels, self.report_path) if name != os.devnull]
            check = named[::-1] if len(named) == 2 else ()
            files = Handling(named, self._secret, check, self._records)
            print_report(public, files, rows=available)
        else:
            shown = "standard output" if labels == "-" else public_name(labels)
            output.note(
                f"answered {public.answers} of {public.queries} {public.rows}, "
                f"labels in {shown}; {pair(public.epsilon, self.delta)}"
            )
            left = not_asked(public, available)
            if left is not None:
                output.note(f"asked {left}")
            _note_groups(output, public)
        self._note_account(public)
        for warning in public.warnings:
            output.note(f"warning: {warning}")
        if not public.private:
            output.note("drawn from a fixed seed: NOT private, for tests and papers only")


def _note_groups(output: OutputOptions, report: Report) -> None:
    """Which group of teachers pays most and which least."""
    if len({own.epsilon for own in report.groups}) > 1:
        most, least = (choose(report.groups, key=lambda own: own.epsilon) for choose in (max, min))
        output.note(
            f"epsilon by group of teachers: from {least.epsilon:.4f} for {least.group} to "
            f"{most.epsilon:.4f} for {most.group}"
        )
