"""The parameters of a sanitized ε, λ, β and σ_SS: by a public rule, and for given votes.

A private run may not choose these parameters by its votes, and no fixed numbers suit every
ensemble, number of queries and noise level. So the rule minimises the published ε for a *reference
ensemble*: histograms drawn from a fixed recipe with a fixed seed, with the file's numbers of
teachers and classes and the run's own mechanism, scaled to its number of queries. All of this is
public and fixed before the first vote is read. So the result may be printed, and anyone can
recompute it.

The rule minimises the mean of the published ε plus two standard deviations, both over the noise of
the release. On private votes the result of `best_release` is secret; on a reference ensemble it is
a plan.

The recipe (mean agreement 0.75, spread 0.4) was chosen on 48 synthetic ensembles: 50 to 3,000
teachers, 2 to 50 classes, 100 to 9,000 queries, mean agreement 0.6 to 0.97, spread 0.1 to 0.6, and
thresholds and noise levels around the defaults. The best parameters for each of them cannot be
known without looking at the votes. Compared with these, the rule's published ε (mean plus two
standard deviations, if it is below 10) was 4% larger on average, and 24% at worst.

For given votes λ, β and σ_SS are chosen with the settings and the rows. The published ε of n rows
is n·(f + SS·(κ + 2σ)) + overhead, where f and SS are the averages of a row. So λ, β and σ_SS give
the number of rows that ε allows, and a few rounds determine all of them. Settings are evaluated on
a coarse lattice, at the best order so far. Their exact cost is computed on the lattice of a run.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from pate_cli.accounting.conversion import conversion_cost, round_up
from pate_cli.accounting.cost_table import Price, Tally
from pate_cli.accounting.score_grid import FINE, QUICK, Resolution
from pate_cli.accounting.sensitivity import (
    distances_for,
    gnss_costs,
    largest_beta,
    largest_order,
    shift_quantile,
    sparse_distances,
)
from pate_cli.core.arrays import Floats, Histograms, Ints, winners
from pate_cli.core.errors import ParameterError
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.cost import Cost, Rows
from pate_cli.disclosure.settings import ReleasePlan, failure_delta
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.forecast import expected_by_rows, forecast
from pate_cli.planning.goal import Found, Pricing
from pate_cli.planning.search import Candidate, Tuning, three_digits
from pate_cli.planning.synthetic import SyntheticEnsemble
from pate_cli.planning.vote_model import VoteModel
from pate_cli.votes.checks import with_votes

REFERENCE_SEED: Final = 20180224
SPREADS: Final = 2.0
"""Standard deviations of the noise of a release that are minimised on top of the mean."""

_HISTOGRAMS, _AGREEMENT, _SPREAD, _PRIOR_AGREES = 300, 0.75, 0.4, 0.85
# λ is searched on a geometric scale of λ − 1; β and σ_SS among these values of βλ and σ_SS.
_LADDER = 1.3 ** np.array([0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5])
_LEAST_ORDER, _MOST_ORDER = 1.1, 400.0
_BETA_ORDERS = np.geomspace(0.02, 0.48, 33)
_SIGMAS = np.geomspace(0.5, 2000.0, 140)
# A choice needs no smooth curve, so a few distances on a geometric scale will do.
_DISTANCES = 48


@dataclass(frozen=True)
class BestRelease:
    """Release parameters and what they would publish.

    Attributes:
        mean: mean of the published ε over the draw, nats.
        sd: its standard deviation, nats.
        order, beta, sigma: λ, β and σ_SS.
        smooth: SS_β, nats.
    """

    mean: float
    sd: float
    order: float
    beta: float
    sigma: float
    smooth: float

    @property
    def value(self) -> float:
        """Mean plus two standard deviations of the published ε, nats."""
        return self.mean + SPREADS * self.sd


def candidate_betas(order: float, beta: float | None = None) -> Floats:
    """Return values of β worth trying at an order, or the one given, with a finite cost there."""
    betas = _BETA_ORDERS / order if beta is None else np.array([beta])
    return betas[betas < largest_beta(order)]


def best_release(
    price: Price,
    *,
    order: float,
    delta: float,
    beta: float | None = None,
    sigma: float | None = None,
    conversion: float | None = None,
) -> BestRelease | None:
    """Return the best β and σ_SS for a known cost, or None when a given β has no finite cost.

    Args:
        price: total cost at the order, and sensitivities at some distances.
        order: λ > 1.
        delta: δ of the whole guarantee.
        beta, sigma: fix one of them instead of choosing it.
        conversion: what turning RDP into ε costs, nats, where that is not the sharp conversion.
    """
    betas = candidate_betas(order, beta)
    if betas.size == 0:
        return None
    discount = np.exp(-np.outer(betas, price.distances))
    smooth = (discount * price.curve).max(axis=1)[:, None]
    sigmas = (_SIGMAS if sigma is None else np.array([sigma]))[None, :]
    failure = failure_delta(delta)
    quantile = shift_quantile(failure)
    draw = gnss_costs(betas[:, None], sigmas, order=order, quantile=quantile)
    if conversion is None:
        conversion = float(conversion_cost(np.array([order]), delta=delta - failure)[0])
    sd = smooth * sigmas
    mean = price.rdp + draw + sd * quantile + conversion
    objective = mean + SPREADS * sd
    at = np.unravel_index(int(np.argmin(objective)), objective.shape)
    if not math.isfinite(objective[at]):
        return None
    return BestRelease(
        mean=float(mean[at]),
        sd=float(sd[at]),
        order=order,
        beta=float(betas[at[0]]),
        sigma=float(sigmas[0, at[1]]),
        smooth=float(smooth[at[0], 0]),
    )


def choose_plan(
    kind: ReleaseKind,
    rounds: Sequence[tuple[ScoredMechanism, int]],
    *,
    delta: float,
    order: float | None = None,
    beta: float | None = None,
    sigma: float | None = None,
) -> ReleasePlan:
    """Return release parameters by the public rule; given parameters are kept.

    Args:
        kind: the kind of release. If nothing is published, a ledger for later still needs an order
            and distances.
        rounds: each round's aggregator with its public parameters, and its k1, the number of rows
            that was fixed in advance.
        delta: δ in (0, 1).
        order, beta, sigma: λ, β or σ_SS, if they are given.

    Raises:
        ParameterError: a given number is out of range, or λ and β are not allowed together.
    """
    check_given(delta=delta, order=order, beta=beta, sigma=sigma)
    if order is None or beta is None or sigma is None:
        best_at = _on_reference(rounds, delta=delta, beta=beta, sigma=sigma)
        if order is None:
            order = _best_order(best_at, rounds, delta=delta, beta=beta)
        best = best_at(order)
        if best is None:
            raise ParameterError(f"no release at order {order:g} has a finite cost; lower `beta`")
        beta = float(f"{best.beta:.3g}") if beta is None else beta
        sigma = float(f"{best.sigma:.3g}") if sigma is None else sigma
    return ReleasePlan(kind, delta, order, beta, sigma)


def check_given(
    *, delta: float, order: float | None, beta: float | None, sigma: float | None
) -> None:
    """Refuse parameters that are out of range before any work; parameters may be left out.

    Raises:
        ParameterError: a number is out of range, or λ and β are not allowed together.
    """
    at = 1.0001 if order is None else order
    smooth = 1e-9 / max(at, 1.0) if beta is None else beta  # no order is 0: refused below
    ReleasePlan(ReleaseKind.UPPER, delta, at, smooth, 1.0 if sigma is None else sigma)


def reference_histograms(mechanism: ScoredMechanism) -> tuple[Histograms, ScoredMechanism]:
    """Return histograms of the reference ensemble, and the mechanism bound to them.

    A prior agrees with its plurality on 17 queries of 20; its other guesses are random.
    """
    teachers, classes = mechanism.teachers, mechanism.classes
    ensemble = SyntheticEnsemble(teachers, classes, _HISTOGRAMS, _AGREEMENT, _SPREAD)
    counts, _ = ensemble.draw(REFERENCE_SEED)
    if mechanism.prior_weight:
        random = np.random.default_rng(REFERENCE_SEED)
        right = random.random(len(counts)) < _PRIOR_AGREES
        guesses = random.integers(mechanism.classes, size=len(counts))
        guesses = np.where(right, winners(counts), guesses)
        counts = with_votes(counts, guesses, mechanism.prior_weight)
    return counts, mechanism.for_reference(counts, REFERENCE_SEED)


def _on_reference(
    rounds: Sequence[tuple[ScoredMechanism, int]],
    *,
    delta: float,
    beta: float | None,
    sigma: float | None,
) -> Callable[[float], BestRelease | None]:
    """Return a function from an order to the best release there on the reference ensemble."""
    scored = []
    for mechanism, queries in rounds:
        counts, bound = reference_histograms(mechanism)
        scored.append((mechanism, bound.score(counts), queries))
    teachers = max(mechanism.teachers for mechanism, _ in rounds)

    def best_at(order: float) -> BestRelease | None:
        betas = candidate_betas(order, beta)
        if betas.size == 0:
            return None
        distances = sparse_distances(float(betas.min()), teachers=teachers, most=_DISTANCES)
        prices = []
        for mechanism, score, queries in scored:
            table = mechanism.cost_table(order, QUICK)
            tally = Tally.of(mechanism.cells(score, table.grid))
            prices.append(table.price(tally, distances).scaled(queries / tally.queries))
        total = functools.reduce(operator.add, prices)
        return best_release(total, order=order, delta=delta, beta=beta, sigma=sigma)

    return best_at


def _best_order(
    best_at: Callable[[float], BestRelease | None],
    rounds: Sequence[tuple[ScoredMechanism, int]],
    *,
    delta: float,
    beta: float | None,
) -> float:
    """Return a round order near the one with the smallest published ε."""
    # ε² is about 2 log(1/δ)·μ² for μ-GDP, and the best order about √(2 log(1/δ))/μ.
    mu_squared = sum(mechanism.gaussian_mu(queries=k1, answers=k1) ** 2 for mechanism, k1 in rounds)
    highest = _MOST_ORDER
    if beta is not None:
        highest = min(highest, 1.0 + 0.999 * (largest_order(beta) - 1.0))
    start = math.sqrt(2.0 * math.log(1.0 / delta) / mu_squared)

    def value(order: float) -> float:
        found = best_at(order)
        return math.inf if found is None else found.value

    tried = np.clip(1.0 + start * _LADDER, _LEAST_ORDER, highest)
    best = min(dict.fromkeys(tried.tolist()), key=value)
    order = _round_order(best)
    return order if 1.0 < order <= highest else best


def _round_order(order: float) -> float:
    """Return an order rounded to steps of about 2%, with at least a quarter above 4."""
    if order < 4.0:
        return round(order, 2)
    return round(order * 4.0) / 4.0 if order < 40.0 else float(round(order))


# Orders for the first choice, and the factor from one order to the next.
_FIRST_ORDERS, _STEP = (4.0, 7.0, 12.0, 20.0, 35.0), 1.12
_LOWEST, _HIGHEST = 1.05, 2000.0
# How many distances are enough to choose β: in a coarse search, and at the end.
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
        """Return a candidate with the best rows and the best release on a run's lattice."""
        steps = (0, 1, -1) if last else (0,)
        found = [self._priced(candidate, self._order_after(step)) for step in steps]
        return max(filter(None, found), key=lambda each: each.merit, default=None)

    def learn(self, best: Found) -> None:
        """Look at the best order for the best settings, and at the rows that they ask."""

        def merit(steps: int) -> float:
            return self._looked(best.settings, self._order_after(steps), best.forecast.rows).merit

        for step in (1, -1):
            while merit(step) > merit(0):
                self._order = self._order_after(step)

    def _order_after(self, steps: int) -> float:
        """Return the order that is `steps` steps from the present one."""
        return three_digits(1.0 + (self._order - 1.0) * _STEP**steps)

    def _looked(self, settings: Tuning, order: float, near: int | None) -> Candidate:
        """Return settings at one order on the coarse lattice."""
        goal, rows = self.goal, near or self.votes.rows
        out_of_reach = Candidate(settings, _OUT_OF_REACH, 1, holds=False)
        if not _LOWEST <= order <= _HIGHEST:
            return out_of_reach
        prices = _Prices(self.few, settings, order, QUICK, self.votes.rows)
        best, rows = self._settled(prices, rows)
        if best is None:
            return out_of_reach
        epsilon = min(best.value, rows * prices.worst + _plan(best, goal.delta).overhead)
        if goal.epsilon is not None and epsilon > _NEARLY * goal.epsilon:
            return out_of_reach
        few = self.few.with_prior_weight(settings.prior_weight)
        answers, agreeing, _ = expected_by_rows(
            few, few.mechanism(settings), np.array([rows]), self.votes.rows
        )[:, 0]
        agreement = agreeing / np.maximum(answers, 1e-300)
        merit = goal.merit(np.array([epsilon]), answers, agreement)
        return Candidate(
            settings, float(merit[0]), rows, holds=bool(agreement[0] >= goal.min_agreement)
        )

    def _settled(self, prices: _Prices, rows: int) -> tuple[BestRelease | None, int]:
        """Return the release and the rows that suit each other; no release if none is finite.

        Args:
            prices: the costs of the settings at one order.
            rows: the first number of rows. If a number of answers is wanted, the fewest first rows
                that give it are taken instead, and no release is found if all rows give fewer.
        """
        goal, best = self.goal, None
        quantile = shift_quantile(failure_delta(goal.delta))
        if goal.answers is not None:
            votes = self.votes.with_prior_weight(prices.weight)
            total = np.cumsum(votes.chances(votes.mechanism(prices.of))[0])
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
        """Return a candidate at one order, with its rows, as a run would have it."""
        settings, goal = candidate.settings, self.goal
        if not _LOWEST <= order <= _HIGHEST:
            return None
        prices = _Prices(self.votes, settings, order, FINE, self.votes.rows)
        best, rows = self._settled(prices, candidate.rows)
        if goal.answers is None:
            votes = self.votes.with_prior_weight(settings.prior_weight)
            chance, right = votes.chances(votes.mechanism(settings))
            surplus = np.cumsum((chance * (right - goal.min_agreement))[:rows])
            enough = np.flatnonzero(surplus >= 0.0)
            rows = int(enough[-1]) + 1 if enough.size else rows
        while best is not None and rows >= 1:
            found = self._found(prices, _plan(best, goal.delta), rows)
            if goal.epsilon is None or found.forecast.epsilon <= goal.epsilon:
                return found
            rows = min(rows - 1, int(0.999 * rows))
        return None

    def _found(self, prices: _Prices, plan: ReleasePlan, rows: int) -> Found:
        """Return this many rows as a run would have them, at all distances and by its own
        functions.
        """
        every = np.arange(distances_for(plan.beta, teachers=self.votes.teachers))
        price = prices.price(rows, every)
        mechanism = self.votes.mechanism(prices.of)
        worst = Cost(plan.delta, (Rows(mechanism, rows, rows),), plan.draws).of_curves.epsilon
        drawn = plan.value(price.rdp, price.smooth(plan.beta), SPREADS)
        epsilon, worst = round_up(min(drawn, worst)), round_up(worst)
        most = TargetPlan.of(worst, delta=plan.delta)  # the worst case, so that no test fails
        told = forecast(self.votes, mechanism, most, rows=rows, chance=1.0)
        return Found(self.goal, replace(told, epsilon=epsilon, worst_case=worst), drawn=plan)


class _Prices:
    """Costs and sensitivities of the first rows of a file at one order.

    Attributes:
        of: the settings.
        weight: votes of their prior.
        worst: worst-case cost of a row, nats.
    """

    def __init__(
        self,
        votes: VoteModel,
        settings: Tuning,
        order: float,
        resolution: Resolution,
        available: int,
    ) -> None:
        """Compute the cells of all rows, which stand for `available` rows; no sensitivities yet."""
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
        """Return the cost of the first rows, with sensitivities at some distances."""
        seen = max(round(rows * self._share), 1)
        return self._table.price(Tally.of(self._cells[:seen]), distances).scaled(rows / seen)

    def best(self, rows: int, delta: float) -> tuple[Price, BestRelease | None]:
        """Return the cost of the first rows, with the best release for them."""
        price = self.price(rows, self._distances)
        return price, best_release(price, order=self._order, delta=delta)


def _plan(best: BestRelease, delta: float) -> ReleasePlan:
    """Return the release with its parameters as a command prints them."""
    numbers = map(three_digits, (best.order, best.beta, best.sigma))
    return ReleasePlan(ReleaseKind.UPPER, delta, *numbers)
