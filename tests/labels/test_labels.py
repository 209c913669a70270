"""Label tables: every format read back by an independent reader, refusals by their exact text."""

from __future__ import annotations

import csv
import errno
import gc
import io
import itertools
import json
import os
import subprocess
import sys
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pate_cli.core.errors import OutputError, ParameterError, UsageError
from pate_cli.files.transaction import Outputs
from pate_cli.labels import labels as labels_module
from pate_cli.labels.labels import (
    SOURCES,
    LabelFormat,
    Labels,
    LabelWriter,
    concatenate,
    write_labels,
)


def encode_labels(table, label_format):
    """The file of a table, as bytes."""
    file = io.BytesIO()
    write_labels(table, file, label_format)
    return file.getvalue()


def table_of(rows, metadata=None):
    """A table from (id, label or None, source) rows; ids of one kind."""
    ids = [row[0] for row in rows]
    return Labels(
        ids=np.array(ids, dtype=object if ids and isinstance(ids[0], str) else np.int64),
        labels=np.array([-1 if row[1] is None else row[1] for row in rows], dtype=np.int64),
        sources=np.array([row[2] for row in rows], dtype=object),
        metadata=metadata or {},
    )


ROWS = [(10, 3, "teachers"), (11, None, "none"), (-5, 0, "student")]
SIGNED = st.integers(-(2**63), 2**63 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
ANSWERS = st.one_of(
    st.tuples(st.integers(0, 2**31 - 1), st.sampled_from(["teachers", "student"])),
    st.just((None, "none")),
)
TABLES = st.one_of(
    st.lists(st.tuples(SIGNED, ANSWERS), max_size=12),
    st.lists(st.tuples(TEXT, ANSWERS), min_size=1, max_size=12),
).map(lambda rows: [(key, *answer) for key, answer in rows])


# ---------------------------------------------------------------- formats


@given(rows=TABLES)
def test_parquet_reads_back(rows):
    data = encode_labels(table_of(rows, {"sigma1": "150", "a": "é"}), LabelFormat.PARQUET)
    found = pq.read_table(pa.BufferReader(data))
    assert found.column_names == ["query_id", "label", "source"]
    assert [tuple(row.values()) for row in found.to_pylist()] == rows
    assert found.schema.field("label").type == pa.int32()
    assert json.loads(found.schema.metadata[b"pate"]) == {"sigma1": "150", "a": "é"}


def test_row_numbers_take_no_space_and_other_readers_know_how(tmp_path):
    import duckdb
    import polars as pl

    ids = np.concatenate([np.arange(200_000), [2**63 - 1, -(2**63), 5]])
    labels = np.arange(ids.size) % 7 - 1
    codes = np.where(labels < 0, SOURCES.index("none"), np.arange(ids.size) % 2)
    table = Labels(ids, labels, np.array(SOURCES)[codes])
    path = tmp_path / "l.parquet"
    path.write_bytes(encode_labels(table, LabelFormat.PARQUET))
    wanted = list(zip(table.ids.tolist(), table, table.sources.tolist(), strict=True))
    assert duckdb.sql(f"SELECT * FROM '{path}'").fetchall() == wanted  # noqa: S608 - our own path
    assert pl.read_parquet(path).rows() == wanted
    group = pq.ParquetFile(path).metadata.row_group(0)
    assert group.column(0).total_compressed_size < 20_000


@given(rows=TABLES)
def test_npy_reads_back(rows):
    data = encode_labels(table_of(rows), LabelFormat.NPY)
    found = np.load(io.BytesIO(data), allow_pickle=False)
    assert found.dtype == np.int32
    assert found.tolist() == [-1 if row[1] is None else row[1] for row in rows]


@given(rows=TABLES)
def test_csv_reads_back(rows):
    text = encode_labels(table_of(rows), LabelFormat.CSV).decode("utf-8")
    header, *found = csv.reader(io.StringIO(text, newline=""))
    assert header == ["query_id", "label", "source"]
    assert found == [
        [str(key), "" if label is None else str(label), source] for key, label, source in rows
    ]


@given(rows=TABLES)
def test_jsonl_reads_back(rows):
    data = encode_labels(table_of(rows), LabelFormat.JSONL)
    assert data.isascii()
    found = [json.loads(line) for line in data.splitlines()]
    assert [tuple(row.items()) for row in found] == [
        (("query_id", key), ("label", label), ("source", source)) for key, label, source in rows
    ]


def test_text_formats_to_the_letter():
    table = table_of(ROWS)
    assert encode_labels(table, LabelFormat.CSV) == (
        b"query_id,label,source\n10,3,teachers\n11,,none\n-5,0,student\n"
    )
    assert encode_labels(table, LabelFormat.JSONL) == (
        b'{"query_id":10,"label":3,"source":"teachers"}\n'
        b'{"query_id":11,"label":null,"source":"none"}\n'
        b'{"query_id":-5,"label":0,"source":"student"}\n'
    )


@pytest.mark.parametrize("label_format", [LabelFormat.CSV, LabelFormat.JSONL])
def test_text_is_the_same_across_its_inner_pieces(label_format):
    count = 70_000
    labels = np.arange(count) % 7 - 1
    table = Labels(np.arange(count), labels, np.where(labels < 0, "none", "teachers"))
    lines = encode_labels(table, label_format).splitlines()
    assert len(lines) == count + (label_format is LabelFormat.CSV)
    assert lines[-1] in (b"69999,5,teachers", b'{"query_id":69999,"label":5,"source":"teachers"}')


@pytest.mark.parametrize("label_format", list(LabelFormat))
def test_the_same_table_gives_the_same_bytes(label_format):
    # Another process, another hash seed, another order of the metadata, another array type.
    program = (
        "import io, sys, numpy as np\n"
        "from pate_cli.labels.labels import *\n"
        "t = Labels(np.array([10, 11, -5], dtype=np.int32), np.array([3, -1, 0]),"
        " np.array(['teachers', 'none', 'student']), {'b': '2', 'a': '1'})\n"
        f"write_labels(t, sys.stdout.buffer, LabelFormat('{label_format}'))\n"
    )
    other = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert other.stdout == encode_labels(table_of(ROWS, {"a": "1", "b": "2"}), label_format)


def test_an_empty_run_is_a_valid_file_in_every_format():
    empty = table_of([])
    assert encode_labels(empty, LabelFormat.CSV) == b"query_id,label,source\n"
    assert encode_labels(empty, LabelFormat.JSONL) == b""
    assert np.load(io.BytesIO(encode_labels(empty, LabelFormat.NPY))).shape == (0,)
    found = pq.read_table(pa.BufferReader(encode_labels(empty, LabelFormat.PARQUET)))
    assert found.num_rows == 0
    assert found.schema.field("query_id").type == pa.int64()


def test_writing_to_a_file_object(tmp_path):
    with (tmp_path / "labels.parquet").open("wb") as file:
        write_labels(table_of(ROWS), file, LabelFormat.PARQUET)
    assert pq.read_table(tmp_path / "labels.parquet").column("label").to_pylist() == [3, None, 0]


def test_pyarrow_is_imported_only_for_parquet():
    program = (
        "import io, sys, numpy as np\n"
        "from pate_cli.labels.labels import *\n"
        "t = Labels(np.array([1]), np.array([0]), np.array(['teachers']))\n"
        "write_labels(t, io.BytesIO(), LabelFormat.CSV)\n"
        "sys.exit('pyarrow' in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# ---------------------------------------------------------------- format by suffix


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("labels.parquet", LabelFormat.PARQUET),
        ("folder.csv/x.labels.NPY", LabelFormat.NPY),
        ("a.csv", LabelFormat.CSV),
        ("a.jsonl", LabelFormat.JSONL),
        ("a.ndjson", LabelFormat.JSONL),
    ],
)
def test_format_from_path(path, expected):
    assert LabelFormat.from_path(path) is expected


