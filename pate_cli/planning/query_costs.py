"""Costs of the queries of a vote model by distance, and how likely a run of them passes its test.

The release test adds up the costs of a run's rows at a few orders λ and at each distance d, which
gives the profile u_d, and releases with a probability p(u) (`accounting.tested_budget`). A forecast
needs the mean of p(u) over the files that a model may give.

*Distribution of the profile.* The rows of a file are there: its profile is a plain sum. The rows of
a made-up run are independent draws from the rows of an ensemble by their weights. Costs of a row at
different λ and d rise and fall together, so p hangs mostly on R, the sum of the costs at a middle
order and distance. So the profile is taken to move along one line with R, whose first three moments
are known: the mean of p is a quadrature over R, which Cornish and Fisher's expansion makes of a
normal number. This is within .01 or .02 of the mean over made-up runs.

*Quick costs.* Two counts stand for a histogram. A vote costs most where it moves between the two
largest classes, and then about what it would cost if no other class existed. So a query is a pair
(x, y): x its largest count and y the second, moved a little towards the count at which one rival
would win as often as all losers together do. With p the probability of passing the test and w the
probability that x wins, before a vote moves from one to the other, and p', w' after it, the query's
RDP cost at order λ is

  log[(1−p)^λ (1−p')^{1−λ} + p^λ p'^{1−λ} (w^λ w'^{1−λ} + (1−w)^λ (1−w')^{1−λ})] / (λ−1).

Within d votes the pair can become any pair of a hexagon around it: each count gains or loses votes,
or one gives votes to the other. The largest cost in the hexagon stands for distance d. All of it is
a table over pairs on a grid, which takes a few milliseconds for each settings.

*Costs.* `quick_costs` takes this approximation, times a correction that is known beforehand; it
serves searches. `exact_costs` takes the accountant's own costs, the very functions
that a run calls: of every distinct histogram where that is quick. Where it is not (the conditional
bound with three classes or more) it prices the histograms that cost most in total and some others,
and regresses the ratio of exact and approximate cost on the pair of counts for the rest.
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
"""Distances that are looked at; between them costs are nearly on straight lines."""

_CELLS, _TOWARDS_RIVAL = 40, 0.25
Singles: TypeAlias = NDArray[np.float32]


def to_every_distance(distances: Floats) -> Floats:
    """Return a matrix of linear interpolation, [distances, DISTANCES]; flat beyond the last."""
    every = np.arange(DISTANCES, dtype=np.float64)
    return np.stack([np.interp(every, distances, row) for row in np.eye(distances.size)])


def pair_costs(
    votes: VoteModel, settings: Sequence[Tuning], orders: Floats, *, cells: int = _CELLS
) -> tuple[Floats, Floats, Floats]:
    """Return about what each row costs at several settings, and what any votes cost at most.

    Args:
        votes: the rows.
        settings: all with the prior weight of `votes`.
        orders: λ, [orders].
        cells: a side of the grid; more are slower and closer.

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
    """The cell of each row's pair, in units of so many votes."""
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
    """Costs of one vote between the classes of each pair, [orders, size, size], nats."""
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
    """Logs of p^λ p'^{1−λ} for both sides of the coins Φ(z) and Φ(z'), or the other way round."""
    if back:
        z, moved = moved, z
    heads = order * log_ndtr(z) + (1.0 - order) * log_ndtr(moved)
    return heads, order * log_ndtr(-z) + (1.0 - order) * log_ndtr(-moved)


def _grown(tables: Singles, steps: int) -> Singles:
    """The maximum over a hexagon: the sum of three segments of so many steps each."""
    for dx, dy in ((1, 0), (0, -1), (-1, 1)):
        reached = 0
        while reached < steps:
            more = min(reached + 1, steps - reached)
            tables = _with_shifted(tables, more * dx, more * dy)
            reached += more
    return tables


