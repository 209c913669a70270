"""The settings that a search may change: threshold, noise and the weight of a prior."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Self

from pate_cli.core.words import MechanismName
from pate_cli.mechanisms.base import Mechanism
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax


def three_digits(value: float) -> float:
    """The number rounded to three digits, which a command can print in full."""
    return float(f"{value:.3g}")


@dataclass(frozen=True)
class Tuning:
    """Threshold and noise of one run, in votes; without a threshold every query is answered.

    Attributes:
        threshold: T of the test; None for GNMax, which has no test.
        sigma1: noise of the test; None for GNMax.
        sigma2: noise on each count of the argmax.
        prior_weight: votes that a public prior casts on each query; 0 without one.
    """

    threshold: float | None
    sigma1: float | None
    sigma2: float
    prior_weight: int = 0

    @classmethod
    def of(cls, mechanism: Mechanism) -> Self | None:
        """The settings of a mechanism that has no others; None for mechanisms of other kinds."""
        if type(mechanism) is ConfidentGNMax:
            return cls(
                mechanism.threshold, mechanism.sigma1, mechanism.sigma2, mechanism.prior_weight
            )
        if type(mechanism) is GNMax:
            return cls(None, None, mechanism.sigma2, mechanism.prior_weight)
        return None

    @classmethod
    def settled(cls, mechanism: Mechanism) -> Self:
        """The settings of Confident or GNMax; TypeError for a mechanism with others."""
        found = cls.of(mechanism)
        if found is None:
            raise TypeError(f"{mechanism.name} has settings of its own")
        return found

    @property
    def mechanism_name(self) -> MechanismName:
        """The word for the mechanism on the command line."""
        return MechanismName.GNMAX if self.threshold is None else MechanismName.CONFIDENT

    @property
    def parameters(self) -> dict[str, float]:
        """Threshold, sigma1 and sigma2 by name, those that there are."""
        values = {"threshold": self.threshold, "sigma1": self.sigma1, "sigma2": self.sigma2}
        return {name: value for name, value in values.items() if value is not None}

    def times(self, **factors: float) -> Tuning:
        """Return settings with some parameters multiplied, each rounded to three digits."""
        values = self.parameters
        values |= {
            name: three_digits(values[name] * by) for name, by in factors.items() if name in values
        }
        threshold, sigma1 = values.get("threshold"), values.get("sigma1")
        return Tuning(threshold, sigma1, values["sigma2"], self.prior_weight)

    def weighing(self, weight: int, *, follow: bool) -> Tuning:
        """Return settings where the prior has another weight.

        Args:
            weight: B, in votes.
            follow: whether T moves by as many votes, so that as many teachers reach it.
        """
        if self.threshold is None or not follow:
            return replace(self, prior_weight=weight)
        threshold = three_digits(max(self.threshold + weight - self.prior_weight, 1.0))
        return replace(self, prior_weight=weight, threshold=threshold)

    def mechanism(self, *, teachers: int, classes: int, **shared: Any) -> ConfidentGNMax | GNMax:
        """Return the mechanism that a run with these settings uses.

        Args:
            teachers: τ, votes of a query.
            classes: m.
            shared: `teachers_per_record` and `votes_together`, where a record moves several votes.
        """
        given: dict[str, Any] = {**self.parameters, **shared, "prior_weight": self.prior_weight}
        kind = GNMax if self.threshold is None else ConfidentGNMax
        return kind(teachers, classes, **given)
