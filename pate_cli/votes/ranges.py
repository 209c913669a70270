"""Cutting the rows of a file into ranges, by its shape and footers alone: the same on any machine.

What a range costs is decoding, which begins at the start of a row group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from pate_cli.core.dataclass import dataclass

PIECES_OF_A_GROUP = 8
"""A row group is decoded from its start for each piece: half of it in the mean."""


@dataclass(frozen=True)
class Stretch:
    """The rows of one file; `groups` are the rows of its row groups, None where there are none."""

    name: str
    rows: int
    groups: tuple[int, ...] | None = None


def spans(stretches: Sequence[Stretch]) -> list[tuple[str, int, int]]:
    """Return (name, start, stop) of each, rows counted over all."""
    found, start = [], 0
    for stretch in stretches:
        found.append((stretch.name, start, start + stretch.rows))
        start += stretch.rows
    return found


def cut(
    stretches: Sequence[Stretch], *, rows: int, limit: int, together: int = 1
) -> list[tuple[int, int]]:
    """Return ranges (start, stop) of about `rows` rows that cover rows 0..limit-1 in order.

    None spans two files, nor the end of a row group unless it holds whole ones. The ranges of a
    smaller limit are those of a larger one, the last cut short. `together` rows belong to one
    query, which is never cut; all stretches and groups hold whole queries.
    """
    rows = max(rows // together, 1) * together
    found: list[tuple[int, int]] = []
    start = 0
    for stretch in stretches:
        for size in _sizes(stretch, rows, together):
            if start >= limit:
                return found
            found.append((start, min(start + size, limit)))
            start += size
    return found


def _sizes(stretch: Stretch, rows: int, unit: int) -> Iterator[int]:
    """Yield the sizes of the ranges of one file, none of them empty."""
    if stretch.groups is None:
        whole, rest = divmod(stretch.rows, rows)
        yield from [rows] * whole
        if rest:
            yield rest
        return
    together = 0
    for group in stretch.groups:
        if together and together + group > rows:
            yield together
            together = 0
        if group <= rows:
            together += group
            continue
        pieces = min(PIECES_OF_A_GROUP, -(-group // rows))
        ends = (group // unit * i // pieces * unit for i in range(pieces + 1))
        yield from (b - a for a, b in pairwise(ends))
    if together:
        yield together
