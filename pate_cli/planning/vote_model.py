"""Histograms for a forecast: of a file, or of made-up teachers.

Nobody knows beforehand how well the teachers agree. So a made-up model has several ensembles. There
are five levels of agreement from hard to easy. At each level queries are all similar, or a mixture
of easy and hard, or a tenth of them belong to a class that few teachers know. In each ensemble

  q ~ Beta with the level as its mean    the chance that a teacher is right on a query,
  x ~ Binomial(τ, q)                     how many are,
  s ~ Dirichlet(0.3, …, 0.3)             how wrong votes split over the other m − 1 classes,
  y ~ Multinomial(τ − x, s)              which they are.

Given x the wrong votes do not depend on q, so ensembles differ only in the distribution of x, which
is Beta-binomial. Therefore all ensembles use one list of histograms, and each ensemble has a weight
for every row. Rows are spread evenly over the quantiles of x and of the largest share in s. Their
means are then as exact as those of many more independent draws. The recipe and its seed are fixed,
so everything derived from them is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Final

import numpy as np
from scipy.special import betainc, gammaln, log_ndtr, ndtr, ndtri

from pate_cli.accounting.few_votes import Few
from pate_cli.core.arrays import (
    DENSE_CLASSES,
    Floats,
    Histograms,
    Ints,
    SparseCounts,
    dense,
    votes_for,
    winners,
)
from pate_cli.core.errors import ParameterError, UsageError, quoted
from pate_cli.mechanisms.base import ScoredMechanism, plurality
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.planning.search import Tuning
from pate_cli.planning.synthetic import from_urn
from pate_cli.votes.checks import with_votes
from pate_cli.votes.join import shared_out

KINDS: Final = ("alike", "easy and hard", "some of a rare class")
PUBLIC_SEED: Final = 20180224
PRIOR_ACCURACY: Final = 0.85
"""The assumed accuracy of a prior if nothing is known about it."""

ROWS: Final = 3000
"""Rows of a made-up model for a forecast; a search uses fewer."""

_LEVELS = 5
_SPREADS = {"alike": 0.2, "easy and hard": 0.5, "some of a rare class": 0.2}
_RARE_SHARE, _RARE_LOSS, _LEAST_AGREEMENT = 0.1, 0.35, 0.05
_CONFUSION = 0.3
# Values of x, or of q, at which the distribution of an ensemble is computed.
_NODES_OF_LAW = 4000
# Multiples of these numbers, modulo 1, fill the unit interval evenly.
_GOLDEN, _SILVER = (np.sqrt(5.0) - 1.0) / 2.0, np.sqrt(2.0) - 1.0
# Values of the noise of a class, in standard deviations, over which probabilities are integrated.
_NODES = np.linspace(-8.0, 8.0, 97)


@dataclass(frozen=True, eq=False)
class VoteModel:
    """Histograms of one file, or of made-up ensembles.

    Attributes:
        counts: histograms [rows, classes], votes of a prior included.
        teachers: τ, votes of a query.
        weights: the weight of each row in each made-up ensemble, [ensembles, rows], with sum 1;
            None for a file, whose rows are the rows of a run in order. SECRET if its votes are.
        levels: mean agreement of each ensemble; NaN for a file.
        kinds: the kind of queries of each ensemble.
        teachers_per_record: k, how many votes of a query one record may change.
        votes_together: whether these k votes belong to one teacher.
        prior_weight: votes of a public prior on each query.
        alone: the teachers' own votes if a prior votes, too; None if `counts` are these.
        few: for a file, the limit on the votes of one teacher; None if there is no limit.
        guesses: the prior's class for each row, −1 for none, [rows], or its probabilities of
            classes, [rows, classes]; None without a prior.
    """

    counts: Histograms
    teachers: int
    weights: Floats | None = None
    levels: tuple[float, ...] = (float("nan"),)
    kinds: tuple[str, ...] = ("as they are",)
    teachers_per_record: int = 1
    votes_together: bool = False
    prior_weight: int = 0
    alone: Histograms | None = None
    few: Few = None
    guesses: Ints | Floats | None = None
    _weighted: dict[int, VoteModel] = field(default_factory=dict, init=False, repr=False)
    _known: dict[tuple[bool, float], Floats] = field(default_factory=dict, init=False, repr=False)

    @property
    def is_file(self) -> bool:
        """Return whether the rows are the rows of a run; otherwise a run draws rows by weight."""
        return self.weights is None

    @property
    def rows(self) -> int:
        """Return the number of histograms."""
        return len(self.counts)

    @property
    def ensembles(self) -> int:
        """Return the number of ensembles; 1 for a file."""
        return len(self.levels)

    @property
    def classes(self) -> int:
        """Return the number of classes."""
        return self.counts.shape[1]

    @property
    def most_votes(self) -> int:
        """Return the most votes that a query can have: teachers and prior."""
        return self.teachers + self.prior_weight

    @property
    def usual_votes(self) -> int:
        """Return the scale of good thresholds: τ, or the largest count if teachers vote on few."""
        return self.teachers if self.few is None else int(self.largest_two[0].max())

    @property
    def middle(self) -> Ints:
        """Return the places of the ensembles at the middle level of agreement."""
        levels = sorted(set(self.levels))
        middle = levels[len(levels) // 2]
        at = [place for place, level in enumerate(self.levels) if self.is_file or level == middle]
        return np.array(at)

    @property
    def row_weights(self) -> Floats:
        """Return the weight of each row in each ensemble, [ensembles, rows], with sum 1."""
        if self.weights is None:
            return np.full((1, self.rows), 1.0 / self.rows)
        return self.weights

    @property
    def at_few_levels(self) -> VoteModel:
        """Return the ensembles at the lowest, the middle and the highest level of agreement."""
        levels = sorted(set(self.levels))
        few = {levels[0], levels[len(levels) // 2], levels[-1]}
        chosen = [place for place, level in enumerate(self.levels) if level in few]
        return replace(
            self,
            weights=None if self.weights is None else self.weights[chosen],
            levels=tuple(self.levels[place] for place in chosen),
            kinds=tuple(self.kinds[place] for place in chosen),
        )

    def mechanism(self, settings: Tuning) -> ConfidentGNMax | GNMax:
        """Return the mechanism that a run with these settings uses on such votes."""
        return settings.mechanism(
            teachers=self.teachers,
            classes=self.classes,
            teachers_per_record=self.teachers_per_record,
            votes_together=self.votes_together,
        )

    def with_prior_weight(self, weight: int) -> VoteModel:
        """Return the votes with a prior of this weight on each query; cached by weight."""
        if weight == self.prior_weight or self.guesses is None:
            return self
        if weight not in self._weighted:
            alone = self.counts if self.alone is None else self.alone
            counts = _with_guesses(alone, self.guesses, weight) if weight else alone
            self._weighted[weight] = replace(
                self, counts=counts, prior_weight=weight, alone=alone if weight else None
            )
        return self._weighted[weight]

    def some(self, rows: Ints | slice) -> VoteModel:
        """Return a model of some of the rows; weights of made-up rows are scaled to sum 1 again."""
        weights = None if self.weights is None else self.weights[:, rows]
        return replace(
            self,
            counts=self.counts[rows],
            weights=None if weights is None else weights / weights.sum(axis=1, keepdims=True),
            alone=None if self.alone is None else self.alone[rows],
            guesses=None if self.guesses is None else self.guesses[rows],
        )

    def thinned(self, most: int) -> VoteModel:
        """Return a model of at most this many of the rows, evenly spaced."""
        if self.rows <= most:
            return self
        return self.some(np.linspace(0, self.rows - 1, most).round().astype(np.int64))

    @cached_property
    def largest_two(self) -> tuple[Floats, Floats]:
        """Return the largest count of each row and the second largest, [rows] each."""
        counts = self.counts.counts if isinstance(self.counts, SparseCounts) else self.counts
        ordered = -np.sort(-np.asarray(counts, dtype=np.float64), axis=1)
        return ordered[:, 0], ordered[:, 1]

    def chances(self, mechanism: ScoredMechanism) -> tuple[Floats, Floats]:
        """Return the probability of an answer, and of a right answer, for each row, [rows] each.

        An answer is right if it is the plurality of the teachers alone, without the prior.

        Args:
            mechanism: the mechanism of a run, with the prior weight of these votes.
        """
        settings = Tuning.of(mechanism)
        if settings is None:
            bound = mechanism.for_reference(self.counts, PUBLIC_SEED)
            return bound.answer_chance(self.counts), 1.0 - bound.loss_chance(self.counts)
        right, answered = ndtr(-self._scores(settings.sigma2, alone=True)), np.ones(self.rows)
        if settings.threshold is not None and settings.sigma1 is not None:
            answered = ndtr((self.largest_two[0] - settings.threshold) / settings.sigma1)
        return answered, right

    def rival(self, sigma2: float) -> Floats:
        """Return the count at which a single rival wins as often as all losers together, [rows]."""
        return self.largest_two[0] + np.sqrt(2.0) * sigma2 * self._scores(sigma2, alone=False)

    def _scores(self, sigma2: float, *, alone: bool) -> Floats:
        """Return the normal quantile of the probability that a plurality loses, [rows].

        The result is cached by noise.

        Args:
            sigma2: noise on each count.
            alone: whether it is the plurality of the teachers without the prior.
        """
        if (alone, sigma2) not in self._known:
            if not alone:
                mechanism = GNMax(self.most_votes, self.classes, sigma2=sigma2)
                found = mechanism.scores(self.counts)
            else:
                found, (rows, labels) = self._scores(sigma2, alone=False).copy(), self._overruled
                won = win_chance(np.asarray(dense(self.counts[rows])), labels, sigma2)
                found[rows] = -ndtri(np.clip(won, 1e-12, 1.0 - 1e-12))
            self._known[alone, sigma2] = found
        return self._known[alone, sigma2]

    @cached_property
    def _overruled(self) -> tuple[Ints, Ints]:
        """Return the rows on which a prior outvotes the teachers' plurality, and this plurality."""
        if self.alone is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        voted = votes_for(self.alone, winners(self.counts))
        rows = np.flatnonzero(voted < plurality(self.alone))
        return rows, winners(self.alone)[rows]


