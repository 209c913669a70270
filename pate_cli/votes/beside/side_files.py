"""Files beside the votes: predictions of a student, true labels where known, a list of queries.

All are public, small enough to be held in memory, and come in every format that votes come in: an
array whose rows follow the votes, or a table that may name its rows in a column: the one that names
them in the votes, or `query_id`.
"""

from __future__ import annotations

import contextlib
import os
import tokenize
import warnings
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, VoteError, quoted, shortened
from pate_cli.core.label_set import LabelSet
from pate_cli.files.beside import has_no_name
from pate_cli.files.digest import digest_of
from pate_cli.votes.checks import LARGEST
from pate_cli.votes.columns import QUERY, is_text
from pate_cli.votes.sources.files import Located, locate
from pate_cli.votes.sources.formats import Format, SourceFile
from pate_cli.votes.sources.parquet_guard import chunks_of, size_of
from pate_cli.votes.sources.unchanged import UNMARKED, Marked

MOST_BYTES = 1 << 32
"""Of a side file, each number counted as 8 of them."""

# What numpy and pyarrow raise over damaged files; nearly all of pyarrow's errors derive from these.
_DAMAGE = (
    ArithmeticError,
    EOFError,
    LookupError,
    MemoryError,
    OSError,
    RuntimeError,  # RecursionError and NotImplementedError, too
    SyntaxError,
    TypeError,
    ValueError,
    tokenize.TokenError,
)


@dataclass(frozen=True, eq=False)
class SideRows:
    """Which row of a side file belongs to a query: by its id, or by order where the file has none.

    CSV does not tell numbers from text, so an id that is a number is found under its digits, too.
    """

    noun: str
    count: int
    ids: Sequence[Any] | NDArray[Any] | None
    _places: dict[Any, int] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.ids is None:
            return
        ids = in_order(self.ids, f"{self.noun}: `ids` must be a list of numbers or texts")
        if len(ids) != self.count:
            raise VoteError(f"{self.noun}: {len(ids)} query ids for {self.count} rows")
        for row, query in enumerate(ids):
            if not isinstance(query, Hashable):
                raise ParameterError(f"{self.noun}: the query id of row {row} is no number or text")
            first = self._places.setdefault(query, row)
            if first != row:
                raise VoteError(
                    f"{self.noun}: the query id of row {row} is that of row {first}, too"
                )

    def of(self, ids: Any, first_row: int) -> Ints:
        """Return the rows of the queries with these ids, or from `first_row` on; -1 for none.

        Raises:
            VoteError: the file ends before the votes do.
        """
        if self.ids is None:
            rows = np.arange(first_row, first_row + len(ids))
            if rows.size and rows[-1] >= self.count:
                raise VoteError(
                    f"{self.noun} end at row {self.count - 1}, the votes go on to row "
                    f"{int(rows[-1])}"
                )
            return rows
        return np.array([self._place(query) for query in np.asarray(ids).tolist()], dtype=np.int64)

    def _place(self, query: Any) -> int:
        found = self._places.get(query)
        return self._places.get(str(query), -1) if found is None else found


@dataclass(frozen=True, eq=False)
class Side:
    """What was read: an array, or a pyarrow.Table without its query ids, and these if it has any.

    digits: from CSV, where numbers and texts look alike; the ids are texts then. source: where it
    was read; found: the files there.
    """

    name: str
    values: Any
    ids: tuple[Any, ...] | None = None
    digits: bool = False
    source: str = field(default="", repr=False)
    found: Marked = field(default=UNMARKED, repr=False)

    @property
    def sha256(self) -> str:
        """Of the file it was read from; none of several, nor of a pipe, gone once read.

        VoteError where it is another by now.
        """
        if has_no_name(self.source):
            return ""
        try:
            digest = digest_of(self.source)
        except VoteError:
            return ""
        finally:
            self.found.refuse_changed()
        return digest.sha256


def read_side(
    path: str | PathLike[str],
    noun: str,
    id_column: str | None = None,
    *,
    what: str,
    ids: Sequence[str] = (),
) -> Side:
    """Read a file of any format that votes come in; `noun` is what messages call it.

    The query ids are those in `id_column` if it is there, else in `query_id`. `ids` are other
    columns of names, which are numbers only if each is written as one; `what` completes "the
    output is ...", which this file must not be.

    Raises:
        VoteError: a file that cannot be read, or a query id that is missing.
    """
    source = os.fspath(path)
    if source == "-":
        raise VoteError(f"{noun}: only votes are read from standard input; give a file")
    query_names = (id_column or QUERY, QUERY)
    with contextlib.ExitStack() as stack:
        located = locate(source, None, stack, ids=(*query_names, *ids), what=what)
        with located.found.steady():
            values, queries = _content(located, noun, query_names)
    return Side(located.name, values, queries, located.digits, source, located.found)


