"""`explain`, `verify` and `spent`: what a report says, as text, page, picture, entry and curve."""

import copy
import json
import re
import stat
from pathlib import Path

import jsonschema
import pytest

import pate_cli as pate_library
from pate_cli.core.errors import ReportError
from pate_cli.disclosure.report import parse_report, report_schema

NOISE = ("--threshold", 24, "--sigma1", 12, "--sigma2", 6)
TARGET = (*NOISE, "--bound", "two-tail", "--max-queries", 60, "--target-epsilon")
VALIDATOR = jsonschema.Draft202012Validator(report_schema())


@pytest.fixture
def released(pate, votes):
    """r.json, the report of l.csv."""
    pate("aggregate", votes, *NOISE, "-o", "l.csv", "--report", "r.json", code=0)
    return json.loads(Path("r.json").read_text())


def forge(report, **changes):
    Path("r.json").write_text(json.dumps(report | changes))


def test_a_forged_report_has_nothing_to_sign(pate, released):
    forge(released, epsilon=0.125)
    told = pate("explain", "r.json")
    said = "pate: do not rely on the report; these checks failed: numbers and words\n"
    assert (told.exit_code, told.stderr) == (10, said)
    assert told.stdout.startswith(
        "Nothing is promised\n  This report does not hold; these checks failed: "
    )
    for words in (("-q",), ("--html", "page.html"), ("--json",)):
        pate("explain", "r.json", *words, code=10)
    # Neither a curve nor an entry leaves from a false report.
    for option in ("--export-rdp", "--registry"):
        told = pate("explain", "r.json", option, "out.json")
        assert (told.exit_code, told.stderr) == (10, said)
        assert not Path("out.json").exists()
    for words in (told.stdout, Path("page.html").read_text()):
        assert not [word for word in ("0.125", "Signature", released["run"]) if word in words]


def test_what_was_not_checked_is_exit_11_where_that_is_asked_for(pate, votes):
    words = (*TARGET, 60, "-o", "t.csv", "--report", "t.json")
    pate("aggregate", votes, *words, code=0)
    left = [
        "whether runs are missing, when runs began, and what earlier runs did",
        "settings that the labels carry",
    ]
    said = f"Every check that could be made passed. Not checked: {'; '.join(left)}."
    told = pate("verify", "t.json", "t.csv", "--table", "--without-dp-accounting")
    assert told.stdout.splitlines()[-1] == said
    assert (told.exit_code, told.stderr) == (0, "")
    strict = pate("verify", "t.json", "t.csv", "--strict", "--without-dp-accounting")
    assert (strict.exit_code, strict.stderr) == (11, f"pate: {said}\n")
    piped = json.loads(pate("verify", "t.json", "t.csv").stdout)
    assert (piped["holds"], piped["not_checked"]) == (True, left)


def test_answers_are_quiet_on_request(pate, released):
    """The exit code says it all, and stderr why."""
    for verb, more in (("explain", ()), ("verify", ("l.csv", "--without-dp-accounting"))):
        for words in ((*more, "-q"), ("--quiet", "--json"), ("--quiet", "--table")):
            done = pate(verb, "r.json", *words)
            assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
        done = pate(verb, "r.json", "--json", "--table", code=2)
        assert "--json and --table contradict each other" in done.stderr
    done = pate("explain", "l.csv", "-q")
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr.startswith("pate: l.csv is not a report")
    forge(released, epsilon=released["epsilon"] - 0.25)
    done = pate("verify", "r.json", "l.csv", "-q")
    said = "pate: does not hold: numbers and words, promise\n"
    assert (done.exit_code, done.stdout, done.stderr) == (10, "", said)


def test_a_report_without_a_guarantee_is_honest(pate, votes):
    """Its numbers are true, so `explain` succeeds, although nothing is promised."""
    pate("aggregate", votes, *NOISE, "--report", "s.json", "--seed", 1, code=0)
    told = pate("explain", "s.json")
    assert (told.exit_code, told.stderr) == (0, "")
    assert told.stdout.startswith("Nothing is promised\n")
    pate("verify", "s.json", "-q", code=10)


@pytest.mark.usefixtures("released")
def test_labels_before_the_report_get_a_hint(pate):
    told = pate("verify", "l.csv", "r.json", code=3)
    assert "l.csv is not a report" in told.stderr
    assert "give the report first, and then the labels" in told.stderr
    for words in (("l.csv", "l.csv"), ("l.csv", "nowhere.json"), ("l.csv",)):
        told = pate("verify", *words, code=3)
        assert "report first" not in told.stderr


def test_a_page_is_written_instead_and_not_over_what_is_there(pate, released):
    Path("page.html").write_text("<!doctype html>mine")
    assert "page.html" in pate("explain", "r.json", "--html", "page.html", code=6).stderr
    assert Path("page.html").read_text() == "<!doctype html>mine"
    told = pate("explain", "r.json", "--html", "page.html", "--force")
    assert (told.exit_code, told.stdout, told.stderr) == (0, "", "")
    page = Path("page.html").read_text(encoding="utf-8")
    assert page == pate_library.explain("r.json").to_html()
    assert released["labels"]["sha256"] in page
    assert stat.S_IMODE(Path("page.html").stat().st_mode) == 0o644


