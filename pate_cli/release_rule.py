"""The public rule for λ, β and σ_SS: what would be best for a made-up ensemble of the same shape.

The release parameters must not depend on the votes at hand, and no fixed numbers suit every
ensemble, number of queries and noise level. So they are chosen by minimising what would be
published for a *reference ensemble*: histograms drawn from a fixed recipe with a fixed seed, with
the file's numbers of teachers and classes and the run's own mechanism, scaled to its number of
queries. Everything that enters is public and fixed before the first vote is read, so the result
may be printed; anyone can recompute it.

The recipe (mean agreement 0.75, spread 0.4) was picked on 48 synthetic ensembles: 50 to 3,000
teachers, 2 to 50 classes, 100 to 9,000 queries, mean agreement 0.6 to 0.97, spread 0.1 to 0.6,
and thresholds and noise levels around the defaults. Against the parameters that are best for each
of them, which nobody can know without looking at the votes, the rule's published ε (mean plus two
standard deviations) was 4% larger on average and 25% at worst.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.gnss import largest_order
from pate_cli.accounting.score_grid import COARSE
from pate_cli.accounting.sensitivity import sensitivity_curve
from pate_cli.choices import ReleaseKind
from pate_cli.mechanisms.base import Mechanism, Tally, surface_blocks
from pate_cli.plan import ReleasePlan, failure_delta
from pate_cli.synthetic import SyntheticEnsemble

__all__ = ["choose_plan", "distances_for"]

Floats = NDArray[np.float64]

_HISTOGRAMS = 300
_AGREEMENT, _SPREAD, _SEED = 0.75, 0.4, 20180224
# Candidates for βλ and σ_SS; sd's above the mean that count in the objective.
_BETA_ORDERS = np.geomspace(0.03, 0.45, 22)
_SIGMAS = np.geomspace(0.5, 2000.0, 140)
_SPREADS = 2.0
# λ is searched on a geometric scale of λ − 1.
_RATIO = 1.3
_LEAST_ORDER, _MOST_ORDER = 1.1, 400.0
# e^{−14} makes the vote-independent bound beyond D0 negligible.
_DISCOUNT = 14.0
_MOST_DISTANCES = 4096
_DISTANCES = 48


def distances_for(beta: float, *, teachers: int) -> int:
    """D0: how many distances are kept, e^{−β D0} ≤ 1e-6 or all teachers. Public."""
    return max(1, min(teachers, math.ceil(_DISCOUNT / beta), _MOST_DISTANCES))


@dataclass(frozen=True)
class _Choice:
    value: float
    order: float
    beta: float
    sigma: float


@dataclass(frozen=True)
class _Reference:
    """The reference ensemble under one mechanism, scaled to a number of queries."""

    mechanism: Mechanism
    score: Floats
    queries: int
    kind: ReleaseKind
    delta: float

    def best_at(self, order: float, *, beta: float | None, sigma: float | None) -> _Choice:
        """The best β and σ at an order: least mean + 2 sd of the published ε."""
        surface = self.mechanism.surface(order, COARSE)
        tally = Tally.of(self.mechanism.cells(self.score, surface))
        scale = self.queries / tally.queries
        blocks = surface_blocks(surface)
        betas = _BETA_ORDERS / order if beta is None else np.array([beta])
        betas = betas[largest_order_excess(betas, order) < 1.0]
        if betas.size == 0:
            return _Choice(math.inf, order, 0.0, 0.0)
        # A choice needs no smooth curve, so a few distances on a geometric scale will do.
        farthest = distances_for(float(betas.min()), teachers=self.mechanism.teachers)
        distances = np.unique(np.geomspace(1.0, farthest + 1.0, _DISTANCES).astype(np.int64)) - 1
        curve = scale * sensitivity_curve(
            blocks,
            cells=tally.cells,
            weights=tally.weights,
            grid=surface.grid,
            vote_block=surface.vote_block,
            distances=distances,
        )
        rdp = scale * float(surface.cost(tally.cells) @ tally.weights)
        discount = np.exp(-np.outer(betas, distances))
        smooth = (discount * curve).max(axis=1)[:, None]
        sigmas = (_SIGMAS if sigma is None else np.array([sigma]))[None, :]
        failure = failure_delta(self.kind, self.delta)
        quantile = float(-ndtri(failure)) if failure > 0.0 else 0.0
        excess = largest_order_excess(betas, order)[:, None]
        moved = 1.0 / sigmas + quantile * np.expm1(betas)[:, None]
        draw = (
            order * moved**2 / (2.0 * (1.0 - excess))
            - betas[:, None]
            - np.log1p(-excess) / (2.0 * (order - 1.0))
        )
        conversion = conversion_cost(np.array([order]), delta=self.delta - failure)[0]
        published = rdp + draw + smooth * sigmas * (quantile + _SPREADS) + conversion
        row, column = np.unravel_index(int(np.argmin(published)), published.shape)
        return _Choice(
            value=float(published[row, column]),
            order=order,
            beta=float(betas[row]),
            sigma=float(sigmas[0, column]),
        )


def largest_order_excess(betas: Floats, order: float) -> Floats:
    """(λ − 1)(e^{2β} − 1), which must stay below 1 for the release to have a finite cost."""
    return (order - 1.0) * np.expm1(2.0 * betas)


def choose_plan(
    kind: ReleaseKind,
    *,
    mechanism: Mechanism,
    queries: int,
    delta: float,
    order: float | None = None,
    beta: float | None = None,
    sigma: float | None = None,
) -> ReleasePlan:
    """Release parameters by the public rule; those that are given stay as they are.

    Args:
        kind: what is to be published.
        mechanism: the aggregator and its public parameters.
        queries: k1, the rows fixed in advance.
        delta: δ in (0, 1).
        order, beta, sigma: fix λ, β or σ_SS instead of choosing it.

    Raises:
        ParameterError: a given number out of range, or an inadmissible pair of λ and β.
    """
    if kind is ReleaseKind.NONE:
        # Nothing is drawn now, but a ledger kept for later needs an order and distances.
        later = choose_plan(
            ReleaseKind.UPPER,
            mechanism=mechanism,
            queries=queries,
            delta=delta,
            order=order,
            beta=beta,
            sigma=sigma,
        )
        return replace(later, kind=kind)
    if order is not None and beta is not None and sigma is not None:
        return ReleasePlan(kind=kind, delta=delta, order=order, beta=beta, sigma=sigma)
    _check_given(kind, delta=delta, order=order, beta=beta, sigma=sigma)
    ensemble = SyntheticEnsemble(
        teachers=mechanism.teachers,
        classes=mechanism.classes,
        queries=_HISTOGRAMS,
        agreement=_AGREEMENT,
        spread=_SPREAD,
    )
    counts, _ = ensemble.draw(_SEED)
    reference = _Reference(mechanism, mechanism.score(counts), queries, kind, delta)
    if order is not None:
        best = reference.best_at(order, beta=beta, sigma=sigma)
    else:
        start = math.sqrt(
            2.0
            * math.log(1.0 / delta)
            / mechanism.gaussian_mu(queries=queries, answers=queries) ** 2
        )
        highest = _MOST_ORDER if beta is None else min(_MOST_ORDER, largest_order(beta) * 0.999)
        best = _descend(
            lambda at: reference.best_at(at, beta=beta, sigma=sigma),
            start=1.0 + start,
            highest=highest,
        )
        # A round order, near enough to the optimum; β and σ are chosen again for it.
        rounded = min(_round_order(best.order), highest)
        best = reference.best_at(rounded, beta=beta, sigma=sigma)
    return ReleasePlan(
        kind=kind,
        delta=delta,
        order=best.order,
        beta=_significant(best.beta) if beta is None else beta,
        sigma=_significant(best.sigma) if sigma is None else sigma,
    )


def _check_given(
    kind: ReleaseKind,
    *,
    delta: float,
    order: float | None,
    beta: float | None,
    sigma: float | None,
) -> None:
    """Refuse what is out of range before any work: missing values by harmless stand-ins."""
    at = 1.0001 if order is None else order
    smooth = 1e-9 / at if beta is None else beta
    ReleasePlan(
        kind=kind, delta=delta, order=at, beta=smooth, sigma=1.0 if sigma is None else sigma
    )


def _descend(evaluate: Callable[[float], _Choice], *, start: float, highest: float) -> _Choice:
    """Walk on a geometric scale of λ − 1 while the value falls."""

    def at(step: int) -> float:
        return min(max(1.0 + (start - 1.0) * _RATIO**step, _LEAST_ORDER), highest)

    seen = {0: evaluate(at(0)), 1: evaluate(at(1))}
    step, here = (1, 1) if seen[1].value < seen[0].value else (-1, 0)
    while True:
        following = here + step
        if at(following) == at(here):
            return seen[here]
        seen[following] = evaluate(at(following))
        if seen[following].value >= seen[here].value:
            return seen[here]
        here = following


def _round_order(order: float) -> float:
    """To steps of about 2%, with at least a quarter above 4."""
    if order < 4.0:
        return round(order, 2)
    return round(order * 4.0) / 4.0 if order < 40.0 else float(round(order))


def _significant(value: float) -> float:
    """Three significant digits: enough, and pleasant in a report."""
    return float(f"{value:.3g}")
