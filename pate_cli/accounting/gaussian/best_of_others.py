"""The law of the largest noisy count among a row's classes but those that a vote may touch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from pate_cli.accounting.gaussian.three_outcomes import Lattice
from pate_cli.core.arrays import Counts, Floats, Ints

__all__ = ["BestOfOthers", "Touched"]

# The classes past this rank, and past a third of all, are summed once a row: they are hardly ever
# the touched ones.
_HEAD = 12


@dataclass(frozen=True, eq=False)
class Touched:
    """Classes that a vote may touch, one or two of a row: cases.

    Of equal counts the first class stands for all, and the first two for a tie.

    Attributes:
        rows: [cases].
        ranks: where the classes stand in their row, the larger count first, [cases, 1 or 2].
        counts: their counts (votes), [cases, 1 or 2].
        rivals: the largest count of the other classes (votes), [cases].
    """

    rows: Ints
    ranks: Ints
    counts: Counts
    rivals: Counts

    @classmethod
    def _of(cls, counts: Counts, ranks: list[list[int]], *, each: bool) -> Touched:
        """Cases of these ranks; but for `each`, of equal counts the first only."""
        first = np.ones(counts.shape, dtype=np.bool_)
        first[:, 1:] = counts[:, 1:] != counts[:, :-1]
        rows, who, rivals = [], [], []
        for chosen in ranks:
            fresh = np.ones(len(counts), dtype=np.bool_)
            for place, rank in enumerate(chosen):
                # The second of a tie goes with the first.
                tied = place > 0 and rank == chosen[place - 1] + 1
                fresh &= first[:, rank] | tied | each
            at = np.flatnonzero(fresh)
            rows.append(at)
            who.append(np.tile(np.array(chosen), (at.size, 1)))
            rivals.append(counts[at, min({*range(len(chosen) + 1)}.difference(chosen))])
        every_row, every_rank = np.concatenate(rows), np.concatenate(who)
        touched = counts[every_row[:, None], every_rank]
        return cls(every_row, every_rank, touched, np.concatenate(rivals))

    @classmethod
    def leaders(cls, counts: Counts) -> Touched:
        """The two largest counts of each row, for histograms in descending order."""
        return cls._of(counts, [[0, 1]], each=True)

    @classmethod
    def pairs(cls, counts: Counts) -> Touched:
        """All other pairs."""
        last = counts.shape[1]
        ranks = [[one, two] for one in range(last - 1) for two in range(one + 1, last)]
        return cls._of(counts, ranks[1:], each=False)

    @classmethod
    def single(cls, counts: Counts) -> Touched:
        """Every class."""
        return cls._of(counts, [[rank] for rank in range(counts.shape[1])], each=False)

    def take(self, chosen: Ints) -> Touched:
        """Some of them."""
        return Touched(
            self.rows[chosen], self.ranks[chosen], self.counts[chosen], self.rivals[chosen]
        )

    def parts(self, size: int) -> Iterator[tuple[Ints, Touched]]:
        """All of them, so many at a time, ordered by gap, and where they stand."""
        order = np.argsort(self.gaps, kind="stable")
        for start in range(0, len(self), size):
            at = order[start : start + size]
            yield at, self.take(at)

    @property
    def gaps(self) -> Ints:
        """The lead of the larger count (votes)."""
        return np.asarray(self.counts[:, 0] - self.counts[:, -1], dtype=np.int64)

    def __len__(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, eq=False)
class BestOfOthers:
    """C, the largest noisy count of a row once the touched classes are left out.

    Sums of logs without the touched classes, never differences: far out, where a moment may be
    huge, a probability must keep its digits.

    Attributes:
        lattice: where j is.
        counts: histograms in descending order, [rows, classes].
        head: how many classes of each row are summed as they are needed.
        log_cdf: log Pr[n + σN ≤ j] by the count n, [τ + 1, laws + 1], j descending.
        low_log_cdf: its sum over the classes from rank `head` on, [rows, laws + 1].
    """

    lattice: Lattice
    counts: Counts
    head: int
    log_cdf: Floats
    low_log_cdf: Floats

    @classmethod
    def of(cls, counts: Counts, lattice: Lattice) -> BestOfOthers:
        """For histograms [rows, classes] in descending order."""
        j = np.append(lattice.j(), -lattice.below - 1)
        counted = np.arange(lattice.teachers + 1)[:, None] * lattice.cells
        log_cdf = log_ndtr((j - counted) * lattice.unit)
        head = max(_HEAD, counts.shape[1] // 3)
        low_log_cdf = np.zeros((len(counts), log_cdf.shape[1]))
        for column in counts.T[head:]:
            low_log_cdf += log_cdf[column]
        return cls(lattice, counts, head, log_cdf, low_log_cdf)

    def law(self, touched: Touched) -> Floats:
        """Pr[⌈KC⌉ = j], j descending, [cases, laws]."""
        rows, ranks = touched.rows, touched.ranks
        high = ranks.max(axis=1) < self.head
        log_cdf = np.where(high[:, None], self.low_log_cdf[rows], 0.0)
        for rank in range(self.counts.shape[1]):
            untouched = (ranks != rank).all(axis=1)
            at = np.flatnonzero(untouched & ~high if rank >= self.head else untouched)
            if at.size:
                log_cdf[at] += self.log_cdf[self.counts[rows[at], rank]]
        # Everything above the largest j is put on it, and everything below the least on that.
        log_cdf[:, 0], log_cdf[:, -1] = 0.0, -np.inf
        return np.exp(log_cdf[:, :-1]) * -np.expm1(np.diff(log_cdf, axis=1))
