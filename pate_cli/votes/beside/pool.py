"""Clusters of queries that share one label: public, and so no vote decides what belongs together.

Within a cluster every teacher has one vote, and one answer labels all of its queries
(accounting/THEORY.md, section 21).
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import field
from os import PathLike
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, VoteError
from pate_cli.votes.beside.query_list import QueryList
from pate_cli.votes.beside.side_files import (
    SideRows,
    in_order,
    labels_in,
    read_side,
    understood,
)
from pate_cli.votes.checks import Ids
from pate_cli.votes.sources.mapped import in_memory

CLUSTER: Final = "cluster"
"""The column of a table that says which cluster a query is in."""

_NOUN: Final = "the pool"
_LARGEST: Final = 2**63 - 1


@dataclass(frozen=True, eq=False)
class Pool:
    """Which cluster each query is in, matched to votes by id or by order. Public.

    For where many queries are known to be alike: each teacher's most frequent label in a cluster is
    its one vote there, and one answer labels, and pays for, all of the cluster.

        >>> near = pate.Pool([0, 0, 1])
        >>> votes = [[0] * 9 + [1], [0] * 8 + [1] * 2, [1] * 10]
        >>> done = pate.aggregate(votes, "gnmax", layout="labels", teachers=10, classes=2, sigma2=1,
        ...                       pool=near, seed=1)
        >>> list(done.labels), done.report.queries
        ([0, 0, 1], 2)

    Attributes:
        clusters: [queries] whole numbers, at least 0, or texts.
        ids: the queries' ids, or None when rows match votes by their order.
        sha256: of the file it was read from, or, of several and of an array, of clusters and ids
            themselves; 64 hexadecimal digits.
        places: [queries] clusters by number, in order of their first query here.
        names: of the clusters, in that order.
    """

    clusters: Any
    ids: Sequence[Any] | NDArray[Any] | None = None
    sha256: str = ""
    places: Ints = field(init=False, repr=False)
    names: Ids = field(init=False, repr=False)
    _rows: SideRows = field(init=False, repr=False)

    def __post_init__(self) -> None:
        found, first, inverse = np.unique(
            _named(self.clusters), return_index=True, return_inverse=True
        )
        order = np.argsort(first)
        place = np.empty_like(order)
        place[order] = np.arange(order.size)
        numbers = found.dtype.kind != "U"
        names = found[order].astype(np.int64) if numbers else tuple(found[order].tolist())
        object.__setattr__(self, "places", place[inverse].astype(np.int64))
        object.__setattr__(self, "names", names)
        object.__setattr__(
            self, "_rows", SideRows("clusters of the pool", len(self.places), self.ids)
        )
        if not self.sha256:
            object.__setattr__(self, "sha256", self._content())

    def _content(self) -> str:
        """A digest of what belongs together, whatever the clusters are called."""
        whole = hashlib.sha256(np.ascontiguousarray(self.places, dtype="<i8").tobytes())
        if self.ids is not None:
            whole.update(repr(in_order(self.ids, _NOUN)).encode(errors="backslashreplace"))
        return whole.hexdigest()

    @property
    def listed(self) -> QueryList | None:
        """Its queries as a list of those that are asked; None where it does not name them."""
        if self.ids is None:
            return None
        ids = [query.item() if isinstance(query, np.generic) else query for query in self.ids]
        return QueryList(tuple(ids), digits=True, noun=_NOUN)

    def rows_of(self, ids: Any, first_row: int) -> Ints:
        """The rows here of the queries with these ids, or from `first_row` on.

        Raises:
            VoteError: a query that is in no cluster.
        """
        rows = self._rows.of(ids, first_row)
        if (rows < 0).any():
            row = first_row + int(np.argmax(rows < 0))
            raise VoteError(f"{_NOUN} has no cluster for the query of row {row} of the votes")
        return rows

    def refuse_others(self, rows: Ints) -> None:
        """VoteError for a query here that is none of those on these rows, which are the votes'."""
        other = np.bincount(rows, minlength=len(self.places)) == 0
        if other.any():
            raise VoteError(
                f"{_NOUN}: row {int(np.argmax(other))} is on a query that the votes do not have"
            )


@dataclass(frozen=True, eq=False)
class Members:
    """The queries of the votes, in their order, and the cluster each is in.

    Attributes:
        ids: of the queries.
        places: [queries] their clusters by number.
    """

    ids: Ids
    places: Ints


def _named(given: Any) -> NDArray[Any]:
    """What each query's cluster is called; ParameterError for what names none."""
    try:
        values = np.asarray(given)
    except (TypeError, ValueError):
        raise ParameterError(f"{_NOUN} must be an array, a cluster a query") from None
    if values.dtype.kind == "O" and all(isinstance(each, str) for each in values.flat):
        values = values.astype(np.str_)
    if values.dtype.kind not in "iuU" or values.ndim != 1 or not values.size:
        raise ParameterError(
            f"{_NOUN} must be whole numbers or texts [queries], the cluster of each, got "
            f"{values.dtype} of shape {values.shape}"
        )
    values = in_memory(values, _NOUN)
    if values.dtype.kind == "U":
        _refuse(values == "", "has no cluster")
        _refuse(np.array([not _is_utf8(text) for text in values]), "has a cluster that is no text")
        return values
    _refuse(
        values < 0,
        "has a cluster below 0, which stands for none; a query that is like no other has a cluster "
        "of its own",
    )
    _refuse(values > _LARGEST, "has a cluster above 2^63 - 1")
    return values


def _is_utf8(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _refuse(bad: NDArray[np.bool_], what: str) -> None:
    if bad.any():
        raise ParameterError(f"{_NOUN}: row {int(np.argmax(bad))} {what}")


def pool_of(
    pool: Pool | str | PathLike[str] | Any,
    *,
    id_column: str | None = None,
) -> Pool:
    """The pool that is given, or in a file of this name.

    Raises:
        VoteError: a file that cannot be read as such.
        ParameterError: nothing of the kind.
    """
    if isinstance(pool, str | PathLike):
        return _load(pool, id_column)
    return pool if isinstance(pool, Pool) else Pool(pool)


def _load(path: str | PathLike[str], id_column: str | None) -> Pool:
    """An array [queries], or a table with `cluster` and optionally `query_id`."""
    side = read_side(path, _NOUN, id_column, what=_NOUN)
    values = side.values
    if not isinstance(values, np.ndarray):
        with understood(f"{side.name}: cannot be read as {_NOUN}"):
            values = _cluster_column(values, side.name)
    try:
        return Pool(values, side.ids, side.sha256)
    except ParameterError as error:
        raise VoteError(f"{side.name}: {error}") from None


def _cluster_column(table: Any, source: str) -> NDArray[Any]:
    if CLUSTER not in table.column_names:
        raise VoteError(f"{source}: {_NOUN} needs a column named {CLUSTER}")
    column = table.column(CLUSTER)
    if column.null_count:
        row = int(np.argmax(column.is_null().to_numpy()))
        raise VoteError(f"{source}: {_NOUN}: row {row} has no cluster")
    return labels_in(column, -1)
