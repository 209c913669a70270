"""Files that are valid, or nearly, and that nobody expects."""

import io
import json
import struct
import zipfile
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.random import Generator

from fuzz.whole import MARK
from stored import npy

_DTYPES = (
    "<i8", "<i4", "|i1", "|u1", "<u8", ">i2", "<f8", "<f4", "<f2", ">f2", "<f16", "<c16", "|b1",
    "|O", "<U0", "<U3", "<U99999999", "|S0", "|S4", "|V0", "|V7", "<M8[s]", "<m8", "|T", "i",
    "i99", "f0", "<i8,<i8", "(2,3)i4", "i4,(2,2)f8,O", "", ",", "x", "object", "int", "é", "\n",
    "<i99999999999999999999", "<U2147483648", "<U-1", "M8[99999999999999999999s]", "3i4,", "(",
    "O4", "<f2" * 50,
)  # fmt: skip
_DESCRS = (
    "[('a', '<i8')]", "[('a', '<i8'), ('a', '<i8')]", "[('a\\n', '|O')]", "[('', '<i8', (2,))]",
    "[('a', [('b', [('c', '<i8')])])]", "[('a', '<i8', (99999999999,))]", "('<i8', (2, 2))",
    "('<i8', (2**9,))", "{'names': ['a'], 'formats': ['<i8']}", "None", "1", "()", "[]", "[()]",
    "[('a',)]", "('|V8', {'x': 1})", "('<i8', -1)", "('<i8', 9999999999)", "[('é', '<i8')]",
    "[" * 90 + "]" * 90, "b'<i8'", "'<i8' '<i8'", "-'<i8'", "[('a', '|V2147483647')] * 3",
)  # fmt: skip
_EXTENTS = (
    "0", "1", "2", "3", "24", "-1", "-3", "3L", "24L", "True", "None", "2.0", "1e3", "'3'", "()",
    "(3,)", "2147483648", "4294967296", "9223372036854775807", "9223372036854775808",
    "1" + "0" * 40,
    "9" * 3000, "9" * 4400, "0x10", "1_0", "1j", "é", "\u0663", "[3]", "3 3", "--3",
)  # fmt: skip


def odd_header(rng: Generator) -> bytes:
    """An NPY file with a header of its own grammar."""

    def one(choices: tuple[str, ...]) -> str:
        return choices[rng.integers(0, len(choices))]

    descr = one(_DESCRS) if rng.integers(0, 2) else repr(one(_DTYPES))
    sides = [
        one(_EXTENTS[:8] if rng.integers(0, 2) else _EXTENTS) for _ in range(rng.integers(0, 4))
    ]
    if rng.integers(0, 40) == 0:
        sides = ["1"] * int(rng.integers(30, 900))
    shape = f"({''.join(f'{side}, ' for side in sides)})"
    order = one(("False", "True", "False", "0", "'F'", "None"))
    fields = {"descr": descr, "fortran_order": order, "shape": shape}
    if rng.integers(0, 10) == 0:
        fields.pop(one(tuple(fields)))
    if rng.integers(0, 10) == 0:
        fields["more"] = "1"
    text = "{" + "".join(f"'{name}': {value}, " for name, value in fields.items()) + "}"
    match rng.integers(0, 24):
        case 0:
            text = "(" * 300 + text + ")" * 300
        case 1:
            text = "-" * 9000 + "1"
        case 2:
            text += one(("\x00", "#", "\\", "'", '"""', "\n\n", ";", " for x in y", "\t", "\r"))
        case 3:
            text = text.replace(" ", "\n ")
        case 4:
            text = text[: rng.integers(0, len(text))]
    version = ((1, 0), (1, 0), (1, 0), (2, 0), (3, 0), (9, 9))[rng.integers(0, 6)]
    raw = text.encode("latin1" if version < (3, 0) else "utf-8", "replace") + b"\n"
    length = len(raw)
    if rng.integers(0, 8) == 0:
        length = int(rng.choice([0, 1, len(raw) - 1, len(raw) + 1, 60_000, 2**32 - 1]))
    form = "<H" if version == (1, 0) else "<I"
    length = min(length, 2**16 - 1 if form == "<H" else 2**32 - 1)
    body = bytes(int(rng.choice([0, 1, 8, 24 * 8, 24 * 24 * 8])))
    return b"\x93NUMPY" + bytes(version) + struct.pack(form, length) + raw + body


