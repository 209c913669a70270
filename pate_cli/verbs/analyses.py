"""The analysis of a name: the one place where a verb comes to know the published one."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pate_cli.core.words import Analysis

if TYPE_CHECKING:
    from pate_cli.pricing.analysis import FullAnalysis


def analysis_of(name: Analysis | str) -> FullAnalysis:
    """Return how votes are charged under a name; the published way is loaded for that alone."""
    if Analysis(name) is Analysis.TIGHT:
        from pate_cli.pricing.analysis import TightAnalysis

        return TightAnalysis()
    from pate_cli.published.analysis import PublishedAnalysis

    return PublishedAnalysis()
