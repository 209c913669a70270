"""JSON files that tell whether they are as they were written.

A ledger or a record that was damaged and still parses would be worse than one that is lost: a count
set to 0 or an emptied list would let a second draw through. Each carries the SHA-256 of its other
fields. Nobody's secret goes into it, so it shows accidents and is no protection against a forger.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar

from pate_cli.core.codec import Refusal, decoded, encoded, parsed
from pate_cli.core.errors import LedgerError, shortened
from pate_cli.files.reading import LARGEST

_T = TypeVar("_T")

_CHECKSUM: Final = "checksum"


@dataclass(frozen=True)
class Form:
    """One kind of file.

    Attributes:
        kind: the word in its field `kind`.
        noun: what a person calls it, which is also the parameter that names such a file.
        version: of its schema.
        marks: fields that are the same in every file of the kind.
    """

    kind: str
    noun: str
    version: int
    marks: Mapping[str, Any] = field(default_factory=dict)

    def text(self, value: Any) -> str:
        """Return the file of a dataclass; floats come back from it bit by bit."""
        content = {
            "kind": self.kind, "schema_version": self.version, **self.marks, **encoded(value)
        }  # fmt: skip
        sealed = {**content, _CHECKSUM: _checksum(content)}
        return json.dumps(sealed, indent=1, allow_nan=False) + "\n"

    def read(self, kind: type[_T], text: str | bytes) -> _T:
        """Return the dataclass that a file holds.

        Raises:
            LedgerError: truncated, foreign, newer, damaged, or not as it was written.
        """
        noun, ours = self.noun, f"give a file that pate wrote with `{self.noun}`"
        not_parsed = Refusal(LedgerError, f"not a {noun}, or a damaged one: ", f"; {ours}")
        content = parsed(text, not_parsed, most=LARGEST)
        if not isinstance(content, dict) or content.get("kind") != self.kind:
            raise LedgerError(f"not a {noun}: {ours}")
        version = content.get("schema_version")
        # True and 1.0 equal 1.
        if type(version) is not int or version != self.version:
            raise LedgerError(
                f"the {noun} has schema version {shortened(str(version))}, this tool reads "
                f"{self.version}; use the version of pate that wrote it, or a newer one"
            )
        damaged = Refusal(LedgerError, f"the {noun} is damaged: ", "; restore it from a copy")
        if not _agrees(content.pop(_CHECKSUM, None), content):
            raise damaged.of("it is not as pate wrote it")
        if any(content.get(name) is not mark for name, mark in self.marks.items()):
            raise damaged.of(f"it must say {json.dumps(self.marks)}")
        for name in ("kind", "schema_version", *self.marks):
            del content[name]
        return decoded(kind, content, damaged)


def _agrees(checksum: object, content: Mapping[str, Any]) -> bool:
    try:
        return checksum == _checksum(content)
    except RecursionError:  # deep enough to be read, and too deep to be written
        return False


def _checksum(content: Mapping[str, Any]) -> str:
    plain = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(plain.encode()).hexdigest()
