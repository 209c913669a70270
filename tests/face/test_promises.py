"""What a report promises, seen from a shell: an honest one verifies, and no other does unsaid."""

import json

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


def test_all_that_can_be_checked_is_checked_where_all_is_given(here):
    """Labels that carry their settings, and the record: then nothing is left even with --strict."""
    here(f"{RUN} --max-queries 20 --spend s.json -o l.parquet --report r.json", code=0)
    here(f"{VERIFY} r.json l.parquet --spend s.json --strict", code=0)


def _two_runs(here):
    for turn, rows in enumerate((20, 30)):
        line = f"{RUN} --max-queries {rows} --spend s.json -o l{turn}.csv --report r{turn}.json"
        here(line, code=0)
    return json.loads((here.folder / "r1.json").read_text())


def test_runs_are_not_cut_away_by_a_report_that_names_no_run_of_its_own(here):
    """It may state any time: runs before those that it tells of are missed all the same."""
    report = _two_runs(here) | {"time": "2001-01-01T00:00:00Z"}
    for own in ("run", "labels"):
        del report[own]
    report["spent"]["runs"] = report["spent"]["runs"][1:]
    write(here, "f.json", consistent(report))
    here(f"{VERIFY} f.json", code=0)
    ran = here(f"{VERIFY} f.json --spend s.json --table", code=10)
    assert "the report leaves out run" in ran.stdout


@pytest.mark.parametrize("other", [{"answers": 1}, {"answers": None, "outcome": "pending"}])
def test_answers_of_an_earlier_session_are_those_of_the_record(here, other):
    """They are compared as long as nothing more was asked, and bounded by what was asked since."""
    line = "session --teachers 100 --classes 4 --max-queries 9 --spend s.json"
    line += " --mechanism confident --threshold 1 --sigma1 20 --sigma2 10 --max-epsilon 99"
    asks = [json.dumps({"id": name, "counts": [100, 0, 0, 0]}) + "\n" for name in "abcdef"]

    def ask(some):
        (here.folder / "some.jsonl").write_text("".join(some))
        here(line, stdin=here.folder / "some.jsonl", code=0)

    ask(asks[:3])
    here(f"{RUN} --spend s.json -o l.csv --report r.json", code=0)
    report = read(here, "r.json")
    session = report["spent"]["runs"][0]
    assert session["answers"] == 3  # so far from the threshold that chance has no say
    session |= other
    if session["answers"] is None:
        del session["answers"]
    write(here, "f.json", report)
    here(f"{VERIFY} r.json l.csv --spend s.json", code=0)
    here(f"{VERIFY} f.json l.csv --spend s.json", code=10)
    ask(asks[3:5])
    here(f"{VERIFY} r.json l.csv --spend s.json", code=0)
    here(f"{VERIFY} f.json l.csv --spend s.json", code=10)


def test_a_record_that_is_not_there_is_no_fault_of_the_report(here):
    """A name that was misspelt says nothing of a report; the votes tell where their record lies."""
    here(f"{RUN} -o l.csv --report r.json", code=0)
    ran = here(f"{VERIFY} r.json l.csv --spend counts.spent.json", code=3)
    assert ran.stdout == ""
    assert "counts.spent.json: there is no such record" in ran.stderr
    for record in ("counts.npy.spent.json", "counts.npy"):
        here(f"{VERIFY} r.json l.csv --spend {record}", code=0)


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_the_column_of_ids_keeps_its_name(here, kind):
    """Labels join back to the table of votes by the column that names the queries there."""
    line = "aggregate renamed.csv --id-column name --mechanism gnmax --sigma2 40 --no-record"
    here(f"{line} -o l.{kind} --report r.json", code=0)
    assert [*next(meaning.rows_of(here.folder / f"l.{kind}"))] == ["name", "label", "source"]
    here(f"{VERIFY} r.json l.{kind}", code=0)


@pytest.mark.parametrize(
    ("votes", "kind"),
    [
        ("counts.npy", "csv"),
        ("counts.csv", "npy"),
        ("long.parquet", "jsonl"),
        ("counts.npy", "arrow"),
    ],
)
def test_labels_have_a_row_for_every_row_of_votes(here, votes, kind):
    """Labels stand beside the queries they belong to, also of a run that asks the first of them."""
    asked = f"aggregate {votes} --mechanism gnmax --sigma2 40 --no-record --seed 5"
    here(f"{asked} --max-queries 10 -o first.{kind} --report r.json", code=0)
    here(f"{asked} -o all.{kind} --report all.json", code=0)
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
