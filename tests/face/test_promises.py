"""What a report promises, seen from a shell: an honest one verifies, and no other does unsaid."""

from __future__ import annotations

import json

import pandas as pd
import pytest

from face import inputs, meaning
from forgeries.forge import consistent

RUN = "aggregate counts.npy --mechanism gnmax --sigma2 40"
VERIFY = "verify --without-dp-accounting"


def read(here, name):
    """A report as its file has it."""
    return json.loads((here.folder / name).read_text())


def write(here, name, report):
    """The file of a report that somebody changed."""
    (here.folder / name).write_text(json.dumps(report))


def test_an_honest_report_verifies(here):
    line = "aggregate counts.npy --mechanism gnmax --sigma2 12 --max-queries 40 --no-record "
    line += "--target-epsilon 2.6 --bound two-tail -o l.csv --report r.json --force"
    for _ in range(20):  # a coin that comes out against the labels once in ten times or so
        if here(line).code == 0:
            break
    ran = here("verify r.json l.csv --without-dp-accounting")
    assert ran.code == 0
    assert "the random draw of the release test" in ran.stdout.decode()
    assert here("verify r.json l.csv --strict --without-dp-accounting").code == 11


def test_all_that_can_be_checked_is_checked_where_all_is_given(here):
    """Labels that carry their settings, and the record: then nothing is left even with --strict."""
    assert here(f"{RUN} --max-queries 20 --spend s.json -o l.parquet --report r.json").code == 0
    assert here(f"{VERIFY} r.json l.parquet --spend s.json --strict").code == 0


def test_the_headline_is_the_epsilon_of_the_report(here):
    _two_runs(here)
    report, ran = read(here, "r1.json"), here(f"{VERIFY} r1.json l1.csv --table")
    headline = next(
        line for line in ran.stdout.decode().splitlines() if line.startswith("verdict: ")
    )
    assert headline == f"verdict: holds: epsilon {report['epsilon']:.4f} at delta 1e-05"


def test_noise_that_was_never_drawn_is_found_or_said_not_to_be_checked(here):
    """A report of a hundred times the noise, priced anew, beside labels that had less of it."""
    for kind in ("csv", "parquet"):
        assert here(f"{RUN} --no-record -o l.{kind} --report r.json --force").code == 0
        other = RUN.replace("40", "4000")
        assert here(f"{other} --no-record -o other.{kind} --report f.json --force").code == 0
        forged = read(here, "f.json") | {"labels": read(here, "r.json")["labels"]}
        assert forged["epsilon"] < 0.1 * read(here, "r.json")["epsilon"]
        write(here, "f.json", forged)
        ran = here(f"{VERIFY} f.json l.{kind}")
        assert (ran.code, kind) in ((0, "csv"), (10, "parquet"))
        assert kind == "parquet" or "settings that the labels carry" in ran.stdout.decode()


def test_names_of_classes_that_were_turned_are_said_not_to_be_checked(here):
    names = "--label-names ant,bee,cow,dog"
    assert here(f"{RUN} {names} --no-record -o l.npy --report r.json").code == 0
    write(here, "f.json", read(here, "r.json") | {"label_names": ["bee", "ant", "cow", "dog"]})
    ran = here(f"{VERIFY} f.json l.npy --table")
    assert ran.code == 0
    assert (
        "not checked: settings that the labels carry: npy stores no settings and no"
        in ran.stdout.decode()
    )


def _two_runs(here):
    for turn, rows in enumerate((20, 30)):
        line = f"{RUN} --max-queries {rows} --spend s.json -o l{turn}.csv --report r{turn}.json"
        assert here(line).code == 0
    return json.loads((here.folder / "r1.json").read_text())


def test_an_earlier_run_that_was_changed_is_found(here):
    report = _two_runs(here)
    assert report["spent"]["runs"][0]["answers"] == 20  # of gnmax, which answers every query
    report["spent"]["runs"][0]["answers"] = 3
    (here.folder / "f.json").write_text(json.dumps(report))
    assert here("verify f.json l1.csv --without-dp-accounting").code != 0


