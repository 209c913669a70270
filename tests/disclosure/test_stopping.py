"""How many queries a session may ask, what its rule says of itself, and what it costs."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pate_cli as pate
from pate_cli.accounting.stopping import Beyond
from pate_cli.core.errors import ParameterError, UnreachableError, UsageError
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.settings import StopRule
from pate_cli.disclosure.stopping import _most_within, rule_fault, stop_rule
from refusals import refusal
from slices import some
from some_runs import told

GNMAX = pate.GNMax(teachers=250, classes=10, sigma2=40)
CONFIDENT = pate.ConfidentGNMax(250, 10, threshold=200, sigma1=150, sigma2=40)
SMALL = pate.ConfidentGNMax(30, 200, threshold=24, sigma1=18, sigma2=4.8)


def cost_of(mechanism, rule):
    """What a session costs by its rule, whatever was asked yet."""
    return Cost.of_labels(told(mechanism, 0, delta=rule.delta, rule=rule))


@given(
    st.floats(1e-6, 30.0),
    st.floats(0.45, 1.0),
    st.sampled_from([0.0, 0.3]),
    st.integers(1, 10**9),
    st.one_of(st.just(math.inf), st.integers(1, 500)),
    st.sampled_from([0.5, 1.0, 10.0]),
)
def test_the_most_queries_are_found_as_by_halving(scale, power, least, most, end, target):
    def cost(queries):
        return math.inf if queries > end else round(least + scale * queries**power, 4)

    found = _most_within(cost, target, most)
    assert 0 <= found <= most
    assert found == 0 or cost(found) <= target
    assert found == most or cost(found + 1) > target


@pytest.mark.parametrize("mechanism", [GNMAX, CONFIDENT, SMALL])
@pytest.mark.parametrize("epsilon", some([2.0, 3.0], 2))
def test_a_rule_is_as_long_as_its_target_allows_and_without_fault(mechanism, epsilon):
    rule = stop_rule(mechanism, epsilon=epsilon, delta=1e-5)
    assert rule_fault(rule, mechanism) is None
    assert rule.epsilon <= epsilon
    longer = StopRule(rule.epsilon, rule.delta, rule.asks + 1, rule.beyond)
    assert rule_fault(longer, mechanism) is not None
    own = cost_of(mechanism, rule).own
    assert (own.epsilon, own.delta) == (rule.epsilon, 1e-5)


def test_few_queries_take_the_whole_target_for_many_more():
    rule = stop_rule(SMALL, epsilon=3.0, delta=1e-5)
    assert (rule.epsilon, rule.asks) == (3.0, 9)
    assert rule.most > 150
    assert cost_of(SMALL, rule).own.method == "renyi"


def test_a_number_of_queries_is_a_rule_without_more():
    rule = stop_rule(CONFIDENT, epsilon=None, delta=1e-5, asks=640)
    assert (rule.asks, rule.most, rule.beyond) == (640, 640, None)
    assert rule.epsilon == pytest.approx(2.0496, abs=2e-3)
    assert stop_rule(CONFIDENT, epsilon=2.0, delta=1e-5, asks=640).asks < 640
    assert stop_rule(CONFIDENT, epsilon=3.0, delta=1e-5, asks=640).epsilon == rule.epsilon


def test_what_lies_beyond_is_found_out_where_it_is_too_much():
    rule = stop_rule(CONFIDENT, epsilon=2.0, delta=1e-5)
    beyond = rule.beyond
    assert beyond is not None
    for name, factor in (("budget", 1.15), ("test_cost", 0.5), ("answer_cost", 0.3)):
        more = Beyond(**(vars(beyond) | {name: factor * getattr(beyond, name)}))
        fault = rule_fault(StopRule(rule.epsilon, rule.delta, rule.asks, more), CONFIDENT)
        assert fault is not None
    # The proof of long rules needs that a query costs what is said, however small the budget is.
    cheap = Beyond(**(vars(beyond) | {"test_cost": 0.99 * beyond.test_cost, "budget": 0.1}))
    short = StopRule(rule.epsilon, rule.delta, rule.asks, cheap)
    assert (rule_fault(short, CONFIDENT) or "").startswith("a query costs")
    alone = StopRule(rule.epsilon, rule.delta, rule.asks, beyond)
    assert rule_fault(alone, GNMAX) is not None


def test_a_delta_for_fewer_queries_is_a_fault():
    rule = stop_rule(CONFIDENT, epsilon=2.0, delta=1e-5)
    assert rule_fault(StopRule(rule.epsilon, 1e-12, rule.asks, None), CONFIDENT) is not None
    long = StopRule(3.0, 1e-8, 5, Beyond(8.0, 1e-9, 0.1, 1.0))
    assert (rule_fault(long, CONFIDENT) or "").startswith("delta is too small")


def test_without_a_target_or_a_number_there_is_no_rule():
    refusal(UsageError, stop_rule, GNMAX, epsilon=None, delta=1e-5)
    refusal(ParameterError, stop_rule, GNMAX, epsilon=None, delta=1e-5, asks=0)
    refusal(ParameterError, stop_rule, GNMAX, epsilon=-1.0, delta=1e-5)
    text = refusal(UnreachableError, stop_rule, GNMAX, epsilon=0.01, delta=1e-5)
    assert text.startswith("one query alone costs epsilon 0.1096")
    refusal(UnreachableError, stop_rule, GNMAX, epsilon=None, delta=1e-300, asks=5)


def test_a_group_has_the_epsilon_of_its_own_votes_where_the_rule_is_a_number():
    twice = GNMAX.moving(2)
    rule = stop_rule(twice, epsilon=None, delta=1e-5, asks=20)
    cost = cost_of(twice, rule)
    assert cost.moving(1).own.epsilon < cost.moving(2).own.epsilon == rule.epsilon
    more = stop_rule(CONFIDENT, epsilon=2.0, delta=1e-5)
    assert cost_of(CONFIDENT, more).moving(1) == cost_of(CONFIDENT, more)
