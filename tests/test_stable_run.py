"""Runs of the stability family: labels, the public report, and a price that no vote moves."""

from __future__ import annotations

import json

import numpy as np
import pytest
from pate_cli.stable_run import aggregate_stable, price_stable

from pate_cli.accounting.conversion import round_up
from pate_cli.errors import ParameterError, UnreachableError, VoteError
from pate_cli.labels import NO_LABEL
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability
from pate_cli.noise import Noise
from pate_cli.synthetic import SyntheticEnsemble
from pate_cli.votes import VoteBatch

COUNTS = SyntheticEnsemble(teachers=100, classes=3, queries=90, agreement=0.85).draw(3)[0]
STABILITY = Stability(100, 3, 0.5, 1e-4)
SPARSE = SparseVector(100, 3, 1.0, 1e-3, 7)
BOTH = [STABILITY, SPARSE]


def batches(counts, size):
    for first in range(0, len(counts), size):
        part = counts[first : first + size]
        yield VoteBatch(first, np.arange(first, first + len(part)), part)


def ran(mechanism, counts=COUNTS, *, size=31, queries=None, cap=90, delta=0.05, noise=None, **rest):
    return aggregate_stable(
        batches(counts, size),
        mechanism,
        queries=len(counts) if queries is None else queries,
        max_answers=cap,
        delta=delta,
        noise=Noise.from_seed(4) if noise is None else noise,
        **rest,
    )


@pytest.mark.parametrize("mechanism", BOTH, ids=lambda one: one.name)
@pytest.mark.parametrize("size", [1, 31, 1000])
def test_labels_are_those_of_the_mechanism_whatever_the_batches(mechanism, size):
    labels, report = ran(mechanism, size=size)
    wanted = mechanism.label(COUNTS, Noise.from_seed(4))
    np.testing.assert_array_equal(labels.labels, wanted)
    answered = wanted != NO_LABEL
    assert 5 < answered.sum() < 90
    np.testing.assert_array_equal(labels.sources, np.where(answered, "teachers", "none"))
    np.testing.assert_array_equal(labels.labels[answered], COUNTS[answered].argmax(axis=1))
    assert (report.answers, report.queries, report.max_answers) == (answered.sum(), 90, 90)
    assert labels.metadata["private"] == "false"
    assert labels.metadata["query_epsilon"] == str(mechanism.query_epsilon)


def test_nothing_is_answered_after_the_last_refusal():
    labels, _ = ran(SPARSE)
    refused = np.flatnonzero(labels.labels == NO_LABEL)
    seventh = refused[6]
    assert seventh < 80
    np.testing.assert_array_equal(refused[6:], np.arange(seventh, 90))


@pytest.mark.parametrize("cap", [1, 4])
@pytest.mark.parametrize("mechanism", BOTH, ids=lambda one: one.name)
def test_a_cap_stops_the_run_and_lowers_no_epsilon(mechanism, cap):
    free, free_report = ran(mechanism)
    capped, report = ran(mechanism, cap=cap)
    last = np.flatnonzero(free.labels != NO_LABEL)[cap - 1]
    np.testing.assert_array_equal(capped.labels[: last + 1], free.labels[: last + 1])
    assert set(capped.labels[last + 1 :].tolist()) == {NO_LABEL}
    assert (report.answers, report.max_answers) == (cap, cap)
    assert report.epsilon == free_report.epsilon


@pytest.mark.parametrize("mechanism", BOTH, ids=lambda one: one.name)
def test_the_report_states_the_composition_and_nothing_of_the_votes(mechanism):
    _, report = ran(mechanism, noise=Noise.from_entropy())
    cost = mechanism.privacy(90, 0.05)
    assert report.epsilon == round_up(cost.epsilon) == report.data_independent.epsilon
    assert report.data_independent.labels_epsilon == report.epsilon
    assert (report.data_independent.method, report.data_independent.order) == (cost.method, None)
    assert (report.analysis, report.sound, report.private) == ("composition", True, True)
    assert report.sanitized.release == "none"
    assert report.sanitized.epsilon is None
    held = {one.id for one in report.statements if one.holds}
    assert held == {"all-votes"}
    assert report.rounds[0]["mechanism"] == mechanism.parameters() == report.mechanism
    other = np.roll(COUNTS, 1, axis=1)[::-1]
    _, elsewhere = ran(mechanism, np.ascontiguousarray(other))
    assert elsewhere.epsilon == report.epsilon


def test_a_seed_takes_every_claim_back():
    _, report = ran(STABILITY)
    assert report.private is False
    assert not any(one.holds for one in report.statements)
    assert report.summary.startswith("Nothing: the noise came from a fixed seed")


@pytest.mark.parametrize("mechanism", BOTH, ids=lambda one: one.name)
def test_the_price_before_is_the_price_after(mechanism):
    priced = price_stable(mechanism, queries=90, max_answers=12, delta=0.05)
    _, report = ran(mechanism, cap=12)
    after = report.to_dict()
    for field in ("epsilon", "delta", "mechanism", "queries", "max_answers", "data_independent"):
        assert priced[field] == after[field]
    assert priced["planned_release"] == {"release": "none"}
    assert priced["threshold"] == mechanism.threshold
    assert priced["dry_run"] is True
    assert json.dumps(priced, allow_nan=False)


def test_records_of_several_teachers_are_named_in_the_adjacency():
    _, report = ran(Stability(100, 3, 0.5, 1e-4, 3))
    assert report.adjacency.startswith("Neighbouring vote files differ in 3 teachers, ")


@pytest.mark.parametrize(("epsilon", "warned"), [(0.05, False), (5.0, True)])
def test_an_epsilon_that_promises_nothing_is_warned_of(epsilon, warned):
    _, report = ran(Stability(100, 3, epsilon, 1e-4), warnings=["one of the caller's"])
    assert report.warnings[0] == "one of the caller's"
    assert (report.epsilon > 20.0) is warned
    assert len(report.warnings) == 1 + warned
    if warned:
        assert report.warnings[1].startswith("This epsilon promises practically nothing. ")


def test_progress_counts_every_row_once():
    seen = []
    ran(SPARSE, size=40, progress=seen.append)
    assert seen == [40, 40, 10]


@pytest.mark.parametrize("queries", [89, 91])
def test_another_number_of_rows_than_announced_is_refused(queries):
    with pytest.raises(VoteError) as caught:
        ran(STABILITY, queries=queries)
    assert str(caught.value) == f"expected {queries} queries, the votes hold 90"


def test_an_impossible_delta_is_refused_before_any_label():
    def never():
        raise AssertionError("no vote may be read")
        yield

    with pytest.raises(UnreachableError):
        aggregate_stable(
            never(),
            STABILITY,
            queries=90,
            max_answers=90,
            delta=1e-4,
            noise=Noise.from_seed(1),
        )
    with pytest.raises(UnreachableError):
        price_stable(STABILITY, queries=90, max_answers=90, delta=1e-4)
    with pytest.raises(ParameterError):
        price_stable(STABILITY, queries=90, max_answers=90, delta=1.0)
