"""Checks of a report, and all of them together as `verify` returns them; public."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.errors import printable
from pate_cli.core.said import Line, Said
from pate_cli.disclosure.figures import pair
from pate_cli.files.results import Result

OK, FAILED, OPEN, SKIPPED = "ok", "FAILED", "not checkable", "not checked"
_STYLES: Final = {OK: "green", FAILED: "bold red"}


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
        return self._named(FAILED)

    @property
    def unchecked(self) -> list[str]:
        """Names of what could not be checked, or was not given."""
        return self._named(OPEN, SKIPPED)

    def _named(self, *outcomes: str) -> list[str]:
        found = (check.name for check in self.checks if check.outcome in outcomes)
        return list(dict.fromkeys(found))

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
        names = ("name", "outcome", "detail")
        return {name: np.array([getattr(each, name) for each in self.checks]) for name in names}

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
        found = ", ".join(self.failed) or pair(self.epsilon, self.delta)
        return f"{self.verdict}: {found}"

    def remark(self) -> str:
        """Return one sentence on what was not checked; empty where all was."""
        if not self.unchecked:
            return ""
        before = "Every check that could be made passed. " if self.holds else ""
        return f"{before}Not checked: {'; '.join(self.unchecked)}."
