"""First pass of a search: a rough ε for every setting and several numbers of queries."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from os import cpu_count

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.arrays import Floats
from pate_cli.release.plan import failure_delta
from pate_cli.tuning.electorate import Electorate, capped_mean
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.grid import Grid
from pate_cli.tuning.lattice import Lattice, Tests
from pate_cli.words import ReleaseKind

__all__ = ["SPREADS", "Survey", "in_parallel", "survey"]


SPREADS = 2.0
"""Standard deviations of the release's noise that count as published on top of the mean."""

_MOST_ROWS = 10_000
_MOST_THREADS = 4
_STOPS, _CAPPED_STOPS = 14, 40
# ε's that decide which orders are looked at, and what the best λ − 1 is of 2 log(1/δ)/ε.
_EPSILONS = np.geomspace(0.2, 12.0, 9)
_AROUND_TARGET = np.geomspace(0.4, 2.2, 5)
_SMALL = np.array([0.1, 0.25])
_ORDER_SHARE = 0.67
_LEAST_ORDER, _MOST_ORDER = 1.1, 400.0
_BETA_ORDERS = np.geomspace(0.06, 0.45, 8)
_SIGMA_STEPS = 6
# Caps on answers, in standard deviations from the expected number.
_CAPS = (-1.0, 0.0, 1.0, 2.0, 4.0)


@dataclass(frozen=True, eq=False)
class Survey:
    """Estimates at options [options] of every setting [levels of σ2, (T, σ1) pairs].

    An option is a number of first rows and, for data-independent ε, a cap on answers.

    Attributes:
        queries: k1, [options].
        max_answers: k2, [pairs, options]; k1 where nothing is capped.
        answers: expected answers, [pairs, options].
        agreeing: expected answers equal to the plurality, [levels, pairs, options].
        epsilon: what would be published, [levels, pairs, options], nats.
        order: the order it was found at, same shape.
        monotone: whether options are ascending in everything, so that values in between can be
            interpolated.
    """

    queries: NDArray[np.int64]
    max_answers: Floats
    answers: Floats
    agreeing: Floats
    epsilon: Floats
    order: Floats
    monotone: bool


def in_parallel(tasks: list[Callable[[], None]]) -> Iterator[None]:
    """Run tasks on a few threads, yielding after each; what has not begun is dropped on exit."""
    pool = ThreadPoolExecutor(max_workers=min(cpu_count() or 1, _MOST_THREADS))
    pending: set[Future[None]] = {pool.submit(task) for task in tasks}
    try:
        while pending:
            done, pending = wait(pending, return_when=FIRST_COMPLETED)
            for one in done:
                one.result()
                yield
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def survey(
    electorate: Electorate, grid: Grid, goal: Goal, *, progress: Callable[[int], None]
) -> Iterator[Survey]:
    """Yield the survey once it is complete, and before that whenever a noise level is done.

    Args:
        electorate: the histograms; at most 10,000 evenly spaced rows are looked at.
        grid: the settings.
        goal: decides what ε means and which orders are worth a look.
        progress: called with 1 for every noise level.
    """
    rows, scale = electorate.sample(_MOST_ROWS)
    if goal.release is ReleaseKind.NONE:
        yield _data_independent(rows, grid, goal, scale)
        progress(len(grid.sigmas2))
        return
    stops = _stops(rows.queries, _STOPS)
    shape = (len(grid.sigmas2), len(grid.pairs), stops.size)
    answers, agreeing = _yields(rows, grid, stops, scale)
    epsilon, order = np.full(shape, np.inf), np.ones(shape)
    queries = np.maximum((stops * scale).round().astype(np.int64), 1)
    found = Survey(
        queries=queries,
        max_answers=np.broadcast_to(queries.astype(np.float64), answers.shape),
        answers=answers,
        agreeing=agreeing,
        epsilon=epsilon,
        order=order,
        monotone=True,
    )
    orders = _orders(goal)
    tests = [
        Tests.of(
            grid.pairs, teachers=rows.teachers, reach=rows.teachers_per_record, order=float(at)
        )
        for at in orders
    ]

    def level(place: int) -> None:
        setting = grid.setting(place, 0)
        for test in tests:
            lattice = Lattice(
                tests=test,
                argmax=rows.mechanism(setting).argmax,
                plurality=rows.plurality.astype(np.float64),
                scores=rows.scores(setting),
                stops=stops,
                scale=scale,
            )
            here = _published(lattice, goal)
            better = here < epsilon[place]
            order[place][better] = test.order
            epsilon[place][better] = here[better]

    for _ in in_parallel([partial(level, at) for at in range(len(grid.sigmas2))]):
        progress(1)
        yield found
    np.maximum.accumulate(epsilon, axis=2, out=epsilon)


def _stops(queries: int, count: int) -> NDArray[np.int64]:
    spread = np.geomspace(max(1.0, queries / 300.0), queries, count)
    return np.unique(np.append(spread.round().astype(np.int64), [1, queries]))


def _orders(goal: Goal) -> Floats:
    epsilons = _EPSILONS
    if goal.target_epsilon is not None:
        around = goal.target_epsilon * _AROUND_TARGET
        # Small ε's as well, for the least that can be reached.
        epsilons = np.append(around, _SMALL[0.7 * around[0] > _SMALL])
    orders = 1.0 + _ORDER_SHARE * 2.0 * math.log(1.0 / goal.delta) / epsilons
    return np.unique(np.clip(orders, _LEAST_ORDER, _MOST_ORDER))


