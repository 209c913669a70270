"""The conditional bound against exact laws on whole graphs, direct integrals, and mutants."""

from __future__ import annotations

import itertools
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import log_ndtr, logsumexp

from divergences import coin, renyi
from graphs import Graph
from laws import gaussian_argmax_law
from pate_cli.accounting.gaussian import conditional
from pate_cli.accounting.gaussian.conditional import (
    check_conditional_size,
    conditional_rdp,
    conditional_seconds,
)
from pate_cli.accounting.gaussian.worst_vote import worst_argmax_rdp
from pate_cli.errors import ParameterError

# histogram, then at orders 10 and 14, σ = 40: the bound by direct quadrature of E_C h, and the
# largest exact divergence over all neighbours.
GOLDEN = [
    ([127, 71, 10, 9, 7, 6, 6, 5, 5, 4], 3.2209708905617e-03, 3.2010387545287e-03, 10.0),
    ([127, 71, 10, 9, 7, 6, 6, 5, 5, 4], 4.7220621140853e-03, 4.6946873337214e-03, 14.0),
    ([130, 120, 0, 0, 0, 0, 0, 0, 0, 0], 3.9885245142562e-03, 3.9869062285606e-03, 10.0),
    ([130, 120, 0, 0, 0, 0, 0, 0, 0, 0], 5.5806138367807e-03, 5.5783702036601e-03, 14.0),
    ([200, 30, 20, 0, 0, 0, 0, 0, 0, 0], 1.7999932754794e-04, 1.7650976750623e-04, 10.0),
    ([200, 30, 20, 0, 0, 0, 0, 0, 0, 0], 2.9766064714298e-04, 2.9177337157384e-04, 14.0),
    ([186, 14, 10, 9, 8, 7, 6, 5, 3, 2], 2.2390920901272e-04, 2.1412763180173e-04, 10.0),
    ([186, 14, 10, 9, 8, 7, 6, 5, 3, 2], 3.6163249518951e-04, 3.4544690340443e-04, 14.0),
    ([96, 61, 55, 36, 1, 1, 0, 0, 0, 0], 3.4634227991552e-03, 3.3970158996038e-03, 10.0),
    ([96, 61, 55, 36, 1, 1, 0, 0, 0, 0], 4.9422313159344e-03, 4.8527736600817e-03, 14.0),
    ([60, 60, 60, 50, 20, 0, 0, 0, 0, 0], 2.9950319294068e-03, 2.9295054229759e-03, 10.0),
    ([60, 60, 60, 50, 20, 0, 0, 0, 0, 0], 4.1823683055346e-03, 4.0874905470618e-03, 14.0),
    ([25, 25, 25, 25, 25, 25, 25, 25, 25, 25], 1.8862538654731e-03, 1.8371416422126e-03, 10.0),
    ([25, 25, 25, 25, 25, 25, 25, 25, 25, 25], 2.6595578124839e-03, 2.5860737616586e-03, 14.0),
]


def cost(histograms, *, teachers, sigma, order, distances=(0,), cap=1e6):
    return conditional_rdp(
        np.array(histograms),
        teachers=teachers,
        sigma=sigma,
        order=order,
        distances=np.array(distances),
        cap=cap,
    )


@pytest.mark.parametrize("order", [10.0, 14.0])
def test_golden(order):
    rows = [row for row in GOLDEN if row[3] == order]
    found = cost([row[0] for row in rows], teachers=250, sigma=40.0, order=order)[0]
    direct, exact = np.array([row[1] for row in rows]), np.array([row[2] for row in rows])
    assert np.all(found >= exact)
    np.testing.assert_allclose(found, direct, rtol=5e-9)
    assert np.all(found >= direct)


# τ, m, σ and λ; every state of up to τ votes.
GRAPHS = [
    (8, 3, 0.7, 3.0),
    (8, 3, 1.0, 1.2),
    (7, 3, 2.0, 14.0),
    (6, 3, 4.0, 5.0),
    (5, 4, 1.0, 9.0),
    (5, 4, 2.0, 2.0),
    (5, 4, 4.0, 20.0),
    (4, 4, 30.0, 8.0),
    (3, 5, 0.7, 6.0),
]
DISTANCES = (0, 1, 2, 3)


