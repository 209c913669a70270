"""What the queries of a vote model cost within each distance, and how likely a run of them passes.

The release test adds up the costs of a run's rows at a few orders λ and at each distance d, which
gives the profile u_d, and releases with a probability p(u) (`accounting.tested_budget`). A forecast
needs the mean of p(u) over the files that a model may give.

*Distribution of the profile.* The rows of a run are independent draws, so a run is made up by
drawing rows from an ensemble and adding up their costs. The mean of p over 200 such runs is the
forecast. A search cannot wait for that, and takes one random factor f in place of runs: costs of a
row at different λ and d rise and fall together, so the profile of n rows is about n·μ + √n·c·f, c
the covariance with the cost at a middle order and distance, f standard normal with a correction for
skewness (Cornish and Fisher). The rows of a file are not drawn: its profile is a plain sum.

*Costs.* `quick_costs` takes the approximation of `pair_costs`, times a correction that is known
beforehand; it serves searches. `exact_costs` takes the accountant's own costs, the very functions
that a run calls: of every distinct histogram where that is quick. Where it is not (the conditional
bound with three classes or more) it prices the histograms that cost most in total and some others,
and regresses the ratio of exact and approximate cost on the pair of counts for the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.words import Bound
from pate_cli.disclosure.profile import ConditionalStates, settled_bound, states_for
from pate_cli.disclosure.target import TargetPlan
from pate_cli.planning.pair_costs import pair_costs, to_every_distance
from pate_cli.planning.settings import Settings
from pate_cli.planning.vote_model import PUBLIC_SEED, VoteModel

# Where each histogram takes long: how many are priced, and how many for a rough price.
_FEW_STATES, _ROUGH, _MOST_CELLS = 120, 40, 120
# Numbers of distances that are priced, until those beyond them change the forecast by less.
_PRICED_DISTANCES, _DECIDES, _STILL_GROWS = (12, 24, 48), 0.015, 1.3
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
# Runs that are made up where the sum of costs is resampled.
_RUNS = 200


@dataclass(frozen=True, eq=False)
class QueryCosts:
    """Costs of each row of a vote model by order and distance. SECRET if its votes are.

    Attributes:
        orders: λ, [orders].
        distances: ascending from 0; costs between them are on straight lines, [distances].
        costs: [orders, distances, ensembles, each], nats.
        worst: what a row costs at most whatever its votes, [orders], nats.
        drawn: whether a run draws its rows; otherwise the rows are the run's own, in order.
        available: of a file, how many rows these stand for.
    """

    orders: Floats
    distances: Floats
    costs: Floats
    worst: Floats
    drawn: bool
    available: int

    def pass_probability(self, target: TargetPlan, rows: Ints, *, quick: bool = False) -> Floats:
        """Probability that runs of so many rows pass the release test, [ensembles, rows].

        Args:
            target: ε, δ and the price of failing.
            rows: numbers of rows, [rows].
            quick: by the one factor instead of resampled runs, for a search.
        """
        profile, weights = self._profiles(rows, quick=quick)
        return np.tensordot(weights, target.chances(profile, self.orders), 1)

    def pass_probabilities(self, target: TargetPlan, rows: Ints, epsilons: Floats) -> Floats:
        """About the probabilities of passing a file's rows under other targets, [targets, rows].

        Args:
            target: δ and the price of failing, which is taken to be that of all of them.
            rows: numbers of rows, [rows].
            epsilons: the targets, none below the price of failing, [targets], nats.
        """
        profile, _ = self._profiles(rows, quick=True)
        largest = float(epsilons.max())
        moved = profile[0, 0] + (largest - epsilons)[:, None, None, None]
        most = TargetPlan(largest, target.delta, target.refusal_epsilon)
        return most.chances(moved, self.orders)

    def _profiles(self, rows: Ints, *, quick: bool) -> tuple[Floats, Floats]:
        """Profiles [runs, ensembles, rows, orders, distances], and what each run counts, [runs]."""
        if not self.drawn:
            profile, weights = self._of_first(rows), np.ones(1)
        elif quick:
            profile, weights = self._by_factor(rows), _NODE_WEIGHTS
        else:
            profile, weights = self._resampled(rows), np.full(_RUNS, 1.0 / _RUNS)
        ceiling = rows[:, None, None] * self.worst[:, None]
        profile = np.maximum(profile @ to_every_distance(self.distances), 0.0)
        return np.minimum(profile, ceiling), weights

    def surely_passes(self, target: TargetPlan, rows: Ints) -> NDArray[np.bool_]:
        """Whether so many rows cost less than the target whatever the votes, about, [rows]."""
        room = target.epsilon - conversion_cost(self.orders, delta=target.delta)
        return np.asarray((rows[:, None] * self.worst <= room).any(axis=1))

    def _resampled(self, rows: Ints) -> Floats:
        """Profiles [runs, ensembles, rows, orders, distances] of runs whose rows are redrawn."""
        each = self.costs.shape[-1]
        random = np.random.default_rng(PUBLIC_SEED)
        drawn = np.stack(
            [random.multinomial(n, np.full(each, 1.0 / each), size=_RUNS) for n in rows.tolist()]
        ).astype(np.float32)
        costs = np.moveaxis(self.costs, 2, 0).astype(np.float32)
        flat = costs.reshape(costs.shape[0], -1, each)
        found = np.tensordot(drawn, flat, axes=(2, 2))  # rows, runs, ensembles, orders·distances
        found = np.moveaxis(found, (1, 2, 0), (0, 1, 2)).astype(np.float64)
        return np.asarray(found.reshape(*found.shape[:3], *costs.shape[1:3]), dtype=np.float64)

    def _by_factor(self, rows: Ints) -> Floats:
        """Profiles [nodes, ensembles, rows, orders, distances] along one random factor."""
        costs = np.moveaxis(self.costs, 2, 0)
        mean = costs.mean(axis=-1)[:, None]
        near = min(
            int(np.searchsorted(self.distances, _REFERENCE_DISTANCE)), self.distances.size - 1
        )
        reference = costs[:, self.orders.size // 2, near]
        centred = reference - reference.mean(axis=-1, keepdims=True)
        scale = np.maximum(reference.max(axis=-1, keepdims=True), 1e-100)
        centred = centred / scale
        sd = np.sqrt(np.maximum((centred**2).mean(axis=-1), 1e-20))
        skew = (centred**3).mean(axis=-1) / sd**3
        along = np.einsum("eodq,eq->eod", costs, centred) / costs.shape[-1] / sd[:, None, None]
        nodes, number = _NODES[:, None, None], rows.astype(np.float64)
        factor = nodes + (nodes**2 - 1.0) * skew[:, None] / (6.0 * np.sqrt(number))
        number = number[:, None, None]
        found = number * mean + (factor * np.sqrt(rows))[..., None, None] * along[:, None]
        low, high = costs.min(axis=-1)[:, None], costs.max(axis=-1)[:, None]
        return np.clip(found, number * low, number * high)

    def _of_first(self, rows: Ints) -> Floats:
        """Profiles [1, ensembles, rows, orders, distances] of the first rows of a file."""
        each = self.costs.shape[-1]
        seen = np.clip(np.round(rows * (each / self.available)), 1, each).astype(np.int64)
        total = np.cumsum(self.costs, axis=-1)[..., seen - 1] * (rows / seen)
        return np.moveaxis(total, (2, 3), (0, 1))[None]


def quick_costs(
    votes: VoteModel,
    settings: Sequence[Settings],
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

    def corrected(costs: Floats, worst: Floats, setting: Settings) -> Floats:
        tested = setting.threshold is not None
        factor = _above(votes, setting, distances, bound)
        if tested in known:
            factor = np.interp(distances, _EVERY, known[tested])
        return votes.by_ensemble(np.minimum(costs * factor[:, None], worst[:, None, None]))

    return [
        QueryCosts(
            orders,
            distances,
            corrected(each, worst, setting),
            worst,
            not votes.is_file,
            available or votes.rows,
        )
        for each, worst, setting in zip(costs, largest, settings, strict=True)
    ]


def _above(votes: VoteModel, settings: Settings, distances: Floats, bound: Bound) -> Floats:
    """How far the accountant's cost is above the quick one by distance: a guess, [distances]."""
    if bound is Bound.TWO_TAIL:
        shared = votes.teachers_per_record > 1
        return np.full(distances.size, _TWO_TAIL_SHARED if shared else _TWO_TAIL)
    if votes.classes == 2 or settings.threshold is None:
        return np.ones(distances.size)
    share = np.clip(distances / votes.most_votes, _FROM_SHARE, _TO_SHARE) - _FROM_SHARE
    return _NEAR + _FARTHER * share


