"""A session answers queries one by one; the record has the cost before the answer is returned.

`answers_to` reads the queries of a session as lines of JSON, and writes the answers as such lines.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import json
import os
import re
import threading
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import IO, Any, Final, NoReturn, Self, TypeAlias

import numpy as np

from pate_cli.core.arrays import NO_LABEL, SOURCES
from pate_cli.core.checks import MOST_CLASSES, check_whole
from pate_cli.core.errors import (
    BudgetSpent,
    LedgerError,
    OutputError,
    ParameterError,
    UsageError,
    VoteError,
    brief,
    quoted,
)
from pate_cli.core.noise import RunKey
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.cost import nats
from pate_cli.disclosure.entry import Entry, held
from pate_cli.disclosure.guarantee import report_of, run_facts
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.record import SpendRecord, asked_so_far
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.runs import Run, Spent
from pate_cli.disclosure.settings import Settings, Training
from pate_cli.disclosure.stopping import stop_rule
from pate_cli.files.document import Refusal, encoded, now, parsed
from pate_cli.labels.labels import Labels
from pate_cli.mechanisms import MechanismChoice, mechanism_class
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism
from pate_cli.run.labelling import DrawLabels, Drawn
from pate_cli.verbs import signatures
from pate_cli.verbs.keywords import opened_by
from pate_cli.verbs.promise import budget_of, record_of, refuse_dear, run_of
from pate_cli.verbs.request import among_groups, chosen, prior_votes
from pate_cli.votes.ballot import Ballot, BallotReader, Votes
from pate_cli.votes.checks import MOST_TEACHERS
from pate_cli.votes.facts import Facts, Group, PriorFacts, Voting
from pate_cli.votes.join import names_of, teacher_groups
from pate_cli.votes.names import Unmatched
from pate_cli.votes.vote_file import VoteBatch

Id: TypeAlias = str | int | None
"""The id of a query; None if it has none."""
Answer: TypeAlias = str | int | None
"""An answer: a class, or the name of a class that nobody listed, or None without a label."""

_NOT_ONE_BY_ONE: Final = {
    MechanismName.INTERACTIVE: "its student predicts all queries at once; use another mechanism, "
    "and give a guess with each query as `prior`",
    MechanismName.SPARSE_VECTOR: "it would have to store its noisy threshold; use stability",
}
_TEACHERS, _NOBODY = map(SOURCES.index, ("teachers", "none"))
_ID: Final = re.compile(r"[^\0\ud800-\udfff]{1,1000}", re.DOTALL)
_NUMBER: Final = re.compile("0|-?[1-9][0-9]{0,18}")
_AT_ONCE: Final = 1 << 12
_LONGEST: Final = 1 << 24  # bytes of a line
_FIELDS: Final = frozenset({"id", "counts", "votes", "prior"})


@dataclass(frozen=True)
class Ask:
    """One query with its public guess and its id, for `Session.ask_all`.

        >>> asks = [pate.Ask([3, 240, 7], id="q1"), pate.Ask([3, 240, 7], id="q1")]
        >>> given = {"teachers": 250, "classes": 3, "mechanism": "gnmax", "sigma2": 40}
        >>> with pate.Session(**given, target_epsilon=1, record="both.spent.json") as session:
        ...     session.ask_all(asks), session.asked
        ([1, 1], 1)

    Attributes:
        votes: the votes of the teachers, in any form that `Session.ask` takes.
        prior: the public guess; None if there is none.
        id: the id of the query; None if it has none.
        by_teacher: True if a list has one vote per teacher; False if it has one count per class.
            If `by_teacher` is None, a session with `groups` or without a list of classes takes
            every list as one vote per teacher; any other session looks at the list in `votes`. A
            list of texts and None has one vote per teacher. A list of numbers has one count per
            class. A list with numbers and also texts or None is refused.
    """

    votes: Votes
    prior: str | int | None = None
    id: Id = None
    by_teacher: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.id, np.generic):  # Records cannot store numpy numbers.
            object.__setattr__(self, "id", self.id.item())


class _EnteredError(Exception):
    """Raised if the record already has the session, which another process may have added."""


class Session:
    """Ask for labels one by one; the cost of an answer is on disk before the answer is returned.

    Use a session if the votes are not in a file: if you ask a model line by line, if the next query
    depends on earlier answers, or if you want to ask until the budget is spent. The cost of the
    whole session is fixed when you open it. The cost of the session is valid even if later queries
    depend on earlier answers.

        >>> asked = {"teachers": 250, "classes": 3, "target_epsilon": 2}
        >>> with pate.Session(**asked, record="asked.spent.json") as session:
        ...     label = session.ask([3, 240, 7], id="q7")
        ...     again = session.ask([3, 240, 7], id="q7")  # The same id draws and spends nothing.
        ...     label == again, session.remaining
        (True, 618)

    If you open a session again with equal settings, the session goes on where it stopped. A query
    with an `id` that was asked before gets the earlier answer. The session answers at least
    `remaining` more queries, each with a label or with None. If many queries get no label, the
    session may answer more than `remaining` queries. After the end of the session, `ask` raises
    `BudgetSpent`.

    Attributes:
        mechanism: the aggregator; public.
        rule: how many queries may be asked until the session ends, and the session's total cost;
            public.
        answers: how many queries got a label.
        unmatched: all votes that match no name of a class, since the session was opened. SECRET:
            only the person who gives the votes to `ask` may see unmatched votes.
    """

    @opened_by(signatures.session)
    def __init__(self, **asked: Any) -> None:
        """Open a session; if its record has a session with equal settings, continue that session.

        Give a `record`, which is a file for the costs, or an `ensemble`, which is a name for the
        teachers and has its own record. Several sessions and runs may share one record.

        Raises:
            UnreachableError: one query costs more than the target, or the budget is spent.
            OutputError: the record cannot be written.
            PateError: another argument is wrong, or the record cannot be used.
        """
        self._lock, self._process = threading.RLock(), os.getpid()
        self._key, self._ballots = RunKey.of(asked["seed"]), _ballots(asked)
        self._lines: list[Mapping[str, Any]] = []
        self._known: dict[str | int, Answer] = {}
        self.answers = 0
        names = self._ballots.names
        self._names = None if names is None else tuple(names.names)
        self.unmatched = Unmatched() if names is None else Unmatched(names)
        voters = self._ballots.groups
        self._groups = () if voters is None else voters.public
        self.mechanism = _mechanism(self._ballots, self._groups, asked)
        self._run = self._opened(asked)
        settings = self._run.settings
        if settings is None or settings.rule is None:
            raise LedgerError(
                "the record does not say when this session must stop, so the session cannot "
                "go on; open a new session with another `max_queries`"
            )
        self._settings, self.rule, self._row = settings, settings.rule, self.asked

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<Session: {self.answers} of {self.asked} queries answered, "
            f"{self.remaining} more for sure>"
        )

    def __reduce__(self) -> NoReturn:
        """Raise UsageError, because a copy of a session would draw the same noise again."""
        raise UsageError(
            "a session cannot be copied or pickled, because the copy would draw the same noise; "
            "open the session again"
        )

    @property
    def remaining(self) -> int:
        """Return how many more queries the session answers even if every query gets a label."""
        return self.rule.left(self.asked, self.answers)

    @property
    def asked(self) -> int:
        """Return how many queries were asked so far."""
        return len(self._lines)

    @property
    @brief
    def labels(self) -> Labels:
        """Return all answers in order, with the ids of their queries.

        A query without an id gets a number as its id. If the session was opened again, earlier
        answers are included.
        """
        with self._lock:
            answers = [line.get("label") for line in self._lines]
            said = tuple(dict.fromkeys(label for label in answers if isinstance(label, str)))
            places = {None: NO_LABEL} | {name: place for place, name in enumerate(said)}
            given = np.array([places.get(label, label) for label in answers], dtype=np.int32)
            sources = np.where(given == NO_LABEL, np.uint8(_NOBODY), np.uint8(_TEACHERS))
            drawn = Drawn(_all_named([line.get("id") for line in self._lines]), given, sources)
            # The listed names of classes come first, and then the names that only answers have.
            names = None if self._names is None else (*self._names, *said)
            return drawn.table(self._so_far.texts(), Facts(label_names=names))

    @brief
    def ask(
        self,
        votes: Votes,
        prior: str | int | None = None,
        id: Id = None,  # noqa: A002 - what votes as JSON call it, too
    ) -> str | int | None:
        """Return the label of one query; None if too few teachers agree, after noise.

        Args:
            votes: the counts of all classes; or a mapping from names or numbers of classes to
                counts; or one vote per teacher, which is a text, or None for a teacher without a
                vote.
            prior: a guess of the class, which is public or depends only on earlier answers.
            id: the id of the query. If `id` was asked before, the earlier answer is returned, and
                nothing is spent.

        Raises:
            BudgetSpent: the session has ended.
            VoteError: `votes` has no valid form, or more votes than the session has teachers;
                nothing is spent.
            LedgerError: the session has ended because all runs of its record were added to another
                record.
            OutputError: the cost cannot be written to disk, so the query is not answered.
        """
        return next(iter(self.ask_all([Ask(votes, prior, id)])))

    @brief
    def ask_all(self, queries: Sequence[Ask | Votes]) -> list[str | int | None]:
        """Return the labels of several queries, whose costs are written to disk together.

        The session checks all queries before it answers the first one.

        Raises:
            BudgetSpent: the session ended before it answered all `queries`. The queries before the
                end of the session are answered and paid for. `Session.labels` has the labels of the
                answered queries. If the answered queries have ids, you can also ask only the
                answered queries again.
            VoteError, LedgerError, OutputError: for the reasons that `ask` names.
        """
        found = self.answered(queries)
        if len(found) < len(queries):
            raise BudgetSpent(self.why_spent)
        return found

    @brief
    def answered(self, queries: Sequence[Ask | Votes]) -> list[str | int | None]:
        """Return the labels of `queries` in order; stop early if the session ends.

        `ask_all` raises `BudgetSpent` if some queries get no answer; this method does not.
        """
        with self._lock, self._turn():
            if self._process != os.getpid():
                gone = "was closed" if self._process < 0 else "was opened in another process"
                raise UsageError(f"the session {gone}; open it again")
            asks = [query if isinstance(query, Ask) else Ask(query) for query in queries]
            names = [_name(ask, place) for place, ask in enumerate(asks)]
            fresh: dict[Any, tuple[Ask, int]] = {}
            for place, (name, ask) in enumerate(zip(names, asks, strict=True)):
                self._refuse_twin(ask.id, fresh)
                if name not in self._known:
                    fresh.setdefault(name, (ask, place))
            looked_at = [self._looked_at(*each) for each in fresh.values()]
            # The session may end before the last query, so `drawn` may be shorter.
            drawn = self._drawn([ballot for ballot, _ in looked_at])
            paid = zip(looked_at, drawn, strict=False)
            self._pay([{**line, "label": label} for (_, line), label in paid])
            mine: dict[Any, Answer] = dict(zip(fresh, drawn, strict=False))
            found = ChainMap(mine, self._known)
            told = itertools.takewhile(found.__contains__, names)
            return [self._named(found[name]) for name in told]

    @property
    def why_spent(self) -> str:
        """Return the message of the `BudgetSpent` error after the end of the session."""
        asked = "query has" if self.asked == 1 else f"{self.asked} queries have"
        return f"the session may ask no more: its {asked} used up epsilon {nats(self.rule.epsilon)}"

    @brief
    def report(self) -> Report:
        """Return the public report of all answers so far; it stays valid if the session goes on.

        Raises:
            UsageError: no query was asked yet.
        """
        with self._lock:
            if not self.asked:
                raise UsageError("no query was asked yet, so there is nothing to report")
            spent = None if self._file is None else Spent.of(self._file.record.runs)
            names, run = self._names or None, self._run
            facts = run_facts(self._so_far, spent=spent, label_names=names)
            return report_of(replace(facts, run=run.id, time=run.time))

    def close(self) -> None:
        """Close the session; its queries stay in the record, and it can be opened again."""
        with self._lock:
            self._process = -1

    @property
    def _so_far(self) -> Round:
        """Return the settings of the session with all queries and answers so far."""
        return asked_so_far(self._settings, self._lines)

    def _opened(self, asked: Mapping[str, Any]) -> Run:
        """Return the run of this session in the record; if this run is not there yet, add it."""
        epsilon, delta, most = asked["target_epsilon"], asked["delta"], asked["max_queries"]
        most_votes = asked["votes_per_teacher"]
        mechanism, names, weight = self.mechanism, self._ballots.names, self.mechanism.prior_weight
        settings = Settings(
            mechanism=mechanism.parameters(),
            queries=0,
            max_answers=0,
            private=self._key.private,
            delta=delta,
            analysis="tight" if isinstance(mechanism, ScoredMechanism) else "composition",
            groups=self._groups,
            prior=PriorFacts(weight, 0, hashlib.sha256().hexdigest()) if weight else None,
            training=Training.of(asked["teacher_epsilon"], asked["teacher_delta"]),
            voting=most_votes and Voting(most_votes, asked["assigned"], claimed=True),
        )
        # Texts in votes depend on the names of classes, so other names make another session.
        texts = names and [list(names.names), names.normalise, dict(names.aliases)]
        goal = None if epsilon is None else float(epsilon)
        said = json.dumps([encoded(settings), goal, most, texts], sort_keys=True)
        digest = hashlib.sha256(said.encode()).hexdigest()
        place = record_of(asked)
        self._file = file = place.file
        if file is None and asked["record"] is not False and self._key.private:
            raise UsageError(
                "a session needs a file for its costs: name a `record` (or an `ensemble`). "
                "With `record` False pate keeps no costs, and you pay again for a query that "
                "is asked again"
            )

        def known() -> Run | None:
            # A session of an earlier record, which this record took over, cannot be continued.
            runs = () if file is None else file.record.runs
            mine = (None, place.ensemble)  # A session of another ensemble may have these settings.
            found = (run for run in runs if run.session == digest and run.ensemble in mine)
            return next(found, None)

        def refuse_known(_: SpendRecord) -> None:
            if known() is not None:
                raise _EnteredError

        if file is None or known() is None:
            rule = stop_rule(mechanism, epsilon=epsilon, delta=delta, asks=most, few=settings.few)
            settings = replace(settings, rule=rule)
            refuse_dear(settings, asked["max_epsilon"])
            new = run_of(settings, self._key, now(), session=digest)
            with contextlib.suppress(_EnteredError):  # Another process may have just entered it.
                Entry(place, new, budget=budget_of(asked), refuse=refuse_known).enter()
            if file is None:
                return new
        with held([file]):
            run = known()
            if run is None:
                raise LedgerError(
                    f"{file.name}: somebody removed this session from the record; restore the file "
                    "from a copy"
                )
            if not set(place.disjoint_from) <= set(run.disjoint_from):
                raise UsageError(
                    "this session was opened with `disjoint_from` "
                    f"{' and '.join(run.disjoint_from) or 'none'}, which cannot change; leave all "
                    "other names out of `disjoint_from`"
                )
            self._learn(file.asked(run))
            return run

    def _learn(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Add queries and their answers to this session."""
        for line in lines:
            self._lines.append(line)
            self.answers += line.get("label") is not None
            if "id" in line:
                self._known[line["id"]] = line.get("label")

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Lock the record for a `with` block, and add other processes' queries to this session."""
        if self._file is None:
            yield
            return
        with held([self._file]):
            self._learn(self._file.asked(self._run)[self.asked :])
            yield

    def _refuse_twin(self, name: Id, fresh: Mapping[Any, Any]) -> None:
        """Raise ParameterError if saved labels cannot store an id, or would confuse two ids."""
        if name is None:
            return
        other: Id
        if type(name) is int and -(2**63) <= name < 2**63:
            other = str(name)
        elif isinstance(name, str) and _ID.fullmatch(name):
            other = int(name) if _NUMBER.fullmatch(name) else None
        else:
            raise ParameterError(
                f"an id is a text of up to 1000 letters or a whole number, got {quoted(name)}"
            )
        if other in self._known or other in fresh:
            raise ParameterError(
                f"id {quoted(name)} looks the same in saved labels as {quoted(other)}, which was "
                "asked before; choose another id"
            )

    def _looked_at(self, ask: Ask, place: int) -> tuple[Ballot, dict[str, Any]]:
        """Return a query's votes, including its prior guess, and its new line for the record.

        This line for the record has no label yet.
        """
        line: dict[str, Any] = {} if ask.id is None else {"id": ask.id}
        ballots, weight = self._ballots, self.mechanism.prior_weight
        try:
            ballot = ballots.ballot(ask.votes, by_teacher=ask.by_teacher)
        except VoteError as error:
            called = place if ask.id is None else quoted(ask.id)
            raise VoteError(f"query {called}: {error}") from None
        self.unmatched.add(ballot.said.items())
        if ask.prior is None:
            return ballot, line
        if not weight:
            raise UsageError(
                "guesses of the prior have no weight: give `prior_weight` when you open the session"
            )
        line["prior"] = ballots.place(ask.prior)
        return ballot.with_guess(line["prior"], weight), line

    def _drawn(self, ballots: Sequence[Ballot]) -> list[Answer]:
        """Return the answers to ballots in order; stop early if `self.rule` ends the session."""
        drawn: list[Answer] = []
        while waiting := ballots[len(drawn) :]:
            answers = self.answers + sum(label is not None for label in drawn)
            part = waiting[: min(self.rule.left(self.asked + len(drawn), answers), _AT_ONCE)]
            if not part:
                break
            # Two queries never use the same noise, even if one of them fails later.
            rows = np.arange(self._row, self._row + len(part))
            batch = VoteBatch(self._row, rows, self._ballots.histograms(part))
            self._row += len(part)
            labels = DrawLabels(self._key)(self.mechanism, batch).labels.tolist()
            drawn += [
                None if label == NO_LABEL else (ballot.names[label] if ballot.names else label)
                for ballot, label in zip(part, labels, strict=True)
            ]
        return drawn

    def _pay(self, lines: Sequence[dict[str, Any]]) -> None:
        """Write queries and answers to the record, before any answer is returned."""
        if not lines:
            return
        try:
            if self._file is not None:
                self._file.ask(self._run, lines)
        except OutputError as error:
            raise OutputError(f"{error}; nothing was answered") from None
        except BaseException:
            self.close()  # The file may have lines that this object does not know.
            raise
        self._learn(lines)

    def _named(self, label: Answer) -> str | int | None:
        """Return an answer as the name of its class if classes have names; else unchanged."""
        return self._names[label] if self._names and isinstance(label, int) else label


