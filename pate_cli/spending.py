"""The record of releases: which rounds have been released already, and at what price.

Every sanitized draw from a ledger costs privacy. The record remembers the rounds of each release
and the public parameters of its draw, so that a second draw from the same votes is refused, or
charged. It holds nothing secret about votes, but the ids of rounds belong with the ledgers.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

from pate_cli.errors import LedgerError, ParameterError
from pate_cli.ledger import Ledger
from pate_cli.release.plan import Draw, ReleasePlan

__all__ = ["PastRelease", "SpendRecord"]

_T = TypeVar("_T")

_KIND: Final = "pate-spend-record"
_SCHEMA_VERSION: Final = 1


@dataclass(frozen=True)
class PastRelease:
    """One draw that was made.

    Attributes:
        rounds: ids of the rounds whose cost it released.
        draw: its public parameters.
    """

    rounds: tuple[str, ...]
    draw: Draw


@dataclass(frozen=True)
class SpendRecord:
    """All releases so far, oldest first."""

    releases: tuple[PastRelease, ...] = ()

    def touching(self, ledger: Ledger) -> tuple[PastRelease, ...]:
        """Past releases that drew from a round of this ledger."""
        mine = {one.id for one in ledger.rounds}
        return tuple(past for past in self.releases if mine & set(past.rounds))

    def after(self, ledger: Ledger, plan: ReleasePlan) -> SpendRecord:
        """The record with one more release; without a draw nothing is spent by releasing."""
        if not plan.draws:
            return self
        names = tuple(one.id for one in ledger.rounds)
        return SpendRecord((*self.releases, PastRelease(names, plan.draw)))

    def to_json(self) -> str:
        """The record file."""
        releases: Sequence[dict[str, Any]] = [
            {
                "rounds": list(past.rounds),
                "beta": past.draw.beta,
                "sigma_release": past.draw.sigma,
                "shift": past.draw.shift,
            }
            for past in self.releases
        ]
        record = {"kind": _KIND, "schema_version": _SCHEMA_VERSION, "releases": releases}
        return json.dumps(record, indent=1, allow_nan=False) + "\n"

    @classmethod
    def from_json(cls, text: str | bytes) -> SpendRecord:
        """Read a record; LedgerError when it is truncated, foreign, damaged or newer."""
        try:
            data = json.loads(text)
        except (ValueError, RecursionError):
            raise LedgerError("not a record of releases, or a truncated one") from None
        if not isinstance(data, dict) or data.get("kind") != _KIND:
            raise LedgerError("not a record of releases: give the file that --spend wrote")
        if data.get("schema_version") != _SCHEMA_VERSION:
            raise LedgerError(
                f"the record has schema version {data.get('schema_version')}, this tool reads "
                f"{_SCHEMA_VERSION}; use a newer version of pate"
            )
        try:
            releases = tuple(_past_from(past) for past in _of_type(list, data["releases"]))
        except (KeyError, TypeError, OverflowError, ParameterError):
            raise LedgerError("the record of releases is damaged") from None
        return cls(releases)


def _past_from(data: dict[str, Any]) -> PastRelease:
    """A release of a record file; KeyError, TypeError or a ParameterError when it is damaged."""
    names = _of_type(list, data["rounds"])
    if not names:
        raise TypeError("a release of no round")
    beta, sigma, shift = (data[field] for field in ("beta", "sigma_release", "shift"))
    for number in (beta, sigma, shift):
        if type(number) not in (int, float):
            raise TypeError("not a number")
    draw = Draw(beta=float(beta), sigma=float(sigma), shift=float(shift))
    draw.rdp(1.0 + 1e-9)  # parameters out of range are damage, too
    return PastRelease(tuple(_of_type(str, name) for name in names), draw)


def _of_type(kind: type[_T], value: Any) -> _T:
    """The value, if JSON gave it this very type: text is no list of names."""
    if type(value) is not kind:
        raise TypeError(f"not {kind.__name__}")
    return value
