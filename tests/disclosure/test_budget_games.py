"""A budget as a game, solved: what somebody gets who chooses each run by what earlier ones gave.

The runs are small and discrete: randomised response, one that gives a record away with a small
chance, a target with its test. All chances are exact, and so is the best play, by induction from
the end. Whatever the play, the hockey-stick divergence at the budget's ε must not exceed its δ.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import pytest

from pate_cli.core.errors import UnreachableError, UsageError
from pate_cli.core.words import Adjacency
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.runs import Budget, Outcome, Run, plain_sums
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.gnmax import GNMax
from some_runs import told


def stated(name, epsilon, delta=0.0):
    cost = Stated(Adjacency.REPLACE_ONE, epsilon=epsilon, delta=delta)
    return Run.of(id=name, outcome=Outcome.STATED, time=None, external=cost)


def at_target(name, epsilon, delta, refusal, outcome=Outcome.PENDING):
    target = TargetPlan(epsilon, delta, refusal, test_orders=(8.0,))
    settings = told(GNMax(20, 3, sigma2=4.0), 10, delta=delta, target=target)
    return Run.of(id=name, outcome=outcome, time=None, settings=settings)


@dataclass(frozen=True)
class Response:
    """Randomised response at ε that gives the record away with chance δ."""

    epsilon: float
    delta: float = 0.0

    @property
    def stages(self):
        """Pairs of chances of what is seen, and what may be seen after each."""
        right = 1.0 / (1.0 + math.exp(-self.epsilon))
        rest = 1.0 - self.delta
        pairs = [(rest * right, rest * (1.0 - right)), (rest * (1.0 - right), rest * right)]
        if self.delta:
            pairs += [(self.delta, 0.0), (0.0, self.delta)]
        return [(pair, None) for pair in pairs]

    def run(self, name):
        return stated(name, self.epsilon, self.delta)


@dataclass(frozen=True)
class Test:
    """A run with a release test, the least favourable one: its outcome is seen before its labels.

    A refusal is e^η times likelier on one side; labels are what is left, up to e^ε and δ.
    """

    __test__ = False

    epsilon: float
    delta: float
    refusal: float

    @property
    def stages(self):
        refused = 0.4
        one, other = refused, refused * math.exp(-self.refusal)
        labels = [((pair[0], pair[1]), None) for pair, _ in self._labels(1.0 - one, 1.0 - other)]
        return [((one, other), "refused"), ((1.0 - one, 1.0 - other), labels)]

    def _labels(self, one, other):
        """Two labels whose chances, given that they passed, lose as much as the claim allows."""
        most = math.exp(self.epsilon)
        # p·x − e^ε p'·y = δ, with the likelier label having nearly all of one side
        x = min(1.0, (self.delta + most * other * 0.02) / one)
        return [((x, 0.02), None), ((1.0 - x, 0.98), None)]

    def run(self, name):
        return at_target(name, self.epsilon, self.delta, self.refusal)


def value(menu, admits, epsilon, *, most=6):
    """The largest P[S] − e^ε P'[S] of any play; runs may be left open while others begin.

    Args:
        menu: what may be run, any number of times.
        admits: whether a run may be entered, given those that were, with outcomes.
        epsilon: of the hockey-stick divergence.
        most: runs in a play.
    """

    def play(p, q, entered, waiting):
        found = max(p - math.exp(epsilon) * q, 0.0)
        if p == 0.0:
            return 0.0
        if q == 0.0:
            return p
        for place, (name, stages) in enumerate(waiting):
            rest = waiting[:place] + waiting[place + 1 :]
            total = 0.0
            for (one, other), then in stages:
                runs, more = entered, rest
                if then == "refused":
                    runs = tuple(
                        replace(run, outcome=Outcome.REFUSED) if run.id == name else run
                        for run in entered
                    )
                elif then:
                    more = (*rest, (name, tuple(then)))
                total += play(p * one, q * other, runs, more)
            found = max(found, total)
        if len(entered) < most:
            for item in menu:
                name = f"{len(entered)}"
                run = item.run(name)
                if admits(entered, run):
                    opened = (*waiting, (name, tuple(item.stages)))
                    if len(opened) <= 2:
                        found = max(found, play(p, q, (*entered, run), opened))
        return found

    return play(1.0, 1.0, (), ())


def by(budget):
    """The rule of a budget, as runs meet it."""

    known = {}

    def admits(entered, run):
        told = ("id", "outcome", "epsilon", "delta", "ensemble")
        key = tuple(tuple(getattr(each, name) for name in told) for each in (*entered, run))
        if key not in known:
            try:
                budget.refuse([replace(each, budget=budget) for each in entered], [run])
                known[key] = True
            except UnreachableError:
                known[key] = False
        return known[key]

    return admits


MENU = [Response(0.3), Response(0.6, 0.02), Test(0.9, 0.03, 0.3)]


@pytest.mark.parametrize(
    "budget",
    [
        Budget(0.9, 0.03),
        Budget(1.2, 0.05),
        Budget(0.5, 0.2),
        Budget(1.5, 0.1, 3.0),
        Budget(2.5, 0.2, 6.0),
    ],
    ids=str,
)
def test_no_play_of_interleaved_runs_exceeds_a_budget(budget):
    """Runs begin while others are open, and follow from outcomes of tests and from responses."""
    found = value(MENU, by(budget), budget.epsilon, most=3)
    assert found <= budget.delta * (1.0 + 1e-9)


def test_the_games_notice_a_rule_that_forgets_what_is_open():
    """Were a run that is under way free until it ends, two at once would exceed the budget."""
    budget = Budget(0.9, 0.03)

    def forgetful(entered, run):
        ended = tuple(each for each in entered if each.outcome is Outcome.REFUSED)
        return by(budget)(ended, run)

    assert value(MENU, forgetful, budget.epsilon, most=3) > 2.0 * budget.delta


@dataclass(frozen=True)
class InEnsemble:
    """A run of an ensemble; the two laws differ only where the person's data reached it.

    Attributes:
        way: what it runs.
        ensemble: its name.
        inside: which ensembles the person's data reached.
    """

    way: Response | Test
    ensemble: str
    inside: str

    @property
    def stages(self):
        return self.way.stages if self.ensemble in self.inside else _same(self.way.stages)

    def run(self, name):
        apart = DECLARED[self.ensemble]
        return replace(self.way.run(name), ensemble=self.ensemble, disjoint_from=apart)


def _same(stages):
    """What is seen, and how likely, where both laws are the first one."""
    return [
        ((one, one), then if then in (None, "refused") else _same(then))
        for (one, _), then in stages
        if one
    ]


# Each month shares people with the one before it, and with no other.
DECLARED = {"a": (), "b": (), "c": ("a",)}


def in_months(inside, way):
    return [InEnsemble(way, month, inside) for month in DECLARED]


@pytest.mark.parametrize("budget", [Budget(0.6, 0.03), Budget(1.2, 0.05), Budget(1.5, 0.1, 3.0)])
@pytest.mark.parametrize("inside", ["a", "b", "c", "ab", "bc"])
def test_no_play_over_ensembles_exceeds_a_budget_for_anybody(budget, inside):
    """Queries and runs of each month may follow from all that other months released."""
    menu = in_months(inside, Response(0.6, 0.02) if budget.order else Test(0.6, 0.03, 0.3))
    found = value(menu, by(budget), budget.epsilon, most=3)
    assert found <= budget.delta * (1.0 + 1e-9)


def test_disjoint_ensembles_share_a_budget_that_nobody_else_could():
    """Who was in two of them all the same pays for both: so a false declaration is no proof."""
    budget = Budget(0.6, 0.03)
    spends = [InEnsemble(Response(0.6, 0.02), month, "") for month in "abc"]
    first, last = (replace(spends[n].run(f"{n}"), budget=budget) for n in (0, 2))
    budget.refuse([first], [last])
    with pytest.raises(UnreachableError, match=r"the total would be 1\.2"):
        budget.refuse([first], [spends[1].run("1")])
    assert value(in_months("ac", Response(0.6, 0.02)), by(budget), 0.6, most=2) > 2.0 * 0.03


def test_sums_are_attained():
    """The sum of ε's is no luxury: pure responses reach it, whatever δ."""
    budget = Budget(0.9, 1e-9)
    three = value([Response(0.3)], by(budget), 0.9 - 1e-6, most=3)
    assert three > 1e-9


