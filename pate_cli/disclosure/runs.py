"""Runs as a record and reports tell of them, what they cost together, and what a budget admits.

All of it is public and holds nothing of the votes. What a run costs follows from the rest; it is
stated all the same, for whoever reads a record, and `verify` computes it again.

What runs cost together has two figures, which rest on different things (accounting/THEORY.md,
section 20):

- *Chosen beforehand*: `total_of` presupposes that which runs there were and their settings did not
  follow from what earlier ones released. It is `Cost.together` of all runs. A game with randomised
  response takes it to 1.4 times its δ, so it admits nothing.
- *However chosen*: plain sums of every run's own (ε, δ), or the Rényi filter of a budget. They
  presuppose nothing (section 20.2), so they alone admit a run and say what is left of a budget.
"""

from __future__ import annotations

import enum
import functools
import math
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import ROUND_FLOOR, Context, Decimal
from functools import cached_property
from itertools import accumulate
from typing import Any, Final, Self

from pate_cli.accounting.conversion import order_cost, significant_up
from pate_cli.core.checks import check_delta, check_nonnegative, check_order, check_positive
from pate_cli.core.errors import LedgerError, UnreachableError, UsageError, shortened
from pate_cli.core.words import BUDGET_DELTA
from pate_cli.disclosure.cost import Cost, Figure, Pair
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.figures import nats, shown
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.settings import ReleasePlan, Settings
from pate_cli.files.document import SPARING

