"""w2 and its certificate: all small histograms, dense grids, real (x, y) far out."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import norm

from divergences import renyi, worst_coin
from laws import gaussian_argmax_law, three_outcome_law
from pate_cli.accounting.gaussian.worst_vote import _triangle, worst_argmax_rdp
from slices import some


def w2(sigma, order, classes=10):
    return float(worst_argmax_rdp(sigma=sigma, classes=classes, orders=np.array([order]))[0])


def moved_vote(x, y, sigma, order):
    """The divergences where a vote moves x by 1/σ and y by −1/σ."""
    here, there = three_outcome_law(x, y), three_outcome_law(x + 1.0 / sigma, y - 1.0 / sigma)
    return renyi(here.T, there.T, order)


def test_printed_figures():
    assert w2(40.0, 14.0) == pytest.approx(0.6425 * 14.0 / 1600.0, rel=2e-4)
    assert w2(40.0, 9.5) == pytest.approx(3.80642e-3, rel=1.1e-4)


@pytest.mark.parametrize(
    ("sigma", "order"),
    some(
        [
            (40.0, 14.0),
            (190.8712, 48.8166),  # where five zooms fell 3e-7 below the supremum, and so did
            (144.738, 24.5204),
            (23.1967, 5.84080),
            (7.16463, 1.133331),
            (5.0, 8.0),
            (2.0, 20.0),  # λ/σ = 10
            (0.5, 3.0),
            (0.1, 1.1),
            (0.05, 1.2),  # λ/σ = 24
            (5.0, 60.0),
            (300.0, 14.0),
            (2000.0, 1.05),
            (40.0, 200.0),
        ],
        3,
    ),
)
def test_no_real_scores_cost_more(sigma, order):
    found, shift = w2(sigma, order), order / sigma
    assert found <= order / sigma**2
    far = np.array([0.0, 0.8, 0.4 * shift, shift, shift + 6.0, shift + 15.0])
    points = np.array(list(itertools.product(far, [*far, *-far[1:]])))
    values = moved_vote(*points.T, sigma, order)
    assert np.all(values <= found * (1.0 + 1e-10))
    polished = minimize(
        lambda v: -moved_vote(v[:1], v[1:], sigma, order)[0],
        points[values.argmax()],
        method="Nelder-Mead",
        options={"xatol": 1e-5, "fatol": 1e-13, "maxiter": 150},
    )
    assert -polished.fun <= found * (1.0 + 1e-10)
    if found < order / sigma**2 * (1.0 - 1e-6):
        assert -polished.fun >= found * (1.0 - 1e-3), "the search claims more than there is"


@pytest.mark.parametrize(("sigma", "order"), [(0.5, 4.0), (40.0, 8.0), (2000.0, 50.0)])
def test_the_three_half_planes_beside_the_triangle_are_bounded(sigma, order):
    """The three moments of the docstring, with logs of the normal distribution by scipy."""
    s, c = 1.0 / sigma, order - 1.0
    coin = w2(sigma, order, classes=2)
    left, below, above = _triangle(shift=s, order=order, coin=coin, slack=1e-6)
    grown = order * c * s**2
    moments = (
        grown / 2.0 - c * norm.logcdf(left - s),
        grown / 2.0 - c * norm.logcdf(below + s),
        c * coin - c * norm.logcdf(above / np.sqrt(2.0)),
    )
    tails = (
        norm.logcdf(-left - c * s),
        norm.logcdf(-below + c * s),
        2.0 * norm.logcdf(-above / 2.0),
    )
    for moment, tail in zip(moments, tails, strict=True):
        assert np.expm1(moment) + np.exp(grown + tail) <= np.expm1(c * coin * (1.0 + 2e-6))


@pytest.mark.parametrize("sigma", some([1e-3, 0.03, 0.5, 2.0, 40.0, 2000.0, 1e5, 1e7], 2))
def test_extreme_noise_and_orders(sigma):
    orders = np.array([1.0001, 1.05, 1.5, 14.0, 200.0])
    found = worst_argmax_rdp(sigma=sigma, classes=3, orders=orders)
    coins = worst_argmax_rdp(sigma=sigma, classes=2, orders=orders)
    cap = orders / sigma**2
    assert np.all((coins <= found) & (found <= cap))
    assert np.all(coins >= 0.63 * cap)
    if sigma >= 2000.0:  # what remains is the Fisher information, and the allowance for round-off
        np.testing.assert_allclose(found / cap, 0.63997, rtol=4e-10 * sigma + 5e-4)


def test_records_in_several_teachers():
    orders = np.array([1.5, 8.0, 50.0])
    told = {"sigma": 40.0 / 3.0, "orders": orders}
    two, also = (worst_argmax_rdp(classes=2, **told, several=each) for each in (True, False))
    np.testing.assert_array_equal(two, also)
    many, one = (worst_argmax_rdp(classes=4, **told, several=each) for each in (True, False))
    # Among the neighbours are those who move all their votes alike.
    assert np.all((one <= many) & (many <= 9.0 * orders / 1600.0))
    assert np.all(many > 1.01 * one)  # several classes may change, which this bound allows for
    random = np.random.default_rng(3)
    for _ in range(20):
        counts = random.integers(0, 60, size=4)
        moved = counts + random.multinomial(3, np.full(4, 0.25)) - random.multinomial(3, [0.25] * 4)
        laws = gaussian_argmax_law(np.vstack([counts, moved]), 40.0)
        for order, bound in zip(orders, many, strict=True):
            assert float(renyi(laws[:1], laws[1:], order).max()) <= bound


def test_an_added_vote_is_covered():
    """A coin of shift s at most, by convexity no worse than one of shift √2 s."""
    z = np.linspace(-12.0, 12.0, 4001)
    for sigma, order in ((0.5, 4.0), (3.0, 2.0), (40.0, 50.0)):
        for classes in (2, 3):
            bound = w2(sigma, order, classes=classes)
            assert float(worst_coin(z, 1.0 / sigma, order).max()) <= bound
