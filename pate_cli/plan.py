"""How ε is to be sanitized: everything about a release that is fixed before any vote is seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.domain import check_delta, check_order
from pate_cli.accounting.gnss import gnss_rdp
from pate_cli.choices import ReleaseKind

__all__ = ["ReleasePlan", "failure_delta"]

# δ' = δ/10 goes to the chance that the released bound is too low; κ grows so slowly with 1/δ'
# that the exact share hardly matters (between δ/2 and δ/100 it moves ε by about 2%).
_FAILURE_SHARE = 0.1


def failure_delta(kind: ReleaseKind, delta: float) -> float:
    """δ': the part of δ spent on the chance that a released upper bound is too low."""
    return _FAILURE_SHARE * delta if kind is ReleaseKind.UPPER else 0.0


@dataclass(frozen=True)
class ReleasePlan:
    """Public parameters of a sanitized release (theory in accounting.gnss).

    Attributes:
        kind: `upper` adds κ = σ·Φ⁻¹(1 − δ') smooth sensitivities, so that the published value is
            below the true one with probability δ' only; `unbiased` adds none; `none` publishes
            no data-dependent value at all.
        delta: δ of the whole guarantee, δ' included.
        order: Rényi order λ > 1 at which the release is made.
        beta: smoothness β > 0 per vote.
        sigma: standard deviation of the noise in units of the smooth sensitivity, > 0.
    """

    kind: ReleaseKind
    delta: float
    order: float
    beta: float
    sigma: float

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_order(self.order)
        if self.draws:
            _ = self.release_rdp  # refuses β, σ or λ out of range now rather than later

    @property
    def draws(self) -> bool:
        """Whether a sanitized value is drawn at all."""
        return self.kind is not ReleaseKind.NONE

    @property
    def delta_shift(self) -> float:
        """δ': the chance that a released upper bound is below the true value."""
        return failure_delta(self.kind, self.delta)

    @property
    def shift(self) -> float:
        """κ, in units of the smooth sensitivity."""
        if self.kind is not ReleaseKind.UPPER:
            return 0.0
        return self.sigma * float(-ndtri(self.delta_shift))

    @property
    def release_rdp(self) -> float:
        """ε_κ(λ): what the draw itself costs, nats."""
        return gnss_rdp(beta=self.beta, sigma=self.sigma, order=self.order, shift=self.shift)

    @property
    def overhead(self) -> float:
        """What is added to the (noisy) RDP of the labels to make it ε: the draw and conversion."""
        orders = np.array([self.order])
        conversion = conversion_cost(orders, delta=self.delta - self.delta_shift)[0]
        return self.release_rdp + float(conversion)
