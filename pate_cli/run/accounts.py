"""What is kept of the votes while they are labelled, and what it says in the end. SECRET.

A run takes any account: a tally of scores (`TightAccount`), a test before any label is drawn
(`TargetAccount`), none where all votes cost the same (`WorstCaseAccount`) or the cost is a
composition (`ComposedAccount`), or that of the published analysis, which keeps one of its own.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias

import numpy as np

from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.sensitivity import distances_for
from pate_cli.core.arrays import Histograms
from pate_cli.core.errors import VoteError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import Bound
from pate_cli.disclosure.charge import charge_texts
from pate_cli.disclosure.door import (
    composed_quote,
    for_all_votes,
    public_quote,
    quote,
    release,
    release_composed,
    release_public,
    release_tested,
)
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.profile import (
    States,
    VoteProfile,
    check_states,
    settled_bound,
    states_for,
)
from pate_cli.disclosure.report import Outlook, Quote, Report, Spent
from pate_cli.disclosure.target import Reference, TargetPlan
from pate_cli.disclosure.worst_case import Spending
from pate_cli.mechanisms.base import ComposedMechanism, ScoredMechanism
from pate_cli.run.passes import Passes, TallyCells, nothing_seen
from pate_cli.votes import Group, VoteBatch
from pate_cli.votes.vote_file import PLAIN, Facts

Keep: TypeAlias = Callable[[Any, Histograms], Any]
"""What an account keeps of histograms and the mechanism bound to their rows; it pickles. SECRET."""


class Account(Protocol):
    """What is kept of the votes while they are labelled, and what it says in the end. SECRET."""

    @property
    def keep(self) -> Keep | None:
        """Applied to every batch, wherever that is labelled; None where nothing is kept."""
        ...

    @property
    def stated(self) -> Mapping[str, str]:
        """What its labels say of the charge (`disclosure.charge`); public."""
        ...

    def add(self, kept: Any) -> None:
        """Charge what was kept of a batch; batches come in order."""
        ...

    def settle(self, done: Round, key: RunKey, warnings: Sequence[str]) -> Settlement:
        """The public report, drawn once, and the ledger if there is one."""
        ...

    def quote(self, *, queries: int, max_answers: int, groups: Sequence[Group] = ()) -> Quote:
        """What the run costs for all votes, and each group; before anything is spent; public."""
        ...


@dataclass(frozen=True)
class Settlement:
    """A report (public) and the ledger behind it (SECRET); None where the cost is a composition."""

    report: Report
    ledger: Ledger | None


@dataclass(frozen=True)
class _TallyStates:
    """Queries counted by their states."""

    states: States

    def __call__(self, mechanism: ScoredMechanism, batch: VoteBatch) -> Tally:
        return Tally.of(self.states.of(mechanism, batch.counts))


class TightAccount:
    """Scores tallied at the plan's order; their exact cost is sanitized by the plan. SECRET."""

    def __init__(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> None:
        """Start at nothing; `plan` is fixed before any vote is seen."""
        self._mechanism, self._plan = mechanism, plan
        self._table = mechanism.cost_table(plan.order)
        self._tally = Tally.empty()

    @property
    def keep(self) -> Keep:
        """The cells of queries."""
        return TallyCells(self._table.grid)

    @property
    def stated(self) -> Mapping[str, str]:
        """δ."""
        return charge_texts(delta=self._plan.delta)

    def add(self, kept: Tally) -> None:
        """Add the tally of a batch."""
        self._tally += kept

    def settle(self, done: Round, key: RunKey, warnings: Sequence[str]) -> Settlement:
        """Charge all rows, draw once, and note the draw in the ledger."""
        plan = self._plan
        ledger = charge(
            self._mechanism,
            {plan.order: self._tally},
            done,
            delta=plan.delta,
            distances=distances_for(plan.beta, teachers=self._mechanism.teachers),
            private=key.private,
        )
        return settle(ledger, plan, key, warnings)

    def quote(self, *, queries: int, max_answers: int, groups: Sequence[Group] = ()) -> Quote:
        """The data-independent price of labels and release."""
        return quote(
            self._mechanism, self._plan, queries=queries, max_answers=max_answers, groups=groups
        )


class _Share:
    """Tells whole steps of so many, from shares of each of several parts."""

    def __init__(self, progress: Callable[[int], None], steps: int, parts: int) -> None:
        """Nothing is done."""
        self._progress, self._steps, self._parts = progress, steps, parts
        self._done, self._told = 0.0, 0
        self._lock = threading.Lock()

    def __call__(self, share: float) -> None:
        """So much more of one part is done."""
        with self._lock:
            self._done += share / self._parts
            fresh = min(int(self._done * self._steps + 1e-6), self._steps) - self._told
            self._told += fresh
        if fresh:
            self._progress(fresh)


class TargetAccount:
    """A target stated in advance: met whatever the votes, or tested by a coin. SECRET."""

    def __init__(
        self,
        mechanism: ScoredMechanism,
        plan: TargetPlan,
        *,
        bound: Bound,
        queries: int,
        max_answers: int,
    ) -> None:
        """Price the labels for all votes; `plan` is fixed before any vote is seen.

        Raises:
            UnreachableError: not even labels that cost nothing would be likely to pass.
            UsageError: the mechanism has no such bound.
            ParameterError: that bound needs more memory for some votes than there may be.
        """
        self._mechanism, self.plan = mechanism, plan
        self._bound = settled_bound(bound, mechanism, rows=queries, orders=plan.orders)
        self._queries, self._max_answers = queries, max_answers
        self.spent: Spent | None = None
        self.public = for_all_votes([Spending(mechanism, queries, max_answers)], delta=plan.delta)
        self._states = states_for(self._bound, mechanism, highest_order=float(plan.orders[-1]))
        if self.needed:
            plan.check_reachable()
            check_states(self._bound, mechanism, rows=queries, orders=plan.orders)

    @property
    def needed(self) -> bool:
        """Whether a coin must be drawn, since the labels could cost more than the target."""
        return self.public.epsilon > self.plan.epsilon

    def test(
        self,
        passes: Passes,
        key: RunKey,
        progress: Callable[[int], None] = nothing_seen,
    ) -> bool:
        """Tally all rows and draw the coin: the one thing that is ever said about the profile."""
        profile = VoteProfile(self._states)
        orders = self._states.worth(self.plan.orders)
        ceiling = self._mechanism.worst_rdp(
            queries=self._queries, answers=self._max_answers, orders=orders
        )
        for tally in passes.over(self._mechanism, _TallyStates(self._states), progress=progress):
            profile.add_tally(tally)
        if profile.queries != self._queries:
            raise VoteError(f"expected {self._queries} queries, the votes hold {profile.queries}")
        told = _Share(progress, self._queries, orders.size)
        coin = self.plan.coin(
            lambda order: profile.at(order, progress=told), ceiling, orders=orders
        )
        return not key.aside("coin").comes_up(coin.log_refuse)

    def refused(self, *, private: bool, facts: Facts = PLAIN) -> Report:
        """The public report of a refusal; `facts` as in `run`."""
        done = Round(
            id="refused",
            mechanism=self._mechanism.parameters(),
            queries=self._queries,
            max_answers=self._max_answers,
            answers=0,
            **facts.of_round,
        )
        return self._report(done, passed=False, private=private)

    keep = None

    @property
    def stated(self) -> Mapping[str, str]:
        """The target and δ; of a test also the price of a refusal, and the bound."""
        plan = self.plan
        if not self.needed:
            return charge_texts(delta=plan.delta, target=plan.epsilon)
        return charge_texts(
            delta=plan.delta,
            target=plan.epsilon,
            refusal=plan.refusal_epsilon,
            bound=self._bound.value,
        )

    def add(self, kept: Any) -> None:
        """Nothing: what labels may cost is settled before they are drawn."""

    def settle(self, done: Round, key: RunKey, warnings: Sequence[str]) -> Settlement:
        """The report of labels that passed, or that needed no test; there is no ledger."""
        if self.needed:
            report = self._report(done, passed=True, private=key.private, warnings=warnings)
        else:
            report = release_public(
                done,
                self.public,
                delta=self.plan.delta,
                private=key.private,
                target=self.plan.epsilon,
                spent=self.spent,
                warnings=warnings,
            )
        return Settlement(report, None)

    def quote(self, *, queries: int, max_answers: int, groups: Sequence[Group] = ()) -> Quote:
        """The price for all votes, and how likely a made-up ensemble would pass."""
        plan = self.plan
        outlook = Outlook(
            target=plan.epsilon,
            delta=plan.delta,
            refusal_epsilon=plan.refusal_epsilon,
            orders=tuple(self._states.worth(plan.orders).tolist()),
            distances=plan.distances,
            needed=self.needed,
            reference_chance=(
                Reference(self._mechanism).chance(plan, queries) if self.needed else 1.0
            ),
        )
        price = public_quote(
            self._mechanism,
            self.public,
            delta=plan.delta,
            queries=queries,
            max_answers=max_answers,
            groups=groups,
            target=plan.epsilon,
        )
        return replace(price, target=outlook)

    def _report(
        self, done: Round, *, passed: bool, private: bool, warnings: Sequence[str] = ()
    ) -> Report:
        return release_tested(
            done,
            self.plan,
            self.public,
            bound=self._bound,
            orders=self._states.worth(self.plan.orders),
            passed=passed,
            private=private,
            spent=self.spent,
            warnings=warnings,
        )


class WorstCaseAccount:
    """Nothing kept: the labels cost what they cost for all votes, and no ledger is wanted."""

    def __init__(
        self, mechanism: ScoredMechanism, *, queries: int, max_answers: int, delta: float
    ) -> None:
        """Price the labels for all votes."""
        self._mechanism, self._delta = mechanism, delta
        self._public = for_all_votes([Spending(mechanism, queries, max_answers)], delta=delta)

    keep = None

    @property
    def stated(self) -> Mapping[str, str]:
        """δ."""
        return charge_texts(delta=self._delta)

    def add(self, kept: Any) -> None:
        """Nothing: the cost does not depend on the votes."""

    def settle(self, done: Round, key: RunKey, warnings: Sequence[str]) -> Settlement:
        """The report, without a ledger."""
        report = release_public(
            done, self._public, delta=self._delta, private=key.private, warnings=warnings
        )
        return Settlement(report, None)

    def quote(self, *, queries: int, max_answers: int, groups: Sequence[Group] = ()) -> Quote:
        """The price, before anything is spent."""
        return public_quote(
            self._mechanism,
            self._public,
            delta=self._delta,
            queries=queries,
            max_answers=max_answers,
            groups=groups,
        )


class ComposedAccount:
    """Nothing kept: the (ε, δ) of the run is a composition, the same for all votes."""

    def __init__(self, mechanism: ComposedMechanism, *, queries: int, delta: float) -> None:
        """Compose k1 queries; UnreachableError for a δ below what they amount to."""
        self._mechanism = mechanism
        self._cost = mechanism.privacy(queries, delta)

    keep = None

    @property
    def stated(self) -> Mapping[str, str]:
        """δ."""
        return charge_texts(delta=self._cost.delta)

    def add(self, kept: Any) -> None:
        """Nothing: the cost does not depend on the votes."""

    def settle(self, done: Round, key: RunKey, warnings: Sequence[str]) -> Settlement:
        """The report, without a ledger."""
        report = release_composed(done, self._cost, private=key.private, warnings=warnings)
        return Settlement(report, None)

    def quote(self, *, queries: int, max_answers: int, groups: Sequence[Group] = ()) -> Quote:
        """The composition, before anything is spent."""
        return composed_quote(
            self._mechanism, self._cost, queries=queries, max_answers=max_answers, groups=groups
        )


def settle(ledger: Ledger, plan: ReleasePlan, key: RunKey, warnings: Sequence[str]) -> Settlement:
    """Release a run's own ledger; a draw that was published is remembered in it."""
    report = release(ledger, plan, key.aside("release"), warnings=warnings)
    return Settlement(report, ledger.with_draw(plan.draw) if plan.publishes_draw else ledger)


def charge(
    mechanism: ScoredMechanism,
    tally: Mapping[float, Tally],
    done: Round,
    *,
    delta: float,
    distances: int,
    private: bool,
) -> Ledger:
    """The ledger of one run under the tight analysis.

    Args:
        mechanism: what was run.
        tally: per Rényi order, the lattice cells of *all* rows fixed in advance, those that a cap
            left unread included.
        done: what is public about the run.
        delta: δ of the run.
        distances: D0 ≥ 1, public.
        private: whether the noise was unpredictable.
    """
    orders = sorted(tally)
    prices = [
        mechanism.cost_table(order).price(tally[order], np.arange(distances)) for order in orders
    ]
    return Ledger(
        analysis="tight",
        delta=delta,
        orders=np.array(orders),
        rdp=np.array([price.rdp for price in prices]),
        sensitivity=np.stack([price.curve for price in prices]),
        ceiling=np.array([price.ceiling for price in prices]),
        rounds=(done,),
        private=private,
    )
