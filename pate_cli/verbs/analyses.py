"""The analysis of a name: the one place where a verb comes to know the published one."""

from __future__ import annotations

from pate_cli.core.words import Analysis
from pate_cli.pricing.analysis import FullAnalysis, TightAnalysis


def analysis_of(name: Analysis | str) -> FullAnalysis:
    """How votes are charged; the published analysis is imported where it is asked for."""
    if Analysis(name) is Analysis.TIGHT:
        return TightAnalysis()
    from pate_cli.published.analysis import PublishedAnalysis

    return PublishedAnalysis()
