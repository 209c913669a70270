"""`--target-epsilon`: what is written when labels pass, when they are refused, and in between."""

from __future__ import annotations

import json
import re
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import pate_cli as library
import record_files
from pate_cli.accounting.cost_table import Tally
from pate_cli.core.errors import ParameterError
from pate_cli.core.noise import Noise
from pate_cli.core.words import Bound, MechanismName
from pate_cli.disclosure.profile import coin_orders, states_for
from pate_cli.disclosure.record import SpendRecord
from pate_cli.disclosure.runs import Outcome
from pate_cli.disclosure.target import TargetPlan
from pate_cli.files.document import encoded
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.planning.forecast import public_forecast
from pate_cli.planning.rule import SEARCHED_ROWS, choose, public_goal, rows_for
from pate_cli.planning.vote_model import like
from pate_cli.votes.vote_file import VoteFile
from slices import some

MECHANISM = ConfidentGNMax(40, 4, threshold=32.0, sigma1=24.0, sigma2=6.4)
RECORD = "votes.spent.json"
SETTINGS = ("--threshold", 32, "--sigma1", 24, "--sigma2", 6.4)
ROWS = ("--max-queries", 60, "--bound", "two-tail")
# Coins are set here, whatever chance they would have.
START = ("--min-pass", 0)
BARE = (*ROWS, *SETTINGS)
ALL = (*BARE, *START, "--spend", RECORD)


@pytest.fixture
def heads(monkeypatch):
    """A coin that says what the test wants; what it was asked is kept."""
    asked = []

    def toss(refuse):
        def comes_up(self, log_chance):
            asked.append(log_chance)
            return refuse

        monkeypatch.setattr(Noise, "comes_up", comes_up)
        return asked

    return toss


def attempts(path=RECORD):
    return [encoded(run) for run in SpendRecord.read(path).runs]


def spent_of(report):
    spent = report["spent"]
    return (len(spent["runs"]), spent["epsilon"], spent["delta"])


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_labels_that_pass_cost_the_target(pate, votes, folder, heads):
    heads(refuse=False)
    done = pate("aggregate", votes, "--target-epsilon", 1.5, *ALL, "-o", "labels.csv")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    assert (report["epsilon"], report["epsilon_kind"], report["sound"]) == (1.5, "target", True)
    assert report["tested"] == {
        "target": 1.5,
        "refusal_epsilon": 0.75,
        "orders": TargetPlan.of(1.5, delta=1e-5).orders.tolist(),
        "bound": "two-tail",
    }
    assert {one["id"] for one in report["statements"] if one["holds"]} == {
        "all-votes",
        "refusal",
    }
    assert "whatever the votes" in report["summary"]
    assert spent_of(report) == (1, 1.5, 1e-5)
    assert (folder / "labels.csv").read_text().count("\n") == 61
    assert stat.S_IMODE(Path(RECORD).stat().st_mode) == 0o644
    assert attempts()[0]["outcome"] == "labelled"


FEW_ORDERS = [8.0, 10.0, 12.5]
MORE_ORDERS = [4.0, 5.0, 6.0, 7.5, 9.5, 12.0, 15.25, 19.5]


@pytest.mark.parametrize(("classes", "expected"), some([(2, MORE_ORDERS), (4, FEW_ORDERS)], 2))
def test_the_bound_follows_from_the_shape_and_is_told(pate, request, heads, classes, expected):
    """Rows, teachers and classes are few enough for the dear one, unless it is refused."""
    heads(refuse=False)
    votes = request.getfixturevalue({2: "two_classes", 4: "votes"}[classes])
    asked = ("aggregate", votes, "--target-epsilon", 1.5, *ROWS[:2], *SETTINGS, *START, "--force")
    report = json.loads(pate(*asked).stdout)
    plan = TargetPlan.of(1.5, delta=1e-5)
    mechanism = replace(MECHANISM, classes=classes)
    orders = coin_orders(Bound.CONDITIONAL, mechanism, plan.orders).tolist()
    assert report["tested"]["bound"] == "conditional"
    assert report["tested"]["orders"] == orders == expected
    assert json.loads(pate(*asked, "--bound", "two-tail").stdout)["tested"]["bound"] == "two-tail"