def excesses(teachers, classes, sigma, order, *, missing=None):
    """The largest ratios that must not exceed 1: exact cost to F'_0, and F'_d(n') to F'_{d+1}(n).

    Missing votes are allowed unless `missing` is 0.
    """
    graph = Graph.of(teachers, classes, missing=teachers if missing is None else missing)
    found = cost(graph.histograms, teachers=teachers, sigma=sigma, order=order, distances=DISTANCES)
    law = gaussian_argmax_law(graph.histograms, sigma)
    here, there = graph.edges.T
    # Edges come in both orders: either direction is charged to either end.
    exact = renyi(law[here], law[there], order)
    first = max(float((exact / found[0, end]).max()) for end in (here, there))
    return first, float((found[:-1, there] / found[1:, here]).max())


@pytest.mark.parametrize(("teachers", "classes", "sigma", "order"), GRAPHS)
def test_every_neighbour_of_every_state(teachers, classes, sigma, order):
    first, second = excesses(teachers, classes, sigma, order)
    assert first <= 1.0
    assert second <= 1.0


def test_whole_ensembles_alone_reach_the_bounds():
    # Not vacuous: some histogram's exact cost and some ball are within a few percent.
    first, second = excesses(6, 3, 4.0, 5.0, missing=0)
    assert 0.97 <= first <= 1.0
    assert 0.99 <= second <= 1.0


class TestMutants:
    """Plausible mistakes that the two inequalities catch."""

    def test_balls_that_do_not_grow(self, monkeypatch):
        monkeypatch.setattr(conditional, "_spread", lambda bound: bound)
        monkeypatch.setattr(conditional, "_spread_line", lambda bound: bound)
        assert excesses(6, 3, 2.0, 5.0)[1] > 1.1

    def test_balls_that_only_move_the_two_touched_classes(self, monkeypatch):
        def spread(bound):
            wider = bound.copy()
            np.maximum(wider[2:, 1:], bound[:-2, :-1], out=wider[2:, 1:])
            np.maximum(wider[:-2, :-1], bound[2:, 1:], out=wider[:-2, :-1])
            return wider

        monkeypatch.setattr(conditional, "_spread", spread)
        assert excesses(5, 4, 2.0, 2.0)[1] > 1.02

    def test_the_law_of_the_wrong_classes(self, monkeypatch):
        true = conditional._Others.without
        monkeypatch.setattr(
            conditional._Others, "without", lambda self, rows, ranks: true(self, rows, ranks[:, :1])
        )
        assert excesses(5, 4, 2.0, 2.0)[0] > 1.1

    def test_missing_votes_forgotten(self, monkeypatch):
        # No exact cost is known to need the coin of a lone vote; the definition has it.
        graph = Graph.of(8, 3, missing=8)
        direct = np.array([lone_vote(counts, 0.7, 10.0) for counts in graph.histograms])
        query = {"teachers": 8, "sigma": 0.7, "order": 10.0}
        assert np.all(cost(graph.histograms, **query)[0] >= direct)
        monkeypatch.setattr(
            conditional._Cases, "single", lambda counts: conditional._Cases.pairs(counts)
        )
        assert (cost(graph.histograms, **query)[0] < direct * 0.999).mean() > 0.1

    def test_one_direction_of_a_moved_vote(self, monkeypatch):
        true = conditional._moved_vote

        def forward(*args, **kwargs):
            table = true(*args, **kwargs)
            gone = np.zeros_like(table.at_places)
            gone[:, : table.over_cells.shape[0] // 2] = table.at_places[
                :, : table.over_cells.shape[0] // 2
            ]
            return conditional._Table(gone, table.over_cells)

        monkeypatch.setattr(conditional, "_moved_vote", forward)
        assert excesses(5, 4, 2.0, 2.0)[0] > 1.001


