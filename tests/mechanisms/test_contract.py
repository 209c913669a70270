"""What every mechanism promises, on whole graphs of neighbours, for one or two teachers a record.

**To register a mechanism, add one `Case` to `CASES`**: how to build it for a small ensemble, and
the exact law of its labels by a way of its own (tests/support/laws.py has quadratures for argmaxes
with Gaussian and Laplace noise). Everything below is inherited from that. A mechanism with a Rényi
cost (`ScoredMechanism`) is held to

  - the two-sided divergences of its law over all neighbours, with worst case and μ above them;
  - Lipschitz scores, cells and costs that neighbours move as far as they say and no farther;
  - smooth sensitivities; one cost by lattice and by score; steps that add up; charges that depend
    neither on batches nor on the order of rows;

one whose cost is a composition (`ComposedMechanism`) to the (ε, δ) that it states for a query; and
every one to labels, sources and chances by the law, seeds, batches, classes without an order of
their own, and parameters that build it again. `test_every_mechanism_is_under_contract` fails for a
mechanism without a case.

Neighbours differ in at most k teachers, each of which moves its vote, casts one or takes it back.
Mechanisms that take a public prior have it on all graphs of three classes as well: its votes, which
nobody's record moves, are on top of the teachers', for a class that they back or contradict.
For Interactive a node is a histogram together with what the student predicts for it; neighbours
share the prediction, which is public.
"""

import functools
import itertools
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from scipy.special import logsumexp, ndtr
from scipy.stats import binom, laplace

from beside import a_student
from divergences import hockey_stick, renyi
from graphs import Graph
from laws import (
    answers_law,
    epoch_law,
    gaussian_argmax_law,
    laplace_argmax_law,
    named_argmax_law,
    plurality_law,
)
from pate_cli.accounting import cost_table
from pate_cli.accounting.cost_table import Tally
from pate_cli.core.arrays import NO_LABEL, SparseCounts
from pate_cli.core.errors import LedgerError, UsageError
from pate_cli.core.noise import Noise, RunKey
from pate_cli.mechanisms import CLASSES, scored_from_parameters
from pate_cli.mechanisms.base import (
    ComposedMechanism,
    Mechanism,
    OneScoreMechanism,
    ScoredMechanism,
)
from pate_cli.mechanisms.confident import ConfidentGNMax
from pate_cli.mechanisms.gnmax import GNMax
from pate_cli.mechanisms.interactive import InteractiveGNMax
from pate_cli.mechanisms.lnmax import LNMax
from pate_cli.mechanisms.open_vocabulary import OpenVocabulary
from pate_cli.mechanisms.sparse_vector import SparseVector
from pate_cli.mechanisms.stability import Stability
from pate_cli.run.labelling import drawn
from pate_cli.votes.facts import Facts
from refusals import refusal
from runs import Given, cut, same_tally, single_curves
from slices import some

ORDER = 2.2
TEACHERS = {2: 8, 3: 6}
PRIOR = 3
STUDENTS = {
    2: [[0.5, 0.5], [0.95, 0.05], [0.3, 0.7], [0.0, 1.0]],
    3: [[0.35, 0.34, 0.31], [0.93, 0.04, 0.03], [0.21, 0.5, 0.29], [0.0, 0.0, 1.0]],
}


@dataclass(frozen=True)
class Case:
    """A mechanism under contract.

    Attributes:
        build: the mechanism from `teachers`, `classes` and `teachers_per_record` (keywords; 8
            teachers and 2 classes, or 6 and 3), with noise of a few votes, so that all outcomes of
            some histogram are likely.
        law: from the mechanism and counts [rows, m] the probabilities [rows, 1 + m] of no answer
            of the teachers and of every class, each row on its own.
        common_draws: how many draws a row takes before those of its m classes; None where the
            classes have no noise of their own.
        seen: from the mechanism and an order, the cost of publishing all noisy values; only of a
            mechanism with a Rényi cost. If noisy values have no finite cost, a bound on any votes.
        students: whether it takes predictions; `law` then finds those of its rows bound to it.
    """

    build: Callable[..., Mechanism]
    law: Callable[[Any, np.ndarray], np.ndarray]
    common_draws: int | None
    seen: Callable[[Any, float], float] | None = None
    students: bool = False

    @property
    def refuses(self) -> bool:
        """Whether some queries go without an answer."""
        return self.common_draws != 0 or self.build is CASES["open-vocabulary"].build


