"""All classes of errors; each has the exit code that the command line returns for it.

This module also escapes and shortens names and values in messages, because a name may contain a
line break, a command to the terminal, thousands of letters, or a password.

Two functions remove passwords from addresses. `without_credentials` takes a single name of a file
or a cluster, which may be an address and may contain blanks. `withheld` takes a whole message, and
removes the passwords of all addresses in it; in a message, a blank ends an address. All messages go
through `withheld`, because texts of other libraries may quote an address with a password.

`brief` shortens the tracebacks of public functions.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable
from typing import ClassVar, Final, ParamSpec, TypeVar

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")

_LONGEST_NAME: Final = 60
_LONGEST_MESSAGE: Final = 600


def quoted(value: object) -> str:
    """Return the repr of a name or a value, shortened to at most 60 characters."""
    return shortened(repr(value))


def shortened(text: str, most: int = _LONGEST_NAME) -> str:
    """Return a text on one line of at most `most` characters; a longer text loses its middle.

    Credentials are removed before the text is shortened, because later `withheld` could not find
    where a password ends.
    """
    for change in (withheld, printable):  # A line break is longer when it is written out.
        text, tail = change(text), most // 3
        text = text if len(text) <= most else f"{text[: most - tail - 3]}...{text[-tail:]}"
    return text


def printable(text: str) -> str:
    """Return a text on one line; line breaks and commands to the terminal are escaped."""
    return "".join(c if c.isprintable() else repr(c)[1:-1] for c in text)


class PateError(Exception):
    """Raised when `pate` refuses something; the message says what is wrong and what to do.

    Code that calls the library can catch PateError to distinguish a refusal from a bug. The message
    is one printable line of limited length.

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
    """Raised if a keyword or a combination of keywords makes no sense."""

    exit_code = 2


class ParameterError(UsageError, ValueError):
    """Raised if a number is out of range; the message has the number and the range."""


class VoteError(PateError):
    """Raised if a file cannot be read as votes; messages name rows, but never quote votes."""

    exit_code = 3


class NotOpenedError(VoteError):
    """Raised if a file of votes cannot be opened; perhaps a worker has no file of this name."""


class LedgerError(PateError):
    """Raised if a ledger or record is damaged, has another version, or contradicts another file."""

    exit_code = 3


class ReportError(PateError):
    """Raised if a file is not a report, or cannot be read."""

    exit_code = 3


class MismatchError(PateError):
    """Raised if a report contradicts itself, its labels, or the record that contains its run."""

    exit_code = 10


class UncheckedError(PateError):
    """Raised under `--strict` if some checks of a report could not be made."""

    exit_code = 11


class ValidityError(PateError):
    """Raised if a condition of a published theorem fails, so that its result may be wrong."""

    exit_code = 4


class UnreachableError(PateError):
    """Raised if a privacy target cannot be reached, or a budget would be exceeded."""

    exit_code = 5


class BudgetSpent(UnreachableError):  # noqa: N818 - the usual end of a session, not an error
    """Raised by a session whose queries have used up its target ε, so that it may ask no more.

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
    """Raised if a run without `max_epsilon` could cost so much that it protects hardly anybody.

    To start the run anyway, pass the attribute `epsilon` of this error as `max_epsilon`.
    """

    def __init__(self, message: str, *, epsilon: float) -> None:
        super().__init__(message)
        self.epsilon = epsilon


class OutputError(PateError):
    """Raised if an output exists already or cannot be written."""

    exit_code = 6


class SpentError(PateError):
    """Raised if a sanitized ε was already drawn from a ledger; a second draw costs more privacy."""

    exit_code = 7


class EngineError(PateError):
    """Raised if workers or a cluster fail, or if the system gives no random numbers."""

    exit_code = 9


# After an address was treated as a path, it has only one slash, and may stand behind a folder.
_ROOT: Final = r"(?<=[A-Za-z0-9+.-]{2}):(/+)"
_NAME: Final = re.compile(_ROOT + r"(.*)", re.DOTALL)
_IN_TEXT: Final = re.compile(_ROOT + r"([^\s/]\S*)")
_HOST: Final = re.compile(r"(?:\[[^\]]*\]|[^:]*)(?::[0-9]*)?")
# A closing quotation mark, bracket or punctuation mark is not part of an address.
_END: Final = re.compile(r"""['"`)\]}>.,:;]*$""")
_LOCAL: Final = "file"


def without_credentials(name: str) -> str:
    """Return an address, such as a URL, without its user, password, ?query and #fragment.

    A name that is not an address, such as a path, is returned unchanged.
    """
    return _NAME.sub(lambda found: f":{found[1]}{_bare(found, found[2])}", name, count=1)


def withheld(text: str) -> str:
    """Return a text without the credentials of the addresses in it."""
    return _IN_TEXT.sub(_shown, text)


def _shown(found: re.Match[str]) -> str:
    end = _END.search(found[2])
    tail = "" if end is None else end[0]
    return f":{found[1]}{_bare(found, found[2].removesuffix(tail))}{tail}"


def _bare(found: re.Match[str], rest: str) -> str:
    """Return the part of an address that follows `:/` or `://`, without possible secrets."""
    local = found.string.startswith(_LOCAL, max(0, found.start() - len(_LOCAL)))
    # After `file:`, the first name is a host only behind two slashes, or if it contains a password.
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
    # A password may contain a slash or a question mark that was not escaped.
    _, at, after = rest.rpartition("@")
    return after if at else rest[len(authority) :]


def brief(function: Callable[_Given, _Result]) -> Callable[_Given, _Result]:
    """Shorten the traceback of a PateError, unless PATE_DEBUG is set.

    The shortened traceback only shows the caller's line and one line of pate.
    """

    @functools.wraps(function)
    def called(*args: _Given.args, **given: _Given.kwargs) -> _Result:
        __tracebackhide__ = True
        try:
            return function(*args, **given)
        except PateError as error:
            if os.environ.get("PATE_DEBUG"):
                raise
            raise error.with_traceback(None) from None

    return called
