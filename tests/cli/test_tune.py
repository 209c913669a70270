"""`pate tune` from outside: what it prints can be run, is marked, and is refused when wrong."""

from __future__ import annotations

import json
import math
import shlex
import signal
import sys

import numpy as np
import pytest

from pate_cli.cli.tables import print_rule, print_tuned
from pate_cli.cli.terminal import Stopped
from pate_cli.mechanisms.synthetic import SyntheticEnsemble
from pate_cli.tuning import Search
from slices import whole

GRID = ("--threshold", "26,36", "--sigma1", "24", "--sigma2", "8,12")
SHAPE = ("--teachers", 40, "--classes", 4, "--queries", 60)
KEYS = {
    "schema_version",
    "releasable",
    "complete",
    "analysis",
    "goal",
    "basis",
    "grid",
    "floor",
    "winner",
    "command",
    "other_ways",
    "pareto",
}


def _run(pate, command, votes, *more):
    program, *words = shlex.split(command)
    assert program == "pate"
    done = pate(*[str(votes) if word == "VOTES" else word for word in words], *more)
    assert done.exit_code == 0, done.stderr
    return json.loads(done.stdout)


def test_the_winners_command_runs_and_meets_a_data_independent_target(pate, votes):
    result = pate("tune", votes, "--release", "none", "--target-epsilon", 6, "--front", *GRID)
    assert result.exit_code == 0, result.stderr
    tuned = json.loads(result.stdout)
    assert set(tuned) == KEYS
    assert tuned["releasable"] is False
    assert "pate: NOT RELEASABLE" in result.stderr
    winner = tuned["winner"]
    report = _run(pate, tuned["command"], votes, "--seed", 1)
    assert report["epsilon"] == winner["epsilon"] <= 6
    assert report["queries"] == winner["queries"]
    assert report["mechanism"]["sigma2"] == winner["sigma2"]
    if winner["max_answers"] is not None:
        assert report["max_answers"] == winner["max_answers"]
    assert tuned["floor"] <= winner["epsilon"]
    assert sum(winner["cost_shares"].values()) == pytest.approx(1.0)


def test_votes_from_a_pipe_are_read_once(pate, votes):
    words = ("--release", "none", "--target-epsilon", 6, *GRID)
    told = pate("tune", votes, *words)
    piped = pate("tune", "-", *words, input=votes.read_bytes())
    assert piped.exit_code == 0, piped.stderr
    assert "standard input: " in piped.stderr
    found, expected = json.loads(piped.stdout), json.loads(told.stdout)
    assert shlex.split(found.pop("command"))[2] == "-"
    assert shlex.split(expected.pop("command"))[2] == str(votes)
    assert found == expected


def test_the_winners_command_releases_with_the_parameters_found(pate, votes):
    words = ["--answers", 20, "--release", "upper", "--classes", 4, "--delta", "1e-4"]
    tuned = json.loads(pate("tune", votes, *words, *GRID).stdout)
    winner = tuned["winner"]
    assert winner["expected_answers"] >= 20
    assert "--classes 4" in tuned["command"]
    report = _run(pate, tuned["command"], votes, "--seed", 1)
    assert report["delta"] == 1e-4
    sanitized = report["sanitized"]
    assert sanitized["order"] == winner["order"]
    assert sanitized["beta"] == winner["beta"]
    assert sanitized["sigma_release"] == winner["sigma_release"]
    # One draw, five standard deviations.
    assert abs(sanitized["epsilon"] - winner["epsilon_mean"]) <= 5 * winner["epsilon_sd"] + 1e-4
    assert 0.0 < winner["cost_shares"]["selecting"] < 1.0


