"""Choose λ, β and σ_SS of a sanitized ε, by a public rule or for given votes.

A sanitized ε is an ε for given votes that is published with noise: λ is the Rényi order, β the
smoothness of the sensitivity, and σ_SS the noise as a multiple of the smooth sensitivity.

A private run must not look at its votes to choose λ, β and σ_SS. No fixed values of λ, β and σ_SS
are good for every number of teachers and queries and every noise level. The public rule minimises
the published ε for a *reference ensemble*. The histograms of the reference ensemble are drawn by a
fixed recipe with a fixed seed, for the numbers of teachers and classes of the file. The rule
computes the RDP costs of the histograms of the reference ensemble under the mechanism of the run,
and scales the costs to the number of queries of the run. The recipe of the reference ensemble, the
mechanism and the number of queries are public before the first vote is read. So the parameters that
the rule chooses may be printed, and anyone can recompute them.

The rule minimises the mean of the published ε plus two standard deviations, over the noise of the
release. The result of `best_release` for private votes is secret; the result for a reference
ensemble is public.

In the recipe of the reference ensemble, a made-up teacher is right with mean probability 0.75 (the
agreement), and the difficulty of queries has spread 0.4, as in `SyntheticEnsemble`. The recipe was
chosen on 48 made-up *trial ensembles*. The trial ensembles had 50 to 3,000 teachers, 2 to 50
classes, 100 to 9,000 queries, agreement 0.6 to 0.97 and spread 0.1 to 0.6; thresholds and noise
levels were around the defaults. The best parameters for an ensemble are only known to those who see
its votes. On the trial ensembles, ε with the parameters of the rule was larger than ε with the best
parameters: by 4% on average, and by 24% at worst. In this comparison of the rule with the best
parameters, ε is the mean of the published ε plus two standard deviations, and ensembles with an ε
above 10 were left out.

`tune` chooses λ, β and σ_SS for given votes, together with the settings and the number of rows. For
n rows, the mean of the published ε plus two standard deviations is n·(f + SS·(κ + 2σ)) + overhead.
In the formula for ε, f is the mean RDP cost of a row, SS is the smooth sensitivity of the RDP cost
of all rows divided by n, and σ is σ_SS. The overhead in the published ε is the cost of drawing the
sanitized ε plus the cost of the conversion from RDP to ε. The release raises the published ε by κ
times the smooth sensitivity, so that ε is hardly ever too small (κ grows with σ). If the largest
allowed ε is given, λ, β and σ_SS determine how many rows a run can ask. Because the best β and σ_SS
depend on the number of rows, `tune` computes the number of rows and the best parameters
alternately, a few times.

`tune` looks up the RDP cost of each histogram in a table. The table of RDP costs has a grid of
scores, so `tune` rounds the scores of each histogram to this grid (`accounting.score_grid`). During
the search the grid of scores is coarse, and costs are computed only at the Rényi order that was
best so far. At the end of the search, `tune` computes exact costs, on the fine grid of scores that
a run uses.
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
from pate_cli.planning.vote_model import PRIOR_ACCURACY, PUBLIC_SEED
from pate_cli.votes.checks import with_votes

SPREADS: Final = 2.0
"""How many standard deviations of the noise a published ε is assumed to be above its mean."""

_HISTOGRAMS, _AGREEMENT, _SPREAD = 300, 0.75, 0.4
# The search for λ multiplies λ − 1 by these factors. It tries these values of βλ and of σ_SS.
_LADDER = 1.3 ** np.array([0, 1, -1, 2, -2, 3, -3, 4, -4, 5, -5])
_LEAST_ORDER, _MOST_ORDER = 1.1, 400.0
_BETA_ORDERS = np.geomspace(0.02, 0.48, 33)
_SIGMAS = np.geomspace(0.5, 2000.0, 140)
# How many distances are enough to choose parameters; they are on a geometric scale.
_DISTANCES = 48


@dataclass(frozen=True)
class BestRelease:
    """Parameters of a release, and the mean and the spread of the ε that it would publish.

    Attributes:
        mean: the mean of the published ε over the noise of the release, nats.
        sd: the standard deviation of the published ε, nats.
        order: the Rényi order λ.
        beta: the smoothness β of the sensitivity.
        sigma_release: σ_SS, the noise as a multiple of the smooth sensitivity.
        smooth_sensitivity: the smooth sensitivity SS_β of the RDP cost, nats.
    """

    mean: float
    sd: float
    order: float
    beta: float
    sigma_release: float
    smooth_sensitivity: float

    @property
    def value(self) -> float:
        """Return the mean of the published ε plus two standard deviations, nats."""
        return self.mean + SPREADS * self.sd


def candidate_betas(order: float, beta: float | None = None) -> Floats:
    """Return the values of β to try at an order: all usual values, or the given β.

    Values of β at which drawing a sanitized ε would have an infinite RDP cost are left out.
    """
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
    """Return β and σ_SS with the smallest published ε for a known RDP cost; None if no ε is finite.

    Args:
        price: the RDP cost of the labels at the order, and the local sensitivities of this cost at
            several distances from the votes.
        order: λ > 1.
        delta: δ of the labels and the release together.
        beta: β, if it is fixed.
        sigma: σ_SS, if it is fixed.
        conversion: the cost of the conversion from RDP to ε, nats; None for the sharpest
            conversion.
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
        sigma_release=float(sigmas[0, at[1]]),
        smooth_sensitivity=float(smooth[at[0], 0]),
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
    """Return a plan with λ, β, σ_SS of a sanitized ε; a public rule chooses those not given.

    Args:
        kind: whether the run publishes a sanitized ε. A run that publishes no sanitized ε
            still needs λ and β: the secret ledger of the run keeps RDP costs at order λ, and β says
            for how many distances the ledger keeps local sensitivities.
        rounds: for each run the mechanism, and the number of rows that was fixed in advance.
        delta: δ in (0, 1).
        order: λ, if it is given.
        beta: β, if it is given.
        sigma: σ_SS, if it is given.

    Raises:
        ParameterError: a given number is out of range, or the given λ and β are not allowed
            together.
    """
    # This checks the given numbers before any work; numbers of the rule are always in range.
    at = 1.0001 if order is None else order
    smooth = 1e-9 / max(at, 1.0) if beta is None else beta
    ReleasePlan(ReleaseKind.UPPER, delta, at, smooth, 1.0 if sigma is None else sigma)
    if order is None or beta is None or sigma is None:
        known = [(*reference_histograms(mechanism), queries) for mechanism, queries in rounds]

        def best_at(order: float) -> BestRelease | None:
            runs = [
                (_Priced(bound, counts, order, QUICK, queries), queries)
                for counts, bound, queries in known
            ]
            return _best_of(runs, delta=delta, distances=_DISTANCES, beta=beta, sigma=sigma)

        if order is None:
            order = _best_order(best_at, rounds, delta=delta, beta=beta)
        best = best_at(order)
        if best is None:
            raise ParameterError(f"no release at order {order:g} has a finite cost; lower `beta`")
        beta = three_digits(best.beta) if beta is None else beta
        sigma = three_digits(best.sigma_release) if sigma is None else sigma
    return ReleasePlan(kind, delta, order, beta, sigma)


