"""How settings serve a tested target: the most expected answers, by the chance to pass.

Rows are solved inside: of all numbers of rows the one is taken that gives the most expected
answers. Few numbers are priced, and between them the probability of passing is interpolated.

For votes that are there, costs are quick on the way and those of a run at the end. The most answers
under a target are found by a `TestedTarget`. For the least target that gives so many answers on
average it looks at a target that is nearly the least: settings that give the most answers there
need about the least target, too. That is then found for the best of them, and the next round looks
there. Whatever exact costs show to be wrong with quick ones corrects the next looks.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.words import Bound
from pate_cli.disclosure.target import TargetPlan, settled_bound
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.forecast import expected_by_rows, forecast, rows_within, worst_case_epsilon
from pate_cli.planning.goal import Found, Goal, Pricing, served_by
from pate_cli.planning.query_costs import QueryCosts, exact_costs, measured_above, quick_costs
from pate_cli.planning.search import Candidate, least, most_rows
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel

# Numbers of rows that are priced: all over the range, or around a good one; numbers between them.
_SPAN, _AROUND = 1.7, np.array([0.72, 0.85, 0.94, 1.0, 1.07, 1.2, 1.4])
_BETWEEN = 24
# How a shortfall of the chance to pass counts against answers, in logarithms, and what ensembles
# count that get none.
_PENALTY, _ANY_SHORTFALL, _LITTLE = 30.0, 0.1, 1.0
# Settings by which it is told which bound `auto` comes to, as shares of the votes.
_USUAL = (0.6, 0.4, 0.2)
# Exact costs are found for so many times the rows of a candidate, and its rows sought among these.
_MORE_ROWS = 1.4
_EXACT_ROWS = np.array([0.75, 0.85, 0.92, 0.96, 1.0, 1.04, 1.1, 1.2, 1.35])
_NEIGHBOURS = np.arange(-8, 9)
# So many rows of a file, evenly spaced, are looked at while a search is coarse.
_ROWS = 3000
# Rows for a number of answers, in units of those that give it if they are always released.
_FOR_ANSWERS = np.linspace(1.0, 1.12, 25)
# Targets among which the first is sought, and those among which the least may be.
_FIRST, _RANGE, _PRECISION = np.geomspace(0.05, 13.0, 25).tolist(), (1e-3, 1e3), 1e-4
# What a merit is to be where the best of the starts give, in units of what is wanted.
_OF_STARTS = 2.0 / 1.6


@dataclass(eq=False)
class TestedTarget:
    """Looks at settings for one target and one vote model.

    Attributes:
        votes: the votes, without a prior's; for a search a few thousand rows are enough.
        target: ε, δ, the price of failing and the bound that is asked for.
        available: how many rows a run may ask.
        min_agreement: least share of answers equal to the plurality.
        asked: how many rows are asked, where that is settled.
        least_chance: what passes with a smaller probability in the middle is worth little.
        without_test: whether only rows count that cannot cost more than the target.
        above: a known correction of quick costs, by whether there is a test: [distances].
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

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return candidates for settings at quick costs, each with its best number of rows.

        Args:
            settings: to look at.
            near: about the best number of rows, if it is known.
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
            found += [self._candidate(votes, *each, near) for each in zip(some, costs, strict=True)]
        return found

    def _candidate(
        self, votes: VoteModel, settings: Tuning, costs: QueryCosts, near: int | None
    ) -> Candidate:
        """Settings with the best number of rows."""
        if self.without_test:
            costs = costs.with_worst_of(votes.mechanism(settings))
        rows, target = self._rows_to_price(votes, settings, near), self.target
        chances = np.zeros((votes.ensembles, rows.size))
        if target.reachable and not self.without_test:
            chances = costs.pass_probability(target, rows, quick=True)
        chances = np.where(costs.surely_passes(target, rows), 1.0, chances)
        rows, chances = _between(rows, chances)
        answers, agreeing = expected_by_rows(votes, settings, rows, self.available)
        agreement = agreeing.sum(axis=0) / np.maximum(answers.sum(axis=0), 1e-300)
        middle = chances[votes.middle].mean(axis=0)
        merit = served(answers * chances) + served_by(agreement, self.min_agreement)
        short = self.least_chance - middle
        merit -= np.where(short > 0.0, _ANY_SHORTFALL + _PENALTY * short, 0.0)
        place = int(np.argmax(merit))
        holds = agreement[place] >= self.min_agreement
        if self.least_chance > 0.0:  # of what is likely to pass at all
            holds = middle[place] >= self.least_chance
        return Candidate(settings, float(merit[place]), int(rows[place]), bool(holds))

    def _rows_to_price(self, votes: VoteModel, settings: Tuning, near: int | None) -> Ints:
        """Numbers of rows to price: all over the range, or around good ones."""
        if self.asked is not None:
            return np.array([self.asked])
        most = self.available
        if near is not None:
            most = min(int(np.ceil(near * _AROUND[-1])), most)
        if votes.classes > 2 and self._bound is Bound.CONDITIONAL:
            most = sharp_rows(votes.mechanism(settings), self.target, most)
        rows = np.geomspace(1, most, 2 + int(np.ceil(np.log(most) / np.log(_SPAN))))
        if near is not None:
            rows = near * _AROUND
        return np.unique(np.clip(np.round(rows), 1, most).astype(np.int64))


