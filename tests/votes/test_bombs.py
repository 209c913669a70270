"""Small files that stand for much: memory follows what is read, and limits are told.

Lists, columns and packed files come from people who did not mean harm, too: a column of the wrong
type, a file turned round. Each is refused before it is in memory, or read piece by piece.
"""

from __future__ import annotations

import errno
import gzip
import io
import itertools
import json
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lies import belittle, lie
from pate_cli.core.errors import VoteError
from pate_cli.votes import open_votes
from pate_cli.votes.beside import side_files
from pate_cli.votes.beside.student import load_predictions
from pate_cli.votes.columns import MOST_COLUMNS
from pate_cli.votes.layouts import long
from pate_cli.votes.sources import (
    arrow_files,
    converted,
    copies,
    delimited,
    json_lines,
    parquet_guard,
    table_matrix,
)
from pate_cli.votes.sources.arrow_guard import unpacked_sizes
from pate_cli.votes.sources.formats import SourceFile
from pate_cli.votes.sources.parquet_guard import chunks_of, entries_of
from pate_cli.votes.sources.text import RowCounter
from slices import some

WIDE = (
    f"has more than {MOST_COLUMNS} columns; store the votes of a row in one list column, or in an "
    "NPY array"
)

_CUTS_BY_ROWS = "max_rows_per_page" in (pq.write_table.__doc__ or "")


POOLS = []


@pytest.fixture
def allocated():
    """Peak bytes of Arrow during a call, in a pool of its own."""

    def peak(call):
        before = pa.default_memory_pool()
        pool = pa.proxy_memory_pool(before)
        # A thread of pyarrow that was reading ahead gives memory back later, to this pool.
        POOLS.append(pool)
        pa.set_memory_pool(pool)
        try:
            call()
        finally:
            pa.set_memory_pool(before)
        return pool.max_memory()

    return peak


def lists(path, lengths, column="labels"):
    """A Parquet file of lists of zeros, a few hundred bytes for any lengths."""
    ends = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int64())
    values = pa.array(np.zeros(sum(lengths), dtype=np.int8))
    table = pa.table({column: pa.LargeListArray.from_arrays(ends, values)})
    pq.write_table(table, path, compression="zstd")
    return path


def test_a_giant_list_is_refused_by_the_footer(tmp_path, refusal, allocated, monkeypatch):
    monkeypatch.setattr(table_matrix, "MOST_ENTRIES", 1 << 20)
    path = lists(tmp_path / "v.parquet", [table_matrix.MOST_ENTRIES + 1])
    assert path.stat().st_size < 10_000
    said = []
    assert allocated(lambda: said.append(refusal(path, teachers=250))) < 1 << 19
    assert said == [
        "v.parquet: has a list of more than 1048576 entries; a row has one for each class or "
        "teacher"
    ]


@pytest.mark.parametrize("options", [{"teachers": 4, "classes": 2}, {"layout": "labels"}])
def test_a_giant_list_among_others(options, tmp_path, refusal, allocated, monkeypatch):
    """Row 0 or `teachers` say how long the others may be."""
    monkeypatch.setattr(table_matrix, "MOST_ENTRIES", 1 << 20)
    lengths = [4] * 10 + [table_matrix.MOST_ENTRIES] + [4] * 10
    path = lists(tmp_path / "v.parquet", [*lengths, 100])
    said = []
    assert allocated(lambda: said.append(refusal(path, **options))) < 1 << 19
    assert said[0].startswith("v.parquet: has a list of more than 4 entries; ")


def test_a_list_that_is_a_little_too_long_is_named(tmp_path, refusal):
    path = lists(tmp_path / "v.parquet", [4, 4, 4000])
    assert refusal(path, layout="labels", teachers=4, classes=2).startswith("v.parquet: row 2 has ")


