"""What a run says and refuses if every teacher votes on few queries."""

import dataclasses

import numpy as np
import pytest

import pate_cli as pate
from pate_cli.accounting.few_votes import FewVotes
from pate_cli.core.errors import ParameterError, UsageError
from pate_cli.disclosure.cost import Cost
from pate_cli.disclosure.guarantee import report_of
from pate_cli.disclosure.settings import Training
from pate_cli.disclosure.verification import FEW
from pate_cli.votes.facts import Voting
from refusals import refusal

random = np.random.default_rng(2)
VOTES = np.where(random.random((60, 30)) < 0.2, random.integers(0, 3, (60, 30)), -1)


def earliest(votes, most):
    """Without the votes of each teacher after its first `most` votes."""
    return np.where(np.cumsum(votes != -1, axis=0) > most, -1, votes)


VOTES = earliest(VOTES, 10)
SAID = {"layout": "labels", "classes": 3, "teachers": 30, "votes_per_teacher": 10}
COUNTS = np.stack([(label == VOTES).sum(axis=1) for label in range(3)], axis=1)


def run(mechanism="gnmax", votes=VOTES, **asked):
    noise = {"sigma2": 20.0} if mechanism == "gnmax" else {}
    return pate.aggregate(votes, mechanism, **{**SAID, **noise, **asked})


def cost(mechanism, queries, answers, few):
    return Cost.of_rows(mechanism, queries, answers, 1e-5, few).own.epsilon


@pytest.mark.parametrize("assigned", [False, True])
@pytest.mark.parametrize(("name", "told"), [
    ("gnmax", {"sigma2": 20.0}),
    ("confident", {"threshold": 8.0, "sigma1": 20.0, "sigma2": 15.0, "max_answers": 20}),
    ("lnmax", {"laplace_scale": 30.0}),
])  # fmt: skip
def test_a_report_prices_few_votes(name, told, assigned, tmp_path):
    place = tmp_path / "labels.parquet"
    given = {**SAID, **told, "assigned": assigned}
    report = pate.aggregate(VOTES, name, into=place, **given).report
    done = report.rounds[0]
    assert done.voting == Voting(10, assigned)
    own = cost(done.aggregator, 60, done.max_answers, FewVotes(10, assigned))
    assert report.epsilon == own < cost(done.aggregator, 60, done.max_answers, None)
    assert pate.quote(VOTES, name, **given).epsilon == own
    assert pate.verify(report, place).holds
    fewer = dataclasses.replace(done, voting=Voting(1, assigned))
    forged = report_of(dataclasses.replace(report.facts, rounds=(fewer,)))
    assert forged.epsilon < own
    assert not pate.verify(forged, place).holds  # the labels carry the settings of the run
    if assigned:  # as if there were only so many queries
        assert own == cost(done.aggregator, 10, min(10, done.max_answers), None)


def test_mechanisms_of_pairs_compose_as_many_steps_as_a_voter_touches():
    told = {"query_epsilon": 0.5, "query_delta": 1e-8}
    for assigned, steps in ((True, 10), (False, 20)):
        report = run("stability", assigned=assigned, **told).report
        assert report.epsilon == cost(report.rounds[0].aggregator, steps, steps, None)


def test_defaults_are_shares_of_the_votes_that_a_query_gets():
    """30 teachers with 10 votes on 60 queries: 5 on each. With an assignment 30 may vote on one."""
    for assigned, votes in ((False, 5.0), (True, 30.0)):
        asked = {**SAID, "assigned": assigned, "max_epsilon": 1e4, "max_queries": 40}
        found = pate.aggregate(VOTES, **asked).report.rounds[0].mechanism
        every = {**SAID, "votes_per_teacher": None, "max_epsilon": 1e4}
        plain = pate.aggregate(VOTES, **every).report.rounds[0].mechanism
        for name in ("threshold", "sigma1", "sigma2"):
            assert found[name] == pytest.approx(plain[name] * votes / 30.0)
    ballots, told = np.ones((60, 30, 4), int), {"layout": "multilabel", "classes": None}
    done = run(votes=ballots, **told, sigma2=None, seed=1).report.rounds[0]
    assert done.mechanism["sigma2"] == pytest.approx(0.16 * 5.0)


