"""From a source to a VoteFile: locate, read as a grid, settle the layout, check the first rows."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from os import PathLike, fspath
from pathlib import Path
from typing import IO, TYPE_CHECKING

from pate_cli.errors import ParameterError, VoteError
from pate_cli.votes.batch import VoteBatch, VoteFile
from pate_cli.votes.checks import check_counts, check_labels, first_bad, tally
from pate_cli.votes.grid import Grid, batch_size
from pate_cli.votes.infer import SAMPLE_ENTRIES, Evidence, infer
from pate_cli.votes.npy import NpyGrid, open_npy
from pate_cli.votes.source import Format, Located, locate
from pate_cli.words import Layout

if TYPE_CHECKING:
    from pate_cli.votes.parquet import Parts

LARGEST_CLASSES = 1 << 24
LARGEST_UNTOLD_LABEL = (1 << 16) - 1
"""Without --classes a label above this is damage: the histograms would be as wide as it is."""


@dataclass(frozen=True)
class _Told:
    """What the user said about the file."""

    layout: Layout | None
    classes: int | None
    teachers: int | None
    batch_rows: int | None

    def __post_init__(self) -> None:
        # A plain "counts" equals Layout.COUNTS but is not it, and would pass for another layout.
        if self.layout is not None and not isinstance(self.layout, Layout):
            raise ParameterError(f"layout must be a Layout, got {self.layout!r}")
        if self.classes is not None and not 2 <= self.classes <= LARGEST_CLASSES:
            raise ParameterError(
                f"--classes must be between 2 and {LARGEST_CLASSES}, got {self.classes}"
            )
        if self.teachers is not None and self.teachers < 1:
            raise ParameterError(f"--teachers must be at least 1, got {self.teachers}")
        if self.batch_rows is not None and self.batch_rows < 1:
            raise ParameterError(f"batch_rows must be at least 1, got {self.batch_rows}")

    def size(self, width: int) -> int:
        return batch_size(width) if self.batch_rows is None else self.batch_rows


@contextlib.contextmanager
def open_votes(
    source: str | PathLike[str],
    *,
    layout: Layout | None = None,
    classes: int | None = None,
    teachers: int | None = None,
    batch_rows: int | None = None,
    stdin: IO[bytes] | None = None,
) -> Iterator[VoteFile]:
    """Open votes for reading in batches: a context manager around a VoteFile.

    source: an .npy or Parquet file (told by content), a folder or glob of Parquet parts, a URI
    pyarrow knows (s3://, gs://, hdfs://, file://), a named pipe, or "-" for `stdin`
    (sys.stdin.buffer unless given). Pipes are copied to a temporary file of mode 0600, removed on
    exit.

    layout: what rows mean; None infers it from the numbers only where nothing else is possible
    (see `infer`). classes: how many classes there are, advised for label layouts, where it is
    otherwise taken from the largest label and so depends on the data. teachers: how many teachers
    there are; given, rows may lack votes, even all of them (a smaller total, short lists, nulls
    among labels, absent long rows), else every row must have all. In long form a query that nobody
    voted on is then not there at all: see VoteFile.rows_from_data. batch_rows: rows per batch at
    most, by default as many as keep a batch within 32 MB.

    Raises:
        VoteError: the source cannot be read as votes; rows are checked as they are read.
        ParameterError: classes, teachers or batch_rows out of range.
    """
    told = _Told(layout, classes, teachers, batch_rows)
    with contextlib.ExitStack() as stack:
        yield _read(locate(fspath(source), stdin, stack), told)


def _read(located: Located, told: _Told) -> VoteFile:
    if located.format is Format.NPY:
        if told.layout is Layout.LONG:
            raise VoteError(f"{located.name}: layout {Layout.LONG} is for Parquet files")
        npy = open_npy(Path(located.parts[0].path), located.name)
        evidence = Evidence(npy.rows, npy.columns, told.classes, told.teachers, transposable=True)
        settled = told.layout or _infer(npy, told, evidence)
        if settled is Layout.COUNTS:
            return _counts(npy, told)
        _check_orientation(npy, settled, told)
        by_query = npy.transposed() if settled is Layout.LABELS_BY_TEACHER else npy
        return _labels(by_query, settled, told)
    # pyarrow takes a tenth of a second to import: NPY files do without.
    from pate_cli.votes import parquet

    parts = parquet.open_parts(located.parts, located.name, told.layout)
    if parts.plan.layout is Layout.LONG:
        return _long(parts, told)
    grid = parquet.open_grid(parts, gaps_allowed=told.teachers is not None)
    by_teacher_columns = parts.plan.layout is Layout.LABELS and not parts.plan.is_list
    evidence = Evidence(
        grid.rows,
        grid.columns,
        told.classes,
        told.teachers,
        transposable=False,
        rows_are_queries=parts.plan.has_ids or by_teacher_columns,
        named=parts.plan.layout,
    )
    settled = told.layout or _infer(grid, told, evidence)
    return _counts(grid, told) if settled is Layout.COUNTS else _labels(grid, settled, told)


def _infer(grid: Grid, told: _Told, evidence: Evidence) -> Layout:
    rows = max(1, SAMPLE_ENTRIES // max(1, grid.columns))
    blocks = grid.blocks(rows, rows, absent_limit=told.teachers)
    return infer(grid.where.name, next(blocks).values, evidence)


def _check_orientation(grid: NpyGrid, layout: Layout, told: _Told) -> None:
    """Refuse a label matrix whose other side is the number of teachers."""
    sides = (grid.columns, grid.rows)
    here, there = sides if layout is Layout.LABELS else sides[::-1]
    if told.teachers is not None and here != told.teachers == there:
        other = {Layout.LABELS: Layout.LABELS_BY_TEACHER, Layout.LABELS_BY_TEACHER: Layout.LABELS}
        raise VoteError(
            f"{grid.where.name}: with --teachers {told.teachers} an array of {grid.rows} x "
            f"{grid.columns} is --layout {other[layout]}, not {layout}"
        )


def _counts(grid: Grid, told: _Told) -> VoteFile:
    name, classes = grid.where.name, grid.columns
    if told.classes not in (None, classes):
        raise VoteError(f"{name}: has counts of {classes} classes, but --classes {told.classes}")
    if classes == 0:
        raise VoteError(f"{grid.where.at(0)} has no entries")
    if classes == 1:
        raise VoteError(f"{name}: has counts of one class only; there is nothing to choose from")
    first = next(grid.blocks(1, 1, absent_limit=None)).values
    teachers = int(first.sum()) if told.teachers is None else told.teachers
    missing = told.teachers is not None
    check_counts(first, 0, grid.where, teachers=teachers, missing_allowed=missing)

    def read(stop: int) -> Iterator[VoteBatch]:
        for block in grid.blocks(told.size(classes), stop, absent_limit=None):
            check_counts(
                block.values,
                block.first_row,
                grid.where,
                teachers=teachers,
                missing_allowed=missing,
            )
            yield VoteBatch(block.first_row, block.ids, block.values)

    return VoteFile(
        name,
        queries=grid.rows,
        classes=classes,
        teachers=teachers,
        layout=Layout.COUNTS,
        inferred=told.layout is None,
        classes_from_data=False,
        teachers_from_data=told.teachers is None,
        rows_from_data=False,
        read=read,
    )


def _labels(grid: Grid, layout: Layout, told: _Told) -> VoteFile:
    name, width = grid.where.name, grid.columns
    if told.teachers is not None and width > told.teachers:
        raise VoteError(
            f"{name}: as {layout} it has {width} teachers, more than --teachers {told.teachers}"
        )
    classes = _classes_seen(grid, told) if told.classes is None else told.classes
    teachers = told.teachers or width
    size = told.size(max(teachers, classes))

    def read(stop: int) -> Iterator[VoteBatch]:
        for block in grid.blocks(size, stop, absent_limit=told.teachers):
            check_labels(block.values, block.first_row, grid.where, classes=classes)
            yield VoteBatch(block.first_row, block.ids, tally(block.values, classes))

    return VoteFile(
        name,
        queries=grid.rows,
        classes=classes,
        teachers=teachers,
        layout=layout,
        inferred=told.layout is None,
        classes_from_data=told.classes is None,
        teachers_from_data=told.teachers is None,
        rows_from_data=False,
        read=read,
    )


def _classes_seen(grid: Grid, told: _Told) -> int:
    """Return the largest label of the file plus one; a pass over the whole file."""
    top = 0
    size = batch_size(told.teachers or grid.columns)
    for block in grid.blocks(size, grid.rows, absent_limit=told.teachers):
        top = max(top, int(block.values.max()))
        if top > LARGEST_UNTOLD_LABEL:
            row = first_bad(block.values > LARGEST_UNTOLD_LABEL, block.first_row)
            raise VoteError(
                f"{grid.where.at(row)} has a label above {LARGEST_UNTOLD_LABEL}; "
                "if that is right, give --classes"
            )
    return _at_least_two(top + 1, grid.where.name)


def _at_least_two(classes: int, name: str) -> int:
    if classes < 2:
        raise VoteError(f"{name}: only label 0 occurs; give --classes")
    return classes


def _long(parts: Parts, told: _Told) -> VoteFile:
    from pate_cli.votes.long import read_long

    name = parts.where.name
    votes = read_long(
        parts,
        classes=told.classes,
        teachers=told.teachers,
        largest_label=LARGEST_UNTOLD_LABEL,
    )
    classes = told.classes or _at_least_two(votes.top + 1, name)
    queries = votes.counts.shape[0]

    def read(stop: int) -> Iterator[VoteBatch]:
        size = told.size(classes)
        for start in range(0, stop, size):
            end = min(start + size, stop)
            yield VoteBatch(start, votes.ids[start:end], votes.counts[start:end])

    return VoteFile(
        name,
        queries=queries,
        classes=classes,
        teachers=told.teachers or votes.teachers,
        layout=Layout.LONG,
        inferred=told.layout is None,
        classes_from_data=told.classes is None,
        teachers_from_data=told.teachers is None,
        rows_from_data=told.teachers is not None,
        read=read,
    )
