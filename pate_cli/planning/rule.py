"""The public rule: settings and rows for a target, by public numbers alone.

Nobody may look at the votes before they choose. So the rule runs the search over made-up ensembles,
from hard to easy, at quick costs, and takes what serves them all well: the largest geometric mean
of expected answers, such that the plurality is nearly always the answer and that runs at the middle
level of agreement pass nine times in ten. Where not even one row does, it says so.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import settled_bound
from pate_cli.disclosure.target import TargetPlan, most_rows
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.forecast import expected_labels, worst_case_epsilon
from pate_cli.planning.query_costs import QueryCosts, exact_costs, measured_above, quick_costs
from pate_cli.planning.search import Candidate, Search
from pate_cli.planning.tested_target import TestedTarget
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel, made_up

MOST_ROWS: Final = 1_000_000
"""How many queries there are where nobody says."""

SEARCHED_ROWS: Final = 450
"""Rows of a made-up model, for a search."""

LEAST_CHANCE: Final = 0.9
"""Runs of the rule pass with this probability at the middle level of agreement, or more."""

# Quick costs are sought to pass with more, for they may be off. Of fewer teachers than these the
# accountant's own costs decide about the rows.
_SURE, _FEW = 0.95, 60
_MIN_AGREEMENT, _CLIMBS, _HALVINGS = 0.88, 1, 1
# Where nothing is likely to pass, starts have so many times the noise.
_NOISIER = (1.0, 1.0, 2.0, 4.0, 8.0)
_USUAL_SIGMA2, _USUAL_ROWS = 0.2, 300
# Numbers of rows that are looked at in the end: all over the range, and around the best.
_COARSE, _FINE, _AROUND = 40, 17, 1.25
# The looser bound is tried where there are so many times the rows that the sharper has time for.
_MANY_MORE = 4


@dataclass(frozen=True)
class Rule:
    """What the rule settles on. Public.

    Attributes:
        mechanism: the aggregator with its settings.
        rows: how many queries are asked; 0 where not even one is within reach.
        answers: expected answers at the middle level of agreement, about.
        chance: pass probability at the middle level of agreement, about.
    """

    mechanism: ScoredMechanism
    rows: int
    answers: float
    chance: float

    @property
    def settings(self) -> Tuning:
        """Threshold, noise and weight of the prior; TypeError for a mechanism with others."""
        return Tuning.settled(self.mechanism)

    @property
    def likely(self) -> bool:
        """Whether runs pass nine times in ten at the middle level of agreement."""
        return self.chance >= LEAST_CHANCE


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


@dataclass(eq=False)
class _PublicGoal(TestedTarget):
    """Looks at settings for the rule: of few teachers by what rows cost at most indeed.

    Attributes:
        exactly: whether only that counts, found at all orders: the search is for noise that
            needs no test.
    """

    exactly: bool = False

    def serve(
        self,
        votes: VoteModel,
        settings: Tuning,
        costs: QueryCosts,
        near: int | None,
        *,
        closer: bool = False,
    ) -> Candidate:
        """Settings at quick costs, with the best number of rows."""
        if self.exactly:
            mechanism = votes.mechanism(settings)
            worst = mechanism.worst_rdp(queries=1, answers=1, orders=costs.orders)
            dear = np.broadcast_to(worst[:, None, None], costs.costs.shape)
            costs = replace(costs, worst=worst, costs=dear)
        elif votes.most_votes < _FEW:  # where the guess of the worst case is far off
            middle = costs.orders[costs.orders.size // 2 :][:1]
            worst = votes.mechanism(settings).worst_rdp(queries=1, answers=1, orders=middle)
            # About in proportion to the order.
            costs = replace(costs, worst=worst / middle * costs.orders)
        return super().serve(votes, settings, costs, near, closer=closer)


def choose(
    votes: VoteModel,
    target: TargetPlan,
    *,
    available: int = MOST_ROWS,
    asked: int | None = None,
    given: Mapping[str, float] | None = None,
    tested: bool = True,
    untested: bool = True,
    bound: Bound = Bound.AUTO,
    starts: Sequence[Tuning] | None = None,
) -> Rule:
    """Settings and rows for a target, by public ensembles.

    Args:
        votes: public ensembles, with the prior weight of the run.
        target: ε, δ and the price of failing.
        available: how many rows there are.
        asked: how many rows are asked, where that is settled.
        given: threshold, sigma1 or sigma2 in votes, where they are settled.
        tested, untested: which mechanisms may be chosen, Confident and GNMax.
        bound: as a run is asked for.
        starts: settings near which the best are; None where nothing is known.
    """
    by = functools.partial(
        _chosen,
        votes,
        target,
        available=available,
        asked=asked,
        given=given,
        tested=tested,
        untested=untested,
        starts=starts,
    )
    found = by(bound=bound)
    sharp = _most_rows(found.mechanism, target, bound, available)
    enough = found.rows < sharp or _MANY_MORE * sharp > available
    if bound is not Bound.AUTO or asked is not None or enough:
        return found
    # The sharper bound has time for so many rows only, and the looser one may give more of more.
    more = by(bound=Bound.TWO_TAIL)
    return more if more.likely and more.answers > found.answers else found


def _chosen(
    votes: VoteModel,
    target: TargetPlan,
    *,
    available: int,
    asked: int | None,
    given: Mapping[str, float] | None,
    tested: bool,
    untested: bool,
    bound: Bound,
    starts: Sequence[Tuning] | None,
) -> Rule:
    """Settings and rows for a target under one bound, as `choose` takes them."""
    goal = _PublicGoal(
        votes,
        target,
        available,
        _MIN_AGREEMENT,
        usual_bound(votes, target, bound, rows=1),
        stays_auto=bound is Bound.AUTO,
        asked=asked,
        least_chance=_SURE,
    )
    if starts is None:
        fresh = Search(goal.look, votes=votes.teachers, given=given)
        starts = fresh.starts(tested=tested, untested=untested)
    starts = [replace(each, prior_weight=votes.prior_weight) for each in starts]
    for more in _NOISIER:
        noisier = dict.fromkeys({"sigma1", "sigma2"} - set(given or {}), more)
        search = Search(goal.look, votes=votes.teachers, given=given, pairs=False)
        around = [each.times(**noisier) for each in starts]
        best = search.run(around, climbs=_CLIMBS, halvings=_HALVINGS)
        found = rows_for(
            votes,
            votes.mechanism(best.settings),
            target,
            available=available,
            asked=asked,
            bound=bound,
        )
        if found.likely:
            break
        goal.exactly = True
    return found


def rows_for(
    votes: VoteModel,
    mechanism: ScoredMechanism,
    target: TargetPlan,
    *,
    available: int = MOST_ROWS,
    asked: int | None = None,
    bound: Bound = Bound.AUTO,
) -> Rule:
    """How many rows to ask with a mechanism whose settings are settled.

    Args:
        votes: public ensembles of its shape.
        mechanism: the aggregator.
        target: ε, δ and the price of failing.
        available: how many rows there are.
        asked: how many rows are asked, where that is settled.
        bound: as a run is asked for.
    """
    within = rows_within(mechanism, target, most=asked or available)
    if asked is not None and within >= asked:
        return _ruled(votes, mechanism, asked, 1.0)
    if not target.reachable:
        return _ruled(votes, mechanism, asked or within, float(asked is None and within > 0))
    most = asked or _most_rows(mechanism, target, bound, available)
    costs = _costs(votes, mechanism, target, bound=bound, rows=min(most, _USUAL_ROWS))
    share, _ = expected_labels(votes, mechanism, rows=1)
    least = LEAST_CHANCE if votes.most_votes < _FEW else _SURE

    def best(rows: Ints) -> tuple[int, float]:
        chances = costs.pass_probability(target, rows, quick=True)
        expected = share[:, None] * rows * chances
        merit = np.log(expected + expected.mean(axis=0) + 1e-3).mean(axis=0)
        middle = chances[votes.middle].mean(axis=0)
        place = int(np.argmax(np.where(middle >= min(least, middle.max()), merit, -np.inf)))
        return int(rows[place]), float(middle[place])

    rows, chance = best(_spread(1, most, _COARSE) if asked is None else np.array([asked]))
    if asked is None:
        low, high = max(int(rows / _AROUND), 1), min(int(rows * _AROUND) + 1, most)
        rows, chance = best(_spread(low, high, _FINE))
        if within >= rows:
            rows, chance = within, 1.0
    return _ruled(votes, mechanism, rows, chance)


def _ruled(votes: VoteModel, mechanism: ScoredMechanism, rows: int, chance: float) -> Rule:
    """The rule's answer, with what it gives at the middle level of agreement."""
    answers, _ = expected_labels(votes, mechanism, rows=rows)
    return Rule(mechanism, rows, float(answers[votes.middle].mean()) * chance, chance)


