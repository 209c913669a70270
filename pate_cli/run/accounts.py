"""Accounts of a run: what they keep of the votes as these are labelled, and the report. SECRET.

One that keeps nothing says what labels cost whatever the votes
(`PublicAccount`), perhaps after a test before any is drawn (`TargetAccount`). One that keeps a
ledger (`LedgerAccount`) says what a plan sanitizes of it: of a tally of scores (`TightAccount`), or
of what the published analysis keeps.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from pate_cli.accounting.cost_table import Tally, TallySum
from pate_cli.accounting.sensitivity import distances_for
from pate_cli.core.arrays import Histograms
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import Bound
from pate_cli.disclosure import door
from pate_cli.disclosure.facts import ReportFacts
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.profile import (
    States,
    VoteProfile,
    check_states,
    settled_bound,
    states_for,
)
from pate_cli.disclosure.record import RunKind
from pate_cli.disclosure.report import Outlook, Quote, Tested
from pate_cli.disclosure.settings import Sanitizer, StatedTarget
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.terms import Headline, ScoredTerms, TargetTerms, Terms, terms_of
from pate_cli.disclosure.worst_case import Spending
from pate_cli.mechanisms.base import ComposedMechanism, ScoredMechanism
from pate_cli.run.fold import AskedRows, TallyCells, nothing_seen
from pate_cli.votes.facts import PLAIN, Facts, Group
from pate_cli.votes.vote_file import VoteBatch

Keep: TypeAlias = Callable[[Any, Histograms], Any]
"""What an account keeps of histograms and the mechanism bound to their rows; it pickles. SECRET."""


@dataclass(frozen=True)
class Settlement:
    """Facts of the report of a run, and its ledger.

    Attributes:
        facts: without the name of the run, its record and its labels. Public.
        ledger: what the labels cost; None where none is kept. SECRET.
    """

    facts: ReportFacts
    ledger: Ledger | None

    @property
    def answers(self) -> int:
        """Return how many labels the teachers gave."""
        return sum(done.answers for done in self.facts.rounds)

    @property
    def failed(self) -> Tested | None:
        """Return the release test that the labels failed; None where they may leave."""
        tested = self.facts.headline.tested
        return None if tested is None or tested.passed else tested


@dataclass(frozen=True)
class _TallyStates:
    """Queries counted by their states."""

    states: States

    def __call__(self, mechanism: ScoredMechanism, batch: VoteBatch) -> Tally:
        return Tally.of(self.states.of(mechanism, batch.counts))


class LedgerAccount(ABC):
    """Keeps what it needs of the votes for a ledger, of which a plan sanitizes a part. SECRET."""

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
    def ledger(self, done: Round, *, private: bool) -> Ledger:
        """Return the ledger of all rows."""

    @property
    def worst_case_alone(self) -> bool:
        """Return whether an ε for all votes is all that is promised: nothing is sanitized."""
        return not self._plan.publishes_draw

    @property
    def told(self) -> Mapping[str, Any]:
        """Return fields of `disclosure.settings.Settings` that say how the run is charged. Public.

        They are δ, the analysis, and how ε is sanitized if it is.
        """
        plan = self._plan
        told = {"delta": plan.delta, "analysis": plan.analysis.value}
        if not plan.publishes_draw:
            return told
        return told | {"sanitizer": Sanitizer(plan.kind.value, plan.order, plan.beta, plan.sigma)}

    def settle(self, done: Round, key: RunKey) -> Settlement:
        """Charge all rows and draw once; the ledger tells of a draw that is published."""
        ledger, plan = self.ledger(done, private=key.private), self._plan
        facts = door.release(ledger, plan, key.aside("release"))
        return Settlement(facts, ledger.with_draw(plan.draw) if plan.publishes_draw else ledger)

    def quote(self, *, queries: int, max_answers: int, groups: Sequence[Group] = ()) -> Quote:
        """Return what labels and release cost for all votes; public, before anything is spent."""
        terms = self._terms(queries, max_answers)
        return door.quote(
            self._mechanism, terms, queries=queries, max_answers=max_answers, groups=groups
        )

    def charge(self, *, queries: int, max_answers: int) -> Mapping[str, Any]:
        """Return the worst case, and the draw if there is one, as fields of a run in a record."""
        plan = self._plan
        return {
            "kind": RunKind.WORST_CASE,
            "epsilon": self._terms(queries, max_answers).public.epsilon,
            "delta": plan.delta,
            "draw": plan.draw if plan.publishes_draw else None,
        }

    def _terms(self, queries: int, max_answers: int) -> ScoredTerms:
        spent = [Spending(self._mechanism, queries, max_answers)]
        return ScoredTerms(spent, self._plan.delta, self._plan)


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

    def ledger(self, done: Round, *, private: bool) -> Ledger:
        """Return the cost of the tally, at as many distances as the plan's β asks for."""
        plan = self._plan
        return charge(
            self._mechanism,
            {plan.order: self._tally.total},
            done,
            delta=plan.delta,
            distances=distances_for(plan.beta, teachers=self._mechanism.teachers),
            private=private,
        )


