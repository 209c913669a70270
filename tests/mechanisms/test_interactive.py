"""Interactive-GNMax: real-valued scores, reinforced labels, and a student who knows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from beside import a_student
from checks_alone import threshold_rdp
from divergences import coin
from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.threshold import worst_threshold_rdp
from pate_cli.core.arrays import NO_LABEL
from pate_cli.core.errors import ParameterError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import ReleaseKind
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.mechanisms.interactive import InteractiveGNMax
from refusals import refusal
from runs import aggregated, cut
from slices import tries

PLAN = ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=3.0, beta=0.05, sigma=9.0)


@pytest.mark.parametrize("teachers", [16, 64])
def test_round_off_carries_no_score_over_two_cells(teachers):
    """Scores just below 0, whose place just below a whole number is rounded up a vote later."""
    mechanism = InteractiveGNMax(
        teachers=teachers, classes=3, threshold=8.0, sigma1=1.0, sigma2=1e4
    )
    rows = []
    for units in range(1, 400):
        above = 1.0 + units * 2.0**-53 * teachers / 16
        student = np.array([[above / teachers, 0.75 - above / teachers, 0.25]])
        bound = replace(mechanism, predictions=a_student(student)).for_rows((0,), 0)
        pair = np.array([[1, 0, 0], [2, 0, 0]])
        scores = np.array([bound.test_score(counts[None])[0] for counts in pair])
        rows.append(mechanism._test.index(scores))
    low, high = np.array(rows).T
    assert np.all(np.abs(high - low) <= 1)


@pytest.mark.parametrize("k", [1, 2])
@settings(max_examples=tries(60))
@given(
    counts=st.lists(st.integers(0, 6), min_size=3, max_size=3).filter(lambda n: 0 < sum(n) <= 12),
    shares=st.lists(st.floats(0.0, 1.0), min_size=3, max_size=3).filter(lambda p: sum(p) > 1e-3),
    move=st.permutations([0, 1, 2]),
)
@example(counts=[6, 3, 3], shares=[0.02, 0.49, 0.49], move=[0, 1, 2])
def test_the_cost_covers_the_exact_divergence_at_any_real_score(k, counts, shares, move):
    mechanism = InteractiveGNMax(
        teachers=12, classes=3, threshold=5.4, sigma1=1.1, sigma2=40.0, teachers_per_record=k
    )
    student = np.array(shares) / sum(shares)
    there = list(counts)
    for _ in range(min(k, there[move[0]])):
        there[move[0]] -= 1
        there[move[1]] += 1
    both = np.array([counts, there])
    told = replace(mechanism, predictions=a_student(np.tile(student, (2, 1))))
    bound = told.for_rows(range(2), 0)
    order = 3.0
    scores = bound.score(both)
    cost = np.min(bound.rdp(scores, np.array([order])))
    lattice = TABLES.setdefault(k, mechanism.cost_table(order))
    assert cost == pytest.approx(
        lattice.cost(mechanism.cells(scores, lattice.grid)).min(), rel=3e-6
    )
    v = (both - 12 * student).max(axis=1)
    np.testing.assert_array_equal(scores[:, 0], v)
    # The argmax is so noisy that the coin is nearly everything; it alone must be covered.
    for a, b in ((v[0], v[1]), (v[1], v[0])):
        assert coin((a - 5.4) / 1.1, (b - 5.4) / 1.1, order) <= cost * (1.0 + 1e-9)


TABLES: dict[int, object] = {}


def test_the_test_of_real_scores_costs_more_than_that_of_whole_ones():
    mechanism = InteractiveGNMax(20, 3, threshold=8.0, sigma1=1.0, sigma2=5.0)
    found = mechanism.query_costs(np.array([3.0])).test
    assert 1.0782 < found[0] < 1.079  # 1.0605 over whole scores; theory.md, 2.1


@pytest.mark.parametrize(("size", "cap"), [(100, 1), (3, 2), (1, 5)])
def test_no_student_label_after_the_stop(cap, size):
    """Rows alternate between one the teachers surely answer and one they surely do not."""
    counts = np.array([[10, 0], [0, 10]] * 6)
    shares = np.array([[0.0, 1.0], [0.0, 1.0]] * 6)
    mechanism = InteractiveGNMax(
        10, 2, threshold=5.0, sigma1=0.1, sigma2=0.1, confidence=0.9, predictions=a_student(shares)
    )
    done = aggregated(cut(counts, size), mechanism, PLAN, max_answers=cap, key=RunKey.of(2))
    sources, labels = done.labels.sources.tolist(), done.labels.labels.tolist()
    asked = 2 * cap - 1  # the cap-th answer is the last row asked
    assert sources == (["teachers", "student"] * 6)[:asked] + ["none"] * (12 - asked)
    assert labels == [0, 1] * (asked // 2) + [0] + [NO_LABEL] * (12 - asked)
    assert done.report.answers == done.ledger.rounds[0].answers == cap
    # All rows are charged.
    table = mechanism.cost_table(3.0)
    tally = Tally.of(mechanism.for_rows(range(12), 0).cells_of(counts, table.grid))
    assert done.ledger.rdp[0] == table.price(tally, np.arange(1)).rdp


def test_it_must_be_bound_to_its_rows():
    unbound = InteractiveGNMax(10, 2, threshold=5.0, sigma1=1.0, sigma2=1.0)
    text = refusal(ParameterError, unbound.for_rows, np.arange(3), 0)
    assert text == "interactive needs the student's predictions; give `predictions`"
    bound = InteractiveGNMax(
        10, 2, threshold=5.0, sigma1=1.0, sigma2=1.0, predictions=a_student(np.full((4, 2), 0.5))
    )
    for mechanism in (unbound, bound):
        text = refusal(ParameterError, mechanism.score, np.full((3, 2), 5))
        assert (
            text == "`predictions` must have one row per query in `counts`; use the mechanism that "
            "`mechanism.for_rows(ids, first_row)` returns"
        )
    np.testing.assert_array_equal(bound.for_rows(np.arange(2), 1).predictions, np.full((2, 2), 0.5))
    assert unbound.fallback() is None


def test_a_made_up_student_for_the_public_rule_sees_no_votes():
    counts = np.random.default_rng(7).multinomial(20, [0.6, 0.3, 0.1], size=400)
    one, two = (
        InteractiveGNMax(20, 3, threshold=5.0, sigma1=2.0, sigma2=3.0).for_reference(counts, 9)
        for _ in range(2)
    )
    np.testing.assert_array_equal(one.predictions, two.predictions)
    sure = one.predictions.max(axis=1) > 0.5
    assert 0.65 < sure.mean() < 0.85


@pytest.mark.parametrize("sigma1", [0.7, 1.0, 3.0, 20.0])
@pytest.mark.parametrize("order", [1.5, 3.0, 12.0])
def test_the_data_independent_check_is_a_supremum_over_all_real_scores(sigma1, order):
    fine = np.linspace(-20.0, 20.0, 40_001)
    exact = threshold_rdp(fine, threshold=8.3, sigma=sigma1, orders=np.array([order]))[0].max()
    found = worst_threshold_rdp(
        teachers=20, threshold=8.3, sigma=sigma1, orders=np.array([order]), real=True
    )[0]
    assert exact * (1.0 - 1e-12) <= found <= 1.03 * exact
