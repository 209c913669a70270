"""What shared clocks are worth, on made-up language models: `python sample_votes/tokens.py`.

64 teachers say what comes next, out of 50,000 tokens. Their distributions lie around a common one,
Zipf's: every probability is multiplied by a log-normal factor of each teacher's own, afresh at
every ask, and the row is made to sum to 1. With larger factors teachers are further apart, which is
told as the mean total variation between two of them. Beside the largest share of the votes, of
tokens drawn by each teacher alone and by clocks that all share (`pate.coordinated_choice`), stands
how often GNMax at sigma2 6 says what the plurality says. Takes three minutes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

import pate_cli as pate

TEACHERS = 64
VOCABULARY = 50_000
SPREADS = (0.0, 0.1, 0.2, 0.35, 0.5, 1.0, 1.5, 2.0)
ASKS = 200
SIGMA = 6.0
LESS = 1.0
"""Noise under which tokens drawn alone have a chance, at another price."""
PRICED = 20
"""Tokens that a release is priced for; all asks are simulated, for the mean."""
SEED = 2026
_DELTA = 1e-5
_PAIRS = 8
"""Teachers among whom distances are measured."""


@dataclass(frozen=True, kw_only=True)
class Votes:
    """How one way to draw fares.

    Attributes:
        share: of the teachers, the largest number that vote alike; mean over asks.
        kept: of the asks, those at which the label is the plurality.
    """

    share: float
    kept: float


@dataclass(frozen=True, kw_only=True)
class Point:
    """Teachers that are so far apart.

    Attributes:
        spread: standard deviation of the logarithms of the factors.
        apart: total variation between two teachers, mean over pairs and asks.
        alone: tokens drawn by each teacher for itself.
        shared: tokens drawn by clocks that all share.
    """

    spread: float
    apart: float
    alone: Votes
    shared: Votes


def distributions(
    random: np.random.Generator, spread: float, teachers: int, vocabulary: int
) -> NDArray[np.float64]:
    """What each teacher makes of the common distribution at one ask, [teachers, tokens]."""
    weights = random.standard_normal((teachers, vocabulary))
    np.exp(spread * weights, out=weights)
    weights /= np.arange(1, vocabulary + 1)
    return weights / weights.sum(axis=1, keepdims=True)


def drawn_alone(
    random: np.random.Generator, probabilities: NDArray[np.float64]
) -> NDArray[np.int64]:
    """A token a teacher, each by chance of its own."""
    below = np.cumsum(probabilities, axis=1)
    chance = random.random(len(below)) * below[:, -1]
    pairs = zip(below, chance, strict=True)
    return np.array([np.searchsorted(row, one, side="right") for row, one in pairs])


def apart(probabilities: NDArray[np.float64]) -> float:
    """Total variation between two of the teachers, mean over pairs of the first few."""
    few = probabilities[:_PAIRS]
    pairs = [(i, j) for i in range(len(few)) for j in range(i)]
    return float(np.mean([0.5 * np.abs(few[i] - few[j]).sum() for i, j in pairs]))


def fared(votes: NDArray[np.int64], vocabulary: int, sigma: float) -> Votes:
    """The largest share of votes [asks, teachers], and how often labels are the plurality."""
    counts = [np.unique(row, return_counts=True) for row in votes]
    plurality = np.array([tokens[number.argmax()] for tokens, number in counts])
    done = pate.aggregate(
        votes,
        "gnmax",
        layout="labels",
        teachers=votes.shape[1],
        classes=vocabulary,
        sigma2=sigma,
        max_epsilon=1e6,  # nothing is published
        seed=SEED,
    )
    return Votes(
        share=float(np.mean([number.max() for _, number in counts])) / votes.shape[1],
        kept=float(np.mean(done.labels.labels == plurality)),
    )


def point(
    spread: float,
    *,
    sigma: float = SIGMA,
    asks: int = ASKS,
    teachers: int = TEACHERS,
    vocabulary: int = VOCABULARY,
) -> Point:
    """Teachers that are apart by this spread, asked so often, under noise of this size (votes)."""
    random = np.random.default_rng(SEED)
    distances, alone, shared = [], [], []
    for ask in range(asks):
        probabilities = distributions(random, spread, teachers, vocabulary)
        distances.append(apart(probabilities))
        alone.append(drawn_alone(random, probabilities))
        shared.append(pate.coordinated_choice(probabilities, seed=SEED, position=ask))
    return Point(
        spread=spread,
        apart=float(np.mean(distances)),
        alone=fared(np.stack(alone), vocabulary, sigma),
        shared=fared(np.stack(shared), vocabulary, sigma),
    )


def curves() -> list[Point]:
    """A point a spread."""
    return [point(spread) for spread in SPREADS]


def price(sigma: float) -> float:
    """The epsilon of the labels of so many tokens, for all votes, under noise of this size."""
    asked = {"layout": "labels", "teachers": TEACHERS, "classes": VOCABULARY, "sigma2": sigma}
    votes = np.zeros((PRICED, TEACHERS), dtype=np.int64)
    return pate.quote(votes, "gnmax", **asked, delta=_DELTA, max_epsilon=1e6).epsilon


def picture(points: list[Point]) -> Any:
    """Shares of votes and of asks against how far teachers are apart, both ways to draw."""
    from pate_cli.disclosure.pictures import new_axes, styled, with_legend

    title = f"{TEACHERS} teachers, {VOCABULARY:,} tokens: who votes alike, and what is released"
    distances = [one.apart for one in points]
    looks = (("shared", "#0072B2", "-", "o"), ("alone", "#D55E00", "--", "s"))
    named = {"shared": "clocks that all share", "alone": "each teacher by itself"}

    @styled
    def drawn() -> Any:
        upper, lower = new_axes(title, below=2)
        for way, colour, line, marker in looks:
            found = [getattr(one, way) for one in points]
            for axes, values in (
                (upper, [100.0 * votes.share for votes in found]),
                (lower, [100.0 * votes.kept for votes in found]),
            ):
                axes.plot(distances, values, line, color=colour, marker=marker, label=named[way])
        grid = np.linspace(0.0, 1.0, 101)
        upper.plot(
            grid,
            100.0 * (1.0 - grid) / (1.0 + grid),
            ":",
            color="#555555",
            label="at least, (1 − TV)/(1 + TV)",
        )
        upper.set_ylabel("votes for the\nlargest class (%)")
        lower.set_ylabel("released token is\nthe plurality (%)")
        lower.set_xlabel("mean total variation between two teachers (right is less alike)")
        for axes in (upper, lower):
            axes.set_xlim(-0.02, 1.0)
            axes.set_ylim(-4.0, 104.0)
        return with_legend(upper)

    return drawn()


def main() -> None:
    """Print the table."""
    sys.stdout.write("                              alike       plurality released\n")
    sys.stdout.write("sigma2  spread  apart    alone  shared    alone  shared\n")
    middle = SPREADS[len(SPREADS) // 2]
    found = [(SIGMA, one) for one in curves()] + [(LESS, point(middle, sigma=LESS))]
    for sigma, one in found:
        sys.stdout.write(
            f"{sigma:6g}  {one.spread:6g}  {one.apart:5.3f}   {one.alone.share:6.1%}  "
            f"{one.shared.share:6.1%}   {one.alone.kept:6.1%}  {one.shared.kept:6.1%}\n"
        )
    for sigma in (SIGMA, LESS):
        sys.stdout.write(
            f"{PRICED} tokens at sigma2 {sigma:g}: epsilon {price(sigma):.2f}, all votes\n"
        )


if __name__ == "__main__":
    main()
