"""q after the worst d moves of votes: Proposition 19's n* and n** for many rows at once.

Histograms are kept as runs: the winner's count, then the distinct counts of the other classes in
descending order with how many classes have each. Rows with many empty classes become short, and
the result of removing d votes one by one from the current runner-up is found in one step.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from pate_cli.arrays import Floats, Ints

__all__ = ["Runs", "runs_of"]


# log Φ never falls below this, so that differences of logarithms stay finite.
_FLOOR = -1e300


@dataclass(frozen=True)
class Runs:
    """Sorted histograms in runs. `sizes` is 0 in the padding at the end of a row.

    winner [rows]: highest count. others [rows, runs]: distinct counts of the other classes,
    descending. sizes [rows, runs]: how many classes have that count. spent [rows, runs]: votes it
    takes to shave all runs up to this one down to the next. log_tail [gaps]: log Φ(−g/(√2 σ)) at
    every whole gap g.
    """

    winner: Ints
    others: Ints
    sizes: Ints
    spent: Ints
    log_tail: Floats
    cap: float

    def __len__(self) -> int:
        return self.winner.size

    @property
    def gap(self) -> Ints:
        """n(1) − n(2) of each row."""
        return np.asarray(self.winner - self.others[:, 0])

    @property
    def losing(self) -> Ints:
        """Σ_{i≥2} n(i) of each row: the votes there are to take away from the others."""
        return np.asarray((self.others * self.sizes).sum(axis=1))

    def closer(self, rows: Ints, moves: Ints) -> Floats:
        """log q of n*: the winner loses `moves` votes and the runner-up gains them.

        The largest q within that distance (Proposition 19.1), while 2·moves ≤ n(1) − n(2).
        """
        gaps = np.abs(self.winner[rows, np.newaxis] - self.others[rows] - moves[:, np.newaxis])
        sizes = self.sizes[rows].astype(np.float64)
        sizes[:, 0] -= 1.0
        runner_up = self.gap[rows] - 2 * moves
        return self._log_q(
            np.concatenate([runner_up[:, np.newaxis], gaps], axis=1),
            np.concatenate([np.ones((rows.size, 1)), sizes], axis=1),
        )

    def apart(self, rows: Ints, moves: Ints) -> Floats:
        """log q of n**: the winner gains `moves` votes, each taken from the current runner-up.

        The smallest q within that distance (Proposition 19.2), while moves ≤ Σ_{i≥2} n(i). The
        shaved classes end level, some of them one vote lower than the rest.
        """
        others, sizes, spent = self.others[rows], self.sizes[rows], self.spent[rows]
        moved = moves[:, np.newaxis]
        # The runs that are shaved: all before the first whose cost exceeds the moves, and it.
        last = np.minimum((spent <= moved).sum(axis=1), self._last_run(rows))
        index = np.arange(rows.size)
        shaved = np.arange(others.shape[1]) <= last[:, np.newaxis]
        count = np.where(shaved, sizes, 0).sum(axis=1)
        before = np.where(last > 0, spent[index, np.maximum(last - 1, 0)], 0)
        drop, lower = np.divmod(moves - before, count)
        level = others[index, last] - drop
        top = self.winner[rows] + moves
        gaps = np.where(shaved, 0, top[:, np.newaxis] - others)
        weights = np.where(shaved, 0, sizes)
        return self._log_q(
            np.concatenate([np.stack([top - level, top - level + 1], axis=1), gaps], axis=1),
            np.concatenate([np.stack([count - lower, lower], axis=1), weights], axis=1),
        )

    def _last_run(self, rows: Ints) -> Ints:
        return np.asarray((self.sizes[rows] > 0).sum(axis=1) - 1)

    def _log_q(self, gaps: Ints, weights: Ints | Floats) -> Floats:
        """Proposition 7 on runs: log Σ weight·Φ(−gap/(√2 σ)), capped at log(1 − 1/m)."""
        terms = self.log_tail[np.minimum(gaps, self.log_tail.size - 1)]
        terms[weights == 0] = -np.inf
        largest = terms.max(axis=1)
        terms -= largest[:, np.newaxis]
        union = largest + np.log((weights * np.exp(terms)).sum(axis=1))
        return np.minimum(union, self.cap)


def runs_of(histograms: Ints, *, sigma: float, moves: int) -> Runs:
    """Runs of whole-vote histograms [rows, classes], with tails for up to `moves` moves."""
    ordered = -np.sort(-histograms, axis=1)
    winner, rest = ordered[:, 0], ordered[:, 1:]
    rows, classes = rest.shape
    starts = np.ones((rows, classes), dtype=bool)
    starts[:, 1:] = rest[:, 1:] != rest[:, :-1]
    run = np.cumsum(starts, axis=1) - 1
    longest = int(run[:, -1].max(initial=0)) + 1
    row = np.broadcast_to(np.arange(rows)[:, np.newaxis], rest.shape)
    sizes = np.zeros((rows, longest), dtype=np.int64)
    np.add.at(sizes, (row, run), 1)
    others = np.zeros((rows, longest), dtype=np.int64)
    others[row, run] = rest
    following = np.concatenate([others[:, 1:], np.zeros((rows, 1), dtype=np.int64)], axis=1)
    spent = np.cumsum(np.cumsum(sizes, axis=1) * (others - following), axis=1)
    reach = int(winner.max(initial=0)) + moves + 2
    log_tail = np.maximum(log_ndtr(-np.arange(reach) / (np.sqrt(2.0) * sigma)), _FLOOR)
    cap = float(np.log1p(-1.0 / (classes + 1)))
    return Runs(winner, others, sizes, spent, np.asarray(log_tail, dtype=np.float64), cap)
