"""Suprema with a certificate: bounds on cells, of which only the promising ones are split.

A *cell* is a cube, given by its centre and half its side. The caller bounds the excess moment f = J
− 1 of every Rényi order on each cell from above and tells its value at the centre. Let D_0 be the
largest divergence seen at any centre so far, D = log(1 + f)/(λ − 1). A cell whose bound is at most
the excess of D_0(1 + slack) can hold nothing more and is dropped; the others are cut into equal
parts along every axis. When none is left, D_0(1 + slack) bounds the divergence on all cells. Should
the budget of cells run out first, the largest bound of a cell that is left stands instead: it is an
upper bound, too, and only less sharp.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Floats

Bounds = Callable[[Floats, float, NDArray[np.bool_]], tuple[Floats, Floats]]
"""(centres [axes, cells], half a side, wanted [orders, cells]) → (values at the centres, upper
bounds on the cells), both [orders, cells]; what is not wanted may hold anything."""


def where_wanted(
    wanted: NDArray[np.bool_],
    bounds: Callable[[NDArray[np.intp], NDArray[np.intp]], tuple[Floats, Floats]],
) -> tuple[Floats, Floats]:
    """What is found for (orders, cells) that are wanted, in its place, [orders, cells]; else 0."""
    values, uppers = np.zeros(wanted.shape), np.zeros(wanted.shape)
    values[wanted], uppers[wanted] = bounds(*np.nonzero(wanted))
    return values, uppers


def _divergence(excess: Floats, orders: Floats) -> Floats:
    return np.log1p(excess) / (orders - 1.0)


def certified_supremum(
    bounds: Bounds,
    *,
    centres: Floats,
    half: float,
    wanted: NDArray[np.bool_],
    orders: Floats,
    floor: Floats,
    slack: float,
    most_cells: int,
    parts: int = 2,
) -> Floats:
    """An upper bound on D_λ over all cells, at most (1 + slack) times what is attained.

    Args:
        bounds: values and upper bounds of the excess moment J − 1, see `Bounds`.
        centres: of the first cells, [axes, cells].
        half: half the side of the first cells.
        wanted: [orders, cells], which cells matter to which order.
        orders: Rényi orders λ > 1, [orders].
        floor: [orders], nats; divergences up to floor·(1 + slack) need not be told apart.
        slack: relative, > 0.
        most_cells: how many cells may be looked at.
        parts: into how many a side of a cell is cut; where few cells stay, many are soon there.

    Returns:
        [orders], nats; max(floor, largest value seen)·(1 + slack), or more where cells ran out.
    """
    best = floor.copy()
    along = (2.0 * np.arange(parts) + 1.0 - parts) / parts
    places = np.array(np.meshgrid(*([along] * len(centres)), indexing="ij"))
    places = places.reshape(len(centres), -1)
    while True:
        values, uppers = bounds(centres, half, wanted)
        seen = np.where(wanted, values, 0.0).max(axis=1)
        best = np.maximum(best, _divergence(seen, orders))
        target = np.expm1((orders - 1.0) * best * (1.0 + slack))
        # NaN and infinity are no bounds: such a cell stays.
        wanted = wanted & ~((uppers <= target[:, None]) & np.isfinite(uppers))
        keep = wanted.any(axis=0)
        most_cells -= centres.shape[1]
        if not keep.any():
            return best * (1.0 + slack)
        if int(keep.sum()) * places.shape[1] > most_cells:
            left = np.where(wanted, np.nan_to_num(uppers, nan=np.inf), 0.0).max(axis=1)
            return np.maximum(best * (1.0 + slack), _divergence(left, orders))
        centres = (centres[:, keep, None] + half * places[:, None, :]).reshape(len(centres), -1)
        wanted = np.repeat(wanted[:, keep], places.shape[1], axis=1)
        half /= parts
