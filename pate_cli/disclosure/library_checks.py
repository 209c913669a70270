"""Figures of textbook accountants compared with those of Google's dp-accounting."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator, Sequence
from typing import Any, Final

from pate_cli.accounting.textbook import Bounded, Gaussian
from pate_cli.core.errors import UsageError
from pate_cli.disclosure.facts import textbook_steps
from pate_cli.disclosure.report import Crosscheck, Report
from pate_cli.disclosure.verification import OPEN, Check

LIBRARY: Final = "dp-accounting"

_LIBRARY: Final = "dp_accounting"
_STEP: Final = 1e-4  # of what is rounded up
_GRID: Final = {"value_discretization_interval": 1e-3}


def library_checks(report: Report, wanted: bool | None) -> Iterator[Check]:
    """Yield how the library finds the textbook numbers of a report.

    Args:
        report: nothing is compared where it has no such numbers.
        wanted: whether to ask; where it is installed if None.

    Raises:
        UsageError: the library is wanted and not installed.
    """
    there = importlib.util.find_spec(_LIBRARY) is not None
    if wanted and not there:
        raise UsageError("dp-accounting is not installed; pip install 'pate-cli[accounting]'")
    if wanted is False or not there or report.crosscheck is None:
        return
    try:
        steps = [step for step in textbook_steps(report.rounds) if step.count]
        delta = report.facts.cost.labels.own.delta
        gaussian = [step for step in steps if isinstance(step, Gaussian)]
        bounded = [step for step in steps if isinstance(step, Bounded)]
        if gaussian and not bounded:
            yield from _gaussian(report.crosscheck, gaussian, delta)
        elif bounded and not gaussian:
            yield from _bounded(report.crosscheck, bounded, delta)
    except Exception as error:  # whatever another library raises is no fault of the report
        yield Check(LIBRARY, OPEN, f"it failed: {type(error).__name__}")


def _gaussian(crosscheck: Crosscheck, steps: Sequence[Gaussian], delta: float) -> Iterator[Check]:
    library = importlib.import_module(_LIBRARY)
    accountants: tuple[tuple[str, float | None, Any, float], ...] = (
        ("rdp", crosscheck.rdp_epsilon, library.rdp.RdpAccountant(), 1.0),
        # By privacy loss distributions it is rounded up on a grid of its own.
        ("pld", crosscheck.exact_epsilon, library.pld.PLDAccountant(**_GRID), 1.01),
    )
    for name, ours, accountant, room in accountants:
        for step in steps:
            event = library.GaussianDpEvent(step.noise_multiplier)
            accountant.compose(library.SelfComposedDpEvent(event, step.count))
        theirs = float(accountant.get_epsilon(delta))
        near = (theirs - 2.0 * _STEP) / room <= (ours or 0.0) <= theirs + 2.0 * _STEP
        told = f"it gives {theirs:.6g}, ours {ours:g}"
        yield Check.of(f"{LIBRARY} ({name})", () if near else (told,), told)


def _bounded(crosscheck: Crosscheck, steps: Sequence[Bounded], delta: float) -> Iterator[Check]:
    stated = (crosscheck.basic_epsilon, crosscheck.advanced_epsilon)
    ours = min((value for value in stated if value is not None), default=None)
    if ours is None:
        return
    pld = importlib.import_module(f"{_LIBRARY}.pld.privacy_loss_distribution")
    common = importlib.import_module(f"{_LIBRARY}.pld.common")
    total = pld.identity(**_GRID)
    for step in steps:
        parameters = common.DifferentialPrivacyParameters(step.epsilon, step.delta)
        one = pld.from_privacy_parameters(parameters, **_GRID)
        total = total.compose(one.self_compose(step.count))
    theirs = float(total.get_epsilon_for_delta(delta))
    # Its steps are rounded up to the grid, each by one interval at most.
    slack = 1e-3 * sum(step.count for step in steps) + 2.0 * _STEP
    told = f"it gives {theirs:.6g}, a textbook {ours:g}"
    yield Check.of(LIBRARY, () if theirs <= ours + slack else (told,), told)
