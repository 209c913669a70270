"""About what queries cost under the conditional bound, by two counts each: for a choice.

A run takes seconds an order for it, and a choice looks at hundreds of settings. Nearly always the
vote that costs most moves between the two largest classes, and it costs about what it would between
two classes alone. So a query is a pair (x, y): x its largest count and y its second,
a little of the way towards the count at which a single rival would win as often as all of them do.
With p the chance that the test passes and h + 1 the moment of the coin "x wins", both before a vote
moves from one to the other and after,

  log[(1 − p)^λ (1 − p')^{1−λ} + p^λ p'^{1−λ} (1 + h)]/(λ − 1)

is a table over pairs, and what votes can reach within d moves is a hexagon around each, so that
test and argmax move together. On the samples and on made-up ensembles (3 to 20 classes, σ2 from 6%
to 25% of the teachers, λ from 6 to 20) the bound of a run is 1.00 to 1.08 times that.

A record with k votes costs about what one vote costs among so many times fewer votes: all numbers
of votes are counted in k's.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.core.arrays import Floats, Ints
from pate_cli.planning.sample import VoteSample
from pate_cli.planning.setting import Setting

_Singles: TypeAlias = NDArray[np.float32]

# How far the second count goes towards that of the single rival, and how far above it all a run
# is, on the ensembles named above.
_RIVAL_SHARE, _RUN_ABOVE = 0.25, 1.01
# Counts are told apart to so many steps at most.
_MOST_STEPS = 128
# Distances looked at, in steps; those between are on straight lines.
_DISTANCES = np.array([0, 1, 2, 4, 7, 11, 16, 23, 32, 45, 63])


@dataclass(frozen=True, eq=False)
class PairTable:
    """The pairs of a sample's rows at one σ2, in steps of so many votes, and what pairs cost.

    Attributes:
        unit: k, so many votes that all numbers here are counted in.
        step: how many of them a step is.
        most: (τ + B)/k, rounded up.
        pairs: distinct (x, y), [distinct, 2].
        place: which of them each row has, [queries].
        two: whether there are two classes alone, of which a run knows the cost both ways.
        full: whether all votes are there, and so all on one of them or the other.
    """

    unit: int
    step: int
    most: int
    pairs: Ints
    place: Ints
    two: bool
    full: bool

    @classmethod
    def of(cls, sample: VoteSample, sigma2: float, *, most_steps: int | None = None) -> Self:
        """Those of a sample, counts told apart to so many steps at most."""
        unit = sample.teachers_per_record
        most = -(-sample.most_votes // unit)
        step = -(-most // (most_steps or _MOST_STEPS))
        x, second = sample.two_largest
        rival = x + math.sqrt(2.0) * sigma2 * sample.scores(Setting(None, None, sigma2))
        y = second + _RIVAL_SHARE * np.maximum(rival - second, 0.0)
        y = np.minimum(y, np.minimum(x, sample.most_votes - x))
        found, place = np.unique(
            np.round(np.column_stack([x, y]) / (unit * step)).astype(np.int64),
            axis=0,
            return_inverse=True,
        )
        two = sample.classes == 2
        full = two and bool(np.all(x + second >= sample.most_votes))
        return cls(unit, step, most, found, place.reshape(-1), two, full)

    @property
    def distances(self) -> Floats:
        """Those that matter, in records: between them costs are on straight lines."""
        return (self.steps * self.step).astype(np.float64)

    @property
    def steps(self) -> Ints:
        """The same in steps."""
        return _DISTANCES[: np.searchsorted(_DISTANCES, (DISTANCES - 1) / self.step) + 1]

    def within(self, setting: Setting, order: float) -> Floats:
        """The largest cost of each pair's hexagon, [distances, distinct], nats."""
        return costs_within([(self, setting)], [order])[0][0]

    def moves(self, setting: Setting, order: float) -> Floats:
        """What a vote between them costs at every (x, y), [x, y], nats; 0 where no votes are so."""
        step, most = self.step, -(-self.most // self.step)
        x, y = np.arange(most + 1)[:, None], np.arange(most + 1)[None, :]
        # Of a vote from x to y; the other way the pair is (y, x).
        noise = math.sqrt(2.0) * setting.sigma2 / self.unit
        gaps = np.arange(-most, most + 1, dtype=np.float64) * (step / noise)
        worst = np.zeros((most + 1, most + 1))
        for back in (False, True) if self.two else (False,):
            sides = _coin(gaps, gaps - 2.0 / noise, order, back=back)
            log_moment = np.logaddexp(*sides)[x - y + most]
            if setting.threshold is not None and setting.sigma1 is not None:
                before, after = step * np.maximum(x, y), np.maximum(step * x - 1, step * y + 1)
                threshold, sigma1 = setting.threshold / self.unit, setting.sigma1 / self.unit
                z = (np.arange(step * most + 2.0) - threshold) / sigma1
                # What passes and what fails, by v and by v' − v from −1 to 1.
                moved = z + np.array([-1.0, 0.0, 1.0])[:, None] / sigma1
                passed, failed = (
                    side[after - before + 1, before] for side in _coin(z, moved, order, back=back)
                )
                log_moment = np.logaddexp(failed, passed + log_moment)
            worst = np.maximum(worst, log_moment / (order - 1.0))
        worst = np.maximum(worst, worst.T)
        beyond = (x + y) * step - self.most
        reachable = np.abs(beyond) < step if self.full else beyond < step
        return np.where(reachable, worst, 0.0)


def costs_within(
    several: Sequence[tuple[PairTable, Setting]], orders: Sequence[float]
) -> list[Floats]:
    """What pairs cost within each distance, for tables and settings of one sample at once.

    Returns:
        Of each, [orders, distances, distinct], nats.
    """
    # Single precision halves the time, and a choice does not see it.
    costs = np.array(
        [[table.moves(setting, order) for order in orders] for table, setting in several],
        dtype=np.float32,
    )
    found: list[list[_Singles]] = [[] for _ in several]
    reached = 0
    for distance in several[0][0].steps.tolist():
        costs = _grown(costs, distance - reached)
        reached = distance
        for place, (table, _) in enumerate(several):
            x, y = table.pairs.T
            found[place].append(costs[place][:, x, y])
    return [
        (1.0 if table.two else _RUN_ABOVE) * np.stack(each, axis=1).astype(np.float64)
        for each, (table, _) in zip(found, several, strict=True)
    ]


def _coin(z: Floats, moved: Floats, order: float, *, back: bool) -> tuple[Floats, Floats]:
    """log of p^λ p'^{1−λ} for either side of Φ(z) against Φ(z'), or the other way round."""
    if back:
        z, moved = moved, z
    heads, tails = (
        order * log_ndtr(side * z) + (1.0 - order) * log_ndtr(side * moved) for side in (1.0, -1.0)
    )
    return heads, tails


def _grown(costs: _Singles, distance: int) -> _Singles:
    """The maximum over so many moves: x or y gains or loses a step, or one gives it to the other.

    A hexagon is the sum of three segments, (1, 0), (0, −1) and (−1, 1), each so many steps long.
    """
    for dx, dy in ((1, 0), (0, -1), (-1, 1)):
        reached = 0
        while reached < distance:
            more = min(reached + 1, distance - reached)
            costs = _with_shifted(costs, more * dx, more * dy)
            reached += more
    return costs


def _with_shifted(costs: _Singles, dx: int, dy: int) -> _Singles:
    """The larger of costs[x, y] and costs[x + dx, y + dy], where that is inside."""
    larger, size = costs.copy(), costs.shape[-1]
    if max(abs(dx), abs(dy)) >= size:
        return larger
    to_x, to_y = (slice(max(-by, 0), size - max(by, 0)) for by in (dx, dy))
    from_x, from_y = (slice(max(by, 0), size - max(-by, 0)) for by in (dx, dy))
    here, there = costs[..., to_x, to_y], costs[..., from_x, from_y]
    np.maximum(here, there, out=larger[..., to_x, to_y])
    return larger
