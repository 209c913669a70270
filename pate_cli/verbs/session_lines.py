"""A session over lines of JSON: queries in, labels out; those that wait are paid for together."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import IO, Any, Final, TypeAlias

from pate_cli.core.errors import BudgetSpent, UsageError, VoteError
from pate_cli.files.document import Refusal, parsed
from pate_cli.verbs.session import Ask, Session

_LONGEST: Final = 1 << 26
_FIELDS: Final = frozenset({"id", "counts", "votes", "prior"})
_Query: TypeAlias = tuple[int, Any, Ask | VoteError]
"""The number and id of a line, and what it asks, or the error that it is."""


def answers_to(session: Session, source: IO[bytes], *, strict: bool = False) -> Iterator[str]:
    """Yield the answers to lines of JSON as they come, a line each, several together.

        for lines in answers_to(session, sys.stdin.buffer): sys.stdout.write(lines)

    Args:
        session: answers the queries.
        source: has a query in each line.
        strict: end at the first line that is no query, instead of answering it by an error.

    Raises:
        BudgetSpent: no more may be asked; what could be answered was.
        VoteError, UsageError: a line is no query, and `strict` asks to end there.
        OutputError: what an answer costs cannot be noted on disk.
    """
    for lines in _lines(source):
        queries = [_query(number, line) for number, line in lines if line.strip()]
        if queries:
            yield from _answered(session, queries, strict=strict)


def _answered(session: Session, waiting: Sequence[_Query], *, strict: bool) -> Iterator[str]:
    """Yield the answers to queries in order; one that is none is answered for nothing."""
    try:
        labels = session.answered([_ask(query) for _, _, query in waiting])
    except (VoteError, UsageError) as error:
        if (half := len(waiting) // 2) > 0:  # those beside the one that is wrong are answered
            yield from _answered(session, waiting[:half], strict=strict)
            yield from _answered(session, waiting[half:], strict=strict)
            return
        number, name, _ = waiting[0]
        error = type(error)(f"line {number}: {error}")
        if strict:
            raise error from None
        yield _line(name, error=str(error))
        return
    remaining = session.remaining
    told = zip(waiting, labels, strict=False)
    yield "".join(_line(name, label=label, remaining=remaining) for (_, name, _), label in told)
    if len(labels) < len(waiting):
        raise BudgetSpent(session.why_spent)


def _ask(query: Ask | VoteError) -> Ask:
    if isinstance(query, VoteError):
        raise query
    return query


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


def _query(number: int, line: bytes) -> _Query:
    """Return the number and id of a line, and what it asks, or the error that it is."""
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
        return number, name, error
    votes: Any = said.get("counts", said.get("votes"))
    return number, name, Ask(votes, said.get("prior"), name, by_teacher="votes" in said)
