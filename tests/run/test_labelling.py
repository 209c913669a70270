"""A run from batches to report, for every kind of account: caps, batches, charges, sessions."""

import math

import numpy as np
import pytest
from scipy.special import ndtr

import pate_cli as pate
from pate_cli.accounting.conversion import round_up
from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.sensitivity import distances_for
from pate_cli.core.arrays import NO_LABEL
from pate_cli.core.errors import VoteError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import Bound, ReleaseKind
from pate_cli.disclosure.settings import ReleasePlan
from pate_cli.disclosure.target import States, TargetPlan
from pate_cli.mechanisms.base import ComposedMechanism
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability
from pate_cli.planning.synthetic import SyntheticEnsemble
from pate_cli.run.labelling import drawn, release_test
from pate_cli.votes.facts import Facts, Voting
from runs import aggregated, cut, same_tally, told
from slices import some

ROWS = 90
MECHANISM = ConfidentGNMax(20, 3, threshold=12.0, sigma1=6.0, sigma2=3.0)
COUNTS = np.random.default_rng(6).multinomial(20, [0.6, 0.3, 0.1], size=ROWS).astype(np.int64)
PLAN = ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=5.0, beta=0.04, sigma=9.0)
STABLE_COUNTS = SyntheticEnsemble(teachers=100, classes=3, queries=ROWS, agreement=0.85).draw(3)[0]
STABILITY = Stability(100, 3, query_epsilon=0.5, query_delta=1e-4)
SPARSE = SparseVector(100, 3, query_epsilon=1.0, query_delta=1e-3, refusals=7)
COMPOSED = [STABILITY, SPARSE]


def by_name(mechanisms):
    return pytest.mark.parametrize("mechanism", mechanisms, ids=lambda one: one.name)


def charged_by(mechanism, plan=PLAN, delta=0.05):
    """How a run is charged: scores by a plan, compositions at a δ."""
    composed = isinstance(mechanism, ComposedMechanism)
    return {"plan": None, "delta": delta} if composed else {"plan": plan, "delta": plan.delta}


def votes_for(mechanism):
    return STABLE_COUNTS if isinstance(mechanism, ComposedMechanism) else COUNTS


def ran(mechanism, counts=None, *, size=32, cap=ROWS, plan=PLAN, key=None, **rest):
    counts = votes_for(mechanism) if counts is None else counts
    key = RunKey.of(3) if key is None else key
    how = charged_by(mechanism, plan) | rest
    return aggregated(cut(counts, size), mechanism, max_answers=cap, key=key, **how)


def labelled(mechanism, *, size=1000, cap=1000):
    """(label, source) columns and, where there is a lattice, the tally."""
    composed = isinstance(mechanism, ComposedMechanism)
    keep = None if composed else States(mechanism, mechanism.cost_table(5.0).grid).tally
    rows = cut(votes_for(mechanism), size)
    parts = list(drawn(rows, mechanism, RunKey.of(3), max_answers=cap, keep=keep))
    labels = np.concatenate([part.labels for part in parts])
    sources = np.concatenate([part.table({}, Facts()).sources for part in parts])
    return labels, sources, None if composed else sum((p.kept for p in parts), Tally.empty())


@by_name([MECHANISM, GNMax(20, 3, sigma2=3.0), *COMPOSED])
def test_labels_are_those_of_the_mechanism(mechanism):
    counts, done = votes_for(mechanism), ran(mechanism)
    wanted = mechanism.label(counts, RunKey.of(3).rows(0, 1))
    np.testing.assert_array_equal(done.labels.labels, wanted)
    np.testing.assert_array_equal(done.labels.ids, np.arange(ROWS))
    answered = wanted != NO_LABEL
    np.testing.assert_array_equal(done.labels.sources, np.where(answered, "teachers", "none"))
    report = done.report
    assert (report.answers, report.queries, report.max_answers) == (answered.sum(), ROWS, ROWS)
    assert report.mechanism == mechanism.parameters()
    assert done.labels.metadata["private"] == "false"
    for name, value in mechanism.parameters().items():
        assert done.labels.metadata[name] == str(value)
    if mechanism in COMPOSED:
        np.testing.assert_array_equal(wanted[answered], counts[answered].argmax(axis=1))


