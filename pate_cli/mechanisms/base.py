"""The protocol of a mechanism: labels, probabilities, public parameters, and a cost.

A mechanism is a frozen dataclass whose docstring is its mathematics. There are two kinds. A
`ScoredMechanism` has a Rényi cost that is a function of a score, and one neighbour moves the score
by at most a known amount; the accountant needs nothing else (`accounting.cost_table`). A
`ComposedMechanism` has an (ε, δ) per answer or refusal, and its cost is their composition.
Everything that depends on the mechanism is one of its methods, and no other code asks which
mechanism it has.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import KW_ONLY, dataclass, fields, replace
from functools import lru_cache
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
"""A function that is called with the share of the work that was just done."""


def no_progress(share: float) -> None:
    """Ignore the progress."""


# A heavier prior would hide every teacher, and its counts would make the rounding of noise matter.
_MOST_PRIOR = 100
# The number of draws that are made and used together, if possible: draws are made from whole blocks
# of words.
_NEAR = 1 << 15
_WHOLE = 1024


@dataclass(frozen=True)
class RunShape:
    """The public shape of a run, which determines the defaults of a mechanism.

    Attributes:
        teachers: τ, or how many of them vote on a query if teachers vote on few queries.
        queries: k1, the number of rows that are asked.
        delta: δ of the whole guarantee.
        teachers_per_record: k.
    """

    teachers: int
    queries: int
    delta: float
    teachers_per_record: int = 1

    def of_teachers(self, share: float) -> float:
        """Return this share of the teachers in votes, rounded to 12 digits."""
        return float(f"{share * self.teachers:.12g}")


class Labeller(Protocol):
    """Draws labels for rows, batch by batch and in order."""

    @property
    def draws(self) -> int:
        """How many random numbers a query takes from the noise; the same for all votes."""

    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """Draw a label for every histogram, NO_LABEL for a query without an answer."""


@dataclass(frozen=True)
class Mechanism(ABC):
    """A noisy aggregator of vote histograms with public parameters.

    A subclass is a frozen dataclass. Its own fields are its parameters, all of them keywords.

    Attributes:
        name: its name on the command line and in reports.
        teachers: τ ≥ 1, the number of votes on every query.
        classes: m ≥ 2, at most `most_classes`.
        teachers_per_record: k ≥ 1, how many teachers one record may have trained. A neighbour may
            change k votes of a query, and every sensitivity grows k-fold.
        votes_together: whether the k votes belong to one teacher with a vote of weight up to k, and
            so move together from one class to another; the worst case of an answer is then smaller.
        prior_weight: B ≥ 0, how many votes a public prior adds to a query.
    """

    name: ClassVar[MechanismName]
    required: ClassVar[tuple[str, ...]] = ()
    """Parameters without a default."""
    most_classes: ClassVar[int] = MOST_CLASSES
    """The largest number of classes m that it takes."""
    sources: ClassVar[str] = ""
    """What readers of the labels should know about sources, if teachers are not the only source."""
    listed: ClassVar[bool] = True
    """Whether its labels are classes from a list that is known beforehand."""
    answers_all: ClassVar[bool] = False
    """Whether every query is answered, up to the public cap."""
    takes_prior: ClassVar[bool] = False
    """Whether a public prior may vote, too."""
    takes_few_votes: ClassVar[bool] = True
    """Whether its cost is known if each teacher votes on few queries."""

    teachers: int
    classes: int
    _: KW_ONLY
    teachers_per_record: int = 1
    votes_together: bool = False
    prior_weight: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):  # records and reports hold Python's numbers
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
                f"teachers and prior_weight must be at most {MOST_VOTED} together with more than "
                f"{DENSE_CLASSES} classes, got {self.most_votes}"
            )
        if self.classes > self.most_classes:
            raise ParameterError(
                f"{self.name} takes at most {self.most_classes} classes, got {self.classes}"
            )

    @classmethod
    def options(cls) -> tuple[str, ...]:
        """Return the names of its own parameters, in the order of its fields."""
        return tuple(field.name for field in fields(cls)[len(fields(Mechanism)) :])

    @classmethod
    def defaults(cls, run: RunShape, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return default values of parameters, in proportion to the size of the run.

        `given` holds the parameters that are already set.
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
        for name in ("votes_together", "prior_weight"):  # left out if they have their defaults
            if not getattr(self, name):
                public.remove(name)
        return {"name": self.name.value, **{name: getattr(self, name) for name in public}}

    def for_rows(self, ids: Any, first_row: int) -> Self:
        """Return the mechanism with the public inputs of these rows; unchanged without inputs."""
        del ids, first_row
        return self

    def with_student(self, read: Callable[[Any], Any]) -> Self:
        """Return the mechanism with its student's predictions, or unchanged without a student."""
        del read
        return self

    def fallback(self) -> LabelArray | None:
        """Return public labels for rows that the teachers do not answer, if it has any."""
        return None

    @property
    def draws(self) -> int:
        """How many random numbers a query takes from the noise; the same for all votes."""
        return self.argmax_draws

    @abstractmethod
    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """Draw a label for every histogram, NO_LABEL for a query without an answer."""

    def moving(self, votes: int) -> Self:
        """Return the mechanism with its cost if a neighbour changes this many votes of a query."""
        return replace(self, teachers_per_record=votes)

    @property
    def noise_cell(self) -> float:
        """The size of a cell of the noise that decides its labels: see pate_cli.core.noise."""
        return CELL

    def smallest_delta(self, queries: int, *, epsilon: float = LARGEST_EPSILON) -> float:
        """Return the smallest δ at which this many queries may be charged.

        Below it the effect of floating-point noise would be too large. Every mechanism draws at
        most one number more than an argmax. `epsilon` is as in `noise.smallest_delta`.
        """
        draws = queries * (self.argmax_draws + 1)
        return smallest_delta(draws, cell=self.noise_cell, epsilon=epsilon)

    @property
    def most_votes(self) -> int:
        """τ + B, the largest number of votes on a query."""
        return self.teachers + self.prior_weight

    @property
    def argmax_draws(self) -> int:
        """Return how many draws noise on all counts takes: one per class, or `sparse_draws`."""
        return self.classes if self.classes <= DENSE_CLASSES else self.sparse_draws

    @property
    def sparse_draws(self) -> int:
        """The number of random numbers that a query with a sparse histogram takes.

        It is one for each class that can have votes, and two more.
        """
        return min(self.classes, self.most_votes) + 2

    @abstractmethod
    def textbook(self, *, queries: int, answers: int) -> tuple[Step, ...]:
        """Return the textbook's composition of k1 queries with at most k2 answers."""

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

        A prior then votes with the teachers. No other votes give larger probabilities. Both
        probabilities are public.
        """
        votes = self._of_few(self.most_votes, 0)
        return self._most_answered(votes), 1.0 - float(self.loss_chance(votes)[0])

    def overruled(self) -> tuple[float, float]:
        """Return (Pr[answered], Pr[right]) if all teachers are right and the prior's guess is not.

        If the prior has more votes than the teachers, the second number is an upper bound. The
        teachers' class then wins at most as often as the guess, and at most as often as the guess
        fails to win.
        """
        votes = self._of_few(self.teachers, self.prior_weight)
        lost = float(self.loss_chance(votes)[0])
        right = 1.0 - lost if self.teachers >= self.prior_weight else min(lost, 0.5)
        return self._most_answered(votes), right

    def _of_few(self, first: int, second: int) -> Histograms:
        """Return a histogram in which two classes have votes."""
        found = np.array([[first, second]])
        if self.classes <= DENSE_CLASSES:
            return np.pad(found, ((0, 0), (0, self.classes - 2)))
        entries = 2 if second else 1
        return SparseCounts(np.arange(entries)[None, :], found[:, :entries], self.classes)

    def _most_answered(self, votes: Histograms) -> float:
        """Return Pr[answered] for this histogram, at the best public inputs of the row."""
        return float(self.answer_chance(votes)[0])


class ComposedMechanism(Mechanism):
    """A mechanism whose answers or refusals are (ε, δ)-DP each, and which has no RDP cost.

    Attributes:
        refusals: Q, how many refusals are allowed; None if refusals cost nothing.
    """

    refusals: int | None

    @property
    def threshold(self) -> float | None:
        """Return T, below which a query gets no answer; None if every query is answered.

        T is a number of records or votes.
        """
        return None

    @abstractmethod
    def privacy(self, queries: int, delta: float) -> Composition:
        """Return the (ε, δ) of k1 queries, for all votes.

        Args:
            queries: k1 ≥ 1; unanswered queries count.
            delta: δ of the composition, in (0, 1).

        Raises:
            ParameterError: a number is outside its range.
            UnreachableError: δ is smaller than the δ's of the steps together.
        """


class ScoredMechanism(Mechanism):
    """A mechanism whose RDP cost is a function of a score.

    Between neighbours the score moves by at most a known amount.
    """

    def for_reference(self, counts: Histograms, seed: int) -> Self:
        """Return the mechanism with made-up public inputs, for made-up histograms.

        A mechanism without such inputs returns itself.
        """
        del counts, seed
        return self

    @abstractmethod
    def score(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """Return the scores of histograms, [queries, dimensions].

        `lipschitz` bounds how far one vote moves each dimension. If a grid is given, the scores are
        only right up to the cells of the grid, which may be faster.
        """

    @property
    @abstractmethod
    def lipschitz(self) -> tuple[float, ...]:
        """The largest move of each dimension of the score between neighbours."""

    @abstractmethod
    def cost_table(self, order: float, resolution: Resolution = FINE) -> CostTable:
        """Return the cost on its lattice at one order."""

    @abstractmethod
    def cells(self, score: Floats, grid: ScoreGrid) -> Ints:
        """Return the lattice cells (row, k) of scores, [queries, 2].

        The grid is that of one of the orders.
        """

    def cells_of(self, counts: Histograms, grid: ScoreGrid) -> Ints:
        """Return the lattice cells (row, k) of histograms, [queries, 2].

        Low scores are in the cell of the lowest node.
        """
        return self.cells(self.score(counts, grid=grid), grid)

    def rdp(self, score: Floats, orders: Floats) -> Floats:
        """Return the cost of queries with these scores, [orders, queries], nats."""
        return np.sum(list(self.steps(score, orders).values()), axis=0)

    def steps(self, score: Floats, orders: Floats) -> dict[str, Floats]:
        """Return the RDP cost of queries with these scores, by step of the mechanism.

        Each step has costs [orders, queries], and the steps add up to the cost of the queries.
        """
        grid = self.cost_table(float(np.max(orders))).grid
        tally, places = Tally.with_places(self.cells(score, grid))
        steps = self.cell_steps(tally.cells, grid, orders)
        return {step: costs[:, places] for step, costs in steps.items()}

    def cell_steps(self, cells: Ints, grid: ScoreGrid, orders: Floats) -> dict[str, Floats]:
        """Return the RDP cost of lattice cells, by step of the mechanism.

        The grid must have the lowest node of all the orders.
        """
        columns, places = np.unique(cells[:, 1], return_inverse=True)
        argmax_rdp = self.column_costs(columns, grid, orders)
        costs = [
            self.cost_table(order).steps_of(cells[:, 0], column_rdp[places])
            for order, column_rdp in zip(orders.tolist(), argmax_rdp, strict=True)
        ]
        return {step: np.stack([each[step] for each in costs]) for step in costs[0]}

    @abstractmethod
    def column_costs(self, columns: Ints, grid: ScoreGrid, orders: Floats) -> Floats:
        """Return the cost of single columns of such a grid, ascending, [orders, columns], nats."""

    @abstractmethod
    def query_costs(self, orders: Floats, *, lone: bool = False) -> StepCosts:
        """Return the costs of one query for all votes.

        With `lone` a neighbour only adds or removes a vote; without, it may also move one.
        """

    def worst_rdp(self, *, queries: int, answers: int, orders: Floats, few: Few = None) -> Floats:
        """Return the cost of k1 queries with at most k2 answers, for all votes, [orders], nats.

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
        """Estimate `worst_rdp` per unit of λ, to find the best order; it is not a bound."""
        return self.gaussian_mu(queries=queries, answers=answers) ** 2 / float(np.pi)

    def vote_states(self, counts: Histograms) -> Ints:
        """Return the states of queries, the input of the conditional bound, [queries, numbers].

        Raises:
            UsageError: the mechanism has no conditional bound.
        """
        raise UsageError(f"`bound` conditional cannot be used with {self.name}")

    def state_costs(
        self, states: Ints, *, order: float, distances: Ints, progress: Shares = no_progress
    ) -> Floats:
        """Return the largest cost of queries in these states within each distance.

        Args:
            states: the result of `vote_states`.
            order: λ > 1.
            distances: d ≥ 0 in ascending order, [distances], in records.
            progress: called with shares of the work, which add up to 1.

        Returns:
            [distances, states], nats, non-decreasing in the distance.

        Raises:
            UsageError: the mechanism has no conditional bound.
        """
        raise UsageError(f"`bound` conditional cannot be used with {self.name}")

    def check_states(self, rows: int, *, order: float, furthest: int) -> None:
        """Refuse sizes for which `state_costs` needs too much memory. All numbers are public.

        Other sizes have enough memory for any votes.

        Args:
            rows: the largest number of states in one call.
            order: λ > 1.
            furthest: the largest distance, in records.

        Raises:
            ParameterError: some votes of this shape would need too much memory.
        """
        del rows, order, furthest

    @property
    def slow_states(self) -> bool:
        """Whether `state_costs` is too slow to be worth computing at every order and distance."""
        return False

    def state_seconds(self, rows: int, *, order: float, furthest: int) -> float:
        """Estimate the seconds that `state_costs` takes for this many distinct states."""
        del rows, order, furthest
        return 0.0

    @property
    def pure_epsilon(self) -> float | None:
        """ε0 of one answer, nats, if answers are ε0-DP and refusals cost nothing; else None."""
        return None

    def query_moments(self, order: float) -> QueryMoments | None:
        """Return the factors of a query on a moment, if a refusal costs less than an answer."""
        del order
        return None


