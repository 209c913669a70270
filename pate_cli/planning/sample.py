"""The histograms a search looks at, and what labels any setting would get out of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import (
    Floats,
    Histograms,
    Ids,
    Ints,
    SparseCounts,
    row_width,
    stacked,
    votes_for,
    winners,
)
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.core.special import log_ndtr, ndtr
from pate_cli.mechanisms.base import plurality
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.synthetic import SyntheticEnsemble
from pate_cli.planning.sanitized import REFERENCE_SEED, reference_ensemble
from pate_cli.planning.setting import Setting
from pate_cli.votes.join import Joined, with_guesses
from pate_cli.votes.vote_file import VoteBatch

# Of the trapezoid rule for the chance that a class wins, and numbers looked at in one go.
_STEP, _BLOCK = 0.1, 2_000_000
# Pluralities among which the dearest is sought.
_PLURALITIES = 41
_NODES = _STEP * np.arange(-80, 81)


@dataclass(frozen=True)
class Yield:
    """What labels a setting is expected to give; expectations over its noise.

    Attributes:
        answers: expected number of answers.
        agreeing: expected answers equal to the plurality, of the teachers alone.
        correct: expected answers that are the plurality where that is the truth, which is a lower
            bound on the right ones (noise may also hit the truth against the plurality); None
            without truth. The votes of a prior count here.
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
class Guesses:
    """A public prior and the queries that it votes on.

    Attributes:
        prior: its guesses are classes, or probabilities of them.
        places: (ids, first row) of every stretch of queries, in order.
        name: what stands for it on a command line.
    """

    prior: Joined
    places: Sequence[tuple[Ids, int]]
    name: str = "PRIOR"

    def among(self, counts: Histograms, weight: int) -> Histograms:
        """Return the histograms of all queries with `weight` votes more."""
        found, row = [], 0
        for ids, first in self.places:
            batch = VoteBatch(first, ids, counts[row : row + len(ids)])
            found.append(with_guesses(batch, self.prior, weight).counts)
            row += len(ids)
        return stacked(found)

    @cached_property
    def number(self) -> int:
        """On how many queries there is a guess."""
        return sum(self.prior.said_of(ids, first) for ids, first in self.places)


@dataclass(frozen=True, eq=False)
class VoteSample:
    """Votes on queries, real or made up. SECRET if they are real and private.

    Attributes:
        counts: histograms [queries, classes], each of `teachers` votes and those of the prior.
        teachers: τ.
        teachers_per_record: how many votes of a query a neighbour may change.
        truth: right classes [queries], −1 where unknown, which counts as wrong; or None.
        guesses: a public prior that may vote, too; None without one.
        prior_weight: B, how many votes it has in `counts`.
        alone: the teachers' votes, where others are among `counts`; None where they are all.
    """

    counts: Histograms
    teachers: int
    teachers_per_record: int = 1
    truth: NDArray[np.int64] | None = None
    guesses: Guesses | None = None
    prior_weight: int = 0
    alone: Histograms | None = None
    _scores: dict[float, Floats] = field(default_factory=dict, init=False, repr=False)
    _agreeing: dict[float, Floats] = field(default_factory=dict, init=False, repr=False)

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

    @property
    def most_votes(self) -> int:
        """τ + B."""
        return self.teachers + self.prior_weight

    def under(self, weight: int) -> VoteSample:
        """The same queries with a prior of so many votes; ParameterError without a prior."""
        alone = self.counts if self.alone is None else self.alone
        if self.guesses is None:
            raise ParameterError("there is no prior")
        if weight == 0:
            return replace(self, counts=alone, prior_weight=0, alone=None)
        counts = self.guesses.among(alone, weight)
        return replace(self, counts=counts, prior_weight=weight, alone=alone)

    @cached_property
    def two_largest(self) -> tuple[Floats, Floats]:
        """The largest count and the next, [queries] each (votes)."""
        counts = self.counts.counts if isinstance(self.counts, SparseCounts) else self.counts
        two = -np.sort(-np.asarray(counts, dtype=np.float64), axis=1)[:, :2]
        return two[:, 0], two[:, 1] if two.shape[1] == 2 else np.zeros(len(two))

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
        return VoteSample(
            self.counts[rows],
            self.teachers,
            self.teachers_per_record,
            prior_weight=self.prior_weight,
            alone=None if self.alone is None else self.alone[rows],
        )

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
            prior_weight=self.prior_weight,
        )

    def guessed_ceiling(self, setting: Setting, orders: Floats) -> Floats:
        """About what a row costs whatever its votes, [orders], nats: a guess, for a choice.

        The divergences of coins are at most those of fair ones, which cost λ/(πσ1²) for a test and
        2λ/(πσ2²) for an answer, and answers are paid for if given.
        """
        most, fair = float(self.most_votes), 2.0 / setting.sigma2**2
        votes = np.linspace(most / 2.0, most, _PLURALITIES)
        whole = fairness((2.0 * votes - most) / (setting.sigma2 * np.sqrt(2.0))) * fair
        if setting.threshold is not None and setting.sigma1 is not None:
            test = (votes - setting.threshold) / setting.sigma1
            whole = fairness(test) / setting.sigma1**2 + ndtr(test) * whole
        return np.asarray(self.teachers_per_record**2 * orders / np.pi * whole.max())

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
        agreeing = self.agreeing_chance(setting)[:queries]
        correct = None
        if self._right is not None:
            winning = chance * ndtr(-self.scores(setting)[:queries])
            correct = float(winning @ self._right[:queries])
        return Yield(float(chance.sum()), float(agreeing.sum()), correct)

    def agreeing_chance(self, setting: Setting) -> Floats:
        """Pr[answer, and it is the plurality of the teachers alone] per query, [queries]."""
        return self.answer_chance(setting) * self._teachers_win(setting)

    def _teachers_win(self, setting: Setting) -> Floats:
        """Pr[the argmax is the plurality of the teachers alone] per query; kept, by σ2."""
        known = self._agreeing.get(setting.sigma2)
        if known is None:
            known = ndtr(-self.scores(setting))
            rows, labels = self._overruled
            known[rows] = _chance_to_win(self.counts[rows], labels, sigma=setting.sigma2)
            self._agreeing[setting.sigma2] = known
        return known

    @cached_property
    def _overruled(self) -> tuple[Ints, Ints]:
        """Where the prior outvotes the plurality of the teachers: rows, and that plurality."""
        if self.alone is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        of_all = votes_for(self.alone, winners(self.counts))
        rows = np.flatnonzero(of_all < plurality(self.alone))
        return rows, winners(self.alone)[rows]

    def prefix_for(self, setting: Setting, answers: float) -> int | None:
        """The fewest first rows with so many expected answers; None if all rows give fewer."""
        total = np.cumsum(self.answer_chance(setting))
        found = int(np.searchsorted(total, answers))
        return None if found == self.queries else found + 1


