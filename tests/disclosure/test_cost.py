"""What runs cost for all votes: against a dense search over orders, and with more of anything."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pytest

from divergences import exact_gaussian_delta
from pate_cli import ConfidentGNMax, GNMax, LNMax, Stability, Stated, TeacherGroups
from pate_cli.accounting.conversion import conversion_cost
from pate_cli.core.errors import ParameterError, ReportError
from pate_cli.core.words import Adjacency, Bound, ReleaseKind
from pate_cli.disclosure.cost import Cost, Pair, Rows
from pate_cli.disclosure.guarantee import quote_of, report_of, run_facts
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.report import ReportFacts
from pate_cli.disclosure.runs import Outcome, Run
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms import base
from runs import told
from slices import some

CONFIDENT = ConfidentGNMax(250, 10, threshold=200.0, sigma1=150.0, sigma2=40.0)
SMALL = ConfidentGNMax(20, 2, threshold=12.0, sigma1=4.0, sigma2=2.0)
ARGMAX = GNMax(250, 10, sigma2=100.0)
PLAN = ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=8.0, beta=0.02, sigma=8.0)
DELTA = 1e-4
GROUPED = GNMax(60, 3, sigma2=20.0, teachers_per_record=2)
STABILITY = Stability(60, 3, teachers_per_record=2, query_epsilon=0.5, query_delta=1e-6)
UPPER = ReleasePlan(ReleaseKind.UPPER, delta=DELTA, order=6.0, beta=0.05, sigma=8.0)
GROUPS = TeacherGroups(
    ("one",) * 20 + ("two",) * 40, teachers_per_record=(1,) * 20 + (2,) * 40
).public
CASES = [
    ("paper-mnist", [Rows(CONFIDENT, 640, 283)], 1e-5),
    ("one-query", [Rows(CONFIDENT, 1, 1)], 1e-5),
    ("many", [Rows(CONFIDENT, 40_000, 40_000)], 1e-8),
    ("two-classes", [Rows(SMALL, 30, 12)], 1e-6),
    ("argmax", [Rows(ARGMAX, 100, 100)], 1e-5),
    ("rounds", [Rows(CONFIDENT, 640, 283), Rows(ARGMAX, 100, 100)], 1e-5),
]


def dense(spent, *, delta, draws):
    """The least ε on 400 orders, evaluated a few at a time."""
    orders = 1.0 + np.geomspace(0.02, 1000.0, 400)
    for draw in draws:
        orders = orders[(orders - 1.0) * np.expm1(2.0 * draw.beta) < 1.0 - 1e-6]
    rdp = conversion_cost(orders, delta=delta)
    for draw in draws:
        rdp += np.array([draw.rdp(order) for order in orders.tolist()])
    # Costs are worth computing only where λ/σ² (known to within a factor 3) may be the least.
    rough = rdp + orders * sum(
        one.mechanism.gaussian_mu(queries=one.queries, answers=one.max_answers) ** 2 / 2.0
        for one in spent
    )
    near = np.flatnonzero(rough <= 1.35 * rough.min())[::2]
    total = rdp[near]
    for one in spent:
        total = total + one.mechanism.worst_rdp(
            queries=one.queries, answers=one.max_answers, orders=orders[near]
        )
    return max(float(total.min()), 0.0)


@pytest.mark.parametrize("case", some(CASES, 2), ids=lambda case: case[0])
@pytest.mark.parametrize("draws", [False, True])
def test_a_dense_search_over_orders_finds_nothing_better(case, draws):
    (_, spent, delta), drawn = case, ()
    if draws:
        plan = ReleasePlan(ReleaseKind.UPPER, delta=delta, order=8.0, beta=0.02, sigma=8.0)
        drawn = plan.draws
    found = Cost(delta, tuple(spent), drawn).of_curves
    best = dense(spent, delta=delta, draws=drawn)
    if found.method == "renyi":
        assert found.epsilon == pytest.approx(best, rel=1.5e-3)  # orders are 10% apart
        assert found.order > 1.0
    else:
        assert not draws
        assert found.epsilon < best
        assert found.order is None


def test_the_gaussian_route_is_exact_and_taken_when_it_is_smaller():
    # With much noise in argmax form nothing is lost by seeing all of it and δ decides.
    found = Cost(1e-5, (Rows(ARGMAX, 100, 100),)).of_curves
    assert exact_gaussian_delta(math.sqrt(2.0 * 100) / 100.0, found.epsilon) >= 1e-5 * (1.0 - 1e-8)
    wide = Cost(0.01, (Rows(GNMax(250, 10, sigma2=20.0), 1, 1),)).of_curves
    assert (wide.method, wide.order) == ("gaussian-dp", None)
    delta = exact_gaussian_delta(math.sqrt(2.0) / 20.0, wide.epsilon)
    assert float(delta) == pytest.approx(0.01, rel=1e-6)


def test_the_published_figures_of_the_mnist_row():
    labels = Cost(1e-5, (Rows(CONFIDENT, 640, 283),)).of_curves
    assert labels.method == "renyi"
    # 2.529 by the Gaussian route, 2.142 if every query were a tie and passed the test; what a
    # query costs at worst needs no cap on answers.
    assert labels.epsilon == pytest.approx(2.050, abs=1e-3)
    uncapped = Cost(1e-5, (Rows(CONFIDENT, 640, 640),)).of_curves
    assert uncapped == labels
    few = Cost(1e-5, (Rows(CONFIDENT, 640, 200),)).of_curves
    assert few.epsilon < labels.epsilon


def test_much_noise_leaves_room_for_a_small_delta():
    """The paper's Glyph run is charged at 1e-8; at ε = 10 its many draws would not allow that."""
    for threshold, sigma1 in ((1000.0, 500.0), (3500.0, 1500.0)):
        glyph = ConfidentGNMax(5000, 150, threshold=threshold, sigma1=sigma1, sigma2=100.0)
        assert Cost(1e-8, (Rows(glyph, 12_000, 12_000),)).least_delta < 1e-8
        assert Cost(0.0, (Rows(glyph, 12_000, 12_000),)).least_delta > 1e-8


