"""Choosing thresholds, noise levels and release parameters for a goal."""

from __future__ import annotations

from pate_cli.planning.sample import VoteSample, Yield
from pate_cli.planning.setting import Setting
from pate_cli.tuning.goal import Goal
from pate_cli.tuning.price import Costed
from pate_cli.tuning.prior_search import PriorSearch, PriorWeights
from pate_cli.tuning.result import Tuned
from pate_cli.tuning.rule_of_thumb import RuleOfThumb, rule_of_thumb
from pate_cli.tuning.search import Search
from pate_cli.tuning.settings import Grid
from pate_cli.tuning.ways import Ways

__all__ = [
    "Costed",
    "Goal",
    "Grid",
    "PriorSearch",
    "PriorWeights",
    "RuleOfThumb",
    "Search",
    "Setting",
    "Tuned",
    "VoteSample",
    "Ways",
    "Yield",
    "rule_of_thumb",
]
