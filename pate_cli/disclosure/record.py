"""The record: every run that published something about these teachers' votes, and what it cost.

One record is one account. A run is entered before its votes are looked at, as pending, which counts
in full; its outcome is noted with its labels, and nothing is ever struck out that could follow from
the votes. So whoever holds the record can say what all runs cost together (`disclosure.total`).

It holds nothing of the votes: settings, outcomes and costs for all votes are public, and so is the
record. It names files and times, which its holder may not care to show; reports leave names out.
"""

from __future__ import annotations

import contextlib
import enum
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from decimal import Decimal
from os import PathLike
from pathlib import Path
from typing import Any, Final

from pate_cli.accounting.conversion import round_up, significant_up
from pate_cli.core.checks import check_delta, check_nonnegative, check_positive
from pate_cli.core.codec import SPARING
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import LedgerError, shortened
from pate_cli.core.gone import without_gone
from pate_cli.core.label_set import LabelSet
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.external import ExternalCurve, ExternalPair, StatedCost
from pate_cli.disclosure.ledger import Draw, Ledger, Round
from pate_cli.disclosure.stop_rule import StopRule
from pate_cli.disclosure.worst_case import data_independent_cost, spendings
from pate_cli.files.sealed_json import Form, named
from pate_cli.votes.facts import Group, PriorFacts

_RECORD: Final = Form(
    "pate-spend-record", "record", "spend", version=6, unsealed=(1, 2), earlier=(3, 4, 5),
    marks={"releasable": True}, copy="the newest copy, for an older one forgets what was spent",
)  # fmt: skip


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
class RowsAsked:
    """Rows that were put to a mechanism.

    Attributes:
        mechanism: its public parameters.
        queries, max_answers: k1 and k2.
        round: name of the round, by which a ledger of it is known; empty in a report.
        label_set: the labels of a query, where it has several.
        prior: the public prior that voted, too.
        rule: of a session, when asking stops; `queries` are then those that were asked so far.
    """

    mechanism: Mapping[str, Any]
    queries: int
    max_answers: int
    round: str = field(default="", metadata=SPARING)
    label_set: LabelSet | None = field(default=None, metadata=SPARING)
    prior: PriorFacts | None = field(default=None, metadata=SPARING)
    rule: StopRule | None = field(default=None, metadata=SPARING)

    def __post_init__(self) -> None:
        if not 0 <= self.max_answers <= self.queries:
            raise LedgerError(
                f"max_answers and queries must be 0 <= {self.max_answers} <= {self.queries}"
            )

    @classmethod
    def of(cls, done: Round) -> RowsAsked:
        """A round that a ledger holds."""
        return cls(
            done.mechanism,
            done.queries,
            done.max_answers,
            done.id,
            done.label_set,
            done.prior,
            done.rule,
        )


