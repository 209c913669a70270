"""The public rule: it chooses settings and the number of rows for a target with a release test.

Settings must be chosen before anybody looks at the votes. The rule searches for settings on made-up
ensembles, from low to high agreement of the teachers, with approximate costs (`query_costs`). The
rule chooses the settings with the largest geometric mean of expected answers over the ensembles.
The rule requires that 88% of the answers equal the plurality. The rule also requires that runs at
the middle level of agreement are likely to pass the release test. If not even a run of one row is
likely to pass the release test, `likely` of the result is False.

For each choice of settings, the rule takes the number of rows with the most expected answers. The
rule computes costs for a few numbers of rows, and interpolates the pass probability between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np

from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.words import Bound, MechanismName
from pate_cli.disclosure.target import TargetPlan, settled_bound
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.forecast import expected_by_rows, rows_within
from pate_cli.planning.query_costs import (
    QueryCosts,
    exact_costs,
    pass_probabilities,
    quick_costs,
)
from pate_cli.planning.search import Candidate, Search, Tuning, most_rows
from pate_cli.planning.vote_model import VoteModel

MOST_ROWS: Final = 1_000_000
"""The largest number of queries that a run may ask if the caller gives no number."""

SEARCHED_ROWS: Final = 450
"""The number of rows of a made-up model that a search uses."""

# The search requires a pass probability of .95 instead of .9, because costs are approximate.
_SURE, _MIN_AGREEMENT, _HALVINGS = 0.95, 0.88, 1
# With fewer votes than this number, approximate costs are wrong by more than a few per cent.
_FEW_VOTES = 40
# An estimate of a worst-case cost is wrong by this factor at most.
_WORST_OFF = 1.4
# If no settings are likely to pass, a second search starts with these multiples of the noise. If
# its result is not likely to pass either, the noise of the result is multiplied by the last number.
_NOISIER, _STILL_NOISIER = (1.0, 2.0, 4.0, 8.0), 1.03
# Runs of more rows than this number are evaluated by the bound of a run of this many rows.
_USUAL_ROWS = 300
# At the end of a search, 20 numbers of rows are tried over the whole range, and twice 15 numbers
# around the best one, up to these factors.
_COARSE, _FINE, _WIDE, _NARROW = 20, 15, 1.7, 1.08
# The looser bound is tried if there are 4 times as many rows as the sharper bound allows.
_MANY_MORE = 4
# Costs are computed for numbers of rows that increase by the first factor over the whole range, or
# for these multiples of a good number of rows. Between two numbers, 24 more are interpolated.
_SPAN, _AROUND = 1.7, np.array([0.72, 0.88, 1.0, 1.15, 1.4])
_BETWEEN = 24
# If the pass probability is too small, the merit has a penalty of .1, and of 30 times the missing
# probability. Every ensemble gets the last number times the mean answers in addition, so that an
# ensemble without answers has a finite merit.
_PENALTY, _ANY_SHORTFALL, _LITTLE = 30.0, 0.1, 1.0
# How much agreement changes the merit. It adds so little that it decides only between settings with
# equally many answers. Missing agreement subtracts so much that no number of answers makes up for
# it.
_TIE, _FLOOR = 1e-3, 20.0
# The settings for which the bound `auto` is resolved, as shares of the votes: T, σ1 and σ2.
_USUAL = (0.6, 0.4, 0.2)


@dataclass(eq=False)
class TestedTarget:
    """Evaluates settings for one target with a release test, on one vote model.

    Attributes:
        votes: the vote model; for a search a few thousand rows are enough.
        target: ε, δ, the cost of a failed release test, and the caller's choice of `bound`, the
            upper bound on the RDP cost of the votes that the release test uses.
        available: how many rows a run may ask.
        min_agreement: the smallest share of answers that must equal the plurality.
        asked: how many rows a run asks, if the caller fixed this number.
        least_chance: the pass probability that a run must have on the ensembles with the middle
            level of agreement; a smaller pass probability is penalised.
        without_test: whether only runs whose worst-case ε is at most the target count as passing.
        above: known ratios of exact and approximate cost, by distance; the keys say whether the
            settings have a threshold.
    """

    votes: VoteModel
    target: TargetPlan
    available: int
    min_agreement: float
    asked: int | None = None
    least_chance: float = 0.0
    without_test: bool = False
    above: dict[bool, Floats] = field(default_factory=dict)

    def __post_init__(self) -> None:
        threshold, sigma1, sigma2 = (share * self.votes.most_votes for share in _USUAL)
        usual, target = self.votes.mechanism(Tuning(threshold, sigma1, sigma2)), self.target
        self._bound = settled_bound(target.bound, usual, rows=1, orders=target.orders)
        self._sharp: dict[tuple[str, int, float, int], int] = {}

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return candidates with their best numbers of rows, by approximate costs.

        Args:
            settings: the settings to evaluate.
            near: about the best number of rows, if the caller knows it.
        """
        found: list[Candidate] = []
        for weight in dict.fromkeys(each.prior_weight for each in settings):
            votes = self.votes.with_prior_weight(weight)
            some = [each for each in settings if each.prior_weight == weight]
            costs = quick_costs(
                votes,
                some,
                self.target,
                bound=self._bound,
                available=self.available,
                above=self.above,
            )
            mechanisms = [votes.mechanism(each) for each in some]
            rows = [self._rows_to_price(*each, near) for each in zip(some, mechanisms, strict=True)]
            found += self.best(votes, list(zip(mechanisms, costs, rows, strict=True)))
        return found

    def best(
        self,
        votes: VoteModel,
        asked: Sequence[tuple[ScoredMechanism, QueryCosts, Ints]],
        *,
        within: int | None = None,
    ) -> list[Candidate]:
        """Return a candidate for each mechanism, with its best number of rows.

        Args:
            votes: the vote model. The prior of `votes` must cast as many votes on each query as the
                prior of each mechanism; without a prior this number is 0.
            asked: for each mechanism the costs of its rows, and the numbers of rows to choose from,
                in ascending order.
            within: the largest number of rows with a worst-case ε of at most the target, so that a
                run needs no release test; None during a search. If `within` is None, the method
                estimates it, and also tries numbers of rows between those in `asked`.
        """
        target, priced = self.target, [each[1:] for each in asked]
        chances = [np.zeros((votes.ensembles, rows.size)) for _, rows in priced]
        if target.reachable and not self.without_test:
            chances = pass_probabilities(target, priced)
        return [
            self._best(votes, *each, passing, within)
            for each, passing in zip(asked, chances, strict=True)
        ]

    def _best(
        self,
        votes: VoteModel,
        mechanism: ScoredMechanism,
        costs: QueryCosts,
        rows: Ints,
        chances: Floats,
        within: int | None,
    ) -> Candidate:
        untested = max(int(costs.untested(self.target)), 0) if within is None else within
        chances = np.where(rows <= untested, 1.0, chances)
        if within is None and rows.size > 1:
            rows, chances = _between(rows, chances)
        answers, agreeing, _ = expected_by_rows(votes, mechanism, rows, self.available)
        agreement = agreeing.sum(axis=0) / np.maximum(answers.sum(axis=0), 1e-300)
        expected, middle = answers * chances, chances[votes.middle].mean(axis=0)
        merit = served(expected) + served_by(agreement, self.min_agreement)
        short = np.maximum(self.least_chance - middle, 0.0)
        merit -= np.where(short > 0.0, _ANY_SHORTFALL + _PENALTY * short, 0.0)
        # During a search, rows that hardly pass are compared, too; at the end rows must pass.
        enough = (within is None) | (middle >= min(self.least_chance, middle.max()))
        place = int(np.argmax(np.where(enough, merit, -np.inf)))
        holds = agreement[place] >= self.min_agreement
        if self.least_chance > 0.0:  # the goal requires a pass probability, and no agreement
            holds = short[place] == 0.0
        by_level = {
            level: float(expected[np.array(votes.levels) == level, place].mean())
            for level in votes.levels
            if not votes.is_file
        }
        numbers = float(merit[place]), int(rows[place]), bool(holds), float(middle[place])
        return Candidate(mechanism, *numbers, by_level)

    def _rows_to_price(
        self, settings: Tuning, mechanism: ScoredMechanism, near: int | None
    ) -> Ints:
        """Return the numbers of rows to compute costs for, in ascending order."""
        if self.asked is not None:
            return np.array([self.asked])
        most = self.available
        if near is not None:
            most = min(int(np.ceil(near * _AROUND[-1])), most)
        # Whether there is time for the sharper bound depends on these settings alone.
        key = settings.mechanism_name, settings.prior_weight, settings.sigma2, most
        if key not in self._sharp:
            start = max(self._sharp.values(), default=1)
            self._sharp[key] = sharp_rows(mechanism, self.target, most, start=start)
        most = self._sharp[key]
        rows = np.geomspace(1, most, 2 + int(np.ceil(np.log(most) / np.log(_SPAN))))
        if near is not None:
            rows = near * _AROUND
        return np.unique(np.clip(np.round(rows), 1, most).astype(np.int64))


