"""RDP costs of queries by distance, and the probability that a run passes its release test.

The release test adds up the costs of the rows of a run at a few orders λ, for each distance d. The
cost of a row at distance d is its largest cost if d records change. The profile u_d is the sum of
the costs at distance d over all rows of a run. The release test passes with a probability p(u) that
depends on the profile u (`accounting.tested_budget`). A forecast needs the mean of p(u) over the
vote files that a vote model may give.

*Distribution of the profile.* For a file, the profile is the sum of the costs of its rows. A run on
made-up votes draws each of its rows independently from the rows of one ensemble. The run draws a
row with a probability that equals the weight of this row in the ensemble. The costs of a row at
different λ and d rise and fall together. The pass probability p(u) depends mostly on R, the sum of
the costs of all rows of the run at a middle order and a small distance. The profile is assumed to
be a linear function of R. The first three moments of R are known. The expansion of Cornish and
Fisher turns a standard normal variable into a variable with about the moments of R. The mean of
p(u) is approximately the expectation of a function of a standard normal variable. The approximate
mean of p(u) differs by .01 or .02 at most from the mean of p(u) over many runs on made-up votes.

*Approximate costs.* The approximate cost of a query is computed from two counts instead of its
whole histogram. A vote costs most if it moves between the two largest classes, and it then costs
about as much as if no other class existed. So a query becomes a pair (x, y). The largest count is
x. The rival count is the count at which a single rival would win as often as all losing classes
together. The other count of the pair, y, lies between the second largest count of the histogram and
the rival count. The larger the gap between the two largest counts, the closer is y to the rival
count, because with a large gap several losing classes contribute to the cost. Let p be the
probability of passing the threshold and w the probability that x wins. Let p' and w' be the values
of p and w after one vote has moved from one class to the other. With p, w, p' and w', the RDP cost
of the query at order λ is

  log[(1−p)^λ (1−p')^{1−λ} + p^λ p'^{1−λ} (w^λ w'^{1−λ} + (1−w)^λ (1−w')^{1−λ})] / (λ−1).

One changed vote adds 1 to x or y, subtracts 1 from x or y, or moves 1 between x and y. If d votes
change, the pair (x, y) can become any pair of a hexagon around (x, y). The cost of a query at
distance d is the largest cost of all pairs that (x, y) can become if d votes change. For each
choice of settings, the costs of all pairs on a grid are stored in a table, which takes a few
milliseconds. With 30 teachers or more, the sum of the approximate costs of all queries is within 5%
of the cost that the accountant computes. The worst-case cost of a query is estimated by the largest
cost that a pair (x, y) has if one vote changes. For the worst-case cost, the change of the largest
count, which is compared with the threshold, and the change of the gap between the two counts are
chosen independently, so that the cost is largest.

*Which costs are used.* `quick_costs` multiplies each approximate cost by a ratio of exact and
approximate cost, which the caller gives or a formula estimates. Searches use `quick_costs`. The
public rule also uses `quick_costs` when it chooses the number of rows, unless exact costs are
quick. `exact_costs` calls the functions that a run calls, for every distinct histogram. With the
conditional bound, exact costs take long if there are three or more classes, or two classes and many
made-up teachers. Then `exact_costs` computes exact costs only for the histograms with the largest
total cost and for some further histograms. For all other histograms, a regression on the pair (x,
y) estimates the ratio of exact and approximate cost.
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

# Distances at which approximate costs are computed. Costs at all other distances are interpolated.
_LOOKED = np.array([0, 1, 2, 4, 7, 11, 16, 23, 32, 47, 48, DISTANCES - 1])
_EVERY = np.arange(DISTANCES, dtype=np.float64)
# The number of cells along a side of the grid. For each σ2 of the gap, y is a tenth of the way
# closer to the count of the rival, but never more than half of the way.
_CELLS, _TOWARDS_RIVAL, _MOST_TOWARDS = 40, 0.1, 0.5
# With three or more classes some histograms cost more than any pair of counts. They cost still more
# if a record has several votes, which may go to different classes.
_WORST_OF_MORE, _WORST_OF_SHARED = 0.3, 0.25
_WORST_GAPS = np.linspace(0.0, 12.0, 97)
# The log probability of an event that does not happen. With minus infinity, later sums are NaN.
_NEVER = -1e300
# A row that costs almost nothing could be asked without end.
_ENDLESS = 1e15


def _to(distances: Floats, at: Floats) -> Floats:
    """Return weights that interpolate values at `distances` to the distances `at`, [distances, at].

    For a distance beyond the last of `distances`, the interpolated value is the value at the last
    of `distances`.
    """
    return np.stack([np.interp(at, distances, row) for row in np.eye(distances.size)])


_TO_EVERY = _to(_LOOKED, _EVERY)


def pair_costs(
    votes: VoteModel, settings: Sequence[Tuning], orders: Floats, *, cells: int = _CELLS
) -> tuple[Floats, Floats]:
    """Return the approximate cost of each row at several settings, and worst-case costs.

    Args:
        votes: the vote model.
        settings: the settings, all with the prior weight of `votes`.
        orders: λ, [orders].
        cells: the number of cells of the grid along each axis; with more cells, costs are more
            precise, and take longer.

    Returns:
        Costs at the distances `_LOOKED`, [settings, orders, distances, rows], and worst-case costs,
        [settings, orders], nats.
    """
    step = max(votes.most_records / cells, 1.0)
    size = int(np.ceil(votes.most_records / step)) + 1
    tables = np.array([_moves(votes, each, step, size, orders) for each in settings], np.float32)
    unit = votes.teachers_per_record * step
    places = [_pairs(votes, each.sigma2, unit, size) for each in settings]
    steps = np.unique(np.round(_LOOKED / step).astype(np.int64))
    onto = _to((steps * step).astype(np.float64), _LOOKED)
    found, reached = [], 0
    for distance in steps.tolist():
        tables = _grown(tables, distance - reached)
        reached = distance
        found.append([table[:, x, y] for table, (x, y) in zip(tables, places, strict=True)])
    costs = np.tensordot(onto, np.array(found, np.float64), (0, 0))
    worst = np.array([_worst_pair(votes, each, orders) for each in settings])
    if votes.classes > 2:
        shared = votes.teachers_per_record > 1 and not votes.votes_together
        worst *= 1.2 - _WORST_OF_MORE / votes.classes + _WORST_OF_SHARED * shared
    return np.moveaxis(costs, 0, 2), worst


def _pairs(votes: VoteModel, sigma2: float, unit: float, size: int) -> tuple[Ints, Ints]:
    """Return the place of the pair (x, y) of each row on a grid: indices of x and of y, [rows].

    A cell is `unit` votes wide. With two classes y is at most the number of votes minus x. With
    three or more classes y may be larger than the number of votes minus x, because y stands for
    several classes.
    """
    x, second = votes.largest_two
    towards = np.minimum(_TOWARDS_RIVAL * (x - second) / sigma2, _MOST_TOWARDS)
    y = second + towards * np.maximum(votes.rival(sigma2) - second, 0.0)
    y = np.clip(y, 0.0, votes.most_votes - x if votes.classes == 2 else x)
    most, rival = (np.round(count / unit).astype(np.int64) for count in (x, y))
    return np.minimum(most, size - 1), np.minimum(rival, size - 1)


def _moves(votes: VoteModel, settings: Tuning, step: float, size: int, orders: Floats) -> Floats:
    """Return the cost of each pair (x, y) if one record moves its votes between the two counts.

    The result has the shape [orders, x, y] and is in nats. The counts of the grid are multiples of
    `step` times the number of votes of a record.
    """
    record, two_classes = votes.teachers_per_record, votes.classes == 2
    places, order = np.arange(size), orders[:, None, None]
    x, y = places[:, None], places[None, :]
    noise = np.sqrt(2.0) * settings.sigma2 / record
    gaps = np.arange(1 - size, size) * (step / noise)
    wins = _log_coin(gaps), _log_coin(gaps - 2.0 / noise)
    # The largest count is either x, which loses a vote, or y, which gains a vote.
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
    if two_classes:
        worst[:, (x + y) * step >= votes.most_records + step] = 0.0
    return worst


def _worst_pair(votes: VoteModel, settings: Tuning, orders: Floats) -> Floats:
    """Return the largest cost that a pair (x, y) has if one record changes, [orders], nats.

    The change of the largest count, which is compared with the threshold, and the change of the gap
    between the two counts are chosen independently, so that the cost is largest.
    """
    record, most, order = votes.teachers_per_record, votes.most_records, orders[:, None]
    noise = np.sqrt(2.0) * settings.sigma2 / record
    counts = np.arange(-1.0, most + 2.0)
    # The worst case of gnmax allows any number of votes on a query.
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
    """Return log probabilities that a largest count passes the threshold, and that it fails.

    The result has the shape [2, ...]. Without a threshold, every count passes with probability 1.

    Args:
        settings: the settings of the run.
        record: how many votes one record changes.
        counts: largest counts in votes, divided by `record`, [...].
    """
    if settings.threshold is None or settings.sigma1 is None:
        return np.multiply.outer([0.0, _NEVER], np.ones(counts.shape))
    return _log_coin((counts * record - settings.threshold) / settings.sigma1)


def _log_coin(z: Floats) -> Floats:
    """Return log Φ(z) and log Φ(−z): an event of probability Φ(z), and its opposite, [2, ...]."""
    return np.stack([log_ndtr(z), log_ndtr(-z)])


def _moments(before: Floats, after: Floats, order: Floats) -> Floats:
    """Return logs of p^λ p'^{1−λ} for an event and for its opposite, [2, orders, ...].

    Args:
        before: log p of the event and of its opposite, before a vote changes, [2, ...].
        after: log p' of the event and of its opposite, after a vote has changed, [2, ...].
        order: λ, with as many dimensions as [orders, ...].
    """
    return order * before[:, None] + (1.0 - order) * after[:, None]


def _grown(tables: Singles, steps: int) -> Singles:
    """Return cost tables in which each cell has the largest cost of all cells near it.

    A cell stands for a pair of counts (x, y). Two cells are near each other if at most `steps`
    moves lead from one cell to the other. A move adds 1 to x or y, subtracts 1 from x or y, or
    moves 1 between x and y.
    """
    for dx, dy in ((1, 0), (0, -1), (-1, 1)):
        reached = 0
        while reached < steps:
            more = min(reached + 1, steps - reached)
            tables = _with_shifted(tables, more * dx, more * dy)
            reached += more
    return tables


def _with_shifted(tables: Singles, dx: int, dy: int) -> Singles:
    """Return cost tables: each cell has the larger of its cost and that of the cell at (dx, dy)."""
    size = tables.shape[-1]
    larger = tables.copy()
    if max(abs(dx), abs(dy)) >= size:
        return larger
    to_x, to_y = (slice(max(-by, 0), size - max(by, 0)) for by in (dx, dy))
    from_x, from_y = (slice(max(by, 0), size - max(-by, 0)) for by in (dx, dy))
    here = larger[..., to_x, to_y]
    np.maximum(here, tables[..., from_x, from_y], out=here)
    return larger


# Which of the orders of a target decide about runs whose cost is near the target.
_DECISIVE = slice(3, 6)
# With more than 120 votes, fewer distances are computed exactly. If histograms are slow, a run
# computes costs for 48 distances only.
_MANY_TEACHERS, _FARTHEST = 120, 48
# How many cells the grid has if exact costs correct its costs, and with two classes. With two
# classes a histogram is a pair of counts, and 240 cells give the exact cost within .1%. With more
# than 250 votes they replace the exact cost, whose time grows with the square of the votes.
_CLOSE_CELLS, _CELLS_OF_TWO, _FEW_VOTES = 120, 240, 250
# How many histograms are computed if each is slow and the mechanism has no approximate costs.
_MOST_STATES = 400
# The ratio of exact and approximate cost at distance 0, under the conditional bound of
# Confident-GNMax. If λ/σ2² is large, the ratio grows up to distance 12.
_NEAR_ABOVE, _GROWTH, _NO_GROWTH, _MOST_GROWTH, _GROWS_UP_TO = 1.0, 1.5, 0.08, 0.5, 12.0
# With more than 10 classes this ratio is slightly larger.
_BY_CLASS, _FEW_CLASSES, _MOST_BY_CLASS = 0.004, 10, 0.03
# The ratio of exact and approximate cost under the two-tail bound, with two classes and with more.
# The last number is a further factor if a record changes several votes on a query.
_TWO_TAIL_OF_TWO, _TWO_TAIL, _TWO_TAIL_SHARED = 1.1, 1.45, 1.5
_NODES, _NODE_WEIGHTS = np.polynomial.hermite_e.hermegauss(3)
_NODE_WEIGHTS = _NODE_WEIGHTS / _NODE_WEIGHTS.sum()


@dataclass(frozen=True, eq=False)
class QueryCosts:
    """RDP costs of the rows of a vote model, by order and distance.

    Rows with equal costs are one state. The costs of a file of private votes are SECRET.

    Attributes:
        orders: λ, [orders].
        costs: the cost of each state, [orders, distances, states], nats. If costs are known at the
            distances `_LOOKED` only, costs at all other distances are interpolated.
        worst: the worst-case cost of a row, [orders], nats.
        weights: the probability that a made-up run draws each state, [ensembles, states]; None for
            a file.
        places: for a file, the state of each row, in order, [rows]. For made-up votes, `places` is
            not used.
        available: the number of rows of the file. The vote model may hold only a sample of the rows
            of the file.
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
        """Return the pass probability of runs with these numbers of rows, [ensembles, rows].

        Args:
            target: ε, δ and the cost of a failed release test.
            rows: the numbers of rows of several runs, [rows]. If the votes are a file, a run of n
                rows asks the first n rows of the file.
            ceiling: worst-case cost of each number of rows, [rows, orders], nats; if left out, it
                is the number of rows times `worst`. Give `ceiling` if the run has a limit on the
                number of answers, which makes the worst-case cost smaller.
        """
        return pass_probabilities(target, [(self, rows)], ceiling=ceiling)[0]

    def profiles(self, rows: Ints, ceiling: Floats | None = None) -> Floats:
        """Return the profile of each run: the RDP cost of all its rows, by order and distance.

        The shape is [values of R, ensembles, rows, orders, distances], in nats. The arguments are
        those of `pass_probability`. R is described at the top of this module.
        """
        most = np.outer(rows, self.worst) if ceiling is None else ceiling
        if self.weights is None:
            found = self._of_first(rows)[None, None]
        else:
            found = self._by_factor(rows, self.weights)
        return np.clip(found, 0.0, most[..., None])

    def untested(self, target: TargetPlan) -> float:
        """Return about how many rows a run may ask with a worst-case ε of at most the target."""
        room = target.epsilon - conversion_cost(self.orders, delta=target.delta)
        return float((room / np.maximum(self.worst, np.abs(room) / _ENDLESS)).max())

    def _of_first(self, rows: Ints) -> Floats:
        """Return the RDP cost of the first n rows of a file together, for each n in `rows`.

        The shape is [rows, orders, distances], in nats.
        """
        looked = self.places.size
        seen = np.clip(np.round(rows * (looked / self.available)), 1, looked).astype(np.int64)
        number = [np.bincount(self.places[:each], minlength=self.costs.shape[-1]) for each in seen]
        if self.few is not None:
            return np.stack([summed(self.few, self.costs, each) for each in number])
        return np.tensordot(np.array(number) * (rows / seen)[:, None], self.costs, axes=(1, 2))

    def _by_factor(self, rows: Ints, weights: Floats) -> Floats:
        """Return profiles of runs on made-up votes, which are assumed to be linear in R.

        The shape is [values of R, ensembles, rows, orders, distances], in nats.
        """
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
    """Return pass probabilities for several choices of settings; one call is faster than several.

    Args:
        target: ε, δ and the cost of a failed release test.
        asked: for each choice of settings, the costs and the numbers of rows.
        ceiling: as in `QueryCosts.pass_probability`.

    Returns:
        For each choice of settings, the pass probabilities, [ensembles, rows].
    """
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
    """Return the approximate costs of several settings, for a search.

    Args:
        votes: the vote model.
        settings: the settings, all with the prior weight of `votes`.
        target: the target, which determines the orders.
        bound: the kind of upper bound that the release test uses for the RDP cost of the votes.
        available: how many rows the file has, if `votes` are a sample of its rows.
        above: known ratios of exact and approximate cost, [DISTANCES]; the keys say whether the
            settings have a threshold. Unknown ratios are estimated.
    """
    orders, places, found = _decisive(target.orders), np.arange(votes.rows), []
    for each, worst, setting in zip(*pair_costs(votes, settings, orders), settings, strict=True):
        known = (above or {}).get(setting.threshold is not None)
        factor = guessed_above(votes, setting, orders, bound) if known is None else known[_LOOKED]
        cost = each * factor[:, None]
        # The two-tail bound of a single query may exceed its worst-case cost.
        if bound is not Bound.TWO_TAIL:
            if votes.mechanism(setting).slow_states:  # a run computes no costs at such distances
                cost[:, _LOOKED >= _FARTHEST] = np.inf
            cost = np.minimum(cost, worst[:, None, None])
        found.append(
            QueryCosts(orders, cost, worst, votes.weights, places, available or votes.rows)
        )
    return found