@pytest.mark.parametrize("path", ["-", "labels", "labels.csv.gz", ".csv", "out.csv/labels"])
def test_an_unknown_suffix_names_the_choices(path):
    with pytest.raises(UsageError) as caught:
        LabelFormat.from_path(path)
    assert caught.value.exit_code == 2
    assert str(caught.value) == (
        f"cannot tell the label format of '{path}': end the name in .parquet, .npy, .csv, .jsonl,"
        " .ndjson, or give `label_format` parquet|npy|csv|jsonl"
    )


# ---------------------------------------------------------------- construction


@pytest.mark.parametrize(
    ("ids", "labels", "sources", "text"),
    [
        (
            [1, 2],
            [0],
            ["teachers"],
            "ids, labels and sources must be one column each, of one length, not of shapes"
            " (2,), (1,) and (1,)",
        ),
        (
            [[1]],
            [[0]],
            [["teachers"]],
            "ids, labels and sources must be one column each, of one length, not of shapes"
            " (1, 1), (1, 1) and (1, 1)",
        ),
        ([1.5], [0], ["teachers"], "query ids must be whole numbers or text, not float64"),
        ([True], [0], ["teachers"], "query ids must be whole numbers or text, not bool"),
        ([1], [0.0], ["teachers"], "labels must be whole numbers, not float64"),
        ([1, 2], [0, -2], ["teachers"] * 2, "row 1: a label must be in [0, 2147483647], or -1"),
        ([1], [2**31], ["teachers"], "row 0: a label must be in [0, 2147483647], or -1"),
        ([1, 2], [0, 0], ["teachers", "x"], "row 1: the source must be one of teachers, student"),
        ([1], [-1], ["teachers"], "row 0: the source must be none exactly where there is no"),
        ([1], [4], ["none"], "row 0: the source must be none exactly where there is no label"),
        (["a", "\ud800"], [1, 1], ["student"] * 2, "row 1: a query id must be valid Unicode text"),
    ],
)
def test_columns_that_do_not_fit(ids, labels, sources, text):
    with pytest.raises(ParameterError) as caught:
        Labels(np.array(ids), np.array(labels), np.array(sources))
    assert str(caught.value).startswith(text)


