"""The β and σ_SS that serve an order best, for a known price.

What is minimised is the published ε two standard deviations above its mean, both over the release's
own noise. On private votes the result is a secret; on a public or made-up ensemble it is a plan.
"""

from __future__ import annotations

import math

import numpy as np

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.cost_table import Price
from pate_cli.accounting.gnss import gnss_costs, largest_beta, shift_quantile
from pate_cli.core.arrays import Floats
from pate_cli.core.dataclass import dataclass
from pate_cli.disclosure.plan import failure_delta

SPREADS = 2.0
"""Standard deviations of the release's noise that count as published on top of the mean."""

# Candidates for βλ and σ_SS.
_BETA_ORDERS = np.geomspace(0.02, 0.48, 33)
_SIGMAS = np.geomspace(0.5, 2000.0, 140)


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
    return betas[betas < largest_beta(order)]


def best_release(
    price: Price,
    *,
    order: float,
    delta: float,
    beta: float | None = None,
    sigma: float | None = None,
    conversion: float | None = None,
    failure: float | None = None,
) -> BestRelease | None:
    """The best β and σ_SS, or None when a given β has infinite cost at this order.

    Args:
        price: total cost at the order, and sensitivities at some distances.
        order: λ > 1.
        delta: δ of the whole guarantee.
        beta, sigma: fix one of them instead of choosing it.
        conversion: what turning RDP into ε costs, nats, where that is not the sharp conversion.
        failure: δ', the chance that what is published is too low; that of an upper release where
            left out, and 0 where the draw is centred on the cost, as in the published analysis.
    """
    betas = candidate_betas(order, beta)
    if betas.size == 0:
        return None
    discount = np.exp(-np.outer(betas, price.distances))
    smooth = (discount * price.curve).max(axis=1)[:, None]
    sigmas = (_SIGMAS if sigma is None else np.array([sigma]))[None, :]
    failure = failure_delta(delta) if failure is None else failure
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
        value=float(objective[at]),
        mean=float(mean[at]),
        sd=float(sd[at]),
        order=order,
        beta=float(betas[at[0]]),
        sigma=float(sigmas[0, at[1]]),
        smooth=float(smooth[at[0], 0]),
    )
