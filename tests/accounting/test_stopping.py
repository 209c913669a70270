"""The rule of asking one by one, against whole games that are played out."""

import functools
import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import ndtr

from graphs import neighbours_of
from laws import checked_argmax_law
from pate_cli.accounting import stopping
from pate_cli.accounting.stopping import MOST_ASKED, Beyond, QueryMoments, beyond_of, log_growth
from pate_cli.core.errors import ParameterError
from pate_cli.mechanisms.confident import ConfidentGNMax
from refusals import refusal

MNIST = {"threshold": 200.0, "sigma1": 150.0, "sigma2": 40.0}


def moments_of(mechanism, order):
    found = mechanism.query_moments(order)
    assert found is not None
    return found


@functools.cache
def mnist(order):
    return moments_of(ConfidentGNMax(250, 10, **MNIST), order)


def allowed(asks, beyond, asked, answers):
    """Whether one more may be asked, as the rule is written."""
    return asked + 1 <= asks or beyond.spent(asked + 1, answers + 1) <= beyond.budget


def played_out(moments, asks, beyond):
    """V(0, 0) by the game itself, to its end: no bound stands in for what lies beyond N."""

    @functools.cache
    def value(asked, answers):
        if not allowed(asks, beyond, asked, answers):
            return 1.0
        refused, answered = value(asked + 1, answers), value(asked + 1, answers + 1)
        return max(1.0, float(np.max(moments.refuse * refused + moments.answer * answered)))

    return math.log(value(0, 0))


@pytest.mark.parametrize("share", [0.4, 0.7, 0.95])
@pytest.mark.parametrize("asks", [1, 4, 9])
def test_the_price_of_a_rule_is_not_below_that_of_the_game(asks, share):
    mechanism = ConfidentGNMax(30, 5, threshold=24.0, sigma1=18.0, sigma2=4.8)
    moments = moments_of(mechanism, 6.5)
    cost = moments.test_cost(moments.answer_cost)
    beyond = Beyond(6.5, cost, moments.answer_cost, share * 1.4)
    exact, found = played_out(moments, asks, beyond), log_growth(moments, asks=asks, beyond=beyond)
    assert exact <= found <= exact * (1.0 + 1e-4) + 1e-4


@pytest.mark.parametrize(("k", "threshold", "sigma"), [(4, 20.0, 3.0), (10, 5.0, 10.0)])
def test_moments_of_records_of_several_teachers_bound_those_of_every_count(k, threshold, sigma):
    """Cells span several counts, and the worst refusal and the worst answer may be of two counts.

    The label of an answer multiplies its moment by at least 1, so the test alone is a lower bound.
    """
    shape = {"threshold": threshold, "sigma1": sigma, "sigma2": 30.0, "teachers_per_record": k}
    moments, order = moments_of(ConfidentGNMax(40, 3, **shape), 2.0), 2.0

    def test_alone(count, other, sign):
        p, q = (ndtr(sign * (v - threshold) / sigma) for v in (count, other))
        return p**order * q ** (1.0 - order)

    for count, other in itertools.product(range(41), repeat=2):
        if abs(count - other) <= k:
            refused, answered = (test_alone(count, other, sign) for sign in (-1.0, 1.0))
            for share in (0.0, 0.1, 0.3, 0.6, 1.0):
                bound = np.max(moments.refuse + share * moments.answer)
                assert refused + share * answered <= bound * (1.0 + 1e-9), (count, other, share)


def test_a_long_rule_is_priced_from_some_way_beyond_its_queries(monkeypatch):
    moments = mnist(9.807)
    beyond = Beyond(9.807, moments.test_cost(moments.answer_cost), moments.answer_cost, 0.95)
    whole = log_growth(moments, asks=611, beyond=beyond)
    monkeypatch.setattr(stopping, "_FURTHER", 0)
    at_once = log_growth(moments, asks=611, beyond=beyond)
    monkeypatch.setattr(stopping, "_FURTHER", 10_000)
    exact = log_growth(moments, asks=611, beyond=beyond)
    assert exact <= whole <= at_once <= 1.02 * exact


def test_queries_alone_cost_their_worst_case():
    """Where nothing lies beyond, N queries of any kind: N times w12."""
    moments = mnist(9.5)
    nothing = Beyond(9.5, moments.test_cost(moments.answer_cost), moments.answer_cost, 0.0)
    mechanism = ConfidentGNMax(250, 10, **MNIST)
    worst = mechanism.worst_rdp(queries=600, answers=600, orders=np.array([9.5]))[0]
    assert log_growth(moments, asks=600, beyond=nothing) / 8.5 == pytest.approx(worst, rel=1e-6)
    assert worst / 600 == pytest.approx(1.67672e-3, rel=2e-3)  # theory.md, 2.11


def test_a_query_costs_no_more_beside_its_answer_than_its_test_alone():
    moments = mnist(9.5)
    cost = moments.test_cost(moments.answer_cost)
    assert 0.9 * 1.34406e-4 < cost <= 1.34406e-4 * (1.0 + 1e-5)  # w1, theory.md, 2.7
    assert moments.answer_cost == pytest.approx(3.80642e-3, rel=1e-3)  # w2
    assert moments.test_cost(0.0) == pytest.approx(1.67672e-3, rel=2e-3)  # w12