@whole
def test_a_target_is_tuned_with_the_bound_of_its_test(pate, folder):
    ensemble = SyntheticEnsemble(teachers=40, classes=2, queries=60, agreement=0.95)
    votes = folder / "two.npy"
    np.save(votes, ensemble.draw(1)[0])
    words = ["--release", "target", "--bound", "conditional", "--answers", 20, "--sigma2", "6,10"]
    tuned = json.loads(pate("tune", votes, *words).stdout)
    winner = tuned["winner"]
    assert tuned["grid"]["untested"] is True
    assert (winner["release"], winner["bound"]) == ("target", "conditional")
    assert winner["expected_answers"] >= 20
    # What it prints runs, and fares as it says.
    program, verb, path, *options = shlex.split(tuned["command"])
    assert (program, verb) == ("pate", "aggregate")
    report = pate(verb, path, *options, "--seed", 1)
    assert report.exit_code in {0, 8}, report.stderr
    tested = json.loads(report.stdout)["tested"]
    assert (tested["bound"], tested["target"]) == ("conditional", winner["epsilon"])
    fares = json.loads(pate("cost", path, *options, "--json").stdout)["target"]
    assert fares["pass_probability"] >= winner["pass_probability"]
    assert fares["queries"] == winner["queries"]


def test_public_votes_make_it_releasable(pate, votes):
    words = ["--answers", 10, "--release", "none", "--public-votes"]
    result = pate("tune", votes, *words, *GRID)
    assert json.loads(result.stdout)["releasable"] is True
    assert "NOT RELEASABLE" not in result.stderr


def test_synthetic_votes(pate):
    recipe = "teachers=40,classes=4,queries=60,agreement=0.9,seed=3"
    words = ["--synthetic", recipe, "--answers", 20, "--release", "none", *GRID]
    first, second = (json.loads(pate("tune", *words).stdout) for _ in range(2))
    assert first == second
    assert first["releasable"] is True
    assert first["basis"] == {
        "votes": "synthetic",
        "teachers": 40,
        "classes": 4,
        "queries": 60,
        "agreement": 0.9,
        "spread": 0.3,
        "confusion": 0.3,
        "imbalance": 0.0,
        "seed": 3,
    }
    assert 0.5 < first["winner"]["accuracy_at_least"] <= first["winner"]["agreement"]


def test_the_rule_of_thumb(pate, votes):
    result = pate("tune", "--rule-of-thumb", "--target-epsilon", 4, *SHAPE)
    assert result.exit_code == 0, result.stderr
    rules = json.loads(result.stdout)
    order = rules["rule_of_thumb"]["order"]
    assert order == pytest.approx(1.0 + 2.0 * math.log(1e5) / 4.0, rel=5e-3)
    assert rules["rule_of_thumb"]["beta"] == pytest.approx(0.25 / order, rel=5e-3)
    assert rules["releasable"] is True
    # The public rule is what a release does without further flags.
    report = json.loads(pate("aggregate", votes, "--seed", 1, "--release", "upper").stdout)
    for name in ("order", "beta", "sigma_release"):
        assert report["sanitized"][name] == rules["public_rule"][name]
    thumb = _run(pate, rules["command"], votes, "--seed", 1, "--force")
    assert thumb["sanitized"]["sigma_release"] == rules["rule_of_thumb"]["sigma_release"]

    # Either line says what it costs, or reaches the target.
    assert not rules["meets_target"]
    assert thumb["epsilon"] <= rules["rule_of_thumb"]["data_independent_epsilon"]
    found = json.loads(pate(*shlex.split(rules["plan_command"])[1:]).stdout)
    assert found["target_epsilon"] == 4
    assert found["teachers"] == 40


@pytest.fixture
def prior(tmp_path, counts):
    """Guesses that agree with the teachers on nine queries of ten."""
    path, guesses = tmp_path / "guesses.npy", counts.argmax(axis=1)
    guesses[::10] = (guesses[::10] + 1) % 4
    guesses[5] = -1
    np.save(path, guesses)
    return path