NODES, WEIGHTS = np.polynomial.legendre.leggauss(12)


def panels(low, high, width=0.25):
    """Nodes and weights of Gauss–Legendre panels."""
    edges = np.linspace(low, high, int(np.ceil((high - low) / width)) + 1)
    half = np.diff(edges)[:, None] / 2.0
    return (edges[:-1, None] + half * (NODES + 1.0)).ravel(), (half * WEIGHTS).ravel()


def three_outcomes(x, y):
    """log chances that x + N, y + N' and 0 are the largest, [3, cases]."""
    t, weights = panels(0.0, 16.0, 2.0)
    log_weights = np.log(weights) - 0.5 * np.log(2.0 * np.pi)

    def wins(a, b):
        terms = log_weights - (t - a[:, None]) ** 2 / 2.0 + log_ndtr(t - b[:, None])
        return logsumexp(terms, axis=1)

    return np.stack([wins(x, y), wins(y, x), log_ndtr(-x) + log_ndtr(-y)])


def larger_moment(x, y, sigma, order):
    """h_λ(x, y)."""
    here, there = three_outcomes(x, y).T, three_outcomes(x - 1.0 / sigma, y + 1.0 / sigma).T
    return np.expm1(
        (order - 1.0) * np.maximum(renyi(here, there, order), renyi(there, here, order))
    )


def hexagon():
    """(Δ_a − δ, Δ_b − δ) for a vote at most from and a vote at most to one of a, b and C."""
    steps = np.vstack([np.eye(3), np.zeros((1, 3))])
    moved = np.array([np.subtract(*pair) for pair in itertools.product(steps, repeat=2)])
    return np.unique(moved[:, :2] - moved[:, 2:], axis=0)


def lone_vote(counts, sigma, order):
    """The cost of a vote added to any class or withdrawn, given the best of the others."""
    worst = 0.0
    for b, own in enumerate(counts):
        rest = np.delete(counts, b) / sigma
        c, weights = panels(-12.0, rest.max() + 16.0, 2.0)
        below = log_ndtr(c[:, None] - rest)
        hazard = np.exp(-((c[:, None] - rest) ** 2) / 2.0 - below) / np.sqrt(2.0 * np.pi)
        density = np.exp(below.sum(axis=1)) * hazard.sum(axis=1)
        for change in (-1.0, 1.0):
            x, y = own / sigma - c, (own + change) / sigma - c
            for one, other in ((x, y), (y, x)):
                moment = np.expm1((order - 1.0) * coin(one, other, order))
                worst = max(worst, float(np.log1p((density * weights) @ moment)))
    return worst / (order - 1.0)


@pytest.mark.parametrize(
    ("counts", "sigma", "order"),
    [((5, 4, 1), 3.0, 4.0), ((6, 2, 2, 0), 2.0, 3.0), ((9, 1, 0, 0), 5.0, 9.0)],
)
def test_a_ball_against_its_definition(counts, sigma, order):
    # E_C of the largest h over a few points of the ball, without lattice or dilation.
    found = cost([counts], teachers=10, sigma=sigma, order=order, distances=(0, 1, 2))[:, 0]
    for distance in (0, 1, 2):
        ball = distance * hexagon() / sigma if distance else np.zeros((1, 2))
        worst = 0.0
        for a, b in itertools.permutations(range(3), 2):
            rest = np.array([counts[i] for i in range(len(counts)) if i not in (a, b)]) / sigma
            c, weights = panels(-5.0, max(rest) + 6.5, 2.0)
            below = log_ndtr(c[:, None] - rest)
            hazard = np.exp(-((c[:, None] - rest) ** 2) / 2.0 - below) / np.sqrt(2.0 * np.pi)
            density = np.exp(below.sum(axis=1)) * hazard.sum(axis=1)
            x = (counts[a] / sigma - c)[:, None] + ball[:, 0]
            y = (counts[b] / sigma - c)[:, None] + ball[:, 1]
            values = larger_moment(x.ravel(), y.ravel(), sigma, order).reshape(x.shape)
            worst = max(worst, float((density * weights) @ values.max(axis=1)))
        direct = np.log1p(worst) / (order - 1.0)
        if distance == 0:
            # The lattice takes the larger direction of the sums, not the sum of the larger ones.
            assert direct * 0.995 <= found[0] <= direct * (1.0 + 1e-8)
        else:
            assert direct <= found[distance] <= direct * 1.12


