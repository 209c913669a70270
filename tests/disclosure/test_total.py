"""The total of a record: by hand with another library, by exact laws, and what it never does."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import pate_cli as pate
from pate_cli.core.errors import LedgerError
from pate_cli.core.words import Adjacency, ReleaseKind
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.runs import Budget, Outcome, Run, Spent, in_full, total_of
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms import scored_from_parameters
from slices import some
from some_runs import told

CONFIDENT = pate.ConfidentGNMax(60, 3, threshold=40.0, sigma1=30.0, sigma2=8.0)
GNMAX = pate.GNMax(60, 3, sigma2=12.0)
DELTA = 1e-5
DRAWN = ReleasePlan(ReleaseKind.UPPER, DELTA, 8.0, 0.01, 20.0)


def labelled(name, mechanism=CONFIDENT, *, queries=40, plan=None, **changes):
    settings = told(mechanism, queries, delta=DELTA, sanitizer=plan)
    given = {"outcome": Outcome.LABELLED, "settings": settings, "round": f"round {name}"}
    return Run.of(**{"id": name, "time": None} | given | changes)


def at_target(name, epsilon, *, refused=False, delta=DELTA, **changes):
    target = TargetPlan(epsilon, delta, epsilon / 2.0, test_orders=(8.0,))
    outcome = Outcome.REFUSED if refused else Outcome.LABELLED
    settings = told(GNMAX, 40, delta=delta, target=target)
    return Run.of(id=name, time=None, outcome=outcome, settings=settings, **changes)


def stated(name, **cost):
    external = Stated(Adjacency.REPLACE_ONE, **cost)
    delta = DELTA if external.curve is not None else 0.0
    return Run.of(id=name, outcome=Outcome.STATED, time=None, delta=delta, external=external)


def test_one_run_costs_what_its_report_says():
    total = total_of([labelled("a")])
    assert (total.epsilon, total.delta, total.method) == (labelled("a").epsilon, DELTA, "one")
    refused = total_of([at_target("a", 1.5, refused=True)])
    assert (refused.epsilon, refused.delta) == (0.75, DELTA)


def test_targets_add_as_decimals():
    total = Spent.of([at_target("a", 1.5), at_target("b", 0.8)])
    assert (total.epsilon, total.delta, total.method) == (2.3, 2e-5, "basic")
    total = Spent.of([at_target("a", 1.5), at_target("b", 1.5, refused=True)])
    assert (total.epsilon, total.sum_epsilon) == (2.25, 2.25)


def test_failed_targets_compose_at_their_full_epsilon_or_add_up():
    """How a test ends is not fixed beforehand, so what it came to is for sums alone."""
    for number in (20, 60):
        passed, failed = (
            Spent.of([at_target(str(n), 0.05, refused=refused) for n in range(number)])
            for refused in (False, True)
        )
        assert failed.epsilon == min(passed.epsilon, failed.sum_epsilon)
        assert (failed.sum_epsilon, failed.method) == (number * 0.025, "optimal")
        assert failed.sum_delta == passed.sum_delta == pytest.approx(number * DELTA)
    assert (passed.method, passed.sum_epsilon) == ("optimal", 3.0)
    assert passed.epsilon < 0.7 * 3.0
    assert passed.delta == pytest.approx(61e-5)


def test_the_worst_case_of_a_total_takes_every_test_as_passed():
    failed, passed = (
        [labelled("a"), at_target("b", 1.5, refused=refused)] for refused in (True, False)
    )
    assert in_full(failed) == in_full(passed)
    assert in_full(failed)[0] == total_of(passed)
    assert total_of(passed).epsilon > total_of(failed).epsilon


def test_how_release_tests_ended_does_not_decide_the_delta_of_a_total():
    """After failed tests the δ was once that of the sum, and too small for the worst case."""
    epsilon, delta, number = 0.1, 1e-3, 8
    totals, worst = [], []
    for refused in range(number + 1):
        runs = [at_target(str(n), epsilon, refused=n < refused, delta=delta) for n in range(number)]
        totals.append(total_of(runs))
        worst += in_full(runs)
    assert {one.delta for one in [*totals, *worst]} == {totals[0].delta}
    assert totals[-1].epsilon == 0.4
    # Randomised responses at ε that all come out alike, each given away with chance δ.
    given_away = 1.0 - (1.0 - delta) ** number
    least, stated_epsilon = 0.0, worst[0].epsilon
    for against in range(number + 1):
        chance = math.comb(number, against) / (1.0 + math.exp(-epsilon)) ** number
        p = chance * math.exp(-epsilon * against)
        q = chance * math.exp(-epsilon * (number - against))
        least += (1.0 - given_away) * max(p - math.exp(stated_epsilon) * q, 0.0)
    assert number * delta < given_away + least <= worst[0].delta


def test_the_worst_case_of_labels_needs_no_larger_delta_than_the_total():
    """Without another mechanism of large ε, optimal composition once took a further δ."""
    runs = [at_target(str(n), 0.1, delta=1e-3) for n in range(8)]
    everything, labels = in_full([*runs, stated("other", epsilon=100.0, delta=0.0)])
    assert total_of(runs).delta > everything.delta >= labels.delta
    assert labels.epsilon >= 0.8


def test_curves_are_composed_as_dp_accounting_does():
    dp = pytest.importorskip("dp_accounting")
    orders = np.array([1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0])
    sgd = dp.rdp.RdpAccountant(orders)
    sgd.compose(dp.PoissonSampledDpEvent(0.01, dp.GaussianDpEvent(1.3)), 500)
    curve = tuple(float(value) for value in sgd._rdp)
    known = replace(stated("sgd", orders=tuple(orders.tolist()), rdp=curve), id="sgd")
    runs = [labelled("a"), labelled("b", queries=100), labelled("c", GNMAX, queries=20), known]
    total = total_of(runs)
    assert total.method == "renyi"
    by_hand = known.external.rdp_at(np.array([total.order]))[0]
    for run in runs[:3]:
        mechanism = scored_from_parameters(run.settings.mechanism)
        queries = run.settings.queries
        by_hand += mechanism.worst_rdp(
            queries=queries, answers=queries, orders=np.array([total.order])
        )[0]
    epsilon, _ = dp.rdp.compute_epsilon(np.array([total.order]), np.array([by_hand]), DELTA)
    assert total.epsilon == pytest.approx(epsilon, rel=1e-9)
    assert total.delta == DELTA


def test_all_kinds_together_stay_below_their_sum_and_above_each():
    runs = [
        labelled("a"), labelled("b", GNMAX, plan=DRAWN),
        at_target("c", 0.5), at_target("d", 0.5, refused=True),
        stated("e", epsilon=0.2, delta=1e-6), stated("f", orders=(2.0, 32.0), rdp=(0.01, 0.16)),
    ]  # fmt: skip
    total = total_of(runs)
    alone = total_of([run for run in runs if not run.cost.pairs])
    assert total.method == "joint"
    assert alone.epsilon < total.epsilon < alone.epsilon + 0.5 + 0.25 + 0.2
    assert total.delta == pytest.approx(DELTA + 2 * DELTA + 1e-6, rel=1e-6)


def test_a_draw_from_rounds_that_nobody_told_of_has_no_total():
    drawn = Run.of(
        id="d", outcome=Outcome.RELEASED, time=None,
        draw=ReleasePlan(ReleaseKind.UPPER, DELTA, 8.0, 0.01, 20.0), drawn_from=("round x",),
    )  # fmt: skip
    with pytest.raises(LedgerError, match="the record does not contain"):
        total_of([labelled("a"), drawn])
    with pytest.raises(LedgerError, match="the record does not contain"):
        Budget(99.0, 1e-2, 4.0).spent([labelled("a"), drawn])
    known = replace(drawn, drawn_from=("round a",))
    assert total_of([labelled("a"), known]).epsilon > 0.0


@given(
    targets=st.lists(
        st.tuples(st.sampled_from([0.2, 0.5, 1.0]), st.booleans()), min_size=1, max_size=5
    ),
    curves=st.integers(0, 2),
)
def test_more_runs_never_cost_less(targets, curves):
    runs = [labelled(f"l{number}") for number in range(curves)]
    runs += [
        at_target(f"t{number}", *each[:1], refused=each[1]) for number, each in enumerate(targets)
    ]
    total = Spent.of(runs)
    if len(runs) > 1:
        less = Spent.of(runs[:-1])
        assert total.epsilon >= less.epsilon - 1e-9 or total.delta > less.delta
    assert total.epsilon <= total.sum_epsilon + 1e-9 or total.method in ("renyi", "joint")


def test_what_is_published_names_neither_files_nor_rounds():
    spent = Spent.of([labelled("a", votes="secret.npy"), at_target("b", 0.5, votes="secret.npy")])
    assert spent.count == 2
    assert "secret" not in repr(spent)
    assert "round" not in repr(spent.runs[0].round)
    assert Spent.of(spent.runs).epsilon == spent.epsilon


def test_the_account_does_not_depend_on_the_order_of_runs():
    runs = [
        labelled("a"),
        at_target("b", 0.5),
        labelled("c", GNMAX),
        at_target("d", 0.7, refused=True),
    ]
    totals = {total_of(list(order)).epsilon for order in itertools.permutations(runs)}
    assert max(totals) - min(totals) < 1e-9


# --- THEORY.md, section 15, by exact laws --------------------------------------------------------


def leaky(epsilon, delta, refusal, chance):
    """A tested run's laws at their worst: (P, P') over refused, two labels, and given away.

    Refused with the ratio e^η, labels by randomised response at E, and δ that gives all away.
    """
    refused = (chance, chance * math.exp(-refusal))
    one = np.array([refused[0], 0.0, 0.0, delta])
    other = np.array([refused[1], 0.0, 0.0, 0.0])
    left, there = 1.0 - one.sum(), 1.0 - other.sum()
    # (x, left - x) against (x e^-E, ...): as far apart as E lets them be.
    grow = math.exp(epsilon)
    x = (left * grow - there) / (grow - 1.0 / grow)
    x = min(max(x, 0.0), left)
    one[1:3] = x, left - x
    other[1:3] = x / grow, there - x / grow
    assert np.all(one >= 0.0)
    assert np.all(other >= 0.0)
    assert np.maximum(one - grow * other, 0.0).sum() <= delta + 1e-12
    return one, other


@pytest.mark.parametrize("chance", some([0.05, 0.3, 0.6], 2))
@pytest.mark.parametrize("epsilons", some([(0.5, 0.5), (0.4, 1.0, 0.3)], 2))
def test_realised_costs_keep_the_promise_at_every_level(chance, epsilons):
    """(F): every event within {total <= e}, of tested runs and a randomised response beside."""
    delta, flat = 1e-3, 0.3
    laws = [leaky(each, delta, each / 2.0, chance) for each in epsilons]
    response = np.array([1.0, math.exp(-flat)]) / (1.0 + math.exp(-flat))
    levels = {}
    for outcome in itertools.product(range(4), repeat=len(laws)):
        p = math.prod(law[0][y] for law, y in zip(laws, outcome, strict=True))
        q = math.prod(law[1][y] for law, y in zip(laws, outcome, strict=True))
        runs = [
            at_target(str(n), each, refused=y == 0, delta=delta)
            for n, (each, y) in enumerate(zip(epsilons, outcome, strict=True))
        ]
        total = total_of([*runs, stated("rr", epsilon=flat, delta=0.0)])
        for bit in (0, 1):
            levels.setdefault((round(total.epsilon, 9), total.delta), []).append(
                (p * response[bit], q * response[1 - bit])
            )
    assert len({delta for _, delta in levels}) == 1
    within = []
    for (epsilon, allowed), masses in sorted(levels.items()):
        within += masses
        for sign in (1, -1):
            excess = sum(
                max(one - math.exp(epsilon) * other, 0.0)
                for one, other in (mass[::sign] for mass in within)
            )
            if sign == 1:
                assert excess <= allowed * (1.0 + 1e-9)


def test_a_curve_is_not_converted_below_the_delta_that_it_asks_for():
    curve = {"orders": (2.0, 32.0), "rdp": (0.01, 0.16), "least_delta": 1e-7}
    known = replace(stated("f", **curve), delta=1e-9)
    assert total_of([at_target("a", 0.5), known]).delta == 1.01e-5