def reference_histograms(mechanism: ScoredMechanism) -> tuple[Histograms, ScoredMechanism]:
    """Return made-up histograms for the public rule, and the mechanism that fits them.

    If the mechanism has a prior, the prior guesses the plurality on 17 queries of 20, and a random
    class on the others.
    """
    teachers, classes = mechanism.teachers, mechanism.classes
    ensemble = SyntheticEnsemble(teachers, classes, _HISTOGRAMS, _AGREEMENT, _SPREAD)
    counts, _ = ensemble.draw(PUBLIC_SEED)
    if mechanism.prior_weight:
        random = np.random.default_rng(PUBLIC_SEED)
        right = random.random(len(counts)) < PRIOR_ACCURACY
        guesses = random.integers(mechanism.classes, size=len(counts))
        guesses = np.where(right, winners(counts), guesses)
        counts = with_votes(counts, guesses, mechanism.prior_weight)
    return counts, mechanism.for_reference(counts, PUBLIC_SEED)


class _Priced:
    """Histograms with their RDP cost under one mechanism at one order. SECRET for private votes."""

    def __init__(
        self,
        mechanism: ScoredMechanism,
        counts: Histograms,
        order: float,
        resolution: Resolution,
        rows: int,
    ) -> None:
        """Find each histogram in a table of costs.

        `price` scales the cost of all histograms to `rows` rows.
        """
        self._table = mechanism.cost_table(order, resolution)
        self._cells = mechanism.cells_of(counts, self._table.grid)
        self._share, self.teachers, self.order = len(counts) / rows, mechanism.teachers, order

    def price(self, rows: int, distances: Ints) -> Price:
        """Return the RDP cost of the first `rows` rows, and its sensitivities at `distances`."""
        seen = max(round(rows * self._share), 1)
        return self._table.price(Tally.of(self._cells[:seen]), distances).scaled(rows / seen)


