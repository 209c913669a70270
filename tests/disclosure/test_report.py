"""The public report's JSON: stable, finite, and without a door back to the ledger."""

import dataclasses
import json
import math
import typing

import pytest

from pate_cli.core.errors import LedgerError
from pate_cli.core.stamps import __version__
from pate_cli.core.words import Adjacency, Analysis, Bound, LabelFormat, PublicFact, ReleaseKind
from pate_cli.disclosure.facts import report_of as from_facts
from pate_cli.disclosure.facts import run_of, stated
from pate_cli.disclosure.report import SCHEMA_VERSION, Report, ReportFacts
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
