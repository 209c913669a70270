"""The sanitized release of the expected ε in Table 2, with β and σ_SS as the paper chooses them.

The cost of the release is computed in two ways: as in the paper, and correctly.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from pate_cli.accounting.sensitivity import gnss_rdp, largest_beta
from pate_cli.core.arrays import Floats
from pate_cli.paper.costs import published_gnss_rdp


def smooth_sensitivity(curve: Floats, *, beta: float) -> float:
    """Return the smooth sensitivity SS_β = max_d e^{−βd}·curve[d] (Algorithm 5), nats.

    Args:
        curve: the local sensitivity at each distance d = 0, 1, …, [distances], at least 0, nats.
        beta: smoothness β > 0.
    """
    return float((np.exp(-beta * np.arange(curve.size)) * curve).max())


# In Table 2 every β times its order is a multiple of 0.01, up to rounding.
_STEP = 0.01
# The smallest smooth sensitivity for which a σ_SS is chosen, so that σ_SS is finite.
_LEAST_SMOOTH = 1e-12


@dataclass(frozen=True)
class ReleaseNoise:
    """The order λ of a release, and the β and σ_SS of each of its runs (`betas` and `sigmas`)."""

    order: float
    betas: tuple[float, ...]
    sigmas: tuple[float, ...]


@dataclass(frozen=True)
class PublishedRelease:
    """A sanitized release of the expected ε, with its mean and standard deviation.

    Attributes:
        noise: the order λ, and β and σ_SS of each run.
        smooth: the smooth sensitivity SS_β of each run, nats.
        epsilon: the mean of the released ε over its noise, nats; None if β is so large for the
            order that ε is infinite.
        sd: the standard deviation of the released ε, nats.
    """

    noise: ReleaseNoise
    smooth: tuple[float, ...]
    epsilon: float | None
    sd: float


def sanitized(
    epsilon: float, curves: Sequence[Floats], noise: ReleaseNoise, *, exact: bool
) -> PublishedRelease:
    """Return mean and standard deviation of the sanitized ε, which is published in place of ε.

    The sanitized ε is ε + Σ_runs SS_β·N(0, σ_SS²), plus the RDP cost of publishing it.

    Args:
        epsilon: the expected ε of the labels, computed at the order λ of `noise` only, nats.
        curves: the local sensitivity of each run by distance, nats.
        noise: the order λ, and β and σ_SS of each run; λβ < ½ unless `exact`.
        exact: how the RDP cost of the noise N(0, σ_SS²) is computed. If `exact` is true, the
            function uses the exact worst-case RDP cost of this noise. If `exact` is false, the
            function uses the RDP cost that Theorem 23 of the paper claims for this noise; the
            actual RDP cost may be larger.
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
    """Return β and σ_SS of each run as the paper chooses them: β is 0.01·percent/λ.

    For each β the best σ_SS is (λe^{2β}/SS)^{1/3}. The best σ_SS is the σ that minimises λe^{2β}/σ²
    + 2σ·SS. For one run, λe^{2β}/σ² + 2σ·SS is the mean of the released ε plus two of its standard
    deviations, without the terms that do not depend on σ.
    """
    betas = tuple(percent * _STEP / order for percent in percents)
    sigmas = []
    for beta, curve in zip(betas, curves, strict=True):
        smooth = max(smooth_sensitivity(curve, beta=beta), _LEAST_SMOOTH)
        sigmas.append((order * math.exp(2.0 * beta) / smooth) ** (1.0 / 3.0))
    return ReleaseNoise(order, betas, tuple(sigmas))


def unrounded(printed: ReleaseNoise, curves: Sequence[Floats]) -> ReleaseNoise:
    """Return the printed β and σ_SS of each run with more digits, computed by `by_the_rule`.

    If the rule of the paper gives a σ_SS that does not round to the printed σ_SS, the result has
    the printed σ_SS.
    """
    percents = [round(beta * printed.order / _STEP) for beta in printed.betas]
    rule = by_the_rule(printed.order, percents, curves)
    pairs = zip(rule.sigmas, printed.sigmas, strict=True)
    sigmas = tuple(best if f"{best:.3g}" == f"{sigma:.3g}" else sigma for best, sigma in pairs)
    return replace(rule, sigmas=sigmas)


def chosen_as_in_paper(epsilon: float, curve: Floats, *, order: float) -> ReleaseNoise:
    """Return β and σ_SS of one run as the paper chooses them, after looking at the votes.

    The function tries every multiple of 0.01/λ below 1/(2λ) as β, each with the σ_SS that
    `by_the_rule` computes for this β. The function returns the β and σ_SS with
    the smallest mean plus two standard deviations of the released ε.
    """

    def published(noise: ReleaseNoise) -> float:
        found = sanitized(epsilon, [curve], noise, exact=False)
        return (found.epsilon or math.inf) + 2.0 * found.sd

    return min((by_the_rule(order, [at], [curve]) for at in range(1, 50)), key=published)