def test_a_sum_has_every_part_of_both():
    one = Cost(
        1e-5,
        (Rows(CONFIDENT, 640, 283),),
        (PLAN,),
        (Stated(Adjacency.REPLACE_ONE, epsilon=1.0, delta=1e-6),),
        (Pair(0.5, 1e-7, "target", came=0.25),),
    )
    other = Cost(
        1e-6,
        (Rows(ARGMAX, 5, 5),),
        (UPPER,),
        (Stated(Adjacency.REPLACE_ONE, epsilon=2.0, delta=0.0),),
        (Pair(0.7, 1e-8, "session"),),
    )
    for first, second in ((one, other), (other, one)):
        both = first + second
        assert both.delta == 1e-5
        for part in ("rows", "draws", "stated", "pairs"):
            assert getattr(both, part) == getattr(first, part) + getattr(second, part)


def test_the_cost_at_one_order_has_every_part():
    def response(epsilon):
        p = 1.0 / (1.0 + math.exp(-epsilon))
        return math.log(p**4 * (1.0 - p) ** -3.0 + (1.0 - p) ** 4 * p**-3.0) / 3.0

    rows, draws = (
        (Rows(CONFIDENT, 640, 283), Rows(ARGMAX, 100, 100)),
        (PLAN, replace(PLAN, beta=0.01)),
    )
    other = Stated(Adjacency.REPLACE_ONE, epsilon=0.3, delta=0.0)
    pairs = (Pair(1.0, 1e-6, "target", came=0.25), Pair(0.5, 1e-6, "session"))
    cost = Cost(1e-5, rows, draws, (other,), pairs)
    exact = sum(float(each.rdp(np.array([4.0]))[0]) for each in rows)
    exact += sum(each.rdp(4.0) for each in draws) + response(0.3) + response(1.0) + response(0.5)
    assert cost.rdp_at(4.0) == pytest.approx(exact, rel=1e-9)
    assert cost.rdp_at(40.0) == math.inf  # where the first draw has no cost


def test_rounds_of_pure_answers_by_the_exact_law_of_randomised_responses():
    two, three = (LNMax(60, 3, laplace_scale=2.0 / epsilon) for epsilon in (0.8, 0.3))
    delta, rows = 0.01, (Rows(two, 2, 2), Rows(three, 3, 3))
    found = Cost(delta, rows)._pure_epsilon()
    exact = 0.0
    for signs in itertools.product((1.0, -1.0), repeat=5):
        losses = np.array(signs) * (0.8, 0.8, 0.3, 0.3, 0.3)
        chance = float(np.prod(1.0 / (1.0 + np.exp(-losses))))
        exact += max(0.0, chance * (1.0 - math.exp(found - losses.sum())))
    assert 0.5 * delta < exact <= delta * (1.0 + 1e-9) or found == pytest.approx(2.5)
    assert Cost(delta, (*rows, Rows(ARGMAX, 1, 1)))._pure_epsilon() is None
    other = Stated(Adjacency.REPLACE_ONE, epsilon=2.0, delta=0.0)
    assert Cost(1e-6, rows[1:], stated=(other,)).of_curves.epsilon > 2.0


