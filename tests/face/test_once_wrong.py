"""What was wrong at the face once, and stays mended."""

from __future__ import annotations

import json
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import pate_cli as pate
from face import inputs, meaning

GNMAX = {"mechanism": "gnmax", "sigma2": 40.0}
TEST = {**GNMAX, "record": False, "seed": 5}
LITTLE = {"mechanism": "gnmax", "sigma2": "0.001 votes", "record": False, "seed": 5}
RUN = "aggregate counts.npy --mechanism gnmax --sigma2 40"
FRAME = pd.DataFrame(inputs.COUNTS, columns=[f"class_{j}" for j in range(inputs.CLASSES)])


def ids_of(done):
    """The query ids of the labels, as texts."""
    return [str(name) for name in done.labels.to_arrow().column(0).to_pylist()]


# In memory as in a file.


def test_a_slice_of_a_frame_keeps_its_ids():
    done = pate.aggregate(FRAME.iloc[10:30], layout="counts", **TEST)
    assert ids_of(done) == [str(row) for row in range(10, 30)]


def test_the_column_of_ids_may_be_an_index():
    frame = FRAME.set_index(pd.RangeIndex(100, 160, name="case"))
    done = pate.aggregate(frame, layout="counts", id_column="case", **TEST)
    assert ids_of(done) == [str(row) for row in range(100, 160)]


def test_an_index_of_another_name_is_heard_or_refused():
    frame = FRAME.set_index(pd.Index(inputs.IDS, name="case"))
    try:
        found = ids_of(pate.aggregate(frame, layout="counts", **TEST))
    except pate.PateError as error:
        found = inputs.IDS if "case" in str(error) else []
    assert found == inputs.IDS


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


def test_a_frame_keeps_its_index_in_the_labels():
    frame = FRAME.set_index(pd.Index([3 * row for row in range(inputs.QUERIES)]))
    found = pate.aggregate(frame, layout="counts", **TEST).labels.to_pandas()
    assert [int(name) for name in found.index] == frame.index.tolist()


# Votes that match no name.

STRANGE = [["vogel", "fisch", "katze", "hund"]] * 30


def test_a_run_stops_before_it_spends_where_most_votes_match_nothing(here):
    rows = [["ant", *row] for row in STRANGE]
    text = "".join(json.dumps({"votes": row}) + "\n" for row in rows)
    (here.folder / "v.jsonl").write_text(text)
    line = "aggregate v.jsonl --layout labels --label-names ant,bee --mechanism gnmax --sigma2 20"
    ran = here(f"{line} --max-epsilon 99 --spend s.json -o l.csv --report r.json")
    assert ran.code != 0
    assert not (here.folder / "s.json").exists()


def test_a_call_stops_before_it_spends_where_most_votes_match_nothing(tmp_path):
    words = np.array([["ant", *row] for row in STRANGE])
    asked = {"layout": "labels", "label_names": ["ant", "bee"], "max_epsilon": 99.0}
    with pytest.raises(pate.PateError):
        pate.aggregate(words, "gnmax", sigma2=20.0, record=tmp_path / "s.json", **asked)
    assert not (tmp_path / "s.json").exists()


# Sessions.

SESSION = "session --teachers 100 --classes 4 --mechanism gnmax --sigma2 40 --max-queries 9"


def test_a_word_outside_the_names_is_a_vote_for_nobody():
    given = {"teachers": 3, "label_names": ["ant", "bee"], "max_queries": 5, **TEST}
    with pate.Session(**given) as session:
        session.ask(["wasp", "wasp", "wasp"])
        assert (session.asked, session.remaining) == (1, 4)


def test_a_number_outside_the_classes_is_a_vote_for_nobody():
    with pate.Session(teachers=3, classes=2, max_queries=5, **TEST) as session:
        session.ask_all([pate.Ask([0, 1, 7], by_teacher=True)])
        assert (session.asked, session.remaining) == (1, 4)


def test_a_bad_line_is_answered_and_the_session_goes_on(here):
    asks = [json.dumps({"id": name, "counts": [80, 10, 10, 0]}) for name in ("a", "b")]
    (here.folder / "asks.jsonl").write_text("\n".join([asks[0], "{bad", asks[1], ""]))
    ran = here(f"{SESSION} --no-record --seed 5", stdin=here.folder / "asks.jsonl")
    assert ran.code == 0
    answered = [json.loads(line) for line in ran.stdout.splitlines()]
    assert [each.get("id") for each in answered] == ["a", None, "b"]


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
    ran = here(f"{line} --no-record", stdin=here.folder / "asks.jsonl")
    assert ran.code == 0
    assert "error" in json.loads(ran.stdout)


def test_ids_of_an_array_are_whole_numbers_and_texts(tmp_path):
    given = {"teachers": 100, "classes": 4, "max_queries": 9, "record": tmp_path / "s.json"}
    with pate.Session(**given, **GNMAX) as session:
        for name in (*np.arange(2), *np.array(["q2"]), 0, "q2"):
            session.ask(inputs.COUNTS[0], id=name)
    with pate.Session(**given, **GNMAX) as again:
        assert again.asked == 3
        assert again.labels.to_arrow().column(0).to_pylist() == ["0", "1", "q2"]


