"""The record: every run that published something about these teachers' votes, and what it cost.

A run is entered before its votes are looked at, as pending, which counts in full; its outcome is
noted before it is told, and nothing is ever struck out that could follow from the votes. So whoever
holds the record can say what all runs cost together (`disclosure.total`).

On disk it is a journal (`files.journal`). Its lines are events: `enter` a run, `settle` how it
ended, `ask` queries of a session with what came out, `strike` a run whose file turned out to hold
no votes, before anything was made of them, and `goes_on_in`, the name of another record that took
over all runs. Runs and sessions write by the same calls.

It holds nothing of the votes: settings, outcomes and costs for all votes are public, and so is the
record. It names files and times, which its holder may not care to show; reports leave names out.
"""

from __future__ import annotations

import enum
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path
from typing import Any, Final

from pate_cli.core.checks import check_delta, check_nonnegative, check_positive
from pate_cli.core.codec import SPARING, Refusal, decoded, encoded
from pate_cli.core.errors import LedgerError, shortened
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.cost import Cost, Pair, Rows
from pate_cli.disclosure.external import External, Stated
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.plan import Draw
from pate_cli.disclosure.settings import RowsAnswered, RowsAsked, Settings
from pate_cli.files.journal import Journal
from pate_cli.mechanisms import scored_from_parameters
from pate_cli.votes.facts import Group, PriorFacts

KIND: Final = "pate-spend-record"


class RunKind(enum.StrEnum):
    """How a run is charged: labels by their worst case, as a tested target, by a composition, or by
    the rule of a session; a draw from a ledger; what others state.
    """

    WORST_CASE = "worst-case"
    TARGET = "target"
    COMPOSITION = "composition"
    SESSION = "session"
    RELEASE = "release"
    EXTERNAL = "external"


class Outcome(enum.StrEnum):
    """How a run ended; one that never ended counts in full."""

    PENDING = "pending"
    LABELLED = "labelled"
    REFUSED = "refused"
    RELEASED = "released"
    STATED = "stated"


