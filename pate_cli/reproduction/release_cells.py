"""Columns of the printed Table 2: quantity → what stands in the cell."""

from __future__ import annotations

import math
from collections.abc import Iterable

from pate_cli.reproduction.figures import PrintedRelease
from pate_cli.reproduction.published_release import PublishedRelease
from pate_cli.reproduction.tight_release import TightFigures, TightRelease

__all__ = ["QUANTITIES", "printed", "printed_release", "published", "tight"]

_ORDER, _BETA, _SIGMA = "order", "beta", "sigma_SS"
_ANSWERS, _LABELS = "expected answers", "epsilon of the labels"
_SMOOTH, _RELEASED, _ANY = "smooth sensitivity", "released epsilon", "labels only, any votes"

QUANTITIES = (_ORDER, _BETA, _SIGMA, _ANSWERS, _LABELS, _SMOOTH, _RELEASED, _ANY)

Cells = dict[str, str]


def printed(release: PrintedRelease | None) -> Cells:
    """What the paper prints."""
    if release is None:
        return {}
    return {
        _ORDER: f"{release.order:g}",
        _BETA: _list(release.betas, "g"),
        _SIGMA: _list(release.sigmas, "g"),
        _LABELS: f"{release.expected_epsilon:#.3g}",
        _SMOOTH: _list(release.smooth, "g"),
        _RELEASED: printed_release(release),
    }


def printed_release(release: PrintedRelease | None) -> str:
    """The ε that the paper prints as released, with its standard deviation."""
    return "-" if release is None else f"{release.epsilon:.2f} ± {release.sd:.3f}"


def published(release: PublishedRelease | None, *, epsilon: float, answers: float) -> Cells:
    """The paper's release of an expected ε; without one (a condition failed) the expectations."""
    expected = {_ANSWERS: f"{answers:.2f}", _LABELS: f"{epsilon:.3f}"}
    if release is None:
        return expected | {_RELEASED: "condition fails"}
    return expected | {
        _ORDER: f"{release.parameters.order:g}",
        _BETA: _list(release.parameters.betas, ".5g"),
        _SIGMA: _list(release.parameters.sigmas, ".4g"),
        _SMOOTH: _list(release.smooth, ".4g"),
        _RELEASED: _released(release.mean, release.sd),
    }


def tight(figures: TightFigures, release: TightRelease) -> Cells:
    """One release of the tight analysis."""
    return {
        _ORDER: f"{release.plan.order:g}",
        _BETA: f"{release.plan.beta:.5g}",
        _SIGMA: f"{release.plan.sigma:.4g}",
        _LABELS: f"{release.before:.3f}",
        _SMOOTH: f"{release.smooth:.4g}",
        _RELEASED: _released(release.mean, release.sd),
        _ANY: f"{figures.data_independent.epsilon:.3f}",
    }


def _released(mean: float, sd: float) -> str:
    return f"{mean:.3f} ± {sd:.3f}" if math.isfinite(mean) else "infinite"


def _list(values: Iterable[float], style: str) -> str:
    return " + ".join(format(value, style) for value in values)
