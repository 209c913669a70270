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

from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import settled_bound
from pate_cli.disclosure.target import TargetPlan, most_rows
from pate_cli.planning.forecast import worst_case_epsilon
from pate_cli.planning.query_costs import exact_costs, measured_above
from pate_cli.planning.search import Search
from pate_cli.planning.settings import Settings
from pate_cli.planning.tested_target import TestedTarget
from pate_cli.planning.vote_model import VoteModel, made_up

MOST_ROWS: Final = 1_000_000
SEARCHED_ROWS: Final = 450
"""Rows of a made-up model, for a search."""

_MIN_AGREEMENT, _LEAST_CHANCE = 0.88, 0.92
_CLIMBS, _HALVINGS, _ROUNDS = 1, 1, 3
_USUAL_SIGMA2, _USUAL_ROWS = 0.2, 300


@dataclass(frozen=True)
class Rule:
    """What the rule settles on: settings, rows, and expected answers at middle agreement, about."""

    settings: Settings
    rows: int
    answers: float


def public_votes(
    teachers: int,
    classes: int,
    *,
    levels: Sequence[float] | None = None,
    teachers_per_record: int = 1,
    prior_accuracy: float | None = None,
    rows: int = SEARCHED_ROWS,
) -> VoteModel:
    """Made-up ensembles over a range of agreement, of every kind of queries."""
    return made_up(
        teachers=teachers,
        classes=classes,
        levels=levels,
        rows=rows,
        teachers_per_record=teachers_per_record,
        prior_accuracy=prior_accuracy,
    )


def choose(
    votes: VoteModel,
    target: TargetPlan,
    *,
    available: int = MOST_ROWS,
    asked: int | None = None,
    given: Mapping[str, float] | None = None,
    tested: bool = True,
    untested: bool = True,
    weights: bool = False,
    bound: Bound = Bound.AUTO,
    starts: Sequence[Settings] | None = None,
) -> Rule:
    """Settings and rows for a target, by public ensembles.

    Args:
        votes: public ensembles, with the prior weight of the run.
        target: ε, δ and the price of failing.
        available: how many rows there are.
        asked: how many rows are asked, where that is settled.
        given: threshold, sigma1 or sigma2 in votes, where they are settled.
        tested, untested: which mechanisms may be chosen, Confident and GNMax.
        weights: whether the weight of the prior is open.
        bound: as a run is asked for.
        starts: settings near which the best are; None where nothing is known.
    """
    goal = TestedTarget(
        votes,
        target,
        available,
        _MIN_AGREEMENT,
        usual_bound(votes, target, bound, rows=1),
        stays_auto=bound is Bound.AUTO,
        asked=asked,
        least_chance=_LEAST_CHANCE,
    )
    search = Search(goal.look, votes=votes.teachers, given=given, weights=weights, pairs=False)
    starts = starts or search.starts(tested=tested, untested=untested)
    settings = search.run(starts, climbs=_CLIMBS, halvings=_HALVINGS).settings
    if goal.bound is Bound.TWO_TAIL:  # one look at the accountant's costs takes little here
        rough, *_ = goal.look([settings], None)
        costs = exact_costs(
            votes, votes.mechanism(settings), target, bound=goal.bound, rows=rough.rows
        )
        above = measured_above(votes, settings, costs)
        goal = replace(goal, above={settings.threshold is not None: above})
    return _with_rows(goal, settings)


def _with_rows(goal: TestedTarget, settings: Settings) -> Rule:
    """Settings with their number of rows, by what the rows really cost at most."""
    votes = goal.votes.with_prior_weight(settings.prior_weight)
    mechanism, target = votes.mechanism(settings), goal.target
    goal.worst = mechanism.worst_rdp(queries=1, answers=1, orders=target.decisive_orders)
    rows = goal.asked or goal.look([settings], None)[0].rows
    rows = goal.look([settings], rows)[0].rows
    for _ in range(_ROUNDS):
        rows = goal.look([settings], rows, closer=True)[0].rows
    untested = rows_within(votes, settings, target, most=goal.available)
    if goal.asked is None and untested >= rows * (1.0 if goal.target.reachable else 0.0):
        rows = untested
        if not rows:
            return Rule(settings, 0, 0.0)
    return Rule(settings, rows, goal.middle_answers(settings, rows))


def rows_within(votes: VoteModel, settings: Settings, target: TargetPlan, *, most: int) -> int:
    """The most rows that cannot cost more than the target whatever the votes; 0 if none."""

    mechanism = votes.mechanism(settings)

    def within(rows: int) -> bool:
        spent = worst_case_epsilon(mechanism, rows=rows, delta=target.delta)
        return spent <= target.epsilon

    return most_rows(within, available=most)


def usual_bound(votes: VoteModel, target: TargetPlan, bound: Bound, *, rows: int) -> Bound:
    """The bound that `auto` comes to for usual settings of such votes."""
    most = float(votes.most_votes)
    usual = Settings(0.6 * most, 0.4 * most, _USUAL_SIGMA2 * most, votes.prior_weight)
    rows = min(rows, _USUAL_ROWS)
    return settled_bound(bound, votes.mechanism(usual), rows=rows, orders=target.orders)
