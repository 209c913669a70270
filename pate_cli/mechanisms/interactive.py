"""Interactive-GNMax: the teachers answer only if they contradict the student."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from pate_cli.core.arrays import (
    DENSE_CLASSES,
    NO_LABEL,
    Floats,
    Histograms,
    LabelArray,
    dense,
    winners,
)
from pate_cli.core.errors import ParameterError
from pate_cli.core.words import CONFIDENCE, MechanismName
from pate_cli.mechanisms.base import plurality
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.votes.join import predictions


@dataclass(frozen=True, kw_only=True)
class InteractiveGNMax(ConfidentGNMax):
    """Answer only if the teachers contradict a student: Algorithm 2 of the ICLR 2018 paper.

    Choose this mechanism for a second round, when a student has learnt from the labels of a first
    round.

        >>> mechanism = pate.InteractiveGNMax(
        ...     teachers=100, classes=2, threshold=40, sigma1=10, sigma2=8,
        ...     predictions=[[0.97, 0.03], [0.97, 0.03]],
        ... )
        >>> given = {"layout": "counts", "order": 8, "release": "none", "seed": 1}
        >>> pate.aggregate([[95, 5], [8, 92]], mechanism, **given).labels.sources.tolist()
        ['student', 'teachers']

    Let p be the probabilities that the student predicts. If max_j (n_j − τ p_j) + N(0, σ1²) ≥ T,
    the teachers answer by GNMax with σ2. If the teachers do not answer and max_j p_j > γ, the
    student's own label is released at no further cost. If the teachers do not answer and
    max_j p_j ≤ γ, the query has no label.

    The RDP cost of a query depends on the score (v, z), where z is the score of GNMax. v = max_j
    (n_j − τ p_j) is a real number, and one vote moves v by at most 1. The code uses the
    largest cost in each of many intervals of v (accounting.threshold.cell_moments).

    The predictions are public, but the student was trained on labels of the same teachers. So the
    cost of a round with a student is added to the costs of the earlier rounds. The sum of the costs
    of all rounds is an ex-post guarantee at one Rényi order that was fixed before the first label
    (THEORY.md, section 6).

    Attributes:
        confidence: γ in [0, 1]. If the teachers do not answer, the student's own label is released
            if the student gives it a probability above γ.
        predictions: the probabilities that the student predicts for each class. `predictions` is
            either an array with all rows, [rows, classes], or a `Joined`, which finds rows by their
            query id. In a mechanism that `for_rows` returned, `predictions` is an array with the
            rows of one batch. The predictions are public, and no report repeats them.
    """

    name: ClassVar[MechanismName] = MechanismName.INTERACTIVE
    takes_few_votes: ClassVar[bool] = False
    required: ClassVar[tuple[str, ...]] = ("predictions",)
    real_scores: ClassVar[bool] = True
    most_classes: ClassVar[int] = DENSE_CLASSES
    sources: ClassVar[str] = (
        "teachers: their noisy plurality; student: its own label, reinforced where it was surer "
        "than confidence and the teachers did not object; none: no answer"
    )

    confidence: float = CONFIDENCE
    predictions: Any = field(default=None, compare=False, metadata={"public": False})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.confidence <= 1.0:
            raise ParameterError(f"`confidence` must be between 0 and 1, got {self.confidence}")

    def with_student(self, read: Callable[[Any], Any]) -> InteractiveGNMax:
        """Return this mechanism with `read(predictions)` as `predictions`; None remains None."""
        given = self.predictions
        return self if given is None else replace(self, predictions=read(given))

    def for_rows(self, ids: Any, first_row: int) -> InteractiveGNMax:
        """Return this mechanism with the predictions for the rows of one batch of votes.

        `ids` are the query ids of these rows, and `first_row` is the number of the first row.
        """
        if self.predictions is None:
            raise ParameterError("interactive needs the student's predictions; give `predictions`")
        given = self.predictions
        if isinstance(given, np.ndarray):
            return replace(self, predictions=given[first_row : first_row + len(ids)])
        return replace(self, predictions=predictions(given, ids, first_row))

    def for_reference(self, counts: Histograms, seed: int) -> InteractiveGNMax:
        """Return the mechanism with a made-up student, who is right and sure on 3 of 4 queries.

        With a made-up student, parameters of a release can be chosen without looking at votes.
        """
        sure = np.random.default_rng(seed).random(len(counts)) < 0.75
        values = np.full(counts.shape, 1.0 / self.classes)
        values[sure] = 0.1 / (self.classes - 1)
        values[sure, winners(counts)[sure]] = 0.9
        return replace(self, predictions=values)

    def test_score(self, counts: Histograms) -> Floats:
        """Return the score v = max_j (n_j − τ p_j) that the test compares with T, [queries].

        The counts n of query i belong to the probabilities p in row i of `predictions`.
        """
        bound = isinstance(self.predictions, np.ndarray) and len(self.predictions) == len(counts)
        if not bound:
            raise ParameterError(
                "`predictions` must have one row per query in `counts`; use the mechanism that "
                "`mechanism.for_rows(ids, first_row)` returns"
            )
        distance = dense(counts) - self.most_votes * self.predictions
        return np.asarray(distance.max(axis=1), dtype=np.float64)

    def _most_answered(self, votes: Histograms) -> float:
        """Return Pr[answered] for a student who predicts the plurality with probability 0."""
        return float(ndtr((plurality(votes)[0] - self.threshold) / self.sigma1))

    def fallback(self) -> LabelArray | None:
        """Return the student's public label per row; NO_LABEL if the student is not confident."""
        values = self.predictions
        if values is None:
            return None
        sure = values.max(axis=1) > self.confidence
        return np.where(sure, values.argmax(axis=1), NO_LABEL).astype(np.int32)
