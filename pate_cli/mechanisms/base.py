"""The base classes of mechanisms: labels, probabilities, public parameters, and a cost.

A mechanism is a frozen dataclass whose docstring is its mathematics. There are two kinds of
mechanisms. A `ScoredMechanism` has an RDP cost that is a function of a score, and a neighbour moves
the score by at most a known amount; the accountant needs nothing else (`accounting.cost_table`). A
`ComposedMechanism` has an (ε, δ) per answer or refusal, and its cost is the composition of these
pairs. Everything that depends on the mechanism is a method of its class, and no other code asks
which mechanism it has.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import lru_cache, partial
from typing import Any, ClassVar, Protocol, Self, TypeAlias

import numpy as np

from pate_cli.accounting.composition import Composition, Step
from pate_cli.accounting.cost_table import CostTable, ScoreTable, Tally, priced_to
from pate_cli.accounting.few_votes import Few, StepCosts
from pate_cli.accounting.score_grid import FINE, Resolution, ScoreGrid
from pate_cli.accounting.stopping import QueryMoments
from pate_cli.core.arrays import (
    DENSE_CLASSES,
    Floats,
    Histograms,
    Ints,
    LabelArray,
    SparseCounts,
    dense,
    each_once,
)
from pate_cli.core.checks import MOST_CLASSES, MOST_VOTED, check_ensemble
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.noise import CELL, LARGEST_EPSILON, Draws, Noise, smallest_delta
from pate_cli.core.words import MechanismName

Shares: TypeAlias = Callable[[float], None]
"""A function to call with the share of the work that has just been done."""


def no_progress(share: float) -> None:
    """Do nothing; for callers that show no progress."""


# The largest `prior_weight` per teacher. Beside a larger prior the teachers would not matter, and
# with such counts the rounding of noise would matter.
_MOST_PRIOR = 100
# How many draws are made and used together, and the number of words in a block: draws are made from
# whole blocks, if possible.
_NEAR = 1 << 15
_WHOLE = 1024


@dataclass(frozen=True)
class RunShape:
    """The public shape of a run, which determines the defaults of a mechanism.

    Attributes:
        teachers: τ, the number of teachers who vote on one query.
        queries: k1, the number of queries that are asked.
        delta: δ of the guarantee of the whole run.
        teachers_per_record: k, how many teachers one record may have trained.
    """

    teachers: int
    queries: int
    delta: float
    teachers_per_record: int = 1

    def of_teachers(self, share: float) -> float:
        """Return `share` times the number of teachers, rounded to 12 digits; the unit is votes."""
        return float(f"{share * self.teachers:.12g}")


class Labeller(Protocol):
    """An object that draws labels for rows, batch by batch and in order."""

    @property
    def draws(self) -> int:
        """How many random numbers are drawn for a query, whatever its votes are."""

    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """Draw a label for every histogram; NO_LABEL if a query has no answer."""


@dataclass(frozen=True)
class Mechanism(ABC):
    """A noisy aggregator of vote histograms with public parameters.

    Every mechanism is a frozen dataclass. All fields of a mechanism that are not fields of
    `Mechanism` are parameters of this mechanism, and must be given as keywords.

    Attributes:
        name: the name of the mechanism on the command line and in reports.
        teachers: τ ≥ 1, the largest number of votes that all teachers have on a query: the number
            of teachers, or the sum of their weights.
        classes: m ≥ 2, the number of classes, at most `most_classes`.
        teachers_per_record: k ≥ 1, how many teachers one record may have trained. With
            `teachers_per_record` = k, a neighbour may change k votes of a query, and every
            sensitivity is k times as large as with k = 1.
        votes_together: whether one teacher casts all k votes for the same class, as one vote of
            weight up to k. If `votes_together` is true, all k votes move together from one class to
            another, and the worst-case cost of an answer is smaller.
        prior_weight: B ≥ 0, how many votes a public prior adds to a query.
    """

    name: ClassVar[MechanismName]
    required: ClassVar[tuple[str, ...]] = ()
    """The parameters that have no default."""
    most_classes: ClassVar[int] = MOST_CLASSES
    """The largest number of classes m that the mechanism allows."""
    sources: ClassVar[str] = ""
    """An explanation of sources for readers of the labels, if teachers are not the only source."""
    listed: ClassVar[bool] = True
    """Whether labels are classes from a list that is known before votes are read."""
    answers_all: ClassVar[bool] = False
    """Whether every query is answered, up to the public limit on answers."""
    takes_prior: ClassVar[bool] = False
    """Whether a public prior may vote, too."""
    takes_few_votes: ClassVar[bool] = True
    """Whether the cost is known if each teacher votes on few queries."""

    teachers: int
    classes: int
    _: KW_ONLY
    teachers_per_record: int = 1
    votes_together: bool = False
    prior_weight: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):  # records and reports need Python's own numbers
                object.__setattr__(self, field.name, value.item())
        check_ensemble(self.teachers, self.classes, self.teachers_per_record, most=MOST_CLASSES)
        weight = self.prior_weight
        if isinstance(weight, bool) or not isinstance(weight, int | np.integer) or weight < 0:
            raise ParameterError(
                f"prior_weight must be a whole number of votes, at least 0, got {weight!r}"
            )
        if weight and not self.takes_prior:
            raise ParameterError(f"{self.name} takes no prior; gnmax, confident and interactive do")
        if weight > _MOST_PRIOR * self.teachers:
            raise ParameterError(
                f"prior_weight must be at most {_MOST_PRIOR} times the {self.teachers} teachers, "
                f"got {weight}"
            )
        if self.classes > DENSE_CLASSES and self.most_votes > MOST_VOTED:
            raise ParameterError(
                f"with more than {DENSE_CLASSES} classes, the sum of teachers and prior_weight "
                f"must be at most {MOST_VOTED}, got {self.most_votes}"
            )
        if self.classes > self.most_classes:
            raise ParameterError(
                f"{self.name} takes at most {self.most_classes} classes, got {self.classes}"
            )

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """Return the names of the parameters that only this mechanism has, in order."""
        return tuple(field.name for field in fields(cls)[len(fields(Mechanism)) :])

    @classmethod
    def defaults(cls, run: RunShape, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return default values of parameters, in proportion to the size of the run.

        `given` has the parameters that are already set.
        """
        del run, given
        return {}

    @classmethod
    def private_inputs(cls) -> tuple[str, ...]:
        """Return the names of the fields that are not public parameters."""
        return tuple(field.name for field in fields(cls) if not field.metadata.get("public", True))

    def parameters(self) -> dict[str, Any]:
        """Return the public parameters by name, which are enough to build the mechanism again.

        The mechanism's own parameters come after `name`, `teachers` and `classes`.
        """
        shared = [field.name for field in fields(Mechanism)]
        names = [*shared[:2], *self.options(), *shared[2:]]
        public = [name for name in names if name not in self.private_inputs()]
        for name in ("votes_together", "prior_weight"):  # omitted if they have their defaults
            if not getattr(self, name):
                public.remove(name)
        return {"name": self.name.value, **{name: getattr(self, name) for name in public}}

    def for_rows(self, ids: Any, first_row: int) -> Self:
        """Return the mechanism with the public inputs of these rows, if it has public inputs."""
        del ids, first_row
        return self

    def with_student(self, read: Callable[[Any], Any]) -> Self:
        """Return the mechanism with the predictions of its student, if it has a student."""
        del read
        return self

    def fallback(self) -> LabelArray | None:
        """Return public labels for rows that the teachers do not answer; None if there are none."""
        return None

    @property
    def draws(self) -> int:
        """How many random numbers are drawn for a query, whatever its votes are."""
        return self.argmax_draws

    @abstractmethod
    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """Draw a label for every histogram; NO_LABEL if a query has no answer."""

    def moving(self, votes: int) -> Self:
        """Return this mechanism for neighbours that change up to this many votes of a query."""
        return replace(self, teachers_per_record=votes)

    @property
    def votes_apart(self) -> bool:
        """Whether a neighbour may change several votes of a query for different classes."""
        return self.teachers_per_record > 1 and not self.votes_together

    @property
    def noise_cell(self) -> float:
        """The largest error of a tail probability of the noise; see pate_cli.core.noise."""
        return CELL

    def smallest_delta(self, queries: int, *, epsilon: float = LARGEST_EPSILON) -> float:
        """Return the smallest δ that a run with this many queries may state.

        For a δ below this number, the errors of floating-point noise would be too large. The
        errors of floating-point noise are counted for `argmax_draws` + 1 random numbers per query,
        because no mechanism draws more. `epsilon` is as in `noise.smallest_delta`.
        """
        draws = queries * (self.argmax_draws + 1)
        return smallest_delta(draws, cell=self.noise_cell, epsilon=epsilon)

    @property
    def most_votes(self) -> int:
        """The largest number of votes on a query: τ votes of teachers plus B votes of the prior."""
        return self.teachers + self.prior_weight

    @property
    def argmax_draws(self) -> int:
        """Return how many random numbers are drawn as noise on all counts of a query.

        The result is the number of classes, or `sparse_draws` if there are very many classes.
        """
        return self.classes if self.classes <= DENSE_CLASSES else self.sparse_draws

    @property
    def sparse_draws(self) -> int:
        """How many random numbers are drawn for a query with a sparse histogram.

        Each class with votes needs one random number, and at most `most_votes` classes have votes.
        All classes without votes share two random numbers: one for the largest noise of these
        classes, and one for the class that has it.
        """
        return min(self.classes, self.most_votes) + 2

    @abstractmethod
    def textbook(self, *, queries: int, answers: int) -> tuple[Step, ...]:
        """Return the steps that a textbook would compose for k1 queries with at most k2 answers.

        Each step is several Gaussian mechanisms, or several (ε, δ)-DP mechanisms.
        """

    def start(self) -> Labeller:
        """Return the labeller of a run at its first row.

        The labeller is the mechanism itself if rows do not depend on each other.
        """
        return self

    def answer_chance(self, counts: Histograms) -> Floats:
        """Return Pr[the teachers answer] for each query separately, [queries]."""
        return np.ones(len(counts))

    def loss_chance(self, counts: Histograms) -> Floats:
        """Return Pr[an answer is not the plurality] per query, [queries]."""
        return np.zeros(len(counts))

    def unanimous(self) -> tuple[float, float]:
        """Return (Pr[answered], Pr[an answer is right]) for a query on which all votes agree.

        If there is a prior, it votes for the same class as the teachers. Pr[answered] and
        Pr[an answer is right] only depend on public parameters. If classes are listed, no histogram
        has a larger Pr[answered] or a larger Pr[an answer is right] than a unanimous vote.
        """
        votes = self._of_few(self.most_votes, 0)
        return self._most_answered(votes), 1.0 - float(self.loss_chance(votes)[0])

    def overruled(self) -> tuple[float, float]:
        """Return (Pr[answered], Pr[right]) if all teachers are right and the prior is wrong.

        If the prior has more votes than the teachers, the result contains an upper bound on
        Pr[right]. An answer is right only if the class of the prior loses, so Pr[right] is at most
        the probability of this loss. Pr[right] is also at most ½, because the class of the teachers
        has fewer votes than the class of the prior.
        """
        votes = self._of_few(self.teachers, self.prior_weight)
        lost = float(self.loss_chance(votes)[0])
        right = 1.0 - lost if self.teachers >= self.prior_weight else min(lost, 0.5)
        return self._most_answered(votes), right

    def _of_few(self, first: int, second: int) -> Histograms:
        """Return a histogram in which the first two classes have these numbers of votes."""
        found = np.array([[first, second]])
        if self.classes <= DENSE_CLASSES:
            return np.pad(found, ((0, 0), (0, self.classes - 2)))
        entries = 2 if second else 1
        return SparseCounts(np.arange(entries)[None, :], found[:, :entries], self.classes)

    def _most_answered(self, votes: Histograms) -> float:
        """Return Pr[answered] for this histogram, with the most favourable public inputs."""
        return float(self.answer_chance(votes)[0])


