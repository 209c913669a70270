"""What other accountants are given, against what they make of it."""

import copy
import json
import math
import sys
from dataclasses import replace

import numpy as np
import pytest

import pate_cli as pate
import reports
from pate_cli.accounting.conversion import gaussian_epsilon
from pate_cli.accounting.sensitivity import largest_order
from pate_cli.core.errors import ReportError, UsageError
from pate_cli.disclosure.guarantee import report_of
from pate_cli.disclosure.report import parse_report
from pate_cli.planning.synthetic import SyntheticEnsemble
from refusals import refusal

accounting = pytest.importorskip("dp_accounting")
from dp_accounting.pld import PLDAccountant  # noqa: E402
from dp_accounting.rdp import RdpAccountant, compute_epsilon  # noqa: E402

RELATIONS = list(accounting.NeighboringRelation)
REPLACE = accounting.NeighboringRelation.REPLACE_ONE
VOTES = SyntheticEnsemble(teachers=250, classes=10, queries=640).draw(1)[0]
MNIST = pate.ConfidentGNMax(250, 10, threshold=200.0, sigma1=150.0, sigma2=40.0)


@pytest.fixture(scope="module")
def quoted():
    return pate.quote(VOTES, MNIST, max_answers=283)


@pytest.fixture(scope="module")
def report():
    return pate.aggregate(VOTES, MNIST, max_answers=283).report


def test_the_event_costs_what_one_teacher_does_and_nothing_else_is_computed(report, quoted):
    mu = MNIST.gaussian_mu(queries=640, answers=283)
    right = gaussian_epsilon(mu=mu, delta=1e-5)
    assert right == pytest.approx(2.529, abs=5e-4)
    event = pate.dp_event(report)
    assert event == pate.dp_event(quoted)
    for relation in RELATIONS:
        assert not RdpAccountant(neighboring_relation=relation).supports(event)
        accountant = PLDAccountant(relation)
        if relation is REPLACE:
            with pytest.raises(accounting.UnsupportedEventError, match="REPLACE_ONE"):
                accountant.compose(event)
        else:
            found = accountant.compose(event).get_epsilon(1e-5)
            assert right - 1e-4 <= found == pytest.approx(right, abs=1e-3)


def test_the_curve_is_the_worst_case_at_every_order(report, quoted):
    curve = pate.rdp_curve(report, orders=[1.5, 4.0, 8.0, 9.0, 10.0, 12.0, 16.0, 64.0, 512.0]).curve
    exact = MNIST.worst_rdp(queries=640, answers=283, orders=curve.orders)
    least = np.minimum.accumulate(exact[::-1])[::-1]  # of a larger order, where that is less
    assert np.all(curve.rdp >= least)
    assert np.all(curve.rdp <= exact * (1.0 + 1e-5))
    assert np.all(np.diff(curve.rdp) >= 0.0)
    assert np.all(curve.rdp < curve.orders * MNIST.gaussian_mu(queries=640, answers=283) ** 2 / 2)
    # What dp-accounting makes of it is what the report says, but for the choice of orders.
    found, _ = compute_epsilon(curve.orders, curve.rdp, 1e-5)
    assert report.epsilon - 1e-3 <= found <= report.epsilon * 1.01
    assert found == pytest.approx(2.05, abs=0.01)
    few, same = (pate.rdp_curve(one, orders=[8.0]) for one in (report, quoted))
    assert same == few


def test_a_reader_is_told_what_the_numbers_mean(report, tmp_path):
    report.save(tmp_path / "report.json")
    curve = pate.rdp_curve(tmp_path / "report.json", orders=[2.0, 8.0])
    (tmp_path / "curve.json").write_text(curve.to_json())
    found = json.loads((tmp_path / "curve.json").read_text())
    assert found["adjacency"] == "replace-one"
    assert found["covers"] == "all labels, if no training record reached more than 1 teacher"
    assert "delta" not in found
    assert 0.0 < found["least_delta"] < 1e-8
    assert found["orders"] == [2.0, 8.0]
    assert pate.Stated.read(tmp_path / "curve.json") == replace(curve, name="curve.json")


