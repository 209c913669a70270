"""The cost for one training record whose teacher was itself trained with differential privacy.

A record reaches what is released through its teacher alone. Let A be what the record does to *all*
votes of that teacher, and M everything released, as a function of those votes while all others
stand still. With H_a(P ‖ Q) = sup over events S of P[S] − a·Q[S], let

  p ≥ H_{e^{ε'}}(A ‖ A')   for neighbouring sets of records, both ways.

Then for every event S and every ε' ≥ 0 with p > 0

  P[S] − e^{ε'} P'[S] ≤ p · sup over y, y' of (M(y)[S] − e^x M(y')[S]),
  x = log(1 + (e^{ε'} − 1)/p)

(THEORY.md, section 25, which also has the premises). So what is (ε, δ) for a teacher whose votes
change in any way is (ε', δ) for a record as soon as x ≥ ε, or p ≤ δ. That holds event by event, so
also of an ε that is small only together with what was released.

Training that is (ε0, δ0)-DP has p = δ0 + (1 − δ0)(e^{ε0} − e^{ε'})₊/(1 + e^{ε0}) at most
(Kairouz, Oh and Viswanath 2015, Theorem 2.1). Where δ0 is 0,
e^{ε'} = (1 + e^{ε0 + ε})/(e^{ε0} + e^ε).
"""

from __future__ import annotations

import math
from typing import Final

from pate_cli.accounting.conversion import least_epsilon
from pate_cli.core.checks import check_delta, check_nonnegative
from pate_cli.core.errors import ParameterError

_ROUND_OFF: Final = 1e-14
_LARGEST: Final = 700.0


def release_epsilon(
    record_epsilon: float, *, delta: float, teacher_epsilon: float, teacher_delta: float = 0.0
) -> float:
    """Return the largest ε of a release that is (ε', δ)-DP in one training record, nats.

    Args:
        record_epsilon: ε' ≥ 0, nats.
        delta, teacher_epsilon, teacher_delta: as in `record_epsilon`.

    Returns:
        ε such that x ≥ ε, rounded down; infinite where p ≤ δ, so that every release will do.
    """
    at, reached = record_epsilon, teacher_delta
    if at < teacher_epsilon:  # (e^{ε0} − e^{ε'})/(1 + e^{ε0}), without overflow
        beyond = -math.expm1(at - teacher_epsilon) / (1.0 + math.exp(-teacher_epsilon))
        reached = (reached + (1.0 - reached) * beyond) * (1.0 + _ROUND_OFF)
    if reached <= delta:
        return math.inf
    return math.log1p(math.expm1(min(at, _LARGEST)) / reached) * (1.0 - _ROUND_OFF)


def record_epsilon(
    *, epsilon: float, delta: float, teacher_epsilon: float, teacher_delta: float = 0.0
) -> float:
    """Return an ε' at which a release is (ε', δ)-DP in one training record, nats.

    Use it for teachers that were trained with differential privacy: it is at most ε and, where δ0
    is at most δ, at most ε0. Several releases of the *same votes* are composed first, and their
    (ε, δ) is amplified once: they share the randomness of training, so amplified costs do not
    compose.

    Args:
        epsilon, delta: of the release, for one teacher whose votes change in any way: ε ≥ 0 in
            nats, δ in (0, 1).
        teacher_epsilon, teacher_delta: of the training of every teacher, for one record: ε0 ≥ 0 in
            nats and δ0 in [0, 1).

    Raises:
        ParameterError: a number out of range.
    """
    delta, epsilon = check_delta(delta), check_nonnegative("epsilon", epsilon)
    teacher = check_nonnegative("`teacher_epsilon`", teacher_epsilon)
    if not 0.0 <= teacher_delta < 1.0:
        raise ParameterError(f"`teacher_delta` must be from 0 to below 1, got {teacher_delta:g}")

    training = {"teacher_epsilon": teacher, "teacher_delta": teacher_delta}
    return least_epsilon(
        lambda at: release_epsilon(at, delta=delta, **training) >= epsilon, epsilon
    )
