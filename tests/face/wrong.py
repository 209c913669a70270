"""Wrong input, a kind each: what is in the file, the line, and what the message must name.

A message names the file, the row if it is one, and what to do; how it says so is its own. The exit
codes are frozen with everything else.
"""

import io
import zipfile
from dataclasses import dataclass, field

import numpy as np

from face import inputs
from face.lines import CHEAP, RUN, SAFE, SEEDED
from stored import npy, parquet

ROW = 7


@dataclass(frozen=True)
class Wrong:
    """A line that is refused.

    Attributes:
        line: without `pate`.
        says: what the message has in it, part by part in any order.
        files: what lies in the folder beside the inputs that the line names.
    """

    line: str
    says: str
    files: dict[str, bytes] = field(default_factory=dict)


def workbook():
    """The beginnings of a spreadsheet."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as packed:
        packed.writestr("[Content_Types].xml", "<Types/>")
        packed.writestr("xl/workbook.xml", "<workbook/>")
    return file.getvalue()


def csv(*rows, header="query_id,class_0,class_1"):
    """Lines of text as a file."""
    return "\n".join((header, *rows, "")).encode()


GOOD = [f"q{row},60,40" for row in range(ROW)]
LONG = {"header": "query_id,teacher_id,label", "line": "--layout long --classes 4"}
_ones = np.ones((3, 3), dtype=np.int64)
_objects = np.array([["a", None], ["b", 1]], dtype=object)
_short = parquet({"query_id": [1, 2, 3], "class_0": [4, 4, 4], "class_1": [1, 1, 1]})


def _of(name, content, line, says=""):
    return Wrong(f"aggregate {name} {line} {CHEAP}", f"{name} … {says}", {name: content})


def _csv(says, *rows, line="", **header):
    return _of("bad.csv", csv(*rows, **header), line, says)


def _npy(says, array, line=""):
    return _of("bad.npy", npy(array), line, says)


def _row(says, row, values=inputs.COUNTS, line=""):
    """The counts, or labels, with another row."""
    changed = values.astype(np.result_type(values, np.asarray(row)))
    changed[ROW] = row
    return _npy(says, changed, line)


WRONG = {
    # Votes that are none.
    "a file that is not there": Wrong(f"aggregate gone.npy {CHEAP}", "gone.npy"),
    "an empty file": _of("bad.csv", b"", ""),
    "only a header": _csv(""),
    "a fraction": _csv("row 7 … whole numbers … --layout", *GOOD, "q7,59.5,40.5"),
    "shares that sum to 1": _npy(
        "row 0 … whole numbers … --layout labels or scores",
        np.full((9, 4), 0.25),
        line="--layout counts",
    ),
    "a negative count": _row("row 7 … -1 … --teachers", [110, -10, 0, 0]),
    "a count that is not a number": _row("row 7 … NaN … repair", [np.nan, 50, 25, 25]),
    "a count that is infinite": _row("row 7 … infinite … repair", [np.inf, 0, 0, 0]),
    "a count beyond all ensembles": _row("row 7 … 2147483647", [2**40, 0, 0, 0]),
    "another total": _row(
        "row 7 … differs from that of row 0 … --teachers … probabilities",
        [97, 1, 1, 0],
        line="--layout counts",
    ),
    "more votes than teachers": _row(
        "row 7 … --teachers is 100", [97, 1, 1, 9], line="--layout counts --teachers 100"
    ),
    "no votes at all": _row("row 7 … --teachers", [0, 0, 0, 0], line="--layout counts"),
    "another total, of an unknown layout": _row("row 7 … --layout", [97, 1, 1, 0]),
    "a label outside the classes": _row(
        "row 7 … 0..3 … --classes",
        9,
        inputs.SAID,
        line="--layout labels --classes 4 --teachers 100",
    ),
    "a label beyond the classes, in long form": _csv("row 1 … --classes", "a,1,0", "a,2,5", **LONG),
    "a teacher who votes twice": _csv("row 2 … keep one", "a,1,0", "a,2,1", "a,1,1", **LONG),
    "a query that some did not vote on": _csv(
        "row 2 … --teachers", "a,1,0", "a,2,1", "b,1,1", **LONG
    ),
    "a query that repeats": _csv("row 7 … repeats", *GOOD, "q3,60,40"),
    "lists of different lengths": _of(
        "bad.parquet",
        parquet({"label": [[0, 1], [0, 1]], "count": [[3, 2], [5]]}),
        "--layout sparse --classes 4 --teachers 5",
        "row 1 … different lengths",
    ),
    "a class that is listed twice": _of(
        "bad.parquet",
        parquet({"label": [[0, 1], [2, 2]], "count": [[3, 2], [4, 1]]}),
        "--layout sparse --classes 4 --teachers 5",
        "row 1 … twice",
    ),
    "a score that is not a number": _npy(
        "row 1",
        np.where(np.arange(24).reshape(2, 4, 3) == 13, np.nan, 1.0),
        line="--layout scores --teachers 4",
    ),
    # Files that are damaged, or of another kind.
    "an array of objects": _npy("object", _objects),
    "an array cut short": _of("bad.npy", npy(inputs.COUNTS)[:-40], ""),
    "an array that goes on": _of("bad.npy", npy(inputs.COUNTS) + b"more", ""),
    "an array of one side": _npy("(9,)", np.arange(9), line="--layout counts"),
    "a table cut short": _of("bad.parquet", _short[:-60], ""),
    "a packed file cut short": Wrong(
        f"aggregate bad.csv.gz {CHEAP}",
        "bad.csv.gz",
        {"bad.csv.gz": b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff\x03"},
    ),
    "a pickle": _of(
        "bad.npy", b"\x80\x04\x95\x0b\x00\x00\x00\x00\x00\x00\x00]q\x00.", "", "never opened"
    ),
    "a workbook": _of("bad.xlsx", workbook(), "", "CSV"),
    "text that is no UTF-8": _of("bad.csv", csv(*GOOD) + b"q\xff,60,40\n", "", "line 9 … UTF-8"),
    "a row with a field too many": _csv("row 7 … 4 fields … repair", *GOOD, "q7,60,40,1"),
    "a quote that is not closed": _csv("row 7", *GOOD, '"q7,60,40'),
    "columns of one name": _csv("columns 1 and 2 … another name", "a,1,2", header="query_id,x,x"),
    "numbers for names": _csv("first line … name", "3,7", header="4,6"),
    "words where counts are": _csv("row 7 … class_1 … --label-names", *GOOD, "q7,60,many"),
    "a column that is no class": _csv(
        "note … drop", "a,1,2,x", header="query_id,class_0,class_1,note"
    ),
    "lines that are no JSON": _of(
        "bad.jsonl", b'{"class_0": 1, "class_1": 2}\n{"class_0": \n', "", "row 1"
    ),
    "lines that are no objects": _of("bad.jsonl", b"[1, 2]\n", "", "row 0 … object"),
    "a layout that cannot be told": _npy("--layout", _ones),
    "a table without teachers": _csv(
        "teacher_id", "a,1", header="query_id,label", line="--layout long --classes 4"
    ),
    # What goes with the votes.
    "guesses of other rows": Wrong(
        f"aggregate counts.npy {CHEAP} --prior guesses.npy",
        "guesses … row 8",
        {"guesses.npy": npy(np.zeros(9, dtype=np.int64))},
    ),
    "a guess that is no class": Wrong(
        f"aggregate counts.npy {CHEAP} --prior guesses.npy",
        "row 3 … 4 classes",
        {"guesses.npy": npy(np.where(np.arange(60) == 3, 8, 0))},
    ),
    "predictions that are no probabilities": Wrong(
        f"aggregate counts.npy --mechanism interactive {SAFE} {RUN} --student s.npy",
        "row 0 … sum is 1 … predict_proba",
        {"s.npy": npy(np.full((60, 4), 0.5))},
    ),
    "groups of other teachers": Wrong(
        f"aggregate teachers.npy --layout labels --classes 4 {CHEAP} --groups g.csv",
        "100 … 2",
        {"g.csv": csv("a", "b", header="group")},
    ),
    "a weight that is not whole": Wrong(
        f"aggregate teachers.npy --layout labels --classes 4 {CHEAP} --groups g.csv",
        "g.csv … row … weight … whole number",
        {"g.csv": csv("a,1", "b,1.5", header="group,weight")},
    ),
    "groups of counts": Wrong(
        f"aggregate counts.npy {CHEAP} --groups groups.csv",
        "counts.npy … the vote of each teacher … labels",
    ),
    "names of other columns": Wrong(
        f"aggregate named.csv {CHEAP} --label-names ant,bee,cow,elk", "dog"
    ),
    "a vote on a query that is not listed": Wrong(
        f"aggregate long.csv --layout long --classes 4 --queries some.csv {CHEAP}",
        "long.csv … row 100",
        {"some.csv": csv("q00", header="query_id")},
    ),
    "aliases that are no JSON": Wrong(
        f"aggregate words.csv --layout labels {CHEAP} --label-names @names.txt --aliases a.json",
        "a.json",
        {"a.json": b"{moo: cow}"},
    ),
    # Numbers and flags.
    "a flag that is not there": Wrong(f"aggregate counts.npy {CHEAP} --sigma 3", "--sigma"),
    "a mechanism that is not there": Wrong(
        f"aggregate counts.npy --mechanism laplace {RUN}", "laplace … gnmax"
    ),
    "noise below 0": Wrong(f"aggregate counts.npy --mechanism gnmax --sigma2 -3 {RUN}", "-3"),
    "a delta of 2": Wrong(f"aggregate counts.npy {CHEAP} --delta 2", "delta … 2"),
    "an order of 1": Wrong(f"cost counts.npy {SAFE} --order 1", "order … 1"),
    "a target and a release": Wrong(
        f"aggregate counts.npy {CHEAP} --target-epsilon 1 --release upper",
        "--release … --target-epsilon",
    ),
    "a budget without a record": Wrong(
        f"aggregate counts.npy {CHEAP} --budget 1", "--budget … record"
    ),
    "an epsilon that promises nothing": Wrong(
        "aggregate counts.npy --mechanism gnmax --sigma2 2 --no-record -o labels.csv",
        "29.686 … --max-queries … more noise … --target-epsilon … --max-epsilon 29.686",
    ),
    "a target that promises nothing": Wrong(
        "aggregate counts.npy --mechanism gnmax --sigma2 2 --no-record -o l.csv "
        "--target-epsilon 20",
        "20 … smaller --target-epsilon … --max-epsilon 20",
    ),
    "a target out of reach": Wrong(
        f"aggregate counts.npy {CHEAP} --target-epsilon 0.0001", "0.0001"
    ),
    # Outputs, and files of earlier runs.
    "an output that is there": Wrong(
        f"aggregate counts.npy --mechanism gnmax --sigma2 30 -o old.csv --report r.json {SEEDED}",
        "old.csv … exists already … --force",
        {"old.csv": b"query_id,label,source\n"},
    ),
    "an output in no folder": Wrong(
        f"aggregate counts.npy --mechanism gnmax --sigma2 30 -o no/l.csv --report r.json {SEEDED}",
        "no/l.csv",
    ),
    "two outputs in one place": Wrong(
        f"aggregate counts.npy --mechanism gnmax --sigma2 30 -o x.csv --report x.csv {SEEDED}",
        "x.csv … give each output its own name",
    ),
    "an output over the votes": Wrong(
        f"aggregate counts.csv --mechanism gnmax --sigma2 30 -o counts.csv --force {SEEDED}",
        "counts.csv",
    ),
    "labels of an unknown format": Wrong(
        f"aggregate counts.npy --mechanism gnmax --sigma2 30 -o l.txt {SEEDED}", "l.txt … .csv"
    ),
    "a ledger that is none": Wrong("release names.txt --no-record", "names.txt … ledger"),
    "a report that is none": Wrong("verify names.txt", "names.txt … report"),
    "an explanation of no report": Wrong("explain counts.csv", "counts.csv … report"),
    "votes without a record": Wrong("spent counts.npy", "counts.npy … record"),
    "a record that was changed": Wrong(
        "spent r.spent.json",
        "r.spent.json … record",
        {"r.spent.json": b'{"kind": "pate-spend-record", "schema_version": 5, "runs": []}'},
    ),
}
