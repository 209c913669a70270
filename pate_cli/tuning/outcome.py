"""A setting with its release parameters and everything a search says about it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pate_cli.accounting.conversion import round_up
from pate_cli.release.plan import ReleasePlan
from pate_cli.tuning.electorate import Yield
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.grid import Setting
from pate_cli.words import ReleaseKind

__all__ = ["Outcome"]


@dataclass(frozen=True)
class Outcome:
    """One way to run `pate aggregate`, priced.

    Attributes:
        setting: T, σ1, σ2.
        queries: k1, the rows that are asked.
        max_answers: k2, the cap on answers; None for none.
        plan: how ε is released; None for `none`.
        mean, sd: of the sanitized ε over the release's noise, nats; None without a release.
        data_independent: ε for all votes of everything that is released, nats; infinite where it
            was not computed.
        labels: ε for all votes of the labels alone, nats, likewise.
        expected: what labels it is expected to give.
        exact: whether the numbers are those a run would use (False: a coarser lattice's).
    """

    setting: Setting
    queries: int
    max_answers: int | None
    plan: ReleasePlan | None
    mean: float | None
    sd: float | None
    data_independent: float
    labels: float
    expected: Yield
    exact: bool = True

    @property
    def release(self) -> ReleaseKind:
        """What is published."""
        return ReleaseKind.NONE if self.plan is None else self.plan.kind

    @property
    def sanitized(self) -> float | None:
        """Mean plus two standard deviations of the sanitized ε, rounded up as a report does."""
        if self.mean is None or self.sd is None:
            return None
        return _round_up(max(self.mean + 2.0 * self.sd, 0.0))

    @property
    def epsilon(self) -> float:
        """What would be published: the smaller of the sanitized and the data-independent ε."""
        public = _round_up(self.data_independent)
        return public if self.sanitized is None else min(self.sanitized, public)

    @property
    def always(self) -> bool:
        """Whether ε holds for every draw, not just for 97.7% of them."""
        return self.epsilon == _round_up(self.data_independent)

    def score(self, goal: Goal) -> float:
        """How well it serves a goal; −∞ where it misses it."""
        return float(
            goal.score(
                epsilon=np.array(self.epsilon),
                answers=np.array(self.expected.answers),
                agreeing=np.array(self.expected.agreeing),
            )
        )


def _round_up(epsilon: float) -> float:
    return round_up(epsilon) if math.isfinite(epsilon) else math.inf
