"""Teachers that count differently: every ballot of a few, and every neighbour in each group."""

import functools
import itertools
from dataclasses import replace

import numpy as np
import pytest

from divergences import hockey_stick, renyi
from graphs import Ballots
from mechanisms.test_contract import CASES, ORDER, STUDENTS, names, with_student, worst
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.cost import Cost, Rows
from pate_cli.disclosure.guarantee import group_guarantees
from pate_cli.mechanisms import mechanism_class, scored_from_parameters
from pate_cli.mechanisms.base import ComposedMechanism, ScoredMechanism
from pate_cli.votes.facts import TeacherGroups
from slices import some

DELTA = 0.02
# One teacher a record in all groups, so that votes move together; and not so.
ENSEMBLES = {
    "weighted": TeacherGroups(("a", "b", "b", "b", "b"), weights=(3, 1, 1, 1, 1)),
    "shared": TeacherGroups(
        ("a", "a", "a", "b", "b"), weights=(2, 1, 1, 1, 1), teachers_per_record=(2, 2, 2, 1, 1)
    ),
}
BALLOTS = {which: Ballots(all_.weights, all_.groups, 3) for which, all_ in ENSEMBLES.items()}


@functools.cache
def edges_of(which, group, teachers_per_record):
    return BALLOTS[which].edges(group, teachers_per_record)


class Ensemble:
    """A mechanism for some groups of teachers, and all ballots."""

    def __init__(self, name, which):
        self.name, self.which = name, which
        self.groups, self.histograms = ENSEMBLES[which], BALLOTS[which].histograms
        public = self.groups.public
        self.mechanism = CASES[name].build(
            teachers=self.groups.total,
            classes=3,
            teachers_per_record=max(group.votes_per_record for group in public),
            votes_together=all(group.teachers_per_record == 1 for group in public),
        )
        # The same student predicts everywhere, if the mechanism takes that.
        student = [STUDENTS[3][0]] * len(self.histograms)
        self.bound = with_student(self.mechanism, student)

    @functools.cached_property
    def law(self):
        laws = CASES[self.name].law(self.bound, self.histograms)
        np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=0.0, atol=1e-12)
        return laws

    def edges(self, group):
        return edges_of(self.which, group.group, group.teachers_per_record)

    def divergence(self, group):
        """The exact Rényi divergences over all neighbours in a group."""
        logs = np.log(self.law[:, self.law.max(axis=0) > 0.0])
        here, there = self.edges(group)
        return renyi(logs[here], logs[there], ORDER)


def each(names, ensembles=tuple(ENSEMBLES)):
    pairs = list(itertools.product(names, ensembles))
    cases = [pytest.param(Ensemble(*pair), id="-".join(pair)) for pair in pairs]
    return pytest.mark.parametrize("case", cases)


SCORED, COMPOSED = names(ScoredMechanism), names(ComposedMechanism)


@each(SCORED)
def test_no_neighbour_in_a_group_costs_more_than_its_votes_per_record(case):
    for group in case.groups.public:
        exact = case.divergence(group).max()
        moved = group.votes_per_record
        assert exact <= worst(case.mechanism.moving(moved)) * (1.0 + 1e-9)
        mu = case.mechanism.moving(moved).gaussian_mu(queries=1, answers=1)
        assert exact <= ORDER * mu**2 / 2.0
    # The group that moves most is the run's own case.
    assert case.mechanism.moving(3) == case.mechanism


@each(SCORED)
def test_what_the_votes_cost_covers_the_neighbours_in_every_group(case):
    counts, mechanism = case.histograms, case.bound
    table, score = mechanism.cost_table(ORDER), mechanism.score(counts)
    cells = mechanism.cells(score, table.grid)
    cost = table.cost(cells)
    for group in case.groups.public:
        here, there = case.edges(group)
        moved = np.abs(score[here] - score[there]).max(axis=0)
        assert np.all(moved <= np.array(mechanism.lipschitz) * (1.0 + 1e-12))
        assert np.abs(cells[here, 0] - cells[there, 0]).max() <= 1
        covered = np.minimum(cost[here], cost[there])
        np.testing.assert_array_less(case.divergence(group), covered * (1.0 + 1e-9) + 1e-11)


@each(["gnmax", "confident", "lnmax"])
def test_the_epsilon_of_a_group_holds_for_all_its_neighbours(case):
    law = case.law
    cost = Cost(DELTA, (Rows(case.mechanism, 1, 1),))
    headline = cost.own.epsilon
    found = group_guarantees(case.groups.public, cost, epsilon=headline, delta=DELTA)
    assert max(own.epsilon for own in found) == headline
    assert min(own.epsilon for own in found) < 0.7 * headline
    for own in found:
        here, there = case.edges(own)
        assert hockey_stick(law[here], law[there], own.epsilon).max() <= DELTA


@each(COMPOSED)
@pytest.mark.parametrize("delta", some([0.301, 0.6], 3))
def test_a_composition_covers_the_neighbours_in_every_group(case, delta):
    law = case.law
    delta = max(delta, 1.05 * case.mechanism.leak)
    epsilon = case.mechanism.privacy(1, delta).epsilon
    for group in case.groups.public:
        here, there = case.edges(group)
        assert hockey_stick(law[here], law[there], epsilon).max() <= delta


@pytest.mark.parametrize("name", ["gnmax", "lnmax"])
def test_equal_weights_and_as_much_more_noise_cost_what_one_vote_costs(name):
    kind = mechanism_class(MechanismName(name))
    scale = {"gnmax": "sigma2", "lnmax": "laplace_scale"}[name]
    plain = kind(50, 10, **{scale: 7.0})
    heavy = kind(150, 10, **{scale: 21.0}, teachers_per_record=3, votes_together=True)
    assert worst(heavy) == pytest.approx(worst(plain), rel=1e-12)
    apart = replace(heavy, votes_together=False)
    assert worst(apart) > 1.2 * worst(heavy)
    wanted = plain.gaussian_mu(queries=9, answers=9)
    assert heavy.gaussian_mu(queries=9, answers=9) == pytest.approx(wanted, rel=1e-12)
    again = scored_from_parameters(heavy.parameters())
    assert (again, "votes_together" in apart.parameters()) == (heavy, False)
