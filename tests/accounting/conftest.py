"""Independent oracles: neighbours, and the exact law of every label."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import log_ndtr, logsumexp


def neighbours_of(counts, *, missing=True):
    """Every histogram one teacher away: a vote moved, and, with `missing`, withdrawn or added."""
    found = []
    for a, b in itertools.permutations(range(len(counts)), 2):
        if counts[a] > 0:
            found.append(np.array(counts))
            found[-1][[a, b]] += [-1, 1]
    if missing:
        for a, change in itertools.product(range(len(counts)), (-1, 1)):
            if counts[a] + change >= 0:
                found.append(np.array(counts))
                found[-1][a] += change
    return np.array(found)


def label_law(histograms, sigma):
    """log Pr[argmax of n + N(0, σ²) is i], [k, m], by Gauss–Legendre panels in log space.

    Pr[i] = ∫ φ(s) Π_{j ≠ i} Φ(s + (n_i − n_j)/σ) ds, s the noise on class i itself: another
    integrand than the accountant's, another rule, and each class on its own.
    """
    n = np.asarray(histograms, dtype=np.int64)
    widest = int((n.max(axis=1) - n.min(axis=1)).max())
    nodes, weights = np.polynomial.legendre.leggauss(16)
    edges = np.arange(-10.0, widest / sigma + 11.0, 1.5)
    s = (edges[:-1, None] + 0.75 * (nodes + 1.0)).ravel()
    log_weights = np.log(np.tile(0.75 * weights, edges.size - 1)) - s**2 / 2 - np.log(2 * np.pi) / 2
    table = log_ndtr(s[None, :] + np.arange(-widest, widest + 1)[:, None] / sigma)
    result = np.empty(n.shape)
    for i in range(n.shape[1]):
        total = np.broadcast_to(log_weights, (n.shape[0], s.size)).copy()
        for j in range(n.shape[1]):
            if j != i:
                total += table[n[:, i] - n[:, j] + widest]
        result[:, i] = logsumexp(total, axis=1)
    return result


def exact_rdp(log_p, log_q, order):
    """D_λ(P ‖ Q) along the last axis: Σ q [(p/q)^λ − 1 − λ(p/q − 1)], nothing cancels."""
    u = log_p - log_q
    with np.errstate(over="ignore", invalid="ignore"):
        excess = np.exp(log_q) * (np.expm1(order * u) - order * np.expm1(u))
        excess = np.where(order * u > 200.0, np.exp(order * log_p - (order - 1) * log_q), excess)
        near = np.log1p(excess.sum(axis=-1))
    far = logsumexp(order * log_p - (order - 1.0) * log_q, axis=-1)
    return np.where(far > 5.0, far, near) / (order - 1.0)


@pytest.fixture(scope="session")
def neighbours():
    return neighbours_of


@pytest.fixture(scope="session")
def law():
    return label_law


@pytest.fixture(scope="session")
def renyi():
    return exact_rdp


@pytest.fixture(scope="session")
def small_cases():
    """Seeded small histograms with a σ and an order: ties, lone classes, wide gaps, any total."""
    rng = np.random.default_rng(20180)
    cases = []
    for _ in range(260):
        classes, teachers = int(rng.integers(2, 7)), int(rng.integers(1, 61))
        shares = rng.dirichlet(np.full(classes, rng.choice([0.2, 1.0, 20.0])))
        counts = rng.multinomial(teachers, shares)
        if rng.random() < 0.2:
            counts = np.sort(counts)
            counts[-2] = counts[-1]
        sigma = float(np.exp(rng.uniform(np.log(0.7), np.log(40.0))))
        order = float(1.0 + np.exp(rng.uniform(np.log(0.1), np.log(59.0))))
        cases.append((counts, sigma, order))
    return cases
