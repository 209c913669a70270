"""The list of the queries that are asked: public, so that no vote decides which there are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from os import PathLike
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.votes.beside.side_files import (
    SideRows,
    in_order,
    read_side,
)
from pate_cli.votes.checks import Ids
from pate_cli.votes.columns import QUERY

_LARGEST_ID = 2**63 - 1
_DIGITS = re.compile(r"0|-?[1-9][0-9]{0,18}")


@dataclass(frozen=True, eq=False)
class QueryList:
    """The queries that are asked, in order: public, and so no vote decides which there are.

    Attributes:
        ids: numbers below 2^63 or texts, each once, at least one: int64 [queries], or a tuple.
        digits: numbers may stand as text, for CSV does not tell one from the other.
        noun: what messages call it.
    """

    ids: Ids
    digits: bool = False
    noun: str = "the list of queries"

    def __post_init__(self) -> None:
        ids: list[Any] = self.ids.tolist() if isinstance(self.ids, np.ndarray) else [*self.ids]
        kinds = {type(query) for query in ids}
        if kinds not in ({int}, {str}):
            raise VoteError(f"{self.noun} must hold whole numbers, or texts, one a row")
        if kinds == {int}:
            large = [not -_LARGEST_ID - 1 <= query <= _LARGEST_ID for query in ids]
            if any(large):
                raise VoteError(f"{self.noun}: row {large.index(True)} is above 2^63 - 1")
            object.__setattr__(self, "ids", np.array(ids, dtype=np.int64))
        # Each id once: refuses the first that occurs again.
        SideRows(self.noun, len(ids), ids)

    def named_by(self, *, numbers: bool) -> Ids:
        """The ids as the votes name queries, by numbers or by texts.

        Raises:
            VoteError: the list names them otherwise.
        """
        if numbers == isinstance(self.ids, np.ndarray):
            return self.ids
        if not (numbers and self.digits):
            here, there = ("numbers", "texts") if numbers else ("texts", "numbers")
            raise VoteError(f"the votes name queries by {here}, {self.noun} by {there}")
        texts = list(self.ids)
        bad = [not _DIGITS.fullmatch(text) or abs(int(text)) > _LARGEST_ID for text in texts]
        if any(bad):
            raise VoteError(
                f"{self.noun}: row {bad.index(True)} is no number, but the votes name "
                "queries by numbers"
            )
        return np.array([int(text) for text in texts], dtype=np.int64)


Queries: TypeAlias = QueryList | Sequence[Any] | NDArray[Any] | str | PathLike[str]
"""The ids of the queries, in order, or a file of them."""


def query_list(
    given: Queries,
    *,
    id_column: str | None = None,
) -> QueryList:
    """The list of queries that is given, or that is in a file of this name.

    `id_column` may stand for query_id in a file, here and below.

    Raises:
        VoteError: a file that cannot be read, an id that is neither number nor text, or one twice.
    """
    if isinstance(given, QueryList):
        return given
    if isinstance(given, str | PathLike):
        return load_queries(given, id_column=id_column)
    ids = in_order(given, "`queries` must be a list of ids, or a file of them")
    whole: list[Any] = [int(query) if isinstance(query, np.integer) else query for query in ids]
    return QueryList(tuple(whole))


def load_queries(path: str | PathLike[str], *, id_column: str | None = None) -> QueryList:
    """Read ids: an array [queries], or a table with `query_id`, whose other columns do not matter.

    Raises:
        VoteError: a file that cannot be read as such.
    """
    side = read_side(path, "a list of queries", id_column, what="the list of queries")
    name, ids = side.name, side.ids
    if ids is None:
        values = side.values
        if not isinstance(values, np.ndarray):
            raise VoteError(f"{name}: a list of queries needs a column named {QUERY}")
        if values.ndim != 1 or values.dtype.kind not in "iuU":
            raise VoteError(f"{name}: a list of queries must be whole numbers or texts, one a row")
        ids = tuple(values.tolist())
    try:
        return QueryList(ids, digits=side.digits)
    except VoteError as error:
        raise VoteError(f"{name}: {error}") from None
