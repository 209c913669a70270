"""The public rule: settings and rows for a target, by public numbers alone.

Nobody may look at the votes before they choose. So the rule runs the search over made-up ensembles,
from hard to easy, at quick costs, and takes what serves them all well: the largest geometric mean
of expected answers, such that the plurality is nearly always the answer and that runs at the middle
level of agreement pass nine times in ten. Where not even one row does, it says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pate_cli.core.arrays import Ints
from pate_cli.core.words import Bound, MechanismName
from pate_cli.disclosure.target import TargetPlan, settled_bound
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.forecast import expected_labels, rows_within, worst_case_epsilon
from pate_cli.planning.query_costs import FEW_VOTES, QueryCosts, exact_costs, quick_costs
from pate_cli.planning.search import Search
from pate_cli.planning.tested import TestedTarget, served, sharp_rows
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel

MOST_ROWS: Final = 1_000_000
"""How many queries there are where nobody says."""

SEARCHED_ROWS: Final = 450
"""Rows of a made-up model, for a search."""

LEAST_CHANCE: Final = 0.9
"""Runs of the rule pass with this probability at the middle level of agreement, or more."""

# Settings and rows are sought to pass with more, for costs on the way may be off.
_SURE, _MIN_AGREEMENT, _CLIMBS, _HALVINGS = 0.95, 0.88, 1, 1
# Where nothing is likely to pass, starts have so many times the noise.
_NOISIER, _USUAL_ROWS = (1.0, 2.0, 4.0, 8.0), 300
# Numbers of rows that are looked at in the end: all over the range, and around the best.
_COARSE, _FINE, _AROUND = 40, 17, 1.25
# The looser bound is tried where there are so many times the rows that the sharper has time for.
_MANY_MORE = 4


@dataclass(frozen=True)
class Rule:
    """Settings and rows on which the rule settles. Public.

    Attributes:
        mechanism: the aggregator with its settings.
        rows: how many queries are asked; 0 where not even one is within reach.
        chance: pass probability at the middle level of agreement, about.
        by_level: about the expected answers at each level of agreement.
    """

    mechanism: ScoredMechanism
    rows: int
    chance: float
    by_level: dict[float, float]

    @property
    def settings(self) -> Tuning:
        """Return threshold, noise and prior weight; TypeError for a mechanism with others."""
        return Tuning.settled(self.mechanism)

    @property
    def answers(self) -> float:
        """Return about the expected answers at the middle level of agreement."""
        return self.by_level[sorted(self.by_level)[len(self.by_level) // 2]]

    @property
    def likely(self) -> bool:
        """Return whether runs pass nine times in ten at the middle level of agreement."""
        return self.chance >= LEAST_CHANCE


def public_goal(
    votes: VoteModel, target: TargetPlan, *, available: int, asked: int | None = None
) -> TestedTarget:
    """Return what the rule seeks: many answers for every ensemble, of runs that pass.

    Args:
        votes: public ensembles, with the prior weight of the run.
        target: ε, δ, the price of failing and the bound that is asked for.
        available: how many rows there are.
        asked: how many rows are asked, where that is settled.
    """
    return TestedTarget(votes, target, available, _MIN_AGREEMENT, asked, _SURE)


def choose(
    goal: TestedTarget,
    name: MechanismName,
    *,
    given: Mapping[str, float] | None = None,
    start: Tuning | None = None,
    quick: bool = False,
) -> Rule:
    """Return settings and rows for a target, by public ensembles.

    Args:
        goal: made by `public_goal`.
        name: confident or gnmax.
        given: threshold, sigma1 or sigma2 in votes, where they are settled.
        start: settings near which the best are; None where nothing is known.
        quick: whether to take whole steps only, and to believe quick costs as in `rows_for`.
    """
    votes, known, halvings = goal.votes, dict(given or {}), 0 if quick else _HALVINGS
    for without_test in (False, True):
        looks = replace(goal, without_test=without_test)
        search = Search(looks.look, votes=votes.teachers, given=known, pairs=False)
        around = search.starts(name) if start is None else [start]
        around = [replace(each, prior_weight=votes.prior_weight) for each in around]
        if without_test:
            noise = {"sigma1", "sigma2"} - known.keys()
            around = [
                each.times(**dict.fromkeys(noise, more)) for more in _NOISIER for each in around
            ]
        best = search.run(around, climbs=_CLIMBS, halvings=halvings).settings
        found = rows_for(goal, votes.mechanism(best), quick=quick)
        if found.likely:
            break
    sharp = sharp_rows(found.mechanism, goal.target, goal.available)
    if goal.asked is not None or found.rows < sharp or _MANY_MORE * sharp > goal.available:
        return found
    # The sharper bound has time for so many rows only, and the looser one may give more of more.
    loose = replace(goal, target=replace(goal.target, bound=Bound.TWO_TAIL))
    more = choose(loose, name, given=given, start=start, quick=quick)
    return more if more.likely and more.answers > found.answers else found


def rows_for(goal: TestedTarget, mechanism: ScoredMechanism, *, quick: bool = False) -> Rule:
    """Return how many rows to ask with a mechanism whose settings are settled.

    Args:
        goal: made by `public_goal`, of the mechanism's shape.
        mechanism: the aggregator.
        quick: whether to believe quick costs where the accountant's own take long.
    """
    votes, target, asked = goal.votes, goal.target, goal.asked
    most = asked or sharp_rows(mechanism, target, goal.available)
    costs, each = None, expected_labels(votes, mechanism, rows=1)[0]
    if target.reachable:
        costs = _costs(goal, mechanism, min(most, _USUAL_ROWS), quick)

    def best(rows: Ints, within: int = 0) -> Rule:
        chances = np.zeros((votes.ensembles, rows.size))
        if costs is not None:
            chances = costs.pass_probability(target, rows, quick=True)
            chances = np.where(costs.surely_passes(target, rows), 1.0, chances)
        chances = np.where(rows <= within, 1.0, chances)
        expected, middle = each[:, None] * rows * chances, chances[votes.middle].mean(axis=0)
        enough = middle >= min(_SURE, middle.max())
        place = int(np.argmax(np.where(enough, served(expected), -np.inf)))
        by_level = {
            level: float(expected[np.array(votes.levels) == level, place].mean())
            for level in votes.levels
        }
        return Rule(mechanism, int(rows[place]), float(middle[place]), by_level)

    if asked is not None:
        found = best(np.array([asked]))
    else:
        rows = best(_spread(1, most, _COARSE)).rows
        low, high = max(int(rows / _AROUND), 1), min(int(rows * _AROUND) + 1, most)
        found = best(_spread(low, high, _FINE))
    always = worst_case_epsilon(mechanism, rows=found.rows, delta=target.delta)
    if target.reachable and always > target.epsilon:
        return found
    # Nobody's votes can make these rows cost more, and perhaps not even a few more of them.
    within = rows_within(mechanism, target, most=asked or goal.available)
    return best(np.array([asked or max(within, 1)]), within)


def _costs(goal: TestedTarget, mechanism: ScoredMechanism, rows: int, quick: bool) -> QueryCosts:
    """Costs of rows by the accountant, or quick ones but for the worst case."""
    votes, target, settings = goal.votes, goal.target, Tuning.of(mechanism)
    bound = settled_bound(target.bound, mechanism, rows=rows, orders=target.orders)
    if not quick or settings is None or votes.most_votes < FEW_VOTES or bound is Bound.TWO_TAIL:
        return exact_costs(votes, mechanism, target, rows=rows, searching=True)
    return quick_costs(votes, [settings], target, bound=bound)[0].with_worst_of(mechanism)


def _spread(low: int, high: int, number: int) -> Ints:
    """So many whole numbers at most from one to another, on a geometric scale."""
    return np.unique(np.geomspace(low, high, number).round().astype(np.int64))
