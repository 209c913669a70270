"""A rough cost and smooth sensitivity of many threshold tests at once, for ranking only.

Cost ρ is tabulated on a small lattice of (v, z): plurality counts and scores of the argmax. Rows
are spread over its nodes bilinearly, so that sums over any prefix of rows are matrix products.
How far one vote moves ρ is taken from the slopes of the table, and its maximum over windows grows
with the distance as in accounting.sensitivity. Nothing here is a bound; whatever is reported is
computed again on the accountant's own lattice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.score_grid import COARSE
from pate_cli.accounting.threshold import pass_moments
from pate_cli.arrays import Floats
from pate_cli.mechanisms import GNMax

__all__ = ["Lattice", "Tests"]


_ROWS, _COLUMNS = 32, 40
# Distances at which windows are measured, in steps of the lattice's rows. No step is longer than
# the window before it plus one, so that each window is the one before, shifted either way.
_STEPS = (0, 1, 2, 3, 5, 8, 12, 18, 26)
# Pairs looked at together: a table of the lattice for them stays in the processor's cache.
_CHUNK = 24


@dataclass(frozen=True, eq=False)
class Tests:
    """What a set of threshold tests contributes to the cost at the lattice's rows, at one order.

    Attributes:
        votes: v of the rows, [rows].
        excess, weight: J − 1 of the coin and the weight of its answering branch,
            [4, rows, pairs].
        cap: k²λ/(2σ1²), [pairs].
        order: λ.
    """

    votes: Floats
    excess: Floats
    weight: Floats
    cap: Floats
    order: float

    @classmethod
    def of(
        cls, pairs: list[tuple[float, float]], *, teachers: int, reach: int, order: float
    ) -> Tests:
        """Tests with these (T, σ1)."""
        votes = np.linspace(0.0, teachers, min(teachers, _ROWS) + 1)
        moments = [
            pass_moments(votes, threshold=t, sigma=sigma, order=order, reach=float(reach))
            for t, sigma in pairs
        ]
        with np.errstate(over="ignore"):
            weight = np.exp(np.stack([one.log_weight for one in moments], axis=-1))
        return cls(
            votes=votes,
            excess=np.stack([one.excess for one in moments], axis=-1),
            weight=weight,
            cap=np.array([reach**2 * order / (2.0 * sigma**2) for _, sigma in pairs]),
            order=order,
        )


@dataclass(frozen=True, eq=False)
class Lattice:
    """Rows of an electorate on the lattice of one argmax and one order.

    Attributes:
        tests: the threshold tests, which share the rows of the lattice.
        argmax: the second step.
        plurality, scores: v and z of every row, [queries].
        stops: ascending numbers of rows, [stops].
        scale: how many queries each row stands for.
    """

    tests: Tests
    argmax: GNMax
    plurality: Floats
    scores: Floats
    stops: NDArray[np.int64]
    scale: float

    @cached_property
    def _columns(self) -> Floats:
        grid = self.argmax.surface(self.tests.order, COARSE).grid
        return np.linspace(grid.floor, float(grid.nodes()[-1]), _COLUMNS + 1)

    @cached_property
    def _weights(self) -> Floats:
        """Queries per node and stop, [rows · columns, stops]."""
        rows, columns = self.tests.votes, self._columns
        place = np.clip(self.plurality / (rows[1] - rows[0]), 0.0, rows.size - 1.001)
        across = (self.scores - columns[0]) / (columns[1] - columns[0])
        across = np.clip(across, 0.0, columns.size - 1.001)
        row, column = place.astype(np.int64), across.astype(np.int64)
        down, right = place - row, across - column
        part = np.searchsorted(self.stops, np.arange(self.plurality.size) + 1)
        inside = part < self.stops.size
        total = np.zeros(rows.size * columns.size * self.stops.size)
        for r, c, share in (
            (0, 0, (1.0 - down) * (1.0 - right)),
            (1, 0, down * (1.0 - right)),
            (0, 1, (1.0 - down) * right),
            (1, 1, down * right),
        ):
            node = (row + r) * columns.size + column + c
            total += np.bincount(
                (node * self.stops.size + part)[inside],
                weights=share[inside],
                minlength=total.size,
            )
        return np.cumsum(total.reshape(-1, self.stops.size), axis=1) * self.scale

    @property
    def distances(self) -> Floats:
        """Distances in votes at which `totals` gives sensitivities."""
        votes = self.tests.votes
        reach = self.argmax.teachers_per_record
        return np.array(_STEPS[: self._windows]) * float(votes[1] - votes[0]) / reach

    @property
    def _windows(self) -> int:
        """Steps beyond the lattice's rows would see nothing new."""
        return sum(step <= self.tests.votes.size for step in _STEPS)

    def totals(self) -> tuple[Floats, Floats]:
        """(Σ ρ [pairs, stops], Σ LS_d [distances, pairs, stops]), nats."""
        costs, curves = [], []
        for start in range(0, self.tests.cap.size, _CHUNK):
            cost, curve = self._part(slice(start, start + _CHUNK))
            costs.append(cost)
            curves.append(curve)
        return np.concatenate(costs), np.concatenate(curves, axis=1)

    def _part(self, pairs: slice) -> tuple[Floats, Floats]:
        rho = self._cost(pairs)
        window = self._slopes(rho)
        across = float(self.distances[1]) * self.argmax.lipschitz[0] / self._column_step
        curve = np.empty((self._windows, rho.shape[2], self.stops.size))
        done_rows = done_columns = 0
        for place, rows in enumerate(_STEPS[: self._windows]):
            columns = round(rows * across)
            window = _widen(window, rows - done_rows, covered=done_rows, axis=0)
            window = _widen(window, columns - done_columns, covered=done_columns, axis=1)
            done_rows, done_columns = rows, columns
            curve[place] = self._sum(window)
        return self._sum(rho), curve

    def _sum(self, table: Floats) -> Floats:
        """Σ over the rows up to each stop of a table [rows, columns, pairs]: [pairs, stops]."""
        return table.reshape(-1, table.shape[2]).T @ self._weights

    @property
    def _column_step(self) -> float:
        return float(self._columns[1] - self._columns[0])

    @cached_property
    def _argmax_rdp(self) -> Floats:
        surface = self.argmax.surface(self.tests.order, COARSE)
        return np.maximum.accumulate(surface.at(self._columns))

    def _cost(self, pairs: slice) -> Floats:
        """ρ at the nodes, [rows, columns, pairs]."""
        order = self.tests.order
        gain = np.expm1(np.minimum((order - 1.0) * self._argmax_rdp, 500.0))[None, :, None]
        excess, weight = self.tests.excess[..., pairs], self.tests.weight[..., pairs]
        worst = np.zeros(())
        with np.errstate(over="ignore", invalid="ignore"):
            for more, factor in zip(excess, weight, strict=True):
                worst = np.fmax(worst, more[:, None, :] + factor[:, None, :] * gain)
            rho = np.log1p(worst) / (order - 1.0)
        return np.fmin(rho, self.tests.cap[pairs] + self._argmax_rdp[None, :, None])

    def _slopes(self, rho: Floats) -> Floats:
        """How much ρ changes with one vote, roughly, at the nodes."""
        row_step = float(self.tests.votes[1] - self.tests.votes[0])
        result = np.zeros_like(rho)
        for axis, moved in (
            (0, self.argmax.teachers_per_record / row_step),
            (1, self.argmax.lipschitz[0] / self._column_step),
        ):
            change = np.abs(np.diff(rho, axis=axis)) * moved
            none = np.zeros_like(np.take(rho, [0], axis=axis))
            steepest = np.maximum(
                np.concatenate([change, none], axis=axis), np.concatenate([none, change], axis=axis)
            )
            result += steepest
        return result


def _widen(table: Floats, step: int, *, covered: int, axis: int) -> Floats:
    """The maximum over a window `step` wider either way than the one `table` is a maximum over."""
    while step > 0:
        shift = min(step, covered + 1)
        step, covered = step - shift, covered + shift
        if shift >= table.shape[axis]:
            return np.broadcast_to(table.max(axis=axis, keepdims=True), table.shape)
        low = (slice(None),) * axis + (slice(None, -shift),)
        high = (slice(None),) * axis + (slice(shift, None),)
        wider = table.copy()
        np.maximum(wider[high], table[low], out=wider[high])
        np.maximum(wider[low], table[high], out=wider[low])
        table = wider
    return table
