"""Tested budgets as a whole: exact laws of small runs of two rows, refusal included.

Every node of a full neighbour graph is a pair of histograms; one record moves either row by at most
its votes. The outcomes are "refused" and every pair of answers. For each ordered pair of neighbours
the hockey-stick at ε, summed over all outcomes, must not exceed δ, with the profiles that a run
uses and with exact ones, the sharpest there can be, which come near it.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest

from beside import a_student
from divergences import hockey_stick, renyi
from graphs import Graph
from laws import checked_argmax_law, gaussian_argmax_law, laplace_argmax_law
from pate_cli import ConfidentGNMax, GNMax, InteractiveGNMax, LNMax
from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.tested_budget import Coin, passing_coin
from pate_cli.core.words import Bound
from pate_cli.disclosure.target import states_for
from slices import some

ORDERS = np.array([1.25, 1.5, 2.0, 3.0, 5.0, 8.0, 14.0])
STUDENT = [0.15, 0.62, 0.23]
DISTANCES = 10


def answered(log_law):
    """The law of a mechanism that always answers: no answer comes first."""
    return np.insert(np.exp(log_law), 0, 0.0, axis=1)


def law_after_a_test(mechanism, counts, scores=None):
    noise = {"sigma": mechanism.sigma2, "sigma1": mechanism.sigma1}
    noise["threshold"] = mechanism.threshold
    return np.exp(checked_argmax_law(counts, scores=scores, **noise))


MECHANISMS = {
    "confident": (
        functools.partial(ConfidentGNMax, threshold=3.2, sigma1=2.6, sigma2=2.1),
        law_after_a_test,
    ),
    "gnmax": (
        functools.partial(GNMax, sigma2=1.3),
        lambda m, n: answered(gaussian_argmax_law(n, m.sigma2)),
    ),
    "lnmax": (
        functools.partial(LNMax, laplace_scale=1.1),
        lambda m, n: answered(laplace_argmax_law(n, m.laplace_scale)),
    ),
    # With the same public predictions on every row.
    "interactive": (
        functools.partial(InteractiveGNMax, threshold=1.2, sigma1=2.6, sigma2=2.1),
        lambda m, n: law_after_a_test(m, n, (n - m.teachers * np.array(STUDENT)).max(axis=1)),
    ),
}
SHAPES = {"m2": (8, 2, 2, 1), "m3": (5, 3, 1, 1), "m4": (4, 4, 0, 1), "m3-k2": (6, 3, 0, 2)}
CASES = [
    (name, shape)
    for name in MECHANISMS
    for shape in SHAPES
    if name != "interactive" or shape.startswith("m3")
]


@dataclass(frozen=True)
class Rows:
    """One row of a run: its histograms, their laws and costs, and what is within reach."""

    name: str
    shape: str

    @cached_property
    def mechanism(self):
        teachers, classes, _, k = SHAPES[self.shape]
        return MECHANISMS[self.name][0](teachers, classes, teachers_per_record=k)

    @cached_property
    def graph(self):
        teachers, classes, missing, k = SHAPES[self.shape]
        return Graph.of(teachers, classes, missing=missing, teachers_per_record=k)

    @cached_property
    def law(self):
        return MECHANISMS[self.name][1](self.mechanism, self.graph.histograms)

    @cached_property
    def records_apart(self):
        return -(-self.graph.distances // self.mechanism.teachers_per_record)

    @cached_property
    def exact(self):
        """u_d of a single row: the largest divergence to a neighbour within d, [orders, d, row]."""
        logs = np.log(self.law[:, self.law.max(axis=0) > 0.0])
        found = np.zeros((ORDERS.size, DISTANCES, len(logs)))
        for index, order in enumerate(ORDERS):
            divergences = renyi(logs[:, None], logs[None], order)
            cost = np.where(self.records_apart <= 1, divergences, 0.0).max(axis=1)
            for d in range(DISTANCES):
                found[index, d] = np.where(self.records_apart <= d, cost, 0.0).max(axis=1)
        return np.maximum(found, 0.0)

    @cached_property
    def lattice(self):
        """The same as a run finds it."""
        counts, mechanism = self.graph.histograms, self.mechanism
        if self.name == "interactive":
            predictions = a_student(np.tile(STUDENT, (len(counts), 1)))
            mechanism = replace(mechanism, predictions=predictions)
        states = states_for(Bound.TWO_TAIL, self.mechanism, highest_order=float(ORDERS[-1]))
        cells = states.of(mechanism, counts)
        costs = np.stack([states.costs(order, cells) for order in ORDERS.tolist()])
        return costs[:, :DISTANCES]


@functools.cache
def rows_of(name, shape):
    return Rows(name, shape)


def chances(profile, *, epsilon, delta, eta, coin=passing_coin):
    """(p, 1 − p) of every pair of rows."""
    size = profile.shape[2]
    found = np.empty((2, size, size))
    for i in range(size):
        for j in range(i, size):
            both = coin(
                profile[:, :, i] + profile[:, :, j],
                orders=ORDERS,
                epsilon=epsilon,
                delta=delta,
                refusal_epsilon=eta,
            )
            found[:, i, j] = found[:, j, i] = np.exp([both.log_pass, both.log_refuse])
    return found


def largest_stick(rows, joint, *, epsilon):
    """Over neighbours in both rows, of laws [first row, second row, outcomes]."""
    near = np.argwhere(rows.records_apart <= 1)
    here, there = near.T
    return max(hockey_stick(joint[a, here], joint[b, there], epsilon).max() for a, b in near)


def largest_gap(rows, passing, refusing, *, epsilon):
    """The largest hockey-stick at ε over all ordered pairs of neighbouring runs."""
    pairs = rows.law[:, None, :, None] * rows.law[None, :, None, :]
    labels = passing[..., None] * pairs.reshape(*passing.shape, -1)
    return largest_stick(rows, np.dstack([refusing, labels]), epsilon=epsilon)


def refusals_apart(rows, refusing):
    """The largest factor between chances of refusal one record apart."""
    near = np.argwhere(rows.records_apart <= 1)
    here, there = near.T
    return max((refusing[a, here] / refusing[b, there]).max() for a, b in near)


def budgets(rows):
    """Targets below what the rows cost at worst, so that the coin has something to decide."""
    worst = float(np.min(2.0 * rows.exact[2:5, -1].max(axis=1)))
    return [(0.35 * worst + 0.3, 0.02), (0.6 * worst + 0.5, 0.002), (0.9 * worst + 1.0, 0.02)]


@pytest.mark.parametrize(("name", "shape"), some(CASES, 5))
def test_the_whole_is_private_at_the_target_for_every_pair(name, shape):
    rows = rows_of(name, shape)
    sharpest = 0.0
    for (epsilon, delta), share in zip(budgets(rows), (1.0, 0.5, 1.0), strict=True):
        eta = share * epsilon
        for profile in (rows.exact, rows.lattice):
            passing, refusing = chances(profile, epsilon=epsilon, delta=delta, eta=eta)
            gap = largest_gap(rows, passing, refusing, epsilon=epsilon)
            assert gap <= delta * (1.0 + 1e-9)
            assert refusals_apart(rows, refusing) <= np.exp(eta) * (1.0 + 1e-9)
            if profile is rows.exact:
                sharpest = max(sharpest, gap / delta)
    assert sharpest > 0.85  # the test would see a coin that passes a fifth too often


@pytest.mark.parametrize(("name", "shape"), some(CASES, 4))
def test_profiles_of_a_run_are_profiles(name, shape):
    """(P1) and (P2), and nowhere below the exact ones."""
    rows = rows_of(name, shape)
    assert np.all(rows.lattice >= rows.exact * (1.0 - 1e-9))
    here, there = np.argwhere(rows.records_apart <= 1).T
    assert np.all(rows.lattice[:, :-1, here] <= rows.lattice[:, 1:, there])


def without_refusals(profile, *, orders, epsilon, delta, refusal_epsilon):
    """The recursion without its first term."""
    del refusal_epsilon
    log_pass = np.log(delta)
    for costs in profile.T[::-1]:
        reach = (1.0 - 1.0 / orders) * (
            log_pass + epsilon - conversion_cost(orders, delta=delta) - costs
        )
        log_pass = max(np.log(delta), min(0.0, reach.max()))
    return Coin(float(log_pass), float(np.log1p(-np.exp(log_pass) * (1.0 - 1e-12))))


def not_widened(profile, **given):
    return passing_coin(np.repeat(profile[:, :1], profile.shape[1], axis=1), **given)


def too_cheap(profile, **given):
    return passing_coin(0.6 * profile, **given)


def too_often(profile, **given):
    chance = min(1.65 * np.exp(passing_coin(profile, **given).log_pass), 1.0 - 1e-9)
    return Coin(float(np.log(chance)), float(np.log1p(-chance)))


@pytest.mark.parametrize("mutant", [without_refusals, not_widened, too_cheap, too_often])
def test_a_wrong_coin_is_caught(mutant):
    def broken(rows, epsilon, delta):
        passing, refusing = chances(
            rows.exact, epsilon=epsilon, delta=delta, eta=epsilon, coin=mutant
        )
        gap = largest_gap(rows, passing, refusing, epsilon=epsilon) / delta
        return max(gap, refusals_apart(rows, refusing) / np.exp(epsilon))

    every = [rows_of(name, "m2") for name in ("gnmax", "lnmax", "confident")]
    assert any(broken(rows, *budget) > 1.1 for rows in every for budget in budgets(rows))


def law_of_a_run(rows, *, epsilon, delta, eta):
    """The law of a tested run of a single row, [histograms, 1 + outcomes], a refusal first."""
    logs = [
        passing_coin(
            rows.exact[:, :, i], orders=ORDERS, epsilon=epsilon, delta=delta, refusal_epsilon=eta
        )
        for i in range(len(rows.law))
    ]
    passing = np.exp([coin.log_pass for coin in logs])[:, None]
    refusing = np.exp([coin.log_refuse for coin in logs])[:, None]
    return np.concatenate([refusing, passing * rows.law], axis=1)


@pytest.mark.parametrize(("name", "shape"), [("gnmax", "m2"), ("lnmax", "m3"), ("confident", "m2")])
def test_attempts_add_up_even_if_each_was_chosen_on_the_last(name, shape):
    """After a pass the next target is smaller than after a refusal, by what either has cost."""
    rows = rows_of(name, shape)
    epsilon, delta = budgets(rows)[0]
    first, total = 0.6 * epsilon, 1.1 * epsilon
    eta = 0.5 * first
    here = law_of_a_run(rows, epsilon=first, delta=delta, eta=eta)
    joint = []
    for outcome in range(here.shape[1]):
        left = total - (eta if outcome == 0 else first)
        then = law_of_a_run(rows, epsilon=left, delta=delta, eta=0.5 * left)
        joint.append(here[:, None, outcome, None] * then[None])
    gap = largest_stick(rows, np.concatenate(joint, axis=2), epsilon=total)
    assert gap <= 2.0 * delta
    assert gap > 0.2 * delta
    # A refusal that were free would not add up.
    greedy = law_of_a_run(rows, epsilon=total + first, delta=delta, eta=total)
    joint = [here[:, None, :1] * greedy[None], *joint[1:]]
    assert largest_stick(rows, np.concatenate(joint, axis=2), epsilon=total) > gap
