"""What files say of other mechanisms, and totals with them against dp-accounting's."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import pate_cli as pate
from divergences import hockey_stick
from pate_cli.core.errors import (
    LedgerError,
    ParameterError,
    PateError,
    ReportError,
    UnreachableError,
    UsageError,
)
from pate_cli.core.words import Adjacency
from pate_cli.disclosure.cost import Cost, Rows
from pate_cli.disclosure.external import Stated
from pate_cli.disclosure.guarantee import report_of
from pate_cli.disclosure.runs import Budget, Outcome, Run, RunKind, plain_sums
from pate_cli.disclosure.verification import faults_of_runs
from refusals import refusal

REPLACE, ADD = Adjacency.REPLACE_ONE, Adjacency.ADD_OR_REMOVE_ONE
ORDERS = np.array([1.5, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0])
GOOD = {"orders": [2, 8.0], "rdp": [0.1, 0.4], "adjacency": "replace-one"}
PAIR = {"epsilon": 1, "delta": 1e-6, "adjacency": "replace-one"}
VOTES = np.array([[30, 6, 4], [20, 18, 2], [25, 10, 5], [38, 1, 1]] * 10)
MECHANISM = pate.GNMax(40, 3, sigma2=20.0)


@pytest.fixture
def read(tmp_path):
    def reader(content):
        path = tmp_path / "other.json"
        text = content if isinstance(content, str) else json.dumps(content)
        path.write_text(text)
        return Stated.read(path)

    return reader


@pytest.fixture(scope="module")
def ledger():
    return aggregated(MECHANISM, order=8.0, release="none").ledger


def aggregated(mechanism, **asked):
    return pate.aggregate(VOTES, mechanism, layout="counts", **asked)


def pair(epsilon, delta, adjacency=REPLACE):
    return pate.Stated(epsilon=epsilon, delta=delta, adjacency=adjacency)


def test_a_curve_of_anybody_is_read(read):
    part = read(GOOD | {"covers": "a student", "whatever": [None]})
    assert part.rdp_at(np.array([2.0, 8.0])) == pytest.approx([0.1, 0.4])
    assert (part.adjacency, part.pair) == (REPLACE, (math.inf, 0.0))
    assert part.covers == "a student"
    assert read(GOOD | {"adjacency": "ADD_OR_REMOVE_ONE"}).adjacency is ADD
    assert read(PAIR).pair == (1.0, 1e-6)


SLIPS = {
    "nothing": "",
    "no object": "[1]",
    "too long": "[" + "1," * 600_000 + "1]",
    "negative": GOOD | {"rdp": [0.1, -0.4]},
    "a large order": GOOD | {"orders": [2, 1e100]},
    "falling orders": GOOD | {"orders": [8, 2]},
    "order 1": GOOD | {"orders": [1, 2]},
    "fewer orders": GOOD | {"orders": [2]},
    "no orders": GOOD | {"orders": [], "rdp": []},
    "many orders": GOOD | {"orders": [*range(2, 20_000)], "rdp": [1.0] * 19_998},
    "texts": GOOD | {"rdp": ["0.1", "0.4"]},
    "orders alone": {"orders": [2], "adjacency": "replace-one"},
    "nothing stated": {"adjacency": "replace-one"},
    "both": GOOD | {"delta": 1e-5},
    "no adjacency": {"orders": [2], "rdp": [1]},
    "another adjacency": GOOD | {"adjacency": "zero-out"},
    "a newer version": GOOD | {"kind": "pate-rdp-curve", "schema_version": 2},
    "a ledger": GOOD | {"kind": "pate-ledger"},
    "a least delta": GOOD | {"least_delta": 1},
    "epsilon below 0": PAIR | {"epsilon": -1},
    "delta 1": PAIR | {"delta": 1},
    "nothing for two steps": PAIR | {"epsilon": 800, "adjacency": "add-or-remove-one"},
}


@pytest.mark.parametrize("slip", SLIPS)
def test_what_states_no_cost_is_refused_in_one_line(read, slip):
    text = refusal(LedgerError, read, SLIPS[slip])
    assert "other.json" in text


@pytest.mark.parametrize("release", ["none", "upper"])
@pytest.mark.parametrize(("adjacency", "largest"), [(REPLACE, "4"), (ADD, "2.28571")])
def test_a_curve_that_ends_too_early_is_refused_before_anything_is_drawn(
    ledger, release, adjacency, largest, tmp_path
):
    short = pate.Stated(orders=ORDERS[:3], rdp=0.05 * ORDERS[:3], adjacency=adjacency)
    asked = {"release": release, "external": [short], "record": tmp_path / "r.json"}
    text = refusal(LedgerError, pate.release, ledger, **asked)
    assert "an external curve has no cost at order 8, which the release uses; its" in text
    assert f"its largest order for a replaced record is {largest};" in text
    assert pate.SpendRecord.read(tmp_path / "r.json").runs == ()


@pytest.mark.parametrize("adjacency", [ADD, Adjacency.REPLACE_SPECIAL])
@given(epsilon=st.floats(0.01, 3.0), delta=st.floats(0.0, 0.02))
@example(epsilon=1.0, delta=0.0)
def test_a_replacement_is_two_steps_of_an_epsilon_and_delta(adjacency, epsilon, delta):
    """P to M to Q, each step as far as (ε, δ) lets it: what is charged covers P and Q."""
    up = math.exp(epsilon)
    middle = 0.2 / up**2
    near, far = min(up * middle + delta, 1.0), middle / up
    steps = [(near, middle), (middle, far)]
    for a, b in steps:
        for one, other in ((a, b), (b, a)):
            p, q = np.array([one, 1.0 - one]), np.array([other, 1.0 - other])
            assert hockey_stick(p, q, epsilon) <= delta + 1e-12
    part = pair(epsilon, delta, adjacency)
    assert part.pair[0] == 2.0 * epsilon
    p, q = np.array([near, 1.0 - near]), np.array([far, 1.0 - far])
    assert hockey_stick(p, q, part.pair[0]) <= part.pair[1] + 1e-12
    assert part.pair[1] == pytest.approx((1.0 + up) * delta)


def test_a_delta_is_added_and_never_rounded_down(ledger):
    def total(*parts):
        return pate.release(ledger, external=parts, release="none").report.delta

    both = total(pair(0.1, 1.23456789e-6), pair(0.1, 1e-7))
    assert math.fsum([1e-5, 1.23456789e-6, 1e-7]) <= both == float(f"{both:g}")
    assert total(pair(0.1, 1e-6)) == 1.1e-5
    assert total(pair(0.1, 0.0)) == 1e-5
    with pytest.raises(ParameterError):
        total(pair(0.1, 0.6), pair(0.1, 0.4))


@pytest.mark.parametrize("release", ["none", "upper"])
def test_parts_add_up_after_the_draw(ledger, release):
    curve = pate.Stated(orders=ORDERS, rdp=0.05 * ORDERS, adjacency=REPLACE)
    twice = pate.Stated(orders=ORDERS, rdp=0.01 * ORDERS, adjacency=ADD)
    flat = pair(0.3, 2e-6)
    asked = {"release": release, "beta": 0.02, "sigma_release": 9.0, "seed": 5}
    alone = pate.release(ledger, **asked).report
    done = pate.release(ledger, external=[curve, twice, flat], **asked)
    found = done.report
    added = 0.05 * 8.0 + float(twice.rdp_at(np.array([8.0]))[0]) + flat.rdp_at(np.array([8.0]))[0]
    assert found.external == (curve, twice, flat)
    # A Gaussian's of twice the shift, or above.
    assert 0.32 <= twice.rdp_at(np.array([8.0]))[0] <= 0.36
    if release == "upper":
        difference = found.sanitized - alone.sanitized
        assert difference == pytest.approx(added, abs=1.1e-4)
    else:
        assert found.sanitized == alone.sanitized
    assert found.delta == 1.2e-5
    assert found.data_independent.labels_epsilon == alone.data_independent.labels_epsilon
    assert found.data_independent.epsilon > alone.data_independent.epsilon
    assert found.rounds == alone.rounds
    assert "3 external parts on the same data" in found.covers
    assert "one training record" in found.adjacency
    # A draw is noted as it is without them.
    draws = [run.draw for run in done.record.runs if run.kind is RunKind.RELEASE]
    assert len(draws) == (1 if release == "upper" else 0)
    held = {said.id for said in found.statements}
    assert "external" in held


def test_a_total_with_an_epsilon_is_at_most_basic_composition():
    cost = Cost(1e-5, (Rows(MECHANISM, 40, 40),))
    alone = cost.of_curves
    for epsilon in (1e-4, 0.1, 1.0, 5.0):
        found = replace(cost, stated=(pair(epsilon, 1e-6),)).of_curves
        assert alone.epsilon < found.epsilon <= alone.epsilon + epsilon + 1e-9
    laplace = Cost(1e-5, (Rows(pate.LNMax(40, 3, laplace_scale=400.0), 1, 1),))
    pure = laplace.of_curves
    found = replace(laplace, stated=(pair(2.0, 0.0),)).of_curves
    assert pure.method in ("pure-dp", "gaussian-dp")
    assert found.epsilon <= pure.epsilon + 2.0


def test_the_least_delta_is_that_of_the_total():
    cost = Cost(1e-13, (Rows(MECHANISM, 40, 40),))
    small = cost.least_delta
    assert small < replace(cost, stated=(pair(2.0, 0.0),)).least_delta
    asked = pate.Stated(orders=ORDERS, rdp=0.1 * ORDERS, adjacency=REPLACE, least_delta=1e-9)
    assert replace(cost, stated=(asked,)).least_delta >= small + 1e-9


def test_a_run_of_a_curve_has_a_delta_for_which_the_curve_may_be_used():
    """Sums and budgets once took such a curve at their own δ, below the one its owner states."""
    curve = pate.Stated(orders=ORDERS, rdp=0.01 * ORDERS, adjacency=REPLACE, least_delta=1e-3)
    told = {"id": curve.digest, "outcome": Outcome.STATED, "time": None, "external": curve}
    run = Run.of(**told, delta=1e-5)
    assert (run.delta, run.epsilon) == (1e-3, Run.of(**told, delta=1e-3).epsilon)
    assert plain_sums([run])[-1] == (run.epsilon, 1e-3)
    with pytest.raises(UnreachableError):
        Budget(99.0, 1e-4).refuse([run], [])
    assert not list(faults_of_runs([run]))
    assert any("delta" in fault for fault in faults_of_runs([replace(run, delta=1e-5)]))


def test_a_report_below_the_least_delta_of_an_external_curve_does_not_hold(ledger):
    """A report whose curve was changed to ask for a larger δ once passed every check."""
    curve = pate.Stated(orders=ORDERS, rdp=0.01 * ORDERS, adjacency=REPLACE)
    facts = pate.release(ledger, release="none", external=[curve]).report.facts
    report_of(facts)
    with pytest.raises(ReportError, match="needs a larger delta"):
        report_of(replace(facts, external=(replace(curve, least_delta=1e-3),)))


def test_two_ensembles_on_the_same_records_are_one_total(ledger):
    other = pate.GNMax(40, 3, sigma2=30.0)
    curve = pate.rdp_curve(aggregated(other).report, orders=[4.0, 8.0, 16.0, 32.0])
    found = pate.release(ledger, release="none", external=[curve]).report
    wanted = Cost(1e-5, (Rows(MECHANISM, 40, 40), Rows(other, 40, 40))).of_curves
    assert wanted.epsilon <= found.epsilon <= wanted.epsilon * 1.05


def test_what_does_not_go_together_is_refused():
    paper = aggregated(MECHANISM, analysis="paper", order=8.0, release="none")
    with pytest.raises(UsageError, match="with `analysis` tight"):
        pate.release(paper.ledger, external=[pair(1.0, 0.0)])
    with pytest.raises(PateError):
        pate.Stated(epsilon=math.nan, delta=0.0, adjacency=REPLACE)


def test_equal_costs_of_two_mechanisms_both_count(ledger, tmp_path):
    """They were once one cost, whatever the names of their files."""
    for name in ("a", "b"):
        stated = {"adjacency": "replace-one", "epsilon": 0.3, "delta": 1e-6}
        (tmp_path / f"{name}.json").write_text(json.dumps(stated))
    a, b = tmp_path / "a.json", tmp_path / "b.json"
    asked = {"release": "none", "seed": 5}
    one, two = (pate.release(ledger, external=costs, **asked).report for costs in ([a], [a, b]))
    assert two.epsilon > one.epsilon
    assert two.delta == pytest.approx(1.2e-5)
    record = pate.release(pate.release(ledger, external=[a], **asked).record, external=[a]).record
    assert sum(run.external is not None for run in record.runs) == 1
    record = pate.release(record, external=[b]).record
    assert sum(run.external is not None for run in record.runs) == 2
    assert "give each cost another name" in refusal(
        UsageError, pate.release, ledger, external=[a, a], **asked
    )
