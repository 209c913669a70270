"""The report against its JSON Schema, and the schema against reports that must not pass."""

from __future__ import annotations

import copy
import json

import jsonschema
import pytest

import pate_cli
from pate_cli.core.errors import ReportError
from pate_cli.disclosure.report import parse_report, report_schema
from pate_cli.planning.synthetic import SyntheticEnsemble

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
