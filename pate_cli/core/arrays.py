"""The arrays that functions take and return, by what is in them, and what their rows stand for."""

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
"""Vote histograms [queries, classes]. SECRET."""

Ids: TypeAlias = Ints | tuple[str, ...]
"""Query ids of consecutive rows: whole numbers or texts."""

LabelArray: TypeAlias = NDArray[np.int32]
"""One class a query, or NO_LABEL."""

NO_LABEL: Final = -1
"""Label of a query that was refused."""

SOURCES: Final = ("teachers", "student", "none", "not asked")
"""Who gave a label: the teachers' noisy vote, the student itself (Interactive), or nobody.

A query of source "none" was asked and not answered. One that was not asked stands after the rows
that a run was limited to: nothing of its votes was read, and nothing was spent on it.
"""

DENSE_CLASSES = 10_000
"""Histograms of more classes are kept by the classes that have votes, whatever file they are from.

The number of classes is public, so it may decide how noise is drawn; the votes may not.
"""


def each_once(values: NDArray[_Number], axis: int | None = None) -> NDArray[_Number]:
    """Return each value, or each slice along an axis, once and in ascending order.

    Where nothing else is asked of it, `np.unique` looks whether they are masked, and for that
    imports what takes a twentieth of a short run.
    """
    return np.unique(values, return_counts=True, axis=axis)[0]


# Numpy's own reductions take five times as long along rows, or over so few columns.
_SHORT: Final = 32


def row_max(values: Ints) -> Ints:
    """Return the largest number of each row, [rows]; there is at least one column."""
    if values.shape[1] > _SHORT:
        return np.asarray(values.max(axis=1))
    most = values[:, 0].copy()
    for column in values.T[1:]:
        np.maximum(most, column, out=most)
    return most


def column_ends(values: Ints) -> tuple[Ints, Ints]:
    """Return the smallest and the largest number of each column; there is at least one row."""
    if values.shape[1] > _SHORT:
        return values.min(axis=0), values.max(axis=0)
    low, high = zip(*((column.min(), column.max()) for column in values.T), strict=True)
    return np.array(low), np.array(high)


@dataclass(frozen=True, eq=False)
class SparseCounts:
    """Vote histograms by the classes that have votes. SECRET.

    The same rows cut elsewhere may be wider or narrower: entries beyond a row's own are padding.

    Attributes:
        labels: classes with votes, ascending in each row, then `classes` as padding; [queries,
            entries], int64, at least one entry and at most `classes`.
        counts: their votes, ≥ 1, and 0 as padding; of the same shape.
        classes: m, public.
    """

    labels: Ints
    counts: Counts
    classes: int

    @classmethod
    def of(cls, counts: Counts) -> Self:
        """Return dense histograms [queries, classes] by the classes that have votes."""
        rows, labels = np.nonzero(counts)
        return cls.of_entries(rows, labels, counts[rows, labels], counts.shape)

    @classmethod
    def of_votes(cls, votes: Ints, classes: int, weights: Ints | None = None) -> Self:
        """Count labels [queries, teachers] below `classes`; negative where there is no vote.

        With `weights` [teachers], ≥ 1, a vote counts for that many.
        """
        rows, at = np.nonzero(votes >= 0)
        each = np.ones_like(rows) if weights is None else weights[at]
        return cls.of_entries(rows, votes[rows, at], each, (len(votes), classes))

    @classmethod
    def of_entries(cls, rows: Ints, labels: Ints, votes: Ints, shape: tuple[int, ...]) -> Self:
        """Return the sums of votes by row and label, all [entries]; shape is (queries, classes)."""
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
        """Return these histograms with more votes by row and label, all [entries]."""
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
        """Return the j-th class without a vote of each row, [queries]; j is below `zeros`.

        Below the class ℓ that is the i-th with votes there are ℓ − i without: so many of those
        with votes stand before the j-th without as have ℓ − i ≤ j.
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
    """Return dense histograms of over DENSE_CLASSES classes as sparse ones, others as they are."""
    if isinstance(histograms, SparseCounts) or histograms.shape[1] <= DENSE_CLASSES:
        return histograms
    return SparseCounts.of(histograms)


def dense(histograms: Histograms) -> Counts:
    """Return histograms in the dense form [queries, classes], a count for every class."""
    return histograms.dense() if isinstance(histograms, SparseCounts) else histograms


def stacked(parts: Sequence[Histograms]) -> Histograms:
    """Return the rows of several histograms, at least one and all in the same form, in one."""
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
    """Return how many numbers a row takes: its classes, or the entries of sparse histograms."""
    counts = histograms.counts if isinstance(histograms, SparseCounts) else histograms
    return counts.shape[-1]


def largest_two(histograms: Histograms) -> Counts:
    """Return the second largest and the largest count of each query, [queries, 2]."""
    counts = histograms.counts if isinstance(histograms, SparseCounts) else histograms
    if counts.shape[1] < 2:  # entries of few sparse rows: some class has no vote
        return np.pad(counts, ((0, 0), (1, 0)))
    return np.partition(counts, counts.shape[1] - 2, axis=1)[:, -2:].astype(np.int64)


def votes_for(histograms: Histograms, labels: Ints) -> Counts:
    """Return how many votes the class in `labels` [queries] has on each query, [queries]."""
    if not isinstance(histograms, SparseCounts):
        return np.take_along_axis(histograms, labels[:, None], axis=1)[:, 0].astype(np.int64)
    return np.where(histograms.labels == labels[:, None], histograms.counts, 0).sum(axis=1)


def winners(histograms: Histograms) -> Ints:
    """Return the class with most votes on each query, the first of several, [queries]."""
    if not isinstance(histograms, SparseCounts):
        return np.asarray(np.argmax(histograms, axis=1), dtype=np.int64)
    best = np.argmax(histograms.counts, axis=1)[:, None]
    found = np.take_along_axis(histograms.labels, best, axis=1)[:, 0]
    return np.where(histograms.voted > 0, found, 0)


CLASSES: Final = 2
"""The classes of a label: 0 where it is not given to the query, and 1 where it is."""


@dataclass(frozen=True)
class LabelSet:
    """The labels of every query, each of them given or not; all of it public.

    Row r of a file is label r % count of query r // count, and its classes are no and yes.

    Attributes:
        count: L, how many labels there are, at least 1.
        names: of the labels, [count], each once; None where they have none but their numbers.
    """

    count: int = field(metadata={"name": "labels_per_query"})  # as documents call it
    names: tuple[str, ...] | None = field(
        default=None, metadata={"name": "label_names", "sparing": True}
    )

    def __post_init__(self) -> None:
        if self.count < 1:
            raise ParameterError(f"there must be at least 1 label, got {self.count}")
        if self.names is not None and len(set(self.names)) != self.count:
            raise ParameterError(
                f"{len(self.names)} names for {self.count} labels: each label needs one of its own"
            )

    def decided(self, labels: NDArray[Any]) -> NDArray[np.int8]:
        """Return labels of whole queries by query: 1, 0 or NO_LABEL; [queries, count]."""
        return labels.reshape(-1, self.count).astype(np.int8)


def rows_of(label_set: LabelSet | None) -> str:
    """Return a word for rows of votes: queries, or pairs of a query and a label."""
    return "queries" if label_set is None else "pairs of query and label"
