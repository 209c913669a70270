"""The public rule: settings and rows for a target, by public numbers alone.

Nobody may look at the votes before they choose. So the rule runs the search over made-up ensembles,
from hard to easy, at quick costs, and takes what serves them all well: the largest geometric mean
of expected answers, such that the plurality is nearly always the answer and that runs at the middle
level of agreement pass nine times in ten. Where not even one row does, it says so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pate_cli.core.arrays import Ints
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import settled_bound
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.forecast import expected_labels, rows_within, worst_case_epsilon
from pate_cli.planning.query_costs import QueryCosts, exact_costs, quick_costs
from pate_cli.planning.search import Search
from pate_cli.planning.tested_target import TestedTarget, served, sharp_rows
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel

MOST_ROWS: Final = 1_000_000
"""How many queries there are where nobody says."""

SEARCHED_ROWS: Final = 450
"""Rows of a made-up model, for a search."""

LEAST_CHANCE: Final = 0.9
"""Runs of the rule pass with this probability at the middle level of agreement, or more."""

# Settings and rows are sought to pass with more, for costs on the way may be off. Of fewer teachers
# than these the guess of the worst case is far off.
_SURE, _FEW = 0.95, 60
_MIN_AGREEMENT, _CLIMBS, _HALVINGS = 0.88, 1, 1
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
        answers: expected answers at the middle level of agreement, about.
        by_level: about the expected answers at each level of agreement.
    """

    mechanism: ScoredMechanism
    rows: int
    chance: float
    answers: float
    by_level: dict[float, float]

    @property
    def settings(self) -> Tuning:
        """Return threshold, noise and prior weight; TypeError for a mechanism with others."""
        return Tuning.settled(self.mechanism)

    @property
    def likely(self) -> bool:
        """Return whether runs pass nine times in ten at the middle level of agreement."""
        return self.chance >= LEAST_CHANCE


@dataclass(eq=False)
class _PublicGoal(TestedTarget):
    """Looks at settings for the rule: of few teachers by what rows cost at most indeed.

    Attributes:
        without_test: whether every row counts as much as it may cost at most, found at all orders,
            because the search is for noise that needs no test.
    """

    without_test: bool = False

    def costs(self, votes: VoteModel, settings: Sequence[Tuning]) -> list[QueryCosts]:
        """Return quick costs of settings that have the prior weight of the votes."""
        found = super().costs(votes, settings)
        if not self.without_test and votes.most_votes >= _FEW:
            return found
        return [
            self._at_most(votes.mechanism(each), costs)
            for each, costs in zip(settings, found, strict=True)
        ]

    def _at_most(self, mechanism: ScoredMechanism, costs: QueryCosts) -> QueryCosts:
        orders = costs.orders
        if self.without_test:
            worst = mechanism.worst_rdp(queries=1, answers=1, orders=orders)
            dear = np.broadcast_to(worst[:, None, None], costs.costs.shape)
            return replace(costs, worst=worst, costs=dear)
        middle = orders[orders.size // 2 :][:1]
        worst = mechanism.worst_rdp(queries=1, answers=1, orders=middle)
        return replace(costs, worst=worst / middle * orders)  # about in proportion to the order


def choose(
    votes: VoteModel,
    target: TargetPlan,
    *,
    available: int = MOST_ROWS,
    asked: int | None = None,
    given: Mapping[str, float] | None = None,
    tested: bool = True,
    untested: bool = True,
    starts: Sequence[Tuning] | None = None,
    quick: bool = False,
) -> Rule:
    """Return settings and rows for a target, by public ensembles.

    Args:
        votes: public ensembles, with the prior weight of the run.
        target: ε, δ, the price of failing and the bound that is asked for.
        available: how many rows there are.
        asked: how many rows are asked, where that is settled.
        given: threshold, sigma1 or sigma2 in votes, where they are settled.
        tested, untested: which mechanisms may be chosen, Confident and GNMax.
        starts: settings near which the best are; None where nothing is known.
        quick: whether to take whole steps only, and to believe quick costs as in `rows_for`.
    """
    goal = _PublicGoal(votes, target, available, _MIN_AGREEMENT, asked, _SURE)
    around = list(starts or ())
    for goal.without_test in (False, True):
        search = Search(goal.look, votes=votes.teachers, given=given, pairs=False)
        around = around or search.starts(tested=tested, untested=untested)
        around = [replace(each, prior_weight=votes.prior_weight) for each in around]
        if goal.without_test:
            noise = {"sigma1", "sigma2"} - set(given or {})
            around = [
                each.times(**dict.fromkeys(noise, more)) for more in _NOISIER for each in around
            ]
        halvings = 0 if quick else _HALVINGS
        best = votes.mechanism(search.run(around, climbs=_CLIMBS, halvings=halvings).settings)
        found = rows_for(votes, best, target, available=available, asked=asked, quick=quick)
        if found.likely:
            break
    sharp = sharp_rows(found.mechanism, target, available)
    if asked is not None or found.rows < sharp or _MANY_MORE * sharp > available:
        return found
    # The sharper bound has time for so many rows only, and the looser one may give more of more.
    more = choose(
        votes,
        replace(target, bound=Bound.TWO_TAIL),
        available=available,
        given=given,
        tested=tested,
        untested=untested,
        starts=starts,
        quick=quick,
    )
    return more if more.likely and more.answers > found.answers else found


def rows_for(
    votes: VoteModel,
    mechanism: ScoredMechanism,
    target: TargetPlan,
    *,
    available: int = MOST_ROWS,
    asked: int | None = None,
    quick: bool = False,
) -> Rule:
    """Return how many rows to ask with a mechanism whose settings are settled.

    Args:
        votes: public ensembles of its shape.
        mechanism: the aggregator.
        target: ε, δ, the price of failing and the bound that is asked for.
        available: how many rows there are.
        asked: how many rows are asked, where that is settled.
        quick: whether to believe quick costs where the accountant's own take long.
    """
    most = asked or sharp_rows(mechanism, target, available)
    costs, each = None, expected_labels(votes, mechanism, rows=1)[0]
    if target.reachable:
        costs = _costs(votes, mechanism, target, rows=min(most, _USUAL_ROWS), quick=quick)

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
        answers = float(expected[votes.middle, place].mean())
        return Rule(mechanism, int(rows[place]), float(middle[place]), answers, by_level)

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
    within = rows_within(mechanism, target, most=asked or available)
    return best(np.array([asked or max(within, 1)]), within)


def _costs(
    votes: VoteModel,
    mechanism: ScoredMechanism,
    target: TargetPlan,
    *,
    rows: int,
    quick: bool,
) -> QueryCosts:
    """Costs of rows by the accountant, or quick ones but for the worst case."""
    settings = Tuning.of(mechanism)
    bound = settled_bound(target.bound, mechanism, rows=rows, orders=target.orders)
    if not quick or settings is None or votes.most_votes < _FEW or bound is Bound.TWO_TAIL:
        return exact_costs(votes, mechanism, target, rows=rows, rough=True)
    (costs,) = quick_costs(votes, [settings], target, bound=bound)
    return replace(costs, worst=mechanism.worst_rdp(queries=1, answers=1, orders=costs.orders))


def _spread(low: int, high: int, number: int) -> Ints:
    """So many whole numbers at most from one to another, on a geometric scale."""
    return np.unique(np.geomspace(low, high, number).round().astype(np.int64))