def _yields(
    rows: Electorate, grid: Grid, stops: NDArray[np.int64], scale: float
) -> tuple[Floats, Floats]:
    """(expected answers [pairs, stops], agreeing ones [levels, pairs, stops])."""
    votes = np.arange(rows.teachers + 1)
    chance = np.stack([ndtr((votes - t) / sigma) for t, sigma in grid.pairs])
    part = np.searchsorted(stops, np.arange(rows.queries) + 1)
    place = rows.plurality * stops.size + part

    def by_votes(weights: Floats) -> Floats:
        flat = np.bincount(place, weights=weights, minlength=votes.size * stops.size)
        return np.asarray(np.cumsum(flat.reshape(votes.size, stops.size), axis=1) * scale)

    answers: Floats = chance @ by_votes(np.ones(rows.queries))
    keeps = [ndtr(-rows.scores(grid.setting(level, 0))) for level in range(len(grid.sigmas2))]
    return answers, np.stack([chance @ by_votes(keep) for keep in keeps])


def _published(lattice: Lattice, goal: Goal) -> Floats:
    """Mean plus two standard deviations at the best β and σ_SS, [pairs, stops], nats."""
    order, delta = lattice.tests.order, goal.delta
    rdp, curve = lattice.totals()
    failure = failure_delta(goal.release, delta)
    quantile = float(-ndtri(failure)) if failure > 0.0 else 0.0
    best = np.full(rdp.shape, np.inf)
    for beta in (_BETA_ORDERS / order).tolist():
        excess = (order - 1.0) * math.expm1(2.0 * beta)
        if excess >= 1.0:
            continue
        smooth = (np.exp(-beta * lattice.distances)[:, None, None] * curve).max(axis=0)
        slope = np.maximum(smooth * (quantile + SPREADS), 1e-30)
        # The draw costs a(1/σ + b)²; its sum with slope·σ is least where
        # σ³·slope = 2a(1 + bσ), which a few steps of this fixed point find.
        a = order / (2.0 * (1.0 - excess))
        b = quantile * math.expm1(beta)
        sigma = np.cbrt(2.0 * a / slope)
        for _ in range(_SIGMA_STEPS if b > 0.0 else 0):
            sigma = np.cbrt(2.0 * a * (1.0 + b * sigma) / slope)
        fixed = -beta - math.log1p(-excess) / (2.0 * (order - 1.0))
        np.minimum(best, rdp + a * (1.0 / sigma + b) ** 2 + slope * sigma + fixed, out=best)
    return best + float(conversion_cost(np.array([order]), delta=delta - failure)[0])


def _data_independent(rows: Electorate, grid: Grid, goal: Goal, scale: float) -> Survey:
    """Options of rows and caps, at the guess λμ²/π for k1·w1(λ) + k2·w2(λ)."""
    stops = _stops(rows.queries, _CAPPED_STOPS)
    mean, agreeing = _yields(rows, grid, stops, scale)
    votes = rows.plurality
    variance = []
    for threshold, sigma in grid.pairs:
        chance = ndtr((votes - threshold) / sigma)
        variance.append(np.cumsum(chance * (1.0 - chance))[stops - 1] * scale)
    sd = np.sqrt(np.stack(variance))
    queries = np.tile(np.maximum((stops * scale).round().astype(np.int64), 1), len(_CAPS))
    wide_mean, wide_sd = np.tile(mean, len(_CAPS)), np.tile(sd, len(_CAPS))
    offset = np.repeat(_CAPS, stops.size)
    cap = np.clip(np.ceil(wide_mean + offset * wide_sd), 1.0, queries)
    answers = np.where(cap >= queries, wide_mean, capped_mean(wide_mean, wide_sd, cap))
    reach = float(rows.teachers_per_record)
    sigma1 = np.array([sigma for _, sigma in grid.pairs])[:, None]
    epsilon = np.stack(
        [
            _guess(reach**2 * (queries / sigma1**2 + 2.0 * cap / sigma2**2), goal.delta)
            for sigma2 in grid.sigmas2
        ]
    )
    share = np.tile(agreeing, len(_CAPS)) / np.maximum(wide_mean, 1e-300)
    return Survey(
        queries=queries,
        max_answers=cap,
        answers=answers,
        agreeing=share * answers,
        epsilon=epsilon,
        order=np.ones_like(epsilon),
        monotone=False,
    )


def _guess(mu_squared: Floats, delta: float) -> Floats:
    """min over λ of λμ²/π + conversion, interpolated on a grid of log μ²."""
    orders = 1.0 + np.geomspace(0.02, 1024.0, 115)
    conversion = conversion_cost(orders, delta=delta)
    log_mu = np.log(np.maximum(mu_squared, 1e-12))
    nodes = np.linspace(log_mu.min(), log_mu.max() + 1e-9, 400)
    at_nodes = (np.exp(nodes)[:, None] * orders / np.pi + conversion).min(axis=1)
    return np.interp(log_mu, nodes, np.maximum(at_nodes, 0.0))
