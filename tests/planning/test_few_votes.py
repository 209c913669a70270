"""What given votes cost if teachers vote on few queries: by exact laws, and as runs pay it."""

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.accounting.few_votes import FewVotes
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.core.noise import Noise
from pate_cli.core.words import ReleaseKind
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.planning.cost import TIGHT_ORDERS, compare_at, measure_cost
from pate_cli.planning.forecast import worst_case_epsilon
from pate_cli.planning.goal import CappedVotes, Goal
from pate_cli.planning.search import Candidate, Tuning
from pate_cli.planning.vote_model import VoteModel
from refusals import refusal
from runs import CountsRows, cut
from vote_files import Law, sums, vectors

CASES = [
    (GNMax(3, 3, sigma2=1.5), 2.0),
    (GNMax(3, 2, sigma2=0.8), 6.0),
    (ConfidentGNMax(3, 2, threshold=2.6, sigma1=0.3, sigma2=3.0), 2.0),
    (LNMax(3, 2, laplace_scale=1.5), 3.0),
]


def ratios(mechanism, order, few, only=None):
    """The largest divergence from a file to a neighbour beside its cost.

    Every file of three queries and three voters, and every neighbour.
    """
    law, mine, at = Law(mechanism, order), vectors(mechanism, 3, 1, only), np.array([order])
    apart = np.log(law.silent + law.answered) / (order - 1.0)
    worst = 0.0
    for rest in sums(mine, 2):
        files = rest + mine
        places = law.place[files @ law.base]
        true = apart[places[:, None], places[None]].sum(axis=2).max(axis=1)
        for file, needed in zip(files, true, strict=True):
            rows = CountsRows(file)
            found = measure_cost(rows, mechanism, orders=at, delta=1e-5, few=few)
            assert found.rdp == pytest.approx(sum(found.steps.values()))
            worst = max(worst, needed / float(found.rdp[0]))
    return worst


@pytest.mark.parametrize(("mechanism", "order"), CASES)
def test_the_cost_of_a_file_bounds_every_neighbour(mechanism, order):
    assert 0.19 < ratios(mechanism, order, FewVotes(1)) <= 1.0 + 1e-9
    assert 0.38 < ratios(mechanism, order, FewVotes(1, assigned=True), only=[0]) <= 1.0 + 1e-9


def test_as_many_queries_as_an_assignment_has_are_too_few_without_one():
    mechanism = ConfidentGNMax(5, 4, threshold=4.3, sigma1=1.0, sigma2=4.0)
    law, at = Law(mechanism, 2.0), np.array([2.0])
    files = np.array([[[0, 0, 1, 4], [0, 0, 0, 4]], [[0, 0, 1, 3], [0, 0, 0, 5]]])
    one, other = law.place[files @ law.base]
    true = float(np.log((law.silent + law.answered)[one, other]).sum())

    def cost(assigned):
        asked = {"orders": at, "delta": 1e-5, "few": FewVotes(1, assigned)}
        return float(measure_cost(CountsRows(files[0]), mechanism, **asked).rdp[0])

    assert 1.5 * cost(assigned=True) < true <= cost(assigned=False)


COUNTS = np.random.default_rng(3).multinomial(20, [0.6, 0.3, 0.1], size=70)
ORDERS = np.array([1.5, 4.0, 9.0])
CONFIDENT = ConfidentGNMax(20, 3, threshold=12.0, sigma1=6.0, sigma2=3.0)


@pytest.mark.parametrize("few", [FewVotes(4), FewVotes(7, assigned=True), FewVotes(500)])
def test_the_costliest_queries_count_at_every_order_whatever_the_batches(few):
    most = min(few.votes if few.assigned else 2 * few.votes, 70)
    each = CONFIDENT.rdp(CONFIDENT.score(COUNTS), ORDERS)
    wanted = -np.sort(-each, axis=1)[:, :most].sum(axis=1)
    every, own = (
        measure_cost(CountsRows(COUNTS), CONFIDENT, orders=TIGHT_ORDERS, delta=1e-5, few=limit)
        for limit in (None, few)
    )
    assert own.worst_case.epsilon <= every.worst_case.epsilon
    for size in (1, 9, 70):
        found = measure_cost(cut(COUNTS, size), CONFIDENT, orders=ORDERS, delta=1e-5, few=few)
        np.testing.assert_allclose(found.rdp, wanted, rtol=1e-12)
        assert (found.costliest_queries, len(found.queries["cost"])) == (most, 70)
        row = compare_at(cut(COUNTS, size), lambda _: CONFIDENT, answers=99, delta=1e-5, few=few)
        assert row["epsilon"] == pytest.approx(own.epsilon, rel=1e-12)
        assert row["data_independent"] >= own.worst_case.epsilon


# --- the verbs ------------------------------------------------------------------------------------

random = np.random.default_rng(3)
VOTED = np.argsort(random.random((40, 400)), axis=0) < 10
VOTES = np.where(VOTED, random.random((40, 400)) > 0.9, -1).astype(int)
READ = {"layout": "labels", "classes": 2, "teachers": 400, "votes_per_teacher": 10}
SAID = {**READ, "sigma2": 12.0}


