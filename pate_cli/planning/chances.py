"""The chance that so many rows pass a target, for every made-up ensemble."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.score_grid import COARSE
from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import lattice_states
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.ensembles import Ensembles
from pate_cli.planning.pairs import FEW_DISTANCES, PairTable, costs_within
from pate_cli.planning.sanitized import REFERENCE_SEED
from pate_cli.planning.setting import Setting

# So many stretches of an ensemble's queries stand for as many runs of fewer rows.
_STRETCHES = 2
# What the quick price of pairs is below the cost of a run, for a choice: under the conditional
# bound, and under the two-tail one, where records have one vote and where they have several.
_CONDITIONAL, _TWO_TAIL, _TWO_TAIL_SHARED = 1.04, 1.4, 2.2
# Of the lattice: queries of each ensemble.
_LATTICE_ROWS = 60
# Counts of a choice are told apart to so many steps.
_STEPS = 36


@dataclass(frozen=True, eq=False)
class MadeUpCosts:
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
        settings: Sequence[Setting],
        plan: TargetPlan,
        *,
        bound: Bound,
        known: dict[float, PairTable] | None = None,
    ) -> list[Self]:
        """Of several settings; quick, and about what a run by this bound would charge.

        The ceiling is a guess.

        Args:
            ensembles: the made-up queries.
            settings: T, σ1 and σ2.
            plan: the target.
            bound: of the run.
            known: tables by σ2, to look up and to fill.
        """
        sample, orders = ensembles.sample, plan.decisive_orders
        tables = {} if known is None else known
        for sigma2 in {setting.sigma2 for setting in settings} - tables.keys():
            tables[sigma2] = PairTable.of(sample, sigma2, most_steps=_STEPS)
        several = [(tables[setting.sigma2], setting) for setting in settings]
        shape = ensembles.number, ensembles.each
        factor = _CONDITIONAL
        if bound is Bound.TWO_TAIL:
            factor = _TWO_TAIL if sample.teachers_per_record == 1 else _TWO_TAIL_SHARED
        return [
            cls(
                orders,
                factor * costs[..., table.place].reshape(*costs.shape[:2], *shape),
                table.distances,
                _above(sample.classes) * sample.guessed_ceiling(setting, orders),
            )
            for costs, (table, setting) in zip(
                costs_within(several, orders.tolist()), several, strict=True
            )
        ]

    @classmethod
    def by_lattice(cls, ensembles: Ensembles, mechanism: ScoredMechanism, plan: TargetPlan) -> Self:
        """Of any mechanism with a Rényi cost, by the two-tail bound."""
        orders, each = plan.decisive_orders, min(ensembles.each, _LATTICE_ROWS)
        first = np.arange(ensembles.number)[:, None] * ensembles.each + np.arange(each)
        counts = ensembles.sample.counts[first.ravel()]
        states = lattice_states(mechanism, highest_order=float(orders[-1]), resolution=COARSE)
        bound = mechanism.for_reference(counts, REFERENCE_SEED)
        cells, place = np.unique(states.of(bound, counts), axis=0, return_inverse=True)
        place = place.reshape(ensembles.number, each)
        within = [states.within(order, cells, FEW_DISTANCES) for order in orders.tolist()]
        return cls(
            orders,
            np.stack([costs[:, place] for costs in within]),
            FEW_DISTANCES.astype(np.float64),
            mechanism.worst_rdp(queries=1, answers=1, orders=orders),
        )

    def chances(self, plan: TargetPlan, rows: Ints) -> Floats:
        """That so many rows pass, [ensembles, rows]: the mean over stretches of the queries."""
        return passing([self], plan, rows)[0]


def passing(several: Sequence[MadeUpCosts], plan: TargetPlan, rows: Ints) -> list[Floats]:
    """`MadeUpCosts.chances` of several mechanisms at the same orders, at once."""
    stretches = [
        (place, start, stop, number / (stop - start))
        for place, number in enumerate(rows.tolist())
        for start, stop in _stretches(number, several[0].costs.shape[-1])
    ]
    place, start, stop, scale = (np.array(column) for column in zip(*stretches, strict=True))
    orders, profiles = several[0].orders, []
    for each in several:
        total = np.cumsum(each.costs, axis=-1)
        total = np.concatenate([np.zeros_like(total[..., :1]), total], axis=-1)
        found = (total[..., stop] - total[..., start]) * scale
        ceiling = np.outer(each.ceiling, rows)
        found = np.minimum(found, ceiling[:, None, None, place])
        found = at_every_distance(found, each.distances)
        profiles.append(np.moveaxis(found, (0, 1), (-2, -1)))
    chances = plan.chances(np.stack(profiles), orders)
    weight = np.equal.outer(place, np.arange(rows.size)) / np.bincount(place)
    # Within the target whatever the votes: no test is needed.
    room = plan.epsilon - conversion_cost(orders, delta=plan.delta)
    sure = [np.any(np.outer(each.ceiling, rows) <= room[:, None], axis=0) for each in several]
    return [np.where(free, 1.0, each @ weight) for each, free in zip(chances, sure, strict=True)]


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