@pytest.mark.parametrize("seed", [4, 9])
def test_a_session_draws_what_a_run_draws(seed):
    """Query by query, or some at once: the labels of a file are those of its rows, asked."""
    asked = {"mechanism": "gnmax", "sigma2": 3.0, "seed": seed, "record": False}
    run = pate.aggregate(COUNTS, layout="counts", max_epsilon=1e3, **asked)
    with pate.Session(teachers=20, classes=3, max_queries=ROWS, max_epsilon=1e3, **asked) as one:
        said = [one.ask(COUNTS[0]), *one.ask_all(list(COUNTS[1:7])), *one.ask_all(COUNTS[7:])]
        assert said == run.labels.labels.tolist()
        assert one.labels.labels.tolist() == said
        same = ("name", "sigma2", "teachers", "classes", "queries", "max_answers", "private")
        assert all(one.labels.metadata[name] == run.labels.metadata[name] for name in same)


@by_name([MECHANISM, *COMPOSED])
@pytest.mark.parametrize("size", [1, 8, 1000])
@pytest.mark.parametrize("cap", some([1, 2, 13, 27], 2))
def test_the_cap_stops_answers_and_not_the_tally(mechanism, size, cap):
    free, _, whole = labelled(mechanism)
    labels, sources, tally = labelled(mechanism, size=size, cap=cap)
    answered = np.flatnonzero(free >= 0)
    assert len(answered) > cap
    last = answered[cap - 1]
    np.testing.assert_array_equal(labels[: last + 1], free[: last + 1])
    assert set(labels[last + 1 :].tolist()) == {NO_LABEL}
    assert set(sources[last + 1 :].tolist()) == {"none"}
    assert np.count_nonzero(labels >= 0) == cap
    if tally is not None:
        assert tally.queries == len(COUNTS)
        same_tally(tally, whole)


def test_the_ledger_charges_all_rows_at_any_cap():
    free, capped = ran(MECHANISM), ran(MECHANISM, cap=2)
    np.testing.assert_array_equal(capped.ledger.rdp, free.ledger.rdp)
    np.testing.assert_array_equal(capped.ledger.sensitivity, free.ledger.sensitivity)
    assert capped.ledger.sensitivity.shape == (1, distances_for(PLAN.beta, teachers=20))
    assert (capped.ledger.rounds[0].max_answers, capped.ledger.rounds[0].answers) == (2, 2)
    assert (capped.report.queries, capped.report.max_answers, capped.report.answers) == (90, 2, 2)
    assert capped.report.data_independent.epsilon < free.report.data_independent.epsilon
    cost = MECHANISM.rdp(MECHANISM.score(COUNTS), np.array([5.0])).sum()
    assert free.ledger.rdp[0] == pytest.approx(cost, rel=3e-6)


def test_beyond_the_distances_of_a_ledger_its_rows_are_the_worst_of_all():
    """So far away no distance is kept, and the votes there may move more than those that are."""
    mechanism = GNMax(400, 3, sigma2=10.0)
    plan = ReleasePlan(ReleaseKind.UPPER, delta=1e-5, order=1.5, beta=0.3, sigma=9.0)
    ledger = ran(mechanism, np.tile([390, 6, 4], (5, 1)), plan=plan, cap=5).ledger
    worst = 5 * mechanism.cost_table(1.5).blocks.max()
    assert ledger.ceiling[0] == pytest.approx(worst, rel=1e-12)
    assert ledger.sensitivity.max() < 0.9 * worst


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
    here, there = (stopped_law(mechanism, file, 1) for file in (rows, moved))
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
    ledger = ran(mechanism, counts, plan=plan, cap=1).ledger
    assert ledger.rdp[0] == pytest.approx(each.sum(), rel=3e-6)
    assert ledger.rdp[0] >= exact


