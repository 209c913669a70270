"""The files that the face is shown: the same votes in every layout and format.

A hundred teachers vote on sixty queries with four classes. All numbers follow from a frozen stream
of numpy (`RandomState`), so that they are the same for good.
"""

import gzip
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.feather as feather
import pyarrow.parquet as pq

from stored import lines, table_in

TEACHERS, QUERIES, CLASSES, LABELS = 100, 60, 4, 3
NAMES = ("ant", "bee", "cow", "dog")
IDS = [f"q{row:02d}" for row in range(QUERIES)]

_stream = np.random.RandomState(2026)
TRUTH = _stream.randint(CLASSES, size=QUERIES)
_sure = _stream.uniform(0.35, 1.0, size=(QUERIES, 1))
SAID = np.where(
    _stream.uniform(size=(QUERIES, TEACHERS)) < _sure,
    TRUTH[:, np.newaxis],
    _stream.randint(CLASSES, size=(QUERIES, TEACHERS)),
)
"""Which class each teacher says, [queries, teachers]."""
COUNTS = np.stack([np.equal(SAID, label).sum(axis=1) for label in range(CLASSES)], axis=1)
GAPS = np.where(_stream.uniform(size=SAID.shape) < 0.05, -1, SAID)
"""The same with votes missing."""
GUESSES = np.where(_stream.uniform(size=QUERIES) < 0.8, TRUTH, (TRUTH + 1) % CLASSES)
YES = (_stream.uniform(size=(QUERIES, TEACHERS, LABELS)) < _sure[:, :, np.newaxis]).astype(np.int64)
"""Whether each teacher says that a label holds, [queries, teachers, labels]."""
STUDENT = np.full((QUERIES, CLASSES), 0.04)
STUDENT[np.arange(QUERIES), GUESSES] = 0.88
SCORES = np.round(_stream.uniform(0.0, 0.5, size=(QUERIES, TEACHERS, CLASSES)), 3)
np.put_along_axis(SCORES, SAID[:, :, np.newaxis], 0.75, axis=2)
_right = _stream.randint(CLASSES, size=200)
CLEAR = np.where(
    _stream.uniform(size=(200, 250)) < _stream.uniform(0.95, 1.0, size=(200, 1)),
    _right[:, np.newaxis],
    _stream.randint(CLASSES, size=(200, 250)),
)
CLEAR = np.stack([np.equal(CLEAR, label).sum(axis=1) for label in range(CLASSES)], axis=1)
"""Counts of more teachers, who nearly agree: what such votes cost is far below the worst case."""
WEIGHTS = np.where(np.arange(TEACHERS) < 20, 3, 1)
WHO = [("hospital" if teacher < 20 else "practice") for teacher in range(TEACHERS)]


def table(names=None, values=COUNTS):
    """A row a query, with its id and a column for every class or teacher."""
    names = [f"class_{j}" for j in range(values.shape[1])] if names is None else names
    columns = {name: values[:, j] for j, name in enumerate(names)}
    return pa.table({"query_id": IDS, **columns})


def long_table(words=False):
    """A row a vote."""
    query, teacher = np.divmod(np.arange(QUERIES * TEACHERS), TEACHERS)
    said = SAID.ravel()
    return pa.table(
        {
            "query_id": [IDS[row] for row in query],
            "teacher_id": teacher,
            "label": [NAMES[label] for label in said] if words else said,
        }
    )


def sparse_table():
    """Lists of the classes that have votes, and how many."""
    label = [np.flatnonzero(row).tolist() for row in COUNTS]
    return pa.table(
        {
            "query_id": IDS,
            "label": label,
            "count": [row[found].tolist() for row, found in zip(COUNTS, label, strict=True)],
        }
    )