_DIGITS: Final = 12


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
class Budget:
    """The most that all runs of a record may cost together, however they are chosen.

    It admits a run by one of two rules:

    - plain sums: the ε's of all runs add up to at most ε, their δ's to at most δ;
    - a Rényi filter: the costs of all runs at one order, which is fixed with the budget, add up to
      at most what that order turns into (ε, δ/2); the other half of δ is for runs that have an
      (ε, δ) and no curve.

    A run that is under way counts in full. A refusal of a tested target counts as what it cost in
    the sums, and in full in a filter.

    Attributes:
        epsilon: nats, above 0.
        delta: of all runs together, in (0, 1).
        order: Rényi order λ > 1 of the filter that admits runs; None admits by plain sums.
    """

    epsilon: float
    delta: float = BUDGET_DELTA
    order: float | None = field(default=None, metadata=SPARING)

    def __post_init__(self) -> None:
        check_positive("`budget`", self.epsilon)
        check_delta(self.delta)
        if self.order is not None:
            check_order(self.order)

    @classmethod
    def of(
        cls, epsilon: float | None, *, delta: float | None = None, order: float | None = None
    ) -> Self | None:
        """Return the budget that the three keywords state; None where they state none.

        Raises:
            UsageError: a δ or an order of a budget that has no ε.
            ParameterError: a number out of range.
        """
        if epsilon is not None:
            return cls(float(epsilon), BUDGET_DELTA if delta is None else float(delta), order)
        for name, value in (("budget_delta", delta), ("budget_order", order)):
            if value is not None:
                raise UsageError(f"`{name}` goes with `budget`, the epsilon of both")
        return None

    def spent(self, runs: Sequence[Run]) -> list[tuple[float, float]]:
        """Return the (ε, δ) of no run, of the first, of the first two and so on, by its rule.

        A filter turns a Rényi cost of 0 into an ε and half of its δ as well.

        Raises:
            UnreachableError: half of the budget's δ is too small beside what the noise of
                floating-point numbers adds over all runs; or a run has no Rényi cost at the order.
        """
        if self.order is None:
            return plain_sums(runs)
        half = self.delta / 2.0
        least = replace(_cost_of(runs), delta=half).least_delta
        if half < least:
            raise UnreachableError(
                f"the runs of the record need a `budget_delta` of {2.0 * least:.2g} at least, for "
                "what floating-point noise adds"
            )
        costs = [run.cost.rdp_at(self.order) for run in runs]
        for run, cost in zip(runs, costs, strict=True):
            if not math.isfinite(cost):
                raise UnreachableError(
                    f"run {run.id} has no Renyi cost at the order {self.order:g} of the budget"
                )
        rdp = accumulate(map(Decimal, costs), initial=Decimal(0))
        added = (_sum(pair.delta for pair in run.cost.pairs) for run in runs)
        conversion = order_cost(self.order, delta=half)
        return [
            (significant_up(max(float(cost) + conversion, 0.0), digits=_DIGITS), significant_up(d))
            for cost, d in zip(rdp, accumulate(added, initial=_sum([half])), strict=True)
        ]

    def left(self, spent: tuple[float, float]) -> tuple[float, float]:
        """Return the (ε, δ) that are left where so much is spent, each at least 0, rounded down.

        A run of so much is admitted. What is left does not grow with any further run; it does when
        a run that was under way ends for less than it might have cost.
        """
        rounding = Context(prec=_DIGITS, rounding=ROUND_FLOOR)
        epsilon, delta = (
            float(rounding.create_decimal(_sum([most]) - _sum([gone])))
            for most, gone in zip((self.epsilon, self.delta), spent, strict=True)
        )
        return max(epsilon, 0.0), max(delta, 0.0)

    def refuse(
        self, earlier: Sequence[Run], fresh: Sequence[Run], *, record: str = "the record"
    ) -> None:
        """Refuse runs that it has no room for.

        Args:
            earlier: the runs of the record, in order.
            fresh: what is to be entered.
            record: what it is called, in the message.

        Raises:
            UnreachableError: all of them together would cost more than the budget.
            UsageError: earlier runs were admitted by another rule, or before a filter was chosen.
        """
        others = [run.budget for run in earlier if run.budget is not None]
        late = self.order is not None and bool(earlier) and earlier[0].budget is None
        if late or any(one._rule != self._rule for one in others):
            raise UsageError(
                "the rule of a budget (`budget_order`, and its `budget_delta`) is fixed by the "
                "first run of a record; state that of this one, or none where that had none"
            )
        spent = self.spent([*earlier, *fresh])
        (epsilon, delta), before = spent[-1], spent[len(earlier)]
        if epsilon <= self.epsilon and delta <= self.delta:
            return
        count = "1 run" if len(earlier) == 1 else f"{len(earlier)} runs"
        raise UnreachableError(
            f"the budget is epsilon {shown(self.epsilon)} at delta {shown(self.delta)}, and {count}"
            f" in {record} spent epsilon {nats(before[0])} at delta {shown(before[1])}: with this "
            f"one it would be {nats(epsilon)} at delta {shown(delta)}"
        )

    @property
    def _rule(self) -> tuple[float, float] | None:
        """Return (order, δ) of a filter, which its first run fixes; None for plain sums."""
        return None if self.order is None else (self.order, self.delta)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run, or one cost that others stated; `Run.of` says what it costs.

    Attributes:
        id: of a run as its report has it, random; of an external part its digest.
        outcome: how it ended.
        time: when it began, UTC; None where nobody noted it.
        epsilon, delta: what it costs by itself in full whatever the votes, nats.
        settings: of labels, what the run was told.
        answers: labels released; None where there are none, or not yet.
        round: name of the round, by which a ledger of it is known; not in reports.
        session: digest of what it was opened with, where queries come one by one; not in reports.
        draw: of a release from ledgers, how the sanitized value was drawn that it published.
        drawn_from: names of the rounds that it was drawn from; not in reports.
        external: of an external part, all that is stated.
        votes: what the holder calls the votes; not in reports.
        budget: the one that admitted it.
        promised: False where it promises nothing for a reason that its settings do not tell: a
            draw by a seed, or an input that does not verify.
        total_epsilon, total_delta: of all runs up to this one, when it was noted.
    """

    id: str
    outcome: Outcome
    time: str | None
    epsilon: float
    delta: float
    settings: Settings | None = field(default=None, metadata=SPARING)
    answers: int | None = field(default=None, metadata=SPARING)
    round: str = field(default="", metadata=SPARING)
    session: str | None = field(default=None, metadata=SPARING)
    draw: ReleasePlan | None = field(default=None, metadata=SPARING)
    drawn_from: tuple[str, ...] = field(default=(), metadata=SPARING)
    external: Stated | None = field(default=None, metadata=SPARING)
    votes: str | None = field(default=None, metadata=SPARING)
    budget: Budget | None = field(default=None, metadata=SPARING)
    promised: bool = field(default=True, metadata=SPARING)
    total_epsilon: float | None = field(default=None, metadata=SPARING)
    total_delta: float | None = field(default=None, metadata=SPARING)

    def __post_init__(self) -> None:
        check_nonnegative("epsilon", self.epsilon)
        if not 0.0 <= self.delta < 1.0:
            raise LedgerError(f"run {shortened(self.id)}: delta {self.delta:g} is not below 1")
        drawn = self.draw.draws if self.draw is not None else ()
        if sum(map(bool, (self.settings, drawn, self.external))) != 1:
            raise LedgerError(f"run {shortened(self.id)} does not say what it cost")

    @classmethod
    def of(cls, *, settings: Settings | None = None, **told: Any) -> Run:
        """Return a run with what it costs in full, which follows from all else.

        Args:
            settings: of labels, what the run was told.
            **told: other fields of a run without `epsilon`; `delta` only of a draw, or of a curve
                that others state, which is converted there.

        Raises:
            UnreachableError: a δ below what a composition amounts to.
        """
        fresh: dict[str, Any] = {"outcome": Outcome.PENDING, "epsilon": 0.0, "delta": 0.0}
        return cls(settings=settings and settings.published, **fresh | told).priced

    @property
    def priced(self) -> Run:
        """This run with the (ε, δ) that its cost comes to."""
        cost = self.cost
        if self.external is not None and not cost.pairs:  # to all its digits
            return replace(self, epsilon=cost.of_curves.epsilon)
        return replace(self, epsilon=cost.own.epsilon, delta=cost.own.delta)

    @property
    def kind(self) -> RunKind:
        """How it is charged."""
        settings = self.settings
        if settings is None:
            return RunKind.EXTERNAL if self.draw is None else RunKind.RELEASE
        if settings.tested is not None:
            return RunKind.TARGET
        if settings.rule is not None:
            return RunKind.SESSION
        composed = settings.analysis == "composition"
        return RunKind.COMPOSITION if composed else RunKind.WORST_CASE

    @cached_property
    def cost(self) -> Cost:
        """Everything that the run spends; a tested target in full and as it came out."""
        settings, stated = self.settings, self.external
        if stated is not None:
            if stated.curve is None:
                return Cost(pairs=(Pair(*stated.pair, "stated"),))
            return Cost(self.delta, stated=(stated,))
        if settings is None:
            return Cost() if self.draw is None else Cost(self.draw.delta, draws=self.draw.draws)
        cost = Cost.of(settings)
        if settings.rule is not None:  # a session is proved as a whole
            return Cost(pairs=(Pair(cost.own.epsilon, cost.own.delta, "session"),))
        if settings.tested is not None:
            (pair,) = cost.pairs
            return Cost(pairs=(replace(pair, came=self.counted),))
        return cost

    @property
    def counted(self) -> float:
        """ε that it counts for by itself, nats: a refusal what that costs."""
        tested = None if self.settings is None else self.settings.tested
        if tested is None:
            return self.epsilon
        return tested.refusal_epsilon if self.outcome is Outcome.REFUSED else tested.epsilon

    @property
    def claimed(self) -> bool:
        """False where nothing is promised: noise from a seed, facts read off the votes."""
        return self.promised and (self.settings is None or self.settings.claimed)

    @property
    def names(self) -> tuple[str, ...]:
        """By which it is known: its own, and of rows that of their round."""
        return (self.id, self.round) if self.round else (self.id,)

    @property
    def done(self) -> Round | None:
        """Its rows with how many were answered; None where it has none."""
        if self.settings is None:
            return None
        return Round.of(self.settings, id=self.round or self.id, answers=self.answers or 0)

    @property
    def public(self) -> Run:
        """The run as reports have it: without names that its holder gave, or that ledgers know."""
        return replace(self, round="", session=None, drawn_from=(), votes=None)


@dataclass(frozen=True)
class Spent(Figure):
    """All runs that a record tells of, and what they cost together.

    Its ε and δ are of runs chosen beforehand.

    Attributes:
        sum_epsilon, sum_delta: of the runs however they were chosen.
        runs: in order, without what is their holder's alone.
    """

    sum_epsilon: float = field(default=0.0, metadata=SPARING)
    sum_delta: float = field(default=0.0, metadata=SPARING)
    runs: tuple[Run, ...] = ()

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Spent:
        """Return what is published of runs; errors as of `total_of`."""
        found, told = total_of(runs), tuple(run.public for run in runs)
        sums = plain_sums(runs)[-1]
        return cls(found.epsilon, found.delta, found.method, found.order, *sums, told)

    @property
    def count(self) -> int:
        """How many runs it is of."""
        return len(self.runs)


def total_of(runs: Sequence[Run]) -> Figure:
    """Return what runs cost together if they were chosen beforehand; one by itself.

    Raises:
        LedgerError: no run, or a draw from rounds whose cost nobody told of.
        ParameterError: a δ of 1 or more.
    """
    if not runs:
        raise LedgerError("no run is recorded, so there is no total cost")
    if len(runs) == 1:
        return Figure(runs[0].counted, runs[0].delta, "one")
    return _cost_of(runs).together()


def in_full(runs: Sequence[Run]) -> tuple[Figure, Figure]:
    """Return what runs cost if every test had passed: everything, and the labels without draws."""
    ends = {Outcome.REFUSED: Outcome.LABELLED}
    full = [replace(run, outcome=ends.get(run.outcome, run.outcome)) for run in runs]
    labels = [
        replace(run, settings=replace(run.settings, sanitizer=None))
        for run in full
        if run.settings is not None
    ]
    return total_of(full), total_of(labels or full)


def plain_sums(runs: Sequence[Run]) -> list[tuple[float, float]]:
    """Return the (ε, δ) of no run, of the first, of the first two and so on, however chosen."""
    epsilons = accumulate((_sum([run.counted]) for run in runs), initial=Decimal(0))
    deltas = accumulate((_sum([run.delta]) for run in runs), initial=Decimal(0))
    return [(float(e), significant_up(d)) for e, d in zip(epsilons, deltas, strict=True)]


def _cost_of(runs: Sequence[Run]) -> Cost:
    """Return the cost of all runs; LedgerError for a draw from rounds that are not among them."""
    known = {run.round for run in runs if not run.cost.pairs}
    if any(not known.issuperset(run.drawn_from) for run in runs):
        raise LedgerError(
            "an epsilon was drawn from rounds whose labels the record does not tell of; give "
            "their ledgers to pate release with this record"
        )
    return functools.reduce(operator.add, (run.cost for run in runs), Cost())


def _sum(numbers: Iterable[float]) -> Decimal:
    """Return the sum of numbers as people add them: .1 and .2 make .3."""
    return sum((Decimal(repr(number)) for number in numbers), Decimal(0))
