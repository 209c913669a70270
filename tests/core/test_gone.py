"""Fields that are gone: passed over where they told of nothing, and else a reason not to read."""

from __future__ import annotations

import pytest

from pate_cli.core.errors import ReportError
from pate_cli.core.gone import without_gone
from refusals import refusal

OTHER = (ReportError, "r.json is of version 8")


def test_fields_that_told_of_nothing_are_passed_over_wherever_they_stand():
    old = {
        "labels": {"bytes": 3, "parts": None},
        "voting": "binary",
        "rounds": [{"queries": 6, "voting": "binary"}, {"label_set": {"voting": "binary"}}],
        "epsilon": 0.1,
    }
    assert without_gone(old, *OTHER) == {
        "labels": {"bytes": 3},
        "rounds": [{"queries": 6}, {"label_set": {}}],
        "epsilon": 0.1,
    }


@pytest.mark.parametrize(
    ("name", "fact"), [("pool", {"clusters": 3}), ("voting", "powerset"), ("parts", 4)]
)
def test_what_they_told_of_cannot_be_read(name, fact):
    for document in ({name: fact}, {"rounds": [{name: fact}]}):
        assert refusal(ReportError, without_gone, document, *OTHER) == (
            f"r.json is of version 8: it tells of {name!r}, which is gone; use the version of "
            "pate that wrote it"
        )


def test_no_depth_is_too_deep():
    document = {"voting": "binary"}
    for _ in range(400):
        document = {"inner": [document]}
    found = without_gone(document, *OTHER)
    for _ in range(400):
        (found,) = found["inner"]
    assert found == {}
