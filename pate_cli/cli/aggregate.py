"""Commands that label votes: `aggregate`, and `demo` on votes that come with the program."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pate_cli.cli import terminal
from pate_cli.cli.app import command
from pate_cli.cli.view import QUIET, View, opened
from pate_cli.core.errors import OutputError, UsageError
from pate_cli.core.words import LabelFormat
from pate_cli.files.addresses import has_no_name, public_name, report_beside, stem_of
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.keywords import FileName

if TYPE_CHECKING:
    from pate_cli.disclosure.entry import RecordPlace
    from pate_cli.disclosure.report import Report
    from pate_cli.run.publication import Destination

_PACKAGE: Final = Path(__file__).resolve().parents[1]
_DEMO: Final = ("adult.parquet", "labels.csv", "labels.report.json", "adult.parquet.spent.json")
_DEMO_TARGET: Final = 1.5  # The votes of the demo fail the release test once in 10^11 runs.


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

    Options and public rules decide all settings before the first vote is read. Publish the labels
    and the report; keep the votes and the ledger secret.

      pate aggregate votes.parquet --target-epsilon 1.5 -o labels.csv
      pate aggregate votes.parquet --target-epsilon 1.5 --dry-run
    """
    from pate_cli.disclosure.report import RefusedError
    from pate_cli.files.protected import REPORT
    from pate_cli.run.checkpoint import begun
    from pate_cli.run.publication import Destination

    votes = asked["votes"]
    if out is None and not dry_run and has_no_name(votes):
        raise UsageError(
            "votes from a pipe have no name, so give a name for the labels: -o FILE, or -o - with "
            "--report FILE"
        )
    labels = out or f"{stem_of(votes)}.labels.parquet"
    beside = report if labels == "-" else report or report_beside(labels, votes)
    to = Destination(labels, report=beside, ledger=ledger, label_format=label_format, force=force)
    by_person, refused = terminal.read_by_person(), None
    # The report is a file beside the labels, and a pipe gets a copy of it.
    copies = report is None and labels != "-" and not by_person
    copy = "-" if copies else report if dry_run else None
    summed_up = by_person and "-" not in (report, labels)
    asked["keep_ledger"] = ledger is not None
    going_on = begun(asked.get("checkpoint"))
    if going_on:
        view.note(
            f"this command continues the interrupted run in {public_name(asked['checkpoint'])}"
        )
    asked["record"] = record = _record(asked, view)
    with terminal.outputs(force=force) as files:
        if copy is not None:
            files.reserve(copy, replaces=REPORT)
        # A dry run ignores outputs that exist already.
        resumed = going_on or dry_run
        publication = to.reserve(files, keeps_report=not dry_run, resumed=resumed)
        with opened(asked, view) as file:
            publication.check(file)
            rows = file.queries
            with view.progress("pricing" if dry_run else "aggregating", rows) as asked["progress"]:
                try:
                    if dry_run:
                        found: Any = verbs.quote(**asked)
                    else:
                        found = verbs.aggregate(**asked, into=publication).report
                except RefusedError as error:
                    refused, found = error, error.report
            if copy is not None:
                files.write(copy, found.to_json().encode())
    if dry_run:
        if summed_up:
            terminal.print_words(found.said())
        else:
            view.note("dry run: the votes are valid, nothing was drawn or spent")
        for warning in found.warnings:
            view.note(f"warning: {warning}")
        return
    if summed_up:
        _sum_up(found, to, votes=votes, rows=rows, record=record)
    for line in _notes(found, to, rows=rows, record=record, summed_up=summed_up):
        view.note(line)
    if refused is not None:
        raise refused


def _record(asked: dict[str, Any], view: View) -> RecordPlace:
    """Return the record that options in `asked` name, and remove these options from `asked`."""
    from pate_cli.verbs.promise import record_of

    record = record_of(asked)
    for name in ("ensemble", "disjoint_from", "accept_lost_record"):
        asked.pop(name, None)
    if record.joined is not None:
        view.note(record.joined)
    return record


