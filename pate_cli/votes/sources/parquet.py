"""Parquet files of votes: row groups decoded in as many rows at once as memory is for."""

from __future__ import annotations

import contextlib
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import field
from itertools import accumulate
from typing import Any

import pyarrow as pa

from pate_cli.core.arrow import compute
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.core.words import Layout
from pate_cli.votes.checks import Where
from pate_cli.votes.columns import NOTHING, Columns, family, find_columns
from pate_cli.votes.ranges import Stretch
from pate_cli.votes.sources import parquet_guard
from pate_cli.votes.sources.formats import SourceFile
from pate_cli.votes.sources.kept_open import KeptOpen, OpenFile, readable
from pate_cli.votes.sources.parquet_guard import Chunk, entries_of
from pate_cli.votes.sources.table import VoteTable, refuse_empty
from pate_cli.votes.sources.unchanged import Mark, changed, refuse_changed


@dataclass(frozen=True, eq=False)
class FilePiece:
    """A Parquet file by its name; `mark` tells whether it is still the same."""

    file: SourceFile
    stretch: Stretch
    mark: Mark
    kept: KeptOpen = field(repr=False)

    @property
    def schema(self) -> Any:
        """See Piece."""
        return self.kept.file(self.file).schema

    @property
    def portable(self) -> bool:
        """Files are read by name."""
        return True

    def entries(self, column: str) -> int:
        """By the footer; see Piece."""
        with readable(self.file.name):
            return entries_of(self.kept.file(self.file).chunks, column)

    def batches(
        self, size: int, columns: Sequence[str], start: int, stop: int
    ) -> Iterator[tuple[int, Any]]:
        """Decode from the beginning of the row group that holds `start`; see Piece.

        Row groups with texts are read one by one, in as many rows at once as their texts allow.
        """
        try:
            opened = self.kept.file(self.file)
        except VoteError:
            refuse_changed(self.file, self.mark)  # which may be why
            raise
        if opened.groups != (self.stretch.groups or ()) or not self.mark.agrees(opened.mark):
            changed(self.file.name)
        decoded = self._decoded(opened, size, columns, start, stop)
        while True:
            try:
                found = next(decoded, None)
            except VoteError:
                opened.refuse_changed()  # likewise
                raise
            if found is None:
                return
            yield found

    def refuse_changed(self) -> None:
        """See Piece."""
        self.kept.file(self.file).refuse_changed()

    def _decoded(
        self, opened: OpenFile, size: int, columns: Sequence[str], start: int, stop: int
    ) -> Iterator[tuple[int, Any]]:
        groups = opened.groups
        ends = list(accumulate(groups))
        first, last = bisect_right(ends, start), bisect_left(ends, stop) + 1
        row = ends[first] - groups[first]
        for together, rows, at_hand in self._readings(opened, range(first, last), columns):
            reader = opened.reader(at_hand=at_hand)
            with readable(self.file.name):
                batches = reader.iter_batches(
                    batch_size=min(size, rows, stop - row),
                    row_groups=together,
                    columns=list(columns),
                )
            while True:
                with readable(self.file.name):
                    batch = next(batches, None)
                if batch is None:
                    break
                # What the caller does with it is not under this function's error net.
                yield row, batch
                row += batch.num_rows
        promised = ends[last - 1]
        if row != promised:
            raise VoteError(f"{self.file.name}: has {row} of the {promised} rows it promises")

    def _readings(
        self, opened: OpenFile, groups: range, columns: Sequence[str]
    ) -> Iterator[tuple[range, int, bool]]:
        """Row groups that are read in one go, in how many rows at once at most, and whether so much
        is at hand as in `reader`.

        VoteError before one whose pages are too large, or say what cannot be.
        """
        texts = any(family(opened.schema.field(name).type).endswith("text") for name in columns)
        at_hand = True
        for group in groups:
            chunks = [chunk for chunk in opened.chunks[group] if chunk.path[0] in columns]
            if not opened.fits(group, chunks):
                raise VoteError(
                    f"{self.file.name}: row group {group} has pages of more than "
                    f"{parquet_guard.MOST_PAGES >> 20} MB; write it anew in smaller ones"
                )
            at_hand = at_hand and parquet_guard.at_hand(chunks)
            if texts:
                rows = self._rows_at_once(opened, group, chunks)
                yield range(group, group + 1), rows, parquet_guard.at_hand(chunks)
        if not texts:
            yield groups, self.stretch.rows, at_hand

    def _rows_at_once(self, opened: OpenFile, group: int, chunks: Sequence[Chunk]) -> int:
        def longest(chunk: Chunk) -> int | None:
            """By its first row, with which the dictionary is decoded."""
            path = ".".join(chunk.path)
            batches = opened.reader([path]).iter_batches(1, row_groups=[group], columns=[path])
            column = next(batches).column(0)
            while not pa.types.is_dictionary(column.type):
                column = column.flatten()
            return compute().max(compute().binary_length(column.dictionary)).as_py()

        with readable(self.file.name):
            texts = [chunk for chunk in chunks if chunk.text]
            rows = (self.stretch.groups or ())[group]
            return parquet_guard.rows_at_once(opened.source, texts, rows, longest)


def open_table(
    files: Sequence[SourceFile],
    name: str,
    layout: Layout | None,
    stack: contextlib.ExitStack,
    label_names: Sequence[str] | None = None,
    *,
    id_column: str | None = None,
    any_name: bool = False,
) -> VoteTable:
    """Read the schemas of all parts and check that they agree; `stack` closes the files kept open.

    Raises:
        VoteError: damaged parts, no rows, columns that are no votes, or parts that differ.
    """
    columns: Columns | None = None
    kinds: list[str] = []
    pieces = []
    kept = KeptOpen()
    stack.callback(kept.close)
    for part in files:
        opened = kept.file(part)
        stretch = Stretch(part.name, sum(opened.groups), opened.groups)
        pieces.append(FilePiece(part, stretch, opened.mark, kept))
        its_columns = find_columns(
            opened.schema,
            part.name,
            layout,
            label_names,
            id_column=id_column,
            any_name=any_name,
        )
        its_kinds = [family(opened.schema.field(column).type) for column in its_columns.needed]
        if columns is None:
            columns, kinds = its_columns, its_kinds
        elif len(its_columns.votes) != len(columns.votes):
            raise VoteError(
                f"{part.name}: has {len(its_columns.votes)} vote columns, "
                f"the first part has {len(columns.votes)}; parts must agree"
            )
        elif its_columns != columns or not _agree(kinds, its_kinds):
            raise VoteError(
                f"{part.name}: its columns differ in name, order or type from the first part's"
            )
    if columns is None:
        raise VoteError(f"{name}: has no rows")
    if not any(piece.stretch.rows for piece in pieces):
        refuse_empty(columns, name)
    return VoteTable(Where(name), columns, tuple(pieces))


def _agree(kinds: Sequence[str], others: Sequence[str]) -> bool:
    pairs = zip(kinds, others, strict=True)
    return all(NOTHING in pair or pair[0] == pair[1] for pair in pairs)
