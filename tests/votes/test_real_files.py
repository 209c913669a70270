"""Files as polars, pandas, DuckDB and spreadsheets write them: read, or refused with what to do."""

from __future__ import annotations

import decimal
import json
import zipfile

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advice import FRACTION
from pate_cli.votes import open_votes
from pate_cli.votes.sources import arrow_files, json_documents
from slices import some

QUERIES, TEACHERS, CLASSES = 12, 20, 3
TEXT = pa.string()
NAMES = ["cat", "dog", "eel"]
IDS = [f"q{row:02}" for row in range(QUERIES)]
_rng = np.random.default_rng(5)
LABELS = np.where(
    _rng.random((QUERIES, TEACHERS)) < 0.8,
    (np.arange(QUERIES) % CLASSES)[:, None],
    _rng.integers(0, CLASSES, (QUERIES, TEACHERS)),
)
COUNTS = np.stack([np.bincount(row, minlength=CLASSES) for row in LABELS])
WORDS = np.array(NAMES)[LABELS]
YES = LABELS == 0
YES_COUNTS = np.stack([TEACHERS - YES.sum(axis=1), YES.sum(axis=1)], axis=1)
BY_CLASS = {f"class_{place}": COUNTS[:, place] for place in range(CLASSES)}
HEADER = ["query_id", *BY_CLASS]


def decimals(values, places=0, extra="0"):
    kind = pa.decimal128(20, places)
    return pa.array(
        [decimal.Decimal(int(value)) + decimal.Decimal(extra) for value in values], kind
    )


def counts_as(convert):
    return pa.table({"query_id": IDS, **{name: convert(BY_CLASS[name]) for name in BY_CLASS}})


def ids_as(kind):
    return pa.table({"query_id": pa.array(IDS).cast(kind), **BY_CLASS})


def by_teacher(votes, convert=pa.array):
    columns = {f"teacher_{place}": convert(votes[:, place]) for place in range(TEACHERS)}
    return pa.table({"query_id": IDS, **columns})


def in_lists(name, rows, kind):
    return pa.table({"query_id": IDS, name: pa.array(rows, kind)})


def view_dictionary(values):
    known = list(dict.fromkeys(values))
    places = pa.array([known.index(value) for value in values], pa.int8())
    return pa.DictionaryArray.from_arrays(places, pa.array(known).cast(pa.string_view()))


def in_long_form(labels, ids=TEXT):
    return pa.table(
        {
            "query_id": pa.array(np.repeat(IDS, TEACHERS)).cast(ids),
            "teacher_id": pa.array([f"t{t}" for t in range(TEACHERS)] * QUERIES).cast(ids),
            "label": labels,
        }
    )


