"""A goal of a search, how settings serve it, and the settings that are found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final, Protocol

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_delta, check_positive, check_scale
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.words import DELTA, MIN_AGREEMENT, Bound, ReleaseKind
from pate_cli.disclosure.plan import ReleasePlan
from pate_cli.planning.forecast import Forecast, expected_by_rows
from pate_cli.planning.search import Candidate
from pate_cli.planning.tested_target import served_by
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel

MOST_ROWS: Final = 3000
"""So many rows of a file, evenly spaced, are looked at while a search is coarse."""

# So much more agreement is asked for then.
_LENIENCE = 1e-4


@dataclass(frozen=True)
class Goal:
    """The most expected answers under an ε, or the least ε for so many expected answers.

    Attributes:
        release: how the ε of the labels comes to be publishable.
        epsilon: what the ε may be at most, > 0, nats; None where the least one is sought.
        answers: how many expected answers are wanted, > 0; None where the most are sought.
        min_agreement: least expected share of answers that equal the plurality of the teachers,
            in [0, 1].
        delta: δ in (0, 1).
        bound: how a tested run bounds what its votes cost.
    """

    release: ReleaseKind
    epsilon: float | None = None
    answers: float | None = None
    min_agreement: float = MIN_AGREEMENT
    delta: float = DELTA
    bound: Bound = Bound.AUTO

    def __post_init__(self) -> None:
        if (self.epsilon is None) is (self.answers is None):
            raise UsageError("give one of `target_epsilon` and `answers`")
        if self.epsilon is not None:
            check_scale("`target_epsilon`", self.epsilon)
        if self.answers is not None:
            check_positive("`answers`", self.answers)
        if not 0.0 <= self.min_agreement <= 1.0:
            raise ParameterError(
                f"`min_agreement` must be between 0 and 1, got {self.min_agreement}"
            )
        check_delta(self.delta)
        if self.bound is not Bound.AUTO and self.release is not ReleaseKind.TARGET:
            raise UsageError("`bound` goes with `release` target")

    def merit(self, epsilon: Floats, answers: Floats, agreement: Floats) -> Floats:
        """How well settings serve, [...]: larger is better, in logarithms.

        Args:
            epsilon: what the labels cost, nats.
            answers: how many are expected.
            agreement: which share of them equals the plurality.
        """
        served = np.log(answers + 1e-3) if self.answers is None else -np.log(epsilon)
        return served + served_by(agreement, self.min_agreement)

    def stricter(self, found: Found, votes: VoteModel, *, available: int) -> Goal:
        """The goal for coarse looks, which asks for more where they take agreement too large.

        Args:
            found: settings whose agreement is known.
            votes: what is looked at.
            available: how many rows these stand for.
        """
        forecast, settings = found.forecast, found.forecast.settings
        votes = votes.with_prior_weight(settings.prior_weight)
        rows = np.array([forecast.rows])
        answers, agreeing = expected_by_rows(votes, settings, rows, available)
        looked = float(agreeing[0, 0] / max(answers[0, 0], 1e-300))
        floor = self.min_agreement + looked - float(forecast.agreement[0])
        return self.with_floor(floor + _LENIENCE)

    def with_floor(self, min_agreement: float) -> Goal:
        """The goal with another floor on agreement, kept in [0, 1]."""
        return replace(self, min_agreement=min(max(min_agreement, 0.0), 1.0))

    def met_by(self, found: Found) -> bool:
        """Whether settings keep within ε, or give the answers, and agree as often as asked."""
        forecast, wanted = found.forecast, 0.0 if self.answers is None else self.answers
        return (
            float(forecast.expected_answers[0]) >= max(wanted * (1.0 - 1e-9), 1e-3)
            and float(forecast.agreement[0]) >= self.min_agreement
            and (self.epsilon is None or forecast.epsilon <= self.epsilon)
        )


@dataclass(frozen=True, eq=False)
class Found:
    """Settings at the costs that a run of them is charged. SECRET if the votes are.

    Attributes:
        forecast: what the run may be expected to give.
        merit: how well that serves the goal.
        kind: how the ε comes to be publishable.
        max_answers: a public cap on answers; None without one.
        release: λ, β and σ_SS of a sanitized release; None where nothing is drawn.
    """

    forecast: Forecast
    merit: float
    kind: ReleaseKind
    max_answers: int | None = None
    release: ReleasePlan | None = None

    @classmethod
    def of(
        cls,
        forecast: Forecast,
        goal: Goal,
        *,
        max_answers: int | None = None,
        release: ReleasePlan | None = None,
    ) -> Found:
        """Return the settings of a forecast, by how well it serves a goal."""
        epsilon = np.array([forecast.epsilon])
        merit = goal.merit(epsilon, forecast.expected_answers, forecast.agreement)
        return cls(forecast, float(merit[0]), goal.release, max_answers, release)


class Pricing(Protocol):
    """How settings serve one goal: quickly for many, and as a run would have it for a few."""

    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Candidates for settings, at quick costs."""
        ...

    def price(self, candidate: Candidate, *, last: bool) -> Found | None:
        """One candidate at the costs of a run; the last one is priced with more care.

        None where no number of rows serves the goal at all.
        """
        ...

    def learn(self, best: Found) -> None:
        """Look closer at what matters for the best so far."""
        ...
