"""C5 and C6: the verdict against a dense differencing that knows nothing of derivatives."""

import numpy as np
import pytest

from pate_cli.core.errors import ValidityError
from pate_cli.paper.costs import rdp_of_log_q
from pate_cli.paper.sensitivity import Plateau, check_conditions, log_q0, require_conditions
from slices import some


def differences_never_fall(sigma, classes, order):
    shape = Plateau(sigma, classes, order)
    last = float(shape.margin(shape.log_q1))
    margin = np.linspace(last - 8, last, 20_001)
    step = np.sqrt(2) / sigma
    here = shape.rdp(shape.log_q(margin))
    above = np.minimum(shape.log_q(margin + step), 0)
    # At the very end B_U(q) is q0, where rounding decides on which side of it.
    growth = (shape.rdp(above) - here)[:-1]
    return bool((np.diff(growth) >= -1e-8 * growth[1:]).all())


@pytest.mark.parametrize("sigma", some([2.0, 5.0, 20.0, 40.0, 100.0, 200.0], 3))
@pytest.mark.parametrize("classes", [2, 10, 150])
def test_verdict_is_that_of_dense_differencing(sigma, classes):
    for order in (1.5, 2.0, 7.5, 14.0, 20.5, 50.0, 100.0):
        verdict = check_conditions(sigma=sigma, classes=classes, order=order)
        assert verdict.holds == differences_never_fall(sigma, classes, order), verdict


def test_every_row_of_table_2_is_valid():
    """The orders of each (σ, m)."""
    rows = {(40, 10): [14, 7.5], (40, 2): [15.5], (100, 150): [20.5, 50], (200, 150): [50]}
    for (sigma, classes), orders in rows.items():
        for order in orders:
            require_conditions(sigma=sigma, classes=classes, order=order)


def test_failure_names_the_condition_and_the_place():
    holds = check_conditions(sigma=20.0, classes=10, order=14.0)
    assert (holds.holds, holds.reason, holds.log_q) == (True, "", None)
    fails = check_conditions(sigma=20.0, classes=10, order=50.0)
    assert not fails.holds
    assert fails.reason.startswith("C6 ")
    assert fails.log_q <= Plateau(20.0, 10, 50.0).log_q1 + 1e-9
    with pytest.raises(ValidityError, match="order 50 with sigma 20 and 10 classes: C6"):
        require_conditions(sigma=20.0, classes=10, order=50.0)


def test_q0_that_a_neighbour_can_carry_past_one_is_refused():
    verdict = check_conditions(sigma=1.0, classes=10, order=2.0)
    assert "B_U(q0) < 1" in verdict.reason


def test_beyond_q0_the_bound_is_the_data_independent_one():
    for sigma, order in [(40.0, 14.0), (5.0, 2.0), (100.0, 50.0)]:
        end = log_q0(sigma=sigma, order=order)
        log_q = np.linspace(end * (1 - 1e-9), -1e-9, 500)
        np.testing.assert_allclose(
            rdp_of_log_q(log_q, sigma=sigma, orders=order), order / sigma**2, rtol=1e-8
        )
        below = np.linspace(20 * end, end, 500)
        rising = rdp_of_log_q(below, sigma=sigma, orders=order)[0]
        assert (np.diff(rising) > 0).all()
        assert rising[-1] <= order / sigma**2
