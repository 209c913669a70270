"""The same votes are the same votes in every format, and in every way that one comes in."""

import gzip
import io
import json
import os
import threading

import numpy as np
import pyarrow as pa
import pytest

from opened import by_hand, refused
from opened import listed as read
from pate_cli.core.errors import UsageError, VoteError
from pate_cli.votes.formats import csv as delimited
from pate_cli.votes.formats import json_lines
from pate_cli.votes.opening import open_votes
from stored import table_in

ROWS, TEACHERS = 30, 12
NAMES = np.array(["cat", "dog", "eel"])
IDS = [f"q{row:02}" for row in range(ROWS)]
LABELS = np.random.default_rng(3).integers(0, 3, (ROWS, TEACHERS))
COUNTS = by_hand(LABELS, 3).tolist()
CLASSES = {f"class_{label}": [row[label] for row in COUNTS] for label in range(3)}
WORDS = {f"teacher_{t}": NAMES[LABELS[:, t]] for t in range(TEACHERS)}
LONG = {
    "query_id": np.repeat(IDS, TEACHERS),
    "teacher_id": list(range(TEACHERS)) * ROWS,
    "label": LABELS.ravel(),
}
TABLES = {
    "counts": (pa.table({"query_id": IDS, **CLASSES}), {}),
    "words": (pa.table({"query_id": IDS, **WORDS}), {"label_names": list(NAMES)}),
    "long": (pa.table(LONG), {"classes": 3}),
    "lists": (pa.table({"query_id": IDS, "labels": LABELS.tolist()}), {"classes": 3}),
}


TEXTS = ("csv", "tsv", "semicolons", "jsonl", "json")
FORMATS = ("parquet", "arrow", "stream", *TEXTS)
SHAPES = [(s, f) for s in TABLES for f in FORMATS if s != "lists" or f not in TEXTS[:3]]


@pytest.mark.parametrize(("shape", "suffix"), SHAPES)
def test_every_format_gives_the_same_votes(shape, suffix, tmp_path):
    table, options = TABLES[shape]
    (tmp_path / "v").write_bytes(table_in(table, suffix, rows=7))
    votes, ids, counts = read(tmp_path / "v", **options)
    assert (ids, counts) == (IDS, COUNTS)
    assert votes.teachers == TEACHERS


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_way_in_gives_the_same_votes(suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "BLOCK", 150)
    monkeypatch.setattr(json_lines, "PIECE", 200)
    table, options = TABLES["counts"]
    content = table_in(table, suffix, rows=7)
    ways = {"plain": content, "gz": gzip.compress(content)}
    ways["zst"] = pa.compress(content, "zstd", asbytes=True)
    fifo, parts = tmp_path / "fifo", tmp_path / "parts"
    for way, packed in ways.items():
        (tmp_path / way).write_bytes(packed)
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(ways["gz"],))
    writer.start()
    name = {"semicolons": "csv", "stream": "arrow", "json": "jsonl"}.get(suffix, suffix)
    parts.mkdir()
    for place, half in enumerate([table.slice(0, 11), table.slice(11)]):
        (parts / f"{place}.{name}").write_bytes(table_in(half, suffix, rows=7))
    sources = [*(tmp_path / way for way in ways), fifo, parts]
    for source in [*sources, (tmp_path / "plain").as_uri(), parts.as_uri()]:
        assert read(source, **options)[1:] == (IDS, COUNTS)
    writer.join()
    for packed in ways.values():
        assert read("-", stdin=io.BytesIO(packed), **options)[1:] == (IDS, COUNTS)


@pytest.mark.parametrize("suffix", FORMATS)
def test_any_rows_are_read_from_anywhere(suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "BLOCK", 150)
    (tmp_path / "v").write_bytes(table_in(TABLES["counts"][0], suffix, rows=7))
    with open_votes(tmp_path / "v", batch_rows=4) as votes:
        for start, limit in ((0, 30), (3, 9), (6, 1), (29, 5), (7, 14)):
            batches = list(votes.batches(start=start, limit=limit))
            found = [row for batch in batches for row in batch.counts.tolist()]
            assert found == COUNTS[start : start + limit]


