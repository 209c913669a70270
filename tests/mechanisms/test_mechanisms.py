"""Tallies add up; mechanisms survive the trip through their parameters; costs keep their caps."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.gaussian.two_classes import coin_rdp, two_class_rdp
from pate_cli.accounting.gnss import gnss_rdp
from pate_cli.errors import LedgerError, ParameterError
from pate_cli.mechanisms import scored_from_parameters
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax

CONFIDENT = ConfidentGNMax(50, 3, threshold=40.0, sigma1=30.0, sigma2=8.0)
ARGMAX = GNMax(50, 3, sigma2=8.0)

cell_lists = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4)), max_size=12)


def tally(cells):
    return Tally.of(np.array(cells, dtype=np.int64).reshape(-1, 2))


def as_dict(one):
    return {tuple(c): int(w) for c, w in zip(one.cells.tolist(), one.weights, strict=True)}


@given(cell_lists, cell_lists, cell_lists)
def test_tallies_are_a_commutative_monoid(a, b, c):
    wanted = {cell: (a + b + c).count(cell) for cell in a + b + c}
    assert as_dict(tally(a) + (tally(b) + tally(c))) == wanted
    assert as_dict((tally(a) + tally(b)) + tally(c)) == wanted
    assert as_dict(tally(c) + tally(b) + tally(a)) == wanted
    assert (
        as_dict(tally(a) + Tally.empty()) == as_dict(tally(a)) == as_dict(Tally.empty() + tally(a))
    )
    assert (tally(a) + tally(b)).queries == len(a) + len(b)


def test_weights_are_kept_exactly():
    heavy = Tally.of(np.array([[0, 1], [0, 1]]), np.array([2**40, 3]))
    assert as_dict(heavy + heavy) == {(0, 1): 2 * (2**40 + 3)}


@pytest.mark.parametrize("mechanism", [CONFIDENT, ARGMAX], ids=str)
def test_a_mechanism_is_built_again_from_its_parameters(mechanism):
    assert scored_from_parameters(mechanism.parameters()) == mechanism


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "lasso"}, "unknown mechanism 'lasso'; this tool knows "),
        ({"name": None}, "unknown mechanism None; this tool knows "),
        ({"name": ["gnmax"]}, "unknown mechanism ['gnmax']; this tool knows "),
        ({"extra": 1}, "mechanism 'gnmax' is damaged: "),
        ({"teachers": 0}, "mechanism 'gnmax' is damaged: teachers must be at least 1, got 0"),
        (
            {"teachers": 50.5},
            "mechanism 'gnmax' is damaged: teachers must be a whole number, got 50.5",
        ),
        (
            {"teachers": "50"},
            "mechanism 'gnmax' is damaged: teachers must be a whole number, got '50'",
        ),
        (
            {"teachers": True},
            "mechanism 'gnmax' is damaged: teachers must be a whole number, got True",
        ),
        ({"classes": 1}, "mechanism 'gnmax' is damaged: classes must be at least 2, got 1"),
        (
            {"classes": math.nan},
            "mechanism 'gnmax' is damaged: classes must be a whole number, got nan",
        ),
        (
            {"sigma2": 0.0},
            "mechanism 'gnmax' is damaged: sigma2 must be positive and finite, got 0.0",
        ),
        (
            {"sigma2": math.nan},
            "mechanism 'gnmax' is damaged: sigma2 must be positive and finite, got nan",
        ),
        ({"sigma2": None}, "mechanism 'gnmax' is damaged: "),
    ],
    ids=str,
)
def test_damaged_parameters_are_refused(change, message):
    with pytest.raises(LedgerError) as caught:
        scored_from_parameters(ARGMAX.parameters() | change)
    assert str(caught.value).startswith(message)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("missing", ["teachers", "classes", "sigma2", "sigma1", "threshold"])
def test_missing_parameters_are_refused(missing):
    parameters = CONFIDENT.parameters()
    del parameters[missing]
    with pytest.raises(LedgerError, match=rf"^mechanism 'confident' is damaged: .*'{missing}'"):
        scored_from_parameters(parameters)


@pytest.mark.parametrize(
    ("field", "value", "message"),
    [
        ("threshold", math.inf, "threshold must be finite, got inf"),
        ("threshold", math.nan, "threshold must be finite, got nan"),
        ("sigma1", -1.0, "sigma1 must be positive and finite, got -1.0"),
        ("sigma2", math.inf, "sigma2 must be positive and finite, got inf"),
        ("classes", 1, "classes must be at least 2, got 1"),
        ("teachers", 3.0, "teachers must be a whole number, got 3.0"),
    ],
)
def test_parameters_out_of_range(field, value, message):
    fields = {name: v for name, v in CONFIDENT.parameters().items() if name != "name"}
    with pytest.raises(ParameterError) as caught:
        ConfidentGNMax(**(fields | {field: value}))
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("sigma1", "sigma2", "order"),
    [
        (0.5, 0.5, 20.0),
        (0.05, 0.05, 60.0),
        (30.0, 1.9, 50.0),
        (3.0, 2.02, 50.0),
        (0.3, 5.0, 60.0),
        (5.0, 0.3, 6.0),
        (30.0, 8.0, 5000.0),
        (1e4, 1e4, 5.0),
    ],
)
def test_little_noise_and_high_orders_overflow_nothing(sigma1, sigma2, order):
    """Where a moment leaves float64 the cost is that of seeing all noisy values."""
    mechanism = ConfidentGNMax(20, 3, threshold=15.0, sigma1=sigma1, sigma2=sigma2)
    surface = mechanism.cost_table(order)
    cost = surface.rows(0, 21)
    cap = order / (2.0 * sigma1**2) + order / sigma2**2
    assert np.all((cost >= 0.0) & (cost <= cap * (1.0 + 1e-12)))
    assert np.all(np.isfinite(surface.blocks))
    worst = mechanism.worst_rdp(queries=1, answers=1, orders=np.array([order]))
    assert np.all((worst > 0.0) & (worst <= cap * (1.0 + 1e-12)))


@pytest.mark.parametrize("sigma", [0.3, 0.5, 1.0, 2.0, 3.0, 8.0, 20.0, 40.0])
@pytest.mark.parametrize("order", [1.1, 1.5, 2.0, 3.0, 5.0, 8.0, 14.0, 30.0])
def test_the_two_class_cost_is_the_supremum_over_all_lower_scores(sigma, order):
    """The exact cost peaks twice, a vote apart; a search that finds the upper peak understates."""
    z = np.linspace(-45.0, 0.0, 9001)
    exact = coin_rdp(z, shift=math.sqrt(2.0) / sigma, orders=np.array([order]))[0]
    bound = two_class_rdp(z, sigma=sigma, orders=np.array([order]))[0]
    running = np.minimum(np.maximum.accumulate(exact), order / sigma**2)
    assert np.all(bound >= running - 1e-200)
    assert np.all(np.diff(bound) >= -1e-200)
    # Nor is it larger than that: on a fine grid the supremum is nearly reached.
    seen = bound > 1e-13
    assert np.all(bound[seen] <= running[seen] * (1.0 + 1e-2))


def test_worst_case_costs_and_gaussian_dp_add_up():
    orders = np.array([2.0, 9.0])
    one = CONFIDENT.worst_rdp(queries=1, answers=0, orders=orders)
    both = CONFIDENT.worst_rdp(queries=1, answers=1, orders=orders)
    many = CONFIDENT.worst_rdp(queries=10, answers=3, orders=orders)
    np.testing.assert_allclose(many, 10 * one + 3 * (both - one), rtol=1e-12)
    np.testing.assert_allclose(
        both - one, ARGMAX.worst_rdp(queries=7, answers=1, orders=orders), rtol=1e-9
    )
    assert CONFIDENT.gaussian_mu(queries=9, answers=4) == pytest.approx(
        math.sqrt(9 / 30.0**2 + 8 / 8.0**2)
    )
    assert ARGMAX.gaussian_mu(queries=9, answers=4) == pytest.approx(math.sqrt(8 / 8.0**2))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"beta": 400.0},
            "beta=400 at order 9 has infinite privacy cost; beta must be below 0.0588915 at this "
            "order, or the order below 1 at this beta",
        ),
        ({"sigma": 1e-200}, "sigma_release=1e-200 is so small that its cost overflows"),
        ({"sigma": 5e-324}, "sigma_release=4.94066e-324 is so small that its cost overflows"),
    ],
)
def test_absurd_release_parameters_are_refused_in_words(change, message):
    with pytest.raises(ParameterError) as caught:
        gnss_rdp(**({"beta": 0.01, "sigma": 5.0, "order": 9.0} | change))
    assert str(caught.value) == message


def test_absurdly_much_release_noise_costs_what_the_smoothness_costs():
    spread = gnss_rdp(beta=0.01, sigma=1e9, order=9.0)
    assert gnss_rdp(beta=0.01, sigma=1e200, order=9.0) == pytest.approx(spread, rel=1e-12)
