"""`pate_cli.tuning`: it finds what brute force finds, and what it finds keeps its word."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from pate_cli import run as engine
from pate_cli.accounting.conversion import conversion_cost, gaussian_epsilon
from pate_cli.accounting.gaussian.worst_vote import worst_argmax_rdp
from pate_cli.accounting.sensitivity import smooth_sensitivity
from pate_cli.errors import ParameterError, UnreachableError, UsageError
from pate_cli.noise import Noise
from pate_cli.pricing.sensitivity import measure_sensitivity
from pate_cli.release.best import best_release
from pate_cli.release.plan import ReleasePlan
from pate_cli.release.worst_case import Spending, data_independent_cost
from pate_cli.synthetic import SyntheticEnsemble
from pate_cli.tuning import Electorate, Goal, Grid, Search, Setting
from pate_cli.tuning.capped import price_capped
from pate_cli.tuning.electorate import capped_mean
from pate_cli.tuning.grid import parse_values
from pate_cli.tuning.sanitized import price_coarsely, price_exactly
from pate_cli.tuning.shortlist import Candidate, candidates
from pate_cli.tuning.survey import survey
from pate_cli.votes import VoteBatch
from pate_cli.words import Analysis, Objective, ReleaseKind

ROOT = Path(__file__).resolve().parents[1]
DELTA = 1e-5


def _electorate(seed=0, *, teachers=60, classes=4, queries=150, agreement=0.85):
    ensemble = SyntheticEnsemble(
        teachers=teachers, classes=classes, queries=queries, agreement=agreement
    )
    counts, truth = ensemble.draw(seed)
    return Electorate(counts, teachers, truth=truth)


SMALL = Grid((36.0, 48.0, 60.0), (15.0, 30.0, 48.0), (6.0, 10.0))


def _settings(grid):
    axes = (grid.thresholds, grid.sigmas1, grid.sigmas2)
    return [Setting(*values) for values in itertools.product(*axes)]


def _exact(electorate, setting, queries, orders, kind=ReleaseKind.UPPER):
    """The least mean + 2 sd over orders, on the fine lattice, with all distances."""
    mechanism, found = electorate.mechanism(setting), []
    for order in orders.tolist():
        measured = measure_sensitivity(
            [(mechanism, electorate.counts[:queries])],
            mechanism,
            order=order,
            beta=0.02 / order,
            analysis=Analysis.TIGHT,
        )
        best = best_release(
            kind,
            rdp=measured.rdp,
            curve=measured.curve,
            distances=np.arange(measured.curve.size),
            order=order,
            delta=DELTA,
        )
        found.append((best.value, best))
    value, best = min(found, key=lambda one: one[0])
    plan = ReleasePlan(kind=kind, delta=DELTA, order=best.order, beta=best.beta, sigma=best.sigma)
    return value, plan


def test_the_cheapest_setting_is_that_of_brute_force():
    electorate, grid = _electorate(), Grid((36.0, 48.0, 60.0), (15.0, 48.0), (6.0, 10.0))
    goal = Goal(answers=60.0, min_agreement=0.8)
    orders = 1.0 + np.geomspace(2.5, 10.0, 4)
    brute = {}
    for setting in _settings(grid):
        chance = electorate.answer_chance(setting)
        if chance.sum() < 60.0:
            continue
        queries = next(k for k in range(1, 151) if chance[:k].sum() >= 60.0)
        if electorate.yields(setting, queries).agreement >= 0.8:
            value, plan = _exact(electorate, setting, queries, orders)
            spent = [Spending(electorate.mechanism(setting), queries, queries)]
            public = data_independent_cost(spent, delta=DELTA, plan=plan).epsilon
            brute[setting] = min(value, public)
    winner = Search(electorate, grid, goal).run(extras=False).winner
    assert len(brute) > 5
    assert winner.setting == min(brute, key=brute.get)
    # Brute force tries few orders, so it may be a little above, and hardly below.
    least = min(brute.values())
    assert 0.97 * least <= winner.epsilon <= 1.003 * least + 1e-4


def test_most_answers_under_a_target_are_those_of_brute_force():
    electorate = _electorate(3)
    grid = Grid((42.0, 54.0), (48.0,), (8.0,))
    target, orders = 4.0, 1.0 + np.geomspace(3.0, 7.0, 3)
    brute = {}
    for setting in _settings(grid):
        low, high = 0, electorate.queries + 1
        while high - low > 1:  # ε grows with the rows
            middle = (low + high) // 2
            if _exact(electorate, setting, middle, orders, ReleaseKind.UNBIASED)[0] <= target:
                low = middle
            else:
                high = middle
        brute[setting] = electorate.yields(setting, low).answers if low else 0.0
    goal = Goal(target_epsilon=target, release=ReleaseKind.UNBIASED, min_agreement=0.0)
    winner = Search(electorate, grid, goal).run(extras=False).winner
    assert winner.setting == max(brute, key=brute.get)
    assert winner.epsilon <= target
    assert winner.expected.answers >= 0.97 * max(brute.values())


def test_rows_and_caps_are_those_of_brute_force():
    electorate = _electorate(5)
    grid = Grid((42.0, 54.0), (24.0, 48.0), (10.0,))
    target, orders = 3.0, 1.0 + np.geomspace(1.0, 64.0, 40)
    best = 0.0
    for setting in _settings(grid):
        chance = electorate.answer_chance(setting)
        argmax = worst_argmax_rdp(sigma=setting.sigma2, classes=4, orders=orders)
        mechanism = electorate.mechanism(setting)
        test = mechanism.worst_rdp(queries=1, answers=1, orders=orders) - argmax
        rows = np.arange(1, 151)
        for cap in range(1, 151):
            k2 = np.minimum(cap, rows)
            rdp = np.outer(rows, test) + np.outer(k2, argmax)
            renyi = (rdp + conversion_cost(orders, delta=DELTA)).min(axis=1)
            fits = renyi <= target
            if not fits.any():
                continue
            k1 = int(rows[fits][-1])
            mean, variance = chance[:k1].sum(), (chance * (1.0 - chance))[:k1].sum()
            answers = mean if cap >= k1 else capped_mean(mean, np.sqrt(variance), float(cap))
            best = max(best, float(answers))
    goal = Goal(target_epsilon=target, release=ReleaseKind.NONE, min_agreement=0.0)
    winner = Search(electorate, grid, goal).run(extras=False).winner
    assert winner.epsilon <= target
    assert winner.expected.answers >= 0.98 * best


def _aggregate(electorate, outcome, seed):
    mechanism = electorate.mechanism(outcome.setting)
    plan = outcome.plan or ReleasePlan(
        kind=ReleaseKind.NONE, delta=DELTA, order=8.0, beta=0.02, sigma=5.0
    )
    counts = electorate.counts[: outcome.queries]
    batch = VoteBatch(counts=counts, ids=np.arange(len(counts)), first_row=0)
    return engine.aggregate(
        [batch],
        mechanism,
        plan,
        queries=len(counts),
        max_answers=outcome.max_answers or len(counts),
        noise=Noise.from_seed(seed),
    )


def _random(seed):
    random = np.random.default_rng(seed)
    teachers = int(random.integers(20, 60))
    electorate = _electorate(
        seed,
        teachers=teachers,
        classes=int(random.integers(2, 6)),
        queries=int(random.integers(30, 120)),
        agreement=float(random.uniform(0.65, 0.95)),
    )
    grid = Grid.for_teachers(
        teachers,
        thresholds=(0.6 * teachers, 0.9 * teachers),
        sigmas1=(0.6 * teachers,),
        sigmas2=(0.2 * teachers,),
    )
    return electorate, grid, float(random.uniform(2.0, 7.0))


@pytest.mark.parametrize("seed", range(10))
def test_a_data_independent_target_is_always_met(seed):
    electorate, grid, target = _random(seed)
    goal = Goal(target_epsilon=target, release=ReleaseKind.NONE, min_agreement=0.0)
    winner = Search(electorate, grid, goal).run(extras=False).winner
    assert winner.always
    done = _aggregate(electorate, winner, seed)
    assert done.report.epsilon == winner.epsilon <= target
    # One answer more would have been too many, or there was no cap to raise.
    if winner.max_answers is not None:
        mechanism = electorate.mechanism(winner.setting)
        more = [Spending(mechanism, winner.queries, winner.max_answers + 2)]
        assert data_independent_cost(more, delta=DELTA, plan=None).epsilon > 0.995 * target


def test_a_sanitized_target_is_met_as_often_as_promised():
    # Ten draws miss by more than two standard deviations with probability 0.0228 each at most:
    # four or more of them do with probability 210 · 0.0228⁴ < 6e-5.
    missed = 0
    for seed in range(10, 20):
        electorate, grid, target = _random(seed)
        kind = ReleaseKind.UPPER if seed % 2 else ReleaseKind.UNBIASED
        goal = Goal(target_epsilon=target, release=kind, min_agreement=0.0)
        winner = Search(electorate, grid, goal).run(extras=False).winner
        assert winner.epsilon <= target
        done = _aggregate(electorate, winner, seed)
        missed += done.report.epsilon > target
        # The mean and spread of the draw, from the ledger of the run itself.
        smooth = smooth_sensitivity(
            done.ledger.sensitivity[0], ceiling=float(done.ledger.ceiling[0]), beta=winner.plan.beta
        )
        mean = float(done.ledger.rdp[0]) + smooth * winner.plan.shift + winner.plan.overhead
        assert winner.mean == pytest.approx(mean, rel=1e-12)
        assert winner.sd == pytest.approx(smooth * winner.plan.sigma, rel=1e-12)
    assert missed <= 3


def test_estimates_of_the_survey_are_near_exact_prices():
    electorate, goal = _electorate(7, teachers=100, queries=300), Goal(answers=100.0)
    grid = Grid.for_teachers(100)
    *_, found = survey(electorate, grid, goal, progress=lambda _done: None)
    listed = candidates(found, grid, goal, most=12)
    assert len(listed) == 12
    for one in listed[::4]:
        exact = price_exactly(electorate, price_coarsely(electorate, one, goal), goal)
        assert one.epsilon == pytest.approx(exact.sanitized, rel=0.06)


@pytest.mark.parametrize("reach", [1, 3])
def test_shared_records_are_priced_as_a_run_prices_them(reach):
    counts = _electorate(2).counts
    electorate = Electorate(counts, 60, teachers_per_record=reach)
    grid = Grid((48.0,), (30.0, 48.0), (10.0, 15.0))
    goal = Goal(answers=20.0, min_agreement=0.0)
    winner = Search(electorate, grid, goal).run(extras=False).winner
    done = _aggregate(electorate, winner, 1)
    assert done.ledger.rounds[0].mechanism["teachers_per_record"] == reach
    smooth = smooth_sensitivity(
        done.ledger.sensitivity[0], ceiling=float(done.ledger.ceiling[0]), beta=winner.plan.beta
    )
    assert winner.sd == pytest.approx(smooth * winner.plan.sigma, rel=1e-12)


def test_expected_yields_are_those_of_many_runs():
    electorate = _electorate(11, queries=40)
    setting = Setting(48.0, 30.0, 12.0)
    expected = electorate.yields(setting, 30)
    noise, mechanism = Noise.from_seed(0), electorate.mechanism(setting)
    counts, runs = electorate.counts[:30], 3000
    labels = np.stack([mechanism.label(counts, noise) for _ in range(runs)])
    hits = labels != -1
    # Ties aside, the plurality is the first largest class.
    unique = (counts == counts.max(axis=1, keepdims=True)).sum(axis=1) == 1
    assert unique.all()
    agreeing = hits & (labels == counts.argmax(axis=1))
    # A mean of 3000 counts of at most 30: five standard errors are below 0.25.
    assert expected.answers == pytest.approx(hits.sum() / runs, abs=0.25)
    assert expected.agreeing == pytest.approx(agreeing.sum() / runs, abs=0.25)
    right = (hits & (labels == electorate.truth[:30])).sum() / runs
    assert expected.correct <= right + 0.25


def test_capped_mean_against_the_exact_law():
    chance = np.random.default_rng(1).uniform(0.1, 0.9, 80)
    law = np.ones(1)
    for p in chance:
        law = np.convolve(law, [1.0 - p, p])
    mean, sd = chance.sum(), np.sqrt((chance * (1.0 - chance)).sum())
    for cap in range(1, 80):
        exact = float(np.minimum(np.arange(81), cap) @ law)
        assert float(capped_mean(mean, sd, np.array(float(cap)))) == pytest.approx(exact, abs=0.06)


def test_a_prefix_is_the_fewest_rows():
    electorate, setting = _electorate(1), Setting(48.0, 30.0, 10.0)
    chance = electorate.answer_chance(setting)
    rows = electorate.prefix_for(setting, 25.0)
    assert chance[:rows].sum() >= 25.0 > chance[: rows - 1].sum()
    assert electorate.prefix_for(setting, chance.sum() + 1e-6) is None


def test_a_goal_and_its_constraints():
    electorate, grid = _electorate(4), Grid((36.0, 54.0), (30.0,), (6.0, 10.0))
    lax = Goal(target_epsilon=4.0, release=ReleaseKind.NONE, min_agreement=0.0)
    strict = Goal(target_epsilon=4.0, release=ReleaseKind.NONE, min_agreement=0.97)
    first, second = (
        Search(electorate, grid, goal).run(extras=False).winner for goal in (lax, strict)
    )
    assert second.expected.agreement >= 0.97 > first.expected.agreement
    assert second.expected.answers < first.expected.answers
    most = Goal(
        target_epsilon=4.0,
        release=ReleaseKind.NONE,
        min_agreement=0.0,
        objective=Objective.AGREEMENT,
    )
    third = Search(electorate, grid, most).run(extras=False).winner
    assert third.expected.agreeing >= first.expected.agreeing
    both = Goal(target_epsilon=5.0, answers=20.0, release=ReleaseKind.NONE)
    fourth = Search(electorate, grid, both).run(extras=False).winner
    assert fourth.epsilon <= 5.0
    assert fourth.expected.answers >= 20.0


def test_the_front_has_nothing_beaten():
    tuned = Search(_electorate(4), SMALL, Goal(min_agreement=0.0)).run()
    assert tuned.winner is None
    assert len(tuned.pareto) > 4
    values = [(-p.epsilon, p.expected.answers, p.expected.agreement) for p in tuned.pareto]
    for one, other in itertools.permutations(values, 2):
        assert not all(a >= b for a, b in zip(one, other, strict=True)) or one == other
    assert [p.epsilon for p in tuned.pareto] == sorted(p.epsilon for p in tuned.pareto)


def test_what_is_out_of_reach_names_the_floor():
    electorate = _electorate(4)
    grid = Grid((48.0,), (30.0, 48.0), (10.0,))
    for kind in (ReleaseKind.UPPER, ReleaseKind.NONE):
        low = Goal(target_epsilon=0.05, release=kind, min_agreement=0.0)
        with pytest.raises(
            UnreachableError, match=r"epsilon 0\.05 is out of reach: the least is"
        ) as e:
            Search(electorate, grid, low).run()
        floor = float(str(e.value).split("the least is ")[1].split(" ")[0])
        # The floor itself can be reached, and nothing a little below it.
        at = Goal(target_epsilon=1.02 * floor, release=kind, min_agreement=0.0)
        assert Search(electorate, grid, at).run(extras=False).winner.epsilon <= 1.02 * floor
    with pytest.raises(UnreachableError, match="no setting gives 1000 expected answers"):
        Search(electorate, SMALL, Goal(answers=1000.0, min_agreement=0.0)).run()
    with pytest.raises(UnreachableError, match="lower --min-agreement"):
        Search(electorate, SMALL, Goal(answers=10.0, min_agreement=1.0)).run()


def test_the_best_so_far_after_an_interruption():
    search = Search(_electorate(4), SMALL, Goal(answers=30.0))
    assert search.best_so_far() is None
    seen = []

    def stop(done):
        seen.append(done)
        if len(seen) == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        search.run(stop)
    tuned = search.best_so_far()
    assert not tuned.complete
    assert tuned.winner.expected.answers >= 30.0
    assert tuned.winner.exact


def test_nothing_is_found_for_a_setting_beyond_its_rows():
    electorate, setting = _electorate(4), Setting(60.0, 15.0, 10.0)
    candidate = Candidate(setting=setting, queries=10, order=8.0, score=0.0, epsilon=1.0)
    goal = Goal(answers=149.0)
    assert price_coarsely(electorate, candidate, goal) is None
    assert (
        price_capped(electorate, candidate, Goal(answers=149.0, release=ReleaseKind.NONE)) is None
    )


def test_values_and_grids():
    assert parse_values("--sigma1", "3,1.5") == (3.0, 1.5)
    assert parse_values("--sigma1", "100:200:5") == (100.0, 125.0, 150.0, 175.0, 200.0)
    assert parse_values("--sigma1", None) is None
    for text in ("", "a", "1:2", "1:2:0", "1:2:x", "1,,2", "1,inf", "nan"):
        with pytest.raises(UsageError, match="--sigma1 takes"):
            parse_values("--sigma1", text)
    grid = Grid((3.0, 1.0, 3.0), (1.0,), (2.0,))
    assert (grid.thresholds, grid.size) == ((1.0, 3.0), 2)
    with pytest.raises(ParameterError, match="got 0"):
        Grid((1.0,), (0.0,), (2.0,))
    with pytest.raises(ParameterError, match="at least one value"):
        Grid((), (1.0,), (2.0,))
    with pytest.raises(ParameterError, match="min_agreement"):
        Goal(min_agreement=1.5)
    with pytest.raises(ParameterError, match="target_epsilon"):
        Goal(target_epsilon=float("nan"))


def test_large_files_are_surveyed_on_a_sample():
    electorate = _electorate(6, queries=1000)
    sample, scale = electorate.sample(100)
    assert (sample.queries, scale) == (100, 10.0)
    setting = Setting(48.0, 30.0, 10.0)
    whole = electorate.yields(setting, 1000).answers
    assert 10.0 * sample.yields(setting, 100).answers == pytest.approx(whole, rel=0.1)
    assert electorate.sample(1000)[0] is electorate


def test_mnist_release_parameters_found_jointly(mnist_histograms):
    electorate = Electorate(mnist_histograms, 250)
    grid = Grid((200.0,), (150.0,), (40.0,))
    winner = Search(electorate, grid, Goal(release=ReleaseKind.UNBIASED)).run(extras=False).winner
    assert winner.queries == 640
    assert winner.expected.answers == pytest.approx(282.72, abs=0.01)
    assert winner.mean <= 1.47
    assert winner.sd <= 0.155
    # Found elsewhere by hand: 1.447 ± 0.136, that is 1.719 with two standard deviations.
    assert winner.mean + 2.0 * winner.sd <= 1.722


def test_the_gaussian_route_counts_too():
    # With a large δ and few queries the Gaussian bound is the smaller one.
    electorate, setting = _electorate(9), Setting(48.0, 30.0, 10.0)
    mechanism = electorate.mechanism(setting)
    target = gaussian_epsilon(mu=mechanism.gaussian_mu(queries=60, answers=30), delta=0.2)
    assert target > 0.2
    goal = Goal(target_epsilon=target, delta=0.2, release=ReleaseKind.NONE, min_agreement=0.0)
    grid = Grid((48.0,), (30.0,), (10.0,))
    winner = Search(electorate, grid, goal).run(extras=False).winner
    assert winner.epsilon <= target
    # k1 = 60 with k2 = 30 meets it but for rounding, so k2 = 29 does.
    chance = electorate.answer_chance(setting)[:60]
    sd = np.sqrt((chance * (1.0 - chance)).sum())
    least = float(capped_mean(chance.sum(), sd, np.array(29.0)))
    assert winner.expected.answers >= 0.999 * least
