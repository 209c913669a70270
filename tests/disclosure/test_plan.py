"""Release plans: what they shift, what they cost, and what they refuse."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mpmath import mp, mpf

from pate_cli.core.errors import ParameterError
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.settings import ReleasePlan, failure_delta
from refusals import refusal

UPPER, NONE = ReleaseKind.UPPER, ReleaseKind.NONE


def plan_of(kind, **change):
    fields = {"kind": kind, "delta": 1e-5, "order": 9.5, "beta": 0.02, "sigma": 7.0}
    return ReleasePlan(**(fields | change))


def oracle(order, beta, sigma, delta, failure):
    """ε_κ(λ) plus the conversion, in many digits."""
    with mp.workdps(50):
        order, beta, sigma, delta, failure = (mpf(x) for x in (order, beta, sigma, delta, failure))
        kappa = sigma * mp.sqrt(2) * mp.erfinv(1 - 2 * failure) if failure else mpf(0)
        w = 1 - (order - 1) * (mp.exp(2 * beta) - 1)
        draw = (
            order * (1 + kappa * (mp.exp(beta) - 1)) ** 2 / (2 * sigma**2 * w)
            - beta
            - mp.log(w) / (2 * (order - 1))
        )
        left = delta - failure
        conversion = mp.log(1 - 1 / order) - (mp.log(left) + mp.log(order)) / (order - 1)
        return float(draw), float(conversion), float(kappa)


@given(st.floats(1.01, 200.0), st.floats(0.01, 0.9), st.floats(0.1, 500.0), st.floats(1e-12, 0.9))
def test_the_price_of_a_draw_is_the_formula_in_many_digits(order, share, sigma, delta):
    beta = share * 0.5 * math.log1p(1.0 / (order - 1.0))
    plan = plan_of(UPPER, order=order, beta=beta, sigma=sigma, delta=delta)
    failure = delta * 0.1
    draw, conversion, kappa = oracle(order, beta, sigma, delta, failure)
    assert plan.delta_shift == pytest.approx(failure)
    assert plan.shift == pytest.approx(kappa, rel=1e-9)
    assert plan.release_rdp == pytest.approx(draw, rel=1e-7)
    assert plan.overhead == pytest.approx(draw + conversion, rel=1e-7, abs=1e-9)


def test_failure_belongs_to_upper_releases_alone():
    assert plan_of(UPPER).delta_shift == failure_delta(1e-5) == pytest.approx(1e-6)
    assert plan_of(NONE).delta_shift == 0.0
    assert plan_of(UPPER).shift > 0.0 == plan_of(NONE).shift
    assert [plan_of(kind).publishes_draw for kind in (UPPER, NONE)] == [True, False]
    upper = plan_of(UPPER)
    assert upper.draws == (upper,)
    assert upper.rdp(9.5) == upper.release_rdp


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"delta": 0.0}, "delta must be between 0 and 1, both excluded, got 0.0"),
        ({"order": 1.0}, "a Renyi order must be finite and above 1, got 1.0"),
        ({"beta": math.nan}, "`beta` must be positive and finite, got nan"),
        ({"sigma": 0.0}, "`sigma_release` must be positive and finite, got 0.0"),
        (
            {"beta": 0.06},
            "beta=0.06 at order 9.5 has infinite privacy cost; beta must be below 0.0556128 at "
            "this order, or the order below 8.84333 at this beta",
        ),
    ],
)
def test_what_is_out_of_range_is_refused(change, message):
    assert refusal(ParameterError, plan_of, UPPER, **change) == message


def test_what_is_published_is_the_cost_and_its_noise():
    plan = plan_of(UPPER)
    mean = plan.value(0.7, 0.9)
    assert mean == pytest.approx(0.7 + plan.overhead + 0.9 * plan.shift)
    assert plan.value(0.7, 0.9, -1.5) == pytest.approx(mean - 1.5 * 0.9 * plan.sigma)


@pytest.mark.parametrize("exponent", [1, 5, 9, 39])
def test_the_chance_of_failure_is_printed_as_people_write_it(exponent):
    delta = float(f"1e-{exponent}")
    assert repr(failure_delta(delta)) == repr(float(f"1e-{exponent + 1}"))
