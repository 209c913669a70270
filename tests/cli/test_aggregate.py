"""`pate aggregate` where all goes well: what it writes, where, and for whose eyes."""

from __future__ import annotations

import json
import stat

import numpy as np
import pyarrow.parquet as pq

from pate_cli.disclosure.ledger import Ledger


def test_without_options_labels_go_to_a_file_and_the_report_to_stdout(pate, votes, folder):
    result = pate("aggregate", votes)
    assert result.exit_code == 0
    report = json.loads(result.stdout)
    labels = pq.read_table(folder / "votes.labels.parquet").to_pydict()
    assert labels["query_id"] == list(range(60))
    answered = [label for label in labels["label"] if label is not None]
    assert report["answers"] == len(answered)
    assert all(0 <= label < 4 for label in answered)
    assert {(a is None, s) for a, s in zip(labels["label"], labels["source"], strict=True)} <= {
        (True, "none"),
        (False, "teachers"),
    }
    # The proportions of the documentation: 0.8, 0.6 and 0.16 of 40 teachers.
    expected = {"name": "confident", "teachers": 40, "classes": 4}
    expected |= {"threshold": 32.0, "sigma1": 24.0, "sigma2": 6.4}
    assert expected.items() <= report["mechanism"].items()
    assert (report["delta"], report["private"], report["releasable"]) == (1e-5, True, True)


def test_the_headline_is_the_smaller_epsilon_and_stderr_repeats_it(pate, votes):
    result = pate("aggregate", votes, "--release", "upper")
    report = json.loads(result.stdout)
    bounds = (report["sanitized"], report["data_independent"]["epsilon"])
    assert report["epsilon"] == min(bounds)
    first, last = result.stderr.splitlines()
    assert first == (
        f"pate: {votes}: 60 queries x 4 classes, 40 teachers, layout counts (inferred)"
    )
    assert last == (
        f"pate: answered {report['answers']} of 60 queries, labels in votes.labels.parquet; "
        f"epsilon {report['epsilon']:.4f} at delta 1e-05"
    )


def test_format_beats_the_suffix(pate, votes, folder):
    assert pate("aggregate", votes, "-o", "labels.txt", "--format", "csv").exit_code == 0
    assert (folder / "labels.txt").read_text().startswith("query_id,label,source\n")


def test_report_to_a_file_leaves_stdout_empty(pate, votes, folder):
    result = pate("aggregate", votes, "--report", "report.json")
    assert (result.exit_code, result.stdout) == (0, "")
    assert json.loads((folder / "report.json").read_text())["queries"] == 60


def test_labels_to_stdout_with_the_report_in_a_file(pate, votes, folder):
    result = pate("aggregate", votes, "-o", "-", "--format", "csv", "--report", "r.json")
    assert result.exit_code == 0
    lines = result.stdout.splitlines()
    assert lines[0] == "query_id,label,source"
    assert len(lines) == 61
    assert "labels in standard output" in result.stderr
    assert (folder / "r.json").exists()


def test_the_ledger_is_secret_and_says_so(pate, votes, folder):
    result = pate("aggregate", votes, "--ledger", "run.ledger.json")
    assert result.exit_code == 0
    path = folder / "run.ledger.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert json.loads(path.read_text())["releasable"] is False
    ledger, report = Ledger.from_json(path.read_text()), json.loads(result.stdout)
    (done,) = ledger.rounds
    assert (done.queries, done.answers) == (60, report["answers"])
    # Nothing secret of the ledger is in the report: not its curves, not even its name of the run.
    assert ledger.rounds[0].id not in result.stdout
    assert repr(float(ledger.rdp[0])) not in result.stdout


