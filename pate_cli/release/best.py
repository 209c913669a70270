"""The β and σ_SS that serve an order best, for a known cost and sensitivity curve.

What is minimised is the published ε two standard deviations above its mean, both over the release's
own noise. On private votes the result is a secret; on a public or made-up ensemble it is a plan.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from pate_cli import published
from pate_cli.accounting.conversion import conversion_cost
from pate_cli.arrays import Floats
from pate_cli.release.plan import failure_delta
from pate_cli.words import Analysis, ReleaseKind

__all__ = ["BestRelease", "best_release", "candidate_betas"]


# Candidates for βλ and σ_SS; sd's above the mean that count in the objective.
_BETA_ORDERS = np.geomspace(0.02, 0.48, 33)
_SIGMAS = np.geomspace(0.5, 2000.0, 140)
_SPREADS = 2.0


@dataclass(frozen=True)
class BestRelease:
    """Release parameters and what they would publish.

    Attributes:
        value: mean plus two standard deviations of the published ε, nats.
        mean: mean of the published ε over the draw, nats.
        sd: its standard deviation, nats.
        order, beta, sigma: λ, β and σ_SS.
        smooth: SS_β, nats.
    """

    value: float
    mean: float
    sd: float
    order: float
    beta: float
    sigma: float
    smooth: float


def candidate_betas(order: float, beta: float | None = None) -> Floats:
    """β's worth trying at an order (or the one given), those of infinite cost left out."""
    betas = _BETA_ORDERS / order if beta is None else np.array([beta])
    return betas[_excess(betas, order) < 1.0]


def _excess(betas: Floats, order: float) -> Floats:
    """(λ − 1)(e^{2β} − 1), which must stay below 1 for the release to have a finite cost."""
    return (order - 1.0) * np.expm1(2.0 * betas)


def best_release(
    kind: ReleaseKind,
    *,
    rdp: float,
    curve: Floats,
    distances: NDArray[np.int64],
    order: float,
    delta: float,
    beta: float | None = None,
    sigma: float | None = None,
    analysis: Analysis = Analysis.TIGHT,
) -> BestRelease | None:
    """The best β and σ_SS, or None when a given β has infinite cost at this order.

    Args:
        kind: `upper` or `unbiased`.
        rdp: total cost at the order, nats.
        curve: LS_d at the distances, nats.
        distances: ascending d's the curve is known at.
        order: λ > 1.
        delta: δ of the whole guarantee.
        beta, sigma: fix one of them instead of choosing it.
        analysis: `paper` converts to ε as the paper does; the draw is charged exactly all the same.
    """
    betas = candidate_betas(order, beta)
    if betas.size == 0:
        return None
    smooth = (np.exp(-np.outer(betas, distances)) * curve).max(axis=1)[:, None]
    sigmas = (_SIGMAS if sigma is None else np.array([sigma]))[None, :]
    failure = failure_delta(kind, delta)
    quantile = float(-ndtri(failure)) if failure > 0.0 else 0.0
    excess = _excess(betas, order)[:, None]
    # ε_κ of accounting.gnss on a whole grid, with κ = quantile·σ.
    moved = 1.0 / sigmas + quantile * np.expm1(betas)[:, None]
    draw = (
        order * moved**2 / (2.0 * (1.0 - excess))
        - betas[:, None]
        - np.log1p(-excess) / (2.0 * (order - 1.0))
    )
    orders, left = np.array([order]), delta - failure
    if analysis is Analysis.PAPER:
        conversion = published.to_epsilon(np.zeros(1), orders=orders, delta=left)[0]
    else:
        conversion = conversion_cost(orders, delta=left)[0]
    sd = smooth * sigmas
    mean = rdp + draw + sd * quantile + conversion
    objective = mean + _SPREADS * sd
    at = np.unravel_index(int(np.argmin(objective)), objective.shape)
    if not math.isfinite(objective[at]):
        return None
    return BestRelease(
        value=float(objective[at]),
        mean=float(mean[at]),
        sd=float(sd[at]),
        order=order,
        beta=float(betas[at[0]]),
        sigma=float(sigmas[0, at[1]]),
        smooth=float(smooth[at[0], 0]),
    )
