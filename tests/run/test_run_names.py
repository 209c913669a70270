"""What a report says of its run: a name that a resumed run keeps, and when it began."""

import re

import pytest

import pate_cli as pate
import reports
from pate_cli.core.errors import UsageError
from pate_cli.files.document import now

CHEAP = {"mechanism": "lnmax", "max_epsilon": 20.0, **reports.SHAPE}


def run(**settings):
    return pate.aggregate(reports.votes(), **CHEAP, **settings)


def test_every_run_has_a_name_of_its_own_and_a_seed_has_one():
    names = {run().report.run for _ in range(5)}
    assert len(names) == 5
    assert all(re.fullmatch("[0-9a-f]{32}", name) for name in names)
    assert run(seed=1).report.run == run(seed=1, max_queries=7).report.run
    assert run(seed=1).report.run != run(seed=2).report.run


def test_time_is_that_of_the_source_or_now(monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    assert now() == run().report.time == "1970-01-02T00:00:00Z"
    for unset in (lambda: monkeypatch.setenv("SOURCE_DATE_EPOCH", ""),
                  lambda: monkeypatch.delenv("SOURCE_DATE_EPOCH")):  # fmt: skip
        unset()
        assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ", now())
        assert now() > "2024"


@pytest.mark.parametrize("value", ["yesterday", "1.5", "-50000000000", "9" * 30, "nan", "9" * 5000])
def test_a_time_that_is_none_is_refused_before_votes_are_read(monkeypatch, value):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", value)
    with pytest.raises(UsageError, match="SOURCE_DATE_EPOCH must be whole seconds since 1970"):
        pate.aggregate("no such file.npy", **CHEAP)