WIDE = "query_id,class_0,class_1\n"
GOOD = [["a", "b"], [[1, 2], [2, 1]]]


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        (WIDE + "7,1,2\n-3,2,1\n", [7, -3]),
        (WIDE + "007,1,2\n8,2,1\n", ["007", "8"]),
        (WIDE + "0x10,1,2\n8,2,1\n", ["0x10", "8"]),
        (WIDE + "7,1,2\n9223372036854775808,2,1\n", ["7", "9223372036854775808"]),
        (WIDE + '"a,b",1,2\n"c""d", 2 ,1\n', ["a,b", 'c"d']),
        (WIDE + ' a ,"1", 2\n\tb,\t2 ,1\n', ["a", "b"]),
        ("\ufeff" + WIDE.replace("\n", "\r\n") + "a,1,2\r\n\r\nb,2,1", ["a", "b"]),
        (WIDE.replace(",", ", ") + "a, 1, 2\nb, 2, 1\n", ["a", "b"]),
        ("# votes\n\n" + WIDE + "a,1.0,2e0\nb,2.,1\n", ["a", "b"]),
        (WIDE.replace(",", ";") + "a;1.0;2.00\nb;2;1\n", ["a", "b"]),
        (WIDE.replace(",", "\t") + "a\t1\t2\nb\t2\t1\n", ["a", "b"]),
        ("query_id,0,1\na,1,2\nb,2,1\n", ["a", "b"]),
    ],
)
def test_csv_of_all_kinds(content, ids, tmp_path):
    (tmp_path / "v").write_bytes(content.encode())
    _, found, counts = read(tmp_path / "v", layout="counts")
    assert (found, counts) == (ids, GOOD[1])


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("img,3,1\nimg2,1,3\n", "the first line has numbers"),
        ('"a","b"\n"1",5,2\n"2",2,5\n', "row 0 has 3 fields, but the first line has 2; leave out"),
        ("a;b,c;d\n1;2,3\n", "row 0 has 2 fields, but the first line has 3; leave out row names"),
        ("sep=;\na;b\n1;2\n", "the first line is `sep=`"),
        (
            '"class_0" "class_1"\n"1" 3 4\n',
            "has bars or blanks between fields; write commas and no",
        ),
        ("version https://git-lfs.github.com/spec/v1\noid sha256:1\n", "is only a pointer"),
        ("a|b\n1|2\n", "has bars or blanks between fields; write commas"),
        ('"a,b\n', "has no first line that names the columns"),
        (WIDE + "a,1,2\nb,1\n", "row 1 has 2 fields, but the first line has 3"),
        (WIDE + "a,1,2\n\nb,1,2,3\n", "row 1 has 4 fields"),
        (WIDE + "a,1,2\nb,1,+2\n", "column 'class_1'"),
        (WIDE + "a,1,0,2\nb,1,0,2\n", "row 0 has 4 fields"),
        (WIDE + "a,1,2\nb,NA,2\n", "row 1 has an entry that is empty"),
        (WIDE + "a,1,2\n ,1,2\n", "row 1 has no 'query_id'"),
        ((WIDE + "a,1,2\n\xe9,1,2\n").encode("latin-1"), "line 3 is not UTF-8 text"),
        (WIDE.encode("utf-16"), "is UTF-16 text; save it as UTF-8"),
    ],
)
def test_csv_that_is_refused(content, said, tmp_path):
    (tmp_path / "v.csv").write_bytes(content if isinstance(content, bytes) else content.encode())
    assert f"v.csv: {said}" in refused(tmp_path / "v.csv", layout="counts")


@pytest.mark.parametrize(
    ("row", "counts"),
    [
        ("cat;NA;dog", [1, 1]),
        ("cat;; dog ", [1, 1]),
        ("true;cat;dog", [1, 1]),
        ("1,000;cat;dog", [1, 1]),
        ("7;cat;cat", [2, 0]),
    ],
)
def test_words_between_semicolons(row, counts, tmp_path):
    (tmp_path / "v.csv").write_text(f"teacher_0;teacher_1;teacher_2\n{row}\ncat;cat;cat")
    found = read(tmp_path / "v.csv", label_names="cat,dog", layout="labels")[2]
    assert found == [counts, [3, 0]]


@pytest.mark.parametrize(
    ("fields", "marks"),
    [
        (["1,000", "2"], True),
        (["1.234", "5"], True),
        (["5,0", "1.5"], True),
        (["1,0"], True),
        (["1,000.5"], False),
    ],
)
def test_numbers_that_can_be_read_in_two_ways_are_refused(fields, marks, tmp_path):
    lines = [f"q{row};3;{field}" for row, field in enumerate(fields)]
    (tmp_path / "v.csv").write_text("\n".join(["query_id;class_0;class_1", *lines]))
    said = refused(tmp_path / "v.csv", layout="counts")
    assert "'class_1'" in said
    assert ("mark decimals" in said) == marks