def test_dry_run_prices_and_leaves_nothing(pate, votes, monkeypatch, leftovers):
    def refuse(*_args, **_kwargs):
        raise AssertionError("a dry run must not draw")

    monkeypatch.setattr("pate_cli.verbs.aggregate.run", refuse)
    monkeypatch.setattr("pate_cli.core.noise.Noise.normal", refuse)
    result = pate("aggregate", votes, "--dry-run", "--ledger", "l.json")
    assert result.exit_code == 0, result.stderr
    priced = json.loads(result.stdout)
    assert priced["dry_run"] is True
    assert leftovers() == []
    assert "nothing was drawn or spent" in result.stderr


def test_dry_run_names_the_price_that_the_run_then_reports(pate, votes):
    priced = json.loads(pate("aggregate", votes, "--dry-run").stdout)
    report = json.loads(pate("aggregate", votes).stdout)
    assert priced["data_independent"] == report["data_independent"]
    assert priced.get("sanitizer") == report["rounds"][0].get("sanitizer")


def test_dry_run_minds_no_labels_that_are_there_but_what_it_would_replace(pate, votes, folder):
    for name in ("votes.labels.parquet", "kept.ledger", "report.json"):
        (folder / name).write_bytes(b"mine")
    words = ["aggregate", votes, "--dry-run", "--ledger", "kept.ledger"]
    assert pate(*words).exit_code == 0
    assert pate(*words, "--report", "report.json").exit_code == 6
    assert {path.read_bytes() for path in folder.iterdir()} == {b"mine"}


def test_dry_run_still_refuses_bad_votes_and_places_that_are_not_there(pate, votes, counts):
    assert pate("aggregate", votes, "--dry-run", "-o", "nowhere/l.csv").exit_code == 6
    counts[41, 0] += 1
    np.save(votes, counts)
    result = pate("aggregate", votes, "--dry-run", "-o", "l.csv")
    assert result.exit_code == 3
    assert "row 41" in result.stderr


def test_a_seed_reproduces_everything_and_is_marked(pate, votes, folder):
    first = pate("aggregate", votes, "--seed", 8, "-o", "a.parquet")
    second = pate("aggregate", votes, "--seed", 8, "-o", "b.parquet")
    other = pate("aggregate", votes, "--seed", 9, "-o", "c.parquet")
    assert first.stdout == second.stdout
    assert first.stdout != other.stdout
    assert (folder / "a.parquet").read_bytes() == (folder / "b.parquet").read_bytes()
    assert (folder / "a.parquet").read_bytes() != (folder / "c.parquet").read_bytes()
    report = json.loads(first.stdout)
    assert report["private"] is False
    assert not any(text["holds"] for text in report["statements"])
    assert "NOT private" in first.stderr


def test_existing_outputs_are_refused_unless_forced(pate, votes, folder):
    old = "query_id,label,source\n"
    for content, remedy, code in (
        ("precious", "give the output another name", 2),
        (old, "use --force to replace it", 0),
    ):
        (folder / "l.csv").write_text(content)
        result = pate("aggregate", votes, "-o", "l.csv")
        assert result.exit_code == 6
        assert result.stderr == f"pate: l.csv exists already; {remedy}\n"
        assert (folder / "l.csv").read_text() == content
        assert pate("aggregate", votes, "-o", "l.csv", "--force").exit_code == code
    assert (folder / "l.csv").read_text().startswith(old + "0,")


def test_an_output_in_the_way_stops_all_of_them(pate, votes, folder, leftovers):
    (folder / "report.json").write_text("precious")
    result = pate("aggregate", votes, "--report", "report.json", "--ledger", "l.json")
    assert result.exit_code == 6
    assert leftovers() == ["report.json"]


def test_here_is_a_folder_without_a_name(pate, parquet, folder, monkeypatch):
    monkeypatch.chdir(parquet.parent)
    parquet.with_name("alone").mkdir()
    target = parquet.rename(parquet.parent / "alone" / "a.parquet")
    monkeypatch.chdir(target.parent)
    assert pate("aggregate", ".").exit_code == 0
    assert (target.parent / "votes.labels.parquet").exists()
