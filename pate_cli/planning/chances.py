"""The chance that so many rows pass a target, for every made-up ensemble."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.score_grid import COARSE
from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import lattice_states
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.ensembles import Ensembles
from pate_cli.planning.pairs import PairTable
from pate_cli.planning.setting import Setting

REFERENCE_SEED = 20180224

# So many stretches of an ensemble's queries stand for as many runs of fewer rows.
_STRETCHES = 2
# What the quick price of pairs is below the cost of a run, for a choice: under the conditional
# bound, and under the two-tail one, where records have one vote and where they have several.
_CONDITIONAL, _TWO_TAIL, _TWO_TAIL_SHARED = 1.04, 1.4, 2.2
# Counts of a choice are told apart to so many steps.
_STEPS = 36


@dataclass(frozen=True, eq=False)
class RowCosts:
    """What each made-up query costs within each distance, for a mechanism and some orders.

    Attributes:
        orders: Rényi orders, [orders].
        costs: [orders, distances, ensembles, each], nats.
        distances: ascending from 0; between them costs are on straight lines.
        ceiling: what a query costs whatever its votes, [orders], nats.
    """

    orders: Floats
    costs: Floats
    distances: Floats
    ceiling: Floats

    @classmethod
    def by_pairs(
        cls,
        ensembles: Ensembles,
        setting: Setting,
        plan: TargetPlan,
        *,
        bound: Bound,
        ceiling: Floats | None = None,
        known: dict[float, PairTable] | None = None,
    ) -> Self:
        """Quick, and about what a run by this bound would charge.

        Args:
            ensembles: the made-up queries.
            setting: T, σ1 and σ2.
            plan: the target.
            bound: of the run.
            ceiling: at the orders that decide, [orders], nats; a guess if left out.
            known: tables by σ2, to look up and to fill.
        """
        sample, orders = ensembles.sample, plan.decisive_orders
        tables = {} if known is None else known
        if setting.sigma2 not in tables:
            tables[setting.sigma2] = PairTable.of(sample, setting.sigma2, most_steps=_STEPS)
        table = tables[setting.sigma2]
        factor = _CONDITIONAL
        if bound is Bound.TWO_TAIL:
            factor = _TWO_TAIL if sample.teachers_per_record == 1 else _TWO_TAIL_SHARED
        costs = np.stack([factor * table.within(setting, order) for order in orders.tolist()])
        return cls(
            orders,
            costs[..., table.place].reshape(*costs.shape[:2], ensembles.number, ensembles.each),
            table.distances,
            _above(sample.classes) * sample.guessed_ceiling(setting, orders)
            if ceiling is None
            else ceiling,
        )

    @classmethod
    def by_lattice(cls, ensembles: Ensembles, mechanism: ScoredMechanism, plan: TargetPlan) -> Self:
        """Of any mechanism with a Rényi cost, by the two-tail bound."""
        counts, orders = ensembles.sample.counts, plan.decisive_orders
        states = lattice_states(mechanism, highest_order=float(orders[-1]), resolution=COARSE)
        bound = mechanism.for_reference(counts, REFERENCE_SEED)
        cells, place = np.unique(states.of(bound, counts), axis=0, return_inverse=True)
        place = place.reshape(ensembles.number, ensembles.each)
        return cls(
            orders,
            np.stack([states.costs(order, cells)[:, place] for order in orders.tolist()]),
            np.arange(DISTANCES, dtype=np.float64),
            mechanism.worst_rdp(queries=1, answers=1, orders=orders),
        )

    def chances(self, plan: TargetPlan, rows: Ints) -> Floats:
        """That so many rows pass, [ensembles, rows]: the mean over stretches of the queries."""
        total = np.cumsum(self.costs, axis=-1)
        total = np.concatenate([np.zeros_like(total[..., :1]), total], axis=-1)
        stretches = [
            (place, start, stop, number / (stop - start))
            for place, number in enumerate(rows.tolist())
            for start, stop in _stretches(number, self.costs.shape[-1])
        ]
        place, start, stop, scale = (np.array(column) for column in zip(*stretches, strict=True))
        ceiling = np.outer(self.ceiling, rows)
        profiles = at_every_distance((total[..., stop] - total[..., start]) * scale, self.distances)
        profiles = np.minimum(profiles, ceiling[:, None, None, place])
        passing = plan.chances(np.moveaxis(profiles, (0, 1), (-2, -1)), self.orders)
        weight = np.equal.outer(place, np.arange(rows.size)) / np.bincount(place)
        # Within the target whatever the votes: no test is needed.
        room = plan.epsilon - conversion_cost(self.orders, delta=plan.delta)
        sure = np.any(ceiling <= room[:, None], axis=0)
        return np.where(sure, 1.0, passing @ weight)


def at_every_distance(costs: Floats, distances: Floats) -> Floats:
    """Costs [orders, distances, …] at d = 0 … DISTANCES − 1: straight lines, flat past the last."""
    every = np.arange(DISTANCES, dtype=np.float64)
    left = np.searchsorted(distances, every, "right") - 1
    right = np.minimum(left + 1, distances.size - 1)
    width = np.maximum(distances[right] - distances[left], 1.0)
    share = np.clip((every - distances[left]) / width, 0.0, 1.0)
    share = share.reshape(-1, *(1,) * (costs.ndim - 2))
    return costs[:, left] * (1.0 - share) + costs[:, right] * share


def _above(classes: int) -> float:
    """How far the worst vote is above a guess that knows two classes only."""
    return 1.15 if classes == 2 else 1.4


def _stretches(rows: int, each: int) -> list[tuple[int, int]]:
    """Where runs of so many rows are among the queries of an ensemble: all, if they are more."""
    if rows >= each:
        return [(0, each)]
    number = min(_STRETCHES, each // rows)
    return [(at * (each // number), at * (each // number) + rows) for at in range(number)]
