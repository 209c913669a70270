"""`pate release`: one report of ledgers, reports and records, every draw of it paid for."""

from __future__ import annotations

import json
import math
import stat

import jsonschema
import numpy as np
import pytest
from scipy.special import ndtri

import record_files
from pate_cli.accounting.conversion import round_up
from pate_cli.core.noise import RunKey
from pate_cli.disclosure.ledger import Ledger
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.report import report_schema
from pate_cli.disclosure.runs import RunKind
from sealing import sealed

ORDER, BETA, SIGMA = 4.0, 0.03, 9.0
KEEP = ["--order", ORDER, "--beta", BETA, "--sigma-release", SIGMA, "--release", "none"]
DRAW = ["--beta", BETA, "--sigma-release", SIGMA]
NAMES = ("a.json", "b.json")
STUDENT = ["--mechanism", "interactive", "--student", "student.npy", "--threshold", 8]


@pytest.fixture
def kept(pate, votes, folder, counts):
    """Run `aggregate` and keep its ledger under a name."""
    np.save(folder / "student.npy", (counts + 1) / (counts + 1).sum(axis=1, keepdims=True))

    def run(name, *words):
        result = pate("aggregate", votes, "-o", f"{name}.npy", "--ledger", name, *(words or KEEP))
        assert result.exit_code == 0, result.stderr

    return run


@pytest.fixture
def released(pate):
    def run(*words):
        result = pate("release", *words)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

    return run


@pytest.fixture
def record(votes):
    """The record beside the votes, which every ledger of them names."""
    return votes.with_name("votes.npy.spent.json")


def draws_in(path):
    """How many draws a record tells of."""
    return sum(run.kind == RunKind.RELEASE for run in SpendRecord.read(path).runs)


def draw_cost():
    """ε_κ(λ) of the draw alone, from its formula."""
    shift = SIGMA * -ndtri(1e-6)
    w = 1.0 - (ORDER - 1.0) * (math.exp(2.0 * BETA) - 1.0)
    moved = ORDER * (1.0 + shift * (math.exp(BETA) - 1.0)) ** 2 / (2.0 * SIGMA**2 * w)
    return moved - BETA - math.log(w) / (2.0 * (ORDER - 1.0))


def by_hand(parts, *, seed, delta=1e-5):
    """The sanitized ε before rounding, from ledgers alone."""
    rdp = sum(part["rdp"][0] for part in parts)
    curve = np.sum([part["sensitivity"][0] for part in parts], axis=0)
    ceiling = sum(part["ceiling"][0] for part in parts)
    within = np.append(np.minimum(curve, ceiling), ceiling)
    smooth = max(level * math.exp(-BETA * d) for d, level in enumerate(within))
    failure = delta / 10.0
    normal = RunKey.of(seed).aside("release").normal(1)[0]
    log_delta = math.log(delta - failure)
    conversion = math.log(1 - 1 / ORDER) - (log_delta + math.log(ORDER)) / (ORDER - 1)
    return rdp + smooth * SIGMA * (normal - ndtri(failure)) + draw_cost() + conversion


def test_rounds_are_composed_and_the_second_may_look_at_the_first(kept, released, folder):
    kept(NAMES[0])
    kept(NAMES[1], *KEEP, *STUDENT)
    texts = [(folder / name).read_text() for name in NAMES]
    parts = [json.loads(text) for text in texts]
    total = Ledger.from_json(texts[0]) + Ledger.from_json(texts[1])
    assert total.rdp[0] == pytest.approx(sum(part["rdp"][0] for part in parts), rel=1e-12)
    both, turned = (released(*names, *DRAW, "--seed", 1) for names in (NAMES, NAMES[::-1]))
    assert both | {"time": None} == turned | {"time": None}
    assert both["sanitized"] == round_up(by_hand(parts, seed=1) * (1.0 - 1e-12)) > 0.0
    assert (both["private"], both["sanitizer"]["order"]) == (False, ORDER)
    assert both["mechanism"] == {"name": "composition", "rounds": 2}
    assert {held["mechanism"]["name"] for held in both["rounds"]} == {"confident", "interactive"}
    assert both["queries"] == 120
    assert both["answers"] == sum(part["rounds"][0]["answers"] for part in parts)
    assert both["data_independent"]["epsilon"] > both["data_independent"]["labels_epsilon"]


