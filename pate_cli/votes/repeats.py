"""Whether a query id occurs twice, in bounded memory however many rows there are.

Ids that ascend need no more than a look. Others are compared in memory while they fit. Beyond that
they are hashed, sorted run by run into one temporary file, and the runs are compared range of
hashes by range of hashes: ids that are equal fall into the same range, and a range fits in memory.
"""

from __future__ import annotations

import contextlib
import hashlib
import tempfile
from collections.abc import Callable, Iterable, Iterator
from itertools import chain
from typing import IO, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from pate_cli.core.arrow import compute
from pate_cli.core.errors import VoteError
from pate_cli.votes.columns import QUERY

KEPT_BYTES = 1 << 24
"""So much of a column of ids is in memory at once, and with what it takes to sort it, tenfold."""


def first_repeat(column: Callable[[], Iterator[Any]], name: str) -> int | None:
    """Return the first row whose id an earlier row has, None where each occurs once.

    `column` reads the ids from row 0 on, in Arrow arrays that are not empty, without nulls and all
    of int64 or all of large_string; it may be called more than once. `name` is for messages.

    Raises:
        VoteError: no room for a temporary file.
    """
    if _ascending(column()):
        return None
    portions = _portions(column())
    first = next(portions)
    second = next(portions, None)
    if second is None:
        return _among(first[1])
    with contextlib.ExitStack() as stack:
        try:
            # Without a name, and so gone with the process however that ends; its mode is 0600.
            file = stack.enter_context(tempfile.TemporaryFile(prefix="pate-ids-"))
        except OSError as error:
            raise _no_room(name, error) from error
        runs = _HashRuns(file, name)
        for row, ids in chain([first, second], portions):
            if runs.add(row, ids):
                break
        return runs.first_repeat()


def _ascending(pieces: Iterable[Any]) -> bool:
    """Whether every id is above the one before; texts by their bytes."""
    last: list[Any] = []
    for ids in pieces:
        joined = pa.concat_arrays([*last, ids])
        if (
            not compute()
            .all(compute().greater(joined.slice(1), joined.slice(0, len(joined) - 1)))
            .as_py()
        ):
            return False
        last = [ids.slice(len(ids) - 1)]
    return True


def _portions(pieces: Iterable[Any]) -> Iterator[tuple[int, list[Any]]]:
    """Yield (number of the first row, ids) of about KEPT_BYTES each."""
    row, held, kept = 0, 0, []
    for ids in pieces:
        kept.append(ids)
        held += ids.nbytes
        if held >= KEPT_BYTES:
            yield row, kept
            row, held, kept = row + sum(map(len, kept)), 0, []
    if kept:
        yield row, kept


def _among(pieces: list[Any]) -> int | None:
    """Return the first repeat of a few ids, rows counted from the first of them."""
    ids = pa.concat_arrays(pieces)
    if compute().count_distinct(ids).as_py() == len(ids):
        return None
    codes = ids.dictionary_encode().indices.to_numpy()
    _, first = np.unique(codes, return_index=True)
    seen_before = np.ones(len(codes), dtype=np.bool_)
    seen_before[first] = False
    return int(np.argmax(seen_before))


class _HashRuns:
    """Hashed ids in a temporary file, in runs sorted by hash within which no id occurs twice.

    A run is uint64 [2, ids] or [3, ids]: the hash in one word or two, and the row.
    """

    def __init__(self, file: IO[bytes], name: str) -> None:
        self._file = file
        self._name = name
        self._shapes: list[tuple[int, int]] = []
        self._first: int | None = None

    def add(self, row: int, pieces: list[Any]) -> bool:
        """Write the next ids; return whether one repeats, and so whether later rows matter."""
        run = _sorted(_hashed(pieces, row))
        self._first = _repeat(run)
        if self._first is not None:
            run = run[:, run[-1] < self._first]
        try:
            self._file.write(np.ascontiguousarray(run).data.cast("B"))
            self._file.flush()
        except OSError as error:
            raise _no_room(self._name, error) from error
        self._shapes.append((run.shape[0], run.shape[1]))
        return self._first is not None

    def first_repeat(self) -> int | None:
        """Return the first row whose id an earlier row has."""
        runs = self._mapped()
        portions = -(-sum(run.shape[1] for run in runs) // max(run.shape[1] for run in runs))
        found = [] if self._first is None else [self._first]
        low = [0] * len(runs)
        for portion in range(1, portions + 1):
            if portion < portions:
                edge = np.uint64((portion << 64) // portions)
                high = [int(np.searchsorted(run[0], edge)) for run in runs]
            else:
                high = [run.shape[1] for run in runs]
            ids = [run[:, a:b] for run, a, b in zip(runs, low, high, strict=True)]
            row = _repeat(_sorted(np.concatenate(ids, axis=1)))
            found += [] if row is None else [row]
            low = high
        return min(found, default=None)

    def _mapped(self) -> list[NDArray[np.uint64]]:
        words = np.memmap(self._file, dtype=np.uint64, mode="r")
        runs, start = [], 0
        for fields, ids in self._shapes:
            runs.append(words[start : start + fields * ids].reshape(fields, ids))
            start += fields * ids
        return runs


def _hashed(pieces: list[Any], row: int) -> NDArray[np.uint64]:
    """Return the hashes of ids, unequal for unequal numbers, and their rows."""
    rows = np.arange(row, row + sum(map(len, pieces)), dtype=np.uint64)
    if pa.types.is_integer(pieces[0].type):
        return np.stack([_scattered(np.concatenate([ids.to_numpy() for ids in pieces])), rows])
    digests = b"".join(
        hashlib.blake2b(text, digest_size=16).digest()
        for ids in pieces
        for text in ids.cast(pa.large_binary()).to_pylist()
    )
    return np.vstack([np.frombuffer(digests, dtype=np.uint64).reshape(-1, 2).T, rows])


def _scattered(ids: NDArray[np.int64]) -> NDArray[np.uint64]:
    """Return numbers spread over all 64 bits, one to one: the end of SplitMix64."""
    words = ids.view(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        words = (words ^ (words >> np.uint64(shift))) * np.uint64(factor)
    return words ^ (words >> np.uint64(31))


def _sorted(run: NDArray[np.uint64]) -> NDArray[np.uint64]:
    return run[:, np.argsort(run[0])]


def _repeat(run: NDArray[np.uint64]) -> int | None:
    """Return the first row of a sorted run whose hash an earlier row has."""
    same = run[0, 1:] == run[0, :-1]
    if not same.any():
        return None
    near = run[:, np.append(same, False) | np.append(False, same)]
    near = near[:, np.lexsort(near[::-1])]
    again = (near[:-1, 1:] == near[:-1, :-1]).all(axis=0)
    return int(near[-1, 1:][again].min()) if again.any() else None


def _no_room(name: str, error: OSError) -> VoteError:
    reason = error.strerror or type(error).__name__
    return VoteError(
        f"{name}: whether a {QUERY} repeats cannot be checked in a temporary file: {reason}; "
        "make room, or set TMPDIR to a folder that has some"
    )
