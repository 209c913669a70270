"""Choosing thresholds, noise levels and release parameters for a goal."""

from __future__ import annotations

from pate_cli.tuning.electorate import Electorate, Yield
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.grid import Grid, Setting
from pate_cli.tuning.outcome import Outcome
from pate_cli.tuning.search import Search, Tuned

__all__ = [
    "Electorate",
    "Goal",
    "Grid",
    "Outcome",
    "Search",
    "Setting",
    "Tuned",
    "Yield",
]