def test_a_run_that_would_hardly_pass_is_not_started(pate, votes, folder, heads):
    """Nothing is spent or written; what the message says would pass is started."""
    asked = heads(refuse=False)
    words = ("aggregate", votes, "--target-epsilon", 1.5, *SETTINGS, "--bound", "two-tail")
    before = names(folder)
    done = pate(*words, "--max-queries", 60, "--spend", RECORD)
    assert done.exit_code == 5
    assert "--min-pass 0.5; nothing was drawn or spent" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 2
    assert (names(folder), asked) == (before, [])
    rows = int(re.search(r"--max-queries (\d+)", done.stderr)[1])
    assert 1 <= rows < 60
    assert pate(*words, "--max-queries", rows, "--no-record").exit_code == 0
    assert len(asked) == 1
    anyway = ("--min-pass", 0, "--no-record", "--force")
    assert pate(*words, "--max-queries", 60, *anyway).exit_code == 0
    warned = json.loads(pate(*words, "--max-queries", 60, "--dry-run").stdout)["warnings"]
    assert "would not start" in warned[0]


@pytest.mark.parametrize("least", [-0.1, 1.5])
def test_the_least_probability_is_one(least, votes):
    with pytest.raises(ParameterError, match="min_pass"):
        library.quote(votes, layout="counts", target_epsilon=1.5, min_pass=least)


def test_a_refusal_is_a_report_and_no_labels(pate, votes, folder, heads):
    heads(refuse=True)
    old = "query_id,label,source\n"
    (folder / "old.csv").write_text(old)
    done = pate("aggregate", votes, "--target-epsilon", 1.5, *ALL, "-o", "old.csv", "--force")
    assert done.exit_code == 8
    assert "did not pass" in done.stderr
    report = json.loads(done.stdout)
    assert (report["epsilon"], report["epsilon_kind"]) == (0.75, "refusal")
    assert (report["answers"], report["passed"]) == (0, False)
    assert "are not released" in report["summary"]
    assert spent_of(report) == (1, 0.75, 1e-5)
    assert (folder / "old.csv").read_text() == old
    assert names(folder) == ["old.csv", "old.report.json", RECORD]
    assert json.loads((folder / "old.report.json").read_text()) == report


def test_no_byte_of_a_label_leaves_on_a_refusal(pate, votes, heads):
    heads(refuse=True)
    words = ("-o", "-", "--format", "csv", "--report", "report.json")
    done = pate("aggregate", votes, "--target-epsilon", 1.5, *ALL, *words)
    assert (done.exit_code, done.stdout) == (8, "")
    assert json.loads(Path("report.json").read_text())["passed"] is False


def test_nothing_public_depends_on_the_votes_but_the_outcome(pate, votes, counts, tmp_path, heads):
    """Two vote files of one shape, both refused: the same report, but for its random id."""
    heads(refuse=True)
    other = tmp_path / "other" / "votes.npy"
    other.parent.mkdir()
    np.save(other, np.sort(counts, axis=1)[::-1])
    words = ("--target-epsilon", 1.5, *BARE, *START, "--force")
    reports = [
        re.sub(r'"(run|id)": "[0-9a-f]{32}"', "", pate("aggregate", *given, *words).stdout)
        for given in ((votes, "--spend", "one.json"), (other, "--spend", "two.json"))
    ]
    assert reports[0] == reports[1]
    assert '"refusal"' in reports[0]
    assert [set(one) for one in attempts("one.json")] == [set(one) for one in attempts("two.json")]


def test_the_coin_is_asked_what_the_plan_says(pate, votes, counts, heads):
    asked = heads(refuse=False)
    assert pate("aggregate", votes, "--target-epsilon", 1.5, *ALL).exit_code == 0
    plan = TargetPlan.of(1.5, delta=1e-5)
    states = states_for(Bound.TWO_TAIL, MECHANISM, highest_order=float(plan.orders[-1]))
    tally = Tally.of(states.of(MECHANISM, counts))
    ceiling = MECHANISM.worst_rdp(queries=60, answers=60, orders=plan.orders)
    assert asked == [
        pytest.approx(
            plan.coin(lambda order: states.profile(tally, order), ceiling).log_refuse, rel=1e-9
        )
    ]


