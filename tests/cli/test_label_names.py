"""Names of classes on the command line: in, out, and beside the votes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

NAMES = ["World", "Sports", "Business", "Sci/Tech"]
WORDS = ",".join(NAMES)
OPTIONS = ["--mechanism", "gnmax", "--sigma2", 2, "--seed", 5, "--report", "report.json"]


@pytest.fixture
def numbers():
    """Labels [queries, teachers] on which the teachers agree."""
    rng = np.random.default_rng(4)
    truth = np.arange(60) % 4
    wrong = rng.random((60, 40)) < 0.1
    return np.where(wrong, rng.integers(0, 4, size=(60, 40)), truth[:, np.newaxis])


@pytest.fixture
def ballots(tmp_path, numbers):
    """The same in words, with 3 rows of abstentions."""
    words = np.array(NAMES, dtype=object)[numbers]
    words[5, 0], words[6, 1], words[6, 2], words[7, 3], words[8, 4] = "?", "no", "", "sports", None
    path = tmp_path / "ballots.parquet"
    columns = {f"teacher_{t}": pa.array(words[:, t]).dictionary_encode() for t in range(40)}
    pq.write_table(pa.table(columns), path)
    return path


def test_votes_in_words_give_labels_in_words(pate, ballots, numbers, folder):
    result = pate("aggregate", ballots, "--label-names", WORDS, *OPTIONS, "-o", "labels.csv")
    assert result.exit_code == 0, result.stderr
    with Path("labels.csv").open(newline="") as file:
        labels = [row["label"] for row in csv.DictReader(file)]
    truth = [NAMES[q % 4] for q in range(60)]
    assert np.mean([a == b for a, b in zip(labels, truth, strict=True)]) == 1.0
    report = (folder / "report.json").read_text()
    assert json.loads(report)["label_names"] == NAMES
    assert json.loads(report)["sound"] is True
    # How many rows were odd stays with the holder.
    odd = ("match no", "unmatched", "label name")
    told = (report, result.stdout, result.stderr)
    assert not any(word in text for word in odd for text in told)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (["--label-names", "World"], 2, "--label-names: at least 2 names are needed, got 1"),
        (["--label-names", "@gone"], 2, "cannot read gone: No such file or directory"),
        (
            ["--label-names", WORDS, "--classes", 3],
            2,
            "--classes is 3, but there are 4 --label-names",
        ),
        ([], 3, "is of type text"),
    ],
)
def test_refusals(pate, ballots, refused, words, code, text):
    assert text in refused(pate("aggregate", ballots, *words), code)


def test_the_trap_of_a_file_turned_round(pate, tmp_path, refused, numbers):
    """As many teachers as there are queries: their votes would seem to cost next to nothing."""
    np.save(tmp_path / "turned.npy", numbers.T)
    words = ["--layout", "labels", "--classes", 4, "--dry-run"]
    line = refused(pate("aggregate", tmp_path / "turned.npy", *words), 3)
    assert "as labels it has 60 teachers and 40 queries" in line
    assert "--teachers" in line
    told = json.loads(pate("aggregate", tmp_path / "turned.npy", *words, "--teachers", 60).stdout)
    words[1] = "labels-by-teacher"
    right = json.loads(pate("aggregate", tmp_path / "turned.npy", *words).stdout)
    assert (told["queries"], right["queries"]) == (40, 60)
