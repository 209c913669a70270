"""The protocol of a mechanism: labels, chances, public parameters, and a cost.

A mechanism is a frozen dataclass whose docstring is its mathematics. There are two kinds. A
`ScoredMechanism` has a Rényi cost that is a function of a score, and one neighbour can move the
score by a known amount at most: that is all the accountant needs (`accounting.cost_table`). A
`ComposedMechanism` has an (ε, δ) per answer or refusal, and its cost is their composition.
What a mechanism alone can know is its method; nothing elsewhere asks which one it is.
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
"""Told which share of the work was just done."""


def no_progress(share: float) -> None:
    """Progress that nobody follows."""


# Beyond it no teacher is heard, and counts grow so large beside the noise that its round-off tells.
_MOST_PRIOR = 100
# Draws that are made and used together, of whole times so many rows if possible: they take whole
# blocks of the words that draws are made of.
_NEAR = 1 << 15
_WHOLE = 1024


@dataclass(frozen=True)
class RunShape:
    """Numbers that the defaults of a mechanism follow from: public, fixed before the first vote.

    Attributes:
        teachers: τ.
        queries: k1, the rows that are asked.
        delta: δ of the whole guarantee.
        teachers_per_record: k.
    """

    teachers: int
    queries: int
    delta: float
    teachers_per_record: int = 1

    def of_teachers(self, share: float) -> float:
        """So large a share of the teachers, in votes, without the digits of round-off."""
        return float(f"{share * self.teachers:.12g}")


class Labeller(Protocol):
    """Draws labels for rows, batch by batch and in order."""

    @property
    def draws(self) -> int:
        """Numbers that a query takes from the noise, whatever its votes."""

    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """Draw a label for every histogram, NO_LABEL where the teachers do not answer."""


@dataclass(frozen=True)
class Mechanism(ABC):
    """A noisy aggregator of vote histograms with public parameters.

    A subclass is a frozen dataclass whose own fields are its parameters, all of them keywords.

    Attributes:
        name: the word used for it on the command line and in reports.
        teachers: τ ≥ 1, the number of votes on every query.
        classes: m ≥ 2, at most `most_classes`.
        teachers_per_record: k ≥ 1, how many teachers one record may have trained, and so how many
            votes of a query a neighbour may change; every sensitivity grows k-fold.
        votes_together: the k votes are those of one teacher that counts for up to so many, and so
            leave one class for one other; an answer's worst case is then smaller.
        prior_weight: B ≥ 0, how many votes of no teacher a public prior adds to a query.
    """

    name: ClassVar[MechanismName]
    required: ClassVar[tuple[str, ...]] = ()
    """Parameters that have no default."""
    most_classes: ClassVar[int] = MOST_CLASSES
    """The largest m it takes."""
    sources: ClassVar[str] = ""
    """What a reader of the labels should know of their sources, where they are not all teachers."""
    listed: ClassVar[bool] = True
    """Whether its labels are classes that are known beforehand."""
    answers_all: ClassVar[bool] = False
    """Whether every query is answered, up to the public cap."""
    takes_prior: ClassVar[bool] = False
    """Whether a public prior may vote, too."""

    teachers: int
    classes: int
    _: KW_ONLY
    teachers_per_record: int = 1
    votes_together: bool = False
    prior_weight: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, np.generic):  # records and reports hold numbers of Python
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
        """Names of the parameters that are its own, in the order of its fields."""
        return tuple(field.name for field in fields(cls)[len(fields(Mechanism)) :])

    @classmethod
    def defaults(cls, run: RunShape, given: Mapping[str, Any]) -> dict[str, Any]:
        """Parameters in proportion to the run; `given` are those that are settled already."""
        del run, given
        return {}

    @classmethod
    def private_inputs(cls) -> tuple[str, ...]:
        """Names of the fields that are no public parameters."""
        return tuple(field.name for field in fields(cls) if not field.metadata.get("public", True))

    def parameters(self) -> dict[str, Any]:
        """Public parameters, its own first, enough to build the mechanism again."""
        shared = [field.name for field in fields(Mechanism)]
        names = [*shared[:2], *self.options(), *shared[2:]]
        public = [name for name in names if name not in self.private_inputs()]
        for name in ("votes_together", "prior_weight"):  # no word of the default of these
            if not getattr(self, name):
                public.remove(name)
        return {"name": self.name.value, **{name: getattr(self, name) for name in public}}

    def for_rows(self, ids: Any, first_row: int) -> Self:
        """The mechanism with the public inputs of these rows; itself if it has none."""
        del ids, first_row
        return self

    def with_student(self, read: Callable[[Any], Any]) -> Self:
        """Return the mechanism with its student's predictions read; itself if it has no student."""
        del read
        return self

    def fallback(self) -> LabelArray | None:
        """Public labels for rows the teachers leave unanswered, if the mechanism has any."""
        return None

    @property
    def draws(self) -> int:
        """Numbers that a query takes from the noise, whatever its votes."""
        return self.argmax_draws

    @abstractmethod
    def label(self, counts: Histograms, noise: Noise) -> LabelArray:
        """Draw a label for every histogram, NO_LABEL where the teachers do not answer."""

    def moving(self, votes: int) -> Self:
        """The mechanism as it costs where a neighbour moves so many votes of a query."""
        return replace(self, teachers_per_record=votes)

    @property
    def noise_cell(self) -> float:
        """How coarse the draws are that its labels hang on: see pate_cli.core.noise."""
        return CELL

    def smallest_delta(self, queries: int, *, epsilon: float = LARGEST_EPSILON) -> float:
        """The least δ that this many queries may be charged at, for what floating-point noise adds.

        Every mechanism draws at most one number more than there are for an argmax. `epsilon` as in
        `noise.smallest_delta`.
        """
        draws = queries * (self.argmax_draws + 1)
        return smallest_delta(draws, cell=self.noise_cell, epsilon=epsilon)

    @property
    def most_votes(self) -> int:
        """τ + B, the most votes of a query."""
        return self.teachers + self.prior_weight

    @property
    def argmax_draws(self) -> int:
        """Numbers that noise on every count takes: one a class, or as `sparse_draws` says."""
        return self.classes if self.classes <= DENSE_CLASSES else self.sparse_draws

    @property
    def sparse_draws(self) -> int:
        """Numbers for a histogram by its votes: a class for each, the best other, and which."""
        return min(self.classes, self.most_votes) + 2

    @abstractmethod
    def textbook(self, *, queries: int, answers: int) -> tuple[Step, ...]:
        """k1 queries with at most k2 answers as a textbook composes them, every number seen."""

    def start(self) -> Labeller:
        """The labeller of a run from its first row on; itself where rows stand alone."""
        return self

    def answer_chance(self, counts: Histograms) -> Floats:
        """Pr[the teachers answer] per query, each on its own, [queries]."""
        return np.ones(len(counts))

    def loss_chance(self, counts: Histograms) -> Floats:
        """Pr[an answer is not the plurality] per query, [queries]."""
        return np.zeros(len(counts))

    def unanimous(self) -> tuple[float, float]:
        """(Pr[answered], Pr[an answer is right]) of a query on which all votes agree; public.

        A prior votes with the teachers then. Nothing that they could vote does better.
        """
        votes = self._of_few(self.most_votes, 0)
        return self._most_answered(votes), 1.0 - float(self.loss_chance(votes)[0])

    def overruled(self) -> tuple[float, float]:
        """(Pr[answered], Pr[right]) where all teachers agree, rightly, against the prior's guess.

        Of a prior that has more votes than they, the second is an upper bound: what is known is how
        often the guess does not win, and theirs wins no oftener than that or than the guess.
        """
        votes = self._of_few(self.teachers, self.prior_weight)
        lost = float(self.loss_chance(votes)[0])
        right = 1.0 - lost if self.teachers >= self.prior_weight else min(lost, 0.5)
        return self._most_answered(votes), right

    def _of_few(self, first: int, second: int) -> Histograms:
        """A histogram of two classes with votes."""
        found = np.array([[first, second]])
        if self.classes <= DENSE_CLASSES:
            return np.pad(found, ((0, 0), (0, self.classes - 2)))
        entries = 2 if second else 1
        return SparseCounts(np.arange(entries)[None, :], found[:, :entries], self.classes)

    def _most_answered(self, votes: Histograms) -> float:
        """Pr[answered] of such a histogram, whatever public inputs the row may have."""
        return float(self.answer_chance(votes)[0])


