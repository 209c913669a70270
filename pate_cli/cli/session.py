"""`pate session`: votes as JSON lines in, labels as JSON lines out, each paid for before."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pate_cli.cli import terminal
from pate_cli.cli.command import command
from pate_cli.cli.view import QUIET, View
from pate_cli.core.errors import BudgetSpent, UsageError, VoteError
from pate_cli.files.protected import REPORT, note_stream
from pate_cli.verbs import signatures as verbs
from pate_cli.verbs.keywords import FileName, keywords_of, with_options

if TYPE_CHECKING:
    from pate_cli.verbs.session import Session


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
    from pate_cli.verbs.session_lines import answers_to

    keywords, spent = keywords_of(verbs.session), None
    terminal.refuse_closed()
    if report == "-":
        raise UsageError("`report` needs the name of a file; stdout is for labels")
    if sys.stdin is None or sys.stdin.closed:
        raise VoteError("cannot read standard input: it is closed")
    note_stream("the queries", sys.stdin)
    with terminal.outputs(force=force) as out:
        if report is not None:
            out.reserve(report, replaces=REPORT)
            out.try_out()
        with Session(**asked) as opened:
            view.note(_opening(opened))
            try:
                for lines in answers_to(opened, sys.stdin.buffer, strict=strict):
                    terminal.answered()
                    terminal.write(with_options(lines, keywords))
            except BudgetSpent as error:
                spent = error
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
