"""CSV, with a comma, a semicolon, a tab, a bar or a blank between fields, whose names come first.

What a column holds is settled on all its values in all parts of a source before any is read: not on
the first rows, so that it does not matter in which row a teacher's odd vote stands.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
from numpy.typing import NDArray

from pate_cli.core.arrow import compute
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.votes.columns import FROM_TEXT, ODD_ROW, TRUTHS, UNCLEAR_ROW, check_columns
from pate_cli.votes.sources.formats import SourceFile
from pate_cli.votes.sources.heading import delimiter_of, heading_of
from pate_cli.votes.sources.text import refuse_other_bytes

_BLOCK = 1 << 23
"""Bytes parsed at once; no row is longer."""

_WHOLE = r"^(0|-?[1-9][0-9]{0,18})$"
_NUMBER = r"^[ \t]*(-?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|-?(?i:nan|inf|infinity))[ \t]*$"
_NUMERIC = re.compile(_NUMBER.replace("^", "").replace("$", ""))
# With a comma before decimals, as most of Europe writes them.
_COMMA_NUMBER = r"^[ \t]*-?([0-9]+(,[0-9]*)?|,[0-9]+)[ \t]*$"
# These marks may stand between thousands; before decimals, too, unless numbers say otherwise.
_DOTTED, _DOT_THOUSANDS = r"\.", r"^[ \t]*-?[1-9][0-9]{0,2}(\.[0-9]{3})+[ \t]*$"
_COMMAED, _COMMA_THOUSANDS = ",", r"^[ \t]*-?[1-9][0-9]{0,2}(,[0-9]{3})+[ \t]*$"
_TRUTH = r"^(?i:true|false)$"
_BROKEN_LINE = r"[\r\n]"
_TEXT = pa.dictionary(pa.int32(), pa.string())


def tables(
    parts: Sequence[SourceFile], ids: Collection[str], passed: Callable[[int], None]
) -> Iterator[tuple[Any, Iterator[Any]]]:
    """Yield the schema and the record batches of each part; a column has one type in all of them.

    `passed` is told how many bytes were read, as in Copies.

    Empty fields are nulls. A column in `ids` is of integers where each is written as one (007 is
    not 7), another one where it is possible, then of floats; else both are text.

    Raises:
        VoteError: no header, an unclear one, text that is no UTF-8, or rows of other lengths.
    """
    sheets = [_sheet(part, passed) for part in parts]
    seen: dict[str, _ColumnValues] = {}
    for sheet in sheets:
        _settle(sheet, seen)
    for sheet in sheets:
        columns = [seen[name] for name in sheet.names]
        schema = pa.schema([column.kind(is_id=column.name in ids) for column in columns])
        commas = {column.name for column in columns if column.by_comma}.difference(ids)
        yield schema, _batches(sheet, schema, commas)


@dataclass(frozen=True)
class _Sheet:
    """A part whose first line was read."""

    part: SourceFile
    names: tuple[str, ...]
    delimiter: str
    skipped: int
    only_header: bool
    passed: Callable[[int], None] = field(repr=False)

    def reader(self, types: dict[str, Any], bad: list[Any]) -> Any:
        """Record batches in order; rows of another length are left out and noted in `bad`."""

        def skip(row: Any) -> str:
            bad.append(row)
            return "skip"

        return pcsv.open_csv(
            self.part.path,
            # In one thread, which counts the rows.
            read_options=pcsv.ReadOptions(
                use_threads=False,
                block_size=_BLOCK,
                skip_rows=self.skipped + 1,
                column_names=self.names,
            ),
            parse_options=pcsv.ParseOptions(
                delimiter=self.delimiter,
                # An empty line is a row where there is one column.
                ignore_empty_lines=len(self.names) > 1,
                invalid_row_handler=skip,
            ),
            convert_options=pcsv.ConvertOptions(
                check_utf8=False,  # was checked, by line
                column_types=types,
                null_values=[""],
                strings_can_be_null=True,
            ),
        )


# The first line.


def _sheet(part: SourceFile, passed: Callable[[int], None]) -> _Sheet:
    refuse_other_bytes(part, passed)
    with Path(part.path).open("rb") as file:
        heading = heading_of(file.read(_BLOCK), part.name)
    line = heading.line.decode()
    bare = re.sub(r'"[^"]*"', "", line)
    if not line.strip() or '"' in bare:
        raise VoteError(f"{part.name}: the first line must name the columns")
    delimiter = delimiter_of(heading, part.name)
    try:
        names = next(csv.reader([line], delimiter=delimiter, strict=True))
    except csv.Error as error:
        raise VoteError(f"{part.name}: the first line must name the columns") from error
    check_columns(len(names), part.name)
    names = [name.strip() for name in names]
    numeric = [name for name in names if _NUMERIC.fullmatch(name)]
    if numeric != [str(place) for place in range(len(numeric))]:
        # It may be a row of votes, so nothing of it is shown.
        raise VoteError(
            f"{part.name}: the first line holds numbers; the first line must name the columns "
            "(0, 1, 2, ... in this order are names)"
        )
    # As pandas calls them: the index of a data frame has no name.
    names = [name or f"Unnamed: {place}" for place, name in enumerate(names)]
    places: dict[str, int] = {}
    for place, name in enumerate(names):
        first_place = places.setdefault(name, place)
        if first_place != place:
            raise VoteError(
                f"{part.name}: the first line names columns {first_place} and {place} alike; it "
                "must name the columns, each by another name"
            )
    return _Sheet(part, tuple(names), delimiter, heading.skipped, not heading.row, passed)


# What the columns hold.


@dataclass
class _ColumnValues:
    """The values of a column so far.

    marks: between thousands there may stand a dot, too, as where no comma stands between fields.
    """

    name: str
    marks: bool
    empty: bool = True
    whole: bool = True
    number: bool = True
    numbers: bool = False
    commas: bool = True
    truths: bool = True
    odd_row: int | None = None
    unclear: int | None = None
    cleared: bool = False

    def add(self, column: Any, row: int) -> None:
        """Look at a column of texts from row `row` on; only the distinct ones matter."""
        values = column.dictionary
        if not len(values):
            return
        self.empty = False
        self.truths = self.truths and _all(values, _TRUTH)
        if self.whole:
            self.whole = _all_whole(values)
            self.numbers = self.numbers or self.whole
        if self.whole:
            return
        fits = _fits(values, _NUMBER)
        self.numbers = self.numbers or bool(fits.any())
        if not fits.all() and self.odd_row is None:
            self.number = False
            self.odd_row = row + _first(column, ~fits)
        self.commas = self.commas and _all(values, _COMMA_NUMBER)
        for mark, thousands, may_be in (
            (_COMMAED, _COMMA_THOUSANDS, self.commas),
            (_DOTTED, _DOT_THOUSANDS, self.number and self.marks),
        ):
            marked = _fits(values, mark)
            if may_be and marked.any():
                groups = _fits(values, thousands)
                self.cleared = self.cleared or bool((marked & ~groups).any())
                if self.unclear is None and groups.any():
                    self.unclear = row + _first(column, groups)

    @property
    def by_comma(self) -> bool:
        """Whether these are numbers, and some have a comma before their decimals."""
        return self.commas and not (self.empty or self.whole or self.number or self.doubtful)

    @property
    def doubtful(self) -> bool:
        """Whether these are numbers in two ways."""
        found = self.unclear is not None and not self.cleared
        return found and not self.whole and (self.number or self.commas)

    def kind(self, *, is_id: bool) -> Any:
        """The field of the schema; a column without any value has no type."""
        if self.empty:
            return pa.field(self.name, pa.string() if is_id else pa.null())
        if self.doubtful and not is_id:
            return pa.field(self.name, pa.string(), metadata={UNCLEAR_ROW: str(self.unclear)})
        if self.whole or ((self.number or self.by_comma) and not is_id):
            found = pa.int64() if self.whole else pa.float64()
            return pa.field(self.name, found, metadata={FROM_TEXT: ""})
        if self.truths and not is_id:
            return pa.field(self.name, pa.string(), metadata={TRUTHS: ""})
        odd = {} if is_id or not self.numbers else {ODD_ROW: str(self.odd_row)}
        return pa.field(self.name, pa.string(), metadata=odd)


def _fits(values: Any, pattern: str) -> NDArray[np.bool_]:
    """Which of some texts match."""
    found: NDArray[np.bool_] = (
        compute().match_substring_regex(values, pattern).to_numpy(zero_copy_only=False)
    )
    return found


def _all(values: Any, pattern: str) -> bool:
    return bool(_fits(values, pattern).all())


def _all_whole(values: Any) -> bool:
    if not _all(values, _WHOLE):
        return False
    try:
        values.cast(pa.int64())
    except pa.ArrowInvalid:  # beyond 64 bits
        return False
    return True


def _first(column: Any, bad: Any) -> int:
    """The first row of a dictionary array whose value is among the bad ones."""
    places = column.indices.fill_null(-1).to_numpy(zero_copy_only=False)
    return int(np.argmax(np.append(bad, False)[places]))


def _settle(sheet: _Sheet, seen: dict[str, _ColumnValues]) -> None:
    marks = sheet.delimiter != ","
    columns = [seen.setdefault(name, _ColumnValues(name, marks)) for name in sheet.names]
    for row, batch in _rows(sheet, dict.fromkeys(sheet.names, _TEXT)):
        for column, values in zip(columns, batch.columns, strict=True):
            broken = compute().match_substring_regex(values.dictionary, _BROKEN_LINE)
            if compute().any(broken).as_py():
                at = row + _first(values, broken.to_numpy(zero_copy_only=False))
                raise VoteError(
                    f"{sheet.part.name}: row {at} has a quoted field that goes on in the next "
                    "line; close the quote, or keep a row in one line"
                )
            column.add(values, row)


def _batches(sheet: _Sheet, schema: Any, commas: Collection[str]) -> Iterator[Any]:
    """Rows as they are typed; numbers in the columns of `commas` have one before decimals."""
    types = {part.name: pa.string() if part.name in commas else part.type for part in schema}
    for _, batch in _rows(sheet, types):
        columns = [
            _by_dot(column) if name in commas else column
            for name, column in zip(schema.names, batch.columns, strict=True)
        ]
        yield pa.RecordBatch.from_arrays(columns, schema=schema)


def _by_dot(column: Any) -> Any:
    """The numbers of texts that have a comma before decimals."""
    return (
        compute()
        .replace_substring(compute().utf8_trim_whitespace(column), ",", ".")
        .cast(pa.float64())
    )


def _rows(sheet: _Sheet, types: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """Yield (first row, record batch)."""
    bad: list[Any] = []
    row, left = 0, Path(sheet.part.path).stat().st_size
    try:
        reader = sheet.reader(types, bad)
    except pa.ArrowInvalid as error:
        if sheet.only_header:
            return
        raise _unreadable(sheet, row) from error
    while True:
        try:
            batch = next(reader, None)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(sheet, row) from error
        if bad:
            fields, wanted = bad[0].actual_columns, bad[0].expected_columns
            # Counted from 1, the first line among them.
            number = bad[0].number
            at = "a row" if number is None else f"row {number - sheet.skipped - 2}"
            more = fields > wanted and sheet.delimiter == ","
            raise VoteError(
                f"{sheet.part.name}: {at} has {fields} fields, the first line has {wanted}; "
                "repair the row"
                + (", or put a semicolon between fields if numbers have commas" if more else "")
            )
        if batch is None:
            return
        sheet.passed(min(_BLOCK, left))
        left = max(left - _BLOCK, 0)
        yield row, batch
        row += batch.num_rows


def _unreadable(sheet: _Sheet, row: int) -> VoteError:
    """What is wrong is not passed on: it may quote the row."""
    return VoteError(
        f"{sheet.part.name}: cannot be read as CSV from row {row} on; a row may be damaged, or "
        f"longer than {_BLOCK >> 20} MB"
    )
