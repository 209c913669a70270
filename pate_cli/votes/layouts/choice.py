"""From an opened source to a VoteFile: which layout it has, as was said or as only one can be.

The one place where layouts are told apart; what each of them means is in its own module.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeAlias

from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.core.words import Layout
from pate_cli.votes.batches import Matrix
from pate_cli.votes.layouts.counts import CountsLayout
from pate_cli.votes.layouts.infer import SAMPLE_ENTRIES, Evidence, infer
from pate_cli.votes.reading import Reading, batch_size
from pate_cli.votes.sources.npy import NpyCube, NpyMatrix
from pate_cli.votes.sources.table import VoteTable
from pate_cli.votes.vote_file import VoteFile

if TYPE_CHECKING:
    from pate_cli.votes.sources.table_matrix import TableMatrix

Opened: TypeAlias = NpyMatrix | NpyCube | VoteTable
"""What a source is once it was opened: an array or a table, in files or in memory."""


def vote_file(source: Opened, reading: Reading) -> VoteFile:
    """The votes of an opened source, the layout of which is settled here.

    Raises:
        PateError: as `open_votes` does.
    """
    if isinstance(source, VoteTable):
        file = _of_table(source, reading)
    else:
        file = _of_array(source, reading)
    if reading.any_name and file.vocabulary is None and reading.normalise:
        raise UsageError("`normalise` is for votes that are texts, and these are none")
    return file


def _of_array(array: NpyMatrix | NpyCube, reading: Reading) -> VoteFile:
    name, layout = array.where.name, reading.layout
    reading.refuse_list(name)
    reading.refuse_id_column(name)
    if isinstance(array, NpyMatrix):
        if layout in (Layout.LONG, Layout.SPARSE):
            raise VoteError(f"{name}: layout {layout} is for tables (Parquet, CSV, JSONL, Arrow)")
        if array.truths and reading.classes is None:
            reading = replace(reading, classes=2)
        words = array.texts or array.truths
        layout = layout or (_by_shape(array, reading) if words else _inferred(array, reading))
        if array.texts and layout is Layout.COUNTS:
            raise VoteError(f"{name}: the array holds strings; counts are integers")
        turned = array.transposed() if layout is Layout.LABELS_BY_TEACHER else array
        return _of_matrix(turned, reading, layout)
    if layout is None:
        raise ParameterError("an array of three sides needs its `layout`")
    if layout.multilabel:
        from pate_cli.votes.layouts.multilabel import MultilabelLayout

        return MultilabelLayout.file(array, reading, layout)
    from pate_cli.votes.layouts.scores import ScoresLayout

    return ScoresLayout.file(array, reading, layout)


def _of_table(table: VoteTable, reading: Reading) -> VoteFile:
    # These import pyarrow, which takes a tenth of a second: arrays do without.
    from pate_cli.votes.sources.table_matrix import open_matrix

    columns = table.columns
    if columns.truths and reading.classes is None:
        reading = replace(reading, classes=2)
    if columns.layout is Layout.LONG:
        from pate_cli.votes.layouts.long import LongLayout

        return LongLayout.file(table, reading)
    reading.refuse_list(table.where.name)
    if columns.layout is Layout.SPARSE:
        from pate_cli.votes.layouts.sparse import SparseLayout

        return SparseLayout.file(table, reading)
    matrix = open_matrix(
        table,
        gaps_allowed=reading.teachers is not None,
        matching=reading.matching,
        placed=reading.by_teacher,
        teachers=reading.teachers,
    )
    layout = reading.layout
    # Words are no counts, so it is the shape alone that could be doubtful.
    if columns.texts and layout is not Layout.MULTILABEL_COUNTS:
        layout = Layout.LABELS
    found = layout or _inferred(matrix, reading)
    if layout is None and found is Layout.LABELS and columns.digits and reading.any_name:
        # One text among them would make texts of them all.
        raise VoteError(f"{table.where.name}: if its votes are labels, say `layout` {found}")
    return _of_matrix(matrix, reading, found)


def _of_matrix(matrix: NpyMatrix | TableMatrix, reading: Reading, layout: Layout) -> VoteFile:
    if layout is Layout.COUNTS:
        return CountsLayout.file(matrix, reading)
    if layout is Layout.MULTILABEL_COUNTS:
        from pate_cli.votes.layouts.multilabel import MultilabelLayout

        return MultilabelLayout.file(matrix, reading, layout)
    if reading.any_name:
        size = batch_size(matrix.width)
        reading = reading.heard(matrix.texts_said(size, matrix.rows) if matrix.texts else ())
        matrix = replace(matrix, matching=reading.matching)
    from pate_cli.votes.layouts.labels import LabelsLayout

    return LabelsLayout.file(matrix, reading, layout)


def _by_shape(words: NpyMatrix, reading: Reading) -> Layout:
    """The layout of an array of texts or truths, which are labels: who is a row must be known."""
    if reading.teachers not in (words.width, words.rows) or words.width == words.rows:
        what = "strings" if words.source.dtype.kind == "U" else "true/false values"
        raise VoteError(
            f"{words.where.name}: the array holds {what}, and who is a row cannot be told; say "
            f"`layout` {Layout.LABELS}|{Layout.LABELS_BY_TEACHER}"
        )
    return Layout.LABELS if reading.teachers == words.width else Layout.LABELS_BY_TEACHER


def _inferred(matrix: Matrix, reading: Reading) -> Layout:
    """The layout that the beginning of a matrix of numbers must have."""
    columns = matrix.columns
    evidence = Evidence(
        matrix.rows,
        matrix.width,
        reading.classes,
        reading.ensemble,
        transposable=columns is None,
        rows_are_queries=columns is not None and columns.rows_are_queries,
        named=None if columns is None else columns.layout,
    )
    rows = max(1, SAMPLE_ENTRIES // max(1, matrix.width))
    limit = reading.absent_limit(matrix.width)
    _, _, sample = next(matrix.blocks(rows, 0, min(rows, matrix.rows), absent_limit=limit))
    return infer(matrix.where.name, sample, evidence)
