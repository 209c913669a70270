"""A budget as a game, solved: what somebody gets who chooses each run by what earlier ones gave.

The runs are small and discrete: randomised response, one that gives a record away with a small
chance, a target with its test. All chances are exact, and so is the best play, by induction from
the end. Whatever the play, the hockey-stick divergence at the budget's ε must not exceed its δ.
"""

from __future__ import annotations

import functools
import math
from dataclasses import replace

import numpy as np
import pytest

from audit.budget_games import InEnsemble, Response, Test, by, value
from divergences import hockey_stick
from pate_cli.accounting.composition import epsilon_together
from pate_cli.core.errors import UnreachableError, UsageError
from pate_cli.disclosure.runs import Budget, Outcome, Run, plain_sums
from pate_cli.mechanisms.gnmax import GNMax
from some_runs import told


def stated(name, epsilon, delta=0.0):
    return Response(epsilon, delta).run(name)


def two_stages(admits, epsilon):
    """The best play that begins with ε .1 and goes on by what came out, in one of two ways."""
    first, ways = Response(0.1), (1 * (Response(1.6),), 10 * (Response(0.35),))

    def entered(way):
        """What of a way the rule lets in."""
        runs = [first.run("first")]
        for number, item in enumerate(way):
            run = item.run(f"{number}")
            if not admits(tuple(runs), run):
                break
            runs.append(run)
        return [run.epsilon for run in runs[1:]]

    found = 0.0
    for (one, other), _ in first.stages:
        found += max(stick(entered(way), epsilon, one, other) for way in ways)
    return found


def stick(responses, epsilon, one=1.0, other=1.0):
    """The most of one·P − e^ε·other·P' of randomised responses one after the other."""
    laws = [np.array([1.0, math.exp(-each)]) / (1.0 + math.exp(-each)) for each in responses]
    p, q = (functools.reduce(np.kron, [law[::way] for law in laws], 1.0) for way in (1, -1))
    return float(hockey_stick(one * p, other * q, epsilon))


def test_a_total_that_is_the_least_over_all_orders_is_no_rule():
    """Stop by the exact composition and a two-stage play has 1.4 times δ; by sums less than δ."""
    epsilon = 1.5
    delta = max(stick([0.1, *way], epsilon) for way in ([1.6], [0.35] * 10))

    def by_total(entered, run):
        spent = [each.epsilon for each in (*entered, run)]
        return epsilon_together(spent, None, delta=delta * (1.0 + 1e-6)) <= epsilon

    assert two_stages(by_total, epsilon) > 1.4 * delta
    assert two_stages(by(Budget(epsilon, delta)), epsilon) <= delta
    for order in (2.0, 4.0):
        assert two_stages(by(Budget(epsilon, delta, order)), epsilon) <= delta


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


# Each month shares people with the one before it, and with no other.
DECLARED = {"a": (), "b": (), "c": ("a",)}


def in_months(inside, ways):
    return [
        InEnsemble(way, month, inside, apart) for month, apart in DECLARED.items() for way in ways
    ]


@pytest.mark.parametrize("budget", [Budget(0.6, 0.03), Budget(1.2, 0.05), Budget(1.5, 0.1, 3.0)])
@pytest.mark.parametrize("inside", ["a", "b", "c", "ab", "bc"])
def test_no_play_over_ensembles_exceeds_a_budget_for_anybody(budget, inside):
    """Queries and runs of each month may follow from all that other months released."""
    menu = in_months(inside, [Response(0.6, 0.02)] if budget.order else [Test(0.6, 0.03, 0.3)])
    found = value(menu, by(budget), budget.epsilon, most=3)
    assert found <= budget.delta * (1.0 + 1e-9)


def test_disjoint_ensembles_share_a_budget_that_nobody_else_could():
    """Who was in two of them all the same pays for both: so a false declaration is no proof."""
    budget = Budget(0.6, 0.03)
    spends = in_months("", [Response(0.6, 0.02)])
    first, last = (replace(spends[n].run(f"{n}"), budget=budget) for n in (0, 2))
    budget.refuse([first], [last])
    with pytest.raises(UnreachableError, match=r"the total would be 1\.2"):
        budget.refuse([first], [spends[1].run("1")])
    assert value(in_months("ac", [Response(0.6, 0.02)]), by(budget), 0.6, most=2) > 2.0 * 0.03


def test_sums_are_attained():
    """The sum of ε's is no luxury: pure responses reach it, whatever δ."""
    budget = Budget(0.9, 1e-9)
    three = value([Response(0.3)], by(budget), 0.9 - 1e-6, most=3)
    assert three > 1e-9


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


def test_half_of_delta_has_room_for_the_rounding_of_all_noise():
    """A draw is a double; what many of them leave open may be more than a tiny δ."""
    mechanism = GNMax(20, 3, sigma2=4.0)
    settings = told(mechanism, 10, delta=1e-5)
    run = Run.of(id="a", outcome=Outcome.LABELLED, time=None, settings=settings)
    runs = [replace(run, id=str(number)) for number in range(5)]
    assert Budget(30.0, 1e-4, 8.0).spent(runs)[-1][1] == pytest.approx(5e-5)
    tight = 1.5 * mechanism.smallest_delta(10)  # ten times as much is needed
    with pytest.raises(UnreachableError, match="floating-point noise adds to delta"):
        Budget(30.0, tight, 8.0).spent(runs)


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