@pytest.mark.parametrize("block", [40, 1 << 20])
@pytest.mark.parametrize("field", ["0.5", "x", "08", "true", ""])
@pytest.mark.parametrize("place", [0, 15, 29])
def test_a_type_is_that_of_all_rows(place, field, block, tmp_path, monkeypatch):
    monkeypatch.setattr(delimited, "BLOCK", block)
    ids = [str(row) for row in range(ROWS)]
    ids[place] = field
    lines = [",".join(map(str, row)) for row in zip(ids, *CLASSES.values(), strict=True)]
    (tmp_path / "v.csv").write_text("\n".join([",".join(["query_id", *CLASSES]), *lines]))
    if field:
        assert read(tmp_path / "v.csv")[1:] == (ids, COUNTS)
    else:
        assert f"row {place} has no 'query_id'" in refused(tmp_path / "v.csv")


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ('{"counts":[1,2]}\n[1,2]\n', "row 1 cannot be read"),
        ('{"counts":[1,2]}\n{"counts":[1,2}\n', "row 1 cannot be read"),
        ('{"v":1,"w":2}\n{"v":"x","w":2}\n', "row 1 is the first row in which column 'v' changed"),
        ('{"v":[1]}\n{"v":["x"]}\n', "row 1 is the first row in which column 'v' changed"),
        ('{"a":1,"a":2}\n', "row 0 is the first row in which column 'a' was specified twice"),
        ('[{"a":1},5]', "row 1 is not a JSON object"),
        ('[{"a":1}', "row 0 is not a JSON object"),
        ("[" * 10**5, "row 0 is not a JSON object"),
        ('{"a":' * 10**5, "row 0 has over 64 open brackets"),
        ('{"a":{"b":1}}\n', "'a'"),
        ("{}\n", "no columns of votes"),
    ],
)
def test_json_that_is_refused(content, said, tmp_path):
    (tmp_path / "v.jsonl").write_text(content)
    assert said in refused(tmp_path / "v.jsonl", layout="counts")


def test_a_column_of_json_that_changes_between_pieces(tmp_path, monkeypatch):
    monkeypatch.setattr(json_lines, "PIECE", 48)
    values = [str(row) if row < 21 else '"x"' for row in range(30)]
    lines = ['{"v":' + value.rjust(3) + ',"w":1}\n' for value in values]
    (tmp_path / "v.jsonl").write_text("".join(lines))
    assert "column 'v' changes its type in row 21 or a little later" in refused(
        tmp_path / "v.jsonl"
    )


@pytest.mark.parametrize("first", ["null", "null, null", " null ,1"])
def test_lists_of_json_may_begin_with_nulls(first, tmp_path):
    labels = [[*json.loads(f"[{first}]"), 1, 0], [*[0] * (first.count(",") + 2), None]]
    content = f'{{"labels":[{first},1,0]}}\n{json.dumps({"labels": labels[1]})}\n'
    (tmp_path / "v").write_text(content)
    found = read(tmp_path / "v", layout="labels", classes=2, teachers=len(labels[0]))[2]
    assert found == [[row.count(0), row.count(1)] for row in labels]


@pytest.mark.parametrize("cell", ["7", " 7 ", '"7"', "", "NA", "007", "0x7", "-1", "7.0", "seven"])
def test_many_columns_of_csv_are_read_as_few_are(tmp_path, cell, monkeypatch):
    monkeypatch.setattr(delimited, "_WIDE", 9)
    found = []
    for width in (3, 30):
        heads = ["query_id", *(f"teacher_{t}" for t in range(width - 1))]
        rows = [[f"q{row}", cell, "2", *["1"] * (width - 3)] for row in range(3)]
        path = tmp_path / f"{width}.csv"
        path.write_text("\n".join(map(",".join, [heads, *rows])))
        try:
            _, ids, counts = read(path, classes=9, teachers=width - 1)
            found.append((ids, [(row[2] > 0, row[7] > 0) for row in counts]))
        except VoteError as error:
            found.append(str(error).partition(": ")[2].replace("29", "2"))
    assert found[0] == found[1]


def test_a_keyword_of_no_format_and_no_layout_is_refused(tmp_path):
    counts = np.array([[3, 1], [0, 4], [2, 2]])
    np.save(tmp_path / "v.npy", counts)
    for source in (tmp_path / "v.npy", counts):
        said = refused(source, UsageError, layout="counts", skip_rows=1)
        assert "`skip_rows` is not an option for this format" in said