NAMED = {"label_names": NAMES}
ARROW = {
    "ids as string_view": (ids_as(pa.string_view()), {}),
    "ids as large_string": (ids_as(pa.large_string()), {}),
    "ids as dictionary": (ids_as(pa.dictionary(pa.int8(), pa.string())), {}),
    "ids as views in a dictionary": (
        pa.table({"query_id": view_dictionary(IDS), **BY_CLASS}),
        {},
    ),
    "ids as decimal": (pa.table({"query_id": decimals(range(QUERIES)), **BY_CLASS}), {}),
    "counts as decimal": (counts_as(decimals), {}),
    "counts as decimal with places": (counts_as(lambda votes: decimals(votes, 2)), {}),
    "counts as uint8": (counts_as(lambda votes: votes.astype(np.uint8)), {}),
    "counts as uint64": (counts_as(lambda votes: votes.astype(np.uint64)), {}),
    "counts as float16": (counts_as(lambda votes: votes.astype(np.float16)), {}),
    "counts as dictionary": (counts_as(lambda votes: pa.array(votes).dictionary_encode()), {}),
    "lists": (in_lists("counts", COUNTS.tolist(), pa.list_(pa.int64())), {}),
    "large lists": (in_lists("counts", COUNTS.tolist(), pa.large_list(pa.int8())), {}),
    "lists of one size": (in_lists("counts", COUNTS.tolist(), pa.list_(pa.int64(), CLASSES)), {}),
    "list views": (in_lists("counts", COUNTS.tolist(), pa.list_view(pa.int64())), {}),
    "large list views": (in_lists("counts", COUNTS.tolist(), pa.large_list_view(pa.int8())), {}),
    "lists of decimals": (
        in_lists(
            "counts",
            [[decimal.Decimal(int(count)) for count in row] for row in COUNTS],
            pa.list_(pa.decimal128(5, 0)),
        ),
        {},
    ),
    "lists of string_view": (in_lists("labels", WORDS.tolist(), pa.list_(pa.string_view())), NAMED),
    "list views of names": (in_lists("labels", WORDS.tolist(), pa.list_view(pa.string())), NAMED),
    "names as string_view": (
        by_teacher(WORDS, lambda votes: pa.array(votes).cast(pa.string_view())),
        NAMED,
    ),
    "names as views in a dictionary": (by_teacher(WORDS, view_dictionary), NAMED),
    "long form of string_view": (
        in_long_form(pa.array(WORDS.ravel()).cast(pa.string_view()), pa.string_view()),
        NAMED,
    ),
    "long form of decimals": (in_long_form(decimals(LABELS.ravel())), {"classes": CLASSES}),
    "truths": (by_teacher(YES), {}),
    "truths by name": (by_teacher(YES), {"label_names": ["false", "true"]}),
    "truths, normalised": (by_teacher(YES), {"label_names": ["False", "True"], "normalise": True}),
    "truths by alias": (
        by_teacher(YES),
        {"label_names": ["ham", "spam"], "aliases": {"true": "spam", "false": "ham"}},
    ),
    "lists of truths": (in_lists("labels", YES.tolist(), pa.list_(pa.bool_())), {}),
    "truths in long form": (in_long_form(pa.array(YES.ravel())), {}),
}


def as_file(table, path):
    with pa.ipc.new_file(str(path), table.schema) as writer:
        writer.write_table(table)


def as_stream(table, path):
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table, max_chunksize=5)


def as_parquet(table, path):
    try:
        pq.write_table(table, path)
    except pa.ArrowNotImplementedError:
        pytest.skip("this pyarrow cannot write it")


def check(source, drain, **options):
    found = drain(source, **options)
    expected = COUNTS if found.shape[1] == CLASSES else YES_COUNTS
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("write", some([as_file, as_stream, as_parquet, None], 3))
@pytest.mark.parametrize("case", ARROW)
def test_every_arrow_type(case, write, drain, tmp_path):
    table, options = ARROW[case]
    source = table
    if write is not None:
        source = tmp_path / "v"
        write(table, source)
    check(source, drain, **options)


def frame():
    return pl.DataFrame({"query_id": IDS, **BY_CLASS})


def as_series(kind, votes=WORDS):
    columns = {f"teacher_{t}": pl.Series(votes[:, t].tolist(), dtype=kind) for t in range(TEACHERS)}
    return pl.DataFrame({"query_id": IDS, **columns})


def arrays(kind):
    return pl.DataFrame({"query_id": IDS, "counts": pl.Series(COUNTS.tolist(), dtype=kind)})


def enums_in_lists():
    kind = pl.List(pl.Enum(NAMES))
    return pl.DataFrame({"query_id": IDS, "labels": pl.Series(WORDS.tolist(), dtype=kind)})


def whole_decimals():
    return frame().with_columns(pl.col(*BY_CLASS).cast(pl.Decimal(38, 0)))


def as_floats():
    return frame().with_columns(pl.col(*BY_CLASS).cast(pl.Float64))