def _name(ask: Ask, place: int) -> Any:
    """Return the id of a query; without an id, a tuple, which cannot be the id of another query."""
    return (place,) if ask.id is None else ask.id


def _all_named(ids: Sequence[Id]) -> Any:
    """Return the ids of queries, in which unused numbers replace missing ids."""
    taken = {str(name) for name in ids}
    free = (number for number in itertools.count() if str(number) not in taken)
    named = [next(free) if name is None else name for name in ids]
    texts = any(isinstance(name, str) for name in named)
    return np.array(named, dtype=np.str_ if texts else np.int64)


def _ballots(asked: Mapping[str, Any]) -> BallotReader:
    """Return the object that reads the votes of a query, for the mechanism of the session."""
    mechanism = MechanismName(asked["mechanism"])
    if mechanism in _NOT_ONE_BY_ONE:
        raise UsageError(f"{mechanism} has no sessions: {_NOT_ONE_BY_ONE[mechanism]}")
    groups = teacher_groups(asked["groups"])
    teachers = _count("teachers", asked["teachers"], groups, "groups")
    if groups is not None:
        teachers = int(groups.total)
    if teachers > MOST_TEACHERS:
        raise ParameterError(f"`teachers` must be at most {MOST_TEACHERS}")
    listed, classes = mechanism_class(mechanism).listed, asked["classes"]
    for name in () if listed else ("classes", "label_names", "aliases"):
        if asked[name] is not None:
            raise UsageError(
                f"{mechanism} answers with texts from the votes and has no list of classes; leave "
                f"out `{name}`"
            )
    names = names_of(asked["label_names"], asked["normalise"], asked["aliases"], not listed)
    if listed:
        known = None if names is None else names.names
        classes = _count("classes", classes, known, "label_names")
    return BallotReader(teachers, classes, names, groups)


