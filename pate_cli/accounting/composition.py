"""What k mechanisms cost together when each is (ε0, δ0)-DP, chosen adaptively or not.

  basic     (kε0, kδ0). Dwork and Roth (2014), Theorem 3.16 and Corollary B.2.
  optimal   the smallest ε that holds for every such mechanism. Kairouz, Oh and Viswanath, "The
            Composition Theorem for Differential Privacy" (ICML 2015), Theorem 3.3.

**Optimal.** Every (ε0, δ0)-DP pair is a post-processing of this one: with probability δ0 an
outcome that gives the database away, otherwise randomised response at ε0. Nothing is given away k
times with probability (1 − δ0)^k, so (ε, δ) holds for all such mechanisms if and only if

  1 − (1 − δ0)^k (1 − δ_k(ε)) ≤ δ,
  δ_k(ε) = Σ_ℓ C(k,ℓ) [e^{(k−ℓ)ε0} − e^ε e^{ℓε0}]₊ / (1 + e^{ε0})^k.

(Theorem 3.3 lists ε = (k − 2i)ε0; the formula at any ε is Murtagh and Vadhan, "The Complexity of
Computing the Optimal Composition of Differential Privacy" (2016), for equal mechanisms.) Here
δ_k(ε) = Σ_ℓ P_ℓ (1 − e^{ε − (k−2ℓ)ε0})₊ with ℓ ~ Bin(k, 1/(1 + e^{ε0})): positive terms, so no
cancellation. Only ℓ within √(½ k log(1/η)) of its mean are looked at, which Hoeffding's inequality
allows for η on either side; 2η is added. Their log P_ℓ are running sums of
log P_ℓ/P_{ℓ−1} = log((k − ℓ + 1)/ℓ) − ε0, normalised over the window, which can only raise them, so
neither log-factorials nor their rounding error at k = 10^6 appear. The ε returned is the upper end
of a bisection whose test leaves a relative 1e-9 of δ for rounding: never below the optimum.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from scipy.special import expit

from pate_cli.accounting.conversion import significant_up
from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_delta, check_nonnegative, check_whole
from pate_cli.core.errors import ParameterError, UnreachableError

Method: TypeAlias = Literal["basic", "optimal"]

_ROUNDING = 1e-9


@dataclass(frozen=True)
class Composition:
    """An (ε, δ) that holds for the whole composition, and how it was found.

    Attributes:
        epsilon: in nats, ≥ 0; +inf where a method says nothing.
        delta: in [0, 1).
        method: the theorem used.
    """

    epsilon: float
    delta: float
    method: Method


def basic_composition(k: int, *, epsilon: float, delta: float) -> Composition:
    """(kε0, kδ0).

    Args:
        k: number of mechanisms, ≥ 1.
        epsilon: ε0 of each, ≥ 0.
        delta: δ0 of each, in [0, 1).

    Raises:
        ParameterError: a number outside its range.
    """
    k, epsilon, delta = _checked(k, epsilon, delta)
    return Composition(_sum(k, epsilon), k * delta, "basic")


def optimal_composition(k: int, *, epsilon: float, delta: float, total_delta: float) -> Composition:
    """The smallest ε for the whole at a given δ, rounded up (see the module's text).

    Args:
        k: number of mechanisms, ≥ 1; time and memory grow with √k.
        epsilon: ε0 of each, ≥ 0.
        delta: δ0 of each, in [0, 1).
        total_delta: δ of the whole, in (0, 1).

    Raises:
        ParameterError: a number outside its range.
        UnreachableError: δ below 1 − (1 − δ0)^k, which no ε can repair.
    """
    k, epsilon, delta = _checked(k, epsilon, delta)
    rest = _what_is_left(k, delta, check_delta(total_delta))
    high = _sum(k, epsilon)
    if rest > 0.0 and 0.0 < high < math.inf:
        high = _smallest_epsilon(k, epsilon, rest, high)
    return Composition(high, total_delta, "optimal")


def best_composition(k: int, *, epsilon: float, delta: float, total_delta: float) -> Composition:
    """The statement to publish: `optimal_composition`, or kε0 where rounding leaves it above.

    Advanced composition and the Rényi divergence of randomised response, converted, are never
    better, by optimality. Arguments and errors as there.
    """
    optimal = optimal_composition(k, epsilon=epsilon, delta=delta, total_delta=total_delta)
    basic = basic_composition(k, epsilon=epsilon, delta=delta)
    if basic.epsilon <= optimal.epsilon:
        # Pure parts add up and nothing is given away but for 1 − (1 − δ0)^k ≤ δ, checked above.
        return Composition(basic.epsilon, total_delta, "basic")
    return optimal


def smallest_delta(k: int, *, delta: float) -> float:
    """1 − (1 − δ0)^k, rounded up: no δ below it is reachable at any ε.

    Args:
        k: number of mechanisms, ≥ 1.
        delta: δ0 of each, in [0, 1).
    """
    k, _, delta = _checked(k, 0.0, delta)
    return min(-math.expm1(k * math.log1p(-delta)) * (1.0 + 1e-12), 1.0)


@dataclass(frozen=True)
class _Responses:
    """The law of the privacy loss of k randomised responses, within a window.

    Attributes:
        losses: (k − 2ℓ)ε0, [window], decreasing.
        chances: P_ℓ, not below the truth, [window].
        outside: bound on the probability outside the window.
    """

    losses: Floats
    chances: Floats
    outside: float

    @classmethod
    def of(cls, k: int, epsilon: float, tail: float) -> _Responses:
        mean = k * float(expit(-epsilon))
        radius = math.sqrt(0.5 * k * -math.log(tail))
        low, high = max(math.floor(mean - radius), 0), min(math.ceil(mean + radius), k)
        count = np.arange(low, high + 1, dtype=np.float64)
        log_ratio = np.log((k - count[1:] + 1.0) / count[1:]) - epsilon
        log_chance = np.concatenate([[0.0], np.cumsum(log_ratio)])
        chances = np.exp(log_chance - log_chance.max())
        outside = tail * ((low > 0) + (high < k))
        return cls((k - 2.0 * count) * epsilon, chances / chances.sum(), outside)

    def delta(self, total_epsilon: float) -> float:
        """δ_k(ε), rounded up."""
        spared = np.minimum(total_epsilon - self.losses, 0.0)
        inside = float(np.sum(self.chances * -np.expm1(spared)))
        return min((inside + self.outside) * (1.0 + _ROUNDING), 1.0)


def _smallest_epsilon(k: int, epsilon: float, delta: float, high: float) -> float:
    """Bisection between 0 and kε0, where the pure guarantee needs no δ at all."""
    responses = _Responses.of(k, epsilon, max(1e-12 * delta, 1e-300))
    if responses.delta(0.0) <= delta:
        return 0.0
    low = 0.0
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        if responses.delta(middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def _what_is_left(k: int, delta: float, total_delta: float) -> float:
    """δ̃ = 1 − (1 − δ)/(1 − δ0)^k, what remains for randomised response, rounded down; 0 allowed."""
    spent, total = -k * math.log1p(-delta), -math.log1p(-total_delta)
    if total < spent:
        smallest = smallest_delta(k, delta=delta)
        raise UnreachableError(
            f"delta {total_delta:g} is below {significant_up(smallest, digits=4):.3e}, the "
            f"smallest reachable with {k} steps of delta {delta:g} each"
        )
    return max(-math.expm1(spent - total + 1e-15 * (spent + total)), 0.0)


def _sum(k: int, epsilon: float) -> float:
    """kε0, not below it."""
    return epsilon if k == 1 or epsilon == 0.0 else math.nextafter(k * epsilon, math.inf)


def _checked(k: int, epsilon: float, delta: float) -> tuple[int, float, float]:
    if not 0.0 <= delta < 1.0:
        raise ParameterError(f"delta of each step must be at least 0 and below 1, got {delta}")
    return check_whole("k", k), check_nonnegative("epsilon", epsilon), float(delta)
