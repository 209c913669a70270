"""What the queries of a vote model cost within each distance, and how likely a run of them passes.

The release test adds up the costs of a run's rows at a few orders λ and at each distance d, which
gives the profile u_d, and releases with a probability p(u) (`accounting.tested_budget`). A forecast
needs the mean of p(u) over the files that a model may give.

*Distribution of the profile.* The rows of a made-up run are independent draws from the rows of an
ensemble by their weights. Costs of a row at different λ and d rise and fall together. So the
profile of n rows is about n·μ + (R − n·μ_r)·c/v: R the sum of the cost r at a middle order and
distance, μ_r and v its mean and variance over the rows, c the covariance of all costs with it. The
law of R is the n-fold convolution of the law of r, found by Fourier transform, and the mean of p
over it is nearly the forecast. What this leaves out is the mean of p(u) − p(its approximation), and
some made-up runs tell it well, since both nearly agree in each of them. A search cannot wait for
that, and takes three values of R. The rows of a file are not drawn: its profile is a plain sum.

*Costs.* `quick_costs` takes the approximation of `pair_costs`, times a correction that is known
beforehand; it serves searches. `exact_costs` takes the accountant's own costs, the very functions
that a run calls: of every distinct histogram where that is quick. Where it is not (the conditional
bound with three classes or more) it prices the histograms that cost most in total and some others,
and regresses the ratio of exact and approximate cost on the pair of counts for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import ConditionalStates, settled_bound, states_for
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.pair_costs import pair_costs, to_every_distance
from pate_cli.planning.tuning import Tuning
from pate_cli.planning.vote_model import PUBLIC_SEED, VoteModel

# Where each histogram takes long: how many are priced, and how many for a rough price.
_FEW_STATES, _ROUGH, _MOST_CELLS = 120, 40, 120
# Numbers of distances that are priced, until those beyond them change the forecast by less. Where
# votes are few, 12 are a large part of them; where they are many, more take long and tell little.
_PRICED_DISTANCES, _FARTHEST_PRICED, _DECIDES = (12, 24), 48, 0.015
_FEW_TEACHERS, _MANY_TEACHERS = 40, 120
# Then a rough price looks at so few, and at more histograms instead.
_NEAREST = 6
# The guess beyond them may be this much too large or too small, times the share of votes between.
_WRONG_BY = (-0.5, 0.75)
_EVERY = np.arange(DISTANCES, dtype=np.float64)
# The accountant's cost is about this much above the quick one under the conditional bound of a test
# and an argmax: at distance 0, and by the share of votes that move, from and up to such a share.
_NEAR, _FARTHER, _FROM_SHARE, _TO_SHARE = 1.01, 0.75, 0.1, 0.6
# What a query costs at most is so far above the largest cost of a pair: with two classes; with
# more, and with few teachers.
_WORST_OF_TWO, _WORST_OF_MORE, _WORST_OF_FEW = 1.1, 1.22, 10.0
# Under the two-tail bound, where a record moves one vote of a query and where it moves several.
_TWO_TAIL, _TWO_TAIL_SHARED = 1.45, 2.2
# The distance whose cost stands for the others in the one factor.
_REFERENCE_DISTANCE = 4.0
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(3)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()
# Of the sum of costs: values at which p is found, and points of the lattice of its law.
_SUMS, _LATTICE = 97, 2048
# Runs that are made up, and so many merged rows that they are drawn from.
_RUNS, _MERGED = 100, 96
# Rows of made-up votes, of more than which some are merged.
_MOST_ROWS = 3000
# Histograms that are priced where a mechanism has no approximation and each takes its time.
_MOST_STATES = 400
# With two classes the time of exact costs grows with the square of the votes, and up to so many
# it is short; beyond them a grid of so many cells is within .1% of them.
_FEW_VOTES, _MOST_CELLS_OF_TWO = 250, 240


@dataclass(frozen=True, eq=False)
class QueryCosts:
    """Costs of each row of a vote model by order and distance. SECRET if its votes are.

    Attributes:
        orders: λ, [orders].
        distances: ascending from 0; costs between them are on straight lines, [distances].
        costs: [orders, distances, rows], nats.
        worst: what a row costs at most whatever its votes, [orders], nats.
        weights: how likely a run draws each row in each ensemble, [ensembles, rows]; None where the
            rows are the run's own, in their order.
        available: of a file, how many rows these stand for.
    """

    orders: Floats
    distances: Floats
    costs: Floats
    worst: Floats
    weights: Floats | None
    available: int

    def pass_probability(
        self, target: TargetPlan, rows: Ints, *, quick: bool = False, ceiling: Floats | None = None
    ) -> Floats:
        """Probability that runs of so many rows pass the release test, [ensembles, rows].

        Args:
            target: ε, δ and the price of failing.
            rows: numbers of rows, [rows].
            quick: by the one factor instead of made-up runs, for a search.
            ceiling: what so many rows cost at most whatever their votes, [rows, orders], nats, if
                it is less than that many times `worst`, as under a cap on answers.
        """
        most = np.outer(rows, self.worst) if ceiling is None else ceiling

        def chances(profiles: Floats) -> Floats:
            every = np.maximum(profiles @ to_every_distance(self.distances), 0.0)
            return target.chances(np.minimum(every, most[..., None]), self.orders)

        if self.weights is None:
            return chances(self._of_first(rows)[0])
        if quick:
            profiles = self._by_factor(rows, self.weights)
            return np.asarray(np.tensordot(_NODE_WEIGHTS, chances(profiles), 1))
        return self._over_sums(rows, self.weights, chances)

    def pass_probabilities(self, target: TargetPlan, rows: Ints, epsilons: Floats) -> Floats:
        """About the probabilities that rows of a file pass under other targets, [targets, rows].

        Args:
            target: δ and the price of failing, which is taken to be that of all of them.
            rows: numbers of rows, [rows].
            epsilons: the targets, not below the price of failing, [targets], nats.
        """
        most = np.outer(rows, self.worst)[..., None]
        profile = self._of_first(rows)[0, 0] @ to_every_distance(self.distances)
        room = (epsilons.max() - epsilons)[:, None, None, None]
        largest = TargetPlan(float(epsilons.max()), target.delta, target.refusal_epsilon)
        return largest.chances(np.minimum(profile, most) + room, self.orders)

    def surely_passes(self, target: TargetPlan, rows: Ints) -> NDArray[np.bool_]:
        """Whether so many rows cost less than the target whatever the votes, about, [rows]."""
        room = target.epsilon - conversion_cost(self.orders, delta=target.delta)
        return np.asarray((rows[:, None] * self.worst <= room).any(axis=1))

    @property
    def _reference(self) -> tuple[int, int]:
        """The middle order and distance whose cost stands for the others, by place."""
        near = int(np.searchsorted(self.distances, _REFERENCE_DISTANCE))
        return self.orders.size // 2, min(near, self.distances.size - 1)

    def _over_sums(
        self, rows: Ints, weights: Floats, chances: Callable[[Floats], Floats]
    ) -> Floats:
        """Mean of p over what so many rows may cost, [ensembles, rows]."""
        r, number = self.costs[self._reference], rows.astype(np.float64)
        mean = weights @ r
        centred = r - mean[:, None]
        variance = np.maximum((weights * centred**2).sum(axis=1), 1e-24)
        slope = np.moveaxis(self.costs @ (weights * centred / variance[:, None]).T, -1, 0)
        # R − n·μ_r at nodes that reach as far as it does, [nodes, ensembles, rows].
        width = 16.0 * np.sqrt(np.outer(variance, number)) + 2.0 * np.ptp(r)
        nodes = np.linspace(-0.5, 0.5, _SUMS)[:, None, None] * width
        means = np.moveaxis(self.costs @ weights.T, -1, 0)
        profile = number[:, None, None] * means[:, None] + nodes[..., None, None] * slope[:, None]
        low, high = (number[:, None, None] * end(self.costs, axis=-1) for end in (np.min, np.max))
        passes = chances(np.clip(profile, low, high))
        runs = self._made_up_runs(rows, weights)
        exact, sums = chances(runs), runs[..., *self._reference] - np.outer(mean, number)
        found = np.empty((len(weights), rows.size))
        for at in np.ndindex(*found.shape):
            law = _law_of_sum(centred[at[0]], weights[at[0]], int(rows[at[1]]), float(width[at]))
            lattice = np.linspace(-0.5, 0.5, law.size, endpoint=False) * width[at]
            about = np.interp(lattice, nodes[:, *at], passes[:, *at])
            left_out = exact[:, *at] - np.interp(sums[:, *at], nodes[:, *at], passes[:, *at])
            found[at] = law @ about + left_out.mean()
        return np.clip(found, 0.0, 1.0)

    def _made_up_runs(self, rows: Ints, weights: Floats) -> Floats:
        """Profiles [runs, ensembles, rows, orders, distances] of runs that draw their rows."""
        random = np.random.default_rng(PUBLIC_SEED)
        order = np.argsort(self.costs[self._reference])
        reference, costs = self.costs[self._reference][order], self.costs[..., order]
        found = np.empty((_RUNS, len(weights), rows.size, *self.costs.shape[:2]))
        for place, weight in enumerate(weights[:, order]):
            # Merged rows are alike in weight and in their share of the mean cost, half and half.
            share = weight / weight.sum() + weight * reference / (weight @ reference + 1e-300)
            group = np.minimum(np.cumsum(share) * (_MERGED / 2.0), _MERGED - 1).astype(np.int64)
            starts = np.flatnonzero(np.diff(group, prepend=-1))
            merged = np.add.reduceat(weight, starts)
            means = np.add.reduceat(costs * weight, starts, axis=-1) / np.maximum(merged, 1e-300)
            for at, number in enumerate(rows.tolist()):
                drawn = random.multinomial(number, merged / merged.sum(), size=_RUNS)
                found[:, place, at] = np.tensordot(drawn, means, axes=(1, 2))
        return found

    def _by_factor(self, rows: Ints, weights: Floats) -> Floats:
        """Profiles [nodes, ensembles, rows, orders, distances] along one random factor."""
        mean = np.moveaxis(self.costs @ weights.T, -1, 0)[:, None]
        reference = self.costs[self._reference]
        reference = reference / max(float(reference.max()), 1e-100)
        centred = reference - (weights @ reference)[:, None]
        sd = np.sqrt(np.maximum((weights * centred**2).sum(axis=1), 1e-20))
        skew = (weights * centred**3).sum(axis=1) / sd**3
        along = np.moveaxis(self.costs @ (weights * centred / sd[:, None]).T, -1, 0)
        nodes, number = _NODES[:, None, None], rows.astype(np.float64)
        factor = nodes + (nodes**2 - 1.0) * skew[:, None] / (6.0 * np.sqrt(number))
        number = number[:, None, None]
        found = number * mean + (factor * np.sqrt(rows))[..., None, None] * along[:, None]
        low, high = self.costs.min(axis=-1), self.costs.max(axis=-1)
        return np.clip(found, number * low, number * high)

    def _of_first(self, rows: Ints) -> Floats:
        """Profiles [1, 1, rows, orders, distances] of the first rows of a file."""
        each = self.costs.shape[-1]
        seen = np.clip(np.round(rows * (each / self.available)), 1, each).astype(np.int64)
        total = np.cumsum(self.costs, axis=-1)[..., seen - 1] * (rows / seen)
        return np.moveaxis(total, 2, 0)[None, None]


def _law_of_sum(values: Floats, weights: Floats, number: int, width: float) -> Floats:
    """Probabilities of the sum of so many draws of values with mean 0, on a lattice around 0.

    The lattice spans `width`. A value between two of its points counts for both, so that the mean
    stays.
    """
    step = width / _LATTICE
    left = np.floor(values / step)
    share = values / step - left
    place = left.astype(np.int64) % _LATTICE
    law = np.bincount(place, weights * (1.0 - share), minlength=_LATTICE)
    law = law + np.bincount((place + 1) % _LATTICE, weights * share, minlength=_LATTICE)
    found = np.fft.irfft(np.fft.rfft(law / law.sum()) ** number, _LATTICE)
    found = np.maximum(np.fft.fftshift(found), 0.0)
    return np.asarray(found / found.sum())


def quick_costs(
    votes: VoteModel,
    settings: Sequence[Tuning],
    target: TargetPlan,
    *,
    bound: Bound,
    available: int = 0,
    above: Mapping[bool, Floats] | None = None,
) -> list[QueryCosts]:
    """Approximate costs of several settings at once, for a search.

    Args:
        votes: the rows.
        settings: all with the prior weight of `votes`.
        target: its orders decide which costs matter.
        bound: how a run bounds what votes cost.
        available: of a file, how many rows there are.
        above: how far costs are above the quick ones, by whether there is a test, [DISTANCES];
            a guess where that is not known.
    """
    orders, known = target.decisive_orders, above or {}
    costs, distances, largest = pair_costs(votes, settings, orders)
    more = _WORST_OF_MORE + _WORST_OF_FEW / votes.most_votes
    largest = largest * (_WORST_OF_TWO if votes.classes == 2 else more)

    def corrected(costs: Floats, worst: Floats, setting: Tuning) -> tuple[Floats, Floats]:
        """Distances, and costs at them as far above the quick ones as the accountant's."""
        tested, slow = setting.threshold is not None, votes.mechanism(setting).slow_states
        factor = _above(votes, setting, distances, bound)
        if tested in known:
            priced = slice(_FARTHEST_PRICED if slow else DISTANCES)
            factor = np.interp(distances, _EVERY[priced], known[tested][priced])
        found = costs * factor[:, None]
        # The two-tail bound of one query may be above what any votes cost; only their sum is not.
        if bound is Bound.TWO_TAIL:
            return distances, found
        ceiling = worst[:, None, None]
        if not slow:
            return distances, np.minimum(found, ceiling)
        # A run looks no further than this, and charges the worst case from there on.
        near, last = distances < _FARTHEST_PRICED - 1, _EVERY[_FARTHEST_PRICED - 1 :][:2]
        between = np.einsum("odr,d->or", found, to_every_distance(distances)[:, int(last[0])])
        far = np.stack([between, np.broadcast_to(worst[:, None], between.shape)], axis=1)
        found = np.concatenate([found[:, near], far], axis=1)
        return np.append(distances[near], last), np.minimum(found, ceiling)

    return [
        QueryCosts(
            orders, *corrected(each, worst, setting), worst, votes.weights, available or votes.rows
        )
        for each, worst, setting in zip(costs, largest, settings, strict=True)
    ]