@dataclass(frozen=True)
class SessionSettings:
    """What a session was opened with, beside what is asked: by it the same one is found again.

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
        session: what it was opened with, where queries come one by one; not in reports.
        beta, sigma_release, shift: of a draw.
        drawn_from: names of the rounds that it was drawn from, where they are other runs.
        external: of an external part, all that is stated.
        votes: what the holder calls the votes; not in reports.
        groups: of the teachers; not in reports, which have their own.
        budget: the one that admitted it.
        claimed: False where nothing is claimed: noise from a seed, facts read off the votes.
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
    session: SessionSettings | None = field(default=None, metadata=SPARING)
    beta: float | None = field(default=None, metadata=SPARING)
    sigma_release: float | None = field(default=None, metadata=SPARING)
    shift: float | None = field(default=None, metadata=SPARING)
    drawn_from: tuple[str, ...] = field(default=(), metadata=SPARING)
    external: StatedCost | None = field(default=None, metadata=SPARING)
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
        wanted = {
            RunKind.WORST_CASE: (self.asked,),
            RunKind.TARGET: (self.epsilon, self.delta, self.refusal_epsilon),
            RunKind.COMPOSITION: (self.epsilon, self.delta),
            RunKind.SESSION: (self.epsilon, self.delta, self.asked and self.asked.rule),
            RunKind.RELEASE: (self.beta, self.sigma_release, self.shift),
            RunKind.EXTERNAL: (self.external,),
        }[self.kind]
        if any(value is None for value in wanted):
            raise LedgerError(f"run {shortened(self.id)} does not say what it cost")
        _ = self.draw, self.part  # refuse what is out of range

    @property
    def curved(self) -> bool:
        """Whether it is charged by a curve, at every order; else by its ε."""
        if self.kind is RunKind.EXTERNAL:
            return isinstance(self.part, ExternalCurve)
        return self.kind in (RunKind.WORST_CASE, RunKind.RELEASE)

    @property
    def draw(self) -> Draw | None:
        """The sanitized value that it published."""
        if self.beta is None or self.sigma_release is None or self.shift is None:
            return None
        return Draw(self.beta, self.sigma_release, self.shift)

    @property
    def part(self) -> ExternalCurve | ExternalPair | None:
        """What others stated."""
        return None if self.external is None else self.external.part

    @property
    def cost(self) -> float | None:
        """ε that it counts for by itself: a refusal what that costs; None where it is unknown."""
        return self.refusal_epsilon if self.outcome is Outcome.REFUSED else self.epsilon

    @property
    def names(self) -> tuple[str, ...]:
        """By which it is known: its own, and of rows that of their round."""
        own = "" if self.asked is None else self.asked.round
        return (self.id, own) if own else (self.id,)

    @property
    def round(self) -> Round | None:
        """Its rows as a ledger has them."""
        if self.asked is None:
            return None
        asked = self.asked
        return Round(
            id=asked.round or self.id,
            mechanism=asked.mechanism,
            queries=asked.queries,
            max_answers=asked.max_answers,
            answers=self.answers or 0,
            groups=self.groups,
            label_set=asked.label_set,
            prior=asked.prior,
            rule=asked.rule,
        )

    @property
    def public(self) -> Run:
        """It as a report has it: without names that its holder gave, or that ledgers know."""
        asked = None if self.asked is None else replace(self.asked, round="")
        return replace(self, asked=asked, session=None, drawn_from=(), votes=None, groups=())

    def went_beyond(self, other: Run) -> bool:
        """Whether more was asked than another copy tells, of the same session."""
        if self.session is None or self.asked is None or other.asked is None:
            return False
        return self.asked.queries > other.asked.queries

    def is_session(
        self,
        settings: SessionSettings,
        mechanism: Mapping[str, Any],
        *,
        delta: float,
        groups: tuple[Group, ...],
        claimed: bool,
    ) -> bool:
        """Whether it is the session that these settings open again."""
        return (
            self.session == settings
            and self.asked is not None
            and dict(self.asked.mechanism) == dict(mechanism)
            and (self.delta, self.groups, self.claimed) == (delta, groups, claimed)
        )

    @property
    def neighbours(self) -> tuple[Any, ...] | None:
        """What votes a record moves; None where nothing is known of them."""
        if self.asked is None:
            return None
        mechanism = self.asked.mechanism
        together = bool(mechanism.get("votes_together", False))
        return (mechanism.get("teachers_per_record", 1), together, self.groups)


class SessionAsks:
    """What was asked in a session, line by line.

    Attributes:
        asked, answers: how many queries, and how many of them got a label.
        guesses: how many of them came with one of the prior.
    """

    def __init__(self) -> None:
        """Nothing yet."""
        self.asked = self.answers = self.guesses = 0
        self._digest = hashlib.sha256()

    def add(self, line: Mapping[str, Any]) -> None:
        """One more."""
        self.asked += 1
        self.answers += line.get("label") is not None
        if "prior" in line:
            self.guesses += 1
            self._digest.update(f"{self.asked} {json.dumps(line['prior'])}\n".encode())

    def prior(self, mechanism: Mapping[str, Any]) -> PriorFacts | None:
        """Of all its guesses: the digest is that of lines with the number of a query and its guess.

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
        """The record with a run, in place of what it held under the same id, if anything."""
        if all(known.id != run.id for known in self.runs):
            return SpendRecord((*self.runs, run))
        return SpendRecord(tuple(run if known.id == run.id else known for known in self.runs))

    def without(self, run: Run) -> SpendRecord:
        """The record of all other runs."""
        return SpendRecord(tuple(known for known in self.runs if known.id != run.id))

    def known(self, name: str) -> Run | None:
        """The run of this id."""
        return next((run for run in self.runs if run.id == name), None)

    def with_asks(self, told: Iterable[Mapping[str, Any]]) -> SpendRecord:
        """The record with what was asked in sessions, as the lines behind it tell.

        Raises:
            LedgerError: a line of a session that the record does not know of, or fewer lines than
                it told of before.
        """
        asks: dict[str, SessionAsks] = {}
        for line in told:
            asks.setdefault(str(line.get("run")), SessionAsks()).add(line)
        runs = {run.id: run for run in self.runs}
        for name, done in asks.items():
            run = runs.get(name)
            if run is None or run.asked is None or run.session is None:
                raise LedgerError("the lines behind the record tell of a session it does not know")
            if done.asked < run.asked.queries:
                raise LedgerError(missing_lines(run.asked.queries, done.asked))
            asked = replace(
                run.asked,
                queries=done.asked,
                max_answers=done.asked,
                prior=done.prior(run.asked.mechanism),
            )
            runs[name] = replace(run, asked=asked, answers=done.answers, outcome=Outcome.LABELLED)
        return SpendRecord(tuple(runs.values()))

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
        """Releases that drew from a round of this ledger, but for what rounds drew themselves."""
        mine = {done.id for done in ledger.rounds}
        return tuple(run for run in self.runs if mine & set(run.drawn_from))

    def with_rounds(self, ledger: Ledger, *, votes: str | None = None) -> SpendRecord:
        """The record with those rounds of a ledger that it does not know of."""
        known = {run.asked.round for run in self.runs if run.asked is not None}
        fresh = []
        for done in ledger.rounds:
            if done.id in known:
                continue
            draws: list[dict[str, Any]] = [draw.facts() for draw in done.draws]
            alone = data_independent_cost(
                spendings([done]), delta=ledger.delta, plan=None, prior=done.draws[:1]
            )
            run = Run(
                epsilon=round_up(alone.epsilon),
                # The name of a round is its ledger's alone, and this one may be published.
                id=hashlib.sha256(f"run {done.id}".encode()).hexdigest()[:32],
                kind=RunKind.WORST_CASE,
                outcome=Outcome.LABELLED,
                time=None,
                delta=ledger.delta,
                answers=done.answers,
                asked=RowsAsked.of(done),
                votes=votes,
                groups=done.groups,
                claimed=ledger.private and not done.read_off,
                **(draws[0] if draws else {}),
            )
            fresh.append(run)
            fresh += [
                Run(
                    id=hashlib.sha256(f"run {done.id} {number}".encode()).hexdigest()[:32],
                    kind=RunKind.RELEASE,
                    outcome=Outcome.RELEASED,
                    time=None,
                    drawn_from=(done.id,),
                    **draw,
                )
                for number, draw in enumerate(draws[1:])
            ]
        both = SpendRecord((*self.runs, *fresh))
        both.check_alike()
        return both

    def __or__(self, other: SpendRecord) -> SpendRecord:
        """What either tells of; a run of both counts once, and as ended if either says so."""
        runs = list(self.runs)
        places: dict[str, int] = {}
        for place, run in enumerate(runs):
            places |= dict.fromkeys(run.names, place)
        for run in other.runs:
            # A round of a ledger is the same run, whoever entered it, and by whichever name.
            place = next((places[name] for name in run.names if name in places), len(runs))
            if place == len(runs):
                runs.append(run)
            elif runs[place].outcome is Outcome.PENDING or run.went_beyond(runs[place]):
                runs[place] = run
            places |= dict.fromkeys(run.names, place)
        return SpendRecord(tuple(runs))

    def to_json(self) -> str:
        """The record file."""
        return _RECORD.text(self)

    @classmethod
    def read(cls, path: str | PathLike[str]) -> SpendRecord:
        """The record in a file, nothing where there is no such file; LedgerError, naming it."""
        from pate_cli.files.journal import content_with_lines

        with named(path):
            if Path(path).exists() and not Path(path).is_file():
                raise LedgerError("is no regular file, so it cannot keep a record")
        with named(path), contextlib.suppress(FileNotFoundError):
            return cls.from_json(content_with_lines(path))
        return cls()

    @classmethod
    def from_json(cls, text: str | bytes) -> SpendRecord:
        """Read a record; LedgerError when it is truncated, foreign, damaged or newer."""
        # A report has a record in it that is no file.
        from pate_cli.files.journal import lines_of, parts_of

        document, tail = parts_of(text.encode() if isinstance(text, str) else text)
        record = _RECORD.read(cls, document, _older)
        return record.with_asks(lines_of(tail)) if tail else record


