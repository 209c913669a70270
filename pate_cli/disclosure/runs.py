"""Runs as records and reports contain them, the total cost of runs, and budgets.

Runs, total costs and budgets are public and contain nothing of the votes. The cost of a run follows
from its other fields. For readers, a record also contains the cost of each run, and `verify`
computes this cost again.

The cost of several runs together depends on how the runs were chosen (THEORY.md, section 15):

- *Chosen beforehand*: `total_of` assumes that neither the choice of runs nor their settings
  depended on earlier results. `Cost.together` computes the total cost of several runs. If later
  runs depend on earlier results, the total may be too small: in an example with randomised
  response, the true δ is 1.4 times the stated δ. Budgets do not use `total_of`, because later runs
  may depend on earlier results.
- *However chosen*: the sums of every run's own ε and δ, or the Rényi filter of a budget, are valid
  even if later runs depend on earlier results (section 15.2). Budgets admit runs by the sums of ε
  and δ, or by a Rényi filter.

If the holder declares that no person's data reached two ensembles, no total adds the costs
of both ensembles. If ensembles are disjoint, every total, sum and budget is for the person with the
largest cost (section 15.4).
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
from typing import Any, Self

from pate_cli.accounting.conversion import order_cost, significant_up
from pate_cli.core.checks import check_delta, check_nonnegative, check_order, check_positive
from pate_cli.core.errors import LedgerError, UnreachableError, UsageError, shortened
from pate_cli.core.words import BUDGET_DELTA
from pate_cli.disclosure.cost import DIGITS, Cost, Figure, Pair, decimal_sum, nats, shown
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.settings import ReleasePlan, Settings, training_of
from pate_cli.files.document import SPARING


class RunKind(enum.StrEnum):
    """How a run is charged.

    A run of labels is charged one of four costs: its worst case; the (ε, δ) of its tested target;
    the (ε, δ) of a composition; or, in a session, the cost of all answers that the stopping rule of
    the session allows. A release is charged the cost of the sanitized ε that it drew from ledgers.
    An external entry is charged the cost that others state, converted to a cost for one replaced
    record.
    """

    WORST_CASE = "worst-case"
    TARGET = "target"
    COMPOSITION = "composition"
    SESSION = "session"
    RELEASE = "release"
    EXTERNAL = "external"


class Outcome(enum.StrEnum):
    """How a run ended; a run that never ended is pending, and its full cost counts."""

    PENDING = "pending"
    LABELLED = "labelled"
    REFUSED = "refused"
    RELEASED = "released"
    STATED = "stated"


@dataclass(frozen=True)
class Budget:
    """The most that all runs of a record may cost together, even if they depend on each other.

    A budget admits runs by one of two rules:

    - plain sums: the ε's of all runs add up to at most ε, and their δ's to at most δ;
    - a Rényi filter: the RDP costs of all runs at one order add up to at most the RDP cost that
      corresponds to (ε, δ/2). The Rényi order is part of the budget, and the same for all runs.
      A Rényi filter uses half of δ to convert the RDP cost to an ε, and the other half for runs
      whose cost is an (ε, δ) without an RDP curve.

    A run that has not ended counts with its full cost. After a failed release test, plain sums
    count the actual cost of the run, and a Rényi filter counts the full cost of the run.

    Attributes:
        epsilon: the largest ε of all runs together, nats, above 0.
        delta: the largest δ of all runs together, in (0, 1).
        order: the order λ > 1 of the Rényi filter; None if the budget uses plain sums.
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
        """Return the budget of `epsilon`, `delta` and `order`; None if all three are None.

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
        """Return the total (ε, δ) of all runs so far: before the first run, and after each run.

        The total follows the rule of the budget, which is plain sums or a Rényi filter.
        With a Rényi filter, even no run at all has an ε above 0 and half of the budget's δ, because
        converting an RDP cost adds to ε and uses half of δ.

        Args:
            runs: the runs in order.
            ensemble, disjoint_from: the ensemble of a run that is planned after `runs`, and the
                ensembles that the planned run declares disjoint from `ensemble`. Each total is
                for the person with the largest total among the persons whose data may reach
                `ensemble`; without `ensemble`, among all persons.

        Raises:
            UnreachableError: the runs need a larger δ than half of the budget's δ, because their
                noise is floating-point noise; or a run has no finite RDP cost at `order`.
        """
        people = people_of(runs, ensemble, disjoint_from)
        if self.order is None:
            return plain_sums(runs, people)
        half = self.delta / 2.0
        _refuse_unknown_draws(runs)
        least = replace(cost_of(runs), delta=half).least_delta
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
                    ", so this budget cannot include the run; if the record is still empty, leave "
                    "out `budget_order` or give a smaller one"
                )
        added = [decimal_sum(pair.delta for pair in run.cost.pairs) for run in runs]
        conversion = order_cost(self.order, delta=half)
        return [
            (significant_up(max(float(cost) + conversion, 0.0), digits=DIGITS), significant_up(d))
            for cost, d in zip(
                _running(map(Decimal, costs), runs, people),
                _running(added, runs, people, first=decimal_sum([half])),
                strict=True,
            )
        ]

    def left(self, spent: tuple[float, float]) -> tuple[float, float]:
        """Return the (ε, δ) that is left of the budget, both at least 0 and rounded down.

        The budget admits a run that costs no more than the returned (ε, δ). The rest of the budget
        never grows when a run begins. The rest of the budget may grow when a run ends, if the run
        has cost less than its full cost.
        """
        rounding = Context(prec=DIGITS, rounding=ROUND_FLOOR)
        epsilon, delta = (
            float(rounding.create_decimal(decimal_sum([most]) - decimal_sum([gone])))
            for most, gone in zip((self.epsilon, self.delta), spent, strict=True)
        )
        return max(epsilon, 0.0), max(delta, 0.0)

    def refuse(
        self, earlier: Sequence[Run], fresh: Sequence[Run], *, record: str = "the record"
    ) -> None:
        """Refuse runs that would exceed the budget.

        Args:
            earlier: the runs of the record, in order.
            fresh: the runs that are to enter the record.
            record: the name of the record in the message.

        Raises:
            UnreachableError: all runs together would cost more than the budget.
            UsageError: the first run had a budget with another `order` than this budget; or both
                budgets have a Rényi filter, but with different δ's; or this budget has a Rényi
                filter, but the first run had no budget.
        """
        if not self.fixed_by(earlier):
            raise UsageError(
                "the first run of a record fixes `budget_order` and its `budget_delta` for all "
                "later runs; give the same numbers as the first run, or leave them out if the "
                "first run had none"
            )
        spent = self.spent([*earlier, *fresh])
        (epsilon, delta), before = spent[-1], spent[len(earlier)]
        if epsilon <= self.epsilon and delta <= self.delta:
            return
        count = "1 run" if len(earlier) == 1 else f"{len(earlier)} runs"
        raise UnreachableError(
            f"the budget is epsilon {shown(self.epsilon)} at delta {shown(self.delta)}, and {count}"
            f" in {record} spent epsilon {nats(before[0])} at delta {shown(before[1])}: with this "
            f"run the total would be {nats(epsilon)} at delta {shown(delta)}; change the run so "
            "that it costs less, or give a larger budget"
        )

    def fixed_by(self, runs: Sequence[Run]) -> bool:
        """Return whether the first run fixed the rule of this budget; True if there are no runs.

        A Rényi filter is valid only if it was fixed before the first run (THEORY.md, section 15.2).
        """
        first = runs[0].budget if runs else self
        return (first and first._rule) == self._rule

    @property
    def _rule(self) -> tuple[float, float] | None:
        """The order and δ of the Rényi filter; None if the budget uses plain sums."""
        return None if self.order is None else (self.order, self.delta)


@dataclass(frozen=True, kw_only=True)
class Run:
    """One entry of a record: a run, or a cost that others state; `Run.of` computes its cost.

    Attributes:
        id: the random name of the run, as in its report; for a cost that others state, a hash of
            the statement.
        outcome: how the run ended.
        time: when the run began, UTC; None if this is unknown.
        epsilon, delta: the full worst-case cost of the run by itself; ε in nats.
        settings: the settings of a run of labels; None for a release, or for a cost that others
            state.
        answers: the number of labels released; None if no labels were released so far.
        round: the name of the run's round in its ledger; not in reports.
        session: a hash of the options of a session, by which a continued session finds its run in
            the record; None in reports.
        turns: eight random digits for each time at which a session was asked queries. If the
            sessions in two copies of a record were asked different queries, the copies differ in
            `turns`.
        draw: the parameters with which a release drew a sanitized ε from ledgers; None if this
            entry is not a release.
        drawn_from: the names of the rounds from whose costs a release drew the sanitized ε; empty
            in reports.
        external: the cost of another mechanism, as its owner states it; None for a run.
        votes: the name of the file, folder or pattern of files with the votes, without its path;
            not in reports.
        ensemble: the name of the ensemble; None if no ensemble is named, and then the cost of the
            run counts for every person.
        disjoint_from: other ensembles that share no person with `ensemble`, as the holder declares.
        budget: the budget that admitted the run; None without a budget.
        promised: False if the run has no guarantee for a reason that its settings do not show: a
            draw from a seed, or an input that does not verify.
        total_epsilon, total_delta: the total of all runs in the record when this run was entered,
            or when it ended.
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
    turns: str = field(default="", metadata=SPARING)
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
                f"run {shortened(self.id)} must have either `settings`, a `draw` of a sanitized "
                "epsilon, or an `external` cost"
            )
        if self.disjoint_from and self.ensemble in (None, *self.disjoint_from):
            apart = "an ensemble other than those in `disjoint_from`"
            raise LedgerError(f"run {shortened(self.id)} needs {apart}")

    @classmethod
    def of(cls, *, settings: Settings | None = None, **told: Any) -> Run:
        """Return a run with its full cost, which follows from its other fields.

        Args:
            settings: the settings of a run of labels; else None. **told: other fields of the run,
                except `epsilon`. Give `delta` only with an RDP curve that others state. The curve
                is converted to an ε at the larger of `delta` and the `least_delta` of the curve.

        Raises:
            UnreachableError: the δ of `settings` is smaller than the sum of the δ's of all answers.
        """
        fresh: dict[str, Any] = {"outcome": Outcome.PENDING, "epsilon": 0.0, "delta": 0.0}
        return cls(settings=settings and settings.published, **fresh | told).priced

    @property
    def priced(self) -> Run:
        """Return this run with the (ε, δ) that follows from its other fields."""
        cost = self.cost
        if self.external is not None and not cost.pairs:  # The ε of a curve is not rounded.
            return replace(self, epsilon=cost.of_curves.epsilon, delta=cost.delta)
        return replace(self, epsilon=cost.own.epsilon, delta=cost.own.delta)

    def totalled(self, total: Figure) -> Run:
        """Return this run with the total cost of all runs in its record."""
        return replace(self, total_epsilon=total.epsilon, total_delta=total.delta)

    @property
    def kind(self) -> RunKind:
        """Return the kind of the run, which decides how its cost is computed."""
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
        """Return the cost of everything in the run.

        For a tested target, the cost has two ε's: `epsilon` is the cost if the labels pass the
        release test, and `came` is the cost that the run had in the end.
        """
        settings, stated = self.settings, self.external
        if stated is not None:
            if stated.curve is None:
                return Cost(pairs=(Pair(*stated.pair, "stated"),))
            return Cost(max(self.delta, stated.least_delta), stated=(stated,))
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
        """Return the ε of the run by itself, nats; after a failed test, the cost of the failure."""
        tested = None if self.settings is None else self.settings.tested
        if tested is None:
            return self.epsilon
        return tested.refusal_epsilon if self.outcome is Outcome.REFUSED else tested.epsilon

    @property
    def claimed(self) -> bool:
        """Return whether the run has a guarantee; a run with a seed, for example, has none."""
        return self.promised and (self.settings is None or self.settings.claimed)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the run: its id, and the name of its round if it has a round."""
        return (self.id, self.round) if self.round else (self.id,)

    @property
    def done(self) -> Round | None:
        """Return the run's settings and number of answers; None if it is not a run of labels."""
        if self.settings is None:
            return None
        return Round.of(self.settings, id=self.round or self.id, answers=self.answers or 0)

    @property
    def public(self) -> Run:
        """Return the run as reports show it, without names that only ledgers or records have."""
        return replace(self, round="", session=None, drawn_from=(), votes=None)


