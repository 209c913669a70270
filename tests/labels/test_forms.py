"""Files of labels: their bytes, what other readers find in them, and files that are given up."""

import csv
import errno
import hashlib
import io
import itertools
import json
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather

from pate_cli.core.arrays import SOURCES, LabelSet
from pate_cli.core.errors import ParameterError, UsageError, VoteError
from pate_cli.core.words import LabelFormat
from pate_cli.disclosure.report import report_schema
from pate_cli.labels.forms import FORMATS, formats_with, refuse_names
from pate_cli.labels.labels import Labels, write_labels
from refusals import refusal
from slices import tries

KINDS = list(LabelFormat)
HOSTILE = ("=cmd|' /C c'!A0", "+1", "-2", "@SUM(A1)", "\tx", "\rx", 'a "q",=1', "é;\n", "cat", "")


def labels_of(said, ids=None, names=None, label_set=None):
    """Labels by the teachers, every third by the student; -1 is none."""
    said = np.array(said, dtype=np.int64).reshape(-1)
    each = 1 if label_set is None else label_set.count
    ids = np.array(ids) if ids is not None and len(ids) else np.arange(said.size // each) * 7 - 7
    codes = np.where(said < 0, 2, np.arange(said.size) % 3 == 2).astype(np.uint8)
    about = {"sigma": "4", "a": "é"}
    return Labels(np.repeat(ids, each), said, codes, about, names, label_set)


NUMBERS = labels_of([3, -1, 0, 7, 2**31 - 1, -1] * 9)
TEXTS = labels_of([*range(10), -1, 3], [*HOSTILE, "10", "ü"], HOSTILE)
SAID = [[1, -1, 0], [0, 0, 0], [1, 1, 1], [-1, -1, -1], [-1, 1, 1]]
NAMED = labels_of(SAID, ["q,1", 'q"2', "3", "ü", ""], None, LabelSet(3, ("=mild", 'a "b"', "süß")))
PLAIN = labels_of(SAID, label_set=LabelSet(3))


def encoded(labels, kind):
    file = io.BytesIO()
    write_labels([labels], file, LabelFormat(kind), rows=len(labels))
    return file.getvalue()


def decoded(data, kind):
    """The rows of a file as dictionaries, read without any code of ours; of NPY as numbers."""
    if kind == "npy":
        return np.load(io.BytesIO(data)).tolist()
    if kind == "csv":
        text = io.StringIO(data.decode(), newline="")
        return list(csv.DictReader(text))
    if kind == "jsonl":
        return [json.loads(line) for line in data.decode("ascii").splitlines()]
    read = pq.read_table if kind == "parquet" else feather.read_table
    return read(pa.BufferReader(data)).to_pylist()


def as_csv(row):
    """A row as CSV has it: texts, and nothing where nothing is said."""
    words = {None: "", True: "true", False: "false"}
    return {
        name: words[value] if value is None or isinstance(value, bool) else str(value)
        for name, value in row.items()
    }


# Made by an earlier version of pate, which wrote every format in another way.
HASHED = ("parquet", "npy", "csv", "jsonl")
BYTES = {
    "numbers": ("9446b90c51729b08", "c5330c51f9314f04", "3696ba5ea225c684", "b0cea098a90a10af"),
    "texts": ("7747e5b2402ce990", "ac1835af5cd438e5", "339b66a817007950", "4673ea00729f21b1"),
    "named": ("3d6172ef1f42bc25", "5cc28d21be6519b7", "8f421c31dc21a710", "bbd0c9846c7ce288"),
    "plain": ("a973b828d67b0a9b", "5cc28d21be6519b7", "2c3fb07db1e7b8f6", "e1f46fdc0683c7be"),
}
CASES = {"numbers": NUMBERS, "texts": TEXTS, "named": NAMED, "plain": PLAIN}


@pytest.mark.parametrize("kind", HASHED)
@pytest.mark.parametrize("name", CASES)
def test_files_are_those_of_earlier_versions_to_the_byte(name, kind):
    """Published hashes of labels can be made again by whoever has the seed."""
    if kind == "parquet" and pa.__version__ != "26.0.1":
        pytest.skip("Parquet names the library that wrote it")
    data = encoded(CASES[name], kind)
    assert hashlib.sha256(data).hexdigest()[:16] == BYTES[name][HASHED.index(kind)]


TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
LABEL = st.one_of(st.just(-1), st.integers(0, 2**31 - 1))
SINGLE = st.one_of(
    st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), LABEL), max_size=12),
    st.lists(st.tuples(TEXT, LABEL), min_size=1, max_size=12),
).map(lambda rows: labels_of([label for _, label in rows], [key for key, _ in rows]))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=tries(60))
@given(labels=SINGLE)
def test_other_readers_find_ids_labels_and_sources(kind, labels):
    found = decoded(encoded(labels, kind), kind)
    said = [None if label < 0 else label for label in labels.labels.tolist()]
    sources = [SOURCES[code] for code in labels.source_codes]
    rows = [
        dict(zip(("query_id", "label", "source"), row, strict=True))
        for row in zip(labels.ids.tolist(), said, sources, strict=True)
    ]
    rows = labels.labels.tolist() if kind == "npy" else rows
    assert found == (list(map(as_csv, rows)) if kind == "csv" else rows)


