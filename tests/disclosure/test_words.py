"""What is said in words, held against worked examples that know nothing of the program.

A sentence is read as anybody would read it, its numbers are taken out of it, and a mechanism whose
(ε, δ) is exact must obey them; a sentence that is true of every such mechanism is no less than what
the worst one does.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace
from pathlib import Path

import mpmath
import numpy as np
import pytest

import pate_cli as pate
import reports
from pate_cli.disclosure import guarantee
from pate_cli.disclosure.cautions import vacuous_warnings
from pate_cli.disclosure.explain import explain
from pate_cli.disclosure.figures import factor, in_a_thousand, nats, pair, shown
from pate_cli.disclosure.guarantee import worded
from pate_cli.disclosure.verdict import best_guess, verdict

ROOT = Path(__file__).resolve().parents[2]
EPSILON, DELTA = 1.5, 1e-5
PAIRS = [(0.01, 1e-9), (0.7, 1e-5), (EPSILON, DELTA), (2.578, 1e-6), (4.0, 1e-3), (6.8, 1e-5)]


def page(name):
    place = ROOT if name == "README.md" else ROOT / "pate_cli" / "docs"
    return (place / name).read_text(encoding="utf-8")


def sections(report):
    return {section.title: section.texts for section in explain(report).sections}


def words(report):
    return " ".join(text for texts in sections(report).values() for text in texts)


def claimed(kind, **changes):
    """A report of this kind as if its noise had been real: every statement that then holds."""
    report = replace(reports.made(kind)[0], private=True, **changes)
    drawn = report.sanitized.epsilon is not None
    void = any("so no statement holds" in warning for warning in report.warnings)
    void |= report.analysis == "paper" and drawn

    def holds(reading):
        text = reading.text if not drawn else ""
        return not void and reading.id != "sanitized-for-all-votes" and "sanitized" not in text

    return replace(
        report, statements=tuple(replace(one, holds=holds(one)) for one in report.statements)
    )


def likened(epsilon, delta, kind="confident"):
    """(e^ε, δ, times in 1,000) of the sentence that explains an (ε, δ)."""
    report = claimed(kind, epsilon=epsilon, delta=delta, sound=True)
    (text,) = (text for text in sections(report)["Promised"] if text.startswith("In other words"))
    times, added = re.search(r" = ([\d,.e+]+) times .* plus delta = ([\d.e-]+);", text).groups()
    thousand = re.search(r"happens at most ([\d,.]+) times with the other", text)
    return (
        float(times.replace(",", "")),
        float(added),
        None if thousand is None else float(thousand[1].replace(",", "")),
    )


def guessed(epsilon, delta, kind="worst-case"):
    """The share of right guesses in the sentence that has one."""
    return float(re.search(r"at most ([\d.]+)%", verdict(epsilon, delta, kind).meaning)[1]) / 100


# --- noise from a Gaussian that is exactly (ε, δ) ------------------------------------------------


@pytest.fixture(scope="module")
def shift():
    """μ such that N(μ, 1) against N(0, 1) is (ε, δ) and no better."""
    with mpmath.workdps(30):
        epsilon, delta = mpmath.mpf(EPSILON), mpmath.mpf(DELTA)

        def excess(mu):
            beyond = mpmath.ncdf(-epsilon / mu - mu / 2)
            return mpmath.ncdf(-epsilon / mu + mu / 2) - mpmath.exp(epsilon) * beyond - delta

        return mpmath.findroot(excess, (0.3, 0.6), solver="anderson")


def test_delta_is_not_how_often_a_loss_is_above_epsilon(shift):
    above = float(mpmath.ncdf(-(EPSILON - shift**2 / 2) / shift))
    assert 11.0 * DELTA < above <= 1.2e-4  # as report.md has it, rounded up
    assert "loses more than 1.5 with probability 1.2e-4" in page("report.md")
    # So nothing may be said to fail, or to hold, with a chance of delta.
    for kind in ("confident", "upper", "passed", "refused"):
        assert not re.search(r"\bodds change|\bfails?\b|chance of delta", words(claimed(kind)))


def test_chances_obey_the_sentence_and_reach_it(shift):
    times, added, thousand = likened(EPSILON, DELTA)
    assert added == DELTA
    room = []
    for place in np.linspace(-6.0, 8.0, 561):
        for p, q in ((shift - place, -place), (place - shift, place)):
            room.append(times * mpmath.ncdf(q) + added - mpmath.ncdf(p))
    assert min(room) >= 0.0
    assert min(room) < 1e-6  # without delta it would be negative: the Gaussian reaches it
    assert min(room) - added < 0.0
    rare = -mpmath.sqrt(2) * mpmath.erfinv(1 - 2 * mpmath.mpf("0.001"))  # Φ(rare) = 1/1,000
    assert mpmath.ncdf(rare) == pytest.approx(0.001)
    assert 1000.0 * mpmath.ncdf(rare + shift) <= thousand


# --- randomised response, with an answer that gives all away -------------------------------------


def giving_away(epsilon, delta):
    """The worst pair that is (ε, δ), [2, 4]: P[S] = e^ε P'[S] + δ on S = {0, 1}."""
    likely = (1.0 - delta) / (1.0 + np.exp(-epsilon))
    row = np.array([delta, likely, 1.0 - delta - likely, 0.0])
    return np.stack([row, row[::-1]])


