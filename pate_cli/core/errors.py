"""The one error tree: every class carries the exit code the command line returns for it.

What messages show of files and of what users say is escaped and shortened here: a name may hold a
line feed, a command to the terminal, thousands of letters, or a password.

Credentials of addresses are looked for in two ways: in one name, whatever letters it holds, and in
a text in which names may stand, where a blank ends each. The first is for whoever shows a name; the
second stands behind every message, for what another library says of an address in words of its own.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

_LONGEST_NAME: Final = 60
_LONGEST_MESSAGE: Final = 600


def quoted(value: object) -> str:
    """Return the repr of a name, or of whatever stands in its place, at most 60 letters long."""
    return shortened(repr(value))


def shortened(text: str, most: int = _LONGEST_NAME) -> str:
    """Return a text of at most so many characters: of a longer one its beginning and its end.

    Credentials go first: of an address that is cut nobody could tell where they end.
    """
    text, tail = withheld(text), most // 3
    return text if len(text) <= most else f"{text[: most - tail - 3]}...{text[-tail:]}"


def printable(text: str) -> str:
    """Return a text on one line; what would break it or command a terminal is spelled out."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class PateError(Exception):
    """Raised when `pate` refuses: one line that says what is wrong and what to do about it.

    Catch it around any call of the library, to tell such a refusal from a bug. The line is
    printable and of bounded length, whatever the call was given.

        >>> try:
        ...     pate.aggregate([[90, 8, 2]], layout="counts", delta=2.0)
        ... except pate.PateError as error:
        ...     print(error)
        `delta` must be above 0 and below 1, got 2.0
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(shortened(printable(message), _LONGEST_MESSAGE))


class UsageError(PateError):
    """A flag or a combination of flags that makes no sense."""

    exit_code = 2


class ParameterError(UsageError, ValueError):
    """A number outside its admissible range; the message echoes it and names the range."""


class VoteError(PateError):
    """The vote file cannot be read as votes; messages cite rows, never votes."""

    exit_code = 3


class NotOpenedError(VoteError):
    """A file of votes that whoever reads cannot open: on a worker it may be somewhere else."""


class LedgerError(PateError):
    """A ledger file that is truncated, foreign, newer than this tool, or does not fit others."""

    exit_code = 3


class ReportError(PateError):
    """A file that is no report of this tool, or one it cannot read."""

    exit_code = 3


class MismatchError(PateError):
    """A report that does not agree with itself, or with the labels it came with."""

    exit_code = 10


class UncheckedError(PateError):
    """Something of a report was not checked, and `--strict` asks that all of it is."""

    exit_code = 11


class ValidityError(PateError):
    """An assumption of a theorem fails, so the number it would give cannot be trusted."""

    exit_code = 4


class UnreachableError(PateError):
    """A privacy target below what the settings can reach, or a budget that is exhausted."""

    exit_code = 5


class BudgetSpent(UnreachableError):  # noqa: N818 - what has happened, and no fault
    """Raised by a session that may ask no more: all that it was opened for is spent.

    >>> given = {"teachers": 250, "classes": 3, "mechanism": "gnmax", "sigma2": 40}
    >>> with pate.Session(**given, target_epsilon=1, record="asked.spent.json") as session:
    ...     try:
    ...         while True:
    ...             label = session.ask([240, 8, 2])
    ...     except pate.BudgetSpent as spent:
    ...         print(spent)
    the session may ask no more: its 75 queries have used up epsilon 0.9938
    """


class CeilingError(UnreachableError):
    """A run of which nothing is promised but an epsilon that promises practically nothing.

    `epsilon`, given as `max_epsilon`, is how one asks for it by name.
    """

    def __init__(self, message: str, *, epsilon: float) -> None:
        super().__init__(message)
        self.epsilon = epsilon


class OutputError(PateError):
    """An output exists already or cannot be written."""

    exit_code = 6


class SpentError(PateError):
    """The ledger was released before; a second draw would have to be paid for."""

    exit_code = 7


class EngineError(PateError):
    """The work cannot be done where it should be: no workers, cluster or random numbers."""

    exit_code = 9


# A path has lost the second slash, and may have gained a folder in front.
_ROOT: Final = r"(?<=[A-Za-z0-9+.-]{2}):(/+)"
_NAME: Final = re.compile(_ROOT + r"(.*)", re.DOTALL)
_IN_TEXT: Final = re.compile(_ROOT + r"([^\s/]\S*)")
_HOST: Final = re.compile(r"(?:\[[^\]]*\]|[^:]*)(?::[0-9]*)?")
# A quotation mark, or what ends a sentence, is no part of a query.
_END: Final = re.compile(r"""['"`)\]}>.,:;]*$""")
_LOCAL: Final = "file"


def without_credentials(name: str) -> str:
    """Return an address without user, password, query and fragment, any other name as it is."""
    return _NAME.sub(lambda found: f":{found[1]}{_bare(found, found[2])}", name, count=1)


def withheld(text: str) -> str:
    """Return a text in which the credentials of every address are left out."""
    return _IN_TEXT.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    end = _END.search(found[2])
    tail = "" if end is None else end[0]
    return f":{found[1]}{_bare(found, found[2].removesuffix(tail))}{tail}"


def _bare(found: re.Match[str], rest: str) -> str:
    """Return the rest of an address behind its slashes, without what may be secret."""
    local = found.string.startswith(_LOCAL, max(0, found.start() - len(_LOCAL)))
    # Of a path no folder is a host, but one that holds a password.
    if not local or len(found[1]) == 2 or re.match("[^/]*:[^/]*@", rest):
        rest = _without_user(rest)
    return re.split("[?#]", rest, maxsplit=1)[0]


def _without_user(rest: str) -> str:
    authority = re.split("[/?#]", rest, maxsplit=1)[0]
    user, at, host = authority.rpartition("@")
    if not at and _HOST.fullmatch(host):
        return rest
    if at and ":" not in user:
        return rest[len(user) + 1 :]
    # A password may hold a slash or a question mark that should have been escaped.
    _, at, after = rest.rpartition("@")
    return after if at else rest[len(authority) :]
