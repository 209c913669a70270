"""Settings of a run: what it was told, all of it public and fixed before the first vote.

They are the hinge between a run and what is said of it. `Cost.of(settings)` prices a run,
a record, a ledger and a report contain them. A file of labels carries them where its format has
room, and `verify` compares the two. How an ε is to be sanitized, and when a session stops asking,
belong to them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Final, Self

from pate_cli.accounting.conversion import order_cost
from pate_cli.accounting.sensitivity import gnss_rdp, largest_order, shift_quantile
from pate_cli.accounting.stopping import Beyond
from pate_cli.core.arrays import LabelSet
from pate_cli.core.checks import check_delta, check_order, check_positive, check_whole
from pate_cli.core.errors import ParameterError, quoted
from pate_cli.core.noise import NARROWEST
from pate_cli.core.words import Analysis, PublicFact, ReleaseKind
from pate_cli.disclosure.target import TargetPlan
from pate_cli.files.document import SPARING, encoded
from pate_cli.mechanisms import mechanism_from_parameters
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism
from pate_cli.votes.facts import Group, PriorFacts

# δ' = δ/10 goes to the chance that the released bound is too low; κ grows so slowly with 1/δ'
# that the exact share hardly matters (between δ/2 and δ/100 it moves ε by about 2%).
_FAILURE_SHARE = 0.1
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def failure_delta(delta: float) -> float:
    """δ': the part of δ spent on the chance that a released upper bound is too low."""
    # Printed, and used as it is printed: 1e-06, not 1.0000000000000002e-06.
    return float(f"{_FAILURE_SHARE * delta:.12g}")


@dataclass(frozen=True)
class ReleasePlan:
    """Public parameters of a sanitized release; its cost at any order follows from them.

    The theory stands in accounting.sensitivity.

    Attributes:
        kind: `upper` adds κ = σ·Φ⁻¹(1 − δ') smooth sensitivities, so that the published value is
            below the true one with probability δ' only; `none` publishes no data-dependent value
            at all.
        delta: δ of the whole guarantee, δ' included.
        order: Rényi order λ > 1 at which the release is made.
        beta: smoothness β > 0 per vote.
        sigma: standard deviation of the noise in units of the smooth sensitivity, > 0.
    """

    analysis: ClassVar[Analysis] = Analysis.TIGHT

    kind: ReleaseKind
    delta: float
    order: float
    beta: float
    sigma: float

    def __post_init__(self) -> None:
        if self.kind is ReleaseKind.TARGET:
            raise ParameterError("a target is tested, not drawn; give an `upper` release or `none`")
        check_delta(self.delta)
        check_order(self.order)
        if self.publishes_draw:
            _ = self.release_rdp  # refuses β, σ or λ out of range

    @property
    def publishes_draw(self) -> bool:
        """Whether a sanitized value is drawn at all."""
        return self.kind is not ReleaseKind.NONE

    @property
    def delta_shift(self) -> float:
        """δ': the chance that a released upper bound is below the true value; 0 without a draw."""
        return failure_delta(self.delta) if self.publishes_draw else 0.0

    @property
    def shift(self) -> float:
        """κ, in units of the smooth sensitivity."""
        return self.sigma * shift_quantile(self.delta_shift)

    @property
    def draws(self) -> tuple[ReleasePlan, ...]:
        """The plan itself where it publishes a draw, which is charged; else nothing."""
        return (self,) if self.publishes_draw else ()

    @property
    def highest(self) -> float:
        """The order from which on the draw costs infinitely much."""
        return largest_order(self.beta)

    def rdp(self, order: float) -> float:
        """ε_κ(λ): what the draw costs at an order, nats; ParameterError where it is infinite."""
        return gnss_rdp(beta=self.beta, sigma=self.sigma, order=order, shift=self.shift)

    @property
    def release_rdp(self) -> float:
        """ε_κ(λ): what the draw itself costs, nats."""
        return self.rdp(self.order)

    @property
    def overhead(self) -> float:
        """ε of the draw and of the conversion, nats: added to the RDP cost of the labels."""
        return self.release_rdp + self.conversion(self.delta - self.delta_shift)

    def conversion(self, delta: float) -> float:
        """Return the ε that converting RDP at the order of the plan adds at δ, nats."""
        return order_cost(self.order, delta=delta)

    def value(self, rdp: float, smooth: float, deviate: float = 0.0) -> float:
        """The ε that is published: f + SS·(κ + σN) + overhead, at N = `deviate`, nats.

        SS is taken for more where the noise would be so narrow that round-off tells beside it: the
        greater of SS and a constant is as smooth as SS (accounting/THEORY.md, 12.4).
        """
        wide = max(smooth, NARROWEST / self.sigma)
        return rdp + wide * (self.shift + self.sigma * deviate) + self.overhead


