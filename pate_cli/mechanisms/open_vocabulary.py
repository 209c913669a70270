"""Open vocabulary: a label that nobody listed beforehand, where enough teachers say the same."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar, Final

import numpy as np
from scipy.special import log_ndtr, ndtr, ndtri

from pate_cli.accounting.composition import Composition
from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.textbook import Gaussian
from pate_cli.core.arrays import NO_LABEL, Floats, Histograms, LabelArray, SparseCounts, compact
from pate_cli.core.checks import LARGEST, MOST_CLASSES, check_delta, check_scale, check_whole
from pate_cli.core.errors import ParameterError, UnreachableError
from pate_cli.core.noise import Noise, normal_from_words
from pate_cli.core.words import OPEN_SHARE, MechanismName
from pate_cli.mechanisms.base import ComposedMechanism, RunShape
from pate_cli.mechanisms.gnmax import GNMax

# Orders 1.05 … 513, to three decimals: any of them is valid.
_ORDERS: Final = np.round(1.0 + np.geomspace(0.05, 512.0, 81), 3)
_LEAK_SHARE: Final = 0.5
_FAR: Final = 10.0
_NODES: Final = np.polynomial.legendre.leggauss(128)


@dataclass(frozen=True)
class OpenVocabulary(ComposedMechanism):
    """Among the names that somebody said, argmax_j n_j + N(0, σ2²), if that is at least T.

    Choose it where what teachers may say is not known beforehand. The threshold keeps names to
    itself that one record alone has brought in, so it is high: for hundreds of teachers.

        >>> mechanism = pate.OpenVocabulary(teachers=400, sigma2=20, threshold=150)
        >>> pate.aggregate([[380, 12, 8]] * 20, mechanism, layout="counts", seed=1).report
        <Report: epsilon 1.0186 at delta 1e-05, 20 of 20 queries answered>

    Names that nobody said get no noise and are no outcome. What that may give away is a chance of
    at most `leak` a query, for a name that only one record's teachers said (accounting/THEORY.md,
    section 23); without it, a query costs what an answer of gnmax does.

    Attributes:
        teachers, teachers_per_record, votes_together: as in Mechanism.
        classes: how many columns histograms have; of no other account.
        sigma2: standard deviation of the noise on each count, > 0 (votes).
        threshold: T, finite (votes).
    """

    name: ClassVar[MechanismName] = MechanismName.OPEN_VOCABULARY
    listed: ClassVar[bool] = False
    refusals = None  # no field: they cost what answers do

    teachers: int
    classes: int = MOST_CLASSES
    _: KW_ONLY
    sigma2: float
    threshold: float = math.inf  # given, where others derive it
    teachers_per_record: int = 1
    votes_together: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_scale("sigma2", self.sigma2)
        if not abs(self.threshold) <= LARGEST:
            raise ParameterError(
                f"threshold must be at most {LARGEST} either way, got {self.threshold}"
            )

    @classmethod
    def defaults(cls, run: RunShape, given: Mapping[str, Any]) -> dict[str, Any]:
        """σ2 in proportion to the teachers, and T so high that half of δ is what names may leak."""
        sigma = given.get("sigma2", run.of_teachers(OPEN_SHARE))
        moved = run.teachers_per_record
        chance = _LEAK_SHARE * run.delta / (run.queries * moved)
        height = moved + float(sigma) * -float(ndtri(chance))
        return {"sigma2": sigma, "threshold": float(f"{math.ceil(height * 100.0) / 100.0:.12g}")}

    def parameters(self) -> dict[str, Any]:
        """Without the classes where nobody knows them."""
        found = super().parameters()
        if self.classes == MOST_CLASSES:
            del found["classes"]
        return found

    @property
    def leak(self) -> float:
        """δ of one query: the chance that names of one record alone come out.

        j of them, of k votes together, have at most k − j + 1 each.
        """
        k = self.teachers_per_record
        names = np.arange(1, 2 if self.votes_together else k + 1)
        return float(np.max(names * ndtr((k - names + 1 - self.threshold) / self.sigma2)))

    @property
    def draws(self) -> int:
        """As `argmax_draws`."""
        return self.argmax_draws

    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """One noisy argmax of the names with votes per histogram, if it reaches T."""
        counts = compact(counts)
        if isinstance(counts, SparseCounts):
            width = counts.labels.shape[1]
            words = noise.words((len(counts), self.sparse_draws))
            drawn, votes = normal_from_words(words[:, :width]), counts.counts
        else:
            drawn, votes = noise.normal(counts.shape), np.asarray(counts)
        noisy = np.where(votes > 0, votes + self.sigma2 * drawn, -np.inf)
        best = np.argmax(noisy, axis=1)[:, None]
        height = np.take_along_axis(noisy, best, axis=1)[:, 0]
        labels = best
        if isinstance(counts, SparseCounts):
            labels = np.take_along_axis(counts.labels, best, axis=1)
        reached = height >= self.threshold
        return np.where(reached, labels[:, 0], NO_LABEL).astype(np.int32)

    def answer_chance(self, counts: Histograms) -> Floats:
        """Pr[some noisy count of a name reaches T] per query, [queries]."""
        votes = _votes(counts)
        below = np.where(votes > 0, log_ndtr((self.threshold - votes) / self.sigma2), 0.0)
        return np.asarray(-np.expm1(below.sum(axis=1)))

    def loss_chance(self, counts: Histograms) -> Floats:
        """Pr[an answer is not the plurality] per query, [queries]; 0 where there is none.

        By a quadrature over the noise on the plurality, from where it reaches T.
        """
        answered = self.answer_chance(counts)
        votes = np.sort(_votes(counts), axis=1)
        most, others = votes[:, -1:], votes[:, :-1]
        lowest = np.maximum((self.threshold - most) / self.sigma2, -_FAR)
        half = np.maximum(_FAR - lowest, 1.0) / 2.0
        found = np.zeros(len(votes))
        for node, weight in zip(*_NODES, strict=True):
            x = lowest + half * (node + 1.0)
            ahead = np.where(others > 0, log_ndtr(x + (most - others) / self.sigma2), 0.0)
            log_density = ahead.sum(axis=1) - x[:, 0] ** 2 / 2.0
            found += weight * half[:, 0] * np.exp(log_density) / math.sqrt(2.0 * math.pi)
        found[most[:, 0] == 0] = 0.0
        with np.errstate(invalid="ignore"):
            return np.where(answered > 0.0, np.clip(1.0 - found / answered, 0.0, 1.0), 0.0)

    def textbook(self, *, queries: int, answers: int) -> tuple[Gaussian, ...]:
        """A histogram of L2 sensitivity k√2 for each query, its names aside."""
        del answers
        return (Gaussian(queries, self.sigma2 / self.teachers_per_record / math.sqrt(2.0)),)

    def privacy(self, queries: int, delta: float) -> Composition:
        """The (ε, δ) of k1 queries for all votes, whatever was said before each.

        Args:
            queries: k1 ≥ 1.
            delta: δ of the whole, in (0, 1); what is not leaked is for the conversion.

        Raises:
            ParameterError: a number outside its range.
            UnreachableError: δ below what the leaks alone amount to.
        """
        queries, delta = check_whole("queries", queries), check_delta(delta)
        leaked = queries * self.leak
        if leaked >= delta:
            raise UnreachableError(
                f"names that one record alone brings in leak with a chance of {leaked:.3g} in "
                f"{queries} queries, above delta {delta:g}; raise `threshold` or ask fewer"
            )
        conversion = conversion_cost(_ORDERS, delta=delta - leaked)

        def epsilon(at: int) -> float:
            return queries * self._answer_cost(float(_ORDERS[at])) + float(conversion[at])

        sigma = self.sigma2 / self.teachers_per_record
        best = int(np.argmin(queries * _ORDERS / sigma**2 * (2.0 / math.pi) + conversion))
        for step in (1, -1):
            while 0 <= best + step < _ORDERS.size and epsilon(best + step) < epsilon(best):
                best += step
        return Composition(max(epsilon(best), 0.0), delta, "renyi")

    def _answer_cost(self, order: float) -> float:
        """w2(λ): a noisy argmax's with T for one count more; of several votes the histogram's."""
        k = 1 if self.votes_together else self.teachers_per_record
        if k > 1:
            return k**2 * order / self.sigma2**2
        return float(self._listed.worst_answer(np.array([order]))[0])

    @cached_property
    def _listed(self) -> GNMax:
        """The argmax of names that are known, of which three are as dear as any number."""
        return GNMax(self.teachers, 3, sigma2=self.sigma2 / self.teachers_per_record)


def _votes(counts: Histograms) -> Floats:
    """Counts in float64, [queries, names]; 0 where there are none."""
    votes = counts.counts if isinstance(counts, SparseCounts) else counts
    return np.asarray(votes, dtype=np.float64)