def test_ids_of_mixed_objects_are_refused():
    with pytest.raises(ParameterError, match="whole numbers or text, not object"):
        Labels(np.array(["a", 1], dtype=object), np.zeros(2, int), np.full(2, "student"))


def test_unsigned_ids_must_fit():
    one = (np.array([0]), np.array(["teachers"]))
    assert Labels(np.array([7], dtype=np.uint64), *one).ids.dtype == np.int64
    with pytest.raises(ParameterError, match="row 0: a query id must fit 64 signed bits"):
        Labels(np.array([2**63], dtype=np.uint64), *one)


def test_metadata_must_be_text():
    with pytest.raises(ParameterError, match="metadata must map text to text"):
        Labels(np.array([1]), np.array([0]), np.array(["teachers"]), {"sigma": 40.0})


def test_a_table_is_frozen_through_and_through():
    parameters = {"sigma": "40"}
    table = table_of(ROWS, parameters)
    parameters["sigma"] = "41"
    assert table.metadata == {"sigma": "40"}
    with pytest.raises(TypeError):
        table.metadata["sigma"] = "42"
    with pytest.raises(ValueError, match="read-only"):
        table.labels[0] = 1
    with pytest.raises(FrozenInstanceError):
        table.labels = table.labels


def test_sources_are_kept_as_codes_and_read_as_text():
    table = table_of(ROWS)
    assert table.source_codes.dtype == np.uint8
    assert [SOURCES[code] for code in table.source_codes] == [row[2] for row in ROWS]
    assert table.sources.tolist() == [row[2] for row in ROWS]
    same = Labels(table.ids, table.labels, table.source_codes)
    assert same.sources.tolist() == table.sources.tolist()
    assert table.answers == 1
    assert table.to_dict() == {"queries": 3, "teachers": 1, "student": 1, "none": 1}
    with pytest.raises(ValueError, match="read-only"):
        table.source_codes[0] = 1
    with pytest.raises(FrozenInstanceError):
        table.sources = table.sources


def test_a_table_with_other_metadata():
    other = replace(table_of(ROWS), metadata={"a": "1"})
    assert other.metadata == {"a": "1"}
    assert other.sources.tolist() == [row[2] for row in ROWS]


@pytest.mark.parametrize("codes", [np.array([3], np.uint8), np.array([0]), np.array([0.0])])
def test_codes_that_are_none(codes):
    with pytest.raises(ParameterError, match="row 0: the source must be one of teachers, student"):
        Labels(np.array([1]), np.array([0]), codes)


def test_freezing_leaves_the_callers_arrays_writable():
    labels = np.array([0])
    Labels(np.array([1]), labels, np.array(["teachers"]))
    labels[0] = 2
    assert labels[0] == 2


# ---------------------------------------------------------------- chunks


@given(rows=TABLES, cut=st.integers(0, 12))
def test_chunks_make_the_whole(rows, cut):
    whole = table_of(rows, {"k": "v"})
    cut = min(cut, len(rows))
    parts = [
        Labels(whole.ids[s], whole.labels[s], whole.sources[s], whole.metadata)
        for s in (slice(0, cut), slice(cut, None))
    ]
    joined = concatenate(iter(parts))
    assert len(joined) == len(rows)
    for label_format in LabelFormat:
        assert encode_labels(joined, label_format) == encode_labels(whole, label_format)


