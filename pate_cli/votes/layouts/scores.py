"""Scores of every class by every teacher: each votes for the class it scores highest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.core.words import Layout
from pate_cli.votes.batches import ReadFrom, VoteBatch, row_numbers
from pate_cli.votes.checks import ABSENT, Ids, Where, first_bad, histograms_of
from pate_cli.votes.layouts.orientation import check_three_sides
from pate_cli.votes.reading import Reading
from pate_cli.votes.sources.npy import NpyCube
from pate_cli.votes.vote_file import VoteFile


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoresLayout(ReadFrom[NpyCube]):
    """Histograms of the best classes of [queries, teachers, classes].

    missing_allowed: a teacher all of whose scores are NaN has no vote. weights: as in `tally`.
    """

    size: int
    missing_allowed: bool
    weights: Ints | None = None

    @classmethod
    def file(cls, cube: NpyCube, reading: Reading, layout: Layout) -> VoteFile:
        """Votes of an array of scores."""
        name, (teachers, classes) = cube.where.name, cube.sides
        check_three_sides(cube, layout, reading)
        weights = reading.weights(teachers, name)
        if reading.classes not in (None, classes):
            raise VoteError(
                f"{name}: has scores of {classes} classes, but `classes` {reading.classes}"
            )
        if classes == 1:
            raise VoteError(
                f"{name}: has scores of one class only; there is nothing to choose from"
            )
        return reading.file(
            name,
            layout,
            queries=cube.rows,
            classes=classes,
            teachers=teachers,
            reader=cls(
                source=cube,
                size=reading.size(teachers * classes),
                missing_allowed=reading.teachers is not None,
                weights=weights,
            ),
        )

    @property
    def width(self) -> int:
        """Scores of one query."""
        teachers, classes = self.source.sides
        return teachers * classes

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """See Reader."""
        _, classes = self.source.sides
        for first, ids, votes in self.said(start, stop):
            yield VoteBatch(first, ids, histograms_of(votes, classes, self.weights))

    def said(self, start: int, stop: int) -> Iterator[tuple[int, Ids, Ints]]:
        """Yield rows start..stop-1 as (first row, ids, labels [rows, teachers])."""
        for first, scores in self.source.blocks(self.size, start, stop):
            votes = _best(scores, first, self.source.where, missing_allowed=self.missing_allowed)
            yield first, row_numbers(first, first + len(votes)), votes


def _best(scores: NDArray[Any], first_row: int, where: Where, *, missing_allowed: bool) -> Ints:
    """The class with the highest of `scores` [rows, teachers, classes], the first of equal ones.

    Raises:
        VoteError: NaN or infinity among the scores of a teacher who votes.
    """
    votes = scores.argmax(axis=2).astype(np.int64, copy=False)
    if scores.dtype.kind != "f":
        return votes
    damaged = ~np.isfinite(scores).all(axis=2)
    if not damaged.any():
        return votes
    none = np.isnan(scores).all(axis=2)
    bad = damaged & ~none if missing_allowed else damaged
    if bad.any():
        remedy = "" if missing_allowed else "; a teacher with NaN alone may be missing where "
        remedy += "" if missing_allowed else "`teachers` N is given"
        raise VoteError(
            f"{where.at(first_bad(bad, first_row))} has NaN or infinity among the scores of a "
            f"teacher{remedy}"
        )
    votes[none] = ABSENT
    return votes
