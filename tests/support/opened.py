"""Votes as `open_votes` reads them, whole, or the line with which it refuses them."""

import csv
from itertools import chain

import numpy as np

from pate_cli.core.arrays import SparseCounts
from pate_cli.core.errors import VoteError
from pate_cli.votes.opening import open_votes
from refusals import refusal


def read(source, *, start=0, limit=None, **options):
    """(the file, all ids, histograms [rows, classes] as dense ones); batches follow each other."""
    with open_votes(source, **options) as file:
        batches = list(file.batches(start=start, limit=limit))
        apart = [*chain.from_iterable(file.ids_between(start, file.queries))]
    row = start
    for batch in batches:
        assert batch.first_row == row
        row += len(batch.counts)
    parts = [b.counts.dense() if isinstance(b.counts, SparseCounts) else b.counts for b in batches]
    assert all(part.dtype == np.int64 for part in parts)
    ids = [each for batch in batches for each in np.asarray(batch.ids, dtype=object).tolist()]
    assert apart[: len(ids)] == ids  # they are also read alone, for rows that are not asked
    return file, ids, np.concatenate(parts)


def listed(source, **options):
    """(the file, all ids, histograms) as lists."""
    file, ids, counts = read(source, **options)
    return file, ids, counts.tolist()


def by_name(source, **options):
    """(the file, the votes of each row by names that nobody listed)."""
    with open_votes(source, any_name=True, **options) as file:
        (batch,) = file.batches()
    rows = zip(batch.counts.labels, batch.counts.counts, strict=True)
    names = file.names.names
    return file, [{names[at]: n for at, n in zip(*row, strict=True) if n} for row in rows]


def in_csv(path, votes, *, long=False):
    """The CSV file of texts [queries, teachers]: a row a vote, or a row a query."""
    if long:
        heads = ["query_id", "teacher_id", "label"]
        rows = [(q, t, vote) for q, row in enumerate(votes) for t, vote in enumerate(row)]
    else:
        heads = ["query_id", *(f"teacher_{t}" for t in range(len(votes[0])))]
        rows = [(f"q{q}", *row) for q, row in enumerate(votes)]
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([heads, *rows])
    return path


def by_hand(labels, classes, weights=None):
    """Histograms of labels [rows, teachers], vote by vote; -1 is none."""
    labels = np.asarray(labels)
    found = np.zeros((len(labels), classes), dtype=np.int64)
    for (row, teacher), label in np.ndenumerate(labels):
        if label >= 0:
            found[row, label] += 1 if weights is None else weights[teacher]
    return found


def counts_of(source, **options):
    """The histograms alone."""
    return read(source, **options)[2]


def refused(source, error=VoteError, **options):
    """The line with which votes are refused, on opening or when they are read."""
    return refusal(error, read, source, **options)