POLARS = {
    "ipc": (lambda path: frame().write_ipc(path), {}),
    "ipc, lz4": (lambda path: frame().write_ipc(path, compression="lz4"), {}),
    "ipc, zstd": (lambda path: frame().write_ipc(path, compression="zstd"), {}),
    "ipc stream": (lambda path: frame().write_ipc_stream(path), {}),
    "parquet": (lambda path: frame().write_parquet(path), {}),
    "csv": (lambda path: frame().write_csv(path), {}),
    "csv for Excel": (lambda path: frame().write_csv(path, include_bom=True, separator=";"), {}),
    "csv for Europe": (
        lambda path: as_floats().write_csv(path, separator=";", decimal_comma=True),
        {},
    ),
    "csv with bars": (lambda path: frame().write_csv(path, separator="|"), {}),
    "ndjson": (lambda path: frame().write_ndjson(path), {}),
    "json": (lambda path: frame().write_json(path), {}),
    "enums, ipc": (lambda path: as_series(pl.Enum(NAMES)).write_ipc(path), NAMED),
    "enums, parquet": (lambda path: as_series(pl.Enum(NAMES)).write_parquet(path), NAMED),
    "categories, ipc": (lambda path: as_series(pl.Categorical).write_ipc(path), NAMED),
    "categories, parquet": (lambda path: as_series(pl.Categorical).write_parquet(path), NAMED),
    "lists of enums, ipc": (lambda path: enums_in_lists().write_ipc(path), NAMED),
    "lists of enums, parquet": (lambda path: enums_in_lists().write_parquet(path), NAMED),
    "arrays, ipc": (lambda path: arrays(pl.Array(pl.Int64, CLASSES)).write_ipc(path), {}),
    "arrays, parquet": (lambda path: arrays(pl.Array(pl.Int8, CLASSES)).write_parquet(path), {}),
    "decimals, ipc": (lambda path: whole_decimals().write_ipc(path), {}),
    "decimals, parquet": (lambda path: whole_decimals().write_parquet(path), {}),
    "truths, ipc": (lambda path: as_series(pl.Boolean, YES).write_ipc(path), {}),
    "truths, csv": (lambda path: as_series(pl.Boolean, YES).write_csv(path), {}),
}


@pytest.mark.parametrize("case", some(POLARS, 3))
def test_what_polars_writes(case, drain, tmp_path):
    write, options = POLARS[case]
    write(tmp_path / "v")
    check(tmp_path / "v", drain, **options)


@pytest.mark.parametrize("kind", ["Parquet", "Arrow"])
def test_integers_that_only_polars_has(kind, refusal, tmp_path):
    wide = frame().with_columns(pl.col("class_0").cast(pl.Int128))
    write = wide.write_parquet if kind == "Parquet" else wide.write_ipc
    write(tmp_path / "v")
    assert refusal(tmp_path / "v") == (
        f"v: the {kind} file has a column of a type that cannot be read, or is damaged; store "
        "whole numbers as integers of 64 bits or fewer"
    )


@pytest.mark.parametrize("kind", [pl.Enum(NAMES), pl.Categorical, pl.String])
def test_frames_of_polars(kind, drain):
    check(as_series(kind), drain, **NAMED)


def data():
    return pd.DataFrame({"query_id": IDS, **BY_CLASS})


def truths():
    return pd.DataFrame({"query_id": IDS, **{f"teacher_{t}": YES[:, t] for t in range(TEACHERS)}})