def test_rounds_add_in_mu_squared_and_in_the_error_of_their_noise():
    one, both = Rows(ARGMAX, 100, 100), (Rows(ARGMAX, 100, 100), Rows(ARGMAX, 21, 21))
    assert Cost(1e-5, both).mu == pytest.approx(math.sqrt(2.0 * 121) / 100.0)
    for delta in (1e-5, 1e-12):
        alone, cost = Cost(delta, (one,)), Cost(delta, (one, one))
        assert cost.least_delta > 1.99 * alone.least_delta
    exact = ARGMAX.smallest_delta(100, epsilon=1.0 + alone.of_curves.epsilon)
    assert alone.least_delta == pytest.approx(exact)


def test_a_curve_beside_pairs_is_gaussian_only_without_draws_and_others():
    cost = Cost(1e-5, (Rows(ARGMAX, 100, 100),))
    assert cost.around().mu == cost.mu
    other = Stated(Adjacency.REPLACE_ONE, epsilon=0.3, delta=0.0)
    assert replace(cost, draws=(PLAN,)).around().mu is None
    assert replace(cost, stated=(other,)).around().mu is None


def test_nothing_asked_costs_nothing():
    assert Cost(1e-5).of_curves.epsilon == 0.0
    assert Cost(1e-5, (Rows(ARGMAX, 100, 0),)).of_curves.epsilon == 0.0


@pytest.mark.parametrize("classes", [2, 10])
def test_what_was_asked_before_changes_nothing(classes):
    """Costs of orders are kept; a report's fourth decimal may not hang on a process's past."""
    rows = Rows(ConfidentGNMax(150, classes, threshold=90.0, sigma1=70.0, sigma2=19.0), 9, 5)

    def found():
        return Cost(1e-5, (rows,), PLAN.draws).of_curves, rows.rdp(np.array([PLAN.order]))

    base._costs_by_order.cache_clear()
    (fresh, charged), kept = found(), found()
    assert kept == (fresh, charged)
    alike = replace(rows, mechanism=rows.mechanism.moving(1))
    assert Cost(1e-5, (alike,), PLAN.draws).of_curves == fresh


# ---------------------------------------------------------------- of settings, and of runs


def test_settings_have_a_price_and_every_home_of_a_run_says_the_same():
    """A quote, a report, a record and the worst case in it: one number, found in one place."""
    for mechanism, more in ((GROUPED, {}), (GROUPED, {"sanitizer": UPPER}), (STABILITY, {})):
        settings = told(mechanism, queries=40, max_answers=30, delta=DELTA, private=True, **more)
        own = Cost.of(settings).own
        assert own.epsilon == round(own.epsilon, 4)
        run = Run.of(settings=settings, id="a", time=None, outcome=Outcome.LABELLED, answers=7)
        report = report_of(run_facts(done_of(settings)))
        priced = quote_of(settings)
        assert {own.epsilon, run.epsilon, run.counted} == {report.epsilon}
        assert report.epsilon == priced.epsilon == report.data_independent.epsilon
        assert {own.delta, run.delta, report.delta, priced.delta} == {own.delta}
        assert report.data_independent == priced.data_independent
        assert run.cost.together().epsilon <= own.epsilon


def done_of(settings, answers=None):
    return Round.of(settings, answers=settings.max_answers if answers is None else answers)


def test_a_drawn_epsilon_comes_first_where_it_is_the_smaller():
    settings = told(GROUPED, queries=40, max_answers=30, delta=DELTA, sanitizer=UPPER)
    worst = Cost.of(settings).own.epsilon
    for drawn, first, kind in ((0.5, 0.5, "upper"), (worst + 1.0, worst, "worst-case")):
        report = report_of(run_facts(done_of(settings), sanitized=drawn))
        assert (report.epsilon, report.epsilon_kind) == (first, kind)
        assert report.sanitized == drawn
        assert (report.plan.order, report.plan.sigma) == (6.0, 8.0)


