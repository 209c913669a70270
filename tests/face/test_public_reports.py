"""What people reported of other tools, tried here: the same input, and what is right for it.

Each test names the public reports that it comes from.
"""

from __future__ import annotations

import json
import math

import mpmath as mp
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import log_ndtr
from scipy.stats import norm

import pate_cli as pate

WORDS = ["benign", "malignant", "unsure"]


def winners_of(votes, **about):
    """The class with the most votes in every row: with so little noise, the label."""
    asked = {"mechanism": "gnmax", "sigma2": "0.001 votes", "seed": 1, "record": False}
    return pate.aggregate(votes, **asked, **about).labels.labels.tolist()


def said(error):
    """The message of what is raised."""
    return str(error.value)


# rasbt/mlxtend#321, google-research/tabfm#28, scikit-learn/scikit-learn#5803: the classes are
# words, and predictions come as an array of objects.


def _predictions():
    stream = np.random.RandomState(0)
    return np.array(WORDS, dtype=object)[stream.randint(3, size=(20, 30))]


def test_predictions_in_words_are_read_from_an_array_as_from_a_list():
    about = {"layout": "labels-by-teacher", "label_names": WORDS, "teachers": 20}
    assert winners_of(_predictions(), **about) == winners_of(_predictions().tolist(), **about)


def test_whole_numbers_with_missing_ones_are_read():
    votes = pd.DataFrame([[0, 1, 0], [1, None, 1]] * 3, dtype="Int64").to_numpy()
    assert winners_of(votes, layout="labels", classes=2, teachers=3) == [0, 1] * 3


def test_predictions_in_bytes_are_read():
    about = {"layout": "labels-by-teacher", "label_names": WORDS, "teachers": 20}
    assert winners_of(_predictions().astype("S"), **about) == winners_of(_predictions(), **about)


# tulsawebdevs/django-multi-gtfs#68, python/cpython#65496, microsoft/AzureStorageExplorer#6767: a
# blank behind every comma.

BLANKS = "a, b, c\n" + "dog, cat, cat\ncat, dog, dog\ncat, eel, eel\n" * 5


def test_a_blank_behind_a_comma_is_no_part_of_a_vote(here):
    run = "aggregate v.csv --layout labels --label-names cat,dog,eel --mechanism gnmax "
    run += "--sigma2 '0.001 votes' --no-record --seed 1 -o l.csv --report r.json"
    assert here(run, v__csv=BLANKS).code == 0
    labels = [line.split(",")[1] for line in (here.folder / "l.csv").read_text().split()[1:]]
    assert labels == ["cat", "dog", "eel"] * 5


# dask/dask#7248, dask/dask#7249: parts that are numbered without zeros.


def test_parts_are_read_by_their_numbers(here):
    votes = here.folder / "votes"
    votes.mkdir()
    truth = np.arange(24) % 3
    counts = np.ones((24, 3), dtype=int)
    counts[np.arange(24), truth] = 98
    for part in range(12):
        names = [f"class_{j}" for j in range(3)]
        frame = pd.DataFrame(counts[2 * part : 2 * part + 2], columns=names)
        frame.to_parquet(votes / f"part.{part}.parquet", index=False)
    assert winners_of(votes, layout="counts") == truth.tolist()


# tensorflow/privacy#170: three hospitals, a target, and no other flag.


def test_three_teachers_and_a_target(here):
    said = np.arange(100) % 2
    votes = np.stack([said, said, np.where(np.arange(100) % 10 == 0, 1 - said, said)], axis=1)
    line = "aggregate v.npy --layout labels --teachers 3 --classes 2 --target-epsilon 5 --no-record"
    ran = here(f"{line} -o l.csv --report r.json", v__npy=votes)
    assert ran.code in (0, 5, 8)
    assert "--sigma2" not in ran.stderr


# vanderschaarlab/synthcity#275, vanderschaarlab/mlforhealthlabpub#29: every teacher saw every
# record, and the owner says so.


def test_records_that_reached_all_teachers_cost_nothing(here):
    line = "aggregate v.npy --layout labels --teachers 50 --classes 2 --teachers-per-record 50 "
    line += "--target-epsilon 3 --spend s.json -o l.csv --report r.json"
    ran = here(line, v__npy=np.zeros((40, 50), dtype=int))
    assert ran.code == 5
    assert not (here.folder / "s.json").exists()


