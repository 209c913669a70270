"""F against golden figures, exact divergences, and a rigorous bound on the worst κ from above.

"κ" is Pr[the plurality loses | the one noisy coordinate that a moved vote shifts]; F claims to be
the worst over all κ with E κ = q, which weak duality bounds without any search.
"""

import mpmath
import numpy as np
import pytest
from scipy.special import log_ndtr, ndtri_exp

from divergences import renyi
from graphs import neighbours_of
from laws import gaussian_argmax_law
from pate_cli.accounting.gaussian import two_tails
from pate_cli.accounting.gaussian.noisy_max import scores
from pate_cli.accounting.gaussian.two_tails import two_tail_rdp, two_tail_rdp_directions
from slices import some


def of_one(z, sigma, order):
    both = two_tail_rdp_directions(np.array([z]), sigma=sigma, orders=np.array([order]))
    return tuple(float(side[0, 0]) for side in both)


def test_golden(tight):
    for case in some(tight["gnmax_F"], 3):
        found = of_one(case["z"], case["sigma"], case["order"])
        for value, true in zip(found, (case["forward"], case["reverse"]), strict=True):
            assert true * (1.0 - 1e-9) <= value <= true * (1.0 + 1e-5), case
        larger = two_tail_rdp(
            np.array([case["z"]]), sigma=case["sigma"], orders=np.array([case["order"]])
        )
        assert float(larger[0, 0]) == max(found)


def test_no_neighbour_of_any_small_histogram_costs_more(small_cases):
    tightest = 0.0
    for counts, sigma, order in some(small_cases, 2):
        if counts.size == 2:
            continue
        laws = gaussian_argmax_law(np.vstack([counts, neighbours_of(counts)]), sigma)
        z = float(scores(counts[None], sigma=sigma)[0])
        forward, reverse = of_one(z, sigma, order)
        there, back = (
            float(renyi(laws[:1], laws[1:], order).max()),
            float(renyi(laws[1:], laws[:1], order).max()),
        )
        assert there <= forward * (1.0 + 1e-9) + 1e-15, (sigma, order)
        assert back <= reverse * (1.0 + 1e-9) + 1e-15, (sigma, order)
        tightest = max(tightest, there / forward, back / reverse)
    assert tightest > 0.6, "the oracle is too weak to test anything"


@pytest.mark.parametrize(
    ("sigma", "order", "z"),
    [
        (1.0, 26.0, -36.9),  # λ(λ − 1)/σ² is beyond 600
        (0.1, 4.0, -30.0),
        (0.5, 60.0, 0.0),
        (2.0, 60.0, -8.0),
        (0.2, 1.5, 0.0),  # one vote pushes the chance of the winner below 1e-12
        (0.15, 1.3, 1.0),
    ],
)
def test_past_float64_the_cap_stands(sigma, order, z):
    assert of_one(z, sigma, order) == (order / sigma**2, order / sigma**2)


def test_f_is_non_decreasing_and_capped():
    z = np.linspace(-14.0, 2.5, 1651)
    orders = np.array([1.1, 2.0, 5.0, 14.0, 30.0, 60.0])
    for sigma in some((0.5, 1.0, 3.0, 10.0, 40.0, 200.0), 2):
        cost = two_tail_rdp(z, sigma=sigma, orders=orders)
        # The search's own slack is 1e-6; what it leaves unfound is below 1e-9.
        assert np.all(np.diff(cost, axis=1) >= -1e-9 * cost[:, :-1])
        assert np.all(cost <= (orders / sigma**2)[:, None])
        assert np.all(cost > 0.0)


@pytest.mark.parametrize("sigma", some([0.5, 3.0, 40.0, 2000.0], 2))
def test_the_larger_direction_is_found_without_the_other(sigma):
    z = np.linspace(-14.0, 2.5, 300)
    orders = np.array([1.01, 1.1, 2.0, 5.0, 14.0, 60.0, 400.0])
    both = two_tail_rdp_directions(z, sigma=sigma, orders=orders)
    assert not np.array_equal(*both)
    np.testing.assert_array_equal(two_tail_rdp(z, sigma=sigma, orders=orders), np.maximum(*both))


def test_far_scores_cost_what_the_bound_says_to_the_last_digits():
    # e^{E} Φ(z + λμ) and no more; −∞ is a certain winner, +∞ costs the cap.
    z = np.array([-37.0, -30.0, -20.0])
    cost = two_tail_rdp(z, sigma=40.0, orders=np.array([14.0]))[0]
    mu = np.sqrt(2.0) / 40.0
    most = (14 * 13 * mu**2 / 2 + log_ndtr(z + 14 * mu)) - np.log(13.0)
    assert np.all(np.log(cost) < most + 1e-5)
    assert np.all(np.log(cost) > most - 1.0)
    ends = two_tail_rdp(np.array([-np.inf, np.inf]), sigma=40.0, orders=np.array([14.0]))[0]
    assert ends.tolist() == [0.0, 14.0 / 1600.0]


# J − 1 at one logit(q1/q), from the formula, in 45 digits.
def moment_by_mpmath(z, sigma, order, share, *, reverse):
    with mpmath.workdps(45):
        z, mu, order = mpmath.mpf(z), mpmath.sqrt(2) / mpmath.mpf(sigma), mpmath.mpf(order)
        q, c = mpmath.ncdf(z), order - 1
        mass = q / (1 + mpmath.exp(-mpmath.mpf(share)))
        z1, z2 = (
            mpmath.sqrt(2) * mpmath.erfinv(2 * part - 1) if part > 1e-9 else quantile(part)
            for part in (mass, q - mass)
        )
        moved = mpmath.ncdf(z1 - mu) + mpmath.ncdf(z2 + mu)
        factor = mpmath.exp(order * c * mu * mu / 2)
        if reverse:
            winner = (1 - moved) ** order * (1 - q) ** -c
            losers = mpmath.ncdf(z1 - order * mu) + mpmath.ncdf(z2 + order * mu)
        else:
            winner = (1 - q) ** order * (1 - moved) ** -c
            losers = mpmath.ncdf(z1 + c * mu) + mpmath.ncdf(z2 - c * mu)
        return winner + factor * losers - 1