def test_chunks_of_different_text_widths():
    short = Labels(np.array(["a"]), np.array([0]), np.array(["student"]))
    longer = Labels(np.array(["abc"]), np.array([-1]), np.array(["none"]))
    joined = concatenate([short, longer])
    assert joined.ids.tolist() == ["a", "abc"]
    assert joined.sources.tolist() == ["student", "none"]


def test_chunks_that_are_not_of_one_run():
    with pytest.raises(ParameterError, match="there are no label tables to concatenate"):
        concatenate([])
    with pytest.raises(ParameterError, match="different mechanism parameters"):
        concatenate([table_of(ROWS, {"a": "1"}), table_of(ROWS, {"a": "2"})])
    with pytest.raises(ParameterError, match="numbers and with text as ids"):
        concatenate([table_of(ROWS), table_of([("x", 1, "student")])])


# ---------------------------------------------------------------- written as they come


def pieces_of(table, cuts):
    ends = sorted({0, len(table), *(min(cut, len(table)) for cut in cuts)})
    for start, stop in itertools.pairwise(ends):
        part = slice(start, stop)
        yield Labels(table.ids[part], table.labels[part], table.source_codes[part])


@pytest.fixture
def small_groups(monkeypatch):
    monkeypatch.setattr(labels_module, "_ROW_GROUP", 4)
    monkeypatch.setattr(labels_module, "_TEXT_ROWS", 3)


@pytest.mark.usefixtures("small_groups")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(rows=TABLES, cuts=st.lists(st.integers(0, 12), max_size=6))
def test_how_rows_are_cut_leaves_no_trace(rows, cuts):
    whole = table_of(rows, {"k": "v"})
    for label_format in LabelFormat:
        file = io.BytesIO()
        with LabelWriter(file, label_format, whole.metadata, rows=len(rows)) as writer:
            for piece in pieces_of(whole, cuts):
                writer.write(piece)
        assert file.getvalue() == encode_labels(whole, label_format)


@pytest.mark.parametrize("names", [None, ("cat", "dog", "owl", "emu")])
def test_a_flipped_bit_in_a_page_of_labels_is_told(names):
    """Whatever is accepted is the same; only the footer has no checksum."""
    table = replace(table_of(ROWS * 40), label_names=names)
    whole = encode_labels(table, LabelFormat.PARQUET)
    expected = pq.read_table(pa.BufferReader(whole)).to_pylist()
    footer = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    told = 0
    for place in range(footer):
        damaged = bytearray(whole)
        damaged[place] ^= 1 << place % 8
        source = pa.BufferReader(bytes(damaged))
        try:
            found = pq.read_table(source, page_checksum_verification=True).to_pylist()
        except (OSError, pa.ArrowException):
            told += 1
        else:
            assert found == expected, place
    assert told > footer // 2


@pytest.mark.usefixtures("small_groups")
def test_no_more_than_a_row_group_is_held_back():
    file = io.BytesIO()
    table = Labels(np.arange(3), np.zeros(3, int), np.zeros(3, np.uint8))
    with LabelWriter(file, LabelFormat.PARQUET, {}) as writer:
        sizes = []
        for _ in range(5):
            writer.write(table)
            sizes.append(file.tell())
    grew = [later > size for size, later in itertools.pairwise(sizes)]
    assert grew == [True, True, True, False]  # the last three rows wait for a fourth
    found = pq.ParquetFile(pa.BufferReader(file.getvalue())).metadata
    assert [found.row_group(i).num_rows for i in range(found.num_row_groups)] == [4, 4, 4, 3]


def test_a_run_without_a_table_is_a_valid_file():
    for label_format in LabelFormat:
        file = io.BytesIO()
        LabelWriter(file, label_format, {"a": "1"}, rows=0).close()
        assert file.getvalue() == encode_labels(table_of([], {"a": "1"}), label_format)


@pytest.mark.parametrize("label_format", list(LabelFormat))
@pytest.mark.parametrize("end", ["error", "forgotten", "early"])
def test_an_abandoned_file_never_looks_whole(label_format, end):
    file = io.BytesIO()
    writer = LabelWriter(file, label_format, {}, rows=4)
    writer.write(table_of(ROWS))
    if end == "error":
        with pytest.raises(KeyError), writer:
            raise KeyError
    elif end == "early":
        with pytest.raises(ParameterError, match="was to hold 4 rows and got 3"):
            writer.close()
    del writer
    gc.collect(1)
    assert not file.closed
    data = file.getvalue()
    if label_format is LabelFormat.PARQUET:
        assert not data.endswith(b"PAR1") or len(data) == 4
    elif label_format is LabelFormat.NPY:
        with pytest.raises(ValueError, match=r"array|bytes|data"):
            np.load(io.BytesIO(data))


