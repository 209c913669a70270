"""Which columns of a table are votes, which is the query id, and what their names say."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError, quoted, shortened
from pate_cli.core.words import Layout

QUERY = "query_id"
TEACHER = "teacher_id"
LABEL = "label"
COUNT = "count"
LONG_COLUMNS = (QUERY, TEACHER, LABEL)
SPARSE_COLUMNS = (LABEL, COUNT)
MOST_COLUMNS = 1 << 16
"""A table has no more: each column costs a few kB to open, and a buffer to read. Votes of more
classes or teachers are a list column, or an array; of very many classes, sparse lists."""
FROM_TEXT = "pate:from_text"
"""In the metadata of a column of numbers that were found as such in a file of text."""
NOTHING = "nothing"
"""The family of a column without any vote, which goes with every other."""
ODD_ROW = "pate:odd_row"
"""In the metadata of a column of text that holds numbers, too: the first row without one."""
UNCLEAR_ROW = "pate:unclear_row"
"""In the metadata of a column of text whose numbers have marks that may stand before decimals or
between thousands: the first row with one."""
TRUTHS = "pate:truths"
"""In the metadata of a column of text that says true or false throughout."""

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
_INDEX = re.compile(r"__index_level_\d+__|unnamed: 0|index", re.IGNORECASE)
# Columns that sit beside votes in words: what was asked, not an answer to it.
_CONTENT = re.compile(
    r"texts?|prompts?|questions?|query|queries|sentences?|documents?|content|inputs?|title|body"
    r"|headline|description|url|file(name)?|path|image|comments?|notes?|reason(ing)?|source",
    re.IGNORECASE,
)
_NUMBERED = re.compile(r"(.*?)(\d+)")
_COUNT_NAMES = re.compile(r"(class|count|vote)(es|s)?[ _-]?\d+", re.IGNORECASE)
_TEACHER_NAMES = re.compile(r"teacher[ _-]?\d+", re.IGNORECASE)
_COUNT_LISTS = {"counts", "histogram", "vote_counts"}
_LABEL_LISTS = {"labels", "teacher_labels"}


def could_be_votes(name: str) -> bool:
    """Whether a column of this name holds votes, whatever else there is."""
    return (
        name.lower() in _COUNT_LISTS | _LABEL_LISTS
        or name in (*LONG_COLUMNS, *SPARSE_COLUMNS)
        or any(names.fullmatch(name) for names in (_COUNT_NAMES, _TEACHER_NAMES))
    )


@dataclass(frozen=True)
class Columns:
    """The columns of a schema that matter: `votes`, an optional query id, and what the names say.

    is_list: one list column holds a whole row. layout: what names and types tell, if anything.
    texts: votes are names of classes. by_teacher: a column is a teacher's, as its name says.
    classes: what the columns call the classes, should they be counts.
    query: the column of the query id.
    truths: votes are true or false, which are classes 1 and 0.
    digits: votes are numbers that a file of text was found to hold.
    """

    votes: tuple[str, ...]
    has_ids: bool
    is_list: bool
    layout: Layout | None
    texts: bool = False
    by_teacher: bool = False
    classes: tuple[str, ...] | None = None
    query: str = QUERY
    truths: bool = False
    digits: bool = field(default=False, compare=False)

    @property
    def needed(self) -> list[str]:
        """Every column to read."""
        return [self.query, *self.votes] if self.has_ids else list(self.votes)

    @property
    def rows_are_queries(self) -> bool:
        """Whether names leave no doubt that a row is a query, and no teacher."""
        return self.has_ids or self.by_teacher

    @property
    def entry_names(self) -> tuple[str, ...] | None:
        """What the entries of a row are called; None in a list, which has places only."""
        return None if self.is_list else self.votes


def check_columns(count: int, name: str) -> None:
    """VoteError for a table of more than MOST_COLUMNS columns."""
    if count > MOST_COLUMNS:
        raise VoteError(
            f"{name}: has more than {MOST_COLUMNS} columns; store the votes of a row in one list "
            "column, or in an NPY array"
        )


def find_columns(
    schema: Any,
    name: str,
    layout: Layout | None,
    label_names: Sequence[str] | None = None,
    *,
    id_column: str | None = None,
    any_name: bool = False,
) -> Columns:
    """Find the votes in `schema`; the others but `name` are what the user said.

    Columns of counts that are called as the classes are come in the order of `label_names`.
    `id_column` stands for query_id, and must be there. With `any_name` votes may be texts, and
    numbers that stand in a file of text as labels are: one vote beside them may be no number.

    Raises:
        VoteError: no vote columns, more than one reading, or a type that cannot be votes.
    """
    names: list[str] = list(schema.names)
    check_columns(len(names), name)
    twice = [column for column, times in Counter(names).items() if times > 1]
    if twice:
        raise VoteError(f"{name}: two columns are named {quoted(min(twice))}")
    named = label_names is not None or any_name
    kinds = {it.name: _kind_of_votes(it, named=named) for it in schema}
    query = QUERY if id_column is None else id_column
    if query not in names and id_column is not None:
        raise VoteError(f"{name}: there is no column {quoted(query)}, which `id_column` names")
    if layout is Layout.LABELS_BY_TEACHER:
        raise VoteError(
            f"{name}: layout {layout} is for NPY files; in a table store one row per query, "
            "or query_id, teacher_id, label"
        )
    if layout is not None and layout.never_inferred and layout is not Layout.MULTILABEL_COUNTS:
        raise VoteError(
            f"{name}: layout {layout} is for NPY files and arrays, which have three sides"
        )
    long = (query, TEACHER, LABEL)
    is_long = all(kinds.get(column, "list") != "list" for column in long)
    if layout is Layout.LONG or (layout is None and is_long):
        if any_name and LABEL in kinds and _could_be_text(schema, LABEL):
            kinds[LABEL] = "text"
        if LABEL in kinds and not named:
            _refuse_unclear(schema.field(LABEL), name)
        return _long_columns(kinds, name, long, named=named)
    if query in names and kinds[query] not in ("integer", "text"):
        raise VoteError(
            f"{name}: column {quoted(query)} is {kinds[query]}; use integers or strings"
        )
    sparse = all(kinds.get(column, "").startswith("list") for column in SPARSE_COLUMNS)
    if layout is Layout.SPARSE or (layout is None and sparse):
        return _sparse_columns(schema, kinds, name, query)
    rest = [n for n in names if n != query]
    lists = [n for n in rest if kinds[n].startswith("list")]
    if lists:
        return _list_columns(schema, rest, lists, kinds, name, layout, query, named=named)
    numeric = all(kinds[column] in ("integer", "float") for column in rest)
    by_name = label_names is not None and set(rest) == set(label_names) and numeric
    if by_name and layout is not Layout.LABELS:
        ordered = tuple(label_names or ())
        return Columns(
            ordered,
            query in names,
            is_list=False,
            layout=Layout.COUNTS,
            classes=ordered,
            query=query,
        )
    return _wide_columns(schema, rest, kinds, name, layout, query, named=named, any_name=any_name)


def is_text(kind: Any) -> bool:
    """Return whether an Arrow type is text, or a dictionary of texts."""
    import pyarrow.types as t

    if t.is_dictionary(kind):
        return is_text(kind.value_type)
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def _could_be_text(schema: Any, column: str) -> bool:
    """Whether a column of numbers might have been one of text, but for the votes."""
    import pyarrow.types as t

    said = schema.field(column)
    return t.is_null(said.type) or FROM_TEXT.encode() in (said.metadata or {})


def is_list(kind: Any) -> bool:
    """Return whether an Arrow type is one of lists, however they lie."""
    import pyarrow.types as t

    return bool(
        t.is_list(kind)
        or t.is_large_list(kind)
        or t.is_fixed_size_list(kind)
        or t.is_list_view(kind)
        or t.is_large_list_view(kind)
    )


def _kind_of_votes(said: Any, *, named: bool) -> str:
    """The kind of a column; true and false are words where classes have names."""
    kind = _kind(said.type)
    if kind == "text" and TRUTHS.encode() in (said.metadata or {}):
        kind = "bool"
    return {"bool": "text", "list of bool": "list of text"}.get(kind, kind) if named else kind


def _kind(kind: Any) -> str:
    """Return "integer", "float", "text", "bool", these in a list, or what messages call it.

    Of numbers a list is "list" alone. Decimals are what they would be without their type.
    """
    import pyarrow.types as t

    if t.is_dictionary(kind):
        return _kind(kind.value_type)
    if t.is_integer(kind) or (t.is_decimal(kind) and kind.scale == 0):
        return "integer"
    if t.is_floating(kind) or t.is_decimal(kind):
        return "float"
    if is_text(kind):
        return "text"
    if is_list(kind):
        inner = _kind(kind.value_type)
        # Lists that are all empty have no type; with one vote in them they would.
        words = {"text": "list of text", "bool": "list of bool"}
        return ({"integer": "list", "float": "list", "null": "list"} | words).get(
            inner, shortened(f"list of {kind}")
        )
    return shortened(str(kind))


def family(kind: Any) -> str:
    """Return what must agree between parts: widths of numbers and offsets need not.

    Nor need all be integers: some writers turn a column of integers into floats where a part lacks
    one vote, and one missing vote must not decide whether a folder can be read.
    """
    import pyarrow.types as t

    if t.is_dictionary(kind):
        return family(kind.value_type)
    if t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind):
        return "number"
    if t.is_boolean(kind):
        return "truth"
    if is_text(kind):
        return "text"
    if t.is_null(kind):
        return NOTHING
    return f"list of {family(kind.value_type)}"


def _shown_type(schema: Any, column: str) -> str:
    """The type of a column for a message: that of nested ones has every name within it."""
    return shortened(str(schema.field(column).type))


def _long_columns(
    kinds: dict[str, str], name: str, long: tuple[str, ...], *, named: bool
) -> Columns:
    for column in long:
        if column not in kinds:
            raise VoteError(
                f"{name}: layout {Layout.LONG} needs the columns {long[0]}, teacher_id and label; "
                f"{quoted(column)} is missing"
            )
        texts = column == LABEL and named and kinds[column] == "text"
        allowed = ("integer", "float", "bool") if column == LABEL else ("integer", "text")
        if kinds[column] not in allowed and not texts:
            wanted = "integers, or give `label_names`" if column == LABEL else "integers or strings"
            raise VoteError(f"{name}: column {quoted(column)} is {kinds[column]}; use {wanted}")
    return Columns(
        (TEACHER, LABEL),
        has_ids=True,
        is_list=False,
        layout=Layout.LONG,
        texts=kinds[LABEL] == "text",
        query=long[0],
        truths=kinds[LABEL] == "bool",
    )


def _sparse_columns(schema: Any, kinds: dict[str, str], name: str, query: str) -> Columns:
    for column in SPARSE_COLUMNS:
        if column not in kinds:
            raise VoteError(
                f"{name}: layout {Layout.SPARSE} needs the list columns label and count; "
                f"{quoted(column)} is missing"
            )
        if kinds[column] != "list":
            raise VoteError(
                f"{name}: column {quoted(column)} holds {_shown_type(schema, column)}; use lists "
                "of integers"
            )
    for other, kind in kinds.items():
        if other not in (query, *SPARSE_COLUMNS) and (kind != "text" or other == TEACHER):
            raise VoteError(
                f"{name}: column {quoted(other)} beside 'label' and 'count' could be votes; drop it"
            )
    return Columns(
        SPARSE_COLUMNS,
        has_ids=query in schema.names,
        is_list=True,
        layout=Layout.SPARSE,
        query=query,
    )


def _remedy(column: str, *, has_ids: bool) -> str:
    """What may be done about a column that is none of votes; the file's ids are there or not."""
    index = " (index=False writes a data frame without it)" if _INDEX.fullmatch(column) else ""
    drop = f"drop it{index}"
    if has_ids:
        return drop
    return f"{drop}, give `id_column` {quoted(column)} if it names the queries"


