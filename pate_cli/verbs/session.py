"""A session: queries come one by one, and each answer is paid for before it leaves."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import numpy as np

from pate_cli.core.arrays import NO_LABEL
from pate_cli.core.errors import (
    BudgetSpent,
    LedgerError,
    OutputError,
    UsageError,
    VoteError,
    quoted,
)
from pate_cli.core.noise import RunKey
from pate_cli.disclosure.entry import Entry
from pate_cli.disclosure.facts import report_of, run_facts
from pate_cli.disclosure.figures import nats
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.record import SpendRecord, asked_so_far
from pate_cli.disclosure.record_place import RecordPlace, held
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.runs import Run, Spent
from pate_cli.disclosure.settings import StopRule
from pate_cli.files.inputs import note
from pate_cli.labels.labels import Labels
from pate_cli.mechanisms.base import Mechanism
from pate_cli.run.labelling import DrawLabels
from pate_cli.verbs import signatures
from pate_cli.verbs.door import brief, opened_by
from pate_cli.verbs.promise import budget_of, record_of
from pate_cli.verbs.session_answers import Answer, Answers, Id, labels_of
from pate_cli.verbs.session_opening import Opening
from pate_cli.votes.ballot import Ballot, Votes
from pate_cli.votes.unmatched import Unmatched
from pate_cli.votes.vote_file import VoteBatch

_AT_ONCE: Final = 1 << 12


@dataclass(frozen=True)
class Ask:
    """One query of several that are asked at once, with its guess and its name.

        >>> asks = [pate.Ask([3, 240, 7], id="q1"), pate.Ask([3, 240, 7], id="q1")]
        >>> given = {"teachers": 250, "classes": 3, "mechanism": "gnmax", "sigma2": 40}
        >>> with pate.Session(**given, target_epsilon=1, record="both.spent.json") as session:
        ...     session.ask_all(asks), session.asked
        ([1, 1], 1)

    Attributes:
        votes: as `Session.ask` takes them.
        prior: the public guess, if there is one.
        id: by which it is known; None for none.
        by_teacher: the votes are what each teacher said, also where they are numbers.
    """

    votes: Votes
    prior: str | int | None = None
    id: Id = None
    by_teacher: bool = False


class Session:
    """Ask for labels one by one; every answer is paid for, on disk, before it leaves.

    Use it for votes that do not lie in a file: a model is asked line by line, what is asked next
    follows from the answers, or asking ends when the budget does. What all of it costs is fixed
    when it is opened, and holds however queries are chosen.

        >>> asked = {"teachers": 250, "classes": 3, "target_epsilon": 2}
        >>> with pate.Session(**asked, record="asked.spent.json") as session:
        ...     label = session.ask([3, 240, 7], id="q7")
        ...     again = session.ask([3, 240, 7], id="q7")  # known: nothing is drawn or spent
        ...     label == again, session.remaining
        (True, 618)

    Opened again with the same settings it goes on where it was. An `id` that was asked before gets
    the answer that it got. `remaining` is how many more queries are answered for sure, by a label
    or by None where the teachers do not agree; more may be where that happens often. Then `ask`
    raises `BudgetSpent`.
    """

    @opened_by(signatures.session)
    def __init__(self, **asked: Any) -> None:
        """Open the session, or open it again.

        A session needs a `record` or an `ensemble`, which several sessions and runs may share.

        Raises:
            UnreachableError: not one query is paid for, or the budget is exhausted.
            OutputError: the record cannot be written.
            PateError: whatever else is refused.
        """
        self._key, self._answers = RunKey.of(asked["seed"]), Answers()
        self._opening = opening = Opening.of(asked)
        names, private = opening.ballots.names, opening.settings.private
        self._unmatched = Unmatched() if names is None else Unmatched(names)
        self._lock, self._process = threading.RLock(), os.getpid()
        place = record_of("-", asked, seeded=not private)
        self._file = place.file
        if self._file is None and asked["record"] is not False and private:
            raise UsageError(
                "a session notes what it spends: name its `record` (or `ensemble`); `record` False "
                "keeps nothing, and what is asked again is then paid for again"
            )
        self._run = self._entered(place, asked)
        settings = self._run.settings
        if settings is None or settings.rule is None:
            raise LedgerError("the record does not say when this session stops")
        self._settings, self._rule, self._row = settings, settings.rule, self.asked

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<Session: {self.answers} of {self.asked} queries answered, "
            f"{self.remaining} more for sure>"
        )

    @property
    def mechanism(self) -> Mechanism:
        """Return the aggregator; public."""
        return self._opening.mechanism

    @property
    def rule(self) -> StopRule:
        """Return until when queries may be asked, and what all of them cost; public."""
        return self._rule

    @property
    def remaining(self) -> int:
        """Return how many more queries may be asked, whatever comes out."""
        return self._rule.left(self.asked, self.answers)

    @property
    def asked(self) -> int:
        """Return how many queries were asked so far."""
        return len(self._answers.lines)

    @property
    def answers(self) -> int:
        """Return how many queries got a label."""
        return self._answers.answers

    @property
    @brief
    def labels(self) -> Labels:
        """Return all that was answered, in order: by the ids, or by numbers where there are none.

        A session that was opened again also has what was answered before.
        """
        with self._lock:
            return labels_of(self._answers.lines, self._so_far, self._opening.names)

    @brief
    def ask(
        self,
        votes: Votes,
        prior: str | int | None = None,
        id: Id = None,  # noqa: A002 - what votes as JSON call it, too
    ) -> str | int | None:
        """Return the label of one query, None where the teachers do not agree.

        Args:
            votes: counts of all classes; counts by class, in a mapping from its name or number; or
                what each teacher said, a text, or None where it said nothing.
            prior: a guess that is public, or a function of what was answered before.
            id: by which the query is known. Asked before, it gets the same answer for nothing.

        Raises:
            BudgetSpent: nothing more may be asked.
            VoteError: no votes of these teachers; nothing is spent.
            OutputError: what it costs cannot be noted on disk; it is not answered.
        """
        return next(iter(self.ask_all([Ask(votes, prior, id)])))

    @brief
    def ask_all(self, queries: Sequence[Ask | Votes]) -> list[str | int | None]:
        """Return the labels of several queries, which are noted on disk together.

        All of them are looked at before the first is answered.

        Raises:
            BudgetSpent: not all of them may be asked. Those that may were: ask again by their ids,
                or see `labels`.
            VoteError, OutputError: as `ask`.
        """
        found = self.answered(queries)
        if len(found) < len(queries):
            raise BudgetSpent(self.why_spent)
        return found

    @brief
    def answered(self, queries: Sequence[Ask | Votes]) -> list[str | int | None]:
        """Answer as `ask_all` as far as the session goes, without an error where it ends."""
        with self._lock, self._turn():
            if self._process != os.getpid():
                gone = "was closed" if self._process < 0 else "was opened in another process"
                raise UsageError(f"the session {gone}; open it again")
            asks = [query if isinstance(query, Ask) else Ask(query) for query in queries]
            fresh = self._answers.fresh(ask.id for ask in asks)
            looked_at = [self._looked_at(asks[place], place) for place in fresh]
            drawn = self._drawn([ballot for ballot, _ in looked_at])
            # As far as the session goes, which may be less than all of them.
            mine: dict[Any, Answer] = dict(zip(fresh, drawn, strict=False))
            paid = zip(looked_at, drawn, strict=False)
            self._pay([{**line, "label": label} for (_, line), label in paid])
            found: list[str | int | None] = []
            for place, ask in enumerate(asks):
                name, known = (place, mine) if ask.id is None else (ask.id, self._answers.known)
                if name not in known:
                    break
                found.append(self._named(known[name]))
            return found

    @property
    def unmatched(self) -> Unmatched:
        """Return the votes of this sitting that are no names. SECRET, but to who hands them in."""
        return self._unmatched

    @property
    def why_spent(self) -> str:
        """Return the text of `BudgetSpent`."""
        return (
            f"the session may ask no more: {self.asked} queries were asked for epsilon "
            f"{nats(self._rule.epsilon)}"
        )

    @brief
    def report(self) -> Report:
        """Return the public report of all that was answered; it holds whatever is asked yet.

        Raises:
            UsageError: nothing was asked.
        """
        with self._lock:
            if not self.asked:
                raise UsageError("nothing was asked yet, so there is nothing to report")
            spent = None if self._file is None else Spent.of(self._file.record.runs)
            names, run = self._opening.names or None, self._run
            facts = run_facts(self._so_far, spent=spent, label_names=names)
            return report_of(replace(facts, run=run.id, time=run.time))

    def close(self) -> None:
        """End this sitting; what was asked stays in the record, and the session can go on."""
        with self._lock:
            self._process = -1

    @property
    def _so_far(self) -> Round:
        """Return the settings of the session with all that was asked in it."""
        return asked_so_far(self._settings, self._answers.lines)

    def _entered(self, place: RecordPlace, asked: Mapping[str, Any]) -> Run:
        """Return the session as its record has it, entered unless it stands there."""
        file, found_in = self._file, self._opening.found_in

        def refuse_known(record: SpendRecord) -> None:
            if found_in(record) is not None:
                raise _EnteredError

        if file is None or found_in(file.record) is None:
            new = self._opening.run(self._key, max_epsilon=asked["max_epsilon"])
            with contextlib.suppress(_EnteredError):  # by another process, in this instant
                Entry(place, new, budget=budget_of(asked), refuse=refuse_known).enter()
            if file is None:
                return new
        note("the record of what was spent", file.path)
        with held([file]):
            run = found_in(file.record)
            if run is None:
                raise LedgerError(f"{file.name}: the session was struck out of the record")
            self._answers.learn(file.asked(run))
            return run

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the record, from what others asked to what is asked now."""
        if self._file is None:
            yield
            return
        with held([self._file]):
            self._answers.learn(self._file.asked(self._run)[self.asked :])
            yield

    def _looked_at(self, ask: Ask, place: int) -> tuple[Ballot, dict[str, Any]]:
        """Return the votes of a query, its guess among them, and its line but for the label."""
        line: dict[str, Any] = {} if ask.id is None else {"id": ask.id}
        ballots, weight = self._opening.ballots, self.mechanism.prior_weight
        try:
            ballot = ballots.ballot(ask.votes, by_teacher=ask.by_teacher)
        except VoteError as error:
            called = place if ask.id is None else quoted(ask.id)
            raise VoteError(f"query {called}: {error}") from None
        self._unmatched.add(ballot.said.items())
        if ask.prior is None:
            return ballot, line
        if not weight:
            raise UsageError("a guess has no votes: say `prior_weight` when the session is opened")
        line["prior"] = ballots.place(ask.prior)
        return ballot.with_guess(line["prior"], weight), line

    def _drawn(self, ballots: Sequence[Ballot]) -> list[Answer]:
        """Return what comes out, as far as the rule allows, whatever comes out."""
        drawn: list[Answer] = []
        asked, answers = self.asked, self.answers
        while len(drawn) < len(ballots):
            size = min(self._rule.left(asked, answers), _AT_ONCE, len(ballots) - len(drawn))
            if size == 0:
                break
            part = ballots[len(drawn) : len(drawn) + size]
            # No two queries take the same noise, whatever becomes of them.
            rows = np.arange(self._row, self._row + size)
            batch = VoteBatch(self._row, rows, self._opening.ballots.histograms(part))
            self._row += size
            labels = DrawLabels(self._key)(self.mechanism, batch).labels.tolist()
            drawn += [
                None if label == NO_LABEL else (ballot.names[label] if ballot.names else label)
                for ballot, label in zip(part, labels, strict=True)
            ]
            asked += size
            answers += sum(label != NO_LABEL for label in labels)
        return drawn

    def _pay(self, lines: Sequence[dict[str, Any]]) -> None:
        """Note on disk what was asked and comes out; nothing has left yet."""
        if not lines:
            return
        try:
            if self._file is not None:
                self._file.ask(self._run, lines)
        except OutputError as error:
            raise OutputError(f"{error}; nothing was answered") from None
        except BaseException:
            self.close()  # what is on disk may not be known here
            raise
        self._answers.learn(lines)

    def _named(self, label: Answer) -> str | int | None:
        """Return an answer by the name of its class, if that has one."""
        names = self._opening.names
        return names[label] if names and isinstance(label, int) else label


class _EnteredError(Exception):
    """The session stands in the record already."""
