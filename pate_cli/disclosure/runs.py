"""Runs as a record and reports tell of them: what each was told, how it ended, and what it costs.

All of it is public and holds nothing of the votes. What a run costs follows from the rest; it is
stated all the same, for whoever reads a record, and `verify` computes it again.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from pate_cli.core.checks import check_nonnegative
from pate_cli.core.errors import LedgerError, shortened
from pate_cli.disclosure.budget import Budget
from pate_cli.disclosure.cost import Cost, Pair
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.ledger import Round
from pate_cli.disclosure.plan import Draw
from pate_cli.disclosure.settings import Settings
from pate_cli.files.document import SPARING


class RunKind(enum.StrEnum):
    """How a run is charged: labels by their worst case, as a tested target, by a composition, or by
    the rule of a session; a draw from a ledger; what others state.
    """

    WORST_CASE = "worst-case"
    TARGET = "target"
    COMPOSITION = "composition"
    SESSION = "session"
    RELEASE = "release"
    EXTERNAL = "external"


class Outcome(enum.StrEnum):
    """How a run ended; one that never ended counts in full."""

    PENDING = "pending"
    LABELLED = "labelled"
    REFUSED = "refused"
    RELEASED = "released"
    STATED = "stated"


@dataclass(frozen=True, kw_only=True)
class Run:
    """One run, or one cost that others stated; `Run.of` says what it costs.

    Attributes:
        id: of a run as its report has it, random; of an external part its digest.
        outcome: how it ended.
        time: when it began, UTC; None where nobody noted it.
        epsilon, delta: what it costs by itself in full whatever the votes, nats.
        settings: of labels, what the run was told.
        answers: labels released; None where there are none, or not yet.
        round: name of the round, by which a ledger of it is known; not in reports.
        session: digest of what it was opened with, where queries come one by one; not in reports.
        draw: of a release from ledgers, the sanitized value that it published.
        drawn_from: names of the rounds that it was drawn from; not in reports.
        external: of an external part, all that is stated.
        votes: what the holder calls the votes; not in reports.
        budget: the one that admitted it.
        promised: False where it promises nothing for a reason that its settings do not tell: a
            draw by a seed, or an input that does not verify.
        total_epsilon, total_delta: of all runs up to this one, when it was noted.
    """

    id: str
    outcome: Outcome
    time: str | None
    epsilon: float
    delta: float
    settings: Settings | None = field(default=None, metadata=SPARING)
    answers: int | None = field(default=None, metadata=SPARING)
    round: str = field(default="", metadata=SPARING)
    session: str | None = field(default=None, metadata=SPARING)
    draw: Draw | None = field(default=None, metadata=SPARING)
    drawn_from: tuple[str, ...] = field(default=(), metadata=SPARING)
    external: Stated | None = field(default=None, metadata=SPARING)
    votes: str | None = field(default=None, metadata=SPARING)
    budget: Budget | None = field(default=None, metadata=SPARING)
    promised: bool = field(default=True, metadata=SPARING)
    total_epsilon: float | None = field(default=None, metadata=SPARING)
    total_delta: float | None = field(default=None, metadata=SPARING)

    def __post_init__(self) -> None:
        check_nonnegative("epsilon", self.epsilon)
        if not 0.0 <= self.delta < 1.0:
            raise LedgerError(f"run {shortened(self.id)}: delta {self.delta:g} is not below 1")
        told = (self.settings, self.draw, self.external)
        if sum(part is not None for part in told) != 1:
            raise LedgerError(f"run {shortened(self.id)} does not say what it cost")

    @classmethod
    def of(cls, **told: Any) -> Run:
        """Return a run with what it costs in full, which follows from all else.

        Args:
            **told: the fields of a run without `epsilon`; `delta` only of a draw, or of a curve
                that others state, which is converted there.

        Raises:
            UnreachableError: a δ below what a composition amounts to.
        """
        settings: Settings | None = told.get("settings")
        fresh: dict[str, Any] = {"outcome": Outcome.PENDING, "epsilon": 0.0, "delta": 0.0}
        run = cls(**fresh | told)
        return (run if settings is None else replace(run, settings=settings.published)).priced

    @property
    def priced(self) -> Run:
        """This run with the (ε, δ) that its cost comes to."""
        stated, cost = self.external, self.cost
        if stated is not None and not cost.pairs:  # what others state is taken to all its digits
            return replace(self, epsilon=cost.of_curves.epsilon)
        return replace(self, epsilon=cost.own.epsilon, delta=cost.own.delta)

    @property
    def kind(self) -> RunKind:
        """How it is charged."""
        settings = self.settings
        if settings is None:
            return RunKind.EXTERNAL if self.draw is None else RunKind.RELEASE
        if settings.tested is not None:
            return RunKind.TARGET
        if settings.rule is not None:
            return RunKind.SESSION
        return RunKind.COMPOSITION if self.cost.pairs else RunKind.WORST_CASE

    @cached_property
    def cost(self) -> Cost:
        """Everything that the run spends; a tested target in full and as it came out."""
        settings, stated = self.settings, self.external
        if stated is not None:
            if stated.curve is None:
                return Cost(pairs=(Pair(*stated.pair, "stated"),))
            return Cost(self.delta, stated=(stated,))
        if settings is None:
            return Cost(self.delta, draws=() if self.draw is None else (self.draw,))
        cost = Cost.of(settings)
        if settings.rule is not None:  # a session is proved as a whole
            return Cost(pairs=(Pair(cost.own.epsilon, cost.own.delta, "session"),))
        if settings.tested is not None and self.outcome is Outcome.REFUSED:
            (pair,) = cost.pairs
            return Cost(pairs=(replace(pair, came=settings.tested.refusal_epsilon),))
        return cost

    @property
    def counted(self) -> float:
        """ε that it counts for by itself, nats: a refusal what that costs."""
        tested = None if self.settings is None else self.settings.tested
        refused = tested is not None and self.outcome is Outcome.REFUSED
        return tested.refusal_epsilon if tested is not None and refused else self.epsilon

    @property
    def draws(self) -> tuple[Draw, ...]:
        """The sanitized value that it published, if there is one."""
        if self.settings is None or self.settings.sanitizer is None:
            return () if self.draw is None else (self.draw,)
        return self.settings.sanitizer.draws

    @property
    def claimed(self) -> bool:
        """False where nothing is promised: noise from a seed, facts read off the votes."""
        return self.promised and (self.settings is None or self.settings.claimed)

    @property
    def names(self) -> tuple[str, ...]:
        """By which it is known: its own, and of rows that of their round."""
        return (self.id, self.round) if self.round else (self.id,)

    @property
    def done(self) -> Round | None:
        """Its rows with how many were answered; None where it has none."""
        if self.settings is None:
            return None
        return Round.of(self.settings, id=self.round or self.id, answers=self.answers or 0)

    @property
    def public(self) -> Run:
        """The run as reports have it: without names that its holder gave, or that ledgers know."""
        return replace(self, round="", session=None, drawn_from=(), votes=None)