@pytest.mark.parametrize("column", ["name", "a.b", "%s", 'a "b",c', "=1", "é\n", "", "sources"])
@pytest.mark.parametrize("labels", [NUMBERS, TEXTS, NAMED], ids=["numbers", "texts", "named"])
def test_the_column_of_ids_has_its_own_name_in_every_format(labels, column):
    renamed = replace(labels, sources=labels.source_codes, id_column=column)
    for kind in KINDS:
        own, usual = encoded(renamed, kind), encoded(labels, kind)
        if kind == LabelFormat.NPY:
            assert own == usual
            continue
        for row, plain in zip(decoded(own, kind), decoded(usual, kind), strict=True):
            assert [*row.items()] == [(column, plain.pop("query_id")), *plain.items()]
        read = FORMATS[kind].read
        other = read(io.BytesIO(own)).select(read(io.BytesIO(usual)).column_names[1:])
        assert other.equals(read(io.BytesIO(usual)).select(other.column_names))
    assert next(iter(renamed.columns())) == column


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("labels", [NAMED, PLAIN], ids=["named", "plain"])
def test_other_readers_find_several_labels_a_query(labels, kind):
    titles = labels.label_set.names or range(labels.label_set.count)
    queries = zip(labels.ids[::3].tolist(), SAID, strict=True)
    lists, pairs, codes = [], [], iter(labels.source_codes)
    for key, said in queries:
        by_title = dict(zip(titles, said, strict=True))
        found = {"labels": 1, "unanswered": -1}
        for name, what in found.items():
            found[name] = [title for title in titles if by_title[title] == what]
        lists.append({"query_id": key, **found})
        for title in titles:
            yes = [False, True, None][by_title[title]]
            source = SOURCES[next(codes)]
            pairs.append({"query_id": key, "label": title, "yes": yes, "source": source})
    found = decoded(encoded(labels, kind), kind)
    rows = list(map(as_csv, pairs)) if kind == "csv" else lists
    assert found == (SAID if kind == "npy" else rows)
    assert labels.to_arrow().to_pylist() == lists


@pytest.mark.parametrize("read", [pq.read_table, feather.read_table])
def test_tables_hold_names_and_parameters(read):
    kind = "parquet" if read is pq.read_table else "arrow"
    found = read(pa.BufferReader(encoded(TEXTS, kind)))
    assert found.schema.equals(TEXTS.to_arrow().schema, check_metadata=True)
    assert found.equals(TEXTS.to_arrow())
    about = {"sigma": "4", "a": "é", "label_names": list(HOSTILE)}
    assert json.loads(found.schema.metadata[b"pate"]) == about
    for chunk in found.column("label").chunks:
        assert chunk.dictionary.to_pylist() == list(HOSTILE)