def test_runs_that_were_cut_away_are_found_by_the_record(here):
    _two_runs(here)
    report = read(here, "r1.json")
    report["spent"]["runs"] = report["spent"]["runs"][1:]
    write(here, "f.json", report)
    assert here(f"{VERIFY} f.json l1.csv").code == 10
    assert here(f"{VERIFY} r1.json l1.csv --spend s.json").code == 0
    ran = here(f"{VERIFY} r0.json l0.csv --spend s.json")
    assert ran.code == 0  # the second run came later


def test_runs_are_not_cut_away_by_a_report_that_names_no_run_of_its_own(here):
    """It may state any time: runs before those that it tells of are missed all the same."""
    report = _two_runs(here) | {"time": "2001-01-01T00:00:00Z"}
    for own in ("run", "labels"):
        del report[own]
    report["spent"]["runs"] = report["spent"]["runs"][1:]
    write(here, "f.json", consistent(report))
    assert here(f"{VERIFY} f.json").code == 0
    ran = here(f"{VERIFY} f.json --spend s.json --table")
    assert ran.code == 10
    assert "the report leaves out run" in ran.stdout.decode()


@pytest.mark.parametrize("other", [{"answers": 1}, {"answers": None, "outcome": "pending"}])
def test_answers_of_an_earlier_session_are_those_of_the_record(here, other):
    """They are compared as long as nothing more was asked, and bounded by what was asked since."""
    line = "session --teachers 100 --classes 4 --max-queries 9 --spend s.json"
    line += " --mechanism confident --threshold 1 --sigma1 20 --sigma2 10 --max-epsilon 99"
    asks = [json.dumps({"id": name, "counts": [100, 0, 0, 0]}) + "\n" for name in "abcdef"]

    def ask(some):
        (here.folder / "some.jsonl").write_text("".join(some))
        assert here(line, stdin=here.folder / "some.jsonl").code == 0

    ask(asks[:3])
    assert here(f"{RUN} --spend s.json -o l.csv --report r.json").code == 0
    report = read(here, "r.json")
    session = report["spent"]["runs"][0]
    assert session["answers"] == 3  # so far from the threshold that chance has no say
    session |= other
    if session["answers"] is None:
        del session["answers"]
    write(here, "f.json", report)
    assert here(f"{VERIFY} r.json l.csv --spend s.json").code == 0
    assert here(f"{VERIFY} f.json l.csv --spend s.json").code == 10
    ask(asks[3:5])
    assert here(f"{VERIFY} r.json l.csv --spend s.json").code == 0
    assert here(f"{VERIFY} f.json l.csv --spend s.json").code == 10


def test_a_record_that_is_not_there_is_no_fault_of_the_report(here):
    """A name that was misspelt says nothing of a report; the votes tell where their record lies."""
    assert here(f"{RUN} -o l.csv --report r.json").code == 0
    ran = here(f"{VERIFY} r.json l.csv --spend counts.spent.json")
    assert (ran.code, ran.stdout) == (3, b"")
    assert "counts.spent.json: there is no such record" in ran.stderr
    for record in ("counts.npy.spent.json", "counts.npy"):
        assert here(f"{VERIFY} r.json l.csv --spend {record}").code == 0


def test_release_refuses_a_report_that_does_not_verify(here):
    line = "aggregate counts.npy --mechanism gnmax --sigma2 40 --no-record"
    assert here(f"{line} -o l.csv --report r.json").code == 0
    report = json.loads((here.folder / "r.json").read_text())
    (here.folder / "f.json").write_text(json.dumps(report | {"epsilon": 0.01}))
    assert here("release f.json --no-record --report x.json").code != 0
    taken = here("release f.json --no-record --unverified --report x.json")
    assert taken.code == 0
    assert taken.stderr.count("Nothing is promised") == 1
    assert read(here, "x.json")["unsettled"] == ["inputs"]
    assert here(f"{VERIFY} x.json").code == 10
    assert here("release x.json --no-record --report y.json").code != 0


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow"])
def test_the_column_of_ids_keeps_its_name(here, kind):
    """Labels join back to the table of votes by the column that names the queries there."""
    line = "aggregate renamed.csv --id-column name --mechanism gnmax --sigma2 40 --no-record"
    assert here(f"{line} -o l.{kind} --report r.json").code == 0
    assert [*next(meaning.rows_of(here.folder / f"l.{kind}"))] == ["name", "label", "source"]
    assert here(f"{VERIFY} r.json l.{kind}").code == 0