@pytest.mark.parametrize("votes", [1, 2])
def test_every_pair_of_neighbours_is_a_case(votes):
    order, ratios = 2.0, np.array([0.0, 0.05, 0.3, 0.7, 0.95, 1.0])
    noise = {"threshold": 3.5, "sigma1": 1.8, "sigma": 3.0}
    mechanism = ConfidentGNMax(
        5, 3, threshold=3.5, sigma1=1.8, sigma2=3.0, teachers_per_record=votes
    )
    bound = moments_of(mechanism, order).growth(ratios)
    found = 0
    worst = np.zeros(ratios.size)
    for counts in itertools.product(range(6), repeat=3):
        if sum(counts) > 5:
            continue
        around = neighbours_of(np.array(counts))
        for _ in range(votes - 1):
            around = np.unique(np.concatenate([neighbours_of(each) for each in around]), axis=0)
        around = around[around.sum(axis=1) <= 5]
        here, there = (checked_argmax_law(rows, **noise) for rows in (np.array([counts]), around))
        for first, second in ((here, there), (there, here)):
            terms = np.exp(order * first + (1.0 - order) * second)
            moment = terms[:, :1] + ratios * terms[:, 1:].sum(axis=1)[:, None]
            worst = np.maximum(worst, moment.max(axis=0))
            found += len(moment)
    assert found > 500
    assert np.all(worst <= bound * (1.0 + 1e-9))
    assert np.log(worst[-1]) >= 0.5 / votes * np.log(bound[-1])


def test_what_is_kept_for_beyond_costs_nothing_more():
    moments = mnist(9.807)
    most = 611 * moments.test_cost(0.0) + 1e-4
    found = beyond_of(moments, asks=611, most=most)
    assert found is not None
    assert found.most > 6000
    assert log_growth(moments, asks=611, beyond=found) <= 8.807 * most
    larger = Beyond(found.order, found.test_cost, found.answer_cost, most)
    assert log_growth(moments, asks=611, beyond=larger) > 8.807 * most


@pytest.mark.parametrize(
    ("refuse", "answer", "answer_cost", "most"),
    [(1.2, 0.1, 0.01, 5 * math.log(1.3) / 2.0), (1.0, 0.0, 0.5, 1.0)],
)
def test_nothing_lies_beyond_where_a_test_costs_all_or_nothing(refuse, answer, answer_cost, most):
    moments = QueryMoments(3.0, np.array([refuse]), np.array([answer]), answer_cost=answer_cost)
    assert beyond_of(moments, asks=5, most=most) is None


def test_growth_is_that_of_the_largest_line_and_at_least_one():
    """However many cases there are; a session that stops asking keeps its moment."""
    refuse, answer = np.zeros(3000), np.full(3000, 0.5)
    moments = QueryMoments(3.0, refuse, answer, answer_cost=0.1)
    assert moments.growth(np.array([0.0, 1.0, 5.0])).tolist() == [1.0, 1.0, 2.5]
    refuse[-1] = 1.5
    assert moments.growth(np.array([0.0, 1.0])).tolist() == [1.5, 2.0]


@given(
    st.integers(0, 300),
    st.integers(0, 300),
    st.floats(1e-4, 1.0),
    st.floats(0.0, 2.0),
    st.floats(-1.0, 20.0),
)
def test_so_many_more_are_allowed_whatever_comes_out(asked, answers, test, answer, left):
    budget = max(asked * test + answers * answer + left, 0.0)
    beyond = Beyond(5.0, test, answer, budget)
    further = beyond.further(asked, answers)
    if further:
        assert beyond.allows(asked + further, answers + further)
        assert beyond.further(asked + 1, answers + 1) >= further - 1
    assert beyond.spent(asked + further + 1, answers + further + 1) > budget * (1.0 - 1e-12)
    assert beyond.most <= MOST_ASKED


def test_a_thousandth_too_much_is_not_allowed():
    beyond = Beyond(5.0, 0.001, 0.0, 1.0)
    assert beyond.allows(1000, 0)
    assert not beyond.allows(1001, 0)


@pytest.mark.parametrize(
    "numbers", [(3.0, 0.0, 0.1, 1.0), (3.0, 0.1, -0.1, 1.0), (3.0, 0.1, 0.1, math.nan), (1.0,) * 4]
)
def test_costs_of_a_rule_are_at_least_nothing(numbers):
    refusal(ParameterError, Beyond, *numbers)


def test_a_rule_is_priced_at_its_own_order():
    for order in (3.0, 12.0):
        other = Beyond(order, 0.1, 0.1, 1.0)
        refusal(ParameterError, log_growth, mnist(9.5), asks=2, beyond=other)


def test_moments_that_overflow_allow_nothing_beyond():
    sharp = ConfidentGNMax(250, 3, threshold=200.0, sigma1=0.01, sigma2=40.0)
    assert sharp.query_moments(30.0) is None