def _decisive(orders: Floats) -> Floats:
    """Return those of `orders` that decide whether a run passes if its cost is near the target."""
    return orders[_DECISIVE] if orders.size > _DECISIVE.stop else orders


def guessed_above(votes: VoteModel, settings: Tuning, orders: Floats, bound: Bound) -> Floats:
    """Return an estimate of the ratio of exact and approximate cost at the distances `_LOOKED`."""
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
    """Return the mean exact cost of the rows of a file, divided by the approximate, [DISTANCES]."""
    middle = costs.orders.size // 2
    quick, _ = pair_costs(votes, [settings], costs.orders[middle : middle + 1])
    about = (quick[0, 0] @ votes.row_weights[0]) @ _TO_EVERY
    exact = costs.costs[middle][:, costs.places].mean(axis=-1)
    return np.asarray(exact / np.maximum(about, 1e-300))


def exact_costs(
    votes: VoteModel,
    mechanism: ScoredMechanism,
    target: TargetPlan,
    *,
    rows: int,
    rough: bool = False,
) -> QueryCosts:
    """Return the costs that a run would compute, at its orders and by its bound.

    Args:
        votes: the vote model. The prior of `votes` must cast as many votes on each query as the
            prior of `mechanism`; without a prior this number is 0.
        mechanism: the mechanism of the run.
        target: ε, δ, the cost of a failed release test, and the caller's choice of `bound`, the
            upper bound on the RDP cost of the votes that the release test uses.
        rows: about how many rows the run asks, because the bound `auto` depends on this number.
        rough: whether fewer orders, histograms and distances are enough, which is quicker.
    """
    bound = settled_bound(target.bound, mechanism, rows=rows, orders=target.orders)
    states = states_for(bound, mechanism, highest_order=float(target.orders[-1]))
    orders = coin_orders(bound, mechanism, target.orders)
    orders = _decisive(orders) if rough else orders
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
    """Return approximate costs, corrected by a few exact costs, [orders, DISTANCES, rows], nats.

    Each approximate cost is multiplied by an estimate of the ratio of exact and approximate cost.
    The ratio of exact and approximate cost is estimated from the exact costs of some histograms at
    small distances. At the middle order, exact costs may be computed at more distances than at the
    other orders. Beyond the largest distance with exact costs, the ratio of exact and approximate
    cost does not change with the distance.

    Args:
        votes: a vote model with one row for each state.
        settings: the settings of the run.
        orders: λ, [orders].
        states: the state of each row, which is the result of the mechanism's `vote_states`, [rows,
            numbers in a state].
        times: the probability that a row of a run has each state, or a multiple of this
            probability, [rows].
        care: for how many histograms, and at how many distances, exact costs are computed; from
            `_care`.
    """
    mechanism, middle = votes.mechanism(settings), orders.size // 2
    most = _CLOSE_CELLS if votes.classes > 2 else _CELLS_OF_TWO
    quick, _ = pair_costs(votes, [settings], orders, cells=min(2 * votes.most_votes, most))
    quick = np.maximum(_TO_EVERY.T @ quick[0], 1e-12)
    if votes.classes == 2:  # a histogram of two classes is its pair of counts
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
    if mechanism.slow_states:  # a run computes no costs at such distances
        found[:, _FARTHEST:] = np.inf
    return np.maximum.accumulate(found, axis=1)


