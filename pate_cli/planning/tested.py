"""Tested targets on votes that are there: coarse on the way, and at the costs of a run at the end.

The most answers under a target are found by a `TestedTarget`. For the least target that gives so
many answers on average it looks at a target that is nearly the least: settings that give the most
answers there need about the least target, too. That is then found for the best of them, and the
next round looks there. Whatever exact costs show to be wrong with quick ones corrects the next
looks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.core.arrays import Floats, Ints
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.forecast import forecast, rows_within, worst_case_epsilon
from pate_cli.planning.goal import Found, Goal, Pricing
from pate_cli.planning.query_costs import QueryCosts, exact_costs, measured_above
from pate_cli.planning.rule import TestedTarget
from pate_cli.planning.search import Candidate, least
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel

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
        shape = self.few, self._target, self.available, self.goal.min_agreement
        return TestedTarget(*shape, above=self._above)

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
        chance, right = votes.chances(votes.mechanism(settings))
        answered, agreeing = np.cumsum(chance), np.cumsum(chance * right)
        enough = agreeing >= self.goal.min_agreement * answered
        good = np.where(enough, answered, 1e-3 * answered)
        return answered if good.max() < (self.goal.answers or 0.0) else good

    def learn(self, best: Found) -> None:
        """Look at the rows that are asked, and at the target of the best settings."""
        self._look_at(max(2 * self._asked, _ROWS))
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
