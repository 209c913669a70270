"""A goal of a search, the settings that are found for it, and how a kind of release serves it."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from scipy.special import log_ndtr, ndtr

from pate_cli.accounting.conversion import conversion_cost, round_up
from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.checks import check_delta, check_positive, check_scale
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.words import CEILING, DELTA, MIN_AGREEMENT, Bound, ReleaseKind
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.forecast import (
    Forecast,
    capped_mean,
    expected_by_rows,
    forecast,
    rows_within,
    worst_case_epsilon,
)
from pate_cli.planning.query_costs import QueryCosts, exact_costs, measured_above
from pate_cli.planning.rule import TestedTarget, served_by
from pate_cli.planning.search import Candidate, Tuning, least
from pate_cli.planning.vote_model import VoteModel

# While a search is coarse: how many rows of a file are looked at, evenly spaced.
_COARSE = 10_000


@dataclass(frozen=True)
class Goal:
    """The most expected answers under an ε, or the least ε for so many expected answers.

    Attributes:
        release: how the ε of the labels comes to be publishable.
        epsilon: what the ε may be at most, > 0, nats; None where the least one is sought.
        answers: how many expected answers are wanted, > 0; None where the most are sought.
        min_agreement: least expected share of answers that equal the plurality of the teachers,
            in [0, 1].
        delta: δ in (0, 1).
        bound: how a tested run bounds what its votes cost.
    """

    release: ReleaseKind
    epsilon: float | None = None
    answers: float | None = None
    min_agreement: float = MIN_AGREEMENT
    delta: float = DELTA
    bound: Bound = Bound.AUTO

    def __post_init__(self) -> None:
        if (self.epsilon is None) is (self.answers is None):
            raise UsageError("give one of `target_epsilon` and `answers`")
        if self.epsilon is not None:
            check_scale("`target_epsilon`", self.epsilon)
        if self.answers is not None:
            check_positive("`answers`", self.answers)
        if not 0.0 <= self.min_agreement <= 1.0:
            raise ParameterError(
                f"`min_agreement` must be between 0 and 1, got {self.min_agreement}"
            )
        check_delta(self.delta)
        if self.bound is not Bound.AUTO and self.release is not ReleaseKind.TARGET:
            raise UsageError("`bound` goes with `release` target")

    def merit(self, epsilon: Floats, answers: Floats, agreement: Floats) -> Floats:
        """Return how well settings serve, [...]: larger is better, in logarithms.

        Args:
            epsilon: what the labels cost, nats.
            answers: how many are expected.
            agreement: which share of them equals the plurality.
        """
        served = np.log(answers + 1e-3) if self.answers is None else -np.log(epsilon)
        return served + served_by(agreement, self.min_agreement)

    def met_by(self, found: Found) -> bool:
        """Return whether settings keep within ε, give the answers, and agree as often as asked."""
        forecast, wanted = found.forecast, 0.0 if self.answers is None else self.answers
        return (
            float(forecast.expected_answers[0]) >= max(wanted * (1.0 - 1e-9), 1e-3)
            and float(forecast.agreement[0]) >= self.min_agreement
            and (self.epsilon is None or forecast.epsilon <= self.epsilon)
        )


@dataclass(frozen=True, eq=False)
class Found:
    """Settings at the costs that a run of them is charged. SECRET if the votes are.

    Attributes:
        goal: what they are for.
        forecast: what the run may be expected to give.
        stated: keywords of `aggregate` beside mechanism, rows and δ: how the ε becomes publishable.
    """

    goal: Goal
    forecast: Forecast
    stated: Mapping[str, Any]

    @property
    def settings(self) -> Tuning:
        """Return threshold, noise and weight of the prior."""
        return self.forecast.settings

    @property
    def merit(self) -> float:
        """Return how well the settings serve the goal."""
        told = self.forecast
        epsilon = np.array([told.epsilon])
        return float(self.goal.merit(epsilon, told.expected_answers, told.agreement)[0])

    @property
    def rank(self) -> tuple[bool, float]:
        """Return what is larger for better settings; those that meet the goal come first."""
        return self.goal.met_by(self), self.merit

    def to_dict(self) -> dict[str, Any]:
        """Return settings and what they are expected to give, in plain numbers."""
        told, stated = self.forecast, self.stated
        return {
            "mechanism": self.settings.mechanism_name.value,
            **asdict(self.settings),
            "queries": told.rows,
            "release": self.goal.release.value,
            "epsilon": stated.get("target_epsilon", told.epsilon),
            "expected_answers": float(told.expected_answers[0]),
            "agreement": float(told.agreement[0]),
            "pass_probability": float(told.pass_probability[0]),
            "data_independent_epsilon": told.worst_case,
            **{name: stated.get(name) for name in _STATED},
        }


_STATED: Final = ("max_answers", "refusal_epsilon", "order", "beta", "sigma_release")
"""Keywords of one release kind or another, which `Found.to_dict` names for all."""


def if_dear(epsilon: float) -> dict[str, float]:
    """Return the keyword without which a run refuses an ε so large; none for others."""
    return {"max_epsilon": epsilon} if epsilon > CEILING else {}


class Pricing(ABC):
    """How settings serve one goal on a file: quickly for many, and as a run has it for a few.

    SECRET if the votes are.

    Attributes:
        votes: all rows of the file, without a prior's votes.
        few: rows that are looked at while a search is coarse.
        goal: what is sought.
        careful: whether looks keep clear of the floor on agreement; where that makes no difference
            they do.
    """

    careful = True

    def __init__(self, votes: VoteModel, goal: Goal) -> None:
        """Take the votes and the goal; nothing is looked at yet."""
        self.votes, self.few, self.goal = votes, votes.thinned(_COARSE), goal

    @abstractmethod
    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return candidates for settings, at quick costs.

        Args:
            settings: to look at.
            near: about the best number of rows, if it is known.
        """

    @abstractmethod
    def price(self, candidate: Candidate) -> Found | None:
        """Return a candidate at the costs of a run; None where no rows serve the goal."""

    @abstractmethod
    def learn(self, best: Found) -> None:
        """Look closer from now on at what matters for the best settings so far."""


