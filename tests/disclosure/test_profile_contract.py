"""(P1) and (P2), and the promise of the coin on long files, for every kind of states there is.

**To register a kind of states, add one line to `KINDS`**: how to build its mechanism for an
ensemble, and what else there is to it. Everything below is inherited from that:

  - (P1) exact divergences between neighbours, u_0 above each;
  - (P2) u_d(D') ≤ u_{d+1}(D) at all distances, both ways;
  - for files of thousands of equal rows, with the coins that a run would draw, both of

      (A) p H_{e^ε p'/p}(M ‖ M') ≤ δ        (B) 1 − p' ≤ e^η (1 − p)

    for ordered pairs of neighbours, and with them the whole at ε: P[S] − e^ε P'[S] ≤ δ.

Neighbours are met along walks of dozens of votes, most of them from the winner to the runner-up.
Whole graphs of small ensembles (test_whole_law) never come as far as ten votes away from anything.
`test_every_mechanism_and_bound_is_under_contract` fails for states without a kind.

PATE_CONTRACT=10 walks ten times as many ways.
"""

from __future__ import annotations

import bisect
import copy
import functools
import itertools
import os
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pytest

from beside import a_student
from divergences import hockey_stick, renyi
from graphs import neighbours_of
from laws import checked_argmax_law, gaussian_argmax_law, laplace_argmax_law
from many_rows import hockey_stick_of_rows
from pate_cli import GNMax, InteractiveGNMax
from pate_cli.accounting.tested_budget import DISTANCES
from pate_cli.core.errors import UsageError
from pate_cli.core.words import Bound, MechanismName
from pate_cli.disclosure.target import TargetPlan, check_states, states_for
from pate_cli.mechanisms import CLASSES, mechanism_class
from pate_cli.mechanisms.base import ScoredMechanism
from slices import chosen, some

WALKS = 4 * int(os.environ.get("PATE_CONTRACT", "1"))
STEPS, SAME_WAY = 24, 8
# For every walk in turn, steps about which files are as likely to pass as this, the rest being δ;
# where nearly all agree and few files pass, wrong costs tell most.
PLACES = (((1, 0.1), (3, 0.4)), ((5, 0.9),), ((2, 0.1), (12, 0.6)), ((20, 0.02),))
AROUND = 2
# Every so manyth histogram is held against all its neighbours.
ASIDE = 5
ROWS = [round(2.0 ** (place / 3.0)) for place in range(70)]
# Round-off of sums, and of the quadratures behind exact laws.
TINY, NOTHING = 1e-12, 1e-20


# ---------------------------------------------------------------- mechanisms and their laws


@dataclass(frozen=True)
class Size:
    """An ensemble and what is promised to it.

    Attributes:
        teachers: τ.
        noise: standard deviation or scale of the noise on counts, a share of the teachers.
        test_noise: of that on the largest count.
        threshold: a share of the teachers.
        plan: the target.
    """

    teachers: int
    noise: float
    test_noise: float
    threshold: float
    plan: TargetPlan


BUILD = {
    "gnmax": lambda size: {"sigma2": size.noise},
    "confident": lambda size: {
        "threshold": size.threshold, "sigma1": size.test_noise, "sigma2": size.noise
    },
    "interactive": lambda size: {
        "threshold": 0.3, "sigma1": size.test_noise, "sigma2": size.noise
    },
    "lnmax": lambda size: {"laplace_scale": size.noise},
}  # fmt: skip
"""The parameters of a mechanism, as shares of the teachers."""


def law_after_a_test(m, counts, scores=None):
    noise = {"sigma": m.sigma2, "sigma1": m.sigma1, "threshold": m.threshold}
    return checked_argmax_law(counts, scores=scores, **noise)


LOG_LAW = {
    "gnmax": lambda m, counts: gaussian_argmax_law(counts, m.sigma2),
    "confident": law_after_a_test,
    "interactive": lambda m, counts: law_after_a_test(
        m, counts, (counts - m.most_votes * m.predictions).max(axis=1)
    ),
    "lnmax": lambda m, counts: laplace_argmax_law(counts, m.laplace_scale),
}


# ---------------------------------------------------------------- the kinds of states


def plan(epsilon, delta, share):
    return TargetPlan(epsilon, delta, share * epsilon)