def record_beside(ledger: str | PathLike[str]) -> Path:
    """Where the record of what was released is kept: `<ledger>.spent.json` beside the ledger.

    Links are followed, so that another name of the ledger has no record of its own.

    Raises:
        LedgerError: a pipe or a device, beside which nothing can be kept.
    """
    path = Path(ledger)
    with named(path):
        if path.exists() and not (path.is_file() or path.is_dir()):
            raise LedgerError("no regular file, so no record of releases goes beside it")
        try:
            at = path.resolve()
        except (RuntimeError, ValueError):  # links in a circle; a null
            raise LedgerError("is no name of a file") from None
        if at.is_symlink():  # in a circle, from Python 3.13 on
            raise LedgerError("is no name of a file")
    return at.with_name(f"{at.name}.spent.json")


def missing_lines(known: int, told: int) -> str:
    """What is wrong with a record that knows of more queries than lines behind it tell."""
    return (
        f"{known} queries were asked in a session, and the lines behind the record tell of {told}: "
        "they are in another copy of it"
    )


def decimal_sum(numbers: Iterable[float]) -> float:
    """.1 and .2 make .3, neither more nor less."""
    return float(sum((Decimal(repr(number)) for number in numbers), Decimal(0)))


def delta_sum(numbers: Iterable[float]) -> float:
    """Return the sum of δ's in six digits, rounded up."""
    return significant_up(sum((Decimal(repr(number)) for number in numbers), Decimal(0)))


