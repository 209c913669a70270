"""Results of the verbs: frozen values with a table, a file and a few words on themselves."""

from __future__ import annotations

import importlib
import io
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import UsageError
from pate_cli.core.formulas import as_text, refuse_escapes
from pate_cli.core.words import LabelFormat
from pate_cli.files.addresses import public_name
from pate_cli.files.existing import PAGE, Replaces, beginning, columns_in

if TYPE_CHECKING:
    from pate_cli.files.draft import ByteSink


class Result(ABC):
    """A result: JSON-ready facts, and a table of whatever it holds many of."""

    @property
    def releasable(self) -> bool:
        """False for what describes the votes; its files are its owner's alone."""
        return False

    @property
    def secret(self) -> bool:
        """True for what is its owner's alone; what is not to be published need not be."""
        return not self.releasable

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Facts, ready for JSON, in a stable order of keys."""

    @abstractmethod
    def columns(self) -> Mapping[str, NDArray[Any]]:
        """The table: columns of one length by name."""

    @abstractmethod
    def headline(self) -> str:
        """A few words on it."""

    def to_json(self) -> str:
        """Indented JSON with a final newline; never NaN or Infinity."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def to_arrow(self) -> Any:
        """The table as a pyarrow.Table."""
        return _arrow(self.columns())

    def to_pandas(self) -> Any:
        """The table as a pandas.DataFrame; whole numbers stay so beside missing ones (Int64).

        Raises:
            UsageError: pandas is not installed.
        """
        from pyarrow.types import is_integer

        try:
            whole = importlib.import_module("pandas").Int64Dtype()
        except ImportError:
            raise UsageError("pandas is not installed; to_arrow() needs nothing more") from None
        return self.to_arrow().to_pandas(
            types_mapper=lambda kind: whole if is_integer(kind) else None
        )

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        force: bool = False,
        escape_formulas: bool = False,
    ) -> None:
        """Write a file, whole or not at all: facts, or the table in the format that its name says.

        Args:
            path: where to: facts end in .json, tables in .parquet, .csv, .jsonl or .arrow. Mode
                0600 unless the result may be published, and only then an address of a store.
            force: replace a file that holds such a result, and no other.
            escape_formulas: in CSV, an apostrophe before texts that begin as formulas do.

        Raises:
            OutputError: the file exists already, or cannot be written.
            UsageError: another suffix, or `escape_formulas` without CSV.
        """
        from pate_cli.files.outputs import Outputs  # most results are looked at and not kept

        with Outputs(force=force) as out:
            replaces = self._replaces(public_name(os.fspath(path)))
            out.reserve(path, mode=0o600 if self.secret else 0o644, replaces=replaces)
            with out.open(path) as file:
                self.write(file, public_name(os.fspath(path)), escape_formulas=escape_formulas)

    def _replaces(self, path: str) -> Replaces:
        """Return which files make way: those with the first field, or the columns, of this one."""
        suffix = PurePath(path).suffix.lower()
        if suffix == ".json":
            return beginning(self.to_json().partition(":")[0].encode())
        if suffix in (".html", ".htm"):
            return PAGE
        return columns_in(LabelFormat.from_path(path), *self.columns())

    def encode(self, path: str | os.PathLike[str], *, escape_formulas: bool = False) -> bytes:
        """The content of a file of this name; see `save`."""
        file = io.BytesIO()
        self.write(file, path, escape_formulas=escape_formulas)
        return file.getvalue()

    def write(
        self, file: ByteSink, path: str | os.PathLike[str], *, escape_formulas: bool = False
    ) -> None:
        """Write the content of a file named `path` to the binary file object `file`; see `save`."""
        if PurePath(path).suffix.lower() == ".json":
            if escape_formulas:
                refuse_escapes("JSON")
            file.write(self.to_json().encode())
        else:
            kind = LabelFormat.from_path(os.fspath(path))
            file.write(encode_columns(self.columns(), kind, escape_formulas=escape_formulas))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}{'; SECRET' if self.secret else ''}>"

    def preview(self) -> Iterable[tuple[object, ...]]:
        """A few rows of cells for a notebook, below the headline."""
        return ()

    def _repr_html_(self) -> str:
        # A notebook is kept and passed on: of a secret it shows no more than `repr` does.
        from html import escape  # with every name of a letter there is: not for those without one

        def row(cells: tuple[object, ...]) -> str:
            shown = (f"<td style='text-align:left'>{escape(str(cell))}</td>" for cell in cells)
            return f"<tr>{''.join(shown)}</tr>"

        rows = "".join(map(row, self.preview())) if not self.secret else ""
        table = f"<table>{rows}</table>" if rows else ""
        return f"<p><b>{escape(repr(self)[1:-1])}</b></p>{table}"


def row_columns(rows: Sequence[Any]) -> dict[str, NDArray[Any]]:
    """Columns of dataclass instances of one type; a missing number is NaN."""
    names = [field.name for field in fields(rows[0])] if rows else []
    values = {name: [getattr(row, name) for row in rows] for name in names}
    return {
        name: np.array([np.nan if value is None else value for value in column])
        for name, column in values.items()
    }


def _without_formulas(column: NDArray[Any]) -> NDArray[Any]:
    if column.dtype.kind not in "UO":
        return column
    cells = [as_text(cell) if isinstance(cell, str) else cell for cell in column.tolist()]
    return np.array(cells, dtype=object)


def _arrow(columns: Mapping[str, NDArray[Any]]) -> Any:
    """A pyarrow.Table, with null for NaN."""
    import pyarrow as pa

    return pa.table(
        {name: pa.array(np.asarray(c), from_pandas=True) for name, c in columns.items()}
    )


def encode_columns(
    columns: Mapping[str, NDArray[Any]],
    table_format: LabelFormat,
    *,
    escape_formulas: bool = False,
) -> bytes:
    """A file with one row per entry; every column has the same length, a NaN is missing.

    `escape_formulas` as in `Result.save`.

    Raises:
        UsageError: a format that cannot hold named columns, or holds no formulas to escape.
    """
    if escape_formulas:
        refuse_escapes(table_format)
        columns = {name: _without_formulas(column) for name, column in columns.items()}
    table = _arrow(columns)
    if table_format is LabelFormat.JSONL:
        rows = table.to_pylist()
        return "".join(json.dumps(row, allow_nan=False) + "\n" for row in rows).encode()
    from pyarrow import csv, ipc, parquet

    sink = io.BytesIO()
    if table_format is LabelFormat.CSV:
        csv.write_csv(table, sink)
    elif table_format is LabelFormat.ARROW:
        with ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    elif table_format is LabelFormat.PARQUET:
        parquet.write_table(table, sink, write_page_checksum=True)
    else:
        raise UsageError(
            f"a table with named columns cannot be {table_format}; use .parquet, .arrow, .csv or"
            " .jsonl"
        )
    return sink.getvalue()