def sharp_rows(mechanism: ScoredMechanism, target: TargetPlan, most: int, *, start: int = 1) -> int:
    """Return the largest number of rows, at most `most`, for which `auto` chooses `conditional`.

    `auto` and `conditional` are values of the option `bound`. If the caller asked for a bound other
    than `auto`, the result is `most`. If `auto` chooses `two-tail` for every number of rows, the
    result is `most`.

    Args:
        mechanism: the mechanism of the run.
        target: the target, with the caller's choice of `bound`.
        most: the largest number of rows of the run.
        start: an estimate of the result, which makes the search quicker.
    """

    def sharp(rows: int) -> bool:
        found = settled_bound(target.bound, mechanism, rows=rows, orders=target.orders)
        return found is Bound.CONDITIONAL

    if target.bound is not Bound.AUTO or sharp(most):
        return most
    return most_rows(sharp, available=most, start=start) or most


def _between(rows: Ints, chances: Floats) -> tuple[Ints, Floats]:
    """Return a fine grid of numbers of rows, and their interpolated pass probabilities.

    The grid goes from the first to the last number in `rows`. The logit of the probability is
    interpolated linearly in the logarithm of the number of rows.
    """
    number = _BETWEEN * (rows.size - 1)
    every = np.unique(np.geomspace(rows[0], rows[-1], number).round().astype(np.int64))
    clipped = np.clip(chances, 0.005, 0.995)
    logits = np.log(clipped) - np.log1p(-clipped)
    found = np.stack([np.interp(np.log(every), np.log(rows), each) for each in logits])
    return every, 1.0 / (1.0 + np.exp(-found))


