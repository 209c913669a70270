"""Several labels a query on the command line: one run, whatever form its labels take."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import jsonschema
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pate_cli as library
from pate_cli.disclosure.report import report_schema
from pate_cli.run import fold
from slices import some

QUERIES, TEACHERS, LABELS = 40, 25, 3
NAMES = "mild,severe,new"
TOLD = ("--layout", "multilabel", "--label-names", NAMES)


@pytest.fixture
def ballots():
    random = np.random.default_rng(12)
    chances = random.choice([0.05, 0.9], size=(QUERIES, 1, LABELS))
    return (random.random((QUERIES, TEACHERS, LABELS)) < chances).astype(np.uint8)


@pytest.fixture
def votes(ballots, tmp_path):
    np.save(tmp_path / "ballots.npy", ballots)
    return tmp_path / "ballots.npy"


@pytest.fixture
def run(pate):
    def aggregate(votes, *flags, told=TOLD, report="r.json"):
        line = ["aggregate", votes, "--seed", 5, "--report", report, "--force", "--workers", 1]
        done = pate(*line, *told, *flags)
        assert done.exit_code == 0, done.stderr
        public = json.loads(Path(report).read_text())
        jsonschema.validate(public, report_schema())
        return public, done.stderr

    return aggregate


def test_a_run_and_what_is_said_of_it(votes, run, ballots):
    public, said = run(votes, "-o", "l.npy")
    assert f"answered {public['answers']} of 120 pairs of query and label, labels in l.npy" in said
    assert (public["queries"], public["rounds"][0]["label_set"]["labels_per_query"]) == (120, 3)
    assert public["rounds"][0]["label_set"]["label_names"] == NAMES.split(",")
    assert (
        "on every query and each of its labels it may answer otherwise, or not at all"
        in public["adjacency"]
    )
    labels = np.load("l.npy")
    plurality = ballots.mean(axis=1) > 0.5
    answered = labels >= 0
    assert answered.sum() == public["answers"] > 60
    assert (labels == plurality)[answered].mean() > 0.95
    # As many rows of two classes cost the same, and have the same labels.
    counts = np.stack([TEACHERS - ballots.sum(axis=1), ballots.sum(axis=1)], axis=2)
    np.save("pairs.npy", counts.reshape(-1, 2))
    plain, _ = run("pairs.npy", "-o", "p.npy", told=("--layout", "counts"))
    assert plain["epsilon"] == public["epsilon"]
    np.testing.assert_array_equal(np.load("p.npy"), labels.ravel())


@pytest.mark.parametrize("kind", some(["parquet", "csv", "npy", "arrow"], 2))
def test_layouts_leave_no_trace(votes, run, ballots, monkeypatch, kind):
    monkeypatch.setattr(fold, "_ENTRIES", 300)
    flags = ("--format", kind, "--threshold", 18, "--sigma1", 2, "--sigma2", 2)
    run(votes, "-o", f"one.{kind}", *flags, "--max-answers", 31)
    np.save("by-teacher.npy", ballots.transpose(1, 0, 2))
    turned = ("--layout", "multilabel-by-teacher", "--label-names", NAMES, "--teachers", 25)
    run("by-teacher.npy", "-o", f"turned.{kind}", *flags, "--max-answers", 31, told=turned)
    table = dict(zip(NAMES.split(","), ballots.sum(axis=1).T, strict=True))
    pq.write_table(pa.table(table), "counts.parquet")
    yes = ("--layout", "multilabel-counts", "--teachers", 25)
    run("counts.parquet", "-o", f"yes.{kind}", *flags, "--max-answers", 31, told=yes)
    expected = Path(f"one.{kind}").read_bytes()
    assert Path(f"turned.{kind}").read_bytes() == expected
    assert Path(f"yes.{kind}").read_bytes() == expected


def test_a_run_that_is_cut_short_goes_on_with_the_same_labels(votes, run, pate, monkeypatch):
    monkeypatch.setattr(fold, "_ENTRIES", 300)
    line = ["aggregate", votes, *TOLD, "--seed", 5, "-o", "l.csv", "--report", "r.json"]
    with monkeypatch.context() as broken:
        broken.setattr("pate_cli.run.publication.Publication.publish", lambda *_: 1 / 0)
        done = pate(*line, "--workers", 1, "--checkpoint", "kept")
    assert done.exit_code == 1
    assert not Path("l.csv").exists()
    assert Path("kept").exists()
    run(votes, "-o", "l.csv", "--checkpoint", "kept")
    run(votes, "-o", "one.csv")
    assert Path("l.csv").read_text() == Path("one.csv").read_text()


def test_limits_count_queries_and_a_target_asks_whole_ones(votes, run):
    public, _ = run(votes, "-o", "l.jsonl", "--max-queries", 7)
    assert public["queries"] == 21
    rows = [json.loads(line) for line in Path("l.jsonl").read_text().splitlines()]
    assert [row["query_id"] for row in rows] == list(range(40))
    assert all(row["labels"] == [] and len(row["unanswered"]) == LABELS for row in rows[7:])
    run(votes, "-o", "p.csv", "--max-queries", 7)
    pairs = list(csv.DictReader(Path("p.csv").read_text().splitlines()))
    assert [row["source"] == "not asked" for row in pairs] == [False] * 21 + [True] * 99
    public, _ = run(votes, "-o", "t.jsonl", "--target-epsilon", 3)
    assert 0 < public["queries"] < 120
    assert public["queries"] % LABELS == 0


def test_a_refusal_tells_of_the_labels_too(votes, pate):
    for seed in range(40):
        line = ["aggregate", votes, *TOLD, "--seed", seed, "-o", "l.jsonl", "--report", "r.json"]
        tested = ("--target-epsilon", 1.5, "--min-pass", 0, "--sigma1", 4, "--sigma2", 2)
        done = pate(*line, *tested, "--max-queries", 40, "--force")
        if done.exit_code == 8:
            break
    else:
        pytest.fail("no attempt was refused")
    public = json.loads(Path("r.json").read_text())
    jsonschema.validate(public, report_schema())
    assert public["rounds"][0]["label_set"]["labels_per_query"] == 3


def test_rounds_add_up_whatever_their_labels(votes, run, pate, ballots):
    run(votes, "-o", "a.npy", "--release", "upper", "--order", 4, "--ledger", "a.ledger")
    two = ("--layout", "multilabel", "--teachers", TEACHERS)
    np.save("two.npy", ballots[:, :, :2])
    last = ("-o", "b.npy", "--release", "upper", "--order", 4, "--ledger", "b.ledger")
    run("two.npy", *last, told=two)
    one = library.Ledger.read("a.ledger")
    assert one.rounds[0].label_set == library.Ledger.from_json(one.to_json()).rounds[0].label_set
    done = pate("release", "a.ledger", "b.ledger", "--again", "--seed", 1)
    assert done.exit_code == 0, done.stderr
    public = json.loads(done.stdout)
    jsonschema.validate(public, report_schema())
    assert sorted(each["label_set"]["labels_per_query"] for each in public["rounds"]) == [2, 3]
    assert "The queries, the labels and the number of teachers are public" in (public["adjacency"])


@pytest.mark.parametrize(
    ("flags", "code", "text"),
    [
        (
            ("-o", "l.npy", "--classes", 8),
            2,
            "--classes 8: each label has two, yes and no",
        ),
    ],
)
def test_what_is_refused(votes, pate, refused, flags, code, text):
    assert text in refused(pate("aggregate", votes, *TOLD, *flags), code)


@pytest.fixture
def student(tmp_path, ballots):
    """P(yes), sure of every label but the first."""
    values = np.where(ballots.mean(axis=1) > 0.5, 0.97, 0.03)
    values[:, 0] = 0.5
    pq.write_table(
        pa.table(dict(zip(NAMES.split(","), values.T, strict=True))), tmp_path / "s.parquet"
    )
    return tmp_path / "s.parquet"


def test_a_student_predicts_every_label(votes, run, student, ballots):
    flags = ("--mechanism", "interactive", "--student", student, "--threshold", 8, "--sigma1", 1)
    public, _ = run(votes, *flags, "--sigma2", 2, "-o", "l.csv")
    rows = [line.split(",") for line in Path("l.csv").read_text().splitlines()[1:]]
    yes = (ballots.mean(axis=1) > 0.5).ravel()
    assert {row[3] for row in rows if row[1] != "mild"} <= {"student", "teachers"}
    assert {row[3] for row in rows if row[1] == "mild"} <= {"teachers", "none"}
    right = [row[2] == str(said).lower() for row, said in zip(rows, yes, strict=True) if row[2]]
    assert np.mean(right) > 0.95
    assert len(right) > 100
    assert public["queries"] == 120


def test_predictions_go_by_the_names_of_labels(votes, run, student):
    """The same columns in another order are the same student."""
    flags = ("--mechanism", "interactive", "--threshold", 8, "--sigma1", 1, "--sigma2", 2)
    run(votes, *flags, "--student", student, "-o", "l.csv")
    table = pq.read_table(student)
    pq.write_table(table.select(table.column_names[::-1]), "turned.parquet")
    run(votes, *flags, "--student", "turned.parquet", "-o", "t.csv")
    assert Path("t.csv").read_text() == Path("l.csv").read_text()


def test_a_student_of_other_labels_is_refused(votes, pate, refused, student, tmp_path):
    """Before anything is drawn, by its file and its row."""
    line = ("aggregate", votes, "--layout", "multilabel", "-o", "l.csv", "--mechanism")
    line += ("interactive", "--max-epsilon", 1000, "--student")
    text = refused(pate(*line, student, "--label-names", "severe,mild,old"), 3)
    assert "its columns are not called severe, mild, old" in text
    for values, text in (
        (np.full((40, 2), 0.5), "must be [queries, 3 labels], as the votes are"),
        (np.full((40, 3), 1.5), "row 0 has no probabilities of yes, each from 0 to 1"),
        (np.full((30, 3), 0.5), "ends at row 29, the votes go on to row 39"),
    ):
        np.save(tmp_path / "s.npy", values)
        assert text in refused(pate(*line, tmp_path / "s.npy"), 3)


def test_tuning_asks_whole_queries_of_the_next_run(votes, pate):
    search = ("--threshold", 15, "--sigma1", 10, "--sigma2", 8, "--target-epsilon", 6)
    done = pate("tune", votes, *TOLD, *search, "--json")
    assert done.exit_code == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["basis"]["queries"] == 120
    assert found["basis"]["rows_per_query"] == 3
    queries = found["winner"]["queries"] // 3
    words = found["command"].split()
    assert words[words.index("--max-queries") + 1] == str(queries)
    assert words[words.index("--layout") + 1] == "multilabel"
    again = pate(*words[1:], "-o", "l.npy", "--report", "r.json")
    assert again.exit_code in (0, 8), again.stderr
    assert json.loads(Path("r.json").read_text())["queries"] == 3 * queries