def _with_guesses(counts: Histograms, guesses: Ints | Floats, weight: int) -> Histograms:
    """Return histograms with `weight` votes of a prior in each row that has a guess."""
    said = guesses if guesses.ndim == 1 else shared_out(guesses.astype(np.float64), weight)
    return with_votes(counts, said.astype(np.int64), weight)


def win_chance(counts: Floats, labels: Ints, sigma: float) -> Floats:
    """Return the probability that a given class of each row has the largest noisy count, [rows].

    Args:
        counts: votes, [rows, classes].
        labels: the class of each row, [rows].
        sigma: the standard deviation of the noise on each count, in votes.
    """
    own = np.take_along_axis(counts, labels[:, None], axis=1)
    logs = log_ndtr((own - counts)[:, :, None] / sigma + _NODES)
    np.put_along_axis(logs, labels[:, None, None], 0.0, axis=1)
    density = np.exp(logs.sum(axis=1) - 0.5 * _NODES**2) / np.sqrt(2.0 * np.pi)
    return density.sum(axis=1) * (_NODES[1] - _NODES[0])


def agreement_levels(given: object, classes: int) -> tuple[float, ...]:
    """Return the levels of agreement to look at, ascending.

    Args:
        given: how often a teacher is right on average: a share, (low, high), a text such as `0.7`
            or `60%:95%`, or None if nothing is known. The range is then from one half (with two
            classes, slightly more) to .95.
        classes: m.

    Raises:
        UsageError: the text is not a share.
        ParameterError: a share is not between 0 and 1.
    """
    if given is None:
        given = (0.5 if classes > 2 else 0.65, 0.95)
    parts = given.split(":") if isinstance(given, str) else given
    ends = list(parts) if isinstance(parts, tuple | list) else [parts]
    try:
        low, high = (_share(each) for each in (2 * ends if len(ends) == 1 else ends))
    except (TypeError, ValueError):
        raise UsageError(
            f"`agreement` must be a share or low:high, got {quoted(str(given))}"
        ) from None
    if not 0.0 < low <= high < 1.0:
        raise ParameterError(
            f"`agreement` must be a share between 0 and 1, or low:high, got {low:g}:{high:g}"
        )
    levels = np.linspace(low, high, _LEVELS if low < high else 1).tolist()
    return tuple(round(level, 4) for level in levels)


