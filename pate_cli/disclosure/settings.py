"""Settings of a run: its options and the shape of its votes, fixed before any vote is read; public.

The cost of a run follows from its settings, by `Cost.of(settings)`. Records, ledgers and reports
contain settings. If the format of a file of labels can store settings, the file contains the
settings of its run, and `verify` compares them with the settings in the report. Settings include
how an ε is sanitized, and when a session stops asking.
"""

from __future__ import annotations

import functools
import json
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, ClassVar, Final, Self

from pate_cli.accounting.conversion import order_cost, record_epsilon, release_epsilon, round_up
from pate_cli.accounting.few_votes import Few, FewVotes
from pate_cli.accounting.sensitivity import gnss_rdp, largest_order, shift_quantile
from pate_cli.accounting.stopping import Beyond
from pate_cli.core.arrays import LabelSet
from pate_cli.core.checks import (
    check_delta,
    check_nonnegative,
    check_order,
    check_positive,
    check_whole,
)
from pate_cli.core.errors import ParameterError, UsageError, quoted
from pate_cli.core.noise import NARROWEST
from pate_cli.core.words import Analysis, PublicFact, ReleaseKind
from pate_cli.disclosure.target import TargetPlan
from pate_cli.files.document import SPARING, encoded
from pate_cli.mechanisms import mechanism_from_parameters
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism
from pate_cli.votes.facts import Group, PriorFacts, Voting

# δ' = δ/10 is the probability that the released bound is too low. The shift κ grows slowly with
# 1/δ', so the exact share hardly matters: between δ' = δ/2 and δ/100, ε changes by about 2%.
_FAILURE_SHARE = 0.1
_SHA256: Final = re.compile(r"[0-9a-f]{64}")


def failure_delta(delta: float) -> float:
    """Return δ', the part of δ for the probability that a released upper bound is too low."""
    # The number is rounded, so that the number in use is also printed: 1e-06, not
    # 1.0000000000000002e-06.
    return float(f"{_FAILURE_SHARE * delta:.12g}")


@dataclass(frozen=True)
class ReleasePlan:
    """Public parameters of a sanitized ε; they determine the cost of its draw at any order.

    The theory of the draw is in accounting.sensitivity.

    Attributes:
        kind: `upper` publishes an upper bound: the noisy value of ε is raised by κ = σ·Φ⁻¹(1 − δ')
            smooth sensitivities, so that it is below the true value only with probability δ'.
            The kind `none` publishes no ε that depends on the votes.
        delta: δ of the whole guarantee, which includes δ'.
        order: λ > 1, the Rényi order at which the costs of the labels and of the sanitized ε are
            added.
        beta: β > 0: between neighbouring vote files, the smooth sensitivity changes by a factor of
            at most e^β.
        sigma: σ > 0, the standard deviation of the noise in units of the smooth sensitivity.
    """

    analysis: ClassVar[Analysis] = Analysis.TIGHT

    kind: ReleaseKind
    delta: float
    order: float
    beta: float
    sigma: float

    def __post_init__(self) -> None:
        if self.kind is ReleaseKind.TARGET:
            raise ParameterError(
                "`release` target draws no sanitized epsilon; give `release` upper to draw a "
                "sanitized epsilon, or `release` none"
            )
        check_delta(self.delta)
        check_order(self.order)
        if self.publishes_draw:
            _ = self.release_rdp  # refuses β, σ or λ out of range

    @property
    def publishes_draw(self) -> bool:
        """Return whether a sanitized value is drawn at all."""
        return self.kind is not ReleaseKind.NONE

    @property
    def delta_shift(self) -> float:
        """Return δ', the probability that a released upper bound is too low; 0 for kind `none`."""
        return failure_delta(self.delta) if self.publishes_draw else 0.0

    @property
    def shift(self) -> float:
        """Return κ, the shift of the published value, in units of the smooth sensitivity."""
        return self.sigma * shift_quantile(self.delta_shift)

    @property
    def draws(self) -> tuple[ReleasePlan, ...]:
        """Return a tuple with this plan if it draws a value; else an empty tuple."""
        return (self,) if self.publishes_draw else ()

    @property
    def highest(self) -> float:
        """Return the smallest Rényi order at which drawing a sanitized ε has infinite cost."""
        return largest_order(self.beta)

    def rdp(self, order: float) -> float:
        """Return ε_κ(λ), the RDP cost of drawing the sanitized ε, at the order λ = `order`, nats.

        Raises:
            ParameterError: the cost is infinite.
        """
        return gnss_rdp(beta=self.beta, sigma=self.sigma, order=order, shift=self.shift)

    @property
    def release_rdp(self) -> float:
        """Return ε_κ(λ), the RDP cost of drawing the sanitized ε, at the λ of this plan, nats."""
        return self.rdp(self.order)

    @property
    def overhead(self) -> float:
        """Return the RDP cost of drawing the sanitized ε, plus what conversion to (ε, δ) adds.

        The overhead, in nats, is added to the RDP cost of the labels.
        """
        return self.release_rdp + self.conversion(self.delta - self.delta_shift)

    def conversion(self, delta: float) -> float:
        """Return what conversion to (ε, δ) adds to an RDP cost at the order of this plan, nats."""
        return order_cost(self.order, delta=delta)

    def value(self, rdp: float, smooth: float, deviate: float = 0.0) -> float:
        """Return the published ε, f + SS·(κ + σN) + overhead, nats.

        If SS is so small that rounding errors would matter beside the noise, SS is replaced by a
        larger public constant. The larger of SS and this constant is still a β-smooth bound on the
        sensitivity of f (THEORY.md, section 24.4).

        Args:
            rdp: f, the RDP cost of the labels at the plan's order, nats.
            smooth: SS, the smooth sensitivity of f, nats.
            deviate: N, a standard normal number.
        """
        wide = max(smooth, NARROWEST / self.sigma)
        return rdp + wide * (self.shift + self.sigma * deviate) + self.overhead


