"""How far a vote is from another plurality, and the thresholds that make answering it private.

**Distance to instability.** Let n₁ ≥ n₂ be the two largest counts, g = n₁ − n₂, and let one record
change at most r votes of a query (r = 1: disjoint teachers). Each moved vote narrows the gap by at
most 2, so the smallest number of records that brings about a tie, or worse, is ⌈g/2r⌉ (attained
by moving votes from the first to the second), and

  d(n) = max(⌈g/2r⌉ − 1, 0)

is the number of records that may change with the plurality still strictly ahead. A tie counts as
unstable whoever wins it, so the order of the classes does not enter d. Two facts carry every proof;
both hold as well when votes appear or disappear, which moves the gap by at most 1 each:

  (1) |d(n) − d(n')| ≤ 1 for neighbours: g moves by at most 2r, ⌈g/2r⌉ by at most 1.
  (2) If the pluralities i of n and j ≠ i of n' differ, d(n) = d(n') = 0: g ≤ n_i − n_j and
      g' ≤ n'_j − n'_i, and the two sum to at most 2r since n_i − n_j moved by at most 2r.

**Thresholds.** The mechanisms answer only when a noisy distance exceeds T, so that a query at
distance 0, the only one whose label can flip, is answered with a small probability:

  Lap(1/ε) > T              ½ e^{−εT}                          T = log(1/δ)/ε makes it δ/2;
  Lap(2b) − Lap(b) > T      (2/3) e^{−T/2b} − (1/6) e^{−T/b}   T = −2b log y makes it δ, where
                                                               y = 6δ/(2 + √(4 − 6δ)).

The first is the Laplace tail. For the second, independent Laplace variables of scales s ≠ u have
characteristic function [s²/(1 + s²t²) − u²/(1 + u²t²)]/(s² − u²), so their sum has the tail
[s² e^{−T/s} − u² e^{−T/u}]/(2(s² − u²)) for T ≥ 0; put s = 2b, u = b. With y = e^{−T/2b} it reads
(2/3) y − (1/6) y² = δ, of which y above is the root in [0, 1], written without cancellation.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Histograms, largest_two
from pate_cli.core.checks import check_nonnegative, check_positive, check_query_delta, check_whole
from pate_cli.core.errors import ParameterError

__all__ = [
    "distance_to_instability",
    "epsilon_for_half",
    "farthest_distance",
    "sparse_vector_leak",
    "sparse_vector_threshold",
    "stability_leak",
    "stability_threshold",
]


def distance_to_instability(
    counts: Histograms, *, teachers_per_record: int = 1
) -> NDArray[np.int64]:
    """d = max(⌈(n₁ − n₂)/2r⌉ − 1, 0) per query: records that may change without a flip or a tie.

    One record moves it by at most 1, and it is 0 on both sides of a flipped plurality. SECRET.

    Args:
        counts: vote histograms, [queries, classes ≥ 2].
        teachers_per_record: r ≥ 1, the votes of one query that one record can change.

    Returns:
        [queries], int64.

    Raises:
        ParameterError: `teachers_per_record` is not a whole number ≥ 1.
    """
    step = 2 * check_whole("teachers_per_record", teachers_per_record)
    top = largest_two(counts)
    gap = top[:, 1] - top[:, 0]
    return np.maximum((gap + (step - 1)) // step - 1, 0)


def farthest_distance(teachers: int, *, teachers_per_record: int = 1) -> int:
    """The distance of a unanimous vote of τ teachers, max(⌈τ/2r⌉ − 1, 0)."""
    step = 2 * check_whole("teachers_per_record", teachers_per_record)
    return max(-(-check_whole("teachers", teachers) // step) - 1, 0)


def stability_threshold(*, query_epsilon: float, query_delta: float) -> float:
    """T = log(1/δ)/ε, in records (Thakurta and Smith 2013; Dwork and Roth 2014, Section 7.3).

    Args:
        query_epsilon: ε of one query, > 0; the noise is Lap(1/ε).
        query_delta: δ in (0, 1); what leaks is half of it, see `stability_leak`.

    Raises:
        ParameterError: a number outside its range.
    """
    return -math.log(check_query_delta(query_delta)) / check_positive(
        "query epsilon", query_epsilon
    )


def stability_leak(*, query_epsilon: float, threshold: float) -> float:
    """½ e^{−εT}: the probability that a query at distance 0 is answered, for T ≥ 0."""
    scaled = check_positive("query epsilon", query_epsilon) * check_nonnegative(
        "threshold", threshold
    )
    return 0.5 * math.exp(-scaled)


def sparse_vector_threshold(*, query_epsilon: float, query_delta: float) -> float:
    """T = −2b log y with b = 2/ε0: a query at distance 0 is answered with probability δ exactly.

    Args:
        query_epsilon: ε0 of one epoch, > 0; the noises are Lap(b) and Lap(2b).
        query_delta: δ in (0, 1/2], ½ giving T = 0.

    Raises:
        ParameterError: a number outside its range.
    """
    delta = check_query_delta(query_delta, most=0.5)
    y = 6.0 * delta / (2.0 + math.sqrt(4.0 - 6.0 * delta))
    return 4.0 * max(-math.log(y), 0.0) / check_positive("query epsilon", query_epsilon)


def sparse_vector_leak(*, query_epsilon: float, threshold: float) -> float:
    """(2/3) e^{−T/2b} − (1/6) e^{−T/b}, b = 2/ε0: Pr[Lap(2b) > T + Lap(b)], for T ≥ 0."""
    scaled = check_positive("query epsilon", query_epsilon) * check_nonnegative(
        "threshold", threshold
    )
    y = math.exp(-scaled / 4.0)
    return y * (4.0 - y) / 6.0


def epsilon_for_half(unit_threshold: float, *, teachers: int, teachers_per_record: int) -> float:
    """The ε that puts the threshold at half the distance of a unanimous vote.

    Both thresholds are proportional to 1/ε, so T(1)/(farthest/2).

    Args:
        unit_threshold: the threshold at ε = 1, ≥ 0.
        teachers: τ; a vote of at most 2r teachers has distance 0 however they agree.
        teachers_per_record: r ≥ 1.

    Raises:
        ParameterError: too few teachers.
    """
    farthest = farthest_distance(teachers, teachers_per_record=teachers_per_record)
    if farthest == 0:
        raise ParameterError(
            f"{teachers} teachers are too few for a stable vote: at least "
            f"{2 * teachers_per_record + 1} needed"
        )
    return 2.0 * unit_threshold / farthest