INDEX = "(index=False writes a data frame without it)"
PANDAS = {
    "csv": (lambda path: data().to_csv(path, index=False), {}),
    "csv.gz": (lambda path: data().to_csv(path, index=False, compression="gzip"), {}),
    "csv for Europe": (
        lambda path: (
            data()
            .astype(dict.fromkeys(BY_CLASS, float))
            .to_csv(path, index=False, sep=";", decimal=",")
        ),
        {},
    ),
    "csv of truths": (lambda path: truths().to_csv(path, index=False), {}),
    "csv in UTF-16": (
        lambda path: data().to_csv(path, index=False, sep="\t", encoding="utf-16"),
        {},
    ),
    "parquet": (lambda path: data().to_parquet(path), {}),
    "parquet of a slice": (lambda path: data()[data().index >= 0].to_parquet(path), {}),
    "parquet with ids as the index": (
        lambda path: data().set_index("query_id").to_parquet(path),
        {},
    ),
    "parquet of nullable types": (lambda path: data().convert_dtypes().to_parquet(path), {}),
    "parquet of Arrow types": (
        lambda path: data().convert_dtypes(dtype_backend="pyarrow").to_parquet(path),
        {},
    ),
    "parquet of nullable truths": (lambda path: truths().convert_dtypes().to_parquet(path), {}),
    "parquet of categories": (
        lambda path: data().astype({"query_id": "category"}).to_parquet(path),
        {},
    ),
    "feather": (lambda path: data().to_feather(path), {}),
    "feather, zstd": (lambda path: data().to_feather(path, compression="zstd"), {}),
    "json lines": (lambda path: data().to_json(path, orient="records", lines=True), {}),
    "json records": (lambda path: data().to_json(path, orient="records"), {}),
    "json records, indented": (lambda path: data().to_json(path, orient="records", indent=2), {}),
    "parquet with an index of ids without a name": (
        lambda path: pd.DataFrame(BY_CLASS, index=IDS).to_parquet(path),
        {"id_column": "__index_level_0__"},
    ),
}
PANDAS_REFUSALS = {
    "csv with an index": (
        lambda path: data().to_csv(path),
        f"column 'Unnamed: 0' does not look like a class; drop it {INDEX}, or rename it if it is a "
        "class",
    ),
    "parquet with an index of ids without a name": (
        lambda path: pd.DataFrame(BY_CLASS, index=IDS).to_parquet(path),
        "column '__index_level_0__' beside the votes could be an answer or a class; drop it "
        f"{INDEX}, give `id_column` '__index_level_0__' if it names the queries, or rename it if "
        "it is a class",
    ),
    "json by column": (
        lambda path: data().to_json(path),
        "row 0 has an object in column 'query_id'; votes are lists of numbers, in one object a row "
        "(pandas: orient='records')",
    ),
    "json as a table": (
        lambda path: data().to_json(path, orient="table"),
        "row 0 has an object in column 'schema'; votes are lists of numbers, in one object a row "
        "(pandas: orient='records')",
    ),
    "json of values": (
        lambda path: data().to_json(path, orient="values"),
        "row 0 is no JSON object; write an array of objects, or one object a line",
    ),
}


@pytest.mark.parametrize("case", PANDAS)
def test_what_pandas_writes(case, drain, tmp_path):
    write, options = PANDAS[case]
    write(tmp_path / "v")
    check(tmp_path / "v", drain, **options)


@pytest.mark.parametrize("case", PANDAS_REFUSALS)
def test_what_pandas_writes_and_is_unclear(case, refusal, tmp_path):
    write, message = PANDAS_REFUSALS[case]
    write(tmp_path / "v")
    assert refusal(tmp_path / "v") == f"v: {message}"


SUMS = (
    "select query_id, sum((label = 0)::int) class_0, sum((label = 1)::int) class_1, "
    "sum((label = 2)::int) class_2 from votes group by query_id order by query_id"
)
ENUM = "['cat', 'dog', 'eel'][label + 1]::enum('cat', 'dog', 'eel')"
WIDE = "select query_id, class_0, class_1, class_2 from counts"
IN_LONG_FORM = "select query_id, teacher_id, {} as label from votes"
DUCKDB = {
    "parquet": (WIDE, "format parquet", {}),
    "parquet of sums, which are HUGEINT": (SUMS, "format parquet", {}),
    "parquet of decimals": (
        "select query_id, class_0::decimal(18) a, class_1::decimal(18, 2) b, class_2 c from counts",
        "format parquet",
        {},
    ),
    "parquet of unsigned": (
        "select query_id, class_0::ubigint a, class_1::utinyint b, class_2::smallint c from counts",
        "format parquet",
        {},
    ),
    "parquet of lists": (
        "select query_id, list(label order by teacher_id) labels from votes group by query_id "
        "order by query_id",
        "format parquet",
        {"classes": CLASSES},
    ),
    "parquet of arrays": (
        "select query_id, [class_0, class_1, class_2]::bigint[3] counts from counts",
        "format parquet",
        {},
    ),
    "parquet of enums": (IN_LONG_FORM.format(ENUM), "format parquet", NAMED),
    "parquet of truths": (IN_LONG_FORM.format("label = 0"), "format parquet", {}),
    "csv": (WIDE, "format csv, header", {}),
    "csv of sums": (SUMS, "format csv, header", {}),
    "csv with bars": (WIDE, "format csv, header, delimiter '|'", {}),
    "csv of truths": (IN_LONG_FORM.format("label = 0"), "format csv, header", {}),
    "json": (WIDE, "format json", {}),
    "json array": (WIDE, "format json, array true", {}),
}


