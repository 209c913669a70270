"""Sanitized ε's for votes that are there: λ, β and σ_SS chosen with the settings and the rows.

What counts is the published ε two standard deviations above its mean, both over the noise of the
release. Of n rows it is n·(f + SS·(κ + 2σ)) + overhead, where f and SS are those of a row on
average, so for λ, β and σ_SS the rows that ε allows follow at once, and a few rounds settle all of
them. Settings are looked at on a coarse lattice, at the order that served the best so far, and
priced on the lattice of a run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.cost_table import Price, Tally
from pate_cli.accounting.score_grid import FINE, QUICK, Resolution
from pate_cli.accounting.sensitivity import distances_for, sparse_distances
from pate_cli.core.arrays import Ints
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.cost import Cost, Rows
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.forecast import expected_by_rows, forecast
from pate_cli.planning.goal import Found, Goal
from pate_cli.planning.sanitized import SPREADS, BestRelease, best_release, candidate_betas
from pate_cli.planning.search import Candidate
from pate_cli.planning.tuning import Tuning, three_digits
from pate_cli.planning.vote_model import VoteModel

# Orders among which the first is chosen, and a step from one to the next.
_FIRST_ORDERS, _STEP = (4.0, 7.0, 12.0, 20.0, 35.0), 1.12
_LEAST_ORDER, _MOST_ORDER = 1.05, 2000.0
_DISTANCES, _FEW_DISTANCES = 24, 11
_ROUNDS, _MOST_ROWS = 6, 10_000
_OUT_OF_REACH, _NEARLY = -9.0, 1.05


class SanitizedVotes:
    """Settings for a sanitized ε, on a file of votes; SECRET if the votes are."""

    def __init__(self, votes: VoteModel, goal: Goal) -> None:
        """Take the votes and the goal; nothing is looked at yet."""
        self._votes, self._few, self._goal = votes, votes.thinned(_MOST_ROWS), goal
        self._sought, self._order = goal, 0.0

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return candidates on the coarse lattice, each with its rows."""
        if not self._order:
            some = settings[::3]
            self._order = max(
                _FIRST_ORDERS,
                key=lambda order: max(self._looked(each, order, near).merit for each in some),
            )
        return [self._looked(each, self._order, near) for each in settings]

    def price(self, candidate: Candidate, *, last: bool) -> Found | None:
        """Return a candidate with the rows and the release that are best on a run's lattice."""
        steps = (0, 1, -1) if last else (0,)
        found = [self._priced(candidate, self._order_after(step)) for step in steps]
        return max(filter(None, found), key=lambda each: each.merit, default=None)

    def learn(self, best: Found) -> None:
        """Look at the order that is best for the best settings, and at the rows they ask."""
        self._sought = self._goal.stricter(best, self._few, available=self._votes.rows)

        def merit(steps: int) -> float:
            settings, rows = best.forecast.settings, best.forecast.rows
            return self._looked(settings, self._order_after(steps), rows).merit

        for step in (1, -1):
            while merit(step) > merit(0):
                self._order = self._order_after(step)

    def _order_after(self, steps: int) -> float:
        """The order so many steps from the present one."""
        return three_digits(1.0 + (self._order - 1.0) * _STEP**steps)

    def _looked(self, settings: Tuning, order: float, near: int | None) -> Candidate:
        """Settings at one order on the coarse lattice."""
        votes, goal = self._few.with_prior_weight(settings.prior_weight), self._sought
        rows = self._rows_for(settings, near or self._votes.rows)
        out_of_reach = Candidate(settings, _OUT_OF_REACH, 1, holds=False)
        if not rows or not _LEAST_ORDER <= order <= _MOST_ORDER:
            return out_of_reach
        prices = _Prices(votes, settings, order, QUICK)
        each = prices.price(votes.rows, _few(order, votes.teachers, _FEW_DISTANCES))
        best, rows = self._settled(each.scaled(1.0 / votes.rows).scaled, prices.worst, order, rows)
        if best is None:
            return out_of_reach
        epsilon = min(best.value, rows * prices.worst + _plan(best, goal.delta).overhead)
        if epsilon > _NEARLY * (goal.epsilon or math.inf):
            return out_of_reach
        asked = np.array([max(int(rows), 1)])
        answers, agreeing = expected_by_rows(votes, settings, asked, self._votes.rows)
        agreement = agreeing[0] / np.maximum(answers[0], 1e-300)
        merit = goal.merit(np.array([epsilon]), answers[0], agreement)
        holds = bool(agreement[0] >= goal.min_agreement)
        return Candidate(settings, float(merit[0]), int(asked[0]), holds)

    def _rows_for(self, settings: Tuning, otherwise: float) -> float:
        """The fewest first rows with the answers that are wanted, if any are; 0 if all give fewer.

        Args:
            settings: threshold, noise and weight of the prior.
            otherwise: rows where no number of answers is wanted.
        """
        if self._goal.answers is None:
            return float(otherwise)
        votes = self._votes.with_prior_weight(settings.prior_weight)
        total = np.cumsum(votes.answer_chance(settings))
        found = int(np.searchsorted(total, self._goal.answers)) + 1
        return 0.0 if found > total.size else float(found)

    def _settled(
        self, price: Callable[[float], Price], worst: float, order: float, rows: float
    ) -> tuple[BestRelease | None, float]:
        """The release and the rows that suit each other; the rows stay where answers are wanted.

        Args:
            price: of so many rows.
            worst: what a row costs at most whatever its votes, nats.
            order: λ.
            rows: where to begin.
        """
        delta, best = self._goal.delta, None
        for _ in range(_ROUNDS):
            best, before = best_release(price(rows), order=order, delta=delta), rows
            if self._goal.answers is not None:
                break
            plan = None if best is None else _plan(best, delta)
            rows = self._filling(price(rows).scaled(1.0 / int(rows)), plan, worst, rows)
            if int(rows) == int(before):
                break
        return best, rows

    def _filling(self, price: Price, plan: ReleasePlan | None, worst: float, rows: float) -> float:
        """How many rows ε allows under a plan, by the price of one row; half where it has none."""
        room = -1.0 if plan is None else (self._goal.epsilon or 0.0) - plan.overhead
        if plan is None or room <= 0.0:
            return max(rows / 2.0, 1.0)
        smooth = float(price.discounted(plan.beta).max())
        each = min(price.rdp + smooth * (plan.shift + SPREADS * plan.sigma), worst)
        return min(max(room / each, 1.0), float(self._votes.rows))

    def _priced(self, candidate: Candidate, order: float) -> Found | None:
        """A candidate at one order, with its rows, as a run would have it."""
        settings, goal = candidate.settings, self._goal
        votes = self._votes.with_prior_weight(settings.prior_weight)
        rows = self._rows_for(settings, candidate.rows)
        if not rows or not _LEAST_ORDER <= order <= _MOST_ORDER:
            return None
        prices = _Prices(votes, settings, order, FINE)
        few = _few(order, votes.teachers, _DISTANCES)
        best, rows = self._settled(
            lambda rows: prices.price(int(rows), few), prices.worst, order, rows
        )
        if goal.answers is None:
            chance = votes.answer_chance(settings)[: int(rows)]
            agreeing = np.cumsum(chance * votes.agreement_chance(settings)[: int(rows)])
            enough = np.flatnonzero(agreeing >= goal.min_agreement * np.cumsum(chance))
            rows = float(enough[-1] + 1 if enough.size else rows)
        while best is not None and rows >= 1.0:
            found = self._found(votes, settings, prices, _plan(best, goal.delta), int(rows))
            if goal.epsilon is None or found.forecast.epsilon <= goal.epsilon:
                return found
            rows = min(rows - 1.0, 0.999 * rows)
        return None

    def _found(
        self, votes: VoteModel, settings: Tuning, prices: _Prices, plan: ReleasePlan, rows: int
    ) -> Found:
        """So many rows as a run would have them, at all distances and by its own routines."""
        price = prices.price(rows, np.arange(distances_for(plan.beta, teachers=votes.teachers)))
        mechanism = votes.mechanism(settings)
        worst = Cost(plan.delta, (Rows(mechanism, rows, rows),), plan.draws).of_curves.epsilon
        drawn = plan.value(price.rdp, price.smooth(plan.beta), SPREADS)
        epsilon, worst = round_up(min(drawn, worst)), round_up(worst)
        most = TargetPlan.of(worst, delta=plan.delta)  # whatever the votes, so that nothing fails
        expected = forecast(votes, mechanism, most, rows=rows, chance=1.0)
        expected = replace(expected, epsilon=epsilon, worst_case=worst)
        return Found.of(expected, self._goal, release=plan)