def test_a_prior_is_weighed_and_its_command_runs(pate, votes, prior, capsys, monkeypatch):
    words = ["--prior", prior, "--prior-weight", "0,20%", "--answers", 20, "--release", "none"]
    tuned = json.loads(pate("tune", votes, *words, *GRID).stdout)
    assert set(tuned) == {*KEYS, "prior"}
    found, winner = tuned["prior"], tuned["winner"]
    assert (found["weights"], found["guesses"], winner["prior_weight"]) == ([0, 8], 59, 8)
    assert found["without"]["prior_weight"] == 0
    assert found["without"]["meets_goal"] is True
    assert found["without"]["epsilon"] >= winner["epsilon"]
    report = _run(pate, tuned["command"], votes, "--seed", 1)
    assert report["epsilon"] == winner["epsilon"]
    assert report["mechanism"]["prior_weight"] == 8
    monkeypatch.setenv("COLUMNS", "200")
    print_tuned(tuned)
    shown = capsys.readouterr().out
    assert "prior weight 8, " in shown
    assert "of them equal to the teachers' plurality" in shown
    epsilon = found["without"]["epsilon"]
    assert f"without the prior: {found['without']['expected_answers']:.1f} answers at" in shown
    assert f" at epsilon {epsilon:.4f}, " in shown
    print_tuned(tuned | {"prior": found | {"without": found["without"] | {"meets_goal": False}}})
    assert "the goal is out of reach; closest is 2" in capsys.readouterr().out
    print_tuned(tuned | {"winner": winner | {"prior_weight": 0}})
    assert "the prior buys nothing here" in capsys.readouterr().out


def test_a_target_is_tuned_with_a_prior(pate, two_classes, tmp_path):
    votes, prior = two_classes, tmp_path / "guesses.npy"
    guesses = np.load(votes).argmax(axis=1)
    guesses[::10] = 1 - guesses[::10]
    np.save(prior, guesses)
    one = ("--threshold", 26, "--sigma1", 24, "--sigma2", 8, "--bound", "two-tail")
    words = ["--prior", prior, "--prior-weight", "8", "--answers", 5, "--release", "target"]
    result = pate("tune", votes, *words, *one, "--min-agreement", 0.5)
    assert result.exit_code == 0, result.stderr
    tuned = json.loads(result.stdout)
    assert tuned["winner"]["prior_weight"] == 8
    assert tuned["winner"]["expected_answers"] == pytest.approx(5.0, rel=0.2)
    words = ["--prior", prior, "--prior-weight", 8, "--max-queries", tuned["winner"]["queries"]]
    words += ["--target-epsilon", tuned["winner"]["epsilon"]]
    priced = json.loads(pate("cost", votes, *words, *one).stdout)
    chance = priced["target"]["pass_probability"]
    assert chance == pytest.approx(tuned["winner"]["pass_probability"], abs=1e-3)


def test_left_alone_it_tries_both_ways_and_takes_the_better(pate, votes):
    one = ("--threshold", 26, "--sigma1", 24, "--sigma2", 8)
    tuned = json.loads(pate("tune", votes, "--target-epsilon", 6, "--front", *one).stdout)
    winner, (other,) = tuned["winner"], tuned["other_ways"]
    assert {winner["release"], other["release"]} == {"none", "target"}
    assert winner["expected_answers"] >= other["expected_answers"]
    assert _run(pate, tuned["command"], votes, "--seed", 1)["epsilon"] <= 6
    shown = {name: value for name, value in winner.items() if name != "cost_shares"}
    assert shown in tuned["pareto"]


@pytest.mark.parametrize("suffix", ["npy", "csv", "parquet"])
def test_accuracy_with_the_truth(pate, votes, counts, folder, suffix):
    truth, path = counts.argmax(axis=1), folder / f"truth.{suffix}"
    truth[:6] = (truth[:6] + 1) % 4
    if suffix == "npy":
        np.save(path, truth)
    elif suffix == "csv":
        path.write_text("label\n" + "\n".join(map(str, truth)) + "\n")
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        pq.write_table(pa.table({"label": truth}), path)
    one = ["--threshold", 26, "--sigma1", 24, "--sigma2", 8, "--release", "none"]
    winner = json.loads(pate("tune", votes, "--truth", path, *one).stdout)["winner"]
    # All rows are asked, of which the plurality is wrong in the first six.
    assert winner["queries"] == 60
    agreement, accuracy = winner["agreement"], winner["accuracy_at_least"]
    assert accuracy < agreement
    assert accuracy == pytest.approx(agreement * 54 / 60, abs=0.05)


