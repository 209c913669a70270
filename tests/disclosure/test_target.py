"""Targets: profiles and chances against figures computed elsewhere."""

import functools
import json
import math
from pathlib import Path

import numpy as np
import pytest

from beside import a_student
from pate_cli import ConfidentGNMax, GNMax, InteractiveGNMax, LNMax
from pate_cli.accounting.cost_table import Tally, TallySum
from pate_cli.accounting.tested_budget import DISTANCES, passing_coin
from pate_cli.core.errors import ParameterError, UnreachableError, UsageError
from pate_cli.core.words import Bound
from pate_cli.disclosure.target import TargetPlan, check_states, settled_bound, states_for
from pate_cli.planning.cost import LIKELY, measure_target
from pate_cli.planning.search import most_rows
from refusals import refusal
from runs import CountsRows
from slices import some, whole

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "tested_budget.json").read_text(encoding="utf-8")
)
TIED = "U, min(F, w2), v and its rivals tied, by order and distance"
MNIST = ConfidentGNMax(250, 10, threshold=200.0, sigma1=150.0, sigma2=40.0)


def profile_of(mechanism, counts, *, bound=Bound.TWO_TAIL, highest=40.0):
    """u_d of votes, as a function of the order."""
    states = states_for(bound, mechanism, highest_order=highest)
    counted = TallySum()
    for part in np.array_split(counts, 3):
        counted.add(Tally.of(states.of(mechanism, part)))
    return functools.partial(states.profile, counted.total)


@pytest.mark.parametrize("order", ["6", "10", "14"])
def test_costs_by_distance_of_the_mnist_votes(mnist_histograms, order):
    """Never below the exact lattice's limit, at most .4% above."""
    found = profile_of(MNIST, mnist_histograms)(float(order))
    for distance, exact in GOLDEN[TIED][order].items():
        assert exact <= found[int(distance)] <= 1.004 * exact


@whole
def test_the_smallest_targets_of_the_mnist_votes(mnist_histograms):
    """1.310 at 97.7% with nineteen orders and no lattice; a refusal costs as much as a pass."""
    plan = TargetPlan(1.32, 1e-5, 1.32, bound=Bound.TWO_TAIL)
    found = measure_target(CountsRows(mnist_histograms), MNIST, plan, queries=640, max_answers=640)
    exact = dict(
        zip((0.9, LIKELY, 0.99, 0.999), np.array(_smallest("MNIST, min(F, w2), tied")), strict=True)
    )
    for chance, epsilon in found["smallest_epsilon"].items():
        assert exact[float(chance)] * 0.995 <= epsilon <= exact[float(chance)] * 1.01
    assert found["smallest_epsilon"][f"{LIKELY:g}"] <= 1.32
    assert found["pass_probability"] > LIKELY
    assert found["looked_at"] == 640 == found["passing_queries"]


@pytest.mark.parametrize("asked", some([5, 17, 30], 3))
def test_how_many_rows_pass_does_not_depend_on_how_many_are_asked(asked):
    mechanism = GNMax(40, 4, sigma2=11.0)
    counts = np.random.default_rng(3).multinomial(40, [0.8, 0.1, 0.05, 0.05], size=30)
    plan = TargetPlan.of(2.0, delta=1e-5, bound=Bound.TWO_TAIL)
    found = measure_target(CountsRows(counts), mechanism, plan, queries=asked, max_answers=asked)
    assert found["looked_at"] == 30
    chances = [
        plan.coin(
            profile_of(mechanism, counts[:rows]),
            mechanism.worst_rdp(queries=rows, answers=rows, orders=plan.orders),
        ).chance
        for rows in (found["passing_queries"], found["passing_queries"] + 1)
    ]
    assert chances[0] >= LIKELY > chances[1]


def _smallest(name):
    key = next(key for key in GOLDEN if key.startswith("smallest epsilon"))
    return GOLDEN[key][name]