class ComposedMechanism(Mechanism):
    """One whose answers or refusals are (ε, δ)-DP each; there is no Rényi cost to sanitize.

    Attributes:
        refusals: Q, how many refusals are afforded; None where refusals cost nothing.
    """

    refusals: int | None

    @property
    def threshold(self) -> float | None:
        """T below which a query gets no answer, in records or votes; None where all get one."""
        return None

    @abstractmethod
    def privacy(self, queries: int, delta: float) -> Composition:
        """The (ε, δ) of k1 queries for all votes.

        Args:
            queries: k1 ≥ 1; unanswered ones count.
            delta: δ of the whole, in (0, 1).

        Raises:
            ParameterError: a number outside its range.
            UnreachableError: δ below what the steps' own δ's amount to.
        """


class ScoredMechanism(Mechanism):
    """One whose Rényi cost is a function of a score that a neighbour moves by a known amount."""

    def for_reference(self, counts: Histograms, seed: int) -> Self:
        """The mechanism with made-up public inputs for made-up histograms; itself if none."""
        del counts, seed
        return self

    @abstractmethod
    def score(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """Scores [queries, dimensions]; see `lipschitz` for how far one vote moves each.

        Where a grid is given, any that are in the same cells of it, which may be found sooner.
        """

    @property
    @abstractmethod
    def lipschitz(self) -> tuple[float, ...]:
        """How far a neighbour moves each dimension of the score at most."""

    @abstractmethod
    def cost_table(self, order: float, resolution: Resolution = FINE) -> CostTable:
        """The cost on its lattice at one order."""

    @abstractmethod
    def cells(self, score: Floats, grid: ScoreGrid) -> Ints:
        """Lattice cells (row, k) of scores, on the grid of some order, [queries, 2]."""

    def cells_of(self, counts: Histograms, grid: ScoreGrid) -> Ints:
        """Lattice cells (row, k) of histograms; scores below the lowest node cost what it costs."""
        return self.cells(self.score(counts, grid=grid), grid)

    def rdp(self, score: Floats, orders: Floats) -> Floats:
        """Cost of queries with these scores, [orders, queries], nats."""
        return np.sum(list(self.steps(score, orders).values()), axis=0)

    def steps(self, score: Floats, orders: Floats) -> dict[str, Floats]:
        """Cost of queries with these scores by step, [orders, queries] each; steps add up to it."""
        grid = self.cost_table(float(np.max(orders))).grid
        tally, places = Tally.with_places(self.cells(score, grid))
        steps = self.cell_steps(tally.cells, grid, orders)
        return {step: costs[:, places] for step, costs in steps.items()}

    def cell_steps(self, cells: Ints, grid: ScoreGrid, orders: Floats) -> dict[str, Floats]:
        """Cost by step of cells of a grid that reaches as far down as any of these orders'."""
        columns, places = np.unique(cells[:, 1], return_inverse=True)
        argmax_rdp = self.column_costs(columns, grid, orders)
        costs = [
            self.cost_table(order).steps_of(cells[:, 0], column_rdp[places])
            for order, column_rdp in zip(orders.tolist(), argmax_rdp, strict=True)
        ]
        return {step: np.stack([each[step] for each in costs]) for step in costs[0]}

    @abstractmethod
    def column_costs(self, columns: Ints, grid: ScoreGrid, orders: Floats) -> Floats:
        """Cost of single columns of such a grid, ascending, [orders, columns], nats."""

    @abstractmethod
    def worst_rdp(self, *, queries: int, answers: int, orders: Floats) -> Floats:
        """Cost of k1 queries with at most k2 answers for all votes, [orders], nats."""

    @abstractmethod
    def gaussian_mu(self, *, queries: int, answers: int) -> float:
        """μ of the Gaussian-DP bound for k1 queries with at most k2 answers."""

    def usual_slope(self, *, queries: int, answers: int) -> float:
        """About what `worst_rdp` is per unit of λ: where to look for the best order, no bound."""
        return self.gaussian_mu(queries=queries, answers=answers) ** 2 / float(np.pi)

    def vote_states(self, counts: Histograms) -> Ints:
        """States of queries: all that the conditional bound looks at, [queries, numbers].

        Raises:
            UsageError: the mechanism has no such bound.
        """
        raise UsageError(f"`bound` conditional does not go with {self.name}")

    def state_costs(
        self, states: Ints, *, order: float, distances: Ints, progress: Shares = no_progress
    ) -> Floats:
        """The most that queries in these states could cost within each distance.

        Args:
            states: as `vote_states` gives them.
            order: λ > 1.
            distances: d ≥ 0 in ascending order, [distances], in records.
            progress: called with shares of the work, which add up to 1.

        Returns:
            [distances, states], nats, non-decreasing in the distance.

        Raises:
            UsageError: the mechanism has no such bound.
        """
        raise UsageError(f"`bound` conditional does not go with {self.name}")

    def check_states(self, rows: int, *, order: float, furthest: int) -> None:
        """Refuse what `state_costs` could not hold, by public numbers, before any vote is seen.

        Whatever the votes, it then finds the costs.

        Args:
            rows: most states that are asked about at once.
            order: λ > 1.
            furthest: the largest distance, in records.

        Raises:
            ParameterError: some votes of this shape would need more memory than there may be.
        """
        del rows, order, furthest

    @property
    def slow_states(self) -> bool:
        """Whether `state_costs` takes so long that not every order and distance is worth it."""
        return False

    def state_seconds(self, rows: int, *, order: float, furthest: int) -> float:
        """About how long `state_costs` takes for so many distinct states."""
        del rows, order, furthest
        return 0.0

    @property
    def pure_epsilon(self) -> float | None:
        """ε0 of one answer, nats, where answers are ε0-DP and refusals cost nothing; else None."""
        return None

    def query_moments(self, order: float) -> QueryMoments | None:
        """Factors that a query has on a moment, where a refusal costs less than an answer."""
        del order
        return None


class OneScoreMechanism(ScoredMechanism):
    """One that answers every query, at a cost F of one score.

    A subclass says what the score is, how far a neighbour moves it, which scores there are, what
    they cost, and what an answer costs at worst.
    """

    answers_all: ClassVar[bool] = True

    @property
    @abstractmethod
    def score_lipschitz(self) -> float:
        """How far a neighbour moves a computed score at most, its error included."""

    @abstractmethod
    def scores(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """The score per query, [queries]; `grid` as in `score`."""

    @abstractmethod
    def score_range(self, order: float) -> tuple[float, float]:
        """Public bounds: scores below the first cost next to nothing, none is above the second."""

    @abstractmethod
    def bounds(self, scores: Floats, orders: Floats, *, quick: bool = False) -> Floats:
        """F at several orders, [orders, scores], nats: non-decreasing but for a search's slack.

        With `quick` about so much, sooner: for choices.
        """

    def column_costs(self, columns: Ints, grid: ScoreGrid, orders: Floats) -> Floats:
        """F̃ at these nodes alone; the grid of a lower order ends further up."""
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
        """Cost of one answer for all votes, computed afresh, [orders], nats."""

    def worst_answer(self, orders: Floats) -> Floats:
        """Cost of one answer for all votes, kept by order, since it caps F in every table, nats."""
        return kept("answer", self, orders, self.worst_answers)

    @property
    def lipschitz(self) -> tuple[float, ...]:
        """`score_lipschitz` alone."""
        return (self.score_lipschitz,)

    def score(self, counts: Histograms, *, grid: ScoreGrid | None = None) -> Floats:
        """The score per query, [queries, 1]."""
        return self.scores(counts, grid=grid)[:, None]

    def cost_table(self, order: float, resolution: Resolution = FINE) -> ScoreTable:
        """F̃ on its grid at one order."""
        return self.table_of(order, resolution, lipschitz=self.score_lipschitz)

    def table_of(
        self, order: float, resolution: Resolution, *, lipschitz: float, parts: int = 1
    ) -> ScoreTable:
        """F̃ on a grid of which a move of `lipschitz` is `parts` times a whole number of blocks."""
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
        """(0, k) for scores [queries, 1]."""
        columns = grid.cells(score[:, 0])
        return np.stack([np.zeros_like(columns), columns], axis=1)

    def worst_rdp(self, *, queries: int, answers: int, orders: Floats) -> Floats:
        """k2 times the worst answer; every query is answered until the cap stops the run."""
        del queries
        return answers * self.worst_answer(orders)


def kept(what: str, of: Mechanism, orders: Floats, cost: Callable[[Floats], Floats]) -> Floats:
    """A cost for all votes at some orders, found once for mechanisms of the same parameters."""
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
    """argmax of counts + scale·noise per row; ties have probability zero.

    Also the draws of each row that come before those of its classes, [rows, beside]. A few rows at
    a time, whose noise stays near the processor.
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
    """max_j n_j per query."""
    votes = counts.counts if isinstance(counts, SparseCounts) else counts
    return votes.max(axis=1).astype(np.int64, copy=False)
