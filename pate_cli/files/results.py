"""Results of the verbs: frozen values with a table, a file and a few words on themselves.

Tables have every format that labels have but NPY, which holds numbers without names.
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
    """A result: JSON-ready facts, and a table of whatever it holds many of."""

    @property
    def releasable(self) -> bool:
        """Return False for what describes the votes; its files are its owner's alone."""
        return False

    @property
    def secret(self) -> bool:
        """Return True for what is its owner's alone; what is not to be published need not be."""
        return not self.releasable

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Return the facts, ready for JSON, in a stable order of keys."""

    @abstractmethod
    def columns(self) -> Mapping[str, NDArray[Any]]:
        """Return the table: columns of one length by name."""

    @abstractmethod
    def headline(self) -> str:
        """Return a few words on the result."""

    def to_json(self) -> str:
        """Return indented JSON with a final newline; never NaN or Infinity."""
        return json.dumps(self.to_dict(), indent=2, allow_nan=False) + "\n"

    def to_arrow(self) -> Any:
        """Return the table as a pyarrow.Table, with null for what is missing."""
        import pyarrow as pa

        columns = {name: np.asarray(column) for name, column in self.columns().items()}
        return pa.table({name: pa.array(each, from_pandas=True) for name, each in columns.items()})

    def to_pandas(self) -> Any:
        """Return the table as a pandas.DataFrame.

        Whole numbers stay so beside missing ones (Int64).

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

    def save(self, path: str | os.PathLike[str], *, force: bool = False) -> None:
        """Write a file, whole or not at all: facts, or the table in the format that its name says.

        Args:
            path: where to: facts end in .json, tables in .parquet, .csv, .jsonl or .arrow. Mode
                0600 unless the result may be published, and only then an address of a store.
            force: replace a file that holds such a result, and no other.

        Raises:
            OutputError: the file exists already, or cannot be written.
            UsageError: another suffix.
        """
        from pate_cli.files.outputs import Outputs  # most results are looked at and not kept

        with Outputs(force=force) as out:
            replaces = self._replaces(public_name(os.fspath(path)))
            out.reserve(path, mode=0o600 if self.secret else 0o644, replaces=replaces)
            with out.open(path) as file:
                self.write(file, public_name(os.fspath(path)))

    def _replaces(self, path: str) -> Replaces:
        """Return which files of this name make way for it under `force`: those that begin alike."""
        suffix = PurePath(path).suffix.lower()
        if suffix == ".json":
            return beginning(re.escape(self.to_json().partition(":")[0].encode()))
        return columns_in(LabelFormat.from_path(path), *self.columns())

    def write(self, file: IO[bytes], path: str | os.PathLike[str]) -> None:
        """Write the content of a file named `path` to the binary file object `file`; see `save`."""
        if PurePath(path).suffix.lower() == ".json":
            file.write(self.to_json().encode())
        else:
            kind = LabelFormat.from_path(os.fspath(path))
            file.write(encoded_table(self.to_arrow(), kind))

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.headline()}{'; SECRET' if self.secret else ''}>"

    def said(self) -> Said:
        """Return what a person reads below the headline, at a terminal and in a notebook."""
        return ()

    def _repr_html_(self) -> str:
        # A notebook is kept and passed on: of a secret it shows no more than `repr` does.
        return as_html([Line(repr(self)[1:-1], "bold"), *(() if self.secret else self.said())])


_LONGEST_LINE: Final = 1 << 16


def column_names(file: IO[bytes], kind: LabelFormat) -> tuple[str, ...]:
    """Return the names of the columns of an open table; none of a file of another format."""
    from pyarrow import ipc, parquet

    names: Iterable[str] = ()
    with contextlib.suppress(Exception):  # whatever a library raises of a file of another kind
        if kind is LabelFormat.PARQUET:
            names = parquet.read_schema(file).names
        elif kind is LabelFormat.ARROW:
            names = ipc.open_file(file).schema.names
        elif kind is LabelFormat.JSONL:
            names = json.loads(file.readline(_LONGEST_LINE))
        else:  # a name may break the line
            start = io.StringIO(file.read(_LONGEST_LINE).decode(errors="replace"), newline="")
            names = next(csv.reader(start))
    return tuple(names)


def columns_in(kind: LabelFormat, *columns: str) -> Replaces:
    """Replace tables in a format that begin with these columns."""
    return lambda file: column_names(file, kind)[: len(columns)] == columns


def encoded_table(table: Any, kind: LabelFormat) -> bytes:
    """Return the content of a file of a pyarrow.Table.

    UsageError for a format that cannot hold named columns, as NPY.
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