def test_an_entry_of_the_register_names_what_is_blank(pate, released):
    given = ("--registry", "entry.yaml", "--title", "Labels of May", "--unit", "one hospital")
    told = pate("explain", "r.json", *given)
    assert (told.exit_code, told.stdout) == (0, "")
    said = "pate: fill in these fields of the entry yourself: url_slug, deployment.basic."
    assert told.stderr.startswith(said)
    entry = json.loads(Path("entry.yaml").read_text())
    assert entry["deployment"]["basic"]["name"] == "Labels of May"
    pate("explain", "r.json", *given, code=6)
    pate("explain", "r.json", *given, "--force", code=0)
    assert pate("explain", "r.json", *given[2:]).stdout.startswith("Labels of May\n\nWhat is")
    # A pipe is read once for all that is written.
    words = ("--html", "page.html", "--export-rdp", "curve.json", *given, "--force")
    told = pate("explain", "-", *words, input=Path("r.json").read_text(), code=0)


@pytest.fixture
def few_orders(monkeypatch):
    monkeypatch.setattr("pate_cli.disclosure.exchange._ORDERS", (1.1, 4.0, 512.0))


@pytest.mark.usefixtures("few_orders")
def test_what_a_curve_alone_does_not_show_is_said(pate, votes):
    """Gaussian differential privacy of one query is sharper than any order."""
    given = ("--mechanism", "gnmax", "--sigma2", 20, "--max-queries", 1)
    pate("aggregate", votes, *given, "--report", "r.json", code=0)
    report = json.loads(Path("r.json").read_text())
    assert report["data_independent"]["method"] == "gaussian-dp"
    done = pate("explain", "r.json", "--export-rdp", "curve.json")
    said = re.match(
        r"pate: from this curve alone, another accountant gets epsilon ([0-9.]+);", done.stderr
    )
    assert float(said[1]) > report["epsilon"]
    assert pate("explain", "r.json", "--export-rdp", "c.json", "--quiet").stderr == ""


def test_reports_are_held_against_a_record(pate, votes):
    words = ("aggregate", votes, "--max-queries", 20, "--force")
    for number, more in enumerate(((), ("--mechanism", "gnmax", "--budget", 9), ("--no-record",))):
        pate(*words, *more, "--report", f"{number}.json", code=0)
    record = f"{votes}.spent.json"
    done = pate("spent", record, "--verify", "0.json", "--verify", "1.json", code=0)
    assert [one["outcome"] for one in json.loads(done.stdout)["reports"]] == ["ok", "ok"]
    forged = json.loads(Path("1.json").read_text())
    Path("1.json").write_text(json.dumps(forged | {"answers": forged["answers"] - 1}))
    said = (("2.json", "the record does not have this run"), ("1.json", "answers is "))
    for name, text in said:
        done = pate("spent", record, "--verify", name, code=10)
        assert text in done.stderr
    pate("release", record, "--report", "all.json", code=0)
    done = pate("spent", record, "--verify", "all.json", code=0)
    assert "a total of 2 runs, all in the record" in done.stdout


def test_a_picture_changes_nothing_else_and_is_its_owners_alone(pate, refused, votes, folder):
    pytest.importorskip("matplotlib")
    words = ("smooth-sensitivity", votes, "-q")
    plain, pictured = pate(*words), pate(*words, "--plot", "a.png")
    assert pictured.exit_code == 0, pictured.stderr
    assert pictured.stdout == plain.stdout
    said = "a.png exists already; use --force to replace it"
    refused(pate(*words, "--plot", "a.png"), 6, said)
    pate(*words, "--plot", "a.png", "--force", code=0)
    pate(*words, "--plot", "a.svg", code=0)
    for name, start in (("a.png", b"\x89PNG"), ("a.svg", b"<?xml")):
        assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600
        assert (folder / name).read_bytes().startswith(start)


TESTED = {"epsilon": 1.0, "delta": 1e-5, "refusal_epsilon": 0.5, "bound": "two-tail"}
TESTED |= {"test_orders": [4.0]}
PRIOR = {"weight": 12, "guesses": 3, "sha256": "0" * 64}
# What a slip could put into a report: each must be refused by the schema and by the reader.
SLIPS = {
    "a secret curve": lambda r: r.update(rdp=[0.1, 0.2]),
    "an expected number of answers": lambda r: r.update(expected_answers=282.7),
    "a smooth sensitivity": lambda r: r["rounds"][0]["sanitizer"].update(smooth=0.06),
    "an analysis that there is not": lambda r: r["rounds"][0].update(analysis=3),
    "a mark that is none": lambda r: r.update(releasable="no"),
    "another version": lambda r: r.update(schema_version=5),
    "a chance of passing": lambda r: r["rounds"][0].update(target={**TESTED, "chance": 0.99}),
    "a bound that there is not": lambda r: r["rounds"][0].update(
        target={**TESTED, "bound": "sharp"}
    ),
    "a statement that is none": lambda r: r.update(statements=[{"id": "all-votes"}]),
    "no delta": lambda r: r.pop("delta"),
    "a text for epsilon": lambda r: r.update(epsilon="0.1"),
    "a guess": lambda r: r["rounds"][0].update(prior=PRIOR | {"guess": [1, 0]}),
}


def test_the_schema_and_the_reader_refuse(counts):
    """The schema is made of the dataclasses that the reader reads."""
    VALIDATOR.check_schema(report_schema())
    done = pate_library.aggregate(counts, layout="counts", seed=1, release="upper")
    report = json.loads(done.report.to_json())
    VALIDATOR.validate(report)
    for name, slip in SLIPS.items():
        changed = copy.deepcopy(report)
        slip(changed)
        assert not VALIDATOR.is_valid(changed), name
        with pytest.raises(ReportError):
            parse_report(json.dumps(changed))
