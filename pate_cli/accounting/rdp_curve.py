"""A Rényi curve given at some orders: what it says between them, and of two steps in a row.

Proofs are in THEORY.md, section 17. R(α) ≥ D_α(P ‖ Q) is given at orders α_1 < … < α_n, for a set
of pairs (P, Q) that holds each one in both directions.

**Between orders.** (α − 1) D_α is convex in α and at most 0 at α = 1, so it lies below every chord
of the points (1, 0), (α_i, (α_i − 1) R(α_i)): the lowest of them at α, the lower convex hull, is
the bound. It is at most the value at the next larger order, which D_α ≤ D_β for α < β gives, and
needs no curve that rises. Beyond α_n nothing follows.

**Two steps.** If (P, M) and (M, Q) are such pairs, then for every p > 1

  D_α(P ‖ Q) ≤ (pα − 1)/(p(α − 1)) · R(pα) + R((pα − 1)/(p − 1)),

the weak triangle inequality (Mironov 2017, Proposition 11). With p = 2 − 1/α this is exact for a
Gaussian, and less than his Proposition 2, 3 R(2α), for α ≥ 2. The p that asks for the lowest
orders, 1 + √(1 − 1/α), asks for α + √(α² − α).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import LARGEST, check_orders
from pate_cli.core.errors import ParameterError

__all__ = ["RdpCurve"]

# Any p is valid; these are dense around 2.
_SPLITS = 1.0 + np.geomspace(0.02, 50.0, 241)
_ROUNDING = 1e-12


@dataclass(frozen=True, eq=False)
class RdpCurve:
    """Upper bounds on a Rényi divergence.

    Attributes:
        orders: Rényi orders > 1, ascending, [orders].
        rdp: a bound at each, ≥ 0, [orders], nats; it need not rise.

    Raises:
        ParameterError: orders that are not ascending, or numbers out of range.
    """

    orders: Floats
    rdp: Floats

    def __post_init__(self) -> None:
        orders, rdp = check_orders(self.orders), np.asarray(self.rdp, dtype=np.float64)
        if not np.all(np.diff(orders) > 0.0):
            raise ParameterError("the orders of a curve must be ascending, each given once")
        if rdp.shape != orders.shape:
            raise ParameterError(
                f"a curve needs one rdp for each of its {orders.size} orders, got {rdp.size}"
            )
        for name, values in (("order", orders), ("rdp", rdp)):
            if not np.all((values >= 0.0) & (values <= LARGEST)):
                raise ParameterError(f"every {name} of a curve must be between 0 and {LARGEST:g}")
        object.__setattr__(self, "orders", orders)
        object.__setattr__(self, "rdp", rdp)

    @cached_property
    def _corners(self) -> tuple[Floats, Floats]:
        """α − 1 and (α − 1) R(α) at the corners of the lower hull."""
        x = np.append(0.0, self.orders - 1.0)
        y = np.append(0.0, (self.orders - 1.0) * self.rdp)
        corners = _lower_hull(x, y)
        return x[corners], y[corners]

    @property
    def highest(self) -> float:
        """The order beyond which it says nothing."""
        return float(self.orders[-1])

    def at(self, orders: Floats) -> Floats:
        """A bound at orders > 1, any shape, nats; inf beyond the last given one."""
        orders = np.asarray(orders, dtype=np.float64)
        joined = np.interp(orders - 1.0, *self._corners) / (orders - 1.0)
        return np.where(orders <= self.highest, joined * (1.0 + _ROUNDING), np.inf)

    @property
    def highest_of_two(self) -> float:
        """The order beyond which nothing follows for two steps."""
        return self.highest**2 / (2.0 * self.highest - 1.0) * (1.0 - _ROUNDING)

    def of_two(self, orders: Floats) -> Floats:
        """A bound for two steps in a row at orders > 1, [orders], nats; inf beyond."""
        order = np.asarray(orders, dtype=np.float64)[:, None]
        own = [2.0 - 1.0 / order, 1.0 + np.sqrt(1.0 - 1.0 / order)]
        split = np.hstack([*own, np.broadcast_to(_SPLITS, (len(order), _SPLITS.size))])
        first, second = split * order, (split * order - 1.0) / (split - 1.0)
        weight = (first - 1.0) / (split * (order - 1.0))
        return np.min(weight * self.at(first) + self.at(second), axis=1) * (1.0 + _ROUNDING)


def _lower_hull(x: Floats, y: Floats) -> list[int]:
    """Indices of the corners of the lower convex hull, both ends included; x ascending.

    Which corners are kept matters for sharpness alone: any chord is a bound.
    """
    kept: list[int] = []
    for at in range(x.size):
        while len(kept) > 1:
            a, b = kept[-2], kept[-1]
            if (y[b] - y[a]) * (x[at] - x[a]) < (y[at] - y[a]) * (x[b] - x[a]):
                break
            kept.pop()
        kept.append(at)
    return kept