SIZES = (
    Size(20, 0.2, 0.02, 0.6, plan(3.0, 0.1, 1.0)),
    Size(60, 0.1, 0.12, 0.8, plan(1.0, 1e-2, 0.5)),
    Size(150, 0.02, 0.2, 0.5, plan(0.4, 1e-5, 0.5)),
    Size(300, 0.1, 0.05, 0.7, plan(0.2, 1e-3, 1.0)),
)
# Where little noise takes long.
LOUD = (
    SIZES[0],
    Size(60, 0.12, 0.05, 0.8, plan(2.0, 1e-3, 0.5)),
    Size(150, 0.07, 0.2, 0.6, plan(0.4, 1e-5, 1.0)),
    Size(200, 0.06, 0.03, 0.7, plan(0.2, 1e-2, 1.0)),
)


@dataclass(frozen=True)
class Kind:
    """A kind of states.

    Attributes:
        mechanism: its name.
        bound: what the states are of.
        classes: m.
        votes: how many votes of a row one record moves.
        together: they are votes of one teacher that counts for so many.
        rows: how many rows of votes a query is.
        quick: whether all orders take no time worth telling.
        sizes: ensembles.
        prior: how many votes a public guess at the first class has, a share of the teachers.
    """

    mechanism: str
    bound: Bound = Bound.TWO_TAIL
    classes: int = 3
    votes: int = 1
    together: bool = False
    rows: int = 1
    quick: bool = False
    sizes: tuple[Size, ...] = SIZES
    prior: float = 0.0

    def build(self, size):
        parameters = BUILD[self.mechanism](size)
        told = {name: share * size.teachers for name, share in parameters.items()}
        told |= {"teachers_per_record": self.votes, "votes_together": self.together}
        if self.prior:
            told["prior_weight"] = round(self.prior * size.teachers)
        return mechanism_class(self.mechanism)(size.teachers, self.classes, **told)

    @property
    def covers(self):
        return (self.mechanism, self.bound, self.classes > 2, self.votes > 1)


CONDITIONAL = Bound.CONDITIONAL
FEW = SIZES[1::2]
KINDS = {
    "gnmax": Kind("gnmax"),
    "gnmax, two classes": Kind("gnmax", classes=2, quick=True),
    "gnmax, two votes a record": Kind("gnmax", votes=2, sizes=FEW),
    "gnmax, two classes, two votes a record": Kind("gnmax", classes=2, votes=2),
    "gnmax, teachers that count three": Kind("gnmax", votes=3, together=True, sizes=FEW),
    "gnmax, three labels": Kind("gnmax", classes=2, rows=3, sizes=FEW),
    "gnmax, four classes": Kind("gnmax", classes=4, sizes=FEW),
    "confident": Kind("confident", classes=4),
    "confident, two classes": Kind("confident", classes=2),
    "confident, two votes a record": Kind("confident", votes=2, sizes=FEW),
    "confident, two classes, two votes a record": Kind("confident", classes=2, votes=2),
    "confident, teachers that count four": Kind("confident", votes=4, together=True, sizes=FEW),
    "confident, two labels": Kind("confident", classes=2, rows=2, sizes=FEW),
    "interactive": Kind("interactive"),
    "interactive, two classes": Kind("interactive", classes=2),
    "interactive, two votes a record": Kind("interactive", votes=2, sizes=FEW),
    "interactive, two classes, two votes a record": Kind("interactive", classes=2, votes=2),
    "gnmax, a prior": Kind("gnmax", prior=0.3, sizes=FEW),
    "gnmax, exact states, a prior": Kind("gnmax", CONDITIONAL, classes=2, prior=1.2, quick=True),
    "gnmax, conditional, a prior": Kind("gnmax", CONDITIONAL, prior=0.3, sizes=LOUD[3:]),
    "confident, a prior": Kind("confident", prior=0.3, sizes=FEW),
    "confident, two votes a record, a prior": Kind("confident", votes=2, prior=0.3, sizes=FEW),
    "confident, conditional, a prior": Kind("confident", CONDITIONAL, prior=0.3, sizes=LOUD[:1]),
    "confident, exact states, a prior": Kind(
        "confident", CONDITIONAL, classes=2, prior=0.3, quick=True, sizes=FEW
    ),
    "interactive, a prior": Kind("interactive", prior=0.3, sizes=FEW),
    "lnmax": Kind("lnmax"),
    "lnmax, two classes": Kind("lnmax", classes=2),
    "lnmax, two votes a record": Kind("lnmax", votes=2),
    "lnmax, two classes, two votes a record": Kind("lnmax", classes=2, votes=2),
    "gnmax, conditional": Kind("gnmax", CONDITIONAL, sizes=LOUD),
    "gnmax, conditional, four classes": Kind("gnmax", CONDITIONAL, classes=4, sizes=LOUD[3:]),
    "gnmax, exact states": Kind("gnmax", CONDITIONAL, classes=2, quick=True),
    "gnmax, exact states, two labels": Kind("gnmax", CONDITIONAL, classes=2, rows=2),
    "confident, conditional": Kind("confident", CONDITIONAL, sizes=(LOUD[0], *LOUD[2:])),
    "confident, conditional, a prior, much noise": Kind(
        "confident", CONDITIONAL, prior=0.3, sizes=(Size(20, 0.6, 0.1, 0.6, plan(3.0, 0.1, 1.0)),)
    ),
    "confident, conditional, four classes": Kind(
        "confident", CONDITIONAL, classes=4, sizes=LOUD[3:]
    ),
    "confident, exact states": Kind("confident", CONDITIONAL, classes=2, quick=True),
    "confident, exact states, two labels": Kind("confident", CONDITIONAL, classes=2, rows=2),
    "interactive, conditional": Kind("interactive", CONDITIONAL, sizes=LOUD[::3]),
    "interactive, conditional, two classes": Kind("interactive", CONDITIONAL, classes=2, sizes=FEW),
}


