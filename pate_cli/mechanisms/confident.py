"""Confident-GNMax: answer a query only if a noisy test says that enough teachers agree."""

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
from pate_cli.accounting.gaussian.noisy_max import score_lipschitz, worst_scores
from pate_cli.accounting.gaussian.two_classes import two_class_states_rdp
from pate_cli.accounting.score_grid import EVERY, FINE, Resolution, RivalColumns, ScoreGrid
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

# Sensitivities are computed for at most this many blocks of plurality counts, however small σ1 is.
_MOST_BLOCKS = 1024
# The worst case is the maximum over at most this many groups of plurality counts.
_MOST_GROUPS = 2048
# A lattice with more cells than this is slow.
_LARGE = 1 << 21
_MOST_TIED = 1e8  # votes
_ROUND_OFF = 1e-6  # votes; the ends of rows have rounding errors


@dataclass(frozen=True)
class ThresholdTest:
    """The threshold test v + N(0, σ1²) ≥ T; its scores v are divided into intervals, called rows.

    Row i contains low + i·width ≤ v ≤ low + (i+1)·width. With width 0, v is one of the whole
    numbers low, low + 1, …, and each number is a row. If `width` is positive, the scores v of two
    neighbouring votes differ by at most `width`, so their row numbers i differ by at most one. If
    the width is positive, the cost of a row is the supremum of the costs of all v in the row.

    Attributes:
        low: the lowest score (votes).
        rows: the number of rows.
        width: the width of a row (votes).
        threshold: T (votes).
        sigma: σ1 (votes).
        moved: k, by how much v can differ between neighbours (votes).
    """

    low: float
    rows: int
    width: float
    threshold: float
    sigma: float
    moved: int

    def index(self, scores: Floats) -> Ints:
        """Return the index i of the row (the interval of scores) that contains each score v."""
        step = self.width or 1.0
        place = np.floor((scores - self.low) / step + (0.0 if self.width else 0.5))
        return np.clip(place.astype(np.int64), 0, self.rows - 1)

    @property
    def lowest(self) -> Floats:
        """The lower end of each row (interval of scores v), [rows]."""
        return self.low + np.arange(self.rows, dtype=np.float64) * (self.width or 1.0)

    def moments(self, low: Floats, order: float) -> PassMoments:
        """Return upper bounds on the moments of the test in intervals of v that begin at `low`."""
        return cell_moments(
            low,
            width=self.width,
            threshold=self.threshold,
            sigma=self.sigma,
            order=order,
            moved=self.moved,
        )

    def chain(self, moments: PassMoments, argmax_rdp: Floats, order: float) -> Floats:
        """Return the RDP cost ρ of test and argmax together, nats."""
        cap = self.moved**2 * order / (2.0 * self.sigma**2)
        return chain_rdp(moments, argmax_rdp, cap=cap)


