"""`pate session`: reads votes as lines of JSON, and writes labels as lines of JSON."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from pate_cli.cli import terminal
from pate_cli.cli.app import command
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
    """Ask queries one by one: votes on stdin, labels on stdout, one JSON object per line.

    A query is {"id": "q7", "counts": [3, 240, 7]}. The counts may also be given by class: "counts":
    {"cat": 240, "dog": 7}. Instead of "counts", a query may have one vote per teacher: "votes":
    ["cat", null, "dog"]. A public guess is "prior". The answer is {"id": "q7", "label": 1,
    "remaining": 618}. The label is null if too few teachers agree, after noise. The cost of an
    answer is on disk, in the record, before the answer is sent. A line that is not a query costs
    nothing; its answer is {"id": "q7", "error": "line 7: ..."}.

    To continue a session later, give the same command again. A query with an id that was asked
    before gets the same answer. The cost of the whole session is fixed beforehand, and is valid
    even if queries depend on answers.

      your_program | pate session --teachers 250 --classes 3 --target-epsilon 2 --spend year.json
    """
    from pate_cli.verbs.session import Session, answers_to

    keywords, spent = keywords_of(verbs.session), None
    terminal.refuse_closed()
    if report == "-":
        raise UsageError(
            "`report` needs the name of a file, because a session writes its labels to stdout"
        )
    if sys.stdin is None or sys.stdin.closed:
        raise VoteError("cannot read standard input: it is closed; connect a pipe or a file")
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
            if terminal.told_to_person():  # Only the holder of the votes may see it.
                for sentence in opened.unmatched.sentences():
                    view.note(sentence)
            if report is not None and opened.asked:
                out.write(report, opened.report().to_json().encode())
    if spent is not None:
        raise spent


def _opening(session: Session) -> str:
    rule = session.rule
    more = f", up to {rule.most} if few get a label" if rule.most > rule.asks else ""
    before = f"; {session.asked} queries were asked before" if session.asked else ""
    return f"epsilon {rule.epsilon:g} at delta {rule.delta:g} for {rule.asks} queries{more}{before}"
