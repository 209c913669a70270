"""Costs of the queries of a vote model by distance, and the probability that a run passes its test.

The release test adds up the costs of a run's rows at a few orders λ and at each distance d. The
sums are the profile u_d, and the test passes with a probability p(u) (`accounting.tested_budget`).
A forecast needs the mean of p(u) over the files that a model may give.

*Distribution of the profile.* For a file, the profile is a plain sum over its rows. The rows of a
made-up run are independent draws from the rows of an ensemble by their weights. The costs of a row
at different λ and d rise and fall together. So p depends mostly on R, the sum of the costs at a
middle order and distance, and the profile is assumed to move along one line with R. The first three
moments of R are known. The mean of p is an integral over R, which Cornish and Fisher's expansion
makes from a normal number. It is within .01 or .02 of the mean over made-up runs.

*Quick costs.* Two counts stand for a histogram. A vote costs most if it moves between the two
largest classes, and then costs about as much as if no other class existed. So a query is a pair (x,
y): x is its largest count, and y the second, moved a little towards the count at which one rival
would win as often as all losers together. Let p be the probability of passing the test and w the
probability that x wins, before a vote moves from one to the other, and p', w' after it. Then the
query's RDP cost at order λ is

  log[(1−p)^λ (1−p')^{1−λ} + p^λ p'^{1−λ} (w^λ w'^{1−λ} + (1−w)^λ (1−w')^{1−λ})] / (λ−1).

Within d votes the pair can become any pair of a hexagon around it: each count gains or loses votes,
or one gives votes to the other. The largest cost in the hexagon is the cost at distance d. All
costs are in a table over pairs on a grid, which takes a few milliseconds for each choice of
settings.

*Costs.* `quick_costs` uses this approximation, times a correction that is known beforehand; it is
for searches. `exact_costs` uses the accountant's own functions, which a run also calls. If this is
quick, it does so for every distinct histogram. If it is slow (the conditional bound with three or
more classes), it computes the histograms with the largest total cost and some others. For the rest
it regresses the ratio of exact and approximate cost on the pair of counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.words import Bound
from pate_cli.disclosure.target import TargetPlan, coin_orders, settled_bound, states_for
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.search import Tuning
from pate_cli.planning.vote_model import PUBLIC_SEED, VoteModel

FEW_DISTANCES: Final = np.array([0, 1, 2, 4, 7, 11, 16, 23, 32, 45, DISTANCES - 1])
"""Distances at which costs are computed; between them costs are nearly on straight lines."""

_CELLS, _TOWARDS_RIVAL = 40, 0.25
Singles: TypeAlias = NDArray[np.float32]


def to_every_distance(distances: Floats) -> Floats:
    """Return a matrix of linear interpolation, [distances, DISTANCES]; flat beyond the last."""
    every = np.arange(DISTANCES, dtype=np.float64)
    return np.stack([np.interp(every, distances, row) for row in np.eye(distances.size)])


def pair_costs(
    votes: VoteModel, settings: Sequence[Tuning], orders: Floats, *, cells: int = _CELLS
) -> tuple[Floats, Floats, Floats]:
    """Return the approximate cost of each row at several settings, and the largest cost of any
    votes.

    Args:
        votes: the rows.
        settings: all with the prior weight of `votes`.
        orders: λ, [orders].
        cells: cells along a side of the grid; more cells are slower and more precise.

    Returns:
        Costs [settings, orders, distances, rows] in nats; the distances, in records; and the
        largest cost of any pair, [settings, orders].
    """
    record = votes.teachers_per_record
    most = -(-votes.most_votes // record)
    step = max(most / cells, 1.0)
    size = int(np.ceil(most / step)) + 1
    tables = np.array(
        [_moves(each, record, step, size, most, votes.classes == 2, orders) for each in settings],
        dtype=np.float32,
    )
    largest = tables.max(axis=(2, 3)).astype(np.float64)
    places = [_pairs(votes, each.sigma2, record * step, size) for each in settings]
    steps = np.unique(np.round(FEW_DISTANCES / step).astype(np.int64))
    found, reached = [], 0
    for distance in steps.tolist():
        tables = _grown(tables, distance - reached)
        reached = distance
        found.append([table[:, x, y] for table, (x, y) in zip(tables, places, strict=True)])
    costs = np.moveaxis(np.array(found, dtype=np.float64), 0, 2)
    return costs, (steps * step).astype(np.float64), largest


def _pairs(votes: VoteModel, sigma2: float, unit: float, size: int) -> tuple[Ints, Ints]:
    """Return the cell of each row's pair, in cells of `unit` votes."""
    x, second = votes.largest_two
    y = second + _TOWARDS_RIVAL * np.maximum(votes.rival(sigma2) - second, 0.0)
    y = np.clip(y, 0.0, np.minimum(x, votes.most_votes - x))
    most = np.minimum(np.round(x / unit).astype(np.int64), size - 1)
    return most, np.minimum(np.round(y / unit).astype(np.int64), size - 1 - most)


