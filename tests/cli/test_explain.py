"""`pate explain` and `pate verify`: a report in words, and line by line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest

import pate_cli as pate_library
import reports
from pate_cli.core.noise import Noise
from pate_cli.disclosure.explain import explain
from pate_cli.disclosure.reader import read_report

NOISE = ("--threshold", 24, "--sigma1", 12, "--sigma2", 6)


@pytest.fixture
def released(pate, votes, folder):
    """A report and the labels it was written with."""
    done = pate("aggregate", votes, *NOISE, "-o", "l.csv", "--report", "r.json")
    assert done.exit_code == 0, done.stderr
    return "r.json", "l.csv"


def titles(found):
    return [section.title for section in found.sections]


def words(found):
    return " ".join(text for section in found.sections for text in section.texts)


def test_a_report_in_words(pate, released):
    report = json.loads(Path("r.json").read_text())
    told = pate("explain", "r.json")
    assert told.exit_code == 0
    flat = " ".join(told.stdout.split())
    assert report["run"] in flat
    assert report["labels"]["sha256"] in flat
    assert report["guarantee"]["summary"] in flat
    assert report["guarantee"]["adjacency"] in flat
    assert f"{report['answers']} of {report['queries']} queries were labelled" in flat
    assert max(map(len, told.stdout.splitlines())) <= 80
    sections = json.loads(pate("explain", "r.json", "--json").stdout)["sections"]
    assert [section["title"] for section in sections][:3] == [
        "What was done", "Promised", "To whom",
    ]  # fmt: skip
    assert all(section["texts"] for section in sections)


def test_a_report_from_a_pipe(pate, released):
    content = Path("r.json").read_bytes()
    assert pate("explain", "-", input=content).stdout == pate("explain", "r.json").stdout
    assert pate("verify", "-", "l.csv", input=content).exit_code == 0


def test_words_on_a_narrow_terminal(terminal, released):
    seen = re.sub(
        r"\x1b\[[0-9;]*m", "", terminal("stdout", "explain", "r.json", COLUMNS="40").decode()
    )
    # Nothing but a word that nothing may cut is longer.
    assert all(len(line.split()) == 1 for line in seen.splitlines() if len(line.rstrip()) > 40)


def test_what_is_not_claimed_is_not_explained_away(pate, votes, released):
    pate("aggregate", votes, *NOISE, "--seed", 1, "-o", "s.csv", "--report", "s.json")
    found = explain("s.json")
    assert "It rests on" not in titles(found)
    assert "Neither the labels nor this report as a promise" in words(found)
    assert "e^" not in words(found)


def test_words_of_a_refusal(votes, monkeypatch):
    monkeypatch.setattr(Noise, "comes_up", lambda _self, _log_chance: True)
    with pytest.raises(pate_library.RefusedError) as refused:
        pate_library.aggregate(votes, target_epsilon=1.5, max_queries=60)
    assert "60 queries were tested and none was labelled" in words(explain(refused.value.report))


def test_several_teachers_a_record(votes):
    report = pate_library.aggregate(votes, teachers_per_record=2, max_queries=20).report
    assert "No record trained more than 2 teachers." in words(explain(report))


def test_every_check_is_a_line(pate, released):
    told = pate("verify", *released, "--table", "--without-dp-accounting")
    assert told.exit_code == 0, told.stdout
    lines = told.stdout.splitlines()
    assert lines[0].startswith("ok: schema: ")
    assert lines.pop() == "verdict: holds"
    assert all(line.startswith(("ok: ", "passed over: ")) for line in lines)
    assert any(line.startswith("ok: labels: SHA-256 ") for line in lines)
    piped = json.loads(pate("verify", *released, "--without-dp-accounting").stdout)
    assert piped["holds"] is True
    assert [check["outcome"] for check in piped["checks"]] == [
        line.partition(": ")[0] for line in lines
    ]


def test_a_number_that_was_changed_is_exit_10(pate, released):
    report = json.loads(Path("r.json").read_text())
    report["epsilon"] -= 0.25
    Path("r.json").write_text(json.dumps(report))
    told = pate("verify", *released, "--table")
    assert told.exit_code == 10
    assert "FAILED: headline: epsilon is" in told.stdout
    assert told.stdout.endswith("\nverdict: does not hold: headline\n")
    assert told.stderr == "pate: does not hold: headline\n"


def test_what_nobody_can_check_is_exit_11(pate, votes, folder):
    words = ("--target-epsilon", 60, "--max-queries", 60, "-o", "t.csv", "--report", "t.json")
    assert pate("aggregate", votes, *NOISE, *words).exit_code == 0
    for name in ("t.json", "t.csv"):
        assert Path(name).exists()
    told = pate("verify", "t.json", "t.csv", "--table", "--without-dp-accounting")
    left = "earlier attempts, labels by parameters"
    assert told.stdout.splitlines()[-1] == f"verdict: holds but for what is listed: {left}"
    assert (told.exit_code, told.stderr) == (11, f"pate: holds but for what is listed: {left}\n")
    piped = json.loads(pate("verify", "t.json", "t.csv").stdout)
    assert (piped["holds"], piped["not_checkable"]) == (False, left.split(", "))


def test_noise_from_a_seed_is_exit_10(pate, votes, folder):
    pate("aggregate", votes, *NOISE, "--seed", 1, "-o", "s.csv", "--report", "s.json")
    told = pate("verify", "s.json", "s.csv", "--table")
    assert (told.exit_code, told.stderr) == (10, "pate: does not hold: promise\n")


def test_no_command_to_the_terminal_comes_through(pate, released):
    whole = json.loads(Path("r.json").read_text())
    for inner, name in (("guarantee", "summary"), ("tool", "version"), ("mechanism", "name")):
        Path("x.json").write_text(
            json.dumps(whole | {inner: whole[inner] | {name: "a\x1b[2J\x9b1m\x07\rb\u202e"}})
        )
        for words in (("verify", "x.json", "--table"), ("explain", "x.json"), ("verify", "x.json")):
            told = pate(*words)
            shown = told.stdout + told.stderr
            assert all(c.isprintable() for c in shown.replace("\n", "")), words


def test_labels_of_another_run_are_exit_10(pate, votes, released):
    pate("aggregate", votes, *NOISE, "-o", "other.csv", "--report", "other.json")
    told = pate("verify", "r.json", "other.csv", "--table")
    assert told.exit_code == 10
    assert f"the report names {read_report('r.json').report.labels.sha256}" in told.stdout


def test_what_is_no_report_is_one_line(pate, refused, votes, released):
    pate("aggregate", votes, "--ledger", "x.ledger", "-o", "x.csv", "--report", "x.json")
    for name, message in (
        ("x.ledger", "x.ledger is a ledger, which is SECRET; give the public report"),
        (
            "l.csv",
            "l.csv is no report, or a damaged one: it is not valid JSON; "
            "give the file that --report wrote",
        ),
        ("gone.json", "cannot read gone.json: No such file or directory"),
    ):
        for verb in ("explain", "verify"):
            refused(pate(verb, name), 3, message)
    refused(
        pate("verify", "r.json", "gone.csv"), 3, "cannot read gone.csv: No such file or directory"
    )


def test_a_summary_says_how_to_check_it(screen, votes, folder):
    seen = screen("aggregate", votes, *NOISE, "-o", "my labels.csv")
    assert "pate verify 'my labels.report.json' 'my labels.csv'" in " ".join(seen.split())


@pytest.fixture
def guessed(pate, votes, folder):
    """A report with a prior, the labels and the guesses."""
    np.save("guesses.npy", np.array([*[0] * 50, *[-1] * 10]))
    done = pate(
        "aggregate", votes, *NOISE, "--prior", "guesses.npy", "--prior-weight", 5,
        "-o", "g.parquet", "--report", "g.json",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    return "g.json", "g.parquet"


def test_what_a_prior_presupposes_in_words(guessed):
    report = read_report("g.json").report
    told = {section.title: " ".join(section.texts) for section in explain(report).sections}
    assert (
        "A public prior voted, too: 5 votes for its guess, where it had one, on 50 of 60 queries. "
        f"Its file has SHA-256 {report.prior.sha256}."
    ) in told["What was done"]
    assert "void if the guesses of the prior were fitted on the votes" in told["Promised"]
    assert report.prior.presupposed in told["It rests on"]
    assert "prior_weight" not in told["What was done"]


def test_what_no_prior_presupposes_is_not_said(released):
    assert "prior" not in words(explain("r.json"))


def test_rounds_say_which_prior_they_had():
    told = words(explain(reports.made("priors")[0]))
    for number in (1, 2):
        assert f"A public prior voted, too, in round {number}: " in told


def test_the_words_of_a_prior_are_ours(guessed):
    data = json.loads(Path("g.json").read_text())
    data["prior"]["presupposed"] = "It was audited."
    Path("g.json").write_text(json.dumps(data))
    told = words(explain("g.json"))
    assert "audited" not in told
    assert "these words are not ours" in told
    assert "voids everything" in told


def test_guesses_are_checked_by_their_hash(pate, guessed):
    def outcome(*more):
        told = pate("verify", *guessed, "--without-dp-accounting", "--table", *more)
        return told.exit_code, told.stdout

    code, seen = outcome()
    assert code == 11
    assert "passed over: prior by hash: its file was not given\n" in seen
    assert seen.endswith("verdict: holds but for what is listed: guesses\n")
    code, seen = outcome("--prior", "guesses.npy")
    assert code == 11
    assert "\nok: prior by hash: SHA-256 " in seen
    np.save("guesses.npy", np.zeros(60, dtype=int))
    code, seen = outcome("--prior", "guesses.npy")
    assert code == 10
    assert "\nFAILED: prior by hash: SHA-256 " in seen
