"""The report against its JSON Schema, and the schema against reports that must not pass."""

from __future__ import annotations

import copy
import json

import jsonschema
import pytest

import pate_cli
from pate_cli.core.errors import ReportError
from pate_cli.core.words import MechanismName
from pate_cli.disclosure.report import parse_report, report_schema
from pate_cli.planning.synthetic import SyntheticEnsemble
from pate_cli.verbs.signatures import verify

VALIDATOR = jsonschema.Draft202012Validator(report_schema())


def _errors(report):
    return [error.message for error in VALIDATOR.iter_errors(report)]


@pytest.fixture(scope="module")
def report():
    """Of a run under a seed; whoever changes it changes a copy."""
    counts, _ = SyntheticEnsemble(teachers=40, classes=4, queries=60).draw(3)
    done = pate_cli.aggregate(counts, layout="counts", seed=1, release="upper")
    return json.loads(done.report.to_json())


def test_the_schema_is_a_schema():
    jsonschema.Draft202012Validator.check_schema(report_schema())


# Interactive asks for a student, whose predictions must be given.
@pytest.mark.parametrize("mechanism", sorted(set(MechanismName) - {MechanismName.INTERACTIVE}))
def test_every_mechanism_writes_a_valid_report(pate, votes, mechanism):
    result = pate("aggregate", votes, "--mechanism", mechanism, "--max-epsilon", 1000)
    assert result.exit_code == 0, result.stderr
    assert _errors(json.loads(result.stdout)) == []


@pytest.mark.parametrize("release", ["upper", "none"])
def test_every_kind_of_release_writes_a_valid_report(pate, votes, release):
    found = json.loads(pate("aggregate", votes, "--release", release).stdout)
    assert _errors(found) == []
    assert ("sanitized" in found) == (release == "upper")


@pytest.mark.parametrize("target", ["0.5", "3", "200"])
def test_reports_of_targets_validate(pate, two_classes, target):
    words = ("--target-epsilon", target, "--max-epsilon", 200, "--max-queries", 60)
    result = pate("aggregate", two_classes, *words)
    assert result.exit_code in (0, 8), result.stderr
    found = json.loads(result.stdout)
    assert _errors(found) == []
    assert found["epsilon_kind"] in ("target", "refusal", "worst-case")


def test_numbers_in_the_report_are_finite_and_epsilons_rounded_to_four_decimals(pate, votes):
    def refuse(name):
        raise AssertionError(f"{name} is no JSON")

    text = pate("aggregate", votes, "--release", "upper").stdout
    found = json.loads(text, parse_constant=refuse)
    for epsilon in (found["epsilon"], found["sanitized"], found["data_independent"]["epsilon"]):
        assert epsilon == round(epsilon, 4)
    assert text.endswith("}\n")


def test_keys_are_those_of_the_schema(report):
    schema = report_schema()
    assert set(schema["required"]) <= set(report) <= set(schema["properties"])
    name = "data_independent"
    assert list(report[name]) == list(schema["properties"][name]["properties"])


TARGET = {"epsilon": 1.0, "delta": 1e-5, "refusal_epsilon": 0.5, "bound": "two-tail"}
TARGET |= {"test_orders": [4.0]}
PRIOR = {"weight": 12, "guesses": 3, "sha256": "0" * 64}

# What a slip could put into a report: each must be refused by the schema and by the reader.
SLIPS = {
    "a secret curve": lambda r: r.update(rdp=[0.1, 0.2]),
    "an expected number of answers": lambda r: r.update(expected_answers=282.7),
    "a smooth sensitivity": lambda r: r["rounds"][0]["sanitizer"].update(smooth=0.06),
    "an analysis that there is not": lambda r: r["rounds"][0].update(analysis=3),
    "a mark that is none": lambda r: r.update(releasable="no"),
    "another version": lambda r: r.update(schema_version=5),
    "a chance of passing": lambda r: r["rounds"][0].update(target={**TARGET, "chance": 0.99}),
    "a bound that there is not": lambda r: r["rounds"][0].update(
        target={**TARGET, "bound": "sharp"}
    ),
    "a statement that is none": lambda r: r.update(statements=[{"id": "all-votes"}]),
    "no delta": lambda r: r.pop("delta"),
    "a text for epsilon": lambda r: r.update(epsilon="0.1"),
    "a guess": lambda r: r["rounds"][0].update(prior=PRIOR | {"guess": [1, 0]}),
}

# What no run says of itself, though its fields are of the right kind.
CONTRADICTIONS = {
    "a number where nothing was released": lambda r: r["rounds"][0].pop("sanitizer"),
    "no number where one was released": lambda r: r.pop("sanitized"),
    "a list among the parameters": lambda r: r["mechanism"].update(votes=[1, 2]),
    "a test of nothing": lambda r: r["rounds"][0].update(target={**TARGET, "test_orders": []}),
    "a headline from nowhere": lambda r: r.update(epsilon_kind="exact"),
    "the id of a round": lambda r: r["rounds"][0].update(id="d41d8c"),
    "an analysis that there is not": lambda r: r["rounds"][0].update(analysis="exact"),
    "a word for what is unsettled": lambda r: r.update(unsettled=["nothing"]),
    "delta 0": lambda r: r.update(delta=0),
    "negative epsilon": lambda r: r.update(epsilon=-0.1),
    "a negative draw": lambda r: r.update(sanitized=-0.1),
    "no statements": lambda r: r.update(statements=[]),
    "no rounds": lambda r: r.update(rounds=[]),
    "a prior that had no vote": lambda r: r["rounds"][0].update(prior=PRIOR),
    "order 1": lambda r: r["data_independent"].update(order=1),
    "a mark that is not that of private": lambda r: r.update(releasable=True),
}


def _changed(report, slip):
    changed = copy.deepcopy(report)
    slip(changed)
    return changed


@pytest.mark.parametrize("slip", SLIPS)
def test_the_schema_and_the_reader_refuse(report, slip):
    """The schema is made of the dataclasses that the reader reads."""
    assert _errors(report) == []
    changed = _changed(report, SLIPS[slip])
    assert _errors(changed) != []
    with pytest.raises(ReportError):
        parse_report(json.dumps(changed))


@pytest.mark.parametrize("slip", CONTRADICTIONS)
def test_what_no_run_says_of_itself_is_refused_or_does_not_verify(report, slip):
    changed = _changed(report, CONTRADICTIONS[slip])
    assert _errors(changed) == []
    try:
        failed = verify(json.dumps(changed).encode(), with_dp_accounting=False).failed
    except ReportError as error:
        failed = ["numbers and words"] if " damaged: " in str(error) else []
    assert "numbers and words" in failed