@dataclass(frozen=True)
class SessionSettings:
    """Settings of a session by which the same one is found again.

    Attributes:
        epsilon: the target, nats; None where there was none.
        max_queries: the most queries, where that was said.
        names: SHA-256 of what the classes are called; None where they are numbers.
    """

    epsilon: float | None
    max_queries: int | None
    names: str | None


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run, or one cost that others stated.

    Attributes:
        id: of a run as its report has it, random; of an external part its digest.
        kind: how it is charged.
        outcome: how it ended.
        time: when it began, UTC; None where nobody noted it.
        epsilon, delta: what it costs by itself whatever the votes, nats; None where the cost is not
            known by itself.
        refusal_epsilon: what a refusal of a target costs, nats.
        answers: labels released; None where there are none, or not yet.
        asked: the rows and the mechanism, of labels.
        round: name of the round, by which a ledger of it is known; not in reports.
        session: what it was opened with, where queries come one by one; not in reports.
        draw: the sanitized value that it published.
        drawn_from: names of the rounds that it was drawn from, where they are other runs.
        external: of an external part, all that is stated.
        votes: what the holder calls the votes; not in reports.
        groups: of the teachers; not in reports, which have their own.
        budget: the one that admitted it.
        claimed: False where nothing is promised: noise from a seed, facts read off the votes.
        total_epsilon, total_delta: of all runs up to this one, when it was noted.
    """

    id: str
    kind: RunKind
    outcome: Outcome
    time: str | None
    delta: float | None = None
    epsilon: float | None = field(default=None, metadata=SPARING)
    refusal_epsilon: float | None = field(default=None, metadata=SPARING)
    answers: int | None = field(default=None, metadata=SPARING)
    asked: RowsAsked | None = field(default=None, metadata=SPARING)
    round: str = field(default="", metadata=SPARING)
    session: SessionSettings | None = field(default=None, metadata=SPARING)
    draw: Draw | None = field(default=None, metadata=SPARING)
    drawn_from: tuple[str, ...] = field(default=(), metadata=SPARING)
    external: Stated | None = field(default=None, metadata=SPARING)
    votes: str | None = field(default=None, metadata=SPARING)
    groups: tuple[Group, ...] = field(default=(), metadata=SPARING)
    budget: Budget | None = field(default=None, metadata=SPARING)
    claimed: bool = field(default=True, metadata=SPARING)
    total_epsilon: float | None = field(default=None, metadata=SPARING)
    total_delta: float | None = field(default=None, metadata=SPARING)

    def __post_init__(self) -> None:
        numbers = {"epsilon": self.epsilon, "refusal_epsilon": self.refusal_epsilon}
        for name, value in numbers.items():
            if value is not None:
                check_nonnegative(name, value)
                if self.kind is RunKind.TARGET:
                    check_positive(name, value)
        if self.delta is not None and self.kind is not RunKind.EXTERNAL:
            check_delta(self.delta)
        if self.asked is not None and not 0 <= self.asked.max_answers <= self.asked.queries:
            raise LedgerError(
                f"run {shortened(self.id)}: max_answers and queries must be "
                f"0 <= {self.asked.max_answers} <= {self.asked.queries}"
            )
        wanted = {
            RunKind.WORST_CASE: (self.asked,),
            RunKind.TARGET: (self.epsilon, self.delta, self.refusal_epsilon),
            RunKind.COMPOSITION: (self.epsilon, self.delta),
            RunKind.SESSION: (self.epsilon, self.delta, self.asked and self.asked.rule),
            RunKind.RELEASE: (self.draw,),
            RunKind.EXTERNAL: (self.external,),
        }[self.kind]
        if any(value is None for value in wanted):
            raise LedgerError(f"run {shortened(self.id)} does not say what it cost")

    @classmethod
    def of(cls, settings: Settings, **told: Any) -> Run:
        """Return the run of these settings as a record has it, priced whatever the votes.

        Args:
            settings: what the run was told.
            **told: the other fields of a run: `id`, `time` and how it ended. Settings decide
                `kind`, what it costs, what was asked and, unless it is told, whether anything is
                claimed.

        Raises:
            UnreachableError: a δ below what a composition amounts to.
        """
        cost, tested, drawn = Cost.of(settings), settings.tested, settings.sanitizer
        kind = RunKind.COMPOSITION if cost.pairs else RunKind.WORST_CASE
        if tested is not None:
            kind = RunKind.TARGET
        elif settings.rule is not None:
            kind = RunKind.SESSION
        given: dict[str, Any] = {
            "kind": kind,
            "outcome": Outcome.PENDING,
            "epsilon": cost.own.epsilon,
            "delta": cost.own.delta,
            "refusal_epsilon": None if tested is None else tested.refusal_epsilon,
            "asked": RowsAsked.of(settings),
            "draw": drawn.draw if drawn is not None and drawn.publishes_draw else None,
            "groups": settings.groups,
            "claimed": settings.claimed,
        }
        return cls(**given | told)

    @property
    def price(self) -> float | None:
        """ε that follows from all else that the run says of itself, nats; in full.

        None where nothing else tells: a tested target states its ε, and a draw from a round that
        was charged elsewhere has none.
        """
        stated, asked, delta = self.external, self.asked, self.delta
        if self.kind is RunKind.TARGET or delta is None:
            return None
        if stated is not None:  # what others state is taken to all its digits
            return self.cost.of_curves.epsilon if self.curved else stated.pair[0]
        if self.curved:
            return self.cost.own.epsilon
        return None if asked is None else Cost.of_rows(asked, delta).own.epsilon

    @property
    def priced(self) -> Run:
        """This run with its price, where it has one."""
        price = self.price
        return self if price is None else replace(self, epsilon=price)

    @property
    def cost(self) -> Cost:
        """Everything that the run spends; a tested target in full and as it came out.

        Raises:
            LedgerError: rows of a mechanism that has no Rényi cost.
        """
        if self.curved:
            curves = Cost(self.delta or 0.0, draws=() if self.draw is None else (self.draw,))
            if self.external is not None:
                return replace(curves, external=External((self.external,)))
            if self.asked is None:
                return curves
            mechanism = scored_from_parameters(self.asked.mechanism)
            rows = Rows(mechanism, self.asked.queries, self.asked.max_answers)
            return replace(curves, rows=(rows,))
        if self.external is not None:
            return Cost(pairs=(Pair(*self.external.pair, "stated"),))
        came = self.counted if self.kind is RunKind.TARGET else None
        pair = Pair(self.epsilon or 0.0, self.delta or 0.0, self.kind.value, came=came)
        return Cost(pairs=(pair,))

    @property
    def curved(self) -> bool:
        """True where the run is charged by a Rényi curve, False where by an (ε, δ)."""
        if self.kind is RunKind.EXTERNAL and self.external is not None:
            return self.external.curve is not None
        return self.kind in (RunKind.WORST_CASE, RunKind.RELEASE)

    @property
    def counted(self) -> float | None:
        """ε that it counts for by itself: a refusal what that costs; None where it is unknown."""
        return self.refusal_epsilon if self.outcome is Outcome.REFUSED else self.epsilon

    @property
    def own(self) -> tuple[float, float] | None:
        """(ε, δ) that it counts for by itself; None where one of them is unknown."""
        counted, delta = self.counted, self.delta
        return None if counted is None or delta is None else (counted, delta)

    @property
    def names(self) -> tuple[str, ...]:
        """By which it is known: its own, and of rows that of their round."""
        return (self.id, self.round) if self.round else (self.id,)

    @property
    def answered(self) -> RowsAnswered | None:
        """Its rows as a report has them."""
        if self.asked is None:
            return None
        return RowsAnswered.of(self.asked, answers=self.answers or 0)

    @property
    def rows(self) -> Round | None:
        """Its rows as a ledger has them."""
        if self.asked is None:
            return None
        name, answers = self.round or self.id, self.answers or 0
        return Round.of(self.asked, id=name, answers=answers, groups=self.groups)

    @property
    def public(self) -> Run:
        """The run as reports have it: without names that its holder gave, or that ledgers know."""
        return replace(self, round="", session=None, drawn_from=(), votes=None, groups=())

    @property
    def opened_with(self) -> tuple[Any, ...] | None:
        """All that a session was opened with, by which the same one is found again."""
        if self.session is None or self.asked is None:
            return None
        return (self.session, dict(self.asked.mechanism), self.delta, self.groups, self.claimed)

    @property
    def neighbours(self) -> tuple[Any, ...] | None:
        """How many votes one record moves, by group; None where nothing is known of them."""
        if self.asked is None:
            return None
        mechanism = self.asked.mechanism
        together = bool(mechanism.get("votes_together", False))
        return (mechanism.get("teachers_per_record", 1), together, self.groups)


class SessionAsks:
    """Counts of the queries of a session, taken line by line.

    Attributes:
        asked, answers: how many queries, and how many of them got a label.
        guesses: how many of them came with one of the prior.
    """

    def __init__(self) -> None:
        """Begin with no query."""
        self.asked = self.answers = self.guesses = 0
        self._digest = hashlib.sha256()

    def add(self, line: Mapping[str, Any]) -> None:
        """Count one more query with what came out."""
        self.asked += 1
        self.answers += line.get("label") is not None
        if "prior" in line:
            self.guesses += 1
            self._digest.update(f"{self.asked} {json.dumps(line['prior'])}\n".encode())

    def of(self, run: Run) -> Run:
        """Return a session with so much asked in it."""
        if run.asked is None:
            raise LedgerError(f"run {shortened(run.id)} does not say what was asked")
        counts = replace(
            run.asked,
            queries=self.asked,
            max_answers=self.asked,
            prior=self.prior(run.asked.mechanism),
        )
        return replace(run, asked=counts, answers=self.answers, outcome=Outcome.LABELLED)

    def prior(self, mechanism: Mapping[str, Any]) -> PriorFacts | None:
        """Return the facts of all guesses; the digest is of lines with a query's number and guess.

        None where none of them had a vote.
        """
        weight = mechanism.get("prior_weight", 0)
        return PriorFacts(weight, self.guesses, self._digest.hexdigest()) if weight else None


@dataclass(frozen=True)
class SpendRecord:
    """All that was published about the votes of some teachers: one account, in order.

    Keep it with the votes. `aggregate(record=...)` and `release` enter what they publish, and
    `SpendRecord.read` reads it.

        >>> given = {"layout": "counts", "record": "year.spent.json"}
        >>> done = pate.aggregate([[40, 38, 22]] * 30, "gnmax", **given)
        >>> again = pate.aggregate([[40, 38, 22]] * 30, "gnmax", **given)
        >>> len(pate.SpendRecord.read("year.spent.json").runs)
        2

    """

    runs: tuple[Run, ...] = ()

    def __post_init__(self) -> None:
        names = [run.id for run in self.runs]
        if len(set(names)) < len(names):
            raise LedgerError("a run stands in the record twice")

    def with_run(self, run: Run) -> SpendRecord:
        """Return the record with a run, in place of what it held under the same id."""
        if all(known.id != run.id for known in self.runs):
            return SpendRecord((*self.runs, run))
        return SpendRecord(tuple(run if known.id == run.id else known for known in self.runs))

    def without(self, run: Run) -> SpendRecord:
        """Return the record of all other runs."""
        return SpendRecord(tuple(known for known in self.runs if known.id != run.id))

    def missing_in(self, other: SpendRecord) -> tuple[Run, ...]:
        """Return the runs that another record does not know, by any of their names."""
        known = {name for run in other.runs for name in run.names}
        return tuple(run for run in self.runs if known.isdisjoint(run.names))

    def known(self, name: str) -> Run | None:
        """Return the run of this id; None where the record does not know it."""
        return next((run for run in self.runs if run.id == name), None)

    def check_alike(self) -> None:
        """LedgerError where some runs protect others than the rest do: they have no total."""
        known = [run.neighbours for run in self.runs if run.neighbours is not None]
        if any(theirs != known[0] for theirs in known):
            raise LedgerError(
                "the record holds runs charged for other `teachers_per_record` or `groups`, "
                "with which this one has no common neighbours. If the teachers are the same, or "
                "their records, charge all runs alike; only others get a record of their own"
            )

    def touching(self, ledger: Ledger) -> tuple[Run, ...]:
        """Return the releases that drew from rounds of this ledger, without the rounds' own."""
        mine = {done.id for done in ledger.rounds}
        return tuple(run for run in self.runs if mine & set(run.drawn_from))

    @classmethod
    def of(cls, ledger: Ledger) -> SpendRecord:
        """Return the runs that a ledger tells of: its rounds, each with what it drew."""
        runs = (
            Run(
                # The name of a round is its ledger's alone, and this one may be published.
                id=hashlib.sha256(f"run {done.id}".encode()).hexdigest()[:32],
                kind=RunKind.WORST_CASE,
                outcome=Outcome.LABELLED,
                time=None,
                delta=ledger.delta,
                answers=done.answers,
                asked=RowsAsked.of(done),
                round=done.id,
                groups=done.groups,
                claimed=ledger.private and not done.read_off,
                draw=next(iter(done.draws), None),
            )
            for done in ledger.rounds
        )
        return cls(tuple(run.priced for run in runs))

    def __or__(self, other: SpendRecord) -> SpendRecord:
        """Return the runs of either, each once, and as ended if either tells how it ended."""
        ended = {run.id: run for run in other.runs if run.outcome is not Outcome.PENDING}
        mine = (
            ended.get(run.id, run) if run.outcome is Outcome.PENDING else run for run in self.runs
        )
        return SpendRecord((*mine, *other.missing_in(self)))

    @classmethod
    def read(cls, path: str | PathLike[str]) -> SpendRecord:
        """Read the record in a file, empty where there is no such file.

        Raises:
            LedgerError: damaged, foreign, or no regular file.
        """
        return RecordFile(path).record