def _list_columns(
    schema: Any,
    rest: list[str],
    lists: list[str],
    kinds: dict[str, str],
    name: str,
    layout: Layout | None,
    query: str,
    *,
    named: bool,
) -> Columns:
    has_ids = query in schema.names
    if len(lists) > 1:
        raise VoteError(
            f"{name}: the list columns {quoted(lists[0])} and {quoted(lists[1])} could both be the "
            "votes; keep one"
        )
    column = lists[0]
    texts, truths = kinds[column] == "list of text", kinds[column] == "list of bool"
    if texts:
        _check_texts(f"column {quoted(column)} holds texts", name, layout, named=named)
    elif truths:
        _check_truths(column, name, layout)
    elif kinds[column] != "list":
        raise VoteError(
            f"{name}: column {quoted(column)} holds {_shown_type(schema, column)}; use lists of "
            "integers"
        )
    for other in rest:
        if other == TEACHER:
            raise VoteError(
                f"{name}: column {quoted(TEACHER)} beside a list means one row per teacher; "
                "store one row per query, or query_id, teacher_id, label"
            )
        numeric = kinds[other] in ("integer", "float")
        if other != column and numeric and not _TRUTH.fullmatch(other):
            raise VoteError(
                f"{name}: columns {quoted(column)} and {quoted(other)} could both be votes; "
                + _remedy(other, has_ids=has_ids)
            )
    said = None
    if column.lower() in _COUNT_LISTS:
        said = Layout.COUNTS
    elif column.lower() in _LABEL_LISTS:
        said = Layout.LABELS
    if texts or truths:
        said = Layout.LABELS
    return Columns(
        (column,),
        has_ids,
        is_list=True,
        layout=said,
        texts=texts,
        query=query,
        truths=truths,
    )


