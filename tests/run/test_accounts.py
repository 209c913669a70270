"""What the release test asks of its coin: no more than the labels could cost, and no less."""

import math
from dataclasses import replace

import numpy as np
import pytest

from laws import checked_argmax_law, gaussian_argmax_law
from many_rows import hockey_stick_of_rows
from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.tested_budget import Coin, passing_coin
from pate_cli.core.errors import VoteError
from pate_cli.core.noise import Noise, RunKey
from pate_cli.core.words import Bound
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.target import TargetPlan, states_for
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.run.labelling import release_test
from refusals import refusal
from runs import CountsRows, told
from slices import some

GNMAX = GNMax(40, 2, sigma2=10.0)
# Nearly all pass the test, which costs next to nothing.
CONFIDENT = ConfidentGNMax(40, 2, threshold=-100.0, sigma1=60.0, sigma2=10.0)
PLAN = TargetPlan(1.0, 1e-3, 0.5)


@pytest.fixture
def asked(monkeypatch):
    """The chances of refusal that coins were asked for, in logarithms."""
    found = []

    def comes_up(self, log_chance):
        found.append(log_chance)
        return False

    monkeypatch.setattr(Noise, "comes_up", comes_up)
    return found


def drawn(
    mechanism, counts, *, plan=PLAN, bound=Bound.TWO_TAIL, queries=None, max_answers=None, seed=1
):
    """A run's test of these votes."""
    rows = len(counts) if queries is None else queries
    asked = told(mechanism, queries=rows, max_answers=max_answers, delta=plan.delta)
    worst = Cost.of(asked).own.epsilon
    target = replace(plan, bound=bound).settled(mechanism, queries=rows, worst_case=worst)
    assert target.test_orders
    settings = replace(asked, target=target)
    return release_test(CountsRows(counts), mechanism, settings, RunKey.of(seed))


def test_the_coin_has_noise_of_its_own(monkeypatch):
    fair = Coin(math.log(0.5), math.log(0.5))
    monkeypatch.setattr(TargetPlan, "coin", lambda *_, **__: fair)
    found = [drawn(GNMAX, HERE, seed=seed) for seed in range(20)]
    keys = [RunKey.of(seed) for seed in range(20)]
    assert found == [not key.aside("coin").comes_up(fair.log_refuse) for key in keys]
    assert found != [not key.rows(0, 1).comes_up(fair.log_refuse) for key in keys]
    assert 2 < sum(found) < 18


# A file of ties, whose labels cost all that labels can, and a neighbour; so many rows that at ε
# they are dozens of δ apart.
ROWS = 36
HERE, THERE = (np.tile(row, (ROWS, 1)) for row in ([20, 20], [19, 21]))
ties_of = pytest.mark.parametrize("it", [GNMAX, CONFIDENT], ids=lambda it: it.name)


def apart(it, epsilon):
    """The hockey-stick of the labels of both files."""
    counts = np.array([[20, 20], [19, 21]])
    laws = gaussian_argmax_law(counts, it.sigma2)
    if it is CONFIDENT:
        check = {"threshold": it.threshold, "sigma1": it.sigma1}
        laws = checked_argmax_law(counts, sigma=it.sigma2, **check)
    return hockey_stick_of_rows(*laws, ROWS, epsilon)


@ties_of
@pytest.mark.parametrize("bound", some(list(Bound), 2))
def test_what_all_votes_cost_at_most_is_no_less_than_they_do(it, bound, asked):
    """Where ties stand, the ceiling is what is charged; with half of it they would pass."""
    assert apart(it, PLAN.epsilon) > 25.0 * PLAN.delta
    for counts in (HERE, THERE):
        drawn(it, counts, bound=bound)
    here, there = (-np.expm1(log_refuse) for log_refuse in asked)
    labels = here * apart(it, PLAN.epsilon + np.log(there / here))
    assert labels <= PLAN.delta * (1.0 + 1e-9)


@ties_of
@pytest.mark.parametrize("max_answers", some([None, 15], 2))
def test_the_ceiling_is_that_of_all_rows_and_of_the_answers_there_may_be(it, max_answers, asked):
    drawn(it, HERE, max_answers=max_answers)
    answers = ROWS if max_answers is None else max_answers
    states = states_for(Bound.TWO_TAIL, it, highest_order=float(PLAN.orders[-1]))
    tally = Tally.of(states.of(it, HERE))
    ceiling = it.worst_rdp(queries=ROWS, answers=answers, orders=PLAN.orders)
    curve = np.stack([states.profile(tally, order) for order in PLAN.orders.tolist()])
    assert np.all(curve[:, 20] >= ceiling * (1.0 - 1e-9))
    wanted = passing_coin(
        np.minimum(curve, ceiling[:, None]),
        orders=PLAN.orders,
        epsilon=PLAN.epsilon - 1e-9,
        delta=PLAN.delta * (1.0 - 1e-6),
        refusal_epsilon=PLAN.refusal_epsilon - 1e-9,
    )
    assert asked == [pytest.approx(wanted.log_refuse, rel=1e-12)]


@ties_of
def test_a_coin_is_needed_wherever_labels_could_cost_more_than_the_target(it):
    most = Cost.of(told(it, queries=60, delta=1e-3)).own.epsilon

    def tested(epsilon):
        target = TargetPlan.of(epsilon, delta=1e-3, bound=Bound.TWO_TAIL)
        return target.settled(it, queries=60, worst_case=most).test_orders != ()

    assert not tested(most)
    for share in (0.999_999, 0.9, 0.6, 0.4):
        assert tested(share * most)


@pytest.mark.parametrize("queries", [59, 61, 600])
def test_no_coin_is_drawn_over_another_number_of_rows_than_was_priced(queries, asked):
    counts = np.tile([40, 0], (60, 1))
    message = refusal(VoteError, drawn, GNMAX, counts, queries=queries)
    assert message.startswith(f"expected {queries} queries, but the votes have 60; ")
    assert asked == []