@dataclass(frozen=True, eq=False)
class ConfidentTable(CostTable):
    """The RDP cost ρ of a query at one order, for intervals of its scores v and z.

    A query is the threshold test with score v, and the argmax with score z if the test passes. A
    row of the table is an interval of v, and a column is an interval of z. A cell is a pair (row,
    column). If `rivals` is not None, there is a second table with the same rows, but its columns
    are intervals of y, which is z plus a multiple of v.

    Attributes:
        argmax: the RDP cost of the argmax for each interval of z.
        rivals: the columns of y, which describe how one vote changes v and z together. If `rivals`
            is None, there are only columns of z, and sensitivities treat v and z as if one vote
            could change them independently.
        test: the threshold test, whose intervals of v are the rows.
        resolution: how fine the lattice of scores is, on which costs are computed.
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
        """The grid that divides the scores z of the argmax into intervals."""
        return self.argmax.grid

    @property
    def lattice(self) -> ScoreGrid:
        """The grid that divides y (or z if `rivals` is None) into the columns of sensitivities.

        Between neighbouring votes the column of a query changes by at most `lattice.stride`.
        """
        return self.grid if self.rivals is None else self.rivals.grid

    def on_lattice(self, cells: Ints) -> Ints:
        """Replace the column of z in each cell by the column of `lattice`; rows do not change."""
        return cells if self.rivals is None else self.rivals.cells(cells)

    @property
    def lattice_rows(self) -> int:
        """The number of rows of the table, which are intervals of v."""
        return self.test.rows

    @property
    def rows_per_block(self) -> int:
        """The number of rows in a block; a sensitivity is computed for a whole block at once.

        Rows are intervals of v. The scores v in a block differ by at most a fraction of σ1, but
        each block has at least one row. If there would be more than 1024 blocks, each block gets
        more rows.
        """
        rows = int(self.test.sigma / self.test.moved) // self.resolution.per_sigma
        if self.rivals is not None:  # the score in a column falls from row to row
            rows = min(rows, int(self.resolution.block / self.rivals.fall))
        return max(1, rows, -(-self.test.rows // _MOST_BLOCKS))

    @property
    def sampled(self) -> bool:
        """Whether sensitivities skip rows: only in large tables that serve to choose settings."""
        return self.resolution.quick and self.test.rows * self.lattice.size > _LARGE

    def rows(self, start: int, stop: int, columns: Ints | slice = EVERY) -> Floats:
        """Return the RDP cost ρ of the cells in rows start ≤ i < stop, nats.

        `columns` are columns of `lattice`, and the result is [stop − start, columns].
        """
        moments = self.test.moments(self.test.lowest[start:stop, None], self.order)
        if self.rivals is not None:
            columns = self.rivals.scores_at(start, stop, columns)
        return self.test.chain(moments, self.argmax.values[columns], self.order)

    def cost(self, cells: Ints) -> Floats:
        """Return the RDP cost ρ of a query in each cell (row, column of z), [cells], nats."""
        moments = self._moments_of(cells[:, 0])
        return self.test.chain(moments, self.argmax.values[cells[:, 1]], self.order)

    def steps_of(self, rows: Ints, column_rdp: Floats) -> dict[str, Floats]:
        """Return the RDP cost of the test, and the remaining RDP cost of the query, for each cell.

        Each cell is given by its row in `rows` and the RDP cost of its argmax in `column_rdp`.
        """
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

    Choose this mechanism for the best labels at a given ε, if queries on which teachers disagree
    need no label. Confident-GNMax is the default mechanism.

        >>> shape = {"teachers": 100, "classes": 3}
        >>> mechanism = pate.ConfidentGNMax(threshold=80, sigma1=20, sigma2=8, **shape)
        >>> pate.aggregate([[97, 2, 1], [40, 35, 25]], mechanism, layout="counts", seed=1).labels
        <Labels: 1 of 2 queries labelled>

    The RDP cost of a query depends on the score (v, z). One vote moves v = max_j n_j by at most 1,
    and the score z of GNMax by at most √2/σ2; accounting.score_grid bounds how both move together.
    The module accounting.threshold defines the RDP cost ρ of test and argmax together.

    Attributes:
        threshold: the threshold T, finite (votes).
        sigma1: standard deviation of the noise on the largest count, > 0 (votes).
        sigma2: standard deviation of the noise on each count of the argmax, > 0 (votes).
    """

    name: ClassVar[MechanismName] = MechanismName.CONFIDENT
    takes_prior: ClassVar[bool] = True
    real_scores: ClassVar[bool] = False
    """Whether the score of the threshold test may be any real number."""

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
        """Return default values of T, σ1 and σ2, proportional to the number of teachers."""
        return {
            "threshold": run.of_teachers(THRESHOLD_SHARE),
            "sigma1": run.of_teachers(SIGMA1_SHARE),
            **GNMax.defaults(run, given),
        }

    @property
    def draws(self) -> int:
        """Return how many random numbers a query needs: one for the test, and `argmax_draws`."""
        return self.argmax_draws + 1

    @cached_property
    def argmax(self) -> GNMax:
        """Return GNMax, the second step of a query, as a mechanism."""
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
        """The threshold test, with rows for all whole scores v ≥ 0, or for all real scores."""
        votes, moved = self.most_votes, self.teachers_per_record
        low, rows, width = 0.0, votes + 1, 0.0
        if self.real_scores or moved > 1:
            low = -float(votes) if self.real_scores else 0.0
            # The width is slightly larger than `moved`; otherwise rounding could make neighbours
            # differ by two rows.
            width = moved * (1.0 + 1e-9)
            rows = int((votes - low) // width) + 1
        return ThresholdTest(low, rows, width, self.threshold, self.sigma1, moved)

    def test_score(self, counts: Histograms) -> Floats:
        """Return the score v = max_j n_j that the test compares with T, [queries] (votes)."""
        return plurality(counts).astype(np.float64)

    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """Draw a label for every histogram; NO_LABEL if the test fails.

        The noise of the argmax is drawn even if the test fails, so that the draws of a row only
        depend on the number of the row.
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
        """Return Pr[the test passes] = Φ((v − T)/σ1) of each query, [queries]."""
        return np.asarray(ndtr((self.test_score(counts) - self.threshold) / self.sigma1))

    def loss_chance(self, counts: Histograms) -> Floats:
        """Return Pr[the argmax is not the plurality] of each query, [queries]."""
        return self.argmax.loss_chance(counts)

    def score(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """Return the score (v, z) of each query, [queries, 2]."""
        return np.column_stack([self.test_score(counts), self.argmax.scores(counts, grid=grid)])

    @property
    def lipschitz(self) -> tuple[float, ...]:
        """How far a neighbour can move v and z: (k, k√2/σ2 plus numerical errors)."""
        return (float(self.teachers_per_record), *self.argmax.lipschitz)

    def cost_table(self, order: float, resolution: Resolution = FINE) -> ConfidentTable:
        """Return the RDP cost ρ of a query at one order, as a table by intervals of v and z.

        The table knows how one vote changes the score v of the test and the score z of the argmax
        together (`rivals`), except in four cases: v is no count of votes, as in `interactive`; a
        record trained k > 1 teachers, so that an interval of v contains several whole numbers; the
        noise is so large that a vote moves z by less than the error of z; or `rivals` would have
        too many columns.
        """
        if not (self.real_scores or self.teachers_per_record > 1 or self.sigma2 > _MOST_TIED):
            # y = z + v/(σ√2) of `RivalColumns` moves half as far as z, by 1/(σ√2).
            half = score_lipschitz(2.0 * self.sigma2)
            argmax = self.argmax.table_of(order, resolution, lipschitz=2.0 * half, parts=2)
            rivals = RivalColumns.of(argmax.grid, half=half, highest=self._highest_scores)
            if rivals is not None:
                return ConfidentTable(argmax, rivals, self._test, resolution)
        argmax = self.argmax.cost_table(order, resolution)
        return ConfidentTable(argmax, None, self._test, resolution)

    @cached_property
    def _highest_scores(self) -> Floats:
        """The highest score that a plurality of v votes can have, v = 0 … τ, [τ + 1]."""
        return worst_scores(teachers=self.most_votes, classes=self.classes, sigma=self.sigma2)

    def cells(self, score: Floats, grid: ScoreGrid) -> Ints:
        """Return the indices of the intervals that contain v and z of each query, [queries, 2]."""
        return np.stack([self._test.index(score[:, 0]), grid.cells(score[:, 1])], axis=1)

    def column_costs(self, columns: Ints, grid: ScoreGrid, orders: Floats) -> Floats:
        """Return the RDP cost of the argmax for intervals of z, [orders, columns], nats.

        `columns` are the indices of these intervals in `grid`.
        """
        return self.argmax.column_costs(columns, grid, orders)

    def vote_states(self, counts: Histograms) -> Ints:
        """Return the votes of each query as `state_costs` needs them, [queries, 1 + classes].

        The first number is the index of the interval that contains the score v of the query. The
        counts follow in descending order.
        """
        rows = self._test.index(self.test_score(counts))
        return np.column_stack([rows, self.argmax.vote_states(counts)])

    def state_costs(
        self, states: Ints, *, order: float, distances: Ints, progress: Shares = no_progress
    ) -> Floats:
        """Return the largest RDP cost of each query if at most d votes on the query change.

        There is one result for each d in `distances`. The cost of the test and the cost of the
        argmax are computed for the same votes. For two classes the cost is exact, except in
        `interactive`. In `interactive` the score v is not a count of votes, and the result is only
        an upper bound on the cost. For each d, this upper bound combines the largest cost of the
        argmax with the most costly v after at most d votes change, even if no votes have this v and
        this cost of the argmax.
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
        """Raise ParameterError if `state_costs` might need too much memory."""
        if not self.slow_states:
            self.argmax.check_states(rows, order=order, furthest=furthest)
        else:
            from pate_cli.accounting.gaussian.tied import check_tied_size

            check_tied_size(self.argmax.states_size(rows, order, furthest))

    @property
    def slow_states(self) -> bool:
        """Whether `state_costs` is slow: for more than two classes, except in `interactive`."""
        return self.classes > 2 and not self.real_scores

    def state_seconds(self, rows: int, *, order: float, furthest: int) -> float:
        """Estimate the seconds that `state_costs` takes.

        `rows` is the number of distinct rows in the result of `vote_states`.
        """
        if not self.slow_states or self.classes > DENSE_CLASSES:
            return self.argmax.state_seconds(rows, order=order, furthest=furthest)
        from pate_cli.accounting.gaussian.tied import tied_seconds

        return tied_seconds(self.argmax.states_size(rows, order, furthest))

    def query_costs(self, orders: Floats, *, lone: bool = False) -> StepCosts:
        """Return the worst-case RDP costs of the test, of an answer, and of a whole query."""
        selecting = worst_threshold_rdp(
            teachers=self.most_votes,
            threshold=self.threshold,
            sigma=self.sigma1,
            orders=orders,
            real=self.real_scores,
            moved=self.teachers_per_record,
        )
        answering = self.argmax.query_costs(orders, lone=lone).answer
        kind, cost = "lone query" if lone else "query", partial(self._worst_queries, lone=lone)
        return StepCosts(selecting, answering, kept(kind, self, orders, cost))

    def _worst_queries(self, orders: Floats, *, lone: bool = False) -> Floats:
        """Return w12(λ), the worst-case RDP cost of a whole query over all votes, [orders], nats.

        The sum w1 + w2 would be the cost of a query whose votes are the worst for the test *and*
        for the argmax. But the largest count v decides the test and also limits how often the
        plurality can lose (`worst_scores`). So w12 is the supremum of ρ over v, where ρ is computed
        with the highest score z of the argmax that is possible with this v. ρ bounds the Rényi
        divergence, in both directions, between votes with score v and all their neighbours, also
        neighbours with another score than v. In `interactive`, v = max_j (n_j − τ p_j) is not the
        largest count, but the largest count is at least v.
        """
        cells = zip(orders.tolist(), self._worst_cells(orders, lone=lone), strict=True)
        return np.array([float(self._test.chain(*each, order).max()) for order, each in cells])

    def _worst_cells(
        self, orders: Floats, *, lone: bool = False
    ) -> Iterator[tuple[PassMoments, Floats]]:
        """Yield the moments of the test and the largest cost of the argmax, for each interval of v.

        The function yields one pair (moments, costs) for each order.
        """
        low = self._test.lowest
        # Scores fall as v grows, so the argmax costs most in the first row of a group.
        size = -(-low.size // _MOST_GROUPS)
        first = np.arange(low.size) // size * size
        counts = np.clip(np.ceil(low - _ROUND_OFF), 0, self.most_votes).astype(np.int64)
        used, inverse = np.unique(self._highest_scores[counts[first]], return_inverse=True)
        costs = np.maximum.accumulate(self.argmax.bounds(used, orders, lone=lone), axis=1)
        for order, cost in zip(orders.tolist(), costs, strict=True):
            yield self._test.moments(low, order), cost[inverse]

    def query_moments(self, order: float) -> QueryMoments | None:
        """Return the factors by which a query multiplies a run's moment e^{(λ − 1)·(RDP cost)}.

        The result is None on overflow. One factor is for a refusal (the test fails), and the other
        factor is for an answer. Let c = λ − 1. The test alone multiplies a moment by 1 + `excess`
        (`PassMoments`). The factor 1 + `excess` is the sum of two terms: `weight` if the test
        passes, and 1 + `excess` − `weight` if the test fails. So a refusal has the factor
        1 + `excess` − `weight`. An answer has the factor `weight`·e^{cF}, where F is the RDP cost
        of the argmax.

        The code computes both factors for each interval of v. If an interval contains more than one
        v, `excess` and `weight` are suprema over the interval, and 1 + `excess` − `weight` may be
        smaller than the factor of a refusal at some v in the interval. So there is a second pair of
        factors for each interval: 1 + `excess` for a refusal, and 0 for an answer. With A for a
        refusal and B for an answer, `QueryMoments.growth` takes the larger A + Br of the two pairs,
        which is an upper bound on A + Br at every v in the interval.
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
        """Return the steps that a textbook would compose: k1 published maxima, k2 histograms.

        Each maximum has sensitivity k.
        """
        looks = Gaussian(queries, self.sigma1 / self.teachers_per_record)
        return (looks, *self.argmax.textbook(queries=queries, answers=answers))

    def usual_slope(self, *, queries: int, answers: int) -> float:
        """Estimate `worst_rdp` divided by λ, to find the best order, not to bound `worst_rdp`.

        No histogram is costly both for the test and for the argmax. So the estimate is 0.42 times
        the sum of the estimated slopes of the test and of the argmax.
        """
        return 0.42 * super().usual_slope(queries=queries, answers=answers)

    def gaussian_mu(self, *, queries: int, answers: int) -> float:
        """Return μ of the Gaussian-DP bound, with μ² = k²(k1/σ1² + 2 k2/σ2²)."""
        selecting = self.teachers_per_record * np.sqrt(queries) / self.sigma1
        answering = self.argmax.gaussian_mu(queries=queries, answers=answers)
        return float(np.hypot(selecting, answering))
