"""A public prior is B more teachers, no less; its exact laws are held by the contract."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from divergences import renyi
from graphs import every_histogram
from laws import checked_argmax_law
from pate_cli.core.arrays import DENSE_CLASSES, SparseCounts
from pate_cli.core.errors import ParameterError
from pate_cli.mechanisms import CLASSES, MechanismChoice, mechanism_class
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.votes.join import shared_out
from slices import some

ORDERS = (2.2, 7.0)
TEACHERS = {2: 5, 3: 4, 4: 3}
WEIGHTS = (0, 1, 3, 9)
NO_MORE = 1.0 + 1e-9


def mechanism_of(name, classes, weight, k):
    teachers = TEACHERS[classes]
    more = {"teachers_per_record": k, "prior_weight": weight}
    if name == "gnmax":
        return GNMax(teachers, classes, sigma2=2.1, **more)
    test = {"threshold": teachers + weight / 2.0 - 1.0, "sigma1": 1.7, "sigma2": 2.4}
    return ConfidentGNMax(teachers, classes, **test, **more)


def histograms_of(it):
    """Every histogram of τ teachers, and a prior's votes: none, all for one class, or for each."""
    m, weight = it.classes, it.prior_weight
    none, first = np.zeros(m, dtype=np.int64), weight * np.eye(m, dtype=np.int64)[0]
    shares = np.arange(m, 0, -1.0)[None] / np.arange(m, 0, -1.0).sum()
    guesses = np.stack([none, first, *shared_out(shares, weight)])
    every = every_histogram(it.teachers, m, missing=it.teachers)
    return (guesses[:, None] + every[None]).reshape(-1, m)


# ---------------------------------------------------------------- τ + B teachers, and no less

CASES = some(itertools.product(("gnmax", "confident"), TEACHERS, WEIGHTS, (1, 2)), 5)


@pytest.mark.parametrize(("name", "classes", "weight", "k"), CASES)
def test_a_prior_costs_what_as_many_more_teachers_cost(name, classes, weight, k):
    it, orders = mechanism_of(name, classes, weight, k), np.array(ORDERS)
    more = replace(it, teachers=it.most_votes, prior_weight=0)
    for queries, answers in ((1, 1), (50, 7), (9, 9)):
        found, wanted = (
            each.worst_rdp(queries=queries, answers=answers, orders=orders) for each in (it, more)
        )
        np.testing.assert_array_equal(found, wanted)
    for order in ORDERS:
        tables = it.cost_table(order), more.cost_table(order)
        cells = it.cells(it.score(histograms_of(it)), tables[0].grid)
        np.testing.assert_array_equal(*(table.cost(cells) for table in tables))
        np.testing.assert_array_equal(*(table.blocks for table in tables))


def test_a_threshold_that_teachers_alone_never_reach_is_priced_where_a_guess_carries_it():
    """w1 is largest near T, which is above τ here: a range that ends at τ would miss it."""
    it = ConfidentGNMax(5, 3, threshold=11.0, sigma1=0.8, sigma2=30.0, prior_weight=9)
    alone = replace(it, prior_weight=0)
    found, missed = (
        each.worst_rdp(queries=1, answers=1, orders=np.array([3.0]))[0] for each in (it, alone)
    )
    counts = np.array([[11, 0, 0], [10, 1, 0]])
    law = checked_argmax_law(counts, sigma=30.0, threshold=11.0, sigma1=0.8)
    exact = max(renyi(law[0], law[1], 3.0), renyi(law[1], law[0], 3.0))
    assert missed < 1e-2 * exact
    assert exact <= found * NO_MORE


# ---------------------------------------------------------------- public parameters


@pytest.mark.parametrize("weight", [-1, 1.5, True, "3", None, np.nan])
def test_a_weight_that_is_no_number_of_votes_is_refused(weight):
    with pytest.raises(ParameterError, match="prior_weight must be a whole number"):
        GNMax(5, 3, sigma2=1.0, prior_weight=weight)


def test_a_weight_is_at_most_a_hundred_times_the_teachers():
    """Round-off of the noise grows with counts in units of it (THEORY.md, section 24.2)."""
    assert GNMax(5, 3, sigma2=1.0, prior_weight=500).most_votes == 505
    with pytest.raises(ParameterError, match="at most 100 times the 5 teachers, got 501"):
        GNMax(5, 3, sigma2=1.0, prior_weight=501)


def test_who_takes_no_prior_refuses_one():
    takes = {name for name in CLASSES if mechanism_class(name).takes_prior}
    assert takes == {"gnmax", "confident", "interactive"}
    for name in set(CLASSES) - takes:
        choice = MechanismChoice(name, prior_weight=2)
        with pytest.raises(ParameterError, match="takes no prior"):
            choice.build(teachers=100, classes=3, queries=10, delta=1e-5)
        assert MechanismChoice("gnmax", prior_weight=2).among(name).prior_weight == 0


def test_many_classes_with_votes_are_as_many_as_scores_are_known_for():
    many = DENSE_CLASSES + 1
    GNMax(60_000, many, sigma2=9.0, prior_weight=40_000)
    with pytest.raises(ParameterError, match="the sum of teachers and prior_weight"):
        GNMax(60_000, many, sigma2=9.0, prior_weight=40_001)


def test_draws_by_votes_have_room_for_those_of_the_prior():
    classes = DENSE_CLASSES + 7
    it = GNMax(2, classes, sigma2=1.0, prior_weight=3)
    counts = SparseCounts(np.arange(5)[None], np.ones((1, 5), dtype=np.int64), classes)
    assert it.draws == 7
    assert it.pick(counts, np.full((1, 7), 1 << 62, dtype=np.uint64)).shape == (1,)
    with pytest.raises(ParameterError, match="votes for more than 4 classes"):
        replace(it, prior_weight=2).pick(counts, np.full((1, 6), 1 << 62, dtype=np.uint64))