def test_attempts_add_up_to_a_budget(pate, votes, heads):
    words = ("aggregate", votes, *ALL, "--force", "--budget", 3.0)
    heads(refuse=True)
    assert pate(*words, "--target-epsilon", 1.6).exit_code == 8
    heads(refuse=False)
    done = pate(*words, "--target-epsilon", 1.5)
    assert spent_of(json.loads(done.stdout)) == (2, 2.3, 2e-5)
    before = attempts()
    over = pate(*words, "--target-epsilon", 1.2)
    assert over.exit_code == 5
    assert "and 2 runs in votes.spent.json spent epsilon 2.3000 at delta 2e-05" in over.stderr
    assert "with this one it would be 3.5000" in over.stderr
    assert attempts() == before


def test_an_attempt_that_never_ended_counts_as_a_pass(pate, votes, heads):
    heads(refuse=False)
    assert pate("aggregate", votes, "--target-epsilon", 1.5, *ALL).exit_code == 0
    record = Path(RECORD)
    (run,) = SpendRecord.read(record).runs
    record_files.written(record, SpendRecord((replace(run, outcome=Outcome.PENDING),)))
    words = ("--target-epsilon", 1.5, *ALL, "--force", "--budget", 2.9)
    assert pate("aggregate", votes, *words).exit_code == 5


KILLED = """
import os
import pate_cli
from pate_cli.core.noise import Noise
def comes_up(self, log_chance):
    runs = pate_cli.SpendRecord.read("votes.spent.json").runs
    assert [run.outcome for run in runs] == ["pending"]
    os.kill(os.getpid(), 9)
Noise.comes_up = comes_up
from pate_cli.__main__ import main
main()
"""


def test_a_crash_leaves_the_attempt_pending(two_classes, folder):
    words = ("--target-epsilon", 1.5, "--max-queries", 60, "--spend", RECORD)
    done = subprocess.run(
        [sys.executable, "-c", KILLED, "aggregate", two_classes, *map(str, words)],
        capture_output=True,
        check=False,
    )
    assert done.returncode == -9, done.stderr
    assert attempts()[0]["outcome"] == "pending"
    assert done.stdout == b""


def test_the_record_knows_of_the_attempt_before_the_votes_are_read(pate, votes, monkeypatch, heads):
    heads(refuse=False)
    seen = []
    before = ConfidentGNMax.score

    def score(self, counts, **floor):
        if Path(RECORD).exists():
            seen.append(attempts()[0]["outcome"])
        return before(self, counts, **floor)

    monkeypatch.setattr(ConfidentGNMax, "score", score)
    assert pate("aggregate", votes, "--target-epsilon", 1.5, *ALL).exit_code == 0
    assert seen == ["pending"]


def test_votes_that_are_none_cost_nothing(pate, tmp_path, counts):
    counts = counts.copy()
    counts[40, 0] += 7
    np.save(tmp_path / "votes.npy", counts)
    words = ("--target-epsilon", 1.5, "--max-queries", 60)
    done = pate("aggregate", tmp_path / "votes.npy", *words)
    assert done.exit_code == 3
    assert not Path(RECORD).exists()