@settings(max_examples=200)
@given(
    st.floats(-7.0, 7.0),
    st.floats(-7.0, 7.0),
    st.sampled_from(
        [(0.7, 0.1), (1.0, 0.1), (2.0, 0.5), (4.0, 0.25), (16.0, 0.0625), (40.0, 0.025)]
    ),
    st.sampled_from([1.1, 2.0, 5.0, 14.0]),
)
def test_nothing_within_a_cell_exceeds_its_bound(x, y, noise, order):
    sigma, unit = noise
    along = unit * np.linspace(0.0, 1.0, 17)
    here = three_outcomes(x + along, y + along)
    there = three_outcomes(x - 1.0 / sigma + along, y + 1.0 / sigma + along)
    for p, q in ((here, there), (there, here)):
        inside = np.expm1((order - 1.0) * renyi(p.T, q.T, order))
        at, over = conditional._moments(
            p[:, [0, -1]], q[:, [0, -1]], order=order, unit=unit, shift=1.0 / sigma
        )
        assert at[0] == pytest.approx(inside[0], rel=1e-6, abs=1e-18)
        assert inside.max() <= over[0]
        if sigma >= 16.0:
            # And by little: relative to the cell, or where h is small to the largest h there is.
            most = order * (order - 1.0) / sigma**2
            assert over[0] <= max(inside[0], inside[-1]) * 1.02 + 1e-4 * most


