"""The cost for one training record whose teacher was itself trained with differential privacy.

A record reaches what is released through its teacher alone. Let A be what the record does to *all*
votes of that teacher, and M everything released, as a function of those votes while all others
stand still. Write H_a(P ‖ Q) = sup over events S of P[S] − a·Q[S], and

  δ_A(x) ≥ H_{e^x}(A ‖ A'),   δ_M(x) ≥ H_{e^x}(M(y) ‖ M(y'))   for all y and y',

where A and A' are of neighbouring sets of records. Then for every ε' ≥ 0, with p = δ_A(ε'),

  what is released is (ε', δ')-DP in the record,   δ' = p·δ_M(log(1 + (e^{ε'} − 1)/p)),

and (ε', 0)-DP where p = 0. THEORY.md, section 25, has the proof, and the premises.

Training that is (ε0, δ0)-DP has δ_A(x) = δ0 + (1 − δ0)(e^{ε0} − e^x)₊/(1 + e^{ε0}) at most
(Kairouz, Oh, Viswanath 2015, Theorem 2.1), and a release that is (ε, δ)-DP the same with ε and δ.
Where δ0 is 0 and the point (ε, δ) alone is used, e^{ε'} = (1 + e^{ε0 + ε})/(e^{ε0} + e^ε).
"""

from __future__ import annotations

import math
from typing import Final

from pate_cli.accounting.conversion import least_epsilon
from pate_cli.core.checks import check_delta, check_nonnegative
from pate_cli.core.errors import ParameterError

_ROUND_OFF: Final = 1e-14
_LARGEST: Final = 700.0


def pair_delta(at: float, *, epsilon: float, delta: float) -> float:
    """Return δ(x), x = `at` ≥ 0, of whatever is (ε, δ)-DP: the largest, from above.

    Args:
        at: x in nats; infinity allowed.
        epsilon, delta: ε ≥ 0 in nats, and δ in [0, 1).
    """
    if at >= epsilon:
        return delta
    # (e^ε − e^x)/(1 + e^ε), without overflow.
    beyond = -math.expm1(at - epsilon) / (1.0 + math.exp(-epsilon))
    return min((delta + (1.0 - delta) * beyond) * (1.0 + _ROUND_OFF), 1.0)


def record_delta(
    at: float, *, epsilon: float, delta: float, teacher_epsilon: float, teacher_delta: float = 0.0
) -> float:
    """Return δ': at ε' = `at` what is released is (ε', δ')-DP in one training record.

    Args:
        at: ε' ≥ 0, nats.
        epsilon, delta: of the release, for one teacher whose votes change in any way.
        teacher_epsilon, teacher_delta: ε0 and δ0 of the training of a teacher, for one record.
    """
    # Any larger p, and any smaller x, is a bound as well: round-off goes there.
    reached = pair_delta(at, epsilon=teacher_epsilon, delta=teacher_delta)
    if reached == 0.0:
        return 0.0
    moved = math.log1p(math.expm1(min(at, _LARGEST)) / reached) * (1.0 - _ROUND_OFF)
    return reached * pair_delta(moved, epsilon=epsilon, delta=delta)


def record_epsilon(
    *, epsilon: float, delta: float, teacher_epsilon: float, teacher_delta: float = 0.0
) -> float:
    """Return the least ε' at which a release is (ε', δ)-DP in one training record, nats.

    Use it for teachers that were trained with differential privacy: it is below ε and, where δ0 is
    at most δ, below ε0. Several releases of the *same votes* are composed first, and their (ε, δ)
    is amplified once: they share the randomness of training, so amplified costs do not compose.

    Args:
        epsilon, delta: of the release, for one teacher whose votes change in any way: ε ≥ 0 in
            nats, δ in (0, 1).
        teacher_epsilon, teacher_delta: of the training of every teacher, for one record: ε0 ≥ 0 in
            nats and δ0 in [0, 1).

    Raises:
        ParameterError: a number out of range.
    """
    delta, epsilon = check_delta(delta), check_nonnegative("epsilon", epsilon)
    teacher_epsilon = check_nonnegative("`teacher_epsilon`", teacher_epsilon)
    if not 0.0 <= teacher_delta < 1.0:
        raise ParameterError(f"`teacher_delta` must be from 0 to below 1, got {teacher_delta:g}")

    def fits(at: float) -> bool:
        found = record_delta(
            at,
            epsilon=epsilon,
            delta=delta,
            teacher_epsilon=teacher_epsilon,
            teacher_delta=teacher_delta,
        )
        return found <= delta

    return least_epsilon(fits, epsilon)
