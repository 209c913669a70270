"""A session: queries come one by one, and each answer is paid for before it leaves."""

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
from typing import Any, Final, Self, TypeAlias

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
    quoted,
)
from pate_cli.core.noise import RunKey
from pate_cli.core.stamps import now
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.entry import Entry, held
from pate_cli.disclosure.facts import report_of, run_facts
from pate_cli.disclosure.figures import nats
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.record import SpendRecord, asked_so_far
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.runs import Run, Spent
from pate_cli.disclosure.settings import Settings, Training
from pate_cli.disclosure.stopping import stop_rule
from pate_cli.files.document import encoded
from pate_cli.labels.labels import Labels
from pate_cli.mechanisms import MechanismChoice, mechanism_class
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism
from pate_cli.run.labelling import DrawLabels, Drawn
from pate_cli.verbs import signatures
from pate_cli.verbs.door import brief, opened_by
from pate_cli.verbs.promise import budget_of, record_of, refuse_dear, run_of
from pate_cli.verbs.request import among_groups, chosen, prior_votes
from pate_cli.votes.ballot import Ballot, BallotReader, Votes
from pate_cli.votes.checks import MOST_TEACHERS
from pate_cli.votes.facts import Facts, Group, PriorFacts
from pate_cli.votes.join import names_of, teacher_groups
from pate_cli.votes.names import ClassNames, Unmatched
from pate_cli.votes.vote_file import VoteBatch

Id: TypeAlias = str | int | None
"""By which a query is known; None for none."""
Answer: TypeAlias = str | int | None
"""A class; a name where nobody listed the names; None where the teachers do not agree."""

