"""`pate aggregate`: votes in, private labels and a public report out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pate_cli.cli.help import EPSILON, SPECIAL, TARGET
from pate_cli.cli.options import (
    AccountOptions,
    BookOptions,
    EngineOptions,
    MechanismOptions,
    OutputOptions,
    ReleaseOptions,
    ReportOptions,
    ViewOptions,
    VoteOptions,
    Votes,
    Without,
    in_panel,
    report_beside,
    spread,
    stem_of,
)
from pate_cli.cli.summary import Handling, print_quote, print_report
from pate_cli.core.errors import UsageError
from pate_cli.core.words import LABEL_SUFFIXES, LabelFormat, LabelsAs
from pate_cli.files.addresses import is_address, public_name

if TYPE_CHECKING:
    from pate_cli.disclosure.report import LabelFile, Report
    from pate_cli.files.digest import Hashed
    from pate_cli.files.part_folder import PartFolder
    from pate_cli.files.transaction import Outputs
    from pate_cli.labels.labels import Labels, LabelWriter
    from pate_cli.mechanisms import MechanismChoice
    from pate_cli.run.labelling import Aggregation
    from pate_cli.votes import VoteFile


@spread
def aggregate(
    votes: Votes,
    labels_path: Annotated[
        str | None,
        typer.Option(
            "--output",
            "-o",
            help="Labels: a path or an address (s3://...); - is stdout, a name that ends in / or "
            "an address without a suffix a folder of parts. Default: <stem>.labels.parquet.",
        ),
    ] = None,
    label_format: Annotated[
        LabelFormat | None,
        typer.Option("--format", help="Format of the labels. Default: by the output's suffix."),
    ] = None,
    labels_as: Annotated[
        LabelsAs | None,
        in_panel(SPECIAL)(
            "--labels-as",
            help="Where a query has several labels: lists of them, or pairs of a query and a "
            "label, one a row. Default: lists; pairs in CSV.",
            show_default=False,
        ),
    ] = None,
    *,
    report: ReportOptions,
    ledger: Annotated[
        Path | None,
        in_panel(EPSILON)(
            "--ledger",
            help="Also keep the ledger here (mode 0600). Secret: needed to compose several rounds.",
        ),
    ] = None,
    described: MechanismOptions,
    reading: VoteOptions,
    account: AccountOptions,
    release: ReleaseOptions,
    target: BookOptions,
    max_epsilon: Annotated[
        float | None,
        in_panel(TARGET)(
            "--max-epsilon",
            help="Refuse (exit 5), before anything is drawn or spent, a run that could cost more "
            "than this: all it publishes, whatever the votes, or its target.",
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run",
            help="Check votes and outputs, print the data-independent price, spend nothing.",
        ),
    ] = False,
    view: Annotated[ViewOptions, Without("as_json", "as_table")],
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
      permute-and-flip   as gnmax, when few queries and pure epsilon matter
      lnmax          the 2017 paper's; permute-and-flip errs less for the same epsilon
      stability, sparse-vector   few queries, almost unanimous teachers, the exact plurality
    """
    import pate_cli as pate
    from pate_cli.core.label_set import rows_of
    from pate_cli.disclosure.figures import pair
    from pate_cli.labels.forms import check_form
    from pate_cli.verbs.numbers import check_numbers

    labels_path = labels_path or f"{stem_of(votes)}.labels.parquet"
    folder = _folder(labels_path)
    if folder is not None:
        label_format = label_format or LabelFormat.PARQUET
    label_format = label_format or LabelFormat.from_path(public_name(labels_path))
    if labels_path == "-" and report.report in (None, "-"):
        raise UsageError("labels and report cannot both go to stdout; give --report FILE")
    report_path = report.place(report_beside(labels_path, votes))
    summed_up = report.summed_up and labels_path != "-"
    if view.plot is not None and dry_run:
        raise UsageError("--plot does not go with --dry-run, which publishes its price")
    if engine.checkpoint is not None and dry_run:
        raise UsageError("--checkpoint does not go with --dry-run, which draws nothing")
    check_numbers(
        delta=account.delta,
        max_epsilon=max_epsilon,
        target_epsilon=target.target_epsilon,
        refusal_epsilon=target.refusal_epsilon,
        budget=target.budget,
        order=release.order,
        beta=release.beta,
        sigma_release=release.sigma_release,
        seed=report.seed,
        workers=engine.wanted["workers"],
        **reading.caps,
    )
    choice = described.choice(pairs=reading.pairs, id_column=reading.id_column)
    if ledger is not None and choice.composed:
        raise UsageError(
            f"--ledger does not go with {choice.name}, which has no Renyi cost to keep"
        )
    if report.export_rdp is not None and (choice.composed or target.target_epsilon is not None):
        with_what = choice.name if choice.composed else "--target-epsilon"
        raise UsageError(
            f"--export-rdp does not go with {with_what}: what is guaranteed is an (epsilon, delta)"
        )
    asked = {**account.wanted, **release.wanted, **reading.caps, **target.wanted}
    asked |= {"keep_ledger": ledger is not None, "max_epsilon": max_epsilon}
    if target.target_epsilon is not None:
        if ledger is not None:
            raise UsageError(
                "--ledger does not go with --target-epsilon: the law of tested labels includes "
                "their test, so they add to other rounds as (epsilon, delta) and not by a ledger"
            )
        record = target.spend or Path(f"{stem_of(votes)}.spent.json")
        asked["record"] = record
    elif target.spend is not None:
        raise UsageError("--spend goes with --target-epsilon")
    refused: pate.RefusedError | None = None

    with contextlib.ExitStack() as undo, output.outputs() as out:
        if "record" in asked:
            out.protect(asked["record"], "the record of attempts")
        # The record of what is spent is put in place before what spends it. A dry run looks whether
        # there could be such files, and minds none that are there.
        if ledger is not None:
            out.reserve(ledger, mode=0o600, replace=dry_run)
        if folder is None:
            out.reserve(labels_path, replace=dry_run)
        else:
            folder.check(force=output.force or dry_run)
        keeps_report = not (dry_run and summed_up and report.report is None)
        report.reserve(out, report_path if keeps_report else None)
        view.reserve(out)
        with reading.open(votes, output) as file:
            check_form(label_format, labels_as, file.label_set)
            output.note_votes(file, reading.rows(file))
            # How many rows a target asks is known later where it is left to the rule.
            known = reading.max_queries is not None
            told = target.patience(file, choice, reading.rows(file)) if known else None
            if told is not None:
                output.note(told)
            view.draw(out, lambda: _growth(file, choice, reading, delta=account.delta))
            # The rows follow from a target, and are read several times to test it.
            rows = None if target.target_epsilon is not None else reading.rows(file)
            if dry_run:
                with output.progress("pricing", rows) as advance:
                    quote = pate.quote(file, choice, progress=advance, **asked)
                report.write(out, report_path if keeps_report else None, quote)
                if summed_up:
                    print_quote(quote)
                else:
                    output.note("dry run: the votes are in order, nothing was drawn or spent")
                for warning in quote.warnings:
                    output.note(f"warning: {warning}")
                return
            with output.progress("aggregating", rows) as advance:
                try:
                    with _Written(out, labels_path, label_format, labels_as) as labels:
                        done = pate.aggregate(
                            file,
                            choice,
                            seed=report.seed,
                            write=labels.write,
                            parts=folder,
                            label_format=label_format,
                            labels_as=labels_as,
                            progress=advance,
                            **asked,
                            checkpoint=engine.checkpoint,
                            **engine.wanted,
                        )
                        undo.push(_unless_done(done))
                except pate.RefusedError as error:
                    refused = error
        if refused is not None:
            out.write(report_path, refused.report.to_json().encode())
        else:
            if ledger is not None and done.ledger is not None:
                out.write(ledger, done.ledger.to_json().encode())
            public = done.report
            if done.staged is None:
                public = replace(public, labels=labels.file)
            report.write(out, report_path, public)
    if refused is None and done.staged is not None:
        # Like a file of labels, after the record of what they spent.
        with contextlib.ExitStack() as undo:
            undo.push(_unless_done(done))
            done.staged.commit(force=output.force)
    secret = [_named(votes), *([] if ledger is None else [str(ledger)])]
    if refused is not None:
        if summed_up:
            print_report(refused.report, Handling([report_path], secret))
        _note_attempts(output, refused.report, asked["record"])
        raise refused
    if done.checkpoint is not None:
        done.checkpoint.end()
    if summed_up:
        files = [public_name(name) for name in (labels_path, report_path) if name != os.devnull]
        print_report(public, Handling(files, secret, files[::-1] if len(files) == 2 else ()))
    else:
        shown = "standard output" if labels_path == "-" else public_name(labels_path)
        output.note(
            f"answered {public.answers} of {public.queries} {rows_of(public.label_set)}, labels in "
            f"{shown}; {pair(public.epsilon, account.delta)}"
        )
        _note_groups(output, public)
    _note_attempts(output, public, asked.get("record"))
    for warning in public.warnings:
        output.note(f"warning: {warning}")
    if not public.private:
        output.note("drawn from a fixed seed: NOT private, for tests and papers only")


