"""How often noisy labels are right, and what they cost, over a range of noise. SECRET."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.core.noise import RunKey
from pate_cli.core.table import row_columns
from pate_cli.files.results import Result
from pate_cli.mechanisms.base import OneScoreMechanism
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.pricing.cost import TIGHT_ORDERS, measure_cost
from pate_cli.run.fold import AskedRows
from pate_cli.votes.checks import ABSENT
from pate_cli.votes.join import Joined
from pate_cli.votes.vote_file import VoteBatch

NOISE_SHARES = (0.02, 0.04, 0.08, 0.16, 0.32, 0.64)
"""Standard deviations of the noise on a count, in units of the number of teachers."""

_DRAWS = 20


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


@dataclass(frozen=True, repr=False)
class Accuracy(Result):
    """Aggregators that answer every query, over a range of noise. SECRET."""

    points: tuple[AccuracyPoint, ...]
    queries: int
    delta: float

    def to_dict(self) -> dict[str, Any]:
        """One entry a point; JSON-ready."""
        return {
            "schema_version": 1,
            "releasable": False,
            "queries": self.queries,
            "delta": self.delta,
            "accuracy": [asdict(point) for point in self.points],
        }

    def columns(self) -> dict[str, NDArray[Any]]:
        """One row a point."""
        return row_columns(self.points)

    def headline(self) -> str:
        """How many points of how many queries."""
        return f"{len(self.points)} noise levels on {self.queries} queries"


def measure_accuracy(
    votes: AskedRows,
    truth: Joined,
    *,
    teachers: int,
    classes: int,
    delta: float,
    teachers_per_record: int = 1,
) -> list[AccuracyPoint]:
    """LNMax and GNMax at equal standard deviations: Figure 4 (left) of the ICLR 2018 paper.

    Args:
        votes: over the queries.
        truth: their true labels.
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
        scale = float(deviation / np.sqrt(2.0))
        laplace = LNMax(laplace_scale=scale, **common)
        points.append(_point(votes, truth, laplace, scale, deviation, delta))
        gaussian = GNMax(sigma2=deviation, **common)
        points.append(_point(votes, truth, gaussian, deviation, deviation, delta))
    return points


@dataclass(frozen=True)
class _CountRight:
    """How many labels of a batch are right, and of how many that is known."""

    truth: Joined

    def __call__(self, mechanism: OneScoreMechanism, batch: VoteBatch) -> tuple[int, int]:
        wanted = self.truth.at(batch.ids, batch.first_row, ABSENT)
        right = 0
        for seed in range(_DRAWS):
            # These draws are for an estimate that stays secret; fixed seeds make it repeatable.
            noise = RunKey.from_seed(seed).rows(batch.first_row, mechanism.draws)
            labels = mechanism.label(batch.counts, noise)
            right += int(np.count_nonzero((labels == wanted) & (wanted != ABSENT)))
        return right, _DRAWS * int(np.count_nonzero(wanted != ABSENT))


def _point(
    votes: AskedRows,
    truth: Joined,
    mechanism: OneScoreMechanism,
    parameter: float,
    deviation: float,
    delta: float,
) -> AccuracyPoint:
    right = known = 0
    for found, of in votes.over(mechanism, _CountRight(truth)):
        right, known = right + found, known + of
    if known == 0:
        raise VoteError("no query of the votes has a true label")
    cost = measure_cost(votes, mechanism, orders=TIGHT_ORDERS, delta=delta)
    return AccuracyPoint(
        mechanism=mechanism.name,
        deviation=deviation,
        parameter=parameter,
        accuracy=right / known,
        epsilon=cost.epsilon,
        order=cost.order,
    )
