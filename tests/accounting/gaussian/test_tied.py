"""A whole Confident query, test and argmax tied: exact laws on whole graphs, integrals, mutants."""

import itertools

import numpy as np
import pytest
from scipy.special import ndtr

from divergences import exact_test, renyi
from graphs import Graph, neighbours_of
from laws import checked_argmax_law, expected_moment
from pate_cli.accounting.gaussian import tied
from pate_cli.accounting.gaussian.conditional import ConditionalSize
from pate_cli.accounting.gaussian.tied import check_tied_size, tied_rdp
from pate_cli.accounting.gaussian.worst_vote import worst_argmax_rdp
from pate_cli.core.errors import ParameterError
from slices import chosen, some


def cost(histograms, *, distances=(0,), threshold, sigma1, argmax_cap=1e6, **query):
    return tied_rdp(
        np.array(histograms),
        threshold=threshold,
        sigma_threshold=sigma1,
        distances=np.array(distances),
        argmax_cap=argmax_cap,
        **query,
    )


# τ, m, σ2, T, σ1, λ, and how many votes may be missing.
GRAPHS = [
    (7, 3, 2.0, 5.0, 1.5, 5.0, 7),
    (7, 3, 1.0, 4.0, 1.0, 3.0, 7),
    (6, 3, 0.7, 3.0, 0.5, 2.0, 6),
    (5, 4, 2.0, 3.0, 1.0, 9.0, 5),
    (6, 4, 4.0, 4.5, 0.7, 2.0, 6),
    (5, 5, 3.0, 3.0, 2.0, 12.0, 5),
    (8, 4, 6.0, 5.0, 4.0, 8.0, 0),
    (12, 3, 8.0, 8.0, 3.0, 10.0, 0),
    (16, 3, 16.0, 9.0, 10.0, 14.0, 0),
]
DISTANCES = tuple(range(6))


@pytest.mark.parametrize("case", some(GRAPHS, 2), ids=str)
def test_every_neighbour_of_every_state(case):
    """Exact costs are at most u_0(n), and u_d(n') at most u_{d+1}(n); both come near it."""
    teachers, classes, sigma, threshold, sigma1, order, missing = case
    graph = Graph.of(teachers, classes, missing=missing)
    query = {"sigma": sigma, "threshold": threshold, "sigma1": sigma1}
    found = cost(graph.histograms, distances=DISTANCES, teachers=teachers, order=order, **query)
    law = checked_argmax_law(graph.histograms, **query)
    here, there = graph.edges.T
    exact = renyi(law[here], law[there], order)
    assert 0.9 <= (exact / found[0, here]).max() <= 1.0
    assert 0.99 <= (found[:-1, there] / found[1:, here]).max() <= 1.0


def direct(counts, *, sigma, threshold, sigma1, order):
    """The definition at distance 0: the worst ordered pair, test and argmax of the same votes."""
    worst = 0.0
    for a, b in itertools.permutations(range(len(counts)), 2):
        if counts[a] == 0:
            continue
        rest = max(n for i, n in enumerate(counts) if i not in (a, b))
        label = 1.0 + expected_moment(counts, a, b, sigma, order)
        p, q = (
            ndtr((max(*pair, rest) - threshold) / sigma1)
            for pair in ((counts[a], counts[b]), (counts[a] - 1, counts[b] + 1))
        )
        moment = (1 - p) ** order * (1 - q) ** (1 - order) + p**order * q ** (1 - order) * label
        worst = max(worst, moment)
    return np.log(worst) / (order - 1.0)


@pytest.mark.parametrize(
    "counts",
    some([[27, 9, 3, 1], [16, 15, 5, 4], [12, 11, 11, 6], [40, 0, 0, 0], [13, 13, 13, 1]], 2),
)
def test_neighbours_cost_what_the_definition_says(counts):
    query = {"sigma": 16.0, "threshold": 22.0, "sigma1": 6.0, "order": 6.0}
    found = float(cost([counts], teachers=40, **query)[0, 0])
    assert 1.0 <= found / direct(counts, **query) <= 1.02


def test_the_smallest_costs_of_the_real_votes(mnist_histograms):
    histograms, rows = np.unique(mnist_histograms[:640], axis=0, return_counts=True)
    sums = {0: 0.38143, 1: 0.38912, 4: 0.41364, 8: 0.44988}
    distances = chosen(sums, {0})
    found = cost(
        histograms,
        distances=distances,
        teachers=250,
        sigma=40.0,
        threshold=200.0,
        sigma1=150.0,
        order=15.0,
    )
    np.testing.assert_allclose(found @ rows, [sums[at] for at in distances], rtol=2e-3)


LONG = {"teachers": 120, "sigma": 20.0, "threshold": 80.0, "sigma1": 12.0, "order": 6.0}
"""Large enough for tables to be cropped."""