class _Prices:
    """Costs and sensitivities of the first rows of a file at one order.

    Attributes:
        worst: what a row costs at most whatever its votes, nats.
    """

    def __init__(
        self, votes: VoteModel, settings: Tuning, order: float, resolution: Resolution
    ) -> None:
        """The lattice and the cells of all rows; no sensitivities yet."""
        mechanism = votes.mechanism(settings)
        self.worst = float(mechanism.worst_rdp(queries=1, answers=1, orders=np.array([order]))[0])
        self._table = mechanism.cost_table(order, resolution)
        self._cells = mechanism.cells_of(votes.counts, self._table.grid)

    def price(self, rows: int, distances: Ints) -> Price:
        """The price of the first rows, with sensitivities at some distances."""
        return self._table.price(Tally.of(self._cells[:rows]), distances)


def _few(order: float, teachers: int, number: int) -> Ints:
    """About so many distances, which are enough to choose β at an order."""
    return sparse_distances(float(candidate_betas(order).min()), teachers=teachers, most=number)


def _plan(best: BestRelease, delta: float) -> ReleasePlan:
    """The release with its parameters as a command prints them."""
    return ReleasePlan(
        kind=ReleaseKind.UPPER,
        delta=delta,
        order=three_digits(best.order),
        beta=three_digits(best.beta),
        sigma=three_digits(best.sigma),
    )
