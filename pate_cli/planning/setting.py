"""One choice of threshold and noise."""

from __future__ import annotations

from dataclasses import dataclass

from pate_cli.core.errors import ParameterError
from pate_cli.core.words import MechanismName
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax


@dataclass(frozen=True)
class Setting:
    """One choice of T (votes), σ1 > 0 (votes) and σ2 > 0 (votes).

    Without a test T and σ1 are None: every query is answered. `prior_weight` is B of a public
    prior, 0 without one.
    """

    threshold: float | None
    sigma1: float | None
    sigma2: float
    prior_weight: int = 0

    def __post_init__(self) -> None:
        if (self.threshold is None) is not (self.sigma1 is None):
            raise ParameterError("a test needs both its threshold and its sigma1")

    @property
    def name(self) -> MechanismName:
        """What runs it."""
        return MechanismName.GNMAX if self.threshold is None else MechanismName.CONFIDENT

    @property
    def parameters(self) -> dict[str, float]:
        """T, σ1 and σ2 by the names of the mechanism's parameters, those that there are."""
        values = {"threshold": self.threshold, "sigma1": self.sigma1, "sigma2": self.sigma2}
        return {name: value for name, value in values.items() if value is not None}

    def with_value(self, name: str, value: float) -> Setting:
        """The same with another T, σ1 or σ2."""
        values = {**self.parameters, name: value}
        return Setting(
            values.get("threshold"), values.get("sigma1"), values["sigma2"], self.prior_weight
        )

    def tested(self, argmax: GNMax) -> ConfidentGNMax:
        """The aggregator whose second step this is; TypeError for a setting without a test."""
        if self.threshold is None or self.sigma1 is None:
            raise TypeError("the setting has no test")
        return ConfidentGNMax(
            teachers=argmax.teachers,
            classes=argmax.classes,
            threshold=self.threshold,
            sigma1=self.sigma1,
            sigma2=argmax.sigma2,
            teachers_per_record=argmax.teachers_per_record,
            prior_weight=argmax.prior_weight,
        )
