"""The ε of mechanisms of two kinds together: Rényi or Gaussian curves, and stated (ε, δ)'s.

Every (ε_i, δ_i)-DP step is a post-processing of this pair: with probability δ_i an outcome that
gives the database away, otherwise randomised response at ε_i (Kairouz, Oh and Viswanath, ICML
2015). Let all steps of that kind be drawn first. Nothing is given away but with probability Σδ_i,
and what is left of them has privacy loss l = Σ ±ε_i, which both laws know. Given it, the other
steps are an adaptive composition whose hockey-stick divergence at any real x is at most

    H(x) = min(1, min over λ of C_λ e^{(λ − 1)(ρ(λ) − x)}, Φ(μ/2 − x/μ) − e^x Φ(−μ/2 − x/μ)),

ρ their Rényi cost, C_λ = (1/λ)(1 − 1/λ)^{λ − 1} (section 8 of THEORY.md), μ their Gaussian
one, where they have it. The divergence of a product is the mean over the first factor's law:

    δ(ε) = Σ_l P[l] · H(ε − l) + Σ δ_i,                                                        (J)

and (ε, δ(ε)) holds for all of it together (THEORY.md, section 20). Without other steps H(x) is
(1 − e^x)₊, and (J) the optimal composition of unequal randomised responses.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln, log_ndtr, logsumexp

from pate_cli.accounting.conversion import conversion_cost, gaussian_epsilon
from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_delta, check_orders
from pate_cli.core.errors import ParameterError

_ROUNDING = 1e-9
_MOST_ATOMS = 200_000


@dataclass(frozen=True)
class Curves:
    """What the steps cost that are known at all δ; no steps without orders and without μ.

    Attributes:
        orders: Rényi orders > 1, [orders].
        rdp: the cost at each, [orders], nats; inf where nothing is known.
        mu: μ of Gaussian DP; None where it has none.
    """

    orders: Floats
    rdp: Floats
    mu: float | None = None

    def log_hockey_stick(self, x: Floats) -> Floats:
        """log H(x) at real x, [points]."""
        orders = self.orders
        known = np.isfinite(self.rdp)
        slope = orders[known] - 1.0
        log_c = slope * np.log1p(-1.0 / orders[known]) - np.log(orders[known])
        best = np.minimum(
            np.min(log_c + slope * (self.rdp[known] - x[:, None]), axis=1, initial=0.0), 0.0
        )
        return best if self.mu is None else np.minimum(best, _log_gaussian(x, self.mu))

    def epsilon(self, *, delta: float) -> float:
        """The least ε ≥ 0 of these steps alone, nats."""
        known = np.isfinite(self.rdp)
        cost = self.rdp[known] + conversion_cost(self.orders[known], delta=delta)
        renyi = max(float(np.min(cost, initial=np.inf)), 0.0)
        return renyi if self.mu is None else min(renyi, gaussian_epsilon(mu=self.mu, delta=delta))


def epsilon_together(stated: Floats, curves: Curves | None, *, delta: float) -> float:
    """The least ε by (J), for δ beside what the stated parts add, within 1e-12 relative.

    Args:
        stated: ε_i ≥ 0 of the parts that are (ε_i, δ_i)-DP, [parts], nats.
        curves: the other parts; None without any.
        delta: δ in (0, 1) that is left beside Σ δ_i.

    Raises:
        ParameterError: numbers out of range, or parts of more different ε than can be told apart.
    """
    delta = check_delta(delta)
    stated = np.asarray(stated, dtype=np.float64)
    if not np.all(np.isfinite(stated) & (stated >= 0.0)):
        raise ParameterError("every stated epsilon must be finite and at least 0")
    if curves is not None:
        check_orders(curves.orders)
    losses, log_chances, flat = _atoms(stated)
    wanted = math.log(delta) + math.log1p(-_ROUNDING)

    def fits(epsilon: float) -> bool:
        x = epsilon - flat - losses
        if curves is None:
            # (1 - e^x)+, and 0 where x is not below 0
            below = x < 0.0
            if not below.any():
                return True
            logs = log_chances[below] + np.log(-np.expm1(x[below]))
        else:
            logs = log_chances + curves.log_hockey_stick(x)
        return float(logsumexp(logs)) <= wanted

    high = float(np.sum(stated)) + (0.0 if curves is None else curves.epsilon(delta=delta))
    high = high * (1.0 + _ROUNDING) + _ROUNDING
    if not fits(high):  # by rounding alone, and it holds all the same
        return high
    low = 0.0
    if fits(low):
        return low
    while high - low > 1e-12 * high:
        middle = (low + high) / 2.0
        low, high = (low, middle) if fits(middle) else (middle, high)
    return high


def _log_gaussian(x: Floats, mu: float) -> Floats:
    """log of Φ(μ/2 − x/μ) − e^x Φ(−μ/2 − x/μ), as in `conversion.gaussian_delta`."""
    first = log_ndtr(mu / 2.0 - x / mu)
    second = x + log_ndtr(-mu / 2.0 - x / mu)
    with np.errstate(divide="ignore"):
        found: Floats = first + np.log(-np.expm1(np.minimum(second - first, 0.0)))
    return found


def _atoms(stated: Floats) -> tuple[Floats, Floats, float]:
    """Losses of all randomised responses together with the logs of their chances; what is flat.

    k equal ones lose (k − 2j)ε with the chance that j ~ Bin(k, 1/(1 + e^ε)) has. Where different
    ones are too many to be told apart the dearest are, and the others lose all of their ε.
    """
    losses, logs, flat = np.zeros(1), np.zeros(1), 0.0
    values, counts = np.unique(stated[stated > 0.0], return_counts=True)
    for value, count in zip(values[::-1].tolist(), counts[::-1].tolist(), strict=True):
        if losses.size * (count + 1) > _MOST_ATOMS:
            flat += count * value
            continue
        against = np.arange(count + 1.0)
        chances = (
            gammaln(count + 1.0)
            - gammaln(against + 1.0)
            - gammaln(count - against + 1.0)
            - against * value
            - count * math.log1p(math.exp(-value))
        )
        losses = (losses[:, None] + (count - 2.0 * against) * value).ravel()
        logs = (logs[:, None] + chances).ravel()
    return losses, logs, flat
