"""Damaged and hostile files end in one line: never in a signal, a traceback or all of memory.

Readers run in a process of their own, as the command line runs them: with its bound on memory, and
where a signal would be seen.
"""

import gzip
import io
import json
import subprocess
import sys
import zipfile

import numpy as np
import pyarrow as pa
import pytest

from fuzz.cases import layout_of
from fuzz.whole import WHOLE, whole
from slices import EVERY
from stored import arrow, parquet

FORMATS = ("npy", "npz", "parquet", "csv", "jsonl", "arrow", "gzip", "zstd")
MOST = 1300
"""Megabytes of a process that reads a bomb: the bound, and what the process is without it."""

READ = """
import json, resource, sys, warnings
from pate_cli.core.errors import PateError
from pate_cli.core.memory import bound_reading
bound_reading()  # before Arrow is loaded, as the command line does
from pate_cli.votes.opening import open_votes
warnings.simplefilter("error")
inherited = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # of whoever started us
for line in sys.stdin:
    path, options = json.loads(line)
    try:
        with open_votes(path, **options) as votes:
            said = f"{sum(len(batch.counts) for batch in votes.batches())} rows"
    except PateError as error:
        said = str(error)
    except BaseException as error:
        said = f"TRACEBACK {type(error).__name__}: {error}"
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    print(json.dumps(said), 0 if most == inherited else most >> 10, flush=True)
"""


def reading(files):
    """Return what is said of each (path, options), and the most megabytes that the process had."""
    asked = "".join(json.dumps([str(path), options]) + "\n" for path, options in files)
    done = subprocess.run(
        [sys.executable, "-c", READ], input=asked, capture_output=True, text=True, timeout=300
    )
    lines = [line.rpartition(" ") for line in done.stdout.splitlines()]
    assert done.returncode == 0, f"ended by {done.returncode} at {files[len(lines)]}: {done.stderr}"
    assert not done.stderr
    said = [json.loads(line[0]) for line in lines]
    assert not [each for each in said if each.startswith("TRACEBACK")]
    return said, int(lines[-1][2])


def header(shape, dtype="<i8"):
    into = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(into, about)
    return into.getvalue()


def one_list():
    """Zeros, which take next to nothing in a file."""
    width = 2 * 10**8 if EVERY else 10**7
    flat = pa.array(np.zeros(width, np.int8))
    column = pa.ListArray.from_arrays(pa.array([0, width], pa.int32()), flat)
    return parquet({"labels": column}, compression="zstd")


def long_text():
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(30000, np.int32)), ["x" * 10**6])
    return parquet({"teacher_0": column, "teacher_1": column}, compression="zstd")


def archive():
    into = io.BytesIO()
    with zipfile.ZipFile(into, "w", zipfile.ZIP_DEFLATED) as file, file.open("a.npy", "w") as inner:
        inner.write(header((10**8, 2)))
        inner.write(bytes(10**7))
    return into.getvalue()


LABELS = {"layout": "labels", "classes": 2, "teachers": 10}
WORDS = {"label_names": ["a", "b"]}
COUNTS = {"layout": "counts"}
BOMBS = {
    "one list": (one_list, LABELS),
    "a text in every row": (long_text, WORDS),
    "a header without end": (lambda: b"\x93NUMPY\x02\x00" + b"\xff" * 4 + b" " * 99, COUNTS),
    "a shape beyond all": (lambda: header((2**40, 2**20)), COUNTS),
    "a negative shape": (lambda: header((-1, -8)), COUNTS),
    "brackets": (lambda: b"[" * 10**6, COUNTS),
    "brackets in an object": (lambda: b'{"a":' + b"[" * 10**6, COUNTS),
    "objects in an object": (lambda: b'{"a":' * 10**5, COUNTS),
    "a line of JSON": (lambda: b'{"labels":[' + b"1," * 10**7, COUNTS),
    "a line of CSV": (lambda: b"class_0,class_1\n" + b"1" * 3 * 10**7, COUNTS),
    "a quote": (lambda: b'class_0,class_1\n"' + b"1,2\n" * 10**7, COUNTS),
    "many columns": (lambda: b",".join([b"a%d" % j for j in range(10**6)]) + b"\n1\n", COUNTS),
    "names one a line": (lambda: b"".join(b'{"k%d":1}\n' % j for j in range(30000)), COUNTS),
    "an archive that lies": (archive, COUNTS),
    "an empty archive": (lambda: b"PK\x05\x06" + bytes(18), COUNTS),
    "a packed line": (lambda: gzip.compress(b"class_0,class_1\n" + b"1" * 10**8), COUNTS),
}