def test_a_ledger_has_the_cost_and_the_sensitivity_of_these_verbs():
    run = pate.aggregate(VOTES, "gnmax", **SAID, order=9.0, beta=0.03, keep_ledger=True)
    cost = pate.cost(VOTES, "gnmax", **SAID, orders=[9.0])
    assert cost.rdp == pytest.approx(run.ledger.rdp)
    found = pate.smooth_sensitivity(VOTES, "gnmax", **SAID, order=9.0, beta=0.03)
    np.testing.assert_array_equal(found.price.curve, run.ledger.sensitivity[0])
    assert found.within[0] == pytest.approx(run.ledger.rdp[0])
    assert np.all(np.diff(found.within) >= 0.0)
    every = {**SAID, "votes_per_teacher": 40, "order": 9.0, "beta": 0.03}
    assert pate.smooth_sensitivity(VOTES, "gnmax", **every).smooth > found.smooth


def test_a_target_passes_with_the_probability_of_a_run(monkeypatch):
    asked, chances = {**SAID, "target_epsilon": 1.0, "bound": "two-tail"}, []

    def comes_up(_noise, log_chance):
        chances.append(1.0 - np.exp(log_chance))
        return False

    monkeypatch.setattr(Noise, "comes_up", comes_up)
    pate.aggregate(VOTES, "gnmax", **asked)
    found = pate.cost(VOTES, "gnmax", **asked).to_dict()["target"]
    assert found["pass_probability"] == pytest.approx(chances[0], rel=1e-4)
    worst = {**asked, "target_epsilon": pate.quote(VOTES, "gnmax", **SAID).epsilon}
    there = pate.cost(VOTES, "gnmax", **worst).to_dict()["target"]
    assert there["pass_probability"] == 1.0  # such a run needs no test
    least = found["smallest_epsilon"]["0.977"]
    again = pate.cost(VOTES, "gnmax", **{**asked, "target_epsilon": least}).to_dict()["target"]
    assert again["pass_probability"] >= 0.977
    assert least < worst["target_epsilon"]


def test_a_comparison_has_the_mechanisms_with_a_proof():
    rows = {row["mechanism"]: row for row in pate.compare(VOTES, "gnmax", **SAID).rows}
    assert sorted(rows) == ["confident", "gnmax", "lnmax", "stability"]
    few = {**SAID, "votes_per_teacher": 40}
    (every,) = [x for x in pate.compare(VOTES, "gnmax", **few).rows if x["mechanism"] == "gnmax"]
    assert every["data_independent"] > rows["gnmax"]["data_independent"]


def test_it_says_how_many_queries_count():
    found, every = (
        pate.cost(VOTES, "gnmax", **{**SAID, "votes_per_teacher": votes}) for votes in (10, None)
    )
    assert found.to_dict()["costliest_queries"] == 20
    assert "the 20 costliest queries count" in "".join(getattr(x, "text", "") for x in found.said())
    assert "costliest_queries" not in every.to_dict()
    assert np.all(found.rdp < every.rdp)


@pytest.mark.parametrize("verb", [pate.cost, pate.compare, pate.smooth_sensitivity])
def test_what_has_no_proof_is_refused(verb):
    told = refusal(ParameterError, verb, VOTES, "gnmax", **SAID, analysis="paper")
    assert told == "`votes_per_teacher` cannot be used with `analysis` paper"
    asked = {**READ, "mechanism": "interactive", "predictions": np.full((40, 2), 0.5)}
    told = refusal(ParameterError, verb, VOTES, **asked)
    assert told == "`votes_per_teacher` cannot be used with interactive"


@pytest.mark.parametrize("goal", [{"target_epsilon": 3.0}, {"answers": 20}])
@pytest.mark.parametrize("mechanism", ["gnmax", "confident"])
def test_what_tune_finds_is_what_a_run_costs(goal, mechanism):
    """All rows together cost no more than those of one voter, so noise alone decides."""
    found = pate.tune(VOTES, mechanism=mechanism, min_agreement=0.95, **goal, **READ)
    told = pate.quote(VOTES, **READ, **found.settings)
    assert told.epsilon == found.best.forecast.epsilon <= goal.get("target_epsilon", 50.0)
    assert found.best.forecast.expected_answers[0] >= goal.get("answers", 5) * (1 - 1e-9)
    dear = pate.quote(VOTES, **{**READ, "votes_per_teacher": None}, **found.settings)
    assert dear.epsilon > told.epsilon


def test_a_price_just_above_the_goal_takes_a_little_more_noise():
    """From 100, where a step of half a per cent is lost in rounding."""
    few, noise = FewVotes(10), Tuning(None, None, 100.0)
    votes = VoteModel(np.tile([300, 100], (60, 1)), 1000, few=few)
    mechanism = votes.mechanism(noise)
    epsilon = worst_case_epsilon(mechanism, rows=60, delta=1e-5, few=few) - 5e-5
    pricing = CappedVotes(votes, Goal(ReleaseKind.NONE, epsilon=epsilon))
    found = pricing.price(Candidate(mechanism, 0.0, 60))
    assert found.settings.sigma2 == 101.0
    assert found.forecast.epsilon <= epsilon


def test_tune_finds_no_target_for_few_votes():
    told = refusal(UsageError, pate.tune, VOTES, target_epsilon=1, release="target", **READ)
    assert "`tune` only finds settings for runs with `release` none" in told


def test_a_budget_of_open_votes_is_no_target_either(tmp_path):
    """Without a limit a budget alone is the target; with one the public rule has no settings."""
    asked = {"mechanism": "gnmax", "budget": 50.0, "delta": 1e-5, "record": tmp_path / "r.json"}
    wanted = pate.quote(VOTES, **READ, **asked).epsilon
    with pate.open_votes(VOTES, **READ) as votes:
        assert pate.quote(votes, **asked).epsilon == wanted