def quantile(p):
    found = mpmath.mpf(float(ndtri_exp(float(mpmath.log(p)))))
    for _ in range(4):
        found -= (mpmath.ncdf(found) - p) / mpmath.npdf(found)
    return found


@pytest.mark.parametrize(
    ("z", "sigma", "order", "reverse"),
    some(
        [
            (-2.910541415017863, 574935.8039104394, 1.41833050076968, False),
            (-2.7354512689473847, 895215.7648233316, 1.3969447882748307, False),
            (-2.0255821152207725, 719095.7820144488, 1.8303693135128705, True),
            (-5.871126981721138, 380039.6686992697, 1.432431044989302, False),
            (-3.015742962264059, 214149.30746076722, 1.5899866208524371, False),
            (-1.4899537304906056, 57201.29668993489, 1.105006071314745, False),
        ],
        2,
    ),
)
def test_round_off_never_takes_the_bound_below_the_maximum(z, sigma, order, reverse):
    """With so much noise the terms of J − 1 cancel; the shortfall was 2e-6 to 7e-5 of it."""

    def at(share):
        return moment_by_mpmath(z, sigma, order, share, reverse=reverse)

    low, high = max(range(-12, 13, 2), key=at) + np.array([-2.0, 2.0])
    for _ in range(16):
        left, right = high - (high - low) / 1.618, low + (high - low) / 1.618
        low, high = (low, right) if at(left) > at(right) else (left, high)
    exact = mpmath.log1p(at((low + high) / 2)) / (order - 1)
    found = two_tail_rdp_directions(np.array([z]), sigma=sigma, orders=np.array([order]))
    bound = float(found[int(reverse)][0, 0])
    assert bound >= min(exact, order / sigma**2)
    assert bound <= 1.1 * exact


@pytest.mark.parametrize(("z", "sigma", "order", "share"), [
    (-1.2383276366910327, 981505.1244760129, 10.296830374162592, 2.0),
    (-4.230900036516147, 182458.90707242882, 1.1013566574023086, -2.0),
])  # fmt: skip
def test_a_moment_needs_the_errors_of_losers_and_winner(z, sigma, order, share):
    """Too low by 4e-5 without the error of the losers, or by 1e-5 without that of the winner."""
    mu, at = float(np.sqrt(2.0) / sigma), np.array([z])
    split = two_tails._Split.at(at, log_ndtr(at), np.array([share]), mu)
    found = two_tails._excess(split, order, mu, reverse=False)
    assert found[0] >= moment_by_mpmath(z, sigma, order, share, reverse=False)


@pytest.mark.parametrize("centre", [-1.4423, 0.3137, 7.77177, -30.2001])
def test_the_slack_covers_what_the_search_leaves_at_a_kink(monkeypatch, centre):
    """The worst a search can meet within a cell: J − 1 with a kink and slopes of 1/8."""
    peak = 1e-3

    def shares(z, log_q, share, mu):
        at = np.broadcast_to(share, np.broadcast(z, share).shape)
        return two_tails._Split(at, at, at, at, at, at, at)

    def nodes(z, log_q, mu):
        return shares(z[:, None], log_q, two_tails._SHARES, mu)

    def kinked(split, order, mu, *, reverse):
        return peak * (1.0 - np.minimum(np.abs(split.z1 - centre), 4.0) / 8.0)

    monkeypatch.setattr(two_tails._Split, "at", shares)
    monkeypatch.setattr(two_tails._Split, "on_nodes", nodes)
    monkeypatch.setattr(two_tails, "_excess", kinked)
    on_nodes, orders = nodes(np.zeros(1), None, 0.1), np.array([3.0])
    found = two_tails._maximise(
        np.zeros(1), on_nodes, orders, 0.1, probes=two_tails._PROBES, larger=False
    )
    assert (peak * (1.0 - two_tails.RELATIVE_SLACK) < found).all()
    assert (found < peak).all()
    for bound in two_tail_rdp_directions(np.zeros(1), sigma=1.0, orders=np.array([3.0])):
        assert bound[0, 0] >= np.log1p(peak) / 2.0


def test_no_split_of_a_fine_grid_is_worse_than_what_the_search_finds():
    """Local concavity is what the search relies on: random cases, and a grid 40 times as fine."""
    random = np.random.default_rng(26)
    fine = np.concatenate([np.arange(-34.0, 34.0, 0.05), [-700.0, -100.0, 100.0, 700.0, np.inf]])
    for _ in range(100):
        order = 1.0 + 10.0 ** random.uniform(-2.0, 3.0)
        exponent = 10.0 ** random.uniform(-3.0, 2.7)
        mu = float(np.sqrt(2.0 * exponent / (order * (order - 1.0))))
        z = np.array([-(10.0 ** random.uniform(-1.0, 1.5))])
        log_q, orders = two_tails.log_ndtr(z), np.array([order])
        on_nodes = two_tails._Split.on_nodes(z, log_q, mu)
        found = two_tails._maximise(
            z, on_nodes, orders, mu, probes=two_tails._PROBES, larger=False
        )[:, 0]
        split = two_tails._Split.at(z, log_q, fine, mu)
        for side, reverse in enumerate((False, True)):
            on_fine = two_tails._excess(split, order, mu, reverse=reverse).max()
            assert found[side, 0] >= on_fine * (1.0 - 1e-7)