@settings(max_examples=tries(40))
@given(data=st.data())
def test_how_labels_are_cut_leaves_no_trace(data):
    count = data.draw(st.sampled_from([None, 1, 3]))
    said = data.draw(st.lists(st.integers(-1, 1), max_size=30))
    said = said[: len(said) // (count or 1) * (count or 1)]
    names = data.draw(st.one_of(st.none(), st.just(("no", "yes"))))
    whole = labels_of(said, None, *((names, None) if count is None else (None, LabelSet(count))))
    ends = st.integers(0, len(said) // (count or 1)).map(lambda end: end * (count or 1))
    cuts = [0, *sorted(data.draw(st.lists(ends, max_size=4))), len(said)]
    size = data.draw(st.sampled_from([1, 4, 7]))
    with pytest.MonkeyPatch.context() as patch:
        for kind in KINDS:
            patch.setitem(FORMATS, kind, FORMATS[kind]._replace(part_rows=size))
        for kind in KINDS:
            file = io.BytesIO()
            parts = (whole[start:stop] for start, stop in itertools.pairwise(cuts))
            write_labels(parts, file, kind, rows=len(whole))
            assert file.getvalue() == encoded(whole, kind)


@pytest.mark.parametrize("kind", KINDS)
def test_no_more_than_a_part_is_held_back(kind, monkeypatch):
    """Labels of any number of queries are written in bounded memory, while others are drawn."""
    monkeypatch.setitem(FORMATS, kind, FORMATS[kind]._replace(part_rows=4))
    file, sizes = io.BytesIO(), []

    def drawn():
        for _ in range(5):
            yield NUMBERS[:3]
            sizes.append(file.tell())

    write_labels(drawn(), file, kind, rows=15)
    grew = [later > size for size, later in itertools.pairwise(sizes)]
    assert grew == [True, True, True, False]  # the last three rows wait for a fourth
    if kind == "parquet":
        found = pq.ParquetFile(pa.BufferReader(file.getvalue())).metadata
        assert [found.row_group(i).num_rows for i in range(found.num_row_groups)] == [4, 4, 4, 3]


class Full(io.RawIOBase):
    def __init__(self, room):
        self.taken, self.room = b"", room

    def writable(self):
        return True

    def write(self, data):
        if len(self.taken) + len(data) > self.room:
            raise OSError(errno.ENOSPC, "full")
        self.taken += bytes(data)
        return len(data)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("fault", ["the draw fails", "too few rows", "too many rows", "full disk"])
def test_what_ends_the_writing_comes_as_itself(kind, fault, monkeypatch):
    monkeypatch.setitem(FORMATS, kind, FORMATS[kind]._replace(part_rows=4))
    file = Full(140 if fault == "full disk" else 1 << 20)

    def drawn():
        yield NUMBERS[:6]
        if fault == "the draw fails":
            raise VoteError("row 6 is no vote")
        yield NUMBERS[:6]

    rows = {"too few rows": 13, "too many rows": 11}.get(fault, 12)
    errors = {
        "the draw fails": (VoteError, "row 6 is no vote"),
        "full disk": (OSError, f"[Errno {errno.ENOSPC}] full"),
    }
    count = f"the labels have 12 rows, not {rows}; correct `rows`"
    error, text = errors.get(fault, (ParameterError, count))
    assert refusal(error, write_labels, drawn(), file, kind, rows=rows) == text
    assert not file.closed


def test_names_that_nobody_listed_need_a_format_with_texts():
    for kind in formats_with("texts"):
        refuse_names(kind)
    text = refusal(UsageError, refuse_names, LabelFormat.NPY)
    assert text.startswith("npy cannot store the names of classes that an open vocabulary releases")
    assert text.endswith(f"give `label_format` {'|'.join(formats_with('texts'))}")


def test_the_schema_of_reports_knows_every_format():
    assert json.dumps([*map(str, LabelFormat)]) in json.dumps(report_schema())
