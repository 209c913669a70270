"""RDP costs of one query as the papers publish them, and the conversion of the papers to (ε, δ).

**GNMax** of 2018 answers with the argmax of the histogram, after noise N(0, σ²) on every count.

**LNMax** of 2017 answers with the argmax of the histogram, after noise Lap(b) on every count. In
the 2017 paper γ is 1/b, the moment l is λ − 1, and α(l) is (λ − 1) times the Rényi divergence of
order λ. The data-dependent bound of the 2017 paper is true in one direction only: it bounds
D_λ(M(n) ‖ M(n')), and the divergence of LNMax in the reverse direction can be larger. The bound of
the 2017 paper serves only to repeat published figures.

**The noisy threshold check** lets a query be answered if its score plus N(0, σ1²) is at least T.
The score is the largest count (Algorithm 1), or max_j(n_j − τ p_j) with the probabilities p_j of a
student (Algorithm 2). One teacher changes the score by at most 1. So the check is
(λ, λ/(2σ1²))-RDP, as is GNMax with σ = √2·σ1. So the functions of this module apply Theorem 6 to
the check with √2·σ1 in place of σ.

**A run of Confident-GNMax** has an expected cost. The paper says of its costs: "The expectations
are taken over the student's queries and outcomes of the first step". So the cost of a query is the
cost of the threshold check, plus the cost of an answer times the probability of an answer. An
expectation is not a guarantee, because the actual answers may cost more, and because the
probability of an answer itself depends on the votes.

**The GNSS release** publishes f(D) + SS_β(D)·N(0, σ²), where SS_β is the smooth sensitivity.
Theorem 23 claims an RDP cost for the GNSS release, but Theorem 23 is false for many λ, β and σ. So
the RDP cost that Theorem 23 claims is no bound.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import log_ndtr, logsumexp, ndtr

from pate_cli.core.arrays import Counts, Floats, Ints
from pate_cli.core.checks import check_orders
from pate_cli.core.errors import ParameterError

# Tables 1 and 2 print the orders 7.5, 14, 15.5, 20.5 and 50, which are multiples of one half.
TABLE_ORDERS: Final = tuple(half / 2.0 for half in range(3, 201))


def to_epsilon(rdp: ArrayLike, *, orders: ArrayLike, delta: float) -> Floats:
    """Return ε at each order by Theorem 5: (λ, ρ)-RDP implies (ρ + log(1/δ)/(λ − 1), δ)-DP.

    The paper prints the smallest ε over all orders, and the order at which it occurs.

    Args:
        rdp: ρ, total RDP cost at each order, [orders], nats.
        orders: Rényi orders λ > 1, [orders].
        delta: δ in (0, 1).

    Returns:
        ε at each order, [orders], nats.
    """
    return np.asarray(rdp, dtype=np.float64) - math.log(delta) / (check_orders(orders) - 1.0)


def published_gnss_rdp(*, beta: float, sigma: float, order: float) -> float:
    """Return the RDP cost that the paper claims for its noisy release, nats; it is not a bound.

    Theorem 23 (Theorem 6 of Appendix B.5 in the conference numbering):
        ε = λ e^{2β}/σ² + (βλ − ½ ln(1 − 2λβ))/(λ − 1)  for 1 < λ < 1/(2β).

    Theorem 23 is false for many λ and σ if λβ is larger than about ¼. The noise of two neighbouring
    vote files has two variances, and the proof of Theorem 23 divides by a combination of both. The
    combination of the two variances may be as small as 1 − 2λβ times the larger variance. The proof
    of Theorem 23 replaces 1 − 2λβ by ½, which is allowed only for λβ ≤ ¼. The exact worst-case RDP
    cost (`accounting.sensitivity`) is λ/(2σ²w) − β − ln(w)/(2(λ − 1)) with
    w = 1 − (λ − 1)(e^{2β} − 1) if this w is positive, and infinite otherwise. Every row of Table 2
    has λβ ≥ 0.39. For the row of MNIST in Table 2 (β = .0329, σ = 6.23, λ = 14) Theorem 23 claims
    the RDP cost 0.518, but the exact worst-case RDP cost is 1.607.

    Args:
        beta: smoothness β > 0 of the sensitivity bound.
        sigma: σ > 0, the standard deviation of the noise divided by SS_β.
        order: Rényi order λ, 1 < λ < 1/(2β).

    Raises:
        ParameterError: λβ ≥ ½; the message names the range.
    """
    if not 2.0 * order * beta < 1.0:
        raise ParameterError(
            f"Theorem 23 needs 1 < order < 1/(2 beta) = {0.5 / beta:.6g}, but got order {order:g} "
            f"with beta {beta:g}; use a beta below {0.5 / order:.6g}, or a smaller order"
        )
    noise = order * math.exp(2.0 * beta) / sigma**2
    return noise + (beta * order - 0.5 * math.log1p(-2.0 * order * beta)) / (order - 1.0)


def gnmax_log_q(counts: ArrayLike, *, sigma: float) -> Floats:
    """Return an upper bound on log Pr[GNMax misses the plurality].

    Proposition 7: Pr[M(n) ≠ i*] ≤ q = ½ Σ_{i≠i*} erfc((n_i* − n_i) / 2σ). The result is at most
    log(1 − 1/m), because the plurality i* is the most likely of the m classes. The code uses
    ½ erfc(g/2σ) = Φ(−g/(√2 σ)).

    Args:
        counts: votes [queries, classes].
        sigma: standard deviation σ > 0 of the noise on each count, in votes.

    Returns:
        log q [queries], between −inf and log(1 − 1/m).
    """
    ordered = np.sort(np.asarray(counts, dtype=np.float64), axis=1)
    with np.errstate(over="ignore"):  # a gap of infinitely many σ has probability 0
        gaps = (ordered[:, -1:] - ordered[:, :-1]) / (np.sqrt(2.0) * sigma)
    union = np.asarray(logsumexp(log_ndtr(-gaps), axis=1), dtype=np.float64)
    return np.minimum(union, np.log1p(-1.0 / ordered.shape[1]))


def data_dependent_rdp(log_q: ArrayLike, *, sigma: float, orders: ArrayLike) -> Floats:
    """Return the RDP cost by Theorem 6; infinite where the theorem does not apply.

    With μ2 = σ √log(1/q), μ1 = μ2 + 1 (Proposition 10) and ε_k = μ_k/σ² (Proposition 8):
        D_λ ≤ 1/(λ − 1) · log[(1 − q) A^{λ−1} + q B^{λ−1}],
        A = (1 − q) / (1 − (q e^{ε2})^{(μ2−1)/μ2}),  B = e^{ε1} / q^{1/(μ1−1)},
    which is true only if q < 1, μ1 ≥ λ, μ2 > 1 and
        q ≤ e^{(μ2−1) ε2} / (μ1/(μ1−1) · μ2/(μ2−1))^{μ2}.

    Args:
        log_q: log q of each query, where q is an upper bound on the probability of missing the most
            likely outcome, [queries], at most 0.
        sigma: σ > 0 of a mechanism that is (λ, λ/σ²)-RDP at every order.
        orders: Rényi orders λ > 1.

    Returns:
        [orders, queries], nats; infinite if a condition of Theorem 6 is not met.
    """
    sigma = np.float64(sigma)  # so that an overflow gives infinity and no error
    order = check_orders(orders)[:, np.newaxis]
    failure = np.asarray(log_q, dtype=np.float64)
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        mu2 = sigma * np.sqrt(-failure)
        mu1 = mu2 + 1.0
        eps2 = mu2 / sigma**2
        eps1 = mu1 / sigma**2
        ceiling = (mu2 - 1.0) * eps2 - mu2 * (np.log(mu1 / (mu1 - 1.0)) + np.log(mu2 / (mu2 - 1.0)))
        valid = (failure < 0.0) & (mu1 >= order) & (mu2 > 1.0) & (failure <= ceiling)
        log_x = (failure + eps2) * (1.0 - 1.0 / mu2)
        likely = order * np.log1p(-np.exp(failure)) - (order - 1.0) * np.log1p(-np.exp(log_x))
        unlikely = failure + (order - 1.0) * (eps1 - failure / (mu1 - 1.0))
        bound = np.logaddexp(likely, unlikely) / (order - 1.0)
    # A divergence is never negative, but the sum of two rounded logarithms may be.
    bound = np.where(valid & ~np.isnan(bound), np.maximum(bound, 0.0), np.inf)
    # The bound falls to 0 with q, although its parts are inf − inf there.
    return np.where(np.isneginf(failure), 0.0, bound)


def rdp_of_log_q(log_q: ArrayLike, *, sigma: float, orders: ArrayLike) -> Floats:
    """Return the RDP cost β_σ(q): the smaller of Theorem 6 and the λ/σ² of Proposition 8.

    Args:
        log_q: log q of each query, where q is an upper bound on the probability of missing the most
            likely outcome, [queries], at most 0.
        sigma: σ > 0 of a mechanism that is (λ, λ/σ²)-RDP at every order.
        orders: Rényi orders λ > 1.

    Returns:
        [orders, queries], nats; at most λ/σ².
    """
    with np.errstate(over="ignore", divide="ignore"):
        cap = check_orders(orders)[:, np.newaxis] / np.float64(sigma) ** 2
    return np.minimum(data_dependent_rdp(log_q, sigma=sigma, orders=orders), cap)


def gnmax_rdp(counts: ArrayLike, sigma: float, orders: ArrayLike) -> Floats:
    """Return the RDP cost of a GNMax answer to each query: β_σ(q) at the q of Proposition 7.

    Args:
        counts: votes [queries, classes].
        sigma: standard deviation σ > 0 of the noise on each count, in votes.
        orders: Rényi orders λ > 1.

    Returns:
        [orders, queries], nats, at most λ/σ². SECRET: it depends on the votes.
    """
    return rdp_of_log_q(gnmax_log_q(counts, sigma=sigma), sigma=sigma, orders=orders)


def laplace_log_q(counts: ArrayLike, *, scale: float) -> Floats:
    """Return an upper bound on log Pr[LNMax misses the plurality].

    2017 paper, Lemma 4: Pr[M(n) ≠ i*] ≤ Σ_{i≠i*} (2 + g_i)/(4 e^{g_i}), g_i = (n_i* − n_i)/b,
    and never more than 1 − 1/m.

    Args:
        counts: votes [queries, classes].
        scale: b > 0, the scale of the Laplace noise on each count, in votes.

    Returns:
        log q [queries], between −inf and log(1 − 1/m).
    """
    ordered = np.sort(np.asarray(counts, dtype=np.float64), axis=1)
    with np.errstate(over="ignore"):
        gaps = (ordered[:, -1:] - ordered[:, :-1]) / scale
    gaps = np.minimum(gaps, np.finfo(np.float64).max)  # keeps log(2 + g) − g free of inf − inf
    union = np.asarray(logsumexp(np.log(2.0 + gaps) - np.log(4.0) - gaps, axis=1))
    return np.minimum(union, np.log1p(-1.0 / ordered.shape[1]))


def laplace_rdp(counts: ArrayLike, scale: float, orders: ArrayLike) -> Floats:
    """Return the RDP cost of an LNMax answer to each query: the smallest of three bounds.

    With ε0 = 2/b:
    2017 paper, Theorem 2: α(l) ≤ ½ ε0² l (l + 1), so D_λ ≤ ½ ε0² λ.
    2017 paper, Theorem 3, for q < (e^{ε0} − 1)/(e^{2 ε0} − 1) = 1/(e^{ε0} + 1):
        α(l) ≤ log[(1 − q) ((1 − q)/(1 − e^{ε0} q))^l + q e^{ε0 l}].
    Pure differential privacy: D_λ ≤ ε0.

    Args:
        counts: votes [queries, classes].
        scale: b > 0, the scale of the Laplace noise on each count, in votes.
        orders: Rényi orders λ > 1; `planning.cost.MOMENT_ORDERS` are those of the 2017 paper.

    Returns:
        [orders, queries], nats, at most 2/b. SECRET: it depends on the votes.
    """
    log_q = laplace_log_q(counts, scale=scale)
    order = check_orders(orders)[:, np.newaxis]
    pure = 2.0 / scale
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        valid = log_q < -np.logaddexp(0.0, pure)
        likely = order * np.log1p(-np.exp(log_q)) - (order - 1.0) * np.log1p(-np.exp(log_q + pure))
        unlikely = log_q + (order - 1.0) * pure
        dependent = np.maximum(np.logaddexp(likely, unlikely) / (order - 1.0), 0.0)
    dependent = np.where(valid & ~np.isnan(dependent), dependent, np.inf)
    independent = np.minimum(0.5 * pure * pure * order, pure)
    return np.minimum(dependent, independent)


_CELLS_A_VOTE = 64


def answer_chance(scores: ArrayLike, *, threshold: float, sigma: float) -> Floats:
    """Return the probability that each query is answered, Φ((v − T)/σ1), [queries].

    This is the check of Algorithm 1, line 2.

    Args:
        scores: score v of each query, [queries], in votes.
        threshold: T, in votes.
        sigma: standard deviation σ1 > 0 of the noise on the score, in votes.
    """
    return np.asarray(ndtr(_standardised(scores, threshold, sigma)), dtype=np.float64)


def threshold_rdp(
    scores: ArrayLike, *, threshold: float, sigma: float, orders: ArrayLike
) -> Floats:
    """Return the RDP cost of the threshold check, at most λ/(2σ1²).

    The cost is computed by Theorem 6 with √2·σ1 in place of σ.

    Args:
        scores: score v of each query, [queries], in votes.
        threshold: T, in votes.
        sigma: standard deviation σ1 > 0 of the noise on the score, in votes.
        orders: Rényi orders λ > 1.

    Returns:
        [orders, queries], nats. SECRET: it depends on the votes.
    """
    # q is the probability of the less likely outcome of the check.
    log_q = log_ndtr(-np.abs(_standardised(scores, threshold, sigma)))
    return rdp_of_log_q(log_q, sigma=np.sqrt(2.0) * sigma, orders=orders)


def threshold_local_sensitivity(
    scores: ArrayLike, *, threshold: float, sigma: float, order: float, teachers: int
) -> Floats:
    """Return the local sensitivity of the threshold check at every distance, summed over queries.

    The RDP cost is a function f of one score v, which a teacher changes by at most 1. At distance d
    the local sensitivity of a query is the largest |f(u') − f(u)| with |u − v| ≤ d and
    |u' − u| ≤ 1. The local sensitivity never decreases as d grows, as Theorem 24 requires.

    If all scores are whole numbers from 0 to the number of teachers, the function treats them as
    largest counts (Algorithm 1); u and u' are then also whole numbers from 0 to the number of
    teachers.

    If not all scores are whole numbers from 0 to the number of teachers, the function treats all
    scores as fractional: v, u and u' may be any numbers, because Algorithm 2 subtracts
    probabilities of a student from the counts. For fractional scores, the function computes the RDP
    cost f(u) only for scores u whose distance from T is a multiple of 1/64 vote. A score u whose
    distance from T lies between two multiples of 1/64 has a cost f(u) between the costs at these
    two multiples. So for fractional scores the result may be larger than the exact local
    sensitivity. For each query with fractional scores, the result is at most the largest
    |f(u') − f(u)| over all scores u and u' with |u − v| ≤ d + 1/32 and |u' − u| ≤ 1 + 1/32.

    Args:
        scores: score v of each query, [queries], in votes.
        threshold: T, in votes.
        sigma: standard deviation σ1 > 0 of the noise on the score, in votes.
        order: Rényi order λ > 1.
        teachers: the number of teachers; the result is for the distances 0 … teachers − 1.

    Returns:
        The local sensitivity by distance, [teachers], nats, non-decreasing. SECRET: it depends on
        the votes.

    Raises:
        ParameterError: not all scores are whole numbers from 0 to the number of teachers, and a
            score is too far (over a million votes) from the threshold.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if not ((scores == np.floor(scores)) & (scores >= 0) & (scores <= teachers)).all():
        return _over_reals(scores - threshold, sigma, order, teachers)
    votes = np.arange(teachers + 1.0)
    cost = threshold_rdp(votes, threshold=threshold, sigma=sigma, orders=order)[0]
    step = np.abs(np.diff(cost))
    steepest = np.maximum(np.append(step, 0.0), np.append(0.0, step))
    place = scores.astype(np.int64)
    return _spread(steepest, place, teachers)


def _over_reals(beyond: Floats, sigma: float, order: float, teachers: int) -> Floats:
    """Return the local sensitivity of the threshold check by distance, for fractional scores, nats.

    The RDP cost of the check depends only on the distance x = |score − T|, and does not rise as x
    grows (condition C5 of the 2018 paper). The code divides the possible x into cells: cell k holds
    the x from k/64 to (k + 1)/64. If one teacher changes its vote, x changes by at most 1. So x
    goes from cell k to one of the cells k − 64 … k + 64.

    Args:
        beyond: the score v minus the threshold T, of each query, in votes.
        sigma: standard deviation σ1 of the noise on the score, in votes.
        order: Rényi order λ > 1.
        teachers: the number of teachers, which is also the number of distances.
    """
    fine = _CELLS_A_VOTE
    place = np.floor(beyond * fine)
    furthest = np.abs(place).max(initial=0.0)
    if furthest > 1e8:
        raise ParameterError("scores must be within a million votes of the threshold")
    cells = int(furthest) + (teachers + 1) * fine
    edges = np.arange(cells + fine + 2) / fine
    cost = threshold_rdp(edges, threshold=0.0, sigma=sigma, orders=order)[0]
    cost = np.minimum.accumulate(cost)
    cell = np.arange(cells)
    outwards = cost[cell] - cost[cell + 1 + fine]
    inwards = cost[np.maximum(cell - fine, 0)] - cost[cell + 1]
    half = np.maximum(outwards, inwards)
    # The cells of u − T go from −cells to cells − 1, and cell −1 − k has the cost of cell k.
    steepest = np.concatenate([half[::-1], half])
    return _spread(steepest, place.astype(np.int64) + cells, teachers, stride=fine)


def _spread(steepest: Floats, place: Ints, teachers: int, stride: int = 1) -> Floats:
    """Return the local sensitivity of all queries together, by distance d = 0 … teachers − 1.

    At distance d a query whose score is in cell p counts with the largest value of `steepest` in
    the cells p − d·stride … p + d·stride. The result is the sum of these values over all queries.

    Args:
        steepest: for each cell, the local sensitivity at distance 0 of a query whose score is in
            the cell, [cells]. A cell holds a single whole-number score, or an interval of scores.
        place: the cell of the score of each query, [queries].
        teachers: the number of teachers, which is also the number of distances.
        stride: the number of cells by which one changed vote may move a score.
    """
    # window[k]: the maximum over cells k … k + stride − 1.
    padded = np.concatenate([steepest, np.zeros(stride)])
    window = np.lib.stride_tricks.sliding_window_view(padded, stride).max(axis=1)
    place, times = np.unique(place, return_counts=True)
    highest = steepest[place]
    curve = np.empty(teachers)
    for distance in range(teachers):
        if distance:
            left, right = place - distance * stride, place + (distance - 1) * stride + 1
            ends = np.clip([left, right], 0, steepest.size)
            highest = np.maximum(highest, window[ends].max(axis=0))
        curve[distance] = times @ highest
    return curve


def _standardised(scores: ArrayLike, threshold: float, sigma: float) -> Floats:
    with np.errstate(over="ignore"):  # infinity is right: the probability is then 0 or 1
        return (np.asarray(scores, dtype=np.float64) - threshold) / sigma


def confident_steps(
    counts: Counts, scores: Floats, noise: Mapping[str, float], orders: ArrayLike
) -> dict[str, Floats]:
    """Return the expected RDP cost of each step of each query.

    The first step is the threshold check. The second step is the answer of GNMax; its cost is
    multiplied by the probability of an answer.

    Args:
        counts: votes [queries, classes].
        scores: the score of each query, which the threshold check compares with the threshold T,
            [queries], in votes.
        noise: `threshold` T and the standard deviations `sigma1` of the check's noise and `sigma2`
            of GNMax's, in votes.
        orders: Rényi orders λ > 1.

    Returns:
        The costs of the steps "threshold" and "argmax", [orders, queries] each, nats. SECRET: the
        costs depend on the votes.
    """
    test = {"threshold": noise["threshold"], "sigma": noise["sigma1"]}
    answer = gnmax_rdp(counts, noise["sigma2"], orders)
    return {
        "threshold": threshold_rdp(scores, **test, orders=orders),
        "argmax": answer_chance(scores, **test) * answer,
    }