AGAIN = (
    "these rounds were released {} time(s) before; another draw costs more privacy: publish the "
    "first report, or give --again to pay for all draws"
)


def test_a_second_draw_is_refused_and_one_with_again_is_charged(
    kept, pate, refused, released, folder
):
    kept("a.json")
    words = ["a.json", *DRAW, "--spend", "spent.json", "--seed", 5]
    previous = released(*words)
    before = (folder / "spent.json").read_bytes()
    refused(pate("release", *words, "--report", "r.json"), 7, AGAIN.format(1))
    assert (folder / "spent.json").read_bytes() == before
    assert not (folder / "r.json").exists()
    for times in (1, 2):
        following = released(*words, "--again")
        dearer = following["sanitized"] - previous["sanitized"]
        assert dearer == pytest.approx(draw_cost(), abs=1.01e-4)
        bounds = [drawn["data_independent"]["epsilon"] for drawn in (previous, following)]
        assert bounds[1] > bounds[0]
        earlier = f"{times} earlier release{'s' if times > 1 else ''} from the same votes"
        assert earlier in following["covers"]
        refused(pate("release", *words), 7, AGAIN.format(times + 1))
        previous = following
    assert draws_in(folder / "spent.json") == 3


def test_the_record_is_the_one_that_the_ledger_names(kept, pate, refused, released, folder, record):
    kept("a.json")
    released("a.json", *DRAW)
    assert stat.S_IMODE(record.stat().st_mode) == 0o644
    before = record.read_bytes()
    for words in ([], ["--spend", "s.json"], ["--force"]):
        refused(pate("release", "a.json", *DRAW, *words), 7, AGAIN.format(1))
    assert record.read_bytes() == before
    assert not {"s.json", "a.json.spent.json"} & {path.name for path in folder.iterdir()}


def test_a_record_that_cannot_be_kept_stops_the_release(kept, pate, refused, record, leftovers):
    kept("a.json")
    record_files.unlink(record)
    record.write_text("{}")
    message = f"{record} is not a record, or has another version"
    refused(pate("release", "a.json", *DRAW, "--report", "r.json"), 3, message)
    assert "r.json" not in leftovers()


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
    assert sum(b"these rounds were released 1 time(s) before" in line for line in said) == 1
    assert len(list(folder.glob("r?.json"))) == 1
    assert draws_in(record) == 1


def test_an_epsilon_that_a_run_published_itself_is_charged(kept, pate, folder, record):
    """The same ledger with and without the draw that its own report spent."""
    kept("a.json", *KEEP[:-1], "upper")
    quiet = json.loads((folder / "a.json").read_text())
    assert quiet["rounds"][0].pop("sanitizer")["kind"] == "upper"
    (folder / "quiet.json").write_text(sealed(quiet))
    record_files.unlink(record)
    runs = [pate("release", name, *DRAW, "--seed", 6) for name in ("a.json", "quiet.json")]
    spent, free = (json.loads(run.stdout) for run in runs)
    assert spent["sanitized"] - free["sanitized"] == pytest.approx(draw_cost(), abs=1.01e-4)
    assert runs[0].stderr.splitlines()[0] == (
        "pate: the rounds published 1 epsilon(s) of their own, and this report pays for "
        "them; aggregate --release none --ledger FILE avoids this"
    )
    assert "of their own" not in runs[1].stderr
    assert "1 earlier release from" in spent["covers"]
    assert spent["data_independent"]["epsilon"] > free["data_independent"]["epsilon"]


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
    (folder / "total.json").write_text(json.dumps(found))
    told = pate("verify", "total.json", "--table", "--without-dp-accounting")
    assert told.exit_code == 0, told.stdout
    found["spent"]["runs"][1]["external"]["epsilon"] = 0.1
    (folder / "total.json").write_text(json.dumps(found))
    assert pate("verify", "total.json", "--without-dp-accounting").exit_code == 10
