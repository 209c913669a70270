"""Votes of 250 random forests on UCI Adult: `python sample_votes/make_adult.py [FOLDER]`.

The 32,561 census records of UCI Adult's training file are shuffled and split into 25,000 that the
teachers share, 100 each and no record twice; 4,000 public queries; and 3,561 to test students on.
The records come out of one pinned wheel, which is downloaded, verified and never installed.
"""

from __future__ import annotations

import hashlib
import io
import json
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from ensembles import FOLDER, count_votes, counts_table, describe, keep, load, truth_table
from numpy.typing import NDArray

WHEEL = "xai==0.3.0"
WHEEL_SHA256 = "b91e3611c3735462b514ee7b5eddd15503eb09eb2c25804acbf9aac502aaf24a"
MEMBER = "xai/data/census.csv"

TEACHERS, PER_TEACHER, QUERIES = 250, 100, 4000
TREES = 20
SEED = 2018
QUERY, TEST = -1, -2
LABEL = "over_50k"


def download() -> bytes:
    """The census records as CSV, out of the wheel."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", folder]
        subprocess.run([*pip, "--disable-pip-version-check", WHEEL], check=True)
        (wheel,) = Path(folder).glob("*.whl")
        content = wheel.read_bytes()
    found = hashlib.sha256(content).hexdigest()
    if found != WHEEL_SHA256:
        raise SystemExit(f"{WHEEL} has SHA-256 {found}, expected {WHEEL_SHA256}")
    return zipfile.ZipFile(io.BytesIO(content)).read(MEMBER)


def records(csv: bytes) -> pa.Table:
    """Shuffled records in whole numbers, with `part`: the teacher, or QUERY or TEST.

    Words become their places in alphabetical order; the table's metadata says which is which.
    """
    raw = pyarrow.csv.read_csv(io.BytesIO(csv))
    order = np.random.default_rng(SEED).permutation(raw.num_rows)
    columns: dict[str, NDArray[Any]] = {}
    words: dict[str, list[str]] = {}
    for name in raw.column_names[1:-1]:  # the first column numbers the rows, the last is the label
        values = np.array(raw[name].to_pylist())[order]
        if values.dtype.kind == "U":
            names, values = np.unique(np.char.strip(values), return_inverse=True)
            words[name] = names.tolist()
        columns[name] = values.astype(np.int8 if values.max() < 128 else np.int32)
    income = np.char.strip(np.array(raw[raw.column_names[-1]].to_pylist()))[order]
    columns[LABEL] = (income == ">50K").astype(np.int8)
    place = np.arange(raw.num_rows)
    part = np.where(place < TEACHERS * PER_TEACHER + QUERIES, QUERY, TEST)
    part = np.where(place < TEACHERS * PER_TEACHER, place // PER_TEACHER, part).astype(np.int16)
    return pa.table({**columns, "part": part}).replace_schema_metadata(
        {"words": json.dumps(words), "source": "UCI Adult (Becker and Kohavi 1996), CC BY 4.0"}
    )


def split(table: dict[str, NDArray[Any]]) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
    """(features [records, 12], labels [records], part [records])."""
    features = [values for name, values in table.items() if name not in (LABEL, "part")]
    return np.stack(features, axis=1).astype(np.int32), table[LABEL], table["part"]


def votes(
    table: dict[str, NDArray[Any]], *, teachers: int = TEACHERS, trees: int = TREES
) -> tuple[NDArray[np.int16], NDArray[np.int8], NDArray[Any]]:
    """(counts [queries, 2], ballots [teachers, queries], truth [queries])."""
    from sklearn.ensemble import RandomForestClassifier

    features, labels, part = split(table)

    def teach(teacher: int, rows: NDArray[np.int64]) -> RandomForestClassifier:
        forest = RandomForestClassifier(n_estimators=trees, random_state=teacher)
        return forest.fit(features[rows], labels[rows])

    parts = [np.flatnonzero(part == teacher) for teacher in range(teachers)]
    counts, ballots = count_votes(teach, parts, features[part == QUERY], classes=2)
    return counts, ballots, labels[part == QUERY]


def main() -> None:
    """Write records, votes and truth to the folder named, or the one of this script."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    keep(records(download()), "adult_records.parquet", folder)
    counts, ballots, truth = votes(load("adult_records.parquet", folder))
    keep(counts_table(counts), "adult.parquet", folder)
    keep(truth_table(truth), "adult_truth.parquet", folder)
    sys.stdout.write(f"adult: {describe(counts, ballots, truth)}\n")


if __name__ == "__main__":
    main()
