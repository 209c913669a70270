"""The certificates of the two Laplace suprema: cells, what lies beyond them, dense searches."""

import numpy as np
import pytest

from divergences import renyi
from pate_cli.accounting.laplace import worst_vote
from pate_cli.accounting.laplace.score_cost import laplace_two_class_rdp
from pate_cli.accounting.laplace.worst_vote import three_way_log_outcomes, worst_laplace_max_rdp
from slices import some

CASES = [
    (1e-6, 2.0),
    (1e-3, 8.0),
    (0.02, 50.0),
    (0.05, 1.05),
    (0.2, 8.0),
    (1.0, 2.0),
    (3.0, 20.0),
    (20.0, 4.0),
]


@pytest.mark.parametrize(("shift", "order"), some(CASES, 2))
def test_nothing_beyond_the_cells_costs_more(shift, order):
    scale = 1.0 / shift
    found = worst_laplace_max_rdp(scale=scale, classes=3, orders=[order])[0]
    c = order - 1.0
    seen = worst_vote._seen(shift=shift, order=order)
    left, below, both, gap = worst_vote._ends(
        shift=shift,
        order=order,
        one_count=float(worst_vote.randomised_response_rdp(epsilon=shift, orders=[order])[0]),
        coin=float(laplace_two_class_rdp(0.0, scale=scale, orders=[order])[0]),
        target=float(np.expm1(c * seen * (1.0 + 1e-4))),
    )
    random = np.random.default_rng(3)
    past = random.exponential(2.0, size=(2, 3000))
    free = random.uniform(-30.0, 30.0, size=3000)
    least = np.minimum(free, both)
    for x, y in (
        (-left - past[0], free),
        (free, -below - past[0]),
        (both + past[0], both + past[1]),
        (both + gap + past[0], least),
        (least, both + gap + 2.0 * shift + past[0]),
    ):
        inside = np.abs(x - y) < 600.0  # beyond, chances underflow
        x, y = x[inside], y[inside]
        before, after = (three_way_log_outcomes(x + s, y - s) for s in (0.0, shift))
        assert renyi(before.T, after.T, order).max() <= found * (1.0 + 1e-12)


@pytest.mark.parametrize(
    ("scale", "order"),
    some(
        [
            (1e4, 8.0),
            (500.0, 1.05),
            (50.0, 50.0),
            (5.0, 200.0),
            (1.0, 30.0),
            (1 / 3, 1.01),
            (0.05, 5.0),
            (1 / 8, 20.0),
        ],
        2,
    ),
)
def test_the_certificate_encloses_a_dense_grid(scale, order):
    """At little noise peaks lie where exponentials meet the kinks, however far those are apart."""
    shift, unit = 1.0 / scale, np.linspace(-4.0, 12.0, 161)
    axis = np.unique(np.concatenate([shift * np.linspace(-3.0, 6.0, 181), unit, unit + shift]))
    x, y = (part.ravel() for part in np.meshgrid(axis, axis))
    before, after = three_way_log_outcomes(x, y), three_way_log_outcomes(x + shift, y - shift)
    seen = renyi(before.T, after.T, order).max()
    bound = worst_laplace_max_rdp(scale=scale, classes=5, orders=[order])[0]
    assert seen <= bound * (1.0 + 1e-12)
    assert seen >= bound * (1.0 - 3e-3)


def test_a_peak_that_is_known_is_taken():
    scores, orders = np.linspace(-12.0, 0.5, 300), np.array([1.1, 2.0, 14.0])
    found = laplace_two_class_rdp(scores, scale=20.0, orders=orders)
    again = laplace_two_class_rdp(scores, scale=20.0, orders=orders, peaks=found[:, -1])
    assert again.tolist() == found.tolist()
    lower = laplace_two_class_rdp(0.0, scale=20.0, orders=orders, peaks=found[:, -1] / 2.0)
    assert (lower == found[:, -1] / 2.0).all()


@pytest.mark.parametrize("scale", some([0.01, 0.1, 1.0, 100.0, 1e6, 1e8], 2))
def test_extreme_scales_and_orders(scale):
    orders = np.array([1.0001, 1.05, 3.0, 50.0, 1000.0])
    cap = worst_vote.randomised_response_rdp(epsilon=2.0 / scale, orders=orders)
    two, three = (worst_laplace_max_rdp(scale=scale, classes=m, orders=orders) for m in (2, 3))
    assert np.all((two > 0.0) & (two <= three * (1.0 + 1e-5)) & (three <= cap))
