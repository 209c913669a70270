"""Words for what a published (ε, δ) is worth."""

from __future__ import annotations

import math
from typing import Final

from pate_cli.core.checks import check_delta
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError
from pate_cli.core.words import CEILING
from pate_cli.disclosure.figures import shown

# Our own words, for what is up to these ε, nats: a matter of opinion, and said to be.
_BANDS: Final = ((1.0, "strong"), (5.0, "usable"), (CEILING, "weak"))
VACUOUS: Final = _BANDS[-1][0]
"""Above it an ε promises practically nothing."""
PRACTICALLY_ALWAYS: Final = "practically every time"
"""How often a guess may be right where that is no less than 100% in figures."""


@dataclass(frozen=True)
class Verdict:
    """One word for an (ε, δ), which is an opinion, and a sentence that is none."""

    word: str
    meaning: str

    def __str__(self) -> str:
        """Both, and whose opinion it is."""
        return f"{self.word} on pate's scale: {self.meaning}"


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


def percent_right(epsilon: float, delta: float) -> float:
    """`best_guess` in percent, rounded up to one decimal: 100 where nothing is promised.

    Raises:
        ParameterError: a number out of range.
    """
    # Up, past what round-off may have taken from it.
    return math.ceil(1e3 * best_guess(epsilon, delta) * (1.0 + 1e-15)) / 10


def verdict(epsilon: float, delta: float, kind: str = "worst-case") -> Verdict:
    """The word and its meaning; numbers are rounded up.

    Args:
        epsilon: ε ≥ 0, nats; infinity allowed.
        delta: δ in (0, 1).
        kind: where ε comes from, as `Report.epsilon_kind` says. What a refusal tells is bounded for
            whoever sees it; a sanitized bound for what comes out together with an ε no larger, of
            probability a: being right then has at most (e^ε a + δ)/(1 + e^ε), by the statement
            released-epsilon with either file first.
    """
    word = next((name for most, name in _BANDS if epsilon <= most), "hardly any")
    percent = percent_right(epsilon, delta)
    right, often, coin = "is right", f"at most {percent:.1f}% of the time", "a coin: 50%"
    if percent >= 100.0:  # a figure would be no bound
        right, often, coin = "may be right", PRACTICALLY_ALWAYS, f"more than 99.9%; {coin}"
    where = " from the refusal" if kind == "refusal" else ""
    if kind == "upper":
        among = f"at most {percent:.1f}%" if percent < 100.0 else "practically all"
        often = (
            f"in {among} of the runs with so small an epsilon, and {shown(delta)} of all "
            "runs besides"
        )
    return Verdict(
        word,
        f"at even odds, whoever guesses{where} whether a given record was used {right} {often} "
        f"({coin})",
    )