@pytest.mark.parametrize("case", some(DUCKDB, 3))
def test_what_duckdb_writes(case, drain, tmp_path):
    duckdb = pytest.importorskip("duckdb")
    query, form, options = DUCKDB[case]
    with duckdb.connect() as base:
        base.register("counts", pa.table({"query_id": IDS, **BY_CLASS}))
        base.register("votes", in_long_form(pa.array(LABELS.ravel())))
        base.execute(f"copy ({query}) to '{tmp_path / 'v'}' ({form})")
    check(tmp_path / "v", drain, **options)


def sheet(between=",", shown=str, end="\n", header=HEADER, quote=""):
    rows = [header, *([query, *map(shown, row)] for query, row in zip(IDS, COUNTS, strict=True))]
    lines = (between.join(f"{quote}{field}{quote}" for field in row) for row in rows)
    return "".join(line + end for line in lines)


def aligned():
    rows = [HEADER, *([query, *row] for query, row in zip(IDS, COUNTS, strict=True))]
    return "".join(" ".join(f"{field!s:>9}" for field in row) + "\n" for row in rows)


OBJECTS = [json.loads(line) for line in frame().write_ndjson().splitlines()]
TEXTS = {
    "of Excel, in Europe": "\ufeff" + sheet(";", end="\r\n"),
    "of Excel, which says sep=": "sep=;\r\n" + sheet(";", end="\r\n"),
    "of Excel, with both": "\ufeffsep=;\r\n" + sheet(";", end="\r\n"),
    "with sep= and a comma": "sep=,\n" + sheet(),
    "with SEP= and a bar": "SEP=|\n" + sheet("|"),
    "with sep= and a comma in a name": "sep=;\n"
    + sheet(";", header=["query_id", "a,b", "c,d", "e"]),
    "of European decimals": sheet(";", lambda votes: f"{votes},0"),
    "of European decimals between tabs": sheet("\t", lambda votes: f"{votes},00"),
    "of European decimals in quotes": sheet(",", lambda votes: f"{votes},0", quote='"'),
    "of decimals": sheet(";", lambda votes: f"{votes}.0"),
    "of three decimals": sheet(",", lambda votes: f"{votes}.000"),
    "of exponents": sheet(",", lambda votes: f"{float(votes):e}"),
    "in quotes": sheet(quote='"'),
    "in lines of the old Mac": sheet(end="\r"),
    "with bars": sheet("|"),
    "with blanks": sheet(" "),
    "with blanks after commas": sheet(", "),
    "behind comments": "# votes of 20 teachers\n#\n" + sheet(),
    "behind an empty line": "\n\r\n" + sheet(),
    "in one array": json.dumps(OBJECTS),
    "in one array of lines": "[\n" + ",\n".join(map(json.dumps, OBJECTS)) + "\n]\n",
    "in one array, indented": json.dumps(OBJECTS, indent=2),
    "in objects, indented": "\n".join(json.dumps(row, indent=2) for row in OBJECTS),
    "in JSON of decimals": "\n".join(
        json.dumps(
            {name: value if name == "query_id" else float(value) for name, value in row.items()}
        )
        for row in OBJECTS
    ),
}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
@pytest.mark.parametrize("case", TEXTS)
def test_texts(case, encoding, drain, tmp_path, monkeypatch):
    monkeypatch.setattr(json_documents, "_CHUNK", 7)
    text = TEXTS[case] if encoding == "utf-8" else TEXTS[case].removeprefix("\ufeff")
    (tmp_path / "v.txt").write_bytes(text.encode(encoding))
    check(tmp_path / "v.txt", drain)


