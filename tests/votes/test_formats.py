"""Every format gives the votes that Parquet gives, and is refused where there is doubt."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import pickle
import stat
import tempfile
import zipfile

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from advice import FRACTION
from ended import ended_owner
from pate_cli.core.errors import UsageError, VoteError
from pate_cli.files.owner import owned_name
from pate_cli.votes import open_votes
from pate_cli.votes.sources import delimited, json_documents, json_lines
from refusals import refusal as refused
from slices import some, tries

PACKERS = {
    "": lambda data: data,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": lambda data: pa.compress(data, "zstd", asbytes=True),
}


def as_bytes(write):
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def written(table, suffix):
    if suffix in (".csv", ".tsv", ".semicolon"):
        delimiter = {".csv": ",", ".tsv": "\t", ".semicolon": ";"}[suffix]
        options = pa.csv.WriteOptions(delimiter=delimiter)
        return as_bytes(lambda file: pa.csv.write_csv(table, file, options))
    if suffix == ".jsonl":
        return "".join(json.dumps(row) + "\n" for row in table.to_pylist()).encode()
    if suffix == ".parquet":
        return as_bytes(lambda file: pq.write_table(table, file))
    if suffix == ".feather":
        sink = pa.BufferOutputStream()
        pa.feather.write_feather(table, sink, compression="zstd")
        return sink.getvalue().to_pybytes()
    new = pa.ipc.new_file if suffix == ".arrow" else pa.ipc.new_stream
    sink = pa.BufferOutputStream()
    with new(sink, table.schema) as writer:
        writer.write_table(table, max_chunksize=7)
    return sink.getvalue().to_pybytes()


@pytest.fixture
def tables(histograms):
    """The same votes in every shape that a table has."""
    ids = [f"q{row}" for row in range(len(histograms))]
    voters = [np.repeat(np.arange(4), row) for row in histograms]
    wide = {f"class_{c}": histograms[:, c] for c in range(4)}
    long = [(q, t, c) for q, row in enumerate(voters) for t, c in enumerate(row.tolist())]
    columns = dict(zip(("query_id", "teacher_id", "label"), zip(*long, strict=True), strict=True))
    return {
        "wide": pa.table(wide),
        "ids": pa.table({"query_id": ids, **wide}),
        "teachers": pa.table({f"teacher_{t}": [row[t] for row in voters] for t in range(25)}),
        "long": pa.table(columns),
        "lists": pa.table({"query_id": ids, "counts": histograms.tolist()}),
        "labels": pa.table({"labels": [row.tolist() for row in voters]}),
        "categories": pa.table({"query_id": pa.array(ids).dictionary_encode(), **wide}),
    }


SHAPES = ["wide", "ids", "teachers", "long", "lists", "labels", "categories"]
SUFFIXES = [".csv", ".tsv", ".semicolon", ".jsonl", ".arrow", ".feather", ".stream"]


@pytest.mark.parametrize("suffix", some(SUFFIXES, 3))
@pytest.mark.parametrize("shape", SHAPES)
def test_every_format_gives_what_parquet_gives(shape, suffix, tables, read, tmp_path, monkeypatch):
    if suffix in (".csv", ".tsv", ".semicolon") and shape in ("lists", "labels", "categories"):
        return
    # Several blocks, and more than one row group.
    monkeypatch.setattr(delimited, "_BLOCK", 1 << 9)
    monkeypatch.setattr(json_lines, "_BLOCK", 1 << 9)
    plain, path = tmp_path / "v.parquet", tmp_path / f"v{suffix}"
    pq.write_table(tables[shape], plain)
    path.write_bytes(written(tables[shape], suffix))
    told, ids, counts = read(plain, classes=4, teachers=25)
    found, its_ids, its_counts = read(path, classes=4, teachers=25)
    assert its_ids == ids
    np.testing.assert_array_equal(its_counts, counts)
    assert found.describe() == told.describe().replace(".parquet", suffix)


@pytest.mark.parametrize("packing", [".gz", ".bz2", ".zst"])
@pytest.mark.parametrize(
    "suffix", some([".csv", ".jsonl", ".feather", ".parquet", ".npy", ".npz"], 3)
)
def test_what_is_packed_is_unpacked(packing, suffix, tables, histograms, drain, tmp_path):
    if suffix in (".npy", ".npz"):
        content = as_bytes(lambda file: (np.save, np.savez)[suffix == ".npz"](file, histograms))
    else:
        content = written(tables["wide"], suffix)
    path = tmp_path / f"v{suffix}{packing}"
    packed = PACKERS[packing](content)
    path.write_bytes(packed)
    np.testing.assert_array_equal(drain(path), histograms)
    np.testing.assert_array_equal(drain("-", stdin=io.BytesIO(packed)), histograms)
    np.testing.assert_array_equal(drain(path.as_uri()), histograms)


@pytest.mark.parametrize("suffix", [".csv.gz", ".jsonl", ".arrow"])
def test_copies_are_private_and_removed(suffix, tables, tmp_path, monkeypatch):
    (tmp_path / "spool").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "spool"))
    content = written(tables["wide"], "." + suffix.split(".")[1])
    path = tmp_path / f"v{suffix}"
    path.write_bytes(gzip.compress(content) if suffix.endswith(".gz") else content)
    with open_votes(path) as votes:
        (folder,) = (tmp_path / "spool").iterdir()
        assert folder.name.startswith("pate-votes-")
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
        (copy,) = folder.iterdir()
        assert stat.S_IMODE(copy.stat().st_mode) == 0o600
        assert votes.portable
        assert sum(len(batch.counts) for batch in votes.batches()) == 40
    assert not list((tmp_path / "spool").iterdir())


def test_copies_of_killed_runs_are_swept(tmp_path, monkeypatch):
    spool = tmp_path / "spool"
    spool.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(spool))
    stay = [f"pate-votes-{owned_name()}", "pate-votes-of-mine", f"x-{ended_owner()}"]
    (spool / "target").mkdir()
    for name in (*stay, f"pate-votes-{ended_owner()}"):
        (spool / name).mkdir()
        (spool / name / "1").touch()
    stay += [f"pate-votes-{ended_owner()}", "target"]
    (spool / stay[-2]).symlink_to("target")
    path = tmp_path / "v.csv"
    path.write_text("class_0,class_1\n1,2\n")
    with open_votes(path):
        pass
    assert sorted(each.name for each in spool.iterdir()) == sorted(stay)


@given(
    cells=st.lists(
        st.tuples(
            st.one_of(
                st.integers(-(2**63), 2**63 - 1).map(str),
                st.from_regex(r"[a-z0]{1,3}", fullmatch=True),
            ),
            st.integers(0, 9).map(str)
            | st.floats(0, 9).map(repr)
            | st.sampled_from(["", "x", "07"]),
        ),
        min_size=1,
        max_size=12,
    ),
    block=st.sampled_from([1 << 6, 1 << 12]),
)
@settings(
    max_examples=tries(60),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
def test_types_are_those_of_all_values(cells, block, tmp_path, monkeypatch):
    """Where the odd value stands makes no difference, nor where a block ends."""
    monkeypatch.setattr(delimited, "_BLOCK", block)
    path = tmp_path / "t.csv"
    path.write_text("query_id,v\n" + "".join(f"{key},{value}\n" for key, value in cells))
    ((schema, batches),) = delimited.tables(
        [delimited.SourceFile("t", str(path))], {"query_id"}, lambda _size: None
    )
    found = pa.Table.from_batches(list(batches), schema=schema).to_pydict()

    def whole(text):
        return text == str(int(text)) if text.lstrip("-").isdigit() else False

    keys, values = [key for key, _ in cells], [value for _, value in cells]
    assert found["query_id"] == ([int(k) for k in keys] if all(map(whole, keys)) else keys)
    there = [value for value in values if value]
    if all(map(whole, there)):
        wanted = [int(value) if value else None for value in values]
    elif "x" not in there:
        wanted = [float(value) if value else None for value in values]
    else:
        wanted = [value or None for value in values]
    assert found["v"] == wanted


WIDE = "query_id,class_0,class_1\n"


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        (WIDE + "7,1,2\n-3,2,1\n", [7, -3]),
        (WIDE + "007,1,2\n8,2,1\n", ["007", "8"]),
        (WIDE + "7,1,2\n9223372036854775808,2,1\n", ["7", "9223372036854775808"]),
        (WIDE + '"a,b",1,2\n"c""d", 2 ,1\n', ["a,b", 'c"d']),
        ("\ufeff" + WIDE.replace("\n", "\r\n") + "a,1,2\r\n\r\nb,2,1", ["a", "b"]),
        ("0,1\n1,2\n2,1\n", [0, 1]),
        (
            '{"query_id":"2020-01-01","counts":[1,2]}\n\n{"query_id":"x","counts":[2,1]}',
            ["2020-01-01", "x"],
        ),
        ('\ufeff{"counts":[1,2],"query_id":7}\r\n{"query_id":8,"counts":[2.0,1]}\r\n', [7, 8]),
    ],
)
def test_ids_and_text_of_all_kinds(content, ids, read, tmp_path):
    path = tmp_path / "v"
    path.write_bytes(content.encode())
    _, found, counts = read(path, layout="counts")
    assert found == ids
    assert counts.tolist() == [[1, 2], [2, 1]]


CSV_REFUSALS = {
    "query_id\tclass_0,class_1\n": "the first line has a comma and a tab, so it is unclear what "
    "stands between fields; rename the columns",
    "3,1\n1,3\n": "the first line holds numbers; the first line must name the columns "
    "(0, 1, 2, ... in this order are names)",
    "img1,3,1\nimg2,1,3\n": "the first line holds numbers; the first line must name the columns "
    "(0, 1, 2, ... in this order are names)",
    "\n1,2\n": "the first line holds numbers; the first line must name the columns "
    "(0, 1, 2, ... in this order are names)",
    '"a,b\n': "the first line must name the columns",
    "cat,dog,cat\n": "the first line names columns 0 and 2 alike; it must name the columns, each "
    "by another name",
    WIDE: "has no rows",
    WIDE.strip(): "has no rows",
    WIDE + "a,1,2\nb,1\n": "row 1 has 2 fields, the first line has 3; repair the row",
    WIDE + "a,1,2\n\nb,1,2,3\n": "row 1 has 4 fields, the first line has 3; repair the row, "
    "or put a semicolon between fields if numbers have commas",
    WIDE + 'a,1,2\nb,1,"2\n': "row 1 has a quoted field that goes on in the next line; close the "
    "quote, or keep a row in one line",
    WIDE + "a,1,2\nb,1,\n": "row 1 has a null; fill it in, or give `teachers` N if the file holds "
    "labels and teachers may be missing",
    WIDE + "a,1,2\n,1,2\n": "row 1 has no query_id",
    WIDE + "a,1,2\nb,1,two\n": "row 1 is the first of its file where column 'class_1' holds no "
    "number; votes are integers, or texts with `label_names`",
    WIDE + "a,1,2\nb,1,+2\n": "row 1 is the first of its file where column 'class_1' holds no "
    "number; votes are integers, or texts with `label_names`",
    WIDE + "a,1,2\nb,1,2.5\n": f"row 1 {FRACTION}",
    WIDE + "a,1,2\nb,nan,2\n": "row 1 has NaN or infinity; repair the row. Where NaN "
    "stands for a missing label, give `teachers` N",
    ",class_0,class_1\n0,1,2\n": "column 'Unnamed: 0' does not look like a class; drop it "
    "(index=False writes a data frame without it), give `id_column` 'Unnamed: 0' if it names the "
    "queries, or rename it if it is a class",
    WIDE.replace("\n", ",\n") + "a,1,2,\n": "column 'Unnamed: 3' does not look like a class; "
    "drop it, or rename it if it is a class",
}


@pytest.mark.parametrize(("content", "message"), CSV_REFUSALS.items())
def test_csv_is_refused(content, message, tmp_path, refusal):
    path = tmp_path / "v.csv"
    path.write_text(content)
    assert refusal(path, layout="counts") == f"v.csv: {message}"


JSON_REFUSALS = {
    "[[1,2],[2,1]]": "row 0 is no JSON object; write an array of objects, or one object a line",
    '{"a":[1,2]}\n[1,2]\n': "row 1 is no JSON object; write one object a line",
    '{"a":[1,2]}\n{"a":[1,2}\n': "row 1 is no JSON object; write one object a line",
    '{"a":[1,2]}{"a":[1,2]}\n': "row 0 is no JSON object; write one object a line",
    '{\n"a":[1,2]\n} 5': "row 1 is no JSON object; write an array of objects, or one object a line",
    '{\n"a":[1,2]\n}}': "row 1 is no JSON object; write an array of objects, or one object a line",
    '{\n"a":[1,2]\n': "row 0 is no JSON object; write an array of objects, or one object a line",
    '[{"a":[1,2]},5]': "row 1 is no JSON object; write an array of objects, or one object a line",
    '[{"a":[1,2]}{"a":[1,2]}]': "row 1 is no JSON object; write an array of objects, or one object "
    "a line",
    '[{"a":[1,2]}}': "row 1 is no JSON object; write an array of objects, or one object a line",
    '[{"a":[1,2]}][{"a":[1,2]}]': "row 1 is no JSON object; write an array of objects, or one "
    "object a line",
    '[{"a":"\\"[': "row 0 is no JSON object; write an array of objects, or one object a line",
    "[]": "there are no columns of votes",
    '{"a":1,"a":2}\n': "row 0 names 'a' twice",
    '{"a":[1]}\n{"a":{"b":1}}\n': "row 1 has an object in column 'a'; votes are lists of numbers, "
    "in one object a row (pandas: orient='records')",
    '{"a":[1,"x"]}\n': "row 0 has a list in column 'a' that mixes numbers and others",
    '{"a":[1]}\n{"a":["x"]}\n': "row 1 is the first where column 'a' holds lists of texts, in "
    "earlier rows lists of numbers; a column holds one kind",
    '{"query_id":"a","v":[1,2]}\n\n{"query_id":7,"v":[1,2]}\n': "row 1 is the first where column "
    "'query_id' holds numbers, in earlier rows texts; a column holds one kind",
    '{"query_id":1e19,"v":[1,2]}\n': "column 'query_id' is float; use integers or strings",
    '{"v":[1,2]}\n{}\n': "row 1 has a null instead of a list",
    '{"v":[true,false]}\n': "column 'v' says true or false; under layout counts votes are integers",
    "{}\n": "there are no columns of votes",
}


@pytest.mark.parametrize("block", [1 << 3, 1 << 20])
@pytest.mark.parametrize(("content", "message"), JSON_REFUSALS.items())
def test_json_lines_are_refused(content, message, block, tmp_path, refusal, monkeypatch):
    monkeypatch.setattr(json_lines, "_BLOCK", block)
    monkeypatch.setattr(json_documents, "_CHUNK", block)
    path = tmp_path / "v.json"
    path.write_text(content)
    assert refusal(path, layout="counts") == f"v.json: {message}"


ROWS_OF_JSON = st.lists(
    st.dictionaries(
        st.text('ab\\"[]{},\n', max_size=5), st.text('x\\"[]{},', max_size=9), max_size=3
    ),
    max_size=4,
)


@given(ROWS_OF_JSON, st.sampled_from([None, 1]), st.booleans(), st.integers(1, 40))
def test_documents_are_cut_at_their_brackets_however_they_are_read(rows, indent, array, chunk):
    document = json.dumps(rows, indent=indent)
    if not array:
        document = "\n".join(json.dumps(row, indent=indent) for row in rows)
    cutter, data = json_documents._Cutter("v"), document.encode()
    found = [
        line for at in range(0, len(data), chunk) for line in cutter.cut(data[at : at + chunk])
    ]
    cutter.end()
    assert [json.loads(line) for line in found] == rows


def test_of_a_text_nothing_is_looked_at_again():
    """Or a long one would be, with every piece of it that is read."""
    cutter = json_documents._Cutter("v")
    for piece in (b'{"a":"xx', b"\\", b'"x\\', b"nx[", b"{"):
        assert not list(cutter.cut(piece))
        assert cutter._seen == len(cutter._held) - cutter._held.endswith(b"\\")
    assert list(cutter.cut(b'"}')) == [b'{"a":"xx\\"x\\nx[{"}\n']


def test_brackets_that_no_votes_have_are_refused_at_once():
    cutter, deep = json_documents._Cutter("v"), b"[" * json_lines.DEEPEST
    assert not list(cutter.cut(b'{"a":' + deep[1:]))
    with pytest.raises(VoteError, match="row 0 is no JSON object"):
        list(cutter.cut(b"["))


def zipped(**members):
    def write(file):
        with zipfile.ZipFile(file, "w") as archive:
            for name, content in members.items():
                archive.writestr(name.replace("__", "/").replace("_", "."), content)

    return as_bytes(write)


TRUST = "is a pickle, which can run code and is never opened; only if you trust it: python -c "
CLOSED = {
    "v.pkl": (
        pickle.dumps([1]),
        TRUST + "\"import numpy; array = numpy.load('v.pkl', allow_pickle=True); "
        "numpy.save('v.npy', array)\"",
    ),
    "v.pt": (
        zipped(archive__data_pkl=b"x"),
        TRUST + "\"import torch, numpy; array = torch.load('v.pt', weights_only=True).numpy(); "
        "numpy.save('v.npy', array)\"",
    ),
    "v.joblib": (
        b"ZF0x1",
        TRUST + "\"import joblib, numpy; array = joblib.load('v.joblib'); "
        "numpy.save('v.npy', array)\"",
    ),
    "v": (
        zipped(archive__data_pkl=b"x"),
        TRUST + "\"import torch, numpy; array = torch.load('v', weights_only=True).numpy(); "
        "numpy.save('votes.npy', array)\"",
    ),
    "a.npz": (
        as_bytes(lambda file: np.savez(file, x=[[1, 2]], y=[[1, 2]])),
        "holds 2 arrays (x, y); save the votes alone",
    ),
    "b.npz": (
        as_bytes(lambda file: np.savez(file, np.array([{}, {}]))),
        "the array has object dtype, which is stored as a pickle and never opened; save it as "
        "integers",
    ),
    "c.zip": (
        zipped(v_csv=b"a"),
        "is an archive and no NPZ file; unpack it and give the file in it",
    ),
    "d.zip": (zipped(), "is an archive and no NPZ file; unpack it and give the file in it"),
    "e.csv": (
        "a,b\n1,2\n".encode("utf-16") + b"\0",
        "is damaged UTF-16 text; save the file as UTF-8",
    ),
    "f.csv": (
        b"a,b\n1,2\n\xe9,2\n",
        "line 3 is not UTF-8 text; save the file as UTF-8",
    ),
    "g.feather": (
        b"FEA1....",
        "is Feather version 1; read it once and write it anew (pyarrow.feather.write_feather)",
    ),
    "h.arrow": (b"ARROW1\0\0....", "the Arrow file is truncated or damaged"),
    "i.csv.gz": (gzip.compress(b"a,b\n1,2\n")[:-4], "the gzip file is truncated or damaged"),
    "j.zst": (b"\x28\xb5\x2f\xfd....", "the zstd file is truncated or damaged"),
    "k.gz": (gzip.compress(b""), "the file is empty (0 bytes)"),
    "l": (
        bytes(9),
        "is none of NPY, NPZ, Parquet, Arrow, CSV and JSONL; convert it to one of them",
    ),
}


@pytest.mark.parametrize("name", CLOSED)
def test_what_stays_closed(name, tmp_path, refusal):
    content, message = CLOSED[name]
    (tmp_path / name).write_bytes(content)
    assert refusal(tmp_path / name) == f"{name}: {message}"


def test_the_ids_may_have_another_name(tables, read, refusal, tmp_path, npy, histograms):
    renamed = tables["ids"].rename_columns(["image", *tables["ids"].column_names[1:]])
    path = tmp_path / "v.csv"
    path.write_bytes(written(renamed, ".csv"))
    assert refusal(path) == (
        "v.csv: column 'image' beside the votes could be an answer or a class; drop it, give "
        "`id_column` 'image' if it names the queries, or rename it if it is a class"
    )
    found, ids, _ = read(path, id_column="image")
    assert ids == [f"q{row}" for row in range(40)]
    assert found.id_column == "image"
    long = tables["long"].rename_columns(["n", "teacher_id", "label"])
    found, ids, counts = read(long, id_column="n", queries=list(range(39, -1, -1)))
    np.testing.assert_array_equal(counts[::-1], histograms)
    twice = pa.concat_tables([renamed, renamed.slice(3, 1)])
    assert refusal(twice, id_column="image") == (
        "table: row 40 repeats the image of an earlier row"
    )
    with open_votes(long, id_column="n") as votes:
        assert "in order of n" in votes.describe()
    for source in (npy(histograms), histograms):
        assert "`id_column` names a column of a table" in refused(
            UsageError, read, source, id_column="image"
        )


# Folders.


def fill(folder, suffix, tables, packing=""):
    parts = [tables["ids"].slice(0, 15), tables["ids"].slice(15)]
    for place, table in zip(("year=1/m=02/a", "year=2/m=01/a"), parts, strict=True):
        path = folder / f"{place}{suffix}{packing}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(PACKERS[packing](written(table, suffix)))
    for ignored in ("_SUCCESS", "year=1/.a.crc", "year=1/notes.md", "year=2/old.tar.gz"):
        (folder / ignored).write_bytes(b"")


@pytest.mark.parametrize(
    ("suffix", "packing"),
    some(
        [(".parquet", ""), (".csv", ""), (".jsonl", ".gz"), (".feather", ""), (".tsv", ".zst")], 2
    ),
)
def test_partitioned_folders(suffix, packing, tables, drain, histograms, tmp_path):
    folder = tmp_path / "d"
    fill(folder, suffix, tables, packing)
    end = suffix + packing
    for source in (folder, f"{folder}/*/*/*{end}", f"{folder}/**/*{end}", folder.as_uri()):
        np.testing.assert_array_equal(drain(source), histograms)
    for pattern in (f"*/*/*{end}", f"**/*{end}", f"year=*/m=0[12]/a{end}"):
        np.testing.assert_array_equal(drain(f"{folder.as_uri()}/{pattern}"), histograms)
    np.testing.assert_array_equal(drain(f"{folder}/year=1/*/*{end}"), histograms[:15])
    with open_votes(folder) as votes:
        assert [name.removeprefix(f"{tmp_path}/") for name, _, _ in votes.parts] == [
            f"d/year=1/m=02/a{end}",
            f"d/year=2/m=01/a{end}",
        ]


def test_folders_are_refused(tables, refusal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "d"
    fill(folder, ".csv", tables)
    extra = folder / "year=2" / "x"

    def with_file(name, content):
        path = extra.with_name(name)
        path.write_bytes(content)
        text = refusal("d")
        path.unlink()
        return text

    assert with_file("x.jsonl", b"{}") == (
        "d/year=2/x.jsonl: is JSONL among parts of CSV; give a glob of one kind"
    )
    assert with_file("x.csv", b"") == "d/year=2/x.csv: the file is empty (0 bytes)"
    assert with_file("x.csv", b'{"a":1}') == (
        "d/year=2/x.csv: is JSONL and its name does not say so; name parts .parquet, .csv, .jsonl "
        "or .arrow, and .csv.gz and the like where they are packed"
    )
    assert with_file("x", b"a,b\n") == (
        "d/year=2/x: is text without a suffix; name parts .csv or .jsonl"
    )
    assert with_file("x.csv.gz", gzip.compress(written(tables["ids"], ".parquet"))) == (
        "d/year=2/x.csv.gz: is Parquet under a name of CSV"
    )
    assert with_file("x.npy.gz", b"\x1f\x8b") == (
        "d/year=2/x.npy.gz: an NPY file cannot be one of several parts"
    )
    assert with_file("x.csv", b"query_id,class_0\nz,1\n") == (
        "d/year=2/x.csv: has 1 vote columns, the first part has 4; parts must agree"
    )
    assert "holds the sub-folder 'more'" in (extra.with_name("more").mkdir() or refusal("d"))
    extra.with_name("more").rmdir()
    (folder / "image=3").mkdir()
    assert refusal("d", id_column="image") == (
        "d: 'image' is in the names of folders; write it into the files"
    )
    (folder / "image=3").rename(folder / "teacher_id=3")
    assert refusal("d") == "d: 'teacher_id' is in the names of folders; write it into the files"


def test_a_type_is_that_of_all_parts(tables, read, tmp_path):
    """A folder whose later part has names: ids are texts in all of it."""
    for number, key in enumerate(("7", "08")):
        (tmp_path / f"{number}.csv").write_text(f"{WIDE}{key},{number + 1},2\n")
    _, ids, counts = read(f"{tmp_path}/*.csv", teachers=4)
    assert ids == ["7", "08"]
    assert counts.tolist() == [[1, 2], [2, 2]]


def test_words_in_text_are_votes(tmp_path, read, refusal):
    """Also where a teacher never answered; a name that looks like a number is in doubt in CSV."""
    path = tmp_path / "v.csv"
    path.write_text("image,gpt,llama,mute\n7,cat,dog,\n8,dog,What?,\n")
    found, ids, counts = read(path, label_names=["cat", "dog"], id_column="image", layout="labels")
    assert ids == [7, 8]
    assert counts.tolist() == [[1, 1], [0, 1]]
    assert found.label_names == ("cat", "dog")
    assert refusal(path, label_names=["cat", "2"], id_column="image").startswith(
        "v.csv: in CSV '2' of `label_names` looks like the number of a class; use Parquet or JSONL"
    )
