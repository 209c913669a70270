"""The report's JSON: stable, finite, without a door to the ledger; what is no report is refused."""

import dataclasses
import json
import math
import typing

import pytest

import pate_cli as pate
import record_files
import reports
from pate_cli.core import __version__
from pate_cli.core.errors import LedgerError, ReportError
from pate_cli.core.words import Adjacency, Analysis, Bound, LabelFormat, PublicFact, ReleaseKind
from pate_cli.disclosure.guarantee import report_of as from_facts
from pate_cli.disclosure.guarantee import run_of, stated
from pate_cli.disclosure.report import (
    SCHEMA_VERSION,
    Report,
    ReportFacts,
    parse_report,
    read_report,
)
from pate_cli.disclosure.runs import Outcome
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.disclosure.target import TargetPlan
from pate_cli.mechanisms.gnmax import GNMax
from runs import round_of

MECHANISM = GNMax(50, 2, sigma2=10.0)
DRAWN = (ReleaseKind.UPPER, ReleaseKind.NONE)
KEYS = [
    "kind", "schema_version", "releasable", "private", "sound", "epsilon", "epsilon_kind", "delta",
    "mechanism", "queries", "answers", "max_answers", "summary", "adjacency", "covers",
    "statements", "data_independent", "crosscheck", "warnings", "rounds",
]  # fmt: skip


def report_of(kind, *, names=("a",), private=True):
    rounds = tuple(
        stated(
            round_of(MECHANISM, queries=30, max_answers=20, answers=20, name=name, private=private)
        )
        for name in names
    )
    facts = ReportFacts(rounds=rounds)
    if kind is not ReleaseKind.NONE:
        plan = ReleasePlan(kind, delta=1e-5, order=9.0, beta=0.02, sigma=9.0)
        facts = dataclasses.replace(facts, sanitizer=plan, sanitized=0.9)
    return from_facts(facts)


@pytest.mark.parametrize("kind", list(DRAWN))
def test_the_report_is_plain_json_in_a_stable_order(kind):
    text = report_of(kind).to_json()
    data = json.loads(text)
    drawn_too = ["sanitizer", "sanitized"] if kind is ReleaseKind.UPPER else []
    assert list(data) == [*KEYS, *drawn_too, "tool"]
    assert text.endswith("}\n")
    assert text == report_of(kind).to_json()
    assert text == json.dumps(data, indent=2) + "\n"
    assert data["schema_version"] == SCHEMA_VERSION
    assert data["tool"] == __version__
    assert (data["releasable"], data["private"], data["sound"]) == (True, True, True)
    assert (data["queries"], data["answers"], data["max_answers"]) == (30, 20, 20)
    assert data["mechanism"] == MECHANISM.parameters()
    drawn = ["released-epsilon"] if kind is ReleaseKind.UPPER else []
    assert [one["id"] for one in data["statements"]] == ["all-votes", *drawn]
    (done,) = data["rounds"]
    assert done == {
        "mechanism": MECHANISM.parameters(), "queries": 30, "max_answers": 20, "delta": 1e-5,
        "private": True, "answers": 20,
    }  # fmt: skip


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_number_that_json_does_not_have_is_never_written(value):
    broken = dataclasses.replace(report_of(ReleaseKind.UPPER), epsilon=value)
    with pytest.raises(ValueError, match="not JSON compliant"):
        broken.to_json()


WHATEVER = "it holds whatever the votes were"
FIXED = "if the mechanisms, queries and caps of all rounds were fixed before the first round"


@pytest.mark.parametrize(
    ("kind", "names", "summary", "covers"),
    [
        (ReleaseKind.NONE, "a", f"; {WHATEVER}.", "all labels"),
        (ReleaseKind.NONE, "ab", f"; {WHATEVER}, {FIXED}.", "all labels"),
        (
            ReleaseKind.UPPER,
            "a",
            ", a noisy upper bound on the cost of these votes; statement released-epsilon says "
            "what this bound guarantees.",
            "all labels and the sanitized epsilon",
        ),
    ],
)
def test_words_match_numbers_and_name_their_premise(kind, names, summary, covers):
    report = report_of(kind, names=names)
    assert report.summary == f"epsilon {report.epsilon:.4f} at delta 1e-05{summary}"
    assert report.covers == f"{covers}; earlier runs on these teachers are not tracked"
    assert "one teacher" in report.adjacency
    assert repr(report) == f"<Report: {report.headline()}>"