def checked_law(mechanism, counts, v):
    answered = ndtr((v - mechanism.threshold) / mechanism.sigma1)
    return answers_law(answered, np.exp(gaussian_argmax_law(counts, mechanism.sigma2)))


def distance(mechanism, counts):
    """max(⌈gap/2k⌉ − 1, 0)."""
    top = np.sort(counts, axis=1)
    step = 2 * mechanism.teachers_per_record
    return np.maximum(-(-(top[:, -1] - top[:, -2]) // step) - 1, 0)


def stable_law(mechanism, counts):
    threshold = np.log(1.0 / mechanism.query_delta) / mechanism.query_epsilon
    excess = threshold - distance(mechanism, counts)
    answered = laplace.sf(excess, scale=1.0 / mechanism.query_epsilon)
    return answers_law(answered, plurality_law(counts))


def first_row_law(mechanism, counts):
    answered = epoch_law(mechanism, distance(mechanism, counts)[:, None])[:, 1]
    return answers_law(answered, plurality_law(counts))


def seen_twice(mechanism, order):
    """Of a noisy score and of noisy counts: k²λ/2σ1² + k²λ/σ2²."""
    k = mechanism.teachers_per_record
    return k**2 * order * (0.5 / mechanism.sigma1**2 + 1.0 / mechanism.sigma2**2)


CASES = {
    "gnmax": Case(
        build=functools.partial(GNMax, sigma2=1.8),
        law=lambda m, counts: answers_law(
            np.ones(len(counts)), np.exp(gaussian_argmax_law(counts, m.sigma2))
        ),
        common_draws=0,
        seen=lambda m, order: m.teachers_per_record**2 * order / m.sigma2**2,
    ),
    "confident": Case(
        build=functools.partial(ConfidentGNMax, threshold=3.7, sigma1=2.2, sigma2=2.5),
        law=lambda m, counts: checked_law(m, counts, counts.max(axis=1)),
        common_draws=1,
        seen=seen_twice,
    ),
    "interactive": Case(
        build=functools.partial(InteractiveGNMax, threshold=1.3, sigma1=2.2, sigma2=2.5),
        law=lambda m, counts: checked_law(
            m, counts, (counts - m.most_votes * m.predictions).max(axis=1)
        ),
        common_draws=1,
        seen=seen_twice,
        students=True,
    ),
    "lnmax": Case(
        build=functools.partial(LNMax, laplace_scale=1.7),
        law=lambda m, counts: answers_law(
            np.ones(len(counts)), np.exp(laplace_argmax_law(counts, m.laplace_scale))
        ),
        common_draws=0,
        seen=lambda m, order: min(worst(m, order), m.pure_epsilon),
    ),
    "stability": Case(
        build=functools.partial(Stability, query_epsilon=0.8, query_delta=0.3),
        law=stable_law,
        common_draws=None,
    ),
    "sparse-vector": Case(
        build=functools.partial(SparseVector, query_epsilon=0.8, query_delta=0.3, refusals=1000),
        law=first_row_law,
        common_draws=None,
    ),
    "open-vocabulary": Case(
        build=functools.partial(OpenVocabulary, sigma2=1.8, threshold=3.4),
        law=lambda m, counts: named_argmax_law(counts, sigma=m.sigma2, threshold=m.threshold),
        common_draws=0,
    ),
}


def worst(mechanism, order=ORDER):
    """What any one query may cost, for all votes."""
    return mechanism.worst_rdp(queries=1, answers=1, orders=np.array([order]))[0]


def build(name, classes, k=1, prior=0):
    more = {"prior_weight": prior} if prior else {}
    teachers = TEACHERS[classes]
    return CASES[name].build(teachers=teachers, classes=classes, teachers_per_record=k, **more)


def names(kind):
    return [name for name in CASES if isinstance(build(name, 2), kind)]


def with_student(mechanism, predictions, ids=None):
    """The mechanism with these predictions, if it takes any."""
    if not CASES[mechanism.name].students:
        return mechanism
    return replace(mechanism, predictions=a_student(np.asarray(predictions), ids))


def test_every_mechanism_is_under_contract():
    assert set(CASES) == set(CLASSES)
    for name in CASES:
        assert build(name, 2).name == name


# ---------------------------------------------------------------- whole graphs


@dataclass(frozen=True)
class Nodes:
    """Every histogram with up to two votes missing, under every student, and all neighbours."""

    case: Case
    unbound: Any

    @cached_property
    def graph(self):
        m = self.unbound
        return Graph.of(m.teachers, m.classes, missing=2, teachers_per_record=m.teachers_per_record)

    @cached_property
    def students(self):
        m = self.unbound
        return np.array(STUDENTS[m.classes]) if self.case.students else np.zeros((1, m.classes))

    @cached_property
    def counts(self):
        guess = self.unbound.prior_weight * np.eye(self.unbound.classes, dtype=np.int64)[0]
        return np.tile(self.graph.histograms + guess, (len(self.students), 1))

    @cached_property
    def mechanism(self):
        predictions = np.repeat(self.students, len(self.graph.histograms), axis=0)
        return with_student(self.unbound, predictions)

    @cached_property
    def edges(self):
        """Ordered pairs at most k teachers apart, under the same student."""
        size, students = len(self.graph.histograms), range(len(self.students))
        return np.concatenate([self.graph.edges + place * size for place in students]).T

    @cached_property
    def law(self):
        """The student's own label, where the teachers gave none, is a function of public inputs:
        the same outcome as no answer, as the output says who gave a label."""
        laws = self.case.law(self.mechanism, self.counts)
        np.testing.assert_allclose(laws.sum(axis=1), 1.0, rtol=0.0, atol=1e-12)
        return laws

    @cached_property
    def score(self):
        return self.mechanism.score(self.counts)

    @cached_property
    def table(self):
        return self.mechanism.cost_table(ORDER)

    @cached_property
    def cells(self):
        return self.mechanism.cells(self.score, self.table.grid)

    @cached_property
    def lattice_cells(self):
        return self.table.on_lattice(self.cells)

    @cached_property
    def cost(self):
        return self.table.cost(self.cells)

    @cached_property
    def logs(self):
        return np.log(self.law[:, self.law.max(axis=0) > 0.0])

    @cached_property
    def divergence(self):
        """The exact Rényi divergence of the output, from the first of every edge to the second."""
        here, there = self.edges
        terms = ORDER * self.logs[here] + (1.0 - ORDER) * self.logs[there]
        return logsumexp(terms, axis=1) / (ORDER - 1.0)


@functools.cache
def nodes_of(*case):
    return Nodes(CASES[case[0]], build(*case))


def on_graphs(kind):
    cases = [(*case, 0) for case in itertools.product(names(kind), [2, 3], [1, 2])]
    guessed = [name for name in names(kind) if build(name, 3).takes_prior]
    cases += [(name, 3, k, PRIOR) for name in guessed for k in (1, 2)]
    ids = ["{}-m{}-k{}".format(*case) + "-prior" * (case[3] > 0) for case in cases]
    return pytest.mark.parametrize("nodes", [nodes_of(*case) for case in cases], ids=ids)


@on_graphs(Mechanism)
def test_chances_are_those_of_the_exact_law(nodes):
    answered = 1.0 - nodes.law[:, 0]
    found = nodes.mechanism.answer_chance(nodes.counts)
    np.testing.assert_allclose(found, answered, rtol=1e-9, atol=1e-12)
    first = nodes.counts.argmax(axis=1)
    some = answered > 0.0  # of names that nobody said none comes out
    agreed = nodes.law[np.arange(len(first)), 1 + first][some] / answered[some]
    found = nodes.mechanism.loss_chance(nodes.counts)
    np.testing.assert_allclose(found[some], 1.0 - agreed, rtol=1e-6, atol=1e-9)
    for chance in (nodes.mechanism.answer_chance, nodes.mechanism.loss_chance):
        assert chance(nodes.counts).shape == (len(nodes.counts),)
    if not nodes.case.students:
        assert nodes.mechanism.answer_chance(nodes.counts[:0]).shape == (0,)
        assert nodes.mechanism.loss_chance(nodes.counts[:0]).shape == (0,)


@on_graphs(ScoredMechanism)
def test_costs_are_not_negative_and_at_most_that_of_seeing_the_noisy_values(nodes):
    mechanism = nodes.mechanism
    cap = nodes.case.seen(mechanism, ORDER)
    assert np.all((nodes.cost >= 0.0) & (nodes.cost <= cap * (1.0 + 1e-12)))
    assert worst(mechanism) <= cap * (1.0 + 1e-12)
    everywhere = nodes.table.rows(0, nodes.table.lattice_rows)
    assert everywhere.shape == (nodes.table.lattice_rows, nodes.table.lattice.size)
    assert np.all((everywhere >= 0.0) & (everywhere <= cap * (1.0 + 1e-12)))
    np.testing.assert_allclose(everywhere[tuple(nodes.lattice_cells.T)], nodes.cost, rtol=1e-13)


@on_graphs(ScoredMechanism)
def test_the_cost_by_score_is_the_cost_on_the_lattice_and_steps_add_up_to_it(nodes):
    orders = np.array([ORDER, 5.0])
    by_score = nodes.mechanism.rdp(nodes.score, orders)
    assert by_score.shape == (2, len(nodes.counts))
    np.testing.assert_allclose(by_score[0], nodes.cost, rtol=3e-6)
    steps = nodes.mechanism.steps(nodes.score, orders)
    assert all(np.all(step >= 0.0) for step in steps.values())
    np.testing.assert_allclose(sum(steps.values()), by_score, rtol=1e-9)
    tally = Tally.of(nodes.mechanism.cells_of(nodes.counts, nodes.table.grid))
    assert nodes.table.price(tally, np.arange(2)).rdp == pytest.approx(nodes.cost.sum(), rel=1e-12)


@on_graphs(ScoredMechanism)
def test_neighbours_move_the_score_by_at_most_its_lipschitz_constants(nodes):
    here, there = nodes.edges
    assert nodes.score.shape == (len(nodes.counts), len(nodes.mechanism.lipschitz))
    moved = np.abs(nodes.score[here] - nodes.score[there]).max(axis=0)
    # Real scores of Interactive carry round-off, for which its cells are a trifle wider.
    assert np.all(moved <= np.array(nodes.mechanism.lipschitz) * (1.0 + 1e-12))
    # Some neighbour comes near it in the first dimension, so the constant is not generous.
    assert moved[0] >= 0.55 * nodes.mechanism.lipschitz[0]
    for cells, grid in (
        (nodes.cells, nodes.table.grid),
        (nodes.lattice_cells, nodes.table.lattice),
    ):
        rows, columns = np.abs(cells[here] - cells[there]).max(axis=0)
        assert rows <= 1
        assert columns <= grid.stride


@on_graphs(ScoredMechanism)
def test_the_cost_covers_the_exact_divergence_from_either_side(nodes):
    here, there = nodes.edges
    covered = np.minimum(nodes.cost[here], nodes.cost[there])
    assert nodes.divergence.max() > 0.1 * covered.max()
    np.testing.assert_array_less(nodes.divergence, covered * (1.0 + 1e-9) + 1e-11)


@on_graphs(ScoredMechanism)
def test_the_prices_for_all_votes_are_above_every_exact_divergence(nodes):
    mechanism = nodes.mechanism
    most = nodes.divergence.max()
    assert most <= worst(mechanism) * (1.0 + 1e-9)
    assert most <= ORDER * mechanism.gaussian_mu(queries=1, answers=1) ** 2 / 2.0
    if mechanism.pure_epsilon is not None:
        here, there = nodes.edges
        ratio = np.abs(nodes.logs[here] - nodes.logs[there]).max()
        assert 0.5 * mechanism.pure_epsilon < ratio <= mechanism.pure_epsilon * (1.0 + 1e-9)


@on_graphs(ScoredMechanism)
def test_a_vote_that_appears_or_goes_missing_costs_no_more_than_is_said(nodes):
    mechanism = nodes.mechanism
    if mechanism.teachers_per_record > 1:
        return  # refused beside few votes
    here, there = nodes.edges
    lone = np.abs(nodes.counts[here] - nodes.counts[there]).sum(axis=1) == 1
    cost = mechanism.query_costs(np.array([ORDER]), lone=True)
    most = nodes.divergence[lone].max()
    assert 0.2 * cost.whole[0] < most <= cost.whole[0] * (1.0 + 1e-9)
    test, both = (mechanism.gaussian_mu(queries=1, answers=a) ** 2 for a in (0, 1))
    assert most <= ORDER * (test + (both - test) / 2.0) / 2.0


@on_graphs(ScoredMechanism)
def test_neighbours_change_the_cost_by_at_most_its_local_sensitivity(nodes):
    here, there = nodes.edges
    rows, columns = nodes.table.rows_per_block, nodes.table.lattice.block
    at = nodes.lattice_cells
    local = nodes.table.blocks[at[:, 0] // rows, at[:, 1] // columns]
    change = np.abs(nodes.cost[here] - nodes.cost[there])
    assert change.max() > 1e-2 * nodes.cost.max(), "no vote matters: take less noise in `build`"
    assert np.all(change <= np.minimum(local[here], local[there]))


@on_graphs(ScoredMechanism)
def test_sensitivity_at_a_distance_is_within_that_of_a_neighbour_one_farther(nodes):
    curves, ceiling = single_curves(nodes.table, nodes.cells, 6)
    here, there = nodes.edges
    assert np.all(curves[here, :-1] <= curves[there, 1:] * (1.0 + 1e-12))
    assert np.all(np.diff(curves, axis=1) >= 0.0)
    assert curves.max() <= ceiling * (1.0 + 1e-12)


@on_graphs(ComposedMechanism)
@pytest.mark.parametrize("delta", [None, 0.301, 0.6])
def test_what_one_query_is_said_to_cost_covers_every_pair_of_neighbours(nodes, delta):
    here, there = nodes.edges
    delta = delta or 1.02 * nodes.mechanism.leak
    epsilon = nodes.mechanism.privacy(1, delta).epsilon
    assert hockey_stick(nodes.law[here], nodes.law[there], epsilon).max() <= delta


@on_graphs(Mechanism)
def test_a_mechanism_is_built_again_from_its_parameters(nodes):
    parameters = json.loads(json.dumps(nodes.mechanism.parameters(), allow_nan=False))
    assert parameters["name"] == nodes.unbound.name
    fields = {name: value for name, value in parameters.items() if name != "name"}
    assert type(nodes.unbound)(**fields) == nodes.unbound
    if isinstance(nodes.unbound, ScoredMechanism):
        assert scored_from_parameters(parameters) == nodes.unbound
    else:
        text = refusal(LedgerError, scored_from_parameters, parameters)
        assert text.startswith(f"unknown mechanism '{nodes.unbound.name}'; this tool knows ")


# ---------------------------------------------------------------- far more settings

# Little noise and much of it, low orders and high ones, thresholds out of reach on either side.
FAR = [
    (ConfidentGNMax(8, 4, threshold=5.0, sigma1=2.0, sigma2=1.5), 8.0),
    (ConfidentGNMax(6, 4, threshold=4.2, sigma1=1.5, sigma2=4.0), 3.0),
    (ConfidentGNMax(10, 3, threshold=6.0, sigma1=3.0, sigma2=2.0), 14.0),
    (ConfidentGNMax(10, 2, threshold=8.0, sigma1=6.0, sigma2=1.6), 5.0),
    (ConfidentGNMax(8, 3, threshold=4.0, sigma1=0.9, sigma2=0.8), 3.0),
    (ConfidentGNMax(8, 3, threshold=8.0, sigma1=1.0, sigma2=8.0), 2.0),
    (ConfidentGNMax(5, 4, threshold=-3.0, sigma1=60.0, sigma2=1.0), 1.5),
    (ConfidentGNMax(7, 3, threshold=20.0, sigma1=3.0, sigma2=5.0), 40.0),
    (GNMax(8, 4, sigma2=1.5), 8.0),
    (GNMax(10, 2, sigma2=40.0), 50.0),
    (GNMax(10, 3, sigma2=3.0), 2.5),
    (GNMax(8, 3, sigma2=0.6), 3.0),
    (LNMax(8, 4, laplace_scale=1.5), 2.0),
    (LNMax(10, 2, laplace_scale=0.5), 3.0),
    (LNMax(10, 3, laplace_scale=0.6), 2.5),
    (LNMax(20, 3, laplace_scale=1.0), 14.0),
]


@pytest.mark.parametrize(("mechanism", "order"), FAR, ids=str)
def test_costs_and_sensitivities_cover_every_pair_of_neighbours(mechanism, order):
    """D_λ either way, |Δ cost| within LS_0, and LS_d(D) within LS_{d+1}(D')."""
    graph, table = Graph.of(mechanism.teachers, mechanism.classes), mechanism.cost_table(order)
    cells = mechanism.cells(mechanism.score(graph.histograms), table.grid)
    cost = table.cost(cells)
    curves, ceiling = single_curves(table, cells, mechanism.teachers + 6)
    laws = CASES[mechanism.name].law(mechanism, graph.histograms)
    logs = np.log(laws[:, laws.max(axis=0) > 0.0])  # an argmax alone never refuses
    here, there = graph.edges.T
    exact = renyi(logs[here], logs[there], order)
    assert exact.max() > 1e-4  # the ensemble is not trivial
    bound = np.minimum(cost[here], cost[there])  # both directions, from either side
    np.testing.assert_array_less(exact, bound * (1.0 + 1e-9) + 1e-11)
    assert np.all(np.abs(cost[here] - cost[there]) <= curves[here, 0])
    assert np.all(curves[here, :-1] <= curves[there, 1:] * (1.0 + 1e-9) + 1e-300)
    assert curves.max() <= ceiling * (1.0 + 1e-12)


# ---------------------------------------------------------------- runs

ROWS = 60
SPLITS = [[ROWS], [1], [7], [13, 2, 1, 29]]


def some_votes(mechanism, rows=ROWS):
    random = np.random.default_rng(21)
    shares = random.dirichlet(np.full(mechanism.classes, 0.7), size=rows)
    counts = random.multinomial(mechanism.teachers, shares).astype(np.int64)
    return counts, random.dirichlet(np.full(mechanism.classes, 0.5), size=rows)


def extremes(mechanism):
    """All for one class, as even as can be, and nobody."""
    teachers, classes = mechanism.teachers, mechanism.classes
    even = np.bincount(np.arange(teachers) % classes, minlength=classes)
    return np.array([np.eye(classes, dtype=np.int64)[1] * teachers, even, np.zeros_like(even)])


def each(kind):
    """For records of two teachers as well, where those change the labels."""
    cases = [
        (name, classes, k)
        for name, classes, k in itertools.product(names(kind), [2, 3], [1, 2])
        if k == 1 or name in names(ComposedMechanism)
    ]
    ids = ["{}-m{}-k{}".format(*case) for case in cases]
    return pytest.mark.parametrize("mechanism", [build(*case) for case in cases], ids=ids)


def labelled(mechanism, votes, *, seed=5, cap=ROWS):
    """Labels, sources, and every batch with the mechanism bound to it."""
    key = RunKey.of(seed) if isinstance(seed, int) else seed

    def keep(bound, counts):
        return bound, counts

    parts = list(drawn(votes, mechanism, key, max_answers=cap, keep=keep))
    labels = np.concatenate([part.labels for part in parts])
    sources = np.concatenate([part.table({}, Facts()).sources for part in parts])
    return labels, sources, [part.kept for part in parts]


@each(Mechanism)
def test_histograms_by_their_votes_cost_what_they_cost(mechanism):
    counts, predictions = some_votes(mechanism)
    bound = with_student(mechanism, predictions)
    asked = [bound.answer_chance, bound.loss_chance]
    if isinstance(mechanism, ScoredMechanism):
        grid = bound.cost_table(4.0).grid
        asked += [bound.score, lambda votes: bound.cells_of(votes, grid)]
        asked += [bound.vote_states] if has_states(bound, counts) else []
    for few in (counts, counts[:1], extremes(mechanism)[2:].repeat(ROWS, axis=0)):
        if isinstance(bound, InteractiveGNMax):
            bound = with_student(mechanism, predictions[: len(few)])
            asked = [bound.answer_chance, bound.loss_chance, bound.score]
        for ask in asked:
            found, wanted = ask(SparseCounts.of(few)), ask(few)
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-12)


@each(OneScoreMechanism)
def test_columns_cost_what_they_cost_priced_all_at_once(mechanism, monkeypatch):
    monkeypatch.setattr(cost_table, "_NODES", 40)
    orders = np.array([1.5, 4.0, 20.0])
    grid = mechanism.cost_table(20.0).grid
    found = mechanism.column_costs(np.arange(grid.size), grid, orders)
    wanted = np.maximum.accumulate(mechanism.bounds(grid.nodes(), orders), axis=1)
    for row, order in enumerate(orders.tolist()):
        end = max(grid.end(mechanism.score_range(order)[0]), 0)
        np.testing.assert_array_equal(found[row, end:], wanted[row, end:])
        np.testing.assert_array_equal(found[row, :end], wanted[row, end])


def has_states(mechanism, counts):
    try:
        mechanism.vote_states(counts)
    except UsageError:
        return False
    return True


@each(ScoredMechanism)
@pytest.mark.parametrize("cap", some([9, ROWS], 2))
def test_what_is_charged_depends_neither_on_the_order_of_rows_nor_on_cut(mechanism, cap):
    counts, predictions = some_votes(mechanism)
    ids = np.array([f"query {place}" for place in range(ROWS)])
    mechanism = with_student(mechanism, predictions, ids)
    tables = [mechanism.cost_table(order) for order in (4.0, ORDER)]

    def tallies(rows, sizes, seed):
        votes = cut(counts[rows], sizes, ids[rows])
        _, _, parts = labelled(mechanism, votes, seed=seed, cap=cap)
        return [
            sum(
                (Tally.of(bound.cells_of(part, table.grid)) for bound, part in parts), Tally.empty()
            )
            for table in tables
        ]

    reference = tallies(np.arange(ROWS), [ROWS], 1)
    assert len(reference[1].cells) > 3
    shuffled = np.random.default_rng(3).permutation(ROWS)
    ways = itertools.product([np.arange(ROWS), shuffled, shuffled[::-1]], SPLITS)
    for rows, sizes in some(ways, 3):
        for tally, wanted in zip(tallies(rows, sizes, len(sizes)), reference, strict=True):
            same_tally(tally, wanted)
            assert tally.queries == ROWS


@each(Mechanism)
def test_a_label_depends_on_its_counts_and_its_noise_alone(mechanism):
    """Other ids, other batches, other votes in all the other rows: the same label.

    Where rows depend on those before (a sparse vector counts refusals), in all later rows.
    """
    counts, predictions = some_votes(mechanism)
    ids = np.arange(ROWS)
    by_order = with_student(mechanism, predictions)
    labels, sources, _ = labelled(by_order, cut(counts, ROWS))
    assert len(set(labels.tolist())) > 1
    assert labelled(by_order, cut(counts, ROWS), seed=6)[0].tolist() != labels.tolist()
    for sizes in SPLITS:
        other_ids = np.array([f"{place:x}" for place in 7919 * ids])
        found = labelled(by_order, cut(counts, sizes, other_ids))
        np.testing.assert_array_equal(found[0], labels)
        np.testing.assert_array_equal(found[1], sources)
    alone = mechanism.start() is mechanism
    for row in (0, 17, ROWS - 1):
        others = np.random.default_rng(row).permutation(np.delete(ids, row))
        rows = np.insert(others, row, row)
        if not alone:
            rows = np.append(ids[: row + 1], np.random.default_rng(row).permutation(ids[row + 1 :]))
        moved = with_student(mechanism, predictions[rows])
        found = labelled(moved, cut(counts[rows], 11))
        kept = [row] if alone else slice(0, row + 1)
        np.testing.assert_array_equal(found[0][kept], labels[kept])
        np.testing.assert_array_equal(found[1][kept], sources[kept])


@each(Mechanism)
def test_a_row_takes_its_draws_whatever_its_votes(mechanism):
    taken, stream = [], np.random.Philox(9)
    noise = Noise(lambda n: taken.append(n) or stream.random_raw(n))
    some, predictions = some_votes(mechanism)
    for counts in (some, some[::-1], *(np.tile(row, (ROWS, 1)) for row in extremes(mechanism))):
        for rows in (1, 2, ROWS):
            taken.clear()
            with_student(mechanism, predictions[:rows]).start().label(counts[:rows], noise)
            assert sum(taken) == rows * mechanism.draws == rows * mechanism.start().draws


@each(Mechanism)
def test_permuting_the_classes_permutes_labels_and_leaves_costs(mechanism):
    counts, predictions = some_votes(mechanism, 400)
    extra = CASES[mechanism.name].common_draws
    if extra is None:
        top = np.sort(counts, axis=1)  # a tie goes to the lowest class, whoever that is
        counts = counts[top[:, -1] > top[:, -2]]
        noises = [RunKey.of(3).rows(0, 1), RunKey.of(3).rows(0, 1)]
    permutation = np.roll(np.arange(mechanism.classes), 1)
    if extra is not None:
        draws = np.random.default_rng(8).normal(size=(len(counts), mechanism.classes + extra))
        moved = np.concatenate([draws[:, :extra], draws[:, extra:][:, permutation]], axis=1)
        noises = [Given(draws), Given(moved)]
    one, other = (
        with_student(mechanism, p[: len(counts)])
        for p in (predictions, predictions[:, permutation])
    )
    back = np.append(permutation, NO_LABEL)
    labels = one.label(counts, noises[0])
    assert labels.dtype == np.int32
    relabelled = other.label(counts[:, permutation], noises[1])
    np.testing.assert_array_equal(back[relabelled], labels)
    assert len(np.unique(labels)) == mechanism.classes + CASES[mechanism.name].refuses
    if one.fallback() is not None:
        np.testing.assert_array_equal(back[other.fallback()], one.fallback())
    chances = [m.answer_chance(n) for m, n in ((one, counts), (other, counts[:, permutation]))]
    np.testing.assert_allclose(*chances, rtol=1e-12)
    if not isinstance(mechanism, ScoredMechanism):
        return
    score, permuted = one.score(counts), other.score(counts[:, permutation])
    np.testing.assert_allclose(permuted, score, rtol=0.0, atol=1e-12)
    orders = np.array([ORDER])
    np.testing.assert_allclose(other.rdp(permuted, orders), one.rdp(score, orders), rtol=5e-3)
    assert other.rdp(permuted, orders).sum() == pytest.approx(
        one.rdp(score, orders).sum(), rel=1e-6
    )


HISTOGRAMS = {2: [[8, 0], [4, 4], [3, 5], [1, 7]], 3: [[6, 0, 0], [2, 2, 2], [0, 3, 2], [1, 4, 1]]}
# One run in a million fails: mechanisms × classes × k × histograms × outcomes × tails × sources.
FALSE_ALARM = 1e-6 / (len(CASES) * 2 * 2 * 4 * 5 * 2 * 3)


@each(Mechanism)
@pytest.mark.parametrize("source", some(["seed", "entropy", "by votes"], 2))
def test_labels_and_their_sources_follow_the_exact_law(mechanism, source):
    seeds = itertools.count(41)

    def key():
        return RunKey.of(None) if source == "entropy" else RunKey.of(next(seeds))

    draws = 20_000 if source == "entropy" else 60_000
    if mechanism.start() is not mechanism:
        draws //= 60  # each of them is a run of its own
    every = zip(HISTOGRAMS[mechanism.classes], STUDENTS[mechanism.classes], strict=True)
    for counts, student in some(every, 3):
        rows = np.tile(np.array(counts), (draws, 1))
        if source == "by votes":
            rows = SparseCounts.of(rows)
        bound = with_student(mechanism, np.tile(student, (draws, 1)))
        if mechanism.start() is mechanism:
            labels, sources, _ = labelled(bound, cut(rows, draws), seed=key(), cap=draws)
        else:
            one = [labelled(bound, cut(rows[:1], 1), seed=key()) for _ in range(draws)]
            labels, sources = (np.concatenate([part[i] for part in one]) for i in (0, 1))
        answered = sources == "teachers"
        first = with_student(mechanism, [student])
        chances = CASES[mechanism.name].law(first, np.array([counts]))[0].tolist()
        own = first.fallback()
        if own is not None and own[0] != NO_LABEL:
            assert set(sources[~answered].tolist()) <= {"student"}
            assert set(labels[~answered].tolist()) <= {own[0]}
        else:
            assert set(sources[~answered].tolist()) <= {"none"}
        seen = [np.count_nonzero(~answered)]
        seen += [np.count_nonzero(answered & (labels == i)) for i in range(mechanism.classes)]
        for count, chance in zip(seen, chances, strict=True):
            assert count == 0 if chance == 0.0 else binom.cdf(count, draws, chance) > FALSE_ALARM
            assert binom.sf(count - 1, draws, chance) > FALSE_ALARM
