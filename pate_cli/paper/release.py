"""The expected cost of a Confident-GNMax run, and its sanitized release, as in Table 2.

"The expectations are taken over the student's queries and outcomes of the first step": every query
pays for the check, and for the answer times the probability of an answer. An expectation is not a
guarantee: the actual answers may cost more, and the probability itself depends on the votes.

The check compares a score with T: the highest count in Algorithm 1, or max_j(n_j − τ p_j) in
Algorithm 2 (Interactive-GNMax).

The release is charged in two ways: as in the paper, and correctly.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from pate_cli.accounting.sensitivity import gnss_rdp, largest_beta
from pate_cli.core.arrays import Counts, Floats
from pate_cli.paper.costs import (
    answer_chance,
    gnmax_rdp,
    published_gnss_rdp,
    threshold_local_sensitivity,
    threshold_rdp,
)
from pate_cli.paper.sensitivity import gnmax_local_sensitivity


def confident_steps(
    counts: Counts, scores: Floats, noise: Mapping[str, float], orders: ArrayLike
) -> dict[str, Floats]:
    """Return the expected RDP cost of each query by step: the check, and Pr[answer] times GNMax.

    Args:
        counts: votes [queries, classes].
        scores: the scores that the check compares with T, [queries], in votes.
        noise: `threshold` T and the standard deviations `sigma1` of the check's noise and `sigma2`
            of GNMax's, in votes.
        orders: Rényi orders λ > 1.

    Returns:
        "threshold" and "argmax", [orders, queries] each, nats. SECRET: they depend on the votes.
    """
    test = {"threshold": noise["threshold"], "sigma": noise["sigma1"]}
    answer = gnmax_rdp(counts, noise["sigma2"], orders)
    return {
        "threshold": threshold_rdp(scores, **test, orders=orders),
        "argmax": answer_chance(scores, **test) * answer,
    }


def expected_local_sensitivity(
    counts: Counts, scores: Floats, noise: Mapping[str, float], *, order: float, teachers: int
) -> Floats:
    """Return the local sensitivity of a Confident run by distance, as Table 2 computes it.

    Theorem 24: Σ_queries max{LS̃ : dist ≤ d}, of the check on every query and of GNMax times
    Pr[answer]. The paper treats this probability as fixed, although it also depends on the votes.
    So the sum is an expectation over the first step and no strict bound.

    Args:
        counts: whole votes [queries, classes], each row at most `teachers`.
        scores: the scores that the check compares with T, [queries], in votes.
        noise: `threshold` T and the standard deviations `sigma1` of the check's noise and `sigma2`
            of GNMax's, in votes; σ2 from 0.1 to 1e9.
        order: Rényi order λ > 1.
        teachers: the number of teachers; the curve has as many distances, 0 … teachers − 1.

    Returns:
        [teachers], nats. SECRET: it depends on the votes.

    Raises:
        ParameterError: σ2 is out of range, or scores are too far from T.
        ValidityError: C5 or C6 fails at (σ2, m, λ).
    """
    test = {"threshold": noise["threshold"], "sigma": noise["sigma1"]}
    chance = answer_chance(scores, **test)
    check = threshold_local_sensitivity(scores, **test, order=order, teachers=teachers)
    return check + gnmax_local_sensitivity(
        counts, sigma=noise["sigma2"], order=order, teachers=teachers, weights=chance
    )


def smooth_sensitivity(curve: Floats, *, beta: float) -> float:
    """Return SS_β = max_d e^{−βd}·curve[d], in the curve's units. Algorithm 5, Theorem 24.

    Args:
        curve: local sensitivity by distance d = 0, 1, …, [distances], at least 0.
        beta: smoothness β > 0.
    """
    return float((np.exp(-beta * np.arange(curve.size)) * curve).max())


# Every β of Table 2 is a multiple of 0.01 over the order, rounded to four decimals.
_STEP = 0.01
# Votes that no teacher can change have sensitivity 0, but σ_SS must be finite.
_LEAST_SMOOTH = 1e-12


@dataclass(frozen=True)
class ReleaseNoise:
    """The order λ of a release, and the β and σ_SS of every round."""

    order: float
    betas: tuple[float, ...]
    sigmas: tuple[float, ...]


@dataclass(frozen=True)
class PublishedRelease:
    """One release of the expected ε.

    Attributes:
        noise: λ, β and σ_SS.
        smooth: SS_β of every round, nats.
        epsilon, sd: mean and standard deviation of the released ε over the draw, nats; None if β is
            so large for the order that ε is infinite.
    """

    noise: ReleaseNoise
    smooth: tuple[float, ...]
    epsilon: float | None
    sd: float


def sanitized(
    epsilon: float, curves: Sequence[Floats], noise: ReleaseNoise, *, exact: bool
) -> PublishedRelease:
    """Return mean and sd of ε + Σ_rounds SS_β·N(0, σ_SS²) + the cost of the draws.

    Args:
        epsilon: expected ε of the labels at the order.
        curves: local sensitivity by distance of every round.
        noise: λ, β, σ_SS; λβ < ½ unless `exact`.
        exact: charge each draw its exact divergence instead of the claim of Theorem 23.
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
    """Return the paper's own choice: β = 0.01·percent/λ, and the best σ_SS for it in each round.

    The best σ_SS is (λe^{2β}/SS)^{1/3}, which minimises λe^{2β}/σ² + 2σ·SS, the mean plus two
    standard deviations.
    """
    betas = tuple(percent * _STEP / order for percent in percents)
    sigmas = []
    for beta, curve in zip(betas, curves, strict=True):
        smooth = max(smooth_sensitivity(curve, beta=beta), _LEAST_SMOOTH)
        sigmas.append((order * math.exp(2.0 * beta) / smooth) ** (1.0 / 3.0))
    return ReleaseNoise(order, betas, tuple(sigmas))


def unrounded(printed: ReleaseNoise, curves: Sequence[Floats]) -> ReleaseNoise:
    """Return the unrounded parameters behind printed ones, by the paper's own rule.

    If the rule gives another σ_SS than the printed one, the printed σ_SS is kept.
    """
    percents = [round(beta * printed.order / _STEP) for beta in printed.betas]
    rule = by_the_rule(printed.order, percents, curves)
    pairs = zip(rule.sigmas, printed.sigmas, strict=True)
    sigmas = tuple(best if f"{best:.3g}" == f"{sigma:.3g}" else sigma for best, sigma in pairs)
    return replace(rule, sigmas=sigmas)


def chosen_as_in_paper(epsilon: float, curve: Floats, *, order: float) -> ReleaseNoise:
    """Return β and σ_SS as the paper chooses them for one round: after looking at the votes.

    β runs over the multiples of 0.01/λ below 1/(2λ), each with its best σ_SS. The choice is the
    smallest mean plus two standard deviations.
    """

    def published(noise: ReleaseNoise) -> float:
        found = sanitized(epsilon, [curve], noise, exact=False)
        return (found.epsilon or math.inf) + 2.0 * found.sd

    return min((by_the_rule(order, [at], [curve]) for at in range(1, 50)), key=published)
