"""A release test before labels are drawn, and a ledger that is kept with them.

Most runs keep nothing of the votes and state what their settings cost whatever the votes, perhaps
after a test (`release_test`). A run that keeps a ledger (`LedgerAccount`) has a plan sanitize it:
of a tally of scores (`TightAccount`), or of what the published analysis keeps. SECRET.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from pate_cli.accounting.cost_table import Tally, TallySum
from pate_cli.accounting.sensitivity import distances_for
from pate_cli.core.arrays import Histograms
from pate_cli.core.errors import VoteError
from pate_cli.core.noise import RunKey
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.profile import States
from pate_cli.disclosure.settings import Settings
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism
from pate_cli.run.fold import AskedRows, TallyCells
from pate_cli.votes.vote_file import VoteBatch

Keep: TypeAlias = Callable[[Any, Histograms], Any]
"""What an account keeps of histograms and the mechanism bound to their rows; it pickles. SECRET."""


class LedgerAccount(ABC):
    """Keeps what a ledger needs of the votes, of which a plan sanitizes a part. SECRET."""

    def __init__(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> None:
        """Start at nothing; `plan` is fixed before any vote is seen."""
        self._mechanism, self._plan = mechanism, plan

    @property
    @abstractmethod
    def keep(self) -> Keep:
        """Return what is applied to every batch, wherever that is labelled."""

    @abstractmethod
    def add(self, kept: Any) -> None:
        """Charge what was kept of a batch; batches come in order."""

    @abstractmethod
    def ledger(self, done: Round) -> Ledger:
        """Return the ledger of all rows."""


class TightAccount(LedgerAccount):
    """Scores tallied at the plan's order; their exact cost is sanitized by the plan. SECRET."""

    def __init__(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> None:
        """Start at nothing; `plan` is fixed before any vote is seen."""
        super().__init__(mechanism, plan)
        self._table = mechanism.cost_table(plan.order)
        self._tally = TallySum()

    @property
    def keep(self) -> Keep:
        """Return what counts the cells of queries."""
        return TallyCells(self._table.grid)

    def add(self, kept: Tally) -> None:
        """Add the tally of a batch."""
        self._tally.add(kept)

    def ledger(self, done: Round) -> Ledger:
        """Return the cost of the tally, at as many distances as the plan's β asks for."""
        plan, teachers = self._plan, self._mechanism.teachers
        distances = np.arange(distances_for(plan.beta, teachers=teachers))
        price = self._table.price(self._tally.total, distances)
        return Ledger(
            orders=np.array([plan.order]),
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


def _in_rows(progress: Callable[[int], None], rows: int, *, parts: int) -> Callable[[float], None]:
    """Return what tells shares of each of several parts, as whole rows of so many."""
    done, told = 0.0, 0

    def tell(share: float) -> None:
        nonlocal done, told
        done += share / parts
        fresh = min(int(done * rows + 1e-6), rows) - told
        told += fresh
        if fresh:
            progress(fresh)

    return tell


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
    states, orders = target.states(mechanism), np.array(target.test_orders(mechanism))
    counted = TallySum()
    ceiling = mechanism.worst_rdp(queries=queries, answers=settings.max_answers, orders=orders)
    for tally in rows.over(mechanism, _TallyStates(states)):
        counted.add(tally)
    votes = counted.total
    if votes.queries != queries:
        raise VoteError(f"expected {queries} queries, the votes hold {votes.queries}")
    told = _in_rows(rows.progress, queries, parts=orders.size)
    coin = target.coin(lambda order: states.profile(votes, order, told), ceiling, orders=orders)
    return not key.aside("coin").comes_up(coin.log_refuse)
