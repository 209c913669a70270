"""--plot: pictures beside the results, for their owner alone."""

from __future__ import annotations

import stat
import sys

import pytest

from slices import some


def drawn(folder, name):
    path = folder / name
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    return path.read_bytes()


@pytest.mark.parametrize("command", some(["smooth-sensitivity", "cost"], 2))
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


@pytest.mark.parametrize("words", some([[], ["--mechanism", "stability"]], 2), ids=str)
def test_aggregate_with_a_picture(pate, votes, folder, words):
    pytest.importorskip("matplotlib")
    run = pate("aggregate", votes, *words, "-o", "l.csv", "--plot", "a.png", "--seed", 1)
    assert run.exit_code == 0, run.stderr
    assert drawn(folder, "a.png").startswith(b"\x89PNG")
    picture = (folder / "a.png").read_bytes()
    assert (folder / "l.csv").exists()
    words = [*words, "--max-epsilon", 1000]
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
