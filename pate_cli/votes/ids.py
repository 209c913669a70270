"""Query and teacher ids in Parquet: present, of one type, and where they must be, unique."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pate_cli.errors import VoteError
from pate_cli.votes.checks import first_bad
from pate_cli.votes.columns import QUERY
from pate_cli.votes.grid import Where

if TYPE_CHECKING:
    from pate_cli.votes.parquet import Parts

_IDS_AT_ONCE = 1 << 20
_LARGEST_ID = np.uint64(2**63 - 1)


def decoded(column: Any) -> Any:
    """Return an Arrow array without dictionary encoding."""
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def refuse_nulls(column: Any, name: str, first_row: int, where: Where) -> None:
    """Raise a VoteError at the first null of an Arrow column."""
    if column.null_count:
        row = first_bad(column.is_null().to_numpy(zero_copy_only=False), first_row)
        raise VoteError(f"{where.at(row)} has no {name}")


def all_ids(parts: Parts) -> Any:
    """Return every query id, int64 or string, after checking that none repeats.

    They are kept in memory, 8 bytes or a short string per query: a repeat may be anywhere.
    """
    pieces = []
    for row, batch in parts.batches(_IDS_AT_ONCE, [QUERY]):
        column = decoded(batch.column(0))
        refuse_nulls(column, QUERY, row, parts.where)
        pieces.append(id_type(column, row, parts.where))
    ids = pa.chunked_array(pieces).combine_chunks()
    if isinstance(ids, pa.ChunkedArray):  # older pyarrow returns one chunk, still chunked
        ids = ids.chunk(0)
    if pc.count_distinct(ids).as_py() != len(ids):
        row = _first_repeat(ids)
        raise VoteError(f"{parts.where.at(row)} repeats the {QUERY} of an earlier row")
    return ids


def _first_repeat(ids: Any) -> int:
    codes = ids.dictionary_encode().indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    seen_before = np.ones(len(codes), dtype=np.bool_)
    seen_before[first] = False
    return int(np.argmax(seen_before))


def id_type(column: Any, row: int, where: Where) -> Any:
    """Return ids without nulls as int64 or large_string, the same type in every part."""
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
        at = next((i for i, text in enumerate(raw) if not _is_text(text)), 0)
        raise VoteError(f"{where.at(row + at)} has an id that is not UTF-8 text") from error
    return column.cast(pa.large_string())


def _is_text(raw: bytes) -> bool:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return False
    return True
