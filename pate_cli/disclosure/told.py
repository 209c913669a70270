"""A report with what `explain` says of it: what a page is made of, and what it may rely on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pate_cli.core.dataclass import dataclass
from pate_cli.disclosure.guarantee import FIXED, TOTAL
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.total import Spent

_WHOSE: Final = {
    "worst-case": "whatever the votes",
    "target": "whatever the votes, stated in advance",
    "refusal": "whatever the votes, for the refusal",
    "upper": "a sanitized bound for these votes",
    TOTAL: "all runs, whatever the votes",
}
CHOSEN: Final = "if no settings followed from what earlier runs released"
"""What the total of several runs presupposes."""
# So many of what there may be thousands of: the report has them all.
_MOST: Final = 12


@dataclass(frozen=True)
class Told:
    """A report with what `explain` says of it.

    Attributes:
        report: with the words that its facts are worth.
        sections: texts by the title they stand under.
        mechanisms: a text for each mechanism, among those of what was done.
        textbook: what any accountant can repeat, among what is promised.
        unit: what is protected.
        sha256: of the report as its own file has it.
    """

    report: Report
    sections: Mapping[str, tuple[str, ...]]
    mechanisms: tuple[str, ...]
    textbook: tuple[str, ...]
    unit: str
    sha256: str

    @property
    def relied_on(self) -> bool:
        """Whether the headline is a bound that can be signed for, as `verify` has it."""
        report = self.report
        return report.private and report.sound and any(one.holds for one in report.statements)

    def texts(self, title: str) -> tuple[str, ...]:
        """Return the texts under a title; none if there is no such title."""
        return self.sections.get(title, ())

    @property
    def whose(self) -> str:
        """Words for the kind of the headline and what it presupposes."""
        kind = self.report.epsilon_kind
        return _WHOSE.get(kind, "") + (self.premise if kind in ("worst-case", TOTAL) else "")

    @property
    def premise(self) -> str:
        """Premise of a worst case of several rounds or runs."""
        report = self.report
        if report.epsilon_kind == TOTAL:
            return f", {CHOSEN}"
        return f", if {FIXED}" if len(report.rounds) > 1 or report.external else ""

    @property
    def account(self) -> Spent | None:
        """All runs and what they cost, where that is claimed."""
        report, spent = self.report, self.report.spent
        if spent is None or not self.relied_on:
            return None
        said = spent.count == 1 or report.claims("total")  # one run is this one
        return spent if said else None


def few(texts: Sequence[str], most: int = _MOST) -> list[str]:
    """The first of them, and how many more there are."""
    left = len(texts) - most
    return [*texts[:most], *([f"And {left} more, in the report."] if left > 0 else [])]