def _with_shifted(tables: Singles, dx: int, dy: int) -> Singles:
    """The larger of each cell and the one (dx, dy) further on, where that exists."""
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
"""Of fewer votes than these a guess of the worst case is far off, and it is found."""

_EVERY = np.arange(DISTANCES, dtype=np.float64)
# The orders among Λ that decide about a target which is nearly missed.
_DECISIVE = slice(2, 6)
# Distances of quick costs; between them costs are nearly on straight lines.
_LOOKED = np.array([0, 1, 2, 4, 7, 11, 16, 23, 32, 47, 48, DISTANCES - 1])
# Where each histogram takes long: how many votes are many, and how far a run looks.
_MANY_TEACHERS, _FARTHEST = 120, 48
# Cells of the approximation that these correct; of two classes, where a histogram is a pair of
# counts, so many cells are within .1% of the accountant's costs and serve in their place where
# votes are many, since the time of these grows with the square of the votes.
_CLOSE_CELLS, _CELLS_OF_TWO, _FEW_VOTES = 120, 240, 250
# Histograms that are priced where a mechanism has no approximation and each takes its time.
_MOST_STATES = 400
# The accountant's cost is about this much above the quick one under the conditional bound of a test
# and an argmax: at distance 0, and by the share of votes that move, from and up to such a share.
_LEAST_ABOVE, _MORE_ABOVE, _FROM_SHARE, _TO_SHARE = 1.01, 0.75, 0.1, 0.6
# What a query costs at most is so far above the largest cost of a pair: with two classes; with
# more, and with few teachers.
_WORST_OF_TWO, _WORST_OF_MORE, _WORST_OF_FEW = 1.1, 1.22, 10.0
# Under the two-tail bound, where a record moves one vote of a query and where it moves several.
_TWO_TAIL, _TWO_TAIL_SHARED = 1.45, 2.2
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(3)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class QueryCosts:
    """Costs of the rows of a vote model by order and distance. SECRET if its votes are.

    Rows that cost the same are one state.

    Attributes:
        orders: λ, [orders].
        costs: [orders, distances, states], nats, at all distances or at those of a search, between
            which they are on straight lines.
        worst: what a row costs at most whatever its votes, [orders], nats.
        weights: how likely a run draws each state in each ensemble, [ensembles, states]; None for
            a file.
        places: the state of each row of a file in its order, [rows]; not used otherwise.
        available: how many rows of a file these stand for.
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
        """Return the probability that runs of so many rows pass the test, [ensembles, rows].

        Args:
            target: ε, δ and the price of failing.
            rows: numbers of rows, [rows]; of a file the first ones.
            ceiling: what so many rows cost at most whatever their votes, [rows, orders], nats, if
                it is less than that many times `worst`, as under a cap on answers.
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
        """Return whether so many rows cost less than the target whatever the votes, [rows]."""
        room = target.epsilon - conversion_cost(self.orders, delta=target.delta)
        return np.asarray((rows[:, None] * self.worst <= room).any(axis=1))

    def with_worst_of(self, mechanism: ScoredMechanism) -> QueryCosts:
        """Return costs where a row costs at most what the accountant says."""
        worst = mechanism.worst_rdp(queries=1, answers=1, orders=self.orders)
        return replace(self, worst=worst)

    @property
    def mean(self) -> Floats:
        """Return the mean cost of a row, ensembles weighing the same, [orders, distances]."""
        if self.weights is None:
            return self.costs[..., self.places].mean(axis=-1)
        return self.costs @ self.weights.mean(axis=0)

    def _of_first(self, rows: Ints) -> Floats:
        """Profiles [rows, orders, distances] of the first rows of a file."""
        looked = self.places.size
        seen = np.clip(np.round(rows * (looked / self.available)), 1, looked).astype(np.int64)
        number = [np.bincount(self.places[:each], minlength=self.costs.shape[-1]) for each in seen]
        return np.tensordot(np.array(number) * (rows / seen)[:, None], self.costs, axes=(1, 2))

    def _by_factor(self, rows: Ints, weights: Floats) -> Floats:
        """Profiles [values of R, ensembles, rows, orders, distances] along one line."""
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
        target: its orders decide which costs matter.
        bound: how a run bounds what votes cost.
        available: of a file, how many rows there are.
        above: how far costs are above the quick ones, by whether there is a test, [DISTANCES];
            a guess where that is not known.
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
        # The two-tail bound of one query may be above what any votes cost; only their sum is not.
        if bound is not Bound.TWO_TAIL:
            if votes.mechanism(setting).slow_states:  # a run looks no further
                cost[:, _LOOKED >= _FARTHEST] = np.inf
            cost = np.minimum(cost, worst[:, None, None])
        found.append(
            QueryCosts(orders, cost, worst, votes.weights, places, available or votes.rows)
        )
    return found


