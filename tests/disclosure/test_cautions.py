"""Warnings that protect, from public parameters alone."""

import itertools

import numpy as np
import pytest
from scipy.special import ndtr, ndtri

import pate_cli as pate
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.guarantee import cautions
from pate_cli.mechanisms import MechanismChoice
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.mechanisms.open_vocabulary import OpenVocabulary
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability

DELTA = 1e-5
GUESSED = [MechanismName.GNMAX, MechanismName.CONFIDENT]
DEFAULTS = [(name, 250, 0) for name in sorted(set(MechanismName) - {MechanismName.INTERACTIVE})]
DEFAULTS += [(name, teachers, teachers // 5) for name in GUESSED for teachers in (20, 50, 250)]


@pytest.mark.parametrize(("name", "teachers", "weight"), DEFAULTS)
def test_defaults_need_no_caution(name, teachers, weight):
    choice = MechanismChoice(name, prior_weight=weight)
    mechanism = choice.build(teachers=teachers, classes=10, queries=100, delta=DELTA)
    assert not [*cautions(mechanism, delta=DELTA)]


def confident(threshold, sigma1=8.0, sigma2=4.0, weight=0, kind=ConfidentGNMax):
    return kind(40, 4, threshold=threshold, sigma1=sigma1, sigma2=sigma2, prior_weight=weight)


PAIRS = {"query_epsilon": 0.1, "query_delta": 1e-8}
NOISE = ("Labels are mostly noise: even if all 40 votes agree", "pate plan")
FAR = "The threshold is too high: "
HARD = (
    "The teachers can hardly overrule the guesses of the prior. If all 40 votes of the teachers "
    "are for one class and a guess"
)
CAUTIONS = [
    (GNMax(40, 4, sigma2=60.0), *NOISE),
    (LNMax(40, 4, laplace_scale=50.0), *NOISE),
    (GNMax(40, 2, sigma2=60.0), *NOISE),
    (GNMax(40, 1 << 20, sigma2=11.0), *NOISE),
    (confident(20.0, 20.0, 60.0), *NOISE),
    (
        GNMax(40, 4, sigma2=70.0, prior_weight=10),
        "Labels are mostly noise: even if all 50 votes (10 of the",
        "",
    ),
    (confident(50.5), FAR, "Lower --threshold"),
    (confident(51.0, kind=InteractiveGNMax), FAR, "Lower --threshold"),
    (confident(61.0, weight=10), f"{FAR}even if all 50 votes (10 of the prior) agree", ""),
    (Stability(40, 4, **PAIRS), FAR, "Raise --query-epsilon"),
    (SparseVector(40, 4, **PAIRS, refusals=3), FAR, "--query-epsilon"),
    (OpenVocabulary(12, 5, sigma2=2.0, threshold=25.0), FAR, "Lower --threshold"),
    (GNMax(40, 4, sigma2=6.0, prior_weight=41), f"{HARD} of 41 votes is for another", ""),
    (GNMax(40, 4, sigma2=6.0, prior_weight=36), f"{HARD} of 36 votes", ""),
    (confident(52.0, weight=10), f"{HARD} of 10 votes is for another", "0.067"),
]


@pytest.mark.parametrize(("mechanism", "beginning", "remedy"), CAUTIONS, ids=str)
def test_labels_that_are_worth_nothing_are_told_with_a_remedy(mechanism, beginning, remedy):
    (text,) = cautions(mechanism, delta=DELTA)
    assert text.startswith(beginning)
    assert remedy in text
    assert beginning[:9] != FAR[:9] or mechanism.unanimous()[0] < 0.1


def test_the_line_is_drawn_at_a_chance_and_not_at_a_scale():
    """Votes of all are right with .75, against a guess with .9; a threshold may be all teachers."""
    for sigma, weight, least in ((41.0, 0, 0.75), (43.0, 0, 0.75), (6.0, 28, 0.9), (6.0, 30, 0.9)):
        right = ndtr((40 - weight) / (sigma * np.sqrt(2)))
        mechanism = GNMax(40, 2, sigma2=sigma, prior_weight=weight)
        assert not weight or mechanism.overruled()[1] == pytest.approx(right)
        assert any(cautions(mechanism, delta=DELTA)) is bool(right < least)
    assert not [*cautions(confident(40.0), delta=DELTA)]


@pytest.mark.parametrize("weight", [0, 20])
def test_a_delta_above_one_in_so_many_teachers(weight):
    mechanism = GNMax(40, 4, sigma2=2.0, prior_weight=weight)
    assert not [*cautions(mechanism, delta=0.025)]
    (text,) = cautions(mechanism, delta=0.026)
    assert text.startswith("delta 0.026 is above 1 / 40 votes")


@pytest.mark.parametrize(
    ("votes", "weight", "classes", "sigma"),
    [(40, 12, 4, 15.0), (40, 40, 4, 6.0), (40, 39, 2, 20.0), (40, 12, 1 << 20, 9.0)],
)
def test_teachers_against_a_guess_win_as_often_as_is_said(votes, weight, classes, sigma):
    mechanism = GNMax(votes, classes, sigma2=sigma, prior_weight=weight)
    answered, right = mechanism.overruled()
    assert answered == 1.0
    drawn = np.random.default_rng(3).normal(size=(200_000, min(classes, 4)))
    if classes > 4:  # the best of those without a vote, by its law
        rest = np.random.default_rng(4).random(len(drawn)) ** (1.0 / (classes - 2))
        drawn = np.column_stack([drawn[:, :2], ndtri(rest)])
    noisy = sigma * drawn
    noisy[:, 0] += votes
    noisy[:, 1] += weight
    assert right == pytest.approx(np.mean(noisy.argmax(axis=1) == 0), abs=5e-3)


def test_of_a_prior_with_more_votes_than_teachers_no_less_is_said_than_is_true():
    mechanism = GNMax(40, 4, sigma2=20.0, prior_weight=60)
    noisy = 20.0 * np.random.default_rng(3).normal(size=(200_000, 4)) + (40, 60, 0, 0)
    right = np.mean(noisy.argmax(axis=1) == 0)
    assert right - 5e-3 < mechanism.overruled()[1] < 0.5


@pytest.mark.parametrize("kind", [ConfidentGNMax, InteractiveGNMax])
def test_teachers_against_a_guess_must_be_answered_too(kind):
    mechanism = kind(250, 10, threshold=200.0, sigma1=100.0, sigma2=40.0, prior_weight=60)
    assert mechanism.overruled()[0] == pytest.approx(ndtr(50.0 / 100.0))
    assert mechanism.unanimous()[0] == pytest.approx(ndtr(110.0 / 100.0))
    assert mechanism.overruled()[1] == mechanism.argmax.overruled()[1] > 0.999
    assert not [*cautions(mechanism, delta=DELTA)]
    heavy = kind(250, 10, threshold=200.0, sigma1=100.0, sigma2=40.0, prior_weight=300)
    assert heavy.overruled()[0] == pytest.approx(ndtr(1.0))


def test_warnings_reach_report_and_quote():
    words = {"mechanism": "gnmax", "sigma2": 1.2, "delta": 0.03, "layout": "counts"}
    counts = np.tile([30, 6, 4], (20, 1))
    for verb, release in itertools.product((pate.aggregate, pate.quote), ("none", "upper", None)):
        found = verb(counts, **words, release=release, max_epsilon=100.0)
        warnings = getattr(found, "report", found).warnings
        assert [text.partition(" ")[0] for text in warnings] == ["delta", "This"]


def test_a_threshold_that_nothing_reaches_has_a_quote_at_a_target():
    """Rows that cost nothing once made a number of rows that no integer holds."""
    votes = np.zeros((20, 50), dtype=np.int64)
    given = {"layout": "labels", "classes": 3, "teachers": 50, "target_epsilon": 1.0}
    found = pate.quote(votes, threshold="400%", sigma1=2, sigma2=5, **given)
    assert found.epsilon <= 1.0
    assert any(text.startswith(FAR) for text in found.warnings)
