"""The histograms a search looks at, and what any setting would get out of a prefix of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from pate_cli.arrays import Counts, Floats
from pate_cli.errors import ParameterError, VoteError
from pate_cli.mechanisms import ConfidentGNMax
from pate_cli.mechanisms.base import plurality
from pate_cli.tuning.grid import Setting

__all__ = ["Electorate", "Yield", "capped_mean"]


@dataclass(frozen=True)
class Yield:
    """What labels a setting is expected to give; expectations over its noise.

    Attributes:
        answers: expected number of answers.
        agreeing: expected answers equal to the plurality.
        correct: expected answers that are the plurality where that is the truth, which is a lower
            bound on the right ones (noise may also hit the truth against the plurality); None
            without truth.
    """

    answers: float
    agreeing: float
    correct: float | None

    @property
    def agreement(self) -> float:
        """Expected share of the answers that equal the plurality."""
        return self.agreeing / self.answers if self.answers > 0.0 else 0.0

    @property
    def accuracy(self) -> float | None:
        """Share of the answers that are right, at least; None without truth."""
        if self.correct is None:
            return None
        return self.correct / self.answers if self.answers > 0.0 else 0.0

    def capped(self, answers: float) -> Yield:
        """The same mix of labels, stopped so that fewer answers are expected."""
        share = answers / self.answers if self.answers > 0.0 else 0.0
        correct = None if self.correct is None else self.correct * share
        return Yield(answers, self.agreeing * share, correct)


@dataclass(frozen=True, eq=False)
class Electorate:
    """Votes on queries, real or made up. SECRET if they are real and private.

    Attributes:
        counts: histograms [queries, classes], each of `teachers` votes.
        teachers: τ.
        teachers_per_record: how many votes of a query a neighbour may change.
        truth: right classes [queries], −1 where unknown, which counts as wrong; or None.
    """

    counts: Counts
    teachers: int
    teachers_per_record: int = 1
    truth: NDArray[np.int64] | None = None
    _scores: dict[float, Floats] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.counts.ndim != 2 or len(self.counts) == 0:
            raise ParameterError(
                f"histograms must be [queries, classes], got shape {self.counts.shape}"
            )
        if self.truth is not None and self.truth.shape != (len(self.counts),):
            raise VoteError(
                f"the truth has {self.truth.size} labels for {len(self.counts)} queries"
            )

    @property
    def queries(self) -> int:
        """Number of rows."""
        return len(self.counts)

    @property
    def classes(self) -> int:
        """m."""
        return self.counts.shape[1]

    @cached_property
    def plurality(self) -> Counts:
        """max_j n_j, [queries]."""
        return plurality(self.counts)

    @cached_property
    def right(self) -> NDArray[np.bool_] | None:
        """Whether the plurality is the truth, [queries]; None without truth."""
        return None if self.truth is None else np.argmax(self.counts, axis=1) == self.truth

    def sample(self, most: int) -> tuple[Electorate, float]:
        """At most so many rows, evenly spaced, and how many rows each stands for."""
        if self.queries <= most:
            return self, 1.0
        rows = np.linspace(0, self.queries - 1, most).round().astype(np.int64)
        smaller = Electorate(self.counts[rows], self.teachers, self.teachers_per_record)
        return smaller, self.queries / most

    def mechanism(self, setting: Setting) -> ConfidentGNMax:
        """The mechanism for these votes."""
        return setting.mechanism(
            teachers=self.teachers,
            classes=self.classes,
            teachers_per_record=self.teachers_per_record,
        )

    def scores(self, setting: Setting) -> Floats:
        """z per query, [queries]; kept, since it depends on σ2 alone."""
        known = self._scores.get(setting.sigma2)
        if known is None:
            known = self.mechanism(setting).argmax.score(self.counts)[:, 0]
            self._scores[setting.sigma2] = known
        return known

    def answer_chance(self, setting: Setting) -> Floats:
        """Pr[answer] per query, [queries]."""
        return np.asarray(ndtr((self.plurality - setting.threshold) / setting.sigma1))

    def yields(self, setting: Setting, queries: int) -> Yield:
        """What the first rows are expected to give."""
        chance = self.answer_chance(setting)[:queries]
        agreeing = chance * ndtr(-self.scores(setting)[:queries])
        correct = None if self.right is None else float(agreeing @ self.right[:queries])
        return Yield(float(chance.sum()), float(agreeing.sum()), correct)

    def prefix_for(self, setting: Setting, answers: float) -> int | None:
        """The fewest first rows with so many expected answers; None if all rows give fewer."""
        total = np.cumsum(self.answer_chance(setting))
        found = int(np.searchsorted(total, answers))
        return None if found == self.queries else found + 1


def capped_mean(mean: Floats, sd: Floats, cap: Floats) -> Floats:
    """E[min(A, cap)] for a number of answers A of this mean and standard deviation.

    By the normal approximation to a sum of independent coins, at most the mean and the cap.
    """
    width = np.maximum(sd, 1e-9)
    x = (cap - mean) / width
    density = np.exp(-0.5 * np.minimum(x * x, 1400.0)) / np.sqrt(2.0 * np.pi)
    excess = width * np.maximum(density - x * ndtr(-x), 0.0)
    return np.minimum(np.maximum(mean - excess, 0.0), cap)
