"""The sanitized release against a brute-force supremum over both means and both deviations."""

import math

import mpmath as mp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.accounting.sensitivity import gnss_costs, gnss_rdp, largest_beta, largest_order
from pate_cli.core.errors import ParameterError
from refusals import refusal
from slices import tries

GOLDEN = [
    (0.0329, 6.23, 14, 1.6070558409164),
    (0.0533, 4.88, 7.5, 0.63352783004193),
    (0.0310, 7.92, 15.5, 1.7625577244412),
    (0.0205, 11.9, 20.5, 0.41654994653089),
    (0.009, 26.4, 50, 0.33957143139666),
    (0.008, 38.7, 50, 0.087543162639957),
    (0.1, 3, 4, 0.74366324158868),
    (0.01, 10, 10, 0.062258610194617),
    (0.02, 8, 2, 0.017123253226453),
]


def gaussian_rdp(mean, deviation, other_mean, other_deviation, order):
    """D_λ(N(mean, deviation²) ‖ N(other_mean, other_deviation²)), infinite where it diverges."""
    mixed = order * other_deviation**2 + (1.0 - order) * deviation**2
    with np.errstate(invalid="ignore", divide="ignore"):
        location = order * (mean - other_mean) ** 2 / (2.0 * mixed)
        logs = (1.0 - order) * np.log(deviation) + order * np.log(other_deviation)
        spread = (np.log(mixed) / 2.0 - logs) / (1.0 - order)
        return np.where(mixed > 0.0, location + spread, np.inf)


def brute_force(beta, sigma, order, shift):
    """Over r = SS'/SS, both signs of f − f' up to min(SS, SS'), and both directions."""
    r = np.exp(np.linspace(-beta, beta, 801))[:, None]
    moved = np.minimum(1.0, r) * np.linspace(-1.0, 1.0, 41)[None, :]
    here, there = shift, moved + r * shift
    return max(
        float(gaussian_rdp(here, sigma, there, r * sigma, order).max()),
        float(gaussian_rdp(there, r * sigma, here, sigma, order).max()),
    )


@pytest.mark.parametrize(("beta", "sigma", "order", "true"), GOLDEN)
def test_golden(beta, sigma, order, true):
    found = gnss_rdp(beta=beta, sigma=sigma, order=order)
    assert found == pytest.approx(true, rel=1e-10)
    assert found == pytest.approx(brute_force(beta, sigma, order, 0.0), rel=1e-10)


@settings(max_examples=tries(200))
@given(
    order=st.floats(1.05, 80.0),
    share=st.floats(0.001, 0.97),
    sigma=st.floats(0.5, 60.0),
    kappa=st.one_of(st.just(0.0), st.floats(0.0, 8.0)),
)
def test_the_supremum_exactly(order, share, sigma, kappa):
    beta, shift = share * largest_beta(order), kappa * sigma
    found = gnss_rdp(beta=beta, sigma=sigma, order=order, shift=shift)
    worst = brute_force(beta, sigma, order, shift)
    assert found >= worst * (1.0 - 1e-9)
    assert found <= worst * (1.0 + 1e-7) + 1e-13  # attained at r = e^{−β}
    at_the_end = float(
        gaussian_rdp(
            shift, sigma, shift * math.exp(-beta) - math.exp(-beta), sigma * math.exp(-beta), order
        )
    )
    assert found == pytest.approx(at_the_end, rel=1e-7, abs=1e-13)


def test_many_releases_cost_what_each_does_and_are_infinite_where_it_is_refused():
    betas, sigmas = np.array([0.01, 0.05, 0.06, 0.5]), np.array([3.0, 40.0])
    found = gnss_costs(betas[:, None], sigmas, order=10.0, quantile=1.5)
    for beta, line in zip(betas.tolist(), found, strict=True):
        for sigma, cost in zip(sigmas.tolist(), line.tolist(), strict=True):
            told = {"beta": beta, "sigma": sigma, "order": 10.0, "shift": 1.5 * sigma}
            if beta < 0.0527:  # ½ log(1 + 1/9)
                assert cost == pytest.approx(gnss_rdp(**told), rel=1e-12)
            else:
                assert cost == math.inf
                with pytest.raises(ParameterError, match="infinite privacy cost"):
                    gnss_rdp(**told)


def test_small_beta_keeps_its_digits():
    for beta in (1e-12, 1e-9, 1e-6, 1e-3):
        with mp.workdps(60):
            b, s, lam, k = mp.mpf(beta), mp.mpf(40), mp.mpf(20), mp.mpf(100)
            w = 1 - (lam - 1) * mp.expm1(2 * b)
            mean = lam * (1 + k * mp.expm1(b)) ** 2 / (2 * s**2 * w)
            only_spread = -b - mp.log(w) / (2 * (lam - 1))
            true = float(mean + only_spread)
            spread = float(only_spread)
        found = gnss_rdp(beta=beta, sigma=40.0, order=20.0, shift=100.0)
        assert found == pytest.approx(true, rel=1e-13)
        # With so much noise that only the deviations differ.
        assert gnss_rdp(beta=beta, sigma=1e150, order=20.0) == pytest.approx(spread, rel=1e-6)


@settings(max_examples=tries(100))
@given(order=st.floats(1.01, 1000.0))
def test_the_two_ends_of_the_range_are_inverse(order):
    beta = largest_beta(order)
    assert largest_order(beta) == pytest.approx(order, rel=1e-9)
    assert math.isfinite(gnss_rdp(beta=beta * (1 - 1e-9), sigma=5.0, order=order))
    with pytest.raises(ParameterError, match="infinite privacy cost"):
        gnss_rdp(beta=beta * (1 + 1e-9), sigma=5.0, order=order)
    assert brute_force(beta * (1 + 1e-9), 5.0, order, 0.0) == np.inf


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"beta": 400.0},
            "`beta` 400 at order 9 has infinite privacy cost; `beta` must be below 0.0588915 at "
            "this order, or `order` below 1 at this beta",
        ),
        (
            {"beta": 0.05, "sigma": 6.0, "order": 14.0},
            "`beta` 0.05 at order 14 has infinite privacy cost; "
            "`beta` must be below 0.037054 at this order, or `order` below 10.5083 at this beta",
        ),
        (
            {"sigma": 1e-200},
            "`sigma_release` 1e-200 is so small that its privacy cost is infinite; "
            "give a larger number",
        ),
        (
            {"sigma": 5e-324},
            "`sigma_release` 4.94066e-324 is so small that its privacy cost is infinite; "
            "give a larger number",
        ),
    ],
)
def test_absurd_release_parameters_are_refused_in_words(change, message):
    given = {"beta": 0.01, "sigma": 5.0, "order": 9.0} | change
    assert refusal(ParameterError, gnss_rdp, **given) == message
