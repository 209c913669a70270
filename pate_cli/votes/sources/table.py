"""Tables in files or in memory, read by record batch with only the columns that are votes.

pyarrow is not imported here: whoever has a table has it, and arrays do without.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import Any, Protocol

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.core.words import Layout
from pate_cli.votes.checks import Where
from pate_cli.votes.columns import Columns, family, find_columns
from pate_cli.votes.ranges import Stretch, spans


class Piece(Protocol):
    """A Parquet file or a table."""

    @property
    def stretch(self) -> Stretch:
        """Its rows."""

    @property
    def schema(self) -> Any:
        """Its Arrow schema."""

    @property
    def portable(self) -> bool:
        """Whether it pickles as the name of a file."""

    def entries(self, column: str) -> int:
        """At least as many as all lists of a column have; an empty list may count as one."""

    def batches(
        self, size: int, columns: Sequence[str], start: int, stop: int
    ) -> Iterator[tuple[int, Any]]:
        """Yield (first row, record batch of at most `size` rows), rows counted within the piece.

        Rows start..stop-1 are among them; others may come before and after.
        """

    def refuse_changed(self) -> None:
        """VoteError where it is not what it was when it was opened."""


@dataclass(frozen=True, eq=False)
class VoteTable:
    """Parquet files of one schema, read as if they were one; or a table in memory."""

    where: Where
    columns: Columns
    pieces: tuple[Piece, ...] = field(repr=False)

    @property
    def rows(self) -> int:
        """Rows of all pieces."""
        return sum(piece.stretch.rows for piece in self.pieces)

    @property
    def ids_are_numbers(self) -> bool:
        """What the schema says of the query ids, which there are."""
        return family(self.pieces[0].schema.field(self.columns.query).type) == "number"

    @property
    def portable(self) -> bool:
        """Whether all pieces pickle as names of files."""
        return all(piece.portable for piece in self.pieces)

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """The rows of each piece."""
        return tuple(piece.stretch for piece in self.pieces)

    def batches(
        self, size: int, columns: Sequence[str], start: int = 0, stop: int | None = None
    ) -> Iterator[tuple[int, Any]]:
        """Yield rows start..stop-1, all from `start` on without `stop`.

        As (number of the first row, record batch of 1 to `size` rows).
        """
        last = self.rows if stop is None else stop
        for piece, (_, begin, end) in zip(self.pieces, spans(self.stretches), strict=True):
            first, beyond = max(start, begin) - begin, min(last, end) - begin
            if first >= beyond:
                continue
            for row, batch in piece.batches(size, columns, first, beyond):
                skipped = max(first - row, 0)
                wanted = batch.slice(skipped, max(beyond - row - skipped, 0))
                if wanted.num_rows:
                    yield begin + row + skipped, wanted
                if row + batch.num_rows >= beyond:
                    break
            piece.refuse_changed()


@dataclass(frozen=True, eq=False)
class HeldPiece:
    """A table, cut as a file is cut, whatever its chunks; only a slice across chunks is copied."""

    table: Any = field(repr=False)
    stretch: Stretch

    @property
    def schema(self) -> Any:
        """See Piece."""
        return self.table.schema

    @property
    def portable(self) -> bool:
        """A copy carries the votes."""
        return False

    def entries(self, column: str) -> int:
        """None that are not in memory already; see Piece."""
        del column
        return 0

    def batches(
        self, size: int, columns: Sequence[str], start: int, stop: int
    ) -> Iterator[tuple[int, Any]]:
        """See Piece."""
        chosen = self.table.select(list(columns))
        for first in range(start, stop, size):
            row = first
            for batch in chosen.slice(row, min(size, stop - row)).combine_chunks().to_batches():
                yield row, batch
                row += batch.num_rows

    def refuse_changed(self) -> None:
        """A table never changes."""


def held_table(
    table: Any,
    name: str,
    layout: Layout | None,
    label_names: Sequence[str] | None = None,
    *,
    id_column: str | None = None,
    any_name: bool = False,
) -> VoteTable:
    """Take a pyarrow.Table for a file of one part.

    Raises:
        VoteError: no rows, or columns that are no votes.
    """
    columns = find_columns(
        table.schema, name, layout, label_names, id_column=id_column, any_name=any_name
    )
    if table.num_rows == 0:
        refuse_empty(columns, name)
    piece = HeldPiece(table, Stretch(name, table.num_rows))
    return VoteTable(Where(name), columns, (piece,))


def refuse_empty(columns: Columns, name: str) -> None:
    """VoteError for a file without rows, but for long form, in which rows are votes."""
    if columns.layout is not Layout.LONG:
        raise VoteError(f"{name}: has no rows")
