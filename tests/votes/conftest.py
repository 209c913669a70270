"""Reading everything there is of some votes, and what they are refused with."""

from __future__ import annotations

from itertools import chain

import numpy as np
import pytest

from pate_cli.core.errors import VoteError
from pate_cli.votes.opening import open_votes


@pytest.fixture(scope="session")
def read():
    """Open votes and return the file, all query ids and all histograms."""

    flat = chain.from_iterable

    def whole(source, **options):
        with open_votes(source, **options) as votes:
            batches = list(votes.batches())
            every, most = (
                [*flat(votes.ids_between(rows, votes.queries))]
                for rows in (0, votes.rows_per_query)
            )
        ends = np.cumsum([0, *(len(batch.counts) for batch in batches)]).tolist()
        assert [batch.first_row for batch in batches] == ends[:-1]
        assert ends[-1] == votes.queries
        ids = [query for batch in batches for query in batch.ids]
        # They are also read alone, for rows that are not asked.
        assert every == ids
        assert most == ids[votes.rows_per_query :]
        return votes, ids, np.concatenate([batch.counts for batch in batches]).tolist()

    return whole


@pytest.fixture
def refused(read, tmp_path):
    """Return the one line that votes are refused with, without the folder of the test."""

    def message(source, error=VoteError, **options):
        with pytest.raises(error) as caught:
            read(source, **options)
        text = str(caught.value)
        assert "\n" not in text
        return text.replace(f"{tmp_path}/", "")

    return message
