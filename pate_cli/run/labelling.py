"""One run: votes in; labels, an account and a public report out.

Every mechanism takes this path, whoever does the work and wherever the labels go.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import NO_LABEL, SOURCES, LabelArray
from pate_cli.core.errors import VoteError
from pate_cli.core.noise import RunKey
from pate_cli.core.words import LabelFormat, LabelsAs
from pate_cli.disclosure.ledger import Ledger, Round
from pate_cli.disclosure.report import Report
from pate_cli.files.inputs import Inputs
from pate_cli.files.part_folder import Part, PartFolder
from pate_cli.labels.labels import Labels, LabelWriter
from pate_cli.mechanisms.base import Labeller, Mechanism
from pate_cli.run.accounts import Account, Keep, Settlement
from pate_cli.run.checkpoint import Checkpoint
from pate_cli.run.passes import FilePasses, Passes, nothing_seen
from pate_cli.votes import VoteBatch
from pate_cli.votes.checks import Ids
from pate_cli.votes.vote_file import PLAIN, Facts

_TEACHERS, _STUDENT, _NOBODY = map(SOURCES.index, ("teachers", "student", "none"))


@dataclass(frozen=True)
class Aggregation:
    """Everything a run produces.

    Attributes:
        labels: released labels with the mechanism's public parameters; none where they were
            written while they were drawn. Public.
        report: what may be published about them. Public.
        ledger: what they cost; None where nothing was kept of the votes. SECRET.
        checkpoint: what the run would have gone on from, to be ended. SECRET.
        staged: labels that workers have written, to be committed.
    """

    labels: Labels
    report: Report
    ledger: Ledger | None
    checkpoint: Checkpoint | None = None
    staged: Staged | None = None

    def _repr_html_(self) -> str:
        # A frozen dataclass says nothing in a notebook that its parts do not say better.
        kept = [part for part in (self.labels, self.report, self.ledger) if part is not None]
        return "".join(part._repr_html_() for part in kept)


def run(
    passes: Passes,
    mechanism: Mechanism,
    account: Account,
    *,
    queries: int,
    max_answers: int,
    key: RunKey,
    write: Callable[[Labels], None],
    progress: Callable[[int], None] = nothing_seen,
    warnings: Sequence[str] = (),
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
        write: given the labels, a batch at a time and in order; they must not leave before `run`
            returns.
        progress: called with the number of rows of each finished part.
        warnings: what else a reader of the report should know.
        facts: what else is public about the votes.

    Raises:
        VoteError: from the passes, at the first row that is no vote, or when there are fewer
            or more rows than `queries`.
    """
    cap = min(max_answers, queries)
    private = key.private
    metadata = _metadata(mechanism, facts, queries=queries, max_answers=cap, private=private)
    metadata |= account.stated
    asked = answers = 0
    for drawn, kept in label_batches(
        passes,
        mechanism,
        key=key,
        max_answers=cap,
        keep=account.keep,
        metadata=metadata,
        facts=facts,
        progress=progress,
    ):
        account.add(kept)
        asked, answers = asked + len(drawn), answers + drawn.answers
        write(drawn)
    done = _round(mechanism, key, asked, queries=queries, max_answers=cap, answers=answers)
    return _settled(account, done, facts, key, warnings)


