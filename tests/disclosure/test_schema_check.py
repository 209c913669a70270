"""Our check of a report against the schema, beside that of the jsonschema package."""

from __future__ import annotations

import copy
import inspect
import re

import jsonschema
import numpy as np
import pytest

import reports
from pate_cli.disclosure.schema import report_schema, validate
from pate_cli.disclosure.schema.validate import faults

SCHEMA = report_schema()
THEIRS = jsonschema.Draft202012Validator(SCHEMA)
ODD = [
    None, True, False, 0, 1, -1, 2.0, 0.5, 1.0, -0.5, 1e300, "", "text", "none", "upper", [], [1],
    {}, {"a": 1}, ["a", "a"], "0" * 32, "0" * 64, "2026-01-01T00:00:00Z", 4, "gaussian",
]  # fmt: skip


def ours(data):
    return next(faults(data, SCHEMA), None) is None


@pytest.mark.parametrize("kind", reports.KINDS)
def test_every_report_fits(kind):
    data = reports.made(kind)[0].to_dict()
    assert list(faults(data, SCHEMA)) == []
    assert THEIRS.is_valid(data)


def containers(value):
    if isinstance(value, dict | list):
        yield value
        for inner in value.values() if isinstance(value, dict) else value:
            yield from containers(inner)


def altered(data, rng):
    """The report with one or two things changed, dropped, doubled or added."""
    data = copy.deepcopy(data)
    for _ in range(rng.integers(1, 3)):
        places = [place for place in containers(data) if place]
        place = places[rng.integers(len(places))]
        keys = list(place) if isinstance(place, dict) else range(len(place))
        key = keys[rng.integers(len(keys))]
        match rng.integers(5):
            case 0:
                del place[key]
            case 1 if isinstance(place, dict):
                place["more"] = ODD[rng.integers(len(ODD))]
            case 2 if isinstance(place, list):
                place.append(copy.deepcopy(place[key]))
            case _:
                place[key] = copy.deepcopy(ODD[rng.integers(len(ODD))])
    return data


def test_altered_reports_fit_for_both_or_for_none():
    rng = np.random.default_rng(20)
    kinds = ["confident", "upper", "refused", "names", "groups", "several labels", "draws"]
    kinds += ["stability"]
    outcomes = []
    for kind in kinds:
        data = reports.made(kind)[0].to_dict()
        for _ in range(60):
            other = altered(data, rng)
            outcomes.append(ours(other))
            assert outcomes[-1] == THEIRS.is_valid(other), list(faults(other, SCHEMA))
    assert 20 < sum(outcomes) < len(outcomes) - 100


def keywords(schema):
    """Every keyword of a schema, at all depths."""
    for name, value in schema.items():
        yield name
        if name in ("properties", "$defs"):
            inner = value.values()
        elif name == "oneOf":
            inner = value
        elif name in ("items", "additionalProperties", "if", "then", "else"):
            inner = [value] if isinstance(value, dict) else []
        else:
            continue
        for one in inner:
            yield from keywords(one)


def test_every_keyword_of_the_schema_is_one_that_is_checked():
    known = set(re.findall(r'case "(\w+)"', inspect.getsource(validate)))
    known |= {"$ref", "properties", "additionalProperties", "items", "if"} | validate._NOTES
    assert set(keywords(SCHEMA)) <= known


@pytest.mark.parametrize("keyword", ["maxLength", "format", "anyOf", "prefixItems"])
def test_an_unknown_keyword_is_an_error_and_not_passed_over(keyword):
    with pytest.raises(NotImplementedError, match=keyword):
        list(faults("x", {"type": "string", keyword: 1}))


PIECES = {
    "type": [{"type": kind} for kind in ("null", "boolean", "number", "integer", "string")]
    + [{"type": ["array", "object", "null"]}],
    "const": [{"const": True}, {"const": 1}, {"const": 0}, {"const": "text"}],
    "enum": [{"enum": [1, "none"]}, {"enum": [False]}],
    "numbers": [{"minimum": 0}, {"exclusiveMinimum": 0}, {"exclusiveMaximum": 1}],
    "texts": [{"minLength": 1}, {"pattern": "^[0-9a-f]{32}$"}],
    "lists": [{"minItems": 1}, {"uniqueItems": True}, {"items": {"type": "string"}}],
    "objects": [{"required": ["a"]}, {"properties": {"a": {"minimum": 2}}}],
    "closed": [{"properties": {"a": {}}, "additionalProperties": False}],
    "open": [{"additionalProperties": {"type": "string"}}],
    "combined": [{"oneOf": [{"type": "number"}, {"type": "integer"}]}],
    "branches": [{"if": {"type": "number"}, "then": {"minimum": 1}, "else": {"type": "string"}}],
}


@pytest.mark.parametrize("which", PIECES)
def test_each_keyword_means_what_the_package_says(which):
    for schema in PIECES[which]:
        theirs = jsonschema.Draft202012Validator(schema)
        for value in ODD:
            fits = next(faults(value, schema), None) is None
            assert fits == theirs.is_valid(value), (schema, value)
