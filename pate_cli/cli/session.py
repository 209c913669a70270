"""`pate session`: votes as JSON lines in, labels as JSON lines out, each paid for before."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import IO, TYPE_CHECKING, Any, Final

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.view import QUIET, View
from pate_cli.core.errors import BudgetSpent, UsageError, VoteError
from pate_cli.files.existing import REPORT
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.parameters.keywords import keywords_of, with_options
from pate_cli.verbs.parameters.kinds import FileName

if TYPE_CHECKING:
    from pate_cli.verbs.session import Ask, Session

_LONGEST: Final = 1 << 26
_FIELDS: Final = frozenset({"id", "counts", "votes", "prior"})


@command(verbs.session, QUIET)
def session(
    asked: dict[str, Any],
    view: View,
    *,
    report: FileName | None = None,
    strict: bool = False,
    force: bool = False,
) -> None:
    """Ask as you go: votes on stdin and labels on stdout, a JSON object a line.

    A line is {"id": "q7", "counts": [3, 240, 7]}, or "counts": {"cat": 240, "dog": 7} by class, or
    "votes": ["cat", null, "dog"], what each teacher said; with "prior" where there is a public
    guess. The answer is {"id": "q7", "label": 1, "remaining": 618}, the label null where the
    teachers do not agree, and comes once what it costs is on disk, in the record. A line that is no
    query is answered by {"id": "q7", "error": "line 7: ..."} and costs nothing.

    The same command goes on where it was; an id that was asked before gets the same answer. What
    all of it costs is fixed beforehand and holds however the queries are chosen.

      your_program | pate session --teachers 250 --classes 3 --target-epsilon 2 --spend year.json
    """
    from pate_cli.verbs.session import Session

    terminal.refuse_closed()
    if report == "-":
        raise UsageError("`report` needs the name of a file; stdout is for labels")
    if sys.stdin is None or sys.stdin.closed:
        raise VoteError("cannot read standard input: it is closed")
    with terminal.outputs(force=force) as out:
        if report is not None:
            out.reserve(report, replaces=REPORT)
            out.try_out()
        with Session(**asked) as opened:
            view.note(_opening(opened))
            spent = _asked(opened, sys.stdin.buffer, strict=strict)
            if terminal.told_to_person():  # of the votes, so for whoever hands them in alone
                for sentence in opened.unmatched.sentences():
                    view.note(sentence)
            if report is not None and opened.asked:
                out.write(report, opened.report().to_json().encode())
    if spent is not None:
        raise spent


def _opening(session: Session) -> str:
    rule = session.rule
    more = f", up to {rule.most} where few are answered" if rule.most > rule.asks else ""
    before = f"; {session.asked} were asked before" if session.asked else ""
    return f"epsilon {rule.epsilon:g} at delta {rule.delta:g} for {rule.asks} queries{more}{before}"


def _asked(session: Session, source: IO[bytes], *, strict: bool) -> BudgetSpent | None:
    """Answer as lines come: those that wait already are paid for together."""
    for lines in _lines(source):
        waiting: list[tuple[int, Ask]] = []
        for number, line in lines:
            if not line.strip():
                continue
            name, ask = _query(number, line)
            if not isinstance(ask, VoteError):
                waiting.append((number, ask))
                continue
            if not _answer(session, waiting, strict=strict):
                return BudgetSpent(session.why_spent)
            waiting = []
            _refuse(name, ask, strict=strict)
        if not _answer(session, waiting, strict=strict):
            return BudgetSpent(session.why_spent)
    return None


def _answer(session: Session, waiting: list[tuple[int, Ask]], *, strict: bool) -> bool:
    """Answer these queries in order; return whether the session could ask all of them."""
    if not waiting:
        return True
    try:
        labels = session.answered([ask for _, ask in waiting])
    except (VoteError, UsageError) as error:
        if len(waiting) > 1:
            # Those beside the one that is wrong are answered all the same.
            return all(_answer(session, [one], strict=strict) for one in waiting)
        (number, ask) = waiting[0]
        _refuse(ask.id, type(error)(f"line {number}: {error}"), strict=strict)
        return True
    remaining = session.remaining
    _write(
        {**_named(ask.id), "label": label, "remaining": remaining}
        for (_, ask), label in zip(waiting, labels, strict=False)
    )
    return len(labels) == len(waiting)


def _refuse(name: Any, error: VoteError | UsageError, *, strict: bool) -> None:
    """Answer a line that is no query by an error, which costs nothing; or raise that."""
    if strict:
        raise error
    told = with_options(str(error), keywords_of(verbs.session))
    _write([{**_named(name), "error": told}])


def _named(name: Any) -> dict[str, Any]:
    """Return the id of a query as its answer repeats it, if it has one that could be one."""
    return {"id": name} if isinstance(name, str | int) else {}


def _write(answers: Iterable[dict[str, Any]]) -> None:
    terminal.answered()
    sys.stdout.writelines(json.dumps(answer) + "\n" for answer in answers)
    sys.stdout.flush()


def _lines(source: IO[bytes]) -> Iterator[list[tuple[int, bytes]]]:
    """Lines with their numbers from 1, as many at once as there are."""
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


def _query(number: int, line: bytes) -> tuple[Any, Ask | VoteError]:
    """Return the id of a line, if it has one, and what it asks, or the error that it is."""
    from pate_cli.files.document import Refusal, parsed
    from pate_cli.verbs.session import Ask

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
        return name, VoteError(f"line {number}: {error}")
    votes: Any = said.get("counts", said.get("votes"))
    return name, Ask(votes, said.get("prior"), name, by_teacher="votes" in said)
