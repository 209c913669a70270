"""Parameters as users write them and as they are stored; costs add up and keep their caps."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pate_cli.core.errors import LedgerError, ParameterError
from pate_cli.core.words import MechanismName
from pate_cli.mechanisms import Amount, MechanismChoice, confident, scored_from_parameters
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability
from refusals import refusal
from runs import Given
from slices import some

CONFIDENT = ConfidentGNMax(50, 3, threshold=40.0, sigma1=30.0, sigma2=8.0)
ARGMAX = GNMax(50, 3, sigma2=8.0)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": "lasso"}, "unknown mechanism 'lasso'; this tool knows "),
        ({"name": None}, "unknown mechanism None; this tool knows "),
        ({"name": ["gnmax"]}, "unknown mechanism ['gnmax']; this tool knows "),
        ({"extra": 1}, "mechanism 'gnmax' has wrong parameters: "),
        (
            {"teachers": 0},
            "mechanism 'gnmax' has wrong parameters: `teachers` must be a ",
        ),
        ({"sigma2": None}, "mechanism 'gnmax' has wrong parameters: "),
    ],
    ids=str,
)
def test_damaged_parameters_are_refused(change, message):
    text = refusal(LedgerError, scored_from_parameters, ARGMAX.parameters() | change)
    assert text.startswith(message)


GOOD = [
    (ConfidentGNMax, {"threshold": 40.0, "sigma1": 30.0, "sigma2": 8.0}),
    (GNMax, {"sigma2": 8.0}),
    (InteractiveGNMax, {"threshold": 40.0, "sigma1": 30.0, "sigma2": 8.0}),
    (LNMax, {"laplace_scale": 1.0}),
    (SparseVector, {"query_epsilon": 1.0, "query_delta": 0.1, "refusals": 2}),
    (Stability, {"query_epsilon": 1.0, "query_delta": 0.1}),
]


def range_of(name, text, *values):
    return [(name, value, f"{text}, got {value!r}") for value in values]


BAD = [
    *range_of(
        "teachers", "`teachers` must be a whole number of at least 1", 3.0, "50", True, math.nan, 0
    ),
    *range_of("classes", "`classes` must be a whole number of at least 2", 1),
    *range_of(
        "teachers_per_record", "`teachers_per_record` must be a whole number of at least 1", 0
    ),
    ("teachers_per_record", 21, "`teachers_per_record` 21 is more than the 20 teachers"),
    *range_of("threshold", "`threshold` must be finite", math.inf, math.nan),
    *range_of("sigma1", "`sigma1` must be positive and finite", -1.0),
    *range_of("sigma2", "`sigma2` must be positive and finite", math.inf, 0.0),
    *range_of("confidence", "`confidence` must be between 0 and 1", -0.01, 1.01, math.nan),
    *range_of("laplace_scale", "`laplace_scale` must be positive and finite", 0.0, math.nan),
    *range_of("query_epsilon", "`query_epsilon` must be positive and finite", 0.0, -1.0, math.nan),
    *range_of("refusals", "`refusals` must be a whole number of at least 1", 0, 2.5),
]
QUERY_DELTA = [
    (Stability, 0.0, "`query_delta` must be between 0 and 1, both excluded, got 0.0"),
    (SparseVector, 0.51, "`query_delta` must be above 0 and at most 0.5, got 0.51"),
]


@pytest.mark.parametrize(("kind", "good"), GOOD, ids=lambda value: getattr(value, "__name__", ""))
def test_parameters_out_of_range(kind, good):
    good = {"teachers": 20, "classes": 3, "teachers_per_record": 1} | good
    if kind is InteractiveGNMax:
        good |= {"confidence": 0.9}
    most = 10_000 if kind in (InteractiveGNMax, LNMax) else 1 << 24
    assert kind(**(good | {"classes": most})).classes == most
    text = refusal(ParameterError, kind, **(good | {"classes": most + 1}))
    if most == 10_000:
        assert text == f"{kind.name} takes at most 10000 classes, got 10001"
    else:
        assert text == f"`classes` must be at most {most}, got {most + 1}"
        crowd = refusal(ParameterError, kind, **(good | {"classes": 10_001, "teachers": 100_001}))
        assert crowd == "`teachers` must be at most 100000 with more than 10000 classes, got 100001"
    refused = 0
    for field, value, message in BAD:
        if field in good:
            assert refusal(ParameterError, kind, **(good | {field: value})) == message
            refused += 1
    for other, value, message in QUERY_DELTA:
        if other is kind:
            assert refusal(ParameterError, kind, **(good | {"query_delta": value})) == message
            refused += 1
    assert refused >= 10
    assert set(good) - {"query_delta"} <= {field for field, _, _ in BAD}


def test_the_threshold_is_on_the_largest_count_and_equality_passes():
    mechanism = ConfidentGNMax(10, 2, threshold=7.0, sigma1=2.0, sigma2=3.0)
    counts = np.array([[3, 7], [3, 7], [6, 4], [6, 4], [10, 0]])
    draws = np.array([[0.0, 0, 0], [-0.01, 0, 0], [0.49, 0, 0], [0.5, 0, 1.0], [-1.5, -2.0, 1.5]])
    assert mechanism.label(counts, Given(draws)).tolist() == [1, -1, -1, 1, 1]


@pytest.mark.parametrize(
    ("sigma1", "sigma2", "order"),
    some(
        [
            (0.5, 0.5, 20.0),
            (30.0, 1.9, 50.0),
            (0.3, 5.0, 60.0),
            (5.0, 0.3, 6.0),
            (30.0, 8.0, 5000.0),
        ],
        2,
    ),
)
def test_little_noise_and_high_orders_overflow_nothing(sigma1, sigma2, order):
    mechanism = ConfidentGNMax(20, 3, threshold=15.0, sigma1=sigma1, sigma2=sigma2)
    table = mechanism.cost_table(order)
    cost = table.rows(0, 21)
    cap = order / (2.0 * sigma1**2) + order / sigma2**2
    assert np.all((cost >= 0.0) & (cost <= cap * (1.0 + 1e-12)))
    assert np.all(np.isfinite(table.blocks))
    worst = mechanism.worst_rdp(queries=1, answers=1, orders=np.array([order]))
    assert np.all((worst > 0.0) & (worst <= cap * (1.0 + 1e-12)))


def test_rows_that_are_put_together_cost_no_less_than_each(monkeypatch):
    mechanism, orders = ConfidentGNMax(60, 3, threshold=38.0, sigma1=4.0, sigma2=5.0), [2.0, 9.0]
    each = mechanism._worst_queries(np.array(orders))
    for groups in range(2, 40):
        monkeypatch.setattr(confident, "_MOST_GROUPS", groups)
        assert np.all(mechanism._worst_queries(np.array(orders)) >= each)


def test_worst_case_costs_and_gaussian_dp_add_up():
    orders = np.array([2.0, 9.0])
    one = CONFIDENT.worst_rdp(queries=1, answers=0, orders=orders)
    both = CONFIDENT.worst_rdp(queries=1, answers=1, orders=orders)
    many = CONFIDENT.worst_rdp(queries=10, answers=3, orders=orders)
    answer = ARGMAX.worst_rdp(queries=7, answers=1, orders=orders)
    assert np.all(both < one + answer)  # no query is a tie and sure to pass the test
    np.testing.assert_allclose(many, np.minimum(10 * one + 3 * answer, 10 * both), rtol=1e-12)
    assert np.all(many < 10 * both)
    assert CONFIDENT.gaussian_mu(queries=9, answers=4) == pytest.approx(
        math.sqrt(9 / 30.0**2 + 8 / 8.0**2)
    )
    assert ARGMAX.gaussian_mu(queries=9, answers=4) == pytest.approx(math.sqrt(8 / 8.0**2))
    # A record of five teachers moves the largest count and the histogram five times as far.
    five = replace(CONFIDENT, teachers_per_record=5)
    mu = five.gaussian_mu(queries=9, answers=4)
    assert mu == pytest.approx(5.0 * math.sqrt(9 / 30.0**2 + 8 / 8.0**2))
    steps = five.textbook(queries=9, answers=4)
    assert sum(step.count / step.noise_multiplier**2 for step in steps) == pytest.approx(mu**2)
    assert [step.count for step in steps] == [9, 4]


@pytest.mark.parametrize(
    ("given", "votes"),
    [
        *((200, 200.0), (1, 1.0), (0, 0.0), (-3.5, -3.5), ("200", 200.0), (" 1e2 ", 100.0)),
        *(("80%", 200.0), ("0.4%", 1.0), ("120 %", 300.0), ("0.8 votes", 0.8), ("1vote", 1.0)),
    ],
)
def test_amounts(given, votes):
    assert Amount.of("threshold", given).votes(250) == votes


@given(st.floats(0.0, 1.0, exclude_min=True, exclude_max=True))
def test_what_could_be_a_share_is_refused_with_both_readings(value):
    for given_value in (value, repr(value)):
        with pytest.raises(ParameterError, match=r"`sigma1` .* votes, or .*% of the teachers\?"):
            Amount.of("sigma1", given_value)
    assert Amount.of("sigma1", f"{value!r} votes").votes(7) == value


@pytest.mark.parametrize("text", ["", "abc", "80 percent", "%", "8 0", None, [3], "1,5"])
def test_what_is_no_number(text):
    with pytest.raises(ParameterError, match="`sigma2` must be a number of votes, or a share"):
        Amount.of("sigma2", text)


def test_a_choice_takes_shares_and_keeps_its_units():
    choice = MechanismChoice(
        MechanismName.CONFIDENT, {"threshold": "80%", "sigma1": "0.5 votes", "sigma2": 20}
    )
    again = choice.among(MechanismName.CONFIDENT).affording(3)
    for teachers, threshold in ((250, 200.0), (10, 8.0)):
        built = again.build(teachers=teachers, classes=3, queries=5, delta=1e-5)
        assert (built.threshold, built.sigma1, built.sigma2) == (threshold, 0.5, 20.0)
    with pytest.raises(ParameterError, match="80% of the teachers"):
        MechanismChoice(MechanismName.CONFIDENT, {"threshold": 0.8})
