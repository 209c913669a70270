"""The sanitized release of Table 2: as the paper charges it, and as it has to be charged."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from pate_cli import published
from pate_cli.accounting.gnss import gnss_rdp, largest_beta
from pate_cli.core.arrays import Floats
from pate_cli.reproduction.rows import PrintedRelease
from pate_cli.reproduction.vote_folder import Asked

# Every β of Table 2 is a multiple of 0.01 over the order, rounded to four decimals.
_STEP = 0.01
_PRINTED_UNIT = 1e-4
# Votes that no teacher can change have no sensitivity; σ_SS must be finite all the same.
_LEAST_SMOOTH = 1e-12


@dataclass(frozen=True)
class ReleaseParameters:
    """λ of the release, and β and σ_SS of every round."""

    order: float
    betas: tuple[float, ...]
    sigmas: tuple[float, ...]


@dataclass(frozen=True)
class PublishedRelease:
    """One release of the expected ε.

    Attributes:
        parameters: λ, β, σ_SS.
        smooth: SS_β of every round, nats.
        draw: what the noisy values themselves cost, nats; inf when β is too large for the order.
        mean, sd: of the ε that is released.
    """

    parameters: ReleaseParameters
    smooth: tuple[float, ...]
    draw: float
    mean: float
    sd: float


def release_curves(rounds: Sequence[Asked], order: float) -> list[Floats]:
    """Expected local sensitivity by distance (Theorem 24) of every round, [teachers] each.

    Raises:
        ValidityError: C5 or C6 fails.
        ParameterError: an argument outside its range.
    """
    return [
        published.expected_local_sensitivity(
            asked.votes.counts,
            **asked.parameters,
            order=order,
            teachers=asked.votes.teachers,
            scores=asked.scores,
        )
        for asked in rounds
    ]


def sanitized(
    epsilon: float, curves: Sequence[Floats], parameters: ReleaseParameters, *, exact: bool
) -> PublishedRelease:
    """Mean and standard deviation of ε + Σ_rounds SS_β·N(0, σ_SS²) + what the draws cost.

    Args:
        epsilon: expected ε of the labels at the order.
        curves: local sensitivity by distance of every round.
        parameters: λ, β, σ_SS; λβ < ½ unless `exact`.
        exact: charge each draw its exact divergence instead of what Theorem 23 claims.
    """
    order = parameters.order
    smooth, draw, variance = [], 0.0, 0.0
    for curve, beta, sigma in zip(curves, parameters.betas, parameters.sigmas, strict=True):
        smooth.append(published.smooth_sensitivity(curve, beta=beta))
        variance += (smooth[-1] * sigma) ** 2
        if not exact:
            draw += published.gnss_rdp(beta=beta, sigma=sigma, order=order)
        elif beta < largest_beta(order):
            draw += gnss_rdp(beta=beta, sigma=sigma, order=order)
        else:
            draw = math.inf
    return PublishedRelease(parameters, tuple(smooth), draw, epsilon + draw, math.sqrt(variance))


def unrounded(printed: PrintedRelease, curves: Sequence[Floats]) -> ReleaseParameters:
    """The parameters behind the printed ones, wherever the paper's own rule leads to them.

    β: the multiple of 0.01/λ that is printed so, whose smooth sensitivity is the printed one.
    σ_SS: the best for it, (λe^{2β}/SS)^{1/3}. Where a rule leads elsewhere, the printed value.
    """
    betas, sigmas = [], []
    for beta, sigma, curve in zip(printed.betas, printed.sigmas, curves, strict=True):
        near = round(beta * printed.order / _STEP) * _STEP / printed.order
        betas.append(near if abs(near - beta) <= _PRINTED_UNIT / 2.0 else beta)
        best = _best_sigma(curve, order=printed.order, beta=betas[-1])
        sigmas.append(best if f"{best:.3g}" == f"{sigma:.3g}" else sigma)
    return ReleaseParameters(printed.order, tuple(betas), tuple(sigmas))


def chosen_as_in_paper(epsilon: float, curve: Floats, *, order: float) -> ReleaseParameters:
    """β and σ_SS as the paper chooses them for one round: on the votes themselves.

    β runs over the multiples of 0.01/λ below 1/(2λ), each with its best σ_SS; the least mean plus
    two standard deviations wins.
    """

    def tried(percent: int) -> PublishedRelease:
        beta = percent * _STEP / order
        parameters = ReleaseParameters(
            order, (beta,), (_best_sigma(curve, order=order, beta=beta),)
        )
        return sanitized(epsilon, [curve], parameters, exact=False)

    return min(map(tried, range(1, 50)), key=lambda found: found.mean + 2.0 * found.sd).parameters


def _best_sigma(curve: Floats, *, order: float, beta: float) -> float:
    """The σ_SS that minimises λe^{2β}/σ² + 2σ·SS: mean plus two standard deviations."""
    smooth = max(published.smooth_sensitivity(curve, beta=beta), _LEAST_SMOOTH)
    return float((order * math.exp(2.0 * beta) / smooth) ** (1.0 / 3.0))
