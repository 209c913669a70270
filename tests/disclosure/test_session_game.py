"""The rule of a session against the best adversary there is, solved without a sample.

Whoever asks plays against the rule: each query's votes, on two ensembles that one record's teachers
part, follow from the answers before. All that can come of it is computed by induction from the end
(`audit.game`), and neither the δ of the rule nor the moment that it is proved by is exceeded.
"""

import math

import numpy as np
import pytest

import pate_cli as pate
from audit.game import Game, Menu
from graphs import Graph
from laws import checked_argmax_law, gaussian_argmax_law
from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.stopping import Beyond, log_growth
from pate_cli.disclosure.settings import StopRule
from pate_cli.disclosure.stopping import rule_fault
from slices import some

# At the threshold where answers tie; far above; passed by nearly all; where answers cost little.
CONFIDENT = [
    (8, {"threshold": 6.0, "sigma1": 4.0, "sigma2": 3.0}),
    (8, {"threshold": 8.0, "sigma1": 4.0, "sigma2": 1.5}),
    (6, {"threshold": 0.0, "sigma1": 6.0, "sigma2": 3.0}),
    (6, {"threshold": 3.5, "sigma1": 4.0, "sigma2": 8.0}),
    (4, {"threshold": 2.0, "sigma1": 2.0, "sigma2": 2.0}),
    (6, {"threshold": 6.0, "sigma1": 6.0, "sigma2": 4.0, "teachers_per_record": 2}),
    (6, {"threshold": 3.0, "sigma1": 8.0, "sigma2": 6.0, "teachers_per_record": 2}),
]
GNMAX = [(4, {"sigma2": 3.0}), (5, {"sigma2": 1.5}), (4, {"sigma2": 6.0, "teachers_per_record": 2})]


def opened(mechanism, teachers, parameters, *, classes=2, delta=0.01):
    return pate.Session(
        teachers=teachers, classes=classes, mechanism=mechanism, target_epsilon=3.0, delta=delta,
        record=False, **parameters,
    )  # fmt: skip


def conversion(order, delta=0.01):
    return float(conversion_cost(np.array([order]), delta=delta)[0])


@pytest.mark.parametrize(
    ("mechanism", "teachers", "parameters"),
    [
        *(("confident", *each) for each in some(CONFIDENT, 4)),
        *(("gnmax", *each) for each in GNMAX),
    ],
)
def test_no_plan_gets_more_out_of_a_session_than_its_rule_says(mechanism, teachers, parameters):
    session = opened(mechanism, teachers, parameters)
    rule, game = session.rule, Game(*Menu.of(mechanism, teachers, parameters).laws, session.rule)
    assert game.delta(rule.epsilon / 2.0) > 0.0
    assert game.delta(rule.epsilon) <= rule.delta
    assert (rule.beyond is None) == (mechanism == "gnmax")
    if rule.beyond is None:
        return
    order, moments = rule.beyond.order, session.mechanism.query_moments(rule.beyond.order)
    proved = log_growth(moments, asks=rule.asks, beyond=rule.beyond)
    assert game.log_moment(order) <= proved
    assert proved <= (order - 1.0) * (rule.epsilon - conversion(order)) * (1.0 + 1e-8)


@pytest.mark.parametrize("k", [1, 2])
@pytest.mark.parametrize("mechanism", some(["gnmax", "confident"], 2))
def test_three_classes(mechanism, k):
    parameters = {"sigma2": 3.0 * k, "teachers_per_record": k}
    if mechanism == "confident":
        parameters |= {"threshold": 3.0, "sigma1": 4.0 * k}
    session = opened(mechanism, 4, parameters, classes=3)
    graph = Graph.of(4, 3, missing=4, teachers_per_record=k)
    if mechanism == "confident":
        noise = {"threshold": parameters["threshold"], "sigma1": parameters["sigma1"]}
        log_law = checked_argmax_law(graph.histograms, sigma=parameters["sigma2"], **noise)
    else:
        log_law = gaussian_argmax_law(graph.histograms, parameters["sigma2"])
    law = np.exp(log_law)
    here, there = law[graph.edges.T]
    rule, game = session.rule, Game(here, there, session.rule)
    if rule.beyond is not None:
        claimed = rule.epsilon - conversion(rule.beyond.order)
        assert game.log_moment(rule.beyond.order) <= (rule.beyond.order - 1.0) * claimed
    part = Game(here[::7], there[::7], rule)  # which is worth no more
    assert part.delta(rule.epsilon) <= rule.delta


# What a union costs.


def test_a_union_that_nobody_pays_for_is_seen_through():
    """Each half of the rule alone costs the target, and both together cost more, by the game."""
    parameters = {"threshold": 4.0, "sigma1": 5.0, "sigma2": 13.0}
    session = opened("confident", 8, parameters, delta=0.1)
    rule, menu = session.rule, Menu.of("confident", 8, parameters)
    order = rule.beyond.order
    claimed = (order - 1.0) * (rule.epsilon - conversion(order, 0.1))
    x, y = rule.beyond.test_cost, rule.beyond.answer_cost
    whole = Beyond(order, x, y, claimed / (order - 1.0))
    union = StopRule(rule.epsilon, 0.1, rule.asks, whole)
    assert rule_fault(rule, session.mechanism) is None
    assert "with those beyond" in rule_fault(union, session.mechanism)
    kept, exceeded = (Game(*menu.laws, each).log_moment(order) for each in (rule, union))
    assert kept <= claimed < exceeded
    # Neither half is to blame.
    assert Game(*menu.laws, StopRule(rule.epsilon, 0.1, rule.asks)).log_moment(order) <= claimed
    assert Game(*menu.laws, StopRule(rule.epsilon, 0.1, 1, whole)).log_moment(order) <= claimed


# The game itself.


@pytest.mark.parametrize("rule", [StopRule(1.0, 0.1, 3), StopRule(1.0, 0.1, 1, Beyond(2, 1, 2, 4))])
def test_the_game_is_what_all_plans_come_to(rule):
    rng = np.random.default_rng(3)
    one, other = rng.dirichlet(np.ones(3), size=(2, 2))
    game = Game(one, other, rule)
    epsilon, order = 0.4, 2.5

    def best(asked, answers, p, q, worth):
        if rule.left(asked, answers) <= 0:
            return worth(p, q)
        found = [
            sum(
                best(asked + 1, answers + (o > 0), p * one[pair, o], q * other[pair, o], worth)
                for o in range(3)
            )
            for pair in range(len(one))
        ]
        return max(*found, worth(p, q))

    def stick(p, q):
        return max(p - math.exp(epsilon) * q, 0.0)

    def moment(p, q):
        return p**order * q ** (1.0 - order)

    assert game.log_moment(order) == pytest.approx(math.log(best(0, 0, 1.0, 1.0, moment)))
    exact = best(0, 0, 1.0, 1.0, stick)
    assert exact - 1e-12 <= game.delta(epsilon) <= exact + 4e-4


def test_a_rule_that_forgets_answers_is_seen_through():
    teachers, parameters = CONFIDENT[0]
    session = opened("confident", teachers, parameters)

    class Forgetful(StopRule):
        def left(self, asked, answers):
            return super().left(asked, 0)

    rule = session.rule
    forgetful = Forgetful(rule.epsilon, rule.delta, rule.asks, rule.beyond)
    game = Game(*Menu.of("confident", teachers, parameters).laws, forgetful)
    order = rule.beyond.order
    assert game.log_moment(order) > (order - 1.0) * (rule.epsilon - conversion(order))