_ENDED: Final = {"pending": "pending", "passed": "labelled", "refused": "refused"}


def _older(data: dict[str, Any], version: int) -> None:
    """Up to version 3 a record told of attempts at a target and of releases alone, without times.

    Version 1 knew of no targets, and its releases had no names; version 4 of all but sessions.
    """
    if version > 3:
        data.update(without_gone(data, LedgerError, "the record is of another version"))
        return
    runs: list[Any] = []
    seen: Counter[str] = Counter()
    for past in _objects(data.pop("releases", None)):
        run = {name: past.get(name) for name in ("beta", "sigma_release", "shift")}
        # Nameless ones of several copies are the same as far as they are alike.
        plain = json.dumps(past, sort_keys=True)
        seen[plain] += 1
        name = past.get("id") or hashlib.sha256(f"{plain} {seen[plain]}".encode()).hexdigest()[:32]
        if past.get("rounds") == []:
            raise LedgerError("the record is damaged: a release of no round")
        runs.append(
            run | {"id": name, "kind": "release", "outcome": "released", "time": None}
            | {"drawn_from": past.get("rounds"), "delta": None}
        )  # fmt: skip
    for past in [] if version == 1 else _objects(data.pop("attempts", None)):
        run = {name: past.get(name) for name in ("id", "epsilon", "delta", "refusal_epsilon")}
        ended = _ENDED.get(str(past.get("outcome")), "")
        runs.append(run | {"kind": "target", "outcome": ended, "time": None})
    data["runs"] = runs
    data["releasable"] = True


def _objects(found: Any) -> list[dict[str, Any]]:
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        return [{}]
    return found
