"""Random games against budgets: none is won, and rules with a mistake lose some."""

from __future__ import annotations

from dataclasses import replace

import pytest

from audit.budget_games import broken, by
from pate_cli.disclosure.runs import Budget, Outcome


def test_no_play_gets_more_than_its_budget():
    assert broken(range(60)) == []


def forgets_what_is_open(budget: Budget):
    """A run costs nothing until it has ended."""
    return lambda entered, run: by(budget)(
        tuple(each for each in entered if each.outcome is not Outcome.PENDING), run
    )


def gives_failed_tests_back(budget: Budget):
    """A failed test costs nothing."""
    return lambda entered, run: by(budget)(
        tuple(each for each in entered if each.outcome is not Outcome.REFUSED), run
    )


def takes_ensembles_for_disjoint(budget: Budget):
    """Ensembles do not add up, whether they were declared disjoint or not."""

    def apart(run, others):
        names = {each.ensemble for each in others} - {None, run.ensemble}
        return replace(run, disjoint_from=tuple(sorted(names))) if run.ensemble else run

    return lambda entered, run: by(budget)(
        tuple(apart(each, entered[:at]) for at, each in enumerate(entered)), apart(run, entered)
    )


def forgets_delta(budget: Budget):
    """Only ε's are added up."""
    return by(replace(budget, delta=0.999))


@pytest.mark.parametrize(
    ("rule", "games"),
    [
        (forgets_what_is_open, range(20)),
        (gives_failed_tests_back, range(20)),
        (takes_ensembles_for_disjoint, range(85, 115)),
        (forgets_delta, range(30)),
    ],
)
def test_games_notice_a_rule_that_is_wrong(rule, games):
    assert broken(games, rule)