def test_small_files_that_stand_for_much(tmp_path):
    files = []
    for name, (made, options) in BOMBS.items():
        (tmp_path / name).write_bytes(made())
        files.append((tmp_path / name, options))
    said, most = reading(files)
    rows = [each for each in said if each.endswith(" rows")]
    assert rows == ["30000 rows"]
    for (path, _), each in zip(files, said, strict=True):
        assert path.name in each or each in rows
    assert most < MOST


@pytest.mark.skipif(not EVERY, reason="make test-all")
def test_a_giant_record_batch(tmp_path):
    table = pa.table({f"class_{j}": pa.array(np.ones(10**7, np.int64)) for j in range(20)})
    (tmp_path / "v").write_bytes(arrow(table, compression="zstd"))
    (said,), most = reading([(tmp_path / "v", COUNTS)])
    assert "more memory than votes may" in said
    assert most < MOST


def test_tens_of_thousands_of_columns(tmp_path):
    many = 60_000 if EVERY else 20_000
    names = b",".join(b"class_%d" % j for j in range(many))
    (tmp_path / "v").write_bytes(names + b"\n" + (b",".join([b"1"] * many) + b"\n") * 20)
    assert reading([(tmp_path / "v", COUNTS)])[0] == ["20 rows"]


def told(kind):
    """What a reader of these votes is told."""
    found = {"layout": str(layout_of(kind)), "teachers": 5 if "scores" in kind else None}
    found |= {"label_names": ["cat", "dog", "bird"]} if "words" in kind or "long" in kind else {}
    return found | ({"classes": 6} if "sparse" in kind else {})


def test_files_that_are_cut_short(tmp_path):
    """Half a file is no file: it is refused, or lacks whole rows of text at the end."""
    files, texts = [], 0
    for kind in WHOLE:
        if kind.split(",")[0] not in FORMATS:
            continue
        content = whole(kind)
        for cut in (0.1, 0.5, 0.9, 0.999):
            path = tmp_path / f"{kind}-{cut}"
            path.write_bytes(content[: int(len(content) * cut)])
            files.append((path, told(kind)))
        texts += content.isascii()
    said, _ = reading(files)
    assert sum(each.endswith(" rows") for each in said) <= 2 * texts


def test_indices_that_lead_nowhere(tmp_path):
    places = pa.array([0, 1, 7], pa.int32())
    words = pa.DictionaryArray.from_arrays(places, ["cat", "dog"], safe=False)
    ends = pa.py_buffer(np.array([0, 2, 2**30, 4], np.int32))
    flat = pa.array([1, 2, 3, 4])
    lists = pa.Array.from_buffers(pa.list_(pa.int64()), 3, [None, ends], children=[flat])
    tables = [
        (pa.table({"teacher_0": words, "teacher_1": words}), {"label_names": "cat,dog"}),
        (pa.table({"counts": lists}), COUNTS),
    ]
    files = []
    for table, options in tables:
        for new in (pa.ipc.new_file, pa.ipc.new_stream):
            path = tmp_path / str(len(files))
            path.write_bytes(arrow(table, new))
            files.append((path, options))
    assert all("damaged" in each for each in reading(files)[0])
