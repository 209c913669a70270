"""Histograms for a forecast: the votes of a file, or votes of made-up teachers.

Nobody knows before a run how well the teachers agree. So a made-up model has three ensembles of
teachers for each level of agreement, and usually five levels of agreement. The three ensembles of
one level of agreement have different kinds of queries:

  "alike"                   the difficulty of the queries differs little,
  "easy and hard"           the difficulty of the queries differs much,
  "some of a rare class"    a tenth of the queries belong to a class that few teachers know.

In each ensemble, the votes on a query are made in four steps. First, q, the probability that a
teacher is right on the query, is drawn from a Beta distribution. The mean of q is the level of
agreement; for queries of the rare class, the mean of q is .35 lower, but not below .05. Second, the
number of teachers who are right is x ~ Binomial(τ, q), where τ is the number of all teachers.
Third, the wrong votes are split over the m − 1 wrong classes by shares s ~ Dirichlet(0.3, …, 0.3).
Fourth, the numbers of votes for the wrong classes are y ~ Multinomial(τ − x, s).

The wrong votes on a query depend on x, the number of teachers who are right, but not on q itself.
So the ensembles differ only in the distribution of x, the number of teachers who are right.
Therefore all ensembles use one list of histograms, and each ensemble has a weight for every row of
the list. The rows of this list are not drawn independently of each other. Instead, the rows take x,
the number of teachers who are right, at evenly spaced quantiles. The largest of the shares s, by
which the wrong votes are split, is also spread evenly over its quantiles. So a mean over the
histograms of a made-up model is as exact as a mean over many more histograms that are drawn
independently. If numbers of votes of each teacher are given, the ensembles differ in the
distribution of q, and the rows take q at evenly spaced quantiles. The recipe and its seed are
fixed, so all results of a made-up model are public.
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
    largest_two,
    votes_for,
    winners,
)
from pate_cli.core.errors import ParameterError, UsageError, quoted
from pate_cli.mechanisms.base import ScoredMechanism, plurality
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.planning.search import Tuning, middle_of
from pate_cli.planning.synthetic import from_urn
from pate_cli.votes.checks import with_votes
from pate_cli.votes.join import shared_out

KINDS: Final = ("alike", "easy and hard", "some of a rare class")
PUBLIC_SEED: Final = 20180224
PRIOR_ACCURACY: Final = 0.85
"""How often a public prior is assumed to be right if nobody says how often."""

ROWS: Final = 3000
"""The usual number of rows of a made-up model for a forecast; a search uses fewer rows."""

_LEVELS = 5
_SPREADS = {"alike": 0.2, "easy and hard": 0.5, "some of a rare class": 0.2}
_RARE_SHARE, _RARE_LOSS, _LEAST_AGREEMENT = 0.1, 0.35, 0.05
_CONFUSION = 0.3
# At how many values of x, or of q, the distribution of an ensemble is computed.
_NODES_OF_LAW = 4000
# The multiples of each of these numbers, modulo 1, fill the interval from 0 to 1 evenly.
_GOLDEN, _SILVER = (np.sqrt(5.0) - 1.0) / 2.0, np.sqrt(2.0) - 1.0
# Integrals over the noise on a count are sums over these values, in standard deviations.
_NODES = np.linspace(-8.0, 8.0, 97)


@dataclass(frozen=True, eq=False)
class VoteModel:
    """Histograms of one file, or of made-up ensembles of teachers.

    A model of a file of private votes is SECRET.

    Attributes:
        counts: histograms [rows, classes], which include the votes of a prior.
        teachers: τ, the number of votes on a query without those of a prior.
        weights: the weight of each row in each made-up ensemble, [ensembles, rows]; the weights of
            an ensemble have the sum 1. For a file, `weights` is None, because a run asks the rows
            of a file in order.
        levels: the mean probability that a teacher is right, of each ensemble; NaN for a file.
        kinds: how the queries of each ensemble differ from each other: `alike`, `easy and hard`, or
            `some of a rare class`; `as they are` for a file.
        teachers_per_record: k, how many votes on a query one record may change.
        votes_together: whether one teacher casts the k votes that a record may change.
        prior_weight: how many votes a public prior casts on each query.
        alone: histograms of the teachers without a prior; None if the prior has no weight.
        few: for a file, the limit on the votes of one teacher; None if there is no limit.
        guesses: the guess of the prior for each row: a class, or −1 for no guess, [rows]; or a
            probability for each class, [rows, classes]. None without a prior.
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
        """Return whether the votes are those of a file, whose rows a run asks in order.

        A run on made-up votes draws its rows at random, with the weights as probabilities.
        """
        return self.weights is None

    @property
    def rows(self) -> int:
        """Return the number of histograms."""
        return len(self.counts)

    @property
    def ensembles(self) -> int:
        """Return the number of ensembles, which is 1 for a file."""
        return len(self.levels)

    @property
    def classes(self) -> int:
        """Return the number of classes."""
        return self.counts.shape[1]

    @property
    def most_votes(self) -> int:
        """Return the largest possible number of votes on a query, prior included."""
        return self.teachers + self.prior_weight

    @property
    def most_records(self) -> int:
        """Return how many records may change the votes on a query, if each changes its own."""
        return -(-self.most_votes // self.teachers_per_record)

    @property
    def usual_votes(self) -> int:
        """Return the number of votes on a query that a search assumes, without votes of a prior.

        The thresholds that the search tries depend on this number. The number is τ, or the largest
        count of all rows if `few` limits on how many queries one teacher votes.
        """
        return self.teachers if self.few is None else int(self.largest_two[0].max())

    @property
    def middle(self) -> Ints:
        """Return the indices of the ensembles at the middle level of agreement."""
        if self.is_file:
            return np.array([0])
        return np.flatnonzero(np.array(self.levels) == middle_of(self.levels))

    @property
    def row_weights(self) -> Floats:
        """Return the weights of the rows in each ensemble, [ensembles, rows], with the sum 1."""
        if self.weights is None:
            return np.full((1, self.rows), 1.0 / self.rows)
        return self.weights

    @property
    def at_few_levels(self) -> VoteModel:
        """Return a model with only the lowest, the middle and the highest level of agreement."""
        few = {min(self.levels), middle_of(self.levels), max(self.levels)}
        chosen = [place for place, level in enumerate(self.levels) if level in few]
        return replace(
            self,
            weights=None if self.weights is None else self.weights[chosen],
            levels=tuple(self.levels[place] for place in chosen),
            kinds=tuple(self.kinds[place] for place in chosen),
        )

    def mechanism(self, settings: Tuning) -> ConfidentGNMax | GNMax:
        """Return the mechanism of a run with these settings on votes like those of the model."""
        return settings.mechanism(
            teachers=self.teachers,
            classes=self.classes,
            teachers_per_record=self.teachers_per_record,
            votes_together=self.votes_together,
        )

    def with_prior_weight(self, weight: int) -> VoteModel:
        """Return the model with this weight of the prior; unchanged if there is no prior.

        Models are cached by weight.
        """
        if weight == self.prior_weight or self.guesses is None:
            return self
        if weight not in self._weighted:
            alone = self.counts if self.alone is None else self.alone
            counts = alone
            if weight:
                said = self.guesses
                if said.ndim > 1:
                    said = shared_out(said.astype(np.float64), weight)
                counts = with_votes(alone, said.astype(np.int64), weight)
            self._weighted[weight] = replace(
                self, counts=counts, prior_weight=weight, alone=alone if weight else None
            )
        return self._weighted[weight]

    def some(self, rows: Ints | slice) -> VoteModel:
        """Return a model of some of the rows; the weights of each ensemble again have the sum 1."""
        weights = None if self.weights is None else self.weights[:, rows]
        return replace(
            self,
            counts=self.counts[rows],
            weights=None if weights is None else weights / weights.sum(axis=1, keepdims=True),
            alone=None if self.alone is None else self.alone[rows],
            guesses=None if self.guesses is None else self.guesses[rows],
        )

    def thinned(self, most: int) -> VoteModel:
        """Return a model of at most `most` rows, which are evenly spaced among all rows."""
        if self.rows <= most:
            return self
        return self.some(np.linspace(0, self.rows - 1, most).round().astype(np.int64))

    @cached_property
    def largest_two(self) -> tuple[Floats, Floats]:
        """Return the largest and the second largest count of each row, [rows] each."""
        second, largest = largest_two(self.counts).astype(np.float64).T
        return largest, second

    def chances(self, mechanism: ScoredMechanism) -> tuple[Floats, Floats]:
        """Return for each row the probabilities of an answer and of a right answer, [rows] each.

        An answer is right if it is the plurality of the teachers' votes, without those of a prior.

        Args:
            mechanism: the mechanism of a run, whose prior weight is that of the model.
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
        """Return the count of an imagined single rival of the plurality of each row, [rows].

        After noise, this rival alone would beat the plurality as often as the other classes of the
        row together beat it.
        """
        return self.largest_two[0] + np.sqrt(2.0) * sigma2 * self._scores(sigma2, alone=False)

    def _scores(self, sigma2: float, *, alone: bool) -> Floats:
        """Return Φ⁻¹(Pr[a class other than the plurality has the largest noisy count]), [rows].

        The scores for each pair of `sigma2` and `alone` are cached.

        Args:
            sigma2: standard deviation of the noise on each count, in votes.
            alone: True for the plurality of the teachers' votes alone; False for the plurality of
                the teachers' votes and the votes of a prior together.
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
        """Return the rows whose plurality a prior changes, and the teachers' plurality on each."""
        if self.alone is None:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        voted = votes_for(self.alone, winners(self.counts))
        rows = np.flatnonzero(voted < plurality(self.alone))
        return rows, winners(self.alone)[rows]


def win_chance(counts: Floats, labels: Ints, sigma: float) -> Floats:
    """Return the probability that a given class of each row has the largest noisy count, [rows].

    Args:
        counts: votes, [rows, classes].
        labels: the class of each row whose probability is computed, [rows].
        sigma: the standard deviation of the noise on each count, in votes.
    """
    own = np.take_along_axis(counts, labels[:, None], axis=1)
    logs = log_ndtr((own - counts)[:, :, None] / sigma + _NODES)
    np.put_along_axis(logs, labels[:, None, None], 0.0, axis=1)
    density = np.exp(logs.sum(axis=1) - 0.5 * _NODES**2) / np.sqrt(2.0 * np.pi)
    return density.sum(axis=1) * (_NODES[1] - _NODES[0])


def agreement_levels(given: object, classes: int) -> tuple[float, ...]:
    """Return the levels of agreement that a made-up model has, in ascending order.

    A level is the mean probability that a teacher is right.

    Args:
        given: the range of levels: one probability, a pair (low, high) of probabilities, or a text
            such as `0.7` or `60%:95%`. If `given` is None, the levels range from .5 to .95, or from
            .65 to .95 with two classes.
        classes: m, the number of classes.

    Raises:
        UsageError: `given` is neither one probability nor a range of two probabilities.
        ParameterError: a level is not between 0 and 1, or the range is descending.
    """
    if given is None:
        given = (0.5 if classes > 2 else 0.65, 0.95)
    parts = given.split(":") if isinstance(given, str) else given
    ends = list(parts) if isinstance(parts, tuple | list) else [parts]
    try:
        low, high = (_share(each) for each in (2 * ends if len(ends) == 1 else ends))
    except (TypeError, ValueError):
        raise UsageError(
            "`agreement` must be one probability such as 0.7, or a range low:high such as 0.6:0.9, "
            f"got {quoted(str(given))}"
        ) from None
    if not 0.0 < low <= high < 1.0:
        raise ParameterError(
            "`agreement` must be one probability between 0 and 1, or a range low:high of two "
            f"probabilities with low <= high, got {low:g}:{high:g}"
        )
    levels = np.linspace(low, high, _LEVELS if low < high else 1).tolist()
    return tuple(round(level, 4) for level in levels)


def _share(given: Any) -> float:
    """Return a probability as a number; `given` may be a text such as `0.6` or `60%`."""
    if isinstance(given, str) and given.strip().endswith("%"):
        return float(given.strip()[:-1]) / 100.0
    return float(given)


def like(mechanism: ScoredMechanism, *, rows: int = ROWS) -> VoteModel:
    """Return made-up votes with as many teachers and classes as a given mechanism.

    The levels of agreement range from .5 to .95, or from .65 to .95 with two classes.
    """
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
    """Return a public model: an ensemble for each pair of a level of agreement and one of `kinds`.

    Args:
        teachers: τ, the number of votes on a query.
        classes: m, the number of classes.
        levels: mean probabilities that a teacher is right. If `levels` is left out, there are five
            levels from .5 to .95, or from .65 to .95 with two classes.
        kinds: how the queries of an ensemble differ from each other: `alike`, `easy and hard`, or
            `some of a rare class`; by default all three.
        rows: the number of made-up histograms, which all ensembles share.
        teacher_weights: the number of votes of each teacher, with the sum τ; empty if each teacher
            has one vote.
        teachers_per_record: k, how many votes on a query one record may change.
        votes_together: whether one teacher casts the k votes that a record may change.
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
    """Return possible numbers of right votes on a query, and the probability of each.

    The numbers ascend, [values]; the probabilities differ by ensemble, [ensembles, values]. If
    `by_chance` is True, the first result is not an array of numbers of votes, but of values of q,
    the probability that a teacher is right on a query.
    """
    if by_chance:
        # Values of q are dense near 0 and 1, because a Beta distribution of wide spread is
        # concentrated there.
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
    """Choose a value for each row; return its index, [rows], and row weights, [ensembles, rows].

    A value is a number of right votes on a query, or a probability that a teacher is right. The
    rows get the values at evenly spaced quantiles of the mean of the ensembles' distributions.

    Args:
        laws: the probability of each value in each ensemble, [ensembles, values].
        rows: how many rows to make.
    """
    total = np.cumsum(laws.mean(axis=0))
    place = np.searchsorted(total, (np.arange(rows) + 0.5) / rows * total[-1])
    used, times = np.unique(place, return_counts=True)
    # A value without rows gives its probability to the nearest value with rows.
    nearest = np.searchsorted((used[1:] + used[:-1]) / 2.0, np.arange(laws.shape[1]))
    mass = np.stack([np.bincount(nearest, law, minlength=used.size) for law in laws])
    return place, np.repeat(mass / times, times, axis=1)


def _histograms(
    random: np.random.Generator, sizes: Ints, numbers: Ints, right: Ints, classes: int
) -> Histograms:
    """Return histograms [rows, classes], in which class 0 is right.

    For very many classes, `from_urn` draws the wrong votes; their distribution is the same as for
    fewer classes.

    Args:
        random: the random generator.
        sizes: the different numbers of votes that teachers have, [sizes].
        numbers: how many teachers have each number of votes, [sizes].
        right: how many teachers with each number of votes vote right on each row, [rows, sizes].
        classes: m, the number of classes.
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
