"""What a textbook makes of the same labels: composition that looks at no vote and at no argmax.

Every noisy number is taken as seen. Beside the ε of section 9 of THEORY.md this says how much the
analysis of the argmax saves, and other people's libraries can check it (section 18).

  Gaussian   k steps of noise multiplier z have D_λ ≤ kλ/(2z²), at the orders and with the
             conversion of Google's dp-accounting (Canonne, Kamath and Steinke 2020, Proposition
             12); and exactly the (ε, δ) of one with μ² = Σ k/z² (Balle and Wang 2018, Theorem 8),
             the limit of any library's privacy loss distributions.
  (ε0, δ0)   basic composition, (Σ kε0, Σ kδ0), and advanced, with δ' = δ − Σ kδ0 (Dwork and Roth
             2014, Theorem 3.20): √(2 log(1/δ') Σ kε0²) + Σ kε0(e^{ε0} − 1).

The second is Theorem 3.20 for steps that differ: the loss is a sum of bounded increments, each with
a mean of at most ε0(e^{ε0} − 1), to which Azuma's inequality applies as it stands.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from pate_cli.accounting.conversion import conversion_cost, gaussian_epsilon
from pate_cli.core.checks import check_delta, check_nonnegative, check_positive
from pate_cli.core.errors import ParameterError

__all__ = ["ORDERS", "Bounded", "Gaussian", "Step", "Textbook", "textbook"]

ORDERS: Final = (
    *(1.0 + tenth / 10.0 for tenth in range(1, 100)),
    *(float(order) for order in range(11, 64)),
    *(128.0, 256.0, 512.0, 1024.0),
)
"""Rényi orders that dp-accounting tries."""

# Of sums and products of a few floating-point numbers, relative.
_ROUND_OFF: Final = 1e-12


@dataclass(frozen=True)
class Gaussian:
    """Numbers with normal noise, seen in full.

    Attributes:
        count: k ≥ 0, how often.
        noise_multiplier: z > 0, the standard deviation in units of the L2 sensitivity.
    """

    count: int
    noise_multiplier: float

    def __post_init__(self) -> None:
        _check_count(self.count)
        check_positive("noise_multiplier", self.noise_multiplier)


@dataclass(frozen=True)
class Bounded:
    """Answers of which each is (ε0, δ0)-DP.

    Attributes:
        count: k ≥ 0, how often.
        epsilon: ε0 ≥ 0, nats.
        delta: δ0 in [0, 1).
    """

    count: int
    epsilon: float
    delta: float = 0.0

    def __post_init__(self) -> None:
        _check_count(self.count)
        check_nonnegative("epsilon", self.epsilon)
        if not 0.0 <= self.delta < 1.0:
            raise ParameterError(f"delta of each step must be in [0, 1), got {self.delta}")


Step = Gaussian | Bounded


@dataclass(frozen=True)
class Textbook:
    """ε of a composition at a δ, nats, by each theorem; None where it does not apply.

    Attributes:
        rdp, rdp_order: Rényi composition of Gaussian steps, and the order of the smallest.
        exact: the smallest there is for Gaussian steps.
        basic, advanced: of steps that are (ε0, δ0)-DP.
    """

    rdp: float | None = None
    rdp_order: float | None = None
    exact: float | None = None
    basic: float | None = None
    advanced: float | None = None


def textbook(steps: Sequence[Step], *, delta: float) -> Textbook:
    """Upper bounds for steps of one kind; none at all where both kinds are mixed.

    Args:
        steps: what is composed, chosen adaptively or not; nothing costs nothing.
        delta: δ of the whole, in (0, 1).

    Raises:
        ParameterError: a number outside its range.
    """
    delta = check_delta(delta)
    taken = [step for step in steps if step.count]
    gaussian = [step for step in taken if isinstance(step, Gaussian)]
    bounded = [step for step in taken if isinstance(step, Bounded)]
    if gaussian and bounded:
        return Textbook()
    if bounded:
        return _bounded(bounded, delta)
    return _gaussian(gaussian, delta)


def _gaussian(steps: Sequence[Gaussian], delta: float) -> Textbook:
    mu_squared = math.fsum(
        step.count / step.noise_multiplier / step.noise_multiplier for step in steps
    )
    if mu_squared == 0.0:
        return Textbook(rdp=0.0, exact=0.0)
    if not math.isfinite(mu_squared):
        return Textbook()
    mu_squared *= 1.0 + _ROUND_OFF
    orders = np.array(ORDERS)
    rdp = orders * mu_squared / 2.0
    epsilon = np.maximum(rdp + conversion_cost(orders, delta=delta), 0.0)
    # δ ≤ √(1 − e^{−KL}) [BH79], and KL is at most any Rényi divergence of order above 1.
    epsilon[delta**2 + np.expm1(-rdp) > 0.0] = 0.0
    best = int(np.argmin(epsilon))
    return Textbook(
        rdp=float(epsilon[best]),
        rdp_order=float(orders[best]),
        exact=gaussian_epsilon(mu=math.sqrt(mu_squared), delta=delta),
    )


def _bounded(steps: Sequence[Bounded], delta: float) -> Textbook:
    spent = math.fsum(step.count * step.delta for step in steps) * (1.0 + _ROUND_OFF)
    if spent > delta:
        return Textbook()
    basic = math.fsum(step.count * step.epsilon for step in steps) * (1.0 + _ROUND_OFF)
    if spent == delta:
        return Textbook(basic=basic)
    squares = math.fsum(step.count * step.epsilon * step.epsilon for step in steps)
    drift = math.inf
    if max(step.epsilon for step in steps) < 700.0:  # e^700 is about the largest number
        drift = math.fsum(step.count * step.epsilon * math.expm1(step.epsilon) for step in steps)
    advanced = math.sqrt(2.0 * -math.log(delta - spent) * squares) + drift
    advanced *= 1.0 + _ROUND_OFF
    finite = [value if math.isfinite(value) else None for value in (basic, advanced)]
    return Textbook(basic=finite[0], advanced=finite[1])


def _check_count(count: int) -> None:
    if isinstance(count, bool) or not isinstance(count, int | np.integer) or count < 0:
        raise ParameterError(f"count must be a whole number of at least 0, got {count!r}")