class PublicAccount:
    """Nothing kept: the labels cost the same whatever the votes, and no ledger is wanted."""

    keep = None

    def __init__(
        self,
        mechanism: ScoredMechanism | ComposedMechanism,
        *,
        queries: int,
        max_answers: int,
        delta: float,
    ) -> None:
        """Price the labels; UnreachableError for a δ below what a composition amounts to."""
        self._mechanism = mechanism
        self._terms: Terms = terms_of(
            mechanism, queries=queries, max_answers=max_answers, delta=delta
        )
        self.public = self._terms.public

    @property
    def worst_case_alone(self) -> bool:
        """Return True: an ε for all votes is all that is promised."""
        return True

    @property
    def told(self) -> Mapping[str, Any]:
        """Return δ and the analysis, as fields of `disclosure.settings.Settings`; public."""
        return {"delta": self._terms.labels_delta, "analysis": self._terms.analysis}

    def add(self, kept: Any) -> None:
        """Do nothing: what labels may cost is settled before they are drawn."""

    def settle(self, done: Round, key: RunKey) -> Settlement:
        """Return the facts of the report, without a ledger."""
        return Settlement(self._facts(done, self._headline, private=key.private), None)

    def quote(self, *, queries: int, max_answers: int, groups: Sequence[Group] = ()) -> Quote:
        """Return what the labels cost for all votes, before anything is spent."""
        return door.quote(
            self._mechanism, self._terms, queries=queries, max_answers=max_answers, groups=groups
        )

    def charge(self, *, queries: int, max_answers: int) -> Mapping[str, Any]:
        """Return the worst case, or the composition, as fields of a run in a record."""
        del queries, max_answers  # of those it was made for
        composed = isinstance(self._mechanism, ComposedMechanism)
        return {
            "kind": RunKind.COMPOSITION if composed else RunKind.WORST_CASE,
            "epsilon": self.public.epsilon,
            "delta": self._terms.labels_delta,
        }

    @property
    def _headline(self) -> Headline:
        return self._terms.headline

    def _facts(self, done: Round, headline: Headline, *, private: bool) -> ReportFacts:
        return ReportFacts(rounds=[done], terms=self._terms, headline=headline, private=private)


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


