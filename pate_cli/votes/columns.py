"""Which columns of a Parquet schema are votes, which is the query id, and what their names say."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pate_cli.errors import VoteError
from pate_cli.words import Layout

QUERY = "query_id"
TEACHER = "teacher_id"
LABEL = "label"
COUNT = "count"
LONG_COLUMNS = (QUERY, TEACHER, LABEL)
SPARSE_COLUMNS = (LABEL, COUNT)

# Columns that sit beside counts in real files and would be read as one more class.
_TRUTH = re.compile(
    r"(true|gold|ground|actual|y)?[ _-]?(labels?|truth|target|class|answer|y|true|gold)"
    r"([ _-](true|gold|id|name))?"
    r"|pred(iction|icted)?|argmax|plurality|winner|majority",
    re.IGNORECASE,
)
_OTHER = re.compile(
    r"__index_level_\d+__|unnamed: \d+|index|idx|id|.*_id|qid|row|query|teachers?|n_?teachers"
    r"|n_?votes|num_?(votes|teachers)|total|sum|weight|split|fold",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(.*?)(\d+)")
_COUNT_NAMES = re.compile(r"(class|count|vote)(es|s)?[ _-]?\d+", re.IGNORECASE)
_TEACHER_NAMES = re.compile(r"teacher[ _-]?\d+", re.IGNORECASE)
_COUNT_LISTS = {"counts", "histogram", "vote_counts"}
_LABEL_LISTS = {"labels", "teacher_labels"}


@dataclass(frozen=True)
class Columns:
    """The columns of a schema that matter: `votes`, an optional query id, and what the names say.

    is_list: one list column holds a whole row. layout: what the column names tell, if anything.
    """

    votes: tuple[str, ...]
    has_ids: bool
    is_list: bool
    layout: Layout | None

    @property
    def needed(self) -> list[str]:
        """Every column to read."""
        return [QUERY, *self.votes] if self.has_ids else list(self.votes)


def find_columns(schema: Any, name: str, layout: Layout | None) -> Columns:
    """Find the votes in `schema`; `layout` is what the user said.

    Raises:
        VoteError: no vote columns, more than one reading, or a type that cannot be votes.
    """
    names: list[str] = list(schema.names)
    twice = sorted({n for n in names if names.count(n) > 1})
    if twice:
        raise VoteError(f"{name}: two columns are named {twice[0]!r}")
    kinds = {field.name: _kind(field.type) for field in schema}
    if layout is Layout.LABELS_BY_TEACHER:
        raise VoteError(
            f"{name}: layout {layout} is for NPY files; in Parquet store one row per query, "
            "or query_id, teacher_id, label"
        )
    long = all(kinds.get(column, "list") != "list" for column in LONG_COLUMNS)
    if layout is Layout.LONG or (layout is None and long):
        return _long_columns(kinds, name)
    if QUERY in names and kinds[QUERY] not in ("integer", "text"):
        raise VoteError(f"{name}: column {QUERY!r} is {kinds[QUERY]}; use integers or strings")
    sparse = all(kinds.get(column, "").startswith("list") for column in SPARSE_COLUMNS)
    if layout is Layout.SPARSE or (layout is None and sparse):
        return _sparse_columns(schema, kinds, name)
    rest = [n for n in names if n != QUERY]
    lists = [n for n in rest if kinds[n].startswith("list")]
    if lists:
        return _list_columns(schema, rest, lists, kinds, name)
    return _wide_columns(rest, kinds, name, layout, has_ids=QUERY in names)


def _kind(kind: Any) -> str:
    """Return "integer", "float", "text", "list", or the type's own name for messages."""
    import pyarrow.types as t

    if t.is_dictionary(kind):
        return _kind(kind.value_type)
    if t.is_integer(kind):
        return "integer"
    if t.is_floating(kind):
        return "float"
    if t.is_string(kind) or t.is_large_string(kind):
        return "text"
    if t.is_list(kind) or t.is_large_list(kind) or t.is_fixed_size_list(kind):
        return "list" if _kind(kind.value_type) in ("integer", "float") else f"list of {kind}"
    return str(kind)


