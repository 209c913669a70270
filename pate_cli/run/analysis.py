"""How an analysis charges a run: the plan of its release, and the account that keeps it.

The tight one is here. Another has the same face and a room of its own, of which nothing here knows.
Accounts come with all that reads votes, which a plan does not need.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from pate_cli.core.words import Analysis
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.mechanisms.base import ScoredMechanism

if TYPE_CHECKING:
    from pate_cli.run.accounts import Account, TightAccount


class Charging(Protocol):
    """How a run is charged."""

    @property
    def name(self) -> Analysis:
        """The word for the analysis."""
        ...

    def plan(self, plan: ReleasePlan) -> ReleasePlan:
        """A sound plan as this analysis converts and charges it."""
        ...

    def account(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> Account:
        """What a run keeps."""
        ...


class TightCharging:
    """The one that is sharp and sound."""

    name = Analysis.TIGHT

    def plan(self, plan: ReleasePlan) -> ReleasePlan:
        """As it is: a draw has one charge."""
        return plan

    def account(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> TightAccount:
        """A tally of scores."""
        from pate_cli.run.accounts import TightAccount

        return TightAccount(mechanism, self.plan(plan))
