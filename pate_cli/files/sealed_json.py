"""JSON files that tell whether they are as they were written.

A ledger or a record that was damaged and still parses would be worse than one that is lost: a count
set to 0 or an emptied list would let a second draw through. Each carries the SHA-256 of its other
fields. Nobody's secret goes into it, so it shows accidents and is no protection against a forger.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any, Final

from pate_cli.core.errors import LedgerError, shortened

_CHECKSUM: Final = "checksum"
_LARGEST: Final = 1 << 28
"""Bytes; a device that never ends is told from a file by it."""


@dataclass(frozen=True)
class Form:
    """One kind of file.

    Attributes:
        kind: the word in its field `kind`.
        noun: what a person calls it.
        option: the parameter whose file it is.
        version: of its schema.
        unsealed: earlier versions, which carry no checksum.
    """

    kind: str
    noun: str
    option: str
    version: int
    unsealed: tuple[int, ...]

    def text(self, fields: Mapping[str, Any]) -> str:
        """The file; floats come back from it bit by bit."""
        content = {"kind": self.kind, "schema_version": self.version, **fields}
        sealed = {**content, _CHECKSUM: _checksum(content)}
        return json.dumps(sealed, indent=1, allow_nan=False) + "\n"

    def fields(self, text: str | bytes) -> dict[str, Any]:
        """What `text` was given.

        Raises:
            LedgerError: truncated, foreign, newer, or not as it was written.
        """
        try:
            content = json.loads(text, parse_constant=finite, parse_float=finite)
        except (ValueError, RecursionError):
            raise LedgerError(
                f"not a {self.noun}, or a truncated one: it is not valid JSON"
            ) from None
        if not isinstance(content, dict) or content.get("kind") != self.kind:
            raise LedgerError(
                f"not a {self.noun}: give a file that pate wrote with `{self.option}`"
            )
        version = content.get("schema_version")
        # A boolean or 2.0 would pass for a number.
        if type(version) is not int or version not in (*self.unsealed, self.version):
            raise LedgerError(
                f"the {self.noun} has schema version {shortened(str(version))}, this tool reads "
                f"{self.version}; use the version of pate that wrote it, or a newer one"
            )
        checksum = content.pop(_CHECKSUM, None)
        if version not in self.unsealed and not _agrees(checksum, content):
            raise LedgerError(
                f"the {self.noun} is damaged: it is not as pate wrote it; restore it from a copy"
            )
        return content


def content_of(path: str | PathLike[str], *, most: int = _LARGEST) -> bytes:
    """The bytes of a file; LedgerError where there are more than any file of its kind has."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(most + 1)
    except ValueError:
        raise LedgerError("is no name of a file") from None
    if len(content) > most:
        raise LedgerError(f"has over {most >> 20} MB, more than any file of its kind")
    return content


@contextlib.contextmanager
def named(path: str | PathLike[str]) -> Iterator[None]:
    """Errors in reading a file say which one it is."""
    try:
        yield
    except OSError as error:
        raise LedgerError(f"cannot read {Path(path)}: {error.strerror}") from None
    except LedgerError as error:
        raise LedgerError(f"{Path(path)}: {error}") from None


def finite(text: str) -> float:
    """A number as it is written; Python would read NaN and 1e999, which no file here has."""
    number = float(text)
    if not math.isfinite(number):
        raise LedgerError(
            "the file is damaged: it holds a number that is not finite; restore it from a copy"
        )
    return number


def _agrees(checksum: object, content: Mapping[str, Any]) -> bool:
    try:
        return checksum == _checksum(content)
    except RecursionError:  # deep enough to be read, and too deep to be written
        return False


def _checksum(content: Mapping[str, Any]) -> str:
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()


def said_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """An object in which no field stands twice: readers would differ in which one counts."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise LedgerError("states something twice")
    return found