@pytest.mark.parametrize("told", [{}, {"teachers": 3}])
def test_giant_sparse_lists(told, tmp_path, refusal, monkeypatch):
    monkeypatch.setattr(table_matrix, "MOST_ENTRIES", 50)
    table = pa.table({"label": [list(range(101))], "count": [[1] * 101]})
    pq.write_table(table, tmp_path / "v.parquet")
    most = told.get("teachers", 50)
    assert refusal(tmp_path / "v.parquet", classes=100, **told).startswith(
        f"v.parquet: has a list of more than {most} entries"
    )


@pytest.mark.parametrize("groups", [1, 3, 100])
def test_the_footer_counts_as_pyarrow_does(groups, tmp_path):
    path = tmp_path / "v.parquet"
    rng = np.random.default_rng(groups)
    rows = [rng.integers(0, 9, size=n).tolist() for n in rng.integers(0, 40, size=300)]
    table = pa.table({"a.b": rows, "x": range(300), "a": rows[::-1]})
    pq.write_table(table, path, row_group_size=300 // groups)
    footer = pq.read_metadata(path)
    for column, place in (("a.b", 0), ("a", 2)):
        chunks = [footer.row_group(g).column(place) for g in range(footer.num_row_groups)]
        with pa.OSFile(str(path)) as source:
            assert entries_of(chunks_of(source), column) == sum(
                chunk.num_values for chunk in chunks
            )
            assert entries_of(chunks_of(source), "x") == 0


def test_empty_lists_are_not_counted_as_long(tmp_path):
    path = lists(tmp_path / "v.parquet", [2, 0, 0, 1])
    with open_votes(path, layout="labels", teachers=2, classes=2) as votes:
        assert [int(batch.counts.sum()) for batch in votes.batches()] == [3]


def test_a_billion_rows_are_not_read_for_a_few(tmp_path, allocated):
    """10^7 rows here, in one row group: what is in memory is a batch."""
    rows = 10**7
    column = pa.array(np.full(rows, 5, dtype=np.int8))
    path = tmp_path / "v.parquet"
    pq.write_table(pa.table({"class_0": column, "class_1": column}), path, row_group_size=rows)
    assert path.stat().st_size < rows // 50
    del column

    def read():
        with open_votes(path, layout="counts") as votes:
            assert votes.queries == rows
            assert sum(len(batch.ids) for batch in votes.batches(limit=1000)) == 1000

    assert allocated(read) < rows


def test_very_many_columns(tmp_path, refusal):
    names = [f"class_{i}" for i in range(MOST_COLUMNS + 1)]
    table = pa.table([pa.array([1, 2], pa.int8())] * len(names), names=names)
    with pytest.raises(VoteError) as caught, open_votes(table):
        pass
    assert str(caught.value) == f"table: {WIDE}"
    (tmp_path / "v.csv").write_text(",".join(names) + "\n" + ",".join("1" for _ in names))
    assert refusal(tmp_path / "v.csv") == f"v.csv: {WIDE}"
    (tmp_path / "v.jsonl").write_text(json.dumps(dict.fromkeys(names, 1)))
    assert refusal(tmp_path / "v.jsonl") == f"v.jsonl: {WIDE}"


def test_the_footer_tells_of_very_many_columns(tmp_path, refusal, monkeypatch):
    monkeypatch.setattr("pate_cli.votes.columns.MOST_COLUMNS", 3)
    pq.write_table(pa.table({f"class_{i}": [1, 2] for i in range(4)}), tmp_path / "v.parquet")
    assert refusal(tmp_path / "v.parquet").startswith("v.parquet: has more than 3 columns")


def test_names_that_come_one_a_line(tmp_path, allocated, monkeypatch):
    """As one table these lines were as large as their square."""
    monkeypatch.setattr(json_lines, "_CELLS", 1 << 15)
    count = 2000
    path = tmp_path / "v.jsonl"
    path.write_text("\n".join(json.dumps({f"class_{i}": 1}) for i in range(count)))
    found = []

    def look():
        found.extend(next(json_lines.tables([SourceFile("v.jsonl", str(path))], [], int))[0].names)

    assert allocated(look) < count * count
    assert found == [f"class_{i}" for i in range(count)]


def test_names_that_came_before_are_known_without_a_count(tmp_path, read, monkeypatch):
    """A block that brings nothing new, one that turns a column into floats, one with a new name."""
    monkeypatch.setattr(json_lines, "_BLOCK", 64)
    monkeypatch.setattr(json_lines, "_CELLS", 4)
    rows = [{"class_0": 1, "class_1": 2}] * 9
    rows += [{"class_0": 1.0, "class_1": 2}, {"class_1": 3}, {"class_1": 2, "class_2": 1}] * 3
    path = tmp_path / "v.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    with pytest.raises(VoteError, match="row 0 has a null"):
        read(path, layout="counts", teachers=3)
    rows = [dict.fromkeys(("class_0", "class_1", "class_2"), 1) | row for row in rows]
    path.write_text("\n".join(map(json.dumps, rows)))
    counts = read(path, layout="counts", teachers=9)[2]
    assert counts.tolist() == [[int(value) for value in row.values()] for row in rows]


@pytest.mark.parametrize(
    ("name", "start", "end"),
    [("v.csv", b"class_0,class_1\n1,", b"\n"), ("v.jsonl", b'{"counts":[1', b"]}\n")],
)
def test_one_line_without_end(name, start, end, tmp_path, refusal, allocated, monkeypatch):
    """Of a line of 64 MB no more is held than a few blocks, and the 32 that pyarrow reads ahead."""
    monkeypatch.setattr(delimited, "_BLOCK", 1 << 20)
    monkeypatch.setattr(json_lines, "_BLOCK", 1 << 18)
    monkeypatch.setattr(json_lines, "LONGEST", 1 << 20)
    path = tmp_path / f"{name}.gz"
    path.write_bytes(gzip.compress(start + b",1" * (1 << 25) + end, 1))
    assert path.stat().st_size < 1 << 19
    said = []
    assert allocated(lambda: said.append(refusal(path))) < 40 << 20
    assert said[0] in (
        "v.csv.gz: cannot be read as CSV from row 0 on; a row may be damaged, or longer than 1 MB",
        "v.jsonl.gz: a line is longer than 1 MB",
    )


def test_a_forged_size_in_an_archive(tmp_path, refusal):
    """A header that promises more than is there, and one that promises less."""
    for shape in ((1 << 40, 2), (3, 2)):
        header = io.BytesIO()
        form = {"descr": "<i8", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(header, form)
        path = tmp_path / "v.npz"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("votes.npy", header.getvalue() + bytes(1 << 20))
        said = refusal(path, layout="counts")
        assert "truncated" in said or "goes on after its array" in said


@pytest.mark.parametrize("packed", ["gzip", "npz", "csv"])
def test_a_disk_that_fills(packed, tmp_path, refusal, monkeypatch):
    path = tmp_path / "v"
    if packed == "npz":
        np.savez(path.with_suffix(".npz"), np.ones((9, 2), dtype=np.int64))
        path = path.with_suffix(".npz")
    else:
        text = b"class_0,class_1\n1,2\n"
        path.write_bytes(text if packed == "csv" else gzip.compress(text))
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "[Errno 28] Error writing bytes to file")

    if packed == "csv":
        monkeypatch.setattr(pq.ParquetWriter, "write_table", full)
    else:
        real = copies.Path.open

        def opened(self, *args, **kwargs):
            return full() if self.parent.parent == folder else real(self, *args, **kwargs)

        monkeypatch.setattr(copies.Path, "open", opened)
    assert refusal(path) == (
        f"{path.name}: cannot be copied to a temporary file: No space left on device; make room, "
        "or set TMPDIR to a folder that has some"
    )
    assert not list(folder.iterdir())


def test_a_giant_page_is_refused_by_its_header(tmp_path, refusal, allocated, monkeypatch):
    """Two columns of zeros, each in one page of 4 MB; in pages of 64 kB they are read."""
    monkeypatch.setattr(parquet_guard, "MOST_PAGES", 1 << 22)
    column = np.zeros(1 << 19, dtype=np.int64)
    table = pa.table({"class_0": column, "class_1": column})
    form = {"use_dictionary": False, "compression": "zstd", "row_group_size": len(column)}
    # Earlier versions of pyarrow cut no page by its rows.
    page = {"max_rows_per_page": len(column)} if _CUTS_BY_ROWS else {}
    path = tmp_path / "v.parquet"
    said = []
    pq.write_table(table, path, data_page_size=1 << 23, **page, **form)
    assert allocated(lambda: said.append(refusal(path, layout="counts"))) < 1 << 20
    assert said == [
        "v.parquet: row group 0 has pages of more than 4 MB; write it anew in smaller ones"
    ]
    pq.write_table(table, path, data_page_size=1 << 16, **form)
    with open_votes(path, layout="counts", teachers=1) as votes:
        assert votes.queries == len(column)
        next(votes.batches())


DAMAGED = "v.parquet: the Parquet file is truncated or damaged"
GIANT = (1 << 31) - 1000


@pytest.mark.parametrize("what", ["size", "packed", "values"])
@pytest.mark.parametrize("page", [0, 1])
@pytest.mark.parametrize("compression", ["none", "snappy", "zstd"])
@pytest.mark.parametrize("listed", [False, True])
def test_a_page_that_says_it_is_giant(
    listed, compression, page, what, tmp_path, refusal, allocated
):
    """A file of some kB took two GB, and seconds, before it was found to be damaged."""
    rng = np.random.default_rng(3)
    columns = {f"class_{j}": rng.integers(0, 99, 2000) for j in range(2)}
    if listed:
        columns = {"counts": rng.integers(0, 99, (2000, 2)).tolist()}
    path = tmp_path / "v.parquet"
    form = {"compression": compression, "use_dictionary": True}
    pq.write_table(pa.table(columns), path, **form)
    assert path.stat().st_size < 30_000
    lie(path, page=page, **{what: GIANT})
    said = []
    peak = allocated(lambda: said.append(refusal(path, layout="counts", teachers=198)))
    if said[0] != DAMAGED:
        assert what == "size"
        assert "row group 0 has pages of more than 512 MB" in said[0]
    # Where all that is stored could not fill it, room may be asked for and is never touched.
    if listed or compression == "zstd" or what == "packed":
        assert peak < 1 << 20


def test_a_footer_that_makes_little_of_its_pages(tmp_path, refusal, allocated, monkeypatch):
    """Pages say the truth: zeros that zstd packs a thousand times."""
    monkeypatch.setattr(parquet_guard, "MOST_PAGES", 1 << 20)
    column = np.zeros(1 << 19, dtype=np.int64)
    page = {"max_rows_per_page": len(column)} if _CUTS_BY_ROWS else {}
    form = {"use_dictionary": False, "row_group_size": len(column), "data_page_size": 1 << 23}
    path = tmp_path / "v.parquet"
    table = pa.table({"class_0": column, "class_1": column})
    pq.write_table(table, path, compression="zstd", **page, **form)
    belittle(path)
    said = []
    assert allocated(lambda: said.append(refusal(path, layout="counts"))) < 1 << 20
    assert said == [
        "v.parquet: row group 0 has pages of more than 1 MB; write it anew in smaller ones"
    ]


@pytest.mark.parametrize("what", ["packed", "values", "footer"])
def test_lies_beside_the_votes(what, tmp_path, allocated, monkeypatch):
    monkeypatch.setattr(side_files, "MOST_BYTES", 1 << 22)
    path = tmp_path / "p.parquet"
    column = np.zeros(1 << 18)
    form = {"use_dictionary": False, "compression": "zstd", "data_page_size": 1 << 23}
    page = {"max_rows_per_page": len(column)} if _CUTS_BY_ROWS else {}
    pq.write_table(pa.table({f"class_{j}": column for j in range(2)}), path, **form, **page)
    if what == "footer":
        belittle(path)
    else:
        lie(path, **{what: GIANT})

    def read():
        with pytest.raises(VoteError, match=r"in memory; keep|truncated or damaged"):
            load_predictions(path)

    assert allocated(read) < 1 << 20


def test_large_columns_are_read_piece_by_piece(tmp_path, monkeypatch, histograms):
    """And their pages looked into, with the same votes in the end."""
    path = tmp_path / "v.parquet"
    columns = {f"class_{j}": histograms[:, j] for j in range(histograms.shape[1])}
    pq.write_table(pa.table(columns), path, row_group_size=10)
    monkeypatch.setattr(parquet_guard, "AT_HAND", 1)
    with open_votes(path, layout="counts") as votes:
        found = np.concatenate([batch.counts for batch in votes.batches()])
    np.testing.assert_array_equal(found, histograms)
    lie(path, packed=GIANT)
    with pytest.raises(VoteError, match="truncated or damaged"), open_votes(path) as votes:
        list(votes.batches())


@pytest.mark.parametrize("listed", [False, True])
def test_a_long_text_in_every_row(listed, tmp_path, allocated, monkeypatch):
    """Stored once, it stood in memory once for every row: here 200 MB of it."""
    monkeypatch.setattr(parquet_guard, "AT_ONCE", 1 << 20)
    rows = 2000
    texts = pa.array(["cat", "x" * 100_000, "dog"])
    column = pa.DictionaryArray.from_arrays(pa.array(np.ones(rows, dtype=np.int32)), texts)
    if listed:
        column = pa.ListArray.from_arrays(pa.array(np.arange(rows + 1, dtype=np.int32)), column)
    path = tmp_path / "v.parquet"
    table = pa.table({"labels" if listed else "teacher_0": column})
    pq.write_table(table, path, store_schema=False, compression="zstd")
    assert path.stat().st_size < 2000
    found = []

    def read():
        with open_votes(path, layout="labels", label_names=("cat", "dog")) as votes:
            found.extend(int(batch.counts.sum()) for batch in votes.batches())

    assert allocated(read) < 1 << 24
    assert sum(found) == 0
    assert len(found) > rows // 12


def test_plain_texts_are_read_in_few_rows(tmp_path, allocated, monkeypatch):
    """All different and of a size that nobody but their pages tells."""
    monkeypatch.setattr(parquet_guard, "AT_ONCE", 1 << 20)
    table = pa.table({"teacher_0": [f"{row:07}" * 10_000 for row in range(300)]})
    path = tmp_path / "v.parquet"
    form = {
        "use_dictionary": False,
        "compression": "zstd",
        "data_page_size": 1 << 17,
        "write_batch_size": 1,
    }
    pq.write_table(table, path, store_schema=False, **form)

    def read():
        with open_votes(path, layout="labels", label_names=("cat", "dog")) as votes:
            assert sum(len(batch.counts) for batch in votes.batches()) == 300

    assert allocated(read) < 1 << 23


def test_texts_that_are_the_one_before(tmp_path, allocated, monkeypatch):
    """Of each no more is stored than that it is as long: a file of 500 bytes stood for GB."""
    monkeypatch.setattr(parquet_guard, "AT_ONCE", 1 << 20)
    rows = 2000
    table = pa.table({"teacher_0": ["x" * 100_000] * rows})
    path = tmp_path / "v.parquet"
    form = {"use_dictionary": False, "compression": "zstd", "store_schema": False}
    pq.write_table(table, path, column_encoding={"teacher_0": "DELTA_BYTE_ARRAY"}, **form)
    del table
    assert path.stat().st_size < 2000

    def read():
        with open_votes(path, layout="labels", label_names=("cat", "dog"), teachers=1) as votes:
            assert sum(len(batch.counts) for batch in votes.batches()) == rows

    assert allocated(read) < 1 << 24


def test_a_long_id_is_refused(tmp_path, refusal):
    table = pa.table(
        {"query_id": ["a", "b" * (1 << 16) + "b"], "class_0": [1, 2], "class_1": [2, 1]}
    )
    pq.write_table(table, tmp_path / "v.parquet")
    assert refusal(tmp_path / "v.parquet", layout="counts") == (
        "v.parquet: row 1 has an id of more than 64 kB; use a number, or a hash of it"
    )


@pytest.mark.parametrize("packed", ["gzip", "twice", "npz"])
def test_what_unpacks_beyond_measure_is_refused(packed, tmp_path, refusal, monkeypatch):
    monkeypatch.setattr(copies, "LARGE", 1 << 16)
    monkeypatch.setattr(copies, "MOST_TIMES", 50)
    path = tmp_path / "v"
    text = b"class_0,class_1\n" + b"1,2\n" * 30_000
    if packed == "npz":
        path = path.with_suffix(".npz")
        np.savez_compressed(path, np.ones((9000, 2), dtype=np.int64))
    else:
        text = gzip.compress(text)
        path.write_bytes(gzip.compress(text) if packed == "twice" else text)
    said = refusal(path, layout="counts")
    assert said.endswith("times its size; if it is meant to, unpack it and give what is in it")
    monkeypatch.setattr(copies, "MOST_TIMES", 5000)
    with open_votes(path, layout="counts") as votes:
        assert votes.queries >= 9000


def test_a_large_copy_leaves_room_on_its_disk(tmp_path, refusal, monkeypatch):
    path = tmp_path / "v.csv.gz"
    path.write_bytes(gzip.compress(b"class_0,class_1\n" + b"1,2\n" * 30_000))
    monkeypatch.setattr(copies, "RESERVE", 1 << 62)
    with open_votes(path, layout="counts") as votes:
        assert votes.queries == 30_000
    monkeypatch.setattr(copies, "LARGE", 1 << 16)
    monkeypatch.setattr(copies, "MOST_TIMES", 1 << 20)
    assert refusal(path, layout="counts").endswith(
        "No space left on device; make room, or set TMPDIR to a folder that has some"
    )


LINES = {
    "excel.csv": (b"sep=;\n# votes of all\n\nclass_0;class_1\n", b"%d;1\n"),
    "v.csv": (b"class_0,class_1\r\n", b"%d,1\r\n"),
    "v.jsonl": (b"", b'{"class_0": %d, "class_1": 1}\n'),
}


@pytest.mark.parametrize(("packed", "name"), some(itertools.product([False, True], LINES), 2))
def test_rows_beyond_those_asked_are_not_converted(name, packed, tmp_path, monkeypatch):
    """The last one is no vote; who asks for fewer rows never comes to it."""
    monkeypatch.setattr(copies, "LONG_ENOUGH", 1 << 12)
    head, line = LINES[name]
    text = head + b"".join(line % (row % 7) for row in range(400_000)) + line % -5
    path = tmp_path / name
    path.write_bytes(gzip.compress(text, 1) if packed else text)
    seen = []
    with open_votes(
        path, layout="counts", teachers=8, max_queries=300, progress=seen.append
    ) as votes:
        assert 300 <= votes.queries < 100_000
        counts = np.concatenate([batch.counts for batch in votes.batches(limit=300)])
    assert counts[:, 0].tolist() == [row % 7 for row in range(300)]
    assert len(seen) < 4
    with (
        pytest.raises(VoteError, match="row 400000 "),
        open_votes(
            path, layout="counts", teachers=8, max_queries=1 << 40, progress=seen.append
        ) as votes,
    ):
        list(votes.batches())
    assert len(seen) > 4
    assert set(seen) == {1}


@pytest.mark.parametrize("layout", [None, "long"])
@pytest.mark.parametrize("kind", ["csv", "jsonl", "arrow"])
def test_rows_that_are_votes_are_all_converted(layout, kind, tmp_path, monkeypatch):
    monkeypatch.setattr(copies, "LONG_ENOUGH", 16)
    votes = {"query_id": [3, 4, 3, 4], "teacher_id": [0, 0, 1, 1], "label": [0, 1, 0, 1]}
    rows = list(zip(*votes.values(), strict=True))
    path = tmp_path / "v"
    if kind == "arrow":
        with pa.ipc.new_file(path, (table := pa.table(votes)).schema) as writer:
            writer.write_table(table, max_chunksize=1)
    elif kind == "csv":
        lines = [
            ",".join(votes),
            *(",".join(map(str, row)) for row in zip(*votes.values(), strict=True)),
        ]
        path.write_text("\n".join(lines) + "\n")
    else:
        rows = [dict(zip(votes, row, strict=True)) for row in zip(*votes.values(), strict=True)]
        path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    with open_votes(path, layout=layout, classes=2, max_queries=1) as opened:
        assert opened.queries == 2
        assert opened.teachers == 2


def test_batches_beyond_those_asked_are_not_converted(tmp_path):
    table = pa.table({"class_0": np.arange(9), "class_1": 9 - np.arange(9)})
    with pa.ipc.new_file(tmp_path / "v.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=2)
    with open_votes(tmp_path / "v.arrow", layout="counts", max_queries=3) as votes:
        assert votes.queries == 4


@given(
    lines=st.lists(st.sampled_from([b"", b" ", b"1", b"1,\t", b"12,3"]), max_size=30),
    end=st.sampled_from([b"\n", b"\r\n"]),
    rows=st.integers(1, 12),
    chunk=st.integers(1, 9),
)
def test_rows_are_counted_whatever_the_chunks(lines, end, rows, chunk):
    """Cut at the place that is told, the text has so many lines that say something."""
    text = b"a,b" + end + b"".join(line + end for line in lines)
    found = RowCounter.of(text, "v.csv")
    cut = None
    for start in range(0, len(text), chunk):
        place = found.end(text[start : start + chunk], rows)
        if place is not None:
            cut = start + place
            break
    full = [line for line in lines if line and line[-1:] not in b" \t"]
    assert (cut is None) == (len(full) < rows)
    if cut is not None:
        kept = text[:cut].split(end)[1:]
        assert [line for line in kept if line.strip()] == [line for line in lines if line.strip()][
            : sum(bool(line.strip()) for line in kept)
        ]
        assert sum(line in full for line in kept) == rows


def test_lines_that_each_bring_a_name_are_refused_soon(tmp_path, refusal, monkeypatch):
    monkeypatch.setattr(json_lines, "_MOST_CELLS", 1 << 12)
    monkeypatch.setattr(json_lines, "_BLOCK", 1 << 14)
    path = tmp_path / "v.jsonl"
    path.write_text("".join(f'{{"c{i}":1}}\n' for i in range(20_000)))
    assert "each row very few of them" in refusal(path, layout="counts", teachers=1)


def arrow_file(path, table, **options):
    with pa.ipc.new_file(path, table.schema, options=pa.ipc.IpcWriteOptions(**options)) as writer:
        writer.write_table(table)
    return path


@pytest.mark.parametrize("compression", ["zstd", "lz4"])
def test_a_giant_record_batch_is_refused_by_its_message(
    compression, tmp_path, refusal, allocated, monkeypatch
):
    monkeypatch.setattr(arrow_files, "MOST_UNPACKED", 1 << 22)
    column = np.zeros(1 << 19, dtype=np.int64)
    table = pa.table({"class_0": column, "class_1": column})
    path = arrow_file(tmp_path / "v.arrow", table, compression=compression)
    said = []
    assert allocated(lambda: said.append(refusal(path, layout="counts"))) < 1 << 20
    assert said[0].startswith("v.arrow: has a record batch of more than ")
    path = arrow_file(path, table.slice(0, 1 << 17), compression=compression)
    with open_votes(path, layout="counts", teachers=1) as votes:
        assert votes.queries == 1 << 17


@pytest.mark.parametrize("compression", ["zstd", None])
def test_sizes_of_messages_are_those_of_buffers(compression, tmp_path):
    """Of compressed ones alone; others are no larger than the file."""
    table = pa.table(
        {
            "a": pa.array(range(1000), pa.int64()),
            "b": pa.array(["x", "y"] * 500).dictionary_encode(),
        }
    )
    path = arrow_file(tmp_path / "v.arrow", table, compression=compression)
    with pa.OSFile(str(path)) as source:
        sizes = list(unpacked_sizes(source))
    assert len(sizes) == 2  # the dictionary, the rows
    if compression is None:
        assert sizes == [0, 0]
    else:
        assert sizes[1] >= 1000 * (8 + 4)


def test_rows_of_nothing(tmp_path, refusal, monkeypatch):
    monkeypatch.setattr(arrow_files, "_MOST_EMPTY", 1 << 10)
    table = pa.table({name: pa.nulls(1 << 14) for name in ("class_0", "class_1")})
    path = arrow_file(tmp_path / "v.arrow", table)
    assert refusal(path) == "v.arrow: has more than 1024 rows without anything in them"


def test_texts_of_a_dictionary_that_would_fill_memory(tmp_path, refusal, allocated, monkeypatch):
    monkeypatch.setattr(arrow_files, "MOST_UNPACKED", 1 << 22)
    places = pa.array(np.ones(1000, dtype=np.int8))
    column = pa.DictionaryArray.from_arrays(places, pa.array(["cat", "x" * 10_000]))
    path = arrow_file(tmp_path / "v.arrow", pa.table({"teacher_0": column}), compression="zstd")
    said = []
    assert allocated(lambda: said.append(refusal(path, label_names=("cat", "dog")))) < 1 << 20
    assert "in a few rows" in said[0]


def test_rows_of_long_texts_that_would_fill_memory(tmp_path, refusal, monkeypatch):
    monkeypatch.setattr(converted, "MOST_UNPACKED", 1 << 22)
    path = tmp_path / "v.jsonl"
    path.write_text(f'{{"teacher_0": "{"x" * 10_000}"}}\n' * 1000)
    assert "in a few rows" in refusal(path, label_names=("cat", "dog"))


@pytest.mark.parametrize("told", [{}, {"classes": 4000}])
def test_pairs_of_queries_and_teachers_that_memory_is_not_for(told, tmp_path, refusal, monkeypatch):
    """A vote each of a teacher of its own on a query of its own."""
    monkeypatch.setattr(long, "MOST_BYTES", 1 << 20)
    ids = np.arange(3000 if not told else 100)
    table = pa.table({"query_id": ids, "teacher_id": ids, "label": ids % 3})
    pq.write_table(table, tmp_path / "v.parquet")
    assert "to count; store one row per query" in refusal(
        tmp_path / "v.parquet", teachers=4000, **told
    )


@pytest.mark.parametrize("listed", [False, True])
def test_a_giant_file_beside_the_votes(listed, tmp_path, allocated, monkeypatch):
    monkeypatch.setattr(side_files, "MOST_BYTES", 1 << 20)
    path = tmp_path / "p.parquet"
    if listed:
        lists(path, [1 << 18])
    else:
        column = np.zeros(1 << 18)
        pq.write_table(pa.table({"class_0": column}), path, row_group_size=len(column))
    assert path.stat().st_size < 1 << 15

    def read():
        with pytest.raises(VoteError, match="is held in memory; keep the columns"):
            load_predictions(path)

    assert allocated(read) < 1 << 20