def _care(votes: VoteModel, *, rough: bool) -> tuple[int, int, int]:
    """Return for how many histograms, and at how many distances, to compute exact costs.

    The first number counts histograms, the second counts distances at every order except the middle
    order, and the third counts distances at the middle order. If the second number of the result is
    0, all orders use the ratios of exact and approximate cost at the middle order. Time grows with
    the square of the number of distances. With few votes, exact costs at more distances are worth
    the time, because one vote is then a large part of all votes.
    """
    many, number = votes.most_votes > _MANY_TEACHERS, 120 if votes.is_file else 60
    if not rough:
        return (number, 12, 12) if many else (number, 24, _FARTHEST)
    if votes.is_file:
        return (number, 0, 6) if many else (number, 12, 24)
    return (40, 0, 8) if many else (number, 0, 12)


def _worth_pricing(weights: Floats, number: int) -> Ints:
    """Return the indices of the histograms for which exact costs are computed.

    The result has the histograms with the largest `weights`, which are their total approximate
    costs, and a sample of the other histograms. At most `number` histograms are returned. The
    histograms of the sample are evenly spaced in the order of their weights.
    """
    if weights.size <= number:
        return np.arange(weights.size)
    order = np.argsort(-weights)
    most = 2 * number // 3
    others = np.linspace(most, weights.size - 1, number - most).round().astype(np.int64)
    return np.sort(np.concatenate([order[:most], order[others]]))


