"""Several labels a query, each yes or no: as pairs of a query and a label, or as sets of labels.

A pair is a row of two classes, no and yes, in which one teacher has one vote, as in any row. So
pairs are rows to whatever comes after; only where a file is cut do they stay together by query.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeVar

import numpy as np

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, VoteError
from pate_cli.core.label_set import LabelSet
from pate_cli.core.words import Layout, Voting
from pate_cli.votes.batches import Matrix, ReadFrom, VoteBatch, row_numbers
from pate_cli.votes.checks import ABSENT, Ids, first_bad, histograms_of
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
        """Votes on several labels a query, by pairs unless on sets was said."""
        answers: CountedYes | CountedBoth | Ballots
        if not isinstance(source, NpyCube):
            answers = CountedYes.of(source, reading)
        elif layout is Layout.MULTILABEL_COUNTS:
            answers = CountedBoth.of(source, reading)
        else:
            answers = Ballots.of(source, reading, layout)
        label_set = _label_set(answers, reading)
        reader: Pairs | Sets
        # Counts by label are never on sets, as Reading sees to.
        if label_set.voting is Voting.POWERSET and isinstance(answers, Ballots):
            entries = max(answers.teachers * answers.labels, label_set.classes)
            reader = Sets(source=answers, size=reading.size(entries))
        else:
            reader = Pairs(source=answers, size=reading.size(answers.width))
        return reading.file(
            answers.name,
            layout,
            queries=answers.queries * label_set.rows_per_query,
            classes=label_set.classes,
            teachers=answers.teachers,
            reader=reader,
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Sets(MultilabelLayout[Ballots]):
    """Histograms of the sets of labels that teachers said yes to, over all 2^L of them."""

    @property
    def width(self) -> int:
        """See Reader."""
        return max(self.source.width * self.source.labels, 1 << self.source.labels)

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """See Reader."""
        labels = self.source.labels
        for first, said in self.source.said(self.size, start, stop):
            gone = said == ABSENT
            torn = gone.any(axis=2) & ~gone.all(axis=2)
            if torn.any():
                row = first_bad(torn, first)
                raise VoteError(
                    f"{self.source.source.where.at(row)} has a teacher who votes on some labels "
                    "only, which is no set of labels; give `voting` binary"
                )
            sets = np.maximum(said, 0).astype(np.int64) @ (1 << np.arange(labels))
            sets[gone.all(axis=2)] = ABSENT
            ids = row_numbers(first, first + len(sets))
            yield VoteBatch(first, ids, histograms_of(sets, 1 << labels, self.source.weights))


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
    label_set = LabelSet(answers.labels, reading.voting or Voting.BINARY, names or own_names)
    if reading.classes not in (None, label_set.classes):
        raise ParameterError(
            f"`classes` {reading.classes} does not fit {answers.labels} labels with `voting` "
            f"{label_set.voting}, which has {label_set.classes}; leave it out"
        )
    return label_set
