"""How ε is to be sanitized: everything about a release that is fixed before any vote is seen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from pate_cli import published
from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.gnss import gnss_rdp
from pate_cli.checks import check_delta, check_order
from pate_cli.errors import UsageError
from pate_cli.words import Analysis, ReleaseKind

__all__ = ["Draw", "ReleasePlan", "failure_delta"]

# δ' = δ/10 goes to the chance that the released bound is too low; κ grows so slowly with 1/δ'
# that the exact share hardly matters (between δ/2 and δ/100 it moves ε by about 2%).
_FAILURE_SHARE = 0.1


def failure_delta(kind: ReleaseKind, delta: float) -> float:
    """δ': the part of δ spent on the chance that a released upper bound is too low."""
    return _FAILURE_SHARE * delta if kind is ReleaseKind.UPPER else 0.0


@dataclass(frozen=True)
class Draw:
    """The public parameters of one sanitized draw; its cost at any order follows from them.

    Attributes:
        beta: smoothness β > 0 per vote.
        sigma: standard deviation in smooth sensitivities, > 0.
        shift: κ ≥ 0 in smooth sensitivities.
    """

    beta: float
    sigma: float
    shift: float

    def rdp(self, order: float) -> float:
        """ε_κ(λ), nats; ParameterError where it is infinite."""
        return gnss_rdp(beta=self.beta, sigma=self.sigma, order=order, shift=self.shift)


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
        analysis: `paper` converts to ε as the paper does.
        as_published: charge the draw by the published theorem, which is false for most β; only
            for comparison, and only with `paper` and `unbiased`.
    """

    kind: ReleaseKind
    delta: float
    order: float
    beta: float
    sigma: float
    analysis: Analysis = Analysis.TIGHT
    as_published: bool = False

    def __post_init__(self) -> None:
        check_delta(self.delta)
        check_order(self.order)
        if self.as_published and (
            self.analysis is not Analysis.PAPER or self.kind is ReleaseKind.UPPER
        ):
            raise UsageError(
                "--as-published goes with --analysis paper and --release unbiased, "
                "the only release the paper has"
            )
        if self.draws:
            _ = self.release_rdp  # refuses β, σ or λ out of range now rather than later
            if self.analysis is Analysis.PAPER:
                _ = self.published_release_rdp  # whose range is narrower

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
    def draw(self) -> Draw:
        """What is drawn, if anything is."""
        return Draw(beta=self.beta, sigma=self.sigma, shift=self.shift)

    @property
    def release_rdp(self) -> float:
        """ε_κ(λ): what the draw itself costs, nats."""
        return self.draw.rdp(self.order)

    @property
    def published_release_rdp(self) -> float:
        """What the paper's theorem claims the draw costs, nats."""
        return published.gnss_rdp(beta=self.beta, sigma=self.sigma, order=self.order)

    @property
    def overhead(self) -> float:
        """What is added to the (noisy) RDP of the labels to make it ε: the draw and conversion."""
        draw = self.published_release_rdp if self.as_published else self.release_rdp
        orders, delta = np.array([self.order]), self.delta - self.delta_shift
        if self.analysis is Analysis.PAPER:
            return draw + float(published.to_epsilon(np.zeros(1), orders=orders, delta=delta)[0])
        return draw + float(conversion_cost(orders, delta=delta)[0])