@dataclass(frozen=True)
class StopRule:
    """How many queries a session may ask, and what it costs however they are chosen; public.

    Attributes:
        epsilon, delta: of all that the session says, whatever the votes, nats.
        asks: N ≥ 1, how many queries may be asked in any case.
        beyond: up to where more may be, if few are answered; None where no more may.
    """

    epsilon: float
    delta: float
    asks: int
    beyond: Beyond | None = field(default=None, metadata=SPARING)

    def __post_init__(self) -> None:
        check_positive("epsilon", self.epsilon)
        check_delta(self.delta)
        check_whole("asks", self.asks)

    def left(self, asked: int, answers: int) -> int:
        """How many more may be asked whatever comes out, ≥ 0."""
        beyond = 0 if self.beyond is None else self.beyond.further(asked, answers)
        return max(self.asks - asked, beyond, 0)

    def allows(self, asked: int, answers: int) -> bool:
        """Whether a session may have come so far."""
        if asked <= self.asks:
            return True
        return self.beyond is not None and self.beyond.allows(asked, answers)

    @property
    def most(self) -> int:
        """How many may be asked if none is answered."""
        return max(self.asks, 0 if self.beyond is None else self.beyond.most)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one run on votes: all that it is told, and all that its cost follows from.

    Attributes:
        mechanism: its public parameters, its name among them, as `Mechanism.parameters` has them.
        queries: k1, how many rows are asked; of a session so far.
        max_answers: k2, the public cap on answers (k1 where there is none).
        delta: δ of the run, in (0, 1).
        private: False where the noise came from a seed.
        analysis: `tight`, `paper` or `composition`.
        target: the (ε, δ) stated in advance, if there is one.
        sanitizer: at which order and how smooth costs are kept of the votes, and whether an ε is
            drawn of them; None where nothing is kept.
        read_off: facts that should be public and were read off the votes.
        groups: of the teachers, where they count differently.
        label_set: the labels of a query, where it has several; the rows, caps and answers are then
            of pairs of a query and a label.
        prior: the public prior that votes, too; None where it has no vote.
        rule: of a session, whose rows come one by one, when asking stops.

    Raises:
        LedgerError: no mechanism has these parameters.
        ParameterError: numbers that contradict each other, or what the mechanism is charged for.
    """

    mechanism: Mapping[str, Any]
    queries: int
    max_answers: int
    delta: float
    private: bool
    analysis: str = field(default="tight", metadata=SPARING)
    target: TargetPlan | None = field(default=None, metadata=SPARING)
    sanitizer: ReleasePlan | None = field(default=None, metadata=SPARING)
    read_off: tuple[PublicFact, ...] = field(default=(), metadata=SPARING)
    groups: tuple[Group, ...] = field(default=(), metadata=SPARING)
    label_set: LabelSet | None = field(default=None, metadata=SPARING)
    prior: PriorFacts | None = field(default=None, metadata=SPARING)
    rule: StopRule | None = field(default=None, metadata=SPARING)

    def __post_init__(self) -> None:
        check_delta(self.delta)
        fault = next(self._faults(self.aggregator), None)
        if fault is not None:
            raise ParameterError(fault)

    def _faults(self, mechanism: Mechanism) -> Iterator[str]:
        """Yield what contradicts itself, or what the mechanism is charged for."""
        queries, prior = self.queries, self.prior
        plain = all(isinstance(each, str | float | int) for each in self.mechanism.values())
        if not plain or mechanism.parameters() != dict(self.mechanism):
            yield "the parameters of the mechanism are not as a run writes them"
        if not 0 <= self.max_answers <= queries:
            yield f"max_answers and queries must be 0 <= {self.max_answers} <= {queries}"
        composed = isinstance(mechanism, ComposedMechanism)
        if self.analysis not in (("composition",) if composed else ("tight", "paper")):
            yield f"{mechanism.name} is not charged by the analysis {quoted(self.analysis)}"
        for part in (self.target, self.sanitizer, self.rule):
            if part is not None and part.delta != self.delta:
                yield f"{type(part).__name__} at delta {part.delta:g} for {self.delta:g}"
        charged, weight = mechanism.prior_weight, 0 if prior is None else prior.weight
        if charged != weight or (prior is not None and not weight):
            yield f"its prior has {weight} votes, but it was charged for {charged:g}"
        if prior is not None and not 0 <= prior.guesses <= queries:
            yield f"{prior.guesses} guesses of its prior for {queries} queries"
        if prior is not None and not _SHA256.fullmatch(prior.sha256):
            yield f"{quoted(prior.sha256)} is no SHA-256 of its prior"
        if mechanism.votes_together and any(one.teachers_per_record > 1 for one in self.groups):
            yield "a record moves votes of several teachers, it was charged for those of one"
        if self.groups:
            k, moved = (
                mechanism.teachers_per_record,
                max(one.votes_per_record for one in self.groups),
            )
            if moved != k:
                yield f"a record of its groups moves up to {moved} votes, it was charged for {k}"
            if len({group.group for group in self.groups}) < len(self.groups):
                yield "two groups have the same name"
            votes = sum(group.total_weight for group in self.groups)
            if votes != mechanism.teachers:
                yield f"the groups have {votes} votes, {mechanism.teachers} were charged"

    @classmethod
    def of(cls, settings: Settings, **beside: Any) -> Self:
        """Return settings as this class has them, with other or further fields beside them."""
        return cls(
            **{each.name: getattr(settings, each.name) for each in fields(Settings)} | beside
        )

    @cached_property
    def aggregator(self) -> Mechanism:
        """The mechanism that has these parameters."""
        return mechanism_from_parameters(self.mechanism)

    @property
    def charged(self) -> tuple[int, int]:
        """Queries and answers that are paid for; of a session those it may give in any case."""
        rule = self.rule
        return (self.queries, self.max_answers) if rule is None else (rule.asks, rule.asks)

    @property
    def published(self) -> Settings:
        """Settings without a plan that draws nothing: such a plan is for the ledger alone."""
        plan = self.sanitizer
        drawn = plan if plan is not None and plan.publishes_draw else None
        return Settings.of(self, sanitizer=drawn)

    @property
    def protected(self) -> tuple[Any, ...]:
        """Votes that one record moves; runs that differ in it have no common neighbours."""
        mechanism = self.aggregator
        return (mechanism.teachers_per_record, mechanism.votes_together, self.groups)

    @property
    def tested(self) -> TargetPlan | None:
        """The target, where labels leave only if they pass its test; None without a test."""
        return None if self.target is None or not self.target.test_orders else self.target

    @property
    def claimed(self) -> bool:
        """Whether anything may be claimed: the noise was private and nothing was read off votes."""
        return self.private and not self.read_off

    def texts(self) -> dict[str, str]:
        """Return the settings as a file of labels carries them, by name: texts, and JSON of others.

        The parameters of the mechanism stand beside the other settings.
        """
        found = encoded(self.published)
        return {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in (found.pop("mechanism") | found).items()
        }
