"""A promise for every vote file: release the labels by a coin whose chance makes (ε, δ) hold.

Public and fixed before the first vote: ε, δ, the rows, a few Rényi orders, m distances, and
η ∈ (0, ε]. With probability p(D) all labels M(D) are released, otherwise "refused" and nothing
else.
A *profile* u^λ_d(D), d = 0 … m − 1, bounds what the labels cost at D and, from afar, at others:

  (P1) D_λ(M(D) ‖ M(D')) ≤ u^λ_0(D) for every neighbour D',
  (P2) u^λ_d(D') ≤ u^λ_{d+1}(D) for neighbours D, D'.

With conv(λ, δ) of `conversion` and x_m = log δ, for d = m − 1, …, 0

  x_d = min{ log(1 − e^{−η}(1 − e^{x_{d+1}})),
             max( log δ, min(0, max over λ of (1 − 1/λ)(x_{d+1} + ε − conv(λ, δ) − u^λ_d(D))) ) },

and p(D) = e^{x_0}. Then for all neighbours (a) the whole, refusal included, is (ε, δ)-DP, and (b)
Pr_D[refused] ≤ e^η Pr_{D'}[refused]. The proof is in THEORY.md, section 10. One direction of the
divergence is enough, and nothing here is smooth, sanitized, or chosen on the votes.

The idea is that of propose-test-release (Dwork and Lei 2009; Redberg, Zhu and Wang 2023), with the
noisy test replaced by the best coin, as Desfontaines, Voss, Gipson and Mandayam (2022) do for
partition selection.
"""

from __future__ import annotations

import math

import numpy as np

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.core.arrays import Floats, each_once
from pate_cli.core.checks import check_delta, check_orders, check_positive
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError

DISTANCES = 64
"""m: so many distances lose less than 1% in ε for .5 ≤ ε ≤ 4."""

_ORDERS = 8
# Of 2 log(1/δ)/ε, the scale of the best order: the first order and the ratio of last to first.
_LEAST_SHARE, _RANGE = 0.2, 6.0
_LEAST_ORDER = 1.25
_SHAPE = "a profile must hold numbers ≥ 0, a row for each of the orders"


@dataclass(frozen=True)
class Coin:
    """The two sides of the coin, in logarithms, so that neither loses digits near certainty.

    Attributes:
        log_pass: log p(D), ≤ 0. SECRET.
        log_refuse: log (1 − p(D)), < 0. SECRET.
    """

    log_pass: float
    log_refuse: float

    @property
    def chance(self) -> float:
        """p(D). SECRET."""
        return math.exp(self.log_pass)


def public_orders(*, epsilon: float, delta: float) -> Floats:
    """Λ for a target: eight orders around the best one, in steps of a quarter, ascending.

    They lose less than 1% in ε against fifty orders for .5 ≤ ε ≤ 4.

    Args:
        epsilon: target ε > 0, nats.
        delta: δ in (0, 1).
    """
    scale = 2.0 * -math.log(check_delta(delta)) / check_positive("epsilon", epsilon)
    ladder = _LEAST_SHARE * scale * _RANGE ** (np.arange(_ORDERS) / (_ORDERS - 1.0))
    return each_once(np.maximum(1.0 + np.round(4.0 * ladder) / 4.0, _LEAST_ORDER))


def passing_coin(
    profile: Floats, *, orders: Floats, epsilon: float, delta: float, refusal_epsilon: float
) -> Coin:
    """p(D) for a profile.

    Args:
        profile: u^λ_d ≥ 0, [orders, distances], nats; SECRET unless it is of no votes. Infinity
            stands for "unknown".
        orders: Rényi orders λ > 1 fixed beforehand, [orders].
        epsilon: target ε > 0, nats.
        delta: δ in (0, 1).
        refusal_epsilon: η in (0, ε], nats: what a refusal costs.

    Returns:
        The coin as the formula has it; whoever draws it keeps a little of ε and δ for round-off.

    Raises:
        ParameterError: a number out of range, or a profile that is negative, NaN or of another
            shape.
    """
    curve = np.asarray(profile, dtype=np.float64)
    if curve.ndim != 2:
        raise ParameterError(_SHAPE)
    log_pass, log_refuse = _recursion(
        curve, orders=orders, epsilon=epsilon, delta=delta, refusal_epsilon=refusal_epsilon
    )
    return Coin(float(log_pass), float(log_refuse))


def passing_chances(
    profiles: Floats, *, orders: Floats, epsilon: float, delta: float, refusal_epsilon: float
) -> Floats:
    """p(D) of many profiles at once, [...]; profiles [..., orders, distances], as `passing_coin`.

    SECRET unless the profiles are of no votes.
    """
    log_pass, _ = _recursion(
        np.asarray(profiles, dtype=np.float64),
        orders=orders,
        epsilon=epsilon,
        delta=delta,
        refusal_epsilon=refusal_epsilon,
    )
    return np.exp(log_pass)


def _recursion(
    profiles: Floats, *, orders: Floats, epsilon: float, delta: float, refusal_epsilon: float
) -> tuple[Floats, Floats]:
    """log p and log (1 − p) of every profile, by the recursion above."""
    orders, delta = check_orders(orders), check_delta(delta)
    check_positive("epsilon", epsilon)
    if not 0.0 < refusal_epsilon <= epsilon:
        raise ParameterError(
            f"`refusal_epsilon` must be above 0 and at most the target, got {refusal_epsilon}"
        )
    if profiles.shape[-2] != orders.size or not np.all(profiles >= 0.0):
        raise ParameterError(_SHAPE)
    room = epsilon - conversion_cost(orders, delta=delta)
    share = 1.0 - 1.0 / orders
    least = math.log(delta)
    log_pass = np.full(profiles.shape[:-2], least)
    log_refuse = np.full(profiles.shape[:-2], math.log1p(-delta))
    for distance in range(profiles.shape[-1] - 1, -1, -1):
        reached = share * (log_pass[..., None] + room - profiles[..., distance])
        by_cost = np.minimum(np.maximum(reached.max(axis=-1), least), 0.0)
        log_refuse = log_refuse - refusal_epsilon
        by_refusal = np.log1p(-np.exp(log_refuse))
        dearer = by_cost < by_refusal
        log_pass = np.where(dearer, by_cost, by_refusal)
        # Where it is not dearer, the cost may be a certainty, whose other side has no logarithm.
        log_refuse = np.where(dearer, np.log(-np.expm1(np.minimum(by_cost, -1e-300))), log_refuse)
    return log_pass, log_refuse