def guessed_above(votes: VoteModel, settings: Tuning, distances: Floats, bound: Bound) -> Floats:
    """Return about how far the accountant's cost is above the quick one, [distances]."""
    if bound is Bound.TWO_TAIL:
        shared = votes.teachers_per_record > 1
        return np.full(distances.size, _TWO_TAIL_SHARED if shared else _TWO_TAIL)
    if votes.classes == 2 or settings.threshold is None:
        return np.ones(distances.size)
    share = np.clip(distances / votes.most_votes, _FROM_SHARE, _TO_SHARE) - _FROM_SHARE
    return _LEAST_ABOVE + _MORE_ABOVE * share


def measured_above(votes: VoteModel, settings: Tuning, costs: QueryCosts) -> Floats:
    """Return how far the accountant's cost is above the quick one at some settings, [DISTANCES]."""
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
        mechanism: of the run.
        target: ε, δ, the price of failing and the bound that is asked for.
        rows: about how many rows a run asks; the bound `auto` hangs on it.
        rough: whether less care will do, where each histogram takes long.
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
    """Costs [orders, DISTANCES, rows] where pricing takes long: quick ones, times a ratio.

    The ratio of exact and quick costs is found at the first distances. How it grows beyond them is
    found at the middle order, and farther still it is guessed.

    Args:
        votes: with one row for each state.
        settings: of the run.
        orders: λ.
        states: what the mechanism prices, [rows, numbers].
        times: how often each is asked.
        care: as `_care` has it.
    """
    mechanism, middle = votes.mechanism(settings), orders.size // 2
    most = _CLOSE_CELLS if votes.classes > 2 else _CELLS_OF_TWO
    quick, known, _ = pair_costs(votes, [settings], orders, cells=min(2 * votes.most_votes, most))
    quick = np.maximum(np.einsum("odr,dk->okr", quick[0], to_every_distance(known)), 1e-12)
    if votes.classes == 2:  # there a histogram is its pair of counts
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
    if mechanism.slow_states:  # a run looks no further, either
        found[:, _FARTHEST:] = np.inf
    return np.maximum.accumulate(found, axis=1)


def _care(votes: VoteModel, *, rough: bool) -> tuple[int, int, int]:
    """How many histograms are priced, at how many distances, and at how many at the middle order.

    No distances at the other orders mean that their costs are as far above the quick ones as at the
    middle one. Time grows with the square of the distances; where there are few votes they are a
    large part of them, and where there are many they tell little.
    """
    many = votes.most_votes > _MANY_TEACHERS
    if not rough:
        return (120, 12, 12) if many else (120, 24, _FARTHEST)
    if votes.is_file:
        return (120, 0, 6) if many else (120, 12, 24)
    return 80, 0, 12


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


def _features(votes: VoteModel, settings: Tuning) -> Floats:
    """The largest count and one that stands for all others, up to squares, [rows, 6]."""
    x, second = votes.largest_two
    y = 0.5 * (second + votes.rival(settings.sigma2)) / votes.most_votes
    x = x / votes.most_votes - 0.5
    return np.column_stack([np.ones(x.size), x, y, x * x, x * y, y * y])