def _best_of(
    runs: Sequence[tuple[_Priced, int]],
    *,
    delta: float,
    distances: int,
    beta: float | None = None,
    sigma: float | None = None,
) -> BestRelease | None:
    """Return the release parameters with the smallest published ε for several runs together.

    Args:
        runs: for each run, histograms with their costs, all at one order, and the number of rows.
        delta: δ of the labels and the release together.
        distances: at about how many distances from the votes local sensitivities are computed.
        beta: β, if it is fixed.
        sigma: σ_SS, if it is fixed.
    """
    order = runs[0][0].order
    betas = candidate_betas(order, beta)
    if betas.size == 0:
        return None
    teachers = max(priced.teachers for priced, _ in runs)
    few = sparse_distances(float(betas.min()), teachers=teachers, most=distances)
    total = functools.reduce(operator.add, [priced.price(rows, few) for priced, rows in runs])
    return best_release(total, order=order, delta=delta, beta=beta, sigma=sigma)


def _best_order(
    best_at: Callable[[float], BestRelease | None],
    rounds: Sequence[tuple[ScoredMechanism, int]],
    *,
    delta: float,
    beta: float | None,
) -> float:
    """Return a rounded order near the order with the smallest published ε."""
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
    """Return an order rounded to a multiple of .01 if below 4, of 1/4 if below 40, else of 1."""
    if order < 4.0:
        return round(order, 2)
    return round(order * 4.0) / 4.0 if order < 40.0 else float(round(order))


# The first order of a search is one of these. For a later order, λ − 1 of the last order is
# multiplied by one of these factors.
_FIRST_ORDERS, _AROUND = (4.0, 7.0, 12.0, 20.0, 35.0), 1.12 ** np.arange(-4, 5)
# How many distances are enough to choose β: during a search, and at its end.
_FEW, _MORE = 11, 24
_ROUNDS, _OUT_OF_REACH, _NEARLY = 6, -9.0, 1.05