@by_name(COMPOSED)
def test_the_report_states_the_composition_and_nothing_of_the_votes(mechanism):
    done = ran(mechanism, key=RunKey.of(None))
    report, cost = done.report, mechanism.privacy(ROWS, 0.05)
    assert done.ledger is None
    assert report.epsilon == round_up(cost.epsilon) == report.data_independent.labels_epsilon
    assert (report.data_independent.method, report.data_independent.order) == (cost.method, None)
    assert (report.analysis, report.sound, report.private) == ("composition", True, True)
    assert report.sanitized is None
    assert {each.id for each in report.statements if each.holds} == {"all-votes"}
    other = np.ascontiguousarray(np.roll(STABLE_COUNTS, 1, axis=1)[::-1])
    assert ran(mechanism, other).report.epsilon == report.epsilon
    assert ran(mechanism, cap=4).report.epsilon == report.epsilon


STUDENT = np.tile((0.1, 0.2, 0.7), (ROWS, 1))


def test_a_student_labels_only_what_the_teachers_leave():
    """And its labels are no answers: they cost nothing, and say nothing of the votes."""
    student = STUDENT.copy()
    student[::3] = (0.4, 0.3, 0.3)  # unsure
    noise = {"threshold": 12.0, "sigma1": 6.0, "sigma2": 3.0}
    mechanism = InteractiveGNMax(20, 3, predictions=student, confidence=0.5, **noise)
    teachers = mechanism.label(COUNTS, RunKey.of(3).rows(0, mechanism.draws))
    assert {0, NO_LABEL} <= set(teachers.tolist())
    parts = list(drawn(cut(COUNTS, 32), mechanism, RunKey.of(3), max_answers=ROWS))
    labels = np.concatenate([part.labels for part in parts])
    sources = np.concatenate([part.table({}, Facts()).sources for part in parts])
    left = np.where(np.arange(ROWS) % 3 == 0, NO_LABEL, 2)
    np.testing.assert_array_equal(labels, np.where(teachers == NO_LABEL, left, teachers))
    whose = np.where(left == NO_LABEL, "none", "student")
    np.testing.assert_array_equal(sources, np.where(teachers == NO_LABEL, whose, "teachers"))
    assert sum(part.answers for part in parts) == np.count_nonzero(teachers != NO_LABEL)


@pytest.mark.parametrize("votes", [None, 10])
def test_the_release_test_is_drawn_from_the_cost_of_all_rows(votes, monkeypatch):
    """Of votes on few queries, from that of the costliest so many."""
    mechanism, orders, coin = GNMax(20, 3, sigma2=6.0), (4.0, 8.0), TargetPlan.coin
    plan = TargetPlan(2.0, 1e-5, 0.5, Bound.TWO_TAIL, orders)
    voting = None if votes is None else Voting(votes, assigned=True)
    settings = told(mechanism, queries=ROWS, target=plan, voting=voting)
    states, most, seen = plan.states(mechanism), votes or ROWS, []

    def looked(self, profile, ceiling, **more):
        seen.append(ceiling)
        for order in orders:
            each = states.costs(order, states.of(mechanism, COUNTS))
            costliest = -np.sort(-each, axis=1)[:, :most].sum(axis=1)
            np.testing.assert_allclose(profile(order), costliest, rtol=1e-9)
        return coin(self, profile, ceiling, **more)

    monkeypatch.setattr(TargetPlan, "coin", looked)
    release_test(cut(COUNTS, 32), mechanism, settings, RunKey.of(3))
    (ceiling,) = seen
    worst = mechanism.worst_rdp(queries=most, answers=most, orders=np.array(orders))
    np.testing.assert_allclose(ceiling, worst, rtol=1e-12)
    with pytest.raises(VoteError, match="expected 90 queries, but the votes have 89"):
        release_test(cut(COUNTS[1:], 32), mechanism, settings, RunKey.of(3))
