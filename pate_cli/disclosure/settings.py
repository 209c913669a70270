"""Settings of a run: what it was told, all of it public and fixed before the first vote.

They are the hinge between a run and what is said of it. `Cost.of(settings)` prices a run,
`Run.of(settings)` enters it in a record, and a report states them. A file of labels carries them
where its format has room, and `verify` compares the two. Rounds of a ledger, runs of a record and
rounds of a report contain the part of them that says what was asked.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self

from pate_cli.accounting.stopping import Beyond
from pate_cli.core.checks import check_delta, check_positive, check_whole
from pate_cli.core.codec import SPARING, encoded
from pate_cli.core.errors import ParameterError
from pate_cli.core.label_set import LabelSet
from pate_cli.core.words import PublicFact
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.disclosure.target import TargetPlan
from pate_cli.votes.facts import Group, PriorFacts


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
class RowsAsked:
    """Rows that are put to a mechanism.

    Attributes:
        mechanism: its public parameters, its name among them.
        queries: k1, how many rows are asked; of a session so far.
        max_answers: k2, the public cap on answers (k1 where there is none).
        label_set: the labels of a query, where it has several; the rows, caps and answers are then
            of pairs of a query and a label.
        prior: the public prior that votes, too; None where it has no vote.
        rule: of a session, whose rows come one by one, when asking stops.
    """

    mechanism: Mapping[str, Any]
    queries: int
    max_answers: int
    label_set: LabelSet | None = field(default=None, metadata=SPARING)
    prior: PriorFacts | None = field(default=None, metadata=SPARING)
    rule: StopRule | None = field(default=None, metadata=SPARING)

    @classmethod
    def of(cls, asked: RowsAsked, **beside: Any) -> Self:
        """Return these rows as this class has them, with the fields that it has beside them."""
        return cls(**{each.name: getattr(asked, each.name) for each in fields(RowsAsked)}, **beside)


@dataclass(frozen=True, kw_only=True)
class RowsAnswered(RowsAsked):
    """Rows that were asked, as a report has them.

    Attributes:
        answers: how many labels were released.
    """

    answers: int


@dataclass(frozen=True, kw_only=True)
class Settings(RowsAsked):
    """Settings of one run on votes: all that it is told, and all that its price follows from.

    Attributes:
        private: False where the noise came from a seed.
        delta: δ of the run.
        analysis: `tight`, `paper` or `composition`.
        target: the (ε, δ) stated in advance, if there is one.
        sanitizer: at which order and how smooth costs are kept of the votes, and whether an ε is
            drawn of them; None where nothing is kept.
        read_off: facts that should be public and were read off the votes.
        groups: of the teachers, where they count differently.
    """

    private: bool
    delta: float
    analysis: str = "tight"
    target: TargetPlan | None = None
    sanitizer: ReleasePlan | None = None
    read_off: tuple[PublicFact, ...] = ()
    groups: tuple[Group, ...] = ()

    def __post_init__(self) -> None:
        for name, part in (("target", self.target), ("plan", self.sanitizer)):
            if part is not None and part.delta != self.delta:
                raise ParameterError(f"a {name} at delta {part.delta:g} for {self.delta:g}")

    @property
    def tested(self) -> TargetPlan | None:
        """The target, where labels leave only if they pass its test; None without a test."""
        return None if self.target is None or not self.target.tested else self.target

    @property
    def claimed(self) -> bool:
        """Whether anything may be claimed: the noise was private and nothing was read off votes."""
        return self.private and not self.read_off

    def texts(self) -> dict[str, str]:
        """Return the settings as a file of labels carries them, text by name."""
        found = {name: str(value) for name, value in self.mechanism.items()}
        found |= {
            "queries": str(self.queries),
            "max_answers": str(self.max_answers),
            "private": str(self.private).lower(),
            "delta": repr(float(self.delta)),
            "analysis": self.analysis,
        }
        target, drawn = self.target, self.sanitizer
        if target is not None:
            found["target_epsilon"] = repr(float(target.epsilon))
            if self.tested is not None:
                found["refusal_epsilon"] = repr(float(target.refusal_epsilon))
                found["bound"] = target.bound.value
        if drawn is not None and drawn.publishes_draw:
            numbers = {"order": drawn.order, "beta": drawn.beta, "sigma": drawn.sigma}
            found["release"] = json.dumps({"release": drawn.kind.value, **numbers})
        if self.read_off:
            found["read_off"] = " ".join(self.read_off)
        if self.groups:
            found["groups"] = json.dumps(encoded(self.groups))
        if self.label_set is not None:
            found |= self.label_set.texts()
        if self.prior is not None:
            found |= self.prior.texts()
        if self.rule is not None:
            found["rule"] = json.dumps(encoded(self.rule))
        return found