def test_draws_that_were_published_are_in_the_curve(tmp_path):
    settings = {"order": 8.0, "beta": 0.02, "sigma_release": 9.0, "max_queries": 50}
    first = pate.aggregate(VOTES, "gnmax", sigma2=100.0, release="upper", **settings)
    labels = pate.aggregate(VOTES, "gnmax", sigma2=100.0, max_queries=50).report
    orders = [2.0, 8.0, 16.0, 64.0]
    bare, whole = (pate.rdp_curve(done, orders=orders) for done in (labels, first.report))
    below = largest_order(0.02)
    assert list(whole.orders) == [order for order in orders if order < below] == orders[:3]
    (draw,) = first.ledger.draws
    added = np.array([draw.rdp(order) for order in whole.orders])
    np.testing.assert_allclose(whole.rdp, bare.rdp[:3] + added, rtol=2e-5)
    assert whole.covers.startswith("all labels and the sanitized epsilon, if no training record")
    # A second release from the same votes says what the first one drew.
    told = {"record": tmp_path / "r.json", "order": 8.0, "beta": 0.02, "sigma_release": 12.0}
    again = pate.release(first.ledger, **told).report
    drawn = replace(draw, sigma=12.0)
    twice = pate.rdp_curve(parse_report(again.to_json()), orders=orders)
    more = added + np.array([drawn.rdp(order) for order in whole.orders])
    np.testing.assert_allclose(twice.rdp, bare.rdp[:3] + more, rtol=2e-5)
    assert "1 earlier release" in twice.covers
    for described in (first.report, again):
        assert "not a Gaussian event" in refusal(UsageError, pate.dp_event, described)


def test_rounds_add_up_and_the_largest_weight_of_groups_counts(tmp_path):
    mechanisms = [MNIST, pate.GNMax(250, 10, sigma2=60.0)]
    ledgers = [
        pate.aggregate(VOTES, each, max_queries=40, order=8.0, release="none").ledger
        for each in mechanisms
    ]
    together = pate.release(ledgers, release="none", record=tmp_path / "r.json").report
    both = pate.rdp_curve(together, orders=[8.0])
    at = np.array(both.orders)
    wanted = sum(each.worst_rdp(queries=40, answers=40, orders=at) for each in mechanisms)
    np.testing.assert_allclose(both.rdp, wanted, rtol=1e-5)
    assert both.covers.endswith("1 teacher and all rounds were fixed beforehand")
    thrice = pate.aggregate(VOTES, "gnmax", sigma2=60.0, max_queries=9, teachers_per_record=3)
    mu = 3.0 * math.sqrt(2.0 * 9) / 60.0
    event = pate.dp_event(thrice.report)
    assert event.events[0].noise_multiplier == pytest.approx(1.0 / mu)


NO_CLAIM = {
    "the report has external parts": lambda: report_of(
        replace(
            reports.made("prior")[0].facts,
            external=(pate.Stated("replace-one", epsilon=0.3, delta=1e-6),),
        )
    ),
    "fixed seed": lambda: pate.aggregate(VOTES, MNIST, max_queries=5, seed=1).report,
    "this report has no RDP curve": lambda: reports.made("passed")[0],
    '"delta": 1e-05, "adjacency": "replace-one"': lambda: (
        pate.aggregate(VOTES, "stability", max_queries=5).report
    ),
    "no RDP curve": lambda: pate.quote(
        VOTES, "gnmax", sigma2=40.0, target_epsilon=1.0, bound="two-tail"
    ),
}


@pytest.mark.parametrize("words", NO_CLAIM)
def test_where_nothing_is_claimed_nothing_is_exported(words):
    found = NO_CLAIM[words]()
    for export in (pate.rdp_curve, pate.dp_event):
        assert words in refusal(UsageError, export, found)


DAMAGE = {
    "no report": lambda r: r.clear(),
    "no rounds": lambda r: r.update(rounds=[]),
    "fewer queries than answers": lambda r: r["rounds"][0].update(queries=3),
    "no noise": lambda r: r["rounds"][0]["mechanism"].update(sigma2=0.0),
    "a draw without noise": lambda r: r.update(
        earlier_draws=[{"kind": "upper", "delta": 1e-5, "order": 8.0, "beta": 0.1, "sigma": 0.0}]
    ),
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_a_damaged_report_is_refused(report, tmp_path, damage):
    found = copy.deepcopy(json.loads(report.to_json()))
    DAMAGE[damage](found)
    path = tmp_path / "report.json"
    path.write_text(json.dumps(found))
    for export in (pate.rdp_curve, pate.dp_event):
        assert str(path) in refusal(ReportError, export, path)


def test_without_the_extra_the_line_to_install_it_is_said(report, monkeypatch):
    for missing in ("dp_accounting", "dp_accounting.dp_event"):
        monkeypatch.setitem(sys.modules, missing, None)
    words = refusal(UsageError, pate.dp_event, report)
    assert words.endswith("pip install 'pate-cli[accounting]'")
    assert pate.rdp_curve(report, orders=[2.0]).orders == (2.0,)
