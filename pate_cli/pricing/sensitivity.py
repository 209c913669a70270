"""The sensitivity of a file's cost to its votes, by distance. SECRET."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from pate_cli.accounting.cost_table import Price, Tally
from pate_cli.accounting.sensitivity import distances_for
from pate_cli.arrays import Counts
from pate_cli.mechanisms.base import ScoredMechanism

__all__ = ["price_votes"]


def price_votes(
    batches: Iterable[tuple[ScoredMechanism, Counts]],
    mechanism: ScoredMechanism,
    *,
    order: float,
    beta: float,
) -> Price:
    """Cost and LS_d at one Rényi order, over all queries.

    Args:
        batches: histograms, [rows, classes] at a time, each with the mechanism bound to its rows.
        mechanism: the aggregator.
        order: λ > 1.
        beta: decides how many distances are kept.
    """
    table = mechanism.cost_table(order)
    tally = Tally.empty()
    for bound, counts in batches:
        tally += bound.tally(counts, table)
    return table.price(tally, np.arange(distances_for(beta, teachers=mechanism.teachers)))
