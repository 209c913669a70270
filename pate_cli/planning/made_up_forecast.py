"""What made-up teachers would give at settings: answers, and the chance that they pass."""

from __future__ import annotations

from typing import Any

import numpy as np

from pate_cli.core.arrays import Floats
from pate_cli.core.dataclass import dataclass


@dataclass(frozen=True, eq=False)
class Forecast:
    """A run of a fixed number of rows, for every made-up ensemble. Public.

    Attributes:
        levels: mean agreement of each ensemble, [ensembles].
        kinds: what its queries are like, [ensembles].
        answers: expected answers if the labels pass, [ensembles].
        agreement: expected share of them that equal the plurality, [ensembles].
        chances: that the labels pass, [ensembles].
    """

    levels: tuple[float, ...]
    kinds: tuple[str, ...]
    answers: Floats
    agreement: Floats
    chances: Floats

    @property
    def expected(self) -> Floats:
        """Expected answers, none where the labels do not pass, [ensembles]."""
        return self.answers * self.chances

    @property
    def chance(self) -> float:
        """The mean chance of passing."""
        return float(self.chances.mean())

    @property
    def mean(self) -> float:
        """Expected answers, over all ensembles."""
        return float(self.expected.mean())

    def at(self, level: float) -> dict[str, float]:
        """Means over the kinds of queries at a level of agreement, and the least chance."""
        here = np.array(self.levels) == level
        expected = self.expected[here]
        agreeing = float((expected * self.agreement[here]).sum())
        return {
            "agreement": level,
            "answers": float(expected.mean()),
            "equal_to_plurality": agreeing / max(float(expected.sum()), 1e-300),
            "pass_probability": float(self.chances[here].mean()),
            "worst_pass_probability": float(self.chances[here].min()),
        }

    def named(self) -> dict[str, Any]:
        """The chance of passing: its mean, and the worst and best ensemble by name."""
        worst, best = int(np.argmin(self.chances)), int(np.argmax(self.chances))
        return {"mean": self.chance, "worst": self._named(worst), "best": self._named(best)}

    def _named(self, place: int) -> dict[str, Any]:
        return {
            "agreement": self.levels[place],
            "queries": self.kinds[place],
            "chance": float(self.chances[place]),
        }
