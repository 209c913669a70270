"""Votes that a forecast is made for: a file that is there, or made-up teachers.

A made-up model has several ensembles, because nobody knows beforehand how well the teachers agree:
levels of agreement from hard to easy, and at each level queries that are all alike, easy and hard
ones mixed, or a tenth of them of a class that few teachers know. The recipe and its seed are fixed,
so everything derived from it is public.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import numpy as np

from pate_cli.core.arrays import (
    Floats,
    Histograms,
    Ints,
    SparseCounts,
    dense,
    stacked,
    votes_for,
    winners,
)
from pate_cli.core.special import log_ndtr, ndtr, ndtri
from pate_cli.mechanisms.base import plurality
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.synthetic import SyntheticEnsemble
from pate_cli.planning.settings import Settings
from pate_cli.votes.checks import with_votes
from pate_cli.votes.join import shared_out

KINDS: Final = ("alike", "easy and hard", "some of a rare class")
PUBLIC_SEED: Final = 20180224
_SPREADS = {"alike": 0.2, "easy and hard": 0.5, "some of a rare class": 0.2}
_RARE_EVERY, _RARE_LOSS, _LEAST_AGREEMENT = 10, 0.35, 0.05
# Chances are computed at a ladder of noise levels, shares of the votes, and interpolated between.
_LADDER = 0.01 * 1.6 ** np.arange(11)
_NODES = np.linspace(-8.0, 8.0, 97)


@dataclass(frozen=True, eq=False)
class VoteModel:
    """Histograms of one file, or of several made-up ensembles with equally many rows each.

    Attributes:
        counts: histograms [rows, classes], votes of a prior included; ensembles follow each other.
        teachers: τ.
        levels: mean agreement of each ensemble; NaN for a file.
        kinds: what the queries of each ensemble are like.
        is_file: the rows are those of a run in their order. SECRET if they are private votes.
            Otherwise a run draws its rows from the law that an ensemble's rows stand for.
        teachers_per_record: k, how many votes of a query one record may move.
        prior_weight: votes of a public prior on each query.
        alone: the teachers' own votes where a prior votes, too; None where `counts` are these.
        guesses: the prior's class for each row, −1 for none, [rows], or its probabilities of
            classes, [rows, classes]; None without a prior.
    """

    counts: Histograms
    teachers: int
    levels: tuple[float, ...] = (float("nan"),)
    kinds: tuple[str, ...] = ("as they are",)
    is_file: bool = True
    teachers_per_record: int = 1
    prior_weight: int = 0
    alone: Histograms | None = None
    guesses: Ints | Floats | None = None
    _weighted: dict[int, VoteModel] = field(default_factory=dict, init=False, repr=False)

    @property
    def rows(self) -> int:
        """Number of histograms, all ensembles together."""
        return len(self.counts)

    @property
    def ensembles(self) -> int:
        """Number of ensembles; 1 for a file."""
        return len(self.levels)

    @property
    def each(self) -> int:
        """Number of rows of each ensemble."""
        return self.rows // self.ensembles

    @property
    def classes(self) -> int:
        """Number of classes."""
        return self.counts.shape[1]

    @property
    def most_votes(self) -> int:
        """The most votes that a query can have: teachers and prior."""
        return self.teachers + self.prior_weight

    def by_ensemble(self, values: Floats) -> Floats:
        """Values of each row, [..., rows], as [..., ensembles, each]."""
        return values.reshape(*values.shape[:-1], self.ensembles, self.each)

    def mechanism(self, settings: Settings) -> ConfidentGNMax | GNMax:
        """The mechanism that a run on such votes uses."""
        return settings.mechanism(
            teachers=self.teachers,
            classes=self.classes,
            teachers_per_record=self.teachers_per_record,
        )

    def with_prior_weight(self, weight: int) -> VoteModel:
        """The same votes where the prior casts so many on each query; kept, by the weight."""
        if weight == self.prior_weight or self.guesses is None:
            return self
        if weight not in self._weighted:
            alone = self.counts if self.alone is None else self.alone
            counts = _with_guesses(alone, self.guesses, weight) if weight else alone
            self._weighted[weight] = replace(
                self, counts=counts, prior_weight=weight, alone=alone if weight else None
            )
        return self._weighted[weight]

    def thinned(self, most: int) -> VoteModel:
        """At most so many rows of a file, evenly spaced."""
        if not self.is_file or self.rows <= most:
            return self
        return self._at(np.linspace(0, self.rows - 1, most).round().astype(np.int64))

    def first(self, rows: int) -> VoteModel:
        """The first rows of a file."""
        return self if rows >= self.rows else self._at(np.arange(rows))

    def _at(self, rows: Ints) -> VoteModel:
        return replace(
            self,
            counts=self.counts[rows],
            alone=None if self.alone is None else self.alone[rows],
            guesses=None if self.guesses is None else self.guesses[rows],
        )

    @cached_property
    def largest_two(self) -> tuple[Floats, Floats]:
        """The largest count of each row and the second largest, [rows] each."""
        counts = self.counts.counts if isinstance(self.counts, SparseCounts) else self.counts
        ordered = -np.sort(-np.asarray(counts, dtype=np.float64), axis=1)
        return ordered[:, 0], ordered[:, 1]

    @cached_property
    def plurality(self) -> Floats:
        """The largest count of each row, [rows]."""
        return plurality(self.counts).astype(np.float64)

    def answer_chance(self, settings: Settings) -> Floats:
        """Probability that each row is answered, [rows]."""
        if settings.threshold is None or settings.sigma1 is None:
            return np.ones(self.rows)
        return np.asarray(ndtr((self.plurality - settings.threshold) / settings.sigma1))

    def agreement_chance(self, settings: Settings) -> Floats:
        """Probability that an answer is the plurality of the teachers alone, [rows]."""
        return np.asarray(ndtr(-self._interpolated(self._losing_scores, settings.sigma2)))

    def rival(self, sigma2: float) -> Floats:
        """The count at which a single rival would win as often as all losers do, [rows]."""
        return self.plurality + np.sqrt(2.0) * sigma2 * self._interpolated(self._scores, sigma2)

    def _interpolated(self, by_sigma: Floats, sigma2: float) -> Floats:
        """σ·z is nearly linear in σ; `by_sigma` holds z on the ladder, [ladder, rows]."""
        sigmas = _LADDER * self.most_votes
        right = int(np.clip(np.searchsorted(sigmas, sigma2), 1, sigmas.size - 1))
        low, high = sigmas[right - 1], sigmas[right]
        share = (sigma2 - low) / (high - low)
        mixed = (1.0 - share) * low * by_sigma[right - 1] + share * high * by_sigma[right]
        return mixed / sigma2

    @cached_property
    def _scores(self) -> Floats:
        """z, the normal quantile of the probability that the plurality loses, [ladder, rows]."""
        return np.stack(
            [
                GNMax(self.most_votes, self.classes, sigma2=sigma).scores(self.counts)
                for sigma in (_LADDER * self.most_votes).tolist()
            ]
        )

    @cached_property
    def _losing_scores(self) -> Floats:
        """Like `_scores`, for the plurality of the teachers alone, [ladder, rows]."""
        if self.alone is None:
            return self._scores
        overruled = np.flatnonzero(
            votes_for(self.alone, winners(self.counts)) < plurality(self.alone)
        )
        found = self._scores.copy()
        labels = winners(self.alone)[overruled]
        for place, sigma in enumerate((_LADDER * self.most_votes).tolist()):
            won = _win_chance(np.asarray(dense(self.counts[overruled])), labels, sigma)
            found[place, overruled] = -ndtri(np.clip(won, 1e-12, 1.0 - 1e-12))
        return found


def _with_guesses(counts: Histograms, guesses: Ints | Floats, weight: int) -> Histograms:
    """Histograms with so many votes of a prior in each row where it has a guess."""
    if guesses.ndim == 1:
        return with_votes(counts, guesses.astype(np.int64), weight)
    votes = shared_out(guesses.astype(np.float64), weight)
    return counts.plus(votes) if isinstance(counts, SparseCounts) else counts + votes


def _win_chance(counts: Floats, labels: Ints, sigma: float) -> Floats:
    """Probability that a given class of each row has the largest noisy count, [rows]."""
    own = np.take_along_axis(counts, labels[:, None], axis=1)
    logs = log_ndtr((own - counts)[:, :, None] / sigma + _NODES)
    np.put_along_axis(logs, labels[:, None, None], 0.0, axis=1)
    density = np.exp(logs.sum(axis=1) - 0.5 * _NODES**2) / np.sqrt(2.0 * np.pi)
    return density.sum(axis=1) * (_NODES[1] - _NODES[0])


def of_file(
    counts: Histograms, teachers: int, *, teachers_per_record: int = 1, guesses: Ints | Floats | None = None
) -> VoteModel:
    """The model of a file: these very rows, in this order."""
    return VoteModel(counts, teachers, teachers_per_record=teachers_per_record, guesses=guesses)


def made_up(
    *,
    teachers: int,
    classes: int,
    levels: Sequence[float],
    kinds: Sequence[str] = KINDS,
    each: int = 60,
    teachers_per_record: int = 1,
    prior_accuracy: float | None = None,
    seed: int = PUBLIC_SEED,
) -> VoteModel:
    """Public ensembles of one shape: every level of agreement with every kind of queries.

    Args:
        teachers, classes: the shape.
        levels: mean probabilities that a teacher is right.
        kinds: some of `KINDS`.
        each: rows drawn for each ensemble.
        teachers_per_record: k.
        prior_accuracy: how often a public prior guesses the true class; None without a prior.
        seed: of the draws; public.
    """
    random = np.random.default_rng(seed)
    pairs = [(level, kind) for level in levels for kind in kinds]
    drawn = [
        _drawn(teachers, classes, level, kind, each, int(random.integers(2**31)))
        for level, kind in pairs
    ]
    guesses = None
    if prior_accuracy is not None:
        truth = np.concatenate([truth for _, truth in drawn])
        wrong = random.random(truth.size) >= prior_accuracy
        guesses = (truth + np.where(wrong, random.integers(1, classes, truth.size), 0)) % classes
    return VoteModel(
        stacked([counts for counts, _ in drawn]),
        teachers,
        tuple(level for level, _ in pairs),
        tuple(kind for _, kind in pairs),
        is_file=False,
        teachers_per_record=teachers_per_record,
        guesses=guesses,
    )


def _drawn(
    teachers: int, classes: int, level: float, kind: str, rows: int, seed: int
) -> tuple[Histograms, Ints]:
    """Histograms and true classes of one ensemble."""

    def votes(agreement: float, seed: int) -> tuple[Histograms, Ints]:
        return SyntheticEnsemble(
            teachers=teachers,
            classes=classes,
            queries=rows,
            agreement=agreement,
            spread=_SPREADS[kind],
        ).draw(seed)

    counts, truth = votes(level, seed)
    if kind != KINDS[-1]:
        return counts, truth
    hard_counts, hard_truth = votes(max(level - _RARE_LOSS, _LEAST_AGREEMENT), seed + 1)
    rare = np.arange(rows) % _RARE_EVERY == _RARE_EVERY - 1
    chosen = np.where(rare, rows + np.arange(rows), np.arange(rows))
    return stacked([counts, hard_counts])[chosen], np.where(rare, hard_truth, truth)
