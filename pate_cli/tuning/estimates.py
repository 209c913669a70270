"""What the first rows of a sample would cost within each distance: quick, for a choice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Protocol

import numpy as np

from pate_cli.accounting.cost_table import CostTable, ScoreTable, Tally
from pate_cli.accounting.score_grid import COARSE
from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.core.arrays import Floats, Ints, each_once
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.chances import at_every_distance
from pate_cli.planning.pairs import PairTable
from pate_cli.planning.sample import VoteSample
from pate_cli.planning.setting import Setting

# No distances that hardly ever matter.
_FEW_DISTANCES = np.arange(40)
# Few orders in all, so that settings share their tables.
_LADDER, _STRIDE = np.array([1.5, 2.0, 3.0, 4.5, 6.5, 10.0, 15.0, 22.0, 32.0, 48.0]), 2
_WIDE = np.array([1.5, 3.0, 6.5, 15.0, 32.0])


class Estimates(Protocol):
    """Estimates for many settings of one sample, by one bound.

    Attributes:
        ladder: orders to look at where the target is not settled.
        wide: a few of them, far apart, for a first guess.
    """

    ladder: Floats
    wide: Floats

    def prices(self, setting: Setting, orders: Floats) -> Prices:
        """What the rows cost at a setting, mostly at these orders."""
        ...

    def orders(self, plan: TargetPlan, *, settled: bool) -> Floats:
        """A few of the orders of a run, or near them; any others where no target is settled."""
        ...


class Prices:
    """What the first rows of a sample cost at one setting, by distance."""

    def __init__(
        self,
        place: Ints,
        within: Callable[[float], Floats],
        *,
        distances: Floats,
        scale: float,
    ) -> None:
        """Start with nothing known.

        Args:
            place: which distinct state each row of the sample is in, [rows].
            within: what each state costs at an order, [distances, states], nats.
            distances: ascending, from 0; costs between them are on straight lines.
            scale: of so many rows each row of the sample is one.
        """
        self._place, self._compute = place, within
        self._distances, self._scale = distances, scale
        self._every = np.arange(min(float(distances[-1]) + 1.0, DISTANCES))
        self._known: dict[float, Floats] = {}

    def chance(self, plan: TargetPlan, orders: Floats, rows: int, *, factor: float = 1.0) -> float:
        """The chance that so many rows of the whole sample pass, if each costs a factor more."""
        at = self._at(rows)
        return plan.coin(lambda order: factor * at(order), orders=orders).chance

    def chances(
        self, plan: TargetPlan, orders: Floats, rows: Ints, *, factor: float = 1.0
    ) -> Floats:
        """The chances of several numbers of rows, [rows]."""
        seen = np.clip(np.round(rows / self._scale).astype(np.int64), 1, self._place.size)
        states = int(self._place.max()) + 1
        weights = (
            np.stack(
                [np.bincount(self._place[:number], minlength=states) for number in seen.tolist()]
            )
            * (rows / seen)[:, None]
        )
        costs = np.stack([factor * self._within(order) @ weights.T for order in orders.tolist()])
        profiles = at_every_distance(costs, self._distances)
        return plan.chances(np.moveaxis(profiles, 2, 0), orders)

    def profile(self, order: float, rows: int) -> Floats:
        """u_d of so many rows, d = 0, 1, …, [distances], nats."""
        return self._at(rows)(order)

    def cost(self, orders: Floats, rows: int) -> Floats:
        """u_0 of so many rows, [orders], nats."""
        at = self._at(rows)
        return np.array([at(order)[0] for order in orders.tolist()])

    def _at(self, rows: int) -> Callable[[float], Floats]:
        seen = max(1, min(round(rows / self._scale), self._place.size))
        weights = np.bincount(self._place[:seen]) * (rows / seen)
        known: dict[float, Floats] = {}

        def at(order: float) -> Floats:
            if order not in known:
                costs = self._within(order)[:, : weights.size] @ weights
                known[order] = np.interp(self._every, self._distances, costs)
            return known[order]

        return at

    def _within(self, order: float) -> Floats:
        if order not in self._known:
            self._known[order] = self._compute(order)
        return self._known[order]


class LatticeEstimates:
    """Those of the two-tail bound, on the coarse lattice. SECRET."""

    ladder, wide = _LADDER, _LADDER[::_STRIDE]

    def __init__(self, sample: VoteSample, *, scale: float) -> None:
        """Whatever is found is for so many times the rows."""
        self._sample, self._scale = sample, scale
        # By σ2 and order; after a test the argmax has a grid of its own.
        self._argmaxes: dict[tuple[float, float], ScoreTable] = {}
        self._alone: dict[tuple[float, float], ScoreTable] = {}

    def orders(self, plan: TargetPlan, *, settled: bool) -> Floats:
        """Every other order of a run, or the next on the ladder; a large target has only one."""
        few = plan.orders[1::2] if plan.orders.size > 1 else plan.orders
        if settled:
            return few
        return _LADDER[each_once(np.minimum(np.searchsorted(_LADDER, few), _LADDER.size - 1))]

    def prices(self, setting: Setting, orders: Floats) -> Prices:
        """Those of distinct cells."""
        self._prepare(setting, orders)
        mechanism = self._sample.mechanism(setting)
        grid = self._table(setting, _LADDER[-1]).grid
        tally, place = Tally.with_places(mechanism.cells(self._sample.score(setting), grid))

        def within(order: float) -> Floats:
            table = self._table(setting, order)
            columns = table.grid.merged(tally.cells[:, 1], grid)
            return table.within(np.column_stack([tally.cells[:, 0], columns]), _FEW_DISTANCES)

        return Prices(place, within, distances=_FEW_DISTANCES.astype(np.float64), scale=self._scale)

    def _table(self, setting: Setting, order: float) -> CostTable:
        """The cost table of a setting; the argmax's part is shared by all with the same σ2."""
        tested, key = setting.threshold is not None, (setting.sigma2, order)
        if not tested:
            alone = self._alone.get(key) or self._sample.argmax(setting).cost_table(order, COARSE)
            return self._alone.setdefault(key, alone)
        table = self._sample.confident(setting).cost_table(order, COARSE)
        return replace(table, argmax=self._argmaxes.setdefault(key, table.argmax))

    def _prepare(self, setting: Setting, orders: Floats) -> None:
        """Open the argmax's tables at several orders, their ceilings found all at once."""
        known = self._alone if setting.threshold is None else self._argmaxes
        missing = [order for order in orders.tolist() if (setting.sigma2, order) not in known]
        if not missing:
            return
        if setting.threshold is None:
            alone = self._sample.argmax(setting)
            alone.prepare(orders)
            tables = [alone.cost_table(order, COARSE) for order in missing]
        else:
            tested = self._sample.confident(setting)
            tested.prepare(orders)
            tables = [tested.cost_table(order, COARSE).argmax for order in missing]
        for order, table in zip(missing, tables, strict=True):
            known[setting.sigma2, order] = table


class PairEstimates:
    """Those of the conditional bound, by two counts a query. SECRET."""

    ladder, wide = _WIDE, _WIDE

    def __init__(self, sample: VoteSample, *, scale: float) -> None:
        """Whatever is found is for so many times the rows.

        Raises:
            UsageError: there is no such bound for such votes.
        """
        self._sample, self._scale = sample, scale
        no_votes = np.zeros((1, sample.classes), dtype=np.int64)
        sample.mechanism(Setting(None, None, 1.0)).vote_states(no_votes)
        self._tables: dict[float, PairTable] = {}

    def orders(self, plan: TargetPlan, *, settled: bool) -> Floats:
        """Those of a run that decide, if the target is right."""
        del settled
        return plan.decisive_orders

    def prices(self, setting: Setting, orders: Floats) -> Prices:
        """What the rows cost at a setting."""
        del orders
        table = self._tables.get(setting.sigma2)
        if table is None:
            table = self._tables[setting.sigma2] = PairTable.of(self._sample, setting.sigma2)
        return Prices(
            table.place,
            lambda order: table.within(setting, order),
            distances=table.distances,
            scale=self._scale,
        )
