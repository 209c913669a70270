"""Types of arrays, and vote histograms in two forms, dense and sparse."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import ParameterError

_Number = TypeVar("_Number", bound=np.generic)

Floats: TypeAlias = NDArray[np.float64]
"""Real numbers: costs in nats, scores, orders."""

Ints: TypeAlias = NDArray[np.int64]
"""Whole numbers: rows, cells, distances."""

Counts: TypeAlias = NDArray[np.int64]
"""Vote histograms [queries, classes]: how many teachers voted for each class. SECRET."""

Ids: TypeAlias = Ints | tuple[str, ...]
"""Query ids of consecutive rows: whole numbers or texts."""

LabelArray: TypeAlias = NDArray[np.int32]
"""One class per query; NO_LABEL for a query without an answer."""

NO_LABEL: Final = -1
"""The label of a query without an answer."""

SOURCES: Final = ("teachers", "student", "none", "not asked")
"""Who gave a label: the teachers' noisy vote, the student itself (Interactive), or nobody.

A query with source "none" was asked but not answered. If a run is limited to the first queries of a
file, all later queries have the source "not asked". The run does not use the votes on such queries,
and spends nothing on them.
"""

DENSE_CLASSES = 10_000
"""With more than 10,000 classes, histograms only store the classes that have votes.