def test_a_full_disk_is_told_in_the_words_of_the_system():
    class Full(io.RawIOBase):
        def writable(self):
            return True

        def write(self, data):
            raise OSError(errno.ENOSPC, "full")

    for label_format in LabelFormat:
        with pytest.raises(OSError, match="full") as caught:
            write_labels(table_of(ROWS), Full(), label_format)
        assert caught.value.errno == errno.ENOSPC
    gc.collect(1)


@pytest.mark.parametrize("label_format", list(LabelFormat))
def test_labels_go_into_a_transaction_as_they_come(tmp_path, label_format):
    table = table_of(ROWS, {"a": "1"})
    path = tmp_path / "labels"
    with Outputs() as out:
        out.reserve(path)
        with out.open(path) as file, LabelWriter(file, label_format, {"a": "1"}, rows=6) as writer:
            for _ in range(2):
                writer.write(table)
        assert not path.exists()
    assert path.read_bytes() == encode_labels(concatenate([table] * 2), label_format)


@pytest.mark.parametrize("label_format", list(LabelFormat))
def test_a_disk_that_fills_under_labels(tmp_path, monkeypatch, label_format):
    def write(descriptor, data):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "labels"
    monkeypatch.setattr(os, "write", write)
    text = rf"cannot write .*labels: {os.strerror(errno.ENOSPC)}; nothing was released"
    out = Outputs()
    out.reserve(path)

    def write_all():
        with out, out.open(path) as file:
            write_labels(table_of(ROWS), file, label_format)

    with pytest.raises(OutputError, match=text):
        write_all()
    gc.collect(1)
    assert not list(tmp_path.iterdir())


def test_rows_that_a_file_does_not_take():
    text = table_of([("x", 1, "student")])
    with LabelWriter(io.BytesIO(), LabelFormat.CSV, {}) as writer:
        writer.write(table_of(ROWS))
        with pytest.raises(ParameterError, match="numbers and text as query ids"):
            writer.write(text)
    with pytest.raises(ParameterError, match="closed"):
        writer.write(table_of(ROWS))
    file = io.BytesIO()
    with pytest.raises(ParameterError, match="row 2: the file was to hold 2 rows, not more"):
        LabelWriter(file, LabelFormat.NPY, {}, rows=2).write(table_of(ROWS))
    with pytest.raises(ParameterError, match="give the number of `rows`"):
        LabelWriter(file, LabelFormat.NPY, {})
    for label_format in LabelFormat:
        with pytest.raises(ParameterError, match="metadata must map text to text"):
            LabelWriter(file, label_format, {"a": 1}, rows=0)


# ---------------------------------------------------------------- names

NAMED = ["World", 'Sports, "all"', "Business", "é;\n", "none of these"]
NAME_ROWS = [(7, 2, "teachers"), (8, None, "none"), (9, 1, "student"), (10, 3, "teachers")]


def named(rows=NAME_ROWS, names=NAMED):
    return replace(table_of(rows, {"sigma": "4"}), label_names=tuple(names))


def test_names_read_back():
    wanted = [(key, None if label is None else NAMED[label], who) for key, label, who in NAME_ROWS]
    found = pq.read_table(pa.BufferReader(encode_labels(named(), LabelFormat.PARQUET)))
    assert [tuple(row.values()) for row in found.to_pylist()] == wanted
    assert found == named().to_arrow()
    facts = json.loads(found.schema.metadata[b"pate"])
    assert facts == {"sigma": "4", "label_names": NAMED}
    text = encode_labels(named(), LabelFormat.CSV).decode()
    _, *rows = csv.reader(io.StringIO(text, newline=""))
    assert rows == [[str(key), name or "", who] for key, name, who in wanted]
    lines = encode_labels(named(), LabelFormat.JSONL)
    assert lines.isascii()
    assert [tuple(json.loads(line).values()) for line in lines.splitlines()] == wanted
    assert named().columns()["label"].tolist() == [name for _, name, _ in wanted]
    assert named().to_dict()["label_names"] == NAMED


def test_npy_keeps_the_numbers():
    plain = encode_labels(table_of(NAME_ROWS), LabelFormat.NPY)
    assert encode_labels(named(), LabelFormat.NPY) == plain