@dataclass(frozen=True)
class Sighting:
    """A record as it was last seen.

    Attributes:
        record: its file, an absolute path.
        lines: how many events it told of.
        chain: the hash of all of them.
    """

    record: str
    lines: int
    chain: str


class RecordFile:
    """The record in one file, as far as this process has read it.

    Attributes:
        name: what messages call the file.
        goes_on_in: the name of the record that took over its runs; None where it takes runs itself.
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        """Read the file, if it is there; LedgerError where it is damaged or something else."""
        self._journal = Journal(path, KIND)
        self.name = self._journal.name
        self.goes_on_in: str | None = None
        self._read = 0
        self._runs: dict[str, Run] = {}
        self._asks: dict[str, SessionAsks] = {}
        self._lines: dict[str, list[dict[str, Any]]] = {}
        self._follow()

    @property
    def path(self) -> Path:
        """Path of the file, behind links."""
        return self._journal.path

    @property
    def empty(self) -> bool:
        """True where the record has not begun."""
        return not self._journal.lines

    @property
    def sighting(self) -> Sighting:
        """Length and hash of the record, by which one that was lost or rolled back is noticed."""
        return Sighting(str(self.path), len(self._journal.lines), self._journal.chain)

    def tells_of(self, seen: Sighting) -> bool:
        """Return whether it tells of all that it, or one that it is a copy of, told of before."""
        return not seen.lines or self._journal.chain_at(seen.lines) == seen.chain

    @property
    def record(self) -> SpendRecord:
        """All runs, sessions with what was asked in them."""
        return SpendRecord(tuple(self._with_asks(run) for run in self._runs.values()))

    def asked(self, session: Run) -> list[dict[str, Any]]:
        """Return what was asked in a session, in order: `label`, `id` and `prior` of each query."""
        return self._lines.get(session.id, [])

    def refuse_run(self) -> None:
        """LedgerError where another record took over, so that no run is entered here any more."""
        if self.goes_on_in is not None:
            raise LedgerError(
                f"the runs of {self.name} go on in {self.goes_on_in}; name that record with "
                "`record`, or its `ensemble`"
            )

    def refresh(self) -> None:
        """Read what others appended; LedgerError where what was read before is gone."""
        self._journal.refresh()
        self._follow()

    def catch_up(self) -> None:
        """Read what others appended, and see that it is on disk; under the lock."""
        self._journal.catch_up()
        self._follow()

    def enter(self, *runs: Run) -> None:
        """Append runs that the record does not know; under the lock.

        Raises:
            OutputError: they cannot be written, and none was entered.
        """
        self._append(*({"enter": encoded(run)} for run in runs))

    def settle(self, run: Run) -> None:
        """Append how a run ended, unless that is known; under the lock."""
        known = self._runs.get(run.id)
        if known is not None and known.outcome is Outcome.PENDING:
            ended = {
                "outcome": run.outcome.value,
                "answers": run.answers,
                "total": [run.total_epsilon, run.total_delta],
            }
            self._append({"settle": run.id, **ended})

    def strike(self, run: Run) -> None:
        """Append that a run is struck out; under the lock."""
        self._append({"strike": run.id})

    def go_on_in(self, other: RecordFile) -> None:
        """Append that another record has taken over the runs of this one; under the lock."""
        self._append({"goes_on_in": other.path.name})

    def ask(self, session: Run, asks: Sequence[Mapping[str, Any]]) -> None:
        """Append queries of a session with what came out, before it is told; under the lock.

        Args:
            session: the run.
            asks: `label`, `id` and `prior` of each.

        Raises:
            OutputError: they cannot be written.
        """
        self._append({"ask": session.id, "asks": list(asks)})

    def _append(self, *events: Mapping[str, Any]) -> None:
        self._journal.append(*events)
        self._follow()

    def _with_asks(self, run: Run) -> Run:
        done = self._asks.get(run.id)
        return run if done is None else done.of(run)

    def _follow(self) -> None:
        """Follow the events that were read since."""
        lines = self._journal.lines
        while self._read < len(lines):
            try:
                self._take(lines[self._read])
            except (KeyError, ValueError, TypeError):  # of a run that is not there, or no event
                raise LedgerError(
                    f"{self.name} is damaged: line {self._read + 2} tells of nothing that a record "
                    "has; restore it from a copy"
                ) from None
            self._read += 1

    def _take(self, event: Mapping[str, Any]) -> None:
        match event:
            case {"enter": data}:
                run = decoded(Run, data, Refusal(LedgerError, f"{self.name} is damaged: "))
                if run.id in self._runs:
                    raise ValueError(run.id)
                self._runs[run.id] = run
            case {"settle": str(name), "outcome": str(word), "answers": answers, "total": total}:
                epsilon, delta = total
                ended = {"outcome": Outcome(word), "answers": answers}
                ended |= {"total_epsilon": epsilon, "total_delta": delta}
                self._runs[name] = replace(self._runs[name], **ended)
            case {"strike": str(name)}:
                del self._runs[name]
            case {"goes_on_in": str(name)}:
                self.goes_on_in = name
            case {"ask": str(name), "asks": list(asks)}:
                if self._runs[name].session is None:
                    raise ValueError(name)
                done = self._asks.setdefault(name, SessionAsks())
                for ask in asks:
                    done.add(ask)
                self._lines.setdefault(name, []).extend(asks)
            case _:
                raise ValueError(event)
