"""`explain --export-rdp` and `release --external`: curves out, other mechanisms into a total."""

from __future__ import annotations

import json
import math
import re

import numpy as np
import pytest


@pytest.fixture(autouse=True)
def few_orders(monkeypatch):
    monkeypatch.setattr("pate_cli.disclosure.exchange._ORDERS", (1.1, 4.0, 512.0))


def test_what_a_curve_alone_does_not_show_is_said(pate, votes, folder):
    """Gaussian differential privacy of one query is sharper than any order."""
    given = ("--mechanism", "gnmax", "--sigma2", 20, "--max-queries", 1)
    assert pate("aggregate", votes, *given, "--report", "report.json").exit_code == 0
    report = json.loads((folder / "report.json").read_text())
    assert report["data_independent"]["method"] == "gaussian-dp"
    done = pate("explain", "report.json", "--export-rdp", "curve.json")
    said = re.match(r"pate: another accountant gets epsilon (\S+) from this curve", done.stderr)
    curve, delta = json.loads((folder / "curve.json").read_text()), report["delta"]
    pairs = zip(curve["orders"], curve["rdp"], strict=True)
    # Proposition 12 of Canonne, Kamath and Steinke (2020), order by order.
    alone = min(
        rdp + math.log1p(-1.0 / order) - math.log(delta * order) / (order - 1.0)
        for order, rdp in pairs
    )
    assert float(said[1]) == pytest.approx(alone, abs=1e-4)
    assert float(said[1]) > report["epsilon"]
    assert pate("explain", "report.json", "--export-rdp", "c.json", "--quiet").stderr == ""


def test_a_failed_target_is_stated_at_the_epsilon_of_its_mechanism(pate, votes, folder):
    """And dp-accounting carries that exactly."""
    given = ("--target-epsilon", 1, "--min-pass", 0, "--max-queries", 60)
    assert pate("aggregate", votes, *given, "--report", "report.json").exit_code in (0, 8)
    done = pate("explain", "report.json", "--export-rdp", "curve.json")
    assert '{"epsilon": 1.0, "delta": 1e-05,' in done.stderr
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    common = pytest.importorskip("dp_accounting.pld.common")
    carried = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(1.0, 1e-5))
    assert carried.get_epsilon_for_delta(1e-5) == pytest.approx(1.0, abs=1e-3)


NO_CURVE = {
    "a seed": ["--seed", 1],
    "a target": ["--target-epsilon", 1, "--min-pass", 0],
    "a composition": ["--mechanism", "stability", "--max-epsilon", 1000],
    "classes that were read off": ["--max-epsilon", 100],
}


@pytest.mark.parametrize("why", NO_CURVE)
def test_a_report_that_promises_no_curve_gives_none(pate, votes, refused, folder, why):
    if why.startswith("classes"):
        np.save(folder / "labels.npy", np.arange(120).reshape(30, 4) % 3)
        votes = "labels.npy"
    layout = ["--layout", "labels"] if why.startswith("classes") else []
    done = pate("aggregate", votes, *NO_CURVE[why], *layout, "--report", "report.json")
    assert done.exit_code in (0, 8), done.stderr
    refused(pate("explain", "report.json", "--export-rdp", "curve.json"), 2)
    assert not (folder / "curve.json").exists()