class ComposedMechanism(Mechanism):
    """A mechanism without an RDP cost, whose single answers or refusals are (ε, δ)-DP.

    Attributes:
        refusals: Q, how many refusals are allowed; None if the mechanism does not count refusals.
    """

    refusals: int | None

    @property
    def threshold(self) -> float | None:
        """Return the threshold T of the mechanism; None if it answers every query.

        A query has no answer if its noisy distance to instability, or its largest noisy count, is
        below T. T is a number of records or votes.
        """
        return None

    @abstractmethod
    def privacy(self, queries: int, delta: float) -> Composition:
        """Return the (ε, δ) of k1 queries, whatever the votes are.

        Args:
            queries: k1 ≥ 1, the number of queries, answered or not.
            delta: δ of the composition, in (0, 1).

        Raises:
            ParameterError: `queries` or `delta` is outside its range.
            UnreachableError: `delta` is too small for this many queries, so that no ε is valid.
        """


class ScoredMechanism(Mechanism):
    """A mechanism whose RDP cost is a function of a score.

    The scores of two neighbours differ by at most a known amount.
    """

    def for_reference(self, counts: Histograms, seed: int) -> Self:
        """Return the mechanism with made-up public inputs that fit the made-up histograms `counts`.

        With made-up inputs and histograms, settings can be compared without looking at real votes.
        A mechanism without public inputs returns itself.
        """
        del counts, seed
        return self

    @abstractmethod
    def score(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """Return the scores of histograms, [queries, dimensions].

        `lipschitz` bounds how far a neighbour moves each dimension. If a grid is given, scores only
        need to be in the correct cells of the grid, which may be faster.
        """

    @property
    @abstractmethod
    def lipschitz(self) -> tuple[float, ...]:
        """By how much each dimension of the score can differ between neighbours."""

    @abstractmethod
    def cost_table(self, order: float, resolution: Resolution = FINE) -> CostTable:
        """Return a table of RDP costs at one order, by cells of the lattice of scores."""

    @abstractmethod
    def cells(self, score: Floats, grid: ScoreGrid) -> Ints:
        """Return the cell (row, column) of each score on the lattice of scores, [queries, 2].

        `grid` has the columns of the lattice; it is the grid of a table from `cost_table`.
        """

    def cells_of(self, counts: Histograms, grid: ScoreGrid) -> Ints:
        """Return the cell (row, column) of each histogram on the lattice of scores, [queries, 2].

        Scores below the grid are in the lowest column.
        """
        return self.cells(self.score(counts, grid=grid), grid)

    def rdp(self, score: Floats, orders: Floats) -> Floats:
        """Return the RDP cost of queries with these scores, [orders, queries], nats."""
        return np.sum(list(self.steps(score, orders).values()), axis=0)

    def steps(self, score: Floats, orders: Floats) -> dict[str, Floats]:
        """Return the RDP cost of queries with these scores, by step of the mechanism.

        Each step has costs [orders, queries], and the steps add up to the cost of the queries.
        """
        # At the largest order the grid begins at the lowest score whose cost is not negligible.
        grid = self.cost_table(float(np.max(orders))).grid
        tally, places = Tally.with_places(self.cells(score, grid))
        rows = tally.cells[:, 0]
        columns, column_of = np.unique(tally.cells[:, 1], return_inverse=True)
        costs = [
            self.cost_table(order).steps_of(rows, column_rdp[column_of])
            for order, column_rdp in zip(
                orders.tolist(), self.column_costs(columns, grid, orders), strict=True
            )
        ]
        return {step: np.stack([each[step] for each in costs])[:, places] for step in costs[0]}

    @abstractmethod
    def column_costs(self, columns: Ints, grid: ScoreGrid, orders: Floats) -> Floats:
        """Return the RDP cost of the argmax for scores in these columns of `grid`, in nats.

        The shape of the result is [orders, columns].
        """

    @abstractmethod
    def query_costs(self, orders: Floats, *, lone: bool = False) -> StepCosts:
        """Return the worst-case RDP costs of a query: of its test, of its answer, and of both.

        A neighbour moves, adds or removes a vote. With `lone` a neighbour only adds or removes a
        vote.
        """

    def worst_rdp(self, *, queries: int, answers: int, orders: Floats, few: Few = None) -> Floats:
        """Return the worst-case RDP cost of k1 queries with at most k2 answers, [orders], nats.

        `few` is the limit on the votes of one teacher; None if there is no limit.
        """
        moved = self.query_costs(orders)
        if few is not None:
            lone = moved if few.assigned else self.query_costs(orders, lone=True)
            return few.rdp(queries, answers, moved=moved, lone=lone)
        return np.minimum(queries * moved.whole, queries * moved.test + answers * moved.answer)

    @abstractmethod
    def gaussian_mu(self, *, queries: int, answers: int) -> float:
        """Return μ of the Gaussian-DP bound for k1 queries with at most k2 answers."""

    def usual_slope(self, *, queries: int, answers: int) -> float:
        """Estimate `worst_rdp` divided by the order λ.

        The estimate is no bound on `worst_rdp`, but a first guess in the search for the best order.
        """
        return self.gaussian_mu(queries=queries, answers=answers) ** 2 / float(np.pi)

    def vote_states(self, counts: Histograms) -> Ints:
        """Return the votes of queries in the form that `state_costs` needs, [queries, numbers].

        Raises:
            UsageError: the mechanism does not support `bound` conditional.
        """
        raise UsageError(f"{self.name} has no `bound` named conditional; leave out `bound`")

    def state_costs(
        self, states: Ints, *, order: float, distances: Ints, progress: Shares = no_progress
    ) -> Floats:
        """Return upper bounds on the RDP cost of each query after up to d records have changed.

        Args:
            states: the result of `vote_states`.
            order: λ > 1.
            distances: the numbers d ≥ 0 of changed records, in ascending order, [distances].
            progress: a function that is called with shares of the work, which add up to 1.

        Returns:
            The bound for each d and each query, [distances, states], nats. It never decreases as d
            grows.

        Raises:
            UsageError: the mechanism does not support `bound` conditional.
        """
        raise UsageError(f"{self.name} has no `bound` named conditional; leave out `bound`")

    def check_states(self, rows: int, *, order: float, furthest: int) -> None:
        """Raise ParameterError if `state_costs` might need too much memory. All numbers are public.

        If no error is raised, the memory is enough whatever the votes are.

        Args:
            rows: the largest number of queries in one call of `state_costs`.
            order: λ > 1.
            furthest: the largest number d in the `distances` of `state_costs`.

        Raises:
            ParameterError: `state_costs` would need too much memory for some votes on this many
                queries.
        """
        del rows, order, furthest

    @property
    def slow_states(self) -> bool:
        """Whether `state_costs` is too slow to be called for every order and distance."""
        return False

    def state_seconds(self, rows: int, *, order: float, furthest: int) -> float:
        """Estimate the seconds that `state_costs` takes for `rows` queries with different votes."""
        del rows, order, furthest
        return 0.0

    @property
    def pure_epsilon(self) -> float | None:
        """ε0 in nats if every answer is ε0-DP and a refusal costs nothing; otherwise None."""
        return None

    def query_moments(self, order: float) -> QueryMoments | None:
        """Return the factors by which a refusal and an answer multiply the moment of a run.

        The moment of a run is e^{(λ − 1)·(RDP cost)}. The rule that limits how many queries a
        session may ask (`disclosure.stopping`) uses the factors. The result is None for a mechanism
        whose factors are not known.
        """
        del order
        return None


class OneScoreMechanism(ScoredMechanism):
    """A mechanism that answers every query, at an RDP cost F that depends on a single score.

    A subclass defines the score, the range of scores, how far a neighbour moves a score, the RDP
    cost of a score, and the worst-case RDP cost of an answer.
    """

    answers_all: ClassVar[bool] = True

    @property
    @abstractmethod
    def score_lipschitz(self) -> float:
        """By how much computed scores of neighbours can differ, including numerical errors."""

    @abstractmethod
    def scores(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """Return the score of each query, [queries].

        If a grid is given, scores only need to be in the correct cells of the grid.
        """

    @abstractmethod
    def score_range(self, order: float) -> tuple[float, float]:
        """Return public bounds (lowest, highest) of the scores at an order.

        Scores below `lowest` cost almost nothing, and no score is above `highest`.
        """

    @abstractmethod
    def bounds(self, scores: Floats, orders: Floats, *, quick: bool = False) -> Floats:
        """Return the RDP cost F of each score at several orders, [orders, scores], nats.

        A numerical search computes F, so the computed F may decrease slightly as the score grows.
        With `quick` F is a faster approximation for comparing settings.
        """

    def column_costs(self, columns: Ints, grid: ScoreGrid, orders: Floats) -> Floats:
        """Return the RDP cost of these columns of a grid, [orders, columns], nats.

        `score_range` returns the lowest score that matters at an order. A column below the lowest
        score of `score_range` costs as much as the column that contains this lowest score.
        """
        lowest = [grid.end(self.score_range(order)[0]) for order in orders.tolist()]
        nodes = each_once(np.concatenate([columns, np.maximum(lowest, 0)]))
        costs = priced_to(
            self.worst_answer(orders),
            grid.nodes()[nodes],
            lambda scores, left: self.bounds(scores, orders[left]),
        )
        reached = np.maximum(columns, np.array(lowest)[:, None])
        return np.take_along_axis(costs, np.searchsorted(nodes, reached), axis=1)

    @abstractmethod
    def worst_answers(self, orders: Floats, *, lone: bool = False) -> Floats:
        """Compute the worst-case RDP cost of one answer over all votes, [orders], nats.

        With `lone` a neighbour only adds or removes a vote.
        """

    def worst_answer(self, orders: Floats, *, lone: bool = False) -> Floats:
        """Return the worst-case RDP cost of one answer over all votes, [orders], nats.

        The cost is cached by order, because every table of costs needs it as a cap.
        """
        kind = "lone" if lone else "answer"
        return kept(kind, self, orders, partial(self.worst_answers, lone=lone))

    @property
    def lipschitz(self) -> tuple[float, ...]:
        """By how much the score of a query can differ between neighbours, as a 1-tuple."""
        return (self.score_lipschitz,)

    def score(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """Return the score of each query, [queries, 1]."""
        return self.scores(counts, grid=grid)[:, None]

    def cost_table(self, order: float, resolution: Resolution = FINE) -> ScoreTable:
        """Return a table of RDP costs at one order, by columns of the grid of scores."""
        return self.table_of(order, resolution, lipschitz=self.score_lipschitz)

    def table_of(
        self, order: float, resolution: Resolution, *, lipschitz: float, parts: int = 1
    ) -> ScoreTable:
        """Return a table of RDP costs at one order, on a grid of all scores that need a cost.

        Args:
            order: λ > 1.
            resolution: how fine the grid is.
            lipschitz, parts: as in `ScoreGrid.spanning`.
        """
        lowest, highest = self.score_range(order)
        grid = ScoreGrid.spanning(
            lowest, highest, lipschitz=lipschitz, resolution=resolution, parts=parts
        )
        at, quick = np.array([order]), resolution.quick
        return ScoreTable(
            order,
            grid,
            lambda scores: self.bounds(scores, at, quick=quick)[0],
            cap=lambda: math.inf if quick else float(self.worst_answer(at)[0]),
        )

    def cells(self, score: Floats, grid: ScoreGrid) -> Ints:
        """Return the cell (0, column) of each score [queries, 1] on the grid."""
        columns = grid.cells(score[:, 0])
        return np.stack([np.zeros_like(columns), columns], axis=1)

    def query_costs(self, orders: Floats, *, lone: bool = False) -> StepCosts:
        """Return the worst-case RDP cost of an answer, which is the cost of the whole query.

        The mechanism answers every query without a threshold test, so the cost of a test is 0.
        """
        answer = self.worst_answer(orders, lone=lone)
        return StepCosts(np.zeros(orders.shape), answer, answer)


def kept(what: str, of: Mechanism, orders: Floats, cost: Callable[[Floats], Floats]) -> Floats:
    """Return the worst-case RDP costs that `cost` computes at these orders, [orders], nats.

    Computed costs are cached, and mechanisms with equal parameters share the cache. `what` is
    the name of the cost in the cache, such as "answer".
    """
    known = _costs_by_order(what, tuple(of.parameters().items()))
    missing = [order for order in dict.fromkeys(orders.tolist()) if order not in known]
    if missing:
        known.update(zip(missing, cost(np.array(missing)).tolist(), strict=True))
    return np.array([known[order] for order in orders.tolist()])


@lru_cache(maxsize=256)
def _costs_by_order(what: str, parameters: tuple[tuple[str, Any], ...]) -> dict[float, float]:
    del what, parameters
    return {}


def noisy_argmax(
    counts: Histograms, scale: float, draw: Callable[[tuple[int, int]], Draws], *, beside: int = 0
) -> tuple[LabelArray, Draws]:
    """Return the argmax of counts + scale·noise of each row; ties have probability zero.

    `beside` is a number of additional draws per row, which the caller uses for other noise, such as
    the noise of a threshold test. The second result has the additional draws, [rows, beside]. In
    each row, the additional draws come before the noise on the counts. A few rows are drawn at
    a time, so that their noise fits into the cache.
    """
    votes = dense(counts)
    rows, classes = votes.shape
    labels, first = np.empty(rows, dtype=np.int32), np.empty((rows, beside))
    step = max(1, _NEAR // (beside + classes))
    step -= step % _WHOLE if step > _WHOLE else 0
    for start in range(0, rows, step):
        part = slice(start, min(start + step, rows))
        noise = draw((part.stop - start, beside + classes))
        first[part] = noise[:, :beside]
        labels[part] = np.argmax(votes[part] + scale * noise[:, beside:], axis=1)
    return labels, first


def plurality(counts: Histograms) -> Ints:
    """Return the largest count max_j n_j of each query, [queries]."""
    votes = counts.counts if isinstance(counts, SparseCounts) else counts
    return votes.max(axis=1).astype(np.int64, copy=False)
