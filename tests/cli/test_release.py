"""`pate release`: one report of ledgers, reports and records, every draw of it paid for."""

from __future__ import annotations

import json
import math
import stat
from itertools import product

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
from slices import some

ORDER, BETA, SIGMA = 4.0, 0.03, 9.0
KEEP = ["--order", ORDER, "--beta", BETA, "--sigma-release", SIGMA, "--release", "none"]
DRAW = ["--beta", BETA, "--sigma-release", SIGMA]
STUDENT = ["--mechanism", "interactive", "--student", "student.npy", "--threshold", 8]


@pytest.fixture
def kept(pate, votes, folder, counts):
    """Run `aggregate` and keep its ledger under a name; the report is returned."""
    np.save(folder / "student.npy", (counts + 1) / (counts + 1).sum(axis=1, keepdims=True))

    def run(name, *words):
        given = words or KEEP
        result = pate("aggregate", votes, "-o", f"{name}.npy", "--ledger", name, *given)
        assert result.exit_code == 0, result.stderr
        return json.loads(result.stdout)

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


@pytest.fixture
def forget(folder, record):
    """Remove the records of the votes and beside all ledgers, as if nothing had been released."""

    def remove():
        for kept in (record, *folder.glob("*.spent.json")):
            record_files.unlink(kept)

    return remove


def draws_in(path):
    """How many draws a record tells of."""
    return sum(run.kind == RunKind.RELEASE for run in SpendRecord.read(path).runs)


def mode_of(path):
    return stat.S_IMODE(path.stat().st_mode)


def timeless(report):
    """A report without what its draw alone has: the time, and a name that is random in a record."""
    if "spent" not in report:  # a seed's draw is in no record
        return {name: value for name, value in report.items() if name != "time"}
    *runs, drawn = report["spent"]["runs"]
    drawn = drawn | {"id": None, "time": None}
    return report | {"time": None, "spent": report["spent"] | {"runs": [*runs, drawn]}}


def draw_cost(shift):
    """ε_κ(λ) of the draw alone, from its formula."""
    w = 1.0 - (ORDER - 1.0) * (math.exp(2.0 * BETA) - 1.0)
    moved = ORDER * (1.0 + shift * (math.exp(BETA) - 1.0)) ** 2 / (2.0 * SIGMA**2 * w)
    return moved - BETA - math.log(w) / (2.0 * (ORDER - 1.0))


def by_hand(paths, *, seed, delta=1e-5):
    """The sanitized ε before rounding, from the files alone."""
    parts = [json.loads(path.read_text()) for path in paths]
    rdp = sum(part["rdp"][0] for part in parts)
    curve = np.sum([part["sensitivity"][0] for part in parts], axis=0)
    ceiling = sum(part["ceiling"][0] for part in parts)
    within = np.append(np.minimum(curve, ceiling), ceiling)
    smooth = max(level * math.exp(-BETA * d) for d, level in enumerate(within))
    failure = delta / 10.0
    shift = SIGMA * -ndtri(failure)
    normal = RunKey.of(seed).aside("release").normal(1)[0]
    log_delta = math.log(delta - failure)
    conversion = math.log(1 - 1 / ORDER) - (log_delta + math.log(ORDER)) / (ORDER - 1)
    return rdp + smooth * (shift + SIGMA * normal) + draw_cost(shift) + conversion


def test_one_ledger_is_released_as_theory_says(kept, released, folder):
    kept("a.json")
    report = released("a.json", *DRAW, "--seed", 1)
    wanted = by_hand([folder / "a.json"], seed=1)
    assert report["sanitized"] == round_up(max(wanted * (1.0 - 1e-12), 0.0))
    assert report["private"] is False
    assert report["sanitizer"]["order"] == ORDER
    assert report["rounds"][0]["queries"] == 60


def test_two_rounds_are_composed_and_the_second_may_look_at_the_first(
    kept, released, folder, record
):
    kept("a.json")
    kept("b.json", *KEEP, *STUDENT)
    paths = [folder / "a.json", folder / "b.json"]
    first, second = (Ledger.from_json(path.read_text()) for path in paths)
    total = first + second
    parts = [json.loads(path.read_text()) for path in paths]
    assert total.rdp[0] == pytest.approx(sum(part["rdp"][0] for part in parts), rel=1e-12)
    np.testing.assert_allclose(
        total.sensitivity[0], np.sum([part["sensitivity"][0] for part in parts], axis=0), rtol=1e-12
    )
    nothing_drawn = record.read_bytes()
    both = released("a.json", "b.json", *DRAW, "--seed", 1)
    record.write_bytes(nothing_drawn)
    turned = released("b.json", "a.json", *DRAW, "--seed", 1)
    assert timeless(both) == timeless(turned)
    wanted = by_hand(paths, seed=1)
    assert both["sanitized"] == round_up(wanted * (1.0 - 1e-12)) > 0.0
    assert both["mechanism"] == {"name": "composition", "rounds": 2}
    assert {held["mechanism"]["name"] for held in both["rounds"]} == {"confident", "interactive"}
    assert both["queries"] == 120
    assert both["answers"] == sum(part["rounds"][0]["answers"] for part in parts)
    assert both["data_independent"]["epsilon"] > both["data_independent"]["labels_epsilon"]


