"""A session that reads queries as lines of JSON and writes one line with a label for each."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import IO, Any, Final, TypeAlias

from pate_cli.core.errors import BudgetSpent, UsageError, VoteError
from pate_cli.files.document import Refusal, parsed
from pate_cli.verbs.session import Ask, Session

_LONGEST: Final = 1 << 24  # bytes
_FIELDS: Final = frozenset({"id", "counts", "votes", "prior"})
_Query: TypeAlias = tuple[int, Any, Ask | VoteError]
"""The number of a line, the id of its query, and its query, or an error if it has no query."""


def answers_to(session: Session, source: IO[bytes], *, strict: bool = False) -> Iterator[str]:
    """Yield one line of JSON per query; queries that arrive together are answered together.

        for lines in answers_to(session, sys.stdin.buffer): sys.stdout.write(lines)

    Args:
        session: the session that answers the queries.
        source: a binary stream with one query per line.
        strict: whether to end at the first line that is not a query. If False, a line that is
            not a query gets an error as its answer, and the session goes on.

    Raises:
        BudgetSpent: the session has ended; it answered as many queries as it could.
        VoteError, UsageError: a line is not a query, and `strict` is True.
        OutputError: the cost of an answer cannot be written to disk.
    """
    for lines in _lines(source):
        queries = [_query(number, line) for number, line in lines if line.strip()]
        if queries:
            yield from _answered(session, queries, strict=strict)


def _answered(session: Session, waiting: Sequence[_Query], *, strict: bool) -> Iterator[str]:
    """Yield answers in order; a line that is not a query gets an error, and costs nothing."""
    try:
        labels = session.answered([_ask(query) for _, _, query in waiting])
    except (VoteError, UsageError) as error:
        if (half := len(waiting) // 2) > 0:  # Halves are tried alone, to find the wrong line.
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
    """Return the query of a line; raise the error of a line that is not a query."""
    if isinstance(query, VoteError):
        raise query
    return query


def _line(name: Any, **said: Any) -> str:
    """Return an answer as a line, with the id of its query if the id is a text or a number."""
    named = {"id": name} if isinstance(name, str | int) else {}
    return json.dumps(named | said) + "\n"


def _lines(source: IO[bytes]) -> Iterator[list[tuple[int, bytes]]]:
    """Yield lists of lines with their numbers from 1; a list has lines that arrived together."""
    number, begun, size = 0, [b""], 0  # Pieces of the line that has not ended yet, and their bytes.
    read = getattr(source, "read1", source.read)
    while chunk := read(1 << 16):
        end, *more = chunk.split(b"\n")
        begun.append(end)
        size += len(end)
        if more:
            whole = [b"".join(begun), *more[:-1]]
            yield list(enumerate(whole, number + 1))
            number, begun, size = number + len(whole), [more[-1]], len(more[-1])
        if size > _LONGEST:
            raise VoteError(
                f"line {number + 1} is longer than {_LONGEST >> 20} MB; write one query per line"
            )
    rest = b"".join(begun)
    if rest.strip():
        yield [(number + 1, rest)]


def _query(number: int, line: bytes) -> _Query:
    """Return the number of a line, the id of its query, and its query or an error."""
    damaged, name = Refusal(VoteError, "not a query: "), None
    try:
        said = parsed(line, damaged, most=_LONGEST)
        if not isinstance(said, dict):
            raise damaged.of("a line must be a JSON object")
        name = said.get("id")
        if not _FIELDS.issuperset(said):
            raise damaged.of(f"the only fields of a query are {', '.join(sorted(_FIELDS))}")
        if ("counts" in said) == ("votes" in said):
            raise damaged.of("a query has either counts or votes")
    except VoteError as error:
        return number, name, error
    votes: Any = said.get("counts", said.get("votes"))
    return number, name, Ask(votes, said.get("prior"), name, by_teacher="votes" in said)