def _check_texts(
    what: str, name: str, layout: Layout | None, *, named: bool, remedy: str = ""
) -> None:
    if layout is Layout.COUNTS:
        raise VoteError(f"{name}: {what}; counts are integers")
    if not named:
        raise VoteError(f"{name}: {what}; if they are votes, give `label_names`{remedy}")


def _check_truths(column: str, name: str, layout: Layout | None) -> None:
    """VoteError for true and false under a layout of numbers."""
    if layout not in (None, Layout.LABELS):
        raise VoteError(
            f"{name}: column {quoted(column)} says true or false; under layout {layout} votes are "
            "integers"
        )


def _refuse_unclear(said: Any, name: str) -> None:
    """VoteError for a column whose numbers can be read in two ways."""
    row = (said.metadata or {}).get(UNCLEAR_ROW.encode(), b"")
    if row.isdigit():  # a file may come with anything under that name
        raise VoteError(
            f"{name}: row {shortened(row.decode())} is the first of its file where the mark in a "
            f"number of column {quoted(said.name)} may stand before decimals or between thousands; "
            "write whole numbers without it"
        )


def _wide_columns(
    schema: Any,
    rest: list[str],
    kinds: dict[str, str],
    name: str,
    layout: Layout | None,
    query: str,
    *,
    named: bool,
    any_name: bool,
) -> Columns:
    has_ids = query in schema.names
    if not rest:
        raise VoteError(f"{name}: there are no columns of votes")
    by_teacher = all(_TEACHER_NAMES.fullmatch(n) for n in rest)
    digits = all(_could_be_text(schema, column) for column in rest)
    texts = named and any(kinds[column] == "text" for column in rest)
    if any_name and digits and (layout is Layout.LABELS or (layout is None and by_teacher)):
        texts = True
    # Names of labels go with what is said of them, so they may be any, in any order.
    free = layout is Layout.MULTILABEL_COUNTS
    numbered = set() if free else {n for n in rest if _NUMBERED.fullmatch(n)}
    only_texts = {"text"} <= set(map(kinds.get, rest)) <= {"text", "null"}
    truths = {"bool"} <= set(map(kinds.get, rest)) <= {"bool", "null"}
    for column in rest:
        if _TRUTH.fullmatch(column) or (len(numbered) > 1 and column not in numbered):
            raise VoteError(
                f"{name}: column {quoted(column)} beside the votes could be an answer or a class; "
                f"{_remedy(column, has_ids=has_ids)}, or rename it if it is a class"
            )
        if _OTHER.fullmatch(column):
            raise VoteError(
                f"{name}: column {quoted(column)} does not look like a class; "
                f"{_remedy(column, has_ids=has_ids)}, or rename it if it is a class"
            )
        if not named:
            _refuse_unclear(schema.field(column), name)
        odd = (schema.field(column).metadata or {}).get(ODD_ROW.encode(), b"")
        if odd.isdigit() and not named:  # a file may come with anything under that name
            raise VoteError(
                f"{name}: row {shortened(odd.decode())} is the first of its file where column "
                f"{quoted(column)} holds no number; votes are integers, or texts with `label_names`"
            )
        if texts and _CONTENT.fullmatch(column):
            raise VoteError(
                f"{name}: column {quoted(column)} does not look like votes; "
                f"{_remedy(column, has_ids=has_ids)}, or rename it if it is a teacher"
            )
        # A teacher who never voted may leave a column that has no type, and one who gave numbers
        # for words, of which there are none, a column of numbers.
        kind = "text" if texts and _could_be_text(schema, column) else kinds[column]
        if only_texts:
            plain = has_ids or _TEACHER_NAMES.fullmatch(column)
            hint = "" if plain else f"; if it names the queries, `id_column` {quoted(column)}"
            _check_texts(f"column {quoted(column)} is text", name, layout, named=named, remedy=hint)
        if truths:
            _check_truths(column, name, layout)
        elif kind not in (("text",) if texts else ("integer", "float", "null")):
            raise VoteError(
                f"{name}: column {quoted(column)} is {kind}; "
                + (
                    "the votes beside it are texts: drop it"
                    if texts
                    else f"votes are integers: {_remedy(column, has_ids=has_ids)}, and keep one "
                    "integer column per class"
                )
            )
    said = None
    if texts or truths or by_teacher:
        said = Layout.LABELS
    elif all(_COUNT_NAMES.fullmatch(n) for n in rest):
        said = Layout.COUNTS
    if (layout or said) is not Layout.LABELS and len(numbered) == len(rest):
        _check_order(rest, name)
    named_classes = len(numbered) < len(rest) and all(rest)
    return Columns(
        tuple(rest),
        has_ids,
        is_list=False,
        layout=said,
        texts=texts,
        by_teacher=by_teacher,
        classes=tuple(rest) if named_classes else None,
        query=query,
        truths=truths,
        digits=digits,
    )


def _check_order(columns: list[str], name: str) -> None:
    """Refuse numbered classes out of order: every label would silently be another class."""
    for position, column in enumerate(columns):
        match = _NUMBERED.fullmatch(column)
        if match is None or int(match.group(2)) != position:
            raise VoteError(
                f"{name}: column {quoted(column)} stands at position {position}; numbered classes "
                "must be 0, 1, 2, ... in this order"
            )
