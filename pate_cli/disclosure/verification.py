"""Checks of a report by itself and by the record: what it states, and all that follows from it.

Every field is computed again, compared with something that was given, or named as not checkable;
its declaration says which (`disclosure.checked`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import PateError, printable
from pate_cli.core.said import Line, Said
from pate_cli.core.version import __version__
from pate_cli.disclosure.checked import Checked
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.facts import report_of
from pate_cli.disclosure.figures import pair
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.run_checks import (
    TooLargeError,
    brief,
    check_size,
    differences,
    record_faults,
    rule_faults,
    runs_of,
    spent_faults,
)
from pate_cli.disclosure.runs import Spent
from pate_cli.files.results import Result
from pate_cli.mechanisms import scored_from_parameters

OK, FAILED, OPEN, SKIPPED = "ok", "FAILED", "not checkable", "not checked"
_STYLES: Final = {OK: "green", FAILED: "bold red"}

# What is checked beside single fields (`disclosure.checked`), as it stands in a sentence.
PROMISE: Final = "promise"
RUNS: Final = "runs"
GUESSES: Final = "what the guesses of the prior were made of"


@dataclass(frozen=True)
class Check:
    """One thing that was looked at.

    Attributes:
        name: what.
        outcome: `ok`, `FAILED`, `not checkable` from outside, or `not checked` because it was not
            given or the format of the labels does not carry it.
        detail: what was found, or why nothing could be; printable, whatever the report holds.
    """

    name: str
    outcome: str
    detail: str

    def __post_init__(self) -> None:
        object.__setattr__(self, "detail", printable(self.detail))

    @classmethod
    def of(cls, name: str, faults: Iterable[str], found: str) -> Check:
        """Return a check that failed by the first of its faults, or what was found without any."""
        fault = next(iter(faults), None)
        return cls(name, OK, found) if fault is None else cls(name, FAILED, fault)


@dataclass(frozen=True, repr=False)
class Verification(Result):
    """Every check of a report, in order; public.

    Attributes:
        epsilon, delta: the headline of the report that was checked, whatever was found.
        checks: all that was looked at, and what could not be.
    """

    epsilon: float
    delta: float
    checks: tuple[Check, ...]

    @property
    def holds(self) -> bool:
        """Whether nothing failed."""
        return not self.failed

    @property
    def verdict(self) -> str:
        """`holds` or `does not hold`."""
        return "holds" if self.holds else "does not hold"

    @property
    def failed(self) -> list[str]:
        """Names of the checks that failed."""
        return [check.name for check in self.checks if check.outcome == FAILED]

    @property
    def unchecked(self) -> list[str]:
        """Names of what could not be checked, or was not given."""
        left = (check.name for check in self.checks if check.outcome in (OPEN, SKIPPED))
        return list(dict.fromkeys(left))

    @property
    def releasable(self) -> bool:
        """True: a report and its labels are public, and so is what was found of them."""
        return True

    def to_dict(self) -> dict[str, Any]:
        """Return the outcome, and every check."""
        return {
            "verdict": self.verdict,
            "holds": self.holds,
            "epsilon": self.epsilon,
            "delta": self.delta,
            "failed": self.failed,
            "not_checked": self.unchecked,
            "checks": [asdict(check) for check in self.checks],
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return a row a check."""
        return {
            name: np.array([getattr(check, name) for check in self.checks])
            for name in ("name", "outcome", "detail")
        }

    def said(self) -> Said:
        """Yield a line for each check, and the verdict."""
        for check in self.checks:
            outcome = (check.outcome, _STYLES.get(check.outcome, "dim"))
            yield Line(f": {check.name}: {check.detail}", whole=True, first=outcome)
        yield Line(f"verdict: {self.headline()}", "bold", whole=True)
        if self.unchecked:
            yield Line(self.remark(), whole=True)

    def headline(self) -> str:
        """Return the verdict, with the headline of the report or the checks that failed."""
        if self.failed:
            return f"{self.verdict}: {', '.join(self.failed)}"
        return f"{self.verdict}: {pair(self.epsilon, self.delta)}"

    def remark(self) -> str:
        """Return one sentence on what was not checked; empty where all was."""
        if not self.unchecked:
            return ""
        before = "Every check that could be made passed. " if self.holds else ""
        return f"{before}Not checked: {'; '.join(self.unchecked)}."


def checks_of(report: Report, record: SpendRecord | None = None) -> Iterator[Check]:
    """Yield the checks of a report that need neither votes nor labels.

    Args:
        report: written by anybody.
        record: of the same teachers, to be compared with the runs that the report tells of.

    Raises:
        TooLargeError: as for `check_size`.
    """
    try:
        runs = [run.settings for run in runs_of(report) if run.settings is not None]
        check_size((*report.rounds, *runs))
        spent = None if report.spent is None else Spent.of(report.spent.runs)
        again = report_of(replace(report.facts, spent=spent))
        unsettled, faults = list(_setting_faults(report)), list(spent_faults(report))
    except TooLargeError:
        raise
    except (PateError, ValueError, ArithmeticError) as error:
        yield Check(Checked.COMPUTED, FAILED, f"no run has these settings: {error}")
        return
    apart = (
        f"{path} is {brief(here)}, what it states gives {brief(there)}"
        for path, here, there in differences(report.to_dict(), again.to_dict())
    )
    worst = again.data_independent
    found = (
        f"computed again from what it states: whatever the votes epsilon {worst.epsilon:g} for "
        f"everything, {worst.labels_epsilon:g} for the labels"
    )
    if report.tool != __version__:
        found += f"; pate {brief(report.tool)} wrote it"
    yield Check.of(Checked.COMPUTED, [*unsettled, *apart], found)
    if report.spent is not None:
        found = f"what they cost together was computed again ({report.spent.count} in all)"
        yield Check.of(RUNS, faults, found)
    yield Check(PROMISE, OK if again.private and again.sound else FAILED, again.summary)
    yield _of_record(report, record)
    yield from _not_checkable(report)


def _setting_faults(report: Report) -> Iterator[str]:
    """Yield why no run has this target, or a session this rule: public numbers settle both."""
    for done in report.rounds:
        yield from rule_faults(done)
    target = report.target
    if target is not None:
        (done,) = report.rounds
        mechanism = scored_from_parameters(done.mechanism)
        worst = Cost.of_labels(done).own.epsilon
        if target != target.settled(mechanism, queries=done.queries, worst_case=worst):
            yield "the release test of this target is settled otherwise, or not needed"


def _not_checkable(report: Report) -> Iterator[Check]:
    """Yield what nobody can check from outside, whatever is given."""
    if report.passed is not None:
        yield Check(Checked.RELEASE_TEST, OPEN, "its chance follows from the secret votes")
    if report.drawn is not None:
        yield Check(Checked.SANITIZING, OPEN, "the votes behind sanitized.epsilon are secret")
    if any(done.prior for done in report.rounds):
        yield Check(GUESSES, OPEN, "whether the votes or private data shaped them")
    if report.external or any(run.external for run in runs_of(report)):
        yield Check(Checked.EXTERNAL, OPEN, "external parts are as the files of others state them")


def _of_record(report: Report, record: SpendRecord | None) -> Check:
    if record is not None:
        found = "the record tells of all of them, and of no other before this report"
        return Check.of(Checked.RECORD, record_faults(report, record), found)
    if report.spent is None:
        return Check(Checked.RECORD, OPEN, "earlier runs are not tracked")
    return Check(Checked.RECORD, OPEN, "the record can tell, which the holder of the votes keeps")
