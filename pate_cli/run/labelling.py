"""Draw labels and collect their costs, by the same code for every mechanism and engine.

A `Session`, which answers a few queries at a time, draws its labels by `DrawLabels`, too.

Most runs store nothing about the votes, and publish their worst-case cost, or a target (ε, δ) that
passed a release test (`release_test`). A run with a ledger collects secret costs (`LedgerAccount`).
A value that depends on secret costs gets noise before it is published.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.cost_table import CostTable, Price, TallySum
from pate_cli.accounting.few_votes import Few
from pate_cli.accounting.sensitivity import distances_for
from pate_cli.core.arrays import NO_LABEL, SOURCES, Floats, Histograms, Ids, LabelArray
from pate_cli.core.errors import VoteError
from pate_cli.core.noise import RunKey
from pate_cli.disclosure.guarantee import run_facts
from pate_cli.disclosure.ledger import Ledger, Round, sanitized_epsilon
from pate_cli.disclosure.report import ReportFacts
from pate_cli.disclosure.settings import ReleasePlan, Settings
from pate_cli.disclosure.target import States
from pate_cli.labels.labels import QUERY_ID, Labels
from pate_cli.mechanisms.base import Labeller, Mechanism, ScoredMechanism
from pate_cli.run.checkpoint import Checkpoint
from pate_cli.run.fold import AskedRows, OnCounts
from pate_cli.run.publication import Publication
from pate_cli.votes.facts import Facts
from pate_cli.votes.vote_file import VoteBatch

_TEACHERS, _STUDENT, _NOBODY, _NOT_ASKED = range(len(SOURCES))


@dataclass(frozen=True)
class Drawn:
    """Labels of consecutive rows, which are SECRET until the cap on answers is applied.

    Attributes:
        ids: the ids of the queries.
        labels: classes, or NO_LABEL, [rows].
        sources: places in SOURCES, [rows].
        kept: what a ledger stores about the votes on these rows; None without a ledger. SECRET.
    """

    ids: Ids
    labels: LabelArray
    sources: NDArray[np.uint8]
    kept: Any = None

    @property
    def answers(self) -> int:
        """Return how many labels the teachers gave."""
        return int(np.count_nonzero(self.sources == _TEACHERS))

    def until(self, left: int) -> Drawn:
        """Return the labels; rows after the first `left` answers of the teachers get NO_LABEL."""
        if self.answers < left:
            return self
        answered = self.sources == _TEACHERS
        stopped = np.cumsum(answered) - answered >= left
        labels = np.where(stopped, np.int32(NO_LABEL), self.labels)
        return replace(
            self, labels=labels, sources=np.where(stopped, np.uint8(_NOBODY), self.sources)
        )

    def table(self, metadata: Mapping[str, str], facts: Facts) -> Labels:
        """Return the labels as `Labels`, with public parameters and the names of classes."""
        return Labels(
            np.asarray(self.ids),
            self.labels,
            self.sources,
            metadata,
            facts.label_names,
            label_set=facts.label_set,
            id_column=facts.id_column or QUERY_ID,
        )


@dataclass(frozen=True)
class DrawLabels:
    """A task that draws the labels of a batch; the noise of a row only depends on key and row.

    If the teachers give no answer on a row, the row gets the label of the public student of the
    mechanism, if the mechanism has a student.

    Attributes:
        key: the key from which all noise follows.
        keep: returns what a ledger stores about the votes; None without a ledger.
        under_way: the object that draws the labels, if the labels of the mechanism depend on
            earlier rows; else None.
    """

    key: RunKey
    keep: Keep | None = None
    under_way: Labeller | None = None

    def __call__(self, mechanism: Mechanism, batch: VoteBatch) -> Drawn:
        """Return the labels of a batch."""
        labeller = self.under_way or mechanism
        labels = labeller.label(batch.counts, self.key.rows(batch.first_row, labeller.draws))
        sources = np.where(labels == NO_LABEL, np.uint8(_NOBODY), np.uint8(_TEACHERS))
        student = mechanism.fallback()
        if student is not None:
            free = (labels == NO_LABEL) & (student != NO_LABEL)
            labels[free], sources[free] = student[free], _STUDENT
        kept = None if self.keep is None else self.keep(mechanism, batch.counts)
        return Drawn(batch.ids, labels, sources, kept)


def drawn(
    rows: AskedRows,
    mechanism: Mechanism,
    key: RunKey,
    *,
    max_answers: int,
    keep: Keep | None = None,
    checkpoint: Checkpoint | None = None,
) -> Iterator[Drawn]:
    """Yield the labels of all rows in order; after `max_answers` answers, rows get no label."""
    start = mechanism.start()
    in_order, left = start is not mechanism, max_answers
    draw = DrawLabels(key, keep, start if in_order else None)
    for found in rows.over(mechanism, draw, in_order=in_order, checkpoint=checkpoint):
        capped = found.until(left)
        left -= capped.answers
        yield capped


def run(
    rows: AskedRows,
    mechanism: Mechanism,
    account: LedgerAccount | None,
    settings: Settings,
    *,
    key: RunKey,
    into: Publication,
    checkpoint: Checkpoint | None = None,
) -> tuple[ReportFacts, Ledger | None]:
    """Draw the release test if there is one, and label all rows up to the public cap on answers.

    All rows that are asked are charged, even rows that come after the cap and so get no label. If
    charges stopped at the cap, the number of charged rows would depend on the votes, and the RDP
    cost would not be valid. In the output, rows that are not asked have an id, but no label. If the
    release test fails, no label is drawn.

    Args:
        rows: the rows that are asked.
        mechanism: the aggregator.
        account: collects the costs for a ledger; None without a ledger.
        settings: the settings of the run.
        key: the key from which all noise follows.
        into: takes the labels; it must not publish them before this function returns.
        checkpoint: stores the labels of finished ranges until the run has ended; None without a
            checkpoint.

    Returns:
        The facts of the report, and the ledger. The returned `ReportFacts` do not have the name of
        the run, its record or its file of labels yet. The fact `passed` is
        False if the release test failed. The ledger is SECRET; it is None if the run has no ledger.

    Raises:
        VoteError: a row is not valid, or votes have changed since they were read.
    """
    tested = settings.tested is not None
    if tested and not release_test(rows, mechanism, settings, key):
        return run_facts(Round.of(settings, answers=0), passed=False), None
    metadata = settings.texts() | ({"sources": mechanism.sources} if mechanism.sources else {})
    answers, keep, facts = 0, None if account is None else account.keep, rows.file.facts

    def tables() -> Iterator[Labels]:
        nonlocal answers
        cap = settings.max_answers
        for found in drawn(rows, mechanism, key, max_answers=cap, keep=keep, checkpoint=checkpoint):
            if account is not None:
                account.add(found.kept)
            answers += found.answers
            yield found.table(metadata, facts)
        for ids in rows.file.ids_between(settings.queries, rows.file.queries):
            none = np.full(ids.shape, NO_LABEL, np.int32)
            yield Drawn(ids, none, np.full(ids.shape, _NOT_ASKED, np.uint8)).table(metadata, facts)

    into.fill(tables(), rows=rows.file.queries)
    done, plan = Round.of(settings, id=key.name("round"), answers=answers), settings.sanitizer
    found = run_facts(done, passed=True if tested else None, label_names=facts.label_names)
    if account is None or plan is None:
        return found, None
    ledger = account.ledger(done)
    if plan.publishes_draw:
        found = replace(found, sanitized=sanitized_epsilon(ledger, plan, key.aside("release")))
    return found, ledger


Keep: TypeAlias = Callable[[Any, Histograms], Any]
"""A function of a mechanism and histograms: it returns what a ledger stores of them. SECRET."""


class LedgerAccount:
    """Collects the RDP costs of rows at the Rényi order of a plan, for a ledger. SECRET."""

    def __init__(self, mechanism: ScoredMechanism, plan: ReleasePlan, few: Few = None) -> None:
        """Start an account with no rows yet.

        `plan` and `few` must be fixed before any vote is seen. `few` is the limit on how many
        queries a teacher may vote on; None if there is no limit.
        """
        self._mechanism, self._plan, self._few = mechanism, plan, few
        self._tally = TallySum()

    @functools.cached_property
    def _table(self) -> CostTable:
        return self._mechanism.cost_table(self._plan.order)

    @property
    def keep(self) -> Keep:
        """Return the function whose result for a batch is passed to `add`.

        The function counts how many histograms of the batch have each state (`States.tally`).
        """
        return States(self._mechanism, self._table.grid).tally

    def add(self, kept: Any) -> None:
        """Add the result of the function `self.keep` for a batch; batches must come in order."""
        self._tally.add(kept)

    @property
    def price(self) -> Price:
        """Return the RDP cost of all rows so far, and its local sensitivity at distances 0, 1, 2, …

        The number of distances follows from β of the smooth sensitivity (`distances_for`).
        """
        distances = np.arange(distances_for(self._plan.beta, teachers=self._mechanism.teachers))
        return self._table.price(self._tally.total, distances, self._few)

    def ledger(self, done: Round) -> Ledger:
        """Return the ledger with the cost of all rows."""
        price = self.price
        return Ledger(
            orders=np.array([self._plan.order]),
            rdp=np.array([price.rdp]),
            sensitivity=price.curve[None],
            ceiling=np.array([price.ceiling]),
            rounds=(done,),
        )


def release_test(rows: AskedRows, mechanism: Mechanism, settings: Settings, key: RunKey) -> bool:
    """Compute the RDP cost of all rows, draw the release test, and return whether it passes.

    Apart from whether the release test passes, the run publishes nothing that depends on the RDP
    cost of the rows.

    Raises:
        VoteError: the rows are fewer or more than `settings.queries`, or votes have changed since
            they were read.
        ValueError: the settings have no target, or the mechanism is not a `ScoredMechanism`.
    """
    target, queries = settings.target, settings.queries
    if target is None or not isinstance(mechanism, ScoredMechanism):
        raise ValueError("a release test needs a target in the settings and a `ScoredMechanism`")
    states, orders = target.states(mechanism), np.array(target.test_orders)
    counted = TallySum()
    few, shape = settings.few, {"queries": queries, "answers": settings.max_answers}
    ceiling = mechanism.worst_rdp(**shape, orders=orders, few=few)
    for tally in rows.over(mechanism, OnCounts(states.tally)):
        counted.add(tally)
    votes, priced = counted.total, 0.0
    if votes.queries != queries:
        raise VoteError(
            f"expected {queries} queries, but the votes have {votes.queries}; run again with a "
            "file that does not change"
        )

    def told(share: float) -> None:
        """Report progress, in rows; `share` of the work at one Rényi order was just done."""
        nonlocal priced
        before, priced = priced, priced + share * queries / orders.size
        rows.progress(int(priced + 1e-6) - int(before + 1e-6))

    def profile(order: float) -> Floats:
        return states.profile(votes, order, told, few=few)

    coin = target.coin(profile, ceiling, orders=orders)
    return not key.aside("coin").comes_up(coin.log_refuse)