def test_every_row_group_and_part_has_all_names_in_order(monkeypatch):
    monkeypatch.setattr(labels_module, "_ROW_GROUP", 2)
    parts = [named(), named(NAME_ROWS[1:2]), named([])]
    files = [encode_labels(part, LabelFormat.PARQUET) for part in parts]
    schemas = {pq.read_schema(pa.BufferReader(data)).to_string() for data in files}
    assert len(schemas) == 1
    for data in files:
        file = pq.ParquetFile(pa.BufferReader(data))
        for group in range(file.num_row_groups):
            for chunk in file.read_row_group(group).column("label").chunks:
                assert chunk.dictionary.to_pylist() == NAMED
    assert pa.concat_tables([pq.read_table(pa.BufferReader(data)) for data in files]).num_rows == 5


def test_how_rows_are_cut_leaves_no_trace_of_names(monkeypatch):
    monkeypatch.setattr(labels_module, "_ROW_GROUP", 3)
    whole = encode_labels(named(), LabelFormat.PARQUET)
    sink = io.BytesIO()
    options = {"label_names": tuple(NAMED)}
    with LabelWriter(sink, LabelFormat.PARQUET, {"sigma": "4"}, **options) as writer:
        for row in NAME_ROWS:
            writer.write(named([row]))
    assert sink.getvalue() == whole


def test_names_that_do_not_fit():
    with pytest.raises(ParameterError, match="row 3: the label has no name"):
        named(names=NAMED[:3])
    with pytest.raises(ParameterError, match="of different names cannot be one table"):
        concatenate([named(), replace(named(), label_names=None)])
    assert concatenate([named(), named()]).label_names == tuple(NAMED)
    writer = LabelWriter(io.BytesIO(), LabelFormat.CSV, {})
    with pytest.raises(ParameterError, match="labels of other names cannot be in one file"):
        writer.write(named())


HOSTILE = ("=cmd|' /C calc'!A0", "+1", "-2", "@SUM(A1)", "\tx", "\rx", 'a "q",=1', "'=x", "cat", "")


@pytest.mark.parametrize("escaped", [False, True])
def test_ids_and_names_that_are_formulas(escaped):
    """An apostrophe before those that are, if asked for, and nothing else is other than before."""
    names = HOSTILE[:-1]
    table = Labels(
        np.array(HOSTILE),
        np.array([*range(len(names)), -1]),
        np.array([*[0] * len(names), 2], dtype=np.uint8),
        label_names=names,
    )
    file = io.BytesIO()
    with LabelWriter(
        file, LabelFormat.CSV, {}, label_names=names, escape_formulas=escaped
    ) as writer:
        writer.write(table)
    rows = list(csv.reader(io.StringIO(file.getvalue().decode(), newline="")))[1:]

    def shown(text):
        return f"'{text}" if escaped and text[:1] in tuple("=+-@\t\r") else text

    assert [row[0] for row in rows] == list(map(shown, HOSTILE))
    assert [row[1] for row in rows] == [*map(shown, names), ""]


def test_labels_saved_without_formulas(tmp_path):
    table = Labels(np.array(["=1+1", "cat"]), np.array([0, -1]), np.array([0, 2], dtype=np.uint8))
    table.save(tmp_path / "l.csv", escape_formulas=True)
    told = (tmp_path / "l.csv").read_bytes()
    assert told == b"query_id,label,source\n'=1+1,0,teachers\ncat,,none\n"
    with pytest.raises(UsageError, match="`escape_formulas` is for CSV"):
        table.save(tmp_path / "l.jsonl", escape_formulas=True)
    assert [path.name for path in tmp_path.iterdir()] == ["l.csv"]


def test_numbers_are_no_formulas():
    table = Labels(np.array([-1, 2]), np.array([0, 1]), np.array([0, 0], dtype=np.uint8))
    file = io.BytesIO()
    with LabelWriter(file, LabelFormat.CSV, {}, escape_formulas=True) as writer:
        writer.write(table)
    assert file.getvalue() == b"query_id,label,source\n-1,0,teachers\n2,1,teachers\n"


@pytest.mark.parametrize("kind", [LabelFormat.PARQUET, LabelFormat.NPY, LabelFormat.JSONL])
def test_other_formats_have_no_formulas(kind):
    with pytest.raises(UsageError, match="`escape_formulas` is for CSV"):
        LabelWriter(io.BytesIO(), kind, {}, rows=1, escape_formulas=True)
