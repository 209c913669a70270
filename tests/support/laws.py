"""Exact laws of noisy labels, by quadratures that share nothing with the accountant's.

The argmax with noise is integrated class by class: Pr[i] = ∫ f(s) Π_{j ≠ i} F(s + (n_i − n_j)/b) ds
with s the noise on class i itself, where the accountant integrates over the winner's and sums up
what is lost.
"""

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtr
from scipy.stats import laplace

from divergences import renyi


def gaussian_argmax_law(histograms, sigma):
    """log Pr[argmax of n + N(0, σ²) is i], [k, m], by Gauss–Legendre panels in log space."""
    n = np.asarray(histograms, dtype=np.int64)
    widest = int((n.max(axis=1) - n.min(axis=1)).max())
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.arange(-10.0, widest / sigma + 11.0, 1.5)
    s = (edges[:-1, None] + 0.75 * (nodes + 1.0)).ravel()
    log_weights = np.log(np.tile(0.75 * weights, edges.size - 1)) - s**2 / 2 - np.log(2 * np.pi) / 2
    table = log_ndtr(s[None, :] + np.arange(-widest, widest + 1)[:, None] / sigma)
    return _argmax_law(n, log_weights, table)


def checked_argmax_law(histograms, *, sigma, threshold, sigma1, scores=None):
    """log chances of no answer and of every label, [k, 1 + m].

    There is no answer where a score, which is the largest count if none is given, is below T with
    the noise N(0, σ1²).
    """
    scores = np.asarray(histograms).max(axis=1) if scores is None else scores
    margin = (scores - threshold) / sigma1
    labels = gaussian_argmax_law(histograms, sigma) + log_ndtr(margin)[:, None]
    return np.column_stack([log_ndtr(-margin), labels])


def three_outcome_law(x, y):
    """log chances that x + N, y + N' and 0 are the largest, [3, cases]."""
    nodes, weights = np.polynomial.legendre.leggauss(24)
    edges = np.arange(max(16.0, x.max() + 12.0, y.max() + 12.0) + 1.0)
    half = np.diff(edges)[:, None] / 2.0
    t = (edges[:-1, None] + half * (nodes + 1.0)).ravel()
    log_weights = np.log((half * weights).ravel()) - 0.5 * np.log(2.0 * np.pi)

    def wins(a, b):
        terms = log_weights - (t - a[:, None]) ** 2 / 2.0 + log_ndtr(t - b[:, None])
        return logsumexp(terms, axis=1)

    return np.stack([wins(x, y), wins(y, x), log_ndtr(-x) + log_ndtr(-y)])


def best_of_law(counts):
    """Nodes of the largest of count + N over some classes, counts in units of σ, and weights."""
    counts = np.asarray(counts)
    nodes, weights = np.polynomial.legendre.leggauss(12)
    edges = np.arange(-5.0, counts.max() + 10.0, 2.0)
    c = (edges[:-1, None] + nodes + 1.0).ravel()
    below = log_ndtr(c[:, None] - counts)
    hazard = np.exp(-((c[:, None] - counts) ** 2) / 2.0 - below) / np.sqrt(2.0 * np.pi)
    weights = np.tile(weights, edges.size - 1)
    return c, weights * np.exp(below.sum(axis=1)) * hazard.sum(axis=1)


def expected_moment(counts, a, b, sigma, order):
    """E_C of the moment of the argmax, minus 1, for a vote from a to b; C is the best other."""
    rest = np.array([n for i, n in enumerate(counts) if i not in (a, b)]) / sigma
    c, density = best_of_law(rest)
    x, y = counts[a] / sigma - c, counts[b] / sigma - c
    here, there = three_outcome_law(x, y), three_outcome_law(x - 1.0 / sigma, y + 1.0 / sigma)
    return float(density @ np.expm1((order - 1.0) * renyi(here.T, there.T, order)))


