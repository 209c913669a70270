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


def test_a_summary_says_which_rows_are_asked(screen, votes):
    """A person sees that the rest of the votes has no labels, with the first line."""
    shown = " ".join(screen("aggregate", votes, "--max-queries", 20).split())
    assert "asked the first 20 queries; the 40 after them were not asked answered" in shown
    assert "not asked" not in screen("aggregate", votes, "-o", "all.csv")


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