def sharp_rows(mechanism: ScoredMechanism, target: TargetPlan, most: int) -> int:
    """Return so many rows, or as many as `auto` has time for under the sharper bound if any."""

    def sharp(rows: int) -> bool:
        found = settled_bound(target.bound, mechanism, rows=rows, orders=target.orders)
        return found is Bound.CONDITIONAL

    if target.bound is not Bound.AUTO or sharp(most):
        return most
    return most_rows(sharp, available=most) or most


def _between(rows: Ints, chances: Floats) -> tuple[Ints, Floats]:
    """More numbers of rows, with chances interpolated in their logits over log rows."""
    if rows.size == 1:
        return rows, chances
    number = _BETWEEN * (rows.size - 1)
    every = np.unique(np.geomspace(rows[0], rows[-1], number).round().astype(np.int64))
    clipped = np.clip(chances, 0.005, 0.995)
    logits = np.log(clipped) - np.log1p(-clipped)
    found = np.stack([np.interp(np.log(every), np.log(rows), each) for each in logits])
    return every, 1.0 / (1.0 + np.exp(-found))


def served(expected: Floats) -> Floats:
    """Return how well expected answers serve all ensembles, [ensembles, ...] to [...].

    It is the mean of their logarithms, where ensembles that get none count as if they got a little.
    """
    return np.log(expected + _LITTLE * expected.mean(axis=0) + 1e-3).mean(axis=0)