def quick_answers(
    votes: VoteModel, rule: Rule, target: TargetPlan, *, bound: Bound = Bound.AUTO
) -> Floats:
    """Expected answers of what the rule settles on, counted by pass probability, [ensembles].

    They are those of quick costs, which are about the accountant's; `forecast` has these.
    """
    if not rule.rows:
        return np.zeros(votes.ensembles)
    answers, _ = expected_labels(votes, rule.mechanism, rows=rule.rows)
    if rows_within(rule.mechanism, target, most=rule.rows) >= rule.rows:
        return answers
    costs = _costs(votes, rule.mechanism, target, bound=bound, rows=rule.rows)
    return answers * costs.pass_probability(target, np.array([rule.rows]), quick=True)[:, 0]


def _costs(
    votes: VoteModel, mechanism: ScoredMechanism, target: TargetPlan, *, bound: Bound, rows: int
) -> QueryCosts:
    """Costs of rows: quick ones where the accountant's own would take long."""
    settings = Tuning.of(mechanism)
    settled = settled_bound(bound, mechanism, rows=rows, orders=target.orders)
    if settings is None or votes.most_votes < _FEW:
        return exact_costs(votes, mechanism, target, bound=settled, rows=rows, rough=True)
    above: dict[bool, Floats] = {}
    if settled is Bound.TWO_TAIL:  # one look at the accountant's costs takes little here
        costs = exact_costs(votes, mechanism, target, bound=settled, rows=rows)
        above[settings.threshold is not None] = measured_above(votes, settings, costs)
    (quick,) = quick_costs(votes, [settings], target, bound=settled, above=above)
    worst = mechanism.worst_rdp(queries=1, answers=1, orders=quick.orders)
    return replace(quick, worst=worst)


