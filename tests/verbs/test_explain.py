"""`explain` checks before it speaks: no leaf that is forged by itself is told as a promise."""

from __future__ import annotations

import json

import pytest

import pate_cli as pate
import reports
from forgeries.forge import leaves, others, put
from pate_cli.core.errors import PateError
from pate_cli.disclosure.report import parse_report
from slices import some

KINDS = ("gnmax", "passed", "refused", "upper", "groups", "kept", "account")


def found_of(data):
    """What is said of a report in words, and what is checked of it; None if it is refused."""
    try:
        report = parse_report(json.dumps(data))
        return pate.explain(report), pate.verify(report, with_dp_accounting=False)
    except PateError:
        return None


@pytest.mark.parametrize("kind", some(KINDS, 4))
def test_a_forged_leaf_is_told_as_no_promise(kind):
    whole = reports.made(kind)[0].to_dict()
    told = found_of(whole)
    assert told[0].promised
    forged = 0
    with reports.costs_once():
        for path, value in some(list(leaves(whole)), 8):
            other = next(iter(others(value)), None)
            found = found_of(put(whole, path, other))
            if found is None:
                continue
            words, checked = found
            assert words.promised is checked.holds, path
            assert words.failed == tuple(name for name in checked.failed if name != "promise")
            if words.failed:
                assert [section.title for section in words.sections] == ["Nothing is promised"]
                forged += 1
    assert forged > 3
