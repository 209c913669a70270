"""C5 and C6: the verdict against a dense differencing that knows nothing of derivatives."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

from pate_cli import published
from pate_cli.core.errors import ParameterError, ValidityError
from pate_cli.published.gnmax import rdp_of_log_q
from pate_cli.published.plateau import log_q_at, margin_at
from slices import some


def differences_never_fall(sigma, classes, order):
    shape = published.find_plateau(sigma=sigma, classes=classes, order=order)
    last = float(margin_at(shape.log_q1, classes=classes))
    margin = np.linspace(last - 8, last, 20_001)
    step = np.sqrt(2) / sigma
    here = rdp_of_log_q(log_q_at(margin, classes=classes), sigma=sigma, orders=order)[0]
    above = np.minimum(log_q_at(margin + step, classes=classes), 0)
    # At the very end B_U(q) is q0, where rounding decides on which side of it.
    growth = (rdp_of_log_q(above, sigma=sigma, orders=order)[0] - here)[:-1]
    return bool((np.diff(growth) >= -1e-8 * growth[1:]).all())


@pytest.mark.parametrize("sigma", some([2.0, 5.0, 20.0, 40.0, 100.0, 200.0], 3))
@pytest.mark.parametrize("classes", [2, 10, 150])
def test_verdict_is_that_of_dense_differencing(sigma, classes):
    orders = [1.5, 2.0, 7.5, 14.0, 20.5, 50.0, 100.0]
    found = published.check_conditions(sigma=sigma, classes=classes, orders=orders)
    assert [v.order for v in found] == orders
    for verdict in found:
        assert verdict.holds == differences_never_fall(sigma, classes, verdict.order), verdict


def test_every_row_of_table_2_is_valid():
    for sigma, classes, order in [
        (40, 10, 14),
        (40, 10, 7.5),
        (40, 2, 15.5),
        (100, 150, 20.5),
        (100, 150, 50),
        (200, 150, 50),
    ]:
        published.require_conditions(sigma=sigma, classes=classes, orders=order)


def test_failure_names_the_condition_and_the_place():
    (verdict,) = published.check_conditions(sigma=20.0, classes=10, orders=50.0)
    assert not verdict.holds
    assert verdict.reason.startswith("C6 ")
    shape = published.find_plateau(sigma=20.0, classes=10, order=50.0)
    assert verdict.log_q is not None
    assert verdict.log_q <= shape.log_q1 + 1e-9
    with pytest.raises(ValidityError) as caught:
        published.require_conditions(sigma=20.0, classes=10, orders=[14.0, 50.0])
    assert "order 50 with sigma 20 and 10 classes: C6" in str(caught.value)
    assert caught.value.exit_code == 4


def test_q0_that_a_neighbour_can_carry_past_one_is_refused():
    (verdict,) = published.check_conditions(sigma=1.0, classes=10, orders=2.0)
    assert "B_U(q0) < 1" in verdict.reason


def test_beyond_q0_the_bound_is_the_data_independent_one():
    for sigma, order in [(40.0, 14.0), (5.0, 2.0), (100.0, 50.0)]:
        end = published.log_q0(sigma=sigma, order=order)
        log_q = np.linspace(end * (1 - 1e-9), -1e-9, 500)
        np.testing.assert_allclose(
            rdp_of_log_q(log_q, sigma=sigma, orders=order), order / sigma**2, rtol=1e-8
        )
        below = np.linspace(20 * end, end, 500)
        rising = rdp_of_log_q(below, sigma=sigma, orders=order)[0]
        assert (np.diff(rising) > 0).all()
        assert rising[-1] <= order / sigma**2


def test_a_verdict_gives_a_reason_and_a_place_exactly_when_it_fails():
    holds, fails = published.check_conditions(sigma=20.0, classes=10, orders=[14.0, 50.0])
    assert (holds.holds, holds.reason, holds.log_q) == (True, "", None)
    assert not fails.holds
    assert fails.reason
    assert fails.log_q is not None
    with pytest.raises(dataclasses.FrozenInstanceError):
        holds.holds = False


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"classes": 1}, "classes must be a whole number of at least 2, got 1"),
        ({"sigma": float("nan")}, "got nan"),
        ({"orders": 1.0}, "above 1, got 1.0"),
    ],
)
def test_conditions_refuse_parameters_out_of_range(change, message):
    with pytest.raises(ParameterError, match=message):
        published.check_conditions(**({"sigma": 40.0, "classes": 3, "orders": 14.0} | change))
