"""Counts: a row is a histogram, how many teachers voted for each class."""

from __future__ import annotations

from collections.abc import Iterator

from pate_cli.core.arrays import compact
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError, quoted
from pate_cli.core.words import Layout
from pate_cli.votes.batches import Matrix, ReadFrom, VoteBatch
from pate_cli.votes.checks import check_counts
from pate_cli.votes.columns import Columns
from pate_cli.votes.reading import Reading
from pate_cli.votes.vote_file import VoteFile


@dataclass(frozen=True, eq=False, kw_only=True)
class CountsLayout(ReadFrom[Matrix]):
    """Batches of `size` rows of `width` classes; the others are as in `check_counts`."""

    size: int
    width: int
    teachers: int
    missing_allowed: bool

    @classmethod
    def file(cls, matrix: Matrix, reading: Reading) -> VoteFile:
        """Votes whose rows are histograms, the first of them checked."""
        where, classes = matrix.where, matrix.width
        names = _class_names(matrix.columns, reading, where.name)
        reading.refuse_groups(where.name)
        if reading.classes not in (None, classes):
            raise VoteError(
                f"{where.name}: has counts of {classes} classes, but `classes` {reading.classes}"
            )
        if classes == 0:
            raise VoteError(f"{where.at(0)} has no entries")
        if classes == 1:
            raise VoteError(
                f"{where.name}: has counts of one class only; there is nothing to choose from"
            )
        _, _, first = next(matrix.blocks(1, 0, 1, absent_limit=None))
        missing = reading.teachers is not None
        teachers = reading.teachers or int(first.sum())
        check_counts(first, 0, where, teachers=teachers, missing_allowed=missing)
        return reading.file(
            where.name,
            Layout.COUNTS,
            queries=matrix.rows,
            classes=classes,
            teachers=teachers,
            reader=cls(
                source=matrix,
                size=reading.size(classes),
                width=classes,
                teachers=teachers,
                missing_allowed=missing,
            ),
            names=names,
        )

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """See Reader."""
        for row, ids, counts in self.source.blocks(self.size, start, stop, absent_limit=None):
            check_counts(
                counts,
                row,
                self.source.where,
                teachers=self.teachers,
                missing_allowed=self.missing_allowed,
            )
            yield VoteBatch(row, ids, compact(counts))


def _class_names(columns: Columns | None, reading: Reading, name: str) -> tuple[str, ...] | None:
    """What the columns call the classes; VoteError where `label_names` call them otherwise."""
    if columns is None or columns.classes is None:
        return None
    others = () if reading.names is None else sorted(set(columns.classes) ^ set(reading.names))
    if others:
        raise VoteError(
            f"{name}: the columns and `label_names` do not name the same classes: "
            f"{quoted(others[0])} is on one side only"
        )
    return columns.classes
