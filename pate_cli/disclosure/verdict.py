"""What a published (ε, δ) is worth, in words."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from pate_cli.checks import check_delta
from pate_cli.errors import ParameterError

__all__ = ["HOLLOW", "Verdict", "best_guess", "verdict"]

# Up to these ε, nats.
_BANDS: Final = ((1.0, "strong"), (5.0, "usable"), (10.0, "weak"))
HOLLOW: Final = _BANDS[-1][0]
"""Above it an ε promises practically nothing."""


@dataclass(frozen=True)
class Verdict:
    """One word for an (ε, δ), and the sentence that it stands for."""

    word: str
    meaning: str


def best_guess(epsilon: float, delta: float) -> float:
    """The most often anyone can be right who guesses, from even odds, whether a record was used.

    (e^ε + δ)/(1 + e^ε): no test of two (ε, δ)-indistinguishable laws errs less (Kairouz, Oh and
    Viswanath 2015, Theorem 2.1).

    Args:
        epsilon: ε ≥ 0, nats; infinity allowed.
        delta: δ in (0, 1).

    Raises:
        ParameterError: a number out of range.
    """
    if not epsilon >= 0.0:
        raise ParameterError(f"epsilon must be at least 0, got {epsilon}")
    other = math.exp(-epsilon)
    return (1.0 + check_delta(delta) * other) / (1.0 + other)


def verdict(epsilon: float, delta: float) -> Verdict:
    """The word and its meaning; the percentage is rounded up."""
    word = next((name for most, name in _BANDS if epsilon <= most), "hardly any")
    percent = min(math.ceil(1e3 * best_guess(epsilon, delta)) / 10, 100.0)
    return Verdict(
        word,
        f"whoever guesses whether a given record was used is right at most {percent:.1f}% of the "
        "time (by tossing a coin: 50%)",
    )
