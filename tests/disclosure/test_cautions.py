"""Warnings that protect, from public parameters alone."""

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
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability

DELTA = 1e-5


@pytest.mark.parametrize("name", sorted(set(MechanismName) - {MechanismName.INTERACTIVE}))
def test_defaults_need_no_caution(name):
    mechanism = MechanismChoice(name).build(teachers=250, classes=10, queries=100, delta=DELTA)
    assert not [*cautions(mechanism, delta=DELTA)]


@pytest.mark.parametrize(
    "mechanism",
    [
        GNMax(40, 4, sigma2=60.0),
        LNMax(40, 4, laplace_scale=50.0),
        GNMax(40, 2, sigma2=60.0),
        GNMax(40, 1 << 20, sigma2=11.0),
        ConfidentGNMax(40, 4, threshold=20.0, sigma1=20.0, sigma2=60.0),
    ],
    ids=repr,
)
def test_labels_that_are_noise(mechanism):
    (text,) = cautions(mechanism, delta=DELTA)
    assert text.startswith("Labels are noise: if all 40 votes agree")
    assert "pate plan" in text


def test_noise_is_told_by_chance_and_not_by_its_scale():
    # A unanimous vote among two: right with Phi(40 / (sigma sqrt 2)).
    for sigma, said in ((41.0, False), (43.0, True)):
        right = ndtr(40 / (sigma * np.sqrt(2)))
        assert bool(right < 0.75) is said
        assert any(cautions(GNMax(40, 2, sigma2=sigma), delta=DELTA)) is said


@pytest.mark.parametrize(
    ("mechanism", "remedy"),
    [
        (ConfidentGNMax(40, 4, threshold=50.5, sigma1=8.0, sigma2=4.0), "Lower --threshold"),
        (InteractiveGNMax(40, 4, threshold=51.0, sigma1=8.0, sigma2=4.0), "Lower --threshold"),
        (Stability(40, 4, query_epsilon=0.1, query_delta=1e-8), "Raise --query-epsilon"),
        (SparseVector(40, 4, query_epsilon=0.1, query_delta=1e-8, refusals=3), "--query-epsilon"),
    ],
    ids=repr,
)
def test_thresholds_out_of_reach(mechanism, remedy):
    (text,) = cautions(mechanism, delta=DELTA)
    assert text.startswith("The threshold is out of reach: ")
    assert remedy in text
    assert mechanism.unanimous()[0] < 0.1


def test_a_threshold_of_all_teachers_is_not():
    mechanism = ConfidentGNMax(40, 4, threshold=40.0, sigma1=8.0, sigma2=4.0)
    assert not [*cautions(mechanism, delta=DELTA)]


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


@pytest.mark.parametrize("name", [MechanismName.GNMAX, MechanismName.CONFIDENT])
@pytest.mark.parametrize("teachers", [20, 50, 250])
def test_a_prior_by_default_needs_no_caution(name, teachers):
    choice = MechanismChoice(name, prior_weight=teachers // 5)
    mechanism = choice.build(teachers=teachers, classes=10, queries=100, delta=DELTA)
    assert not [*cautions(mechanism, delta=DELTA)]


HARD = (
    "Guesses of the prior are hard to overrule: if all 40 votes of the teachers are against a guess"
)
GUESSES = [
    (f"{HARD} of 41 votes", GNMax(40, 4, sigma2=6.0, prior_weight=41)),
    (f"{HARD} of 36 votes", GNMax(40, 4, sigma2=6.0, prior_weight=36)),
    (
        f"{HARD} of 10 votes, a query is answered with probability 0.067",
        ConfidentGNMax(40, 4, threshold=52.0, sigma1=8.0, sigma2=4.0, prior_weight=10),
    ),
    (
        "Labels are noise: if all 50 votes (10 of the prior) agree",
        GNMax(40, 4, sigma2=70.0, prior_weight=10),
    ),
    (
        "The threshold is out of reach: if all 50 votes (10 of the prior) agree",
        ConfidentGNMax(40, 4, threshold=61.0, sigma1=8.0, sigma2=4.0, prior_weight=10),
    ),
]


@pytest.mark.parametrize(("beginning", "mechanism"), GUESSES)
def test_guesses_that_cannot_be_overruled(beginning, mechanism):
    (text,) = cautions(mechanism, delta=DELTA)
    assert text.startswith(beginning)


def test_guesses_are_hard_to_overrule_below_nine_times_in_ten():
    for weight, said in ((28, False), (30, True)):
        mechanism = GNMax(40, 2, sigma2=6.0, prior_weight=weight)
        right = ndtr((40 - weight) / (6.0 * np.sqrt(2)))
        assert mechanism.overruled()[1] == pytest.approx(right)
        assert bool(right < 0.9) is said
        assert any(cautions(mechanism, delta=DELTA)) is said


@pytest.fixture
def counts():
    return np.tile([30, 6, 4], (20, 1))


@pytest.mark.parametrize("release", ["none", "upper", None])
def test_warnings_reach_report_and_quote(counts, release):
    words = {"mechanism": "gnmax", "sigma2": 1.2, "delta": 0.03, "release": release}
    words |= {"layout": "counts", "max_epsilon": 100.0}
    done, quoted = pate.aggregate(counts, **words), pate.quote(counts, **words)
    for warnings in (done.report.warnings, quoted.warnings):
        assert [text.partition(" ")[0] for text in warnings] == ["delta", "This"]
