"""One run: batches of histograms in; labels, an account and a public report out.

Every mechanism takes this path. What differs is the account that is kept of the votes: a tally of
scores (`TightAccount`), a test before any label is drawn (`TargetAccount`), none where the cost is
a composition (`ComposedAccount`), or that of the published analysis, which keeps one of its own.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.sensitivity import distances_for
from pate_cli.arrays import Counts
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
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.profile import VoteProfile, states_for
from pate_cli.disclosure.report import Outlook, Quote, Report, Spent
from pate_cli.disclosure.target import Reference, TargetPlan
from pate_cli.disclosure.worst_case import Spending
from pate_cli.errors import VoteError
from pate_cli.labels import NO_LABEL, Labels, concatenate
from pate_cli.ledger import Ledger, Round
from pate_cli.mechanisms.base import ComposedMechanism, Labeller, Mechanism, ScoredMechanism
from pate_cli.noise import Noise
from pate_cli.votes import VoteBatch
from pate_cli.words import Bound, PublicFact

__all__ = [
    "Account",
    "Aggregation",
    "ComposedAccount",
    "Settlement",
    "TargetAccount",
    "TightAccount",
    "WorstCaseAccount",
    "charge",
    "label_batches",
    "run",
    "settle",
]


class Account(Protocol):
    """What is kept of the votes while they are labelled, and what it says in the end. SECRET."""

    def add(self, mechanism: Mechanism, counts: Counts) -> None:
        """Charge a batch of histograms; the mechanism is bound to its rows."""
        ...

    def settle(self, done: Round, noise: Noise, warnings: Sequence[str]) -> Settlement:
        """The public report, drawn once, and the ledger if there is one."""
        ...

    def quote(self, *, queries: int, max_answers: int) -> Quote:
        """What the run costs for all votes, before anything is spent; public."""
        ...


@dataclass(frozen=True)
class Settlement:
    """A report (public) and the ledger behind it (SECRET); None where the cost is a composition."""

    report: Report
    ledger: Ledger | None


@dataclass(frozen=True)
class Aggregation:
    """Everything a run produces.

    Attributes:
        labels: released labels with the mechanism's public parameters. Public.
        report: what may be published about them. Public.
        ledger: what they cost; None where nothing was kept of the votes. SECRET.
    """

    labels: Labels
    report: Report
    ledger: Ledger | None


def run(
    batches: Iterable[VoteBatch],
    mechanism: Mechanism,
    account: Account,
    *,
    queries: int,
    max_answers: int,
    noise: Noise,
    progress: Callable[[int], None] = lambda _rows: None,
    warnings: Sequence[str] = (),
    read_off: Sequence[PublicFact] = (),
) -> Aggregation:
    """Label every row in order, stopping at the public cap; charge *all* rows; release.

    Rows after the stop get no label and are charged all the same: charging up to a stop that
    depends on the votes is not RDP.

    Args:
        batches: exactly the `queries` histograms to be asked, in order.
        mechanism: the aggregator.
        account: how it is charged, fixed before any vote was seen.
        queries: k1, fixed before any vote was seen.
        max_answers: k2, the public cap on answers.
        noise: the source of all noise.
        progress: called with the number of rows of each finished batch.
        warnings: what else a reader of the report should know.
        read_off: facts that are taken as public and were read off the votes.

    Raises:
        VoteError: from the batches, at the first row that is no vote, or when there are fewer
            or more rows than `queries`.
    """
    tables: list[Labels] = []
    for batch, bound, table in label_batches(
        batches, mechanism, noise=noise, max_answers=max_answers
    ):
        account.add(bound, batch.counts)
        tables.append(table)
        progress(len(table))
    asked = sum(len(table) for table in tables)
    if asked != queries:
        raise VoteError(f"expected {queries} queries, the votes hold {asked}")
    done = Round(
        id=secrets.token_hex(16),
        mechanism=mechanism.parameters(),
        queries=queries,
        max_answers=min(max_answers, queries),
        answers=sum(int(np.sum(table.sources == "teachers")) for table in tables),
        read_off=tuple(read_off),
    )
    settled = account.settle(done, noise, warnings)
    labels = replace(concatenate(tables), metadata=_metadata(settled.report))
    return Aggregation(labels, settled.report, settled.ledger)


def label_batches(
    batches: Iterable[VoteBatch], mechanism: Mechanism, *, noise: Noise, max_answers: int
) -> Iterator[tuple[VoteBatch, Mechanism, Labels]]:
    """Label rows in order until the public cap on answers is reached; the rest stay without.

    Where the teachers give no answer before the stop, the mechanism's own public label, if it has
    one, takes its place. Yields each batch with the mechanism bound to its rows.
    """
    run_under_way = mechanism.start()
    answered = 0
    for batch in batches:
        bound = mechanism.for_rows(batch.ids, batch.first_row)
        labeller: Labeller = bound if run_under_way is mechanism else run_under_way
        labels = labeller.label(batch.counts, noise).astype(np.int64)
        hits = labels != NO_LABEL
        asked = answered + np.cumsum(hits) - hits < max_answers
        labels[~asked] = NO_LABEL
        answered += int(np.count_nonzero(labels != NO_LABEL))
        sources = np.where(labels == NO_LABEL, "none", "teachers")
        student = bound.fallback()
        if student is not None:
            free = (labels == NO_LABEL) & (student != NO_LABEL) & asked
            labels[free], sources[free] = student[free], "student"
        yield batch, bound, Labels(ids=np.asarray(batch.ids), labels=labels, sources=sources)


def _metadata(report: Report) -> dict[str, str]:
    """The public parameters that a file of labels carries."""
    metadata = {name: str(value) for name, value in report.mechanism.items()}
    metadata |= {"queries": str(report.queries), "max_answers": str(report.max_answers)}
    return metadata | {"private": str(report.private).lower()}


class TightAccount:
    """Scores tallied at the plan's order; their exact cost is sanitized by the plan. SECRET."""

    def __init__(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> None:
        """Start at nothing; `plan` is fixed before any vote is seen."""
        self._mechanism, self._plan = mechanism, plan
        self._table = mechanism.cost_table(plan.order)
        self._tally = Tally.empty()

    def add(self, mechanism: Mechanism, counts: Counts) -> None:
        """Tally a batch under the mechanism bound to its rows."""
        bound: Any = mechanism  # of the kind this account was opened for
        self._tally += bound.tally(counts, self._table)

    def settle(self, done: Round, noise: Noise, warnings: Sequence[str]) -> Settlement:
        """Charge all rows, draw once, and note the draw in the ledger."""
        plan = self._plan
        ledger = charge(
            self._mechanism,
            {plan.order: self._tally},
            done,
            delta=plan.delta,
            distances=distances_for(plan.beta, teachers=self._mechanism.teachers),
            private=noise.private,
        )
        return settle(ledger, plan, noise, warnings)

    def quote(self, *, queries: int, max_answers: int) -> Quote:
        """The data-independent price of labels and release."""
        return quote(self._mechanism, self._plan, queries=queries, max_answers=max_answers)


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
        """
        self._mechanism, self.plan, self._bound = mechanism, plan, bound
        self._queries, self._max_answers = queries, max_answers
        self.spent: Spent | None = None
        self.public = for_all_votes([Spending(mechanism, queries, max_answers)], delta=plan.delta)
        self._states = states_for(bound, mechanism, highest_order=float(plan.orders[-1]))
        if self.needed:
            plan.check_reachable()

    @property
    def needed(self) -> bool:
        """Whether a coin must be drawn, since the labels could cost more than the target."""
        return self.public.epsilon > self.plan.epsilon

    def passes(
        self,
        batches: Iterable[VoteBatch],
        noise: Noise,
        progress: Callable[[int], None] = lambda _rows: None,
    ) -> bool:
        """Tally all rows and draw the coin: the one thing that is ever said about the profile."""
        profile = VoteProfile(self._states)
        ceiling = self._mechanism.worst_rdp(
            queries=self._queries, answers=self._max_answers, orders=self.plan.orders
        )
        asked: Any = self._mechanism  # bound to rows it stays of its kind
        for batch in batches:
            profile.add(asked.for_rows(batch.ids, batch.first_row), batch.counts)
            progress(len(batch.counts))
        if profile.queries != self._queries:
            raise VoteError(f"expected {self._queries} queries, the votes hold {profile.queries}")
        return not noise.comes_up(self.plan.coin(profile.at, ceiling).log_refuse)

    def refused(self, *, private: bool, read_off: Sequence[PublicFact] = ()) -> Report:
        """The public report of a refusal; `read_off` as in `run`."""
        done = Round(
            id="refused",
            mechanism=self._mechanism.parameters(),
            queries=self._queries,
            max_answers=self._max_answers,
            answers=0,
            read_off=tuple(read_off),
        )
        return self._report(done, passed=False, private=private)

    def add(self, mechanism: Mechanism, counts: Counts) -> None:
        """Nothing: what labels may cost is settled before they are drawn."""

    def settle(self, done: Round, noise: Noise, warnings: Sequence[str]) -> Settlement:
        """The report of labels that passed, or that needed no test; there is no ledger."""
        if self.needed:
            report = self._report(done, passed=True, private=noise.private)
        else:
            report = release_public(
                done,
                self.public,
                delta=self.plan.delta,
                private=noise.private,
                target=self.plan.epsilon,
                spent=self.spent,
            )
        return Settlement(report, None)

    def quote(self, *, queries: int, max_answers: int) -> Quote:
        """The price for all votes, and how likely a made-up ensemble would pass."""
        plan = self.plan
        outlook = Outlook(
            target=plan.epsilon,
            delta=plan.delta,
            refusal_epsilon=plan.refusal_epsilon,
            orders=tuple(plan.orders.tolist()),
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
        )
        return replace(price, target=outlook)

    def _report(self, done: Round, *, passed: bool, private: bool) -> Report:
        return release_tested(
            done,
            self.plan,
            self.public,
            bound=self._bound,
            passed=passed,
            private=private,
            spent=self.spent,
        )


class WorstCaseAccount:
    """Nothing kept: the labels cost what they cost for all votes, and no ledger is wanted."""

    def __init__(
        self, mechanism: ScoredMechanism, *, queries: int, max_answers: int, delta: float
    ) -> None:
        """Price the labels for all votes."""
        self._mechanism, self._delta = mechanism, delta
        self._public = for_all_votes([Spending(mechanism, queries, max_answers)], delta=delta)

    def add(self, mechanism: Mechanism, counts: Counts) -> None:
        """Nothing: the cost does not depend on the votes."""

    def settle(self, done: Round, noise: Noise, warnings: Sequence[str]) -> Settlement:
        """The report, without a ledger."""
        del warnings
        report = release_public(done, self._public, delta=self._delta, private=noise.private)
        return Settlement(report, None)

    def quote(self, *, queries: int, max_answers: int) -> Quote:
        """The price, before anything is spent."""
        return public_quote(
            self._mechanism,
            self._public,
            delta=self._delta,
            queries=queries,
            max_answers=max_answers,
        )


class ComposedAccount:
    """Nothing kept: the (ε, δ) of the run is a composition, the same for all votes."""

    def __init__(self, mechanism: ComposedMechanism, *, queries: int, delta: float) -> None:
        """Compose k1 queries; UnreachableError for a δ below what they amount to."""
        self._mechanism = mechanism
        self._cost = mechanism.privacy(queries, delta)

    def add(self, mechanism: Mechanism, counts: Counts) -> None:
        """Nothing: the cost does not depend on the votes."""

    def settle(self, done: Round, noise: Noise, warnings: Sequence[str]) -> Settlement:
        """The report, without a ledger."""
        report = release_composed(done, self._cost, private=noise.private, warnings=warnings)
        return Settlement(report, None)

    def quote(self, *, queries: int, max_answers: int) -> Quote:
        """The composition, before anything is spent."""
        return composed_quote(self._mechanism, self._cost, queries=queries, max_answers=max_answers)


def settle(ledger: Ledger, plan: ReleasePlan, noise: Noise, warnings: Sequence[str]) -> Settlement:
    """Release a run's own ledger; a draw that was published is remembered in it."""
    report = release(ledger, plan, noise, warnings=warnings)
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
