"""What no sample can show: the sanitized number's (ε, δ) at a tiny δ, by calculation.

Noise with a spread of its own for each file is told apart by the far tails alone. Two files one
vote apart whose smooth sensitivities are 1 and e^{−β}, and whose costs differ by e^{−β}, as they
may (accounting.sensitivity), release N(κ, σ²) and N((κ − 1)e^{−β}, e^{−2β}σ²), κ smooth
sensitivities being added to make an upper bound. The log of the ratio of two normal densities is a
parabola, so that the best event for every ε is an interval or its complement, and δ is a difference
of normal probabilities.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq
from scipy.stats import norm

import pate_cli as pate
from audit.cases import Case, charged_epsilon


def gaussian_pair_delta(epsilon: float, *, mean: float, spread: float) -> float:
    """The least δ of N(mean, spread²) against N(0, 1) at ε, in both directions; spread < 1."""
    one, other = norm(mean, spread), norm(0.0, 1.0)
    # log one − log other = a x² + b x + c, a < 0.
    a, b = 0.5 - 0.5 / spread**2, mean / spread**2
    c = -0.5 * (mean / spread) ** 2 - math.log(spread)

    def level(height: float) -> tuple[float, float] | None:
        """Where the parabola is above a height."""
        under = b * b - 4.0 * a * (c - height)
        if under <= 0.0:
            return None
        return (-b + math.sqrt(under)) / (2.0 * a), (-b - math.sqrt(under)) / (2.0 * a)

    def inside(law: Any, ends: tuple[float, float]) -> float:
        return float(law.cdf(ends[1]) - law.cdf(ends[0]))

    def outside(law: Any, ends: tuple[float, float]) -> float:
        return float(law.cdf(ends[0]) + law.sf(ends[1]))

    found = [0.0]
    if (ends := level(epsilon)) is not None:
        found.append(inside(one, ends) - math.exp(epsilon) * inside(other, ends))
    if (ends := level(-epsilon)) is not None:
        found.append(outside(other, ends) - math.exp(epsilon) * outside(one, ends))
    return max(found)


@dataclass(frozen=True)
class ExactReleaseCase(Case):
    """The worst pair that smooth sensitivity allows, against the charge for one draw.

    Attributes:
        order, beta, sigma: λ, β and σ_SS of an upper release.
        delta: of the claim.
    """

    name: str
    order: float
    beta: float
    sigma: float
    delta: float
    draws: int = 0

    def claim(self) -> float:
        """By the report of a draw, whose votes do not matter."""
        asked = {"laplace_scale": 1.0, "layout": "counts", "release": "upper", "delta": self.delta}
        drawn = {"order": self.order, "beta": self.beta, "sigma_release": self.sigma}
        report = pate.aggregate(np.array([[3, 1]]), "lnmax", **asked, **drawn).report
        return charged_epsilon(report, delta=self.delta)

    def measured(self, draws: int) -> tuple[float, int]:
        """Calculated."""
        ratio = math.exp(-self.beta)
        # κ/σ: the bound is too low with a tenth of δ.
        apart = ratio / self.sigma + (1.0 - ratio) * norm.isf(self.delta / 10.0)

        def excess(epsilon: float) -> float:
            there = gaussian_pair_delta(epsilon, mean=apart, spread=ratio)
            return math.log(max(there, 1e-300) / self.delta)

        return float(brentq(excess, 1e-6, 50.0)), 0
