"""Choosing thresholds, noise levels and release parameters for a goal."""

from __future__ import annotations

from pate_cli.tuning.goal import Goal
from pate_cli.tuning.price import Outcome
from pate_cli.tuning.result import RuleOfThumb, Tuned, rule_of_thumb
from pate_cli.tuning.sample import VoteSample, Yield
from pate_cli.tuning.search import Search
from pate_cli.tuning.settings import Grid, Setting

__all__ = [
    "Goal",
    "Grid",
    "Outcome",
    "RuleOfThumb",
    "Search",
    "Setting",
    "Tuned",
    "VoteSample",
    "Yield",
    "rule_of_thumb",
]
