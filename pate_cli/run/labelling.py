"""One run: votes in; labels, an account and a public report out.

Every mechanism takes this path, whoever does the work and wherever the labels go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import field, replace
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import NO_LABEL, SOURCES, Histograms, Ids, LabelArray, row_width
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.core.noise import RunKey
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.report import Report
from pate_cli.disclosure.settings import Settings
from pate_cli.labels.labels import Labels
from pate_cli.mechanisms.base import Labeller, Mechanism
from pate_cli.run.accounts import Account, Keep, Settlement
from pate_cli.run.checkpoint import Checkpoint
from pate_cli.run.engine import beside
from pate_cli.run.passes import Passes, nothing_seen
from pate_cli.votes.facts import PLAIN, Facts
from pate_cli.votes.vote_file import VoteBatch

_TEACHERS, _STUDENT, _NOBODY = map(SOURCES.index, ("teachers", "student", "none"))


@dataclass(frozen=True)
class Aggregation:
    """Everything a run produces.

    Attributes:
        labels: released labels with the mechanism's public parameters; none where they went to a
            file. Public.
        report: what may be published about them. Public.
        ledger: what they cost; None where nothing was kept of the votes. SECRET.
        checkpoint: what the run would have gone on from, for whoever puts labels and report in
            place to `end`; None where the run has done so. SECRET.
    """

    labels: Labels
    report: Report
    ledger: Ledger | None
    checkpoint: Checkpoint | None = None

    def _repr_html_(self) -> str:
        # A frozen dataclass says nothing in a notebook that its parts do not say better.
        kept = [part for part in (self.labels, self.report, self.ledger) if part is not None]
        return "".join(part._repr_html_() for part in kept)


@dataclass(frozen=True)
class Drawing:
    """The labels of a run, as they are drawn.

    Where the teachers give no answer before the stop, the mechanism's own public label, if it has
    one, takes its place.

    Attributes:
        passes: over the rows that are asked.
        mechanism: the aggregator.
        key: what all noise follows from.
        max_answers: the public cap: no label thereafter.
        keep: what is kept of each batch for the account, if anything.
        metadata: public parameters that go with the labels.
        facts: what else is public about the votes.
        progress: called with the number of rows of each finished part.
    """

    passes: Passes
    mechanism: Mechanism
    key: RunKey
    max_answers: int
    keep: Keep | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)
    facts: Facts = PLAIN
    progress: Callable[[int], None] = nothing_seen

    def batches(self) -> Iterator[tuple[Labels, Any]]:
        """Labels of all rows, a batch at a time and in order, each with what was kept of it."""
        under_way = self.mechanism.start()
        look = LabelBatch(self.key, self.keep, None if under_way is self.mechanism else under_way)
        answered = 0
        for drawn in self.passes.over(
            self.mechanism, look, progress=self.progress, in_order=look.in_order
        ):
            table = drawn.until(self.max_answers - answered, self.metadata, self.facts)
            answered += table.answers
            yield table, drawn.kept


class LabelSink(Protocol):
    """Where the labels go."""

    def fill(self, drawing: Drawing, add: Callable[[Any], None]) -> tuple[int, int]:
        """Draw them all and take them in: how many rows, and how many answers of the teachers.

        `add` is given what was kept of each batch, in order.
        """
        ...


def run(
    passes: Passes,
    mechanism: Mechanism,
    account: Account,
    *,
    queries: int,
    max_answers: int,
    key: RunKey,
    into: LabelSink,
    progress: Callable[[int], None] = nothing_seen,
    facts: Facts = PLAIN,
) -> Settlement:
    """Label every row, stopping at the public cap; charge *all* rows; release.

    Rows after the stop get no label and are charged all the same: charging up to a stop that
    depends on the votes is not RDP.

    Args:
        passes: over exactly the `queries` histograms to be asked.
        mechanism: the aggregator.
        account: how it is charged, fixed before any vote was seen.
        queries: k1, fixed before any vote was seen.
        max_answers: k2, the public cap on answers.
        key: what all noise follows from.
        into: takes the labels, which must not leave it before this returns.
        progress: called with the number of rows of each finished part.
        facts: what else is public about the votes.

    Raises:
        VoteError: from the passes, at the first row that is no vote, or when there are fewer
            or more rows than `queries`.
    """
    cap = min(max_answers, queries)
    settings = Settings(
        mechanism=mechanism.parameters(),
        queries=queries,
        max_answers=cap,
        private=key.private,
        **account.told,
        **facts.of_round,
    )
    metadata = settings.texts() | ({"sources": mechanism.sources} if mechanism.sources else {})
    drawing = Drawing(passes, mechanism, key, cap, account.keep, metadata, facts, progress)
    rows, answers = into.fill(drawing, account.add)
    if rows != queries:
        raise VoteError(f"expected {queries} queries, the votes hold {rows}")
    done = Round(
        id=key.name("round"),
        mechanism=mechanism.parameters(),
        queries=queries,
        max_answers=cap,
        answers=answers,
        **facts.of_round,
    )
    settled = account.settle(done, key)
    return replace(settled, facts=replace(settled.facts, label_names=facts.label_names))


@dataclass(frozen=True)
class DrawnBatch:
    """A batch as if no cap had been reached."""

    ids: Ids
    labels: LabelArray
    sources: NDArray[np.uint8]
    kept: Any

    def until(self, left: int, metadata: Mapping[str, str], facts: Facts) -> Labels:
        """The labels until so many answers were given; none thereafter."""
        labels, sources = self.labels, self.sources
        hits = sources == _TEACHERS
        if np.count_nonzero(hits) >= left:
            stopped = np.cumsum(hits) - hits >= left
            labels = np.where(stopped, np.int32(NO_LABEL), labels)
            sources = np.where(stopped, np.uint8(_NOBODY), sources)
        return Labels(
            np.asarray(self.ids),
            labels,
            sources,
            metadata,
            facts.label_names,
            label_set=facts.label_set,
        )


@dataclass(frozen=True)
class LabelBatch:
    """Labels and what is kept of a batch; rows that depend on others have a labeller under way."""

    key: RunKey
    keep: Keep | None
    under_way: Labeller | None

    @property
    def in_order(self) -> bool:
        """Whether batches must come one after the other."""
        return self.under_way is not None

    def __call__(self, mechanism: Mechanism, batch: VoteBatch) -> DrawnBatch:
        """The labels of a batch."""
        labeller = self.under_way or mechanism
        noise = self.key.rows(batch.first_row, labeller.draws)
        # Most of the time goes into the noise and into what is kept, which do not need each other.
        entries = 0 if self.keep is None else len(batch.counts) * row_width(batch.counts)
        with beside(lambda: self._kept(mechanism, batch.counts), entries=entries) as kept:
            labels = labeller.label(batch.counts, noise)
        sources = np.where(labels == NO_LABEL, np.uint8(_NOBODY), np.uint8(_TEACHERS))
        student = mechanism.fallback()
        if student is not None:
            free = (labels == NO_LABEL) & (student != NO_LABEL)
            labels[free], sources[free] = student[free], _STUDENT
        return DrawnBatch(batch.ids, labels, sources, kept())

    def _kept(self, mechanism: Mechanism, counts: Histograms) -> Any:
        return None if self.keep is None else self.keep(mechanism, counts)
