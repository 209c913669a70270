"""Runs in the form of records and reports, their total cost, and budgets.

All of this is public and contains nothing of the votes. The cost of a run follows from its other
fields. Records state it too, for their readers, and `verify` computes it again.

Several runs have two totals with different premises (THEORY.md, section 15):

- *Chosen beforehand*: `total_of` assumes that neither the choice of runs nor their settings
  depended on earlier results. It is `Cost.together` of all runs. If runs are chosen after seeing
  results, a game with randomised response reaches 1.4 times the stated δ, so no budget uses this
  total.
- *However chosen*: plain sums of every run's own (ε, δ), or the Rényi filter of a budget. They need
  no such premise (section 15.2), so budgets use them to admit runs and to show what is left.

If the holder declares that no person's data reached two ensembles, their costs do not add up. Every
total, sum and budget is then the largest one of any single person (section 15.4).
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
from pate_cli.disclosure.settings import ReleasePlan, Settings, training_of
from pate_cli.files.document import SPARING

_DIGITS: Final = 12


class RunKind(enum.StrEnum):
    """How a run is charged.

    Labels are charged by their worst case, as a tested target, by a composition, or by the rule of
    a session. A release is a draw from ledgers, and an external cost is stated by others.
    """

    WORST_CASE = "worst-case"
    TARGET = "target"
    COMPOSITION = "composition"
    SESSION = "session"
    RELEASE = "release"
    EXTERNAL = "external"


class Outcome(enum.StrEnum):
    """How a run ended; a run that never ended counts in full."""

    PENDING = "pending"
    LABELLED = "labelled"
    REFUSED = "refused"
    RELEASED = "released"
    STATED = "stated"


@dataclass(frozen=True)
class Budget:
    """The most that all runs of a record may cost together, even if they depend on each other.

    It admits runs by one of two rules:

    - plain sums: the ε's of all runs add up to at most ε, and their δ's to at most δ;
    - a Rényi filter: the costs of all runs at one order, which is fixed with the budget, add up to
      at most the cost that this order converts to (ε, δ/2). The other half of δ is for runs that
      have an (ε, δ) and no curve.

    A run in progress counts in full. A failed tested target counts its actual cost in the sums, and
    its full cost in a filter.

    Attributes:
        epsilon: nats, above 0.
        delta: the largest δ of all runs together, in (0, 1).
        order: Rényi order λ > 1 of the filter; None for plain sums.
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
        """Return the budget that the three keywords state; None if they state none.

        Raises:
            UsageError: a δ or an order is given without ε.
            ParameterError: a number is out of range.
        """
        if epsilon is not None:
            return cls(float(epsilon), BUDGET_DELTA if delta is None else float(delta), order)
        for name, value in (("budget_delta", delta), ("budget_order", order)):
            if value is not None:
                raise UsageError(f"`{name}` needs `budget`, the largest epsilon of all runs")
        return None

    def spent(
        self, runs: Sequence[Run], *, ensemble: str | None = None, disjoint_from: Sequence[str] = ()
    ) -> list[tuple[float, float]]:
        """Return totals by the rule of the budget: (ε, δ) of no run, of the first run, and so on.

        A filter converts even a Rényi cost of 0 to some ε and to half of its δ.

        Args:
            runs: in order.
            ensemble, disjoint_from: count only the runs whose costs add to that of a further run of
                this ensemble.

        Raises:
            UnreachableError: half of the budget's δ is too small for the floating-point noise of
                all runs, or a run has no Rényi cost at the order.
        """
        people = people_of(runs, ensemble, disjoint_from)
        if self.order is None:
            return plain_sums(runs, people)
        half = self.delta / 2.0
        _refuse_unknown_draws(runs)
        least = replace(_cost_of(runs), delta=half).least_delta
        if half < least:
            raise UnreachableError(
                f"the runs of the record need a `budget_delta` of at least {2.0 * least:.2g}, "
                "because floating-point noise adds to delta"
            )
        costs = [run.cost.rdp_at(self.order) for run in runs]
        for run, cost in zip(runs, costs, strict=True):
            if not math.isfinite(cost):
                raise UnreachableError(
                    f"run {run.id} has no finite RDP cost at the order {self.order:g} of the budget"
                )
        added = [_sum(pair.delta for pair in run.cost.pairs) for run in runs]
        conversion = order_cost(self.order, delta=half)
        return [
            (significant_up(max(float(cost) + conversion, 0.0), digits=_DIGITS), significant_up(d))
            for cost, d in zip(
                _running(map(Decimal, costs), runs, people),
                _running(added, runs, people, first=_sum([half])),
                strict=True,
            )
        ]

    def left(self, spent: tuple[float, float]) -> tuple[float, float]:
        """Return the (ε, δ) that is left of the budget, both at least 0 and rounded down.

        A run with this cost is admitted. What is left never grows when another run begins. It may
        grow when a run ends that cost less than it could have cost.
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
        """Refuse runs that would exceed the budget.

        Args:
            earlier: the runs of the record, in order.
            fresh: the runs to be entered.
            record: the name of the record in the message.

        Raises:
            UnreachableError: all runs together would cost more than the budget.
            UsageError: an earlier run had another rule, or the first run had no budget and this
                one has a filter.
        """
        others = [run.budget for run in earlier if run.budget is not None]
        late = self.order is not None and bool(earlier) and earlier[0].budget is None
        if late or any(one._rule != self._rule for one in others):
            raise UsageError(
                "the first run of a record fixes the rule of its budget (`budget_order`, and its "
                "`budget_delta`); give the same rule, or none if the first run had none"
            )
        spent = self.spent([*earlier, *fresh])
        (epsilon, delta), before = spent[-1], spent[len(earlier)]
        if epsilon <= self.epsilon and delta <= self.delta:
            return
        count = "1 run" if len(earlier) == 1 else f"{len(earlier)} runs"
        raise UnreachableError(
            f"the budget is epsilon {shown(self.epsilon)} at delta {shown(self.delta)}, and {count}"
            f" in {record} spent epsilon {nats(before[0])} at delta {shown(before[1])}: with this "
            f"run the total would be {nats(epsilon)} at delta {shown(delta)}"
        )

    @property
    def _rule(self) -> tuple[float, float] | None:
        """Return (order, δ) of a filter, which its first run fixes; None for plain sums."""
        return None if self.order is None else (self.order, self.delta)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run, or one cost that others stated; `Run.of` computes its cost.

    Attributes:
        id: the random name of the run, as in its report; for an external part, its digest.
        outcome: how it ended.
        time: when it began, UTC; None if this is unknown.
        epsilon, delta: its full worst-case cost by itself, nats.
        settings: for labels, the settings of the run.
        answers: labels released; None if there are none, or not yet.
        round: name of the round in its ledger; not in reports.
        session: digest of the options of a session; not in reports.
        draw: for a release from ledgers, how its sanitized value was drawn.
        drawn_from: for a release, names of the rounds that it was drawn from; not in reports.
        external: for an external part, its statement.
        votes: the holder's name for the votes; not in reports.
        ensemble: the name of the ensemble; None for a run that counts for everybody.
        disjoint_from: other ensembles that share no person with this one, by the declaration of the
            holder.
        budget: the budget that admitted it.
        promised: False if it has no guarantee for a reason that its settings do not show: a draw
            from a seed, or an input that does not verify.
        total_epsilon, total_delta: the total of all runs up to this one, when it was written.
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
    ensemble: str | None = field(default=None, metadata=SPARING)
    disjoint_from: tuple[str, ...] = field(default=(), metadata=SPARING)
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
            raise LedgerError(
                f"run {shortened(self.id)} must have either settings, a draw or an external cost"
            )
        if self.disjoint_from and self.ensemble in (None, *self.disjoint_from):
            apart = "an ensemble other than those in `disjoint_from`"
            raise LedgerError(f"run {shortened(self.id)} needs {apart}")

    @classmethod
    def of(cls, *, settings: Settings | None = None, **told: Any) -> Run:
        """Return a run with its full cost, which follows from its other fields.

        Args:
            settings: for labels, the settings of the run. **told: other fields of a run except
                `epsilon`; `delta` only for a draw, or for a curve that others state, which is
                converted at this δ.

        Raises:
            UnreachableError: δ is smaller than the δ's of a composition.
        """
        fresh: dict[str, Any] = {"outcome": Outcome.PENDING, "epsilon": 0.0, "delta": 0.0}
        return cls(settings=settings and settings.published, **fresh | told).priced

    @property
    def priced(self) -> Run:
        """Return this run with the (ε, δ) that follows from its other fields."""
        cost = self.cost
        if self.external is not None and not cost.pairs:  # The ε of a curve is not rounded.
            return replace(self, epsilon=cost.of_curves.epsilon)
        return replace(self, epsilon=cost.own.epsilon, delta=cost.own.delta)

    @property
    def kind(self) -> RunKind:
        """Return the kind of run, which decides how it is charged."""
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
        """Return the cost of everything in the run; a tested target has its full and actual ε."""
        settings, stated = self.settings, self.external
        if stated is not None:
            if stated.curve is None:
                return Cost(pairs=(Pair(*stated.pair, "stated"),))
            return Cost(self.delta, stated=(stated,))
        if settings is None:
            return Cost() if self.draw is None else Cost(self.draw.delta, draws=self.draw.draws)
        cost = Cost.of(settings)
        if settings.rule is not None:  # The proof covers the session as a whole.
            return Cost(pairs=(Pair(cost.own.epsilon, cost.own.delta, "session"),))
        if settings.tested is not None:
            (pair,) = cost.pairs
            return Cost(pairs=(replace(pair, came=self.counted),))
        return cost

    @property
    def counted(self) -> float:
        """Return the ε of the run by itself, nats; a failed test counts with its actual cost."""
        tested = None if self.settings is None else self.settings.tested
        if tested is None:
            return self.epsilon
        return tested.refusal_epsilon if self.outcome is Outcome.REFUSED else tested.epsilon

    @property
    def claimed(self) -> bool:
        """Return whether the run has a guarantee; with a seed, for example, it has none."""
        return self.promised and (self.settings is None or self.settings.claimed)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the run: its own id, and the name of its round."""
        return (self.id, self.round) if self.round else (self.id,)

    @property
    def done(self) -> Round | None:
        """Return the round of the run with its number of answers; None if it has no labels."""
        if self.settings is None:
            return None
        return Round.of(self.settings, id=self.round or self.id, answers=self.answers or 0)

    @property
    def public(self) -> Run:
        """Return the run for a report, without names that only its holder or ledgers may have."""
        return replace(self, round="", session=None, drawn_from=(), votes=None)


