"""A run from batches to report: caps, batches, and the charge for rows that were never reached."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.special import ndtr

from pate_cli.accounting.sensitivity import distances_for
from pate_cli.errors import VoteError
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.noise import Noise
from pate_cli.release.plan import ReleasePlan
from pate_cli.run import aggregate, run
from pate_cli.votes import VoteBatch
from pate_cli.words import ReleaseKind

MECHANISM = ConfidentGNMax(20, 3, threshold=12.0, sigma1=6.0, sigma2=3.0)
COUNTS = np.random.default_rng(6).multinomial(20, [0.6, 0.3, 0.1], size=90).astype(np.int64)
PLAN = ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=5.0, beta=0.04, sigma=9.0)


def batches(counts, size):
    for first in range(0, len(counts), size):
        part = np.ascontiguousarray(counts[first : first + size])
        yield VoteBatch(first, np.arange(first, first + len(part)), part)


def labels_of(counts, *, mechanism=MECHANISM, size=1000, cap=None, seed=3, orders=()):
    cap = len(counts) if cap is None else cap
    return run(
        batches(counts, size),
        mechanism,
        orders=list(orders),
        noise=Noise.from_seed(seed),
        max_answers=cap,
    )


@pytest.mark.parametrize("size", [1, 7, 89, 90])
@pytest.mark.parametrize("cap", [None, 11])
def test_batches_change_nothing(size, cap):
    whole, parts = labels_of(COUNTS, cap=cap, orders=[5.0]), None
    parts = labels_of(COUNTS, cap=cap, size=size, orders=[5.0])
    np.testing.assert_array_equal(parts.labels.labels, whole.labels.labels)
    np.testing.assert_array_equal(parts.labels.ids, np.arange(90))
    assert parts.answers == whole.answers
    np.testing.assert_array_equal(parts.tally[5.0].cells, whole.tally[5.0].cells)
    np.testing.assert_array_equal(parts.tally[5.0].weights, whole.tally[5.0].weights)


@pytest.mark.parametrize("mechanism", [MECHANISM, GNMax(20, 3, sigma2=3.0)], ids=str)
@pytest.mark.parametrize("size", [1, 8, 1000])
@pytest.mark.parametrize("cap", [1, 2, 13, 30])
def test_the_cap_stops_answers_and_not_the_tally(mechanism, size, cap):
    free = labels_of(COUNTS, mechanism=mechanism).labels.labels
    capped = labels_of(COUNTS, mechanism=mechanism, size=size, cap=cap, orders=[5.0])
    labels = capped.labels.labels
    answered = np.flatnonzero(free >= 0)
    assert len(answered) > cap
    last = answered[cap - 1]
    np.testing.assert_array_equal(labels[: last + 1], free[: last + 1])
    assert set(labels[last + 1 :].tolist()) == {-1}
    assert set(capped.labels.sources[last + 1 :].tolist()) == {"none"}
    assert capped.answers == cap == np.count_nonzero(labels >= 0)
    assert capped.tally[5.0].queries == len(COUNTS)


def test_a_cap_that_is_not_reached_changes_nothing():
    free = labels_of(COUNTS)
    assert 0 < free.answers < len(COUNTS)
    capped = labels_of(COUNTS, cap=free.answers)
    np.testing.assert_array_equal(capped.labels.labels, free.labels.labels)


def aggregated(counts, *, mechanism=MECHANISM, plan=PLAN, cap=None, queries=None, noise=None):
    return aggregate(
        batches(counts, 32),
        mechanism,
        plan,
        queries=len(counts) if queries is None else queries,
        max_answers=len(counts) if cap is None else cap,
        noise=Noise.from_seed(3) if noise is None else noise,
    )


def test_the_ledger_charges_all_rows_whatever_the_cap():
    free, capped = aggregated(COUNTS), aggregated(COUNTS, cap=2)
    np.testing.assert_array_equal(capped.ledger.rdp, free.ledger.rdp)
    np.testing.assert_array_equal(capped.ledger.sensitivity, free.ledger.sensitivity)
    assert capped.ledger.sensitivity.shape == (1, distances_for(PLAN.beta, teachers=20))
    assert (capped.ledger.rounds[0].max_answers, capped.ledger.rounds[0].answers) == (2, 2)
    assert (capped.report.queries, capped.report.max_answers, capped.report.answers) == (90, 2, 2)
    assert capped.report.data_independent.epsilon < free.report.data_independent.epsilon
    cost = MECHANISM.rdp(MECHANISM.score(COUNTS), np.array([5.0])).sum()
    assert free.ledger.rdp[0] == pytest.approx(cost, rel=3e-6)


def stopped_law(mechanism, rows, cap):
    """Exact probability of every transcript of a run that ends with its cap-th answer."""
    transcripts = {}

    def ask(row, left, chance, so_far):
        if left == 0 or row == len(rows):
            transcripts[so_far] = transcripts.get(so_far, 0.0) + chance
            return
        first, second = rows[row]
        passes = ndtr((max(first, second) - mechanism.threshold) / mechanism.sigma1)
        wins = ndtr((first - second) / (math.sqrt(2.0) * mechanism.sigma2))
        ask(row + 1, left, chance * (1.0 - passes), (*so_far, -1))
        ask(row + 1, left - 1, chance * passes * wins, (*so_far, 0))
        ask(row + 1, left - 1, chance * passes * (1.0 - wins), (*so_far, 1))

    ask(0, cap, 1.0, ())
    return transcripts


def test_charging_up_to_the_stop_would_understate_and_is_not_what_is_done():
    mechanism = ConfidentGNMax(6, 2, threshold=4.2, sigma1=1.5, sigma2=4.0)
    order = 3.0
    rows = [[1, 5], [4, 2], [2, 4], [3, 3]]
    moved = [[2, 4], [3, 3], [3, 3], [4, 2]]
    here, there = (stopped_law(mechanism, one, 1) for one in (rows, moved))
    assert len(here) == 9
    assert sum(here.values()) == pytest.approx(1.0) == sum(there.values())
    exact = max(
        math.log(sum(a[t] ** order * b[t] ** (1.0 - order) for t in a)) / (order - 1.0)
        for a, b in ((here, there), (there, here))
    )
    assert exact == pytest.approx(1.3156, abs=5e-5)
    counts = np.array(rows)
    each = mechanism.rdp(mechanism.score(counts), np.array([order]))[0]
    assert each[0] < 0.48 < exact  # a run that stops after its first row
    plan = ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=order, beta=0.05, sigma=5.0)
    ledger = aggregated(counts, mechanism=mechanism, plan=plan, cap=1).ledger
    assert ledger.rdp[0] == pytest.approx(each.sum(), rel=3e-6)
    assert ledger.rdp[0] >= exact


def test_a_seeded_run_repeats_and_says_that_it_is_not_private():
    one, two = aggregated(COUNTS), aggregated(COUNTS)
    np.testing.assert_array_equal(one.labels.labels, two.labels.labels)
    assert one.report.to_json() == two.report.to_json()
    assert (one.report.private, one.ledger.private) == (False, False)
    assert one.labels.metadata["private"] == "false"
    assert one.ledger.rounds[0].id != two.ledger.rounds[0].id


def test_a_run_from_entropy_is_private_and_never_the_same():
    one, two = (aggregated(COUNTS, noise=Noise.from_entropy()) for _ in range(2))
    assert one.report.private
    assert one.ledger.private
    assert one.labels.metadata["private"] == "true"
    # All 90 labels agree by chance with probability far below 1e-6.
    assert one.labels.labels.tolist() != two.labels.labels.tolist()


def test_the_ledger_remembers_the_draw_of_its_own_report():
    assert aggregated(COUNTS).ledger.draws == (PLAN.draw,)
    quiet = ReleasePlan(ReleaseKind.NONE, delta=1e-5, order=5.0, beta=0.04, sigma=9.0)
    assert aggregated(COUNTS, plan=quiet).ledger.draws == ()


@pytest.mark.parametrize("queries", [89, 91])
def test_another_number_of_rows_than_announced_is_refused(queries):
    with pytest.raises(VoteError) as caught:
        aggregated(COUNTS, queries=queries)
    assert str(caught.value) == f"expected {queries} queries, the votes hold 90"


def test_progress_counts_every_row_once():
    seen = []
    run(
        batches(COUNTS, 40),
        MECHANISM,
        orders=[],
        noise=Noise.from_seed(1),
        max_answers=1,
        progress=seen.append,
    )
    assert seen == [40, 40, 10]