def _share(given: Any) -> float:
    """Return a number, or the number in a text with or without a per cent sign."""
    if isinstance(given, str) and given.strip().endswith("%"):
        return float(given.strip()[:-1]) / 100.0
    return float(given)


def like(mechanism: ScoredMechanism, *, rows: int = ROWS) -> VoteModel:
    """Return made-up votes of a mechanism's shape, over the whole range of agreement."""
    model = made_up(
        teachers=mechanism.teachers,
        classes=mechanism.classes,
        rows=rows,
        teachers_per_record=mechanism.teachers_per_record,
        votes_together=mechanism.votes_together,
        prior_accuracy=PRIOR_ACCURACY if mechanism.prior_weight else None,
    )
    return model.with_prior_weight(mechanism.prior_weight)


def made_up(
    *,
    teachers: int,
    classes: int,
    levels: Sequence[float] | None = None,
    kinds: Sequence[str] = KINDS,
    rows: int = ROWS,
    teacher_weights: Sequence[int] = (),
    teachers_per_record: int = 1,
    votes_together: bool = False,
    prior_accuracy: float | None = None,
) -> VoteModel:
    """Return public ensembles: every level of agreement with every kind of queries.

    Args:
        teachers: τ, votes of a query.
        classes: m.
        levels: mean probabilities that a teacher is right; the whole range if left out.
        kinds: some of `KINDS`.
        rows: the number of made-up histograms, for all ensembles together.
        teacher_weights: votes of each teacher, which add up to τ; empty if each has one.
        teachers_per_record, votes_together: see `VoteModel`.
        prior_accuracy: how often a public prior guesses the true class; None without a prior.
    """
    random = np.random.default_rng(PUBLIC_SEED)
    levels = agreement_levels(None, classes) if levels is None else levels
    pairs = [(level, kind) for level in levels for kind in kinds]
    ladder, laws = _laws(teachers, pairs, by_chance=bool(teacher_weights))
    place, weights = _spread(laws, rows)
    if teacher_weights:
        sizes, numbers = np.unique(np.asarray(teacher_weights, np.int64), return_counts=True)
        right = random.binomial(numbers, ladder[place][:, None])
    else:
        sizes, numbers = np.array([1]), np.array([teachers])
        right = ladder[place][:, None].astype(np.int64)
    counts = _histograms(random, sizes, numbers, right, classes)
    guesses = None
    if prior_accuracy is not None:
        wrong = (np.arange(len(place)) * _SILVER) % 1.0 >= prior_accuracy
        guesses = np.where(wrong, random.integers(1, classes, len(place)), 0)
    return VoteModel(
        counts,
        teachers,
        weights,
        tuple(level for level, _ in pairs),
        tuple(kind for _, kind in pairs),
        teachers_per_record=teachers_per_record,
        votes_together=votes_together,
        guesses=guesses,
    )


