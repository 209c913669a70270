"""`pate aggregate` where all goes well: what it writes, where, and for whose eyes."""

from __future__ import annotations

import json

import pyarrow.parquet as pq


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
