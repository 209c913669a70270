"""A session over lines of JSON: queries in, labels out; those that wait are paid for together."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import IO, Any, Final

from pate_cli.core.errors import UsageError, VoteError
from pate_cli.files.document import Refusal, parsed
from pate_cli.verbs.session import Ask, Session

_LONGEST: Final = 1 << 26
_FIELDS: Final = frozenset({"id", "counts", "votes", "prior"})


class SessionLines:
    """Answers lines as they come, each by one line.

        SessionLines(session, sys.stdout.write).answer(sys.stdin.buffer)

    Attributes:
        session: what answers.
        write: takes the answers, one line or several.
        strict: end at the first line that is no query, instead of answering it by an error.
    """

    def __init__(
        self, session: Session, write: Callable[[str], None], *, strict: bool = False
    ) -> None:
        self.session, self.write, self.strict = session, write, strict

    def answer(self, source: IO[bytes]) -> bool:
        """Answer all lines; return False once no more may be asked.

        Raises:
            VoteError, UsageError: a line is no query, and `strict` asks to end there.
            OutputError: what an answer costs cannot be noted on disk.
        """
        for lines in _lines(source):
            waiting: list[tuple[int, Ask]] = []
            for number, line in lines:
                if not line.strip():
                    continue
                name, ask = _query(line)
                if isinstance(ask, Ask):
                    waiting.append((number, ask))
                    continue
                if not self._answered(waiting):
                    return False
                waiting = []
                self._refuse(number, name, ask)
            if not self._answered(waiting):
                return False
        return True

    def _answered(self, waiting: list[tuple[int, Ask]]) -> bool:
        """Answer these queries in order; return whether the session could ask all of them."""
        if not waiting:
            return True
        try:
            labels = self.session.answered([ask for _, ask in waiting])
        except (VoteError, UsageError) as error:
            if len(waiting) > 1:
                # Those beside the one that is wrong are answered all the same.
                return all(self._answered([one]) for one in waiting)
            ((number, ask),) = waiting
            self._refuse(number, ask.id, error)
            return True
        remaining = self.session.remaining
        told = [
            _line(ask.id, label=label, remaining=remaining)
            for (_, ask), label in zip(waiting, labels, strict=False)
        ]
        self.write("".join(told))
        return len(labels) == len(waiting)

    def _refuse(self, number: int, name: Any, error: VoteError | UsageError) -> None:
        """Answer a line that is no query by an error, which costs nothing; or raise that."""
        error = type(error)(f"line {number}: {error}")
        if self.strict:
            raise error
        self.write(_line(name, error=str(error)))


def _line(name: Any, **said: Any) -> str:
    """Return an answer as a line, with the id of its query if that has one that could be one."""
    named = {"id": name} if isinstance(name, str | int) else {}
    return json.dumps(named | said) + "\n"


def _lines(source: IO[bytes]) -> Iterator[list[tuple[int, bytes]]]:
    """Yield lines with their numbers from 1, as many at once as there are."""
    number, rest = 0, b""
    read = getattr(source, "read1", source.read)
    while chunk := read(1 << 16):
        *whole, rest = (rest + chunk).split(b"\n")
        if len(rest) > _LONGEST:
            raise VoteError(f"line {number + len(whole) + 1} is longer than any votes are")
        if whole:
            yield list(enumerate(whole, number + 1))
            number += len(whole)
    if rest.strip():
        yield [(number + 1, rest)]


def _query(line: bytes) -> tuple[Any, Ask | VoteError]:
    """Return the id of a line, if it has one, and what it asks, or the error that it is."""
    damaged, name = Refusal(VoteError, "no query: "), None
    try:
        said = parsed(line, damaged, most=_LONGEST)
        if not isinstance(said, dict):
            raise damaged.of("a line is an object")
        name = said.get("id")
        if not _FIELDS.issuperset(said):
            raise damaged.of(f"its fields are {', '.join(sorted(_FIELDS))}, and it has another")
        if ("counts" in said) == ("votes" in said):
            raise damaged.of("it has either counts or votes")
    except VoteError as error:
        return name, error
    votes: Any = said.get("counts", said.get("votes"))
    return name, Ask(votes, said.get("prior"), name, by_teacher="votes" in said)