# OpenMined/PySyft#1960: what given votes cost, by the paper and beside the worst case.


def _random_votes():
    return (np.random.default_rng(0).random((100, 100)) * 10).astype(int)


def _by_moments(votes, analysis):
    about = {"layout": "labels-by-teacher", "teachers": 100, "classes": 10, "laplace_scale": 10}
    return pate.cost(votes, "lnmax", **about, orders="moments", analysis=analysis)


@pytest.mark.parametrize(("agreeing", "epsilon"), [(0, 11.756462732), (50, 7.867987173)])
def test_the_cost_by_the_paper_is_that_of_an_independent_computation(agreeing, epsilon):
    votes = _random_votes()
    votes[:, :agreeing] = 0
    assert _by_moments(votes, "paper").epsilon == pytest.approx(epsilon, rel=1e-9)


def test_given_votes_cost_no_more_than_the_worst():
    found = _by_moments(_random_votes(), "tight").to_dict()
    assert found["epsilon"] <= found["data_independent"]["epsilon"]


# meta-pytorch/opacus#670, meta-pytorch/opacus#233: much noise, so that the best order lies above
# all that are tried.


@pytest.mark.parametrize(
    ("mechanism", "noise"), [("lnmax", {"laplace_scale": 1e4}), ("gnmax", {"sigma2": 1e4})]
)
def test_much_noise_costs_little(mechanism, noise):
    found = pate.cost(np.array([[50, 50]]), mechanism, layout="counts", **noise).to_dict()
    assert found["epsilon"] <= found["data_independent"]["epsilon"]


# pola-rs/polars#2175, h2oai/db-benchmark#188, duckdb/duckdb#4768: NA for a missing vote.
# microsoft/RTVS#1535, HenrikBengtsson/R.utils#59: a header that is one name short.

R_LINE = "aggregate v.csv --layout labels --classes 2 --teachers 3 --no-record --dry-run"


def test_na_is_a_missing_vote(here):
    assert here(R_LINE, v__csv='"V1","V2","V3"\n1,NA,1\n0,0,1\n1,1,1\n0,0,0\n').code == 0


def test_a_header_one_name_short_is_read_or_named(here):
    text = '"V1" "V2" "V3"\n"1" 1 0 1\n"2" 0 0 1\n"3" 1 1 1\n"4" 0 0 0\n'
    ran = here(R_LINE, v__csv=text)
    assert ran.code == 0 or "row names" in ran.stderr or "one name short" in ran.stderr


# scikit-learn/scikit-learn#9593, adaptive-machine-learning/CapyMOA#399: a class that a teacher
# never saw.

SCORES = np.array([[[0.7, 0.3, 0.0], [0.2, 0.8, 0.0], [0.1, 0.2, 0.7]]] * 4)


def test_the_logarithm_of_nothing_loses_to_every_score():
    logarithms = np.log(SCORES, out=np.full_like(SCORES, -np.inf), where=SCORES > 0)
    found = pate.quote(logarithms, "gnmax", sigma2=2, layout="scores", teachers=3)
    assert found.queries == 4


def test_probabilities_with_a_class_less_name_the_teacher():
    votes = [SCORES[:, 0, :2], SCORES[:, 1], SCORES[:, 2]]
    with pytest.raises(pate.PateError) as error:
        pate.quote(votes, "gnmax", sigma2=2, layout="scores-by-teacher", teachers=3)
    assert "teacher 0" in said(error)


# scikit-learn/scikit-learn#8451: classes that are -1 and 1, as outlier detectors have them.


def test_minus_one_as_a_class_is_told_from_minus_one_as_no_vote(here):
    text = "a,b,c\n-1,-1,1\n1,1,1\n-1,-1,-1\n1,1,-1\n"
    ran = here("aggregate v.csv --layout labels --classes 2 --dry-run --no-record", v__csv=text)
    assert ran.code == 3
    assert "v.csv: row 0" in ran.stderr
    assert "store 0 and 1" in ran.stderr
    assert "no vote, give --teachers" in ran.stderr


# pytorch/tutorials#1708, benmaier/binpacking#18, NVIDIA-Merlin/NVTabular#106: a file without names
# of columns.

