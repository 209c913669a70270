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
y): x is its largest count, and y the second, moved towards the count at which one rival would win
as often as all losers together. The wider the gap, the more it moves, because then several losers
share the cost. Let p be the probability of passing the test and w the probability that x wins,
before a vote moves from one to the other, and p', w' after it. Then the query's RDP cost at order λ
is

  log[(1−p)^λ (1−p')^{1−λ} + p^λ p'^{1−λ} (w^λ w'^{1−λ} + (1−w)^λ (1−w')^{1−λ})] / (λ−1).

Within d votes the pair can become any pair of a hexagon around it: each count gains or loses votes,
or one gives votes to the other. The largest cost in the hexagon is the cost at distance d. All
costs are in a table over pairs on a grid, which takes a few milliseconds for each choice of
settings. Summed over queries, it is within 5% of the accountant's cost from about 30 teachers on.
The worst votes are estimated by the worst pair, of which test and argmax move the worst way
separately.

*Costs.* `quick_costs` uses this approximation, times a correction that is known beforehand; it is
for searches, and for the rows that the public rule asks. `exact_costs` uses the accountant's own
functions, which a run also calls. If this is quick, it does so for every distinct histogram. If it
is slow (the conditional bound with three or more classes), it computes the histograms with the
largest total cost and some others. For the rest it regresses the ratio of exact and approximate
cost on the pair of counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_ndtr

from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.few_votes import Few, summed
from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.core.arrays import Floats, Ints
from pate_cli.core.words import Bound
from pate_cli.disclosure.target import TargetPlan, coin_orders, settled_bound, states_for
from pate_cli.mechanisms.base import ScoredMechanism
from pate_cli.planning.search import Tuning
from pate_cli.planning.vote_model import PUBLIC_SEED, VoteModel

Singles: TypeAlias = NDArray[np.float32]

# Distances at which quick costs are computed; between them costs are nearly on straight lines.
_LOOKED = np.array([0, 1, 2, 4, 7, 11, 16, 23, 32, 47, 48, DISTANCES - 1])
_EVERY = np.arange(DISTANCES, dtype=np.float64)
# Cells along a side of the grid, for a search; and how far y moves towards the rival for each σ2 of
# the gap, and at most.
_CELLS, _TOWARDS_RIVAL, _MOST_TOWARDS = 40, 0.1, 0.5
# With three or more classes some votes cost more than any pair, and still more if several votes of
# a record may go to different classes.
_WORST_OF_MORE, _WORST_OF_SHARED = 0.3, 0.25
_WORST_GAPS = np.linspace(0.0, 12.0, 97)
# The log probability of an event that does not happen; minus infinity would not be a number later.
_NEVER = -1e300


def _to(distances: Floats, at: Floats) -> Floats:
    """Return a matrix of linear interpolation, [distances, at]; flat beyond the last distance."""
    return np.stack([np.interp(at, distances, row) for row in np.eye(distances.size)])


_TO_EVERY = _to(_LOOKED, _EVERY)


