"""A quick approximation of what queries cost: two counts stand for a histogram.

A vote costs most where it moves between the two largest classes, and then about what it would cost
if no other class existed. So a query is a pair (x, y): x its largest count and y the second, moved
a little towards the count at which one rival would win as often as all losers together do. With p
the probability of passing the test and w the probability that x wins, before a vote moves from one
to the other, and p', w' after it, the query's RDP cost at order λ is

  log[(1−p)^λ (1−p')^{1−λ} + p^λ p'^{1−λ} (w^λ w'^{1−λ} + (1−w)^λ (1−w')^{1−λ})] / (λ−1).

Within d votes the pair can become any pair of a hexagon around it: each count gains or loses votes,
or one gives votes to the other. The largest cost in the hexagon stands for distance d.

All of it is a table over pairs on a grid of at most `_CELLS` cells a side, which takes a few
milliseconds for each settings. `exact_costs` says by how much the accountant's own cost is larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.core.arrays import Floats, Ints
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import VoteModel

FEW_DISTANCES: Final = np.array([0, 1, 2, 4, 7, 11, 16, 23, 32, 45, DISTANCES - 1])
"""Distances that are looked at; between them costs are nearly on straight lines."""

_CELLS, _TOWARDS_RIVAL = 40, 0.25
Singles: TypeAlias = NDArray[np.float32]


def to_every_distance(distances: Floats) -> Floats:
    """Return a matrix of linear interpolation, [distances, DISTANCES]; flat beyond the last."""
    every = np.arange(DISTANCES, dtype=np.float64)
    return np.stack([np.interp(every, distances, row) for row in np.eye(distances.size)])


def pair_costs(
    votes: VoteModel, settings: Sequence[Tuning], orders: Floats, *, cells: int = _CELLS
) -> tuple[Floats, Floats, Floats]:
    """Return about what each row costs at several settings, and what any votes cost at most.

    Args:
        votes: the rows.
        settings: all with the prior weight of `votes`.
        orders: λ, [orders].
        cells: a side of the grid; more are slower and closer.

    Returns:
        Costs [settings, orders, distances, rows] in nats; the distances, in records; and the
        largest cost of any pair, [settings, orders].
    """
    record = votes.teachers_per_record
    most = -(-votes.most_votes // record)
    step = max(most / cells, 1.0)
    size = int(np.ceil(most / step)) + 1
    tables = np.array(
        [_moves(each, record, step, size, most, votes.classes == 2, orders) for each in settings],
        dtype=np.float32,
    )
    largest = tables.max(axis=(2, 3)).astype(np.float64)
    places = [_pairs(votes, each.sigma2, record * step, size) for each in settings]
    steps = np.unique(np.round(FEW_DISTANCES / step).astype(np.int64))
    found, reached = [], 0
    for distance in steps.tolist():
        tables = _grown(tables, distance - reached)
        reached = distance
        found.append([table[:, x, y] for table, (x, y) in zip(tables, places, strict=True)])
    costs = np.moveaxis(np.array(found, dtype=np.float64), 0, 2)
    return costs, (steps * step).astype(np.float64), largest


def _pairs(votes: VoteModel, sigma2: float, unit: float, size: int) -> tuple[Ints, Ints]:
    """The cell of each row's pair, in units of so many votes."""
    x, second = votes.largest_two
    y = second + _TOWARDS_RIVAL * np.maximum(votes.rival(sigma2) - second, 0.0)
    y = np.clip(y, 0.0, np.minimum(x, votes.most_votes - x))
    most = np.minimum(np.round(x / unit).astype(np.int64), size - 1)
    return most, np.minimum(np.round(y / unit).astype(np.int64), size - 1 - most)


def _moves(
    settings: Tuning,
    record: int,
    step: float,
    size: int,
    most: int,
    both_ways: bool,
    orders: Floats,
) -> Floats:
    """Costs of one vote between the classes of each pair, [orders, size, size], nats."""
    x, y = np.arange(size)[:, None], np.arange(size)[None, :]
    noise = np.sqrt(2.0) * settings.sigma2 / record
    gaps = np.arange(1 - size, size) * (step / noise)
    worst = np.zeros((orders.size, size, size))
    at = orders[:, None]
    for back in (False, True) if both_ways else (False,):
        moment = np.logaddexp(*_coin(gaps, gaps - 2.0 / noise, at, back))[:, x - y + size - 1]
        if settings.threshold is not None and settings.sigma1 is not None:
            v, moved = step * np.maximum(x, y), np.maximum(step * x - 1.0, step * y + 1.0)
            z, moved_z = (
                (count - settings.threshold / record) * record / settings.sigma1
                for count in (v, moved)
            )
            passed, failed = _coin(z, moved_z, orders[:, None, None], back)
            moment = np.logaddexp(failed, passed + moment)
        worst = np.maximum(worst, moment / (orders - 1.0)[:, None, None])
    worst = np.maximum(worst, np.swapaxes(worst, 1, 2))
    return np.where((x + y) * step < most + step, worst, 0.0)


def _coin(z: Floats, moved: Floats, order: Floats, back: bool) -> tuple[Floats, Floats]:
    """Logs of p^λ p'^{1−λ} for both sides of the coins Φ(z) and Φ(z'), or the other way round."""
    if back:
        z, moved = moved, z
    heads = order * log_ndtr(z) + (1.0 - order) * log_ndtr(moved)
    return heads, order * log_ndtr(-z) + (1.0 - order) * log_ndtr(-moved)


def _grown(tables: Singles, steps: int) -> Singles:
    """The maximum over a hexagon: the sum of three segments of so many steps each."""
    for dx, dy in ((1, 0), (0, -1), (-1, 1)):
        reached = 0
        while reached < steps:
            more = min(reached + 1, steps - reached)
            tables = _with_shifted(tables, more * dx, more * dy)
            reached += more
    return tables


def _with_shifted(tables: Singles, dx: int, dy: int) -> Singles:
    """The larger of each cell and the one (dx, dy) further on, where that exists."""
    size = tables.shape[-1]
    larger = tables.copy()
    if max(abs(dx), abs(dy)) >= size:
        return larger
    to_x, to_y = (slice(max(-by, 0), size - max(by, 0)) for by in (dx, dy))
    from_x, from_y = (slice(max(by, 0), size - max(-by, 0)) for by in (dx, dy))
    here = larger[..., to_x, to_y]
    np.maximum(here, tables[..., from_x, from_y], out=here)
    return larger
