"""The report's JSON: stable, finite, without a door to the ledger; what is no report is refused."""

import dataclasses
import json
import math
import typing

import pytest

import pate_cli as pate
import record_files
import reports
from pate_cli.core.errors import LedgerError, ReportError
from pate_cli.core.stamps import __version__
from pate_cli.core.words import Adjacency, Analysis, Bound, LabelFormat, PublicFact, ReleaseKind
from pate_cli.disclosure.facts import report_of as from_facts
from pate_cli.disclosure.facts import run_of, stated
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


def test_the_worst_case_of_several_rounds_names_its_premise():
    one, two = (report_of(ReleaseKind.NONE, names=names).summary for names in ("a", "ab"))
    assert "fixed beforehand" not in one
    assert (
        "whatever the votes were, if the mechanisms, queries and caps of all rounds were fixed"
        in two
    )


def test_words_match_numbers():
    upper, none = (report_of(kind) for kind in DRAWN)
    for report in (upper, none):
        assert report.summary.startswith(f"epsilon {report.epsilon:.4f} at delta 1e-05")
        assert "one teacher" in report.adjacency
    assert repr(none) == f"<Report: {none.headline()}>"
    assert "a sanitized bound" in upper.summary
    assert "holds whatever the votes" in none.summary
    assert none.covers == "all labels; earlier runs are not tracked"
    assert upper.covers == "all labels and the sanitized epsilon; earlier runs are not tracked"


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


def data_of(kind="stability"):
    return reports.made(kind)[0].to_dict()


@pytest.mark.parametrize("version", [0, SCHEMA_VERSION + 1, None, "1", 1.0, True, [1]])
def test_other_versions_are_refused(version):
    refused(json.dumps(data_of() | {"schema_version": version}), "schema version")


def test_secrets_are_called_so(tmp_path):
    done = pate.aggregate(
        reports.votes(), "gnmax", **reports.SHAPE, keep_ledger=True, release="upper", seed=1
    )
    record = pate.release(done.ledger, release="none", seed=2, again=True).record
    refused(done.ledger.to_json(), "is a ledger, which is SECRET")
    refused(record_files.content(record).decode(), "is a record; pate spent shows it")


def test_a_quote_is_no_report():
    quoted = pate.quote(reports.votes(), "gnmax", **reports.SHAPE)
    refused(quoted.to_json(), "is a quote of --dry-run, which released nothing")


def test_other_json_is_no_report():
    for other in ({}, [], 3, None, "text", {"releasable": True}, {"kind": "pate-other"}):
        refused(json.dumps(other), "is not a report: give the file that --report wrote")


def test_no_part_of_a_report_is_one():
    text = reports.made("stability")[0].to_json()
    for end in range(0, len(text.rstrip()), 97):
        refused(
            text[:end], "or is damaged: it is not valid JSON; give the file that --report wrote"
        )
    refused(text + "{}", "not valid JSON")
    refused(b"\xff\xfe\x00", "not valid JSON")
    refused("[" * 100_000, "not valid JSON")
    refused(" " * ((1 << 26) + 1), "has over 64 MB, more than any file of its kind")
    refused(text.replace('"delta": 1e-05', '"delta": NaN', 1), "a number that is not finite")


def test_what_contradicts_the_schema_is_named():
    data = data_of()
    refused(json.dumps(data | {"rdp": [1.0]}), "has an unknown field 'rdp'")
    refused(json.dumps(data | {"epsilon": "1"}), "epsilon must be a finite number")
    refused(json.dumps(data | {"queries": 3.0}), "queries must be a whole number")
    refused(json.dumps(data | {"rounds": {}}), "rounds must be a list")
    refused(json.dumps(data | {"releasable": False}), "`releasable` contradicts `private`")
    del data["data_independent"]["order"]
    refused(json.dumps(data), "data_independent has no field 'order'")


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(ReportError, match=r"cannot read .*none\.json"):
        read_report(tmp_path / "none.json")
    with pytest.raises(ReportError, match="cannot read"):
        read_report(tmp_path)
