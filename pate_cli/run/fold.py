"""Work on all rows of votes: range by range, on any engine, with one result to the last bit.

The ranges follow from the shape of the file alone, so sums over them are the same wherever they are
done. So are labels, whose noise belongs to rows.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, Generic, TypeVar

import numpy as np

from pate_cli.core.arrays import Histograms, Ints, SparseCounts
from pate_cli.core.errors import VoteError
from pate_cli.mechanisms.base import Mechanism
from pate_cli.run.checkpoint import Checkpoint
from pate_cli.run.engine import Engine, Processes, here
from pate_cli.votes.vote_file import VoteBatch, VoteFile

_Found = TypeVar("_Found")

PerBatch = Callable[[Any, VoteBatch], _Found]
"""What is made of the mechanism, bound to the rows of a batch, and the batch. It pickles."""

_ENTRIES: Final = 1 << 21
"""Numbers in a range of rows: some seconds of work at most, half a second for few classes."""
_WORTH: Final = 1 << 25
"""Work on fewer numbers is done before other processes have started."""


def nothing_seen(rows: int, of: int | None = None, /) -> None:
    """Ignore progress that nobody follows."""


@dataclass(eq=False)
class AskedRows:
    """The rows that are asked: the first ones of a file, read once or more.

    Attributes:
        file: where they are.
        queries: how many, fixed before any vote is seen.
        engine: where the work on them is done.
        progress: called with the number of rows of each finished range.
    """

    file: VoteFile
    queries: int
    engine: Engine = here
    progress: Callable[[int], None] = nothing_seen
    _remember: bool = field(default=False, init=False, repr=False)
    _seen: dict[int, bytes] = field(default_factory=dict, init=False, repr=False)

    def read(self, mechanism: Mechanism) -> None:
        """Read all rows, make nothing of them, and remember them.

        Whether a file holds votes is told for nothing, and what follows does not fail by what they
        are. `over` then refuses votes that changed meanwhile.

        Raises:
            VoteError: at the first row that is no vote, or that the mechanism cannot be bound to.
        """
        self._remember = True
        for _ in self.over(mechanism, _nothing):
            pass

    def over(
        self,
        mechanism: Mechanism,
        per_batch: PerBatch[_Found],
        *,
        in_order: bool = False,
        checkpoint: Checkpoint | None = None,
    ) -> Iterator[_Found]:
        """Yield what is made of every batch, in order.

        Args:
            mechanism: bound to the rows of each batch before `per_batch` sees it.
            per_batch: applied to (mechanism, batch).
            in_order: `per_batch` must see the batches one after the other, in this process. They
                cannot be taken up in the middle, so no checkpoint keeps them.
            checkpoint: where finished ranges are kept, and found again.

        Raises:
            VoteError: at the first row that is no vote, or where votes have changed since `read`.
        """
        task = _Range(self.file, mechanism, per_batch, self._remember)
        ranges = self.file.ranges(limit=self.queries, entries=_ENTRIES)
        kept = None if in_order else checkpoint
        # Settled once: another process may go on with the same run, and end it, at the same time.
        there = set() if kept is None else {rows for rows in ranges if kept.has(rows[0])}
        missing = [rows for rows in ranges if rows not in there]
        fresh = (here if in_order else self._engine)(task, missing)
        for rows in ranges:
            found = None if kept is None or rows not in there else kept.find(rows[0])
            if found is None:
                found, digest = task(rows) if rows in there else next(fresh)
                if self._remember and self._seen.setdefault(rows[0], digest) != digest:
                    name, (start, stop) = self.file.name, rows
                    raise VoteError(f"{name}: rows {start} to {stop - 1} changed while read")
                if kept is not None:
                    kept.keep(rows[0], found)
            yield from found
            self.progress(rows[1] - rows[0])

    @property
    def digest(self) -> str:
        """Return the SHA-256 of the votes that were `read`, in hexadecimal. SECRET."""
        return hashlib.sha256(b"".join(self._seen.values())).hexdigest()

    @property
    def _engine(self) -> Engine:
        """Return the engine, or this process where the way to another one is not worth it."""
        entries = self.queries * min(self.file.classes, self.file.width)
        near = isinstance(self.engine, Processes) and entries < _WORTH
        return here if near or not self.file.portable else self.engine


def _nothing(_mechanism: Mechanism, _batch: VoteBatch) -> None:
    """Make nothing of a batch."""


@dataclass(frozen=True)
class OnCounts(Generic[_Found]):
    """Task on the histograms of a batch, whose ids do not matter.

    Attributes:
        of: applied to the mechanism bound to the rows and the histograms.
    """

    of: Callable[[Any, Histograms], _Found]

    def __call__(self, mechanism: Mechanism, batch: VoteBatch) -> _Found:
        """Return what is made of a batch."""
        return self.of(mechanism, batch.counts)


@dataclass(frozen=True)
class _Range:
    """The work on one range, and a digest of its votes where those are remembered."""

    file: VoteFile
    mechanism: Mechanism
    per_batch: PerBatch[Any]
    remember: bool

    def __call__(self, rows: tuple[int, int]) -> tuple[list[Any], bytes]:
        start, stop = rows
        found: list[Any] = []
        digest = hashlib.sha256()  # which many processors have instructions for
        for batch in self.file.batches(start=start, limit=stop - start):
            if self.remember:
                _update(digest, batch)
            found.append(self.per_batch(self.mechanism.for_rows(batch.ids, batch.first_row), batch))
        return found, digest.digest()


def _update(digest: Any, batch: VoteBatch) -> None:
    """Add the votes and ids of a batch to a digest."""
    counts, ids = batch.counts, batch.ids
    for array in (counts.labels, counts.counts) if isinstance(counts, SparseCounts) else (counts,):
        digest.update(_packed(array))
    digest.update(ids.data if isinstance(ids, np.ndarray) else "\0".join(ids).encode())


def _packed(counts: Ints) -> bytes:
    """Return whole numbers ≥ 0 in as few bytes as they fit in: there is less to digest."""
    kind = np.min_scalar_type(counts.max(initial=0))
    return kind.str.encode() + counts.astype(kind).tobytes()
