"""The terms of a run: what it costs whatever the votes, and the ε that its report opens with.

A quote and a report follow from the same terms. There are three kinds: what scored mechanisms cost
at worst, perhaps beside a sanitized ε; a composition; and a target that is tested. All in them is
public, and but for what was drawn or decided in the end it is fixed before any vote is seen.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

from pate_cli.accounting.composition import Composition
from pate_cli.accounting.conversion import round_up
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError
from pate_cli.core.words import Bound, ReleaseKind
from pate_cli.disclosure.external import External
from pate_cli.disclosure.guarantee import TOTAL
from pate_cli.disclosure.ledger import Draw
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.record import Outcome, Run
from pate_cli.disclosure.report import DataIndependent, GroupGuarantee, Sanitized, Tested
from pate_cli.disclosure.target import TargetPlan
from pate_cli.disclosure.total import Total, total_of
from pate_cli.disclosure.worst_case import (
    DataIndependentCost,
    Spending,
    data_independent_cost,
    prepare,
)
from pate_cli.mechanisms.base import ComposedMechanism, ScoredMechanism
from pate_cli.votes.facts import Group

_NOTHING_DRAWN: Final = Sanitized(release=ReleaseKind.NONE.value)


@dataclass(frozen=True)
class Headline:
    """The ε that a report opens with, and where it comes from.

    Attributes:
        epsilon: nats.
        kind: as `epsilon_kind` of a report.
        sanitized, tested, met_target: as there.
    """

    epsilon: float
    kind: str
    sanitized: Sanitized = _NOTHING_DRAWN
    tested: Tested | None = None
    met_target: float | None = None


class Terms(ABC):
    """Cost of everything that is released, as a report states it.

    Attributes:
        plan: the sanitized release that is published with the labels; None where there is none.
        prior: draws that were made from the same votes before.
        recorded: whether they are known to be all; the report claims nothing if not.
        external: other mechanisms on the same records.
        compared: whether a textbook could say something of the labels.
    """

    compared = True
    plan: ReleasePlan | None = None
    prior: tuple[Draw, ...] = ()
    recorded: bool = True
    external: External = External()

    @property
    def verified(self) -> bool:
        """Whether something is claimed for all that it is made of."""
        return True

    @property
    @abstractmethod
    def analysis(self) -> str:
        """Name of the analysis in reports."""

    @property
    @abstractmethod
    def public(self) -> DataIndependent:
        """The ε for all votes, of everything and of the labels alone, rounded up."""

    @property
    @abstractmethod
    def headline(self) -> Headline:
        """Headline ε if no sanitized value is released."""

    @property
    @abstractmethod
    def labels_delta(self) -> float:
        """δ of what is released of the votes."""

    @property
    def delta(self) -> float:
        """δ of everything, what external parts add to it included."""
        return self.external.total(self.labels_delta)

    def moving(self, votes: int) -> float:
        """ε of the records that move so many votes at most, where it can be told by itself."""
        del votes
        return math.inf

    def by_group(self, groups: Sequence[Group], epsilon: float) -> tuple[GroupGuarantee, ...]:
        """The ε of every group of teachers: the headline, or its own worst case if it is smaller.

        A record of group g moves at most K_g votes: what was spent is priced again for so many, the
        draws and external parts in full (accounting/THEORY.md, section 15).
        """
        own = {votes: self.moving(votes) for votes in {group.votes_per_record for group in groups}}
        return tuple(
            GroupGuarantee(
                **vars(group), epsilon=min(epsilon, own[group.votes_per_record]), delta=self.delta
            )
            for group in groups
        )


@dataclass(frozen=True)
class ScoredTerms(Terms):
    """Rounds of scored mechanisms, what is drawn of them, and what is charged beside them.

    Attributes:
        spent: what was asked, one entry a round.
        own_delta: δ of the rounds and the draws.
        plan, prior, recorded, external: as in `Terms`.
        stated: at which orders the labels, and everything, are said to cost least; None to search.
    """

    spent: Sequence[Spending]
    own_delta: float
    plan: ReleasePlan | None = None
    prior: tuple[Draw, ...] = ()
    recorded: bool = True
    external: External = Terms.external
    stated: tuple[float | None, float | None] = (None, None)

    def __post_init__(self) -> None:
        if self.plan is not None and self.plan.delta != self.own_delta:
            raise ParameterError(f"a plan at delta {self.plan.delta:g} for {self.own_delta:g}")

    @property
    def analysis(self) -> str:
        """Analysis of the release plan."""
        return "tight" if self.plan is None else self.plan.analysis.value

    @cached_property
    def public(self) -> DataIndependent:
        """By Rényi costs and other routes; the labels alone have no draw to pay for."""
        plan, prior, external = self.plan, self.prior, self.external
        if plan is not None and plan.publishes_draw:
            prepare(self.spent, plan=plan, prior=prior, external=external, stated=self.stated)
        labels = everything = data_independent_cost(
            self.spent, delta=self.own_delta, plan=None, order=self.stated[0]
        )
        if prior or external.parts or (plan is not None and plan.publishes_draw):
            everything = data_independent_cost(
                self.spent,
                delta=self.own_delta,
                plan=plan,
                prior=prior,
                external=external,
                order=self.stated[1],
            )
        return _rounded(everything, labels)

    @property
    def headline(self) -> Headline:
        """The worst case."""
        return self.drawn(None)

    def drawn(self, epsilon: float | None) -> Headline:
        """Return the headline with a sanitized ε; with None if nothing was drawn."""
        plan, public = self.plan, self.public.epsilon
        if plan is None:
            return Headline(public, "worst-case")
        sanitized = Sanitized(release=plan.kind.value)
        if epsilon is not None:
            sanitized = Sanitized(
                release=plan.kind.value,
                epsilon=epsilon,
                order=plan.order,
                beta=plan.beta,
                sigma_release=plan.sigma,
                delta_failure=plan.delta_shift,
                release_rdp=plan.release_rdp,
                release_rdp_published=plan.claimed_rdp,
            )
        best = plan.headline(epsilon, public)
        return Headline(best, "worst-case" if best == public else plan.kind.value, sanitized)

    @property
    def labels_delta(self) -> float:
        """Without what external parts add."""
        return self.own_delta

    def moving(self, votes: int) -> float:
        """Priced for so many votes."""
        spent = [replace(each, mechanism=each.mechanism.moving(votes)) for each in self.spent]
        return replace(self, spent=spent, stated=(None, None)).public.epsilon


def _rounded(
    everything: DataIndependentCost | Total, labels: DataIndependentCost | Total
) -> DataIndependent:
    return DataIndependent(
        epsilon=round_up(everything.epsilon),
        order=everything.order,
        method=everything.method,
        labels_epsilon=round_up(labels.epsilon),
        labels_order=labels.order,
        labels_method=labels.method,
    )


@dataclass(frozen=True)
class ComposedTerms(Terms):
    """A run whose (ε, δ) is a composition: there is nothing to sanitize."""

    cost: Composition

    @property
    def analysis(self) -> str:
        """A word of its own."""
        return "composition"

    @property
    def public(self) -> DataIndependent:
        """The composition."""
        epsilon, method = round_up(self.cost.epsilon), self.cost.method
        return DataIndependent(epsilon, None, method, epsilon, None, method)

    @property
    def headline(self) -> Headline:
        """Headline: the ε of the composition."""
        return Headline(self.public.epsilon, "worst-case")

    @property
    def labels_delta(self) -> float:
        """δ of the composition."""
        return self.cost.delta


@dataclass(frozen=True)
class TargetTerms(Terms):
    """Labels that could cost more than a target: nothing depends on the votes but what a coin says.

    Attributes:
        labels: what they cost for all votes, without a test.
        target: fixed before any vote was seen.
        bound: how the cost of the votes is bounded.
        orders: at which Rényi orders.
    """

    labels: Terms
    target: TargetPlan
    bound: Bound
    orders: tuple[float, ...]

    def __post_init__(self) -> None:
        if self.target.delta != self.labels.delta:
            raise ParameterError(f"a target at delta {self.target.delta:g} for another")

    @property
    def analysis(self) -> str:
        """Analysis of the labels."""
        return self.labels.analysis

    @property
    def public(self) -> DataIndependent:
        """Without a test."""
        return self.labels.public

    @property
    def headline(self) -> Headline:
        """The target, of labels that passed."""
        return self.decided(passed=True)

    def decided(self, *, passed: bool) -> Headline:
        """The target, or what its refusal costs."""
        target = self.target
        return Headline(
            target.epsilon if passed else target.refusal_epsilon,
            "target" if passed else "refusal",
            tested=Tested(
                passed=passed,
                target=target.epsilon,
                delta=target.delta,
                refusal_epsilon=target.refusal_epsilon,
                orders=self.orders,
                distances=target.distances,
                bound=self.bound.value,
            ),
        )

    @property
    def labels_delta(self) -> float:
        """δ of the target, spent whatever comes out of its test."""
        return self.target.delta


@dataclass(frozen=True)
class AccountTerms(Terms):
    """All runs that a record tells of: their total, which is published as it is.

    Attributes:
        runs: in order.
        recorded: whether draws from ledgers that are told of are known to be all among them.
    """

    runs: tuple[Run, ...]
    recorded: bool = True

    compared = False  # a textbook knows nothing of tests

    @property
    def verified(self) -> bool:
        """Whether something is claimed for every run."""
        return all(run.claimed for run in self.runs)

    @property
    def analysis(self) -> str:
        """The published one has no total."""
        return "tight"

    @property
    def external(self) -> External:  # type: ignore[override]  # what runs say is not assigned
        """The parts that others stated."""
        return External(tuple(part for part in (run.part for run in self.runs) if part is not None))

    @property
    def prior(self) -> tuple[Draw, ...]:  # type: ignore[override]  # likewise
        """All draws."""
        return tuple(draw for draw in (run.draw for run in self.runs) if draw is not None)

    @cached_property
    def public(self) -> DataIndependent:
        """With refusals in full, as they might have passed; the labels without all draws."""
        everything = total_of([_in_full(run) for run in self.runs])
        asked = [replace(_in_full(run), draw=None) for run in self.runs if run.asked is not None]
        labels = total_of(asked) if asked else everything
        return _rounded(everything, labels)

    @cached_property
    def _total(self) -> Total:
        return total_of(self.runs)

    @property
    def headline(self) -> Headline:
        """The total, refusals as they came."""
        return Headline(round_up(self._total.epsilon), TOTAL)

    @property
    def labels_delta(self) -> float:
        """δ of all runs."""
        return self._total.delta

    @property
    def delta(self) -> float:
        """δ of all runs."""
        return self._total.delta


def _in_full(run: Run) -> Run:
    return replace(run, outcome=Outcome.LABELLED) if run.outcome is Outcome.REFUSED else run


def terms_of(
    mechanism: ScoredMechanism | ComposedMechanism,
    *,
    queries: int,
    max_answers: int,
    delta: float,
) -> ScoredTerms | ComposedTerms:
    """Return the terms of a run that costs the same whatever the votes.

    Raises:
        UnreachableError: a δ below what a composition amounts to.
    """
    if isinstance(mechanism, ComposedMechanism):
        return ComposedTerms(mechanism.privacy(queries, delta))
    return ScoredTerms([Spending(mechanism, queries, max_answers)], delta)
