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


@pytest.mark.parametrize("command", ["cost", "smooth-sensitivity"])
def test_without_matplotlib_nothing_is_done(pate, refused, votes, leftovers, monkeypatch, command):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    refused(
        pate(command, votes, "--plot", "a.png"),
        2,
        "--plot needs matplotlib, which is optional: pip install 'pate-cli[plot]'",
    )
    assert leftovers() == []