def test_every_mechanism_and_bound_is_under_contract():
    """Whatever has states has a kind: few classes and many, one vote a record and several."""
    scored = {name for name in CLASSES if issubclass(mechanism_class(name), ScoredMechanism)}
    assert scored == set(BUILD) == set(LOG_LAW)
    found = set()
    settled = set(Bound) - {Bound.AUTO}
    for name, bound, classes, votes in itertools.product(scored, settled, (2, 3), (1, 2)):
        one = Kind(MechanismName(name), bound, classes, votes)
        try:
            check_states(bound, one.build(SIZES[0]), rows=1, orders=np.array([5.0]))
        except UsageError:
            continue
        found.add(one.covers)
    assert found == {kind.covers for kind in KINDS.values()}


# ---------------------------------------------------------------- walks


def moved(counts, rule, random, teachers, *, votes):
    """A row of votes after so many votes of one class have moved by a rule; as it is if none can.

    A class stands for no vote where votes may be missing.
    """
    winner, runner_up = np.argsort(-counts, kind="stable")[:2]
    a, b = {
        "down": (winner, runner_up),
        "up": (runner_up, winner),
        "any": random.permutation(counts.size)[:2],
        "from the winner": (winner, random.integers(counts.size)),
        "withdrawn": (winner, None),
        "cast": (None, runner_up),
    }[rule]
    after = counts.copy()
    votes = min(votes, teachers - counts.sum() if a is None else counts[a])
    if a is not None:
        after[a] -= votes
    if b is not None:
        after[b] += votes
    return after


RULES = ("up", "any", "from the winner", "withdrawn", "cast", "down")