def _content(
    located: Located, noun: str, query_names: Sequence[str]
) -> tuple[Any, tuple[Any, ...] | None]:
    """The array, or the table without its query ids, and these if it has any."""
    damaged = f"{located.name}: cannot be read as {noun}"
    with understood(damaged):
        if located.format is Format.NPY:
            path = located.parts[0].path
            _refuse_large(located.name, Path(path).stat().st_size)
            return np.load(path, allow_pickle=False), None
    # pyarrow takes a tenth of a second to import: arrays do without.
    from pyarrow import concat_tables
    from pyarrow.types import is_nested

    with understood(damaged):
        table = concat_tables([_table(part) for part in located.parts], promote_options="default")
        table = _plain_table(table)
        query = next((name for name in query_names if name in table.column_names), None)
        if query is None:
            return table, None
        nested = is_nested(table.column(query).type)
        queries = () if nested else tuple(table.column(query).to_pylist())
        table = table.drop_columns([query])
    if nested:
        raise VoteError(
            f"{located.name}: column {quoted(query)} holds no ids; use numbers or texts"
        )
    if None in queries:
        row = queries.index(None)
        raise VoteError(f"{located.name}: row {row} has no {shortened(query)}")
    return table, tuple(map(str, queries)) if located.digits else queries


def _table(part: SourceFile) -> Any:
    from pyarrow import OSFile, parquet

    with understood(f"{part.name}: a truncated or damaged Parquet file"):
        opened = (
            OSFile(part.path)
            if part.filesystem is None
            else part.filesystem.open_input_file(part.path)
        )
        with opened:
            file = parquet.ParquetFile(opened, page_checksum_verification=True)
            _refuse_large(part.name, _size(file, opened))
            return file.read()


def _size(file: Any, source: Any) -> int:
    """Bytes of a table in memory, about, by what its pages say of themselves."""
    footer = file.metadata
    groups = chunks_of(source)
    if [len(group) for group in groups] != [footer.num_columns] * footer.num_row_groups:
        raise ValueError("the footer is damaged")
    chunks = [chunk for group in groups for chunk in group]
    entries = max(footer.num_rows * footer.num_columns, sum(chunk.entries for chunk in chunks))
    return max(size_of(source, chunks), 8 * int(entries))


def _refuse_large(name: str, size: int) -> None:
    """VoteError where a file has more bytes than memory is for; it is all read at once."""
    if size > MOST_BYTES:
        raise VoteError(
            f"{name}: has more than {MOST_BYTES >> 30} GB of numbers or texts, and what is beside "
            "the votes is held in memory; keep the columns and rows that are needed"
        )


@contextlib.contextmanager
def understood(message: str) -> Iterator[None]:
    """Turn what readers raise over a damaged file into this message."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # headers written by Python 2 parse with a warning
            yield
    except _DAMAGE as error:
        raise VoteError(message) from error
    except Exception as error:
        # ArrowException itself, without an import of pyarrow where nothing else needs it.
        if type(error).__module__.partition(".")[0] != "pyarrow":
            raise
        raise VoteError(message) from error


def in_order(given: Any, wanted: str) -> list[Any]:
    """What is given as a list; ParameterError, which says what is `wanted`, without an order."""
    if isinstance(given, np.ndarray) and given.ndim:
        return list(given.tolist())
    no_list = (str, bytes, Set, Mapping, np.ndarray)
    if isinstance(given, no_list) or not isinstance(given, Iterable):
        raise ParameterError(f"{wanted}, in order, not {type(given).__name__}")
    return list(given)


def of_pairs(
    rows: SideRows, values: NDArray[Any], ids: Any, first_row: int, unknown: float
) -> NDArray[Any]:
    """What `values` [queries, labels] say of the pairs from `first_row` on; unknown where nothing.

    The votes must have as many labels, which whoever joins them sees to.
    """
    labels = values.shape[1]
    queries, label = np.divmod(np.arange(first_row, first_row + len(ids)), labels)
    if rows.ids is None:
        first = int(queries[0]) if len(ids) else 0
        last = int(queries[-1]) + 1 if len(ids) else 0
        found = rows.of(range(first, last), first)[queries - first]
    else:
        found = rows.of(ids, first_row)
    return np.where(found < 0, unknown, values[found, label])


def check_label_set(
    what: str, labels: int, names: tuple[str, ...] | None, label_set: LabelSet
) -> None:
    """VoteError where a side file's labels are others than those of the votes."""
    if labels != label_set.count:
        raise VoteError(f"{what} have {labels} labels, the votes {label_set.count}")
    if None not in (names, label_set.names) and names != label_set.names:
        raise VoteError(f"{what} name other labels than the votes, or in another order")


