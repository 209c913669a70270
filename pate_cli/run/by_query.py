"""From labels of clusters to those of their queries, each of which has its cluster's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import numpy as np

from pate_cli.core.arrays import NO_LABEL, SOURCES
from pate_cli.labels.labels import Labels
from pate_cli.votes.beside.pool import Members

_QUERIES_AT_ONCE: Final = 1 << 16
_NOBODY: Final = np.uint8(SOURCES.index("none"))


def by_query(labels: Labels, members: Members) -> Iterator[Labels]:
    """The labels of all queries, in the order of the votes, some at a time.

    Args:
        labels: of the first clusters, in order; those of the others were not asked, and so a query
            in one of these has no label.
        members: the queries.
    """
    asked = len(labels)
    found = np.append(labels.labels, np.int32(NO_LABEL))
    codes = np.append(labels.source_codes, _NOBODY)
    for start in range(0, len(members.places), _QUERIES_AT_ONCE):
        some = slice(start, start + _QUERIES_AT_ONCE)
        places = np.minimum(members.places[some], asked)
        yield replace(
            labels, ids=np.asarray(members.ids[some]), labels=found[places], sources=codes[places]
        )