def test_several_labels_are_as_many_rows_a_vote():
    ballots = random.integers(0, 2, (40, 30, 5))
    given = {"layout": "multilabel", "classes": None, "votes_per_teacher": 4}
    report = run(votes=ballots, **given).report
    assert report.rounds[0].few == FewVotes(20)
    assert report.epsilon == cost(report.rounds[0].aggregator, 200, 200, FewVotes(20))


def test_runs_compose_by_what_each_costs(tmp_path):
    record = tmp_path / "r.json"
    run(record=record)
    report = run(record=record, votes=earliest(VOTES, 5), votes_per_teacher=5, assigned=True).report
    first, second = (each.settings for each in report.spent.runs)
    assert (first.voting, second.voting) == (Voting(10), Voting(5, assigned=True))
    assert report.spent.epsilon == (Cost.of(first) + Cost.of(second)).together().epsilon
    assert pate.spent(record).total.epsilon == report.spent.epsilon
    total = pate.release(record).report
    assert [voting in total.adjacency for voting in ("at most 10", "at most 5")] == [True] * 2
    assert "The runs have different limits on the number of votes of one teacher" in total.summary


def test_a_total_says_whose_votes_are_few_in_earlier_runs(tmp_path):
    """Its neighbours are those of all runs: an earlier one had few votes, the last one has not."""
    record = tmp_path / "r.json"
    run(record=record, assigned=True)
    report = run(record=record, votes_per_teacher=None).report
    assert report.claims("few-votes")
    assert "A public list names at most 10 queries of a run for each teacher" in report.adjacency
    assert "in a run without voting, a teacher may vote on every query" in report.adjacency
    assert "A public list, which did not depend on votes" in said(report)
    assert "in a run without voting" not in run().report.adjacency


def test_a_total_says_that_an_earlier_run_had_a_prior(tmp_path):
    record, asked = tmp_path / "r.json", {"layout": "counts", "votes_per_teacher": None}
    run(votes=COUNTS, record=record, prior=np.zeros(60, int), prior_weight=2, **asked)
    report = run(votes=COUNTS, record=record, **asked).report
    assert report.spent.count == 2
    assert "the guesses of the prior and their votes" in report.adjacency
    assert "The guesses of the prior must be public" in report.summary
    assert "whether the guesses of the prior are public" in pate.verify(report).unchecked
    assert "prior" not in run(votes=COUNTS, record=tmp_path / "other.json", **asked).report.summary


def said(report):
    return " ".join(text for part in pate.explain(report).sections for text in part.texts)


CHOSEN = ("Only the first 10 votes of each teacher were used", "chooses these queries itself")
ASSIGNED = (
    "A teacher votes only on the queries that the list names for it",
    "A public list, which did not depend on votes",
)


@pytest.mark.parametrize(("votes", "asked", "told"), [
    (VOTES, {}, (*CHOSEN, "no quotas, no queues, no stand-ins")),
    (VOTES, {"assigned": True}, (*ASSIGNED, "only the public list shows")),
    (COUNTS, {"layout": "counts"}, ("because the votes do not show who voted",)),
])  # fmt: skip
def test_premises_are_told_and_what_nobody_can_check_is_named(votes, asked, told):
    report = run(votes=votes, **asked).report
    found = pate.verify(report)
    assert found.holds
    assert report.claims("few-votes")
    named = [each.detail for each in found.checks if each.name == FEW]
    assert len(named) == bool(asked)
    text = " ".join([report.summary, report.adjacency, said(report), *named])
    assert [words for words in told if words not in text] == []
    claimed = "layout" in asked
    assert report.rounds[0].voting == Voting(10, asked.get("assigned", False), claimed=claimed)
    for text in (report.summary, said(report)):
        assert ("nobody could check this, because the votes" in text) is claimed