def side_by_side(table: Any, source: str) -> Floats:
    """Return the columns of a table side by side, or its one column of lists as a matrix."""
    import pyarrow.compute as pc

    if _is_one_of_lists(table):
        lists = table.column(0)
        lengths = pc.list_value_length(lists).to_pylist()
        for row, length in enumerate(lengths):
            if length is None or length != lengths[0]:
                raise VoteError(
                    f"{source}: row {row} is the first with another number of classes than row 0"
                )
        flat = as_floats(pc.list_flatten(lists).to_numpy())
        return flat.reshape(len(lengths), lengths[0] if lengths else 0)
    return np.column_stack([as_floats(column.to_numpy()) for column in table.columns])


def columns_of_labels(table: Any) -> tuple[str, ...] | None:
    """What the columns of a table name; None for one of lists."""
    return None if _is_one_of_lists(table) else tuple(table.column_names)


def _is_one_of_lists(table: Any) -> bool:
    import pyarrow as pa

    if table.num_columns != 1:
        return False
    kind = table.column(0).type
    # The lists of one size are no nested type to older versions of pyarrow.
    return pa.types.is_nested(kind) or pa.types.is_fixed_size_list(kind)


def as_whole(values: NDArray[Any]) -> Ints:
    """Whole numbers as int64: what is too large for it comes out as the largest, never negative."""
    largest = min(np.iinfo(np.int64).max, np.iinfo(values.dtype).max)
    return np.minimum(values, values.dtype.type(largest)).astype(np.int64)


def labels_in(column: Any, none: int) -> NDArray[Any]:
    """A column of labels: whole numbers, `none` where there is no label, or texts, then empty.

    True and false are texts. Floats are whole numbers if all of them are, as where some writer had
    to leave a gap; else they stay floats, which are no labels.
    """
    import pyarrow as pa

    if is_text(column.type) or pa.types.is_boolean(column.type):
        return texts_of(column)
    if pa.types.is_floating(column.type):
        values = column.cast(pa.float64()).fill_null(np.nan).to_numpy()
        known = np.where(np.isnan(values), none, values)
        if not np.array_equal(known, np.floor(known)) or np.abs(known).max(initial=0) > LARGEST:
            return np.asarray(values)
        return known.astype(np.int64)
    if not (pa.types.is_integer(column.type) or pa.types.is_null(column.type)):
        return np.asarray(column.to_numpy())  # no labels, as whoever checks them says
    return np.asarray(column.cast(pa.int64()).fill_null(none).to_numpy())


def _plain_table(table: Any) -> Any:
    """A table without dictionaries, views and decimals, which numpy and few functions know."""
    import pyarrow as pa

    from pate_cli.votes.entries import plain, plain_type

    columns = table.columns
    for place, column in enumerate(columns):
        kind = plain_type(column.type)
        if kind != column.type:
            columns[place] = pa.chunked_array([plain(chunk) for chunk in column.chunks], type=kind)
        if pa.types.is_decimal(kind):
            columns[place] = column.cast(pa.int64() if kind.scale == 0 else pa.float64())
    return pa.Table.from_arrays(columns, names=table.column_names)


def texts_of(column: Any) -> NDArray[np.str_]:
    """A column of texts; an empty one where there is none, for names are not empty."""
    import pyarrow as pa
    import pyarrow.compute as pc

    return np.array(pc.fill_null(column.cast(pa.string()), "").to_pylist(), dtype=np.str_)


def as_floats(values: NDArray[Any]) -> Floats:
    """Return numbers as float64; VoteError for anything else."""
    if values.dtype.kind not in "fiu":
        raise VoteError(f"student predictions must be numbers, got {values.dtype}")
    # What float64 cannot hold turns infinite, and is refused for what it then is.
    with np.errstate(over="ignore", invalid="ignore"):
        return values.astype(np.float64)