@dataclass(frozen=True)
class Spent(Figure):
    """All runs of a record, and their total cost if all runs were chosen beforehand.

    Attributes:
        sum_epsilon, sum_delta: the sums of the ε's and of the δ's of all runs, valid even if later
            runs depend on earlier results.
        record_epsilon: the ε of all runs for one training record, at `delta`, nats; None unless
            every run states how private the teachers' training was.
        runs: the runs in order, without the fields that only ledgers and records contain.
    """

    sum_epsilon: float = field(default=0.0, metadata=SPARING)
    sum_delta: float = field(default=0.0, metadata=SPARING)
    record_epsilon: float | None = field(default=None, metadata=SPARING)
    runs: tuple[Run, ...] = ()

    @classmethod
    def of(cls, runs: Sequence[Run]) -> Spent:
        """Return the runs as reports contain them, with their total cost (see `total_of`)."""
        found, told = total_of(runs), named_where_disjoint(runs)
        sums = plain_sums(runs)[-1]
        # A draw from ledgers uses the votes of other runs, so it states no training itself.
        training = training_of([run.settings for run in runs if run.draw is None])
        if training is None or trained_several_times(told):
            record = None
        else:
            record = training.amplified(found.epsilon, found.delta)
        return cls(found.epsilon, found.delta, found.method, found.order, *sums, record, told)

    @property
    def disjoint(self) -> tuple[str, ...]:
        """Return the declarations that ensembles are disjoint, in words.

        If there are more than two ensembles, and each is disjoint from every other one, a single
        phrase names all ensembles.
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
    """Return public runs; they name their ensembles only if the guarantee depends on the names.

    The guarantee depends on the names of ensembles if a run declares ensembles disjoint, or if a
    run states how private the training of its teachers was, because the teachers of an ensemble
    with another name were trained again.
    """
    trained = any(run.settings is not None and run.settings.training is not None for run in runs)
    if trained or any(run.disjoint_from for run in runs):
        return tuple(run.public for run in runs)
    return tuple(replace(run.public, ensemble=None) for run in runs)


def people_of(
    runs: Sequence[Run], ensemble: str | None = None, disjoint_from: Sequence[str] = ()
) -> list[frozenset[str | None]]:
    """Return sets of ensembles: each set has all ensembles that one person's data may reach.

    There is one set for each ensemble. The set of an ensemble contains this ensemble, and all
    earlier ensembles that are not declared disjoint from it (THEORY.md, section 15.4). A set
    that is part of another set is left out. All sets contain None, which stands for runs without an
    ensemble: the cost of a run without an ensemble counts for every person.

    Args:
        runs: the runs in order.
        ensemble, disjoint_from: an ensemble, and other ensembles that are declared disjoint from
            `ensemble`. Only sets that contain `ensemble` are returned. `runs` need not contain a
            run of `ensemble`.
    """
    told = [*((run.ensemble, run.disjoint_from) for run in runs), (ensemble, disjoint_from)]
    names = [name for name in dict.fromkeys(name for name, _ in told) if name is not None]
    apart = {frozenset((name, other)) for name, others in told for other in others}
    found = [
        frozenset({None, one, *(o for o in names[:at] if frozenset((one, o)) not in apart)})
        for at, one in enumerate(names)
    ] or [frozenset({None})]
    return [one for one in found if ensemble in one and not any(one < other for other in found)]


def trained_several_times(runs: Sequence[Run]) -> bool:
    """Return whether one person's data may have reached teachers of several ensembles.

    If one person's data reached teachers of several ensembles, a training record influences the
    release through several trainings, and the cost for one record is not computed (THEORY.md,
    section 23.2).
    """
    voted = [run for run in runs if run.draw is None]
    return any(len({run.ensemble for run in part}) > 1 for part in _of_each(voted))


def _of_each(runs: Sequence[Run]) -> list[list[Run]]:
    """Return one list for every set of ensembles from `people_of`: the runs of these ensembles."""
    return [[run for run in runs if run.ensemble in one] for one in people_of(runs)]


def _running(
    numbers: Iterable[Decimal],
    runs: Sequence[Run],
    people: Sequence[frozenset[str | None]],
    *,
    first: Decimal = Decimal(0),
) -> list[Decimal]:
    """Return the sum of `numbers` before the first run and after each run.

    A run counts for a person only if the person's set in `people` contains the ensemble of the run.
    Each returned sum is the largest sum of any person.

    Args:
        numbers: one number for each run.
        runs: the runs in order.
        people: sets of ensembles, from `people_of`.
        first: the sum before the first run.
    """
    told = list(zip(numbers, runs, strict=True))
    each = [
        accumulate([n if run.ensemble in one else Decimal(0) for n, run in told], initial=first)
        for one in people
    ]
    return [max(sums) for sums in zip(*each, strict=True)]


def fixed_late(histories: Iterable[Sequence[Run]]) -> bool:
    """Return whether a Rényi filter may have been chosen after some run, so that it is not valid.

    Args:
        histories: the runs of several records that become one, each in order. The Rényi filter of
            the first run is valid only if it was fixed before the first run of every record.
    """
    rules = [runs[0].budget and runs[0].budget._rule for runs in histories if runs]
    return len({*rules}) > 1 and rules[0] is not None


def total_of(runs: Sequence[Run]) -> Figure:
    """Return the total cost of runs that were chosen beforehand.

    The total of a single run is the cost of this run by itself.

    If ensembles are declared disjoint, the total has the largest ε and the largest δ of any person.

    Raises:
        LedgerError: there is no run; or a release drew a sanitized ε from the costs of rounds that
            are not among the runs.
        ParameterError: δ is 1 or more.
    """
    if not runs:
        raise LedgerError("there are no runs, so there is no total cost; give a record with runs")
    if len(runs) > 1:
        _refuse_unknown_draws(runs)
    each = [
        cost_of(part).together() if part[1:] else Figure(part[0].counted, part[0].delta, "one")
        for part in _of_each(runs)
    ]
    worst = max(each, key=lambda figure: figure.epsilon)
    return replace(worst, delta=max(figure.delta for figure in each))


def in_full(runs: Sequence[Run]) -> tuple[Figure, Figure]:
    """Return the total costs of runs, and of their labels, as if no release test had failed.

    The cost of the labels is valid at the δ of the total cost of all runs. If the labels alone need
    a larger δ than this δ, the total cost of all runs is returned as the cost of the labels.
    """
    ends = {Outcome.REFUSED: Outcome.LABELLED}
    full = [replace(run, outcome=ends.get(run.outcome, run.outcome)) for run in runs]
    labels = [
        replace(run, settings=replace(run.settings, sanitizer=None))
        for run in full
        if run.settings is not None
    ]
    whole, alone = total_of(full), total_of(labels or full)
    return whole, alone if alone.delta <= whole.delta else whole


def plain_sums(
    runs: Sequence[Run], people: Sequence[frozenset[str | None]] | None = None
) -> list[tuple[float, float]]:
    """Return the plain sums of ε's and of δ's: before the first run, and after each run.

    Plain sums are valid even if later runs depend on earlier results.

    Args:
        runs: the runs in order.
        people: sets of ensembles, from `people_of`; if left out, `people_of(runs)`. Each set in
            `people` stands for a person. Each returned sum is the largest sum of any person.
    """
    people = people_of(runs) if people is None else people
    epsilons = _running((decimal_sum([run.counted]) for run in runs), runs, people)
    deltas = _running((decimal_sum([run.delta]) for run in runs), runs, people)
    return [(float(e), significant_up(d)) for e, d in zip(epsilons, deltas, strict=True)]


def _refuse_unknown_draws(runs: Sequence[Run]) -> None:
    """Raise LedgerError if a release drew an ε from rounds that are not among the runs."""
    known = {run.round for run in runs if not run.cost.pairs}
    if any(not known.issuperset(run.drawn_from) for run in runs):
        raise LedgerError(
            "a sanitized epsilon was drawn from rounds that the record does not contain; give "
            "the ledgers of these rounds to pate release, together with this record"
        )


def cost_of(runs: Sequence[Run]) -> Cost:
    """Return the costs of all runs, composed into one cost."""
    return functools.reduce(operator.add, (run.cost for run in runs), Cost())