def test_a_session_takes_its_target_by_the_name_that_runs_have():
    with pate.Session(teachers=100, classes=4, target_epsilon=2.0, **TEST) as session:
        assert session.rule.epsilon <= 2.0


def test_a_session_does_not_go_on_in_a_record_that_was_cut_short(tmp_path):
    record = tmp_path / "s.json"
    with pate.Session(teachers=100, classes=4, max_queries=9, record=record, **GNMAX) as session:
        session.ask(inputs.COUNTS[0])
        for path in tmp_path.iterdir():
            path.write_bytes(b"")
        with pytest.raises(pate.PateError):
            session.ask(inputs.COUNTS[1])


# Records and budgets.


def test_what_is_left_of_a_budget_never_grows(here):
    left = []
    for turn, delta in enumerate(("1e-7", "1e-6", "1e-5", "1e-4")):
        line = f"{RUN} --max-queries 20 --delta {delta} --spend s.json --budget 4"
        assert here(f"{line} -o l{turn}.csv --report r{turn}.json").code == 0
        left.append(json.loads(here("spent s.json --budget 4").stdout)["budget_left"])
    assert left == sorted(left, reverse=True)


def test_a_record_follows_votes_that_were_moved(here):
    assert here(f"{RUN} -o a.csv --report a.json").code == 0
    (here.folder / "counts.npy").rename(here.folder / "other.npy")
    line = "aggregate other.npy --mechanism gnmax --sigma2 40 -o b.csv --report b.json"
    assert here(line).code == 0
    report = json.loads((here.folder / "b.json").read_text())
    assert len(meaning.numbers("report", report)["epsilons of the runs"]) == 2


def test_a_record_follows_votes_that_a_pattern_names(here):
    for name in ("one", "two"):
        np.save(here.folder / f"{name}.npy", inputs.COUNTS)
    line = "aggregate {} --mechanism gnmax --sigma2 40 --layout counts -o {}.csv --report {}.json"
    assert here(line.format("one.npy", "a", "a")).code == 0
    for turn, pattern in enumerate(("on?.npy", f"{here.folder}/o*.npy", "t*.npy")):
        assert here(line.format(pattern, turn, turn)).code == 0
        report = json.loads((here.folder / f"{turn}.json").read_text())
        assert len(report["spent"]["runs"]) == turn + 2
    assert (
        "not tracked"
        in here(line.format("other*.npy", "b", "b"), other_0__npy=2 * inputs.COUNTS).stderr
    )


def test_a_record_that_is_gone_is_missed(here):
    assert here(f"{RUN} -o a.csv --report a.json").code == 0
    (here.folder / "counts.npy.spent.json").unlink()
    ran = here(f"{RUN} -o b.csv --report b.json")
    assert ran.code != 0
    assert "record" in ran.stderr


# What is published, and how it is checked.


def test_no_output_replaces_votes(here):
    assert here(f"{RUN} --no-record -o l.csv --report r.json").code == 0
    before = (here.folder / "counts.npy").read_bytes()
    here("explain r.json --html counts.npy --force")
    assert (here.folder / "counts.npy").read_bytes() == before


def test_labels_make_way_also_where_the_column_of_ids_breaks_the_line(here):
    FRAME.assign(**{"a\nb": inputs.IDS}).to_parquet(here.folder / "v.parquet")
    line = "aggregate v.parquet --mechanism gnmax --sigma2 40 --no-record -o l.csv --force"
    for _ in range(2):
        assert here([*line.split(), "--id-column", "a\nb"]).code == 0


# Targets and plans.


@pytest.mark.parametrize("target", [0.03, 0.02])
def test_small_targets_are_reached_by_noise(here, target):
    np.save(here.folder / "v.npy", np.tile([900, 50, 50], (50, 1)))
    line = "aggregate v.npy --layout counts --max-queries 50 --no-record --dry-run"
    assert here(f"{line} --target-epsilon {target}").code == 0


def test_a_line_that_plan_prints_runs(here):
    planned = here("plan --teachers 3 --classes 2 --queries 100 --target-epsilon 5 --json")
    assert planned.code == 0
    np.save(here.folder / "v.npy", np.tile([2, 1], (100, 1)))
    command = json.loads(planned.stdout)["command"].replace("VOTES", "v.npy")
    line = f"{command.removeprefix('pate ')} --layout counts --no-record --dry-run"
    assert here(line).code == 0


# The face itself.


def test_epsilon_is_answered_by_target_epsilon():
    with pytest.raises(pate.PateError, match="target_epsilon"):
        pate.aggregate(inputs.COUNTS, "gnmax", sigma2=40.0, epsilon=1.0, record=False)


def test_the_version_has_a_letter(here):
    assert here("-V").code == 0


def test_the_help_of_a_run_is_read_at_a_glance(here):
    assert len(here("aggregate --help").stdout.splitlines()) <= 70


def test_false_is_no_name_of_a_record(here):
    ran = here(f"{RUN} --spend False -o l.csv --report r.json")
    assert ran.code == 2
    assert not (here.folder / "False").exists()


def test_there_are_no_more_than_a_million_teachers():
    with pytest.raises(pate.PateError):
        pate.quote(inputs.SAID, **GNMAX, layout="labels", classes=4, teachers=2_000_000)
    with pytest.raises(pate.PateError):
        pate.Session(teachers=2_000_000, classes=4, max_queries=9, **TEST)


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
