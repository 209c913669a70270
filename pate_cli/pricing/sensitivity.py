"""The sensitivity of a file's cost to its votes, by distance. SECRET."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pate_cli.accounting.sensitivity import sensitivity_curve, smooth_sensitivity
from pate_cli.arrays import Counts, Floats
from pate_cli.mechanisms.base import Mechanism, Tally, surface_blocks
from pate_cli.published.account import PublishedAccount
from pate_cli.release.rule import distances_for
from pate_cli.words import Analysis

__all__ = ["Sensitivity", "measure_sensitivity"]


@dataclass(frozen=True)
class Sensitivity:
    """Cost and sensitivity curve at one order. SECRET.

    Attributes:
        rdp: total cost, nats.
        curve: LS_d summed over queries, d = 0, 1, …, nats.
        ceiling: the vote-independent bound that stands for all farther distances, nats.
    """

    rdp: float
    curve: Floats
    ceiling: float

    def smooth(self, beta: float) -> float:
        """SS_β, nats."""
        return smooth_sensitivity(self.curve, ceiling=self.ceiling, beta=beta)

    def discounted(self, beta: float) -> Floats:
        """e^{−βd} LS_d per distance, whose maximum (with the ceiling's) is SS_β."""
        return self.curve * np.exp(-beta * np.arange(self.curve.size))


def measure_sensitivity(
    batches: Iterable[tuple[Mechanism, Counts]],
    mechanism: Mechanism,
    *,
    order: float,
    beta: float,
    analysis: Analysis,
) -> Sensitivity:
    """The curve at one Rényi order, over all queries.

    Args:
        batches: histograms, [rows, classes] at a time, each with the mechanism bound to its rows.
        mechanism: the aggregator.
        order: λ > 1.
        beta: decides how many distances are worth computing (tight analysis).
        analysis: `tight`, or `paper` for Algorithms 3–5.

    Raises:
        ValidityError: the published conditions C5 or C6 fail.
    """
    if analysis is Analysis.PAPER:
        account = PublishedAccount(mechanism, np.array([order]))
        for bound, counts in batches:
            account.add(bound, counts)
        return Sensitivity(
            rdp=float(account.rdp[0]),
            curve=account.sensitivity[0],
            ceiling=float(account.sensitivity[0, -1]),
        )
    surface = mechanism.surface(order)
    tally = Tally.empty()
    for bound, counts in batches:
        tally += Tally.of(bound.cells(bound.score(counts), surface))
    blocks = surface_blocks(surface)
    return Sensitivity(
        rdp=float(surface.cost(tally.cells) @ tally.weights),
        curve=sensitivity_curve(
            blocks,
            cells=tally.cells,
            weights=tally.weights,
            grid=surface.grid,
            vote_block=surface.vote_block,
            distances=np.arange(distances_for(beta, teachers=mechanism.teachers)),
        ),
        ceiling=float(blocks.max()) * tally.queries,
    )
