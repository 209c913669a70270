"""Confident-GNMax: answer only if a noisy test says that enough teachers agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import ndtr

from pate_cli.accounting.composition import Gaussian
from pate_cli.accounting.cost_table import CostTable, ScoreTable
from pate_cli.accounting.few_votes import StepCosts
from pate_cli.accounting.gaussian.noisy_max import rival_lipschitz, worst_scores
from pate_cli.accounting.gaussian.two_classes import two_class_states_rdp
from pate_cli.accounting.score_grid import FINE, Resolution, RivalColumns, ScoreGrid
from pate_cli.accounting.stopping import QueryMoments
from pate_cli.accounting.threshold import PassMoments, cell_moments, chain_rdp, worst_threshold_rdp
from pate_cli.core.arrays import (
    DENSE_CLASSES,
    NO_LABEL,
    Floats,
    Histograms,
    Ints,
    LabelArray,
    SparseCounts,
    compact,
)
from pate_cli.core.checks import LARGEST, check_scale
from pate_cli.core.errors import ParameterError
from pate_cli.core.noise import Noise, normal_from_words
from pate_cli.core.words import SIGMA1_SHARE, THRESHOLD_SHARE, MechanismName
from pate_cli.mechanisms.base import (
    RunShape,
    ScoredMechanism,
    Shares,
    kept,
    no_progress,
    noisy_argmax,
    plurality,
)
from pate_cli.mechanisms.gnmax import GNMax

_EVERY = slice(None)
# However small σ1 is, sensitivities are kept on at most this many blocks of plurality counts.
_MOST_BLOCKS = 1024
# The worst case is the maximum over at most this many groups of plurality counts.
_MOST_GROUPS = 2048
# From this many cells on, a lattice is slow.
_LARGE = 1 << 21
_MOST_TIED = 1e8  # votes
_ROUND_OFF = 1e-6  # votes; the ends of cells are rounded numbers


@dataclass(frozen=True)
class ThresholdTest:
    """The test v + N(0, σ1²) ≥ T, and the rows of a lattice for its score v.

    Row i holds low + i·width ≤ v ≤ low + (i+1)·width. Width 0 stands for whole scores low, low + 1,
    …, each in a row of its own. Otherwise the width is the largest move of v between neighbours, so
    that v moves by at most one row, and costs are suprema over rows.

    Attributes:
        low: the lowest score (votes).
        rows: the number of rows.
        width: the width of a row (votes).
        threshold: T (votes).
        sigma: σ1 (votes).
        moved: k, the largest move of v between neighbours (votes).
    """

    low: float
    rows: int
    width: float
    threshold: float
    sigma: float
    moved: int

    @classmethod
    def of(
        cls, *, votes: int, real: bool, threshold: float, sigma: float, moved: int
    ) -> ThresholdTest:
        """Return the threshold test with rows for the whole scores from 0 to `votes`.

        With `real` the rows are for all scores from −`votes` to `votes`.
        """
        low = -float(votes) if real else 0.0
        if not real and moved == 1:
            return cls(low, votes + 1, 0.0, threshold, sigma, moved)
        # Slightly wider than a neighbour's move, which rounding could otherwise carry over two
        # rows.
        width = moved * (1.0 + 1e-9)
        return cls(low, int((votes - low) // width) + 1, width, threshold, sigma, moved)

    def index(self, scores: Floats) -> Ints:
        """Return the row of each score."""
        step = self.width or 1.0
        place = np.floor((scores - self.low) / step + (0.0 if self.width else 0.5))
        return np.clip(place.astype(np.int64), 0, self.rows - 1)

    @property
    def lowest(self) -> Floats:
        """The low end of each row, [rows]."""
        return self.low + np.arange(self.rows, dtype=np.float64) * (self.width or 1.0)

    def moments(self, low: Floats, order: float) -> PassMoments:
        """Return the moments of the test in the rows that begin at `low`."""
        return cell_moments(
            low,
            width=self.width,
            threshold=self.threshold,
            sigma=self.sigma,
            order=order,
            moved=self.moved,
        )

    def chain(self, moments: PassMoments, argmax_rdp: Floats, order: float) -> Floats:
        """Return ρ for the moments of the test and the cost of the argmax, nats."""
        cap = self.moved**2 * order / (2.0 * self.sigma**2)
        return chain_rdp(moments, argmax_rdp, cap=cap)


@dataclass(frozen=True, eq=False)
class ConfidentTable(CostTable):
    """ρ on cells (row of v, k) at one order.

    Attributes:
        argmax: the cost of the argmax on its grid.
        rivals: the lattice that ties v to the score of the argmax; None if a neighbour may move one
            without the other.
        test: the test, and the rows of v.
        resolution: how fine the lattice is.
    """

    argmax: ScoreTable
    rivals: RivalColumns | None
    test: ThresholdTest
    resolution: Resolution

    @property
    def order(self) -> float:  # type: ignore[override]  # read-only, like all fields
        """The Rényi order λ."""
        return self.argmax.order

    @property
    def grid(self) -> ScoreGrid:  # type: ignore[override]  # as above
        """The argmax's grid."""
        return self.argmax.grid

    @property
    def lattice(self) -> ScoreGrid:
        """The grid of the columns, which is that of `rivals` if v and the score are tied."""
        return self.grid if self.rivals is None else self.rivals.grid

    def on_lattice(self, cells: Ints) -> Ints:
        """Return the places on the lattice of cells (row, k) of the argmax's grid."""
        return cells if self.rivals is None else self.rivals.cells(cells)

    @property
    def lattice_rows(self) -> int:
        """The number of rows of v."""
        return self.test.rows

    @property
    def rows_per_block(self) -> int:
        """A fraction of σ1 in rows, or more if there would be too many blocks."""
        rows = int(self.test.sigma / self.test.moved) // self.resolution.per_sigma
        if self.rivals is not None:  # the score in one column falls from row to row
            rows = min(rows, int(self.resolution.block / self.rivals.fall))
        return max(1, rows, -(-self.test.rows // _MOST_BLOCKS))

    @property
    def sampled(self) -> bool:
        """Whether the lattice is large and serves only to compare settings."""
        return self.resolution.quick and self.test.rows * self.lattice.size > _LARGE

    def rows(self, start: int, stop: int, columns: Ints | slice = _EVERY) -> Floats:
        """Return ρ for rows start ≤ i < stop."""
        moments = self.test.moments(self.test.lowest[start:stop, None], self.order)
        if self.rivals is not None:
            columns = self.rivals.scores_at(start, stop, columns)
        return self.test.chain(moments, self.argmax.values[columns], self.order)

    def cost(self, cells: Ints) -> Floats:
        """Return ρ at cells (row, k)."""
        moments = self._moments_of(cells[:, 0])
        return self.test.chain(moments, self.argmax.values[cells[:, 1]], self.order)

    def steps_of(self, rows: Ints, column_rdp: Floats) -> dict[str, Floats]:
        """Return the cost of the test alone in each row, and the rest of ρ."""
        moments = self._moments_of(rows)
        selecting = self.test.chain(moments, np.zeros(rows.size), self.order)
        whole = self.test.chain(moments, column_rdp, self.order)
        return {"threshold": selecting, "argmax": np.maximum(whole - selecting, 0.0)}

    def _moments_of(self, rows: Ints) -> PassMoments:
        used, inverse = np.unique(rows, return_inverse=True)
        return self.test.moments(self.test.lowest[used], self.order).take(inverse)


@dataclass(frozen=True, kw_only=True)
class ConfidentGNMax(ScoredMechanism):
    """Answer by GNMax with σ2 if max_j n_j + N(0, σ1²) ≥ T: Algorithm 1 of the ICLR 2018 paper.

    Choose it for the best labels at a given ε, if queries on which teachers disagree need no label.
    It is the default.

        >>> shape = {"teachers": 100, "classes": 3}
        >>> mechanism = pate.ConfidentGNMax(threshold=80, sigma1=20, sigma2=8, **shape)
        >>> pate.aggregate([[97, 2, 1], [40, 35, 25]], mechanism, layout="counts", seed=1).labels
        <Labels: 1 of 2 queries labelled>

    The score is (v, z). One vote moves v = max_j n_j by at most 1, and z (as in GNMax) by at most
    √2/σ2; accounting.score_grid bounds both moves together. The cost is ρ, the chain rule of
    accounting.threshold.

    Attributes:
        threshold: T, finite (votes).
        sigma1: standard deviation of the noise on the largest count, > 0 (votes).
        sigma2: standard deviation of the noise on each count of the argmax, > 0 (votes).
    """

    name: ClassVar[MechanismName] = MechanismName.CONFIDENT
    takes_prior: ClassVar[bool] = True
    real_scores: ClassVar[bool] = False
    """Whether the score of the test may be any real number."""

    threshold: float
    sigma1: float
    sigma2: float

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.argmax
        check_scale("`sigma1`", self.sigma1)
        if not np.isfinite(self.threshold):
            raise ParameterError(f"`threshold` must be finite, got {self.threshold}")
        if abs(self.threshold) > LARGEST:
            raise ParameterError(
                f"`threshold` must be between -{LARGEST} and {LARGEST}, got {self.threshold}"
            )

    @classmethod
    def defaults(cls, run: RunShape, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return T and both σ's in proportion to the teachers."""
        return {
            "threshold": run.of_teachers(THRESHOLD_SHARE),
            "sigma1": run.of_teachers(SIGMA1_SHARE),
            **GNMax.defaults(run, given),
        }

    @property
    def draws(self) -> int:
        """Return how many draws a query takes: one for the test, and those of the argmax."""
        return self.argmax_draws + 1

    @cached_property
    def argmax(self) -> GNMax:
        """Return the second step, GNMax, as a mechanism."""
        return GNMax(
            self.teachers,
            self.classes,
            sigma2=self.sigma2,
            teachers_per_record=self.teachers_per_record,
            votes_together=self.votes_together,
            prior_weight=self.prior_weight,
        )

    @cached_property
    def _test(self) -> ThresholdTest:
        return ThresholdTest.of(
            votes=self.most_votes,
            real=self.real_scores,
            threshold=self.threshold,
            sigma=self.sigma1,
            moved=self.teachers_per_record,
        )

    def test_score(self, counts: Histograms) -> Floats:
        """Return the score v that is compared with T: max_j n_j, [queries] (votes)."""
        return plurality(counts).astype(np.float64)

    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """Test and argmax for every histogram, with one row of noise for each.

        The noise of the argmax is drawn whether or not it is used, so that the draws of a row
        depend only on its place.
        """
        counts = compact(counts)
        if isinstance(counts, SparseCounts):
            words = noise.words((len(counts), self.sparse_draws + 1))
            look, labels = normal_from_words(words[:, 0]), self.argmax.pick(counts, words[:, 1:])
        else:
            labels, first = noisy_argmax(counts, self.sigma2, noise.normal, beside=1)
            look = first[:, 0]
        passed = self.test_score(counts) + self.sigma1 * look >= self.threshold
        return np.where(passed, labels, np.int32(NO_LABEL))

    def answer_chance(self, counts: Histograms) -> Floats:
        """Return Φ((v − T)/σ1) per query, [queries]."""
        return np.asarray(ndtr((self.test_score(counts) - self.threshold) / self.sigma1))

    def loss_chance(self, counts: Histograms) -> Floats:
        """Return Pr[the argmax is not the plurality]; it does not depend on the test."""
        return self.argmax.loss_chance(counts)

    def score(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """Return (v, z) per query, [queries, 2]."""
        return np.column_stack([self.test_score(counts), self.argmax.scores(counts, grid=grid)])

    @property
    def lipschitz(self) -> tuple[float, ...]:
        """(k, k√2/σ2), the second plus the error of the quadrature."""
        return (float(self.teachers_per_record), *self.argmax.lipschitz)

    def cost_table(self, order: float, resolution: Resolution = FINE) -> ConfidentTable:
        """Return ρ on its lattice at one order."""
        return ConfidentTable(*self._tied_argmax(order, resolution), self._test, resolution)

    def _tied_argmax(
        self, order: float, resolution: Resolution
    ) -> tuple[ScoreTable, RivalColumns | None]:
        """Return the argmax, and the lattice that ties its score to v; None if they are not tied.

        If k > 1 teachers share a record, rows span several votes, and the place of v in its row is
        unknown. If the noise is very large, a vote moves the score by no more than its error. In
        both cases there is no tie.
        """
        if self.real_scores or self.teachers_per_record > 1 or self.sigma2 > _MOST_TIED:
            return self.argmax.cost_table(order, resolution), None
        half = rival_lipschitz(self.sigma2)
        table = self.argmax.table_of(order, resolution, lipschitz=2.0 * half, parts=2)
        rivals = RivalColumns.of(table.grid, half=half, highest=self._highest_scores)
        return (self.argmax.cost_table(order, resolution) if rivals is None else table), rivals

    @cached_property
    def _highest_scores(self) -> Floats:
        """The highest score that a plurality of v allows, v = 0 … τ."""
        return worst_scores(teachers=self.most_votes, classes=self.classes, sigma=self.sigma2)

    def cells(self, score: Floats, grid: ScoreGrid) -> Ints:
        """Return (row of v, k) for scores [queries, 2]."""
        return np.stack([self._test.index(score[:, 0]), grid.cells(score[:, 1])], axis=1)

    def column_costs(self, columns: Ints, grid: ScoreGrid, orders: Floats) -> Floats:
        """Return the cost of the argmax in single columns."""
        return self.argmax.column_costs(columns, grid, orders)

    def vote_states(self, counts: Histograms) -> Ints:
        """Return (row of v, the argmax's state) per query."""
        rows = self._test.index(self.test_score(counts))
        return np.column_stack([rows, self.argmax.vote_states(counts)])

    def state_costs(
        self, states: Ints, *, order: float, distances: Ints, progress: Shares = no_progress
    ) -> Floats:
        """Return the RDP cost of whole queries, with test and argmax tied together.

        The cost is exact for two classes. If the score of the test is no count, the result is ρ
        with the argmax's cost within a distance, at the worst v within this distance.
        """
        if not self.real_scores:
            tied: dict[str, Any] = {
                "teachers": self.most_votes,
                "sigma": self.sigma2,
                "threshold": self.threshold,
                "sigma_threshold": self.sigma1,
                "order": order,
                "distances": distances,
            }
            if self.classes == 2:
                progress(1.0)
                return two_class_states_rdp(states[:, 1:], **tied)
            from pate_cli.accounting.gaussian.tied import tied_rdp

            cap = float(self.argmax.worst_answer(np.array([order]))[0])
            return tied_rdp(states[:, 1:], **tied, argmax_cap=cap, progress=progress)
        progress(1.0)
        argmax_rdp = self.argmax.state_costs(states[:, 1:], order=order, distances=distances)
        moments = self._test.moments(self._test.lowest, order)
        found = np.zeros(argmax_rdp.shape)
        for index, distance in enumerate(distances.tolist()):
            for step in range(-distance, distance + 1):
                rows = np.clip(states[:, 0] + step, 0, self._test.rows - 1)
                cost = self._test.chain(moments.take(rows), argmax_rdp[index], order)
                found[index] = np.maximum(found[index], cost)
        return found

    def check_states(self, rows: int, *, order: float, furthest: int) -> None:
        """Refuse sizes for which the cost of the two noisy steps needs too much memory."""
        self.argmax.check_states(rows, order=order, furthest=furthest)
        if self.slow_states:
            from pate_cli.accounting.gaussian.tied import check_tied_size

            check_tied_size(
                teachers=self.most_votes, classes=self.classes, sigma=self.sigma2, order=order
            )

    @property
    def slow_states(self) -> bool:
        """Whether test and argmax are tied and there are more than two classes."""
        return self.classes > 2 and not self.real_scores

    def state_seconds(self, rows: int, *, order: float, furthest: int) -> float:
        """Estimate the seconds of the bound that ties test and argmax, or of the argmax's bound."""
        if not self.slow_states or self.classes > DENSE_CLASSES:
            return self.argmax.state_seconds(rows, order=order, furthest=furthest)
        from pate_cli.accounting.gaussian.tied import tied_seconds

        return tied_seconds(**self.argmax.states_shape(rows, order, furthest))

    def query_costs(self, orders: Floats, *, lone: bool = False) -> StepCosts:
        """Return w1(λ), w2(λ) and w12(λ)."""
        selecting = worst_threshold_rdp(
            teachers=self.most_votes,
            threshold=self.threshold,
            sigma=self.sigma1,
            orders=orders,
            real=self.real_scores,
            moved=self.teachers_per_record,
        )
        answering = self.argmax.query_costs(orders, lone=lone).answer
        return StepCosts(selecting, answering, self._worst_query(orders, lone=lone))

    def _worst_query(self, orders: Floats, *, lone: bool) -> Floats:
        """Return w12(λ), the cost of one whole query for all votes, [orders], nats.

        w1 + w2 would be the cost of a query that is a tie and passes the test. But the plurality v
        decides the test and limits how often the plurality can lose (`worst_scores`). So the
        supremum is over v alone, of ρ with F at the highest score that v allows. Each of two
        neighbours has its own v, and ρ bounds both directions from either of them. If v is no count
        (interactive), some count is at least v.
        """
        kind = "lone query" if lone else "query"
        return kept(kind, self, orders, partial(self._worst_queries, lone=lone))

    def _worst_queries(self, orders: Floats, *, lone: bool = False) -> Floats:
        cells = zip(orders.tolist(), self._worst_cells(orders, lone=lone), strict=True)
        return np.array([float(self._test.chain(*each, order).max()) for order, each in cells])

    def _worst_cells(
        self, orders: Floats, *, lone: bool = False
    ) -> Iterator[tuple[PassMoments, Floats]]:
        """Yield the moments of the test by row of v, and the argmax's largest cost in each row.

        There is one such pair for each order.
        """
        low = self._test.lowest
        # Scores fall with v, so a group of rows costs at most as much as its first row.
        size = -(-low.size // _MOST_GROUPS)
        first = np.arange(low.size) // size * size
        counts = np.clip(np.ceil(low - _ROUND_OFF), 0, self.most_votes).astype(np.int64)
        used, inverse = np.unique(self._highest_scores[counts[first]], return_inverse=True)
        costs = np.maximum.accumulate(self.argmax.bounds(used, orders, lone=lone), axis=1)
        for order, cost in zip(orders.tolist(), costs, strict=True):
            yield self._test.moments(low, order), cost[inverse]

    def query_moments(self, order: float) -> QueryMoments | None:
        """Return the moments of a refusal and of an answer as factors; None if they overflow.

        Let e^{cF} be the factor of the labels of an answer, and 1 + excess the factor of the test
        alone. The factor of a refusal is then 1 + excess − weight. If both are suprema over a cell
        of v, this could be too small for answers that count for less than refusals; then 1 + excess
        alone is a bound.
        """
        ((moments, argmax_rdp),) = self._worst_cells(np.array([order]))
        with np.errstate(over="ignore", invalid="ignore"):
            weight = np.exp(moments.log_weight)
            answer = (weight * np.exp((order - 1.0) * argmax_rdp)).ravel()
            test = (1.0 + moments.excess).ravel()
            refuse = test - weight.ravel()
        if not (np.isfinite(answer).all() and np.isfinite(refuse).all()):
            return None
        if self._test.width:
            refuse = np.concatenate([refuse, test])
            answer = np.concatenate([answer, np.zeros(test.size)])
        alone = float(self.argmax.worst_answer(np.array([order]))[0])
        return QueryMoments(order, refuse, answer, answer_cost=alone)

    def textbook(self, *, queries: int, answers: int) -> tuple[Gaussian, ...]:
        """Return k1 maxima of sensitivity k, and the histograms of the argmax."""
        looks = Gaussian(queries, self.sigma1 / self.teachers_per_record)
        return (looks, *self.argmax.textbook(queries=queries, answers=answers))

    def usual_slope(self, *, queries: int, answers: int) -> float:
        """Estimate `worst_rdp` per unit of λ, as 0.42 of the estimate for test plus argmax.

        No votes make both test and argmax expensive, so that less than their sum remains.
        """
        return 0.42 * super().usual_slope(queries=queries, answers=answers)

    def gaussian_mu(self, *, queries: int, answers: int) -> float:
        """Return μ, with μ² = k²(k1/σ1² + 2 k2/σ2²)."""
        selecting = self.teachers_per_record * np.sqrt(queries) / self.sigma1
        answering = self.argmax.gaussian_mu(queries=queries, answers=answers)
        return float(np.hypot(selecting, answering))
