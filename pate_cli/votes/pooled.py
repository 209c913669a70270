"""Votes of teachers on whole clusters of queries: one each, as that teacher said most often there.

A teacher's vote on a cluster follows from that teacher's own votes alone, so whatever becomes of
them moves one vote a cluster: these are histograms like any others (accounting/THEORY.md, section
21). Of histograms of queries that could not be had, since they do not tell who voted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from pate_cli.core.arrays import Ints
from pate_cli.core.dataclass import dataclass
from pate_cli.core.errors import UsageError, VoteError
from pate_cli.votes.batches import Reader, RollCall, VoteBatch
from pate_cli.votes.beside.pool import Members, Pool
from pate_cli.votes.checks import ABSENT, Ids, histograms_of, narrow_labels
from pate_cli.votes.facts import PoolFacts
from pate_cli.votes.matching import Matching
from pate_cli.votes.ranges import Stretch
from pate_cli.votes.reading import Reading
from pate_cli.votes.unnamed import NameTally
from pate_cli.votes.vote_file import VoteFile

_VOTES_AT_ONCE: Final = 1 << 20
_COUNTED_AT_ONCE: Final = 1 << 24


@dataclass(frozen=True, eq=False, kw_only=True)
class PooledReader:
    """Histograms of clusters, from every teacher's one vote on each, in batches of `size`.

    votes: [clusters, teachers], ABSENT for none. source: the queries', of which there are `rows`.
    """

    name: str
    ids: Ids
    votes: NDArray[np.signedinteger[Any]]
    classes: int
    weights: Ints | None
    size: int
    width: int
    source: Reader
    rows: int

    @property
    def portable(self) -> bool:
        """Never: a copy carries the votes."""
        return False

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """All clusters as one: they are not the rows of the files."""
        return (Stretch(self.name, len(self.votes)),)

    def batches(self, start: int, stop: int) -> Iterator[VoteBatch]:
        """See Reader."""
        for first in range(start, stop, self.size):
            end = min(first + self.size, stop)
            votes = self.votes[first:end].astype(np.int64)
            yield VoteBatch(
                first, self.ids[first:end], histograms_of(votes, self.classes, self.weights)
            )

    def tally(self, matching: Matching, stop: int, *, until_named: bool = False) -> NameTally:
        """Of all rows of the votes, whichever clusters they are in; see Reader."""
        del stop
        return self.source.tally(matching, self.rows, until_named=until_named)


def pooled(file: VoteFile, reading: Reading, pool: Pool) -> VoteFile:
    """The votes on clusters of the queries; all of them are read now.

    Raises:
        UsageError: the votes do not say who voted.
        VoteError: a query in no cluster, one in the pool and not in the votes, a row that is no
            vote, or more votes than there is memory for.
    """
    roll = file.reader
    if not isinstance(roll, RollCall):
        raise UsageError(
            f"`pool` needs to know who voted, and the histograms of {file.name} do not tell: a "
            "teacher has one vote in a cluster; give the labels of the teachers"
        )
    said = narrow_labels((file.queries, roll.voters), file.classes, file.name)
    rows, ids, read = np.zeros(file.queries, dtype=np.int64), [], 0
    for first, its_ids, labels in roll.said(0, file.queries):
        rows[first : first + len(labels)] = pool.rows_of(its_ids, first)
        said[first : first + len(labels)] = labels
        ids.append(its_ids)
        read += len(labels)
    if read != file.queries:
        raise VoteError(f"{file.name}: expected {file.queries} queries, the votes hold {read}")
    pool.refuse_others(rows)
    places = pool.places[rows]
    votes = pluralities(said, places, clusters=len(pool.names), classes=file.classes)
    entries = max(file.teachers, reading.drawn(file.classes, file.teachers))
    reader = PooledReader(
        name=file.name,
        ids=pool.names,
        votes=votes,
        classes=file.classes,
        weights=roll.weights,
        size=reading.size(entries),
        width=entries,
        source=roll.counted,
        rows=file.queries,
    )
    return replace(
        file,
        queries=len(pool.names),
        reader=reader,
        pool=PoolFacts(len(pool.names), file.queries, pool.sha256),
        members=Members(_joined(ids), places),
    )


def _joined(ids: list[Ids]) -> Ids:
    if all(isinstance(each, np.ndarray) for each in ids):
        return np.concatenate([np.asarray(each) for each in ids])
    return tuple(query for each in ids for query in each)


def pluralities(
    said: NDArray[np.signedinteger[Any]], places: Ints, *, clusters: int, classes: int
) -> NDArray[np.signedinteger[Any]]:
    """What each teacher said most often in each cluster, [clusters, teachers].

    Of labels it said equally often the lowest; ABSENT where it said nothing.

    Args:
        said: labels [queries, teachers], ABSENT for none.
        places: [queries] the cluster of each.
        clusters: how many there are, each with a query.
        classes: m.
    """
    voters = said.shape[1]
    order = np.argsort(places, kind="stable")
    ends = np.cumsum(np.bincount(places, minlength=clusters))
    found = np.full((clusters, voters), ABSENT, dtype=said.dtype)
    first = start = 0
    while first < clusters:
        # As many whole clusters as fit; of a cluster that does not, some teachers at a time.
        room = start + _VOTES_AT_ONCE // max(voters, 1)
        stop = max(int(np.searchsorted(ends, room, side="right")), first + 1)
        rows = order[start : ends[stop - 1]]
        step = max(_VOTES_AT_ONCE // len(rows), 1)
        for teacher in range(0, voters, step):
            some = slice(teacher, teacher + step)
            found[first:stop, some] = _most_frequent(
                said[rows, some], places[rows] - first, stop - first, classes
            )
        first, start = stop, int(ends[stop - 1])
    return found


def _most_frequent(
    said: NDArray[np.signedinteger[Any]], places: Ints, clusters: int, classes: int
) -> Ints:
    """The same of a few clusters."""
    voters = said.shape[1]
    if clusters * voters * classes <= _COUNTED_AT_ONCE:
        # Column 0 collects the absent votes.
        whose = places[:, np.newaxis] * voters + np.arange(voters)
        times = np.bincount(
            (whose * (classes + 1) + said + 1).ravel(), minlength=clusters * voters * (classes + 1)
        ).reshape(clusters, voters, classes + 1)[:, :, 1:]
        return np.where(times.any(axis=2), times.argmax(axis=2), ABSENT)
    # Of many classes most are never said: those that are get counted by sorting.
    found = np.full(clusters * voters, ABSENT, dtype=np.int64)
    row, teacher = np.nonzero(said != ABSENT)
    keys = (places[row] * voters + teacher) * classes + said[row, teacher]
    labels_said, often = np.unique(keys, return_counts=True)
    who, label = np.divmod(labels_said, classes)
    best = np.lexsort((label, -often, who))
    teachers, at = np.unique(who[best], return_index=True)
    found[teachers] = label[best][at]
    return found.reshape(clusters, voters)
