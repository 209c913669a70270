"""From a matrix or a table to a VoteFile: its layout settled, its first row checked."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from pate_cli.core.arrays import DENSE_CLASSES
from pate_cli.core.errors import UsageError, VoteError, quoted
from pate_cli.core.words import Layout
from pate_cli.votes.checks import LARGEST, check_counts, first_bad
from pate_cli.votes.layouts.cubes import counted_yes, from_cube
from pate_cli.votes.layouts.infer import SAMPLE_ENTRIES, Evidence, infer
from pate_cli.votes.reading import (
    CountedReader,
    CountsReader,
    LabelsReader,
    Matrix,
)
from pate_cli.votes.sources.npy import NpyCube, NpyMatrix
from pate_cli.votes.told import Told, batch_size
from pate_cli.votes.vote_file import VoteFile

if TYPE_CHECKING:
    from pate_cli.votes.columns import Columns
    from pate_cli.votes.sources.parquet import Parts

LARGEST_UNTOLD_LABEL = (1 << 16) - 1
"""Without `classes` a label above this is damage: the histograms would be as wide as it is."""

_WIDTH_OF_TEXT = 4
"""How many integers a vote in words counts as, while it is read."""


def from_array(matrix: NpyMatrix | NpyCube, told: Told) -> VoteFile:
    """Read an array, in a file or in memory."""
    told.refuse_list(matrix.where.name)
    told.refuse_id_column(matrix.where.name)
    if isinstance(matrix, NpyCube):
        return from_cube(matrix, told)
    if told.layout is Layout.MULTILABEL_COUNTS:
        return counted_yes(matrix, told, None)
    if told.layout in (Layout.LONG, Layout.SPARSE):
        raise VoteError(
            f"{matrix.where.name}: layout {told.layout} is for tables (Parquet, CSV, JSONL, Arrow)"
        )
    evidence = Evidence(matrix.rows, matrix.width, told.classes, told.ensemble, transposable=True)
    if matrix.texts:
        settled = _of_texts(matrix, told)
    else:
        settled = told.layout or _infer(matrix, told, evidence)
    if settled is Layout.COUNTS:
        return _counts(matrix, told)
    _check_orientation(matrix, settled, told, transposable=True)
    by_query = matrix.transposed() if settled is Layout.LABELS_BY_TEACHER else matrix
    size = told.size(by_query.width * _WIDTH_OF_TEXT)
    strays = functools.partial(by_query.stray_rows, size) if matrix.texts else None
    return _labels(by_query, settled, told, strays)


def _of_texts(matrix: NpyMatrix, told: Told) -> Layout:
    """Return the layout of an array of texts: whoever is a row must be known."""
    name, sides = matrix.where.name, (matrix.width, matrix.rows)
    if told.layout is Layout.COUNTS:
        raise VoteError(f"{name}: the array holds strings; counts are integers")
    if told.layout is not None:
        return told.layout
    if told.teachers not in sides or matrix.width == matrix.rows:
        raise VoteError(
            f"{name}: the array holds strings, and who is a row cannot be told; say `layout` "
            f"{Layout.LABELS}|{Layout.LABELS_BY_TEACHER}"
        )
    return Layout.LABELS if told.teachers == matrix.width else Layout.LABELS_BY_TEACHER


def from_parts(parts: Parts, told: Told) -> VoteFile:
    """Read a table, in files or in memory."""
    from pate_cli.votes.sources.parquet import open_matrix

    columns = parts.columns
    if columns.layout is Layout.LONG:
        return _long(parts, told)
    told.refuse_list(parts.where.name)
    if columns.layout is Layout.SPARSE:
        return _sparse(parts, told)
    matrix = open_matrix(
        parts,
        gaps_allowed=told.teachers is not None,
        names=told.names,
        placed=told.groups is not None,
        teachers=told.teachers,
    )
    if told.layout is Layout.MULTILABEL_COUNTS:
        return counted_yes(matrix, told, None if columns.is_list else columns.votes)
    rows_are_queries = columns.has_ids or columns.by_teacher
    evidence = Evidence(
        matrix.rows,
        matrix.width,
        told.classes,
        told.ensemble,
        transposable=False,
        rows_are_queries=rows_are_queries,
        named=columns.layout,
    )
    # Words are no counts, so it is the shape alone that could be doubtful.
    known = Layout.LABELS if columns.texts else told.layout
    settled = known or _infer(matrix, told, evidence)
    if settled is Layout.COUNTS:
        _check_classes(columns, told, matrix.where.name)
        return _counts(matrix, told, columns.classes)
    if not rows_are_queries:
        _check_orientation(matrix, settled, told, transposable=False)
    size = told.size(matrix.width * _WIDTH_OF_TEXT)
    strays = functools.partial(matrix.stray_rows, size) if columns.texts else None
    teachers = None if columns.is_list else columns.votes
    return _labels(matrix, settled, told, strays, teachers)


def _check_classes(columns: Columns, told: Told, name: str) -> None:
    """Refuse names beside columns of counts that have others."""
    if told.names is None or columns.classes is None:
        return
    others = sorted(set(columns.classes) ^ set(told.names))
    if others:
        raise VoteError(
            f"{name}: the columns and `label_names` do not name the same classes: "
            f"{quoted(others[0])} is on one side only"
        )


def _infer(matrix: Matrix, told: Told, evidence: Evidence) -> Layout:
    rows = max(1, SAMPLE_ENTRIES // max(1, matrix.width))
    limit = told.absent_limit(matrix.width)
    _, _, sample = next(matrix.blocks(rows, 0, min(rows, matrix.rows), absent_limit=limit))
    return infer(matrix.where.name, sample, evidence)


def _check_orientation(matrix: Matrix, layout: Layout, told: Told, *, transposable: bool) -> None:
    """Refuse labels that may well be turned round, where nothing in the file tells.

    That is where the other side is the number of teachers, or, if that is not told, where there
    would be more teachers than queries: far more queries than teachers is what ensembles look like,
    and turned round they would pass for as many teachers, whose votes seem to cost next to nothing.
    """
    name, sides = matrix.where.name, (matrix.width, matrix.rows)
    here, there = sides if layout is Layout.LABELS else sides[::-1]
    if told.ensemble is None and here > there:
        raise VoteError(
            f"{name}: as {layout} it has {here} teachers and {there} queries, turned round {there} "
            f"teachers and {here} queries; give `teachers` {here} or {there} to say which"
        )
    if told.ensemble is not None and here != told.ensemble == there:
        said = "`teachers`" if told.groups is None else "`groups` of"
        if not transposable:
            raise VoteError(
                f"{name}: with {said} {told.ensemble} its {matrix.rows} rows are teachers; "
                "store one row per query, or query_id, teacher_id, label"
            )
        other = {Layout.LABELS: Layout.LABELS_BY_TEACHER, Layout.LABELS_BY_TEACHER: Layout.LABELS}
        raise VoteError(
            f"{name}: with {said} {told.ensemble} an array of {matrix.rows} x "
            f"{matrix.width} is `layout` {other[layout]}, not {layout}"
        )


def _counts(matrix: Matrix, told: Told, names: tuple[str, ...] | None = None) -> VoteFile:
    where, classes = matrix.where, matrix.width
    told.refuse_groups(where.name)
    if told.classes not in (None, classes):
        raise VoteError(
            f"{where.name}: has counts of {classes} classes, but `classes` {told.classes}"
        )
    if classes == 0:
        raise VoteError(f"{where.at(0)} has no entries")
    if classes == 1:
        raise VoteError(
            f"{where.name}: has counts of one class only; there is nothing to choose from"
        )
    _, _, first = next(matrix.blocks(1, 0, 1, absent_limit=None))
    missing = told.teachers is not None
    teachers = told.teachers or int(first.sum())
    check_counts(first, 0, where, teachers=teachers, missing_allowed=missing)

    reader = CountsReader(
        source=matrix,
        size=told.size(classes),
        width=classes,
        teachers=teachers,
        missing_allowed=missing,
    )
    return told.file(
        where.name,
        Layout.COUNTS,
        queries=matrix.rows,
        classes=classes,
        teachers=teachers,
        reader=reader,
        names=names,
    )


def _labels(
    matrix: Matrix,
    layout: Layout,
    told: Told,
    strays: Callable[[int], int] | None = None,
    names: tuple[str, ...] | None = None,
) -> VoteFile:
    where, width = matrix.where, matrix.width
    weights = told.weights(width, where.name, names)
    if told.teachers is not None and width > told.teachers:
        raise VoteError(
            f"{where.name}: as {layout} it has {width} teachers, more than `teachers` "
            f"{told.teachers}"
        )
    classes = told.classes or _classes_seen(matrix, told)
    teachers = told.teachers or width
    entries = max(teachers, told.drawn(classes, teachers))
    read = entries if strays is None else max(entries, teachers * _WIDTH_OF_TEXT)
    reader = LabelsReader(
        source=matrix,
        size=told.size(read),
        width=entries,
        classes=classes,
        absent_limit=told.absent_limit(width),
        weights=weights,
    )
    return told.file(
        where.name,
        layout,
        queries=matrix.rows,
        classes=classes,
        teachers=teachers,
        reader=reader,
        strays=strays,
    )


def _sparse(parts: Parts, told: Told) -> VoteFile:
    from pate_cli.votes.layouts.sparse import SparseReader
    from pate_cli.votes.sources.parquet import MOST_ENTRIES, refuse_long_lists, refuse_repeats

    name, classes = parts.where.name, told.classes
    told.refuse_groups(name)
    if classes is None:
        raise UsageError(f"{name}: `layout` {Layout.SPARSE} needs `classes`, how many there are")
    if parts.columns.has_ids:
        refuse_repeats(parts)
    refuse_long_lists(parts, min(classes, told.teachers or classes, MOST_ENTRIES))
    look = SparseReader(
        source=parts,
        size=1,
        width=1,
        classes=classes,
        teachers=told.teachers or LARGEST,
        missing_allowed=True,
    )
    teachers = told.teachers or look.total(0)
    width = classes if classes <= DENSE_CLASSES else max(teachers, 1)
    reader = replace(
        look,
        size=told.size(width),
        width=width,
        teachers=teachers,
        missing_allowed=told.teachers is not None,
    )
    next(reader.batches(0, 1))
    return told.file(
        name,
        Layout.SPARSE,
        queries=parts.rows,
        classes=classes,
        teachers=teachers,
        reader=reader,
    )


def _classes_seen(matrix: Matrix, told: Told) -> int:
    """Return the largest label of the file plus one; a pass over the whole file."""
    top = 0
    size = batch_size(told.teachers or matrix.width)
    for first_row, _, labels in matrix.blocks(size, 0, matrix.rows, absent_limit=told.teachers):
        top = max(top, int(labels.max()))
        if top > LARGEST_UNTOLD_LABEL:
            row = first_bad(labels > LARGEST_UNTOLD_LABEL, first_row)
            raise VoteError(
                f"{matrix.where.at(row)} has a label above {LARGEST_UNTOLD_LABEL}; "
                "if that is right, give `classes`"
            )
    return _at_least_two(top + 1, matrix.where.name)


def _at_least_two(classes: int, name: str) -> int:
    if classes < 2:
        raise VoteError(f"{name}: only label 0 occurs; give `classes`")
    return classes


def _long(parts: Parts, told: Told) -> VoteFile:
    from pate_cli.votes.layouts.long import read_long

    name = parts.where.name
    votes = read_long(
        parts,
        classes=told.classes,
        teachers=told.teachers,
        largest_label=LARGEST_UNTOLD_LABEL,
        asked=told.queries,
        names=told.names,
        groups=told.groups,
    )
    classes = told.classes or _at_least_two(votes.top + 1, name)

    teachers = told.teachers or votes.teachers
    size = told.size(told.drawn(classes, teachers))
    reader = CountedReader(
        name=name, ids=votes.ids, counts=votes.counts, size=size, strays=votes.strays
    )
    return told.file(
        name,
        Layout.LONG,
        queries=len(votes.counts),
        classes=classes,
        teachers=teachers,
        reader=reader,
        strays=reader.stray_rows if parts.columns.texts else None,
    )