def test_a_lattice_that_reaches_deeper_costs_the_same():
    mechanism = ConfidentGNMax(60, 4, threshold=40.0, sigma1=20.0, sigma2=6.0)
    counts = np.random.default_rng(1).multinomial(60, [0.7, 0.1, 0.1, 0.1], size=200)
    near = profile_of(mechanism, counts, highest=5.0)(5.0)
    far = profile_of(mechanism, counts, highest=90.0)(5.0)
    np.testing.assert_allclose(far, near, rtol=1e-12)


@pytest.mark.parametrize("bound", [Bound.TWO_TAIL, Bound.CONDITIONAL])
@pytest.mark.parametrize("classes", [2, 4])
def test_profiles_grow_with_distance_up_to_the_worst_case(bound, classes):
    mechanism = ConfidentGNMax(24, classes, threshold=16.0, sigma1=8.0, sigma2=12.0)
    counts = np.random.default_rng(3).multinomial(24, np.full(classes, 1 / classes), size=8)
    found = profile_of(mechanism, counts, bound=bound, highest=20.0)(6.0)
    assert found.shape == (DISTANCES,)
    assert np.all(np.diff(found) >= 0.0)
    if bound is Bound.CONDITIONAL:
        assert found[0] < profile_of(mechanism, counts, highest=20.0)(6.0)[0]


def test_distances_that_are_not_computed_have_the_worst_case():
    """So (P2) holds there, too, with more teachers than distances."""
    mechanism, order = ConfidentGNMax(100, 3, threshold=60.0, sigma1=20.0, sigma2=16.0), 6.0
    states = states_for(Bound.CONDITIONAL, mechanism, highest_order=order)
    found = states.costs(order, states.of(mechanism, np.array([[100, 0, 0], [99, 1, 0]])))
    worst = mechanism.worst_rdp(queries=1, answers=1, orders=np.array([order]))[0]
    assert found[47].max() < worst == found[48:].min()
    assert np.all(found[:-1] <= found[1:, ::-1])


def test_the_conditional_bound_says_what_it_does_not_know():
    asked = {"rows": 1, "orders": np.array([9.0])}
    for mechanism, said in (
        (LNMax(9, 3, laplace_scale=2.0), "lnmax"),
        (GNMax(9, 3, sigma2=2.0, teachers_per_record=2), "teachers_per_record"),
    ):
        assert said in refusal(UsageError, check_states, Bound.CONDITIONAL, mechanism, **asked)


@pytest.mark.parametrize(
    "mechanism",
    [
        GNMax(2000, 3, sigma2=100.0),
        ConfidentGNMax(2000, 3, threshold=1500.0, sigma1=300.0, sigma2=100.0),
        GNMax(6001, 2, sigma2=100.0),
        ConfidentGNMax(6001, 2, threshold=4000.0, sigma1=300.0, sigma2=100.0),
    ],
)
def test_sizes_are_decided_without_the_votes(mechanism):
    orders = TargetPlan.of(1.0, delta=1e-5).orders
    check_states(Bound.TWO_TAIL, mechanism, rows=10**6, orders=orders)
    text = refusal(
        ParameterError, check_states, Bound.CONDITIONAL, mechanism, rows=10**6, orders=orders
    )
    assert str(mechanism.teachers) in text
    check_states(Bound.CONDITIONAL, GNMax(250, 10, sigma2=40.0), rows=10**6, orders=orders)


def test_the_conditional_bound_takes_a_student_of_any_rows():
    student = a_student(np.full((7, 3), 1.0 / 3.0))
    parameters = {"threshold": 3.0, "sigma1": 4.0, "sigma2": 2.0}
    mechanism = InteractiveGNMax(9, 3, predictions=student, **parameters)
    states = states_for(Bound.CONDITIONAL, mechanism, highest_order=9.0)
    counts = np.tile([5, 4, 0], (7, 1))
    assert states.costs(3.0, states.of(mechanism, counts)).shape == (DISTANCES, 7)
    # What is settled before any row is read does not ask for the student's rows either.
    orders = TargetPlan.of(1.0, delta=1e-5).orders
    check_states(Bound.CONDITIONAL, mechanism, rows=7, orders=orders)
    assert settled_bound(Bound.AUTO, mechanism, rows=7, orders=orders) is Bound.CONDITIONAL