def measured_above(
    votes: VoteModel, settings: Settings, target: TargetPlan, *, bound: Bound, rows: int
) -> Floats:
    """How far the accountant's cost is above the quick one at some settings, [DISTANCES]."""
    costs = exact_costs(votes, settings, target, bound=bound, rows=rows)
    return cost_above(votes, settings, costs)


def cost_above(votes: VoteModel, settings: Settings, costs: QueryCosts) -> Floats:
    """How far exact costs of some votes are above the quick ones, [DISTANCES]."""
    middle = costs.orders.size // 2
    quick, distances, _ = pair_costs(votes, [settings], costs.orders[middle : middle + 1])
    quick_total = quick[0, 0].sum(axis=-1) @ to_every_distance(distances)
    total = costs.costs[middle].sum(axis=(1, 2))
    return np.asarray(total / np.maximum(quick_total, 1e-300))


def exact_costs(
    votes: VoteModel,
    settings: Settings,
    target: TargetPlan,
    *,
    bound: Bound,
    rows: int,
    available: int = 0,
    rough: bool = False,
) -> QueryCosts:
    """The accountant's costs, at the orders and by the bound of a run.

    Args:
        votes: the rows, with the prior weight of the settings.
        settings: of the run.
        target: ε, δ and the price of failing.
        bound: as a run is asked for.
        rows: about how many rows a run asks; the bound `auto` hangs on it.
        available: of a file, how many rows there are.
        rough: whether fewer histograms and distances will do, where they take long.
    """
    mechanism = votes.mechanism(settings)
    bound = settled_bound(bound, mechanism, rows=rows, orders=target.orders)
    states = states_for(bound, mechanism, highest_order=float(target.orders[-1]))
    orders = states.worth(target.orders)
    found, place = np.unique(states.of(mechanism, votes.counts), axis=0, return_inverse=True)
    place = place.reshape(-1)
    worst = mechanism.worst_rdp(queries=1, answers=1, orders=orders)
    if isinstance(states, ConditionalStates) and votes.classes > 2:
        costs = _dear_costs(votes, settings, target, states, orders, worst, rows, rough)
    else:
        found, place = np.unique(states.of(mechanism, votes.counts), axis=0, return_inverse=True)
        place = place.reshape(-1)
        costs = np.stack([states.costs(order, found)[:, place] for order in orders.tolist()])
    return QueryCosts(
        orders,
        _EVERY,
        votes.by_ensemble(np.minimum(costs, worst[:, None, None])),
        worst,
        not votes.is_file,
        available or votes.rows,
    )


