"""Numbers and ids out of Arrow columns, with nulls and damage told by row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pate_cli.core.arrays import Ints
from pate_cli.core.arrow import compute, values_of
from pate_cli.core.errors import VoteError, shortened
from pate_cli.votes.checks import ABSENT, Ids, Where, first_bad, whole_labels, whole_numbers
from pate_cli.votes.columns import is_list, is_text
from pate_cli.votes.matching import Matching
from pate_cli.votes.unnamed import Said

_LARGEST_ID = np.uint64(2**63 - 1)
_LONGEST_ID = 1 << 16
"""Bytes: ids of all rows may be in memory, and go into what is released."""


def plain_type(kind: Any) -> Any:
    """An Arrow type without dictionaries and views, which few functions know, in lists neither."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if not is_list(kind):
        return kind
    inner = plain_type(kind.value_type)
    views = pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind)
    return pa.large_list(inner) if views or inner != kind.value_type else kind


def plain(column: Any) -> Any:
    """Return an Arrow array of `plain_type`."""
    kind = plain_type(column.type)
    if kind == column.type:
        return column
    if pa.types.is_dictionary(column.type):
        # As polars has them; nothing can be taken of views.
        values = plain(column.dictionary)
        return pa.DictionaryArray.from_arrays(column.indices, values).dictionary_decode()
    if not is_list(column.type):
        return column.cast(kind)
    lengths = compute().list_value_length(column).fill_null(0).to_numpy(zero_copy_only=False)
    ends = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    gone = column.is_null() if column.null_count else None
    return pa.LargeListArray.from_arrays(pa.array(ends), plain(column.flatten()), mask=gone)


def refuse_nulls(column: Any, name: str, first_row: int, where: Where) -> None:
    """Raise a VoteError at the first null of an Arrow column."""
    column = plain(column)
    if column.null_count:
        row = first_bad(column.is_null().to_numpy(zero_copy_only=False), first_row)
        raise VoteError(f"{where.at(row)} has no {shortened(name)}")


def numbers(column: Any) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return an Arrow array of numbers with its nulls as 0, and which were nulls, None for none."""
    column = plain(column)
    if pa.types.is_null(column.type):
        column = column.cast(pa.int8())
    elif pa.types.is_boolean(column.type) or is_text(column.type):
        column = _truths(column)
    elif pa.types.is_decimal(column.type):
        column = column.cast(pa.float64())
    if not column.null_count:
        return values_of(column), None
    return values_of(column.fill_null(0)), values_of(column.is_null())


def _truths(column: Any) -> Any:
    """Return 1 for true and 0 for false, whether they are that or texts that say so."""
    return column.cast(pa.bool_()).cast(pa.int8())


def in_words(column: Any) -> Any:
    """Return an Arrow column of texts; what has no type, or numbers among words, as texts."""
    return column if is_text(column.type) else plain(column).cast(pa.string())


def named(column: Any, matching: Matching) -> Any:
    """Return the classes of an Arrow column of texts, null where they are none."""
    if pa.types.is_dictionary(column.type):
        return named(column.dictionary, matching).take(column.indices)
    column = plain(column)
    if matching.plain:
        return compute().index_in(column, value_set=pa.array(matching.names, type=column.type))
    encoded = column.dictionary_encode()
    places = matching.places(_plain_texts(encoded.dictionary))
    return pa.array(places, mask=places == ABSENT).take(encoded.indices)


def texts_said(column: Any) -> Said:
    """Return the distinct texts of an Arrow column of them, and how many entries are each."""
    values, counts = compute().value_counts(plain(column)).flatten()
    return _plain_texts(values), counts.to_numpy()


def _plain_texts(column: Any) -> list[str | None]:
    """The texts of an Arrow column; of bytes that are no text what no name has."""
    raw = column.cast(pa.large_binary()).to_pylist()
    return [None if text is None else text.decode("utf-8", "surrogateescape") for text in raw]


def votes_of(
    column: Any, matching: Matching | None
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Return the labels of an Arrow column and where there are none, as `numbers` does.

    Texts are the classes that they match; one that matches none is not there.
    """
    if matching is None or not (is_text(column.type) or pa.types.is_boolean(column.type)):
        return numbers(column)
    return numbers(named(in_words(column), matching))


def from_columns(
    columns: Sequence[Any],
    row: int,
    absent_limit: int | None,
    where: Where,
    matching: Matching | None = None,
) -> Ints:
    """Return columns side by side, whole and ABSENT where they are null or no name.

    Raises:
        VoteError: an entry that is no vote, or a null while `absent_limit` is None.
    """
    pairs = [votes_of(column, matching) for column in columns]
    raw = np.column_stack([values for values, _ in pairs])
    if all(gaps is None for _, gaps in pairs):
        return (whole_numbers if absent_limit is None else whole_labels)(raw, row, where)
    none = np.zeros(len(raw), dtype=np.bool_)
    absent = np.column_stack([none if gaps is None else gaps for _, gaps in pairs])
    return _with_gaps(raw, absent, row, absent_limit, where)