def _moves(
    settings: Tuning,
    record: int,
    step: float,
    size: int,
    most: int,
    both_ways: bool,
    orders: Floats,
) -> Floats:
    """Return costs of one vote between the classes of each pair, [orders, size, size], nats."""
    x, y = np.arange(size)[:, None], np.arange(size)[None, :]
    noise = np.sqrt(2.0) * settings.sigma2 / record
    gaps = np.arange(1 - size, size) * (step / noise)
    worst = np.zeros((orders.size, size, size))
    at = orders[:, None]
    for back in (False, True) if both_ways else (False,):
        moment = np.logaddexp(*_coin(gaps, gaps - 2.0 / noise, at, back))[:, x - y + size - 1]
        if settings.threshold is not None and settings.sigma1 is not None:
            v, moved = step * np.maximum(x, y), np.maximum(step * x - 1.0, step * y + 1.0)
            z, moved_z = (
                (count - settings.threshold / record) * record / settings.sigma1
                for count in (v, moved)
            )
            passed, failed = _coin(z, moved_z, orders[:, None, None], back)
            moment = np.logaddexp(failed, passed + moment)
        worst = np.maximum(worst, moment / (orders - 1.0)[:, None, None])
    worst = np.maximum(worst, np.swapaxes(worst, 1, 2))
    return np.where((x + y) * step < most + step, worst, 0.0)


def _coin(z: Floats, moved: Floats, order: Floats, back: bool) -> tuple[Floats, Floats]:
    """Return logs of p^λ p'^{1−λ} for both sides of the coins Φ(z) and Φ(z'), or in reverse."""
    if back:
        z, moved = moved, z
    heads = order * log_ndtr(z) + (1.0 - order) * log_ndtr(moved)
    return heads, order * log_ndtr(-z) + (1.0 - order) * log_ndtr(-moved)


def _grown(tables: Singles, steps: int) -> Singles:
    """Return the maximum over a hexagon: the sum of three segments of this many steps each."""
    for dx, dy in ((1, 0), (0, -1), (-1, 1)):
        reached = 0
        while reached < steps:
            more = min(reached + 1, steps - reached)
            tables = _with_shifted(tables, more * dx, more * dy)
            reached += more
    return tables


def _with_shifted(tables: Singles, dx: int, dy: int) -> Singles:
    """Return the larger of each cell and the cell at (dx, dy) from it, if that exists."""
    size = tables.shape[-1]
    larger = tables.copy()
    if max(abs(dx), abs(dy)) >= size:
        return larger
    to_x, to_y = (slice(max(-by, 0), size - max(by, 0)) for by in (dx, dy))
    from_x, from_y = (slice(max(by, 0), size - max(-by, 0)) for by in (dx, dy))
    here = larger[..., to_x, to_y]
    np.maximum(here, tables[..., from_x, from_y], out=here)
    return larger


FEW_VOTES: Final = 60
"""With fewer votes than this a guess of the worst case is far off, and it is computed."""

