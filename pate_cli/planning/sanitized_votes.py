"""Sanitized ε's for votes that are there: λ, β and σ_SS chosen with the settings and the rows.

What counts is the published ε two standard deviations above its mean, both over the noise of the
release. Of n rows it is n·(f + SS·(κ + 2σ)) + overhead, where f and SS are those of a row on
average, so for λ, β and σ_SS the rows that ε allows follow at once, and a few rounds settle all of
them. Settings are looked at on a coarse lattice, at the order that served the best so far, and
priced on the lattice of a run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.cost_table import Price, Tally
from pate_cli.accounting.score_grid import FINE, QUICK, Resolution
from pate_cli.accounting.sensitivity import distances_for, shift_quantile, sparse_distances
from pate_cli.core.arrays import Ints
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.cost import Cost, Rows
from pate_cli.disclosure.plan import ReleasePlan, failure_delta
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.forecast import expected_by_rows, forecast
from pate_cli.planning.goal import Found, Pricing
from pate_cli.planning.sanitized import SPREADS, BestRelease, best_release, candidate_betas
from pate_cli.planning.search import Candidate
from pate_cli.planning.tuning import Tuning, three_digits
from pate_cli.planning.vote_model import VoteModel

# Orders among which the first is chosen, and a step from one to the next.
_FIRST_ORDERS, _STEP = (4.0, 7.0, 12.0, 20.0, 35.0), 1.12
_LEAST_ORDER, _MOST_ORDER = 1.05, 2000.0
# How many distances are enough to choose β: while a search is coarse, and at the end.
_FEW, _MORE = 11, 24
_ROUNDS, _OUT_OF_REACH, _NEARLY = 6, -9.0, 1.05


class SanitizedVotes(Pricing):
    """Settings for a sanitized ε, on a file of votes; SECRET if the votes are."""

    _order = 0.0

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
        super().learn(best)

        def merit(steps: int) -> float:
            return self._looked(best.settings, self._order_after(steps), best.forecast.rows).merit

        for step in (1, -1):
            while merit(step) > merit(0):
                self._order = self._order_after(step)

    def _order_after(self, steps: int) -> float:
        """The order so many steps from the present one."""
        return three_digits(1.0 + (self._order - 1.0) * _STEP**steps)

    def _looked(self, settings: Tuning, order: float, near: int | None) -> Candidate:
        """Settings at one order on the coarse lattice."""
        goal, rows = self.sought, near or self.votes.rows
        out_of_reach = Candidate(settings, _OUT_OF_REACH, 1, holds=False)
        if not _LEAST_ORDER <= order <= _MOST_ORDER:
            return out_of_reach
        prices = _Prices(self.few, settings, order, QUICK, self.votes.rows)
        best, rows = self._settled(prices, rows)
        if best is None:
            return out_of_reach
        epsilon = min(best.value, rows * prices.worst + _plan(best, goal.delta).overhead)
        if goal.epsilon is not None and epsilon > _NEARLY * goal.epsilon:
            return out_of_reach
        few = self.few.with_prior_weight(settings.prior_weight)
        answers, agreeing = expected_by_rows(few, settings, np.array([rows]), self.votes.rows)
        agreement = agreeing[0] / np.maximum(answers[0], 1e-300)
        merit = goal.merit(np.array([epsilon]), answers[0], agreement)
        return Candidate(
            settings, float(merit[0]), rows, holds=bool(agreement[0] >= goal.min_agreement)
        )

    def _settled(self, prices: _Prices, rows: int) -> tuple[BestRelease | None, int]:
        """The release and the rows that suit each other; no release where none is finite.

        Args:
            prices: of the settings at one order.
            rows: where to begin. Where a number of answers is wanted, the fewest first rows that
                give it are taken instead, and no release is found where all rows give fewer.
        """
        goal, best = self.goal, None
        quantile = shift_quantile(failure_delta(goal.delta))
        if goal.answers is not None:
            total = np.cumsum(self.votes.with_prior_weight(prices.weight).answer_chance(prices.of))
            rows = int(np.searchsorted(total, goal.answers)) + 1
            return (prices.best(rows, goal.delta)[1], rows) if rows <= total.size else (None, rows)
        for _ in range(_ROUNDS):
            before, (price, best) = rows, prices.best(rows, goal.delta)
            rows = max(before // 2, 1)
            if best is not None:
                overhead = best.mean - price.rdp - quantile * best.sd
                each = min((best.value - overhead) / before, prices.worst)
                if goal.epsilon is not None and goal.epsilon > overhead:
                    rows = int(np.clip((goal.epsilon - overhead) / each, 1, self.votes.rows))
            if rows == before:
                break
        return best, rows

    def _priced(self, candidate: Candidate, order: float) -> Found | None:
        """A candidate at one order, with its rows, as a run would have it."""
        settings, goal = candidate.settings, self.goal
        if not _LEAST_ORDER <= order <= _MOST_ORDER:
            return None
        prices = _Prices(self.votes, settings, order, FINE, self.votes.rows)
        best, rows = self._settled(prices, candidate.rows)
        if goal.answers is None:
            votes = self.votes.with_prior_weight(settings.prior_weight)
            chance = votes.answer_chance(settings)[:rows]
            agreeing = np.cumsum(chance * votes.agreement_chance(settings)[:rows])
            enough = np.flatnonzero(agreeing >= goal.min_agreement * np.cumsum(chance))
            rows = int(enough[-1]) + 1 if enough.size else rows
        while best is not None and rows >= 1:
            found = self._found(prices, _plan(best, goal.delta), rows)
            if goal.epsilon is None or found.forecast.epsilon <= goal.epsilon:
                return found
            rows = min(rows - 1, int(0.999 * rows))
        return None

    def _found(self, prices: _Prices, plan: ReleasePlan, rows: int) -> Found:
        """So many rows as a run would have them, at all distances and by its own routines."""
        every = np.arange(distances_for(plan.beta, teachers=self.votes.teachers))
        price = prices.price(rows, every)
        mechanism = self.votes.mechanism(prices.of)
        worst = Cost(plan.delta, (Rows(mechanism, rows, rows),), plan.draws).of_curves.epsilon
        drawn = plan.value(price.rdp, price.smooth(plan.beta), SPREADS)
        epsilon, worst = round_up(min(drawn, worst)), round_up(worst)
        most = TargetPlan.of(worst, delta=plan.delta)  # whatever the votes, so that nothing fails
        told = forecast(self.votes, mechanism, most, rows=rows, chance=1.0)
        return Found(self.goal, replace(told, epsilon=epsilon, worst_case=worst), drawn=plan)


class _Prices:
    """Costs and sensitivities of the first rows of a file at one order.

    Attributes:
        of: the settings that are priced.
        weight: votes of their prior.
        worst: what a row costs at most whatever its votes, nats.
    """

    def __init__(
        self,
        votes: VoteModel,
        settings: Tuning,
        order: float,
        resolution: Resolution,
        available: int,
    ) -> None:
        """Find the cells of all rows, which stand for so many; no sensitivities yet."""
        self.of, self.weight, self._order = settings, settings.prior_weight, order
        votes, mechanism = votes.with_prior_weight(self.weight), votes.mechanism(settings)
        self.worst = float(mechanism.worst_rdp(queries=1, answers=1, orders=np.array([order]))[0])
        self._table = mechanism.cost_table(order, resolution)
        self._cells = mechanism.cells_of(votes.counts, self._table.grid)
        self._share = votes.rows / available
        self._distances = sparse_distances(
            float(candidate_betas(order).min()),
            teachers=votes.teachers,
            most=_FEW if resolution is QUICK else _MORE,
        )

    def price(self, rows: int, distances: Ints) -> Price:
        """The price of the first rows, with sensitivities at some distances."""
        seen = max(round(rows * self._share), 1)
        return self._table.price(Tally.of(self._cells[:seen]), distances).scaled(rows / seen)

    def best(self, rows: int, delta: float) -> tuple[Price, BestRelease | None]:
        """The price of the first rows, with the release that is best for them."""
        price = self.price(rows, self._distances)
        return price, best_release(price, order=self._order, delta=delta)


def _plan(best: BestRelease, delta: float) -> ReleasePlan:
    """The release with its parameters as a command prints them."""
    numbers = map(three_digits, (best.order, best.beta, best.sigma))
    return ReleasePlan(ReleaseKind.UPPER, delta, *numbers)