NO_NAMES = "aggregate v.csv --layout labels --teachers 3 --classes 3 --no-record --dry-run"


def test_numbers_in_the_place_of_names_are_refused(here):
    ran = here(NO_NAMES, v__csv="2,2,2\n0,1,2\n1,1,1\n0,0,0\n2,2,2\n")
    assert ran.code == 3
    assert "first line" in ran.stderr


def test_a_first_row_that_could_be_names_is_no_query_lost(here):
    ran = here(NO_NAMES, v__csv="0,1,2\n2,2,2\n1,1,1\n0,0,0\n2,2,2\n")
    assert ran.code == 3 or json.loads(ran.stdout)["queries"] == 5


# pandas-dev/pandas#21228, apache/arrow#43298, Arize-ai/phoenix#504: a word where the others gave
# numbers.

MIXED = {"t0": [0, 1, 1, 0], "t1": [0, 1, "unsure", 0], "t2": [0, 1, 1, 1]}


def test_a_word_among_numbers_is_named_with_its_row_in_a_file(here):
    text = pd.DataFrame(MIXED).to_csv(index=False)
    ran = here("aggregate v.csv --layout labels --classes 2 --teachers 3 --dry-run", v__csv=text)
    assert ran.code == 3
    assert "row 2" in ran.stderr
    assert "'t1'" in ran.stderr


def test_a_word_among_numbers_is_named_with_its_row_in_a_frame():
    with pytest.raises(pate.PateError) as error:
        pate.quote(pd.DataFrame(MIXED), layout="labels", classes=2, teachers=3)
    assert "t1" in said(error)
    assert "row 2" in said(error)


# opendp/smartnoise-sdk#596, BorealisAI/private-data-generation#11, vanderschaarlab/synthcity#276:
# the moments of 2017 for ten discriminators.


@pytest.mark.parametrize(
    ("counts", "scale", "delta"),
    [([[9, 1], [10, 0], [6, 4]] * 5, 2, 1e-5), ([[10, 0]] * 50, 1, 1e-6), ([[5, 5]], 1, 1e-5)],
)
def test_the_moments_are_those_of_the_paper(counts, scale, delta):
    mp.mp.dps = 40
    gamma, total = 1 / mp.mpf(scale), {power: mp.mpf(0) for power in range(1, 9)}
    for first, second in counts:
        gap = gamma * abs(first - second)
        other = (2 + gap) / (4 * mp.e**gap)
        small = other < (mp.e ** (2 * gamma) - 1) / (mp.e ** (4 * gamma) - 1)
        for power in total:
            # The second: noise of this scale is 2 gamma-differentially private in any case.
            moment = min(2 * gamma**2 * power * (power + 1), 2 * gamma * power)
            if small:
                likely = (1 - other) * ((1 - other) / (1 - mp.e ** (2 * gamma) * other)) ** power
                moment = min(moment, mp.log(likely + other * mp.e ** (2 * gamma * power)))
            total[power] += moment
    wanted = min((spent - mp.log(delta)) / power for power, spent in total.items())
    about = {"laplace_scale": scale, "layout": "counts", "delta": delta, "orders": "moments"}
    found = pate.cost(np.array(counts), "lnmax", **about, analysis="paper")
    assert found.epsilon == pytest.approx(float(wanted), rel=1e-9)


# vanderschaarlab/mlforhealthlabpub#38: teachers who are split evenly.


def test_an_even_split_has_finite_moments(here):
    line = "cost v.csv --layout counts --mechanism lnmax --laplace-scale 1 --orders moments"
    ran = here(f"{line} --analysis paper", v__csv="no,yes\n5,5\n5,5\n6,4\n")
    assert ran.code == 0
    assert math.isfinite(json.loads(ran.stdout)["epsilon"])


def test_a_small_epsilon_is_reached_by_noise(here):
    line = "aggregate v.csv --layout counts --mechanism lnmax --laplace-scale 100 --no-record"
    ran = here(f"{line} --max-epsilon 0.1 -o l.csv", v__csv="no,yes\n5,5\n5,5\n6,4\n")
    assert ran.code == 0
    assert 0.0 < json.loads(ran.stdout)["epsilon"] <= 0.1