The number of classes is public, so it may decide how noise is drawn. The votes are secret, so they
may not decide this.
"""


def each_once(values: NDArray[_Number], axis: int | None = None) -> NDArray[_Number]:
    """Return each value, or each slice along an axis, once and in ascending order.

    If `np.unique` is called without `return_counts`, numpy imports its module for masked arrays,
    which takes a twentieth of the time of a short run. So that numpy does not import the module for
    masked arrays, this function passes `return_counts`. It does not use the counts.
    """
    return np.unique(values, return_counts=True, axis=axis)[0]


@dataclass(frozen=True, eq=False)
class SparseCounts:
    """Vote histograms that only store the classes with votes. SECRET.

    All rows have the same number of entries, which is the number that the longest row needs. A row
    with more entries than classes with votes ends with padding.

    Attributes:
        labels: the classes with votes, ascending in each row, followed by the number `classes` as
            padding; [queries, entries], int64, with at least one entry and at most `classes`
            entries per row.
        counts: the number of votes for each class in `labels`, ≥ 1, and 0 as padding; [queries,
            entries].
        classes: the number of all classes, with and without votes. This number is public.
    """

    labels: Ints
    counts: Counts
    classes: int

    @classmethod
    def of(cls, counts: Counts) -> Self:
        """Return the sparse form of dense histograms [queries, classes]."""
        rows, labels = np.nonzero(counts)
        return cls.of_entries(rows, labels, counts[rows, labels], counts.shape)

    @classmethod
    def of_votes(cls, votes: Ints, classes: int, weights: Ints | None = None) -> Self:
        """Return histograms of votes [queries, teachers]; a negative number is a missing vote.

        With `weights` [teachers], ≥ 1, a teacher with weight w casts w votes for its class.
        """
        rows, at = np.nonzero(votes >= 0)
        each = np.ones_like(rows) if weights is None else weights[at]
        return cls.of_entries(rows, votes[rows, at], each, (len(votes), classes))

    @classmethod
    def of_entries(cls, rows: Ints, labels: Ints, votes: Ints, shape: tuple[int, ...]) -> Self:
        """Return the histograms of a list of votes; each item has a row, a class and its votes.

        Args:
            rows: the row of the histograms to which each item belongs, [items].
            labels: the class of each item, [items].
            votes: the number of votes of each item, [items]; votes of items with the same row and
                class are added.
            shape: (queries, classes).
        """
        key, inverse = np.unique(rows * np.int64(shape[1]) + labels, return_inverse=True)
        summed = np.bincount(inverse, votes, minlength=key.size).astype(np.int64)
        rows, labels = np.divmod(key, np.int64(shape[1]))
        voted = np.bincount(rows, minlength=shape[0])
        width = max(int(voted.max(initial=0)), 1)
        place = np.arange(key.size) - np.repeat(np.cumsum(voted) - voted, voted)
        padded = np.full((shape[0], width), shape[1], dtype=np.int64)
        found = np.zeros((shape[0], width), dtype=np.int64)
        padded[rows, place], found[rows, place] = labels, summed
        return cls(padded, found, shape[1])

    def plus(self, rows: Ints, labels: Ints, votes: Ints) -> SparseCounts:
        """Return these histograms plus a list of votes.

        The i-th item of the list adds `votes[i]` votes for class `labels[i]` in row `rows[i]`.
        """
        own, place = np.nonzero(self.counts)
        return SparseCounts.of_entries(
            np.concatenate([own, rows]),
            np.concatenate([self.labels[own, place], labels]),
            np.concatenate([self.counts[own, place], votes]),
            self.shape,
        )

    @property
    def shape(self) -> tuple[int, int]:
        """Return (queries, classes), the shape that dense histograms would have."""
        return len(self.labels), self.classes

    @property
    def ndim(self) -> int:
        """Return 2, the number of axes that dense histograms have."""
        return 2

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows: slice | NDArray[Any]) -> SparseCounts:
        return SparseCounts(self.labels[rows], self.counts[rows], self.classes)

    @functools.cached_property
    def voted(self) -> Ints:
        """Return how many classes have votes, [queries]."""
        return (self.labels < self.classes).sum(axis=1)

    @property
    def zeros(self) -> Ints:
        """Return how many classes have no vote, [queries]."""
        return self.classes - self.voted

    def without_votes(self, place: Ints) -> Ints:
        """Return one class without votes for each row, [queries].

        The classes without votes of each row are numbered 0, 1, 2, … in ascending order. `place`
        holds a number j for each row, and the method returns the class without votes that has the
        number j. If a row has at most j classes without votes, the returned number is not a class.

        If i classes with votes are smaller than a class ℓ, then ℓ − i classes without votes are
        smaller than ℓ. So a class ℓ with votes is smaller than the returned class exactly if at
        most j classes without votes are smaller than ℓ: ℓ − i ≤ j. The returned class is j plus the
        number of classes with votes that are smaller than the returned class.
        """
        before = self.labels - np.arange(self.labels.shape[1]) <= place[:, None]
        before &= self.labels < self.classes
        return np.asarray(place + before.sum(axis=1), dtype=np.int64)

    def dense(self) -> Counts:
        """Return these histograms with a count for every class, [queries, classes]."""
        found = np.zeros((len(self), self.classes + 1), dtype=np.int64)
        np.put_along_axis(found, self.labels, self.counts, axis=1)
        return np.ascontiguousarray(found[:, :-1])


Histograms: TypeAlias = Counts | SparseCounts
"""Vote histograms in either form. SECRET."""


def compact(histograms: Histograms) -> Histograms:
    """Return histograms in sparse form if there are more than DENSE_CLASSES classes."""
    if isinstance(histograms, SparseCounts) or histograms.shape[1] <= DENSE_CLASSES:
        return histograms
    return SparseCounts.of(histograms)


def dense(histograms: Histograms) -> Counts:
    """Return histograms in the dense form [queries, classes], a count for every class."""
    return histograms.dense() if isinstance(histograms, SparseCounts) else histograms


def stacked(parts: Sequence[Histograms]) -> Histograms:
    """Return one array with the rows of all parts; all parts are dense, or all are sparse."""
    sparse = [part for part in parts if isinstance(part, SparseCounts)]
    if not sparse:
        return np.concatenate([dense(part) for part in parts]).astype(np.int64)
    width = max(part.labels.shape[1] for part in sparse)
    classes = sparse[0].classes

    def padded(array: Ints, value: int) -> Ints:
        missing = ((0, 0), (0, width - array.shape[1]))
        return np.pad(array, missing, constant_values=value)

    return SparseCounts(
        np.concatenate([padded(part.labels, classes) for part in sparse]),
        np.concatenate([padded(part.counts, 0) for part in sparse]),
        classes,
    )


def row_width(histograms: Histograms) -> int:
    """Return how many counts a row stores: one per class if dense, or one per entry if sparse."""
    counts = histograms.counts if isinstance(histograms, SparseCounts) else histograms
    return counts.shape[-1]


def largest_two(histograms: Histograms) -> Counts:
    """Return the second largest and the largest count of each query, [queries, 2]."""
    counts = histograms.counts if isinstance(histograms, SparseCounts) else histograms
    if counts.shape[1] < 2:  # Each row has votes for at most one class.
        return np.pad(counts, ((0, 0), (1, 0)))
    return np.partition(counts, counts.shape[1] - 2, axis=1)[:, -2:].astype(np.int64)


def votes_for(histograms: Histograms, labels: Ints) -> Counts:
    """Return how many votes each query has for its class in `labels`, [queries].

    `labels` has the class for each query, [queries].
    """
    if not isinstance(histograms, SparseCounts):
        return np.take_along_axis(histograms, labels[:, None], axis=1)[:, 0].astype(np.int64)
    return np.where(histograms.labels == labels[:, None], histograms.counts, 0).sum(axis=1)


def winners(histograms: Histograms) -> Ints:
    """Return the class with the most votes on each query, [queries]; the first one in a tie."""
    if not isinstance(histograms, SparseCounts):
        return np.asarray(np.argmax(histograms, axis=1), dtype=np.int64)
    best = np.argmax(histograms.counts, axis=1)[:, None]
    found = np.take_along_axis(histograms.labels, best, axis=1)[:, 0]
    return np.where(histograms.voted > 0, found, 0)


CLASSES: Final = 2
"""If queries have several labels, each label has two classes: 1 for yes, and 0 for no."""


@dataclass(frozen=True)
class LabelSet:
    """How many labels each query has, and their names, if a query has several yes-or-no labels.

    The number of labels and the names of the labels are public.

    Row r of the votes is about label r % count of query r // count, and has the classes no and yes.

    Attributes:
        count: L, the number of labels, at least 1.
        names: the names of the labels, [count], all different; None if they have no names.
    """

    count: int = field(metadata={"name": "labels_per_query"})  # the name in documents
    names: tuple[str, ...] | None = field(
        default=None, metadata={"name": "label_names", "sparing": True}
    )

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ParameterError(f"there must be at least 1 label, got {self.count}")
        if self.names is not None and len(set(self.names)) != self.count:
            raise ParameterError(
                f"{len(self.names)} names for {self.count} labels: each label needs its own name"
            )


def rows_of(label_set: LabelSet | None) -> str:
    """Return what rows of votes are, in words: queries, or pairs of a query and a label."""
    return "queries" if label_set is None else "pairs of query and label"
