"""True labels where they are known, public or their holder's: to tell how often votes are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import field
from os import PathLike
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, VoteError
from pate_cli.core.label_set import LabelSet
from pate_cli.votes.beside.side_files import (
    SideRows,
    as_whole,
    check_label_set,
    columns_of_labels,
    in_order,
    labels_in,
    of_pairs,
    read_side,
    side_by_side,
    understood,
)
from pate_cli.votes.checks import ABSENT
from pate_cli.votes.columns import LABEL
from pate_cli.votes.matching import Names, places_of_words
from pate_cli.votes.sources.mapped import in_memory

UNKNOWN = -1
"""The true label of a query nobody knows it of."""

_WORDS = "true labels: `words` must be a list of texts"

_UNNAMED = -2
"""The true label of a query whose text is no name of a class."""


@dataclass(frozen=True, eq=False)
class Truth:
    """True labels of the queries, matched to votes by id or by order.

    For `accuracy` and `tune`, where the labels of some queries are known. Give `ids` unless the
    rows are in the order of the votes.

        >>> import numpy as np
        >>> truth = pate.Truth(np.array([0, 1, 1]), ids=[11, 12, 13])
        >>> truth.of([13, 11], 0, classes=2)
        array([1, 0])

    Attributes:
        labels: [queries], classes from 0, or places in `words`; UNKNOWN where nothing is known.
        ids: the queries' ids, or None when rows match votes by their order.
        words: distinct texts, of which the labels are places; None for labels that are classes.
    """

    labels: Ints
    ids: Sequence[Any] | NDArray[Any] | None = None
    words: tuple[str, ...] | None = None
    sides: ClassVar[str] = "[queries]"
    _rows: SideRows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        labels = self.labels
        if not isinstance(labels, np.ndarray) or labels.dtype.kind not in "iub":
            raise ParameterError(f"true labels must be an array {self.sides} of whole numbers")
        if labels.ndim != 1 + self.sides.count(","):
            raise ParameterError(
                f"true labels must be an array {self.sides}, got shape {labels.shape}"
            )
        object.__setattr__(self, "labels", in_memory(labels, "true labels"))
        if self.words is not None:
            object.__setattr__(self, "words", tuple(in_order(self.words, _WORDS)))
        object.__setattr__(self, "_rows", SideRows("true labels", len(labels), self.ids))

    def named(self, names: Names | None) -> Truth:
        """With texts turned into the classes they match; labels that are classes stay as they are.

        Without names true and false are classes 1 and 0.

        Raises:
            VoteError: there are texts, and no names.
        """
        if self.words is None:
            return self
        found = places_of_words(self.words, names)
        if found is None:
            raise VoteError("true labels: they are texts; give `label_names`")
        places = np.array([_UNNAMED if place == ABSENT else place for place in found] + [UNKNOWN])
        # UNKNOWN is -1, and so finds the last.
        return Truth(places[self.labels].astype(np.int64), self.ids)

    def check_length(self, *, asked: int, rows: int, rows_per_query: int = 1) -> None:
        """Refuse labels by order that cannot be those of the votes.

        Args:
            asked: the first so many rows of the votes are looked at.
            rows: of the votes in all.
            rows_per_query: how many of them are one query.

        Raises:
            VoteError: more labels than the votes have rows, or fewer than are asked.
        """
        del rows_per_query
        if self.ids is None:
            _check_length(len(self.labels), asked, rows)

    def of(self, ids: Any, first_row: int, *, classes: int) -> Ints:
        """Labels of the queries with these ids, or from `first_row` on, UNKNOWN or below `classes`.

        A query whose id is not there is UNKNOWN.

        Raises:
            VoteError: fewer labels than queries, a label out of range or of no name, or texts that
                were not `named`.
        """
        if self.words is not None:
            return self.named(None).of(ids, first_row, classes=classes)
        rows = self._rows.of(ids, first_row)
        found = np.where(rows < 0, UNKNOWN, self.labels[rows])
        bad = (found < UNKNOWN) | (found >= classes)
        if bad.any():
            raise VoteError(
                f"true labels: the label of row {first_row + int(np.argmax(bad))} is not among the "
                f"{classes} classes of the votes"
            )
        return found


@dataclass(frozen=True, eq=False)
class PairTruth(Truth):
    """The truth where a query has several labels: for each, whether it is true of the query.

    For `accuracy` on votes in a multi-label layout, as Truth is for those with one label a query.

        >>> import numpy as np
        >>> truth = pate.PairTruth(np.array([[1, 0], [0, 1]]), ids=[11, 12])
        >>> truth.of([12, 12, 11, 11], 0, classes=2)
        array([0, 1, 1, 0])

    Attributes:
        labels: [queries, labels], 1 for yes, 0 for no, UNKNOWN where nothing is known.
        ids: the queries' ids, or None when rows match queries of the votes by their order.
    """

    sides: ClassVar[str] = "[queries, labels]"

    def check_length(self, *, asked: int, rows: int, rows_per_query: int = 1) -> None:
        """The same by queries."""
        if self.ids is None:
            _check_length(len(self.labels), asked // rows_per_query, rows // rows_per_query)

    def of(self, ids: Any, first_row: int, *, classes: int) -> Ints:
        """What is true of the pairs from `first_row` on, whose queries have these ids.

        Raises:
            VoteError: fewer queries than the votes have.
        """
        del classes
        return of_pairs(self._rows, self.labels, ids, first_row, UNKNOWN)


def _check_length(labels: int, asked: int, queries: int) -> None:
    if asked <= labels <= queries:
        return
    few = f", of which {asked} are asked" if asked < queries else ""
    raise VoteError(
        f"true labels: there are {labels}, the votes have {queries} queries{few}; give the truth "
        "of these votes, in their order, or a table with `query_id` and `label`"
    )


def truth_of(
    truth: Truth | str | PathLike[str],
    label_set: LabelSet | None,
    *,
    id_column: str | None = None,
) -> Truth:
    """The truth that is given, or in a file of this name, for votes on these labels.

    Raises:
        VoteError: a file that cannot be read as such, or the truth of something else.
    """
    if isinstance(truth, str | PathLike):
        return load_truth(truth, label_set, id_column=id_column)
    if not isinstance(truth, Truth):
        raise ParameterError(
            "the truth must be a file of true labels, Truth(labels) or PairTruth(labels), not "
            + type(truth).__name__
        )
    if isinstance(truth, PairTruth):
        if label_set is None:
            raise VoteError("the true labels are of pairs, the votes are on queries")
        check_label_set("the true labels", truth.labels.shape[1], None, label_set)
    elif label_set is not None and truth.ids is not None:
        raise VoteError(
            "the true labels are of queries, the votes are on pairs; give [queries, labels]"
        )
    return truth


def load_truth(
    path: str | PathLike[str],
    label_set: LabelSet | None = None,
    *,
    id_column: str | None = None,
) -> Truth:
    """Read labels: an array [queries], or a table with `label` and optionally `query_id`.

    Labels may be texts, which `Truth.named` turns into classes; an empty one is not known.
    label_set: the labels of the votes, where a query has several: an array [queries, labels], or a
    table with a column per label or one column of lists, of 1 for yes, 0 for no and -1 for unknown.

    Raises:
        VoteError: a file that cannot be read as such.
    """
    noun = "true labels"
    side = read_side(path, noun, id_column, what="the truth")
    name, values, ids = side.name, side.values, side.ids
    if label_set is not None:
        if not isinstance(values, np.ndarray):
            names = columns_of_labels(values)
            with understood(f"{name}: cannot be read as {noun}"):
                values = side_by_side(values, name)
            check_label_set(f"{name}: the true labels", values.shape[1], names, label_set)
        return _truth_of_sets(values, ids, label_set, name)
    if not isinstance(values, np.ndarray):
        with understood(f"{name}: cannot be read as {noun}"):
            values = _label_column(values, name)
    words = None
    if values.ndim == 1 and values.dtype.kind == "U":
        found, values = np.unique(values, return_inverse=True)
        values = np.where(found[values] == "", UNKNOWN, values)
        words = tuple(found.tolist())
    if values.ndim != 1 or values.dtype.kind not in "iu" or values.size == 0:
        raise VoteError(f"{name}: {noun} must be whole numbers or texts, one a query")
    if ids is not None and len(set(ids)) != len(ids):
        raise VoteError(f"{name}: a query id occurs twice")
    return Truth(as_whole(values), ids, words)


def _truth_of_sets(
    values: NDArray[Any], ids: tuple[Any, ...] | None, label_set: LabelSet, source: str
) -> Truth:
    """The truth of [queries, labels], as pairs."""
    numbers = values.dtype.kind in "iufb"
    if not numbers or values.ndim != 2 or values.shape[1] != label_set.count or not len(values):
        raise VoteError(
            f"{source}: true labels must be [queries, {label_set.count} labels], 1, 0, or -1 for "
            "unknown"
        )
    bad = ~np.isin(values, (UNKNOWN, 0, 1)).all(axis=1)
    if bad.any():
        raise VoteError(
            f"{source}: row {int(np.argmax(bad))} has a true label that is neither 1, 0 nor -1"
        )
    return PairTruth(values.astype(np.int64), ids)


def _label_column(table: Any, source: str) -> NDArray[Any]:
    if LABEL not in table.column_names:
        raise VoteError(f"{source}: true labels need a column named label")
    return labels_in(table.column(LABEL), UNKNOWN)