def _above(votes: VoteModel, settings: Tuning, distances: Floats, bound: Bound) -> Floats:
    """How far the accountant's cost is above the quick one by distance: a guess, [distances]."""
    if bound is Bound.TWO_TAIL:
        shared = votes.teachers_per_record > 1
        return np.full(distances.size, _TWO_TAIL_SHARED if shared else _TWO_TAIL)
    if votes.classes == 2 or settings.threshold is None:
        return np.ones(distances.size)
    share = np.clip(distances / votes.most_votes, _FROM_SHARE, _TO_SHARE) - _FROM_SHARE
    return _NEAR + _FARTHER * share


def measured_above(votes: VoteModel, settings: Tuning, costs: QueryCosts) -> Floats:
    """How far the accountant's cost is above the quick one at some settings, [DISTANCES]."""
    middle = costs.orders.size // 2
    quick, distances, _ = pair_costs(votes, [settings], costs.orders[middle : middle + 1])
    weights = votes.row_weights.mean(axis=0)
    found = np.ones(costs.costs.shape[-1]) / votes.rows if costs.weights is None else costs.weights
    total = costs.costs[middle] @ np.atleast_2d(found).mean(axis=0)
    about = (quick[0, 0] @ weights) @ to_every_distance(distances)
    return np.asarray(total / np.maximum(about, 1e-300))


