"""What one noisy argmax costs at most, for all votes: w2(λ) ≤ λ/σ².

λ/σ² (Proposition 8 of the ICLR 2018 paper) treats the whole noisy histogram as published. Only
its argmax is. Let one vote move from class a to class b and condition on the largest noisy count
among the *other* classes: given it, three outcomes are left (a wins, b wins, some other class
wins, and which one is decided by the untouched noise), so by data processing the divergence is at
most the supremum over real x, y of the one between the argmaxes of (x + N, y + N', 0) and
(x + s + N, y − s + N', 0), in units of σ, s = 1/σ. The map (x, y) → (y − s, x + s) exchanges the
two directions, so one supremum covers both. At σ = 40, λ = 14 it is 0.6425·λ/σ².
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr, logsumexp, ndtri

from pate_cli.accounting.divergence import renyi_divergence
from pate_cli.accounting.gaussian.noisy_max import SCORE_ERROR
from pate_cli.accounting.gaussian.two_classes import two_class_rdp
from pate_cli.accounting.gaussian.two_tails import two_tail_rdp
from pate_cli.arrays import Floats
from pate_cli.checks import check_orders, check_positive

__all__ = ["worst_argmax_rdp"]


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(80)
_LOG_ROOT_2PI = 0.5 * np.log(2.0 * np.pi)
_MARGIN = 9.0
_RELATIVE_SLACK = 1e-6
_CELL = 0.35
# Each zoom halves the cell; fewer than 8 leave more than _RELATIVE_SLACK to be found.
_ZOOMS = 11
_ZOOM_NODES = 9
# Beyond this the maximiser runs too far out for the search; λ/σ² stands.
_MAX_EXTENT = 60.0


def _log_win(x: Floats, y: Floats) -> Floats:
    """log Pr[x + N is above both y + N' and 0], by Gauss–Legendre where the mass is."""
    # A win over a larger y happens halfway between the two.
    centre = np.maximum(x, (x + y) / 2.0)
    low = np.maximum(0.0, centre - _MARGIN)[..., None]
    high = np.maximum(centre + _MARGIN, _MARGIN)[..., None]
    t = low + (high - low) * (_NODES + 1.0) / 2.0
    log_density = -0.5 * (t - x[..., None]) ** 2 - _LOG_ROOT_2PI
    terms = log_density + log_ndtr(t - y[..., None]) + np.log(_WEIGHTS * (high - low) / 2.0)
    return np.asarray(logsumexp(terms, axis=-1), dtype=np.float64)


def _log_outcomes(x: Floats, y: Floats) -> Floats:
    """log probabilities of the three outcomes, stacked on the first axis."""
    return np.stack([_log_win(x, y), _log_win(y, x), log_ndtr(-x) + log_ndtr(-y)])


def _divergence(x: Floats, y: Floats, *, shift: float, orders: Floats) -> Floats:
    """D_λ between the two argmaxes, [orders, *x.shape]."""
    before, after = _log_outcomes(x, y), _log_outcomes(x + shift, y - shift)
    return np.stack(
        [renyi_divergence(before, after, order=float(order), axis=0) for order in orders]
    )


def worst_argmax_rdp(
    *, sigma: float, classes: int, orders: Floats, teachers_per_record: int = 1
) -> Floats:
    """w2(λ): an upper bound on the cost of any noisy argmax of votes, data-independent.

    A neighbour that changes k > 1 votes of a query may touch more than two classes, and the
    reduction to three outcomes is lost; then the two-tail bound at its highest score stands.

    Args:
        sigma: standard deviation of the noise on each count, > 0 (counts).
        classes: number of classes, ≥ 2; with exactly 2 the exact two-class peak is used.
        orders: Rényi orders λ > 1, shape [orders].
        teachers_per_record: k ≥ 1, how many votes of a query a neighbour may change.

    Returns:
        [orders], nats, at most k²λ/σ². The supremum is found by a grid and zooms, not by a proof
        of unimodality; 1e-6 of itself is added, and λ/σ² is returned where the search would
        have to reach too far or float64 overflows.

    Raises:
        ParameterError: an order ≤ 1, or a sigma that is not positive and finite.
    """
    orders = check_orders(orders)
    sigma = check_positive("sigma", sigma) / teachers_per_record
    cap = orders / sigma**2
    if teachers_per_record > 1 and classes > 2:
        highest = ndtri(np.array([1.0 - 1.0 / classes])) + SCORE_ERROR
        return two_tail_rdp(highest, sigma=sigma, orders=orders)[:, 0]
    if classes == 2:
        return two_class_rdp(np.zeros(1), sigma=sigma, orders=orders)[:, 0]
    shift = 1.0 / sigma
    # The supremum is sought up to λ/σ + 6 on either side.
    extent = float(orders.max()) * shift + 6.0
    result = cap.copy()
    if extent > _MAX_EXTENT:
        near = (orders * shift + 6.0) <= _MAX_EXTENT
        if near.any():
            result[near] = worst_argmax_rdp(sigma=sigma, classes=classes, orders=orders[near])
        return result
    axis = np.linspace(-extent, extent, 2 * int(np.ceil(extent / _CELL)) + 1)
    x, y = (part.ravel() for part in np.meshgrid(axis, axis, indexing="ij"))
    coarse = _divergence(x, y, shift=shift, orders=orders)
    best = np.argmax(coarse, axis=1)
    for row, order in enumerate(orders):
        value = float(coarse[row, best[row]])
        centre = np.array([x[best[row]], y[best[row]]])
        radius = float(axis[1] - axis[0])
        for _ in range(_ZOOMS):
            steps = np.linspace(-radius, radius, _ZOOM_NODES)
            near_x, near_y = (
                part.ravel() for part in np.meshgrid(centre[0] + steps, centre[1] + steps)
            )
            fine = _divergence(near_x, near_y, shift=shift, orders=np.array([order]))[0]
            top = int(np.argmax(fine))
            value = max(value, float(fine[top]))
            centre = np.array([near_x[top], near_y[top]])
            radius = 2.0 * float(steps[1] - steps[0])
        if np.isfinite(value):
            result[row] = min(value * (1.0 + _RELATIVE_SLACK), cap[row])
    return result
