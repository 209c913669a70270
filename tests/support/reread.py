"""What another process makes of votes that were pickled; importable there."""

from __future__ import annotations

import numpy as np


def reread(votes, starts):
    """The shape as a line, parts, ids and counts of all rows, and of those from each start on."""
    found = []
    for start in starts:
        batches = list(votes.batches(start=start))
        assert not batches or batches[0].first_row == start
        ids = [query for batch in batches for query in batch.ids]
        counts = [batch.counts for batch in batches]
        found.append((ids, np.concatenate(counts).tolist() if counts else []))
    return votes.describe(), votes.parts, found


def refused(votes):
    """The message of the error that reading ends with."""
    try:
        reread(votes, [0])
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    return "nothing"
