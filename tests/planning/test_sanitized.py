"""The public rule: it sees no votes, obeys what is given, and stays near the secret optimum."""

import inspect
import math
from dataclasses import replace

import numpy as np
import pytest

from pate_cli.accounting.sensitivity import distances_for, largest_beta, smooth_sensitivity
from pate_cli.core.errors import ParameterError
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.planning.sanitized import choose_plan
from pate_cli.planning.synthetic import SyntheticEnsemble
from refusals import refusal
from runs import charged
from slices import chosen, some

UPPER, NONE = ReleaseKind.UPPER, ReleaseKind.NONE
MECHANISM = ConfidentGNMax(60, 4, threshold=48.0, sigma1=36.0, sigma2=9.6)
PAPER = ConfidentGNMax(250, 10, threshold=200.0, sigma1=150.0, sigma2=40.0)


def choose(kind=UPPER, mechanism=MECHANISM, queries=200, delta=1e-5, **given):
    return choose_plan(kind, [(mechanism, queries)], delta=delta, **given)


def test_the_rule_is_given_no_votes():
    names = set(inspect.signature(choose_plan).parameters)
    assert names == {"kind", "rounds", "delta", "order", "beta", "sigma"}


def test_it_always_says_the_same_and_release_none_keeps_the_plan_of_a_later_release():
    fresh = ConfidentGNMax(60, 4, threshold=48.0, sigma1=36.0, sigma2=9.6)
    assert choose(mechanism=fresh) == choose() == replace(choose(NONE), kind=UPPER)


@pytest.mark.parametrize(
    ("mechanism", "queries", "delta"),
    some(
        [
            (MECHANISM, 1, 1e-5),
            (MECHANISM, 100_000, 1e-8),
            (ConfidentGNMax(1, 2, threshold=0.8, sigma1=0.6, sigma2=0.16), 10, 1e-5),
            (ConfidentGNMax(3, 2, threshold=2.0, sigma1=1.8, sigma2=0.48), 5, 1e-5),
            (GNMax(100, 2, sigma2=500.0), 50, 1e-6),
            (ConfidentGNMax(2000, 50, threshold=1600.0, sigma1=1200.0, sigma2=320.0), 1000, 1e-6),
        ],
        2,
    ),
    ids=str,
)
def test_every_choice_is_admissible(mechanism, queries, delta):
    plan = choose(UPPER, mechanism, queries, delta)
    assert (plan.kind, plan.delta) == (UPPER, delta)
    assert 0.0 < plan.beta < largest_beta(plan.order)
    assert math.isfinite(plan.overhead)
    for value in (plan.beta, plan.sigma):
        assert float(f"{value:.3g}") == value
    assert 1 <= distances_for(plan.beta, teachers=mechanism.teachers) <= mechanism.teachers


def test_distances_fit_in_memory():
    assert distances_for(1e-9, teachers=10**6) == 4096


@pytest.mark.parametrize(
    "given",
    some(
        [
            {"order": 7.123, "beta": 0.01234, "sigma": 6.789},
            {"order": 1.0001},
            {"order": 5000.0},
            {"beta": 1e-7},
            {"beta": 4.5},
            {"sigma": 1e-3},
            {"sigma": 1e5},
        ],
        2,
    ),
    ids=str,
)
@pytest.mark.parametrize("kind", [UPPER, NONE])
def test_what_is_given_stays(kind, given):
    plan = choose(kind, **given)
    assert {name: getattr(plan, name) for name in given} == given
    assert plan.kind is kind
    assert plan.beta < largest_beta(plan.order)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"order": 1.0}, "a Renyi order must be finite and above 1, got 1.0"),
        ({"beta": 0.0}, "`beta` must be positive and finite, got 0.0"),
        ({"sigma": -2.0}, "`sigma_release` must be positive and finite, got -2.0"),
        (
            {"sigma": 1e-200},
            "`sigma_release` 1e-200 is so small that its privacy cost is infinite",
        ),
        ({"delta": 0.0}, "delta must be between 0 and 1, both excluded, got 0.0"),
        ({"order": 10.0, "beta": 0.06}, "`beta` 0.06 at order 10 has infinite privacy cost; "),
        ({"beta": 400.0}, "`beta` 400 at order 1.0001 has infinite privacy cost; "),
    ],
    ids=str,
)
def test_what_is_out_of_range_is_refused(given, message):
    assert refusal(ParameterError, choose, **given).startswith(message)


