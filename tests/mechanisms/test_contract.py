"""What every mechanism with a Rényi cost promises, on whole graphs of neighbours.

Neighbours differ in at most k teachers, each of which moves its vote, casts one or takes it back.
For Interactive a node is a histogram together with what the student predicts for it; neighbours
share the prediction, which is public. The stability family keeps the promises that apply to it.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import binom

from pate_cli.accounting.stability import distance_to_instability
from pate_cli.labels import NO_LABEL
from pate_cli.mechanisms import scored_from_parameters
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability
from pate_cli.noise import Noise
from pate_cli.run import label_batches, run
from pate_cli.votes import VoteBatch
from pate_cli.votes.side_files import StudentPredictions

ORDER = 2.2
TEACHERS = {2: 8, 3: 6}
STUDENTS = {
    2: [[0.5, 0.5], [0.95, 0.05], [0.3, 0.7], [0.0, 1.0]],
    3: [[0.35, 0.34, 0.31], [0.93, 0.04, 0.03], [0.21, 0.5, 0.29], [0.0, 0.0, 1.0]],
}
NAMES = ["gnmax", "confident", "interactive", "lnmax"]


def build(name, classes, teachers_per_record=1):
    shape = {"teachers": TEACHERS[classes], "classes": classes, "teachers_per_record": reach}
    if name == "gnmax":
        return GNMax(sigma2=2.5, **shape)
    if name == "lnmax":
        return LNMax(laplace_scale=1.7, **shape)
    if name == "confident":
        return ConfidentGNMax(threshold=3.7, sigma1=2.2, sigma2=2.5, **shape)
    return InteractiveGNMax(threshold=1.3, sigma1=2.2, sigma2=2.5, confidence=0.9, **shape)


def bound(mechanism, predictions):
    """The mechanism bound to rows with these predictions, if it takes any."""
    if mechanism.name != "interactive":
        return mechanism
    return replace(mechanism, predictions=StudentPredictions(np.asarray(predictions)))


@dataclass(frozen=True)
class Graph:
    """Every histogram with up to two votes missing, under every student, and all neighbours."""

    mechanism: Any
    law: Any

    @cached_property
    def histograms(self):
        teachers, classes = self.mechanism.teachers, self.mechanism.classes
        rows = itertools.product(range(teachers + 1), repeat=classes)
        return np.array([row for row in rows if teachers - 2 <= sum(row) <= teachers])

    @property
    def students(self):
        if self.mechanism.name == "interactive":
            return np.array(STUDENTS[self.mechanism.classes])
        return np.zeros((1, self.mechanism.classes))

    @cached_property
    def counts(self):
        return np.tile(self.histograms, (len(self.students), 1))

    @cached_property
    def predictions(self):
        return np.repeat(self.students, len(self.histograms), axis=0)

    @cached_property
    def edges(self):
        """Ordered pairs at most k teachers apart, under the same student."""
        moved = self.histograms[:, None] - self.histograms[None]
        gained, lost = np.maximum(moved, 0).sum(axis=2), np.maximum(-moved, 0).sum(axis=2)
        apart = np.maximum(gained, lost)
        pairs = np.argwhere((apart > 0) & (apart <= self.mechanism.teachers_per_record))
        students = range(len(self.students))
        return np.concatenate([pairs + one * len(self.histograms) for one in students])

    @cached_property
    def score(self):
        return bound(self.mechanism, self.predictions).score(self.counts)

    @cached_property
    def surface(self):
        return self.mechanism.cost_table(ORDER)

    @cached_property
    def cells(self):
        return self.mechanism.cells(self.score, self.surface)

    @cached_property
    def cost(self):
        return self.surface.cost(self.cells)

    @cached_property
    def divergence(self):
        """The exact Rényi divergence of the output, from the first of every edge to the second.

        The output of Interactive says who gave a label; the student's own, where the teachers gave
        none, is a function of public predictions, so it is the same outcome as no answer.
        """
        rows = zip(self.counts, self.predictions, strict=True)
        laws = np.array([self.law(self.mechanism, *row) for row in rows])
        np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=0.0, atol=1e-12)
        logs = np.log(laws[:, laws.max(axis=0) > 0.0])
        here, there = self.edges.T
        terms = ORDER * logs[here] + (1.0 - ORDER) * logs[there]
        return logsumexp(terms, axis=1) / (ORDER - 1.0)


CASES = list(itertools.product(NAMES, [2, 3], [1, 2]))


@pytest.fixture(scope="module", params=CASES, ids=lambda case: "{}-m{}-k{}".format(*case))
def graph(request, exact_law):
    return Graph(build(*request.param), exact_law)


def worst(mechanism):
    """What any one query may cost, whatever its votes."""
    return mechanism.worst_rdp(queries=1, answers=1, orders=np.array([ORDER]))[0]


def test_costs_are_not_negative_and_at_most_that_of_seeing_the_noisy_counts(graph):
    one, reach = graph.mechanism, graph.mechanism.teachers_per_record
    if one.name == "lnmax":
        cap = min(worst(one), one.pure_epsilon)
    else:
        cap = reach**2 * ORDER / one.sigma2**2
    if one.name in ("confident", "interactive"):
        cap += reach**2 * ORDER / (2.0 * one.sigma1**2)
    assert np.all((graph.cost >= 0.0) & (graph.cost <= cap * (1.0 + 1e-12)))
    assert worst(one) <= cap * (1.0 + 1e-12)
    everywhere = graph.surface.rows(0, graph.surface.votes)
    assert np.all((everywhere >= 0.0) & (everywhere <= cap * (1.0 + 1e-12)))
    by_score = bound(one, graph.predictions).rdp(graph.score, np.array([ORDER]))[0]
    np.testing.assert_allclose(by_score, graph.cost, rtol=3e-6)


def test_neighbours_move_the_score_by_at_most_its_lipschitz_constants(graph):
    here, there = graph.edges.T
    assert graph.score.shape == (len(graph.counts), len(graph.mechanism.lipschitz))
    moved = np.abs(graph.score[here] - graph.score[there]).max(axis=0)
    # Real scores of Interactive carry round-off, for which its cells are a trifle wider.
    assert np.all(moved <= np.array(graph.mechanism.lipschitz) * (1.0 + 1e-12))
    # Some neighbour comes near it in the first dimension, so the constant is not generous.
    assert moved[0] >= 0.55 * graph.mechanism.lipschitz[0]
    assert np.abs(graph.cells[here, 0] - graph.cells[there, 0]).max() <= 1
    assert np.abs(graph.cells[here, 1] - graph.cells[there, 1]).max() <= graph.surface.grid.stride


def test_the_cost_covers_the_exact_divergence_from_either_side(graph):
    here, there = graph.edges.T
    covered = np.minimum(graph.cost[here], graph.cost[there])
    assert graph.divergence.max() > 0.1 * covered.max()
    np.testing.assert_array_less(graph.divergence, covered * (1.0 + 1e-9) + 1e-11)
    assert graph.divergence.max() <= worst(graph.mechanism) * (1.0 + 1e-9)


def test_neighbours_change_the_cost_by_at_most_its_local_sensitivity(graph):
    here, there = graph.edges.T
    blocks, surface = graph.surface.blocks, graph.surface
    local = blocks[
        graph.cells[:, 0] // surface.rows_per_block, graph.cells[:, 1] // surface.grid.block
    ]
    change = np.abs(graph.cost[here] - graph.cost[there])
    assert change.max() > 1e-2 * graph.cost.max()
    assert np.all(change <= np.minimum(local[here], local[there]))


@pytest.mark.parametrize("reach", [1, 2])
@pytest.mark.parametrize("name", ["gnmax", "confident", "interactive", "lnmax"])
def test_sensitivity_at_a_distance_is_within_that_of_a_neighbour_one_farther(
    name, reach, exact_law, single_curves
):
    graph = Graph(build(name, 3, reach), exact_law)
    curves, ceiling = single_curves(graph.surface, graph.cells, 6)
    here, there = graph.edges.T
    assert np.all(curves[here, :-1] <= curves[there, 1:] * (1.0 + 1e-12))
    assert np.all(np.diff(curves, axis=1) >= 0.0)
    assert curves.max() <= ceiling * (1.0 + 1e-12)


def test_a_mechanism_is_built_again_from_its_parameters(graph):
    parameters = bound(graph.mechanism, graph.predictions).parameters()
    assert parameters["name"] == graph.mechanism.name
    assert scored_from_parameters(parameters) == graph.mechanism


ROWS = 60


def some_votes(mechanism, rows=ROWS):
    random = np.random.default_rng(21)
    shares = random.dirichlet(np.full(mechanism.classes, 0.7), size=rows)
    counts = random.multinomial(mechanism.teachers, shares).astype(np.int64)
    return counts, random.dirichlet(np.full(mechanism.classes, 0.5), size=rows)


def with_ids(mechanism, predictions, ids):
    if mechanism.name != "interactive":
        return mechanism
    return replace(mechanism, predictions=StudentPredictions(predictions, ids))


def batches(counts, ids, sizes):
    first = 0
    for size in itertools.cycle(sizes):
        if first >= len(counts):
            return
        part = counts[first : first + size]
        yield VoteBatch(first, ids[first : first + size], part)
        first += len(part)


SPLITS = [[ROWS], [1], [7], [13, 2, 1, 29]]


@pytest.fixture(
    params=list(itertools.product(NAMES, [2, 3])), ids=lambda case: "{}-m{}".format(*case)
)
def mechanism(request):
    return build(*request.param)


def asked(mechanism, counts, ids, sizes, *, noise, cap=ROWS):
    return run(
        batches(counts, ids, sizes), mechanism, orders=[4.0, ORDER], noise=noise, max_answers=cap
    )


@pytest.mark.parametrize("cap", [ROWS, 9])
def test_what_is_charged_depends_neither_on_the_order_of_rows_nor_on_batches(mechanism, cap):
    counts, predictions = some_votes(mechanism)
    ids = np.array([f"query {place}" for place in range(ROWS)])
    mechanism = with_ids(mechanism, predictions, ids)
    reference = asked(mechanism, counts, ids, [ROWS], noise=Noise.from_seed(1), cap=cap)
    assert len(reference.tally[ORDER].cells) > 3
    shuffled = np.random.default_rng(3).permutation(ROWS)
    for rows, sizes in itertools.product([np.arange(ROWS), shuffled, shuffled[::-1]], SPLITS):
        found = asked(
            mechanism, counts[rows], ids[rows], sizes, noise=Noise.from_seed(len(sizes)), cap=cap
        )
        for order in (4.0, ORDER):
            tally, wanted = found.tally[order], reference.tally[order]
            np.testing.assert_array_equal(tally.cells, wanted.cells)
            np.testing.assert_array_equal(tally.weights, wanted.weights)
            assert tally.queries == ROWS


def test_a_label_depends_on_its_counts_and_its_noise_alone(mechanism):
    """Other ids, other batches, other votes in all the other rows: the same label."""
    counts, predictions = some_votes(mechanism)
    ids = np.arange(ROWS)
    bound_by_order = with_ids(mechanism, predictions, None)
    wanted = asked(bound_by_order, counts, ids, [ROWS], noise=Noise.from_seed(5)).labels
    assert len(set(wanted.labels.tolist())) > 1
    for sizes in SPLITS:
        other_ids = np.array([f"{place:x}" for place in 7919 * ids])
        found = asked(bound_by_order, counts, other_ids, sizes, noise=Noise.from_seed(5)).labels
        np.testing.assert_array_equal(found.labels, wanted.labels)
        np.testing.assert_array_equal(found.sources, wanted.sources)
    for row in (0, 17, ROWS - 1):
        others = np.random.default_rng(row).permutation(np.delete(ids, row))
        rows = np.insert(others, row, row)
        moved = with_ids(mechanism, predictions[rows], None)
        found = asked(moved, counts[rows], ids, [11], noise=Noise.from_seed(5)).labels
        assert found.labels[row] == wanted.labels[row]
        assert found.sources[row] == wanted.sources[row]


class Given:
    """Noise that was written down before."""

    private = False

    def __init__(self, draws):
        self.draws = draws

    def normal(self, shape):
        assert self.draws.shape == (shape if isinstance(shape, tuple) else (shape,))
        return self.draws

    laplace = normal


def test_permuting_the_classes_permutes_labels_and_leaves_costs(mechanism):
    counts, predictions = some_votes(mechanism, 400)
    permutation = np.roll(np.arange(mechanism.classes), 1)
    extra = 1 if mechanism.name in ("confident", "interactive") else 0
    draws = np.random.default_rng(8).normal(size=(400, mechanism.classes + extra))
    moved = np.concatenate([draws[:, :extra], draws[:, extra:][:, permutation]], axis=1)
    one, other = (bound(mechanism, p) for p in (predictions, predictions[:, permutation]))
    back = np.append(permutation, NO_LABEL)
    labels = one.label(counts, Given(draws))
    relabelled = other.label(counts[:, permutation], Given(moved))
    np.testing.assert_array_equal(back[relabelled], labels)
    assert len(np.unique(labels)) == mechanism.classes + extra
    if one.fallback() is not None:
        np.testing.assert_array_equal(back[other.fallback()], one.fallback())
    score, permuted = one.score(counts), other.score(counts[:, permutation])
    np.testing.assert_allclose(permuted, score, rtol=0.0, atol=1e-12)
    orders = np.array([ORDER])
    np.testing.assert_allclose(other.rdp(permuted, orders), one.rdp(score, orders), rtol=5e-3)
    assert other.rdp(permuted, orders).sum() == pytest.approx(
        one.rdp(score, orders).sum(), rel=1e-6
    )


# Outcomes tested here: mechanisms × classes × histograms × outcomes × two tails.
DRAWS, FALSE_ALARM = 12_000, 1e-6 / (len(NAMES) * 2 * 4 * 5 * 2)


def test_labels_and_their_sources_follow_the_exact_law(mechanism, exact_law):
    classes, teachers = mechanism.classes, mechanism.teachers
    histograms = {
        2: [[8, 0], [4, 4], [3, 5], [1, 7]],
        3: [[6, 0, 0], [2, 2, 2], [0, 3, 2], [1, 4, 1]],
    }
    students, noise = STUDENTS[classes], Noise.from_seed(41)
    for counts, student in zip(histograms[classes], students, strict=True):
        assert sum(counts) <= teachers
        one = bound(mechanism, np.tile(student, (DRAWS, 1)))
        rows = VoteBatch(0, np.arange(DRAWS), np.tile(np.array(counts), (DRAWS, 1)))
        ((_, table),) = label_batches([rows], one, noise=noise, max_answers=DRAWS)
        answered = table.sources == "teachers"
        seen = [
            np.sum(~answered),
            *(np.sum(answered & (table.labels == i)) for i in range(classes)),
        ]
        # Without an answer the student's label is public: it is always the same.
        sure = mechanism.name == "interactive" and max(student) > 0.9
        assert set(table.sources[~answered]) <= {"student" if sure else "none"}
        assert set(table.labels[~answered]) <= {int(np.argmax(student)) if sure else NO_LABEL}
        chances = exact_law(mechanism, np.array(counts), np.array(student))
        if mechanism.name == "confident":
            chances = exact_law(mechanism, np.array(counts))
        for count, chance in zip(seen, chances, strict=True):
            assert count == 0 if chance == 0.0 else binom.cdf(count, DRAWS, chance) > FALSE_ALARM
            assert binom.sf(count - 1, DRAWS, chance) > FALSE_ALARM


@pytest.mark.parametrize("name", NAMES)
def test_shared_records_change_the_price_and_no_label(name):
    """k teachers a record: the same draws, the same labels, a larger cost and sensitivity."""
    once, twice = build(name, 3), build(name, 3, 2)
    counts, predictions = some_votes(once)
    labels = [bound(m, predictions).label(counts, Noise.from_seed(2)) for m in (once, twice)]
    np.testing.assert_array_equal(*labels)
    scores = [bound(m, predictions).score(counts) for m in (once, twice)]
    np.testing.assert_array_equal(*scores)
    costs = [m.rdp(scores[0], np.array([ORDER]))[0] for m in (once, twice)]
    assert np.all(costs[1] > costs[0])
    assert worst(twice) > 2.0 * worst(once)
    assert twice.gaussian_mu(queries=5, answers=3) > once.gaussian_mu(queries=5, answers=3)
    for low, high in zip(once.lipschitz, twice.lipschitz, strict=True):
        assert high == pytest.approx(2.0 * low)


STABLE = [Stability(9, 3, 0.8, 0.3, reach) for reach in (1, 2)] + [
    SparseVector(9, 3, 0.8, 0.3, 1000, reach) for reach in (1, 2)
]


@pytest.mark.parametrize("reach", [1, 2, 3])
@pytest.mark.parametrize("classes", [2, 3, 4])
def test_votes_that_appear_or_go_missing_move_the_distance_by_at_most_one(classes, reach):
    rows = itertools.product(range(9), repeat=classes)
    counts = np.array([row for row in rows if 5 <= sum(row) <= 8])
    moved = counts[:, None] - counts[None]
    apart = np.maximum(np.maximum(moved, 0).sum(axis=2), np.maximum(-moved, 0).sum(axis=2))
    here, there = np.argwhere((apart > 0) & (apart <= reach)).T
    distance = distance_to_instability(counts, teachers_per_record=reach)
    assert np.abs(distance[here] - distance[there]).max() == 1
    turned = counts[here].argmax(axis=1) != counts[there].argmax(axis=1)
    assert turned.any()
    assert distance[here[turned]].max() == 0


@pytest.mark.parametrize("stable", STABLE, ids=str)
def test_permuting_the_classes_permutes_stable_labels(stable):
    counts, _ = some_votes(stable, 400)
    top = np.sort(counts, axis=1)
    counts = counts[top[:, -1] > top[:, -2]]  # a tie goes to the lowest class, whoever that is
    permutation = np.array([2, 0, 1])
    labels = stable.label(counts, Noise.from_seed(3))
    relabelled = stable.label(counts[:, permutation], Noise.from_seed(3))
    np.testing.assert_array_equal(np.append(permutation, NO_LABEL)[relabelled], labels)
    assert len(np.unique(labels)) == 4


@pytest.mark.parametrize("stable", STABLE, ids=str)
def test_a_stable_label_depends_on_its_counts_and_its_noise_alone(stable):
    """For sparse vector: and on the refusals before it, which these rows keep as they are."""
    counts, _ = some_votes(stable)
    wanted = stable.label(counts, Noise.from_seed(5))
    for sizes in SPLITS:
        labeller = stable.start() if isinstance(stable, SparseVector) else stable
        ids = np.array([f"{place:x}" for place in range(ROWS)])
        parts = label_batches(
            batches(counts, ids, sizes), labeller, noise=Noise.from_seed(5), max_answers=ROWS
        )
        found = np.concatenate([table.labels for _, table in parts])
        np.testing.assert_array_equal(found, wanted)
    changed = counts.copy()
    changed[31:] = counts[31:][::-1]  # later rows never matter
    if isinstance(stable, Stability):
        changed[:30] = counts[:30][::-1]
    found = stable.label(changed, Noise.from_seed(5))
    if isinstance(stable, Stability):
        assert found[30] == wanted[30]
    else:
        np.testing.assert_array_equal(found[:31], wanted[:31])