def write_inputs(folder: Path) -> None:
    """All of them in a new folder, by the names that command lines use."""
    folder.mkdir()
    teachers = [f"teacher_{j}" for j in range(TEACHERS)]
    words = np.array(NAMES)[SAID]
    wide, said, long, sparse = table(), table(teachers, SAID), long_table(), sparse_table()
    lists = pa.table({"query_id": IDS, "votes": COUNTS.tolist()})
    arrays = {
        "counts": COUNTS, "teachers": SAID, "by_teacher": SAID.T, "gaps": GAPS, "scores": SCORES,
        "scores_by_teacher": SCORES.transpose(1, 0, 2), "yes": YES,
        "yes_by_teacher": YES.transpose(1, 0, 2), "yes_counts": YES.sum(axis=1), "prior": GUESSES,
        "prior_shares": STUDENT, "student": STUDENT,
        "clear": CLEAR,
        "two": np.stack([COUNTS[:, 0], TEACHERS - COUNTS[:, 0]], axis=1),
    }  # fmt: skip
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    np.savez(folder / "counts.npz", COUNTS)
    np.save(folder / "swapped.npy", COUNTS.astype(">i2"))
    np.save(folder / "fortran.npy", np.asfortranarray(COUNTS.astype(np.float32)))
    named = table(NAMES)
    for name, votes in {
        "counts": wide, "teachers": said, "long": long, "sparse": sparse, "lists": lists,
        "named": named, "long_words": long_table(words=True), "words": table(teachers, words),
        "prior": pa.table({"query_id": IDS[::-1], "label": GUESSES[::-1]}),
        "numbered": wide.drop_columns("query_id"),
        "renamed": wide.rename_columns(["name", *wide.column_names[1:]]),
    }.items():  # fmt: skip
        kinds = ["parquet", "jsonl", "arrow"]
        kinds += ["csv"] * (not any(pa.types.is_list(kind) for kind in votes.schema.types))
        for kind in kinds:
            (folder / f"{name}.{kind}").write_bytes(table_in(votes, kind, rows=25))
    feather.write_feather(wide, str(folder / "counts.feather"))
    text = (folder / "counts.csv").read_text()
    (folder / "counts.tsv").write_text(text.replace(",", "\t"))
    (folder / "semicolon.csv").write_text(text.replace(",", ";"))
    (folder / "marked.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (folder / "dos.csv").write_bytes(text.replace("\n", "\r\n").encode())
    for name in ("counts.csv", "counts.npy", "teachers.parquet", "long.jsonl"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    for kind in ("parquet", "csv", "jsonl", "arrow"):
        (folder / f"parts_{kind}").mkdir()
        for number, (start, rows) in enumerate([(0, 20), (20, 25), (45, 15)]):
            part = folder / f"parts_{kind}" / f"part-{number}.{kind}"
            part.write_bytes(table_in(wide.slice(start, rows), kind))
    (folder / "names.txt").write_text("\n".join(NAMES) + "\n")
    (folder / "aliases.json").write_text(json.dumps({"moo": "cow", "woof": "dog"}))
    loud = [f" {'moo' if name == 'cow' else name.upper()}." for name in words.ravel()]
    pq.write_table(
        pa.table({"query_id": IDS, "votes": np.array(loud).reshape(words.shape).tolist()}),
        folder / "loud.parquet",
    )
    pcsv.write_csv(pa.table({"group": WHO, "weight": WEIGHTS}), folder / "groups.csv")
    pcsv.write_csv(pa.table({"query_id": [*IDS[::-1], "q99"]}), folder / "asked.csv")
    (folder / "other.json").write_text(
        json.dumps(
            {"adjacency": "replace-one", "orders": [2.0, 8.0, 32.0], "rdp": [0.01, 0.04, 0.2]}
        )
    )
    (folder / "pair.json").write_text(
        json.dumps({"adjacency": "add-or-remove-one", "epsilon": 0.25, "delta": 1e-6})
    )
    _write_session(folder)


def _write_session(folder):
    """Queries as a session takes them: counts, votes by teacher, a guess, and one that repeats."""
    counts = [{"id": IDS[row], "counts": COUNTS[row].tolist()} for row in (0, 1, 2, 1)]
    words = [
        {
            "id": IDS[row],
            "votes": [NAMES[label] for label in SAID[row]],
            "prior": NAMES[GUESSES[row]],
        }
        for row in (3, 4)
    ]
    for name, rows in {"asks": counts, "asks_in_words": words}.items():
        (folder / f"{name}.jsonl").write_bytes(lines(rows))
