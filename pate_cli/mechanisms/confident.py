"""Confident-GNMax: answer only where a noisy look says that the teachers agree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from pate_cli.accounting.cost_table import CostTable, ScoreTable
from pate_cli.accounting.gaussian.noisy_max import rival_lipschitz, worst_scores
from pate_cli.accounting.gaussian.two_class_states import two_class_states_rdp
from pate_cli.accounting.rival_columns import RivalColumns
from pate_cli.accounting.score_grid import FINE, Resolution, ScoreGrid
from pate_cli.accounting.stopping import QueryMoments
from pate_cli.accounting.textbook import Gaussian
from pate_cli.accounting.threshold import (
    PassMoments,
    cell_moments,
    chain_rdp,
    worst_threshold_rdp,
)
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
from pate_cli.core.special import ndtr
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
# The worst case is sought over so many groups of plurality counts at most.
_MOST_GROUPS = 2048
# Cells of a lattice that takes long.
_LARGE = 1 << 21
_MOST_TIED = 1e8  # votes
_ROUND_OFF = 1e-6  # votes; ends of cells are rounded numbers


@dataclass(frozen=True)
class VoteCells:
    """How the test's score v is cut into rows: cell i holds low + i·width ≤ v ≤ low + (i+1)·width.

    Width 0 stands for whole scores low, low + 1, …, each a cell of its own. Otherwise the width is
    how far a neighbour moves v, so that it moves one row at most, and costs are suprema over cells.

    Attributes:
        low: the lowest score (votes).
        rows: number of cells.
        width: of a cell (votes).
    """

    low: float
    rows: int
    width: float

    @classmethod
    def of(cls, *, teachers: int, real: bool, teachers_per_record: int) -> VoteCells:
        """Cells for whole scores 0, …, τ, or with `real` for any score in [−τ, τ]."""
        if not real and teachers_per_record == 1:
            return cls(low=0.0, rows=teachers + 1, width=0.0)
        low = -float(teachers) if real else 0.0
        # A trifle wider than a neighbour's move, which round-off would else carry over two cells.
        width = teachers_per_record * (1.0 + 1e-9)
        return cls(low=low, rows=int((teachers - low) // width) + 1, width=width)

    def index(self, scores: Floats) -> Ints:
        """The row of each score."""
        step = self.width or 1.0
        place = np.floor((scores - self.low) / step + (0.0 if self.width else 0.5))
        return np.clip(place.astype(np.int64), 0, self.rows - 1)

    def lowest(self, start: int, stop: int) -> Floats:
        """The low end of rows start ≤ i < stop."""
        return self.low + np.arange(start, stop, dtype=np.float64) * (self.width or 1.0)


@dataclass(frozen=True, eq=False)
class ConfidentTable(CostTable):
    """ρ on cells (row of v, k) at one order.

    Attributes:
        rivals: the lattice where v and the argmax's score are tied together; None where a neighbour
            may move either without the other.
    """

    argmax: ScoreTable
    rivals: RivalColumns | None
    votes: VoteCells
    threshold: float
    sigma1: float
    teachers_per_record: int
    resolution: Resolution

    @property
    def order(self) -> float:  # type: ignore[override]  # read-only here, as everywhere
        """The Rényi order λ."""
        return self.argmax.order

    @property
    def grid(self) -> ScoreGrid:  # type: ignore[override]  # as above
        """The argmax's grid."""
        return self.argmax.grid

    @property
    def lattice(self) -> ScoreGrid:
        """The argmax's, or that of the rivals."""
        return self.grid if self.rivals is None else self.rivals.grid

    def on_lattice(self, cells: Ints) -> Ints:
        """There."""
        return cells if self.rivals is None else self.rivals.cells(cells)

    @property
    def lattice_rows(self) -> int:
        """Cells of v."""
        return self.votes.rows

    @property
    def rows_per_block(self) -> int:
        """A fraction of σ1, and so many that there are not too many blocks."""
        rows = int(self.sigma1 / self.teachers_per_record) // self.resolution.per_sigma
        if self.rivals is not None:  # scores of one column fall from row to row
            rows = min(rows, int(self.resolution.block / self.rivals.fall))
        return max(1, rows, -(-self.votes.rows // _MOST_BLOCKS))

    @property
    def sampled(self) -> bool:
        """Where the lattice is large and nothing hangs on it."""
        return self.resolution.quick and self.votes.rows * self.lattice.size > _LARGE

    def rows(self, start: int, stop: int, columns: Ints | slice = _EVERY) -> Floats:
        """ρ for rows start ≤ i < stop."""
        moments = self._moments(self.votes.lowest(start, stop)[:, None])
        if self.rivals is not None:
            columns = self.rivals.scores_at(start, stop, columns)
        return self._chain(moments, self.argmax.values[columns])

    def cost(self, cells: Ints) -> Floats:
        """ρ at cells (row, k)."""
        return self.chain(cells[:, 0], self.argmax.values[cells[:, 1]])

    def steps_of(self, rows: Ints, column_rdp: Floats) -> dict[str, Floats]:
        """What the selecting coin costs alone, and the rest of ρ, which is one divergence."""
        used, inverse = np.unique(rows, return_inverse=True)
        moments = self._moments(self.votes.lowest(0, self.votes.rows)[used])
        selecting = self._chain(moments, np.zeros(used.size))[inverse]
        whole = self._chain(moments.take(inverse), column_rdp)
        return {"threshold": selecting, "argmax": np.maximum(whole - selecting, 0.0)}

    def chain(self, rows: Ints, argmax_rdp: Floats) -> Floats:
        """ρ in given rows for given costs of the argmax, [queries] each."""
        used, inverse = np.unique(rows, return_inverse=True)
        moments = self._moments(self.votes.lowest(0, self.votes.rows)[used])
        return self._chain(moments.take(inverse), argmax_rdp)

    def _moments(self, low: Floats) -> PassMoments:
        return cell_moments(
            low,
            width=self.votes.width,
            threshold=self.threshold,
            sigma=self.sigma1,
            order=self.order,
            teachers_per_record=self.teachers_per_record,
        )

    def _chain(self, moments: PassMoments, argmax_rdp: Floats) -> Floats:
        k = self.teachers_per_record
        return chain_rdp(moments, argmax_rdp, cap=k**2 * self.order / (2.0 * self.sigma1**2))


@dataclass(frozen=True)
class ConfidentGNMax(ScoredMechanism):
    """Algorithm 1 of the ICLR 2018 paper: if max_j n_j + N(0, σ1²) ≥ T, answer by GNMax with σ2.

    Choose it for the best labels for the price, where queries that teachers disagree on may go
    without: the default.

        >>> shape = {"teachers": 100, "classes": 3}
        >>> mechanism = pate.ConfidentGNMax(threshold=80, sigma1=20, sigma2=8, **shape)
        >>> pate.aggregate([[97, 2, 1], [40, 35, 25]], mechanism, layout="counts", seed=1).labels
        <Labels: 1 of 2 queries labelled>

    Score (v, z): v = max_j n_j moves by at most 1 with one vote, z as in GNMax by √2/σ2, and both
    as accounting.rival_columns has it. Cost ρ, the chain rule of accounting.threshold.

    Attributes:
        teachers, classes, teachers_per_record, votes_together, prior_weight: as in Mechanism.
        threshold: T, finite (votes).
        sigma1: standard deviation of the noise on the largest count, > 0 (votes).
        sigma2: standard deviation of the noise on each count of the argmax, > 0 (votes).
    """

    name: ClassVar[MechanismName] = MechanismName.CONFIDENT
    takes_prior: ClassVar[bool] = True
    real_scores: ClassVar[bool] = False
    """Whether the test's score may be any real number."""

    teachers: int
    classes: int
    _: KW_ONLY
    threshold: float
    sigma1: float
    sigma2: float
    teachers_per_record: int = 1
    votes_together: bool = False
    prior_weight: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        _ = self.argmax
        check_scale("sigma1", self.sigma1)
        if not np.isfinite(self.threshold):
            raise ParameterError(f"threshold must be finite, got {self.threshold}")
        if abs(self.threshold) > LARGEST:
            raise ParameterError(
                f"threshold must be at most {LARGEST} either way, got {self.threshold}"
            )

    @classmethod
    def defaults(cls, run: RunShape, given: Mapping[str, Any]) -> dict[str, Any]:
        """T and both σ's in proportion to the teachers."""
        return {
            "threshold": run.of_teachers(THRESHOLD_SHARE),
            "sigma1": run.of_teachers(SIGMA1_SHARE),
            **GNMax.defaults(run, given),
        }

    @property
    def draws(self) -> int:
        """One for the test, and those of the argmax."""
        return self.argmax_draws + 1

    @cached_property
    def argmax(self) -> GNMax:
        """The second step on its own."""
        return GNMax(
            self.teachers,
            self.classes,
            sigma2=self.sigma2,
            teachers_per_record=self.teachers_per_record,
            votes_together=self.votes_together,
            prior_weight=self.prior_weight,
        )

    @cached_property
    def _vote_cells(self) -> VoteCells:
        return VoteCells.of(
            teachers=self.most_votes,
            real=self.real_scores,
            teachers_per_record=self.teachers_per_record,
        )

    def test_score(self, counts: Histograms) -> Floats:
        """What is compared to T: max_j n_j, [queries] (votes)."""
        return plurality(counts).astype(np.float64)

    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """Threshold and argmax for every histogram, one row of noise each.

        The argmax's noise is drawn whether or not it is used, so that a row's draws depend on
        its place alone.
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
        """Φ((v − T)/σ1) per query, [queries]."""
        return np.asarray(ndtr((self.test_score(counts) - self.threshold) / self.sigma1))

    def loss_chance(self, counts: Histograms) -> Floats:
        """As GNMax: the second step does not know of the first."""
        return self.argmax.loss_chance(counts)

    def score(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """(v, z) per query, [queries, 2]."""
        return np.column_stack([self.test_score(counts), self.argmax.scores(counts, grid=grid)])

    @property
    def lipschitz(self) -> tuple[float, ...]:
        """(k, k√2/σ2), the second widened by the error of the quadrature."""
        return (float(self.teachers_per_record), *self.argmax.lipschitz)

    def cost_table(self, order: float, resolution: Resolution = FINE) -> ConfidentTable:
        """ρ on its lattice at one order."""
        argmax, rivals = self._tied_argmax(order, resolution)
        return ConfidentTable(
            argmax=argmax,
            rivals=rivals,
            votes=self._vote_cells,
            threshold=self.threshold,
            sigma1=self.sigma1,
            teachers_per_record=self.teachers_per_record,
            resolution=resolution,
        )

    def _tied_argmax(
        self, order: float, resolution: Resolution
    ) -> tuple[ScoreTable, RivalColumns | None]:
        """The argmax, and the lattice that ties it to v: one vote, and v the count of its winner.

        Rows of several votes, as with k teachers a record, would leave open where in its row v is;
        and noise so large that a vote moves the score no more than its error does ties nothing.
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
        """(row of v, k) for scores [queries, 2]."""
        rows = self._vote_cells.index(score[:, 0])
        return np.stack([rows, grid.cells(score[:, 1])], axis=1)

    def column_costs(self, columns: Ints, grid: ScoreGrid, orders: Floats) -> Floats:
        """Those of the argmax."""
        return self.argmax.column_costs(columns, grid, orders)

    def prepare(self, orders: Floats) -> None:
        """The argmax's worst answers."""
        self.argmax.prepare(orders)

    def vote_states(self, counts: Histograms) -> Ints:
        """(row of v, the argmax's state) per query."""
        rows = self._vote_cells.index(self.test_score(counts))
        return np.column_stack([rows, self.argmax.vote_states(counts)])

    def state_costs(
        self,
        states: Ints,
        *,
        order: float,
        distances: Ints,
        progress: Shares = no_progress,
    ) -> Floats:
        """The whole query's cost, test and argmax tied together, exact for two classes.

        Where the test's score is no count: ρ with the argmax's cost within a distance, at the worst
        v within it.
        """
        if self.classes == 2 and not self.real_scores:
            progress(1.0)
            return two_class_states_rdp(
                states[:, 1:],
                teachers=self.most_votes,
                sigma=self.sigma2,
                order=order,
                distances=distances,
                threshold=self.threshold,
                sigma_threshold=self.sigma1,
            )
        if not self.real_scores:
            from pate_cli.accounting.gaussian.tied import tied_rdp

            return tied_rdp(
                states[:, 1:],
                teachers=self.most_votes,
                sigma=self.sigma2,
                threshold=self.threshold,
                sigma_threshold=self.sigma1,
                order=order,
                distances=distances,
                argmax_cap=float(self.argmax.worst_answer(np.array([order]))[0]),
                progress=progress,
            )
        progress(1.0)
        argmax_rdp = self.argmax.state_costs(states[:, 1:], order=order, distances=distances)
        moments = cell_moments(
            self._vote_cells.lowest(0, self._vote_cells.rows),
            width=self._vote_cells.width,
            threshold=self.threshold,
            sigma=self.sigma1,
            order=order,
        )
        cap = order / (2.0 * self.sigma1**2)
        found = np.empty(argmax_rdp.shape)
        for index, distance in enumerate(distances.tolist()):
            worst = np.zeros(len(states))
            for step in range(-distance, distance + 1):
                rows = np.clip(states[:, 0] + step, 0, self._vote_cells.rows - 1)
                cost = chain_rdp(moments.take(rows), argmax_rdp[index], cap=cap)
                worst = np.maximum(worst, cost)
            found[index] = worst
        return found

    def check_states(self, rows: int, *, order: float, furthest: int) -> None:
        """As GNMax, and what ties the argmax to the test."""
        self.argmax.check_states(rows, order=order, furthest=furthest)
        if self.slow_states:
            from pate_cli.accounting.gaussian.tied import check_tied_size

            check_tied_size(
                teachers=self.most_votes, classes=self.classes, sigma=self.sigma2, order=order
            )

    @property
    def slow_states(self) -> bool:
        """Where test and argmax are tied, but for two classes."""
        return self.classes > 2 and not self.real_scores

    def state_seconds(self, rows: int, *, order: float, furthest: int) -> float:
        """As GNMax, or that of the tie."""
        if not self.slow_states or self.classes > DENSE_CLASSES:
            return self.argmax.state_seconds(rows, order=order, furthest=furthest)
        from pate_cli.accounting.gaussian.tied import tied_seconds

        return tied_seconds(
            rows=rows,
            classes=self.classes,
            teachers=self.most_votes,
            sigma=self.sigma2,
            order=order,
            furthest=furthest,
        )

    def worst_rdp(self, *, queries: int, answers: int, orders: Floats) -> Floats:
        """The smaller of k1·w12(λ) and k1·w1(λ) + k2·w2(λ)."""
        selecting = worst_threshold_rdp(
            teachers=self.most_votes,
            threshold=self.threshold,
            sigma=self.sigma1,
            orders=orders,
            real=self.real_scores,
            teachers_per_record=self.teachers_per_record,
        )
        answering = self.argmax.worst_rdp(queries=queries, answers=answers, orders=orders)
        return np.minimum(queries * self._worst_query(orders), queries * selecting + answering)

    def _worst_query(self, orders: Floats) -> Floats:
        """w12(λ): cost of one whole query for all votes, [orders], nats.

        w1 + w2 is that of a query which is a tie and passes the test. But the plurality v decides
        the test and limits how often it can lose (`worst_scores`), so the supremum is over v alone:
        of ρ with F at the highest score that v allows. A pair of neighbours has a v at either end,
        and ρ bounds both directions from either. Where v is no count (interactive), some count is
        at least v.
        """
        return kept("query", self, orders, self._worst_queries)

    def _worst_queries(self, orders: Floats) -> Floats:
        caps = self.teachers_per_record**2 * orders / (2.0 * self.sigma1**2)
        costs = zip(self._worst_cells(orders), caps.tolist(), strict=True)
        return np.array([float(chain_rdp(*cells, cap=cap).max()) for cells, cap in costs])

    def _worst_cells(self, orders: Floats) -> Iterator[tuple[PassMoments, Floats]]:
        """The test's moments in every cell of v, and what the argmax costs there at most."""
        votes = self._vote_cells
        highest = self._highest_scores
        low = votes.lowest(0, votes.rows)
        # Scores fall with v, so a group of cells costs at most what its first does.
        size = -(-votes.rows // _MOST_GROUPS)
        first = np.arange(votes.rows) // size * size
        counts = np.clip(np.ceil(low - _ROUND_OFF), 0, self.most_votes).astype(np.int64)
        used, inverse = np.unique(highest[counts[first]], return_inverse=True)
        costs = np.maximum.accumulate(self.argmax.bounds(used, orders), axis=1)
        for order, cost in zip(orders.tolist(), costs, strict=True):
            moments = cell_moments(
                low,
                width=votes.width,
                threshold=self.threshold,
                sigma=self.sigma1,
                order=order,
                teachers_per_record=self.teachers_per_record,
            )
            yield moments, cost[inverse]

    def query_moments(self, order: float) -> QueryMoments | None:
        """Of a refusal and of an answer apart; None where they overflow.

        With e^{cF} for what the labels of an answer do, and 1 + excess for the test alone, a
        refusal's is 1 + excess − weight. Where both are suprema over a cell of v this could be too
        little for answers that count for less than refusals: there 1 + excess alone is a bound.
        """
        ((moments, argmax_rdp),) = self._worst_cells(np.array([order]))
        with np.errstate(over="ignore", invalid="ignore"):
            weight = np.exp(moments.log_weight)
            answer = (weight * np.exp((order - 1.0) * argmax_rdp)).ravel()
            test = (1.0 + moments.excess).ravel()
            refuse = test - weight.ravel()
        if not (np.isfinite(answer).all() and np.isfinite(refuse).all()):
            return None
        if self._vote_cells.width:
            refuse = np.concatenate([refuse, test])
            answer = np.concatenate([answer, np.zeros(test.size)])
        alone = float(self.argmax.worst_answer(np.array([order]))[0])
        return QueryMoments(order, refuse, answer, answer_cost=alone)

    def textbook(self, *, queries: int, answers: int) -> tuple[Gaussian, ...]:
        """k1 maxima of sensitivity k, and the argmax's histograms."""
        looks = Gaussian(queries, self.sigma1 / self.teachers_per_record)
        return (looks, *self.argmax.textbook(queries=queries, answers=answers))

    def usual_slope(self, *, queries: int, answers: int) -> float:
        """No votes make both the test and the argmax dear; this much of both is what remains."""
        return 0.42 * super().usual_slope(queries=queries, answers=answers)

    def gaussian_mu(self, *, queries: int, answers: int) -> float:
        """μ² = k²(k1/σ1² + 2 k2/σ2²)."""
        selecting = self.teachers_per_record * np.sqrt(queries) / self.sigma1
        answering = self.argmax.gaussian_mu(queries=queries, answers=answers)
        return float(np.hypot(selecting, answering))