def exact_costs(
    votes: VoteModel,
    mechanism: ScoredMechanism,
    target: TargetPlan,
    *,
    bound: Bound,
    rows: int,
    available: int = 0,
    rough: bool = False,
) -> QueryCosts:
    """The accountant's costs, at the orders and by the bound of a run.

    Args:
        votes: the rows, with the prior weight of the mechanism.
        mechanism: of the run.
        target: ε, δ and the price of failing.
        bound: as a run is asked for.
        rows: about how many rows a run asks; the bound `auto` hangs on it.
        available: of a file, how many rows there are.
        rough: whether fewer histograms and distances will do, where they take long.
    """
    bound = settled_bound(bound, mechanism, rows=rows, orders=target.orders)
    states = states_for(bound, mechanism, highest_order=float(target.orders[-1]))
    orders = states.worth(target.orders)
    worst = mechanism.worst_rdp(queries=1, answers=1, orders=orders)
    conditional, settings = isinstance(states, ConditionalStates), Tuning.of(mechanism)
    if conditional and settings is not None:
        votes = _merged(votes, settings)
    dear = votes.classes > 2 or (not votes.is_file and votes.most_votes > _FEW_VOTES)
    if conditional and dear and settings is not None:
        costs = _mostly_quick(votes, settings, target, orders, worst, rows, rough)
        return QueryCosts(orders, _EVERY, costs, worst, votes.weights, available or votes.rows)
    if conditional and settings is None and not votes.is_file:
        votes = votes.thinned(_MOST_STATES)
    bound_to_rows = mechanism.for_reference(votes.counts, PUBLIC_SEED)
    found, place = np.unique(states.of(bound_to_rows, votes.counts), axis=0, return_inverse=True)
    place, weights = place.reshape(-1), votes.weights
    costs = np.stack([states.costs(order, found) for order in orders.tolist()])
    if weights is None:
        costs = costs[..., place]
    else:
        weights = np.stack([np.bincount(place, each, minlength=len(found)) for each in weights])
    return QueryCosts(orders, _EVERY, costs, worst, weights, available or votes.rows)


