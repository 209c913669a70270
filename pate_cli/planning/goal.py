"""The goal of a search, the settings that it finds, and how each kind of release is evaluated."""

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
from pate_cli.core.checks import check_positive, check_scale
from pate_cli.core.errors import UsageError
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

# A coarse search uses at most 10,000 rows of a file, evenly spaced. An ε below 1e-4 counts as 1e-4.
_COARSE, _LEAST = 10_000, 1e-4


@dataclass(frozen=True)
class Goal:
    """A goal of a search: the largest number of expected answers, or the smallest ε.

    The caller gives the largest allowed ε, or the wanted number of expected answers.

    Attributes:
        release: how the ε of the labels is published.
        epsilon: the largest allowed ε, > 0, nats; None to find the smallest ε.
        answers: the wanted number of expected answers, > 0; None to find the largest number.
        min_agreement: the smallest allowed share of expected answers that equal the plurality of
            the teachers, in [0, 1].
        delta: δ in (0, 1).
        bound: how a run with a release test bounds the cost of its votes.
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
        if self.bound is not Bound.AUTO and self.release is not ReleaseKind.TARGET:
            raise UsageError("`bound` can be used only if `release` is target; leave out `bound`")

    def target(self, epsilon: float) -> TargetPlan:
        """Return the target of a run with a release test, for some ε.

        If the goal is the smallest ε, a failed release test costs all of ε. In `aggregate`, a
        failed release test costs only ε/2 by default. If a failed release test cost only ε/2, the
        smallest ε for the same number of answers would be about 2% larger.
        """
        refusal = None if self.answers is None else epsilon
        return TargetPlan.of(epsilon, delta=self.delta, refusal_epsilon=refusal, bound=self.bound)

    def merit(self, epsilon: Floats, answers: Floats, agreement: Floats) -> Floats:
        """Return how good settings are for the goal, [...]; larger is better.

        The merit is the logarithm of expected answers, or minus the logarithm of ε. The merit has a
        penalty if the agreement is below `min_agreement`.

        Args:
            epsilon: ε of the labels, nats, [...].
            answers: the expected number of answers, [...].
            agreement: the share of answers that equal the plurality, [...].
        """
        least = np.maximum(epsilon, _LEAST)
        served = np.log(answers + 1e-3) if self.answers is None else -np.log(least)
        return served + served_by(agreement, self.min_agreement)

    def met_by(self, found: Found) -> bool:
        """Return whether settings meet the goal: ε, expected answers and agreement."""
        forecast, wanted = found.forecast, 0.0 if self.answers is None else self.answers
        return (
            float(forecast.expected_answers[0]) >= max(wanted * (1.0 - 1e-9), 1e-3)
            and float(forecast.agreement[0]) >= self.min_agreement
            and (self.epsilon is None or forecast.epsilon <= self.epsilon)
        )


@dataclass(frozen=True, eq=False)
class Found:
    """Settings that a search found, with the cost that a run with these settings has.

    Settings that were found on private votes are SECRET.

    Attributes:
        goal: the goal of the search.
        forecast: the forecast of a run with these settings.
        stated: further keywords of `aggregate`, which say how ε is published.
    """

    goal: Goal
    forecast: Forecast
    stated: Mapping[str, Any]

    @property
    def settings(self) -> Tuning:
        """Return threshold, noise and prior weight."""
        return self.forecast.settings

    @property
    def merit(self) -> float:
        """Return how good the settings are for the goal; larger is better."""
        told = self.forecast
        epsilon = np.array([told.epsilon])
        return float(self.goal.merit(epsilon, told.expected_answers, told.agreement)[0])

    @property
    def rank(self) -> tuple[bool, float]:
        """Return a sort key: first whether the settings meet the goal, then their merit."""
        return self.goal.met_by(self), self.merit

    def to_dict(self) -> dict[str, Any]:
        """Return the settings and their forecast, ready for JSON."""
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
"""Keywords of some kinds of release, all of which `Found.to_dict` has; None if not used."""


def if_dear(epsilon: float) -> dict[str, float]:
    """Return the keyword `max_epsilon` if ε is above the limit of `aggregate`; otherwise {}."""
    return {"max_epsilon": epsilon} if epsilon > CEILING else {}


class Pricing(ABC):
    """Evaluates settings for one goal on a file: many settings quickly, a few exactly.

    If the votes are private, all results are SECRET.

    Attributes:
        votes: all rows of the file, without the votes of a prior.
        few: the rows that a coarse search uses.
        goal: the goal of the search.
        careful: whether quick evaluations require slightly more agreement than the goal.
    """

    careful = True

    def __init__(self, votes: VoteModel, goal: Goal) -> None:
        """Store the votes and the goal, without evaluating any settings."""
        self.votes, self.few, self.goal = votes, votes.thinned(_COARSE), goal

    @abstractmethod
    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Evaluate settings by approximate costs, and return a candidate for each of them.

        Args:
            settings: the settings to evaluate.
            near: about the best number of rows, if the caller knows it.
        """

    @abstractmethod
    def price(self, candidate: Candidate) -> Found | None:
        """Return a candidate with its exact costs; None if no number of rows suits the goal."""

    @abstractmethod
    def learn(self, best: Found) -> None:
        """Correct later approximate costs, by the exact costs of the best settings so far."""


