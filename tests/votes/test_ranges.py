"""Any rows of any source, and ranges of rows that are cheap to decode."""

from __future__ import annotations

import tempfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pate_cli.core.errors import ParameterError, VoteError
from pate_cli.votes import open_votes
from pate_cli.votes.ranges import PIECES_OF_A_GROUP, Stretch, cut, spans
from slices import tries

stretches = st.lists(
    st.one_of(
        st.builds(Stretch, st.just("a"), st.integers(0, 90)),
        st.lists(st.integers(0, 60), max_size=6).map(
            lambda groups: Stretch("b", sum(groups), tuple(groups))
        ),
    ),
    max_size=5,
)


@given(files=stretches, rows=st.integers(1, 40), limit=st.integers(0, 400))
def test_ranges_cover_every_row_once_and_cut_where_it_is_cheap(files, rows, limit):
    total = sum(file.rows for file in files)
    limit = min(limit, total)
    found = cut(files, rows=rows, limit=limit)
    assert [row for start, stop in found for row in range(start, stop)] == list(range(limit))
    assert all(start < stop for start, stop in found)
    whole = cut(files, rows=rows, limit=total)
    assert found == [(start, min(stop, limit)) for start, stop in whole if start < limit]
    for file, (_, begin, end) in zip(files, spans(files), strict=True):
        inside = [(a, b) for a, b in whole if begin <= a < end]
        assert all(b <= end for _, b in inside)
        if file.groups is None:
            assert all(b - a == rows for a, b in inside[:-1])
            continue
        ends = np.cumsum([begin, *file.groups]).tolist()
        for a, b in pairwise(ends):
            if a == b:
                continue  # an empty group is nowhere, or within a range
            pieces = [piece for piece in inside if piece[0] < b and piece[1] > a]
            if b - a <= rows:
                assert len(pieces) == 1
                assert all(stop - start <= rows for start, stop in pieces)
            else:
                assert (pieces[0][0], pieces[-1][1]) == (a, b)
                assert len(pieces) == min(PIECES_OF_A_GROUP, -(-(b - a) // rows))
                sizes = {stop - start for start, stop in pieces}
                assert max(sizes) - min(sizes) <= 1
        # Neighbours that fit together are together.
        edges = set(ends)
        sizes = [b - a for a, b in inside if {a, b} <= edges and b - a <= rows]
        assert all(x + y > rows for x, y in pairwise(sizes)) or len(sizes) < len(inside)


@settings(max_examples=tries(60))
@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=4).filter(any),
    group=st.integers(1, 7),
    batch=st.integers(1, 9),
    start=st.integers(0, 50),
    limit=st.none() | st.integers(0, 50),
    kind=st.sampled_from(["wide", "list", "labels", "texts"]),
    entries=st.integers(1, 40),
)
def test_any_rows_of_any_parts(sizes, group, batch, start, limit, kind, entries):
    total = sum(sizes)
    counts = np.random.default_rng(total).multinomial(9, [0.2, 0.3, 0.5], size=total)
    labels = np.stack([np.repeat(np.arange(3), row) for row in counts])
    ids = list(range(100, 100 + total))
    table = {f"class_{c}": counts[:, c] for c in range(3)}
    if kind == "list":
        table = {"query_id": ids, "counts": counts.tolist()}
    elif kind == "labels":
        table = {"query_id": ids, **{f"teacher_{t}": labels[:, t] for t in range(9)}}
    elif kind == "texts":
        ids = [f"q{number}" for number in ids]
        table["query_id"] = ids
    else:
        ids = list(range(total))
    table = pa.table(table)
    with tempfile.TemporaryDirectory() as folder:
        row = 0
        for number, size in enumerate(sizes):
            path = Path(folder) / f"{number}.parquet"
            pq.write_table(table.slice(row, size), path, row_group_size=group)
            row += size
        said = {"layout": "labels" if kind == "labels" else "counts", "classes": 3}
        for source in (folder, table):
            with open_votes(source, batch_rows=batch, **said) as votes:
                part = list(votes.batches(start=start, limit=limit))
                stop = total if limit is None else min(start + limit, total)
                assert [i for b in part for i in b.ids] == ids[start:stop]
                assert [r for b in part for r in b.counts.tolist()] == counts[start:stop].tolist()
                assert all(1 <= len(b.counts) <= batch for b in part)
                firsts = np.cumsum([start, *(len(b.counts) for b in part)])[:-1].tolist()
                assert [b.first_row for b in part] == firsts
                ranges = votes.ranges(limit=stop, entries=entries)
                together = [
                    row
                    for a, b in ranges
                    for piece in votes.batches(start=a, limit=b - a)
                    for row in piece.counts.tolist()
                ]
                assert together == counts[:stop].tolist()
                ends = np.cumsum([0, *(sizes if source is folder else [total])]).tolist()
                assert [tuple(span[1:]) for span in votes.parts] == list(pairwise(ends))
                assert all(any(a <= x and y <= b for a, b in pairwise(ends)) for x, y in ranges)


