"""Several labels a query, each yes or no, as pairs of a query and a label.

A pair is a row of two classes, no and yes, in which one teacher has one vote, as in any row. So
pairs are rows to whatever comes after; only where a file is cut do they stay together by query.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, VoteError
from pate_cli.core.label_set import CLASSES, LabelSet
from pate_cli.core.words import Layout
from pate_cli.votes.batches import Matrix, ReadFrom, VoteBatch
from pate_cli.votes.checks import Ids
from pate_cli.votes.layouts.answers import Answers, Ballots, CountedBoth, CountedYes
from pate_cli.votes.ranges import Stretch
from pate_cli.votes.reading import Reading
from pate_cli.votes.sources.npy import NpyCube
from pate_cli.votes.vote_file import VoteFile

_Answers = TypeVar("_Answers", bound=Answers)


@dataclass(frozen=True, eq=False, kw_only=True)
class MultilabelLayout(ReadFrom[_Answers]):
    """Batches of at most `size` rows of answers about several labels."""

    size: int

    @staticmethod
    def file(source: Matrix | NpyCube, reading: Reading, layout: Layout) -> VoteFile:
        """Votes on several labels a query, by pairs."""
        answers: CountedYes | CountedBoth | Ballots
        if not isinstance(source, NpyCube):
            answers = CountedYes.of(source, reading)
        elif layout is Layout.MULTILABEL_COUNTS:
            answers = CountedBoth.of(source, reading)
        else:
            answers = Ballots.of(source, reading, layout)
        label_set = _label_set(answers, reading)
        return reading.file(
            answers.name,
            layout,
            queries=answers.queries * label_set.count,
            classes=CLASSES,
            teachers=answers.teachers,
            reader=Pairs(source=answers, size=reading.size(answers.width)),
            names=label_set.names,
            label_set=label_set,
        )


@dataclass(frozen=True, eq=False, kw_only=True)
class Pairs(MultilabelLayout[Answers]):
    """Histograms (no, yes) of pairs, all labels of a query one after the other."""

    @property
    def width(self) -> int:
        """See Reader."""
        return self.source.width

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """See Reader; their rows are pairs."""
        labels = self.source.labels
        return tuple(
            Stretch(
                stretch.name,
                stretch.rows * labels,
                stretch.groups and tuple(rows * labels for rows in stretch.groups),
            )
            for stretch in self.source.stretches
        )

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """See Reader; a query that a bound falls into is read whole and cut."""
        labels = self.source.labels
        queries = max(self.size // labels, 1)
        for query, ids, counts in self.source.blocks(queries, start // labels, -(-stop // labels)):
            first = query * labels
            pairs = counts.reshape(-1, 2)
            wanted = slice(max(start - first, 0), stop - first)
            kept = np.ascontiguousarray(pairs[wanted])
            yield VoteBatch(first + wanted.start, _query_ids(ids, labels, wanted), kept)


def _query_ids(ids: Ids, labels: int, wanted: slice) -> Ids:
    """The id of the query of every pair."""
    if isinstance(ids, np.ndarray):
        return np.repeat(ids, labels)[wanted]
    return tuple(query for query in ids for _ in range(labels))[wanted]


def _label_set(answers: Answers, reading: Reading) -> LabelSet:
    """The labels, by the names that were said or that their columns have."""
    names, own_names = reading.names, answers.label_names
    if names is not None and len(names) != answers.labels:
        raise VoteError(
            f"{answers.name}: has {answers.labels} labels, but {len(names)} `label_names`"
        )
    if None not in (names, own_names) and names != own_names:
        raise VoteError(
            f"{answers.name}: the columns and `label_names` do not name the same labels in the "
            "same order"
        )
    label_set = LabelSet(answers.labels, names or own_names)
    if reading.classes not in (None, CLASSES):
        raise ParameterError(
            f"`classes` {reading.classes} does not fit {answers.labels} labels, each of which has "
            f"{CLASSES}; leave it out"
        )
    return label_set