def test_many_classes_and_the_pairs_left_out():
    # Leaving out pairs, summing the classes of low rank once and chunks change nothing.
    rng = np.random.default_rng(7)
    histograms = np.array([rng.multinomial(60, rng.dirichlet(np.full(25, 0.2))) for _ in range(12)])
    settings_ = {"teachers": 60, "sigma": 12.0, "order": 6.0, "distances": (0, 1, 4)}
    found = cost(histograms, **settings_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(conditional, "_HEAD", 25)
        patch.setattr(conditional, "_ROWS_AT_ONCE", 5)
        patch.setattr(conditional, "_GAPS_AT_ONCE", 7)
        patch.setattr(
            conditional,
            "_rival_bounds",
            lambda cases, lattice, balls: np.full((len(cases), len(balls.lone)), np.inf),
        )
        every = cost(histograms, **settings_)
    np.testing.assert_allclose(found, every, rtol=1e-12)


def test_shape_order_and_caps():
    rng = np.random.default_rng(3)
    histograms = rng.multinomial(20, [0.6, 0.2, 0.1, 0.1], size=7)
    mixed = np.array([rng.permutation(row) for row in histograms])
    bound = float(worst_argmax_rdp(sigma=4.0, classes=4, orders=np.array([6.0]))[0])
    found = cost(mixed, teachers=20, sigma=4.0, order=6.0, distances=(0, 2, 9, 20), cap=bound)
    assert found.shape == (4, 7)
    assert np.all(np.diff(found, axis=0) >= 0.0)
    assert found.max() <= bound
    np.testing.assert_array_equal(
        found,
        cost(histograms, teachers=20, sigma=4.0, order=6.0, distances=(0, 2, 9, 20), cap=bound),
    )
    # Balls ascend to the worst histogram there is.
    assert np.all(found[-1] >= 0.99 * bound)
    assert cost(mixed[:0], teachers=20, sigma=4.0, order=6.0).shape == (1, 0)
    # Past float64 the cap stands, or λ/σ² where that is smaller.
    assert cost([[3, 2, 1]], teachers=6, sigma=0.1, order=9.0, cap=2e3)[0, 0] == pytest.approx(
        900.0
    )
    assert cost([[3, 2, 1]], teachers=6, sigma=0.1, order=9.0, cap=5.0)[0, 0] == 5.0


def test_refusals():
    good = {"teachers": 6, "sigma": 2.0, "order": 3.0}
    for histograms, changes, words in (
        ([[3, 3]], {}, "at least 3 classes"),
        ([[3, 3, 1]], {}, "counts of row 0"),
        ([[3, -1, 1]], {}, "counts of row 0"),
        ([[3.0, 1.0, 1.0]], {}, "must be integers"),
        ([3, 1, 1], {}, "must be integers"),
        ([[3, 2, 1]], {"sigma": 0.0}, "sigma must be positive"),
        ([[3, 2, 1]], {"order": 1.0}, "order must be finite and above 1"),
        ([[3, 2, 1]], {"cap": np.nan}, "cap must be at least 0"),
        ([[3, 2, 1]], {"distances": (2, 1)}, "distances must be ascending"),
        ([[3, 2, 1]], {"distances": (0.5,)}, "whole numbers"),
        ([[3, 2, 1]], {"teachers": 5000, "sigma": 800.0}, "teachers=5000, .* sigma=800: .* GiB"),
    ):
        with pytest.raises(ParameterError, match=words):
            cost(histograms, **(good | changes))


SHAPES = [
    # teachers, classes, sigma, order, rows, distances
    (60, 3, 6.0, 8.0, 300, 12),
    (40, 10, 4.0, 5.0, 600, 8),
    (40, 3, 2.0, 3.0, 60, 6),
    (30, 24, 8.0, 5.0, 200, 4),
]


@pytest.mark.parametrize(("teachers", "classes", "sigma", "order", "rows", "distances"), SHAPES)
def test_memory_is_presumed_for_the_worst_votes(
    monkeypatch, teachers, classes, sigma, order, rows, distances
):
    """What the widest votes took at most is allowed to all votes of their shape, or to none."""
    rng = np.random.default_rng(6)
    shares = rng.dirichlet(np.ones(classes), size=rows)
    wide = np.array([rng.multinomial(teachers, share) for share in shares])
    narrow = np.full((rows, classes), teachers // classes)
    asked = {"teachers": teachers, "sigma": sigma, "order": order}
    asked |= {"distances": np.arange(distances)}
    tracemalloc.start()
    try:
        cost(wide, **asked)
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    monkeypatch.setattr(conditional, "_MOST_BYTES", most)
    for votes in (wide, narrow):
        with pytest.raises(ParameterError, match="two-tail"):
            cost(votes, **asked)


def test_what_was_found_to_fit_is_never_refused(monkeypatch):
    """The public check speaks for all that may be asked of fewer rows and nearer by."""
    asked = {"teachers": 20, "classes": 4, "sigma": 3.0, "order": 4.0}
    histograms = np.random.default_rng(7).multinomial(20, [0.4, 0.3, 0.2, 0.1], size=40)
    for most in np.geomspace(1e6, 1e8, 40).tolist():
        monkeypatch.setattr(conditional, "_MOST_BYTES", int(most))
        try:
            check_conditional_size(rows=40, furthest=5, **asked)
        except ParameterError:
            continue
        for rows, distances in ((40, np.arange(6)), (40, (0, 5)), (7, (0,))):
            cost(histograms[:rows], teachers=20, sigma=3.0, order=4.0, distances=distances)
        break
    else:
        pytest.fail("nothing fits")


def test_estimates_of_time():
    small = {"rows": 567, "classes": 10, "teachers": 250, "sigma": 40.0, "order": 9.0}
    assert 0.1 < conditional_seconds(**small, furthest=63) < 10.0
    assert conditional_seconds(**small, furthest=63) > conditional_seconds(**small, furthest=0)
    assert conditional_seconds(**(small | {"sigma": 0.1}), furthest=63) == 0.0
