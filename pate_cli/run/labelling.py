"""Draw labels, pay for them, and hand them on: one path for every mechanism and engine.

A session draws its answers by the same functions, a few queries at a time.

Most runs keep nothing of the votes and state what their settings cost whatever the votes, perhaps
after a test (`release_test`). A run that keeps a ledger (`LedgerAccount`) has a plan sanitize what
it keeps of the votes. SECRET.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from pate_cli.accounting.cost_table import CostTable, Price, TallySum
from pate_cli.accounting.sensitivity import distances_for
from pate_cli.core.arrays import NO_LABEL, SOURCES, Histograms, Ids, LabelArray
from pate_cli.core.errors import VoteError
from pate_cli.core.noise import RunKey
from pate_cli.disclosure.facts import run_facts
from pate_cli.disclosure.ledger import Ledger, Round, sanitized_epsilon
from pate_cli.disclosure.report import ReportFacts
from pate_cli.disclosure.settings import ReleasePlan, Settings
from pate_cli.disclosure.target import States
from pate_cli.labels.labels import QUERY_ID, Labels, not_asked
from pate_cli.mechanisms.base import Labeller, Mechanism, ScoredMechanism
from pate_cli.run.checkpoint import Checkpoint
from pate_cli.run.fold import AskedRows, OnCounts
from pate_cli.run.publication import Publication
from pate_cli.votes.facts import PLAIN, Facts
from pate_cli.votes.vote_file import VoteBatch

_TEACHERS, _STUDENT, _NOBODY = map(SOURCES.index, ("teachers", "student", "none"))


@dataclass(frozen=True)
class Drawn:
    """Labels of consecutive rows, as if no cap had been reached. SECRET until the cap is applied.

    Attributes:
        ids: of the queries.
        labels: classes, or NO_LABEL, [rows].
        sources: places in SOURCES, [rows].
        kept: what an account keeps of the votes. SECRET.
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
        """Return the labels until the teachers gave so many answers, and none thereafter."""
        if self.answers < left:
            return self
        answered = self.sources == _TEACHERS
        stopped = np.cumsum(answered) - answered >= left
        labels = np.where(stopped, np.int32(NO_LABEL), self.labels)
        return replace(
            self, labels=labels, sources=np.where(stopped, np.uint8(_NOBODY), self.sources)
        )

    def table(self, metadata: Mapping[str, str], facts: Facts = PLAIN) -> Labels:
        """Return the labels with the public parameters that go with them."""
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
    """Task that draws the labels of a batch; the noise of a row follows from key and row alone.

    Where the teachers give no answer, the mechanism's own public label, if it has one, takes its
    place.

    Attributes:
        key: what all noise follows from.
        keep: what an account keeps of the votes; None for nothing.
        under_way: the labeller of a mechanism whose rows depend on those before.
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
    """Yield the labels of all rows in order, none after the public cap on answers."""
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
    """Test and draw, once: label every row that is asked, stopping at the public cap.

    *All* of them are charged. Rows after the stop get no label and are charged all the same:
    charging up to a stop that depends on the votes is not RDP. Rows that are not asked are told by
    their ids alone. Labels that fail their release test are not drawn.

    Args:
        rows: those that are asked.
        mechanism: the aggregator.
        account: what is kept of the votes for a ledger; None where nothing is.
        settings: what the run is told.
        key: what all noise follows from.
        into: takes the labels, which must not leave it before this returns.
        checkpoint: where what is drawn is kept until the run has ended, if anywhere.

    Returns:
        The facts of the report, `passed` False where labels failed their test, without the name of
        the run, its record and its labels; and the ledger, where one is kept. SECRET.

    Raises:
        VoteError: at the first row that is no vote, or where votes changed since they were read.
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
        nothing = Drawn(*np.zeros((3, 0), np.uint8)).table(metadata, facts)
        for ids in rows.file.ids_between(settings.queries, rows.file.queries):
            yield not_asked(ids, nothing)

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
"""What an account keeps of histograms and the mechanism bound to their rows; it pickles. SECRET."""


class LedgerAccount:
    """Tallies the scores of votes at the order of a plan, which a ledger is made of. SECRET."""

    def __init__(self, mechanism: ScoredMechanism, plan: ReleasePlan) -> None:
        """Start at nothing; `plan` is fixed before any vote is seen."""
        self._mechanism, self._plan = mechanism, plan
        self._tally = TallySum()

    @functools.cached_property
    def _table(self) -> CostTable:
        return self._mechanism.cost_table(self._plan.order)

    @property
    def keep(self) -> Keep:
        """Return what is applied to every batch, wherever that is labelled."""
        return States(self._mechanism, self._table.grid).tally

    def add(self, kept: Any) -> None:
        """Charge what was kept of a batch; batches come in order."""
        self._tally.add(kept)

    @property
    def price(self) -> Price:
        """Return the cost so far, at as many distances as the plan's β asks for."""
        distances = np.arange(distances_for(self._plan.beta, teachers=self._mechanism.teachers))
        return self._table.price(self._tally.total, distances)

    def ledger(self, done: Round) -> Ledger:
        """Return the ledger of all rows."""
        price = self.price
        return Ledger(
            orders=np.array([self._plan.order]),
            rdp=np.array([price.rdp]),
            sensitivity=price.curve[None],
            ceiling=np.array([price.ceiling]),
            rounds=(done,),
        )


def release_test(rows: AskedRows, mechanism: Mechanism, settings: Settings, key: RunKey) -> bool:
    """Count all rows and draw the release test; return whether the labels may leave.

    It is the one thing that is ever said of what these votes could cost.

    Raises:
        VoteError: there are more or fewer rows than were priced, or votes have changed since they
            were read.
        ValueError: the settings have no target.
    """
    target, queries = settings.target, settings.queries
    if target is None or not isinstance(mechanism, ScoredMechanism):
        raise ValueError("there is no target to test")
    states, orders = target.states(mechanism), np.array(target.test_orders)
    counted = TallySum()
    ceiling = mechanism.worst_rdp(queries=queries, answers=settings.max_answers, orders=orders)
    for tally in rows.over(mechanism, OnCounts(states.tally)):
        counted.add(tally)
    votes, priced = counted.total, 0.0
    if votes.queries != queries:
        raise VoteError(f"expected {queries} queries, the votes hold {votes.queries}")

    def told(share: float) -> None:
        """Tell of a share of one order's work as so many rows."""
        nonlocal priced
        before, priced = priced, priced + share * queries / orders.size
        rows.progress(int(priced + 1e-6) - int(before + 1e-6))

    coin = target.coin(lambda order: states.profile(votes, order, told), ceiling, orders=orders)
    return not key.aside("coin").comes_up(coin.log_refuse)