def _merged(votes: VoteModel, settings: Tuning) -> VoteModel:
    """Made-up votes with one row for all that cost the same, or about the same if there are many.

    These have their pairs of counts in the same cell, and the row nearest to their mean stands for
    them, so that costs change by no more than their curvature.
    """
    if votes.weights is None:
        return votes
    pair = np.stack(_pair(votes, settings), axis=1)
    _, place = np.unique(
        votes.mechanism(settings).vote_states(votes.counts), axis=0, return_inverse=True
    )
    if place.max() >= _MOST_ROWS:
        size = _MOST_CELLS / votes.most_votes
        cells = np.round(pair * size) @ np.array([2.0 * _MOST_CELLS, 1.0])
        _, place = np.unique(cells, return_inverse=True)
    place, total = place.reshape(-1), votes.weights.sum(axis=0)
    mass = np.bincount(place, total)
    mean = np.stack([np.bincount(place, total * each) / mass for each in pair.T], axis=1)
    order = np.lexsort((np.abs(pair - mean[place]).sum(axis=1), place))
    nearest = order[np.flatnonzero(np.diff(place[order], prepend=-1))]
    weights = np.stack([np.bincount(place, each).astype(np.float64) for each in votes.weights])
    return replace(votes.some(nearest), weights=weights)