def odd_array(rng: Generator) -> bytes:
    """An array of extreme numbers, or of many sides."""
    kinds = ("f2", "f4", "f8", "longdouble", "i1", "i8", "u8", ">f2", ">i4", "U3", "?", "M8[s]")
    kind = np.dtype(kinds[rng.integers(0, len(kinds))])
    shape = tuple(int(n) for n in rng.choice([1, 2, 3, 5, 9], size=rng.integers(0, 5)))
    with np.errstate(all="ignore"):
        raw = rng.integers(0, 256, size=(*shape, kind.itemsize), dtype=np.uint8)
        array = raw.reshape(-1).view(kind).reshape(shape) if kind.kind not in "U?" else None
        if array is None:
            array = rng.integers(0, 3, size=shape).astype(kind)
        elif rng.integers(0, 2) and kind.kind in "fiu":
            info: Any = np.finfo(kind) if kind.kind == "f" else np.iinfo(kind)
            odd = np.array(
                [0, 1, 2, 3, info.max, info.min, *([np.nan] if kind.kind == "f" else [])]
            )
            array = rng.choice(odd, size=shape).astype(kind)
    return npy(np.asarray(array, order="F" if rng.integers(0, 3) == 0 else "C"))


_NAMES = (
    "query_id", "teacher_id", "label", "count", "counts", "labels", "class_0", "class_1", "class_2",
    "teacher_0", "teacher_1", "group", "weight", "teachers_per_record", "a\nb", "a\r\x1b[31m",
    "n" * 5000, "\n" * 400, "", " ", "`layout`", "0", "1", "9" * 4000, "é" * 300, "\u202e", "index",
    "text", "{name}", "%s", "truth",
)  # fmt: skip


def _column(rng: Generator, rows: int) -> Any:
    small = rng.integers(0, 4, size=rows)
    marked = MARK * 1000 + small
    pairs = list(zip(marked.tolist(), small.tolist(), strict=True))
    lists = [[vote] * n for vote, n in pairs]
    bad = [b"\xff\xfe" if n == 1 else b"q%d" % row for row, n in enumerate(small)]
    makers = (
        lambda: pa.array(small),
        lambda: pa.array(marked, mask=small == 0),
        lambda: pa.array(small.astype("f2") * np.float16(20000)),
        lambda: pa.array(marked / 3.0),
        lambda: pa.array([f"t{vote}" for vote in marked]),
        lambda: pa.array([f"q{row}" for row in range(rows)]),
        lambda: pa.array(["w" * 20_000 if n else None for n in small]),
        lambda: pa.array(lists),
        lambda: pa.array(lists, pa.large_list(pa.float64())),
        lambda: pa.array([[n] * 3 for n in small], pa.list_(pa.int8(), 3)),
        lambda: pa.array([[f"t{vote}", None] for vote in marked]),
        lambda: pa.array([[[vote]] for vote, _ in pairs]),
        lambda: pa.array([{"a": vote, "n\nn": [vote]} for vote, _ in pairs]),
        lambda: pa.array([f"t{n % 3}" for n in small]).dictionary_encode(),
        lambda: pa.nulls(rows),
        lambda: pa.array(marked.astype("u8") << np.uint64(40)),
        lambda: pa.array(marked, pa.timestamp("us")),
        lambda: pa.array([bytes([255, n]) for n in small]),
        lambda: pa.array(small.astype(bool)),
        lambda: pa.array(marked).cast(pa.decimal128(20, 0)),
        lambda: pa.array([None if n else [] for n in small], pa.list_(pa.int64())),
        lambda: pa.array(bad).cast(pa.binary()).view(pa.string()),
        lambda: pa.array(np.array([np.nan, np.inf, -0.0, 1e300])[small]),
    )
    return makers[rng.integers(0, len(makers))]()


def odd_table(rng: Generator) -> Any:
    """A table of any columns under any names."""
    rows = int(rng.choice([0, 1, 2, 9, 40]))
    size = int(rng.integers(0, 6))
    if rng.integers(0, 60) == 0:
        size = 3000
    names = [_NAMES[rng.integers(0, len(_NAMES))] for _ in range(size)]
    if size > 10 or rng.integers(0, 5) == 0:
        stem = ("class_", "c\n", "teacher_", "x" * 500)[rng.integers(0, 4)]
        names = [f"{stem}{place}" for place in range(size)]
    if size > 10:
        column = _column(rng, rows)
        while column.nbytes > 1 << 12:
            column = _column(rng, rows)
        columns = [column] * size
    else:
        columns = [_column(rng, rows) for _ in names]
    said = (b"row 1\n" * 50, b"\xff\xfe", b"", b"12", b"{" * 500)[rng.integers(0, 5)]
    metadata = {b"pate:odd_row": said, b"ARROW:extension:name": b"x\n", b"pandas": said}
    fields = [
        pa.field(name, column.type, metadata=metadata if rng.integers(0, 6) == 0 else None)
        for name, column in zip(names, columns, strict=True)
    ]
    schema = pa.schema(fields, metadata=metadata if rng.integers(0, 3) == 0 else None)
    return pa.Table.from_arrays(columns, schema=schema)


