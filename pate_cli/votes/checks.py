"""Every rule an entry or a row of votes must obey; the first row that breaks one is named."""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import DENSE_CLASSES, Counts, Histograms, Ints, SparseCounts
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError

Ids: TypeAlias = Ints | tuple[str, ...]
"""Query ids of consecutive rows."""

ABSENT = -1
"""Stands for a vote that is not there; set only after negative numbers have been refused."""

LARGEST = 2**31 - 1
"""No ensemble has more teachers, so a larger entry or total is damage, not a vote count."""

SHARE_TOLERANCE = 1e-3
# Counts do not tell what they are of, and only where a teacher has one vote does epsilon hold.
PROBABILITIES: Final = (
    "Sums or averages of probabilities are no votes, rounded or not, for one teacher moves the "
    "count of every class: store what each teacher says (`layout` labels or scores)"
)
MISSING: Final = (
    "If teachers with one vote each may be missing, give `teachers` N; if these are rounded "
    "probabilities, one teacher moves the count of every class: store what each teacher says "
    "(`layout` labels or scores)"
)

MOST_BYTES = 1 << 32
"""Of who said what on which query, where all of that is held at once."""


@dataclass(frozen=True)
class Where:
    """Names a place in a file: `noun` is "column" where a query is a column of the file."""

    name: str
    noun: str = "row"

    def at(self, row: int) -> str:
        """Return the start of a message about this row (0-based, counted over all parts)."""
        return f"{self.name}: {self.noun} {row}"


def first_bad(bad: NDArray[np.bool_], first_row: int) -> int:
    """Return the file's number of the first row with a True; `bad` is [rows] or [rows, columns]."""
    rows = bad if bad.ndim == 1 else bad.any(axis=1)
    return first_row + int(np.argmax(rows))


def whole_numbers(values: NDArray[Any], first_row: int, where: Where) -> Ints:
    """Return a C-contiguous int64 copy of `values` [rows, columns], an integer or float array.

    It is always a copy, so what was checked cannot change under the reader in somebody's array.

    Raises:
        VoteError: for NaN, infinite, fractional, negative or absurdly large entries.
    """
    if values.size == 0:
        return np.zeros(values.shape, dtype=np.int64)
    if values.dtype.kind == "f":
        values = wide_enough(values)
        _check_floats(values, first_row, where)
    # In the file's own type: a large unsigned number would turn negative in the conversion.
    if values.max() > LARGEST:
        row = first_bad(values > LARGEST, first_row)
        raise VoteError(
            f"{where.at(row)} has a number above {LARGEST}, which is no vote; check the file"
        )
    if values.min() < 0:
        row = first_bad(values < 0, first_row)
        raise VoteError(
            f"{where.at(row)} has a negative number; votes are counted from 0. Where -1 is a "
            "class, as in -1 and 1, store 0 and 1; where it stands for no vote, give `teachers` N"
        )
    return np.array(values, dtype=np.int64, order="C", subok=False)


def wide_enough(values: NDArray[Any]) -> NDArray[Any]:
    """Return floats of at least 32 bits: in 16 the comparison with LARGEST overflows."""
    return values.astype(np.result_type(values, np.float32), copy=False)


def whole_labels(values: NDArray[Any], first_row: int, where: Where) -> Ints:
    """Return `values` as `whole_numbers` does, but ABSENT where they are -1 or NaN.

    Arrays and many writers have no other way to say that a teacher did not vote.
    """
    absent = _stands_for_none(values)
    if absent is None or not absent.any():
        return whole_numbers(values, first_row, where)
    whole = whole_numbers(np.where(absent, values.dtype.type(0), values), first_row, where)
    whole[absent] = ABSENT
    return whole


def _stands_for_none(values: NDArray[Any]) -> NDArray[np.bool_] | None:
    if values.dtype.kind == "f":
        return np.asarray(np.isnan(values) | (values == ABSENT))
    return np.asarray(values == ABSENT) if values.dtype.kind == "i" else None


