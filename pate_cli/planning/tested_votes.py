"""Tested targets for votes that are there: quick on the way, at the costs of a run at the end.

For the most answers under a target a `TestedTarget` looks at settings. For the least target that
gives so many answers, `LeastTarget` does: to have w answers on average, released with probability
p, a run asks the first rows that give w/p, and the target is the least that releases them so often.
What exact costs show to be wrong with quick ones corrects the next looks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from pate_cli.accounting.conversion import conversion_cost, round_up
from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.words import Bound
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.bisection import least
from pate_cli.planning.forecast import agreement_error, forecast_of_costs, worst_case_epsilon
from pate_cli.planning.goal import MOST_ROWS, Found, Goal
from pate_cli.planning.query_costs import QueryCosts, exact_costs, measured_above
from pate_cli.planning.rule import rows_within, usual_bound
from pate_cli.planning.search import Candidate
from pate_cli.planning.tested_target import TestedTarget
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel

# Exact costs are found for so many times the rows of a candidate, and its rows sought among these.
_MORE_ROWS = 1.4
_EXACT_ROWS = np.array([0.75, 0.85, 0.92, 0.96, 1.0, 1.04, 1.1, 1.2, 1.35])
_NEIGHBOURS = np.arange(-8, 9)
# For a number of answers so many times as many rows are looked at first, and so many more.
_ROWS_EACH, _MORE_FIRST = 8, 50
# Probabilities with which a least target may release labels, and targets that are looked at, as
# shares of one that is nearly right.
_CHANCES = np.array([0.9, 0.93, 0.95, 0.965, 0.977, 0.99])
_TARGETS = np.geomspace(0.5, 2.0, 21)
_RANGE, _PRECISION, _BEYOND, _OUT_OF_REACH = (1e-3, 1e3), 1e-4, 2.0, -9.0
# Among these the first target is sought.
_FIRST = (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8)


@dataclass(eq=False)
class LeastTarget(TestedTarget):
    """Looks at settings for the least target that gives so many answers on average.

    Attributes:
        goal: says how many.
    """

    goal: Goal = field(kw_only=True)

    def serve(
        self,
        votes: VoteModel,
        settings: Tuning,
        costs: QueryCosts,
        near: int | None,
        *,
        closer: bool = False,
    ) -> Candidate:
        """Settings with the rows at which the target is least; `target` is about that."""
        del near, closer
        answered = votes.answer_chance(settings)
        scale = self.available / votes.rows
        total = np.cumsum(answered) * scale
        wanted = self.goal.answers or 1.0
        seen, chances = _prefixes(total, wanted)
        few = seen * scale <= self._most_rows(votes, settings, None)
        seen, chances = seen[few], chances[few]
        if not seen.size:
            merit = _OUT_OF_REACH + float(np.log(total[-1] / wanted))
            return Candidate(settings, merit, 1, holds=False)
        rows = np.maximum(np.round(seen * scale), 1).astype(np.int64)
        epsilons = self._epsilons(costs, rows, chances)
        agreeing = np.cumsum(answered * votes.agreement_chance(settings))[seen - 1] * scale
        agreement = agreeing / total[seen - 1]
        merits = self.goal.merit(epsilons, total[seen - 1], agreement)
        place = int(np.argmax(merits))
        holds = bool(agreement[place] >= self.min_agreement)
        return Candidate(settings, float(merits[place]), int(rows[place]), holds)

    def _epsilons(self, costs: QueryCosts, rows: Ints, chances: Floats) -> Floats:
        """About the least targets that release so many rows with such probabilities, [rows]."""
        target, epsilons = self.target, self.target.epsilon * _TARGETS
        found = costs.pass_probabilities(target, rows, epsilons)
        enough = np.maximum.accumulate(found, axis=0) >= chances
        place = np.where(enough.any(axis=0), enough.argmax(axis=0), -1)
        least_target = np.where(place < 0, _BEYOND * epsilons[-1], epsilons[place])
        above = np.clip(place, 1, None)
        high, low = (found[above - by, np.arange(rows.size)] for by in (0, 1))
        share = np.clip((chances - low) / np.maximum(high - low, 1e-9), 0.0, 1.0)
        between = epsilons[above - 1] + share * (epsilons[above] - epsilons[above - 1])
        least_target = np.where(place > 0, between, least_target)
        ceiling = rows[:, None] * costs.worst + conversion_cost(costs.orders, delta=target.delta)
        return np.asarray(np.minimum(least_target, ceiling.min(axis=1)))


def _prefixes(total: Floats, answers: float) -> tuple[Ints, Floats]:
    """The fewest rows with the answers over each probability of `_CHANCES`, if there are as many.

    Returns:
        The numbers of rows, and with which probability each must be released.
    """
    seen = np.unique(np.searchsorted(total, answers / _CHANCES) + 1)
    seen = seen[seen <= total.size]
    return seen, answers / total[seen - 1]


class TestedVotes:
    """Tested targets on a file of votes; SECRET if the votes are."""

    def __init__(self, votes: VoteModel, goal: Goal) -> None:
        """Nothing is looked at yet."""
        self._votes, self._goal = votes, goal
        self._above: dict[bool, Floats] = {}
        self._rows, self._sought = votes.rows, goal
        if goal.answers is not None:
            self._rows = min(votes.rows, int(_ROWS_EACH * goal.answers) + _MORE_FIRST)
        self._looks: TestedTarget | None = None
        self._target = TargetPlan.of(goal.epsilon or _FIRST[0], delta=goal.delta)

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Candidates at quick costs, which earlier exact ones have corrected."""
        if self._looks is None:
            if self._goal.answers is not None and near is None and not self._above:
                self._target = self._first_target(settings, self._goal.answers)
            self._looks = self._looks_at(self._target)
        return self._looks.look(settings, near)

    def _looks_at(self, target: TargetPlan) -> TestedTarget:
        """What looks at settings for a target, or for one that is about the least."""
        goal, votes = self._sought, self._votes
        some = votes.some(slice(self._rows)).thinned(MOST_ROWS)
        bound = usual_bound(votes, target, goal.bound, rows=1)
        auto = goal.bound is Bound.AUTO
        if goal.answers is None:
            return TestedTarget(
                some,
                target,
                self._rows,
                goal.min_agreement,
                bound,
                stays_auto=auto,
                above=self._above,
            )
        return LeastTarget(
            some,
            target,
            self._rows,
            goal.min_agreement,
            bound,
            stays_auto=auto,
            above=self._above,
            goal=goal,
        )

    def _first_target(self, settings: Sequence[Tuning], answers: float) -> TargetPlan:
        """About the least target under which one of some settings gives enough answers."""
        goal, target = replace(self._goal, answers=None, epsilon=_FIRST[0]), self._target
        for epsilon in _FIRST:
            target = TargetPlan.of(epsilon, delta=goal.delta)
            looks = TestedVotes(self._votes, replace(goal, epsilon=epsilon))
            seen = looks.look(settings[::2], None)
            if max(each.merit for each in seen) >= np.log(2.0 * answers):
                break
        return target

    def price(self, candidate: Candidate, *, last: bool) -> Found | None:
        """A candidate at the costs of a run, with the rows that are best for it."""
        settings, goal, target = candidate.settings, self._goal, self._target
        votes = self._votes.with_prior_weight(settings.prior_weight)
        near = int(min(candidate.rows * _MORE_ROWS + 20, votes.rows))
        first, costs = votes.some(slice(near)), None
        mechanism = votes.mechanism(settings)
        if target.reachable or goal.answers is not None:
            costs = exact_costs(
                first, mechanism, target, bound=goal.bound, rows=candidate.rows, rough=True
            )
            self._above[settings.threshold is not None] = measured_above(first, settings, costs)
        serve = self._most if goal.answers is None else self._least
        rows, chance, epsilon = serve(votes, settings, costs, candidate.rows)
        if rows == 0:
            return None
        plan = target if goal.answers is None else TargetPlan.of(epsilon, delta=goal.delta)
        found = forecast_of_costs(votes, mechanism, plan, None, rows=rows, chance=chance)
        return Found.of(found, goal, tested=True)

    def _most(
        self, votes: VoteModel, settings: Tuning, costs: QueryCosts | None, near: int
    ) -> tuple[int, float, float]:
        """The rows with the most expected answers, their probability, and the target."""
        target = self._target
        answers = self._good_answers(votes, settings, near)
        best, chance = 0, 0.0
        if costs is not None:
            most = int(costs.available)
            rows = np.unique(np.clip(np.ceil(near * _EXACT_ROWS), 1, most).astype(np.int64))
            for _ in range(2):
                chances = costs.pass_probability(target, rows)[0]
                place = int(np.argmax(answers[rows - 1] * chances))
                best, chance = int(rows[place]), float(chances[place])
                around = best + _NEIGHBOURS * max(best // 150, 1)
                rows = np.unique(np.clip(np.append(rows, around), 1, most))
        always = rows_within(votes.mechanism(settings), target, most=votes.rows)
        if always and (not best or answers[always - 1] >= answers[best - 1] * chance):
            best, chance = always, 1.0
        return best, chance, target.epsilon

    def _good_answers(self, votes: VoteModel, settings: Tuning, near: int) -> Floats:
        """Expected answers of the first rows, next to nothing where too few agree, [rows]."""
        chance = votes.answer_chance(settings)
        answered, agreeing = np.cumsum(chance), np.cumsum(chance * votes.agreement_chance(settings))
        floor = self._goal.min_agreement + agreement_error(votes, settings, rows=near)
        return np.where(agreeing >= floor * answered, answered, 1e-3 * answered)

    def _least(
        self, votes: VoteModel, settings: Tuning, costs: QueryCosts | None, near: int
    ) -> tuple[int, float, float]:
        """The rows with the least target for the answers, their probability, and the target."""
        answered, wanted = votes.answer_chance(settings), self._goal.answers or 0.0
        total, agreeing = np.cumsum([answered, answered * votes.agreement_chance(settings)], axis=1)
        floor = self._goal.min_agreement + agreement_error(votes, settings, rows=near)
        sure = int(np.searchsorted(total, wanted)) + 1
        if costs is None or sure > total.size:
            return 0, 0.0, 0.0
        target, (low, high) = self._target, _RANGE
        best = (
            sure,
            1.0,
            worst_case_epsilon(votes.mechanism(settings), rows=sure, delta=target.delta),
        )
        seen, chances = _prefixes(total[: costs.available], wanted)
        enough = agreeing[seen - 1] >= floor * total[seen - 1]
        if enough.any():
            seen, chances = seen[enough], chances[enough]
        for rows, needed in zip(seen.tolist(), chances.tolist(), strict=True):
            chance = partial(_chance, costs, target, rows)
            epsilon = least(
                partial(_reaches, chance, needed),
                start=target.epsilon,
                low=low,
                high=high,
                precision=_PRECISION,
            )
            epsilon = round_up(epsilon)
            if epsilon < best[2]:
                best = rows, chance(epsilon), epsilon
        return best

    def learn(self, best: Found) -> None:
        """Look at the rows that the best settings ask, with a floor on agreement that holds."""
        found, goal, self._looks = best.forecast, self._goal, None
        self._rows = int(min(max(2 * found.rows, MOST_ROWS), self._rows))
        some = self._votes.some(slice(self._rows)).thinned(MOST_ROWS)
        self._sought = goal.stricter(best, some, available=self._rows)
        if goal.answers is not None:
            self._target = TargetPlan.of(found.epsilon, delta=goal.delta)


def _chance(costs: QueryCosts, target: TargetPlan, rows: int, epsilon: float) -> float:
    """The probability that so many rows of a file pass a target of ε."""
    return float(costs.pass_probability(target.at(epsilon), np.array([rows]))[0, 0])


def _reaches(chance: Callable[[float], float], needed: float, epsilon: float) -> bool:
    return chance(epsilon) >= needed
