"""Texts for numbers: ε and δ rounded up, and what they mean for somebody who guesses."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context, Decimal
from typing import Final

from pate_cli.accounting.conversion import round_up, significant_up
from pate_cli.core.errors import ParameterError
from pate_cli.core.words import CEILING

_EXACT: Final = Context(prec=40)
_CENT: Final = Decimal("0.01")
# Each word is for an ε of at most this many nats. The words are our opinion, and the pages say so.
_SCALE: Final = ((1.0, "strong"), (5.0, "usable"), (CEILING, "weak"), (math.inf, "hardly any"))


def shown(value: float | None) -> str:
    """Return a number in at most six significant digits, rounded up; None becomes `–`."""
    if value is None:
        return "–"
    return f"{significant_up(Decimal(repr(float(value)))):g}" if value < math.inf else "unbounded"


def nats(epsilon: float) -> str:
    """Return a finite ε with four decimals, rounded up."""
    return f"{round_up(epsilon):.4f}"


def pair(epsilon: float, delta: float) -> str:
    """Return an (ε, δ) as summaries and messages write it: epsilon … at delta …."""
    return f"epsilon {nats(epsilon)} at delta {shown(delta)}"


def in_a_thousand(epsilon: float, delta: float) -> str | None:
    """Return 1000·(e^ε/1000 + δ), a bound on how often in 1,000 cases an event may happen.

    With a neighbouring vote file, the event happens 1 time in 1,000. Return None if the bound is
    1,000 or more.
    """
    if epsilon > CEILING:
        return None
    times = _EXACT.fma(Decimal(1000), Decimal(delta), Decimal(epsilon).exp(_EXACT))
    return f"{times.quantize(_CENT, rounding=ROUND_CEILING)}" if times < 1000 else None


def best_guess(epsilon: float, delta: float) -> float:
    """Return the largest probability of a right guess, 50:50 beforehand, whether a record was used.

    (e^ε + δ)/(1 + e^ε): Kairouz, Oh and Viswanath (2015), Theorem 2.1.

    Args:
        epsilon: ε ≥ 0, nats; it may be infinite.
        delta: δ ≥ 0; with δ ≥ 1 nothing is promised.

    Raises:
        ParameterError: a number is out of range.
    """
    if not (epsilon >= 0.0 and delta >= 0.0):
        raise ParameterError(f"epsilon and delta must be at least 0, got {epsilon} and {delta}")
    other = math.exp(-epsilon)
    return min((1.0 + delta * other) / (1.0 + other), 1.0) if delta < 1.0 else 1.0


def scale_word(epsilon: float) -> str:
    """Return the word on pate's scale for an ε in nats."""
    return next(word for most, word in _SCALE if epsilon <= most)


def verdict(epsilon: float, delta: float, kind: str = "worst-case") -> str:
    """Return a word for ε, which is our opinion, and a proved bound on how often a guess is right.

    Args:
        epsilon: ε ≥ 0, nats; it may be infinite.
        delta: δ ≥ 0.
        kind: the kind of ε, as in `Report.epsilon_kind`. For `refusal`, the bound is about somebody
            who sees that the release test failed. If `kind` is `upper`, `epsilon` is a published
            sanitized ε, and the bound only covers runs that publish a sanitized ε of at most
            `epsilon`. Let a be the probability that a run publishes a sanitized ε of at most
            `epsilon`. The probability that the sanitized ε is at most `epsilon` and the guess
            whether a record was used is right, is at most (e^ε a + δ)/(1 + e^ε). To prove the bound
            (e^ε a + δ)/(1 + e^ε), apply the report's statement `released-epsilon` to two
            neighbouring vote files D and D', and once more with D and D' exchanged. If `kind` is
            `lessened`, a failed release test made the total ε of all runs smaller. The bound for
            `lessened` is the bound for `upper`, with the total ε instead of the sanitized ε; apply
            the report's statement `total` to prove the bound for `lessened`.
    """
    percent = math.ceil(1e3 * best_guess(epsilon, delta) * (1.0 + 1e-15)) / 10.0
    right = f"at most {percent:.1f}%" if percent < 100.0 else "up to 100%"
    seen, often = "", f"{right} of the time"
    if kind == "refusal":
        seen = " from the refusal"
    elif kind == "upper":
        often = (
            f"in {right} of the runs that publish so small an epsilon, and in {shown(delta)} of "
            "all runs besides"
        )
    elif kind == "lessened":
        often = (
            f"in {right} of the cases with so small an epsilon, and in {shown(delta)} of all cases "
            "besides"
        )
    return (
        f"{scale_word(epsilon)} protection on pate's scale: someone guessing{seen} whether one "
        f"training record was used, 50:50 beforehand, can be right {often}"
    )
