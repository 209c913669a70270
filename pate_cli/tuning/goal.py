"""What a search is after."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pate_cli.arrays import Floats
from pate_cli.checks import check_delta, check_positive
from pate_cli.errors import ParameterError
from pate_cli.words import Objective, ReleaseKind

__all__ = ["MIN_AGREEMENT", "Goal"]


MIN_AGREEMENT = 0.9
"""Labels that noise flips more often are not what "an answer" is meant to be."""


@dataclass(frozen=True)
class Goal:
    """Target, constraints and what ε means.

    With only a target, the most expected answers (or answers that agree with the plurality) whose
    ε stays at or below it. With only a number of answers, the least ε. With both, the best
    agreement. With neither, no goal: only the Pareto front is of interest.

    Attributes:
        delta: δ of the guarantee, in (0, 1).
        release: what is published. `upper` and `unbiased`: ε is the mean plus two standard
            deviations of the published value over the release's own noise, or the data-independent
            ε of everything released where that is smaller. `none`: the data-independent ε.
        target_epsilon: ε must not exceed it, > 0, nats.
        answers: expected answers must reach it, > 0.
        objective: what is maximised when there is only a target.
        min_agreement: least expected share of answered labels that equal the plurality, in
            [0, 1].
    """

    delta: float = 1e-5
    release: ReleaseKind = ReleaseKind.UPPER
    target_epsilon: float | None = None
    answers: float | None = None
    objective: Objective = Objective.ANSWERS
    min_agreement: float = MIN_AGREEMENT

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if self.target_epsilon is not None:
            check_positive("target_epsilon", self.target_epsilon)
        if self.answers is not None:
            check_positive("answers", self.answers)
        if not 0.0 <= self.min_agreement <= 1.0:
            raise ParameterError(f"min_agreement must be between 0 and 1, got {self.min_agreement}")

    @property
    def open(self) -> bool:
        """Whether there is neither a target nor a number of answers."""
        return self.target_epsilon is None and self.answers is None

    @property
    def least_answers(self) -> float:
        """Expected answers that a setting must give at least; one when only ε is asked for."""
        return 1.0 if self.answers is None else self.answers

    def score(self, *, epsilon: Floats, answers: Floats, agreeing: Floats) -> Floats:
        """Larger is better; −∞ where a constraint fails. Arrays of one shape."""
        share = agreeing / np.maximum(answers, 1e-300)
        if self.target_epsilon is None:
            value = -epsilon
        elif self.answers is not None:
            value = share
        else:
            value = agreeing if self.objective == Objective.AGREEMENT else answers
        allowed = share >= self.min_agreement
        if self.target_epsilon is not None:
            allowed &= epsilon <= self.target_epsilon
        if not self.open:
            allowed &= answers >= self.least_answers
        return np.where(allowed & np.isfinite(epsilon), value, -np.inf)