def odd_parquet(rng: Generator) -> bytes:
    """That table in Parquet; where Parquet has no such thing, a smaller one."""
    file = io.BytesIO()
    try:
        pq.write_table(
            odd_table(rng),
            file,
            row_group_size=int(rng.integers(1, 20)),
            store_schema=bool(rng.integers(0, 2)),
            use_dictionary=bool(rng.integers(0, 2)),
        )
    except (pa.ArrowException, UnicodeError):
        return odd_parquet(rng)
    return file.getvalue()


def odd_arrow(rng: Generator) -> bytes:
    """That table as an Arrow file or stream."""
    table, file = odd_table(rng), io.BytesIO()
    opened = (pa.ipc.new_file, pa.ipc.new_stream)[rng.integers(0, 2)]
    with opened(file, table.schema) as writer:
        writer.write_table(table)
    return file.getvalue()


def odd_text(rng: Generator) -> bytes:
    """CSV of odd fields under odd names."""
    between = (",", ";", "\t")[rng.integers(0, 3)]
    fields = ("1", "0", "-1", "", " 2 ", "1e999", "nan", "9" * 400, '"a""b"', '"x\ny"', "é", "007",
              f"{MARK}", f"{MARK}.5", "\0", '"', "w" * 9000, "1970-01-01", "true",
              "=1+1")  # fmt: skip
    size = 4000 if rng.integers(0, 80) == 0 else int(rng.integers(1, 6))
    names = [f"class_{place}" for place in range(size)]
    if rng.integers(0, 2):
        names = [json.dumps(_NAMES[rng.integers(0, len(_NAMES))]) for _ in names]
    odd = int(rng.integers(1, 5))
    rows = [
        [
            fields[rng.integers(0, 2 if rng.integers(0, odd) else len(fields))]
            for _ in range(min(size, 9))
        ]
        + ["1"] * (size - 9)
        for _ in range(int(rng.integers(0, 6)))
    ]
    end = ("\n", "\r\n", "\r")[rng.integers(0, 3)]
    text = end.join(between.join(row) for row in [names, *rows])
    return (b"\xef\xbb\xbf" if rng.integers(0, 8) == 0 else b"") + text.encode()


def odd_lines(rng: Generator) -> bytes:
    """JSON lines of odd values under odd names."""
    values = ("1", "0", "-1", "null", "[1, 2]", "[]", "[[1]]", '"a"', '"\\ud800"', "1e999", "NaN",
              "9" * 400, f"{MARK}", f"[{MARK}, 1]", "{}", '{"a": {"b": 1}}', "true", "1.5",
              '"2020-01-01"',
              "[" * 70 + "]" * 70, "[1, null]", '["a", 1]', "[{}]",
              '"' + "w" * 9000 + '"')  # fmt: skip
    size = 2000 if rng.integers(0, 80) == 0 else int(rng.integers(1, 5))
    names = [
        _NAMES[rng.integers(0, len(_NAMES))] if size < 9 else f"c{place}" for place in range(size)
    ]
    odd = int(rng.integers(1, 5))
    lines = []
    for _ in range(int(rng.integers(1, 6))):
        pairs = [
            f"{json.dumps(name)}: {value}"
            for name in names
            for value in [values[rng.integers(0, 1 if rng.integers(0, odd) else len(values))]]
        ]
        lines.append("{" + ", ".join(pairs) + "}")
    return "\n".join(lines).encode()


def odd_archive(rng: Generator) -> bytes:
    """A ZIP with anything in it, under any name, however it is packed."""
    file = io.BytesIO()
    names = ["arr_0.npy", "a\nb.npy", "x" * 3000 + ".npy", "../v.npy", "data.pkl", "sub/", "é.npy"]
    ways = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)
    with zipfile.ZipFile(file, "w", ways[rng.integers(0, 4)]) as archive:
        several = int(rng.choice([0, 1, 1, 1, 2, 9]))
        for place in rng.permutation(len(names))[:several]:
            archive.writestr(
                names[place], odd_header(rng) if rng.integers(0, 2) else odd_array(rng)
            )
    return file.getvalue()
