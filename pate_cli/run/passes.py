"""Passes over the rows that are asked, range by range, on whatever engine there is.

The ranges follow from the file alone, so that sums over them are the same to the last bit wherever
they are done, and so are labels, whose noise belongs to rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import Any, Final, Generic, Protocol, TypeAlias, TypeVar

import numpy as np

from pate_cli.accounting.cost_table import Tally
from pate_cli.accounting.score_grid import ScoreGrid
from pate_cli.core.arrays import Histograms, Ints, SparseCounts
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import VoteError
from pate_cli.mechanisms.base import Mechanism, ScoredMechanism
from pate_cli.run.checkpoint import Checkpoint, Pieces
from pate_cli.run.engine import HERE, Engine, in_pairs
from pate_cli.votes.vote_file import VoteBatch, VoteFile

_Item = TypeVar("_Item")
_Found = TypeVar("_Found")

PerBatch = Callable[[Any, VoteBatch], _Found]
"""What is made of a batch and the mechanism bound to its rows; for other processes it pickles."""

_Ranged: TypeAlias = tuple[list[_Found], bytes]
"""What was found in the batches of a range, and a digest of its votes."""

# Entries of histograms or labels in a range: some seconds of work at most, half a second for few
# classes.
_ENTRIES: Final = 1 << 21


def nothing_seen(rows: int, of: int | None = None, /) -> None:
    """Progress that nobody follows."""


class Passes(Protocol):
    """The rows that are asked; read once or more, always the same ones."""

    @property
    def queries(self) -> int:
        """How many there are."""
        ...

    def over(
        self,
        mechanism: Mechanism,
        per_batch: PerBatch[_Found],
        *,
        progress: Callable[[int], None] = nothing_seen,
        in_order: bool = False,
    ) -> Iterator[_Found]:
        """What `per_batch` makes of every batch, in order.

        Args:
            mechanism: bound to the rows of each batch before `per_batch` sees it.
            per_batch: applied to (mechanism, batch).
            progress: called with the number of rows of each finished range.
            in_order: `per_batch` must see the batches one after the other, in this process.

        Raises:
            VoteError: at the first row that is no vote, or where votes have changed since an
                earlier pass.
        """
        ...

    def share(
        self, task: Callable[[_Item], _Found], items: Sequence[_Item], *, entries: int
    ) -> Iterator[_Found]:
        """Work on what the passes found, done where they were; results in the order of items.

        Args:
            task: applied to each item.
            items: what it is applied to; few.
            entries: of votes that would take as long, all items together.
        """
        ...


@dataclass(frozen=True, eq=False)
class CountsPasses:
    """Histograms in memory, as one batch whose ids are row numbers.

    Attributes:
        counts: [queries, classes].
    """

    counts: Histograms

    @property
    def queries(self) -> int:
        """See Passes."""
        return len(self.counts)

    def over(
        self,
        mechanism: Mechanism,
        per_batch: PerBatch[_Found],
        *,
        progress: Callable[[int], None] = nothing_seen,
        in_order: bool = False,
    ) -> Iterator[_Found]:
        """See Passes."""
        del in_order
        batch = VoteBatch(0, np.arange(len(self.counts)), self.counts)
        yield per_batch(mechanism.for_rows(batch.ids, 0), batch)
        progress(len(self.counts))

    def share(
        self, task: Callable[[_Item], _Found], items: Sequence[_Item], *, entries: int
    ) -> Iterator[_Found]:
        """See Passes."""
        return iter(in_pairs(task, items, entries=entries))


@dataclass(frozen=True)
class OnCounts(Generic[_Found]):
    """What is made of the histograms of a batch, whose ids do not matter.

    Attributes:
        of: applied to the mechanism bound to the rows and the histograms.
    """

    of: Callable[[Any, Histograms], _Found]

    def __call__(self, mechanism: Mechanism, batch: VoteBatch) -> _Found:
        """What is made of a batch."""
        return self.of(mechanism, batch.counts)


@dataclass(frozen=True)
class TallyCells:
    """From histograms to their cells, counted.

    Attributes:
        grid: columns of the lattice.
    """

    grid: ScoreGrid

    def __call__(self, mechanism: ScoredMechanism, counts: Histograms) -> Tally:
        """The tally of a batch."""
        return mechanism.tally(counts, self.grid)


@dataclass(eq=False)
class FilePasses:
    """The first rows of a file.

    Attributes:
        file: where they are.
        queries: how many, fixed before any vote was seen.
        engine: where the work is done.
        checkpoint: where finished ranges are kept, if anywhere.
    """

    file: VoteFile
    queries: int
    engine: Engine = HERE
    checkpoint: Checkpoint | None = None
    _passes: int = field(default=0, init=False, repr=False)
    _fingerprint: str | None = field(default=None, init=False, repr=False)
    _seen: dict[int, bytes] = field(default_factory=dict, init=False, repr=False)

    def over(
        self,
        mechanism: Mechanism,
        per_batch: PerBatch[_Found],
        *,
        progress: Callable[[int], None] = nothing_seen,
        in_order: bool = False,
    ) -> Iterator[_Found]:
        """See Passes."""
        ranges = self._ranges
        task = _OneRange(self.file, mechanism, per_batch)
        # What hangs on the rows before it cannot be taken up in the middle.
        kept = None if in_order or self.checkpoint is None else self._next_pieces()
        # Settled once: another process may go on with the same run, and end it, at the same time.
        there = frozenset(rows for rows in ranges if kept is not None and kept.has(rows[0]))
        missing = [rows for rows in ranges if rows not in there]
        fresh = (HERE if in_order else self._engine).map(task, missing)
        for start, stop in ranges:
            known = kept if (start, stop) in there else None
            found, digest = self._taken(known, fresh, task, (start, stop))
            if kept is not None and known is None:
                kept.keep(start, (found, digest))
            if self._seen.setdefault(start, digest) != digest:
                raise VoteError(f"{self.file.name}: rows {start} to {stop - 1} changed while read")
            yield from found
            progress(stop - start)

    def _taken(
        self,
        kept: Pieces | None,
        fresh: Iterator[_Ranged[Any]],
        task: _OneRange,
        rows: tuple[int, int],
    ) -> _Ranged[Any]:
        """What was found in the next range: before, where it was kept, or now."""
        if kept is None:
            return next(fresh)
        known: _Ranged[Any] | None = kept.find(rows[0])
        return task(rows) if known is None else known

    @property
    def _ranges(self) -> list[tuple[int, int]]:
        """Rows that are worked on together, in order."""
        return self.file.ranges(limit=self.queries, entries=_ENTRIES)

    def _next_pieces(self) -> Pieces | None:
        self._passes += 1
        return None if self.checkpoint is None else self.checkpoint.pieces(self._passes)

    def fingerprint(
        self, mechanism: Mechanism, *, progress: Callable[[int], None] = nothing_seen
    ) -> str:
        """A digest of the votes that are asked; passes refuse to see others from now on.

        Every row is then known to be a vote, and one that the mechanism can be bound to, and
        nothing else was made of it. Once is enough.

        Raises:
            VoteError: at the first row that is not.
        """
        if self._fingerprint is None:
            ranges, whole = self._ranges, hashlib.sha256()
            task = _OneRange(self.file, mechanism, _nothing)
            found = self._engine.map(task, ranges)
            for (start, stop), (_, digest) in zip(ranges, found, strict=True):
                self._seen[start] = digest
                whole.update(digest)
                progress(stop - start)
            self._fingerprint = whole.hexdigest()
        return self._fingerprint

    def share(
        self, task: Callable[[_Item], _Found], items: Sequence[_Item], *, entries: int
    ) -> Iterator[_Found]:
        """See Passes."""
        engine = self._engine
        if engine is HERE:
            return iter(in_pairs(task, items, entries=entries))
        return engine.map(task, items)

    @property
    def _engine(self) -> Engine:
        """Where the work is worth its way there."""
        if self.queries * min(self.file.classes, self.file.width) < self.engine.worth:
            return HERE
        if not self.file.portable:
            return HERE
        return self.engine


@dataclass(frozen=True)
class _OneRange:
    """The work on one range."""

    file: VoteFile
    mechanism: Mechanism
    per_batch: PerBatch[Any]

    def __call__(self, rows: tuple[int, int]) -> _Ranged[Any]:
        start, stop = rows
        found: list[Any] = []
        digest = hashlib.sha256()  # which many processors have instructions for
        for batch in self.file.batches(start=start, limit=stop - start):
            ids = batch.ids
            counts = batch.counts
            for array in counts.entries if isinstance(counts, SparseCounts) else (counts,):
                digest.update(_packed(array))
            digest.update(ids.data if isinstance(ids, np.ndarray) else "\0".join(ids).encode())
            found.append(self.per_batch(self.mechanism.for_rows(ids, batch.first_row), batch))
        return found, digest.digest()


def _packed(counts: Ints) -> bytes:
    """Whole numbers ≥ 0 in as few bytes as they fit in: there is less to digest."""
    kind = np.min_scalar_type(counts.max(initial=0))
    return kind.str.encode() + counts.astype(kind).tobytes()


def _nothing(_mechanism: Mechanism, _batch: VoteBatch) -> None:
    """Nothing is made of a batch."""