def _mostly_quick(
    votes: VoteModel,
    settings: Tuning,
    target: TargetPlan,
    orders: Floats,
    worst: Floats,
    rows: int,
    rough: bool,
) -> Floats:
    """Costs [orders, DISTANCES, rows] where pricing takes long: quick ones, times a ratio.

    The ratio of exact and quick costs is found for the first distances; and if there are many
    orders, at a few of them, for it changes little in between. Time grows with the square of the
    distances. So beyond them the ratio is guessed, and more distances are priced, the farthest at
    the middle order alone, only while the guess still decides about the forecast.
    """
    mechanism, middle = votes.mechanism(settings), orders.size // 2
    most = _MOST_CELLS if votes.classes > 2 else _MOST_CELLS_OF_TWO
    cells = min(2 * votes.most_votes, most)
    quick, known, _ = pair_costs(votes, [settings], orders, cells=cells)
    quick = np.maximum(np.einsum("odr,dk->okr", quick[0], to_every_distance(known)), 1e-12)
    if votes.classes == 2:  # there a histogram is its pair of counts
        return np.minimum(quick, worst[:, None, None])
    many = votes.most_votes > _MANY_TEACHERS
    ratios = _Ratios(votes, settings, quick, _ROUGH if rough and not many else _FEW_STATES)
    growth = _above(votes, settings, _EVERY, Bound.CONDITIONAL)

    def costs(above: Floats, wrong_by: float) -> Floats:
        near = above.shape[1]
        share = (_EVERY[near:] - near + 1.0) / votes.most_votes
        guess = growth[near:] / growth[near - 1] * np.maximum(1.0 + wrong_by * share, 0.5)
        beyond = above[:, -1:] * guess[:, None]
        found = quick * np.concatenate([above, beyond], axis=1)
        if mechanism.slow_states:  # a run looks no further, either
            found[:, _FARTHEST_PRICED:] = worst[:, None, None]
        return np.minimum(np.maximum.accumulate(found, axis=1), worst[:, None, None])

    def chances(costs: Floats) -> Floats:
        shown = QueryCosts(orders, _EVERY, costs, worst, votes.weights, votes.rows)
        return shown.pass_probability(target, np.array([rows]), quick=True)

    few = sorted({0, middle, orders.size - 1} if not rough else {middle})
    share = np.stack([np.interp(np.arange(orders.size), few, each) for each in np.eye(len(few))])
    more_at_once = (rough and votes.is_file) or votes.most_votes <= _FEW_TEACHERS
    priced_distances = _PRICED_DISTANCES[1 if more_at_once else 0 :]
    for near in (_NEAREST,) if rough and many else priced_distances:
        priced = np.stack([ratios.at(place, float(orders[place]), near) for place in few])
        above = np.tensordot(share.T, priced, 1)
        if rough or many:
            return costs(above, 0.0)
        low, high = (chances(costs(above, wrong_by)) for wrong_by in _WRONG_BY)
        if np.abs(low - high).max() < _DECIDES:
            return costs(above, 0.0)
    farther = ratios.at(middle, float(orders[middle]), _FARTHEST_PRICED)[near - 1 :]
    beyond = above[:, -1:] * farther[1:] / farther[0]
    return costs(np.concatenate([above, beyond], axis=1), 0.0)


