"""The histograms a search looks at, and what labels any setting would get out of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from pate_cli.core.arrays import Floats, Histograms, winners
from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.disclosure.rule import REFERENCE_SEED, reference_ensemble
from pate_cli.mechanisms.base import plurality
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.synthetic import SyntheticEnsemble
from pate_cli.tuning.settings import Setting


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

    def scaled(self, factor: float) -> Yield:
        """The same mix of labels, so many times as many of them."""
        correct = None if self.correct is None else self.correct * factor
        return Yield(self.answers * factor, self.agreeing * factor, correct)


@dataclass(frozen=True, eq=False)
class VoteSample:
    """Votes on queries, real or made up. SECRET if they are real and private.

    Attributes:
        counts: histograms [queries, classes], each of `teachers` votes.
        teachers: τ.
        teachers_per_record: how many votes of a query a neighbour may change.
        truth: right classes [queries], −1 where unknown, which counts as wrong; or None.
    """

    counts: Histograms
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
    def plurality(self) -> Floats:
        """max_j n_j, [queries] (votes)."""
        return plurality(self.counts).astype(np.float64)

    @cached_property
    def _right(self) -> NDArray[np.bool_] | None:
        return None if self.truth is None else winners(self.counts) == self.truth

    def thinned(self, most: int) -> VoteSample:
        """At most so many rows, evenly spaced, without the truth."""
        if self.queries <= most:
            return self
        rows = np.linspace(0, self.queries - 1, most).round().astype(np.int64)
        return VoteSample(self.counts[rows], self.teachers, self.teachers_per_record)

    def mechanism(self, setting: Setting) -> ConfidentGNMax | GNMax:
        """The mechanism for these votes."""
        argmax = self.argmax(setting)
        return argmax if setting.threshold is None else setting.tested(argmax)

    def confident(self, setting: Setting) -> ConfidentGNMax:
        """That of a setting with a test; TypeError without one."""
        return setting.tested(self.argmax(setting))

    def argmax(self, setting: Setting) -> GNMax:
        """The argmax of a setting, after a test or without one."""
        return GNMax(
            self.teachers,
            self.classes,
            sigma2=setting.sigma2,
            teachers_per_record=self.teachers_per_record,
        )

    def answer_chance(self, setting: Setting) -> Floats:
        """Pr[answer] per query, [queries]."""
        if setting.threshold is None or setting.sigma1 is None:
            return np.ones(self.queries)
        return np.asarray(ndtr((self.plurality - setting.threshold) / setting.sigma1))

    def scores(self, setting: Setting) -> Floats:
        """z of the argmax per query, [queries]; kept, since it depends on σ2 alone."""
        known = self._scores.get(setting.sigma2)
        if known is None:
            known = self.argmax(setting).scores(self.counts)
            self._scores[setting.sigma2] = known
        return known

    def score(self, setting: Setting) -> Floats:
        """(v, z) of a setting's mechanism per query, [queries, 2]; z alone without a test."""
        if setting.threshold is None:
            return self.scores(setting)[:, None]
        return np.column_stack([self.plurality, self.scores(setting)])

    def yields(self, setting: Setting, queries: int) -> Yield:
        """What the first rows are expected to give."""
        chance = self.answer_chance(setting)[:queries]
        agreeing = chance * ndtr(-self.scores(setting)[:queries])
        correct = None if self._right is None else float(agreeing @ self._right[:queries])
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


_WHOLE = {"teachers", "classes", "queries", "seed"}
_REQUIRED = ("teachers", "classes", "queries")
_FIELDS = (*_REQUIRED, "agreement", "spread", "confusion", "imbalance", "seed")


def made_up_sample(
    text: str, *, teachers_per_record: int = 1
) -> tuple[VoteSample, dict[str, float]]:
    """A synthetic sample from `teachers=250,classes=10,queries=1000,…,seed=0`.

    Returns:
        The sample with its truth, and every number of its recipe.

    Raises:
        UsageError: an unknown, repeated, missing or malformed field.
        ParameterError: a number out of range.
    """
    given: dict[str, float] = {}
    for part in text.split(","):
        name, found, value = (piece.strip() for piece in part.partition("="))
        if not found or name not in _FIELDS or name in given:
            raise UsageError(
                f"`synthetic` takes each of {', '.join(_FIELDS)} once, as name=value, got {part!r}"
            )
        try:
            given[name] = int(value) if name in _WHOLE else float(value)
        except ValueError:
            raise UsageError(f"`synthetic`: {name} must be a number, got {value!r}") from None
    missing = [name for name in _REQUIRED if name not in given]
    if missing:
        raise UsageError(f"`synthetic` needs {', '.join(missing)}")
    seed = int(given.pop("seed", 0))
    if seed < 0:
        raise UsageError(f"`synthetic`: seed must be at least 0, got {seed}")
    recipe: dict[str, Any] = dict(given)
    return _drawn(SyntheticEnsemble(**recipe), seed, teachers_per_record)


def reference_sample(
    *, teachers: int, classes: int, queries: int, teachers_per_record: int = 1
) -> tuple[VoteSample, dict[str, float]]:
    """The public reference ensemble of this shape, and every number of its recipe."""
    ensemble = reference_ensemble(teachers=teachers, classes=classes, queries=queries)
    return _drawn(ensemble, REFERENCE_SEED, teachers_per_record)


def _drawn(
    ensemble: SyntheticEnsemble, seed: int, teachers_per_record: int
) -> tuple[VoteSample, dict[str, float]]:
    counts, truth = ensemble.draw(seed)
    sample = VoteSample(counts, ensemble.teachers, teachers_per_record, truth)
    return sample, {**asdict(ensemble), "seed": seed}
