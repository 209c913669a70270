"""The lattice on which a vote moves a Confident query least: its plurality beside its rivals.

One vote moves the score z of a Gaussian argmax by L = √2/σ at most. Beside v = max_j n_j it is
tied: z falls by L/2 or more where v gains a vote, moves by L/2 at most where v stays, and rises by
L/2 or more where v loses one (THEORY.md, section 4.6). So

  y = z + v·L/2

moves by L/2 at most, whatever v does. For two classes y is the rival's count, over σ√2; a window of
d votes in v and in y is the set of votes with d more or fewer for either of the two, where one in v
and z would have the rival gain a vote for each that the plurality gains.

Cells of (v, y) are those of (v, z), sheared: with K columns to a half of L, a row is shifted by K
beside the one below it. In a row no z is above the highest that v allows (`worst_scores`), and
columns beyond cost what the highest does: sound, since no votes are there, and monotone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from pate_cli.accounting.score_grid import ScoreGrid
from pate_cli.core.arrays import Floats, Ints

__all__ = ["RivalColumns"]

_EVERY = slice(None)
# Scores end where they cost nothing, y does not: with little noise its columns are too many.
_MOST_COLUMNS = 4


@dataclass(frozen=True, eq=False)
class RivalColumns:
    """Columns of y for rows v = 0 … τ; all fields are public.

    Attributes:
        scores: the grid of z, with L/2 in whole cells.
        grid: the grid of y, of the same step; a neighbour moves y by at most its stride.
        shift: K, columns by which y is ahead of z in a row beside the row below.
        highest: the last column of z that v allows, [rows].
    """

    scores: ScoreGrid
    grid: ScoreGrid
    shift: int
    highest: Ints

    @classmethod
    def of(cls, scores: ScoreGrid, *, half: float, highest: Floats) -> RivalColumns | None:
        """Those for a grid of z; None where they would be many more than its own.

        Args:
            scores: the grid of z, of which `half` is a whole number of steps.
            half: how far one vote moves y at most, the error of computed scores included.
            highest: no computed score with a plurality of v is above it, [rows].
        """
        shift = round(half / scores.step)
        if shift > _MOST_COLUMNS * scores.size:
            return None
        columns = scores.cells(highest)
        # At least 0: nobody's plurality loses less often than with two classes, one without votes.
        # Where v leaves the lowest score alone, columns cost the same and may end anywhere.
        ahead = columns + scores.first + shift * np.arange(columns.size)
        last = int(ahead.max(where=columns > 0, initial=0))
        size = -(-(last + 1) // scores.block) * scores.block
        if size > _MOST_COLUMNS * scores.size:
            return None
        grid = replace(scores, stride=min(shift, size), first=0, size=size)
        return cls(scores, grid, shift, columns)

    @property
    def fall(self) -> float:
        """How much lower z is in a column beside the row below it."""
        return self.shift * self.grid.step

    def cells(self, cells: Ints) -> Ints:
        """Cells (v, column of y) for cells (v, column of z), [cells, 2]."""
        columns = cells[:, 1] + self.scores.first + self.shift * cells[:, 0]
        return np.stack([cells[:, 0], np.clip(columns, 0, self.grid.size - 1)], axis=1)

    def scores_at(self, start: int, stop: int, columns: Ints | slice = _EVERY) -> Ints:
        """Columns of z for columns of y in rows start ≤ v < stop, [stop − start, columns]."""
        asked = np.arange(self.grid.size)[columns] - self.scores.first
        ahead = self.shift * np.arange(start, stop)[:, None]
        return np.clip(asked - ahead, 0, self.highest[start:stop, None])