@dataclass(frozen=True)
class StopRule:
    """How many queries a session may ask, and the cost of all answers; public.

    The cost of all answers is valid even if later queries depend on earlier answers.

    Attributes:
        epsilon, delta: the worst-case cost of all answers of the session; ε in nats.
        asks: N ≥ 1, how many queries the session may ask even if all are answered.
        beyond: the rule that allows more than N queries if few are answered; None if no session may
            ask more than N queries.
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
        """Return how many more queries may be asked even if all of them are answered, ≥ 0."""
        beyond = 0 if self.beyond is None else self.beyond.further(asked, answers)
        return max(self.asks - asked, beyond, 0)

    def allows(self, asked: int, answers: int) -> bool:
        """Return whether a session under this rule can ask `asked` queries and answer `answers`."""
        if asked <= self.asks:
            return True
        return self.beyond is not None and self.beyond.allows(asked, answers)

    @property
    def most(self) -> int:
        """Return how many queries may be asked if none is answered."""
        return max(self.asks, 0 if self.beyond is None else self.beyond.most)


@dataclass(frozen=True)
class Training:
    """How private the training of each teacher was: (ε0, δ0)-DP for one training record; public.

    The holder of the votes states ε0 and δ0. From ε0 and δ0, a run gets an ε for one training
    record, beside its ε for a teacher (accounting.conversion).

    Attributes:
        epsilon: ε0 ≥ 0, nats, which must include the search for good training parameters.
        delta: δ0 in [0, 1).
    """

    epsilon: float
    delta: float = field(default=0.0, metadata=SPARING)

    def __post_init__(self) -> None:
        check_nonnegative("`teacher_epsilon`", self.epsilon)
        if not 0.0 <= self.delta < 1.0:
            raise ParameterError(f"`teacher_delta` must be below 1, got {self.delta:g}")

    @classmethod
    def of(cls, epsilon: float | None, delta: float | None) -> Self | None:
        """Return the training with ε0 = `epsilon` and δ0 = `delta`; None if both are None.

        Raises:
            UsageError: δ is given without ε.
        """
        if epsilon is None and delta is not None:
            raise UsageError("`teacher_delta` needs `teacher_epsilon`")
        return None if epsilon is None else cls(float(epsilon), float(delta or 0.0))

    def __or__(self, other: Training) -> Training:
        """Return the larger ε0 and the larger δ0 of two trainings, valid for all their teachers."""
        return Training(max(self.epsilon, other.epsilon), max(self.delta, other.delta))

    def amplified(self, epsilon: float, delta: float) -> float:
        """Return the ε for one training record if labels are (ε, δ)-DP for a teacher.

        The result is in nats, rounded up.
        """
        found = record_epsilon(
            epsilon=epsilon, delta=delta, teacher_epsilon=self.epsilon, teacher_delta=self.delta
        )
        return round_up(found)

    def bearable(self, record_epsilon: float, delta: float) -> float:
        """Return the largest ε for a teacher that keeps the ε for a record ≤ `record_epsilon`.

        A record is one training record. The result, in nats, is infinite if the ε for a training
        record is at most `record_epsilon` for every ε for a teacher.
        """
        told = {"teacher_epsilon": self.epsilon, "teacher_delta": self.delta}
        return release_epsilon(record_epsilon, delta=delta, **told)


def training_of(rounds: Sequence[Settings | None]) -> Training | None:
    """Return how private the training of all teachers was; None unless all rounds state it."""
    known = [done.training for done in rounds if done is not None and done.training is not None]
    return functools.reduce(operator.or_, known) if 0 < len(known) == len(rounds) else None


def draws_of(rounds: Sequence[Settings]) -> tuple[ReleasePlan, ...]:
    """Return the plans of all sanitized ε that the runs with the settings `rounds` drew."""
    return tuple(draw for done in rounds if done.sanitizer for draw in done.sanitizer.draws)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """Settings of one run on votes: everything that determines its worst-case cost.

    Attributes:
        mechanism: the name and the public parameters of the mechanism (`Mechanism.parameters`).
        queries: k1, how many rows are asked; for a session, how many were asked so far.
        max_answers: k2, the public cap on answers; equal to k1 without a cap.
        delta: δ of the run, in (0, 1).
        private: False if the noise came from a seed.
        analysis: how the cost is computed: `tight` or `paper`, or `composition` for a mechanism
            without an RDP cost.
        target: the (ε, δ) that was stated in advance; None without a target.
        sanitizer: the plan of the sanitized ε; the ledger of the run uses the same order and β,
            even if no ε is drawn. `sanitizer` is None if the run keeps no ledger and draws no ε.
        read_off: facts that should be public but were read from the votes.
        groups: the groups of the teachers; empty if teachers have no groups.
        label_set: the labels that a query may have; None if a query has one label. If a query may
            have several labels, rows and answers are pairs of a query and a label.
        prior: the public prior, whose guess on a query counts as a fixed number of votes; None
            without a prior.
        rule: when a session ends; None if the run is not a session.
        training: how private the training of each teacher was; None if nobody states it.
        voting: how many queries each teacher votes on; None if nobody states it.

    Raises:
        LedgerError: no mechanism has the name and the parameters in `mechanism`.
        ParameterError: a setting is out of range, or contradicts another setting or the mechanism.
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
    training: Training | None = field(default=None, metadata=SPARING)
    voting: Voting | None = field(default=None, metadata=SPARING)

    def __post_init__(self) -> None:
        check_delta(self.delta)
        fault = next(self._faults(self.aggregator), None)
        if fault is not None:
            raise ParameterError(fault)

    def _faults(self, mechanism: Mechanism) -> Iterator[str]:
        """Yield contradictions between two settings, or between a setting and the mechanism."""
        queries, prior = self.queries, self.prior
        plain = all(isinstance(each, str | float | int) for each in self.mechanism.values())
        if not plain or mechanism.parameters() != dict(self.mechanism):
            yield "the parameters of the mechanism do not have the form in which a run writes them"
        if not 0 <= self.max_answers <= queries:
            yield f"max_answers and queries must be 0 <= {self.max_answers} <= {queries}"
        composed = isinstance(mechanism, ComposedMechanism)
        if self.analysis not in (("composition",) if composed else ("tight", "paper")):
            yield f"the analysis {quoted(self.analysis)} cannot be used with {mechanism.name}"
        for part in (self.target, self.sanitizer, self.rule):
            if part is not None and part.delta != self.delta:
                yield f"{type(part).__name__} has delta {part.delta:g}, the run {self.delta:g}"
        charged, weight = mechanism.prior_weight, 0 if prior is None else prior.weight
        if charged != weight or (prior is not None and not weight):
            yield f"a guess of the prior has {weight} votes, but the mechanism has {charged:g}"
        if prior is not None and not 0 <= prior.guesses <= queries:
            yield f"the prior has {prior.guesses} guesses for {queries} queries"
        if prior is not None and not _SHA256.fullmatch(prior.sha256):
            yield f"{quoted(prior.sha256)}, the hash of the prior, is not a SHA-256"
        alone = mechanism.votes_together or mechanism.teachers_per_record == 1
        if self.training is not None and not alone:
            yield "`teacher_epsilon` cannot be used if a record reached several teachers"
        refused = {
            mechanism.name.value: not mechanism.takes_few_votes,
            "`groups` or `teachers_per_record`": mechanism.teachers_per_record > 1,
            "`teacher_epsilon`": self.training is not None,
            "`analysis` paper": self.analysis == "paper",
        }
        for beside, there in refused.items():
            if self.voting is not None and there:  # There is no proof for the two together.
                yield f"`votes_per_teacher` cannot be used with {beside}"
        if mechanism.votes_together and any(one.teachers_per_record > 1 for one in self.groups):
            yield (
                "one record of the groups reached several teachers, but the mechanism only "
                "allows for one teacher"
            )
        if self.groups:
            k, moved = mechanism.teachers_per_record, max(g.votes_per_record for g in self.groups)
            if moved != k:
                yield (
                    f"one record of the groups changes up to {moved} votes, but the mechanism "
                    f"only allows for {k}"
                )
            if len({group.group for group in self.groups}) < len(self.groups):
                yield "two groups have the same name"
            votes = sum(group.total_weight for group in self.groups)
            if votes != mechanism.teachers:
                yield f"the groups have {votes} votes, but the mechanism has {mechanism.teachers}"

    @classmethod
    def of(cls, settings: Settings, **beside: Any) -> Self:
        """Return `settings` as an object of this class; `beside` replaces or adds fields."""
        return cls(
            **{each.name: getattr(settings, each.name) for each in fields(Settings)} | beside
        )

    @cached_property
    def aggregator(self) -> Mechanism:
        """Return the mechanism whose name and parameters are in `mechanism`."""
        return mechanism_from_parameters(self.mechanism)

    @property
    def charged(self) -> tuple[int, int]:
        """Return how many queries, and how many answers, the worst-case cost counts.

        For a session, the cost counts N queries and N answers, where N is `StopRule.asks`.
        """
        rule = self.rule
        return (self.queries, self.max_answers) if rule is None else (rule.asks, rule.asks)

    @property
    def few(self) -> Few:
        """Return the limit on the rows that one teacher votes on; None if there is no limit."""
        if self.voting is None:
            return None
        labels = 1 if self.label_set is None else self.label_set.count
        return FewVotes(labels * self.voting.votes, self.voting.assigned)

    @property
    def published(self) -> Settings:
        """Return the settings for publication: `sanitizer` is left out if it draws no ε.

        A `sanitizer` that draws no ε only matters for the ledger of the run, which is SECRET.
        """
        return Settings.of(self, sanitizer=next(iter(draws_of([self])), None))

    @property
    def protected(self) -> tuple[Any, ...]:
        """Return the settings that define neighbouring vote files.

        The costs of two runs can only be composed if the settings that define neighbouring vote
        files are the same in both runs.
        """
        mechanism = self.aggregator
        return (mechanism.teachers_per_record, mechanism.votes_together, self.groups)

    @property
    def tested(self) -> TargetPlan | None:
        """Return the target if it has a release test, which labels must pass; else None."""
        return None if self.target is None or not self.target.test_orders else self.target

    @property
    def claimed(self) -> bool:
        """Return whether the run has a guarantee.

        A run has no guarantee if its noise comes from a seed, if a setting was read from the votes,
        or if it drew a sanitized ε by the analysis of the paper (THEORY.md, section 14.2).
        """
        drawn = self.sanitizer is not None and self.sanitizer.publishes_draw
        return self.private and not self.read_off and not (drawn and self.analysis == "paper")

    def texts(self) -> dict[str, str]:
        """Return the settings for a file of labels, as texts by name.

        Values that are not texts become JSON. The parameters of the mechanism are among the other
        settings, each under its own name.
        """
        found = encoded(self.published)
        return {
            name: value if isinstance(value, str) else json.dumps(value)
            for name, value in (found.pop("mechanism") | found).items()
        }
