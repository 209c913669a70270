"""One run: batches of histograms in; labels, a ledger and a public report out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from pate_cli.arrays import Counts
from pate_cli.charging import charge, charge_published
from pate_cli.errors import VoteError
from pate_cli.labels import LabelTable, concatenate
from pate_cli.ledger import Ledger
from pate_cli.mechanisms.base import NO_LABEL, Labeller, Mechanism, Tally
from pate_cli.noise import Noise
from pate_cli.published.account import PublishedAccount
from pate_cli.release.door import release
from pate_cli.release.plan import ReleasePlan
from pate_cli.release.report import PublicReport
from pate_cli.release.rule import distances_for
from pate_cli.votes import VoteBatch
from pate_cli.words import Analysis

__all__ = ["Aggregation", "Run", "aggregate", "run"]


@dataclass(frozen=True)
class Run:
    """What a run leaves behind.

    Attributes:
        labels: released labels, one row a query. Public.
        tally: per Rényi order, the cells of all rows. SECRET.
        answers: how many rows were answered. Public with the labels.
    """

    labels: LabelTable
    tally: dict[float, Tally]
    answers: int


def run(
    batches: Iterable[VoteBatch],
    mechanism: Mechanism,
    *,
    orders: Sequence[float],
    noise: Noise,
    max_answers: int,
    progress: Callable[[int], None] | None = None,
    observe: Callable[[Mechanism, Counts], None] | None = None,
) -> Run:
    """Label every row in order, stopping at the public cap, and tally *all* rows.

    Rows after the stop get no label and are charged all the same: charging up to a stop that
    depends on the votes is not RDP.

    Args:
        batches: histograms in the order in which they are asked.
        mechanism: the aggregator.
        orders: Rényi orders to be charged; none when only labels are wanted.
        noise: the source of the mechanism's noise.
        max_answers: k2, the public cap on answers.
        progress: called with the number of rows of each finished batch.
        observe: called with every batch of histograms, for accounting of another kind.
    """
    surfaces = {order: mechanism.surface(order) for order in orders}
    tally = {order: Tally.empty() for order in orders}
    tables: list[LabelTable] = []
    for batch, table in label_batches(batches, mechanism, noise=noise, max_answers=max_answers):
        tables.append(table)
        bound = mechanism.for_rows(batch.ids, batch.first_row)
        if surfaces:
            score = bound.score(batch.counts)
            for order, surface in surfaces.items():
                tally[order] += Tally.of(mechanism.cells(score, surface))
        if observe is not None:
            observe(bound, batch.counts)
        if progress is not None:
            progress(len(table))
    labels = concatenate(tables)
    return Run(labels=labels, tally=tally, answers=int(np.sum(labels.sources == "teachers")))


def label_batches(
    batches: Iterable[VoteBatch], labeller: Labeller, *, noise: Noise, max_answers: int
) -> Iterator[tuple[VoteBatch, LabelTable]]:
    """Label rows in order until the public cap on answers is reached; the rest stay without.

    Where the teachers give no answer before the stop, the labeller's own public label, if it has
    one, takes its place.
    """
    answered = 0
    for batch in batches:
        bound = labeller.for_rows(batch.ids, batch.first_row)
        labels = bound.label(batch.counts, noise).astype(np.int64)
        hits = labels != NO_LABEL
        asked = answered + np.cumsum(hits) - hits < max_answers
        labels[~asked] = NO_LABEL
        answered += int(np.count_nonzero(labels != NO_LABEL))
        sources = np.where(labels == NO_LABEL, "none", "teachers")
        student = bound.fallback()
        if student is not None:
            free = (labels == NO_LABEL) & (student != NO_LABEL) & asked
            labels[free], sources[free] = student[free], "student"
        yield batch, LabelTable(ids=np.asarray(batch.ids), labels=labels, sources=sources)


@dataclass(frozen=True)
class Aggregation:
    """Everything a run produces.

    Attributes:
        labels: released labels with the mechanism's public parameters. Public.
        report: what may be published about them. Public.
        ledger: what they cost. SECRET.
    """

    labels: LabelTable
    report: PublicReport
    ledger: Ledger


def aggregate(
    batches: Iterable[VoteBatch],
    mechanism: Mechanism,
    plan: ReleasePlan,
    *,
    queries: int,
    max_answers: int,
    noise: Noise,
    progress: Callable[[int], None] | None = None,
    warnings: Sequence[str] = (),
) -> Aggregation:
    """Label, charge and release in one go.

    Args:
        batches: exactly the `queries` histograms to be asked, in order.
        mechanism: the aggregator.
        plan: how ε is sanitized, fixed before any vote was seen.
        queries: k1, fixed before any vote was seen.
        max_answers: k2, the public cap on answers.
        noise: the source of all noise.
        progress: called with the number of rows of each finished batch.
        warnings: what else a reader of the report should know.

    Raises:
        VoteError: from the batches, at the first row that is no vote, or when there are fewer
            or more rows than `queries`.
    """
    account = (
        PublishedAccount(mechanism, np.array([plan.order]))
        if plan.analysis is Analysis.PAPER
        else None
    )
    outcome = run(
        batches,
        mechanism,
        orders=[plan.order] if account is None else [],
        noise=noise,
        max_answers=max_answers,
        progress=progress,
        observe=None if account is None else account.add,
    )
    if len(outcome.labels) != queries:
        raise VoteError(f"expected {queries} queries, the votes hold {len(outcome.labels)}")
    if account is None:
        ledger = charge(
            mechanism,
            outcome.tally,
            delta=plan.delta,
            distances=distances_for(plan.beta, teachers=mechanism.teachers),
            max_answers=max_answers,
            answers=outcome.answers,
            private=noise.private,
        )
    else:
        ledger = charge_published(
            mechanism,
            account,
            delta=plan.delta,
            max_answers=max_answers,
            answers=outcome.answers,
            private=noise.private,
        )
    report = release(ledger, plan, noise, warnings=warnings)
    if plan.draws:
        ledger = ledger.with_draw(plan.draw)
    return Aggregation(with_metadata(outcome.labels, report), report, ledger)


def with_metadata(labels: LabelTable, report: PublicReport) -> LabelTable:
    """The labels with the public parameters that their file carries."""
    metadata = {name: str(value) for name, value in report.mechanism.items()}
    metadata |= {"queries": str(report.queries), "max_answers": str(report.max_answers)}
    metadata["private"] = str(report.private).lower()
    return replace(labels, metadata=metadata)