def _laws(
    teachers: int, pairs: Sequence[tuple[float, str]], *, by_chance: bool
) -> tuple[Floats, Floats]:
    """Return ascending values of x, or of q, and their probabilities in each ensemble."""
    if by_chance:
        # Symmetric in the logit, because Beta distributions of wide spread are concentrated at both
        # ends.
        ends = 1.0 / (1.0 + np.exp(-np.linspace(-30.0, 30.0, _NODES_OF_LAW + 1)))
        ladder = 0.5 * (ends[1:] + ends[:-1])
    else:
        ladder = np.linspace(0, teachers, min(teachers, _NODES_OF_LAW) + 1).round()

    def law(level: float, spread: float) -> Floats:
        a, b = (share * (1.0 - spread) / spread for share in (level, 1.0 - level))
        if by_chance:
            found = np.diff(betainc(a, b, ends))
        else:
            x, y = ladder, teachers - ladder
            logs = gammaln(x + a) - gammaln(x + 1.0) + gammaln(y + b) - gammaln(y + 1.0)
            found = np.exp(logs - logs.max())
        return np.asarray(found / found.sum())

    found = []
    for level, kind in pairs:
        each = law(level, _SPREADS[kind])
        if kind == KINDS[-1]:
            hard = law(max(level - _RARE_LOSS, _LEAST_AGREEMENT), _SPREADS[kind])
            each = (1.0 - _RARE_SHARE) * each + _RARE_SHARE * hard
        found.append(each)
    return ladder, np.stack(found)


def _spread(laws: Floats, rows: int) -> tuple[Ints, Floats]:
    """Return values for rows, evenly over the mean distribution, and weights [ensembles, rows]."""
    total = np.cumsum(laws.mean(axis=0))
    place = np.searchsorted(total, (np.arange(rows) + 0.5) / rows * total[-1])
    used, first, times = np.unique(place, return_index=True, return_counts=True)
    del first
    # A value between two values in use counts as the nearer one.
    nearest = np.searchsorted((used[1:] + used[:-1]) / 2.0, np.arange(laws.shape[1]))
    mass = np.stack([np.bincount(nearest, law, minlength=used.size) for law in laws])
    return place, np.repeat(mass / times, times, axis=1)


def _histograms(
    random: np.random.Generator, sizes: Ints, numbers: Ints, right: Ints, classes: int
) -> Histograms:
    """Return histograms [rows, classes] of teachers of several sizes; `right` vote for class 0.

    For very many classes wrong votes come from an urn, which gives the same distribution.
    """
    rows, others = len(right), classes - 1
    if classes > DENSE_CLASSES:
        group = np.repeat(np.arange(sizes.size), numbers)
        first = np.repeat(np.cumsum(numbers) - numbers, numbers)
        errs = np.arange(group.size) - first >= right[:, group]
        fresh = random.integers(others, size=errs.shape)
        wrong = from_urn(random, fresh, errs, weight=_CONFUSION * others)
        return SparseCounts.of_votes(np.where(errs, wrong + 1, 0), classes, sizes[group])
    shares = random.dirichlet(np.full(others, _CONFUSION), size=rows)
    shares = np.where(np.isfinite(shares), shares, 1.0 / others)
    by_largest = np.argsort(shares.max(axis=1))
    shares = shares[by_largest[((np.arange(rows) * _GOLDEN) % 1.0 * rows).astype(np.int64)]]
    votes = sum(
        size * random.multinomial(missed, shares)
        for size, missed in zip(sizes.tolist(), (numbers - right).T, strict=True)
    )
    return np.column_stack([right @ sizes, votes])
