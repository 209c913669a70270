"""How far one teacher moves q (B_U, B_L), where the bound stops helping (q0, q1), Algorithm 3.

B_U and B_L of Appendix B.1 are shifts of one coordinate, the margin z = Φ^{-1}(q/(m − 1)): with
½ erfc(x) = Φ(−√2 x), the published (m−1)/2 · erfc(erfc^{-1}(2q/(m−1)) ∓ 1/σ) is
(m−1)·Φ(z ± √2/σ).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_ndtr, ndtri_exp

from pate_cli.core.arrays import Floats
from pate_cli.core.errors import ParameterError
from pate_cli.paper.gnmax import data_dependent_rdp, rdp_of_log_q

_FINEST, _COARSEST = 0.1, 1e9  # σ at which q0 and the conditions are told from rounding
_CELLS = 4096
_ZOOM = 64
_ZOOMS = 12  # 64^12 is far beyond 2^53: the bracket ends at neighbouring doubles


@dataclass(frozen=True)
class Plateau:
    """The shape of LS̃ at one (σ, m, λ): β rises up to q0, then it is λ/σ²; LS̃ is flat on [q1, q0].

    Attributes:
        sigma: standard deviation σ of GNMax's noise, in votes.
        classes: m ≥ 2.
        order: Rényi order λ > 1.
        log_q0, log_q1: log of q0 and of q1 = B_L(q0).
        height: LS̃ on [q1, q0], nats: the largest local sensitivity of any histogram under C2–C6.
    """

    sigma: float
    classes: int
    order: float
    log_q0: float
    log_q1: float = math.nan
    height: float = math.nan

    @property
    def step(self) -> float:
        """√2/σ: how far one teacher can move the margin z."""
        return math.sqrt(2.0) / self.sigma

    def margin(self, log_q: ArrayLike) -> Floats:
        """z = Φ^{-1}(q/(m − 1)) from log q; −inf at q = 0."""
        share = np.asarray(log_q, dtype=np.float64) - np.log(self.classes - 1.0)
        return np.asarray(ndtri_exp(share), dtype=np.float64)

    def log_q(self, margin: ArrayLike) -> Floats:
        """log[(m − 1)·Φ(z)], not capped at 0."""
        height = log_ndtr(np.asarray(margin, dtype=np.float64))
        return np.asarray(np.log(self.classes - 1.0) + height, dtype=np.float64)

    def above(self, log_q: ArrayLike) -> Floats:
        """log B_U(q), at most 0: no neighbour's q exceeds it. min{(m−1)·Φ(z + √2/σ), 1}, B.1."""
        return np.minimum(self.log_q(self.margin(log_q) + self.step), 0.0)

    def below(self, log_q: ArrayLike) -> Floats:
        """log B_L(q): no neighbour's q is less. (m−1)·Φ(z − √2/σ), B.1."""
        return self.log_q(self.margin(log_q) - self.step)

    def rdp(self, log_q: ArrayLike) -> Floats:
        """β(q) at λ, [queries], nats."""
        return rdp_of_log_q(log_q, sigma=self.sigma, orders=self.order)[0]

    def rise(self, log_q: Floats) -> Floats:
        """max{β(B_U(q)) − β(q), β(q) − β(B_L(q))}, [queries], nats."""
        middle = self.rdp(log_q)
        up, down = self.rdp(self.above(log_q)) - middle, middle - self.rdp(self.below(log_q))
        return np.maximum(up, down)

    def local_sensitivity(self, log_q: ArrayLike) -> Floats:
        """LS̃(q): an upper bound on what one teacher can change β(q) by. Algorithm 3.

        The rise at q, with q replaced by q1 inside [q1, q0]. An upper bound under conditions
        C2–C6 (`require_conditions`).

        Args:
            log_q: log q of each histogram, [queries], at most log(1 − 1/m).

        Returns:
            [queries], nats.
        """
        queried = np.atleast_1d(np.asarray(log_q, dtype=np.float64))
        flat = (self.log_q1 <= queried) & (queried <= self.log_q0)
        found = np.full(queried.shape, self.height)
        found[~flat] = self.rise(queried[~flat])
        return found


def log_q0(*, sigma: float, order: float) -> float:
    """log of q0 < 1, the end of the data-dependent range: below it Theorem 6 beats λ/σ².

    Appendix A: "a critical value of q0 that separates the range of applicability of the
    data-dependent and data-independent bounds can be computed for given σ and λ". Here it is the
    first q, coming from 0, at which Theorem 6 either ceases to apply or reaches λ/σ².

    Args:
        sigma: standard deviation σ of GNMax's noise, in votes, from 0.1 to 1e9.
        order: Rényi order λ > 1.

    Raises:
        ParameterError: σ is out of range, or so extreme that no q0 is found.
    """
    if not _FINEST <= sigma <= _COARSEST:
        raise ParameterError(
            f"the published sensitivity needs sigma in [{_FINEST:g}, {_COARSEST:g}], got {sigma:g}"
        )

    def beats(root: Floats) -> NDArray[np.bool_]:
        bound = data_dependent_rdp(-(root**2), sigma=sigma, orders=order)[0]
        return np.asarray(bound <= order / sigma**2)

    # In r = √log(1/q) the theorem's second term is exp(λ(λ−1)/σ² − (r − (λ−1)/σ)²), and
    # 1 − A ~ exp(−(r − 1/σ)²); both conditions on μ are lower ends of r.
    lowest = max(order - 1.0, 1.0) / sigma
    highest = (order + 1.0) / sigma + np.sqrt(np.log1p(sigma**2) + 40.0)
    tried = highest * 2.0 ** np.arange(30)
    good = np.flatnonzero(beats(tried))
    if not good.size:
        raise ParameterError(f"no data-dependent range at sigma {sigma:g}, order {order:g}")
    below = np.linspace(tried[good[0]], lowest, _CELLS)
    for _ in range(_ZOOMS):
        crossed = ~beats(below)
        crossed[-1] = True  # at the lowest r the theorem is about to cease to apply
        first = int(np.argmax(crossed))
        below = np.linspace(below[first - 1], below[first], _ZOOM + 1)
    return float(-(below[0] ** 2))


def find_plateau(*, sigma: float, classes: int, order: float) -> Plateau:
    """q0, q1 = B_L(q0) and the height LS̃(q1), for one (σ, m, λ).

    Raises:
        ParameterError: σ is out of range, or so extreme that no q0 is found.
    """
    shape = Plateau(sigma, classes, order, log_q0(sigma=sigma, order=order))
    shape = replace(shape, log_q1=float(shape.below(shape.log_q0)))
    return replace(shape, height=float(shape.rise(np.array([shape.log_q1]))[0]))
