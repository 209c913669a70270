"""What was wrong at the face once, or is reported of other tools, and stays mended."""

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pate_cli as pate
from face import inputs

GNMAX = {"mechanism": "gnmax", "sigma2": 40.0}
TEST = {**GNMAX, "record": False, "seed": 5}
LITTLE = {"mechanism": "gnmax", "sigma2": "0.001 votes", "record": False, "seed": 5}
FRAME = pd.DataFrame(inputs.COUNTS, columns=[f"class_{j}" for j in range(inputs.CLASSES)])


def ids_of(done):
    """The query ids of the labels, as texts."""
    return [str(name) for name in done.labels.to_arrow().column(0).to_pylist()]


def test_a_slice_of_a_frame_keeps_its_ids():
    done = pate.aggregate(FRAME.iloc[10:30], layout="counts", **TEST)
    assert ids_of(done) == [str(row) for row in range(10, 30)]


def test_the_column_of_ids_may_be_an_index():
    frame = FRAME.set_index(pd.RangeIndex(100, 160, name="case"))
    done = pate.aggregate(frame, layout="counts", id_column="case", **TEST)
    assert ids_of(done) == [str(row) for row in range(100, 160)]


def test_columns_of_guesses_go_by_their_names():
    shares = pd.DataFrame(inputs.STUDENT, columns=list(inputs.NAMES))
    asked = {"label_names": list(inputs.NAMES), "prior_weight": "200 votes", **LITTLE}
    votes = inputs.table(inputs.NAMES)
    straight = pate.aggregate(votes, prior=shares, **asked).labels.labels
    turned = pate.aggregate(votes, prior=shares[shares.columns[::-1]], **asked).labels.labels
    assert turned.tolist() == straight.tolist()


def test_rows_of_guesses_go_by_their_ids():
    guesses = pd.DataFrame({"label": inputs.GUESSES}, index=pd.Index(inputs.IDS, name="query_id"))
    asked = {"prior_weight": "200 votes", **LITTLE}
    straight = pate.aggregate(inputs.table(), prior=guesses, **asked).labels.labels
    turned = pate.aggregate(inputs.table(), prior=guesses.iloc[::-1], **asked).labels.labels
    assert turned.tolist() == straight.tolist()


# Votes that match no name.

STRANGE = [["vogel", "fisch", "katze", "hund"]] * 30


def test_a_run_stops_before_it_spends_where_most_votes_match_nothing(here):
    rows = [["ant", *row] for row in STRANGE]
    text = "".join(json.dumps({"votes": row}) + "\n" for row in rows)
    (here.folder / "v.jsonl").write_text(text)
    line = "aggregate v.jsonl --layout labels --label-names ant,bee --mechanism gnmax --sigma2 20"
    ran = here(f"{line} --max-epsilon 99 --spend s.json -o l.csv --report r.json")
    assert ran.exit_code != 0
    assert not (here.folder / "s.json").exists()


def test_a_number_outside_the_classes_is_a_vote_for_nobody():
    with pate.Session(teachers=3, classes=2, max_queries=5, **TEST) as session:
        session.ask_all([pate.Ask([0, 1, 7], by_teacher=True)])
        assert (session.asked, session.remaining) == (1, 4)


@pytest.mark.parametrize(
    ("counts", "asked"),
    [
        (["80", 10, 10, 0], "--classes 4"),
        ([None, None], "--classes 4"),
        ([], "--label-names ant,bee"),
        ([80, 10, 10, 0], "--mechanism open-vocabulary"),
        ([1, 0], "--groups two.csv --classes 2"),
    ],
)
def test_counts_that_are_none_cost_nothing(here, counts, asked):
    """A line that says counts is no list of what each teacher said, however it looks."""
    (here.folder / "asks.jsonl").write_text(json.dumps({"counts": counts}) + "\n")
    (here.folder / "two.csv").write_text("group,weight\na,1\nb,1\n")
    line = f"session --mechanism gnmax --sigma2 40 --teachers 100 --max-queries 9 {asked} --seed 5"
    if "open" in asked:
        line = line.replace("--mechanism gnmax --sigma2 40 ", "")
    if "groups" in asked:
        line = line.replace("--teachers 100", "--max-epsilon 9").replace("40", "4")
    ran = here(f"{line} --no-record", stdin=here.folder / "asks.jsonl", code=0)
    assert "error" in json.loads(ran.stdout)


def test_ids_of_an_array_are_whole_numbers_and_texts(tmp_path):
    given = {"teachers": 100, "classes": 4, "max_queries": 9, "record": tmp_path / "s.json"}
    with pate.Session(**given, **GNMAX) as session:
        for name in (*np.arange(2), *np.array(["q2"]), 0, "q2"):
            session.ask(inputs.COUNTS[0], id=name)
    with pate.Session(**given, **GNMAX) as again:
        assert again.asked == 3
        assert again.labels.to_arrow().column(0).to_pylist() == ["0", "1", "q2"]


def test_what_is_left_of_a_budget_never_grows(here):
    left = []
    for turn, delta in enumerate(("1e-7", "1e-6", "1e-5", "1e-4")):
        line = f"aggregate counts.npy --mechanism gnmax --sigma2 40 --delta {delta} --budget 4"
        line += " --max-queries 20 --spend s.json"
        here(f"{line} -o l{turn}.csv --report r{turn}.json", code=0)
        left.append(json.loads(here("spent s.json --budget 4").stdout)["budget_left"])
    assert left == sorted(left, reverse=True)