_EVERY = np.arange(DISTANCES, dtype=np.float64)
# The orders among Λ that decide about a target that a run nearly misses.
_DECISIVE = slice(2, 6)
# Distances of quick costs; between them costs are nearly on straight lines.
_LOOKED = np.array([0, 1, 2, 4, 7, 11, 16, 23, 32, 47, 48, DISTANCES - 1])
# If each histogram is slow: from how many teachers on, and how far a run looks.
_MANY_TEACHERS, _FARTHEST = 120, 48
# Cells of the approximation that these costs correct. With two classes a histogram is a pair of
# counts, and this many cells are within .1% of the accountant's costs. They replace those costs if
# there are many votes, because exact time grows with the square of the votes.
_CLOSE_CELLS, _CELLS_OF_TWO, _FEW_VOTES = 120, 240, 250
# Histograms to compute if a mechanism has no approximation and each histogram is slow.
_MOST_STATES = 400
# How far the accountant's cost is above the quick one under the conditional bound of a test and an
# argmax: at distance 0, and by the share of votes that move, from one share to another.
_LEAST_ABOVE, _MORE_ABOVE, _FROM_SHARE, _TO_SHARE = 1.01, 0.75, 0.1, 0.6
# The ratio of the largest cost of a query to the largest cost of a pair: with two classes, with
# more classes, and with few teachers.
_WORST_OF_TWO, _WORST_OF_MORE, _WORST_OF_FEW = 1.1, 1.22, 10.0
# Ratios under the two-tail bound, if a record changes one vote of a query, and if several.
_TWO_TAIL, _TWO_TAIL_SHARED = 1.45, 2.2
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(3)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class QueryCosts:
    """Costs of the rows of a vote model by order and distance. SECRET if its votes are.

    Rows with equal costs are one state.

    Attributes:
        orders: λ, [orders].
        costs: [orders, distances, states], nats, at all distances or at those of a search; costs
            between the distances of a search are on straight lines.
        worst: worst-case cost of a row, [orders], nats.
        weights: the probability that a run draws each state in each ensemble, [ensembles, states];
            None for a file.
        places: the state of each row of a file in order, [rows]; not used for made-up votes.
        available: how many rows of a file these rows stand for.
    """

    orders: Floats
    costs: Floats
    worst: Floats
    weights: Floats | None
    places: Ints
    available: int

    def pass_probability(
        self, target: TargetPlan, rows: Ints, *, ceiling: Floats | None = None
    ) -> Floats:
        """Return the probability that runs of these numbers of rows pass the test, [ensembles,
        rows].

        Args:
            target: ε, δ and the cost of a failed test.
            rows: numbers of rows, [rows]; for a file, its first rows.
            ceiling: worst-case cost of these rows, [rows, orders], nats, if it is smaller than the
                number of rows times `worst`, as under a cap on answers.
        """
        most = np.outer(rows, self.worst) if ceiling is None else ceiling

        def chances(profiles: Floats) -> Floats:
            if profiles.shape[-1] < DISTANCES:
                profiles = profiles @ to_every_distance(_LOOKED)
            return target.chances(np.clip(profiles, 0.0, most[..., None]), self.orders)

        if self.weights is None:
            return chances(self._of_first(rows))[None]
        profiles = self._by_factor(rows, self.weights)
        return np.asarray(np.tensordot(_NODE_WEIGHTS, chances(profiles), 1))

    def surely_passes(self, target: TargetPlan, rows: Ints) -> NDArray[np.bool_]:
        """Return whether the worst case of this many rows is within the target, [rows]."""
        room = target.epsilon - conversion_cost(self.orders, delta=target.delta)
        return np.asarray((rows[:, None] * self.worst <= room).any(axis=1))

    def with_worst_of(self, mechanism: ScoredMechanism) -> QueryCosts:
        """Return costs whose worst case of a row comes from the accountant."""
        worst = mechanism.worst_rdp(queries=1, answers=1, orders=self.orders)
        return replace(self, worst=worst)

    @property
    def mean(self) -> Floats:
        """Return the mean cost of a row, with equal weights of ensembles, [orders, distances]."""
        if self.weights is None:
            return self.costs[..., self.places].mean(axis=-1)
        return self.costs @ self.weights.mean(axis=0)

    def _of_first(self, rows: Ints) -> Floats:
        """Return profiles [rows, orders, distances] of the first rows of a file."""
        looked = self.places.size
        seen = np.clip(np.round(rows * (looked / self.available)), 1, looked).astype(np.int64)
        number = [np.bincount(self.places[:each], minlength=self.costs.shape[-1]) for each in seen]
        return np.tensordot(np.array(number) * (rows / seen)[:, None], self.costs, axes=(1, 2))

    def _by_factor(self, rows: Ints, weights: Floats) -> Floats:
        """Return profiles [values of R, ensembles, rows, orders, distances] along one line."""
        mean = np.moveaxis(self.costs @ weights.T, -1, 0)[:, None]
        near = 4 if mean.shape[-1] == DISTANCES else int(np.searchsorted(_LOOKED, 4))
        reference = self.costs[self.orders.size // 2, near]
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


def quick_costs(
    votes: VoteModel,
    settings: Sequence[Tuning],
    target: TargetPlan,
    *,
    bound: Bound,
    available: int = 0,
    above: Mapping[bool, Floats] | None = None,
) -> list[QueryCosts]:
    """Return approximate costs of several settings, for a search.

    Args:
        votes: the rows.
        settings: all with the prior weight of `votes`.
        target: its orders determine which costs matter.
        bound: how a run bounds the cost of votes.
        available: for a file, how many rows there are.
        above: ratios of exact and quick costs, by whether there is a test, [DISTANCES]; a guess if
            they are unknown.
    """
    orders, places = target.orders, np.arange(votes.rows)
    orders = orders[_DECISIVE] if orders.size > _DECISIVE.stop else orders
    costs, distances, largest = pair_costs(votes, settings, orders)
    onto = to_every_distance(distances)[:, _LOOKED]
    more = _WORST_OF_MORE + _WORST_OF_FEW / votes.most_votes
    largest = largest * (_WORST_OF_TWO if votes.classes == 2 else more)
    found = []
    for each, worst, setting in zip(costs, largest, settings, strict=True):
        if votes.most_votes < FEW_VOTES:  # in proportion to the order, about
            middle = orders[orders.size // 2 :][:1]
            exact = votes.mechanism(setting).worst_rdp(queries=1, answers=1, orders=middle)
            worst = exact / middle * orders
        known = (above or {}).get(setting.threshold is not None)
        factor = guessed_above(votes, setting, _EVERY, bound) if known is None else known
        cost = np.einsum("odr,dk->okr", each, onto * factor[_LOOKED])
        # The two-tail bound of one query may be above the worst case; their sum must not be.
        if bound is not Bound.TWO_TAIL:
            if votes.mechanism(setting).slow_states:  # a run looks no further
                cost[:, _LOOKED >= _FARTHEST] = np.inf
            cost = np.minimum(cost, worst[:, None, None])
        found.append(
            QueryCosts(orders, cost, worst, votes.weights, places, available or votes.rows)
        )
    return found


def guessed_above(votes: VoteModel, settings: Tuning, distances: Floats, bound: Bound) -> Floats:
    """Return an estimate of the ratio of the accountant's cost and the quick cost, [distances]."""
    if bound is Bound.TWO_TAIL:
        shared = votes.teachers_per_record > 1
        return np.full(distances.size, _TWO_TAIL_SHARED if shared else _TWO_TAIL)
    if votes.classes == 2 or settings.threshold is None:
        return np.ones(distances.size)
    share = np.clip(distances / votes.most_votes, _FROM_SHARE, _TO_SHARE) - _FROM_SHARE
    return _LEAST_ABOVE + _MORE_ABOVE * share


def measured_above(votes: VoteModel, settings: Tuning, costs: QueryCosts) -> Floats:
    """Return the ratio of the accountant's and the quick cost at some settings, [DISTANCES]."""
    middle = costs.orders.size // 2
    quick, distances, _ = pair_costs(votes, [settings], costs.orders[middle : middle + 1])
    about = (quick[0, 0] @ votes.row_weights.mean(axis=0)) @ to_every_distance(distances)
    return np.asarray(costs.mean[middle] / np.maximum(about, 1e-300))


def exact_costs(
    votes: VoteModel,
    mechanism: ScoredMechanism,
    target: TargetPlan,
    *,
    rows: int,
    rough: bool = False,
) -> QueryCosts:
    """Return the accountant's costs, at the orders and by the bound of a run.

    Args:
        votes: the rows, with the prior weight of the mechanism.
        mechanism: the mechanism of the run.
        target: ε, δ, the cost of a failed test and the bound that was asked for.
        rows: about how many rows a run asks; the bound `auto` depends on this.
        rough: whether to save time if each histogram is slow.
    """
    bound = settled_bound(target.bound, mechanism, rows=rows, orders=target.orders)
    states = states_for(bound, mechanism, highest_order=float(target.orders[-1]))
    orders = coin_orders(bound, mechanism, target.orders)
    settings = Tuning.of(mechanism)
    worst = mechanism.worst_rdp(queries=1, answers=1, orders=orders)
    if bound is Bound.CONDITIONAL and settings is None and not votes.is_file:
        votes = votes.thinned(_MOST_STATES)
    found, first, places = np.unique(
        states.of(mechanism.for_reference(votes.counts, PUBLIC_SEED), votes.counts),
        axis=0,
        return_index=True,
        return_inverse=True,
    )
    places, weights = places.reshape(-1), votes.weights
    if weights is not None:
        weights = np.stack([np.bincount(places, each, len(found)) for each in weights])
    dear = votes.classes > 2 or (not votes.is_file and votes.most_votes > _FEW_VOTES)
    if bound is Bound.CONDITIONAL and dear and settings is not None:
        times = np.bincount(places, votes.row_weights.mean(axis=0)).astype(np.float64)
        care = _care(votes, rough=rough)
        costs = _corrected(votes.some(first), settings, orders, found, times, care)
        costs = np.minimum(costs, worst[:, None, None])
    else:
        costs = np.stack([states.costs(order, found) for order in orders.tolist()])
    return QueryCosts(orders, costs, worst, weights, places, votes.rows)


def _corrected(
    votes: VoteModel,
    settings: Tuning,
    orders: Floats,
    states: Ints,
    times: Floats,
    care: tuple[int, int, int],
) -> Floats:
    """Return costs [orders, DISTANCES, rows] if exact costs are slow: quick costs times a ratio.

    The ratio of exact and quick costs is computed at the first distances. Its growth beyond them is
    computed at the middle order, and estimated beyond that.

    Args:
        votes: votes with one row for each state.
        settings: the settings of the run.
        orders: λ.
        states: the states of the mechanism, [rows, numbers].
        times: how often each state is asked.
        care: a result of `_care`.
    """
    mechanism, middle = votes.mechanism(settings), orders.size // 2
    most = _CLOSE_CELLS if votes.classes > 2 else _CELLS_OF_TWO
    quick, known, _ = pair_costs(votes, [settings], orders, cells=min(2 * votes.most_votes, most))
    quick = np.maximum(np.einsum("odr,dk->okr", quick[0], to_every_distance(known)), 1e-12)
    if votes.classes == 2:  # then a histogram is its pair of counts
        return quick
    number, near, far = care
    if not mechanism.slow_states:
        near, far = (DISTANCES if near else 0), DISTANCES
    chosen = _worth_pricing(times * quick[middle, 4], number)
    features = _features(votes, settings)

    def ratios(place: int, near: int) -> Floats:
        exact = mechanism.state_costs(
            states[chosen], order=float(orders[place]), distances=np.arange(near)
        )
        cost = quick[place, :near][:, chosen]
        above = _fitted(exact / cost, cost * times[chosen], features[chosen], features)
        above[:, chosen] = exact / cost
        return above

    growth = guessed_above(votes, settings, _EVERY, Bound.CONDITIONAL)
    above = ratios(middle, far)
    above = np.concatenate([above, above[-1] * (growth[far:] / growth[far - 1])[:, None]])
    found = quick * above
    for place in range(orders.size):
        if place != middle and near:
            first = ratios(place, near)
            found[place, :near] = quick[place, :near] * first
            found[place, near:] *= first[-1] / above[near - 1]
    if mechanism.slow_states:  # a run does not look farther either
        found[:, _FARTHEST:] = np.inf
    return np.maximum.accumulate(found, axis=1)


def _care(votes: VoteModel, *, rough: bool) -> tuple[int, int, int]:
    """Return how many histograms to compute, at how many distances, and at how many middle ones.

    No distances at the other orders mean that their ratios are those of the middle order. Time
    grows with the square of the distances. With few votes these distances are a large part of the
    votes; with many votes they tell little.
    """
    many = votes.most_votes > _MANY_TEACHERS
    if not rough:
        return (120, 12, 12) if many else (120, 24, _FARTHEST)
    if votes.is_file:
        return (120, 0, 6) if many else (120, 12, 24)
    return 80, 0, 12


def _worth_pricing(weights: Floats, number: int) -> Ints:
    """Return the places of the histograms with most weight, and of some others in equal steps."""
    if weights.size <= number:
        return np.arange(weights.size)
    order = np.argsort(-weights)
    most = 2 * number // 3
    others = np.linspace(most, weights.size - 1, number - most).round().astype(np.int64)
    return np.sort(np.concatenate([order[:most], order[others]]))


def _fitted(ratio: Floats, cost: Floats, known: Floats, features: Floats) -> Floats:
    """Return ratios [distances, histograms] by a regression, weighted by the known costs."""
    found = np.empty((len(ratio), len(features)))
    for distance, each in enumerate(ratio):
        weight = np.sqrt(cost[distance] / cost[distance].max())[:, None]
        fitted, *_ = np.linalg.lstsq(known * weight, each * weight[:, 0], rcond=1e-6)
        found[distance] = np.clip(features @ fitted, each.min(), each.max())
    return found


def _features(votes: VoteModel, settings: Tuning) -> Floats:
    """Return the largest count and one that stands for all others, up to squares, [rows, 6]."""
    x, second = votes.largest_two
    y = 0.5 * (second + votes.rival(settings.sigma2)) / votes.most_votes
    x = x / votes.most_votes - 0.5
    return np.column_stack([np.ones(x.size), x, y, x * x, x * y, y * y])