def _long_columns(kinds: dict[str, str], name: str) -> Columns:
    for column in LONG_COLUMNS:
        if column not in kinds:
            raise VoteError(
                f"{name}: layout {Layout.LONG} needs the columns query_id, teacher_id and label; "
                f"{column!r} is missing"
            )
        allowed = ("integer", "float") if column == LABEL else ("integer", "text")
        if kinds[column] not in allowed:
            wanted = "integers" if column == LABEL else "integers or strings"
            raise VoteError(f"{name}: column {column!r} is {kinds[column]}; use {wanted}")
    return Columns((TEACHER, LABEL), has_ids=True, is_list=False, layout=Layout.LONG)


def _sparse_columns(schema: Any, kinds: dict[str, str], name: str) -> Columns:
    for column in SPARSE_COLUMNS:
        if column not in kinds:
            raise VoteError(
                f"{name}: layout {Layout.SPARSE} needs the list columns label and count; "
                f"{column!r} is missing"
            )
        if kinds[column] != "list":
            raise VoteError(
                f"{name}: column {column!r} holds {schema.field(column).type}; use lists of "
                "integers"
            )
    for other, kind in kinds.items():
        if other not in (QUERY, *SPARSE_COLUMNS) and (kind != "text" or other == TEACHER):
            raise VoteError(
                f"{name}: column {other!r} beside 'label' and 'count' could be votes; drop it"
            )
    return Columns(
        SPARSE_COLUMNS, has_ids=QUERY in schema.names, is_list=True, layout=Layout.SPARSE
    )


def _list_columns(
    schema: Any, rest: list[str], lists: list[str], kinds: dict[str, str], name: str
) -> Columns:
    if len(lists) > 1:
        raise VoteError(
            f"{name}: the list columns {lists[0]!r} and {lists[1]!r} could both be the votes; "
            "keep one"
        )
    column = lists[0]
    if kinds[column] != "list":
        raise VoteError(
            f"{name}: column {column!r} holds {schema.field(column).type}; use lists of integers"
        )
    for other in rest:
        if other == TEACHER:
            raise VoteError(
                f"{name}: column {TEACHER!r} beside a list means one row per teacher; "
                "store one row per query, or query_id, teacher_id, label"
            )
        numeric = kinds[other] in ("integer", "float")
        if other != column and numeric and not _TRUTH.fullmatch(other):
            raise VoteError(
                f"{name}: columns {column!r} and {other!r} could both be votes; drop one"
            )
    said = None
    if column.lower() in _COUNT_LISTS:
        said = Layout.COUNTS
    elif column.lower() in _LABEL_LISTS:
        said = Layout.LABELS
    return Columns((column,), has_ids=QUERY in schema.names, is_list=True, layout=said)


def _wide_columns(
    rest: list[str], kinds: dict[str, str], name: str, layout: Layout | None, *, has_ids: bool
) -> Columns:
    if not rest:
        raise VoteError(f"{name}: there are no columns of votes")
    numbered = [n for n in rest if _NUMBERED.fullmatch(n)]
    for column in rest:
        if _TRUTH.fullmatch(column) or (len(numbered) > 1 and column not in numbered):
            raise VoteError(
                f"{name}: column {column!r} beside the votes could be an answer or a class; "
                "drop it, or rename it if it is a class"
            )
        if _OTHER.fullmatch(column):
            raise VoteError(
                f"{name}: column {column!r} does not look like a class; drop it "
                f"(or name it {QUERY!r}), or rename it if it is a class"
            )
        if kinds[column] not in ("integer", "float"):
            raise VoteError(
                f"{name}: column {column!r} is {kinds[column]}; votes are integers: "
                f"keep {QUERY!r} and one integer column per class"
            )
    said = None
    if all(_COUNT_NAMES.fullmatch(n) for n in rest):
        said = Layout.COUNTS
    elif all(_TEACHER_NAMES.fullmatch(n) for n in rest):
        said = Layout.LABELS
    if (layout or said) is not Layout.LABELS and len(numbered) == len(rest):
        _check_order(rest, name)
    return Columns(tuple(rest), has_ids=has_ids, is_list=False, layout=said)


def _check_order(columns: list[str], name: str) -> None:
    """Refuse numbered classes out of order: every label would silently be another class."""
    for position, column in enumerate(columns):
        match = _NUMBERED.fullmatch(column)
        if match is None or int(match.group(2)) != position:
            raise VoteError(
                f"{name}: column {column!r} stands at position {position}; numbered classes must "
                "be 0, 1, 2, ... in this order"
            )
