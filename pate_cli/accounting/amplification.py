"""The cost for one training record whose teacher was itself trained with differential privacy.

A record affects the release only through the votes of its teacher. Let A be the random map from the
teacher's records to *all* votes of this teacher. Let M be the release as a function of the votes of
this teacher, while the votes of all other teachers are fixed. The hockey-stick divergence of two
distributions P and Q at a number a is H_a(P ‖ Q) = sup over events S of P[S] − a·Q[S]. Let p be an
upper bound on the hockey-stick divergence of the votes A(D) and A(D') of this teacher, for all
neighbouring sets of records D and D' and in both directions:

  p ≥ H_{e^{ε'}}(A(D) ‖ A(D')).

Let P and P' be the distributions of the release for D and D'. THEORY.md, section 23, proves the
following bound for every event S and every ε' ≥ 0 with p > 0, and states the assumptions:

  P[S] − e^{ε'} P'[S] ≤ p · sup over y, y' of (M(y)[S] − e^x M(y')[S]),
  x = log(1 + (e^{ε'} − 1)/p).

Suppose that a release is (ε, δ)-DP if all votes of one teacher may change. If
log(1 + (e^{ε'} − 1)/p) is at least ε, or if p ≤ δ, this (ε, δ)-DP release is also (ε', δ)-DP for
one record of a teacher. The bound on P[S] is true for every event S, so it also applies to an
ex-post guarantee, in which the published ε depends on the votes.

If the training of a teacher is (ε0, δ0)-DP, the hockey-stick divergence of its votes is at most
p = δ0 + (1 − δ0)(e^{ε0} − e^{ε'})₊/(1 + e^{ε0}) (Kairouz, Oh and Viswanath 2015, Theorem 2.1). If
δ0 is 0 and p = (e^{ε0} − e^{ε'})₊/(1 + e^{ε0}), the smallest ε' with log(1 + (e^{ε'} − 1)/p) ≥ ε
satisfies e^{ε'} = (1 + e^{ε0 + ε})/(e^{ε0} + e^ε).
"""

from __future__ import annotations

import math
from typing import Final

from pate_cli.accounting.conversion import least_epsilon
from pate_cli.core.checks import check_delta, check_nonnegative
from pate_cli.core.errors import ParameterError

_ROUND_OFF: Final = 1e-14
_FAR: Final = 50.0


def release_epsilon(
    record_epsilon: float, *, delta: float, teacher_epsilon: float, teacher_delta: float = 0.0
) -> float:
    """Return the largest ε per teacher of a release that is (ε', δ)-DP per training record, nats.

    Args:
        record_epsilon: ε' ≥ 0, nats.
        delta, teacher_epsilon, teacher_delta: as in `record_epsilon`.

    Returns:
        ε = log(1 + (e^{ε'} − 1)/p), rounded down, where p bounds the hockey-stick divergence of a
        teacher's votes (see the docstring of this module). The result is infinite if p ≤ δ, because
        any release is then (ε', δ)-DP per record.
    """
    at, reached = record_epsilon, teacher_delta
    if at < teacher_epsilon:  # (e^{ε0} − e^{ε'})/(1 + e^{ε0}), without overflow
        beyond = -math.expm1(at - teacher_epsilon) / (1.0 + math.exp(-teacher_epsilon))
        reached = (reached + (1.0 - reached) * beyond) * (1.0 + _ROUND_OFF)
    if reached <= delta:
        return math.inf
    if at > _FAR:  # e^{ε'} may overflow, and 1 beside e^{ε'}/p is less than the round-off
        return (at - math.log(reached)) * (1.0 - _ROUND_OFF)
    return math.log1p(math.expm1(at) / reached) * (1.0 - _ROUND_OFF)


def record_epsilon(
    *, epsilon: float, delta: float, teacher_epsilon: float, teacher_delta: float = 0.0
) -> float:
    """Return an ε' such that a release is (ε', δ)-DP per training record, nats.

    Use this function if teachers were trained with differential privacy. The result is at most ε.
    If δ0 is at most δ, the result is also at most ε0. First compose all releases of the *same
    votes*, and then call this function once, for their joint (ε, δ). The results for single
    releases do not compose, because the releases share the randomness of the training.

    Args:
        epsilon, delta: the release is (ε, δ)-DP if all votes of one teacher may change; ε ≥ 0 in
            nats, δ in (0, 1).
        teacher_epsilon, teacher_delta: the training of every teacher is (ε0, δ0)-DP for one record;
            ε0 ≥ 0 in nats, δ0 in [0, 1).

    Raises:
        ParameterError: a number is out of range.
    """
    delta, epsilon = check_delta(delta), check_nonnegative("epsilon", epsilon)
    teacher = check_nonnegative("`teacher_epsilon`", teacher_epsilon)
    if not 0.0 <= teacher_delta < 1.0:
        raise ParameterError(f"`teacher_delta` must be from 0 to below 1, got {teacher_delta:g}")

    training = {"teacher_epsilon": teacher, "teacher_delta": teacher_delta}
    return least_epsilon(
        lambda at: release_epsilon(at, delta=delta, **training) >= epsilon, epsilon
    )
