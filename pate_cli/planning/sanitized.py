"""The public rule for the parameters of a sanitized ε: λ, β and σ_SS.

They must not depend on the votes at hand, and no fixed numbers suit every ensemble, number of
queries and noise level. So the rule minimises what would be published for a *reference ensemble*:
histograms drawn from a fixed recipe with a fixed seed, with the file's numbers of teachers and
classes and the run's own mechanism, scaled to its number of queries. Everything that enters is
public and fixed before the first vote is read, so the result may be printed; anyone can recompute
it.

What is minimised is the published ε two standard deviations above its mean, both over the noise of
the release. On private votes `best_release` tells a secret; on a reference ensemble it is a plan.

The recipe (mean agreement 0.75, spread 0.4) was picked on 48 synthetic ensembles: 50 to 3,000
teachers, 2 to 50 classes, 100 to 9,000 queries, mean agreement 0.6 to 0.97, spread 0.1 to 0.6, and
thresholds and noise levels around the defaults. Against the parameters that are best for each of
them, which nobody can know without looking at the votes, the rule's published ε (mean plus two
standard deviations, where it is below 10) was 4% larger on average and 24% at worst.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.cost_table import Price, Tally
from pate_cli.accounting.score_grid import QUICK
from pate_cli.accounting.sensitivity import (
    gnss_costs,
    largest_beta,
    largest_order,
    shift_quantile,
    sparse_distances,
)
from pate_cli.core.arrays import Floats, Histograms, winners
from pate_cli.core.errors import ParameterError
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.plan import ReleasePlan, failure_delta
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.synthetic import SyntheticEnsemble
from pate_cli.votes.checks import with_votes

REFERENCE_SEED: Final = 20180224
SPREADS: Final = 2.0
"""Standard deviations of the noise of a release that are minimised on top of the mean."""

_HISTOGRAMS, _AGREEMENT, _SPREAD, _PRIOR_AGREES = 300, 0.75, 0.4, 0.85
# λ is searched on a geometric scale of λ − 1; β and σ_SS among these values of βλ and σ_SS.
_RATIO, _LEAST_ORDER, _MOST_ORDER = 1.3, 1.1, 400.0
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
    """Return release parameters by the public rule; those that are given stay as they are.

    Args:
        kind: what is to be published. Where that is nothing, a ledger kept for later still needs
            an order and distances.
        rounds: each round's aggregator with its public parameters, and its k1, the rows fixed in
            advance.
        delta: δ in (0, 1).
        order, beta, sigma: fix λ, β or σ_SS instead of choosing it.

    Raises:
        ParameterError: a given number out of range, or an inadmissible pair of λ and β.
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
    """Refuse parameters that are out of range before any work; those left out are fine.

    Raises:
        ParameterError: a number out of range, or an inadmissible pair of λ and β.
    """
    at = 1.0001 if order is None else order
    smooth = 1e-9 / max(at, 1.0) if beta is None else beta  # no order is 0: refused below
    ReleasePlan(ReleaseKind.UPPER, delta, at, smooth, 1.0 if sigma is None else sigma)


def reference_histograms(mechanism: ScoredMechanism) -> tuple[Histograms, ScoredMechanism]:
    """Return histograms of the reference ensemble, and the mechanism bound to them.

    A prior agrees with its plurality on 17 queries of 20, and elsewhere with nobody in particular.
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
    """The function from an order to the best release there on the reference ensemble."""
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
    """A round order near the one at which the published ε is least."""
    # ε² is about 2 log(1/δ)·μ² for μ-GDP, and the best order about √(2 log(1/δ))/μ.
    mu_squared = sum(mechanism.gaussian_mu(queries=k1, answers=k1) ** 2 for mechanism, k1 in rounds)
    highest = _MOST_ORDER
    if beta is not None:
        highest = min(highest, 1.0 + 0.999 * (largest_order(beta) - 1.0))
    start = 1.0 + math.sqrt(2.0 * math.log(1.0 / delta) / mu_squared)
    here = functools.partial(_on_scale, start, highest)

    def value(step: int) -> float:
        found = best_at(here(step))
        return math.inf if found is None else found.value

    # Walk while the published ε falls, upwards if the first step does.
    at, best, step = 0, value(0), -1
    above = value(1)
    if above < best:
        at, best, step = 1, above, 1
    while here(at + step) != here(at):
        following = value(at + step)
        if following >= best:
            break
        at, best = at + step, following
    order = _round_order(here(at))
    return order if 1.0 < order <= highest else here(at)


def _on_scale(start: float, highest: float, step: int) -> float:
    """The order so many steps from the first on a geometric scale of λ − 1, kept in its range."""
    return min(max(1.0 + (start - 1.0) * _RATIO**step, _LEAST_ORDER), highest)


def _round_order(order: float) -> float:
    """An order rounded to steps of about 2%, with at least a quarter above 4."""
    if order < 4.0:
        return round(order, 2)
    return round(order * 4.0) / 4.0 if order < 40.0 else float(round(order))