class TargetAccount(PublicAccount):
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
        self._scored, self.plan = mechanism, plan
        self.bound = settled_bound(bound, mechanism, rows=queries, orders=plan.orders)
        super().__init__(mechanism, queries=queries, max_answers=max_answers, delta=plan.delta)
        self._queries, self._max_answers = queries, max_answers
        self._states = states_for(self.bound, mechanism, highest_order=float(plan.orders[-1]))
        self._orders = self._states.worth(plan.orders)
        self._tested = TargetTerms(self._terms, plan, self.bound, tuple(self._orders.tolist()))
        if self.needed:
            self._terms = self._tested
            plan.check_reachable()
            check_states(self.bound, mechanism, rows=queries, orders=plan.orders)

    @property
    def needed(self) -> bool:
        """Whether a coin must be drawn, since the labels could cost more than the target."""
        return self.public.epsilon > self.plan.epsilon

    @property
    def worst_case_alone(self) -> bool:
        """Return False: a target is promised."""
        return False

    def test(
        self,
        rows: AskedRows,
        key: RunKey,
        progress: Callable[[int], None] = nothing_seen,
    ) -> bool:
        """Count all rows and draw the test: the one thing that is ever said about the profile.

        Raises:
            VoteError: there are more or fewer rows than were priced, or votes have changed since
                they were read.
        """
        profile = VoteProfile(self._states)
        orders = self._orders
        ceiling = self._scored.worst_rdp(
            queries=self._queries, answers=self._max_answers, orders=orders
        )
        for tally in rows.over(self._scored, _TallyStates(self._states), progress=progress):
            profile.add_tally(tally)
        if profile.queries != self._queries:
            raise VoteError(f"expected {self._queries} queries, the votes hold {profile.queries}")
        told = _in_rows(progress, self._queries, parts=orders.size)
        coin = self.plan.coin(
            lambda order: profile.at(order, progress=told), ceiling, orders=orders
        )
        return not key.aside("coin").comes_up(coin.log_refuse)

    def refused(self, *, private: bool, facts: Facts = PLAIN) -> Settlement:
        """Return the facts of labels that did not pass; `facts` as in `run`."""
        done = Round(
            id="refused",
            mechanism=self._scored.parameters(),
            queries=self._queries,
            max_answers=self._max_answers,
            answers=0,
            **facts.of_round,
        )
        failed = self._tested.decided(passed=False)
        return Settlement(self._facts(done, failed, private=private), None)

    @property
    def told(self) -> Mapping[str, Any]:
        """Return the target as well, and of a test what failing it costs, and the bound."""
        target = StatedTarget(self.plan.epsilon)
        if self.needed:
            target = StatedTarget(self.plan.epsilon, self.plan.refusal_epsilon, self.bound.value)
        return {**super().told, "target": target}

    def quote(self, *, queries: int, max_answers: int, groups: Sequence[Group] = ()) -> Quote:
        """Return the cost for all votes, and what the target means; no forecast is made here."""
        plan = self.plan
        outlook = Outlook(
            target=plan.epsilon,
            delta=plan.delta,
            refusal_epsilon=plan.refusal_epsilon,
            orders=self._tested.orders,
            distances=plan.distances,
            needed=self.needed,
            chances=None,
        )
        price = super().quote(queries=queries, max_answers=max_answers, groups=groups)
        return replace(price, target=outlook)

    def charge(self, *, queries: int, max_answers: int) -> Mapping[str, Any]:
        """Return the target, where it is tested, as fields of a run in a record."""
        if not self.needed:
            return super().charge(queries=queries, max_answers=max_answers)
        plan = self.plan
        return {
            "kind": RunKind.TARGET,
            "epsilon": plan.epsilon,
            "delta": plan.delta,
            "refusal_epsilon": plan.refusal_epsilon,
        }

    @property
    def _headline(self) -> Headline:
        """Say of a target that is met without a test that it is met."""
        headline = super()._headline
        return headline if self.needed else replace(headline, met_target=self.plan.epsilon)


Account: TypeAlias = LedgerAccount | PublicAccount
"""What keeps what it needs of the votes while they are labelled, and reports in the end. SECRET."""


def charge(
    mechanism: ScoredMechanism,
    tally: Mapping[float, Tally],
    done: Round,
    *,
    delta: float,
    distances: int,
    private: bool,
) -> Ledger:
    """Return the ledger of one run under the tight analysis.

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