class _Ratios:
    """How far the accountant's costs are above quick ones, from those of a few histograms."""

    def __init__(self, votes: VoteModel, settings: Tuning, quick: Floats, number: int) -> None:
        """Choose the histograms to price: the weightiest in cost, and some of the others."""
        self._mechanism, self._quick = votes.mechanism(settings), quick
        self._states = self._mechanism.vote_states(votes.counts)
        _, first, place = np.unique(self._states, axis=0, return_index=True, return_inverse=True)
        self._place, self._first = place.reshape(-1), first
        times = np.bincount(self._place, votes.row_weights.mean(axis=0), minlength=first.size)
        cost = times * quick[len(quick) // 2, 4, first]
        self._chosen = _worth_pricing(cost, number)
        self._times, self._features = times[self._chosen], _features(votes, settings)

    def at(self, place: int, order: float, near: int) -> Floats:
        """Ratios [near, rows] at an order, which has this place among all, by a regression."""
        rows = self._first[self._chosen]
        exact = self._mechanism.state_costs(
            self._states[rows], order=order, distances=np.arange(near)
        )
        known = self._quick[place, :near][:, rows]
        above = np.empty((near, self._first.size))
        if rows.size < self._first.size:
            features = self._features[self._first]
            above = _fitted(exact / known, known * self._times, self._features[rows], features)
        above[:, self._chosen] = exact / known
        return above[:, self._place]


def _worth_pricing(weights: Floats, number: int) -> Ints:
    """The places of the weightiest histograms, and of some of the others in equal steps."""
    if weights.size <= number:
        return np.arange(weights.size)
    order = np.argsort(-weights)
    most = 2 * number // 3
    others = np.linspace(most, weights.size - 1, number - most).round().astype(np.int64)
    return np.sort(np.concatenate([order[:most], order[others]]))


def _fitted(ratio: Floats, cost: Floats, known: Floats, features: Floats) -> Floats:
    """Ratios [distances, histograms] by a regression weighted with what the known ones cost."""
    found = np.empty((len(ratio), len(features)))
    for distance, each in enumerate(ratio):
        weight = np.sqrt(cost[distance] / cost[distance].max())[:, None]
        fitted, *_ = np.linalg.lstsq(known * weight, each * weight[:, 0], rcond=1e-6)
        found[distance] = np.clip(features @ fitted, each.min(), each.max())
    return found


def _pair(votes: VoteModel, settings: Tuning) -> tuple[Floats, Floats]:
    """The largest count of each row, and one that stands for all others, [rows] each."""
    x, second = votes.largest_two
    return x, 0.5 * (second + votes.rival(settings.sigma2))


def _features(votes: VoteModel, settings: Tuning) -> Floats:
    """The pair of counts of each row up to squares, [rows, 6]."""
    x, y = (count / votes.most_votes for count in _pair(votes, settings))
    x = x - 0.5
    return np.column_stack([np.ones(x.size), x, y, x * x, x * y, y * y])
