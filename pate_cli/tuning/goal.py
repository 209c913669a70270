"""What a search is after."""

from __future__ import annotations

import math

from pate_cli.core.checks import check_delta, check_positive, check_scale
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError
from pate_cli.core.words import DELTA, MIN_AGREEMENT, Bound, Objective, ReleaseKind
from pate_cli.planning.sample import Yield

# How constraints that are missed weigh against a factor e in the value.
_AGREEMENT_WEIGHT, _FACTOR_WEIGHT = 10.0, 3.0


@dataclass(frozen=True)
class Goal:
    """Target, constraints and what ε means.

    With only a target, the most expected answers (or answers that agree with the plurality) whose
    ε stays at or below it. With only a number of answers, the least ε. With both, the best
    agreement. With neither, no goal: only the Pareto front is of interest.

    Attributes:
        delta: δ of the guarantee, in (0, 1).
        release: what is published. `upper`: ε is the mean plus two standard deviations of the
            published value over the release's own noise, or the data-independent ε of everything
            released where that is smaller. `none`: the data-independent ε.
            `target`: a target that is tested; answers count by the chance that they pass, and
            without a target ε is the least that passes with a chance of 97.7%.
        target_epsilon: ε must not exceed it, > 0, nats.
        answers: expected answers must number so many, > 0.
        bound: how a tested target bounds what votes cost, as in `pate aggregate`.
        objective: what is maximised when there is only a target.
        min_agreement: least expected share of answered labels that equal the plurality, in
            [0, 1].
    """

    delta: float = DELTA
    release: ReleaseKind = ReleaseKind.UPPER
    bound: Bound = Bound.AUTO
    target_epsilon: float | None = None
    answers: float | None = None
    objective: Objective = Objective.ANSWERS
    min_agreement: float = MIN_AGREEMENT

    def __post_init__(self) -> None:
        check_delta(self.delta)
        if self.target_epsilon is not None:
            check_scale("target_epsilon", self.target_epsilon)
        if self.answers is not None:
            check_positive("answers", self.answers)
        if not 0.0 <= self.min_agreement <= 1.0:
            raise ParameterError(f"min_agreement must be between 0 and 1, got {self.min_agreement}")

    @property
    def open(self) -> bool:
        """Whether there is neither a target nor a number of answers."""
        return self.target_epsilon is None and self.answers is None

    @property
    def fills_budget(self) -> bool:
        """Whether as many rows are asked as the target allows."""
        return self.target_epsilon is not None and self.answers is None

    @property
    def least_answers(self) -> float:
        """Expected answers that a setting must give at least; one when only ε is asked for."""
        return 1.0 if self.answers is None else self.answers

    def missed_by(self, epsilon: float, expected: Yield) -> float:
        """How far the constraints are from being met; 0 where they are met."""
        if not math.isfinite(epsilon):
            return math.inf
        missed = _AGREEMENT_WEIGHT * max(self.min_agreement - expected.agreement, 0.0)
        if self.target_epsilon is not None:
            factor = max(epsilon, 1e-300) / self.target_epsilon
            missed += _FACTOR_WEIGHT * max(math.log(factor), 0.0)
        if not self.open:
            factor = self.least_answers / max(expected.answers, 1e-300)
            missed += _FACTOR_WEIGHT * max(math.log(factor), 0.0)
        return missed

    def value(self, epsilon: float, expected: Yield) -> float:
        """What is maximised among settings that meet the constraints."""
        if self.target_epsilon is None:
            return -epsilon
        if self.answers is not None:
            return expected.agreement
        return expected.agreeing if self.objective is Objective.AGREEMENT else expected.answers

    def promise(self, epsilon: float, expected: Yield) -> float:
        """What a climb goes by: the value in logarithms, less what the constraints miss.

        The best settings often lie where a constraint just holds, and the way along that ridge
        leads over settings that miss it by a little.
        """
        value = abs(self.value(epsilon, expected))
        gain = math.log(max(value, 1e-300))
        sign = -1.0 if self.target_epsilon is None else 1.0
        return sign * gain - self.missed_by(epsilon, expected)

    def rank(self, epsilon: float, expected: Yield) -> tuple[float, float, float, float]:
        """Larger is better: constraints first, then the value, then agreement and a smaller ε.

        Of values that are as good as the same, such as all queries answered, agreement decides.
        """
        value = self.value(epsilon, expected)
        agreement = 0.0
        if self.fills_budget:
            value, agreement = float(f"{value:.3g}"), expected.agreement
        return -self.missed_by(epsilon, expected), value, agreement, -epsilon