def _dear_costs(
    votes: VoteModel,
    settings: Settings,
    target: TargetPlan,
    states: ConditionalStates,
    orders: Floats,
    worst: Floats,
    rows: int,
    rough: bool,
) -> Floats:
    """Costs [orders, DISTANCES, rows] where pricing takes long.

    Time grows with the square of the distances that are priced. Beyond them the ratio to the quick
    costs stays, or grows by `_STILL_GROWS`: as soon as both give the same forecast, it is enough.
    """
    every_state = states.of(votes.mechanism(settings), votes.counts)
    cells = min(2 * votes.most_votes, _MOST_CELLS)
    quick, known, _ = pair_costs(votes, [settings], orders, cells=cells)
    quick = np.maximum(np.einsum("odr,dk->okr", quick[0], to_every_distance(known)), 1e-12)
    slow = votes.mechanism(settings).slow_states

    def chance(costs: Floats) -> Floats:
        shown = QueryCosts(
            orders, _EVERY, votes.by_ensemble(costs), worst, not votes.is_file, votes.rows
        )
        return shown.pass_probability(target, np.array([rows]), quick=True)

    for near in _PRICED_DISTANCES[: 2 if rough else None]:
        costs = _corrected(votes, settings, every_state, orders, quick, near, rough)
        above = costs[:, near - 1 : near] / quick[:, near - 1 : near]
        costs[:, near:] = quick[:, near:] * above
        if slow:  # a run looks no further, either
            costs[:, _PRICED_DISTANCES[-1] :] = worst[:, None, None]
        high = costs.copy()
        high[:, near:] = np.minimum(high[:, near:] * _STILL_GROWS, worst[:, None, None])
        if np.abs(chance(costs) - chance(high)).max() < _DECIDES:
            break
    return np.maximum.accumulate(costs, axis=1)


def _corrected(
    votes: VoteModel,
    settings: Settings,
    states: Ints,
    orders: Floats,
    quick: Floats,
    near: int,
    rough: bool,
) -> Floats:
    """Quick costs with the first distances corrected by exact ones, [orders, DISTANCES, rows]."""
    mechanism, costs, middle = votes.mechanism(settings), quick.copy(), orders.size // 2
    _, first, place, times = np.unique(
        states, axis=0, return_index=True, return_inverse=True, return_counts=True
    )
    place = place.reshape(-1)
    chosen = _worth_pricing(
        times * quick[middle, min(4, near - 1), first], _ROUGH if rough else _FEW_STATES
    )
    rows, features = first[chosen], _features(votes, settings)
    for at, order in enumerate(orders.tolist()):
        if rough and at != middle:  # the ratio changes little between orders so close
            continue
        exact = mechanism.state_costs(states[rows], order=order, distances=np.arange(near))
        known = quick[at][:near, rows]
        above = np.empty((near, first.size))
        if chosen.size < first.size:
            weights = known * times[chosen]
            above = _fitted(exact / known, weights, features[rows], features[first])
        above[:, chosen] = exact / known
        if rough:
            costs[:, :near] *= above[:, place]
        else:
            costs[at, :near] *= above[:, place]
    return costs


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


def _features(votes: VoteModel, settings: Settings) -> Floats:
    """The pair of counts of each row up to squares, [rows, 6]."""
    x, second = votes.largest_two
    x, y, most = x, 0.5 * (second + votes.rival(settings.sigma2)), votes.most_votes
    x, y = x / most - 0.5, y / most
    return np.column_stack([np.ones(x.size), x, y, x * x, x * y, y * y])