# Exact costs are computed for 1.4 times the rows of a candidate. The numbers of rows that are tried
# are multiples of the rows of the candidate, and numbers next to the best of these.
_MORE_ROWS = 1.4
_EXACT_ROWS = np.array([0.75, 0.85, 0.92, 0.96, 1.0, 1.04, 1.1, 1.2, 1.35])
_NEIGHBOURS = np.arange(-8, 9)
# A coarse search for a target uses at most 4,000 rows of a file, evenly spaced.
_ROWS = 4000
# A careful search requires more agreement by this number. Rows are chosen after settings, and the
# number of rows changes the agreement slightly.
_MORE_AGREEMENT = 1e-4
# Which numbers of rows are tried for a wanted number of answers, as multiples of the number of rows
# that would give these answers without a release test.
_FOR_ANSWERS = np.linspace(1.0, 1.12, 25)
# The targets that are tried first, and the range and the precision of the smallest target.
_FIRST, _RANGE, _PRECISION = np.geomspace(0.05, 13.0, 25).tolist(), (1e-3, 1e3), 1e-4
# The first target is large enough if the best first settings give this multiple of the wanted
# answers, by their merit.
_OF_STARTS = 2.0 / 1.6


class TestedVotes(Pricing):
    """Evaluates settings for a target with a release test, on a file of votes.

    `TestedTarget` finds the settings with the most answers for a given target. If the goal is the
    smallest ε for a number of answers, the first round of the search uses a target ε that is near
    the smallest ε. Settings that give the most answers for a target near the smallest ε also give
    the wanted number of answers at almost the smallest ε. After each round, the search computes the
    smallest ε with which the best settings so far give the wanted answers. The target of each later
    round is the ε that was computed after the previous round. The exact costs that are computed in
    a round are used to correct the approximate costs in later rounds.
    """

    careful = False

    def __init__(self, votes: VoteModel, goal: Goal) -> None:
        """Store the votes and the goal, without evaluating any settings."""
        super().__init__(votes, goal)
        self._above: dict[bool, Floats] = {}
        self._epsilon, self._available, self._asked = goal.epsilon, votes.rows, 0
        self._look_at(votes.rows if goal.answers is None else int(8 * goal.answers) + 50)

    def _look_at(self, rows: int) -> None:
        """From now on, compute approximate costs from the first `rows` rows of the file only."""
        self._available = min(rows, self._available)
        self.few = self.votes.some(slice(self._available)).thinned(_ROWS)
        self._looks = self._looked()

    @property
    def _target(self) -> TargetPlan:
        return self.goal.target(self._epsilon or _FIRST[-1])

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return candidates by approximate costs, which are corrected by earlier exact costs."""
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
        """Return a candidate with its best number of rows, by the exact costs of a run."""
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
        # A run without a release test is better if it gives at least as many expected answers.
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
        """Return the expected answers of the first rows, for each number of rows, [rows].

        For a number of rows at which too few answers equal the plurality, the expected answers are
        multiplied by .001. If no number of rows gives the wanted answers with enough agreement, no
        expected answers are multiplied by .001, so that the message to the user can name the
        agreement that is possible.
        """
        chance, right = votes.chances(votes.mechanism(settings))
        answered, agreeing = np.cumsum(chance), np.cumsum(chance * right)
        enough = agreeing >= self.goal.min_agreement * answered
        good = np.where(enough, answered, 1e-3 * answered)
        return answered if good.max() < (self.goal.answers or 0.0) else good

    def learn(self, best: Found) -> None:
        """Evaluate later settings with the target of `best`, on the first rows of the file only.

        Later evaluations use only the first rows of the file: at most twice as many rows as the
        largest run that `price` found since the last call, or `_ROWS` rows if that is more. If the
        goal is a given ε, the target does not change.
        """
        if self.goal.answers is not None:
            self._epsilon = best.forecast.epsilon
        self._look_at(max(2 * self._asked, _ROWS))
        self._asked = 0


def _best_rows(
    costs: QueryCosts, target: TargetPlan, answers: Floats, near: int
) -> tuple[int, float]:
    """Return the number of rows with the most expected answers, and its pass probability."""
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
    """Return the smallest target that gives the wanted expected answers, and its number of rows."""
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
# Exact costs are computed for this many orders on each side of the best order by approximate costs.
_AROUND = 3
# How many numbers of rows are tried, and for how many largest counts the cost of a row is computed.
# The caps that are tried, in standard deviations above the mean number of answers.
_TRIED_ROWS, _PLURALITIES, _CAP_STEPS = 60, 41, np.linspace(-4.0, 6.0, 201)
_SHRINK, _OUT_OF_REACH = 0.999, -9.0
# The factor of a step of noise. Rounding to three digits could undo a smaller step.
_NOISIER = 1.01


@dataclass(frozen=True, eq=False)
class _Costs:
    """Worst-case RDP costs of comparing a row with the threshold, and of answers, [orders], nats.

    Attributes:
        conversion: the cost of the conversion from RDP to ε.
        test: the cost of comparing a row with the threshold.
        answer: the cost of an answer.
        whole: the cost of comparing one row and answering it, together.
        most: if each teacher votes on few queries, only this number of rows, and this number of
            answers, have a cost; further rows and answers cost nothing. Otherwise infinite.
    """

    conversion: Floats
    test: Floats
    answer: Floats
    whole: Floats
    most: float = math.inf

    def epsilons(self, rows: Ints, caps: Floats) -> Floats:
        """Return ε for numbers of rows and caps on answers, at each order, [rows, orders]."""
        rows, caps = np.minimum(rows, self.most), np.minimum(caps, self.most)
        rdp = np.multiply.outer(rows, self.test) + np.multiply.outer(caps, self.answer)
        return np.minimum(rdp, np.multiply.outer(rows, self.whole)) + self.conversion

    def caps(self, rows: Ints, epsilon: float) -> Floats:
        """Return the largest cap on answers that ε allows, for each number of rows.

        A cap is below 1 if ε does not allow even one answer.
        """
        paid = np.minimum(rows, self.most)
        room = epsilon - self.conversion - np.multiply.outer(paid, self.test)
        caps = np.floor((room / self.answer).max(axis=-1) + 1e-9)
        whole = (np.multiply.outer(paid, self.whole) + self.conversion).min(axis=-1)
        every = (whole <= epsilon) | (caps >= self.most)
        return np.asarray(np.where(every, rows, np.minimum(caps, rows)))


class CappedVotes(Pricing):
    """Evaluates settings by their worst-case ε, on a file of votes.

    A run that asks k1 rows and stops after k2 answers has at order λ the RDP cost k1·w1(λ) +
    k2·w2(λ), or k1·w12(λ) if that is smaller. Here w1 is the worst-case cost of comparing a row
    with the threshold, w2 the worst-case cost of an answer, and w12 the worst-case cost of the
    comparison and the answer of a row together. How many rows get an answer depends on the votes,
    so the search tries several numbers of rows. If the goal gives ε, each number of rows gets the
    largest cap k2 on answers that ε allows. If the goal gives the wanted number of expected
    answers, each number of rows gets the smallest cap k2 that gives these answers.
    """

    _above = 1.0
    """The ratio of exact and approximate cost of a whole row of Confident-GNMax."""

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return candidates, each with its best number of rows according to approximate costs."""
        del near
        return [self._best(self.few, each, self._quick(each))[0] for each in settings]

    def price(self, candidate: Candidate) -> Found | None:
        """Return a candidate with its best rows and its best cap on answers, by exact costs."""
        settings, goal = candidate.settings, self.goal
        best, cap = self._best(self.votes, settings, self._exact(settings))
        mechanism, rows, whole = self.votes.mechanism(settings), best.rows, cap >= best.rows
        while cap >= 1:
            epsilon = worst_case_epsilon(
                mechanism, rows=rows, max_answers=cap, delta=goal.delta, few=self.votes.few
            )
            if goal.epsilon is None or epsilon <= goal.epsilon:
                # With very much noise ε is 0, because δ covers the whole cost.
                target = TargetPlan.of(max(epsilon, _LEAST), delta=goal.delta)
                told = forecast(self.votes, mechanism, target, rows=rows, max_answers=cap)
                capped = {"max_answers": cap} if cap < rows else {}
                stated = {"release": goal.release.value, **capped, **if_dear(told.worst_case)}
                return Found(goal, told, stated)
            if self.votes.few is not None:  # then fewer rows may cost as much as all rows
                settings = settings.times(sigma1=_NOISIER, sigma2=_NOISIER)
                mechanism = self.votes.mechanism(settings)
                continue
            cap = min(cap - 1, int(cap * _SHRINK))
            rows = cap if whole else rows
        return None

    def learn(self, best: Found) -> None:
        """Do nothing, because `price` has already compared exact and approximate costs."""

    def _best(self, votes: VoteModel, settings: Tuning, costs: _Costs) -> tuple[Candidate, int]:
        """Return a candidate with the best number of rows, and the best cap on answers, k2.

        Args:
            votes: all rows of the file, or a sample of its rows.
            settings: threshold, noise and prior weight.
            costs: the worst-case costs with these settings.
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
            epsilon = costs.epsilons(rows, used).min(axis=-1)
            merit = goal.merit(epsilon, answers, agreement)
            merit = np.where(caps >= 1.0, merit, _OUT_OF_REACH - used / used[-1])
            holds = (caps >= 1.0) & (agreement >= goal.min_agreement)
            best = int(np.argmax(np.where(holds, merit, _OUT_OF_REACH + merit)))
            found = Candidate(mechanism, float(merit[best]), int(rows[best]), bool(holds[best]))
            cap, low, high = used[best], rows[max(best - 1, 0)], rows[min(best + 1, rows.size - 1)]
            rows = np.append(np.linspace(low, high, _TRIED_ROWS).astype(np.int64), rows[best])
        return found, int(cap)

    def _quick(self, settings: Tuning) -> _Costs:
        """Return approximate worst-case costs by Fisher information.

        The approximate costs are right if one vote is small compared with the noise. Comparing
        a row with the threshold costs most, λ/(πσ1²), if the row is as likely to pass as to fail.
        An answer costs most, 2λ/(πσ2²), if two classes are equally likely to win.
        """
        few, weight = self.votes.few, settings.prior_weight
        most, answer = float(self.votes.usual_votes + weight), 2.0 / settings.sigma2**2
        largest = np.linspace(most / 2.0, most, _PLURALITIES)
        whole = _fairness((2.0 * largest - most) / (settings.sigma2 * np.sqrt(2.0))) * answer
        test, above = 0.0, 1.0
        if settings.threshold is not None and settings.sigma1 is not None:
            z, test = (largest - settings.threshold) / settings.sigma1, settings.sigma1**-2.0
            whole, above = _fairness(z) * test + ndtr(z) * whole, self._above
        slope = self.votes.teachers_per_record**2 * _ORDERS / np.pi
        conversion = conversion_cost(_ORDERS, delta=self.goal.delta)
        costs = slope * test, slope * answer, slope * above * float(whole.max())
        return _Costs(conversion, *costs, math.inf if few is None else few.votes)

    def _exact(self, settings: Tuning) -> _Costs:
        """Return the exact worst-case costs, at some orders around the best order."""
        quick = self._quick(settings)
        best, cap = self._best(self.few, settings, quick)
        centre = int(np.argmin(quick.epsilons(np.array([best.rows]), np.array([float(cap)]))))
        near = slice(max(centre - _AROUND, 0), centre + _AROUND + 1)
        mechanism, orders = self.votes.mechanism(settings), _ORDERS[near]
        argmax = self.votes.mechanism(replace(settings, threshold=None, sigma1=None))
        few = self.votes.few
        rows, share = (1, 1) if few is None else (2 * few.votes, few.votes)

        def worst(mechanism: ScoredMechanism, answers: int) -> Floats:
            found = mechanism.worst_rdp(queries=rows, answers=answers, orders=orders, few=few)
            return found / share

        answer = worst(argmax, rows)
        whole, test = answer, np.zeros(orders.size)
        if settings.threshold is not None:
            whole, test = worst(mechanism, rows), worst(mechanism, 0)
            self._above *= float(whole[0] / quick.whole[near][0])
        return _Costs(quick.conversion[near], test, answer, whole, quick.most)


def _fairness(z: Floats) -> Floats:
    """Return how much Fisher information an event with probability Φ(z) gives about z, [...].

    The result is divided by the information at z = 0.
    """
    log_density = -0.5 * z * z - 0.5 * math.log(2.0 * math.pi)
    return np.exp(2.0 * log_density - log_ndtr(z) - log_ndtr(-z)) * math.pi / 2.0


def _least_caps(mean: Floats, sd: Floats, rows: Ints, answers: float) -> Floats:
    """Return the smallest caps on answers that give the wanted expected answers, [rows].

    There is one cap for each number of rows. The cap is 0 if this number of rows cannot give the
    wanted expected answers even if all its rows may be answered.
    """
    near = np.ceil(answers) + np.arange(3.0) + np.zeros((rows.size, 1))
    caps = np.ceil(mean[:, None] + np.outer(sd, _CAP_STEPS))
    caps = np.clip(np.hstack([caps, near, rows[:, None]]), 1.0, rows[:, None])
    enough = capped_mean(mean[:, None], sd[:, None], caps) >= answers
    return np.where(enough.any(axis=1), np.where(enough, caps, np.inf).min(axis=1), 0.0)