def test_an_interruption_costs_nothing_until_votes_are_priced(pate, votes, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    words = ("aggregate", votes, "--target-epsilon", 1.5, *ALL)
    with monkeypatch.context() as patch:
        patch.setattr(VoteFile, "batches", interrupted)
        assert pate(*words).exit_code == 130
    assert not Path(RECORD).exists()
    monkeypatch.setattr(ConfidentGNMax, "score", interrupted)
    done = pate(*words)
    assert done.exit_code == 130
    assert done.stderr.endswith(
        "interrupted; nothing was released; the run at epsilon 1.5 stays in votes.spent.json "
        "and counts\n"
    )
    assert [one["outcome"] for one in attempts()] == ["pending"]


def test_an_error_after_the_entry_says_that_the_attempt_counts(pate, votes, monkeypatch):
    def failing(*_, **__):
        raise MemoryError

    monkeypatch.setattr(ConfidentGNMax, "score", failing)
    done = pate("aggregate", votes, "--target-epsilon", 1.5, *ALL)
    assert done.exit_code == 1
    assert "the run at epsilon 1.5 stays in votes.spent.json" in done.stderr.splitlines()[-1]


def test_a_target_met_whatever_the_votes_needs_no_coin(pate, votes, heads):
    asked = heads(refuse=True)
    done = pate("aggregate", votes, "--target-epsilon", 50, *ALL)
    report = json.loads(done.stdout)
    assert (done.exit_code, asked, report["tested"]) == (0, [], None)
    assert report["epsilon"] == report["data_independent"]["epsilon"] < 50
    assert report["epsilon_kind"] == "worst-case"
    assert "without a test" in report["summary"]
    assert report["spent"]["epsilon"] == report["epsilon"]


def test_a_target_out_of_reach_spends_nothing(pate, votes, folder):
    done = pate("aggregate", votes, "--target-epsilon", 0.05, *ALL)
    assert (done.exit_code, done.stdout) == (5, "")
    assert "the least is about" in done.stderr
    assert names(folder) == []


def test_two_folders_share_the_budget_of_their_votes(pate, votes, folder, monkeypatch, heads):
    """The cron job: it runs where it is put, and the account lies beside the votes."""
    heads(refuse=False)
    given = (*BARE[2:], *START, "--max-queries", 9)
    words = ("aggregate", votes, "--target-epsilon", 0.5, *given, "--budget", 0.6)
    for name, expected in (("monday", 0), ("tuesday", 5)):
        (folder / name).mkdir()
        monkeypatch.chdir(folder / name)
        done = pate(*words)
        assert done.exit_code == expected, done.stderr
    assert f"1 run in {votes}.spent.json spent epsilon 0.5000" in done.stderr
    assert names(folder / "tuesday") == []
    assert f"joins the record {votes}.spent.json" in done.stderr
    alone = pate(*words[:-2], "--no-record")
    assert json.loads(alone.stdout).get("spent") is None


def test_without_rows_the_target_decides_them(pate, votes, heads):
    heads(refuse=False)
    plan = TargetPlan.of(0.6, delta=1e-5, bound=Bound.TWO_TAIL)
    model = like(MECHANISM, rows=SEARCHED_ROWS)
    rows = rows_for(public_goal(model, plan, available=60), MECHANISM).rows
    words = ("--target-epsilon", 0.6, *SETTINGS, *START, "--bound", "two-tail")
    report = json.loads(pate("aggregate", votes, *words).stdout)
    assert report["queries"] == rows < 60


def test_without_settings_the_target_decides_them(pate, votes, heads):
    heads(refuse=False)
    plan = TargetPlan.of(1.5, delta=1e-5, bound=Bound.TWO_TAIL)
    asked = ("aggregate", votes, "--target-epsilon", 1.5, "--bound", "two-tail", *START)
    model = like(MECHANISM, rows=SEARCHED_ROWS)
    found = choose(public_goal(model, plan, available=60), MechanismName.CONFIDENT)
    report = json.loads(pate(*asked).stdout)
    assert report["queries"] == found.rows
    settled = {name: report["mechanism"][name] for name in found.settings.parameters}
    assert settled == found.settings.parameters
    part = ("--sigma1", 30, "--max-queries", 20, "--force", "--spend", "other.json")
    report = json.loads(pate(*asked, *part).stdout)
    assert (report["queries"], report["mechanism"]["sigma1"]) == (20, 30.0)
    goal = public_goal(model, plan, available=20, asked=20)
    found = choose(goal, MechanismName.CONFIDENT, given={"sigma1": 30.0})
    assert report["mechanism"]["sigma2"] == found.settings.sigma2


def test_a_budget_and_nothing_else_is_a_target(pate, two_classes, heads):
    heads(refuse=False)
    words = ("aggregate", two_classes, "--spend", RECORD, "--force")
    assert json.loads(pate(*words, "--budget", 1).stdout)["tested"]["target"] == 1.0
    report = json.loads(pate(*words, "--budget", 2.5).stdout)
    assert report["tested"]["target"] == 1.5
    assert report["spent"]["epsilon"] <= 2.5
    done = pate(*words, "--budget", 2.5)
    assert done.exit_code == 5
    assert "the budget is epsilon 2.5" in done.stderr
    # With settings it is a limit, as ever.
    assert pate(*words, "--budget", 3, "--sigma2", 9).exit_code == 5


def test_a_dry_run_tells_the_chances_of_made_up_ensembles(pate, votes, folder):
    done = pate("aggregate", votes, "--target-epsilon", 1.5, *ALL, "--dry-run")
    found = json.loads(done.stdout)["target"]
    plan = TargetPlan.of(1.5, delta=1e-5, bound=Bound.TWO_TAIL)
    expected = public_forecast(MECHANISM, plan, rows=60)
    assert found["chances"] == expected.named_chances()
    worst, best = (found["chances"][end]["chance"] for end in ("worst", "best"))
    assert worst <= found["chances"]["mean"] <= best
    assert (found["needed"], found["refusal_epsilon"]) == (True, 0.75)
    assert found["expected"] == expected.at(expected.middle)
    assert names(folder) == []


def test_a_dry_run_warns_of_the_target_and_not_of_what_the_rows_cost_untested(pate, votes):
    words = ["aggregate", votes, "--target-epsilon", 1.5, "--delta", 1e-4, "--dry-run"]
    found = json.loads(pate(*words, "--sigma2", 1, "--max-queries", 60, "--min-pass", 0).stdout)
    assert found["data_independent"]["epsilon"] > 10.0
    assert not any("practically nothing" in each for each in found["warnings"])


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--target-epsilon", "1", "--ledger", "l.json"], "a ledger does not go with"),
        (["--target-epsilon", "1", "--release", "upper"], "--release does not go with"),
        (["--target-epsilon", "1", "--order", "8"], "--order does not go with"),
        (["--target-epsilon", "1", "--analysis", "paper"], "--analysis paper does not go with"),
        (["--target-epsilon", "1", "--refusal-epsilon", "2"], "--refusal-epsilon must be"),
        (["--target-epsilon", "0"], "--target-epsilon must be above 0"),
        (["--refusal-epsilon", "1"], "--refusal-epsilon goes with --target-epsilon"),
        (["--budget", "1", "--no-record"], "--budget needs a record"),
        (["--spend", "x.json", "--ensemble", "x"], "--spend and --ensemble contradict"),
        (["--ensemble", "../x"], "--ensemble is a name"),
        (["--release", "target"], "--target-epsilon"),
        (
            ["--target-epsilon", "1", "--mechanism", "lnmax", "--bound", "conditional", *ROWS[:2]],
            "lnmax",
        ),
    ],
)
def test_what_makes_no_sense(pate, votes, folder, words, message):
    done = pate("aggregate", votes, *words)
    assert done.exit_code == 2
    assert message in done.stderr
    assert done.stderr.count("\n") <= 2
    assert names(folder) == []