# Exact costs are found for so many times the rows of a candidate, and its rows sought among these.
_MORE_ROWS = 1.4
_EXACT_ROWS = np.array([0.75, 0.85, 0.92, 0.96, 1.0, 1.04, 1.1, 1.2, 1.35])
_NEIGHBOURS = np.arange(-8, 9)
# So many rows of a file, evenly spaced, are looked at while a search is coarse.
_ROWS = 4000
# With care so much more agreement is asked for: rows are settled after settings, and agreement
# hangs on the rows.
_MORE_AGREEMENT = 1e-4
# Rows for a number of answers, in units of those that give it if they are always released.
_FOR_ANSWERS = np.linspace(1.0, 1.12, 25)
# Targets among which the first is sought, and those among which the least may be.
_FIRST, _RANGE, _PRECISION = np.geomspace(0.05, 13.0, 25).tolist(), (1e-3, 1e3), 1e-4
# What a merit is to be where the best of the starts give, in units of what is wanted.
_OF_STARTS = 2.0 / 1.6


class TestedVotes(Pricing):
    """Tested targets on a file of votes; SECRET if the votes are.

    The most answers under a target are found by a `TestedTarget`. For the least target that gives
    so many answers on average it looks at a target that is nearly the least: settings that give the
    most answers there need about the least target, too. That is then found for the best of them,
    and the next round looks there. Whatever exact costs show to be wrong with quick ones corrects
    the next looks.
    """

    careful = False

    def __init__(self, votes: VoteModel, goal: Goal) -> None:
        """Nothing is looked at yet."""
        super().__init__(votes, goal)
        self._above: dict[bool, Floats] = {}
        self._epsilon, self._available, self._asked = goal.epsilon, votes.rows, 0
        self._look_at(votes.rows if goal.answers is None else int(8 * goal.answers) + 50)

    def _look_at(self, rows: int) -> None:
        """Look at so many of the first rows from now on."""
        self._available = min(rows, self._available)
        self.few = self.votes.some(slice(self._available)).thinned(_ROWS)
        self._looks = self._looked()

    @property
    def _target(self) -> TargetPlan:
        epsilon, goal = self._epsilon or _FIRST[-1], self.goal
        return TargetPlan.of(epsilon, delta=goal.delta, bound=goal.bound)

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return candidates at quick costs, which earlier exact ones have corrected."""
        if self._epsilon is None:
            wanted = np.log(_OF_STARTS * (self.goal.answers or 0.0))
            for self._epsilon in _FIRST:
                self._looks = self._looked()
                if max(each.merit for each in self._looks.look(settings[::2], near)) >= wanted:
                    break
        return self._looks.look(settings, near)

    def _looked(self) -> TestedTarget:
        floor = self.goal.min_agreement + (_MORE_AGREEMENT if self.careful else 0.0)
        return TestedTarget(self.few, self._target, self._available, floor, above=self._above)

    def price(self, candidate: Candidate) -> Found | None:
        """Return a candidate at the costs of a run, with the rows that are best for it."""
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
        # Without a test fewer rows than give as many answers with one cannot be better.
        expected = answers[rows - 1] * chance if rows else 0.0
        least = int(np.argmax(answers >= expected)) + 1
        if worst_case_epsilon(mechanism, rows=least, delta=goal.delta) <= target.epsilon:
            always = rows_within(mechanism, target, most=votes.rows)
            if always and answers[always - 1] >= expected:
                rows, chance = always, 1.0
        if rows == 0:
            return None
        self._asked = max(self._asked, rows)
        told = forecast(votes, mechanism, target, rows=rows, chance=chance)
        stated = {"target_epsilon": target.epsilon, "refusal_epsilon": target.refusal_epsilon}
        return Found(goal, told, {**stated, "bound": goal.bound.value, **if_dear(target.epsilon)})

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
        if self.goal.answers is not None:
            self._epsilon = best.forecast.epsilon
        self._look_at(max(2 * self._asked, _ROWS))
        self._asked = 0


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


_ORDERS = 1.0 + np.geomspace(0.1, 512.0, 80)
# Orders either side of the best at quick costs that are priced exactly.
_AROUND = 3
# Numbers of rows that are tried, pluralities among which a row costs most, and caps by how many
# standard deviations they are above the mean.
_TRIED_ROWS, _PLURALITIES, _CAP_STEPS = 60, 41, np.linspace(-4.0, 6.0, 201)
_SHRINK, _OUT_OF_REACH = 0.999, -9.0


@dataclass(frozen=True, eq=False)
class _Costs:
    """Costs of rows and answers whatever the votes, at some orders, [orders] each, nats."""

    conversion: Floats
    test: Floats
    answer: Floats
    whole: Floats

    def epsilons(self, rows: Ints, caps: Floats) -> Floats:
        """ε of so many rows with so many answers at each order, [rows, orders]."""
        rdp = np.multiply.outer(rows, self.test) + np.multiply.outer(caps, self.answer)
        return np.minimum(rdp, np.multiply.outer(rows, self.whole)) + self.conversion

    def caps(self, rows: Ints, epsilon: float) -> Floats:
        """The most answers under ε, below 1 where even one is too many, [rows]."""
        room = epsilon - self.conversion - np.multiply.outer(rows, self.test)
        caps = np.floor((room / self.answer).max(axis=-1) + 1e-9)
        whole = (np.multiply.outer(rows, self.whole) + self.conversion).min(axis=-1)
        return np.asarray(np.where(whole <= epsilon, rows, np.minimum(caps, rows)))


class CappedVotes(Pricing):
    """Settings for a worst case, on a file of votes; SECRET if the votes are.

    k1 rows of which k2 may be answered cost k1·w1(λ) + k2·w2(λ) at order λ, or k1·w12(λ), where w1
    is the cost of a test, w2 of an answer and w12 of a whole row, each for the worst votes. How
    many rows get an answer depends on the votes. So for given votes numbers of rows are tried, each
    with the largest cap that ε allows, or with the least that gives so many answers on average over
    the noise.
    """

    _above = 1.0
    """How far the cost of a whole row is above the quick one, where there is a test."""

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return candidates at quick costs, whose rows and caps need no start."""
        del near
        return [self._best(self.few, each, self._quick(each))[0] for each in settings]

    def price(self, candidate: Candidate) -> Found | None:
        """Return a candidate with the rows and the cap that are best at exact costs."""
        settings, goal = candidate.settings, self.goal
        best, cap = self._best(self.votes, settings, self._exact(settings))
        mechanism, rows, whole = self.votes.mechanism(settings), best.rows, cap >= best.rows
        while cap >= 1:
            epsilon = worst_case_epsilon(mechanism, rows=rows, max_answers=cap, delta=goal.delta)
            if goal.epsilon is None or epsilon <= goal.epsilon:
                target = TargetPlan.of(epsilon, delta=goal.delta)
                told = forecast(self.votes, mechanism, target, rows=rows, max_answers=cap)
                capped = {"max_answers": cap} if cap < rows else {}
                stated = {"release": goal.release.value, **capped, **if_dear(told.worst_case)}
                return Found(goal, told, stated)
            cap = min(cap - 1, int(cap * _SHRINK))
            rows = cap if whole else rows
        return None

    def learn(self, best: Found) -> None:
        """Learn nothing more: `price` has seen how far costs are above the quick ones."""

    def _best(self, votes: VoteModel, settings: Tuning, costs: _Costs) -> tuple[Candidate, int]:
        """The settings with their best number of rows, and the best cap on answers.

        Args:
            votes: those that are looked at, which stand for all.
            settings: threshold, noise and weight of the prior.
            costs: of the settings.
        """
        goal, votes = self.goal, votes.with_prior_weight(settings.prior_weight)
        mechanism = votes.mechanism(settings)
        rows = np.geomspace(1, self.votes.rows, _TRIED_ROWS).round().astype(np.int64)
        for _ in range(2):
            rows = np.unique(rows)
            mean, agreeing, variance = expected_by_rows(votes, mechanism, rows, self.votes.rows)[
                :, 0
            ]
            sd, agreement = np.sqrt(variance), agreeing / np.maximum(mean, 1e-300)
            if goal.answers is None:
                caps = costs.caps(rows, goal.epsilon or 0.0)
            else:
                caps = _least_caps(mean, sd, rows, goal.answers)
            used = np.maximum(caps, 1.0)
            answers = np.where(used >= rows, mean, capped_mean(mean, sd, used))
            epsilon = np.maximum(costs.epsilons(rows, used).min(axis=-1), 1e-9)
            merit = goal.merit(epsilon, answers, agreement)
            merit = np.where(caps >= 1.0, merit, _OUT_OF_REACH - used / used[-1])
            holds = (caps >= 1.0) & (agreement >= goal.min_agreement)
            best = int(np.argmax(np.where(holds, merit, _OUT_OF_REACH + merit)))
            found = Candidate(mechanism, float(merit[best]), int(rows[best]), bool(holds[best]))
            cap, low, high = used[best], rows[max(best - 1, 0)], rows[min(best + 1, rows.size - 1)]
            rows = np.append(np.linspace(low, high, _TRIED_ROWS).astype(np.int64), rows[best])
        return found, int(cap)

    def _quick(self, settings: Tuning) -> _Costs:
        """The costs where a vote moves every coin by little: by its Fisher information.

        A fair coin costs λ/(πσ1²) for a test and 2λ/(πσ2²) for an answer, others less.
        """
        most, answer = float(self.votes.teachers + settings.prior_weight), 2.0 / settings.sigma2**2
        largest = np.linspace(most / 2.0, most, _PLURALITIES)
        whole = _fairness((2.0 * largest - most) / (settings.sigma2 * np.sqrt(2.0))) * answer
        test, above = 0.0, 1.0
        if settings.threshold is not None and settings.sigma1 is not None:
            z, test = (largest - settings.threshold) / settings.sigma1, settings.sigma1**-2.0
            whole, above = _fairness(z) * test + ndtr(z) * whole, self._above
        slope = self.votes.teachers_per_record**2 * _ORDERS / np.pi
        conversion = conversion_cost(_ORDERS, delta=self.goal.delta)
        return _Costs(conversion, slope * test, slope * answer, slope * above * float(whole.max()))

    def _exact(self, settings: Tuning) -> _Costs:
        """The costs that a run is charged, at the orders around the best one by quick costs."""
        quick = self._quick(settings)
        best, cap = self._best(self.few, settings, quick)
        centre = int(np.argmin(quick.epsilons(np.array([best.rows]), np.array([float(cap)]))))
        near = slice(max(centre - _AROUND, 0), centre + _AROUND + 1)
        mechanism, orders = self.votes.mechanism(settings), _ORDERS[near]
        argmax = self.votes.mechanism(replace(settings, threshold=None, sigma1=None))
        answer = argmax.worst_rdp(queries=1, answers=1, orders=orders)
        whole, test = answer, np.zeros(orders.size)
        if settings.threshold is not None:
            whole = mechanism.worst_rdp(queries=1, answers=1, orders=orders)
            test = mechanism.worst_rdp(queries=1, answers=0, orders=orders)
            self._above *= float(whole[0] / quick.whole[near][0])
        return _Costs(quick.conversion[near], test, answer, whole)


def _fairness(z: Floats) -> Floats:
    """The Fisher information of a coin Φ(z) in z, as a share of a fair one's."""
    log_density = -0.5 * z * z - 0.5 * math.log(2.0 * math.pi)
    return np.exp(2.0 * log_density - log_ndtr(z) - log_ndtr(-z)) * math.pi / 2.0


def _least_caps(mean: Floats, sd: Floats, rows: Ints, answers: float) -> Floats:
    """The fewest answers under which so many are expected, 0 where rows have fewer, [rows]."""
    near = np.ceil(answers) + np.arange(3.0) + np.zeros((rows.size, 1))
    caps = np.ceil(mean[:, None] + np.outer(sd, _CAP_STEPS))
    caps = np.clip(np.hstack([caps, near, rows[:, None]]), 1.0, rows[:, None])
    enough = capped_mean(mean[:, None], sd[:, None], caps) >= answers
    return np.where(enough.any(axis=1), np.where(enough, caps, np.inf).min(axis=1), 0.0)
