"""How ε is to be sanitized: everything about a release that is fixed before any vote is seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar

from pate_cli.accounting.conversion import order_cost
from pate_cli.accounting.sensitivity import gnss_rdp, largest_order, shift_quantile
from pate_cli.core.checks import check_delta, check_order
from pate_cli.core.errors import ParameterError
from pate_cli.core.noise import NARROWEST
from pate_cli.core.words import Analysis, ReleaseKind
from pate_cli.files.document import called

# δ' = δ/10 goes to the chance that the released bound is too low; κ grows so slowly with 1/δ'
# that the exact share hardly matters (between δ/2 and δ/100 it moves ε by about 2%).
_FAILURE_SHARE = 0.1


def failure_delta(delta: float) -> float:
    """δ': the part of δ spent on the chance that a released upper bound is too low."""
    # Printed, and used as it is printed: 1e-06, not 1.0000000000000002e-06.
    return float(f"{_FAILURE_SHARE * delta:.12g}")


@dataclass(frozen=True)
class Draw:
    """The public parameters of one sanitized draw; its cost at any order follows from them.

    Attributes:
        beta: smoothness β > 0 per vote.
        sigma: standard deviation in smooth sensitivities, > 0.
        shift: κ ≥ 0 in smooth sensitivities.
    """

    beta: float
    sigma: float = field(metadata=called("sigma_release"))
    shift: float

    def __post_init__(self) -> None:
        self.rdp(1.0 + 1e-9)  # ParameterError where something is out of range

    @property
    def highest(self) -> float:
        """The order from which on the draw costs infinitely much."""
        return largest_order(self.beta)

    def rdp(self, order: float) -> float:
        """ε_κ(λ), nats; ParameterError where it is infinite."""
        return gnss_rdp(beta=self.beta, sigma=self.sigma, order=order, shift=self.shift)


@dataclass(frozen=True)
class ReleasePlan:
    """Public parameters of a sanitized release (theory in accounting.sensitivity).

    Attributes:
        kind: `upper` adds κ = σ·Φ⁻¹(1 − δ') smooth sensitivities, so that the published value is
            below the true one with probability δ' only; `none` publishes no data-dependent value
            at all.
        delta: δ of the whole guarantee, δ' included.
        order: Rényi order λ > 1 at which the release is made.
        beta: smoothness β > 0 per vote.
        sigma: standard deviation of the noise in units of the smooth sensitivity, > 0.
    """

    analysis: ClassVar[Analysis] = Analysis.TIGHT

    kind: ReleaseKind
    delta: float
    order: float
    beta: float
    sigma: float

    def __post_init__(self) -> None:
        if self.kind is ReleaseKind.TARGET:
            raise ParameterError("a target is tested, not drawn; give an `upper` release or `none`")
        check_delta(self.delta)
        check_order(self.order)
        if self.publishes_draw:
            _ = self.release_rdp  # refuses β, σ or λ out of range

    @property
    def publishes_draw(self) -> bool:
        """Whether a sanitized value is drawn at all."""
        return self.kind is not ReleaseKind.NONE

    @property
    def delta_shift(self) -> float:
        """δ': the chance that a released upper bound is below the true value; 0 without a draw."""
        return failure_delta(self.delta) if self.publishes_draw else 0.0

    @property
    def shift(self) -> float:
        """κ, in units of the smooth sensitivity."""
        return self.sigma * shift_quantile(self.delta_shift)

    @property
    def draw(self) -> Draw:
        """Public parameters of the draw."""
        return Draw(beta=self.beta, sigma=self.sigma, shift=self.shift)

    @property
    def draws(self) -> tuple[Draw, ...]:
        """The draw, if there is one."""
        return (self.draw,) if self.publishes_draw else ()

    @property
    def release_rdp(self) -> float:
        """ε_κ(λ): what the draw itself costs, nats."""
        return self.draw.rdp(self.order)

    @property
    def overhead(self) -> float:
        """ε of the draw and of the conversion, nats: added to the RDP cost of the labels."""
        return self.release_rdp + self.conversion(self.delta - self.delta_shift)

    def conversion(self, delta: float) -> float:
        """Return the ε that converting RDP at the order of the plan adds at δ, nats."""
        return order_cost(self.order, delta=delta)

    def value(self, rdp: float, smooth: float, deviate: float = 0.0) -> float:
        """The ε that is published: f + SS·(κ + σN) + overhead, at N = `deviate`, nats.

        SS is taken for more where the noise would be so narrow that round-off tells beside it: the
        greater of SS and a constant is as smooth as SS (accounting/THEORY.md, 12.4).
        """
        wide = max(smooth, NARROWEST / self.sigma)
        return rdp + wide * (self.shift + self.sigma * deviate) + self.overhead
