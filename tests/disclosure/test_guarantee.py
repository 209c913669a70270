"""What a report may claim follows from its facts alone, whatever it was written with."""

from __future__ import annotations

import dataclasses
import itertools

import pytest

import pate_cli as pate
import reports
from pate_cli.core.errors import UsageError
from pate_cli.disclosure.guarantee import GAPS, PRESUPPOSED, worded


def held(report):
    return {one.id for one in report.statements if one.holds}


@pytest.mark.parametrize("kind", reports.KINDS)
def test_the_words_of_a_report_are_those_of_its_facts(kind):
    report, _ = reports.made(kind)
    emptied = dataclasses.replace(
        report, summary="x", adjacency="x", covers="x", statements=(), sound=not report.sound,
        crosscheck=report.crosscheck and dataclasses.replace(report.crosscheck, compared="x"),
    )  # fmt: skip
    assert worded(emptied) == report


CLAIMS = {
    "gnmax": {"all-votes"},
    "upper": {"all-votes", "this-file", "released-epsilon"},
    # The charge of a later round may depend on the labels of an earlier one.
    "rounds": {"all-votes", "released-epsilon"},
    "draws": {"all-votes", "released-epsilon", "total", "sum"},
    "kept": {"all-votes", "total", "sum"},
    "account": {"all-votes", "external", "total", "sum"},
    "passed": {"all-votes", "refusal"},
    "refused": {"all-votes", "refusal"},
    "groups": {"all-votes", "by-group"},
    "prior": {"all-votes"},
    "prior, confident": {"all-votes", "this-file", "released-epsilon"},
    "priors": {"all-votes"},
    "paper": set(),
    "no record": set(),
    "classes read off": set(),
    "queries read off": set(),
    "seeded": set(),
}


@pytest.mark.parametrize("kind", CLAIMS)
def test_which_statements_hold_of_which_report(kind):
    assert held(reports.made(kind)[0]) == CLAIMS[kind]


@pytest.mark.parametrize("kind", ["upper", "gnmax", "passed", "refused", "groups", "rounds"])
def test_nothing_holds_of_noise_that_can_be_guessed_or_of_what_is_unsettled(kind):
    report, _ = reports.made(kind)
    told = worded(dataclasses.replace(report, private=False))
    assert held(told) == set()
    assert told.summary == reports.made("seeded")[0].summary != report.summary
    for unsettled, why in GAPS.items():
        told = worded(dataclasses.replace(report, unsettled=(unsettled,)))
        assert held(told) == set()
        assert not told.sound
        assert told.summary == why


def test_this_file_is_claimed_of_one_sound_draw_and_no_more():
    """Of several rounds, or of one beside external parts, the charge may depend on labels."""
    upper, plain = reports.made("upper")[0], reports.made("gnmax")[0]
    other = reports.total(pate.Stated(epsilon=0.1, delta=1e-7, adjacency="replace-one")).external
    for report, sound, private, rounds, external in itertools.product(
        (upper, plain), (True, False), (True, False), (1, 2, 3), ((), other)
    ):
        told = worded(
            dataclasses.replace(
                report,
                analysis="tight" if sound else "paper",
                private=private,
                rounds=report.rounds * rounds,
                external=external,
            )
        )
        scope = [one.holds for one in told.statements if one.id == "this-file"]
        wanted = private and told.sound and rounds == 1 and not external
        assert scope == ([wanted] if report is upper else [])


def test_what_is_no_bound_holds_in_no_reading_and_has_no_parts_that_do():
    """The published analysis draws no bound, whatever else is in the total."""
    upper = reports.made("upper")[0]
    other = reports.total(pate.Stated("replace-one", epsilon=0.1, delta=1e-7)).external
    told = worded(dataclasses.replace(upper, analysis="paper", external=other))
    assert not told.sound
    assert held(told) == set()


def test_a_total_holds_where_every_run_does():
    """Another run that promises nothing leaves nothing to say of all together."""
    kept = reports.made("kept")[0]
    runs = (dataclasses.replace(kept.spent.runs[0], promised=False), *kept.spent.runs[1:])
    told = worded(dataclasses.replace(kept, spent=dataclasses.replace(kept.spent, runs=runs)))
    assert held(told) == {"all-votes"}
    assert "All 3 runs" in kept.summary
    assert "runs" not in told.summary


PRIORS = ("prior", "prior, confident", "prior, passed", "priors")


@pytest.mark.parametrize("kind", reports.KINDS)
def test_what_a_prior_presupposes_is_said_of_every_report_with_one_and_of_no_other(kind):
    report, _ = reports.made(kind)
    assert (report.prior is not None) == (kind in PRIORS)
    assert report.summary.endswith(PRESUPPOSED) == (kind in PRIORS)
    assert ("guesses of the prior" in report.adjacency) == (kind in PRIORS)
    told = report.to_dict()
    assert ("prior" in told) == any("prior" in done for done in told["rounds"])
    if kind in PRIORS:
        assert report.prior.presupposed == PRESUPPOSED
        quiet = dataclasses.replace(report, private=False)
        assert PRESUPPOSED not in worded(quiet).summary


def test_a_release_lists_the_prior_of_every_round():
    report, _ = reports.made("priors")
    listed = {done.prior.weight: done.prior for done in report.rounds if done.prior}
    assert {weight: prior.guesses for weight, prior in listed.items()} == {12: 20, 7: 20}
    assert (report.prior.weight, report.prior.guesses) == (None, 40)
    assert report.prior.sha256 == listed[7].sha256 == listed[12].sha256


def test_rounds_without_a_prior_beside_one_with():
    report, _ = reports._released_priors(12, 0)
    assert sorted(done.prior is not None for done in report.rounds) == [False, True]
    assert (report.prior.weight, report.prior.guesses, report.prior.sha256) == (None, 20, None)


def test_of_a_prior_without_a_vote_nothing_is_said():
    words = {"seed": 3, **reports.SHAPE}
    with_one, without = (
        pate.aggregate(reports.votes(), "gnmax", **words, **more)
        for more in ({"prior": reports.guesses(), "prior_weight": 0}, {})
    )
    assert with_one.labels.metadata == without.labels.metadata
    told, plain = (
        dataclasses.replace(done.report, run=None, time=None).to_json()
        for done in (with_one, without)
    )
    assert told == plain


def test_a_quote_says_what_the_report_will():
    words = {"prior": reports.guesses(), "prior_weight": 12, **reports.SHAPE}
    quoted = pate.quote(reports.votes(), "gnmax", max_answers=30, **words)
    report, _ = reports.made("prior")
    assert quoted.prior == report.prior
    assert quoted.to_dict()["prior"] == report.to_dict()["prior"]
    assert "prior" not in pate.quote(reports.votes(), "gnmax", **reports.SHAPE).to_dict()


@pytest.mark.parametrize("analysis", ["cost", "aggregate"])
def test_the_published_analysis_knows_no_prior(analysis):
    words = {**reports.SHAPE, "prior": reports.guesses(), "prior_weight": 12}
    with pytest.raises(UsageError, match="`prior` goes with `analysis` tight"):
        getattr(pate, analysis)(reports.votes(), "gnmax", analysis="paper", **words)