def test_a_target_or_its_refusal_comes_first_whatever_the_labels_cost():
    target = TargetPlan(1.0, DELTA, 0.25, Bound.TWO_TAIL, (8.0,))
    settings = told(GROUPED, queries=40, max_answers=30, delta=DELTA, target=target)
    untested = Cost.of(replace(settings, target=None)).own.epsilon
    for passed, epsilon, kind in ((True, 1.0, "target"), (False, 0.25, "refusal")):
        report = report_of(run_facts(done_of(settings, 30 * passed), passed=passed))
        assert (report.epsilon, report.epsilon_kind) == (epsilon, kind)
        assert report.data_independent.epsilon == untested
        assert (report.passed, report.target) == (passed, target)
        outcome = Outcome.LABELLED if passed else Outcome.REFUSED
        run = Run.of(settings=settings, id="a", time=None, outcome=outcome)
        assert (run.epsilon, run.counted) == (1.0, epsilon)


def test_rounds_are_private_if_all_of_them_are():
    asked = {"queries": 40, "delta": DELTA}
    rounds = [done_of(told(GROUPED, **asked, private=each)) for each in (True, False)]
    for each, private in ((rounds[:1], True), (rounds, False), (rounds[::-1], False)):
        assert report_of(ReportFacts(rounds=tuple(each))).private is private


def test_labels_above_their_target_are_no_report_without_a_test():
    settings = told(GROUPED, queries=40, delta=DELTA, target=TargetPlan.of(0.5, delta=DELTA))
    assert Cost.of(settings).own.epsilon > 0.5
    with pytest.raises(ReportError, match="had no release test"):
        report_of(run_facts(done_of(settings)))


def test_no_group_is_above_the_headline():
    """The steps of a composition, and a test, see all votes at once; rows are priced by group."""
    # The labels alone cost 2.8 for all records, and 1.1 for those of the first group.
    target = TargetPlan(2.0, DELTA, 0.25, Bound.TWO_TAIL, (8.0,))
    for mechanism, more, came in (
        (GROUPED, {}, {}),
        (GROUPED, {"sanitizer": UPPER}, {}),
        (STABILITY, {}, {}),
        (GROUPED, {"target": target}, {"passed": True}),
    ):
        settings = told(mechanism, queries=40, max_answers=30, delta=DELTA, groups=GROUPS, **more)
        report = report_of(run_facts(done_of(settings), **came))
        own = {group.group: group.epsilon for group in report.groups}
        assert own["two"] == report.epsilon
        if mechanism is GROUPED and not came:
            moved = Cost.of(settings).moving(1).own.epsilon
            assert own["one"] == moved < own["two"]
        else:
            assert own["one"] == report.epsilon


def test_one_delta_is_meant_throughout():
    with pytest.raises(ParameterError, match=r"ReleasePlan has delta 0\.0001, the run 0\.001"):
        told(GROUPED, queries=40, delta=1e-3, sanitizer=UPPER)
    with pytest.raises(ParameterError, match=r"TargetPlan has delta 0\.001, the run 0\.0001"):
        told(
            GROUPED, queries=40, delta=DELTA, target=TargetPlan(1.0, 1e-3, 0.25, test_orders=(8.0,))
        )


def test_groups_have_as_many_votes_as_the_mechanism_is_charged_for():
    """A mechanism of other votes, or of records that move fewer, would cost less."""
    for teachers, k in ((60, 1), (60, 3), (59, 2), (61, 2)):
        mechanism = GNMax(teachers, 3, sigma2=20.0, teachers_per_record=k)
        with pytest.raises(ParameterError, match=r"the mechanism (has|only allows)"):
            told(mechanism, queries=40, groups=GROUPS)
    assert told(GROUPED, queries=40, groups=GROUPS).groups == GROUPS


def test_external_parts_add_to_epsilon_and_to_delta_but_not_to_the_labels():
    part = Stated(Adjacency.REPLACE_ONE, epsilon=0.5, delta=1e-5)
    settings = told(GROUPED, queries=40, max_answers=30, delta=DELTA, groups=GROUPS)
    alone = Cost.of(settings).own.epsilon
    facts = run_facts(done_of(settings), external=(part,))
    report = report_of(facts)
    assert report.delta == pytest.approx(1.1e-4)
    assert report.data_independent.labels_epsilon == alone
    assert report.epsilon == pytest.approx(alone + 0.5, abs=2e-4)
    assert {group.delta for group in report.groups} == {report.delta}