def events(outcomes):
    return np.array(list(itertools.product((False, True), repeat=outcomes)))


@pytest.mark.parametrize(("epsilon", "delta"), PAIRS)
def test_randomised_response_reaches_every_number(epsilon, delta):
    law = giving_away(epsilon, delta)
    one, other = law @ events(4).T
    times, added, thousand = likened(epsilon, delta)
    assert np.all(one <= times * other + added + 1e-12)
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
    report = claimed("refused", epsilon=epsilon, delta=delta)
    (text,) = (text for text in sections(report)["Promised"] if text.startswith("In other words"))
    times = float(re.search(r"a refusal is at most e\^\S+ = ([\d,.]+) times", text)[1])
    assert np.exp(epsilon) <= times <= np.exp(epsilon) + 0.01
    assert "delta" not in text


def test_a_sanitized_bound_speaks_of_outcomes_with_so_small_an_epsilon():
    # A coin decides between (1, δ) that says so and (9, δ) that says so: the statement
    # released-epsilon holds, by brute force, and a reading of all outcomes would be false.
    epsilon, large, share = 1.0, 9.0, 0.3
    law = np.hstack(
        [share * giving_away(epsilon, DELTA), (1.0 - share) * giving_away(large, DELTA)]
    )
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
    assert "of the runs with so small an epsilon, and 1e-05 of all runs besides" in str(
        verdict(epsilon, DELTA, "upper")
    )
    told = words(claimed("upper", epsilon_kind="upper"))
    assert "may come of what was released with so small an epsilon" in told


# --- numbers ------------------------------------------------------------------------------------


def test_numbers_are_never_below_what_they_stand_for():
    random = np.random.default_rng(3)
    for epsilon in (0.0, *random.uniform(0.0, 12.0, 300), 13.9, 14.0, 25.0, 300.0):
        exact = mpmath.exp(mpmath.mpf(float(epsilon)))
        said = mpmath.mpf(factor(epsilon).replace(",", ""))
        assert exact <= said <= max(exact + 0.01, exact * 1.1)
        thousand = in_a_thousand(epsilon, DELTA)
        assert (thousand is None) is (exact + 1000 * mpmath.mpf(DELTA) >= 1000)
        if thousand is not None:
            least = exact + 1000 * mpmath.mpf(DELTA)
            assert least <= mpmath.mpf(thousand) <= least + 0.01
        guess = (exact + mpmath.mpf(DELTA)) / (1 + exact)
        if guess < 0.999:
            said = guessed(epsilon, DELTA)
            assert guess - 1e-15 <= said <= guess + 0.001
    for value in (1e-5, 1.1e-5, 1.23456789e-6, 1.2345612, 123.4561, 0.9, 1.5, 200.0):
        assert value <= float(shown(value)) <= value * (1.0 + 1e-5)
        assert value <= float(nats(value)) <= value + 1e-4
    assert (shown(1e-5), shown(1.5), shown(0.75)) == ("1e-05", "1.5", "0.75")
    assert pair(1.00001, 1.1e-5) == "epsilon 1.0001 at delta 1.1e-05"


def test_a_guess_that_is_nearly_always_right_is_said_so():
    for epsilon in (6.91, 9.3385, 30.0, 1e3):
        assert best_guess(epsilon, DELTA) > 0.999
        for kind in ("worst-case", "upper", "refusal"):
            text = verdict(epsilon, DELTA, kind).meaning
            assert "may be right" in text
            assert ("in practically all" if kind == "upper" else "practically every time") in text
            assert "(more than 99.9%; a coin: 50%)" in text
            assert "at most" not in text
            assert "100" not in text
    assert "at most 99.9%" in verdict(6.9, 1e-5).meaning
    # The warning's number, at the least epsilon that has it.
    assert vacuous_warnings(10.0) == ()
    assert "right more than 99.99% of the time" in vacuous_warnings(10.0001)[0]
    assert best_guess(10.0001, 1e-12) > 0.9999