def from_lists(
    column: Any,
    row: int,
    width: int,
    absent_limit: int | None,
    where: Where,
    matching: Matching | None = None,
    *,
    ragged: bool,
    placed: bool = False,
) -> Ints:
    """Return a list column as a rectangle, whole and ABSENT where an entry is not there.

    `placed`: an entry's place says whose it is, so that no list may be shorter: never `ragged`.

    Raises:
        VoteError: an entry that is no vote, a null while `absent_limit` is None, a list longer
            than that, or, unless `ragged`, one that has not `width` entries.
    """
    if column.null_count:
        gone = column.is_null().to_numpy(zero_copy_only=False)
        raise VoteError(f"{where.at(first_bad(gone, row))} has a null instead of a list")
    column = plain(column)
    lengths = compute().list_value_length(column).to_numpy(zero_copy_only=False)
    flat, gaps = votes_of(column.flatten(), matching)
    unusual = lengths != width
    if width and not unusual.any():
        raw = flat.reshape(-1, width)
        if gaps is None:
            return (whole_numbers if absent_limit is None else whole_labels)(raw, row, where)
        return _with_gaps(raw, gaps.reshape(-1, width), row, absent_limit, where)
    if absent_limit is None or not ragged:
        remedy = (
            "with `groups` keep an entry for each teacher, null where a vote is missing"
            if placed
            else "give `teachers` N if the file holds labels and teachers may be missing"
        )
        raise VoteError(
            f"{where.at(first_bad(unusual, row))} is the first whose list is not as long as "
            f"row 0's; {remedy}"
        )
    long = unusual & (lengths > absent_limit)
    if long.any():
        raise VoteError(
            f"{where.at(first_bad(long, row))} has more entries than `teachers` {absent_limit}"
        )
    filled = np.arange(max(int(lengths.max()), 1)) < lengths[:, np.newaxis]
    raw = np.zeros(filled.shape, dtype=flat.dtype)
    raw[filled] = flat
    absent = ~filled
    if gaps is not None:
        absent[filled] = gaps
    return _with_gaps(raw, absent, row, absent_limit, where)


def _with_gaps(
    raw: NDArray[Any],
    absent: NDArray[np.bool_],
    row: int,
    absent_limit: int | None,
    where: Where,
) -> Ints:
    if absent_limit is None:
        raise VoteError(
            f"{where.at(first_bad(absent, row))} has a null; fill it in, or give `teachers` N "
            "if the file holds labels and teachers may be missing"
        )
    values = whole_labels(raw, row, where)
    values[absent] = ABSENT
    return values


def ids_of(column: Any, name: str, row: int, where: Where) -> Any:
    """Return the ids of an Arrow column as int64 or large_string, the same type in every part.

    Raises:
        VoteError: a null, a number above 2^63 - 1, or bytes that are no text.
    """
    refuse_nulls(column, name, row, where)
    column = plain(column)
    if pa.types.is_decimal(column.type):
        return _whole_ids(column, row, where)
    if pa.types.is_integer(column.type):
        if column.type == pa.uint64():
            large = column.to_numpy(zero_copy_only=False) > _LARGEST_ID
            if large.any():
                raise VoteError(f"{where.at(first_bad(large, row))} has an id above 2^63 - 1")
        return column.cast(pa.int64())
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        raw = column.cast(pa.large_binary()).to_pylist()
        at = next((i for i, text in enumerate(raw) if not _decodes(text)), 0)
        raise VoteError(f"{where.at(row + at)} has an id that is not UTF-8 text") from error
    long = values_of(compute().greater(compute().binary_length(column), _LONGEST_ID))
    if long.any():
        raise VoteError(
            f"{where.at(first_bad(long, row))} has an id of more than {_LONGEST_ID >> 10} kB; "
            "use a number, or a hash of it"
        )
    return column.cast(pa.large_string())


def _whole_ids(column: Any, row: int, where: Where) -> Any:
    """Decimals without places behind the point, as databases call their integers, as int64."""
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid as error:
        ids = column.to_pylist()
        large = [not -(2**63) <= number < 2**63 for number in ids]
        raise VoteError(f"{where.at(row + large.index(True))} has an id above 2^63 - 1") from error


def _decodes(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True


def plain_ids(ids: Any) -> Ids:
    """Return what `ids_of` gives as a batch of votes carries it."""
    if pa.types.is_integer(ids.type):
        whole: Ints = ids.to_numpy(zero_copy_only=False)
        return whole
    return tuple(ids.to_pylist())
