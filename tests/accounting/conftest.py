"""Seeded small histograms for the tests of the accounting."""

import numpy as np
import pytest


@pytest.fixture(scope="session")
def small_cases():
    """Small histograms with a σ and an order: ties, lone classes, wide gaps, any total."""
    rng = np.random.default_rng(20180)
    cases = []
    for _ in range(160):
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
