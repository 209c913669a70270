"""What one voter of few votes costs, by exact laws of all small vote files and their neighbours."""

import itertools
import math
from functools import partial

import numpy as np
import pytest

from divergences import renyi
from laws import gaussian_argmax_law
from pate_cli.accounting.conversion import conversion_cost
from pate_cli.accounting.few_votes import FewVotes, mu_squared, touched
from pate_cli.core.errors import ParameterError
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.lnmax import LNMax
from slices import some
from vote_files import Law, sums, vectors

ORDERS = np.array([2.0, 4.0, 8.0, 12.5, 14.0, 20.0])
# λ as above, σ 20: w of ten classes, w_add of three or more, w_add of two.
MOVED = [3.200705e-3, 6.406950e-3, 1.286251e-2, 2.025269e-2, 2.276001e-2, 3.310584e-2]
LONE = [1.591694e-3, 3.184808e-3, 6.382166e-3, 1.001166e-2, 1.123256e-2, 1.619346e-2]
LONE_OF_TWO = [7.958109e-4, 1.591977e-3, 3.187082e-3, 4.989617e-3, 5.593181e-3, 8.026169e-3]


def test_golden_costs_of_one_query():
    ten, two = (GNMax(100, classes, sigma2=20.0) for classes in (10, 2))
    assert ten.query_costs(ORDERS).answer == pytest.approx(MOVED, rel=1.1e-4)
    assert ten.query_costs(ORDERS, lone=True).answer == pytest.approx(LONE, rel=1e-6)
    assert two.query_costs(ORDERS, lone=True).answer == pytest.approx(LONE_OF_TWO, rel=1e-6)


CONFIDENT = {"threshold": 120.0, "sigma1": 60.0, "sigma2": 20.0}


@pytest.mark.parametrize(("mechanism", "votes", "assigned", "wanted"), [
    (GNMax(100, 10, sigma2=20.0), 40, True, 1.508221),
    (GNMax(100, 10, sigma2=20.0), 40, False, 1.508221),
    (ConfidentGNMax(250, 10, threshold=200.0, sigma1=150.0, sigma2=40.0), 40, True, 0.515752),
    (ConfidentGNMax(250, 10, threshold=200.0, sigma1=150.0, sigma2=40.0), 40, False, 0.515752),
    (ConfidentGNMax(200, 10, **CONFIDENT), 40, True, 1.211784),
    (ConfidentGNMax(200, 10, **CONFIDENT), 40, False, 1.226438),
    (ConfidentGNMax(200, 10, **CONFIDENT), 50, True, 1.346845),
    (ConfidentGNMax(2000, 10, **CONFIDENT), 50, False, 1.703054),
])  # fmt: skip
def test_golden_epsilons(mechanism, votes, assigned, wanted):
    orders = np.concatenate([np.arange(11.25, 14.25, 0.25), [26.5, 27.0, 27.5]])
    few = FewVotes(votes, assigned)
    found = mechanism.worst_rdp(queries=1000, answers=1000, orders=orders, few=few)
    epsilon = float((found + conversion_cost(orders, delta=1e-5)).min())
    assert epsilon == pytest.approx(wanted, rel=4e-4)
    if assigned:  # just as if there were so many queries
        plain = mechanism.worst_rdp(queries=votes, answers=votes, orders=orders)
        np.testing.assert_array_equal(found, plain)


@pytest.mark.parametrize(("share", "answered", "right"), [(0.6, 0.499, 0.999), (0.8, 0.752, 1.0)])
def test_golden_answers(share, answered, right):
    """2,000 voters with 50 votes on 500 queries, so 200 on each."""
    random, mechanism = np.random.default_rng(0), ConfidentGNMax(2000, 10, **CONFIDENT)
    shares = [share, *[(1.0 - share) / 9.0] * 9]
    counts = random.multinomial(FewVotes(50).on_each(2000, 500), shares, size=2000)
    chance = mechanism.answer_chance(counts)
    assert chance.mean() == pytest.approx(answered, abs=0.006)
    kept = chance @ (1.0 - mechanism.loss_chance(counts)) / chance.sum()
    assert kept == pytest.approx(right, abs=0.002)


