"""The settings that a search may change, and the `pate aggregate` line that runs them."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Self

from pate_cli.core.words import MechanismName
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax


def three_digits(value: float) -> float:
    """Return the number rounded to three digits, which a command can print in full."""
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
        """Return the settings of Confident or GNMax; None for mechanisms with others."""
        if type(mechanism) not in (ConfidentGNMax, GNMax):
            return None
        given: dict[str, Any] = {
            each.name: getattr(mechanism, each.name, None) for each in fields(cls)
        }
        return cls(**given)

    @classmethod
    def settled(cls, mechanism: Mechanism) -> Self:
        """Return the settings of Confident or GNMax; TypeError for a mechanism with others."""
        found = cls.of(mechanism)
        if found is None:
            raise TypeError(f"{mechanism.name} has settings of its own")
        return found

    @property
    def mechanism_name(self) -> MechanismName:
        """Return the word for the mechanism on the command line."""
        return MechanismName.GNMAX if self.threshold is None else MechanismName.CONFIDENT

    @property
    def parameters(self) -> dict[str, float]:
        """Return threshold, sigma1 and sigma2 by name, those that there are."""
        values = {"threshold": self.threshold, "sigma1": self.sigma1, "sigma2": self.sigma2}
        return {name: value for name, value in values.items() if value is not None}

    def times(self, **factors: float) -> Self:
        """Return settings with some parameters multiplied, each rounded to three digits."""
        values = self.parameters
        moved: dict[str, Any] = {
            name: three_digits(values[name] * by) for name, by in factors.items() if name in values
        }
        return replace(self, **moved)

    def scaled(self, by: float) -> Self:
        """Return settings with threshold and noise multiplied by one number."""
        return self.times(**dict.fromkeys(self.parameters, by))

    def weighing(self, weight: int, *, follow: bool) -> Self:
        """Return settings where the prior has another weight.

        Args:
            weight: B, in votes.
            follow: whether T moves by as many votes, so that as many teachers reach it.
        """
        found = replace(self, prior_weight=weight)
        if self.threshold is None or not follow:
            return found
        threshold = three_digits(max(self.threshold + weight - self.prior_weight, 1.0))
        return replace(found, threshold=threshold)

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


def keywords_of(
    mechanism: ScoredMechanism, *, queries: int, delta: float, **more: Any
) -> dict[str, Any]:
    """Return the keywords of `aggregate` that run a mechanism over so many queries.

    Amounts below one vote are texts, because `aggregate` takes such numbers for shares. Groups and
    a prior are files, and are not among them.

    Args:
        mechanism: Confident or GNMax.
        queries: `max_queries`.
        delta: δ.
        more: further keywords, those of a target for example.
    """
    settings = Tuning.settled(mechanism)
    found: dict[str, Any] = {"mechanism": settings.mechanism_name.value}
    for name, value in settings.parameters.items():
        found[name] = value if value >= 1.0 else f"{value:g}votes"
    if settings.prior_weight:
        found["prior_weight"] = settings.prior_weight
    if mechanism.teachers_per_record != 1 and not mechanism.votes_together:
        found["teachers_per_record"] = mechanism.teachers_per_record
    return {**found, "max_queries": queries, "delta": delta, **more}


def line_of(votes: str, words: Sequence[str], keywords: Mapping[str, Any]) -> str:
    """Return the `pate aggregate` line with these keywords of `aggregate`.

    Args:
        votes: the file of votes.
        words: options that come first, such as `--prior PRIOR`.
        keywords: numbers and words by name; numbers are read back as the very same ones.
    """
    line = ["pate", "aggregate", votes, *words]
    for name, value in keywords.items():
        text = repr(value).removesuffix(".0") if isinstance(value, int | float) else str(value)
        line += [f"--{name.replace('_', '-')}", text]
    return shlex.join(line)