def _count(name: str, said: int | None, known: Sized | None, where: str) -> int:
    """Return the number of teachers or classes, which the user gives as a number or as a list.

    Args:
        name: the keyword for the number, `teachers` or `classes`.
        said: the number that the user gave; None if the user gave no number.
        known: the teachers or classes, if the caller lists them.
        where: the keyword for the list, such as `label_names`.

    Raises:
        UsageError: the user gave neither the number of teachers or classes nor a list of them.
        ParameterError: the number is not the length of the list, or is not a whole number >= 1.
    """
    count = said if known is None else len(known)
    if count is None:
        raise UsageError(f"give the number of {name} as `{name}`, or list them as `{where}`")
    if said not in (None, count):
        raise ParameterError(f"`{name}` is {said}, but `{where}` has {count}")
    return check_whole(f"`{name}`", count)


def _mechanism(
    ballots: BallotReader, groups: Sequence[Group], asked: Mapping[str, Any]
) -> Mechanism:
    """Return the mechanism for the teachers and the `prior_weight` of a session."""
    weight, given = asked["prior_weight"], chosen(asked["mechanism"], asked)
    votes = 0 if weight is None else prior_votes(weight, ballots.teachers)
    choice = replace(among_groups(given, groups), prior_weight=votes)
    return _built(choice, ballots, asked["target_epsilon"], asked["max_queries"], asked["delta"])


def _built(
    choice: MechanismChoice,
    ballots: BallotReader,
    epsilon: float | None,
    queries: int | None,
    delta: float,
) -> Mechanism:
    """Return the mechanism of the session.

    Some parameters, such as δ per query, depend on how many queries the session can ask.
    """
    classes, given = ballots.classes, choice.given
    if classes is not None and choice.composed and not (queries or "query_delta" in given):
        raise UsageError(f"{choice.name} divides delta among queries: give `max_queries`")
    if classes is None and not (queries or "threshold" in given) and epsilon is not None:
        # Releasing names of classes costs half of delta, so the other half limits the queries.
        listed, half = replace(ballots, classes=3), delta / 2.0
        closed = _built(choice.among(MechanismName.GNMAX), listed, epsilon, 1, half)
        queries = stop_rule(closed, epsilon=epsilon, delta=half).asks
    shape = {"teachers": ballots.teachers, "classes": classes or MOST_CLASSES}
    return choice.build(**shape, queries=queries or 1, delta=delta)


# --- queries as lines of JSON --------------------------------------------------------------------

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
