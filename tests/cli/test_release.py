"""`pate release`: one report of ledgers, reports and records, every draw of it paid for."""

import json
import stat

import jsonschema
import pytest

from pate_cli.accounting.conversion import round_up
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.report import report_schema
from pate_cli.disclosure.runs import RunKind

DRAW = ["--beta", 0.03, "--sigma-release", 9.0]
KEEP = ["--order", 4.0, *DRAW, "--release", "none"]


@pytest.fixture
def kept(pate, votes):
    """Run `aggregate` and keep its ledger under a name."""

    def run(name, *words):
        pate("aggregate", votes, "-o", f"{name}.npy", "--ledger", name, *(words or KEEP), code=0)

    return run


@pytest.fixture
def released(pate):
    def run(*words):
        result = pate("release", *words, code=0)
        return json.loads(result.stdout)

    return run


@pytest.fixture
def record(votes):
    """The record beside the votes, which every ledger of them names."""
    return votes.with_name("votes.npy.spent.json")


def draws_in(path):
    """How many draws a record tells of."""
    return sum(run.kind == RunKind.RELEASE for run in SpendRecord.read(path).runs)


AGAIN = (
    "a sanitized epsilon was already drawn {} time(s) from runs in the ledgers, and another draw "
    "costs more privacy: publish the first report, or give --again to pay for all draws"
)


def test_a_second_draw_is_refused_and_one_with_again_is_charged(
    kept, pate, refused, released, folder, record
):
    """The record is the one that the ledger names, whatever else is given."""
    kept("a.json")
    words = ["a.json", *DRAW]
    first = released(*words)
    assert stat.S_IMODE(record.stat().st_mode) == 0o644
    before = record.read_bytes()
    for more in ([], ["--spend", "s.json"], ["--force"], ["--report", "r.json"]):
        refused(pate("release", *words, *more), 7, AGAIN.format(1))
    assert record.read_bytes() == before
    assert not {"s.json", "a.json.spent.json", "r.json"} & {path.name for path in folder.iterdir()}
    again = released(*words, "--again")
    assert again["data_independent"]["epsilon"] > first["data_independent"]["epsilon"]
    assert "1 earlier release from the same votes" in again["covers"]
    refused(pate("release", *words), 7, AGAIN.format(2))
    assert draws_in(record) == 2


RACE = """
import pathlib, time
import pate_cli.disclosure.ledger as module
before = module.sanitized_epsilon
def slow(*words, **rest):
    time.sleep(0.5)
    return before(*words, **rest)
module.sanitized_epsilon = slow
pathlib.Path("ready.{mine}").touch()
until = time.monotonic() + 30
while time.monotonic() < until and len(list(pathlib.Path().glob("ready.?"))) < 2:
    time.sleep(0.01)
"""


def test_releases_at_once_draw_once(kept, patched, folder, record):
    kept("a.json")
    words = ["release", "a.json", *DRAW, "-q"]
    started = [
        patched(RACE.format(mine=mine), *words, "--report", f"r{mine}.json") for mine in range(2)
    ]
    said = [process.communicate(timeout=60)[1] for process in started]
    assert sorted(process.returncode for process in started) == [0, 7]
    assert sum(b"a sanitized epsilon was already drawn 1 time(s)" in line for line in said) == 1
    assert len(list(folder.glob("r?.json"))) == 1
    assert draws_in(record) == 1


def test_that_a_release_pays_for_what_the_rounds_published_is_said(kept, pate):
    kept("a.json", *KEEP[:-1], "upper")
    told = pate("release", "a.json", *DRAW).stderr.splitlines()[0]
    assert told == (
        "pate: 1 sanitized epsilon(s) were published from these rounds before, and this report "
        "pays for them; if you run aggregate with --release none --ledger FILE, there is no such "
        "cost"
    )


PAIR = {"epsilon": 0.5, "delta": 1e-6, "adjacency": "replace-one", "covers": "a histogram"}
CURVE = {"orders": [2, 4, 8], "rdp": [0.1, 0.2, 0.4], "adjacency": "add-or-remove-one"}


def is_a_total_of(report, number):
    """What a total says of itself, its headline and its statements."""
    spent = report["spent"]
    jsonschema.validate(report, report_schema())
    assert len(spent["runs"]) == number
    assert (report["private"], report["sound"]) == (True, True)
    assert (report["epsilon_kind"], report.get("sanitized")) == ("total", None)
    assert (report["epsilon"], report["delta"]) == (round_up(spent["epsilon"]), spent["delta"])
    assert spent["epsilon"] <= spent["sum_epsilon"] or number == 1
    held = {text["id"] for text in report["statements"] if text["holds"]}
    assert held >= {"all-votes", "total", "sum"} | ({"external"} if number > 1 else set())
    # The names of the holder's files stay in the record.
    assert not any("votes" in run or "drawn_from" in run for run in spent["runs"])


def test_a_record_and_external_parts_are_one_total(kept, pate, refused, released, record, folder):
    (folder / "pair.json").write_text(json.dumps(PAIR))
    (folder / "curve.json").write_text(json.dumps(CURVE))
    beside = ["--external", "pair.json", "--external", "curve.json"]
    kept("a.json", *KEEP, "--max-queries", 20)
    alone = released(record)
    is_a_total_of(alone, 1)
    before = record.read_bytes()
    for words in ([record, *beside], ["a.json", *DRAW, *beside]):
        line = refused(pate("release", *words, "--budget", 1, "--report", "r.json"), 5)
        assert line.startswith("pate: the budget is epsilon 1 at delta 0.001, and ")
        assert f" in {record} spent " in line
        assert "with this run the total would be" in line
        assert record.read_bytes() == before
        assert not (folder / "r.json").exists()
    found = released(record, *beside, "--budget", 9)
    is_a_total_of(found, 3)
    assert ["external" in run for run in found["spent"]["runs"]] == [False, True, True]
    assert found["epsilon"] > alone["epsilon"]
    assert found["delta"] == 1.1e-5
    assert [part.get("covers") for part in found["external"]] == ["a histogram", None]
    assert [part["name"] for part in found["external"]] == ["pair.json", "curve.json"]
    assert len(SpendRecord.read(record).runs) == 3
