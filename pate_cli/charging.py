"""From what a run saw to the ledger of what it spent. SECRET."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import numpy as np

from pate_cli.accounting.sensitivity import sensitivity_curve
from pate_cli.ledger import Ledger, Round
from pate_cli.mechanisms.base import Mechanism, Tally, surface_blocks
from pate_cli.published.account import PublishedAccount

__all__ = ["charge", "charge_published"]


def charge(
    mechanism: Mechanism,
    tally: Mapping[float, Tally],
    *,
    delta: float,
    distances: int,
    max_answers: int,
    answers: int,
    private: bool,
) -> Ledger:
    """The ledger of one run under the tight analysis.

    Args:
        mechanism: what was run.
        tally: per Rényi order, the lattice cells of *all* rows fixed in advance, those that a cap
            left unread included.
        delta: δ of the run.
        distances: D0 ≥ 1, public.
        max_answers: the public cap on answers.
        answers: labels released.
        private: whether the noise was unpredictable.
    """
    orders = np.array(sorted(tally))
    rdp, ceiling = np.zeros(orders.size), np.zeros(orders.size)
    curves = np.zeros((orders.size, distances))
    queries = 0
    for row, order in enumerate(orders.tolist()):
        surface, cells = mechanism.surface(order), tally[order]
        queries = cells.queries
        blocks = surface_blocks(surface)
        rdp[row] = float(surface.cost(cells.cells) @ cells.weights)
        ceiling[row] = float(blocks.max()) * queries
        curves[row] = sensitivity_curve(
            blocks,
            cells=cells.cells,
            weights=cells.weights,
            grid=surface.grid,
            vote_block=surface.vote_block,
            distances=np.arange(distances),
        )
    return Ledger(
        analysis="tight",
        delta=delta,
        orders=orders,
        rdp=rdp,
        sensitivity=curves,
        ceiling=ceiling,
        rounds=(_new_round(mechanism, queries, max_answers, answers),),
        private=private,
    )


def charge_published(
    mechanism: Mechanism,
    account: PublishedAccount,
    *,
    delta: float,
    max_answers: int,
    answers: int,
    private: bool,
) -> Ledger:
    """The ledger of one run under the published analysis; arguments as in `charge`."""
    return Ledger(
        analysis="paper",
        delta=delta,
        orders=account.orders,
        rdp=account.rdp,
        sensitivity=account.sensitivity,
        # The paper's maximum over distances ends with the number of teachers.
        ceiling=account.sensitivity[:, -1],
        rounds=(_new_round(mechanism, account.queries, max_answers, answers),),
        private=private,
    )


def _new_round(mechanism: Mechanism, queries: int, max_answers: int, answers: int) -> Round:
    return Round(
        id=secrets.token_hex(16),
        mechanism=mechanism.parameters(),
        queries=queries,
        max_answers=min(max_answers, queries),
        answers=answers,
    )
