"""The probability that the plurality loses a noisy argmax with exponential noise, exactly.

Permute-and-flip (McKenna and Sheldon 2020) is the argmax of n_j + Exp(b), one-sided exponential
noise on every count (Ding, Kifer, Steinke and others 2021).

**It is ε0-DP with ε0 = 2/b.** Fix a class i, let s = 1/b, and measure in units of b. Given the
noise of the others, with M the largest noisy count among them, i wins with probability
min(1, e^{−(M − n_i)}). In a neighbour no count differs by more than s, so M grows by at most s and
n_i falls by at most s: Pr'[i wins | noise] ≥ e^{−2s} Pr[i wins | noise]. Outcomes are classes, so
this is all of it. Records that trained k teachers move counts by k: ε0 = 2k/b.

**The loss.** With gaps g_j = (n_i* − n_j)/b ≥ 0 and u = e^{−t} for the winner's own noise t,

  q = Pr[the plurality loses] = ∫_0^1 [1 − Π_{j ≠ i*} (1 − u e^{−g_j})] du,

a polynomial in u, positive and free of cancellation as −expm1(Σ log1p(−u e^{−g_j})). Near u = 0 it
falls at a rate of S = Σ e^{−g_j}, so panels shrink towards 0 by halves down to 1/S. About half of
the loss of a Laplace argmax with the same b at a tie, and (2 + g)/2 times less at a gap g.

**The score** is log q. Under one neighbour Pr[i loses] moves by a factor of at most e^{ε0}, like
any event's; q = min_i Pr[i loses], since the plurality is the likeliest winner; and a minimum of
Lipschitz functions is Lipschitz: log q is ε0-Lipschitz.

**The cost** is F of accounting.laplace.randomised_response at this q: it asks for nothing but
ε0-DP. Away from a tie it is exact for two classes, where the loser's chance is e^{−g}/2 and moves
by exactly e^{±ε0}; at a tie permute-and-flip comes as close to randomised response as b grows.
"""

from __future__ import annotations

import numpy as np

from pate_cli.accounting.gaussian.noisy_max import SCORE_ERROR, loser_gaps
from pate_cli.core.arrays import Counts, Floats
from pate_cli.core.checks import check_positive

# Scores are clamped here at the latest: e^{−690} is still a normal floating-point number.
_LOWEST = -690.0
# On a panel from a to 2a, a ≥ 1/S, terms e^{−Su} fall by e^{−Sa}: where that is much, they are
# nothing beside the 1 they are taken from.
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(24)
# Rows × nodes × classes looked at in one go; bounds memory, not results.
_CHUNK = 4_000_000


def flip_score_lipschitz(scale: float) -> float:
    """How far one vote can move a computed score: 2/b, widened by what the computation adds."""
    return 2.0 / check_positive("exponential scale", scale) * (1.0 + 1e-9) + 2.0 * SCORE_ERROR


def flip_score_range(*, teachers: int, classes: int, scale: float) -> tuple[float, float]:
    """The lowest and highest score any histogram can have (public).

    The lowest is bounded by two classes alone with a gap of τ, where q = e^{−τ/b}/2; at worst all
    classes tie and q = 1 − 1/m.
    """
    lowest = -teachers / check_positive("exponential scale", scale) - np.log(2.0)
    return max(float(lowest), _LOWEST) - SCORE_ERROR, float(np.log1p(-1.0 / classes))


def flip_log_q(counts: Counts, *, scale: float) -> Floats:
    """log Pr[the plurality loses] per query.

    Args:
        counts: integer histograms [queries, classes], classes ≥ 2; totals may differ.
        scale: b > 0, the mean of the noise on each count (votes).

    Returns:
        [queries] float64 with error at most SCORE_ERROR, clamped at −690.

    Raises:
        ParameterError: a bad scale, or counts that are not two-dimensional with two classes.
    """
    scale = check_positive("exponential scale", scale)
    gaps, inverse = np.unique(loser_gaps(counts), axis=0, return_inverse=True)
    nodes, weights = _panels(gaps.shape[1])
    log_q = np.empty(len(gaps))
    step = max(1, _CHUNK // (nodes.size * gaps.shape[1]))
    for start in range(0, len(gaps), step):
        part = gaps[start : start + step] / scale
        # e^{−g_1} is taken out: it may underflow where its logarithm does not.
        near = part[:, :1]
        odds = np.exp(near - part)
        closest = np.exp(-near)
        inside = np.log1p(-nodes[None, :, None] * (closest * odds)[:, None, :]).sum(axis=2)
        lost = -np.expm1(inside)
        # −expm1(x) ≈ −x = u e^{−g_1} Σ odds where e^{−g_1} is too small to tell.
        faint = nodes[None, :] * odds.sum(axis=1)[:, None]
        small = near[:, 0] > 300.0
        scaled = np.where(small[:, None], faint, lost / np.maximum(closest, 1e-300))
        log_q[start : start + step] = np.log(scaled @ weights) - near[:, 0]
    return np.maximum(log_q, _LOWEST)[inverse.reshape(-1)]


def _panels(losers: int) -> tuple[Floats, Floats]:
    """Nodes and weights on [0, 1], panels halving towards 0 until they are 1/losers wide."""
    edges = np.append(0.0, 0.5 ** np.arange(int(np.ceil(np.log2(losers))) + 1, -1, -1))
    half = np.diff(edges) / 2.0
    nodes = (edges[:-1] + half)[:, None] + half[:, None] * _NODES
    return nodes.ravel(), (half[:, None] * _WEIGHTS).ravel()
