"""Independent oracles: every histogram, every neighbour, and the exact law of every label."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np
import pytest
from scipy.special import ndtr

from pate_cli.accounting.sensitivity import sensitivity_curve


@dataclass(frozen=True)
class Graph:
    """All histograms of some votes, and all pairs that one moved vote connects."""

    histograms: np.ndarray
    edges: np.ndarray

    @property
    def distances(self):
        return np.abs(self.histograms[:, None] - self.histograms[None]).sum(axis=2) // 2


def every_histogram(teachers, classes):
    histograms = np.array(
        [h for h in itertools.product(range(teachers + 1), repeat=classes) if sum(h) == teachers]
    )
    gaps = np.abs(histograms[:, None] - histograms[None]).sum(axis=2)
    return Graph(histograms, np.argwhere(gaps == 2))


def curves_of(surface, cells, distances):
    """LS_d of single queries in given cells, [cells, distances], and the bound for every d."""
    blocks = surface.blocks
    distinct, inverse = np.unique(cells, axis=0, return_inverse=True)
    rows = [
        sensitivity_curve(
            blocks,
            cells=cell[None],
            weights=np.ones(1, dtype=np.int64),
            grid=surface.grid,
            rows_per_block=surface.rows_per_block,
            distances=np.arange(distances),
        )
        for cell in distinct
    ]
    return np.array(rows)[inverse.reshape(-1)], float(blocks.max())


def winning_chances(counts, sigma):
    """Pr[argmax of counts + N(0, σ²) is i] per class, by brute quadrature in linear space."""
    means = np.asarray(counts, dtype=float) / sigma
    t = np.linspace(means.min() - 11.0, means.max() + 11.0, 6001)
    z = t[:, None] - means[None, :]
    density, below = np.exp(-0.5 * z**2) / np.sqrt(2.0 * np.pi), ndtr(z)
    rest = [np.prod(np.delete(below, i, axis=1), axis=1) for i in range(len(means))]
    return np.array([np.sum(density[:, i] * rest[i]) * (t[1] - t[0]) for i in range(len(means))])


PANEL = np.polynomial.legendre.leggauss(24)


def laplace_chances(counts, scale):
    """Pr[argmax of counts + Lap(b) is i] per class: Gauss on panels of length ≤ 1 between kinks."""
    means = np.asarray(counts, dtype=float) / scale
    kinks = np.unique(np.concatenate([means, [means.min() - 45.0, means.max() + 45.0]]))
    edges = [np.linspace(a, b, int(b - a) + 2)[:-1] for a, b in itertools.pairwise(kinks)]
    edges = np.append(np.concatenate(edges), kinks[-1])
    half = np.diff(edges)[:, None] / 2.0
    t = (edges[:-1, None] + half * (1.0 + PANEL[0])).reshape(-1)
    x = t[:, None] - means
    density = 0.5 * np.exp(-np.abs(x))
    below = np.where(x < 0.0, density, 1.0 - density)
    rest = [np.prod(np.delete(below, i, axis=1), axis=1) for i in range(len(means))]
    weight = (half * PANEL[1]).reshape(-1)
    return np.array([weight @ (density[:, i] * rest[i]) for i in range(len(means))])


def law(mechanism, counts, student=None):
    """The exact probabilities of no answer of the teachers and of every class, in this order."""
    if mechanism.name == "lnmax":
        return np.append(0.0, laplace_chances(counts, mechanism.laplace_scale))
    chances = winning_chances(counts, mechanism.sigma2)
    if mechanism.name == "gnmax":
        return np.append(0.0, chances)
    expected = np.zeros(len(counts)) if student is None else mechanism.teachers * student
    answered = ndtr((max(counts - expected) - mechanism.threshold) / mechanism.sigma1)
    return np.append(1.0 - answered, answered * chances)


@pytest.fixture(scope="session")
def all_histograms():
    return every_histogram


@pytest.fixture(scope="session")
def single_curves():
    return curves_of


@pytest.fixture(scope="session")
def exact_law():
    return law