def run_in_parts(
    passes: FilePasses,
    mechanism: Mechanism,
    account: Account,
    *,
    queries: int,
    max_answers: int,
    key: RunKey,
    place: PartPlace,
    progress: Callable[[int], None] = nothing_seen,
    warnings: Sequence[str] = (),
    facts: Facts = PLAIN,
) -> tuple[Settlement, list[Part]]:
    """The same, with the labels staged where they are drawn, a part of a folder for each range.

    The parts are the caller's to commit. Arguments and errors are those of `run`.

    Args:
        place: the folder that the parts are for.
    """
    cap = min(max_answers, queries)
    private = key.private
    metadata = _metadata(mechanism, facts, queries=queries, max_answers=cap, private=private)
    metadata |= account.stated
    ranges = passes.ranges
    look = _Label.of(mechanism, key, account.keep)
    numbers = {start: number for number, (start, _) in enumerate(ranges)}
    gather = _WritePart(place, metadata, facts, numbers, {}, place.staged())
    receipts = []
    found = passes.gathered(
        mechanism, look, gather, ranges=ranges, progress=progress, in_order=look.in_order
    )
    for receipt in found:
        for kept in receipt.kept:
            account.add(kept)
        receipts.append(receipt)
    # Parts that the cap falls into, and those after it, are written again with what it leaves.
    left, allowed = cap, {}
    for (start, _), receipt in zip(ranges, receipts, strict=True):
        if receipt.answers >= left:
            allowed[start] = left
        left = max(left - receipt.answers, 0)
    if allowed:
        look = _Label.of(mechanism, key, None)
        gather = replace(gather, allowed=allowed)
        again = [rows for rows in ranges if rows[0] in allowed or look.in_order]
        capped = passes.gathered(mechanism, look, gather, ranges=again, in_order=look.in_order)
        redone = {rows[0]: receipt for rows, receipt in zip(again, capped, strict=True)}
        receipts = [
            redone.get(start, receipt) for (start, _), receipt in zip(ranges, receipts, strict=True)
        ]
    asked = sum(receipt.rows for receipt in receipts)
    answers = sum(receipt.answers for receipt in receipts)
    done = _round(mechanism, key, asked, queries=queries, max_answers=cap, answers=answers)
    settled = _settled(account, done, facts, key, warnings)
    return settled, [receipt.part for receipt in receipts]


def _settled(
    account: Account, done: Round, facts: Facts, key: RunKey, warnings: Sequence[str]
) -> Settlement:
    settled = account.settle(replace(done, **facts.of_round), key, warnings)
    return replace(settled, report=replace(settled.report, label_names=facts.label_names))


def _round(
    mechanism: Mechanism, key: RunKey, asked: int, *, queries: int, max_answers: int, answers: int
) -> Round:
    """What is public about a run; VoteError where another number of rows was asked."""
    if asked != queries:
        raise VoteError(f"expected {queries} queries, the votes hold {asked}")
    return Round(
        id=key.name("round"),
        mechanism=mechanism.parameters(),
        queries=queries,
        max_answers=max_answers,
        answers=answers,
    )


@dataclass(frozen=True)
class PartPlace:
    """Where parts of labels are written, and how.

    Attributes:
        folder: what they are for.
        run: name of the attempt to fill it.
        label_format: of the parts.
        labels_as: what a row is where a query has several labels.
    """

    folder: PartFolder
    run: str
    label_format: LabelFormat
    labels_as: LabelsAs | None = None

    def staged(self) -> dict[str, int]:
        """Sizes of parts that an earlier process of the same run has left, by name."""
        return self.folder.staged(self.run)

    def abort(self) -> None:
        """Remove what is staged; nothing was released."""
        self.folder.abort(self.run)


@dataclass(frozen=True)
class Staged:
    """Parts of labels that are written but not in place; public once they are.

    Attributes:
        place: where they were written.
        parts: all of them, in order.
        read: the files that were opened for them.
    """

    place: PartPlace
    parts: tuple[Part, ...]
    read: Inputs = field(default_factory=Inputs, repr=False, compare=False)

    def commit(self, *, force: bool = False) -> None:
        """Put them in place; `force` replaces parts that are there, never what they were made from.

        Raises:
            OutputError: that fails, and nothing is there.
            UsageError: the folder holds what was read for them.
        """
        self.place.folder.commit(self.place.run, self.parts, force=force, read=self.read)


@dataclass(frozen=True)
class _Receipt:
    """A part that is staged."""

    part: Part
    rows: int
    answers: int
    kept: list[Any]