# vanderschaarlab/mlforhealthlabpub#36: is the noise of the size that was asked for.


@pytest.mark.parametrize(
    ("mechanism", "noise", "wins"),
    [
        ("lnmax", {"laplace_scale": 20.0}, 1 - math.exp(-0.5) / 2 * (1 + 0.5 / 2)),
        ("gnmax", {"sigma2": 20.0}, norm.cdf(10 / (20 * math.sqrt(2)))),
    ],
)
def test_noise_has_the_size_that_was_asked_for(mechanism, noise, wins):
    rows, lead = 40_000, np.array([[55, 45]])
    votes = np.repeat(lead, rows, axis=0)
    done = pate.aggregate(votes, mechanism, **noise, layout="counts", seed=7, record=False)
    share = float(np.mean(np.asarray(done.labels.labels) == 0))
    # Five standard deviations, which chance exceeds less than once in a million.
    assert abs(share - wins) < 5 * math.sqrt(wins * (1 - wins) / rows)


# google/differential-privacy#212: Confident-GNMax in Google's accountant.


def test_google_s_accountant_composes_what_is_exported():
    pld = pytest.importorskip("dp_accounting.pld")
    votes = np.array([[150, 50, 50]] * 30)
    given = {"threshold": 150, "sigma1": 100, "sigma2": 40, "layout": "counts", "record": False}
    report = pate.aggregate(votes, **given).report
    accountant = pld.PLDAccountant()
    accountant.compose(pate.dp_event(report))
    mu = math.sqrt(30 * (1 / 100**2 + 2 / 40**2))

    def excess(epsilon):
        other = math.exp(epsilon) * norm.cdf(-epsilon / mu - mu / 2)
        return norm.cdf(-epsilon / mu + mu / 2) - other - 1e-5

    exact = brentq(excess, 0, 50)
    assert exact == pytest.approx(0.730466, abs=1e-6)
    assert exact * 0.999 <= accountant.get_epsilon(1e-5) <= exact * 1.02
    assert 0.4676 <= report.epsilon <= exact  # by brute force, and with every count published


# jeremy43/Private_kNN#3, tensorflow/privacy#104: one record moves k votes.


@pytest.mark.parametrize("k", [1, 5])
def test_a_record_of_k_teachers_costs_what_k_votes_do(k):
    votes, sigma = np.tile([[30, 20]], (10, 1)), 40 * math.sqrt(2)
    quoted = pate.quote(votes, "gnmax", sigma2=40, layout="counts", teachers_per_record=k).epsilon

    def law(first):
        return np.array([log_ndtr((2 * first - 50) / sigma), log_ndtr((50 - 2 * first) / sigma)])

    def divergence(one, other, order):
        terms = order * one + (1 - order) * other
        return np.logaddexp(*terms) / (order - 1)

    def epsilon(order):
        pairs = [(law(first), law(min(50, first + k))) for first in range(51)]
        worst = max(max(divergence(a, b, order), divergence(b, a, order)) for a, b in pairs)
        return 10 * worst + math.log1p(-1 / order) - math.log(1e-5 * order) / (order - 1)

    least = min(epsilon(order) for order in np.linspace(2, 120, 237))
    assert least <= quoted <= least * 1.02


# opendp/opendp#2131, w3c/attribution#77: three runs of 1.1 in a budget of 3.3.


def test_three_runs_of_a_third_use_a_budget_up(here):
    stream = np.random.RandomState(0)
    counts, first = np.zeros((60, 3), dtype=int), stream.binomial(200, 0.97, 60)
    counts[:, 0], counts[:, 1] = first, 200 - first
    line = "aggregate v.npy --layout counts --mechanism gnmax --sigma2 20 --max-queries 60 "
    line += "--target-epsilon 1.1 --budget 3.3 --bound two-tail --spend s.json"
    codes = [
        here(f"{line} -o l{turn}.csv --report r{turn}.json", v__npy=counts).code
        for turn in range(4)
    ]
    assert set(codes[:3]) <= {0, 8}  # the coin of a target may come out against the labels
    assert codes[3] == 5 or 8 in codes[:3]


# tensorflow/privacy#166, meta-pytorch/opacus#49: orders near one.


