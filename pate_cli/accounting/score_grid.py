"""A grid of scores on which cost and local sensitivity are functions of the same table.

A cost that is exact while its sensitivity is gridded understates the sensitivity. So the cost *is*
defined on the grid, F̃(⌈z/h⌉ h) for a non-decreasing F̃, with h = L/K for a whole K: one vote then
moves a score by at most K cells, exactly.
"""

from __future__ import annotations

import math

import numpy as np

from pate_cli.accounting.gaussian.noisy_max import SCORE_ERROR
from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError

_MOST_NODES = 4_000_000


@dataclass(frozen=True)
class Resolution:
    """How fine a lattice is; any is sound but a quick one, a coarse one charges more.

    Attributes:
        step: largest step between nodes; rounding up costs about (step/2)·|d log F/dz|.
        block: largest width of the blocks that sensitivities at a distance are maxima over.
        per_sigma: blocks of plurality counts per σ1.
        quick: only about, for a choice: costs by a rough search, and nothing that takes long.
    """

    step: float
    block: float
    per_sigma: int
    quick: bool = False


FINE = Resolution(step=0.0025, block=0.015, per_sigma=50)
COARSE = Resolution(step=0.02, block=0.06, per_sigma=16)
QUICK = Resolution(step=0.02, block=0.06, per_sigma=16, quick=True)


@dataclass(frozen=True)
class ScoreGrid:
    """Nodes h·(first + i), i = 0 … size − 1; all fields are public.

    Attributes:
        step: h, in units of the score.
        stride: K, how many cells a neighbour can move a score; at most all of them.
        block: cells per block, a divisor of `stride` and of `size`.
        first: index of the lowest node; scores below it are clamped to it.
        size: number of nodes.
    """

    step: float
    stride: int
    block: int
    first: int
    size: int

    @classmethod
    def spanning(
        cls,
        lowest: float,
        highest: float,
        *,
        lipschitz: float,
        resolution: Resolution = FINE,
        parts: int = 1,
    ) -> ScoreGrid:
        """The grid for scores between two public bounds, of which a neighbour moves L at most.

        Args:
            lowest: the lowest node is at or just below it; scores below are clamped to that.
            highest: no computed score is above it.
            lipschitz: L > 0, the error of a computed score included.
            resolution: how fine.
            parts: of L that are each a whole number of blocks.
        """
        part = lipschitz / parts
        blocks_per_part = math.ceil(part / resolution.block)
        block = math.ceil(part / (blocks_per_part * resolution.step))
        stride = block * blocks_per_part * parts
        step = lipschitz / stride
        first = math.floor(lowest / step)
        last = math.ceil((highest + SCORE_ERROR) / step)
        size = math.ceil((last - first + 1) / block) * block
        if size > _MOST_NODES:
            raise ParameterError(
                f"the noise is so large beside one vote that scores would need {size} cells "
                f"(at most {_MOST_NODES}); lower the noise"
            )
        # Farther than over all cells nothing moves; K times a distance stays within 64 bits.
        return cls(step=step, stride=min(stride, size), block=block, first=first, size=size)

    @property
    def floor(self) -> float:
        """The lowest node: scores below cost what it costs."""
        return self.first * self.step

    @property
    def below(self) -> float:
        """Scores below it may be given as it: they are in the lowest cell."""
        return self.floor - self.step

    def nodes(self) -> Floats:
        """Scores of all nodes, ascending, [size]."""
        return (self.first + np.arange(self.size, dtype=np.float64)) * self.step

    def cells(self, scores: Floats) -> Ints:
        """Index of the first node not below each score (raised by its possible error)."""
        index = np.ceil((scores + SCORE_ERROR) / self.step).astype(np.int64) - self.first
        return np.clip(index, 0, self.size - 1)

    def end(self, lowest: float) -> int:
        """The column where a grid of the same step that clamps scores below `lowest` ends."""
        return math.floor(lowest / self.step) - self.first

    def merged(self, cells: Ints, deeper: ScoreGrid) -> Ints:
        """Cells of a grid of the same step that reaches farther down, as cells of this one."""
        return np.clip(cells + deeper.first - self.first, 0, self.size - 1)