def walk(steps=24):
    """From a clear vote to a tie and past it, one vote at a time; some only withdrawn."""
    path = [np.array([66, 48, 4, 2])]
    for step in range(steps):
        moved = path[-1].copy()
        moved[0] -= 1
        if step % 7 != 3:
            moved[1 if step % 5 else 2] += 1
        path.append(moved)
    return np.array(path)


def test_every_distance_covers_the_one_before_along_a_walk():
    found = cost(walk(), distances=np.arange(16), **LONG)
    assert np.all(found[:-1, 1:] <= found[1:, :-1])
    assert np.all(found[:-1, :-1] <= found[1:, 1:])
    law = checked_argmax_law(walk(), sigma=20.0, threshold=80.0, sigma1=12.0)
    assert np.all(renyi(law[:-1], law[1:], 6.0) <= found[0, :-1])
    assert np.all(renyi(law[1:], law[:-1], 6.0) <= found[0, 1:])


@pytest.mark.parametrize(("start", "there", "threshold"), [
    ([80, 0, 0], [40, 40, 0], 10.0),  # 40 votes move, to a tie
    ([0, 0, 0], [40, 0, 0], 40.0),  # they appear, up to the threshold
    ([40, 40, 0], [80, 0, 0], 80.0),  # they move, to the threshold
    ([40, 40, 0], [20, 20, 0], 20.0),  # they go missing
])  # fmt: skip
def test_votes_at_any_distance_count(start, there, threshold):
    """Exact laws forty votes away, which cost more than anything within thirty."""
    query = {"sigma": 10.0, "threshold": threshold, "sigma1": 4.0}
    found = cost([start], distances=range(41), teachers=80, order=4.0, **query)[:, 0]
    around = neighbours_of(np.array(there))
    laws = checked_argmax_law([there, *around[around.sum(axis=1) <= 80]], **query)
    exact = max(renyi(laws[:1], laws[1:], 4.0).max(), renyi(laws[1:], laws[:1], 4.0).max())
    assert found[30] < exact <= found[40]


def test_pairs_left_out_are_settled_by_more_than_they_cost():
    rng = np.random.default_rng(11)
    histograms = -np.sort(
        -np.array([rng.multinomial(60, rng.dirichlet(np.full(5, 0.5))) for _ in range(6)]), axis=1
    )
    seen = []

    def kept(touched, bound, found):
        seen.append(bound)
        return touched

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tied, "_above", kept)
        results = []
        for name in ("pairs", "lone_votes"):
            true = getattr(tied._TiedQuery, name)

            def noted(self, touched, *rest, true=true, **more):
                results.append(true(self, touched, *rest, **more))
                return results[-1]

            patch.setattr(tied._TiedQuery, name, noted)
        cost(histograms, distances=np.arange(8), **dict(LONG, teachers=60, threshold=40.0))
    # Leaders, then pairs by their larger class and whole, then single classes.
    _, larger, whole, lone = results
    untied, by_larger, untied_lone = seen
    slack = 1.0 + 1e-9
    assert np.all(whole <= larger * slack)
    assert by_larger is larger
    assert np.all(larger <= untied * 1.0001)
    assert np.all(lone <= untied_lone * 1.0001)


def coin_and_weight(teachers, threshold, sigma1, order):
    """(1−p)^λ(1−p')^{1−λ} + p^λ p'^{1−λ} − 1 and p^λ p'^{1−λ} for v and v' = v + step."""
    found = {}
    for v, step in itertools.product(range(teachers + 1), (-1, 0, 1)):
        p, q = ndtr((v - threshold) / sigma1), ndtr((v + step - threshold) / sigma1)
        weight = p**order * q ** (1 - order)
        found[v, v + step] = ((1 - p) ** order * (1 - q) ** (1 - order) + weight - 1.0, weight)
    return found


def moves(own, others, rests, teachers):
    """(kind, v, v') of every vote from f to o, from o to f, and of f alone."""
    for o, r in itertools.product(others, rests):
        if own + o + r > teachers:
            continue
        v = max(own, o, r)
        if own:
            yield "giving", v, max(own - 1, o + 1, r)
        if o:
            yield "taking", v, max(own + 1, o - 1, r)
    for r in rests:  # o is one of the rest
        if own + r < teachers:
            yield "lone", max(own, r), max(own + 1, r)
        if own and own + r <= teachers:
            yield "lone", max(own, r), max(own - 1, r)