MARKED = (
    "row {} is the first of its file where the mark in a number of column 'class_0' may stand "
    "before decimals or between thousands; write whole numbers without it"
)
NO_NUMBERS = "column 'class_0' is text; if they are votes, give `label_names`"
NO_NUMBER = (
    "row 0 is the first of its file where column 'class_0' holds no number; votes are integers, "
    "or texts with `label_names`"
)
UNCLEAR = {
    "thousands or decimals, by comma": (
        sheet(";", lambda votes: f"{votes + 1},000"),
        MARKED.format(0),
    ),
    "thousands or decimals, by dot": (
        sheet(";", lambda votes: f"{votes + 1}.234"),
        MARKED.format(0),
    ),
    "thousands or decimals, in one row": (
        "query_id;class_0;class_1\na;5;5\nb;1.234;2\n",
        MARKED.format(1),
    ),
    "thousands, by two dots": (sheet(";", lambda votes: f"1.234.{votes:03}"), NO_NUMBERS),
    "thousands, by blank": (sheet(";", lambda votes: f"1 {votes:03}"), NO_NUMBERS),
    "European decimals between commas": (
        sheet(",", lambda votes: f"{votes},0"),
        "row 0 has 7 fields, the first line has 4; repair the row, or put a semicolon between "
        "fields if numbers have commas",
    ),
    "European fractions": (
        sheet(";", lambda votes: f"{votes},5"),
        f"row 0 {FRACTION}",
    ),
    "both decimals": ("query_id;class_0;class_1\na;5,0;5\nb;1.5;2\n", NO_NUMBER),
    "another sep=": (
        "sep=;\n" + sheet(),
        "the first line says sep=;, but the names of the columns have a comma between them; drop "
        "the first line",
    ),
    "an odd sep=": (
        "sep=:\n" + sheet(":"),
        "the first line says sep=:; between fields may stand a comma, a semicolon, a tab, a bar or "
        "a blank",
    ),
    "names in a comment": (
        "# " + sheet(),
        "line 1 begins with # and may name the columns, and so may the line behind it; take off "
        "the #, or drop the line",
    ),
    "a comment at the end": (
        sheet() + "# the end\n",
        "row 12 has 1 fields, the first line has 4; repair the row",
    ),
    "columns that are aligned": (
        aligned(),
        "several blanks stand between fields; write it as CSV, with a comma between them",
    ),
    "bars with blanks": (
        sheet(" | "),
        "blanks stand beside the bars between fields; write it as CSV, with a comma between them",
    ),
    "a table that is drawn": (
        "".join(f"| {line} |\n" for line in sheet(" | ").splitlines()),
        "is a table drawn with bars; write it as CSV, with a comma between fields",
    ),
    "arrays in an array": (
        json.dumps(COUNTS.tolist()),
        "row 0 is no JSON object; write an array of objects, or one object a line",
    ),
    "objects in an object": (
        json.dumps({"data": OBJECTS}),
        "row 0 has an object in column 'data'; votes are lists of numbers, in one object a row "
        "(pandas: orient='records')",
    ),
}


@pytest.mark.parametrize("case", UNCLEAR)
def test_texts_that_are_unclear(case, refusal, tmp_path):
    text, message = UNCLEAR[case]
    (tmp_path / "v.txt").write_text(text)
    assert refusal(tmp_path / "v.txt") == f"v.txt: {message}"