def served_by(agreement: Floats, floor: float) -> Floats:
    """Return the part of the merit of settings that depends on agreement, [...].

    A search prefers settings with a larger merit. Agreement is the share of answers that equal the
    plurality; if it is below `floor`, it lowers the merit.
    """
    return _TIE * agreement - _FLOOR * np.maximum(floor - agreement, 0.0)


def served(expected: Floats) -> Floats:
    """Return the mean over all ensembles of the logarithm of their expected answers, [...].

    The argument has the shape [ensembles, ...]. Before the logarithm, the mean over the ensembles
    is added to the answers of every ensemble, so that no logarithm is infinite.
    """
    return np.log(expected + _LITTLE * expected.mean(axis=0) + 1e-3).mean(axis=0)


def public_goal(
    votes: VoteModel, target: TargetPlan, *, available: int, asked: int | None = None
) -> TestedTarget:
    """Return the goal of the public rule: many answers on every ensemble, in runs that pass.

    Args:
        votes: made-up votes. The prior of `votes` must cast as many votes on each query as the
            prior of the run; without a prior this number is 0.
        target: ε, δ, the cost of a failed release test, and the caller's choice of `bound`, the
            upper bound on the RDP cost of the votes that the release test uses.
        available: how many rows a run may ask.
        asked: how many rows a run asks, if the caller fixed this number.
    """
    return TestedTarget(votes.at_few_levels, target, available, _MIN_AGREEMENT, asked, _SURE)


