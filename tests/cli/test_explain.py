"""`pate explain` and `pate verify`: a report in words, and line by line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pate_cli as pate_library
import reports
from pate_cli.core.noise import Noise
from pate_cli.disclosure.reader import read_report
from pate_cli.verbs.signatures import explain

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
    assert report["summary"] in flat
    assert report["adjacency"] in flat
    assert f"{report['answers']} of {report['queries']} queries were labelled" in flat
    assert max(map(len, told.stdout.splitlines())) <= 80
    sections = json.loads(pate("explain", "r.json", "--json").stdout)["sections"]
    assert [section["title"] for section in sections][:3] == [
        "What is promised", "What was done", "Who is protected",
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
    assert titles(found) == ["Nothing is promised", "What was done"]
    assert "Publish neither the labels nor this report" in words(found)
    assert "e^" not in words(found)


def test_a_forged_report_has_nothing_to_sign(pate, released):
    """Whatever was changed, in the text and on the page."""
    report = json.loads(Path("r.json").read_text())
    Path("r.json").write_text(json.dumps(report | {"epsilon": 0.125}))
    told = pate("explain", "r.json")
    assert told.exit_code == 0
    assert told.stdout.startswith("Nothing is promised\n  This report does not hold: ")
    assert pate("explain", "r.json", "--html", "page.html").exit_code == 0
    for words in (told.stdout, Path("page.html").read_text()):
        assert "0.125" not in words
        assert "Signature" not in words
        assert report["run"] not in words


def test_words_of_a_refusal(two_classes, monkeypatch):
    monkeypatch.setattr(Noise, "comes_up", lambda _self, _log_chance: True)
    with pytest.raises(pate_library.RefusedError) as refused:
        pate_library.aggregate(two_classes, target_epsilon=1.5, max_queries=60, min_pass=0.0)
    assert "0 of 60 queries were labelled" in words(explain(refused.value.report))


def test_every_check_is_a_line(pate, released):
    told = pate("verify", *released, "--table", "--without-dp-accounting")
    assert told.exit_code == 0, told.stdout
    lines = told.stdout.splitlines()
    assert lines[0].startswith("ok: numbers and words: ")
    assert lines.pop() == (
        "Every check that could be made passed. Not checked: whether runs are missing, and "
        "what earlier ones did; settings that the labels carry."
    )
    epsilon, delta = (json.loads(Path("r.json").read_text())[name] for name in ("epsilon", "delta"))
    assert lines.pop() == f"verdict: holds: epsilon {epsilon:.4f} at delta {delta:g}"
    assert all(line.startswith(("ok: ", "not check")) for line in lines)
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
    assert "FAILED: numbers and words: epsilon is" in told.stdout
    assert "\nverdict: does not hold: numbers and words\n" in told.stdout
    assert told.stderr == "pate: does not hold: numbers and words\n"


def test_what_was_not_checked_is_exit_11_where_that_is_asked_for(pate, votes, folder):
    words = ("--target-epsilon", 60, "--max-queries", 60, "-o", "t.csv", "--report", "t.json")
    assert pate("aggregate", votes, *NOISE, *words).exit_code == 0
    for name in ("t.json", "t.csv"):
        assert Path(name).exists()
    left = ["whether runs are missing, and what earlier ones did", "settings that the labels carry"]
    said = f"Every check that could be made passed. Not checked: {'; '.join(left)}."
    told = pate("verify", "t.json", "t.csv", "--table", "--without-dp-accounting")
    assert told.stdout.splitlines()[-1] == said
    assert (told.exit_code, told.stderr) == (0, "")
    strict = pate("verify", "t.json", "t.csv", "--strict", "--without-dp-accounting")
    assert (strict.exit_code, strict.stderr) == (11, f"pate: {said}\n")
    piped = json.loads(pate("verify", "t.json", "t.csv").stdout)
    assert (piped["holds"], piped["not_checked"]) == (True, left)


def test_noise_from_a_seed_is_exit_10(pate, votes, folder):
    pate("aggregate", votes, *NOISE, "--seed", 1, "-o", "s.csv", "--report", "s.json")
    told = pate("verify", "s.json", "s.csv", "--table")
    assert (told.exit_code, told.stderr) == (10, "pate: does not hold: promise\n")


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
    report = read_report("g.json")
    told = {section.title: " ".join(section.texts) for section in explain(report).sections}
    assert (
        "A public prior had 5 votes for each of 50 guesses, whose SHA-256 is "
        f"{report.prior.sha256}."
    ) in told["What was done"]
    assert report.prior.presupposed in told["What is promised"]
    assert "prior_weight" not in told["What was done"]


def test_rounds_say_which_prior_they_had():
    told = words(explain(reports.made("priors")[0]))
    for number in (1, 2):
        assert re.search(rf"Round {number}: teachers had .* A public prior had ", told)


def test_guesses_are_checked_by_their_hash(pate, guessed):
    def outcome(*more):
        told = pate("verify", *guessed, "--without-dp-accounting", "--table", *more)
        return told.exit_code, told.stdout

    code, seen = outcome()
    assert code == 0
    assert "not checked: the file of the prior: the file with SHA-256 " in seen
    assert "what the guesses of the prior were made of" in seen.splitlines()[-1]
    code, seen = outcome("--prior", "guesses.npy")
    assert code == 0
    assert "\nok: the file of the prior: SHA-256 " in seen
    np.save("guesses.npy", np.zeros(60, dtype=int))
    code, seen = outcome("--prior", "guesses.npy")
    assert code == 10
    assert "\nFAILED: the file of the prior: SHA-256 " in seen


def test_guesses_in_several_files_have_no_hash_of_a_file(pate, refused):
    np.save("v.npy", np.tile([[70, 30]], (60, 1)))
    guesses = np.arange(60) % 2
    Path("g").mkdir()
    for number, rows in enumerate(np.array_split(np.arange(60), 2)):
        table = pa.table({"query_id": rows, "label": guesses[rows]})
        pq.write_table(table, f"g/{number}.parquet")
    words = ["--mechanism", "gnmax", "--sigma2", 40, "--max-epsilon", 500, "--layout", "counts"]
    words += ["--prior", "g", "--prior-weight", 10, "-o", "l.csv", "--report", "l.report.json"]
    assert pate("aggregate", "v.npy", *words).exit_code == 0
    for given in ("g", "g/", "g/*.parquet", pq.read_table("g")):
        found = pate_library.verify("l.report.json", prior=given, with_dp_accounting=False)
        assert "the file of the prior" in {
            check.name for check in found.checks if check.outcome == "ok"
        }


def test_answers_are_quiet_on_request(pate, released):
    """The exit code says it all, and stderr why."""
    for verb, more in (("explain", ()), ("verify", ("l.csv", "--without-dp-accounting"))):
        done = pate(verb, "r.json", *more, "-q")
        assert (done.exit_code, done.stdout, done.stderr) == (0, "", "")
        for other in ("--json", "--table"):
            done = pate(verb, "r.json", "--quiet", other)
            assert (done.exit_code, done.stdout) == (2, "")
            assert f"--quiet and {other} contradict each other" in done.stderr
        done = pate(verb, "r.json", "--json", "--table")
        assert done.exit_code == 2
        assert "--json and --table contradict each other" in done.stderr
    done = pate("explain", "l.csv", "-q")
    assert (done.exit_code, done.stdout) == (3, "")
    assert done.stderr.startswith("pate: l.csv is no report")
    report = json.loads(Path("r.json").read_text())
    Path("r.json").write_text(json.dumps(report | {"epsilon": report["epsilon"] - 0.25}))
    done = pate("verify", "r.json", "l.csv", "-q")
    assert (done.exit_code, done.stdout, done.stderr) == (
        10,
        "",
        "pate: does not hold: numbers and words\n",
    )


def test_a_quiet_answer_has_eleven(pate, votes, folder):
    words = ("--target-epsilon", 60, "--max-queries", 60, "-o", "t.csv", "--report", "t.json")
    assert pate("aggregate", votes, *NOISE, *words).exit_code == 0
    done = pate("verify", "t.json", "t.csv", "-q", "--strict")
    assert (done.exit_code, done.stdout) == (11, "")
    assert done.stderr.startswith("pate: Every check that could be made passed. Not checked: ")


def test_words_are_the_same_in_a_pipe(pate, screen, released):
    told = pate("explain", "r.json")
    assert pate("explain", "r.json", "--table").stdout == told.stdout
    assert screen("explain", "r.json", "--table").split() == told.stdout.split()
    assert json.loads(screen("explain", "r.json", "--json")) == json.loads(
        pate("explain", "r.json", "--json").stdout
    )
    quick = ("verify", "r.json", "l.csv", "--without-dp-accounting")
    assert json.loads(screen(*quick, "--json")) == json.loads(pate(*quick).stdout)
    assert screen(*quick).split() == pate(*quick, "--table").stdout.split()


def test_reports_are_read_from_addresses(pate, released):
    """As aggregate writes them."""
    here = Path.cwd().as_uri()
    for words in (("explain",), ("verify", "--without-dp-accounting")):
        there = pate(words[0], f"{here}/r.json", *words[1:])
        assert (there.exit_code, there.stderr) == (0, "")
        assert there.stdout == pate(words[0], "r.json", *words[1:]).stdout
    done = pate("verify", f"{here}/r.json", f"{here}/l.csv", "--without-dp-accounting")
    assert done.exit_code == 0, done.stderr
    found = pate_library.verify(f"{here}/r.json", f"{here}/l.csv", with_dp_accounting=False)
    assert found.holds
    assert pate_library.explain(f"{here}/r.json").sections == explain("r.json").sections


@pytest.mark.parametrize("verb", ["explain", "verify"])
def test_an_address_without_a_report_is_one_line(verb, pate, refused, released):
    here = Path.cwd().as_uri()
    refused(pate(verb, f"{here}/gone.json"), 3, f"{here}/gone.json: no such file or folder")
    refused(
        pate(verb, "nowhere://k:s@b/r.json"),
        3,
        "nowhere://b/r.json: no filesystem is known for this address",
    )
    refused(
        pate(verb, f"{here}/l.csv"),
        3,
        f"{here}/l.csv is no report, or a damaged one: it is not valid JSON; "
        "give the file that --report wrote",
    )
