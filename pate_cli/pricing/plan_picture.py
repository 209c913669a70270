"""The picture of a plan: answers against ε, and ε against teachers, with bands over agreement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.planning.planned import Planned, Point
from pate_cli.pricing.plots import BLUE, VERMILION, drawing, legend_below, logarithmic, new_pair

_SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")


def plan_figure(planned: Planned, around: Sequence[Point]) -> Any:
    """Two panels, or one where the teachers are settled; public.

    Args:
        planned: what was found, which is marked.
        around: points at several numbers of teachers and targets, from `planning.solve.points`.
    """
    figure, (left, right) = new_pair()
    known, goal = planned.known, planned.question.answers or max(planned.answers, 1.0)
    teachers = sorted({point.teachers for point in around})
    with drawing():
        here = [point for point in around if point.teachers == known.teachers]
        _band(
            left,
            np.array([point.epsilon for point in here]),
            np.array([point.answers for point in here]),
            planned,
        )
        left.plot([known.epsilon], [planned.answers], "o", color=VERMILION, label="the plan")
        logarithmic(left.xaxis)
        left.set_ylim(bottom=0.0)
        left.set_xlabel(f"ε at δ = {_power(known.delta)} (nats)")
        left.set_ylabel("answers (expected)")
        left.set_title(f"{known.teachers} teachers", loc="left")
        legend_below(figure, left.get_legend_handles_labels()[0])
        if len(teachers) == 1:
            right.remove()
            return figure
        needed = np.array([_epsilons(around, number, goal) for number in teachers])
        _band(right, np.array(teachers, dtype=np.float64), needed, planned)
        right.plot([known.teachers], [known.epsilon], "o", color=VERMILION)
        logarithmic(right.xaxis)
        logarithmic(right.yaxis)
        right.set_xlabel("teachers")
        right.set_ylabel(f"ε at δ = {_power(known.delta)} (nats)")
        right.set_title(f"{math.floor(goal)} answers", loc="left")
    return figure


def _power(delta: float) -> str:
    """A power of ten as people print it, and any other number as it is."""
    digits, _, exponent = f"{delta:e}".partition("e")
    if float(digits) != 1.0:
        return f"{delta:g}"
    return "10" + str(int(exponent)).translate(_SUPERSCRIPTS)


def _band(axes: Any, at: Floats, values: Floats, planned: Planned) -> None:
    """A line for the middle of the range of agreement, and a band over all of it."""
    levels, middle = planned.levels, len(planned.levels) // 2
    if len(levels) > 1:
        low, high = values.min(axis=1), values.max(axis=1)
        axes.fill_between(
            at,
            low,
            high,
            color=BLUE,
            alpha=0.2,
            linewidth=0,
            label=f"a teacher is right {100 * levels[0]:g}% to {100 * levels[-1]:g}% of the time",
        )
    axes.plot(at, values[:, middle], "-", color=BLUE, label=f"{100 * levels[middle]:g}%")


def _epsilons(around: Sequence[Point], teachers: int, goal: float) -> list[float]:
    """The ε at which so many teachers give the answers, at every level; NaN beyond the points."""
    here = sorted((p for p in around if p.teachers == teachers), key=lambda point: point.epsilon)
    epsilon = np.log([point.epsilon for point in here])
    found = []
    for level in range(len(here[0].answers)):
        answers = np.maximum.accumulate([point.answers[level] for point in here])
        reached = answers[0] <= goal <= answers[-1]
        logs = np.log(np.maximum(answers, 1e-3))
        at = np.interp(math.log(goal), logs, epsilon)
        found.append(math.exp(at) if reached else math.nan)
    return found
