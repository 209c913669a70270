"""Numbers as words show them: rounded, and never below what they stand for."""

from __future__ import annotations

import math
from decimal import MAX_EMAX, ROUND_CEILING, Context, Decimal
from typing import Final

from pate_cli.accounting.conversion import round_up, significant_up

_EXACT: Final = Context(prec=40, Emax=MAX_EMAX)
# Beyond it a factor is no number that anybody reads to the last digit.
_LONGEST: Final = 1_000_000
_MOST: Final = 1e18


def shown(value: float) -> str:
    """A number in at most six significant digits."""
    return f"{significant_up(Decimal(repr(float(value)))):g}"


def tabled(value: float | None) -> str:
    """A number as a table shows it, that may not be known, or be no bound."""
    if value is None:
        return "–"
    return shown(value) if math.isfinite(value) else "unbounded"


def nats(epsilon: float) -> str:
    """A finite ε with four decimals."""
    return f"{round_up(epsilon):.4f}"


def pair(epsilon: float, delta: float) -> str:
    """An (ε, δ) as summaries have it."""
    return f"epsilon {nats(epsilon)} at delta {shown(delta)}"


def factor(epsilon: float) -> str:
    """e^ε with two decimals, or two digits where it is large; ε ≥ 0, nats."""
    over = "over " if epsilon > _MOST else ""  # no decimal is so large
    return over + _text(Decimal(min(epsilon, _MOST)).exp(_EXACT))


def in_a_thousand(epsilon: float, delta: float) -> str | None:
    """How often what happens 1 time in 1,000 happens at most: 1000·(e^ε/1000 + δ).

    None where that is 1,000 times or more.
    """
    if epsilon > _MOST:
        return None
    times = _EXACT.fma(Decimal(1000), Decimal(delta), Decimal(epsilon).exp(_EXACT))
    return None if times >= 1000 else _text(times)


def _text(value: Decimal) -> str:
    if value < _LONGEST:
        return f"{value.quantize(Decimal('0.01'), rounding=ROUND_CEILING):,}"
    return f"{Context(prec=2, rounding=ROUND_CEILING, Emax=MAX_EMAX).plus(value):e}"
