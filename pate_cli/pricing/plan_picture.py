"""The picture of a plan: answers against ε, and ε against teachers, with bands over agreement."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.planning.planned import Planned, Point
from pate_cli.pricing.plots import BLUE, VERMILION, drawing, legend_below, logarithmic, new_pair


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
            BLUE,
            planned,
        )
        left.plot([known.epsilon], [planned.answers], "o", color="black", label="the plan")
        logarithmic(left.xaxis)
        left.set_ylim(bottom=0.0)
        left.set_xlabel(f"ε at δ = {known.delta:g} (nats)")
        left.set_ylabel("answers (expected)")
        left.set_title(f"{known.teachers} teachers", loc="left")
        needed = np.array([_epsilons(around, number, goal) for number in teachers])
        _band(right, np.array(teachers, dtype=np.float64), needed, VERMILION, planned)
        right.plot([known.teachers], [known.epsilon], "o", color="black")
        logarithmic(right.xaxis)
        logarithmic(right.yaxis)
        right.set_xlabel("teachers")
        right.set_ylabel(f"ε at δ = {known.delta:g} (nats)")
        right.set_title(f"{math.floor(goal)} answers", loc="left")
        handles = [
            handle for axes in (left, right) for handle in axes.get_legend_handles_labels()[0]
        ]
        legend_below(figure, handles)
    return figure


def _band(axes: Any, at: Floats, values: Floats, colour: str, planned: Planned) -> None:
    """A line for the middle of the range of agreement, and a band over all of it."""
    levels, middle = planned.levels, len(planned.levels) // 2
    lines = ("-", "--") if colour == BLUE else ("-.", ":")
    if len(levels) > 1:
        low, high = np.nanmin(values, axis=1), np.nanmax(values, axis=1)
        axes.fill_between(
            at,
            low,
            high,
            color=colour,
            alpha=0.2,
            linewidth=0,
            label=f"teachers right {levels[0]:.0%} to {levels[-1]:.0%} of the time",
        )
    axes.plot(at, values[:, middle], lines[0], color=colour, label=f"{levels[middle]:.0%}")


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