@pytest.mark.parametrize("said", ["1.234", "1,234", "1,0", "true", "7"])
def test_among_words_a_number_is_no_name_and_no_error(said, drain, tmp_path):
    """One teacher may write it or not: a refusal would tell."""
    rows = [f"{query};cat;dog;{said}\n" for query in IDS]
    (tmp_path / "v.csv").write_text("query_id;teacher_0;teacher_1;teacher_2\n" + "".join(rows))
    for layout in ("v.csv", "long.csv"):
        if layout == "long.csv":
            votes = [
                f"{query};{t};{w}\n" for query in IDS for t, w in enumerate(["cat", "dog", said])
            ]
            (tmp_path / layout).write_text("query_id;teacher_id;label\n" + "".join(votes))
        assert drain(tmp_path / layout, **NAMED).tolist() == [[1, 1, 0]] * QUERIES


@pytest.mark.parametrize("inside", ["xl/workbook.xml", "content.xml", None])
def test_workbooks(inside, refusal, tmp_path):
    path = tmp_path / "v.xlsx"
    if inside is None:
        path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(1000))
    else:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr(inside, "<workbook/>")
    said = "v.xlsx: is the workbook of a spreadsheet; save the sheet as CSV UTF-8"
    assert refusal(path) == said


WRONG_TYPES = {
    "bytes for ids": (
        ids_as(pa.binary()),
        {},
        "column 'query_id' is binary; use integers or strings",
    ),
    "floats for ids": (
        pa.table({"query_id": np.arange(QUERIES, dtype=float), **BY_CLASS}),
        {},
        "column 'query_id' is float; use integers or strings",
    ),
    "a large decimal for an id": (
        pa.table({"query_id": decimals([*range(QUERIES - 1), 2**63]), **BY_CLASS}),
        {},
        "row 11 has an id above 2^63 - 1",
    ),
    "halves": (
        counts_as(lambda votes: decimals(votes, 2, "0.5")),
        {},
        f"row 0 {FRACTION}",
    ),
    "truths beside counts": (
        counts_as(pa.array).append_column("seen", [YES[:, 0]]),
        {},
        "column 'seen' beside the votes could be an answer or a class; drop it, or rename it if it "
        "is a class",
    ),
    "truths for counts": (
        by_teacher(YES),
        {"layout": "counts"},
        "column 'teacher_0' says true or false; under layout counts votes are integers",
    ),
}


@pytest.mark.parametrize("case", WRONG_TYPES)
def test_types_that_are_no_votes(case, refusal, tmp_path):
    table, options, message = WRONG_TYPES[case]
    as_file(table, tmp_path / "v")
    assert refusal(tmp_path / "v", **options) == f"v: {message}"


def test_truths_have_two_classes_whatever_was_said():
    with open_votes(by_teacher(np.zeros_like(YES))) as votes:
        assert (votes.classes, votes.classes_from_data) == (2, False)


@pytest.mark.parametrize("kind", ["texts", "lists"])
def test_what_views_refer_to_is_bounded(kind, refusal, tmp_path, monkeypatch):
    """A few bytes may stand for very many: the same text, or the same list, again and again."""
    monkeypatch.setattr(arrow_files, "MOST_UNPACKED", 1 << 20)
    places = pa.array([0] * QUERIES, pa.int32())
    if kind == "texts":
        known = pa.array(["x" * (1 << 18)]).cast(pa.string_view())
        ids = pa.DictionaryArray.from_arrays(places, known)
        table = pa.table({"query_id": ids, **BY_CLASS})
    else:
        entries = pa.array(np.zeros(1 << 14, dtype=np.int64))
        sizes = pa.array([1 << 14] * QUERIES, pa.int32())
        table = pa.table(
            {"query_id": IDS, "counts": pa.ListViewArray.from_arrays(places, sizes, entries)}
        )
    as_file(table, tmp_path / "v")
    assert refusal(tmp_path / "v").startswith("v: has more than 1024 MB in a few rows")
