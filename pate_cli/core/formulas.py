"""Texts that a spreadsheet would take for formulas, where it opens them as CSV."""

from __future__ import annotations

from typing import Final

from pate_cli.core.errors import UsageError
from pate_cli.core.words import LabelFormat

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def as_text(text: str) -> str:
    """With an apostrophe before what a spreadsheet would take for a formula.

    [OWASP, "CSV Injection"]
    """
    return f"'{text}" if text.startswith(_FORMULA) else text


def refuse_escapes(kind: LabelFormat | str) -> None:
    """UsageError for formulas that are escaped in any format but CSV, which have none."""
    if kind != LabelFormat.CSV:
        raise UsageError(
            f"`escape_formulas` is for CSV, which spreadsheets read; leave it out with {kind}"
        )