def _fitted(ratio: Floats, cost: Floats, known: Floats, features: Floats) -> Floats:
    """Return ratios of exact and approximate cost from a regression, [distances, histograms].

    Args:
        ratio: the ratio of exact and approximate cost, for the histograms whose exact costs are
            known, [distances, known histograms].
        cost: the total approximate cost of each histogram whose exact costs are known, [distances,
            known histograms]. `cost` is the weight of each histogram in the regression.
        known: the features of the histograms whose exact costs are known, [known histograms,
            features].
        features: the features of all histograms, [histograms, features].
    """
    found = np.empty((len(ratio), len(features)))
    for distance, each in enumerate(ratio):
        weight = np.sqrt(cost[distance] / cost[distance].max())[:, None]
        fitted, *_ = np.linalg.lstsq(known * weight, each * weight[:, 0], rcond=1e-6)
        found[distance] = np.clip(features @ fitted, each.min(), each.max())
    return found


def _features(votes: VoteModel, settings: Tuning) -> Floats:
    """Return the features of each row for the regression in `_fitted`, [rows, 6].

    The features are the products, up to degree 2, of two numbers: the largest count, and a count
    that stands for all other classes.
    """
    x, second = votes.largest_two
    y = 0.5 * (second + votes.rival(settings.sigma2)) / votes.most_votes
    x = x / votes.most_votes - 0.5
    return np.column_stack([np.ones(x.size), x, y, x * x, x * y, y * y])
