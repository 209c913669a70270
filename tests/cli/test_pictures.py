"""--plot and --accuracy: pictures beside the results, for their owner alone."""

from __future__ import annotations

import json
import stat
import sys

import numpy as np
import pytest

from pate_cli.pricing import accuracy as label_accuracy


def drawn(folder, name):
    path = folder / name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return path.read_bytes()


@pytest.fixture
def truth(tmp_path, counts, monkeypatch):
    monkeypatch.setattr(label_accuracy, "NOISE_SHARES", (0.02, 0.5))
    path = tmp_path / "truth.npy"
    np.save(path, counts.argmax(axis=1))
    return path


@pytest.mark.parametrize("command", ["cost", "smooth-sensitivity"])
def test_a_picture_changes_nothing_else(pate, refused, votes, folder, command):
    pytest.importorskip("matplotlib")
    plain = pate(command, votes, "-q")
    pictured = pate(command, votes, "-q", "--plot", "a.png")
    assert pictured.exit_code == 0, pictured.stderr
    assert pictured.stdout == plain.stdout
    assert drawn(folder, "a.png").startswith(b"\x89PNG")
    before = (folder / "a.png").read_bytes()
    refused(
        pate(command, votes, "-q", "--plot", "a.png"),
        6,
        "a.png exists already; use --force to replace it",
    )
    assert (folder / "a.png").read_bytes() == before
    assert pate(command, votes, "-q", "--plot", "a.png", "--force").exit_code == 0
    assert pate(command, votes, "-q", "--plot", "a.svg").exit_code == 0
    assert drawn(folder, "a.svg").startswith(b"<?xml")


@pytest.mark.parametrize(
    "words", [[], ["--mechanism", "stability"], ["--mechanism", "lnmax"]], ids=str
)
def test_aggregate_with_a_picture(pate, votes, folder, words):
    pytest.importorskip("matplotlib")
    run = pate("aggregate", votes, *words, "-o", "l.csv", "--plot", "a.png", "--seed", 1)
    assert run.exit_code == 0, run.stderr
    assert drawn(folder, "a.png").startswith(b"\x89PNG")
    picture = (folder / "a.png").read_bytes()
    assert (folder / "l.csv").exists()
    unseeded = pate("aggregate", votes, *words, "-o", "m.csv", "--plot", "b.png")
    assert unseeded.exit_code == 0
    # The picture shows the votes, not what was drawn.
    assert drawn(folder, "b.png") == picture


def test_a_dry_run_draws_no_picture(pate, refused, votes, leftovers):
    run = pate("aggregate", votes, "--plot", "a.png", "--dry-run")
    refused(run, 2, "--plot does not go with --dry-run, which publishes its price")
    assert leftovers() == []


@pytest.mark.parametrize("command", ["aggregate", "cost", "smooth-sensitivity"])
def test_without_matplotlib_nothing_is_done(pate, refused, votes, leftovers, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    refused(
        pate(command, votes, "--plot", "a.png"),
        2,
        "--plot needs matplotlib, which is optional: pip install 'pate-cli[plot]'",
    )
    assert leftovers() == []


def test_accuracy(pate, votes, truth, folder):
    run = pate("cost", votes, "--accuracy", "--truth", truth, "-q")
    assert run.exit_code == 0, run.stderr
    result = json.loads(run.stdout)
    assert result["releasable"] is False
    assert result["queries"] == 60
    rows = result["accuracy"]
    assert {row["mechanism"] for row in rows} == {"lnmax", "gnmax"}
    # With next to no noise the label is the plurality, which is the truth here, but for ties.
    assert rows[1]["accuracy"] > 0.95 > rows[-1]["accuracy"]
    fewer = pate("cost", votes, "--accuracy", "--truth", truth, "-q", "--max-queries", 20)
    assert json.loads(fewer.stdout)["accuracy"][0]["epsilon"] < rows[0]["epsilon"]


def test_accuracy_with_a_picture(pate, votes, truth, folder):
    pytest.importorskip("matplotlib")
    run = pate("cost", votes, "--accuracy", "--truth", truth, "--plot", "a.png", "-q")
    assert run.exit_code == 0, run.stderr
    assert drawn(folder, "a.png").startswith(b"\x89PNG")


IGNORED = (
    "--accuracy prices gnmax and lnmax over its own range of noise, by the tight analysis; leave "
    "out the mechanism's flags and --analysis"
)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--accuracy"], "--accuracy and --truth FILE go together"),
        (["--truth", "t.npy"], "--accuracy and --truth FILE go together"),
        (["--accuracy", "--truth", "t.npy", "--sigma2", 3], IGNORED),
        (["--accuracy", "--truth", "t.npy", "--mechanism", "gnmax"], IGNORED),
        (["--accuracy", "--truth", "t.npy", "--analysis", "paper"], IGNORED),
        (["--accuracy", "--truth", "t.npy", "--compare"], "--compare does not go with --accuracy"),
        (["--accuracy", "--truth", "t.npy", "--order", 3], "--order does not go with --accuracy"),
        (
            ["--compare", "--plot", "a.png"],
            "--plot does not go with --compare, which has no picture",
        ),
    ],
)
def test_what_accuracy_would_ignore_is_refused(pate, refused, votes, words, message):
    refused(pate("cost", votes, *words), 2, message)
