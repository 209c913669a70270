"""Votes as runs take them, tallies and ledgers without a run, and noise that is known."""

import itertools
from types import SimpleNamespace

import numpy as np

from pate_cli.accounting.cost_table import Tally
from pate_cli.disclosure.guarantee import report_of
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.settings import Settings
from pate_cli.mechanisms.base import ComposedMechanism
from pate_cli.run.fold import nothing_seen
from pate_cli.run.labelling import LedgerAccount, run
from pate_cli.run.publication import Publication
from pate_cli.verbs.aggregate import Aggregation
from pate_cli.votes.facts import Facts
from pate_cli.votes.vote_file import VoteBatch


class Given:
    """Noise that was written down before: an array of the shape that is asked for, or a number."""

    def __init__(self, draws, *, private=False):
        self.draws, self.private = np.asarray(draws, dtype=float), private

    def normal(self, shape):
        shape = shape if isinstance(shape, tuple) else (shape,)
        assert self.draws.shape in ((), shape)
        return np.broadcast_to(self.draws, shape)

    laplace = normal

    def fine_normal(self):
        return float(self.normal(1)[0])


def tally_of(mechanism, counts, order):
    """The lattice cells of histograms at an order, counted."""
    return Tally.of(mechanism.cells_of(counts, mechanism.cost_table(order).grid))


def batches(counts, sizes, ids=None):
    """Histograms as batches of the given sizes, over and over."""
    ids = np.arange(len(counts)) if ids is None else ids
    first = 0
    for size in itertools.cycle([sizes] if isinstance(sizes, int) else sizes):
        if first >= len(counts):
            return
        part = counts[first : first + size]
        if isinstance(part, np.ndarray):
            part = np.ascontiguousarray(part)
        yield VoteBatch(first, ids[first : first + size], part)
        first += len(part)


class Batches:
    """Batches that are at hand already, as passes take them."""

    def __init__(self, votes):
        self.votes = list(votes)
        self.queries = sum(len(batch.counts) for batch in self.votes)
        # All of them are asked.
        self.file = SimpleNamespace(
            queries=self.queries, ids_between=lambda *_rows: iter(()), facts=Facts()
        )
        self.progress = nothing_seen

    def over(self, mechanism, look, **_how):
        for batch in self.votes:
            yield look(mechanism.for_rows(batch.ids, batch.first_row), batch)
            self.progress(len(batch.counts))

    read = over

    def share(self, task, items):
        return map(task, items)


class CountsRows(Batches):
    """Histograms as one batch whose ids are row numbers."""

    def __init__(self, counts):
        super().__init__([VoteBatch(0, np.arange(len(counts)), counts)])


def cut(counts, sizes, ids=None):
    """Passes over histograms in batches of the given sizes."""
    return Batches(batches(counts, sizes, ids))


def told(mechanism, *, queries, max_answers=None, delta=1e-5, private=False, **more):
    """What a run over so many rows is told."""
    composed = isinstance(mechanism, ComposedMechanism)
    more.setdefault("analysis", "composition" if composed else "tight")
    return Settings(
        mechanism=mechanism.parameters(),
        queries=queries,
        max_answers=queries if max_answers is None else min(max_answers, queries),
        delta=delta,
        private=private,
        **more,
    )


def aggregated(rows, mechanism, plan=None, *, max_answers, key, delta=1e-5, **how):
    """A run with its labels in one table, and a ledger if there is a plan."""
    kept = Publication()
    settings = told(
        mechanism,
        queries=rows.queries,
        max_answers=max_answers,
        delta=delta if plan is None else plan.delta,
        private=key.private,
        sanitizer=plan,
    )
    account = None if plan is None else LedgerAccount(mechanism, plan)
    facts, ledger = run(rows, mechanism, account, settings, key=key, into=kept, **how)
    return Aggregation(kept.labels, report_of(facts), ledger)


def round_of(mechanism, *, queries, answers=0, name="f00d", private=True, **more):
    """What is public about a run."""
    settings = told(mechanism, queries=queries, private=private, **more)
    return Round.of(settings, id=name, answers=answers)


def charged(mechanism, counts, orders, *, distances, **done):
    """The ledger of a run over these histograms at some orders, without its labels."""
    orders, prices = sorted(orders), []
    for order in orders:
        table = mechanism.cost_table(order)
        prices.append(table.price(tally_of(mechanism, counts, order), np.arange(distances)))
    return Ledger(
        orders=np.array(orders),
        rdp=np.array([price.rdp for price in prices]),
        sensitivity=np.stack([price.curve for price in prices]),
        ceiling=np.array([price.ceiling for price in prices]),
        rounds=(round_of(mechanism, queries=len(counts), **done),),
    )


def single_curves(table, cells, distances):
    """LS_d of single queries in given cells, [cells, distances], and the bound for every d."""
    distinct, inverse = np.unique(cells, axis=0, return_inverse=True)
    one = np.ones(1, dtype=np.int64)
    rows = [table.price(Tally(cell[None], one), np.arange(distances)).curve for cell in distinct]
    return np.array(rows)[inverse.reshape(-1)], float(table.blocks.max())


def same_tally(one, other):
    np.testing.assert_array_equal(one.cells, other.cells)
    np.testing.assert_array_equal(one.weights, other.weights)
