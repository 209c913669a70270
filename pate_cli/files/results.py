"""Results of pate's functions: frozen values that can be shown, converted to a table, and saved.

A table can be saved in every format that labels can have, except NPY, which has no column names.
"""

from __future__ import annotations

import contextlib
import csv
import importlib
import io
import json
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from pathlib import PurePath
from typing import IO, Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import UsageError
from pate_cli.core.said import Line, Said, as_html
from pate_cli.core.words import LabelFormat
from pate_cli.files.addresses import public_name
from pate_cli.files.protected import Replaces, beginning


class Result(ABC):
    """A result of one of pate's functions, which can be converted to JSON and to a table."""

    @property
    def releasable(self) -> bool:
        """Return whether the result may be published; a result that describes votes may not."""
        return False

    @property
    def secret(self) -> bool:
        """Return whether files of this result are secret: only the owner of a file may read it."""
        return not self.releasable

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return this result as a dict for JSON, whose keys are always in the same order."""

    @abstractmethod
    def columns(self) -> Mapping[str, NDArray[Any]]:
        """Return the table of this result: for each column name an array, all of equal length."""

    @abstractmethod
    def headline(self) -> str:
        """Return the main facts of this result as a short phrase."""

    def to_json(self) -> str:
        """Return this result as indented JSON with a final newline, without NaN or Infinity."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def to_arrow(self) -> Any:
        """Return the table as a pyarrow.Table, with null for missing values."""
        import pyarrow as pa

        columns = {name: np.asarray(column) for name, column in self.columns().items()}
        return pa.table({name: pa.array(each, from_pandas=True) for name, each in columns.items()})

    def to_pandas(self) -> Any:
        """Return the table as a pandas.DataFrame.

        Columns of whole numbers have the type Int64, even if values are missing.

        Raises:
            UsageError: pandas is not installed.
        """
        from pyarrow.types import is_integer

        try:
            whole = importlib.import_module("pandas").Int64Dtype()
        except ImportError:
            raise UsageError("pandas is not installed; to_arrow() works without it") from None
        return self.to_arrow().to_pandas(
            types_mapper=lambda kind: whole if is_integer(kind) else None
        )

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Save this result as JSON (.json), or its table (.parquet, .csv, .jsonl or .arrow).

        The file appears only when it is complete. If `secret` is true, only the owner may read the
        file (mode 0600).

        Args:
            path: the name of the file. If `secret` is false, `path` may also be the address of a
                file on a store, such as s3://bucket/file.
            force: replace an existing file if it contains a result of this kind; no other file is
                replaced.

        Raises:
            OutputError: the file exists already, or cannot be written.
            UsageError: the suffix is not .json, .parquet, .csv, .jsonl or .arrow.
        """
        from pate_cli.files.outputs import Outputs  # Most results are never saved.

        name = public_name(path)
        with Outputs(force=force) as out:
            mode = 0o600 if self.secret else 0o644
            out.reserve(path, mode=mode, replaces=self._replaces(name))
            with out.open(path) as file:
                self.write(file, name)

    def _replaces(self, path: str) -> Replaces:
        """Return which existing file `force` may replace: one that begins like the new file."""
        suffix = PurePath(path).suffix.lower()
        if suffix == ".json":
            return beginning(re.escape(self.to_json().partition(":")[0].encode()))
        return columns_in(LabelFormat.from_path(path), *self.columns())

    def write(self, file: IO[bytes], path: str | os.PathLike[str]) -> None:
        """Write the result to a binary file, in the format that the suffix of `path` names."""
        if PurePath(path).suffix.lower() == ".json":
            file.write(self.to_json().encode())
        else:
            kind = LabelFormat.from_path(os.fspath(path))
            file.write(encoded_table(self.to_arrow(), kind))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}{'; SECRET' if self.secret else ''}>"

    def said(self) -> Said:
        """Return the details below the headline, for a terminal or a notebook."""
        return ()

    def _repr_html_(self) -> str:
        # People keep notebooks and pass them on, so a secret shows no more than its `repr`.
        return as_html([Line(repr(self)[1:-1], "bold"), *(() if self.secret else self.said())])


_LONGEST_LINE: Final = 1 << 16


def column_names(file: IO[bytes], kind: LabelFormat) -> tuple[str, ...]:
    """Return the column names of a table in an open file; () if the file has another format."""
    from pyarrow import ipc, parquet

    names: Iterable[str] = ()
    with contextlib.suppress(Exception):  # Libraries raise many errors on other kinds of files.
        if kind is LabelFormat.PARQUET:
            names = parquet.read_schema(file).names
        elif kind is LabelFormat.ARROW:
            names = ipc.open_file(file).schema.names
        elif kind is LabelFormat.JSONL:
            names = json.loads(file.readline(_LONGEST_LINE))
        else:  # A name may contain a line break.
            start = io.StringIO(file.read(_LONGEST_LINE).decode(errors="replace"), newline="")
            names = next(csv.reader(start))
    return tuple(names)


def columns_in(kind: LabelFormat, *columns: str) -> Replaces:
    """Return a function that says whether a file has a table that begins with these columns."""
    return lambda file: column_names(file, kind)[: len(columns)] == columns


def encoded_table(table: Any, kind: LabelFormat) -> bytes:
    """Return the bytes of a file, in the format `kind`, that contains this pyarrow.Table.

    Raises:
        UsageError: the format, such as NPY, has no names of columns.
    """
    from pyarrow import csv as arrow_csv
    from pyarrow import ipc, parquet

    sink = io.BytesIO()
    if kind is LabelFormat.PARQUET:
        parquet.write_table(table, sink, write_page_checksum=True)
    elif kind is LabelFormat.ARROW:
        with ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    elif kind is LabelFormat.CSV:
        arrow_csv.write_csv(table, sink)
    elif kind is LabelFormat.JSONL:
        rows = table.to_pylist()
        sink.write("".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode())
    else:
        raise UsageError(
            f"a table with named columns cannot be {kind}; use .parquet, .csv, .jsonl or .arrow"
        )
    return sink.getvalue()
