"""The settings that a search goes through: thresholds and noise levels."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from pate_cli.core.checks import check_positive
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, UsageError, quoted
from pate_cli.mechanisms.amounts import Amount
from pate_cli.planning.setting import Setting, three_digits

Place: TypeAlias = tuple[int, int, int]
"""Where on the axes of T, σ1 and σ2 a setting is; −1 on the first two without a test."""

# In units of the number of teachers. The published runs lie between T = 0.2 and 1.2,
# σ1 = 0.1 and 0.8, σ2 = 0.02 and 0.16.
_THRESHOLDS = (0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.2, 1.4)
_SIGMAS1 = (0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.8, 1.0, 1.3)
_SIGMAS2 = (0.02, 0.03, 0.04, 0.06, 0.08, 0.1, 0.13, 0.16, 0.2, 0.25, 0.32, 0.4)
_MOST_POINTS = 1_000_000
_RANGE = re.compile(r"([^:]+):([^:]+):([^:]+)")


@dataclass(frozen=True)
class Grid:
    """Every combination of thresholds and noise levels, all in votes and each ascending.

    Attributes:
        thresholds, sigmas1, sigmas2: the values.
        untested: whether every σ2 is tried without a test, too.
        free: which axes nobody asked for, so that values between theirs serve as well.
        prior_weight: B of all its settings.
    """

    thresholds: tuple[float, ...]
    sigmas1: tuple[float, ...]
    sigmas2: tuple[float, ...]
    untested: bool = False
    free: tuple[bool, bool, bool] = (False, False, False)
    prior_weight: int = 0

    def __post_init__(self) -> None:
        for name in ("thresholds", "sigmas1", "sigmas2"):
            values = getattr(self, name)
            if not values:
                raise ParameterError(f"the grid needs at least one value among its {name}")
            object.__setattr__(self, name, tuple(sorted({float(value) for value in values})))
        for value in self.thresholds:
            if not np.isfinite(value):
                raise ParameterError(f"threshold must be finite, got {value}")
        for value in (*self.sigmas1, *self.sigmas2):
            check_positive("sigma", value)
        if self.size > _MOST_POINTS:
            raise ParameterError(
                f"the grid has {self.size} points (at most {_MOST_POINTS}); give fewer values"
            )

    @classmethod
    def for_teachers(
        cls,
        teachers: int,
        *,
        thresholds: Sequence[Amount | float | str] | None = None,
        sigmas1: Sequence[Amount | float | str] | None = None,
        sigmas2: Sequence[Amount | float | str] | None = None,
        untested: bool = False,
    ) -> Grid:
        """The default grid in proportion to the teachers, with some axes replaced.

        Whoever names a threshold or its noise wants the test, `untested` or not.
        """

        def scaled(
            name: str, given: Sequence[Amount | float | str] | None, shares: tuple[float, ...]
        ) -> tuple[float, ...]:
            if given is None:
                return tuple(three_digits(share * teachers) for share in shares)
            return tuple(Amount.of(name, value).votes(teachers) for value in given)

        return cls(
            scaled("threshold", thresholds, _THRESHOLDS),
            scaled("sigma1", sigmas1, _SIGMAS1),
            scaled("sigma2", sigmas2, _SIGMAS2),
            untested=untested and thresholds is None and sigmas1 is None,
            free=(thresholds is None, sigmas1 is None, sigmas2 is None),
        )

    @property
    def shape(self) -> tuple[int, int, int]:
        """Number of values on each axis."""
        return len(self.thresholds), len(self.sigmas1), len(self.sigmas2)

    @property
    def size(self) -> int:
        """Number of settings."""
        return math.prod(self.shape) + (len(self.sigmas2) if self.untested else 0)

    def at(self, place: Place) -> Setting:
        """The setting at a place on every axis."""
        threshold, sigma1, sigma2 = place
        tested = threshold >= 0
        return Setting(
            self.thresholds[threshold] if tested else None,
            self.sigmas1[sigma1] if tested else None,
            self.sigmas2[sigma2],
            self.prior_weight,
        )

    def place_of(self, setting: Setting) -> Place:
        """Where a setting of the grid is."""
        sigma2 = self.sigmas2.index(setting.sigma2)
        if setting.threshold is None or setting.sigma1 is None:
            return -1, -1, sigma2
        return self.thresholds.index(setting.threshold), self.sigmas1.index(setting.sigma1), sigma2

    def nearest(self, setting: Setting) -> Place:
        """The place whose values are the closest to those of any setting, axis by axis."""

        def place(values: tuple[float, ...], value: float) -> int:
            return int(np.argmin(np.abs(np.array(values) - value)))

        sigma2 = place(self.sigmas2, setting.sigma2)
        if setting.threshold is None or setting.sigma1 is None:
            return -1, -1, sigma2
        return (
            place(self.thresholds, setting.threshold),
            place(self.sigmas1, setting.sigma1),
            sigma2,
        )

    def finer(self) -> Grid:
        """With the values halfway between those of the free axes as well; noise by ratio.

        Itself where that would be too many.
        """
        if self.size << sum(self.free) > _MOST_POINTS:
            return self
        thresholds, sigmas1, sigmas2 = (
            values if not free else _with_middles(values, ratio=ratio)
            for values, free, ratio in zip(
                (self.thresholds, self.sigmas1, self.sigmas2),
                self.free,
                (False, True, True),
                strict=True,
            )
        )
        return replace(self, thresholds=thresholds, sigmas1=sigmas1, sigmas2=sigmas2)

    def places(self, most_per_axis: int | None = None) -> list[Place]:
        """Every place, or of each axis only so many values, evenly spread."""
        thresholds, sigmas1, sigmas2 = (
            range(size)
            if most_per_axis is None or size <= most_per_axis
            else [(2 * i + 1) * size // (2 * most_per_axis) for i in range(most_per_axis)]
            for size in self.shape
        )
        untested = [(-1, -1, sigma2) for sigma2 in sigmas2] if self.untested else []
        return [*itertools.product(thresholds, sigmas1, sigmas2), *untested]

    def around(self, place: Place, *, axes_only: bool = False) -> list[Place]:
        """The places one step away, on any of the axes at once or on a single one.

        There is no step from a test to none.
        """
        thresholds, sigmas1, sigmas2 = (
            range(max(at - 1, 0), min(at + 2, size)) if at >= 0 else range(-1, 0)
            for at, size in zip(place, self.shape, strict=True)
        )
        near = [
            other for other in itertools.product(thresholds, sigmas1, sigmas2) if other != place
        ]
        if not axes_only:
            return near
        return [
            other for other in near if sum(a != b for a, b in zip(other, place, strict=True)) == 1
        ]


def parse_values(name: str, text: str | None) -> tuple[Amount, ...] | None:
    """Amounts from `a,b,c`, from `low:high:count` (evenly spaced), or None from None.

    Raises:
        UsageError: anything else, naming the parameter.
    """
    if text is None:
        return None
    spelled = _RANGE.fullmatch(text)
    given = text.split(",") if spelled is None else spelled.groups()[:2]
    amounts = tuple(Amount.of(name, part) for part in given)
    if not all(math.isfinite(amount.value) for amount in amounts):
        raise UsageError(f"`{name}` takes finite numbers, got {quoted(text)}")
    if spelled is None:
        return amounts
    low, high = amounts
    if low.share is not high.share or not spelled[3].strip().isdecimal() or int(spelled[3]) < 1:
        raise UsageError(f"`{name}` takes a,b,c or low:high:count, got {quoted(text)}")
    ends = np.linspace(low.value, high.value, int(spelled[3]))
    return tuple(Amount(three_digits(value), low.share) for value in ends.tolist())


def _with_middles(values: tuple[float, ...], *, ratio: bool) -> tuple[float, ...]:
    pairs = itertools.pairwise(values)
    middles = [math.sqrt(low * high) if ratio else (low + high) / 2.0 for low, high in pairs]
    return (*values, *map(three_digits, middles))