@pytest.mark.parametrize("threshold", [2.0, 8.0])
def test_every_score_that_votes_may_reach_is_charged(threshold):
    """Each count of o and of the rest within l losses and g gains, one by one."""
    teachers, random, gains = 9, np.random.default_rng(4), np.arange(4)
    known = coin_and_weight(teachers, threshold, 1.5, 3.0)
    told = {"teachers": teachers, "threshold": threshold, "sigma": 1.5, "order": 3.0}
    test, law = tied._Test.of(**told), np.ones((1, 1))
    for own, other, rest in random.multinomial(teachers, (0.4, 0.3, 0.3), 25).tolist():
        sides = tied._Sides(*(np.array([n]) for n in (own, other, rest)), law, 0)
        for losses in range(4):
            moment = 10.0 ** random.uniform(-2.0, 1.0, (1, gains.size))
            reach = tied._Reach.of(sides, losses, gains, teachers=teachers)
            for gained in gains.tolist():
                there, m = own + losses - gained, moment[0, gained]
                if not 0 <= there <= teachers:
                    continue
                others = range(max(other - losses, 0), other + gained + 1)
                rests = range(max(rest - losses, 0), rest + gained + 1)
                for kind, *scores in moves(there, others, rests, teachers):
                    found = getattr(reach, kind)(test, moment)[0, gained]
                    excess, weight = known[tuple(scores)]
                    assert found >= (excess + weight * m) * (1.0 - 1e-9) - 1e-14


def test_all_of_the_work_is_told():
    told = []
    rng = np.random.default_rng(2)
    histograms = rng.multinomial(20, [0.4, 0.3, 0.2, 0.1], size=5)
    query = {"teachers": 20, "sigma": 4.0, "threshold": 12.0, "sigma1": 4.0, "order": 5.0}
    cost(histograms, distances=(0, 4), progress=told.append, **query)
    assert sum(told) == pytest.approx(1.0)
    assert len(told) > 10


def test_shape_order_and_caps():
    rng = np.random.default_rng(3)
    histograms = rng.multinomial(20, [0.6, 0.2, 0.1, 0.1], size=7)
    mixed = np.array([rng.permutation(row) for row in histograms])
    bound = float(worst_argmax_rdp(sigma=4.0, classes=4, orders=np.array([6.0]))[0])
    query = {"teachers": 20, "sigma": 4.0, "threshold": 12.0, "sigma1": 5.0, "order": 6.0}
    found = cost(mixed, distances=(0, 2, 9), argmax_cap=bound, **query)
    assert found.shape == (3, 7)
    assert np.all(np.diff(found, axis=0) >= 0.0)
    assert found.max() <= 6.0 / (2 * 5.0**2) + bound
    np.testing.assert_array_equal(
        found, cost(histograms, distances=(0, 2, 9), argmax_cap=bound, **query)
    )
    assert cost(mixed[:0], **query).shape == (1, 0)
    # Past float64 the cap stands.
    tiny = query | {"sigma": 0.1}
    assert np.all(cost(mixed, argmax_cap=7.0, **tiny) == 7.0 + 6.0 / 50.0)


def test_far_thresholds_and_extreme_noise():
    for threshold, sigma1 in ((-1e6, 1.0), (1e6, 1.0), (10.0, 1e-3), (10.0, 1e5)):
        query = {"teachers": 20, "sigma": 4.0, "threshold": threshold, "sigma1": sigma1}
        found = cost([[12, 5, 3], [20, 0, 0], [0, 0, 0]], distances=(0, 3), order=3.0, **query)
        assert np.all(np.isfinite(found))
        assert np.all(found >= 0.0)
        histograms = neighbours_of([12, 5, 3])
        both = np.vstack([[[12, 5, 3]], histograms])
        law = checked_argmax_law(both, sigma=4.0, threshold=threshold, sigma1=sigma1)
        if np.isfinite(law).all():
            exact = renyi(np.tile(law[0], (len(histograms), 1)), law[1:], 3.0)
            assert exact.max() <= found[0, 0]


def test_a_coin_of_hardly_any_noise_is_never_charged_less_than_it_costs():
    """Logs of 1e8 and more have lost the digits that their products need; mpmath has them."""
    for threshold, sigma1, order in (
        (64.48331477354787, 5.2704589098085574e-08, 8.0),
        (73.48957880828156, 7.03968394354333e-07, 12.5),
        (73.48957880827588, 5.025107965445194e-06, 12.5),
        (73.48957880698921, 5.068265353161984e-05, 12.5),
    ):
        query = {"threshold": threshold, "order": order}
        (bound,) = cost([[50, 0, 0]], teachers=60, sigma=5.0, sigma1=sigma1, **query)[0]
        assert exact_test(50, 49, sigma=sigma1, **query) <= bound


def test_tables_too_large_for_memory_are_refused():
    with pytest.raises(ParameterError, match="GiB"):
        cost([[3, 2, 1]], teachers=5000, sigma=800.0, threshold=3.0, sigma1=1.0, order=3.0)
    with pytest.raises(ParameterError, match="a table of"):
        check_tied_size(ConditionalSize(1, 3, 545, 2.0, 3.0, 0))