def test_a_target_is_never_shown_as_less():
    report = replace(reports.made("passed")[0], epsilon=1.00004)
    assert "epsilon 1.0001 at" in report.headline()
    for passed, said in ((True, "epsilon = 1.35804 "), (False, "cost epsilon = 1.23457 ")):
        tested = replace(report.tested, passed=passed, target=1.3580321, refusal_epsilon=1.2345671)
        assert said in worded(replace(report, tested=tested)).summary


# --- sentences about a run -----------------------------------------------------------------------


@pytest.mark.parametrize("kind", sorted(reports.KINDS))
def test_words_claim_what_the_statements_do(kind):
    for report in (reports.made(kind)[0], claimed(kind)):
        found = sections(report)
        if not report.private:
            assert list(found) == ["Nothing is promised"]
            continue
        told = " ".join(found["Promised"])
        holding = any(reading.holds for reading in report.statements)
        bound = holding and report.sound
        assert ("It rests on" in found) is ("Not covered" in found) is holding
        assert ("So what is protected" in " ".join(found["To whom"])) is holding
        assert ("In other words" in told) is ("on pate's scale" in told) is bound
        assert ("Neither the labels" in found["To be published"][0]) is not holding
        worst = re.search(r"Whatever the votes, epsilon is at most ([\d.]*\d)", told)
        if worst is not None:
            assert report.claims("all-votes")
            assert float(worst[1]) >= report.data_independent.epsilon
            assert (guarantee.FIXED in told) is (len(report.rounds) > 1)


def test_nothing_is_said_of_labels_that_were_refused():
    report = claimed("refused")
    found = sections(report)
    assert found["To be published"][0] == "This report."
    assert "textbook" not in words(report)
    assert "textbook" in words(claimed("passed"))


def test_the_worst_case_of_several_rounds_has_its_premise():
    for kind, premise in (("upper", False), ("rounds", True)):
        told = words(claimed(kind, epsilon=0.5, epsilon_kind="upper", sound=True))
        assert ("Whatever the votes, epsilon is at most" in told) is True
        assert (f", if {guarantee.FIXED}." in told.partition("For the labels alone")[0]) is premise


def test_what_is_not_sanitized_is_not_disclaimed():
    assert "sanitized.epsilon" not in words(claimed("confident"))
    assert "Not claimed, sanitized-for-all-votes" in words(claimed("upper"))


def test_teachers_are_counted_and_not_their_votes():
    report = claimed("groups")
    assert report.mechanism["teachers"] == 80
    told = words(report)
    assert "60 teachers with 80 votes voted among 3 classes" in told
    # The mechanism's name for the votes that one record moves is not theirs.
    assert "teachers_per_record 2" not in told
    assert "60 teachers voted among" in words(claimed("confident"))


def test_votes_that_move_together_are_those_of_one_teacher():
    mechanism = pate.GNMax(60, 3, sigma2=12.0, teachers_per_record=2, votes_together=True)
    report = pate.aggregate(reports.votes(), mechanism, layout="counts", classes=3).report
    assert "No record trained two teachers" in words(report)
    assert "all that one teacher was trained on" in words(report)


@pytest.mark.parametrize(
    ("kind", "changes", "by_record"),
    [
        ("gnmax", {}, False),
        ("gnmax", {"external": ({"epsilon": 0.1},)}, True),
        ("two per record", {}, True),
        ("groups", {}, True),
    ],
)
def test_a_record_of_several_teachers_is_protected_alone(kind, changes, by_record):
    report = claimed(kind, **changes)
    (whole,) = (text for text in sections(report)["To whom"] if text.startswith("So what is"))
    assert ("each record" in whole) is by_record
    assert ("one record is at most" in words(report)) is by_record


def test_runs_add_up_where_there_are_several():
    kept, _ = reports.made("kept")
    told = words(kept)
    assert f"cost epsilon {shown(kept.spent.epsilon)} at delta 2e-05 together: that is" in told
    assert "If a run was chosen by what earlier ones released, epsilon" in told
    # What it is worth is said of the total alone.
    assert told.count("on pate's scale") == 1


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
        assert verdict(float(epsilon), 1e-5).word == word
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