def test_a_composition_meets_a_target_or_is_refused(pate, votes):
    words = ("aggregate", votes, "--mechanism", "stability", *ROWS, "--spend", RECORD, "--force")
    assert pate(*words, "--target-epsilon", 500, "--max-epsilon", 500).exit_code == 0
    done = pate(*words, "--target-epsilon", 0.5)
    assert done.exit_code == 5
    assert "no Renyi cost to test" in done.stderr


@pytest.mark.parametrize("mechanism", ["gnmax", "lnmax"])
def test_every_scored_mechanism_takes_a_target(pate, votes, heads, mechanism):
    asked = heads(refuse=False)
    noise = ("--sigma2", 6.4) if mechanism == "gnmax" else ()
    words = ("--mechanism", mechanism, "--target-epsilon", 1.5, *ROWS, *START, *noise)
    assert pate("aggregate", votes, *words).exit_code == 0
    assert len(asked) == 1


def test_cost_tells_how_a_target_would_fare(pate, two_classes, screen):
    found = json.loads(pate("cost", two_classes, "--target-epsilon", 1.5, *BARE).stdout)["target"]
    assert (found["epsilon"], found["queries"], found["looked_at"]) == (1.5, 60, 60)
    least = found["smallest_epsilon"]
    assert list(least) == ["0.9", "0.977", "0.999"]
    assert least["0.9"] <= least["0.977"] <= least["0.999"]
    again = screen("cost", two_classes, "--target-epsilon", least["0.977"], *BARE)
    chance = re.search(r"60 queries pass with probability ([\d.]+)", again)
    assert float(chance[1]) >= 0.977
    assert "all 60 of the first 60 queries would pass" in again
    assert "smallest target that passes" in again


def test_smooth_sensitivity_shows_the_cost_by_distance(pate, votes):
    found = json.loads(pate("smooth-sensitivity", votes, "--order", 8).stdout)
    within = found["cost_by_distance"]
    assert len(within) == len(found["local_sensitivity"])
    assert within[0] == pytest.approx(found["rdp"], rel=1e-12)
    assert within == sorted(within)
    paper = json.loads(pate("smooth-sensitivity", votes, "--analysis", "paper").stdout)
    assert paper["cost_by_distance"] == []
