"""The sanitized release of Table 2: as the paper charges it, and as it has to be charged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pate_cli.accounting.sensitivity import gnss_rdp, largest_beta
from pate_cli.core.arrays import Floats
from pate_cli.paper.conversion import published_gnss_rdp
from pate_cli.paper.expected import smooth_sensitivity

# Every β of Table 2 is a multiple of 0.01 over the order, rounded to four decimals.
_STEP = 0.01
# Votes that no teacher can change have no sensitivity; σ_SS must be finite all the same.
_LEAST_SMOOTH = 1e-12


@dataclass(frozen=True)
class ReleaseNoise:
    """λ of a release, and β and σ_SS of every round."""

    order: float
    betas: tuple[float, ...]
    sigmas: tuple[float, ...]


@dataclass(frozen=True)
class PublishedRelease:
    """One release of the expected ε.

    Attributes:
        noise: λ, β and σ_SS.
        smooth: SS_β of every round, nats.
        epsilon, sd: mean and standard deviation over the draw of the ε that is released, nats;
            None where β is so large for the order that it is infinite.
    """

    noise: ReleaseNoise
    smooth: tuple[float, ...]
    epsilon: float | None
    sd: float


def sanitized(
    epsilon: float, curves: Sequence[Floats], noise: ReleaseNoise, *, exact: bool
) -> PublishedRelease:
    """Mean and standard deviation of ε + Σ_rounds SS_β·N(0, σ_SS²) + what the draws cost.

    Args:
        epsilon: expected ε of the labels at the order.
        curves: local sensitivity by distance of every round.
        noise: λ, β, σ_SS; λβ < ½ unless `exact`.
        exact: charge each draw its exact divergence instead of what Theorem 23 claims.
    """
    each = zip(curves, noise.betas, strict=True)
    smooth = tuple(smooth_sensitivity(curve, beta=beta) for curve, beta in each)
    sd = math.hypot(*np.multiply(smooth, noise.sigmas))
    if exact and max(noise.betas) >= largest_beta(noise.order):
        return PublishedRelease(noise, smooth, None, sd)
    charge = gnss_rdp if exact else published_gnss_rdp
    draws = zip(noise.betas, noise.sigmas, strict=True)
    cost = sum(charge(beta=beta, sigma=sigma, order=noise.order) for beta, sigma in draws)
    return PublishedRelease(noise, smooth, epsilon + cost, sd)


def by_the_rule(order: float, percents: Sequence[int], curves: Sequence[Floats]) -> ReleaseNoise:
    """The paper's own rule: β = 0.01·percent/λ, and the σ_SS that is best for it in each round.

    That is (λe^{2β}/SS)^{1/3}, which minimises λe^{2β}/σ² + 2σ·SS: mean plus two standard
    deviations.
    """
    betas = tuple(percent * _STEP / order for percent in percents)
    sigmas = []
    for beta, curve in zip(betas, curves, strict=True):
        smooth = max(smooth_sensitivity(curve, beta=beta), _LEAST_SMOOTH)
        sigmas.append((order * math.exp(2.0 * beta) / smooth) ** (1.0 / 3.0))
    return ReleaseNoise(order, betas, tuple(sigmas))


def unrounded(printed: ReleaseNoise, curves: Sequence[Floats]) -> ReleaseNoise:
    """The parameters behind printed ones, which are rounded, by the paper's own rule.

    Where the rule leads to another σ_SS than the printed one, the printed one stays.
    """
    percents = [round(beta * printed.order / _STEP) for beta in printed.betas]
    rule = by_the_rule(printed.order, percents, curves)
    pairs = zip(rule.sigmas, printed.sigmas, strict=True)
    sigmas = tuple(best if f"{best:.3g}" == f"{sigma:.3g}" else sigma for best, sigma in pairs)
    return replace(rule, sigmas=sigmas)


def chosen_as_in_paper(epsilon: float, curve: Floats, *, order: float) -> ReleaseNoise:
    """β and σ_SS as the paper chooses them for one round: on the votes themselves.

    β runs over the multiples of 0.01/λ below 1/(2λ), each with its best σ_SS; the least mean plus
    two standard deviations wins.
    """

    def published(noise: ReleaseNoise) -> float:
        found = sanitized(epsilon, [curve], noise, exact=False)
        return (found.epsilon or math.inf) + 2.0 * found.sd

    return min((by_the_rule(order, [at], [curve]) for at in range(1, 50)), key=published)
