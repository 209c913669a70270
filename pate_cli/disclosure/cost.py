"""Worst-case costs of runs, and how these costs compose. No other module computes a worst case.

A cost has parts of two kinds. *Curves* are known at every Rényi order: queries to a
mechanism, draws of a sanitized ε, and curves that owners of other mechanisms state. Curves add
order by order. A *pair* is a cost of which only one (ε, δ) is known: the cost of a tested target,
of a session, or of a mechanism without an RDP curve, or an (ε, δ) that the owner of another
mechanism states.

The curve of queries to a mechanism consists of worst-case RDP costs of a single query, at order λ:
w1(λ) for comparing the query with the threshold, w2(λ) for its answer, and w12(λ) for both
together. At every order λ, k1 queries with at most k2 answers cost the smaller of k1·w12(λ) and
k1·w1(λ) + k2·w2(λ). This RDP cost of k1 queries is valid whichever queries get an answer, even if
later queries depend on earlier answers, or if a run stops at its largest number of answers. Curves
are turned into an ε by the best of three routes:

- `renyi`: the sum of all curves at the best of many orders.
- `gaussian-dp`: μ-GDP (Gaussian differential privacy) with μ² = Σ k1/σ1² + 2 k2/σ2², as if all
  noisy values were published. A draw of a sanitized ε has no μ, so `gaussian-dp` is only used for a
  cost without draws of a sanitized ε.
- `pure-dp`: the exact composition of answers that are all ε0-DP.

If the owner of another mechanism states an ε, the routes `gaussian-dp` and `pure-dp` add this ε.
Section 15 of THEORY.md explains how curves and pairs compose.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cached_property
from typing import Final

import numpy as np

from pate_cli.accounting.composition import Curves, epsilon_together, optimal_composition
from pate_cli.accounting.conversion import (
    conversion_cost,
    gaussian_epsilon,
    round_up,
    significant_up,
)
from pate_cli.accounting.few_votes import Few, mu_squared, touched
from pate_cli.accounting.laplace.score_cost import randomised_response_rdp
from pate_cli.core.arrays import Floats
from pate_cli.core.errors import LedgerError, ParameterError
from pate_cli.core.noise import LARGEST_EPSILON
from pate_cli.disclosure.external import Stated, stated_rdp
from pate_cli.disclosure.settings import ReleasePlan, Settings, draws_of
from pate_cli.files.document import SPARING
from pate_cli.mechanisms.base import ComposedMechanism, Mechanism, ScoredMechanism

# Orders 1.02 … 1025, 10% apart in λ − 1; finer steps change ε in the fourth decimal. They have
# three decimals, because reports show them.
_ORDERS: Final = np.round(1.0 + np.geomspace(0.02, 1024.0, 115), 3)
# A composition of pairs and a curve uses the curve at orders beside its best one, too. These are
# steps from the index of the best order.
_AROUND: Final = (-6, -3, 0, 3, 6)
# A composition of pairs may use more δ for a smaller ε, if ε falls at least to this share.
_WORTH_A_DELTA: Final = 0.99
DIGITS: Final = 12
"""How many digits the total ε of several runs has."""


@dataclass(frozen=True)
class Rows:
    """Queries to a mechanism with an RDP curve; at most `max_answers` of the queries are answered.

    `few` is the limit on the number of queries that one teacher votes on; None without a limit.
    """

    mechanism: ScoredMechanism
    queries: int
    max_answers: int
    few: Few = None

    def rdp(self, orders: Floats) -> Floats:
        """Return the worst-case RDP cost at each order, [orders], nats."""
        shape = {"queries": self.queries, "answers": self.max_answers}
        return self.mechanism.worst_rdp(**shape, orders=orders, few=self.few)

    @property
    def touched(self) -> tuple[int, int]:
        """Return the largest numbers of queries and of answers that one record can change."""
        return touched(self.few, self.queries, self.max_answers)

    @property
    def mu_squared(self) -> float:
        """Return μ² of the queries under Gaussian differential privacy."""
        shape = {"queries": self.queries, "answers": self.max_answers}
        return mu_squared(self.few, self.mechanism.gaussian_mu, **shape)


@dataclass(frozen=True)
class Figure:
    """An (ε, δ), and the method that computed it.

    Attributes:
        epsilon: ε, nats.
        delta: δ.
        method: `one` for a single run; `renyi`, `gaussian-dp` or `pure-dp` for curves; `joint` for
            curves and pairs; `basic` or `optimal` for pairs. For a single mechanism without an RDP
            curve, `method` is the name of the theorem, as in `Composition`. For any other single
            pair, `method` is the kind of pair: `target`, `session` or `stated`.
        order: the Rényi order of the method; None if the method uses none.
    """

    epsilon: float
    delta: float
    method: str
    order: float | None = field(default=None, metadata=SPARING)

    def least(self, given: float) -> float:
        """Return the smaller of this worst-case ε and an ε for given votes, nats.

        The worst-case ε is valid for all votes, and therefore also for the given votes. The ε for
        given votes can be larger than the worst case if it was computed at few orders, or at orders
        that are too small.
        """
        return min(given, self.epsilon)


@dataclass(frozen=True)
class Pair(Figure):
    """An (ε, δ) without an RDP curve: of a run, or stated by the owner of another mechanism.

    For a run with a tested target, `epsilon` and `delta` are the cost if the labels pass the
    release test.

    Attributes:
        came: for a tested target, the ε that the run spent, nats. `came` is the ε of a failed test
            if the release test failed, else `epsilon`. `came` is None without a tested target.
    """

    came: float | None = None

    @property
    def counted(self) -> float:
        """Return the ε that the run spent, nats: `came` for a tested target, else `epsilon`."""
        return self.epsilon if self.came is None else self.came


@dataclass(frozen=True)
class Cost:
    """Worst-case cost of one or several runs; `+` composes two costs.

    Use it for every ε or RDP cost that may be published, because it only depends on public
    settings.

    Attributes:
        delta: δ at which curves are converted, in (0, 1); 0 if no δ is stated.
        rows: queries to mechanisms with an RDP curve.
        draws: for each sanitized ε that was drawn, the public parameters of its draw.
        stated: costs of other mechanisms, as the owners of these mechanisms state them. The RDP
            costs of all elements of `stated` are added at every order; a stated (ε, δ) has the RDP
            cost of randomised response at ε.
        pairs: costs of which only one (ε, δ) is known, and no RDP curve.
    """

    delta: float = 0.0
    rows: tuple[Rows, ...] = ()
    draws: tuple[ReleasePlan, ...] = ()
    stated: tuple[Stated, ...] = ()
    pairs: tuple[Pair, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> Cost:
        """Return the full cost of a run with these settings; for a tested target, its (ε, δ).

        Raises:
            UnreachableError: δ is too small for a mechanism without an RDP curve: all its steps
                (queries, or epochs of queries) together need a larger δ.
            LedgerError: the settings name no mechanism.
        """
        tested = settings.tested
        if tested is not None:
            return cls(pairs=(Pair(tested.epsilon, tested.delta, "target", came=tested.epsilon),))
        return replace(cls.of_labels(settings), draws=draws_of([settings]))

    @classmethod
    def of_labels(cls, settings: Settings) -> Cost:
        """Return the cost of a run's labels, as if it had no release test and no sanitized ε.

        The cost of a session is the cost of all answers that the stopping rule of the session
        allows.
        """
        cost = cls.of_rows(settings.aggregator, *settings.charged, settings.delta, settings.few)
        rule = settings.rule
        if rule is None or rule.beyond is None:
            return cost
        # If a session may ask more than N queries, the proof gives an (ε, δ) and no curve.
        own = cost.own
        if rule.epsilon > own.epsilon:
            own = Figure(rule.epsilon, rule.delta, "renyi", rule.beyond.order)
        return cls(pairs=(Pair(own.epsilon, own.delta, own.method, own.order),))

    @classmethod
    def of_rows(
        cls, mechanism: Mechanism, queries: int, answers: int, delta: float, few: Few = None
    ) -> Cost:
        """Return the cost at δ of a number of queries, of which at most `answers` get an answer.

        Raises:
            UnreachableError: δ is too small for a mechanism without an RDP curve: all its steps
                (queries, or epochs of queries) together need a larger δ.
            LedgerError: pate cannot compute the cost of this mechanism.
        """
        if isinstance(mechanism, ScoredMechanism):
            return cls(delta, (Rows(mechanism, queries, answers, few),))
        if not isinstance(mechanism, ComposedMechanism):
            raise LedgerError(
                f"pate cannot compute the cost of {mechanism.name}; its class must be derived from "
                "ScoredMechanism or ComposedMechanism"
            )
        found = mechanism.privacy(touched(few, queries, answers)[0], delta)
        return cls(pairs=(Pair(round_up(found.epsilon), found.delta, found.method),))

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            max(self.delta, other.delta),
            self.rows + other.rows,
            self.draws + other.draws,
            self.stated + other.stated,
            self.pairs + other.pairs,
        )

    @property
    def labels(self) -> Cost:
        """Return the part of this cost that the labels cause.

        The result contains no draw of a sanitized ε, and no cost that the owner of another
        mechanism states.
        """
        return replace(self, draws=(), stated=()) if self.draws or self.stated else self

    def moving(self, votes: int) -> Cost:
        """Return the cost for a record that can change `votes` votes of a query.

        A cost of which only one (ε, δ) is known is not changed.
        """
        rows = tuple(replace(each, mechanism=each.mechanism.moving(votes)) for each in self.rows)
        return replace(self, rows=rows)

    @cached_property
    def own(self) -> Figure:
        """Return the (ε, δ) of a single run by itself.

        If the run has a pair, the result is this pair; for a tested target, its ε is the cost if
        the labels pass the release test. Otherwise the ε of the curves is rounded up to four
        decimals, and δ includes the δ of every (ε, δ) that the owner of another mechanism states.

        Raises:
            ParameterError: δ is 1 or more.
        """
        if self.pairs:
            (pair,) = self.pairs
            return pair
        added = [part.pair[1] for part in self.stated if part.pair[1] > 0.0]
        delta = _delta_sum([self.delta, *added]) if added else self.delta
        return replace(self.of_curves, epsilon=round_up(self.of_curves.epsilon), delta=delta)

    # --- curves ----------------------------------------------------------------------------------

    @cached_property
    def of_curves(self) -> Figure:
        """Return the (ε, δ) of the curves alone by the route with the least ε, nats, unrounded."""
        curve, delta = _Curve(self), self.delta
        flat = math.fsum(part.pair[0] for part in self.stated)
        place = curve.best_place(delta)
        epsilon = max(curve.epsilon(place, delta), 0.0)
        routes = [Figure(epsilon, delta, "renyi", float(curve.orders[place]))]
        if not self.draws and math.isfinite(flat):
            mu = self.mu
            gaussian = gaussian_epsilon(mu=mu, delta=delta) if mu > 0.0 else 0.0
            routes.insert(0 if mu == 0.0 else 1, Figure(flat + gaussian, delta, "gaussian-dp"))
            pure = self._pure_epsilon() if mu > 0.0 else None
            routes += [] if pure is None else [Figure(flat + pure, delta, "pure-dp")]
        return min(routes, key=lambda route: route.epsilon)

    @property
    def mu(self) -> float:
        """Return μ of Gaussian DP for `rows`.

        μ² is the sum of the squared μ's of all elements of `rows`.
        """
        return float(np.sqrt(sum(rows.mu_squared for rows in self.rows)))

    def _pure_epsilon(self) -> float | None:
        """Return the ε of all answers by `pure-dp`; None if a mechanism in `rows` is not pure-DP.

        Each element of `rows` has an ε0 for its answers. The result is the smaller of two upper
        bounds on ε: the sum of the ε0's of all answers, and the optimal composition with the
        largest ε0 for every answer.
        """
        answers: list[tuple[int, float]] = []
        for rows in self.rows:
            if rows.mechanism.pure_epsilon is None:
                return None
            answers.append((rows.touched[1], rows.mechanism.pure_epsilon))
        count, largest = sum(number for number, _ in answers), max(loss for _, loss in answers)
        together = optimal_composition(count, epsilon=largest, delta=0.0, total_delta=self.delta)
        return min(together.epsilon, sum(number * loss for number, loss in answers))

    def rdp_at(self, order: float) -> float:
        """Return the RDP cost at one order, nats.

        Each pair (ε, δ) counts as randomised response at ε; for a tested target, ε is the cost of
        labels that pass the release test. The result is infinite if a draw of a sanitized ε, or a
        curve that the owner of another mechanism states, has no finite cost at this order.
        """
        at = np.array([order])
        found = sum(float(rows.rdp(at)[0]) for rows in self.rows)
        found += sum(draw.rdp(order) if order < draw.highest else math.inf for draw in self.draws)
        found += float(stated_rdp(self.stated, at)[0])
        return found + sum(
            float(randomised_response_rdp(epsilon=pair.epsilon, orders=at)[0])
            for pair in self.pairs
            if pair.epsilon
        )

    @property
    def least_delta(self) -> float:
        """Return the smallest δ at which the curves of this cost may be converted to an ε.

        Floating-point noise differs slightly from ideal noise, and δ must cover the difference. A
        larger ε needs a larger δ. If `delta` is 0, or is large enough for every ε, the result is
        the smallest δ that is large enough for every ε. For any other `delta`, the ε of the curves
        is computed, which takes time, and the result is a δ that is large enough for this ε. If the
        owner of another mechanism states a curve, the result includes the smallest δ that the owner
        states for the curve.
        """

        def at(epsilon: float) -> float:
            mine = sum(
                rows.mechanism.smallest_delta(rows.touched[0], epsilon=epsilon)
                for rows in self.rows
            )
            return mine + math.fsum(part.least_delta for part in self.stated)

        least = at(LARGEST_EPSILON)
        if not 0.0 < self.delta < least:
            return least
        return at(1.0 + replace(self, draws=(), pairs=()).of_curves.epsilon)

    # --- composition -----------------------------------------------------------------------------

    def together(self) -> Figure:
        """Return the total (ε, δ) of runs that were chosen beforehand; ε has twelve digits.

        The result is valid only if neither the choice of runs nor their settings depended on
        earlier results. δ is the largest δ of the curves plus the δ's of all pairs; the δ of the
        curves is at least `least_delta`.

        If some runs have curves and other runs have tested targets, the total ε is the smaller of
        two upper bounds on ε. The first upper bound on ε is the optimal composition of all curves
        and pairs; each tested target counts with the ε of labels that pass the release test. The
        second upper bound on ε is the optimal composition of everything except the tested targets,
        plus the ε that each tested target spent (`Pair.counted`).

        Raises:
            LedgerError: no run states the δ at which the curves are converted.
            ParameterError: δ is 1 or more.
        """
        added = [pair.delta for pair in self.pairs]
        if not (self.rows or self.draws or self.stated):
            return self._of_pairs(added)
        delta = max(self.delta, self.least_delta)
        if delta <= 0.0:
            raise LedgerError(
                "no run states a delta, so the RDP curves of the runs cannot be converted to an "
                "epsilon; give at least one run with a delta above 0"
            )
        curves, total = replace(self, delta=delta, pairs=()), _delta_sum([delta, *added])
        if not self.pairs:
            found = curves.of_curves
            return Figure(_twelve(found.epsilon), total, found.method, found.order)
        around = curves.around()
        epsilon = min(self._in_full(around, delta), self._as_it_came(around, delta))
        return Figure(_twelve(epsilon), total, "joint")

    def around(self) -> Curves:
        """Return the curves at the best order for `delta`, and at some orders around it.

        A composition of curves with pairs also converts the curves at δ's other than `delta`. At
        another δ, one of the orders around the best order may give a smaller ε.
        """
        curve = _Curve(self)
        centre = curve.best_place(self.delta)
        curve.charge([centre + step for step in _AROUND])
        at = np.array(sorted(curve.charged))
        rdp = np.array([curve.charged[place] for place in at.tolist()]) + curve.beside[at]
        gaussian = not self.draws and not self.stated and self.mu > 0.0
        return Curves(curve.orders[at], rdp, mu=self.mu if gaussian else None)

    def _of_pairs(self, added: Sequence[float]) -> Figure:
        """Return the total (ε, δ) of all pairs: their sum, or their optimal composition.

        The optimal composition is returned if its ε is clearly smaller than the ε of the sum. For
        this comparison of ε's, every release test counts as passed. The δ of the optimal
        composition is larger than the δ of the sum, by the largest δ of a pair. Outcomes of release
        tests must not decide which δ is returned: a δ that depends on an outcome is not valid.
        """
        full = float(decimal_sum(pair.epsilon for pair in self.pairs))
        basic, slack = float(decimal_sum(pair.counted for pair in self.pairs)), max(added)
        if slack > 0.0:
            optimal = self._in_full(None, slack)
            if optimal < _WORTH_A_DELTA * full:
                epsilon = min(_twelve(min(optimal, self._as_it_came(None, slack))), basic)
                return Figure(epsilon, _delta_sum([slack, *added]), "optimal")
        return Figure(basic, _delta_sum(added), "basic")

    def _in_full(self, curves: Curves | None, delta: float) -> float:
        """Return the ε of the optimal composition of curves and all pairs.

        A tested target counts with the ε of labels that pass its release test.
        """
        return epsilon_together(
            np.array([pair.epsilon for pair in self.pairs]), curves, delta=delta
        )

    def _as_it_came(self, curves: Curves | None, delta: float) -> float:
        """Return the ε that tested targets spent, plus the ε of everything else.

        A tested target spent the ε of labels that pass if its release test passed, and the ε of a
        failed test if it failed. Curves, and pairs that are not tested targets, are composed in the
        optimal way.
        """
        settled = [pair.epsilon for pair in self.pairs if pair.came is None]
        rest = 0.0
        if settled or curves is not None:
            rest = epsilon_together(np.array(settled), curves, delta=delta)
        ended = decimal_sum(pair.counted for pair in self.pairs if pair.came is not None)
        return rest + float(ended)


class _Curve:
    """RDP curve of a cost, computed at few orders, because each order takes time.

    Every order gives a valid ε. The cost of labels grows about linearly with the order,
    so that the best order can be guessed from the cost at one order. A poor guess of the best order
    makes ε larger than necessary, and has no other effect.
    """

    def __init__(self, cost: Cost) -> None:
        self._rows = cost.rows
        ends = [*(part.highest for part in cost.stated), *(draw.highest for draw in cost.draws)]
        highest = min(ends, default=math.inf)
        orders = _ORDERS[highest * (1.0 - 1e-9) > _ORDERS]
        if orders.size == 0:  # A very large β only allows orders slightly above 1.
            orders = np.array([(1.0 + highest) / 2.0])
        drawn = np.array([sum(draw.rdp(order) for draw in cost.draws) for order in orders.tolist()])
        self.orders, self.beside = orders, drawn + stated_rdp(cost.stated, orders)
        self.charged: dict[int, float] = {}

    def charge(self, places: Iterable[int]) -> None:
        """Compute the cost of the queries at some orders, given by their indices in `orders`.

        One call for several orders is faster than several calls.
        """
        new = [at for at in places if 0 <= at < self.orders.size and at not in self.charged]
        if new:
            rdp = sum((rows.rdp(self.orders[new]) for rows in self._rows), np.zeros(len(new)))
            self.charged.update(zip(new, rdp.tolist(), strict=True))

    def epsilon(self, place: int, delta: float) -> float:
        """Return the ε from one order whose cost is known, nats; below 0 if δ is large."""
        conversion = conversion_cost(self.orders[place : place + 1], delta=delta)
        return float((self.charged[place] + self.beside[place] + conversion)[0])

    def best_place(self, delta: float) -> int:
        """Return the index of the best order, by a guess and then by steps to smaller ε."""
        conversion = conversion_cost(self.orders, delta=delta)

        def guess(slope: float) -> int:
            return int(np.argmin(self.orders * slope + self.beside + conversion))

        place = guess(
            sum(
                rows.mechanism.usual_slope(queries=rows.touched[0], answers=rows.touched[1])
                for rows in self._rows
            )
        )
        while True:
            near = [at for at in (place - 1, place, place + 1) if 0 <= at < self.orders.size]
            self.charge(near)
            best = min(near, key=lambda at: self.charged[at] + self.beside[at] + conversion[at])
            if best == place:
                return place
            again = guess(self.charged[place] / float(self.orders[place]))
            place = best if again in self.charged else again


def decimal_sum(numbers: Iterable[float]) -> Decimal:
    """Return the sum of numbers by their decimal digits, so that the sum of .1 and .2 is .3."""
    return sum((Decimal(repr(number)) for number in numbers), Decimal(0))


def _delta_sum(deltas: Iterable[float]) -> float:
    """Return the sum of δ's in six digits, rounded up; raise ParameterError if it is 1 or more."""
    delta = significant_up(decimal_sum(deltas))
    if delta >= 1.0:
        raise ParameterError(
            f"all deltas add up to {delta:g}, and a delta of 1 or more protects nobody; compose "
            "fewer costs, or costs with smaller deltas"
        )
    return delta


def _twelve(epsilon: float) -> float:
    """Return an ε in twelve digits, rounded up."""
    return significant_up(epsilon, digits=DIGITS)


# --- in texts -----------------------------------------------------------------------------------


def shown(value: float | None) -> str:
    """Return a number in at most six significant digits, rounded up; None becomes `–`."""
    if value is None:
        return "–"
    return f"{significant_up(Decimal(repr(float(value)))):g}" if value < math.inf else "unbounded"


def nats(epsilon: float) -> str:
    """Return a finite ε with four decimals, rounded up."""
    return f"{round_up(epsilon):.4f}"


def pair(epsilon: float, delta: float) -> str:
    """Return an (ε, δ) as summaries and messages write it: epsilon … at delta …."""
    return f"epsilon {nats(epsilon)} at delta {shown(delta)}"
