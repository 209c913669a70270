"""A slice of `make audit`, and that its bounds are what they say.

False alarms: with fresh keys a test below fails wrongly where one of its intervals misses, at most
1e-9 each; there are fewer than 200 of them.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import trapezoid
from scipy.optimize import brentq
from scipy.stats import binom, norm

import pate_cli
from audit import __main__ as program
from audit import bounds
from audit.bounds import by_bins, by_outcome, by_row, lower_bound, proven
from audit.cases import LABELS, RUNS, Case, LabelCase, ReleaseCase, TargetCase
from audit.exact import gaussian_pair_delta
from audit.mutants import mutants_of
from audit.planted import PLANTED, find_planted
from audit.sessions import SESSIONS, GameCase, PlayedCase, RealCase
from audit.table import CASES
from pate_cli.mechanisms import CLASSES
from slices import chosen


def test_an_interval_misses_as_rarely_as_it_says():
    for often, seldom in [(40, 3), (1, 0), (99, 60)]:
        epsilon = proven(often, seldom, (100, 120), delta=0.0).item()
        low = np.exp(epsilon) * (high := _highest(seldom, 120))
        assert binom.sf(often - 1, 100, low) == pytest.approx(bounds.LEVEL, rel=1e-6)
        assert binom.cdf(seldom, 120, high) == pytest.approx(bounds.LEVEL, rel=1e-6)


def _highest(count, total):
    """The largest chance under which so few are no surprise, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(200):
        middle = (low + high) / 2.0
        low, high = (
            (middle, high) if binom.cdf(count, total, middle) > bounds.LEVEL else (low, middle)
        )
    return low


@pytest.mark.parametrize("turned", [False, True])
def test_randomised_response_is_measured(turned):
    """ε = 1, in either direction; at δ it is log((p − δ)/(1 − p)) at the most."""
    rng, p = np.random.default_rng(1), np.e / (1.0 + np.e)
    sides = [(rng.random(200_000) < chance).astype(int) for chance in (p, 1.0 - p)]
    scores = by_outcome(*(sides[::-1] if turned else sides))
    assert 0.95 < lower_bound(scores, delta=0.0) <= 1.0
    assert 0.7 < lower_bound(scores, delta=0.1) <= np.log((p - 0.1) / (1.0 - p))


def test_rows_and_bins_add_up_to_what_is_known():
    """μ-GDP, by 16 coins and by a number: both stay below the exact ε at δ = 0.01, and not far."""
    rng, mu, delta = np.random.default_rng(2), 1.0, 0.01

    def excess(epsilon):
        here, there = norm.cdf(mu / 2 - epsilon / mu), norm.cdf(-mu / 2 - epsilon / mu)
        return here - np.exp(epsilon) * there - delta

    exact = brentq(excess, 0.0, 10.0)
    numbers = by_bins(*(rng.normal(at, 1.0, 200_000) for at in (mu, 0.0)))
    assert 0.7 * exact < lower_bound(numbers, delta=delta) <= exact
    coins = by_row(
        *((rng.normal(at, 1.0, (100_000, 16)) > mu / 8).astype(int) for at in (mu / 4, 0.0))
    )
    assert 0.5 * exact < lower_bound(coins, delta=delta) <= exact


def test_a_table_cries_wolf_once_in_a_million_at_most():
    most_ways = 3
    assert len(CASES) * bounds.INTERVALS * most_ways * bounds.LEVEL <= bounds.FALSE_ALARM


def test_every_mechanism_and_both_releases_are_audited():
    audited = {name.partition(":")[0] for name in CASES}
    votes = {"groups", "binary", "many classes", "names"}
    assert audited == {
        *(word.value for word in CLASSES), *votes, "session", "release", "target"
    }  # fmt: skip


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_pairs_are_neighbours(case):
    """One record moves votes, adds some or takes some away: k of them on each query at most."""
    if not hasattr(case, "one"):
        return
    if isinstance(case, LabelCase) and case.voters:
        moved = np.array(case.other) != np.array(case.one)
        moved = moved.reshape(*moved.shape[:2], -1).any(axis=2)
        others = [place for place in range(moved.shape[1]) if place not in case.voters]
        assert not moved[:, others].any()
        assert moved[:, list(case.voters)].all()
        return
    k = getattr(case, "parameters", {}).get("teachers_per_record", 1)
    change = np.atleast_2d(np.array(case.other) - np.array(case.one))
    assert np.maximum(change, 0).sum(axis=1).max() <= k
    assert np.maximum(-change, 0).sum(axis=1).max() <= k
    assert change.any()


