"""From JSON back to a report; whatever is none is refused in one line."""

import json

import pytest

import pate_cli as pate
import record_files
import reports
from pate_cli.core.errors import ReportError
from pate_cli.disclosure.report import SCHEMA_VERSION, parse_report, read_report


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