def pair_costs(
    votes: VoteModel, settings: Sequence[Tuning], orders: Floats, *, cells: int = _CELLS
) -> tuple[Floats, Floats]:
    """Return the approximate cost of each row at several settings, and of the worst votes.

    Args:
        votes: the rows.
        settings: all with the prior weight of `votes`.
        orders: λ, [orders].
        cells: cells along a side of the grid; more cells are slower and more precise.

    Returns:
        Costs [settings, orders, distances, rows] at the distances of a search, and of the worst
        votes, [settings, orders], nats.
    """
    record = votes.teachers_per_record
    most = -(-votes.most_votes // record)
    step = max(most / cells, 1.0)
    size = int(np.ceil(most / step)) + 1
    tables = np.array(
        [_moves(each, record, step, size, most, votes.classes == 2, orders) for each in settings],
        dtype=np.float32,
    )
    places = [_pairs(votes, each.sigma2, record * step, size) for each in settings]
    steps = np.unique(np.round(_LOOKED / step).astype(np.int64))
    onto = _to((steps * step).astype(np.float64), _LOOKED)
    found, reached = [], 0
    for distance in steps.tolist():
        tables = _grown(tables, distance - reached)
        reached = distance
        found.append([table[:, x, y] for table, (x, y) in zip(tables, places, strict=True)])
    costs = np.tensordot(onto, np.array(found, np.float64), (0, 0))
    more = 1.0
    if votes.classes > 2:
        more = 1.2 - _WORST_OF_MORE / votes.classes
        more += _WORST_OF_SHARED * (record > 1 and not votes.votes_together)
    return np.moveaxis(costs, 0, 2), more * np.array(
        [_worst_pair(each, record, most, orders) for each in settings]
    )


def _pairs(votes: VoteModel, sigma2: float, unit: float, size: int) -> tuple[Ints, Ints]:
    """Return the cell of each row's pair, in cells of `unit` votes.

    With three or more classes y may be larger than τ − x, because it stands for several losers.
    """
    x, second = votes.largest_two
    towards = np.minimum(_TOWARDS_RIVAL * (x - second) / sigma2, _MOST_TOWARDS)
    y = second + towards * np.maximum(votes.rival(sigma2) - second, 0.0)
    y = np.clip(y, 0.0, votes.most_votes - x if votes.classes == 2 else x)
    most, rival = (np.round(count / unit).astype(np.int64) for count in (x, y))
    return np.minimum(most, size - 1), np.minimum(rival, size - 1)


def _moves(
    settings: Tuning,
    record: int,
    step: float,
    size: int,
    most: int,
    two_classes: bool,
    orders: Floats,
) -> Floats:
    """Return costs of one vote between the classes of each pair, [orders, size, size], nats."""
    places, order = np.arange(size), orders[:, None, None]
    x, y = places[:, None], places[None, :]
    noise = np.sqrt(2.0) * settings.sigma2 / record
    gaps = np.arange(1 - size, size) * (step / noise)
    wins = _log_coin(gaps), _log_coin(gaps - 2.0 / noise)
    # The largest count is x, which loses a vote, or y, which gains one.
    loses = step * x - 1.0 > step * y + 1.0
    counts: Floats = step * places.astype(np.float64)
    same, down, up = (_log_test(settings, record, counts + by) for by in (0.0, -1.0, 1.0))
    tests = same[:, np.maximum(x, y)], np.where(loses, down[:, x], up[:, y])
    worst = np.zeros((orders.size, size, size))
    for first, last in ((0, 1), (1, 0)) if two_classes else ((0, 1),):
        argmax = np.logaddexp(*_moments(wins[first], wins[last], orders[:, None]))
        moment = argmax[:, x - y + size - 1]
        passed, failed = _moments(tests[first], tests[last], order)
        worst = np.maximum(worst, np.logaddexp(failed, passed + moment) / (order - 1.0))
    worst = np.maximum(worst, np.swapaxes(worst, 1, 2))
    return np.where((x + y) * step < most + step, worst, 0.0) if two_classes else worst


def _worst_pair(settings: Tuning, record: int, most: int, orders: Floats) -> Floats:
    """Return the largest cost of a pair whose test and argmax both move the worst way, [orders]."""
    order, noise = orders[:, None], np.sqrt(2.0) * settings.sigma2 / record
    counts = np.arange(-1.0, most + 2.0)
    # The accountant's worst case of an answer alone is that of any number of votes.
    gap = np.maximum(2.0 * counts[1:-1] - most, 0.0) if settings.sigma1 else _WORST_GAPS * noise
    wins = _log_coin(gap / noise)
    moved = [_moments(wins, _log_coin((gap + by) / noise), order) for by in (-2.0, 2.0)]
    moment = np.maximum(*(np.logaddexp(*each) for each in moved))
    if not settings.sigma1:
        return moment.max(axis=1) / (orders - 1.0)
    tests = _log_test(settings, record, counts)
    same, tested = tests[:, 1:-1], []
    for other in (tests[:, :-2], same, tests[:, 2:]):
        passed, failed = _moments(same, other, order)
        tested.append(np.logaddexp(failed, passed + moment))
    return np.max(tested, axis=(0, 2)) / (orders - 1.0)


def _log_test(settings: Tuning, record: int, counts: Floats) -> Floats:
    """Return log probabilities that a largest count passes the test, and that it fails, [2, ...].

    Counts are in records. Without a test, every count passes.
    """
    if settings.threshold is None or settings.sigma1 is None:
        return np.multiply.outer([0.0, _NEVER], np.ones(counts.shape))
    return _log_coin((counts * record - settings.threshold) / settings.sigma1)


def _log_coin(z: Floats) -> Floats:
    """Return log Φ(z) and log Φ(−z), [2, ...]."""
    return np.stack([log_ndtr(z), log_ndtr(-z)])


def _moments(before: Floats, after: Floats, order: Floats) -> Floats:
    """Return logs of p^λ p'^{1−λ} for both sides of a coin, [2, orders, ...].

    Args:
        before, after: log p and log p' of both sides, [2, ...].
        order: λ, which broadcasts against one side.
    """
    return order * before[:, None] + (1.0 - order) * after[:, None]


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


# The orders among Λ that decide about a target that a run nearly misses.
_DECISIVE = slice(3, 6)
# If each histogram is slow: from how many teachers on, and how far a run looks.
_MANY_TEACHERS, _FARTHEST = 120, 48
# Cells of the approximation that these costs correct. With two classes a histogram is a pair of
# counts, and this many cells are within .1% of the accountant's costs. They replace those costs if
# there are many votes, because exact time grows with the square of the votes.
_CLOSE_CELLS, _CELLS_OF_TWO, _FEW_VOTES = 120, 240, 250
# Histograms to compute if a mechanism has no approximation and each histogram is slow.
_MOST_STATES = 400
# The ratio of the accountant's and the quick cost under the conditional bound of a test and an
# argmax, and its growth with the distance if noise is small: up to so many distances, by λ/σ2².
_NEAR_ABOVE, _GROWTH, _NO_GROWTH, _MOST_GROWTH, _GROWS_UP_TO = 1.0, 1.5, 0.08, 0.5, 12.0
# With many classes the ratio is a little larger.
_BY_CLASS, _FEW_CLASSES, _MOST_BY_CLASS = 0.004, 10, 0.03
# Ratios under the two-tail bound, with two classes and with more, and if a record changes several
# votes of a query.
_TWO_TAIL_OF_TWO, _TWO_TAIL, _TWO_TAIL_SHARED = 1.1, 1.45, 1.5
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
        few: for a file, the limit on the votes of one teacher; None if there is no limit.
    """

    orders: Floats
    costs: Floats
    worst: Floats
    weights: Floats | None
    places: Ints
    available: int
    few: Few = None

    def pass_probability(
        self, target: TargetPlan, rows: Ints, *, ceiling: Floats | None = None
    ) -> Floats:
        """Return the probability that runs of these numbers of rows pass, [ensembles, rows].

        Args:
            target: ε, δ and the cost of a failed test.
            rows: numbers of rows, [rows]; for a file, its first rows.
            ceiling: worst-case cost of these rows, [rows, orders], nats, if it is smaller than the
                number of rows times `worst`, as under a cap on answers.
        """
        return pass_probabilities(target, [(self, rows)], ceiling=ceiling)[0]

    def profiles(self, rows: Ints, ceiling: Floats | None = None) -> Floats:
        """Return profiles [values of R, ensembles, rows, orders, distances] of so many rows."""
        most = np.outer(rows, self.worst) if ceiling is None else ceiling
        if self.weights is None:
            found = self._of_first(rows)[None, None]
        else:
            found = self._by_factor(rows, self.weights)
        return np.clip(found, 0.0, most[..., None])

    def untested(self, target: TargetPlan) -> float:
        """Return about how many rows are within the target whatever the votes."""
        room = target.epsilon - conversion_cost(self.orders, delta=target.delta)
        return float((room / self.worst).max())

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
        if self.few is not None:
            return np.stack([summed(self.few, self.costs, each) for each in number])
        return np.tensordot(np.array(number) * (rows / seen)[:, None], self.costs, axes=(1, 2))

    def _by_factor(self, rows: Ints, weights: Floats) -> Floats:
        """Return profiles [values of R, ensembles, rows, orders, distances] along one line."""
        mean = np.moveaxis(self.costs @ weights.T, -1, 0)[:, None]
        near = 4 if mean.shape[-1] == DISTANCES else int(np.searchsorted(_LOOKED, 4))
        reference = self.costs[self.orders.size // 2, near]
        reference = reference / max(float(reference.max()), 1e-100)
        centred = reference - (weights @ reference)[:, None]
        sd = np.sqrt(np.maximum((weights * centred**2).sum(axis=1), 1e-20))
        skew = (weights * centred**2 * centred).sum(axis=1) / sd**3
        along = np.moveaxis(self.costs @ (weights * centred / sd[:, None]).T, -1, 0)
        nodes, number = _NODES[:, None, None], rows.astype(np.float64)
        factor = nodes + (nodes**2 - 1.0) * skew[:, None] / (6.0 * np.sqrt(number))
        number = number[:, None, None]
        found = number * mean + (factor * np.sqrt(rows))[..., None, None] * along[:, None]
        low, high = self.costs.min(axis=-1), self.costs.max(axis=-1)
        return np.clip(found, number * low, number * high)


def pass_probabilities(
    target: TargetPlan, asked: Sequence[tuple[QueryCosts, Ints]], *, ceiling: Floats | None = None
) -> list[Floats]:
    """Return `pass_probability` of several costs, each with its rows; together they are faster."""
    profiles = np.concatenate([costs.profiles(rows, ceiling) for costs, rows in asked], axis=2)
    if profiles.shape[-1] < DISTANCES:
        found = np.tensordot(_TO_EVERY, np.moveaxis(profiles, (-1, -2), (0, 1)), (0, 0))
        profiles = np.moveaxis(found, (0, 1), (-1, -2))
    chances = target.chances(profiles, asked[0][0].orders)
    chances = np.tensordot(_NODE_WEIGHTS, chances, 1) if len(chances) > 1 else chances[0]
    return np.split(chances, np.cumsum([rows.size for _, rows in asked])[:-1], axis=-1)


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
    orders, places, found = decisive(target.orders), np.arange(votes.rows), []
    for each, worst, setting in zip(*pair_costs(votes, settings, orders), settings, strict=True):
        known = (above or {}).get(setting.threshold is not None)
        factor = guessed_above(votes, setting, orders, bound) if known is None else known[_LOOKED]
        cost = each * factor[:, None]
        # The two-tail bound of one query may be above the worst case; their sum must not be.
        if bound is not Bound.TWO_TAIL:
            if votes.mechanism(setting).slow_states:  # a run looks no further
                cost[:, _LOOKED >= _FARTHEST] = np.inf
            cost = np.minimum(cost, worst[:, None, None])
        found.append(
            QueryCosts(orders, cost, worst, votes.weights, places, available or votes.rows)
        )
    return found


def decisive(orders: Floats) -> Floats:
    """Return the orders Λ at which a run that nearly misses the target costs most."""
    return orders[_DECISIVE] if orders.size > _DECISIVE.stop else orders


def guessed_above(votes: VoteModel, settings: Tuning, orders: Floats, bound: Bound) -> Floats:
    """Return an estimate of the accountant's cost divided by the quick cost, [DISTANCES].

    The distances are those of a search.
    """
    if bound is Bound.TWO_TAIL:
        more = _TWO_TAIL_OF_TWO if votes.classes == 2 else _TWO_TAIL
        more *= _TWO_TAIL_SHARED if votes.teachers_per_record > 1 else 1.0
        return np.full(_LOOKED.size, more)
    if votes.classes == 2 or settings.threshold is None:
        return np.ones(_LOOKED.size)
    least = orders[orders.size // 2] / settings.sigma2**2
    growth = np.clip(_GROWTH * (least - _NO_GROWTH), 0.0, _MOST_GROWTH)
    near = _NEAR_ABOVE + np.clip(_BY_CLASS * (votes.classes - _FEW_CLASSES), 0.0, _MOST_BY_CLASS)
    return near + growth * np.minimum(_LOOKED / _GROWS_UP_TO, 1.0)


def measured_above(votes: VoteModel, settings: Tuning, costs: QueryCosts) -> Floats:
    """Return the accountant's cost divided by the quick cost at some settings, [DISTANCES]."""
    middle = costs.orders.size // 2
    quick, _ = pair_costs(votes, [settings], costs.orders[middle : middle + 1])
    about = (quick[0, 0] @ votes.row_weights.mean(axis=0)) @ _TO_EVERY
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
    orders = decisive(orders) if rough else orders
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

    The ratio of exact and quick costs is computed at the first distances, and farther at the middle
    order. Beyond that it stays.

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
    quick, _ = pair_costs(votes, [settings], orders, cells=min(2 * votes.most_votes, most))
    quick = np.maximum(_TO_EVERY.T @ quick[0], 1e-12)
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

    above = ratios(middle, far)
    above = np.concatenate([above, np.repeat(above[-1:], DISTANCES - far, axis=0)])
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
    many, number = votes.most_votes > _MANY_TEACHERS, 120 if votes.is_file else 60
    if not rough:
        return (number, 12, 12) if many else (number, 24, _FARTHEST)
    if votes.is_file:
        return (number, 0, 6) if many else (number, 12, 24)
    return (40, 0, 8) if many else (number, 0, 12)


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