@dataclass(frozen=True)
class _WritePart:
    """The labels of a range, written where they were drawn."""

    place: PartPlace
    metadata: Mapping[str, str]
    facts: Facts
    numbers: Mapping[int, int]
    allowed: Mapping[int, int]
    """Answers that a cap leaves, by the first row of the range; all where nothing is said."""
    staged: Mapping[str, int]

    def __call__(self, rows: tuple[int, int], found: list[_Labelled]) -> _Receipt:
        start, stop = rows
        left = self.allowed.get(start, stop - start + 1)
        answers, place, facts = 0, self.place, self.facts
        suffix = f".{place.label_format}"
        with (
            place.folder.open_part(place.run, self.numbers[start], suffix) as file,
            LabelWriter(
                file,
                place.label_format,
                self.metadata,
                rows=stop - start,
                label_names=facts.label_names,
                label_set=facts.label_set,
                labels_as=place.labels_as,
            ) as writer,
        ):
            for drawn in found:
                table = drawn.until(left - answers, self.metadata, facts)
                answers += table.answers
                writer.write(table)
        part = file.part(rows=writer.rows)
        return _Receipt(part, stop - start, answers, [each.kept for each in found])

    def stands(self, known: _Receipt) -> bool:
        # A part that a cap cuts may have been written over without it, in as many bytes.
        return not self.allowed and self.staged.get(known.part.name) == known.part.size


def _metadata(
    mechanism: Mechanism,
    facts: Facts,
    *,
    queries: int,
    max_answers: int,
    private: bool,
) -> dict[str, str]:
    """The public parameters that a file of labels carries."""
    metadata = {name: str(value) for name, value in mechanism.parameters().items()}
    metadata |= {"queries": str(queries), "max_answers": str(max_answers)}
    metadata |= {} if facts.label_set is None else facts.label_set.texts()
    metadata |= {"sources": mechanism.sources} if mechanism.sources else {}
    return metadata | {"private": str(private).lower()}


def label_batches(
    passes: Passes,
    mechanism: Mechanism,
    *,
    key: RunKey,
    max_answers: int,
    keep: Keep | None = None,
    metadata: Mapping[str, str] | None = None,
    facts: Facts = PLAIN,
    progress: Callable[[int], None] = nothing_seen,
) -> Iterator[tuple[Labels, Any]]:
    """Labels of all rows, a batch at a time, until the cap on answers is reached; none thereafter.

    Where the teachers give no answer before the stop, the mechanism's own public label, if it has
    one, takes its place. Yields each batch with what was kept of it.
    """
    look = _Label.of(mechanism, key, keep)
    answered = 0
    for drawn in passes.over(mechanism, look, progress=progress, in_order=look.in_order):
        table = drawn.until(max_answers - answered, metadata or {}, facts)
        answered += table.answers
        yield table, drawn.kept


@dataclass(frozen=True)
class _Labelled:
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
class _Label:
    """Labels and what is kept of a batch; rows that depend on others have a labeller under way."""

    key: RunKey
    keep: Keep | None
    under_way: Labeller | None

    @classmethod
    def of(cls, mechanism: Mechanism, key: RunKey, keep: Keep | None) -> _Label:
        under_way = mechanism.start()
        return cls(key, keep, None if under_way is mechanism else under_way)

    @property
    def in_order(self) -> bool:
        return self.under_way is not None

    def __call__(self, mechanism: Mechanism, batch: VoteBatch) -> _Labelled:
        labeller = self.under_way or mechanism
        noise = self.key.rows(batch.first_row, labeller.draws)
        labels = labeller.label(batch.counts, noise)
        sources = np.where(labels == NO_LABEL, np.uint8(_NOBODY), np.uint8(_TEACHERS))
        student = mechanism.fallback()
        if student is not None:
            free = (labels == NO_LABEL) & (student != NO_LABEL)
            labels[free], sources[free] = student[free], _STUDENT
        kept = None if self.keep is None else self.keep(mechanism, batch.counts)
        return _Labelled(batch.ids, labels, sources, kept)
