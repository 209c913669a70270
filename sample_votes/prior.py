"""What public guesses are worth, on the digits: `python sample_votes/prior.py`.

GNMax labels the first 100 queries with noise of several sizes, with and without the guesses of
digits_prior.parquet. Beside the share of labels that are right stands the smallest epsilon that
could have been stated in advance: the least target that these votes pass at 97.7%. A guess has 20
votes, which is what `pate` gives it unless told otherwise, or 40. Takes three minutes.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
from ensembles import FOLDER, load

import pate_cli as pate

QUERIES = 100
SIGMAS = (8.0, 12.0, 16.0, 24.0)
WEIGHTS = (0, 20, 40)
VOTES = FOLDER / "digits.parquet"
GUESSES = FOLDER / "digits_prior.parquet"
DELTA = 1e-5
_CHANCE = "0.977"
_LOOKS = (("#0072B2", "-", "o"), ("#D55E00", "--", "s"), ("#009E73", "-.", "^"))
_SEEDS = 40


@dataclass(frozen=True, kw_only=True)
class Point:
    """Noise of one size.

    Attributes:
        sigma: standard deviation of the noise on each count (votes).
        epsilon: the smallest target that passes.
        right: share of the labels that are right, mean over seeds.
    """

    sigma: float
    epsilon: float
    right: float


def asked(sigma: float, weight: int) -> dict[str, Any]:
    """What `pate` is asked with noise of this size and guesses of this weight (votes)."""
    common = {"layout": "counts", "sigma2": sigma, "max_queries": QUERIES, "delta": DELTA}
    return {**common, "prior": GUESSES, "prior_weight": weight} if weight else common


def right(sigma: float, weight: int, *, seeds: int = _SEEDS) -> float:
    """The share of labels that are right, mean over seeds."""
    truth = load("digits_truth.parquet")["label"][:QUERIES]
    runs = (
        pate.aggregate(VOTES, "gnmax", **asked(sigma, weight), seed=seed) for seed in range(seeds)
    )
    return float(np.mean([np.mean(run.labels.labels[:QUERIES] == truth) for run in runs]))


def least(sigma: float, weight: int) -> float:
    """The smallest target that passes."""
    wanted = {**asked(sigma, weight), "target_epsilon": 2.5, "per_query": False}
    found = pate.cost(VOTES, "gnmax", **wanted).to_dict()["target"]
    return float(found["smallest_epsilon"][_CHANCE])


def curves() -> dict[int, list[Point]]:
    """Points by noise, for every weight."""
    return {
        weight: [
            Point(sigma=sigma, epsilon=least(sigma, weight), right=right(sigma, weight))
            for sigma in SIGMAS
        ]
        for weight in WEIGHTS
    }


def alone() -> float:
    """How often the guesses are right on these queries, without any teacher."""
    found, truth = load("digits_prior.parquet")["label"], load("digits_truth.parquet")["label"]
    return float(np.mean(found[:QUERIES] == truth[:QUERIES]))


def picture(points: dict[int, list[Point]]) -> Any:
    """The share of right labels against epsilon, a curve a weight, and the guesses alone."""
    from pate_cli.disclosure.pictures import new_axes, styled, with_legend

    title = "Digits: public guesses that the teachers correct"

    @styled
    def drawn() -> Any:
        (axes,) = new_axes(title)
        for (weight, curve), look in zip(points.items(), _LOOKS, strict=True):
            colour, line, marker = look
            axes.plot(
                [point.epsilon for point in curve],
                [100.0 * point.right for point in curve],
                line,
                color=colour,
                marker=marker,
                label=f"teachers and guesses of {weight} votes" if weight else "teachers alone",
            )
        axes.axhline(
            100.0 * alone(), linestyle=":", color="#555555", label="guesses alone, at no cost"
        )
        axes.set_xlim(left=0.0)
        axes.set_xlabel(f"smallest ε that could be promised, δ = {DELTA:g} (left is more private)")
        axes.set_ylabel(f"labels of {QUERIES} queries\nthat are right (%)")
        return with_legend(axes, columns=2)

    return drawn()


def main() -> None:
    """Print the table."""
    sys.stdout.write("sigma2  weight  epsilon  labels right\n")
    for weight, points in curves().items():
        for point in points:
            sys.stdout.write(
                f"{point.sigma:6g}  {weight:6}  {point.epsilon:7.2f}  {point.right:12.1%}\n"
            )
    sys.stdout.write(f"the guesses alone: {alone():.1%} right at epsilon 0\n")


if __name__ == "__main__":
    main()