@pytest.mark.parametrize("kind", ["counts", "labels", "labels-by-teacher"])
def test_any_rows_of_an_array(kind, npy, histograms):
    labels = np.stack([np.repeat(np.arange(4), row) for row in histograms])
    array = {"counts": histograms, "labels": labels, "labels-by-teacher": labels.T}[kind]
    path = npy(array)
    with open_votes(path, layout=kind, classes=4, batch_rows=7) as votes:
        for start in (0, 1, 20, 39, 40, 41):
            for limit in (None, 0, 1, 8, 60):
                part = list(votes.batches(start=start, limit=limit))
                stop = None if limit is None else start + limit
                rows = [row for batch in part for row in batch.counts.tolist()]
                assert rows == histograms[start:stop].tolist()
                assert [int(i) for b in part for i in b.ids] == list(range(40))[start:stop]
        assert votes.parts == [(str(path), 0, 40)]
        width = 4 if kind == "counts" else 25
        ranges = votes.ranges(limit=35, entries=16 * width + 1)
        assert ranges == [(0, 16), (16, 32), (32, 35)]
        assert votes.ranges(limit=99, entries=1)[-1] == (39, 40)


def test_long_form_is_one_part(parquet):
    votes = {"query_id": [1, 1, 2, 2, 3, 3], "teacher_id": [1, 2] * 3, "label": [0, 1] * 3}
    path = parquet(votes)
    with open_votes(path) as file:
        assert file.parts == [(str(path), 0, 3)]
        assert file.ranges(limit=3, entries=4) == [(0, 2), (2, 3)]
        (batch,) = file.batches(start=1, limit=1)
        assert (batch.first_row, batch.ids.tolist(), batch.counts.tolist()) == (1, [2], [[1, 1]])


def test_numbers_out_of_range(npy, histograms):
    with open_votes(npy(histograms)) as votes:
        with pytest.raises(ParameterError, match="start must be at least 0, got -1"):
            votes.batches(start=-1)
        with pytest.raises(ParameterError, match="limit must be at least 0, got -1"):
            votes.ranges(limit=-1, entries=5)
        with pytest.raises(ParameterError, match="entries must be at least 1, got 0"):
            votes.ranges(limit=5, entries=0)
        assert votes.ranges(limit=0, entries=5) == []


@pytest.mark.parametrize("shape", ["wide", "list"])
def test_row_groups_out_of_the_way_are_not_decoded(shape, parquet):
    """Their bytes are overwritten; what lies between them is read all the same."""
    counts = np.random.default_rng(2).multinomial(1000, np.ones(2) / 2, size=40)
    columns = {"class_0": counts[:, 0], "class_1": counts[:, 1]}
    if shape == "list":
        columns = {"counts": counts.tolist()}
    path = parquet(columns, row_group_size=10, use_dictionary=False, compression=None)
    raw = bytearray(path.read_bytes())
    footer = pq.read_metadata(path)
    for group in (1, 3):
        chunk = footer.row_group(group).column(0)
        begin = chunk.data_page_offset
        raw[begin : begin + chunk.total_compressed_size] = b"\xff" * chunk.total_compressed_size
    path.write_bytes(bytes(raw))
    with open_votes(path, layout="counts") as votes:
        (batch,) = votes.batches(start=23, limit=7)
        np.testing.assert_array_equal(batch.counts, counts[23:30])
        for start in (0, 15, 23):
            with pytest.raises(VoteError, match="the Parquet file is truncated or damaged"):
                list(votes.batches(start=start))
