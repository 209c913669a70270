"""A goal of a search, the settings that are found for it, and how a kind of release serves it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.core.checks import check_delta, check_positive, check_scale
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.words import DELTA, MIN_AGREEMENT, Bound, ReleaseKind
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.forecast import Forecast, expected_by_rows
from pate_cli.planning.search import Candidate
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel

# While a search is coarse: how many rows of a file are looked at, evenly spaced, and how much more
# agreement is asked for.
_COARSE, _LENIENCE = 10_000, 1e-4
# What agreement counts: little where it is enough, so that of settings that give as much those win
# that agree more often; else so much that it does not pay to miss the floor, yet the way to the
# best along it is open.
_TIE, _FLOOR = 1e-3, 20.0
DRAWN: Final = ("order", "beta", "sigma_release")
"""Parameters of a sanitized release, as `aggregate` has them."""


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
        """Return how well settings serve, [...]: larger is better, in logarithms.

        Args:
            epsilon: what the labels cost, nats.
            answers: how many are expected.
            agreement: which share of them equals the plurality.
        """
        served = np.log(answers + 1e-3) if self.answers is None else -np.log(epsilon)
        return served + served_by(agreement, self.min_agreement)

    def met_by(self, found: Found) -> bool:
        """Return whether settings keep within ε, give the answers, and agree as often as asked."""
        forecast, wanted = found.forecast, 0.0 if self.answers is None else self.answers
        return (
            float(forecast.expected_answers[0]) >= max(wanted * (1.0 - 1e-9), 1e-3)
            and float(forecast.agreement[0]) >= self.min_agreement
            and (self.epsilon is None or forecast.epsilon <= self.epsilon)
        )


def served_by(agreement: Floats, floor: float) -> Floats:
    """Return what agreement adds to merit, in logarithms, where a floor is asked for."""
    return _TIE * agreement - _FLOOR * np.maximum(floor - agreement, 0.0)


@dataclass(frozen=True, eq=False)
class Found:
    """Settings at the costs that a run of them is charged. SECRET if the votes are.

    Attributes:
        goal: what they are for.
        forecast: what the run may be expected to give.
        max_answers: a public cap on answers; None without one.
        drawn: λ, β and σ_SS of a sanitized release; None where nothing is drawn.
        target: the target that is stated; None where there is none.
    """

    goal: Goal
    forecast: Forecast
    max_answers: int | None = None
    drawn: ReleasePlan | None = None
    target: TargetPlan | None = None

    @property
    def merit(self) -> float:
        """Return how well the settings serve the goal."""
        told = self.forecast
        epsilon = np.array([told.epsilon])
        return float(self.goal.merit(epsilon, told.expected_answers, told.agreement)[0])

    @property
    def rank(self) -> tuple[bool, float]:
        """Return what is larger for better settings; those that meet the goal come first."""
        return self.goal.met_by(self), self.merit

    def to_dict(self) -> dict[str, Any]:
        """Return settings and what they are expected to give, in plain numbers."""
        told, settings, drawn, target = self.forecast, self.settings, self.drawn, self.target
        release = (None,) * 3 if drawn is None else (drawn.order, drawn.beta, drawn.sigma)
        return {
            "mechanism": settings.mechanism_name.value,
            **asdict(settings),
            "queries": told.rows,
            "max_answers": self.max_answers,
            "release": self.goal.release.value,
            "epsilon": told.epsilon if target is None else target.epsilon,
            "expected_answers": float(told.expected_answers[0]),
            "agreement": float(told.agreement[0]),
            "pass_probability": float(told.pass_probability[0]),
            "refusal_epsilon": None if target is None else target.refusal_epsilon,
            **dict(zip(DRAWN, release, strict=True)),
            "data_independent_epsilon": told.worst_case,
        }

    @property
    def settings(self) -> Tuning:
        """Return threshold, noise and weight of the prior."""
        return self.forecast.settings


class Pricing(ABC):
    """How settings serve one goal on a file: quickly for many, and as a run has it for a few.

    SECRET if the votes are.

    Attributes:
        votes: all rows of the file, without a prior's votes.
        few: rows that are looked at while a search is coarse.
        available: how many rows these stand for.
        goal: what is sought.
        sought: the goal for coarse looks, which asks for more agreement where they take it too
            large.
    """

    def __init__(self, votes: VoteModel, goal: Goal) -> None:
        """Take the votes and the goal; nothing is looked at yet."""
        self.votes, self.few, self.available = votes, votes.thinned(_COARSE), votes.rows
        self.goal = self.sought = goal

    @abstractmethod
    def look(self, settings: Sequence[Tuning], near: int | None) -> list[Candidate]:
        """Return candidates for settings, at quick costs.

        Args:
            settings: to look at.
            near: about the best number of rows, if it is known.
        """

    @abstractmethod
    def price(self, candidate: Candidate, *, last: bool) -> Found | None:
        """Return a candidate at the costs of a run; None where no number of rows serves the goal.

        Args:
            candidate: settings that looked good.
            last: whether to take more care, because nothing follows.
        """

    def learn(self, best: Found) -> None:
        """Look closer at what matters for the best settings so far."""
        told, few = best.forecast, self.few.with_prior_weight(best.settings.prior_weight)
        rows = np.array([told.rows])
        answers, agreeing = expected_by_rows(few, best.settings, rows, self.available)
        taken = float(agreeing[0, 0] / max(answers[0, 0], 1e-300))
        floor = self.goal.min_agreement + taken - float(told.agreement[0]) + _LENIENCE
        self.sought = replace(self.goal, min_agreement=min(max(floor, 0.0), 1.0))