def quick(case: Case) -> float:
    """The share of a case's draws that takes a fraction of a second."""
    wanted = 4000
    if isinstance(case, ReleaseCase | TargetCase):
        wanted = 10
    elif case in RUNS or isinstance(case, PlayedCase | RealCase):
        wanted = 60
    elif case in LABELS and case.runs > 1:
        wanted = case.runs
    return min(1.0, wanted / max(case.draws, 1))


FIRST = {name.partition(":")[0]: name for name in reversed(CASES)}
MORE = ["release: the worst pair at a tiny delta"]
MORE += [case.name for case in SESSIONS if type(case) is not GameCase]
QUICK = {
    "confident: a tie that passes",
    "gnmax: a tie turned",
    "groups: six votes of one record",
    "names: a vote goes missing",
    "open-vocabulary: a tie turned at the threshold",
    "lnmax: a rare label, one answer",
    "release: the worst pair at a tiny delta",
    "session: the whole game",
    "session: two queries, one after the other",
    "sparse-vector: one epoch",
}


@pytest.mark.parametrize("name", chosen([*FIRST.values(), *MORE], QUICK))
def test_claims_hold_on_a_slice(name):
    found = CASES[name].find(quick(CASES[name]))
    assert 0.0 <= found.proven <= found.epsilon
    assert not found.broken


@pytest.mark.parametrize("bug", PLANTED.values(), ids=PLANTED)
def test_bugs_fit_the_sources(bug):
    text = (Path(pate_cli.__file__).parent / bug.module).read_text(encoding="utf-8")
    assert text.count(bug.old) == 1
    assert bug.case in CASES


def test_mutants_fit_the_sources():
    """Each text occurs once, changes have different names, and their tests are there."""
    wanted, equivalent = mutants_of()
    package, tests = Path(pate_cli.__file__).parent, Path(__file__).parents[1]
    modules = {mutant.module for mutant in [*wanted, *equivalent]}
    texts = {name: (package / name).read_text(encoding="utf-8") for name in modules}
    for mutant in [*wanted, *equivalent]:
        assert texts[mutant.module].count(mutant.old) == 1, mutant.name
    assert len({mutant.name for mutant in wanted}) == len(wanted)
    named = {each for mutant in wanted for each in mutant.tests}
    assert [each for each in named if not (tests / each).exists()] == []


def test_a_planted_bug_is_caught_and_stays_in_its_copy(tmp_path):
    bug = PLANTED["gnmax: two classes share a draw"]
    sound = CASES[bug.case].find(0.05)
    found = find_planted(bug, 0.05)
    assert found.broken
    assert found.epsilon == sound.epsilon
    assert not sound.broken


@pytest.mark.parametrize(("epsilon", "mean", "spread"), [(0.1, 0.3, 0.9), (1.2, 0.16, 0.967)])
def test_the_exact_curve_is_an_integral(epsilon, mean, spread):
    x = np.linspace(-12.0, 12.0, 400_001)
    one, other = norm.pdf(x, mean, spread), norm.pdf(x)
    sums = [
        trapezoid(np.maximum(p - np.exp(epsilon) * q, 0.0), x)
        for p, q in ((one, other), (other, one))
    ]
    found = gaussian_pair_delta(epsilon, mean=mean, spread=spread)
    assert found == pytest.approx(max(sums), rel=1e-5)


@pytest.mark.parametrize(("proven", "code", "word"), [(0.9, 0, "holds"), (1.1, 1, "REFUTED")])
def test_a_refuted_claim_ends_with_1(monkeypatch, capsys, proven, code, word):
    class Told(Case):
        delta, draws = 0.01, 1000

        def claim(self):
            return 1.0

        def measured(self, draws):
            return proven, 4

    monkeypatch.setattr(program, "CASES", {"told": Told()})
    monkeypatch.setattr(program.sys, "argv", ["audit", "claims"])
    with pytest.raises(SystemExit) as ended:
        program.main()
    assert ended.value.code == code
    printed = capsys.readouterr().out
    assert word in printed
    assert "probability 4e-09" in printed