class OneScoreMechanism(ScoredMechanism):
    """A mechanism that answers every query, at a cost F of one score.

    A subclass defines the score, its largest move between neighbours, its range, its cost, and the
    worst cost of an answer.
    """

    answers_all: ClassVar[bool] = True

    @property
    @abstractmethod
    def score_lipschitz(self) -> float:
        """The largest move of a computed score between neighbours, its error included."""

    @abstractmethod
    def scores(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """Return the score per query, [queries]; `grid` is as in `score`."""

    @abstractmethod
    def score_range(self, order: float) -> tuple[float, float]:
        """Return public bounds (lowest, highest) of the scores at an order.

        Scores below the first bound cost almost nothing, and no score is above the second.
        """

    @abstractmethod
    def bounds(self, scores: Floats, orders: Floats, *, quick: bool = False) -> Floats:
        """Return the RDP cost F of each score at several orders, [orders, scores], nats.

        A search makes F only nearly monotone. With `quick` it is an approximation that is found
        faster, to compare settings.
        """

    def column_costs(self, columns: Ints, grid: ScoreGrid, orders: Floats) -> Floats:
        """Return F̃ at these nodes alone; the grid of a lower order ends at a higher node."""
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
    def worst_answers(self, orders: Floats) -> Floats:
        """Compute the cost of one answer for all votes, [orders], nats."""

    def worst_answer(self, orders: Floats) -> Floats:
        """Return the data-independent RDP cost of one answer, [orders], nats.

        The cost is cached by order, since it caps F in every table.
        """
        return kept("answer", self, orders, self.worst_answers)

    @property
    def lipschitz(self) -> tuple[float, ...]:
        """The Lipschitz constant of the only score."""
        return (self.score_lipschitz,)

    def score(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """Return the score per query, [queries, 1]."""
        return self.scores(counts, grid=grid)[:, None]

    def cost_table(self, order: float, resolution: Resolution = FINE) -> ScoreTable:
        """Return F̃ on its grid at one order."""
        return self.table_of(order, resolution, lipschitz=self.score_lipschitz)

    def table_of(
        self, order: float, resolution: Resolution, *, lipschitz: float, parts: int = 1
    ) -> ScoreTable:
        """Return F̃ on a grid on which `lipschitz` is `parts` times a whole number of blocks."""
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
        """Return (0, k) for scores [queries, 1]."""
        columns = grid.cells(score[:, 0])
        return np.stack([np.zeros_like(columns), columns], axis=1)

    def lone_answers(self, orders: Floats) -> Floats:
        """Compute the cost of one answer if a vote appears or goes missing, [orders], nats.

        It is at most the cost for all votes, of which a mechanism may know a smaller part.
        """
        return self.worst_answer(orders)

    def query_costs(self, orders: Floats, *, lone: bool = False) -> StepCosts:
        """Return the cost of an answer; there is no test."""
        kind, cost = ("lone", self.lone_answers) if lone else ("answer", self.worst_answers)
        answer = kept(kind, self, orders, cost)
        return StepCosts(np.zeros(orders.shape), answer, answer)


def kept(what: str, of: Mechanism, orders: Floats, cost: Callable[[Floats], Floats]) -> Floats:
    """Return a cost for all votes at some orders, cached for mechanisms with equal parameters."""
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
    """Return argmax of counts + scale·noise per row; ties have probability zero.

    The second result is the draws of each row that come before those of its classes, [rows,
    beside]. A few rows are drawn at a time, so that their noise stays in the cache.
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
    """Return max_j n_j per query."""
    votes = counts.counts if isinstance(counts, SparseCounts) else counts
    return votes.max(axis=1).astype(np.int64, copy=False)