def published(mechanism, counts, orders, betas, sigmas):
    """(mean + 2 sd, mean, sd) of what would be published, the best on a grid.

    `betas` are multiplied by the inverse of the order.
    """
    ledger = charged(mechanism, counts, orders, distances=min(mechanism.teachers, 600))
    found = []
    for row, order in enumerate(ledger.orders.tolist()):
        for beta in np.asarray(betas) / order:
            curve, ceiling = ledger.sensitivity[row], float(ledger.ceiling[row])
            smooth = smooth_sensitivity(curve, ceiling=ceiling, beta=beta)
            for sigma in sigmas:
                try:
                    plan = ReleasePlan(UPPER, delta=1e-5, order=order, beta=beta, sigma=sigma)
                except ParameterError:  # the cost of the draw is infinite
                    continue
                mean = ledger.rdp[row] + plan.overhead + smooth * plan.shift
                found.append((mean + 2 * smooth * sigma, mean, smooth * sigma))
    return min(found)


def ruled(mechanism, counts, plan):
    return published(mechanism, counts, [plan.order], [plan.beta * plan.order], [plan.sigma])[0]


RULED = {
    "small": (MECHANISM, 200, 0.85, 0.3),
    "sure": (PAPER, 640, 0.93, 0.3),
    "unsure": (PAPER, 2000, 0.65, 0.5),
    "argmax": (GNMax(500, 5, sigma2=60.0), 300, 0.8, 0.2),
}


@pytest.mark.parametrize("name", chosen(RULED, {"small", "argmax"}))
def test_the_rule_is_not_far_from_what_only_the_votes_could_tell(name):
    mechanism, queries, *like = RULED[name]
    ensemble = SyntheticEnsemble(mechanism.teachers, mechanism.classes, queries, *like)
    counts, _ = ensemble.draw(97)
    plan = choose(UPPER, mechanism, queries)
    orders = 1.0 + (plan.order - 1.0) * np.array([0.4, 0.55, 0.75, 1.0, 1.3, 1.7, 2.3])
    sigmas = plan.sigma * np.geomspace(0.2, 5.0, 25)
    best, _, _ = published(mechanism, counts, orders.tolist(), np.geomspace(0.03, 0.45, 14), sigmas)
    assert ruled(mechanism, counts, plan) <= 1.25 * best


def test_the_rules_objective_is_what_a_release_publishes():
    """Given λ, no β and σ on a grid beats the rule's on its own reference ensemble by much."""
    counts, _ = SyntheticEnsemble(60, 4, 300, agreement=0.75, spread=0.4).draw(20180224)
    plan = choose(UPPER, queries=300, order=6.0)
    grid = np.geomspace(0.02, 0.48, 60), np.geomspace(0.5, 200.0, 120)
    best, _, _ = published(MECHANISM, counts, [6.0], *grid)
    assert ruled(MECHANISM, counts, plan) == pytest.approx(best, rel=0.01)


def test_the_mnist_row_of_the_paper_soundly(mnist_histograms):
    best, mean, sd = published(
        PAPER,
        mnist_histograms,
        some([8.0, 9.0, 10.0, 11.0, 12.0], 2),
        some(np.geomspace(0.12, 0.4, 24), 2),
        some(np.geomspace(4.0, 16.0, 40), 2),
    )
    assert mean <= 2.06  # found: 2.041 ± 0.080 at λ = 10
    assert sd <= 0.085
    assert ruled(PAPER, mnist_histograms, choose(UPPER, PAPER, 640)) <= 1.10 * best
    assert Cost.of_rows(PAPER, 640, 283, 1e-5).of_curves.epsilon <= 2.15
