"""Which settings of a survey deserve an exact price."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pate_cli.arrays import Floats
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.grid import Grid, Setting
from pate_cli.tuning.survey import Survey

__all__ = ["Candidate", "candidates", "front"]


# Beyond it an ε says nothing.
_LARGEST_EPSILON = 20.0
# How much agreement counts beside the number of answers, as an exponent.
_TASTES = (0.0, 1.0, 30.0)


@dataclass(frozen=True)
class Candidate:
    """A setting with a rough idea of what to do with it.

    Attributes:
        setting: T, σ1, σ2.
        queries: k1.
        order: the best order seen.
        score: how well it serves the goal; larger is better.
        epsilon: the rough ε, nats.
    """

    setting: Setting
    queries: int
    order: float
    score: float
    epsilon: float


@dataclass(frozen=True, eq=False)
class _Chosen:
    """The best option of every setting, [levels, pairs]."""

    queries: Floats
    epsilon: Floats
    answers: Floats
    agreeing: Floats
    order: Floats


def candidates(found: Survey, grid: Grid, goal: Goal, *, most: int) -> list[Candidate]:
    """The settings that serve the goal best, best first; none where no setting meets it."""
    chosen = _between(found, goal) if found.monotone else _among(found, goal)
    score = goal.score(epsilon=chosen.epsilon, answers=chosen.answers, agreeing=chosen.agreeing)
    best = np.argsort(-score, axis=None, kind="stable")[:most]
    return [
        Candidate(
            setting=grid.setting(int(level), int(pair)),
            queries=max(int(chosen.queries[level, pair]), 1),
            order=float(chosen.order[level, pair]),
            score=float(score[level, pair]),
            epsilon=float(chosen.epsilon[level, pair]),
        )
        for level, pair in zip(*np.unravel_index(best, score.shape), strict=True)
        if np.isfinite(score[level, pair])
    ]


def _between(found: Survey, goal: Goal) -> _Chosen:
    """For each setting the number of rows that the goal asks for, between options if need be."""
    if goal.answers is not None:
        at = _crossing(np.broadcast_to(found.answers, found.epsilon.shape), goal.answers, up=True)
    elif goal.target_epsilon is not None:
        at = _crossing(found.epsilon, goal.target_epsilon, up=False)
    else:
        at = np.full(found.epsilon.shape[:2], float(found.queries.size - 1))
    queries = np.broadcast_to(found.queries.astype(np.float64), found.epsilon.shape)
    # What is asked for is met up to the round-off of interpolation.
    answers, epsilon = _at(np.broadcast_to(found.answers, found.epsilon.shape), at), None
    epsilon = _at(found.epsilon, at)
    if goal.answers is not None:
        answers = np.maximum(answers, np.where(np.isfinite(at), goal.answers, 0.0))
    elif goal.target_epsilon is not None:
        epsilon = np.where(np.isfinite(at), np.minimum(epsilon, goal.target_epsilon), np.inf)
    nearest = np.nan_to_num(at, nan=0.0, posinf=0.0).round().astype(np.int64)
    return _Chosen(
        queries=_at(queries, at, missing=1.0),
        epsilon=np.where(np.isfinite(at), epsilon, np.inf),
        answers=answers,
        agreeing=_at(found.agreeing, at),
        order=np.take_along_axis(found.order, nearest[..., None], axis=2)[..., 0],
    )


def _crossing(values: Floats, level: float, *, up: bool) -> Floats:
    """Where ascending values first reach a level (`up`) or last stay below it; inf if nowhere."""
    size = values.shape[2]
    below = (values < level).sum(axis=2) if up else (values <= level).sum(axis=2)
    left = np.clip(below - 1, 0, max(size - 2, 0))
    low = np.take_along_axis(values, left[..., None], axis=2)[..., 0]
    right = np.minimum(left + 1, size - 1)
    high = np.take_along_axis(values, right[..., None], axis=2)[..., 0]
    with np.errstate(invalid="ignore", divide="ignore"):
        part = np.nan_to_num((level - low) / (high - low), nan=0.0, posinf=0.0, neginf=0.0)
    at = left + np.clip(part, 0.0, 1.0)
    if up:
        return np.where(below == size, np.inf, np.where(below == 0, 0.0, at))
    return np.where(below == 0, np.inf, np.where(below == size, size - 1.0, at))


def _at(values: Floats, at: Floats, *, missing: float = 0.0) -> Floats:
    """Linear interpolation along the last axis at fractional places [levels, pairs]."""
    place = np.where(np.isfinite(at), at, 0.0)
    left = np.minimum(place.astype(np.int64), values.shape[2] - 1)
    right = np.minimum(left + 1, values.shape[2] - 1)
    low = np.take_along_axis(values, left[..., None], axis=2)[..., 0]
    high = np.take_along_axis(values, right[..., None], axis=2)[..., 0]
    share = place - left
    with np.errstate(invalid="ignore"):
        result = np.where(share > 0.0, low + share * (high - low), low)
    return np.where(np.isfinite(at), result, missing)


def _among(found: Survey, goal: Goal) -> _Chosen:
    """For each setting the option that serves the goal best."""
    shape = found.epsilon.shape
    answers = np.broadcast_to(found.answers, shape)
    score = goal.score(epsilon=found.epsilon, answers=answers, agreeing=found.agreeing)
    if goal.open:
        score = np.where(found.queries == found.queries.max(), answers, -np.inf)
    best = np.argmax(score, axis=2)[..., None]

    def take(values: Floats) -> Floats:
        return np.take_along_axis(np.broadcast_to(values, shape), best, axis=2)[..., 0]

    return _Chosen(
        queries=take(found.queries.astype(np.float64)),
        epsilon=take(found.epsilon),
        answers=take(answers),
        agreeing=take(found.agreeing),
        order=take(found.order),
    )


def front(found: Survey, grid: Grid, goal: Goal, *, most: int) -> list[tuple[Candidate, int]]:
    """Settings and numbers of rows that nothing beats in answers, agreement and ε at once.

    Thinned to about `most` over the range of ε; with each its cap on answers (k1 for none).
    """
    shape = found.epsilon.shape
    answers = np.broadcast_to(found.answers, shape)
    share = found.agreeing / np.maximum(answers, 1e-300)
    usable = (found.epsilon <= _LARGEST_EPSILON) & (answers >= 1.0) & (share >= goal.min_agreement)
    where = np.flatnonzero(usable)
    if where.size == 0:
        return []
    epsilon, count = found.epsilon.ravel()[where], answers.ravel()[where]
    agreeing = share.ravel()[where]
    # In each bin of ε, the best by answers alone, by answers that agree, and for the particular.
    bins = max(most // len(_TASTES), 1)
    edges = np.geomspace(max(epsilon.min(), 1e-6), epsilon.max() * (1.0 + 1e-9), bins + 1)
    which = np.clip(np.searchsorted(edges, epsilon, "right") - 1, 0, bins - 1)
    picked: list[int] = []
    for one in range(bins):
        here = np.flatnonzero(which == one)
        if here.size:
            tastes = [count[here] * agreeing[here] ** weight for weight in _TASTES]
            picked += sorted({int(here[np.argmax(taste)]) for taste in tastes})
    kept = [
        i
        for i in picked
        if not any(
            epsilon[j] <= epsilon[i]
            and count[j] >= count[i]
            and agreeing[j] >= agreeing[i]
            and (epsilon[j], count[j], agreeing[j]) != (epsilon[i], count[i], agreeing[i])
            for j in picked
        )
    ]
    result = []
    caps = np.broadcast_to(found.max_answers, shape)
    for i in kept:
        level, pair, option = np.unravel_index(int(where[i]), shape)
        result.append(
            (
                Candidate(
                    setting=grid.setting(int(level), int(pair)),
                    queries=int(found.queries[option]),
                    order=float(found.order[level, pair, option]),
                    score=0.0,
                    epsilon=float(epsilon[i]),
                ),
                int(caps[level, pair, option]),
            )
        )
    return result
