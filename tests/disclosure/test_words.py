"""What is said in words, held against worked examples that know nothing of the program.

A sentence is read as anybody would read it, its numbers are taken out of it, and a mechanism whose
(ε, δ) is exact must obey them; a sentence that is true of every such mechanism is no less than what
the worst one does.
"""

import itertools
import re
from dataclasses import replace
from pathlib import Path

import mpmath
import numpy as np
import pytest

import pate_cli as pate
import reports
from divergences import exact_gaussian_delta, worst_pair
from pate_cli.disclosure.cost import nats, pair, shown
from pate_cli.disclosure.explain import explanation_of, summary_of
from pate_cli.disclosure.guarantee import (
    best_guess,
    in_a_thousand,
    scale_word,
    sentence,
    verdict,
    worded,
)
from pate_cli.disclosure.runs import Outcome

ROOT = Path(__file__).resolve().parents[2]
EPSILON, DELTA = 1.5, 1e-5
PAIRS = [(0.01, 1e-9), (0.7, 1e-5), (EPSILON, DELTA), (2.578, 1e-6), (4.0, 1e-3), (6.8, 1e-5)]


def page(name):
    place = ROOT if name == "README.md" else ROOT / "pate_cli" / "docs"
    return (place / name).read_text(encoding="utf-8")


def sections(report):
    return {section.title: section.texts for section in explanation_of(report, ()).sections}


def words(report):
    return " ".join(text for texts in sections(report).values() for text in texts)


def made(kind, **changes):
    return replace(reports.made(kind)[0], **changes)


def in_a_thousand_of(epsilon, delta):
    """How often, in 1,000, what is 1 in 1,000 happens, by the sentence that explains an (ε, δ)."""
    told = words(made("confident", epsilon=epsilon, delta=delta))
    rare = r"happens 1 time in 1,000 without .* happens at most ([\d.]+) times in 1,000 with it"
    found = re.search(rare, told)
    return found and float(found[1])


def guessed(epsilon, delta, kind="worst-case"):
    """The share of right guesses in the sentence that has one."""
    return float(re.search(r"at most ([\d.]+)%", verdict(epsilon, delta, kind))[1]) / 100


# --- noise from a Gaussian that is exactly (ε, δ) ------------------------------------------------


@pytest.fixture(scope="module")
def shift():
    """μ such that N(μ, 1) against N(0, 1) is (ε, δ) and no better."""
    return mpmath.findroot(
        lambda mu: exact_gaussian_delta(mu, EPSILON) - DELTA, (0.3, 0.6), solver="anderson"
    )


def test_delta_is_not_how_often_a_loss_is_above_epsilon(shift):
    above = float(mpmath.ncdf(-(EPSILON - shift**2 / 2) / shift))
    assert 11.0 * DELTA < above <= 1.2e-4  # as report.md has it, rounded up
    assert "loses more than 1.5 with probability 1.2e-4" in page("report.md")
    # So nothing may be said to fail, or to hold, with a chance of delta.
    for kind in ("confident", "upper", "passed", "refused"):
        assert not re.search(r"\bodds change|\bfails?\b|chance of delta", words(made(kind)))


# --- randomised response, with an answer that gives all away -------------------------------------


def events(outcomes):
    return np.array(list(itertools.product((False, True), repeat=outcomes)))


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_randomised_response_reaches_every_number(epsilon, delta):
    law = np.stack(worst_pair(epsilon, delta))
    one, other = law @ events(4).T
    thousand = in_a_thousand_of(epsilon, delta)
    assert np.max(one - np.exp(epsilon) * other) == pytest.approx(delta)
    # Every guess, at even odds: the best one tells by which law is larger.
    right = float(np.max(0.5 * (one + 1.0 - other)))
    assert right == pytest.approx(best_guess(epsilon, delta), rel=1e-12)
    assert right <= guessed(epsilon, delta) + 1e-12 <= right + 0.0010001
    # Shrink it until the answers that speak against a record are worth 1 in 1,000.
    rare = 0.001 / (law[1, 0] + law[1, 1])
    if rare < 1.0:
        assert 1000.0 * rare * (law[0, 0] + law[0, 1]) <= thousand


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_after_a_refusal_the_odds_are_bounded_for_whoever_sees_it(epsilon, delta):
    # Refused with q or e^η q, and nothing else is seen.
    posterior = np.exp(epsilon) / (1.0 + np.exp(epsilon))
    assert posterior <= guessed(epsilon, delta, "refusal") <= posterior + 0.0010001 + delta
    assert "guessing from the refusal" in verdict(epsilon, delta, "refusal")
    assert "in 1,000 without" not in words(made("refused", epsilon=epsilon, delta=delta))