def test_a_refusal_gives_back_what_it_did_not_cost():
    budget = Budget(1.0, 1e-4)
    entered = [replace(at_target("a", 0.8, 1e-5, 0.4), budget=budget)]
    more = [at_target("b", 0.6, 1e-5, 0.3)]
    with pytest.raises(UnreachableError, match=r"spent epsilon 0\.8"):
        budget.refuse(entered, more)
    budget.refuse([replace(entered[0], outcome=Outcome.REFUSED)], more)


def test_a_budget_limits_delta():
    budget = Budget(5.0, 1e-5)
    entered = [replace(stated("a", 0.1, 9e-6), budget=budget)]
    budget.refuse(entered, [stated("b", 0.1, 1e-6)])
    with pytest.raises(UnreachableError, match="delta"):
        budget.refuse(entered, [stated("b", 0.1, 2e-6)])


def test_a_filter_is_chosen_before_the_first_run():
    ruled = Budget(3.0, 1e-3, 8.0)
    plain = [stated("a", 0.1, 1e-6)]
    with pytest.raises(UsageError, match="budget_order"):
        ruled.refuse(plain, [stated("b", 0.1, 1e-6)])
    entered = [replace(plain[0], budget=ruled)]
    ruled.refuse(entered, [stated("b", 0.1, 1e-6)])
    replace(ruled, epsilon=4.0).refuse(entered, [stated("b", 0.1, 1e-6)])
    for other in (Budget(3.0, 1e-3), replace(ruled, order=9.0), replace(ruled, delta=1e-4)):
        with pytest.raises(UsageError, match="budget_order"):
            other.refuse(entered, [stated("b", 0.1, 1e-6)])


def test_a_filter_has_room_for_more_than_sums():
    many = [stated(f"{number}", 0.05, 1e-7) for number in range(60)]
    plain, filtered = plain_sums(many)[-1], Budget(3.0, 1e-4, 12.0).spent(many)[-1]
    assert plain == (3.0, pytest.approx(6e-6))
    assert filtered[0] < 2.0
    assert filtered[1] == pytest.approx(5.6e-5)


def test_what_is_left_never_grows_and_is_admitted():
    runs = [stated(f"{number}", 0.1, 10.0**-number) for number in range(3, 9)]
    for budget in (Budget(1.0, 0.01), Budget(3.0, 0.01, 8.0)):
        before = budget.left(budget.spent(())[-1])
        for place in range(len(runs)):
            entered = [replace(run, budget=budget) for run in runs[: place + 1]]
            left = budget.left(budget.spent(entered)[-1])
            assert left[0] <= before[0]
            assert left[1] <= before[1]
            budget.refuse(entered, [stated("x", *left)])
            before = left
