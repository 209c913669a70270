"""From an array of three sides, or from counts of several labels a query, to a VoteFile."""

from __future__ import annotations

from pate_cli.core.errors import ParameterError, VoteError
from pate_cli.core.label_set import LabelSet
from pate_cli.core.words import Layout, Voting
from pate_cli.votes.layouts.multilabel import (
    Answers,
    Ballots,
    CountedBoth,
    CountedYes,
    PairsReader,
    SetsReader,
    first_total,
)
from pate_cli.votes.layouts.scores import ScoresReader
from pate_cli.votes.reading import (
    Matrix,
    Reader,
)
from pate_cli.votes.sources.npy import NpyCube
from pate_cli.votes.told import Told
from pate_cli.votes.vote_file import VoteFile


def from_cube(cube: NpyCube, told: Told) -> VoteFile:
    """Read an array of three sides; its layout was told."""
    layout, missing = told.layout, told.teachers is not None
    if layout is None:
        raise ParameterError("an array of three sides needs its `layout`")
    if layout is Layout.MULTILABEL_COUNTS:
        return _counted_both(cube, told)
    _check_sides(cube, layout, told)
    teachers, width = cube.sides
    weights = told.weights(teachers, cube.where.name)
    if layout.multilabel:
        ballots = Ballots(source=cube, missing_allowed=missing, weights=weights)
        several = _label_set(told, width, cube.where.name, None)
        if several.voting is Voting.BINARY:
            return _pairs(ballots, cube.where.name, cube.rows, several, told, teachers=teachers)
        entries = max(teachers * width, several.classes)
        sets = SetsReader(source=ballots, size=told.size(entries))
        return _several(cube.where.name, cube.rows, several, told, sets, teachers=teachers)
    if told.classes not in (None, width):
        raise VoteError(
            f"{cube.where.name}: has scores of {width} classes, but `classes` {told.classes}"
        )
    if width == 1:
        raise VoteError(
            f"{cube.where.name}: has scores of one class only; there is nothing to choose from"
        )
    return told.file(
        cube.where.name,
        layout,
        queries=cube.rows,
        classes=width,
        teachers=teachers,
        reader=ScoresReader(
            source=cube,
            size=told.size(teachers * width),
            missing_allowed=missing,
            weights=weights,
        ),
    )


def _check_sides(cube: NpyCube, layout: Layout, told: Told) -> None:
    """Refuse an array that may have queries and teachers the other way round."""
    teachers, queries = cube.sides[0], cube.rows
    other = Layout(
        layout.removesuffix("-by-teacher") if layout.by_teacher else f"{layout}-by-teacher"
    )
    shape = cube.source.shape
    if told.ensemble is None and teachers > queries:
        raise VoteError(
            f"{cube.where.name}: as {layout} an array of shape {shape} has {teachers} teachers and "
            f"only {queries} queries, as {other} {queries} teachers and {teachers} queries; give "
            "`teachers` N to settle it"
        )
    said = "`teachers`" if told.groups is None else "`groups` of"
    if told.ensemble == queries != teachers:
        raise VoteError(
            f"{cube.where.name}: with {said} {told.ensemble} an array of shape {shape} is "
            f"`layout` {other}, not {layout}"
        )
    if told.ensemble not in (None, teachers):
        raise VoteError(
            f"{cube.where.name}: as {layout} it has {teachers} teachers, but {said} "
            f"{told.ensemble}; one who is missing is NaN throughout"
        )


def _label_set(told: Told, labels: int, name: str, names: tuple[str, ...] | None) -> LabelSet:
    """The labels of a file called `name`, whose columns have `names` where they have any."""
    if told.names is not None and len(told.names) != labels:
        raise VoteError(f"{name}: has {labels} labels, but {len(told.names)} `label_names`")
    if None not in (told.names, names) and told.names != names:
        raise VoteError(
            f"{name}: the columns and `label_names` do not name the same labels in the same order"
        )
    several = LabelSet(labels, told.voting or Voting.BINARY, told.names or names)
    if told.classes not in (None, several.classes):
        raise ParameterError(
            f"`classes` {told.classes} does not fit {labels} labels with `voting` "
            f"{several.voting}, which has {several.classes}; leave it out"
        )
    return several


def _several(
    name: str,
    queries: int,
    several: LabelSet,
    told: Told,
    reader: Reader,
    *,
    teachers: int,
) -> VoteFile:
    """A file of so many queries with several labels each."""
    if told.layout is None:
        raise ParameterError("several labels a query need their `layout`")
    return told.file(
        name,
        told.layout,
        queries=queries * several.rows_per_query,
        classes=several.classes,
        teachers=teachers,
        reader=reader,
        names=several.names,
        label_set=several,
    )


def _pairs(
    answers: Answers, name: str, queries: int, several: LabelSet, told: Told, *, teachers: int
) -> VoteFile:
    size = told.size(answers.width)
    pairs = PairsReader(source=answers, size=size)
    return _several(name, queries, several, told, pairs, teachers=teachers)


def counted_yes(matrix: Matrix, told: Told, names: tuple[str, ...] | None) -> VoteFile:
    """Read counts of yes, [queries, labels]; `names` are those of their columns."""
    name = matrix.where.name
    told.refuse_groups(name)
    if told.teachers is None:
        raise VoteError(
            f"{name}: counts of yes do not tell how many teachers said no; give `teachers` N"
        )
    several = _label_set(told, matrix.width, name, names)
    answers = CountedYes(source=matrix, teachers=told.teachers)
    return _pairs(answers, name, matrix.rows, several, told, teachers=told.teachers)


def _counted_both(cube: NpyCube, told: Told) -> VoteFile:
    name, (labels, sides) = cube.where.name, cube.sides
    told.refuse_groups(name)
    if sides != 2:
        raise VoteError(
            f"{name}: the array has shape {cube.source.shape}; its last side must be 2, the counts "
            "of no and of yes"
        )
    several = _label_set(told, labels, name, None)
    missing = told.teachers is not None
    teachers = told.teachers
    if teachers is None:
        _, first = next(cube.blocks(1, 0, 1))
        teachers = first_total(first, cube.where)
    answers = CountedBoth(source=cube, teachers=teachers, missing_allowed=missing)
    next(answers.blocks(1, 0, 1))
    return _pairs(answers, name, cube.rows, several, told, teachers=teachers)
