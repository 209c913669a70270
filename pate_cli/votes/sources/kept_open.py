"""Parquet files that stay open from one reading to the next."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import NotOpenedError, VoteError
from pate_cli.votes.columns import check_columns
from pate_cli.votes.sources.formats import Format, SourceFile, damaged
from pate_cli.votes.sources.parquet_guard import Chunk, chunks_of, fit
from pate_cli.votes.sources.unchanged import Mark, mark_of, refuse_changed

KEPT_OPEN = 16
"""So many parts of a folder stay open while it is read, and the latest one: a folder may have more
parts than a process may have open files."""

# Bytes read ahead in a column, and in all of them; without a limit the whole file would be.
_BUFFER = 1 << 20
_BUFFERS = 1 << 26
_LEAST_BUFFER = 1 << 12


@contextlib.contextmanager
def readable(name: str) -> Iterator[None]:
    """Turn pyarrow's errors into one line; their text is not passed on, it may quote data."""
    try:
        yield
    except FileNotFoundError as error:
        raise NotOpenedError(f"{name}: no such file or folder") from error
    except PermissionError as error:
        raise NotOpenedError(f"{name}: cannot be read: Permission denied") from error
    except (pa.ArrowException, OSError, UnicodeError) as error:
        raise damaged(name, Format.PARQUET, error) from error


@dataclass(frozen=True, eq=False)
class OpenFile:
    """An open part.

    mark: what it was when it was opened. groups: the rows of each of its row groups.
    """

    part: SourceFile
    source: Any
    footer: Any
    schema: Any
    mark: Mark
    groups: tuple[int, ...]
    _fits: dict[tuple[int, ...], bool] = field(default_factory=dict, init=False, repr=False)

    def reader(self, dictionaries: Sequence[str] = (), *, at_hand: bool = False) -> Any:
        """A reader of its own for every pass: two passes over one would share the batch size.

        dictionaries: columns of texts that are read as each text once and where it stands. at_hand:
        columns of a row group are read at once, not piece by piece, in which a page that says it is
        large would take as much memory.
        """
        return _reader(self.part, self.source, self.footer, dictionaries, at_hand=at_hand)

    def fits(self, group: int, chunks: Sequence[Chunk]) -> bool:
        """As parquet_guard says, which looks once; VoteError where a page says what cannot be."""
        key = group, *(chunk.start for chunk in chunks)
        if key not in self._fits:
            with readable(self.part.name):
                self._fits[key] = fit(self.source, chunks)
        return self._fits[key]

    @cached_property
    def chunks(self) -> tuple[tuple[Chunk, ...], ...]:
        """What the footer says of the columns of each row group; VoteError where it is damaged."""
        with readable(self.part.name):
            found = chunks_of(self.source)
            if [len(group) for group in found] != [self.footer.num_columns] * len(self.groups):
                raise pa.ArrowInvalid("the footer is damaged")
        return found

    def refuse_changed(self) -> None:
        """VoteError where the file, or what has its name by now, is not as it was opened."""
        descriptor = self.source.fileno() if self.part.filesystem is None else None
        refuse_changed(self.part, self.mark, descriptor)


class KeptOpen:
    """The first KEPT_OPEN files of a source that are asked for, and the latest.

    A pickled copy begins with none, and opens what it reads by itself.
    """

    def __init__(self) -> None:
        self._first: dict[str, OpenFile] = {}
        self._latest: OpenFile | None = None
        self._closed = False

    def __reduce__(self) -> tuple[type[KeptOpen], tuple[()]]:
        return KeptOpen, ()

    def file(self, part: SourceFile) -> OpenFile:
        """Return a file that is open.

        Raises:
            VoteError: it cannot be read, or these files were closed.
        """
        if self._closed:
            raise VoteError(f"{part.name}: is closed; read votes while they are open")
        found = self._first.get(part.path)
        if found is not None:
            return found
        if self._latest is not None and self._latest.part.path == part.path:
            return self._latest
        opened = _opened(part)
        if len(self._first) < KEPT_OPEN:
            self._first[part.path] = opened
        else:
            # The one before is not closed but dropped: somebody may be reading it.
            self._latest = opened
        return opened

    def close(self) -> None:
        """Close what is open, and open nothing any more."""
        self._closed = True
        for opened in [*self._first.values(), *([self._latest] if self._latest else [])]:
            opened.source.close()
        self._first, self._latest = {}, None


def _opened(part: SourceFile) -> OpenFile:
    with readable(part.name), contextlib.ExitStack() as stack:
        if part.filesystem is None:
            # Not mapped: pages of a large file that were read would count as memory in use.
            source = pa.OSFile(part.path)
        else:
            source = part.filesystem.open_input_file(part.path)
        stack.callback(source.close)  # unless everything goes well
        local = part.filesystem is None
        mark = Mark.of(os.fstat(source.fileno())) if local else mark_of(part)
        reader = _reader(part, source)
        footer = reader.metadata
        groups = tuple(footer.row_group(i).num_rows for i in range(footer.num_row_groups))
        if min(groups, default=0) < 0 or sum(groups) != footer.num_rows:
            raise pa.ArrowInvalid("row groups do not add up")
        opened = OpenFile(part, source, footer, reader.schema_arrow, mark, groups)
        stack.pop_all()
    return opened


def _reader(
    part: SourceFile,
    source: Any,
    footer: Any = None,
    dictionaries: Sequence[str] = (),
    *,
    at_hand: bool = False,
) -> Any:
    with readable(part.name):
        if part.filesystem is not None:  # far away a few large requests are worth their memory
            size, ahead = _BUFFER, True
        else:
            footer = pq.read_metadata(source) if footer is None else footer
            check_columns(footer.num_columns, part.name)
            size = min(_BUFFER, max(_LEAST_BUFFER, _BUFFERS // max(1, footer.num_columns)))
            size = 0 if at_hand else size
            ahead = False
        # Checksums are there where the writer was told so; a page without one passes.
        return pq.ParquetFile(
            source,
            metadata=footer,
            read_dictionary=list(dictionaries),
            buffer_size=size,
            pre_buffer=ahead,
            page_checksum_verification=True,
        )