def test_the_report_lies_beside_the_labels(here):
    """Where nobody reads standard output the labels still come with what they cost."""
    ran = here(f"{RUN} --no-record -o labels.csv")
    assert ran.code == 0
    assert (here.folder / "labels.report.json").read_bytes() == ran.stdout
    assert here(f"{VERIFY} labels.report.json labels.csv").code == 0


@pytest.mark.parametrize("target", ["", "--target-epsilon 3"])
def test_rows_that_were_not_asked_are_told_of(here, target):
    """Nobody takes the labels of the first rows for those of all, whoever chose how many."""
    line = f"{RUN} --max-queries 10 {target} --no-record -o l.csv --report r.json"
    assert "asked the first 10 queries; the 50 after them were not asked" in here(line).stderr
    assert "asked the first" not in here(f"{RUN} --no-record -o all.csv").stderr


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "arrow", "npy"])
@pytest.mark.parametrize("votes", ["counts.npy", "counts.csv", "long.parquet"])
def test_labels_have_a_row_for_every_row_of_votes(here, votes, kind):
    """Labels stand beside the queries they belong to, also of a run that asks the first of them."""
    asked = f"aggregate {votes} --mechanism gnmax --sigma2 40 --no-record --seed 5"
    assert here(f"{asked} --max-queries 10 -o first.{kind} --report r.json").code == 0
    assert here(f"{asked} -o all.{kind} --report all.json").code == 0
    files = (here.folder / f"{name}.{kind}" for name in ("first", "all"))
    first, whole = ([meaning.alike(row) for row in meaning.rows_of(file)] for file in files)
    assert len(first) == len(whole) == inputs.QUERIES
    assert first[:10] == whole[:10]
    for row, full in zip(first[10:], whole[10:], strict=True):
        assert row == (-1 if kind == "npy" else {**full, "label": None, "source": "not asked"})
    found = json.loads(here(f"{VERIFY} r.json first.{kind}").stdout)["checks"]
    counted = next(check for check in found if check["name"] == "rows and answers of the labels")
    assert counted["outcome"] == "ok"
    assert counted["detail"].startswith("10 of 60 rows asked")


@pytest.mark.parametrize("name", ["label", "source"])
@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_column_of_ids_called_as_another_column_costs_nothing(here, name, kind):
    """Labels could not be saved under that name, and a run that is entered is paid for."""
    votes = pd.DataFrame(inputs.COUNTS, columns=[f"class_{j}" for j in range(inputs.CLASSES)])
    votes.insert(0, name, inputs.IDS)
    votes.to_csv(here.folder / "v.csv", index=False)
    line = f"aggregate v.csv --id-column {name} --mechanism gnmax --sigma2 40 --spend s.json"
    ran = here(f"{line} -o l.{kind}")
    assert ran.code == 2
    assert f"called '{name}', as another column" in ran.stderr
    assert [path.name for path in here.folder.glob("[!.]*")] == ["v.csv"]


def test_two_names_that_saved_labels_would_not_tell_apart_cost_nothing(here):
    """The names of classes are texts, each once; the number 7 and the text 7 are one id."""
    ran = here(f"{RUN} --label-names 1,2,3,1 --spend s.json -o l.csv")
    assert ran.code == 2
    assert "'1' occurs twice" in ran.stderr
    assert not (here.folder / "s.json").exists()
    asks = [{"id": name, "counts": [40, 30, 20, 10]} for name in (7, "7", 7)]
    (here.folder / "two.jsonl").write_text("".join(json.dumps(ask) + "\n" for ask in asks))
    line = "session --teachers 100 --classes 4 --mechanism gnmax --sigma2 40 --max-queries 9"
    ran = here(f"{line} --spend s.json", stdin=here.folder / "two.jsonl")
    assert ran.code == 0
    first, other, again = map(json.loads, ran.stdout.splitlines())
    assert first == again
    assert (first["remaining"], other["id"]) == (8, "7")
    assert "looks the same in saved labels as 7" in other["error"]
