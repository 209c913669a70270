"""A release test before labels are drawn, and a ledger that is kept with them.

Most runs keep nothing of the votes and state what their settings cost whatever the votes, perhaps
after a test (`release_test`). A run that keeps a ledger (`LedgerAccount`) has a plan sanitize what
it keeps of the votes. SECRET.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pate_cli.accounting.cost_table import CostTable, Price, Tally, TallySum
from pate_cli.accounting.sensitivity import distances_for
from pate_cli.core.arrays import Histograms
from pate_cli.core.errors import VoteError
from pate_cli.core.noise import RunKey
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.settings import ReleasePlan, Settings
from pate_cli.disclosure.target import States
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism
from pate_cli.run.fold import AskedRows, TallyCells
from pate_cli.votes.vote_file import VoteBatch

Keep: TypeAlias = Callable[[Any, Histograms], Any]
"""What an account keeps of histograms and the mechanism bound to their rows; it pickles. SECRET."""


class LedgerAccount:
    """Tallies the scores of votes at the order of a plan, which a ledger is made of. SECRET."""

    def __init__(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> None:
        """Start at nothing; `plan` is fixed before any vote is seen."""
        self._mechanism, self._plan = mechanism, plan
        self._tally = TallySum()

    @functools.cached_property
    def _table(self) -> CostTable:
        return self._mechanism.cost_table(self._plan.order)

    @property
    def keep(self) -> Keep:
        """Return what is applied to every batch, wherever that is labelled."""
        return TallyCells(self._table.grid)

    def add(self, kept: Any) -> None:
        """Charge what was kept of a batch; batches come in order."""
        self._tally.add(kept)

    @property
    def price(self) -> Price:
        """Return the cost so far, at as many distances as the plan's β asks for."""
        distances = np.arange(distances_for(self._plan.beta, teachers=self._mechanism.teachers))
        return self._table.price(self._tally.total, distances)

    def ledger(self, done: Round) -> Ledger:
        """Return the ledger of all rows."""
        price = self.price
        return Ledger(
            orders=np.array([self._plan.order]),
            rdp=np.array([price.rdp]),
            sensitivity=price.curve[None],
            ceiling=np.array([price.ceiling]),
            rounds=(done,),
        )


@dataclass(frozen=True)
class _TallyStates:
    """Queries counted by their states."""

    states: States

    def __call__(self, mechanism: ScoredMechanism, batch: VoteBatch) -> Tally:
        return Tally.of(self.states.of(mechanism, batch.counts))


def release_test(rows: AskedRows, mechanism: Mechanism, settings: Settings, key: RunKey) -> bool:
    """Count all rows and draw the release test; return whether the labels may leave.

    It is the one thing that is ever said of what these votes could cost.

    Raises:
        VoteError: there are more or fewer rows than were priced, or votes have changed since they
            were read.
        ValueError: the settings have no target.
    """
    target, queries = settings.target, settings.queries
    if target is None or not isinstance(mechanism, ScoredMechanism):
        raise ValueError("there is no target to test")
    states, orders = target.states(mechanism), np.array(target.test_orders)
    counted = TallySum()
    ceiling = mechanism.worst_rdp(queries=queries, answers=settings.max_answers, orders=orders)
    for tally in rows.over(mechanism, _TallyStates(states)):
        counted.add(tally)
    votes, priced = counted.total, 0.0
    if votes.queries != queries:
        raise VoteError(f"expected {queries} queries, the votes hold {votes.queries}")

    def told(share: float) -> None:
        """Tell of a share of one order's work as so many rows."""
        nonlocal priced
        before, priced = priced, priced + share * queries / orders.size
        rows.progress(int(priced + 1e-6) - int(before + 1e-6))

    coin = target.coin(lambda order: states.profile(votes, order, told), ceiling, orders=orders)
    return not key.aside("coin").comes_up(coin.log_refuse)