class TestedVotes(Pricing):
    """Tested targets on a file of votes; SECRET if the votes are."""

    def __init__(self, votes: VoteModel, goal: Goal) -> None:
        """Nothing is looked at yet."""
        super().__init__(votes, goal)
        self._above: dict[bool, Floats] = {}
        self._looks: TestedTarget | None = None
        self._epsilon, self._asked = goal.epsilon, 0
        self._look_at(votes.rows if goal.answers is None else int(8 * goal.answers) + 50)

    def _look_at(self, rows: int) -> None:
        """Look at so many of the first rows from now on."""
        self.available, self._looks = min(rows, self.available), None
        self.few = self.votes.some(slice(self.available)).thinned(_ROWS)

    @property
    def _target(self) -> TargetPlan:
        epsilon, goal = self._epsilon or _FIRST[-1], self.goal
        return TargetPlan.of(epsilon, delta=goal.delta, bound=goal.bound)

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return candidates at quick costs, which earlier exact ones have corrected."""
        if self._epsilon is None:
            wanted = np.log(_OF_STARTS * (self.goal.answers or 0.0))
            for self._epsilon in _FIRST:
                if max(each.merit for each in self._looked().look(settings[::2], near)) >= wanted:
                    break
        self._looks = self._looks or self._looked()
        return self._looks.look(settings, near)

    def _looked(self) -> TestedTarget:
        floor = self.sought.min_agreement
        return TestedTarget(self.few, self._target, self.available, floor, above=self._above)

    def price(self, candidate: Candidate, *, last: bool) -> Found | None:
        """Return a candidate at the costs of a run, with the rows that are best for it."""
        del last
        settings, goal, target = candidate.settings, self.goal, self._target
        votes = self.votes.with_prior_weight(settings.prior_weight)
        mechanism, near = votes.mechanism(settings), candidate.rows
        answers, rows, chance = self._good_answers(votes, settings), 0, 0.0
        if answers.max() < (goal.answers or 0.0):
            return None
        if target.reachable or goal.answers is not None:
            first = votes.some(slice(int(near * _MORE_ROWS + 20)))
            costs = exact_costs(first, mechanism, target, rows=near, rough=True)
            self._above[settings.threshold is not None] = measured_above(first, settings, costs)
            if goal.answers is not None:
                target, near = _least_target(costs, target, mechanism, answers, goal.answers)
            rows, chance = _best_rows(costs, target, answers, near)
        always = rows_within(mechanism, target, most=votes.rows)
        if always and (not rows or answers[always - 1] >= answers[rows - 1] * chance):
            rows, chance = always, 1.0
        if rows == 0:
            return None
        self._asked = max(self._asked, rows)
        told = forecast(votes, mechanism, target, rows=rows, chance=chance)
        return Found(goal, told, target=target)

    def _good_answers(self, votes: VoteModel, settings: Tuning) -> Floats:
        """Expected answers of the first rows, next to nothing where too few agree, [rows].

        If none of them are enough, those that agree too seldom tell what floor to look with.
        """
        chance = votes.answer_chance(settings)
        answered, agreeing = np.cumsum(chance), np.cumsum(chance * votes.agreement_chance(settings))
        enough = agreeing >= self.goal.min_agreement * answered
        good = np.where(enough, answered, 1e-3 * answered)
        return answered if good.max() < (self.goal.answers or 0.0) else good

    def learn(self, best: Found) -> None:
        """Look at the rows that are asked, and at the target of the best settings."""
        self._look_at(max(2 * self._asked, _ROWS))
        super().learn(best)
        self._asked = 0
        if self.goal.answers is not None:
            self._epsilon = best.forecast.epsilon


def _best_rows(
    costs: QueryCosts, target: TargetPlan, answers: Floats, near: int
) -> tuple[int, float]:
    """The rows of a file with the most expected answers, and their probability to pass."""
    rows = np.ceil(near * _EXACT_ROWS).astype(np.int64)
    for _ in range(2):
        rows = np.unique(np.clip(rows, 1, costs.available))
        chances = costs.pass_probability(target, rows)[0]
        place = int(np.argmax(answers[rows - 1] * chances))
        best, chance = int(rows[place]), float(chances[place])
        rows = np.append(rows, best + _NEIGHBOURS * max(best // 150, 1))
    return best, chance


def _least_target(
    costs: QueryCosts,
    target: TargetPlan,
    mechanism: ScoredMechanism,
    answers: Floats,
    wanted: float,
) -> tuple[TargetPlan, int]:
    """The least target at which rows of a file give the answers that are wanted, and these rows."""
    sure = int(np.argmax(answers >= wanted)) + 1
    always = worst_case_epsilon(mechanism, rows=sure, delta=target.delta)
    rows: Ints = np.unique((sure * _FOR_ANSWERS).astype(np.int64))
    rows = rows[rows <= costs.available]

    def expected(epsilon: float) -> Floats:
        return answers[rows - 1] * costs.pass_probability(target.at(epsilon), rows)[0]

    if not rows.size or expected(always).max() < wanted:
        return target.at(always), sure
    found = least(
        lambda epsilon: bool(expected(epsilon).max() >= wanted),
        start=target.epsilon,
        within=_RANGE,
        precision=_PRECISION,
    )
    found = min(round_up(found), always)
    return target.at(found), int(rows[np.argmax(expected(found))])
