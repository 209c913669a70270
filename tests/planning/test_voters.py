"""Plans for voters who vote on few queries."""

import math

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.core.errors import UnreachableError, UsageError
from pate_cli.planning.plan import VoterPlan
from refusals import refusal

ASKED = {"classes": 10, "target_epsilon": 1.0, "mechanism": "gnmax"}


def planned(**asked):
    found = pate.plan(**{**ASKED, **asked})
    assert isinstance(found, VoterPlan)
    return found


def test_the_same_votes_are_of_no_use_on_many_queries_and_of_use_on_few():
    thin = planned(teachers=1000, votes_per_teacher=20, queries=4000)
    assert (thin.votes_per_query, thin.labels_right["0.8"]) == (5, pytest.approx(0.133, abs=0.01))
    thick = planned(teachers=1000, votes_per_teacher=20, queries=200)
    assert (thick.votes_per_query, thick.labels_right["0.8"]) == (
        100,
        pytest.approx(0.972, abs=0.01),
    )
    assert thin.epsilon == thick.epsilon <= 1.0
    told = dict(thin.said()[1].rows)
    assert told["enough for"].startswith(f"{thin.enough_for} queries")
    assert told["rule of thumb"].startswith(f"{thin.rule_of_thumb} votes on a query")
    alone = planned(teachers=1000, votes_per_teacher=20)
    assert alone.queries == thin.enough_for == alone.enough_for
    assert alone.labels_right["0.8"] >= 0.95


@pytest.mark.parametrize(("votes", "epsilon"), [(5, 2.0), (20, 1.0), (40, 0.5), (100, 3.0)])
def test_the_rule_of_thumb(votes, epsilon):
    found = planned(teachers=5000, votes_per_teacher=votes, target_epsilon=epsilon)
    needed = 5000 * votes / found.enough_for
    assert found.rule_of_thumb == math.ceil(22.0 * math.sqrt(votes) / found.epsilon)
    assert 0.8 <= found.rule_of_thumb / needed <= 1.25


def test_labels_are_right_as_often_as_it_says():
    found = planned(teachers=60, votes_per_teacher=30, queries=40, target_epsilon=3.0, classes=4)
    random = np.random.default_rng(5)
    right = random.random((20_000, found.votes_per_query)) < 0.8
    votes = np.where(right, 0, random.integers(1, 4, right.shape))
    counts = np.stack([(votes == label).sum(axis=1) for label in range(4)], axis=1)
    labels = np.argmax(counts + found.sigma2 * random.normal(size=counts.shape), axis=1)
    assert found.labels_right["0.8"] == pytest.approx(np.mean(labels == 0), abs=0.02)


def test_any_number_of_votes_takes_no_memory():
    """An array with an entry for every possible vote would take over a hundred GB."""
    told = refusal(UnreachableError, planned, teachers=1000, votes_per_teacher=2**31)
    assert told.startswith("1000 teachers are too few for labels that are mostly right")
    given = {"teachers": 300, "classes": 3, "mechanism": "gnmax", "sigma2": 20.0, "record": False}
    with pate.Session(**given, votes_per_teacher=2**31, target_epsilon=1.0) as session:
        assert 10 < session.remaining < 100


@pytest.mark.parametrize("target", [1e-9, 5e-324])
def test_a_target_of_almost_nothing_needs_more_teachers(target):
    asked = {"teachers": 100, "votes_per_teacher": 2, "target_epsilon": target}
    told = refusal(UnreachableError, planned, **asked)
    assert told.startswith("100 teachers are too few for labels that are mostly right")


@pytest.mark.parametrize(("target", "told"), [(1e-9, "epsilon 0 "), (0.0003, "epsilon 0.0003 ")])
def test_a_small_epsilon_is_not_rounded_to_zeros(target, told):
    """With so much noise that no event differs by more than delta, epsilon is 0 and not nearly."""
    found = planned(teachers=1000, votes_per_teacher=20, queries=50, target_epsilon=target)
    assert told in found.headline()
    assert found.epsilon <= target


def test_its_command_costs_what_it_says():
    for assigned in (False, True):
        told = {"teachers": 60, "votes_per_teacher": 3, "classes": 3, "assigned": assigned}
        found = planned(**told, queries=20)
        votes = np.full((20, 60), -1)
        asked = {**told, "teachers": 10 if assigned else 60}
        quote = pate.quote(votes, "gnmax", layout="labels", sigma2=found.sigma2, **asked)
        assert quote.epsilon == found.epsilon
        assert f"--sigma2 {found.sigma2:g}" in found.command
        assert f"--teachers {asked['teachers']} " in found.command
        assert ("--assigned" in found.command) == assigned


@pytest.mark.parametrize(("asked", "told"), [
    ({"target_epsilon": None}, "needs `classes`, `teachers` and `target_epsilon`"),
    ({"mechanism": "confident"}, "needs `mechanism` gnmax"),
    ({"answers": 5}, "give either `votes_per_teacher` or `answers`"),
    ({"teacher_epsilon": 1.0}, "contradict each other"),
])  # fmt: skip
def test_what_it_does_not_plan_is_refused(asked, told):
    given = {**ASKED, "teachers": 100, "votes_per_teacher": 5, **asked}
    assert told in refusal(UsageError, pate.plan, **given)


def test_too_few_voters_are_told_so():
    given = {**ASKED, "teachers": 20, "votes_per_teacher": 20}
    assert "20 teachers are too few" in refusal(UnreachableError, pate.plan, **given)