def walk(kind, size, random, number):
    """Queries each a neighbour of the one before, [STEPS + 1, rows, classes]."""
    m = kind.classes
    chances = {
        0: np.append(0.97, np.full(m - 1, 0.03 / (m - 1))),
        1: np.append([0.55, 0.45], np.zeros(m - 2)),
        2: np.append([0.9, 0.1], np.zeros(m - 2)),
        3: random.dirichlet(np.full(m, 0.5)),
    }[number % 4]
    present = size.teachers - random.integers(0, 1 + size.teachers // 10) * (number % 2)
    query = random.multinomial(present, chances, size=kind.rows)
    found = [query]
    for step in range(STEPS):
        if step % SAME_WAY == 0:
            rule = "down" if step == 0 else RULES[random.integers(len(RULES))]
        query = query.copy()
        for row in range(kind.rows):
            if kind.rows > 1 and random.random() < 0.2:
                continue
            for _ in range(1 if kind.together else kind.votes):
                taken = random.integers(1, kind.votes + 1) if kind.together else 1
                query[row] = moved(query[row], rule, random, size.teachers, votes=taken)
        found.append(query)
    return np.array(found)


@dataclass(frozen=True)
class Walks:
    """Queries on the walks of one kind in one ensemble, their costs by distance and their laws."""

    kind: Kind
    size: Size

    @cached_property
    def queries(self):
        """[walks, steps + 1, rows, classes]."""
        random = np.random.default_rng(self.size.teachers)
        return np.array([walk(self.kind, self.size, random, at) for at in range(WALKS)])

    @property
    def counts(self):
        guess = self.mechanism.prior_weight * np.eye(self.kind.classes, dtype=np.int64)[0]
        return self.queries.reshape(-1, self.kind.classes) + guess

    @cached_property
    def mechanism(self):
        return self.kind.build(self.size)

    def bound_to(self, places):
        """The mechanism bound to queries, by the places of histograms that share their students.

        Every walk has a student of its own, since neighbours share it.
        """
        if not isinstance(self.mechanism, InteractiveGNMax):
            return self.mechanism
        students = np.random.default_rng(7).dirichlet(np.full(self.kind.classes, 0.7), size=WALKS)
        each = len(self.counts) // WALKS
        return replace(self.mechanism, predictions=a_student(students[places // each]))

    def law_of(self, places, counts):
        """log probabilities [rows, outcomes] for histograms in these places, or beside them."""
        return LOG_LAW[self.kind.mechanism](self.bound_to(places), counts)

    @cached_property
    def orders(self):
        """Λ, or some of it with the largest."""
        every = self.size.plan.orders
        return every if self.kind.quick else every[1::3]

    @cached_property
    def ceiling(self):
        """What a query costs for all votes, [orders]."""
        rows = self.kind.rows
        return self.mechanism.worst_rdp(queries=rows, answers=rows, orders=self.orders)

    @cached_property
    def costs(self):
        """u_d, [walks, steps + 1, orders, distances]."""
        bound_to, highest = self.bound_to(np.arange(len(self.counts))), self.size.plan.orders[-1]
        asked = (self.kind.bound, self.mechanism, bound_to, self.counts, self.orders)
        found = costs_of(*asked, highest=float(highest))
        assert found.shape == (self.orders.size, DISTANCES, len(self.counts))
        found = found.reshape(*found.shape[:2], *self.queries.shape[:3]).sum(axis=-1)
        return np.moveaxis(found, (2, 3), (0, 1))

    @cached_property
    def log_law(self):
        """Of all rows of a query together, [walks, steps + 1, outcomes]."""
        law = self.law_of(np.arange(len(self.counts)), self.counts)
        law = law.reshape(*self.queries.shape[:3], -1)
        joint = law[:, :, 0]
        for row in range(1, self.kind.rows):
            joint = (joint[..., None] + law[:, :, row, None, :]).reshape(*joint.shape[:2], -1)
        np.testing.assert_allclose(np.exp(joint).sum(axis=-1), 1.0, rtol=0.0, atol=1e-10)
        return joint

    @staticmethod
    def ways(found):
        """(here, there) of neighbours, one way and the other, for something by walk and step."""
        return (found[:, :-1], found[:, 1:]), (found[:, 1:], found[:, :-1])

    def farther(self):
        """The largest u_d(D')/u_{d+1}(D)."""
        return max(largest(there[..., :-1], here[..., 1:]) for here, there in self.ways(self.costs))

    def at_most(self):
        """The largest D_λ(M(D) ‖ M(D'))/u_0(D) along the walks."""
        pairs = zip(self.ways(self.log_law), self.ways(self.costs), strict=True)
        return max(self.share(here, there, cost) for (here, there), (cost, _) in pairs)

    def at_most_aside(self):
        """The same to every neighbour of some histograms.

        Where a prior votes, to those as well in which one of its votes has moved.
        """
        places = np.arange(0, len(self.counts), ASIDE)
        aside = [neighbours_of(self.counts[place]) for place in places]
        aside = [found[found.sum(axis=1) <= self.mechanism.most_votes] for found in aside]
        places = np.repeat(places, [len(found) for found in aside])
        here = self.law_of(places, self.counts[places])
        there = self.law_of(places, np.concatenate(aside))
        costs = self.costs.reshape(len(self.counts), *self.costs.shape[2:])
        return self.share(here, there, costs[places])

    def share(self, here, there, cost):
        """The largest D_λ(here ‖ there)/u_0 of all these at any order."""
        return max(
            largest(renyi(here, there, order) - NOTHING, cost[..., index, 0])
            for index, order in enumerate(self.orders.tolist())
        )

    def coins(self, number, middle, rows):
        """Coins of files of so many equal rows for the steps around one, by step."""
        around = range(max(0, middle - AROUND), min(STEPS, middle + AROUND) + 1)
        return {step: self.coin(number, step, rows) for step in around}

    def coin(self, number, step, rows):
        costs = rows * self.costs[number, step]
        return coin_of(self.size.plan, self.orders, costs, rows * self.ceiling)

    def rows_passing(self, number, step, share):
        """The first of `ROWS` at which a file is less likely to pass than this share and δ."""
        chance = share + (1.0 - share) * self.size.plan.delta
        place = bisect.bisect(
            ROWS, False, key=lambda rows: self.coin(number, step, rows).chance < chance
        )
        return ROWS[min(place, len(ROWS) - 1)]

    def broken(self):
        """How far beyond (A), (B) and the whole's promise any pair of files is, as factors."""
        worst = np.zeros(3)
        target = self.size.plan
        for number in range(WALKS):
            for middle, share in PLACES[number % len(PLACES)]:
                rows = self.rows_passing(number, middle, share)
                coins = self.coins(number, middle, rows)
                for step, other in itertools.pairwise(coins):
                    for here, there in ((step, other), (other, step)):
                        laws = [self.log_law[number, at] for at in (here, there)]
                        found = excesses((coins[here], coins[there]), laws, rows, target)
                        worst = np.maximum(worst, found)
        return worst


def costs_of(bound, mechanism, bound_to, counts, orders, *, highest):
    """u_d of histograms, [orders, distances, histograms]."""
    states = states_for(bound, mechanism, highest_order=highest)
    of = states.of(bound_to, counts)
    return np.stack([states.costs(order, of) for order in orders.tolist()])


def coin_of(target, orders, costs, ceiling):
    """The coin of a file whose rows together cost so much, [orders, distances]."""
    by_order = dict(zip(orders.tolist(), costs, strict=True))
    return target.coin(by_order.__getitem__, ceiling, orders=orders)


def largest(these, those):
    """The largest quotient; what is at most 0 is none."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.where(these > 0.0, these / those, 0.0).max())


def excesses(coins, laws, rows, target):
    """(A)/δ, (B)/e^η and the whole's excess/δ for an ordered pair of files of equal rows."""
    here, there = coins
    labels = hockey_stick_of_rows(
        *laws, rows, target.epsilon + there.log_pass - here.log_pass
    ) * np.exp(here.log_pass)
    refused = np.exp(here.log_refuse) - np.exp(target.epsilon + there.log_refuse)
    whole = labels + max(0.0, refused)
    again = np.exp(there.log_refuse - here.log_refuse - target.refusal_epsilon)
    return labels / target.delta, again, whole / target.delta


@functools.cache
def walks_of(name, place):
    return Walks(KINDS[name], KINDS[name].sizes[place])


def every_walk(name):
    """What walks cost takes long, and is found once: all of a kind is tested in one place."""
    return [walks_of(name, place) for place in range(len(KINDS[name].sizes))]


# Some of every mechanism and bound.
SLICE = chosen(
    KINDS,
    {
        "gnmax", "gnmax, conditional, four classes",
        "gnmax, exact states", "gnmax, teachers that count three", "confident",
        "confident, conditional, a prior, much noise",
        "interactive", "interactive, conditional, two classes",
        "lnmax",
    },
)  # fmt: skip


@pytest.mark.parametrize("name", SLICE)
def test_states_of_every_kind_keep_the_contract(name):
    """(P1), (P2) and the promise of long files; and that distances not their own would be seen.

    But where 63 records suffice for a tie whatever the votes: then all costs are the same. So they
    are where states are dear, whose farthest distances cost what any votes do.
    """
    kind, taken = KINDS[name], some(every_walk(name)[::-1], 2)
    for walks in taken:
        size = walks.size
        assert 0.3 < walks.at_most() <= 1.0 + 1e-9, size
        if kind.votes == kind.rows == 1:
            assert walks.at_most_aside() <= 1.0 + 1e-9, size
        assert walks.farther() <= 1.0 + TINY, size
        assert np.all(walks.broken() <= 1.0 + 1e-9), size
    dear = kind.bound is Bound.CONDITIONAL and kind.build(kind.sizes[0]).slow_states
    for otherwise in NOT_THEIR_OWN if kind.votes == 1 else ():
        if not (dear and otherwise == "the nearest and the farthest"):
            assert max(charged(walks, otherwise).farther() for walks in taken) > 1.01, otherwise


# ---------------------------------------------------------------- distances that are not their own


def larger_of(some):
    """For every distance the next larger of some, or itself."""
    return tuple(min(one for one in some if one >= d) for d in range(DISTANCES))


def smaller_of(some):
    """For every distance the next smaller of some, or itself."""
    return tuple(max(one for one in some if one <= d) for d in range(DISTANCES))


SOME = (*range(10), 11, 13, 15, 17, 20, 23, 27, 32, 38, 45, 54, DISTANCES - 1)
NOT_THEIR_OWN = {
    "the next larger of some": larger_of(SOME),
    "the next smaller of some": smaller_of(SOME),
    "the nearest and the farthest": larger_of((0, DISTANCES - 1)),
    "the nearest until the farthest": smaller_of((0, DISTANCES - 1)),
    "the nearest alone": smaller_of((0,)),
}


def charged(walks, otherwise):
    """The same walks, but every distance is charged what another one costs."""
    found = copy.copy(walks)
    vars(found)["costs"] = walks.costs[..., list(NOT_THEIR_OWN[otherwise])]
    return found


@pytest.mark.parametrize("otherwise", ["the next larger of some", "the next smaller of some"])
def test_distances_that_are_not_their_own_break_the_promise_of_long_files(otherwise):
    every = every_walk("gnmax, exact states")
    assert max(charged(walks, otherwise).broken().max() for walks in every) > 1000.0


# ---------------------------------------------------------------- files that found a fault


TWO = GNMax(150, 2, sigma2=5.0)
THREE = GNMax(300, 3, sigma2=10.0)
FOUND = [
    (TWO, plan(0.4, 1e-5, 0.5), 19_307, (143, 7), (142, 8), 5502.0),
    (TWO, plan(0.3, 1e-5, 0.5), 43_517, (150, 0), (149, 1), 2165.0),
    (THREE, plan(1.0, 1e-5, 1.0), 129_653, (222, 78, 0), (221, 79, 0), 1907.0),
    (GNMax(250, 2, sigma2=25.0), plan(0.2, 1e-3, 1.0), 11_090, (236, 14), (237, 13), 15.9),
    (GNMax(100, 2, sigma2=5.0), plan(0.3, 1e-3, 0.5), 34_500, (97, 3), (96, 4), 24.5),
    (THREE, plan(0.5, 1e-3, 0.5), 91_708, (240, 60, 0), (239, 61, 0), 1.13),
]


@pytest.mark.parametrize(
    ("mechanism", "target", "rows", "here", "there", "excess"), some(FOUND, 3), ids=str
)
def test_files_that_once_passed_far_too_often(mechanism, target, rows, here, there, excess):
    """Two neighbours of so many equal rows.

    The whole was beyond δ by `excess`, in δ, when a distance between those computed cost what the
    next larger does. For two classes, whose costs are exact, it still would be.
    """
    counts, orders = np.array([here, there]), target.orders
    laws = gaussian_argmax_law(counts, mechanism.sigma2)
    ceiling = mechanism.worst_rdp(queries=rows, answers=rows, orders=orders)

    def broken(costs):
        coins = [coin_of(target, orders, rows * costs[:, :, side], ceiling) for side in (0, 1)]
        ways = [excesses(coins[::way], laws[::way], rows, target) for way in (1, -1)]
        return np.max(ways, axis=0)

    for bound in (Bound.TWO_TAIL, CONDITIONAL):
        costs = costs_of(bound, mechanism, mechanism, counts, orders, highest=float(orders[-1]))
        assert np.all(broken(costs) <= 1.0 + 1e-9)
    if mechanism.classes == 2:
        wrong = costs[:, list(NOT_THEIR_OWN["the next larger of some"])]
        assert broken(wrong)[2] == pytest.approx(excess, rel=0.01)


# ---------------------------------------------------------------- the measure of it all


@pytest.mark.parametrize("classes", [2, 3, 4, 5])
def test_the_hockey_stick_of_rows_against_all_outcomes(classes):
    """Of more than three outcomes a little less, as some are merged."""
    random = np.random.default_rng(classes)
    for rows, epsilon in ((1, -0.5), (3, 0.0), (6, 0.3), (6, 2.0)):
        log_p, log_q = np.log(random.dirichlet(np.ones(classes), 2))
        outcomes = np.array(list(itertools.product(range(classes), repeat=rows)))
        p, q = (np.exp(log[outcomes].sum(axis=1)) for log in (log_p, log_q))
        exact = float(hockey_stick(p, q, epsilon))
        found = hockey_stick_of_rows(log_p, log_q, rows, epsilon)
        if classes <= 3:
            assert found == pytest.approx(exact, rel=1e-9, abs=1e-12)
        else:
            assert 0.85 * exact <= found <= exact * (1.0 + 1e-9)