@pytest.mark.parametrize(("mechanism", "asked", "told"), [
    ("sparse-vector", {}, "sparse-vector"),
    ("gnmax", {"analysis": "paper"}, "`analysis` paper"),
])  # fmt: skip
def test_what_has_no_proof_is_refused(mechanism, asked, told):
    text = refusal(UsageError, run, mechanism, **asked)
    assert text == f"`votes_per_teacher` cannot be used with {told}"


@pytest.mark.parametrize("votes", [2**31 + 1, 2**64, 10**400])
def test_no_number_of_votes_makes_a_record_that_cannot_be_read(votes, tmp_path):
    """JSON with such a number is refused, so one session would have closed the record to all."""
    record = tmp_path / "s.json"
    run(record=record)
    asked = {"max_queries": 1, "record": record, "votes_per_teacher": votes}
    told = refusal(ParameterError, pate.Session, **SESSION, **asked)
    assert told.startswith("`votes_per_teacher` must be at most 2147483648")
    assert pate.spent(record).total.epsilon < 1.0


def test_forged_settings_have_no_proof_either():
    """What the verbs refuse is no report either, whoever wrote it."""
    done = run().report.rounds[0]
    wrong = (
        {"mechanism": {**done.mechanism, "teachers_per_record": 2}},
        {"training": Training(1.0)},
        {"analysis": "paper"},
    )
    for change in wrong:
        text = refusal(UsageError, dataclasses.replace, done, **change)
        assert "`votes_per_teacher` cannot be used with" in text


SESSION = {"teachers": 300, "classes": 3, "mechanism": "gnmax", "sigma2": 20.0}


@pytest.mark.parametrize("assigned", [False, True])
def test_a_session_of_few_votes_goes_on(assigned, tmp_path):
    """Whatever is asked, a teacher pays for its own votes: the session needs no other end."""
    asked = {**SESSION, "votes_per_teacher": 5, "assigned": assigned, "record": tmp_path / "s.json"}
    with pate.Session(**asked, target_epsilon=1.0) as session:
        for _ in range(30):
            session.ask([280, 3, 7])
        report = session.report()
        assert session.remaining > 10**8
    few = FewVotes(5, assigned)
    assert report.epsilon == cost(report.rounds[0].aggregator, 10**9, 10**9, few) <= 1.0
    assert report.rounds[0].voting == Voting(5, assigned, claimed=True)
    assert "nobody could check this" in report.summary
    assert pate.verify(report, record=tmp_path / "s.json").holds
    (done,) = report.rounds
    less = dataclasses.replace(done, rule=dataclasses.replace(done.rule, epsilon=0.1))
    forged = report_of(dataclasses.replace(report.facts, rounds=(less,), spent=None))
    assert not pate.verify(forged).holds
    with pate.Session(**asked, target_epsilon=1.0) as again:
        assert again.asked == 30


def test_a_session_of_few_votes_may_be_refused_too(tmp_path):
    asked = {**SESSION, "votes_per_teacher": 500, "record": tmp_path / "s.json"}
    with pate.Session(**asked, target_epsilon=1.0) as session:
        assert 10 < session.remaining < 100  # more votes than queries: as if all had voted
    text = refusal(UsageError, pate.Session, **SESSION, assigned=True, target_epsilon=1.0)
    assert text == "`assigned` needs `votes_per_teacher`"


def test_a_curve_for_other_accountants_says_what_it_presupposes(tmp_path):
    prior = tmp_path / "prior.csv"
    prior.write_text("\n".join(["label", *["1"] * 60]))
    report = run(prior=prior, prior_weight=2).report
    covers = pate.rdp_curve(report, orders=[8.0]).covers
    assert covers.endswith(
        ", if no training record reached more than 1 teacher and no teacher votes on more than 10 "
        "queries of a run and the guesses of the prior are public"
    )