@dataclass(frozen=True)
class Spent(Figure):
    """All runs of a record, and their total cost.

    Its ε and δ assume that all runs were chosen beforehand.

    Attributes:
        sum_epsilon, sum_delta: plain sums, valid even if later runs depend on earlier results.
        record_epsilon: ε for one training record at the same δ, nats; None unless every run states
            how private the teachers' training was.
        runs: the runs in order, without the fields that only their holder may see.
    """

    sum_epsilon: float = field(default=0.0, metadata=SPARING)
    sum_delta: float = field(default=0.0, metadata=SPARING)
    record_epsilon: float | None = field(default=None, metadata=SPARING)
    runs: tuple[Run, ...] = ()

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Spent:
        """Return the public total of runs; it raises the errors of `total_of`."""
        found, told = total_of(runs), named_where_disjoint(runs)
        sums = plain_sums(runs)[-1]
        # A draw from ledgers uses the votes of other runs, so it states no training itself.
        training = training_of([run.settings for run in runs if run.draw is None])
        if any(len({run.ensemble for run in part}) > 1 for part in _of_each(told)):
            training = None  # a record may reach a teacher of each ensemble (section 23.2)
        record = None if training is None else training.amplified(found.epsilon, found.delta)
        return cls(found.epsilon, found.delta, found.method, found.order, *sums, record, told)

    @property
    def disjoint(self) -> tuple[str, ...]:
        """The declarations that ensembles are disjoint, in words.

        If more than two ensembles are all disjoint from each other, each is named once.
        """
        told = [(run.ensemble, run.disjoint_from) for run in self.runs if run.disjoint_from]
        every = [name for run in self.runs for name in (run.ensemble, *run.disjoint_from)]
        named = [name for name in dict.fromkeys(every) if name is not None]
        pairs = {frozenset((one, other)) for one, others in told for other in others}
        if len(named) > 2 and 2 * len(pairs) == len(named) * (len(named) - 1):
            return (f"any two of {', '.join(named)}",)
        return tuple(dict.fromkeys(f"{one} from {' and '.join(others)}" for one, others in told))

    @property
    def count(self) -> int:
        """Return the number of runs."""
        return len(self.runs)