# --- all vote files of a few voters and queries ---------------------------------------------------


def worst(mechanism, order, rows, votes, answers, only=None):
    """The largest divergence of two neighbouring files, by a moment taken query by query."""
    law, mine = Law(mechanism, order), vectors(mechanism, rows, votes, only)
    found = 0.0
    for rest in sums(mine, mechanism.teachers - 1):
        at = law.place[(rest + mine) @ law.base]  # [ways, rows]
        value = np.ones((answers + 1, len(mine), len(mine)))
        for row in reversed(range(rows)):
            here = at[:, row][:, None], at[:, row][None]
            value[1:] = law.silent[here] * value[1:] + law.answered[here] * value[:-1]
        found = max(found, float(value[-1].max()))
    return math.log(found) / (order - 1.0)


FILES = [
    (GNMax(3, 3, sigma2=1.5), 2.0),
    (GNMax(3, 2, sigma2=0.8), 6.0),
    (ConfidentGNMax(3, 3, threshold=2.0, sigma1=0.7, sigma2=1.0), 3.0),
    (ConfidentGNMax(3, 2, threshold=2.6, sigma1=0.3, sigma2=3.0), 2.0),
    (LNMax(3, 3, laplace_scale=1.5), 2.0),
]


@pytest.mark.parametrize("answers", [1, 3])
@pytest.mark.parametrize("votes", [1, 2])
@pytest.mark.parametrize(("mechanism", "order"), FILES)
def test_no_neighbouring_files_of_three_queries_cost_more(mechanism, order, votes, answers):
    shape, at = {"queries": 3, "answers": answers}, np.array([order])
    chosen = worst(mechanism, order, 3, votes, answers)
    bound = float(mechanism.worst_rdp(**shape, orders=at, few=FewVotes(votes))[0])
    assert chosen <= bound * (1.0 + 1e-9)
    assigned = worst(mechanism, order, 3, votes, answers, only=range(votes))
    bound = float(mechanism.worst_rdp(**shape, orders=at, few=FewVotes(votes, assigned=True))[0])
    assert assigned <= bound * (1.0 + 1e-9)
    assert assigned <= chosen * (1.0 + 1e-12)


def adaptive(mechanism, order, votes, answers):
    """The largest moment of a game: whoever asks picks every histogram after seeing the answers."""
    law = Law(mechanism, order)
    steps = law.histograms[None] - law.histograms[:, None]
    lone = np.abs(steps).sum(axis=-1) == 1
    moved = (np.abs(steps).sum(axis=-1) == 2) & (steps.sum(axis=-1) == 0)

    def best(pairs, silent, answered):
        return float((law.silent[pairs] * silent + law.answered[pairs] * answered).max())

    table = np.ones((votes + 1, votes + 1, answers + 1))
    for left, old, new in itertools.product(range(1, answers + 1), *[range(votes + 1)] * 2):
        found = [1.0]
        if old and new:
            found.append(best(moved, *table[old - 1, new - 1, [left, left - 1]]))
        for a, b in ((old - 1, new), (old, new - 1)):
            if min(a, b) >= 0:
                found.append(best(lone, *table[a, b, [left, left - 1]]))
        table[old, new, left] = max(found)
    return math.log(table[-1, -1, -1]) / (order - 1.0)


GAMES = some(
    [
        *FILES,
        (ConfidentGNMax(5, 4, threshold=4.3, sigma1=1.0, sigma2=4.0), 2.0),
        (ConfidentGNMax(6, 3, threshold=1.0, sigma1=2.0, sigma2=2.0), 5.0),
        (GNMax(5, 4, sigma2=3.0), 8.0),
    ],
    8,
)


@pytest.mark.parametrize("answers", [1, 2, 8])
@pytest.mark.parametrize(("mechanism", "order"), GAMES)
def test_no_queries_that_follow_the_answers_cost_more(mechanism, order, answers):
    """Without an end to queries, so that voters who choose themselves touch two for each vote."""
    for votes in (1, 2, 3):
        shape = {"queries": 100, "answers": answers, "orders": np.array([order])}
        bound = float(mechanism.worst_rdp(**shape, few=FewVotes(votes))[0])
        found = adaptive(mechanism, order, votes, answers)
        assert 0.4 * bound <= found <= bound * (1.0 + 1e-9)