def test_rounds_for_different_neighbours_have_no_report():
    """A record of one teacher costs less, and the sum would claim that cost for a record of two."""
    rounds = [
        stated(round_of(GNMax(50, 2, sigma2=10.0, teachers_per_record=k), queries=30, answers=30))
        for k in (1, 2)
    ]
    with pytest.raises(LedgerError, match="cannot share a total"):
        from_facts(ReportFacts(rounds=tuple(rounds)))


def test_a_record_takes_from_a_report_how_its_run_ended_and_whether_it_has_a_promise():
    facts = report_of(ReleaseKind.UPPER).facts
    assert run_of(facts).promised
    assert not run_of(dataclasses.replace(facts, seeded=True)).promised
    assert not run_of(report_of(ReleaseKind.UPPER, private=False).facts).promised
    target = TargetPlan(1.0, 1e-5, 0.25, test_orders=(8.0,))
    done = stated(round_of(MECHANISM, queries=30, target=target))
    for passed, epsilon in ((True, 1.0), (False, 0.25)):
        run = run_of(ReportFacts(rounds=(done,), passed=passed))
        assert (run.outcome is Outcome.REFUSED) is not passed
        assert (run.answers is None) is not passed
        assert run.counted == epsilon


def types_of(annotation):
    yield annotation
    for inner in typing.get_args(annotation):
        yield from types_of(inner)


def fields_of(kind):
    for name, annotation in typing.get_type_hints(kind).items():
        for one in types_of(annotation):
            if dataclasses.is_dataclass(one):
                yield from fields_of(one)
        yield name, annotation


def test_no_field_of_the_report_can_hold_a_ledger_or_an_array():
    allowed = {str, int, float, bool, type(None), typing.Any, LabelFormat}
    allowed |= {Analysis, Outcome, Adjacency, ReleaseKind, Bound, PublicFact}
    for name, annotation in fields_of(Report):
        leaves = [one for one in types_of(annotation) if not typing.get_args(one)]
        for leaf in leaves:
            assert leaf in allowed | {Ellipsis} or dataclasses.is_dataclass(leaf), name
        assert not any(word in name for word in ("sensitivity", "smooth", "ledger", "expected"))


def refused(text, match):
    with pytest.raises(ReportError, match=match) as error:
        parse_report(text, "r.json")
    (line,) = str(error.value).splitlines()
    assert line.startswith("r.json ")


def test_another_document_is_called_what_it_is():
    known = reports.made("stability")[0].to_dict()
    for version in (0, SCHEMA_VERSION + 1, None, "1", 1.0, True, [1]):
        refused(json.dumps(known | {"schema_version": version}), "schema version")
    for other in ({}, [], 3, None, "text", {"releasable": True}, {"kind": "pate-other"}):
        refused(json.dumps(other), "is not a report: give the file that --report wrote")
    given = (reports.votes(), "gnmax")
    quoted = pate.quote(*given, **reports.SHAPE)
    refused(quoted.to_json(), "is a quote of --dry-run, which released nothing")
    ledger = pate.aggregate(*given, **reports.SHAPE, keep_ledger=True, seed=1).ledger
    refused(ledger.to_json(), "is a ledger, which is SECRET")
    record = pate.release(ledger, release="none", seed=2).record
    refused(record_files.content(record).decode(), "is a record; pate spent shows it")


def test_what_is_damaged_is_refused_by_what_is_wrong(tmp_path):
    text = reports.made("stability")[0].to_json()
    cut, data = "or is damaged: the text is not valid JSON; give the file that", json.loads(text)
    for end in range(0, len(text.rstrip()), 97):
        refused(text[:end], cut)
    for damaged, said in (
        (text + "{}", "not valid JSON"),
        (b"\xff\xfe\x00", "not valid JSON"),
        ("[" * 100_000, "not valid JSON"),
        (" " * ((1 << 26) + 1), "the text is larger than the limit of 64 MB"),
        (text.replace('"delta": 1e-05', '"delta": NaN', 1), "has a number that is NaN or infinite"),
        (data | {"rdp": [1.0]}, "has an unknown field 'rdp'"),
        (data | {"epsilon": "1"}, "epsilon must be a finite number"),
        (data | {"queries": 3.0}, "queries must be a whole number"),
        (data | {"rounds": {}}, "rounds must be a list"),
        (data | {"releasable": False}, "the fields `releasable` and `private` contradict"),
        (data | {"data_independent": {}}, "data_independent has no field"),
    ):
        refused(json.dumps(damaged) if isinstance(damaged, dict) else damaged, said)
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(ReportError, match="cannot read"):
            read_report(path)