def test_a_record_follows_votes_that_a_pattern_names(here):
    for name in ("one", "two"):
        np.save(here.folder / f"{name}.npy", inputs.COUNTS)
    line = "aggregate {} --mechanism gnmax --sigma2 40 --layout counts -o {}.csv --report {}.json"
    here(line.format("one.npy", "a", "a"), code=0)
    for turn, pattern in enumerate(("on?.npy", f"{here.folder}/o*.npy", "t*.npy")):
        here(line.format(pattern, turn, turn), code=0)
        report = json.loads((here.folder / f"{turn}.json").read_text())
        assert len(report["spent"]["runs"]) == turn + 2
    ran = here(line.format("other*.npy", "b", "b"), other_0__npy=2 * inputs.COUNTS)
    assert "not tracked" in ran.stderr


@pytest.mark.parametrize("target", [0.03, 0.02])
def test_small_targets_are_reached_by_noise(here, target):
    np.save(here.folder / "v.npy", np.tile([900, 50, 50], (50, 1)))
    line = "aggregate v.npy --layout counts --max-queries 50 --no-record --dry-run"
    here(f"{line} --target-epsilon {target}", code=0)


HUGE = 10**400


@pytest.mark.parametrize("value", [True, HUGE, -HUGE, Fraction(81, 2)], ids=lambda it: f"{it!s:.9}")
@pytest.mark.parametrize("name", ["sigma2", "target_epsilon", "max_epsilon", "budget", "order"])
def test_what_is_no_number_is_refused_by_its_name(name, value):
    """True is none, nor is a whole number beyond all real ones; a fraction is made one by hand."""
    if name == "sigma2" and isinstance(value, Fraction):
        value = "40.5.1"
    with pytest.raises(pate.PateError, match=name):
        pate.quote(inputs.COUNTS, **{**GNMAX, name: value})


@pytest.mark.parametrize("name", ["max_queries", "teachers"])
def test_a_session_of_too_many_is_refused(name):
    given = {"teachers": 100, "classes": 4, "max_queries": 9, **TEST}
    with pytest.raises(pate.PateError, match=name):
        pate.Session(**{**given, name: HUGE})


# What people reported of other tools; behind each the public report.


def test_three_teachers_and_a_target(here):
    """tensorflow/privacy#170: three hospitals, a target, and no other flag."""
    said = np.arange(100) % 2
    votes = np.stack([said, said, np.where(np.arange(100) % 10 == 0, 1 - said, said)], axis=1)
    line = "aggregate v.npy --layout labels --teachers 3 --classes 2 --target-epsilon 5 --no-record"
    ran = here(f"{line} -o l.csv --report r.json", v__npy=votes)
    assert ran.exit_code in (0, 5, 8)
    assert "--sigma2" not in ran.stderr


def test_records_that_reached_all_teachers_cost_nothing(here):
    """vanderschaarlab/synthcity#275: every teacher saw every record, and the owner says so."""
    line = "aggregate v.npy --layout labels --teachers 50 --classes 2 --teachers-per-record 50 "
    line += "--target-epsilon 3 --spend s.json -o l.csv --report r.json"
    here(line, v__npy=np.zeros((40, 50), dtype=int), code=5)
    assert not (here.folder / "s.json").exists()


@pytest.mark.parametrize(("agreeing", "epsilon"), [(0, 11.756462732), (50, 7.867987173)])
def test_the_cost_by_the_paper_is_that_of_an_independent_computation(agreeing, epsilon):
    """OpenMined/PySyft#1960; and votes that are known cost no more than the worst."""
    votes = (np.random.default_rng(0).random((100, 100)) * 10).astype(int)
    votes[:, :agreeing] = 0
    about = {"layout": "labels-by-teacher", "teachers": 100, "classes": 10, "laplace_scale": 10}
    about |= {"mechanism": "lnmax", "orders": "moments"}
    assert pate.cost(votes, **about, analysis="paper").epsilon == pytest.approx(epsilon, rel=1e-9)
    found = pate.cost(votes, **about, analysis="tight").to_dict()
    assert found["epsilon"] <= found["data_independent"]["epsilon"]


def test_probabilities_with_a_class_less_name_the_teacher():
    """scikit-learn/scikit-learn#9593: a class that a teacher never saw."""
    votes = [np.full((4, 2), 0.5), np.full((4, 3), 0.3), np.full((4, 3), 0.3)]
    with pytest.raises(pate.PateError, match="teacher 0"):
        pate.quote(votes, "gnmax", sigma2=2, layout="scores-by-teacher", teachers=3)


# scikit-learn/scikit-learn#8451: classes that are -1 and 1. pytorch/tutorials#1708: a file without
# names of columns. pandas-dev/pandas#21228: a word where the others gave numbers.
TEXTS = {
    "a,b,c\n-1,-1,1\n1,1,1\n-1,-1,-1\n1,1,-1\n": (
        *("v.csv: row 0", "store 0 and 1", "a missing vote, give --teachers"),
    ),
    "0,1,2\n1,1,1\n1,1,1\n0,0,0\n": ("first line",),
    "t0,t1,t2\n0,0,0\n1,1,1\n1,unsure,1\n0,0,1\n": ("row 2", "'t1'"),
}


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_that_may_be_meant_otherwise_is_refused(text, here):
    ran = here(
        "aggregate v.csv --layout labels --classes 2 --dry-run --no-record", v__csv=text, code=3
    )
    assert [part for part in TEXTS[text] if part not in ran.stderr] == []
