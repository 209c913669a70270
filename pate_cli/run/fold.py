"""Work on all rows of votes, range by range; all engines give exactly the same result.

Ranges depend only on the shape of the file, so sums over ranges are the same on every engine.
Labels are also the same on every engine, because each row has its own noise.
"""

from __future__ import annotations

import functools
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
"""A function of the mechanism for the rows of a batch, and of the batch; it can be pickled."""

_ENTRIES: Final = 1 << 21
"""The number of entries in a range, whose work takes some seconds (few classes: half a second)."""
_WORTH: Final = 1 << 25
"""If there are fewer entries, other processes take longer to start than they save."""


def nothing_seen(rows: int, of: int | None = None, /) -> None:
    """Ignore reports of progress."""


@dataclass(eq=False)
class AskedRows:
    """The rows that a run asks, which are the first rows of a file.

    Attributes:
        file: the votes.
        queries: how many rows are asked; fixed before any vote is seen.
        engine: applies tasks to ranges of these rows.
        progress: called with the number of rows of each finished range.
    """

    file: VoteFile
    queries: int
    engine: Engine = here
    progress: Callable[[int], None] = nothing_seen
    _remember: bool = field(default=False, init=False, repr=False)
    _seen: dict[int, bytes] = field(default_factory=dict, init=False, repr=False)

    def read(self, mechanism: Mechanism) -> None:
        """Read all rows once, and remember a digest of them.

        A file with invalid votes is refused here, before anything is spent, so later steps cannot
        fail because of invalid votes. After `read`, the method `over` refuses votes that have
        changed.

        Raises:
            VoteError: a row is not valid, or the mechanism does not accept it.
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
        """Yield the result of `per_batch` for every batch, in order.

        Args:
            mechanism: the mechanism of the run.
            per_batch: a function of two arguments: the mechanism for the rows of a batch, and the
                batch.
            in_order: True if `per_batch` must see the batches one after the other in this process.
                If `in_order` is True, the work begins at the first row, so no checkpoint is used.
            checkpoint: stores the results of finished ranges, and returns them later.

        Raises:
            VoteError: a row is not valid, or votes have changed since `read`.
        """
        task = functools.partial(_work_on, self.file, mechanism, per_batch, self._remember)
        ranges = self.file.ranges(limit=self.queries, entries=_ENTRIES)
        kept = None if in_order else checkpoint
        # Stored ranges are listed once, because another process may end this run and remove them.
        there = set() if kept is None else {rows for rows in ranges if kept.has(rows[0])}
        missing = [rows for rows in ranges if rows not in there]
        fresh = (here if in_order else self._engine)(task, missing)
        for rows in ranges:
            found = None if kept is None or rows not in there else kept.find(rows[0])
            if found is None:
                found, digest = task(rows) if rows in there else next(fresh)
                if self._remember and self._seen.setdefault(rows[0], digest) != digest:
                    name, (start, stop) = self.file.name, rows
                    raise VoteError(
                        f"{name}: rows {start} to {stop - 1} changed while they were read; run "
                        "again with a file that does not change"
                    )
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
        """Return the engine that does the work: usually the attribute `engine`.

        If other processes cannot read the votes or save no time, the engine is `here`, which works
        in this process.
        """
        entries = self.queries * min(self.file.classes, self.file.width)
        near = isinstance(self.engine, Processes) and entries < _WORTH
        return here if near or not self.file.portable else self.engine


def _nothing(_mechanism: Mechanism, _batch: VoteBatch) -> None:
    """Do nothing with a batch."""


@dataclass(frozen=True)
class OnCounts(Generic[_Found]):
    """A task that needs only the histograms of a batch, and not its ids.

    Attributes:
        of: a function of two arguments: the mechanism for the rows of a batch, and the histograms
            of the batch.
    """

    of: Callable[[Any, Histograms], _Found]

    def __call__(self, mechanism: Mechanism, batch: VoteBatch) -> _Found:
        """Return the result of the task for a batch."""
        return self.of(mechanism, batch.counts)


def _work_on(
    file: VoteFile,
    mechanism: Mechanism,
    per_batch: PerBatch[Any],
    remember: bool,
    rows: tuple[int, int],
) -> tuple[list[Any], bytes]:
    """Return the results of `per_batch` for a range of rows, and with `remember` a digest of it."""
    found, (start, stop) = [], rows
    digest = hashlib.sha256()  # SHA-256 is fast: many processors have it.
    for batch in file.batches(start=start, limit=stop - start):
        if remember:
            _update(digest, batch)
        found.append(per_batch(mechanism.for_rows(batch.ids, batch.first_row), batch))
    return found, digest.digest()


def _update(digest: Any, batch: VoteBatch) -> None:
    """Add the votes and ids of a batch to a digest."""
    counts, ids = batch.counts, batch.ids
    for array in (counts.labels, counts.counts) if isinstance(counts, SparseCounts) else (counts,):
        digest.update(_packed(array))
    digest.update(ids.data if isinstance(ids, np.ndarray) else "\0".join(ids).encode())


def _packed(counts: Ints) -> bytes:
    """Return whole numbers ≥ 0 in as few bytes as possible, so that hashing is faster."""
    kind = np.min_scalar_type(counts.max(initial=0))
    return kind.str.encode() + counts.astype(kind).tobytes()