def test_a_target_out_of_reach_names_the_least():
    plan = TargetPlan.of(0.05, delta=1e-5)
    text = refusal(UnreachableError, plan.check_reachable)
    least = float(text.rsplit(" ", 1)[1])
    assert TargetPlan.of(1.05 * least, delta=1e-5).best_chance >= 0.5
    assert TargetPlan.of(0.8 * least, delta=1e-5).best_chance < 0.5
    less = refusal(UnreachableError, plan.check_reachable, 0.1)
    assert "`target_epsilon` 0.1, at which these queries need no release test" in less


@pytest.mark.parametrize("wrong", [(0.0, None), (-1.0, None), (1.0, 1.1), (1.0, 0.0)])
def test_targets_that_are_none(wrong):
    refusal(ParameterError, TargetPlan.of, wrong[0], delta=1e-5, refusal_epsilon=wrong[1])


FALLING = np.linspace(0.2, 2.0, DISTANCES)


def coins(plan, lowered=0.0, **guarded):
    """A plan's coin for costs lowered by so much, and the coin of the costs and plain numbers."""
    words = {
        "epsilon": plan.epsilon,
        "delta": plan.delta,
        "refusal_epsilon": plan.refusal_epsilon,
    } | guarded
    profile = np.outer(plan.orders / plan.orders[-1], FALLING)
    at = dict(zip(plan.orders.tolist(), profile * (1.0 - lowered), strict=True))
    return plan.coin(at.__getitem__), passing_coin(profile, orders=plan.orders, **words)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_the_coin_is_that_of_a_little_less_than_is_promised(epsilon):
    plan = TargetPlan.of(epsilon, delta=1e-3)
    guarded = {
        "epsilon": plan.epsilon - 1e-9,
        "delta": plan.delta * (1.0 - 1e-6),
        "refusal_epsilon": plan.refusal_epsilon - 1e-9,
    }
    found, wanted = coins(plan, **guarded)
    assert (found.log_pass, found.log_refuse) == (wanted.log_pass, wanted.log_refuse)
    for name in guarded:
        unguarded = coins(plan, **{key: guarded[key] for key in guarded if key != name})[1]
        assert (found.log_pass, found.log_refuse) != (unguarded.log_pass, unguarded.log_refuse)


@pytest.mark.parametrize("epsilon", [0.5, 1.0, 2.0])
def test_what_is_kept_back_is_more_than_round_off_loses(epsilon):
    """Costs a hundred thousand roundings too low pass no more often than they should."""
    found, plain = coins(TargetPlan.of(epsilon, delta=1e-3), lowered=2e-11)
    assert found.log_pass < plain.log_pass
    assert found.log_refuse > plain.log_refuse


@pytest.mark.parametrize("delta", [0.1, 1e-3, 1e-5, 1e-9])
def test_whatever_costs_nobody_knows_passes_less_often_than_delta(delta):
    """By more than logarithms and a chance of 53 bits are off."""
    coin = TargetPlan.of(1.0, delta=delta).coin(lambda _order: np.full(DISTANCES, np.inf))
    assert math.exp(coin.log_pass) + 2.0**-53 < delta


def test_half_a_target_is_the_price_of_a_refusal():
    assert TargetPlan.of(1.5, delta=1e-5).refusal_epsilon == 0.75
    assert TargetPlan.of(1.5, delta=1e-5, refusal_epsilon=1.2).at(3.0).refusal_epsilon == 2.4


def test_the_most_rows_of_a_test():
    for limit in (0, 1, 2, 3, 17, 399):
        for start in (1, 3, 20, 500):
            told = most_rows(lambda rows, limit=limit: rows <= limit, available=399, start=start)
            assert told == limit
    found = most_rows(lambda rows: rows <= 123_456, available=10**9)
    assert 0.995 * 123_456 <= found <= 123_456
