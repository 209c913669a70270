"""Release plans: what they shift, what they cost, and what they refuse."""

import math

import pytest

from pate_cli.core.errors import ParameterError
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.settings import ReleasePlan, failure_delta
from refusals import refusal

UPPER, NONE = ReleaseKind.UPPER, ReleaseKind.NONE


def plan_of(kind, **change):
    fields = {"kind": kind, "delta": 1e-5, "order": 9.5, "beta": 0.02, "sigma": 7.0}
    return ReleasePlan(**(fields | change))


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


@pytest.mark.parametrize("exponent", [1, 5, 9, 39])
def test_the_chance_of_failure_is_printed_as_people_write_it(exponent):
    delta = float(f"1e-{exponent}")
    assert repr(failure_delta(delta)) == repr(float(f"1e-{exponent + 1}"))