def test_a_sanitized_bound_speaks_of_outcomes_with_so_small_an_epsilon():
    # A coin decides between (1, δ) that says so and (9, δ) that says so: the statement
    # released-epsilon holds, by brute force, and a reading of all outcomes would be false.
    epsilon, large, share = 1.0, 9.0, 0.3
    small = share * np.stack(worst_pair(epsilon, DELTA))
    law = np.hstack([small, (1.0 - share) * np.stack(worst_pair(large, DELTA))])
    every = events(8)
    for most, seen in ((epsilon, np.arange(8) < 4), (large, np.full(8, True))):
        one, other = law @ (every & seen).T
        assert np.all(one <= np.exp(most) * other + DELTA + 1e-12)
    right_at_all = 0.5 * np.maximum(*law).sum()
    right_and_so_small = 0.5 * np.maximum(*law[:, :4]).sum()
    said = guessed(epsilon, DELTA, "upper")
    assert right_at_all > said + 0.1
    assert right_and_so_small <= said * share + DELTA
    assert right_and_so_small > (said - 0.001) * share
    assert verdict(epsilon, DELTA, "upper").endswith(
        "of the runs that publish so small an epsilon, and in 1e-05 of all runs besides"
    )
    told = words(made("upper", epsilon_kind="upper", epsilon=1.0))
    assert "in 1,000 without" not in told


# --- numbers ------------------------------------------------------------------------------------


def test_numbers_are_never_below_what_they_stand_for():
    random = np.random.default_rng(3)
    for epsilon in (0.0, *random.uniform(0.0, 10.0, 300), 10.0):
        exact = mpmath.exp(mpmath.mpf(float(epsilon)))
        thousand = in_a_thousand(epsilon, DELTA)
        least = exact + 1000 * mpmath.mpf(DELTA)
        assert (thousand is None) is (least >= 1000)
        if thousand is not None:
            assert least <= mpmath.mpf(thousand) <= least + 0.01
        guess = (exact + mpmath.mpf(DELTA)) / (1 + exact)
        if guess < 0.999:
            said = guessed(epsilon, DELTA)
            assert guess - 1e-15 <= said <= guess + 0.001
    for value in (1e-5, 1.1e-5, 1.23456789e-6, 1.2345612, 123.4561, 0.9, 1.5, 200.0):
        assert value <= float(shown(value)) <= value * (1.0 + 1e-5)
        assert value <= float(nats(value)) <= value + 1e-4
    assert (shown(1e-5), shown(1.5), shown(0.75)) == ("1e-05", "1.5", "0.75")
    assert (shown(None), shown(float("inf"))) == ("–", "unbounded")
    assert pair(1.00001, 1.1e-5) == "epsilon 1.0001 at delta 1.1e-05"


def test_an_epsilon_that_promises_nothing_has_no_figures_that_look_like_a_promise():
    for epsilon in (10.001, 30.0, 1e3, 1e300):
        assert in_a_thousand(epsilon, DELTA) is None
        assert scale_word(epsilon) == "hardly any"
        for kind in ("worst-case", "upper", "refusal"):
            assert "up to 100%" in verdict(epsilon, DELTA, kind)
        assert "in 1,000 without" not in words(made("confident", epsilon=epsilon))
    assert "at most 99.9%" in verdict(6.9, 1e-5)
    assert "up to 100%" in verdict(6.91, 1e-5)
    assert best_guess(10.0001, 1e-12) > 0.9999  # as its warning says
    assert best_guess(1.0, 1.0) == 1.0
    assert best_guess(0.0, 0.0) == 0.5


def test_a_target_is_never_shown_as_less():
    report = made("passed", epsilon=1.3580321)
    assert "epsilon 1.3581 at" in report.headline()
    assert "epsilon 1.35804 at" in worded(report).summary
    report = made("refused", epsilon=1.2345671)
    assert "epsilon 1.23457 at delta 1e-05, which is the cost of a failed" in worded(report).summary


# --- sentences about a run -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(reports.KINDS))
def test_words_claim_what_the_statements_do(kind):
    report = reports.made(kind)[0]
    found = sections(report)
    if not (report.private and report.sound):
        assert set(found) <= {"Nothing is promised", "Warnings", "What was done"}
        assert "Do not publish the labels or this report" in words(report)
        return
    assert next(iter(found)) == "What is promised"
    assert found["What is promised"][0] == report.summary
    assert {"What it rests on", "What it does not cover", "What was not checked"} <= set(found)
    for one in report.statements:
        said = f"Statement {one.id}{'' if one.holds else ', not claimed'}: {one.text}"
        assert said in found["Exactly"]
    worst = re.search(r"Whatever the votes, epsilon is at most ([\d.]*\d)", words(report))
    assert (worst is not None) is (report.epsilon_kind == "upper")


def test_the_worst_case_beside_a_sanitized_bound_has_its_premise():
    for kind in ("upper", "rounds"):
        told = words(made(kind, epsilon=0.5, epsilon_kind="upper"))
        worst = shown(reports.made(kind)[0].data_independent.epsilon)
        premise = "" if kind == "upper" else f", {sentence('fixed')}"
        assert f"Whatever the votes, epsilon is at most {worst}{premise}." in told