_NOT_ONE_BY_ONE: Final = {
    MechanismName.INTERACTIVE: "its student's predictions are of all queries; give a guess as "
    "`prior`",
    MechanismName.SPARSE_VECTOR: "its noisy threshold would have to be kept; take stability",
}
_TEACHERS, _NOBODY = map(SOURCES.index, ("teachers", "none"))
_ID: Final = re.compile(r"[^\0\ud800-\udfff]{1,1000}", re.DOTALL)
_NUMBER: Final = re.compile("0|-?[1-9][0-9]{0,18}")
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
        by_teacher: True if a list is what each teacher said, also where it is numbers; False if it
            is counts; None if texts and missing votes in it tell.
    """

    votes: Votes
    prior: str | int | None = None
    id: Id = None
    by_teacher: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.id, np.generic):  # of an array; records hold numbers of Python
            object.__setattr__(self, "id", self.id.item())


class _EnteredError(Exception):
    """The session stands in the record already."""


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

    Attributes:
        mechanism: the aggregator; public.
        rule: until when queries may be asked, and what all of them cost; public.
        answers: how many queries got a label.
        unmatched: the votes of this sitting that are no names. SECRET, but to who hands them in.
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
            raise LedgerError("the record does not say when this session stops")
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

    @property
    def remaining(self) -> int:
        """Return how many more queries may be asked, whatever comes out."""
        return self.rule.left(self.asked, self.answers)

    @property
    def asked(self) -> int:
        """Return how many queries were asked so far."""
        return len(self._lines)

    @property
    @brief
    def labels(self) -> Labels:
        """Return all that was answered, in order: by the ids, or by numbers where there are none.

        A session that was opened again also has what was answered before.
        """
        with self._lock:
            answers = [line.get("label") for line in self._lines]
            said = tuple(dict.fromkeys(label for label in answers if isinstance(label, str)))
            places = {None: NO_LABEL} | {name: place for place, name in enumerate(said)}
            given = np.array([places.get(label, label) for label in answers], dtype=np.int32)
            sources = np.where(given == NO_LABEL, np.uint8(_NOBODY), np.uint8(_TEACHERS))
            drawn = Drawn(_all_named([line.get("id") for line in self._lines]), given, sources)
            # The names that are listed, before those that came out and nobody listed.
            names = None if self._names is None else (*self._names, *said)
            return drawn.table(self._so_far.texts(), Facts(label_names=names))

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
            names = [_name(ask, place) for place, ask in enumerate(asks)]
            fresh: dict[Any, tuple[Ask, int]] = {}
            for place, (name, ask) in enumerate(zip(names, asks, strict=True)):
                self._refuse_twin(ask.id, fresh)
                if name not in self._known:
                    fresh.setdefault(name, (ask, place))
            looked_at = [self._looked_at(*each) for each in fresh.values()]
            # As far as the session goes, which may be less than all of them.
            drawn = self._drawn([ballot for ballot, _ in looked_at])
            paid = zip(looked_at, drawn, strict=False)
            self._pay([{**line, "label": label} for (_, line), label in paid])
            mine: dict[Any, Answer] = dict(zip(fresh, drawn, strict=False))
            found = ChainMap(mine, self._known)
            told = itertools.takewhile(found.__contains__, names)
            return [self._named(found[name]) for name in told]

    @property
    def why_spent(self) -> str:
        """Return the text of `BudgetSpent`."""
        return (
            f"the session may ask no more: {self.asked} queries were asked for epsilon "
            f"{nats(self.rule.epsilon)}"
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
            names, run = self._names or None, self._run
            facts = run_facts(self._so_far, spent=spent, label_names=names)
            return report_of(replace(facts, run=run.id, time=run.time))

    def close(self) -> None:
        """End this sitting; what was asked stays in the record, and the session can go on."""
        with self._lock:
            self._process = -1

    @property
    def _so_far(self) -> Round:
        """Return the settings of the session with all that was asked in it."""
        return asked_so_far(self._settings, self._lines)

    def _opened(self, asked: Mapping[str, Any]) -> Run:
        """Return the session as its record has it, entered unless it stands there."""
        epsilon, delta, most = asked["target_epsilon"], asked["delta"], asked["max_queries"]
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
        )
        # With other names texts mean something else, and it is another session.
        texts = names and [list(names.names), names.normalise, dict(names.aliases)]
        said = json.dumps([encoded(settings), epsilon, most, texts], sort_keys=True)
        digest = hashlib.sha256(said.encode()).hexdigest()
        place = record_of(asked)
        self._file = file = place.file
        if file is None and asked["record"] is not False and self._key.private:
            raise UsageError(
                "a session notes what it spends: name its `record` (or `ensemble`); `record` False "
                "keeps nothing, and what is asked again is then paid for again"
            )

        def known(record: SpendRecord) -> Run | None:
            return next((run for run in record.runs if run.session == digest), None)

        def refuse_known(record: SpendRecord) -> None:
            if known(record) is not None:
                raise _EnteredError

        if file is None or known(file.record) is None:
            rule = stop_rule(mechanism, epsilon=epsilon, delta=delta, asks=most)
            settings = replace(settings, rule=rule)
            refuse_dear(settings, asked["max_epsilon"])
            new = run_of(settings, self._key, now(), session=digest)
            with contextlib.suppress(_EnteredError):  # by another process, in this instant
                Entry(place, new, budget=budget_of(asked), refuse=refuse_known).enter()
            if file is None:
                return new
        with held([file]):
            run = known(file.record)
            if run is None:
                raise LedgerError(f"{file.name}: the session was struck out of the record")
            self._learn(file.asked(run))
            return run

    def _learn(self, lines: Iterable[Mapping[str, Any]]) -> None:
        """Take queries with their answers as further ones of this session."""
        for line in lines:
            self._lines.append(line)
            self.answers += line.get("label") is not None
            if "id" in line:
                self._known[line["id"]] = line.get("label")

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the record, from what others asked to what is asked now."""
        if self._file is None:
            yield
            return
        with held([self._file]):
            self._learn(self._file.asked(self._run)[self.asked :])
            yield

    def _refuse_twin(self, name: Id, fresh: Mapping[Any, Any]) -> None:
        """ParameterError for an id that labels cannot hold, or cannot tell from another one."""
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
                f"id {quoted(name)} looks in saved labels as {quoted(other)} does, which was asked "
                "before; give it another one"
            )

    def _looked_at(self, ask: Ask, place: int) -> tuple[Ballot, dict[str, Any]]:
        """Return the votes of a query, its guess among them, and its line but for the label."""
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
            raise UsageError("guesses have no votes: say `prior_weight` when the session is opened")
        line["prior"] = ballots.place(ask.prior)
        return ballot.with_guess(line["prior"], weight), line

    def _drawn(self, ballots: Sequence[Ballot]) -> list[Answer]:
        """Return what comes out, as far as the rule allows, whatever comes out."""
        drawn: list[Answer] = []
        while waiting := ballots[len(drawn) :]:
            answers = self.answers + sum(label is not None for label in drawn)
            part = waiting[: min(self.rule.left(self.asked + len(drawn), answers), _AT_ONCE)]
            if not part:
                break
            # No two queries take the same noise, whatever becomes of them.
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
        self._learn(lines)

    def _named(self, label: Answer) -> str | int | None:
        """Return an answer by the name of its class, if that has one."""
        return self._names[label] if self._names and isinstance(label, int) else label