def test_what_is_out_of_reach_exits_with_5(pate, refused, votes):
    line = refused(pate("tune", votes, "--release", "none", "--target-epsilon", 0.01, *GRID), 5)
    assert line.startswith("pate: epsilon 0.01 is out of reach: the least is ")
    line = refused(pate("tune", votes, "--answers", 100, "--release", "none", *GRID), 5)
    assert line.startswith("pate: no setting gives 100 expected answers: 60 queries give ")


RECIPE = "teachers=5,classes=3,queries=9"
MADE_UP = ["--target-epsilon", "5", "--synthetic", RECIPE]
WRONG = {
    "nothing": (["--answers", "5"], "give VOTES or --synthetic; before there are votes"),
    "truth": ([*MADE_UP, "--truth", "t.npy"], "--truth needs VOTES"),
    "public": ([*MADE_UP, "--public-votes"], "--public-votes needs VOTES"),
    "rows": ([*MADE_UP, "--max-queries", "3"], "--max-queries needs VOTES"),
    "layout": ([*MADE_UP, "--layout", "counts"], "--layout needs VOTES"),
    "rule": (["--rule-of-thumb", *map(str, SHAPE)], "--rule-of-thumb needs --target-epsilon"),
    "rule without shape": (["--rule-of-thumb", "--target-epsilon", "2"], "without VOTES give"),
    "rule and grid": (
        ["--rule-of-thumb", "--target-epsilon", "2", *map(str, SHAPE), "--sigma1", "1,2"],
        "takes one --threshold",
    ),
    "both": (["--rule-of-thumb", "--synthetic", "teachers=5"], "leave out --synthetic"),
    "twice": (["--synthetic", "teachers=5,classes=3,queries=9", "--teachers", "5"], "itself"),
    "recipe": (["--synthetic", "teachers=5,classes=3"], "--synthetic needs queries"),
    "field": (["--synthetic", "teacher=5"], "got 'teacher=5'"),
    "number": (["--synthetic", "teachers=x"], "teachers must be a number, got 'x'"),
    "seed": (["--synthetic", "teachers=5,classes=3,queries=9,seed=-1"], "seed must be at least 0"),
    "range": (["--synthetic", "teachers=5,classes=3,queries=9,agreement=2"], "between 0 and 1"),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_flags(pate, refused, case):
    words, expected = WRONG[case]
    assert expected in refused(pate("tune", *words), 2)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--synthetic", "teachers=5,classes=3,queries=9"], "--synthetic looks at no votes"),
        (["--rule-of-thumb"], "--rule-of-thumb looks at no votes"),
        (["--queries", "5"], "use --max-queries"),
        (["--bound", "conditional", "--release", "none"], "--bound goes with --release target"),
        (["--sigma1", "0", "--answers", "5"], "sigma must be positive and finite, got 0"),
        (["--sigma2", "x"], "--sigma2 is a number of votes or a share of the teachers such as 80%"),
        (["--answers", "-1"], "answers must be positive and finite, got -1"),
        (["--min-agreement", "2"], "min_agreement must be between 0 and 1, got 2"),
        (["--plot", "front.gif"], "--plot writes .pdf, .png or .svg"),
        (["--max-queries", "0"], "--max-queries must be at least 1, got 0"),
    ],
)
def test_wrong_flags_with_votes(pate, refused, votes, words, expected):
    assert expected in refused(pate("tune", votes, *words), 2)