def _most_rows(mechanism: ScoredMechanism, target: TargetPlan, bound: Bound, available: int) -> int:
    """As many rows as there are; of more than these `auto` takes the looser bound."""

    def sharp(rows: int) -> bool:
        found = settled_bound(bound, mechanism, rows=rows, orders=target.orders)
        return found is Bound.CONDITIONAL

    if sharp(available) or not sharp(1):
        return available
    return most_rows(sharp, available=available)


def _spread(low: int, high: int, number: int) -> Ints:
    """So many whole numbers at most from one to another, on a geometric scale."""
    return np.unique(np.geomspace(low, high, number).round().astype(np.int64))


def rows_within(mechanism: ScoredMechanism, target: TargetPlan, *, most: int) -> int:
    """The most rows that cannot cost more than the target whatever the votes; 0 if none."""

    def within(rows: int) -> bool:
        spent = worst_case_epsilon(mechanism, rows=rows, delta=target.delta)
        return spent <= target.epsilon

    return most_rows(within, available=most)


def usual_bound(votes: VoteModel, target: TargetPlan, bound: Bound, *, rows: int) -> Bound:
    """The bound that `auto` comes to for usual settings of such votes."""
    most = float(votes.most_votes)
    usual = Tuning(0.6 * most, 0.4 * most, _USUAL_SIGMA2 * most, votes.prior_weight)
    rows = min(rows, _USUAL_ROWS)
    return settled_bound(bound, votes.mechanism(usual), rows=rows, orders=target.orders)
