"""What a person at a terminal is told of a run, and where its report goes then."""

from __future__ import annotations

import json
import re

import pytest

from pate_cli.disclosure.figures import verdict

WHATEVER = "it holds whatever the votes were"


def told(shown):
    """The rows of a summary by their names, lines joined."""
    rows, name = {}, ""
    for line in shown.replace("\r", "").splitlines():
        name = line[:12].strip() or name
        rows[name] = f"{rows.get(name, '')} {line[12:]}".strip()
    return rows


def report_in(folder, name="votes.report.json"):
    return json.loads((folder / name).read_text())


def test_aggregate_tells_what_happened_and_what_to_do(screen, votes, folder):
    rows = told(screen("aggregate", votes, "--max-queries", 20, "--ledger", "kept.ledger"))
    report = report_in(folder)
    assert rows["answered"] == f"{report['answers']} of 20 queries"
    assert rows["epsilon"] == f"{report['epsilon']:.4f} at delta 1e-05; {WHATEVER}"
    assert "worst case" not in rows
    assert rows["privacy"] == str(verdict(report["epsilon"], 1e-5))
    assert rows["publish"] == "votes.labels.parquet, votes.report.json"
    assert rows["keep secret"] == f"{votes}, kept.ledger"


def test_a_sanitized_epsilon_stands_beside_the_worst_case(screen, votes, folder):
    screen("aggregate", votes, "--order", 8, "--release", "none", "--ledger", "round.one")
    rows = told(screen("release", "round.one", "--sigma-release", 5))
    report = report_in(folder, "round.report.json")
    assert rows["epsilon"].startswith(f"{report['epsilon']:.4f} at delta 1e-05")
    if report["epsilon_kind"] == "upper":
        assert rows["worst case"] == f"{report['data_independent']['epsilon']:.4f}; {WHATEVER}"
        assert "of the runs that publish so small an epsilon" in rows["privacy"]
    assert rows["publish"] == "round.report.json"
    assert rows["keep secret"] == "the votes, the ledgers"


def test_what_proves_nothing_is_not_called_publishable(screen, votes):
    rows = told(screen("aggregate", votes, "--seed", 1))
    assert rows["epsilon"].endswith(" at delta 1e-05; nothing is promised")
    assert rows["privacy"].startswith("Nothing is promised: the noise came from a fixed seed")
    assert "publish" not in rows
    assert rows["written"] == "votes.labels.parquet, votes.report.json"


def test_a_seed_promises_no_worst_case_either(screen, votes):
    rows = told(screen("aggregate", votes, "--release", "upper", "--seed", 1))
    assert rows["epsilon"].endswith("; nothing is promised")
    assert "worst case" not in rows


def test_a_dry_run_writes_nothing(screen, votes, folder):
    rows = told(screen("aggregate", votes, "--dry-run"))
    assert rows["would ask"] == "60 rows, for at most 60 answers"
    assert rows["epsilon"].startswith("at most ")
    assert list(folder.iterdir()) == []


BOTH = ["votes.labels.parquet", "votes.report.json"]


def test_a_summary_says_which_rows_are_asked(screen, votes):
    """A person sees that the rest of the votes has no labels, with the first line."""
    shown = " ".join(screen("aggregate", votes, "--max-queries", 20).split())
    assert "asked the first 20 queries; the 40 after them were not asked answered" in shown
    assert "not asked" not in screen("aggregate", votes, "-o", "all.csv")


def test_a_pipe_gets_a_copy_of_the_report_beside_the_labels(pate, votes, folder):
    """Also under cron, where nobody reads standard output, the report is not lost."""
    result = pate("aggregate", votes)
    assert json.loads(result.stdout)["queries"] == 60
    assert sorted(path.name for path in folder.iterdir()) == BOTH
    assert (folder / "votes.report.json").read_text() == result.stdout
    assert pate("aggregate", votes, "--report", "named.json", "--force").stdout == ""


def test_a_report_that_is_there_is_not_replaced(screen, pate, votes, folder, monkeypatch):
    (folder / "votes.report.json").write_text('{\n  "schema_version": 0}')
    monkeypatch.setattr("pate_cli.cli.terminal.read_by_person", lambda: True)
    result = pate("aggregate", votes)
    assert result.exit_code == 6
    assert "votes.report.json exists already" in result.stderr
    assert not (folder / "votes.labels.parquet").exists()
    assert pate("aggregate", votes, "--force").exit_code == 0
    assert report_in(folder)["queries"] == 60


@pytest.mark.parametrize("person", [True, False])
def test_labels_and_report_on_one_stdout_are_refused(pate, refused, votes, monkeypatch, person):
    monkeypatch.setattr("pate_cli.cli.terminal.read_by_person", lambda: person)
    line = refused(pate("aggregate", votes, "-o", "-", "--format", "csv"), 2)
    assert line.endswith("labels and report cannot both go to stdout; give --report FILE")


def test_labels_on_a_terminal_are_all_that_is_there(screen, votes, folder):
    words = ["-o", "-", "--format", "jsonl", "--report", "report.json"]
    lines = screen("aggregate", votes, *words).splitlines()
    assert len([json.loads(line) for line in lines]) == 60


def test_a_refusal_is_summed_up_too(pate, two_classes, folder, monkeypatch):
    monkeypatch.setattr("pate_cli.cli.terminal.read_by_person", lambda: True)
    monkeypatch.setattr("pate_cli.core.noise.Noise.comes_up", lambda *_: True)
    result = pate("aggregate", two_classes, "--target-epsilon", 2, "--max-queries", 60)
    assert result.exit_code == 8
    rows = told(result.stdout)
    assert rows["answered"] == "0 of 60 queries"
    assert rows["epsilon"] == f"1 at delta 1e-05, what the failed release test costs; {WHATEVER}"
    assert rows["privacy"] == verdict(1.0, 1e-5, "refusal")
    assert report_in(folder, "two.report.json")["passed"] is False


@pytest.mark.parametrize("width", [40, 60])
def test_no_width_cuts_a_number(terminal, votes, folder, width):
    shown = terminal("stdout", "aggregate", votes, "--release", "upper", COLUMNS=str(width))
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", shown.decode()).replace("\r", "")
    report = report_in(folder)
    assert f"{report['epsilon']:.4f}" in plain
    assert f"{report['data_independent']['epsilon']:.4f}" in plain
    longest = max(len(line) for line in plain.splitlines() if str(votes) not in line)
    assert longest <= width
