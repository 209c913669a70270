"""`pate aggregate` where all goes well: what it writes, where, and for whose eyes."""

from __future__ import annotations

import json
import stat

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