# --- what would be wrong --------------------------------------------------------------------------


def test_a_vote_less_is_too_few():
    """Two voters of two classes at the worst histogram cost all but what a cell is wide."""
    mechanism, order = GNMax(40, 2, sigma2=20.0), 8.0
    law = Law(mechanism, order)
    near = np.abs(law.histograms[:, None] - law.histograms[None]).sum(axis=-1) == 2
    one = math.log((law.silent + law.answered)[near].max()) / (order - 1.0)
    for votes in (2, 20):
        told = {"queries": 100, "answers": 100, "orders": np.array([order])}
        assert mechanism.worst_rdp(**told, few=FewVotes(votes, assigned=True)) >= votes * one
        assert mechanism.worst_rdp(**told, few=FewVotes(votes - 1, assigned=True)) < votes * one


def test_lone_votes_on_other_queries_cost_more_than_moved_ones():
    """A test that one vote decides: its voter votes elsewhere, and both queries show it."""
    mechanism = ConfidentGNMax(5, 4, threshold=4.3, sigma1=1.0, sigma2=4.0)
    law, at = Law(mechanism, 2.0), np.array([2.0])
    files = np.array([[0, 0, 1, 4], [0, 0, 1, 3], [0, 0, 0, 4], [0, 0, 0, 5]])
    places = law.place[files @ law.base]
    gone, new = (law.silent + law.answered)[places[::2], places[1::2]]
    true, moved = math.log(gone * new), mechanism.query_costs(at).whole[0]
    assert true / moved == pytest.approx(1.736, abs=5e-4)
    told = {"queries": 9, "answers": 9, "orders": at}
    assert moved < true <= mechanism.worst_rdp(**told, few=FewVotes(1))[0]


def test_voters_in_a_queue_are_not_covered():
    """A premise: one who does not come shifts all behind, so that every query moves."""
    mechanism = GNMax(6, 2, sigma2=1.0)
    one, other = gaussian_argmax_law([[1, 0], [0, 1]], 1.0)
    true = 6.0 * float(renyi(one, other, 2.0))
    told = {"queries": 6, "answers": 6, "orders": np.array([2.0])}
    bound = float(mechanism.worst_rdp(**told, few=FewVotes(1))[0])
    assert (true, bound) == (pytest.approx(5.4649, abs=1e-4), pytest.approx(1.3815, abs=1e-4))


def by_counts(test, answer, *, queries, answers):
    """μ of so many tests and answers."""
    return math.sqrt(queries * test + answers * answer)


def test_every_way_to_use_the_votes():
    """Brute force over j moved and l lone queries, and which of them are answered."""
    random = np.random.default_rng(3)
    for votes, queries, answers in itertools.product((1, 2, 5), (1, 3, 8, 20), (1, 2, 7, 20)):
        answers = min(answers, queries)
        test, moved, lone = random.random(3) * (1.0, 2.0, 1.0)
        moved, few = max(moved, lone), FewVotes(votes)
        ways = [
            (j, other, a, b)
            for j, other in itertools.product(range(votes + 1), range(2 * votes + 1))
            if j + other <= queries and 2 * j + other <= 2 * votes
            for a, b in itertools.product(range(j + 1), range(other + 1))
            if a + b <= answers
        ]
        j, other, a, b = np.array(ways).T
        one, rest, c, d = few.cases(queries, answers)
        true = (j + other) * test + a * moved + b * lone
        assert max((one + rest) * test + c * moved + d * lone) == pytest.approx(max(true))
        shape = {"queries": queries, "answers": answers}
        found = mu_squared(few, partial(by_counts, test, moved), **shape)
        assert found == pytest.approx(max((j + other) * test + (a + b / 2.0) * moved))
        assert touched(few, **shape) == (max(j + other), min(votes, answers))
        assert touched(FewVotes(votes, assigned=True), **shape)[0] == min(votes, queries)


def test_no_votes_at_all_are_no_promise():
    with pytest.raises(ParameterError):
        FewVotes(0)