def test_nothing_is_said_of_labels_that_were_refused():
    report = made("refused")
    assert not any("labels" in text for text in sections(report)["What may be published"][:-1])


def test_teachers_are_counted_and_not_their_votes():
    report = made("groups")
    assert report.mechanism["teachers"] == 80
    told = words(report)
    assert "Teachers had up to 80 votes among 3 classes" in told
    # The mechanism's name for the votes that one record moves is not theirs.
    assert "teachers_per_record 2" not in told
    assert all(f"group '{each.group}': {pair(each.epsilon, each.delta)}" in told
               for each in report.groups)  # fmt: skip


def test_votes_that_move_together_are_those_of_one_teacher():
    mechanism = pate.GNMax(60, 3, sigma2=12.0, teachers_per_record=2, votes_together=True)
    report = pate.aggregate(reports.votes(), mechanism, layout="counts", classes=3).report
    assert "No training record reached more than 1 teacher." in words(report)
    assert "all that one teacher was trained on" in words(report)


@pytest.mark.parametrize(
    ("kind", "changes", "by_record"),
    [
        ("gnmax", {}, False),
        ("gnmax", {"external": ({"epsilon": 0.1},)}, True),
        ("two per record", {"epsilon": 1.0}, True),
        ("groups", {"epsilon": 1.0}, True),
    ],
)
def test_a_record_of_several_teachers_is_protected_alone(kind, changes, by_record):
    report = made(kind, **changes)
    (whole,) = (
        text
        for text in sections(report)["Who is protected"]
        if text.startswith("The release protects")
    )
    assert ("each training record" in whole) is by_record
    assert ("without one training record" in words(report)) is by_record


def test_all_runs_have_two_figures_and_what_each_presupposes():
    kept = reports.made("kept")[0]
    told, spent = words(kept), kept.spent
    assert (
        f"together cost {pair(spent.epsilon, spent.delta)}, if no run and no setting was chosen "
        "after seeing earlier results."
    ) in told
    sums = f"epsilon {shown(spent.sum_epsilon)} at delta {shown(spent.sum_delta)}"
    assert f"Together, all runs cost at most {sums}, even if later runs" in told
    # What it is worth is said of the total alone.
    assert f"All runs together give {verdict(spent.epsilon, spent.delta, 'lessened')}." in told
    assert told.count("on pate's scale") == 1


def test_a_total_after_a_failed_test_is_not_said_to_hold_whatever_the_votes():
    """It was called an (ε, δ) of all runs, although a passed test would have cost more."""
    for kind in ("kept", "account"):
        report = reports.made(kind)[0]
        spent, told = report.spent, words(report)
        assert verdict(spent.epsilon, spent.delta, "lessened") in told
        assert verdict(spent.epsilon, spent.delta) not in told
        names = ("total", "sum")
        assert all(sentence("lessened", statement=name)[1:] in told for name in names)
        passed = tuple(replace(run, outcome=Outcome.LABELLED) for run in spent.runs)
        whole = worded(replace(report, spent=replace(spent, runs=passed)))
        assert verdict(spent.epsilon, spent.delta) in words(whole)
        assert "a failed release test" not in words(whole).lower()
    promised = reports.made("account")[0].summary
    assert "it holds whatever the votes were" not in promised
    assert "it holds whatever the votes were" in whole.summary
    rows = dict(summary_of(reports.made("kept")[0], publish=(), secret=()).rows)
    assert rows["in all"].endswith(sentence("lessened", statement="total"))


# --- pages ---------------------------------------------------------------------------------------


def exact(epsilon):
    """(e^ε, 1,000 (e^ε/1,000 + δ), best guess in percent) at δ = 1e-5."""
    epsilon, delta = mpmath.mpf(epsilon), mpmath.mpf("1e-5")
    odds = mpmath.exp(epsilon)
    return odds, min(odds + 1000 * delta, 1000), 100 * (odds + delta) / (1 + odds)


def test_the_table_of_epsilons_is_rounded_up():
    rows = re.findall(
        r"^\| ([\d.]+) \| ([\d,.]+) \| ([\d,.]+).*? \| ([\d.]+)%.*? \| (\w+) \|$",
        page("report.md"),
        re.MULTILINE,
    )
    assert [row[0] for row in rows] == ["0.1", "0.5", "1", "2", "4", "7"]
    for epsilon, *numbers, word in rows:
        assert scale_word(float(epsilon)) == word
        for said, true in zip(numbers, exact(epsilon), strict=True):
            last = 10.0 ** -len(said.partition(".")[2])
            assert true <= float(said.replace(",", "")) <= true + last


def test_the_guesses_of_the_readme_are_rounded_up():
    text = " ".join(page("README.md").split())
    said = re.search(
        r"at most ([\d.]+)% of the time at ε = 1, ([\d.]+)% at 2 and ([\d.]+)% at 4", text
    )
    for number, epsilon in zip(said.groups(), (1, 2, 4), strict=True):
        assert exact(epsilon)[2] <= float(number) <= exact(epsilon)[2] + 0.1