def choose(
    goal: TestedTarget,
    name: MechanismName,
    *,
    given: Mapping[str, float] | None = None,
    start: Tuning | None = None,
    quick: bool = False,
) -> Candidate:
    """Return the settings and the number of rows that the public rule chooses for a target.

    Args:
        goal: the goal, made by `public_goal`.
        name: confident or gnmax.
        given: the values of threshold, sigma1 or sigma2 that the caller fixed, in votes.
        start: settings to start from; None to start from settings of the whole usual range.
        quick: True to save time: the search moves between settings by large steps only, and does
            not go on with steps of half the size.
    """
    votes, known, halvings = goal.votes, dict(given or {}), 0 if quick else _HALVINGS
    noise = {"sigma1", "sigma2"} - known.keys()
    for without_test in (False, True) if goal.target.reachable else (True,):
        looks = replace(goal, without_test=without_test)
        search = Search(looks.look, votes=votes.teachers, given=known)
        around = search.starts(name) if start is None else [start]
        around = [replace(each, prior_weight=votes.prior_weight) for each in around]
        if without_test:
            around = [
                each.times(**dict.fromkeys(noise, more)) for more in _NOISIER for each in around
            ]
        best = search.run(around, climbs=1, halvings=halvings).settings
        found = rows_for(goal, votes.mechanism(best))
        if without_test and not found.likely:  # the estimated worst case was a little too small
            best = best.times(**dict.fromkeys(noise, _STILL_NOISIER))
            found = rows_for(goal, votes.mechanism(best))
        if found.likely:
            break
    sharp = sharp_rows(found.mechanism, goal.target, goal.available)
    if goal.asked is not None or found.rows < sharp or _MANY_MORE * sharp > goal.available:
        return found
    # The sharper bound takes too long for more rows. With more rows, the looser bound may give more
    # answers.
    loose = replace(goal, target=replace(goal.target, bound=Bound.TWO_TAIL))
    more = choose(loose, name, given=given, start=found.settings, quick=True)
    return more if more.likely and more.answers > found.answers else found


def rows_for(goal: TestedTarget, mechanism: ScoredMechanism) -> Candidate:
    """Return a candidate with the best number of rows for a mechanism with fixed settings.

    Args:
        goal: the goal, made by `public_goal` for made-up votes with the numbers of teachers and
            classes of the mechanism.
        mechanism: the mechanism of the run.
    """
    votes, target, asked = goal.votes, goal.target, goal.asked
    most = asked or sharp_rows(mechanism, target, goal.available)
    costs = _costs(goal, mechanism, min(most, _USUAL_ROWS))

    def best(low: float, high: float, number: int, within: int = 0) -> Candidate:
        rows = np.geomspace(max(low, 1), max(min(high, most), 1), number).round().astype(np.int64)
        return goal.best(votes, [(mechanism, costs, np.unique(rows))], within=within)[0]

    found = best(asked or 1, asked or most, _COARSE)
    for factor in (_WIDE, _NARROW) if asked is None else ():
        found = best(found.rows / factor, found.rows * factor, _FINE)
    about = costs.untested(target)
    if target.reachable and found.rows > _WORST_OFF * about:
        return found
    # These rows need no release test. A few more rows may not need one, either.
    within = rows_within(mechanism, target, most=asked or goal.available, start=int(about))
    if target.reachable and found.rows > within:
        return found
    most = asked or max(within, 1)
    return best(most, most, 1, within)


def _costs(goal: TestedTarget, mechanism: ScoredMechanism, rows: int) -> QueryCosts:
    """Return the exact costs of rows, or approximate costs if exact costs would take long."""
    votes, target, settings = goal.votes, goal.target, Tuning.of(mechanism)
    bound = settled_bound(target.bound, mechanism, rows=rows, orders=target.orders)
    if settings is None or bound is Bound.TWO_TAIL or votes.most_votes < _FEW_VOTES:
        return exact_costs(votes, mechanism, target, rows=rows, rough=True)
    return quick_costs(votes, [settings], target, bound=bound)[0]
