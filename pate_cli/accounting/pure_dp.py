"""Many answers of pure differential privacy, composed exactly.

k adaptively chosen ε0-DP answers are together (ε, δ)-DP for every ε at

  δ(ε) = Σ_l C(k, l) P0^{k−l} P1^l (1 − e^{ε − (k − 2l) ε0})₊,   P0 = 1/(1 + e^{−ε0}), P1 = 1 − P0,

the curve of k rounds of randomised response, and no smaller δ holds for all such answers (Kairouz,
Oh and Viswanath 2015, "The Composition Theorem for Differential Privacy", Theorem 3.3). At
δ = 0 that is basic composition, ε = k ε0.
"""

from __future__ import annotations

import numpy as np
from scipy.special import gammaln

from pate_cli.accounting.domain import check_delta, check_nonnegative, check_positive
from pate_cli.errors import ParameterError

__all__ = ["pure_delta", "pure_epsilon"]

# The logs of the binomial weights carry at most this relative error for k up to 1e7.
_RELATIVE_SLACK = 1e-6
_TOLERANCE = 1e-12


def pure_delta(*, answers: int, each: float, epsilon: float) -> float:
    """δ(ε) of `answers` adaptive answers that are `each`-DP, rounded up by 1e-6 of itself.

    Args:
        answers: k ≥ 1.
        each: ε0 > 0, nats.
        epsilon: ε ≥ 0, nats.

    Raises:
        ParameterError: an argument outside its range.
    """
    each, epsilon = check_positive("each", each), check_nonnegative("epsilon", epsilon)
    if answers < 1:
        raise ParameterError(f"answers must be at least 1, got {answers}")
    flips = np.arange(answers // 2 + 1, dtype=np.float64)
    loss = (answers - 2.0 * flips) * each
    flips, loss = flips[loss > epsilon], loss[loss > epsilon]
    log_weight = (
        gammaln(answers + 1.0)
        - gammaln(flips + 1.0)
        - gammaln(answers - flips + 1.0)
        - flips * np.logaddexp(0.0, each)
        - (answers - flips) * np.logaddexp(0.0, -each)
    )
    delta = float(np.sum(np.exp(log_weight) * -np.expm1(epsilon - loss)))
    return min(delta * (1.0 + _RELATIVE_SLACK), 1.0)


def pure_epsilon(*, answers: int, each: float, delta: float) -> float:
    """An ε at which `answers` adaptive `each`-DP answers have at most the given δ.

    Bisection on a bracket whose upper end is always valid, at most k ε0; that end is returned,
    within 1e-12 relative of the smallest.

    Args:
        answers: k ≥ 1.
        each: ε0 > 0, nats.
        delta: δ in (0, 1).

    Raises:
        ParameterError: an argument outside its range.
    """
    delta = check_delta(delta)
    if pure_delta(answers=answers, each=each, epsilon=0.0) <= delta:
        return 0.0
    low, high = 0.0, answers * each
    while high - low > _TOLERANCE * high:
        middle = (low + high) / 2.0
        if pure_delta(answers=answers, each=each, epsilon=middle) > delta:
            low = middle
        else:
            high = middle
    return high
