"""The coin against figures computed elsewhere, its shape, and the orders that go with a target."""

import json
import math
from pathlib import Path

import mpmath
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.accounting.tested_budget import DISTANCES, passing_coin, public_orders
from pate_cli.core.errors import ParameterError
from refusals import refusal

GOLDEN = json.loads(
    (Path(__file__).parents[1] / "golden" / "tested_budget.json").read_text(encoding="utf-8")
)
ORDERS = np.array([2.0, 5.0, 12.0])


def by_hand(profile, orders, epsilon, delta, eta):
    """The recursion with 60 digits."""
    with mpmath.workdps(60):
        x = mpmath.log(delta)
        for costs in reversed(list(zip(*profile, strict=True))):
            reach = []
            for order, cost in zip(orders, costs, strict=True):
                share = 1 - 1 / mpmath.mpf(order)
                factor = share ** (order - 1) / mpmath.mpf(order)
                conversion = (mpmath.log(factor) - mpmath.log(delta)) / (order - 1)
                reach.append(share * (x + epsilon - conversion - cost))
            by_cost = max(mpmath.log(delta), min(mpmath.mpf(0), max(reach)))
            x = min(mpmath.log(1 - mpmath.exp(-eta) * (1 - mpmath.exp(x))), by_cost)
        return float(x), float(mpmath.log(1 - mpmath.exp(x)))


@given(
    start=st.floats(0.0, 1.0),
    growth=st.floats(0.0, 0.4),
    epsilon=st.floats(0.3, 4.0),
    delta=st.sampled_from([1e-2, 1e-5, 1e-9]),
    share=st.floats(0.05, 1.0),
    distances=st.integers(1, 30),
)
def test_against_sixty_digits(start, growth, epsilon, delta, share, distances):
    profile = np.outer(ORDERS / 4.0, start + growth * np.arange(distances))
    found = passing_coin(
        profile, orders=ORDERS, epsilon=epsilon, delta=delta, refusal_epsilon=share * epsilon
    )
    log_pass, log_refuse = by_hand(
        profile.tolist(), ORDERS.tolist(), epsilon, delta, share * epsilon
    )
    assert found.log_pass == pytest.approx(log_pass, rel=1e-9, abs=1e-300)
    # Where the recursion has no kink nearby, the chance of a refusal keeps its digits, too.
    assert found.log_refuse == pytest.approx(log_refuse, rel=1e-9, abs=1e-9)
    assert math.log(delta) <= found.log_pass < 0.0


def test_unknown_costs_pass_with_delta_alone():
    unknown = np.full((3, 5), np.inf)
    tiny = passing_coin(unknown, orders=ORDERS, epsilon=2.0, delta=1.02e-14, refusal_epsilon=2.0)
    assert tiny.log_refuse == pytest.approx(-1.02e-14, rel=1e-12, abs=0.0)
    coin = passing_coin(unknown, orders=ORDERS, epsilon=2.0, delta=1e-5, refusal_epsilon=2.0)
    assert coin.chance == pytest.approx(1e-5, rel=1e-12)


def test_a_sure_pass_is_never_quite_sure():
    free = np.zeros((3, DISTANCES))
    coin = passing_coin(free, orders=ORDERS, epsilon=3.0, delta=1e-5, refusal_epsilon=0.5)
    assert coin.log_pass <= 0.0
    # Refusals fall by e^η a distance, but for the first few, where passes must grow from δ.
    least = math.log1p(-1e-5) - 0.5 * DISTANCES
    assert least <= coin.log_refuse <= least + 0.5 * 8


@pytest.mark.parametrize("target", GOLDEN["public orders for (epsilon, delta)"])
def test_the_public_orders(target):
    epsilon, delta = (float(part.split("=")[1]) for part in target.split(","))
    expected = GOLDEN["public orders for (epsilon, delta)"][target]
    assert public_orders(epsilon=epsilon, delta=delta).tolist() == expected


def test_no_order_is_too_low_and_none_comes_twice():
    orders = public_orders(epsilon=60.0, delta=1e-3)
    assert orders[0] >= 1.25
    assert np.all(np.diff(orders) > 0.0)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"refusal_epsilon": 0.0}, "refusal_epsilon"),
        ({"refusal_epsilon": 2.1}, "refusal_epsilon"),
        ({"epsilon": 0.0}, "epsilon"),
        ({"delta": 0.0}, "delta"),
        ({"profile": np.full((3, 4), -0.1)}, "profile"),
        ({"profile": np.full((2, 4), 0.1)}, "profile"),
        ({"profile": np.full((3, 4), np.nan)}, "profile"),
    ],
)
def test_what_is_refused(changed, message):
    words = {"epsilon": 2.0, "delta": 1e-5, "refusal_epsilon": 2.0} | changed
    profile = words.pop("profile", np.full((3, 4), 0.1))
    assert message in refusal(ParameterError, passing_coin, profile, orders=ORDERS, **words)
