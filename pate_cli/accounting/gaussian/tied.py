"""The cost of a Confident query with three or more classes, for test and argmax together.

The test of max_j n_j and the argmax use the same votes: votes that reduce the gap of the argmax
also reduce the count that is tested. If the test and the argmax were charged separately, a query
would cost as if its votes were costly for the test *and* for the argmax. This module bounds the
cost of the test and the argmax together, for the same votes; test and argmax are then called
*tied*. The proof is in THEORY.md, section 6.7.

**One query and one ordered pair of classes.** Let a vote move from class a to class b. Let x = n_a,
y = n_b, let r be the largest count of the other classes, and C their largest noisy count. The
largest counts before and after the move are v = max(x, y, r) and v' = max(x − 1, y + 1, r). The
test passes with probability p = Φ((v − T)/σ1) before and p' = Φ((v' − T)/σ1) after the move. Let h
be the moment minus 1 of the argmax if C is given; the module `conditional` has its formula. Then

  e^{(λ−1) D_λ(M(n) ‖ M(n'))} ≤ (1−p)^λ (1−p')^{1−λ} + p^λ p'^{1−λ} (1 + E_C h((x−C)/σ, (y−C)/σ)).

**Within a distance.** Let f be one class of the pair: a, which loses the vote, or b, which gains
it. Let F be the count of f, and o the other class of the pair. If d votes change the count of f
from F to F + i, all classes except f together lose at most l = d − i₋ votes and gain at most g = d
− i₊ votes, where i₊ and i₋ are the positive and the negative part of i, and |i| ≤ d. So max(l, g) =
d and i = l − g. The module `conditional` computes t_0, an upper bound on h if C is given. Let
S_{l,g} be the largest t_0, for fixed noise, of all votes in which f has F + i votes and the other
classes have lost at most l votes and gained at most g votes. Let

  u_d = log(max of (1−p)^λ (1−p')^{1−λ} + p^λ p'^{1−λ} (1 + E_C S_{l,g}))/(λ−1).

The maximum in u_d is over all l, g with max(l, g) = d and over all pairs (v, v') of largest counts
that are possible before and after the move. A pair (v, v') is possible if f has F + i votes, o has
between n_o − l and n_o + g votes, and the largest count of all other classes is between r − l and
r + g. The bound u_0 is an upper bound on the RDP cost of the query if a vote moves from a to b. For
neighbours n and n', u_d computed for n' is at most u_{d+1} computed for n. The inequality u_d(n') ≤
u_{d+1}(n) holds with f = a and with f = b, and so for the smaller of the bounds with f = a and f =
b. If f were always the class with more votes, the inequality might not hold, because in n and n'
different classes of the pair may have more votes.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from pate_cli.accounting.divergence import excess_raised, weight_raised
from pate_cli.accounting.gaussian.conditional import (
    Balls,
    BestOfOthers,
    ConditionalSize,
    Lattice,
    Table,
    Touched,
    every_touch,
    moved_vote,
    rounded_up,
    row_parts,
    with_errors,
)
from pate_cli.core.arrays import Counts, Floats, Ints
from pate_cli.core.errors import ParameterError

# How many numbers of tables, and of distributions, are in memory at once; both do not change
# results.
_HELD, _NUMBERS_AT_ONCE = 16_000_000, 4_000_000
_MOST_PLACES = 30_000_000
_ALONE = 2**18
# The share of the time that pairs of the two largest counts take.
_LEADERS_SHARE = 0.4
# Classes are summed together if their places are in the same range of this many cells.
_SPAN = 64
# Estimated seconds on two cores: per place of a table, cell and pair (l, g); and per side, value of
# j and pair (l, g). `_PAIRS_LEFT` estimates for how many pairs of a row the separate bounds are not
# small enough.
_SPREAD_SECONDS, _LAW_SECONDS, _PAIRS_LEFT = 1e-9, 8e-10, 9


@dataclass(frozen=True, eq=False)
class _Test:
    """The effect of the threshold test on the moment E_q[(p/q)^λ] of a query.

    The largest count is v = 0, …, τ for the votes, and v' = v + step for their neighbour, with a
    step of −1, 0 or 1.

    Attributes:
        excess: E_q[(p/q)^λ] − 1 of the test alone, with the distributions p and q of its outcome
            at v and v', [3 steps, τ + 1].
        weight: Pr[pass]^λ Pr'[pass]^{1−λ}, where Pr and Pr' are the probabilities at v and v',
            [3 steps, τ + 1].
        excess_over, weight_over: the largest `excess` and `weight` over 2^level values of the
            largest count, v, v + 1, …, [levels, 3 steps, τ + 1].
    """

    excess: Floats
    weight: Floats
    excess_over: Floats
    weight_over: Floats

    @classmethod
    def of(cls, *, teachers: int, threshold: float, sigma: float, order: float) -> _Test:
        margin = (np.arange(-1, teachers + 2) - threshold) / sigma
        log_yes, log_no = log_ndtr(margin), log_ndtr(-margin)
        middle = slice(1, -1)
        excess, weight = [], []
        for there in (slice(None, -2), middle, slice(2, None)):
            excess.append(
                excess_raised(log_yes[middle], log_yes[there], order=order)
                + excess_raised(log_no[middle], log_no[there], order=order)
            )
            weight.append(weight_raised(log_yes[middle], log_yes[there], order=order))
        found = np.stack(excess), np.stack(weight)
        return cls(*found, *(_over_stretches(values) for values in found))

    def at(self, step: int, votes: Ints, moment: Floats) -> Floats:
        """Return E_q[(p/q)^λ] − 1 of a query with the largest counts v = `votes` and v' = v + step.

        `moment` is E_q[(p/q)^λ] − 1 of the argmax alone.
        """
        return self.excess[1 + step, votes] + self.weight[1 + step, votes] * moment

    def over(self, step: int, low: Ints, high: Ints, moment: Floats) -> Floats:
        """Return a bound on the results of `at` for v = low, …, high.

        The bound is 0 if none of the counts low, …, high is between 0 and τ.
        """
        last = self.excess.shape[1] - 1
        some = np.maximum(low, 0) <= np.minimum(high, last)
        low, high = np.clip(low, 0, last), np.clip(high, 0, last)
        level = np.frexp(np.maximum(high - low + 1, 1))[1] - 1
        end = np.maximum(high + 1 - (1 << level), low)
        excess, weight = (
            np.maximum(values[level, 1 + step, low], values[level, 1 + step, end])
            for values in (self.excess_over, self.weight_over)
        )
        return np.where(some, excess + weight * moment, 0.0)

    def apart(self, own: Counts, top: Counts, moment: Floats) -> Floats:
        """Return a bound on E_q[(p/q)^λ] − 1 of a query, from separate bounds on its two parts.

        The two parts are the threshold test and the argmax: the worst votes for one may differ
        from the worst votes for the other. A case is one or two classes of a query whose
        counts one vote changes.

        Args:
            own: the count that one vote changes, or the larger one of two such counts, [cases].
            top: the largest count of the query, [cases].
            moment: E_q[(p/q)^λ] − 1 of the argmax alone, [cases, distances].
        """
        distances = np.arange(moment.shape[1])
        low, high = top[:, None] - distances, top[:, None] + distances
        stay = self.over(0, low, high, moment)
        moved = np.maximum(self.over(-1, low, high, moment), self.over(1, low, high, moment))
        # The vote neither makes its class the largest nor changes the largest count, so v' = v.
        below = own[:, None] + distances < low - 1
        return np.where(below, stay, np.maximum(stay, moved))


def _over_stretches(values: Floats) -> Floats:
    """Return, for each position of the last axis, the largest of the next 1, 2, 4, … values.

    The next values begin with the value at the position itself, and are fewer at the end of the
    axis. The first axis of the result is the level: 2^level values are compared.
    """
    levels, width = [values], 1
    while 2 * width <= values.shape[-1]:
        wider = levels[-1].copy()
        np.maximum(wider[..., :-width], levels[-1][..., width:], out=wider[..., :-width])
        levels.append(wider)
        width *= 2
    return np.stack(levels)


@dataclass(frozen=True, eq=False)
class _Sides:
    """For each of many pairs of classes: one class f of the pair, and the counts that set its cost.

    In each pair a vote moves between f and the other class o. Let C be the largest noisy count of
    all classes except f and o, and K the number of cells per vote.

    Attributes:
        own: the count of f, [sides] (votes).
        other: the count of o, the other class of the pair, [sides] (votes).
        rest: the largest count of all classes except f and o, [sides] (votes).
        law: the distribution of C: the probabilities Pr[⌈KC⌉ = j] for j = top, top − 1, …,
            [sides, laws].
        top: the largest value of ⌈KC⌉ for which `law` has a probability.
    """

    own: Counts
    other: Counts
    rest: Counts
    law: Floats
    top: int

    @classmethod
    def larger(cls, touched: Touched, others: BestOfOthers) -> _Sides:
        """Return one entry for each pair of classes, with f the class that has more votes."""
        lattice = others.lattice
        # C is above `top` only with a probability so small that it is neglected.
        top = int(touched.rivals.max(initial=0)) * lattice.cells + lattice.above
        law = others.law(touched)[:, lattice.gap + lattice.above - top :]
        return cls(touched.counts[:, 0], touched.counts[:, 1], touched.rivals, law, top)

    @property
    def both(self) -> _Sides:
        """Return each pair of classes (f, o) twice: as it is, and with f and o exchanged."""
        return _Sides(
            np.concatenate([self.own, self.other]),
            np.concatenate([self.other, self.own]),
            np.tile(self.rest, 2),
            np.tile(self.law, (2, 1)),
            self.top,
        )


class _Spread:
    """Tables of S_{l,g}, and the means E_C S_{l,g} of the bound u_d, for l = 0, 1, 2, … in turn.

    The docstring of this module defines S_{l,g}, u_d, f and o. C is the largest noisy count of all
    classes except f and o. The first table, for l = g = 0, is the table of t_0, or rather the part
    of it that `sides` needs. Each row of a table is a gap: the count of f minus the count of o.
    Each column of a table is a place: the count of f minus C, rounded. Gaps and places are numbers
    of cells of 1/K vote. If the count of o falls or rises by 1/K vote, the gap rises or falls by
    one cell. If C falls or rises by 1/K vote, the place rises or falls by one cell.
    """

    def __init__(self, table: Table, lattice: Lattice, sides: _Sides, *, distances: int) -> None:
        """Copy the gaps and places that `sides` needs from `table`, which contains t_0."""
        self._cells, self._distances = lattice.cells, distances
        self._size, laws = sides.own.size, sides.law.shape[1]
        gaps = (sides.own - sides.other) * lattice.cells
        first = sides.own * lattice.cells - sides.top  # the place at the first j
        # f moves by at most half of this many cells, and so do the other classes.
        halo = 2 * lattice.cells * (distances - 1)
        row = max(int(gaps.min()) - halo, -lattice.gap)
        column = max(int(first.min()) - halo, lattice.lowest)
        rows = slice(row + lattice.gap, int(gaps.max()) + halo + lattice.gap + 1)
        columns = slice(column - lattice.lowest, int(first.max()) + laws + halo - lattice.lowest)
        self._table = table[rows, columns].copy()
        height, width = self._table.shape
        # If the count of f would be below 0 or above τ, entries of the padding are read and not
        # used.
        self._pad = lattice.cells * distances * (width + 1) + laws + width
        self._held = max(1, min(distances, _HELD // self._table.size))
        self._buffer = np.zeros(
            2 * self._pad + self._held * self._table.size, dtype=self._table.dtype
        )
        self._stack = self._buffer[self._pad : self._buffer.size - self._pad].reshape(
            self._held, height, width
        )
        self._spare = np.empty_like(self._table)
        self._groups = []
        order = np.lexsort((first, gaps))
        apart = (np.diff(gaps[order]) != 0) | (np.diff(first[order] // _SPAN) != 0)
        for group in np.split(order, np.flatnonzero(apart) + 1):
            # The skipped part of the distribution only matters for larger counts of the other
            # classes.
            skip = sides.top - lattice.above - int(sides.rest[group].max()) * lattice.cells
            law, places = sides.law[group, skip:], first[group] + skip
            low = int(places.min())
            along = np.zeros((group.size, int(places.max()) + law.shape[1] - low))
            np.put_along_axis(along, (places - low)[:, None] + np.arange(law.shape[1]), law, axis=1)
            start = self._pad + (int(gaps[group[0]]) - row) * width + low - column
            self._groups.append((group, start, np.ascontiguousarray(along.T)))

    def lose(self) -> None:
        """Replace S_{l,0} by S_{l+1,0}: the classes except f may now lose one more vote."""
        for _ in range(self._cells):
            table, wider = self._table, self._spare
            np.maximum(table[1:], table[:-1], out=wider[:-1])
            wider[-1] = table[-1]
            np.maximum(wider[:, :-1], table[:, 1:], out=wider[:, :-1])
            self._table, self._spare = wider, table

    def expected(self, losses: int) -> Floats:
        """Return the means over C of S_{l,g} for l = `losses` and each g = 0, 1, …, [sides, g].

        The docstring of the module defines S_{l,g}. The count of f changes by l − g votes, so the
        code reads the table of S_{l,g} at a gap and a place that are l − g votes larger than the
        gap and the place of the pair.
        """
        found = np.empty((self._size, self._distances))
        for start in range(0, self._distances, self._held):
            stop = min(start + self._held, self._distances)
            for gains in range(start, stop):
                if gains == 0:
                    self._stack[0] = self._table
                else:
                    before = self._stack[(gains - 1) % self._held]
                    self._gain(before, self._stack[gains - start])
            self._collect(found[:, start:stop], losses - start)
        return found

    def _gain(self, table: Table, wider: Table) -> None:
        for step in range(self._cells):
            if step or self._held == 1:  # in place
                table = wider.copy()
            np.maximum(table[1:], table[:-1], out=wider[1:])
            wider[0] = table[0]
            np.maximum(wider[:, 1:], table[:, :-1], out=wider[:, 1:])

    def _collect(self, out: Floats, moved: int) -> None:
        """Write the means E_C S_{l,g} to `out` for each table of S_{l,g} in the buffer.

        The buffer has one table for each of several consecutive g. The code reads the first table
        at a gap and a place that are `moved` votes larger than the gap and the place of the pair.
        The code reads each later table at a gap and a place that are one vote smaller than in the
        table before.
        """
        item, width = self._buffer.itemsize, self._table.shape[1]
        diagonal = self._cells * (width + 1)
        strides = (item * (self._table.size - diagonal), item)
        for group, start, along in self._groups:
            lines = np.lib.stride_tricks.as_strided(
                self._buffer[start + moved * diagonal :],
                (out.shape[1], along.shape[0]),
                strides,
                writeable=False,
            )
            wide = lines.astype(np.float64)
            # Some libraries divide larger products among threads, which is slower if two threads do
            # this at the same time.
            few = max(1, _ALONE // wide.size)
            for first in range(0, group.size, few):
                some = slice(first, first + few)
                out[group[some]] = (wide @ along[:, some]).T


@dataclass(frozen=True)
class _Reach:
    """The count of f, and bounds on all other counts, for each side of `_Sides` and each g.

    The docstring of the module defines f and g. All arrays are [sides, g].
    """

    own: Ints
    other_low: Ints
    other_high: Ints
    rest_low: Ints
    rest_high: Ints
    stands: NDArray[np.bool_]
    """Whether the count of f is between 0 and τ."""

    @classmethod
    def of(cls, sides: _Sides, losses: int, gains: Ints, *, teachers: int) -> _Reach:
        own = sides.own[:, None] + losses - gains
        left = teachers - own
        return cls(
            own,
            sides.other[:, None] - losses + 0 * gains,
            np.minimum(sides.other[:, None] + gains, left),
            sides.rest[:, None] - losses + 0 * gains,
            np.minimum(sides.rest[:, None] + gains, left),
            (own >= 0) & (left >= 0),
        )

    def giving(self, test: _Test, moment: Floats) -> Floats:
        """Return, for each side and g, the largest E_q[(p/q)^λ] − 1 if a vote moves from f to o."""
        own, last = self.own, test.excess.shape[1] - 1
        here = np.clip(own, 0, last)
        # v is the count of f, and v' = v − 1, if all other counts can be small enough.
        alone = (self.other_low <= own - 2) & (self.rest_low <= own - 1)
        worst = np.where(alone, test.at(-1, here, moment), 0.0)
        # v' = v, if the largest count is that of another class than f and o, or is that of o after
        # the vote. The test passes more often for larger v.
        by_rest = (self.rest_high > own) & (self.other_low < self.rest_high)
        tied = (self.rest_low <= own) & (own <= self.rest_high) & (self.other_low < own)
        behind = (self.other_low < own) & (own <= self.other_high + 1) & (self.rest_low <= own)
        votes = np.where(by_rest, np.clip(self.rest_high, 0, last), here)
        same = np.where(by_rest | tied | behind, test.at(0, votes, moment), 0.0)
        # v is the count of o, and v' = v + 1.
        low = np.maximum(np.maximum(own, self.other_low), self.rest_low)
        found = np.maximum(np.maximum(worst, same), test.over(1, low, self.other_high, moment))
        return np.where(self.stands & (own >= 1), found, 0.0)

    def taking(self, test: _Test, moment: Floats) -> Floats:
        """Return, for each side and g, the largest E_q[(p/q)^λ] − 1 if a vote moves from o to f."""
        own, last = self.own, test.excess.shape[1] - 1
        here = np.clip(own, 0, last)
        most = (self.other_low <= own) & (self.rest_low <= own)
        worst = np.where(most, test.at(1, here, moment), 0.0)
        # v' = v, if the largest count is that of another class than f and o, or is that of o before
        # the vote and of f after it.
        by_rest = (self.rest_high > own) & (self.other_low <= self.rest_high)
        passed = (self.other_low <= own + 1) & (own < self.other_high) & (self.rest_low <= own + 1)
        votes = np.clip(np.where(by_rest, self.rest_high, own + 1), 0, last)
        same = np.where(by_rest | passed, test.at(0, votes, moment), 0.0)
        # v is the count of o, and v' = v − 1.
        low = np.maximum(np.maximum(own + 2, self.other_low), self.rest_low + 1)
        found = np.maximum(np.maximum(worst, same), test.over(-1, low, self.other_high, moment))
        return np.where(self.stands & (self.other_high >= 1), found, 0.0)

    def lone(self, test: _Test, moment: Floats) -> Floats:
        """Return, for each side and g, the largest E_q[(p/q)^λ] − 1 if f gains or loses a vote.

        A vote is only added or withdrawn, so only the count of f changes, and all classes except f
        are treated alike.
        """
        own, last = self.own, test.excess.shape[1] - 1
        here = np.clip(own, 0, last)
        added = (self.rest_low <= own) & (own < last)
        withdrawn = (self.rest_low < own) & (own >= 1)
        moved = np.maximum(
            np.where(added, test.at(1, here, moment), 0.0),
            np.where(withdrawn, test.at(-1, here, moment), 0.0),
        )
        votes = np.clip(self.rest_high, 0, last)
        same = np.where(self.rest_high >= own, test.at(0, votes, moment), 0.0)
        return np.where(self.stands, np.maximum(moved, same), 0.0)


@dataclass(frozen=True, eq=False)
class _TiedQuery:
    """Tables and settings of a tied query that do not depend on votes, and so are public.

    Its methods compute moments E_q[(p/q)^λ] − 1 of a query, which is a test and an argmax. A case
    is one or two classes of a query whose counts one vote changes.

    Attributes:
        gives, takes: tables of t_0, the bound on the moment minus 1 of the argmax if C is
            given; `moved_vote` describes them.
        balls: tables of t_d, the largest t_0 of all votes within distance d.
        test: the effect of the threshold test on the moment.
        distances: how many distances d = 0, 1, … to the votes of the query are computed.
        enough: an upper bound on the moment minus 1 of the argmax, whatever the votes are.
        progress: see `tied_rdp`.
    """

    gives: Table
    takes: Table
    balls: Balls
    test: _Test
    distances: int
    enough: float
    progress: Callable[[float], None]

    def charged(self, moment: Floats, apart: Ints) -> Floats:
        """Return moments minus 1 of the argmax, plus bounds on their errors, at most `enough`."""
        return np.minimum(with_errors(moment, apart), self.enough)

    def untied(self, touched: Touched, others: BestOfOthers) -> Floats:
        """Return bounds on E_q[(p/q)^λ] − 1, [cases, distances].

        For these bounds the worst votes for the test and the worst votes for the argmax may differ.
        """
        found = np.empty((len(touched), self.distances))
        for at, some in touched.parts(max(1, _NUMBERS_AT_ONCE // (8 * self.distances))):
            moment = self.balls.expected(some, others)
            found[at] = self.test.apart(
                some.counts[:, 0],
                others.counts[some.rows, 0],
                self.charged(moment, np.arange(self.distances)),
            )
        return found

    def pairs(
        self, touched: Touched, others: BestOfOthers, share: float, *, by_larger: bool = False
    ) -> Floats:
        """Return the largest E_q[(p/q)^λ] − 1 if a vote moves within a pair, [cases, distances].

        The vote moves from one class of the pair to the other class, in either direction.

        Args:
            touched, others: the pairs, and the distributions of C in their rows.
            share: which share of all work this call does.
            by_larger: return a larger bound in half of the time, for which the larger class of
                each pair is f, and the smaller class is never f.
        """
        found = np.zeros((len(touched), self.distances))
        for at, some in touched.parts(_cases_at_once(self.balls.lattice)):
            sides = _Sides.larger(some, others)
            gives, takes = self._kinds(
                sides if by_larger else sides.both, share * at.size / len(touched)
            )
            # A vote moves from the larger class to the smaller one, or the other way. Each
            # direction has two bounds, one for each choice of f.
            down, up = gives[: at.size], takes[: at.size]
            if not by_larger:
                down = np.minimum(down, takes[at.size :])
                up = np.minimum(up, gives[at.size :])
            found[at] = np.maximum(down, up)
        if not len(touched):
            self.progress(share)
        return found

    def _kinds(self, sides: _Sides, share: float) -> tuple[Floats, Floats]:
        """Return the largest E_q[(p/q)^λ] − 1, first if f loses a vote, then if f gains a vote."""
        stopped = threading.Event()
        part = share / (2 * self.distances)
        of_kind = functools.partial(self._of_kind, sides, share=part, stopped=stopped)
        with ThreadPoolExecutor(2) as both:
            try:
                gives, takes = both.map(of_kind, (True, False))
            except BaseException:
                # Both threads end before the error is raised again. After an interruption, each
                # thread still completes its current step.
                stopped.set()
                raise
        return gives, takes

    def _of_kind(
        self, sides: _Sides, gives: bool, *, share: float, stopped: threading.Event
    ) -> Floats:
        """Return, for each side and distance, the largest E_q[(p/q)^λ] − 1.

        With `gives` class f loses a vote; otherwise class f gains a vote.
        """
        table, gains = self.gives if gives else self.takes, np.arange(self.distances)
        spread = _Spread(table, self.balls.lattice, sides, distances=self.distances)
        worst = np.zeros((sides.own.size, self.distances))
        for losses in range(self.distances):
            if stopped.is_set():
                break
            if losses:
                spread.lose()
            moment = self.charged(spread.expected(losses), np.maximum(losses, gains))
            reach = _Reach.of(sides, losses, gains, teachers=self.balls.lattice.teachers)
            found = reach.giving(self.test, moment) if gives else reach.taking(self.test, moment)
            _add(found, losses, worst)
            self.progress(share)
        return worst

    def lone_votes(self, touched: Touched, others: BestOfOthers) -> Floats:
        """Return the largest E_q[(p/q)^λ] − 1 if one class f gains or loses a vote.

        The vote is added or withdrawn, so that no other class changes. C is the largest noisy count
        of all classes except f.
        """
        lattice, gains = self.balls.lattice, np.arange(self.distances)
        own = touched.counts[:, 0]
        along = np.zeros((own.size, lattice.places))
        first = own[:, None] * lattice.cells
        np.put_along_axis(along, first + np.arange(lattice.laws), others.law(touched), axis=1)
        sides = _Sides(own, touched.rivals, touched.rivals, along, 0)
        worst = np.zeros((own.size, self.distances))
        line, place = self.balls.lone[0], np.arange(lattice.places)
        for losses in range(self.distances):
            if losses:
                for _ in range(lattice.cells):
                    line = np.maximum(line, np.append(line[1:], 0.0))
            lines, wider = [], line
            for gained in range(self.distances):
                at = np.clip(place + lattice.cells * (losses - gained), 0, lattice.places - 1)
                lines.append(wider[at])
                for _ in range(lattice.cells):
                    wider = np.maximum(wider, np.append(0.0, wider[:-1]))
            moment = self.charged(along @ np.stack(lines).T, np.maximum(losses, gains))
            reach = _Reach.of(sides, losses, gains, teachers=lattice.teachers)
            _add(reach.lone(self.test, moment), losses, worst)
        return worst


def _add(found: Floats, losses: int, worst: Floats) -> None:
    """Update `worst`, the largest E_q[(p/q)^λ] − 1 at each distance d = max(l, g), with `found`.

    `found` has the moments for l = `losses` and g = 0, 1, …, where the classes except f lose at
    most l votes and gain at most g votes. `found` and `worst` are [cases, distances].
    """
    worst[:, losses] = np.maximum(worst[:, losses], found[:, : losses + 1].max(axis=1))
    np.maximum(worst[:, losses + 1 :], found[:, losses + 1 :], out=worst[:, losses + 1 :])


def tied_rdp(
    counts: Counts,
    *,
    teachers: int,
    sigma: float,
    threshold: float,
    sigma_threshold: float,
    order: float,
    distances: Ints,
    argmax_cap: float,
    progress: Callable[[float], None] = lambda _share: None,
) -> Floats:
    """Return the RDP cost of a Confident-GNMax query at the worst votes within distance d.

    The cost is that of the threshold test and the answer together. Let n' be a neighbour of n, with
    one vote moved, added or withdrawn. The result for n at distance 0 is at least D_λ(M(n) ‖
    M(n')). For neighbours n and n', the result for n' at distance d is at most the result for n at
    distance d + 1.

    Args:
        counts: integer histograms [rows, classes] of at most τ votes each, with at least 3 classes
            in any order.
        teachers: the number of teachers τ (public).
        sigma: standard deviation σ2 of the noise on each count of the argmax, > 0 (votes).
        threshold: T, finite (votes).
        sigma_threshold: standard deviation σ1 of the noise on the largest count, > 0 (votes).
        order: Rényi order λ > 1.
        distances: d ≥ 0 in ascending order, [distances] (votes).
        argmax_cap: a bound on the cost of the argmax whatever the votes are, such as
            `worst_argmax_rdp` (nats).
        progress: called from two threads with shares of the work, which add up to 1.

    Returns:
        [distances, rows] in nats, non-decreasing in d, and at most λ/(2σ1²) + min(argmax_cap,
        λ/σ2²). If λ(λ−1)/σ2² > 500, the result is λ/(2σ1²) + min(argmax_cap, λ/σ2²).

    Raises:
        ParameterError: the computation might need too much memory (`check_tied_size`).
    """
    rows, classes = counts.shape
    argmax_cap = min(argmax_cap, order / sigma**2)
    cap = order / (2.0 * sigma_threshold**2) + argmax_cap
    size = ConditionalSize(rows, classes, teachers, sigma, order, int(distances[-1]))
    if rows == 0 or size.overflows:
        return np.full((distances.size, rows), cap)
    check_tied_size(size)
    every, lattice = size.furthest + 1, size.lattice
    gives, takes = moved_vote(lattice, order=order, shift=1.0 / sigma)
    query = _TiedQuery(
        gives=rounded_up(gives),
        takes=rounded_up(takes),
        balls=Balls.of(lattice, gives, order=order, distances=np.arange(every)),
        test=_Test.of(teachers=teachers, threshold=threshold, sigma=sigma_threshold, order=order),
        distances=every,
        enough=float(np.expm1((order - 1.0) * argmax_cap)),
        progress=progress,
    )
    worst = np.empty((rows, every))
    for start, part in row_parts(counts):
        others, found = BestOfOthers.of(part, lattice), worst[start : start + len(part)]
        leaders, pairs, single = every_touch(part)
        # A vote between the two largest counts is nearly always the worst.
        share = len(part) / rows
        found[:] = query.pairs(leaders, others, _LEADERS_SHARE * share)
        # For most other pairs, a faster bound already shows that they do not cost more.
        left = _above(pairs, query.untied(pairs, others), found)
        larger = query.pairs(left, others, (1.0 - _LEADERS_SHARE) * share, by_larger=True)
        left = _above(left, larger, found)
        np.maximum.at(found, left.rows, query.pairs(left, others, 0.0))
        left = _above(single, query.untied(single, others), found)
        np.maximum.at(found, left.rows, query.lone_votes(left, others))
    bound = np.log1p(worst) / (order - 1.0)
    bound = np.minimum(np.maximum.accumulate(bound, axis=1), cap)
    return np.asarray(bound.T[distances], dtype=np.float64)


def _above(touched: Touched, bound: Floats, found: Floats) -> Touched:
    """Return the cases of `touched` whose bound exceeds the largest moment found for their row.

    `bound` has an upper bound on the moment of each case, and `found` the largest moment found so
    far in each row; a case is returned if its bound is larger at any distance.
    """
    return touched.take(np.flatnonzero((bound > found[touched.rows]).any(axis=1)))


def check_tied_size(size: ConditionalSize) -> None:
    """Raise ParameterError if `tied_rdp` might need too much memory for some histograms.

    Raises:
        ParameterError: `ConditionalSize.check` raises it; or the table of t_0 (`moved_vote`) would
            be so large that memory may not have room for a few copies of it.
    """
    size.check()
    if not size.overflows and size.lattice.table > _MOST_PLACES:
        raise ParameterError(
            f"`bound` conditional needs a table of {size.lattice.table} numbers for "
            f"{size.teachers} teachers and sigma {size.sigma:g}, and at most {_MOST_PLACES} are "
            "allowed; use `bound` two-tail"
        )


def _cases_at_once(lattice: Lattice) -> int:
    return max(1, _NUMBERS_AT_ONCE // lattice.laws)


def tied_seconds(size: ConditionalSize) -> float:
    """Estimate how long `tied_rdp` takes (seconds)."""
    if size.overflows:
        return 0.0
    lattice, pairs = size.lattice, size.classes * (size.classes - 1) // 2
    sides = size.rows * (2 + min(pairs - 1, _PAIRS_LEFT))
    passes = 3 + sides // _cases_at_once(lattice)
    spread = passes * (lattice.table * lattice.cells) * _SPREAD_SECONDS
    laws = sides * lattice.laws * _LAW_SECONDS
    return size.seconds() + (size.furthest + 1) ** 2 * spread + (size.furthest + 1) ** 2 * laws
