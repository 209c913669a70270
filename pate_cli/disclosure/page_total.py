"""What all runs on the same votes cost together, as the page of a report shows it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pate_cli.core.clock import TIME_FORMAT
from pate_cli.disclosure.figures import shown
from pate_cli.disclosure.report import Report


@dataclass(frozen=True)
class Total:
    """The record of a report's votes, as far as the report tells of it.

    Attributes:
        epsilon, delta: of all runs, if what one released did not decide the settings of another.
        sum_epsilon, sum_delta: their plain sums, however the runs were chosen; None where not said.
        budget: the most ε that all runs may cost; None where there is none.
        runs: in order; none where only their total is known.
    """

    epsilon: float
    delta: float
    sum_epsilon: float | None
    sum_delta: float | None
    budget: float | None
    runs: tuple[Mapping[str, Any], ...]

    def place_of(self, run: str | None) -> int | None:
        """Where in `runs` the one of this name stands; the last, if it stands there twice."""
        if run is None:
            return None
        places = (place for place, each in enumerate(self.runs) if each.get("run") == run)
        return max(places, default=None)


def total_of(report: Report) -> Total | None:
    """The total that a report states; None where it knows of no other run."""
    spent: Any = report.spent  # reports up to version 6 have the first two numbers only
    if spent is None:
        return None
    return Total(
        epsilon=spent.epsilon,
        delta=spent.delta,
        sum_epsilon=getattr(spent, "sum_epsilon", None),
        sum_delta=getattr(spent, "sum_delta", None),
        budget=getattr(spent, "budget", None),
        runs=tuple(getattr(spent, "runs", ())),
    )


def time_of(run: Mapping[str, Any]) -> datetime | None:
    """When a run began; None where that is not known."""
    try:
        return datetime.strptime(str(run.get("time")), TIME_FORMAT)
    except ValueError:
        return None


def number_in(run: Mapping[str, Any], name: str) -> float | None:
    """A number of a run; None where there is none that could be shown."""
    value = run.get(name)
    if not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:  # a whole number of hundreds of digits
        return None


def number(value: float | None) -> str:
    """An ε or a δ as a table shows it."""
    if value is None:
        return "–"
    return shown(value) if math.isfinite(value) else "unbounded"
