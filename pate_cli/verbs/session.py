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
from collections.abc import Iterator, Mapping, Sequence
from os import PathLike
from typing import Any, Final, Self, Unpack

import numpy as np

from pate_cli.core.arrays import NO_LABEL, SOURCES
from pate_cli.core.checks import MOST_CLASSES, check_delta, check_positive, check_whole
from pate_cli.core.clock import now
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import (
    BudgetSpent,
    CeilingError,
    LedgerError,
    OutputError,
    ParameterError,
    UnreachableError,
    UsageError,
    VoteError,
    quoted,
)
from pate_cli.core.noise import RunKey
from pate_cli.core.words import CEILING, DELTA, MechanismName
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.entry import Entry
from pate_cli.disclosure.facts import report_of, run_facts
from pate_cli.disclosure.figures import nats
from pate_cli.disclosure.record import (
    RecordFile,
    Run,
    SessionAsks,
    SessionSettings,
    SpendRecord,
)
from pate_cli.disclosure.record_place import RecordPlace, held
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.settings import Settings, StopRule
from pate_cli.disclosure.stopping import stop_rule
from pate_cli.disclosure.total import Spent
from pate_cli.files.inputs import note
from pate_cli.labels.labels import Labels
from pate_cli.mechanisms import MechanismChoice, mechanism_class
from pate_cli.mechanisms.amounts import Amount
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism, ScoredMechanism
from pate_cli.run.labelling import DrawLabels, Drawn
from pate_cli.verbs.keywords import ParameterWords
from pate_cli.votes.ballot import Ballot, BallotReader, Votes
from pate_cli.votes.facts import Facts, Group
from pate_cli.votes.groups import Groups
from pate_cli.votes.join import names_of, teacher_groups
from pate_cli.votes.names import Aliases, ClassNames, LabelNames
from pate_cli.votes.unmatched import Unmatched
from pate_cli.votes.vote_file import VoteBatch

_TEACHERS, _NOBODY = map(SOURCES.index, ("teachers", "none"))
_AT_ONCE: Final = 1 << 12
_LONGEST_ID: Final = 1000
_NUMBER: Final = re.compile("0|-?[1-9][0-9]{0,18}")
_NOT_ONE_BY_ONE: Final = {
    MechanismName.INTERACTIVE: "its student's predictions are of all queries; give a guess as "
    "`prior`",
    MechanismName.SPARSE_VECTOR: "its noisy threshold would have to be kept; take stability",
}