def _name(ask: Ask, place: int) -> Any:
    """Return the id of a query, or its place among those asked with it, which is no id."""
    return (place,) if ask.id is None else ask.id


def _all_named(ids: Sequence[Id]) -> Any:
    """Return ids, with numbers that are free in the place of those that are missing."""
    taken = {str(name) for name in ids}
    free = (number for number in itertools.count() if str(number) not in taken)
    named = [next(free) if name is None else name for name in ids]
    texts = any(isinstance(name, str) for name in named)
    return np.array(named, dtype=np.str_ if texts else np.int64)


def _ballots(asked: Mapping[str, Any]) -> BallotReader:
    """Return how votes are read for the mechanism that is asked."""
    mechanism = MechanismName(asked["mechanism"])
    if mechanism in _NOT_ONE_BY_ONE:
        raise UsageError(f"{mechanism} does not go one by one: {_NOT_ONE_BY_ONE[mechanism]}")
    groups = teacher_groups(asked["groups"])
    teachers = _count("teachers", asked["teachers"], groups, "groups")
    if groups is not None:
        teachers = int(groups.total)
    if teachers > MOST_TEACHERS:
        raise ParameterError(f"`teachers` must be at most {MOST_TEACHERS}")
    given, aliases, normalise = asked["label_names"], asked["aliases"], asked["normalise"]
    if mechanism_class(mechanism).listed:
        names = names_of(given, normalise, aliases)
        known = None if names is None else names.names
        classes = _count("classes", asked["classes"], known, "label_names")
        return BallotReader(teachers, classes, names, groups)
    for name in ("classes", "label_names", "aliases"):
        if asked[name] is not None:
            raise UsageError(f"{mechanism} knows no classes; leave out `{name}`")
    return BallotReader(teachers, None, ClassNames((), normalise=normalise, listed=False), groups)


def _count(name: str, said: int | None, known: Sized | None, where: str) -> int:
    """Return how many there are, as it is said or as the keyword `where` lists them.

    Raises:
        UsageError: neither is given.
        ParameterError: the two differ, or it is no count.
    """
    count = said if known is None else len(known)
    if count is None:
        raise UsageError(f"say `{name}`, how many there are, or `{where}`")
    if said not in (None, count):
        raise ParameterError(f"`{name}` is {said}, but `{where}` has {count}")
    return check_whole(f"`{name}`", count)


def _mechanism(
    ballots: BallotReader, groups: Sequence[Group], asked: Mapping[str, Any]
) -> Mechanism:
    """Return the mechanism, for these teachers and the weight of guesses."""
    weight = asked["prior_weight"]
    weight = 0 if weight is None else prior_votes(weight, ballots.teachers)
    choice = among_groups(chosen(asked["mechanism"], asked), groups)
    epsilon, most = asked["target_epsilon"], asked["max_queries"]
    return _built(replace(choice, prior_weight=weight), ballots, epsilon, most, asked["delta"])


def _built(
    choice: MechanismChoice,
    ballots: BallotReader,
    epsilon: float | None,
    queries: int | None,
    delta: float,
) -> Mechanism:
    """Return the mechanism; δ of one query follows from how many there may be."""
    classes, given = ballots.classes, choice.given
    if classes is not None and choice.composed and not (queries or "query_delta" in given):
        raise UsageError(f"{choice.name} divides delta among queries: say `max_queries`")
    if classes is None and not (queries or "threshold" in given) and epsilon is not None:
        # As many as there would be if names took half of delta, which they do then.
        listed, half = replace(ballots, classes=3), delta / 2.0
        closed = _built(choice.among(MechanismName.GNMAX), listed, epsilon, 1, half)
        queries = stop_rule(closed, epsilon=epsilon, delta=half).asks
    shape = {"teachers": ballots.teachers, "classes": classes or MOST_CLASSES}
    return choice.build(**shape, queries=queries or 1, delta=delta)