def test_an_order_near_one_is_no_help_and_order_one_is_refused(here):
    line = "cost v.csv --layout counts --mechanism gnmax --sigma2 20 --order"
    text = "no,yes\n90,10\n95,5\n"
    near = here(f"{line} 1.00000001", v__csv=text)
    assert near.code == 0
    found = json.loads(near.stdout)
    # At this order alone it would be over a billion; the worst case holds for these votes, too.
    assert found["rdp"][0] - math.log(1e-5) / 1e-8 == pytest.approx(1.15e9, rel=0.01)
    assert 0.32 < found["epsilon"] <= found["data_independent"]["epsilon"]
    assert here(f"{line} 1", v__csv=text).code == 2


# silx-kit/silx#1146, htwaijry/npy4th#2, numpy/numpy#13638: other byte orders, columns first, and
# floats.


@pytest.mark.parametrize("kind", [">i4", ">f8", "<f2", "u8", "F"])
def test_every_number_is_read_as_what_it_is(kind, here):
    votes = np.array([[0] * 3 + [2] * 37, [1] * 37 + [0] * 2 + [2]])
    np.save(here.folder / "v.npy", np.asfortranarray(votes) if kind == "F" else votes.astype(kind))
    assert winners_of(here.folder / "v.npy", layout="labels", classes=3, teachers=40) == [2, 1]


# pandas-dev/pandas#13497, docling-project/docling#4097, biolab/orange3#7000: a byte order mark.


def test_a_byte_order_mark_is_no_part_of_a_name(here):
    rows = "".join(f"q{row},{row % 2},{row % 2},0\r\n" for row in range(6))
    text = b"\xef\xbb\xbf" + f'"query_id","a","b","c"\r\n{rows}'.encode()
    line = "aggregate v.csv --layout labels --classes 2 --teachers 3 --mechanism gnmax --sigma2 1"
    assert here(f"{line} --seed 1 --no-record -o l.csv --report r.json", v__csv=text).code == 0
    assert [row[:3] for row in (here.folder / "l.csv").read_text().split()[1:3]] == ["q0,", "q1,"]


# snorkel-team/snorkel#1309, snorkel-team/snorkel#1446, cleanlab/cleanlab#1156: abstentions, and one
# who never voted.


def test_who_abstains_has_no_vote(here):
    text = "a,b,c,d\n0,0,-1,\n1,1,1,\n-1,-1,0,\n1,0,1,\n"
    (here.folder / "v.csv").write_text(text)
    about = {"layout": "labels", "classes": 2}
    assert winners_of(here.folder / "v.csv", **about, teachers=4) == [0, 1, 0, 1]
    with pytest.raises(pate.PateError, match="`teachers` N"):
        pate.quote(here.folder / "v.csv", **about)


# refuel-ai/autolabel#325, Arize-ai/phoenix#7499: answers of language models that are nearly a
# class.

ANSWERS = ["Positive.", "positive", " POSITIVE\n", "'negative'", "Negative", "it is positive",
           "N/A", "", "positive!", "\uff30ositive?"]  # fmt: skip


def test_answers_that_are_nearly_a_class_are_votes_where_they_are_normalised(here):
    (here.folder / "v.jsonl").write_text(
        "".join(json.dumps({"votes": ANSWERS}) + "\n" for _ in range(12))
    )
    about = {"layout": "labels", "label_names": ["positive", "negative"], "normalise": True}
    with pate.open_votes(here.folder / "v.jsonl", **about) as opened:
        batch = next(iter(opened.batches()))
    assert batch.counts[0].tolist() == [4, 2]


# dask/fastparquet#41, NVIDIA/cudf#7738, dask/dask#8010: a table of counts without a class that got
# no vote, or in another order.


@pytest.mark.parametrize("names", [[0, 1, 3], [3, 0, 1], [1, 2, 3]])
def test_columns_that_are_not_all_classes_are_named(names):
    frame = pd.DataFrame({0: [9, 1], 1: [1, 9], 3: [0, 0]})
    columns = [f"class_{name}" for name in names] if names[0] == 1 else names
    frame = frame.set_axis(columns, axis=1)
    with pytest.raises(pate.PateError, match=r"column '?(class_)?[13]'?") as error:
        pate.quote(frame, layout="counts")
    assert "0, 1, 2" in said(error)