def named_where_disjoint(runs: Sequence[Run]) -> tuple[Run, ...]:
    """Return runs as reports contain them: with ensembles only if some are declared disjoint."""
    if any(run.disjoint_from for run in runs):
        return tuple(run.public for run in runs)
    return tuple(replace(run.public, ensemble=None) for run in runs)


def people_of(
    runs: Sequence[Run], ensemble: str | None = None, disjoint_from: Sequence[str] = ()
) -> list[frozenset[str | None]]:
    """Return sets of ensembles such that the data of every person reached no more than one set.

    For every ensemble, the set has this ensemble and all earlier ones that are not declared
    disjoint from it (THEORY.md, section 15.4). Sets that are part of other sets are left out. None
    is in all sets: it stands for runs without an ensemble, which count for everybody.

    Args:
        runs: in order.
        ensemble, disjoint_from: return only sets that contain an ensemble with this name and this
            declaration. It may have no run yet.
    """
    told = [*((run.ensemble, run.disjoint_from) for run in runs), (ensemble, disjoint_from)]
    names = [name for name in dict.fromkeys(name for name, _ in told) if name is not None]
    apart = {frozenset((name, other)) for name, others in told for other in others}
    found = [
        frozenset({None, one, *(o for o in names[:at] if frozenset((one, o)) not in apart)})
        for at, one in enumerate(names)
    ] or [frozenset({None})]
    return [one for one in found if ensemble in one and not any(one < other for other in found)]