@dataclass(frozen=True)
class Ask:
    """One query of several that are asked at once, with its guess and its name.

        >>> asks = [pate.Ask([3, 240, 7], id="q1"), pate.Ask([3, 240, 7], id="q1")]
        >>> given = {"teachers": 250, "classes": 3, "mechanism": "gnmax", "sigma2": 40}
        >>> with pate.Session(**given, epsilon=1, record="both.spent.json") as session:
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
    id: str | int | None = None
    by_teacher: bool = False


class Session:
    """Ask for labels one by one; every answer is paid for, on disk, before it leaves.

    For votes that do not lie in a file: a model is asked line by line, what is asked next follows
    from the answers, or asking ends when the budget does. What all of it costs is fixed when it is
    opened, and holds however queries are chosen.

        >>> asked = {"teachers": 250, "classes": 3, "epsilon": 2, "record": "asked.spent.json"}
        >>> with pate.Session(**asked) as session:
        ...     label = session.ask([3, 240, 7], id="q7")
        ...     again = session.ask([3, 240, 7], id="q7")  # known: nothing is drawn or spent
        ...     label == again, session.remaining
        (True, 618)

    Opened again with the same settings it goes on where it was. An `id` that was asked before gets
    the answer that it got. `remaining` is how many more queries are answered for sure, by a label
    or by None where the teachers do not agree; more may be where that happens often. Then `ask`
    raises `BudgetSpent`.

    Args:
        teachers: τ, how many vote; left out where `groups` say it.
        classes: m; left out where `label_names` are given, and for open-vocabulary.
        epsilon: of all that the session says, nats; it decides how many may be asked.
        delta: of the same.
        mechanism: the aggregator, by name: every one but interactive and sparse-vector.
        record: the file that keeps what was asked and answered, beside other runs on the votes of
            these teachers; several sessions may be open in one. False keeps nothing.
        ensemble: a name of the teachers instead.
        accept_lost_record: begin a record anew where the one that was there is gone.
        budget: epsilon that all runs of the record may cost at most, however they are chosen.
        budget_delta: delta that all of them may cost at most; 1e-3 if left out.
        budget_order: Renyi order at which costs are added up instead of epsilons; fixed before the
            first run of the record.
        max_queries: ask no more than these; with it alone epsilon follows.
        max_epsilon: refuse to open one that could cost more. Left out, 10 is the most without a
            `seed`.
        label_names: what the classes are called; labels are then names, and votes may be.
        normalise, aliases: which texts are votes for a name, as for `open_votes`.
        groups: of teachers that count differently; votes are then what each teacher said.
        teachers_per_record: most of them that one record may have trained.
        prior_weight: how many votes a guess has that a query comes with; none without.
        seed: noise for tests, which promises nothing.
        **parameters: of the mechanism, as for `aggregate`.

    Raises:
        UnreachableError: not one query is paid for, or the budget is exhausted.
        OutputError: the record cannot be written.
        PateError: whatever else is refused.
    """

    def __init__(
        self,
        *,
        teachers: int | None = None,
        classes: int | None = None,
        epsilon: float | None = None,
        delta: float = DELTA,
        mechanism: MechanismName | str = MechanismName.CONFIDENT,
        record: str | PathLike[str] | bool | None = None,
        ensemble: str | None = None,
        accept_lost_record: bool = False,
        budget: float | None = None,
        budget_delta: float | None = None,
        budget_order: float | None = None,
        max_queries: int | None = None,
        max_epsilon: float | None = None,
        label_names: LabelNames | None = None,
        normalise: bool = False,
        aliases: Aliases | None = None,
        groups: Groups | None = None,
        teachers_per_record: int = 1,
        prior_weight: Amount | float | str | None = None,
        seed: int | None = None,
        **parameters: Unpack[ParameterWords],
    ) -> None:
        """Open it, or open it again."""
        check_delta(delta)
        self._most = None if max_epsilon is None else check_positive("`max_epsilon`", max_epsilon)
        voters = teacher_groups(groups)
        name = MechanismName(mechanism)
        unknown = not mechanism_class(name).listed
        if unknown and (classes is not None or label_names is not None):
            raise UsageError(f"{name} knows no classes; leave out `classes` and `label_names`")
        if unknown and aliases is not None:
            raise UsageError(f"{name} knows no names that `aliases` could stand for")
        names: ClassNames | None = ClassNames((), normalise=normalise, listed=False)
        if not unknown:
            names = names_of(label_names, normalise=normalise, aliases=aliases)
        self._ballots = BallotReader(
            _teachers(teachers, voters),
            None if unknown else _classes(classes, names),
            names,
            voters,
        )
        self._groups: tuple[Group, ...] = () if voters is None else voters.public
        self._mechanism = self._aggregator(
            name,
            parameters,
            epsilon=epsilon,
            queries=max_queries,
            delta=delta,
            weight=prior_weight,
            teachers_per_record=teachers_per_record,
        )
        self._key = RunKey.fresh() if seed is None else RunKey.from_seed(seed)
        self._settings = SessionSettings(
            None if epsilon is None else float(epsilon), max_queries, _digest(names)
        )
        self._delta = delta
        self._place = self._kept(record, ensemble, accept_lost_record)
        self._lock, self._process, self._noted = threading.RLock(), os.getpid(), True
        self._asks = SessionAsks()
        self._given: list[tuple[str | int | None, int]] = []
        self._known: dict[str | int, int] = {}
        self._said: dict[str, int] = {}
        self._unmatched = Unmatched() if names is None else Unmatched(names)
        self._row = 0
        self._file: RecordFile | None = None
        self._open(Budget.of(budget, delta=budget_delta, order=budget_order))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return (
            f"<Session: {self._asks.answers} of {self._asks.asked} queries answered, "
            f"{self.remaining} more for sure>"
        )

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise UsageError("a session is in one process only, which pays for what it says")

    @property
    def mechanism(self) -> Mechanism:
        """The aggregator; public."""
        return self._mechanism

    @property
    def rule(self) -> StopRule:
        """Until when queries may be asked, and what all of them cost; public."""
        asked = self._run.asked
        if asked is None or asked.rule is None:
            raise LedgerError("the record does not say when this session stops")
        return asked.rule

    @property
    def remaining(self) -> int:
        """How many more queries may be asked, whatever comes out."""
        return self.rule.left(self._asks.asked, self._asks.answers)

    @property
    def asked(self) -> int:
        """How many queries were asked so far."""
        return self._asks.asked

    @property
    def answers(self) -> int:
        """How many of them got a label."""
        return self._asks.answers

    @property
    def labels(self) -> Labels:
        """All that was answered, in order: by the ids, or by numbers from 0 where there are none.

        Of a session that was opened again: also what was answered before.
        """
        taken = {str(name) for name, _ in self._given if name is not None}
        ids: list[str | int] = []
        for place, (name, _) in enumerate(self._given):
            free = (number for number in itertools.count(place) if str(number) not in taken)
            ids.append(next(free) if name is None else name)
            taken.add(str(ids[-1]))
        if not all(isinstance(name, int) for name in ids):
            ids = [str(name) for name in ids]
        given = np.array([label for _, label in self._given], dtype=np.int32)
        sources = np.where(given == NO_LABEL, np.uint8(_NOBODY), np.uint8(_TEACHERS))
        names = None if self._names is None else tuple(self._names)
        settings = self._told(self.rule)
        column = np.array(ids, dtype=np.int64 if not ids or isinstance(ids[0], int) else None)
        return Drawn(column, given, sources).table(settings.texts(), Facts(label_names=names))

    def ask(
        self,
        votes: Votes,
        prior: str | int | None = None,
        id: str | int | None = None,  # noqa: A002 - what votes as JSON call it, too
    ) -> str | int | None:
        """The label of one query, None where the teachers do not agree.

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

    def ask_all(self, queries: Sequence[Ask | Votes]) -> list[str | int | None]:
        """The labels of several, which are noted on disk together; all are looked at first.

        Raises:
            BudgetSpent: not all of them may be asked. Those that may were: ask again by their ids,
                or see `labels`.
            VoteError, OutputError: as `ask`.
        """
        found = self.answered(queries)
        if len(found) < len(queries):
            raise BudgetSpent(self.why_spent)
        return found

    def answered(self, queries: Sequence[Ask | Votes]) -> list[str | int | None]:
        """Answer as `ask_all` as far as the session goes, without an error where it ends."""
        with self._lock, self._turn():
            self._check_open()
            asks = [query if isinstance(query, Ask) else Ask(query) for query in queries]
            fresh = self._fresh(asks)
            drawn = self._drawn([self._looked_at(asks[at], at) for at in fresh])
            self._pay([asks[at] for at in fresh[: len(drawn)]], drawn)
            mine = dict(zip(fresh, drawn, strict=False))
            found: list[str | int | None] = []
            for at, ask in enumerate(asks):
                if at in mine:
                    found.append(self._name(self._code(mine[at])))
                elif ask.id is not None and ask.id in self._known:
                    found.append(self._name(self._known[ask.id]))
                else:
                    break
            return found

    @property
    def unmatched(self) -> Unmatched:
        """Votes of this sitting that are texts and no names. SECRET, but to who hands them in."""
        return self._unmatched

    @property
    def why_spent(self) -> str:
        """Text of `BudgetSpent`."""
        return (
            f"the session may ask no more: {self._asks.asked} queries were asked for epsilon "
            f"{nats(self.rule.epsilon)}"
        )

    def report(self) -> Report:
        """Return the public report of all that was answered; it holds whatever is asked yet.

        Raises:
            UsageError: nothing was asked.
        """
        with self._lock:
            if not self._asks.asked:
                raise UsageError("nothing was asked yet, so there is nothing to report")
            run = self._counted()
            done = run.rows
            if done is None:
                raise LedgerError("the record does not say what was asked")
            spent = None if self._file is None else Spent.of(self._file.record.with_run(run).runs)
            names = self._ballots.names
            listed = names.names if names is not None and names.listed else None
            facts = run_facts(
                self._told(self.rule),
                done,
                spent=spent,
                label_names=listed,
                run=run.id,
                time=run.time,
            )
            return report_of(facts)

    def close(self) -> None:
        """Let go of the record; what was asked stays in it."""
        with self._lock:
            self._process = -1

    # --- opening ---------------------------------------------------------------------------------

    def _aggregator(
        self,
        name: MechanismName,
        parameters: Mapping[str, Any],
        *,
        epsilon: float | None,
        queries: int | None,
        delta: float,
        weight: Amount | float | str | None,
        teachers_per_record: int,
    ) -> Mechanism:
        if name in _NOT_ONE_BY_ONE:
            raise UsageError(f"{name} does not go one by one: {_NOT_ONE_BY_ONE[name]}")
        given = {key: value for key, value in parameters.items() if value is not None}
        moved = teachers_per_record
        if self._groups:
            if moved != 1:
                raise UsageError("`teachers_per_record` does not go with `groups`, which say it")
            moved = max(group.votes_per_record for group in self._groups)
        together = moved > 1 and bool(self._groups)
        together = together and all(group.teachers_per_record == 1 for group in self._groups)
        votes = 0.0
        if weight is not None:
            votes = Amount.of("prior_weight", weight).votes(self._ballots.teachers)
            if not votes >= 0.0 or votes != int(votes):
                raise ParameterError(
                    f"`prior_weight` must be a whole number of votes, at least 0, got {votes:g}"
                )
        choice = MechanismChoice(name, given, moved, together, int(votes))
        teachers, classes = self._ballots.teachers, self._ballots.classes
        if classes is not None and choice.composed and not (queries or "query_delta" in given):
            raise UsageError(f"{name} divides delta among queries: say `max_queries`")
        if classes is None and not (queries or "threshold" in given) and epsilon is not None:
            # As many as there would be if names took half of delta, which they do then.
            like, half = choice.among(MechanismName.GNMAX), delta / 2.0
            closed = like.build(teachers=teachers, classes=3, queries=1, delta=half)
            queries = stop_rule(_charged(closed), epsilon=epsilon, delta=half).asks
        return choice.build(
            teachers=teachers, classes=classes or MOST_CLASSES, queries=queries or 1, delta=delta
        )

    @property
    def _names(self) -> Sequence[str] | None:
        """What labels are called: of classes that nobody knew, those that came out."""
        if self._ballots.classes is None:
            return list(self._said)
        return None if self._ballots.names is None else self._ballots.names.names

    def _kept(
        self, record: str | PathLike[str] | bool | None, ensemble: str | None, accept_lost: bool
    ) -> RecordPlace:
        """Return the record to keep it in; UsageError where nobody said which."""
        found = RecordPlace.of(
            "-",
            record=record,
            ensemble=ensemble,
            seeded=not self._key.private,
            accept_lost=accept_lost,
        )
        if found.file is None and record is not False and self._key.private:
            raise UsageError(
                "a session notes what it spends: name its `record` (or `ensemble`); `record` False "
                "keeps nothing, and what is asked again is then paid for again"
            )
        return found

    def _open(self, budget: Budget | None) -> None:
        file = self._place.file
        if file is None:
            self._run = self._new()
            return
        if self._mine(file.record) is None:
            with contextlib.suppress(_EnteredError):  # by another process, in this instant
                entry = Entry(self._place, self._new(), budget=budget, refuse=self._refuse_known)
                entry.enter()
        note("the record of what was spent", file.path)
        self._file = file
        with held([file]):
            self._go_on(file)

    def _refuse_known(self, record: SpendRecord) -> None:
        if self._mine(record) is not None:
            raise _EnteredError

    def _go_on(self, file: RecordFile) -> None:
        """Take up what the record tells of the session."""
        mine = self._mine(file.record)
        if mine is None:
            raise LedgerError(f"{file.name}: the session was struck out of the record; open it new")
        self._run = mine
        self._take_up(file)
        self._row = self._asks.asked

    def _take_up(self, file: RecordFile) -> None:
        """Learn what other sittings of the session asked since."""
        for line in file.asked(self._run)[self._asks.asked :]:
            self._asks.add(line)
            self._note(line.get("id"), line.get("label"))

    @contextlib.contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the record, from what others asked to what is asked now."""
        if self._file is None:
            yield
            return
        with held([self._file]):
            self._take_up(self._file)
            yield

    def _mine(self, record: SpendRecord) -> Run | None:
        """The session in the record that these settings open again."""
        facts, private = self._mechanism.parameters(), self._key.private
        mine = (self._settings, facts, self._delta, self._groups, private)
        return next((run for run in record.runs if run.opened_with == mine), None)

    def _new(self) -> Run:
        settings = self._settings
        rule = stop_rule(
            _charged(self._mechanism),
            epsilon=settings.epsilon,
            delta=self._delta,
            asks=settings.max_queries,
        )
        self._refuse_dear(rule)
        name = self._key.run_id if self._key.private else self._key.name("session")
        return Run.of(self._told(rule), id=name, time=now(), session=settings)

    def _told(self, rule: StopRule) -> Settings:
        """Return the settings of all that was asked so far."""
        facts = self._mechanism.parameters()
        return Settings(
            mechanism=facts,
            queries=self._asks.asked,
            max_answers=self._asks.asked,
            private=self._key.private,
            delta=self._delta,
            analysis="tight" if isinstance(self._mechanism, ScoredMechanism) else "composition",
            groups=self._groups,
            prior=self._asks.prior(facts),
            rule=rule,
        )

    def _refuse_dear(self, rule: StopRule) -> None:
        named = nats(rule.epsilon)
        price = f"{rule.asks} queries cost epsilon {named}"
        if self._most is None:
            if rule.epsilon > CEILING and self._key.private:
                raise CeilingError(
                    f"{price}, and above {CEILING:g} practically nothing is promised; ask fewer, "
                    "take more noise, or state a smaller epsilon. To have it all the same, ask "
                    f"for it by name: `max_epsilon` {named}",
                    epsilon=float(named),
                )
        elif rule.epsilon > self._most:
            raise UnreachableError(
                f"{price}, above `max_epsilon` {self._most:g}; ask fewer, take more noise, or "
                "state a smaller epsilon"
            )

    # --- asking ----------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._process != os.getpid():
            gone = "was closed" if self._process < 0 else "was opened in another process"
            raise UsageError(f"the session {gone}; open it again")
        if not self._noted:
            raise UsageError("the session was interrupted while it noted an answer; open it again")

    def _looked_at(self, ask: Ask, at: int) -> Ballot:
        """The votes of one query, its guess among them."""
        try:
            ballot = self._ballots.ballot(ask.votes, by_teacher=ask.by_teacher)
        except VoteError as error:
            raise VoteError(f"{_called(ask, at)}: {error}") from None
        self._unmatched.add(ballot.said.items())
        if ask.prior is None:
            return ballot
        if not self._mechanism.prior_weight:
            raise UsageError("a guess has no votes: say `prior_weight` when the session is opened")
        return ballot.with_guess(self._ballots.place(ask.prior), self._mechanism.prior_weight)

    def _fresh(self, asks: Sequence[Ask]) -> list[int]:
        """Places of those that were not asked before, each id once."""
        known = ChainMap[str | int, Any]({}, self._known)
        found = []
        for at, ask in enumerate(asks):
            _check_id(ask.id)
            if ask.id is None:
                found.append(at)
            elif ask.id not in known:
                other = _other(ask.id)
                if other in known:
                    raise ParameterError(
                        f"id {quoted(ask.id)} looks in saved labels as {quoted(other)} does, which "
                        "was asked before; give it another one"
                    )
                found.append(at)
                known[ask.id] = None
        return found

    def _drawn(self, ballots: Sequence[Ballot]) -> list[str | int | None]:
        """What comes out, as far as the rule allows; whatever a part brings, it was allowed.

        A class, None, or a name where nobody knew the classes.
        """
        drawn: list[str | int | None] = []
        asked, answers = self._asks.asked, self._asks.answers
        while len(drawn) < len(ballots):
            size = min(self.rule.left(asked, answers), _AT_ONCE, len(ballots) - len(drawn))
            if size == 0:
                break
            part = ballots[len(drawn) : len(drawn) + size]
            # No two queries take the same noise, whatever becomes of them.
            rows = np.arange(self._row, self._row + size)
            batch = VoteBatch(self._row, rows, self._ballots.histograms(part))
            self._row += size
            labels = DrawLabels(self._key)(self._mechanism, batch).labels.tolist()
            drawn += [
                None if label == NO_LABEL else (ballot.names[label] if ballot.names else label)
                for ballot, label in zip(part, labels, strict=True)
            ]
            asked += size
            answers += sum(label != NO_LABEL for label in labels)
        return drawn

    def _pay(self, asks: Sequence[Ask], drawn: Sequence[str | int | None]) -> None:
        """Note on disk what was asked and comes out; nothing has left yet.

        Whoever is interrupted in between may have on disk what is not known here: were more asked
        then, it would be under the same noise.
        """
        lines = [self._line(ask, label) for ask, label in zip(asks, drawn, strict=True)]
        self._noted = False
        if self._file is not None and lines:
            try:
                self._file.ask(self._run, lines)
            except OutputError as error:
                self._noted = True  # nothing was, and what is known stays known
                raise OutputError(f"{error}; nothing was answered") from None
        for line in lines:
            self._asks.add(line)
            self._note(line.get("id"), line["label"])
        self._noted = True

    def _line(self, ask: Ask, label: str | int | None) -> dict[str, Any]:
        line: dict[str, Any] = {} if ask.id is None else {"id": ask.id}
        line["label"] = label
        if ask.prior is not None:
            line["prior"] = self._ballots.place(ask.prior)
        return line

    def _note(self, name: str | int | None, label: str | int | None) -> None:
        if isinstance(label, str):
            self._said.setdefault(label, len(self._said))
        code = self._code(label)
        self._given.append((name, code))
        if name is not None:
            self._known[name] = code

    def _code(self, label: str | int | None) -> int:
        """What stands for it: a name that came out by its place among these."""
        if label is None:
            return NO_LABEL
        return self._said[label] if isinstance(label, str) else label

    def _name(self, code: int) -> str | int | None:
        if code == NO_LABEL:
            return None
        return code if self._names is None else self._names[code]

    def _counted(self) -> Run:
        """The run with what was asked so far."""
        return self._asks.of(self._run)


class _EnteredError(Exception):
    """The session stands in the record already."""


def _charged(mechanism: Mechanism) -> ScoredMechanism | ComposedMechanism:
    if not isinstance(mechanism, ScoredMechanism | ComposedMechanism):
        raise UsageError(f"{mechanism.name} has no cost that a session could stop at")
    return mechanism


def _teachers(teachers: int | None, groups: Any) -> int:
    if groups is None:
        return check_whole("`teachers`", 0 if teachers is None else teachers)
    if teachers not in (None, len(groups)):
        raise ParameterError(f"`teachers` is {teachers}, but `groups` has {len(groups)} teachers")
    return int(groups.total)


def _classes(classes: int | None, names: ClassNames | None) -> int:
    if names is not None:
        if classes not in (None, len(names.names)):
            raise ParameterError(
                f"`classes` {classes} is not the number of `label_names`, {len(names.names)}"
            )
        return len(names.names)
    if classes is None:
        raise UsageError("say `classes`, how many there are, or `label_names`")
    return check_whole("`classes`", classes)


def _digest(names: ClassNames | None) -> str | None:
    """Of what texts mean: under other names a session would be another."""
    if names is None or not names.listed:
        return None
    said = [list(names.names), names.normalise, dict(names.aliases)]
    return hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()


def _called(ask: Ask, at: int) -> str:
    return f"query {at}" if ask.id is None else f"query {quoted(ask.id)}"


def _check_id(name: str | int | None) -> None:
    if name is None:
        return
    text = isinstance(name, str) and 0 < len(name) <= _LONGEST_ID and _encodes(name)
    number = type(name) is int and -(2**63) <= name < 2**63
    if not (text or number):
        raise ParameterError(
            f"an id is a text of up to {_LONGEST_ID} letters or a whole number, got {quoted(name)}"
        )


def _other(name: str | int) -> str | int | None:
    """Return the number that a text is, or the text of a number, None where there is none."""
    if isinstance(name, int):
        return str(name)
    return int(name) if _NUMBER.fullmatch(name) else None


def _encodes(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in text
