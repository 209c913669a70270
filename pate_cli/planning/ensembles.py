"""Made-up teachers over a range of agreement: what stands in for votes that nobody has seen.

One made-up ensemble cannot stand for all. So whatever is chosen or said before the first vote looks
at fifteen: five levels of agreement, from hard to easy, and at each of them three kinds of queries:
much alike, easy and hard ones mixed, and a tenth of them of a class that few teachers know. The
recipe and its seed are fixed, so all of it is public, and anyone can draw the same.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Final, Self

import numpy as np

from pate_cli.core.arrays import Counts, Floats, Histograms, Ints, SparseCounts, stacked
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import ParameterError, UsageError, quoted
from pate_cli.mechanisms.synthetic import SyntheticEnsemble
from pate_cli.planning.sample import VoteSample
from pate_cli.planning.sanitized import REFERENCE_SEED
from pate_cli.votes.checks import with_votes

KINDS: Final = ("alike", "easy and hard", "some of a rare class")
PRIOR_ACCURACY: Final = 0.85
"""How often a prior is right of which nothing is known."""

_LEVELS, _ROWS = 5, 1800
_SPREADS = (0.2, 0.5, 0.2)
# Every so manieth query is of the rare class, and so much fewer teachers get it right.
_RARE, _RARE_LOSS = 10, 0.35
_LEAST_AGREEMENT = 0.05
_RANGE = re.compile(r"\s*([0-9.]+%?)\s*(?::\s*([0-9.]+%?)\s*)?")


@dataclass(frozen=True)
class Agreement:
    """How often a teacher is right on average: somewhere from `low` to `high`, in (0, 1)."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0.0 < self.low <= self.high < 1.0:
            raise ParameterError(
                "`agreement` must be a share between 0 and 1, or low:high, got "
                f"{self.low:g}:{self.high:g}"
            )

    @classmethod
    def unknown(cls, classes: int) -> Self:
        """Where nothing is known: no worse than half, and of two classes a little better."""
        return cls(0.5 if classes > 2 else 0.65, 0.95)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Of `0.7`, `70%` or `0.6:0.95`; UsageError for anything else."""
        found = _RANGE.fullmatch(text)
        if found is None:
            raise UsageError(f"`agreement` is a share or low:high, got {quoted(text)}")
        try:
            low, high = (_share(part) for part in (found[1], found[2] or found[1]))
        except ValueError:
            raise UsageError(f"`agreement` is a share or low:high, got {quoted(text)}") from None
        return cls(low, high)

    @property
    def levels(self) -> tuple[float, ...]:
        """Those that are looked at, ascending."""
        if self.low == self.high:
            return (self.low,)
        levels = np.linspace(self.low, self.high, _LEVELS).tolist()
        return tuple(round(level, 4) for level in levels)


@dataclass(frozen=True, eq=False)
class Ensembles:
    """Queries of several made-up ensembles of one shape, one after the other. Public if they are.

    Attributes:
        sample: all their queries.
        levels: mean agreement of each, [ensembles].
        kinds: what their queries are like, [ensembles].
        each: how many queries of each there are.
    """

    sample: VoteSample
    levels: tuple[float, ...]
    kinds: tuple[str, ...]
    each: int

    @classmethod
    def made_up(
        cls,
        *,
        teachers: int,
        classes: int,
        agreement: Agreement,
        weights: Sequence[int] = (),
        teachers_per_record: int = 1,
        prior_weight: int = 0,
        prior_accuracy: float = PRIOR_ACCURACY,
    ) -> Self:
        """Drawn by the recipe.

        Args:
            teachers: τ, votes in all.
            classes: m.
            agreement: the range of agreement.
            weights: votes of each teacher, which add up to τ; none where each has one.
            teachers_per_record: k, the most votes of a query that one record moves.
            prior_weight: B.
            prior_accuracy: how often the prior is right, in [0, 1].
        """
        levels = agreement.levels
        each = _ROWS // (len(levels) * len(KINDS))
        random = np.random.default_rng(REFERENCE_SEED)
        drawn = [
            (level, kind, _drawn(teachers, classes, level, place, each, weights, random))
            for level in levels
            for place, kind in enumerate(KINDS)
        ]
        counts = stacked([counts for _, _, (counts, _) in drawn])
        alone = None
        if prior_weight:
            truth = np.concatenate([truth for _, _, (_, truth) in drawn])
            right = random.random(len(truth)) < prior_accuracy
            shift = random.integers(1, classes, size=len(truth))
            guesses = (truth + np.where(right, 0, shift)) % classes
            alone, counts = counts, with_votes(counts, guesses, prior_weight)
        sample = VoteSample(
            counts, teachers, teachers_per_record, prior_weight=prior_weight, alone=alone
        )
        return cls(
            sample,
            tuple(level for level, _, _ in drawn),
            tuple(kind for _, kind, _ in drawn),
            each,
        )

    @classmethod
    def of(cls, sample: VoteSample) -> Self:
        """Votes that are there, as the one ensemble: SECRET as they are."""
        return cls(sample, (math.nan,), ("as they are",), sample.queries)

    @property
    def number(self) -> int:
        """How many ensembles there are."""
        return len(self.levels)

    def by_ensemble(self, values: Floats) -> Floats:
        """What is known of every query, [queries], as [ensembles, each]."""
        return values.reshape(self.number, self.each)


def _drawn(
    teachers: int,
    classes: int,
    level: float,
    kind: int,
    queries: int,
    weights: Sequence[int],
    random: np.random.Generator,
) -> tuple[Histograms, Ints]:
    """Histograms and truth of one ensemble; of the last kind every tenth query is of a rare class.

    Of teachers with several votes each weight is an ensemble of its own, on the same queries.
    """
    rare = np.zeros(queries, dtype=bool)
    if KINDS[kind] == KINDS[-1]:
        rare[_RARE - 1 :: _RARE] = True
    seed = int(random.integers(2**31))

    def votes(number: int, agreement: float, seed: int) -> tuple[Histograms, Ints]:
        ensemble = SyntheticEnsemble(
            teachers=number,
            classes=classes,
            queries=queries,
            agreement=agreement,
            spread=_SPREADS[kind],
        )
        return ensemble.draw(seed)

    def mixed(number: int) -> tuple[Histograms, Ints]:
        counts, truth = votes(number, level, seed)
        if not rare.any():
            return counts, truth
        hard = max(level - _RARE_LOSS, _LEAST_AGREEMENT)
        hard_counts, hard_truth = votes(number, hard, seed + 1)
        return _chosen(rare, hard_counts, counts), np.where(rare, hard_truth, truth)

    if not weights:
        return mixed(teachers)
    sizes, numbers = np.unique(np.asarray(weights, dtype=np.int64), return_counts=True)
    parts = [mixed(number) for number in numbers.tolist()]
    total = sum(
        size * np.asarray(_dense(counts))
        for size, (counts, _) in zip(sizes.tolist(), parts, strict=True)
    )
    return np.asarray(total, dtype=np.int64), parts[0][1]


def _chosen(first: np.ndarray, some: Histograms, others: Histograms) -> Histograms:
    """Rows of some histograms where `first`, else of the others."""
    rows = np.where(first, np.arange(len(first)), len(first) + np.arange(len(first)))
    return stacked([some, others])[rows]


def _dense(counts: Histograms) -> Counts:
    if isinstance(counts, SparseCounts):
        raise ParameterError("teachers of several votes are made up for few classes only")
    return counts


def _share(text: str) -> float:
    value = float(text[:-1]) / 100.0 if text.endswith("%") else float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value
