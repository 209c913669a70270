"""A sharper cost of one noisy argmax: condition on the classes that no vote touched.

With h of `three_outcomes`, in the direction from n to its neighbour n',

  F'(n) = log(1 + max over ordered pairs a → b of E_C h((n_a − C)/σ, (n_b − C)/σ))/(λ−1)

is within 5% of the worst exact divergence where the two-tail bound is 45 to 60% above it. A vote
that is only added or withdrawn competes in the maximum.

**Over a ball.** F' is no function of a score with a Lipschitz constant, so neighbours are compared
on the lattice of places, z = (K n_a − j, K n_b − j). One vote takes at most one vote from one of
{a, b, the others} and gives at most one to one of them, whatever the noise, so it moves z by K
steps from

  Hex = {x − y: x, y ∈ {0, (1, 0), (0, 1), (−1, −1)}},  13 points.

t_0(z) bounds h over a cell, and t_d is its maximum over dK steps. Then

  F'_d(n) = log(1 + max over a → b of Σ_j Pr[⌈KC⌉ = j] t_d(K n_a − j, K n_b − j))/(λ−1)

has F'_0 ≥ F', and F'_d(n') ≤ F'_{d+1}(n) for every pair of neighbours. Proof: THEORY.md, 3.8.

Only k = 1: a record that trained several teachers may touch more than two classes. For two classes
nothing is left to condition on; `two_class_states` is exact there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from pate_cli.accounting.gaussian.best_of_others import BestOfOthers, Touched
from pate_cli.accounting.gaussian.three_outcomes import (
    NEGLECTED,
    Lattice,
    Table,
    endless,
    lone_vote,
    moved_vote,
    rounded_up,
)
from pate_cli.core.arrays import Counts, Floats, Ints
from pate_cli.core.checks import (
    check_counts,
    check_distances,
    check_ensemble,
    check_nonnegative,
    check_order,
    check_positive,
)
from pate_cli.core.errors import ParameterError

# One vote more, this much of the moment more: rounding cannot break F'_d(n') ≤ F'_{d+1}(n).
_ROUNDING = 1e-11

# Pairs of classes that are listed, and numbers of their laws that are held, in one go; they bound
# memory, not results.
_CASES_LISTED, _NUMBERS_AT_ONCE = 500_000, 4_000_000
_MOST_BYTES = 4 * 2**30
# Seconds per place of the tables, per place and step of Hex, and per value of j, row and class, on
# one core; steps take twice as long on tables that no cache holds.
_PLACE_SECONDS, _STEP_SECONDS, _LAW_SECONDS = 1.2e-6, 5e-9, 4e-9
# A row's distinct pairs, and classes summed for each, are seldom more.
_PAIRS_A_ROW, _CLASSES_A_CASE = 60, 20
_CACHED = 2_000_000


def _spread(bound: Table) -> Table:
    """The maximum over one step of Hex from each (gap, place), within the table."""
    # j, a or b gives a cell away: (p, q) moves by (1, 1), (−1, 0) or (0, −1).
    given = bound.copy()
    np.maximum(given[:, :-1], bound[:, 1:], out=given[:, :-1])
    np.maximum(given[1:, 1:], bound[:-1, :-1], out=given[1:, 1:])
    np.maximum(given[:-1], bound[1:], out=given[:-1])
    # And j, a or b receives one.
    taken = given.copy()
    np.maximum(taken[:, 1:], given[:, :-1], out=taken[:, 1:])
    np.maximum(taken[:-1, :-1], given[1:, 1:], out=taken[:-1, :-1])
    np.maximum(taken[1:], given[:-1], out=taken[1:])
    return taken


def _spread_line(bound: Table) -> Table:
    """The maximum over two steps either way along places: one vote moves n_b − C by two at most."""
    for _ in range(2):
        wider = bound.copy()
        np.maximum(wider[1:], bound[:-1], out=wider[1:])
        np.maximum(wider[:-1], bound[1:], out=wider[:-1])
        bound = wider
    return bound


def _at_distances(bound: Table, distances: Ints, *, cells: int) -> Iterator[Table]:
    """t_d for ascending distances."""
    reached = 0
    for distance in distances.tolist():
        for _ in range((distance - reached) * cells):
            bound = _spread(bound) if bound.ndim == 2 else _spread_line(bound)
        reached = distance
        yield bound


@dataclass(frozen=True, eq=False)
class Balls:
    """t_d of a moved and of a lone vote.

    Attributes:
        lattice: where the places are.
        moved: by the gap of the class that gives its vote, −τ, …, τ (votes), [gaps, distances,
            places].
        lone: [distances, places].
    """

    lattice: Lattice
    moved: Table
    lone: Floats

    @classmethod
    def of(cls, lattice: Lattice, gives: Floats, *, order: float, distances: Ints) -> Balls:
        """`gives` as of `moved_vote`."""
        gaps = np.arange(-lattice.teachers, lattice.teachers + 1)
        rows = lattice.gap + gaps * lattice.cells
        start = rounded_up(gives)
        moved = np.empty((gaps.size, distances.size, lattice.places), dtype=start.dtype)
        for d, bound in enumerate(_at_distances(start, distances, cells=lattice.cells)):
            moved[:, d] = bound[rows]
        line = lone_vote(lattice, order=order, shift=lattice.unit * lattice.cells)
        lone = [
            bound.astype(np.float64)
            for bound in _at_distances(line, distances, cells=lattice.cells)
        ]
        return cls(lattice, moved, np.stack(lone))

    def expected(self, touched: Touched, others: BestOfOthers) -> Floats:
        """E_C of t_d, the worse order of the pair, [cases, distances]."""
        worst = np.zeros((len(touched), len(self.lone)))
        for at, part in touched.parts(max(1, _NUMBERS_AT_ONCE // self.lattice.laws)):
            law = others.law(part)
            if part.counts.shape[1] == 1:
                worst[at] = self._along(self.lone, part.counts[:, 0], law)
                continue
            gaps, starts = np.unique(part.gaps, return_index=True)
            for gap, first, last in zip(gaps, starts, [*starts[1:], at.size], strict=True):
                own, some = part.counts[first:last], law[first:last]
                middle = self.lattice.teachers
                worst[at[first:last]] = np.maximum(
                    self._along(self.moved[middle + gap], own[:, 0], some),
                    self._along(self.moved[middle - gap], own[:, 1], some),
                )
        return worst

    def _along(self, lines: Table, own: Counts, law: Floats) -> Floats:
        """Σ_j Pr[j] · lines at the places of classes with these counts, [cases, distances]."""
        first = own * self.lattice.cells
        low, high = int(first.min()), int(first.max()) + self.lattice.laws
        along = np.zeros((own.size, high - low))
        np.put_along_axis(along, (first - low)[:, None] + np.arange(self.lattice.laws), law, axis=1)
        return along @ lines[:, low:high].T.astype(np.float64)


def check_conditional_size(
    *, rows: int, classes: int, teachers: int, sigma: float, order: float, furthest: int
) -> None:
    """Refuse what `conditional_rdp` might not have the memory for, whatever the histograms are.

    How many gaps there are between counts, and how many classes differ, follows from the votes. So
    the most are presumed: vote files of one shape are refused together or not at all.

    Args:
        rows: most histograms.
        classes, teachers, sigma, order: as there.
        furthest: the largest distance (votes).

    Raises:
        ParameterError: more than 4 GiB; the message says how much.
    """
    if endless(sigma=sigma, order=order):
        return
    lattice = Lattice.of(teachers=teachers, classes=classes, sigma=sigma, order=order)
    # What tables are made of, the lines that are kept of each distance, cases and laws.
    table = (2 * lattice.gap + 1) * lattice.places * 16
    kept = (2 * teachers + 1) * lattice.places * (furthest + 2)
    laws = lattice.laws * (_rows_at_once(classes) + teachers) + 6 * _NUMBERS_AT_ONCE
    needed = 8.0 * (table + kept + laws + rows * (furthest + 1) * 4)
    if needed > _MOST_BYTES:
        raise ParameterError(
            f"teachers={teachers}, classes={classes} and sigma={sigma:g}: the conditional bound "
            f"might need about {needed / 2**30:.0f} GiB for {rows} histograms on its lattice of "
            f"{lattice.cells} cell(s) a vote (at most {_MOST_BYTES // 2**30}); the two-tail bound "
            "needs little"
        )


def _rows_at_once(classes: int) -> int:
    return max(16, min(2048, _CASES_LISTED // (classes * classes)))


def conditional_rdp(
    counts: Counts,
    *,
    teachers: int,
    sigma: float,
    order: float,
    distances: Ints,
    cap: float,
) -> Floats:
    """min(F'_d, cap) for each histogram: what one noisy argmax costs within d votes of it.

    For neighbours n and n' (a vote moved, added or withdrawn) the result at d = 0 bounds
    D_λ(M(n) ‖ M(n')), and the result of n' at d is at most that of n at d + 1.

    Args:
        counts: integer histograms [rows, classes], classes ≥ 3 in any order, of at most τ votes.
        teachers: τ (public), which with σ, λ and the number of classes fixes the lattice.
        sigma: standard deviation of the noise on each count, > 0 (counts).
        order: Rényi order λ > 1.
        distances: ascending d ≥ 0, [distances] (votes); a coin takes every one of them.
        cap: a bound on the argmax of any votes, such as `worst_argmax_rdp`, ≥ 0 and finite (nats).

    Returns:
        [distances, rows] in nats, non-decreasing in d, at most `cap` and λ/σ² (Proposition 8),
        which stand alone where λ(λ−1)/σ² > 500.

    Raises:
        ParameterError: a bad parameter, two classes (`two_class_states_rdp` is exact), histograms
            that are no votes of τ teachers, or too large a lattice (`check_conditional_size`).
    """
    counts, distances = check_votes(counts, teachers=teachers), check_distances(distances)
    rows, classes = counts.shape
    sigma, order = check_positive("sigma", sigma), check_order(order)
    cap = min(check_nonnegative("cap", cap), order / sigma**2)
    if rows == 0 or endless(sigma=sigma, order=order):
        return np.full((distances.size, rows), cap)
    check_conditional_size(
        rows=rows,
        classes=classes,
        teachers=teachers,
        sigma=sigma,
        order=order,
        furthest=int(distances[-1]),
    )
    lattice = Lattice.of(teachers=teachers, classes=classes, sigma=sigma, order=order)
    gives, _ = moved_vote(lattice, order=order, shift=1.0 / sigma)
    balls = Balls.of(lattice, gives, order=order, distances=distances)
    worst = np.zeros((rows, distances.size))
    for start, part in row_parts(counts):
        others = BestOfOthers.of(part, lattice)
        for touched in every_touch(part):
            np.maximum.at(worst, start + touched.rows, balls.expected(touched, others))
    bound = np.log1p(with_errors(worst, distances)).T / (order - 1.0)
    return np.asarray(np.minimum(np.maximum.accumulate(bound, axis=0), cap), dtype=np.float64)


def check_votes(counts: Counts, *, teachers: int) -> Counts:
    """Histograms of at most so many votes for three classes or more, else ParameterError."""
    counts = check_counts(counts, teachers=teachers)
    check_ensemble(teachers, counts.shape[1], 1)
    if counts.shape[1] < 3:
        raise ParameterError("counts must have at least 3 classes: with 2 no class is untouched")
    return counts


def row_parts(counts: Counts) -> Iterator[tuple[int, Counts]]:
    """(first row, histograms in descending order), so many that pairs of classes stay few."""
    size = _rows_at_once(counts.shape[1])
    for start in range(0, len(counts), size):
        yield start, -np.sort(-counts[start : start + size], axis=1)


def every_touch(counts: Counts) -> tuple[Touched, Touched, Touched]:
    """The two largest counts of each row, all other pairs, and single classes."""
    return Touched.leaders(counts), Touched.pairs(counts), Touched.single(counts)


def with_errors(moment: Floats, distances: Ints) -> Floats:
    """Moments [..., distances] with what was neglected, and a little more for every vote."""
    votes = distances + 1.0
    return moment * (1.0 + _ROUNDING * votes) + 3.0 * NEGLECTED * votes


def conditional_seconds(
    *,
    rows: int,
    classes: int,
    teachers: int,
    sigma: float,
    order: float,
    furthest: int,
) -> float:
    """About how long `conditional_rdp` takes on one core (seconds), for an estimate only.

    Args:
        rows: distinct histograms.
        classes, teachers, sigma, order: as there.
        furthest: the largest distance (votes).
    """
    if endless(sigma=sigma, order=order):
        return 0.0
    lattice = Lattice.of(teachers=teachers, classes=classes, sigma=sigma, order=order)
    table = (2 * lattice.gap + 1) * lattice.places
    each_step = _STEP_SECONDS if table < _CACHED else 2.0 * _STEP_SECONDS
    pairs = min(classes * (classes - 1) // 2, _PAIRS_A_ROW)
    return table * (_PLACE_SECONDS + lattice.cells * furthest * each_step) + (
        rows * pairs * min(classes, _CLASSES_A_CASE) * lattice.laws * _LAW_SECONDS
    )