class SanitizedVotes(Pricing):
    """Evaluates settings for a sanitized ε, on a file of votes; SECRET for private votes."""

    _order = 0.0

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return a candidate for each of the settings, with its best number of rows.

        Costs are approximate, because they come from a coarse grid of scores.
        """
        if not self._order:
            some = settings[::3]
            self._order = max(
                _FIRST_ORDERS,
                key=lambda order: max(self._looked(each, order, near).merit for each in some),
            )
        return [self._looked(each, self._order, near) for each in settings]

    def learn(self, best: Found) -> None:
        """From now on, evaluate settings at the Rényi order that suits the settings `best`."""
        self._order = max(
            [three_digits(1.0 + (self._order - 1.0) * by) for by in _AROUND.tolist()],
            key=lambda order: self._looked(best.settings, order, best.forecast.rows).merit,
        )

    def _looked(self, settings: Tuning, order: float, near: int | None) -> Candidate:
        """Return a candidate for `settings`, by approximate costs at the Rényi order `order`."""
        goal, few = self.goal, self.few.with_prior_weight(settings.prior_weight)
        mechanism, available = few.mechanism(settings), self.votes.rows
        priced = _Priced(mechanism, few.counts, order, QUICK, available)
        found = self._settled(priced, mechanism, near or available, _FEW)
        out_of_reach = Candidate(mechanism, _OUT_OF_REACH, 1, holds=False)
        if found is None:
            return out_of_reach
        best, plan, rows = found
        epsilon = min(best.value, rows * _worst(mechanism, order) + plan.overhead)
        if goal.epsilon is not None and epsilon > _NEARLY * goal.epsilon:
            return out_of_reach
        told = expected_by_rows(few, mechanism, np.array([rows]), available)[:, 0]
        answers, agreement = told[0], told[1] / np.maximum(told[0], 1e-300)
        merit = float(goal.merit(np.array([epsilon]), answers, agreement)[0])
        return Candidate(mechanism, merit, rows, bool(agreement[0] >= goal.min_agreement))

    def _settled(
        self, priced: _Priced, mechanism: ScoredMechanism, rows: int, distances: int
    ) -> tuple[BestRelease, ReleasePlan, int] | None:
        """Return the best release parameters, a plan with rounded parameters, and a number of rows.

        If the caller gave the largest allowed ε, the number of rows is about the largest that this
        ε allows. If the caller wants a number of expected answers, the number of rows is the
        smallest that gives the wanted answers. The result is None if no ε is finite, or if all rows
        of the file give too few answers.

        Args:
            priced: the votes with their costs.
            mechanism: the mechanism of the run.
            rows: the number of rows to begin with. If the goal is a number of answers, the search
                begins with the smallest number of rows that gives these answers.
            distances: at how many distances from the votes local sensitivities are computed.
        """
        goal, order = self.goal, priced.order
        if goal.answers is not None:
            votes = self.votes.with_prior_weight(mechanism.prior_weight)
            total = np.cumsum(votes.chances(mechanism)[0])
            rows = int(np.searchsorted(total, goal.answers)) + 1
            if rows > total.size:
                return None
        found = None
        for _ in range(_ROUNDS):
            before = rows
            best = _best_of([(priced, rows)], delta=goal.delta, distances=distances)
            if best is not None:
                numbers = map(three_digits, (best.order, best.beta, best.sigma_release))
                plan = ReleasePlan(ReleaseKind.UPPER, goal.delta, *numbers)
                found = best, plan, rows
            if goal.epsilon is None:
                break
            rows = max(before // 2, 1)
            if best is not None and goal.epsilon > plan.overhead:
                each = min((best.value - plan.overhead) / before, _worst(mechanism, order))
                rows = int(np.clip((goal.epsilon - plan.overhead) / each, 1, self.votes.rows))
            if rows == before:
                break
        return found and (*found[:2], rows)

    def price(self, candidate: Candidate) -> Found | None:
        """Return the settings of a candidate with their exact costs and best number of rows.

        The best release parameters are in `stated` of the result. The result is None if no number
        of rows suits the goal.
        """
        mechanism, goal = candidate.mechanism, self.goal
        votes = self.votes.with_prior_weight(mechanism.prior_weight)
        priced = _Priced(mechanism, votes.counts, self._order, FINE, votes.rows)
        found = self._settled(priced, mechanism, candidate.rows, _MORE)
        if found is None:
            return None
        _, plan, rows = found
        if goal.answers is None:
            chance, right = votes.chances(mechanism)
            enough = np.flatnonzero(np.cumsum((chance * (right - goal.min_agreement))[:rows]) >= 0)
            rows = int(enough[-1]) + 1 if enough.size else rows
        every = np.arange(distances_for(plan.beta, teachers=votes.teachers))
        while rows >= 1:
            price = priced.price(rows, every)
            cost = Cost(plan.delta, (Rows(mechanism, rows, rows),), plan.draws)
            worst = round_up(cost.of_curves.epsilon)
            drawn = plan.value(price.rdp, price.smooth(plan.beta), SPREADS)
            epsilon = min(round_up(drawn), worst)
            if goal.epsilon is None or epsilon <= goal.epsilon:
                # With the worst-case ε as its target, the forecast has no release test.
                most = TargetPlan.of(worst, delta=plan.delta)
                told = forecast(votes, mechanism, most, rows=rows, chance=1.0)
                stated = {"order": plan.order, "beta": plan.beta, "sigma_release": plan.sigma}
                return Found(
                    goal,
                    replace(told, epsilon=epsilon, worst_case=worst),
                    {"release": goal.release.value, **stated},
                )
            rows = min(rows - 1, int(0.999 * rows))
        return None


def _worst(mechanism: ScoredMechanism, order: float) -> float:
    """Return the worst-case RDP cost of a row at an order, nats."""
    return float(mechanism.worst_rdp(queries=1, answers=1, orders=np.array([order]))[0])