def laplace_argmax_law(histograms, scale):
    """log Pr[argmax of n + Lap(b) is i], [k, m], with panels between all kinks."""
    n = np.asarray(histograms, dtype=np.int64)
    widest = int((n.max(axis=1) - n.min(axis=1)).max())
    finer = max(1, int(np.ceil(1.0 / scale)))
    inner = np.arange(-widest * finer, widest * finer + 1) / (scale * finer)
    away = np.arange(1.0, 46.0)
    edges = np.concatenate([inner[0] - away[::-1], inner, inner[-1] + away])
    nodes, weights = np.polynomial.legendre.leggauss(12)
    half = np.diff(edges)[:, None] / 2.0
    s = (edges[:-1, None] + half * (nodes + 1.0)).ravel()
    log_weights = np.log((half * weights).ravel()) - np.abs(s) - np.log(2.0)
    x = s[None, :] + np.arange(-widest, widest + 1)[:, None] / scale
    tail = -np.abs(x) - np.log(2.0)
    return _argmax_law(n, log_weights, np.where(x < 0.0, tail, np.log1p(-np.exp(tail))))


def _argmax_law(n, log_weights, table):
    """Both, for log F at the nodes moved by every whole gap from −widest to widest."""
    widest = table.shape[0] // 2
    result = np.empty(n.shape)
    for i in range(n.shape[1]):
        total = np.broadcast_to(log_weights, (n.shape[0], log_weights.size)).copy()
        for j in range(n.shape[1]):
            if j != i:
                total += table[n[:, i] - n[:, j] + widest]
        result[:, i] = logsumexp(total, axis=1)
    return result


def named_argmax_law(histograms, *, sigma, threshold):
    """Pr[no name reaches T], Pr[i does and is the largest], [k, 1 + m], of names with votes alone.

    By panels over the height at which i stands, from T on.
    """
    n = np.asarray(histograms, dtype=np.int64)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = threshold + np.arange(0.0, int(n.max()) + 10.0 * sigma + 1.0, sigma / 2.0)
    height = (edges[:-1, None] + sigma / 4.0 * (nodes + 1.0)).ravel()
    x = (height - n[..., None]) / sigma
    below = np.where(n[..., None] > 0, ndtr(x), 1.0)
    dense = np.tile(weights / 4.0, edges.size - 1) * np.exp(-(x**2) / 2.0) / np.sqrt(2.0 * np.pi)
    others = np.prod(below, axis=1)[:, None] / below
    found = np.where(n > 0, (dense * others).sum(axis=2), 0.0)
    none = np.prod(np.where(n > 0, ndtr((threshold - n) / sigma), 1.0), axis=1)
    return np.column_stack([none, found])


def answers_law(answered, chances):
    """[k, 1 + m] from Pr[answer] [k] and the law of an answer [k, m]; no answer comes first."""
    answered = np.asarray(answered)[:, None]
    return np.column_stack([1.0 - answered, answered * chances])


def plurality_law(counts):
    """The law of an exact plurality, ties to the lowest class, [k, m]."""
    return np.eye(counts.shape[1])[np.argmax(counts, axis=1)]


def epoch_law(mechanism, distances):
    """Exact law of one sparse-vector epoch over each row of distances: Pr[r rows answered], r ≤ K.

    Row i is answered while d_i + Lap(2b) > T + ρ, b = 2/ε0; the law is an integral over ρ ~ Lap(b).
    """
    b, rows = 2.0 / mechanism.query_epsilon, distances.shape[1]
    levels = np.arange(distances.max() + 1)
    # Gauss–Legendre panels over the threshold's noise, none across a kink of the integrand.
    kinks = np.append(levels - mechanism.threshold, 0.0)
    edges = np.unique(np.concatenate([np.arange(-45.0, 45.5, 0.5) * b, kinks]))
    nodes, weights = np.polynomial.legendre.leggauss(10)
    half = np.diff(edges)[:, None] / 2.0
    rho = (half * nodes + (edges[1:] + edges[:-1])[:, None] / 2.0).ravel()
    weight = (half * weights).ravel() * laplace.pdf(rho, scale=b)
    line = mechanism.threshold + rho
    passes = laplace.sf(line[None] - levels[:, None], scale=2.0 * b)
    law = np.empty((len(distances), rows + 1))
    alive = np.broadcast_to(weight, (len(distances), weight.size))
    for row in range(rows):
        chance = passes[distances[:, row]]
        law[:, row] = (alive * (1.0 - chance)).sum(axis=1)
        alive = alive * chance
    law[:, rows] = alive.sum(axis=1)
    return law