def test_the_same_ledger_twice_is_refused(kept, pate, refused, folder, leftovers):
    kept("a.json")
    message = "two ledgers have the same round; give every ledger once"
    refused(pate("release", "a.json", "a.json", "--report", "r.json"), 3, message)
    (folder / "copy.json").write_bytes((folder / "a.json").read_bytes())
    refused(pate("release", "a.json", "copy.json", "--report", "r.json"), 3, message)
    assert "r.json" not in leftovers()


AGAIN = (
    "these rounds were released {} time(s) before; another draw costs more privacy: publish the "
    "first report, or give --again to pay for all draws"
)


def test_a_second_draw_is_refused_and_one_with_again_is_charged(
    kept, pate, refused, released, folder
):
    kept("a.json")
    words = ["a.json", *DRAW, "--spend", "spent.json", "--seed", 5]
    first = released(*words)
    record = folder / "spent.json"
    assert mode_of(record) == 0o644
    before = record.read_bytes()
    refused(pate("release", *words), 7, AGAIN.format(1))
    refused(pate("release", *words, "--report", "r.json"), 7, AGAIN.format(1))
    assert record.read_bytes() == before
    assert not (folder / "r.json").exists()
    price = draw_cost(SIGMA * -ndtri(1e-6))
    previous = first
    for times in (1, 2):
        following = released(*words, "--again")
        dearer = following["sanitized"] - previous["sanitized"]
        assert dearer == pytest.approx(price, abs=1.01e-4)
        bounds = [drawn["data_independent"]["epsilon"] for drawn in (previous, following)]
        assert bounds[1] > bounds[0]
        earlier = f"{times} earlier release{'s' if times > 1 else ''} from the same votes"
        assert earlier in following["covers"]
        refused(pate("release", *words), 7, AGAIN.format(times + 1))
        previous = following
    assert mode_of(record) == 0o644
    assert draws_in(record) == 3


def held(report):
    return {text["id"] for text in report["statements"] if text["holds"]}


def test_a_second_draw_is_refused_though_nothing_was_asked_for(
    kept, pate, refused, released, folder, record
):
    """The record is the one that the ledger names, whatever the flags."""
    kept("a.json")
    first = released("a.json", *DRAW)
    assert mode_of(record) == 0o644
    assert not (folder / "a.json.spent.json").exists()
    before = record.read_bytes()
    for words in ([], ["--spend", "s.json"], ["--force"]):
        refused(pate("release", "a.json", *DRAW, *words), 7, AGAIN.format(1))
    assert record.read_bytes() == before
    assert not (folder / "s.json").exists()
    second = released("a.json", *DRAW, "--again")
    assert "1 earlier release from" in second["covers"]
    assert second["data_independent"]["epsilon"] > first["data_independent"]["epsilon"]
    assert draws_in(record) == 2


def test_a_record_that_cannot_be_kept_stops_the_release(
    kept, pate, refused, record, leftovers, forget
):
    kept("a.json")
    forget()
    record.mkdir()
    result = pate("release", "a.json", *DRAW, "--report", "r.json")
    assert result.exit_code in (3, 6)
    assert result.stdout == ""
    assert "r.json" not in leftovers()
    record.rmdir()
    record.write_text("{}")
    message = f"{record} is not a record, or has another version"
    refused(pate("release", "a.json", *DRAW), 3, message)
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
while time.monotonic() < until and len(list(pathlib.Path().glob("ready.?"))) < {all}:
    time.sleep(0.01)