def _check_floats(values: NDArray[Any], first_row: int, where: Where) -> None:
    finite = np.isfinite(values)
    if not finite.all():
        row = first_bad(~finite, first_row)
        raise VoteError(
            f"{where.at(row)} has NaN or infinity; repair the row. Where NaN stands for a missing "
            "label, give `teachers` N"
        )
    fractional = values != np.floor(values)
    if not fractional.any():
        return
    row = first_bad(fractional, first_row)
    with np.errstate(over="ignore"):
        totals = values.sum(axis=1, dtype=np.float64)
    if values.min() >= 0 and bool(np.all(np.abs(totals - 1.0) <= SHARE_TOLERANCE)):
        raise VoteError(
            f"{where.at(row)} sums to 1. If these are shares of teachers with one vote each, store "
            f"how many voted for each class. {PROBABILITIES}"
        )
    raise VoteError(
        f"{where.at(row)} has a fractional number; votes are whole counts. {PROBABILITIES}"
    )


def check_counts(
    values: Counts,
    first_row: int,
    where: Where,
    *,
    teachers: int,
    missing_allowed: bool,
) -> None:
    """Check that the totals of histograms `values` [rows, classes], all >= 0, are as promised.

    `teachers` is the total every row must have, or must not exceed when `missing_allowed`. A row
    without any vote is then as good as its neighbour with one: refusing it would tell them apart.

    Raises:
        VoteError: naming the first row that breaks a rule.
    """
    totals = np.einsum("ij->i", values)  # four times as fast as sum over a short last axis
    if not missing_allowed and not totals.all():
        row = first_bad(totals == 0, first_row)
        raise VoteError(f"{where.at(row)} has no votes at all. {MISSING}")
    absurd = totals > LARGEST
    if absurd.any():
        row = first_bad(absurd, first_row)
        raise VoteError(f"{where.at(row)} has a total above {LARGEST}; check the file")
    if missing_allowed:
        over = totals > teachers
        if over.any():
            row = first_bad(over, first_row)
            raise VoteError(f"{where.at(row)} has more votes than `teachers` {teachers}")
        return
    unequal = totals != teachers
    if unequal.any():
        row = first_bad(unequal, first_row)
        raise VoteError(
            f"{where.at(row)} is the first whose total is not the {teachers} votes of "
            f"{where.noun} 0. {MISSING}"
        )


def check_labels(values: Ints, first_row: int, where: Where, *, classes: int) -> None:
    """Check teacher labels `values` [rows, teachers]: below `classes`, or ABSENT.

    Raises:
        VoteError: naming the first row that breaks a rule.
    """
    if values.max(initial=ABSENT) >= classes:
        row = first_bad(values >= classes, first_row)
        raise VoteError(
            f"{where.at(row)} has a label outside 0..{classes - 1}; "
            "labels count from 0: check `classes` and the file"
        )


def histograms_of(values: Ints, classes: int, weights: Ints | None = None) -> Histograms:
    """As `tally`, in the form that so many classes have."""
    if classes <= DENSE_CLASSES:
        return tally(values, classes, weights)
    return SparseCounts.of_votes(values, classes, weights)


def tally(values: Ints, classes: int, weights: Ints | None = None) -> Counts:
    """Return the histograms [rows, classes] of checked labels [rows, teachers].

    One bincount over row·(classes + 1) + label + 1: column 0 collects the absent votes. With
    `weights` [teachers] a vote counts for that many; their total is far below 2^53, so that
    bincount's sums of floats are exact.
    """
    rows = values.shape[0]
    if weights is not None:
        keys = values + (np.arange(rows) * (classes + 1) + 1)[:, np.newaxis]
        each = np.broadcast_to(weights, values.shape).ravel()
        sums = np.bincount(keys.ravel(), each, minlength=rows * (classes + 1))
        votes = sums.reshape(rows, classes + 1)[:, 1:]
        return np.ascontiguousarray(votes.astype(np.int64))
    if values.size and values.min() >= 0:
        keys = values + (np.arange(rows) * classes)[:, np.newaxis]
        return np.bincount(keys.ravel(), minlength=rows * classes).reshape(rows, classes)
    keys = values + (np.arange(rows) * (classes + 1) + 1)[:, np.newaxis]
    bins = np.bincount(keys.ravel(), minlength=rows * (classes + 1))
    return np.ascontiguousarray(bins.reshape(rows, classes + 1)[:, 1:])
