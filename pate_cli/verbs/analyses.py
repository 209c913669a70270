"""The analysis of a name: the one place where a verb comes to know the published one.

What only a look at votes needs is imported for that alone: a run starts faster without.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pate_cli.core.words import Analysis
from pate_cli.run.analysis import Charging, TightCharging

if TYPE_CHECKING:
    from pate_cli.pricing.analysis import FullAnalysis


def charging_of(name: Analysis | str) -> Charging:
    """How a run is charged."""
    return TightCharging() if Analysis(name) is Analysis.TIGHT else _published()


def analysis_of(name: Analysis | str) -> FullAnalysis:
    """All of the analysis."""
    if Analysis(name) is not Analysis.TIGHT:
        return _published()
    from pate_cli.pricing.analysis import TightAnalysis

    return TightAnalysis()


def _published() -> FullAnalysis:
    from pate_cli.published.analysis import PublishedAnalysis

    return PublishedAnalysis()