"""


RACES = list(product(["of the votes", "beside the ledger", "s.json"], [2, 3]))


@pytest.mark.parametrize(("how", "together"), some(RACES, 4))
def test_releases_at_once_draw_once(kept, patched, folder, record, forget, how, together):
    kept("a.json")
    if how == "beside the ledger":
        forget()
    place = {"of the votes": record, "s.json": folder / "s.json"}.get(
        how, folder / "a.json.spent.json"
    )
    words = ["release", "a.json", *DRAW, *(["--spend", how] if how == "s.json" else []), "-q"]
    started = [
        patched(RACE.format(mine=mine, all=together), *words, "--report", f"r{mine}.json")
        for mine in range(together)
    ]
    said = [process.communicate(timeout=60)[1] for process in started]
    assert sorted(process.returncode for process in started) == [0] + [7] * (together - 1)
    assert sum(b"these rounds were released 1 time(s) before" in line for line in said) == (
        together - 1
    )
    assert len(list(folder.glob("r?.json"))) == 1
    assert draws_in(place) == 1


def test_an_epsilon_that_a_run_published_itself_is_charged(kept, pate, folder, forget):
    """The same ledger with and without the draw that its own report spent."""
    kept("a.json", *KEEP[:-1], "upper")
    quiet = json.loads((folder / "a.json").read_text())
    assert quiet["rounds"][0].pop("sanitizer")["kind"] == "upper"
    (folder / "quiet.json").write_text(sealed(quiet))
    forget()
    spent, free = (pate("release", name, *DRAW, "--seed", 6) for name in ("a.json", "quiet.json"))
    dearer = [json.loads(run.stdout)["sanitized"] for run in (spent, free)]
    price = draw_cost(SIGMA * -ndtri(1e-6))
    assert dearer[0] - dearer[1] == pytest.approx(price, abs=1.01e-4)
    assert spent.stderr.splitlines()[0] == (
        "pate: the rounds published 1 epsilon(s) of their own, and this report pays for "
        "them; aggregate --release none --ledger FILE avoids this"
    )
    assert "of their own" not in free.stderr
    assert "1 earlier release from" in json.loads(spent.stdout)["covers"]
    totals = [json.loads(run.stdout)["data_independent"]["epsilon"] for run in (spent, free)]
    assert totals[0] > totals[1]


# ---------------------------------------------------------------- accounts: records and reports


PAIR = {"epsilon": 0.5, "delta": 1e-6, "adjacency": "replace-one", "covers": "a histogram"}
CURVE = {"orders": [2, 4, 8], "rdp": [0.1, 0.2, 0.4], "adjacency": "add-or-remove-one"}


@pytest.fixture
def beside(folder):
    """The words that add two external parts, a pair and a curve."""
    (folder / "pair.json").write_text(json.dumps(PAIR))
    (folder / "curve.json").write_text(json.dumps(CURVE))
    return ["--external", "pair.json", "--external", "curve.json"]


@pytest.fixture
def ran(pate, votes, folder):
    """Run `aggregate` with these words; the file of its report is named, and its content given."""

    def run(name, *words, code=0):
        result = pate("aggregate", votes, "-o", f"{name}.npy", "--report", f"{name}.json", *words)
        assert result.exit_code == code, result.stderr
        return json.loads((folder / f"{name}.json").read_text())

    return run


def kinds(report):
    runs = report["spent"]["runs"]
    told = [run["settings"].get("target", {}) if "settings" in run else None for run in runs]
    return ["external" if one is None else "target" if one else "worst-case" for one in told]


def is_a_total_of(report, number):
    """What a total says of itself, its headline and its statements."""
    spent = report["spent"]
    jsonschema.validate(report, report_schema())
    assert len(spent["runs"]) == number
    assert (report["private"], report["sound"]) == (True, True)
    assert (report["epsilon_kind"], report.get("sanitized")) == ("total", None)
    assert report["epsilon"] == round_up(spent["epsilon"])
    assert report["delta"] == spent["delta"]
    assert spent["epsilon"] <= spent["sum_epsilon"] or number == 1
    assert {"all-votes", "total", "sum"} <= held(report)
    assert not any(run["id"] in ("", None) for run in spent["runs"])
    # The names of the holder's files stay in the record.
    assert not any("votes" in run or "drawn_from" in run for run in spent["runs"])


def test_a_record_and_external_parts_are_one_total(ran, pate, released, record, beside, folder):
    ran("a", "--max-queries", 20)
    alone = released(record)
    is_a_total_of(alone, 1)
    found = released(record, *beside)
    is_a_total_of(found, 3)
    assert kinds(found) == ["worst-case", "external", "external"]
    assert found["epsilon"] > alone["epsilon"]
    assert found["delta"] == 1.1e-5
    assert [part.get("covers") for part in found["external"]] == ["a histogram", None]
    assert [part["name"] for part in found["external"]] == ["pair.json", "curve.json"]
    assert "external" in held(found)
    assert len(SpendRecord.read(record).runs) == 3
    (folder / "total.json").write_text(json.dumps(found))
    told = pate("verify", "total.json", "--table", "--without-dp-accounting")
    assert told.exit_code == 0, told.stdout
    found["spent"]["runs"][1]["external"]["epsilon"] = 0.1
    (folder / "total.json").write_text(json.dumps(found))
    assert pate("verify", "total.json", "--without-dp-accounting").exit_code == 10


def test_a_budget_that_a_release_would_exceed(
    kept, pate, refused, released, record, beside, folder
):
    kept("a.json")
    before = record.read_bytes()
    for words in (["a.json", *DRAW], ["a.json", *beside], [record, *beside]):
        line = refused(pate("release", *words, "--budget", 5, "--report", "r.json"), 5)
        assert line.startswith("pate: the budget is epsilon 5 at delta 0.001, and ")
        assert f" in {record} spent " in line
        assert "with this run the total would be" in line
        assert record.read_bytes() == before
        assert not (folder / "r.json").exists()
    assert released("a.json", *DRAW, "--budget", 9)["spent"]["epsilon"] <= 9
    after = record.read_bytes()
    refused(pate("release", record, "--budget", 5), 5)
    assert record.read_bytes() == after
