"""Numbers of votes as people write them: 200, 80% of the teachers, or 0.8 votes."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Mapping
from numbers import Real
from typing import Any, Final

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, quoted

AMOUNTS: Final = ("threshold", "sigma1", "sigma2", "laplace_scale")
"""Parameters of mechanisms that are so many votes."""

_SPELLED: Final = re.compile(r"\s*(\S+?)\s*(%|votes?)?\s*")


@dataclass(frozen=True)
class Amount:
    """So many votes, or a share of the teachers.

    Attributes:
        value: votes, or 1 for all teachers.
        share: which of them.
    """

    value: float
    share: bool = False

    @classmethod
    def of(cls, name: str, given: object) -> Amount:
        """What was given for the parameter `name`: a number, or a text with or without a unit.

        Raises:
            ParameterError: no number, or one between 0 and 1 without a unit: a share of the
                teachers taken for votes would leave next to no noise, or no threshold.
        """
        if isinstance(given, Amount):
            return given
        value, unit = _split(given)
        if value is None:
            raise ParameterError(
                f"`{name}` is a number of votes or a share of the teachers such as 80%, got "
                f"{quoted(given)}"
            )
        if unit is None and 0.0 < value < 1.0:
            raise ParameterError(
                f"`{name}` {value:g} is {value:g} votes, or {100 * value:g}% of the teachers? "
                f"Write {100 * value:g}%, or '{value:g} votes'"
            )
        return cls(value / 100.0, share=True) if unit == "%" else cls(value)

    def votes(self, teachers: int) -> float:
        """How many votes of so many teachers; 12 digits of a share, which hide round-off."""
        if not self.share or not math.isfinite(self.value):
            return self.value
        return float(f"{self.value * teachers:.12g}")


def in_votes(given: Mapping[str, Any], teachers: int) -> dict[str, Any]:
    """Parameters of a mechanism with every amount in votes."""
    return {
        name: Amount.of(name, value).votes(teachers) if name in AMOUNTS else value
        for name, value in given.items()
    }


def _split(given: object) -> tuple[float | None, str | None]:
    """A number and its unit, if there is one; None where it is no number."""
    unit = None
    if isinstance(given, str):
        spelled = _SPELLED.fullmatch(given)
        given, unit = spelled.groups() if spelled else (given, None)
    with contextlib.suppress(ValueError):
        if isinstance(given, str | Real):
            return float(given), unit
    return None, unit
