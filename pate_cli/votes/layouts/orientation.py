"""Refusing votes that may well be turned round: queries for teachers, and teachers for queries.

Turned round they would pass for as many teachers as there are queries, whose votes seem to cost
next to nothing.
"""

from __future__ import annotations

from pate_cli.core.errors import VoteError
from pate_cli.core.words import Layout
from pate_cli.votes.batches import Matrix
from pate_cli.votes.reading import Reading
from pate_cli.votes.sources.npy import NpyCube


def check_two_sides(matrix: Matrix, layout: Layout, reading: Reading) -> None:
    """Refuse labels where nothing in the file tells which side is which; `matrix` as it is read.

    That is where the other side is the number of teachers, or, if that is not told, where there
    would be more teachers than queries: far more queries than teachers is what ensembles look like.
    """
    columns = matrix.columns
    if columns is not None and columns.rows_are_queries:
        return
    name, teachers, queries = matrix.where.name, matrix.width, matrix.rows
    if reading.ensemble is None and teachers > queries:
        raise VoteError(
            f"{name}: as {layout} it has {teachers} teachers and {queries} queries, turned round "
            f"{queries} teachers and {teachers} queries; give `teachers` {teachers} or {queries} "
            "to say which"
        )
    if reading.ensemble is not None and teachers != reading.ensemble == queries:
        if columns is not None:
            raise VoteError(
                f"{name}: with {_said(reading)} {reading.ensemble} its {queries} rows are "
                "teachers; store one row per query, or query_id, teacher_id, label"
            )
        rows, width = (teachers, queries) if layout.by_teacher else (queries, teachers)
        raise VoteError(
            f"{name}: with {_said(reading)} {reading.ensemble} an array of {rows} x {width} is "
            f"`layout` {_turned(layout)}, not {layout}"
        )


def check_three_sides(cube: NpyCube, layout: Layout, reading: Reading) -> None:
    """The same of an array of three sides, which must have as many teachers as were said."""
    name, shape = cube.where.name, cube.source.shape
    teachers, queries = cube.sides[0], cube.rows
    if reading.ensemble is None and teachers > queries:
        raise VoteError(
            f"{name}: as {layout} an array of shape {shape} has {teachers} teachers and "
            f"only {queries} queries, as {_turned(layout)} {queries} teachers and {teachers} "
            "queries; give `teachers` N to settle it"
        )
    if reading.ensemble == queries != teachers:
        raise VoteError(
            f"{name}: with {_said(reading)} {reading.ensemble} an array of shape {shape} is "
            f"`layout` {_turned(layout)}, not {layout}"
        )
    if reading.ensemble not in (None, teachers):
        raise VoteError(
            f"{name}: as {layout} it has {teachers} teachers, but {_said(reading)} "
            f"{reading.ensemble}; one who is missing is NaN throughout"
        )


def _said(reading: Reading) -> str:
    """Where the number of teachers was said."""
    return "`teachers`" if reading.groups is None else "`groups` of"


def _turned(layout: Layout) -> Layout:
    """The layout with the same sides turned round."""
    return Layout(
        layout.removesuffix("-by-teacher") if layout.by_teacher else f"{layout}-by-teacher"
    )
