"""The one error tree: every class carries the exit code the command line returns for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from pate_cli.disclosure.report import Report


class PateError(Exception):
    """Anything `pate` refuses to do; the message is one line and says what to do about it."""

    exit_code: ClassVar[int] = 1


class UsageError(PateError):
    """A flag or a combination of flags that makes no sense."""

    exit_code = 2


class ParameterError(UsageError, ValueError):
    """A number outside its admissible range; the message echoes it and names the range."""


class VoteError(PateError):
    """The vote file cannot be read as votes; messages cite rows, never votes."""

    exit_code = 3


class LedgerError(PateError):
    """A ledger file that is truncated, foreign, newer than this tool, or does not fit others."""

    exit_code = 3


class ValidityError(PateError):
    """An assumption of a theorem fails, so the number it would give cannot be trusted."""

    exit_code = 4


class UnreachableError(PateError):
    """A privacy target below what the settings can reach, or a budget that is exhausted."""

    exit_code = 5


class OutputError(PateError):
    """An output exists already or cannot be written."""

    exit_code = 6


class SpentError(PateError):
    """The ledger was released before; a second draw would have to be paid for."""

    exit_code = 7


class EngineError(PateError):
    """The work cannot be done where it should be: no workers, cluster or random numbers."""

    exit_code = 9


class RefusedError(PateError):
    """A tested budget came out against the labels; `report` is what may be published about it."""

    exit_code = 8

    def __init__(self, message: str, report: Report) -> None:
        """`report` is the public report of the refusal."""
        super().__init__(message)
        self.report = report