def _of_each(runs: Sequence[Run]) -> list[list[Run]]:
    """Return for every set of `people_of` the runs of its ensembles."""
    return [[run for run in runs if run.ensemble in one] for one in people_of(runs)]


def _running(
    numbers: Iterable[Decimal],
    runs: Sequence[Run],
    people: Sequence[frozenset[str | None]],
    *,
    first: Decimal = Decimal(0),
) -> list[Decimal]:
    """Return the largest sum of one person's numbers: of no run, of the first one, and so on."""
    told = list(zip(numbers, runs, strict=True))
    each = [
        accumulate([n if run.ensemble in one else Decimal(0) for n, run in told], initial=first)
        for one in people
    ]
    return [max(sums) for sums in zip(*each, strict=True)]


def total_of(runs: Sequence[Run]) -> Figure:
    """Return the total cost of runs that were chosen beforehand; for a single run its own cost.

    If ensembles are declared disjoint, it has the largest ε and the largest δ of any person.

    Raises:
        LedgerError: there is no run, or an ε was drawn from rounds whose cost is unknown.
        ParameterError: δ is 1 or more.
    """
    if not runs:
        raise LedgerError("no run is recorded, so there is no total cost")
    if len(runs) > 1:
        _refuse_unknown_draws(runs)
    each = [
        _cost_of(part).together() if part[1:] else Figure(part[0].counted, part[0].delta, "one")
        for part in _of_each(runs)
    ]
    worst = max(each, key=lambda figure: figure.epsilon)
    return replace(worst, delta=max(figure.delta for figure in each))


def in_full(runs: Sequence[Run]) -> tuple[Figure, Figure]:
    """Return the costs of everything and of the labels alone, as if every test had passed."""
    ends = {Outcome.REFUSED: Outcome.LABELLED}
    full = [replace(run, outcome=ends.get(run.outcome, run.outcome)) for run in runs]
    labels = [
        replace(run, settings=replace(run.settings, sanitizer=None))
        for run in full
        if run.settings is not None
    ]
    return total_of(full), total_of(labels or full)


def plain_sums(
    runs: Sequence[Run], people: Sequence[frozenset[str | None]] | None = None
) -> list[tuple[float, float]]:
    """Return plain sums: (ε, δ) of no run, of the first run, of the first two runs, and so on.

    They are valid even if later runs depend on earlier results.

    Args:
        runs: in order.
        people: from `people_of`; everybody if left out.
    """
    people = people_of(runs) if people is None else people
    epsilons = _running((_sum([run.counted]) for run in runs), runs, people)
    deltas = _running((_sum([run.delta]) for run in runs), runs, people)
    return [(float(e), significant_up(d)) for e, d in zip(epsilons, deltas, strict=True)]


def _refuse_unknown_draws(runs: Sequence[Run]) -> None:
    """Raise LedgerError if an ε was drawn from rounds that are not among the runs."""
    known = {run.round for run in runs if not run.cost.pairs}
    if any(not known.issuperset(run.drawn_from) for run in runs):
        raise LedgerError(
            "an epsilon was drawn from rounds whose labels the record does not contain; give "
            "their ledgers to pate release with this record"
        )


def _cost_of(runs: Sequence[Run]) -> Cost:
    """Return the cost of all runs."""
    return functools.reduce(operator.add, (run.cost for run in runs), Cost())


def _sum(numbers: Iterable[float]) -> Decimal:
    """Return the sum of numbers by their decimal digits, so that .1 and .2 make .3."""
    return sum((Decimal(repr(number)) for number in numbers), Decimal(0))