def _named(votes: str) -> str:
    """The votes in the list of secrets."""
    return "the votes" if votes == "-" else public_name(votes)


def _folder(labels: str) -> PartFolder | None:
    """The folder of parts that the labels go to, if they go to one."""
    name = public_name(labels)
    if is_address(labels):
        to_file = PurePosixPath(name).suffix.lower() in LABEL_SUFFIXES and not name.endswith("/")
    else:
        to_file = not (name.endswith(("/", os.sep)) or Path(name).is_dir())
    if to_file:
        return None
    from pate_cli.files.part_folder import PartFolder

    return PartFolder(labels)


def _unless_done(done: Aggregation) -> Callable[..., None]:
    """An exit of a block: removes what is staged if that failed, and nobody can go on with it."""

    def leave(kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None and done.staged is not None and done.checkpoint is None:
            done.staged.place.abort()

    return leave


class _Written(contextlib.ExitStack):
    """The file of labels, begun with the first of them."""

    def __init__(
        self, out: Outputs, path: str, label_format: LabelFormat, labels_as: LabelsAs | None
    ) -> None:
        super().__init__()
        self._out, self._path, self._format, self._shown = out, path, label_format, labels_as
        self._writer: LabelWriter | None = None
        self._hashed: Hashed | None = None

    def write(self, labels: Labels) -> None:
        """More labels."""
        from pate_cli.files.digest import Hashed
        from pate_cli.labels.labels import LabelWriter

        if self._writer is None:
            file = self._hashed = Hashed(self.enter_context(self._out.open(self._path)))
            rows = int(labels.metadata["queries"])
            writer = LabelWriter(
                file,
                self._format,
                labels.metadata,
                rows=rows,
                label_names=labels.label_names,
                label_set=labels.label_set,
                labels_as=self._shown,
            )
            self._writer = self.enter_context(writer)
        self._writer.write(labels)

    @property
    def file(self) -> LabelFile | None:
        """What was written, once all of it is."""
        from pate_cli.disclosure.report import LabelFile

        return None if self._hashed is None else LabelFile.of(self._hashed.digest, self._format)


def _note_groups(output: OutputOptions, report: Report) -> None:
    """Which group of teachers pays most and which least."""
    if len({own.epsilon for own in report.groups}) > 1:
        most, least = (choose(report.groups, key=lambda own: own.epsilon) for choose in (max, min))
        output.note(
            f"epsilon by group of teachers: from {least.epsilon:.4f} for {least.group} to "
            f"{most.epsilon:.4f} for {most.group}"
        )


def _note_attempts(output: OutputOptions, report: Report, record: Path | None) -> None:
    """What the record holds, once there is more in it than this run."""
    from pate_cli.disclosure.figures import pair

    spent = report.spent
    if spent is not None and spent.attempts > 1:
        output.note(
            f"{spent.attempts} attempts in {record} cost {pair(spent.epsilon, spent.delta)} "
            "together"
        )


def _growth(file: VoteFile, choice: MechanismChoice, reading: VoteOptions, *, delta: float) -> Any:
    """The figure of cumulative costs, for every aggregator with a Rényi cost."""
    import pate_cli as pate
    from pate_cli.pricing.plots import growth_figure

    curves = pate.growth(file, choice, delta=delta, max_queries=reading.max_queries)
    return growth_figure(curves, delta=delta)