def test_truth_that_does_not_fit(pate, refused, votes, folder):
    np.save(folder / "short.npy", np.zeros(5, dtype=int))
    np.save(folder / "large.npy", np.full(60, 9))
    (folder / "bad.csv").write_text("a,b\n1,2\n")
    for name in ("short.npy", "large.npy", "bad.csv", "absent.csv", "absent.npy"):
        words = ["--truth", folder / name, "--answers", 5]
        assert "pate: " in refused(pate("tune", votes, *words, *GRID), 3)


def test_a_plot_without_matplotlib(pate, refused, votes, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    words = ["--answers", 5, "--plot", "front.svg", *GRID]
    line = refused(pate("tune", votes, *words), 2)
    assert line == (
        "pate: --plot needs matplotlib, which is optional: pip install 'pate-cli[plot]'"
    )


def test_a_plot(pate, refused, votes, folder):
    pytest.importorskip("matplotlib")
    words = ["--answers", 5, "--release", "none", "--plot", "front.png", *GRID]
    assert pate("tune", votes, *words).exit_code == 0
    assert (folder / "front.png").read_bytes().startswith(b"\x89PNG")
    assert (folder / "front.png").stat().st_mode & 0o777 == 0o600
    assert "front.png" in refused(pate("tune", votes, *words), 6)


def _interrupt_after(monkeypatch, calls, error=KeyboardInterrupt):
    run = Search.run

    def interrupted(self, progress, **rest):
        seen = []

        def advance(done):
            seen.append(done)
            if len(seen) == calls:
                raise error
            progress(done)

        return run(self, advance, **rest)

    monkeypatch.setattr(Search, "run", interrupted)


def test_a_termination_prints_it_too(pate, votes, monkeypatch):
    _interrupt_after(monkeypatch, 2, Stopped(signal.SIGTERM))
    result = pate("tune", votes, "--answers", 20, *GRID)
    assert result.exit_code == 143
    assert json.loads(result.stdout)["complete"] is False


@pytest.mark.parametrize("calls", [2, 5])
def test_ctrl_c_prints_the_best_so_far(pate, votes, monkeypatch, calls):
    _interrupt_after(monkeypatch, calls)
    result = pate("tune", votes, "--answers", 20, *GRID)
    assert result.exit_code == 130
    tuned = json.loads(result.stdout)
    assert tuned["complete"] is False
    assert tuned["winner"]["expected_answers"] >= 20
    assert "pate: interrupted: this is the best of an incomplete search" in result.stderr


def test_ctrl_c_before_anything_is_found(pate, votes, monkeypatch):
    def at_once(self, progress, **rest):
        raise KeyboardInterrupt

    monkeypatch.setattr(Search, "run", at_once)
    result = pate("tune", votes, "--answers", 20, *GRID)
    assert (result.exit_code, result.stdout) == (130, "")
    assert "nothing was released" in result.stderr


def test_tables_for_people(pate, votes, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    words = ["--answers", 20, "--release", "none", "--front", *GRID]
    result = json.loads(pate("tune", votes, *words).stdout)
    print_tuned(result)
    shown = capsys.readouterr().out
    assert "NOT RELEASABLE" in shown
    assert result["command"] in shown
    assert f"epsilon {result['winner']['epsilon']:.4f} at delta 1e-05, for all votes" in shown
    assert shown.count("\n") > len(result["pareto"]) > 1
    untested = {"mechanism": "gnmax", "threshold": None, "sigma1": None}
    print_tuned(
        result
        | {"winner": result["winner"] | untested}
        | {"pareto": [point | untested for point in result["pareto"]]}
    )
    shown = capsys.readouterr().out
    assert "no test (gnmax), sigma2 " in shown
    assert " - " in shown
    rules = json.loads(pate("tune", "--rule-of-thumb", "--target-epsilon", 4, *SHAPE).stdout)
    print_rule(rules)
    shown = capsys.readouterr().out
    assert rules["command"] in shown
    assert rules["plan_command"] in shown
    cost = rules["rule_of_thumb"]["made_up_epsilon"]
    assert f"The rule of thumb misses 4: {cost:.4f} even on made-up votes" in shown