def _sum_up(report: Report, to: Destination, *, votes: str, rows: int, record: RecordPlace) -> None:
    """Print a summary for a person: what was released, and what to do with the files."""
    from pate_cli.disclosure.explain import summary_of

    files = [to.report] if report.refused else [to.labels, to.report]
    written = [public_name(name) for name in files if name not in (None, os.devnull)]
    secret = ["the votes" if votes == "-" else public_name(votes)]
    secret += [] if to.ledger is None else [public_name(to.ledger)]
    paths = [os.fspath(file.path) for file in record.files]
    records = [public_name(min(os.path.relpath(path), path, key=len)) for path in paths]
    check = written[::-1] if len(written) == 2 else ()
    files_of = {"publish": written, "secret": secret, "check": check, "records": records}
    terminal.print_words([summary_of(report, **files_of, rows=rows)])


def _notes(
    report: Report, to: Destination, *, rows: int, record: RecordPlace, summed_up: bool
) -> Iterator[str]:
    """Yield notes on the answers and on the cost of all runs.

    If a summary was printed, notes that repeat the summary are left out.
    """
    from pate_cli.disclosure.cost import pair
    from pate_cli.disclosure.explain import not_asked

    spent, left = report.spent, not_asked(report, rows)
    if not summed_up and not report.refused:
        place = "standard output" if to.labels == "-" else public_name(to.labels)
        yield (
            f"answered {report.answers} of {report.queries} {report.rows}, labels in {place}; "
            f"{pair(report.epsilon, report.delta)}"
        )
        if left is not None:
            yield f"asked {left}"
    if not summed_up and spent is not None and spent.count > 1 and record.file is not None:
        total = pair(spent.epsilon, spent.delta)
        together = "for any one person" if spent.disjoint else "together"
        yield f"{spent.count} runs in {record.file.name} cost {total} {together}"
    if spent is None and report.private:
        yield (
            "earlier runs on these votes are not tracked; with --ensemble NAME, pate keeps a "
            "record of all runs"
        )
    yield from (f"warning: {warning}" for warning in report.warnings)
    if not report.private:
        yield (
            "the noise came from a fixed seed, so the labels are NOT private; use them for "
            "tests and papers only"
        )


@command(None, ())
def demo(*, folder: FileName | None = None) -> None:
    """Label real votes that come with pate, and explain the result.

    250 random forests, each trained on its own 100 census records, vote on whether people earn more
    than 50,000 dollars. The votes of the demo are public; your own votes are not.
    """
    import pyarrow.parquet as pq

    import pate_cli as pate
    from pate_cli.disclosure.entry import RecordPlace
    from pate_cli.disclosure.explain import summary_of
    from pate_cli.disclosure.record import RecordFile

    terminal.refuse_closed()
    place = Path(tempfile.mkdtemp(prefix="pate-demo-")) if folder is None else Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    if any(place.iterdir()):
        raise OutputError(f"{public_name(place)} is not empty; name a new folder for the demo")
    votes, labels, report, spent = (place / name for name in _DEMO)
    with terminal.outputs(force=False) as out:
        out.reserve(votes, mode=0o600)
        out.reserve(labels)
        out.reserve(report)
        # The demo has its own record, without earlier runs on the sample.
        account = RecordPlace(RecordFile(spent), votes=votes.name, named=True)
        done = pate.aggregate(_sample(votes.name), target_epsilon=_DEMO_TARGET, record=account)
        out.write(votes, _sample(votes.name).read_bytes())
        with out.open(labels) as file:
            done.labels.write(file, labels)
        out.write(report, done.report.to_json().encode())
    answered = done.labels.labels >= 0
    truth = pq.read_table(_sample("adult_truth.parquet"))["label"].to_numpy()
    right = (done.labels.labels == truth)[answered].mean()
    terminal.write(
        "250 random forests voted on census records: does somebody earn over 50,000 dollars?\n"
        f"The demo did the same as this command in {public_name(place)}:\n\n"
        f"  pate aggregate {votes.name} --target-epsilon {_DEMO_TARGET} --output {labels.name}\n\n"
    )
    kept = [f"{votes.name} (if these were your votes)"]
    told = summary_of(
        done.report,
        publish=[labels.name, report.name],
        secret=kept,
        records=[spent.name],
        rows=len(done.labels),
    )
    terminal.print_words([told])
    terminal.write(
        f"\n{right:.0%} of the labels are right. Next: {_PACKAGE / 'docs' / 'tutorial.md'}\n"
    )


def _sample(name: str) -> Path:
    """Return the path of sample votes: in the installed package, or in the source repository."""
    installed = _PACKAGE / "sample_votes" / name
    return installed if installed.exists() else _PACKAGE.parent / "sample_votes" / name