def _chance_to_win(counts: Histograms, labels: Ints, *, sigma: float) -> Floats:
    """Pr[the noisy argmax is this class] per row: ∫ φ(t) Π Φ(t + (n_label − n_j)/σ) dt, [rows]."""
    found = np.zeros(len(labels))
    size = max(1, _BLOCK // (row_width(counts) * _NODES.size))
    for start in range(0, len(labels), size):
        rows = slice(start, start + size)
        part = counts[rows] if isinstance(counts, SparseCounts) else SparseCounts.of(counts[rows])
        wanted, own = part.labels == labels[rows, None], votes_for(part, labels[rows])
        above = (own[:, None, None] - part.counts[:, :, None]) / sigma + _NODES
        rival = (part.labels < part.classes) & ~wanted
        logs = np.where(rival[:, :, None], log_ndtr(above), 0.0).sum(axis=1)
        unvoted = part.zeros - (own == 0)
        logs += unvoted[:, None] * log_ndtr(own[:, None] / sigma + _NODES)
        found[rows] = np.exp(logs - 0.5 * _NODES**2).sum(axis=1) * _STEP / np.sqrt(2.0 * np.pi)
    return found


def fairness(x: Floats) -> Floats:
    """The Fisher information of a coin Φ(x) in x, beside that of a fair one."""
    log_density = -0.5 * x * x - 0.5 * np.log(2.0 * np.pi)
    return np.exp(2.0 * log_density - log_ndtr(x) - log_ndtr(-x)) * np.pi / 2.0


def capped_mean(mean: Floats, sd: Floats, cap: Floats) -> Floats:
    """E[min(A, cap)] for a number of answers A of this mean and standard deviation.

    By the normal approximation to a sum of independent coins, at most the mean and the cap.
    """
    width = np.maximum(sd, 1e-9)
    x = (cap - mean) / width
    density = np.exp(-0.5 * np.minimum(x * x, 1400.0)) / np.sqrt(2.0 * np.pi)
    excess = width * np.maximum(density - x * ndtr(-x), 0.0)
    return np.minimum(np.maximum(mean - excess, 0.0), cap)


_PRIOR_STREAM = 1
_WHOLE = {"teachers", "classes", "queries", "seed"}
_REQUIRED = ("teachers", "classes", "queries")
_FIELDS = (*_REQUIRED, "agreement", "spread", "confusion", "imbalance", "prior", "seed")


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
    accuracy = given.pop("prior", None)
    recipe: dict[str, Any] = dict(given)
    sample, numbers = _drawn(SyntheticEnsemble(**recipe), seed, teachers_per_record)
    if accuracy is None:
        return sample, numbers
    return _with_made_up_prior(sample, accuracy, seed), {**numbers, "prior": accuracy}


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


def _with_made_up_prior(sample: VoteSample, accuracy: float, seed: int) -> VoteSample:
    """With guesses that are right with this chance, else another class, each as likely."""
    if not 0.0 <= accuracy <= 1.0:
        raise ParameterError(f"`synthetic`: prior must be between 0 and 1, got {accuracy}")
    # The votes are those of the recipe without it.
    random = np.random.default_rng([seed, _PRIOR_STREAM])
    wrong = random.random(sample.queries) >= accuracy
    shift = random.integers(1, sample.classes, size=sample.queries)
    truth = np.zeros(sample.queries, np.int64) if sample.truth is None else sample.truth
    guessed = (truth + np.where(wrong, shift, 0)) % sample.classes
    places = [(np.arange(sample.queries), 0)]
    return replace(sample, guesses=Guesses(Joined("the prior", guessed), places))
