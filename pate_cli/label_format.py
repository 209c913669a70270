"""The file formats of a label table; light enough for the command line to import at start-up."""

from __future__ import annotations

from enum import StrEnum
from pathlib import PurePath
from typing import Final

from pate_cli.errors import UsageError


class LabelFormat(StrEnum):
    """File formats of a label table."""

    PARQUET = "parquet"
    NPY = "npy"
    CSV = "csv"
    JSONL = "jsonl"

    @classmethod
    def from_path(cls, path: str | PurePath) -> LabelFormat:
        """The format that the suffix of `path` names, in any case of letters.

        UsageError, naming the choices, when it names none (`-` for standard output never does).
        """
        found = _SUFFIXES.get(PurePath(path).suffix.lower())
        if found is None:
            raise UsageError(
                f"cannot tell the label format of '{path}': end the name in"
                f" {', '.join(_SUFFIXES)}, or give --format {'|'.join(cls)}"
            )
        return found


_SUFFIXES: Final[dict[str, LabelFormat]] = {
    ".parquet": LabelFormat.PARQUET,
    ".npy": LabelFormat.NPY,
    ".csv": LabelFormat.CSV,
    ".jsonl": LabelFormat.JSONL,
    ".ndjson": LabelFormat.JSONL,
}
