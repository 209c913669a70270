"""How often noisy labels are right, and what they cost, over a range of noise. SECRET."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.errors import VoteError
from pate_cli.mechanisms.base import Mechanism
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.noise import Noise
from pate_cli.pricing.cost import TIGHT_ORDERS, measure_cost
from pate_cli.votes.side_files import UNKNOWN
from pate_cli.words import Analysis

__all__ = ["NOISE_SHARES", "AccuracyPoint", "measure_accuracy"]

NOISE_SHARES = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Standard deviations of the noise on a count, in units of the number of teachers."""

_DRAWS = 20
_SEED = 20180224


@dataclass(frozen=True)
class AccuracyPoint:
    """One aggregator that answers every query.

    Attributes:
        mechanism: its name.
        deviation: standard deviation of the noise on each count (votes).
        parameter: σ of gnmax, b of lnmax (votes).
        accuracy: share of labels that are right, averaged over draws.
        epsilon: data-dependent ε of all labels, tight analysis.
        order: the Rényi order it was found at.
    """

    mechanism: str
    deviation: float
    parameter: float
    accuracy: float
    epsilon: float
    order: float


def measure_accuracy(
    batches: Callable[[], Iterable[tuple[NDArray[np.int64], NDArray[np.int64]]]],
    *,
    teachers: int,
    classes: int,
    delta: float,
    teachers_per_record: int = 1,
) -> list[AccuracyPoint]:
    """LNMax and GNMax at equal standard deviations: Figure 4 (left) of the ICLR 2018 paper.

    Args:
        batches: (counts [rows, classes], true labels [rows], −1 where unknown), read afresh by
            every call.
        teachers, classes, teachers_per_record: of the votes.
        delta: δ in (0, 1).

    Raises:
        VoteError: no query has a known label.
    """
    common: dict[str, Any] = {
        "teachers": teachers,
        "classes": classes,
        "teachers_per_record": teachers_per_record,
    }
    points = []
    for share in NOISE_SHARES:
        deviation = share * teachers
        # A Laplace variable of scale b has standard deviation √2 b.
        scale = deviation / np.sqrt(2.0)
        points.append(_point(batches, LNMax(laplace_scale=scale, **common), deviation, delta))
        points.append(_point(batches, GNMax(sigma2=deviation, **common), deviation, delta))
    return points


def _point(
    batches: Callable[[], Iterable[tuple[NDArray[np.int64], NDArray[np.int64]]]],
    mechanism: LNMax | GNMax,
    deviation: float,
    delta: float,
) -> AccuracyPoint:
    # These draws are for an estimate that stays secret; a fixed seed makes it repeatable.
    noise = Noise.from_seed(_SEED)
    right = known = 0
    for counts, truth in batches():
        seen = truth != UNKNOWN
        known += _DRAWS * int(seen.sum())
        for _ in range(_DRAWS):
            right += int((mechanism.label(counts, noise) == truth)[seen].sum())
    if known == 0:
        raise VoteError("no query of the votes has a true label")

    def priced() -> Iterable[tuple[Mechanism, NDArray[np.int64]]]:
        return ((mechanism, counts) for counts, _ in batches())

    cost = measure_cost(priced, orders=TIGHT_ORDERS, delta=delta, analysis=Analysis.TIGHT)
    parameter = mechanism.laplace_scale if isinstance(mechanism, LNMax) else mechanism.sigma2
    return AccuracyPoint(
        mechanism=mechanism.name,
        deviation=deviation,
        parameter=float(parameter),
        accuracy=right / known,
        epsilon=cost.epsilon,
        order=cost.order,
    )
