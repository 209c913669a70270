"""Labels: a row has the class that each teacher voted for; or, by teacher, a column has."""

from __future__ import annotations

from collections.abc import Iterator

from pate_cli.core.arrays import Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.core.words import Layout
from pate_cli.votes.batches import Matrix, ReadFrom, VoteBatch
from pate_cli.votes.checks import Ids, check_labels, first_bad, histograms_of
from pate_cli.votes.layouts.orientation import check_two_sides
from pate_cli.votes.matching import Matching
from pate_cli.votes.reading import Reading, batch_size
from pate_cli.votes.unnamed import NameTally
from pate_cli.votes.vote_file import VoteFile

LARGEST_LABEL_SEEN = (1 << 16) - 1
"""Without `classes` a label above this is damage: the histograms would be as wide as it is."""

_WIDTH_OF_TEXT = 4
"""How many integers a vote in words counts as, while it is read."""


@dataclass(frozen=True, eq=False, kw_only=True)
class LabelsLayout(ReadFrom[Matrix]):
    """Batches of `size` rows of `width` entries; `absent_limit` as in Matrix.blocks.

    `weights` [teachers]: how many votes each teacher's counts for; None for one each.
    """

    size: int
    width: int
    classes: int
    absent_limit: int | None
    weights: Ints | None = None

    @classmethod
    def file(cls, matrix: Matrix, reading: Reading, layout: Layout) -> VoteFile:
        """Votes of a matrix with a row per query, or one that was turned so."""
        where, width, columns = matrix.where, matrix.width, matrix.columns
        check_two_sides(matrix, layout, reading)
        names = None if columns is None else columns.entry_names
        weights = reading.weights(width, where.name, names)
        if reading.teachers is not None and width > reading.teachers:
            raise VoteError(
                f"{where.name}: as {layout} it has {width} teachers, more than `teachers` "
                f"{reading.teachers}"
            )
        classes = reading.classes or _classes_seen(matrix, reading)
        teachers = reading.teachers or width
        entries = max(teachers, reading.drawn(classes, teachers))
        read = max(entries, teachers * _WIDTH_OF_TEXT) if matrix.texts else entries
        return reading.file(
            where.name,
            layout,
            queries=matrix.rows,
            classes=classes,
            teachers=teachers,
            reader=cls(
                source=matrix,
                size=reading.size(read),
                width=entries,
                classes=classes,
                absent_limit=reading.absent_limit(width),
                weights=weights,
            ),
        )

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """See Reader."""
        for row, ids, labels in self.said(start, stop):
            yield VoteBatch(row, ids, histograms_of(labels, self.classes, self.weights))

    def said(self, start: int, stop: int) -> Iterator[tuple[int, Ids, Ints]]:
        """Yield rows start..stop-1 as (first row, ids, labels [rows, teachers])."""
        blocks = self.source.blocks(self.size, start, stop, absent_limit=self.absent_limit)
        for row, ids, labels in blocks:
            check_labels(labels, row, self.source.where, classes=self.classes)
            yield row, ids, labels

    def tally(self, matching: Matching, stop: int, *, until_named: bool = False) -> NameTally:
        """See Reader; reads them once more."""
        tally = NameTally(matching)
        if not self.source.texts:
            return tally
        return tally.count(self.source.texts_said(self.size, stop), until_named=until_named)


def _classes_seen(matrix: Matrix, reading: Reading) -> int:
    """Return the largest label of the file plus one; a pass over the whole file."""
    top = 0
    size = batch_size(reading.teachers or matrix.width)
    for first_row, _, labels in matrix.blocks(size, 0, matrix.rows, absent_limit=reading.teachers):
        top = max(top, int(labels.max()))
        if top > LARGEST_LABEL_SEEN:
            row = first_bad(labels > LARGEST_LABEL_SEEN, first_row)
            raise VoteError(
                f"{matrix.where.at(row)} has a label above {LARGEST_LABEL_SEEN}; "
                "if that is right, give `classes`"
            )
    return classes_of(top, matrix.where.name)


def classes_of(top: int, name: str) -> int:
    """How many classes there are if `top` is the largest label; VoteError for one class only."""
    if top < 1:
        raise VoteError(f"{name}: only label 0 occurs; give `classes`")
    return top + 1
