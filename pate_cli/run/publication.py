"""Puts the files of a run (labels, report, perhaps a ledger) in place when all are complete."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from os import PathLike, fspath
from pathlib import Path
from typing import IO, TypeAlias

import numpy as np

from pate_cli.core.arrays import NO_LABEL, each_once
from pate_cli.core.errors import ParameterError, UsageError, quoted
from pate_cli.core.words import LabelFormat
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.report import LabelFile, Report
from pate_cli.files.addresses import public_name, report_beside
from pate_cli.files.outputs import Outputs
from pate_cli.files.protected import REPORT, Replaces, current, note, watched
from pate_cli.labels.forms import FORMATS, labels_in, refuse_names
from pate_cli.labels.labels import (
    QUERY_ID,
    Labels,
    check_id_column,
    joined,
    write_labels,
)
from pate_cli.votes.names import ClassNames
from pate_cli.votes.vote_file import VoteFile


@dataclass(frozen=True, repr=False)
class Destination:
    """Names of the files that a run writes: labels, report and perhaps a ledger.

        pate.aggregate("votes.parquet", into=pate.Destination("labels.csv", report="report.json"))

    Attributes:
        labels: the file for the labels: a path, `-` for standard output, or an address such as
            s3://bucket/labels.csv.
        report: the name of the public report; if left out, a file beside the labels.
        ledger: the name of the ledger (mode 0600); no ledger is written if left out. SECRET.
        label_format: the format of the labels; if left out, the suffix of `labels` decides.
        force: whether the labels may replace a file of labels, and the report a report. An existing
            ledger is never replaced. Files that the run reads are never replaced.

    Raises:
        UsageError: the format is unclear, or labels and report both go to standard output.
        ParameterError: the format is unknown.
    """

    labels: str | PathLike[str]
    report: str | PathLike[str] | None = None
    ledger: str | PathLike[str] | None = None
    label_format: LabelFormat | str | None = None
    force: bool = False

    def __post_init__(self) -> None:
        _ = self.kind
        if self.labels == "-" and self.report in (None, "-"):
            raise UsageError("labels and report cannot both go to stdout; name a file in `report`")
        if self.report is None:
            object.__setattr__(self, "report", report_beside(fspath(self.labels), "votes"))

    def __repr__(self) -> str:
        # People keep notebooks and pass them on, so the password of an address must not show.
        return f"<Destination: labels go to {public_name(self.labels)}>"

    @property
    def kind(self) -> LabelFormat:
        """Return the format of the file of labels."""
        return LabelFormat(self.label_format or LabelFormat.from_path(public_name(self.labels)))

    def reserve(
        self, out: Outputs, *, keeps_report: bool = True, resumed: bool = False
    ) -> Publication:
        """Reserve all files before votes are used.

        Files later appear in the order in which they were reserved: ledger, report, labels.

        Args:
            out: the object that later puts the reserved files in place.
            keeps_report: False if the run writes no report.
            resumed: True if this run was interrupted before; some of its files may then be in
                place already.

        Raises:
            OutputError, UsageError: for the reasons in `Outputs.reserve`.
        """
        if self.ledger is not None:
            out.reserve(self.ledger, mode=0o600, resumed=resumed)
        if keeps_report and self.report is not None:
            out.reserve(self.report, replaces=REPORT, resumed=resumed)
        out.reserve(self.labels, replaces=labels_in(self.kind), resumed=resumed)
        return Publication(self, out)


class Publication:
    """Takes labels, report and ledger of one run, and publishes them together.

    Attributes:
        labels: the labels if they stay in memory; a table without rows if they go to a file.
        written: format, size and hash of the file of labels, once it is complete.
    """

    labels = Labels(*np.zeros((3, 0), dtype=np.uint8))
    written: LabelFile | None = None
    # The names of the classes, if every text in the votes is a name. SECRET.
    _vocabulary: ClassNames | None = None

    def __init__(self, to: Destination | None = None, out: Outputs | None = None) -> None:
        """Take a destination and its reserved files `out`; without `to`, labels stay in memory."""
        self._to, self._out = to, out or Outputs()

    @property
    def ledger(self) -> str | PathLike[str] | None:
        """Return the name of the ledger; None if no ledger is wanted."""
        return None if self._to is None else self._to.ledger

    def check(self, file: VoteFile) -> None:
        """Check that labels of these votes can be written, and that no output is a file of votes.

        Raises:
            ParameterError: the column of ids in the votes has a name that labels cannot use for it.
            UsageError: an output is a file that the run reads, or the format of the labels cannot
                store the names of classes as texts.
        """
        check_id_column(file.facts.id_column or QUERY_ID)
        self._vocabulary = file.names if file.unlisted else None
        if self._to is not None:
            current().add(file.inputs.read)
            if file.unlisted:
                refuse_names(self._to.kind)

    def try_out(self, rows: int) -> None:
        """Raise OutputError if labels of this many rows cannot be written; call before spending."""
        if self._to is not None:
            size = rows * FORMATS[self._to.kind].least_bytes
            self._out.try_out({fspath(self._to.labels): size})

    def fill(self, tables: Iterator[Labels], *, rows: int) -> None:
        """Take the labels of all rows, in tables of consecutive rows."""
        if self._to is None or self._vocabulary is not None:
            # Which names are released is only known when all labels are drawn.
            tables = iter([_named(list(tables), self._vocabulary)])
        if self._to is None:
            self.labels = next(tables)
            return
        with self._out.open(self._to.labels) as file:
            write_labels(tables, file, self._to.kind, rows=rows)
        self.written = LabelFile.of(self._out.digest(self._to.labels), self._to.kind)

    def publish(self, report: Report, ledger: Ledger | None = None) -> None:
        """Write the report, and the ledger if one is wanted, and put all files in place.

        Raises:
            OutputError: a file cannot be written or put in its place.
        """
        if self._to is None:
            return
        if ledger is not None and self._to.ledger is not None:
            self._out.write(self._to.ledger, ledger.to_json().encode())
        if self._to.report is not None:
            self._out.write(
                self._to.report, report.to_json().encode(), earlier=_report_of_run(report)
            )
        self._out.publish()


Into: TypeAlias = str | PathLike[str] | Destination | Publication | None
"""Where labels go: a Destination, or only the name of the labels; None keeps them in memory."""


@contextlib.contextmanager
def publishing(
    into: Into, *, records: Sequence[Path] = (), resumed: bool = False
) -> Iterator[Publication]:
    """Reserve the outputs, which `Publication.publish` later puts in place.

    If `into` is a Publication, it is yielded unchanged, and the caller must close its outputs.

    Args:
        into: where the labels go.
        records: files that no output may replace.
        resumed: True if this run was interrupted before; some of its files may then be in place
            already.

    Raises:
        OutputError, UsageError: an output exists already, cannot be written, or is an input.
        ParameterError: `into` has the wrong type.
    """
    if into is None or isinstance(into, Publication):
        yield into or Publication()
        return
    if not isinstance(into, str | PathLike | Destination):
        raise ParameterError(
            "`into` must be a path, an address such as s3://bucket/labels.csv, a Destination or "
            f"None, got {quoted(into)}"
        )
    to = into if isinstance(into, Destination) else Destination(into)
    # The outputs know all files that are read in this block, and never replace them.
    with watched(), Outputs(force=to.force) as out:
        note("the record of what was spent", *records)
        yield to.reserve(out, resumed=resumed)


def _report_of_run(report: Report) -> Replaces:
    """Return a function that says whether a file is an earlier report of the same run and labels.

    An earlier report may lack later runs of the record, or tell another time.
    """

    def earlier(file: IO[bytes]) -> bool:
        if not REPORT(file):
            return False
        file.seek(0)
        try:
            there = json.loads(file.read())
        except (ValueError, RecursionError):
            return False
        told = report.to_dict()
        return all(there.get(name) == told.get(name) for name in ("run", "rounds", "labels"))

    return earlier


def _named(drawn: Sequence[Labels], vocabulary: ClassNames | None) -> Labels:
    """Return all labels in one table; with a secret `vocabulary`, only released names are in it."""
    found = joined(drawn)
    if vocabulary is None:
        return found
    given = found.labels != NO_LABEL
    # Labels get new numbers. The old number of a name would reveal something about secret names.
    places = each_once(found.labels[given])
    labels = np.where(given, np.searchsorted(places, found.labels), NO_LABEL)
    known = vocabulary.names or range(places.max(initial=-1) + 1)
    names = tuple(str(known[place]) for place in places.tolist())
    return replace(found, labels=labels, sources=found.source_codes, label_names=names)
